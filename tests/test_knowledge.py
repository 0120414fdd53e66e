"""What a dragon of Loong knows: the same bytes by state and by text, alike in mirrored and turned worlds, and positions
that a person can read (tests/golden/knowledge). The core's own test, core/tests/test_knowledge.cpp, poisons what was
not told and fills a lane's memory."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knowledge_pictures import POSITIONS, golden_folder, picture
from loong_choices import INPUTS, MASK, random_choice
from loong_maps import random_map, simple_map
from numpy.typing import NDArray

from sparring import _core
from sparring.judge.native import load_level
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map
from sparring.policies import actions as tree

LANE, VIEW = np.dtype(_core.LOONG_LANE), np.dtype(_core.LOONG_VIEW)


class Stage:
    """Lanes with knowledge, all on one level or one on each."""

    def __init__(self, *maps: bytes, seed: int = 0, **options: Any) -> None:
        self.lanes = len(maps)
        self.matches = _core.LoongMatches([load_level(each) for each in maps], self.lanes, knowledge=True, **options)
        every = np.arange(self.lanes)
        self.matches.restart(every, every, np.full(self.lanes, seed, np.uint64))
        self.inputs = np.zeros((self.lanes, INPUTS.itemsize), np.uint8)
        self.mask = np.zeros((self.lanes, MASK.itemsize), np.uint8)

    @property
    def rows(self) -> NDArray[Any]:
        return self.matches.rows.view(LANE)[:, 0]

    def observe(self) -> None:
        self.matches.observe(self.inputs, self.mask)

    def act(self, *choices: int) -> None:
        self.matches.act_packed(np.array(choices))

    def same(self, lane: int, inputs: NDArray[np.uint8], mask: NDArray[np.uint8]) -> None:
        """Asserts that these rows are those of a lane, naming the bytes that are not."""
        for ours, theirs, fields in ((self.inputs[lane], inputs, INPUTS), (self.mask[lane], mask, MASK)):
            if (ours != theirs).any():
                ours, theirs = ours.view(fields)[0], theirs.view(fields)[0]
                raise AssertionError({n: np.argwhere(ours[n] != theirs[n]).tolist()[:9] for n in fields.names or ()})


# ---- By state and by text.


def compare_paths(map_bytes: bytes, seed: int, turns: int) -> tuple[int, int]:
    """Plays by packed choices in one lane and by the text of lone dragons in another; turns and births."""
    stage = Stage(map_bytes, seed=seed, mirror="never")
    told = _core.LoongMatches([load_level(map_bytes)], 1)
    told.restart(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, seed, np.uint64))
    draw = np.random.default_rng(seed)
    dragons: dict[int, _core.LoongDragons] = {}
    for turn in range(turns):
        row = stage.rows[0]
        if not row["waiting"]:
            return turn, len(dragons)
        stage.observe()
        assert stage.inputs.max() <= 127
        dragon = dragons.setdefault(int(row["dragon"]), _core.LoongDragons())
        stage.same(0, *dragon.observe(told.init(0), told.block(0)))
        ours, theirs = stage.matches.remembered(0), dragon.remembered()
        assert (ours[0] == theirs[0]).all() and (ours[1] == theirs[1]).all() and ours[2] == theirs[2]
        choice = random_choice(draw, stage.inputs[0], stage.mask[0])
        told.reply(0, dragon.act(choice))
        stage.act(choice)
    return turns, len(dragons)


@pytest.mark.parametrize("index", range(16))
def test_by_text_a_dragon_knows_what_it_knows_in_a_lane(index: int) -> None:
    turns, _ = compare_paths(random_map(random.Random(index), repeats=index % 4 == 3), index, 150)
    assert turns > 0


@pytest.mark.parametrize("side", [7, 256])
def test_the_smallest_and_the_largest_board(side: int) -> None:
    rim = 2 * (side + 1) - 2
    lines = (
        "UNIT_LIMIT 6",
        "TILE 0 0 1 900",
        f"TILE {side - 1} {side - 1} 2 2",
        "EDGE 0 2 5",
        f"EDGE {rim // 2 - 2} 2 5",
    )
    body = " ".join(f"{x} 0" for x in (*range(1, 6), 5))
    far = side - 2
    dragons = (f"0 5 {body[:19]}", f"1 3 {far} {far} {far} {far - 1} {far - 1} {far - 1}")
    turns, born = compare_paths(simple_map(f"{side} {side}", dragons, lines), 3, 250)
    assert turns > 40 and born > 2


def test_in_the_organisers_engine_a_dragon_knows_the_same() -> None:
    pytest.importorskip("unswbc.engine")
    from sparring.judge.official import official_engine

    map_bytes = write_map(generate_map(1, 4))
    stage = Stage(map_bytes, seed=9, mirror="never")
    draw = np.random.default_rng(1)
    inits: dict[int, bytes] = {}
    dragons: dict[int, _core.LoongDragons] = {}
    turns = 0

    def reply(dragon: int, block: bytes) -> bytes:
        nonlocal turns
        if turns == 300:
            return b""
        turns += 1
        assert stage.rows[0]["dragon"] == dragon
        stage.observe()
        lone = dragons.setdefault(dragon, _core.LoongDragons())
        stage.same(0, *lone.observe(inits[dragon], block))
        choice = random_choice(draw, stage.inputs[0], stage.mask[0], careless=0)
        stage.act(choice)
        return lone.act(choice)

    ignore: Callable[..., None] = lambda *_: None  # noqa: E731
    official_engine().run(map_bytes, reply, ignore, inits.__setitem__, ignore, 0, 9)
    assert turns == 300


def test_views_tell_what_blocks_tell_and_slots_do_not_mix() -> None:
    stage = Stage(random_map(random.Random(6)), random_map(random.Random(7)), seed=2, mirror="never")
    levels = [load_level(random_map(random.Random(seed))) for seed in (6, 7)]
    dragons = _core.LoongDragons(2 * 64)
    draw = np.random.default_rng(2)
    for _ in range(40):
        if not stage.rows["waiting"].all():
            break
        stage.observe()
        slots = np.array([64 * lane + int(row["slot"]) for lane, row in enumerate(stage.rows)])
        who = [
            (row["dragon"], row["team"], level.width, level.height, level.unit_limit)
            for row, level in zip(stage.rows, levels, strict=True)
        ]
        inputs, masks = dragons.observe_views(slots, np.array(who, np.int32), np.array(stage.matches.views))
        choices = []
        for lane in range(2):
            stage.same(lane, inputs[lane], masks[lane])
            choices.append(random_choice(draw, inputs[lane], masks[lane]))
            dragons.act(choices[lane], int(slots[lane]))
        stage.act(*choices)


# ---- Mirrored and turned worlds.


def symmetric_stage(
    moved: Callable[[float, float, int, int], tuple[float, float]], turned: bool, *, side: tuple[int, int], seed: int
) -> tuple[bytes, bytes]:
    """A map and its image under a motion of the plane (x, y, width, height) -> (x, y) of points. Gaps are fixed, so
    pearls come at the same times whatever the order of tiles."""
    pick = random.Random(seed)
    width, height = side
    far = (height, width) if turned else side
    tiles = {(x, y): pick.randint(1, 9) for x in range(width) for y in range(height) if pick.random() < 0.3}
    walls = {(pick.randrange(width) + 0.5, float(pick.randrange(height))) for _ in range(width * height // 8)}
    walls |= {(float(pick.randrange(width)), pick.randrange(height) + 0.5) for _ in range(width * height // 8)}
    gate = [(1.5, 2.0), (width - 2.5, height - 2.0)]
    walls -= set(gate)
    bodies = [
        [(2 + i, 1) for i in range(5)],
        [(2 + i, height - 2) for i in range(5)],
        [(1, 3), (1, 4)],
        [(8, 4), (8, 5)],
    ]
    for body in bodies:  # no wall inside
        for (a, b), (c, d) in pairwise(body):
            walls.discard(((a + c + 1) / 2, (b + d + 1) / 2))

    def drawn(image: Callable[[float, float], tuple[float, float]], size: tuple[int, int]) -> bytes:
        def tile(x: int, y: int) -> tuple[int, int]:
            a, b = image(x + 0.5, y + 0.5)
            return int(a), int(b)

        def edge(x: float, y: float) -> int:
            a, b = image(x, y)
            return round(2 * (b % size[1])) * (size[0] + 1) + int(a % size[0])

        lines = ["UNIT_LIMIT 7"]
        lines += [f"TILE {a} {b} {gap} {gap}" for (x, y), gap in tiles.items() for a, b in [tile(x, y)]]
        lines += [f"EDGE {edge(*wall)} 1 0" for wall in sorted(walls)] + [f"EDGE {edge(*end)} 2 3" for end in gate]
        dragons = [
            f"{i % 2} {len(body)} " + " ".join("{} {}".format(*tile(*at)) for at in body)
            for i, body in enumerate(bodies)
        ]
        return simple_map("{} {}".format(*size), tuple(dragons), tuple(lines))

    return drawn(lambda x, y: (x, y), side), drawn(lambda x, y: moved(x, y, width, height), far)


def play_alike(maps: Sequence[bytes], mirrors: Sequence[str], seed: int) -> int:
    stages = [Stage(each, seed=seed, mirror=mirror) for each, mirror in zip(maps, mirrors, strict=True)]
    draw = np.random.default_rng(seed)
    for turn in range(200):
        assert len({int(stage.rows[0]["waiting"]) for stage in stages}) == 1
        if not stages[0].rows[0]["waiting"]:
            return turn
        for stage in stages:
            stage.observe()
        for stage in stages[1:]:
            stages[0].same(0, stage.inputs[0], stage.mask[0])
        choice = random_choice(draw, stages[0].inputs[0], stages[0].mask[0])
        for stage in stages:
            stage.act(choice)
    return 200


@pytest.mark.parametrize("side", [(12, 9), (32, 16)])
def test_in_a_mirrored_world_a_mirrored_life_knows_the_same(side: tuple[int, int]) -> None:
    turns = 0
    for seed in range(8):
        maps = symmetric_stage(lambda x, y, w, _h: (w - x, y), False, side=side, seed=seed)
        turns += play_alike(maps, ("never", "always"), seed)
    assert turns > 100


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_in_a_turned_world_a_dragon_knows_the_same(quarters: int) -> None:
    def quarter(x: float, y: float, _width: int, height: int) -> tuple[float, float]:
        return height - y, x

    def moved(x: float, y: float, width: int, height: int) -> tuple[float, float]:
        for _ in range(quarters):
            x, y = quarter(x, y, width, height)
            width, height = height, width
        return x, y

    turns = 0
    for seed in range(3):
        maps = symmetric_stage(moved, quarters % 2 == 1, side=(13, 10), seed=seed)
        turns += play_alike(maps, ("never", "never"), seed)
    assert turns > 60


def test_the_coin_mirrors_about_half_of_all_lives_and_is_kept() -> None:
    stage = Stage(*[random_map(random.Random(3))] * 64)
    every = np.arange(64)
    stage.matches.restart(every, every, np.arange(64, dtype=np.uint64))
    plain = Stage(*[random_map(random.Random(3))] * 64, mirror="never")
    plain.matches.restart(every, every, np.arange(64, dtype=np.uint64))
    stage.observe()
    plain.observe()
    differs = (stage.inputs != plain.inputs).any(axis=1)
    assert 20 < differs.sum() < 44
    again = Stage(*[random_map(random.Random(3))] * 64)
    again.matches.load_state(stage.matches.state())
    again.observe()
    assert (again.inputs == stage.inputs).all()


# ---- Choices.


def choices() -> st.SearchStrategy[tuple[int, str, int, int, list[int], int]]:
    role, claim = st.integers(0, 7), st.integers(0, 25)
    move = st.tuples(role, st.just("move"), st.integers(0, 2), st.just(0), st.just([]), claim)
    sprint = st.tuples(
        role, st.just("sprint"), st.just(0), st.just(0), st.lists(st.integers(0, 2), min_size=2, max_size=8), claim
    )
    split = st.tuples(role, st.just("split"), st.just(0), st.integers(2, 33), st.just([]), claim)
    return st.one_of(move, sprint, split)


@settings(max_examples=200, deadline=None)
@given(choices())
def test_a_choice_survives_packing_and_is_packed_by_the_policies_alike(
    parts: tuple[int, str, int, int, list[int], int],
) -> None:
    packed = _core.loong_pack(*parts)
    assert _core.loong_unpack(packed) == parts
    role, kind, direction, segments, steps, claim = parts
    assert packed == (
        role
        | ("move", "sprint", "split").index(kind) << 3
        | direction << 5
        | max(segments - 2, 0) << 7
        | len(steps) << 12
        | sum(step << (16 + 2 * i) for i, step in enumerate(steps))
        | claim << 32
    )


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**37)))
def test_a_number_is_one_choice_or_none(number: int) -> None:
    try:
        parts = _core.loong_unpack(number)
    except ValueError:
        return
    assert _core.loong_pack(*parts) == number


def test_only_illegal_splits_and_unpayable_steps_are_masked() -> None:
    for length in (2, 3, 4, 5, 8, 9, 40):
        body = " ".join(f"{x} 3" for x in range(3, 3 + length))
        for limit in (1, 2):
            stage = Stage(simple_map("60 9", (f"0 {length} {body}", "1 2 1 1 1 2"), (f"UNIT_LIMIT {limit}",)))
            stage.observe()
            mask = stage.mask.view(MASK)[0, 0]
            payable = min(8, -(-length // 4) + length - 2)
            sizes = [limit == 2 and 2 <= size <= length - 2 for size in range(2, 34)]
            assert mask["sizes"].tolist() == sizes
            assert mask["payable"] == payable
            assert mask["kinds"].tolist() == [1, payable >= 2, any(sizes)]
            assert (mask["role_due"], mask["held"]) == (1, 0)


def test_a_role_is_held_for_sixteen_rounds_and_no_other_is_taken() -> None:
    map_bytes = simple_map("30 30", ("0 2 1 1 1 2", "1 2 20 20 20 21"))
    stage = Stage(map_bytes)
    for turn in range(40):
        stage.observe()
        mask = stage.mask.view(MASK)[0, 0]
        life = turn // 2  # two dragons
        assert mask["role_due"] == (life % 16 == 0)
        assert mask["held"] == (0 if life == 0 else 3 if life <= 16 else 6)
        role = 3 if life < 16 else 6
        if not mask["role_due"]:
            before = stage.matches.state()
            with pytest.raises(ValueError, match=r"lane 0: .* is no choice, or not of the role that is held"):
                stage.act(_core.loong_pack(1, "move", 0, 0, [], 25))
            assert (stage.matches.state() == before).all()
        stage.act(_core.loong_pack(role, "move", 0, 0, [], 25))


# ---- Lanes.


def test_threads_and_a_resume_change_nothing() -> None:
    maps = [random_map(random.Random(seed)) for seed in range(40, 48)] * 5
    stages = [Stage(*maps, seed=4), Stage(*maps, seed=4, threads=3)]
    draws = [np.random.default_rng(4), np.random.default_rng(4)]
    for turn in range(40):
        if turn == 20:
            resumed = Stage(*maps, seed=1)
            resumed.matches.load_state(stages[0].matches.state())
            assert (resumed.matches.state() == stages[0].matches.state()).all()
            stages[0] = resumed
        for stage, draw in zip(stages, draws, strict=True):
            stage.observe()
            rows = zip(stage.inputs, stage.mask, strict=True)
            stage.act(*(random_choice(draw, *row) if stage.rows["waiting"][i] else 0 for i, row in enumerate(rows)))
        waiting = stages[0].rows["waiting"] == 1
        assert (stages[0].inputs[waiting] == stages[1].inputs[waiting]).all()
    assert (stages[0].matches.state() == stages[1].matches.state()).all()


def test_a_damaged_memory_is_refused_and_nothing_changes() -> None:
    stage = Stage(random_map(random.Random(3)), seed=1)
    stage.observe()
    state = stage.matches.state()
    fixed = stage.matches.lane_bytes + 8
    for cut, words in ((fixed, "memories are missing"), (fixed + 2500, "missing")):
        with pytest.raises(ValueError, match=f"state of lane 0 is damaged: .*{words}"):
            stage.matches.load_state(np.ascontiguousarray(state[:, :cut]))
    for at, words in ((64, "of another dragon"), (118 - 14, "dragon can have")):
        bad = state.copy()
        bad[0, fixed + at : fixed + at + 8] ^= 0xFF
        with pytest.raises(ValueError, match=words):
            stage.matches.load_state(bad)
    assert (stage.matches.state() == state).all()


def test_knowledge_that_was_not_asked_for_is_not_there() -> None:
    matches = _core.LoongMatches([load_level(simple_map())], 1)
    assert matches.knowledge_bytes == 0
    with pytest.raises(RuntimeError, match="made without knowledge=True"):
        matches.observe(np.zeros((1, 9424), np.uint8), np.zeros((1, 40), np.uint8))
    with pytest.raises(ValueError, match="mirror must be never, coin or always"):
        _core.LoongMatches([load_level(simple_map())], 1, knowledge=True, mirror="often")
    dragon = _core.LoongDragons()
    with pytest.raises(ValueError, match="not an init block"):
        dragon.observe(b"ID x", b"")
    with pytest.raises(RuntimeError, match="has not been told anything"):
        dragon.act(0)


def test_planes_have_names() -> None:
    for field in ("crop", "overview", "scalars", "sonar"):
        assert len(set(_core.LOONG_PLANES[field])) == INPUTS[field].shape[-1]
    fields = MASK.fields or {}
    places = [fields[name][1] for name in ("kinds", "sizes", "payable", "role_due", "held")]
    assert places == [tree.MASK_KINDS, tree.MASK_SIZES, tree.MASK_PAYABLE, tree.MASK_ROLE_DUE, tree.MASK_HELD]
    assert (INPUTS.itemsize, MASK.itemsize) == (9424, tree.MASK_BYTES)


@pytest.mark.parametrize("field", ["crop", "overview", "scalars", "sonar"])
def test_the_document_names_all_planes_in_their_order(field: str) -> None:
    text = (Path(__file__).resolve().parents[1] / "docs" / "loong-knowledge.md").read_text()
    part = text.partition(f"**{field}** [")[2].partition("**")[0].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    assert re.findall("`([^`]+)`", "".join(cells)) == _core.LOONG_PLANES[field]


# ---- Positions that a person can read.


@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_is_known_as_it_is_drawn(name: str) -> None:
    assert picture(name) == (golden_folder() / f"{name}.txt").read_text()


def test_in_the_judges_sandbox_a_bot_knows_the_same_for_few_points() -> None:
    pytest.importorskip("unswbc.engine")
    from knowledge_bot import play_bot

    points = play_bot(write_map(generate_map(1, 4)), 7, 60)
    assert len(points) == 60
    assert points[:, :3].sum(axis=1).max() < 1_500_000
