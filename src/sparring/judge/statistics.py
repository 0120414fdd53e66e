"""What many matches say: a sequential test of two players, Wilson's interval, ratings of many. No input or output.

Everywhere a draw counts as half a win and half a loss, so a player's **score** is (wins + draws / 2) / matches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sparring.errors import SparringError

ELO = 400 / math.log(10)
"""Elo points of one natural unit of log-odds."""
CONFIDENCE = 0.95
IMAGINED_DRAWS = 1.0
_NEWTON_STEPS, _DECREMENT = 200, 1e-14
"""Steps enough for any data, and the gain of a last step that is too small to go on."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far a test has come.

    matches: judged so far, errors included
    errors:  matches without a result; they say nothing about the players, and take one place each
    llr:     log-likelihood ratio of p1 against p0
    path:    that ratio after each match
    outcome: None while the test goes on; then one of the test's two words, or "undecided" at its cap
    """

    matches: int
    wins: int
    draws: int
    losses: int
    errors: int
    llr: float
    path: tuple[float, ...]
    outcome: str | None

    @property
    def score(self) -> float | None:
        """None before the first result."""
        results = self.wins + self.draws + self.losses
        return (self.wins + self.draws / 2) / results if results else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the score."""
        return wilson(self.wins + self.draws / 2, self.wins + self.draws + self.losses)


@dataclass(frozen=True, kw_only=True)
class Sprt:
    """Wald's sequential probability ratio test of a score of `p0` against `p1` (Wald, 1945), cut off at `cap` matches.

    p0, p1:  scores, p0 < p1
    alpha:   highest chance of the first word where the score is p0
    power:   chance of the first word where the score is p1, had the test no cap
    words:   what crossing the upper bound is called, and the lower

    The likelihood is that of wins and losses; a draw adds half of what a win adds and half of what a loss adds.
    """

    p0: float = 0.5
    p1: float = 0.6
    alpha: float = 0.05
    power: float = 0.8
    words: tuple[str, str] = ("better", "not better")

    def __post_init__(self) -> None:
        if not 0 < self.p0 < self.p1 < 1:
            raise SparringError(f"a test of {self.p0:g} against {self.p1:g}: scores must rise, between 0 and 1")
        if not 0 < self.alpha < self.power < 1:
            raise SparringError(f"alpha {self.alpha:g}, power {self.power:g}: they must rise, between 0 and 1")

    @classmethod
    def non_inferior(cls, margin: float) -> Sprt:
        """Is a player at most `margin` worse than its opponent? Tests a score of 0.5 - margin against 0.5.

        "not inferior" is said of a player that is worse by the margin with a chance of at most 0.05, and of an equal
        one with a chance of 0.66, the cap included. "not shown" says no more than that the matches did not show it.
        """
        if not 0 < margin < 0.5:
            raise SparringError(f"margin {margin:g}: give a difference of scores between 0 and 0.5, such as 0.05")
        return cls(p0=0.5 - margin, p1=0.5, words=("not inferior", "not shown"))

    @property
    def win(self) -> float:
        """What a win adds to the log-likelihood ratio."""
        return math.log(self.p1 / self.p0)

    @property
    def loss(self) -> float:
        return math.log((1 - self.p1) / (1 - self.p0))

    @property
    def draw(self) -> float:
        return (self.win + self.loss) / 2

    @property
    def upper(self) -> float:
        """Wald's bounds; their excess over the exact ones errs on the safe side."""
        return math.log(self.power / self.alpha)

    @property
    def lower(self) -> float:
        return math.log((1 - self.power) / (1 - self.alpha))

    @property
    def cap(self) -> int:
        """Matches of a test of fixed length with the same alpha and power, in whole pairs: none should take more."""
        normal = NormalDist()
        both = normal.inv_cdf(1 - self.alpha) + normal.inv_cdf(self.power)
        return 2 * math.ceil((both / (2 * (self.p1 - self.p0))) ** 2 / 2)

    def llr(self, points: float, results: int) -> float:
        """The log-likelihood ratio after `results` wins, draws and losses worth `points`."""
        return points * self.win + (results - points) * self.loss

    def judge(self, scores: Iterable[float | None]) -> Standing:
        """Judge matches in the order of the schedule: 1 for a win, 0.5 a draw, 0 a loss, None an error.

        Whatever comes after the first crossing of a bound, or after the cap, is not looked at.
        """
        counts: dict[float | None, int] = {1: 0, 0.5: 0, 0: 0, None: 0}
        path: list[float] = []
        llr = 0.0
        outcome: str | None = None
        for score in scores:
            if score not in counts:
                raise ValueError(f"{score} is no score of a match: 1, 0.5, 0, or None for an error")
            counts[score] += 1
            results = counts[1] + counts[0.5] + counts[0]
            llr = self.llr(counts[1] + counts[0.5] / 2, results)
            path.append(llr)
            if llr >= self.upper:
                outcome = self.words[0]
            elif llr <= self.lower:
                outcome = self.words[1]
            elif len(path) == self.cap:
                outcome = "undecided"
            if outcome:
                break
        return Standing(
            matches=len(path),
            wins=counts[1],
            draws=counts[0.5],
            losses=counts[0],
            errors=counts[None],
            llr=llr,
            path=tuple(path),
            outcome=outcome,
        )


@dataclass(frozen=True, kw_only=True)
class Characteristics:
    """What a test says of a player of a given strength: the chances of its three outcomes, and its mean length."""

    first: float
    second: float
    undecided: float
    matches: float


def operating_characteristics(test: Sprt, elo: float, *, draw_share: float = 0.0) -> Characteristics:
    """The exact chances, by following the distribution of points from match to match.

    elo:        how much stronger the player truly is
    draw_share: share of matches that are drawn
    """
    score = expected_score(elo)
    win, loss = score - draw_share / 2, 1 - score - draw_share / 2
    if draw_share < 0 or win < 0 or loss < 0:
        raise SparringError(f"no player {elo:+g} Elo stronger draws {draw_share:.0%} of its matches")
    first = second = length = 0.0
    going_on = np.ones(1)  # chance of each number of half points
    for match in range(1, test.cap + 1):
        length += float(going_on.sum())
        chances = np.zeros(2 * match + 1)
        chances[2:] += win * going_on
        chances[1:-1] += draw_share * going_on
        chances[:-2] += loss * going_on
        points = np.arange(2 * match + 1) / 2
        llr = points * test.win + (match - points) * test.loss
        first += float(chances[llr >= test.upper].sum())
        second += float(chances[llr <= test.lower].sum())
        going_on = np.where((llr < test.upper) & (llr > test.lower), chances, 0.0)
    return Characteristics(first=first, second=second, undecided=float(going_on.sum()), matches=length)


def expected_score(elo: float) -> float:
    """The score of a player that is `elo` points stronger than its opponent (Elo, 1978)."""
    return 1 / (1 + 10 ** (-elo / 400))


def wilson(points: float, results: int, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's interval of a score (Wilson, 1927); (0, 1) without results. Draws make the true interval narrower."""
    if results == 0:
        return 0.0, 1.0
    z = _quantile(confidence)
    share = points / results
    middle = (share + z * z / (2 * results)) / (1 + z * z / results)
    half = z / (1 + z * z / results) * math.sqrt(share * (1 - share) / results + (z / (2 * results)) ** 2)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """Bradley-Terry ratings of n players; players without a chain of matches between them share no scale.

    elo:   float64 [n], relative to the mean of the player's group
    error: float64 [n], half of the 95 % interval (infinite for a player without matches)
    group: int64 [n], players connected by matches have the same number; counted from 0 in the order of players
    """

    elo: NDArray[np.float64]
    error: NDArray[np.float64]
    group: NDArray[np.int64]

    @property
    def groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1


def bradley_terry(
    points: NDArray[np.float64], *, imagined_draws: float = IMAGINED_DRAWS, confidence: float = CONFIDENCE
) -> Ratings:
    """Ratings by greatest likelihood (Bradley and Terry, 1952), by Newton's method with halved steps.

    points:         float64 [n, n], the points (draws are halves) that the row's player made against the column's
    imagined_draws: the prior: so many draws are added to every pair that met. It keeps the rating of a player that won
                    or lost everything finite, and moves others little

    Intervals come from the observed information; with many real draws they are wider than they need be.
    Raises SparringError where no finite ratings exist, which takes imagined_draws = 0.
    """
    played = np.asarray(points, np.float64)
    if played.ndim != 2 or played.shape[0] != played.shape[1] or not (np.isfinite(played) & (played >= 0)).all():
        raise ValueError("points must be a square matrix of finite numbers, 0 or more")
    if np.diagonal(played).any():
        raise ValueError("a player made points against itself")
    met = (played + played.T) > 0
    won = played + np.where(met, imagined_draws / 2, 0.0)
    group = _groups(met)
    elo, error = np.zeros(len(won)), np.full(len(won), np.inf)
    for number in range(int(group.max(initial=-1)) + 1):
        members = np.flatnonzero(group == number)
        if len(members) > 1:
            strengths, spread = _fit(won[np.ix_(members, members)])
            elo[members], error[members] = ELO * strengths, ELO * _quantile(confidence) * spread
    return Ratings(elo=elo, error=error, group=group)


def _fit(won: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strengths (log-odds, mean 0) of players that are all connected, and their standard errors."""
    if not _reachable(won > 0).all():  # Ford, 1957: someone must have beaten some of any other part of the players
        raise SparringError(
            "no finite ratings: some players won, or lost, all their matches against the others; "
            "rate with imagined_draws above 0"
        )
    count = len(won)
    matches = won + won.T
    level = np.full((count, count), 1 / count)  # strengths are free up to a constant; this holds their mean
    strengths = np.zeros(count)
    likelihood = _log_likelihood(won, strengths)
    for _ in range(_NEWTON_STEPS):
        chance = np.exp(-np.logaddexp(0, strengths[None, :] - strengths[:, None]))
        gradient = (won * chance.T - won.T * chance).sum(axis=1)
        weights = matches * chance * chance.T
        information = np.diag(weights.sum(axis=1)) - weights
        inverse = np.linalg.inv(information + level) - level
        step = inverse @ gradient
        if gradient @ step < _DECREMENT:
            return strengths + step, np.sqrt(np.diagonal(inverse))
        while (found := _log_likelihood(won, strengths + step)) < likelihood - 1e-12 * abs(likelihood):
            step /= 2
        strengths, likelihood = strengths + step, found
    raise SparringError("the ratings did not converge: the matches are too one-sided; imagine more draws")


def _log_likelihood(won: NDArray[np.float64], strengths: NDArray[np.float64]) -> float:
    return -float((won * np.logaddexp(0, strengths[None, :] - strengths[:, None])).sum())


def _groups(met: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The connected components, numbered in the order of their first players."""
    first = _reachable(met).argmax(axis=1) if len(met) else np.zeros(0, np.int64)
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _reachable(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which players each player reaches along edges, itself included."""
    reached = edges | np.eye(len(edges), dtype=np.bool_)
    for _ in range(len(edges).bit_length()):
        reached = reached @ reached
    return np.asarray(reached)


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
