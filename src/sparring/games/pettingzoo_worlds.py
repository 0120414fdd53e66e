"""One PettingZoo environment behind one face: who must act when, and what its spaces are in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv, ParallelEnv  # type: ignore[import-untyped]
from pettingzoo.utils.conversions import (  # type: ignore[import-untyped]
    aec_to_parallel,
    aec_to_parallel_wrapper,
)

from sparring.errors import SparringError
from sparring.games.api import Box, Discrete

_MOST_CHOICES = 4096
"""Of one agent; a MultiDiscrete counts all its combinations."""


@dataclass(frozen=True, kw_only=True)
class Eyes:
    """How an agent's observations become numbers."""

    space: spaces.Space[Any]
    size: int
    low: float
    high: float
    masked: bool
    """An observation is {"observation": ..., "action_mask": ...}."""
    plain: bool
    """It is an array, and only its shape and type may differ."""

    @classmethod
    def of(cls, game: str, agent: str, space: spaces.Space[Any]) -> Eyes:
        masked = isinstance(space, spaces.Dict) and {"observation", "action_mask"} == set(space.spaces)
        if masked:
            assert isinstance(space, spaces.Dict)
            space = space["observation"]
        if not space.is_np_flattenable:
            raise SparringError(
                f"{game}: observations of {agent} are {space}: they have no fixed number of numbers; "
                "give a Box, Discrete, MultiBinary, MultiDiscrete, or Dict and Tuple of these"
            )
        flat = spaces.flatten_space(space)
        low, high = 0.0, 1.0
        if isinstance(flat, spaces.Box) and flat.shape[0]:
            low, high = float(np.float32(flat.low.min())), float(np.float32(flat.high.max()))
        plain = isinstance(space, spaces.Box)
        return cls(space=space, size=spaces.flatdim(space), low=low, high=high, masked=masked, plain=plain)

    def flat(self, observation: Any) -> NDArray[Any]:
        if self.masked:
            observation = observation["observation"]
        return (
            np.asarray(observation).reshape(-1) if self.plain else np.asarray(spaces.flatten(self.space, observation))
        )


@dataclass(frozen=True, kw_only=True)
class Hands:
    """How numbers become an agent's actions."""

    choices: int
    """0 for numbers."""
    size: int
    """Numbers that an action takes in a game where some give numbers."""
    played: Callable[[NDArray[Any]], Any]
    space: Box | Discrete

    @classmethod
    def of(cls, game: str, agent: str, space: spaces.Space[Any]) -> Hands:
        refused = f"{game}: actions of {agent} are {space}"
        if isinstance(space, spaces.Box):
            if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
                raise SparringError(f"{refused}: their bounds must be finite, as learners act in [-1, 1]")
            if not np.issubdtype(space.dtype, np.floating):
                raise SparringError(f"{refused}: give fractions, or choices as Discrete or MultiDiscrete")
            size = math.prod(space.shape)
            return cls(choices=0, size=size, played=_scaled(space), space=Box(shape=(size,), low=-1.0, high=1.0))
        if isinstance(space, spaces.Discrete):
            sizes, start = [int(space.n)], int(space.start)
        elif isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 and not space.start.any():
            sizes, start = space.nvec.tolist(), 0
        else:
            raise SparringError(f"{refused}: give a Box of numbers, a Discrete, or a MultiDiscrete of one axis from 0")
        choices = math.prod(sizes)
        if choices > _MOST_CHOICES:
            raise SparringError(f"{refused}: {choices:,} combinations, more than {_MOST_CHOICES:,}")

        def played(action: NDArray[Any]) -> Any:
            choice = int(action) if action.ndim == 0 else int(action[:choices].argmax())
            if isinstance(space, spaces.Discrete):
                return start + choice
            return np.array(np.unravel_index(choice, sizes), dtype=space.dtype)

        return cls(choices=choices, size=choices, played=played, space=Discrete(n=choices))


def _scaled(space: spaces.Box) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """From [-1, 1] to the bounds of the space."""
    low, half = space.low.astype(np.float64).ravel(), (space.high.astype(np.float64) - space.low).ravel() / 2
    size, shape, dtype = low.size, space.shape, space.dtype

    def played(action: NDArray[Any]) -> NDArray[Any]:
        scaled: NDArray[Any] = low + half * (np.clip(action[:size], -1.0, 1.0) + 1.0)
        return scaled.astype(dtype).reshape(shape)

    return played


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a step of one environment brought.

    seen:    what those saw who are or just were there
    waiting: who must act now; nobody: the match ended
    gone:    who left with this step, and whether a limit cut it (truncation) rather than the rules ended it
    """

    seen: Mapping[str, Any]
    waiting: list[str]
    rewards: Mapping[str, float]
    gone: dict[str, bool]


class World(Protocol):
    """One lane's environment."""

    env: Any

    def reset(self, seed: int) -> Turn: ...
    def step(self, actions: Mapping[str, Any]) -> Turn: ...
    def info(self, name: str) -> Mapping[str, Any]: ...
    def infos(self) -> Iterator[Mapping[str, Any]]: ...
    def dead(self) -> list[str]:
        """Who left with the last step."""


def as_world(env: Any) -> World:
    if isinstance(env, ParallelEnv):
        return _AtOnce(env)
    if not isinstance(env, AECEnv):
        raise SparringError(
            f"{type(env).__name__} is no PettingZoo environment: make must return a ParallelEnv or AECEnv"
        )
    if getattr(env, "metadata", {}).get("is_parallelizable", False):
        parallel = aec_to_parallel(env)
        return _AtOnce(_Rounds(env) if isinstance(parallel, aec_to_parallel_wrapper) else parallel)
    return _InTurns(env)


class _Rounds(aec_to_parallel_wrapper):  # type: ignore[misc]
    """PettingZoo's conversion of turns to a step of all, without its look at each agent's observation before its turn.

    The look goes nowhere, and took a seventh of the time of a particle environment.
    """

    def step(self, actions: Mapping[str, Any]) -> Any:
        env = self.aec_env
        rewards: dict[str, float] = {}
        for agent in list(env.agents):
            if agent != env.agent_selection:
                raise SparringError(
                    f"{type(env.unwrapped).__name__} says is_parallelizable, but it is the turn of "
                    f"{env.agent_selection}, not of {agent}: agents must take turns in their order, and all die last"
                )
            env.step(actions[agent])
            for name in env.agents:
                rewards[name] = rewards.get(name, 0) + env.rewards[name]
        terminated, truncated, infos = dict(env.terminations), dict(env.truncations), dict(env.infos)
        seen = {name: env.observe(name) for name in env.agents}
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
        self.agents = env.agents
        return seen, rewards, terminated, truncated, infos


class _AtOnce:
    """A parallel environment."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self._infos: Mapping[str, Mapping[str, Any]] = {}
        self._gone: dict[str, bool] = {}

    def reset(self, seed: int) -> Turn:
        seen, self._infos = self.env.reset(seed=seed)
        self._gone = {}
        return Turn(seen=seen, waiting=list(self.env.agents), rewards={}, gone={})

    def step(self, actions: Mapping[str, Any]) -> Turn:
        seen, rewards, terminated, truncated, self._infos = self.env.step(dict(actions))
        waiting = [name for name in self.env.agents if not (terminated.get(name) or truncated.get(name))]
        self._gone = {
            name: bool(truncated.get(name)) and not terminated.get(name) for name in actions if name not in waiting
        }
        return Turn(seen=seen, waiting=waiting, rewards=rewards, gone=self._gone)

    def info(self, name: str) -> Mapping[str, Any]:
        return self._infos.get(name, {})

    def infos(self) -> Iterator[Mapping[str, Any]]:
        yield from self._infos.values()

    def dead(self) -> list[str]:
        return list(self._gone)


class _InTurns:
    """An AEC environment whose agents take turns."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self._left: set[str] = set()
        self._gone: dict[str, bool] = {}

    def reset(self, seed: int) -> Turn:
        self.env.reset(seed=seed)
        self._left, self._gone = set(), {}
        return self._turn({})

    def step(self, actions: Mapping[str, Any]) -> Turn:
        (action,) = actions.values()
        self.env.step(action)
        return self._turn(dict(self.env.rewards))

    def _turn(self, rewards: dict[str, float]) -> Turn:
        env = self.env
        self._left &= set(env.agents)  # of the others that left, a name may come back
        self._gone = {
            name: bool(env.truncations[name]) and not env.terminations[name]
            for name in env.agents
            if name not in self._left and (env.truncations[name] or env.terminations[name])
        }
        self._left |= self._gone.keys()
        seen = {name: env.observe(name) for name in self._gone}
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
        waiting = [env.agent_selection] if env.agents else []
        seen |= {name: env.observe(name) for name in waiting}
        return Turn(seen=seen, waiting=waiting, rewards=rewards, gone=self._gone)

    def info(self, name: str) -> Mapping[str, Any]:
        info: Mapping[str, Any] = self.env.infos.get(name, {})
        return info

    def infos(self) -> Iterator[Mapping[str, Any]]:
        yield from self.env.infos.values()

    def dead(self) -> list[str]:
        return list(self._gone)
