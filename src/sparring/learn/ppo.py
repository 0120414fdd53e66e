"""Proximal Policy Optimisation for Loong (Schulman et al. 2017), recurrent, with a critic that sees the true state.

An update is one rollout and its epochs. Every decision trains in the update that collected it. Lives are cut into
stretches whose memory starts where it stood when they were played; minibatches are whole blocks of a team in a lane.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from sparring import _core
from sparring.errors import SparringError
from sparring.learn.auxiliary import targets
from sparring.learn.descent import load_moments
from sparring.learn.hardware import CPU, Hardware
from sparring.learn.returns import advantages
from sparring.learn.rollout import Rollout
from sparring.policies.actions import PARTS, unpack
from sparring.policies.auxiliary import Auxiliary, AuxiliaryTargets
from sparring.policies.critic import DRAGON_LENGTH, EXACT_LENGTHS, Critic, explained_variance
from sparring.policies.loong import Teacher
from sparring.settings import Range

ASK_EVERY = 4
"""In one of so many rounds auxiliary questions are asked, in every epoch in others: asked always, they take a tenth of
an update's time."""
_DRIFT_RATE = 0.1
"""Of the running mean of divergences: in one minibatch a few rows can make it large."""
_CHUNK = 8192
"""Decisions that the critic values at once, to bound the memory that takes."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Hyper-parameters of PPO. Whatever has two values goes from the first to the second over the run."""

    steps: Annotated[int, Range(low=1)] = 128
    """Decisions of each lane in a rollout."""
    epochs: Annotated[int, Range(low=1)] = 2
    """Times that an update goes through its rollout."""
    minibatch: Annotated[int, Range(low=1)] = 256
    """Decisions in a minibatch, at least; blocks are not cut."""
    stretch: Annotated[int, Range(low=1)] = 16
    """Decisions of a life through which gradients flow back in time."""
    gamma: tuple[Annotated[float, Range(low=0, high=1)], Annotated[float, Range(low=0, high=1)]] = (0.95, 0.997)
    """Discount per round. A short horizon is learnt first, the whole match in the end."""
    lam: tuple[Annotated[float, Range(low=0, high=1)], Annotated[float, Range(low=0, high=1)]] = (0.5, 0.9)
    """How far advantages look before they trust the critic, per round. 1: to the end of the life. Far, a decision is
    credited with the luck of all that follows; near, with what the critic makes of it."""
    clip: Annotated[float, Range(low=0, low_open=True)] = 0.2
    """How far an action's probability may move in an update before its gradient is cut, as a share."""
    entropy: tuple[Annotated[float, Range(low=0)], Annotated[float, Range(low=0)]] = (0.03, 0.003)
    """Weight of the entropy of the choices. More: keeps trying longer."""
    shaping: tuple[Annotated[float, Range(low=0)], Annotated[float, Range(low=0)]] = (1.0, 0.2)
    """Scale of the potential: leads in length, queen's above all, paid as they change."""
    alive: tuple[Annotated[float, Range(low=0)], Annotated[float, Range(low=0)]] = (0.02, 0.0)
    """Paid to a dragon for each round that it survives."""
    growth: tuple[Annotated[float, Range(low=0)], Annotated[float, Range(low=0)]] = (0.4, 0.0)
    """Paid to a dragon for each segment that it gains, and taken for each that it burns; what it splits off is neither.
    Nothing from a length of 64 on."""
    value_weight: Annotated[float, Range(low=0)] = 0.5
    """Weight of the critic's error."""
    auxiliary: Annotated[float, Range(low=0)] = 0.1
    """Weight of what the memory is asked beside: unseen tiles, enemy heads and its own length later. 0: nothing."""
    balance: Annotated[float, Range(low=0)] = 0.01
    """Weight of the loss that keeps all experts in use."""
    lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-3
    """AdamW's largest step size, reached after the warm-up."""
    lr_end: Annotated[float, Range(low=0, high=1)] = 0.1
    """What is left of it at the end of the cosine, as a share."""
    warmup: Annotated[int, Range(low=0)] = 5
    """Updates until the step size is at its largest."""
    weight_decay: Annotated[float, Range(low=0, high=1)] = 1e-4
    """AdamW's decay of weights."""
    clip_norm: Annotated[float, Range(low=0, low_open=True)] = 0.5
    """Largest norm of actor's and critic's gradients."""
    target_kl: Annotated[float, Range(low=0, low_open=True)] = 0.03
    """Divergence from the policy that played, as a running mean over minibatches, at which an update stops early."""


class ValueScale:
    """Running mean and spread of returns: the critic learns numbers of size 1 and predicts in the units of rewards.

    When they move, the critic's last layers are rescaled so that no prediction changes (van Hasselt et al. 2016,
    "Pop-Art").
    """

    def __init__(self, *, rate: float = 0.1) -> None:
        self.rate = rate
        self.mean = torch.zeros(())
        self.square = torch.zeros(())
        self.weight = torch.zeros(())
        """What the running means add up to so far; divided out, so that the first returns count in full."""

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation; 0 and 1 before the first returns."""
        if self.weight == 0:
            return 0.0, 1.0
        mean, square = float(self.mean / self.weight), float(self.square / self.weight)
        return mean, max(math.sqrt(max(square - mean * mean, 0.0)), 1e-3)

    def update(self, returns: Tensor, layers: tuple[nn.Linear, ...]) -> None:
        """Take in an update's returns, and keep what `layers` predict."""
        old_mean, old_spread = self.moments()
        self.mean = torch.lerp(self.mean, returns.mean().cpu(), self.rate)
        self.square = torch.lerp(self.square, returns.square().mean().cpu(), self.rate)
        self.weight = torch.lerp(self.weight, torch.ones(()), self.rate)
        mean, spread = self.moments()
        with torch.no_grad():
            for layer in layers:
                layer.weight.mul_(old_spread / spread)
                layer.bias.mul_(old_spread).add_(old_mean - mean).div_(spread)

    def state(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "square": self.square, "weight": self.weight}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.mean, self.square, self.weight = state["mean"], state["square"], state["weight"]


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """What an update learns from: float32 [nodes] each, in the units of rewards."""

    value: Tensor
    advantage: Tensor

    @property
    def target(self) -> Tensor:
        """Returns that the critic should have predicted."""
        return self.value + self.advantage


class PPO:
    """The optimiser of a teacher and its critic; rollouts come from elsewhere.

    auxiliary: heads on the teacher's memory that train with it and are no part of it; None with weight 0
    """

    def __init__(
        self, teacher: Teacher, critic: Critic, config: PPOConfig, *, seed: int, hardware: Hardware = CPU
    ) -> None:
        """The networks are moved to the hardware's device."""
        self.teacher, self.critic, self.config, self.seed = teacher, critic, config, seed
        self.hardware = hardware
        self.auxiliary = Auxiliary(teacher.config.memory, seed=seed) if config.auxiliary > 0 else None
        self._networks: dict[str, nn.Module] = {"teacher": teacher, "critic": critic}
        if self.auxiliary is not None:
            self._networks["auxiliary"] = self.auxiliary
        for network in self._networks.values():
            network.to(hardware.device)
        self.scale = ValueScale()
        self.updates = 0
        beside = [] if self.auxiliary is None else list(self.auxiliary.parameters())
        self._parameters = ([*teacher.parameters(), *beside], list(critic.parameters()))
        self._optimisers = tuple(
            torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=True)
            for parameters in self._parameters
        )

    def estimate(self, rollout: Rollout, progress: float) -> Estimates:
        """Values and advantages of all nodes. progress: how much of the run is over, 0 to 1."""
        nodes, config = rollout.nodes, self.config
        mean, spread = self.scale.moments()
        n = len(rollout)
        value = torch.zeros_like(nodes.potential)
        self.critic.eval()
        with torch.no_grad(), self.hardware.precision():
            boards = [
                self.critic.boards(board, team)
                for board, team in zip(
                    *(torch.split(column, _CHUNK) for column in (nodes.board, nodes.team)), strict=True
                )
            ]
            code = torch.cat([code for code, _ in boards])
            columns = (nodes.board_of, nodes.crop, nodes.scalars)
            chunks = zip(*(torch.split(column, _CHUNK) for column in columns), strict=True)
            of_dragons = [self.critic.dragons(code, *chunk) for chunk in chunks]
        value[nodes.valued] = torch.cat([team_value for _, team_value in boards]).float()
        dragons = torch.cat(of_dragons).float()
        value[:n] = dragons[:n]
        value[nodes.opened] = dragons[n:]
        value = value * spread + mean
        value[-1] = 0.0  # the end of a match, where potential and reward are settled
        potential = nodes.potential * between(config.shaping, progress)
        reward = nodes.reward.clone()
        reward[:n] += self._own(rollout, progress)
        advantage = advantages(
            value,
            potential,
            reward,
            nodes.successor,
            nodes.tick,
            gamma=between(config.gamma, progress),
            lam=between(config.lam, progress),
        )
        return Estimates(value=value, advantage=advantage)

    def _own(self, rollout: Rollout, progress: float) -> Tensor:
        """What decisions are paid beside the result: float32 [n]."""
        config, nodes, n = self.config, rollout.nodes, len(rollout)
        length = torch.zeros_like(nodes.potential)  # 0 where a life does not go on
        own = nodes.scalars[:, DRAGON_LENGTH].float()
        length[:n], length[nodes.opened] = own[:n], own[n:]
        after = length[nodes.successor[:n]]
        gained = after - own[:n] + unpack(rollout.action).size
        gained[own[:n] >= EXACT_LENGTHS] = 0.0  # a split of coarse lengths would look like a gain
        pay = between(config.alive, progress) + between(config.growth, progress) * gained
        return torch.where(after > 0, pay, 0.0)

    def update(self, rollout: Rollout, estimates: Estimates, progress: float) -> dict[str, float]:
        """Train on a rollout. Returns what there is to tell of it; raises SparringError where a number is no number."""
        config, n = self.config, len(rollout)
        target = estimates.target
        if not target.isfinite().all():
            raise SparringError(self._diagnosis("a value or an advantage"))
        told = {
            "explained_variance": explained_variance(estimates.value[:n], target[:n]),
            "value": float(estimates.value[:n].mean()),
            "advantage_spread": float(estimates.advantage[:n].std(correction=0)),
        }
        self.scale.update(target[rollout.nodes.successor >= 0], (self.critic.value, self.critic.team_value))
        self._set_lr(progress)
        batches = self.batches(rollout, estimates)
        sums: dict[str, float] = {}
        steps, drift = 0, 0.0
        epochs = (batches.shuffled(self.seed, self.updates, epoch) for epoch in range(config.epochs))
        for batch in chain.from_iterable(epochs):
            losses = self._descend(batch, between(config.entropy, progress), drift)
            drift += _DRIFT_RATE * (losses["kl"] - drift)
            if drift > config.target_kl:
                break
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0.0) + loss
            steps += 1
        self.updates += 1
        return {**told, **{name: total / steps for name, total in sums.items()}, "steps": float(steps)}

    def batches(self, rollout: Rollout, estimates: Estimates) -> Batches:
        """The rollout's minibatches, with targets in the critic's units."""
        mean, spread = self.scale.moments()
        advantage, target = estimates.advantage[: len(rollout)], (estimates.target - mean) / spread
        return Batches(rollout, advantage, target, self.config)

    def state(self) -> dict[str, Any]:
        return {
            **{name: network.state_dict() for name, network in self._networks.items()},
            "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
            "scale": self.scale.state(),
            "updates": self.updates,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        if ("auxiliary" in state) != (self.auxiliary is not None):
            raise SparringError(
                f"ppo.auxiliary = {self.config.auxiliary}: the checkpoint has "
                f"{'auxiliary heads: give a weight above 0' if self.auxiliary is None else 'none: give 0'}"
            )
        for name, network in self._networks.items():
            network.load_state_dict(state[name])
        for optimiser, saved in zip(self._optimisers, state["optimisers"], strict=True):
            load_moments(optimiser, saved)
        self.scale.load_state(state["scale"])
        self.updates = state["updates"]

    def _descend(self, batch: Batch, entropy_weight: float, drift: float) -> dict[str, float]:
        """One step of both optimisers, none if the policy has already moved too far; drift: how far it was."""
        config = self.config
        self.teacher.train()
        self.critic.train()
        with self.hardware.precision():
            tree, _, balance = self.teacher.sequence(batch.inputs, batch.mask, batch.lengths, batch.memory)
            now = tree.evaluate(batch.action)
        log_ratio = now.log_prob.sum(dim=1) - batch.log_prob
        ratio = log_ratio.exp()
        with torch.no_grad():
            kl = float((ratio - 1.0 - log_ratio).mean())
            clipped = float(((ratio - 1.0).abs() > config.clip).float().mean())
        if drift + _DRIFT_RATE * (kl - drift) > config.target_kl:
            return {"kl": kl}
        surrogate = torch.minimum(
            ratio * batch.advantage, ratio.clamp(1.0 - config.clip, 1.0 + config.clip) * batch.advantage
        )
        entropy = now.entropy.mean(dim=0)
        actor_loss = config.balance * balance - surrogate.mean() - entropy_weight * entropy.sum()
        asked: dict[str, Tensor] = {}
        with self.hardware.precision():
            if self.auxiliary is not None:
                assert batch.targets is not None
                asked = self.auxiliary.losses(tree.features.index_select(0, batch.asked), batch.targets)
                actor_loss = actor_loss + config.auxiliary * torch.stack(list(asked.values())).sum()
            code, team_value = self.critic.boards(batch.board, batch.team)
            value = self.critic.dragons(code, batch.board_of, batch.crop, batch.scalars)
        value_loss = nn.functional.mse_loss(value.float(), batch.target)
        team_loss = nn.functional.mse_loss(team_value.float(), batch.team_target)
        losses = (actor_loss, config.value_weight * (value_loss + team_loss))
        norms = []
        for loss, parameters, optimiser in zip(losses, self._parameters, self._optimisers, strict=True):
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
            if not norm.isfinite():  # before clipping, which spreads it to every layer
                raise SparringError(self._diagnosis("a gradient"))
            norms.append(norm)
        # Both are known to be sound before either network changes.
        for norm, parameters, optimiser in zip(norms, self._parameters, self._optimisers, strict=True):
            nn.utils.clip_grads_with_norm_(parameters, config.clip_norm, norm)
            optimiser.step()
        entropies = {
            f"entropy_{part}": float(part_entropy) for part, part_entropy in zip(PARTS, entropy.detach(), strict=True)
        }
        return {
            "kl": kl,
            "clipped": clipped,
            "policy_loss": -float(surrogate.detach().mean()),
            "value_loss": float(value_loss.detach()),
            "team_value_loss": float(team_loss.detach()),
            "balance": float(balance.detach()),
            **entropies,
            **{f"auxiliary_{name}": float(loss.detach()) for name, loss in asked.items()},
        }

    def _diagnosis(self, what: str) -> str:
        return f"update {self.updates}: {not_finite(self._networks, what)}; continue from it with a smaller ppo.lr"

    def _set_lr(self, progress: float) -> None:
        config = self.config
        cosine = config.lr_end + (1.0 - config.lr_end) * 0.5 * (1.0 + math.cos(math.pi * min(progress, 1.0)))
        warm = min(1.0, (self.updates + 1) / (config.warmup + 1))
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = config.lr * cosine * warm


def not_finite(networks: Mapping[str, nn.Module], what: str) -> str:
    """Which layer it was when `what` is no number: one whose weights are none, or else the one that is nearest to the
    loss, since gradients carry what is wrong with them from there to all layers before."""
    named = [
        (f"{network}.{name}", parameter)
        for network, module in networks.items()
        for name, parameter in module.named_parameters()
    ]
    faults = [f"the weights of {name} are" for name, parameter in named if not parameter.isfinite().all()]
    faults += [
        f"the gradient of {name} is"
        for name, parameter in reversed(named)
        if parameter.grad is not None and not parameter.grad.isfinite().all()
    ]
    return f"{faults[0] if faults else what + ' is'} not finite: the last checkpoint is whole"


def between(ends: tuple[float, float], progress: float) -> float:
    """From the first to the second as progress goes from 0 to 1."""
    return ends[0] + (ends[1] - ends[0]) * min(max(progress, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some blocks of a rollout: r decisions in s stretches, with b boards; `targets` belong to the rows `asked`."""

    inputs: Tensor
    mask: Tensor
    lengths: Tensor
    memory: Tensor
    action: Tensor
    log_prob: Tensor
    advantage: Tensor
    crop: Tensor
    scalars: Tensor
    board_of: Tensor
    target: Tensor
    board: Tensor
    team: Tensor
    team_target: Tensor
    asked: Tensor
    targets: AuxiliaryTargets | None


class Batches:
    """Cuts a rollout into minibatches of whole blocks."""

    def __init__(self, rollout: Rollout, advantage: Tensor, target: Tensor, config: PPOConfig) -> None:
        self._rollout, self._config, self._target = rollout, config, target
        spread = advantage.std(correction=0).clamp_min(1e-8)
        self._advantage = (advantage - advantage.mean()) / spread
        self._log_prob = rollout.log_prob.sum(dim=1)
        self._starts, self._lengths = rollout.stretches(config.stretch)
        self._sizes = torch.bincount(rollout.block).cpu()
        self._blocks = self._sizes.nonzero().view(-1)

    def shuffled(self, seed: int, update: int, epoch: int) -> Iterator[Batch]:
        """All decisions once; the order depends on the three numbers alone."""
        generator = torch.Generator().manual_seed(_core.mix64(_core.mix64(seed) ^ (update * 64 + epoch)) >> 1)
        chosen: list[int] = []
        rows = 0
        for block in self._blocks[torch.randperm(len(self._blocks), generator=generator)].tolist():
            chosen.append(block)
            rows += int(self._sizes[block])
            if rows >= self._config.minibatch:
                yield self._batch(chosen, epoch)
                chosen, rows = [], 0
        if chosen:
            yield self._batch(chosen, epoch)

    def _batch(self, blocks: list[int], epoch: int) -> Batch:
        rollout, nodes = self._rollout, self._rollout.nodes
        wanted = torch.tensor(blocks, device=rollout.block.device)
        rows = torch.isin(rollout.block, wanted).nonzero().view(-1)
        starts = torch.isin(rollout.block[self._starts], wanted).nonzero().view(-1)
        rounds = len(nodes.valued) - int((nodes.successor[nodes.valued] < 0).sum())
        boards = torch.isin(nodes.block[:rounds], wanted).nonzero().view(-1)
        place = torch.full_like(nodes.block, -1)
        place[boards] = torch.arange(len(boards), device=boards.device)
        inputs, crop = rollout.inputs.index_select(0, rows), nodes.crop.index_select(0, rows)
        answers, asked = None, (rollout.round[rows] % ASK_EVERY == epoch % ASK_EVERY).nonzero().view(-1)
        if self._config.auxiliary > 0:
            of = rows[asked]
            team, dragon = rollout.block[of] % 2, rollout.dragon[of]
            answers = targets(of, inputs[asked], crop[asked], team, dragon, rollout.future)
        return Batch(
            inputs=inputs,
            mask=rollout.mask.index_select(0, rows),
            lengths=self._lengths[starts],
            memory=rollout.memory.index_select(0, self._starts[starts]),
            action=rollout.action[rows],
            log_prob=self._log_prob[rows],
            advantage=self._advantage[rows],
            crop=crop,
            scalars=nodes.scalars.index_select(0, rows),
            board_of=place[nodes.board_of[rows]],
            target=self._target[rows],
            board=nodes.board.index_select(0, boards),
            team=nodes.team.index_select(0, boards),
            team_target=self._target[nodes.valued[boards]],
            asked=asked,
            targets=answers,
        )
