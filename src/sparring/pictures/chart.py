"""What all charts share: paper, colours, axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from sparring.files import written_beside

SIZE_INCHES, DPI = (9.0, 5.2), 120
PAPER, INK, FAINT, GRID = "#fbfcfe", "#1e293b", "#64748b", "#e2e8f0"
COLOURS = ("#2563eb", "#ea580c", "#7c3aed", "#0d9488", "#db2777", "#a16207")


def new_chart(
    title: str, *, xlabel: str, ylabel: str, inches: tuple[float, float] = SIZE_INCHES
) -> tuple[Figure, Axes]:
    """An empty chart that counts something along x."""
    figure = _new_figure(inches)
    axes = figure.add_subplot()
    dress(axes, title, xlabel=xlabel, ylabel=ylabel)
    return figure, axes


def new_charts(titles: Sequence[str], *, xlabels: Sequence[str], ylabel: str) -> tuple[Figure, list[Axes]]:
    """Empty charts side by side that share their y axis."""
    figure = _new_figure((5.0 * len(titles), 4.6))
    panels = list(figure.subplots(1, len(titles), sharey=True, squeeze=False)[0])
    for number, (axes, title, xlabel) in enumerate(zip(panels, titles, xlabels, strict=True)):
        dress(axes, title, xlabel=xlabel, ylabel="" if number else ylabel)
        axes.title.set_fontsize(12)
    return figure, panels


def _new_figure(inches: tuple[float, float]) -> Figure:
    figure = Figure(figsize=inches, dpi=DPI, layout="constrained", facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def dress(axes: Axes, title: str, *, xlabel: str, ylabel: str) -> None:
    """Title, labels, grid and colours of a chart that counts something along x."""
    axes.set_facecolor(PAPER)
    axes.set_title(title, loc="left", color=INK, fontsize=14, fontweight="bold", pad=12, parse_math=False)
    axes.set_xlabel(xlabel, color=INK, fontsize=11)
    axes.set_ylabel(ylabel, color=INK, fontsize=11)
    axes.grid(color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=FAINT, labelsize=9.5, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(FAINT)
    axes.xaxis.set_major_locator(counts())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def save_chart(figure: Figure, path: Path) -> None:
    """Write a PNG whole or not at all. Raises SparringError where it cannot be written."""
    with written_beside(Path(path)) as beside:
        figure.savefig(beside, format="png")


def counts() -> MaxNLocator:
    """Ticks at whole numbers."""
    return MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True)
