"""Files that take their place whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparring.errors import SparringError


def refuse_place(path: Path) -> None:
    """Raise SparringError where a file at `path` would take the place of a folder or a device, or has no name."""
    try:
        what = "it is a folder" if path.is_dir() else "it is no file" if path.exists() and not path.is_file() else ""
    except OSError as error:
        what = error.strerror or str(error)
    if what:
        raise SparringError(f"cannot write {path}: {what}; choose another place")


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path beside `path` (its folder is made if missing) to write to; it takes `path`'s place once whole and synced.

    Raises SparringError, naming `path` and the cause, where the file cannot be written; `path` is then as it was.
    """
    refuse_place(path)
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
