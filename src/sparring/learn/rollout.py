"""A rollout of Loong: what the learner's dragons saw and did in every lane, and how their streams of value meet.

Every lane makes the same number of decisions, so that each batch is full; whoever plays one side of a lane, only the
learner's rows are kept. A block is the rows of one team in one lane: it shares boards, so minibatches keep it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring.games.loong import Loong, LoongDecisions
from sparring.learn.auxiliary import Future, rounds_ahead
from sparring.learn.hardware import CPU, Hardware
from sparring.learn.lives import Rounds, by_life, room, stretches
from sparring.learn.noise import choice_uniforms
from sparring.policies.actions import PARTS
from sparring.policies.critic import CROP_PLANES, CROP_SIDE, DRAGON_SCALARS
from sparring.policies.loong import Teacher

LEADS = (0.02, 0.01, 0.05)
"""What a lead of one segment is worth in the potential: of the longest dragon, of all together, of the queen."""
FRAME = 6
"""Numbers of a row of `Loong.frames`."""
_LED = (3, 1, 2)
"""Where `Loong.standings` has these."""
_FAR = 1 << 40
"""A tick later than any round."""
_ROUND_BITS = 9
_MATCH_BITS = 29
"""Matches that a lane can play, as powers of two: with 2^24 lanes, 2 teams and 512 rounds, 63 bits."""


def potentials(standings: Tensor) -> Tensor:
    """Leads of both teams as potentials: [..., 2, 4] as the game tells standings -> float32 [..., 2].

    Sums of products are exact in float64, so they are the same on every device.
    """
    worth = sum(float(np.float32(lead)) * standings[..., at].double() for at, lead in zip(_LED, LEADS, strict=True))
    assert isinstance(worth, Tensor)
    return (worth - worth.flip(-1)).float()


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The moments of a rollout that have a value, in the order: n decisions, m rounds of teams, ends.

    successor, tick: int64 [nodes], reward: float32 [nodes], as `returns.advantages` takes them
    potential:  float32 [nodes], for a shaping of scale 1
    board, team: uint8 [b, 4096] and [b, 32], what the critic sees of a team in a round; block: int64 [b], whose it is
    board_of:   int64 [n + k], the board of each decision and of each of the k lives that the rollout leaves open
    crop, scalars: uint8 [n + k, ...], what it sees of them
    valued:     int64 [b], the node whose value is V_T of that board
    opened:     int64 [k], the nodes whose values are those of the open lives
    """

    successor: Tensor
    tick: Tensor
    reward: Tensor
    potential: Tensor
    board: Tensor
    team: Tensor
    block: Tensor
    board_of: Tensor
    crop: Tensor
    scalars: Tensor
    valued: Tensor
    opened: Tensor


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """n decisions of the learner, block after block, within it life after life, in order of time.

    inputs: uint8 [n, 9424]; mask: uint8 [n, 40]; action: int64 [n]; log_prob: float32 [n, 6], by part
    memory: float32 [n, width], before the decision
    block:  int64 [n], lane * 2 + team; match, dragon, round: int64 [n]
    first:  bool [n], the first decision of its life in this rollout
    """

    inputs: Tensor
    mask: Tensor
    action: Tensor
    log_prob: Tensor
    memory: Tensor
    block: Tensor
    match: Tensor
    dragon: Tensor
    round: Tensor
    first: Tensor
    nodes: Nodes
    future: Future

    def __len__(self) -> int:
        return len(self.action)

    def stretches(self, most: int) -> tuple[Tensor, Tensor]:
        """First rows and lengths (int64 [s] each) of the lives' decisions, cut every `most`."""
        return stretches(self.first, most)


class Listener(Protocol):
    """Hears of ended matches while a rollout is collected."""

    def round_began(self, rows: LoongDecisions, fresh: Tensor, standings: Tensor) -> None:
        """A round began in the lanes of rows `fresh` (int64 [k]) with these standings of all lanes, [lanes, 2, 4]."""
        ...

    def ended(self, lanes: Tensor, results: NDArray[np.void]) -> None:
        """These lanes (int64 [e], on the CPU) ended with these results, [e] of `Loong.results`; start the next matches
        here."""
        ...


class Collector:
    """Plays the teacher in every lane of a game, and keeps what the learner needs.

    Memories follow lane and slot, and start at zero with a life.
    """

    def __init__(self, game: Loong, teacher: Teacher, *, seed: int, stream: int, hardware: Hardware = CPU) -> None:
        """hardware: where game and teacher are, and what is collected."""
        self.game, self.teacher, self.hardware = game, teacher, hardware
        self.seed, self.stream = seed, stream
        self.memory = torch.zeros(game.lanes, game.agents, teacher.config.memory, device=hardware.device)
        self._columns: dict[str, Tensor] = {}

    def collect(self, steps: int, listener: Listener) -> Rollout:
        """Make `steps` decisions in every lane."""
        game = self.game
        teams, rounds = _Teams(game), Rounds()
        columns = self._room(steps)
        self.teacher.eval()
        results = _Results(game.device)
        for step in range(steps):
            rows = game.decisions()
            standings = game.standings()
            fresh = rounds.begin(rows)
            if len(fresh):
                teams.note(rows, fresh, standings)
                listener.round_began(rows, fresh, standings)
            crop, scalars = game.appraise()
            assert rows.mask is not None
            memory = self.memory[rows.lane, rows.agent]
            memory.masked_fill_((rows.decision == 0).unsqueeze(1), 0.0)
            uniforms = choice_uniforms(
                rows.lane, rows.match, rows.dragon, rows.round, seed=self.seed, stream=self.stream
            )
            with torch.inference_mode(), self.hardware.precision():
                tree, after = self.teacher.step(rows.obs, rows.mask, memory)
                action, log_prob = tree.sample(uniforms)
            self.memory[rows.lane, rows.agent] = after
            values = {
                "inputs": rows.obs,
                "mask": rows.mask,
                "action": action,
                "log_prob": log_prob,
                "memory": memory,
                "crop": crop,
                "scalars": scalars,
                "team": rows.team,
                "agent": rows.agent,
                "match": rows.match,
                "dragon": rows.dragon,
                "round": rows.round,
                "potential": potentials(standings)[rows.lane, rows.team],
                "board_of": teams.board_of(rows),
                "frame": game.frames(),
            }
            for name, value in values.items():
                columns[name][step] = value
            outcome = game.act(action)
            if len(outcome.ended):
                ended = game.results(outcome)
                lanes = outcome.ended.to(game.device)
                results.note(lanes, rows.match[lanes], ended["winner"])
                listener.ended(outcome.ended, ended)
        return _rollout(columns, teams, results, game)

    def state(self) -> dict[str, Tensor]:
        return {"memory": self.memory}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.memory.copy_(state["memory"])

    def _room(self, steps: int) -> dict[str, Tensor]:
        """Columns [steps, lanes, ...], kept from one rollout to the next."""
        if not self._columns or len(self._columns["action"]) != steps:
            rows = self.game.decisions()
            assert rows.mask is not None
            shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
                "inputs": (tuple(rows.obs.shape[1:]), torch.uint8),
                "mask": (tuple(rows.mask.shape[1:]), torch.uint8),
                "log_prob": ((len(PARTS),), torch.float32),
                "memory": ((self.teacher.config.memory,), torch.float32),
                "crop": ((CROP_SIDE**2 * CROP_PLANES,), torch.uint8),
                "scalars": ((DRAGON_SCALARS,), torch.uint8),
                "potential": ((), torch.float32),
                "frame": ((FRAME,), torch.int32),
            }
            for name in ("action", "team", "agent", "match", "dragon", "round", "board_of"):
                shapes[name] = ((), torch.int64)
            self._columns = room(shapes, steps, self.game.lanes, self.game.device)
        return self._columns


class _Teams:
    """The rounds of the learner's teams: boards, potentials, and who lived when the round began."""

    def __init__(self, game: Loong) -> None:
        self._game = game
        self._latest = torch.full((game.lanes, 2), -1, device=game.device)
        self.boards: list[Tensor] = []
        self.teams: list[Tensor] = []
        self.rosters: list[Tensor] = []
        self.columns: dict[str, list[Tensor]] = {name: [] for name in ("lane", "team", "match", "round", "roster")}
        self.potential: list[Tensor] = []
        self._nodes = self._rosters = 0

    def note(self, rows: LoongDecisions, fresh: Tensor, standings: Tensor) -> None:
        """A round began in the lanes of rows `fresh`."""
        lanes = rows.lane[fresh]
        self.rosters.append(self._game.roster(lanes))
        self.add(lanes, rows.match[fresh], rows.round[fresh], standings)

    def add(self, lanes: Tensor, match: Tensor, round_: Tensor, standings: Tensor) -> None:
        board, team = self._game.boards(lanes)
        place, side = self._game.learners[lanes].nonzero(as_tuple=True)
        self.boards.append(board[place, side])
        self.teams.append(team[place, side])
        self.potential.append(potentials(standings)[lanes[place], side])
        values = (lanes[place], side, match[place], round_[place], self._rosters + place)
        for name, value in zip(self.columns, values, strict=True):
            self.columns[name].append(value)
        self._latest[lanes[place], side] = self._nodes + torch.arange(len(place), device=lanes.device)
        self._nodes += len(place)
        self._rosters += len(lanes)

    def board_of(self, rows: LoongDecisions) -> Tensor:
        return self._latest[rows.lane, rows.team]


class _Results:
    """Who won the matches that ended."""

    def __init__(self, device: torch.device) -> None:
        none = torch.zeros(0, dtype=torch.int64, device=device)
        self._columns = [(none, none, none)]  # lane, match, winner

    def note(self, lane: Tensor, match: Tensor, winner: NDArray[np.uint16]) -> None:
        self._columns.append((lane, match, torch.from_numpy(winner.astype(np.int64)).to(lane.device)))

    def of(self, lane: Tensor, match: Tensor, team: Tensor) -> Tensor:
        """float32 [n]: what they were for teams of matches that ended, 1, 0 or -1."""
        lanes, matches, winners = (torch.cat(column) for column in zip(*self._columns, strict=True))
        at = _Places(_match_number(lanes, matches)).find(_match_number(lane, match))
        assert (at >= 0).all(), "a match is over whose result nobody told"
        return torch.where(winners[at] == 0, 0.0, torch.where(winners[at] == team + 1, 1.0, -1.0))


def _rollout(columns: Mapping[str, Tensor], teams: _Teams, results: _Results, game: Loong) -> Rollout:
    rows, first = by_life(columns)
    block = rows["block"]
    nodes = _nodes(rows, block, first, teams, results, game)
    return Rollout(
        inputs=rows["inputs"],
        mask=rows["mask"],
        action=rows["action"],
        log_prob=rows["log_prob"],
        memory=rows["memory"],
        block=block,
        match=rows["match"],
        dragon=rows["dragon"],
        round=rows["round"],
        first=first,
        nodes=nodes,
        future=_future(rows, block, teams),
    )


def _future(rows: Mapping[str, Tensor], block: Tensor, teams: _Teams) -> Future:
    """Both teams of a lane share its rosters, so the starts of rounds are looked up by lane."""
    rosters = torch.cat(teams.rosters)
    lane, match, round_, roster = (torch.cat(teams.columns[name]) for name in ("lane", "match", "round", "roster"))
    noted = roster < len(rosters)  # not where the rollout stops, in the middle of a round
    number = _match_number(lane, match)
    start = torch.full((2, len(rosters)), -1, device=block.device)
    start[:, roster[noted]] = torch.stack((number[noted], round_[noted]))
    ahead = rounds_ahead(_match_number(block // 2, rows["match"]), rows["round"], *start)
    return Future(rosters=rosters, ahead=ahead, frame=rows["frame"], slot=rows["agent"])


def _nodes(
    rows: Mapping[str, Tensor], block: Tensor, first: Tensor, teams: _Teams, results: _Results, game: Loong
) -> Nodes:
    n, device = len(block), block.device
    everywhere = torch.arange(game.lanes, device=device)
    standings = game.standings()
    played = {name: torch.cat(column) for name, column in teams.columns.items()}
    m = len(played["lane"])
    # Where the rollout stops: each of the learner's teams, and each of its dragons that lives.
    now = game.decisions()
    teams.add(everywhere, now.match, now.round, standings)
    ends = {name: torch.cat(column)[m:] for name, column in teams.columns.items()}
    everyone = game.everyone(everywhere)
    learns = game.learners[everyone.lane, everyone.team].nonzero().view(-1)
    open_lane, open_slot, open_dragon, open_team, open_crop, open_scalars = (column[learns] for column in everyone)
    k, e = len(open_lane), len(ends["lane"])
    team_end = torch.full((game.lanes, 2), -1, device=device)
    """Nodes of the teams where the rollout stops; so are those of dragons, by slot, and which these are."""
    team_end[ends["lane"], ends["team"]] = n + m + torch.arange(e, device=device)
    life_end, open_in = torch.full((2, game.lanes, game.agents), -1, device=device)
    life_end[open_lane, open_slot] = n + m + e + torch.arange(k, device=device)
    open_in[open_lane, open_slot] = open_dragon
    over = n + m + e + k
    """The end of every match."""
    starts = _Places(_team_in_round(played["lane"], played["match"], played["team"], played["round"]))
    rosters = torch.cat(teams.rosters)

    successor = torch.full((over + 1,), -1, device=device)
    goes_on = torch.zeros(n, dtype=torch.bool, device=device)
    goes_on[:-1] = ~first[1:]
    successor[:n][goes_on] = goes_on.nonzero().view(-1) + 1
    last = (~goes_on).nonzero().view(-1)
    lane, team = block[last] // 2, block[last] % 2
    match, dragon, round_, slot = (rows[name][last] for name in ("match", "dragon", "round", "agent"))
    lives = (match == now.match[lane]) & (open_in[lane, slot] == dragon)
    successor[last] = torch.where(lives, life_end[lane, slot], -1)
    # The others died in the round of their last decision, or in the next one before their turn.
    following = starts.find(_team_in_round(lane, match, team, round_ + 1))
    survived = (following >= 0) & (rosters[played["roster"][following], slot, 0] == dragon)
    # They go on in their team, as it does from one round to the next.
    dead = ~lives
    nodes = torch.cat((last[dead], torch.arange(n, n + m, device=device)))
    lane, match, team = (
        torch.cat((of_dead[dead], played[name])) for name, of_dead in (("lane", lane), ("match", match), ("team", team))
    )
    round_ = torch.cat(((round_ + 1 + survived)[dead], played["round"] + 1))
    following = starts.find(_team_in_round(lane, match, team, round_))
    stops = torch.where(match == now.match[lane], team_end[lane, team], over)
    successor[nodes] = torch.where(following >= 0, n + following, stops)
    reward = torch.zeros(over + 1, device=device)
    ended = (successor[nodes] == over).nonzero().view(-1)
    reward[nodes[ended]] = results.of(lane[ended], match[ended], team[ended])

    tick = torch.full((over + 1,), _FAR, device=device)
    tick[:n] = 2 * rows["round"] + 1
    tick[n : n + m] = 2 * played["round"]
    potential = torch.zeros(over + 1, device=device)
    potential[:n] = rows["potential"]
    potential[n : n + m + e] = torch.cat(teams.potential)
    potential[n + m + e : over] = potentials(standings)[open_lane, open_team]
    return Nodes(
        successor=successor,
        tick=tick,
        reward=reward,
        potential=potential,
        board=torch.cat(teams.boards),
        team=torch.cat(teams.teams),
        block=torch.cat((played["lane"] * 2 + played["team"], ends["lane"] * 2 + ends["team"])),
        board_of=torch.cat((rows["board_of"], team_end[open_lane, open_team] - n)),
        crop=torch.cat((rows["crop"], open_crop)),
        scalars=torch.cat((rows["scalars"], open_scalars)),
        valued=torch.arange(n, n + m + e, device=device),
        opened=torch.arange(n + m + e, over, device=device),
    )


class _Places:
    """Finds numbers among some numbers that are all different."""

    def __init__(self, numbers: Tensor) -> None:
        """numbers: int64 [k]"""
        self._sorted, self._order = numbers.sort()

    def find(self, wanted: Tensor) -> Tensor:
        """int64 [j] -> int64 [j]: the place of each, -1 of those that are not there."""
        if len(self._sorted) == 0:
            return torch.full_like(wanted, -1)
        at = torch.searchsorted(self._sorted, wanted).clamp_max(len(self._sorted) - 1)
        return torch.where(self._sorted[at] == wanted, self._order[at], -1)


def _match_number(lane: Tensor, match: Tensor) -> Tensor:
    """A number that no two matches share."""
    return lane << _MATCH_BITS | match


def _team_in_round(lane: Tensor, match: Tensor, team: Tensor, round_: Tensor) -> Tensor:
    """A number that no two rounds of any team share."""
    return (_match_number(lane, match) << 1 | team) << _ROUND_BITS | round_
