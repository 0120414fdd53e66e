"""Any PettingZoo environment as a game: `sparring.make(pettingzoo(parallel_env), lanes=16)`.

Parallel environments, and those of turns that say `is_parallelizable`, put up all living agents of a lane at once;
other environments of turns (AEC) put up one. Needs the packages `pettingzoo` and `gymnasium` (extra `zoo`).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import AgentSpace, Box, Decisions, Discrete, Outcome
from sparring.games.pettingzoo_worlds import Eyes, Hands, World, as_world

_SEEDS = 2**32
"""Environments take seeds below this."""


def pettingzoo(
    make: Callable[..., Any], *, name: str | None = None, teams: Mapping[str, int] | None = None
) -> Callable[..., PettingZoo]:
    """A factory of games, as `sparring.make`, `sparring.train(game=...)` and the checker take it; see `PettingZoo`.

    With `pictures=True` it gives `make` a render_mode of "rgb_array", where `make` takes one, so that the game is
    `Drawable`.
    """

    def factory(*, lanes: int = 1, seed: int = 0, pictures: bool = False) -> PettingZoo:
        taken = inspect.signature(make).parameters.values()
        takes_mode = any(each.name == "render_mode" or each.kind is each.VAR_KEYWORD for each in taken)
        drawn = partial(make, render_mode="rgb_array") if pictures and takes_mode else make
        return PettingZoo(drawn, lanes=lanes, seed=seed, name=name, teams=teams)

    return factory


class PettingZoo:
    """Lanes of a PettingZoo environment as a `Game`.

    Agent i is `possible_agents[i]`. Observations are flattened to float32 [n, width], width that of the agent that sees
    most; the others' rows end in zeros. `agent_spaces` says how much each agent sees, and how it acts:

    - all choose one of some (Discrete, or MultiDiscrete as all its combinations): an action is one number, int64 [n];
      masks tell agents with fewer choices, and those of `action_mask`, in observations or infos, are handed on;
    - all give numbers (Box with finite bounds): float32 [n, width] in [-1, 1], scaled to each agent's own bounds;
    - some of both: as the latter, and of those who choose the largest of their numbers decides.

    A match starts with `reset(seed=...)`, the seed drawn from the game's seed, lane and match, or the level given. A
    saved game is levels and the actions since: loading it plays them again, so the environment must do the same after
    the same seed (`sparring.games.checker` finds out).
    """

    restarts_itself = False

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        lanes: int = 1,
        seed: int = 0,
        name: str | None = None,
        teams: Mapping[str, int] | None = None,
    ) -> None:
        """make:  called without arguments, once for each lane; returns a ParallelEnv or an AECEnv
        name:  of the game; default: that in the environment's metadata
        teams: team of each agent by name; default: each its own

        Raises SparringError for an environment without `possible_agents` and for spaces that it cannot serve.
        """
        if lanes < 1:
            raise SparringError(f"lanes must be 1 or more, got {lanes}")
        worlds = [as_world(make()) for _ in range(lanes)]
        env = worlds[0].env
        self.name = name or str(getattr(env, "metadata", {}).get("name", type(env.unwrapped).__name__))
        names = list(getattr(env, "possible_agents", None) or ())
        if not names:
            raise SparringError(
                f"{self.name}: the environment has no possible_agents: which agents there can be must be known before"
            )
        self.names = names
        self.lanes, self.agents = lanes, len(names)
        self._worlds = worlds
        self._index = {agent: index for index, agent in enumerate(names)}
        self._eyes = [Eyes.of(self.name, agent, env.observation_space(agent)) for agent in names]
        self._hands = [Hands.of(self.name, agent, env.action_space(agent)) for agent in names]
        if teams is not None and (unknown := [agent for agent in names if agent not in teams]):
            raise SparringError(f"{self.name}: teams: {unknown[0]} has none: give one for each of {', '.join(names)}")
        team = [index if teams is None else teams[agent] for index, agent in enumerate(names)]
        self.teams = max(team) + 1
        self._team = torch.tensor(team)
        self.agent_spaces = tuple(
            AgentSpace(observation=eyes.size, action=hands.space)
            for eyes, hands in zip(self._eyes, self._hands, strict=True)
        )
        self.observation = Box(
            shape=(max(eyes.size for eyes in self._eyes),),
            low=min(0.0, *(eyes.low for eyes in self._eyes)),
            high=max(0.0, *(eyes.high for eyes in self._eyes)),
        )
        choices = {hands.choices for hands in self._hands}
        self.action: Box | Discrete = (
            Discrete(n=max(choices))
            if 0 not in choices
            else Box(shape=(max(hands.size for hands in self._hands),), low=-1.0, high=1.0)
        )
        self.fps = float(getattr(env, "metadata", {}).get("render_fps") or 10)
        self._seed = seed
        width = self.observation.shape[0]
        self._waiting = np.zeros((lanes, self.agents), dtype=np.bool_)
        self._obs = np.zeros((lanes, self.agents, width), dtype=np.float32)
        self._decision = np.zeros((lanes, self.agents), dtype=np.int64)
        self._score = np.zeros((lanes, self.agents), dtype=np.float32)
        self._match = np.zeros(lanes, dtype=np.int64)
        self._length = np.zeros(lanes, dtype=np.int64)
        self._level = np.zeros(lanes, dtype=np.int64)
        self._history: list[list[NDArray[Any]]] = [[] for _ in range(lanes)]
        self._masks: NDArray[np.bool_] | None = None
        if isinstance(self.action, Discrete):
            own = np.array([[choice < hands.choices for choice in range(self.action.n)] for hands in self._hands])
            self._own_choices = own
            self._masks = np.broadcast_to(own, (lanes, *own.shape)).copy()
        self._rows: Decisions | None = None
        for lane in range(lanes):
            self._begin(lane, self._draw(lane))
        masked = any(eyes.masked for eyes in self._eyes) or any("action_mask" in info for info in worlds[0].infos())
        if self._masks is not None and not masked and self._masks.all():
            self._masks = None

    def decisions(self) -> Decisions:
        if self._rows is None:
            self._rows = self._shown(self._waiting)
        return self._rows

    def act(self, actions: Tensor) -> Outcome:
        rows = self.decisions()
        self._check(rows, actions)
        given = actions.detach().cpu().numpy()
        lanes, agents = rows.lane.numpy(), rows.agent.numpy()
        played = [self._hands[agent].played(action) for agent, action in zip(agents.tolist(), given, strict=True)]
        self._decision[lanes, agents] += 1
        np.maximum.at(self._length, lanes, self._decision[lanes, agents])
        paid = np.zeros((self.lanes, self.agents), dtype=np.float32)
        acted = np.zeros((self.lanes, self.agents), dtype=np.bool_)
        acted[lanes, agents] = True
        earned = acted.copy()
        last, parted = np.zeros_like(acted), np.zeros_like(acted)
        ended, truncated = [], []
        starts = np.searchsorted(lanes, np.arange(self.lanes + 1)).tolist()
        for lane, world in enumerate(self._worlds):
            first, stop = starts[lane], starts[lane + 1]
            if first == stop:
                continue
            self._history[lane].append(given[first:stop].copy())
            turn = world.step(
                {
                    self.names[agent]: action
                    for agent, action in zip(agents[first:stop], played[first:stop], strict=True)
                }
            )
            for name, reward in turn.rewards.items():
                index = self._index[name]
                paid[lane, index] = reward
                earned[lane, index] = earned[lane, index] or reward != 0
            self._see(lane, turn.seen, world)
            gone = {self._index[name]: cut for name, cut in turn.gone.items()}
            self._waiting[lane] = False
            if turn.waiting:
                self._waiting[lane, [self._index[name] for name in turn.waiting]] = True
                parted[lane, [index for index, cut in gone.items() if cut]] = True
                continue
            ended.append(lane)
            truncated.append(any(gone.values()))
            last[lane, [index for index, cut in gone.items() if cut or not truncated[-1]]] = True
        self._score += paid
        at = np.array(ended, dtype=np.int64)
        lane_of, agent_of = earned.nonzero()
        outcome = Outcome(
            lane=torch.from_numpy(lane_of),
            agent=torch.from_numpy(agent_of),
            reward=torch.from_numpy(paid[earned]),
            ended=torch.from_numpy(at),
            truncated=torch.tensor(truncated, dtype=torch.bool),
            score=torch.from_numpy(self._score[at]),
            length=torch.from_numpy(self._length[at]),
            last=self._shown(last),
            parted=self._shown(parted) if parted.any() else None,
        )
        self._forget_dead(at)
        self._rows = None
        return outcome

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        """int64 [k] each; a level is the seed of a reset, of which the low 32 bits count."""
        for place, lane in enumerate(lanes.tolist()):
            if self._length[lane] and self._waiting[lane].any():  # left in the middle
                self._match[lane] += 1
            self._begin(lane, self._draw(lane) if levels is None else int(levels[place]) % _SEEDS)
        self._rows = None

    def picture(self, lane: int) -> NDArray[np.uint8]:
        """As `Drawable`. Raises SparringError for an environment that draws nothing."""
        try:
            drawn = self._worlds[lane].env.render()
        except NotImplementedError:
            drawn = None
        if not (isinstance(drawn, np.ndarray) and drawn.ndim == 3 and drawn.shape[2] == 3 and drawn.dtype == np.uint8):
            raise SparringError(
                f'{self.name} draws nothing: what makes the environment must take render_mode="rgb_array", and its '
                "render() return uint8 [height, width, 3]"
            )
        return drawn

    def state(self) -> dict[str, Tensor]:
        history = [action.astype(np.float64).ravel() for turns in self._history for action in turns]
        return {
            "seed": torch.tensor(self._seed),
            "match": torch.from_numpy(self._match.copy()),
            "level": torch.from_numpy(self._level.copy()),
            "turns": torch.tensor([len(turns) for turns in self._history]),
            "acted": torch.tensor([len(action) for turns in self._history for action in turns], dtype=torch.int64),
            "actions": torch.from_numpy(np.concatenate([*history, np.zeros(0)])),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Starts every lane's match again from its level and plays its actions again.

        Raises SparringError for a state of another number of lanes, and for an environment that does not do the same.
        """
        if len(state["match"]) != self.lanes:
            raise SparringError(f"{self.name}: that state is of {len(state['match'])} lanes, not of {self.lanes}")
        self._seed = int(state["seed"])
        acted, numbers = iter(state["acted"].tolist()), iter(state["actions"].tolist())
        size = 1 if isinstance(self.action, Discrete) else self.action.shape[0]
        turns: list[list[list[float]]] = [
            [[next(numbers) for _ in range(size * next(acted))] for _ in range(count)]
            for count in state["turns"].tolist()
        ]
        for lane in range(self.lanes):
            self._begin(lane, int(state["level"][lane]))
        shape = () if isinstance(self.action, Discrete) else self.action.shape
        dtype = np.int64 if isinstance(self.action, Discrete) else np.float32
        self._replay([[np.array(turn, dtype=dtype).reshape(-1, *shape) for turn in lane] for lane in turns])
        self._match[:] = state["match"].numpy()
        self._rows = None

    def _replay(self, turns: list[list[NDArray[Any]]]) -> None:
        """Play on from fresh matches, each lane its own number of turns."""
        for number in range(max(map(len, turns))):
            playing = np.array([number < len(lane) for lane in turns])
            waiting = self._waiting
            self._waiting = waiting & playing[:, None]
            self._rows = None
            answers = [lane[number] for lane in turns if number < len(lane)]
            if len(self.decisions()) != sum(map(len, answers)):
                raise SparringError(
                    f"{self.name}: other agents wait than when the game was saved: the environment does not do the "
                    "same after reset(seed=...): all its luck must come from that seed"
                )
            self.act(torch.from_numpy(np.concatenate(answers)))
            self._waiting |= waiting & ~playing[:, None]

    def _draw(self, lane: int) -> int:
        """The seed of the lane's match."""
        place = _core.mix64(int(self._match[lane]) * 65536 + lane)
        return int(_core.mix64((self._seed & (2**64 - 1)) ^ place)) % _SEEDS

    def _begin(self, lane: int, level: int) -> None:
        world = self._worlds[lane]
        turn = world.reset(level)
        if not turn.waiting:
            raise SparringError(f"{self.name}: lane {lane}: nobody acts after reset(seed={level})")
        self._level[lane] = level
        self._history[lane] = []
        self._length[lane] = 0
        self._decision[lane] = 0
        self._score[lane] = 0
        self._obs[lane] = 0
        self._see(lane, turn.seen, world)
        self._waiting[lane] = False
        self._waiting[lane, [self._index[name] for name in turn.waiting]] = True

    def _see(self, lane: int, seen: Mapping[str, Any], world: World) -> None:
        for name, observation in seen.items():
            index = self._index[name]
            eyes = self._eyes[index]
            self._obs[lane, index, : eyes.size] = eyes.flat(observation)
            if self._masks is not None:
                mask = observation["action_mask"] if eyes.masked else world.info(name).get("action_mask")
                own = self._own_choices[index]
                self._masks[lane, index] = own
                if mask is not None:
                    self._masks[lane, index, : self._hands[index].choices] = np.asarray(mask, dtype=np.bool_)

    def _forget_dead(self, ended: NDArray[np.int64]) -> None:
        """Count decisions of who is born later in the place of a dead one from 0 again."""
        self._match[ended] += 1
        for lane, world in enumerate(self._worlds):
            for name in world.dead():
                self._decision[lane, self._index[name]] = 0

    def _shown(self, which: NDArray[np.bool_]) -> Decisions:
        """The rows of bool [lanes, agents]."""
        lane, agent = which.nonzero()
        index = torch.from_numpy(agent)
        return Decisions(
            lane=torch.from_numpy(lane),
            match=torch.from_numpy(self._match[lane]),
            team=self._team[index],
            agent=index,
            decision=torch.from_numpy(self._decision[which]),
            obs=torch.from_numpy(self._obs[which]),
            mask=None if self._masks is None else torch.from_numpy(self._masks[which]),
        )

    def _check(self, rows: Decisions, actions: Tensor) -> None:
        shape = (len(rows), *getattr(self.action, "shape", ()))
        if actions.shape != shape:
            raise SparringError(f"{self.name}: actions must be {list(shape)}, got {list(actions.shape)}")
        if not isinstance(self.action, Discrete):
            bad = ~actions.isfinite().all(dim=1)
            what = "numbers that are not finite"
        else:
            if actions.is_floating_point():
                raise SparringError(f"{self.name}: actions must be whole numbers (int64), got {actions.dtype}")
            bad = (actions < 0) | (actions >= self.action.n)
            what = f"a choice outside of 0 to {self.action.n - 1}"
            if rows.mask is not None and not bad.any():
                bad = ~rows.mask.gather(1, actions.long().unsqueeze(1)).squeeze(1)
                what = "a choice that its mask forbids"
        if bad.any():
            row = int(bad.nonzero()[0])
            raise SparringError(
                f"{self.name}: lane {int(rows.lane[row])}, {self.names[int(rows.agent[row])]}: {what}: "
                f"{actions[row].tolist()}"
            )


_TEAMS = {
    "simple_spread_v3": {"agent": 0},
    "simple_speaker_listener_v4": {"speaker": 0, "listener": 0},
    "simple_reference_v3": {"agent": 0},
    "simple_adversary_v3": {"adversary": 0, "agent": 1},
    "simple_tag_v3": {"adversary": 0, "agent": 1},
    "simple_push_v3": {"adversary": 0, "agent": 1},
    "simple_crypto_v3": {"eve": 0, "bob": 1, "alice": 1},
    "simple_world_comm_v3": {"leadadversary": 0, "adversary": 0, "agent": 1},
}
"""Of `mpe2`, by the first part of the agents' names."""


def mpe(
    *,
    scenario: str,
    lanes: int = 1,
    seed: int = 0,
    continuous: bool = False,
    max_cycles: int = 25,
    pictures: bool = False,
) -> PettingZoo:
    """A scenario of the multi-agent particle environments (Lowe et al. 2017), as the package `mpe2` has it.

    scenario:   a module of mpe2, such as "simple_spread_v3"
    continuous: forces and messages as numbers instead of choices
    max_cycles: decisions after which a match is truncated
    pictures:   make it `Drawable`

    Raises SparringError for an unknown scenario, and without the package.
    """
    if scenario not in _TEAMS:
        raise SparringError(f"no scenario {scenario}: there are {', '.join(_TEAMS)}")
    try:
        module = importlib.import_module(f"mpe2.{scenario}")
    except ImportError as error:
        raise SparringError(f"mpe needs the package mpe2 ({error}): pip install 'sparring[zoo]'") from None

    def make() -> Any:
        # Without the wrappers of env(), which check again what is checked here and cost a third to a half of the time.
        mode = {"render_mode": "rgb_array"} if pictures else {}
        return module.raw_env(continuous_actions=continuous, max_cycles=max_cycles, **mode)

    teams = {name: _TEAMS[scenario][name.split("_")[0]] for name in make().possible_agents}
    return PettingZoo(make, lanes=lanes, seed=seed, name="mpe", teams=teams)
