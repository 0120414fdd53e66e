"""Rollouts of Loong, held against a log of decisions that was kept by asking the engine."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from loong_maps import simple_map
from nodes_by_dicts import nodes_by_dicts
from torch import Tensor
from watched_loong import FORAGER, NOBODY, RECKLESS, SPLITTER, Event, Moment, Restart, Watched, pond

from sparring.games.loong_choices import INPUTS, PLANES
from sparring.learn import rollout as rollout_module
from sparring.learn.auxiliary import rounds_ahead, targets
from sparring.learn.noise import choice_uniforms
from sparring.learn.returns import advantages
from sparring.learn.rollout import Collector, Nodes, Rollout, potentials
from sparring.policies.actions import NO_CLAIM
from sparring.policies.loong import Teacher, preset

GAMMA, LAMBDA = 0.9, 0.7
PAIRS = ((NOBODY, NOBODY), (NOBODY, RECKLESS), (SPLITTER, NOBODY), (NOBODY, FORAGER))


def mixed(lane: int, match: int) -> tuple[int, int]:
    return PAIRS[(lane + match) % len(PAIRS)]


def collector(game: Watched, *, seed: int = 3) -> Collector:
    torch.manual_seed(0)
    teacher = Teacher(preset("tiny"), seed=seed)
    with torch.no_grad():  # a policy that is far from uniform: no sprints, some splits, mostly straight on
        teacher.heads.logits.weight.mul_(30.0)
        teacher.heads.logits.bias[:3] = torch.tensor([2.5, -1.0, 0.0])
    return Collector(game, teacher, seed=5, stream=11)


@pytest.fixture
def game(tmp_path: Path) -> Watched:
    return Watched(lanes=6, seed=2, maps=pond(tmp_path, crowded=True))


def keys(rollout: Rollout) -> list[tuple[int, int, int, int]]:
    """Lane, match, dragon and round of each row."""
    columns = (rollout.block // 2, rollout.match, rollout.dragon, rollout.round)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def logged(game: Watched) -> dict[tuple[int, int, int, int], Event]:
    return {
        (event.lane, event.before.match, event.dragon, event.before.round): event
        for events in game.events
        for event in events
    }


def test_every_decision_of_learners_is_there_once_and_as_it_was(game: Watched) -> None:
    listener, player = Restart(game, mixed), collector(game)
    seen: Counter[str] = Counter()
    for _ in range(4):
        game.forget()
        rollout = player.collect(23, listener)
        log = logged(game)
        assert len(log) == len(rollout) == 6 * 23 == sum(map(len, game.events))
        assert sorted(log) == sorted(keys(rollout))
        nodes = rollout.nodes
        begun: set[tuple[int, int, int]] = set()
        for i, key in enumerate(keys(rollout)):
            event = log[key]
            team = event.before.teams[event.dragon]
            assert int(rollout.block[i]) == 2 * event.lane + team and event.before.learns[team]
            assert rollout.inputs[i].numpy().tobytes() == event.obs
            assert int(rollout.action[i]) == event.action
            assert nodes.crop[i].numpy().tobytes() == event.crop
            assert nodes.scalars[i].numpy().tobytes() == event.scalars
            assert float(nodes.potential[i]) == pytest.approx(event.before.potential(team))
            life = key[:3]
            assert bool(rollout.first[i]) == (life not in begun)
            begun.add(life)
            # The board is that of the lane's first decision in the round.
            start = next(
                each for each in game.events[event.lane] if (each.before.match, each.before.round) == (key[1], key[3])
            )
            board = int(nodes.board_of[i])
            assert (
                nodes.board[board].numpy().tobytes() + nodes.team[board].numpy().tobytes() == start.before.board[team]
            )
            assert int(nodes.block[board]) == int(rollout.block[i])
        seen["newborns"] += sum(event.decision == 0 and event.before.round > 0 for event in log.values())
        seen["scripted"] += sum(not all(event.before.learns) for event in log.values())
    assert listener.heard > 20 and seen["newborns"] > 10 and seen["scripted"] > 50


class Reference:
    """Where every stream of a rollout goes on, told by the log alone.

    A life goes on at its next decision, or where it lives when the rollout stops. Else it goes on in its team at the
    next start of a round at which it is not alive. A round starts with the lane's first decision in it.
    """

    def __init__(self, game: Watched, draw: random.Random) -> None:
        self.game = game
        self.now = [game.now(lane) for lane in range(game.lanes)]
        self.values: dict[Any, float] = {}
        self.draw = draw
        self.kinds: Counter[str] = Counter()

    def value(self, key: Any) -> float:
        return self.values.setdefault(key, self.draw.uniform(-1, 1))

    def starts(self, lane: int, match: int) -> list[int]:
        """Places in the lane's log where a round of a match starts."""
        events = self.game.events[lane]
        rounds = [(event.before.match, event.before.round) for event in events]
        return [i for i, key in enumerate(rounds) if key[0] == match and (i == 0 or rounds[i - 1] != key)]

    def advantage(self, lane: int, place: int, dragon: int | None, team: int) -> float:
        """dragon: that decides at `place` of the lane's log; None: its team, whose round starts there."""
        events = self.game.events[lane]
        match = events[place].before.match
        own = self.value((lane, place, dragon if dragon is not None else ("team", team)))
        phi = events[place].before.potential(team)
        over = match != self.now[lane].match
        if dragon is not None:
            after = [
                i
                for i in range(place + 1, len(events))
                if events[i].before.match == match and events[i].dragon == dragon
            ]
            if after:
                return self._go_on(own, phi, lane, after[0], dragon, team)
            if not over and dragon in self.now[lane].teams:
                return self._open(own, phi, lane, dragon, team)
        for i in self.starts(lane, match):
            if i > place and (dragon is None or dragon not in events[i].before.teams):
                self.kinds["died"] += dragon is not None
                return self._go_on(own, phi, lane, i, None, team)
        if not over:
            self.kinds["died, then cut"] += dragon is not None
            return self._open(own, phi, lane, None, team)
        winner = self.game.winners[lane, match]
        self.kinds[f"ended {winner}"] += 1
        return (0.0 if winner == 0 else 1.0 if winner - 1 == team else -1.0) - phi - own

    def _go_on(self, own: float, phi: float, lane: int, place: int, dragon: int | None, team: int) -> float:
        value = self.value((lane, place, dragon if dragon is not None else ("team", team)))
        potential = self.game.events[lane][place].before.potential(team)
        later = self.advantage(lane, place, dragon, team)
        return GAMMA * (value + potential) - own - phi + GAMMA * LAMBDA * later

    def _open(self, own: float, phi: float, lane: int, dragon: int | None, team: int) -> float:
        self.kinds["open"] += 1
        value = self.value((lane, "open", dragon if dragon is not None else ("team", team)))
        return GAMMA * (value + self.now[lane].potential(team)) - own - phi


def node_keys(game: Watched, rollout: Rollout) -> list[Any]:
    """What each node of a rollout stands for, in the words of `Reference.value`; None for the end of every match."""
    place = {
        (event.lane, event.before.match, event.dragon, event.before.round): i
        for events in game.events
        for i, event in enumerate(events)
    }
    found: list[Any] = [(key[0], place[key], key[2]) for key in keys(rollout)]
    nodes, n = rollout.nodes, len(rollout)
    boards = list(zip(nodes.block.tolist(), nodes.tick[nodes.valued].tolist(), strict=True))
    starts: dict[int, Any] = {}
    for block, tick in boards:
        lane, team = block // 2, block % 2
        if block not in starts:
            events = game.events[lane]
            rounds = [(event.before.match, event.before.round) for event in events]
            starts[block] = iter(
                [
                    i
                    for i in range(len(events))
                    if events[i].before.learns[team] and (i == 0 or rounds[i] != rounds[i - 1])
                ]
            )
        following = next(starts[block], None)
        if following is not None:
            assert tick == 2 * game.events[lane][following].before.round
        found.append((lane, "open" if following is None else following, ("team", team)))
    opened = [
        (lane, "open", dragon)
        for lane in range(game.lanes)
        for dragon, team in game.now(lane).teams.items()
        if game.now(lane).learns[team]
    ]
    assert nodes.valued.tolist() == list(range(n, n + len(boards)))
    assert nodes.opened.tolist() == list(range(n + len(boards), n + len(boards) + len(opened)))
    return [*found, *opened, None]


def checked_against_the_reference(game: Watched, rollout: Rollout, draw: random.Random) -> Counter[str]:
    reference = Reference(game, draw)
    nodes = rollout.nodes
    names = node_keys(game, rollout)
    value = torch.tensor([0.0 if name is None else reference.value(name) for name in names])
    assert (nodes.tick[nodes.successor[nodes.successor >= 0]] > nodes.tick[nodes.successor >= 0]).all()
    got = advantages(
        value.double(), nodes.potential.double(), nodes.reward, nodes.successor, nodes.tick, gamma=GAMMA, lam=LAMBDA
    )
    for name, node in zip(names, got.tolist(), strict=True):
        if name is None or name[1] == "open":
            assert node == 0.0
            continue
        lane, place, who = name
        team = who[1] if isinstance(who, tuple) else game.events[lane][place].before.teams[who]
        dragon = None if isinstance(who, tuple) else who
        assert node == pytest.approx(reference.advantage(lane, place, dragon, team), abs=1e-5), name
    return reference.kinds


def test_streams_and_advantages_equal_a_reference_that_follows_every_dragon(game: Watched) -> None:
    listener, player = Restart(game, mixed), collector(game)
    kinds: Counter[str] = Counter()
    for update in range(8):
        game.forget()
        rollout = player.collect(19, listener)
        kinds += checked_against_the_reference(game, rollout, random.Random(update))
    for kind in ("died", "died, then cut", "ended 0", "ended 1", "ended 2", "open"):
        assert kinds[kind] > 0, kinds


def test_streams_equal_those_that_are_looked_up_node_by_node(game: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    game.watching = False
    kinds: Counter[str] = Counter()
    find = rollout_module._nodes

    def checked(
        rows: Mapping[str, Tensor], block: Tensor, first: Tensor, teams: Any, results: Any, game: Watched
    ) -> Nodes:
        nodes = find(rows, block, first, teams, results, game)
        told = [torch.cat(column).tolist() for column in zip(*results._columns, strict=True)]
        winners = {(lane, match): winner for lane, match, winner in zip(*told, strict=True)}
        for name, expected in nodes_by_dicts(rows, block, first, teams, winners, game).items():
            found = getattr(nodes, name)
            assert found.dtype == expected.dtype and torch.equal(found, expected), name
        kinds["over"] += int((nodes.successor == len(nodes.successor) - 1).sum())
        kinds["won"] += int((nodes.reward > 0).sum())
        kinds["dead"] += int((nodes.successor[: len(block)] >= len(block)).sum())
        kinds["open"] += len(nodes.opened)
        return nodes

    monkeypatch.setattr(rollout_module, "_nodes", checked)
    listener, player = Restart(game, mixed), collector(game)
    for steps in (40, 1, 37, 3):
        player.collect(steps, listener)
    assert min(kinds.values()) > 20 and listener.heard > 20


class Straight:
    """A teacher without a network: every dragon goes straight on."""

    config = SimpleNamespace(memory=2)

    def eval(self) -> None: ...

    def step(self, inputs: Tensor, mask: Tensor, memory: Tensor) -> tuple[Any, Tensor]:
        action = torch.full((len(inputs),), NO_CLAIM << 32)
        tree = SimpleNamespace(sample=lambda uniforms: (action, torch.zeros(len(action), 6)))
        return tree, memory + 1


@pytest.mark.parametrize(("longer", "won"), [(0, 1.0), (1, -1.0), (None, 0.0)])
def test_the_round_limit_is_a_real_end(tmp_path: Path, longer: int | None, won: float) -> None:
    lengths = [3 if team == longer else 2 for team in (0, 1)]
    dragons = tuple(
        f"{team} {length} " + " ".join(f"{5 - i} {1 + 3 * team}" for i in range(length))
        for team, length in enumerate(lengths)
    )
    (tmp_path / "lanes.map").write_bytes(simple_map("7 7", dragons))
    game = Watched(lanes=1, maps=tmp_path)
    player = Collector(game, Straight(), seed=0, stream=0)  # type: ignore[arg-type]
    listener = Restart(game)
    game.watching = False
    player.collect(980, listener)
    game.watching = True
    assert listener.heard == 0
    game.forget()
    rollout = player.collect(30, listener)
    assert listener.heard == 1
    checked_against_the_reference(game, rollout, random.Random(0))
    last = [i for i, key in enumerate(keys(rollout)) if key[3] == 499]
    assert rollout.nodes.reward[last].tolist() == [won, -won]
    assert rollout.nodes.successor[last].tolist() == [len(rollout.nodes.reward) - 1] * 2


def test_memory_follows_a_life_over_rollouts_and_is_empty_at_its_birth(game: Watched) -> None:
    listener, player = Restart(game, mixed), collector(game)
    lives: dict[tuple[int, int, int], list[tuple[Rollout, int]]] = {}
    for _ in range(3):
        game.watching = False
        rollout = player.collect(13, listener)
        for i, key in enumerate(keys(rollout)):
            lives.setdefault(key[:3], []).append((rollout, i))
    checked = over_rollouts = 0
    with torch.no_grad():
        for life in lives.values():
            memory = player.teacher.newborn(1)
            for rollout, i in life:
                torch.testing.assert_close(rollout.memory[i], memory[0], atol=1e-5, rtol=0)
                memory = player.teacher.step(rollout.inputs[i : i + 1], rollout.mask[i : i + 1], memory)[1]
                checked += 1
            over_rollouts += len({id(rollout) for rollout, _ in life}) > 1
    assert checked == 3 * 13 * 6 and over_rollouts > 5


def test_the_ratio_is_one_over_stretches_that_start_from_stored_memory(game: Watched) -> None:
    listener, player = Restart(game, mixed), collector(game)
    within = 0
    for most in (16, 1, 3):
        rollout = player.collect(31, listener)
        starts, lengths = rollout.stretches(most)
        assert int(lengths.sum()) == len(rollout) and int(lengths.max()) <= most
        life = rollout.first.long().cumsum(0)
        assert all(
            len(set(life[s : s + n].tolist())) == 1 for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)
        )
        with torch.no_grad():
            tree, _, _ = player.teacher.sequence(rollout.inputs, rollout.mask, lengths, rollout.memory[starts])
            now = tree.evaluate(rollout.action)
        torch.testing.assert_close(now.log_prob, rollout.log_prob, atol=1e-5, rtol=0)
        within += int((~rollout.first[starts]).sum())
    assert within > 20  # stretches that start within a life


def test_potentials_by_hand() -> None:
    # Dragons, total length, queen, longest.
    standings = torch.tensor([[[3, 20, 5, 12], [2, 14, 9, 9]], [[0, 0, 0, 0], [1, 2, 0, 2]]], dtype=torch.int32)
    first = 0.02 * 3 + 0.01 * 6 - 0.05 * 4
    second = -0.02 * 2 - 0.01 * 2
    np.testing.assert_allclose(potentials(standings), [[first, -first], [second, -second]], atol=1e-7)
    moment = Moment(0, 0, [], {0: 0, 4: 0, 1: 1, 3: 1}, {0: 5, 4: 12, 1: 9, 3: 5}, {}, [], [])
    assert moment.potential(0) == pytest.approx(0.02 * 3 + 0.01 * 3 - 0.05 * 4)


def test_noise_depends_on_who_decides_when_and_on_nothing_else() -> None:
    ids = torch.tensor(list(itertools.product((0, 7), (1, 2), (0, 9), (0, 499))))
    drawn = choice_uniforms(*ids.T, seed=4, stream=11)
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(1))
    assert torch.equal(choice_uniforms(*ids[order].T, seed=4, stream=11), drawn[order])
    assert torch.equal(choice_uniforms(*ids[3:4].T, seed=4, stream=11), drawn[3:4])
    assert len(drawn.unique(dim=0)) == len(ids) and drawn.unique().numel() == drawn.numel()
    assert not torch.equal(choice_uniforms(*ids.T, seed=5, stream=11), drawn)


def test_any_number_of_threads_plays_the_same(tmp_path: Path) -> None:
    folder = pond(tmp_path, crowded=True)
    rollouts = []
    for threads in (1, 2):
        game = Watched(lanes=6, seed=2, maps=folder, threads=threads)
        listener, player = Restart(game, mixed), collector(game)
        rollouts.append(player.collect(40, listener))
    for name in ("inputs", "mask", "action", "log_prob", "memory", "block", "match", "dragon", "round"):
        assert torch.equal(getattr(rollouts[0], name), getattr(rollouts[1], name)), name
    for name in ("successor", "tick", "reward", "potential", "board", "team", "board_of", "crop", "scalars"):
        assert torch.equal(getattr(rollouts[0].nodes, name), getattr(rollouts[1].nodes, name)), name


def crop_cell(
    head: tuple[int, int], facing: int, mirrored: bool, tile: tuple[int, int], size: tuple[int, int]
) -> int | None:
    """The cell of the crop in which a tile lies, the nearest one where there are several."""
    dx, dy = ((there - here + side // 2) % side - side // 2 for there, here, side in zip(tile, head, size, strict=True))
    forward = ((0, -1), (1, 0), (0, 1), (-1, 0))[facing]
    right = (-forward[1], forward[0]) if not mirrored else (forward[1], -forward[0])
    row, column = 7 - (dx * forward[0] + dy * forward[1]), 7 + dx * right[0] + dy * right[1]
    return row * 15 + column if 0 <= row < 15 and 0 <= column < 15 else None


@pytest.mark.parametrize("mirror", ["never", "always"])
def test_auxiliary_heads_are_asked_what_the_engine_says(tmp_path: Path, mirror: str) -> None:
    long = ("0 4 1 1 2 1 3 1 4 1", "1 4 6 4 5 4 4 4 3 4", "0 3 20 9 21 9 22 9", "1 3 2 8 2 9 2 10")
    (tmp_path / "wide.map").write_bytes(simple_map("23 12", long, tuple(f"TILE {x} 6 2 5" for x in range(23))))
    game = Watched(lanes=3, seed=2, maps=tmp_path, mirror=mirror)
    listener, player = Restart(game, mixed), collector(game)
    asked: Counter[str] = Counter()
    for _ in range(2):
        game.forget()
        rollout = player.collect(110, listener)
        log, rows = logged(game), torch.arange(len(rollout))
        told = targets(
            rows, rollout.inputs, rollout.nodes.crop[: len(rows)], rollout.block % 2, rollout.dragon, rollout.future
        )
        fresh = rollout.inputs.numpy().view(INPUTS)["crop"][:, 0, :, :, PLANES["crop"].index("fresh")] > 0
        for i, key in list(enumerate(keys(rollout)))[::4]:
            event = log[key]
            team = event.before.teams[event.dragon]

            def later(rounds: int, key: tuple[int, int, int, int] = key) -> Moment | None:
                at = (key[1], key[3] + rounds)
                found = (each.before for each in game.events[key[0]] if (each.before.match, each.before.round) == at)
                return next(found, None)

            for column, horizon in enumerate((16, 64)):
                then = later(horizon)
                length = float(told.length[i, column])
                assert np.isnan(length) if then is None else length == then.lengths.get(event.dragon, 0)
                asked[f"length {horizon} {'dead' if length == 0 else 'alive'}"] += then is not None
            shares = torch.zeros(226)
            then = later(3)
            enemies = [] if then is None else [each for each, side in then.teams.items() if side != team]
            for enemy in enemies:
                cell = crop_cell(event.head, event.facing, mirror == "always", then.bodies[enemy][0], (23, 12))  # type: ignore[union-attr]
                asked["elsewhere" if cell is None else "in the crop"] += 1
                shares[225 if cell is None else cell] += 1 / len(enemies)
            torch.testing.assert_close(told.heads[i], shares)
            contents = torch.zeros(225, dtype=torch.uint8)
            for content, tiles in (
                (1, event.before.pearls),
                (2, event.before.segments(team)),
                (3, event.before.segments(1 - team)),
                (255, event.before.bodies[event.dragon]),
            ):
                for tile in tiles:
                    for x, y in itertools.product(
                        (tile[0] - 23, tile[0], tile[0] + 23), (tile[1] - 12, tile[1], tile[1] + 12)
                    ):
                        cell = crop_cell(event.head, event.facing, mirror == "always", (x, y), (1000, 1000))
                        if cell is not None:
                            contents[cell] = content
            contents[torch.from_numpy(fresh[i]).flatten()] = 255
            assert torch.equal(told.unseen[i], contents)
            asked.update(f"content {content}" for content in contents.unique().tolist())
    kinds = {kind for kind, count in asked.items() if count}
    assert {f"content {content}" for content in (0, 1, 2, 3, 255)} <= kinds
    assert {"in the crop", "elsewhere", "length 16 alive", "length 16 dead"} <= kinds


def test_rounds_ahead_by_hand() -> None:
    match, round_ = torch.tensor([5, 5, 9, 9, 7]), torch.tensor([0, 17, 436, 499, 0])
    start_match = torch.tensor([9, 5, 5, 5, 9, 9])
    start_round = torch.tensor([452, 3, 16, 33, 439, 499])
    expected = [[1, 2, -1], [-1, 3, -1], [4, 0, -1], [-1, -1, -1], [-1, -1, -1]]
    assert rounds_ahead(match, round_, start_match, start_round).tolist() == expected
    assert rounds_ahead(torch.tensor([9]), torch.tensor([435]), start_match, start_round).tolist() == [[-1, -1, 5]]
