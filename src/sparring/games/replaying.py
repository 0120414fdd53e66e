"""Plays a game so that the play can be repeated, and says where two plays part.

`sparring.games.checker` is built on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring.games.api import Box, Decisions, Game, Outcome, Structured

R = TypeVar("R", Decisions, Outcome)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One batch of decisions and what answering it brought, copied as it was at the time."""

    rows: Decisions
    actions: Tensor
    outcome: Outcome


def play(game: Game, decisions: int) -> list[Step]:
    """Let every agent act `decisions` times as `choose` says; ended lanes restart."""
    steps = []
    for _ in range(decisions):
        rows = copied(game.decisions())
        actions = choose(game, rows)
        outcome = copied(game.act(actions))
        steps.append(Step(rows=rows, actions=actions, outcome=outcome))
        if len(outcome.ended) and not game.restarts_itself:
            game.restart(outcome.ended)
    return steps


def choose(game: Game, rows: Decisions) -> Tensor:
    """Legal actions that depend on match, agent and decision only: alike in all lanes, whatever the order of rows."""
    ids = torch.stack([rows.match, rows.agent, rows.decision], dim=1).numpy()
    space = game.action
    if isinstance(space, Structured):
        return space.sample(rows, torch.from_numpy(_uniform(ids, space.draws)))
    if isinstance(space, Box):
        low = space.low if math.isfinite(space.low) else min(-1.0, space.high - 2.0)
        high = space.high if math.isfinite(space.high) else max(1.0, low + 2.0)
        uniform = torch.from_numpy(_uniform(ids, math.prod(space.shape)))
        numbers = low + (high - low) * uniform
        if not space.dtype.is_floating_point:
            numbers = (low + (high - low + 1) * uniform).floor()
        return numbers.to(space.dtype).reshape(len(rows), *space.shape)
    uniform = torch.from_numpy(_uniform(ids, 1))[:, 0]
    legal = torch.ones(len(rows), space.n, dtype=torch.bool) if rows.mask is None else rows.mask
    wanted = (uniform * legal.sum(dim=1)).long()
    # The first place where the running count of legal choices exceeds `wanted`.
    return (legal.cumsum(dim=1) > wanted[:, None]).int().argmax(dim=1)


def _uniform(ids: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """float64 [n, size] in [0, 1), hashed from each row of ids (SplitMix64)."""
    hashed = np.zeros((len(ids), 1), dtype=np.uint64)
    for column in (*ids.T[:, :, None].astype(np.uint64), np.arange(size, dtype=np.uint64)[None]):
        hashed = (hashed ^ column) + np.uint64(0x9E3779B97F4A7C15)
        hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashed = hashed ^ (hashed >> np.uint64(31))
    return (hashed >> np.uint64(11)).astype(np.float64) / 2.0**53


def id_rows(rows: Decisions) -> list[tuple[int, int, int, int, int]]:
    """(lane, match, team, agent, decision) of each row."""
    columns = (rows.lane, rows.match, rows.team, rows.agent, rows.decision)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def copied(record: R) -> R:
    """The record with tensors of its own: a game may show views of memory that it writes to later."""
    columns = {field.name: getattr(record, field.name) for field in fields(record)}
    return replace(record, **{name: _copy_of(column) for name, column in columns.items()})


def _copy_of(column: Any) -> Any:
    if isinstance(column, Tensor):
        return column.clone()
    return copied(column) if isinstance(column, Decisions) else column


def raw_bytes(column: Tensor) -> bytes:
    return column.contiguous().numpy().tobytes()


def _columns(record: Decisions | Outcome) -> dict[str, Tensor]:
    """The record's tensors by name, each in the order of its lanes and agents: order within a batch means nothing."""
    order = _order(record.lane, record.agent)
    found: dict[str, Tensor] = {}
    for field in fields(record):
        column = getattr(record, field.name)
        if isinstance(column, Decisions):
            found |= {f"{field.name}.{name}": value for name, value in _columns(column).items()}
        elif column is not None:
            by_lane = isinstance(record, Outcome) and field.name not in ("lane", "agent", "reward")
            found[field.name] = column[record.ended.argsort() if by_lane else order]  # type: ignore[union-attr]
    return found


def _order(lane: Tensor, agent: Tensor) -> Tensor:
    by_agent = agent.argsort(stable=True)
    return by_agent[lane[by_agent].argsort(stable=True)]


def difference(one: Decisions | Outcome, other: Decisions | Outcome) -> str:
    """The name of the first column that differs, or nothing."""
    ones, others = _columns(one), _columns(other)
    if ones.keys() != others.keys():
        return " and ".join(ones.keys() ^ others.keys())
    return next((name for name in ones if raw_bytes(ones[name]) != raw_bytes(others[name])), "")


def first_difference(run: list[Step], other: list[Step]) -> str:
    """Where two runs part, in words, or nothing."""
    for turn, (step, again) in enumerate(zip(run, other, strict=True)):
        if name := difference(step.rows, again.rows):
            return f"{name} of the decisions, at batch {turn}"
        if name := difference(step.outcome, again.outcome):
            return f"{name} of the outcome, at batch {turn}"
    return ""
