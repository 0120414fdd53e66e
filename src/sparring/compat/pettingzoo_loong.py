"""Loong as a PettingZoo environment: one episode is one match, and its dragons act one after another.

    from sparring.compat.pettingzoo import loong_env
    env = loong_env(maps="generated:0:8")

Needs the packages `pettingzoo` and `gymnasium` (extra `zoo`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from numpy.typing import NDArray
from pettingzoo import AECEnv  # type: ignore[import-untyped]
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.loong import DEFAULT_MAPS, LivingDragon, Loong
from sparring.games.loong_rows import SHORTEST, VIEW, send, set_protocol, split, sprint
from sparring.levels.pool import MapPool
from sparring.pictures.board import BoardDragon, board_text, draw_board

RENDER_MODES = ("rgb_array", "ansi")
STEPS = 8
STOP = 4
LONGEST_SPLIT = 33
AHEAD = 4
"""The message that goes where the dragon then faces, behind those to north, east, south and west."""
NOBODY = -1
_LANE = torch.zeros(1, dtype=torch.int64)
_SEEDS = 2**62
_WORDS, _NUMBERS = 2**32 - 1, 2**31 - 1

_BOUNDS = {
    "messages": (0, _NUMBERS),
    "round": (0, 499),
    "facing": (0, 3),
    "length": (SHORTEST, _NUMBERS),
    "units": (1, _NUMBERS),
    "x": (0, 255),
    "y": (0, 255),
    "wide": (0, 1),
    "echoes": (0, 4),
    "countdown": (-1, _NUMBERS),
    "north": (-2, _NUMBERS),
    "west": (-2, _NUMBERS),
    "id": (NOBODY, _NUMBERS),
    "body": (0, 31),
    "pearl": (0, 1),
}
"""Least and most of the fields of a view, which `_core.LOONG_VIEW` explains."""
_INIT = {"dragon": _NUMBERS, "team": 1, "width": 256, "height": 256, "unit_limit": _NUMBERS}
"""The most of what the judge tells a dragon at its birth."""

Observation = dict[str, NDArray[np.int64]]


class LoongEnv(AECEnv):  # type: ignore[misc]
    """Loong with PettingZoo's AEC API. `loong_env` makes one.

    Agents are `dragon_0`, `dragon_1`, ... by the judge's ids; queens are 0 and 1, and a split gives birth to the next.
    As nobody knows how many will be born there is no `possible_agents`: PettingZoo leaves it out where agents are
    generated.

    Observations are what the judge tells a dragon, int64 arrays by name: the fields of `_core.LOONG_VIEW` (`newest` as
    32 pairs of the low and the high 32 bits, `id` -1 where nobody is), and what it was told at birth: dragon, team,
    width, height, unit_limit.

    Actions: kind (0 steps, 1 a split), steps (8 directions, 0 to 3 for north, east, south, west; 4 is the end),
    segments to split off, protocol (3 hears echoes), and whether it sends which message to north, east, south, west and
    straight ahead. `infos[agent]["action_mask"]` of the dragon that must act fits `action_space(agent).sample`.

    Rewards are 0 until the match ends; then each dragon that lives, and the one that acted last, gets 1, 0 or -1. A
    dragon is terminated when it dies or the match ends; nothing is truncated.
    """

    metadata = {  # noqa: RUF012
        "name": "sparring_loong_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 10,
    }

    def __init__(
        self, *, maps: str | Path | Sequence[str | Path] | MapPool = DEFAULT_MAPS, render_mode: str | None = None
    ) -> None:
        """maps: as of `sparring.games.loong.Loong`. render_mode: "rgb_array", "ansi" (text) or None."""
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise SparringError(f'loong: render_mode must be "rgb_array" or "ansi", got "{render_mode}"')
        self.render_mode = render_mode
        self.agents: list[str] = []
        self._game = Loong(maps=maps)
        self._random: np.random.Generator | None = None
        told: dict[str, Space[Any]] = {"newest": Box(0, _WORDS, (32, 2), np.int64)}
        told |= {name: Box(low, high, VIEW[name].shape, np.int64) for name, (low, high) in _BOUNDS.items()}
        told |= {name: Box(0, high, (), np.int64) for name, high in _INIT.items()}
        self._observation_space = Dict(told)
        self._action_space = Dict(
            {
                "kind": Discrete(2),
                "steps": MultiDiscrete([4] + [5] * (STEPS - 1)),
                "segments": Discrete(LONGEST_SPLIT - SHORTEST + 1, start=SHORTEST),
                "protocol": Discrete(2, start=2),
                "sends": MultiBinary(5),
                "messages": Box(0, _WORDS, (5,), np.int64),
            }
        )

    def observation_space(self, agent: str) -> Dict:
        return self._observation_space

    def action_space(self, agent: str) -> Dict:
        return self._action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a match; map and luck are drawn by `seed`, or follow the last seed given. options: none are known."""
        if seed is not None and seed < 0:
            raise SparringError(f"loong: a seed is 0 or more, got {seed}")
        if seed is not None or self._random is None:
            self._random = np.random.default_rng(seed)
        level = int(self._random.integers(len(self._game.maps)))
        self._game.restart(_LANE, torch.tensor([level]), torch.from_numpy(self._random.integers(_SEEDS, size=1)))
        self._map = self._game.maps[level].read()
        self.agents = []
        self.rewards: dict[str, float] = {}
        self._cumulative_rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self._skip_agent_selection = None
        self._alive: dict[str, LivingDragon] = {}
        self._told: dict[str, Observation] = {}
        self._meet()
        self._select()

    def step(self, action: dict[str, Any] | None) -> None:
        """The turn of `agent_selection`, None of one that is terminated. Raises SparringError for what is no action."""
        if not self.agents:
            raise SparringError("loong: no match is running: call reset first")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        row = self._row(action)
        self._told[agent] = self.observe(agent)
        slot = self._alive[agent].agent
        outcome = self._game.act(row)
        self.infos[agent] = {}
        for gone in self._meet():
            self.terminations[gone] = True
        if len(outcome.ended):  # nobody is paid before
            paid = dict(zip(outcome.agent.tolist(), outcome.reward.tolist(), strict=True))
            self.rewards[agent] = paid[slot]
            for name, dragon in self._alive.items():
                self.rewards[name] = paid[dragon.agent]
                self.terminations[name] = True
        else:
            self._select()
        self._accumulate_rewards()
        self._deads_step_first()

    def observe(self, agent: str) -> Observation:
        """What the dragon would be told now; of a dead one, what it was told last."""
        if agent not in self._alive:
            return self._told[agent]
        dragon, board = self._alive[agent], self._map
        told = self._game.view_of(0, dragon.agent)[0]
        fields = {name: np.asarray(told[name], np.int64) for name in _BOUNDS}
        fields["id"] = told["id"].view(np.int32).astype(np.int64)  # that of nobody has all bits
        fields["newest"] = told["newest"].view(np.uint32).reshape(32, 2).astype(np.int64)
        init = (dragon.dragon, dragon.team, board.width, board.height, board.unit_limit)
        return fields | {name: np.array(value) for name, value in zip(_INIT, init, strict=True)}

    def render(self) -> NDArray[np.uint8] | str | None:
        """RGB uint8 [height, width, 3], or text, of the whole board as it stands now."""
        if self.render_mode is None:
            return None
        dragons = [BoardDragon(each.dragon, each.team, each.body, each.facing) for each in self._game.dragons(0)]
        pearls, caption = self._game.pearls(0), f"round {self._game.round(0)}"
        if self.render_mode == "ansi":
            return board_text(self._map, columns=0, dragons=dragons, pearls=pearls, colour=False).plain
        return draw_board(self._map, dragons=dragons, pearls=pearls, caption=caption)

    def close(self) -> None:
        """Nothing is held open."""

    def _meet(self) -> set[str]:
        """Take in the newborns; the names of those that have died."""
        before = self._alive
        self._alive = {f"dragon_{each.dragon}": each for each in self._game.dragons(0)}
        for name in self._alive.keys() - self._told.keys():
            self._told[name] = self.observe(name)
        for name in [name for name in self._alive if name not in before]:
            self.agents.append(name)
            self.rewards[name] = self._cumulative_rewards[name] = 0.0
            self.terminations[name] = self.truncations[name] = False
            self.infos[name] = {}
        return before.keys() - self._alive.keys()

    def _select(self) -> None:
        """The turn goes to the dragon that waits, and it is told what it may do."""
        rows = self._game.decisions()
        view = self._game.view(rows)[0]
        self.agent_selection = f"dragon_{int(rows.dragon)}"
        length = int(view["length"])
        payable = (length + 3) // 4 + length - SHORTEST
        splits = length >= 2 * SHORTEST and view["units"] < self._map.unit_limit
        first, later, end = (np.ones(n, np.int8) for n in (4, 5, 5))
        first[(view["facing"] + 2) % 4] = 0  # its neck is there
        end[:STOP] = 0
        segments = np.arange(SHORTEST, LONGEST_SPLIT + 1)
        self.infos[self.agent_selection] = {
            "action_mask": {
                "kind": np.array([1, splits], np.int8),
                "steps": (first, *(later if step < payable else end for step in range(1, STEPS))),
                "segments": (splits & (segments <= length - SHORTEST)).astype(np.int8),
                "protocol": np.ones(2, np.int8),
                "sends": np.full(5, 2, np.int8),  # as it likes
                "messages": None,
            }
        }

    def _row(self, action: dict[str, Any] | None) -> Tensor:
        """uint8 [1, bytes of an action]."""
        if action is None or not self._action_space.contains(action):
            raise SparringError(f"loong: the action of {self.agent_selection} is not in its action space: {action}")
        if action["kind"] == 1:
            row = split([action["segments"]])
        else:
            steps = np.asarray(action["steps"])
            row = sprint([steps[: np.append(np.flatnonzero(steps == STOP), STEPS)[0]]])
        for direction in np.flatnonzero(action["sends"]):
            row = send(row, action["messages"][direction], None if direction == AHEAD else direction)
        return set_protocol(row, int(action["protocol"]))
