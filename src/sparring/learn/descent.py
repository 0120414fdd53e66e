"""Steps of gradient descent, and what a checkpoint keeps of an optimiser: the same for every learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor, nn


def descend(
    loss: Tensor,
    parameters: list[nn.Parameter],
    optimiser: torch.optim.Optimizer,
    *,
    clip_norm: float,
    refuse: Callable[[str], NoReturn],
) -> None:
    """One step down the loss, of these parameters alone.

    clip_norm: the largest norm of their gradient; refuse: raises, told what is not finite, before any weight moves
    """
    gradients = torch.autograd.grad(loss, parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    # What torch.nn.utils.clip_grad_norm_ does, without its sorting by device, which costs small networks more.
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if not norm.isfinite():
        refuse("a gradient")
    torch._foreach_mul_(gradients, (clip_norm / (norm + 1e-6)).clamp(max=1.0))
    optimiser.step()


def load_moments(optimiser: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Adam's moments and step count from a checkpoint; step size and weight decay stay those of the config."""
    optimiser.load_state_dict({**state, "param_groups": optimiser.state_dict()["param_groups"]})
