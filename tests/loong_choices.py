"""A random player on inputs and masks: what tests of the knowledge let dragons do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparring import _core

INPUTS, MASK = np.dtype(_core.LOONG_INPUTS), np.dtype(_core.LOONG_MASK)
PLANE = {name: index for index, name in enumerate(_core.LOONG_PLANES["crop"])}
REACH = PLANE["reach"]
AHEAD = ((6, 7), (7, 6), (7, 8))
"""Places in the crop of the tiles forward, left and right of the head."""


def random_choice(
    draw: np.random.Generator, inputs: NDArray[Any], mask: NDArray[Any], *, careless: float = 0.02
) -> int:
    """One choice by its rows: mostly a step to a free tile, often a split, at times a sprint, and what is fatal if
    nothing else is left or by `careless` chance."""
    row, allowed = inputs.view(INPUTS)[0], mask.view(MASK)[0]
    role = int(draw.integers(8)) if allowed["role_due"] else int(allowed["held"])
    claim = int(draw.integers(26))
    free = [d for d, (r, c) in enumerate(AHEAD) if row["crop"][r, c, REACH] > 0]
    if draw.random() < careless or not free:
        free = [0, 1, 2]
    kind = draw.random()
    sizes = np.flatnonzero(allowed["sizes"])
    if allowed["kinds"][2] and kind < 0.12:
        return _core.loong_pack(role, "split", 0, 2 + int(draw.choice(sizes)), [], claim)
    if allowed["kinds"][1] and kind < 0.2:
        steps = [int(draw.choice(free)), *draw.integers(0, 3, int(draw.integers(1, allowed["payable"]))).tolist()]
        return _core.loong_pack(role, "sprint", 0, 0, steps, claim)
    return _core.loong_pack(role, "move", int(draw.choice(free)), 0, [], claim)
