"""The scripted players from Python: what they do does not depend on how a batch is played, and some are better."""

from __future__ import annotations

import random

import numpy as np
import pytest
from loong_maps import random_map
from numpy.typing import NDArray

from sparring import _core
from sparring.judge.native import NativeEngine, load_level

ACTION, LANE = np.dtype(_core.LOONG_ACTION), np.dtype(_core.LOONG_LANE)
SCRIPTS = _core.LOONG_SCRIPTS


def pool(count: int) -> list[_core.LoongLevel]:
    return [load_level(random_map(random.Random(seed), repeats=seed % 4 == 0)) for seed in range(count)]


def teams(lanes: int, a: str, b: str) -> NDArray[np.uint8]:
    return np.tile(np.array([SCRIPTS.index(a), SCRIPTS.index(b)], np.uint8), (lanes, 1))


def blank(lanes: int) -> NDArray[np.uint8]:
    return np.zeros((lanes, ACTION.itemsize), np.uint8)


def play_out(batch: _core.LoongMatches, scripts: NDArray[np.uint8], seed: int = 1) -> NDArray[np.void]:
    """Play all lanes to their end; the rows then."""
    rows = batch.rows.view(LANE)[:, 0]
    actions = blank(batch.lanes)
    while rows["waiting"].any():
        batch.decide(scripts, seed, actions)
        batch.act(actions)
    assert not rows["fault"].any()
    return rows.copy()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_player_does_the_same_in_any_batch(name: str) -> None:
    levels = pool(6)
    lanes, seeds = np.arange(12), np.arange(12, dtype=np.uint64) + 5
    scripts = teams(12, name, "reckless")

    def ends(threads: int, order: NDArray[np.int64]) -> NDArray[np.void]:
        batch = _core.LoongMatches(levels, 12, threads=threads)
        batch.restart(order, lanes % 6, seeds)  # lane order[i] plays match i
        return play_out(batch, scripts)[order]

    first = ends(1, lanes)
    assert (first == ends(3, lanes[::-1].copy())).all()
    alone = _core.LoongMatches(levels, 1)
    alone.restart(lanes[:1], lanes[7:8] % 6, seeds[7:8])
    assert play_out(alone, scripts[:1])[0] == first[7]


def test_another_seed_is_another_player_and_another_match_other_luck() -> None:
    batch = _core.LoongMatches(pool(1), 40)
    lanes = np.arange(40)
    batch.restart(lanes, np.zeros_like(lanes), lanes.astype(np.uint64))
    scripts = teams(40, "legal", "legal")
    one, other = blank(40), blank(40)
    batch.decide(scripts, 1, one)
    batch.decide(scripts, 2, other)
    assert (one != other).any()
    assert len({row.tobytes() for row in one}) > 1


def test_the_better_player_wins() -> None:
    levels, lanes = pool(20), np.arange(40)
    for better, worse, least in [
        ("forager", "legal", 30),
        ("legal", "reckless", 30),
        ("hunter", "forager", 22),
        ("splitter", "forager", 22),
    ]:
        batch = _core.LoongMatches(levels, 40)
        batch.restart(lanes, lanes // 2, lanes.astype(np.uint64) // 2)  # two matches differ in seats only
        scripts = teams(40, better, worse)
        scripts[1::2] = scripts[1::2, ::-1]
        winner = play_out(batch, scripts)["winner"]
        won = np.count_nonzero(winner == 1 + lanes % 2)
        assert won >= least, f"{better} won {won} of 40 matches against {worse}"


def test_replies_lead_to_the_same_match_as_rows() -> None:
    map_bytes = random_map(random.Random(3))
    batch = _core.LoongMatches([load_level(map_bytes)], 1)
    batch.restart(np.array([0]), np.array([0]), np.array([9], np.uint64))
    rows, scripts, action, replies = batch.rows.view(LANE)[:, 0], teams(1, "hunter", "reckless"), blank(1), []
    while rows["waiting"][0]:
        batch.decide(scripts, 4, action)
        replies.append(_core.loong_reply(action.tobytes()))
        batch.act(action)
    told = iter(replies)
    result = NativeEngine().run(map_bytes, lambda _dragon, _block: next(told), seed=9)
    assert next(told, None) is None and len(replies) > 50
    assert (result.rounds, result.a_dragons, result.b_length) == (
        rows["round"],
        rows["dragons"][0, 0],
        rows["total"][0, 1],
    )


def test_what_is_no_player_and_what_is_no_action_is_refused() -> None:
    batch = _core.LoongMatches(pool(1), 2)
    with pytest.raises(ValueError, match="lane 1: there are only 5 scripted players"):
        batch.decide(np.array([[0, 4], [5, 0]], np.uint8), 0, blank(2))
    with pytest.raises(ValueError, match=r"scripts must be \[lanes, 2\]"):
        batch.decide(np.zeros((2, 3), np.uint8), 0, blank(2))
    with pytest.raises(ValueError, match="one row of LOONG_ACTION for each lane"):
        batch.decide(np.zeros((2, 2), np.uint8), 0, blank(3))
    with pytest.raises(ValueError, match="not an action"):
        _core.loong_reply(bytes([255] * ACTION.itemsize))
    with pytest.raises(ValueError, match="one row of LOONG_ACTION"):
        _core.loong_reply(b"")
