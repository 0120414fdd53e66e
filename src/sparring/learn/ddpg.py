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
from sparring.games.api import Box, Decisions, Game, Outcome
from sparring.learn.matches import EpisodeRow, MatchRow
from sparring.learn.noise import OrnsteinUhlenbeck, row_normals
from sparring.learn.replay import Replay
from sparring.learn.returns import NStepReturns
from sparring.policies.mlp import Actor, Critic
from sparring.settings import Range

# Streams of the counter-based generator, one for each thing that is sampled.
STREAM_NOISE, STREAM_REPLAY, STREAM_WARMUP = 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class DDPGConfig:
    """Hyper-parameters of self-play DDPG. The defaults are the published Tennis settings."""

    actor_hidden: tuple[Annotated[int, Range(low=1)], ...] = (256, 256, 128)
    """Widths of the actor's hidden layers."""
    actor_normalised: Annotated[int, Range(low=0)] = 2
    """How many of the actor's hidden layers, from the first, are followed by batch norm."""
    critic_hidden: tuple[Annotated[int, Range(low=1)], ...] = (256, 256)
    """Widths of the critic's hidden layers."""
    critic_normalised: Annotated[int, Range(low=0)] = 1
    """How many of the critic's hidden layers, from the first, are followed by batch norm."""
    buffer: Annotated[int, Range(low=1, high=100_000_000)] = 1_000_000
    """Transitions the replay holds; each agent's decision is one."""
    batch: Annotated[int, Range(low=2, high=1_000_000)] = 128
    """Transitions per update. Larger: steadier gradients, fewer updates a second."""
    gamma: Annotated[float, Range(low=0, high=1)] = 0.99
    """Discount per decision. Nearer 1: looks further ahead, learns slower."""
    n_step: Annotated[int, Range(low=1, high=1000)] = 1
    """Decisions whose rewards a transition adds up before it asks the critic. More: faster credit, more bias."""
    reward_scale: Annotated[float, Range(low=0, low_open=True)] = 1.0
    """What the learner multiplies rewards by. Scores stay unscaled."""
    tau: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-3
    """Share of the online networks that flows into the target networks at each update."""
    actor_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 2e-4
    """Adam's step size for the actor."""
    critic_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 8e-4
    """Adam's step size for the critic."""
    critic_weight_decay: Annotated[float, Range(low=0, high=1)] = 1e-5
    """L2 penalty on the critic's weights."""
    clip_norm: Annotated[float, Range(low=0, low_open=True)] = 1.5
    """Largest norm of either network's gradient."""
    logit_penalty: Annotated[float, Range(low=0)] = 0.0
    """Weight of the squared outputs before tanh in the actor's loss: keeps tanh where it has slope to learn from."""
    update_every: Annotated[int, Range(low=1)] = 64
    """Decisions of each lane between bursts of updates."""
    burst: Annotated[int, Range(low=1)] = 128
    """Updates in a burst."""
    warmup: Annotated[int, Range(low=0)] = 0
    """Transitions gathered with uniformly random actions before the actor is asked."""
    learn_from: Annotated[int, Range(low=1)] = 128
    """Transitions the replay must hold before the first burst."""
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
    episode_matches: Annotated[int, Range(low=1)] = 1
    """Matches after which a lane is reset; their rewards add up to one episode score."""
    episode_decisions: Annotated[int, Range(low=0)] = 0
    """Decisions after which a lane is reset even within a match; 0: never."""


class Policy:
    """A trained actor: evaluation mode, no noise, no gradient."""

    def __init__(self, actor: nn.Module) -> None:
        self.actor = actor.eval()

    @torch.no_grad()
    def act(self, observations: Tensor) -> Tensor:
        """obs float32 [n, inputs] -> action float32 [n, actions]."""
        action: Tensor = self.actor(observations)
        return action


class DDPG:
    """The learner. Call `step` again and again; save `state()` and the replay's rows to continue later."""

    def __init__(self, game: Game, config: DDPGConfig, *, seed: int, device: str = "cpu") -> None:
        if not isinstance(game.action, Box):
            raise SparringError(f"ddpg: {game.name} has discrete actions; DDPG needs continuous ones in [-1, 1]")
        if (game.action.low, game.action.high) != (-1.0, 1.0):
            raise SparringError(
                f"ddpg: {game.name} has actions in [{game.action.low:g}, {game.action.high:g}]; "
                "DDPG needs [-1, 1]: scale them in the game or in a Wrapper"
            )
        for name, shape in (("observations", game.observation.shape), ("actions", game.action.shape)):
            if len(shape) != 1:
                raise SparringError(
                    f"ddpg: {game.name} has {name} of shape {list(shape)}; DDPG needs one axis: flatten them"
                )
        self.game, self.config, self.seed, self.device = game, config, seed, device
        obs, actions = game.observation.shape[0], game.action.shape[0]
        self.action_size = actions
        generator = torch.Generator().manual_seed(seed)
        self.actor = Actor(
            obs, actions, hidden=config.actor_hidden, normalised=config.actor_normalised, generator=generator
        ).to(device)
        self.critic = Critic(
            obs, actions, hidden=config.critic_hidden, normalised=config.critic_normalised, generator=generator
        ).to(device)
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        # The targets always run in evaluation mode: their batch-norm statistics are soft copies, like their weights.
        self.actor_target.eval()
        self.critic_target.eval()
        self._online = _averaged_tensors(self.actor) + _averaged_tensors(self.critic)
        self._target = _averaged_tensors(self.actor_target) + _averaged_tensors(self.critic_target)
        self._actor_parameters = list(self.actor.parameters())
        self._critic_parameters = list(self.critic.parameters())
        self.actor_optimiser = torch.optim.Adam(self._actor_parameters, lr=config.actor_lr, fused=True)
        self.critic_optimiser = torch.optim.Adam(
            self._critic_parameters, lr=config.critic_lr, weight_decay=config.critic_weight_decay, fused=True
        )
        self.replay = Replay(config.buffer, obs, actions, device=device)
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
        self.returns = NStepReturns(game.lanes * game.agents, config.n_step, config.gamma, obs=obs, actions=actions)
        self.decisions = 0
        self.updates = 0
        self.matches = 0
        self.episodes = 0
        self.episodes_ended: list[EpisodeRow] = []
        """Episodes that the last `step` ended; stays empty where every match is an episode of its own."""
        self._episode_matches = torch.zeros(game.lanes, dtype=torch.int64)
        self._episode_decisions = torch.zeros(game.lanes, dtype=torch.int64)
        self._episode_score = torch.zeros(game.lanes, game.agents)
        self._losses = torch.zeros(3)
        self._rows = game.decisions()

    def step(self) -> list[MatchRow]:
        """Act once in every lane, then learn if a burst is due. Returns the matches that ended."""
        rows = self._rows
        action = self._explore(rows)
        outcome = self.game.act(action)
        self.decisions += self.game.lanes
        ended = self._matches(outcome)
        over = self._episodes_over(outcome)
        self._rows = self.game.decisions()
        self._remember(rows, action, outcome, self._rows, over)
        waiting = over.clone()
        if not self.game.restarts_itself:
            waiting[outcome.ended] = True
        if waiting.any():
            self.game.restart(waiting.nonzero().view(-1))
            self._rows = self.game.decisions()
        config = self.config
        lane_decisions = self.decisions // self.game.lanes
        if lane_decisions % config.update_every == 0 and len(self.replay) >= config.learn_from:
            for _ in range(config.burst):
                self._update()
        return ended

    def _explore(self, rows: Decisions) -> Tensor:
        """The actor's actions with noise, as they are played and stored: float32 [n, actions]."""
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

    def _remember(self, rows: Decisions, action: Tensor, outcome: Outcome, following: Decisions, over: Tensor) -> None:
        """Store what is ready. Rows, rewards and next observations meet by id, not by place."""
        lanes, agents = self.game.lanes, self.game.agents
        reward = torch.zeros(lanes * agents)
        reward[outcome.lane * agents + outcome.agent] = outcome.reward * self.config.reward_scale
        next_obs = torch.full((lanes * agents, rows.obs.shape[1]), torch.nan)
        next_obs[following.lane * agents + following.agent] = following.obs
        # What an agent saw at the end, not the first sight of its next match.
        next_obs[outcome.last.lane * agents + outcome.last.agent] = outcome.last.obs
        terminal = torch.zeros(lanes, dtype=torch.bool)
        terminal[outcome.ended] = ~outcome.truncated
        last = over.clone()
        last[outcome.ended] = True
        slot = rows.lane * agents + rows.agent
        if (blind := next_obs[slot].isnan()).any():
            row = int(blind.any(dim=1).nonzero()[0])
            raise SparringError(
                f"ddpg: {self.game.name}: agent {int(rows.agent[row])} of lane {int(rows.lane[row])} acted and then "
                "saw nothing (or NaN): DDPG needs games in which all agents act at every decision until the match ends"
            )
        ready = self.returns.push(
            slot,
            obs=rows.obs,
            action=action,
            reward=reward[slot],
            next_obs=next_obs[slot],
            last=last[rows.lane],
            terminal=terminal[rows.lane],
        )
        self.replay.add(**ready)

    def _matches(self, outcome: Outcome) -> list[MatchRow]:
        rows = []
        for lane, truncated, score, length in zip(
            outcome.ended.tolist(),
            outcome.truncated.tolist(),
            outcome.score.tolist(),
            outcome.length.tolist(),
            strict=True,
        ):
            rows.append(
                MatchRow(
                    match=self.matches,
                    lane=lane,
                    length=length,
                    score=tuple(score),
                    truncated=truncated,
                    at=self.decisions,
                    updates=self.updates,
                )
            )
            self.matches += 1
        return rows

    def _episodes_over(self, outcome: Outcome) -> Tensor:
        """bool [lanes]: lanes to reset now."""
        self._episode_decisions += 1
        self._episode_score.index_put_((outcome.lane, outcome.agent), outcome.reward, accumulate=True)
        self._episode_matches[outcome.ended] += 1
        over = self._episode_matches >= self.config.episode_matches
        if self.config.episode_decisions:
            over |= self._episode_decisions >= self.config.episode_decisions
        self.episodes_ended = []
        if self.config.episode_matches > 1 or self.config.episode_decisions:
            for lane in over.nonzero().view(-1).tolist():
                row = EpisodeRow(
                    episode=self.episodes,
                    lane=lane,
                    matches=int(self._episode_matches[lane]),
                    length=int(self._episode_decisions[lane]),
                    score=tuple(self._episode_score[lane].tolist()),
                    at=self.decisions,
                )
                self.episodes_ended.append(row)
                self.episodes += 1
        self._episode_decisions[over] = 0
        self._episode_matches[over] = 0
        self._episode_score[over] = 0.0
        return over

    def _update(self) -> None:
        """One step of critic, actor and targets (Lillicrap et al. 2016, algorithm 1)."""
        config = self.config
        batch = self.replay.sample(config.batch, seed=self.seed, stream=STREAM_REPLAY, counter=self.updates)
        obs, next_obs = batch["obs"], batch["next_obs"]
        with torch.no_grad():
            next_value = self.critic_target(next_obs, self.actor_target(next_obs))
            target = batch["reward"] + batch["discount"] * next_value
        value = self.critic(obs, batch["action"])
        critic_loss = nn.functional.mse_loss(value, target)
        self._descend(critic_loss, self._critic_parameters, self.critic_optimiser)

        logits = self.actor.logits(obs)
        actor_loss = config.logit_penalty * logits.square().mean() - self.critic(obs, torch.tanh(logits)).mean()
        self._descend(actor_loss, self._actor_parameters, self.actor_optimiser)

        torch._foreach_lerp_(self._target, self._online, config.tau)
        self.updates += 1
        self._losses = torch.stack((critic_loss.detach(), actor_loss.detach(), value.detach().mean()))

    def _descend(self, loss: Tensor, parameters: list[nn.Parameter], optimiser: torch.optim.Optimizer) -> None:
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        nn.utils.clip_grad_norm_(parameters, self.config.clip_norm, foreach=True)
        optimiser.step()

    def losses(self) -> dict[str, float]:
        """Critic loss, actor loss and mean value of the last update's batch."""
        critic, actor, value = self._losses.tolist()
        return {"critic_loss": critic, "actor_loss": actor, "value": value}

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
            "noise": self.noise.x,
            "returns": self.returns.state(),
            "game": self.game.state(),
            "decisions": self.decisions,
            "updates": self.updates,
            "matches": self.matches,
            "episodes": self.episodes,
            "episode_score": self._episode_score,
            "episode_matches": self._episode_matches,
            "episode_decisions": self._episode_decisions,
            "losses": self._losses,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; the replay is restored apart, by `Replay.restore`."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.actor_target.load_state_dict(state["actor_target"])
        self.critic_target.load_state_dict(state["critic_target"])
        _load_moments(self.actor_optimiser, state["actor_optimiser"])
        _load_moments(self.critic_optimiser, state["critic_optimiser"])
        self.noise.x.copy_(state["noise"])
        self.returns.load_state(state["returns"])
        self.game.load_state(state["game"])
        self.decisions = state["decisions"]
        self.updates = state["updates"]
        self.matches = state["matches"]
        self.episodes = state["episodes"]
        self._episode_score.copy_(state["episode_score"])
        self._episode_matches.copy_(state["episode_matches"])
        self._episode_decisions.copy_(state["episode_decisions"])
        self._losses = state["losses"]
        self._rows = self.game.decisions()


def _averaged_tensors(network: nn.Module) -> list[Tensor]:
    """What flows into a target network: the weights and batch norm's running statistics."""
    return [tensor.detach() for tensor in network.state_dict(keep_vars=True).values() if tensor.is_floating_point()]


def _lane_sigmas(config: DDPGConfig, lanes: int) -> Tensor:
    """float32 [lanes]: noise from low to high in equal ratios, so that careful and bold rallies are both remembered."""
    low, high = config.noise_sigma_low, config.noise_sigma
    if low == high or lanes == 1:
        return torch.full((lanes,), high)
    return low * (high / low) ** (torch.arange(lanes) / (lanes - 1))


def _load_moments(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Adam's moments and step count from a checkpoint; step size and weight decay stay those of the config."""
    optimiser.load_state_dict({**state, "param_groups": optimiser.state_dict()["param_groups"]})
