"""Scripted players inside of a game of Loong: they act unseen, and what is played is what they would have played."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loong_maps import random_map, simple_map
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.checker import check_game
from sparring.games.loong import Loong, LoongDecisions, LoongOutcome
from sparring.games.loong_rows import PLAYERS, SCRIPTS, VIEW
from sparring.games.replaying import choose, first_difference, play
from sparring.levels.pool import MapPool, build_pool

NOBODY = 255
SEED = 11
FORAGER, HUNTER, SPLITTER, LEGAL, RECKLESS, FOIL = range(len(PLAYERS))
PAIRS = torch.tensor(
    [[NOBODY, HUNTER], [FORAGER, NOBODY], [NOBODY, RECKLESS], [SPLITTER, NOBODY], [NOBODY, NOBODY]], dtype=torch.uint8
)
LEVELS, SEEDS = torch.tensor([1, 2, 3, 4, 6]), torch.tensor([5, 6, 7, 8, 9])
LANES = torch.arange(len(PAIRS))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> MapPool:
    folder = tmp_path_factory.mktemp("maps")
    maps = [random_map(random.Random(100 + index)) for index in range(30)]
    for index, file in enumerate([file for file in maps if file.count(b"\nDRAGON ") >= 4][:8]):
        (folder / f"{index}.map").write_bytes(file)
    return build_pool(generated=0, folders=[folder])


def learner(game: Loong, rows: LoongDecisions) -> Tensor:
    """What stands for a policy: another scripted player, with chance of its own."""
    return game.scripted(rows, "reckless", seed=77)


def play_on(game: Loong, turns: int) -> None:
    for _ in range(turns):
        game.act(learner(game, game.decisions()))


def told(rows: LoongDecisions) -> list[tuple[int, tuple[Any, ...]]]:
    """By row its lane, and what it says."""
    names = ("match", "team", "agent", "decision", "dragon", "round")
    columns = [getattr(rows, name).tolist() for name in names]
    return list(zip(rows.lane.tolist(), zip(*columns, map(bytes, rows.obs.numpy()), strict=True), strict=True))


def test_scripted_lanes_play_what_asked_players_play(pool: MapPool) -> None:
    hidden, asked = (Loong(lanes=len(PAIRS), seed=SEED, maps=pool) for _ in range(2))
    hidden.restart(LANES, LEVELS, SEEDS, PAIRS)
    asked.restart(LANES, LEVELS, SEEDS)
    assert torch.equal(hidden.learners, PAIRS == NOBODY) and asked.learners.all()

    seen: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    results: dict[int, bytes] = {}
    while len(rows := hidden.decisions()):
        assert hidden.learners[rows.lane, rows.team].all()
        for lane, row in told(rows):
            seen[lane].append(row)
        outcome = hidden.act(learner(hidden, rows))
        results |= dict(zip(outcome.ended.tolist(), map(bytes, outcome.results.numpy()), strict=True))

    expected: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    asked_results: dict[int, bytes] = {}
    while len(rows := asked.decisions()):
        script = PAIRS[rows.lane, rows.team].long()
        learns = script == NOBODY
        for lane, row in told(rows[learns]):
            expected[lane].append(row)
        actions = torch.empty(len(rows), asked.action.shape[0], dtype=torch.uint8)
        actions[learns] = learner(asked, rows[learns])
        actions[~learns] = asked.scripted(rows[~learns], script[~learns], seed=SEED)
        outcome = asked.act(actions)
        asked_results |= dict(zip(outcome.ended.tolist(), map(bytes, outcome.results.numpy()), strict=True))
    assert seen == expected and all(len(rows) > 3 for rows in seen.values())
    assert results == asked_results and len(results) == len(PAIRS)


def test_what_learners_remember_does_not_depend_on_who_asks_the_others(pool: MapPool) -> None:
    hidden, asked = (Loong(lanes=4, seed=SEED, maps=pool, observe="inputs") for _ in range(2))
    hidden.restart(LANES[:4], LEVELS[:4], SEEDS[:4], PAIRS[:4])
    asked.restart(LANES[:4], LEVELS[:4], SEEDS[:4])
    shown: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(40):
        rows = hidden.decisions()
        shown[0].extend(told(rows))
        hidden.act(choose(hidden, rows))
    while len(shown[1]) < len(shown[0]) + 40:
        rows = asked.decisions()
        if not len(rows):
            break
        script = PAIRS[rows.lane, rows.team].long()
        learns = script == NOBODY
        shown[1].extend(told(rows[learns]))
        actions = choose(asked, rows)
        given = torch.zeros(len(rows), 80, dtype=torch.uint8)
        if not learns.all():
            given[~learns] = asked.scripted(rows[~learns], script[~learns], seed=SEED)
        actions[~learns] = -1
        asked.act(actions, given)
    for lane in range(4):
        one, other = ([row for at, row in side if at == lane] for side in shown)
        shorter = min(len(one), len(other))
        assert one[:shorter] == other[:shorter] and shorter > 3


FOILS = torch.tensor([[NOBODY, FOIL], [FOIL, NOBODY], [NOBODY, HUNTER]], dtype=torch.uint8)
BESIDE = torch.arange(len(FOILS))
TURNS = 120


def beside_foils(pool: MapPool, threads: int = 1) -> Loong:
    """Learners against the foil, with what must not matter to it: mirrored lives, another build, chance."""
    game = Loong(lanes=len(FOILS), seed=SEED, maps=pool, observe="inputs", mirror="always", build=5, threads=threads)
    game.restart(BESIDE, LEVELS[BESIDE], SEEDS[BESIDE], FOILS)
    return game


def act_as_splitter(game: Loong) -> LoongOutcome:
    rows = game.decisions()
    return game.act(torch.full((len(rows),), -1), game.scripted(rows, "splitter", seed=77))


def test_the_foil_in_a_lane_plays_what_its_bot_plays(pool: MapPool) -> None:
    """tests/test_foil.py holds `decide_foil`, with its bot's build and without mirrors, to what the judge hears."""
    levels = [_core.loong_level(each.file) for each in pool]
    batch = _core.LoongMatches(levels, len(FOILS), knowledge=True, mirror="never", build=_core.LOONG_FOIL_BUILD)  # type: ignore[arg-type]
    batch.restart(BESIDE.numpy(), LEVELS[BESIDE].numpy(), SEEDS[BESIDE].numpy().astype(np.uint64))
    played = 8 + batch.lane_bytes  # of a state: what is beyond is what dragons remember

    game = beside_foils(pool)
    seen: dict[int, list[bytes]] = defaultdict(list)
    for _ in range(TURNS):
        state = game.state()["lanes"].numpy()
        for lane in game.decisions().lane.tolist():
            seen[lane].append(state[lane, :played].tobytes())  # with all messages on their way
        act_as_splitter(game)

    players = FOILS.numpy()
    foils = np.where(players == FOIL, 0, NOBODY).astype(np.uint8)
    others = np.where(players == HUNTER, HUNTER, NOBODY).astype(np.uint8)
    splitters = np.where(players == NOBODY, SPLITTER, NOBODY).astype(np.uint8)
    usual = np.array([list(_core.LOONG_FOIL.values())], np.int32)
    standing, actions = batch.rows.view(np.dtype(_core.LOONG_LANE))[:, 0], np.zeros((len(FOILS), 80), np.uint8)
    expected: dict[int, list[bytes]] = defaultdict(list)
    while any(len(expected[lane]) < len(seen[lane]) for lane in seen):
        learns = [lane for lane, row in enumerate(standing) if row["waiting"] and players[lane, row["team"]] == NOBODY]
        state = batch.state() if learns else state
        for lane in learns:
            expected[lane].append(state[lane, :played].tobytes())
        batch.decide_foil(foils, usual, actions)
        batch.decide(others, SEED, actions)
        batch.decide(splitters, 77, actions)
        batch.act(actions)
    for lane, turns in seen.items():
        assert len(turns) > 50 and turns == expected[lane][: len(turns)], f"lane {lane}"


def test_a_saved_game_keeps_what_its_foils_remember(pool: MapPool) -> None:
    game = beside_foils(pool, threads=2)
    for _ in range(TURNS):
        act_as_splitter(game)
    saved = game.state()
    other = Loong(lanes=len(FOILS), seed=1, maps=pool, observe="inputs", mirror="always", build=5)
    other.load_state(saved)
    assert torch.equal(other.state()["lanes"], saved["lanes"])
    for _ in range(TURNS):
        rows, same = game.decisions(), other.decisions()
        assert len(rows) > 1 and torch.equal(rows.lane, same.lane) and torch.equal(rows.obs, same.obs)
        act_as_splitter(game)
        act_as_splitter(other)
    assert torch.equal(game.state()["lanes"], other.state()["lanes"])


def test_learners_are_paid_and_shown_and_scripted_dragons_are_not(pool: MapPool) -> None:
    game = Loong(lanes=64, seed=4, maps=pool)
    lanes = torch.arange(64)
    game.restart(lanes, scripts=PAIRS[:4].repeat(16, 1))
    won = 0
    while len(rows := game.decisions()):
        outcome = game.act(learner(game, rows))
        for place, (lane, result) in enumerate(zip(outcome.ended.tolist(), game.results(outcome), strict=True)):
            team = int(game.learners[lane].long().argmax())
            pays = 0.0 if result["winner"] == 0 else 1.0 if result["winner"] == team + 1 else -1.0
            alive = {each.agent for each in game.dragons(lane) if each.team == team}
            actor = rows[rows.lane == lane]
            here = outcome.lane == lane
            paid = dict(zip(outcome.agent[here].tolist(), outcome.reward[here].tolist(), strict=True))
            assert paid == dict.fromkeys(alive | set(actor.agent.tolist()), pays)
            score = torch.zeros(game.agents)
            score[list(paid)] = pays
            assert torch.equal(outcome.score[place], score)
            last = outcome.last[outcome.last.lane == lane]
            assert set(last.agent.tolist()) == (alive or set(actor.agent.tolist())) and (last.team == team).all()
            won += pays == 1 and bool(alive)
    assert 5 < won < 60


def test_a_game_with_scripted_sides_passes_the_checker(pool: MapPool) -> None:
    class Sparring(Loong):
        def restart(
            self,
            lanes: Tensor,
            levels: Tensor | None = None,
            seeds: Tensor | None = None,
            scripts: Tensor | None = None,
        ) -> None:
            super().restart(lanes, levels, seeds, PAIRS[lanes % 2 * 2] if levels is None else None)

    def sparring(*, lanes: int, seed: int, threads: int = 1) -> Loong:
        return Sparring(lanes=lanes, seed=seed, threads=threads, maps=pool)

    assert len(check_game(sparring, lanes=4, decisions=150, rebirth=True)) == 11


def test_a_lane_of_two_scripted_players_ends_at_once_and_is_told_once(pool: MapPool) -> None:
    game = Loong(lanes=3, seed=SEED, maps=pool, threads=2)
    both = torch.tensor([[FORAGER, SPLITTER], [HUNTER, LEGAL]], dtype=torch.uint8)
    game.restart(LANES[:2], LEVELS[:2], SEEDS[:2], both)
    assert game.decisions().lane.tolist() == [2]
    saved = game.state()
    outcome = game.act(learner(game, game.decisions()))
    assert outcome.ended.tolist() == [0, 1] and len(outcome.last) == 0 and not outcome.score.any()
    assert outcome.lane.tolist() == [2]
    again = game.act(learner(game, game.decisions()))
    assert len(again.ended) == 0
    game.load_state(saved)
    assert game.act(learner(game, game.decisions())).ended.tolist() == [0, 1]

    batch = _core.LoongMatches([_core.loong_level(each.file) for each in pool], 2)  # type: ignore[misc]
    batch.restart(LANES[:2].numpy(), LEVELS[:2].numpy(), SEEDS[:2].numpy().astype(np.uint64))
    rows = batch.rows.view(np.dtype(_core.LOONG_LANE))[:, 0]
    actions = np.zeros((2, game.action.shape[0]), np.uint8)
    while rows["waiting"].any():
        batch.decide(both.numpy(), SEED, actions)
        batch.act(actions)
    assert (game.results(outcome) == rows).all()
    game.restart(LANES[:2])
    assert game.learners.all() and game.decisions().lane.tolist() == [0, 1, 2]


def test_a_match_can_end_before_a_learners_first_turn(tmp_path: Path) -> None:
    # The queens' heads touch: the splitter, which has nowhere else to go, kills both.
    kelp = [f"EDGE {edge} 1 0" for edge in (2 * 2 * 10 + 2, 2 * 3 * 10 + 2, (2 * 2 + 1) * 10 + 1)]
    dragons = ("0 2 2 2 1 2", "1 2 3 2 4 2")
    (tmp_path / "two.map").write_bytes(simple_map("9 9", dragons, tuple(kelp)))
    game = Loong(lanes=1, maps=tmp_path)
    game.restart(torch.tensor([0]), scripts=torch.tensor([[SPLITTER, NOBODY]], dtype=torch.uint8))
    rows = game.decisions()
    assert len(rows) == 0
    outcome = game.act(torch.zeros(0, game.action.shape[0], dtype=torch.uint8))
    assert outcome.ended.tolist() == [0] and len(outcome.lane) == len(outcome.last) == 0
    assert game.results(outcome)["dragons"].tolist() == [[0, 0]]


def test_a_saved_game_keeps_its_players(pool: MapPool) -> None:
    game, other = (Loong(lanes=len(PAIRS), seed=seed, maps=pool) for seed in (SEED, 1))
    game.restart(LANES, LEVELS, SEEDS, PAIRS)
    play_on(game, 9)
    other.load_state(game.state())
    assert torch.equal(other.learners, game.learners)
    assert not first_difference(play(game, 20), play(other, 20))


def test_scripts_that_are_none_are_refused(pool: MapPool) -> None:
    game = Loong(lanes=2, maps=pool)
    assert (*SCRIPTS, "foil") == PLAYERS
    before = game.decisions().obs.clone()
    for scripts, said in (
        (torch.zeros(1, 2, dtype=torch.uint8), r"scripts must be uint8 \[2, 2\]"),
        (torch.zeros(2, 2, dtype=torch.int64), r"scripts must be uint8 \[2, 2\]"),
        (torch.tensor([[0, 1], [200, 255]], dtype=torch.uint8), "there is no player 200: there are 6"),
    ):
        with pytest.raises(SparringError, match=said):
            game.restart(torch.arange(2), scripts=scripts)
    with pytest.raises(SparringError, match='the foil remembers: it plays in games with observe="inputs"'):
        game.restart(torch.arange(2), scripts=torch.tensor([[FORAGER, FOIL], [NOBODY, NOBODY]], dtype=torch.uint8))
    assert torch.equal(game.decisions().obs, before) and VIEW.itemsize == before.shape[1]


def test_what_a_critic_is_told_comes_row_by_row(pool: MapPool) -> None:
    game = Loong(lanes=12, seed=2, maps=pool)
    game.restart(torch.arange(4), scripts=torch.full((4, 2), LEGAL, dtype=torch.uint8))  # they end at once
    play_on(game, 5)
    rows = game.decisions()
    crop, scalars = game.appraise()
    assert 0 < len(rows) <= 8 and crop.shape == (len(rows), 3600) and scalars.shape == (len(rows), 32)
    everyone = game.everyone(rows.lane)
    ids = list(zip(everyone[0].tolist(), everyone[2].tolist(), strict=True))
    place = [ids.index(pair) for pair in zip(rows.lane.tolist(), rows.dragon.tolist(), strict=True)]
    assert (everyone[4][place] == crop).all() and (everyone[5][place] == scalars).all()
    roster = game.roster(rows.lane)
    assert (roster[torch.arange(len(rows)), rows.agent, 0] == rows.dragon).all()
    board, team = game.boards(rows.lane)
    assert board.shape == (len(rows), 2, 4096) and team.shape == (len(rows), 2, 32)
    assert game.standings().shape == (12, 2, 4)
    with pytest.raises(SparringError, match="there is no lane 12: there are 12"):
        game.boards(torch.tensor([3, 12]))
