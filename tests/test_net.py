"""core/net as the judge builds and prices it: the SIMD way equals the reference, and costs what it is meant to."""

from __future__ import annotations

import numpy as np
import pytest
from test_loong_networks import some_masks
from test_quantise import CHANGES, WIDE, change, grown, some_rows
from test_student import NARROW

from sparring.distil.quantise import integers
from sparring.policies.fixed_point import FixedPoint
from sparring.policies.sizes import student_sizes
from sparring.policies.student import Student, StudentConfig, preset

pytest.importorskip("unswbc.engine")

POINTS = {"student": 10_200_000, "student-tiny": 1_600_000}
"""Most that the network of a decision takes."""
LARGE = {
    "student": {f"crop.convolutions.{layer}": 9 * 32 * 32 * side**2 for layer, side in enumerate((15, 15, 15, 8))}
    | {"crop.dense": 8 * 8 * 32 * 128},
    "student-tiny": {"crop.convolutions.0": 9 * 32 * 16 * 8**2},
}
"""Layers of 0.25 million multiply-adds or more."""


def plays(student: Student, turns: int) -> list[dict[str, int]]:
    """A life in the sandbox: both ways of core/net choose and remember as the integers do. Points by layer."""
    from knowledge_bot import hashed
    from net_bot import NetBot

    reference = integers(student)
    bot = NetBot(reference.blob())
    memory, points = reference.newborn(1), []
    assert bot.said == ["bound"]
    try:
        for turn in range(turns):
            inputs, mask = some_rows(4, turn)[turn % 4 : turn % 4 + 1], some_masks(1, turn).numpy()
            mask[0, :3], mask[0, 35] = np.eye(3)[turn % 3], 8
            decided = bot.decide(inputs[0], mask[0], newborn=turn == 0)
            packed, memory = reference.step(inputs, mask, memory)
            assert decided.packed == (packed[0], packed[0])
            assert decided.memory == (hashed(memory.view(np.uint8)),) * 2
            points.append(decided.layers | {"all": decided.points})
    finally:
        bot.close()
    return points


@pytest.mark.parametrize("config", [NARROW, WIDE], ids=["narrow", "wide"])
def test_in_the_sandbox_both_ways_equal_the_integers(config: StudentConfig) -> None:
    plays(grown(config, gain=4), 6)


@pytest.mark.parametrize("how", CHANGES)
def test_in_the_sandbox_extreme_weights_make_no_difference(how: str) -> None:
    student = grown(NARROW)
    for part in student.modules():
        if isinstance(part, FixedPoint):
            change(part.weight, how)
    plays(student, 3)


@pytest.mark.parametrize("name", ["student-tiny", "student"])
def test_presets_cost_few_points_and_large_layers_less_than_145_for_100_multiply_adds(name: str) -> None:
    config = preset(name)
    points = plays(grown(config), 4)
    assert max(turn["all"] for turn in points) < POINTS[name]
    multiply_adds = {size.part: size.multiply_adds for size in student_sizes(config)}
    for layer, number in LARGE[name].items():
        assert points[0][layer] < 1.45 * number, layer
    assert points[0]["gates"] + points[0]["memory"] < 1.75 * (multiply_adds["gates"] + multiply_adds["memory"])
