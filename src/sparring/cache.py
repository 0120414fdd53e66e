"""The folder of compiled things: kernels for a GPU, the organisers' engine as machine code, bots."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def cache_folder() -> Path:
    """Where they are kept: `sparring` in XDG_CACHE_HOME, else in the user's cache folder. It may not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".cache") / "sparring"


def keep(path: Path, content: bytes) -> None:
    """Write a file of the cache whole or not at all. One that cannot be written costs seconds, not the run."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Hold the lock of this name on the cache folder, which no other process or thread holds then.

    Where the folder cannot be written, there is nothing to share and nothing to wait for.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            cache_folder().mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((cache_folder() / f"{what}.lock").open("wb")), fcntl.LOCK_EX)
        yield
