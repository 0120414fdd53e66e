"""Whom the learner of Loong meets, and how its matches begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.games.loong_rows import PLAYERS

NOBODY = 255
"""The script of a team that the learner plays."""
_TRIES = 100
"""Matches that a lane may start in vain."""


def draw_opponents(
    lanes: Tensor, matches: Tensor, *, opponents: Sequence[str], scripted: float, seed: int, stream: int
) -> Tensor:
    """Scripts uint8 [k, 2] of the matches that start in these lanes (int64 [k] each), drawn by (seed, lane, match).

    opponents: names of `PLAYERS`, each met equally often; scripted: share of the matches against them
    """
    scripts = torch.full((len(lanes), 2), NOBODY, dtype=torch.uint8)
    for row, (lane, match) in enumerate(zip(lanes.tolist(), matches.tolist(), strict=True)):
        luck, which, seat = _core.integers(seed, stream, match * 65536 + lane, 3, 1 << 30).tolist()
        if luck < scripted * (1 << 30):
            scripts[row, seat % 2] = PLAYERS.index(opponents[which % len(opponents)])
    return scripts


def start_matches(game: Loong, lanes: Tensor, start: Callable[[Tensor], Tensor]) -> None:
    """Start the next matches of `lanes` (int64 [k]). One that ends before the learner's first turn teaches nothing and
    does not count: another is started.

    start: starts matches in some lanes, and returns their levels, int64

    Raises SparringError where no match lasts.
    """
    levels = lanes
    for _ in range(_TRIES):
        levels = start(lanes)
        ended = ~torch.isin(lanes, game.decisions().lane.cpu())
        lanes, levels = lanes[ended], levels[ended]
        if len(lanes) == 0:
            return
    raise SparringError(
        f"{_TRIES} matches one after another ended before the learner's first turn, "
        f"the last on {game.maps[int(levels[0])].source}: give maps on which the teams start further apart"
    )
