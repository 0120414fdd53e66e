"""Where streams of value go on, looked up node by node: what `sparring.learn.rollout._nodes` finds with tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparring.games.loong import Loong


def nodes_by_dicts(
    rows: Mapping[str, Tensor],
    block: Tensor,
    first: Tensor,
    teams: Any,
    winners: Mapping[tuple[int, int], int],
    game: Loong,
) -> dict[str, Tensor]:
    """Successors, rewards and boards of nodes, from what `_nodes` took and what `teams` holds after it."""
    columns = {name: torch.cat(column).tolist() for name, column in teams.columns.items()}
    sides = list(zip(columns["lane"], columns["team"], strict=True))
    n, e = len(block), int(game.learners.sum())
    m = len(sides) - e
    alive = [roster[:, 0] for rosters in teams.rosters for roster in rosters]
    now = game.decisions().match.tolist()
    living = [
        (lane, each.dragon, each.team)
        for lane in range(game.lanes)
        for each in game.dragons(lane)
        if game.learners[lane, each.team]
    ]
    team_end = {side: n + m + i for i, side in enumerate(sides[m:])}
    life_end = {(lane, dragon): n + m + e + i for i, (lane, dragon, _) in enumerate(living)}
    over = n + m + e + len(living)
    starts = list(zip(*(columns[name][:m] for name in ("lane", "match", "team", "round")), strict=True))
    round_start = {key: n + i for i, key in enumerate(starts)}
    assert len(round_start) == m
    successor, reward = [-1] * (over + 1), [0.0] * (over + 1)

    def follow(node: int, lane: int, match: int, team: int, round_: int) -> None:
        following = round_start.get((lane, match, team, round_))
        if following is not None:
            successor[node] = following
        elif match == now[lane]:
            successor[node] = team_end[lane, team]
        else:
            successor[node] = over
            winner = winners[lane, match]
            reward[node] = 0.0 if winner == 0 else 1.0 if winner == team + 1 else -1.0

    for (lane, match, team, round_), node in round_start.items():
        follow(node, lane, match, team, round_ + 1)
    for node in range(n):
        if node + 1 < n and not first[node + 1]:
            successor[node] = node + 1
            continue
        lane, team = divmod(int(block[node]), 2)
        match, dragon, round_, slot = (int(rows[name][node]) for name in ("match", "dragon", "round", "agent"))
        if match == now[lane] and (lane, dragon) in life_end:
            successor[node] = life_end[lane, dragon]
            continue
        start = round_start.get((lane, match, team, round_ + 1))
        survived = start is not None and int(alive[columns["roster"][start - n]][slot]) == dragon
        follow(node, lane, match, team, round_ + 1 + survived)
    boards = [*rows["board_of"].tolist(), *(team_end[lane, team] - n for lane, _, team in living)]
    return {"successor": torch.tensor(successor), "reward": torch.tensor(reward), "board_of": torch.tensor(boards)}
