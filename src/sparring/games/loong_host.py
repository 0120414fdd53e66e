"""A batch of Loong matches on the CPU, by tensors: `_core.LoongMatches` as `Loong` asks it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core

CROP_BYTES = 15 * 15 * len(_core.LOONG_PRIVILEGED["crop"])
SCALARS = len(_core.LOONG_PRIVILEGED["scalars"])


class Everyone(NamedTuple):
    """What a critic is told of all dragons that live in some lanes: by lane as they were given, then by dragon.

    lane, agent, dragon, team: int64 [m]; crop: uint8 [m, 3600]; scalars: uint8 [m, 32]
    """

    lane: Tensor
    agent: Tensor
    dragon: Tensor
    team: Tensor
    crop: Tensor
    scalars: Tensor


class HostMatches:
    """Tensors in the place of arrays.

    rows, views: uint8 [lanes, bytes], where lanes stand and what their dragons are told; every call changes them
    core:        the batch itself
    """

    def __init__(self, levels: list[_core.LoongLevel], lanes: int, **options: Any) -> None:
        """As `_core.LoongMatches`."""
        self.core = _core.LoongMatches(levels, lanes, **options)
        self.device = torch.device("cpu")
        self.slots: int = self.core.slots
        # Copies: a tensor over an array of the core would outlive it where Python ends, and could be written to.
        self.rows, self.views = torch.from_numpy(self.core.rows.copy()), torch.from_numpy(self.core.views.copy())
        self._copies = [(self.rows.numpy(), self.core.rows), (self.views.numpy(), self.core.views)]
        self._lanes = lanes
        self._players: NDArray[np.uint8] = np.full((lanes, 2), 255, np.uint8)

    def restart(self, lanes: Tensor, levels: Tensor, seeds: Tensor) -> None:
        lane, level, seed = (np.ascontiguousarray(column, np.int64) for column in (lanes, levels, seeds))
        self.core.restart(lane, level, seed.view(np.uint64))
        self._follow()

    def look(self) -> None:
        self.core.look()
        np.copyto(*self._copies[1])

    def observe(self, inputs: Tensor, masks: Tensor) -> None:
        self.core.observe(inputs.numpy(), masks.numpy())

    def act(self, actions: Tensor) -> None:
        self.core.act(actions.numpy())
        self._follow()

    def act_packed(self, choices: Tensor, given: Tensor | None) -> None:
        self.core.act_packed(choices.numpy(), None if given is None else given.numpy())
        self._follow()

    def decide(self, scripts: Tensor, seed: int, actions: Tensor) -> None:
        self.core.decide(scripts.numpy(), seed, actions.numpy())

    def seat(self, players: Tensor) -> None:
        """uint8 [lanes, 2]: who plays teams A and B from now on."""
        self._players = players.numpy().copy()

    def play(self, seed: int) -> None:
        """Those who are seated act until somebody else waits."""
        self.core.play(self._players, seed)
        self._follow()

    def told_at_end(self, lanes: Tensor, slots: Tensor, *, known: bool) -> Tensor:
        """What dragons are told, or know, that live in these lanes and slots (int64 [k]), whose matches are over."""
        last = self.core.known_at_end if known else self.core.view_of
        width = _core.LOONG_INPUTS if known else _core.LOONG_VIEW
        told = [last(lane, slot) for lane, slot in zip(lanes.tolist(), slots.tolist(), strict=True)]
        return torch.from_numpy(np.array(told, np.uint8).reshape(-1, np.dtype(width).itemsize))

    def appraise(self) -> tuple[Tensor, Tensor]:
        """crop [lanes, 3600], scalars [lanes, 32], of the lanes that wait."""
        crop, scalars = (torch.empty(self._lanes, width, dtype=torch.uint8) for width in (CROP_BYTES, SCALARS))
        self.core.appraise(crop.numpy(), scalars.numpy())
        return crop, scalars

    def boards(self, lanes: Tensor) -> tuple[Tensor, Tensor]:
        board, team = self.core.boards(np.ascontiguousarray(lanes))
        return torch.from_numpy(board), torch.from_numpy(team)

    def standings(self) -> Tensor:
        return torch.from_numpy(self.core.standings())

    def roster(self, lanes: Tensor) -> Tensor:
        return torch.from_numpy(self.core.roster(np.ascontiguousarray(lanes)))

    def frames(self) -> Tensor:
        return torch.from_numpy(self.core.frames())

    def everyone(self, lanes: Tensor) -> Everyone:
        return Everyone(*(torch.from_numpy(column) for column in self.core.everyone(np.ascontiguousarray(lanes))))

    def alone(self, lane: int) -> tuple[_core.LoongMatches, int]:
        """A batch on the CPU that has the lane, and its place there."""
        return self.core, lane

    def state(self) -> Tensor:
        return torch.from_numpy(self.core.state())

    def load_state(self, state: Tensor) -> None:
        """Raises ValueError, and then changes nothing."""
        self.core.load_state(np.ascontiguousarray(state))
        self._follow()

    def _follow(self) -> None:
        np.copyto(*self._copies[0])
