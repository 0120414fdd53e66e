"""Prioritized Level Replay: weights by hand, order of updates, resume."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparring.errors import SparringError
from sparring.levels.prioritized import LevelReplayConfig, PrioritizedLevelReplay


def table(levels: int = 4, *, seed: int = 3, **config: float) -> PrioritizedLevelReplay:
    return PrioritizedLevelReplay(levels, LevelReplayConfig(**config), seed=seed, stream=9)


def test_the_weights_equal_a_hand_computation() -> None:
    replay = table(temperature=0.5, staleness=0.2)
    replay.started = torch.tensor([0, 3, -1, 1])
    replay.starts = 5
    replay.update(torch.tensor([0, 1, 3]), torch.tensor([0.5, 2.0, 1.0]))
    # Ranks 3, 1, 2 -> 1/9, 1, 1/4, together 49/36; ages 5, 2, 4, together 11.
    expected = [0.8 * 4 / 49 + 0.2 * 5 / 11, 0.8 * 36 / 49 + 0.2 * 2 / 11, 0.0, 0.8 * 9 / 49 + 0.2 * 4 / 11]
    torch.testing.assert_close(replay.weights(), torch.tensor(expected, dtype=torch.float64))


def test_equal_scores_have_equal_weights_and_a_level_without_one_ranks_first() -> None:
    replay = table(staleness=0.0, temperature=1.0)
    replay.started = torch.tensor([0, 1, 2, 3])
    replay.update(torch.tensor([0, 1, 2]), torch.tensor([0.5, 0.5, 0.1]))
    expected = torch.tensor([1 / 2, 1 / 2, 1 / 4, 1.0], dtype=torch.float64)
    torch.testing.assert_close(replay.weights(), expected / expected.sum())


@settings(deadline=None, max_examples=30)
@given(order=st.permutations(range(6)), seed=st.integers(0, 2**62))
def test_neither_draws_nor_updates_depend_on_order(order: list[int], seed: int) -> None:
    lane, match = torch.arange(6), torch.tensor([0, 0, 1, 1, 2, 5])
    level, score = torch.tensor([0, 1, 0, 2, 2, 2]), torch.tensor([0.5, 1.0, 0.25, 2.0, 0.5, 0.25])
    one, other = table(seed=seed), table(seed=seed)
    for replay in (one, other):
        replay.started[:] = torch.arange(4)
        replay.starts = 4
    one.update(level, score)
    other.update(level[order], score[order])
    assert torch.equal(one.weights(), other.weights())
    assert torch.equal(one.draw(lane, match)[order], other.draw(lane[order], match[order]))


def test_half_of_the_starts_are_on_unseen_levels_while_there_are_any() -> None:
    replay = table(400, unseen=0.5)
    replay.draw(torch.arange(100), torch.zeros(100, dtype=torch.int64))
    before = replay.started >= 0
    replay.update(before.nonzero().view(-1), torch.rand(int(before.sum())))
    fresh = (~before)[replay.draw(torch.arange(1000), torch.ones(1000, dtype=torch.int64))].float().mean()
    assert 0.45 < float(fresh) < 0.55


def test_all_replays_follow_the_weights_once_every_level_was_seen() -> None:
    replay = table(5, temperature=1.0)
    replay.started = torch.tensor([0, 1, 2, 3, 4])
    replay.starts = 5
    replay.update(torch.arange(5), torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0]))
    weights = replay.weights()
    drawn = replay.draw(torch.arange(20_000), torch.zeros(20_000, dtype=torch.int64))
    shares = torch.bincount(drawn, minlength=5) / 20_000
    torch.testing.assert_close(shares.double(), weights, atol=0.012, rtol=0)  # four standard deviations


def test_a_resumed_table_draws_alike_and_another_pool_is_refused() -> None:
    replay = table(20)
    replay.draw(torch.arange(8), torch.zeros(8, dtype=torch.int64))
    replay.update(torch.arange(20), torch.linspace(0, 1, 20))
    resumed = table(20)
    resumed.load_state(replay.state())
    lane, match = torch.arange(8), torch.ones(8, dtype=torch.int64)
    assert torch.equal(resumed.draw(lane, match), replay.draw(lane, match))
    assert torch.equal(resumed.weights(), replay.weights())
    with pytest.raises(SparringError, match="the checkpoint knows 20 levels, this run has 4"):
        table(4).load_state(replay.state())
