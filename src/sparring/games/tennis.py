"""Tennis: two rackets keep a ball over the net. A batched port of the 2018 Udacity court (docs/tennis.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Outcome

OBSERVATION = 24
"""Three frames of 8, oldest first: own x, y, vx, vy, ball x, y, and own vx, vy again (the binary's fault)."""

CAP_DECISIONS = 1001
"""The decision at which the time limit of 5,000 physics steps is reported."""


@dataclass(frozen=True, kw_only=True)
class TennisOptions:
    """What can be chosen about the court."""

    velocity: Literal["as-shipped", "true"] = "as-shipped"
    """Entries 6 and 7 of a frame: `as-shipped` repeats the racket's velocity as in 2018, `true` is the ball's."""


class Tennis:
    """Tennis as a `Game`: one lane is one court, one match is one rally.

    Agent 0 is racket B (right), agent 1 is racket A (left); each sees its own side as negative. obs is float32 [n, 24],
    an action is float32 [n, 2] in [-1, 1]: run (positive is towards the net) and jump (above 0.5).
    A court serves by itself, so `restart` is optional: without levels it does what `env.reset()` did in the 2018 API
    (the usual loop does it after every rally), with levels it starts a fresh scene from that 32-bit seed.
    """

    name = "tennis"
    agents = 2
    teams = 2
    observation = Box(shape=(OBSERVATION,))
    action = Box(shape=(2,), low=-1.0, high=1.0)
    restarts_itself = True

    def __init__(self, *, lanes: int = 1, seed: int = 0, velocity: str = "as-shipped", threads: int = 1) -> None:
        """Lane 0 plays the scene of `seed` itself (its low 32 bits), the others scenes derived from seed and lane."""
        if velocity not in ("as-shipped", "true"):
            raise SparringError(f'tennis: velocity must be "as-shipped" or "true", got "{velocity}"')
        if lanes < 1:
            raise SparringError(f"tennis: lanes must be 1 or more, got {lanes}")
        if threads < 1:
            raise SparringError(f"tennis: threads must be 1 or more, got {threads}")
        self.lanes = lanes
        self.courts = _core.TennisCourts(lanes, true_velocity=velocity == "true", threads=threads)
        self._lane = torch.arange(lanes).repeat_interleave(2)
        self._agent = torch.arange(2).repeat(lanes)
        self._match = torch.zeros(lanes, dtype=torch.int64)
        self._decision = torch.zeros(lanes, dtype=torch.int64)
        base = seed & (2**64 - 1)
        derived = [_core.mix64(base ^ _core.mix64(lane)) if lane else base for lane in range(lanes)]
        seeds = np.array([value & 0xFFFFFFFF for value in derived], dtype=np.uint32)
        self.courts.seed(np.arange(lanes), seeds)

    def decisions(self) -> Decisions:
        obs = torch.from_numpy(self.courts.observations.copy()).view(-1, OBSERVATION)
        return self._rows(obs)

    def act(self, actions: Tensor) -> Outcome:
        if actions.shape != (2 * self.lanes, 2):
            raise SparringError(f"tennis: actions must be [{2 * self.lanes}, 2], got {list(actions.shape)}")
        courts = self.courts
        courts.step(np.ascontiguousarray(actions.detach().numpy().reshape(-1, 2, 2), dtype=np.float32))
        self._decision += 1
        done = torch.from_numpy(courts.done != 0)
        ended = done.nonzero().view(-1)
        both = done.repeat_interleave(2)
        last = self._rows(torch.from_numpy(courts.last_observations.reshape(-1, OBSERVATION)))[both]
        outcome = Outcome(
            lane=self._lane,
            agent=self._agent,
            reward=torch.from_numpy(courts.rewards.copy()).view(-1),
            ended=ended,
            truncated=torch.from_numpy(courts.max_reached != 0)[ended],
            score=torch.from_numpy(courts.scores.copy())[ended],
            length=torch.from_numpy(courts.lengths.astype(np.int64))[ended],
            last=last,
        )
        self._match += done
        self._decision[done] = 0
        return outcome

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        """int64 [k] each; a level is a scene seed, of which the low 32 bits count."""
        chosen = lanes.numpy()
        fresh = self._decision[lanes] > 0
        self._match[lanes[fresh]] += 1
        self._decision[lanes] = 0
        if levels is None:
            self.courts.reset(chosen)
        else:
            self.courts.seed(chosen, (levels.numpy() & 0xFFFFFFFF).astype(np.uint32))

    def state(self) -> dict[str, Tensor]:
        return {
            "courts": torch.from_numpy(self.courts.state()),
            "match": self._match.clone(),
            "decision": self._decision.clone(),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.courts.load_state(state["courts"].numpy())
        self._match.copy_(state["match"])
        self._decision.copy_(state["decision"])

    def _rows(self, obs: Tensor) -> Decisions:
        return Decisions(
            lane=self._lane,
            match=self._match.repeat_interleave(2),
            team=self._agent,
            agent=self._agent,
            decision=self._decision.repeat_interleave(2),
            obs=obs,
        )
