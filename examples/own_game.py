"""A game of your own: write it, check it, train it, look at what was learnt.

    python examples/own_game.py [DECISIONS]

Meet: two walkers on a line are paid for being close to each other. One class of a few methods is all that a learner,
a recipe or the checker needs; nothing of Sparring is changed for it.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor

import sparring
from sparring.games.api import Box, Decisions, Outcome
from sparring.games.checker import check_game
from sparring.learn.ddpg import DDPGConfig

LENGTH = 10
"""Decisions of a match."""
STRIDE = 0.2
"""How far a full action carries."""


class Meet:
    """Each walker sees where it stands and where the other one stands, and chooses how far to walk, -1 to 1."""

    name = "meet"
    agents = 2
    teams = 1
    observation = Box(shape=(2,))
    action = Box(shape=(1,), low=-1.0, high=1.0)
    restarts_itself = False

    def __init__(self, *, lanes: int, seed: int) -> None:
        self.lanes = lanes
        self.seed = torch.tensor(seed)
        self.place = torch.zeros(lanes, 2)
        self.match = torch.zeros(lanes, dtype=torch.int64)
        self.decision = torch.zeros(lanes, dtype=torch.int64)
        self.score = torch.zeros(lanes)
        self.restart(torch.arange(lanes))

    def decisions(self) -> Decisions:
        return self._rows(torch.arange(self.lanes)[self.decision < LENGTH])

    def act(self, actions: Tensor) -> Outcome:
        rows = self.decisions()
        if actions.shape != (len(rows), 1):
            raise sparring.SparringError(f"meet: actions must be [{len(rows)}, 1], got {list(actions.shape)}")
        waiting = self.decision < LENGTH
        self.place[waiting] += STRIDE * actions.clamp(-1, 1).view(-1, 2)
        self.decision[waiting] += 1
        paid = (0.1 - 0.1 * (self.place[:, 0] - self.place[:, 1]).abs()) * waiting
        self.score += paid
        ended = (waiting & (self.decision == LENGTH)).nonzero().view(-1)
        return Outcome(
            lane=rows.lane,
            agent=rows.agent,
            reward=paid[rows.lane],
            ended=ended,
            truncated=torch.zeros(len(ended), dtype=torch.bool),
            score=self.score[ended, None].repeat(1, 2),
            length=self.decision[ended],
            last=self._rows(ended),
        )

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        for index, lane in enumerate(lanes.tolist()):
            self.match[lane] += bool(self.decision[lane] > 0)
            own = (int(self.seed), lane, int(self.match[lane]))
            start = np.random.default_rng(own if levels is None else int(levels[index])).uniform(-1, 1, 2)
            self.place[lane] = torch.from_numpy(start)
            self.decision[lane] = 0
            self.score[lane] = 0

    def state(self) -> dict[str, Tensor]:
        return {name: getattr(self, name).clone() for name in ("seed", "place", "match", "decision", "score")}

    def load_state(self, state: dict[str, Tensor]) -> None:
        if len(state["place"]) != self.lanes:
            raise sparring.SparringError(f"meet: that state is of {len(state['place'])} lanes, not of {self.lanes}")
        for name, value in state.items():
            setattr(self, name, value.clone())

    def _rows(self, lanes: Tensor) -> Decisions:
        lane = lanes.repeat_interleave(2)
        agent = torch.arange(2).repeat(len(lanes))
        place = self.place[lanes]
        return Decisions(
            lane=lane,
            match=self.match[lane],
            team=torch.zeros_like(lane),
            agent=agent,
            decision=self.decision[lane],
            obs=torch.stack([place, place.flip(1)], dim=2).view(-1, 2),
        )


def main(decisions: int = 6_400) -> None:
    print("checks passed:", ", ".join(check_game(Meet, decisions=50)))
    recipe = sparring.Recipe(
        game="meet",
        lanes=16,
        threads=1,
        decisions=decisions,
        solved_score=0.8,
        ddpg=DDPGConfig(
            actor_hidden=(32, 32),
            actor_normalised=0,
            critic_hidden=(32, 32),
            critic_normalised=0,
            actor_lr=1e-3,
            critic_lr=1e-3,
            tau=0.01,
            gamma=0.9,
            update_every=4,
            burst=8,
            noise_sigma=0.3,
            noise_sigma_low=0.3,
        ),
    )
    result = sparring.train(recipe, run="meet", game=Meet)
    policy = sparring.load(result.run)
    walk = policy.act(np.array([[-0.5, 0.5], [0.5, -0.5], [0.1, 0.1]]))
    print(f"mean score {result.score:.2f}; left of the other it walks {walk[0, 0]:+.2f}, right of it {walk[1, 0]:+.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
