"""TD3, the guess of the other's move, and opponents with a pace of their own."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from test_ddpg import TINY, Recorder, same, trained
from tiny_runs import TINY as RUN
from tiny_runs import advance, fingerprint, training
from torch import Tensor, nn
from toy_games import Follow, Shuffled

import sparring
from sparring.errors import SparringError
from sparring.games.tennis import Tennis
from sparring.learn.against import Against, AgainstConfig, OneSide
from sparring.learn.ddpg import DDPG, STREAM_REPLAY, STREAM_SMOOTH
from sparring.learn.noise import counted_normals


def against(steps: int = 60, config: Any = TINY, **settings: Any) -> Against:
    learner = Against(Tennis(lanes=4, seed=3), config, AgainstConfig(**settings), seed=5)
    for _ in range(steps):
        learner.step()
    return learner


def moved(before: dict[str, Tensor], network: nn.Module) -> bool:
    return not same(before, network.state_dict())


def test_a_td3_update_is_the_papers_update() -> None:
    """Fujimoto et al. 2018, algorithm 1, written out with .backward(): every second update moves actor and targets."""
    config = replace(TINY, td3=True, tau=0.1, td3_noise=0.4, td3_noise_clip=0.3, logit_penalty=0.03)
    learner = trained(config=config)
    assert learner.updates % 2 == 0
    for actor_too in (False, True):
        learner.actor.train()
        names = ("actor", "critic", "actor_target", "critic_target")
        actor, critic, actor_target, critic_target = (copy.deepcopy(getattr(learner, name)) for name in names)
        adams = []
        for source, network, lr, decay in (
            (learner.actor_optimiser, actor, config.actor_lr, 0.0),
            (learner.critic_optimiser, critic, config.critic_lr, config.critic_weight_decay),
        ):
            adam = torch.optim.Adam(network.parameters(), lr=lr, weight_decay=decay)
            saved = copy.deepcopy(source.state_dict())
            adam.load_state_dict({**saved, "param_groups": adam.state_dict()["param_groups"]})
            adams.append(adam)
        batch = learner.replay.sample(32, seed=5, stream=STREAM_REPLAY, counter=learner.updates)
        noise = 0.4 * counted_normals(learner.updates, 32, 2, seed=5, stream=STREAM_SMOOTH)
        assert noise.abs().max() > 0.3
        with torch.no_grad():
            next_action = (actor_target(batch["next_obs"]) + noise.clamp(-0.3, 0.3)).clamp(-1, 1)
            first, second = (each(batch["next_obs"], next_action) for each in critic_target.critics)
            target = batch["reward"] + batch["discount"] * torch.minimum(first, second)
        losses = [nn.functional.mse_loss(each(batch["obs"], batch["action"]), target) for each in critic.critics]
        (sum(losses) / 2).backward()
        nn.utils.clip_grad_norm_(critic.parameters(), config.clip_norm)
        adams[1].step()
        if actor_too:
            logits = actor.logits(batch["obs"])
            gain = critic.critics[0](batch["obs"], torch.tanh(logits)).mean() - 0.03 * logits.pow(2).mean()
            (-gain).backward()
            nn.utils.clip_grad_norm_(actor.parameters(), config.clip_norm)
            adams[0].step()
            for online, slow in ((actor, actor_target), (critic, critic_target)):
                for name, tensor in online.state_dict().items():
                    if tensor.is_floating_point():
                        slow.state_dict()[name].copy_(0.9 * slow.state_dict()[name] + 0.1 * tensor)
        learner._update()
        for name, expected in zip(names, (actor, critic, actor_target, critic_target), strict=True):
            for key, tensor in expected.state_dict().items():
                if tensor.is_floating_point() and "running" not in key:
                    torch.testing.assert_close(getattr(learner, name).state_dict()[key], tensor, rtol=1e-3, atol=1e-5)


def test_the_critics_of_td3_start_apart() -> None:
    critics = DDPG(Tennis(), replace(TINY, td3=True), seed=0).critic.critics
    assert not torch.equal(critics[0].trunk[0].weight, critics[1].trunk[0].weight)


def test_what_is_guessed_is_the_other_rackets_move_and_the_guess_gets_better() -> None:
    config = replace(TINY, predict=1.0, n_step=1, learn_from=200, burst=4, actor_lr=1e-2)
    game = Recorder(Shuffled(Tennis(lanes=4, seed=3)))
    learner = trained(game, config, steps=20)
    assert learner.updates == 0
    own, other = learner.replay.rows(0, 160)["action"].view(20, 4, 2, 4).split(2, dim=3)  # by lane and agent
    assert torch.equal(own, other.flip(2))
    assert not torch.equal(own, other)

    def error() -> float:
        batch = learner.replay.rows(0, 160)
        with torch.no_grad():
            learner.actor.eval()
            guess = torch.tanh(learner.predictor(learner.actor.trunk(batch["obs"])))  # type: ignore[misc]
        return float((guess - batch["action"][:, 2:]).square().mean())

    before = error()
    for _ in range(200):
        learner._update()
    assert error() < 0.5 * before


def test_guessing_needs_two_agents_that_act_at_once() -> None:
    with pytest.raises(SparringError, match=r"ddpg.predict = 0.1: follow has 1 agents; it needs two"):
        DDPG(Follow(), replace(TINY, predict=0.1), seed=0)
    with pytest.raises(
        SparringError, match=r"ddpg.predict: the other side.s moves are only known where against.opponent"
    ):
        against(0, replace(TINY, predict=0.1), opponent="frozen")


def test_the_learner_plays_one_racket_and_remembers_only_that() -> None:
    seen: list[Tensor] = []

    def still(obs: Tensor) -> Tensor:
        seen.append(obs)
        return torch.full((len(obs), 2), 0.5)

    court = Recorder(Tennis(lanes=4, seed=3))
    game = OneSide(court, still)
    rows = game.decisions()
    assert rows.lane.tolist() == [0, 1, 2, 3]
    assert rows.team.tolist() == [0, 1, 0, 1]
    whole = court.decisions()
    outcome = game.act(torch.full((4, 2), -0.25))
    plain = Tennis(lanes=4, seed=3)
    actions = torch.where((whole.team == whole.lane % 2).unsqueeze(1), -0.25, 0.5).repeat(1, 2)
    plain.act(actions)
    assert torch.equal(plain.decisions().obs, court.decisions().obs)
    assert torch.equal(seen[0], whole.obs[whole.team != whole.lane % 2])
    assert torch.equal(outcome.reward, court.outcomes[0].reward)

    learner = against(50, replace(TINY, n_step=1, learn_from=2000), opponent="frozen")
    # One row a lane and step, and what they earned is what their racket was paid.
    assert learner.replay.rows_written == 4 * 50
    with pytest.raises(SparringError, match=r"against.opponent: follow has 1 teams; an opponent needs a game of two"):
        OneSide(Follow(), still)


def test_a_frozen_opponent_never_changes_and_a_following_one_goes_its_share_of_the_way() -> None:
    frozen = against(opponent="frozen")
    first = DDPG(Tennis(lanes=4, seed=3), TINY, seed=5)
    assert frozen.updates > 20
    assert same(frozen.opponent.state_dict(), first.actor_target.state_dict())
    assert moved(first.actor_target.state_dict(), frozen.actor_target)

    following = against(opponent="following", follow=0.1)
    before = copy.deepcopy(following.opponent.state_dict())
    following._update()
    for name, tensor in following.opponent.state_dict().items():
        if tensor.is_floating_point():
            target = following.actor_target.state_dict()[name]
            torch.testing.assert_close(tensor, before[name] + 0.1 * (target - before[name]))
    itself = against(opponent="following", follow=1.0)
    for name, tensor in itself.opponent.state_dict().items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, itself.actor_target.state_dict()[name])


def test_the_past_is_kept_as_it_was() -> None:
    learner = against(opponent="following", follow=0.5, keep_every=8)
    assert [updates for updates, _ in learner.past] == list(range(0, learner.updates + 1, 8))
    assert not same(learner.past[0][1], learner.past[1][1])
    assert same(learner.past[0][1], DDPG(Tennis(), TINY, seed=5).actor_target.state_dict())


def test_a_ladder_is_climbed_when_the_score_has_risen_or_time_is_up() -> None:
    learner = against(0, opponent="ladder", gain=0.2, patience=300)

    def play(matches: int, score: float) -> int:
        row = sparring.learn.matches.MatchRow(  # type: ignore[attr-defined]
            match=0, lane=0, length=1, score=(score, 0.0), truncated=False, at=0, updates=0
        )
        for _ in range(matches):
            learner._climb([row])
        return learner.rungs

    assert play(99, 0.3) == 0
    nn.init.constant_(learner.actor_target.head.bias, 0.5)
    assert play(1, 0.3) == 1  # 0.3 is 0.2 above the first rung's 0
    assert same(learner.opponent.state_dict(), learner.actor_target.state_dict())
    nn.init.constant_(learner.actor_target.head.bias, 0.25)
    assert play(299, 0.49) == 1
    assert not same(learner.opponent.state_dict(), learner.actor_target.state_dict())
    assert play(1, 0.49) == 2  # 300 matches are over
    assert play(100, 0.7) == 3  # 0.21 above


@pytest.mark.parametrize(
    "settings",
    [{"opponent": "following", "follow": 0.2, "keep_every": 2}, {"opponent": "ladder", "patience": 100}],
    ids=["following", "ladder"],
)
def test_a_run_against_an_opponent_resumes_bit_for_bit(tmp_path: Path, settings: dict[str, Any]) -> None:
    recipe = replace(RUN, against=AgainstConfig(**settings), ddpg=replace(RUN.ddpg, td3=True, learn_from=4))
    whole = training(tmp_path / "whole", recipe=recipe)
    advance(whole, 72)
    parts = training(tmp_path / "parts", recipe=recipe)
    advance(parts, 30)
    parts.save()
    parts.close()
    parts = training(tmp_path / "parts", recipe=recipe)
    advance(parts, 72)
    assert fingerprint(parts) == fingerprint(whole)
    whole.close()
    parts.close()


def test_both_sides_start_from_the_run_that_is_named(tmp_path: Path) -> None:
    silent = Console(quiet=True)
    sparring.train(RUN, run="start", console=silent)
    start = sparring.load("start").actor.state_dict()
    recipe = replace(RUN, against=AgainstConfig(opponent="frozen", run="start"))
    run = training(tmp_path / "run", recipe=recipe)
    assert isinstance(run.learner, Against)
    assert same(run.learner.opponent.state_dict(), start)
    assert same(run.learner.actor_target.state_dict(), start)
    run.close()
    for changes, line in (
        ({"run": "nobody"}, "no run nobody"),
        ({"opponent": "itself"}, 'against.run = "start": must be empty where against.opponent is "itself"'),
    ):
        with pytest.raises(SparringError, match=line):
            sparring.train(replace(recipe, against=replace(recipe.against, **changes)), run="other", console=silent)
    wide = replace(recipe, ddpg=replace(recipe.ddpg, critic_hidden=(9,)))
    with pytest.raises(SparringError, match=r'against.run = "start": .*critic.trunk.0.weight is \[8, 26\] in'):
        sparring.train(wide, run="wide", console=silent)
