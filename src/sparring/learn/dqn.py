"""Deep Q-learning by self-play (Mnih et al. 2015), double (van Hasselt et al. 2016): all agents share one network.

It rates every choice at once, so it takes games with discrete actions; continuous ones become a grid of choices. Every
agent's transitions go into one replay, and acting and learning alternate, as in DDPG.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Discrete, Game
from sparring.learn.descent import load_moments
from sparring.learn.noise import row_uniforms
from sparring.learn.offpolicy import OffPolicy, OffPolicyConfig, averaged_tensors
from sparring.learn.transitions import one_axis
from sparring.policies.mlp import BestChoice, Values, best_choice
from sparring.settings import Range

# Streams of the counter-based generator, one for each thing that is sampled.
STREAM_EXPLORE, STREAM_REPLAY = 1, 2
_MOST_CHOICES = 4096


@dataclass(frozen=True, kw_only=True)
class DQNConfig(OffPolicyConfig):
    """Hyper-parameters of self-play DQN."""

    hidden: tuple[Annotated[int, Range(low=1)], ...] = (128, 128)
    """Widths of the network's hidden layers."""
    lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 5e-4
    """Adam's step size."""
    double: bool = True
    """The network picks the next choice and the target network rates it; false: the target network does both, and
    rates too high what it overestimates."""
    epsilon: Annotated[float, Range(low=0, high=1)] = 1.0
    """Share of random choices at the start."""
    epsilon_end: Annotated[float, Range(low=0, high=1)] = 0.05
    """Share of random choices once the schedule is over."""
    epsilon_decisions: Annotated[int, Range(low=0)] = 50_000
    """Decisions of lanes over which the share goes from start to end, along a line."""
    levels: tuple[Annotated[int, Range(low=2, high=1000)], ...] = (5, 2)
    """Of a game with continuous actions: how many values of each number there are to choose from, ends included. One
    entry holds for all."""


class DQN(OffPolicy):
    """The learner. Call `step` again and again; save `state()` and the replay's rows to continue later."""

    config: DQNConfig
    loss_names = ("loss", "value", "epsilon")

    def __init__(self, game: Game, config: DQNConfig, *, seed: int, device: str = "cpu") -> None:
        obs = one_axis(game, "observations")
        self.actions: Tensor | None = None
        """What each choice plays, float32 [choices, actions]; None in a discrete game."""
        if isinstance(game.action, Discrete):
            self.choices = game.action.n
        else:
            self.actions = action_grid(game, config.levels)
            self.choices = len(self.actions)
        masked = game.decisions().mask is not None
        super().__init__(game, config, actions=1, choices=self.choices * masked, seed=seed, device=device)
        generator = torch.Generator().manual_seed(seed)
        self.q = Values(obs, self.choices, hidden=config.hidden, generator=generator).to(device)
        self.q_target = copy.deepcopy(self.q)
        self._online, self._target = averaged_tensors(self.q), averaged_tensors(self.q_target)
        self._parameters = list(self.q.parameters())
        self.optimiser = torch.optim.Adam(self._parameters, lr=config.lr, fused=True)

    @property
    def epsilon(self) -> float:
        """The share of random choices now."""
        config = self.config
        left = max(0.0, 1.0 - self.decisions / config.epsilon_decisions) if config.epsilon_decisions else 0.0
        return config.epsilon_end + (config.epsilon - config.epsilon_end) * left

    def explore(self, rows: Decisions) -> tuple[Tensor, Tensor]:
        """The best choice, or with probability epsilon any legal one."""
        mask = rows.mask
        with torch.no_grad():
            choice = best_choice(self.q(rows.obs.float().to(self.device)).cpu(), mask)
        uniform = row_uniforms(rows, 2, seed=self.seed, stream=STREAM_EXPLORE)
        legal = torch.ones(len(rows), self.choices, dtype=torch.bool) if mask is None else mask.bool()
        number = (uniform[:, 1] * legal.sum(dim=1)).long()  # of the legal ones, from 0
        drawn = (legal.long().cumsum(dim=1) > number.unsqueeze(1)).long().argmax(dim=1)
        choice = torch.where(uniform[:, 0] < self.epsilon, drawn, choice)
        # float32 holds the number of a choice exactly.
        return choice if self.actions is None else self.actions[choice], choice.unsqueeze(1).float()

    def _update(self) -> None:
        """One step of network and target (Mnih et al. 2015, algorithm 1, with soft targets)."""
        config = self.config
        batch = self.replay.sample(config.batch, seed=self.seed, stream=STREAM_REPLAY, counter=self.updates)
        next_obs = batch["next_obs"]
        with torch.no_grad():
            rated = self.q_target(next_obs)
            choice = best_choice(self.q(next_obs) if config.double else rated, batch.get("next_mask"))
            target = batch["reward"] + batch["discount"] * rated.gather(1, choice.unsqueeze(1)).squeeze(1)
        value = self.q(batch["obs"]).gather(1, batch["action"].long()).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, target)  # the paper's clipped error
        self._descend(loss, self._parameters, self.optimiser)
        torch._foreach_lerp_(self._target, self._online, config.tau)
        self.updates += 1
        self._losses = torch.stack((loss.detach(), value.detach().mean(), loss.new_tensor(self.epsilon)))

    def policy(self) -> BestChoice:
        """The target network's best choice as it is now, frozen: later training does not change it."""
        return BestChoice(copy.deepcopy(self.q_target), self.actions).eval()

    def state(self) -> dict[str, Any]:
        """Everything but the replay's rows."""
        return {
            "q": self.q.state_dict(),
            "q_target": self.q_target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "actions": self.actions,
            **super().state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; the replay is restored apart, by `Replay.restore`."""
        self.q.load_state_dict(state["q"])
        self.q_target.load_state_dict(state["q_target"])
        load_moments(self.optimiser, state["optimiser"])
        super().load_state(state)


def action_grid(game: Game, levels: tuple[int, ...]) -> Tensor:
    """Every combination of `levels` evenly spaced values of each of the game's numbers, float32 [choices, actions].

    Raises SparringError for actions that no grid covers.
    """
    space = game.action
    if not isinstance(space, Box) or not space.dtype.is_floating_point or not abs(space.low) + abs(space.high) < 1e9:
        raise SparringError(f"dqn: {game.name} has actions that are neither choices nor numbers within bounds")
    actions = one_axis(game, "actions")
    if len(levels) not in (1, actions):
        raise SparringError(
            f"dqn.levels = {list(levels)}: {game.name} has {actions} numbers in an action: give one level or {actions}"
        )
    counts = levels * actions if len(levels) == 1 else levels
    if (choices := math.prod(counts)) > _MOST_CHOICES:
        raise SparringError(f"dqn.levels = {list(levels)}: that makes {choices:,} choices, at most {_MOST_CHOICES:,}")
    return torch.cartesian_prod(*(torch.linspace(space.low, space.high, n) for n in counts)).view(choices, actions)
