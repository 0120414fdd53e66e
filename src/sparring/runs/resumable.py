"""What goes on where it stopped, a run and the distillation of its student: their time, their disk, their rounding."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from sparring import _core
from sparring.errors import SparringError


class Resumable(ABC):
    """Work that is saved in a folder, in `latest.pt` and files that grow."""

    def __init__(self, path: Path) -> None:
        """path: of the folder."""
        self.path = path
        self.seconds = 0.0
        """Time that its steps and saves took, over all calls."""

    @property
    @abstractmethod
    def decisions(self) -> int:
        """How far it came."""

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds += time.monotonic() - began

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Turns a failing disk into a line for the person."""
        try:
            yield
        except OSError as error:
            kept = "the last checkpoint is whole" if (self.path / "latest.pt").is_file() else "nothing is lost"
            raise SparringError(
                f"{self.path}: {error.strerror or error}: stopped at decision {self.decisions:,}; {kept}: "
                "make room, then give the same command again"
            ) from error


def made_with(*, threads: int, **more: str) -> dict[str, Any]:
    """What decides the rounding of numbers, `more` too, and so whether a resume is bit for bit."""
    return {
        "torch": torch.__version__.split("+")[0],
        "threads": threads,
        **more,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "core": _core.source_hash,
    }


def not_bitwise(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A line where a checkpoint was made with something else; both are of `made_with`."""
    changed = [f"{key} was {then.get(key)}, is now {now[key]}" for key in now if then.get(key) != now[key]]
    if changed:
        yield f"not bitwise: {'; '.join(changed)}; it goes on, but rounds differently than it would have"
