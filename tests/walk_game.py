"""Walk: the smallest game that uses every part of the decision stream. Both agents walk on a line of their own.

A match ends when an agent leaves its line or after `LIMIT` decisions. Tests break it on purpose, one part at a time.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Discrete, Outcome

LIMIT = 8
END = 2.5
STEPS = torch.tensor([-1.0, 0.5, 1.0])


class Walk:
    name = "walk"
    agents = 2
    teams = 2
    observation: Box = Box(shape=(3,), low=-10.0, high=100.0)
    action: Box | Discrete = Discrete(n=3)
    restarts_itself = False

    def __init__(self, *, lanes: int, seed: int, threads: int = 1) -> None:
        self.lanes = lanes
        self.threads = threads
        self.seeds = seed * 1000 + torch.arange(lanes) * 7
        self.match = torch.zeros(lanes, dtype=torch.int64)
        self.decision = torch.zeros(lanes, dtype=torch.int64)
        self.running = torch.ones(lanes, dtype=torch.bool)
        self.place = torch.zeros(lanes, 2)
        self.total = torch.zeros(lanes, 2)
        for lane in range(lanes):
            self.begin(lane, int(self.seeds[lane]))

    def begin(self, lane: int, level: int) -> None:
        generator = torch.Generator().manual_seed(level)
        self.place[lane] = torch.rand(2, generator=generator)
        self.total[lane] = 0
        self.decision[lane] = 0
        self.running[lane] = True

    def decisions(self) -> Decisions:
        return self.rows(self.running)

    def rows(self, chosen: Tensor) -> Decisions:
        lanes = chosen.nonzero()[:, 0]
        agent = torch.arange(2).repeat(len(lanes))
        lane = lanes.repeat_interleave(2)
        own = self.place[lanes].reshape(-1)
        other = self.place[lanes].flip(1).reshape(-1)
        obs = torch.stack([own, other, self.decision[lane].float()], dim=1)
        mask = torch.ones(len(lane), 3, dtype=torch.bool)
        mask[:, 0] = own > 0  # no step back from the start of the line
        return Decisions(
            lane=lane, match=self.match[lane], team=agent, agent=agent, decision=self.decision[lane], obs=obs, mask=mask
        )

    def act(self, actions: Tensor) -> Outcome:
        rows = self.decisions()
        if actions.shape != rows.lane.shape:
            raise SparringError(f"walk: actions must be [{len(rows)}], got {list(actions.shape)}")
        step = STEPS[actions]
        self.place.index_put_((rows.lane, rows.agent), step, accumulate=True)
        reward = step * 0.1
        self.total.index_put_((rows.lane, rows.agent), reward, accumulate=True)
        self.decision[self.running] += 1
        over = self.running & (self.place.abs() >= END).any(dim=1)
        ended = self.running & (over | (self.decision >= LIMIT))
        lanes = ended.nonzero()[:, 0]
        outcome = Outcome(
            lane=rows.lane,
            agent=rows.agent,
            reward=reward,
            ended=lanes,
            truncated=~over[lanes],
            score=self.total[lanes],
            length=self.decision[lanes],
            last=self.rows(ended),
        )
        self.running &= ~ended
        return outcome

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        for index, lane in enumerate(lanes.tolist()):
            if self.decision[lane] > 0:
                self.match[lane] += 1
            drawn = int(self.seeds[lane] + self.match[lane] * 131)
            self.begin(lane, drawn if levels is None else int(levels[index]))

    def state(self) -> dict[str, Tensor]:
        return {name: getattr(self, name).clone() for name in STATE}

    def load_state(self, state: dict[str, Tensor]) -> None:
        if len(state["match"]) != self.lanes:
            raise SparringError(f"walk: the state is of {len(state['match'])} lanes, this game has {self.lanes}")
        for name in STATE:
            setattr(self, name, state[name].clone())


STATE = ("seeds", "match", "decision", "running", "place", "total")


class SelfRestarting(Walk):
    """Walk that stands in its next match as soon as one ends."""

    restarts_itself = True

    def act(self, actions: Tensor) -> Outcome:
        outcome = super().act(actions)
        outcome = replace(outcome, length=outcome.length.clone())
        self.restart(outcome.ended)
        return outcome
