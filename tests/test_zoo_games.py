"""PettingZoo environments as games: who acts when, what ends for whom, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from mpe2 import simple_tag_v3
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3
from pettingzoo.utils.conversions import aec_to_parallel
from toy_zoo import ACTIONS, OBSERVATIONS, Meadow, Relay

import sparring
from sparring.compat.pettingzoo import parallel_env
from sparring.errors import SparringError
from sparring.games.api import AgentSpace, Box, Discrete
from sparring.games.checker import check_game
from sparring.games.pettingzoo import PettingZoo, mpe, pettingzoo
from sparring.games.replaying import choose


@pytest.mark.parametrize(
    ("factory", "options"),
    [
        (pettingzoo(Meadow), {"rebirth": True}),
        (pettingzoo(Relay), {}),
        (pettingzoo(parallel_env), {"decisions": 40}),
        (pettingzoo(tictactoe_v3.env), {"random_start": False}),
        (pettingzoo(connect_four_v3.env), {"random_start": False, "decisions": 45}),
        (pettingzoo(rps_v2.env), {"random_start": False}),
        (partial(mpe, scenario="simple_tag_v3", max_cycles=5), {"limit": 5}),
        (partial(mpe, scenario="simple_speaker_listener_v4", continuous=True, max_cycles=5), {"limit": 5}),
    ],
    ids=["meadow", "relay", "tennis", "tictactoe", "connect_four", "rps", "tag", "speaker_listener"],
)
def test_environments_are_sound_games(factory: Any, options: dict[str, Any]) -> None:
    assert {"state", "ends", "restart"} <= set(check_game(factory, **{"lanes": 2, "decisions": 20} | options))


def test_agents_are_born_die_and_are_cut_off() -> None:
    """Of one match: who acts, who is told of as parted or last, and with what."""
    game = PettingZoo(Meadow, lanes=2, seed=1)
    acting, parted = [], []
    for turn in range(1, 7):
        rows = game.decisions()
        acting.append([game.names[agent] for agent in rows.agent[rows.lane == 1].tolist()])
        outcome = game.act(torch.zeros(len(rows), 4))
        assert outcome.reward.tolist() == [1.0] * len(rows)
        if outcome.parted is not None:
            parted.append((turn, outcome.parted.agent.tolist(), outcome.parted.decision.tolist()))
    assert acting == [["ant", "bee"], ["ant", "bee"], ["ant"], ["ant", "cat"], ["ant", "cat"], ["ant"]]
    assert parted == [(5, [2, 2], [2, 2])], "the bee died, which is no limit; the ant's end is the match's"
    assert outcome.ended.tolist() == [0, 1]
    assert outcome.truncated.tolist() == [True, True]
    assert outcome.last.agent.tolist() == [0, 0]
    assert outcome.score.tolist() == [[6.0, 2.0, 2.0]] * 2
    assert outcome.length.tolist() == [6, 6]


def test_each_agent_keeps_its_own_spaces() -> None:
    game = PettingZoo(Meadow, lanes=1, seed=1)
    assert game.agent_spaces == (
        AgentSpace(observation=4, action=Box(shape=(2,), low=-1.0, high=1.0)),
        AgentSpace(observation=3, action=Discrete(n=3)),
        AgentSpace(observation=3, action=Discrete(n=4)),
    )
    assert game.observation == Box(shape=(4,), low=-2.0, high=2.0)
    assert game.action == Box(shape=(4,), low=-1.0, high=1.0)
    assert game.decisions().obs[1].tolist() == [1.0, 0.0, 0.0, 0.0], "turn 0 of 3 as a bee sees it, and padding"
    for _ in range(4):
        action = torch.tensor([[-1.0, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 9.0]])[: len(game.decisions())]
        game.act(action)
    played = game._worlds[0].env.played
    np.testing.assert_array_equal(played[0]["ant"], np.array([0.0, 2.0], np.float32))
    assert played[0]["bee"] == 7, "the largest of its three numbers, counted from 5; the fourth is not its own"
    assert played[3]["cat"].tolist() == [1, 1], "choice 3 of 2 times 2"


def test_choices_of_fewer_are_masked() -> None:
    game = mpe(scenario="simple_speaker_listener_v4", lanes=1)
    assert game.action == Discrete(n=5)
    rows = game.decisions()
    assert rows.mask is not None
    assert rows.mask.tolist() == [[True, True, True, False, False], [True] * 5]
    with pytest.raises(SparringError, match=r"^mpe: lane 0, speaker_0: a choice that its mask forbids: 3$"):
        game.act(torch.tensor([3, 0]))


def test_takers_of_turns_wait_alone_and_are_paid_when_others_act() -> None:
    game = PettingZoo(Relay, lanes=1, seed=0)
    order, paid = [], []
    while True:
        rows = game.decisions()
        assert rows.mask is not None
        assert rows.mask[0, int(rows.decision)] == 0
        order.append(game.names[int(rows.agent)])
        outcome = game.act(choose(game, rows))
        paid.append(dict(zip(outcome.agent.tolist(), outcome.reward.tolist(), strict=True)))
        if len(outcome.ended):
            break
    assert order == ["one", "two", "three"] * 2
    assert paid == [{0: 0.0}, {1: 0.0}, {2: 0.0}, {0: 2.0, 1: 1.0, 2: 1.0}, {1: 2.0, 2: 1.0}, {2: 2.0}]
    assert outcome.score.tolist() == [[2.0, 3.0, 4.0]]
    assert outcome.truncated.tolist() == [True]
    assert outcome.last.agent.tolist() == [2]


def unfit(observation: Any = OBSERVATIONS["ant"], action: Any = ACTIONS["bee"]) -> Any:
    class Unfit(Meadow):
        def observation_space(self, agent: str) -> Any:
            return observation

        def action_space(self, agent: str) -> Any:
            return action

    return Unfit


def nameless() -> Any:
    env = Meadow()
    env.possible_agents = []
    return env


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (
            unfit(action=spaces.Box(-np.inf, np.inf, (2,))),
            r"meadow: actions of ant are Box\(-inf.*: their bounds must be finite, as learners act in \[-1, 1\]$",
        ),
        (unfit(action=spaces.Box(0, 9, (2,), np.int64)), r"give fractions, or choices as Discrete or MultiDiscrete$"),
        (unfit(action=spaces.Text(3)), r"give a Box of numbers, a Discrete, or a MultiDiscrete of one axis from 0$"),
        (unfit(action=spaces.MultiDiscrete([70, 70])), r"4,900 combinations, more than 4,096$"),
        (
            unfit(observation=spaces.Sequence(spaces.Discrete(2))),
            r"meadow: observations of ant are Sequence.*: they have no fixed number of numbers; give a Box",
        ),
        (nameless, r"meadow: the environment has no possible_agents"),
        (dict, r"dict is no PettingZoo environment: make must return a ParallelEnv or AECEnv$"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason(make: Any, line: str) -> None:
    with pytest.raises(SparringError, match=line):
        PettingZoo(make, lanes=1)


def test_an_environment_with_luck_of_its_own_is_found_out_on_resume() -> None:
    births = iter([3, 2])

    class Fickle(Meadow):
        def step(self, actions: dict[str, Any]) -> Any:
            if self.turn == 0:
                self.dies = next(births)
            seen = super().step(actions)
            if self.turn == self.dies - 1:
                self.agents = ["ant"]
            return seen

    game = PettingZoo(Fickle, lanes=1)
    game.act(torch.zeros(2, 4))
    game.act(torch.zeros(len(game.decisions()), 4))
    with pytest.raises(SparringError, match=r"all its luck must come from that seed$"):
        game.load_state(game.state())


def test_a_step_of_all_is_pettingzoos_own_conversion() -> None:
    def make() -> Any:
        return simple_tag_v3.raw_env(continuous_actions=True, max_cycles=6)

    game, env = PettingZoo(make, lanes=1), aec_to_parallel(make())
    seen, _ = env.reset(seed=7)
    game.restart(torch.tensor([0]), torch.tensor([7]))
    draw = np.random.default_rng(0)
    for turn in range(6):
        shown = game.decisions().obs
        for row, (name, observation) in enumerate(seen.items()):
            assert shown[row, : len(observation)].tolist() == observation.tolist(), (turn, name)
        actions = draw.choice([-1.0, 0.0, 1.0], size=(4, 5)).astype(np.float32)  # 0, 0.5 and 1 there
        outcome = game.act(torch.from_numpy(actions))
        given = {name: (actions[row] + 1) / 2 for row, name in enumerate(game.names)}
        seen, rewards, _, truncated, _ = env.step(given)
        assert outcome.reward.tolist() == [float(np.float32(rewards[name])) for name in game.names]
        assert (len(outcome.ended) == 1) == all(truncated.values()) == (turn == 5)


def test_turns_that_cannot_be_taken_at_once_are_refused() -> None:
    class Claims(Relay):
        metadata = {"name": "relay", "is_parallelizable": True}  # noqa: RUF012

    game = PettingZoo(Claims, lanes=1)
    game.act(torch.ones(3, dtype=torch.int64))
    with pytest.raises(SparringError, match=r"^Claims says is_parallelizable, but it is the turn of one, not of two"):
        game.act(torch.zeros(3, dtype=torch.int64))


def test_the_factory_serves_make_and_names_teams() -> None:
    game = sparring.make(pettingzoo(Meadow, name="field", teams={"ant": 0, "bee": 1, "cat": 0}), lanes=3)
    assert (game.name, game.teams, game.decisions().team.tolist()) == ("field", 2, [0, 1] * 3)
    with pytest.raises(SparringError, match=r"^meadow: teams: cat has none: give one for each of ant, bee, cat$"):
        PettingZoo(Meadow, teams={"ant": 0, "bee": 1})
