"""Small games for tests of learners."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from sparring.games.api import Box, Decisions, Outcome, Wrapper


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


class Turns(Follow):
    """Follow for two agents that take turns, the second one blindly: a sequential game."""

    agents = 2

    def decisions(self) -> Decisions:
        rows = super().decisions()
        return replace(rows, agent=rows.decision % 2)
