"""Matches that were played, one line of JSON each, in a file that only grows and survives a kill at any moment."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparring.errors import SparringError
from sparring.judge.match import PlayedMatch
from sparring.judge.official import installed_engine_hash
from sparring.judge.schedule import Job, Key

RECORDS = "matches.jsonl"
"""Name of the file in a folder of matches."""


@dataclass(frozen=True)
class FailedTeam:
    """Who should have played."""

    name: str
    kind: str
    hash: str


@dataclass(frozen=True)
class FailedMatch:
    """A match without a result, by no fault of its players: its process died twice, say. It says nothing about them."""

    map_name: str
    map_hash: str
    engine_hash: str
    seed: int
    a: FailedTeam
    b: FailedTeam
    error: str

    @classmethod
    def of(cls, job: Job, error: str) -> FailedMatch:
        a, b = (FailedTeam(entrant.name, entrant.kind, entrant.hash) for entrant in (job.a, job.b))
        return cls(job.map_name, job.map_hash, installed_engine_hash(), job.seed, a, b, error)

    def json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FailedMatch:
        return cls(**{**value, "a": FailedTeam(**value["a"]), "b": FailedTeam(**value["b"])})


Record = PlayedMatch | FailedMatch


def load_records(path: Path) -> list[Record]:
    """All matches of a file in the order in which they ended; none where there is no file.

    A last line without its end, as a kill leaves it, is left out. Raises SparringError for another line that is no
    match, or a file that cannot be read.
    """
    try:
        return _read(path.read_bytes(), path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SparringError(f"cannot read {path}: {error.strerror or error}") from error


class Records:
    """The matches of a file, by what makes them the same match, and a place for more. Use it as a context.

    Only matches of the engine whose rules we follow are seen. As entrants count by their hashes, a bot that was built
    anew is another player.
    """

    def __init__(self, folder: Path) -> None:
        """Open `folder`/matches.jsonl, made if missing, for this process alone.

        Raises SparringError where that cannot be done, where another process has it, and for a damaged line.
        """
        self.path = folder / RECORDS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise SparringError(f"cannot write {self.path}: {error.strerror or error}; choose another --out") from error
        try:
            self._lock()
            content = self.path.read_bytes()
            self._by_key: dict[Key, Record] = {}
            for record in _read(content, self.path):
                self._see(record)
            os.ftruncate(self._descriptor, content.rfind(b"\n") + 1)
        except BaseException:
            self.close()
            raise

    def get(self, job: Job) -> Record | None:
        """What came of a job, if it was played. A failed match gives way to one that was played later."""
        return self._by_key.get(job.key)

    def forget_failures(self) -> None:
        """Do as if failed matches were not on record, so that they are played again. The file keeps them."""
        self._by_key = {key: record for key, record in self._by_key.items() if isinstance(record, PlayedMatch)}

    def append(self, record: Record) -> None:
        """Add a match; it is on the disk when this returns. Raises SparringError where it cannot be written."""
        line = json.dumps(record.json(), separators=(",", ":")).encode() + b"\n"
        length = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, line) < len(line):
                raise OSError(0, "no room for a whole line")
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, length)
            raise SparringError(
                f"cannot write {self.path}: {error.strerror or error}; make room, then the same command goes on"
            ) from error
        self._see(record)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SparringError(
                f"another process plays matches for {self.path}: wait for it, or choose another --out"
            ) from None

    def _see(self, record: Record) -> None:
        if record.engine_hash != installed_engine_hash():
            return
        key = record.a.hash, record.b.hash, record.map_hash, record.seed
        if not isinstance(self._by_key.get(key), PlayedMatch):
            self._by_key[key] = record


def _read(content: bytes, path: Path) -> list[Record]:
    records: list[Record] = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            value = json.loads(line)
            kind = FailedMatch if "error" in value else PlayedMatch
            record = kind.from_json(value)
            if getattr(record, "winner", None) not in ("A", "B", None) or type(record.seed) is not int:
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise SparringError(
                f"{path}: line {number} is damaged, or of another Sparring: delete it, and its match is played again"
            ) from None
        records.append(record)
    return records
