"""Students for tests: nothing learnt, yet with opinions."""

from __future__ import annotations

import torch
from loong_maps import simple_map

from sparring.distil.quantise import integers
from sparring.export.bot import Origin
from sparring.policies.student import Student, StudentConfig, preset

ORIGIN = Origin(teacher="1" * 64, student="2" * 64, core="3" * 64)
SMALLEST = StudentConfig(
    channels=8,
    first_stride=2,
    crop_code=16,
    overview_channels=8,
    overview_code=16,
    sonar_hidden=8,
    sonar_code=8,
    scalar_code=16,
    joined=32,
    expert_hidden=16,
    memory=16,
    head_hidden=16,
    sprint_state=8,
)


def opinionated(config: StudentConfig | None = None, *, seed: int = 4) -> Student:
    """A student, `student-tiny` by default, whose choices depend on what it sees, and that mostly moves on."""
    student = Student(config or preset("student-tiny"), seed=seed)
    with torch.no_grad():
        for last in (student.heads.role, student.heads.logits, student.heads.step):
            last.weight.mul_(2000)
        bias = student.heads.logits.bias
        assert bias is not None
        bias[:6] += torch.tensor([5.0, 0.0, 4.0, 2.0, 0.0, 0.0])  # move, sprint, split; forward, left, right
    return student


def blob(config: StudentConfig | None = None) -> bytes:
    """Its file of weights."""
    return integers(opinionated(config)).blob()


def open_map(side: int = 12) -> bytes:
    """A map on which those who go on live for a while: no kelp, two portals, four dragons of five."""
    tiles = [f"TILE {x} {y} 1 {9 + (x * y) % 9}" for x in range(1, side, 3) for y in range(1, side, 2)]
    edges = [f"EDGE {2 * 3 * (side + 1) + 4} 2 7", f"EDGE {2 * (side - 1) * (side + 1) + side - 1} 2 7"]
    dragons = [
        f"{team} 5 " + " ".join(f"{x + i} {1 + 3 * team + 6 * pair}" for i in range(5))
        for pair, x in ((0, 1), (1, 3))
        for team in (0, 1)
    ]
    return simple_map(f"{side} {side}", tuple(dragons), (*tiles, *edges))
