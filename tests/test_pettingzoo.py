"""Tennis with PettingZoo's face, under PettingZoo's own tests."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("pettingzoo")

from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from scripted import keeper

from sparring.compat.pettingzoo import env, parallel_env
from sparring.errors import SparringError
from sparring.games.tennis import CAP_DECISIONS, Tennis

IDLE = {"racket_b": np.zeros(2, np.float32), "racket_a": np.zeros(2, np.float32)}
AWAY = {"racket_b": np.array([-1, 0], np.float32), "racket_a": np.array([-1, 0], np.float32)}


@pytest.mark.filterwarnings("error")
def test_pettingzoo_parallel_api() -> None:
    parallel_api_test(parallel_env(), num_cycles=300)


def test_pettingzoo_aec_api() -> None:
    api_test(env(), num_cycles=300, verbose_progress=False)


def test_pettingzoo_seeds() -> None:
    parallel_seed_test(parallel_env, num_cycles=100)
    seed_test(env, num_cycles=100)


def test_seed_is_the_binary_s_seed() -> None:
    observations, _ = parallel_env().reset(seed=0)
    np.testing.assert_allclose(observations["racket_b"][16:22], [-6.65279, -1.5, 0, 0, 6.83172, 6], atol=5e-6)
    np.testing.assert_allclose(observations["racket_a"][16:22], [-6.46699, -1.5, 0, 0, -6.83172, 6], atol=5e-6)


@pytest.mark.parametrize("velocity", ["as-shipped", "true"])
def test_rally_is_the_decision_stream_s(velocity: str) -> None:
    zoo, game = parallel_env(velocity=velocity), Tennis(seed=3, velocity=velocity)
    observations, _ = zoo.reset(seed=3)
    random = np.random.default_rng(0)
    total = np.zeros(2)
    while zoo.agents:
        np.testing.assert_array_equal(np.stack(list(observations.values())), game.decisions().obs)
        actions = random.uniform(-1, 1, (2, 2)).astype(np.float32)
        observations, rewards, terminations, truncations, _ = zoo.step(dict(zip(zoo.agents, actions, strict=True)))
        outcome = game.act(torch.from_numpy(actions))
        assert list(rewards.values()) == outcome.reward.tolist()
        total += list(rewards.values())
    assert list(terminations.values()) == [True, True]
    assert list(truncations.values()) == [False, False]
    np.testing.assert_array_equal(np.stack(list(observations.values())), outcome.last.obs)
    assert not np.array_equal(observations["racket_b"], game.decisions().obs[0])
    np.testing.assert_allclose(total, outcome.score[0], atol=1e-6)


def test_last_observation_is_where_the_rally_ended() -> None:
    zoo = parallel_env()
    zoo.reset(seed=0)
    while zoo.agents:
        observations, *_ = zoo.step(AWAY)
    assert observations["racket_a"][21] < -2.5  # the ball is down; the next rally's would be at 6
    assert observations["racket_a"][5] != 0  # and the frames before it are still there


def test_max_cycles_truncates_and_does_not_terminate() -> None:
    zoo = parallel_env(max_cycles=5)
    zoo.reset(seed=0)
    for _ in range(4):
        *_, terminations, truncations, _ = zoo.step(IDLE)
        assert not any(truncations.values())
    observations, _, terminations, truncations, _ = zoo.step(IDLE)
    assert list(truncations.values()) == [True, True]
    assert list(terminations.values()) == [False, False]
    assert 0 < observations["racket_a"][21] < 6
    assert zoo.agents == []


def test_end_by_the_rules_at_max_cycles_is_terminal() -> None:
    zoo = parallel_env()
    zoo.reset(seed=0)
    decisions = 0
    while zoo.agents:
        zoo.step(AWAY)
        decisions += 1
    zoo = parallel_env(max_cycles=decisions)
    zoo.reset(seed=0)
    while zoo.agents:
        *_, terminations, truncations, _ = zoo.step(AWAY)
    assert list(terminations.values()) == [True, True]
    assert list(truncations.values()) == [False, False]


def test_court_s_own_limit_truncates() -> None:
    zoo = parallel_env()
    observations, _ = zoo.reset(seed=0)
    decisions = 0
    while zoo.agents:
        actions = keeper(torch.from_numpy(np.stack(list(observations.values())))).numpy()
        observations, _, terminations, truncations, _ = zoo.step(dict(zip(zoo.agents, actions, strict=True)))
        decisions += 1
    assert decisions == CAP_DECISIONS
    assert list(terminations.values()) == [False, False]
    assert list(truncations.values()) == [True, True]
    assert observations["racket_a"][5] != 0


def test_unseeded_resets_follow_the_last_seed_and_differ() -> None:
    def starts() -> list[bytes]:
        zoo = parallel_env()
        return [zoo.reset(seed=7 if first else None)[0]["racket_a"].tobytes() for first in (True, False, False)]

    one, other = starts(), starts()
    assert one == other
    assert len(set(one)) == 3
    assert parallel_env().reset()[0]["racket_a"].tobytes() != parallel_env().reset()[0]["racket_a"].tobytes()


def test_wrong_use_is_one_line() -> None:
    zoo = parallel_env()
    with pytest.raises(SparringError, match="call reset first"):
        zoo.step(IDLE)
    with pytest.raises(SparringError, match="a seed is 0 to 4294967295, got -1"):
        zoo.reset(seed=-1)
    zoo.reset(seed=0)
    with pytest.raises(SparringError, match="no action for racket_a"):
        zoo.step({"racket_b": np.zeros(2, np.float32)})
    for wrong in (np.zeros(3), np.array([np.nan, 0])):
        with pytest.raises(SparringError, match="must be 2 finite numbers"):
            zoo.step(IDLE | {"racket_a": wrong})
    with pytest.raises(SparringError, match="velocity"):
        parallel_env(velocity="none")
    with pytest.raises(SparringError, match="max_cycles"):
        parallel_env(max_cycles=0)
