"""Maps of Loong: the type, the reader with the judge's own error texts, and the writer. Rules: docs/loong-maps.md."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from sparring.errors import SparringError

SMALLEST_SIDE, LARGEST_SIDE = 7, 256
DEFAULT_UNIT_LIMIT = 64
MOST_BYTES = 64 << 20
"""Of a file that is read as a map: ten times what the greatest one takes."""
SHORTEST_DRAGON = 2
ROUNDS = 500
"""Of a match, at most."""
QUEENS = (0, 1)
"""Ids of the queens."""

OPEN, KELP = -1, -2
"""What an edge holds, besides the number (0 or more) of a portal."""

NORTH, EAST, SOUTH, WEST = range(4)
STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""Columns and rows that a step north, east, south or west leads on."""

Symmetry = Literal["none", "x", "y", "xy"]
Orientation = Literal["horizontal", "vertical"]
Int32 = NDArray[np.int32]

_INT32 = range(-(2**31), 2**31)
_MOST_DIGITS = 10
_NUMBER = re.compile(rb"\s*([+-]?)0*([0-9]+)")
_WORD = re.compile(rb"\s*(\S+)")
_KIND_OPEN, _KIND_KELP, _KIND_PORTAL = range(3)


class MapError(SparringError):
    """A map that the judge refuses.

    official: the judge's own text, word for word
    line:     number of the line it is about, from 1, or None where it is about the whole file
    file:     where the map was read from, or None

    The message is `FILE:LINE: official`, as far as these are known.
    """

    def __init__(self, official: str, *, line: int | None = None, file: Path | None = None) -> None:
        self.official, self.line, self.file = official, line, file
        place = [str(part) for part in (file, line if file else None) if part is not None]
        super().__init__(f"{':'.join(place)}: {official}" if place else official)


class Edge(NamedTuple):
    """The north side (horizontal) or the west side (vertical) of the tile in column x and row y."""

    orientation: Orientation
    x: int
    y: int


@dataclass(frozen=True, eq=False)
class Dragon:
    """A dragon at the start.

    team: 0 for A, 1 for B
    body: int32 [n, 2], column and row of each segment, head first
    """

    team: int
    body: Int32


@dataclass(frozen=True, eq=False, kw_only=True)
class LoongMap:
    """A map. The board is a torus; column 0, row 0 is its top left tile. The arrays cannot be written to.

    symmetry:   mirror whose tiles share a countdown: "x" turns the rows round, "y" the columns, "xy" both
    unit_limit: living dragons a team may have before it can split no more
    gaps:       int32 [height, width, 2], the least and the most rounds between two pearls; 0, 0 where none grows
    horizontal: int32 [height, width], north side of each tile: OPEN, KELP or a portal's number
    vertical:   int32 [height, width], west side of each tile
    dragons:    in order of their ids; 0 and 1 are the queens
    name:       a label, without effect on play
    """

    width: int
    height: int
    gaps: Int32
    horizontal: Int32
    vertical: Int32
    dragons: tuple[Dragon, ...]
    symmetry: Symmetry = "none"
    unit_limit: int = DEFAULT_UNIT_LIMIT
    name: str = ""

    def __post_init__(self) -> None:
        shape = (self.height, self.width)
        for field, wanted in (("gaps", (*shape, 2)), ("horizontal", shape), ("vertical", shape)):
            array = getattr(self, field)
            if array.shape != wanted or array.dtype != np.int32:
                raise SparringError(f"LoongMap.{field} is {array.dtype} {list(array.shape)}: pass int32 {list(wanted)}")
            array.flags.writeable = False
        for dragon in self.dragons:
            dragon.body.flags.writeable = False

    @cached_property
    def portals(self) -> dict[int, tuple[Edge, ...]]:
        """The ends of each portal, by number; a map that the judge takes has two ends to each."""
        ends: dict[int, list[Edge]] = {}
        sides: tuple[tuple[Orientation, Int32], ...] = (
            ("horizontal", self.horizontal),
            ("vertical", self.vertical),
        )
        for orientation, edges in sides:
            for y, x in np.argwhere(edges >= 0).tolist():
                ends.setdefault(int(edges[y, x]), []).append(Edge(orientation, x, y))
        return {number: tuple(ends[number]) for number in sorted(ends)}

    @cached_property
    def neighbours(self) -> Int32:
        """int32 [4, height * width]: the tile (y * width + x) that a step north, east, south, west leads to.

        -1 where kelp is in the way. Portals count: they lead out of the far side of their other end.
        """
        tiles = np.arange(self.height * self.width, dtype=np.int32).reshape(self.height, self.width)
        table = np.empty((4, self.height, self.width), np.int32)
        for direction, (dx, dy) in enumerate(STEPS):
            edges = self.horizontal if dy else self.vertical
            if direction in (SOUTH, EAST):  # that side is the first side of the tile beyond
                edges = np.roll(edges, (-dy, -dx), (0, 1))
            table[direction] = np.where(edges == KELP, -1, np.roll(tiles, (-dy, -dx), (0, 1)))
        for ends in self.portals.values():
            if len(ends) == 2:
                for (orientation, x, y), other in (ends, ends[::-1]):
                    dx, dy = (1, 0) if orientation == "vertical" else (0, 1)
                    back, on = (NORTH, SOUTH) if dy else (WEST, EAST)
                    before = (other.y - dy) % self.height, (other.x - dx) % self.width
                    table[back, y, x] = tiles[before]
                    table[on, (y - dy) % self.height, (x - dx) % self.width] = tiles[other.y, other.x]
        flat = table.reshape(4, -1)
        flat.flags.writeable = False
        return flat


def mirrored_tiles(tiles: Int32, symmetry: Symmetry) -> Int32:
    """An array of tiles [height, width, ...] as its mirror image shows it."""
    if symmetry in ("x", "xy"):
        tiles = tiles[::-1]
    return tiles[:, ::-1] if symmetry in ("y", "xy") else tiles


def mirrored_edges(horizontal: Int32, vertical: Int32, symmetry: Symmetry) -> tuple[Int32, Int32]:
    """Both arrays of edges as their mirror image shows them: a side that was the north one is then the south one."""
    horizontal, vertical = mirrored_tiles(horizontal, symmetry), mirrored_tiles(vertical, symmetry)
    if symmetry in ("x", "xy"):
        horizontal = np.roll(horizontal, 1, axis=0)
    if symmetry in ("y", "xy"):
        vertical = np.roll(vertical, 1, axis=1)
    return horizontal, vertical


def mirrored_tile(x: int, y: int, width: int, height: int, symmetry: Symmetry) -> tuple[int, int]:
    """Column and row of a tile's mirror image."""
    return (width - 1 - x if symmetry in ("y", "xy") else x), (height - 1 - y if symmetry in ("x", "xy") else y)


def distances(neighbours: Int32, start: int, blocked: NDArray[np.bool_] | None = None) -> Int32:
    """int32 [tiles], steps from tile `start` to each tile; -1 where no way leads, or the tile is blocked.

    neighbours: see `LoongMap.neighbours`; blocked: bool [tiles], tiles not to enter (`start` itself may be one)
    """
    found = np.full(neighbours.shape[1], -1, np.int32)
    found[start] = 0
    frontier = np.array([start])
    steps = 0
    while len(frontier):
        steps += 1
        ahead = neighbours[:, frontier].ravel()
        ahead = ahead[ahead >= 0]
        ahead = ahead[found[ahead] < 0]
        if blocked is not None:
            ahead = ahead[~blocked[ahead]]
        found[ahead] = steps
        frontier = np.flatnonzero(found == steps)
    return found


def pearls_in_match(gaps: Int32) -> float:
    """Pearls that grow in a match on average, if each is eaten at once; gaps: int32 [..., 2]."""
    ranges, counts = np.unique(gaps.reshape(-1, 2), axis=0, return_counts=True)
    each = [_expected_pearls(least, most) for least, most in ranges.tolist()]
    return float(counts @ np.array(each, np.float64))


@lru_cache(maxsize=4096)
def _expected_pearls(least: int, most: int) -> float:
    """Of one tile: the renewal function of a gap that is uniform from `least` to `most`, at the last round."""
    if not most:
        return 0.0
    # before[t + 1] = the sum over u = 0..t of 1 + pearls(u), where pearls(u) are those of the first u rounds.
    before = [0.0] * (ROUNDS + 2)
    for rounds in range(ROUNDS + 1):
        known = before[max(0, rounds - least + 1)] - before[max(0, rounds - most)]
        pearls = known / (most - least + 1)
        before[rounds + 1] = before[rounds] + 1 + pearls
    return pearls


def read_map(source: bytes | str | Path) -> LoongMap:
    """Reads a map file, given as its bytes or as the path of a file.

    Raises MapError, with the judge's own text, for every map that the judge refuses, and SparringError for a file that
    cannot be read.
    """
    if isinstance(source, bytes):
        return _Reader(source, None).read()
    path = Path(source)
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SparringError(f"cannot read the map {path}: {error.strerror or error}") from error
    if len(data) > MOST_BYTES:
        raise SparringError(f"{path} has more than {MOST_BYTES >> 20} MiB: that is no map")
    return _Reader(data, path).read()


def write_map(loong_map: LoongMap) -> bytes:
    """The map as a file. Two maps that differ in nothing but their name differ in no line but MAP_NAME.

    Only tiles where pearls grow and edges that are not open are written; reading gives the same map again.
    """
    height, width = loong_map.height, loong_map.width
    name = " ".join(loong_map.name.split())
    lines = [f"MAP {width} {height}"]
    if loong_map.symmetry != "none":
        lines.append(f"SYMMETRY {loong_map.symmetry}")
    if name:
        lines.append(f"MAP_NAME {name}")
    if loong_map.unit_limit != DEFAULT_UNIT_LIMIT:
        lines.append(f"UNIT_LIMIT {loong_map.unit_limit}")
    grown = np.argwhere(loong_map.gaps[:, :, 1] != 0)
    lines.append(f"TILE_COUNT {len(grown)}")
    lines += [
        f"TILE {x} {y} {least} {most}"
        for (y, x), (least, most) in zip(grown.tolist(), loong_map.gaps[*grown.T].tolist(), strict=True)
    ]
    rows = np.full((2 * height, width), OPEN, np.int32)
    rows[0::2], rows[1::2] = loong_map.horizontal, loong_map.vertical
    kept = np.argwhere(rows != OPEN)
    lines.append(f"EDGE_COUNT {len(kept)}")
    for (row, column), value in zip(kept.tolist(), rows[*kept.T].tolist(), strict=True):
        kind = f"{_KIND_KELP} 0" if value == KELP else f"{_KIND_PORTAL} {value}"
        lines.append(f"EDGE {row * (width + 1) + column} {kind}")
    lines.append(f"DRAGON_COUNT {len(loong_map.dragons)}")
    for dragon in loong_map.dragons:
        places = " ".join(str(number) for number in dragon.body.ravel().tolist())
        lines.append(f"DRAGON {dragon.team} {len(dragon.body)} {places}")
    return "\n".join([*lines, "END", ""]).encode()


def map_hash(loong_map: LoongMap) -> str:
    """What tells two maps apart: 64 hexadecimal digits (SHA-256).

    The name, the order of lines and the numbers that portals go by make no difference. Dragons are shown these numbers,
    so a bot that acts on them may play two files of one hash differently: they are still the same board.
    """
    numbers = np.concatenate([loong_map.horizontal.ravel(), loong_map.vertical.ravel()])
    portals = numbers >= 0
    _, first, which = np.unique(numbers[portals], return_index=True, return_inverse=True)
    numbers[portals] = np.argsort(np.argsort(first))[which]  # by first appearance
    horizontal, vertical = np.split(numbers.reshape(-1, loong_map.width), 2)
    plain = LoongMap(
        width=loong_map.width,
        height=loong_map.height,
        gaps=loong_map.gaps,
        horizontal=horizontal,
        vertical=vertical,
        dragons=loong_map.dragons,
        symmetry=loong_map.symmetry,
        unit_limit=loong_map.unit_limit,
    )
    return hashlib.sha256(write_map(plain)).hexdigest()


class _Failed(Exception):
    """A field of a line is missing, no number or beyond 32 bits."""


class _Fields:
    """The fields of a line, read one by one as the judge reads them: a number ends at the first other character."""

    def __init__(self, line: bytes) -> None:
        self._line, self._at = line, 0

    def word(self) -> bytes:
        """The next run of characters that are not blank; empty at the line's end."""
        found = _WORD.match(self._line, self._at)
        if not found:
            return b""
        self._at = found.end()
        return found[1]

    def number(self) -> int:
        found = _NUMBER.match(self._line, self._at)
        if not found or len(found[2]) > _MOST_DIGITS or (value := int(found[1] + found[2])) not in _INT32:
            raise _Failed
        self._at = found.end()
        return value

    def numbers(self, count: int) -> list[int]:
        return [self.number() for _ in range(count)]


class _Reader:
    """Reads one map, line by line, then checks the whole; stops at the first fault, in the judge's order."""

    def __init__(self, data: bytes, file: Path | None) -> None:
        self._data, self._file = data, file
        self._number = 0
        self._line = b""
        self._width = self._height = 0
        self._name = ""
        self._symmetry: Symmetry = "none"
        self._unit_limit = DEFAULT_UNIT_LIMIT
        self._declared = {"TILE": -1, "EDGE": -1, "DRAGON": -1}
        self._read = {"TILE": 0, "EDGE": 0, "DRAGON": 0}
        self._gaps = self._horizontal = self._vertical = np.empty(0, np.int32)
        self._ends: dict[int, list[tuple[Edge, int]]] = {}
        self._dragons: list[tuple[Dragon, int]] = []
        self._occupied: dict[tuple[int, int], int] = {}

    def read(self) -> LoongMap:
        for number, line in self._lines():
            self._number, self._line = number, line
            self._directive()
        self._number = 0
        if not self._width:
            self._fail("map has no MAP line")
        self._check_counts()
        self._check_beds()
        self._check_portals()
        loong_map = LoongMap(
            width=self._width,
            height=self._height,
            gaps=self._gaps,
            horizontal=self._horizontal,
            vertical=self._vertical,
            dragons=tuple(dragon for dragon, _ in self._dragons),
            symmetry=self._symmetry,
            unit_limit=self._unit_limit,
            name=self._name,
        )
        self._check_bodies(loong_map)
        return loong_map

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(self._data.split(b"\n"), start=1):
            line = line.removesuffix(b"\r")
            if line == b"END":
                return
            if line:
                yield number, line

    def _directive(self) -> None:
        fields = _Fields(self._line)
        key = fields.word()
        if key == b"MAP":
            self._map(fields)
        elif not self._width:
            self._fail("MAP must come before ", key)
        elif key == b"MAP_NAME":
            self._name = self._line.split(b"MAP_NAME", 1)[1].strip().decode(errors="replace")
        elif key == b"SYMMETRY":
            self._read_symmetry(fields)
        elif key == b"UNIT_LIMIT":
            (limit,) = self._numbers(fields, 1, "UNIT_LIMIT needs a positive count: ")
            if limit <= 0:
                self._fail("UNIT_LIMIT needs a positive count: ", self._line)
            self._unit_limit = limit
        elif key in (b"TILE_COUNT", b"EDGE_COUNT", b"DRAGON_COUNT"):
            name = key.decode()
            (self._declared[name.removesuffix("_COUNT")],) = self._numbers(fields, 1, f"{name} needs a count: ")
        elif key == b"TILE":
            self._tile(fields)
        elif key == b"EDGE":
            self._edge(fields)
        elif key == b"DRAGON":
            self._dragon(fields)
        else:
            self._fail("unknown map line: ", self._line)

    def _map(self, fields: _Fields) -> None:
        if self._width:
            self._fail("MAP appears twice: ", self._line)
        width, height = self._numbers(fields, 2, "MAP needs a width and a height: ")
        if min(width, height) < SMALLEST_SIDE:
            self._fail(f"map must be at least {SMALLEST_SIDE}x{SMALLEST_SIDE}, got {width}x{height}")
        if max(width, height) > LARGEST_SIDE:
            self._fail(f"map must be at most {LARGEST_SIDE}x{LARGEST_SIDE}, got {width}x{height}")
        self._width, self._height = width, height
        self._gaps = np.zeros((height, width, 2), np.int32)
        self._horizontal = np.full((height, width), OPEN, np.int32)
        self._vertical = self._horizontal.copy()

    def _read_symmetry(self, fields: _Fields) -> None:
        word, beyond = fields.word(), fields.word()
        if not word or beyond:
            self._fail("SYMMETRY needs one of x, y, xy: ", self._line)
        if word not in (b"x", b"y", b"xy"):
            self._fail("SYMMETRY must be x, y or xy: ", self._line)
        self._symmetry = cast(Symmetry, word.decode())

    def _tile(self, fields: _Fields) -> None:
        x, y, least, most = self._numbers(fields, 4, "TILE needs x y minGap maxGap: ")
        if not (0 <= x < self._width and 0 <= y < self._height):
            self._fail("TILE out of bounds: ", self._line)
        if least < 0 or most < 0 or (most > 0 and not 1 <= least <= most):
            self._fail("TILE has bad gaps: ", self._line)
        self._gaps[y, x] = (least, most) if most else 0
        self._read["TILE"] += 1

    def _edge(self, fields: _Fields) -> None:
        index, kind, portal = self._numbers(fields, 3, "EDGE needs index kind portalId: ")
        if not 0 <= index < (2 * self._height + 1) * (self._width + 1):
            self._fail("EDGE index is off the map: ", self._line)
        self._read["EDGE"] += 1
        row, column = divmod(index, self._width + 1)
        if row == 2 * self._height or column == self._width:  # the far rim, which is the near one come round
            return
        edges = self._vertical if row % 2 else self._horizontal
        if kind == _KIND_PORTAL:
            if portal < 0:
                self._fail("portal EDGE needs a portal id: ", self._line)
            end = Edge("vertical" if row % 2 else "horizontal", column, row // 2)
            self._ends.setdefault(portal, []).append((end, self._number))
            edges[row // 2, column] = portal
        elif kind in (_KIND_OPEN, _KIND_KELP):
            edges[row // 2, column] = KELP if kind == _KIND_KELP else OPEN
        else:
            self._fail("EDGE has unknown kind: ", self._line)

    def _dragon(self, fields: _Fields) -> None:
        team, length = self._numbers(fields, 2, "DRAGON needs team and segment count: ")
        if team not in (0, 1):
            self._fail("DRAGON team must be 0 or 1: ", self._line)
        if length < SHORTEST_DRAGON:
            self._fail("DRAGON is too short: ", self._line)
        if self._dragons and self._dragons[-1][0].team == team:
            self._fail("DRAGON teams must alternate, so dragons 0 and 1 are on different teams: ", self._line)
        dragon = len(self._dragons)
        body: list[list[int]] = []
        for _ in range(length):
            x, y = self._numbers(fields, 2, "DRAGON ran out of segments: ")
            if not (0 <= x < self._width and 0 <= y < self._height):
                self._fail("DRAGON segment out of bounds: ", self._line)
            if self._occupied.setdefault((x, y), dragon) != dragon:
                self._fail("DRAGON overlaps another dragon: ", self._line)
            body.append([x, y])
        self._dragons.append((Dragon(team, np.array(body, np.int32)), self._number))
        self._read["DRAGON"] += 1

    def _check_counts(self) -> None:
        for name, declared in self._declared.items():
            if declared != self._read[name]:
                self._fail(f"{name}_COUNT is {declared} but read {self._read[name]}")

    def _check_beds(self) -> None:
        differing = np.argwhere((self._gaps != mirrored_tiles(self._gaps, self._symmetry)).any(axis=2)).tolist()
        if differing:
            y, x = differing[0]
            mirror_x, mirror_y = mirrored_tile(x, y, self._width, self._height, self._symmetry)
            self._fail(f"pearl bed at ({x}, {y}) doesn't match its mirror at ({mirror_x}, {mirror_y})")

    def _check_portals(self) -> None:
        used: set[Edge] = set()
        for portal, ends in sorted(self._ends.items()):
            for end, line in ends:
                self._number = line
                orientation, x, y = end
                if end in used:
                    self._fail(f"portal {portal} reuses an edge of another portal at ({x}, {y})")
                used.add(end)
                edges = self._horizontal if orientation == "horizontal" else self._vertical
                if edges[y, x] < 0:
                    self._fail(f"portal {portal} end at ({x}, {y}) was overwritten")
            if len(ends) == 2 and ends[0][0].orientation != ends[1][0].orientation:
                self._fail(f"portal {portal} joins a horizontal edge to a vertical one")
        for portal, ends in sorted(self._ends.items()):
            (orientation, x, y), self._number = ends[0]
            if len(ends) != 2:
                side = "top" if orientation == "horizontal" else "left"
                self._fail(f"portal {portal} has {len(ends)} end(s) and joins nothing at {side} of ({x}, {y})")

    def _check_bodies(self, loong_map: LoongMap) -> None:
        for number, (dragon, line) in enumerate(self._dragons):
            self._number = line
            places = (dragon.body[:, 1] * self._width + dragon.body[:, 0]).tolist()
            for segment in range(1, len(places)):
                if places[segment - 1] not in loong_map.neighbours[:, places[segment]]:
                    self._fail(f"dragon {number} segment {segment} is not adjacent to the one before it")

    def _numbers(self, fields: _Fields, count: int, complaint: str) -> list[int]:
        try:
            return fields.numbers(count)
        except _Failed:
            self._fail(complaint, self._line)

    def _fail(self, text: str, quoted: bytes = b"") -> NoReturn:
        """Raises the judge's text; like the judge's, it ends at a NUL byte of what it quotes."""
        official = (text.encode() + quoted).split(b"\0", 1)[0].decode(errors="replace")
        raise MapError(official, line=self._number or None, file=self._file)
