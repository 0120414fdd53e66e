"""Small PettingZoo environments for tests: agents of different kinds that are born, die and are cut off."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "ant": spaces.Box(-2.0, 2.0, (2, 2), np.float32),
    "bee": spaces.Discrete(3),
    "cat": spaces.Dict({"place": spaces.Box(-1.0, 1.0, (1,), np.float32), "kind": spaces.MultiBinary(2)}),
}
ACTIONS: dict[str, spaces.Space[Any]] = {
    "ant": spaces.Box(np.array([0.0, -4.0], dtype=np.float32), np.array([1.0, 4.0], dtype=np.float32)),
    "bee": spaces.Discrete(3, start=5),
    "cat": spaces.MultiDiscrete([2, 2]),
}


class Meadow(ParallelEnv):
    """The bee dies after decision 2; the cat is born after 3 and cut off after 5; the ant is cut off after 6.

    Everybody is paid 1 a decision, and keeps what it was given as its actions in `played`.
    """

    metadata = {"name": "meadow"}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["ant", "bee", "cat"]
        self.observation_spaces, self.action_spaces = OBSERVATIONS, ACTIONS

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return OBSERVATIONS[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return ACTIONS[agent]

    def _see(self, names: list[str]) -> dict[str, Any]:
        at = np.float32(self.start + self.turn / 10)
        sights: dict[str, Any] = {
            "ant": np.full((2, 2), at, np.float32),
            "bee": self.turn % 3,
            "cat": {"place": np.array([at], np.float32), "kind": np.array([0, 1], np.int8)},
        }
        return {name: sights[name] for name in names}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.start = np.random.default_rng(seed).uniform(-0.4, 0.4)
        self.turn = 0
        self.played: list[dict[str, Any]] = []
        self.agents = ["ant", "bee"]
        return self._see(self.agents), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        assert sorted(actions) == sorted(self.agents)
        assert all(ACTIONS[name].contains(action) for name, action in actions.items()), actions
        self.played.append(actions)
        self.turn += 1
        here = list(self.agents)
        dead = {name: name == "bee" and self.turn == 2 for name in here}
        cut = {name: (name, self.turn) in (("cat", 5), ("ant", 6)) for name in here}
        self.agents = [name for name in here if not dead[name] and not cut[name]]
        if self.turn == 3:
            self.agents.append("cat")
        seen = self._see(list(dict.fromkeys([*here, *self.agents])))
        return seen, dict.fromkeys(here, 1.0), dead, cut, {name: {} for name in here}


class Relay(AECEnv):
    """Three runners take turns; whoever has run twice leaves, the last pays everybody who is still there."""

    metadata = {"name": "relay"}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["one", "two", "three"]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Dict({"observation": spaces.Box(0, 9, (2,)), "action_mask": spaces.MultiBinary(3)})

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(3)

    def observe(self, agent: str) -> Any:
        """Choice number `runs` is forbidden."""
        mask = np.array([self.runs[agent] != choice for choice in range(3)], np.int8)
        return {"observation": np.array([self.luck, self.runs[agent]], np.float32), "action_mask": mask}

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.luck = np.random.default_rng(seed).uniform(0, 5)
        self.agents = list(self.possible_agents)
        self.runs = dict.fromkeys(self.agents, 0)
        self.rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {name: {} for name in self.agents}
        self.agent_selection = "one"

    def step(self, action: Any) -> None:
        name = self.agent_selection
        if self.terminations[name] or self.truncations[name]:
            self._was_dead_step(action)
            return
        assert action != self.runs[name], "the mask was not kept"
        self.runs[name] += 1
        self._clear_rewards()
        if self.runs[name] == 2:
            self.terminations[name] = name == "one"
            self.truncations[name] = name != "one"
            self.rewards = {other: 1.0 + (other == name) for other in self.agents}
        self._accumulate_rewards()
        alive = [other for other in self.agents if self.runs[other] < 2]
        if alive:
            self.agent_selection = min(alive, key=lambda other: (self.runs[other], self.possible_agents.index(other)))
        self._deads_step_first()
