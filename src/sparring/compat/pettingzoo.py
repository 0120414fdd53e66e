"""Tennis as a PettingZoo environment: one episode is one rally, both rackets act at once. And Loong: one match.

    from sparring.compat.pettingzoo import loong_env, parallel_env
    env = parallel_env()

Needs the packages `pettingzoo` and `gymnasium` (extra `zoo`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv  # type: ignore[import-untyped]
from pettingzoo.utils.conversions import parallel_to_aec  # type: ignore[import-untyped]
from pettingzoo.utils.wrappers import OrderEnforcingWrapper  # type: ignore[import-untyped]

from sparring import _core
from sparring.errors import SparringError
from sparring.games.tennis import OBSERVATION

RACKETS = ("racket_b", "racket_a")
"""In the order of the 2018 API: index 0 is racket B on the right, which sees the court mirrored."""
_LANE = np.zeros(1, dtype=np.int64)
_SEEDS = 2**32

Observations = dict[str, NDArray[np.float32]]


def env(**options: Any) -> AECEnv:
    """`parallel_env`, and its options, with the rackets taking turns as PettingZoo's AEC tools want it."""
    return OrderEnforcingWrapper(parallel_to_aec(parallel_env(**options)))


def loong_env(**options: Any) -> AECEnv:
    """Loong, one dragon after another; options as of `sparring.compat.pettingzoo_loong.LoongEnv`."""
    from sparring.compat.pettingzoo_loong import LoongEnv  # imported here, so that Tennis does not wait for it

    return OrderEnforcingWrapper(LoongEnv(**options))


class parallel_env(ParallelEnv):  # type: ignore[misc]
    """Tennis with PettingZoo's parallel API.

    velocity:   "as-shipped" or "true", see `sparring.games.tennis.TennisOptions`
    max_cycles: decisions (0.1 s each) after which a rally is truncated, at most the court's own limit of 1,001

    Observations float32 [24], actions float32 [2] in [-1, 1] (run, positive towards the net; jump, above 0.5), rewards
    as in the 2018 binary. A rally that the rules end is terminated, one that a limit cuts is truncated; either way the
    observation returned is the rally's own last one. The official score is the better racket's sum of rewards.

    `reset(seed=s)` starts the scene that the binary starts with seed s; `reset()` draws the next scene's seed from the
    last one given, or from the system's entropy.
    """

    metadata = {"name": "sparring_tennis_v0", "render_modes": [], "is_parallelizable": True}  # noqa: RUF012

    def __init__(self, *, velocity: str = "as-shipped", max_cycles: int | None = None) -> None:
        if velocity not in ("as-shipped", "true"):
            raise SparringError(f'tennis: velocity must be "as-shipped" or "true", got "{velocity}"')
        if max_cycles is not None and max_cycles < 1:
            raise SparringError(f"tennis: max_cycles must be 1 or more, got {max_cycles}")
        self.possible_agents = list(RACKETS)
        self.agents: list[str] = []
        self.render_mode = None
        self.max_cycles = max_cycles
        self.observation_spaces = {name: Box(-np.inf, np.inf, (OBSERVATION,), np.float32) for name in RACKETS}
        self.action_spaces = {name: Box(-1.0, 1.0, (2,), np.float32) for name in RACKETS}
        self._courts = _core.TennisCourts(1, true_velocity=velocity == "true")
        self._random: np.random.Generator | None = None

    def observation_space(self, agent: str) -> Box:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """seed: 0 to 2^32 - 1. options: none are known. Raises SparringError for another seed."""
        if seed is not None and not 0 <= seed < _SEEDS:
            raise SparringError(f"tennis: a seed is 0 to {_SEEDS - 1}, got {seed}")
        if seed is not None or self._random is None:
            self._random = np.random.default_rng(seed)
        scene = int(self._random.integers(_SEEDS)) if seed is None else seed
        self._courts.seed(_LANE, np.array([scene], dtype=np.uint32))
        self.agents = list(RACKETS)
        self._cycles = 0
        return self._by_racket(self._courts.observations), {name: {} for name in RACKETS}

    def step(
        self, actions: dict[str, NDArray[np.float32]]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """actions: one per racket. Raises SparringError after the rally's end and for a missing or unfit action."""
        if not self.agents:
            raise SparringError("tennis: no rally is running: call reset first")
        self._courts.step(self._joint(actions))
        self._cycles += 1
        ended = bool(self._courts.done[0])
        cut = bool(self._courts.max_reached[0])
        shown = self._courts.last_observations if ended else self._courts.observations
        terminated = ended and not cut
        truncated = cut or (not ended and self._cycles == self.max_cycles)
        rewards = self._courts.rewards[0].tolist()
        if terminated or truncated:
            self.agents = []
        return (
            self._by_racket(shown),
            dict(zip(RACKETS, rewards, strict=True)),
            dict.fromkeys(RACKETS, terminated),
            dict.fromkeys(RACKETS, truncated),
            {name: {} for name in RACKETS},
        )

    def render(self) -> None:
        """Draws nothing: `sparring play` shows rallies."""

    def close(self) -> None:
        """Nothing is held open."""

    def _joint(self, actions: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """float32 [1, 2, 2]."""
        joint = np.empty((1, 2, 2), dtype=np.float32)
        for index, name in enumerate(RACKETS):
            if name not in actions:
                raise SparringError(f"tennis: no action for {name}: both rackets act in every step")
            action = np.asarray(actions[name], dtype=np.float32)
            if action.shape != (2,) or not np.isfinite(action).all():
                raise SparringError(f"tennis: the action of {name} must be 2 finite numbers, got {actions[name]}")
            joint[0, index] = action
        return joint

    @staticmethod
    def _by_racket(observations: NDArray[np.float32]) -> Observations:
        return {name: observations[0, index].copy() for index, name in enumerate(RACKETS)}
