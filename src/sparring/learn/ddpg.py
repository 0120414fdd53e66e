"""Deep Deterministic Policy Gradient by self-play (Lillicrap et al. 2016): all agents share one actor and one critic.

Every agent's transitions go into one replay, so the opponent an agent learns against is always the latest version of
itself. Acting and learning alternate: `burst` updates after every `update_every` decisions of each lane.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Game
from sparring.learn.descent import load_moments
from sparring.learn.noise import OrnsteinUhlenbeck, counted_normals, row_normals
from sparring.learn.offpolicy import OffPolicy, OffPolicyConfig, averaged_tensors
from sparring.learn.transitions import one_axis
from sparring.policies.mlp import Actor, Critic, TwinCritic, fan_in_uniform
from sparring.settings import Range

# Streams of the counter-based generator, one for each thing that is sampled.
STREAM_NOISE, STREAM_REPLAY, STREAM_WARMUP, STREAM_SMOOTH = 1, 2, 3, 4


@dataclass(frozen=True, kw_only=True)
class DDPGConfig(OffPolicyConfig):
    """Hyper-parameters of self-play DDPG. The defaults are the published Tennis settings."""

    actor_hidden: tuple[Annotated[int, Range(low=1)], ...] = (256, 256, 128)
    """Widths of the actor's hidden layers."""
    actor_normalised: Annotated[int, Range(low=0)] = 2
    """How many of the actor's hidden layers, from the first, are followed by batch norm."""
    critic_hidden: tuple[Annotated[int, Range(low=1)], ...] = (256, 256)
    """Widths of the critic's hidden layers."""
    critic_normalised: Annotated[int, Range(low=0)] = 1
    """How many of the critic's hidden layers, from the first, are followed by batch norm."""
    actor_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 2e-4
    """Adam's step size for the actor."""
    critic_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 8e-4
    """Adam's step size for the critic."""
    critic_weight_decay: Annotated[float, Range(low=0, high=1)] = 1e-5
    """L2 penalty on the critic's weights."""
    logit_penalty: Annotated[float, Range(low=0)] = 0.0
    """Weight of the squared outputs before tanh in the actor's loss: keeps tanh where it has slope to learn from."""
    td3: bool = False
    """TD3 (Fujimoto et al. 2018): two critics of which the lower one counts, smoothed targets, a delayed actor."""
    td3_delay: Annotated[int, Range(low=1)] = 2
    """Updates of the critics for one of the actor and of the targets."""
    td3_noise: Annotated[float, Range(low=0)] = 0.2
    """Size of the noise on the next action in the targets."""
    td3_noise_clip: Annotated[float, Range(low=0)] = 0.5
    """Largest such noise."""
    predict: Annotated[float, Range(low=0)] = 0.0
    """Weight of guessing what the other of two agents does now, in the actor's loss; a head on the actor's trunk that
    is not used to act. 0: no such head."""
    warmup: Annotated[int, Range(low=0)] = 0
    """Transitions gathered with uniformly random actions before the actor is asked."""
    noise_theta: Annotated[float, Range(low=0, high=1)] = 0.1
    """How fast the Ornstein-Uhlenbeck noise returns to zero."""
    noise_sigma: Annotated[float, Range(low=0)] = 0.06
    """Size of the noise's random step in the last lane (the published 0.3 divided by 5)."""
    noise_sigma_low: Annotated[float, Range(low=0)] = 0.06
    """Size of the noise's random step in the first lane; the lanes between go up in equal ratios."""
    noise_shared: bool = True
    """One noise process that the agents of a lane advance in turn, instead of one each."""
    noise_before_clip: bool = True
    """Store the action that the court plays; false stores it unclipped with its noise, as the published code does."""


class Policy:
    """A trained actor: evaluation mode, no noise, no gradient."""

    def __init__(self, actor: nn.Module) -> None:
        self.actor = actor.eval()

    @torch.no_grad()
    def act(self, observations: Tensor) -> Tensor:
        """obs float32 [n, inputs] -> action float32 [n, actions]."""
        action: Tensor = self.actor(observations)
        return action


class DDPG(OffPolicy):
    """The learner. Call `step` again and again; save `state()` and the replay's rows to continue later."""

    config: DDPGConfig
    loss_names = ("critic_loss", "actor_loss", "value")

    def __init__(self, game: Game, config: DDPGConfig, *, seed: int, device: str = "cpu") -> None:
        if not isinstance(game.action, Box):
            raise SparringError(f"ddpg: {game.name} has discrete actions; DDPG needs continuous ones in [-1, 1]")
        if (game.action.low, game.action.high) != (-1.0, 1.0):
            raise SparringError(
                f"ddpg: {game.name} has actions in [{game.action.low:g}, {game.action.high:g}]; "
                "DDPG needs [-1, 1]: scale them in the game or in a Wrapper"
            )
        obs, actions = one_axis(game, "observations"), one_axis(game, "actions")
        if config.predict and game.agents != 2:
            raise SparringError(f"ddpg.predict = {config.predict}: {game.name} has {game.agents} agents; it needs two")
        # Where the other's moves are guessed, they are stored behind one's own.
        super().__init__(game, config, actions=actions * (2 if config.predict else 1), seed=seed, device=device)
        self.action_size = actions
        generator = torch.Generator().manual_seed(seed)
        self.actor = Actor(
            obs, actions, hidden=config.actor_hidden, normalised=config.actor_normalised, generator=generator
        ).to(device)
        self.critic = (TwinCritic if config.td3 else Critic)(
            obs, actions, hidden=config.critic_hidden, normalised=config.critic_normalised, generator=generator
        ).to(device)
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        # The targets always run in evaluation mode: their batch-norm statistics are soft copies, like their weights.
        self.actor_target.eval()
        self.critic_target.eval()
        self._online = averaged_tensors(self.actor) + averaged_tensors(self.critic)
        self._target = averaged_tensors(self.actor_target) + averaged_tensors(self.critic_target)
        self.predictor = (
            fan_in_uniform(nn.Linear(config.actor_hidden[-1], actions), generator).to(device)
            if config.predict
            else None
        )
        """From the actor's trunk to the other's action before tanh."""
        self._actor_parameters = [*self.actor.parameters(), *(self.predictor.parameters() if self.predictor else ())]
        self._critic_parameters = list(self.critic.parameters())
        self.actor_optimiser = torch.optim.Adam(self._actor_parameters, lr=config.actor_lr, fused=True)
        self.critic_optimiser = torch.optim.Adam(
            self._critic_parameters, lr=config.critic_lr, weight_decay=config.critic_weight_decay, fused=True
        )
        self.noise = OrnsteinUhlenbeck(
            game.lanes,
            game.agents,
            actions,
            theta=config.noise_theta,
            sigma=_lane_sigmas(config, game.lanes),
            shared=config.noise_shared,
            seed=seed,
            stream=STREAM_NOISE,
        )

    def explore(self, rows: Decisions) -> tuple[Tensor, Tensor]:
        """The actor's actions with noise, as they are played and stored."""
        action = self._explore(rows)
        if not self.config.predict:
            return action, action
        slot, other = 2 * rows.lane + rows.agent, 2 * rows.lane + 1 - rows.agent
        played = torch.full((2 * self.game.lanes, self.action_size), torch.nan)
        played[slot] = action
        if played[other].isnan().any():
            raise SparringError(f"ddpg.predict: agents of {self.game.name} do not all act at once: set it to 0")
        return action, torch.cat((action, played[other]), dim=1)

    def _explore(self, rows: Decisions) -> Tensor:
        config = self.config
        if self.replay.rows_written < config.warmup:
            normal = row_normals(rows, self.action_size, seed=self.seed, stream=STREAM_WARMUP)
            return torch.erf(normal / 2**0.5)  # uniform in [-1, 1]
        self.actor.eval()
        with torch.no_grad():
            action: Tensor = self.actor(rows.obs.to(self.device)).cpu()
        self.actor.train()
        action = action + self.noise.sample(rows)
        return action.clamp(-1.0, 1.0) if config.noise_before_clip else action

    def _update(self) -> None:
        """One step of critic, actor and targets (Lillicrap et al. 2016, algorithm 1; TD3: Fujimoto et al. 2018)."""
        config = self.config
        batch = self.replay.sample(config.batch, seed=self.seed, stream=STREAM_REPLAY, counter=self.updates)
        obs, next_obs = batch["obs"], batch["next_obs"]
        action, other = batch["action"][:, : self.action_size], batch["action"][:, self.action_size :]
        with torch.no_grad():
            next_action = self.actor_target(next_obs)
            if config.td3:
                noise = counted_normals(self.updates, *next_action.shape, seed=self.seed, stream=STREAM_SMOOTH)
                noise = (config.td3_noise * noise).clamp(-config.td3_noise_clip, config.td3_noise_clip)
                next_action = (next_action + noise.to(self.device)).clamp(-1.0, 1.0)
            next_value = self.critic_target(next_obs, next_action)
            if config.td3:
                next_value = next_value.amin(dim=0)
            target = batch["reward"] + batch["discount"] * next_value
        value = self.critic(obs, action)
        critic_loss = nn.functional.mse_loss(value, target.expand_as(value))
        self._descend(critic_loss, self._critic_parameters, self.critic_optimiser)
        self.updates += 1
        actor_loss = self._losses[1]
        if not config.td3 or self.updates % config.td3_delay == 0:
            trunk = self.actor.trunk(obs)
            logits = self.actor.head(trunk)
            rated = self.critic(obs, torch.tanh(logits))
            actor_loss = config.logit_penalty * logits.square().mean() - (rated[0] if config.td3 else rated).mean()
            if self.predictor:
                guess = torch.tanh(self.predictor(trunk))
                actor_loss = actor_loss + config.predict * nn.functional.mse_loss(guess, other)
            self._descend(actor_loss, self._actor_parameters, self.actor_optimiser)
            torch._foreach_lerp_(self._target, self._online, config.tau)
        self._losses = torch.stack((critic_loss.detach(), actor_loss.detach(), value.detach().mean()))

    def policy(self) -> Policy:
        """The target actor as it is now, frozen: later training does not change it.

        It is a running average of the actor (Polyak and Juditsky 1992) and plays more steadily: the actor itself
        can lose its touch for a few hundred updates.
        """
        return Policy(copy.deepcopy(self.actor_target))

    def state(self) -> dict[str, Any]:
        """Everything but the replay's rows."""
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "actor_target": self.actor_target.state_dict(),
            "critic_target": self.critic_target.state_dict(),
            "actor_optimiser": self.actor_optimiser.state_dict(),
            "critic_optimiser": self.critic_optimiser.state_dict(),
            "predictor": self.predictor.state_dict() if self.predictor else None,
            "noise": self.noise.x,
            **super().state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; the replay is restored apart, by `Replay.restore`."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.actor_target.load_state_dict(state["actor_target"])
        self.critic_target.load_state_dict(state["critic_target"])
        if self.predictor:
            self.predictor.load_state_dict(state["predictor"])
        load_moments(self.actor_optimiser, state["actor_optimiser"])
        load_moments(self.critic_optimiser, state["critic_optimiser"])
        self.noise.x.copy_(state["noise"])
        super().load_state(state)


def _lane_sigmas(config: DDPGConfig, lanes: int) -> Tensor:
    """float32 [lanes]: noise from low to high in equal ratios, so that careful and bold rallies are both remembered."""
    low, high = config.noise_sigma_low, config.noise_sigma
    if low == high or lanes == 1:
        return torch.full((lanes,), high)
    return low * (high / low) ** (torch.arange(lanes) / (lanes - 1))
