"""Loong: the dragons of UNSW Battlecode 2026 on the exact engine of the core, as a `Game` (docs/loong-engine.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Outcome, Structured
from sparring.games.loong_choices import CHOICE_DRAWS, GIVEN, INPUTS, MASK, random_choices
from sparring.games.loong_rows import ACTION, LANE, PLAYERS, RANDOM_DRAWS, SCRIPTS, VIEW, random_actions, views
from sparring.levels.pool import MapPool, PoolMap, named_maps

CRITIC_CROP_BYTES = 15 * 15 * len(_core.LOONG_PRIVILEGED["crop"])
DEFAULT_MAPS = "generated:0:64"

_LUCK = 0x6C6F6F6E67
"""Stream of the draws of levels and match seeds: no other draws from the same seed share it."""
_SEED_BITS = 62
_NOBODY = 255
"""The script of a team whose dragons somebody else plays."""
_FOIL = PLAYERS.index("foil")
_FAULTS = {
    1: "more messages stood than a lean lane has room for; play with lean=False",
    2: "more dragons lived than the lane has room for",
    4: "its dragons remembered more than the lane has room for",
}


class LivingDragon(NamedTuple):
    """A dragon that lives in a lane.

    dragon: its id; 0 and 1 are the queens
    agent:  its slot
    team:   0 for A, 1 for B
    facing: 0 to 3 for north, east, south, west
    body:   int32 [n, 2], column and row of each segment, head first
    """

    dragon: int
    agent: int
    team: int
    facing: int
    body: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class LoongDecisions(Decisions):
    """Dragons that must act now, at most one of a lane.

    agent:    the dragon's slot in its lane; a newborn may take that of a dead one
    decision: decisions of this life so far, 0 of a newborn
    dragon:   int64 [n], the judge's id, which no two dragons of a match share; 0 and 1 are the queens
    round:    int64 [n], 0 to 499
    """

    dragon: Tensor
    round: Tensor


@dataclass(frozen=True, kw_only=True)
class LoongOutcome(Outcome):
    """What one `Loong.act` brought.

    Rewards are 0 until a match ends. Then every dragon that lives gets its team's result, 1, 0 or -1, and so does the
    one that acted last, even if it died since; those that died before get nothing, and a learner that credits them
    reads `results`. `score` holds the same by slot, and 0 in the others. No match is truncated: round 499 is a real
    end. `last` holds the dragons that live, as each would be told if it were asked now; if none lives, the one that
    acted last, with what it was told then. Dragons of scripted players are in none of these: a match that ended before
    another's turn is in `ended` and `results` alone, or has its living in `last`.

    results: uint8 [e, bytes of a lane's row], see `Loong.results`
    """

    results: Tensor


class Loong:
    """Loong as a `Game`: a lane is one match, and its dragons act one after another.

    Team 0 is A, team 1 is B. obs is uint8 [n, 1248], what the judge tells a dragon: `game.view(rows)` has its fields.
    An action is uint8 [n, 80], made by `move`, `sprint`, `split` and `send` of `sparring.games.loong_rows`. With
    `observe="inputs"` dragons remember (docs/loong-knowledge.md): obs is uint8 [n, 9424], mask uint8 [n, 40], an action
    int64 [n], a packed choice. The map and the match seed that a lane plays next are drawn by (seed, lane, match).

    learners: bool [lanes, 2], the teams whose dragons are put up as rows; scripted players, of the same seed as the
              game, or the foil act for those of the others, inside `act` and `restart`
    """

    name = "loong"
    teams = 2
    observation: Box = Box(shape=(VIEW.itemsize,), low=0, high=255, dtype=torch.uint8)
    action: Structured = Structured(
        shape=(ACTION.itemsize,), dtype=torch.uint8, draws=RANDOM_DRAWS, sample=random_actions
    )
    restarts_itself = False

    def __init__(
        self,
        *,
        lanes: int = 1,
        seed: int = 0,
        maps: str | Path | Sequence[str | Path] | MapPool = DEFAULT_MAPS,
        threads: int = 1,
        observe: str = "view",
        lean: bool = False,
        mirror: str = "coin",
        build: int = 0,
    ) -> None:
        """Start a match in every lane.

        maps:    "generated:SEED:COUNT" (made once, then kept in the cache folder), "shipped" (those of the installed
                 judge), a folder, a list of folders and map files, or a pool
        threads: that play the lanes; the result is the same
        observe: "view", what the judge tells a dragon; "inputs", what it knows
        mirror:  with "inputs": "coin", half of all lives see the world mirrored, or "never", or "always"
        build:   with "inputs": of a bot, whose packets alone dragons understand
        lean:    less room for messages; a lane that needs more ends the run

        Raises SparringError for an option that is not one of these, MapError for a map that the judge refuses.
        """
        for what, number in (("lanes", lanes), ("threads", threads)):
            if number < 1:
                raise SparringError(f"loong: {what} must be 1 or more, got {number}")
        if observe not in ("view", "inputs"):
            raise SparringError(f'loong: observe must be "view" or "inputs", got "{observe}"')
        if mirror not in ("coin", "never", "always"):
            raise SparringError(f'loong: mirror must be "coin", "never" or "always", got "{mirror}"')
        self.lanes = lanes
        self.maps = named_maps(maps)
        self._knows = observe == "inputs"
        self._matches = _core.LoongMatches(
            [_level(each) for each in self.maps],
            lanes,
            threads=threads,
            lean=lean,
            knowledge=self._knows,
            mirror=mirror,
            build=build,
        )
        if self._knows:
            self.observation = Box(shape=(INPUTS.itemsize,), low=0, high=127, dtype=torch.uint8)
            self.action = Structured(shape=(), dtype=torch.int64, draws=CHOICE_DRAWS, sample=random_choices)
            self._inputs = np.zeros((lanes, INPUTS.itemsize), np.uint8)
            self._masks = np.zeros((lanes, MASK.itemsize), np.uint8)
        self.agents = self._matches.slots
        self._seed = seed & (2**64 - 1)
        self._standing: NDArray[np.void] = self._matches.rows.view(LANE)[:, 0]
        self._match = torch.full((lanes,), -1)
        self._longest = torch.zeros(lanes, dtype=torch.int64)
        self._dragon = torch.full((lanes, self.agents), -1)
        self._decision = torch.zeros(lanes, self.agents, dtype=torch.int64)
        self._scripts = torch.full((lanes, self.teams), _NOBODY, dtype=torch.uint8)
        self._told = torch.zeros(lanes, dtype=torch.bool)
        """Lanes of whose match some outcome has told the end."""
        self._rows: LoongDecisions | None = None
        self.restart(torch.arange(lanes))

    @property
    def learners(self) -> Tensor:
        return self._scripts == _NOBODY

    def decisions(self) -> LoongDecisions:
        if self._rows is None:
            self._rows = self._look()
        return self._rows

    def act(self, actions: Tensor, given: Tensor | None = None) -> LoongOutcome:
        """actions: uint8 [n, 80], or with `observe="inputs"` int64 [n].

        given: with `observe="inputs"`, uint8 [n, 80]: what is done where the action is -1, as by scripted players

        Raises SparringError for rows that are no actions, and then changes nothing, and for a lane that has no room for
        its match: it names lane, map and seed, and no result of this call counts.
        """
        rows = self.decisions()
        if self._knows:
            return self._act_packed(rows, actions, given)
        if actions.dtype != torch.uint8 or actions.shape != (len(rows), ACTION.itemsize):
            wanted = f"uint8 [{len(rows)}, {ACTION.itemsize}]"
            raise SparringError(f"loong: actions must be {wanted}, got {actions.dtype} {list(actions.shape)}")
        packed = np.zeros((self.lanes, ACTION.itemsize), np.uint8)
        packed[rows.lane.numpy()] = actions.numpy()
        try:
            self._matches.act(packed)
        except ValueError as error:
            raise SparringError(f"loong: {error}; sparring.games.loong_rows has move, sprint, split and send") from None
        return self._acted(rows)

    def _act_packed(self, rows: LoongDecisions, actions: Tensor, given: Tensor | None) -> LoongOutcome:
        if actions.dtype != torch.int64 or actions.shape != (len(rows),):
            wanted = f"int64 [{len(rows)}]"
            raise SparringError(f"loong: actions must be {wanted}, got {actions.dtype} {list(actions.shape)}")
        packed = np.full(self.lanes, GIVEN, np.int64)
        packed[rows.lane.numpy()] = actions.numpy()
        done = None
        if given is not None:
            if given.dtype != torch.uint8 or given.shape != (len(rows), ACTION.itemsize):
                wanted = f"uint8 [{len(rows)}, {ACTION.itemsize}]"
                raise SparringError(f"loong: given must be {wanted}, got {given.dtype} {list(given.shape)}")
            done = np.zeros((self.lanes, ACTION.itemsize), np.uint8)
            done[rows.lane.numpy()] = given.numpy()
        try:
            self._matches.act_packed(packed, done)
        except ValueError as error:
            raise SparringError(f"loong: {error}") from None
        return self._acted(rows)

    def _acted(self, rows: LoongDecisions) -> LoongOutcome:
        self._play_scripts()
        self._decision[rows.lane, rows.agent] += 1
        self._longest[rows.lane] = self._longest[rows.lane].maximum(rows.decision + 1)
        return self._outcome(rows)

    def restart(
        self,
        lanes: Tensor,
        levels: Tensor | None = None,
        seeds: Tensor | None = None,
        scripts: Tensor | None = None,
    ) -> None:
        """Start a new match in `lanes` (int64 [k], each once).

        levels:  int64 [k], places in `maps`; None: drawn by (seed, lane, match)
        seeds:   int64 [k], the bits of a match seed being an unsigned number; None: drawn likewise, 62 bits
        scripts: uint8 [k, 2], who plays teams A and B: a place in `PLAYERS`, or 255, their dragons are put up as rows;
                 None: 255 for both. The foil, which remembers, needs `observe="inputs"`; it plays as its bot does

        Their dragons whose turn comes first act in here. If that ends the match, the next `act` tells of it.
        Raises SparringError if a lane, level or player is not there, and for a lane without room, as `act` does.
        """
        if len(set(lanes.tolist())) != len(lanes):
            raise SparringError("loong: a lane is named twice in restart")
        for what, numbers, count in (("lane", lanes, self.lanes), ("level", levels, len(self.maps))):
            if numbers is None:
                continue
            if numbers.shape != lanes.shape:
                raise SparringError(f"loong: {len(lanes)} lanes, but {what}s of shape {list(numbers.shape)}")
            wrong = numbers[(numbers < 0) | (numbers >= count)]
            if len(wrong):
                raise SparringError(f"loong: there is no {what} {int(wrong[0])}: there are {count}")
        if seeds is not None and seeds.shape != lanes.shape:
            raise SparringError(f"loong: {len(lanes)} lanes, but seeds of shape {list(seeds.shape)}")
        if scripts is None:
            scripts = torch.full((len(lanes), self.teams), _NOBODY, dtype=torch.uint8)
        if scripts.dtype != torch.uint8 or scripts.shape != (len(lanes), self.teams):
            wanted = f"uint8 [{len(lanes)}, {self.teams}]"
            raise SparringError(f"loong: scripts must be {wanted}, got {scripts.dtype} {list(scripts.shape)}")
        strangers = scripts[(scripts >= len(PLAYERS)) & (scripts != _NOBODY)]
        if len(strangers):
            known = f"there are {len(PLAYERS)}, and {_NOBODY} for none"
            raise SparringError(f"loong: there is no player {int(strangers[0])}: {known}")
        if not self._knows and (scripts == _FOIL).any():
            raise SparringError('loong: the foil remembers: it plays in games with observe="inputs"')
        self._match[lanes] += 1
        starting = zip(lanes.tolist(), self._match[lanes].tolist(), strict=True)
        luck = np.array([self._luck(lane, match) for lane, match in starting], np.int64).reshape(-1, 2)
        self._matches.restart(
            np.ascontiguousarray(lanes, np.int64),
            np.ascontiguousarray(luck[:, 0] % len(self.maps) if levels is None else levels, np.int64),
            np.ascontiguousarray(luck[:, 1] if seeds is None else seeds, np.int64).view(np.uint64),
        )
        self._scripts[lanes] = scripts
        self._told[lanes] = False
        self._longest[lanes] = 0
        self._dragon[lanes] = -1
        self._decision[lanes] = 0
        self._play_scripts()

    def view(self, rows: Decisions) -> NDArray[np.void]:
        """What the dragons are told, [n] with the fields of `_core.LOONG_VIEW`."""
        return views(rows.obs)

    def dragons(self, lane: int) -> list[LivingDragon]:
        """Those that live in a lane, by id. Nobody who plays may know."""
        return [LivingDragon(*each) for each in self._matches.dragons(lane)]

    def pearls(self, lane: int) -> NDArray[np.bool_]:
        """bool [height, width], where a pearl lies. Nobody who plays may know."""
        return self._matches.pearls(lane).astype(bool)

    def view_of(self, lane: int, agent: int) -> NDArray[np.void]:
        """What a dragon that lives would be told if it were asked now, [1] with the fields of `_core.LOONG_VIEW`."""
        told: NDArray[np.void] = self._matches.view_of(lane, agent).view(VIEW)
        return told

    def appraise(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """What a critic is told of the dragons in `decisions()`, row by row: crop [n, 3600], scalars [n, 32].

        Nobody who plays may know. Names: `_core.LOONG_PRIVILEGED`.
        """
        waiting = self.decisions().lane.numpy()
        crop = np.empty((self.lanes, CRITIC_CROP_BYTES), np.uint8)
        scalars = np.empty((self.lanes, len(_core.LOONG_PRIVILEGED["scalars"])), np.uint8)
        self._matches.appraise(crop, scalars)
        return (crop, scalars) if len(waiting) == self.lanes else (crop[waiting], scalars[waiting])

    def boards(self, lanes: Tensor) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """What a critic is told of both teams of `lanes` (int64 [k]): boards [k, 2, 4096], scalars [k, 2, 32]."""
        return self._matches.boards(self._there(lanes))

    def standings(self) -> NDArray[np.int32]:
        """int32 [lanes, 2, 4], of both teams as of now: living dragons, their total length, the queen's or 0, the
        longest."""
        return self._matches.standings()

    def roster(self, lanes: Tensor) -> NDArray[np.int32]:
        """int32 [k, agents, 5], by slot of `lanes` (int64 [k]): the dragon's id, its team, column and row of its head,
        its length; -1 where no dragon lives."""
        return self._matches.roster(self._there(lanes))

    def frames(self) -> NDArray[np.int32]:
        """int32 [n, 6], how the dragons in `decisions()` lie: column and row of the head, facing, 1 if the life is
        mirrored, width and height of the board."""
        frames: NDArray[np.int32] = self._matches.frames()[self.decisions().lane.numpy()]
        return frames

    def everyone(
        self, lanes: Tensor
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.uint8],
        NDArray[np.uint8],
    ]:
        """What a critic is told of every dragon that lives in `lanes` (int64 [k]), as if it acted now.

        lane, agent, dragon, team: [m] each; crop [m, 3600], scalars [m, 32]; by lane as they are given, then by dragon
        """
        return self._matches.everyone(self._there(lanes))

    def round(self, lane: int) -> int:
        """The round that a lane is in, 0 to 499."""
        return int(self._standing["round"][lane])

    def results(self, outcome: LoongOutcome) -> NDArray[np.void]:
        """How the ended matches ended, [e] with the fields of `_core.LOONG_LANE`.

        Among them: winner (0 nobody, 1 A, 2 B), reason (0 a team was out, 1 the round limit), round (the last one),
        level, seed, and of both teams, [e, 2]: dragons alive, their total length, that of the queen, the longest, and
        deaths, [e, 2, 5], by the causes in `loong_rows.DEATHS`.
        """
        ended: NDArray[np.void] = outcome.results.numpy().view(LANE)[:, 0]
        return ended

    def scripted(self, rows: Decisions, script: str | Tensor, *, seed: int = 0) -> Tensor:
        """What scripted players do in `rows`, which must be (some of) those of the last `decisions()`: uint8 [n, 80].

        script: a name of `SCRIPTS`, or its number for each row, int64 [n]
        seed:   of the players' own chance; what a dragon does is a function of it, of what it is told, and of who it is
        """
        numbers = script if isinstance(script, Tensor) else torch.full((len(rows),), script_number(script))
        if numbers.shape != rows.lane.shape or ((numbers < 0) | (numbers >= len(SCRIPTS))).any():
            raise SparringError(f"loong: script must be a name, or int64 [{len(rows)}] below {len(SCRIPTS)}")
        now = self.decisions()
        place = torch.full((self.lanes,), -1)
        place[now.lane] = torch.arange(len(now))
        at = place[rows.lane]
        if (at < 0).any() or any(
            not torch.equal(getattr(now, name)[at], getattr(rows, name)) for name in ("match", "agent", "decision")
        ):
            raise SparringError("loong: scripted players decide for dragons that wait now: give rows of decisions()")
        scripts = np.full((self.lanes, 2), _NOBODY, np.uint8)
        scripts[rows.lane.numpy(), rows.team.numpy()] = numbers.numpy()
        actions = np.zeros((self.lanes, ACTION.itemsize), np.uint8)
        self._matches.decide(scripts, seed & (2**64 - 1), actions)
        return torch.from_numpy(actions[rows.lane.numpy()])

    def state(self) -> dict[str, Tensor]:
        self.decisions()  # takes note of newborns
        return {
            "lanes": torch.from_numpy(self._matches.state()),
            "match": self._match.clone(),
            "longest": self._longest.clone(),
            "dragon": self._dragon.clone(),
            "decision": self._decision.clone(),
            "scripts": self._scripts.clone(),
            "told": self._told.clone(),
            "seed": torch.from_numpy(np.array([self._seed], np.uint64).view(np.int64)),
            "maps": torch.tensor(list(bytes.fromhex(self.maps.hash)), dtype=torch.uint8),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Raises SparringError for the state of another number of lanes, of other maps, or with other room."""
        own = self.state()
        for name, column in own.items():
            # Where dragons remember, the rows of lanes are as long as what they remember.
            free = name == "lanes" and self._knows
            if name not in state or state[name].shape[: 1 if free else None] != column.shape[: 1 if free else None]:
                raise SparringError(f"loong: the state is of other lanes, maps or options: {name} does not fit")
        if not torch.equal(state["maps"], own["maps"]):
            raise SparringError("loong: the state is of a game on other maps: give the same maps in the same order")
        try:
            self._matches.load_state(np.ascontiguousarray(state["lanes"]))
        except ValueError as error:
            raise SparringError(f"loong: {error}") from None
        for name, column in (
            ("match", self._match),
            ("longest", self._longest),
            ("dragon", self._dragon),
            ("decision", self._decision),
            ("scripts", self._scripts),
            ("told", self._told),
        ):
            column.copy_(state[name])
        self._seed = int(state["seed"].numpy().view(np.uint64)[0])
        self._rows = None
        self._refuse_faults()

    def _play_scripts(self) -> None:
        """Let scripted players act until somebody else waits."""
        self._rows = None
        if not self.learners.all():
            self._matches.play(self._scripts.numpy(), self._seed)
        self._refuse_faults()

    def _there(self, lanes: Tensor) -> NDArray[np.int64]:
        """Raises SparringError for a lane that is not."""
        wrong = lanes[(lanes < 0) | (lanes >= self.lanes)]
        if len(wrong):
            raise SparringError(f"loong: there is no lane {int(wrong[0])}: there are {self.lanes}")
        return np.ascontiguousarray(lanes, np.int64)

    def _look(self) -> LoongDecisions:
        """The rows of the lanes that wait. A dragon that was not met before in its slot starts a life."""
        if self._knows:
            self._matches.observe(self._inputs, self._masks)
        else:
            self._matches.look()
        at = np.flatnonzero(self._standing["waiting"])
        standing, lane = self._standing[at], torch.from_numpy(at)
        agent, dragon = _column(standing, "slot"), _column(standing, "dragon")
        born = self._dragon[lane, agent] != dragon
        self._dragon[lane[born], agent[born]] = dragon[born]
        self._decision[lane[born], agent[born]] = 0
        return LoongDecisions(
            lane=lane,
            match=self._match[lane],
            team=_column(standing, "team"),
            agent=agent,
            decision=self._decision[lane, agent],
            obs=torch.from_numpy(self._inputs[at] if self._knows else self._matches.views[at]),
            mask=torch.from_numpy(self._masks[at]) if self._knows else None,
            dragon=dragon,
            round=_column(standing, "round"),
        )

    def _outcome(self, rows: LoongDecisions) -> LoongOutcome:
        ended = (torch.from_numpy(self._standing["over"] != 0) & ~self._told).nonzero().view(-1)
        self._told[ended] = True
        standing = self._standing[ended.numpy()]
        a_wins = (standing["winner"] == 1).astype(np.float32) - (standing["winner"] == 2)
        result = torch.from_numpy(np.stack([a_wins, -a_wins], axis=1))  # by team
        score = torch.zeros(len(ended), self.agents)
        lane, agent, reward, last = [rows.lane], [rows.agent], [torch.zeros(len(rows))], [rows[rows.lane < 0]]
        for place, here in enumerate(ended):
            acted = rows.lane == here
            actor, there = rows[acted], self._alive(int(here))
            score[place, there.agent] = result[place, there.team]
            score[place, actor.agent] = result[place, actor.team]
            reward[0][acted] = score[place, actor.agent]
            others = there.agent[~torch.isin(there.agent, actor.agent)]
            lane.append(here.expand(len(others)))
            agent.append(others)
            reward.append(score[place, others])
            last.append(there if len(there) else actor)
        return LoongOutcome(
            lane=torch.cat(lane),
            agent=torch.cat(agent),
            reward=torch.cat(reward),
            ended=ended,
            truncated=torch.zeros(len(ended), dtype=torch.bool),
            score=score,
            length=self._longest[ended],
            last=_joined(last),
            results=torch.from_numpy(standing.view(np.uint8).reshape(-1, LANE.itemsize).copy()),
        )

    def _alive(self, lane: int) -> LoongDecisions:
        """The dragons of learners that live in a lane, by id."""
        alive = [each for each in self.dragons(lane) if self._scripts[lane, each.team] == _NOBODY]
        ids = torch.tensor([each[:3] for each in alive], dtype=torch.int64).reshape(-1, 3)
        last = self._matches.known_at_end if self._knows else self._matches.view_of
        told = [last(lane, each.agent) for each in alive]
        return LoongDecisions(
            lane=torch.full((len(alive),), lane),
            match=self._match[lane].expand(len(alive)),
            team=ids[:, 2],
            agent=ids[:, 1],
            decision=self._decision[lane, ids[:, 1]],
            obs=torch.from_numpy(np.array(told, np.uint8).reshape(-1, *self.observation.shape)),
            mask=torch.zeros(len(alive), MASK.itemsize, dtype=torch.uint8) if self._knows else None,
            dragon=ids[:, 0],
            round=torch.full((len(alive),), self.round(lane)),
        )

    def _luck(self, lane: int, match: int) -> NDArray[np.int64]:
        """Two numbers of 62 random bits: for the level and for the match seed."""
        seed = _core.mix64(self._seed ^ _core.mix64(lane))
        return _core.integers(seed, _LUCK, match, 2, 1 << _SEED_BITS)

    def _refuse_faults(self) -> None:
        for lane in np.flatnonzero(self._standing["fault"]):
            row = self._standing[lane]
            why = _FAULTS[int(row["fault"])]
            where = f"lane {lane}, map {self.maps[int(row['level'])].source}, match seed {int(row['seed'])}"
            raise SparringError(f"loong: {where}, round {int(row['round'])}: {why}; its match does not count")


def script_number(name: str) -> int:
    """Its place in `SCRIPTS`. Raises SparringError."""
    if name not in SCRIPTS:
        raise SparringError(f"loong: no scripted player {name}: there are {', '.join(SCRIPTS)}")
    return SCRIPTS.index(name)


def _level(each: PoolMap) -> _core.LoongLevel:
    try:
        level = _core.loong_level(each.file)
    except RuntimeError as error:  # more tiles or dragons than a lane can have
        raise SparringError(f"loong: {each.source}: {error}") from None
    if isinstance(level, bytes):
        raise SparringError(f"loong: {each.source}: {level.decode(errors='replace')}")
    return level


def _column(rows: NDArray[np.void], name: str) -> Tensor:
    return torch.from_numpy(rows[name].astype(np.int64))


def _joined(parts: list[LoongDecisions]) -> LoongDecisions:
    names = ["lane", "match", "team", "agent", "decision", "obs", "dragon", "round"]
    names += ["mask"] if parts[0].mask is not None else []
    columns: dict[str, Any] = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    return LoongDecisions(**columns)
