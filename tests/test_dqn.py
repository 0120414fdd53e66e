"""DQN, and what all learners with a replay make of a game: every step checked against what it claims to do."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from test_ddpg import same
from tiny_runs import TINY as TINY_RUN
from tiny_runs import advance, fingerprint, training
from torch import nn
from toy_games import Clock, Follow
from walk_game import END, Walk

import sparring
from sparring.errors import SparringError
from sparring.games.api import Box, Discrete, Game
from sparring.games.tennis import Tennis
from sparring.learn.dqn import DQN, STREAM_REPLAY, DQNConfig, action_grid

TINY = DQNConfig(
    hidden=(16, 16), buffer=2000, batch=32, update_every=4, burst=2, learn_from=64, n_step=3, levels=(3, 2),
    epsilon_decisions=400, lr=1e-2,
)  # fmt: skip
RUN = replace(
    TINY_RUN,
    algorithm="dqn",
    dqn=replace(TINY, hidden=(8,), buffer=32, batch=4, learn_from=8, burst=1, episode_matches=2),
)


def trained(game: Game | None = None, config: DQNConfig = TINY, steps: int = 60) -> DQN:
    learner = DQN(game or Tennis(lanes=4, seed=3), config, seed=5)
    for _ in range(steps):
        learner.step()
    return learner


@pytest.mark.parametrize("double", [True, False])
def test_an_update_is_the_papers_update(double: bool) -> None:
    """Written out again, row by row for the targets, with .backward() and the plain Adam; with masks, too."""
    config = replace(TINY, double=double, tau=0.1, clip_norm=0.05)
    learner = trained(Walk(lanes=4, seed=3), config)
    q, target = copy.deepcopy(learner.q), copy.deepcopy(learner.q_target)
    adam = torch.optim.Adam(q.parameters(), lr=config.lr)
    saved = copy.deepcopy(learner.optimiser.state_dict())
    adam.load_state_dict({**saved, "param_groups": adam.state_dict()["param_groups"]})
    batch = learner.replay.sample(32, seed=5, stream=STREAM_REPLAY, counter=learner.updates)
    assert not batch["next_mask"].all()
    goals = []
    for row in range(32):
        legal = batch["next_mask"][row].nonzero().view(-1).tolist()
        with torch.no_grad():
            picking, rating = (q if double else target)(batch["next_obs"][row]), target(batch["next_obs"][row])
        best = max(legal, key=lambda choice: float(picking[choice]))
        goals.append(float(batch["reward"][row] + batch["discount"][row] * rating[best]))
    value = torch.stack([q(batch["obs"][row])[int(batch["action"][row, 0])] for row in range(32)])
    error = (value - torch.tensor(goals)).abs()
    torch.where(error < 1, error.square() / 2, error - 0.5).mean().backward()
    nn.utils.clip_grad_norm_(q.parameters(), config.clip_norm)
    adam.step()
    learner._update()
    for name, tensor in q.state_dict().items():
        torch.testing.assert_close(learner.q.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)
        slow = 0.9 * target.state_dict()[name] + 0.1 * tensor
        torch.testing.assert_close(learner.q_target.state_dict()[name], slow, rtol=1e-4, atol=1e-6)


def test_choices_are_the_grid_of_the_games_numbers() -> None:
    assert action_grid(Tennis(), (3, 2)).tolist() == [[-1, -1], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 1]]
    assert action_grid(Tennis(), (2,)).tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    for levels, line in (
        ((3, 2, 2), r"dqn.levels = \[3, 2, 2\]: tennis has 2 numbers in an action: give one level or 2"),
        ((100,), r"dqn.levels = \[100\]: that makes 10,000 choices, at most 4,096"),
    ):
        with pytest.raises(SparringError, match=line):
            action_grid(Tennis(), levels)
    endless = Follow()
    endless.action = Box(shape=(1,))
    with pytest.raises(SparringError, match="dqn: follow has actions that are neither choices nor numbers within"):
        action_grid(endless, (2,))


def test_random_choices_follow_the_schedule_and_are_legal_and_even() -> None:
    game = Walk(lanes=400, seed=1)
    learner = DQN(game, replace(TINY, epsilon=1.0, epsilon_end=0.25, epsilon_decisions=2000), seed=0)
    rows = game.decisions()
    rows.mask[:, 0] = torch.arange(800) % 2 == 0
    _, choice = learner.explore(rows)
    counts = [np.bincount(choice[even::2, 0].long().numpy(), minlength=3) for even in (0, 1)]
    assert counts[0].min() > 100  # of 400 over three: 133 on average, with a standard deviation of 9.4
    assert counts[1][0] == 0 and counts[1].min(initial=400, where=[False, True, True]) > 150
    for decisions, epsilon in ((0, 1.0), (1000, 0.625), (2000, 0.25), (9999, 0.25)):
        learner.decisions = decisions
        assert learner.epsilon == pytest.approx(epsilon)
    best = learner.policy()(rows.obs, rows.mask)
    _, choice = learner.explore(rows)
    # A random one of the two or three legal ones is the best one in a half or a third of the cases.
    assert 0.6 < (choice[:, 0] == best).float().mean() < 0.95
    assert rows.mask[torch.arange(800), best].all()


def test_it_learns_to_follow_on_a_grid() -> None:
    config = replace(TINY, levels=(5,), n_step=1, gamma=0.5, tau=0.05, update_every=1, burst=1, epsilon_decisions=2000)
    policy = trained(Follow(lanes=8), config, steps=500).policy()
    obs = torch.tensor([[-0.9], [-0.45], [0.05], [0.5], [0.95]])
    assert policy(obs).view(-1).tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]


def test_walkers_that_leave_the_line_are_at_an_end_and_those_out_of_time_are_not() -> None:
    learner = trained(Walk(lanes=8, seed=1), replace(TINY, n_step=1), steps=100)
    columns = {name: column[: len(learner.replay)] for name, column in learner.replay.columns().items()}
    outside = (columns["next_obs"][:, :2].abs() >= END).any(dim=1)
    assert outside.any() and not outside.all()
    assert torch.equal(columns["discount"] == 0, outside)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_agents_in_turns_and_deaths_and_births_lose_nothing_and_mix_nothing(seed: int, n_step: int) -> None:
    """Every decision of every life is in the replay once, with what it earned until the next one or the end."""
    game = Clock(seed=seed)
    learner = trained(game, replace(TINY, n_step=n_step, gamma=0.5, learn_from=2000), steps=22 * 7)
    expected = []
    for life in game.lives:
        seen, paid = life["seen"], life["paid"]
        for start in range(len(seen)):
            stop = min(start + n_step, len(seen))
            goes_on = stop < len(seen)
            reward = sum(0.5**k * paid[start + k] for k in range(stop - start))
            discount = 0.5 ** (stop - start) if goes_on or life["end"] == "cut" else 0.0
            expected.append((seen[start], reward, discount, seen[stop] if goes_on else life["after"] or 0.0))
    assert {life["end"] for life in game.lives if life["seen"]} == {"died", "over", "cut"}
    columns = learner.replay.columns()
    kept = [
        columns[name][: len(learner.replay)].view(-1).tolist() for name in ("obs", "reward", "discount", "next_obs")
    ]
    assert sorted(zip(*kept, strict=True)) == sorted(expected)


def test_a_restored_learner_continues_bit_for_bit() -> None:
    learner = trained(Walk(lanes=4, seed=3))
    state, held = copy.deepcopy(learner.state()), learner.replay.rows(0, learner.replay.rows_written)
    again = DQN(Walk(lanes=4, seed=99), TINY, seed=5)
    again.load_state(state)
    again.replay.restore(0, held)
    for _ in range(40):
        assert learner.step() == again.step()
    assert same(learner.state(), again.state())


def test_a_run_resumes_bit_for_bit_and_is_evaluated_and_played(tmp_path: Path) -> None:
    whole = training(tmp_path / "whole", recipe=RUN)
    advance(whole, 72)
    whole.save()
    whole.close()
    parts = training(tmp_path / "parts", recipe=RUN)
    advance(parts, 30)
    parts.save()
    advance(parts, 44)  # lost
    parts.close()
    parts = training(tmp_path / "parts", recipe=RUN)
    advance(parts, 72)
    assert parts.learner.updates > 3
    assert fingerprint(parts) == fingerprint(whole)
    parts.close()
    policy = sparring.load(tmp_path / "whole")
    obs = torch.randn(7, 24)
    assert torch.equal(policy.act(obs), whole.learner.policy()(obs))
    assert len(policy.act(obs.numpy()[0])) == 2
    assert sparring.evaluate(tmp_path / "whole", matches=2, episodes=0).matches == 2
    assert sparring.play(tmp_path / "whole", out=tmp_path / "rally.gif", seconds=0.2).decisions > 0


def test_a_game_with_choices_trains_and_plays_legally(tmp_path: Path) -> None:
    recipe = replace(RUN, lanes=4, dqn=replace(RUN.dqn, buffer=200))
    sparring.train(recipe, run=tmp_path / "walk", game=Walk, decisions=200, console=Console(quiet=True))
    policy = sparring.load(tmp_path / "walk")
    rows = Walk(lanes=16, seed=7).decisions()
    rows.mask[:, 0], rows.mask[:, 1] = False, torch.arange(32) % 2 == 0
    choice = policy.act(rows)
    assert choice.dtype == torch.int64
    assert rows.mask[torch.arange(32), choice].all()
    found = sparring.evaluate(policy, matches=4, game=Walk)
    assert (found.game, found.matches) == ("walk", 4)


def test_ddpg_says_what_it_does_not_take() -> None:
    game = Walk(lanes=1, seed=0)
    assert isinstance(game.action, Discrete)
    with pytest.raises(SparringError, match="walk has discrete actions; DDPG needs continuous ones"):
        sparring.train(TINY_RUN, run="no", game=Walk, console=Console(quiet=True))
