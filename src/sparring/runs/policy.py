"""A trained run's policy, ready to answer observations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sparring.errors import SparringError
from sparring.games.api import Decisions
from sparring.policies.mlp import Actor
from sparring.runs import checkpoint
from sparring.runs.folder import find_run
from sparring.runs.recipe import Recipe
from sparring.settings import from_table


@dataclass(frozen=True)
class TrainedPolicy:
    """A run's actor in evaluation mode: no noise, no gradients; the same observations give the same actions."""

    name: str
    """The run."""
    game: str
    recipe: Recipe
    decisions: int
    """How far the run had been trained."""
    actor: nn.Module

    @overload
    def act(self, observations: NDArray[Any]) -> NDArray[np.float32]: ...
    @overload
    def act(self, observations: Tensor | Decisions) -> Tensor: ...
    def act(self, observations: NDArray[Any] | Tensor | Decisions) -> NDArray[np.float32] | Tensor:
        """The actions for some observations.

        observations: [inputs] of one agent or [n, inputs] of n agents, NumPy or torch, or the `Decisions` of a game
        returns: [actions] or [n, actions], float32 in [-1, 1], NumPy for NumPy

        Raises SparringError when the last axis is not what the policy was trained on.
        """
        rows = observations.obs if isinstance(observations, Decisions) else torch.as_tensor(observations)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.inputs:
            raise SparringError(
                f"policy of run {self.name} takes observations [{self.inputs}] or [n, {self.inputs}], "
                f"got {list(rows.shape)}"
            )
        with torch.no_grad():
            batch = rows.to(torch.float32).reshape(-1, self.inputs)
            actions: Tensor = self.actor(batch)
            actions = actions if rows.ndim == 2 else actions[0]
        return actions.numpy() if isinstance(observations, np.ndarray) else actions

    @property
    def inputs(self) -> int:
        """Length of one agent's observation."""
        return next(self.actor.parameters()).shape[1]

    @property
    def hash(self) -> str:
        """The first 16 digits of the SHA-256 of the weights: the same weights have the same hash."""
        digest = hashlib.sha256()
        for name, tensor in self.actor.state_dict().items():
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
        return digest.hexdigest()[:16]


def load(run: str | Path) -> TrainedPolicy:
    """The policy of a run as its last checkpoint has it, on the CPU.

    run: a run's name or path. Raises SparringError: unknown run, or a checkpoint that cannot be read.
    """
    folder = find_run(run)
    content = checkpoint.read(folder.checkpoint)
    where = str(folder.checkpoint)
    recipe = from_table(Recipe, content["recipe"], where=where)
    actor = Actor(
        content["observation"],
        content["action"],
        hidden=recipe.ddpg.actor_hidden,
        normalised=recipe.ddpg.actor_normalised,
        generator=torch.Generator(),
    )
    weights = content["learner"]["actor_target"]  # as in DDPG.policy
    if unfit := checkpoint.misfit(weights, actor.state_dict()):
        raise SparringError(f"{where} does not fit its own recipe: {unfit}")
    actor.load_state_dict(weights)
    return TrainedPolicy(
        name=folder.name,
        game=content["game"],
        recipe=recipe,
        decisions=content["learner"]["decisions"],
        actor=actor.eval(),
    )
