"""Trains the tiny run, or a recipe, until it kills itself: python killed_run.py FOLDER CALL COUNT [RECIPE].

It dies by SIGKILL in the middle of the COUNT-th disk call whose name starts with CALL, with half of it done where a
call has halves. The tiny run saves after every step.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tiny_runs import TINY, CrashingDisk

from sparring.runs.folder import RunFolder
from sparring.runs.train import train


class KillingDisk(CrashingDisk):
    def __init__(self, call: str, count: int) -> None:
        super().__init__()
        self.call, self.left = call, count

    def _call(self, name: str, path: Path, act: Callable[[], None], part: Callable[[], None] | None = None) -> None:
        if f"{name} {path.name}".startswith(self.call):
            self.left -= 1
            if self.left == 0:
                (part or act)()
                os.kill(os.getpid(), signal.SIGKILL)
        act()


if __name__ == "__main__":
    folder, call, count, *recipe = sys.argv[1:]
    run = RunFolder(Path(folder), disk=KillingDisk(call, int(count)))
    train(recipe[0] if recipe else replace(TINY, save_seconds=0.0), run=run, console=Console(quiet=True))
