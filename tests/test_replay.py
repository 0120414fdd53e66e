"""The replay keeps the last rows, samples by counter alone, and gives its rows back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.learn.replay import Replay


def rows(start: int, n: int) -> dict[str, Tensor]:
    number = torch.arange(start, start + n, dtype=torch.float32)
    return {
        "obs": number.unsqueeze(1).repeat(1, 3),
        "action": number.unsqueeze(1),
        "reward": number,
        "discount": torch.ones(n),
        "next_obs": number.unsqueeze(1).repeat(1, 3) + 0.5,
    }


def test_only_the_last_rows_are_kept_and_columns_stay_together() -> None:
    replay = Replay(10, obs=3, actions=1)
    for start in range(0, 28, 7):
        replay.add(**rows(start, 7))
    assert (replay.rows_written, len(replay)) == (28, 10)
    kept = replay.columns()
    assert sorted(kept["reward"].tolist()) == list(range(18, 28))
    assert torch.equal(kept["obs"][:, 0], kept["reward"])
    assert torch.equal(kept["next_obs"][:, 2], kept["reward"] + 0.5)
    assert torch.equal(replay.rows(20, 25)["reward"], torch.arange(20.0, 25.0))


@pytest.mark.parametrize("written", [4, 10, 13])
def test_restored_rows_sample_the_same(written: int) -> None:
    replay = Replay(10, obs=3, actions=1)
    for start in range(written):
        replay.add(**rows(start, 1))
    again = Replay(10, obs=3, actions=1)
    first = written - len(replay)
    again.restore(first, replay.rows(first, written))
    assert again.rows_written == written
    for counter in range(3):
        a = replay.sample(64, seed=1, stream=2, counter=counter)
        b = again.sample(64, seed=1, stream=2, counter=counter)
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_samples_cover_every_row_and_differ_by_counter() -> None:
    replay = Replay(10, obs=3, actions=1)
    replay.add(**rows(0, 6))
    first = replay.sample(300, seed=0, stream=2, counter=0)["reward"]
    assert set(first.tolist()) == set(range(6))
    assert not torch.equal(first, replay.sample(300, seed=0, stream=2, counter=1)["reward"])
    assert not torch.equal(first, replay.sample(300, seed=1, stream=2, counter=0)["reward"])


def test_rows_that_are_gone_or_do_not_fit_are_refused() -> None:
    replay = Replay(10, obs=3, actions=1)
    with pytest.raises(SparringError, match="11 rows at once do not fit its capacity of 10"):
        replay.add(**rows(0, 11))
    replay.add(**rows(0, 10))
    replay.add(**rows(10, 5))
    with pytest.raises(SparringError, match="rows 4 to 8 are not held; held are 5 to 15"):
        replay.rows(4, 8)


def test_a_replay_larger_than_the_memory_is_one_line() -> None:
    with pytest.raises(SparringError, match="replay: 10,000,000,000,000 rows need 2,080,000"):
        Replay(10**13, 24, 2)
