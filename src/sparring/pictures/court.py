"""One moment of a Tennis rally as an RGB image. Geometry in Unity units, x along the court, y up: docs/tennis.md."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

WIDTH, HEIGHT = 640, 360
PIXELS_PER_UNIT = 24
NET_TOP_ROW = 284
"""Row of the picture at the net's top; with the scale it places everything else."""

BALL_RADIUS = 0.5
RACKET_SIZE = (1.1, 1.875)
"""Full size of the collider along its face normal and along its face."""
RACKET_TILT = np.deg2rad(55.0)
"""Racket A leans by this angle about z, racket B by its negative."""
RACKET_OFFSET = 0.5
"""The collider's centre lies this far behind the racket's transform, against the face normal."""
FLOOR_TOP = -3.25
NET_TOP, NET_HALF_WIDTH = -1.0, 0.05
WALL_FACE = 12.27

BALL_COLOUR = "#ffd84d"
A_COLOUR = "#ff7a66"
B_COLOUR = "#4db8ff"
HEADER_COLOUR = "#0f172a"
AIR_COLOUR = "#1b2740"
WALL_COLOUR = "#33415c"
FLOOR_A_COLOUR = "#7a4150"
FLOOR_B_COLOUR = "#2d5f8a"
NET_COLOUR = "#e2e8f0"
TEXT_COLOUR = "#f1f5f9"
MUTED_COLOUR = "#9fb0c8"
TRAIL_OPACITY = 0.4
"""Of the trail's newest disc."""

_SUPERSAMPLING = 3
_COURT_END, _COURT_BOTTOM, _WALL_TOP = 14.0, -5.0, 8.0
_HEADER_HEIGHT = 70
_MARGIN = 22
_NAME_WIDTH = 200

Image8 = NDArray[np.uint8]
"""An RGB image, uint8 [height, width, 3]."""
Colour = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class CourtFrame:
    """What one picture of the court shows.

    bodies:    float32 [6], ball x, y, racket A x, y, racket B x, y (the rackets' transforms, not their colliders)
    trail:     float32 [k, 2], where the ball was before, oldest first; may be empty
    score:     undiscounted reward of A and of B since the rally began
    decision:  decisions made since the rally began
    seconds:   game time since the rally began
    crossings: how often the ball has passed over the net
    names:     who plays racket A and who plays racket B
    caption:   one short line under the counters, e.g. how the rally ended
    """

    bodies: NDArray[np.float32]
    trail: NDArray[np.float32]
    score: tuple[float, float] = (0.0, 0.0)
    decision: int = 0
    seconds: float = 0.0
    crossings: int = 0
    names: tuple[str, str] = ("policy", "policy")
    caption: str = ""


def pixel(x: float, y: float) -> tuple[float, float]:
    """Column and row of a point of the court, measured from the picture's left and top edge."""
    return WIDTH / 2 + PIXELS_PER_UNIT * x, NET_TOP_ROW + PIXELS_PER_UNIT * (NET_TOP - y)


def racket_corners(x: float, y: float, side: int) -> NDArray[np.float64]:
    """Corners of the collider of a racket whose transform is at (x, y).

    side is +1 for A (left, its face towards +x) and -1 for B (its mirror image). Returns float64 [4, 2] going round;
    the first two are the ends of the face, which looks up and towards the net.
    """
    normal = np.array([side * np.cos(RACKET_TILT), np.sin(RACKET_TILT)])
    face = np.array([-normal[1], normal[0]])
    centre = np.array([x, y]) - RACKET_OFFSET * normal
    depth, half = RACKET_SIZE[0] / 2, RACKET_SIZE[1] / 2
    return centre + np.outer([depth, depth, -depth, -depth], normal) + np.outer([half, -half, -half, half], face)


def draw_court(frame: CourtFrame) -> Image8:
    """Draws a moment of a rally; returns RGB uint8 [HEIGHT, WIDTH, 3]."""
    large = _empty_court().copy()
    draw = ImageDraw.Draw(large)
    for order, (x, y) in enumerate(frame.trail.tolist()):
        freshness = (order + 1) / len(frame.trail)
        _disc(
            draw, x, y, BALL_RADIUS * (0.3 + 0.6 * freshness), blend(AIR_COLOUR, BALL_COLOUR, TRAIL_OPACITY * freshness)
        )
    _box(draw, -NET_HALF_WIDTH, NET_TOP, NET_HALF_WIDTH, FLOOR_TOP, NET_COLOUR)
    ball_x, ball_y, a_x, a_y, b_x, b_y = frame.bodies.tolist()
    _racket(draw, a_x, a_y, 1, A_COLOUR)
    _racket(draw, b_x, b_y, -1, B_COLOUR)
    _disc(draw, ball_x, ball_y, BALL_RADIUS, BALL_COLOUR)
    picture = large.reduce(_SUPERSAMPLING)
    _header(picture, frame)
    return np.array(picture)


@lru_cache(maxsize=1)
def _empty_court() -> Image.Image:
    """Air, floors, walls and the header's ground, supersampled."""
    court = Image.new("RGB", (WIDTH * _SUPERSAMPLING, HEIGHT * _SUPERSAMPLING), AIR_COLOUR)
    draw = ImageDraw.Draw(court)
    _box(draw, -_COURT_END, FLOOR_TOP, 0, _COURT_BOTTOM, FLOOR_A_COLOUR)
    _box(draw, 0, FLOOR_TOP, _COURT_END, _COURT_BOTTOM, FLOOR_B_COLOUR)
    _box(draw, -_COURT_END, _WALL_TOP, -WALL_FACE, _COURT_BOTTOM, WALL_COLOUR)
    _box(draw, WALL_FACE, _WALL_TOP, _COURT_END, _COURT_BOTTOM, WALL_COLOUR)
    draw.rectangle((0, 0, court.width, _HEADER_HEIGHT * _SUPERSAMPLING - 1), fill=HEADER_COLOUR)
    return court


def _header(picture: Image.Image, frame: CourtFrame) -> None:
    """Who plays, the scores, the counters and the caption."""
    draw = ImageDraw.Draw(picture)
    left, centre, right = _MARGIN, WIDTH / 2, WIDTH - _MARGIN
    for side, edge, anchor, colour in ((0, left, "l", A_COLOUR), (1, right, "r", B_COLOUR)):
        label = _fitted(f"{'AB'[side]}  {frame.names[side]}", _font(13), _NAME_WIDTH)
        draw.text((edge, 22), label, font=_font(13), fill=colour, anchor=f"{anchor}s")
        draw.text(
            (edge, 54), points(frame.score[side]), font=_font(26, bold=True), fill=TEXT_COLOUR, anchor=f"{anchor}s"
        )
    time = f"{frame.seconds:.1f} s"
    counts = f"decision {frame.decision}  ·  {frame.crossings} over the net"
    draw.text((centre, 25), time, font=_font(16, bold=True), fill=TEXT_COLOUR, anchor="ms")
    draw.text((centre, 43), counts, font=_font(12), fill=MUTED_COLOUR, anchor="ms")
    caption = _fitted(frame.caption, _font(12), WIDTH - 2 * (_MARGIN + 90))
    draw.text((centre, 61), caption, font=_font(12), fill=BALL_COLOUR, anchor="ms")


def points(score: float) -> str:
    return f"{score:.2f}".replace("-", "\N{MINUS SIGN}")


def _fitted(text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    """The text, cut with an ellipsis where it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def _racket(draw: ImageDraw.ImageDraw, x: float, y: float, side: int, colour: str) -> None:
    """The collider, its hitting face brightest."""
    corners = [_large_pixel(*corner) for corner in racket_corners(x, y, side).tolist()]
    draw.polygon(corners, fill=blend(AIR_COLOUR, colour, 0.6))
    draw.line(corners[:2], fill=colour, width=4 * _SUPERSAMPLING)


def _disc(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: str | Colour) -> None:
    draw.ellipse((*_large_pixel(x - radius, y + radius), *_large_pixel(x + radius, y - radius)), fill=colour)


def _box(draw: ImageDraw.ImageDraw, left: float, top: float, right: float, bottom: float, colour: str) -> None:
    (first_column, first_row), (column, row) = _large_pixel(left, top), _large_pixel(right, bottom)
    draw.rectangle((first_column + 0.5, first_row + 0.5, column - 0.5, row - 0.5), fill=colour)


def _large_pixel(x: float, y: float) -> tuple[float, float]:
    """A point in the supersampled picture; Pillow counts from the centre of the first pixel."""
    column, row = pixel(x, y)
    return column * _SUPERSAMPLING - 0.5, row * _SUPERSAMPLING - 0.5


def blend(ground: str, colour: str, amount: float) -> Colour:
    """`colour` laid over `ground` with an opacity of `amount`."""
    low, high = ImageColor.getrgb(ground), ImageColor.getrgb(colour)
    red, green, blue = (round(a + (b - a) * amount) for a, b in zip(low[:3], high[:3], strict=True))
    return red, green, blue


@lru_cache(maxsize=8)
def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans as matplotlib ships it, so that a picture looks alike on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)), size)
