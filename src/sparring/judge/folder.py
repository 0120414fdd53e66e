"""A bot folder: a main program from core/bot, every header that it includes, and what the judge wants to know."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from sparring.errors import SparringError
from sparring.kernels import core_folder

_INCLUDE = re.compile(rb'^#include "([^"]+)"', re.MULTILINE)
_SETTINGS = '[project]\nlanguage = "c++"\ninclude = [ "*.cpp", "*.h" ]\n'


def bot_sources(program: str) -> dict[str, bytes]:
    """The files of a bot by their names in its folder: main.cpp, which is core/bot/`program`.cpp, and its headers.

    main.cpp begins with a hash of all of them: the toolkit's build cache looks at the .cpp files alone.
    """
    core = core_folder()
    files: dict[str, bytes] = {}
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
    digest = hashlib.sha256(main)
    for name in sorted(files):
        digest.update(f"{name} {len(files[name])}\n".encode() + files[name])
    return {"main.cpp": f"// All sources: SHA-256 {digest.hexdigest()}\n".encode() + main, **files}


def write_bot(out: Path, files: dict[str, bytes], about: str) -> str:
    """Write a bot folder, whole or not at all, and return the SHA-256 that its README.md gives for it.

    files: as from `bot_sources`; about: what README.md says first. Raises SparringError where something is at `out`
    already, or where it cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SparringError(f"{out} is there already: give a folder that is new or empty")
    hashes = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    lines = [f"{digest}  {name}" for name, digest in hashes.items()]
    whole = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    readme = f"{about}\n\nSHA-256 of the files, as `sha256sum` prints them:\n\n```\n" + "\n".join(lines) + "\n```\n\n"
    readme += f"and of these lines: {whole}\n"
    everything = {**files, "bot.toml": _SETTINGS.encode(), "README.md": readme.encode()}
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
