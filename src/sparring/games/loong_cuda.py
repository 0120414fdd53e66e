"""A batch of Loong matches on a GPU: what `_core.LoongMatches` is on the CPU, with the same bytes in the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.loong_host import CROP_BYTES, SCALARS, Everyone
from sparring.kernels import Kernels

ACTION_BYTES, INPUTS_BYTES, LANE_BYTES, VIEW_BYTES = (
    np.dtype(fields).itemsize for fields in (_core.LOONG_ACTION, _core.LOONG_INPUTS, _core.LOONG_LANE, _core.LOONG_VIEW)
)
BOARD_BYTES = 16 * 16 * len(_core.LOONG_PRIVILEGED["board"])
KERNELS = ("start_matches", "act_in_lanes", "look_in_lanes", "decide_in_lanes")
KNOWING_KERNELS = (
    "start_knowing_matches",
    "observe_in_lanes",
    "act_packed_in_lanes",
    "play_in_lanes",
    "know_at_end",
    "appraise_in_lanes",
    "appraise_all_in_lanes",
    "boards_in_lanes",
    "standings_in_lanes",
    "roster_in_lanes",
    "frames_in_lanes",
)
_FOIL = _core.LOONG_PLAYERS.index("foil")
_AT_ONCE = 64
"""Lanes that are copied to the CPU, or from it, at once."""


class CudaMatches:
    """One thread of the GPU plays one lane, by the functions that the CPU calls.

    rows:  uint8 [lanes, LANE_BYTES], where each lane stands; fields of `_core.LOONG_LANE`
    views: uint8 [lanes, VIEW_BYTES], what the dragons that must act are told, as of the last `look`; `_core.LOONG_VIEW`

    Both are tensors on the device that every call changes. Calls return at once, but where they say so; the GPU follows
    in the order of torch's current stream. A row or number that is no action cannot be refused there: it ends its lane
    with fault 3.
    """

    def __init__(
        self,
        levels: list[_core.LoongLevel],
        lanes: int,
        *,
        lean: bool = False,
        knowledge: bool = False,
        mirror: str = "coin",
        build: int = 0,
        device: str | torch.device = "cuda",
    ) -> None:
        """levels, lanes and options: as of `_core.LoongMatches`; lane i starts on level i modulo their number, with
        seed i.

        Raises SparringError without a GPU or without the extra `cuda`. The first time on a machine the kernels are
        compiled, which takes seconds, a minute with knowledge.
        """
        if lanes < 1 or not levels:
            raise SparringError(f"a batch needs a lane and a level, got {lanes} and {len(levels)}")
        self._kernels = Kernels("batch.cu", KERNELS, torch.device(device))
        self.device = self._kernels.device
        self.lanes, self._levels = lanes, levels
        self._options: dict[str, Any] = {"lean": lean, "knowledge": knowledge, "mirror": mirror, "build": build}
        self._room = _core.loong_room(levels, lean)
        self.lane_bytes, self.slots = self._room["lane"], self._room["slots"]
        self.knowledge_bytes = self._room["knowledge"] if knowledge else 0
        self._memory = self._bytes(lanes, self.lane_bytes)
        self.rows = self._bytes(lanes, LANE_BYTES)
        self.views = self._bytes(lanes, VIEW_BYTES)
        pool, begins = _core.loong_pool(levels)
        self._pool = self._there(pool)
        self._table = (torch.tensor(begins) + self._pool.data_ptr()).to(self.device)
        addresses = [tensor.data_ptr() for tensor in (self._memory, self._table, self.rows, self.views)]
        self._batch = self._there(_core.loong_batch(levels, lanes, lean, *addresses))
        self._knowledge: Tensor | None = None
        if knowledge:
            self._knowing_kernels = Kernels("knowing.cu", KNOWING_KERNELS, torch.device(device))
            self._knowledge = self._bytes(lanes, self.knowledge_bytes)
            self._knowing = self._there(_core.loong_knowing(levels, mirror, build, self._knowledge.data_ptr()))
            self._players = torch.full((lanes, 2), 255, dtype=torch.uint8, device=self.device)
            self._foil_room: Tensor | None = None
            self._blocks_room = self._bytes(lanes, self._room["blocks"])
        first = torch.arange(lanes)
        self.restart(first, first % len(levels), first)

    def restart(self, lanes: Tensor, levels: Tensor, seeds: Tensor) -> None:
        """Start matches in these lanes, each named once. int64 [k] each, the bits of a seed being an unsigned number.

        Waits for the device if they lie there. Raises SparringError if a lane or a level does not exist.
        """
        host = [tensor.to("cpu", torch.int64).contiguous() for tensor in (lanes, levels, seeds)]
        if len({tensor.shape for tensor in host}) != 1 or host[0].ndim != 1:
            raise SparringError(f"lanes, levels and seeds must be [k], got {[list(tensor.shape) for tensor in host]}")
        for what, numbers, count in (("lane", host[0], self.lanes), ("level", host[1], len(self._levels))):
            wrong = numbers[(numbers < 0) | (numbers >= count)]
            if len(wrong) > 0:
                raise SparringError(f"there is no {what} {int(wrong[0])}: there are {count}")
        if len(host[0]) == 0:
            return
        there = [tensor.to(self.device) for tensor in host]
        if self._knowledge is None:
            self._kernels.launch("start_matches", len(host[0]), self._batch, *there, len(host[0]))
        else:
            self._know("start_knowing_matches", len(host[0]), self._knowing, *there, len(host[0]))

    def look(self) -> None:
        """Fill `views` for the lanes that wait."""
        self._kernels.launch("look_in_lanes", self.lanes, self._batch)

    def act(self, actions: Tensor) -> None:
        """Act in every lane that waits, and go on to its next decision. actions: uint8 [lanes, ACTION_BYTES]."""
        self._check("actions", actions, ACTION_BYTES)
        if self._knowledge is None:
            self._kernels.launch("act_in_lanes", self.lanes, self._batch, actions)
        else:
            self.act_packed(torch.full((self.lanes,), -1, device=self.device), actions)

    def decide(self, scripts: Tensor, seed: int, actions: Tensor) -> None:
        """Fill `actions` with what scripted players do in the lanes that wait.

        scripts: uint8 [lanes, 2], the players of teams A and B by their place in `_core.LOONG_SCRIPTS`.
        """
        self._check("scripts", scripts, 2)
        self._check("actions", actions, ACTION_BYTES)
        self._kernels.launch("decide_in_lanes", self.lanes, self._batch, scripts, seed, actions)

    # ---- With knowledge.

    def observe(self, inputs: Tensor, masks: Tensor) -> None:
        """Fill the rows of the lanes that wait with what their dragons know, and may choose: uint8 [lanes, ...]."""
        self._check("inputs", inputs, INPUTS_BYTES)
        self._check("masks", masks, np.dtype(_core.LOONG_MASK).itemsize)
        self._know("observe_in_lanes", self.lanes, self._knowing, inputs, masks)

    def act_packed(self, choices: Tensor, given: Tensor | None) -> None:
        """Act by choices, int64 [lanes], in turns that were observed; where one is -1, by the row of `given`."""
        if choices.dtype != torch.int64 or choices.shape != (self.lanes,):
            raise SparringError(f"choices must be int64 [{self.lanes}], got {choices.dtype} {list(choices.shape)}")
        if given is not None:
            self._check("given", given, ACTION_BYTES)
        self._know("act_packed_in_lanes", self.lanes, self._knowing, choices, 0 if given is None else given)

    def seat(self, players: Tensor) -> None:
        """uint8 [lanes, 2] on the CPU: who plays teams A and B from now on, by place in `_core.LOONG_PLAYERS`, 255
        nobody."""
        self._check("players", players, 2)
        self._players = players.to(self.device, copy=True)
        if self._foil_room is None and bool((players == _FOIL).any()):
            self._foil_room = self._bytes(self.lanes, self._room["foil"])

    def play(self, seed: int) -> None:
        """Those who are seated act until somebody else waits."""
        room = 0 if self._foil_room is None else self._foil_room
        self._know("play_in_lanes", self.lanes, self._knowing, self._players, seed, room)

    def told_at_end(self, lanes: Tensor, slots: Tensor, *, known: bool) -> Tensor:
        """What dragons know that live in these lanes and slots (int64 [k]), whose matches are over: uint8 [k, 9424].
        Those of a lane must stand together."""
        if not known:
            raise SparringError("a batch on a GPU tells what dragons know, not what they are told")
        inputs = self._bytes(len(lanes), INPUTS_BYTES)
        if len(lanes):
            self._know("know_at_end", len(lanes), self._knowing, lanes, slots, inputs, len(lanes))
        return inputs

    def appraise(self) -> tuple[Tensor, Tensor]:
        """crop [lanes, 3600], scalars [lanes, 32], of the lanes that wait."""
        crop, scalars = self._bytes(self.lanes, CROP_BYTES), self._bytes(self.lanes, SCALARS)
        self._know("appraise_in_lanes", self.lanes, self._knowing, crop, scalars)
        return crop, scalars

    def boards(self, lanes: Tensor) -> tuple[Tensor, Tensor]:
        """Of lanes (int64 [k]), each named once: [k, 2, 4096] and [k, 2, 32]."""
        k, team = len(lanes), len(_core.LOONG_PRIVILEGED["team"])
        if k > self.lanes:
            raise SparringError(f"{k} lanes are named, of {self.lanes}: name each once")
        boards, scalars = self._bytes(k, 2, BOARD_BYTES), self._bytes(k, 2, team)
        if k:
            self._know("boards_in_lanes", k, lanes.to(self.device), self._blocks_room, boards, scalars, k)
        return boards, scalars

    def standings(self) -> Tensor:
        numbers = torch.empty(self.lanes, 2, 4, dtype=torch.int32, device=self.device)
        self._know("standings_in_lanes", self.lanes, numbers)
        return numbers

    def roster(self, lanes: Tensor) -> Tensor:
        numbers = torch.full((len(lanes), self.slots, 5), -1, dtype=torch.int32, device=self.device)
        if len(lanes):
            self._know("roster_in_lanes", len(lanes), lanes.to(self.device), numbers, len(lanes))
        return numbers

    def frames(self) -> Tensor:
        numbers = torch.full((self.lanes, 6), -1, dtype=torch.int32, device=self.device)
        self._know("frames_in_lanes", self.lanes, self._knowing, numbers)
        return numbers

    def everyone(self, lanes: Tensor) -> Everyone:
        """Waits for the device."""
        there = lanes.to(self.device)
        alive = self.standings()[there, :, 0].sum(dim=1)
        m = int(alive.sum())
        lane, agent, dragon, team = torch.empty(4, m, dtype=torch.int64, device=self.device)
        everyone = Everyone(lane, agent, dragon, team, self._bytes(m, CROP_BYTES), self._bytes(m, SCALARS))
        if m:
            first = alive.cumsum(dim=0) - alive
            self._know("appraise_all_in_lanes", len(lanes), self._knowing, there, first, *everyone, len(lanes))
        return everyone

    # ---- Copies on the CPU.

    def alone(self, lane: int) -> tuple[_core.LoongMatches, int]:
        """A batch on the CPU that has the lane, and its place there."""
        return self._copied(slice(lane, lane + 1)), 0

    def state(self) -> Tensor:
        """All lanes as bytes on the CPU: what `_core.LoongMatches.state` would be."""
        parts = [torch.from_numpy(self._copied(some).state()) for some in self._some()]
        state = torch.zeros(self.lanes, max(part.shape[1] for part in parts), dtype=torch.uint8)
        for some, part in zip(self._some(), parts, strict=True):
            state[some, : part.shape[1]] = part
        return state

    def load_state(self, state: Tensor) -> None:
        """Raises ValueError for what is no state of such a batch, and then changes nothing."""
        if state.shape[0] != self.lanes:
            raise ValueError("state must be [lanes, lane_bytes + 8] of the same core and levels")
        for change in (False, True):  # all lanes are found sound before one is changed
            for some in self._some():
                copy = self._copied(some)
                copy.load_state(np.ascontiguousarray(state[some]))
                if change:
                    self._memory[some] = torch.from_numpy(copy.memory.copy()).to(self.device)
                    self.rows[some] = torch.from_numpy(copy.rows.copy()).to(self.device)
                    if self._knowledge is not None:
                        self._knowledge[some] = torch.from_numpy(copy.knowledge.copy()).to(self.device)

    def _some(self) -> Iterator[slice]:
        for first in range(0, self.lanes, _AT_ONCE):
            yield slice(first, min(first + _AT_ONCE, self.lanes))

    def _copied(self, some: slice) -> _core.LoongMatches:
        """These lanes on the CPU."""
        copy = _core.LoongMatches(self._levels, some.stop - some.start, **self._options)
        knowledge = None if self._knowledge is None else self._knowledge[some].cpu().numpy()
        copy.take_over(self._memory[some].cpu().numpy(), self.rows[some].cpu().numpy(), knowledge)
        return copy

    def _know(self, name: str, threads: int, *arguments: Tensor | int) -> None:
        """Run a kernel of `knowing.cu`."""
        if self._knowledge is None:
            raise SparringError(f"{name} needs knowledge=True")
        self._knowing_kernels.launch(name, threads, self._batch, *arguments)

    def _there(self, raw: bytes) -> Tensor:
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8).to(self.device)

    def _bytes(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.uint8, device=self.device)

    def _check(self, what: str, tensor: Tensor, width: int) -> None:
        if tensor.dtype != torch.uint8 or tensor.shape != (self.lanes, width):
            raise SparringError(
                f"{what} must be uint8 [{self.lanes}, {width}], got {tensor.dtype} {list(tensor.shape)}"
            )
