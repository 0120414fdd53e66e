"""The first difference that a gate finds, as a small case: one life's texts, from which it comes about again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from sparring.errors import SparringError
from sparring.export.reference import Asked, Difference, Known, Reference, differences, said, section_bytes
from sparring.files import written_beside
from sparring.games.loong_choices import INPUTS, PLANES
from sparring.judge.entrants import Entrant
from sparring.judge.sides import Side, open_side

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """A turn in which a bot did otherwise than the reference.

    sources:            the hash in the bot's main.cpp
    seed, team, dragon: the judge draws the bot's random numbers from them
    init, blocks:       what a fresh process is told; it is the last block that it answers otherwise
    found:              what differs there, in words
    """

    sources: str
    map_name: str
    map_hash: str
    seed: int
    team: str
    dragon: int
    init: bytes
    blocks: tuple[bytes, ...]
    found: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """Where, and what first, in a line."""
        turn = self.blocks[-1].partition(b"\n")[0].decode("latin-1").lower()
        where = f"map {self.map_name or self.map_hash[:12]}, seed {self.seed}, {turn}, dragon {self.dragon}"
        return f"{where}: {self.found[0] if self.found else 'nothing differs'}"


def try_case(case: Case, reference: Reference, submitted: Entrant, inspection: Entrant) -> Case | None:
    """Ask both builds and the reference again: the case up to the first turn that differs, None if none does.

    reference: with one slot, in which nobody lives
    """
    with (
        open_side(submitted, seed=case.seed, team=case.team) as plain,
        open_side(inspection, seed=case.seed, team=case.team) as probed,
    ):
        plain.spawn(case.dragon, case.init)
        probed.spawn(case.dragon, case.init)
        for turn, block in enumerate(case.blocks):
            (known,) = reference.ask([Asked(0, case.init, block)])
            answer, inspected = plain.reply(case.dragon, block), said(probed.reply(case.dragon, block).reply)
            found = list(differences(known, inspected, answer))
            if found:
                width = int(case.init.split()[5])
                words = tuple(_words(each, known, probed, case.dragon, width) for each in found)
                return replace(case, blocks=case.blocks[: turn + 1], found=words)
    return None


def _words(difference: Difference, known: Known, probed: Side, dragon: int, width: int) -> str:
    """What differs; of a section, its first byte that does."""
    what, expected, found = difference
    section = known.section(what)
    if section is None:
        shown = [each.decode("latin-1") if isinstance(each, bytes) else each for each in (expected, found)]
        return f"{what}: {shown[0]!r} by the reference, {shown[1]!r} by the bot"
    told = section_bytes(probed, dragon, what, len(section))
    at = next((i for i, (one, other) in enumerate(zip(section, told, strict=False)) if one != other), len(told))
    values = [str(each[at]) if at < len(each) else "nothing" for each in (section, told)]
    return f"{what}, {_place(what, at, width)}: {values[0]} by the reference, {values[1]} by the bot"


def _place(section: str, byte: int, width: int) -> str:
    """Where a byte of a section lies."""
    if section in PLANES:
        *at, plane = np.unravel_index(byte, INPUTS[section].shape)
        place = "".join(f"[{each}]" for each in at)
        return f"byte {byte}, {place}{' ' if place else ''}{PLANES[section][int(plane)]}"
    if section in ("sights", "notes"):
        tile = byte // (4 if section == "sights" else 2)
        return f"byte {byte}, tile {tile % width} {tile // width}"
    return f"byte {byte}"


def write_case(case: Case, path: Path) -> None:
    """Write a case. Raises SparringError where the file cannot be written."""
    plain = asdict(case) | {
        "case": VERSION,
        "init": case.init.decode("latin-1"),
        "blocks": [block.decode("latin-1") for block in case.blocks],
    }
    with written_beside(path) as beside:
        beside.write_text(json.dumps(plain, indent=1))


def read_case(path: str | Path) -> Case:
    """Read a case. Raises SparringError, in one line, for a file that is none."""
    try:
        value = json.loads(Path(path).read_text())
    except OSError as error:
        raise SparringError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError):
        value = None
    try:
        if value.pop("case") != VERSION:
            raise ValueError
        init, blocks = value.pop("init").encode("latin-1"), [each.encode("latin-1") for each in value.pop("blocks")]
        case = Case(**{**value, "found": tuple(value["found"])}, init=init, blocks=tuple(blocks))
        if not blocks or case.team not in ("A", "B") or not isinstance(case.seed, int):
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SparringError(f"{path} is no case that a gate of this Sparring wrote") from None
    return case
