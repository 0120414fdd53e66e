"""Counter-based random numbers: Philox as published, draws that depend on nothing but their key and counter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from sparring import _core
from sparring.learn.noise import choice_uniforms

MASK = 2**64 - 1


def mix64(x: int) -> int:
    """SplitMix64's step and finaliser (Steele, Lea and Flood 2014)."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def unmix64(x: int) -> int:
    """The number that mix64 turns into x."""

    def unshift(value: int, by: int) -> int:
        out = value
        for _ in range(64 // by):
            out = value ^ (out >> by)
        return out

    x = (unshift(x, 31) * pow(0x94D049BB133111EB, -1, 2**64)) & MASK
    x = (unshift(x, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64)) & MASK
    return (unshift(x, 30) - 0x9E3779B97F4A7C15) & MASK


def seed_of(key: int, stream: int = 0) -> int:
    """The seed whose `stream` has this Philox key."""
    return unmix64(key) ^ mix64(stream)


def philox(key: int, counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw 2011) in Python's own integers."""
    keys = [key % 2**32, key >> 32]
    c = counter
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = ((right >> 32) ^ c[1] ^ keys[0], right % 2**32, (left >> 32) ^ c[3] ^ keys[1], left % 2**32)
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return c


def box_muller(words: tuple[int, int, int, int]) -> list[float]:
    numbers = []
    for a, b in (words[:2], words[2:]):
        radius, angle = math.sqrt(-2 * math.log((a + 0.5) / 2**32)), 2 * math.pi * b / 2**32
        numbers += [radius * math.cos(angle), radius * math.sin(angle)]
    return numbers


KNOWN = [
    (0, (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (MASK, (2**32 - 1,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        0x299F31D0A4093822,
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""The generator's published answers: key, counter, words."""


@pytest.mark.parametrize(("key", "counter", "words"), KNOWN)
def test_the_published_answers_of_philox(
    key: int, counter: tuple[int, int, int, int], words: tuple[int, int, int, int]
) -> None:
    assert philox(key, counter) == words
    row = np.array([[c - 2**32 if c >= 2**31 else c for c in counter]], np.int64)
    for signs in (row, row % 2**32):  # a counter counts modulo 2^32
        assert _core.normals(seed_of(key), 0, signs)[0] == pytest.approx(box_muller(words), rel=1e-6, abs=1e-7)


def test_the_first_published_word_exactly() -> None:
    assert _core.integers(seed_of(0), 0, 0, 1, 2**32).tolist() == [0x6627E8D5]


def test_mix64_is_splitmix64() -> None:
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # the sequence of seed 0
    assert [_core.mix64(n * 0x9E3779B97F4A7C15 & MASK) for n in range(3)] == published
    for x in (0, 1, 12345, MASK, 2**63):
        assert _core.mix64(x) == mix64(x)
        assert unmix64(mix64(x)) == x


def counters(n: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2**32, (n, 4))


def test_normals_equal_the_papers_formulas() -> None:
    rows = counters(300)
    seed, stream = 2**64 - 3, 17
    expected = [box_muller(philox(mix64(seed ^ mix64(stream)), tuple(row))) for row in rows.tolist()]
    drawn = _core.normals(seed, stream, rows)
    assert drawn.dtype == np.float32
    assert drawn.shape == (300, 4)
    assert drawn == pytest.approx(np.array(expected), rel=1e-6, abs=1e-7)


def test_normals_are_normal() -> None:
    rows = np.zeros((100_000, 4), np.int64)
    rows[:, 0] = np.arange(100_000)  # counters as they are used: small and in sequence
    drawn = _core.normals(1, 2, rows).astype(float)
    n = drawn.size
    assert abs(drawn.mean()) < 4 / math.sqrt(n)
    assert abs(drawn.var() - 1) < 4 * math.sqrt(2 / n)
    assert abs((drawn**3).mean()) < 4 * math.sqrt(15 / n)
    assert abs((drawn**4).mean() - 3) < 4 * math.sqrt(96 / n)
    for beyond in (1.0, 2.0, 3.0, 4.0):
        expected = 2 * float(stats.norm.sf(beyond))
        assert abs((abs(drawn) > beyond).mean() - expected) < 4 * math.sqrt(expected / n)
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 0.01
    # The four numbers of a block, and neighbouring blocks, have nothing to do with each other.
    columns = np.concatenate([drawn[:-1], drawn[1:]], axis=1)
    off_diagonal = np.corrcoef(columns.T) - np.eye(8)
    assert abs(off_diagonal).max() < 5 / math.sqrt(len(drawn))


def test_uniforms_equal_the_words_of_the_paper() -> None:
    rows = counters(300)
    rows[0] = 0
    seed, stream = 7, 65536 * 2 + 5
    words = [philox(mix64(seed ^ mix64(stream)), tuple(row)) for row in rows.tolist()]
    drawn = _core.uniforms(seed, stream, rows)
    assert drawn.dtype == np.float32
    assert np.array_equal(drawn.astype(float), np.array(words) // 2**9 / 2**23)


def test_uniforms_of_choices_are_keyed_by_who_decides_when() -> None:
    lane, match, dragon, round_ = (torch.arange(20) % k for k in (2, 3, 5, 7))
    drawn = choice_uniforms(lane, match, dragon, round_, seed=3, stream=9)
    assert drawn.shape == (20, 12)
    assert len(drawn.unique()) > 230  # no number serves two parts
    alone = choice_uniforms(lane[4:5], match[4:5], dragon[4:5], round_[4:5], seed=3, stream=9)
    assert torch.equal(alone, drawn[4:5])
    key = np.array([[0, 1, 4, 4]], np.int64)  # row 4: lane, match, dragon, round
    third = _core.uniforms(3, 9 + 2 * 65536, key)
    assert np.array_equal(third[0], drawn[4, 8:].numpy())


def test_the_order_of_a_batch_changes_nothing() -> None:
    rows = counters(500)
    order = np.random.default_rng(1).permutation(500)
    drawn = _core.normals(3, 4, rows)
    assert np.array_equal(_core.normals(3, 4, rows[order]), drawn[order])
    assert np.array_equal(_core.normals(3, 4, rows[7:8]), drawn[7:8])


def test_seeds_streams_and_every_counter_word_matter() -> None:
    rows = counters(50)
    sets = [_core.normals(1, 0, rows), _core.normals(2, 0, rows), _core.normals(1, 1, rows), _core.normals(0, 1, rows)]
    for word in range(4):
        changed = rows.copy()
        changed[:, word] += 1
        sets.append(_core.normals(1, 0, changed))
    for first in range(len(sets)):
        for second in range(first):
            assert not (sets[first] == sets[second]).any()


HIGHS = [1, 2, 3, 10, 1_000_003, 2**31, 2**32, 2**32 + 1, 2**40 - 1, 2**53 + 5, 2**63 - 1]


@pytest.mark.parametrize("high", HIGHS)
def test_integers_equal_exact_arithmetic(high: int) -> None:
    seed, stream, counter = 99, 5, 2**33 + 7
    key = mix64(seed ^ mix64(stream))
    expected = []
    for i in range(200):
        words = philox(key, (counter % 2**32, counter >> 32, i, 0))
        expected.append((words[0] << 32 | words[1]) * high >> 64)
    drawn = _core.integers(seed, stream, counter, 200, high)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == expected
    assert drawn.min() >= 0
    assert drawn.max() < high


@pytest.mark.parametrize("high", [7, 100, 1000])
def test_integers_are_uniform(high: int) -> None:
    drawn = np.concatenate([_core.integers(4, 1, counter, 512, high) for counter in range(200)])
    assert 0.001 < stats.chisquare(np.bincount(drawn, minlength=high)).pvalue < 0.999


def test_integers_of_one_counter_do_not_depend_on_how_many_are_drawn() -> None:
    assert np.array_equal(_core.integers(1, 2, 3, 10, 1000), _core.integers(1, 2, 3, 500, 1000)[:10])
    assert _core.integers(1, 2, 3, 0, 5).shape == (0,)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="high"):
        _core.integers(0, 0, 0, 1, 0)
    with pytest.raises(ValueError, match="n must"):
        _core.integers(0, 0, 0, -1, 5)
    with pytest.raises(TypeError):
        _core.normals(0, 0, np.zeros((3, 3), np.int64))
