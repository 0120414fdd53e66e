"""The gate: a bot that is its student passes, another is caught and its first difference comes about again."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import fake_matches
import numpy as np
import pytest
from loong_maps import simple_map
from tiny_students import ORIGIN, SMALLEST, blob, open_map

from sparring import _core
from sparring.cli import main
from sparring.distil.quantise import IntegerStudent
from sparring.export import gate as gate_module
from sparring.export.bot import build_of, read_bot, write_student
from sparring.export.cases import Case, read_case, try_case
from sparring.export.gate import _Builds, gate_case
from sparring.export.reference import SECTIONS, Asked, Reference, differences, said, section_bytes
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.folder import settings
from sparring.judge.match import PlayedMatch
from sparring.judge.native import load_level
from sparring.judge.schedule import Job
from sparring.judge.sides import open_side

WEIGHTS = blob(SMALLEST)
STUDENT = IntegerStudent.from_blob(WEIGHTS)
LANE = np.dtype(_core.LOONG_LANE)


def reference(slots: int = 1) -> Reference:
    return Reference(STUDENT, build_of(WEIGHTS), slots)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bots") / "bot"
    write_student(WEIGHTS, ORIGIN, out=folder)
    return folder


@pytest.fixture(scope="module")
def builds(folder: Path) -> _Builds:
    return gate_module._builds(read_bot(folder), 0)


def build_of_files(files: dict[str, bytes], place: Path) -> Entrant:
    for name, content in (files | {"bot.toml": settings()}).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return load_entrant(place)


@pytest.fixture(scope="module")
def wrong(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> _Builds:
    """A bot that tells its network a length of one more."""
    bot = read_bot(folder)
    built = []
    for files in (bot.files, bot.inspection()):
        observe = files["loong/observe.h"]
        assert observe.count(b"table::wide(life.length)") == 1
        files = files | {
            "loong/observe.h": observe.replace(b"table::wide(life.length)", b"table::wide(life.length + 1)")
        }
        files["main.cpp"] += b"// another\n"
        built.append(build_of_files(files, tmp_path_factory.mktemp("wrong")))
    return _Builds(WEIGHTS, bot.sources, *built, most_turns=0)


def job(builds: _Builds, map_bytes: bytes, seed: int = 5) -> Job:
    opponent = load_entrant("foil")
    return Job(a=builds.submitted, b=opponent, map_name="m", map_hash="h", map_bytes=map_bytes, seed=seed)


def test_the_command_passes_a_bot_and_says_what_it_takes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maps = tmp_path / "maps"
    maps.mkdir()
    for side in (12, 13):
        (maps / f"{side}.map").write_bytes(open_map(side))
    command = [
        "gate",
        str(folder),
        "--maps",
        str(maps),
        "--matches",
        "4",
        "--against",
        "foil",
        "legal",
        "--most-turns",
        "150",
        "--json",
    ]
    assert main([*command, "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] and found["refused"] == [] and found["first_difference"] is None
    assert (found["matches"], found["maps"], found["disagreements"]) == (4, 2, 0)
    assert found["turns"] > 60
    assert {"first turns", "newborns", "splits", "sprints", "messages", "portals in sight"} <= found["seen"].keys()
    needed = ("first turns", "newborns", "splits", "messages", "portals in sight")
    assert all(found["seen"][what] > 0 for what in needed), found["seen"]
    assert 2_500_000 < found["points"]["p50"] <= found["points"]["p99"] <= found["points"]["max"] < 6_000_000
    assert set(found["parts"]) == {"read", "parse", "remember", "observe", "think", "choose", "reply"}
    assert found["memory"] < 48 << 20 and found["zip_bytes"] < 4 << 20
    assert found["hashes"]["teacher"] == ORIGIN.teacher
    assert not folder.with_name("bot.case.json").exists()


def test_all_that_speaks_against_a_bot_is_said() -> None:
    good = {"disagreements": 0, "missing": 0, "points": 60_000_000, "memory": 48 << 20, "retries": 0, "turns": 1}
    assert gate_module._refused(most_points=60_000_000, **good) == []
    for what, value, line in (
        ("disagreements", 2, "2 turns differ from the reference"),
        ("points", 60_000_001, "a turn took 60,000,001 points, and 60,000,000 are the most that pass"),
        ("memory", (48 << 20) + 1, "a turn took 50,331,649 bytes of memory, and the judge gives 50,331,648"),
        ("retries", 1, "it crashed 1 times before it said anything"),
        ("missing", 1, "1 matches had no result: the same command plays them again"),
        ("turns", 0, "no turn was compared"),
    ):
        assert gate_module._refused(most_points=60_000_000, **(good | {what: value})) == [line]


def test_every_kind_of_wrong_knowledge_is_a_difference(builds: _Builds) -> None:
    """One bit of any section, another choice, packet or reply."""
    level = load_level(open_map())
    batch = _core.LoongMatches([level], 1)
    batch.restart(np.array([0]), np.array([0]), np.array([5], np.uint64))
    init, block = batch.init(0), batch.block(0)
    with open_side(builds.submitted, seed=5, team="A") as plain, open_side(builds.inspection, seed=5, team="A") as side:
        for each in (plain, side):
            each.spawn(0, init)
        answer, told = plain.reply(0, block), said(side.reply(0, block).reply)
        (known,) = reference().ask([Asked(0, init, block)])
        assert told is not None and list(differences(known, told, answer)) == []
        for at, (section, content) in enumerate(zip(SECTIONS, known.sections, strict=True)):
            assert section_bytes(side, 0, section, len(content)) == content
            sections = list(known.sections)
            sections[at] = bytes([content[0] ^ 1]) + content[1:]
            changed = differences(known._replace(sections=tuple(sections)), told, answer)
            assert [each.what for each in changed] == [section]
    for what, other in (
        ("choice", known._replace(choice=known.choice ^ 1, exact=(known.choice ^ 1, True))),
        ("packet", known._replace(packet=known.packet ^ 1)),
        ("quantised student", known._replace(exact=(known.choice, False))),
    ):
        assert [each.what for each in differences(other, told, answer)] == [what]
    assert [each.what for each in differences(known, told, answer._replace(reply=b"MOVE N\n"))] == ["reply"]
    assert [each.what for each in differences(known, None, answer)] == ["inspected reply"]
    assert [each.what for each in differences(known, told, answer._replace(error="crashed"))] == ["reply"]


def test_turns_that_are_not_compared_count_against_the_limits(
    folder: Path, builds: _Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = gate_module._Compared(
        turns=10, afresh=0, seen=Counter(), points=[3_000_000], parts=[(0,) * 7], disagreements=0, first=None
    )

    def play_all(jobs: Iterable[Job], **_: object) -> Iterator[tuple[Job, PlayedMatch]]:
        for job in jobs:
            match = fake_matches.played(job, "A")
            own = replace(match.a, points_max=60_000_001, memory_max=(48 << 20) + 1)
            yield job, gate_module._GatedMatch(**{**vars(match), "a": own}, compared=compared)

    monkeypatch.setattr(gate_module, "_builds", lambda bot, most_turns: builds)
    monkeypatch.setattr(gate_module, "play_all", play_all)
    found = gate_module.gate(folder, maps="generated:5:1", against=["legal"])
    assert [line.split(", ")[0] for line in found.refused] == [
        "a turn took 60,000,001 points",
        "a turn took 50,331,649 bytes of memory",
    ]


def test_a_bot_that_observes_otherwise_is_caught_and_the_case_comes_about_again(
    folder: Path, builds: _Builds, wrong: _Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = tmp_path / "maps"
    maps.mkdir()
    (maps / "one.map").write_bytes(open_map())
    monkeypatch.setattr(gate_module, "_builds", lambda bot, most_turns: replace(wrong, most_turns=most_turns))
    path = tmp_path / "first.case.json"
    found = gate_module.gate(folder, maps=str(maps), against=["legal"], workers=1, case=path)
    assert not found.passed and found.disagreements > 0
    assert found.refused[0] == f"{found.disagreements:,} turns differ from the reference"
    case = read_case(path)
    assert len(case.blocks) == 1 and path.stat().st_size < 4000  # it differs from the first turn on
    assert case.line == found.first_difference
    assert any(each.startswith("scalars, byte ") and " by the reference, " in each for each in case.found)
    again = gate_case(folder, path)
    assert again == case
    monkeypatch.undo()
    assert gate_case(folder, path) is None  # the right bot
    assert main(["gate", str(folder), "--again", str(path)]) == 0


def test_a_difference_is_cut_down_to_the_turns_that_it_needs(builds: _Builds, wrong: _Builds) -> None:
    _, recorded = played(builds, open_map(), 40)
    case = Case(
        sources="s", map_name="m", map_hash="h", seed=5, team="A", dragon=0, init=recorded[0].init,
        blocks=tuple(each.block for each in recorded if each.slot == recorded[0].slot),
    )  # fmt: skip
    assert len(case.blocks) > 4
    assert try_case(case, reference(), builds.submitted, builds.inspection) is None
    small = gate_module._smallest(case, STUDENT, wrong)
    assert len(small.blocks) == 1 and small.found


def played(builds: _Builds, map_bytes: bytes, turns: int, noise: int = 0) -> tuple[int, list[Asked]]:
    """Let the reference play all dragons of a match, both builds beside it, and assert that they agree.

    noise: messages that nobody understands, added to what each dragon hears
    Returns the most memory of a turn, and what was asked.
    """
    pick = random.Random(7)
    batch = _core.LoongMatches([load_level(map_bytes)], 1)
    batch.restart(np.array([0]), np.array([0]), np.array([5], np.uint64))
    row = batch.rows.view(LANE)[:, 0]
    told, most = reference(256), 0
    asked: list[Asked] = []
    with open_side(builds.submitted, seed=5, team="A") as plain, open_side(builds.inspection, seed=5, team="A") as side:
        while len(asked) < turns and row["waiting"][0]:
            dragon, block = int(row["dragon"][0]), batch.block(0)
            if noise:
                count = int(block.split(b"NUM_MSGS ")[1].split()[0])
                lines = b"".join(b"%d\n" % pick.getrandbits(pick.choice((1, 32, 64))) for _ in range(noise))
                head, tail = block.split(b"NUM_MSGS %d\n" % count)
                block = head + b"NUM_MSGS %d\n" % (count + noise) + lines + tail
            if not any(each.slot == dragon for each in asked):
                for each in (plain, side):
                    each.spawn(dragon, batch.init(0))
            asked.append(Asked(dragon, batch.init(0), block))
            (known,) = told.ask(asked[-1:])
            answer = plain.reply(dragon, block)
            found = list(differences(known, said(side.reply(dragon, block).reply), answer))
            assert not found, f"turn {len(asked)}: {found}"
            most = max(most, answer.memory)
            batch.reply(0, known.reply)
    assert len(asked) > 10
    return most, asked


def corner(width: int, height: int) -> bytes:
    """Two teams around a corner of the board, pearls and walls there, portals that lead far away."""
    tiles = [f"TILE {x} {y} 1 {3 + (x * y) % 9}" for x in range(6) for y in range(6)]
    row = width + 1
    edges = [f"EDGE {2 * y * row + 2} 1 0" for y in range(2, 5)]
    edges += [f"EDGE {2 * 3 * row + 4} 2 7", f"EDGE {2 * (height - 1) * row + width - 1} 2 7"]
    far = f"{width - 1} {height - 1} {width - 2} {height - 1}"
    return simple_map(f"{width} {height}", ("0 4 1 1 0 1 0 0 1 0", "1 3 5 5 4 5 4 4", f"0 2 {far}"), (*tiles, *edges))


@pytest.mark.parametrize(("side", "turns"), [(7, 60), (256, 40)], ids=["smallest", "largest"])
def test_any_board_and_messages_that_nobody_understands(builds: _Builds, side: int, turns: int) -> None:
    memory, _ = played(builds, corner(side, side), turns, noise=40)
    assert memory < 16 << 20  # whatever the board: all memory is static


def test_a_fresh_process_is_asked_a_turn_that_was_asked_before(builds: _Builds) -> None:
    """After a crash in mid-match the judge asks a new process the same turn once more, and goes on with it."""
    _, asked = played(builds, open_map(), 40)
    life = [each for each in asked if each.slot == asked[0].slot]
    assert len(life) > 4
    for start in (1, len(life) - 2):
        fresh = reference()
        with open_side(builds.submitted, seed=5, team="A") as side:
            side.spawn(0, life[0].init)
            for turn in life[start:]:
                (known,) = fresh.ask([Asked(0, turn.init, turn.block)])
                assert side.reply(0, turn.block).reply == known.reply


def test_where_reading_took_the_points_of_thinking_it_replies_without(builds: _Builds) -> None:
    level = load_level(open_map())
    batch = _core.LoongMatches([level], 1)
    batch.restart(np.array([0]), np.array([0]), np.array([5], np.uint64))
    init, block = batch.init(0), batch.block(0)
    flood = block.replace(b"NUM_MSGS 0\n", b"NUM_MSGS 16000\n" + b"18446744073709551615\n" * 16_000)
    with open_side(builds.submitted, seed=5, team="A") as side:
        side.spawn(0, init)
        answer = side.reply(0, flood)
        assert answer.error is None and answer.points < 100_000_000
        assert answer.reply.startswith(b"PROTOCOL 3\nMOVE ") and answer.points > 35_000_000


def test_what_cannot_be_gated_is_refused_in_a_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, text in (
        ([str(tmp_path / "none")], "is no exported student"),
        ([str(folder), "--against", "forager", "nobody"], "no player nobody"),
        ([str(folder), "--maps", "generated:0"], "write generated:SEED:COUNT"),
        ([str(folder), "--matches", "0"], "a gate needs a match"),
        ([str(folder), "--matches", "-3"], "a gate needs a match"),
        ([str(folder), "--again", str(folder / "main.cpp")], "is no case that a gate of this Sparring wrote"),
    ):
        assert main(["gate", *words]) == 2
        said_ = capsys.readouterr()
        assert text in said_.err and said_.err.count("\n") == 1 and said_.out == ""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "main.cpp").write_text("an error\n")
    bot = replace(read_bot(folder), folder=broken)
    monkeypatch.setattr(gate_module, "read_bot", lambda _: bot)
    assert main(["gate", str(folder), "--matches", "1"]) == 2
    assert "does not compile: main.cpp:1:1: error: unknown type name 'an'" in capsys.readouterr().err
    assert not folder.with_name("bot.case.json").exists()
