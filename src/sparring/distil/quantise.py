"""The student in integers: the arrays that a bot computes with, the file that carries them, and two references.

`integers` takes them from the student's one scale table (`fixed_point.FixedPoint.table`). `IntegerStudent.step` is the
arithmetic in 64-bit integers, to be read beside core/net; `ExactStudent` is the network itself in float64, which gives
the same numbers; `CoreStudent` is core/net. docs/loong-student.md describes the arithmetic and the file.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.policies.actions import (
    CLAIMS,
    KINDS,
    MASK_HELD,
    MASK_KINDS,
    MASK_PAYABLE,
    MASK_ROLE_DUE,
    MASK_SIZES,
    MAX_STEPS,
    MIN_STEPS,
    MOVE,
    RIGHT,
    SMALLEST_SPLIT,
    SPLIT,
    SPRINT,
    STOP,
    Actions,
    pack,
)
from sparring.policies.fixed_point import GATE, HIDDEN, UNIT, FixedPoint, Format, IntegerRows, gate_tables
from sparring.policies.loong import CROP_SIDE, OVERVIEW_SIDE, PACKETS
from sparring.policies.student import (
    CROP_PLANES,
    HEAD_SPLIT,
    INPUT_SPLIT,
    OVERVIEW_PLANES,
    SONAR_FIELDS,
    Student,
    StudentConfig,
    table_entries,
)

Integers = NDArray[np.int64]

MAGIC = b"SPARNET1"
ALIGNMENT = 16
ROW_BLOCK = 8
"""Rows whose weights lie side by side in the file."""
SEGMENTS = (128, 32, 8)
"""Inputs of one row that lie together: as many of the largest as fit, then of the next."""
MOST_SUM = 2**31


@dataclass(frozen=True)
class IntegerLayer:
    """sum = bias + weight * input in 32 bits, then (sum * multiplier + 2^(shift-1)) >> shift, cut to `target`.

    weight: int8 [rows, ...], grids [rows, 3, 3, channels]; bias: int32 [sets, rows]; multiplier: int32 [rows]
    """

    weight: NDArray[np.int8]
    bias: NDArray[np.int32]
    multiplier: NDArray[np.int32]
    shift: int
    target: Format

    def __call__(self, x: Integers, chosen: Integers | None = None) -> Integers:
        """int64 [..., inputs] -> int64 [..., rows]. chosen: int64 [n], which set of biases is added to each row."""
        weight = self.weight.reshape(len(self.weight), -1).astype(np.int64)
        return self.settle(x @ weight.T + (self.bias[0] if chosen is None else self.bias[chosen]))

    def convolve(self, grid: Integers, stride: int) -> Integers:
        """int64 [n, side, side, channels] -> int64 [n, smaller side, smaller side, rows], padded by zeros."""
        padded = np.pad(grid, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
        return self(windows.transpose(0, 1, 2, 4, 5, 3).reshape(*windows.shape[:3], -1))

    def settle(self, sums: Integers) -> Integers:
        """The sums, whose last axis has a multiplier each, in the target format."""
        scaled = (sums * self.multiplier + (1 << (self.shift - 1))) >> self.shift
        out: Integers = np.clip(scaled, self.target.low, self.target.high)
        return out


@dataclass(frozen=True)
class IntegerStudent:
    """All that a bot's network is. layers: by the names of the student's parts; steps: int16 [3, 3 * sprint_state]."""

    config: StudentConfig
    layers: Mapping[str, IntegerLayer]
    steps: NDArray[np.int16]

    def newborn(self, n: int) -> NDArray[np.int16]:
        """The memory of n dragons before their first decision."""
        return np.zeros((n, self.config.memory), dtype=np.int16)

    def step(
        self, inputs: NDArray[np.uint8], mask: NDArray[np.uint8], memory: NDArray[np.int16]
    ) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
        """One decision of each of n dragons: packed actions int64 [n], the next memory int16 [n, memory].

        inputs: uint8 [n, 9424]; mask: uint8 [n, 40]; memory: int16 [n, memory], at most 32,767 in magnitude
        Part by part the choice with the largest logit among the legal ones is taken, the first of those that are equal.
        """
        after = self._remember(self._encode(inputs), memory.astype(np.int64), "memory.gates")
        return self._choose(after, mask), after.astype(np.int16)

    def _encode(self, inputs: NDArray[np.uint8]) -> Integers:
        layers, config, n = self.layers, self.config, len(inputs)
        crop, overview, scalars, sonar = np.split(inputs.astype(np.int64), np.cumsum(INPUT_SPLIT)[:-1], axis=1)

        grid = crop.reshape(n, CROP_SIDE, CROP_SIDE, CROP_PLANES)
        for layer, stride in enumerate((config.first_stride, 1, 1, 2)):
            grid = layers[f"crop.convolutions.{layer}"].convolve(grid, stride)
        crop_code = layers["crop.dense"](grid.reshape(n, -1))

        grid = overview.reshape(n, OVERVIEW_SIDE, OVERVIEW_SIDE, OVERVIEW_PLANES)
        overview_code = layers["overview.dense"](layers["overview.convolution"].convolve(grid, 2).reshape(n, -1))

        packets = sonar.reshape(n, PACKETS, SONAR_FIELDS)
        codes = layers["sonar.second"](layers["sonar.first"](packets)) * (packets[:, :, :1] != 0)
        mean = (codes.sum(axis=1) + PACKETS // 2) // PACKETS
        sonar_code = layers["sonar.dense"](np.concatenate((mean, codes.max(axis=1)), axis=1))

        tables = layers["tables"]
        entries = table_entries(torch.from_numpy(inputs[:, : INPUT_SPLIT[0]])).numpy()
        found = tables.weight[np.arange(len(tables.weight)), entries].astype(np.int64)
        table_codes = tables.settle(found.transpose(0, 2, 1)).transpose(0, 2, 1).reshape(n, -1)

        codes = np.concatenate((crop_code, overview_code, sonar_code, layers["scalars"](scalars), table_codes), axis=1)
        x = layers["join"](codes)
        expert = layers["experts.router"](x).argmax(axis=1)
        out = np.empty_like(x)
        for pair in range(config.experts):
            rows = expert == pair
            out[rows] = x[rows] + layers[f"experts.down.{pair}"](layers[f"experts.up.{pair}"](x[rows]))
        return layers["gates"](np.clip(out, HIDDEN.low, HIDDEN.high))

    def _remember(self, told: Integers, state: Integers, gates: str) -> Integers:
        """The state of a memory, [n, width], after it is told [n, 3 * width]."""
        sigmoid, tanh = (table.astype(np.int64) for table in gate_tables())
        reset_told, update_told, new_told = np.split(told, 3, axis=1)
        reset_own, update_own, new_own = np.split(self.layers[gates](state), 3, axis=1)
        reset = sigmoid[_entry(reset_told + reset_own)]
        update = sigmoid[_entry(update_told + update_own)]
        new = tanh[_entry(new_told + _product(reset, new_own))]
        return new + _product(update, state - new)

    def _choose(self, features: Integers, mask: NDArray[np.uint8]) -> NDArray[np.int64]:
        layers, n = self.layers, len(features)
        row = np.arange(n)
        role = np.where(mask[:, MASK_ROLE_DUE] != 0, layers["heads.role"](features).argmax(axis=1), mask[:, MASK_HELD])
        hidden = layers["heads.hidden"](features, role)
        logits = np.split(layers["heads.logits"](hidden), np.cumsum(HEAD_SPLIT)[:-1], axis=1)
        kind = _best(logits[0], mask[:, MASK_KINDS:MASK_SIZES] != 0)
        direction = logits[1].argmax(axis=1) * (kind == MOVE)
        size = (_best(logits[2], mask[:, MASK_SIZES:MASK_PAYABLE] != 0) + SMALLEST_SPLIT) * (kind == SPLIT)
        claim = logits[3].reshape(n, KINDS, CLAIMS)[row, kind].argmax(axis=1)

        _, tanh = gate_tables()
        state = tanh[_entry(layers["heads.sprint_start"](hidden))].astype(np.int64)
        running = kind == SPRINT
        steps = np.zeros(n, dtype=np.int64)
        sprint = np.zeros((n, MAX_STEPS), dtype=np.int64)
        for position in range(MAX_STEPS):
            running = running & (mask[:, MASK_PAYABLE] > position)
            if not running.any():
                break
            legal = np.array([True, True, True, position >= MIN_STEPS])
            choice = _best(layers["heads.step"](state), np.broadcast_to(legal, (n, STOP + 1)))
            running = running & (choice != STOP)
            steps += running
            sprint[:, position] = choice * running
            told = self.steps[np.minimum(choice, RIGHT)].astype(np.int64)
            state = self._remember(told, state, "heads.sprint.gates")
        parts = (role, kind, direction, size, steps, sprint, claim)
        names = [field.name for field in fields(Actions)]
        tensors = {name: torch.from_numpy(part.astype(np.int64)) for name, part in zip(names, parts, strict=True)}
        packed: NDArray[np.int64] = pack(Actions(**tensors)).numpy()
        return packed

    # The file

    def blob(self) -> bytes:
        """The file of weights as core/net reads it in place; `from_blob` is its inverse."""
        out = bytearray(MAGIC + bytes(4) + struct.pack(f"<{len(astuple(self.config))}I", *astuple(self.config)))

        def put(array: NDArray[np.generic]) -> None:
            out.extend(bytes(-len(out) % ALIGNMENT))
            out.extend(array.tobytes())

        for table in gate_tables():
            put(table)
        for name, layer in self.layers.items():
            put(np.array([layer.shift], dtype=np.int32))
            put(_padded(layer.multiplier))
            put(np.stack([_padded(biases) for biases in layer.bias]))
            put(_ordered(layer.weight) if name != "tables" else layer.weight)
        put(self.steps)
        out.extend(bytes(-len(out) % ALIGNMENT))
        struct.pack_into("<I", out, len(MAGIC), len(out))
        return bytes(out) + hashlib.sha256(out).digest()

    @staticmethod
    def from_blob(blob: bytes) -> IntegerStudent:
        """Raises SparringError where the bytes are no such file, or not as they were written."""
        count = len(fields(StudentConfig))
        begin = len(MAGIC) + 4 + 4 * count
        if len(blob) < begin or blob[: len(MAGIC)] != MAGIC:
            raise SparringError("these are no weights of a student: the first bytes are not SPARNET1")
        (size,) = struct.unpack_from("<I", blob, len(MAGIC))
        if len(blob) != size + 32 or hashlib.sha256(blob[:size]).digest() != blob[size:]:
            raise SparringError("the student's weights are damaged: their hash is not the one they carry; export again")
        config = StudentConfig(
            **dict(zip(_CONFIG, struct.unpack_from(f"<{count}I", blob, len(MAGIC) + 4), strict=True))
        )
        at = begin

        def take(dtype: type[np.generic], *shape: int) -> NDArray[np.generic]:
            nonlocal at
            at += -at % ALIGNMENT
            if at + int(np.prod(shape)) * np.dtype(dtype).itemsize > size:
                raise SparringError("the student's weights end before its layers do; export again")
            array = np.frombuffer(blob, dtype, int(np.prod(shape)), at).reshape(shape)
            at += array.nbytes
            return array

        for table in gate_tables():
            if not np.array_equal(take(np.int16, len(table)), table):
                raise SparringError("the student's weights were written with other gate tables; export again")
        layers = {}
        for name, part in _parts(Student(config)):
            rows, padded = len(part.weight), _blocks(len(part.weight))
            shift = int(take(np.int32, 1)[0])
            multiplier = take(np.int32, padded)[:rows].astype(np.int32)
            sets = 1 if part.bias is None or part.bias.dim() == 1 else len(part.bias)
            bias = take(np.int32, sets, padded)[:, :rows].astype(np.int32)
            shape = _grid_last(part.weight).shape
            if name == "tables":
                weight = take(np.int8, *shape).astype(np.int8)
            else:
                flat = take(np.int8, padded * part.weight[0].numel()).astype(np.int8)
                weight = _unordered(flat, shape)
            layers[name] = IntegerLayer(weight, bias, multiplier, shift, part.target)
        steps = take(np.int16, 3, 3 * config.sprint_state).astype(np.int16)
        return IntegerStudent(config, layers, steps)


_CONFIG = [field.name for field in fields(StudentConfig)]


def integers(student: Student) -> IntegerStudent:
    """The student in integers. Raises SparringError, naming layer, row and bound, where a 32-bit sum could overflow."""
    layers = {}
    for name, part in _parts(student):
        rows = part.table()
        _check(name, part, rows)
        bias = torch.zeros(1, len(rows.weight)) if rows.bias is None else rows.bias.reshape(-1, len(rows.weight))
        layers[name] = IntegerLayer(
            weight=_grid_last(rows.weight).cpu().numpy().astype(np.int8),
            bias=bias.cpu().numpy().astype(np.int32),
            multiplier=rows.multiplier.cpu().numpy().astype(np.int32),
            shift=int(rows.shift),
            target=part.target,
        )
    steps = student.heads.sprint_input.detach().double().cpu() / GATE.unit
    return IntegerStudent(
        student.config, layers, (steps + 0.5).floor().clamp(GATE.low, GATE.high).numpy().astype(np.int16)
    )


class ExactStudent(Student):
    """The student in float64, of which every number is exact: it decides and remembers as the integers do.

    It is called as the teacher is; its memory is float64 [n, memory], whole 2^15ths.
    """

    def __init__(self, integers: IntegerStudent) -> None:
        super().__init__(integers.config)
        self.double().requires_grad_(False)
        for name, part in _parts(self):
            layer = integers.layers[name]
            weight = torch.from_numpy(layer.weight).double()
            bias = torch.from_numpy(layer.bias).double()
            multiplier, shift = torch.from_numpy(layer.multiplier).double(), torch.tensor(layer.shift)
            step = torch.ldexp(multiplier, -shift) * (part.target.unit / part.source.unit)
            part.freeze(
                IntegerRows(
                    weight=weight.permute(0, 3, 1, 2) if part.weight.dim() == 4 else weight,
                    bias=None if part.bias is None else bias.view_as(part.bias),
                    multiplier=multiplier,
                    shift=shift,
                    step=step,
                )
            )
        self.heads.sprint_input.copy_(torch.from_numpy(integers.steps).double() * GATE.unit)
        self.quantised = True


@dataclass(frozen=True)
class Chosen:
    """Decisions that are made: packed actions int64 [n]."""

    packed: Tensor

    def mode(self) -> Tensor:
        """As a tree of choices would give them."""
        return self.packed


class CoreStudent:
    """The student as the core computes it, several times as fast as `ExactStudent`: for play that is greedy.

    It is called as the teacher is, but only makes decisions; its memory is float32 [n, memory], whole 2^15ths.
    """

    def __init__(self, integers: IntegerStudent) -> None:
        self.config = integers.config
        self._blob = integers.blob()

    def newborn(self, n: int) -> Tensor:
        """The memory of n dragons before their first decision: zeros [n, config.memory]."""
        return torch.zeros(n, self.config.memory)

    def step(self, inputs: Tensor, mask: Tensor, memory: Tensor) -> tuple[Chosen, Tensor]:
        """One decision of each of n dragons, and the next memory. All on the CPU."""
        state = (memory / UNIT.unit).to(torch.int16)
        packed, after = _core.net_step(self._blob, inputs.numpy(), mask.numpy(), state.numpy())
        return Chosen(torch.from_numpy(packed)), torch.from_numpy(after).to(memory.dtype) * UNIT.unit


def _parts(student: Student) -> Iterator[tuple[str, FixedPoint]]:
    """Every layer by its name, in the order of the file."""
    return ((name, part) for name, part in student.named_modules() if isinstance(part, FixedPoint))


def _check(name: str, part: FixedPoint, rows: IntegerRows) -> None:
    weight, bias = part.weight.detach().double().flatten(1), part.bias
    finite = weight.isfinite().all(dim=1)
    if bias is not None:
        finite &= bias.detach().isfinite().reshape(-1, len(weight)).all(dim=0)
    if not finite.all():
        raise SparringError(f"layer {name}, row {int(finite.int().argmin())}: a weight is not a number")
    largest = rows.step * 127.5
    if bool((weight.abs().amax(dim=1) >= largest).any()):
        row = int((weight.abs().amax(dim=1) - largest).argmax())
        raise SparringError(
            f"layer {name}, row {row}: a weight of {float(weight[row].abs().max()):g} is too large: "
            f"the bot has at most {float(largest[row]):g}"
        )
    bound = rows.weight.abs().flatten(1).sum(dim=1) * part.source.most
    if rows.bias is not None:
        bound = bound + rows.bias.abs().reshape(-1, len(weight)).amax(dim=0)
    row = int(bound.argmax())
    if float(bound[row]) >= MOST_SUM:
        raise SparringError(
            f"layer {name}, row {row}: its sum can reach {int(bound[row]):,} and would overflow: "
            f"the bot's 32 bits hold less than {MOST_SUM:,}; train on with smaller weights"
        )


def _entry(x: Integers) -> Integers:
    """Which of the 4,096 entries of a gate's table stands for each number, saturated to GATE."""
    entry: Integers = (np.clip(x, GATE.low, GATE.high) - GATE.low) >> 4
    return entry


def _product(gate: Integers, x: Integers) -> Integers:
    """x times a gate in UNIT, rounded half up, in the format of x."""
    return (gate * x + (1 << 14)) >> 15


def _best(logits: Integers, legal: NDArray[np.bool_]) -> Integers:
    best: Integers = np.where(legal, logits, np.iinfo(np.int64).min).argmax(axis=1)
    return best


def _grid_last(weight: Tensor) -> Tensor:
    """The weights of a convolution with their channels last, others as they are."""
    return weight.permute(0, 2, 3, 1) if weight.dim() == 4 else weight


def _blocks(rows: int) -> int:
    return rows + -rows % ROW_BLOCK


def _padded(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """With zeros to whole blocks of rows."""
    return np.pad(rows, (0, -len(rows) % ROW_BLOCK))


def _segments(shape: tuple[int, ...]) -> list[int]:
    """How many inputs of a row lie together: a row of the window of a convolution, or the largest that still fit."""
    if len(shape) == 4:
        return [shape[2] * shape[3]] * shape[1]
    out, left = [], shape[1]
    for segment in SEGMENTS:
        out += [segment] * (left // segment)
        left %= segment
    return out


def _ordered(weight: NDArray[np.int8]) -> NDArray[np.int8]:
    """In the order in which the bot reads them: for eight rows at a time, segment by segment, row by row."""
    flat = np.pad(weight.reshape(len(weight), -1), ((0, -len(weight) % ROW_BLOCK), (0, 0)))
    ends = np.cumsum(_segments(weight.shape))[:-1]
    blocks = [np.split(block, ends, axis=1) for block in np.split(flat, len(flat) // ROW_BLOCK)]
    return np.concatenate([part.ravel() for block in blocks for part in block])


def _unordered(flat: NDArray[np.int8], shape: tuple[int, ...]) -> NDArray[np.int8]:
    """The inverse of `_ordered`."""
    rows, inputs = _blocks(shape[0]), int(np.prod(shape[1:]))
    ends = np.cumsum(_segments(shape))[:-1] * ROW_BLOCK
    blocks = [
        np.concatenate([part.reshape(ROW_BLOCK, -1) for part in np.split(block, ends)], axis=1)
        for block in flat.reshape(rows // ROW_BLOCK, ROW_BLOCK * inputs)
    ]
    return np.concatenate(blocks)[: shape[0]].reshape(shape)
