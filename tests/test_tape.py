"""Recordings: a bot asked again does the same; another does not; what is damaged is refused; the verbs."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from loong_maps import random_map

from sparring.cli import main
from sparring.errors import SparringError
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import PlayedMatch, load_map, play_match
from sparring.judge.tape import Death, Inspection, Recording, Spawn, Turn, inspect_recording

MAP = random_map(random.Random(3))


@pytest.fixture(scope="module")
def starter() -> Entrant:
    return load_entrant("starter")


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """A short match of forager against reckless."""
    path = tmp_path / "scripted.recording"
    play_match(MAP, load_entrant("forager"), load_entrant("reckless"), seed=5, record=path, map_name="small")
    return path


def test_the_starter_does_all_of_it_again(starter: Entrant, tmp_path: Path) -> None:
    path = tmp_path / "match.recording"
    played = play_match(load_map("caution")[1], starter, starter, seed=4, record=path)
    born = played.a.born + played.b.born
    found = inspect_recording(path, starter)
    turns = played.turns
    assert found == Inspection(str(path), "starter", starter.hash, ("A", "B"), born, turns, turns, turns, turns, None)
    assert turns > 40 and born == 4
    again = tmp_path / "again.recording"
    assert play_match(load_map("caution")[1], starter, starter, seed=4, record=again) == played
    assert again.read_bytes() == path.read_bytes()
    assert play_match(load_map("caution")[1], starter, starter, seed=5, record=again) != played


def test_a_recording_holds_the_match(scripted: Path) -> None:
    recording = Recording(scripted)
    header = recording.header
    assert (header.map, header.map_name, header.seed) == (MAP, "small", 5)
    assert (header.a["name"], header.b["kind"]) == ("forager", "scripted")
    turns: list[tuple[int, bytes, bytes]] = []
    births: list[int] = []
    deaths: list[int] = []
    for event in recording:
        match event:
            case Spawn(dragon, init):
                births.append(dragon)
                assert init.startswith(b"ID %d\n" % dragon)
            case Turn(dragon, block, answer):
                turns.append((dragon, block, answer.reply))
            case Death(dragon, _, why):
                deaths.append(dragon)
                assert why in "WSOHA"
    from sparring.judge.official import official_engine

    told = iter(turns)

    def reply(dragon: int, block: bytes) -> bytes:
        asked, text, answer = next(told)
        assert (asked, text) == (dragon, block)
        return answer

    official_engine().run(header.map, reply, seed=header.seed)
    assert next(told, None) is None
    assert len(turns) > 50 and sorted(births) == list(range(len(births))) and len(deaths) > 0


def test_the_first_difference_is_told(scripted: Path, starter: Entrant) -> None:
    forager, legal = load_entrant("forager"), load_entrant("legal")
    turns = sum(isinstance(event, Turn) for event in Recording(scripted))
    same = inspect_recording(scripted, forager)
    assert (same.teams, same.first_difference) == (("A",), None) and 0 < same.turns < turns
    other = inspect_recording(scripted, legal, team="A")
    assert (other.turns, other.same_points) == (same.turns, same.turns)
    assert 0 < other.same_replies < other.turns
    first = next(
        (one, two)
        for one, two in zip(_replies(scripted, forager), _replies(scripted, legal), strict=True)
        if one[2] != two[2]
    )
    (round_number, dragon, was), (_, _, now) = first
    assert other.first_difference == f"round {round_number}, dragon {dragon}: reply was {was!r} and is {now!r}"
    metered = inspect_recording(scripted, starter, team="B")
    assert metered.same_points == metered.same_memory == 0
    with pytest.raises(SparringError, match=r"was played by forager \(\w{12}\) and reckless .*, not by legal"):
        inspect_recording(scripted, legal)


def _replies(path: Path, player: Entrant) -> list[tuple[int, int, str]]:
    """Round, dragon and reply of each of team A's recorded turns, by a scripted player."""
    from sparring.judge.sides import ScriptedSide

    side = ScriptedSide(player.name, seed=Recording(path).header.seed)
    replies = []
    for event in Recording(path):
        if isinstance(event, Spawn) and b"TEAM A" in event.init:
            side.spawn(event.dragon, event.init)
        elif isinstance(event, Turn) and event.dragon in side._inits:
            round_number = int(event.block.split()[1])
            replies.append((round_number, event.dragon, side.reply(event.dragon, event.block).reply.decode()))
    return replies


def test_other_points_and_memory_are_differences(starter: Entrant, tmp_path: Path) -> None:
    path = tmp_path / "match.recording"
    play_match(load_map("arena")[1], starter, load_entrant("legal"), seed=1, record=path)
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    turn = next(line for line in lines if isinstance(line, list) and line[0] == "turn" and line[4])
    for field, what in ((4, "points"), (5, "memory")):
        turn[field] += 1
        path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
        found = inspect_recording(path, starter)
        shown = f"{turn[field]:,} and is {turn[field] - 1:,}"
        assert found.first_difference == f"round 0, dragon 0: {what} was {shown}"
        assert (found.same_replies, found.same_points + found.same_memory) == (found.turns, 2 * found.turns - 1)
        turn[field] -= 1


def test_a_recording_that_is_damaged_is_refused_in_one_line(scripted: Path, tmp_path: Path) -> None:
    whole = scripted.read_bytes()
    text = gzip.decompress(whole)
    first, second, *_ = lines = text.splitlines(keepends=True)
    spoilt: list[bytes] = [b"", b"no gzip", text, whole[:-1], whole[: len(whole) // 2], whole + b"more"]
    pick = random.Random(1)
    for _ in range(40):
        content = bytearray(whole)
        content[pick.randrange(10, len(whole))] ^= 1 << pick.randrange(8)
        spoilt.append(bytes(content))
    born = json.loads(second)
    for damaged in (
        b"[]\n",
        b'{"recording": 1}\n',
        first.replace(b'"seed": 5', b'"seed": -5'),
        first.replace(b'"name": ', b'"nom": '),
        first + b"[" * 100_000 + b"\n",
        first + b'["turn"]\n',
        first + b'["birth", 1]\n',
        first + json.dumps([born[0], True, born[2]]).encode() + b"\n",
        first + json.dumps([born[0], born[1], "\u20ac"]).encode() + b"\n",
        first + json.dumps(["turn", 0, "", "", 1.5, 0, None]).encode() + b"\n",
        first + second + second,
        first + second + b'["turn", 0, "no block", "", 0, 0, null]\n',
        first,
        b"".join(lines[:-1]),
        text + second,
        text[:-1],
    ):
        spoilt.append(gzip.compress(damaged))
    path = tmp_path / "spoilt.recording"
    forager = load_entrant("forager")
    for content in spoilt:
        path.write_bytes(content)
        with pytest.raises(SparringError) as error:
            inspect_recording(path, forager)
        assert str(error.value).startswith(f"{path} is damaged, or no recording: ") and "\n" not in str(error.value)
    path.write_bytes(gzip.compress(first.replace(b'"recording": 1', b'"recording": 2')))
    with pytest.raises(SparringError, match="is a recording of format 2, and 1 is the one known here"):
        Recording(path)
    with pytest.raises(SparringError, match=r"cannot read .*: No such file"):
        Recording(tmp_path / "none")


def test_an_empty_file_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"")
    with pytest.raises(SparringError, match=r"it is damaged, or no recording: it is empty$"):
        Recording(tmp_path / "it")


def test_a_disk_that_is_full_leaves_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "it"
    (tmp_path / "it.part").symlink_to("/dev/full")
    with pytest.raises(SparringError, match=r"^cannot write \S+it: No space left on device$"):
        play_match(MAP, load_entrant("forager"), load_entrant("reckless"), seed=5, record=path)
    assert not list(tmp_path.iterdir())


def test_a_match_that_fails_leaves_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparring.judge import sides

    asked = 0

    class Failing(sides.ScriptedSide):
        def reply(self, dragon: int, block: bytes) -> sides.Answer:
            nonlocal asked
            asked += 1
            if asked == 20:
                raise KeyboardInterrupt
            return super().reply(dragon, block)

    monkeypatch.setattr(sides, "ScriptedSide", Failing)
    (tmp_path / "it").write_text("an older one")
    with pytest.raises(KeyboardInterrupt):
        play_match(MAP, load_entrant("legal"), load_entrant("legal"), seed=1, record=tmp_path / "it")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["an older one"]


def test_the_verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["match", "arena", "starter", "hunter", "--seed", "3", "--record", "it", "--replay", "it.replay"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].endswith("(map arena, seed 3)") and "points a turn, p99" in said
    assert "recording: it" in said and (tmp_path / "it.replay").stat().st_size > 1000
    assert main(["match", "arena", "starter", "hunter", "--seed", "3", "--json"]) == 0
    played = PlayedMatch.from_json(json.loads(capsys.readouterr().out))
    assert replace(played, cpu_seconds=0.0).a.points_max is not None and played.map_name == "arena"
    assert main(["inspect", "it", "starter"]) == 0
    said = capsys.readouterr().out
    assert f"the same: replies {played.a.turns}/{played.a.turns}, points" in said and "difference: none" in said
    assert main(["inspect", "it", "legal", "--team", "B", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["first_difference"].startswith("round ")
    assert main(["inspect", "it.replay", "starter"]) == 2
    assert capsys.readouterr().err.startswith("sparring: it.replay is damaged, or no recording: ")
    assert main(["match", "arena", "starter", "nobody"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
