"""Decisions that were played side by side, put in order of the lives that made them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.games.loong import LoongDecisions

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and type of one entry of each column."""


def room(shapes: Shapes, steps: int, lanes: int, device: torch.device) -> dict[str, Tensor]:
    """Columns [steps, lanes, ...] for as many decisions of every lane."""
    return {
        name: torch.zeros((steps, lanes, *shape), dtype=dtype, device=device) for name, (shape, dtype) in shapes.items()
    }


def by_life(columns: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    """The decisions in columns [steps, lanes, ...] by block (a team in a lane), match, dragon and time.

    columns: among them team, match and dragon, int64; a column for each lane, in order
    Returns columns [n, ...], with `block` (lane * 2 + team) and `time` (the step) added, and where a life begins,
    bool [n].
    """
    steps, lanes = columns["dragon"].shape
    flat = {name: column.flatten(0, 1) for name, column in columns.items()}
    device = flat["team"].device
    flat["block"] = torch.arange(lanes, device=device).repeat(steps) * 2 + flat["team"]
    flat["time"] = torch.arange(steps, device=device).repeat_interleave(lanes)
    order = torch.arange(steps * lanes, device=device)  # by time already
    for name in ("dragon", "match", "block"):
        order = order[flat[name][order].argsort(stable=True)]
    rows = {name: column.index_select(0, order) for name, column in flat.items()}
    first = torch.ones(len(order), dtype=torch.bool, device=device)
    first[1:] = False
    for name in ("block", "match", "dragon"):
        first[1:] |= rows[name][1:] != rows[name][:-1]
    return rows, first


def stretches(first: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """First rows and lengths (int64 [s] each) of lives that begin where `first` (bool [n]) says, cut every `most`."""
    place = torch.arange(len(first), device=first.device)
    life = first.long().cumsum(0) - 1
    since = place - place[first][life]
    starts = (since % most == 0).nonzero().view(-1)
    return starts, torch.diff(starts, append=starts.new_tensor([len(first)]))


class Rounds:
    """Notices where a round begins; the first decision of a lane that it is shown counts as the start of one."""

    def __init__(self) -> None:
        self._now: dict[str, Tensor] = {}

    def begin(self, rows: LoongDecisions) -> Tensor:
        """Places int64 [k] in rows, which are all lanes in order."""
        now = {"match": rows.match, "round": rows.round}
        changed = torch.ones_like(rows.lane, dtype=torch.bool)
        if self._now:
            changed = (self._now["match"] != now["match"]) | (self._now["round"] != now["round"])
        self._now = now
        return changed.nonzero().view(-1)
