"""The verdict: is one player better than another? Matches are played until a sequential test can say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from sparring.judge.entrants import Entrant
from sparring.judge.records import FailedMatch, Record, Records
from sparring.judge.schedule import Job, schedule
from sparring.judge.statistics import Sprt, Standing
from sparring.judge.work import Play, play_job, play_missing
from sparring.levels.pool import named_maps

MATCHES = Path("matches")
"""Folder for the records of verdicts and ladders, where none is named."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How a test of `a` against `b` ended, or how far it came.

    standing: `outcome` is None where it was interrupted
    played:   matches that this call played; the others were on record
    records:  the file of all matches
    """

    a: Entrant
    b: Entrant
    test: Sprt = field(repr=False)
    standing: Standing = field(repr=False)
    played: int
    records: Path

    @property
    def line(self) -> str:
        """The verdict in one line."""
        word = {
            "better": f"{self.a.name} is better than {self.b.name}",
            "not better": f"{self.a.name} is not better than {self.b.name}",
            "not inferior": f"{self.a.name} is not inferior to {self.b.name}",
            "not shown": f"not shown that {self.a.name} is not inferior to {self.b.name}",
            "undecided": f"undecided between {self.a.name} and {self.b.name}",
            None: f"no verdict yet on {self.a.name} against {self.b.name}",
        }[self.standing.outcome]
        return f"{word}: {standing_line(self.test, self.standing)}"

    def json(self) -> dict[str, Any]:
        standing, (low, high) = self.standing, self.standing.interval
        return {
            "a": {"name": self.a.name, "kind": self.a.kind, "hash": self.a.hash},
            "b": {"name": self.b.name, "kind": self.b.kind, "hash": self.b.hash},
            "outcome": standing.outcome,
            "score": standing.score,
            "interval": [low, high],
            "wins": standing.wins,
            "draws": standing.draws,
            "losses": standing.losses,
            "errors": standing.errors,
            "matches": standing.matches,
            "llr": standing.llr,
            "bounds": [self.test.lower, self.test.upper],
            "scores": [self.test.p0, self.test.p1],
            "cap": self.test.cap,
            "played": self.played,
            "records": str(self.records),
        }


def standing_line(test: Sprt, standing: Standing) -> str:
    """Score with its interval, results, the log-likelihood ratio between its bounds, and how long the test may last."""
    parts = [f"{standing.wins} won, {standing.draws} drawn, {standing.losses} lost"]
    if standing.errors:
        parts.append(f"{standing.errors} without a result")
    if standing.score is not None:
        low, high = standing.interval
        parts.insert(0, f"score {standing.score:.3f} ({low:.3f} to {high:.3f})")
    parts.append(f"llr {standing.llr:+.2f} in {test.lower:+.2f} .. {test.upper:+.2f}")
    parts.append(f"match {standing.matches} of at most {test.cap}")
    return " | ".join(parts)


def run_verdict(
    a: Entrant,
    b: Entrant,
    *,
    maps: str = "shipped",
    seed: int = 0,
    workers: int = 2,
    non_inferior: float | None = None,
    out: Path = MATCHES,
    cluster: str | None = None,
    on_match: Callable[[Sprt, Standing], None] = lambda test, standing: None,
    play: Play = play_job,
) -> Verdict:
    """Play `a` against `b` until the test says whether `a` is better, or until its cap.

    maps:         see `named_maps`
    seed:         of the schedule: the order of maps, and the matches' seeds
    workers:      matches at once; with `cluster`, see `play_all`
    non_inferior: ask whether `a` is at most this much worse (see `Sprt.non_inferior`), instead of better
    out:          folder for the records: what is there already is not played again
    on_match:     called with the test and its standing before the first match and after each

    Matches end in any order, but the test looks at the longest part of the schedule that is complete: else it would see
    short matches first. A match that failed stands as an error; where there is no outcome yet, it is played again by
    the next call. Ctrl-C ends the call, with what has been played, and is not raised.
    Raises SparringError, the matches so far being kept, where one after the other fails.
    """
    test = Sprt() if non_inferior is None else Sprt.non_inferior(non_inferior)
    jobs = list(schedule([a, b], named_maps(maps), seed=seed, matches=test.cap))
    played = 0
    with Records(out) as records:

        def verdict() -> Verdict:
            return Verdict(
                a=a, b=b, test=test, standing=judge(test, jobs, records), played=played, records=records.path
            )

        state = verdict()
        on_match(test, state.standing)
        if state.standing.outcome:
            return state
        try:
            with closing(play_missing(jobs, records, workers=workers, cluster=cluster, play=play)) as going_on:
                for _ in going_on:
                    played += 1
                    state = verdict()
                    on_match(test, state.standing)
                    if state.standing.outcome:
                        break
        except KeyboardInterrupt:
            return verdict()
        return state


def judge(test: Sprt, jobs: Sequence[Job], records: Records) -> Standing:
    """How the test stands by the matches on record."""
    done = takewhile(lambda pair: pair[1] is not None, ((job, records.get(job)) for job in jobs))
    return test.judge(score(job, record) for job, record in done if record is not None)


def score(job: Job, record: Record) -> float | None:
    """What the first named of the job's pair made of it: 1, 0.5 or 0; None of a match without a result."""
    if isinstance(record, FailedMatch):
        return None
    if record.winner is None:
        return 0.5
    return float((record.winner == "B") == job.swapped)
