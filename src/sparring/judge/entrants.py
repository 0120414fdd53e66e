"""Who can play a match, and what tells two of them apart: a hash of what really plays."""

from __future__ import annotations

import difflib
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparring import _core
from sparring.errors import SparringError
from sparring.judge.build import build_bot, keep_wasm, program
from sparring.judge.foil import write_foil
from sparring.judge.official import toolkit
from sparring.runs.folder import RunFolder, all_runs

STARTER = "starter"
"""The bot that the toolkit gives to every newcomer."""
FOIL = "foil"
"""The planner by hand, as `sparring bot foil` writes it."""


@dataclass(frozen=True)
class Entrant:
    """One that plays. Two with the same hash play the same.

    name: of the folder or file, or what it was called by
    kind: "wasm", a bot in the judge's sandbox; "scripted", a player of the core; "teacher", of a run
        (`sparring.judge.teachers`); "served", a policy outside, which only served play can ask
        (`sparring.judge.served`)
    hash: SHA-256 of the bot's WebAssembly, or of the core's source and the name; of the core's source and a teacher's
        weights; of a policy, what its owner says
    path: the WebAssembly or the weights, a file in the cache folder that never changes; None for a scripted player
    """

    name: str
    kind: Literal["wasm", "scripted", "served", "teacher"]
    hash: str
    path: Path | None = None


def load_entrant(spec: str | Path) -> Entrant:
    """Who is meant: a bot folder, a .zip, a .wasm, a scripted player's name, "starter", "foil", or a run of Loong.

    A path that exists goes before a name; `./starter` is always a path. Builds and compiles the bot if it must be: the
    first match then starts at once in every process. Raises SparringError, in one line, for all that cannot play.
    """
    path = Path(spec)
    try:
        there = path.exists()
    except OSError as error:
        raise SparringError(f"no player {spec}: {error.strerror or error}") from error
    if there or str(spec) not in (*_core.LOONG_SCRIPTS, STARTER, FOIL):
        return _bot(path) if there and not RunFolder(path).exists else _run(spec)
    if spec == STARTER:
        return _bot(Path(toolkit("init").TEMPLATES) / "cpp", name=STARTER)
    if spec == FOIL:
        with tempfile.TemporaryDirectory() as place:
            write_foil(Path(place) / FOIL)
            return _bot(Path(place) / FOIL)
    name = str(spec)
    return Entrant(name, "scripted", hashlib.sha256(f"{_core.source_hash} {name}".encode()).hexdigest())


def _bot(path: Path, name: str = "") -> Entrant:
    wasm = keep_wasm(path) if path.is_file() and path.suffix == ".wasm" else None
    if wasm is None:
        if path.is_file() and path.suffix != ".zip":
            raise SparringError(f"{path} is no player: give a bot's folder, a .zip of it, or a .wasm")
        wasm = build_bot(path)
    try:
        program(wasm)
    except SparringError as error:
        raise SparringError(f"{path} cannot play: {error}") from error
    called = name or (path.stem if path.is_file() else path.resolve().name)
    return Entrant(called, "wasm", hashlib.sha256(wasm.read_bytes()).hexdigest(), wasm)


def _run(spec: str | Path) -> Entrant:
    if RunFolder(spec).exists:
        from sparring.judge.teachers import teacher_entrant  # imported here, so that bots do not wait for torch

        return teacher_entrant(spec)
    names = (*_core.LOONG_SCRIPTS, STARTER, FOIL, *(folder.name for folder in all_runs()))
    near = difflib.get_close_matches(str(spec), names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the names are {', '.join(names)}"
    raise SparringError(f"no player {spec}: there is no such bot folder, .zip, .wasm or run; {hint}")
