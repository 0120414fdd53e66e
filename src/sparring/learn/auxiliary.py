"""What auxiliary heads are asked, answered from what a rollout knows (policies/auxiliary.py)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sparring import _core
from sparring.policies.auxiliary import CELLS, CONTENTS, ELSEWHERE, HORIZONS, NOT_ASKED, AuxiliaryTargets
from sparring.policies.loong import CROP_SIDE

HEADS_AHEAD = 3
"""Rounds after which the places of enemy heads are asked."""
AHEAD = (HEADS_AHEAD, *HORIZONS)
"""Rounds ahead of a decision that anything is asked of."""
ROUNDS = 500

_PEARL, _MATE, _ENEMY = (CONTENTS.index(name) for name in ("pearl", "mate", "enemy"))
_REACH = CROP_SIDE // 2
_STEPS = torch.tensor([[0, -1], [1, 0], [0, 1], [-1, 0]])
"""One step to the north, east, south and west: columns and rows."""
_ACTOR, _CRITIC = _core.LOONG_PLANES["crop"], _core.LOONG_PRIVILEGED["crop"]
_FRESH = _ACTOR.index("fresh")
_HOLDERS = ("pearl", "self", "ally head", "ally body", "enemy head", "enemy body")
_DRAGON, _TEAM, _COLUMN, _ROW, _LENGTH = range(5)  # as `Loong.roster` has them


@dataclass(frozen=True, kw_only=True)
class Future:
    """What comes after the n decisions of a rollout.

    rosters: int32 [r, agents, 5], of `Loong.roster`, each at the start of a round of a lane
    ahead:   int64 [n, 3], for each of AHEAD which of them is that of the round so much later, -1 where the rollout or
             the match ends before
    frame:   int32 [n, 6], of `Loong.frames` at the decision
    slot:    int64 [n]
    """

    rosters: Tensor
    ahead: Tensor
    frame: Tensor
    slot: Tensor


def rounds_ahead(match: Tensor, round_: Tensor, start_match: Tensor, start_round: Tensor) -> Tensor:
    """`Future.ahead`: int64 [n, 3] of decisions in these matches and rounds (int64 [n] each), among starts of rounds.

    match, start_match: numbers that no two matches share
    """
    matches, numbered = torch.cat((match, start_match)).unique(return_inverse=True)  # type: ignore[no-untyped-call]
    table = torch.full((len(matches), ROUNDS + max(AHEAD)), -1, device=match.device)
    table[numbered[len(match) :], start_round] = torch.arange(len(start_round), device=match.device)
    return table[numbered[: len(match)].unsqueeze(1), round_.unsqueeze(1) + round_.new_tensor(AHEAD)]


def targets(
    rows: Tensor, inputs: Tensor, crop: Tensor, team: Tensor, dragon: Tensor, future: Future
) -> AuxiliaryTargets:
    """The truth about some decisions, `rows` (int64 [k]) of the future.

    inputs: uint8 [k, 9424]; crop: uint8 [k, 3600], the critic's; team, dragon: int64 [k]
    """
    ahead = future.ahead[rows]
    return AuxiliaryTargets(
        unseen=_unseen(inputs, crop),
        heads=_heads(future.rosters[ahead[:, 0].clamp_min(0)], ahead[:, 0] >= 0, team, future.frame[rows].long()),
        length=lengths_ahead(future.rosters, ahead, future.slot[rows], dragon),
    )


def lengths_ahead(rosters: Tensor, ahead: Tensor, slot: Tensor, dragon: Tensor) -> Tensor:
    """Lengths float32 [k, 2] of dragons (int64 [k]) in these slots (int64 [k]) after 16 and 64 rounds, 0 once dead, NaN
    where not known. rosters, ahead: as in `Future`, ahead int64 [k, 3]"""
    length = []
    for horizon in range(1, len(AHEAD)):
        then = rosters[ahead[:, horizon].clamp_min(0), slot]
        lives = then[:, _DRAGON] == dragon
        known = torch.where(lives, then[:, _LENGTH], 0).float()
        length.append(torch.where(ahead[:, horizon] < 0, torch.nan, known))
    return torch.stack(length, dim=1)


def _unseen(inputs: Tensor, crop: Tensor) -> Tensor:
    """Contents uint8 [k, 225] of the cells that the dragon does not see now; of its own body nothing is asked."""
    fresh = inputs[:, _FRESH : CELLS * len(_ACTOR) : len(_ACTOR)] != 0
    truth = {name: crop[:, _CRITIC.index(name) :: len(_CRITIC)] != 0 for name in _HOLDERS}
    contents = truth["pearl"] * _PEARL
    contents = torch.where(truth["ally head"] | truth["ally body"], _MATE, contents)
    contents = torch.where(truth["enemy head"] | truth["enemy body"], _ENEMY, contents)
    return torch.where(fresh | truth["self"], NOT_ASKED, contents).to(torch.uint8)


def _heads(roster: Tensor, known: Tensor, team: Tensor, frame: Tensor) -> Tensor:
    """Shares float32 [k, 226] of the enemy heads of rosters [k, agents, 5] in the crops of these frames; the board goes
    on beyond its rims, and each head counts once, where it is nearest."""
    enemies = (roster[:, :, _DRAGON] >= 0) & (roster[:, :, _TEAM] != team.unsqueeze(1)) & known.unsqueeze(1)
    row, agent = enemies.nonzero(as_tuple=True)
    here, (column, row_, facing, mirrored, width, height) = roster[row, agent].long(), frame[row].unbind(dim=1)
    across = (here[:, _COLUMN] - column + width // 2) % width - width // 2
    down = (here[:, _ROW] - row_ + height // 2) % height - height // 2
    offset, steps = torch.stack((across, down), dim=1), _STEPS.to(facing.device)
    ahead = (offset * steps[facing]).sum(dim=1)
    right = (offset * steps[(facing + torch.where(mirrored == 1, 3, 1)) % 4]).sum(dim=1)
    within = (ahead.abs() <= _REACH) & (right.abs() <= _REACH)
    place = torch.where(within, (_REACH - ahead) * CROP_SIDE + _REACH + right, ELSEWHERE)
    shares = torch.zeros(len(team), CELLS + 1, device=team.device)
    shares.index_put_((row, place), torch.ones_like(row, dtype=shares.dtype), accumulate=True)
    return shares / enemies.sum(dim=1, keepdim=True).clamp_min(1)
