"""PPO with shared networks: advantages against a recomputation of every life, draws, updates, resumes, learning."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from test_ddpg import same
from tiny_runs import TINY as TINY_RUN
from tiny_runs import advance, fingerprint, training
from torch import Tensor, nn
from toy_games import Clock, Follow, Shuffled
from walk_game import Walk

import sparring
from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Game, Outcome
from sparring.games.tennis import Tennis
from sparring.learn.ippo import IPPO, IPPOConfig
from sparring.policies.mlp import LikeliestChoice


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


TINY = IPPOConfig(hidden=(16, 16), steps=8, epochs=2, minibatch=16, gamma=0.9, lam=0.8)
RUN = replace(TINY_RUN, algorithm="ippo", ippo=replace(TINY, hidden=(8,), steps=4))


def learner(game: Game, config: IPPOConfig = TINY, decisions: int = 10_000) -> IPPO:
    return IPPO(game, config, seed=5, decisions=decisions)


class Watched(IPPO):
    """Keeps its rollouts and what they were worth, as they were before each update; learns nothing where told so."""

    learns = True

    def __init__(self, game: Game, config: IPPOConfig) -> None:
        super().__init__(game, config, seed=5, decisions=10_000)
        self.seen: list[tuple[dict[str, Tensor], Tensor, Tensor]] = []

    def _learn(self, rollout: Any, progress: float) -> None:
        value, advantage = self.advantages(rollout)
        self.seen.append((dict(rollout), value, advantage))
        if self.learns:
            super()._learn(rollout, progress)


@pytest.mark.parametrize("seed", range(4))
def test_advantages_are_those_of_every_life_through_births_deaths_turns_and_limits(seed: int) -> None:
    """Recomputed life by life from what the game itself kept; the critic rates an observation by a known number."""
    game = Clock(seed=seed)
    watched = Watched(game, replace(TINY, steps=35))
    watched.learns = False
    watched.critic.forward = lambda obs: torch.sin(obs[:, 0])  # type: ignore[method-assign]
    for _ in range(3):
        watched.step()
    gamma, lam = TINY.gamma, TINY.lam
    rollouts = [{float(obs): number for number, obs in enumerate(seen[0]["obs"][:, 0])} for seen in watched.seen]
    trained = 0
    for life in game.lives:
        numbers, paid = life["seen"], life["paid"]
        following = [*numbers[1:], life["after"]]
        for start, number in enumerate(numbers):
            here = [rollout for rollout in rollouts if number in rollout]
            if not here:  # still waits for what follows
                assert start == len(numbers) - 1
                continue
            assert len(here) == 1
            advantage, weight = 0.0, 1.0
            for place in range(start, len(numbers)):
                if numbers[place] not in here[0]:  # trains in the next update
                    break
                known = place < len(numbers) - 1 or life["end"] in (None, "cut")
                after = gamma * math.sin(following[place]) if known and following[place] is not None else 0.0
                if place == len(numbers) - 1 and life["end"] is None:
                    after = gamma * math.sin(game.shown[next(a for a, each in game.living.items() if each is life)])
                advantage += weight * (paid[place] + after - math.sin(numbers[place]))
                weight *= gamma * lam
            got = watched.seen[rollouts.index(here[0])][2][here[0][number]]
            assert float(got) == pytest.approx(advantage, abs=1e-4)
            trained += 1
    assert {life["end"] for life in game.lives if life["seen"]} >= {"died", "over", "cut"}
    assert trained == sum(map(len, rollouts)) > 60


def test_the_first_minibatch_meets_the_policy_that_played() -> None:
    for game in (Walk(lanes=4, seed=1), Tennis(lanes=4, seed=1)):
        config = replace(TINY, epochs=1, minibatch=10_000)
        played = learner(game, config)
        for _ in range(4):
            played.step()
            told = played.losses()
            assert abs(told["kl"]) < 1e-6 and told["clipped"] == 0.0
            assert told["policy_loss"] == pytest.approx(0.0, abs=1e-5), "normalised advantages have mean 0"


@pytest.mark.parametrize("discrete", [True, False])
def test_an_update_is_the_papers_update(discrete: bool) -> None:
    """One minibatch written out again, row by row, with .backward() and the plain Adam; values in units of rewards."""
    config = replace(TINY, epochs=1, minibatch=10_000, entropy=0.05, clip_norm=0.1, lr=0.01)
    watched = Watched(Walk(lanes=4, seed=3) if discrete else Tennis(lanes=4, seed=3), config)
    for _ in range(3):
        watched.step()
    actor, critic = copy.deepcopy(watched.actor), copy.deepcopy(watched.critic)
    log_std = watched.log_std.detach().clone().requires_grad_()
    optimisers = copy.deepcopy([each.state_dict() for each in watched._optimisers.values()])
    watched.step()
    batch, value, advantage = watched.seen[-1]
    # The value's scale moved, and the critic's head with it, before the losses were taken.
    mean, spread = watched.scale.moments()
    target = (value + advantage - mean) / spread
    advantage = (advantage - advantage.mean()) / advantage.std(correction=0)
    losses = []
    for row in range(len(value)):
        outputs = actor.logits(batch["obs"][row])
        if discrete:
            legal = batch["mask"][row].nonzero().view(-1)
            log = torch.log_softmax(outputs[legal], dim=0)
            log_prob, entropy = log[(legal == batch["action"][row]).nonzero()[0, 0]], -(log.exp() * log).sum()
        else:
            normal = torch.distributions.Normal(torch.tanh(outputs), log_std.exp())
            log_prob, entropy = normal.log_prob(batch["action"][row]).sum(), normal.entropy().sum()
        ratio = (log_prob - batch["log_prob"][row]).exp()
        assert 1 - config.clip < float(ratio.detach()) < 1 + config.clip
        losses.append(-ratio * advantage[row] - config.entropy * entropy)
    parameters = [*actor.parameters(), *([] if discrete else [log_std])]
    adam = torch.optim.Adam(parameters, lr=config.lr)
    rate = config.lr * (1 - 3 * 8 * 4 / 10_000)
    adam.load_state_dict({**optimisers[0], "param_groups": adam.state_dict()["param_groups"]})
    adam.param_groups[0]["lr"] = rate
    torch.stack(losses).mean().backward()
    nn.utils.clip_grad_norm_(parameters, config.clip_norm)
    adam.step()
    for name, tensor in watched.actor.state_dict().items():
        torch.testing.assert_close(tensor, actor.state_dict()[name], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(watched.log_std, log_std, rtol=1e-4, atol=1e-6)
    error = ((value - mean) / spread - target).square().mean()
    assert watched.losses()["value_loss"] == pytest.approx(float(error), rel=1e-3)
    assert not same(critic.state_dict(), watched.critic.state_dict())


def test_choices_are_legal_and_as_frequent_as_the_softmax_says() -> None:
    game = Walk(lanes=2000, seed=1)
    played = learner(game)
    with torch.no_grad():
        played.actor.head.weight.zero_()
        played.actor.head.bias.copy_(torch.tensor([2.0, 0.0, 1.0]).log() + 40.0)
        played.actor.head.bias[1] = 40.0
    rows = game.decisions()
    rows.mask[:, 0] = torch.arange(4000) % 2 == 0
    columns = played.explore(rows)
    assert rows.mask[torch.arange(4000), columns["action"]].all()
    counts = [torch.bincount(columns["action"][odd::2], minlength=3) / 2000 for odd in (0, 1)]
    torch.testing.assert_close(counts[0], torch.tensor([0.5, 0.25, 0.25]), rtol=0.0, atol=0.05)
    torch.testing.assert_close(counts[1], torch.tensor([0.0, 0.5, 0.5]), rtol=0.0, atol=0.05)
    torch.testing.assert_close(
        columns["log_prob"][:2].exp(), counts[0].new_tensor([(0.5, 0.25, 0.25)[columns["action"][0]], 0.5])
    )


def test_no_update_meets_a_forbidden_choice_and_losses_stay_finite() -> None:
    watched = Watched(Walk(lanes=4, seed=3), replace(TINY, lr=0.3, epochs=8))
    for _ in range(10):
        watched.step()
    masks = torch.cat([batch["mask"] for batch, _, _ in watched.seen])
    choices = torch.cat([batch["action"] for batch, _, _ in watched.seen])
    assert not masks.all()
    assert masks.gather(1, choices.unsqueeze(1)).all()
    assert all(map(math.isfinite, watched.losses().values()))


@pytest.mark.parametrize("game", [Tennis, Walk])
def test_the_order_of_rows_changes_nothing(game: type[Any]) -> None:
    plain, shuffled = learner(game(lanes=4, seed=3)), learner(Shuffled(game(lanes=4, seed=3)))
    for _ in range(6):
        assert plain.step() == shuffled.step()
    for name, tensor in plain.actor.state_dict().items():
        torch.testing.assert_close(shuffled.actor.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)


def test_a_restored_learner_continues_bit_for_bit() -> None:
    """In turns, with decisions that wait at the rollout's end."""
    from pettingzoo.classic import tictactoe_v3

    from sparring.games.pettingzoo import pettingzoo

    made = pettingzoo(tictactoe_v3.env)
    whole = learner(made(lanes=3, seed=3), replace(TINY, steps=7))
    for _ in range(5):
        whole.step()
    assert whole.transitions.state()["waits"].any()
    state = copy.deepcopy(whole.state())
    again = learner(made(lanes=3, seed=99), replace(TINY, steps=7))
    again.load_state(state)
    for _ in range(5):
        assert whole.step() == again.step()
    assert same(whole.state(), again.state())


def test_a_run_resumes_bit_for_bit_and_is_evaluated_and_played(tmp_path: Path) -> None:
    whole = training(tmp_path / "whole", recipe=RUN)
    advance(whole, 72)
    whole.save()
    whole.close()
    parts = training(tmp_path / "parts", recipe=RUN)
    advance(parts, 32)
    parts.save()
    advance(parts, 56)  # lost
    parts.close()
    parts = training(tmp_path / "parts", recipe=RUN)
    advance(parts, 72)
    assert parts.learner.updates == 9
    assert fingerprint(parts) == fingerprint(whole)
    parts.close()
    policy = sparring.load(tmp_path / "whole")
    obs = torch.randn(7, 24)
    assert torch.equal(policy.act(obs), whole.learner.policy()(obs))
    assert policy.act(obs).abs().max() <= 1
    assert sparring.evaluate(tmp_path / "whole", matches=2, episodes=0).matches == 2
    assert sparring.play(tmp_path / "whole", out=tmp_path / "rally.gif", seconds=0.2).decisions > 0


def test_a_game_with_choices_trains_and_plays_legally(tmp_path: Path) -> None:
    sparring.train(RUN, run=tmp_path / "walk", game=Walk, decisions=200, console=Console(quiet=True))
    policy = sparring.load(tmp_path / "walk")
    assert isinstance(policy.actor, LikeliestChoice)
    rows = Walk(lanes=16, seed=7).decisions()
    rows.mask[:, 0], rows.mask[:, 1] = False, torch.arange(32) % 2 == 0
    choice = policy.act(rows)
    assert choice.dtype == torch.int64
    assert rows.mask[torch.arange(32), choice].all()
    assert sparring.evaluate(policy, matches=4, game=Walk).matches == 4


def test_it_learns_to_follow_with_numbers_whatever_rewards_are_scaled_by() -> None:
    class Dear(Follow):
        def act(self, actions: Tensor) -> Outcome:
            outcome = super().act(actions)
            return replace(outcome, reward=outcome.reward * 1000 - 500)

    config = replace(TINY, hidden=(32,), steps=16, epochs=4, minibatch=64, gamma=0.5, lr=5e-3, std=0.4, entropy=0.0)
    played = learner(Dear(lanes=16), config, decisions=16 * 16 * 60)
    for _ in range(60):
        played.step()
    obs = torch.tensor([[-0.8], [-0.4], [0.0], [0.4], [0.8]])
    torch.testing.assert_close(played.policy()(obs), obs, rtol=0.0, atol=0.1)
    assert played.losses()["explained_variance"] < 0.9, "rewards of random observations cannot be foretold"
    assert played.losses()["value"] < -100, "in units of rewards"


class Scissors:
    """Rock, paper, scissors: two agents, one decision each; only the even mixture cannot be exploited."""

    name = "scissors"
    agents = teams = 2
    observation = Box(shape=(1,))
    action = Walk.action
    restarts_itself = True

    def __init__(self, lanes: int = 1, seed: int = 0) -> None:
        self.lanes, self.match = lanes, 0

    def decisions(self) -> Decisions:
        lane, agent = torch.arange(self.lanes).repeat_interleave(2), torch.arange(2).repeat(self.lanes)
        zero = torch.zeros_like(lane)
        return Decisions(
            lane=lane, match=zero + self.match, team=agent, agent=agent, decision=zero, obs=torch.ones(len(lane), 1)
        )

    def act(self, actions: Tensor) -> Outcome:
        rows = self.decisions()
        mine, other = actions, actions.view(-1, 2).flip(1).view(-1)
        reward = torch.tensor([0.0, 1.0, -1.0])[(mine - other) % 3]
        self.match += 1
        lanes = torch.arange(self.lanes)
        return Outcome(
            lane=rows.lane,
            agent=rows.agent,
            reward=reward,
            ended=lanes,
            truncated=torch.zeros(self.lanes, dtype=torch.bool),
            score=reward.view(-1, 2),
            length=torch.ones_like(lanes),
            last=rows,
        )

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        pass

    def state(self) -> dict[str, Tensor]:
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        pass


def test_in_rock_paper_scissors_self_play_spirals_into_the_even_mixture() -> None:
    config = replace(TINY, hidden=(8,), steps=4, epochs=2, minibatch=256, lr=5e-3, entropy=0.5)
    played = learner(Scissors(lanes=64), config, decisions=4 * 64 * 100)
    with torch.no_grad():
        played.actor.head.bias.copy_(torch.tensor([1.5, 0.0, 0.0]))
    mixtures = []
    for _ in range(100):
        played.step()
        mixtures.append(played.distribution(torch.ones(1, 1), None).probs[0].detach())
    assert mixtures[0][0] > 0.65 and mixtures[10][1] > 0.5, "paper beats much rock"
    torch.testing.assert_close(mixtures[-1], torch.full((3,), 1 / 3), rtol=0.0, atol=0.06)


def test_the_step_size_falls_along_a_line() -> None:
    played = learner(Follow(lanes=4), replace(TINY, lr_end=0.5), decisions=2 * 8 * 4)
    rates = []
    for _ in range(4):
        played.step()
        rates += [group["lr"] for each in played._optimisers.values() for group in each.param_groups]
    assert rates == pytest.approx([rate for rate in (1e-3, 7.5e-4, 5e-4, 5e-4) for _ in range(2)])


def test_what_it_does_not_take_is_said() -> None:
    wide = Follow()
    wide.action = Box(shape=(1,), low=0.0, high=2.0)
    with pytest.raises(SparringError, match=r"ippo: follow acts by Box.*: PPO needs choices, or numbers in \[-1, 1\]"):
        learner(wide)
    blind = learner(Follow())
    blind.critic.head.weight.data.fill_(torch.nan)
    with pytest.raises(SparringError, match=r"^update 0: the weights of critic.head.weight are not finite: .*ippo.lr$"):
        blind.step()
