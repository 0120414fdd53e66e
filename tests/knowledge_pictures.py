"""Positions of Loong and what the dragon that must act then knows, drawn as text. `python tests/knowledge_pictures.py`
writes the golden files anew: read the difference before you keep it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from loong_choices import INPUTS, MASK
from loong_maps import simple_map
from numpy.typing import NDArray

from sparring import _core
from sparring.judge.native import load_level

FAR = "1 2 20 20 20 21"
"""An enemy far away from the rest, which goes round in circles."""


def north(x: int, y: int, kind: str = "1 0", width: int = 30) -> str:
    """The line of a map for the north side of a tile: kelp, or another kind."""
    return f"EDGE {2 * y * (width + 1) + x} {kind}"


def west(x: int, y: int, kind: str = "1 0", width: int = 30) -> str:
    return f"EDGE {(2 * y + 1) * (width + 1) + x} {kind}"


@dataclass(frozen=True)
class Position:
    """A map, and the choices of all dragons in the order of turns: steps (F, L, R), or S and the segments of a split;
    behind a colon the claim."""

    map: bytes
    turns: str = ""
    mirror: str = "never"


POSITIONS = {
    "first-turn": Position(
        simple_map("30 30", ("0 5 9 9 10 9 11 9 11 10 11 11", FAR), ("TILE 8 8 4 4", "TILE 9 12 1 1"))
    ),
    "newborn": Position(simple_map("30 30", ("0 6 9 9 10 9 11 9 11 10 11 11 10 11", FAR)), "S3 L"),
    "kelp-around": Position(
        simple_map("30 30", ("0 2 9 9 9 10", FAR), (north(9, 9), west(9, 9), west(11, 8), north(9, 13)))
    ),
    "portal-of-which-both-ends-are-seen": Position(
        simple_map(
            "30 30",
            ("0 2 9 9 9 10", FAR),
            (north(9, 8, "2 7"), north(11, 11, "2 7"), north(7, 8, "2 8"), north(2, 2, "2 8")),
        ),
        "F L",
    ),
    "round-the-smallest-board": Position(
        simple_map("7 7", ("0 3 0 0 1 0 1 1", "1 2 4 4 5 4"), ("TILE 6 6 3 3",)), "L L L L"
    ),
    "attempts-seen-and-past": Position(
        simple_map("30 30", ("0 2 9 9 9 10", FAR), ("TILE 9 12 6 6", "TILE 8 11 9 9", "TILE 10 12 4 4")),
        "F L F L F L F L F L",
    ),
    "inferred-by-symmetry": Position(
        simple_map(
            "12 12",
            ("0 2 5 8 5 9", "1 2 6 3 6 2"),
            (
                "SYMMETRY xy",
                west(4, 7, width=12),
                west(8, 4, width=12),
                north(6, 6, width=12),
                north(5, 6, width=12),
                "TILE 2 9 5 5",
                "TILE 9 2 5 5",
            ),
        ),
        "F F F F",
    ),
    "enemies-near": Position(
        simple_map("30 30", ("0 3 9 9 9 10 9 11", "1 3 7 8 7 7 7 6", "0 2 20 3 20 4", "1 3 10 7 11 7 12 7")), ""
    ),
    "told-of-by-a-mate": Position(
        simple_map("30 30", ("0 3 9 9 8 9 7 9", FAR, "0 3 16 9 17 9 18 9"), ("TILE 10 8 1 1",)), "F:7 L F:3 F:12 L"
    ),
    "a-long-body-left-behind": Position(
        simple_map("40 12", ("0 12 " + " ".join(f"{20 + i} 6" for i in range(12)), "1 2 1 1 1 2")), "FFF L F L FF L"
    ),
    "mirrored": Position(
        simple_map("30 30", ("0 4 9 9 9 10 9 11 10 11", "1 3 7 7 7 6 7 5"), (west(9, 9), "TILE 8 8 2 2")),
        "",
        "always",
    ),
    "at-the-unit-limit": Position(
        simple_map("30 30", ("0 9 " + " ".join(f"{9 + i} 9" for i in range(9)), FAR), ("UNIT_LIMIT 1",))
    ),
}


def golden_folder() -> Path:
    return Path(__file__).with_name("golden") / "knowledge"


def choice(words: str, held: int) -> int:
    steps, _, claim = words.partition(":")
    tail = int(claim) if claim else 25
    if steps[0] == "S":
        return _core.loong_pack(held, "split", 0, int(steps[1:]), [], tail)
    ways = ["FLR".index(step) for step in steps]
    if len(ways) == 1:
        return _core.loong_pack(held, "move", ways[0], 0, [], tail)
    return _core.loong_pack(held, "sprint", 0, 0, ways, tail)


def picture(name: str) -> str:
    """What the dragon knows that must act in a position."""
    position = POSITIONS[name]
    matches = _core.LoongMatches([load_level(position.map)], 1, knowledge=True, mirror=position.mirror)
    inputs, mask = np.zeros((1, INPUTS.itemsize), np.uint8), np.zeros((1, MASK.itemsize), np.uint8)
    for words in position.turns.split():
        matches.observe(inputs, mask)
        matches.act_packed(np.array([choice(words, int(mask.view(MASK)[0, 0]["held"]))]))
    matches.observe(inputs, mask)
    row = matches.rows.view(_core.LOONG_LANE)[0, 0]
    title = f"{name}: dragon {row['dragon']} of team {'AB'[row['team']]} in round {row['round']}"
    return "\n".join([title, "", *drawn(inputs.view(INPUTS)[0, 0], mask.view(MASK)[0, 0])]) + "\n"


def drawn(row: NDArray[Any], mask: NDArray[Any]) -> list[str]:
    crop = {name: row["crop"][:, :, i] for i, name in enumerate(_core.LOONG_PLANES["crop"])}
    lines = [
        "Forward is up. @ o own, A a ally, E e enemy (capitals: heads), * pearl, + maybe a pearl, , spawns, . known,"
    ]
    lines += ["? inferred; - | kelp, = : portal.", ""]
    for r in range(15):
        above, tiles = "", ""
        for c in range(15):
            above += " " + ("-" if crop["kelp forward"][r, c] else "=" if crop["portal forward"][r, c] else " ")
            side = "|" if crop["kelp left"][r, c] else ":" if crop["portal left"][r, c] else " "
            tiles += side + tile(crop, r, c)
        lines += [above.rstrip(), tiles.rstrip()]
    lines += ["", "Planes of numbers, as row,column=byte:"]
    for name in ("age", "attempt", "own clears", "queen", "told pearl", "told ally", "told enemy", "claimed", "threat"):
        places = [f"{r},{c}={crop[name][r, c]}" for r, c in np.argwhere(crop[name]).tolist()]
        if places:
            lines.append(f"{name}: " + " ".join(places[:40]) + (" ..." if len(places) > 40 else ""))
    headings = [
        f"{r},{c} {way}"
        for way in ("forward", "right", "back", "left")
        for r, c in np.argwhere(crop[f"heading {way}"]).tolist()
    ]
    lines.append("heads face: " + ", ".join(headings))
    lines += ["", "Steps to where it can go (0-9, a-v):"]
    steps = np.where(crop["reach"] > 0, (127 - crop["reach"].astype(int)) // 4, -1)
    lines += ["".join(" " if s < 0 else "0123456789abcdefghijklmnopqrstuv"[s] for s in line).rstrip() for line in steps]
    lines += ["", "Overview, known share in tenths:"]
    lines += [
        "".join("." if not k else str(min(9, int(k) * 10 // 127)) for k in line) for line in row["overview"][:, :, 0]
    ]
    for i, name in enumerate(_core.LOONG_PLANES["overview"][1:], 1):
        places = [f"{r},{c}={row['overview'][r, c, i]}" for r, c in np.argwhere(row["overview"][:, :, i]).tolist()]
        if places and name != "recent":
            lines.append(f"{name}: " + " ".join(places[:20]) + (" ..." if len(places) > 20 else ""))
    lines += ["", "Scalars:"]
    lines.append(", ".join(f"{n} {v}" for n, v in zip(_core.LOONG_PLANES["scalars"], row["scalars"], strict=True) if v))
    for packet in row["sonar"]:
        if packet.any():
            named = zip(_core.LOONG_PLANES["sonar"], packet, strict=True)
            lines.append("packet: " + ", ".join(f"{n} {v}" for n, v in named if v))
    lines += ["", f"May: kinds {mask['kinds'].tolist()}, splits of {(np.flatnonzero(mask['sizes']) + 2).tolist()},"]
    return [*lines, f"{mask['payable']} sprint steps, role due {mask['role_due']}, held {mask['held']}"]


def tile(crop: dict[str, NDArray[Any]], r: int, c: int) -> str:
    for name, sign in (("ally head", "A"), ("ally body", "a"), ("enemy head", "E"), ("enemy body", "e")):
        if crop[name][r, c]:
            return sign
    if crop["own body"][r, c]:
        return "@" if (r, c) == (7, 7) else "o"
    if crop["pearl"][r, c]:
        return "*" if crop["pearl"][r, c] == 127 else "+"
    if crop["inferred"][r, c]:
        return "," if crop["spawns"][r, c] else "?"
    return "," if crop["spawns"][r, c] else "." if crop["known"][r, c] else " "


if __name__ == "__main__":
    golden_folder().mkdir(parents=True, exist_ok=True)
    for each in POSITIONS:
        (golden_folder() / f"{each}.txt").write_text(picture(each))
