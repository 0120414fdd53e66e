"""DDPG: every step checked against what it claims to do, and a task it must learn."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from toy_games import Follow, Rounds, Shuffled

from sparring.errors import SparringError
from sparring.games.api import Box, Discrete, Game, Outcome, RewardWrapper, Wrapper
from sparring.games.tennis import Tennis
from sparring.learn.ddpg import DDPG, STREAM_REPLAY, DDPGConfig
from sparring.learn.dqn import DQN, DQNConfig
from sparring.learn.maddpg import MADDPG, MADDPGConfig
from sparring.policies.mlp import Actor, Critic

NETS = ("actor", "critic", "q", "actors", "critics")
TINY = DDPGConfig(
    actor_hidden=(16, 16),
    actor_normalised=1,
    critic_hidden=(16, 16),
    critic_normalised=1,
    buffer=2000,
    batch=32,
    update_every=4,
    burst=2,
    learn_from=64,
    n_step=3,
    noise_sigma=0.3,
    noise_sigma_low=0.1,
)


def trained(game: Game | None = None, config: DDPGConfig = TINY, steps: int = 60) -> DDPG:
    learner = DDPG(game or Tennis(lanes=4, seed=3), config, seed=5)
    for _ in range(steps):
        learner.step()
    return learner


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def test_published_networks_have_their_published_sizes() -> None:
    config, generator = DDPGConfig(), torch.Generator()
    actor = Actor(24, 2, hidden=config.actor_hidden, normalised=config.actor_normalised, generator=generator)
    critic = Critic(24, 2, hidden=config.critic_hidden, normalised=config.critic_normalised, generator=generator)
    assert sum(p.numel() for p in actor.parameters()) == 106_370
    assert sum(p.numel() for p in critic.parameters()) == 73_473


def test_an_update_is_the_papers_update() -> None:
    """Algorithm 1 written out again with .backward(), separate clipping and the plain Adam."""
    config = replace(TINY, clip_norm=0.01, critic_weight_decay=1e-2, logit_penalty=0.03, tau=0.1)
    learner = trained(config=config)
    learner.actor.train()
    copies = copy.deepcopy((learner.actor, learner.critic, learner.actor_target, learner.critic_target))
    actor, critic, actor_target, critic_target = copies
    adam_actor = torch.optim.Adam(actor.parameters(), lr=config.actor_lr)
    adam_critic = torch.optim.Adam(critic.parameters(), lr=config.critic_lr, weight_decay=config.critic_weight_decay)
    for optimiser, source in ((adam_actor, learner.actor_optimiser), (adam_critic, learner.critic_optimiser)):
        saved = copy.deepcopy(source.state_dict())
        saved["param_groups"] = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict(saved)
    batch = learner.replay.sample(32, seed=5, stream=STREAM_REPLAY, counter=learner.updates)

    with torch.no_grad():
        following = critic_target(batch["next_obs"], actor_target(batch["next_obs"]))
    target = batch["reward"] + batch["discount"] * following
    loss = (critic(batch["obs"], batch["action"]) - target).pow(2).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(critic.parameters(), config.clip_norm)
    adam_critic.step()
    logits = actor.logits(batch["obs"])
    gain = critic(batch["obs"], torch.tanh(logits)).mean() - config.logit_penalty * logits.pow(2).mean()
    (-gain).backward()
    nn.utils.clip_grad_norm_(actor.parameters(), config.clip_norm)
    adam_actor.step()
    for online, slow in ((actor, actor_target), (critic, critic_target)):
        moved = slow.state_dict()
        for name, tensor in online.state_dict().items():
            if tensor.is_floating_point():
                moved[name].copy_((1 - config.tau) * moved[name] + config.tau * tensor)

    learner._update()
    networks = (learner.actor, learner.critic, learner.actor_target, learner.critic_target)
    for ours, written_out in zip(networks, copies, strict=True):
        for name, tensor in written_out.state_dict().items():
            if tensor.is_floating_point():
                torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)


def test_batch_norm_statistics_reach_the_target_networks() -> None:
    learner = trained()
    before = learner.critic_target.state_dict()["trunk.2.running_mean"].clone()
    learner._update()
    online = learner.critic.state_dict()["trunk.2.running_mean"]
    after = learner.critic_target.state_dict()["trunk.2.running_mean"]
    assert not torch.equal(before, online)
    torch.testing.assert_close(after, before + TINY.tau * (online - before))


def test_acting_on_one_racket_equals_acting_on_a_batch() -> None:
    learner = trained()
    obs = learner.game.decisions().obs
    policy = learner.policy()
    together = policy.act(obs)
    for row in range(len(obs)):
        torch.testing.assert_close(policy.act(obs[row : row + 1])[0], together[row], rtol=1e-5, atol=1e-6)


def test_a_policy_does_not_alias_the_learner() -> None:
    learner = trained()
    policy = learner.policy()
    before = copy.deepcopy(policy.actor.state_dict())
    for _ in range(100):
        learner._update()
    assert same(before, policy.actor.state_dict())
    assert not same(before, learner.actor.state_dict())


def transitions(learner: DDPG) -> list[list[float]]:
    columns = learner.replay.columns()
    held = [column[: len(learner.replay)].reshape(len(learner.replay), -1) for column in columns.values()]
    return sorted(torch.cat(held, dim=1).tolist())


def test_rows_meet_by_id_whatever_their_order() -> None:
    config = replace(TINY, learn_from=2000)
    plain = trained(Tennis(lanes=4, seed=3), config)
    shuffled = trained(Shuffled(Tennis(lanes=4, seed=3)), config)
    assert len(plain.replay) > 400
    torch.testing.assert_close(torch.tensor(transitions(shuffled)), torch.tensor(transitions(plain)))


class Recorder(Wrapper):
    """Keeps every outcome."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.outcomes: list[Outcome] = []

    def act(self, actions: Tensor) -> Outcome:
        self.outcomes.append(self.game.act(actions))
        return self.outcomes[-1]


def test_the_last_observation_of_a_match_is_stored_not_the_next_matchs_first() -> None:
    game = Recorder(Tennis(lanes=4, seed=3))
    learner = trained(game, replace(TINY, n_step=1, learn_from=2000))
    columns = learner.replay.columns()
    terminal = columns["discount"][: len(learner.replay)] == 0
    stored = columns["next_obs"][: len(learner.replay)][terminal]
    last = torch.cat([outcome.last.obs for outcome in game.outcomes])
    assert len(last) >= 16
    assert sorted(stored.tolist()) == sorted(last.tolist())
    # The first sight of a match has 16 zeros, a last one has none.
    assert (stored[:, :2] != 0).all()


class AlwaysTruncated(Wrapper):
    def act(self, actions: Tensor) -> Outcome:
        outcome = self.game.act(actions)
        return replace(outcome, truncated=torch.ones_like(outcome.truncated))


def test_a_match_cut_by_the_time_limit_is_not_terminal() -> None:
    learner = trained(AlwaysTruncated(Tennis(lanes=4, seed=3)))
    discount = learner.replay.columns()["discount"][: len(learner.replay)]
    gammas = torch.tensor([TINY.gamma**k for k in (1, 2, 3)])
    assert torch.isclose(discount.unsqueeze(1), gammas).any(1).all()
    assert torch.isclose(discount, gammas[0]).any()


def test_the_same_seed_gives_the_same_weights_and_another_one_does_not() -> None:
    first, again = trained(), trained()
    assert same(first.state(), again.state())
    other = DDPG(Tennis(lanes=4, seed=3), TINY, seed=6)
    assert not same(other.actor.state_dict(), DDPG(Tennis(lanes=4, seed=3), TINY, seed=5).actor.state_dict())


def test_a_restored_learner_continues_bit_for_bit() -> None:
    learner = trained()
    state = copy.deepcopy(learner.state())
    held = learner.replay.rows(0, learner.replay.rows_written)
    again = DDPG(Tennis(lanes=4, seed=99), TINY, seed=5)
    again.load_state(state)
    again.replay.restore(0, held)
    for _ in range(40):
        assert learner.step() == again.step()
    assert same(learner.state(), again.state())


def test_updates_follow_the_schedule() -> None:
    learner = DDPG(Tennis(lanes=4, seed=3), replace(TINY, n_step=1, update_every=8, burst=3, learn_from=100), seed=0)
    for step in range(1, 41):
        learner.step()
        # 8 rows a step: 100 rows are there from step 13 on, the first burst is due at step 16.
        assert learner.updates == 3 * max(0, step // 8 - 1)


def test_noise_is_graded_over_lanes_and_warmup_is_uniform() -> None:
    learner = DDPG(Tennis(lanes=5, seed=0), replace(TINY, noise_sigma=0.4, noise_sigma_low=0.025), seed=0)
    torch.testing.assert_close(learner.noise.sigma, torch.tensor([0.025, 0.05, 0.1, 0.2, 0.4]))
    learner = DDPG(Tennis(lanes=200, seed=0), replace(TINY, warmup=4000, learn_from=2000, n_step=1), seed=0)
    for _ in range(4):
        learner.step()
    actions = learner.replay.columns()["action"][:1600].flatten()
    assert actions.min() < -0.99
    assert actions.max() > 0.99
    # Variance of a uniform variable on [-1, 1] is 1/3; 3,200 draws have a standard error of 0.006.
    assert abs(actions.var().item() - 1 / 3) < 0.025


def test_stored_actions_are_clipped_unless_the_published_order_is_asked_for() -> None:
    loud = replace(TINY, noise_sigma=3.0, noise_sigma_low=3.0, learn_from=2000)
    clipped = trained(config=loud).replay.columns()["action"]
    assert clipped.abs().max() == 1
    unclipped = trained(config=replace(loud, noise_before_clip=False)).replay.columns()["action"]
    assert unclipped.abs().max() > 1


def test_rewards_of_the_users_own_are_learnt_from_and_scores_stay_the_games() -> None:
    game = RewardWrapper(Tennis(lanes=4, seed=3), lambda rows, actions, outcome: torch.full((8,), 7.0))
    learner = DDPG(game, replace(TINY, n_step=1), seed=0)
    matches = [match for _ in range(60) for match in learner.step()]
    assert (learner.replay.columns()["reward"][: len(learner.replay)] == 7).all()
    assert matches
    assert all(abs(score) < 1 for match in matches for score in match.score)


def test_it_learns_to_follow() -> None:
    """Random play loses 4 x 2/3 a match, standing still 4 x 1/3; following exactly loses nothing."""
    config = replace(
        TINY, n_step=1, gamma=0.5, actor_lr=3e-3, critic_lr=3e-3, tau=0.05, update_every=1, burst=1, noise_shared=False
    )
    learner = DDPG(Follow(lanes=8), config, seed=0)
    for _ in range(700):
        learner.step()
    obs = torch.linspace(-0.8, 0.8, 33).unsqueeze(1)
    assert (learner.policy().act(obs) - obs).abs().max() < 0.25


def test_episodes_of_several_matches_add_up_their_rewards() -> None:
    """The published loop: a lane is reset after 3 rallies, or after 100 decisions even within one."""
    game = Recorder(Tennis(lanes=2, seed=3))
    learner = DDPG(game, replace(TINY, episode_matches=3, episode_decisions=100, learn_from=2000), seed=0)
    episodes, paid, start = [], torch.zeros(2, 2), [0, 0]
    for step in range(1, 600):
        learner.step()
        paid[game.outcomes[-1].lane, game.outcomes[-1].agent] += game.outcomes[-1].reward
        for row in learner.episodes_ended:
            assert row.matches == 3 or row.length == 100
            assert row.length == step - start[row.lane]
            assert row.score == pytest.approx(paid[row.lane].tolist(), abs=1e-5)
            paid[row.lane], start[row.lane] = 0.0, step
            episodes.append(row)
    assert [row.episode for row in episodes] == list(range(len(episodes)))
    assert len(episodes) > 10


@pytest.mark.parametrize(
    ("make", "config"),
    [
        (DDPG, replace(TINY, actor_normalised=0, critic_normalised=0)),
        (DQN, DQNConfig(levels=(3,))),
        (MADDPG, MADDPGConfig()),
    ],
)
def test_a_loss_that_is_no_number_stops_the_run_before_any_weight_moves(make: Any, config: Any) -> None:
    class Broken(Follow):
        def act(self, actions: Tensor) -> Outcome:
            outcome = super().act(actions)
            return replace(outcome, reward=outcome.reward + torch.nan * (outcome.lane == 2))

    made = make(Broken(), replace(config, buffer=2000, batch=32, update_every=4, burst=2, learn_from=32), seed=5)
    before = copy.deepcopy({name: part for name, part in made.state().items() if "optimiser" in name or name in NETS})
    with pytest.raises(SparringError, match="update 0: a gradient is not finite: the last checkpoint is whole; "):
        for _ in range(100):
            made.step()
    assert made.decisions > 0 and same({name: made.state()[name] for name in before}, before)


def test_discrete_actions_are_refused() -> None:
    game = Follow()
    game.action = Discrete(n=3)  # type: ignore[assignment]
    with pytest.raises(SparringError, match="follow has discrete actions"):
        DDPG(game, TINY, seed=0)


@pytest.mark.parametrize("episode_matches", [1, 3])
def test_a_lane_that_does_not_restart_itself_is_restarted_after_every_match(episode_matches: int) -> None:
    game = Rounds(lanes=8)
    matches = trained(game, replace(TINY, episode_matches=episode_matches), steps=40).matches
    assert matches == 8 * 10
    assert game.restarts == matches


class ManyActions(Follow):
    """Follow with six actions, of which the first counts."""

    action = Box(shape=(6,), low=-1.0, high=1.0)

    def act(self, actions: Tensor) -> Outcome:
        return super().act(actions[:, :1])


def test_any_number_of_actions_has_noise_and_warmup_of_its_own() -> None:
    loud = replace(TINY, noise_sigma=1.0, noise_sigma_low=1.0, learn_from=2000, n_step=1, noise_shared=False)
    for config in (loud, replace(loud, warmup=1000)):
        actions = trained(ManyActions(lanes=8), config).replay.columns()["action"][:480]
        assert (torch.corrcoef(actions.T) - torch.eye(6)).abs().max() < 0.35
        assert actions.std(dim=0).min() > 0.3


def test_games_that_it_cannot_learn_are_refused() -> None:
    """Foreign bounds would never be reached."""
    for action, observation, line in (
        (Box(shape=(1,), low=0.0, high=1.0), Follow.observation, r"actions in \[0, 1\]; DDPG needs \[-1, 1\]"),
        (Box(shape=(1, 2), low=-1.0, high=1.0), Follow.observation, r"actions of shape \[1, 2\]"),
        (Follow.action, Box(shape=(3, 3)), r"observations of shape \[3, 3\]"),
    ):
        game = Follow()
        game.action, game.observation = action, observation
        with pytest.raises(SparringError, match=line):
            DDPG(game, TINY, seed=0)
