"""The replay buffer on disk: append-only segment files of raw rows, whose lengths and hashes a checkpoint records.

A segment is a header (magic, length of its description, the description as JSON: columns and first row) and then rows,
each the raw little-endian bytes of its columns in order. Nothing written is ever changed, so a save costs only the rows
that are new, and a checkpoint needs only to remember how far it had got.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.runs.folder import AppendOnly, Disk

SEGMENT_BYTES = 64 * 2**20
"""A segment that has reached this size is closed and the next one begun."""
_CHUNK_BYTES = 8 * 2**20
_MAGIC = b"SPARRING-ROWS-1\n"


class Replay(Protocol):
    """What the store needs of a learner's replay buffer. Row i of all ever written lies at i modulo `capacity`."""

    capacity: int
    rows_written: int

    def columns(self) -> Mapping[str, Tensor]: ...

    def rows(self, start: int, stop: int) -> Mapping[str, Tensor]: ...

    def restore(self, start: int, rows: dict[str, Tensor]) -> None: ...


class ReplayStore:
    """A replay buffer's rows in a run's `replay/` folder."""

    def __init__(self, folder: Path, replay: Replay, disk: Disk, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self.replay = replay
        self.disk = disk
        self.segment_bytes = segment_bytes
        columns = [(name, _little(column), tuple(column.shape[1:])) for name, column in replay.columns().items()]
        self.row = np.dtype(columns)
        self.names = [name for name, _, _ in columns]
        self.description = [f"{name} {kind.str} {list(shape)}" for name, kind, shape in columns]
        self.written = 0
        """Rows ever written by the learner that the disk knows of; the next one to store."""
        self._records: list[dict[str, Any]] = []
        self._open: AppendOnly | None = None
        self._last_digest: hashlib._Hash | None = None

    def append(self) -> None:
        """Store and sync the rows written since the last time, of those only what the buffer still holds."""
        stop = self.replay.rows_written
        start = max(self.written, stop - self.replay.capacity)
        chunk = max(1, _CHUNK_BYTES // self.row.itemsize)
        while start < stop:
            if self._open is None or self._open.length >= self.segment_bytes or start != self.written:
                self._begin(start)
            assert self._open is not None
            room = max(1, -(-(self.segment_bytes - self._open.length) // self.row.itemsize))
            until = min(stop, start + chunk, start + room)
            self._open.append(self._pack(self.replay.rows(start, until)))
            self._records[-1]["rows"] += until - start
            start = self.written = until
        if self._open is not None:
            self._open.sync()
            self._records[-1]["sha256"] = self._open.digest.hexdigest()

    def record(self) -> list[dict[str, Any]]:
        """What the checkpoint must hold: of every segment its file, first row, number of rows and SHA-256."""
        oldest = self.replay.rows_written - self.replay.capacity
        return [dict(record) for record in self._records if record["start"] + record["rows"] > oldest]

    def drop(self) -> None:
        """Remove the segments that hold no row of the buffer any more, once a checkpoint without them is in place."""
        kept = self.record()
        names = {record["file"] for record in kept}
        for record in self._records:
            if record["file"] not in names:
                self.disk.remove(self.folder / record["file"])
        if self._open is not None and self._open.path.name not in names:
            self._open.close()
            self._open = None
        self._records = kept

    def load(self, records: list[dict[str, Any]]) -> None:
        """Fill the buffer from the recorded segments. Changes nothing on the disk.

        Raises SparringError when a segment is missing, short or damaged, or holds other columns than the buffer.
        """
        for record in records:
            if record["file"] != self._file(record["start"]):  # a path of somebody's own would be cut or removed later
                raise SparringError(
                    f"{self.folder}: the checkpoint names a segment {record['file']!r}, which is none: "
                    "it was tampered with; choose another --run"
                )
        self.written = records[-1]["start"] + records[-1]["rows"] if records else 0
        oldest = max(0, self.written - self.replay.capacity)
        if records and records[0]["start"] > oldest:
            raise SparringError(
                f"{self.folder} holds only rows from {records[0]['start']:,} on: "
                f"a replay that has been full cannot grow to {self.replay.capacity:,} rows"
            )
        for record in records:
            self._last_digest = self._load_segment(record, oldest)
        self._records = [dict(record) for record in records]

    def cut(self) -> None:
        """Cut off what was stored after the loaded checkpoint, and go on appending from there."""
        names = {record["file"] for record in self._records}
        for path in sorted(self.folder.glob("*.rows")):
            if path.name not in names:
                self.disk.remove(path)
        if self._records:
            path = self.folder / self._records[-1]["file"]
            self.disk.truncate(path, self._length(self._records[-1]))
            self._open = AppendOnly(path, self.disk, digest=self._last_digest)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _begin(self, start: int) -> None:
        if self._open is not None:
            self._open.sync()
            self._records[-1]["sha256"] = self._open.digest.hexdigest()
            self._open.close()
        path = self.folder / self._file(start)
        self._open = AppendOnly(path, self.disk)
        self._open.append(self._header(start))
        self.disk.sync_folder(self.folder)
        self._records.append({"file": path.name, "start": start, "rows": 0, "sha256": ""})

    @staticmethod
    def _file(start: int) -> str:
        return f"{int(start):012d}.rows"

    def _header(self, start: int) -> bytes:
        text = json.dumps({"start": start, "columns": self.description}).encode()
        return _MAGIC + len(text).to_bytes(4, "little") + text

    def _length(self, record: Mapping[str, Any]) -> int:
        return len(self._header(record["start"])) + int(record["rows"]) * self.row.itemsize

    def _pack(self, rows: Mapping[str, Tensor]) -> bytes:
        packed = np.empty(len(rows[self.names[0]]), dtype=self.row)
        for name in self.names:
            packed[name] = rows[name].detach().cpu().numpy()
        return packed.tobytes()

    def _load_segment(self, record: Mapping[str, Any], oldest: int) -> hashlib._Hash:
        path = self.folder / record["file"]
        header = self._header(record["start"])
        try:
            with path.open("rb") as file:
                found = file.read(len(header))
                if found[: len(_MAGIC)] != _MAGIC or len(found) < len(header):
                    raise self._damaged(path, "is not a whole replay segment")
                if found != header:
                    raise SparringError(
                        f"{path} holds rows of other columns than this game and recipe write "
                        f"({', '.join(self.description)}): choose another --run"
                    )
                digest = hashlib.sha256(found)
                start, stop = int(record["start"]), int(record["start"]) + int(record["rows"])
                chunk = max(1, _CHUNK_BYTES // self.row.itemsize)
                for first in range(start, stop, chunk):
                    rows = min(chunk, stop - first)
                    data = file.read(rows * self.row.itemsize)
                    if len(data) < rows * self.row.itemsize:
                        raise self._damaged(path, "is shorter than the checkpoint says")
                    digest.update(data)
                    self._restore(first, np.frombuffer(data, dtype=self.row), oldest)
        except OSError as error:
            raise self._damaged(path, f"cannot be read ({error.strerror or error})") from None
        if digest.hexdigest() != record["sha256"]:
            raise self._damaged(path, "has another content than the checkpoint recorded (SHA-256 differs)")
        return digest

    def _restore(self, first: int, rows: np.ndarray[Any, Any], oldest: int) -> None:
        skip = max(0, oldest - first)
        rows = rows[skip:]
        if len(rows):
            native = {name: np.array(rows[name], dtype=rows[name].dtype.newbyteorder("=")) for name in self.names}
            self.replay.restore(first + skip, {name: torch.from_numpy(column) for name, column in native.items()})

    def _damaged(self, path: Path, what: str) -> SparringError:
        return SparringError(
            f"{path} {what}: the replay buffer cannot be restored, nothing was changed; "
            "bring the file back from a copy, or choose another --run"
        )


def _little(column: Tensor) -> np.dtype[Any]:
    kind: np.dtype[Any] = torch.empty(0, dtype=column.dtype).numpy().dtype
    return kind.newbyteorder("<")
