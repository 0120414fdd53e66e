"""Which matches decide: every pair of entrants on the same maps and seeds, from both seats."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from sparring.errors import SparringError
from sparring.levels.pool import PoolMap

if TYPE_CHECKING:
    from sparring.judge.entrants import Entrant

Key = tuple[str, str, str, int]
"""What makes a match the same match: the hashes of the entrants in seats A and B and of the map, and the seed."""

MOST_MATCHES = 500_000
"""Of one schedule: they stand in memory."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One match to play.

    seed:    below 2^64
    swapped: the first named of the pair has seat B
    """

    a: Entrant
    b: Entrant
    map_name: str
    map_hash: str
    map_bytes: bytes = field(repr=False)
    seed: int
    swapped: bool = False

    @property
    def key(self) -> Key:
        return self.a.hash, self.b.hash, self.map_hash, self.seed


def levels(maps: Sequence[PoolMap], seed: int) -> Iterator[tuple[PoolMap, int]]:
    """Maps with seeds of matches, without end: all maps once, in an order of their own, then all again in another.

    Order and seeds depend on the maps' hashes, their number and `seed`; not on names, places or entrants.
    """
    if not maps:
        raise SparringError("no maps to play on")
    for turn in count():
        for each in sorted(maps, key=lambda one: _draw(seed, turn, one.hash)):
            yield each, _draw(seed, turn, f"seed {each.hash}")


def schedule(entrants: Sequence[Entrant], maps: Sequence[PoolMap], *, seed: int, matches: int) -> Iterator[Job]:
    """Every pair's `matches` matches (an even number), all pairs side by side, level by level.

    On each level the first named of a pair has seat A in one match and seat B in the next.
    """
    if matches < 2 or matches % 2:
        raise SparringError(f"matches = {matches}: give an even number, 2 or more; a level is played from both seats")
    if (whole := matches * math.comb(len(entrants), 2)) > MOST_MATCHES:
        raise SparringError(f"that would be {whole:,} matches, and {MOST_MATCHES:,} are the most of one schedule")
    for level, match_seed in islice(levels(maps, seed), matches // 2):
        for one, other in combinations(entrants, 2):
            for swapped in (False, True):
                yield Job(
                    a=other if swapped else one,
                    b=one if swapped else other,
                    map_name=_short(level.source),
                    map_hash=level.hash,
                    map_bytes=level.file,
                    seed=match_seed,
                    swapped=swapped,
                )


def _short(source: str) -> str:
    return Path(source.removeprefix("generated ")).stem


def _draw(seed: int, turn: int, word: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {turn} {word}".encode()).digest()[:8], "little")
