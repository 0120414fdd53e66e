"""Random choices that are a pure function of (seed, stream), alike on every machine and with every NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sparring import _core

T = TypeVar("T")

_FINE = 1 << 62


class Draws:
    """A stream of choices; two streams of one seed have nothing in common."""

    def __init__(self, seed: int, stream: int) -> None:
        self._seed, self._stream, self._counter = seed, stream, 0

    def integers(self, count: int, high: int) -> NDArray[np.int64]:
        """int64 [count], each uniform in [0, high)."""
        self._counter += 1
        return _core.integers(self._seed, self._stream, self._counter, count, high)

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self.integers(1, high - low + 1)[0])

    def chance(self, percent: int) -> bool:
        return int(self.integers(1, 100)[0]) < percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.between(0, len(options) - 1)]

    def weighted(self, weights: Mapping[T, int]) -> T:
        """One of the keys, each as often as its weight says."""
        left = self.between(0, sum(weights.values()) - 1)
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        raise AssertionError("weights add up")

    def order(self, count: int) -> NDArray[np.int64]:
        """int64 [count], the numbers 0 to count - 1 in random order."""
        return np.argsort(self.integers(count, _FINE), kind="stable")
