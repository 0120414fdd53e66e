"""Runs small enough for tests, a disk that fails on purpose, and a fingerprint of everything that training decides."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from sparring.games.api import Game
from sparring.learn.ddpg import DDPGConfig
from sparring.runs.folder import Disk, RunFolder
from sparring.runs.metrics import read_json_lines
from sparring.runs.recipe import Recipe
from sparring.runs.training import Training

ROW_BYTES = 4 * (24 + 2 + 1 + 1 + 24)
SEGMENT_BYTES = 12 * ROW_BYTES
"""So small that saves begin and drop segments."""

TINY = Recipe(
    lanes=2,
    threads=1,
    seed=5,
    decisions=72,
    metrics_every=20,
    save_seconds=3600,
    ddpg=DDPGConfig(
        actor_hidden=(8, 8),
        actor_normalised=1,
        critic_hidden=(8,),
        critic_normalised=1,
        buffer=32,
        batch=4,
        learn_from=8,
        update_every=4,
        burst=1,
        actor_lr=1e-2,
        critic_lr=1e-2,
        n_step=3,
        warmup=8,
        noise_sigma_low=0.01,
        episode_matches=2,
    ),
)
"""36 steps of two courts: the replay overflows twice, some rallies end, a few updates are made."""


def training(
    path: Path, disk: Disk | None = None, recipe: Recipe = TINY, game: Callable[..., Game] | None = None
) -> Training:
    """A training in that folder, started or resumed."""
    folder = RunFolder(path, disk=disk)
    run = Training(recipe, folder, game=game, segment_bytes=SEGMENT_BYTES)
    if folder.exists:
        run.resume()
    else:
        folder.create()
        run.start()
    return run


def advance(run: Training, decisions: int) -> None:
    while run.decisions < decisions:
        run.step()


def fingerprint(run: Training) -> dict[str, str]:
    """A hash of each thing that must be bit for bit the same: the learner, its replay, matches and metrics."""
    digests = {name: hashlib.sha256(_bytes(part)).hexdigest() for name, part in run.learner.state().items()}
    if run.store:
        digests["replay"] = hashlib.sha256(_bytes(run.learner.replay.columns())).hexdigest()
        digests["rows_written"] = str(run.learner.replay.rows_written)
    digests["measure"] = json.dumps({**run.measure.state(), "solved": None})
    for log in (run.folder.matches, run.folder.episodes):
        if not log.exists():
            continue
        digests[log.name] = hashlib.sha256(log.read_bytes()).hexdigest()
    digests["metrics.jsonl"] = json.dumps(
        [{key: value for key, value in row.items() if key != "seconds"} for row in read_json_lines(run.folder.metrics)]
    )
    return digests


def _bytes(tree: Any) -> bytes:
    if isinstance(tree, torch.Tensor):
        return repr((tree.shape, tree.dtype)).encode() + tree.contiguous().numpy().tobytes()
    if isinstance(tree, Mapping):
        return b"".join(repr(key).encode() + _bytes(tree[key]) for key in tree)
    if isinstance(tree, list | tuple):
        return b"".join(map(_bytes, tree))
    return repr(tree).encode()


class Crash(BaseException):
    """The process is gone."""


class CrashingDisk(Disk):
    """Counts its calls and crashes `during` or `after` the one numbered `at`.

    With `power_loss` everything that was not yet synced is gone too: bytes beyond the last sync of their file, and new
    names, renames and removals in folders that were not synced since.
    """

    def __init__(self, at: int = -1, when: str = "after", *, power_loss: bool = False) -> None:
        self.at, self.when, self.power_loss = at, when, power_loss
        self.calls: list[str] = []
        self.undo: list[tuple[str, Path, Callable[[], None]]] = []
        """(kind of sync that makes it last, path, how to take it back)"""

    def _call(self, name: str, path: Path, act: Callable[[], None], part: Callable[[], None] | None = None) -> None:
        number = len(self.calls)
        self.calls.append(f"{name} {path.name}")
        if number != self.at:
            act()
            return
        if self.when == "during" and part:
            part()
        elif self.when == "after":
            act()
        if self.power_loss:
            for _, _, back in reversed(self.undo):
                back()
        raise Crash

    def write(self, descriptor: int, data: bytes | memoryview, path: Path) -> None:
        length = os.fstat(descriptor).st_size
        if length == 0:
            self.undo.append(("folder", path, lambda: path.unlink(missing_ok=True)))
        self.undo.append(("file", path, lambda: os.truncate(path, length) if path.exists() else None))
        half = memoryview(data)[: len(data) // 2]
        self._call(
            "write",
            path,
            lambda: super(CrashingDisk, self).write(descriptor, data, path),
            lambda: super(CrashingDisk, self).write(descriptor, half, path),
        )

    def sync(self, descriptor: int, path: Path) -> None:
        def act() -> None:  # the real call would only cost time: no test here outlives the kernel
            self.undo = [entry for entry in self.undo if entry[:2] != ("file", path)]

        self._call("sync", path, act)

    def rename(self, old: Path, new: Path) -> None:
        before = new.read_bytes() if new.exists() else None

        def back() -> None:
            if before is None:
                new.unlink(missing_ok=True)
            else:
                new.write_bytes(before)

        def act() -> None:
            super(CrashingDisk, self).rename(old, new)
            # Bytes that were never synced are lost under the new name.
            unsynced = any(kind == "file" and path == old for kind, path, _ in self.undo)
            self.undo = [entry for entry in self.undo if entry[1] != old]
            if unsynced:
                self.undo.append(("file", new, lambda: new.write_bytes(b"") and None))
            self.undo.append(("folder", new, back))

        self._call("rename", new, act)

    def sync_folder(self, folder: Path) -> None:
        def act() -> None:
            self.undo = [entry for entry in self.undo if entry[0] != "folder" or entry[1].parent != folder]

        self._call("sync folder", folder, act)

    def truncate(self, path: Path, length: int) -> None:
        before = path.read_bytes()

        def act() -> None:
            super(CrashingDisk, self).truncate(path, length)
            self.undo.append(("file", path, lambda: path.write_bytes(before) and None))

        self._call("truncate", path, act)

    def remove(self, path: Path) -> None:
        before = path.read_bytes() if path.exists() else None

        def act() -> None:
            super(CrashingDisk, self).remove(path)
            if before is not None:
                self.undo.append(("folder", path, lambda: path.write_bytes(before) and None))

        self._call("remove", path, act)


class FullDisk(Disk):
    """Has room for `room` more bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, descriptor: int, data: bytes | memoryview, path: Path) -> None:
        fits = min(self.room, len(data))
        super().write(descriptor, memoryview(data)[:fits], path)
        self.room -= fits
        if fits < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
