"""How the foil fares in lanes against the scripted players, and in the judge against itself in lanes.

    .venv/bin/python bench/foil.py [--matches 200] [--maps DIR] [--wish NAME=VALUE ...]
    .venv/bin/python bench/foil.py --judge 100

Every opponent plays the same maps and seeds from both seats. Draws count half; the interval is Wilson's for 95 %. The
verdict is that of `sparring verdict` on the same matches.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray
from players import wilson

from sparring import _core
from sparring.judge.entrants import load_entrant
from sparring.judge.foil import write_foil
from sparring.judge.native import load_level
from sparring.judge.sides import open_side
from sparring.judge.statistics import Sprt
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map

ACTION, LANE = np.dtype(_core.LOONG_ACTION), np.dtype(_core.LOONG_LANE)
SOMEBODY_ELSE = 255
MAP_SEED = 30_000
"""Of the generator: maps that neither training nor tune_foil.py uses."""


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


def same_in_judge(matches: int) -> None:
    """Ask the bot in the sandbox what the lanes ask the foil, turn by turn, in whole matches against itself."""
    with tempfile.TemporaryDirectory() as folder:
        write_foil(Path(folder, "foil"))
        bot = load_entrant(Path(folder, "foil"))
    turns, most, memory = 0, 0, 0
    for match in range(matches):
        batch = _core.LoongMatches(
            generated(match + 1)[match:], 1, knowledge=True, mirror="never", build=_core.LOONG_FOIL_BUILD
        )
        batch.restart(np.array([0]), np.array([0]), np.array([match], np.uint64))
        rows, action = batch.rows.view(LANE)[:, 0], np.zeros((1, ACTION.itemsize), np.uint8)
        alive: set[int] = set()
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
                turns, most, memory = turns + 1, max(most, answer.points), max(memory, answer.memory)
                batch.act(action)
            if side.retries:
                raise SystemExit(f"match {match}: {side.retries} crashes")
        print(
            f"{match + 1} matches, {turns:,} turns alike, at most {most / 1e6:.2f} M points, {memory >> 10} KiB",
            flush=True,
        )


def main(
    matches: int = 200,
    maps: Path | None = None,
    wish: tuple[str, ...] = (),
    against: tuple[str, ...] = ("hunter", "splitter", "forager", "legal"),
    judge: int = 0,
) -> None:
    """matches: against each; maps: a folder of map files, else generated ones; judge: so many matches in the judge."""
    if judge:
        same_in_judge(judge)
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
