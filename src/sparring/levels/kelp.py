"""Kelp of generated maps: one function for each style. Each fills a whole board; the generator then mirrors one half.

Kelp is bool [2, height, width]: the north sides of all tiles, then their west sides. Walls run along corners; corner
(x, y) is the top left one of the tile in column x, row y, and the board is a torus.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sparring.levels.draws import Draws
from sparring.levels.maps import EAST, NORTH, SOUTH, STEPS, WEST

Kelp = NDArray[np.bool_]


def no_kelp(width: int, height: int) -> Kelp:
    return np.zeros((2, height, width), np.bool_)


def open_water(draws: Draws, width: int, height: int) -> Kelp:
    """Nothing, or a few short walls."""
    kelp = no_kelp(width, height)
    for _ in range(draws.between(0, 3)):
        _bent_wall(draws, kelp, 4)
    return kelp


def segments(draws: Draws, width: int, height: int) -> Kelp:
    """Walls here and there, some with a bend; 4 to 30 % of all edges."""
    kelp = no_kelp(width, height)
    wanted = width * height * draws.between(8, 60) // 100
    longest = draws.between(3, max(4, min(width, height) // 3))
    while kelp.sum() < wanted:
        _bent_wall(draws, kelp, longest)
    return kelp


def rooms(draws: Draws, width: int, height: int) -> Kelp:
    """Rooms in rows and columns, a door in most walls; some walls are missing."""
    kelp = no_kelp(width, height)
    least, most = draws.pick([(2, 4), (3, 5), (4, 8), (6, 12)])
    columns, rows = _cuts(draws, width, least, most), _cuts(draws, height, least, most)
    missing, closed = draws.between(0, 25), draws.between(0, 30)
    door = draws.between(1, 3)
    for x, next_x in zip(columns, [*columns[1:], columns[0] + width], strict=True):
        for y, next_y in zip(rows, [*rows[1:], rows[0] + height], strict=True):
            for direction, length in ((EAST, next_x - x), (SOUTH, next_y - y)):
                if draws.chance(missing):
                    continue
                _wall(kelp, x, y, direction, length)
                if not draws.chance(closed):
                    dx, dy = STEPS[direction]
                    at = draws.between(0, max(0, length - door))
                    _wall(kelp, x + dx * at, y + dy * at, direction, min(door, length), False)
    return kelp


def pillars(draws: Draws, width: int, height: int) -> Kelp:
    """The same small figure at regular places: closed boxes, crosses, bars or hooks; a few are missing."""
    kelp = no_kelp(width, height)
    size = draws.between(1, 2)
    period_x, period_y = (size + draws.between(2, 5) for _ in range(2))
    shift = draws.pick([0, period_x // 2])
    figure = draws.pick(["box", "box", "cross", "bar", "hook"])
    missing = draws.between(0, 30)
    offset_x, offset_y = draws.between(0, period_x - 1), draws.between(0, period_y - 1)
    for row, y in enumerate(range(offset_y, height + offset_y - period_y + 1, period_y)):
        for x in range(offset_x, width + offset_x - period_x + 1, period_x):
            if draws.chance(missing):
                continue
            x += shift * (row % 2)
            if figure == "box":
                corners = ((x, y, EAST), (x + size, y, SOUTH), (x + size, y + size, WEST), (x, y + size, NORTH))
                for corner_x, corner_y, direction in corners:
                    _wall(kelp, corner_x, corner_y, direction, size)
            elif figure == "cross":
                for direction in range(4):
                    _wall(kelp, x, y, direction, size)
            elif figure == "bar":
                _wall(kelp, x, y, draws.pick([EAST, SOUTH]), size + 1)
            else:
                turn = draws.between(0, 3)
                _wall(kelp, x, y, turn, size)
                _wall(kelp, x, y, (turn + 1) % 4, size)
    return kelp


def border(draws: Draws, width: int, height: int) -> Kelp:
    """The board's rim closed, perhaps rings inside it with gaps, and a few walls."""
    kelp = no_kelp(width, height)
    close_rim(kelp)
    inset = draws.between(2, 6)
    while 2 * inset + 3 <= min(width, height) and draws.chance(60):
        _ring(kelp, inset, inset, width - 2 * inset, height - 2 * inset)
        for _ in range(draws.between(2, 5)):  # gaps
            along = draws.pick([EAST, SOUTH])
            x = draws.pick([inset, width - inset]) if along == SOUTH else draws.between(inset, width - inset - 2)
            y = draws.pick([inset, height - inset]) if along == EAST else draws.between(inset, height - inset - 2)
            _wall(kelp, x, y, along, draws.between(1, 3), False)
        inset += draws.between(2, 6)
    for _ in range(draws.between(0, max(2, width * height // 25))):
        _bent_wall(draws, kelp, 5)
    return kelp


def maze(draws: Draws, width: int, height: int) -> Kelp:
    """A maze with corridors 1 to 4 tiles wide and some of its walls taken out again, so that it has loops."""
    wide = draws.weighted({1: 2, 2: 5, 3: 3, 4: 1})
    columns, rows = _cuts(draws, width, wide, wide), _cuts(draws, height, wide, wide)
    across, down = len(columns), len(rows)
    walls = np.ones((2, down, across), np.bool_)  # of the coarse cells, like kelp
    seen = np.zeros((down, across), np.bool_)
    path = [(draws.between(0, across - 1), draws.between(0, down - 1))]
    seen[path[0][1], path[0][0]] = True
    turns = draws.integers(across * down, 1 << 30).tolist()
    while path:
        x, y = path[-1]
        ways = [direction for direction, (dx, dy) in enumerate(STEPS) if not seen[(y + dy) % down, (x + dx) % across]]
        if not ways:
            path.pop()
            continue
        direction = ways[turns.pop() % len(ways)]
        dx, dy = STEPS[direction]
        far_x, far_y = (x + dx) % across, (y + dy) % down
        wall_x, wall_y = (far_x, far_y) if direction in (EAST, SOUTH) else (x, y)
        walls[1 if dx else 0, wall_y, wall_x] = False
        seen[far_y, far_x] = True
        path.append((far_x, far_y))
    loops = draws.between(30, 60) if wide == 1 else draws.between(0, 40)
    walls &= draws.integers(walls.size, 100).reshape(walls.shape) >= loops
    kelp = no_kelp(width, height)
    for side, row, column in np.argwhere(walls).tolist():
        direction, cuts, at, size = (SOUTH, rows, row, height) if side else (EAST, columns, column, width)
        end = cuts[at + 1] if at + 1 < len(cuts) else cuts[0] + size
        _wall(kelp, columns[column], rows[row], direction, end - cuts[at])
    return kelp


def divide(draws: Draws, width: int, height: int) -> Kelp:
    """Long walls right across the board, with few gates or none (then portals or gates cut later lead through)."""
    kelp = no_kelp(width, height)
    along = draws.pick([EAST, SOUTH])
    length, room = (width, height) if along == EAST else (height, width)
    for number in range(draws.between(1, 3)):
        at = draws.between(0, room // 2) if number else draws.pick([0, room // 2, draws.between(0, room // 2)])
        x, y = (0, at) if along == EAST else (at, 0)
        _wall(kelp, x, y, along, length)
        for _ in range(draws.between(0, 2)):
            gate = draws.between(0, length - 1)
            dx, dy = STEPS[along]
            _wall(kelp, x + dx * gate, y + dy * gate, along, draws.between(1, 3), False)
    for _ in range(draws.between(0, width * height // 20)):
        _bent_wall(draws, kelp, 6)
    return kelp


def close_rim(kelp: Kelp) -> None:
    """No way round the torus: kelp along the board's four sides."""
    kelp[0, 0, :] = True
    kelp[1, :, 0] = True


STYLES: dict[str, Callable[[Draws, int, int], Kelp]] = {
    "open": open_water,
    "segments": segments,
    "rooms": rooms,
    "pillars": pillars,
    "border": border,
    "maze": maze,
    "divide": divide,
}


def _wall(kelp: Kelp, x: int, y: int, direction: int, length: int, grown: bool = True) -> tuple[int, int]:
    """Kelp (or none) along `length` edges from corner (x, y) on; returns the corner where it ends."""
    _, height, width = kelp.shape
    dx, dy = STEPS[direction]
    for _ in range(length):
        if direction in (NORTH, WEST):
            x, y = x + dx, y + dy
        kelp[1 if dy else 0, y % height, x % width] = grown
        if direction in (EAST, SOUTH):
            x, y = x + dx, y + dy
    return x, y


def _bent_wall(draws: Draws, kelp: Kelp, longest: int) -> None:
    """A wall of 2 to `longest` edges somewhere; every third one goes on round a corner."""
    _, height, width = kelp.shape
    direction = draws.between(0, 3)
    x, y = draws.between(0, width - 1), draws.between(0, height - 1)
    x, y = _wall(kelp, x, y, direction, draws.between(2, longest))
    if draws.chance(33):
        _wall(kelp, x, y, (direction + draws.pick([1, 3])) % 4, draws.between(1, longest))


def _ring(kelp: Kelp, x: int, y: int, width: int, height: int) -> None:
    for direction, length in ((EAST, width), (SOUTH, height), (WEST, width), (NORTH, height)):
        x, y = _wall(kelp, x, y, direction, length)


def _cuts(draws: Draws, length: int, least: int, most: int) -> list[int]:
    """Where to cut a side of `length` into pieces of `least` to `most`; the last one takes up what is left over."""
    cuts = [0]
    while (next_cut := cuts[-1] + draws.between(least, most)) + least <= length:
        cuts.append(next_cut)
    return cuts
