"""What the memory should know, asked of it in training only (Jaderberg et al. 2017, "UNREAL"). No bot contains this."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.policies.layers import seeded
from sparring.policies.loong import CROP_SIDE

CELLS = CROP_SIDE**2
CONTENTS = ("nothing", "pearl", "mate", "enemy")
"""What an unseen cell may hold."""
NOT_ASKED = 255
"""Content of a cell that the dragon sees, so that nothing is asked about it."""
ELSEWHERE = CELLS
"""Place of enemy heads outside the crop."""
HORIZONS = (16, 64)
"""Rounds ahead for which the dragon's own length is asked."""


@dataclass(frozen=True, kw_only=True)
class AuxiliaryTargets:
    """The truth, from the privileged state.

    unseen: uint8 [n, 225], an index of CONTENTS, or NOT_ASKED; cells of the crop row by row, forward up
    heads:  float32 [n, 226], where the enemy heads are three rounds ahead, as shares that sum to 1 over the crop as it
            lies now and `elsewhere`; all 0 where that is not known (no enemy lives, or the match ended before)
    length: float32 [n, 2], the dragon's length after 16 and 64 rounds, 0 once dead; NaN where not known
    """

    unseen: Tensor
    heads: Tensor
    length: Tensor


class Auxiliary(nn.Module):
    """Heads on the layer-normalised memory, float [n, width]."""

    def __init__(self, width: int, *, hidden: int = 64, seed: int = 0) -> None:
        super().__init__()
        self.split = [CELLS * len(CONTENTS), CELLS + 1, len(HORIZONS)]
        with seeded(seed):
            self.hidden = nn.Linear(width, hidden)
            self.out = nn.Linear(hidden, sum(self.split))

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of contents [n, 4, 225] and of enemy heads [n, 226]; log(1 + length) [n, 2]."""
        unseen, heads, length = torch.split(self.out(self.hidden(features).relu_()), self.split, dim=1)
        return unseen.reshape(-1, len(CONTENTS), CELLS), heads, length

    def losses(self, features: Tensor, targets: AuxiliaryTargets) -> dict[str, Tensor]:
        """Cross-entropies per asked cell and per known row, squared error of log(1 + length); 0 where none is known."""
        unseen, heads, length = self(features)
        asked = targets.unseen != NOT_ASKED
        unseen_loss = functional.cross_entropy(unseen, targets.unseen.long(), ignore_index=NOT_ASKED, reduction="sum")
        known = targets.heads.sum(dim=1)
        heads_loss = -(targets.heads * heads.log_softmax(dim=1)).sum()
        lived = ~targets.length.isnan()
        error = torch.where(lived, length - torch.log1p(targets.length.nan_to_num()), 0.0)
        return {
            "unseen": unseen_loss / asked.sum().clamp_min(1),
            "heads": heads_loss / known.sum().clamp_min(1),
            "length": error.square().sum() / lived.sum().clamp_min(1),
        }
