"""The privileged critic of Loong: it sees the true state, so it exists in training only (Pinto et al. 2018, "Asymmetric
actor critic"; Yu et al. 2022, "MAPPO"). It shares no weights with the actor.

A team's board is encoded once for each round, however many of its dragons decide in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from sparring.errors import SparringError
from sparring.policies.layers import ByteLinear, CropEncoder, MapEncoder, seeded, small_start
from sparring.settings import Range

BOARD_SIDE, BOARD_PLANES = 16, 16
CROP_SIDE, CROP_PLANES = 15, 16
DRAGON_SCALARS, TEAM_SCALARS = 32, 32
DRAGON_LENGTH = 0
"""The place of a dragon's length in its scalars."""
EXACT_LENGTHS = 64
"""Lengths below it stand in the scalars as they are, greater ones in ever coarser steps."""

_Width = Annotated[int, Range(low=1, high=16384)]


@dataclass(frozen=True, kw_only=True)
class CriticConfig:
    """Sizes of the critic. `PRESETS` has three."""

    board_pool: Annotated[int, Range(low=1, high=16)] = 2
    """Side of the squares of the board that are averaged first; 1: none."""
    board_channels: tuple[_Width, ...] = (16,)
    """Convolutions over the board, each halves its side."""
    board_code: _Width = 48
    """Width of what is known about the board."""
    team_code: _Width = 16
    """Width of what is known about the team."""
    stem_stride: Annotated[int, Range(low=1, high=3)] = 3
    """Tiles from one window of the crop's first convolution to the next."""
    channels: _Width = 8
    """Channels of the crop's trunk."""
    blocks: Annotated[int, Range(low=0, high=64)] = 0
    """Residual blocks."""
    groups: _Width = 4
    """Groups of channels that are normalised together; divides `channels`."""
    squeeze: Annotated[int, Range(low=0, high=16384)] = 0
    """Channels left before the dense layer, by a 1x1 convolution; 0: all of them."""
    crop_code: _Width = 64
    """Width of what is known about the crop."""
    scalar_code: _Width = 32
    """Width of what is known about the dragon; FiLM reads it too."""
    hidden: _Width = 64
    """Width of the layer before either value."""


PRESETS = {
    "tiny": CriticConfig(),
    "small": CriticConfig(
        board_pool=1,
        board_channels=(32, 64),
        board_code=128,
        team_code=32,
        stem_stride=2,
        channels=32,
        blocks=2,
        groups=8,
        squeeze=16,
        crop_code=128,
        scalar_code=64,
        hidden=256,
    ),
    "full": CriticConfig(
        board_pool=1,
        board_channels=(64, 128),
        board_code=256,
        team_code=64,
        stem_stride=1,
        channels=64,
        blocks=4,
        groups=8,
        squeeze=16,
        crop_code=256,
        scalar_code=128,
        hidden=512,
    ),
}
"""They go with the teachers of the same names."""


def preset(name: str) -> CriticConfig:
    """The sizes called `name`."""
    if name not in PRESETS:
        raise SparringError(f"no preset {name!r}: there are {', '.join(PRESETS)}")
    return PRESETS[name]


class Critic(nn.Module):
    """Values of acting dragons and of their teams, in the units that the learner trains it in."""

    def __init__(self, config: CriticConfig, *, seed: int = 0) -> None:
        super().__init__()
        if config.channels % config.groups:
            raise SparringError(f"groups = {config.groups}: must divide channels = {config.channels}")
        self.config = config
        with seeded(seed):
            self.board = MapEncoder(
                side=BOARD_SIDE,
                planes=BOARD_PLANES,
                pool=config.board_pool,
                channels=config.board_channels,
                width=config.board_code,
            )
            self.team = ByteLinear(TEAM_SCALARS, config.team_code)
            self.team_hidden = nn.Linear(config.board_code + config.team_code, config.hidden)
            self.team_value = small_start(nn.Linear(config.hidden, 1))
            self.scalars = ByteLinear(DRAGON_SCALARS, config.scalar_code)
            self.crop = CropEncoder(
                side=CROP_SIDE,
                planes=CROP_PLANES,
                channels=config.channels,
                stride=config.stem_stride,
                blocks=config.blocks,
                groups=config.groups,
                squeeze=config.squeeze,
                film=config.scalar_code,
                width=config.crop_code,
            )
            codes = config.board_code + config.team_code + config.crop_code + config.scalar_code
            self.hidden = nn.Linear(codes, config.hidden)
            self.value = small_start(nn.Linear(config.hidden, 1))

    def boards(self, board: Tensor, team: Tensor) -> tuple[Tensor, Tensor]:
        """Codes float [b, board_code + team_code] and team values V_T float [b], one for each team and round.

        board: uint8 [b, 16 * 16 * 16], channels last; team: uint8 [b, 32]
        """
        code = torch.cat((self.board(board), self.team(team).relu_()), dim=1)
        value: Tensor = self.team_value(self.team_hidden(code).relu_())
        return code, value.squeeze(1)

    def dragons(self, code: Tensor, board_of: Tensor, crop: Tensor, scalars: Tensor) -> Tensor:
        """Values V_i float [n] of acting dragons.

        code: float [b, ...] from `boards`; board_of: int64 [n], which of them a dragon's team has in this round;
        crop: uint8 [n, 15 * 15 * 16], channels last; scalars: uint8 [n, 32]
        """
        scalar_code = self.scalars(scalars).relu_()
        codes = torch.cat((code.index_select(0, board_of), self.crop(crop, scalar_code), scalar_code), dim=1)
        value: Tensor = self.value(self.hidden(codes).relu_())
        return value.squeeze(1)

    def forward(
        self, board: Tensor, team: Tensor, board_of: Tensor, crop: Tensor, scalars: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Values of dragons [n] and of teams [b]; arguments as in `boards` and `dragons`."""
        code, team_value = self.boards(board, team)
        return self.dragons(code, board_of, crop, scalars), team_value


def explained_variance(value: Tensor, target: Tensor) -> float:
    """1 - Var(target - value) / Var(target): 1 is perfect, 0 as good as a constant, NaN where targets do not vary.

    value, target: float [n]
    """
    target = target.double()
    spread = float(target.var(correction=0)) if len(target) else 0.0
    return 1.0 - float((target - value).var(correction=0)) / spread if spread > 0 else float("nan")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Predictions in groups of equal size from the lowest to the highest.

    predicted, happened: float64 [bins], means of values and of returns; count: int64 [bins]
    error: mean of |predicted - happened| over all predictions, in the values' units
    """

    predicted: Tensor
    happened: Tensor
    count: Tensor
    error: float


def calibration(value: Tensor, target: Tensor, *, bins: int = 10) -> Calibration:
    """Whether what is predicted happens on average (reliability diagram; Niculescu-Mizil and Caruana 2005).

    value, target: float [n], n at least 1; no more bins are made than there are predictions.
    """
    order = value.argsort(stable=True)
    values, targets = value.double()[order], target.double()[order]
    bins = min(bins, len(order))
    of_bin = torch.arange(len(order), device=order.device) * bins // len(order)
    count = torch.bincount(of_bin, minlength=bins)
    predicted, happened = (torch.zeros_like(values[:bins]).index_add(0, of_bin, x) / count for x in (values, targets))
    error = float((predicted - happened).abs() @ (count / len(order)).double())
    return Calibration(predicted=predicted, happened=happened, count=count, error=error)
