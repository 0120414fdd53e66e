"""The student of Loong: sizes, its face, sequences, tables, straight-through gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from test_loong_networks import some_bytes, some_masks, some_uniforms
from torch import Tensor

from sparring.errors import SparringError
from sparring.policies.actions import unpack
from sparring.policies.sizes import student_sizes
from sparring.policies.student import Student, StudentConfig, preset, table_entries

NARROW = StudentConfig(
    channels=8, first_stride=2, crop_code=16, overview_channels=8, overview_code=8, sonar_hidden=8, sonar_code=8,
    scalar_code=8, joined=24, expert_hidden=16, memory=16, head_hidden=16, sprint_state=8,
)  # fmt: skip
"""A student that costs nothing."""


# Sizes


def by_hand(config: StudentConfig) -> dict[str, int]:
    """Multiply-adds of a decision to sprint eight steps, part by part."""
    side = {1: 15, 2: 8}[config.first_stride]
    last = (side + 1) // 2
    c, joined, memory, hidden = config.channels, config.joined, config.memory, config.head_hidden
    convolutions = 9 * c * (side**2 * (32 + c + c) + last**2 * c)
    codes = config.crop_code + config.overview_code + config.sonar_code + config.scalar_code
    s = config.sprint_state
    return {
        "crop": convolutions + last**2 * c * config.crop_code,
        "overview": 64 * config.overview_channels * (9 * 8 + config.overview_code),
        "sonar": 8 * config.sonar_hidden * (16 + config.sonar_hidden) + 2 * config.sonar_hidden * config.sonar_code,
        "scalars": 48 * config.scalar_code,
        "tables": 0,
        "join": (codes + 13 * 8) * joined,
        "experts": joined * config.experts + 2 * joined * config.expert_hidden,
        "gates": joined * 3 * memory,
        "memory": memory * 3 * memory,
        "heads": memory * (8 + hidden) + hidden * (3 + 3 + 32 + 3 * 26 + s) + 8 * s * 4 + 7 * s * 3 * s,
    }


@pytest.mark.parametrize(
    ("name", "millions", "weights"), [("student", 7.9, 1_297_940), ("student-tiny", 0.97, 442_860)]
)
def test_presets_have_the_multiply_adds_and_weights_they_are_meant_to_have(
    name: str, millions: float, weights: int
) -> None:
    sizes = student_sizes(preset(name))
    counted = {size.part: size.multiply_adds for size in sizes}
    assert counted == by_hand(preset(name))
    assert sum(counted.values()) == pytest.approx(millions * 1e6, rel=0.01)
    assert sum(size.weights for size in sizes) == weights


def test_six_of_seven_multiply_adds_of_the_large_student_are_convolutions_of_the_crop() -> None:
    convolutions = Student(preset("student")).crop.convolutions
    assert [tuple(layer.weight.shape) for layer in convolutions] == [(32, 32, 3, 3)] * 4
    assert [layer.stride for layer in convolutions] == [1, 1, 1, 2]
    multiply_adds = 9 * 32 * 32 * (3 * 15**2 + 8**2)
    assert 6.7e6 < multiply_adds < 6.9e6


# Its face is the teacher's


def stepwise(student: Student, inputs: Tensor, lengths: list[int], memory: Tensor) -> tuple[Tensor, Tensor]:
    """Features of every row and the memory after each stretch, decision by decision."""
    features, after, at = [], [], 0
    for stretch, length in enumerate(lengths):
        state = memory[stretch : stretch + 1]
        for row in range(at, at + length):
            tree, state = student.step(inputs[row : row + 1], some_masks(1), state)
            features.append(tree.features)
        after.append(state)
        at += length
    return torch.cat(features), torch.cat(after)


@pytest.mark.parametrize("config", [NARROW, replace(NARROW, first_stride=1, experts=1), preset("student-tiny")])
@pytest.mark.parametrize("quantised", [False, True])
def test_unrolled_sequences_equal_steps(config: StudentConfig, quantised: bool) -> None:
    """To the last bit where it is quantised: then float64 computes with whole numbers."""
    student = Student(config, seed=1).double()
    student.quantised = quantised
    lengths = [3, 1, 8, 2, 8, 5]
    inputs = some_bytes(sum(lengths), config.input_bytes)
    memory = torch.rand(len(lengths), config.memory, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    memory = (memory * 2**15).floor() / 2**15 - 0.5
    memory[1] = 0  # a newborn
    with torch.no_grad():
        tree, after, diagnostics = student.sequence(inputs, some_masks(len(inputs)), torch.tensor(lengths), memory)
        features, states = stepwise(student, inputs, lengths, memory)
    tolerance = 0 if quantised else 1e-12
    torch.testing.assert_close(tree.features, features, rtol=0, atol=tolerance)
    torch.testing.assert_close(after, states, rtol=0, atol=tolerance)
    assert diagnostics.value.shape == (len(inputs),) and diagnostics.lengths.shape == (len(inputs), 2)
    if quantised:
        assert ((after * 2**15) % 1 == 0).all() and after.abs().max() < 1


def test_every_weight_learns() -> None:
    student = Student(replace(NARROW, experts=2), seed=3)
    lengths = torch.tensor([4] * 8)
    inputs, mask = some_bytes(32, student.config.input_bytes), some_masks(32)
    for quantised in (False, True):
        student.quantised = quantised
        student.zero_grad()
        tree, _, diagnostics = student.sequence(inputs, mask, lengths, student.newborn(8))
        actions, _ = tree.sample(some_uniforms(32))
        loss = diagnostics.balance - tree.evaluate(actions).log_prob.sum(dim=1).mean()
        (loss + diagnostics.value.square().mean() + diagnostics.lengths.square().mean()).backward()
        still = [name for name, weight in student.named_parameters() if weight.grad is None or not weight.grad.any()]
        assert not still, quantised


def test_diagnostics_move_only_their_own_weights() -> None:
    student = Student(NARROW, seed=1)
    _, _, told = student.sequence(
        some_bytes(4, student.config.input_bytes), some_masks(4), torch.tensor([4]), student.newborn(1)
    )
    (told.value.square().sum() + told.lengths.square().sum()).backward()
    moved = {name for name, weight in student.named_parameters() if weight.grad is not None and weight.grad.any()}
    assert moved == {"value.weight", "value.bias", "lengths.weight", "lengths.bias"}


def test_the_same_seed_draws_the_same_weights_and_leaves_torchs_generator_alone() -> None:
    torch.manual_seed(5)
    first = Student(NARROW, seed=3).state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))
    second, third = Student(NARROW, seed=3).state_dict(), Student(NARROW, seed=4).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["join.weight"], third["join.weight"])


def test_a_new_student_is_near_uniform() -> None:
    student = Student(preset("student-tiny"), seed=1)
    inputs, mask = some_bytes(64, student.config.input_bytes), some_masks(64)
    with torch.no_grad():
        tree, _ = student.step(inputs, mask, student.newborn(64))
        actions, log_prob = tree.sample(some_uniforms(64))
    claim = log_prob[:, 5].exp()
    assert float(claim.min()) > 0.8 / 26 and float(claim.max()) < 1.25 / 26
    assert len(set(unpack(actions).kind.tolist())) == 3


# Tables


def test_entries_of_the_tables_follow_the_tiles_of_the_window() -> None:
    crop = torch.zeros(1, 15, 15, 32, dtype=torch.uint8)
    crop[0, 7, 7, 20] = 127  # own head: the middle of the window, and of the seventh table
    crop[0, 6, 7, 4] = 127  # a pearl ahead
    crop[0, 6, 6, 4] = 63  # where one may be: nothing
    crop[0, 7, 8, 24] = 127  # an enemy's head to the right
    crop[0, 8, 7, 23] = 127  # an ally behind
    crop[0, 7, 6, 25] = crop[0, 7, 6, 4] = 127  # an enemy beats a pearl
    crop[0, 3, 7, 24] = 127  # outside the window
    entries = table_entries(crop.view(1, -1))[0]
    assert entries.shape == (13,)
    own, pearl, enemy, friend = 2, 1, 3, 2
    assert int(entries[6]) == own | pearl << 2 | enemy << 4 | friend << 6 | enemy << 8
    # Those whose middle is diagonal to the head see two of its neighbours each.
    assert int(entries[3]) == pearl << 4 | enemy << 6  # ahead and to the left
    assert int(entries[4]) == enemy << 6 | pearl << 8  # ahead and to the right
    assert int(entries[0]) == int(entries[12]) == 0


def test_table_entries_equal_a_loop_over_tiles() -> None:
    generator = torch.Generator().manual_seed(1)
    crop = torch.randint(0, 128, (6, 15, 15, 32), dtype=torch.uint8, generator=generator)
    crop *= torch.rand(crop.shape, generator=generator) < 0.2
    expected = []
    for row in crop.tolist():

        def tile(r: int, c: int, row: list[list[list[int]]] = row) -> int:
            planes = row[r][c]
            if planes[24] or planes[25]:
                return 3
            return 2 if planes[20] or planes[22] or planes[23] else int(planes[4] >= 64)

        plus = [(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)]
        middles = [(r, c) for r in range(5, 10) for c in range(5, 10) if (r + c) % 2 == 0]
        expected.append([sum(tile(r + y, c + x) << 2 * i for i, (y, x) in enumerate(plus)) for r, c in middles])
    assert table_entries(crop.flatten(1)).tolist() == expected


# Faults


def test_sizes_that_the_bot_does_not_have() -> None:
    with pytest.raises(SparringError, match="no preset 'huge' of a student: there are student, student-tiny"):
        preset("huge")
    with pytest.raises(SparringError, match="channels = 24: a student has 8, 16 or 32"):
        Student(replace(NARROW, channels=24))
    with pytest.raises(SparringError, match="memory = 20: a student's widths are multiples of 8"):
        Student(replace(NARROW, memory=20))
