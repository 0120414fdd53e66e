"""Uniform experience replay over the last `capacity` transitions (Lin 1992; Mnih et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError


class Replay:
    """Preallocated rows; row number r (counted from the run's start) lives at r % capacity.

    Columns: obs float32 [capacity, obs], action float32 [capacity, actions], reward float32 [capacity],
    next_obs like obs, discount float32 [capacity]: what the value of next_obs counts in the target, 0 after a terminal.
    """

    def __init__(
        self,
        capacity: int,
        obs: int,
        actions: int,
        *,
        rewards: int = 0,
        device: str = "cpu",
        extra: Mapping[str, tuple[tuple[int, ...], torch.dtype]] | None = None,
    ) -> None:
        """rewards: rewards, and discounts, of a row that has more than one, of several agents side by side
        extra:   further columns, the shape and dtype of a row by name
        """
        several = (rewards,) if rewards else ()
        self.capacity = capacity
        self.rows_written = 0
        shapes: dict[str, tuple[int, ...]] = {
            "obs": (capacity, obs),
            "action": (capacity, actions),
            "reward": (capacity, *several),
            "discount": (capacity, *several),
            "next_obs": (capacity, obs),
        }
        try:
            self._columns = {name: torch.zeros(shape, device=device) for name, shape in shapes.items()}
            for name, (shape, dtype) in (extra or {}).items():
                self._columns[name] = torch.zeros((capacity, *shape), dtype=dtype, device=device)
        except RuntimeError:  # torch's out of memory, on a CPU
            size = 4 * capacity * (2 * obs + actions + 2) / 1e9
            raise SparringError(
                f"replay: {capacity:,} rows need {size:,.1f} GB, more than there is: lower the buffer"
            ) from None

    def __len__(self) -> int:
        """Rows that can be sampled now."""
        return min(self.rows_written, self.capacity)

    def columns(self) -> dict[str, Tensor]:
        """The stored tensors themselves, not copies."""
        return self._columns

    def add(self, **columns: Tensor) -> None:
        """Append n rows, n <= capacity, overwriting the oldest."""
        self._write(self.rows_written, columns)
        self.rows_written += columns["reward"].shape[0]

    def sample(self, n: int, *, seed: int, stream: int, counter: int) -> dict[str, Tensor]:
        """n rows drawn with replacement; the draw depends on (seed, stream, counter) and the fill alone."""
        index = torch.from_numpy(_core.integers(seed, stream, counter, n, len(self)))
        return {name: column[index] for name, column in self._columns.items()}

    def rows(self, start: int, stop: int) -> dict[str, Tensor]:
        """Copies of rows number start to stop - 1, which must still be held."""
        if not self.rows_written - len(self) <= start <= stop <= self.rows_written:
            held = f"{self.rows_written - len(self)} to {self.rows_written}"
            raise SparringError(f"replay: rows {start} to {stop} are not held; held are {held}")
        index = torch.arange(start, stop) % self.capacity
        return {name: column[index].cpu() for name, column in self._columns.items()}

    def restore(self, start: int, rows: dict[str, Tensor]) -> None:
        """Put back what `rows` gave: afterwards `rows_written` is `start` plus the number of rows."""
        self._write(start, rows)
        self.rows_written = start + rows["reward"].shape[0]

    def _write(self, start: int, rows: dict[str, Tensor]) -> None:
        n = rows["reward"].shape[0]
        if n > self.capacity:
            raise SparringError(f"replay: {n} rows at once do not fit its capacity of {self.capacity}")
        at = start % self.capacity
        first = min(n, self.capacity - at)
        for name, column in self._columns.items():
            column[at : at + first] = rows[name][:first]
            column[: n - first] = rows[name][first:]
