"""The student's network in the judge's sandbox: points of its longest decision, layer by layer, beside multiply-adds.

    .venv/bin/python bench/net.py

The decision follows eight packets of sonar, chooses a role, and sprints eight steps. Reading, knowing and replying come
on top; they do not depend on the network.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from net_bot import NetBot

from sparring.distil.quantise import IntegerStudent, integers
from sparring.policies.actions import MASK_BYTES, MASK_KINDS, MASK_PAYABLE, MASK_ROLE_DUE, MASK_SIZES, MAX_STEPS, SPRINT
from sparring.policies.student import PRESETS, Student


def multiply_adds(student: IntegerStudent) -> dict[str, int]:
    """Of the longest decision, by the layers that core/net names."""
    weights = {name: layer.weight.size for name, layer in student.layers.items()}
    side = 15 if student.config.first_stride == 1 else 8
    last = (side + 1) // 2
    return {
        **{f"crop.convolutions.{layer}": weights[f"crop.convolutions.{layer}"] * side**2 for layer in range(3)},
        "crop.convolutions.3": weights["crop.convolutions.3"] * last**2,
        "crop.dense": weights["crop.dense"],
        "overview.convolution": weights["overview.convolution"] * 64,
        "overview.dense": weights["overview.dense"],
        "sonar.dense": 8 * (weights["sonar.first"] + weights["sonar.second"]) + weights["sonar.dense"],
        "scalars": weights["scalars"],
        "tables": 0,
        "join": weights["join"],
        "experts.router": weights["experts.router"],
        "experts": weights["experts.up.0"] + weights["experts.down.0"],
        "gates": weights["gates"],
        "memory": weights["memory.gates"],
        "heads.role": weights["heads.role"],
        "heads.hidden": weights["heads.hidden"],
        "heads.logits": weights["heads.logits"],
        "heads.sprint": weights["heads.sprint_start"]
        + MAX_STEPS * weights["heads.step"]
        + (MAX_STEPS - 1) * weights["heads.sprint.gates"],
    }


def main() -> None:
    """Print a table for each preset."""
    inputs = np.full(9424, 127, dtype=np.uint8)
    mask = np.zeros(MASK_BYTES, dtype=np.uint8)
    mask[MASK_KINDS + SPRINT], mask[MASK_PAYABLE], mask[MASK_ROLE_DUE] = 1, MAX_STEPS, 1
    mask[MASK_SIZES] = 1
    for name, config in PRESETS.items():
        student = Student(config, seed=1)
        with torch.no_grad():
            assert student.heads.step.bias is not None
            student.heads.step.bias[-1] = -50.0  # never stops
        reference = integers(student)
        bot = NetBot(reference.blob())
        decided = bot.decide(inputs, mask, newborn=True)
        bot.close()
        packed, _ = reference.step(inputs[None], mask[None], reference.newborn(1))
        assert decided.packed == (packed[0], packed[0])
        counted = multiply_adds(reference)
        assert counted.keys() == decided.layers.keys()
        print(f"\n| {name} | multiply-adds | points | points a multiply-add |\n|---|---:|---:|---:|")
        rows = [(layer, number, decided.layers[layer]) for layer, number in counted.items()]
        for layer, number, points in (*rows, ("all", sum(counted.values()), decided.points)):
            print(f"| {layer} | {number:,} | {points:,} | {f'{points / number:.2f}' if number else ''} |")


if __name__ == "__main__":
    main()
