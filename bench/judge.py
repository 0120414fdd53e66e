"""Matches in the organisers' engine and sandbox: what the first one waits for, what a turn costs, and whether matches
that are played at once on a loaded machine are the matches that are played one by one.

    .venv/bin/python bench/judge.py --matches 200
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import PlayedMatch, load_map, play_match
from sparring.levels.shipped import shipped_folder

FIRST_MATCH = """
import time
begun = time.process_time(), time.perf_counter()
from sparring.judge.entrants import load_entrant
from sparring.judge.match import load_map, play_match
imported = time.process_time(), time.perf_counter()
name, map_bytes = load_map("arena")
starter = load_entrant("starter")
play_match(map_bytes, starter, starter, seed=0)
played = time.process_time(), time.perf_counter()
print(*(f"{b - a:.2f} s {what}" for a, b, what in zip(imported, played, ("CPU", "wall"))), sep=", ", end="; ")
print(*(f"{b - a:.2f} s {what}" for a, b, what in zip(begun, imported, ("CPU", "wall"))), sep=", ", end=" for imports")
"""

ENGINE = """
import time
from unswbc.engine import EngineModule
begun = time.process_time()
EngineModule()
print(f"{time.process_time() - begun:.2f} s CPU", end="")
"""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=40, help="on the twelve smallest of the shipped maps")
    parser.add_argument("--threads", type=int, default=8, help="matches at once")
    given = parser.parse_args()

    starter = load_entrant("starter")
    play_match(load_map("arena")[1], starter, starter, seed=0)  # fills the caches
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            for code in (FIRST_MATCH, ENGINE)]  # fmt: skip
    print(f"first match of a process, caches warm (arena, starter against itself): {said[0]}")
    print(f"the toolkit compiles its engine, in every process: {said[1]}")

    boards = sorted((load_map(path.stem) for path in shipped_folder().glob("*.map")), key=lambda each: len(each[1]))[
        :12
    ]

    def play(number: int) -> PlayedMatch:
        name, map_bytes = boards[number % len(boards)]
        return play_match(map_bytes, starter, _others[number % len(_others)], seed=number, map_name=name)

    begun = time.process_time()
    alone = [play(number) for number in range(given.matches)]
    cpu, turns = time.process_time() - begun, sum(match.turns for match in alone)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.matches} matches one by one: {turns:,} turns, {1e6 * cpu / turns:.0f} us CPU a turn, "
          f"at most {memory:.0f} MiB")  # fmt: skip

    with ThreadPoolExecutor(given.threads) as threads:
        at_once = list(threads.map(play, range(given.matches)))
    differing = sum(one != other for one, other in zip(alone, at_once, strict=True))
    print(f"the same, {given.threads} at once: {differing} differ; "
          f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")  # fmt: skip


_others: list[Entrant] = [load_entrant(name) for name in ("starter", "legal", "forager")]

if __name__ == "__main__":
    main()
