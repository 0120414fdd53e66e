"""The folder of things that can be made again: kernels for a GPU, the organisers' engine, bots, copies of teachers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sparring.errors import SparringError

MOST_KEPT_BYTES = 2 << 30
"""Of a folder that `share` puts files into; those that were not used for longest go first."""
_DAY = 24 * 60 * 60


def cache_folder() -> Path:
    """Where they are kept: `sparring` in XDG_CACHE_HOME, else in the user's cache folder. It may not exist yet.

    Raises SparringError where the user has no home.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "sparring"
    except RuntimeError as error:
        raise SparringError("this user has no home folder to keep things in: name a place in XDG_CACHE_HOME") from error


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


def share(path: Path, content: bytes | Callable[[], bytes], what: str) -> Path:
    """Put a file that all processes read into the cache, if it is not there yet, and prune its folder.

    content: or what makes it; what: such files are called

    Raises SparringError where it cannot be written.
    """
    used(path)  # before looking for it, lest another process prunes it in between
    if not path.is_file():
        keep(path, content() if callable(content) else content)
        if not path.is_file():
            raise cannot_keep(what, path.parent)
        prune(path.parent, MOST_KEPT_BYTES)
    return path


def cannot_keep(what: str, folder: Path) -> SparringError:
    return SparringError(f"cannot keep {what} in {folder}: free the disk, or name a place in XDG_CACHE_HOME")


def used(path: Path) -> None:
    """Note that a file of the cache is in use, for `prune`."""
    with contextlib.suppress(OSError):
        os.utime(path)


def prune(folder: Path, most_bytes: int) -> None:
    """Delete the files of a folder of the cache that were not used for longest, until the others fit.

    None that was used in the last day goes: whoever uses it may need it again.
    """
    with contextlib.suppress(OSError):
        files = sorted(((file.stat(), file) for file in folder.iterdir()), key=lambda each: -each[0].st_mtime)
        size = 0
        for stat, file in files:
            size += stat.st_size
            if size > most_bytes and file.stat().st_mtime < time.time() - _DAY:  # asked again: it may just be used
                file.unlink()


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
