"""What a learner reports of each match that ended."""

from __future__ import annotations

from dataclasses import dataclass

from sparring.games.api import Outcome

ITSELF = "itself"
"""The opponent of a learner that plays both teams."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchRow:
    """One ended match of a run."""

    match: int
    """Number of the match in the order the run's matches ended, from 0."""
    lane: int
    """The lane it was played in."""
    length: int
    """Decisions of the longest life in the match."""
    score: tuple[float, ...]
    """Undiscounted sum of rewards of each agent, by agent id."""
    truncated: bool
    """Cut by a time limit, not ended by the rules."""
    at: int
    """The run's decision counter (one per lane and step) when it ended."""
    updates: int
    """Updates the learner had made by then."""

    @property
    def best(self) -> float:
        """The better agent's score: what Tennis calls solved is a mean of 100 of these."""
        return max(self.score)


def match_rows(outcome: Outcome, *, first: int, at: int, updates: int) -> list[MatchRow]:
    """The matches that `outcome` ended, numbered from `first`; at, updates: the run's counters now."""
    ended = zip(
        outcome.ended.tolist(),
        outcome.truncated.tolist(),
        outcome.score.tolist(),
        outcome.length.tolist(),
        strict=True,
    )
    return [
        MatchRow(
            match=first + place,
            lane=lane,
            length=length,
            score=tuple(score),
            truncated=truncated,
            at=at,
            updates=updates,
        )
        for place, (lane, truncated, score, length) in enumerate(ended)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeRow:
    """One ended episode of a run whose episodes are not single matches, as in the published Tennis recipe."""

    episode: int
    """Number of the episode in the order they ended, from 0."""
    lane: int
    """The lane it was played in."""
    matches: int
    """Matches that ended within it."""
    length: int
    """Decisions of the lane."""
    score: tuple[float, ...]
    """Undiscounted sum of rewards of each agent over all its matches, by agent id."""
    at: int
    """The run's decision counter when it ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoongMatchRow:
    """One ended match of Loong; of pairs, the first number is the learner's, the second its opponent's."""

    match: int
    """Number of the match in the order the run's matches ended, from 0."""
    lane: int
    """The lane it was played in."""
    level: int
    """The map's place in the run's pool."""
    opponent: str
    """A scripted player, or `itself`."""
    team: int
    """The learner's team, 0 (A) or 1 (B); 0 where it played both."""
    result: float
    """1 won, 0 drawn, -1 lost; of team A where the learner played both."""
    rounds: int
    """Rounds played."""
    dragons: tuple[int, int]
    """Alive at the end."""
    total: tuple[int, int]
    """Their segments together."""
    queen: tuple[int, int]
    """Segments of the queen, 0 if she died."""
    longest: tuple[int, int]
    """Segments of the longest."""
    at: int
    """The run's decision counter when it ended."""
    updates: int
    """Updates the learner had made by then."""
    dragons_100: tuple[int, int] | None = None
    """Alive at the start of round 100; None where the match was over before, as of what follows."""
    total_100: tuple[int, int] | None = None
    queen_100: tuple[int, int] | None = None
    longest_100: tuple[int, int] | None = None
    deaths: tuple[int, ...] = ()
    """Of the learner's team, by the causes in `sparring.games.loong_rows.DEATHS`."""

    @property
    def best(self) -> float:
        """What the learner made of it: 1 won, 0.5 drawn, 0 lost."""
        return (self.result + 1) / 2

    @property
    def length(self) -> int:
        return self.rounds
