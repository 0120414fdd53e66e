"""What `sparring look` shows of a match is what the dragon was told in it, and what truly lay there."""

from __future__ import annotations

import dataclasses
import io
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loong_maps import random_map, simple_map
from PIL import Image
from rich.console import Console

from sparring import _core
from sparring.cli import main
from sparring.errors import SparringError
from sparring.judge import NativeEngine
from sparring.judge.films import moments
from sparring.judge.looking import look
from sparring.judge.replay_format import DragonAction, PearlCountdown, RoundStart, read_replay, write_replay
from sparring.judge.sides import Answer
from sparring.judge.tape import Header, RecordingWriter
from sparring.levels.maps import read_map, write_map
from sparring.pictures.board import BoardDragon, board_text, draw_board
from sparring.pictures.look import PLANES, Look, chosen_planes, draw_look, print_look

SEED = 3
MAP = random_map(random.Random(13))
Told = list[tuple[int, bytes, bytes]]


@pytest.fixture(scope="module")
def match(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Told, dict[int, int]]:
    """A match as a replay and as a recording, every turn (dragon, block, reply), and when each dragon died."""
    folder = tmp_path_factory.mktemp("match")
    inits: dict[int, bytes] = {}
    turns: Told = []
    deaths: dict[int, int] = {}

    def spawn(dragon: int, init: bytes) -> None:
        inits[dragon] = init
        tape.spawn(dragon, init)

    def reply(dragon: int, block: bytes) -> bytes:
        script = _core.LOONG_SCRIPTS.index("splitter" if b"TEAM A" in inits[dragon] else "forager")
        answer = _core.loong_decide(script, inits[dragon], block, 1, SEED)
        if len(turns) > 260 and b"TEAM A" in inits[dragon]:
            answer = b""
        turns.append((dragon, block, answer))
        tape.turn(dragon, block, Answer(answer, 0, 0, None))
        return answer

    def death(dragon: int, round_: int, why: str) -> None:
        deaths[dragon] = round_
        tape.death(dragon, round_, why)

    player = {"name": "somebody", "kind": "scripted", "hash": "0" * 64}
    header = Header("1.2.11", "0" * 64, "meadow", "0" * 64, MAP, SEED, player, player)
    engine = NativeEngine()
    with RecordingWriter(folder / "my.recording", header) as tape:
        engine.run(MAP, reply, death, spawn, seed=SEED)
        tape.finish({})
    (folder / "my.replay").write_bytes(engine.replay("splitter", "forager"))
    return folder / "my.replay", folder / "my.recording", turns, deaths


def round_of(block: bytes) -> int:
    return int(block.split(b"\n", 1)[0].split()[1])


def tiles_of(block: bytes) -> dict[tuple[int, int], bool]:
    """The window of a block: by column and row whether a pearl lies there."""
    lines = block.decode().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("NUM_MSGS"))
    at += 1 + int(lines[at].split()[1])
    at += lines[at].startswith("ECHOES")
    rows = [line.split() for line in lines[at : at + 49]]
    return {(int(x), int(y)): pearl == "1" for x, y, pearl, _ in rows}


def bodies_of(block: bytes) -> set[tuple[str, int, int, bool]]:
    lines = block.decode().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("DRAGON_BODIES"))
    rows = [line.split() for line in lines[at + 1 : at + 1 + int(lines[at].split()[1])]]
    return {(team, int(x), int(y), head == "1") for team, _, x, y, _, head in rows}


def test_what_is_shown_is_what_the_dragon_was_told(match: Any) -> None:
    replay, recording, turns, _ = match
    dragon = turns[200][0]
    asked = [(round_of(block), block) for who, block, _ in turns if who == dragon]
    for round_, block in asked[:: max(1, len(asked) // 4)]:
        seen = look(recording, turn=round_, dragon=dragon)
        known: dict[tuple[int, int], bool] = {}
        for _, earlier in (each for each in asked if each[0] <= round_):
            known |= tiles_of(earlier)
        shape = seen.unknown.shape
        assert [[(x, y) not in known for x in range(shape[1])] for y in range(shape[0])] == seen.unknown.tolist()
        lay = [[known.get((x, y), False) for x in range(shape[1])] for y in range(shape[0])]
        assert lay == seen.remembered_pearls.tolist()
        window = tiles_of(block)
        drawn = {
            ("AB"[each.team], x, y, at == 0 and not each.headless)
            for each in seen.remembered_dragons
            for at, (x, y) in enumerate(each.body.tolist())
            if (x, y) in window
        }
        assert drawn == bodies_of(block)
        truth = {
            ("AB"[each.team], *tile, at == 0) for each in seen.dragons for at, tile in enumerate(each.body.tolist())
        }
        assert {each for each in truth if each[1:3] in window} == drawn
        assert all(seen.pearls[y, x] == pearl for (x, y), pearl in window.items())
        assert (seen.round, seen.dragon) == (round_, dragon)

        same = look(replay, turn=round_, dragon=dragon)
        assert (same.inputs["crop"] == seen.inputs["crop"]).all() and (same.sights == seen.sights).all()


def test_a_turn_that_was_not_is_told_in_a_line(match: Any, tmp_path: Path) -> None:
    replay, recording, turns, deaths = match
    most = max(dragon for dragon, _, _ in turns)
    died, last = next((dragon, round_) for dragon, round_ in deaths.items() if round_ > 2)
    born = next(dragon for dragon, block, _ in turns if dragon > 5 and round_of(block) > 0)
    for file in (replay, recording):
        with pytest.raises(SparringError, match=rf"no turn of dragon {most + 1}: the match has dragons 0 to {most}"):
            look(file, turn=0, dragon=most + 1)
        with pytest.raises(
            SparringError, match=rf"dragon {died} had its turns in rounds \d+ to \d+, not in {last + 1}"
        ):
            look(file, turn=last + 1, dragon=died)
        with pytest.raises(SparringError, match=rf"dragon {born} had its turns in rounds [1-9]\d* to"):
            look(file, turn=0, dragon=born)
    with pytest.raises(SparringError, match="cannot read"):
        look(tmp_path / "none.replay", turn=0, dragon=0)
    (tmp_path / "text").write_text("neither of both")
    with pytest.raises(SparringError, match="damaged, or no replay"):
        look(tmp_path / "text", turn=0, dragon=0)
    (tmp_path / "cut.recording").write_bytes(recording.read_bytes()[:4000])
    with pytest.raises(SparringError, match="damaged, or no recording"):
        look(tmp_path / "cut.recording", turn=400, dragon=0)


def test_a_match_that_our_engine_does_not_play_alike_is_refused(match: Any, tmp_path: Path) -> None:
    _, _, turns, _ = match
    player = {"name": "somebody", "kind": "scripted", "hash": "0" * 64}
    header = Header("1.2.11", "0" * 64, "meadow", "0" * 64, MAP, SEED + 1, player, player)
    with RecordingWriter(tmp_path / "other.recording", header) as tape:
        for dragon, block, reply in turns:
            tape.turn(dragon, block, Answer(reply, 0, 0, None))
        tape.finish({})
    with pytest.raises(SparringError, match="our engine leaves this match in round"):
        look(tmp_path / "other.recording", turn=20, dragon=turns[0][0])


def test_a_replay_is_filmed_only_as_our_engine_plays_it(match: Any) -> None:
    replay = read_replay(match[0])
    assert len(list(moments(replay))) == 1 + sum(isinstance(event, RoundStart) for event in replay.events)
    bare = write_map(dataclasses.replace(read_map(MAP), gaps=np.zeros_like(read_map(MAP).gaps)))
    silent = tuple(event for event in replay.events if not isinstance(event, DragonAction))
    countless = tuple(event for event in replay.events if not isinstance(event, PearlCountdown))
    for spoilt, why in (
        ({"seed": None}, "it has no seed"),
        ({"map": b"MAP 3 3\n"}, "its map is refused"),
        ({"map": too_big_map()}, "its map is refused: the map is too big for this engine"),
        ({"events": countless}, "its pearl countdowns were removed"),
        ({"events": countless, "map": bare}, "the pearl gaps of its map were removed"),
        ({"events": silent}, r"our engine leaves this match in round \d+, turn of dragon \d+"),
    ):
        with pytest.raises(SparringError, match=why):
            list(moments(dataclasses.replace(replay, **spoilt)))


def too_big_map() -> bytes:
    """One that the judge takes, and that has room for more dragons than a lane can have."""
    return simple_map("256 256", dragons=("0 2 1 1 0 1", "1 2 6 6 7 6"), lines=("UNIT_LIMIT 40000",))


def test_a_match_that_no_lane_has_room_for_is_told_in_a_line(match: Any, tmp_path: Path) -> None:
    player = {"name": "somebody", "kind": "scripted", "hash": "0" * 64}
    with RecordingWriter(
        tmp_path / "big.recording", Header("1.2.11", "0" * 64, "big", "0" * 64, too_big_map(), SEED, player, player)
    ) as tape:
        tape.finish({})
    (tmp_path / "big.replay").write_bytes(write_replay(dataclasses.replace(read_replay(match[0]), map=too_big_map())))
    for name in ("big.recording", "big.replay"):
        with pytest.raises(SparringError, match="the map is too big for this engine"):
            look(tmp_path / name, turn=0, dragon=0)
    for build in (-1, 2**64):
        with pytest.raises(SparringError, match=f"build = {build}: give a number"):
            look(match[0], turn=0, dragon=0, build=build)


@pytest.fixture(scope="module")
def seen(match: Any) -> Look:
    _, recording, turns, _ = match
    dragon, block, _ = turns[150]
    return look(recording, turn=round_of(block), dragon=dragon)


def test_the_picture_has_two_boards_and_the_planes_that_are_wanted(seen: Look) -> None:
    plain, one, all_of_them = (draw_look(seen, chosen_planes(wanted)) for wanted in (None, "reach", "all"))
    assert plain.dtype == np.uint8 and plain.shape[0] < one.shape[0] < all_of_them.shape[0]
    assert len(PLANES) == 40
    with pytest.raises(SparringError, match="no plane reech: did you mean reach"):
        draw_look(seen, ["reech"])


def test_what_is_unknown_is_dark_on_the_board() -> None:
    loong_map = read_map(MAP)
    unknown = np.zeros((loong_map.height, loong_map.width), bool)
    unknown[2:5, 3:9] = True
    lone = (BoardDragon(2, 1, np.array([[4, 3]], np.int32), headless=True),)
    plain, veiled, with_lone = (
        draw_board(loong_map, key=False, side=440, **options).astype(int)
        for options in ({"dragons": ()}, {"dragons": (), "unknown": unknown}, {"dragons": lone, "unknown": unknown})
    )
    tile, margin, title = 40, 20, 32
    assert plain.shape[1] == loong_map.width * tile + 2 * margin

    def centre(picture: np.ndarray, x: int, y: int) -> list[int]:
        return picture[title + margin + y * tile + tile // 2, margin + x * tile + tile // 2].tolist()

    for y, x in np.ndindex(unknown.shape):
        dark = centre(veiled, x, y) == [0x0B, 0x16, 0x26]
        assert dark == unknown[y, x] and (dark or centre(veiled, x, y) == centre(plain, x, y))
    assert centre(with_lone, 4, 3) != centre(veiled, 4, 3)
    text = board_text(loong_map, columns=80, dragons=lone, unknown=unknown, colour=False).plain
    assert text.count("?") == unknown.sum() - 1 and text.count("b") == 1 and "B" not in text


def test_the_terminal_shows_the_same(seen: Look) -> None:
    shown = io.StringIO()
    print_look(seen, Console(width=100, color_system=None, file=shown), ["reach", "overview known"])
    text = shown.getvalue()
    assert text.count("?") == seen.unknown.sum() > 0
    assert f"dragon {seen.dragon} of team {'AB'[seen.team]} in round {seen.round}" in text
    assert " 127" in text.split("\nreach\n")[1].split("\n")[7] and "overview known" in text
    for name, byte in zip(_core.LOONG_PLANES["scalars"], seen.inputs["scalars"].tolist(), strict=True):
        assert re.search(rf"\b{name} +{byte}\b", text), name
    assert "may move" in text and "holds role 0" in text


def test_the_verb(match: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay, _, turns, _ = match
    dragon, block, _ = turns[60]
    where = [str(replay), "--turn", str(round_of(block)), "--dragon", str(dragon)]
    assert main(["look", *where, "--plane", "threat", "--out", str(tmp_path / "look.png")]) == 0
    said = capsys.readouterr().out
    assert "threat" in said and "what is there" in said and "picture:" in said
    assert Image.open(tmp_path / "look.png").size[0] == 1300
    assert main(["look", *where, "--quiet"]) == 0 and capsys.readouterr().out == ""
    assert main(["look", *where, "--plane", "nothing"]) == 2
    assert "no plane nothing" in capsys.readouterr().err
    assert main(["look", *where[:3], "--dragon", "999"]) == 2
