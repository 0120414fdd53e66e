"""Rows of bytes that the Loong engine reads and writes: what a dragon is told, what it does, where a lane stands.

    actions = move(views(rows.obs)["facing"])  # straight on
    actions = send(actions, 42)                # and a message the same way
    outcome = game.act(actions)

Directions are 0 north, 1 east, 2 south, 3 west. Each function makes a row for each dragon, so different kinds are mixed
by rows: `torch.where(splits[:, None], split(sizes), move(directions))`. A dragon whose row is all 0 does nothing, and
dies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Decisions

ACTION, LANE, VIEW = (np.dtype(fields) for fields in (_core.LOONG_ACTION, _core.LOONG_LANE, _core.LOONG_VIEW))
SCRIPTS = _core.LOONG_SCRIPTS
"""Names of the scripted players (docs/loong-players.md), by number."""
PLAYERS = _core.LOONG_PLAYERS
"""Names of the players that can sit in a lane, by number: those of SCRIPTS, then the foil (docs/loong-foil.md)."""

DEATHS = {"W": "kelp", "S": "itself", "O": "another", "H": "heads", "A": "no action"}
"""What a dragon dies of, by the judge's letter, in the order of a lane's `deaths`: it ran into kelp, its own body or
that of another, heads met, or it did nothing that could be done."""

MOST_STEPS = 32
"""Of a row; a reply to the judge may hold more."""
SHORTEST = 2
"""Segments of a dragon."""

_MOVE, _SPLIT = 1, 2
_SENDS_AHEAD, _SETS_PROTOCOL = 1, 2
_RANDOM_STEPS = 8
RANDOM_DRAWS = 6 + _RANDOM_STEPS
"""Random numbers that an action of `random_actions` is made of."""


def views(obs: Tensor) -> NDArray[np.void]:
    """uint8 [n, bytes of a view] -> [n] with the fields of `_core.LOONG_VIEW`, in the same memory."""
    told: NDArray[np.void] = obs.numpy().view(VIEW)[:, 0]
    return told


def move(directions: ArrayLike) -> Tensor:
    """One step; directions [n]. Returns uint8 [n, bytes of an action]."""
    return sprint(np.asarray(directions)[:, None])


def sprint(steps: ArrayLike) -> Tensor:
    """Several steps; steps [n, at most 32], -1 behind the last. Returns uint8 [n, bytes of an action].

    Steps beyond a quarter of the length, rounded up, cost a segment each. Raises SparringError for other steps.
    """
    wanted = np.asarray(steps)
    if wanted.ndim != 2 or not 1 <= wanted.shape[1] <= MOST_STEPS:
        raise SparringError(f"loong: steps must be [n, 1 to {MOST_STEPS}], got {list(wanted.shape)}")
    taken = wanted >= 0
    count = taken.sum(axis=1)
    if (wanted > 3).any() or (wanted < -1).any() or (count == 0).any() or (taken[:, 1:] > taken[:, :-1]).any():
        raise SparringError("loong: steps must be directions 0 to 3, at least one of each dragon, -1 only behind them")
    rows = np.zeros(len(wanted), ACTION)
    rows["kind"], rows["step_count"] = _MOVE, count
    rows["steps"][:, : wanted.shape[1]] = np.where(taken, wanted, 0)
    return _packed(rows)


def split(segments: ArrayLike) -> Tensor:
    """Split off so many segments from the tail; segments [n]. Returns uint8 [n, bytes of an action].

    Parent and child need two segments each, and the team room below its unit limit; else the dragon dies.
    """
    wanted = np.asarray(segments)
    rows = np.zeros(len(wanted), ACTION)
    rows["kind"], rows["split"] = _SPLIT, wanted
    return _packed(rows)


def send(actions: Tensor, values: ArrayLike, toward: ArrayLike | None = None) -> Tensor:
    """The actions with a message each, beside those that they send already. values [n], or one for all.

    toward: direction [n], or one for all, for values of 64 bits; None: where the dragon then faces, 32 bits
    """
    sent, rows = _copied(actions)
    if toward is None:
        rows["ahead"] = values
        rows["extras"] |= _SENDS_AHEAD
    else:
        which = np.broadcast_to(np.asarray(toward), len(rows))
        if ((which < 0) | (which > 3)).any():
            raise SparringError("loong: toward must be directions 0 to 3, or None for straight ahead")
        rows["aimed"][np.arange(len(rows)), which] = values
        rows["aimed_directions"] |= (1 << which).astype(np.uint8)
    return sent


def set_protocol(actions: Tensor, number: int) -> Tensor:
    """The actions, and the dragons' protocol is `number` from now on: from 3 on they hear echoes and 64 bits."""
    changed, rows = _copied(actions)
    rows["protocol"] = number
    rows["extras"] |= _SETS_PROTOCOL
    return changed


def random_actions(rows: Decisions, uniform: Tensor) -> Tensor:
    """Random steps, sprints, splits and messages that break no rule as far as a dragon can see; most crash soon.

    uniform: float64 [n, RANDOM_DRAWS] in [0, 1)
    """
    told, draws = views(rows.obs), uniform.numpy()
    length = told["length"].astype(np.int64)
    splits = (length >= 2 * SHORTEST) & (draws[:, 0] < 0.15)
    sizes = SHORTEST + (draws[:, 1] * np.maximum(length - 2 * SHORTEST + 1, 1)).astype(np.int64)
    payable = np.minimum((length + 3) // 4 + length - SHORTEST, _RANDOM_STEPS)
    count = np.where(draws[:, 2] < 0.1, 1 + (draws[:, 3] * payable).astype(np.int64), 1)
    turns = np.array([0, 1, 3])[(draws[:, 6:] * 3).astype(np.int64)]  # never back into the own neck
    steps = (told["facing"].astype(np.int64)[:, None] + turns.cumsum(axis=1)) % 4
    steps[np.arange(_RANDOM_STEPS) >= count[:, None]] = -1
    actions = torch.where(torch.from_numpy(splits)[:, None], split(sizes), sprint(steps))
    sends = torch.from_numpy(draws[:, 4] < 0.1)[:, None]
    return torch.where(sends, send(actions, (draws[:, 5] * 2**32).astype(np.uint32)), actions)


def _packed(rows: NDArray[np.void]) -> Tensor:
    return torch.from_numpy(rows.view(np.uint8).reshape(len(rows), ACTION.itemsize))


def _copied(actions: Tensor) -> tuple[Tensor, Any]:
    """A copy, and its fields."""
    copy = actions.clone()
    return copy, copy.numpy().view(ACTION)[:, 0]
