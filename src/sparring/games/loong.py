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
from sparring.games.loong_cuda import CudaMatches
from sparring.games.loong_host import Everyone, HostMatches
from sparring.games.loong_rows import ACTION, LANE, PLAYERS, RANDOM_DRAWS, SCRIPTS, VIEW, random_actions, views
from sparring.levels.pool import MapPool, PoolMap, named_maps

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
    3: "it was given a number that is no choice of its dragon",
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

    Of a game on a GPU `ended` and `results` lie on the CPU, where the next matches are started.
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
    device:   where matches are played and all rows lie; `act` waits for it once

    On a GPU all of it is played there, by the same functions, with the same bytes in all rows, and an action that is
    none ends the run with the next call. What only people ask (`dragons`, `pearls`, `view_of`) is copied from there.
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
        device: str | torch.device = "cpu",
    ) -> None:
        """Start a match in every lane.

        maps:    "generated:SEED:COUNT" (made once, then kept in the cache folder), "shipped" (those of the installed
                 judge), a folder, a list of folders and map files, or a pool
        threads: that play the lanes; the result is the same
        observe: "view", what the judge tells a dragon; "inputs", what it knows
        mirror:  with "inputs": "coin", half of all lives see the world mirrored, or "never", or "always"
        build:   with "inputs": of a bot, whose packets alone dragons understand
        lean:    less room for messages; a lane that needs more ends the run
        device:  "cpu", or with "inputs" "cuda", where `threads` mean nothing

        Raises SparringError for an option that is not one of these, and without the device, MapError for a map that the
        judge refuses.
        """
        for what, number in (("lanes", lanes), ("threads", threads)):
            if number < 1:
                raise SparringError(f"loong: {what} must be 1 or more, got {number}")
        if observe not in ("view", "inputs"):
            raise SparringError(f'loong: observe must be "view" or "inputs", got "{observe}"')
        if mirror not in ("coin", "never", "always"):
            raise SparringError(f'loong: mirror must be "coin", "never" or "always", got "{mirror}"')
        if torch.device(device).type not in ("cpu", "cuda"):
            raise SparringError(f'loong: device must be "cpu" or "cuda", got "{device}"')
        if torch.device(device).type == "cuda" and observe != "inputs":
            raise SparringError('loong: on a GPU dragons remember: give observe="inputs"')
        self.lanes = lanes
        self.maps = named_maps(maps)
        self._knows = observe == "inputs"
        levels = [_level(each) for each in self.maps]
        options: dict[str, Any] = {"lean": lean, "knowledge": self._knows, "mirror": mirror, "build": build}
        self._matches: HostMatches | CudaMatches = (
            HostMatches(levels, lanes, threads=threads, **options)
            if torch.device(device).type == "cpu"
            else CudaMatches(levels, lanes, device=device, **options)
        )
        self.device = self._matches.device
        if self._knows:
            self.observation = Box(shape=(INPUTS.itemsize,), low=0, high=127, dtype=torch.uint8)
            self.action = Structured(shape=(), dtype=torch.int64, draws=CHOICE_DRAWS, sample=random_choices)
            self._inputs, self._masks = (
                torch.zeros(lanes, row.itemsize, dtype=torch.uint8, device=self.device) for row in (INPUTS, MASK)
            )
        self.agents = self._matches.slots
        self._seed = seed & (2**64 - 1)
        rows = self._matches.rows
        names = ("waiting", "over", "fault", "team", "slot", "dragon", "round", "level")
        self._now = {name: _field(rows, name) for name in names}
        self._every = torch.arange(lanes, device=self.device)
        self._match = torch.full((lanes,), -1, device=self.device)
        self._longest = torch.zeros(lanes, dtype=torch.int64, device=self.device)
        self._dragon = torch.full((lanes, self.agents), -1, device=self.device)
        self._decision = torch.zeros(lanes, self.agents, dtype=torch.int64, device=self.device)
        self._scripts = torch.full((lanes, self.teams), _NOBODY, dtype=torch.uint8)  # on the CPU
        self._told = torch.zeros(lanes, dtype=torch.bool, device=self.device)
        """Lanes of whose match some outcome has told the end."""
        self._learners = (self._scripts == _NOBODY).to(self.device)
        self._waiting = self._ended = 0
        """Lanes that wait, and those whose end is to be told."""
        self._rows: LoongDecisions | None = None
        self.restart(torch.arange(lanes))

    @property
    def learners(self) -> Tensor:
        return self._learners

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
        done = self._by_lane("actions", rows, actions)
        try:
            self._matches.act(done)
        except ValueError as error:
            raise SparringError(f"loong: {error}; sparring.games.loong_rows has move, sprint, split and send") from None
        return self._acted(rows)

    def _act_packed(self, rows: LoongDecisions, actions: Tensor, given: Tensor | None) -> LoongOutcome:
        if actions.dtype != torch.int64 or actions.shape != (len(rows),):
            wanted = f"int64 [{len(rows)}]"
            raise SparringError(f"loong: actions must be {wanted}, got {actions.dtype} {list(actions.shape)}")
        packed = torch.full((self.lanes,), GIVEN, device=self.device)
        packed[rows.lane] = actions
        done = None if given is None else self._by_lane("given", rows, given)
        try:
            self._matches.act_packed(packed, done)
        except ValueError as error:
            raise SparringError(f"loong: {error}") from None
        return self._acted(rows)

    def _by_lane(self, what: str, rows: LoongDecisions, actions: Tensor) -> Tensor:
        """Rows of actions for all lanes: uint8 [lanes, 80]."""
        if actions.dtype != torch.uint8 or actions.shape != (len(rows), ACTION.itemsize):
            wanted = f"uint8 [{len(rows)}, {ACTION.itemsize}]"
            raise SparringError(f"loong: {what} must be {wanted}, got {actions.dtype} {list(actions.shape)}")
        done = torch.zeros(self.lanes, ACTION.itemsize, dtype=torch.uint8, device=self.device)
        done[rows.lane] = actions
        return done

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
        """Start a new match in `lanes` (int64 [k], each once). All arguments lie on the CPU.

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
        there = lanes.to(self.device)
        self._match[there] += 1
        starting = zip(lanes.tolist(), self._match[there].tolist(), strict=True)
        luck = torch.tensor([self._luck(lane, match).tolist() for lane, match in starting]).view(-1, 2).long()
        self._matches.restart(
            lanes, luck[:, 0] % len(self.maps) if levels is None else levels, luck[:, 1] if seeds is None else seeds
        )
        self._scripts[lanes] = scripts
        self._seat()
        self._told[there] = False
        self._longest[there] = 0
        self._dragon[there] = -1
        self._decision[there] = 0
        self._play_scripts()

    def view(self, rows: Decisions) -> NDArray[np.void]:
        """What the dragons are told, [n] with the fields of `_core.LOONG_VIEW`."""
        return views(rows.obs)

    def dragons(self, lane: int) -> list[LivingDragon]:
        """Those that live in a lane, by id. Nobody who plays may know."""
        batch, place = self._matches.alone(lane)
        return [LivingDragon(*each) for each in batch.dragons(place)]

    def pearls(self, lane: int) -> NDArray[np.bool_]:
        """bool [height, width], where a pearl lies. Nobody who plays may know."""
        batch, place = self._matches.alone(lane)
        return batch.pearls(place).astype(bool)

    def view_of(self, lane: int, agent: int) -> NDArray[np.void]:
        """What a dragon that lives would be told if it were asked now, [1] with the fields of `_core.LOONG_VIEW`."""
        batch, place = self._matches.alone(lane)
        told: NDArray[np.void] = batch.view_of(place, agent).view(VIEW)
        return told

    def appraise(self) -> tuple[Tensor, Tensor]:
        """What a critic is told of the dragons in `decisions()`, row by row: crop [n, 3600], scalars [n, 32], uint8.

        Nobody who plays may know. Names: `_core.LOONG_PRIVILEGED`.
        """
        waiting = self.decisions().lane
        crop, scalars = self._matches.appraise()
        return (crop, scalars) if len(waiting) == self.lanes else (crop[waiting], scalars[waiting])

    def boards(self, lanes: Tensor) -> tuple[Tensor, Tensor]:
        """What a critic is told of both teams of `lanes` (int64 [k], each once): uint8, boards [k, 2, 4096], scalars
        [k, 2, 32]."""
        return self._matches.boards(self._there(lanes))

    def standings(self) -> Tensor:
        """int32 [lanes, 2, 4], of both teams as of now: living dragons, their total length, the queen's or 0, the
        longest."""
        return self._matches.standings()

    def roster(self, lanes: Tensor) -> Tensor:
        """int32 [k, agents, 5], by slot of `lanes` (int64 [k]): the dragon's id, its team, column and row of its head,
        its length; -1 where no dragon lives."""
        return self._matches.roster(self._there(lanes))

    def frames(self) -> Tensor:
        """int32 [n, 6], how the dragons in `decisions()` lie: column and row of the head, facing, 1 if the life is
        mirrored, width and height of the board."""
        return self._matches.frames()[self.decisions().lane]

    def everyone(self, lanes: Tensor) -> Everyone:
        """What a critic is told of every dragon that lives in `lanes` (int64 [k]), as if it acted now."""
        return self._matches.everyone(self._there(lanes))

    def round(self, lane: int) -> int:
        """The round that a lane is in, 0 to 499."""
        return int(self._now["round"][lane])

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
        place = torch.full((self.lanes,), -1, device=self.device)
        place[now.lane] = torch.arange(len(now), device=self.device)
        at = place[rows.lane]
        if (at < 0).any() or any(
            not torch.equal(getattr(now, name)[at], getattr(rows, name)) for name in ("match", "agent", "decision")
        ):
            raise SparringError("loong: scripted players decide for dragons that wait now: give rows of decisions()")
        scripts = torch.full((self.lanes, 2), _NOBODY, dtype=torch.uint8, device=self.device)
        scripts[rows.lane, rows.team] = numbers.to(self.device, torch.uint8)
        actions = torch.zeros(self.lanes, ACTION.itemsize, dtype=torch.uint8, device=self.device)
        self._matches.decide(scripts, seed & (2**64 - 1), actions)
        return actions[rows.lane]

    def state(self) -> dict[str, Tensor]:
        self.decisions()  # takes note of newborns
        return {
            "lanes": self._matches.state(),
            **{name: column.to("cpu", copy=True) for name, column in self._columns().items()},
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
            self._matches.load_state(state["lanes"])
        except ValueError as error:
            raise SparringError(f"loong: {error}") from None
        for name, column in self._columns().items():
            column.copy_(state[name])
        self._seat()
        self._seed = int(state["seed"].numpy().view(np.uint64)[0])
        self._rows = None
        self._take_stock()

    def _columns(self) -> dict[str, Tensor]:
        return {
            "match": self._match,
            "longest": self._longest,
            "dragon": self._dragon,
            "decision": self._decision,
            "scripts": self._scripts,
            "told": self._told,
        }

    def _seat(self) -> None:
        """Whoever plays has changed."""
        learns = self._scripts == _NOBODY
        self._learners = learns.to(self.device)
        self._scripted = not learns.all()
        if self._scripted:
            self._matches.seat(self._scripts)

    def _play_scripts(self) -> None:
        """Let scripted players act until somebody else waits."""
        self._rows = None
        if self._scripted:
            self._matches.play(self._seed)
        self._take_stock()

    def _take_stock(self) -> None:
        """How many lanes wait and have ended, the one thing that a GPU is waited for."""
        now = self._now
        counts = (now["waiting"].sum(), ((now["over"] != 0) & ~self._told).sum(), now["fault"].sum())
        self._waiting, self._ended, faults = torch.stack(counts).tolist()
        if faults:
            self._refuse_faults()

    def _there(self, lanes: Tensor) -> Tensor:
        """Raises SparringError for a lane that is not. Not looked for on a GPU, which would have to be waited for."""
        if lanes.device.type == "cpu":
            wrong = lanes[(lanes < 0) | (lanes >= self.lanes)]
            if len(wrong):
                raise SparringError(f"loong: there is no lane {int(wrong[0])}: there are {self.lanes}")
        return lanes

    def _look(self) -> LoongDecisions:
        """The rows of the lanes that wait. A dragon that was not met before in its slot starts a life."""
        if self._knows:
            self._matches.observe(self._inputs, self._masks)
        else:
            self._matches.look()
        lane = self._every if self._waiting == self.lanes else self._now["waiting"].nonzero().view(-1)
        agent, dragon, team, round_ = (self._now[name][lane].long() for name in ("slot", "dragon", "team", "round"))
        born = self._dragon[lane, agent] != dragon
        decision = torch.where(born, 0, self._decision[lane, agent])
        self._dragon[lane, agent] = dragon
        self._decision[lane, agent] = decision
        return LoongDecisions(
            lane=lane,
            match=self._match[lane],
            team=team,
            agent=agent,
            decision=decision,
            obs=(self._inputs if self._knows else self._matches.views).index_select(0, lane),
            mask=self._masks.index_select(0, lane) if self._knows else None,
            dragon=dragon,
            round=round_,
        )

    def _outcome(self, rows: LoongDecisions) -> LoongOutcome:
        nobody = torch.zeros(0, dtype=torch.int64, device=self.device)
        ended = ((self._now["over"] != 0) & ~self._told).nonzero().view(-1) if self._ended else nobody
        self._told[ended] = True
        results = self._matches.rows[ended].cpu()
        winner = torch.from_numpy(results.numpy().view(LANE)["winner"].astype(np.int64))  # [e, 1]
        sides = torch.tensor([1, 2])
        result = torch.where(winner == 0, 0.0, torch.where(winner == sides, 1.0, -1.0)).to(self.device)  # by team
        score = torch.zeros(len(ended), self.agents, device=self.device)
        reward, last = torch.zeros(len(rows), device=self.device), rows[nobody]
        lane, agent, rewards = rows.lane, rows.agent, reward
        if self._ended:
            place = torch.full((self.lanes,), -1, device=self.device)
            place[ended] = torch.arange(len(ended), device=self.device)
            acted = (place[rows.lane] >= 0).nonzero().view(-1)
            actors, alive = rows[acted], self._alive(ended)
            for each in (alive, actors):
                score[place[each.lane], each.agent] = result[place[each.lane], each.team]
            reward[acted] = score[place[actors.lane], actors.agent]
            actor = torch.full((len(ended),), -1, device=self.device)
            actor[place[actors.lane]] = actors.agent
            others = alive[alive.agent != actor[place[alive.lane]]]
            lane, agent = torch.cat((lane, others.lane)), torch.cat((agent, others.agent))
            rewards = torch.cat((reward, score[place[others.lane], others.agent]))
            left = _joined([alive, actors[~torch.isin(actors.lane, alive.lane)]])
            last = left[place[left.lane].argsort(stable=True)]
        return LoongOutcome(
            lane=lane,
            agent=agent,
            reward=rewards,
            ended=ended.cpu(),
            truncated=torch.zeros(len(ended), dtype=torch.bool, device=self.device),
            score=score,
            length=self._longest[ended],
            last=last,
            results=results,
        )

    def _alive(self, lanes: Tensor) -> LoongDecisions:
        """The dragons of learners that live in lanes whose matches are over, by lane as they are given, then by id."""
        roster = self._matches.roster(lanes).long()
        place, agent = (roster[:, :, 0] >= 0).nonzero(as_tuple=True)
        dragon, team = roster[place, agent, 0], roster[place, agent, 1]
        order = dragon.argsort(stable=True)
        order = order[place[order].argsort(stable=True)]
        order = order[self._learners[lanes[place], team][order]]
        lane, agent = lanes[place][order], agent[order]
        return LoongDecisions(
            lane=lane,
            match=self._match[lane],
            team=team[order],
            agent=agent,
            decision=self._decision[lane, agent],
            obs=self._matches.told_at_end(lane, agent, known=self._knows),
            mask=torch.zeros(len(lane), MASK.itemsize, dtype=torch.uint8, device=self.device) if self._knows else None,
            dragon=dragon[order],
            round=self._now["round"][lane].long(),
        )

    def _luck(self, lane: int, match: int) -> NDArray[np.int64]:
        """Two numbers of 62 random bits: for the level and for the match seed."""
        seed = _core.mix64(self._seed ^ _core.mix64(lane))
        return _core.integers(seed, _LUCK, match, 2, 1 << _SEED_BITS)

    def _refuse_faults(self) -> None:
        for lane, row in enumerate(self._matches.rows.cpu().numpy().view(LANE)[:, 0]):
            if row["fault"] == 0:
                continue
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


def _field(rows: Tensor, name: str) -> Tensor:
    """A field of all lanes, [lanes], in the memory of their rows; numbers of 32 bits are signed."""
    assert LANE.fields is not None
    kind, at = LANE.fields[name][:2]
    signed = {1: torch.uint8, 4: torch.int32}[kind.itemsize]
    return rows[:, at : at + kind.itemsize].view(signed)[:, 0]


def _joined(parts: list[LoongDecisions]) -> LoongDecisions:
    names = ["lane", "match", "team", "agent", "decision", "obs", "dragon", "round"]
    names += ["mask"] if parts[0].mask is not None else []
    columns: dict[str, Any] = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    return LoongDecisions(**columns)
