"""Served play: the same matches as anywhere else, whatever waits beside them, and no process left behind."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from loong_maps import random_map, simple_map
from torch import Tensor
from wat_bots import write_bot

from sparring import _core
from sparring.errors import SparringError
from sparring.games.loong import Loong, LoongDecisions
from sparring.games.loong_rows import ACTION, move, views
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import PlayedMatch, play_match
from sparring.judge.schedule import Job
from sparring.judge.served import ServedLoong, ServedRows, serve, served_entrant
from sparring.levels.maps import map_hash, read_map
from sparring.levels.pool import build_pool

SERVED = served_entrant("us", "0" * 64)
PEARLS = tuple(f"TILE {x} {y} 1 60" for x in range(12) for y in range(12))
OPEN = simple_map("12 12", ("0 4 1 1 2 1 3 1 4 1", "1 4 8 8 7 8 6 8 5 8"), ("UNIT_LIMIT 8", *PEARLS))
"""No kelp, many pearls: bots that go straight on live for a while."""


@pytest.fixture(scope="module")
def bots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entrant]:
    folder = tmp_path_factory.mktemp("bots")
    return {name: load_entrant(write_bot(folder, name)) for name in ("straight", "breeder", "crash", "loop", "flood")}


class Straight:
    """A policy: straight on."""

    def __init__(self) -> None:
        self.over: list[tuple[int, int]] = []

    def act(self, rows: LoongDecisions) -> tuple[Tensor, Tensor]:
        return move(views(rows.obs)["facing"]), -rows.round.float()

    def ended(self, lane: int, match: int) -> None:
        self.over.append((lane, match))


def as_played_alone(played: PlayedMatch, job: Job) -> PlayedMatch:
    """The match with the job's entrants, who do not play differently for being served."""
    named = {
        side: dataclasses.replace(getattr(played, side), kind=entrant.kind, name=entrant.name, hash=entrant.hash)
        for side, entrant in (("a", job.a), ("b", job.b))
    }
    return dataclasses.replace(played, **named)


def gone(pids: list[int]) -> bool:
    """Whether the processes end soon."""
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() and "Z" not in state(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


def job(a: Entrant, b: Entrant, *, map_bytes: bytes = OPEN, seed: int = 0) -> Job:
    return Job(a=a, b=b, map_name="open", map_hash=map_hash(read_map(map_bytes)), map_bytes=map_bytes, seed=seed)


@pytest.mark.parametrize("seats", ["AB", "A", "B"])
def test_a_served_scripted_player_plays_what_it_plays_natively_turn_by_turn(seats: str, tmp_path: Path) -> None:
    for index in range(6):
        (tmp_path / f"{index}.map").write_bytes(random_map(random.Random(300 + index), repeats=index == 5))
    pool = build_pool(generated=0, folders=[tmp_path])
    seeds = [2**64 - 1 - 7 * index for index in range(len(pool))]
    players = {"A": "splitter", "B": "legal"}
    game = Loong(lanes=len(pool), maps=pool)
    order = torch.arange(len(pool))
    game.restart(order, order, torch.from_numpy(np.array(seeds, np.uint64).view(np.int64)))
    native: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    ends: dict[int, list[object]] = {}
    scores: dict[int, Tensor] = {}
    while len(rows := game.decisions()):
        scripts = torch.tensor([_core.LOONG_SCRIPTS.index(players[team]) for team in "AB"])[rows.team]
        actions = game.scripted(rows, scripts)
        for lane, turn in zip(rows.lane.tolist(), turns(rows, actions), strict=True):
            if "AB"[turn[0]] in seats:
                native[lane].append(turn)
        outcome = game.act(actions)
        ends |= {int(row["level"]): end_of(row) for row in game.results(outcome)}
        scores |= dict(zip(outcome.ended.tolist(), outcome.score, strict=True))

    entrants = [SERVED if team in seats else load_entrant(players[team]) for team in "AB"]
    jobs = [job(*entrants, map_bytes=each.file, seed=seed) for each, seed in zip(pool, seeds, strict=True)]
    served: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    with ServedLoong(jobs, workers=2, threads=2) as here:
        assert here.lanes == 4
        while len(rows := here.decisions()):
            scripts = torch.tensor([_core.LOONG_SCRIPTS.index(players[team]) for team in "AB"])[rows.team]
            actions = here.scripted(rows, scripts)
            for lane, match, turn in zip(rows.lane.tolist(), rows.match.tolist(), turns(rows, actions), strict=True):
                served[here.index(lane, match)].append(turn)
            outcome = here.act(actions)
            assert outcome.reward.sum() == outcome.score.sum()
            for row, score in zip(here.results(outcome), outcome.score, strict=True):
                assert ends.pop(int(row["level"])) == end_of(row)
                if seats == "AB":
                    assert torch.equal(score[: len(scores[int(row["level"])])], scores[int(row["level"])][: len(score)])
    assert not ends and served == native and sum(map(len, native.values())) > 300


def turns(rows: LoongDecisions, actions: Tensor) -> Iterator[tuple[object, ...]]:
    """All that a served turn has in common with a native one: everything but its place."""
    ids = torch.stack([rows.team, rows.agent, rows.decision, rows.dragon, rows.round], dim=1).tolist()
    for at, row in enumerate(ids):
        yield (*row, rows.obs[at].numpy().tobytes(), actions[at].numpy().tobytes())


def end_of(row: np.void) -> list[object]:
    """What a row of LOONG_LANE says of the end."""
    return [row[name].tolist() for name in ("winner", "reason", "round", "dragons", "total", "queen", "longest")]


@pytest.mark.parametrize("bot", ["straight", "breeder", "crash", "loop", "flood"])
def test_against_a_bot_a_match_is_what_it_is_when_played_alone(bot: str, bots: dict[str, Entrant]) -> None:
    hunter = load_entrant("hunter")
    jobs = [job(SERVED, bots[bot], seed=5), job(bots[bot], SERVED, seed=6)]
    ended = {each.seed: played for each, played in serve("hunter", jobs, workers=1, threads=2)}
    for each in jobs:
        alone = dataclasses.replace(each, **{s: hunter for s in "ab" if getattr(each, s) is SERVED})
        expected = play_match(OPEN, alone.a, alone.b, seed=each.seed, map_name="open")
        assert as_played_alone(ended[each.seed], alone) == expected
    failed = [team for played in ended.values() for team in (played.a, played.b) if team.kind == "wasm"]
    assert all(team.errors > 0 for team in failed) == (bot in ("crash", "flood"))
    assert all(team.retries > 0 for team in failed) == (bot == "loop")


def test_a_learner_is_given_every_served_decision_once_with_its_probability_and_its_result(
    bots: dict[str, Entrant],
) -> None:
    jobs = [job(SERVED, bots["flood" if seed == 2 else "breeder"], seed=seed) for seed in range(5)]
    given: list[ServedRows] = []
    policy = Straight()
    ended = {each.seed: played for each, played in serve(policy, jobs, workers=2, threads=1, on_rows=given.append)}
    assert sorted(rows.index for rows in given) == list(range(5)) == sorted(ended)
    assert sorted(policy.over) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    for each in given:
        played = ended[each.index]
        rows = each.rows
        assert len(rows) == played.a.turns and (rows.team == 0).all()
        assert torch.equal(each.actions, move(views(rows.obs)["facing"]))
        assert torch.equal(each.log_prob, -rows.round.float()) and torch.equal(rows.round, rows.round.sort().values)
        assert (each.result == {"A": 1.0, "B": -1.0, None: 0.0}[played.winner]).all()
        for dragon in rows.dragon.unique():
            life = rows.dragon == dragon
            assert torch.equal(rows.decision[life], torch.arange(int(life.sum())))
            assert each.final[life].tolist() == [False] * (int(life.sum()) - 1) + [True]
    assert {float(each.result[0]) for each in given} == {1.0, -1.0}


def test_matches_under_load_are_those_played_alone(bots: dict[str, Entrant]) -> None:
    """Births by the hundred, more threads than cores, and other processes that want the cores, too."""
    jobs = [job(*((SERVED, bots["breeder"])[:: 1 if seed % 2 else -1]), seed=seed) for seed in range(20)]
    load = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(2)]
    try:
        ended = list(serve("legal", jobs, workers=2, threads=10))
    finally:
        for process in load:
            process.kill()
            process.wait()
    legal = load_entrant("legal")
    assert len(ended) == 20
    assert sum(team.born for _, played in ended for team in (played.a, played.b) if team.kind == "wasm") > 200
    for each, played in ended:
        alone = dataclasses.replace(each, **{s: legal for s in "ab" if getattr(each, s) is SERVED})
        assert as_played_alone(played, alone) == play_match(OPEN, alone.a, alone.b, seed=each.seed, map_name="open")


def test_a_process_that_dies_is_one_clear_error_and_none_is_left(bots: dict[str, Entrant]) -> None:
    jobs = [job(SERVED, bots["straight"], seed=seed) for seed in range(8)]
    game = ServedLoong(jobs, workers=2, threads=2)
    pids = game.pids

    class Murderer(Straight):
        def act(self, rows: LoongDecisions) -> tuple[Tensor, Tensor]:
            if rows.round.max() > 20:
                os.kill(pids[1], signal.SIGKILL)
            return super().act(rows)

    with (
        game,
        pytest.raises(SparringError, match=r"worker 1 of the served matches died \(signal 9\): the matches that"),
    ):
        list(game.play(Murderer()))
    assert len(pids) == 2 and gone(pids)


def test_ctrl_c_leaves_the_finished_matches_and_no_process(bots: dict[str, Entrant]) -> None:
    jobs = [job(SERVED, bots["straight"], seed=seed) for seed in range(40)]
    ended: list[PlayedMatch] = []
    with ServedLoong(jobs, workers=2, threads=2) as game:
        pids = game.pids

        class Impatient(Straight):
            def act(self, rows: LoongDecisions) -> tuple[Tensor, Tensor]:
                if len(ended) >= 3:
                    signal.raise_signal(signal.SIGINT)
                return super().act(rows)

        with pytest.raises(KeyboardInterrupt):
            for _, played in game.play(Impatient()):
                ended.append(played)
    assert len(ended) >= 3 and gone(pids)


def test_the_processes_end_with_their_parent_however_it_ends(tmp_path: Path, bots: dict[str, Entrant]) -> None:
    """It is killed, so that it can end nothing itself."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_served import *
jobs = [job(SERVED, load_entrant({str(bots["loop"].path)!r}), seed=seed) for seed in range(4)]
game = ServedLoong(jobs, workers=2, threads=2)
print(*game.pids, flush=True)
for _ in game.play(Straight()):
    pass
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert len(pids) == 2 and gone(pids)
    assert not [file for folder in tmp_path.glob("sparring-served-*") for file in folder.iterdir()]


def test_room_is_made_for_no_more_dragons_than_the_board_can_hold(bots: dict[str, Entrant]) -> None:
    wide = simple_map("9 9", dragons=("0 2 1 1 0 1", "1 2 6 6 7 6"), lines=("UNIT_LIMIT 2147483647",))
    jobs = [dataclasses.replace(job(SERVED, bots["straight"]), map_bytes=wide)]
    with ServedLoong(jobs, workers=1, threads=1) as game:
        assert game.agents == 40


def test_what_cannot_be_served_is_one_line(bots: dict[str, Entrant]) -> None:
    good = job(SERVED, bots["straight"])
    faulty = dataclasses.replace(good, map_bytes=b"MAP 3 3\n", map_name="tiny")
    for jobs, message in [
        ([], "needs a match"),
        ([good, job(bots["straight"], bots["straight"])], r"match 1 \(map open, seed 0\): nobody serves it"),
        ([faulty], r"match 0 \(map tiny, seed 0\): map must be at least 7x7, got 3x3"),
    ]:
        with pytest.raises(SparringError, match=message):
            ServedLoong(jobs)
    missing = dataclasses.replace(bots["straight"], path=Path("nowhere.wasm"))
    with pytest.raises(SparringError, match=r"match 0 \(map open, seed 0\) cannot be played: .*nowhere"):
        ServedLoong([job(SERVED, missing)], workers=1)
    with ServedLoong([good], workers=1) as game:
        with pytest.raises(SparringError, match=r"actions must be uint8 \[1, 80\], got torch.uint8 \[2, 80\]"):
            game.act(torch.zeros(2, ACTION.itemsize, dtype=torch.uint8))
        with pytest.raises(SparringError, match="lane 0, dragon 0: the row is no action"):
            game.act(torch.full((1, ACTION.itemsize), 255, dtype=torch.uint8))
        assert game.act(
            Straight().act(game.decisions())[0]
        ).ended.tolist() == [] and game.decisions().round.tolist() == [1]
