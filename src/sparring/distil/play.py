"""Lanes of Loong in which one network plays, and another one follows the lives that it lived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from sparring import _core
from sparring.games.loong import Loong
from sparring.learn.auxiliary import lengths_ahead, rounds_ahead
from sparring.learn.lives import Rounds, by_life, room, stretches
from sparring.learn.noise import choice_uniforms
from sparring.learn.opponents import draw_opponents, start_matches
from sparring.policies.actions import Tree

# Streams of the counter-based generator, one for each thing that is sampled; a run's learner has those from 11 on.
STREAM_CHOICES, STREAM_LEVELS, STREAM_OPPONENTS, STREAM_PATHS = 21, 22, 23, 24
BURN_IN = 32
"""Decisions of an open life without a label after a change of teacher: what the new one remembers of the life is worth
nothing before (R2D2, Kapturowski et al. 2019)."""
CHUNK = 1024
"""Decisions that a network follows at once, about: as many as its products are fast with."""


class Plays(Protocol):
    """A network that plays."""

    def newborn(self, n: int) -> Tensor: ...

    def step(self, inputs: Tensor, mask: Tensor, memory: Tensor) -> tuple[Tree, Tensor]: ...


class Follows(Protocol):
    """A network that reads what another one lived."""

    def sequence(self, inputs: Tensor, mask: Tensor, lengths: Tensor, memory: Tensor) -> tuple[Tree, Tensor, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Played:
    """n decisions of a rollout, block after block, within it life after life, in order of time.

    inputs: uint8 [n, 9424]; mask: uint8 [n, 40]; action: int64 [n]
    memory:   float32 [n, width], of the network that played, before the decision
    labelled: bool [n], the teacher knows the life well enough to tell what to do
    block:    int64 [n], lane * 2 + team; slot: int64 [n], lane * agents + agent; match, dragon, round, decision, time:
              int64 [n]
    first:    bool [n], the first decision of its life in this rollout
    lengths:  float32 [n, 2], the dragon's own after 16 and 64 rounds, 0 once dead, NaN where the rollout stops before
    winner:   int64 [n], of its match: 0 nobody, 1 team A, 2 team B, -1 where the match goes on
    """

    inputs: Tensor
    mask: Tensor
    action: Tensor
    memory: Tensor
    labelled: Tensor
    block: Tensor
    slot: Tensor
    match: Tensor
    dragon: Tensor
    round: Tensor
    decision: Tensor
    time: Tensor
    first: Tensor
    lengths: Tensor
    winner: Tensor

    def __len__(self) -> int:
        return len(self.action)

    @property
    def ids(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lane, match, dragon and round, what draws are keyed by."""
        return self.block // 2, self.match, self.dragon, self.round


class Player:
    """Plays matches on a game's maps, on both sides or against scripted players.

    burn_in: int64 [lanes * agents], decisions that the life in each slot still makes without a label
    """

    def __init__(self, game: Loong, *, opponents: Sequence[str], scripted: float, seed: int) -> None:
        """Start the first matches. scripted: share of matches against scripted players, by the names in `opponents`."""
        self.game, self.seed = game, seed
        self.burn_in = torch.zeros(game.lanes * game.agents, dtype=torch.int64)
        self.matches = 0
        """That ended."""
        self._opponents, self._scripted = opponents, scripted
        self._match = torch.zeros(game.lanes, dtype=torch.int64)
        self._columns: dict[str, Tensor] = {}
        start_matches(game, torch.arange(game.lanes), self._start)

    def play(self, network: Plays, memory: Tensor, steps: int, *, greedy: bool) -> Played:
        """Make `steps` decisions in every lane.

        memory: float32 [lanes * agents, width], what the dragons of each slot remember; it is brought up to date
        greedy: take the most probable choices, as a bot does, instead of drawing them
        """
        game = self.game
        columns = self._room(steps, memory.shape[1])
        precision = network.newborn(0).dtype
        rounds = Rounds()
        rosters, begun = [], []
        winners: dict[tuple[int, int], int] = {}
        for step in range(steps):
            rows = game.decisions()
            assert rows.mask is not None
            if len(fresh := rounds.begin(rows)):
                rosters.append(game.roster(rows.lane[fresh]))
                begun.append(torch.stack((rows.lane[fresh], rows.match[fresh], rows.round[fresh])))
            slot = rows.lane * game.agents + rows.agent
            before, left = memory[slot], self.burn_in[slot]
            newborn = rows.decision == 0
            before[newborn] = 0.0
            left[newborn] = 0
            self.burn_in[slot] = (left - 1).clamp_min(0)
            with torch.inference_mode():
                tree, after = network.step(rows.obs, rows.mask, before.to(precision))
                if greedy:
                    action = tree.mode()
                else:
                    uniforms = choice_uniforms(
                        rows.lane, rows.match, rows.dragon, rows.round, seed=self.seed, stream=STREAM_CHOICES
                    )
                    action, _ = tree.sample(uniforms)
            memory[slot] = after.to(memory.dtype)
            values = {
                "inputs": rows.obs,
                "mask": rows.mask,
                "action": action,
                "memory": before,
                "labelled": left == 0,
                "team": rows.team,
                "slot": slot,
                "match": rows.match,
                "dragon": rows.dragon,
                "round": rows.round,
                "decision": rows.decision,
            }
            for name, value in values.items():
                columns[name][step] = value
            outcome = game.act(action)
            if len(outcome.ended):
                ended = game.results(outcome)["winner"].tolist()
                for lane, winner in zip(outcome.ended.tolist(), ended, strict=True):
                    winners[lane, int(rows.match[lane])] = winner
                self.matches += len(ended)
                start_matches(game, outcome.ended, self._start)
        return _played(columns, torch.cat(rosters), torch.cat(begun, dim=1), winners)

    def state(self) -> dict[str, Any]:
        return {"game": self.game.state(), "match": self._match, "burn_in": self.burn_in, "matches": self.matches}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.game.load_state(state["game"])
        self._match.copy_(state["match"])
        self.burn_in.copy_(state["burn_in"])
        self.matches = state["matches"]

    def _start(self, lanes: Tensor) -> Tensor:
        self._match[lanes] += 1
        scripts = draw_opponents(
            lanes,
            self._match[lanes],
            opponents=self._opponents,
            scripted=self._scripted,
            seed=self.seed,
            stream=STREAM_OPPONENTS,
        )
        draws = zip(lanes.tolist(), self._match[lanes].tolist(), strict=True)
        many = len(self.game.maps)
        levels = [
            int(_core.integers(self.seed, STREAM_LEVELS, match * 65536 + lane, 1, many)[0]) for lane, match in draws
        ]
        self.game.restart(lanes, torch.tensor(levels), scripts=scripts)
        return torch.tensor(levels)

    def _room(self, steps: int, width: int) -> dict[str, Tensor]:
        """Columns, kept from one rollout to the next."""
        if not self._columns or self._columns["memory"].shape[::2] != (steps, width):
            rows = self.game.decisions()
            assert rows.mask is not None
            shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
                "inputs": (tuple(rows.obs.shape[1:]), torch.uint8),
                "mask": (tuple(rows.mask.shape[1:]), torch.uint8),
                "memory": ((width,), torch.float32),
                "labelled": ((), torch.bool),
            }
            for name in ("action", "team", "slot", "match", "dragon", "round", "decision"):
                shapes[name] = ((), torch.int64)
            self._columns = room(shapes, steps, self.game.lanes, self.game.device)
        return self._columns


def _played(
    columns: Mapping[str, Tensor], rosters: Tensor, begun: Tensor, winners: Mapping[tuple[int, int], int]
) -> Played:
    """rosters: int32 [r, agents, 5]; begun: int64 [3, r], lane, match and round of the starts of rounds that they are
    of; winners: by lane and match, of the matches that ended."""
    rows, first = by_life(columns)
    del rows["team"]
    lane, match, round_ = begun
    ahead = rounds_ahead(rows["block"] // 2 << 32 | rows["match"], rows["round"], lane << 32 | match, round_)
    over = zip((rows["block"] // 2).tolist(), rows["match"].tolist(), strict=True)
    return Played(
        **rows,
        first=first,
        lengths=lengths_ahead(rosters, ahead, rows["slot"] % rosters.shape[1], rows["dragon"]),
        winner=torch.tensor([winners.get(key, -1) for key in over]),
    )


def follow(network: Follows, played: Played, memory: Tensor, *, most: int) -> tuple[Tensor, Tensor]:
    """Run a network along lives that another one lived.

    memory: float32 [lanes * agents, width], of the network that follows; it is brought up to date
    most:   decisions that it runs at once of one life

    Returns what its choices hang on, float32 [n, width], and its memory before each of the stretches into which
    lives are cut, [s, width].
    """
    starts, lengths = stretches(played.first, most)
    heads = played.first.nonzero().view(-1)
    life = torch.searchsorted(heads, starts, right=True) - 1
    state = memory[played.slot[heads]]
    state[played.decision[heads] == 0] = 0.0
    before = torch.empty(len(starts), memory.shape[1])
    features = torch.empty(len(played), memory.shape[1])
    number = torch.arange(len(starts)) - torch.searchsorted(starts, heads)[life]
    """Of the stretch within its life."""
    with torch.inference_mode():
        for turn in range(int(number.amax()) + 1):
            for some in torch.split((number == turn).nonzero().view(-1), max(CHUNK // most, 1)):
                rows = spans(starts[some], lengths[some])
                before[some] = state[life[some]]
                tree, after, _ = network.sequence(played.inputs[rows], played.mask[rows], lengths[some], before[some])
                features[rows] = tree.features
                state[life[some]] = after
    ends = torch.cat((heads[1:], torch.tensor([len(played)]))) - 1
    slot, time = played.slot[ends], played.time[ends]
    # Of the lives that shared a slot one after another the last one may still be open.
    latest = torch.full((len(memory),), -1).scatter_reduce(0, slot, time, "amax")[slot] == time
    memory[slot[latest]] = state[latest]
    return features, before


def spans(starts: Tensor, lengths: Tensor) -> Tensor:
    """int64 [sum of lengths]: the numbers from each start on, as many as its length says."""
    ends = lengths.cumsum(0)
    return torch.arange(int(ends[-1])) + (starts - ends + lengths).repeat_interleave(lengths)
