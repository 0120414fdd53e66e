"""The ladder: every player against every other, and what that says of their strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparring.errors import SparringError
from sparring.judge.entrants import Entrant
from sparring.judge.match import PlayedMatch
from sparring.judge.records import Records
from sparring.judge.schedule import Job, schedule
from sparring.judge.statistics import Ratings, bradley_terry
from sparring.judge.verdicts import MATCHES, score
from sparring.judge.work import Play, play_job, play_missing
from sparring.levels.pool import named_maps


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """A round robin of n players, as far as it was played.

    points:  float64 [n, n], what the row's player made against the column's; a draw is half a point
    matches: int64 [n, n], with a result
    errors:  matches without a result
    missing: matches that are still to play; 0 where it was not interrupted
    played:  matches that this call played; the others were on record
    """

    entrants: tuple[Entrant, ...]
    points: NDArray[np.float64] = field(repr=False)
    matches: NDArray[np.int64] = field(repr=False)
    ratings: Ratings = field(repr=False)
    errors: int
    missing: int
    played: int
    records: Path

    @property
    def order(self) -> list[int]:
        """Players group by group, the strongest first."""
        rank = np.lexsort((-self.ratings.elo, self.ratings.group))
        return [int(index) for index in rank]

    def names(self) -> list[str]:
        """What to call the players: with the start of the hash where two builds have one name."""
        names = [entrant.name for entrant in self.entrants]
        return [
            f"{entrant.name} {entrant.hash[:8]}" if names.count(entrant.name) > 1 else entrant.name
            for entrant in self.entrants
        ]

    def json(self) -> dict[str, Any]:
        names = self.names()
        return {
            "players": [
                {
                    "name": names[index],
                    "kind": self.entrants[index].kind,
                    "hash": self.entrants[index].hash,
                    "group": int(self.ratings.group[index]),
                    "elo": float(self.ratings.elo[index]),
                    "error": float(error) if np.isfinite(error := self.ratings.error[index]) else None,
                    "points": float(self.points[index].sum()),
                    "matches": int(self.matches[index].sum()),
                }
                for index in self.order
            ],
            "pairs": [
                {
                    "a": names[one],
                    "b": names[other],
                    "points": float(self.points[one, other]),
                    "matches": int(self.matches[one, other]),
                }
                for one in range(len(names))
                for other in range(one + 1, len(names))
            ],
            "errors": self.errors,
            "missing": self.missing,
            "played": self.played,
            "records": str(self.records),
        }


def run_ladder(
    entrants: Sequence[Entrant],
    *,
    maps: str = "shipped",
    seed: int = 0,
    matches: int = 24,
    workers: int = 2,
    out: Path = MATCHES,
    cluster: str | None = None,
    on_match: Callable[[int, int], None] = lambda done, whole: None,
    play: Play = play_job,
) -> Ladder:
    """Play every pair's `matches` matches and rate the players.

    maps, seed, workers, out, cluster: as in `run_verdict`. With the same maps, seed and folder only matches that are
                                       new are played: those of another player, or of longer matches
    matches:  of each pair, an even number
    on_match: called with the number of matches done and to do, before the first and after each

    A match that failed counts for nobody, and is played again by the next call. Ctrl-C ends the call, with the ladder
    as far as it is played, and is not raised. Raises SparringError where two players are the same.
    """
    if len(entrants) < 2:
        raise SparringError("a ladder has two players or more")
    index = {entrant.hash: number for number, entrant in enumerate(entrants)}
    for number, entrant in enumerate(entrants):
        if index[entrant.hash] != number:
            raise SparringError(
                f"{entrant.name} and {entrants[index[entrant.hash]].name} are the same player: leave one out"
            )
    jobs = list(schedule(entrants, named_maps(maps), seed=seed, matches=matches))
    with Records(out) as records, suppress(KeyboardInterrupt):
        missing = sum(not isinstance(records.get(job), PlayedMatch) for job in jobs)
        done = len(jobs) - missing
        on_match(done, len(jobs))
        with closing(play_missing(jobs, records, workers=workers, cluster=cluster, play=play)) as going_on:
            for played, _ in enumerate(going_on, start=1):
                on_match(done + played, len(jobs))
    return _rated(tuple(entrants), index, jobs, records, missing)


def _rated(
    entrants: tuple[Entrant, ...], index: dict[str, int], jobs: Sequence[Job], records: Records, missing: int
) -> Ladder:
    points = np.zeros((len(entrants), len(entrants)))
    matches = np.zeros((len(entrants), len(entrants)), np.int64)
    errors = unplayed = 0
    for job in jobs:
        record = records.get(job)
        made = None if record is None else score(job, record)
        if made is None:
            errors += record is not None
            unplayed += record is None
            continue
        a, b = index[job.a.hash], index[job.b.hash]
        first, second = (b, a) if job.swapped else (a, b)
        points[first, second] += made
        points[second, first] += 1 - made
        matches[first, second] += 1
        matches[second, first] += 1
    return Ladder(
        entrants=entrants,
        points=points,
        matches=matches,
        ratings=bradley_terry(points),
        errors=errors,
        missing=unplayed,
        played=missing - unplayed,
        records=records.path,
    )
