"""DDPG in one racket, against an opponent in the other: frozen, following the learner, or a ladder of its snapshots.

In plain self-play both sides are the latest actor, so the opponent changes as fast as the learner learns. Here its pace
is a setting, from not at all to that: what the opponent's change costs can be measured (docs/staleness.md).
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.api import Decisions, Game, Outcome, Wrapper
from sparring.learn.ddpg import DDPG, DDPGConfig
from sparring.learn.matches import MatchRow
from sparring.learn.offpolicy import averaged_tensors
from sparring.policies.mlp import Actor
from sparring.settings import Range

WINDOW = 100
"""Matches whose mean score decides about the next rung of a ladder."""
NETWORKS = ("actor", "critic", "actor_target", "critic_target")


@dataclass(frozen=True, kw_only=True)
class AgainstConfig:
    """Whom the learner plays."""

    opponent: Literal["itself", "frozen", "following", "ladder"] = "itself"
    """itself: all agents are the learner, and learn from both sides. Otherwise the learner plays one side, in every
    second lane the other one: frozen against weights that never change; following against weights that follow its own;
    ladder against a snapshot of its own that is renewed when the learner has got better."""
    run: str = ""
    """A run whose networks learner and opponent start from; empty: both start untrained."""
    follow: Annotated[float, Range(low=0, high=1)] = 2e-4
    """following: share of the learner's target actor that flows into the opponent at each update. 2e-4: half of the
    way takes 3,500 updates; 1: the opponent is the learner."""
    gain: Annotated[float, Range(low=0)] = 0.05
    """ladder: how far the mean score over 100 matches must rise above that of the last rung for the next one."""
    patience: Annotated[int, Range(low=100)] = 500
    """ladder: matches after which the next rung comes in any case."""
    keep_every: Annotated[int, Range(low=0)] = 0
    """Updates between two copies of the opponent that the checkpoint keeps, for sparring study staleness; 0: none."""


class OneSide(Wrapper):
    """A game of two teams in which only one side asks: team 0 in even lanes, team 1 in odd ones. `answer` plays the
    other: observations [n, ...] to actions."""

    def __init__(self, game: Game, answer: Callable[[Tensor], Tensor]) -> None:
        if game.teams != 2:
            raise SparringError(
                f"against.opponent: {game.name} has {game.teams} teams; an opponent needs a game of two"
            )
        super().__init__(game)
        self.answer = answer

    def decisions(self) -> Decisions:
        rows = self.game.decisions()
        return rows[_own(rows)]

    def act(self, actions: Tensor) -> Outcome:
        rows = self.game.decisions()
        own = _own(rows)
        played = actions.new_empty((len(rows), *actions.shape[1:]))
        played[own] = actions
        with torch.no_grad():
            played[~own] = self.answer(rows.obs[~own])
        outcome = self.game.act(played)
        return replace(outcome, last=outcome.last[_own(outcome.last)])


def _own(rows: Decisions) -> Tensor:
    return rows.team == rows.lane % 2


class Against(DDPG):
    """DDPG that plays one side. Its score is the match's: the better of both rackets in Tennis."""

    def __init__(
        self, game: Game, config: DDPGConfig, against: AgainstConfig, *, seed: int, device: str = "cpu"
    ) -> None:
        if config.predict:
            raise SparringError(
                'ddpg.predict: the other side\'s moves are only known where against.opponent = "itself"'
            )
        super().__init__(OneSide(game, self._answer), config, seed=seed, device=device)
        self.against = against
        self.opponent: Actor = copy.deepcopy(self.actor_target)
        """What plays the other side, without noise."""
        self.past: list[tuple[int, dict[str, Tensor]]] = []
        """Updates and weights: the opponent as it was every `keep_every` updates."""
        self.rungs = 0
        self._rung_score = 0.0
        self._rung_matches = 0
        self._scores: deque[float] = deque(maxlen=WINDOW)
        self._keep()

    def start_from(self, state: Mapping[str, Any]) -> None:
        """Take the networks of another DDPG's `state()`, for both sides."""
        for name in NETWORKS:
            getattr(self, name).load_state_dict(state[name])
        self.opponent.load_state_dict(state["actor_target"])
        self.past.clear()
        self._keep()

    def step(self) -> list[MatchRow]:
        ended = super().step()
        if self.against.opponent == "ladder":
            self._climb(ended)
        return ended

    def losses(self) -> dict[str, float]:
        rungs = {"rungs": float(self.rungs)} if self.against.opponent == "ladder" else {}
        return super().losses() | rungs

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "opponent": self.opponent.state_dict(),
            "past": self.past,
            "rungs": self.rungs,
            "rung_score": self._rung_score,
            "rung_matches": self._rung_matches,
            "scores": list(self._scores),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        super().load_state(state)
        self.opponent.load_state_dict(state["opponent"])
        self.past = [(updates, weights) for updates, weights in state["past"]]
        self.rungs, self._rung_score = state["rungs"], state["rung_score"]
        self._rung_matches = state["rung_matches"]
        self._scores = deque(state["scores"], maxlen=WINDOW)

    def _answer(self, obs: Tensor) -> Tensor:
        answer: Tensor = self.opponent(obs.to(self.device))
        return answer.cpu()

    def _update(self) -> None:
        super()._update()
        if self.against.opponent == "following":
            own, other = averaged_tensors(self.actor_target), averaged_tensors(self.opponent)
            torch._foreach_lerp_(other, own, self.against.follow)
        if self.against.keep_every and self.updates % self.against.keep_every == 0:
            self._keep()

    def _climb(self, ended: list[MatchRow]) -> None:
        """The opponent becomes a snapshot of the learner once that has got better, or time is up."""
        self._scores.extend(row.best for row in ended)
        self._rung_matches += len(ended)
        if self._rung_matches < WINDOW:
            return
        score = sum(self._scores) / len(self._scores)
        if score >= self._rung_score + self.against.gain or self._rung_matches >= self.against.patience:
            self.opponent.load_state_dict(self.actor_target.state_dict())
            self.rungs += 1
            self._rung_score, self._rung_matches = score, 0

    def _keep(self) -> None:
        if self.against.keep_every:
            weights = {name: tensor.clone() for name, tensor in self.opponent.state_dict().items()}
            self.past.append((self.updates, weights))
