"""What a critic is told is the truth: held against a slow reference that is made of bodies, pearls and map files."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from loong_maps import random_map, simple_map
from numpy.typing import NDArray

from sparring import _core
from sparring.judge.native import load_level

ACTION, LANE, INPUTS, MASK = (
    np.dtype(fields) for fields in (_core.LOONG_ACTION, _core.LOONG_LANE, _core.LOONG_INPUTS, _core.LOONG_MASK)
)
NAMES = _core.LOONG_PRIVILEGED
STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))  # x and y, north first
SPLITTER, RECKLESS = _core.LOONG_SCRIPTS.index("splitter"), _core.LOONG_SCRIPTS.index("reckless")
SOON = 8


# ---- The tables.


def flag(value: object) -> int:
    return 127 if value else 0


def share(part: int, whole: int) -> int:
    return min(127, part * 127 // whole)


def wide(value: int) -> int:
    for below, first, byte, width in ((64, 0, 0, 1), (256, 64, 64, 8), (1024, 256, 88, 32), (4096, 1024, 112, 205)):
        if value < below:
            return byte + (value - first) // width
    return 127


def few(count: int) -> int:
    return min(127, int(25 * math.log2(1 + count)))


def many(count: int) -> int:
    octave = int(math.log2(1 + count))
    return min(127, 12 * octave + 12 * (1 + count - 2**octave) // 2**octave)


# ---- The truth.


def twister(seed: int) -> Iterator[int]:
    """The 64-bit Mersenne twister."""
    bits = 2**64 - 1
    state = [seed]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) & bits)
    while True:
        for i in range(312):
            x = state[i] & ~0x7FFFFFFF & bits | state[(i + 1) % 312] & 0x7FFFFFFF
            state[i] = state[(i + 156) % 312] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        for y in state:
            y ^= y >> 29 & 0x5555555555555555
            y ^= y << 17 & 0x71D67FFFEDA60000 & bits
            y ^= y << 37 & 0xFFF7EEE000000000 & bits
            yield y ^ y >> 43


class Countdowns:
    """Rounds until the next attempt on every tile, -1 where nothing spawns; they do not depend on play."""

    def __init__(self, level: _core.LoongLevel, seed: int) -> None:
        self.owners: dict[tuple[int, int], tuple[int, int]] = {}
        self.level, self.random, self.round = level, twister(seed), -1
        for y, x in np.argwhere(level.gaps[..., 1] > 0).tolist():
            mirror = (
                level.height - 1 - y if "x" in level.symmetry else y,
                level.width - 1 - x if "y" in level.symmetry else x,
            )
            if (y, x) <= mirror:
                self.owners[y, x] = mirror
        self.left = {owner: self.draw(owner) for owner in self.owners}

    def draw(self, owner: tuple[int, int]) -> int:
        low, high = self.level.gaps[owner].tolist()
        return low + next(self.random) % (high - low + 1)

    def at(self, round_: int) -> NDArray[np.int64]:
        while self.round < round_:
            self.round += 1
            for owner in self.owners:
                self.left[owner] -= 1
                if self.left[owner] == 0:
                    self.left[owner] = self.draw(owner)
        countdown = np.full((self.level.height, self.level.width), -1)
        for owner, mirror in self.owners.items():
            countdown[owner] = countdown[mirror] = self.left[owner]
        return countdown


@dataclass
class Dragon:
    id: int
    slot: int
    team: int
    facing: int
    body: list[tuple[int, int]]  # x and y, head first


class Truth:
    """One lane as it stands, in Python."""

    def __init__(self, batch: _core.LoongMatches, level: _core.LoongLevel, lane: int, countdowns: Countdowns) -> None:
        self.row = batch.rows.view(LANE)[lane, 0]
        self.round = int(self.row["round"])
        self.level, self.width, self.height = level, level.width, level.height
        self.dragons = [Dragon(*each[:4], [tuple(tile) for tile in each[4].tolist()]) for each in batch.dragons(lane)]
        self.pearls, self.countdown = batch.pearls(lane), countdowns.at(self.round)
        self.holder: dict[tuple[int, int], Dragon] = {}
        for dragon in reversed(self.dragons):  # the one with the lowest id counts
            self.holder |= dict.fromkeys(dragon.body, dragon)

    def kind(self, x: int, y: int, direction: int) -> int:
        north, west = self.level.edges
        if direction in (0, 2):
            return int(north[(y + (direction == 2)) % self.height, x])
        return int(west[y, (x + (direction == 1)) % self.width])

    def distance(self, a: tuple[int, int], b: tuple[int, int]) -> int:
        dx, dy = (a[0] - b[0]) % self.width, (a[1] - b[1]) % self.height
        return min(dx, self.width - dx) + min(dy, self.height - dy)

    def near(self, a: tuple[int, int], others: list[Dragon]) -> int:
        return max((127 - wide(self.distance(a, other.body[0])) for other in others), default=0)

    def to_act(self, dragon: Dragon) -> bool:
        return bool(self.row["waiting"]) and dragon.id >= self.row["dragon"]

    def crop(self, me: Dragon, mirrored: bool) -> NDArray[np.int64]:
        forward = STEPS[me.facing]
        turns = [(me.facing + turn * (3 if mirrored else 1)) % 4 for turn in range(4)]  # forward, right, back, left
        right = STEPS[turns[1]]
        out = np.zeros((15, 15, 16), np.int64)
        for row, column in np.ndindex(15, 15):
            ahead, across = 7 - row, column - 7
            x = (me.body[0][0] + ahead * forward[0] + across * right[0]) % self.width
            y = (me.body[0][1] + ahead * forward[1] + across * right[1]) % self.height
            told = dict.fromkeys(NAMES["crop"], 0)
            sides = [self.kind(x, y, turn) for turn in turns]
            for name, side in zip(("forward", "right", "back", "left"), sides, strict=True):
                told[f"kelp {name}"] = flag(side == -2)
            told["portals"] = min(127, 32 * sum(side >= 0 for side in sides))
            told["pearl"] = flag(self.pearls[y, x])
            if self.countdown[y, x] > 0:
                told["attempt"] = max(1, 127 - wide(self.countdown[y, x] - 1))
            who = self.holder.get((x, y))
            if who is not None:
                side = "ally" if who.team == me.team else "enemy"
                told["self" if who is me else f"{side} head" if who.body[0] == (x, y) else f"{side} body"] = 127
                told["length"] = wide(len(who.body))
                told["clears"] = min(127, len(who.body) - who.body.index((x, y)))
                told["queen"], told["later"] = flag(who.id < 2), flag(who.id > me.id)
            out[row, column] = list(told.values())
        return out

    def versus(self, own: int) -> dict[str, int]:
        dragons, total, longest, queen = ([0, 0] for _ in range(4))
        for dragon in self.dragons:
            n = len(dragon.body)
            dragons[dragon.team] += 1
            total[dragon.team] += n
            longest[dragon.team] = max(longest[dragon.team], n)
            queen[dragon.team] += n * (dragon.id < 2)
        told = {"own dragons": wide(dragons[own]), "enemy dragons": wide(dragons[1 - own])}
        told["unit limit"] = wide(self.level.unit_limit)
        for name, numbers in (("total", total), ("longest", longest), ("queen", queen)):
            told |= {f"own {name}": wide(numbers[own]), f"enemy {name}": wide(numbers[1 - own])}
        for name, numbers in (("total", total), ("longest", longest), ("queen", queen)):
            lead = numbers[own] - numbers[1 - own]
            told |= {f"{name} ahead": wide(max(lead, 0)), f"{name} behind": wide(max(-lead, 0))}
        return told

    def scalars(self, me: Dragon) -> dict[str, int]:
        n, head, place = len(me.body), me.body[0], self.dragons.index(me)
        free, allies = math.ceil(n / 4), [each for each in self.dragons if each.team == me.team]
        enemies = [each for each in self.dragons if each.team != me.team]
        sides = (self.height, self.width)
        return self.versus(me.team) | {
            "length": wide(n),
            "free steps": wide(free),
            "payable steps": wide(free + n - 2),
            "queen": flag(me.id < 2),
            "team": flag(me.team),
            "round": share(self.round, 499),
            "rounds left": wide(499 - self.round),
            "place": share(place, len(self.dragons)),
            "later": wide(len(self.dragons) - 1 - place),
            "can split": flag(n >= 4 and len(allies) < self.level.unit_limit),
            "longest": flag(n == max(len(each.body) for each in allies)),
            "own queen near": self.near(head, [each for each in allies if each.id < 2]),
            "enemy queen near": self.near(head, [each for each in enemies if each.id < 2]),
            "ally near": self.near(head, [each for each in allies if each is not me]),
            "enemy near": self.near(head, enemies),
            "board ahead": wide(sides[me.facing % 2]),
            "board across": wide(sides[1 - me.facing % 2]),
        }

    def board(self, own: int) -> NDArray[np.int64]:
        out = np.zeros((16, 16, 16), np.int64)
        down, across = math.ceil(self.height / 16), math.ceil(self.width / 16)
        north, west = self.level.edges
        headed: dict[tuple[int, int], list[Dragon]] = {}  # by column and row of the block
        held: dict[tuple[int, int], list[Dragon]] = {}
        for each in self.dragons:
            headed.setdefault((each.body[0][0] // across, each.body[0][1] // down), []).append(each)
        for (x, y), each in self.holder.items():
            held.setdefault((x // across, y // down), []).append(each)
        for row, column in np.ndindex(16, 16):
            block = (slice(row * down, (row + 1) * down), slice(column * across, (column + 1) * across))
            tiles = north[block].size
            if not tiles:
                continue
            countdown = self.countdown[block]
            told = {
                "inside": share(tiles, down * across),
                "kelp": share(int((north[block] == -2).sum() + (west[block] == -2).sum()), 2 * down * across),
                "portals": few(int((north[block] >= 0).sum() + (west[block] >= 0).sum())),
                "spawns": share(int((countdown > 0).sum()), down * across),
                "pearls": many(int(self.pearls[block].sum())),
                "due": many(int(((countdown > 0) & (countdown <= SOON)).sum())),
            }
            for name, team in (("own", own), ("enemy", 1 - own)):
                heads = [each for each in headed.get((column, row), []) if each.team == team]
                mine = [each for each in held.get((column, row), []) if each.team == team]
                told |= {
                    f"{name} heads": few(len(heads)),
                    f"{name} segments": many(len(mine)),
                    f"{name} queen": many(sum(each.id < 2 for each in mine)),
                    f"{name} lengths": many(sum(len(each.body) for each in heads)),
                    f"{name} to act": few(sum(self.to_act(each) for each in heads)),
                }
            out[row, column] = [told[plane] for plane in NAMES["board"]]
        return out

    def team(self, own: int) -> dict[str, int]:
        queens = sorted((each for each in self.dragons if each.id < 2), key=lambda each: each.team != own)
        told = {
            "team": flag(own),
            "round": share(self.round, 499),
            "rounds left": wide(499 - self.round),
            "acts": flag(self.row["waiting"] and self.row["team"] == own),
            "pearls": many(int(self.pearls.sum())),
            "due": many(int(((self.countdown > 0) & (self.countdown <= SOON)).sum())),
            "spawns": share(int((self.countdown > 0).sum()), self.countdown.size),
            "kelp": share(int((self.level.edges == -2).sum()), 2 * self.countdown.size),
            "board width": wide(self.width),
            "board height": wide(self.height),
            "queens near": self.near(queens[0].body[0], queens[1:]) if len(queens) == 2 else 0,
        }
        for name, team in (("own", own), ("enemy", 1 - own)):
            mine = [each for each in self.dragons if each.team == team]
            told[f"{name} to act"] = wide(sum(self.to_act(each) for each in mine))
            told[f"{name} can split"] = wide(sum(len(each.body) >= 4 for each in mine))
        lead = sum(1 if each.team == own else -1 for each in self.dragons)
        return self.versus(own) | told | {"dragons ahead": wide(max(lead, 0)), "dragons behind": wide(max(-lead, 0))}


# ---- Maps and matches.


def made_map(pick: random.Random, width: int, height: int) -> bytes:
    """Pearls, kelp and portals on a board of this size, and bodies that lie across its rim."""
    stride = width + 1
    lines = [f"TILE {pick.randrange(width)} {pick.randrange(height)} 1 {gap}" for gap in (1, 3, 9, 70, 300, 5000)]
    edges = pick.sample([2 * y * stride + x for y in range(1, height) for x in range(1, width)], 12)
    lines += [f"EDGE {edge} 1 0" for edge in edges[4:]]
    lines += [f"EDGE {edge} 2 {place // 2}" for place, edge in enumerate(edges[:4])]
    rows = pick.sample(range(height), 4)
    bodies = [f"{i % 2} 5 " + " ".join(f"{(x - i) % width} {row}" for x in range(5)) for i, row in enumerate(rows)]
    return simple_map(f"{width} {height}", tuple(bodies), tuple(lines))


def batch_of(
    levels: list[_core.LoongLevel], lanes: int, *, threads: int = 1, mirror: str | None = None
) -> _core.LoongMatches:
    options = {} if mirror is None else {"knowledge": True, "mirror": mirror}
    return _core.LoongMatches(levels, lanes, threads=threads, **options)


def go_on(batch: _core.LoongMatches, turns: int, a: int = SPLITTER, b: int = RECKLESS) -> None:
    scripts = np.tile(np.array([a, b], np.uint8), (batch.lanes, 1))
    actions = np.zeros((batch.lanes, ACTION.itemsize), np.uint8)
    for _ in range(turns):
        batch.decide(scripts, 5, actions)
        batch.act(actions)


def appraised(batch: _core.LoongMatches) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    crop, scalars = np.zeros((batch.lanes, 3600), np.uint8), np.zeros((batch.lanes, 32), np.uint8)
    batch.appraise(crop, scalars)
    return crop, scalars


def named(values: NDArray[np.uint8], names: list[str]) -> dict[str, int]:
    return dict(zip(names, values.tolist(), strict=True))


LEVELS = [load_level(random_map(random.Random(seed), repeats=seed % 5 == 0)) for seed in range(14)]


@pytest.mark.parametrize("mirror", [None, "always"])
def test_the_critic_is_told_the_truth(mirror: str | None) -> None:
    pick = random.Random(3)
    levels = LEVELS + [load_level(made_map(pick, *size)) for size in ((7, 7), (256, 256), (100, 33), (14, 17))]
    batch = batch_of(levels, len(levels), mirror=mirror)
    truths = [Countdowns(level, seed) for seed, level in enumerate(levels)]
    facings, later = set(), 0
    for turns in (0, 1, 2, 3, 5, 9, 30, 60):
        go_on(batch, turns)
        crop, scalars = appraised(batch)
        lanes = np.arange(len(levels))
        boards, teams = batch.boards(lanes)
        rows = batch.rows.view(LANE)[:, 0]
        for lane in pick.sample(range(len(levels)), 7):
            truth = Truth(batch, levels[lane], lane, truths[lane])
            for team in (0, 1):
                assert (boards[lane, team].reshape(16, 16, 16) == truth.board(team)).all()
                assert named(teams[lane, team], NAMES["team"]) == truth.team(team)
            if not rows["waiting"][lane]:
                continue
            me = next(each for each in truth.dragons if each.id == rows["dragon"][lane])
            assert (crop[lane].reshape(15, 15, 16) == truth.crop(me, mirror == "always")).all()
            assert named(scalars[lane], NAMES["scalars"]) == truth.scalars(me)
            facings.add(me.facing)
            later += sum(each.id > me.id for each in truth.dragons)
    assert facings == {0, 1, 2, 3} and later > 50


def test_everyone_is_told_as_if_it_acted_now() -> None:
    batch = batch_of(LEVELS, len(LEVELS), mirror="always")
    go_on(batch, 150, SPLITTER, SPLITTER)
    asked = np.array([9, 2, 2, 0, 12, 6])
    lane, slot, dragon, team, crop, scalars = batch.everyone(asked)
    truths = [Truth(batch, LEVELS[i], i, Countdowns(LEVELS[i], i)) for i in asked.tolist()]
    everyone = [(int(i), each) for i, truth in zip(asked, truths, strict=True) for each in truth.dragons]
    told = zip(lane.tolist(), slot.tolist(), dragon.tolist(), team.tolist(), strict=True)
    assert list(told) == [(i, each.slot, each.id, each.team) for i, each in everyone] and len(everyone) > 20
    by_lane = dict(zip(asked.tolist(), truths, strict=True))
    for row in range(0, len(everyone), 3):
        i, me = everyone[row]
        me = next(each for each in by_lane[i].dragons if each.id == me.id)
        assert (crop[row].reshape(15, 15, 16) == by_lane[i].crop(me, True)).all()
        assert named(scalars[row], NAMES["scalars"]) == by_lane[i].scalars(me)
    # Of the one that waits it is what `appraise` tells.
    now, now_scalars = appraised(batch)
    rows = batch.rows.view(LANE)[:, 0]
    waits = (rows["waiting"] == 1)[lane] & (rows["slot"][lane] == slot)
    assert waits.sum() == rows["waiting"][asked].sum() > 0
    assert (crop[waits] == now[lane[waits]]).all() and (scalars[waits] == now_scalars[lane[waits]]).all()


def test_frames_are_those_of_the_dragons_that_wait() -> None:
    for mirror in ("never", "always"):
        batch = batch_of(LEVELS, len(LEVELS), mirror=mirror)
        go_on(batch, 60)
        inputs = np.zeros((batch.lanes, INPUTS.itemsize), np.uint8)
        batch.observe(inputs, np.zeros((batch.lanes, MASK.itemsize), np.uint8))  # the coin is thrown at a life's start
        frames = batch.frames()
        assert frames.dtype == np.int32 and frames.shape == (batch.lanes, 6)
        rows = batch.rows.view(LANE)[:, 0]
        for lane in range(batch.lanes):
            expected = [-1] * 6
            for _, slot, _, facing, body in batch.dragons(lane):
                if rows["waiting"][lane] and slot == rows["slot"][lane]:
                    level = LEVELS[lane % len(LEVELS)]
                    expected = [*body[0].tolist(), facing, int(mirror == "always"), level.width, level.height]
            assert frames[lane].tolist() == expected
        assert rows["waiting"].any() and not rows["waiting"].all()


def test_standings_and_rosters_are_those_of_the_bodies() -> None:
    batch = batch_of(LEVELS, len(LEVELS))
    for _ in range(3):
        go_on(batch, 90)
        standings, rosters = batch.standings(), batch.roster(np.arange(batch.lanes))
        assert standings.dtype == rosters.dtype == np.int32 and rosters.shape == (batch.lanes, batch.slots, 5)
        rows = batch.rows.view(LANE)[:, 0]
        for lane in range(batch.lanes):
            expected = np.zeros((2, 4), np.int32)
            roster = np.full((batch.slots, 5), -1)
            for dragon, slot, team, _, body in batch.dragons(lane):
                n = len(body)
                expected[team] += (1, n, n * (dragon < 2), 0)
                expected[team, 3] = max(expected[team, 3], n)
                roster[slot] = (dragon, team, *body[0], n)
            assert (standings[lane] == expected).all() and (rosters[lane] == roster).all()
            if rows["over"][lane]:
                ended = [rows[name][lane] for name in ("dragons", "total", "queen", "longest")]
                assert (standings[lane] == np.stack(ended, axis=1)).all()
    assert rows["over"].any() and not rows["over"].all()


def test_the_crop_lies_as_that_of_the_actor() -> None:
    batch, unmirrored = (batch_of(LEVELS, 60, mirror=mirror) for mirror in ("coin", "never"))
    inputs = np.zeros((batch.lanes, INPUTS.itemsize), np.uint8)
    mask = np.zeros((batch.lanes, MASK.itemsize), np.uint8)
    planes = [f"kelp {side}" for side in ("forward", "right", "back", "left")] + ["enemy head"]
    actor, critic = ([names.index(plane) for plane in planes] for names in (_core.LOONG_PLANES["crop"], NAMES["crop"]))
    compared, mirrored = 0, []
    for _ in range(6):
        go_on(batch, 7)
        go_on(unmirrored, 7)
        batch.observe(inputs, mask)
        known = inputs.view(INPUTS)[:, 0]["crop"]
        waits = batch.rows.view(LANE)[:, 0]["waiting"] == 1
        crop, straight = (appraised(each)[0].reshape(-1, 15, 15, 16) for each in (batch, unmirrored))
        fresh = (known[..., _core.LOONG_PLANES["crop"].index("fresh")] > 0) & waits[:, None, None]
        assert (crop[fresh][:, critic] == known[fresh][:, actor]).all()
        compared += int((crop[fresh][:, critic] > 0).sum())
        mirrored += (crop != straight).any(axis=(1, 2, 3))[waits].tolist()
    assert compared > 1000 and 50 < sum(mirrored) < len(mirrored) - 50


def test_any_number_of_threads_tells_the_same() -> None:
    lanes = 80
    told = []
    for threads in (1, 3):
        batch = batch_of(LEVELS, lanes, threads=threads)
        go_on(batch, 60)
        every = np.arange(lanes)
        told.append([*appraised(batch), *batch.boards(every), batch.standings(), batch.roster(every), batch.frames()])
        told[-1] += batch.everyone(every[::-1].copy())
    assert all((one == other).all() for one, other in zip(*told, strict=True))


def test_teams_that_change_their_names_change_their_boards() -> None:
    file = made_map(random.Random(8), 40, 30)
    swapped = b"\n".join(
        b" ".join([b"DRAGON", {b"0": b"1", b"1": b"0"}[line.split()[1]], *line.split()[2:]])
        if line.startswith(b"DRAGON ")
        else line
        for line in file.split(b"\n")
    )
    batches = [batch_of([load_level(each)], 1) for each in (file, swapped)]
    go_on(batches[0], 40, SPLITTER, RECKLESS)
    go_on(batches[1], 40, RECKLESS, SPLITTER)
    (board, team), (other_board, other_team) = (batch.boards(np.array([0])) for batch in batches)
    assert (board == other_board[:, ::-1]).all() and (board[0, 0] != board[0, 1]).any()
    both = np.array([name != "team" for name in NAMES["team"]])
    assert (team[..., both] == other_team[:, ::-1, both]).all() and (team[..., ~both] == [[[0], [127]]]).all()
    (crop, scalars), (other_crop, other_scalars) = (appraised(batch) for batch in batches)
    both = np.array([name != "team" for name in NAMES["scalars"]])
    assert (crop == other_crop).all() and (scalars[:, both] == other_scalars[:, both]).all()


def test_all_bytes_are_small_and_every_plane_is_used() -> None:
    levels = [*LEVELS, load_level(made_map(random.Random(1), 30, 50))]
    batch = batch_of(levels, 60)
    highest = {name: np.zeros(len(NAMES[name]), np.int64) for name in NAMES}
    for _ in range(12):
        go_on(batch, 40)
        every = np.arange(batch.lanes)
        board, team = batch.boards(every)
        crop, scalars = batch.everyone(every)[4:]
        for name, values in (("board", board), ("crop", crop), ("scalars", scalars), ("team", team)):
            highest[name] = np.maximum(highest[name], values.reshape(-1, len(NAMES[name])).max(axis=0))
    for name, values in highest.items():
        unused = [plane for plane, value in zip(NAMES[name], values.tolist(), strict=True) if value == 0]
        assert not unused and values.max() <= 127, name


@pytest.mark.parametrize("field", list(NAMES))
def test_the_document_names_all_planes_in_their_order(field: str) -> None:
    text = (Path(__file__).resolve().parents[1] / "docs" / "loong-knowledge.md").read_text()
    part = text.partition(f"**privileged {field}** [")[2].partition("**")[0].partition("\n\n`")[0].partition("\n## ")[0]
    names = re.findall("`([^`]+)`", "".join(line.split("|")[1] for line in part.splitlines() if line.startswith("| `")))
    assert names == NAMES[field]


def test_arrays_and_lanes_that_are_none_are_refused() -> None:
    batch = batch_of(LEVELS, 2)
    crop, scalars = np.zeros((2, 3600), np.uint8), np.zeros((2, 32), np.uint8)
    with pytest.raises(ValueError, match="crop must be"):
        batch.appraise(crop[:1].copy(), scalars)
    with pytest.raises(ValueError, match="scalars must be"):
        batch.appraise(crop, scalars[:, :31].copy())
    for call in (batch.boards, batch.roster, batch.everyone):
        with pytest.raises(IndexError, match="lane out of range"):
            call(np.array([0, 2]))
    scripts = np.full((2, 2), 255, np.uint8)
    scripts[1, 0] = 200
    with pytest.raises(ValueError, match="lane 1: there are only"):
        batch.play(scripts, 0)
