"""Files that take their place whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparring.errors import SparringError


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path beside `path` (its folder is made if missing) to write to; it takes `path`'s place once whole and synced.

    Raises SparringError, naming `path` and the cause, where the file cannot be written; `path` is then as it was.
    """
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SparringError(
            f"cannot write {path}: {error.strerror or error}; choose another place or make room there"
        ) from error
