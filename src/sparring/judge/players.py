"""Players that only want to meet every rule: they read the judge's text and reply in it, decided by a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, get_args

Policy = Literal["careful", "reckless", "mixed"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

STEP = {"N": (0, -1), "E": (1, 0), "S": (0, 1), "W": (-1, 0)}
CENTRE = (3, 3)
NOTES = ("LOG so far", "INDICATOR here", "DOT 1 2 3 4 5", "LINE 1 2 3 4 5 6 7", "?")


@dataclass(frozen=True)
class Sight:
    """What one round block says, in coordinates of its 7x7 window."""

    facing: str
    length: int
    units: int
    pearls: set[tuple[int, int]]
    taken: set[tuple[int, int]]
    north: list[list[str]]
    west: list[list[str]]

    @classmethod
    def read(cls, block: bytes, width: int, height: int) -> Sight:
        lines = block.decode().split("\n")
        at = 5 + int(lines[4][9:])
        at += lines[at].startswith("ECHOES")
        corner_x, corner_y = (int(word) for word in lines[at].split()[:2])
        pearls = {(i % 7, i // 7) for i, line in enumerate(lines[at : at + 49]) if line.split(" ", 3)[2] == "1"}
        at += 49
        bodies = int(lines[at][14:])
        taken = set()
        for line in lines[at + 1 : at + 1 + bodies]:
            _, _, x, y, *_ = line.split(" ")
            taken.add(((int(x) - corner_x) % width, (int(y) - corner_y) % height))
        at += 1 + bodies
        return cls(
            facing=lines[1][4:],
            length=int(lines[2][7:]),
            units=int(lines[3][11:]),
            pearls=pearls,
            taken=taken,
            north=[line.split(" ") for line in lines[at : at + 8]],
            west=[line.split(" ") for line in lines[at + 8 : at + 15]],
        )

    def edge(self, tile: tuple[int, int], direction: str) -> str:
        x, y = tile
        if direction in "NS":
            return self.north[y + (direction == "S")][x]
        return self.west[y][x + (direction == "E")]

    def ahead(self, tile: tuple[int, int], direction: str) -> tuple[int, int] | None:
        """The next tile, if it is known to be free."""
        if self.edge(tile, direction) != ".":
            return None
        x, y = tile[0] + STEP[direction][0], tile[1] + STEP[direction][1]
        return (x, y) if 0 <= x < 7 and 0 <= y < 7 and (x, y) not in self.taken else None

    def goes_on(self, direction: str) -> bool:
        """Whether a step from the head in this direction leaves another one open."""
        after = self.ahead(CENTRE, direction)
        return after is not None and any(self.ahead(after, onward) is not None for onward in "NESW")

    def way_to_pearl(self) -> str:
        """The steps to the nearest pearl in the window that is not behind anything, or none."""
        ways = {CENTRE: ""}
        front = [CENTRE]
        while front:
            found = []
            for tile in front:
                for direction in "NESW":
                    after = self.ahead(tile, direction)
                    if after is None or after in ways:
                        continue
                    ways[after] = ways[tile] + direction
                    if after in self.pearls:
                        return ways[after]
                    found.append(after)
            front = found
        return ""


class Player:
    """All dragons of a match. Careful ones live long and grow; reckless ones die of everything; mixed are both.

    After `turns` replies, if given, they fall silent, and die of it.
    """

    def __init__(self, seed: int, policy: str, *, turns: int | None = None) -> None:
        self.random = random.Random(seed)
        self.turns_left = turns
        self.policy = policy
        self.size = (7, 7)
        self.limit = 64
        self.reckless: dict[int, bool] = {}

    def spawn(self, dragon: int, init: bytes) -> None:
        """Hear of a dragon."""
        words = init.split()
        self.size = (int(words[5]), int(words[6]))
        self.limit = int(words[8])
        chance = {"careful": 0.0, "reckless": 1.0, "mixed": 0.15}[self.policy]
        self.reckless[dragon] = self.random.random() < chance

    def reply(self, dragon: int, block: bytes) -> bytes:
        """Answer a round block."""
        if self.turns_left is not None:
            if self.turns_left == 0:
                return b""
            self.turns_left -= 1
        sight = Sight.read(block, *self.size)
        lines = [self.careful_action(sight)]
        if self.reckless[dragon] and self.random.random() < 0.04:
            lines = self.reckless_lines(sight)
        chance = self.random.random
        if chance() < 0.1:
            lines.insert(self.random.randrange(len(lines) + 1), f"PROTOCOL {self.random.choice((1, 2, 3, 3, 3, 4))}")
        if chance() < 0.3:
            lines.append(f"SONAR {self.random.getrandbits(32)}")
        if chance() < 0.2:
            bits = self.random.choice((8, 32, 33, 64))
            for direction in self.random.sample("NESW", self.random.randint(1, 4)):
                lines.append(f"SONAR {direction} {self.random.getrandbits(bits)}")
        if chance() < 0.05:
            lines.append(
                self.random.choice(("LOG so far", "INDICATOR here", "DOT 1 2 3 4 5", "LINE 1 2 3 4 5 6 7", "?"))
            )
        if chance() < 0.3:
            lines.append("ENDTURN")
        return ("\n".join(lines) + "\n").encode()

    def careful_action(self, sight: Sight) -> str:
        length, pick = sight.length, self.random
        room = sight.units < self.limit
        if length >= 5 and pick.random() < (0.25 if room else 0.002):
            return f"SPLIT {pick.randint(2, length - 2)}"
        way = sight.way_to_pearl() if pick.random() < 0.8 else ""
        if way:
            free = (length + 3) // 4
            hurry = pick.random() < 0.1
            return f"MOVE {way[: free + (length - 2 if hurry else 0)]}"
        portals = [d for d in "NESW" if sight.edge(CENTRE, d) not in ".w"]
        if portals and pick.random() < 0.15:
            return f"MOVE {pick.choice(portals)}"
        options = [d for d in "NESW" if sight.ahead(CENTRE, d) is not None]
        roomy = [d for d in options if sight.goes_on(d)] or options
        if roomy:
            on = sight.facing in roomy and pick.random() < 0.7
            return f"MOVE {sight.facing if on else pick.choice(roomy)}"
        if portals:
            return f"MOVE {pick.choice(portals)}"
        if length >= 4 and room:
            return f"SPLIT {length - 2}"
        return f"MOVE {pick.choice('NESW')}"

    def reckless_lines(self, sight: Sight) -> list[str]:
        pick = self.random
        kind = pick.random()
        if kind < 0.6:
            return ["MOVE " + "".join(pick.choices("NESW", k=pick.choice((1, 1, 2, 3, 4, 8))))]
        if kind < 0.75:
            return ["MOVE " + sight.facing * pick.randint(2, 9)]
        if kind < 0.9:
            return [f"SPLIT {pick.randint(0, sight.length + 1)}"]
        if kind < 0.95:
            return [
                "MOVE N",
                f"SPLIT {sight.length // 2}",
                "MOVE",
                "MOVE N S",
                f"MOVE {pick.choice('NESW')}",
                "SONAR -1",
            ]
        return ["LOG farewell"]
