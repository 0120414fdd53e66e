"""The networks of Loong: sizes, memory over sequences, experts, sets, surgery, critic, auxiliary heads."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.errors import SparringError
from sparring.policies import critic as critics
from sparring.policies.actions import UNIFORMS
from sparring.policies.auxiliary import CONTENTS, ELSEWHERE, NOT_ASKED, Auxiliary, AuxiliaryTargets
from sparring.policies.critic import Critic, calibration, explained_variance
from sparring.policies.layers import CropEncoder, Experts, MapEncoder, SetEncoder
from sparring.policies.loong import Teacher, TeacherConfig, preset, widen_inputs
from sparring.policies.sizes import critic_sizes, teacher_sizes

NARROW = TeacherConfig(
    channels=4, groups=2, crop_code=10, overview_code=6, sonar_hidden=5, sonar_code=6, scalar_code=7, joined=12,
    expert_hidden=9, memory=11, head_hidden=8, sprint_state=4,
)  # fmt: skip
"""A teacher that costs nothing."""
DEEP = replace(NARROW, stem_stride=2, blocks=2, squeeze=3, overview_pool=1, overview_channels=(3, 5), experts_chosen=2)
"""The layers of the larger presets, as narrow."""


def some_bytes(n: int, width: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 128, (n, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def some_masks(n: int, seed: int = 0) -> Tensor:
    """Legal masks, uint8 [n, 40]; roles are due on some rows."""
    mask = some_bytes(n, 40, seed) % 2
    mask[:, 35] = some_bytes(n, 1, seed + 1)[:, 0] % 9
    mask[:, 0], mask[:, 1], mask[:, 2] = 1, mask[:, 35] >= 2, mask[:, 3:35].amax(dim=1)
    mask[:, 37] = some_bytes(n, 1, seed + 2)[:, 0] % 8
    return mask


def some_uniforms(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2**23, (n, UNIFORMS), generator=generator) * 2.0**-23


def weights(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# Sizes


def test_full_preset_has_44_million_weights() -> None:
    teacher = Teacher(preset("full"))
    assert abs(weights(teacher) - 44_000_000) <= 500_000
    assert not list(teacher.buffers())  # nothing is deployed that is not a weight


def test_small_and_tiny_have_the_weights_they_are_meant_to_have() -> None:
    assert weights(Teacher(preset("small"))) == pytest.approx(3_000_000, rel=0.1)
    assert weights(Teacher(preset("tiny"))) == pytest.approx(350_000, rel=0.05)


def test_tiny_takes_at_most_600_thousand_multiply_adds() -> None:
    """Counted while it runs, and by hand."""
    stem, block = 25 * (3 * 3 * 32) * 16, 2 * 25 * (3 * 3 * 16) * 16
    crop = stem + 32 * (2 * 16) + block + 25 * 16 * 128
    overview = 4 * 4 * 8 * 32
    sonar = 8 * (16 * 32 + 32 * 32) + 2 * 32 * 32
    scalars = 48 * 32
    join = (128 + 3 * 32) * 128
    experts = 2 * (128 * 4 + 128 * 64 + 64 * 128)
    memory = 3 * (128 * 128 + 128 * 128)
    heads = 128 * 8 + 128 * 64 + 64 * (3 + 3 + 32 + 3 * 26) + 64 * 32
    sprint = 8 * 32 * 4 + 7 * 32 * 3 * 32  # eight choices, and the state after each but the last
    counted = {size.part: size.multiply_adds for size in teacher_sizes(preset("tiny"))}
    assert counted == {
        "scalars": scalars,
        "crop": crop,
        "overview": overview,
        "sonar": sonar,
        "join": join,
        "experts": experts,
        "memory": memory,
        "memory_norm": 0,
        "heads": heads + sprint,
    }
    assert sum(counted.values()) <= 600_000


def test_tinys_critic_takes_at_most_150_thousand_multiply_adds() -> None:
    """Even where the board is encoded for one dragon only."""
    counted = {size.part: size.multiply_adds for size in critic_sizes(critics.preset("tiny"))}
    board = 16 * (3 * 3 * 16) * 16 + 4 * 4 * 16 * 48
    crop = 25 * (3 * 3 * 16) * 8 + 25 * 8 * 64
    assert counted["board"] == board
    assert counted["crop"] == crop
    rest = 32 * 16 + (48 + 16) * 64 + 64 + 32 * 32 + (48 + 16 + 64 + 32) * 64 + 64
    assert sum(counted.values()) == board + crop + rest <= 150_000


def test_a_forward_and_a_training_step_of_full() -> None:
    teacher = Teacher(preset("full"))
    inputs, mask = some_bytes(3, teacher.config.input_bytes), some_masks(3)
    with torch.no_grad():
        tree, _ = teacher.step(inputs, mask, teacher.newborn(3))
        actions, before = tree.sample(some_uniforms(3))
    optimiser = torch.optim.SGD(teacher.parameters(), lr=1e-2)
    tree, _, balance = teacher.sequence(inputs, mask, torch.tensor([2, 1]), teacher.newborn(2))
    loss = balance - tree.evaluate(actions).log_prob.sum(dim=1).mean()
    loss.backward()
    optimiser.step()
    with torch.no_grad():
        tree, _ = teacher.step(inputs, mask, teacher.newborn(3))
        after = tree.evaluate(actions).log_prob
    assert float(after[0].sum()) > float(before[0].sum())
    assert after.isfinite().all()


# Memory


def stepwise(teacher: Teacher, inputs: Tensor, lengths: list[int], memory: Tensor) -> tuple[Tensor, Tensor]:
    """Features of every row and the memory after each stretch, decision by decision."""
    features, after, at = [], [], 0
    for stretch, length in enumerate(lengths):
        state = memory[stretch : stretch + 1]
        for row in range(at, at + length):
            tree, state = teacher.step(inputs[row : row + 1], some_masks(1), state)
            features.append(tree.features)
        after.append(state)
        at += length
    return torch.cat(features), torch.cat(after)


@pytest.mark.parametrize("config", [NARROW, DEEP, preset("tiny")], ids=["narrow", "deep", "tiny"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_unrolled_sequences_equal_steps(config: TeacherConfig, dtype: torch.dtype, tolerance: float) -> None:
    teacher = Teacher(config, seed=1).to(dtype)
    lengths = [3, 1, 16, 2, 16, 5]
    inputs = some_bytes(sum(lengths), config.input_bytes)
    memory = torch.randn(len(lengths), config.memory, dtype=dtype, generator=torch.Generator().manual_seed(0))
    memory[1] = 0  # a newborn
    with torch.no_grad():
        tree, after, _ = teacher.sequence(inputs, some_masks(len(inputs)), torch.tensor(lengths), memory)
        features, states = stepwise(teacher, inputs, lengths, memory)
    torch.testing.assert_close(tree.features, features, rtol=0, atol=tolerance)
    torch.testing.assert_close(after, states, rtol=0, atol=tolerance)


def test_log_probabilities_of_a_rollout_are_those_of_training() -> None:
    """PPO's ratio is 1 before the first step: what was drawn step by step is scored alike in a sequence."""
    teacher = Teacher(NARROW, seed=2).double()
    inputs, mask = some_bytes(12, NARROW.input_bytes), some_masks(12)
    memory, drawn, scored = teacher.newborn(3), [], []
    with torch.no_grad():
        for t in range(4):  # three lives of four decisions; row t of life i is row 4 i + t
            rows = torch.tensor([t, 4 + t, 8 + t])
            tree, memory = teacher.step(inputs[rows], mask[rows], memory)
            actions, log_prob = tree.sample(some_uniforms(3, t))
            drawn.append(actions)
            scored.append(log_prob)
        actions, log_prob = torch.stack(drawn, dim=1).flatten(), torch.stack(scored, dim=1).flatten(0, 1)
        tree, _, _ = teacher.sequence(inputs, mask, torch.tensor([4, 4, 4]), teacher.newborn(3))
    torch.testing.assert_close(tree.evaluate(actions).log_prob, log_prob, rtol=0, atol=1e-12)


def test_mixed_precision_runs_and_keeps_memory_and_scores_in_float32() -> None:
    teacher, critic = Teacher(DEEP), Critic(critics.preset("tiny"))
    inputs, mask = some_bytes(9, DEEP.input_bytes), torch.ones(9, 40, dtype=torch.uint8)
    mask[:, 35], mask[:, 37] = 5, 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        stepped, memory = teacher.step(inputs, mask, teacher.newborn(9))
        actions, log_prob = stepped.sample(some_uniforms(9))
        tree, after, balance = teacher.sequence(inputs, mask, torch.tensor([4, 5]), teacher.newborn(2))
        evaluation = tree.evaluate(actions)
        values, _ = critic(*critic_inputs(2, 4))
        (evaluation.log_prob.sum() + evaluation.entropy.sum() + balance + values.sum()).backward()
    assert {memory.dtype, after.dtype, log_prob.dtype, evaluation.log_prob.dtype} == {torch.float32}
    exact, _, _ = teacher.sequence(inputs, mask, torch.tensor([4, 5]), teacher.newborn(2))
    assert not torch.equal(exact.features, tree.features)  # half precision was at work
    torch.testing.assert_close(exact.evaluate(actions).log_prob, evaluation.log_prob, rtol=0, atol=0.05)
    for network in (teacher, critic):
        assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


def test_gradients_flow_along_a_stretch_and_stop_at_its_start() -> None:
    teacher = Teacher(NARROW).double()
    memory = torch.randn(2, NARROW.memory, dtype=torch.float64, requires_grad=True)
    tree, _, _ = teacher.sequence(some_bytes(5, NARROW.input_bytes), some_masks(5), torch.tensor([3, 2]), memory)
    (gradient,) = torch.autograd.grad(tree.features[2].square().sum() + tree.features[2].sum(), memory)
    assert float(gradient[0].abs().max()) > 0
    assert float(gradient[1].abs().max()) == 0


def test_readers_see_a_normalised_copy_of_the_memory() -> None:
    teacher = Teacher(NARROW).double()
    tree, memory = teacher.step(some_bytes(4, NARROW.input_bytes), some_masks(4), teacher.newborn(4))
    torch.testing.assert_close(tree.features, functional.layer_norm(memory, (NARROW.memory,)))
    assert tree.features.var(dim=1, correction=0).tolist() == pytest.approx([1] * 4, abs=1e-2)


def test_a_seed_decides_the_first_weights_and_nothing_else_random() -> None:
    state = torch.random.get_rng_state()
    first, same, other = Teacher(NARROW, seed=1), Teacher(NARROW, seed=1), Teacher(NARROW, seed=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), same.parameters(), strict=True))
    assert not torch.equal(first.join.weight, other.join.weight)


def test_a_new_policy_is_near_uniform() -> None:
    teacher = Teacher(preset("tiny"))
    tree, _ = teacher.step(some_bytes(20, 9424), torch.ones(20, 40, dtype=torch.uint8), teacher.newborn(20))
    entropy = tree.evaluate(torch.zeros(20, dtype=torch.int64)).entropy
    assert entropy[:, :2].mean(dim=0).tolist() == pytest.approx([math.log(8), math.log(3)], abs=0.01)


# Layers


def test_bytes_count_as_127ths() -> None:
    teacher = Teacher(NARROW).double()
    scalars = some_bytes(3, 48)
    expected = functional.linear(scalars.double() / 127, teacher.scalars.weight, teacher.scalars.bias)
    torch.testing.assert_close(teacher.scalars(scalars), expected)
    crop = some_bytes(3, 15 * 15 * 32)
    grid = crop.view(3, 15, 15, 32).permute(0, 3, 1, 2).double() / 127
    stem = teacher.crop.stem
    expected = functional.conv2d(grid, stem.weight, stem.bias, stride=3)
    torch.testing.assert_close(stem(crop.view(3, 15, 15, 32).permute(0, 3, 1, 2)), expected)


def test_crops_and_maps_are_read_with_channels_last() -> None:
    """A change of one tile changes only the windows that cover it."""
    encoder = CropEncoder(side=15, planes=2, channels=3, stride=3, blocks=0, groups=1, squeeze=0, film=1, width=4)
    crop = torch.zeros(1, 15, 15, 2, dtype=torch.uint8)
    seen: list[Tensor] = []
    encoder.stem.register_forward_hook(lambda module, given, out: seen.append(out.detach().clone()))
    encoder(crop.flatten(1), torch.zeros(1, 1))
    crop[0, 4, 14, 1] = 127  # row 4, column 14
    encoder(crop.flatten(1), torch.zeros(1, 1))
    changed = (seen[1] != seen[0]).any(dim=1)[0].nonzero()
    assert changed.tolist() == [[1, 4]]
    pooled = MapEncoder(side=16, planes=2, pool=4, channels=(), width=3)
    grid = torch.zeros(1, 16, 16, 2, dtype=torch.uint8)
    base = pooled.dense.weight
    grid[0, 5, 9, 1] = 127  # block row 1, block column 2
    place = (1 * 4 + 2) * 2 + 1
    expected = (pooled.dense.bias + base[:, place] / 16).relu()
    torch.testing.assert_close(pooled(grid.flatten(1))[0], expected)


def test_film_lets_the_scalars_steer_every_block() -> None:
    teacher = Teacher(DEEP).double()
    crop, code = some_bytes(1, 7200), torch.randn(1, DEEP.scalar_code, dtype=torch.float64)
    before = teacher.crop(crop, code)
    for block in range(DEEP.blocks):
        changed = copy.deepcopy(teacher.crop)
        with torch.no_grad():
            rows = changed.film.dense.weight.view(DEEP.blocks, 2, DEEP.channels, -1)
            rows[block] += 1.0
        assert not torch.allclose(changed(crop, code), before)


@pytest.mark.parametrize("chosen", [1, 2])
def test_experts_equal_one_row_at_a_time(chosen: int) -> None:
    torch.manual_seed(0)
    layer = Experts(6, 5, experts=4, chosen=chosen).double()
    x = torch.randn(30, 6, dtype=torch.float64)
    out, balance = layer(x)
    picks, mean = [0] * 4, [0.0] * 4
    for row in range(30):
        normal = functional.layer_norm(x[row], (6,), layer.norm.weight, layer.norm.bias)
        probability = (layer.router.weight @ normal + layer.router.bias).softmax(dim=0)
        best = sorted(range(4), key=lambda e: -float(probability[e].detach()))[:chosen]
        total = sum(probability[e] for e in best) if chosen > 1 else 1.0
        expected = x[row]
        for e in best:
            hidden = (normal @ layer.up[e] + layer.up_bias[e]).relu()
            expected = expected + probability[e] / total * (hidden @ layer.down[e] + layer.down_bias[e])
            picks[e] += 1
        mean = [m + float(p.detach()) / 30 for m, p in zip(mean, probability, strict=True)]
        torch.testing.assert_close(out[row], expected)
    assert float(balance.detach()) == pytest.approx(
        4 * sum(k / sum(picks) * m for k, m in zip(picks, mean, strict=True))
    )


def test_the_balancing_loss_is_1_when_balanced_and_pulls_towards_it() -> None:
    layer = Experts(6, 5, experts=4, chosen=1)
    with torch.no_grad():
        layer.router.weight.zero_()
        layer.router.bias.copy_(torch.tensor([2.0, 0.0, 0.0, 0.0]))  # everything goes to expert 0
    x = torch.randn(8, 6)
    _, balance = layer(x)
    assert float(balance.detach()) > 1
    balance.backward()
    gradient = layer.router.bias.grad
    assert gradient is not None
    assert float(gradient[0]) > 0 > float(gradient[1])
    with torch.no_grad():
        layer.router.bias.zero_()
    assert float(layer(x)[1].detach()) == pytest.approx(1)


def test_every_expert_that_was_picked_learns() -> None:
    torch.manual_seed(1)
    layer = Experts(6, 5, experts=3, chosen=1)
    out, _ = layer(torch.randn(200, 6))
    out.square().sum().backward()
    assert layer.up.grad is not None
    assert all(float(gradient.abs().max()) > 0 for gradient in layer.up.grad)


def test_packets_are_a_set() -> None:
    encoder = SetEncoder(packets=8, fields=4, hidden=5, width=6).double()
    packets = some_bytes(10, 32).view(10, 8, 4)
    packets[:, :, 0] = (some_bytes(10, 8, 3) % 2) * 127  # whether there is one
    packets[0, :, 0] = 0  # none at all
    code = encoder(packets.flatten(1))
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(encoder(packets[:, order].flatten(1)), code)
    absent = packets[:, :, :1] == 0
    rubbish = torch.where(absent, some_bytes(10, 32, 7).view(10, 8, 4), packets)
    rubbish[:, :, 0] = packets[:, :, 0]
    torch.testing.assert_close(encoder(rubbish.flatten(1)), code)
    alone = packets[5].clone()
    alone[1:, 0] = 0
    alone[0, 0] = 127
    hidden = encoder.second(encoder.first(alone[0]).relu()).relu()
    expected = encoder.dense(torch.cat((hidden, hidden))).relu()  # one packet: mean and maximum are the same
    torch.testing.assert_close(encoder(alone.view(1, -1))[0], expected)
    assert code.isfinite().all()


# Surgery


@pytest.mark.parametrize("config", [NARROW, DEEP], ids=["narrow", "deep"])
def test_wider_inputs_change_no_output(config: TeacherConfig) -> None:
    teacher = Teacher(config, seed=3).double()
    wide = widen_inputs(teacher, crop_planes=35, overview_planes=9, scalars=50, sonar_fields=19)
    n = 6
    parts = some_bytes(n, config.input_bytes).split(list(config.input_split), dim=1)
    wide_parts = some_bytes(n, wide.config.input_bytes, 9).split(list(wide.config.input_split), dim=1)
    inputs = []
    for part, wide_part, old, new in zip(parts, wide_parts, (32, 8, 48, 16), (35, 9, 50, 19), strict=True):
        grid = wide_part.clone().view(n, -1, new)  # what is new holds anything
        grid[:, :, :old] = part.view(n, -1, old)
        inputs.append(grid.flatten(1))
    memory = torch.randn(n, config.memory, dtype=torch.float64)
    with torch.no_grad():
        tree, after = teacher.step(torch.cat(parts, dim=1), some_masks(n), memory)
        wide_tree, wide_after = wide.step(torch.cat(inputs, dim=1), some_masks(n), memory)
    torch.testing.assert_close(wide_tree.features, tree.features, rtol=0, atol=1e-13)
    torch.testing.assert_close(wide_after, after, rtol=0, atol=1e-13)
    assert torch.equal(wide_tree.sample(some_uniforms(n))[0], tree.sample(some_uniforms(n))[0])
    gradient = torch.autograd.grad(wide.encode(torch.cat(inputs, dim=1))[0].sum(), wide.crop.stem.weight)[0]
    assert float(gradient[:, 32:].abs().max()) > 0  # what is new can be learnt


def test_narrower_inputs_are_refused() -> None:
    with pytest.raises(SparringError, match="crop_planes = 31: the policy reads 32, and can only be widened"):
        widen_inputs(Teacher(NARROW), crop_planes=31)


# Wrong sizes


def test_sizes_that_cannot_work_are_refused() -> None:
    with pytest.raises(SparringError, match="there are tiny, small, full"):
        preset("huge")
    with pytest.raises(SparringError, match="there are tiny, small, full"):
        critics.preset("huge")
    with pytest.raises(SparringError, match="groups = 3: must divide channels = 4"):
        Teacher(replace(NARROW, groups=3))
    with pytest.raises(SparringError, match="there are only 4 experts"):
        Teacher(replace(NARROW, experts_chosen=5))
    with pytest.raises(SparringError, match="overview_pool = 3: must divide 16"):
        Teacher(replace(NARROW, overview_pool=3))
    with pytest.raises(SparringError, match="groups = 3: must divide channels = 8"):
        Critic(replace(critics.preset("tiny"), groups=3))


# Critic


def critic_inputs(boards: int, rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    board_of = torch.arange(rows) * boards // rows
    return (
        some_bytes(boards, 4096),
        some_bytes(boards, 32, 1),
        board_of,
        some_bytes(rows, 3600, 2),
        some_bytes(rows, 32, 3),
    )


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_dragons_of_a_team_share_its_board(name: str) -> None:
    critic = Critic(critics.preset(name), seed=1).double()
    board, team, board_of, crop, scalars = critic_inputs(3, 8)
    values, team_values = critic(board, team, board_of, crop, scalars)
    assert values.shape == (8,)
    assert team_values.shape == (3,)
    apart, apart_teams = critic(board[board_of], team[board_of], torch.arange(8), crop, scalars)
    torch.testing.assert_close(values, apart)
    torch.testing.assert_close(team_values[board_of], apart_teams)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    shuffled, _ = critic(board, team, board_of[order], crop[order], scalars[order])
    torch.testing.assert_close(shuffled, values[order])


def test_every_critic_input_reaches_the_values_it_may() -> None:
    critic = Critic(critics.preset("tiny")).double()
    inputs = list(critic_inputs(1, 1))
    before, team_before = critic(*inputs)
    for at, reaches_team in ((0, True), (1, True), (3, False), (4, False)):
        changed = list(inputs)
        changed[at] = 127 - changed[at]
        value, team_value = critic(*changed)
        assert not torch.equal(value, before)
        assert torch.equal(team_value, team_before) is not reaches_team


def test_the_full_critic_learns() -> None:
    critic = Critic(critics.preset("full"))
    values, team_values = critic(*critic_inputs(1, 2))
    (values.sum() + team_values.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in critic.parameters())


def test_explained_variance() -> None:
    target = torch.tensor([1.0, 2.0, 3.0, 6.0])
    assert explained_variance(target, target) == 1
    assert explained_variance(target + 5, target) == pytest.approx(1)  # a constant error explains nothing away
    assert explained_variance(torch.zeros(4), target) == 0
    assert explained_variance(-target, target) == pytest.approx(-3)
    assert math.isnan(explained_variance(torch.tensor([1.0, 2.0]), torch.ones(2)))
    assert math.isnan(explained_variance(torch.zeros(0), torch.zeros(0)))


def test_calibration_by_hand() -> None:
    value = torch.tensor([0.9, 0.1, 0.8, 0.2, 0.3])
    target = torch.tensor([1.0, 0.0, 0.0, 0.5, 0.1])
    result = calibration(value, target, bins=2)
    # In order: 0.1 0.2 0.3 | 0.8 0.9
    assert result.count.tolist() == [3, 2]
    assert result.predicted.tolist() == pytest.approx([0.2, 0.85])
    assert result.happened.tolist() == pytest.approx([0.2, 0.5])
    assert result.error == pytest.approx(0.35 * 2 / 5)
    assert calibration(target, target).error == 0
    assert len(calibration(value, target, bins=10).count) == 5


# Auxiliary heads


def test_auxiliary_losses_by_hand() -> None:
    auxiliary = Auxiliary(5, hidden=4).double()
    features = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    unseen, heads, length = (out.detach() for out in auxiliary(features))
    assert unseen.shape == (2, len(CONTENTS), 225)
    assert heads.shape == (2, ELSEWHERE + 1)
    asked = torch.full((2, 225), NOT_ASKED, dtype=torch.uint8)
    asked[0, 7], asked[1, 224], asked[1, 3] = 1, 3, 0
    places = torch.zeros(2, 226, dtype=torch.float64)
    places[0, 12], places[0, ELSEWHERE] = 0.25, 0.75  # nothing is known of row 1
    lengths = torch.tensor([[4.0, math.nan], [math.nan, 0.0]], dtype=torch.float64)
    targets = AuxiliaryTargets(unseen=asked, heads=places, length=lengths)
    losses = {name: loss.detach() for name, loss in auxiliary.losses(features, targets).items()}
    log = unseen.log_softmax(dim=1)
    assert float(losses["unseen"]) == pytest.approx(-float(log[0, 1, 7] + log[1, 3, 224] + log[1, 0, 3]) / 3)
    where = heads[0].log_softmax(dim=0)
    assert float(losses["heads"]) == pytest.approx(-float(0.25 * where[12] + 0.75 * where[ELSEWHERE]))
    errors = (float(length[0, 0]) - math.log(5)) ** 2 + float(length[1, 1]) ** 2
    assert float(losses["length"]) == pytest.approx(errors / 2)


def test_nothing_known_costs_nothing() -> None:
    auxiliary = Auxiliary(5, hidden=4)
    targets = AuxiliaryTargets(
        unseen=torch.full((2, 225), NOT_ASKED, dtype=torch.uint8),
        heads=torch.zeros(2, 226),
        length=torch.full((2, 2), math.nan),
    )
    losses = auxiliary.losses(torch.randn(2, 5), targets)
    assert [float(loss.detach()) for loss in losses.values()] == [0, 0, 0]
    sum(losses.values(), torch.zeros(())).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in auxiliary.parameters())
