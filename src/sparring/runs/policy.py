"""A trained run's policy, ready to answer observations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import AgentSpace, Box, Decisions, Discrete
from sparring.policies.loong import Teacher, preset
from sparring.policies.mlp import Actor, BestChoice, LikeliestChoice, Values
from sparring.policies.team import Actors, OneActor
from sparring.runs import checkpoint
from sparring.runs.folder import RunFolder, find_run
from sparring.runs.recipe import Recipe
from sparring.settings import from_table

_OTHER = "name another run"


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
    def act(self, observations: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def act(self, observations: Tensor | Decisions) -> Tensor: ...
    def act(self, observations: NDArray[Any] | Tensor | Decisions) -> NDArray[Any] | Tensor:
        """The actions for some observations.

        observations: [inputs] of one agent or [n, inputs] of n agents, NumPy or torch, or the `Decisions` of a game
        returns: [actions] or [n, actions], float32, of a game with discrete actions a number or int64 [n]; NumPy for
                 NumPy. Of `Decisions` with a mask the choices are legal ones

        Raises SparringError when the last axis is not what the policy was trained on, and for mere observations where
        each agent has an actor of its own: give `Decisions`, or choose an agent with `of`.
        """
        if isinstance(self.actor, Actors):
            if not isinstance(observations, Decisions):
                raise SparringError(
                    f"policy of run {self.name} has an actor for each agent: give the Decisions of a game, or choose "
                    "one agent with policy.of(agent)"
                )
            with torch.no_grad():
                return cast(Tensor, self.actor(observations))
        rows = observations.obs if isinstance(observations, Decisions) else torch.as_tensor(observations)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.inputs:
            raise SparringError(
                f"policy of run {self.name} takes observations [{self.inputs}] or [n, {self.inputs}], "
                f"got {list(rows.shape)}"
            )
        with torch.no_grad():
            batch = rows.to(torch.float32).reshape(-1, self.inputs)
            mask = observations.mask if isinstance(observations, Decisions) else None
            actions: Tensor = self.actor(batch) if mask is None else self.actor(batch, mask)
            actions = actions if rows.ndim == 2 else actions[0]
        return actions.numpy() if isinstance(observations, np.ndarray) else actions

    def of(self, agent: int, *, policy: int = 0) -> TrainedPolicy:
        """The policy of one agent, by id; of an ensemble that of this number. Where all agents share one, the same."""
        if not isinstance(self.actor, Actors):
            return self
        agents, policies = len(self.actor.spaces), self.actor.policies
        if not (0 <= agent < agents and 0 <= policy < policies):
            raise SparringError(
                f"run {self.name} has agents 0 to {agents - 1}, of {policies} policies each: no agent {agent} with "
                f"policy {policy}"
            )
        return replace(self, actor=OneActor(self.actor, agent, policy))

    @property
    def inputs(self) -> int:
        """Length of one agent's observation."""
        if isinstance(self.actor, OneActor):
            return self.actor.inputs
        return next(self.actor.parameters()).shape[1]

    @property
    def hash(self) -> str:
        """The first 16 digits of the SHA-256 of the weights: the same weights have the same hash."""
        return _digest(self.actor).hexdigest()[:16]


@dataclass(frozen=True)
class TrainedTeacher:
    """The teacher of a run of Loong, in evaluation mode."""

    name: str
    """The run."""
    recipe: Recipe
    decisions: int
    """How far the run had been trained."""
    teacher: Teacher

    @property
    def hash(self) -> str:
        """SHA-256 of the core's source, which decides what it is told, and of the weights."""
        return _digest(self.teacher, _core.source_hash).hexdigest()

    @property
    def weights_hash(self) -> str:
        """SHA-256 of the weights alone."""
        return _digest(self.teacher).hexdigest()


def game_of(run: str | Path) -> str:
    """The name of the game that a run plays. Raises SparringError, as `load`."""
    return str(checkpoint.read(find_run(run).checkpoint, other=_OTHER)["game"])


def load(run: str | Path) -> TrainedPolicy:
    """The policy of a run as its last checkpoint has it, on the CPU.

    run: a run's name or path. Raises SparringError: unknown run, a run of Loong, or a checkpoint that cannot be read.
    """
    folder, content, recipe = _read(run)
    where = str(folder.checkpoint)
    if recipe.algorithm == "ppo":
        raise SparringError(f"run {folder.name} plays loong: sparring.load_teacher loads it")
    makers = {"ddpg": _actor, "dqn": _best_choice, "ippo": _likeliest, "maddpg": _actors}
    with _fitting(where):
        actor = makers[recipe.algorithm](content, recipe, where)
        decisions = int(content["learner"]["decisions"])
    return TrainedPolicy(
        name=folder.name,
        game=content["game"],
        recipe=recipe,
        decisions=decisions,
        actor=actor.eval(),
    )


def _actor(content: dict[str, Any], recipe: Recipe, where: str) -> Actor:
    actor = Actor(
        content["observation"],
        content["action"],
        hidden=recipe.ddpg.actor_hidden,
        normalised=recipe.ddpg.actor_normalised,
        generator=torch.Generator(),
    )
    _take(actor, content["learner"]["actor_target"], where)  # as in DDPG.policy
    return actor


def _best_choice(content: dict[str, Any], recipe: Recipe, where: str) -> BestChoice:
    weights = content["learner"]["q_target"]  # as in DQN.policy
    choices = len(weights["head.bias"])
    values = Values(content["observation"], choices, hidden=recipe.dqn.hidden, generator=torch.Generator())
    _take(values, weights, where)
    return BestChoice(values, content["learner"]["actions"])


def _likeliest(content: dict[str, Any], recipe: Recipe, where: str) -> Actor | LikeliestChoice:
    learner = content["learner"]  # as in IPPO.policy
    size = learner["choices"] or content["action"]
    actor = Actor(content["observation"], size, hidden=recipe.ippo.hidden, normalised=0, generator=torch.Generator())
    _take(actor, learner["actor"], where)
    return LikeliestChoice(actor) if learner["choices"] else actor


def _actors(content: dict[str, Any], recipe: Recipe, where: str) -> Actors:
    learner = content["learner"]
    spaces = [
        AgentSpace(
            observation=observation, action=Discrete(n=size) if choice else Box(shape=(size,), low=-1.0, high=1.0)
        )
        for observation, size, choice in learner["spaces"]
    ]
    choices = learner["choices"]
    actors = Actors(
        spaces,
        Discrete(n=choices) if choices else Box(shape=(content["action"],), low=-1.0, high=1.0),
        hidden=recipe.maddpg.hidden,
        policies=recipe.maddpg.policies,
        generator=torch.Generator(),
    )
    _take(actors, learner["actors_target"], where)  # as in MADDPG.policy
    return actors


def load_teacher(run: str | Path) -> TrainedTeacher:
    """The teacher of a run of Loong as its last checkpoint has it, on the CPU.

    run: a run's name or path. Raises SparringError: unknown run, one of another game, a checkpoint that cannot be read.
    """
    folder, content, recipe = _read(run)
    if recipe.algorithm != "ppo":
        raise SparringError(f"run {folder.name} plays {content['game']}: no player of loong")
    teacher = Teacher(preset(recipe.selfplay.preset))
    where = str(folder.checkpoint)
    with _fitting(where):
        _take(teacher, content["learner"]["ppo"]["teacher"], where)
        decisions = int(content["learner"]["decisions"])
    return TrainedTeacher(
        name=folder.name,
        recipe=recipe,
        decisions=decisions,
        teacher=teacher.eval().requires_grad_(False),
    )


def _read(run: str | Path) -> tuple[RunFolder, dict[str, Any], Recipe]:
    folder = find_run(run)
    content = checkpoint.read(folder.checkpoint, other=_OTHER)
    return folder, content, from_table(Recipe, content["recipe"], where=str(folder.checkpoint))


@contextmanager
def _fitting(where: str) -> Iterator[None]:
    """Turns what is missing from a checkpoint, or is none of this version's, into a line for the person."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = f"no {error.args[0]}" if isinstance(error, KeyError) else str(error).splitlines()[0].strip(": ")
        raise SparringError(
            f"{where} does not fit this version of Sparring ({reason}): use the one that saved it, or train anew"
        ) from None


def _take(network: nn.Module, weights: dict[str, Any], where: str) -> None:
    if unfit := checkpoint.misfit(weights, network.state_dict()):
        raise SparringError(f"{where} does not fit its own recipe: {unfit}")
    if broken := [name for name, tensor in weights.items() if not tensor.isfinite().all()]:
        raise SparringError(f"{where}: {broken[0]} holds NaN or infinity, so nobody can play it; train it again")
    network.load_state_dict(weights)


def _digest(network: nn.Module, word: str = "") -> hashlib._Hash:
    digest = hashlib.sha256(word.encode())
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return digest
