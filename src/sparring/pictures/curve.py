"""The learning curve: every match's score, the average over 100 matches, and where it was solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from sparring.learn.matches import MatchRow
from sparring.pictures.chart import COLOURS, FAINT, INK, PAPER, counts, new_chart, save_chart

WINDOW = 100
"""Consecutive matches the official average is taken over."""

_SOLVED_COLOUR = "#15803d"
_DASHED: Any = (0, (2, 2))
_LONGEST_NAME = 40
_ROUNDING = 1e-9
"""Sums of the same scores in another order may differ by this much."""


def average_of_last(scores: Sequence[float] | NDArray[np.float64], window: int = WINDOW) -> NDArray[np.float64]:
    """The mean of each score and the up to `window - 1` before it; float64, one for each score."""
    sums = np.concatenate([[0.0], np.cumsum(scores, dtype=np.float64)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), dtype=np.float64)


def solved_at(scores: Sequence[float] | NDArray[np.float64], solved: float, window: int = WINDOW) -> int | None:
    """Index of the match with which the mean of `window` consecutive scores first reached `solved`, or None."""
    reached = np.flatnonzero(average_of_last(scores, window)[window - 1 :] >= solved - _ROUNDING)
    return int(reached[0]) + window - 1 if len(reached) else None


def draw_curve(
    series: Mapping[str, Sequence[MatchRow]],
    path: Path,
    *,
    groups: Mapping[str, str] | None = None,
    solved: float = 0.5,
    title: str = "Tennis",
    words: tuple[str, str, str] = ("racket", "rally", "rallies"),
) -> None:
    """Draws the better racket's score over the rallies of one run, or compares several runs; writes a PNG at `path`.

    series: the matches of each run by the run's name, in the order they ended; a run without any is left out
    groups: run name to group (e.g. its recipe); a group of several runs shows their median and range. Runs that are
            missing here, or all without `groups`, stand for themselves
    solved: the average over 100 rallies that counts as solved
    words:  what the game calls an agent, a match, and several

    Raises SparringError where the file cannot be written; a file that was there is then as it was.
    """
    agent, match, matches = words
    figure, axes = new_chart(title, xlabel=matches, ylabel=f"score of the better {agent}")
    runs = {name: _Run(rows, solved) for name, rows in series.items() if rows}
    if not runs:
        axes.text(0.5, 0.4, f"no {match} has ended yet", transform=axes.transAxes, ha="center", color=FAINT, size=13)
        _set_limits(axes, WINDOW, np.zeros(0), solved)
    elif len(series) == 1:
        _draw_run(axes, next(iter(runs.values())), solved, match)
    else:
        _draw_groups(axes, runs, groups or {}, solved, match)
    _draw_solved_line(axes, solved, match)
    if axes.get_legend_handles_labels()[0]:
        columns = 3 if len(series) == 1 else 1
        figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5, labelcolor=INK)
    save_chart(figure, path)


class _Run:
    """A run's matches as arrays.

    number:   int64 [n], the match's number from 1
    best:     float64 [n], score of the better racket
    average:  float64 [n], over the last 100 matches or as many as there are
    decision: int64 [n], the run's decision counter when the match ended
    start:    index of the first match with 100 behind the average; 0 where there are fewer
    solved:   index of the match that solved the run, or None
    """

    def __init__(self, rows: Sequence[MatchRow], solved: float) -> None:
        self.number = np.array([row.match + 1 for row in rows])
        self.best = np.array([row.best for row in rows], dtype=np.float64)
        self.decision = np.array([row.at for row in rows])
        self.average = average_of_last(self.best)
        self.start = WINDOW - 1 if len(rows) >= WINDOW else 0
        self.solved = solved_at(self.best, solved)


def _draw_run(axes: Axes, run: _Run, solved: float, match: str) -> None:
    """Every rally as a dot, the average as a line (dashed until it covers 100), the solved mark, decisions on top."""
    colour = COLOURS[0]
    size = float(np.interp(len(run.best), [200, 5000], [14, 4]))
    axes.scatter(run.number, run.best, s=size, color=colour, alpha=0.22, linewidths=0, label=f"one {match}")
    axes.plot(run.number[:WINDOW], run.average[:WINDOW], color=colour, lw=1.4, ls=_DASHED)
    now = run.average[-1]
    if run.start:
        label = f"average of the last {WINDOW} (best {run.average[run.start :].max():.2f}, now {now:.2f})"
        axes.plot(run.number[run.start :], run.average[run.start :], color=colour, lw=2.4, label=label)
    else:
        axes.plot([], [], color=colour, lw=1.4, ls=_DASHED, label=f"average so far (now {now:.2f})")
    _set_limits(axes, int(run.number[-1]), run.best, solved)
    if run.solved is not None:
        _draw_solved_mark(axes, run, run.solved, match)
    if run.decision[-1] > 0:
        _draw_decisions(axes, run)


def _draw_solved_mark(axes: Axes, run: _Run, index: int, match: str) -> None:
    x, y = run.number[index], run.average[index]
    axes.plot([x, x], [axes.get_ylim()[0], y], color=_SOLVED_COLOUR, lw=1, ls=":")
    axes.plot([x], [y], "o", ms=8, color=_SOLVED_COLOUR, mec=PAPER, mew=1.5, zorder=5)
    text = f"solved at {match} {x:,}"
    if run.decision[index] > 0:
        text += f"\n{run.decision[index]:,} decisions"
    low, high = axes.get_ylim()
    late = x > 0.35 * axes.get_xlim()[1]  # before a late mark and above it there is little to cover
    above = late and y < low + 0.7 * (high - low)
    axes.annotate(
        text,
        (float(x), float(y)),
        xytext=(-14 if late else 14, 22 if above else -16),
        textcoords="offset points",
        ha="right" if late else "left",
        va="bottom" if above else "top",
        color=_SOLVED_COLOUR,
        fontsize=10.5,
        fontweight="bold",
        bbox={"boxstyle": "round,pad=0.35", "fc": PAPER, "ec": "none", "alpha": 0.85},
        zorder=6,
    )


def _draw_decisions(axes: Axes, run: _Run) -> None:
    """Labels the rallies' ticks on the upper edge with the decisions made by then."""

    def label(x: float, _: int) -> str:
        return short_count(float(np.interp(x, [0, *run.number], [0, *run.decision]))) if x <= run.number[-1] else ""

    upper = axes.secondary_xaxis("top")
    upper.xaxis.set_major_locator(counts())
    upper.xaxis.set_major_formatter(FuncFormatter(label))
    upper.tick_params(length=0, labelsize=9, labelcolor=FAINT)
    upper.set_xlabel("decisions", color=FAINT, fontsize=9)
    upper.spines["top"].set_visible(False)


def _draw_groups(axes: Axes, runs: Mapping[str, _Run], groups: Mapping[str, str], solved: float, match: str) -> None:
    """The averages: each run thin with its solved mark (dashed under 100 rallies), each group's median and range."""
    members: dict[str, list[_Run]] = {}
    for name, run in runs.items():
        members.setdefault(groups.get(name, name), []).append(run)
    for index, (name, group) in enumerate(members.items()):
        colour = COLOURS[index % len(COLOURS)]
        alone = len(group) == 1
        for run in group:
            style: Any = "-" if run.start else _DASHED
            alpha, width = (1.0, 2.2) if alone else (0.35, 0.8)
            axes.plot(run.number[run.start :], run.average[run.start :], color=colour, lw=width, alpha=alpha, ls=style)
            if run.solved is not None:
                x, y = run.number[run.solved], run.average[run.solved]
                axes.plot([x], [y], "o", ms=5, color=colour, mec=PAPER, mew=0.8, zorder=5)
        if not alone:
            _draw_median(axes, [run for run in group if run.start], colour)
        axes.plot([], [], color=colour, lw=2.4, label=_group_label(name, group, match))
    averages = np.concatenate([run.average[run.start :] for run in runs.values()])
    _set_limits(axes, max(int(run.number[-1]) for run in runs.values()), averages, solved)


def _draw_median(axes: Axes, group: Sequence[_Run], colour: str) -> None:
    """Median and range of a group as far as all of its runs go, so that no run leaves the median half way."""
    if not group:
        return
    first = max(int(run.number[run.start]) for run in group)
    last = min(int(run.number[-1]) for run in group)
    numbers = np.arange(first, last + 1)
    averages = np.array([np.interp(numbers, run.number, run.average) for run in group])
    axes.fill_between(numbers, averages.min(axis=0), averages.max(axis=0), color=colour, alpha=0.13, lw=0)
    axes.plot(numbers, np.median(averages, axis=0), color=colour, lw=2.6)


def _group_label(name: str, group: Sequence[_Run], match: str) -> str:
    """Name, number of runs, how many were solved and after how many rallies."""
    shown = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    rallies = [int(run.number[run.solved]) if run.solved is not None else np.inf for run in group]
    median = float(np.median(rallies))
    if len(group) == 1:
        return f"{shown}: solved at {match} {median:,.0f}" if np.isfinite(median) else f"{shown}: not solved"
    label = f"{shown}: {len(group)} runs (median and range), {np.isfinite(rallies).sum()} solved"
    return f"{label}, the median at {match} {median:,.0f}" if np.isfinite(median) else label


def _draw_solved_line(axes: Axes, solved: float, match: str) -> None:
    label = f"solved: {WINDOW}-{match} average of {solved:g}"
    axes.axhline(solved, color=_SOLVED_COLOUR, lw=1.2, ls=(0, (5, 3)), label=label)


def _set_limits(axes: Axes, last: int, scores: NDArray[np.float64], solved: float) -> None:
    axes.set_xlim(0, max(last * 1.02, 10))
    low, high = min(0.0, float(scores.min(initial=0.0))), max(1.25 * solved, float(scores.max(initial=0.0)))
    pad = 0.05 * (high - low)
    axes.set_ylim(low - pad, high + pad)


def short_count(count: float) -> str:
    """A count in few characters: 950, 9.5k, 15k, 1.2M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{round(count / size, 1 if count < 10 * size else None):g}{letter}"
    return f"{count:.0f}"
