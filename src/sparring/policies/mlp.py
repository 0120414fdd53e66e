"""Multilayer perceptrons for continuous control: a deterministic actor and a state-action critic."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def fan_in_uniform(layer: nn.Linear, generator: torch.Generator, limit: float | None = None) -> nn.Linear:
    """Weights and biases uniform in +-1/sqrt(inputs), or in +-`limit` (Lillicrap et al. 2016, section 7)."""
    bound = layer.in_features**-0.5 if limit is None else limit
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)
    return layer


def _trunk(inputs: int, hidden: Sequence[int], normalised: int, generator: torch.Generator) -> nn.Sequential:
    """Linear layers with ReLU, batch norm after the ReLU of the first `normalised` of them."""
    layers: list[nn.Module] = []
    for index, width in enumerate(hidden):
        layers += [fan_in_uniform(nn.Linear(inputs, width), generator), nn.ReLU()]
        if index < normalised:
            layers.append(nn.BatchNorm1d(width))
        inputs = width
    return nn.Sequential(*layers)


class Actor(nn.Module):
    """obs float32 [n, inputs] -> action float32 [n, actions] in [-1, 1]."""

    def __init__(
        self, inputs: int, actions: int, *, hidden: Sequence[int], normalised: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.trunk = _trunk(inputs, hidden, normalised, generator)
        # Small last weights start the rackets near rest, where tanh has slope.
        self.head = fan_in_uniform(nn.Linear(hidden[-1], actions), generator, limit=3e-3)

    def logits(self, obs: Tensor) -> Tensor:
        """float32 [n, actions]: the outputs before tanh."""
        out: Tensor = self.head(self.trunk(obs))
        return out

    def forward(self, obs: Tensor) -> Tensor:
        return torch.tanh(self.logits(obs))


class Critic(nn.Module):
    """Q(obs, action): float32 [n, inputs] and [n, actions] -> float32 [n]."""

    def __init__(
        self, inputs: int, actions: int, *, hidden: Sequence[int], normalised: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.trunk = _trunk(inputs + actions, hidden, normalised, generator)
        self.head = fan_in_uniform(nn.Linear(hidden[-1], 1), generator, limit=3e-3)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        value: Tensor = self.head(self.trunk(torch.cat((obs, action), dim=1)))
        return value.squeeze(1)


class StateValue(nn.Module):
    """V(obs): float32 [n, inputs] -> float32 [n]."""

    def __init__(self, inputs: int, *, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.trunk = _trunk(inputs, hidden, 0, generator)
        self.head = fan_in_uniform(nn.Linear(hidden[-1], 1), generator, limit=3e-3)

    def forward(self, obs: Tensor) -> Tensor:
        value: Tensor = self.head(self.trunk(obs))
        return value.squeeze(1)


class TwinCritic(nn.Module):
    """Two critics that are trained alike and differ in their first weights: float32 [2, n] (Fujimoto et al. 2018)."""

    def __init__(
        self, inputs: int, actions: int, *, hidden: Sequence[int], normalised: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.critics = nn.ModuleList(
            Critic(inputs, actions, hidden=hidden, normalised=normalised, generator=generator) for _ in range(2)
        )

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        return torch.stack([critic(obs, action) for critic in self.critics])


class Values(nn.Module):
    """Q(obs, each choice): float32 [n, inputs] -> float32 [n, choices]."""

    def __init__(self, inputs: int, choices: int, *, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.trunk = _trunk(inputs, hidden, 0, generator)
        self.head = fan_in_uniform(nn.Linear(hidden[-1], choices), generator, limit=3e-3)

    def forward(self, obs: Tensor) -> Tensor:
        out: Tensor = self.head(self.trunk(obs))
        return out


class BestChoice(nn.Module):
    """The legal choice that `values` rates highest, as the game takes it.

    actions: float32 [choices, actions], what each choice plays; None in a discrete game, which takes its number, int64
    """

    def __init__(self, values: Values, actions: Tensor | None) -> None:
        super().__init__()
        self.values = values
        self.register_buffer("actions", actions)

    def forward(self, obs: Tensor, mask: Tensor | None = None) -> Tensor:
        """obs: float32 [n, inputs]; mask: bool [n, choices], the legal ones; returns [n, actions], or int64 [n]."""
        choice = best_choice(self.values(obs), mask)
        return choice if self.actions is None else self.actions[choice]  # type: ignore[index]


class LikeliestChoice(nn.Module):
    """The legal choice that an actor whose outputs are logits gives most often, as a discrete game takes it."""

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor

    def forward(self, obs: Tensor, mask: Tensor | None = None) -> Tensor:
        """obs: float32 [n, inputs]; mask: bool [n, choices], the legal ones; returns int64 [n]."""
        return best_choice(self.actor.logits(obs), mask)


def best_choice(values: Tensor, mask: Tensor | None) -> Tensor:
    """int64 [n]: the number of the greatest value, of the legal ones where there is a mask [n, choices]."""
    return (values if mask is None else values.masked_fill(~mask.bool(), -torch.inf)).argmax(dim=1)
