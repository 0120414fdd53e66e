"""The 2018 Python API on the built-in court."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scripted import keeper

from sparring.compat import unityagents
from sparring.compat.unityagents import (
    CourtEnvironment,
    UnityActionException,
    UnityEnvironment,
    UnityEnvironmentException,
)
from sparring.errors import SparringError

IDLE = np.zeros((2, 2))


@pytest.fixture
def env() -> UnityEnvironment:
    return UnityEnvironment(file_name=None, seed=0)


def test_loop_of_the_public_notebooks_runs() -> None:
    env = UnityEnvironment(file_name=None)
    brain_name = env.brain_names[0]
    brain = env.brains[brain_name]
    env_info = env.reset(train_mode=True)[brain_name]
    num_agents = len(env_info.agents)
    action_size = brain.vector_action_space_size
    states = env_info.vector_observations
    assert (num_agents, action_size, states.shape[1]) == (2, 2, 24)
    random = np.random.default_rng(0)
    for _ in range(5):
        env_info = env.reset(train_mode=False)[brain_name]
        states = env_info.vector_observations
        scores = np.zeros(num_agents)
        decisions = 0
        while True:
            actions = np.clip(random.standard_normal((num_agents, action_size)), -1, 1)
            env_info = env.step(actions)[brain_name]
            next_states = env_info.vector_observations
            rewards = env_info.rewards
            dones = env_info.local_done
            scores += env_info.rewards
            states = next_states
            decisions += 1
            assert len(rewards) == len(dones) == 2
            if np.any(dones):
                break
        assert 10 <= decisions < 200
        assert -0.02 <= scores.max() < 0.5
    assert states.dtype == np.float64
    env.close()


def test_loop_over_several_rallies_runs(env: UnityEnvironment) -> None:
    random = np.random.default_rng(1)
    brain_name = env.brain_names[0]
    state = env.reset(train_mode=True)[brain_name].vector_observations
    score, dones_counted, decisions = np.zeros(2), 0, 0
    while dones_counted <= 10 and decisions < 2500:
        info = env.step([random.uniform(-1, 1, 2) for _ in state])[brain_name]
        state = info.vector_observations
        score += info.rewards
        dones_counted += any(info.local_done)
        decisions += 1
        if any(info.local_done):
            assert all(info.local_done)
            # The rally that ended is never shown: this is the first frame of the next one.
            assert not state[:, :16].any()
            assert (state[:, 17] == -1.5).all()
    assert dones_counted == 11
    assert 11 * 13 < decisions < 11 * 40


@pytest.mark.parametrize(("seed", "ball", "racket_b"), [(0, 6.83172083, 6.65278625), (42, 7.99828, 6.64731)])
def test_first_states_are_those_of_the_binary(seed: int, ball: float, racket_b: float) -> None:
    info = UnityEnvironment(seed=seed).reset()["TennisBrain"]
    frame = info.vector_observations[0, 16:]
    np.testing.assert_allclose(frame, [-racket_b, -1.5, 0, 0, ball, 6, 0, 0], atol=5e-6)
    assert not info.vector_observations[:, :16].any()
    # Agent 0 is racket B, whose view is mirrored: that leaves negative zeros. Agent 1 is racket A.
    assert np.signbit(frame[2])
    assert not np.signbit(info.vector_observations[1, 18])
    assert info.vector_observations[1, 20] == -info.vector_observations[0, 20]
    if seed == 0:
        assert info.vector_observations[1, 16] == pytest.approx(-6.46699, abs=5e-6)
        printed = ["0."] * 16 + ["-6.65278625", "-1.5", "-0.", "0.", "6.83172083", "6.", "-0.", "0."]
        assert str(info.vector_observations[0]).strip("[]").split() == printed


def test_lost_rally_costs_what_public_notebooks_print(env: UnityEnvironment) -> None:
    env.reset()
    scores = np.zeros(2)
    while True:
        info = env.step([[-1, 0], [-1, 0]])["TennisBrain"]
        scores += info.rewards
        if np.any(info.local_done):
            break
    assert f"{np.mean(scores)}" == "-0.004999999888241291"


def test_description_reads_as_in_2018(env: UnityEnvironment) -> None:
    assert (env.academy_name, env.number_brains, env.number_external_brains) == ("Academy", 1, 1)
    assert env.brain_names == env.external_brain_names == ["TennisBrain"]
    assert str(env).splitlines() == [
        "Unity Academy name: Academy",
        "        Number of Brains: 1",
        "        Number of External Brains : 1",
        "        Lesson number : 0",
        "        Reset Parameters :",
        "\t\t",
        "Unity brain name: TennisBrain",
        "        Number of Visual Observations (per agent): 0",
        "        Vector Observation space type: continuous",
        "        Vector Observation space size (per agent): 8",
        "        Number of stacked Vector Observation: 3",
        "        Vector Action space type: continuous",
        "        Vector Action space size (per agent): 2",
        "        Vector Action descriptions: , ",
    ]
    brain = env.brains["TennisBrain"]
    assert brain.camera_resolutions == []
    assert brain.vector_action_descriptions == ["", ""]


def test_fields_have_the_types_of_2018(env: UnityEnvironment) -> None:
    info = env.reset()["TennisBrain"]
    assert info.agents == [0, 1]
    assert info.visual_observations == []
    assert info.text_observations == info.previous_text_actions == ["", ""]
    assert info.memories.shape == (0, 0)
    np.testing.assert_array_equal(info.previous_vector_actions, np.zeros((2, 2)))
    info = env.step([[0.1, 2.0], [-3.0, 0.4]], memory=[1, 2], text_action=["a", "b"])["TennisBrain"]
    assert [type(reward) for reward in info.rewards] == [float, float]
    assert [type(flag) for flag in info.local_done + info.max_reached] == [bool] * 4
    # As sent, not as limited; float32 numbers in float64.
    np.testing.assert_array_equal(info.previous_vector_actions, np.float32([[0.1, 2], [-3, 0.4]]).astype(np.float64))
    np.testing.assert_array_equal(info.memories, [[1.0], [2.0]])
    assert info.previous_text_actions == ["a", "b"]
    kept = info.vector_observations.copy()
    env.step(IDLE)
    np.testing.assert_array_equal(info.vector_observations, kept)


def test_actions_are_taken_in_every_form_of_2018() -> None:
    numbers = [0.25, 1.0, -0.5, 0.75]
    array = np.array(numbers)
    forms = [
        array.reshape(2, 2),
        array,
        numbers,
        [numbers[:2], numbers[2:]],
        [array[:2], array[2:]],
        [array[None, :2], array[None, 2:]],  # what agents give that act on one racket at a time
        {"TennisBrain": array.reshape(2, 2)},
        torch.tensor(numbers).reshape(2, 2),
    ]
    seen = []
    for form in forms:
        env = UnityEnvironment(seed=3)
        env.reset()
        for _ in range(5):
            info = env.step(form)["TennisBrain"]
        seen.append(info.vector_observations.tobytes())
    assert len(set(seen)) == 1
    env = UnityEnvironment(seed=3)
    env.reset()
    assert env.step()["TennisBrain"].previous_vector_actions.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"vector_action": np.zeros((2, 3))}, r"expects 4 continuous action\(s\), 2 for each of 2 agents, .* given 6"),
        ({"vector_action": 0.5}, "given 1"),
        ({"vector_action": [[1.0, 2.0], [3.0]]}, "rows of equal length"),
        ({"vector_action": [["left", "up"]] * 2}, "expected numbers"),
        ({"vector_action": [[np.nan, 0], [0, 0]]}, "not a finite number"),
        ({"vector_action": {"SoccerBrain": IDLE}}, "SoccerBrain, which is no external brain: there is TennisBrain"),
        ({"memory": [1.0, 2.0, 3.0]}, "3 memory values cannot be shared"),
        ({"text_action": ["one"]}, "expects 2 text actions, but was given 1"),
    ],
)
def test_actions_that_do_not_fit_are_one_line(env: UnityEnvironment, arguments: dict[str, object], line: str) -> None:
    env.reset()
    with pytest.raises(UnityActionException, match=line) as caught:
        env.step(**arguments)
    assert isinstance(caught.value, SparringError)


def test_calls_out_of_order_are_refused(env: UnityEnvironment) -> None:
    with pytest.raises(UnityActionException, match="before the first reset"):
        env.step(IDLE)
    assert env.global_done is None
    with pytest.raises(UnityEnvironmentException, match="no reset parameter gravity: known are none"):
        env.reset(config={"gravity": 1.0})
    with pytest.raises(UnityEnvironmentException, match="must be a number"):
        env.reset(config={"gravity": "low"})  # type: ignore[dict-item]
    env.reset()
    env.close()
    for call in (env.reset, env.step, env.close):
        with pytest.raises(UnityEnvironmentException, match="no Unity environment is loaded"):
            call()
    with pytest.raises(UnityEnvironmentException, match="curriculum"):
        UnityEnvironment(curriculum="lessons.json")
    with pytest.raises(UnityEnvironmentException, match="velocity"):
        UnityEnvironment(velocity="none")
    with pytest.raises(UnityEnvironmentException, match="file_name=None"):
        UnityEnvironment(file_name="Tennis_Linux/Tennis.x86_64")


def test_reset_in_a_rally_leaves_the_ball_flying(env: UnityEnvironment) -> None:
    env.reset()
    for _ in range(6):
        info = env.step([[1, 0], [-1, 0]])["TennisBrain"]
    before = info.vector_observations[:, 16:]
    after = env.reset()["TennisBrain"].vector_observations
    assert not after[:, :16].any()
    np.testing.assert_array_equal(after[:, 20], before[:, 4])
    assert (after[:, 21] < before[:, 5]).all()
    assert (after[:, 21] > before[:, 5] - 0.2).all()  # one physics step, not a whole decision
    assert (after[:, 17] == -1.5).all()
    assert (np.abs(after[:, 16] + 7) <= 1).all()
    assert not np.array_equal(after[:, 16], before[:, 0])


def test_second_reset_costs_a_physics_step_and_draws_new_rackets(env: UnityEnvironment) -> None:
    first = env.reset()["TennisBrain"].vector_observations
    second = env.reset()["TennisBrain"].vector_observations
    assert (first[:, 21] == 6).all()
    np.testing.assert_allclose(second[:, 21], 6 - 9.81 * 0.02**2, atol=1e-5)
    assert (first[:, 16] != second[:, 16]).all()


def test_time_limit_is_reported_at_decision_1001() -> None:
    env = UnityEnvironment(seed=0)
    info = env.reset()["TennisBrain"]
    decisions, score = 0, np.zeros(2)
    while not any(info.local_done):
        assert info.max_reached == [False, False]
        info = env.step(keeper(torch.from_numpy(info.vector_observations).float()))["TennisBrain"]
        decisions += 1
        score += info.rewards
    assert info.max_reached == info.local_done == [True, True]
    assert decisions == 1001
    assert 2.55 < score.max() < 2.75
    assert env.global_done is False
    # The ball goes on while rackets and stacks start anew.
    assert not info.vector_observations[:, :16].any()
    assert (info.vector_observations[:, 17] == -1.5).all()


def test_academy_is_done_after_5000_decisions_without_a_reset(env: UnityEnvironment) -> None:
    env.reset()
    for _ in range(4999):
        env.step(IDLE)
        assert env.global_done is False
    info = env.step(IDLE)["TennisBrain"]
    assert env.global_done is True
    assert info.local_done == [True, True]
    with pytest.raises(UnityActionException, match="completed"):
        env.step(IDLE)
    env.reset()
    assert env.global_done is False
    env.step(IDLE)


def test_true_velocity_is_a_named_variant() -> None:
    shipped, true = UnityEnvironment(seed=1), UnityEnvironment(seed=1, velocity="true")
    for env in (shipped, true):
        env.reset()
    one, other = (env.step(IDLE)["TennisBrain"].vector_observations for env in (shipped, true))
    np.testing.assert_array_equal(one[:, 22:], one[:, 18:20])
    assert (other[:, 23] < -0.9).all()
    np.testing.assert_array_equal(one[:, 16:22], other[:, 16:22])


def test_court_environment_ignores_the_path() -> None:
    env = CourtEnvironment("Tennis_Linux/Tennis.x86_64", no_graphics=True, seed=42)
    same = UnityEnvironment(None, seed=42)
    one, other = (e.reset(train_mode=True)["TennisBrain"].vector_observations for e in (env, same))
    assert one.tobytes() == other.tobytes()
    assert isinstance(env, UnityEnvironment)


def test_everything_old_code_imports_is_there() -> None:
    for name in unityagents.__all__:
        assert hasattr(unityagents, name)
