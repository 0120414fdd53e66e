"""Boards: what is drawn lies where the map has it, in a picture and in a terminal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import ImageColor

from sparring.levels.maps import LoongMap, read_map
from sparring.pictures.board import (
    FRAME_COLOUR,
    KELP_COLOUR,
    PEARL_COLOUR,
    QUEEN_COLOUR,
    TEAM_COLOURS,
    WATER_COLOUR,
    BoardDragon,
    bed_colour,
    board_text,
    draw_board,
    draw_sheet,
    portal_colours,
    starting_dragons,
)

FILE = b"""MAP 9 7
TILE_COUNT 2
TILE 4 3 1 1
TILE 5 3 300 900
EDGE_COUNT 7
EDGE 0 1 0
EDGE 32 1 0
EDGE 24 2 3
EDGE 87 2 3
EDGE 50 2 12
EDGE 70 2 12
EDGE 5 1 0
DRAGON_COUNT 4
DRAGON 0 3 1 1 1 2 2 2
DRAGON 1 2 7 5 7 4
DRAGON 0 3 0 6 8 6 7 6
DRAGON 1 2 5 0 4 0
END
"""
TILE, MARGIN, TITLE = 44, 22, 32


@pytest.fixture(scope="module")
def board() -> LoongMap:
    return read_map(FILE)


def at(image: NDArray[np.uint8], x: float, y: float) -> tuple[int, ...]:
    """The colour at a place on the board, in tiles from its top left corner."""
    return tuple(image[round(TITLE + MARGIN + TILE * y), round(MARGIN + TILE * x)].tolist())


def close(colour: tuple[int, ...], wanted: str) -> bool:
    return max(abs(a - b) for a, b in zip(colour, ImageColor.getrgb(wanted), strict=True)) < 14


def test_kelp_portals_and_beds_lie_where_the_map_has_them(board: LoongMap) -> None:
    image = draw_board(board)
    assert image.shape == (TITLE + 7 * TILE + 2 * MARGIN + 30, 9 * TILE + 2 * MARGIN, 3)
    assert image.dtype == np.uint8
    assert close(at(image, 0.5, 0), KELP_COLOUR)
    assert close(at(image, 0.5, 7), KELP_COLOUR)  # the rim is one edge, drawn twice
    assert close(at(image, 2, 1.5), KELP_COLOUR)
    colours = portal_colours(board)
    for number, ends in {3: ((4.3, 1), (7.3, 4)), 12: ((0, 2.2), (9, 2.2), (0, 3.2), (9, 3.2))}.items():
        for end in ends:
            assert close(at(image, *end), colours[number]), (number, end)
    assert close(at(image, 4.5, 3.5), bed_colour(1, 1))
    assert close(at(image, 5.5, 3.5), bed_colour(300, 900))
    assert close(at(image, 6.5, 3.5), WATER_COLOUR)
    assert bed_colour(1, 1) != bed_colour(1, 5) != bed_colour(300, 900)


def test_dragons_lie_on_their_tiles_and_go_round_the_rim(board: LoongMap) -> None:
    image = draw_board(board)

    def team(x: float, y: float) -> int | None:
        red, _, blue = at(image, x, y)
        return None if abs(red - blue) < 60 else int(blue > red)

    assert close(at(image, 1.5, 1.62), QUEEN_COLOUR)
    assert close(at(image, 7.5, 5.38), QUEEN_COLOUR)
    assert [team(x, y) for x, y in ((1.5, 2.5), (2.5, 2.5), (1.5, 2), (2, 2.5))] == [0] * 4
    assert [team(x, y) for x, y in ((7.5, 4.5), (7.5, 5), (4.5, 0.5), (5, 0.5))] == [1] * 4
    assert [team(x, y) for x, y in ((0.02, 6.5), (8.95, 6.5), (8.5, 6.5), (7.5, 6.5))] == [0] * 4
    assert team(1.03, 6.5) is None  # the snout ends at the tile's edge
    assert team(0.95, 6.5) == 0  # and this head looks east, away from its body


def test_live_boards_show_other_bodies_and_pearls(board: LoongMap) -> None:
    pearls = np.zeros((7, 9), np.bool_)
    pearls[6, 3] = True
    dragon = BoardDragon(number=17, team=1, body=np.array([[4, 4]], np.int32), facing=1)
    image = draw_board(board, dragons=[dragon], pearls=pearls, title="round 12", caption="A 9, B 2", key=False)
    assert image.shape[0] == TITLE + 7 * TILE + 2 * MARGIN
    assert close(at(image, 3.5, 6.5), PEARL_COLOUR)
    assert close(at(image, 4.95, 4.5), TEAM_COLOURS[1]) == close(at(image, 4.3, 4.5), TEAM_COLOURS[1])
    assert close(at(image, 1.5, 2.5), WATER_COLOUR)
    assert (draw_board(board, dragons=[])[:TITLE] != image[:TITLE, :, :]).any()


def test_big_and_small_boards_are_drawn(board: LoongMap) -> None:
    side = 256
    water = np.full((side, side), -1, np.int32)
    big = LoongMap(
        width=side,
        height=side,
        gaps=np.ones((side, side, 2), np.int32),
        horizontal=water,
        vertical=water.copy(),
        dragons=(),
    )
    assert draw_board(big).shape[:2] == (32 + 4 * side + 12 + 30, 4 * side + 12)
    assert draw_board(board, side=30).shape[1] == 4 * 9 + 12


def test_a_sheet_has_a_place_for_each_map(board: LoongMap) -> None:
    one, three = draw_sheet([board], side=120), draw_sheet([board] * 3, columns=2, side=120)
    assert three.shape[1] - one.shape[1] == one.shape[1] - 8
    assert three.shape[0] - one.shape[0] == one.shape[0] - 8
    cell = one[8:-8, 8:-8]
    height, width = cell.shape[:2]
    for top, left in ((8, 8), (8, 16 + width), (16 + height, 8)):
        assert (three[top : top + height, left : left + width] == cell).all()
    assert (three[16 + height :, 16 + width :] == ImageColor.getrgb(FRAME_COLOUR)).all()


def test_portals_of_a_board_have_different_colours() -> None:
    ends = [f"EDGE {row * 20 + column} 2 {9 * row + column}" for row in (2, 6) for column in range(10)]
    ends += [f"EDGE {row * 20 + column} 2 {9 * (row - 2) + column}" for row in (4, 8) for column in range(10)]
    file = "\n".join(["MAP 19 9", "TILE_COUNT 0", "EDGE_COUNT 40", "DRAGON_COUNT 0", *ends])
    colours = portal_colours(read_map(file.encode()))
    assert len(set(colours.values())) == len(colours) == 20


def test_a_terminal_shows_the_board_in_colours(board: LoongMap) -> None:
    text = board_text(board, columns=80)
    lines = text.plain.split("\n")
    assert [len(line) for line in lines] == [2 * 9 + 1] * 8
    styles = {span.start: str(span.style) for span in text.spans}

    def colour(x: int, y: int) -> str:
        """Of a dot: tiles have odd numbers, edges even ones."""
        above, _, below = styles[(y // 2) * (2 * 9 + 2) + x].partition(" on ")
        return below if y % 2 else above

    assert colour(1, 0) == colour(4, 3) == KELP_COLOUR
    assert colour(1, 14) == KELP_COLOUR
    assert colour(9, 2) == colour(15, 8) == portal_colours(board)[3]
    assert colour(0, 5) == colour(18, 5) == portal_colours(board)[12]
    assert colour(9, 7) == bed_colour(1, 1)
    assert colour(3, 3) == colour(15, 11) == QUEEN_COLOUR
    assert colour(3, 4) == colour(3, 5) == colour(4, 5) == colour(5, 5) != WATER_COLOUR
    assert colour(1, 13) == "#ffffff"
    small = board_text(board, columns=18).plain.split("\n")
    assert [len(line) for line in small] == [9] * 4
    assert [len(line) for line in board_text(board, columns=5).plain.split("\n")] == [5] * 4


def test_a_terminal_without_colours_shows_signs(board: LoongMap) -> None:
    pearls = np.zeros((7, 9), np.bool_)
    pearls[3, 4] = True
    assert board_text(board, columns=80, colour=False, pearls=pearls).plain + "\n" == SIGNS
    assert len(starting_dragons(board)) == 4


SIGNS = """\
╶─╴       ╶─╴
         b B
    ╷    0
   Q│
    ╵
1  a a            1

1        o ·      1
               0
               b

               Q

 A             a a
╶─╴       ╶─╴
"""
