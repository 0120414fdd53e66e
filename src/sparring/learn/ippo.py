"""Proximal Policy Optimisation by self-play (Schulman et al. 2017), all agents sharing one actor and one critic.

Every agent is a learner of its own that sees only its own observation, independent PPO (de Witt et al. 2020, arXiv
2011.09533). An update is one rollout and its epochs. A decision trains in the first update after it is known what
followed: at once where all agents act together; where they take turns, those who wait at its end in the next.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Discrete, Game
from sparring.learn.descent import descend, load_moments
from sparring.learn.matches import EpisodeRow, MatchRow, match_rows
from sparring.learn.noise import counted_normals, row_normals, row_uniforms
from sparring.learn.ppo import ValueScale, not_finite
from sparring.learn.returns import advantages
from sparring.learn.transitions import Transitions, one_axis
from sparring.policies.critic import explained_variance
from sparring.policies.mlp import Actor, LikeliestChoice, StateValue
from sparring.settings import Range

# Streams of the counter-based generator, one for each thing that is sampled.
STREAM_ACTION, STREAM_MINIBATCH = 1, 2
_FORBIDDEN = -1e9
"""What stands for the logarithm of 0: its exponential is exactly 0, and 0 times it is no NaN."""


@dataclass(frozen=True, kw_only=True)
class IPPOConfig:
    """Hyper-parameters of self-play PPO."""

    hidden: tuple[Annotated[int, Range(low=1)], ...] = (64, 64)
    """Widths of the hidden layers of actor and critic."""
    steps: Annotated[int, Range(low=1)] = 128
    """Decisions of each lane in a rollout."""
    epochs: Annotated[int, Range(low=1, high=1000)] = 4
    """Times that an update goes through its rollout."""
    minibatch: Annotated[int, Range(low=2)] = 256
    """Decisions of agents in a minibatch, about: a rollout is cut into equal parts."""
    gamma: Annotated[float, Range(low=0, high=1)] = 0.99
    """Discount per decision. Nearer 1: looks further ahead, learns slower."""
    lam: Annotated[float, Range(low=0, high=1)] = 0.95
    """How far advantages look before they trust the critic. 1: to the end of the life."""
    clip: Annotated[float, Range(low=0, low_open=True)] = 0.2
    """How far an action's probability may move in an update before its gradient is cut, as a share."""
    entropy: Annotated[float, Range(low=0)] = 0.01
    """Weight of the entropy of the actions. More: keeps trying longer."""
    std: Annotated[float, Range(low=0, low_open=True)] = 0.5
    """Games of numbers: standard deviation of the first actions around what the actor says; then it is learnt."""
    lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-3
    """Adam's step size at the start; it falls along a line."""
    lr_end: Annotated[float, Range(low=0, high=1)] = 0.0
    """What is left of it at the end of the run, as a share."""
    clip_norm: Annotated[float, Range(low=0, low_open=True)] = 0.5
    """Largest norm of a network's gradient."""


class IPPO:
    """The learner. Call `step` again and again; save `state()` to continue later.

    Actions are drawn from a softmax over the legal choices, or from a normal distribution around the actor's numbers
    whose width is the same everywhere; what is played of these is cut to [-1, 1].
    """

    loss_names = ("policy_loss", "value_loss", "entropy", "kl", "clipped", "explained_variance", "value")

    def __init__(self, game: Game, config: IPPOConfig, *, seed: int, decisions: int, device: str = "cpu") -> None:
        """decisions: length of the run, over which the step size falls. Raises SparringError for other games."""
        self.game, self.config, self.seed, self.device = game, config, seed, device
        self.length = decisions
        obs = one_axis(game, "observations")
        self.choices = game.action.n if isinstance(game.action, Discrete) else 0
        if not self.choices and (
            not isinstance(game.action, Box) or (game.action.low, game.action.high) != (-1.0, 1.0)
        ):
            raise SparringError(f"ippo: {game.name} acts by {game.action}: PPO needs choices, or numbers in [-1, 1]")
        size = self.choices or one_axis(game, "actions")
        generator = torch.Generator().manual_seed(seed)
        self.actor = Actor(obs, size, hidden=config.hidden, normalised=0, generator=generator).to(device)
        self.critic = StateValue(obs, hidden=config.hidden, generator=generator).to(device)
        self.log_std = nn.Parameter(torch.full((0 if self.choices else size,), config.std, device=device).log())
        """Of each number; empty where agents choose."""
        self._actor_parameters = [*self.actor.parameters(), *([] if self.choices else [self.log_std])]
        self._critic_parameters = list(self.critic.parameters())
        self._optimisers = {
            "actor": torch.optim.Adam(self._actor_parameters, lr=config.lr, fused=True),
            "critic": torch.optim.Adam(self._critic_parameters, lr=config.lr, fused=True),
        }
        self.scale = ValueScale()
        self._masked = self.choices > 0 and game.decisions().mask is not None
        action = ((), torch.int64) if self.choices else ((size,), torch.float32)
        masks = {"mask": ((self.choices,), torch.bool)} if self._masked else {}
        self.transitions = Transitions(game, {"action": action, "log_prob": ((), torch.float32), **masks})
        self.decisions = 0
        self.updates = 0
        self.matches = 0
        self.episodes_ended: list[EpisodeRow] = []
        """Always empty: every match is an episode of its own."""
        self._losses = torch.zeros(len(self.loss_names))
        self._rows = game.decisions()

    def step(self) -> list[MatchRow]:
        """One update: play a rollout in every lane, then learn from it. Returns the matches that ended."""
        progress = self.decisions / self.length
        ended: list[MatchRow] = []
        parts = []
        for tick in range(self.config.steps):
            part = self._play(ended)
            parts.append(part | {"tick": torch.full_like(part["slot"], tick)})
        rollout = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        if len(rollout["slot"]):
            self._learn(rollout, progress)
        self.updates += 1
        return ended

    def _play(self, ended: list[MatchRow]) -> dict[str, Tensor]:
        """Act once in every lane. Returns the transitions that are ready; adds matches that ended to `ended`."""
        rows = self._rows
        columns = self.explore(rows)
        outcome = self.game.act(columns["action"] if self.choices else columns["action"].clamp(-1.0, 1.0))
        self.decisions += self.game.lanes
        ended += match_rows(outcome, first=self.matches, at=self.decisions, updates=self.updates)
        self.matches += len(outcome.ended)
        over = torch.zeros(self.game.lanes, dtype=torch.bool)
        over[outcome.ended] = True
        self._rows = self.game.decisions()
        ready = self.transitions.push(rows, outcome, self._rows, over, **columns)
        if len(outcome.ended):
            self.game.restart(outcome.ended)
            self._rows = self.game.decisions()
        return ready

    @torch.no_grad()
    def explore(self, rows: Decisions) -> dict[str, Tensor]:
        """Of each row a drawn action (int64 [n], or float32 [n, size], not yet cut) and its log-probability [n]."""
        obs, mask = rows.obs.float().to(self.device), rows.mask if self._masked else None
        policy = self.distribution(obs, None if mask is None else mask.to(self.device))
        if isinstance(policy, Categorical):
            # In float64 the running sum ends in 1 exactly, and a choice of probability 0 is none of its steps.
            steps = policy.probs.double().cumsum(dim=1)
            uniform = row_uniforms(rows, 1, seed=self.seed, stream=STREAM_ACTION).double().to(self.device)
            action = (steps / steps[:, -1:] > uniform).int().argmax(dim=1)
        else:
            normal = row_normals(rows, len(self.log_std), seed=self.seed, stream=STREAM_ACTION).to(self.device)
            action = policy.mean + self.log_std.exp() * normal
        columns = {"action": action.cpu(), "log_prob": policy.log_prob(action).cpu()}  # type: ignore[no-untyped-call]
        return columns if mask is None else columns | {"mask": mask.bool()}

    def distribution(self, obs: Tensor, mask: Tensor | None) -> Categorical | Independent[Normal]:
        """Of the actions, given observations float32 [n, inputs] and legal choices bool [n, choices]."""
        if not self.choices:
            return Independent(Normal(self.actor(obs), self.log_std.exp(), validate_args=False), 1, validate_args=False)
        logits = self.actor.logits(obs)
        if mask is not None:
            logits = logits.masked_fill(~mask, _FORBIDDEN)
        return Categorical(logits=logits, validate_args=False)

    @torch.no_grad()
    def advantages(self, rollout: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """What the critic makes of each transition's observation, and its advantage, float32 [n] in units of rewards.

        A life's last transition here bootstraps from what was seen after it, unless that was its end.
        """
        config, n = self.config, len(rollout["slot"])
        successor = successors(rollout["slot"], rollout["last"])
        ends = (successor < 0).nonzero().view(-1)
        successor[ends] = n + torch.arange(len(ends))
        seen = torch.cat((rollout["obs"], rollout["next_obs"][ends]))
        mean, spread = self.scale.moments()
        value = self.critic(seen.to(self.device)).cpu() * spread + mean
        value[n:][rollout["terminal"][ends]] = 0.0
        nothing = torch.zeros(len(ends))
        advantage = advantages(
            value,
            torch.zeros_like(value),
            torch.cat((rollout["reward"], nothing)),
            torch.cat((successor, torch.full((len(ends),), -1))),
            torch.cat((rollout["tick"], torch.full((len(ends),), config.steps))),
            gamma=config.gamma,
            lam=config.lam,
        )
        return value[:n], advantage[:n]

    def _learn(self, rollout: Mapping[str, Tensor], progress: float) -> None:
        """The epochs of an update (Schulman et al. 2017, equation 7, with a loss of its own for the critic)."""
        config, n = self.config, len(rollout["slot"])
        value, advantage = self.advantages(rollout)
        target = value + advantage
        if not target.isfinite().all():
            self._refuse("a value or an advantage")
        self.scale.update(target, (self.critic.head,))
        mean, spread = self.scale.moments()
        batch = {name: rollout[name] for name in ("obs", "action", "log_prob", "mask") if name in rollout}
        batch["target"] = (target - mean) / spread
        batch["advantage"] = (advantage - advantage.mean()) / advantage.std(correction=0).clamp_min(1e-8)
        batch = {name: column.to(self.device) for name, column in batch.items()}
        for optimiser in self._optimisers.values():
            for group in optimiser.param_groups:
                group["lr"] = config.lr * (1.0 - (1.0 - config.lr_end) * min(progress, 1.0))
        told = []
        for epoch in range(config.epochs):
            number = self.updates * config.epochs + epoch
            drawn = counted_normals(number, n, 1, seed=self.seed, stream=STREAM_MINIBATCH).view(-1)
            order = drawn.argsort(stable=True)
            for part in order.tensor_split(max(1, round(n / config.minibatch))):
                told.append(self._descend({name: column[part] for name, column in batch.items()}))
        rest = torch.tensor([explained_variance(value, target), float(value.mean())]).nan_to_num()
        self._losses = torch.cat((torch.stack(told).mean(dim=0).cpu(), rest))

    def _descend(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One step of actor and critic. Returns the first five of `loss_names`."""
        config, advantage = self.config, batch["advantage"]
        policy = self.distribution(batch["obs"], batch.get("mask"))
        log_ratio = policy.log_prob(batch["action"]) - batch["log_prob"]  # type: ignore[no-untyped-call]
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1.0 - config.clip, 1.0 + config.clip)
        policy_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
        entropy = policy.entropy().mean()  # type: ignore[no-untyped-call]
        value_loss = nn.functional.mse_loss(self.critic(batch["obs"]), batch["target"])
        losses = {"actor": policy_loss - config.entropy * entropy, "critic": value_loss}
        for name, parameters in (("actor", self._actor_parameters), ("critic", self._critic_parameters)):
            optimiser = self._optimisers[name]
            descend(losses[name], parameters, optimiser, clip_norm=config.clip_norm, refuse=self._refuse)
        with torch.no_grad():
            kl = (ratio - 1.0 - log_ratio).mean()
            cut = ((ratio - 1.0).abs() > config.clip).float().mean()
        return torch.stack((policy_loss.detach(), value_loss.detach(), entropy.detach(), kl, cut))

    def _refuse(self, what: str) -> NoReturn:
        networks = {"actor": self.actor, "critic": self.critic}
        raise SparringError(
            f"update {self.updates}: {not_finite(networks, what)}; continue from it with a smaller ippo.lr"
        )

    def losses(self) -> dict[str, float]:
        """What the last update told."""
        return dict(zip(self.loss_names, self._losses.tolist(), strict=True))

    def policy(self) -> Actor | LikeliestChoice:
        """The actor as it is now, frozen, without luck: the middle of its distribution, or the likeliest choice."""
        actor = copy.deepcopy(self.actor).eval().requires_grad_(False)
        return LikeliestChoice(actor) if self.choices else actor

    def state(self) -> dict[str, Any]:
        return {
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "log_std": self.log_std.detach(),
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self._optimisers.items()},
            "scale": self.scale.state(),
            "pending": self.transitions.state(),
            "game": self.game.state(),
            "choices": self.choices,
            "decisions": self.decisions,
            "updates": self.updates,
            "matches": self.matches,
            "losses": self._losses,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.log_std.data.copy_(state["log_std"])
        for name, optimiser in self._optimisers.items():
            load_moments(optimiser, state["optimisers"][name])
        self.scale.load_state(state["scale"])
        self.transitions.load_state(state["pending"])
        self.game.load_state(state["game"])
        self.decisions, self.updates, self.matches = state["decisions"], state["updates"], state["matches"]
        self._losses = state["losses"]
        self._rows = self.game.decisions()


def successors(slot: Tensor, last: Tensor) -> Tensor:
    """int64 [n]: the place of the transition that follows each in its life, -1 where none does.

    slot: int64 [n], whose transitions these are, in order of time; last: bool [n], the last of a life
    """
    order = slot.argsort(stable=True)
    here, after = order[:-1], order[1:]
    goes_on = (slot[here] == slot[after]) & ~last[here]
    following = torch.full_like(slot, -1)
    following[here[goes_on]] = after[goes_on]
    return following
