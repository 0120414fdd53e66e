"""Layers that the networks of Loong share. Inputs are bytes 0 to 127, grids have their channels last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

BYTE_SCALE = 1 / 127
"""What input bytes are multiplied by. Layers that read bytes scale their weights, which are fewer than the inputs."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within it, new layers draw their first weights from `seed`; torch's own generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def small_start(layer: nn.Linear, gain: float = 0.01) -> nn.Linear:
    """Weights made small and biases zero: a policy then starts near uniform (Andrychowicz et al. 2021)."""
    with torch.no_grad():
        layer.weight.mul_(gain)
        layer.bias.zero_()
    return layer


class ByteConv2d(nn.Conv2d):
    """A convolution of bytes, uint8 [n, channels, height, width], scaled to [0, 1]."""

    def forward(self, bytes_: Tensor) -> Tensor:
        weight = self.weight * BYTE_SCALE
        return functional.conv2d(bytes_.to(weight.dtype), weight, self.bias, self.stride, self.padding)


class ByteLinear(nn.Linear):
    """A dense layer over bytes, uint8 or float [..., inputs], scaled to [0, 1]."""

    def forward(self, bytes_: Tensor) -> Tensor:
        weight = self.weight * BYTE_SCALE
        return functional.linear(bytes_.to(weight.dtype), weight, self.bias)


def channels_last(module: nn.Module) -> None:
    """Lay out the convolutions' weights as their inputs lie."""
    for parameter in module.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


def channels_first(grid: Tensor, side: int) -> Tensor:
    """[n, side * side * channels] with channels last, as [n, channels, side, side] without moving a byte."""
    return grid.view(len(grid), side, side, grid.shape[1] // side**2).permute(0, 3, 1, 2)


def flattened(grid: Tensor) -> Tensor:
    """[n, channels, height, width] as [n, height * width * channels]: free where channels lie last in memory."""
    return grid.permute(0, 2, 3, 1).flatten(1)


class Block(nn.Module):
    """Residual block (He et al. 2016): two 3x3 convolutions with GroupNorm (Wu and He 2018), the first one followed by
    FiLM (Perez et al. 2018), a scale and a shift of each channel that come from outside."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(groups, channels, affine=False)  # FiLM scales and shifts
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(groups, channels)

    def forward(self, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """x: [n, channels, height, width]; scale, shift: [n, channels]."""
        y = self.first_norm(self.first(x))
        y = torch.addcmul(shift[:, :, None, None], y, scale[:, :, None, None]).relu_()
        y = self.second_norm(self.second(y))
        return torch.add(x, y).relu_()


class Film(nn.Module):
    """Scales and shifts for all blocks of a trunk from one code, by one dense layer. Starts near the identity."""

    def __init__(self, code: int, blocks: int, channels: int) -> None:
        super().__init__()
        self.shape = (blocks, 2, channels)
        self.dense = small_start(nn.Linear(code, blocks * 2 * channels), gain=0.1)
        with torch.no_grad():
            self.dense.bias.view(self.shape)[:, 0] = 1.0

    def forward(self, code: Tensor) -> list[tuple[Tensor, Tensor]]:
        """[n, code] -> for each block scale and shift, [n, channels] each."""
        film = self.dense(code).unflatten(1, self.shape)
        return [(film[:, block, 0], film[:, block, 1]) for block in range(self.shape[0])]


class CropEncoder(nn.Module):
    """The tiles around a head: a 3x3 stem, residual blocks, then a dense code; `squeeze` channels reach it (0: all)."""

    def __init__(
        self,
        *,
        side: int,
        planes: int,
        channels: int,
        stride: int,
        blocks: int,
        groups: int,
        squeeze: int,
        film: int,
        width: int,
    ) -> None:
        """film: width of the code that the blocks' FiLM reads."""
        super().__init__()
        self.side = side
        # Where the windows tile the crop nothing is padded.
        padding = 0 if side % stride == 0 and stride == 3 else 1
        self.stem = ByteConv2d(planes, channels, 3, stride=stride, padding=padding)
        self.blocks = nn.ModuleList(Block(channels, groups) for _ in range(blocks))
        self.film = Film(film, blocks, channels) if blocks else None
        self.squeeze = nn.Conv2d(channels, squeeze, 1) if squeeze else None
        small_side = (side + 2 * padding - 3) // stride + 1
        self.dense = nn.Linear(small_side**2 * (squeeze or channels), width)
        channels_last(self)

    def forward(self, crop: Tensor, code: Tensor) -> Tensor:
        """crop: uint8 [n, side * side * planes]; code: [n, film] -> [n, width]."""
        x = self.stem(channels_first(crop, self.side)).relu_()
        if self.film is not None:
            for block, (scale, shift) in zip(self.blocks, self.film(code), strict=True):
                x = block(x, scale, shift)
        if self.squeeze is not None:
            x = self.squeeze(x).relu_()
        out: Tensor = self.dense(flattened(x)).relu_()
        return out


class MapEncoder(nn.Module):
    """The map as blocks: mean-pooled by `pool`, 3x3 convolutions with stride 2, then a dense code."""

    def __init__(self, *, side: int, planes: int, pool: int, channels: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.side, self.pool = side, pool
        side //= pool
        layers: list[nn.Module] = []
        inputs = planes
        for outputs in channels:
            kind = nn.Conv2d if layers else ByteConv2d
            layers += [kind(inputs, outputs, 3, stride=2, padding=1), nn.ReLU(inplace=True)]
            inputs, side = outputs, (side + 1) // 2
        self.convolutions = nn.Sequential(*layers)
        self.dense = (nn.Linear if layers else ByteLinear)(side**2 * inputs, width)
        channels_last(self)

    def forward(self, grid: Tensor) -> Tensor:
        """grid: uint8 [n, side * side * planes] -> [n, width]."""
        x = channels_first(grid, self.side)
        if self.pool > 1:
            x = functional.avg_pool2d(x.to(self.dense.weight.dtype), self.pool)
        out: Tensor = self.dense(flattened(self.convolutions(x))).relu_()
        return out


class SetEncoder(nn.Module):
    """A set of up to k packets (Zaheer et al. 2017, "Deep Sets"): encoded alike, pooled by mean and maximum.

    A packet's first byte says whether there is one; what is not there does not count.
    """

    def __init__(self, *, packets: int, fields: int, hidden: int, width: int) -> None:
        super().__init__()
        self.shape = (packets, fields)
        self.first = ByteLinear(fields, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.dense = nn.Linear(2 * hidden, width)

    def forward(self, packets: Tensor) -> Tensor:
        """packets: uint8 [n, k * fields] -> [n, width]."""
        packets = packets.reshape(-1, *self.shape)
        code = self.second(self.first(packets).relu_()).relu_()
        valid = packets[:, :, :1].ne(0).to(code.dtype)
        code = code * valid  # the codes are at least 0, so a 0 changes no maximum
        mean = code.sum(dim=1) / valid.sum(dim=1).clamp_min(1)
        out: Tensor = self.dense(torch.cat((mean, code.amax(dim=1)), dim=1)).relu_()
        return out


class Experts(nn.Module):
    """A residual layer of experts, of which a router picks the best `chosen` for each row.

    x + sum of gate * expert(LayerNorm(x)) over the chosen (Shazeer et al. 2017; with one chosen, Fedus et al. 2022).
    The gates are the router's probabilities, made to sum to 1 where several are chosen.
    """

    def __init__(self, width: int, hidden: int, *, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.norm = nn.LayerNorm(width)
        self.router = small_start(nn.Linear(width, experts), gain=0.1)
        self.up = nn.Parameter(torch.empty(experts, width, hidden).uniform_(-(width**-0.5), width**-0.5))
        self.up_bias = nn.Parameter(torch.zeros(experts, hidden))
        self.down = nn.Parameter(torch.empty(experts, hidden, width).uniform_(-(hidden**-0.5), hidden**-0.5))
        self.down_bias = nn.Parameter(torch.zeros(experts, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[n, width] -> [n, width], and the balancing loss: experts * sum of share of picks * mean probability, which
        is 1 where all are picked alike (Fedus et al. 2022, equation 4)."""
        normal = self.norm(x)
        logits = self.router(normal)
        probability = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(dim=1)
        gate, pick = probability.topk(self.chosen, dim=1)
        if self.chosen > 1:
            gate = gate / gate.sum(dim=1, keepdim=True)
        picks = pick.flatten()
        count = torch.bincount(picks, minlength=len(self.up))
        # Rows in the experts' order, so that each expert multiplies one matrix.
        order = picks.argsort(stable=True)
        parts = normal[order // self.chosen].split(count.tolist())
        weights = zip(self.up.unbind(), self.up_bias.unbind(), self.down.unbind(), self.down_bias.unbind(), strict=True)
        sorted_ = torch.cat(
            [
                torch.addmm(down_bias, torch.addmm(up_bias, part, up).relu_(), down)
                for part, (up, up_bias, down, down_bias) in zip(parts, weights, strict=True)
            ]
        )
        sorted_ = sorted_ * gate.flatten()[order].unsqueeze(1).to(sorted_.dtype)
        back = torch.empty_like(sorted_).index_copy(0, order, sorted_)
        balance = (count / max(len(picks), 1) * probability.mean(dim=0)).sum() * len(self.up)
        return x + back.view(*pick.shape, -1).sum(dim=1), balance
