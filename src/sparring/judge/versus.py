"""How well the teacher of a run plays against one opponent: a fixed number of matches, both seats of every level."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparring.judge.entrants import load_entrant
from sparring.judge.match import PlayedMatch
from sparring.judge.records import Records
from sparring.judge.schedule import schedule
from sparring.judge.statistics import wilson
from sparring.judge.teachers import teacher_entrant
from sparring.judge.verdicts import score
from sparring.judge.work import play_missing
from sparring.levels.pool import named_maps
from sparring.runs.folder import find_run


@dataclass(frozen=True, kw_only=True)
class Versus:
    """What a player made of its matches against an opponent.

    hash, opponent_hash: of the entrants
    wins, draws, losses: of the `matches` with a result; missing: those without, where the call was interrupted
    score:     a win counts 1, a draw 0.5; None without matches
    low, high: its 95 % interval (Wilson)
    seats:     the score as team A and as team B
    rounds:    mean length
    dragons, total, queen, longest: means at the end, of the player and of the opponent
    """

    player: str
    opponent: str
    hash: str
    opponent_hash: str
    maps: str
    seed: int
    matches: int
    missing: int
    wins: int
    draws: int
    losses: int
    score: float | None
    low: float
    high: float
    seats: tuple[float | None, float | None]
    rounds: float | None
    dragons: tuple[float | None, float | None]
    total: tuple[float | None, float | None]
    queen: tuple[float | None, float | None]
    longest: tuple[float | None, float | None]
    records: Path

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "records": str(self.records)}


def evaluate_teacher(
    run: str | Path,
    *,
    against: str | Path = "starter",
    maps: str = "shipped",
    matches: int = 72,
    seed: int = 0,
    workers: int = 2,
    out: Path | None = None,
    on_match: Callable[[int, int], None] = lambda done, whole: None,
) -> Versus:
    """Play the teacher of a run, as it is now, in the organisers' engine with all limits of the judge.

    against:  a player as `load_entrant` takes it
    maps:     see `named_maps`; 72 matches are both seats of each of the judge's own 36 maps
    matches:  an even number
    seed:     of the order of maps, and of the matches' seeds
    workers:  processes
    out:      folder for the records, by default `matches` in the run's: what is there already is not played again
    on_match: called with the number of matches done and to do, before the first and after each

    Ctrl-C ends the call, with what has been played, and is not raised. Raises SparringError for an unknown run, one of
    another game, and an opponent that cannot play.
    """
    player, opponent = teacher_entrant(run), load_entrant(against)
    jobs = list(schedule([player, opponent], named_maps(maps), seed=seed, matches=matches))
    with Records(find_run(run).path / "matches" if out is None else out) as records, suppress(KeyboardInterrupt):
        done = sum(isinstance(records.get(job), PlayedMatch) for job in jobs)
        on_match(done, len(jobs))
        with closing(play_missing(jobs, records, workers=workers)) as going_on:
            for played, _ in enumerate(going_on, start=1):
                on_match(done + played, len(jobs))
    kept = [(job, record) for job in jobs if isinstance(record := records.get(job), PlayedMatch)]
    points = [(job.swapped, made) for job, record in kept if (made := score(job, record)) is not None]
    teams = [(record.b, record.a) if job.swapped else (record.a, record.b) for job, record in kept]

    def means(what: str) -> tuple[float | None, float | None]:
        own, other = ([getattr(pair[side], what) for pair in teams] for side in (0, 1))
        return _mean(own), _mean(other)

    whole = [made for _, made in points]
    low, high = wilson(sum(whole), len(whole))
    return Versus(
        player=player.name,
        opponent=opponent.name,
        hash=player.hash,
        opponent_hash=opponent.hash,
        maps=maps,
        seed=seed,
        matches=len(kept),
        missing=len(jobs) - len(kept),
        wins=whole.count(1.0),
        draws=whole.count(0.5),
        losses=whole.count(0.0),
        score=_mean(whole),
        low=low,
        high=high,
        seats=(_mean([made for b, made in points if not b]), _mean([made for b, made in points if b])),
        rounds=_mean([record.rounds for _, record in kept]),
        dragons=means("dragons"),
        total=means("total"),
        queen=means("queen"),
        longest=means("longest"),
        records=records.path,
    )


def _mean(numbers: list[Any]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
