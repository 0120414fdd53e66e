"""What a person sees while a run trains: a bar on a terminal, plain lines anywhere else, and those lines in log.txt."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

BAR_SECONDS = 0.25
LINE_SECONDS = 10.0
_RATE_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a run stands."""

    decisions: int
    updates: int
    parts: list[str]
    """What the run says of its matches (`Measure.parts`)."""
    seconds: float
    """Seconds trained since the command began."""


class Progress:
    """Shows a run's standing: a few times a second on a terminal, every 10 s as a line elsewhere and in log.txt."""

    def __init__(
        self,
        console: Console,
        note: Callable[[str], None],
        *,
        decisions: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """decisions: where the run ends, if it does
        seconds: after how long the command ends, if it does
        """
        self.console = console
        self.note = note
        self.decisions = decisions
        self.seconds = seconds
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._samples: deque[tuple[float, int, int]] = deque()
        self._next_bar = 0.0
        self._next_line = time.monotonic() + LINE_SECONDS

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def update(self, standing: Standing) -> None:
        """Call as often as you like."""
        now = time.monotonic()
        if now < self._next_bar:
            return
        self._next_bar = now + BAR_SECONDS
        self._samples.append((now, standing.decisions, standing.updates))
        while len(self._samples) > 2 and self._samples[0][0] < now - _RATE_SECONDS:
            self._samples.popleft()
        line = self.line(standing)
        if self._live:
            rows = Table.grid()
            total, completed = self.decisions, float(standing.decisions)
            if total is None and self.seconds is not None:
                total, completed = round(self.seconds), standing.seconds
            rows.add_row(ProgressBar(total=total, completed=completed, width=60))
            rows.add_row(Text(line))
            self._live.update(rows, refresh=True)
        if now >= self._next_line:
            self._next_line = now + LINE_SECONDS
            self.note(line)
            if not self._live:
                self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def line(self, standing: Standing) -> str:
        """The standing as one line."""
        (then, decisions, updates), (now, *_) = self._samples[0], self._samples[-1]
        passed = max(now - then, 1e-9)
        rate = (standing.decisions - decisions) / passed
        updates_rate = (standing.updates - updates) / passed
        parts = [
            f"decision {standing.decisions:,}" + (f" of {self.decisions:,}" if self.decisions else ""),
            f"{rate:,.0f} decisions/s",
            f"{updates_rate:,.0f} updates/s" if updates_rate >= 1 else f"update {standing.updates:,}",
            *standing.parts,
        ]
        left = (self.decisions - standing.decisions) / rate if self.decisions and rate > 0 else None
        if self.seconds is not None:
            allowed = max(0.0, self.seconds - standing.seconds)
            left = allowed if left is None else min(left, allowed)
        if left is not None:
            parts.append(f"{clock(left)} left")
        return " | ".join(parts)


def clock(seconds: float) -> str:
    """Seconds as a person says them: 0:42, 3:05, 2:10:00."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, last = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{last:02d}" if hours else f"{minutes}:{last:02d}"
