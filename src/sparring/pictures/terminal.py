"""The court in a terminal: braille dots (2 x 4 to a character), so that it also reads without colours."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparring.pictures.court import (
    A_COLOUR,
    B_COLOUR,
    BALL_COLOUR,
    BALL_RADIUS,
    FLOOR_TOP,
    NET_HALF_WIDTH,
    NET_TOP,
    WALL_FACE,
    CourtFrame,
    points,
    racket_corners,
)

_PICTURES_PER_SECOND = 25
_MOST_COLUMNS = 110
_LEAST_COLUMNS, _LEAST_ROWS = 40, 14
_HEADER_ROWS = 3
_EDGE = 0.3
"""Drawn thickness of walls and floors, in Unity units."""
_SHOWN_WIDTH = 2 * (WALL_FACE + _EDGE)
_TOP = 7.3
_SHOWN_HEIGHT = _TOP - FLOOR_TOP + _EDGE
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of each of a braille character's 4 x 2 dots."""
_BRAILLE = 0x2800

_TRAIL_RADIUS = 0.15
_STYLES = ("", "#a08a3c", "bright_black", A_COLOUR, B_COLOUR, BALL_COLOUR)
"""Of nothing, trail, walls and net, A's racket and floor, B's, ball; where they share a character the later wins."""
_NOTHING, _TRAIL, _STILL, _A, _B, _BALL = range(len(_STYLES))


def show_live(
    frame: Callable[..., CourtFrame],
    last_step: int,
    *,
    console: Console,
    steps_per_second: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Draws `frame(step)` for the steps 0 to `last_step` as time goes by; a slow terminal skips steps, never lags.

    Returns False, having drawn nothing, where `console` is no terminal, is smaller than 40 x 14 or cannot show braille.
    Ctrl-C ends the showing.
    """
    roomy = console.width >= _LEAST_COLUMNS and console.height >= _LEAST_ROWS
    if not (console.is_terminal and roomy and console.encoding.startswith("utf")):
        return False
    start = clock()
    with Live(console=console, auto_refresh=False) as live:
        try:
            step = 0
            while True:
                live.update(court_text(frame(step), console.width, console.height), refresh=True)
                if step == last_step:
                    return True
                sleep(1 / _PICTURES_PER_SECOND)
                step = min(last_step, int((clock() - start) * steps_per_second))
        except KeyboardInterrupt:
            return True


def court_text(frame: CourtFrame, columns: int, rows: int) -> Text:
    """The scores and the court for a terminal of `columns` x `rows` characters."""
    scale = min(2 * min(columns, _MOST_COLUMNS) / _SHOWN_WIDTH, 4 * (rows - _HEADER_ROWS - 1) / _SHOWN_HEIGHT)
    layers = _layers(frame, scale)
    height, width = layers.shape[0] // 4, layers.shape[1] // 2
    cells = layers.reshape(height, 4, width, 2)
    bits = ((cells > 0) * _DOTS[:, None, :]).sum(axis=(1, 3))
    winners = cells.max(axis=(1, 3))
    text = _header(frame, width)
    for row_bits, row_winners in zip(bits.tolist(), winners.tolist(), strict=True):
        text.append("\n")
        for bit, winner in zip(row_bits, row_winners, strict=True):
            text.append(chr(_BRAILLE + bit), style=_STYLES[winner])
    return text


def _layers(frame: CourtFrame, scale: float) -> NDArray[np.int64]:
    """What each dot shows, an index into _STYLES; int64 [4 * rows, 2 * columns]. scale is in dots per Unity unit."""
    width, height = 2 * int(_SHOWN_WIDTH * scale / 2), 4 * int(np.ceil(_SHOWN_HEIGHT * scale / 4))
    x = ((np.arange(width) + 0.5) / scale - width / (2 * scale))[None, :]
    y = (_TOP - (np.arange(height) + 0.5) / scale)[:, None]
    layers = np.zeros((height, width), dtype=np.int64)

    def disc(centre_x: float, centre_y: float, radius: float) -> NDArray[np.bool_]:
        return (x - centre_x) ** 2 + (y - centre_y) ** 2 <= radius**2

    for trail_x, trail_y in frame.trail.tolist():
        layers[disc(trail_x, trail_y, _TRAIL_RADIUS)] = _TRAIL
    layers[(abs(x) > WALL_FACE) & (y > FLOOR_TOP)] = _STILL
    layers[(abs(x) <= max(NET_HALF_WIDTH, 1 / scale)) & (y <= NET_TOP) & (y > FLOOR_TOP)] = _STILL
    layers[(x < 0) & (y <= FLOOR_TOP) & (y > FLOOR_TOP - _EDGE)] = _A
    layers[(x > 0) & (y <= FLOOR_TOP) & (y > FLOOR_TOP - _EDGE)] = _B
    ball_x, ball_y, a_x, a_y, b_x, b_y = frame.bodies.tolist()
    for layer, corners in ((_A, racket_corners(a_x, a_y, 1)), (_B, racket_corners(b_x, b_y, -1))):
        inside = np.ones_like(layers, dtype=bool)
        for edge in (corners[0] - corners[1], corners[2] - corners[1]):
            along = (x - corners[1, 0]) * edge[0] + (y - corners[1, 1]) * edge[1]
            inside &= (along >= 0) & (along <= edge @ edge)
        layers[inside] = layer
    layers[disc(ball_x, ball_y, BALL_RADIUS)] = _BALL
    return layers


def _header(frame: CourtFrame, width: int) -> Text:
    counts = f"decision {frame.decision} · {frame.crossings} over the net"
    text = Text(no_wrap=True)
    _spread(text, f"A  {frame.names[0]}", f"{frame.seconds:.1f} s", f"{frame.names[1]}  B", width, A_COLOUR, B_COLOUR)
    _spread(text, points(frame.score[0]), counts, points(frame.score[1]), width, "bold", "bold")
    _spread(text, "", frame.caption, "", width, "", "")
    text.right_crop(1)
    return text


def _spread(text: Text, left: str, centre: str, right: str, width: int, left_style: str, right_style: str) -> None:
    """Adds one line with `centre` in its middle; what is too long at the sides is cut."""
    centre = set_cell_size(centre, min(cell_len(centre), width))
    before = (width - cell_len(centre)) // 2
    after = width - cell_len(centre) - before
    text.append(set_cell_size(left, before), style=left_style)
    text.append(centre)
    right = set_cell_size(right, min(cell_len(right), after))
    text.append(" " * (after - cell_len(right)) + right + "\n", style=right_style)
