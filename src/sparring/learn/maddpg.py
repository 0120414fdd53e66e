"""Multi-agent deep deterministic policy gradients (Lowe et al. 2017, arXiv 1706.02275).

Every agent has an actor that sees its own observation, and a critic that sees all observations and all actions: given
what everybody does, the world an agent learns in no longer moves with the others' learning. Only training needs the
critics. Agents in `local` have a critic of their own observation and action instead: they learn by DDPG, alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Discrete, Game, Outcome, agent_spaces
from sparring.learn.descent import load_moments
from sparring.learn.noise import OrnsteinUhlenbeck, row_normals, row_uniforms
from sparring.learn.offpolicy import OffPolicy, OffPolicyConfig, averaged_tensors
from sparring.learn.replay import Replay
from sparring.learn.returns import NStepReturns
from sparring.policies.mlp import Actor, Critic
from sparring.policies.team import Actors, action_size, played_policies
from sparring.settings import Range

# Streams of the counter-based generator, one for each thing that is sampled.
STREAM_NOISE, STREAM_REPLAY, STREAM_WARMUP, STREAM_CHOICE, STREAM_RELAXED, STREAM_NEXT = 1, 2, 3, 4, 5, 6
_LEAST_UNIFORM = 1e-10
"""A uniform of 0 would be a Gumbel number of minus infinity."""


@dataclass(frozen=True, kw_only=True)
class MADDPGConfig(OffPolicyConfig):
    """Hyper-parameters of MADDPG. The defaults are those of the paper's code, with fewer decisions between updates."""

    hidden: tuple[Annotated[int, Range(low=1)], ...] = (64, 64)
    """Widths of the hidden layers of actors and critics."""
    local: tuple[Annotated[int, Range(low=0)], ...] = ()
    """Agents, by id, whose critic sees only their own observation and action: DDPG."""
    policies: Annotated[int, Range(low=1, high=64)] = 1
    """Policies of each agent, an ensemble: one is drawn for each match and learns from the matches it played. Update
    number u trains policy u modulo this, so more policies cost no more time and learn more slowly."""
    infer: bool = False
    """Agents do not know the others' policies: each learns to guess their actions, and its critic's target uses the
    guesses."""
    infer_entropy: Annotated[float, Range(low=0)] = 1e-3
    """Weight of the guesses' entropy, where the others choose."""
    actor_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-2
    """Adam's step size for the actors, and for the guesses of `infer`."""
    critic_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-2
    """Adam's step size for the critics."""
    logit_penalty: Annotated[float, Range(low=0)] = 1e-3
    """Weight of the squared outputs of the actors, before tanh or choice, in their loss."""
    climb: Literal["own", "team"] = "own"
    """Whose value an actor climbs. own: its own critic's, as in the paper. team: the mean of those of its team, which
    for agents that share a goal is steadier; reward that an agent gains at a mate's cost counts for nothing. Critics of
    agents in `local` do not see what others do, and are climbed by nobody else."""
    choice_gradient: Literal["expected", "gumbel"] = "expected"
    """How agents that choose learn from their critic. expected: it rates each choice, and each counts as likely as it
    is; choices times the critic's work. gumbel: the paper's Gumbel-softmax (Jang et al. 2017), one choice drawn and the
    critic's slope there, which tells little of the choices not drawn."""
    temperature: Annotated[float, Range(low=0, low_open=True)] = 1.0
    """Of the Gumbel-softmax. Lower: nearer to real choices, and steeper."""
    random_choices: Annotated[float, Range(low=0, high=1)] = 0.0
    """Share of uniformly random choices in training, of agents that choose. More: what fell out of use is still tried
    and heard; the others learn against more noise."""
    warmup: Annotated[int, Range(low=0)] = 0
    """Decisions of lanes with uniformly random actions before the actors are asked."""
    noise_theta: Annotated[float, Range(low=0, high=1)] = 1.0
    """Agents that give numbers: how fast the Ornstein-Uhlenbeck noise returns to zero; 1: Gaussian, each anew."""
    noise_sigma: Annotated[float, Range(low=0)] = 0.2
    """Size of the noise's random step. Agents that choose explore by sampling from their softmax instead, and by
    `random_choices`."""

    buffer: Annotated[int, Range(low=1, high=100_000_000)] = 1_000_000
    """Joint transitions the replay holds; a lane's decision, of all its agents, is one."""
    batch: Annotated[int, Range(low=2, high=1_000_000)] = 1024
    """Joint transitions per update. Larger: steadier gradients, fewer updates a second."""
    gamma: Annotated[float, Range(low=0, high=1)] = 0.95
    """Discount per decision. Nearer 1: looks further ahead, learns slower."""
    tau: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-2
    """Share of the online networks that flows into the target networks at each update."""
    clip_norm: Annotated[float, Range(low=0, low_open=True)] = 0.5
    """Largest norm of a network's gradient."""
    update_every: Annotated[int, Range(low=1)] = 4
    """Decisions of each lane between bursts of updates."""
    burst: Annotated[int, Range(low=1)] = 1
    """Updates in a burst; each trains every agent."""
    learn_from: Annotated[int, Range(low=1)] = 1024
    """Joint transitions the replay must hold before the first burst; of an ensemble, each policy's share."""


class MADDPG(OffPolicy):
    """The learner. Call `step` again and again; save `state()` and the replay's rows to continue later.

    A joint transition puts the agents side by side, in the order of their ids: observations [o_0, o_1, ...] and actions
    [a_0, a_1, ...], each of its agent's own size, choices as one number each, 1 for the chosen. Who is not there (dead,
    or not yet born) is zeros, and learns nothing from the row. Central critics see [o_0, ..., a_0, ...].
    """

    config: MADDPGConfig
    loss_names = ("critic_loss", "actor_loss", "value")

    def __init__(self, game: Game, config: MADDPGConfig, *, seed: int, device: str = "cpu") -> None:
        self.spaces = agent_spaces(game)
        _refuse(game, config)
        observations = [space.observation for space in self.spaces]
        actions = [action_size(space) for space in self.spaces]
        self.obs_of, self.action_of = _slices(observations), _slices(actions)
        """Where each agent's observation and action are in a joint one."""
        super().__init__(game, config, actions=sum(actions), seed=seed, device=device)
        generator = torch.Generator().manual_seed(seed)
        assert isinstance(game.action, Box | Discrete)
        self.actors = Actors(
            self.spaces, game.action, hidden=config.hidden, policies=config.policies, generator=generator
        ).to(device)
        self.critics = nn.ModuleList(
            Critic(
                observations[agent] if agent in config.local else sum(observations),
                actions[agent] if agent in config.local else sum(actions),
                hidden=config.hidden,
                normalised=0,
                generator=generator,
            )
            for agent in range(game.agents)
        ).to(device)
        # guesses[i][j]: what agent i takes agent j's policy for.
        self.guesses = nn.ModuleList(
            nn.ModuleList(
                Actor(observations[other], actions[other], hidden=config.hidden, normalised=0, generator=generator)
                for other in range(game.agents)
            )
            for _ in range(game.agents if config.infer else 0)
        ).to(device)
        self._networks = {"actors": self.actors, "critics": self.critics, "guesses": self.guesses}
        self._targets = {name: copy.deepcopy(network) for name, network in self._networks.items()}
        self._online = [tensor for network in self._networks.values() for tensor in averaged_tensors(network)]
        self._target = [tensor for network in self._targets.values() for tensor in averaged_tensors(network)]
        self._optimisers: dict[str, torch.optim.Optimizer] = {}
        """By network, such as actor_0_1 (agent 0, policy 1), critic_0, guess_0_1 (of agent 0, at agent 1)."""
        for agent in range(game.agents):
            for policy in range(config.policies):
                self._optimise(f"actor_{agent}_{policy}", self.actors.member(agent, policy), config.actor_lr)
            self._optimise(f"critic_{agent}", self.critics[agent], config.critic_lr)
            for other in range(game.agents if config.infer else 0):
                self._optimise(f"guess_{agent}_{other}", self._guess(agent, other), config.actor_lr)
        self.noise = OrnsteinUhlenbeck(
            game.lanes,
            game.agents,
            max(actions),
            theta=config.noise_theta,
            sigma=torch.full((game.lanes,), config.noise_sigma),
            shared=False,
            seed=seed,
            stream=STREAM_NOISE,
        )
        self._present = torch.zeros(game.lanes, game.agents, dtype=torch.bool)  # who acts in each lane's last decision
        self._team = torch.full((game.agents,), -1)  # of each agent, -1 until it has acted

    def _optimise(self, name: str, network: nn.Module, lr: float) -> None:
        self._optimisers[name] = torch.optim.Adam(network.parameters(), lr=lr, fused=True)

    def _guess(self, agent: int, other: int) -> Actor:
        group = self.guesses[agent]
        assert isinstance(group, nn.ModuleList)
        guess = group[other]
        assert isinstance(guess, Actor)
        return guess

    def _make_stores(self, actions: int, choices: int) -> None:
        agents, capacity = self.game.agents, self.config.buffer
        obs = sum(space.observation for space in self.spaces)
        kinds = {"present": torch.bool, "next_present": torch.bool, "policy": torch.uint8}
        extra = {name: ((agents,), dtype) for name, dtype in kinds.items()}
        self.replay = Replay(capacity, obs, actions, rewards=agents, device=self.device, extra=extra)
        lanes, n_step, gamma = self.game.lanes, self.config.n_step, self.config.gamma
        self.returns = NStepReturns(lanes, n_step, gamma, obs=obs, actions=actions, rewards=agents)

    def explore(self, rows: Decisions) -> tuple[Tensor, Tensor]:
        """The actors' actions with noise, as the game takes them, and joint ones, float32 [lanes, actions]."""
        self._refuse_waiting(rows)
        config, warm = self.config, self.decisions < self.config.warmup
        policy = played_policies(rows, config.policies, seed=self.seed)
        choosing = any(isinstance(space.action, Discrete) for space in self.spaces)
        giving = any(isinstance(space.action, Box) for space in self.spaces)
        size = self.noise.x.shape[2]
        gumbel = _gumbel(row_uniforms(rows, size, seed=self.seed, stream=STREAM_CHOICE)) if choosing else None
        noise = None
        if giving:
            normal = row_normals(rows, size, seed=self.seed, stream=STREAM_WARMUP) if warm else None
            noise = self.noise.sample(rows) if normal is None else torch.erf(normal / 2**0.5)  # uniform in [-1, 1]
        joint = torch.zeros(self.game.lanes, self.action_of[-1].stop)
        answers = []
        for agent, space in enumerate(self.spaces):
            own = (rows.agent == agent).nonzero().view(-1)
            obs = rows.obs[own, : space.observation].float().to(self.device)
            with torch.no_grad():
                outputs = self.actors.outputs(agent, obs, policy[own]).cpu()
            outputs = torch.zeros_like(outputs) if warm else outputs
            if isinstance(space.action, Discrete):
                assert gumbel is not None
                if config.random_choices:
                    share = config.random_choices
                    outputs = torch.log((1.0 - share) * torch.softmax(outputs, dim=1) + share / space.action.n)
                answer = self.actors.answer(agent, outputs + gumbel[own, : space.action.n])
            else:
                assert noise is not None
                answer = (torch.tanh(outputs) + noise[own, : outputs.shape[1]]).clamp(-1.0, 1.0)
            answers.append(answer)
            joint[rows.lane[own], self.action_of[agent]] = answer
        return self.actors.packed(rows.agent, answers), joint

    def _remember(self, rows: Decisions, action: Tensor, outcome: Outcome, following: Decisions, over: Tensor) -> None:
        """Store the joint transitions that are ready. Rows, rewards and what follows meet by id, not by place."""
        lanes, agents = self.game.lanes, self.game.agents
        present = self._there(rows)
        self._present = present
        self._team[rows.agent] = rows.team
        ended, truncated = torch.zeros(lanes, dtype=torch.bool), torch.zeros(lanes, dtype=torch.bool)
        ended[outcome.ended] = True
        truncated[outcome.ended] = outcome.truncated
        reward = torch.zeros(lanes, agents)
        reward.index_put_((outcome.lane, outcome.agent), outcome.reward * self.config.reward_scale, accumulate=True)
        # Where the match goes on, what comes next; where a limit cut it, what was seen then.
        going = following[~ended[following.lane]]
        cut = outcome.last[truncated[outcome.last.lane]]
        seen = [going, cut] if outcome.parted is None else [going, cut, outcome.parted]
        next_obs = sum(self._side_by_side(each) for each in seen)
        next_present = torch.stack([self._there(each) for each in seen]).any(dim=0)
        stays = self._there(going)
        assert isinstance(next_obs, Tensor)
        policy = torch.zeros(lanes, agents, dtype=torch.uint8)
        for each in (rows, going):  # the target asks who is born next, too
            policy[each.lane, each.agent] = played_policies(each, self.config.policies, seed=self.seed).to(torch.uint8)
        lane = present.any(dim=1).nonzero().view(-1)
        ready = self.returns.push(
            lane,
            obs=self._side_by_side(rows)[lane],
            action=action[lane],
            reward=reward[lane],
            next_obs=next_obs[lane],
            # Where a life begins or ends all is stored that waits, which so is always of the same agents.
            last=(ended | over | (stays != present).any(dim=1))[lane],
            terminal=~next_present[lane],
            present=present[lane],
            next_present=next_present[lane],
            policy=policy[lane],
        )
        self.replay.add(**ready)

    def _there(self, rows: Decisions) -> Tensor:
        """bool [lanes, agents]: who is in the rows."""
        there = torch.zeros(self.game.lanes, self.game.agents, dtype=torch.bool)
        there[rows.lane, rows.agent] = True
        return there

    def _side_by_side(self, rows: Decisions) -> Tensor:
        """float32 [lanes, all observations], zeros for agents that are not in the rows."""
        joint = torch.zeros(self.game.lanes, self.obs_of[-1].stop)
        for agent, space in enumerate(self.spaces):
            own = (rows.agent == agent).nonzero().view(-1)
            joint[rows.lane[own], self.obs_of[agent]] = rows.obs[own, : space.observation].float()
        return joint

    def _refuse_waiting(self, rows: Decisions) -> None:
        """Raises SparringError where an agent acts again that sat out, and for choices that are legal only at times."""
        back = (rows.decision > 0) & ~self._present[rows.lane, rows.agent]
        if back.any():
            row = int(back.nonzero()[0])
            raise SparringError(
                f"maddpg: {self.game.name}: agent {int(rows.agent[row])} of lane {int(rows.lane[row])} sat out a "
                "decision: MADDPG needs games in which all living agents act at every decision"
            )
        if rows.mask is None or not isinstance(self.game.action, Discrete):
            return
        own = torch.tensor([action_size(space) for space in self.spaces])[rows.agent]
        if (rows.mask.sum(dim=1) != own).any():
            raise SparringError(
                f"maddpg: {self.game.name} forbids choices at times: MADDPG needs games whose choices are always legal"
            )

    def critic_inputs(self, agent: int, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """What the agent's critic is shown of joint observations [n, all] and actions [n, all]."""
        if agent in self.config.local:
            return obs[:, self.obs_of[agent]], actions[:, self.action_of[agent]]
        return obs, actions

    def _update(self) -> None:
        """One step of every agent's critic and actor, and of the targets (Lowe et al. 2017, algorithm 1)."""
        config, number = self.config, self.updates % self.config.policies
        if config.infer:
            self._update_guesses()
        batch = following = None
        losses = []
        for agent in range(self.game.agents):
            if config.policies > 1 or batch is None:  # without ensembles all agents learn from the same rows
                batch = self._sample(agent, number)
                following = None
            if batch is None:
                continue
            if config.infer or following is None:
                following = self._next_actions(agent, batch)
            losses.append(self._update_agent(agent, number, batch, following))
        torch._foreach_lerp_(self._target, self._online, config.tau)
        self.updates += 1
        if losses:
            self._losses = torch.stack(losses).mean(dim=0)

    def _sample(self, agent: int, policy: int) -> dict[str, Tensor] | None:
        """Rows of the buffer, of an ensemble those of matches in which the agent played this policy; None: too few."""
        config, replay = self.config, self.replay
        if config.policies == 1:
            return replay.sample(config.batch, seed=self.seed, stream=STREAM_REPLAY, counter=self.updates)
        columns = replay.columns()
        played = columns["present"][: len(replay), agent] & (columns["policy"][: len(replay), agent] == policy)
        rows = played.nonzero().view(-1)
        if len(rows) * config.policies < config.learn_from:
            return None
        counter = self.updates * self.game.agents + agent
        pick = _core.integers(self.seed, STREAM_REPLAY, counter, config.batch, len(rows))
        index = rows[torch.from_numpy(pick)]
        return {name: column[index] for name, column in columns.items()}

    @torch.no_grad()
    def _next_actions(self, agent: int, batch: Mapping[str, Tensor]) -> Tensor:
        """float32 [n, all actions]: what the target actors, or this agent's guesses at them, do next.

        Choices are drawn, as they are in play: of a word that is not settled yet, the largest output would tell the
        critics that it is always the same.
        """
        actors, guesses = self._targets["actors"], self._targets["guesses"]
        assert isinstance(actors, Actors)
        joint = torch.zeros_like(batch["action"])
        for other in range(self.game.agents):
            obs = batch["next_obs"][:, self.obs_of[other]]
            if self.config.infer and other != agent:
                outputs = guesses[agent][other].logits(obs)  # type: ignore[index]
            else:
                outputs = actors.outputs(other, obs, batch["policy"][:, other])
            if isinstance(self.spaces[other].action, Discrete):
                outputs = outputs + self._update_gumbel(STREAM_NEXT, other, outputs)
            there = batch["next_present"][:, other].unsqueeze(1)
            joint[:, self.action_of[other]] = actors.answer(other, outputs) * there
        return joint

    def _update_agent(self, agent: int, policy: int, batch: Mapping[str, Tensor], following: Tensor) -> Tensor:
        """Critic loss, actor loss and mean value of one step of the agent's critic and of one of its actors."""
        config = self.config
        weight = batch["present"][:, agent].float()
        weight = weight / weight.sum().clamp(min=1.0)
        with torch.no_grad():
            next_value = self._targets["critics"][agent](*self.critic_inputs(agent, batch["next_obs"], following))  # type: ignore[index]
            target = batch["reward"][:, agent] + batch["discount"][:, agent] * next_value
        critic = self.critics[agent]
        value = critic(*self.critic_inputs(agent, batch["obs"], batch["action"]))
        critic_loss = (weight * (value - target).square()).sum()
        self._learn(f"critic_{agent}", critic_loss)

        actor = self.actors.member(agent, policy)
        outputs = actor.logits(batch["obs"][:, self.obs_of[agent]])
        worth = self._worth(agent, batch, outputs)
        penalty = outputs.square().mean(dim=1)
        actor_loss = (weight * (config.logit_penalty * penalty - worth)).sum()
        self._learn(f"actor_{agent}_{policy}", actor_loss)
        return torch.stack((critic_loss.detach(), actor_loss.detach(), (weight * value.detach()).sum()))

    def _worth(self, agent: int, batch: Mapping[str, Tensor], outputs: Tensor) -> Tensor:
        """float32 [n]: what the agent's actor answers with these outputs is worth, others doing as they did.

        Its gradient with respect to the outputs is what the actor climbs.
        """
        space, place, climbed = self.spaces[agent], self.action_of[agent], self._climbed(agent)
        there = batch["present"][:, climbed].float()
        share = there / there.sum(dim=1, keepdim=True).clamp(min=1.0)  # who is not there values nothing

        def value(own: Tensor, rows: Tensor | slice = slice(None)) -> Tensor:
            obs, played = batch["obs"][rows], batch["action"][rows]
            actions = torch.cat((played[:, : place.start], own, played[:, place.stop :]), dim=1)
            values = [self.critics[mate](*self.critic_inputs(mate, obs, actions)) for mate in climbed]
            return values[0] if len(climbed) == 1 else (share[rows] * torch.stack(values, dim=1)).sum(dim=1)

        if not isinstance(space.action, Discrete):
            return value(torch.tanh(outputs))
        if self.config.choice_gradient == "gumbel":
            noise = self._update_gumbel(STREAM_RELAXED, agent, outputs)
            soft = torch.softmax((outputs + noise) / self.config.temperature, dim=1)
            return value(self.actors.answer(agent, soft) + soft - soft.detach())
        rows, choices = outputs.shape
        with torch.no_grad():
            every = torch.eye(choices, device=outputs.device).repeat(rows, 1)
            again = torch.arange(rows, device=outputs.device).repeat_interleave(choices)
            values = value(every, again).view(rows, choices)
        return (torch.softmax(outputs, dim=1) * values).sum(dim=1)

    def _climbed(self, agent: int) -> list[int]:
        """The agents whose critics this agent's actor climbs."""
        if self.config.climb == "own" or agent in self.config.local:
            return [agent]
        mates: list[int] = (self._team == self._team[agent]).nonzero().view(-1).tolist()
        return [mate for mate in mates if mate not in self.config.local]

    def _update_gumbel(self, stream: int, agent: int, like: Tensor) -> Tensor:
        """Standard Gumbel numbers of the shape [n, size] of `like`, a function of seed, stream, update and agent."""
        n, size = like.shape
        counter, blocks = self.updates * self.game.agents + agent, -(-n * size // 4)
        counters = np.zeros((blocks, 4), dtype=np.int64)
        counters[:, 0] = np.arange(blocks)
        counters[:, 1], counters[:, 2] = counter & 0xFFFFFFFF, counter >> 32
        uniform = torch.from_numpy(_core.uniforms(self.seed, stream, counters).reshape(-1)[: n * size])
        return _gumbel(uniform.view(n, size)).to(like.device)

    def _update_guesses(self) -> None:
        """One step of every guess, from the latest rows: log-likelihood and entropy (Lowe et al. 2017, equation 7)."""
        stop = self.replay.rows_written
        batch = self.replay.rows(stop - min(self.config.batch, len(self.replay)), stop)
        for agent in range(self.game.agents):
            for other, space in enumerate(self.spaces):
                if other == agent:
                    continue
                guess = self._guess(agent, other)
                obs, action = batch["obs"][:, self.obs_of[other]], batch["action"][:, self.action_of[other]]
                outputs = guess.logits(obs.to(self.device))
                action = action.to(self.device)
                if isinstance(space.action, Discrete):
                    log = torch.log_softmax(outputs, dim=1)
                    error = -(action * log).sum(dim=1) + self.config.infer_entropy * (log.exp() * log).sum(dim=1)
                else:  # a normal distribution of fixed width: its entropy is fixed, too
                    error = (torch.tanh(outputs) - action).square().sum(dim=1)
                there = batch["present"][:, other].to(self.device)
                loss = (error * there).sum() / there.sum().clamp(min=1)
                self._learn(f"guess_{agent}_{other}", loss)

    def _learn(self, name: str, loss: Tensor) -> None:
        """One step down the loss, of that network alone."""
        optimiser = self._optimisers[name]
        self._descend(loss, optimiser.param_groups[0]["params"], optimiser)

    def policy(self) -> Actors:
        """The target actors as they are now, frozen: later training does not change them."""
        actors = self._targets["actors"]
        assert isinstance(actors, Actors)
        return copy.deepcopy(actors).eval().requires_grad_(False)

    def state(self) -> dict[str, Any]:
        """Everything but the replay's rows."""
        return {
            **{name: network.state_dict() for name, network in self._networks.items()},
            **{f"{name}_target": network.state_dict() for name, network in self._targets.items()},
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self._optimisers.items()},
            "noise": self.noise.x,
            "present": self._present,
            "team": self._team,
            # What the actors are made for: observation, action's size, whether it is a choice; and the game's choices.
            "spaces": [
                [space.observation, action_size(space), isinstance(space.action, Discrete)] for space in self.spaces
            ],
            "choices": self.game.action.n if isinstance(self.game.action, Discrete) else 0,
            **super().state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; the replay is restored apart, by `Replay.restore`."""
        for name, network in self._networks.items():
            network.load_state_dict(state[name])
            self._targets[name].load_state_dict(state[f"{name}_target"])
        for name, optimiser in self._optimisers.items():
            load_moments(optimiser, state["optimisers"][name])
        self.noise.x.copy_(state["noise"])
        self._present.copy_(state["present"])
        self._team.copy_(state["team"])
        super().load_state(state)


def _refuse(game: Game, config: MADDPGConfig) -> None:
    """Raises SparringError for what MADDPG cannot learn."""
    for agent, space in enumerate(agent_spaces(game)):
        action = space.action
        if isinstance(action, Discrete):
            continue
        if not isinstance(action, Box) or len(action.shape) != 1 or (action.low, action.high) != (-1.0, 1.0):
            raise SparringError(
                f"maddpg: {game.name}: agent {agent} acts by {action}: MADDPG needs choices, or numbers in [-1, 1] "
                "along one axis"
            )
    if len(game.observation.shape) != 1:
        raise SparringError(
            f"maddpg: {game.name} has observations of shape {list(game.observation.shape)}; MADDPG needs one axis: "
            "flatten them"
        )
    if beyond := [agent for agent in config.local if agent >= game.agents]:
        raise SparringError(
            f"maddpg.local = {list(config.local)}: {game.name} has agents 0 to {game.agents - 1}, no {beyond[0]}"
        )


def _slices(sizes: list[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _gumbel(uniform: Tensor) -> Tensor:
    """Standard Gumbel numbers from uniform ones in [0, 1): the largest of outputs plus these is a softmax's draw."""
    return -torch.log(-torch.log(uniform.clamp(_LEAST_UNIFORM, 1 - 1e-7)))
