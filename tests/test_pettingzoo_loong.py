"""Loong with PettingZoo's face, under PettingZoo's own tests, and against the decision stream."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loong_maps import random_map, simple_map

pytest.importorskip("pettingzoo")

from pettingzoo.test import api_test, seed_test

from sparring import _core
from sparring.compat.pettingzoo import loong_env
from sparring.errors import SparringError
from sparring.games.loong_rows import VIEW
from sparring.judge.native import load_level
from sparring.levels.pool import MapPool, build_pool

KNOWN_WARNINGS = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be",
    "Action space for each agent probably should be",
    "This environment does not have possible_agents defined",
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> MapPool:
    folder = tmp_path_factory.mktemp("maps")
    for index in range(4):
        (folder / f"{index}.map").write_bytes(random_map(random.Random(40 + index)))
    return build_pool(generated=0, folders=[folder])


def turns(env: Any, seed: int) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Play a match at random: whose turn it is, what `last` says, and what it does."""
    env.reset(seed=seed)
    env.action_space("dragon_0").seed(seed)
    for agent in env.agent_iter():
        told = env.last()
        action = None if told[2] else env.action_space(agent).sample(told[4]["action_mask"])
        yield agent, told, action
        env.step(action)


def test_pettingzoo_s_api_test(pool: MapPool) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        api_test(loong_env(maps=pool), num_cycles=100)
    unknown = [str(each.message) for each in heard if not str(each.message).startswith(KNOWN_WARNINGS)]
    assert not unknown


def test_pettingzoo_s_seed_test(pool: MapPool) -> None:
    seed_test(lambda: loong_env(maps=pool), num_cycles=20)


def test_a_match_is_the_engine_s_and_everybody_dies_once(pool: MapPool) -> None:
    ends = set()
    for seed in range(12):
        env = loong_env(maps=pool)
        drawn = np.random.default_rng(seed)
        level, luck = int(drawn.integers(len(pool))), int(drawn.integers(2**62))
        match = _core.LoongMatches([load_level(pool[level].file)], 1)
        match.restart(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([luck], np.uint64))
        row = match.rows.view(np.dtype(_core.LOONG_LANE))[0, 0]
        dead: set[str] = set()
        result: dict[str, float] = {}
        team: dict[str, int] = {}
        before: dict[str, dict[str, Any]] = {}
        for agent, (observation, reward, terminated, truncated, _), action in turns(env, seed):
            assert env.observation_space(agent).contains(observation)
            assert not truncated
            team[agent] = int(observation["team"])
            if terminated:
                assert agent not in dead
                dead.add(agent)
                result[agent] = reward
                if agent in before and agent not in {f"dragon_{each[0]}" for each in match.dragons(0)}:
                    assert all(np.array_equal(observation[name], before[agent][name]) for name in observation)
                continue
            before[agent], actor = observation, agent
            assert agent == f"dragon_{row['dragon']}" and reward == 0
            match.look()
            told = match.views.view(VIEW)[0, 0]
            for name in ("round", "facing", "length", "countdown", "north", "pearl", "body", "echoes"):
                assert np.array_equal(observation[name], told[name]), name
            assert np.array_equal(observation["newest"] @ [1, 2**32], told["newest"].astype(np.int64))
            match.reply(0, reply(action))
        assert not row["waiting"] and row["over"]
        assert dead == set(team) == {f"dragon_{number}" for number in range(len(dead))}
        pays = {0: [0, 0], 1: [1, -1], 2: [-1, 1]}[int(row["winner"])]
        living = [f"dragon_{each[0]}" for each in match.dragons(0)]
        paid = {*living, actor}
        assert result == {agent: pays[team[agent]] if agent in paid else 0 for agent in team}
        ends.add(int(row["winner"]))
        assert env.agents == [] and env.rewards == {}
    assert ends >= {1, 2}


def reply(action: dict[str, Any]) -> bytes:
    """The action as the judge reads it, written anew."""
    lines = [f"PROTOCOL {action['protocol']}"]
    if action["kind"]:
        lines.append(f"SPLIT {action['segments']}")
    else:
        steps = "".join("NESW."[step] for step in action["steps"])
        lines.append(f"MOVE {steps.split('.')[0]}")
    for direction, letter in enumerate(("N ", "E ", "S ", "W ", "")):
        if action["sends"][direction]:
            lines.append(f"SONAR {letter}{action['messages'][direction]}")
    return "\n".join([*lines, ""]).encode()


def test_masked_actions_break_no_rule(pool: MapPool) -> None:
    kinds = set()
    for seed in range(3):
        for _, (told, _, terminated, _, _), action in turns(loong_env(maps=pool), seed):
            if terminated:
                continue
            length = int(told["length"])
            kinds.add(int(action["kind"]))
            if action["kind"]:
                assert 2 <= action["segments"] <= length - 2 and told["units"] < told["unit_limit"]
            else:
                steps = [*action["steps"].tolist(), 4]
                assert steps[0] != (told["facing"] + 2) % 4
                assert steps.index(4) <= (length + 3) // 4 + length - 2
    assert kinds == {0, 1}


def test_a_split_gives_birth_to_an_agent_and_a_death_ends_one(tmp_path: Path) -> None:
    (tmp_path / "own.map").write_bytes(simple_map(dragons=("0 5 3 3 4 3 5 3 6 3 6 4", "1 2 1 7 1 8")))
    env = loong_env(maps=tmp_path)
    env.reset(seed=0)
    plain = {"steps": np.array([0] + [4] * 7), "segments": 3, "protocol": 2, "sends": np.zeros(5, np.int8)}
    plain |= {"messages": np.zeros(5, np.int64)}
    assert env.agents == ["dragon_0", "dragon_1"] and env.infos["dragon_1"] == {}
    assert env.infos["dragon_0"]["action_mask"]["kind"].tolist() == [1, 1]
    assert env.infos["dragon_0"]["action_mask"]["segments"][:3].tolist() == [1, 1, 0]
    env.step(plain | {"kind": 1})
    assert env.agents == ["dragon_0", "dragon_1", "dragon_2"]
    assert [int(env.observe(agent)["length"]) for agent in env.agents] == [2, 2, 3]
    assert [int(env.observe(agent)["team"]) for agent in env.agents] == [0, 1, 0]
    before = env.observe("dragon_1")
    env.step(plain | {"kind": 0, "steps": np.array([2] + [4] * 7)})  # back into its neck
    assert env.agent_selection == "dragon_1" and env.terminations == {
        "dragon_0": False,
        "dragon_1": True,
        "dragon_2": False,
    }
    assert all(np.array_equal(env.observe("dragon_1")[name], before[name]) for name in before)
    env.step(None)
    assert env.agents == ["dragon_0", "dragon_2"] and env.agent_selection == "dragon_2"
    env.step(plain | {"kind": 0, "steps": np.array([2] + [4] * 7)})
    assert env.rewards == {"dragon_0": 1, "dragon_2": 1} and all(env.terminations.values())
    for _ in range(2):
        assert env.last()[1] == 1
        env.step(None)
    assert env.agents == []


def test_pictures_and_text_show_the_board_as_it_stands(pool: MapPool) -> None:
    shown = {}
    for mode in ("rgb_array", "ansi"):
        env = loong_env(maps=pool, render_mode=mode)
        env.reset(seed=2)
        first = env.render()
        env.step(env.action_space("dragon_0").sample(env.infos["dragon_0"]["action_mask"]))
        shown[mode] = first, env.render()
    picture, later = shown["rgb_array"]
    assert picture.dtype == np.uint8 and picture.ndim == 3 and not np.array_equal(picture, later)
    text, later = shown["ansi"]
    assert text.count("Q") == 2 and text != later
    env = loong_env(maps=pool)
    env.reset(seed=2)
    assert env.render() is None


def test_unseeded_resets_follow_the_last_seed(pool: MapPool) -> None:
    def starts() -> list[bytes]:
        env, found = loong_env(maps=pool), []
        for seed in (7, None, None):
            env.reset(seed=seed)
            found.append(env.observe("dragon_0")["countdown"].tobytes())
        return found

    assert starts() == starts()


def test_wrong_use_is_one_line(pool: MapPool) -> None:
    with pytest.raises(SparringError, match='render_mode must be "rgb_array" or "ansi", got "human"'):
        loong_env(maps=pool, render_mode="human")
    env = loong_env(maps=pool)
    with pytest.raises(SparringError, match="a seed is 0 or more, got -1"):
        env.reset(seed=-1)
    env.reset(seed=1)
    action = env.action_space("dragon_0").sample(env.infos["dragon_0"]["action_mask"])
    for wrong in (None, action | {"kind": 2}, action | {"steps": action["steps"][:3]}):
        with pytest.raises(SparringError, match="the action of dragon_0 is not in its action space"):
            env.step(wrong)
    assert env.agents[0] == env.agent_selection == "dragon_0"
    with pytest.raises(SparringError, match="call reset first"):
        loong_env(maps=pool).unwrapped.step(action)
