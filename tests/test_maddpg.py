"""MADDPG: what its critics see, who learns from what, what is stored at ends, and that it can be continued."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import advance, fingerprint, training
from torch import Tensor
from toy_games import Shuffled
from toy_zoo import Meadow, Relay

import sparring
from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Discrete, Game, Outcome, Wrapper
from sparring.games.pettingzoo import PettingZoo, mpe
from sparring.games.tennis import Tennis
from sparring.learn.maddpg import MADDPG, MADDPGConfig
from sparring.runs import checkpoint
from sparring.runs.folder import Disk
from sparring.runs.recipe import MPEOptions, Recipe
from sparring.settings import to_toml

TINY = MADDPGConfig(hidden=(8, 8), buffer=64, batch=8, learn_from=8, update_every=2, actor_lr=1e-2, noise_sigma=0.3)
listener = partial(mpe, scenario="simple_speaker_listener_v4", max_cycles=5)
"""A speaker that sees 3 numbers and has 3 words, a listener that sees 11 and has 5 directions."""


class Recorder(Wrapper):
    """Keeps what went in and out."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)
        self.steps: list[tuple[Decisions, Tensor, Outcome]] = []

    def act(self, actions: Tensor) -> Outcome:
        rows = self.decisions()
        self.steps.append((rows, actions.clone(), self.game.act(actions)))
        return self.steps[-1][2]


def stepped(game: Game, config: MADDPGConfig = TINY, steps: int = 20, seed: int = 5) -> MADDPG:
    learner = MADDPG(game, config, seed=seed)
    for _ in range(steps):
        learner.step()
    return learner


def stored(learner: MADDPG) -> dict[str, Tensor]:
    return {name: column[: len(learner.replay)] for name, column in learner.replay.columns().items()}


def weights(learner: MADDPG) -> dict[str, Tensor]:
    return {
        f"{part}.{name}": tensor.clone()
        for part in ("actors", "critics", "guesses")
        for name, tensor in learner._networks[part].state_dict().items()
    }


def changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    """The networks of which something changed, such as actors.members.0.1 and critics.0."""
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    return {name.split(".trunk")[0].split(".head")[0] for name in moved}


def test_critics_see_all_observations_then_all_actions_in_the_order_of_agents() -> None:
    """Rebuilt from what the game showed and was given; the second agent's critic is local."""
    game = Recorder(listener(lanes=3, seed=1))
    learner = MADDPG(game, replace(TINY, local=(1,)), seed=5)
    learner.step()
    rows, actions, _ = game.steps[0]
    shown: list[Tensor] = []
    for critic in learner.critics:
        critic.trunk.register_forward_pre_hook(lambda _, inputs: shown.append(inputs[0]))
    batch = stored(learner)
    following = learner._next_actions(0, batch)
    for agent in (0, 1):
        learner._update_agent(agent, 0, batch, following)
    central, local = shown[0], shown[2]
    assert central.shape == (3, 3 + 11 + 3 + 5)
    assert local.shape == (3, 11 + 5)
    for lane in range(3):
        speaker, ear = rows.obs[2 * lane][:3], rows.obs[2 * lane + 1]
        word, way = (torch.eye(n)[actions[2 * lane + agent]] for agent, n in ((0, 3), (1, 5)))
        assert torch.equal(central[lane], torch.cat((speaker, ear, word, way)))
        assert torch.equal(local[lane], torch.cat((ear, way)))


def test_tennis_critics_see_52_numbers() -> None:
    learner = stepped(Tennis(lanes=2, seed=1), steps=1)
    assert [critic.trunk[0].in_features for critic in learner.critics] == [52, 52]


@pytest.mark.parametrize("changes", [{}, {"infer": True}, {"climb": "team"}])
def test_an_agents_step_moves_its_own_actor_and_critic_alone(changes: dict[str, Any]) -> None:
    config = replace(TINY, policies=2, learn_from=10**6, buffer=10**6, **changes)
    learner = stepped(listener(lanes=3, seed=1), config)
    batch = stored(learner)
    before = weights(learner)
    learner._update_agent(1, 1, batch, learner._next_actions(1, batch))
    assert changed(before, weights(learner)) == {"actors.members.1.1", "critics.1"}


def test_ensembles_learn_only_from_matches_they_played() -> None:
    game = Recorder(listener(lanes=4, seed=1))
    learner = MADDPG(game, replace(TINY, policies=3, batch=32, buffer=1000), seed=5)
    seen: set[tuple[int, int]] = set()
    update = learner._update_agent

    def watched(agent: int, policy: int, batch: dict[str, Tensor], following: Tensor) -> Tensor:
        assert (batch["policy"][:, agent] == policy).all()
        before = weights(learner)
        told = update(agent, policy, batch, following)
        assert changed(before, weights(learner)) == {f"actors.members.{agent}.{policy}", f"critics.{agent}"}
        seen.add((agent, policy))
        return told

    learner._update_agent = watched  # type: ignore[method-assign]
    for _ in range(60):
        learner.step()
    assert seen == {(agent, policy) for agent in (0, 1) for policy in (0, 1, 2)}
    # Rows are stored in the order of lanes, and matches last five decisions.
    policy = stored(learner)["policy"].view(12, 5, 4, 2)
    assert (policy == policy[:, :1]).all(), "one policy from the start of a match to its end"
    assert len(policy[:, 0].reshape(-1, 2).unique(dim=0)) == 9, "agents draw independently"


def test_who_is_born_next_does_next_what_its_own_policy_says() -> None:
    rows = stored(stepped(PettingZoo(Meadow, lanes=1), replace(TINY, policies=8, n_step=1), steps=60))
    born = (rows["next_present"] & ~rows["present"])[:, 2].nonzero().view(-1)
    played = rows["policy"][born + 1, 2]
    assert len(born) >= 8 and len(played.unique()) > 2
    assert torch.equal(rows["policy"][born, 2], played)


def test_the_matchs_policy_plays_it() -> None:
    """Each actor of the ensemble always chooses its own number here."""
    never = replace(TINY, policies=3, buffer=1000, learn_from=1001)
    learner = MADDPG(game := Recorder(listener(lanes=4, seed=1)), never, seed=5)
    with torch.no_grad():
        for agent in (0, 1):
            for policy in range(3):
                head = learner.actors.member(agent, policy).head
                head.weight.zero_()
                head.bias.copy_(100.0 * torch.eye(head.out_features)[policy])
    for _ in range(20):
        learner.step()
    actions = torch.stack([actions.view(4, 2) for _, actions, _ in game.steps])
    assert torch.equal(actions.view(-1, 2), stored(learner)["policy"].long().view(-1, 2))


class Product:
    """One decision: both are paid the product of their numbers (or choices, -1 and 1); nothing is to be seen."""

    name = "product"
    agents = teams = 2
    observation = Box(shape=(1,))
    restarts_itself = True

    def __init__(self, lanes: int, *, discrete: bool = False) -> None:
        self.lanes = lanes
        self.action: Box | Discrete = Discrete(n=2) if discrete else Box(shape=(1,), low=-1.0, high=1.0)
        self.match = torch.zeros(lanes, dtype=torch.int64)

    def decisions(self) -> Decisions:
        lane, agent = torch.arange(self.lanes).repeat_interleave(2), torch.arange(2).repeat(self.lanes)
        zero = torch.zeros_like(lane)
        obs = torch.ones(len(lane), 1)
        return Decisions(lane=lane, match=self.match[lane], team=agent, agent=agent, decision=zero, obs=obs)

    def act(self, actions: Tensor) -> Outcome:
        rows, reward = self.decisions(), self.paid(actions)
        self.match += 1
        every = torch.arange(self.lanes)
        length = torch.ones(self.lanes, dtype=torch.int64)
        return Outcome(
            lane=rows.lane,
            agent=rows.agent,
            reward=reward,
            ended=every,
            truncated=torch.zeros(self.lanes, dtype=torch.bool),
            score=reward.view(-1, self.agents),
            length=length,
            last=rows,
        )

    def paid(self, actions: Tensor) -> Tensor:
        numbers = 2.0 * actions - 1.0 if isinstance(self.action, Discrete) else actions[:, 0]
        return numbers.view(-1, 2).prod(dim=1).repeat_interleave(2)

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None: ...
    def state(self) -> dict[str, Tensor]:
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None: ...


class Gifts(Product):
    """One decision: each says what it gives, 0 to 1. It loses that, and the other of its team gets three times as much;
    what the third agent gives goes to the first."""

    name = "gifts"
    agents = 3

    def decisions(self) -> Decisions:
        lane, agent = torch.arange(self.lanes).repeat_interleave(3), torch.arange(3).repeat(self.lanes)
        zero = torch.zeros_like(lane)
        obs = torch.ones(len(lane), 1)
        return Decisions(lane=lane, match=self.match[lane], team=agent // 2, agent=agent, decision=zero, obs=obs)

    def paid(self, actions: Tensor) -> Tensor:
        given = actions.float() if isinstance(self.action, Discrete) else (actions[:, 0] + 1.0) / 2.0
        first, second, third = given.view(-1, 3).unbind(dim=1)
        return torch.stack((3.0 * (second + third) - first, 3.0 * first - second, -third), dim=1).view(-1)


@pytest.mark.parametrize(("discrete", "variance"), [(False, 1 / 9), (True, 1.0)])
def test_a_central_critic_explains_what_a_local_one_cannot(discrete: bool, variance: float) -> None:
    """r = a1 a2 with random partners. Knowing a1 alone one expects 0 and errs by E[a1^2 a2^2]: 1/9 of numbers, 1 of
    choices."""
    config = MADDPGConfig(
        hidden=(32,), local=(1,), warmup=10**9, batch=128, learn_from=256, update_every=1, buffer=20_000
    )
    learner = stepped(Product(64, discrete=discrete), config, steps=150)
    batch = stored(learner)
    errors = []
    for agent in (0, 1):
        with torch.no_grad():
            value = learner.critics[agent](*learner.critic_inputs(agent, batch["obs"], batch["action"]))
        errors.append((value - batch["reward"][:, agent]).square().mean().item())
    assert errors[0] < 0.01 * variance
    assert errors[1] == pytest.approx(variance, rel=0.05)
    assert (batch["discount"] == 0).all(), "nothing follows a terminal end"


@pytest.mark.parametrize(("discrete", "changes"), [(False, {}), (True, {}), (True, {"choice_gradient": "gumbel"})])
def test_two_agents_learn_to_agree(discrete: bool, changes: dict[str, Any]) -> None:
    """The best that r = a1 a2 pays is 1; random play gets 0 on average."""
    config = MADDPGConfig(
        hidden=(16,), batch=64, learn_from=256, update_every=1, noise_sigma=0.5, actor_lr=3e-3, buffer=10_000, **changes
    )
    learner = stepped(game := Product(16, discrete=discrete), config, steps=300)
    assert game.act(learner.policy()(game.decisions())).reward.mean() > 0.9


@pytest.mark.parametrize(
    ("climb", "best", "discrete", "choice_gradient"),
    [
        ("own", 0.0, False, "expected"),
        ("team", 1.0, False, "expected"),
        ("team", 1.0, True, "expected"),
        ("team", 1.0, True, "gumbel"),
    ],
)
def test_who_climbs_for_the_team_gives(climb: Any, best: float, discrete: bool, choice_gradient: Any) -> None:
    """What an agent gives costs it one and brings its mate three; the third agent is in no team with them."""
    config = MADDPGConfig(
        hidden=(16,),
        batch=64,
        learn_from=256,
        update_every=1,
        noise_sigma=0.5,
        actor_lr=3e-3,
        buffer=10_000,
        climb=climb,
        choice_gradient=choice_gradient,
    )
    learner = stepped(game := Gifts(16, discrete=discrete), config, steps=300)
    given = learner.policy()(game.decisions()).view(-1, 3).float().mean(dim=0)
    given = given if discrete else (given + 1.0) / 2.0
    torch.testing.assert_close(given, torch.tensor([best, best, 0.0]), rtol=0, atol=0.1)


def test_a_team_is_worth_the_mean_of_who_is_there() -> None:
    """Meadow's three as one team, by hand: row by row the critics of those present, of one row of them all."""
    one_team = {"ant": 0, "bee": 0, "cat": 0}
    config = replace(TINY, learn_from=99, climb="team")
    learner = stepped(PettingZoo(Meadow, lanes=1, seed=1, teams=one_team), config, 6)
    batch = stored(learner)
    assert len({tuple(row) for row in batch["present"].tolist()}) > 2
    outputs = learner.actors.member(0, 0).logits(batch["obs"][:, learner.obs_of[0]])
    worth = learner._worth(0, batch, outputs)
    for row, present in enumerate(batch["present"].tolist()):
        actions = batch["action"][row : row + 1].clone()
        actions[:, learner.action_of[0]] = torch.tanh(outputs[row])
        values = [critic(batch["obs"][row : row + 1], actions).item() for critic in learner.critics]
        of_those = [value for value, there in zip(values, present, strict=True) if there]
        assert worth[row].item() == pytest.approx(sum(of_those) / len(of_those), abs=1e-6)
    assert learner._climbed(0) == [0, 1, 2]
    resumed = MADDPG(PettingZoo(Meadow, lanes=1, seed=1, teams=one_team), config, seed=5)
    resumed.load_state(learner.state())
    assert resumed._climbed(0) == [0, 1, 2], "before anybody has acted again"
    learner.config = replace(config, local=(2,))
    assert (learner._climbed(0), learner._climbed(2)) == ([0, 1], [2])


class Whisper:
    """The first agent sees which of two is right and says a word; the second hears it, chooses, and both are paid."""

    name = "whisper"
    agents = 2
    teams = 1
    observation = Box(shape=(2,))
    action = Discrete(n=2)
    restarts_itself = True

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.match = torch.zeros(lanes, dtype=torch.int64)
        self.random = torch.Generator().manual_seed(0)
        self.right = torch.randint(2, (lanes,), generator=self.random)
        self.heard: Tensor | None = None

    def decisions(self) -> Decisions:
        lane, agent = torch.arange(self.lanes).repeat_interleave(2), torch.arange(2).repeat(self.lanes)
        obs = torch.zeros(self.lanes, 2, 2)
        obs[:, 0] = torch.eye(2)[self.right]
        if self.heard is not None:
            obs[:, 1] = torch.eye(2)[self.heard]
        decision = torch.full_like(lane, int(self.heard is not None))
        team = torch.zeros_like(lane)
        match = self.match[lane]
        return Decisions(lane=lane, match=match, team=team, agent=agent, decision=decision, obs=obs.view(-1, 2))

    def act(self, actions: Tensor) -> Outcome:
        rows, chosen = self.decisions(), actions.view(-1, 2)
        over = self.heard is not None
        reward = (chosen[:, 1] == self.right).float() * over
        ended = torch.arange(self.lanes if over else 0)
        self.heard = None if over else chosen[:, 0].clone()
        if over:
            self.match = self.match + 1
            self.right = torch.randint(2, (self.lanes,), generator=self.random)
        return Outcome(
            lane=rows.lane,
            agent=rows.agent,
            reward=reward.repeat_interleave(2),
            ended=ended,
            truncated=torch.zeros(len(ended), dtype=torch.bool),
            score=reward.view(-1, 1).repeat(1, 2)[ended],
            length=torch.full((len(ended),), 2),
            last=rows[: len(rows) if over else 0],
        )

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None: ...
    def state(self) -> dict[str, Tensor]:
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None: ...


def test_two_agents_invent_a_language() -> None:
    """No word means anything before somebody listens, and nobody listens before one does. Without it half are right.

    The seed is one of which the Gumbel-softmax, with targets that take the likeliest choice, was deaf for longer.
    """
    config = MADDPGConfig(hidden=(16,), batch=64, learn_from=256, update_every=1, buffer=10_000)
    learner = stepped(Whisper(16), config, steps=400, seed=2)
    game, actors = Whisper(64), learner.policy()
    game.act(actors(game.decisions()))
    assert game.act(actors(game.decisions())).reward.mean() == 1.0


def test_every_choice_counts_as_likely_as_it_is() -> None:
    """The actor's gradient against the closed form p_k (Q_k - sum of p Q), each Q asked for one by one."""
    learner = stepped(listener(lanes=3, seed=1), replace(TINY, learn_from=10**6, buffer=10**6))
    batch = stored(learner)
    for agent, choices in ((0, 3), (1, 5)):
        outputs = torch.randn(len(batch["obs"]), choices, generator=torch.Generator().manual_seed(agent))
        likely = torch.softmax(outputs, dim=1)
        rated = []
        for choice in range(choices):
            actions = batch["action"].clone()
            actions[:, learner.action_of[agent]] = torch.eye(choices)[choice]
            with torch.no_grad():
                rated.append(learner.critics[agent](batch["obs"], actions))
        values = torch.stack(rated, dim=1)
        mean = (likely * values).sum(dim=1)
        outputs.requires_grad_()
        worth = learner._worth(agent, batch, outputs)
        torch.testing.assert_close(worth.detach(), mean)
        (gradient,) = torch.autograd.grad(worth.sum(), [outputs])
        torch.testing.assert_close(gradient, likely * (values - mean.unsqueeze(1)))
        assert gradient.abs().max() > 0


def test_what_the_others_do_next_is_drawn_as_in_play() -> None:
    """A target actor that prefers a word a little does not always say it; each update draws anew."""
    learner = stepped(listener(lanes=8, seed=1), replace(TINY, learn_from=10**6, buffer=10**6), steps=40)
    speaker = learner._targets["actors"].member(0, 0).head  # type: ignore[operator]
    with torch.no_grad():
        speaker.weight.zero_()
        speaker.bias.copy_(torch.tensor([0.5, 0.3, 0.2]).log())
    batch, said = stored(learner), torch.zeros(3)
    for learner.updates in range(20):
        said += learner._next_actions(0, batch)[:, learner.action_of[0]].sum(dim=0)
    assert said.sum() == 20 * 320
    torch.testing.assert_close(said / said.sum(), torch.tensor([0.5, 0.3, 0.2]), rtol=0, atol=0.02)


def test_a_share_of_choices_is_random() -> None:
    config = replace(TINY, random_choices=0.3, learn_from=10**6, buffer=10**6)
    learner = MADDPG(listener(lanes=20, seed=1), config, seed=5)
    with torch.no_grad():
        for agent in (0, 1):
            learner.actors.member(agent, 0).head.bias[1] = 1000.0
    for _ in range(100):
        learner.step()
    for agent, choices in ((0, 3), (1, 5)):
        shares = stored(learner)["action"][:, learner.action_of[agent]].mean(dim=0)
        expected = torch.full((choices,), 0.3 / choices)
        expected[1] += 0.7
        torch.testing.assert_close(shares, expected, rtol=0, atol=0.02)


def meadow_rows(n_step: int) -> tuple[MADDPG, list[list[tuple[float, ...]]]]:
    """For each agent, of one match: (decision of the match, reward, discount, newest thing seen in what follows)."""
    learner = stepped(PettingZoo(Meadow, lanes=1, seed=1), replace(TINY, n_step=n_step, gamma=0.5, learn_from=99), 6)
    batch, ant = stored(learner), [learner.obs_of[0].start]
    start = batch["obs"][:, ant].min()
    turn = ((batch["obs"][:, ant[0]] - start) * 10).round()
    told: list[list[tuple[float, ...]]] = [[], [], []]
    for row in range(len(turn)):
        for agent in range(3):
            if batch["present"][row, agent]:
                kept = (batch["reward"][row, agent].item(), batch["discount"][row, agent].item())
                told[agent].append((turn[row].item(), *kept))
    return learner, told


def test_the_dead_do_not_bootstrap_and_the_cut_do() -> None:
    """Meadow: the bee dies after 2 decisions, the cat (born after 3) is cut off after 5, the ant, and all, after 6."""
    learner, (ant, bee, cat) = meadow_rows(1)
    assert ant == [(turn, 1.0, 0.5) for turn in range(6)]
    assert bee == [(0, 1.0, 0.5), (1, 1.0, 0.0)]
    assert cat == [(3, 1.0, 0.5), (4, 1.0, 0.5)]
    batch = stored(learner)
    for row, place in ((4, 2), (5, 0)):
        seen = batch["next_obs"][row, learner.obs_of[place].start + 2 * (place == 2)]
        begun = batch["obs"][0, 0] + (row + 1) / 10
        assert torch.isclose(seen, begun), "who is cut off bootstraps from what it saw then"
        assert batch["next_present"][row, place]
    assert not batch["next_present"][1, 1]
    assert (batch["next_obs"][1, learner.obs_of[1]] == 0).all()


def test_several_steps_stop_where_a_life_does() -> None:
    """With up to three steps: 1 + 0.5 + 0.25 where no life begins or ends within."""
    _, (ant, bee, cat) = meadow_rows(3)
    # The bee's end after turn 1, the birth after 2, the cat's after 4, the ant's after 5: what waits is stored then.
    assert sorted(ant) == [(0, 1.5, 0.25), (1, 1.0, 0.5), (2, 1.0, 0.5), (3, 1.5, 0.25), (4, 1.0, 0.5), (5, 1.0, 0.5)]
    assert sorted(bee) == [(0, 1.5, 0.0), (1, 1.0, 0.0)]
    assert sorted(cat) == [(3, 1.5, 0.25), (4, 1.0, 0.5)]


def test_dead_agents_do_nothing_next_and_learn_nothing() -> None:
    learner = stepped(PettingZoo(Meadow, lanes=1, seed=1), replace(TINY, learn_from=99), 6)
    batch = stored(learner)
    following = learner._next_actions(0, batch)
    assert ((following[:, learner.action_of[1]] != 0).any(dim=1) == batch["next_present"][:, 1]).all()
    alone = {name: column[2:3] for name, column in batch.items()}  # a row of the ant alone
    before = weights(learner)
    learner._update_agent(1, 0, alone, learner._next_actions(1, alone))
    assert changed(before, weights(learner)) == set()


def test_guesses_stand_for_the_others() -> None:
    """With the other's target actor broken, the target that uses guesses is whole; and guesses become better."""
    learner = stepped(listener(lanes=3, seed=1), replace(TINY, infer=True, learn_from=10**6, buffer=10**6))
    batch = stored(learner)
    with torch.no_grad():
        learner._targets["actors"].member(1, 0).head.bias.fill_(torch.nan)  # type: ignore[operator]
    torch.testing.assert_close(learner._next_actions(0, batch).sum(dim=1), torch.full((60,), 2.0))

    def surprise() -> float:
        log = torch.log_softmax(learner._guess(1, 0).logits(batch["obs"][:, learner.obs_of[0]]), dim=1)
        return -(log * batch["action"][:, learner.action_of[0]]).sum(dim=1).mean().item()

    batch["action"][:, learner.action_of[0]] = torch.tensor([0.0, 1.0, 0.0])  # the speaker always says the second word
    before = surprise()
    for _ in range(30):
        learner._update_guesses()
    assert surprise() < 0.3 * before


@pytest.mark.parametrize("game", [lambda: listener(lanes=3, seed=1), lambda: Tennis(lanes=3, seed=1)])
def test_rows_meet_by_id_and_not_by_place(game: Callable[[], Any]) -> None:
    plain, shuffled = stepped(game(), steps=30), stepped(Shuffled(game()), steps=30)
    for name, column in stored(plain).items():
        assert torch.equal(column, stored(shuffled)[name]), name


def test_acting_needs_actors_alone_and_each_row_only_itself() -> None:
    learner = stepped(game := listener(lanes=3, seed=1), replace(TINY, policies=2))
    actors, rows = learner.policy(), game.decisions()
    assert not any("critic" in name for name, _ in actors.named_modules())
    together = actors(rows)
    assert torch.equal(torch.cat([actors(rows[row : row + 1]) for row in range(len(rows))]), together)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    assert torch.equal(actors(rows[order]), together[order])
    frozen = copy.deepcopy(actors.state_dict())
    learner.step(), learner.step()
    assert all(torch.equal(frozen[name], tensor) for name, tensor in actors.state_dict().items())


RECIPE = Recipe(
    game="mpe",
    algorithm="maddpg",
    mpe=MPEOptions(scenario="simple_tag_v3", max_cycles=7),
    lanes=2,
    threads=1,
    seed=5,
    decisions=80,
    metrics_every=20,
    save_seconds=0.0,
    maddpg=replace(TINY, local=(3,), policies=2, infer=True, n_step=2, buffer=30, batch=4),
)


def test_a_killed_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole = training(tmp_path / "whole", recipe=RECIPE)
    advance(whole, RECIPE.decisions)
    assert whole.learner.replay.rows_written > 2 * RECIPE.maddpg.buffer, "the replay must overflow"
    assert whole.learner.updates > 10
    whole.close()
    recipe = tmp_path / "tag.toml"
    recipe.write_text(to_toml(RECIPE))
    script = Path(__file__).with_name("killed_run.py")
    killed = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run"), "rename latest.pt", "19", str(recipe)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = training(tmp_path / "run", recipe=RECIPE)
    assert 0 < again.decisions < RECIPE.decisions
    advance(again, RECIPE.decisions)
    again.close()
    assert fingerprint(again) == fingerprint(whole)


def test_a_run_is_evaluated_without_its_critics() -> None:
    result = sparring.train(replace(RECIPE, save_seconds=60.0), run="tag")
    path = result.path / "latest.pt"
    content = checkpoint.read(path)
    evaluation = sparring.evaluate("tag", matches=4, lanes=2)
    assert (evaluation.game, evaluation.length, len(evaluation.agents)) == ("mpe", 7.0, 4)
    for part in ("critics", "critics_target", "guesses", "guesses_target", "actors", "optimisers"):
        del content["learner"][part]
    checkpoint.write(path, content, Disk())
    assert sparring.evaluate("tag", matches=4, lanes=2) == evaluation
    policy = sparring.load("tag")
    game = mpe(scenario="simple_tag_v3", lanes=2)
    rows = game.decisions()
    with pytest.raises(SparringError, match=r"an actor for each agent: give the Decisions of a game"):
        policy.act(rows.obs)
    own = rows.agent == 3
    one = policy.of(3)
    assert (one.inputs, policy.of(0).inputs) == (14, 16)
    assert set(one.act(rows.obs[own, :14]).tolist()) <= set(range(5))
    with pytest.raises(SparringError, match=r"agents 0 to 3, of 2 policies each: no agent 4 with policy 0"):
        policy.of(4)
    with pytest.raises(SparringError, match=r"run tag was trained with agents of other sizes than those of this mpe"):
        sparring.evaluate("tag", game=listener, matches=1)


def test_runs_of_tennis_are_drawn(tmp_path: Path) -> None:
    recipe = Recipe(algorithm="maddpg", lanes=2, threads=1, decisions=20, maddpg=TINY)
    sparring.train(recipe, run="team")
    assert sparring.play("team", seconds=0.5, out=tmp_path / "rally.gif").path == tmp_path / "rally.gif"
    assert sparring.evaluate("team", matches=2, lanes=2, episodes=0).matches == 2


@pytest.mark.parametrize(
    ("game", "changes", "line"),
    [
        (lambda: listener(lanes=1), {"local": (0, 2)}, r"maddpg.local = \[0, 2\]: mpe has agents 0 to 1, no 2$"),
        (lambda: PettingZoo(Relay, lanes=1), {}, r"maddpg: relay forbids choices at times"),
    ],
)
def test_what_cannot_be_learnt_is_refused(game: Callable[[], Game], changes: Any, line: str) -> None:
    with pytest.raises(SparringError, match=line):
        stepped(game(), replace(TINY, **changes))


def test_agents_that_take_turns_are_refused() -> None:
    class Open(Relay):
        def observe(self, agent: str) -> Any:
            return {**super().observe(agent), "action_mask": [1, 1, 1]}

        def step(self, action: Any) -> None:
            super().step(None if action is None else 2)

    with pytest.raises(SparringError, match=r"maddpg: relay: agent 0 of lane 0 sat out a decision: MADDPG needs games"):
        stepped(PettingZoo(Open, lanes=1))
