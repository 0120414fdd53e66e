"""Facts about maps: what a map is like, what is wrong or odd about it, and a pool's figures beside those of others."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from sparring.errors import SparringError
from sparring.levels.maps import (
    KELP,
    ROUNDS,
    LoongMap,
    MapError,
    distances,
    map_hash,
    mirrored_edges,
    mirrored_tile,
    pearls_in_match,
    read_map,
)
from sparring.levels.shipped import SHIPPED

_LOADS_PER_PROCESS = 1000
_UNLIKE = "Sparring's reader disagrees, which is a fault of Sparring or an unknown version of the judge"


@dataclass(frozen=True, kw_only=True)
class MapFacts:
    """What a map is like. Shares are of all tiles or edges, gaps in rounds, steps as a dragon goes, portals counted.

    pearls_per_100_tiles: pearls that grow each round on 100 tiles, on average, if each is eaten at once
    reach:                share of tiles that team A's queen can get to, had it no bodies in its way
    beds_out_of_reach:    tiles with pearls that neither queen can get to
    queens_apart:         steps from one queen's head to the other's; None where no way leads
    longest, segments:    longest dragon and sum of all lengths, of team A
    """

    width: int
    height: int
    symmetry: str
    unit_limit: int
    kelp: float
    portals: int
    beds: float
    beds_out_of_reach: int
    pearls_per_100_tiles: float
    gap_ranges: int
    shortest_gap: int
    longest_gap: int
    dragons: tuple[int, int]
    longest: int
    segments: int
    reach: float
    queens_apart: int | None


@dataclass(frozen=True, kw_only=True)
class MapReport:
    """What the check of one file found.

    error:    why the judge refuses the map, with file and line, or None where it takes it
    official: the judge's own words in that
    hash:     see `map_hash`; None where the map is refused
    notes:    what is allowed but may not be meant, a line each
    """

    path: Path
    error: str | None = None
    official: str | None = None
    hash: str | None = None
    facts: MapFacts | None = None
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "path": str(self.path)}


def map_facts(loong_map: LoongMap) -> MapFacts:
    tiles = loong_map.width * loong_map.height
    gaps = loong_map.gaps.reshape(tiles, 2)
    grown = gaps[:, 1] > 0
    heads = [int(dragon.body[0, 1]) * loong_map.width + int(dragon.body[0, 0]) for dragon in loong_map.dragons[:2]]
    away = [distances(loong_map.neighbours, head) for head in heads]
    reached = np.any([steps >= 0 for steps in away], axis=0) if away else np.zeros(tiles, np.bool_)
    lengths = [[len(dragon.body) for dragon in loong_map.dragons if dragon.team == team] for team in (0, 1)]
    apart = int(away[0][heads[1]]) if len(heads) == 2 else -1
    kelp = int((loong_map.horizontal == KELP).sum() + (loong_map.vertical == KELP).sum())
    return MapFacts(
        width=loong_map.width,
        height=loong_map.height,
        symmetry=loong_map.symmetry,
        unit_limit=loong_map.unit_limit,
        kelp=kelp / (2 * tiles),
        portals=len(loong_map.portals),
        beds=float(grown.mean()),
        beds_out_of_reach=int((grown & ~reached).sum()),
        pearls_per_100_tiles=100 * pearls_in_match(gaps) / (ROUNDS * tiles),
        gap_ranges=len(np.unique(gaps[grown], axis=0)),
        shortest_gap=int(gaps[grown, 0].min(initial=gaps.max())),
        longest_gap=int(gaps[:, 1].max()),
        dragons=(len(lengths[0]), len(lengths[1])),
        longest=max(lengths[0], default=0),
        segments=sum(lengths[0]),
        reach=float((away[0] >= 0).mean()) if away else 0.0,
        queens_apart=apart if apart >= 0 else None,
    )


def asymmetries(loong_map: LoongMap) -> tuple[str, ...]:
    """Which of "kelp", "portals" and "dragons" are not mirror images of themselves; the judge checks beds alone.

    Dragons are, where 2k + 1 is the image of 2k.
    """
    width, height, symmetry = loong_map.width, loong_map.height, loong_map.symmetry
    found = []
    sides = loong_map.horizontal, loong_map.vertical
    mirrored = mirrored_edges(*sides, symmetry)
    if any(((side == KELP) != (image == KELP)).any() for side, image in zip(sides, mirrored, strict=True)):
        found.append("kelp")
    # The images of a portal's two ends belong to one portal again, so each number turns into just one other.
    pairs = {
        pair
        for side, image in zip(sides, mirrored, strict=True)
        for pair in zip(side.ravel().tolist(), image.ravel().tolist(), strict=True)
        if max(pair) >= 0
    }
    if any(min(pair) < 0 for pair in pairs) or len(pairs) != len({of for of, _ in pairs}):
        found.append("portals")
    images = [
        [mirrored_tile(x, y, width, height, symmetry) for x, y in dragon.body.tolist()] for dragon in loong_map.dragons
    ]
    bodies = [[(x, y) for x, y in dragon.body.tolist()] for dragon in loong_map.dragons]
    if len(bodies) % 2 or any(bodies[one + 1] != images[one] for one in range(0, len(bodies), 2)):
        found.append("dragons")
    return tuple(found)


def map_notes(loong_map: LoongMap, facts: MapFacts) -> tuple[str, ...]:
    """What the judge allows but a map's author may not have meant."""
    notes = []
    shipped = SHIPPED.get(map_hash(loong_map))
    if shipped:
        notes.append(f"it is {shipped}, one of the maps shipped with the judge")
    uneven = asymmetries(loong_map)
    if uneven:
        notes.append(f"not mirror images of themselves: {', '.join(uneven)}; the teams start from unlike places")
    if 0 in facts.dragons:
        notes.append("a team has no dragon; the match ends after its first round")
    elif facts.queens_apart is None:
        notes.append("no way leads from one queen to the other")
    if max(facts.dragons) > loong_map.unit_limit:
        notes.append(
            f"a team starts with {max(facts.dragons)} dragons, more than UNIT_LIMIT {loong_map.unit_limit}; "
            "the judge's C++ helper stops on such a map"
        )
    if facts.beds_out_of_reach:
        notes.append(f"{facts.beds_out_of_reach} tiles with pearls are out of both queens' reach")
    occupied = np.zeros(facts.width * facts.height, np.bool_)
    bodies = [dragon.body[:, 1] * facts.width + dragon.body[:, 0] for dragon in loong_map.dragons]
    for number, body in enumerate(bodies):
        if len(np.unique(body)) < len(body):
            notes.append(f"dragon {number} lies on a tile twice")
        occupied[body] = True
    for number, body in enumerate(bodies):
        ways = loong_map.neighbours[:, body[0]]
        if occupied[ways[ways >= 0]].all():
            notes.append(f"dragon {number} is shut in: no first step is free")
    return tuple(notes)


def check_maps(paths: Iterable[Path], *, judge: bool = False) -> list[MapReport]:
    """Reads map files and says what is wrong with each. A folder stands for the .map files in it, in order of name.

    judge: let the installed judge load each map too; where it says something else than this reader, that is the error

    Raises SparringError where a file or folder cannot be read, or `judge` is asked for and not installed.
    """
    files = map_files(paths)
    reports = [_check(path) for path in files]
    if judge:
        for number, (report, says) in enumerate(zip(reports, _judged(files), strict=True)):
            if says != report.official:
                reports[number] = replace(
                    report, error=f"{report.path}: the judge says: {says or 'all well'}; {_UNLIKE}"
                )
    return reports


def _check(path: Path) -> MapReport:
    try:
        loong_map = read_map(path)
    except MapError as error:
        return MapReport(path=path, error=str(error), official=error.official)
    facts = map_facts(loong_map)
    return MapReport(path=path, hash=map_hash(loong_map), facts=facts, notes=map_notes(loong_map, facts))


def map_files(paths: Iterable[Path]) -> list[Path]:
    """The paths, each folder replaced by the .map files in it, in order of name.

    Raises SparringError for a path that is not there, a folder without maps, and no paths at all.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(path.glob("*.map"))
            if not found:
                raise SparringError(f"no .map files in {path}")
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise SparringError(f"no map {path}: there is no such file or folder")
    if not files:
        raise SparringError("no map named: give a map file, or a folder with .map files")
    return files


Quantity = Callable[[MapFacts], float]
_QUANTITIES: dict[str, tuple[Quantity, str]] = {
    "longer side": (lambda facts: max(facts.width, facts.height), ".0f"),
    "shorter side": (lambda facts: min(facts.width, facts.height), ".0f"),
    "kelp, % of edges": (lambda facts: 100 * facts.kelp, ".1f"),
    "portal pairs": (lambda facts: facts.portals, ".0f"),
    "beds, % of tiles": (lambda facts: 100 * facts.beds, ".1f"),
    "pearls a round on 100 tiles": (lambda facts: facts.pearls_per_100_tiles, ".2f"),
    "different gap ranges": (lambda facts: facts.gap_ranges, ".0f"),
    "shortest gap": (lambda facts: facts.shortest_gap, ".0f"),
    "longest gap": (lambda facts: facts.longest_gap, ".0f"),
    "dragons a team": (lambda facts: facts.dragons[0], ".0f"),
    "longest dragon": (lambda facts: facts.longest, ".0f"),
    "segments a team": (lambda facts: facts.segments, ".0f"),
    "reach of a queen, % of tiles": (lambda facts: 100 * facts.reach, ".0f"),
    "steps between the queens": (lambda facts: np.nan if facts.queens_apart is None else facts.queens_apart, ".0f"),
}
_PERCENTILES = (0, 10, 50, 90, 100)


def statistics_table(pools: Mapping[str, Sequence[MapFacts]]) -> Table:
    """Least value, 10 % quantile, median, 90 % quantile and greatest value of each quantity in each pool, as Markdown.

    Counts of mirrors, and of maps whose queens cannot reach each other, follow.
    """
    table = Table(box=box.MARKDOWN)
    table.add_column("least, 10 %, median, 90 %, most")
    for name, pool in pools.items():
        table.add_column(f"{name} ({len(pool):,})", justify="right")
    for quantity, (value, form) in _QUANTITIES.items():
        cells = []
        for pool in pools.values():
            quantiles = np.nanpercentile([value(facts) for facts in pool], _PERCENTILES, method="nearest")
            cells.append(", ".join(format(number, form) for number in quantiles.tolist()))
        table.add_row(quantity, *cells)
    for symmetry in ("x", "y", "xy", "none"):
        table.add_row(
            f"mirror {symmetry}", *(str(Counter(f.symmetry for f in pool)[symmetry]) for pool in pools.values())
        )
    table.add_row("queens sealed off", *(str(sum(f.queens_apart is None for f in pool)) for pool in pools.values()))
    return table


def _judged(files: Sequence[Path]) -> list[str | None]:
    """What the installed judge says to each map, None where it loads."""
    if importlib.util.find_spec("unswbc") is None:
        raise SparringError("the judge is not installed: pip install 'sparring[loong]'")
    # In processes of their own: each load takes gigabytes of address space that the judge does not give back.
    context = multiprocessing.get_context("spawn")
    says: list[str | None] = []
    for at in range(0, len(files), _LOADS_PER_PROCESS):
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as process:
            says += process.map(_judge_says, files[at : at + _LOADS_PER_PROCESS])
    return says


@lru_cache(maxsize=1)
def _judge() -> Any:
    from unswbc.engine import EngineModule  # type: ignore[import-untyped, unused-ignore]

    return EngineModule()


def _judge_says(path: Path) -> str | None:
    try:  # empty replies: all dragons die in round 0
        _judge().run(path.read_bytes(), lambda dragon, block: b"\n", on_notice=lambda line: None, debug=0)
    except RuntimeError as refused:
        return str(refused)
    return None
