"""`latest.pt`: everything a run needs to continue, in one file that is replaced whole or not at all.

It is a `torch.save` of plain containers and tensors, loaded with `weights_only=True`: nothing in it is ever executed.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.runs.folder import Disk

FORMAT = "sparring checkpoint"
VERSION = 1
_PARTS: dict[str, type] = {
    "game": str,
    "recipe": dict,
    "made_with": dict,
    "observation": int,
    "action": int,
    "learner": dict,
    "measure": dict,
    "seconds": float,
    "replay": list,
    "logs": dict,
}
"""What every checkpoint holds, whoever reads it."""


def write(path: Path, content: Mapping[str, Any], disk: Disk, *, format: str = FORMAT, version: int = VERSION) -> None:
    """Replace the checkpoint at `path`. Raises OSError; the old one is then intact."""
    data = io.BytesIO()
    torch.save({"format": format, "version": version, **content}, data)
    disk.replace(path, data.getbuffer())


def read(path: Path, *, other: str = "choose another --run") -> dict[str, Any]:
    """A run's checkpoint. Raises SparringError as `read_file` does, and where a part of it is missing."""
    content = read_file(path, format=FORMAT, version=VERSION, other=other)
    for part, kind in _PARTS.items():
        if not isinstance(content.get(part), kind):
            raise SparringError(f"{path} does not fit this version of Sparring (no {part}): {other}")
    return content


def read_file(path: Path, *, format: str, version: int, other: str) -> dict[str, Any]:
    """The content of a file that `write` wrote, tensors on the CPU.

    other: what to do without the file, for the lines of errors

    Raises SparringError, each with its own line, when the file is missing, truncated, damaged, foreign, or written by a
    newer Sparring.
    """
    name = format.removeprefix("sparring ")
    mend = f"nothing was changed; bring the file back from a copy, or {other}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SparringError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not data.startswith(b"PK"):
        what = "is empty" if not data else f"is not a Sparring {name}"
        raise SparringError(f"{path} {what}: {mend}")
    try:
        if not zipfile.is_zipfile(io.BytesIO(data)):
            raise SparringError(f"{path} is truncated (it has no end; {len(data)} bytes are there): {mend}")
        damaged = zipfile.ZipFile(io.BytesIO(data)).testzip()
    except (zipfile.BadZipFile, RuntimeError, ValueError, OSError, EOFError, struct.error, zlib.error):
        damaged = "its list of contents"
    content = None
    with suppress(pickle.UnpicklingError, RuntimeError, ValueError, KeyError, EOFError, AttributeError):
        content = None if damaged else torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    if damaged:
        raise SparringError(f"{path} is damaged (checksum of {damaged} is wrong): {mend}")
    if not isinstance(content, dict) or content.get("format") != format:
        raise SparringError(f"{path} is not a Sparring {name}: {mend}")
    there = content.get("version")
    if there != version:
        raise SparringError(
            f"{path} has {name} version {there}, this Sparring reads version {version}: "
            f"update with pip install -U sparring, or {other}"
        )
    return content


def misfit(saved: Any, current: Any) -> str | None:
    """The first tensor that `saved` and the learner do not share, in words, or None when all fit."""
    shapes, there = dict(_shapes(current)), dict(_shapes(saved))
    for name, shape in there.items():
        if name in shapes and shapes[name] != shape:
            return f"{name} is {list(shape)} in the checkpoint and {list(shapes[name])} by this recipe"
    for name in sorted(there.keys() ^ shapes.keys()):
        if name.startswith(
            ("actor.", "actors.", "critic.", "critics.", "guesses.", "members.", "q.", "trunk.", "head.")
        ):
            other = ("the checkpoint", "this recipe") if name in there else ("this recipe", "the checkpoint")
            return f"the networks of {other[0]} have {name}, those of {other[1]} do not"
    return None


def _shapes(tree: Any, name: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    if isinstance(tree, Tensor):
        yield name, tuple(tree.shape)
    elif isinstance(tree, Mapping):
        for key, branch in tree.items():
            yield from _shapes(branch, f"{name}.{key}" if name else str(key))
    elif isinstance(tree, list | tuple):
        for place, branch in enumerate(tree):
            yield from _shapes(branch, f"{name}[{place}]")
