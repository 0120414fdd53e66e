"""Our Loong engine on a GPU: first the proof that it plays what the CPU plays, then how fast and in how much memory.

    .venv/bin/python bench/gpu_engine.py [--turns 4000]

The proof: 1,024 matches of scripted players of every kind on generated maps, on both. Actions, rows and views are
compared after every turn, the whole memory of all lanes every 250 turns. The first difference ends the run with exit
code 1; without a GPU the run ends with exit code 2. Then, on maps of about 32x32 tiles: dragon-turns per second of the
rules alone, of the rules with views, and of the rules with random players in the core.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from sparring import _core
from sparring.errors import SparringError
from sparring.games.loong_cuda import ACTION_BYTES, CudaMatches
from sparring.judge.native import load_level
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map

LANE = np.dtype(_core.LOONG_LANE)
CHECKED = 1024
COMPARE_MEMORY_EVERY = 250
LANES = (2048, 8192, 32768)
STEPS = 300
RESTART_EVERY = 25
AREA = range(900, 1100)
MAPS = 16


def levels_like(wanted: Callable[[int], bool]) -> list[_core.LoongLevel]:
    """The first generated maps whose area is wanted."""
    found: list[_core.LoongLevel] = []
    index = 0
    while len(found) < MAPS:
        candidate = generate_map(1, index)
        index += 1
        if wanted(candidate.width * candidate.height):
            found.append(load_level(write_map(candidate)))
    return found


def differ(what: str, turn: int, ours: NDArray[np.uint8], theirs: torch.Tensor, rows: NDArray[np.uint8]) -> None:
    """Stop with the first lane in which GPU and CPU are not the same."""
    unlike = np.flatnonzero((theirs.cpu().numpy() != ours).any(axis=1))
    if len(unlike) == 0:
        return
    lane = int(unlike[0])
    row = rows.view(LANE)[lane, 0]
    byte = int(np.flatnonzero(theirs[lane].cpu().numpy() != ours[lane])[0])
    print(
        f"turn {turn}: {what} of {len(unlike)} lanes differ; the first is lane {lane}, level {row['level']}, seed "
        f"{row['seed']}, round {row['round']}, dragon {row['dragon']}, byte {byte}"
    )
    sys.exit(1)


def check(turns: int) -> None:
    levels = levels_like(lambda area: area < 3000)
    cpu = _core.LoongMatches(levels, CHECKED, threads=os.cpu_count() or 1)
    gpu = CudaMatches(levels, CHECKED)
    draw = np.random.default_rng(0)
    scripts = draw.integers(0, len(_core.LOONG_SCRIPTS), (CHECKED, 2), dtype=np.uint8)
    on_gpu = torch.from_numpy(scripts).to(gpu.device)
    actions = np.zeros((CHECKED, ACTION_BYTES), np.uint8)
    sent = torch.zeros(CHECKED, ACTION_BYTES, dtype=torch.uint8, device=gpu.device)
    played = ended = 0
    start = time.perf_counter()
    for turn in range(turns):
        cpu.look()
        gpu.look()
        differ("views", turn, cpu.views, gpu.views, cpu.rows)
        cpu.decide(scripts, 5, actions)
        gpu.decide(on_gpu, 5, sent)
        differ("actions", turn, actions, sent, cpu.rows)
        rows = cpu.rows.view(LANE)[:, 0]
        played += int(np.count_nonzero(rows["waiting"]))
        cpu.act(actions)
        gpu.act(sent)
        differ("rows", turn, cpu.rows, gpu.rows, cpu.rows)
        if turn % COMPARE_MEMORY_EVERY == 0 or turn == turns - 1:
            differ("memory", turn, cpu.state(), gpu.state(), cpu.rows)
        over = np.flatnonzero(rows["over"])
        if len(over) > 0:
            which, seeds = draw.integers(0, len(levels), len(over)), draw.integers(0, 2**62, len(over))
            cpu.restart(over, which, seeds.astype(np.uint64))
            gpu.restart(torch.from_numpy(over), torch.from_numpy(which), torch.from_numpy(seeds))
            ended += len(over)
    print(
        f"GPU and CPU play the same: {CHECKED:,} lanes, {played:,} dragon-turns, {ended:,} matches to their end, "
        f"{time.perf_counter() - start:.0f} s"
    )


def measure(levels: list[_core.LoongLevel], lanes: int) -> dict[str, float]:
    """Dragon-turns per second of each part, and gigabytes of the batch."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    batch = CudaMatches(levels, lanes, lean=True)
    legal = _core.LOONG_SCRIPTS.index("legal")
    scripts = torch.full((lanes, 2), legal, dtype=torch.uint8, device=batch.device)
    actions = torch.zeros(lanes, ACTION_BYTES, dtype=torch.uint8, device=batch.device)
    waiting = LANE.fields["waiting"][1] if LANE.fields else 0
    parts = {"act": batch.act, "look": lambda _: batch.look(), "decide": lambda a: batch.decide(scripts, 0, a)}
    marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in parts}
    counted = torch.zeros((), dtype=torch.int64, device=batch.device)

    def run(name: str) -> None:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        parts[name](actions)
        end.record()
        marks[name].append((begin, end))

    def play(steps: int) -> None:
        for step in range(steps):
            if step % RESTART_EVERY == 0:
                rows = batch.rows.cpu().numpy().view(LANE)[:, 0]
                over = torch.from_numpy(np.flatnonzero(rows["over"]))
                seeds = torch.from_numpy(rows["seed"][over.numpy()].view(np.int64)) + lanes
                batch.restart(over, over % len(levels), seeds)
            counted.add_(batch.rows[:, waiting].sum())
            for name in ("look", "decide", "act"):
                run(name)

    play(1500)  # until the lanes' matches are of all ages
    counted.zero_()
    for each in marks.values():
        each.clear()
    play(STEPS)
    torch.cuda.synchronize()
    seconds = {name: sum(a.elapsed_time(b) for a, b in each) / 1000 for name, each in marks.items()}
    turns = int(counted)
    return {
        "rules": turns / seconds["act"],
        "rules and views": turns / (seconds["act"] + seconds["look"]),
        "rules and random players": turns / (seconds["act"] + seconds["decide"]),
        "GB": (torch.cuda.max_memory_allocated() - before) / 2**30,
    }


def main(turns: int = 4000) -> None:
    """turns: of each lane in the proof; 0 leaves it out."""
    try:
        CudaMatches([load_level(write_map(generate_map(1, 0)))], 1)
    except SparringError as error:
        print(error)
        sys.exit(2)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    if turns > 0:
        check(turns)
    levels = levels_like(AREA.__contains__)
    lane_bytes = _core.loong_lane_bytes(levels, True)
    print(f"\ndragon-turns per second on {MAPS} generated maps of about 32x32, {lane_bytes:,} bytes a lane")
    for lanes in LANES:
        found = measure(levels, lanes)
        speeds = ", ".join(f"{name} {value / 1e6:.2f} M" for name, value in found.items() if name != "GB")
        print(f"{lanes:6,} lanes: {speeds}; {found['GB']:.2f} GB")


if __name__ == "__main__":
    tyro.cli(main)
