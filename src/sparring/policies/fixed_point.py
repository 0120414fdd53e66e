"""Layers of the student in fixed point: trained in floating point, computed by the bot in integers.

Every number that one layer hands to another has a `Format`, a power of two as its unit and whole limits. A layer's
weights are whole numbers from -127 to 127 times a step of their row, and the step is a whole multiplier over a power of
two (Jacob et al. 2018, "Quantization and training of neural networks for efficient integer-arithmetic-only
inference"). So whatever a layer computes is a whole number of units that fits into 53 bits: in float64 it is exact
whatever the order of the sums, and equal to the integers of the bot. `FixedPoint.table` is where all of them come from.

With its switch `quantised` a layer computes that; without it, it is an ordinary layer with the same limits. Gradients
pass straight through what is rounded (Bengio et al. 2013) and are zero beyond the limits.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

ARITHMETIC = 1
"""Number of what this module, a student and its integers compute; another one with every change of a result.

Students on disk say theirs, and another Sparring refuses them. A test holds the number to the results.
"""


@dataclass(frozen=True)
class Format:
    """Whole numbers from `low` to `high` that count units of `unit`, a power of two."""

    unit: float
    low: int
    high: int

    @property
    def most(self) -> int:
        """The largest magnitude."""
        return max(-self.low, self.high)


BYTE = Format(2.0**-7, 0, 127)
"""Inputs."""
HIDDEN = Format(2.0**-10, 0, 8191)
"""What comes out of a ReLU: 0 to just under 8."""
SIGNED = Format(2.0**-10, -8191, 8191)
"""The same without a ReLU."""
GATE = Format(2.0**-12, -32768, 32767)
"""What goes into the gates of a memory (Q3.12)."""
UNIT = Format(2.0**-15, -32767, 32767)
"""Memories, and what comes out of gates (Q0.15)."""
LOGIT = Format(2.0**-12, -(2**31 - 1), 2**31 - 1)
"""Of all heads, so that logits can be compared."""
PICK = Format(1.0, 0, 1)
"""A one-hot code: what a table multiplies."""

MOST_WEIGHT = 127
MULTIPLIER_BITS = 21
"""A multiplier is at most 2^21, so that its product with a 32-bit sum has at most 52 bits."""
MOST_SHIFT = 45
MOST_BIAS = 2**29
"""A row's step is never so fine that its bias would count more."""

GATE_ENTRIES = 4096
"""Of each table that stands for a sigmoid or a hyperbolic tangent."""
_GATE_STEP = (GATE.high + 1 - GATE.low) // GATE_ENTRIES


@dataclass(frozen=True)
class IntegerRows:
    """A layer in integers, whole numbers in float64.

    sum = bias + weight * input over a row's inputs; out = sum * multiplier / 2^shift, rounded half up.
    weight: [rows, ...]; bias: [rows] or [sets, rows] or None; multiplier: [rows]; shift: []; step: float64 [rows], the
    real value of one count of weight
    """

    weight: Tensor
    bias: Tensor | None
    multiplier: Tensor
    shift: Tensor
    step: Tensor


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, smooth: Tensor, exact: Tensor) -> Tensor:
        return exact

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


class _Round(torch.autograd.Function):
    """In place. The gradient passes through what is rounded, and is zero at the limits."""

    @staticmethod
    def forward(ctx: Any, counts: Tensor, to: Format) -> Tensor:
        real = counts.floor_().clamp_(to.low, to.high).mul_(to.unit)
        ctx.mark_dirty(counts)
        ctx.save_for_backward(real)
        ctx.to = to
        return real

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (real,), to = ctx.saved_tensors, ctx.to
        inside = torch.ops.aten.hardtanh_backward(gradients[0], real, to.low * to.unit, to.high * to.unit)
        return inside.mul_(to.unit), None


def straight_through(smooth: Tensor, exact: Tensor) -> Tensor:
    """`exact`, with the gradient of `smooth`."""
    out: Tensor = _StraightThrough.apply(smooth, exact)  # type: ignore[no-untyped-call]
    return out


@functools.cache
def gate_tables() -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Sigmoid and hyperbolic tangent, int16 [4096] each in UNIT, of the middle of 16 neighbouring numbers in GATE."""
    middle = (np.arange(GATE_ENTRIES) * _GATE_STEP + GATE.low + (_GATE_STEP - 1) / 2) * GATE.unit
    curves = (1 / (1 + np.exp(-middle)), np.tanh(middle))
    sigmoid, tanh = (np.clip(np.rint(curve / UNIT.unit), UNIT.low, UNIT.high).astype(np.int16) for curve in curves)
    return sigmoid, tanh


class Switched(nn.Module):
    """A part whose arithmetic is that of the bot where `quantised` is set."""

    quantised = False

    def settle(self, x: Tensor, to: Format) -> Tensor:
        """Within the limits of a format, and a whole number of its units where quantised: rounded half up."""
        if not self.quantised:
            return functional.hardtanh(x, to.low * to.unit, to.high * to.unit)
        return self.rounded(x / to.unit + 0.5, to)

    @staticmethod
    def rounded(counts: Tensor, to: Format) -> Tensor:
        """The number that so many units and a half stand for, rounded down and cut. `counts` is overwritten."""
        real: Tensor = _Round.apply(counts, to)  # type: ignore[no-untyped-call]
        return real

    def sigmoid(self, x: Tensor) -> Tensor:
        """x: in GATE -> in UNIT."""
        return self._curve(x, x.sigmoid(), 0)

    def tanh(self, x: Tensor) -> Tensor:
        """x: in GATE -> in UNIT."""
        return self._curve(x, x.tanh(), 1)

    def _curve(self, x: Tensor, smooth: Tensor, which: int) -> Tensor:
        if not self.quantised:
            return smooth
        table = torch.from_numpy(gate_tables()[which]).to(x) * UNIT.unit
        return straight_through(smooth, table[((x / GATE.unit - GATE.low) / _GATE_STEP).long()])


class FixedPoint(Switched):
    """Rows of weights that turn numbers of one format into numbers of another."""

    least_shift = MULTIPLIER_BITS
    """So that what a 32-bit sum is scaled to has no more bits than the sum."""

    def __init__(self, *shape: int, source: Format, target: Format, bias: bool = True, sets: int = 0) -> None:
        """shape: of the weights, rows first; sets: of biases to choose from, 0 for one that is always added.

        The start is that of He et al. 2015 before a ReLU, else uniform within 1 / sqrt(inputs).
        """
        super().__init__()
        self.source, self.target = source, target
        self.weight = nn.Parameter(torch.empty(shape))
        inputs = math.prod(shape[1:])
        bound = math.sqrt((6 if target is HIDDEN else 1) / inputs)
        nn.init.uniform_(self.weight, -bound, bound)
        self.bias = nn.Parameter(torch.zeros((sets, shape[0]) if sets else shape[0])) if bias else None
        self.frozen: tuple[Tensor, Tensor | None] | None = None
        """Weights and biases that stand for those of the parameters, see `freeze`."""

    @torch.no_grad()
    def table(self) -> IntegerRows:
        """The one scale table, from the weights as they are. It does not ask whether sums can overflow."""
        weight = self.weight.double()
        bias = None if self.bias is None else self.bias.double()
        step = weight.abs().flatten(1).amax(dim=1) / MOST_WEIGHT
        if bias is not None:
            step = step.maximum(bias.abs().reshape(-1, len(weight)).amax(dim=0) / (MOST_BIAS * self.source.unit))
        ratio = step * (self.source.unit / self.target.unit)
        # As many bits for the largest multiplier as it may have: the shift is one for all rows.
        exponent = torch.frexp(ratio.amax().clamp_min(2.0**-64)).exponent
        shift = (MULTIPLIER_BITS - exponent).clamp(self.least_shift, MOST_SHIFT)
        multiplier = torch.ldexp(ratio, shift).ceil().clamp(1, 2**MULTIPLIER_BITS)
        step = torch.ldexp(multiplier, -shift) * (self.target.unit / self.source.unit)
        columns = step.view(-1, *[1] * (weight.dim() - 1))
        return IntegerRows(
            weight=(weight / columns).round().clamp(-MOST_WEIGHT, MOST_WEIGHT),
            bias=None if bias is None else (bias / (step * self.source.unit)).round(),
            multiplier=multiplier,
            shift=shift,
            step=step,
        )

    def freeze(self, rows: IntegerRows) -> None:
        """From now on computes with these integers, quantised, whatever the parameters are."""
        self.frozen = self._real(rows)

    def arrays(self) -> tuple[Tensor, Tensor | None]:
        """What inputs are multiplied by and what is added: where quantised so that `rounded` can follow."""
        if not self.quantised:
            return self.weight, self.bias
        if self.frozen is not None:
            weight, bias = self.frozen
        else:
            weight, bias = self._real(self.table())
            weight = straight_through(self.weight, weight)
            bias = None if self.bias is None or bias is None else straight_through(self.bias, bias)
        # Units of what comes out, and the half that rounding adds, once for each weight and not for each number.
        return weight / self.target.unit, None if bias is None else bias / self.target.unit + 0.5

    def finish(self, sums: Tensor) -> Tensor:
        """What comes out, from what `arrays` made. `sums` is overwritten."""
        return self.rounded(sums, self.target) if self.quantised else self.settle(sums, self.target)

    def _real(self, rows: IntegerRows) -> tuple[Tensor, Tensor | None]:
        step = rows.step.view(-1, *[1] * (self.weight.dim() - 1))
        bias = None if rows.bias is None else (rows.bias * (rows.step * self.source.unit)).to(self.weight)
        return (rows.weight * step).to(self.weight), bias


def _as_numbers(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Bytes as numbers of the weights' type. The weights, which are fewer, are scaled in their place."""
    return (x, weight) if x.is_floating_point() else (x.to(weight.dtype), weight * BYTE.unit)


class Dense(FixedPoint):
    """A dense layer: [..., inputs], bytes or numbers in `source` -> [..., outputs] in `target`."""

    def __init__(self, inputs: int, outputs: int, *, source: Format, target: Format, sets: int = 0) -> None:
        super().__init__(outputs, inputs, source=source, target=target, sets=sets)

    def forward(self, x: Tensor, chosen: Tensor | None = None) -> Tensor:
        """chosen: int64 [n], which of the sets of biases is added to each row."""
        weight, bias = self.arrays()
        x, weight = _as_numbers(x, weight)
        if bias is not None and chosen is not None:
            return self.finish(functional.linear(x, weight) + functional.embedding(chosen, bias))
        return self.finish(functional.linear(x, weight, bias))


class Convolution(FixedPoint):
    """A 3x3 convolution padded by 1: [n, channels, height, width], bytes or numbers in `source`."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, source: Format) -> None:
        super().__init__(outputs, inputs, 3, 3, source=source, target=HIDDEN)
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.arrays()
        x, weight = _as_numbers(x, weight)
        return self.finish(functional.conv2d(x, weight, bias, self.stride, padding=1))


class Tables(FixedPoint):
    """Tables of codes, one step for each table: int64 [n, tables] -> [n, tables * width] in SIGNED."""

    least_shift = 8  # what is scaled is one weight

    def __init__(self, tables: int, entries: int, width: int) -> None:
        super().__init__(tables, entries, width, source=PICK, target=SIGNED, bias=False)
        nn.init.normal_(self.weight, std=0.1)

    def forward(self, entry: Tensor) -> Tensor:
        weight, _ = self.arrays()
        if self.quantised:
            weight = weight + 0.5
        tables, entries, width = weight.shape
        first = torch.arange(tables, device=entry.device) * entries
        codes = functional.embedding(entry + first, weight.view(tables * entries, width))
        return self.finish(codes.flatten(1))


class Memory(Switched):
    """A gated recurrent unit (Cho et al. 2014) whose state is in UNIT: its share of the gates, and what they do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates = Dense(width, 3 * width, source=UNIT, target=GATE)

    def forward(self, inputs: Tensor, state: Tensor) -> Tensor:
        """inputs: [n, 3 * width] in GATE, what is new; state: [n, width] -> the next state."""
        reset_in, update_in, new_in = inputs.chunk(3, dim=1)
        reset_own, update_own, new_own = self.gates(state).chunk(3, dim=1)
        reset = self.sigmoid(self.settle(reset_in + reset_own, GATE))
        update = self.sigmoid(self.settle(update_in + update_own, GATE))
        new = self.tanh(self.settle(new_in + self.settle(reset * new_own, GATE), GATE))
        return new + self.settle(update * (state - new), WIDE_UNIT)


WIDE_UNIT = Format(UNIT.unit, 2 * UNIT.low, 2 * UNIT.high)
"""The difference of two numbers in UNIT."""
