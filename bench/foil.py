"""How the foil fares in lanes against the scripted players; the same foil in the judge; what it took there.

    .venv/bin/python bench/foil.py [--matches 200] [--maps DIR] [--wish NAME=VALUE ...]
    .venv/bin/python bench/foil.py --judge 100 --out matches      # the judge's foil does what that of the lanes does
    .venv/bin/python bench/foil.py --extremes 240 --out matches   # the smallest maps, small ones, and the largest
    .venv/bin/python bench/foil.py --total matches                # of all matches on record there

Every opponent plays the same maps and seeds from both seats. Draws count half; the interval is Wilson's for 95 %. The
verdict is that of `sparring verdict` on the same matches. With --out the same command goes on where it was stopped;
`sparring verdict` and `sparring ladder` may use the same folder.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray
from players import wilson

from sparring import _core
from sparring.judge.entrants import load_entrant
from sparring.judge.native import load_level
from sparring.judge.records import RECORDS, FailedMatch, Records, load_records
from sparring.judge.schedule import Job, schedule
from sparring.judge.sides import open_side
from sparring.judge.statistics import Sprt
from sparring.judge.work import play_missing
from sparring.levels.generator import generate_map
from sparring.levels.maps import LARGEST_SIDE, SMALLEST_SIDE, map_hash, read_map, write_map
from sparring.levels.pool import PoolMap, named_maps

ACTION, LANE = np.dtype(_core.LOONG_ACTION), np.dtype(_core.LOONG_LANE)
SOMEBODY_ELSE = 255
MAP_SEED = 30_000
"""Of the generator: maps that neither training nor tune_foil.py uses."""
SMALL, SMALL_AMONG = 200, "generated:50000:500"
"""Tiles of a map on which a match is short, and the maps among which they are."""
OPPONENTS = ("legal", "reckless", "starter", "forager", "splitter", "hunter")
EQUALITY = "equality.jsonl"
"""In a folder of matches: those of --judge, one line each."""


def wishes(changes: Sequence[str] = ()) -> NDArray[np.int32]:
    """A row of wishes: the usual ones with `changes` such as "trade=0"."""
    table = dict(_core.LOONG_FOIL)
    for change in changes:
        name, _, value = change.partition("=")
        if name not in table:
            raise SystemExit(f"no wish {name}: there are {', '.join(table)}")
        table[name] = int(value)
    return np.array([list(table.values())], np.int32)


def generated(count: int, seed: int = MAP_SEED) -> list[_core.LoongLevel]:
    return [load_level(write_map(generate_map(seed, index))) for index in range(count)]


def points_against(
    levels: list[_core.LoongLevel], row: NDArray[np.int32], opponent: str | NDArray[np.int32], matches: int
) -> NDArray[np.float64]:
    """Points of the foil in each match, 1 a win; matches 2i and 2i + 1 differ in seats only.

    opponent: a scripted player, or the wishes of another foil.
    """
    points = []
    for first in range(0, matches, 32):  # few at a time: what dragons remember takes memory
        lanes = np.arange(min(32, matches - first))
        pair = (first + lanes) // 2
        level = pair % len(levels)
        used = sorted(set(level.tolist()))
        batch = _core.LoongMatches(
            [levels[each] for each in used],
            len(lanes),
            threads=os.cpu_count() or 1,
            knowledge=True,
            mirror="never",
            build=_core.LOONG_FOIL_BUILD,
        )
        batch.restart(lanes, np.searchsorted(used, level), pair.astype(np.uint64))
        foils = np.full((len(lanes), 2), SOMEBODY_ELSE, np.uint8)
        foils[lanes, lanes % 2] = 0
        scripts = np.full((len(lanes), 2), SOMEBODY_ELSE, np.uint8)
        if isinstance(opponent, str):
            table = row
            scripts[lanes, 1 - lanes % 2] = _core.LOONG_SCRIPTS.index(opponent)
        else:
            table = np.concatenate([row, opponent])
            foils[lanes, 1 - lanes % 2] = 1
        rows, actions = batch.rows.view(LANE)[:, 0], np.zeros((len(lanes), ACTION.itemsize), np.uint8)
        while rows["waiting"].any():
            batch.decide_foil(foils, table, actions)
            batch.decide(scripts, 1, actions)
            batch.act(actions)
        if rows["fault"].any():
            raise SystemExit(f"match {first + int(np.flatnonzero(rows['fault'])[0])} has a fault")
        won = rows["winner"] == 1 + lanes % 2
        points += (won + 0.5 * (rows["winner"] == 0)).tolist()
    return np.array(points)


def same_in_judge(matches: int, out: Path) -> None:
    """Ask the bot in the sandbox what the lanes ask the foil, turn by turn, in whole matches against itself.

    The last twentieth is on maps of any size, the others on small ones.
    """
    bot, small = load_entrant("foil"), small_maps()
    out.mkdir(parents=True, exist_ok=True)
    path = out / EQUALITY
    done = len(path.read_text().splitlines()) if path.exists() else 0
    for match in range(done, matches):
        file = small[match].file if match < matches * 19 // 20 else write_map(generate_map(MAP_SEED, match))
        batch = _core.LoongMatches([load_level(file)], 1, knowledge=True, mirror="never", build=_core.LOONG_FOIL_BUILD)
        batch.restart(np.array([0]), np.array([0]), np.array([match], np.uint64))
        rows, action = batch.rows.view(LANE)[:, 0], np.zeros((1, ACTION.itemsize), np.uint8)
        alive: set[int] = set()
        points: list[int] = []
        memory = 0
        with open_side(bot, seed=match, team="A") as side:
            while rows["waiting"][0]:
                dragon = int(rows["dragon"][0])
                if dragon not in alive:
                    for dead in alive - {each[0] for each in batch.dragons(0)}:
                        side.died(dead)
                        alive.remove(dead)
                    alive.add(dragon)
                    side.spawn(dragon, batch.init(0))
                batch.decide_foil(np.zeros((1, 2), np.uint8), wishes(), action)
                answer = side.reply(dragon, batch.block(0))
                if answer.error or answer.reply != _core.loong_reply(action.tobytes()):
                    raise SystemExit(f"match {match}, round {rows['round'][0]}, dragon {dragon}: {answer}")
                points.append(answer.points)
                memory = max(memory, answer.memory)
                batch.act(action)
            if side.retries:
                raise SystemExit(f"match {match}: {side.retries} crashes")
        p50, p99 = (int(np.percentile(points, percent, method="higher")) for percent in (50, 99))
        line = {
            "map_hash": map_hash(read_map(file)),
            "bot": bot.hash,
            "turns": len(points),
            "points_p50": p50,
            "points_p99": p99,
            "points_max": max(points),
            "memory_max": memory,
        }
        with path.open("a") as records:
            records.write(json.dumps(line) + "\n")
        print(f"match {match + 1}: {len(points):,} turns alike", flush=True)


def bare_map(side: int, gap: int) -> PoolMap:
    """A square board without kelp, two dragons a team in opposite corners, a pearl bed on every `gap`-th tile."""
    far, low = side - 1, side - 2
    lines = [f"TILE {x} {y} 3 9" for y in range(0, side, gap) for x in range(0, side, gap)]
    head = [f"MAP {side} {side}", f"TILE_COUNT {len(lines)}", "EDGE_COUNT 0", "DRAGON_COUNT 4"]
    dragons = ["0 3 1 1 0 1 0 0", f"1 3 {low} {low} {far} {low} {far} {far}"]
    dragons += ["0 2 1 3 0 3", f"1 2 {low} {far - 3} {far} {far - 3}"]
    file = "\n".join([*head, *lines, *(f"DRAGON {each}" for each in dragons), "END", ""]).encode()
    return PoolMap(hash=map_hash(read_map(file)), source=f"{side}x{side}", file=file)


def small_maps() -> list[PoolMap]:
    """Generated maps of at most SMALL tiles."""
    return [each for each in named_maps(SMALL_AMONG) if math.prod(map(int, each.file.split()[1:3])) <= SMALL]


def play_extremes(matches: int, out: Path) -> None:
    """Matches of the foil in the judge, on each map against another opponent from both seats."""
    foil, others = load_entrant("foil"), [load_entrant(name) for name in OPPONENTS]
    small, largest = [bare_map(SMALLEST_SIDE, 2), *small_maps()], bare_map(LARGEST_SIDE, 8)
    if matches // 2 > len(small) + 1:
        raise SystemExit(f"there are maps for {2 * len(small) + 2} matches")
    jobs: list[Job] = []
    for number, each in enumerate([*small[: matches // 2 - 1], largest]):
        jobs += schedule([foil, others[number % len(others)]], [each], seed=0, matches=2)
    with Records(out) as records:
        for number, record in enumerate(play_missing(jobs, records, workers=1), start=1):
            print(f"match {number}: {record.map_name}, {record.a.name} against {record.b.name}", flush=True)


def sum_up(out: Path) -> None:
    """Sums up all matches of today's foil that are on record in this folder."""
    foil = load_entrant("foil")
    rows: dict[str, list[dict[str, Any]]] = {}
    maps: set[str] = set()
    if (out / EQUALITY).exists():
        lines = [json.loads(line) for line in (out / EQUALITY).read_text().splitlines()]
        rows["foil, as in lanes"] = [line for line in lines if line["bot"] == foil.hash]
        maps |= {line["map_hash"] for line in rows["foil, as in lanes"]}
    faults = {"matches without a result": 0, "failed turns": 0, "crashes": 0}
    for record in load_records(out / RECORDS):
        teams = [team for team in (record.a, record.b) if team.hash == foil.hash]
        if not teams:
            continue
        if isinstance(record, FailedMatch):
            faults["matches without a result"] += 1
            continue
        maps.add(record.map_hash)
        for team in teams:
            faults["failed turns"] += team.errors
            faults["crashes"] += team.retries
            other = record.b if team is record.a else record.a
            won = None if record.winner is None else (record.winner == "A") == (team is record.a)
            rows.setdefault(other.name, []).append(
                dataclasses.asdict(team) | {"won": 0.5 if won is None else float(won)}
            )
    print("opponent           matches    won        turns   points p50      p99      max     memory")
    every = [row for group in rows.values() for row in group]
    for name, group in [*sorted(rows.items()), ("all", every)]:
        won = f"{sum(row['won'] for row in group):g}" if all("won" in row for row in group) else "-"
        turns, memory = sum(row["turns"] for row in group), max(row["memory_max"] for row in group)
        p50 = float(np.median([row["points_p50"] for row in group])) / 1e6
        p99, most = (max(row[f"points_{which}"] for row in group) / 1e6 for which in ("p99", "max"))
        took = f"{p50:10.2f} M {p99:6.2f} M {most:6.2f} M {memory >> 10:6,d} KiB"
        print(f"{name:18s} {len(group):7d} {won:>6s} {turns:12,d} {took}")
    print(f"{len(maps)} maps; " + ", ".join(f"{count} {what}" for what, count in faults.items()))


def main(
    matches: int = 200,
    maps: Path | None = None,
    wish: tuple[str, ...] = (),
    against: tuple[str, ...] = ("hunter", "splitter", "forager", "legal", "reckless"),
    judge: int = 0,
    extremes: int = 0,
    total: Path | None = None,
    out: Path = Path("matches"),
) -> None:
    """matches: against each; maps: a folder of map files, else generated ones; judge, extremes: so many matches in the
    judge; out: their folder; total: such a folder."""
    if judge:
        same_in_judge(judge, out)
    if extremes:
        play_extremes(extremes, out)
    if total is not None:
        sum_up(total)
    if judge or extremes or total is not None:
        return
    levels = [load_level(path.read_bytes()) for path in sorted(maps.glob("*.map"))] if maps else generated(matches // 2)
    for opponent in against:
        points = points_against(levels, wishes(wish), opponent, matches)
        low, high = wilson(float(points.sum()), matches)
        verdict = Sprt().judge(points.tolist())
        said = f"{verdict.outcome or 'no verdict yet'} after {verdict.matches} matches"
        print(f"foil against {opponent:9s} {points.mean():.3f} ({low:.3f} to {high:.3f}), {said}", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
