"""Map files with faults: one for every text of the judge, and random ones made by changing good files."""

from __future__ import annotations

import random

HEAD = "MAP 9 8\nTILE_COUNT 0\nEDGE_COUNT 0\nDRAGON_COUNT 0\n"


def _counted(body: str, *, tiles: int = 0, edges: int = 0, dragons: int = 0, start: str = "MAP 9 8") -> str:
    return f"{start}\nTILE_COUNT {tiles}\nEDGE_COUNT {edges}\nDRAGON_COUNT {dragons}\n{body}\n"


FAULTS: dict[str, str] = {
    "": "map has no MAP line",
    "END\nMAP 9 8\n": "map has no MAP line",
    "\r\n\nMAP_NAME x\n": "MAP must come before MAP_NAME",
    "# a comment\n": "MAP must come before #",
    " \n": "MAP must come before ",
    "MAP 9 8\n MAP 9 8\r\n": "MAP appears twice:  MAP 9 8",
    "MAP 9\n": "MAP needs a width and a height: MAP 9",
    "MAP 9 99999999999\n": "MAP needs a width and a height: MAP 9 99999999999",
    "MAP 6 999\n": "map must be at least 7x7, got 6x999",
    "MAP 7 257\n": "map must be at most 256x256, got 7x257",
    HEAD + "UNIT_LIMIT\n": "UNIT_LIMIT needs a positive count: UNIT_LIMIT",
    HEAD + "UNIT_LIMIT 0\n": "UNIT_LIMIT needs a positive count: UNIT_LIMIT 0",
    HEAD + "UNIT_LIMIT 2147483648\n": "UNIT_LIMIT needs a positive count: UNIT_LIMIT 2147483648",
    HEAD + "SYMMETRY\n": "SYMMETRY needs one of x, y, xy: SYMMETRY",
    HEAD + "SYMMETRY x y\n": "SYMMETRY needs one of x, y, xy: SYMMETRY x y",
    HEAD + "SYMMETRY XY\n": "SYMMETRY must be x, y or xy: SYMMETRY XY",
    HEAD + "TILE_COUNT x\n": "TILE_COUNT needs a count: TILE_COUNT x",
    HEAD + "EDGE_COUNT + 1\n": "EDGE_COUNT needs a count: EDGE_COUNT + 1",
    HEAD + "DRAGON_COUNT\n": "DRAGON_COUNT needs a count: DRAGON_COUNT",
    HEAD + "TILE 1 1 1\n": "TILE needs x y minGap maxGap: TILE 1 1 1",
    HEAD + "TILE 9 1 0 -1\n": "TILE out of bounds: TILE 9 1 0 -1",
    HEAD + "TILE 1 1 0 5\n": "TILE has bad gaps: TILE 1 1 0 5",
    HEAD + "TILE 1 1 6 5\n": "TILE has bad gaps: TILE 1 1 6 5",
    HEAD + "TILE 1 1 -1 0\n": "TILE has bad gaps: TILE 1 1 -1 0",
    HEAD + "EDGE 1 1\n": "EDGE needs index kind portalId: EDGE 1 1",
    HEAD + "EDGE 170 7 0\n": "EDGE index is off the map: EDGE 170 7 0",
    HEAD + "EDGE -1 1 0\n": "EDGE index is off the map: EDGE -1 1 0",
    HEAD + "EDGE 1 2 -1\n": "portal EDGE needs a portal id: EDGE 1 2 -1",
    HEAD + "EDGE 1 3 0\n": "EDGE has unknown kind: EDGE 1 3 0",
    HEAD + "DRAGON 0\n": "DRAGON needs team and segment count: DRAGON 0",
    HEAD + "DRAGON 2 0\n": "DRAGON team must be 0 or 1: DRAGON 2 0",
    HEAD + "DRAGON 1 2 1 1 2 1\nDRAGON 1 1\n": "DRAGON is too short: DRAGON 1 1",
    HEAD
    + "DRAGON 1 2 1 1 2 1\nDRAGON 1 2\n": "DRAGON teams must alternate, so dragons 0 and 1 are on different teams: "
    "DRAGON 1 2",
    HEAD + "DRAGON 0 1 1 1\n": "DRAGON is too short: DRAGON 0 1 1 1",
    HEAD + "DRAGON 0 2 1 1 2\n": "DRAGON ran out of segments: DRAGON 0 2 1 1 2",
    HEAD + "DRAGON 0 3 1 1 9 1\n": "DRAGON segment out of bounds: DRAGON 0 3 1 1 9 1",
    HEAD + "DRAGON 0 2 1 1 2 1\nDRAGON 1 2 3 1 2 1\n": "DRAGON overlaps another dragon: DRAGON 1 2 3 1 2 1",
    HEAD + "TILES\n": "unknown map line: TILES",
    HEAD + "   \t\n": "unknown map line:    \t",
    HEAD + "END \n": "unknown map line: END ",
    "MAP 9 8\nEDGE_COUNT 0\nDRAGON_COUNT 0": "TILE_COUNT is -1 but read 0",
    _counted("TILE 1 1 1 1\nTILE 1 1 1 1", tiles=1): "TILE_COUNT is 1 but read 2",
    _counted("EDGE 9 7 7", edges=0): "EDGE_COUNT is 0 but read 1",
    _counted("DRAGON 0 2 1 1 2 1", dragons=3): "DRAGON_COUNT is 3 but read 1",
    _counted("TILE 2 1 3 4\nSYMMETRY x", tiles=1): "pearl bed at (2, 1) doesn't match its mirror at (2, 6)",
    _counted(
        "TILE 2 1 3 4\nTILE 6 1 3 5\nSYMMETRY y", tiles=2
    ): "pearl bed at (2, 1) doesn't match its mirror at (6, 1)",
    _counted("TILE 8 7 3 4\nSYMMETRY xy", tiles=1): "pearl bed at (0, 0) doesn't match its mirror at (8, 7)",
    _counted("EDGE 1 2 5\nEDGE 1 2 5", edges=2): "portal 5 reuses an edge of another portal at (1, 0)",
    _counted(
        "EDGE 1 2 5\nEDGE 2 2 5\nEDGE 2 2 4\nEDGE 3 2 4", edges=4
    ): "portal 5 reuses an edge of another portal at (2, 0)",
    _counted(
        "EDGE 1 2 4\nEDGE 2 2 4\nEDGE 2 2 5\nEDGE 3 2 5", edges=4
    ): "portal 5 reuses an edge of another portal at (2, 0)",
    _counted("EDGE 1 2 5\nEDGE 2 2 5\nEDGE 2 1 0", edges=3): "portal 5 end at (2, 0) was overwritten",
    _counted("EDGE 1 2 5\nEDGE 11 2 5", edges=2): "portal 5 joins a horizontal edge to a vertical one",
    _counted("EDGE 1 2 5", edges=1): "portal 5 has 1 end(s) and joins nothing at top of (1, 0)",
    _counted("EDGE 11 2 5\nEDGE 9 2 5", edges=2): "portal 5 has 1 end(s) and joins nothing at left of (1, 0)",
    _counted(
        "EDGE 21 2 5\nEDGE 1 2 5\nEDGE 2 2 5", edges=3
    ): "portal 5 has 3 end(s) and joins nothing at top of (1, 1)",
    _counted("DRAGON 0 3 1 1 2 1 2 3", dragons=1): "dragon 0 segment 2 is not adjacent to the one before it",
    _counted("DRAGON 0 2 1 1 2 1\nEDGE 32 1 0", edges=1, dragons=1): "dragon 0 segment 1 is not adjacent to the one "
    "before it",
}
"""Files and the judge's texts for them."""

_NUMBERS = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "+4",
    "007",
    "2147483647",
    "2147483648",
    "-2147483649",
    "99999999999999999999",
]
_NUMBERS += ["x", "1x", "0x1", "1.5", "-", "", "3-1", "5 5", "\t8", "1e3"]
_LINES = [
    "MAP 9 9",
    "END",
    "end",
    "SYMMETRY x",
    "SYMMETRY xy",
    "UNIT_LIMIT 3",
    "MAP_NAME  a b",
    "TILE 0 0 1 1",
    "  ",
    "",
]
_LINES += [
    "EDGE 3 1 0",
    "EDGE 3 2 1",
    "EDGE 4 2 1",
    "EDGE 3 2 0",
    "EDGE 0 0 0",
    "DRAGON 0 2 0 0 1 0",
    "DRAGON 1 2 0 0 0 1",
]
_LINES += ["TILE 0 0 5 0", "tile 0 0 1 1", "# x", "TILE 0 0 \x00 1", "\x00", "TILE\v1\f1 1 1", "SYMMETRY \xff"]
_BYTES = b" \t\r\n\0\v0123456789-+xy#\xff"


def changed(file: bytes, seed: int) -> bytes:
    """The file with one to three random changes; the counts are put right again in two of three cases."""
    rng = random.Random(seed)
    lines = file.split(b"\n")
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, rng.choice(lines))
        elif kind == 2:
            lines.insert(at, rng.choice(_LINES).encode("latin-1"))
        elif kind == 3:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind in (4, 5, 6):
            fields = lines[at].split(b" ")
            if kind == 4 and len(fields) > 1:
                del fields[rng.randrange(len(fields))]
            else:
                fields[rng.randrange(len(fields))] = rng.choice(_NUMBERS).encode()
            lines[at] = b" ".join(fields)
        elif lines[at]:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + bytes([rng.choice(_BYTES)]) + lines[at][place + rng.randrange(2) :]
        lines = lines or [b""]
    if rng.randrange(3):
        lines = [_recounted(line, lines) for line in lines]
    return b"\n".join(lines)


def _recounted(line: bytes, lines: list[bytes]) -> bytes:
    for key in (b"TILE", b"EDGE", b"DRAGON"):
        if line.startswith(key + b"_COUNT "):
            return key + b"_COUNT %d" % sum(each.startswith(key + b" ") for each in lines)
    return line
