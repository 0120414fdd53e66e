"""Loong with a log of everything that learners decide, kept by asking the engine, for tests of rollouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from loong_maps import simple_map
from numpy.typing import NDArray
from torch import Tensor

from sparring.games.loong import Loong, LoongDecisions, LoongOutcome
from sparring.games.loong_rows import SCRIPTS

NOBODY = 255
FORAGER, SPLITTER, RECKLESS = (SCRIPTS.index(name) for name in ("forager", "splitter", "reckless"))


@dataclass
class Moment:
    """A lane as of now, told by the bodies of its dragons."""

    match: int
    round: int
    learns: list[bool]
    teams: dict[int, int]
    lengths: dict[int, int]
    bodies: dict[int, list[tuple[int, int]]]
    pearls: list[tuple[int, int]]
    board: list[bytes]

    @staticmethod
    def of(game: Loong, lane: int) -> Moment:
        alive = game.dragons(lane)
        board, scalars = game.boards(torch.tensor([lane]))
        return Moment(
            match=int(game._match[lane]),
            round=game.round(lane),
            learns=game.learners[lane].tolist(),
            teams={each.dragon: each.team for each in alive},
            lengths={each.dragon: len(each.body) for each in alive},
            bodies={each.dragon: [(x, y) for x, y in each.body.tolist()] for each in alive},
            pearls=[(x, y) for y, x in np.argwhere(game.pearls(lane)).tolist()],
            board=[board[0, team].numpy().tobytes() + scalars[0, team].numpy().tobytes() for team in (0, 1)],
        )

    def segments(self, team: int) -> list[tuple[int, int]]:
        return [tile for dragon, body in self.bodies.items() if self.teams[dragon] == team for tile in body]

    def potential(self, team: int) -> float:
        """0.02 for each segment that the longest dragon leads by, 0.01 for all together, 0.05 for the queen."""

        def worth(side: int) -> float:
            lengths = [n for dragon, n in self.lengths.items() if self.teams[dragon] == side]
            queen = [n for dragon, n in self.lengths.items() if self.teams[dragon] == side and dragon < 2]
            return 0.02 * max(lengths, default=0) + 0.01 * sum(lengths) + 0.05 * sum(queen)

        return worth(team) - worth(1 - team)


@dataclass
class Event:
    """A decision of a learner's dragon, and the lane as it was then."""

    lane: int
    dragon: int
    decision: int
    facing: int
    obs: bytes
    crop: bytes
    scalars: bytes
    action: int
    before: Moment

    @property
    def head(self) -> tuple[int, int]:
        return self.before.bodies[self.dragon][0]


class Watched(Loong):
    """events: of each lane, in order of time; winners: by lane and match; nothing is noted unless `watching`."""

    watching = True

    def __init__(self, **options: Any) -> None:
        super().__init__(observe="inputs", **options)
        self.forget()

    def forget(self) -> None:
        self.events: list[list[Event]] = [[] for _ in range(self.lanes)]
        self.winners: dict[tuple[int, int], int] = {}

    def now(self, lane: int) -> Moment:
        return Moment.of(self, lane)

    def act(self, actions: Tensor, given: Tensor | None = None) -> LoongOutcome:
        if not self.watching:
            return super().act(actions, given)
        rows = self.decisions()
        crop, scalars = self.appraise()
        for i, (lane, dragon) in enumerate(zip(rows.lane.tolist(), rows.dragon.tolist(), strict=True)):
            self.events[lane].append(
                Event(
                    lane=lane,
                    dragon=dragon,
                    decision=int(rows.decision[i]),
                    facing=next(each.facing for each in self.dragons(lane) if each.dragon == dragon),
                    obs=rows.obs[i].numpy().tobytes(),
                    crop=crop[i].numpy().tobytes(),
                    scalars=scalars[i].numpy().tobytes(),
                    action=int(actions[i]),
                    before=self.now(lane),
                )
            )
        matches = self._match.clone()
        outcome = super().act(actions, given)
        for lane, winner in zip(outcome.ended.tolist(), self.results(outcome)["winner"].tolist(), strict=True):
            self.winners[lane, int(matches[lane])] = winner
        return outcome


class Restart:
    """A listener that starts every next match, with scripted players as `scripts` tells by (lane, match)."""

    def __init__(self, game: Loong, scripts: Callable[[int, int], tuple[int, int]] | None = None) -> None:
        self.game, self.scripts, self.heard = game, scripts, 0
        self.start(torch.arange(game.lanes))

    def round_began(self, rows: LoongDecisions, fresh: Tensor, standings: Tensor) -> None: ...

    def ended(self, lanes: Tensor, results: NDArray[np.void]) -> None:
        self.heard += len(lanes)
        self.start(lanes)

    def start(self, lanes: Tensor) -> None:
        scripts = None
        if self.scripts is not None:
            numbers = [self.scripts(lane, int(self.game._match[lane]) + 1) for lane in lanes.tolist()]
            scripts = torch.tensor(numbers, dtype=torch.uint8)
        self.game.restart(lanes, scripts=scripts)


def pond(folder: Path, *, crowded: bool = False) -> Path:
    """Small maps full of pearls: two dragons of eight segments on 9x9, or with `crowded` also six short ones on 7x8."""
    pearls = tuple(f"TILE {x} {y} 2 6" for x in range(7) for y in range(7) if (x + y) % 2 == 0)
    long = ("0 8 " + " ".join(f"{x} 1" for x in range(8)), "1 8 " + " ".join(f"{x} 5" for x in range(8)))
    short = tuple(f"{i % 2} 2 {i} {y} {i} {y + 1}" for y in (1, 4) for i in (0, 3, 6, 5)[: 3 + (y == 1)])[:6]
    (folder / "pond.map").write_bytes(simple_map("9 9", long, pearls))
    if crowded:
        (folder / "puddle.map").write_bytes(simple_map("7 8", short, pearls))
    return folder
