"""One match in the judge: the toolkit's own run says the same, whatever the bots do, and nothing of it is left."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loong_maps import random_map, simple_map

import sparring
from sparring import _core
from sparring.errors import SparringError
from sparring.games.loong_rows import DEATHS
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import PlayedMatch, load_map, percentile, play_match
from sparring.judge.native import load_level
from sparring.judge.official import official_engine
from sparring.judge.replay_format import read_replay
from sparring.judge.sides import SCRIPT_SEED
from sparring.judge.tape import Recording, Turn
from sparring.levels.pool import named_maps
from sparring.policies.scripted import ScriptedPolicy

BOTS = Path(__file__).parent / "bots"
MOODS = re.findall(r"^  ([A-Z_]+)", (BOTS / "moody" / "moods.h").read_text(), re.MULTILINE)
SPLITS = 64
"""Its mood is the limit of all shipped maps."""


@pytest.fixture(scope="session")
def starter() -> Entrant:
    return load_entrant("starter")


@pytest.fixture(scope="session")
def moody() -> Entrant:
    return load_entrant(BOTS / "moody")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def moody_map(mood: str) -> bytes:
    """Where the moody bot is in this mood; it goes straight on into the other team's dragon, sooner or later."""
    limit = SPLITS if mood == "SPLITS" else 1 + MOODS.index(mood)
    tail = " ".join(f"{x} 4" for x in range(6, 0, -1))
    return simple_map(
        "15 9",
        dragons=("0 13 7 1 6 1 5 1 4 1 3 1 2 1 1 1 1 2 2 2 3 2 4 2 5 2 6 2", f"1 6 {tail}"),
        lines=(f"UNIT_LIMIT {limit}", "TILE 9 1 1 2", "TILE 9 4 1 2"),
    )


def turns_of(path: Path) -> list[Turn]:
    return [event for event in Recording(path) if isinstance(event, Turn)]


def toolkit_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, map_bytes: bytes, a: Entrant, b: Entrant, seed: int
) -> tuple[list[tuple[Any, ...]], Any]:
    """What `unswbc run --sandbox -v` does: every turn, and the replay."""
    from unswbc import run, sandbox

    turns = []
    ask, write = sandbox.SandboxBot.ask, sandbox.SandboxBot._write

    def heard(bot: Any, block: bytes) -> bytes:
        reply: bytes = ask(bot, block)
        turns.append((int(bot._name), block, reply, *bot.live, bot.error is not None))
        return reply

    def guarded(bot: Any, data: bytes) -> Any:  # the toolkit's own race would make this test fail now and then
        with bot._stdin.cv:
            return write(bot, data)

    monkeypatch.setattr(run, "EngineModule", official_engine)  # the same, without compiling it every time
    monkeypatch.setattr(sandbox.SandboxBot, "ask", heard)
    monkeypatch.setattr(sandbox.SandboxBot, "_write", guarded)
    (tmp_path / "the.map").write_bytes(map_bytes)
    bots = [str(a.path), str(b.path)]
    assert run.execute(str(tmp_path / "the.map"), bots, True, str(tmp_path / "its.replay"), False, True, seed=seed) == 0
    monkeypatch.undo()
    return turns, read_replay(tmp_path / "its.replay")


@pytest.mark.parametrize(
    "mood", ["starter", *(mood for mood in MOODS if mood not in ("LOOPS_WHEN_ALL_IS_OVER", "WAITS"))]
)
def test_replies_points_memory_and_replay_are_the_toolkits(
    mood: str, starter: Entrant, moody: Entrant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mood == "starter":
        a, map_bytes, seed = starter, load_map("caution")[1], 4
    else:
        a, map_bytes, seed = moody, moody_map(mood), 2**64 - 5
    played = play_match(map_bytes, a, starter, seed=seed, record=tmp_path / "ours", replay=tmp_path / "our.replay")
    theirs, replay = toolkit_run(monkeypatch, tmp_path, map_bytes, a, starter, seed)
    while [thread for thread in threading.enumerate() if thread.name.startswith("Thread-")]:
        time.sleep(0.01)  # the toolkit's own threads end by themselves in these moods
    ours = [
        (dragon, block, reply, points, memory, error is not None)
        for dragon, block, (reply, points, memory, error) in turns_of(tmp_path / "ours")
    ]
    assert ours == theirs and len(ours) == played.turns > (40 if mood == "starter" else 1)
    assert replace(read_replay(tmp_path / "our.replay"), bot_a=replay.bot_a, bot_b=replay.bot_b) == replay


FATE = {  # deaths of a single dragon, failed turns, forgiven crashes
    "OBEYS": ("W", 0, 0),
    "LOOPS": ("A", 1, 1),
    "EXITS": ("A", 1, 1),
    "TRAPS": ("A", 1, 1),
    "EXITS_HAVING_SPOKEN": ("A", 1, 0),
    "EXITS_ONCE": ("W", 0, 2),
    "EXITS_AFTER_EVERY_TURN": ("W", 0, 2),
    "SAYS_TOO_MUCH": ("A", 0, 0),
    "WRITES_TOO_OFTEN": ("A", 1, 0),
    "TAKES_ALL_MEMORY": ("W", 0, 0),
    "TALKS_NONSENSE": ("A", 0, 0),
    "SAYS_NOTHING": ("A", 0, 0),
    "NEVER_ENDS_A_TURN": ("W", 0, 0),
    "LOOPS_WHEN_ALL_IS_OVER": ("W", 0, 0),
}


@pytest.mark.parametrize("mood", FATE)
def test_what_goes_wrong_is_scored_as_the_judge_does(mood: str, moody: Entrant) -> None:
    limit = 1 + MOODS.index(mood)
    wall = "EDGE 34 1 0"  # on the way of the moody dragon: its third step leads into it
    board = simple_map("9 9", dragons=("0 2 1 1 0 1", "1 2 6 6 7 6"), lines=(f"UNIT_LIMIT {limit}", wall))
    played = play_match(board, moody, load_entrant("legal"), seed=1)
    why, errors, retries = FATE[mood]
    assert (played.a.deaths, played.a.errors, played.a.retries) == ({why: 1}, errors, retries)
    assert (played.winner, played.reason) == ("B", "elimination")
    assert played.a.forfeit == (errors > 0)
    assert (played.a.first_error or "").count("\n") == 0
    if errors:
        assert played.a.first_error is not None and played.a.first_error.startswith("round 0: dragon 0 ")
    if mood in ("LOOPS", "WRITES_TOO_OFTEN"):
        assert played.a.first_error == "round 0: dragon 0 exceeded CPU limit"
    if mood == "TAKES_ALL_MEMORY":
        assert played.a.memory_max is not None and 47 << 20 < played.a.memory_max <= 48 << 20
    if mood == "SAYS_TOO_MUCH":
        assert played.a.points_max is not None and 40_000_000 < played.a.points_max < 100_000_000


@pytest.mark.parametrize(("a", "b"), [("hunter", "reckless"), ("legal", "splitter"), ("forager", "legal")])
def test_a_scripted_player_does_what_it_does_in_a_lane(a: str, b: str, tmp_path: Path) -> None:
    turns = 0
    for seed in (3, 8, 2**64 - 9):
        map_bytes = random_map(random.Random(seed), repeats=seed == 8)
        played = play_match(map_bytes, load_entrant(a), load_entrant(b), seed=seed, record=tmp_path / "match")
        lanes = _core.LoongMatches([load_level(map_bytes)], 1)
        lanes.restart(np.array([0]), np.array([0]), np.array([seed], np.uint64))
        row = lanes.rows.view(np.dtype(_core.LOONG_LANE))[0, 0]
        scripts = np.array([[_core.LOONG_SCRIPTS.index(name) for name in (a, b)]], np.uint8)
        action = np.zeros((1, np.dtype(_core.LOONG_ACTION).itemsize), np.uint8)
        for dragon, block, answer in turns_of(tmp_path / "match"):
            assert row["waiting"] and (row["dragon"], lanes.block(0)) == (dragon, block)
            lanes.decide(scripts, SCRIPT_SEED, action)
            assert _core.loong_reply(action.tobytes()) == answer.reply
            lanes.act(action)
        assert row["over"] and row["round"] + 1 == played.rounds
        turns += played.turns
        assert row["winner"] == {None: 0, "A": 1, "B": 2}[played.winner]
        for team, result in enumerate((played.a, played.b)):
            figures = (result.dragons, result.total, result.queen, result.longest)
            assert figures == tuple(row[name][team] for name in ("dragons", "total", "queen", "longest"))
    assert turns > 100


def test_no_scripted_player_reads_what_is_no_block() -> None:
    init, block = b"ID 0\nTEAM A\nMAP 9 9\nUNIT_LIMIT 8\n", b"ROUND 0\n"
    with pytest.raises(ValueError, match="not a round block"):
        _core.loong_decide(0, init, block, 0, 0)
    with pytest.raises(ValueError, match="not an init block"):
        _core.loong_decide(0, block, block, 0, 0)
    with pytest.raises(ValueError, match="only 5 scripted players"):
        _core.loong_decide(5, init, block, 0, 0)


def test_a_newborn_is_not_taken_for_silent_while_it_starts(
    moody: Entrant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unswbc import sandbox

    map_bytes, legal = moody_map("SPLITS"), load_entrant("legal")
    play_match(map_bytes, moody, legal, seed=2, record=tmp_path / "calm")
    feed = sandbox._Pipe.feed

    def late(pipe: Any, data: bytes) -> None:
        if pipe.framer is None:  # what a dragon reads: time enough for it to start, and to wait for its text
            time.sleep(0.02)
        feed(pipe, data)

    monkeypatch.setattr(sandbox._Pipe, "feed", late)
    played = play_match(map_bytes, moody, legal, seed=2, record=tmp_path / "late")
    assert played.a.born > 2 and played.a.errors == 0
    assert (tmp_path / "late").read_bytes() == (tmp_path / "calm").read_bytes()


def test_matches_at_once_are_the_matches_one_by_one(starter: Entrant, moody: Entrant, tmp_path: Path) -> None:
    boards = [load_map("caution")[1], moody_map("SPLITS"), moody_map("EXITS_AFTER_EVERY_TURN"), moody_map("LOOPS")]

    def play(number: int, where: str) -> PlayedMatch:
        (tmp_path / where).mkdir(exist_ok=True)
        a = (starter, moody)[number % 4 > 0]
        return play_match(boards[number % 4], a, starter, seed=number, record=tmp_path / where / str(number))

    alone = [play(number, "alone") for number in range(16)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda number: play(number, "at once"), range(16))) == alone
    for number in range(16):
        assert (tmp_path / "at once" / str(number)).read_bytes() == (tmp_path / "alone" / str(number)).read_bytes()
    assert PlayedMatch.from_json(alone[0].json()) == alone[0]
    assert len({match.turns for match in alone}) > 4


def test_what_a_host_function_raises_stays_in_its_thread() -> None:
    """Two bots end at the same moment; with wasmtime's own variable for all threads they would swap their ends."""
    import wasmtime

    both = threading.Barrier(2, timeout=60)
    engine = wasmtime.Engine()
    module = wasmtime.Module(engine, '(module (import "host" "end" (func $end)) (func (export "go") (call $end)))')

    def end(name: str) -> str:
        def raise_it() -> None:
            raise RuntimeError(name)

        store = wasmtime.Store(engine)
        host = wasmtime.Func(store, wasmtime.FuncType([], []), raise_it)
        go = wasmtime.Instance(store, module, [host]).exports(store)["go"]
        both.wait()
        try:
            go(store)  # type: ignore[operator]
        except RuntimeError as error:
            return str(error)
        return "nothing was raised"

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            for _ in range(200):
                assert list(threads.map(end, ("one", "other"))) == ["one", "other"]
    finally:
        sys.setswitchinterval(interval)


def test_a_bot_that_never_reads_runs_out_of_time_and_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unswbc import turn

    monkeypatch.setattr(turn, "WALL_LIMIT_S", 0.2)
    played = play_match(moody_map("OBEYS"), stuck_bot(tmp_path), load_entrant("legal"), seed=1)
    assert played.a.deaths == {"A": 1} and played.a.forfeit
    assert played.a.first_error == "round 0: dragon 0 ran out of time"


WAITING = """
import sys
from pathlib import Path

from unswbc import turn

from sparring.judge import sandbox
from sparring.judge.entrants import load_entrant
from sparring.judge.match import play_match

turn.WALL_LIMIT_S = sandbox._ENDING_SECONDS = 0.2
moody, the_map = load_entrant(sys.argv[1]), Path(sys.argv[2]).read_bytes()
print(play_match(the_map, moody, load_entrant("legal"), seed=1).a.first_error)
"""


def test_a_bot_that_waits_for_ever_holds_nobody_up(moody: Entrant, tmp_path: Path) -> None:
    (tmp_path / "the.map").write_bytes(moody_map("WAITS"))
    command = [sys.executable, "-c", WAITING, str(moody.path), str(tmp_path / "the.map")]
    assert subprocess.check_output(command, text=True) == "round 0: dragon 0 ran out of time\n"


@pytest.mark.parametrize("where", ["before the host function is looked up", "while it is looked up"])
def test_ctrl_c_between_a_bot_and_its_host_is_not_lost(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wasmtime import _func

    bot = stuck_bot(tmp_path)
    place, name = (_func, "Caller") if where.startswith("before") else (_func.FUNCTIONS, "get")
    usual, calls = getattr(place, name), 0

    def interrupted(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return usual(*arguments)

    monkeypatch.setattr(place, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        play_match(moody_map("OBEYS"), bot, load_entrant("legal"), seed=1)
    assert calls < 10


def stuck_bot(folder: Path) -> Entrant:
    """The moody bot with another header, and no other source: what it is built from is all of the folder."""
    shutil.copytree(BOTS / "moody", folder / "stuck")
    header = folder / "stuck" / "moods.h"
    header.write_text(header.read_text().replace("STARTS_WITH_A_LOOP 0", "STARTS_WITH_A_LOOP 1"))
    return load_entrant(folder / "stuck")


def test_ctrl_c_ends_a_match_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    stuck_bot(tmp_path)
    command = [sys.executable, "-m", "sparring", "match", "arena", "stuck", "legal", "--record", "match.recording"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As a shell does with its jobs in the background, to which SIGINT comes by `kill` alone.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    while not (tmp_path / "match.recording.part").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "sparring: stopped at once\n")
    assert [path.name for path in tmp_path.iterdir()] == ["stuck"]


def test_what_cannot_be_played_is_said_before_it_starts(moody: Entrant, tmp_path: Path) -> None:
    board = moody_map("OBEYS")
    with pytest.raises(SparringError, match=r"seed of a match is a number from 0 to 2\^64 - 1, not -1"):
        play_match(board, moody, moody, seed=-1)
    with pytest.raises(SparringError, match=r"cannot write .*: there is no folder .*nowhere"):
        play_match(board, moody, moody, seed=1, replay=tmp_path / "nowhere" / "it")
    with pytest.raises(SparringError, match="map has no MAP line"):
        play_match(b"", moody, moody, seed=1, record=tmp_path / "it")
    for place, text in ((tmp_path, "it is a folder"), (Path(), "it is a folder"), (Path("/dev/null"), "it is no file")):
        with pytest.raises(SparringError, match=f"cannot write .*: {text}; choose another place"):
            play_match(board, moody, moody, seed=1, replay=place)
    with pytest.raises(SparringError, match=r"the recording and the replay cannot both be .*/it: name two files"):
        play_match(board, moody, moody, seed=1, replay=tmp_path / "it", record=tmp_path / "it")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SparringError, match=r"cannot read the map a+: File name too long"):
        load_map("a" * 300)
    with pytest.raises(SparringError, match=r"/dev/zero has more than 64 MiB: that is no map"):
        load_map("/dev/zero")
    with pytest.raises(SparringError, match=r"no map aren: neither a file nor one .*; did you mean arena\?"):
        load_map("aren")
    with pytest.raises(SparringError, match=r"cannot read the map .*nowhere\.map"):
        load_map(tmp_path / "nowhere.map")


def test_percentiles_are_the_toolkits() -> None:
    from unswbc import run

    pick = random.Random(1)
    for size in (1, 2, 3, 99, 100, 101, 1000):
        values = sorted(pick.choices(range(500), k=size))
        for percent in (1, 50, 99, 100):
            assert percentile(values, percent) == run._percentile(values, percent)
    assert percentile([], 50) is None


def test_a_lane_counts_deaths_as_the_judge_does() -> None:
    """By team, and by every cause."""
    maps = named_maps("generated:0:3")
    met: set[str] = set()
    for level, names in ((2, ("legal", "legal")), (0, ("reckless", "splitter"))):
        game = sparring.make("loong", maps=maps)
        game.restart(torch.tensor([0]), torch.tensor([level]), torch.tensor([9]))
        policy = ScriptedPolicy(game, *names)
        while not len((outcome := game.act(policy.act(game.decisions()))).ended):
            pass
        played = play_match(maps[level].file, *map(load_entrant, names), seed=9)
        for team, counted in zip((played.a, played.b), game.results(outcome)["deaths"][0].tolist(), strict=True):
            assert {letter: count for letter, count in zip(DEATHS, counted, strict=True) if count} == team.deaths
            met |= team.deaths.keys()
    assert met == DEATHS.keys()
