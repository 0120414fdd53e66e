"""What one dragon of Loong knows, beside the true board: as a picture, and in a terminal."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparring import _core
from sparring.errors import SparringError
from sparring.levels.maps import LoongMap
from sparring.pictures.board import (
    FRAME_COLOUR,
    MUTED_COLOUR,
    TEXT_COLOUR,
    BoardDragon,
    board_text,
    draw_board,
)
from sparring.pictures.court import Image8

PLANES = (*_core.LOONG_PLANES["crop"], *(f"overview {name}" for name in _core.LOONG_PLANES["overview"]))
"""Names of the planes that can be shown."""
SCALARS, SONAR = _core.LOONG_PLANES["scalars"], _core.LOONG_PLANES["sonar"]
LIFE = np.dtype(_core.LOONG_LIFE)

_SEEN, _PEARL = 1 << 9, 1 << 15  # of a word of sight, see core/loong/memory.h
_OCCUPANT_AT, _OWN, _BODY, _QUEEN, _ENEMY, _HEAD, _FACING = 10, 2, 1, 4, 8, 16, 3
_NO_QUEEN = 2
"""An id that is no queen's."""
_DPI = 100
_BOARD_SIDE, _PLANE_INCHES, _WIDTH_INCHES, _PLANES_IN_A_ROW = 620, 1.72, 13.0, 8
_SCALAR_COLUMNS = 8  # in the picture
_SCALAR_WIDTH = 24  # of a column in the terminal


@dataclass(frozen=True, kw_only=True, eq=False)
class Look:
    """What a dragon knew in one of its turns, and how the board truly lay.

    title:         which match
    loong_map, dragons, pearls: the truth; pearls bool [height, width]
    dragon, team, round: who looked and when; team 0 for A, 1 for B
    inputs, mask:  one element of LOONG_INPUTS, one of LOONG_MASK; never mirrored
    sights, notes: uint32 and uint16 [height, width], what it remembered of the tiles
    life:          one element of LOONG_LIFE
    """

    title: str
    loong_map: LoongMap
    dragons: tuple[BoardDragon, ...]
    pearls: NDArray[np.bool_]
    dragon: int
    team: int
    round: int
    inputs: NDArray[np.void]
    mask: NDArray[np.void]
    sights: NDArray[np.uint32]
    notes: NDArray[np.uint16]
    life: NDArray[np.void]

    @property
    def place(self) -> tuple[int, int]:
        """Column and row of its head."""
        x, y = next(each.body[0].tolist() for each in self.dragons if each.number == self.dragon)
        return x, y

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """bool [height, width], the tiles that it never saw."""
        unseen: NDArray[np.bool_] = (self.sights & _SEEN) == 0
        return unseen

    @property
    def remembered_pearls(self) -> NDArray[np.bool_]:
        """bool [height, width], where a pearl lay when it was last seen."""
        lay: NDArray[np.bool_] = (self.sights & _PEARL) != 0
        return lay

    @property
    def remembered_dragons(self) -> tuple[BoardDragon, ...]:
        """Bodies where they were last seen: its own as a whole, heads, and single segments of others."""
        codes = (self.sights >> _OCCUPANT_AT & 31).astype(np.int64)
        clears = (self.notes - self.life["gone"]).astype(np.uint16)
        own = np.argwhere((codes == _OWN) & (clears > 0) & (clears < 1 << 15))
        own = own[np.argsort(-clears[own[:, 0], own[:, 1]].astype(np.int64), kind="stable")]
        found = [BoardDragon(self.dragon, self.team, own[:, ::-1].astype(np.int32), int(self.life["facing"]))]
        for enemy in (0, 1):
            for queen in (0, 1):
                team = self.team ^ enemy
                number = team if queen else _NO_QUEEN + team
                traits = enemy * _ENEMY | queen * _QUEEN
                segments = np.argwhere(codes == traits | _BODY)[:, ::-1].astype(np.int32)
                if len(segments):
                    found.append(BoardDragon(number, team, segments, headless=True))
                for facing in range(4):
                    for y, x in np.argwhere(codes == traits | _HEAD | facing).tolist():
                        found.append(BoardDragon(number, team, np.array([[x, y]], np.int32), facing))
        return tuple(found)

    def plane(self, name: str) -> NDArray[np.uint8]:
        """The plane called so, uint8 [15, 15] or, of the overview, [16, 16]. Raises SparringError for another name."""
        if name not in PLANES:
            near = difflib.get_close_matches(name, PLANES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are all, {', '.join(PLANES)}"
            raise SparringError(f"no plane {name}: {hint}")
        at, planes = PLANES.index(name), len(_core.LOONG_PLANES["crop"])
        whole: NDArray[np.uint8] = self.inputs["crop" if at < planes else "overview"]
        return whole[..., at % planes]

    def choices(self) -> list[str]:
        """What it might choose, in lines."""
        kinds = [
            name for name, legal in zip(("move", "sprint", "split"), self.mask["kinds"].tolist(), strict=True) if legal
        ]
        sizes = (np.flatnonzero(self.mask["sizes"]) + 2).tolist()
        steps = f" of at most {self.mask['payable']} steps"
        lines = ["may " + ", ".join(kind + steps * (kind == "sprint") for kind in kinds)]
        if sizes:
            lines.append(f"may split off {sizes[0]} to {sizes[-1]} segments")
        due = ", a new one is due" if self.mask["role_due"] else ""
        return [*lines, f"holds role {self.mask['held']}{due}"]

    def heard(self) -> list[list[tuple[str, int]]]:
        """The packets that it still goes by, the newest first: fields that are not 0."""
        packets = [packet for packet in self.inputs["sonar"].tolist() if any(packet)]
        return [[(name, byte) for name, byte in zip(SONAR, packet, strict=True) if byte] for packet in packets]


def chosen_planes(wanted: str | None) -> tuple[str, ...]:
    """The names of one plane, of "all" of them or of none."""
    return () if wanted is None else PLANES if wanted == "all" else (wanted,)


def draw_look(look: Look, planes: Sequence[str] = ()) -> Image8:
    """Draws memory and truth side by side, scalars, choices and packets, and these planes with forward up; returns RGB
    uint8 [height, width, 3]. Raises SparringError for a plane that is none."""
    shown = [(name, look.plane(name)) for name in planes]
    memory = draw_board(
        look.loong_map,
        dragons=look.remembered_dragons,
        pearls=look.remembered_pearls,
        unknown=look.unknown,
        title=f"what dragon {look.dragon} knows",
        caption=f"team {'AB'[look.team]}, round {look.round}, at {look.place}",
        side=_BOARD_SIDE,
        key=False,
    )
    truth = draw_board(
        look.loong_map,
        dragons=look.dragons,
        pearls=look.pearls,
        title="what is there",
        caption=look.title,
        side=_BOARD_SIDE,
        key=False,
    )
    words = _words(look)
    rows = -(-len(shown) // _PLANES_IN_A_ROW)
    heights = [_WIDTH_INCHES / 2 * memory.shape[0] / memory.shape[1], 0.3 + 0.17 * len(words), _PLANE_INCHES * rows]
    figure = Figure(figsize=(_WIDTH_INCHES, sum(heights)), dpi=_DPI, facecolor=FRAME_COLOUR)
    canvas = FigureCanvasAgg(figure)
    whole = sum(heights)
    for at, board in enumerate((memory, truth)):
        axes = figure.add_axes((at / 2, 1 - heights[0] / whole, 0.5, heights[0] / whole))
        axes.imshow(board, interpolation="antialiased")
        axes.axis("off")
    figure.text(
        0.012,
        (heights[2] + heights[1] - 0.12) / whole,
        "\n".join(words),
        color=TEXT_COLOUR,
        family="DejaVu Sans Mono",
        fontsize=8.2,
        va="top",
        linespacing=1.35,
        parse_math=False,
    )
    for at, (name, plane) in enumerate(shown):
        row, column = divmod(at, _PLANES_IN_A_ROW)
        left, bottom = column / _PLANES_IN_A_ROW, (rows - 1 - row) * _PLANE_INCHES / whole
        wide, high = 1 / _PLANES_IN_A_ROW, _PLANE_INCHES / whole
        axes = figure.add_axes((left + 0.05 * wide, bottom + 0.02 * high, 0.9 * wide, 0.84 * high))
        axes.imshow(plane, vmin=0, vmax=127, cmap="magma", interpolation="nearest")
        axes.set_title(name, color=MUTED_COLOUR, fontsize=8, pad=3, parse_math=False)
        axes.axis("off")
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def print_look(look: Look, console: Console, planes: Sequence[str] = ()) -> None:
    """Shows the same on a console, planes as numbers. Raises SparringError for a plane that is none."""
    shown = [(name, look.plane(name)) for name in planes]
    console.print(Text(_headline(look), style="bold"))
    colour = console.color_system is not None
    wide = 2 * look.loong_map.width + 1
    sides = 2 if console.width >= 2 * wide + 4 else 1
    columns = (console.width - 4) // sides if sides == 2 else console.width
    boards: list[tuple[str, dict[str, Any]]] = [
        ("knows", {"dragons": look.remembered_dragons, "pearls": look.remembered_pearls, "unknown": look.unknown}),
        ("is there", {"dragons": look.dragons, "pearls": look.pearls}),
    ]
    grid = Table.grid(padding=(0, 2))
    drawn = [board_text(look.loong_map, columns=columns, colour=colour, **options) for _, options in boards]
    titles = [
        Text(f"what {'dragon ' + str(look.dragon) + ' ' if at == 0 else ''}{name}", style="dim")
        for at, (name, _) in enumerate(boards)
    ]
    if sides == 2:
        grid.add_row(*titles)
        grid.add_row(*drawn)
    else:
        for title, board in zip(titles, drawn, strict=True):
            grid.add_row(title)
            grid.add_row(board)
    console.print(grid, soft_wrap=not console.is_terminal)
    for line in look.choices():
        console.print(line, highlight=False)
    console.print(_scalar_table(look, max(1, console.width // _SCALAR_WIDTH)))
    for packet in look.heard():
        console.print("packet: " + ", ".join(f"{name} {byte}" for name, byte in packet), highlight=False)
    for name, plane in shown:
        console.print(Text(name, style="bold"))
        lines = ["".join(f"{byte:4d}" if byte else "   ." for byte in row) for row in plane.tolist()]
        console.print("\n".join(lines), highlight=False, soft_wrap=True)


def _headline(look: Look) -> str:
    return f"{look.title}: dragon {look.dragon} of team {'AB'[look.team]} in round {look.round}, at {look.place}"


def _scalars(look: Look) -> list[tuple[str, int]]:
    return list(zip(SCALARS, look.inputs["scalars"].tolist(), strict=True))


def _scalar_table(look: Look, columns: int) -> Table:
    table = Table(box=box.SIMPLE, show_header=False, padding=(0, 1))
    scalars = _scalars(look)
    rows = -(-len(scalars) // columns)
    for _ in range(columns):
        table.add_column(style="dim", no_wrap=True)
        table.add_column(justify="right")
    for at in range(rows):
        table.add_row(*(cell for name, byte in scalars[at::rows] for cell in (name, str(byte))))
    return table


def _words(look: Look) -> list[str]:
    """Scalars in columns, then choices and packets, in lines for the picture."""
    scalars = _scalars(look)
    rows = -(-len(scalars) // _SCALAR_COLUMNS)
    lines = ["".join(f"{name:>17} {byte:<3d}" for name, byte in scalars[at::rows]) for at in range(rows)]
    lines += ["", "; ".join(look.choices())]
    return lines + ["packet: " + ", ".join(f"{name} {byte}" for name, byte in packet) for packet in look.heard()]
