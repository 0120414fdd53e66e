"""The learning curve of Loong: the score against each player that a run met, over its decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from sparring.learn.matches import ITSELF, LoongMatchRow
from sparring.pictures.chart import COLOURS, FAINT, new_chart, save_chart
from sparring.pictures.curve import WINDOW, average_of_last, short_count

_LONGEST_NAME = 40
Curve = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Decisions int64 [n] and, by then, the score float64 [n]."""


def draw_scores(
    series: Mapping[str, Sequence[LoongMatchRow]],
    path: Path,
    *,
    groups: Mapping[str, str] | None = None,
    title: str = "Loong",
) -> None:
    """Draws the score (1 a win, 0.5 a draw) over the last 100 matches: of one run against each player, of several runs
    against all of them; writes a PNG at `path`.

    series: the matches of each run by the run's name, in the order they ended; those against itself are left out
    groups: run name to group, whose runs share a colour and a median. Runs that are missing here stand for themselves

    Raises SparringError where the file cannot be written; a file that was there is then as it was.
    """
    figure, axes = new_chart(title, xlabel="decisions", ylabel=f"score over the last {WINDOW} matches")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short_count(x)))
    axes.set_ylim(-0.03, 1.03)
    axes.axhline(0.5, color=FAINT, lw=1, ls=(0, (5, 3)))
    kept = {name: [row for row in rows if row.opponent != ITSELF] for name, rows in series.items()}
    if not any(kept.values()):
        text = "no match against another player has ended yet"
        axes.text(0.5, 0.4, text, transform=axes.transAxes, ha="center", color=FAINT, size=13)
    elif len(kept) == 1:
        _draw_opponents(axes, next(iter(kept.values())))
    else:
        _draw_runs(axes, {name: _curve(rows) for name, rows in kept.items() if rows}, groups or {})
    axes.set_xlim(left=0)
    if axes.get_legend_handles_labels()[0]:
        columns = 4 if len(kept) == 1 else 1
        figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5)
    save_chart(figure, path)


def _draw_opponents(axes: Axes, rows: Sequence[LoongMatchRow]) -> None:
    for index, name in enumerate(sorted({row.opponent for row in rows})):
        decisions, score = _curve([row for row in rows if row.opponent == name])
        colour = COLOURS[index % len(COLOURS)]
        axes.plot(decisions, score, color=colour, lw=2.2, label=f"against {name}: now {score[-1]:.2f}")


def _draw_runs(axes: Axes, curves: Mapping[str, Curve], groups: Mapping[str, str]) -> None:
    members: dict[str, list[str]] = {}
    for name in curves:
        members.setdefault(groups.get(name, name), []).append(name)
    for index, (group, names) in enumerate(members.items()):
        colour = COLOURS[index % len(COLOURS)]
        alone = len(names) == 1
        for name in names:
            axes.plot(*curves[name], color=colour, lw=2.2 if alone else 0.8, alpha=1.0 if alone else 0.45)
        shown = group if len(group) <= _LONGEST_NAME else group[: _LONGEST_NAME - 1] + "…"
        last = float(np.median([curves[name][1][-1] for name in names]))
        if not alone:
            # As far as all of them go, so that no run leaves the median half way.
            at = np.linspace(max(curves[n][0][0] for n in names), min(curves[n][0][-1] for n in names), 200)
            middle = np.median([np.interp(at, *curves[name]) for name in names], axis=0)
            axes.plot(at, middle, color=colour, lw=2.6)
            shown += f": {len(names)} runs and their median"
        axes.plot([], [], color=colour, lw=2.4, label=f"{shown}, now {last:.2f}")


def _curve(rows: Sequence[LoongMatchRow]) -> Curve:
    return np.array([row.at for row in rows], np.int64), average_of_last([row.best for row in rows])
