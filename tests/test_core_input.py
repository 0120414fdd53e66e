"""What the core's Loong classes do with arguments that are wrong: they raise, change nothing, and never crash."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loong_maps import random_map

from sparring import _core
from sparring.judge.native import load_level

ACTION, LANE = np.dtype(_core.LOONG_ACTION), np.dtype(_core.LOONG_LANE)
U8, I64, U64 = np.uint8, np.int64, np.uint64
LEVELS = [load_level(random_map(random.Random(seed), repeats=seed == 1)) for seed in range(3)]


def batch(lanes: int = 4, **options: Any) -> _core.LoongMatches:
    return _core.LoongMatches(LEVELS, lanes, **options)


def played(lanes: int = 4, turns: int = 40) -> _core.LoongMatches:
    """A batch some turns on, with splits and messages."""
    matches = batch(lanes)
    scripts, actions = np.zeros((lanes, 2), U8), np.zeros((lanes, ACTION.itemsize), U8)
    for _ in range(turns):
        matches.decide(scripts, 1, actions)
        rows = actions.view(ACTION)
        rows["aimed_directions"], rows["extras"] = 15, 3
        matches.act(actions)
    assert matches.rows.view(LANE)["waiting"].any()
    return matches


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.binary(max_size=8),
    st.text(max_size=3),
    st.sampled_from([U8, np.int8, np.int32, I64, U64, np.float32, bool, object]).flatmap(
        lambda kind: st.lists(st.integers(0, 5), max_size=3).map(lambda shape: np.ones(shape, kind))
    ),
    st.sampled_from([[], [None], [3], LEVELS, [*LEVELS, None], np.array("x"), float("nan")]),
)


@given(st.data())
def test_arguments_of_any_kind_raise_or_are_carried_out(data: st.DataObject) -> None:
    matches = batch()
    text = _core.LoongTextMatch(LEVELS[0], 1)
    calls: list[tuple[Callable[..., Any], int]] = [
        (matches.restart, 3),
        (matches.act, 1),
        (matches.decide, 3),
        (matches.init, 1),
        (matches.dragons, 1),
        (matches.pearls, 1),
        (matches.view_of, 2),
        (matches.block, 1),
        (matches.reply, 2),
        (matches.load_state, 1),
        (text.reply, 1),
        (_core.loong_level, 1),
        (_core.loong_reply, 1),
        (_core.loong_view, 2),
        (_core.loong_decide_rows, 6),
        (_core.loong_lane_bytes, 2),
        (_core.loong_pool, 1),
        (_core.loong_batch, 7),
        (_core.LoongTextMatch, 4),
        (_core.LoongLevel, 1),
    ]
    call, count = data.draw(st.sampled_from(calls))
    before = matches.state()
    try:
        call(*[data.draw(anything) for _ in range(count)])
    except (TypeError, ValueError, IndexError, RuntimeError):
        assert (matches.state() == before).all()
    matches.look()
    text.next()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"levels": []}, ValueError, "levels must not be empty"),
        ({"levels": [None]}, (TypeError, ValueError), None),
        ({"lanes": 0}, ValueError, "lanes must be 1 to 16777216"),
        ({"lanes": -1}, ValueError, "lanes must be 1 to 16777216"),
        ({"lanes": 2**62}, ValueError, "lanes must be 1 to 16777216"),
        ({"lanes": 2**70}, TypeError, None),
        ({"threads": 0}, ValueError, "threads must be 1 to 1024"),
        ({"threads": -5}, ValueError, "threads must be 1 to 1024"),
        ({"threads": 2**30}, ValueError, "threads must be 1 to 1024"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(options: dict[str, Any], error: Any, words: str | None) -> None:
    with pytest.raises(error, match=words):
        _core.LoongMatches(**({"levels": LEVELS, "lanes": 2} | options))


def test_objects_that_were_never_made_are_refused() -> None:
    for kind, use in [
        (_core.LoongLevel, lambda level: level.width),
        (_core.LoongLevel, lambda level: _core.LoongMatches([level], 1)),
        (_core.LoongMatches, lambda matches: matches.state()),
        (_core.LoongTextMatch, lambda match: match.next()),
    ]:
        with pytest.raises((TypeError, ValueError, RuntimeError)), pytest.warns(RuntimeWarning):
            use(kind.__new__(kind))


def test_arrays_of_another_kind_are_not_converted() -> None:
    """A conversion would lose what `decide` writes, and wrap seeds and actions round."""
    matches = batch()
    lanes, seeds = np.arange(2), np.arange(2, dtype=U64)
    scripts, actions = np.zeros((4, 2), U8), np.zeros((4, ACTION.itemsize), U8)
    frozen = actions.copy()
    frozen.flags.writeable = False
    rows = (scripts[:, :1].copy(), np.zeros((4, 5), np.int32), matches.views, 1, np.zeros(4, U64), actions)
    _core.loong_decide_rows(*rows)
    for call in (
        lambda: matches.decide(scripts, 1, actions.astype(np.float32)),
        lambda: matches.decide(scripts, 1, frozen),
        lambda: matches.decide(scripts.astype(I64), 1, actions),
        lambda: matches.decide(scripts, -1, actions),
        lambda: matches.act(actions.astype(I64)),
        lambda: matches.act(np.asfortranarray(actions)),
        lambda: matches.restart(lanes, lanes, seeds.astype(I64)),
        lambda: matches.restart(lanes.astype(np.float64), lanes, seeds),
        lambda: matches.load_state(matches.state().astype(np.int8)),
        lambda: _core.loong_decide_rows(*rows[:-1], rows[-1].astype(np.float32)),
        lambda: _core.loong_decide_rows(*rows[:-1], frozen),
        lambda: _core.loong_decide_rows(rows[0].astype(I64), *rows[1:]),
    ):
        with pytest.raises(TypeError):
            call()


def test_rows_that_start_between_words_are_refused() -> None:
    matches = batch()
    size = 4 * ACTION.itemsize
    shifted = np.zeros(size + 1, U8)[1:].reshape(4, ACTION.itemsize)
    with pytest.raises(ValueError, match="multiple of 8 bytes"):
        matches.act(shifted)
    with pytest.raises(ValueError, match="multiple of 8 bytes"):
        matches.decide(np.zeros((4, 2), U8), 1, shifted)


def test_rows_for_scripted_players_must_fit_together() -> None:
    scripts, who, views = np.zeros((2, 1), U8), np.zeros((2, 5), np.int32), np.zeros((2, batch().views.shape[1]), U8)
    seeds, actions = np.zeros(2, U64), np.zeros((2, ACTION.itemsize), U8)
    with pytest.raises(ValueError, match="row 1: there are only 5 scripted players"):
        _core.loong_decide_rows(np.array([[0], [5]], U8), who, views, 0, seeds, actions)
    for wrong in (
        (scripts[:1], who, views, 0, seeds, actions),
        (scripts, who[:, :4].copy(), views, 0, seeds, actions),
        (scripts, who, views[:, 1:].copy(), 0, seeds, actions),
        (scripts, who, views, 0, seeds[:1], actions),
        (scripts, who, views, 0, seeds, actions[:1]),
    ):
        with pytest.raises(ValueError, match="must have a row for each dragon"):
            _core.loong_decide_rows(*wrong)


def test_a_lane_cannot_be_restarted_twice_at_once() -> None:
    matches = batch()
    before = matches.state()
    with pytest.raises(ValueError, match="lane 3 is named twice"):
        matches.restart(np.array([3, 1, 3]), np.zeros(3, I64), np.zeros(3, U64))
    assert (matches.state() == before).all()


def test_rows_and_views_are_for_reading() -> None:
    matches = batch()
    for array in (matches.rows, matches.views):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


def test_a_damaged_state_is_refused_whole_and_says_which_lane() -> None:
    matches, other = played(), batch()
    good, before = matches.state(), other.state()
    match = good[2, 8:].view(np.int32)
    for place, value, words in [
        (2, 500, "its round is not one of a match"),
        (3, 2**30, "it has more dragons than its room"),
        (7, 77, "a dragon has the turn that is not on"),
        (9, 312, "its twister is out of its words"),
    ]:
        kept = match[place]
        match[place] = value
        with pytest.raises(ValueError, match=f"state of lane 2 is damaged: {words}"):
            other.load_state(good)
        match[place] = kept
    good[1, :8].view(U64)[0] = 3
    with pytest.raises(ValueError, match="state of lane 1: it names a level that is not here"):
        other.load_state(good)
    good[1, :8].view(U64)[0] = 1
    assert (other.state() == before).all()
    other.load_state(good)
    assert (other.state() == good).all()


def test_bytes_of_a_state_that_changed_are_refused_or_play_on() -> None:
    good = played().state()
    pick = np.random.default_rng(4)
    scripts, actions = np.ones((4, 2), U8), np.zeros((4, ACTION.itemsize), U8)
    refused = 0
    for _ in range(300):
        state = good.copy()
        for _ in range(pick.integers(1, 4)):
            state[pick.integers(4), pick.integers(state.shape[1])] = pick.integers(256)
        other = batch()
        try:
            other.load_state(state)
        except ValueError:
            refused += 1
            continue
        for _ in range(20):
            other.look()
            other.decide(scripts, 1, actions)
            other.act(actions)
    assert 50 < refused < 250


def test_the_state_of_another_batch_is_refused() -> None:
    state = played().state()
    for wrong in (state[:3], state[:, :-8].copy(), np.zeros((4, 0), U8), np.zeros((0, state.shape[1]), U8)):
        with pytest.raises(ValueError, match="state must be"):
            batch().load_state(wrong)
    with pytest.raises(ValueError, match="state of lane 0 is damaged"):
        batch().load_state(np.zeros_like(state))


def test_two_threads_in_one_batch_do_no_harm() -> None:
    """The second is refused while the first is inside; which calls meet is chance."""
    matches = batch(1500)
    every, seeds = np.arange(1500), np.arange(1500, dtype=U64)

    def restart() -> None:
        for _ in range(15):
            try:
                matches.restart(every, every % 3, seeds)
            except RuntimeError as error:
                assert "another thread is using this batch" in str(error)

    threads = [threading.Thread(target=restart) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    matches.restart(every, every % 3, seeds)
    alone = batch(1500)
    alone.restart(every, every % 3, seeds)
    assert (matches.state() == alone.state()).all()


def test_a_match_by_text_refuses_calls_out_of_turn() -> None:
    match = _core.LoongTextMatch(LEVELS[0], 2**64 - 1)
    for call in (lambda: match.reply(b""), match.views_agree):
        with pytest.raises(RuntimeError, match="no dragon is asked"):
            call()
    while match.next()[0] != "ask":
        pass
    with pytest.raises(RuntimeError, match="has not replied"):
        match.next()
    for seed in (-1, 2**64, 1.5, None):
        with pytest.raises(TypeError):
            _core.LoongTextMatch(LEVELS[0], seed)  # type: ignore[arg-type]
