"""How the scripted players of Loong fare against each other.

    .venv/bin/python bench/players.py [--matches 200] [--maps DIR]

Every pair plays the same maps and seeds from both seats. Draws count half. The interval is Wilson's for 95 %, on the
matches as if each were drawn by itself. Maps are generated ones, or those of a folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tyro

from sparring import _core
from sparring.judge.native import load_level
from sparring.judge.statistics import wilson
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map

LANE = np.dtype(_core.LOONG_LANE)
ACTION_BYTES = np.dtype(_core.LOONG_ACTION).itemsize


def play(levels: list[_core.LoongLevel], pair: tuple[int, int], matches: int) -> tuple[float, float]:
    """Points of the first of the pair, a win being 1, and the mean length of a match in dragon-turns."""
    lanes = np.arange(matches)
    batch = _core.LoongMatches(levels, matches, threads=os.cpu_count() or 1)
    batch.restart(lanes, lanes // 2 % len(levels), (lanes // 2).astype(np.uint64))  # two matches differ in seats only
    first_is_b = lanes % 2 == 1
    scripts = np.where(first_is_b[:, None], pair[::-1], pair).astype(np.uint8)
    actions = np.zeros((matches, ACTION_BYTES), np.uint8)
    rows = batch.rows.view(LANE)[:, 0]
    turns = 0
    while waiting := np.count_nonzero(rows["waiting"]):
        batch.decide(scripts, 1, actions)
        batch.act(actions)
        turns += waiting
    if rows["fault"].any():
        raise SystemExit(f"lane {np.flatnonzero(rows['fault'])[0]} has a fault")
    won = rows["winner"] == np.where(first_is_b, 2, 1)
    return float(won.sum() + 0.5 * (rows["winner"] == 0).sum()), turns / matches


def main(matches: int = 200, maps: Path | None = None) -> None:
    """matches: of each pair, an even number; maps: a folder of map files, else generated ones."""
    if maps:
        files = [path.read_bytes() for path in sorted(maps.glob("*.map"))]
    else:
        files = [write_map(generate_map(20_000, index)) for index in range(matches // 2)]
    levels = [load_level(file) for file in files]
    print(
        f"{matches} matches a pair on {min(len(levels), matches // 2)} maps; share of the first, and turns of a match"
    )
    names = _core.LOONG_SCRIPTS
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            points, turns = play(levels, (a, b), matches)
            low, high = wilson(points, matches)
            print(f"{names[a]:9s} against {names[b]:9s} {points / matches:.3f} ({low:.3f} to {high:.3f}) {turns:8,.0f}")


if __name__ == "__main__":
    tyro.cli(main)
