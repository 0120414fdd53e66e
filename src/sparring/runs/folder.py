"""The run folder: where a run lives, who may write in it, and files that survive a kill at any moment."""

from __future__ import annotations

import difflib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparring.errors import SparringError

_BESIDE = ".new"
"""Ending of a file that is being written beside its place."""


_NAME_BYTES = 200
"""Longest name of a run; file systems allow 255, and files beside it need some."""


class Disk:
    """Every change a run makes to the disk, one method per system call, so that a test can fail or stop at each."""

    def write(self, descriptor: int, data: bytes | memoryview, path: Path) -> None:
        """Append all of `data`. Raises OSError, then an unknown part of it is written."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def sync(self, descriptor: int, path: Path) -> None:
        os.fsync(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def truncate(self, path: Path, length: int) -> None:
        os.truncate(path, length)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def replace(self, path: Path, data: bytes | memoryview) -> None:
        """Put `data` at `path`, whole or not at all: written beside, synced, renamed, folder synced."""
        beside = path.with_name(path.name + _BESIDE)
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                self.write(descriptor, data, beside)
                self.sync(descriptor, beside)
            finally:
                os.close(descriptor)
        except OSError:
            beside.unlink(missing_ok=True)  # a full disk needs the room
            raise
        self.rename(beside, path)
        self.sync_folder(path.parent)


class AppendOnly:
    """A file that only grows, and knows its length and the SHA-256 of everything in it without reading it again."""

    def __init__(self, path: Path, disk: Disk, *, digest: hashlib._Hash | None = None) -> None:
        """Open `path` at its end, creating it. `digest` is the hash of what is already there."""
        self.path = path
        self.disk = disk
        self.digest = digest or hashlib.sha256()
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.length = os.fstat(self.descriptor).st_size
        self._synced = -1

    def append(self, data: bytes | memoryview) -> None:
        self.disk.write(self.descriptor, data, self.path)
        self.digest.update(data)
        self.length += len(data)

    def sync(self) -> None:
        if self._synced != self.length:
            self.disk.sync(self.descriptor, self.path)
            self._synced = self.length

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def runs_folder() -> Path:
    """Where runs live: `$SPARRING_RUNS`, or `runs` in the current folder."""
    return Path(os.environ.get("SPARRING_RUNS") or "runs")


class RunFolder:
    """One run on disk. Making this object touches nothing."""

    def __init__(self, run: str | Path, *, disk: Disk | None = None) -> None:
        """`run` is a name below `runs_folder()`, or a path (anything with a separator in it)."""
        named = str(run)
        if named in ("", ".", "..") or named.startswith("-"):
            raise SparringError(f'run name "{named}" cannot be used: give a name such as tennis-1, or a path')
        is_path = isinstance(run, Path) or os.sep in named
        self.path = Path(run) if is_path else runs_folder() / named
        if len(os.fsencode(self.path.name)) > _NAME_BYTES or "\0" in named:
            raise SparringError(f'run name "{self.path.name[:20]}..." cannot be used: at most 200 letters')
        self.disk = disk or Disk()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def word(self) -> str:
        """What finds this run again: its name below `runs_folder()`, elsewhere its path."""
        if self.path.parent == runs_folder():
            return self.name
        return str(self.path) if os.sep in str(self.path) else os.path.join(".", self.path)

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.toml"

    @property
    def checkpoint(self) -> Path:
        return self.path / "latest.pt"

    @property
    def replay(self) -> Path:
        return self.path / "replay"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def matches(self) -> Path:
        return self.path / "matches.jsonl"

    @property
    def episodes(self) -> Path:
        """Of several matches each, where the recipe asks for them."""
        return self.path / "episodes.jsonl"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def curve(self) -> Path:
        return self.path / "curve.png"

    @property
    def exists(self) -> bool:
        """A run lives here: it has a checkpoint."""
        return self.checkpoint.is_file()

    def create(self) -> None:
        """Make the folder for a new run. Raises SparringError where something else, or part of a run, lies already."""
        try:
            str(self.path).encode()
        except UnicodeEncodeError:
            raise SparringError(f"{self.path} is no name in UTF-8, as the run's log is: choose another --run") from None
        if self.path.exists() and not self.path.is_dir():
            raise SparringError(f"{self.path} is a file, not a run folder: choose another --run")
        # What a start that was interrupted leaves: no rows of anything yet.
        left = {"lock", self.recipe.name, self.log.name}
        growing = {self.metrics.name, self.matches.name, self.episodes.name}
        strange = [
            path.name
            for path in (sorted(self.path.iterdir()) if self.path.exists() else [])
            if path.name not in left
            and not path.name.endswith(_BESIDE)
            and not (path.name in growing and path.stat().st_size == 0)
            and not (path == self.replay and path.is_dir() and not any(path.iterdir()))
        ]
        if strange:
            raise SparringError(
                f"{self.path} has no latest.pt but holds {', '.join(strange[:3])}: "
                "nothing was touched; choose another --run, or move that away"
            )
        try:
            self.replay.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SparringError(f"{self.path} cannot be created: {error.strerror or error}") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for this process; the system lets go when the process ends, however it ends.

        Raises SparringError naming the process that holds it.
        """
        with locked(self.path / "lock", f"run {self.name} is being trained", "choose another --run"):
            yield

    @property
    def training(self) -> bool:
        """Some process is training this run now."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def note(self, line: str) -> None:
        """Append a line with the time to log.txt. On a full disk it is left out: the next save says what is wrong."""
        with suppress(OSError), self.log.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")


@contextmanager
def locked(path: Path, busy: str, other: str) -> Iterator[None]:
    """Hold the file `path` for this process; the system lets go when the process ends, however it ends.

    busy, other: what is going on if another process holds it, and what else can be done; for the line of the error

    Raises SparringError naming the process that holds it.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SparringError(f"{path} cannot be opened: {error.strerror or error}") from None
    try:
        if not _held(descriptor):
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise SparringError(f"{busy} by process {holder}: wait for it, stop it, or {other}")
        with suppress(OSError):  # on a full disk the lock holds all the same, without its owner's number
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _held(descriptor: int) -> bool:
    """Took the lock. Who only looks (`RunFolder.training`) holds it for an instant, so this asks a few times."""
    for _ in range(5):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return True
    return False


def all_runs() -> list[RunFolder]:
    """Every run below `runs_folder()`, by name."""
    root = runs_folder()
    if not root.is_dir():
        return []
    folders = [RunFolder(path) for path in sorted(root.iterdir()) if path.is_dir()]
    return [folder for folder in folders if folder.exists]


def find_run(run: str | Path) -> RunFolder:
    """The existing run of that name or path. Raises SparringError with the nearest names."""
    folder = RunFolder(run)
    if folder.exists:
        return folder
    names = [other.name for other in all_runs()]
    near = difflib.get_close_matches(str(run), names, n=3, cutoff=0.4) or names[:3]
    known = f"did you mean {' or '.join(near)}?" if near else "there are no runs yet; start one: sparring train tennis"
    place = "" if isinstance(run, Path) or os.sep in str(run) else f" in {runs_folder()}"
    raise SparringError(f"no run {run}{place}: {known}")
