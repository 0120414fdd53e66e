"""Maps for tests of Loong's engine: tiny ones made by hand, and random ones with everything the format allows."""

from __future__ import annotations

import random


def simple_map(
    size: str = "9 9", dragons: tuple[str, ...] = ("0 2 1 1 2 1", "1 2 4 4 5 4"), lines: tuple[str, ...] = ()
) -> bytes:
    """A map file with these DRAGON lines and further TILE, EDGE and other lines; the counts are filled in."""
    body = [*lines, *(f"DRAGON {dragon}" for dragon in dragons)]
    counts = [f"{key}_COUNT {sum(line.startswith(key + ' ') for line in body)}" for key in ("TILE", "EDGE", "DRAGON")]
    return "\n".join([f"MAP {size}", *counts, *body, "END", ""]).encode()


def random_map(pick: random.Random, *, repeats: bool = False) -> bytes:
    """A valid map of 7..18 tiles a side: any symmetry, portals, kelp, short gaps, low limits, lines on the far rim.

    With `repeats` starting bodies may visit a tile twice.
    """
    width, height = pick.randint(7, 18), pick.randint(7, 18)
    symmetry = pick.choice(("", "x", "y", "xy"))
    lines = [f"MAP {width} {height}"]
    if symmetry:
        lines.append(f"SYMMETRY {symmetry}")
    if pick.random() < 0.7:
        lines.append(f"UNIT_LIMIT {pick.randint(1, 12)}")

    tiles = []
    density = pick.choice((0.0, 0.1, 0.4, 1.0))
    longest = pick.choice((1, 3, 10, 60))
    for y in range(height):
        for x in range(width):
            mirror = (width - 1 - x if "y" in symmetry else x, height - 1 - y if "x" in symmetry else y)
            if (y, x) <= mirror[::-1] and pick.random() < density:
                low = pick.randint(1, longest)
                gaps = f"{low} {pick.randint(low, longest)}"
                tiles += [f"TILE {a} {b} {gaps}" for a, b in {(x, y), mirror}]

    stride = width + 1
    edges: dict[int, str] = {}
    partner: dict[tuple[str, int, int], tuple[str, int, int]] = {}
    free = [("h", x, y) for x in range(width) for y in range(height)] + [
        ("v", x, y) for x in range(width) for y in range(height)
    ]
    pick.shuffle(free)

    def index(edge: tuple[str, int, int]) -> int:
        kind, x, y = edge
        return (2 * y + (kind == "v")) * stride + x

    kelp = set()
    for portal in pick.sample(range(1000), pick.choice((0, 0, 2, 6, 20))):
        a = free.pop()
        b = next(edge for edge in reversed(free) if edge[0] == a[0])
        free.remove(b)
        partner[a], partner[b] = b, a
        edges[index(a)] = edges[index(b)] = f"2 {portal}"
    for _ in range(int(width * height * pick.choice((0.0, 0.1, 0.5)))):
        edge = free.pop()
        kelp.add(edge)
        edges[index(edge)] = "1 0"
    edge_lines = [f"EDGE {i} {kind}" for i, kind in edges.items()]
    if pick.random() < 0.3:
        edge_lines += [f"EDGE {width} 7 7", f"EDGE {2 * height * stride} 2 5"]
    pick.shuffle(edge_lines)

    def ahead(tile: tuple[int, int], direction: str) -> tuple[int, int] | None:
        x, y = tile
        edge = {"N": ("h", x, y), "S": ("h", x, (y + 1) % height), "W": ("v", x, y), "E": ("v", (x + 1) % width, y)}[
            direction
        ]
        if edge in kelp:
            return None
        _, x, y = partner.get(edge, edge)
        return {"N": (x, (y - 1) % height), "S": (x, y), "W": ((x - 1) % width, y), "E": (x, y)}[direction]

    taken: set[tuple[int, int]] = set()
    dragons = []
    team = pick.randint(0, 1)
    for _ in range(pick.randint(1, 8)):
        body = [(pick.randrange(width), pick.randrange(height))]
        if body[0] in taken:
            continue
        for _ in range(pick.choice((1, 2, 3, 8, 20))):
            # The next segment is where the one before can be reached from.
            after = ahead(body[-1], pick.choice("NESW"))
            if after is not None and after not in taken and (repeats or after not in body):
                body.append(after)
        if len(body) >= 2:
            taken |= set(body)
            dragons.append(f"DRAGON {team} {len(body)} " + " ".join(f"{x} {y}" for x, y in body))
            team = 1 - team
    counts = [f"TILE_COUNT {len(tiles)}", f"EDGE_COUNT {len(edge_lines)}", f"DRAGON_COUNT {len(dragons)}"]
    return "\n".join([*lines, *counts, *tiles, *edge_lines, *dragons, "END", ""]).encode()
