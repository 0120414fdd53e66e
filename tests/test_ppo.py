"""PPO for Loong: advantages, minibatches, what stops it, resume, and a task that it must learn."""

from __future__ import annotations

import copy
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loong_maps import simple_map
from torch import Tensor, nn
from watched_loong import FORAGER, NOBODY, SPLITTER, Restart, pond

from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.games.loong_choices import PLANES
from sparring.learn.hardware import CPU, Hardware
from sparring.learn.matches import ITSELF
from sparring.learn.ppo import PPO, Estimates, PPOConfig, ValueScale, between
from sparring.learn.rollout import Collector, Rollout
from sparring.learn.selfplay import SelfPlay, SelfPlayConfig
from sparring.policies import critic as critics
from sparring.policies.actions import unpack
from sparring.policies.auxiliary import NOT_ASKED
from sparring.policies.critic import Critic
from sparring.policies.loong import Teacher, preset

_FRESH = PLANES["crop"].index("fresh")
NOTHING = (0.0, 0.0)


def selfplay(folder: Path, *, seed: int = 3, lanes: int = 6, threads: int = 1, **config: Any) -> SelfPlay:
    ppo = PPOConfig(**{"steps": 24, "minibatch": 48, **config.pop("ppo", {})})
    game = Loong(lanes=lanes, seed=seed, maps=folder, observe="inputs", threads=threads)
    return SelfPlay(game, SelfPlayConfig(ppo=ppo, **config), seed=seed, decisions=10_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pond(tmp_path_factory.mktemp("maps"), crowded=True)


@pytest.fixture(scope="module")
def rollout(folder: Path) -> Rollout:
    game = Loong(lanes=6, seed=4, maps=folder, observe="inputs")
    listener = Restart(game, lambda lane, match: (NOBODY, FORAGER if (lane + match) % 3 == 0 else NOBODY))
    player = Collector(game, Teacher(preset("tiny"), seed=1), seed=0, stream=1)
    for _ in range(2):
        collected = player.collect(40, listener)
    return collected


def ppo(**config: Any) -> PPO:
    teacher, critic = Teacher(preset("tiny"), seed=1), Critic(critics.preset("tiny"), seed=2)
    return PPO(teacher, critic, PPOConfig(**{"minibatch": 60, **config}), seed=7)


def weights(module: nn.Module) -> dict[str, Tensor]:
    return copy.deepcopy(module.state_dict())


def unchanged(module: nn.Module, before: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def test_the_first_pass_starts_from_the_policy_that_played(rollout: Rollout) -> None:
    learner = ppo(minibatch=10_000, epochs=1)
    told = learner.update(rollout, learner.estimate(rollout, 0.0), 0.0)
    assert told["steps"] == 1 and told["clipped"] == 0.0 and abs(told["kl"]) < 1e-7
    assert abs(told["policy_loss"]) < 1e-4  # the mean of normalised advantages


def test_minibatches_hold_every_decision_once_with_all_that_belongs_to_it(rollout: Rollout) -> None:
    learner = ppo()
    estimates = learner.estimate(rollout, 0.0)
    batches = learner.batches(rollout, estimates)
    orders, questions = [], Counter[bytes]()
    for epoch in (0, 1, 2, 3):
        rows, boards = [], []
        for batch in batches.shuffled(7, 0, epoch):
            for i in range(len(batch.action)):
                rows.append(batch.inputs[i].numpy().tobytes() + int(batch.action[i]).to_bytes(8, "little"))
            assert int(batch.lengths.sum()) == len(batch.action)
            # The critic sees of each row what it saw when the advantages were made.
            with torch.no_grad():
                code, _ = learner.critic.boards(batch.board, batch.team)
                value = learner.critic.dragons(code, batch.board_of, batch.crop, batch.scalars)
            boards.append(value)
            assert len(batch.asked) > 0 and batch.targets is not None and len(batch.targets.unseen) == len(batch.asked)
            questions.update(batch.inputs[i].numpy().tobytes() for i in batch.asked.tolist())
            fresh = batch.inputs[:, _FRESH:7200:32][batch.asked] > 0
            assert (batch.targets.unseen[fresh] == NOT_ASKED).all()  # they belong to these rows
            assert len(batch.team_target) == len(batch.board)
        values = torch.cat(boards)
        orders.append(rows)
        assert sorted(values.tolist()) == pytest.approx(sorted(estimates.value[: len(rollout)].tolist()), abs=1e-5)
    assert sum(questions.values()) == len(rollout)  # in four epochs each once
    played = [
        rollout.inputs[i].numpy().tobytes() + int(rollout.action[i]).to_bytes(8, "little") for i in range(len(rollout))
    ]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(played) and orders[0] != orders[1]
    again = [batch.action for batch in batches.shuffled(7, 0, 0)]
    assert torch.equal(torch.cat(again), torch.cat([batch.action for batch in batches.shuffled(7, 0, 0)]))


def reordered(rollout: Rollout, order: list[int]) -> Rollout:
    """The same rollout with its blocks in another order."""
    rows = torch.cat([(rollout.block == block).nonzero().view(-1) for block in order])
    n, nodes = len(rollout), rollout.nodes
    place = torch.arange(len(nodes.successor))
    place[rows] = torch.arange(n)
    back = torch.cat((rows, torch.arange(n, len(nodes.successor))))
    following = nodes.successor[back]
    columns = ("inputs", "mask", "action", "log_prob", "memory", "block", "match", "dragon", "round", "first")
    dragons = torch.cat((rows, torch.arange(n, len(nodes.board_of))))
    return Rollout(
        **{name: getattr(rollout, name)[rows] for name in columns},
        nodes=type(nodes)(
            successor=torch.where(following < 0, -1, place[following.clamp_min(0)]),
            **{name: getattr(nodes, name)[back] for name in ("tick", "reward", "potential")},
            **{name: getattr(nodes, name)[dragons] for name in ("board_of", "crop", "scalars")},
            **{name: getattr(nodes, name) for name in ("board", "team", "block", "valued", "opened")},
        ),
        future=replace(
            rollout.future, **{name: getattr(rollout.future, name)[rows] for name in ("ahead", "frame", "slot")}
        ),
    )


def test_the_order_of_rows_changes_nothing(rollout: Rollout) -> None:
    blocks = rollout.block.unique().tolist()
    other = reordered(rollout, blocks[::-1])
    assert not torch.equal(other.action, rollout.action)
    learners = [ppo(minibatch=10_000, epochs=1), ppo(minibatch=10_000, epochs=1)]
    estimates = [learner.estimate(each, 0.5) for learner, each in zip(learners, (rollout, other), strict=True)]
    place = torch.cat([(rollout.block == block).nonzero().view(-1) for block in blocks[::-1]])
    torch.testing.assert_close(estimates[1].advantage[: len(place)], estimates[0].advantage[place], atol=1e-6, rtol=0)
    told = [
        learner.update(each, estimate, 0.5)
        for learner, each, estimate in zip(learners, (rollout, other), estimates, strict=True)
    ]
    assert told[0] == pytest.approx(told[1], abs=1e-5)
    gradients = [
        torch.cat(
            [parameter.grad.flatten() for parameter in learner.teacher.parameters() if parameter.grad is not None]
        )
        for learner in learners
    ]
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-5, rtol=1e-3)


def test_advantages_are_the_same_with_and_without_normalised_values(rollout: Rollout) -> None:
    plain, scaled = ppo(), ppo()
    for learner in (plain, scaled):
        with torch.no_grad():  # a critic that says something
            learner.critic.value.weight.mul_(300)
            learner.critic.team_value.weight.mul_(300)
            learner.critic.value.bias.add_(0.3)
    layers = (scaled.critic.value, scaled.critic.team_value)
    scaled.scale.update(torch.tensor([5.0, -3.0, 11.0, 2.0]), layers)
    scaled.scale.update(torch.tensor([0.1, -0.2, 0.5, 0.3]), layers)
    assert scaled.scale.moments() != (0.0, 1.0)
    before, after = plain.estimate(rollout, 0.0), scaled.estimate(rollout, 0.0)
    assert float(before.value.std()) > 0.1
    torch.testing.assert_close(after.value, before.value, atol=1e-4, rtol=0)
    torch.testing.assert_close(after.advantage, before.advantage, atol=1e-4, rtol=0)


def test_the_scale_of_values_by_hand() -> None:
    scale, layer = ValueScale(rate=0.5), nn.Linear(3, 1)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    before = layer(x).detach()
    scale.update(torch.tensor([1.0, 3.0]), (layer,))
    assert scale.moments() == pytest.approx((2.0, 1.0))
    scale.update(torch.tensor([8.0, 10.0]), (layer,))
    # Weights 1/4 and 1/2 of 3/4: mean 2/3 * 9 + 1/3 * 2, mean square 2/3 * 82 + 1/3 * 5.
    mean, square = 20 / 3, 169 / 3
    assert scale.moments() == pytest.approx((mean, (square - mean**2) ** 0.5))
    torch.testing.assert_close(layer(x) * scale.moments()[1] + scale.moments()[0], before)
    other = ValueScale(rate=0.5)
    other.load_state(scale.state())
    assert other.moments() == scale.moments()


def test_what_a_match_paid_does_not_depend_on_the_scale_of_shaping_in_the_mean(rollout: Rollout) -> None:
    learner = ppo(shaping=(2.0, 0.0), alive=NOTHING, growth=NOTHING, lam=(1.0, 1.0), gamma=(1.0, 1.0))
    shaped, bare = learner.estimate(rollout, 0.0), learner.estimate(rollout, 1.0)
    n, nodes = len(rollout), rollout.nodes
    # To the end of a match the potentials telescope: what is left of them is the one at the start.
    ends = [rollout.match[i] < rollout.match[rollout.block == rollout.block[i]].max() for i in range(n)]
    over = torch.tensor(ends)
    assert over.sum() > 20
    difference = shaped.advantage[:n] - bare.advantage[:n]
    torch.testing.assert_close(difference[over], -2.0 * nodes.potential[:n][over], atol=1e-4, rtol=0)


def test_dragons_are_paid_for_rounds_survived_and_segments_gained(rollout: Rollout) -> None:
    paying, bare = ppo(alive=(0.5, 0.0), growth=(0.125, 0.0)), ppo(alive=NOTHING, growth=NOTHING)
    gains = []
    for progress, left in ((0.0, 1.0), (0.25, 0.75), (1.0, 0.0)):
        for learner in (paying, bare):  # lambda 0: what is paid for a decision is in its own advantage alone
            learner.config = replace(learner.config, lam=(0.0, 0.0))
        paid = paying.estimate(rollout, progress).advantage - bare.estimate(rollout, progress).advantage
        lengths = rollout.nodes.scalars[:, 0].tolist()
        opened = {int(node): lengths[len(rollout) + i] for i, node in enumerate(rollout.nodes.opened)}
        for i in range(len(rollout)):
            following = int(rollout.nodes.successor[i])
            after = lengths[following] if following < len(rollout) else opened.get(following)
            expected = 0.0
            if after is not None:
                gained = after - lengths[i] + int(unpack(rollout.action[i : i + 1]).size)
                gains.append(gained)
                expected = left * (0.5 + 0.125 * gained)
            assert float(paid[i]) == pytest.approx(expected, abs=1e-5)
    assert 0 in gains and max(gains) > 0 and min(gains) >= -8  # a sprint burns at most eight


def test_a_long_dragon_gains_nothing_by_splitting(rollout: Rollout) -> None:
    long = copy.deepcopy(rollout)
    long.nodes.scalars[:, 0] = 80  # stands for about 192 segments
    long.action[:] = 2 << 3 | 31 << 7  # splits off 33
    learner = ppo(alive=NOTHING, growth=(1.0, 0.0))
    bare = ppo(alive=NOTHING, growth=NOTHING)
    torch.testing.assert_close(learner.estimate(long, 0.0).advantage, bare.estimate(long, 0.0).advantage)


def test_an_update_stops_when_the_policy_moved_too_far(rollout: Rollout) -> None:
    bold, careful = ppo(lr=3e-2, warmup=0, target_kl=1e9), ppo(lr=3e-2, warmup=0, target_kl=1e-3)
    steps = []
    for learner in (bold, careful):
        steps.append(learner.update(rollout, learner.estimate(rollout, 0.0), 0.0)["steps"])
        # The minibatch that stopped it moved nothing.
        (optimiser, _), weight = learner._optimisers, learner.teacher.join.weight
        assert float(optimiser.state[weight]["step"]) == steps[-1]
    assert steps[0] >= 4 and 1 <= steps[1] < steps[0]


@pytest.mark.parametrize(
    "name", ["teacher.memory.weight_hh_l0", "critic.team_hidden.bias", "teacher.heads.role.weight"]
)
def test_a_gradient_that_is_no_number_stops_the_update_before_any_weight_moves(rollout: Rollout, name: str) -> None:
    learner = ppo()
    estimates = learner.estimate(rollout, 0.0)
    learner.updates = 12
    network, _, layer = name.partition(".")
    parameter = dict(getattr(learner, network).named_parameters())[layer]
    parameter.register_hook(lambda gradient: gradient * float("inf"))
    before = weights(learner.teacher)
    with pytest.raises(SparringError, match=rf"update 12: the gradient of {name} is not finite: the last checkpoint"):
        learner.update(rollout, estimates, 0.0)
    assert unchanged(learner.teacher, before) and learner.updates == 12
    after = learner.estimate(rollout, 0.0)
    torch.testing.assert_close(after.value, estimates.value, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["teacher.join.weight", "critic.hidden.weight"])
def test_weights_that_are_no_numbers_are_named(rollout: Rollout, name: str) -> None:
    learner = ppo()
    network, _, layer = name.partition(".")
    with torch.no_grad():
        dict(getattr(learner, network).named_parameters())[layer][0, 0] = torch.nan
    critic = weights(learner.critic)
    with pytest.raises(SparringError, match=f"update 0: the weights of {name} are not finite"):
        learner.update(rollout, learner.estimate(rollout, 0.0), 0.0)
    if network == "critic":
        assert all(torch.equal(t, critic[key]) for key, t in learner.critic.state_dict().items() if "hidden" not in key)


def test_the_decay_of_weights_is_the_settings_and_not_the_checkpoints() -> None:
    learner = ppo(weight_decay=0.25)
    learner.load_state(ppo(weight_decay=0.5).state())
    assert [group["weight_decay"] for one in learner._optimisers for group in one.param_groups] == [0.25, 0.25]


def test_step_sizes_warm_up_and_fall() -> None:
    learner = ppo(lr=1e-3, lr_end=0.1, warmup=4)
    learner._set_lr(0.0)
    assert learner._optimisers[0].param_groups[0]["lr"] == pytest.approx(1e-3 / 5)
    learner.updates = 50
    for progress, expected in ((0.0, 1e-3), (0.5, 0.55e-3), (1.0, 1e-4), (1.7, 1e-4)):
        learner._set_lr(progress)
        assert all(o.param_groups[0]["lr"] == pytest.approx(expected) for o in learner._optimisers)
    assert between((1.0, 0.2), 0.25) == pytest.approx(0.8) and between((1.0, 0.2), 2.0) == pytest.approx(0.2)


def stored(state: dict[str, Any]) -> dict[str, Any]:
    """A state as a checkpoint keeps it."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return [found for key in one for found in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list | tuple):
        return [
            found for i, both in enumerate(zip(one, other, strict=True)) for found in differences(*both, f"{where}.{i}")
        ]
    same = torch.equal(one, other) if isinstance(one, Tensor) else one == other
    if isinstance(one, Tensor) and one.is_floating_point():
        same = torch.equal(one.nan_to_num(nan=-1.0), other.nan_to_num(nan=-1.0))
    return [] if same else [where]


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit_on_more_threads_too(folder: Path) -> None:
    whole = selfplay(folder)
    for _ in range(2):
        whole.step()
    saved = stored(whole.state())
    rows = [whole.step() for _ in range(2)]
    resumed = selfplay(folder, threads=2)
    resumed.step()  # whatever it did before must leave no trace
    resumed.load_state(saved)
    assert [resumed.step() for _ in range(2)] == rows and sum(map(len, rows)) > 10
    assert resumed.losses() == whole.losses()
    assert not differences(whole.state(), resumed.state())


class Judge:
    """Tells every match of a run of `SelfPlay`."""

    def __init__(self, learner: SelfPlay, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scores: list[tuple[list[int], list[float]]] = []
        update: Callable[[Tensor, Tensor], None] = learner.levels.update

        def told(level: Tensor, score: Tensor) -> None:
            self.scores.append((level.tolist(), score.tolist()))
            update(level, score)

        monkeypatch.setattr(learner.levels, "update", told)


def test_scores_of_levels_by_hand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = selfplay(
        folder, lanes=8, scripted=0.5, opponents=("reckless", "splitter"), ppo={"steps": 17, "epochs": 1}
    )
    judge = Judge(learner, monkeypatch)
    advantages: dict[tuple[int, int], list[float]] = {}
    rollouts: list[Rollout] = []
    estimate = learner.ppo.estimate

    def kept(rollout: Rollout, progress: float) -> Estimates:
        estimates = estimate(rollout, progress)
        keys = zip((rollout.block // 2).tolist(), rollout.match.tolist(), strict=True)
        for key, advantage in zip(keys, estimates.advantage.tolist(), strict=False):
            advantages.setdefault(key, []).append(max(advantage, 0.0))
        rollouts.append(rollout)
        return estimates

    monkeypatch.setattr(learner.ppo, "estimate", kept)
    number = dict.fromkeys(range(8), 1)  # of the match that each lane plays
    long = 0
    for _ in range(6):
        expected = []
        for row in learner.step():
            key = (row.lane, number[row.lane])
            number[row.lane] += 1
            if row.opponent == ITSELF:
                expected.append((row.level, sum(advantages[key]) / len(advantages[key])))
                long += any(
                    (rollout.block // 2 == key[0]).logical_and(rollout.match == key[1]).any()
                    for rollout in rollouts[:-1]
                )
        told = [pair for level, score in judge.scores for pair in zip(level, score, strict=True)]
        assert [level for level, _ in told] == [level for level, _ in expected]
        assert [score for _, score in told] == pytest.approx([score for _, score in expected], abs=1e-5)
        judge.scores.clear()
    assert long > 3


def test_results_are_told_from_the_learners_side(folder: Path) -> None:
    learner = selfplay(folder, lanes=8, opponents=("foil", "reckless"), scripted=0.7, ppo={"epochs": 1})
    winners: list[int] = []
    ended = learner.ended

    def heard(lanes: Tensor, results: np.ndarray) -> None:
        winners.extend(results["winner"].tolist())
        ended(lanes, results)

    learner.ended = heard  # type: ignore[method-assign]
    rows = [row for _ in range(5) for row in learner.step()]
    assert len(rows) == len(winners) > 30
    for row, winner in zip(rows, winners, strict=True):
        assert row.result == (0.0 if winner == 0 else 1.0 if winner == row.team + 1 else -1.0)
        assert row.team == 0 or row.opponent != ITSELF
        if row.total[0] == 0 < row.total[1]:
            assert row.result == -1.0
    assert {row.team for row in rows if row.opponent != ITSELF} == {0, 1}
    assert {row.opponent for row in rows} == {"foil", "reckless", ITSELF}


def test_a_match_that_ends_before_the_learners_first_turn_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The queens' heads touch: the splitter, which has nowhere else to go, kills both.
    kelp = tuple(f"EDGE {edge} 1 0" for edge in (2 * 2 * 10 + 2, 2 * 3 * 10 + 2, (2 * 2 + 1) * 10 + 1))
    (tmp_path / "close.map").write_bytes(simple_map("9 9", ("0 2 2 2 1 2", "1 2 3 2 4 2"), kelp))
    mixed = selfplay(tmp_path, lanes=4, opponents=("splitter",), scripted=0.5)
    rows = mixed.step()
    assert rows and all(row.opponent == ITSELF or row.team == 0 for row in rows)
    assert torch.equal(mixed._match, mixed.game.decisions().match)
    never = SelfPlayConfig(opponents=("splitter",), scripted=1.0)
    game = Loong(lanes=1, seed=0, maps=tmp_path, observe="inputs")
    game.restart(torch.tensor([0]), scripts=torch.tensor([[SPLITTER, NOBODY]], dtype=torch.uint8))
    assert len(game.decisions()) == 0
    learner = SelfPlay(game, never, seed=0, decisions=10)
    drawn = torch.tensor([[SPLITTER, NOBODY]], dtype=torch.uint8)
    monkeypatch.setattr("sparring.learn.selfplay.draw_opponents", lambda lanes, matches, **how: drawn)
    with pytest.raises(SparringError, match="100 matches one after another ended before the learner's first turn"):
        learner._start(torch.tensor([0]))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"opponents": ("stranger",)}, "no player stranger: there are forager"),
        ({"opponents": (), "scripted": 0.5}, r"opponents = \[\]: name players"),
    ],
)
def test_opponents_that_are_none_are_refused(folder: Path, config: dict[str, Any], said: str) -> None:
    with pytest.raises(SparringError, match=said):
        selfplay(folder, **config)


def test_auxiliary_heads_learn_with_the_actor_and_are_no_part_of_it(rollout: Rollout) -> None:
    learner = ppo(lr=3e-3, warmup=0, epochs=3, target_kl=1e9)
    told = [learner.update(rollout, learner.estimate(rollout, 0.0), 0.0) for _ in range(3)]
    for name in ("unseen", "heads"):
        assert 0 < told[-1][f"auxiliary_{name}"] < told[0][f"auxiliary_{name}"], name
    assert learner.auxiliary is not None and not any("auxiliary" in name for name in learner.teacher.state_dict())
    state = stored(learner.state())
    other = ppo()
    other.load_state(state)
    assert other.auxiliary is not None and not differences(other.auxiliary.state_dict(), state["auxiliary"])
    without = ppo(auxiliary=0.0)
    told_without = without.update(rollout, without.estimate(rollout, 0.0), 0.0)
    assert without.auxiliary is None and not any("auxiliary" in name for name in told_without)
    with pytest.raises(SparringError, match=r"ppo.auxiliary = 0.0: the checkpoint has auxiliary heads: give a weight"):
        without.load_state(state)
    with pytest.raises(SparringError, match=r"ppo.auxiliary = 0.1: the checkpoint has none: give 0"):
        other.load_state(without.state())


def test_mixed_precision_runs_and_stays_near(rollout: Rollout) -> None:
    """The tensor code of a GPU, here on a CPU: products in bfloat16, all that is kept in float32."""
    told = []
    for hardware in (CPU, Hardware(torch.device("cpu"), mixed=True)):
        teacher, critic = Teacher(preset("tiny"), seed=1), Critic(critics.preset("tiny"), seed=2)
        learner = PPO(teacher, critic, PPOConfig(minibatch=60), seed=7, hardware=hardware)
        estimates = learner.estimate(rollout, 0.0)
        assert estimates.value.dtype == estimates.advantage.dtype == torch.float32
        told.append(learner.update(rollout, estimates, 0.0))
        assert all(parameter.dtype == torch.float32 for parameter in teacher.parameters())
    for name in ("value_loss", "entropy_direction", "auxiliary_unseen", "auxiliary_length", "balance"):
        assert told[1][name] == pytest.approx(told[0][name], rel=0.05), name
    assert told[1] != told[0] and told[1]["kl"] < 1e-3


def test_mixed_precision_collects(folder: Path) -> None:
    game = Loong(lanes=6, seed=4, maps=folder, observe="inputs")
    listener = Restart(game)
    mixed = Hardware(torch.device("cpu"), mixed=True)
    player = Collector(game, Teacher(preset("tiny"), seed=1), seed=0, stream=1, hardware=mixed)
    collected = player.collect(10, listener)
    assert collected.memory.dtype == collected.log_prob.dtype == torch.float32
    assert 0 < float(collected.memory.abs().max()) <= 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="tells what happens without a GPU")
def test_a_device_that_is_not_there_is_one_line() -> None:
    with pytest.raises(SparringError, match='device = "cuda": torch finds no CUDA GPU here'):
        Hardware.of("cuda")
    with pytest.raises(SparringError, match='device = "tpu": must be "cpu" or "cuda"'):
        Hardware.of("tpu")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_task_is_learnt_in_seconds(tmp_path: Path, seed: int) -> None:
    """Kelp on both sides of every column: only to go straight on is not fatal, and pearls lie on the way."""
    pearls = tuple(f"TILE {x} {y} 4 9" for x in range(7) for y in range(7))
    kelp = tuple(f"EDGE {(2 * y + 1) * 8 + x} 1 0" for x in range(7) for y in range(7))
    (tmp_path / "task.map").write_bytes(simple_map("7 7", ("0 2 1 1 1 2", "1 2 4 4 4 5"), pearls + kelp))
    config = {"steps": 32, "minibatch": 128, "lr": 5e-3}
    learner = selfplay(tmp_path, seed=seed, lanes=16, scripted=0.0, ppo=config)
    lasted = [[row.rounds for row in learner.step()] for _ in range(8)]
    first, last = (sum(rounds) / len(rounds) for rounds in (lasted[0], lasted[-1]))
    assert first < 1.5 and last > 4
