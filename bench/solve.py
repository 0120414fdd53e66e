"""Time to solve Tennis over seeds: the official score (one rally, better racket, mean of 100) reaching +0.5.

    .venv/bin/python bench/solve.py [--recipe tennis] [--seeds 10] [--minutes 20]

One seed after another, each an ordinary run named solve-RECIPE-SEED: interrupt it and the same command goes on.
Every figure comes from training rallies, exploration noise included, but for `greedy`: 100 rallies of the final actor
without noise. `lowest after` is the lowest mean of 100 in the 500 rallies that follow the solving one.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import tyro
from rich.console import Console

import sparring
from sparring.runs.folder import RunFolder
from sparring.runs.metrics import WINDOW, read_matches

AFTER = 500


@dataclass(frozen=True)
class Row:
    seed: int
    rallies: int | None
    decisions: int | None
    minutes: float | None
    lowest_after: float | None
    last: float
    greedy: float


def lowest_mean_after(best: list[float], solved_at: int) -> float:
    """The lowest mean of 100 consecutive rallies among those that end in the 500 after number `solved_at`."""
    ends = range(solved_at, min(solved_at + AFTER, len(best)) + 1)
    return min(statistics.fmean(best[end - WINDOW : end]) for end in ends)


def solve(recipe: str, seed: int, minutes: float) -> Row:
    run = f"solve-{recipe}-{seed}"
    result = sparring.train(recipe, run=run, seed=seed, minutes=minutes, console=Console(quiet=True))
    if result.signal:  # Ctrl-C or SIGTERM: this run is saved, and the script is meant, too
        raise SystemExit(128 + result.signal)
    best = [row.best for row in read_matches(RunFolder(run).matches)]
    solved = result.solved
    return Row(
        seed=seed,
        rallies=solved and solved.match,
        # The run counts decisions of a lane; both rackets decide in each.
        decisions=solved and 2 * solved.decisions,
        minutes=solved and solved.minutes,
        lowest_after=solved and lowest_mean_after(best, solved.match),
        last=statistics.fmean(best[-WINDOW:]),
        greedy=sparring.evaluate(run, matches=100).score,
    )


def main(recipe: str = "tennis", seeds: int = 10, minutes: float = 20.0) -> None:
    """recipe: its name. seeds: how many, from 0. minutes: give up on a seed after this much time in one go."""
    print("| seed | rallies | racket decisions | minutes | lowest after | last 100 | greedy |")
    print("|---|---|---|---|---|---|---|")
    rows = []
    for seed in range(seeds):
        row = solve(recipe, seed, minutes)
        rows.append(row)
        if row.rallies is None:
            print(f"| {seed} | not solved | | | | {row.last:.3f} | {row.greedy:.2f} |", flush=True)
        else:
            print(
                f"| {seed} | {row.rallies:,} | {row.decisions:,} | {row.minutes:.2f} | {row.lowest_after:.3f} "
                f"| {row.last:.3f} | {row.greedy:.2f} |",
                flush=True,
            )
    solved = [row for row in rows if row.rallies is not None]
    print(f"\n{len(solved)} of {len(rows)} seeds solved")
    for name in ("rallies", "decisions", "minutes"):
        values = [getattr(row, name) for row in solved]
        if values:
            print(f"{name}: median {statistics.median(values):,.2f}, range {min(values):,.2f} to {max(values):,.2f}")


if __name__ == "__main__":
    tyro.cli(main)
