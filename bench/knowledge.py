"""What knowledge costs: time and memory of lanes.

    .venv/bin/python bench/knowledge.py --lanes 256
    .venv/bin/python bench/knowledge.py --lanes 2048 --threads 2 --turns 500

Prints microseconds of processor time per decision, of all threads together: to observe (remember, fill inputs, mask),
and to act by a packed choice, rules included; decisions per second by the clock; bytes of memory by size of map and
number of dragons.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import NamedTuple

import numpy as np

from sparring import _core
from sparring.games.loong_choices import INPUTS, MASK
from sparring.games.loong_rows import LANE
from sparring.judge.native import load_level
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map

REACH = _core.LOONG_PLANES["crop"].index("reach")
AHEAD = ((6, 7), (7, 6), (7, 8))


def choices(inputs: np.ndarray, mask: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Steps to free tiles, now and then a split in two halves: dragons that live long."""
    row, allowed = inputs.view(INPUTS)[:, 0], mask.view(MASK)[:, 0]
    free = np.stack([row["crop"][:, r, c, REACH] for r, c in AHEAD], axis=1)
    step = (draw.random(free.shape) * (free > 0)).argmax(axis=1)
    sizes = allowed["sizes"].sum(axis=1, dtype=np.int64)
    split = (sizes > 0) & (draw.random(len(step)) < 0.3)
    packed = np.where(split, 2 << 3 | np.maximum(sizes // 2 - 1, 0) << 7, step << 5)
    return (packed | allowed["held"] | np.int64(25) << 32).astype(np.int64)


class Cost(NamedTuple):
    """Microseconds of processor time per decision, decisions per second, and the mean number of living dragons."""

    observe: float
    act: float
    rate: float
    alive: float


def measure(levels: list[_core.LoongLevel], lanes: int, turns: int, threads: int) -> Cost:
    matches = _core.LoongMatches(levels, lanes, threads=threads, lean=True, knowledge=True)
    inputs, mask = np.zeros((lanes, INPUTS.itemsize), np.uint8), np.zeros((lanes, MASK.itemsize), np.uint8)
    draw = np.random.default_rng(0)
    observing = acting = seconds = 0.0
    decisions = alive = 0
    for turn in range(turns):
        began, start = time.perf_counter(), time.process_time()
        matches.observe(inputs, mask)
        observing += time.process_time() - start
        seconds += time.perf_counter() - began
        packed = choices(inputs, mask, draw)
        began, start = time.perf_counter(), time.process_time()
        matches.act_packed(packed)
        acting += time.process_time() - start
        seconds += time.perf_counter() - began
        rows = matches.rows.view(LANE)[:, 0]
        decisions += lanes
        over = np.flatnonzero(rows["waiting"] == 0)
        if len(over):
            matches.restart(over, over % len(levels), (over + turn * lanes).astype(np.uint64))
        if turn % 100 == 0:
            alive += sum(len(matches.dragons(lane)) for lane in range(0, lanes, 16)) / (lanes / 16)
    return Cost(observing / decisions * 1e6, acting / decisions * 1e6, decisions / seconds, alive / (turns / 100))


def room(side: int, dragons: int) -> int:
    """Bytes that a lane keeps for what so many living dragons can remember of a square board."""
    body = f"DRAGON_COUNT 2\nDRAGON 0 2 1 1 1 2\nDRAGON 1 2 4 1 4 2\nUNIT_LIMIT {dragons // 2}\n"
    level = load_level(f"MAP {side} {side}\nTILE_COUNT 0\nEDGE_COUNT 0\n{body}".encode())
    return _core.LoongMatches([level], 1, knowledge=True).knowledge_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=2000)
    options = parser.parse_args()
    levels = [load_level(write_map(generate_map(1, index))) for index in range(24)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cost = measure(levels, options.lanes, options.turns, options.threads)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{options.lanes} lanes on 24 maps, {cost.alive:.0f} dragons alive in a lane, {options.threads} threads:")
    for side in (32, 64):
        for dragons in (8, 64):
            print(f"  room for {dragons} dragons on {side}x{side}: {room(side, dragons) / 1024:,.0f} KB a lane")
    print(f"  observe {cost.observe:.2f} us, act_packed {cost.act:.2f} us a decision; memory grew by {grown:.0f} MB")
    print(f"  {cost.rate:,.0f} decisions a second")


if __name__ == "__main__":
    main()
