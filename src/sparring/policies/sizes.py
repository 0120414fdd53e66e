"""Weights and multiply-adds of the networks of Loong, counted while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from sparring.policies import critic as critics
from sparring.policies.actions import MASK_BYTES, MASK_PAYABLE, MAX_STEPS, SPRINT, Actions, pack
from sparring.policies.critic import Critic, CriticConfig
from sparring.policies.loong import Teacher, TeacherConfig
from sparring.policies.student import Student, StudentConfig


@dataclass(frozen=True)
class Size:
    """A part of a network: its weights, and multiply-adds of its matrix products and convolutions for one decision."""

    part: str
    weights: int
    multiply_adds: int


def teacher_sizes(config: TeacherConfig) -> list[Size]:
    """Part by part; the heads choose and score a sprint of eight steps, the longest decision there is."""
    return _policy_sizes(Teacher(config))


def student_sizes(config: StudentConfig) -> list[Size]:
    """Part by part, for the same decision; without what only training reads."""
    return [size for size in _policy_sizes(Student(config)) if size.part not in ("value", "lengths")]


def _policy_sizes(policy: Teacher | Student) -> list[Size]:
    zero = torch.zeros(1, dtype=torch.int64)
    sprint = Actions(
        role=zero, kind=zero + SPRINT, direction=zero, size=zero, steps=zero + MAX_STEPS,
        sprint=torch.zeros(1, MAX_STEPS, dtype=torch.int64), claim=zero,
    )  # fmt: skip
    mask = torch.ones(1, MASK_BYTES, dtype=torch.uint8)
    mask[:, MASK_PAYABLE] = MAX_STEPS

    def decide() -> None:
        inputs = torch.zeros(1, policy.config.input_bytes, dtype=torch.uint8)
        tree, _ = policy.step(inputs, mask, policy.newborn(1))
        tree.evaluate(pack(sprint))

    return _sizes(policy, decide)


def critic_sizes(config: CriticConfig) -> list[Size]:
    """Part by part, for a team of which one dragon lives: with more, they share the board's cost."""
    critic = Critic(config)
    board = torch.zeros(1, critics.BOARD_SIDE**2 * critics.BOARD_PLANES, dtype=torch.uint8)
    team = torch.zeros(1, critics.TEAM_SCALARS, dtype=torch.uint8)
    crop = torch.zeros(1, critics.CROP_SIDE**2 * critics.CROP_PLANES, dtype=torch.uint8)
    scalars = torch.zeros(1, critics.DRAGON_SCALARS, dtype=torch.uint8)
    return _sizes(critic, lambda: critic(board, team, torch.zeros(1, dtype=torch.int64), crop, scalars))


def _sizes(network: nn.Module, decide: Callable[[], object]) -> list[Size]:
    parts = dict(network.named_children())
    multiply_adds = dict.fromkeys(parts, 0)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:

        def count_in(name: str, sign: int) -> Callable[..., None]:
            def hook(*_: object) -> None:
                multiply_adds[name] += sign * counter.get_total_flops() // 2

            return hook

        for name, part in parts.items():
            for module in part if isinstance(part, nn.ModuleList) else [part]:
                module.register_forward_pre_hook(count_in(name, -1))
                module.register_forward_hook(count_in(name, +1))
        decide()
    if "heads" in parts:  # the tree calls their methods, which have no hooks
        multiply_adds["heads"] = counter.get_total_flops() // 2 - sum(multiply_adds.values())
    return [
        Size(name, sum(parameter.numel() for parameter in part.parameters()), multiply_adds[name])
        for name, part in parts.items()
    ]
