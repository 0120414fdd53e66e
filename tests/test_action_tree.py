"""Packed actions and the tree of choices, held against enumeration of every action there is."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import astuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from loong_maps import random_map
from scipy import stats
from torch import Tensor

from sparring import _core
from sparring.policies.actions import (
    MASK_BYTES,
    MASK_HELD,
    MASK_KINDS,
    MASK_PAYABLE,
    MASK_ROLE_DUE,
    MASK_SIZES,
    MAX_STEPS,
    MOVE,
    NO_CLAIM,
    PARTS,
    SPLIT,
    SPRINT,
    STOP,
    UNIFORMS,
    Actions,
    Tree,
    pack,
    unpack,
)
from sparring.policies.loong import TeacherConfig, TreeHeads

WIDTH = 6
LAST_UNIFORM = 1 - 2.0**-23


def make_mask(
    *,
    kinds: tuple[int, int, int] = (1, 1, 1),
    sizes: tuple[int, ...] = (),
    payable: int = 0,
    due: int = 0,
    held: int = 0,
) -> Tensor:
    """One row, uint8 [1, 40], written byte by byte."""
    row = torch.zeros(1, 40, dtype=torch.uint8)
    row[0, :3] = torch.tensor(kinds)
    for size in sizes:
        row[0, 3 + size - 2] = 1
    row[0, 35], row[0, 36], row[0, 37] = payable, due, held
    return row


def make_heads(seed: int, *, scale: float = 1.0) -> TreeHeads:
    """Heads in float64 whose choices are far from uniform."""
    torch.manual_seed(seed)
    heads = TreeHeads(WIDTH, 7, 4).double()
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.copy_(torch.randn_like(parameter) * scale)
    return heads


def make_tree(seed: int, mask: Tensor, n: int = 1, *, scale: float = 1.0) -> Tree:
    """The tree of one row, n times over, in float64."""
    heads = make_heads(seed, scale=scale)
    features = torch.randn(1, WIDTH, dtype=torch.float64)
    return Tree(heads, features.expand(n, -1), mask.expand(n, -1))


def softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(logit - max(logits)) for logit in logits]
    return [weight / sum(weights) for weight in weights]


def one(choice: int) -> Tensor:
    return torch.tensor([choice])


def words(**parts: int) -> int:
    """A packed action as the format is written down, from its fields."""
    bits = {"role": 0, "kind": 3, "direction": 5, "size": 7, "steps": 12, "sprint": 16, "claim": 32}
    return sum(value << bits[name] for name, value in parts.items())


def paths(
    tree: Tree, state: Tensor, payable: int, taken: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], dict[str, float]]]:
    """Every sprint from here on: its steps, its probability and the sum of the entropies met on the way."""
    if len(taken) == payable or len(taken) == MAX_STEPS:
        yield taken, {"p": 1.0, "entropy": 0.0}
        return
    logits = tree.heads.step_logits(state)[0].tolist()
    options = [0, 1, 2] if len(taken) < 2 else [0, 1, 2, STOP]
    chances = softmax([logits[option] for option in options])
    here = -sum(chance * math.log(chance) for chance in chances)
    for option, chance in zip(options, chances, strict=True):
        if option == STOP:
            yield taken, {"p": chance, "entropy": here}
            continue
        for path, rest in paths(tree, tree.heads.step_state(state, one(option)), payable, (*taken, option)):
            yield path, {"p": chance * rest["p"], "entropy": here + rest["entropy"]}


def enumerate_actions(tree: Tree) -> dict[int, dict[str, float]]:
    """Every legal action of a tree of one row: packed -> probability of each of its parts (those it has)."""
    mask = tree.mask
    held, due, payable = int(mask.held), bool(mask.role_due), int(mask.payable)
    roles = softmax(tree.heads.roles(tree.features)[0].tolist())
    out = {}
    for role in range(8) if due else [held]:
        logits = tree.heads.choices(tree.features, one(role))
        kinds = [kind for kind in range(3) if mask.kinds[0, kind]]
        kind_chances = softmax([logits.kind[0, kind].item() for kind in kinds])
        for kind, kind_chance in zip(kinds, kind_chances, strict=True):
            claims = softmax(logits.claim[0, kind].tolist())
            below: list[tuple[int, dict[str, float]]]
            if kind == MOVE:
                chances = softmax(logits.direction[0].tolist())
                below = [(words(direction=d), {"direction": chance}) for d, chance in enumerate(chances)]
            elif kind == SPLIT:
                sizes = [size for size in range(2, 34) if mask.sizes[0, size - 2]]
                chances = softmax([logits.size[0, size - 2].item() for size in sizes])
                below = [(words(size=s - 2), {"size": chance}) for s, chance in zip(sizes, chances, strict=True)]
            else:
                below = [
                    (
                        words(steps=len(path), sprint=sum(step << 2 * i for i, step in enumerate(path))),
                        {"sprint": numbers["p"]},
                    )
                    for path, numbers in paths(tree, logits.sprint, payable)
                ]
            for (bits, chance), (claim, claim_chance) in itertools.product(below, enumerate(claims)):
                action = words(role=role, kind=kind, claim=claim) + bits
                out[action] = {"kind": kind_chance, **chance, "claim": claim_chance}
                if due:
                    out[action]["role"] = roles[role]
    return out


SMALL = {
    "everything": make_mask(sizes=(2, 3, 33), payable=3, due=1, held=5),
    "role held": make_mask(sizes=(2, 17), payable=2, held=5),
    "long sprint": make_mask(kinds=(1, 1, 0), payable=4, held=7),
    "split or move": make_mask(kinds=(1, 0, 1), sizes=tuple(range(2, 34)), due=1),
    "move only": make_mask(kinds=(1, 0, 0), payable=1, held=2),
}


@pytest.mark.parametrize("case", SMALL)
def test_log_probabilities_equal_enumeration(case: str) -> None:
    tree = make_tree(1, SMALL[case])
    every = enumerate_actions(tree)
    actions = torch.tensor(list(every))
    assert sum(math.prod(parts.values()) for parts in every.values()) == pytest.approx(1, abs=1e-12)
    mine = make_tree(1, SMALL[case], len(actions)).evaluate(actions).log_prob
    expected = [[math.log(parts.get(part, 1.0)) for part in PARTS] for parts in every.values()]
    torch.testing.assert_close(mine, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def chances(every: dict[int, dict[str, float]]) -> Tensor:
    return torch.tensor([math.prod(parts.values()) for parts in every.values()], dtype=torch.float64)


def brute_entropy(every: dict[int, dict[str, float]]) -> Tensor:
    """Entropy of each part given the parts before it, in the mean over the tree: [6]."""
    p = chances(every)
    parts = torch.tensor([[-math.log(x.get(part, 1.0)) for part in PARTS] for x in every.values()], dtype=torch.float64)
    return p @ parts


@pytest.mark.parametrize("case", SMALL)
def test_entropies_equal_enumeration(case: str) -> None:
    tree = make_tree(2, SMALL[case])
    every = enumerate_actions(tree)
    entropy = make_tree(2, SMALL[case], len(every)).evaluate(torch.tensor(list(every))).entropy
    mean = chances(every) @ entropy.detach()
    torch.testing.assert_close(mean, brute_entropy(every), rtol=0, atol=1e-11)
    assert float(mean.sum()) == pytest.approx(-float((chances(every).log() * chances(every)).sum()), abs=1e-11)


def test_the_entropy_of_one_sprint_is_the_sum_along_its_path() -> None:
    tree = make_tree(3, SMALL["long sprint"])
    start = tree.heads.choices(tree.features, one(7)).sprint
    for path, numbers in paths(tree, start, 4):
        action = words(role=7, kind=SPRINT, steps=len(path), sprint=sum(s << 2 * i for i, s in enumerate(path)))
        evaluation = tree.evaluate(one(action))
        assert evaluation.entropy[0, 4].item() == pytest.approx(numbers["entropy"], abs=1e-12)
    assert tree.evaluate(one(words(role=7))).entropy[0, 4].item() == 0  # a move has no sprint


def test_entropies_weigh_without_a_gradient() -> None:
    """A bonus for the entropy of the size must not make splits likelier."""
    tree = make_tree(4, SMALL["split or move"])
    logits = tree.heads.logits  # type: ignore[attr-defined]
    tree.evaluate(one(words(claim=3))).entropy[0, [2, 3, 5]].sum().backward()
    assert float(logits.bias.grad[:3].abs().max()) == 0
    assert float(logits.bias.grad[3:].abs().max()) > 0


def brute_divergence(mine: dict[int, dict[str, float]], theirs: dict[int, dict[str, float]]) -> Tensor:
    ratio = [[math.log(x.get(part, 1.0) / theirs[a].get(part, 1.0)) for part in PARTS] for a, x in mine.items()]
    return chances(mine) @ torch.tensor(ratio, dtype=torch.float64)


@pytest.mark.parametrize("case", SMALL)
def test_divergences_equal_enumeration(case: str) -> None:
    """In the mean over actions of the first tree."""
    mine, theirs = make_tree(5, SMALL[case]), make_tree(6, SMALL[case])
    every = enumerate_actions(mine)
    n = len(every)
    rows = torch.tensor(list(every))
    divergence = make_tree(5, SMALL[case], n).kl(make_tree(6, SMALL[case], n), rows)
    expected = brute_divergence(every, enumerate_actions(theirs))
    torch.testing.assert_close(chances(every) @ divergence, expected, rtol=0, atol=1e-11)
    assert (expected >= 0).all()


def test_divergences_over_drawn_paths_equal_enumeration() -> None:
    """One role held, and a path on every row: the mean over paths is exact, and no other part varies."""
    mask = make_mask(sizes=(2, 9), payable=3, held=4)
    mine, theirs = make_tree(7, mask), make_tree(8, mask)
    start = mine.heads.choices(mine.features, one(4)).sprint
    total = torch.zeros(6, dtype=torch.float64)
    for path, numbers in paths(mine, start, 3):
        action = words(role=4, kind=SPRINT, steps=len(path), sprint=sum(s << 2 * i for i, s in enumerate(path)))
        total += numbers["p"] * mine.kl(theirs, one(action), taken=False)[0]
    expected = brute_divergence(enumerate_actions(mine), enumerate_actions(theirs))
    torch.testing.assert_close(total, expected, rtol=0, atol=1e-11)


def uniforms(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2**23, (n, UNIFORMS), generator=generator) * 2.0**-23


def test_samples_have_the_probabilities_of_the_tree() -> None:
    tree = make_tree(9, SMALL["everything"], scale=0.5)
    every = enumerate_actions(tree)
    n = 40_000
    many = make_tree(9, SMALL["everything"], n, scale=0.5)
    actions, log_prob = many.sample(uniforms(n))
    place = {action: at for at, action in enumerate(every)}
    seen = torch.bincount(torch.tensor([place[action] for action in actions.tolist()]), minlength=len(every))
    expected = chances(every) * n
    likely = expected > 5
    observed = [*seen[likely].tolist(), int(seen[~likely].sum())]
    wanted = [*expected[likely].tolist(), float(expected[~likely].sum())]
    assert stats.chisquare(observed, wanted).pvalue > 0.01
    torch.testing.assert_close(log_prob, many.evaluate(actions).log_prob, rtol=0, atol=1e-12)


def test_sprint_paths_are_drawn_where_a_sprint_is_legal() -> None:
    mask = torch.cat([SMALL["long sprint"].expand(20_000, -1), SMALL["split or move"]])
    heads = make_heads(10)
    features = torch.randn(1, WIDTH, dtype=torch.float64).expand(len(mask), -1)
    tree = Tree(heads, features, mask)
    before = torch.full((len(mask),), words(role=7, claim=NO_CLAIM))
    drawn = tree.sprint_paths(before, uniforms(len(mask), 3))
    assert int(drawn[-1]) == int(before[-1])
    single = Tree(heads, features[:1], mask[:1])
    start = heads.choices(features[:1], one(7)).sprint
    wanted = {
        words(role=7, kind=SPRINT, steps=len(path), sprint=sum(s << 2 * i for i, s in enumerate(path))): numbers["p"]
        for path, numbers in paths(single, start, 4)
    }
    got = torch.unique(drawn[:-1], return_counts=True)
    counts = dict(zip(got[0].tolist(), got[1].tolist(), strict=True))
    assert set(counts) <= set(wanted)
    expected = [p * 20_000 for p in wanted.values()]
    observed = [counts.get(action, 0) for action in wanted]
    big = [i for i, e in enumerate(expected) if e > 5]
    rest = [sum(observed) - sum(observed[i] for i in big), sum(expected) - sum(expected[i] for i in big)]
    pvalue = stats.chisquare([*(observed[i] for i in big), rest[0]], [*(expected[i] for i in big), rest[1]]).pvalue
    assert pvalue > 0.01


def test_the_mode_takes_the_most_probable_choice_of_each_part() -> None:
    for seed in range(20):
        tree = make_tree(seed, SMALL["everything"])
        role = int(tree.heads.roles(tree.features).argmax())
        logits = tree.heads.choices(tree.features, one(role))
        kind = int(logits.kind.argmax())
        bits = words(role=role, kind=kind, claim=int(logits.claim[0, kind].argmax()))
        if kind == MOVE:
            bits += words(direction=int(logits.direction.argmax()))
        elif kind == SPLIT:
            bits += words(size=max((2, 3, 33), key=lambda size: logits.size[0, size - 2].item()) - 2)
        else:
            state, steps = logits.sprint, []
            while len(steps) < 3:
                scores = tree.heads.step_logits(state)[0].tolist()
                best = max([0, 1, 2] if len(steps) < 2 else [0, 1, 2, STOP], key=lambda step: scores[step])
                if best == STOP:
                    break
                steps.append(best)
                state = tree.heads.step_state(state, one(best))
            bits += words(steps=len(steps), sprint=sum(step << 2 * i for i, step in enumerate(steps)))
        assert int(tree.mode()) == bits


@st.composite
def masks(draw: st.DrawFn) -> Tensor:
    """Any mask that the game can write."""
    sizes = tuple(draw(st.sets(st.integers(2, 33), max_size=5)))
    payable = draw(st.integers(0, 8))
    kinds = (1, int(payable >= 2), int(bool(sizes)))
    return make_mask(
        kinds=kinds, sizes=sizes, payable=payable, due=draw(st.integers(0, 1)), held=draw(st.integers(0, 7))
    )


EXTREME = st.sampled_from([0.0, 1e-8, 1.0, 30.0, 1e4])

EDGES = st.lists(st.sampled_from([0.0, 0.5, LAST_UNIFORM]), min_size=UNIFORMS, max_size=UNIFORMS)


@settings(max_examples=60)
@given(rows=st.lists(masks(), min_size=1, max_size=5), scale=EXTREME, edges=EDGES)
def test_nothing_illegal_is_drawn_and_nothing_is_nan(rows: list[Tensor], scale: float, edges: list[float]) -> None:
    mask = torch.cat(rows)
    torch.manual_seed(0)
    heads = TreeHeads(WIDTH, 7, 4)
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.copy_(torch.randn_like(parameter) * scale)
    tree = Tree(heads, torch.randn(len(mask), WIDTH), mask)
    for packed in (tree.sample(torch.tensor([edges] * len(mask)))[0], tree.mode()):
        for row, action in enumerate(packed):
            assert_legal(mask[row], unpack(action.view(1)))
        assert torch.equal(pack(unpack(packed)), packed)
        evaluation = tree.evaluate(packed)
        divergence = tree.kl(Tree(heads, torch.randn(len(mask), WIDTH), mask), packed)
        for values in (evaluation.log_prob, evaluation.entropy, divergence):
            assert values.isfinite().all()
        assert (evaluation.log_prob <= 0).all()
        heads.zero_grad()
        (evaluation.log_prob.sum() + evaluation.entropy.sum() + divergence.sum()).backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in heads.parameters())


def assert_legal(mask: Tensor, action: Actions) -> None:
    kind, size, steps = int(action.kind), int(action.size), int(action.steps)
    assert mask[kind] == 1
    assert 0 <= int(action.claim) <= NO_CLAIM
    assert int(action.role) == int(mask[37]) or mask[36] == 1
    assert (int(action.direction) in (0, 1, 2)) if kind == MOVE else int(action.direction) == 0
    assert mask[3 + size - 2] == 1 if kind == SPLIT else size == 0
    assert 2 <= steps <= int(mask[35]) if kind == SPRINT else steps == 0
    assert (action.sprint[0, :steps] < STOP).all()
    assert (action.sprint[0, steps:] == 0).all()


def test_a_row_is_drawn_alike_in_any_company() -> None:
    mask = torch.cat([SMALL[case] for case in SMALL] * 40)
    heads = make_heads(12)
    features = torch.randn(len(mask), WIDTH, dtype=torch.float64)
    noise = uniforms(len(mask), 5)
    together, _ = Tree(heads, features, mask).sample(noise)
    order = torch.randperm(len(mask))
    for rows in (order, order[:7], order[7:8]):
        apart, _ = Tree(heads, features[rows], mask[rows]).sample(noise[rows])
        assert torch.equal(apart, together[rows])


def test_half_precision_logits_are_scored_in_float32() -> None:
    torch.manual_seed(0)
    heads = TreeHeads(WIDTH, 7, 4).bfloat16()
    tree = Tree(heads, torch.randn(3, WIDTH, dtype=torch.bfloat16), SMALL["everything"].expand(3, -1))
    actions, log_prob = tree.sample(uniforms(3))
    assert log_prob.dtype == torch.float32
    assert tree.evaluate(actions).entropy.dtype == torch.float32


@st.composite
def some_actions(draw: st.DrawFn) -> Actions:
    kind = draw(st.integers(0, 2))
    steps = draw(st.integers(2, 8)) if kind == SPRINT else 0
    path = [draw(st.integers(0, 2)) if i < steps else 0 for i in range(8)]
    return Actions(
        role=one(draw(st.integers(0, 7))),
        kind=one(kind),
        direction=one(draw(st.integers(0, 2)) if kind == MOVE else 0),
        size=one(draw(st.integers(2, 33)) if kind == SPLIT else 0),
        steps=one(steps),
        sprint=torch.tensor([path]),
        claim=one(draw(st.integers(0, 25))),
    )


@given(some_actions())
def test_packing_is_a_bijection(actions: Actions) -> None:
    packed = pack(actions)
    for before, after in zip(astuple(actions), astuple(unpack(packed)), strict=True):
        assert torch.equal(before, after)
    assert 0 <= int(packed) < 2**37


@given(some_actions())
def test_the_core_packs_alike(actions: Actions) -> None:
    parts = actions.steps.item()
    kind = ("move", "sprint", "split")[actions.kind.item()]
    path = actions.sprint[0, :parts].tolist()
    packed = _core.loong_pack(
        actions.role.item(), kind, actions.direction.item(), actions.size.item(), path, actions.claim.item()
    )
    assert packed == pack(actions).item()


def test_the_core_lays_out_masks_and_inputs_alike() -> None:
    mask, inputs = np.dtype(_core.LOONG_MASK), np.dtype(_core.LOONG_INPUTS)
    assert mask.fields is not None and inputs.fields is not None
    assert {name: place for name, (_, place, *_) in mask.fields.items()} == {
        "kinds": MASK_KINDS,
        "sizes": MASK_SIZES,
        "payable": MASK_PAYABLE,
        "role_due": MASK_ROLE_DUE,
        "held": MASK_HELD,
    }
    assert mask.itemsize == MASK_BYTES
    split = TeacherConfig().input_split
    assert [(name, field[0].itemsize) for name, field in inputs.fields.items()] == list(
        zip(("crop", "overview", "scalars", "sonar"), split, strict=True)
    )
    assert _core.LOONG_PLANES["sonar"][0] == "valid"  # the byte by which packets are told from empty places


def test_the_core_takes_what_is_drawn() -> None:
    """Every choice of a random tree, in real matches: splits, sprints, roles due and held."""
    levels = [_core.loong_level(random_map(random.Random(seed))) for seed in (3, 5)]
    assert not any(isinstance(level, bytes) for level in levels)
    matches = _core.LoongMatches(levels, 8, knowledge=True)
    inputs = np.zeros((8, np.dtype(_core.LOONG_INPUTS).itemsize), np.uint8)
    mask = np.zeros((8, MASK_BYTES), np.uint8)
    heads, kinds = make_heads(13, scale=0.3), set()
    for turn in range(60):
        matches.observe(inputs, mask)
        features = torch.randn(8, WIDTH, dtype=torch.float64)
        packed, _ = Tree(heads, features, torch.from_numpy(mask)).sample(uniforms(8, turn))
        kinds |= set(unpack(packed).kind.tolist())
        matches.act_packed(packed.numpy())  # raises if one is no choice of its dragon
    assert kinds == {MOVE, SPRINT, SPLIT}


def test_packed_actions_bit_by_bit() -> None:
    move = Actions(
        role=one(6),
        kind=one(MOVE),
        direction=one(2),
        size=one(0),
        steps=one(0),
        sprint=torch.zeros(1, 8).long(),
        claim=one(25),
    )
    assert int(pack(move)) == 0b11001_0000000000000000_0000_00000_10_00_110
    split = Actions(
        role=one(1),
        kind=one(SPLIT),
        direction=one(0),
        size=one(33),
        steps=one(0),
        sprint=torch.zeros(1, 8).long(),
        claim=one(0),
    )
    assert int(pack(split)) == 0b00000_0000000000000000_0000_11111_00_10_001
    path = torch.tensor([[0, 1, 2, 0, 0, 0, 0, 2]])
    sprint = Actions(
        role=one(0), kind=one(SPRINT), direction=one(0), size=one(0), steps=one(8), sprint=path, claim=one(1)
    )
    assert int(pack(sprint)) == 0b00001_1000000000100100_1000_00000_00_01_000
