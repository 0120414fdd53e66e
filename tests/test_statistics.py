"""The judge's statistics against closed forms, slow references, and simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import binomtest

from sparring.errors import SparringError
from sparring.judge.statistics import (
    ELO,
    Sprt,
    bradley_terry,
    expected_score,
    operating_characteristics,
    wilson,
)

# Sequential test


def test_the_test_has_the_published_numbers() -> None:
    test = Sprt()
    assert (round(test.upper, 2), round(test.lower, 2)) == (2.77, -1.56)
    assert (round(test.win, 3), round(test.loss, 3), round(test.draw, 3)) == (0.182, -0.223, -0.020)
    assert test.cap == 156
    assert Sprt.non_inferior(0.05).cap == 620  # half the difference, four times the matches, whole pairs


def simulated(
    test: Sprt, elo: float, draw_share: float, trials: int, seed: int
) -> tuple[float, float, float, NDArray[np.int64]]:
    """Chances of the three outcomes and the lengths, by playing `trials` tests at random."""
    chance = np.random.default_rng(seed).random((trials, test.cap))
    win = expected_score(elo) - draw_share / 2
    adds = np.where(chance < win, test.win, np.where(chance < win + draw_share, test.draw, test.loss))
    llr = adds.cumsum(axis=1)
    over = (llr >= test.upper) | (llr <= test.lower)
    ends = np.where(over.any(axis=1), over.argmax(axis=1), test.cap - 1)
    last = llr[np.arange(trials), ends]
    first, second = (last >= test.upper).mean(), (last <= test.lower).mean()
    return float(first), float(second), float(1 - first - second), ends + 1


@pytest.mark.parametrize(
    ("elo", "better", "matches"), [(0, 0.038, 64), (35, 0.24, 91), (70, 0.65, 90), (120, 0.97, 59)]
)
def test_operating_characteristics_are_the_published_ones(elo: int, better: float, matches: int) -> None:
    first, second, undecided, lengths = simulated(Sprt(), elo, 0.0, 20_000, seed=elo)
    exact = operating_characteristics(Sprt(), elo)
    assert first == pytest.approx(better, abs=0.01)
    assert lengths.mean() == pytest.approx(matches, abs=1)
    for found, expected in ((first, exact.first), (second, exact.second), (undecided, exact.undecided)):
        assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / len(lengths))
    assert abs(lengths.mean() - exact.matches) < 4 * lengths.std() / math.sqrt(len(lengths))


@pytest.mark.parametrize(("margin", "elo"), [(0.1, -70), (0.1, 0), (0.2, 0)])
def test_operating_characteristics_with_draws_and_margins(margin: float, elo: int) -> None:
    test = Sprt.non_inferior(margin)
    first, second, _, lengths = simulated(test, elo, 0.3, 20_000, seed=1)
    exact = operating_characteristics(test, elo, draw_share=0.3)
    assert first == pytest.approx(exact.first, abs=0.012)
    assert second == pytest.approx(exact.second, abs=0.012)
    assert lengths.mean() == pytest.approx(exact.matches, rel=0.02)
    assert exact.first + exact.second + exact.undecided == pytest.approx(1)


def test_an_inferior_player_passes_as_rarely_as_was_asked() -> None:
    for margin in (0.05, 0.1, 0.2):
        test = Sprt.non_inferior(margin)
        at_margin = -400 * math.log10(1 / (0.5 - margin) - 1)
        assert operating_characteristics(test, at_margin).first < 0.05
        assert operating_characteristics(test, 0).first == pytest.approx(0.66, abs=0.04)


@pytest.mark.parametrize(
    ("scores", "outcome", "matches"),
    [
        ([1] * 999, "better", 16),  # 16 * 0.1823 = 2.92
        ([0] * 999, "not better", 7),  # 7 * -0.2231 = -1.56
        ([0.5] * 999, "not better", 77),  # 77 * -0.0204 = -1.57
        ([1, 0] * 999, "not better", 78),  # 39 * -0.0408 = -1.59
        ([None] * 999, "undecided", 156),
        ([1, 1, 1, 0, 0] * 999, "better", 0),
        ([], None, 0),
        ([1, None, 0], None, 3),
    ],
)
def test_every_sequence_ends(scores: list[float | None], outcome: str | None, matches: int) -> None:
    standing = Sprt().judge(iter(scores))
    # an independent count, match by match
    llr, count = 0.0, 0
    for score in scores[:156]:
        llr += {1: math.log(1.2), 0: math.log(0.8), 0.5: math.log(0.96) / 2, None: 0.0}[score]
        count += 1
        if llr >= math.log(16) or llr <= math.log(0.2 / 0.95):
            break
    assert (standing.matches, standing.llr) == (count, pytest.approx(llr))
    assert len(standing.path) == count
    if matches:
        assert (standing.outcome, standing.matches) == (outcome, matches)


@given(st.lists(st.sampled_from([1, 0.5, 0, None]), max_size=400), st.integers(0, 400))
def test_what_comes_later_changes_no_outcome(scores: list[float | None], cut: int) -> None:
    whole, part = Sprt().judge(scores), Sprt().judge(scores[:cut])
    if part.outcome:
        assert part == whole
    assert whole.matches <= 156
    assert whole.path[: part.matches] == part.path
    assert whole.wins + whole.draws + whole.losses + whole.errors == whole.matches


@given(st.lists(st.sampled_from([1, 0.5, 0]), min_size=1, max_size=10))
def test_an_error_says_nothing(scores: list[float | None]) -> None:
    with_errors = [each for score in scores for each in (None, score)]
    assert Sprt().judge(with_errors).llr == Sprt().judge(scores).llr


def test_numbers_that_make_no_test_are_refused() -> None:
    for numbers in ({"p0": 0.6}, {"p1": 1.0}, {"alpha": 0.9}, {"power": 1.0}):
        with pytest.raises(SparringError, match="must rise"):
            Sprt(**numbers)  # type: ignore[arg-type]
    with pytest.raises(SparringError, match=r"margin 0\.5"):
        Sprt.non_inferior(0.5)
    with pytest.raises(SparringError, match="draws 90%"):
        operating_characteristics(Sprt(), 120, draw_share=0.9)
    with pytest.raises(ValueError, match="no score"):
        Sprt().judge([2])


# Wilson's interval


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_is_scipys(wins: int, matches: int) -> None:
    wins = min(wins, matches)
    theirs = binomtest(wins, matches).proportion_ci(method="wilson")
    assert wilson(wins, matches) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_knows_nothing_without_matches() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


# Ratings


def slow_reference(won: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strengths by a general minimiser, and their errors from the likelihood's curvature by finite differences."""
    count = len(won)

    def cost(strengths: NDArray[np.float64]) -> float:
        total = 0.0
        for i in range(count):
            for j in range(count):
                if won[i, j]:
                    total += won[i, j] * math.log1p(math.exp(strengths[j] - strengths[i]))
        return total

    found = minimize(lambda free: cost(np.append(free, -free.sum())), np.zeros(count - 1), tol=1e-12).x
    strengths = np.append(found, -found.sum())
    width, identity = 1e-3, np.eye(count)
    curvature = np.array(
        [
            [
                sum(
                    a * b * cost(strengths + width * (a * identity[i] + b * identity[j]))
                    for a in (1, -1)
                    for b in (1, -1)
                )
                / (4 * width * width)
                for j in range(count)
            ]
            for i in range(count)
        ]
    )
    return strengths, np.sqrt(np.diagonal(np.linalg.pinv(curvature, rcond=1e-4)))


def some_points(seed: int, count: int, matches: int) -> NDArray[np.float64]:
    """A random round robin with draws; some pairs never met."""
    random = np.random.default_rng(seed)
    points = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            played = random.integers(0, matches)
            points[i, j] = random.integers(0, 2 * played + 1) / 2
            points[j, i] = played - points[i, j]
    return points


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_two_players_have_a_closed_form(wins: int, draws: int, losses: int) -> None:
    points = np.array([[0, wins + draws / 2], [losses + draws / 2, 0]])
    ratings = bradley_terry(points)
    if wins + draws + losses == 0:
        assert ratings.groups == 2
        return
    score = (wins + draws / 2 + 0.5) / (wins + draws + losses + 1)
    assert ratings.elo[0] - ratings.elo[1] == pytest.approx(400 * math.log10(score / (1 - score)), abs=1e-6)
    assert ratings.elo.sum() == pytest.approx(0, abs=1e-9)
    one = 1.959964 * ELO / 2 / math.sqrt((wins + draws + losses + 1) * score * (1 - score))
    assert ratings.error == pytest.approx([one, one], rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_many_players_are_rated_as_by_the_slow_reference(seed: int) -> None:
    points = some_points(seed, 5, 12)
    met = (points + points.T) > 0
    strengths, errors = slow_reference(points + 0.5 * met)
    ratings = bradley_terry(points)
    assert ratings.groups == 1
    assert ratings.elo == pytest.approx(ELO * strengths, abs=0.01)
    assert ratings.error == pytest.approx(1.959964 * ELO * errors, rel=1e-3)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_ratings_do_not_depend_on_the_order_of_players(seed: int, count: int) -> None:
    points = some_points(seed, count, 4)
    order = np.random.default_rng(seed).permutation(count)
    ratings, shuffled = bradley_terry(points), bradley_terry(points[np.ix_(order, order)])
    assert shuffled.elo == pytest.approx(ratings.elo[order], abs=1e-6)
    finite = np.isfinite(ratings.error)
    assert shuffled.error[finite[order]] == pytest.approx(ratings.error[order][finite[order]], rel=1e-6)
    assert (shuffled.group[:, None] == shuffled.group).tolist() == (
        ratings.group[order][:, None] == ratings.group[order]
    ).tolist()


def test_expected_points_are_the_points_made() -> None:
    """At the greatest likelihood every player's expected points are those it made, the imagined ones included."""
    points = some_points(3, 30, 40)
    ratings = bradley_terry(points)
    matches = points + points.T
    won = points + 0.5 * (matches > 0)
    expected = (matches + (matches > 0)) / (1 + 10 ** ((ratings.elo[None, :] - ratings.elo[:, None]) / 400))
    assert expected.sum(axis=1) == pytest.approx(won.sum(axis=1), abs=1e-6)


def test_groups_without_matches_between_them_are_told() -> None:
    points = np.zeros((6, 6))
    points[0, 3], points[3, 0] = 9, 1
    points[1, 4], points[4, 1] = 5, 5
    points[4, 5] = 2
    ratings = bradley_terry(points)
    assert ratings.group.tolist() == [0, 1, 2, 0, 1, 1]
    assert ratings.groups == 3
    assert math.isinf(ratings.error[2])
    alone = bradley_terry(points[np.ix_([0, 3], [0, 3])])
    assert ratings.elo[[0, 3]] == pytest.approx(alone.elo)
    for members in ([0, 3], [1, 4, 5], [2]):
        assert ratings.elo[members].sum() == pytest.approx(0, abs=1e-9)


def test_one_sided_results_are_rated_or_refused() -> None:
    chain = np.triu(np.full((8, 8), 50.0), 1)  # each player beats all that follow
    ratings = bradley_terry(chain)
    assert (np.diff(ratings.elo) < 0).all() and np.isfinite(ratings.elo).all()
    with pytest.raises(SparringError, match="no finite ratings"):
        bradley_terry(chain, imagined_draws=0)
    huge = bradley_terry(np.array([[0, 1e6], [0, 0]]), imagined_draws=1e-3)
    assert huge.elo[0] - huge.elo[1] == pytest.approx(400 * math.log10(1e6 / 5e-4), rel=1e-6)
    fair = bradley_terry(np.array([[0, 7.0], [3.0, 0]]), imagined_draws=0)
    assert fair.elo[0] - fair.elo[1] == pytest.approx(400 * math.log10(7 / 3))


@pytest.mark.parametrize("points", [np.zeros((2, 3)), np.array([[0, -1.0], [0, 0]]), np.array([[1.0]])])
def test_no_matrix_of_points(points: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="points"):
        bradley_terry(points)
