"""Small games for tests of learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.games.api import Box, Decisions, Discrete, Outcome, Wrapper


class Follow:
    """An agent sees a number in [-1, 1] and earns most by answering with it; a match lasts four decisions."""

    name = "follow"
    agents = 1
    teams = 1
    observation = Box(shape=(1,), low=-1.0, high=1.0)
    action = Box(shape=(1,), low=-1.0, high=1.0)
    restarts_itself = True

    def __init__(self, lanes: int = 8, seed: int = 0) -> None:
        self.lanes = lanes
        self.generator = torch.Generator().manual_seed(seed)
        self.obs = self._draw()
        self.decision = torch.zeros(lanes, dtype=torch.int64)
        self.match = torch.zeros(lanes, dtype=torch.int64)
        self.score = torch.zeros(lanes)

    def _draw(self) -> Tensor:
        return torch.rand(self.lanes, 1, generator=self.generator) * 2 - 1

    def decisions(self) -> Decisions:
        lane = torch.arange(self.lanes)
        zero = torch.zeros_like(lane)
        return Decisions(
            lane=lane, match=self.match.clone(), team=zero, agent=zero, decision=self.decision.clone(), obs=self.obs
        )

    def act(self, actions: Tensor) -> Outcome:
        reward = -(actions - self.obs).square().sum(1)
        self.score += reward
        self.decision += 1
        self.obs = self._draw()
        last = self.decisions()
        ended = (self.decision == 4).nonzero().view(-1)
        outcome = Outcome(
            lane=last.lane,
            agent=last.agent,
            reward=reward,
            ended=ended,
            truncated=torch.zeros(len(ended), dtype=torch.bool),
            score=self.score[ended].unsqueeze(1),
            length=self.decision[ended],
            last=last[ended],
        )
        self.score[ended] = 0
        self.decision[ended] = 0
        self.match[ended] += 1
        return outcome

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        pass

    def state(self) -> dict[str, Tensor]:
        return {
            "generator": self.generator.get_state(),
            "obs": self.obs,
            "decision": self.decision,
            "score": self.score,
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.generator.set_state(state["generator"])
        self.obs, self.decision, self.score = state["obs"], state["decision"], state["score"]


class Shuffled(Wrapper):
    """The same game with its rows in another order at every call: nothing but the ids tells who is who."""

    def __init__(self, game: Wrapper, seed: int = 0) -> None:
        super().__init__(game)
        self.generator = torch.Generator().manual_seed(seed)
        self.order: Tensor | None = None

    def decisions(self) -> Decisions:
        rows = self.game.decisions()
        if self.order is None:
            self.order = torch.randperm(len(rows), generator=self.generator)
        return rows[self.order]

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        self.order = None
        super().restart(lanes, levels)

    def act(self, actions: Tensor) -> Outcome:
        assert self.order is not None
        unshuffled = torch.empty_like(actions)
        unshuffled[self.order] = actions
        self.order = None
        outcome = self.game.act(unshuffled)
        order = torch.randperm(len(outcome.lane), generator=self.generator)
        last = torch.randperm(len(outcome.last), generator=self.generator)
        return Outcome(
            lane=outcome.lane[order],
            agent=outcome.agent[order],
            reward=outcome.reward[order],
            ended=outcome.ended,
            truncated=outcome.truncated,
            score=outcome.score,
            length=outcome.length,
            last=outcome.last[last],
        )


class Rounds(Follow):
    """Follow that waits for `restart` after a match; it counts them."""

    restarts_itself = False
    restarts = 0

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        self.restarts += len(lanes)


class Clock:
    """Agents act when a timetable drawn from the seed says so: in turns, several at once, born again after a death, and
    after a limit took one out.

    What an agent sees is one number that no other decision has; every turn pays some agent something. `lives` keeps
    what a learner should make of it: of each life the decisions' numbers, what was earned after each, and the end.
    """

    name = "clock"
    agents = 3
    teams = 1
    observation = Box(shape=(1,))
    action = Discrete(n=2)
    restarts_itself = False

    def __init__(self, lanes: int = 1, seed: int = 0) -> None:
        self.lanes = lanes
        self.random = np.random.default_rng(seed)
        self.number = 0
        self.match = 0
        self.lives: list[dict[str, Any]] = []
        self.restart(torch.zeros(1, dtype=torch.int64))

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        self.turn = 0
        self.living: dict[int, dict[str, Any]] = {}
        self._draw()

    def _draw(self) -> None:
        """Who acts next; now and then one that lived is dead and another life takes its place."""
        chosen = self.random.permutation(3)[: self.random.integers(1, 4)]
        for agent in sorted(chosen.tolist()):
            if agent not in self.living or self.random.random() < 0.2:
                if agent in self.living:
                    self.living[agent]["end"] = "died"
                self.living[agent] = {"seen": [], "paid": [], "end": None, "after": None}
                self.lives.append(self.living[agent])
        self.acting = sorted(chosen.tolist())
        self.shown = {agent: self._next() for agent in self.acting}

    def _next(self) -> float:
        self.number += 1
        return float(self.number)

    def _rows(self, shown: dict[int, float]) -> Decisions:
        agent = torch.tensor(list(shown), dtype=torch.int64)
        zero = torch.zeros_like(agent)
        count = torch.tensor([len(self.living[each]["seen"]) for each in shown], dtype=torch.int64)
        obs = torch.tensor(list(shown.values()), dtype=torch.float32).view(-1, 1)
        return Decisions(lane=zero, match=zero + self.match, team=zero, agent=agent, decision=count, obs=obs)

    def decisions(self) -> Decisions:
        return self._rows(self.shown)

    def act(self, actions: Tensor) -> Outcome:
        for agent, number in self.shown.items():
            self.living[agent]["seen"].append(number)
            self.living[agent]["paid"].append(0.0)
        paid = sorted({*self.acting, int(self.random.integers(0, 3))})
        reward = [float(self.random.integers(1, 9)) for _ in paid]
        for agent, amount in zip(paid, reward, strict=True):
            if agent in self.living:
                self.living[agent]["paid"][-1] += amount
        self.turn += 1
        over, cut = self.turn == 7, bool(self.random.random() < 0.5)
        last: dict[int, float] = {}
        if over:
            for agent, life in self.living.items():
                # One that is not told how it ended was dead.
                told = bool(self.random.random() < 0.7)
                if told:
                    last[agent] = life["after"] = self._next()
                life["end"] = "cut" if cut and told else "over"
        parted: dict[int, float] = {}
        for agent, life in () if over else self.living.items():
            if self.random.random() < 0.1:
                life["end"], life["after"] = "cut", self._next()
                parted[agent] = life["after"]
        outcome = Outcome(
            lane=torch.zeros(len(paid), dtype=torch.int64),
            agent=torch.tensor(paid),
            reward=torch.tensor(reward),
            ended=torch.arange(int(over)),
            truncated=torch.full((int(over),), cut),
            score=torch.zeros(int(over), 3),
            length=torch.full((int(over),), self.turn),
            last=self._rows(last),
            parted=self._rows(parted) if parted else None,
        )
        self.living = {agent: life for agent, life in self.living.items() if agent not in parted}
        self.match += over
        if over:
            self.shown = {}
        else:
            self._draw()
        return outcome

    def state(self) -> dict[str, Tensor]:
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        pass
