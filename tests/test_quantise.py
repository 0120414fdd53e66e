"""The student in integers: one scale table, exact equality of all ways to compute, refusals, the file of weights."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_loong_networks import some_bytes, some_masks
from test_student import NARROW

from sparring import _core
from sparring.distil.quantise import CoreStudent, ExactStudent, IntegerStudent, integers
from sparring.errors import SparringError
from sparring.policies.actions import unpack
from sparring.policies.fixed_point import ARITHMETIC, GATE, HIDDEN, SIGNED, UNIT, Dense, gate_tables
from sparring.policies.student import Student, StudentConfig, preset

WIDE = replace(
    NARROW, channels=16, first_stride=1, overview_channels=16, joined=136, memory=40, experts=3, sonar_code=40
)
"""Every length of a segment, and whole and broken blocks of rows."""


def grown(config: StudentConfig, *, gain: float = 3, seed: int = 1) -> Student:
    """A student whose weights are so large that its numbers fill their formats, and often leave them."""
    student = Student(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in student.named_parameters():
            weight.mul_(gain)
            if "bias" in name:
                weight.add_(torch.randn(weight.shape, generator=generator) * 0.1 * gain)
    return student


CHANGES = ("none", "signs", "zero", "tiny", "all alike", "all below", "one row")


@torch.no_grad()
def change(weight: torch.Tensor, how: str) -> None:
    """Weights at their limits, zero, so small that their step is the least, of one sign, or of unlike rows."""
    if how == "signs":
        weight.copy_(weight.sign() * 0.05)
    elif how == "zero":
        weight.zero_()
    elif how == "tiny":
        weight.mul_(2.0**-30)
    elif how == "all alike":
        weight.fill_(0.02)
    elif how == "all below":
        weight.abs_().neg_()
    elif how == "one row":
        weight[0] *= 0.001


def some_rows(n: int, seed: int) -> NDArray[np.uint8]:
    """Inputs uint8 [n, 9424] as sparse as real ones, and one full row: all bytes at most."""
    rows = some_bytes(n, 9424, seed).numpy()
    rows *= np.random.default_rng(seed).random(rows.shape) < np.linspace(0, 1, n)[:, None]
    rows[-1] = 127
    return rows


class AllWays:
    """The same lives by float64, by 64-bit integers, and by the core; they are asserted equal at every step."""

    def __init__(self, student: Student, n: int, memory: NDArray[np.int16] | None = None) -> None:
        self.integers = integers(student)
        self.exact, self.core = ExactStudent(self.integers), CoreStudent(self.integers)
        self.memory = self.integers.newborn(n) if memory is None else memory

    def step(self, inputs: NDArray[np.uint8], mask: NDArray[np.uint8]) -> NDArray[np.int64]:
        with torch.no_grad():
            state = torch.from_numpy(self.memory).double() * UNIT.unit
            tree, after = self.exact.step(torch.from_numpy(inputs), torch.from_numpy(mask), state)
            mode = tree.mode().numpy()
        packed, memory = self.integers.step(inputs, mask, self.memory)
        chosen, core_after = self.core.step(torch.from_numpy(inputs), torch.from_numpy(mask), state.float())
        for other in (after, core_after):
            np.testing.assert_array_equal(other.numpy() / UNIT.unit, memory)
        for choices in (mode, chosen.mode().numpy()):
            np.testing.assert_array_equal(choices, packed)
        self.memory = memory
        return packed


# Equality


@pytest.mark.parametrize("config", [NARROW, WIDE, preset("student-tiny")], ids=["narrow", "wide", "tiny"])
@pytest.mark.parametrize("gain", [1, 4])
def test_all_ways_agree_over_whole_lives(config: StudentConfig, gain: float) -> None:
    n, kinds = 6, set()
    ways = AllWays(grown(config, gain=gain), n)
    for turn in range(12):
        mask = some_masks(n, turn).numpy()
        mask[:3, :3], mask[1, 35] = np.eye(3), 8  # each kind is chosen by a row that has no other
        packed = ways.step(some_rows(n, turn), mask)
        kinds |= {*unpack(torch.from_numpy(packed)).kind.tolist()}
    assert kinds == {0, 1, 2}
    assert len(np.unique(ways.memory)) > 40


ARITHMETICS = {1: "4679d9f6a87cd61b8a62b3104176fb519b832066fe0c41ae53a3576ccbf0746d"}
"""What students compute, by the number of the arithmetic. One that is out in the world never changes."""


def test_what_students_compute_has_a_number() -> None:
    """Students on disk name the arithmetic they were trained in: raise ARITHMETIC when this fails, and add its line."""
    draw = np.random.RandomState(1)  # its numbers are the same in every version of NumPy
    student = Student(NARROW).double()
    with torch.no_grad():
        for weight in student.parameters():
            weight.copy_(torch.from_numpy(draw.uniform(-1, 1, weight.shape)))
    student.quantised = True
    digest, memory = hashlib.sha256(integers(student).blob()), student.newborn(6)
    for _ in range(4):
        inputs = draw.randint(0, 128, (6, 9424)).astype(np.uint8) * (draw.uniform(size=(6, 9424)) < 0.1)
        with torch.no_grad():
            tree, memory = student.step(torch.from_numpy(inputs), torch.full((6, 40), 255, dtype=torch.uint8), memory)
        digest.update((memory / UNIT.unit).to(torch.int16).numpy().tobytes() + tree.mode().numpy().tobytes())
    assert len((memory / UNIT.unit).unique()) > 40
    assert digest.hexdigest() == ARITHMETICS[ARITHMETIC]


def test_the_large_student_agrees() -> None:
    ways = AllWays(grown(preset("student")), 2)
    for turn in range(2):
        ways.step(some_rows(2, turn), some_masks(2, turn).numpy())


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_all_ways_agree_on_adversarial_weights_inputs_and_memories(data: st.DataObject) -> None:
    """Inputs all 0 or 127, memories at the ends of their range."""
    student = grown(NARROW, seed=data.draw(st.integers(0, 3)))
    for _, weight in sorted(student.named_parameters()):
        change(weight, data.draw(st.sampled_from(CHANGES)))
    n = 4
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    memory = rng.choice(np.array([-32767, -1, 0, 1, 32767], dtype=np.int16), (n, NARROW.memory))
    try:
        ways = AllWays(student, n, memory)
    except SparringError:
        return  # refused
    inputs = rng.choice(np.array([0, 1, 126, 127], dtype=np.uint8), (n, 9424))
    inputs[0], inputs[1] = 0, 127
    for turn in range(2):
        ways.step(inputs, some_masks(n, turn).numpy())


def test_of_equal_logits_the_first_is_chosen() -> None:
    student = Student(NARROW, seed=1)
    with torch.no_grad():
        for head in (student.heads.role, student.heads.logits, student.heads.step):
            head.weight.zero_()
    mask = some_masks(4, 3).numpy()
    mask[:, :3] = [[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    mask[:, 3:35] = 0
    mask[2, 3 + 5] = mask[2, 3 + 9] = 1
    mask[:, 35], mask[:, 36], mask[:, 37] = [8, 3, 0, 0], [1, 0, 1, 0], 6
    actions = unpack(torch.from_numpy(AllWays(student, 4).step(some_rows(4, 1), mask)))
    assert actions.role.tolist() == [0, 6, 0, 6]
    assert actions.kind.tolist() == [0, 1, 2, 0] and actions.claim.tolist() == [0] * 4
    assert actions.size.tolist() == [0, 0, 7, 0] and actions.steps.tolist() == [0, 3, 0, 0]


# Quantised training follows the deployed arithmetic


def test_fake_quantised_float32_differs_from_the_integers_only_where_float32_rounds() -> None:
    student = grown(preset("student-tiny"), gain=1.5)
    exact = ExactStudent(integers(student))
    student.quantised = True
    n = 64
    inputs, mask = torch.from_numpy(some_rows(n, 1)), some_masks(n, 1)
    with torch.no_grad():
        told, _ = student.encode(inputs)
        exact_told, _ = exact.encode(inputs)
        same_tree, after = student.step(inputs, mask, student.newborn(n))
        exact_tree, exact_after = exact.step(inputs, mask, exact.newborn(n))
    off = (told.double() - exact_told).abs() / GATE.unit
    assert float(off.mean()) < 0.5 and float(off.max()) <= 16  # units of the last place
    assert float((after.double() - exact_after).abs().mean()) < 1e-4
    assert torch.equal(same_tree.mode(), exact_tree.mode())


def test_a_quantised_student_mostly_chooses_as_its_floats_do() -> None:
    student = grown(preset("student-tiny"), gain=1.5)
    exact = ExactStudent(integers(student))
    n = 256
    memory, exact_memory = student.newborn(n), exact.newborn(n)
    same = []
    with torch.no_grad():
        for turn in range(4):
            inputs, mask = torch.from_numpy(some_rows(n, turn)), some_masks(n, turn)
            tree, memory = student.step(inputs, mask, memory)
            exact_tree, exact_memory = exact.step(inputs, mask, exact_memory)
            one, other = unpack(tree.mode()), unpack(exact_tree.mode())
            same.append((one.kind == other.kind) & (one.role == other.role))
    assert float(torch.cat(same).double().mean()) > 0.95


def test_gradients_pass_straight_through_and_stop_at_the_limits() -> None:
    layer = Dense(8, 8, source=SIGNED, target=HIDDEN)
    layer.quantised = True
    with torch.no_grad():
        layer.weight.copy_(torch.eye(8))
    x = torch.tensor([[0.5, 3.0004, 7.9, 8.5, -0.5, 0.0009, 1.0, 2.0]], requires_grad=True)
    out = layer(x)
    out.sum().backward()
    assert x.grad is not None
    assert x.grad[0].round(decimals=3).tolist() == [1, 1, 1, 0, 0, 1, 1, 1]
    assert (out / HIDDEN.unit % 1 == 0).all() and float(out.detach().max()) == HIDDEN.high * HIDDEN.unit


def test_gates_are_tabled_near_the_curves_and_are_the_same_on_every_machine() -> None:
    sigmoid, tanh = gate_tables()
    assert (np.diff(sigmoid) >= 0).all() and (np.diff(tanh) >= 0).all()
    assert sigmoid.min() == 11 and sigmoid.max() == 32757 and tanh.min() == -32767 and tanh.max() == 32767
    middle = (np.arange(4096) * 16 - 32768 + 7.5) / 4096
    for table, curve in ((sigmoid, 1 / (1 + np.exp(-middle))), (tanh, np.tanh(middle))):
        distance = np.abs(curve * 32768 % 1 - 0.5)
        assert distance.min() > 1e-6  # no rounding hangs on the last digit of a library's exponential
        assert np.abs(table / 32768 - curve).max() < 3.1e-5


# The scale table


def test_weights_use_their_range_and_keep_their_value() -> None:
    student = integers(grown(preset("student-tiny")))
    for name, layer in student.layers.items():
        weight = np.abs(layer.weight.reshape(len(layer.weight), -1)).max(axis=1)
        assert np.median(weight) >= 126, name
        assert layer.multiplier.max() <= 2**21 and layer.multiplier.max() > 2**20, name
    layer = Student(preset("student-tiny"), seed=1).join
    rows = layer.table()
    error = (rows.weight * rows.step[:, None] - layer.weight.detach()).abs().amax(dim=1) / rows.step
    assert float(error.max()) <= 0.5


# Refusals


def test_a_row_that_could_overflow_is_refused_by_layer_row_and_bound() -> None:
    student = Student(preset("student"), seed=1)
    with torch.no_grad():
        student.crop.dense.weight[7] = 0.01
        student.crop.dense.bias[7] = 50.0
    with pytest.raises(SparringError, match=r"layer crop\.dense, row 7: its sum can reach 2,\d{3},\d{3},\d{3} and"):
        integers(student)


def test_the_bound_is_reached_by_real_inputs_and_just_below_it_all_is_exact() -> None:
    """One row, all weights and inputs at most: its sum is the bound."""
    layer = Dense(2048, 8, source=HIDDEN, target=GATE)
    with torch.no_grad():
        layer.weight.fill_(0.01)
    rows = layer.table()
    bound = float(rows.weight[0].sum() * HIDDEN.high)
    assert 0.99 * 2**31 < bound < 2**31
    assert float(rows.weight[0, 0]) == 127


def test_weights_that_are_no_numbers_or_too_large_are_refused() -> None:
    student = Student(NARROW, seed=1)
    with torch.no_grad():
        student.join.weight[3, 2] = float("nan")
    with pytest.raises(SparringError, match="layer join, row 3: a weight is not a number"):
        integers(student)
    student = Student(NARROW, seed=1)
    with torch.no_grad():
        student.heads.role.weight[5, 2] = 5000.0
    with pytest.raises(
        SparringError, match=r"layer heads\.role, row 5: a weight of 5000 is too large: the bot has at most"
    ):
        integers(student)


# The file


@pytest.mark.parametrize("config", [NARROW, WIDE, preset("student-tiny")], ids=["narrow", "wide", "tiny"])
def test_the_file_holds_the_student(config: StudentConfig) -> None:
    student = integers(grown(config))
    blob = student.blob()
    back = IntegerStudent.from_blob(blob)
    assert back.config == config and back.blob() == blob
    for name, layer in student.layers.items():
        other = back.layers[name]
        assert (layer.shift, layer.target) == (other.shift, other.target)
        for one, two in ((layer.weight, other.weight), (layer.bias, other.bias), (layer.multiplier, other.multiplier)):
            np.testing.assert_array_equal(one, two)
            assert one.dtype == two.dtype
    np.testing.assert_array_equal(student.steps, back.steps)


def test_a_damaged_file_is_refused() -> None:
    blob = integers(grown(NARROW)).blob()
    for at in (9, 30, 100, len(blob) // 2, len(blob) - 1):
        damaged = bytearray(blob)
        damaged[at] ^= 1
        with pytest.raises(SparringError, match="damaged"):
            IntegerStudent.from_blob(bytes(damaged))
    for end in (0, 7, 40, len(blob) - 1):
        with pytest.raises(SparringError):
            IntegerStudent.from_blob(blob[:end])
    half = len(blob) // 2
    shorter = blob[:8] + struct.pack("<I", half) + blob[12:half]
    with pytest.raises(SparringError, match="end before its layers do"):
        IntegerStudent.from_blob(shorter + hashlib.sha256(shorter).digest())
    with pytest.raises(SparringError, match="these are no weights of a student"):
        IntegerStudent.from_blob(b"PK" + blob[2:])


def test_the_core_refuses_what_is_no_file_of_weights() -> None:
    student = integers(grown(NARROW))
    blob, inputs, mask = student.blob(), some_rows(1, 1), some_masks(1).numpy()
    memory = student.newborn(1)

    def rehashed(content: bytearray) -> bytes:
        return bytes(content) + hashlib.sha256(content).digest()

    body = bytearray(blob[:-32])
    wide, short, odd = bytearray(body), bytearray(body[:-64]), bytearray(body)
    wide[12 + 4 * 11] += 8  # a wider memory than there are weights for
    short[8:12] = len(short).to_bytes(4, "little")
    odd[12:16] = (24).to_bytes(4, "little")  # channels
    for bad in (b"", blob[:40], blob[:-1], *map(rehashed, (wide, short, odd))):
        with pytest.raises(ValueError, match="no weights of a student"):
            _core.net_step(bad, inputs, mask, memory)
    with pytest.raises(ValueError, match="inputs must be"):
        _core.net_step(blob, inputs[:, 1:].copy(), mask, memory)
    with pytest.raises(ValueError, match="inputs must be"):
        _core.net_step(blob, inputs, mask, memory[:, 1:].copy())
    mask[0, 37] = 8
    with pytest.raises(ValueError, match="no such role"):
        _core.net_step(blob, inputs, mask, memory)
