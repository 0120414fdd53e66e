"""The decision stream: how every game offers its decisions and every learner answers them.

A game advances in lanes. Every lane puts up its next decision; a policy answers the whole batch; the
game returns what the answers earned and which matches ended. Rows are identified by the ids that travel
with them (`lane`, `match`, `agent`), never by their place in the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Box:
    """Numbers: arrays of `shape`, every entry in [`low`, `high`]. Continuous unless `dtype` is one of integers."""

    shape: tuple[int, ...]
    low: float = -float("inf")
    high: float = float("inf")
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True, kw_only=True)
class Discrete:
    """One choice out of `n`, as int64 in [0, n)."""

    n: int


@dataclass(frozen=True, kw_only=True)
class Structured:
    """Actions made of parts that are packed into arrays of `shape`; not every array is an action.

    draws:  how many random numbers one action is made of
    sample: called as `sample(rows, uniform)` with float64 [n, draws] in [0, 1); returns legal actions [n, *shape] that
            depend on nothing else
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    draws: int
    sample: Callable[[Decisions, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class AgentSpace:
    """What one agent sees and does, where agents of a game differ.

    observation: how many numbers of its rows' `obs`, from the first on, are its own; zeros fill the rest
    action:      a Box of one axis, whose numbers are the first of the game's action; or Discrete. Where the game's
                 action is a Box, a Discrete agent's choice is the place of the largest of the first `n` numbers.
    """

    observation: int
    action: Box | Discrete | Structured


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """Agents that must act now. The first axis of every tensor is the waiting agents (n rows).

    lane:      int64 [n], the running match's place in the batch
    match:     int64 [n], how many matches ended in that lane before this one
    team:      int64 [n], agents that win together share it
    agent:     int64 [n], the body within its match, 0 <= agent < game.agents; that of one born later may have been that
               of one that died
    decision:  int64 [n], how many decisions of its life the agent has made before this one
    obs:       [n, ...], actor inputs
    mask:      bool [n, choices], the legal choices, or None where all are legal; of structured actions it may be uint8,
               with numbers in it
    critic_obs: [n, ...], training-only inputs of a privileged critic, or None
    """

    lane: Tensor
    match: Tensor
    team: Tensor
    agent: Tensor
    decision: Tensor
    obs: Tensor
    mask: Tensor | None = None
    critic_obs: Tensor | None = None

    def __len__(self) -> int:
        return int(self.lane.shape[0])

    def __getitem__(self, rows: Tensor) -> Self:
        """The rows chosen by an index or boolean tensor, ids included."""
        chosen: dict[str, Any] = {}
        for field in fields(self):
            column = getattr(self, field.name)
            chosen[field.name] = None if column is None else column[rows]
        return type(self)(**chosen)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one `Game.act` brought.

    lane, agent: int64 [n], whom `reward` belongs to: every agent that acted, and any other that was paid
    reward:      float32 [n], undiscounted, summed since the agent's decision
    ended:       int64 [e], lanes whose match ended
    truncated:   bool [e], the match was cut by a time limit: bootstrap from `last`, it is not terminal
    score:       float32 [e, agents], undiscounted sum of rewards of each agent over the ended match
    length:      int64 [e], decisions of the longest life of the ended match
    last:        Decisions of the ended matches' agents as they stood at the end, before any restart; where the match
                 was truncated, not those that died with its last decision
    parted:      Decisions of agents that a time limit took out of a match that goes on, as they stood then: bootstrap
                 from these too. Other agents that are gone from a match died.
    """

    lane: Tensor
    agent: Tensor
    reward: Tensor
    ended: Tensor
    truncated: Tensor
    score: Tensor
    length: Tensor
    last: Decisions
    parted: Decisions | None = None


@runtime_checkable
class Game(Protocol):
    """Rules, observations and scoring, batched over lanes.

    A simultaneous game puts up all agents of a lane at once, a sequential one puts up one agent per lane.
    A lane whose match ended must be restarted before its next decision, unless the game says
    `restarts_itself`: then the lane already stands in its next match, and `restart` is optional.
    Check an implementation with `sparring.games.checker.check_game`.
    """

    # Read-only properties, so that plain attributes and class attributes of any subtype fit.
    @property
    def name(self) -> str: ...
    @property
    def lanes(self) -> int: ...
    @property
    def agents(self) -> int:
        """The most agents a lane can hold at once."""

    @property
    def teams(self) -> int: ...
    @property
    def observation(self) -> Box: ...
    @property
    def action(self) -> Box | Discrete | Structured: ...
    @property
    def restarts_itself(self) -> bool: ...

    def decisions(self) -> Decisions:
        """The agents that must act now; the same rows until `act` is called."""
        ...

    def act(self, actions: Tensor) -> Outcome:
        """Answer the rows of the last `decisions()`, in their order. actions: [n, ...] of the action space."""
        ...

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        """Start a new match in `lanes` (int64 [k]) from `levels` (int64 [k]); without levels the lane draws its own."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Everything a checkpoint needs to continue all lanes bit for bit."""
        ...

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from `state()` of a game of the same name and number of lanes."""
        ...


@runtime_checkable
class Drawable(Protocol):
    """A game that can show its lanes. It may say in `fps` how many decisions make a second; 10 where it does not."""

    def picture(self, lane: int) -> NDArray[np.uint8]:
        """What the lane's match looks like now, or at its end before `restart`: RGB, uint8 [height, width, 3]."""
        ...


def agent_spaces(game: Game) -> tuple[AgentSpace, ...]:
    """What each agent sees and does, by agent id: the game's own `agent_spaces` where agents differ."""
    alike = AgentSpace(observation=math.prod(game.observation.shape), action=game.action)
    spaces: tuple[AgentSpace, ...] = getattr(game, "agent_spaces", (alike,) * game.agents)
    return spaces


class Wrapper:
    """A game that passes everything on to `game`; subclass it and change what you need."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.name = game.name
        self.lanes = game.lanes
        self.agents = game.agents
        self.teams = game.teams
        self.observation = game.observation
        self.action = game.action
        self.restarts_itself = game.restarts_itself
        self.agent_spaces = agent_spaces(game)
        for drawn in ("picture", "fps"):  # the wrapper is `Drawable` where the game is
            if hasattr(game, drawn):
                setattr(self, drawn, getattr(game, drawn))

    def decisions(self) -> Decisions:
        return self.game.decisions()

    def act(self, actions: Tensor) -> Outcome:
        return self.game.act(actions)

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        self.game.restart(lanes, levels)

    def state(self) -> dict[str, Tensor]:
        return self.game.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.game.load_state(state)


class RewardWrapper(Wrapper):
    """Pays `reward(rows, actions, outcome)` (float32 [n], for the rows of `outcome`) instead of the game's own reward.

    The match score in `Outcome.score` stays the game's own, so results remain comparable.
    """

    def __init__(self, game: Game, reward: Callable[[Decisions, Tensor, Outcome], Tensor]) -> None:
        super().__init__(game)
        self.reward = reward

    def act(self, actions: Tensor) -> Outcome:
        rows = self.game.decisions()
        outcome = self.game.act(actions)
        return replace(outcome, reward=self.reward(rows, actions, outcome).to(torch.float32))
