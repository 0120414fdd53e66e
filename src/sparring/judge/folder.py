"""A bot folder: a main program from core/bot, every header that it includes, and what the judge wants to know."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from sparring.errors import SparringError
from sparring.kernels import core_folder

_INCLUDE = re.compile(rb'^#include "([^"]+)"', re.MULTILINE)
_HASHED = b"// All sources: SHA-256 "
_SETTINGS = '[project]\nlanguage = "c++"\ninclude = [ "*.cpp", "*.h", "*.bin" ]\n'


def bot_sources(program: str, made: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """The files of a bot by their names in its folder: main.cpp, which is core/bot/`program`.cpp, and its headers.

    made: files that are not in the core, such as weights

    main.cpp begins with a hash of all of them: the toolkit's build cache looks at the .cpp files alone.
    """
    core = core_folder()
    files = dict(made or {})
    waiting = [f"bot/{program}.cpp"]
    while waiting:
        name = waiting.pop()
        content = (core / name).read_bytes()
        files[name] = content
        for found in _INCLUDE.findall(content):
            included = found.decode()
            beside = (core / name).parent / included
            path = beside if beside.is_file() else core / included
            header = path.resolve().relative_to(core.resolve()).as_posix()
            if header not in files and header not in waiting:
                waiting.append(header)
    main = files.pop(f"bot/{program}.cpp")
    return {"main.cpp": _HASHED + f"{sources_hash(main, files)}\n".encode() + main, **files}


def sources_hash(main: bytes, files: Mapping[str, bytes]) -> str:
    """What main.cpp says in its first line: SHA-256 of itself without that line, and of all other files."""
    digest = hashlib.sha256(main)
    for name in sorted(files):
        digest.update(f"{name} {len(files[name])}\n".encode() + files[name])
    return digest.hexdigest()


def said_hash(main: bytes) -> tuple[str, bytes]:
    """The hash that a main.cpp says in its first line, "" if it says none, and the lines after it."""
    first, _, rest = main.partition(b"\n")
    return (first.removeprefix(_HASHED).decode("latin-1"), rest) if first.startswith(_HASHED) else ("", main)


def settings() -> bytes:
    """The bot.toml of every bot."""
    return _SETTINGS.encode()


def write_bot(out: Path, files: dict[str, bytes], about: str) -> str:
    """Write a bot folder, whole or not at all, and return the SHA-256 that its README.md gives for it.

    files: as from `bot_sources`; about: what README.md says first. Raises SparringError where something is at `out`
    already, or where it cannot be written.
    """
    refuse_folder(out)
    hashes = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    lines = [f"{digest}  {name}" for name, digest in hashes.items()]
    whole = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    readme = f"{about}\n\nSHA-256 of the files, as `sha256sum` prints them:\n\n```\n" + "\n".join(lines) + "\n```\n\n"
    readme += f"and of these lines: {whole}\n"
    everything = {**files, "bot.toml": settings(), "README.md": readme.encode()}
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.absolute().parent))
        try:
            for name, content in everything.items():
                path = beside / PurePosixPath(name)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            beside.chmod(0o755)
            beside.replace(out)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise SparringError(f"cannot write {out}: {error.strerror or error}; choose another place") from error
    return whole


def refuse_folder(out: Path) -> None:
    """Raise SparringError where something is at `out` already, save an empty folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SparringError(f"{out} is there already: give a folder that is new or empty")
