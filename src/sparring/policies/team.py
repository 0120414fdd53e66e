"""Actors of their own for every agent, as many each as an ensemble has."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sparring import _core
from sparring.games.api import AgentSpace, Box, Decisions, Discrete
from sparring.policies.mlp import Actor

_STREAM = 21
"""Of the counter-based generator: which of its policies an agent plays."""


def action_size(space: AgentSpace) -> int:
    """Numbers that an agent's action has among learners: those it gives, or one for each choice."""
    return space.action.n if isinstance(space.action, Discrete) else space.action.shape[0]


def played_policies(rows: Decisions, policies: int, *, seed: int) -> Tensor:
    """int64 [n]: which of its policies each row's agent plays in the row's match, drawn by seed, lane, match, agent."""
    if policies == 1:
        return torch.zeros(len(rows), dtype=torch.int64)
    who = rows.lane * 65536 + rows.agent
    counters = torch.stack((who, rows.match, rows.match >> 32, torch.zeros_like(who)), dim=1)
    uniform = torch.from_numpy(_core.uniforms(seed, _STREAM, counters.numpy()))[:, 0]
    return (uniform * policies).long()


class Actors(nn.Module):
    """For every agent the same number of actors, each asked with nothing but the agent's own observation.

    An agent that gives numbers answers tanh of its actor's outputs, one that chooses the place of the largest output.
    """

    def __init__(
        self,
        spaces: Sequence[AgentSpace],
        action: Box | Discrete,
        *,
        hidden: Sequence[int],
        policies: int,
        generator: torch.Generator,
    ) -> None:
        """spaces: of each agent, by id; action: of the game; policies: actors of each agent"""
        super().__init__()
        self.spaces, self.action, self.policies = tuple(spaces), action, policies
        self.members = nn.ModuleList(
            nn.ModuleList(
                Actor(space.observation, action_size(space), hidden=hidden, normalised=0, generator=generator)
                for _ in range(policies)
            )
            for space in spaces
        )

    def member(self, agent: int, policy: int) -> Actor:
        group = self.members[agent]
        assert isinstance(group, nn.ModuleList)
        actor = group[policy]
        assert isinstance(actor, Actor)
        return actor

    def outputs(self, agent: int, obs: Tensor, policy: Tensor) -> Tensor:
        """float32 [n, size] before tanh or choice, of the agent's own observations float32 [n, inputs].

        policy: int64 or uint8 [n], which of the agent's actors answers each
        """
        if self.policies == 1:
            return self.member(agent, 0).logits(obs)
        out = obs.new_zeros(len(obs), action_size(self.spaces[agent]))
        for number in range(self.policies):
            rows = (policy == number).nonzero().view(-1).to(obs.device)
            out = out.index_copy(0, rows, self.member(agent, number).logits(obs[rows]))
        return out

    def answer(self, agent: int, outputs: Tensor) -> Tensor:
        """float32 [n, size]: the numbers of the action, or 1 for the choice and 0 for the others."""
        choices = self.spaces[agent].action
        if isinstance(choices, Discrete):
            return nn.functional.one_hot(outputs.argmax(dim=1), choices.n).to(outputs.dtype)
        return torch.tanh(outputs)

    def packed(self, agent: Tensor, answers: Sequence[Tensor]) -> Tensor:
        """Actions of rows as the game takes them.

        agent: int64 [n]; answers: of each agent those to its rows, in their order
        """
        n = len(agent)
        if isinstance(self.action, Discrete):
            choice = torch.zeros(n, dtype=torch.int64)
            for index, answer in enumerate(answers):
                choice[agent == index] = answer.argmax(dim=1)
            return choice
        numbers = torch.zeros(n, self.action.shape[0])
        for index, answer in enumerate(answers):
            numbers[(agent == index).nonzero().view(-1), : answer.shape[1]] = answer
        return numbers

    def forward(self, rows: Decisions) -> Tensor:
        """The actions of rows of any agents in any order; the ensemble's policies are drawn by match, with seed 0."""
        policy = played_policies(rows, self.policies, seed=0)
        answers = []
        for index, space in enumerate(self.spaces):
            own = rows.agent == index
            outputs = self.outputs(index, rows.obs[own][:, : space.observation], policy[own])
            answers.append(self.answer(index, outputs))
        return self.packed(rows.agent, answers)


class OneActor(nn.Module):
    """One agent of `Actors`, playing its policy of that number."""

    def __init__(self, actors: Actors, agent: int, policy: int) -> None:
        super().__init__()
        self.agent = agent
        self.actor = actors.member(agent, policy)
        self._actors = (actors,)  # in a tuple, as its other agents are no part of this one

    @property
    def inputs(self) -> int:
        """Numbers that the agent sees."""
        return self._actors[0].spaces[self.agent].observation

    def forward(self, obs: Tensor) -> Tensor:
        """obs: float32 [n, inputs]; returns the actions as the game takes them."""
        answer = self._actors[0].answer(self.agent, self.actor.logits(obs))
        agent = torch.full((len(obs),), self.agent)
        others = len(self._actors[0].spaces)
        return self._actors[0].packed(agent, [answer if index == self.agent else answer[:0] for index in range(others)])
