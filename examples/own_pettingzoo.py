"""A PettingZoo game of your own, trained by self-play DDPG, by MADDPG and by PPO, one command each.

    sparring train own-ddpg --own examples/own_pettingzoo.py:Plank
    sparring train own-maddpg --own examples/own_pettingzoo.py:Plank
    sparring train own-ppo --own examples/own_pettingzoo.py:Plank
    sparring evaluate own-maddpg --own examples/own_pettingzoo.py:Plank
    sparring play own-maddpg --own examples/own_pettingzoo.py:Plank

    python examples/own_pettingzoo.py [DECISIONS]      # the same from Python, briefly

Plank: two carriers on a line hold a plank of length 1 and bring its middle to a goal that both see. Any ParallelEnv or
AECEnv will do; agents may see and do different things (DDPG and PPO, which give all one actor, need them alike).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

import sparring
from sparring.games.checker import check_game
from sparring.games.pettingzoo import pettingzoo

LENGTH = 15
"""Decisions of a match."""
STRIDE = 0.2
"""How far a full action carries."""


class Plank(ParallelEnv):
    """Each carrier sees where it stands, where the other stands and where the goal is, and walks -1 to 1."""

    metadata = {"name": "plank"}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["left", "right"]
        self.agents: list[str] = []
        self.observation_spaces = {name: spaces.Box(-9.0, 9.0, (3,), np.float32) for name in self.possible_agents}
        self.action_spaces = {name: spaces.Box(-1.0, 1.0, (1,), np.float32) for name in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """All luck comes from the seed: a run that was interrupted is continued by playing its matches again."""
        random = np.random.default_rng(seed)
        self.place = random.uniform(-1.0, 1.0, 2)
        self.goal = random.uniform(-1.0, 1.0)
        self.turn = 0
        self.agents = list(self.possible_agents)
        return self._see(), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        walk = np.array([actions[name][0] for name in self.possible_agents])
        self.place += STRIDE * np.clip(walk, -1.0, 1.0)
        self.turn += 1
        stretched = abs(abs(self.place[0] - self.place[1]) - 1.0)
        away = abs(self.place.mean() - self.goal)
        over = self.turn == LENGTH
        self.agents = [] if over else self.agents
        names = self.possible_agents
        # A time limit is a truncation: the learner knows that the plank would have been carried on.
        return (
            self._see(),
            dict.fromkeys(names, float(-stretched - away)),
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            {name: {} for name in names},
        )

    def render(self) -> Any:
        """The line from -3 to 3 with carriers, plank and goal: RGB, for `sparring play`."""
        picture = np.full((40, 300, 3), 255, np.uint8)
        left, right, goal = (int(np.clip(150 + 50 * place, 3, 296)) for place in (*self.place, self.goal))
        picture[17:23, min(left, right) : max(left, right)] = (170, 170, 170)
        for column, colour in ((goal, (220, 60, 60)), (left, (40, 90, 200)), (right, (40, 160, 90))):
            picture[8:32, column - 3 : column + 3] = colour
        return picture

    def _see(self) -> dict[str, Any]:
        own = dict(zip(self.possible_agents, self.place, strict=True))
        other = dict(zip(self.possible_agents, self.place[::-1], strict=True))
        return {name: np.array([own[name], other[name], self.goal], np.float32) for name in self.possible_agents}


def main(decisions: int = 20_000) -> None:
    game = pettingzoo(Plank, teams={"left": 0, "right": 0})
    print("checks passed:", ", ".join(check_game(game, lanes=2, decisions=40, limit=LENGTH)))
    for method in ("ddpg", "maddpg", "ppo"):
        result = sparring.train(f"own-{method}", game=game, decisions=decisions)
        found = sparring.evaluate(result.run, game=game)
        print(f"{method}: {found.score:.2f} a match of {LENGTH} decisions without noise")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
