"""Generated maps: map i of seed S depends on S and i alone, is exactly symmetric, and loads in the judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparring.errors import SparringError
from sparring.files import written_beside
from sparring.levels.draws import Draws
from sparring.levels.kelp import STYLES, Kelp, close_rim
from sparring.levels.maps import (
    DEFAULT_UNIT_LIMIT,
    KELP,
    OPEN,
    ROUNDS,
    SMALLEST_SIDE,
    Dragon,
    Int32,
    LoongMap,
    Symmetry,
    distances,
    mirrored_edges,
    mirrored_tiles,
    pearls_in_match,
    write_map,
)

DEFAULT_COUNT = 4096

BANDS = {(7, 16): 25, (17, 32): 40, (33, 64): 35}
"""Least and most of the longer side, and how often (percent)."""
ASPECTS = {(1, 1): 6, (5, 4): 1, (4, 3): 3, (3, 2): 3, (2, 1): 5, (7, 3): 1, (3, 1): 1}
"""Longer to shorter side."""
SYMMETRIES: dict[Symmetry, int] = {"xy": 60, "y": 20, "x": 20}
STYLE_WEIGHTS = {"open": 12, "segments": 19, "rooms": 16, "pillars": 11, "border": 11, "maze": 16, "divide": 15}
RIM_PERCENT = 35
"""How often a style that leaves the board's rim open gets it closed."""
PORTAL_PAIRS = {0: 22, 1: 7, 2: 13, 3: 7, 4: 13, 5: 6, 6: 10, 8: 8, 10: 5, 12: 4, 16: 3, 20: 2}
TILES_PER_PORTAL = 24
"""At least so many tiles to each pair."""
DRAGON_COUNTS = {1: 12, 2: 22, 3: 24, 4: 14, 5: 9, 6: 6, 7: 5, 8: 4, 9: 4}
DRAGON_LENGTHS = {2: 4, 3: 8, 4: 8, 5: 2, 6: 1, 8: 1}
FLAGSHIP_PERCENT, FLAGSHIP = 20, (9, 25)
"""How often one dragon of each team is long, and how long."""
TILES_PER_SEGMENT = 8
"""At least so many tiles that can be reached to each segment of a team."""
QUEENS_APART = {40: 1, 70: 2, 90: 2}
"""At least so many steps from queen to queen, in percent of the most that the places tried have."""
LEAST_APART = 4
SEALED = {0: 8, 1: 4, 4: 2, 10: 1}
"""Regions of at most so many percent of all tiles stay sealed off if kelp seals them off, and get no pearls."""
SMALL_POCKET = 4
"""Regions of so many tiles are sealed off just like the closed boxes among pillars, whatever the percentage."""
UNIT_LIMITS = {DEFAULT_UNIT_LIMIT: 90, 32: 4, 16: 4, 10: 2}

GAPS = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80),
    *(100, 120, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000),
)
PALETTES = {"starving": (250, 4000), "lean": (80, 500), "fair": (20, 200), "rich": (4, 40), "feast": (1, 10)}
"""Between what the longest gap of a bed lies."""
PALETTE_WEIGHTS = {
    ("starving",): 12,
    ("lean",): 16,
    ("fair",): 22,
    ("rich",): 10,
    ("lean", "fair"): 10,
    ("starving", "feast"): 10,
    ("starving", "fair"): 6,
    ("fair", "feast"): 6,
    ("lean", "rich", "feast"): 6,
    ("feast",): 2,
}
"""Palettes of a map's beds, the widest bed first."""
LEAST_PEARLS = 40
"""Pearls that grow in a match, on average."""
LEAST_BEDS = 6
PEARL_DENSITY = (0.02, 8)
"""Least and most pearls that grow each round on 100 tiles; with more, they lie wherever a dragon looks."""
LONGEST_LEAST_GAP = 400
"""A bed with a longer one might never bear in a match."""

_TRIES_PER_PLAN = 6
_MOST_PLANS = 200
_HEADS_TRIED = 12
_STREAM = int.from_bytes(b"maps") << 32


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a map is to be, before it is laid out."""

    width: int
    height: int
    symmetry: Symmetry
    style: str
    rim: bool
    portal_pairs: int
    palettes: tuple[str, ...]
    lengths: tuple[int, ...]
    scattered: bool
    apart: int
    sealed: int
    unit_limit: int


def generate_map(seed: int, index: int) -> LoongMap:
    """Map `index` of the pool with this seed; seed in [0, 2^64), index in [0, 2^32).

    Kelp, portals, beds and the dragons 2k and 2k + 1 are mirror images. Both queens can reach each other, and beds on
    which LEAST_PEARLS pearls grow in a match. Raises SparringError for a seed or index out of range.
    """
    if not (0 <= seed < 2**64 and 0 <= index < 2**32):
        raise SparringError(
            f"no map {index} of seed {seed}: a seed is below 2^64, an index below 2^32, neither negative"
        )
    draws = Draws(seed, _STREAM | index)
    for _ in range(_MOST_PLANS):
        plan = _plan(draws)
        for _ in range(_TRIES_PER_PLAN):
            found = _Layout(draws, plan).map(name=f"{plan.style} {seed}-{index}")
            if found:
                return found
    raise AssertionError(f"no layout in {_MOST_PLANS} plans for map {index} of seed {seed}")


def map_file_name(seed: int, index: int) -> str:
    return f"map-{seed}-{index:05d}.map"


def generate_maps(count: int, *, seed: int, out: Path) -> Iterator[tuple[Path, LoongMap]]:
    """Writes maps 0 to count - 1 of a seed into the folder `out`, and yields each with its path once it is written.

    The same count and seed make the same files. Raises SparringError for a bad count or seed, or a file that cannot
    be written.
    """
    if not 1 <= count <= 2**32:
        raise SparringError(f"count = {count}: a pool has 1 to 2^32 maps")
    for index in range(count):
        loong_map = generate_map(seed, index)
        path = out / map_file_name(seed, index)
        with written_beside(path) as beside:
            beside.write_bytes(write_map(loong_map))
        yield path, loong_map


def _plan(draws: Draws) -> Plan:
    longer = draws.between(*draws.weighted(BANDS))
    long_part, short_part = draws.weighted(ASPECTS)
    shorter = max(SMALLEST_SIDE, (longer * short_part + long_part // 2) // long_part)
    width, height = (shorter, longer) if draws.chance(25) else (longer, shorter)
    style = draws.weighted(STYLE_WEIGHTS)
    tiles = width * height
    lengths = [draws.weighted(DRAGON_LENGTHS) for _ in range(draws.weighted(DRAGON_COUNTS))]
    if draws.chance(FLAGSHIP_PERCENT):
        lengths[draws.between(0, len(lengths) - 1)] = draws.between(*FLAGSHIP)
    while len(lengths) > 1 and sum(lengths) > tiles // TILES_PER_SEGMENT:
        lengths.pop()
    lengths[0] = max(2, min(lengths[0], tiles // TILES_PER_SEGMENT))
    return Plan(
        width=width,
        height=height,
        symmetry=draws.weighted(SYMMETRIES),
        style=style,
        rim=style not in ("border", "maze") and draws.chance(RIM_PERCENT),
        portal_pairs=min(draws.weighted(PORTAL_PAIRS), tiles // TILES_PER_PORTAL),
        palettes=draws.weighted(PALETTE_WEIGHTS),
        lengths=tuple(lengths),
        scattered=draws.chance(35),
        apart=draws.weighted(QUEENS_APART),
        sealed=draws.weighted(SEALED),
        unit_limit=draws.weighted(UNIT_LIMITS),
    )


class _Layout:
    """One try at a plan. Edges are numbered through: the north sides of all tiles, row by row, then the west sides."""

    def __init__(self, draws: Draws, plan: Plan) -> None:
        self._draws, self._plan = draws, plan
        width, height = plan.width, plan.height
        self._tiles = width * height
        shape = height, width
        own_tile = np.arange(self._tiles, dtype=np.int32).reshape(shape)
        own_edge = np.arange(2 * self._tiles, dtype=np.int32).reshape(2, *shape)
        self._twin_tile = mirrored_tiles(own_tile, plan.symmetry).ravel()
        self._twin_edge = np.stack(mirrored_edges(own_edge[0], own_edge[1], plan.symmetry)).ravel()
        # Of each edge, the tile on its other side; the tile it belongs to is its number mod tiles.
        self._beyond = np.stack([np.roll(own_tile, 1, 0), np.roll(own_tile, 1, 1)]).ravel()
        self._edges = np.full(2 * self._tiles, OPEN, np.int32)

    def map(self, name: str) -> LoongMap | None:
        """The map, or None where this try led nowhere."""
        self._plant_kelp()
        self._place_portals()
        reach = self._connect()
        gaps = self._beds(reach)
        grown = gaps[gaps[:, :, 1] > 0]
        pearls = pearls_in_match(grown)
        density = 100 * pearls / (ROUNDS * self._tiles)
        if len(grown) < LEAST_BEDS or pearls < LEAST_PEARLS or not PEARL_DENSITY[0] <= density <= PEARL_DENSITY[1]:
            return None
        dragons = self._place_dragons(self._with(gaps, (), name).neighbours, reach)
        return self._with(gaps, dragons, name) if dragons else None

    def _with(self, gaps: Int32, dragons: tuple[Dragon, ...], name: str) -> LoongMap:
        horizontal, vertical = self._edges.reshape(2, self._plan.height, self._plan.width).copy()
        return LoongMap(
            width=self._plan.width,
            height=self._plan.height,
            symmetry=self._plan.symmetry,
            unit_limit=self._plan.unit_limit,
            gaps=gaps,
            horizontal=horizontal,
            vertical=vertical,
            dragons=dragons,
            name=name,
        )

    def _plant_kelp(self) -> None:
        plan = self._plan
        kelp: Kelp = STYLES[plan.style](self._draws, plan.width, plan.height)
        if plan.rim:
            close_rim(kelp)
        # Of an edge and its mirror image the one with the lower number decides.
        decides = np.minimum(np.arange(len(self._edges)), self._twin_edge)
        self._edges[kelp.ravel()[decides]] = KELP

    def _place_portals(self) -> None:
        """Pairs of edges of one orientation, at least a third of a side apart, each pair with its mirror image."""
        plan, draws = self._plan, self._draws
        placed = 0
        for _ in range(20 * plan.portal_pairs):
            if placed == plan.portal_pairs:
                return
            one = self._random_edge()
            other = int(self._twin_edge[one]) if draws.chance(15) else self._random_edge()
            if (one < self._tiles) != (other < self._tiles) or not self._far_apart(one, other):
                continue
            twins = int(self._twin_edge[one]), int(self._twin_edge[other])
            if {one, other} == set(twins):
                pairs = [(one, other)]
            elif len({one, other, *twins}) == 4 and placed + 2 <= plan.portal_pairs:
                pairs = [(one, other), twins]
            else:
                continue
            if any(self._edges[edge] >= 0 for pair in pairs for edge in pair):
                continue
            for pair in pairs:
                self._edges[list(pair)] = placed
                placed += 1

    def _random_edge(self) -> int:
        """Any edge, every other time one with kelp if there is any: a door through a wall."""
        kelp = np.flatnonzero(self._edges == KELP)
        if len(kelp) and self._draws.chance(50):
            return int(self._draws.pick(kelp.tolist()))
        return self._draws.between(0, len(self._edges) - 1)

    def _far_apart(self, one: int, other: int) -> bool:
        """A third of both sides together, counted round the torus."""
        plan = self._plan
        rows = abs(one % self._tiles // plan.width - other % self._tiles // plan.width)
        columns = abs(one % plan.width - other % plan.width)
        return 3 * (min(rows, plan.height - rows) + min(columns, plan.width - columns)) >= plan.width + plan.height

    def _connect(self) -> NDArray[np.bool_]:
        """Opens kelp until all but small pockets hang together; returns which tiles do, bool [tiles]."""
        region = self._regions()
        sizes = np.bincount(region)
        small = SMALL_POCKET if self._plan.style == "pillars" else 0
        wanted = sizes > max(small, self._tiles * self._plan.sealed // 100)
        if not wanted.any():
            wanted[:] = True
        parent = list(range(len(sizes)))

        def root(of: int) -> int:
            while parent[of] != of:
                parent[of] = parent[parent[of]]
                of = parent[of]
            return of

        sides = region[np.arange(len(self._edges)) % self._tiles], region[self._beyond]
        between = np.flatnonzero((self._edges == KELP) & (sides[0] != sides[1]))
        between = between[self._draws.order(len(between))]
        inside = wanted[sides[0][between]] & wanted[sides[1][between]]
        gate = self._draws.between(1, 3)
        for edge in [*between[inside].tolist(), *between[~inside].tolist()]:
            if len({root(of) for of in np.flatnonzero(wanted).tolist()}) == 1:
                break
            if root(int(sides[0][edge])) == root(int(sides[1][edge])):
                continue
            along = 1 if edge < self._tiles else self._plan.width
            for opened in range(edge, min(edge + gate * along, len(self._edges)), along):
                if self._edges[opened] == KELP:
                    for twin in (opened, int(self._twin_edge[opened])):
                        self._edges[twin] = OPEN
                        parent[root(int(sides[0][twin]))] = root(int(sides[1][twin]))
        joined = np.array([root(of) for of in range(len(sizes))])
        largest = np.bincount(joined, weights=sizes).argmax()
        reach: NDArray[np.bool_] = joined[region] == largest
        return reach

    def _regions(self) -> NDArray[np.int64]:
        """int64 [tiles], a number for each region that kelp closes off, counted from 0."""
        neighbours = self._with(np.zeros((self._plan.height, self._plan.width, 2), np.int32), (), "").neighbours
        region = np.full(self._tiles, -1, np.int64)
        count = 0
        for tile in range(self._tiles):
            if region[tile] < 0:
                region[distances(neighbours, tile) >= 0] = count
                count += 1
        return region

    def _beds(self, reach: NDArray[np.bool_]) -> Int32:
        """Gaps of all tiles: one bed for each palette, a later one over an earlier one; only tiles in reach."""
        plan, draws = self._plan, self._draws
        gaps = np.zeros((self._tiles, 2), np.int32)
        for order, palette in enumerate(plan.palettes):
            for _ in range(draws.between(1, 3)):
                gaps[self._bed(wide=order == 0 and len(plan.palettes) > 1)] = self._gap(palette)
        decides = np.minimum(np.arange(self._tiles), self._twin_tile)
        gaps = gaps[decides]
        gaps[~(reach & reach[self._twin_tile])] = 0
        return gaps.reshape(plan.height, plan.width, 2)

    def _bed(self, *, wide: bool) -> NDArray[np.bool_]:
        """The tiles of one bed, bool [tiles]."""
        plan, draws = self._plan, self._draws
        y, x = np.divmod(np.arange(self._tiles), plan.width)
        shape = draws.weighted({"all": 4 if wide else 1, "scattered": 4, "patches": 5, "lines": 2, "corners": 2})
        if shape == "all":
            return np.ones(self._tiles, np.bool_)
        if shape == "scattered":
            return draws.integers(self._tiles, 100) < draws.between(3, 40 if wide else 20)
        if shape == "lines":
            period, at, along = draws.between(3, 9), draws.between(0, 8), x if draws.chance(50) else y
            lines: NDArray[np.bool_] = (along + at) % period == 0
            return lines
        if shape == "corners":  # where kelp stands on two sides or more
            sides = (self._edges == KELP).reshape(2, plan.height, plan.width)
            kelp = sides[0] + 0 + np.roll(sides[0], -1, 0) + sides[1] + np.roll(sides[1], -1, 1)
            corner: NDArray[np.bool_] = (kelp >= 2).ravel()
            if corner.sum() >= LEAST_BEDS:
                corner &= draws.integers(self._tiles, 100) < draws.between(30, 100)
                return corner
        bed = np.zeros(self._tiles, np.bool_)
        largest = max(1, min(plan.width, plan.height) // 6)
        for _ in range(draws.between(1, 3 + self._tiles // 300)):
            centre_x, centre_y = draws.between(0, plan.width - 1), draws.between(0, plan.height - 1)
            away_x, away_y = abs(x - centre_x), abs(y - centre_y)
            away_x, away_y = np.minimum(away_x, plan.width - away_x), np.minimum(away_y, plan.height - away_y)
            radius = draws.between(1, largest)
            round_one = away_x**2 + away_y**2 <= radius**2
            bed |= round_one if draws.chance(50) else np.maximum(away_x, away_y) < radius
        return bed

    def _gap(self, palette: str) -> tuple[int, int]:
        """Least and most rounds between two pearls."""
        low, high = PALETTES[palette]
        most = self._draws.pick([gap for gap in GAPS if low <= gap <= high])
        if palette == "feast" and self._draws.chance(40):
            most = 1
        least = self._draws.weighted({1: 5, most // 5: 2, most // 2: 2, most: 1})
        return max(1, min(least, LONGEST_LEAST_GAP)), most

    def _place_dragons(self, neighbours: Int32, reach: NDArray[np.bool_]) -> tuple[Dragon, ...]:
        """Team A's dragons and their mirror images, in turns; nothing where there is no room."""
        plan, draws = self._plan, self._draws
        taken = ~reach | (self._twin_tile == np.arange(self._tiles))
        near = np.zeros(self._tiles, np.bool_)
        bodies: list[list[int]] = []
        for length in plan.lengths:
            free = np.flatnonzero(~taken & near) if bodies and not plan.scattered else np.flatnonzero(~taken)
            heads = free[draws.order(len(free))[:_HEADS_TRIED]].tolist()
            for head in heads if bodies else self._homes(neighbours, heads):
                body = self._body(neighbours, taken, head, length)
                if body:
                    break
            else:
                return ()
            if not bodies:
                near = distances(neighbours, body[0]) <= 3 + 2 * len(plan.lengths)
            bodies.append(body)
            taken[body] = taken[self._twin_tile[body]] = True
        if not all(self._free(neighbours, bodies, body[0]) for body in bodies):
            return ()
        dragons = []
        for body in bodies:
            for team, tiles in ((0, np.array(body)), (1, self._twin_tile[body])):
                places = np.stack([tiles % plan.width, tiles // plan.width], axis=1).astype(np.int32)
                dragons.append(Dragon(team, places))
        return tuple(dragons)

    def _homes(self, neighbours: Int32, heads: list[int]) -> list[int]:
        """The places for team A's queen among `heads` from which the enemy's can be reached, and is far enough."""
        away = {head: int(distances(neighbours, head)[self._twin_tile[head]]) for head in heads}
        least = max(LEAST_APART, max(away.values(), default=0) * self._plan.apart // 100)
        return [head for head, steps in away.items() if steps >= least]

    def _body(self, neighbours: Int32, taken: NDArray[np.bool_], head: int, length: int) -> list[int]:
        """Tiles of a body, mostly straight, that touches neither a taken tile nor its own mirror image; or nothing."""
        draws = self._draws
        body, direction = [head], draws.between(0, 3)
        while len(body) < length:
            shut = set(body) | {int(tile) for tile in self._twin_tile[body]}
            ways = [
                way
                for way, tile in enumerate(neighbours[:, body[-1]].tolist())
                if tile >= 0 and not taken[tile] and tile not in shut
            ]
            if not ways:
                return []
            if direction not in ways or draws.chance(25):
                direction = draws.pick(ways)
            body.append(int(neighbours[direction, body[-1]]))
        return body

    def _free(self, neighbours: Int32, bodies: list[list[int]], head: int) -> bool:
        """Whether a dragon can get out: past all bodies as they lie to a dozen tiles, fewer on a small board."""
        blocked = np.zeros(self._tiles, np.bool_)
        for body in bodies:
            blocked[body] = blocked[self._twin_tile[body]] = True
        return int((distances(neighbours, head, blocked) >= 0).sum()) > min(12, self._tiles // 4)
