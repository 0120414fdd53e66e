"""Decisions that were played side by side, put in order of the lives that made them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and type of one entry of each column."""


def room(shapes: Shapes, steps: int, lanes: int) -> dict[str, Tensor]:
    """Columns [steps, lanes, ...] for as many decisions of every lane."""
    return {name: torch.zeros((steps, lanes, *shape), dtype=dtype) for name, (shape, dtype) in shapes.items()}


def by_life(columns: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    """The decisions in columns [steps, lanes, ...] by block (a team in a lane), match, dragon and time.

    columns: among them team, match and dragon, int64; a column for each lane, in order
    Returns columns [n, ...], with `block` (lane * 2 + team) added, and where a life begins, bool [n].
    """
    steps, lanes = columns["dragon"].shape
    flat = {name: column.flatten(0, 1) for name, column in columns.items()}
    flat["block"] = torch.arange(lanes).repeat(steps) * 2 + flat["team"]
    time = torch.arange(steps).repeat_interleave(lanes)
    keys = [key.numpy() for key in (time, flat["dragon"], flat["match"], flat["block"])]
    order = torch.from_numpy(np.lexsort(keys))
    rows = {name: column.index_select(0, order) for name, column in flat.items()}
    first = torch.ones(len(order), dtype=torch.bool)
    first[1:] = False
    for name in ("block", "match", "dragon"):
        first[1:] |= rows[name][1:] != rows[name][:-1]
    return rows, first


def stretches(first: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """First rows and lengths (int64 [s] each) of lives that begin where `first` (bool [n]) says, cut every `most`."""
    place = torch.arange(len(first))
    life = first.long().cumsum(0) - 1
    since = place - place[first][life]
    starts = (since % most == 0).nonzero().view(-1)
    return starts, torch.diff(starts, append=torch.tensor([len(first)]))
