"""Rows that Loong's policies read and write: what a dragon knows, what it may choose, and choices as numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparring import _core
from sparring.games.api import Decisions

INPUTS, MASK = np.dtype(_core.LOONG_INPUTS), np.dtype(_core.LOONG_MASK)
PLANES = _core.LOONG_PLANES
"""Names of the last axis of each field of `INPUTS` (docs/loong-knowledge.md)."""
GIVEN = -1
"""In the place of a choice: the action is given as a row."""

_SPRINT, _SPLIT = 1, 2
_NO_CLAIM = 25
_MOST_STEPS = 8
CHOICE_DRAWS = 6 + _MOST_STEPS
"""Random numbers that a choice of `random_choices` is made of."""


def random_choices(rows: Decisions, uniform: Tensor) -> Tensor:
    """Random choices that are not masked, int64 [n]; most dragons crash soon.

    rows.mask: uint8 [n, 40]; uniform: float64 [n, CHOICE_DRAWS] in [0, 1)
    """
    assert rows.mask is not None
    mask, draws = rows.mask.numpy().view(MASK)[:, 0], uniform.numpy()
    role = np.where(mask["role_due"] != 0, (draws[:, 0] * 8).astype(np.int64), mask["held"])
    sizes = mask["sizes"].sum(axis=1, dtype=np.int64)  # those from 2 on
    splits = (sizes > 0) & (draws[:, 1] < 0.15)
    sprints = ~splits & (mask["kinds"][:, _SPRINT] != 0) & (draws[:, 1] < 0.25)
    kind = np.where(splits, _SPLIT, np.where(sprints, _SPRINT, 0))
    direction = np.where(kind == 0, (draws[:, 2] * 3).astype(np.int64), 0)
    size = np.where(splits, (draws[:, 3] * sizes).astype(np.int64), 0)
    count = np.where(sprints, 2 + (draws[:, 4] * (mask["payable"].astype(np.int64) - 1)).astype(np.int64), 0)
    claim = (draws[:, 5] * (_NO_CLAIM + 1)).astype(np.int64)
    packed = role | kind << 3 | direction << 5 | size << 7 | count << 12 | claim << 32
    steps = (draws[:, 6:] * 3).astype(np.int64)
    for i in range(_MOST_STEPS):
        packed |= np.where(i < count, steps[:, i], 0) << (16 + 2 * i)
    return torch.from_numpy(packed)
