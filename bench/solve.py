"""Time to solve Tennis over seeds: the official score (one rally, better racket, mean of 100) reaching +0.5.

    .venv/bin/python bench/solve.py [--recipes tennis] [--seeds 10] [--minutes 8]
    .venv/bin/python bench/solve.py --recipes tennis tennis-maddpg tennis-ensembles tennis-dqn

One run after another, seed by seed, each an ordinary run named solve-RECIPE-SEED that ends 500 rallies after it was
solved. Its row is added to solve.jsonl in the folder of runs. Interrupt it: the same command goes on with what is not
in that file. Every figure comes from training rallies, exploration noise included, but for `greedy`: 100 rallies of the
final policy without noise. `lowest after` is the lowest mean of 100 in the 500 rallies that follow the solving one; a
run whose mean falls below half of what solves it has collapsed.
"""

from __future__ import annotations

import json
import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from compare import interval
from rich.console import Console

import sparring
from sparring.judge.statistics import wilson
from sparring.runs.folder import RunFolder, runs_folder
from sparring.runs.metrics import WINDOW, json_line, read_json_lines, read_matches

AFTER = 500
COLLAPSED = 0.25
Row = dict[str, Any]


def lowest_mean_after(best: list[float], solved_at: int) -> float:
    """The lowest mean of 100 consecutive rallies among those that end in the 500 after number `solved_at`."""
    ends = range(solved_at, min(solved_at + AFTER, len(best)) + 1)
    return min(statistics.fmean(best[end - WINDOW : end]) for end in ends)


def solve(recipe: str, seed: int, minutes: float) -> Row:
    folder = RunFolder(f"solve-{recipe}-{seed}")
    # Of a run that was interrupted, the rest.
    trained = max((row.get("seconds", 0.0) for row in read_json_lines(folder.metrics)), default=0.0) / 60
    result = sparring.train(
        recipe, run=folder.path.name, seed=seed, minutes=max(minutes - trained, 1e-3), console=Console(quiet=True)
    )
    if result.signal:  # Ctrl-C or SIGTERM: this run is saved, and the script is meant, too
        raise SystemExit(128 + result.signal)
    best = [row.best for row in read_matches(folder.matches)]
    solved = result.solved
    return {
        "recipe": recipe,
        "seed": seed,
        "limit": minutes,
        "rallies": solved and solved.match,
        # The run counts decisions of a lane; both rackets decide in each.
        "decisions": solved and 2 * solved.decisions,
        "updates": solved and solved.updates,
        "minutes": solved and solved.minutes,
        "trained": result.minutes,
        "lowest_after": solved and lowest_mean_after(best, solved.match),
        "last": statistics.fmean(best[-WINDOW:]),
        "greedy": sparring.evaluate(folder.path.name, matches=100).score,
    }


def spread(values: Sequence[float], form: Callable[[float], str]) -> str:
    """Median, interval of the median, middle half."""
    if not values:
        return "-"
    first, middle, third = np.quantile(values, [0.25, 0.5, 0.75])
    low, high = interval(values, np.median)
    return f"{form(middle)} ({form(low)} to {form(high)}; {form(first)} to {form(third)})"


def share(count: int, of: int) -> str:
    """With its Wilson 95% interval."""
    low, high = wilson(count, of)
    return f"{count} of {of} ({low:.2f} to {high:.2f})"


def show(rows: list[Row], recipes: tuple[str, ...]) -> None:
    print("\n| recipe | seed | rallies | racket decisions | minutes | lowest after | last 100 | greedy |")
    print("|---|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: (recipes.index(row["recipe"]), row["seed"])):
        head = f"| {row['recipe']} | {row['seed']} "
        if row["rallies"] is None:
            print(f"{head}| not solved in {row['trained']:.1f} min | | | | {row['last']:.3f} | {row['greedy']:.2f} |")
        else:
            print(
                f"{head}| {row['rallies']:,} | {row['decisions']:,} | {row['minutes']:.2f} | {row['lowest_after']:.3f} "
                f"| {row['last']:.3f} | {row['greedy']:.2f} |"
            )
    print("\nMedian (95% interval of it; middle half); rallies, decisions and minutes of the seeds that were solved:\n")
    print("| recipe | solved | rallies | racket decisions | minutes | last 100 | greedy | collapsed |")
    print("|---|---|---|---|---|---|---|---|")
    for recipe in recipes:
        own = [row for row in rows if row["recipe"] == recipe]
        if not own:
            continue
        solved = [row for row in own if row["rallies"] is not None]
        collapsed = [row for row in solved if row["lowest_after"] < COLLAPSED]
        print(
            f"| {recipe} | {share(len(solved), len(own))} "
            f"| {spread([row['rallies'] for row in solved], '{:,.0f}'.format)} "
            f"| {spread([row['decisions'] for row in solved], '{:,.0f}'.format)} "
            f"| {spread([row['minutes'] for row in solved], '{:.2f}'.format)} "
            f"| {spread([row['last'] for row in own], '{:.2f}'.format)} "
            f"| {spread([row['greedy'] for row in own], '{:.2f}'.format)} "
            f"| {share(len(collapsed), len(solved)) if solved else '-'} |"
        )


def show_ratios(rows: list[Row], recipes: tuple[str, ...]) -> None:
    """Medians of the others against that of the first recipe, over solved seeds; 95% intervals by the bootstrap."""
    for recipe in recipes[1:]:
        for measure in ("rallies", "minutes"):
            random = np.random.default_rng(0)
            medians, drawn = [], []
            for each in (recipe, recipes[0]):
                own = [row[measure] for row in rows if row["recipe"] == each and row["rallies"] is not None]
                if own:
                    medians.append(np.median(own))
                    drawn.append(np.median(random.choice(own, size=(10_000, len(own))), axis=1))
            if len(drawn) == 2:
                low, high = np.quantile(drawn[0] / drawn[1], [0.025, 0.975])
                ratio = medians[0] / medians[1]
                print(f"{recipe}, {measure}: {ratio:.2f} times those of {recipes[0]} ({low:.2f} to {high:.2f})")


def main(recipes: tuple[str, ...] = ("tennis",), seeds: int = 10, minutes: float = 8.0) -> None:
    """recipes: their names. seeds: how many, from 0. minutes: give up on a seed after this much time."""
    table: Path = runs_folder() / "solve.jsonl"
    for seed in range(seeds):
        for recipe in recipes:
            done = {(row["recipe"], row["seed"], row["limit"]) for row in read_json_lines(table)}
            if (recipe, seed, minutes) in done:
                continue
            row = solve(recipe, seed, minutes)
            with table.open("ab") as file:
                file.write(json_line(row))
            print(json.dumps(row), flush=True)
            shutil.rmtree(RunFolder(f"solve-{recipe}-{seed}").replay, ignore_errors=True)
    rows = read_json_lines(table)
    rows = [row for row in rows if row["recipe"] in recipes and row["limit"] == minutes and row["seed"] < seeds]
    show(rows, recipes)
    show_ratios(rows, recipes)


if __name__ == "__main__":
    tyro.cli(main)
