"""A batch of Loong matches on a GPU: what `_core.LoongMatches` is on the CPU, with the same bytes in the same rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.kernels import Kernels

ACTION_BYTES = np.dtype(_core.LOONG_ACTION).itemsize
LANE_BYTES = np.dtype(_core.LOONG_LANE).itemsize
VIEW_BYTES = np.dtype(_core.LOONG_VIEW).itemsize
KERNELS = ("start_matches", "act_in_lanes", "look_in_lanes", "decide_in_lanes")


class CudaMatches:
    """One thread of the GPU plays one lane, by the functions that the CPU calls.

    rows:  uint8 [lanes, LANE_BYTES], where each lane stands; fields of `_core.LOONG_LANE`
    views: uint8 [lanes, VIEW_BYTES], what the dragons that must act are told, as of the last `look`; `_core.LOONG_VIEW`

    Both are tensors on the device that every call changes. Calls return at once; the GPU follows in the order of
    torch's current stream. A row that is no action cannot be refused there: it ends its lane with fault 3.
    """

    def __init__(
        self, levels: list[_core.LoongLevel], lanes: int, *, lean: bool = False, device: str | torch.device = "cuda"
    ) -> None:
        """levels, lanes, lean: as of `_core.LoongMatches`; lane i starts on level i modulo their number, with seed i.

        Raises SparringError without a GPU or without the extra `cuda`. The first time on a machine the kernels are
        compiled, which takes seconds.
        """
        if lanes < 1 or not levels:
            raise SparringError(f"a batch needs a lane and a level, got {lanes} and {len(levels)}")
        self._kernels = Kernels("batch.cu", KERNELS, torch.device(device))
        self.device = self._kernels.device
        self.lanes, self.levels = lanes, len(levels)
        self.lane_bytes = _core.loong_lane_bytes(levels, lean)
        self._memory = self._bytes(lanes, self.lane_bytes)
        self.rows = self._bytes(lanes, LANE_BYTES)
        self.views = self._bytes(lanes, VIEW_BYTES)
        pool, begins = _core.loong_pool(levels)
        self._pool = torch.frombuffer(bytearray(pool), dtype=torch.uint8).to(self.device)
        self._table = (torch.tensor(begins) + self._pool.data_ptr()).to(self.device)
        addresses = [tensor.data_ptr() for tensor in (self._memory, self._table, self.rows, self.views)]
        batch = _core.loong_batch(levels, lanes, lean, *addresses)
        self._batch = torch.frombuffer(bytearray(batch), dtype=torch.uint8).to(self.device)
        first = torch.arange(lanes)
        self.restart(first, first % self.levels, first)

    def restart(self, lanes: Tensor, levels: Tensor, seeds: Tensor) -> None:
        """Start matches in these lanes, each named once. int64 [k] each, the bits of a seed being an unsigned number.

        Waits for the device if they lie there. Raises SparringError if a lane or a level does not exist.
        """
        host = [tensor.to("cpu", torch.int64).contiguous() for tensor in (lanes, levels, seeds)]
        if len({tensor.shape for tensor in host}) != 1 or host[0].ndim != 1:
            raise SparringError(f"lanes, levels and seeds must be [k], got {[list(tensor.shape) for tensor in host]}")
        for what, numbers, count in (("lane", host[0], self.lanes), ("level", host[1], self.levels)):
            wrong = numbers[(numbers < 0) | (numbers >= count)]
            if len(wrong) > 0:
                raise SparringError(f"there is no {what} {int(wrong[0])}: there are {count}")
        if len(host[0]) > 0:
            there = [tensor.to(self.device) for tensor in host]
            self._kernels.launch("start_matches", len(host[0]), self._batch, *there, len(host[0]))

    def look(self) -> None:
        """Fill `views` for the lanes that wait."""
        self._kernels.launch("look_in_lanes", self.lanes, self._batch)

    def act(self, actions: Tensor) -> None:
        """Act in every lane that waits, and go on to its next decision. actions: uint8 [lanes, ACTION_BYTES]."""
        self._check("actions", actions, ACTION_BYTES)
        self._kernels.launch("act_in_lanes", self.lanes, self._batch, actions)

    def decide(self, scripts: Tensor, seed: int, actions: Tensor) -> None:
        """Fill `actions` with what scripted players do in the lanes that wait.

        scripts: uint8 [lanes, 2], the players of teams A and B by their place in `_core.LOONG_SCRIPTS`.
        """
        self._check("scripts", scripts, 2)
        self._check("actions", actions, ACTION_BYTES)
        self._kernels.launch("decide_in_lanes", self.lanes, self._batch, scripts, seed, actions)

    def state(self) -> Tensor:
        """All lanes as bytes, uint8 [lanes, lane_bytes + 8] on the CPU: what `_core.LoongMatches.state` would be."""
        rows = self.rows.cpu().numpy().view(np.dtype(_core.LOONG_LANE))
        level = torch.from_numpy(rows["level"].astype(np.int64))
        return torch.cat([level.view(torch.uint8).view(self.lanes, 8), self._memory.cpu()], dim=1)

    def _bytes(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.uint8, device=self.device)

    def _check(self, what: str, tensor: Tensor, width: int) -> None:
        if tensor.dtype != torch.uint8 or tensor.shape != (self.lanes, width):
            raise SparringError(
                f"{what} must be uint8 [{self.lanes}, {width}], got {tensor.dtype} {list(tensor.shape)}"
            )
