"""A board of Loong as an image, several on one sheet, or in a terminal. What the signs mean: docs/loong-maps.md."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from rich.text import Text

from sparring.levels.maps import KELP, OPEN, QUEENS, STEPS, Int32, LoongMap
from sparring.pictures.court import Colour, Image8, blend

PICTURE_SIDE = 960
"""Longer side of a board's picture, in pixels, without title and key."""
SMALLEST_TILE, LARGEST_TILE = 4, 44

TEAM_COLOURS = ("#ff7a66", "#4db8ff")
QUEEN_COLOUR = "#ffd84d"
PEARL_COLOUR = "#fdf6e3"
KELP_COLOUR = "#56c271"
KELP_SHADOW = "#163f2a"
WATER_COLOUR = "#12243b"
GRID_COLOUR = "#1a3049"
FRAME_COLOUR = "#0b1626"
TEXT_COLOUR = "#f1f5f9"
MUTED_COLOUR = "#9fb0c8"
BED_COLOURS = ("#1c4a5c", "#23808a", "#5fb49c", "#e3b34c", "#ffe9a8")
"""From one pearl in SLOWEST rounds to one a round, even steps of the logarithm."""
SLOWEST = 4000.0

_SUPERSAMPLING = 3
_TITLE, _KEY, _MARGIN, _GAP = 32, 30, 8, 8
_UPPER_HALF = "▀"
_PORTAL_SIGNS = "0123456789CDEFGHIJKLMNOPRSTUVWXYZ"
_BOX = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
"""Lines that meet, by the sum of 1 north, 2 east, 4 south, 8 west."""


@dataclass(frozen=True, eq=False)
class BoardDragon:
    """A dragon to draw.

    number: its id; 0 and 1 are the queens
    team:   0 for A, 1 for B
    body:   int32 [n, 2], column and row of each segment, head first
    facing: 0 to 3 for north, east, south, west; None: as its body lies
    headless: these are segments of which nobody knows how they hang together
    """

    number: int
    team: int
    body: Int32
    facing: int | None = None
    headless: bool = False


def starting_dragons(loong_map: LoongMap) -> tuple[BoardDragon, ...]:
    return tuple(BoardDragon(number, dragon.team, dragon.body) for number, dragon in enumerate(loong_map.dragons))


def draw_board(
    loong_map: LoongMap,
    *,
    dragons: Sequence[BoardDragon] | None = None,
    pearls: NDArray[np.bool_] | None = None,
    title: str | None = None,
    caption: str | None = None,
    side: int = PICTURE_SIDE,
    key: bool = True,
    unknown: NDArray[np.bool_] | None = None,
) -> Image8:
    """Draws a board; returns RGB uint8 [height, width, 3].

    dragons: those alive. Default: as the map places them
    pearls:  bool [height, width], where a pearl lies. Default: none
    title:   line above the board, on the left. Default: the map's name
    caption: the same on the right. Default: the map's size and mirror
    side:    about how long the board's longer side is to be, in pixels; a tile has 4 to 44
    key:     whether to explain the beds' colours below the board
    unknown: bool [height, width], tiles that are left dark. Default: none
    """
    board = _draw(loong_map, dragons, pearls, side, unknown)
    picture = Image.new("RGB", (board.width, board.height + _TITLE + (_KEY if key else 0)), FRAME_COLOUR)
    picture.paste(board, (0, _TITLE))
    _draw_title(
        picture, (0, 0, picture.width), loong_map.name if title is None else title, caption or describe(loong_map)
    )
    if key:
        _draw_key(picture, _TITLE + board.height)
    return np.array(picture)


def draw_sheet(maps: Sequence[LoongMap], *, columns: int = 6, side: int = 190) -> Image8:
    """Draws several maps as they start on one sheet, in rows, each with its name; returns RGB uint8 [height, width, 3].

    side: about how long each board's longer side is to be, in pixels
    """
    boards = [_draw(each, None, None, side, None) for each in maps]
    columns = min(columns, len(boards))
    rows = [range(at, min(at + columns, len(boards))) for at in range(0, len(boards), columns)]
    cell = max(max(board.width for board in boards), side)
    heights = [max(boards[which].height for which in row) + _TITLE for row in rows]
    sheet = Image.new("RGB", (columns * (cell + _GAP) + _GAP, sum(heights) + _GAP * (len(rows) + 1)), FRAME_COLOUR)
    top = _GAP
    for row, height in zip(rows, heights, strict=True):
        for column, which in enumerate(row):
            board, left = boards[which], _GAP + column * (cell + _GAP)
            middle = (cell - board.width) // 2, (height - _TITLE - board.height) // 2
            sheet.paste(board, (left + middle[0], top + _TITLE + middle[1]))
            size = f"{maps[which].width}x{maps[which].height}"
            _draw_title(sheet, (left, top, cell), maps[which].name, f"{size} {maps[which].symmetry}")
        top += height + _GAP
    return np.array(sheet)


def describe(loong_map: LoongMap) -> str:
    """Size, mirror and portals in a few words."""
    mirror = "no mirror" if loong_map.symmetry == "none" else f"mirror {loong_map.symmetry}"
    portals = len(loong_map.portals)
    return f"{loong_map.width}x{loong_map.height}, {mirror}, {portals} portal{'s' * (portals != 1)}"


def board_text(
    loong_map: LoongMap,
    *,
    columns: int,
    dragons: Sequence[BoardDragon] | None = None,
    pearls: NDArray[np.bool_] | None = None,
    unknown: NDArray[np.bool_] | None = None,
    colour: bool = True,
) -> Text:
    """A board for a terminal of this many columns; arguments as for `draw_board`.

    With colours two rows of dots share a line, and a board needs 2 * width + 1 columns to show kelp and portals too;
    with fewer it shows tiles alone. Without colours it is made of signs: lines are kelp, digits and capitals the ends
    of portals, A and B heads, Q a queen's head, a and b bodies, a dot a bed, o a pearl, ? what is unknown.
    """
    dragons = starting_dragons(loong_map) if dragons is None else dragons
    if not colour:
        return _signs(loong_map, dragons, pearls, unknown)
    lattice = _lattice(loong_map, dragons, pearls, unknown)
    if 2 * loong_map.width + 1 > columns:
        lattice = lattice[1::2, 1::2]
    if lattice.shape[0] % 2:
        lattice = np.concatenate([lattice, np.full((1, lattice.shape[1]), FRAME_COLOUR, dtype=lattice.dtype)])
    text = Text(no_wrap=True, overflow="crop")
    for upper, lower in zip(lattice[0::2].tolist(), lattice[1::2].tolist(), strict=True):
        for above, below in zip(upper[:columns], lower[:columns], strict=True):
            text.append(_UPPER_HALF, style=f"{above} on {below}")
        text.append("\n")
    text.right_crop(1)
    return text


def bed_colour(least: int, most: int) -> str:
    """Colour of a tile that grows a pearl every `least` to `most` rounds."""
    rate = 2.0 / (least + most)
    level = max(0.0, 1.0 + float(np.log(rate) / np.log(SLOWEST))) * (len(BED_COLOURS) - 1)
    step = min(int(level), len(BED_COLOURS) - 2)
    return _hex(blend(BED_COLOURS[step], BED_COLOURS[step + 1], level - step))


def portal_colours(loong_map: LoongMap) -> dict[int, str]:
    """A colour for each portal by its number: hues far apart from one to the next, none green as kelp is."""
    colours = {}
    for order, number in enumerate(loong_map.portals):
        hue = 0.45 + 0.75 * ((order * 0.618034) % 1.0)
        red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, 0.5 if order % 2 else 0.75, 1.0)
        colours[number] = _hex((round(255 * red), round(255 * green), round(255 * blue)))
    return colours


class _Canvas:
    """The board, supersampled; positions are in tiles, (0, 0) the top left corner of the top left tile."""

    def __init__(self, loong_map: LoongMap, tile: int, unknown: NDArray[np.bool_] | None) -> None:
        self._map, self._tile = loong_map, tile
        self._shown = _uncovered(loong_map, unknown)
        self.margin = max(6, tile // 2)
        width, height = (2 * self.margin + tile * side for side in (loong_map.width, loong_map.height))
        self.large = Image.new("RGB", (width * _SUPERSAMPLING, height * _SUPERSAMPLING), FRAME_COLOUR)
        self._draw = ImageDraw.Draw(self.large)

    def beds(self) -> None:
        """Water with its grid, and the beds, brighter where pearls grow faster."""
        height, width = self._map.height, self._map.width
        self._draw.rectangle(self._box(0, 0, width, height), fill=WATER_COLOUR)
        if self._tile >= 8:
            for x in range(width + 1):
                self._line([(x, 0), (x, height)], GRID_COLOUR, 1 / self._tile)
            for y in range(height + 1):
                self._line([(0, y), (width, y)], GRID_COLOUR, 1 / self._tile)
        inset = 0.08 if self._tile >= 8 else 0.0
        for y, x in np.argwhere(self._shown.gaps[:, :, 1] > 0).tolist():
            box = self._box(x + inset, y + inset, x + 1 - inset, y + 1 - inset)
            self._draw.rounded_rectangle(
                box, self._length(1.5 * inset), fill=bed_colour(*self._map.gaps[y, x].tolist())
            )

    def veil(self, unknown: NDArray[np.bool_]) -> None:
        for y, x in np.argwhere(unknown).tolist():
            self._draw.rectangle(self._box(x, y, x + 1, y + 1), fill=FRAME_COLOUR)

    def kelp(self) -> None:
        """What lies on the rim is drawn at both ends of the board; so are portals."""
        kelp = [ends for value, ends in self._sides() if value == KELP]
        wide = max(0.2, 2.2 / self._tile)
        for colour, width in ((KELP_SHADOW, wide * 1.7), (KELP_COLOUR, wide)):
            for ends in kelp:
                self._line(ends, colour, width, round_ends=True)

    def portals(self) -> None:
        """In the colours of their pairs, and with their numbers where there is room."""
        colours = portal_colours(self._map)
        for value, ends in self._sides():
            if value >= 0:
                self._line(ends, FRAME_COLOUR, max(0.5, 4 / self._tile), round_ends=True)
                self._line(ends, colours[value], max(0.32, 2.8 / self._tile), round_ends=True)
                if self._tile >= 20:
                    (x, y), (end_x, end_y) = ends
                    self._label((x + end_x) / 2, (y + end_y) / 2, str(value))

    def pearls(self, pearls: NDArray[np.bool_]) -> None:
        for y, x in np.argwhere(pearls).tolist():
            self._disc(x + 0.5, y + 0.5, 0.27, FRAME_COLOUR)
            self._disc(x + 0.5, y + 0.5, 0.21, PEARL_COLOUR)

    def body(self, dragon: BoardDragon) -> None:
        """Thinner towards the tail."""
        skin = _skin(dragon)
        body = dragon.body.tolist()
        if dragon.headless:
            for x, y in body:
                self._disc(x + 0.5, y + 0.5, 0.35, FRAME_COLOUR)
                self._disc(x + 0.5, y + 0.5, 0.27, _hex(blend(WATER_COLOUR, skin, 0.85)))
            return
        headings = _headings(self._map, dragon.body)
        thick = [0.62 - 0.26 * segment / len(body) for segment in range(len(body))]
        for outline, paint in ((0.16, FRAME_COLOUR), (0.0, _hex(blend(WATER_COLOUR, skin, 0.85)))):
            for segment in range(1, len(body)):
                (x, y), (next_x, next_y) = body[segment], body[segment - 1]
                own, ahead = thick[segment] + outline, thick[segment - 1] + outline
                self._disc(x + 0.5, y + 0.5, own / 2, paint)
                heading = headings[segment - 1]
                if heading is not None:  # two halves, for the way may lead round the board or through a portal
                    dx, dy = STEPS[heading]
                    self._limb(x + 0.5, y + 0.5, dx / 2, dy / 2, own, (own + ahead) / 2, paint)
                    self._limb(next_x + 0.5, next_y + 0.5, -dx / 2, -dy / 2, ahead, (own + ahead) / 2, paint)

    def head(self, dragon: BoardDragon) -> None:
        """With a snout where it faces, and eyes; a queen has a crown."""
        skin, facing = _skin(dragon), _facing(self._map, dragon)
        column, row = dragon.body[0].tolist()
        x, y = column + 0.5, row + 0.5
        dx, dy = STEPS[facing] if facing is not None else (0, 0)
        for grown, paint in ((0.08, FRAME_COLOUR), (0.0, skin)):
            self._disc(x, y, 0.36 + grown, paint)
            snout = 0.5 + grown
            wings = [(x + 0.3 * dy * side + 0.16 * dx, y + 0.3 * dx * side + 0.16 * dy) for side in (1, -1)]
            self._draw.polygon([self._at(*point) for point in (*wings, (x + snout * dx, y + snout * dy))], fill=paint)
        if self._tile >= 12:
            for side in (1, -1):
                eye_x, eye_y = x + 0.15 * dx + 0.17 * dy * side, y + 0.15 * dy + 0.17 * dx * side
                self._disc(eye_x, eye_y, 0.085, "#ffffff")
                self._disc(eye_x + 0.03 * dx, eye_y + 0.03 * dy, 0.05, FRAME_COLOUR)
        if dragon.number in QUEENS:
            self._crown(x - 0.12 * dx, y - 0.12 * dy)

    def _crown(self, x: float, y: float) -> None:
        points = [(-0.26, 0.18), (-0.3, -0.16), (-0.13, 0.0), (0, -0.26), (0.13, 0.0), (0.3, -0.16), (0.26, 0.18)]
        for scale, paint in ((1.35, FRAME_COLOUR), (1.0, QUEEN_COLOUR)):
            self._draw.polygon([self._at(x + scale * px, y + scale * py) for px, py in points], fill=paint)

    def _sides(self) -> Iterator[tuple[int, list[tuple[float, float]]]]:
        """What stands on each side that is not open, and the side's two ends."""
        height, width = self._map.height, self._map.width
        for edges, dx, dy in ((self._shown.horizontal, 1, 0), (self._shown.vertical, 0, 1)):
            for y, x in np.argwhere(edges != OPEN).tolist():
                for at_x in (x, width) if dy and x == 0 else (x,):
                    for at_y in (y, height) if dx and y == 0 else (y,):
                        yield int(edges[y, x]), [(at_x, at_y), (at_x + dx, at_y + dy)]

    def _label(self, x: float, y: float, text: str) -> None:
        font = _font(round(0.3 * self._tile * _SUPERSAMPLING), bold=True)
        self._draw.text(self._at(x, y), text, font=font, fill=FRAME_COLOUR, anchor="mm")

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return self.margin * _SUPERSAMPLING + self._length(x), self.margin * _SUPERSAMPLING + self._length(y)

    def _length(self, tiles: float) -> float:
        return tiles * self._tile * _SUPERSAMPLING

    def _box(self, left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
        (x, y), (end_x, end_y) = self._at(left, top), self._at(right, bottom)
        return x, y, end_x - 1, end_y - 1

    def _disc(self, x: float, y: float, radius: float, colour: str) -> None:
        self._draw.ellipse(self._box(x - radius, y - radius, x + radius, y + radius), fill=colour)

    def _limb(self, x: float, y: float, dx: float, dy: float, wide: float, end_wide: float, colour: str) -> None:
        """A stretch of body from (x, y) on by (dx, dy), `wide` there and `end_wide` at its end."""
        length = abs(dx) + abs(dy)
        across_x, across_y = -dy / length / 2, dx / length / 2
        corners = [
            (x + sign * width * across_x + on * dx, y + sign * width * across_y + on * dy)
            for sign, width, on in ((1, wide, 0), (-1, wide, 0), (-1, end_wide, 1), (1, end_wide, 1))
        ]
        self._draw.polygon([self._at(*corner) for corner in corners], fill=colour)

    def _line(
        self, ends: Sequence[tuple[float, float]], colour: str, width: float, *, round_ends: bool = False
    ) -> None:
        """A line along the grid."""
        (x, y), (end_x, end_y) = ends
        half_x, half_y = (width / 2 if a == b else 0.0 for a, b in ((x, end_x), (y, end_y)))
        box = min(x, end_x) - half_x, min(y, end_y) - half_y, max(x, end_x) + half_x, max(y, end_y) + half_y
        self._draw.rectangle(self._box(*box), fill=colour)
        if round_ends:
            for disc_x, disc_y in ends:
                self._disc(disc_x, disc_y, width / 2, colour)


def _skin(dragon: BoardDragon) -> str:
    """The team's colour, a little paler for some so that neighbours can be told apart."""
    return _hex(blend(TEAM_COLOURS[dragon.team], "#ffffff", (0.0, 0.22, 0.11)[dragon.number // 2 % 3]))


def _facing(loong_map: LoongMap, dragon: BoardDragon) -> int | None:
    return _headings(loong_map, dragon.body[:2])[0] if dragon.facing is None else dragon.facing


def _headings(loong_map: LoongMap, body: Int32) -> list[int | None]:
    """Of each segment behind the head, the first of north, east, south, west that leads to the one before it."""
    tiles = (body[:, 1] * loong_map.width + body[:, 0]).tolist()
    headings: list[int | None] = []
    for tile, before in zip(tiles[1:], tiles[:-1], strict=True):
        ways = loong_map.neighbours[:, tile].tolist()
        headings.append(ways.index(before) if before in ways else None)
    return headings


def _uncovered(loong_map: LoongMap, unknown: NDArray[np.bool_] | None) -> LoongMap:
    """The map without what is known of no tile that is known."""
    if unknown is None:
        return loong_map
    beds, north, west = (
        np.where(hidden, nothing, values)
        for hidden, nothing, values in (
            (unknown[..., None], np.int32(0), loong_map.gaps),
            (unknown & np.roll(unknown, 1, axis=0), np.int32(OPEN), loong_map.horizontal),
            (unknown & np.roll(unknown, 1, axis=1), np.int32(OPEN), loong_map.vertical),
        )
    )
    return replace(loong_map, gaps=beds, horizontal=north, vertical=west)


def _draw(
    loong_map: LoongMap,
    dragons: Sequence[BoardDragon] | None,
    pearls: NDArray[np.bool_] | None,
    side: int,
    unknown: NDArray[np.bool_] | None,
) -> Image.Image:
    """The board alone, with a margin."""
    tile = min(LARGEST_TILE, max(SMALLEST_TILE, side // max(loong_map.width, loong_map.height)))
    canvas = _Canvas(loong_map, tile, unknown)
    dragons = starting_dragons(loong_map) if dragons is None else dragons
    canvas.beds()
    if unknown is not None:
        canvas.veil(unknown)
    canvas.kelp()
    if pearls is not None:
        canvas.pearls(pearls)
    for dragon in dragons:
        canvas.body(dragon)
    canvas.portals()
    for dragon in dragons:
        if not dragon.headless:
            canvas.head(dragon)
    return canvas.large.reduce(_SUPERSAMPLING)


def _draw_title(picture: Image.Image, place: tuple[int, int, int], title: str, caption: str) -> None:
    """Title on the left and caption on the right of a line; place is its left and top edge and its width."""
    left, top, width = place
    left, width, middle = left + _MARGIN, width - 2 * _MARGIN, top + _TITLE / 2
    draw = ImageDraw.Draw(picture)
    caption = _fitted(caption, _font(12), width)
    draw.text((left + width, middle), caption, font=_font(12), fill=MUTED_COLOUR, anchor="rm")
    title = _fitted(title, _font(14, bold=True), width - _font(12).getlength(caption) - 2 * _MARGIN)
    draw.text((left, middle), title, font=_font(14, bold=True), fill=TEXT_COLOUR, anchor="lm")


def _draw_key(picture: Image.Image, top: int) -> None:
    """What the colours of beds mean, as far as there is room."""
    draw, font = ImageDraw.Draw(picture), _font(11)
    middle, right = top + _KEY / 2 - 3, picture.width - _MARGIN
    x = float(_MARGIN)
    for gap in (4000, 1000, 250, 60, 15, 4, 1):
        if x + 16 + font.getlength(str(gap)) > right:
            return
        draw.rounded_rectangle((x, middle - 6, x + 12, middle + 6), 2, fill=bed_colour(gap, gap))
        draw.text((x + 16, middle), str(gap), font=font, fill=MUTED_COLOUR, anchor="lm")
        x += 26 + font.getlength(str(gap))
    text = _fitted("rounds to the next pearl, on average", font, right - x)
    draw.text((x + 2, middle), text, font=font, fill=MUTED_COLOUR, anchor="lm")


def _lattice(
    loong_map: LoongMap,
    dragons: Sequence[BoardDragon],
    pearls: NDArray[np.bool_] | None,
    unknown: NDArray[np.bool_] | None,
) -> NDArray[np.str_]:
    """Colours [2 * height + 1, 2 * width + 1]: tiles at odd rows and columns, edges between them."""
    height, width = loong_map.height, loong_map.width
    shown = _uncovered(loong_map, unknown)
    lattice = np.full((2 * height + 1, 2 * width + 1), WATER_COLOUR, dtype="<U7")
    if unknown is not None:
        lattice[1::2, 1::2][unknown] = FRAME_COLOUR
    for y, x in np.argwhere(shown.gaps[:, :, 1] > 0).tolist():
        lattice[2 * y + 1, 2 * x + 1] = bed_colour(*shown.gaps[y, x].tolist())
    colours = portal_colours(loong_map)
    for edges, row, column in ((shown.horizontal, 0, 1), (shown.vertical, 1, 0)):
        for y, x in np.argwhere(edges != OPEN).tolist():
            value = int(edges[y, x])
            at = 2 * y + row, 2 * x + column
            if value == KELP:  # with its corners
                for step in (-1, 0, 1):
                    lattice[at[0] + step * row, at[1] + step * column] = KELP_COLOUR
            else:
                lattice[at] = colours[value]
    lattice[-1], lattice[:, -1] = lattice[0], lattice[:, 0]
    if pearls is not None:
        lattice[1::2, 1::2][pearls] = PEARL_COLOUR
    for dragon in dragons:
        skin = _hex(blend(WATER_COLOUR, TEAM_COLOURS[dragon.team], 0.8))
        if dragon.headless:
            lattice[1::2, 1::2][dragon.body[:, 1], dragon.body[:, 0]] = skin
            continue
        headings = _headings(loong_map, dragon.body)
        for (x, y), heading in zip(dragon.body[1:].tolist(), headings, strict=True):
            lattice[2 * y + 1, 2 * x + 1] = skin
            if heading is not None:
                dx, dy = STEPS[heading]
                lattice[2 * y + 1 + dy, 2 * x + 1 + dx] = skin
        x, y = dragon.body[0].tolist()
        lattice[2 * y + 1, 2 * x + 1] = QUEEN_COLOUR if dragon.number in QUEENS else "#ffffff"
        facing = _facing(loong_map, dragon)
        if facing is not None:
            dx, dy = STEPS[facing]
            at = 2 * y + 1 + dy, 2 * x + 1 + dx
            if lattice[at] == WATER_COLOUR:
                lattice[at] = TEAM_COLOURS[dragon.team]
    return lattice


def _signs(
    loong_map: LoongMap,
    dragons: Sequence[BoardDragon],
    pearls: NDArray[np.bool_] | None,
    unknown: NDArray[np.bool_] | None,
) -> Text:
    height, width = loong_map.height, loong_map.width
    shown = _uncovered(loong_map, unknown)
    names = dict(
        zip(loong_map.portals, _PORTAL_SIGNS * (1 + len(loong_map.portals) // len(_PORTAL_SIGNS)), strict=False)
    )
    signs = np.full((2 * height + 1, 2 * width + 1), " ")
    meeting = np.zeros(signs.shape, np.int64)  # at corners: which of the four sides have kelp
    for edges, row, column in ((shown.horizontal, 0, 1), (shown.vertical, 1, 0)):
        for y, x in np.argwhere(edges != OPEN).tolist():
            value = int(edges[y, x])
            for at_y in (2 * y, 2 * height) if column and y == 0 else (2 * y,):
                for at_x in (2 * x, 2 * width) if row and x == 0 else (2 * x,):
                    if value == KELP:
                        signs[at_y + row, at_x + column] = "│" if row else "─"
                        meeting[at_y, at_x] |= 4 if row else 2
                        meeting[at_y + 2 * row, at_x + 2 * column] |= 1 if row else 8
                    else:
                        signs[at_y + row, at_x + column] = names[value]
    corners = (slice(None, None, 2), slice(None, None, 2))
    signs[corners] = np.array(list(_BOX))[meeting[corners]]
    tiles = signs[1::2, 1::2]
    tiles[shown.gaps[:, :, 1] > 0] = "·"
    if unknown is not None:
        tiles[unknown] = "?"
    if pearls is not None:
        tiles[pearls] = "o"
    for dragon in dragons:
        tiles[dragon.body[:, 1], dragon.body[:, 0]] = "ab"[dragon.team]
        if dragon.headless:
            continue
        x, y = dragon.body[0].tolist()
        tiles[y, x] = "Q" if dragon.number in QUEENS else "AB"[dragon.team]
    return Text("\n".join("".join(row).rstrip() for row in signs.tolist()), no_wrap=True, overflow="crop")


def _fitted(text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    """The text, cut with an ellipsis where it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…" if text else ""


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


@lru_cache(maxsize=8)
def _font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """DejaVu Sans as matplotlib ships it, so that a picture looks alike on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)), size)
