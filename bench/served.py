"""Served play: its speed, its memory, and that load changes no match.

    .venv/bin/python bench/served.py [--opponent starter] [--policy legal] [--matches 24] [--stress-matches 200]

Speed: a scripted player, served, against a WebAssembly bot on the judge's maps, in one process and in two. Turns of
both teams count. CPU time does not depend on what else the machine does; the turns a second do. Memory: what the
process of 8 matches has at its peak, less that of 1 match. Stress: matches against a bot that breeds, 20 at once and
two busy processes beside them; then each once more, alone.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from loong_maps import simple_map
from wat_bots import write_bot

from sparring.judge.entrants import load_entrant
from sparring.judge.match import play_match
from sparring.judge.schedule import Job, schedule
from sparring.judge.served import ServedLoong, serve, served_entrant
from sparring.levels.maps import map_hash, read_map
from sparring.levels.pool import named_maps
from sparring.policies.scripted import ScriptedPolicy


@dataclass
class Measured:
    """One run of served play. cpu: seconds of this process and of the workers; peak: MiB of the largest worker."""

    turns: int
    bot_turns: int
    batch: float
    wall: float
    cpu: tuple[float, float]
    peak: float


def measure(jobs: list[Job], script: str, *, workers: int, threads: int) -> Measured:
    cpu, children, started = time.process_time(), _children(), time.monotonic()
    turns = bot_turns = decisions = batches = 0
    with ServedLoong(jobs, workers=workers, threads=threads) as game:
        scripted = ScriptedPolicy(game, script)

        class Counted:
            def act(self, rows: object) -> torch.Tensor:
                nonlocal decisions, batches
                decisions, batches = decisions + len(rows), batches + 1  # type: ignore[arg-type]
                return scripted.act(rows)  # type: ignore[arg-type]

        for _, played in game.play(Counted()):
            turns += played.turns
            bot_turns += sum(team.turns for team in (played.a, played.b) if team.kind == "wasm")
        wall = time.monotonic() - started
        peak = max(_peak(pid) for pid in game.pids)
    own, theirs = time.process_time() - cpu, _children() - children
    return Measured(turns, bot_turns, decisions / batches, wall, (own, theirs), peak)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peak(pid: int) -> float:
    """MiB that a process had at most."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def speed(opponent: str, policy: str, matches: int) -> None:
    entrants = [served_entrant(policy, "bench"), load_entrant(opponent)]
    jobs = list(schedule(entrants, named_maps("shipped"), seed=1, matches=matches))
    rates = {}
    for workers in (1, 2):
        got = measure(jobs, policy, workers=workers, threads=4)
        own, theirs = (1e6 * seconds / got.turns for seconds in got.cpu)
        rates[workers] = got.turns / got.wall
        print(
            f"{workers} x 4 matches at once: {got.turns:,} turns, {got.bot_turns:,} of the bot; {rates[workers]:,.0f} "
            f"turns/s; CPU of a turn {own:.0f} us here, {theirs:.0f} us in the workers, so {1e6 / (own + theirs):,.0f} "
            f"turns/s of a core; mean batch {got.batch:.1f}"
        )
    print(f"two workers: {rates[2] / rates[1]:.2f} times the turns of one (load {os.getloadavg()[0]:.1f})")
    one, eight = (measure(jobs[:8], policy, workers=1, threads=threads).peak for threads in (1, 8))
    print(f"memory: {one:.0f} MiB with 1 match, {eight:.0f} MiB with 8: {(eight - one) / 7:.1f} MiB a match in flight")


def stress(matches: int) -> None:
    pearls = (f"TILE {x} {y} 1 60" for x in range(12) for y in range(12))
    dragons = ("0 4 1 1 2 1 3 1 4 1", "1 4 8 8 7 8 6 8 5 8")
    board = simple_map("12 12", dragons, ("UNIT_LIMIT 8", *pearls))
    with tempfile.TemporaryDirectory() as folder:
        bot = load_entrant(write_bot(Path(folder), "breeder"))
    player = load_entrant("legal")
    alone = [
        Job(a=a, b=b, map_name="open", map_hash=map_hash(read_map(board)), map_bytes=board, seed=seed)
        for seed, (a, b) in enumerate([(player, bot), (bot, player)] * (matches // 2))
    ]
    us = served_entrant(player.name, player.hash)
    jobs = [replace(job, **{seat: us for seat in "ab" if getattr(job, seat) is player}) for job in alone]
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(2)]
    try:
        ended = {job.seed: played for job, played in serve(player.name, jobs, workers=2, threads=10)}
    finally:
        for process in busy:
            process.kill()
            process.wait()
    different = births = 0
    for job in alone:
        served, again = ended[job.seed], play_match(board, job.a, job.b, seed=job.seed, map_name="open")
        for seat in ("a", "b"):
            births += getattr(again, seat).born * (getattr(again, seat).kind == "wasm")
        different += as_scripted(served) != again
    print(f"stress: {different} of {len(alone)} matches differ from those played alone; {births:,} sandboxes were born")


def as_scripted(played):  # type: ignore[no-untyped-def]
    teams = {seat: getattr(played, seat) for seat in ("a", "b")}
    return replace(
        played, **{seat: replace(team, kind="scripted") for seat, team in teams.items() if team.kind == "served"}
    )


def main(opponent: str = "starter", policy: str = "legal", matches: int = 24, stress_matches: int = 200) -> None:
    torch.set_num_threads(1)
    speed(opponent, policy, matches)
    if stress_matches:
        stress(stress_matches)


if __name__ == "__main__":
    tyro.cli(main)
