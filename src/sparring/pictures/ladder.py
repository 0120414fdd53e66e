"""Charts of the judge: how a verdict came about, and ratings with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sparring.pictures.chart import COLOURS, FAINT, GRID, INK, PAPER, new_chart, save_chart

_FIRST_COLOUR, _SECOND_COLOUR = "#15803d", "#b91c1c"
_LONGEST_NAME = 40
_ROW_INCHES = 0.42


def draw_verdict(
    llr: Sequence[float], path: Path, *, bounds: tuple[float, float], words: tuple[str, str], cap: int, title: str
) -> None:
    """Draws the log-likelihood ratio after each match, between the bounds of the test; writes a PNG at `path`.

    bounds: lower and upper
    words:  what the test says at the upper bound, and at the lower
    cap:    the most matches

    Raises SparringError where the file cannot be written; a file that was there is then as it was.
    """
    lower, upper = bounds
    figure, axes = new_chart(title, xlabel="matches", ylabel="log-likelihood ratio")
    last = min(cap, max(20, round(1.15 * len(llr))))
    for bound, word, colour, side in (
        (upper, words[0], _FIRST_COLOUR, "bottom"),
        (lower, words[1], _SECOND_COLOUR, "top"),
    ):
        axes.axhline(bound, color=colour, lw=1.2, ls=(0, (5, 3)))
        axes.annotate(
            f"{word} ({bound:+.2f})",
            (0, bound),
            xytext=(6, 4 if side == "bottom" else -4),
            textcoords="offset points",
            va=side,
            color=colour,
            fontsize=10.5,
            fontweight="bold",
        )
    axes.axhline(0, color=FAINT, lw=0.8)
    reached = np.concatenate([[0.0], llr])
    ends = _FIRST_COLOUR if reached[-1] >= upper else _SECOND_COLOUR if reached[-1] <= lower else COLOURS[0]
    axes.plot(np.arange(len(reached)), reached, color=COLOURS[0], lw=2.2)
    axes.plot([len(reached) - 1], [reached[-1]], "o", ms=8, color=ends, mec=PAPER, mew=1.5, zorder=5)
    axes.set_xlim(0, last)
    pad = 0.14 * (upper - lower)
    axes.set_ylim(min(lower, reached.min()) - pad, max(upper, reached.max()) + pad)
    save_chart(figure, path)


def draw_ladder(
    names: Sequence[str],
    elo: Sequence[float],
    error: Sequence[float],
    group: Sequence[int],
    path: Path,
    *,
    title: str = "Ladder",
) -> None:
    """Draws the ratings of players from the strongest, each with its interval; writes a PNG at `path`.

    elo, error, group: as in `Ratings`; groups differ in colour, as their ratings cannot be compared

    Raises SparringError where the file cannot be written; a file that was there is then as it was.
    """
    inches = (9.0, 1.6 + _ROW_INCHES * len(names))
    figure, axes = new_chart(title, xlabel="Elo, the mean of the players being 0", ylabel="", inches=inches)
    axes.grid(visible=False, axis="y")
    shown = [name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…" for name in names]
    for row in range(len(names)):
        colour = COLOURS[group[row] % len(COLOURS)]
        half = error[row] if np.isfinite(error[row]) else 0.0
        axes.plot([elo[row] - half, elo[row] + half], [row, row], color=colour, lw=3, alpha=0.35, solid_capstyle="butt")
        axes.plot([elo[row]], [row], "o", ms=8, color=colour, mec=PAPER, mew=1.2)
        axes.annotate(
            f"{round(elo[row]):+d}",
            (elo[row], row),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            color=INK,
            fontsize=9,
        )
    axes.axvline(0, color=GRID, lw=1.5, zorder=0)
    axes.set_yticks(range(len(names)), shown, color=INK, fontsize=10.5, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.7)
    axes.margins(x=0.08)
    save_chart(figure, path)
