"""Loong as a decision stream: ids, rewards, results, levels, states; what it plays is what the text engine plays."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from loong_maps import random_map, simple_map

import sparring
from sparring import _core
from sparring.errors import SparringError
from sparring.games import registry
from sparring.games.api import Structured
from sparring.games.checker import check_game
from sparring.games.loong import Loong, LoongOutcome
from sparring.games.loong_rows import ACTION, LANE, SCRIPTS, move, random_actions, send, set_protocol, split, sprint
from sparring.games.replaying import choose, first_difference, play
from sparring.judge.native import NativeEngine
from sparring.levels.pool import MapPool, build_pool, named_maps
from sparring.policies.scripted import ScriptedPolicy

MAPS = 8


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> MapPool:
    folder = tmp_path_factory.mktemp("maps")
    for index in range(MAPS):
        (folder / f"{index}.map").write_bytes(random_map(random.Random(100 + index)))
    return build_pool(generated=0, folders=[folder])


def play_out(game: Loong, policy: ScriptedPolicy) -> dict[int, LoongOutcome]:
    """Play every lane's match to its end; by lane the outcome that brought it."""
    ended: dict[int, LoongOutcome] = {}
    while len(rows := game.decisions()):
        outcome = game.act(policy.act(rows))
        ended |= dict.fromkeys(outcome.ended.tolist(), outcome)
    return ended


def test_it_passes_the_checker(pool: MapPool) -> None:
    def loong(*, lanes: int, seed: int, threads: int = 1) -> Loong:
        return Loong(lanes=lanes, seed=seed, threads=threads, maps=pool)

    assert len(check_game(loong, lanes=4, decisions=120, rebirth=True)) == 11


def test_with_inputs_it_passes_the_checker(pool: MapPool) -> None:
    def loong(*, lanes: int, seed: int, threads: int = 1) -> Loong:
        return Loong(lanes=lanes, seed=seed, threads=threads, maps=pool, observe="inputs")

    assert len(check_game(loong, lanes=4, decisions=120, rebirth=True)) == 11


def test_with_inputs_scripted_players_may_answer_some_rows(pool: MapPool) -> None:
    game = Loong(lanes=6, seed=2, maps=pool, observe="inputs", lean=True)
    other = Loong(lanes=6, seed=2, maps=pool)
    for _ in range(30):
        rows, same = game.decisions(), other.decisions()
        assert torch.equal(rows.dragon, same.dragon)
        done = game.scripted(rows, "legal")
        outcome = game.act(torch.full((len(rows),), -1), done)
        assert torch.equal(other.act(other.scripted(same, "legal")).ended, outcome.ended)
        game.restart(outcome.ended)
        other.restart(outcome.ended)
    rows = game.decisions()
    with pytest.raises(SparringError, match=r"loong: lane \d: -1 is no choice"):
        game.act(torch.full((len(rows),), -1))
    with pytest.raises(SparringError, match=r"actions must be int64 \[6\], got torch.uint8"):
        game.act(torch.zeros(6, dtype=torch.uint8))
    assert game.decisions() is rows


def test_every_life_has_its_decisions_in_a_row_and_its_slot_to_itself(pool: MapPool) -> None:
    game = Loong(lanes=6, seed=2, maps=pool)
    policy = ScriptedPolicy(game, "splitter", "reckless", seed=3)
    made: dict[tuple[int, int], list[int]] = defaultdict(list)
    places: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    rounds: dict[tuple[int, int], list[int]] = defaultdict(list)
    for _ in range(600):
        rows = game.decisions()
        assert len(set(rows.lane.tolist())) == len(rows)
        named = (rows.lane, rows.dragon, rows.decision, rows.agent, rows.team, rows.round)
        for lane, dragon, decision, agent, team, round in zip(*(column.tolist() for column in named), strict=True):
            made[lane, dragon].append(decision)
            places[lane, dragon].add((agent, team))
            rounds[lane, dragon].append(round)
        game.act(policy.act(rows))
    assert all(decisions == list(range(len(decisions))) for decisions in made.values())
    assert all(len(place) == 1 for place in places.values())
    assert all(told == list(range(told[0], told[0] + len(told))) for told in rounds.values())
    slots = [(lane, agent) for (lane, _), place in places.items() for agent, _ in place]
    assert len(slots) > len(set(slots))  # some slots were taken again


def test_a_match_of_the_stream_is_the_match_that_the_judge_plays(pool: MapPool) -> None:
    game = Loong(lanes=3, seed=5, maps=pool)
    drawn = torch.tensor([[2, 11], [4, -1], [7, 2**62]])
    game.restart(torch.arange(3), drawn[:, 0], drawn[:, 1])
    policy = ScriptedPolicy(game, "legal", "reckless", seed=1)
    replies: dict[int, list[bytes]] = {0: [], 1: [], 2: []}
    ended: dict[int, LoongOutcome] = {}
    while len(rows := game.decisions()):
        actions = policy.act(rows)
        for lane, action in zip(rows.lane.tolist(), actions, strict=True):
            replies[lane].append(_core.loong_reply(action.numpy().tobytes()))
        outcome = game.act(actions)
        ended |= dict.fromkeys(outcome.ended.tolist(), outcome)
    for lane, level, seed in [(0, 2, 11), (1, 4, -1), (2, 7, 2**62)]:
        told = iter(replies[lane])
        judged = NativeEngine().run(pool[level].file, lambda _dragon, _block, told=told: next(told), seed=seed)
        assert next(told, None) is None
        result = game.results(ended[lane])[ended[lane].ended.tolist().index(lane)]
        assert (result["level"], result["seed"], result["round"]) == (level, seed % 2**64, judged.rounds)
        assert " AB"[result["winner"]].strip() == (judged.winner or "")
        assert result["reason"] == judged.end_reason
        assert result["dragons"].tolist() == [judged.a_dragons, judged.b_dragons]
        assert result["total"].tolist() == [judged.a_length, judged.b_length]
        assert result["queen"].tolist() == [judged.a_queen, judged.b_queen]
        assert result["longest"].tolist() == [judged.a_longest, judged.b_longest]


def test_at_the_end_the_living_and_the_last_to_act_are_paid_their_teams_result(pool: MapPool) -> None:
    game = Loong(lanes=12, seed=1, maps=pool)
    policy = ScriptedPolicy(game, "legal", "reckless")
    seen = set()
    while len(rows := game.decisions()):
        outcome = game.act(policy.act(rows))
        acted = len(rows)
        assert torch.equal(outcome.lane[:acted], rows.lane)
        running = ~torch.isin(outcome.lane, outcome.ended)
        assert (outcome.reward[running] == 0).all()
        for place, lane in enumerate(outcome.ended.tolist()):
            result = game.results(outcome)[place]
            pays = {0: [0, 0], 1: [1, -1], 2: [-1, 1]}[int(result["winner"])]
            last = outcome.last[outcome.last.lane == lane]
            actor = rows[rows.lane == lane]
            if result["dragons"].sum():
                counts = torch.bincount(last.team, minlength=2).tolist()
                assert counts == result["dragons"].tolist()
                lengths = game.view(last)["length"]
                assert [int(lengths[last.team.numpy() == team].sum()) for team in (0, 1)] == result["total"].tolist()
            else:
                assert torch.equal(last.obs, actor.obs)
            teams = dict(zip(last.agent.tolist(), last.team.tolist(), strict=True)) | {
                int(actor.agent): int(actor.team)
            }
            here = outcome.lane == lane
            paid = dict(zip(outcome.agent[here].tolist(), outcome.reward[here].tolist(), strict=True))
            assert paid == {agent: pays[team] for agent, team in teams.items()}
            expected = torch.zeros(game.agents)
            for agent, amount in paid.items():
                expected[agent] = amount
            assert torch.equal(outcome.score[place], expected)
            assert not outcome.truncated[place]
            seen |= {("won", int(result["winner"])), ("actor lives", int(actor.agent) in last.agent.tolist())}
    assert seen >= {("won", 1), ("won", 2), ("actor lives", True), ("actor lives", False)}


def test_a_match_that_nobody_survives_shows_the_last_to_act(tmp_path: Path) -> None:
    (tmp_path / "two.map").write_bytes(simple_map())
    game = Loong(lanes=2, maps=tmp_path)
    nothing = torch.zeros(2, ACTION.itemsize, dtype=torch.uint8)
    game.act(nothing)
    rows = game.decisions()
    outcome = game.act(nothing)
    assert outcome.ended.tolist() == [0, 1] and len(game.decisions()) == 0
    assert torch.equal(outcome.last.obs, rows.obs) and outcome.last.dragon.tolist() == [1, 1]  # type: ignore[attr-defined]
    assert (outcome.reward == 0).all() and (outcome.score == 0).all()
    assert game.results(outcome)["winner"].tolist() == [0, 0] and game.results(outcome)["dragons"].sum() == 0


def test_views_hold_what_the_block_says(pool: MapPool) -> None:
    game = Loong(lanes=2, seed=3, maps=pool)
    actions = set_protocol(send(move(game.view(game.decisions())["facing"]), 77), 3)
    game.act(actions)
    rows = game.decisions()
    told = game.view(rows)
    for place in range(2):
        block = dict(line.split(b" ", 1) for line in game._matches.core.block(place).splitlines()[:5])
        assert int(block[b"ROUND"]) == told["round"][place] == rows.round[place]
        assert int(block[b"LENGTH"]) == told["length"][place]
        assert block[b"DIR"] == b"NESW"[told["facing"][place] : told["facing"][place] + 1]
        assert int(block[b"NUM_MSGS"]) == told["messages"][place]


def test_levels_and_seeds_are_drawn_by_seed_lane_and_match(pool: MapPool) -> None:
    def drawn(order: list[list[int]], seed: int = 9) -> dict[tuple[int, int], tuple[int, int]]:
        game = Loong(lanes=4, seed=seed, maps=pool)
        matches = [0, 0, 0, 0]
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for lanes in [[0, 1, 2, 3], *order]:
            if found:
                game.restart(torch.tensor(lanes))
            for lane in lanes:
                row = game._matches.rows.numpy().view(LANE)[lane, 0]
                found[lane, matches[lane]] = (int(row["level"]), int(row["seed"]))
                matches[lane] += 1
        return found

    first = drawn([[0, 1, 2, 3], [2], [2, 0], [1, 3]])
    assert first == drawn([[3], [1, 2], [0, 2], [3, 0], [1], [2]])
    assert len({seed for _, seed in first.values()}) == len(first)
    assert len({level for level, _ in first.values()}) > 3
    assert first != drawn([[0, 1, 2, 3], [2], [2, 0], [1, 3]], seed=10)
    assert all(0 <= seed < 2**62 for _, seed in first.values())


def test_a_saved_game_goes_on_as_if_it_had_never_stopped(pool: MapPool) -> None:
    whole, half = (Loong(lanes=5, seed=4, maps=pool) for _ in range(2))
    play(half, 150)
    saved = half.state()
    resumed = Loong(lanes=5, seed=77, maps=pool)
    resumed.load_state(saved)
    assert not first_difference(play(whole, 300)[150:], play(resumed, 150))
    policy = ScriptedPolicy(resumed, "forager")
    again = Loong(lanes=5, maps=pool)
    again.load_state(resumed.state())
    assert torch.equal(policy.act(resumed.decisions()), ScriptedPolicy(again, "forager").act(again.decisions()))


def test_a_foreign_state_is_refused(pool: MapPool) -> None:
    game = Loong(lanes=2, maps=pool)
    saved = game.state()
    with pytest.raises(SparringError, match="other lanes, maps or options: lanes does not fit"):
        Loong(lanes=3, maps=pool).load_state(saved)
    with pytest.raises(SparringError, match="other lanes, maps or options: seed does not fit"):
        game.load_state({name: column for name, column in saved.items() if name != "seed"})
    backwards = MapPool(maps=pool.maps[::-1])
    with pytest.raises(SparringError, match="the state is of a game on other maps"):
        Loong(lanes=2, maps=backwards).load_state(saved)
    torn = saved | {"lanes": saved["lanes"].clone()}
    torn["lanes"][0, :8] = 255
    with pytest.raises(SparringError, match="loong: state of lane 0: it names a level that is not here"):
        game.load_state(torn)
    assert torch.equal(game.state()["lanes"], saved["lanes"])


def test_a_lane_without_room_names_itself_and_is_not_counted(pool: MapPool) -> None:
    game = Loong(lanes=3, seed=1, maps=pool)
    saved = game.state()
    fault = 8 + 55  # of the lane's level, then of Match in core/loong/state.h
    saved["lanes"][1, fault] = 1
    row = game._matches.rows.numpy().view(LANE)[1, 0]
    where = f"lane 1, map {pool[int(row['level'])].source}, match seed {int(row['seed'])}, round 0: more messages"
    with pytest.raises(SparringError, match="its match does not count") as caught:
        game.load_state(saved)
    assert where in str(caught.value)
    with pytest.raises(SparringError, match="lane 1, map"):
        game.act(choose(game, game.decisions()))


def test_action_rows_say_what_they_should() -> None:
    rows = torch.cat([move([3]), sprint([[0, 1, -1]]), split([5]), send(move([1]), 2**32 - 1)])
    rows = torch.cat([rows, send(send(move([1]), [2**40], [2]), 6, 0), set_protocol(move([2]), 3)])
    assert rows.dtype == torch.uint8 and rows.shape == (6, ACTION.itemsize)
    assert [_core.loong_reply(row.numpy().tobytes()).decode() for row in rows] == [
        "MOVE W\n",
        "MOVE NE\n",
        "SPLIT 5\n",
        "MOVE E\nSONAR 4294967295\n",
        "MOVE E\nSONAR N 6\nSONAR S 1099511627776\n",
        "PROTOCOL 3\nMOVE S\n",
    ]
    for wrong in ([[4]], [[0, -2]], [[-1]], [[0, -1, 1]], [[0] * 33], [0]):
        with pytest.raises(SparringError, match="loong: steps must be"):
            sprint(wrong)
    with pytest.raises(SparringError, match="toward must be directions"):
        send(move([0]), 1, 4)


def test_random_actions_are_legal_and_of_every_kind(pool: MapPool) -> None:
    game = Loong(lanes=200, seed=6, maps=pool)
    rows = game.decisions()
    assert isinstance(game.action, Structured)
    uniform = torch.from_numpy(np.random.default_rng(0).random((200, game.action.draws)))
    actions = random_actions(rows, uniform)
    fields, told = actions.numpy().view(ACTION)[:, 0], game.view(rows)
    moves, splits = fields["kind"] == 1, fields["kind"] == 2
    assert (moves | splits).all() and splits.any()
    assert (fields["split"][splits] >= 2).all() and (fields["split"] <= told["length"] - 2)[splits].all()
    payable = (told["length"] + 3) // 4 + told["length"] - 2
    assert (fields["step_count"] <= payable)[moves].all() and (fields["step_count"] > 1).any()
    assert (fields["steps"][:, 0] != (told["facing"] + 2) % 4)[moves].all()
    assert (fields["extras"] == 1).any()
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    assert torch.equal(random_actions(rows[order], uniform[order]), actions[order])


def test_scripted_players_decide_for_some_rows_as_for_all(pool: MapPool) -> None:
    game = Loong(lanes=10, seed=8, maps=pool)
    play(game, 7)
    rows = game.decisions()
    expected = np.zeros((10, ACTION.itemsize), np.uint8)
    pair = [SCRIPTS.index("hunter"), SCRIPTS.index("legal")]
    game._matches.core.decide(np.tile(np.array(pair, np.uint8), (10, 1)), 3, expected)
    policy = ScriptedPolicy(game, "hunter", "legal", seed=3)
    assert np.array_equal(policy.act(rows).numpy(), expected[rows.lane.numpy()])
    some = rows[torch.tensor([6, 1, 3])]
    assert np.array_equal(policy.act(some).numpy(), expected[some.lane.numpy()])
    assert np.array_equal(game.scripted(some, torch.tensor(pair)[some.team], seed=3).numpy(), policy.act(some).numpy())
    game.act(policy.act(rows))
    with pytest.raises(SparringError, match="for dragons that wait now"):
        policy.act(rows)
    with pytest.raises(SparringError, match="no scripted player farmer: there are forager, hunter"):
        game.scripted(game.decisions(), "farmer")
    with pytest.raises(SparringError, match="script must be a name, or int64"):
        game.scripted(game.decisions(), torch.full((10,), 255))


def test_make_takes_maps_of_all_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    game = sparring.make("loong", lanes=2, seed=7, maps="generated:3:2")
    assert isinstance(game, Loong) and [each.source for each in game.maps] == [
        each.source for each in build_pool(generated=2, seed=3)
    ]
    (kept,) = (tmp_path / "cache" / "sparring" / "maps").iterdir()
    assert kept.name.startswith("maps-3-2-")
    own = tmp_path / "own.map"
    own.write_bytes(simple_map())
    assert len(named_maps(str(own))) == len(named_maps(tmp_path)) == len(named_maps([own])) == 1
    monkeypatch.setattr("sparring.levels.pool.shipped_folder", lambda: tmp_path)
    assert len(named_maps("shipped")) == 1
    with pytest.raises(SparringError, match="maps generated:3: write"):
        named_maps("generated:3")
    with pytest.raises(SparringError, match=r"no map .*elsewhere"):
        named_maps(tmp_path / "elsewhere")
    with pytest.raises(SparringError, match="no map in an empty list"):
        named_maps([])


def test_wrong_use_is_one_line_and_changes_nothing(pool: MapPool) -> None:
    for option, words in {
        "lanes=0": "lanes must be 1 or more, got 0",
        "threads=0": "threads must be 1 or more, got 0",
        "observe=x": 'observe must be "view" or "inputs", got "x"',
    }.items():
        name, _, value = option.partition("=")
        with pytest.raises(SparringError, match=f"loong: {words}"):
            Loong(maps=pool, **{name: value if name == "observe" else int(value)})  # type: ignore[arg-type]
    game = Loong(lanes=2, maps=pool)
    before = game.state()
    for lanes, levels, seeds, words in [
        ([0, 0], None, None, "a lane is named twice"),
        ([2], None, None, "there is no lane 2: there are 2"),
        ([0], [MAPS], None, f"there is no level {MAPS}: there are {MAPS}"),
        ([0], [0, 1], None, "1 lanes, but levels of shape"),
        ([0], [0], [0, 1], "1 lanes, but seeds of shape"),
    ]:
        given = [None if numbers is None else torch.tensor(numbers) for numbers in (levels, seeds)]
        with pytest.raises(SparringError, match=words):
            game.restart(torch.tensor(lanes), *given)
    with pytest.raises(SparringError, match=r"actions must be uint8 \[2, 80\], got torch.float32"):
        game.act(torch.zeros(2, 80))
    with pytest.raises(SparringError, match="lane 1: not an action"):
        game.act(torch.tensor([[0], [255]], dtype=torch.uint8).expand(2, 80))
    after = game.state()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_other_games_do_not_wait_for_loong() -> None:
    assert not [value for value in vars(registry).values() if "loong" in getattr(value, "__module__", "").split(".")]


def test_a_map_that_is_too_big_for_a_lane_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "big.map"
    path.write_bytes(simple_map("256 256", lines=("UNIT_LIMIT 40000",)))
    with pytest.raises(SparringError, match=r"^loong: \S+big\.map: the map is too big for this engine"):
        sparring.make("loong", maps=str(path))
