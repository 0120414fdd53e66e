"""Replays: the organisers' format read and written, matches played again, ours equal to theirs byte for byte."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loong_maps import random_map, simple_map

from sparring import _core
from sparring.cli import main
from sparring.errors import SparringError
from sparring.judge import replay_format as fmt
from sparring.judge.capnp import pack, unpack
from sparring.judge.native import DEBUG_ALL, DEBUG_LIMITS, NativeEngine
from sparring.judge.official import official_engine
from sparring.judge.players import Player
from sparring.judge.replay_report import ReplayCheck, check_replay, report_replay
from sparring.judge.replays import LIMIT_REACHED, replies, resimulate
from sparring.levels.maps import map_hash, read_map

Reply = Callable[[int, bytes], bytes]

MASKS = (DEBUG_ALL, DEBUG_ALL | DEBUG_LIMITS, 0, 1 | 4 | DEBUG_LIMITS, 2 | 8)
LAST_TURN = 800
CLOCKWISE = dict(zip("NESW", "ESWN", strict=True))


@functools.cache
def official() -> Any:
    return official_engine()


def noise(pick: random.Random) -> bytes:
    """One line of a reply that is there for its notes."""

    def number() -> int:
        return pick.choice((0, 1, -1, 31, 255, 256, 2**31, -(2**31), 2**32 + 7, -(2**70), pick.getrandbits(20)))

    text = bytes(pick.choices(b"abc \t\r\0\xff\xc3\x80?#", k=pick.randrange(12)))
    return pick.choice(
        (
            b"LOG " + text,
            b"LOG" + text,
            b"INDICATOR " + text,
            b"INDICATOR " + "\u00e9".encode() * pick.randrange(250, 270),  # the judge cuts at 512 bytes
            b"DOT " + " ".join(str(number()) for _ in range(5)).encode(),
            b"LINE " + " ".join(str(number()) for _ in range(7)).encode(),
            b"DOT 1 2 3",
            b"MOVE N S",
            b"ENDTURN " + text,
            text,
        )
    )


def noisy(seed: int, policy: str) -> tuple[Player, Reply]:
    """A player whose replies begin with lines of noise, and stay empty after LAST_TURN."""
    player, pick = Player(seed, policy), random.Random(seed)
    turns = itertools.count(1)

    def reply(dragon: int, block: bytes) -> bytes:
        if next(turns) > LAST_TURN:
            return b""
        lines = [noise(pick) + pick.choice((b"\n", b"\r\n")) for _ in range(pick.choice((0, 0, 1, 3)))]
        return b"".join(lines) + player.reply(dragon, block)

    return player, reply


def play(engine: Any, map_bytes: bytes, seed: int, policy: str, debug: int = DEBUG_ALL) -> bytes:
    """The replay of a noisy match."""
    player, reply = noisy(seed, policy)
    engine.run(map_bytes, reply, None, player.spawn, None, debug, seed)
    replay: bytes = engine.replay("alpha", "b\u00eata")
    return replay


def circle(engine: Any, turn: Callable[[int], bytes], debug: int) -> Any:
    """The result of a full match on a map without pearls: two dragons go in circles, and say `turn(dragon)` besides."""

    def reply(dragon: int, block: bytes) -> bytes:
        facing = block.split(b"\n")[1].decode()[4:]
        return turn(dragon) + f"MOVE {CLOCKWISE[facing]}\n".encode()

    map_bytes = simple_map(dragons=("0 3 2 2 2 1 3 1", "1 3 6 6 6 5 7 5"))
    return engine.run(map_bytes, reply, None, None, None, debug, 0)


@functools.cache
def small_replay() -> bytes:
    """A replay of some 300 events, of every kind."""
    replay = play(NativeEngine(), random_map(random.Random(33)), 33, "reckless")
    assert {type(event) for event in fmt.read_replay(replay).events} == set(fmt.Event.__args__)
    return replay


# ---- Cap'n Proto


def test_packing_of_the_published_examples() -> None:
    """The three examples of Cap'n Proto's page on its encoding."""
    words = bytes.fromhex("08000000030002001900000 0aa010000".replace(" ", ""))
    assert pack(words) == bytes.fromhex("51080302311 9aa01".replace(" ", ""))
    assert pack(bytes(32)) == bytes.fromhex("0003")
    assert pack(b"\x8a" * 32) == b"\xff" + b"\x8a" * 8 + b"\x03" + b"\x8a" * 24


def test_runs_of_packed_words_are_at_most_256_long() -> None:
    assert pack(bytes(8 * 300)) == bytes([0, 255, 0, 43])
    full = b"\1" * 8
    assert pack(full * 300) == b"\xff" + full + b"\xff" + full * 255 + b"\xff" + full + b"\x2b" + full * 43
    assert unpack(pack(full * 300), 8 * 300) == full * 300


@given(st.lists(st.sampled_from((bytes(8), b"\1" * 8, b"\1" * 7 + b"\0", b"\1\0\2\0\3\0\0\0")), max_size=600))
def test_packed_words_unpack_to_themselves(words: list[bytes]) -> None:
    content = b"".join(words)
    assert unpack(pack(content), len(content)) == content


def message(*segments: list[int]) -> bytes:
    """A packed message of these words."""
    header = struct.pack(f"<{1 + len(segments)}I", len(segments) - 1, *map(len, segments))
    header += bytes(-len(header) % 8)
    return pack(header) + b"".join(pack(struct.pack(f"<{len(words)}Q", *words)) for words in segments if words)


ROOT = 2 << 32 | 5 << 48  # a pointer to a struct as large as a replay, right behind itself
FORMAT_2 = 2


def test_pointers_through_other_segments() -> None:
    """The root through a far pointer, its name through a double one."""
    name = int.from_bytes(b"name\0\0\0\0", "little")
    root = 2 << 32 | 0 << 3 | 2  # a far pointer: to word 0 of segment 2
    botname = 1 << 32 | 1 << 3 | 4 | 2  # a double one: to word 1 of segment 1
    landing = [3 << 32 | 0 << 3 | 2, 5 << 35 | 2 << 32 | 1]
    replay = fmt.read_replay(message([root], [0, *landing], [ROOT, FORMAT_2, 0, 0, botname, 0, 0, 0], [name]))
    assert replay.bot_a == "name" and replay.map == b"" and replay.events == () and replay.seed is None


def test_structs_longer_and_shorter_than_ours() -> None:
    """Fields that the writer did not know are zero, those that we do not know are skipped."""
    short = fmt.read_replay(message([1 << 32 | 1 << 48, FORMAT_2, 1 << 35 | 2 << 32 | 1, 0]))
    assert short == fmt.read_replay(message([4 << 32 | 7 << 48, FORMAT_2, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0]))
    assert not short.result.terminated and short.result.a == fmt.Standing(0, 0, 0, 0)


def test_format_1_had_messages_of_32_bits() -> None:
    event = 12  # a sonar ping
    words = [ROOT, 1, 0, 0, 0, 0, 1 << 2 | 1 | 7 << 32 | 2 << 35, 0]  # the events right behind
    words += [1 << 2 | 1 << 32 | 1 << 48, event, 2 << 32, 7, 0xFFFFFFFE]
    (ping,) = fmt.read_replay(message(words)).events
    assert ping == fmt.SonarPing(7, "N", fmt.Tile(0, 0), fmt.Tile(0, 0), None, 0xFFFFFFFE, "unknown")


# ---- The organisers' replays


@pytest.mark.parametrize(("seed", "policy"), [(1, "reckless"), (2, "mixed"), (2**64 - 3, "careful")])
def test_official_replays_are_read_and_written_again_byte_for_byte(seed: int, policy: str) -> None:
    map_bytes = random_map(random.Random(seed))
    content = play(official(), map_bytes, seed, policy)
    replay = fmt.read_replay(content)
    assert (replay.map, replay.seed, replay.bot_a, replay.bot_b) == (map_bytes, seed, "alpha", "b\u00eata")
    assert fmt.write_replay(replay) == content


def test_official_replay_of_several_segments() -> None:
    """A map that does not fit the first segment, and one event after another beyond those that follow."""
    tiles = tuple(f"TILE {x} {y} 1 9" for x in range(30) for y in range(30))
    map_bytes = simple_map("30 30", lines=tiles)
    content = play(official(), map_bytes, 5, "reckless")
    assert int.from_bytes(unpack(content, 1 << 26)[:4], "little") + 1 >= 4
    assert fmt.write_replay(fmt.read_replay(content)) == content
    assert play(NativeEngine(), map_bytes, 5, "reckless") == content


@pytest.mark.parametrize("game", range(15))
def test_our_replays_are_the_official_ones(game: int) -> None:
    """Noisy matches on random maps under every debug mask: the same bytes, and played again the same events."""
    map_bytes = random_map(random.Random(100 + game), repeats=game % 3 == 0)
    policy, debug = ("mixed", "reckless", "careful")[game % 3], MASKS[game % 5]
    ours = play(NativeEngine(), map_bytes, game, policy, debug)
    assert ours == play(official(), map_bytes, game, policy, debug)
    replay = fmt.read_replay(ours)
    assert resimulate(replay) == sum(isinstance(event, fmt.TurnStart) for event in replay.events)


def test_text_ends_at_a_nul() -> None:
    map_bytes = simple_map() + b"what follows END\0may be anything"
    engines = (official(), NativeEngine())
    for engine in engines:
        engine.run(map_bytes, lambda *_: b"LOG a\0b\n?\0c\nINDICATOR \0\n", None, None, None, DEBUG_ALL, 0)
    theirs, ours = (engine.replay("x\0y", "") for engine in engines)
    assert ours == theirs
    replay = fmt.read_replay(ours)
    assert replay.map.endswith(b"what follows END") and replay.bot_a == "x"


def test_notes_beyond_the_judges_limit_of_text() -> None:
    def turn(dragon: int) -> bytes:
        return b"?" + b"x" * 60000 + b"\nINDICATOR " + b"i" * 600 + b"\n" if dragon == 0 else b"LOG short\n"

    debug = DEBUG_ALL | DEBUG_LIMITS
    engines = (official(), NativeEngine())
    for engine in engines:
        circle(engine, turn, debug)
    theirs, ours = (engine.replay("a", "b") for engine in engines)
    assert ours == theirs
    replay = fmt.read_replay(ours)
    limits = [event for event in replay.events if isinstance(event, fmt.EngineLog) and event.text == LIMIT_REACHED]
    assert [limit.dragon for limit in limits] == [0]
    assert all(len(event.text) == 512 for event in replay.events if isinstance(event, fmt.DragonIndicator))
    resimulate(replay)


def test_notes_beyond_the_judges_limit_of_lines() -> None:
    debug = DEBUG_ALL | DEBUG_LIMITS

    def turn(dragon: int) -> bytes:
        return b"DOT 1 2 3 4 5\n" * 1001 if dragon == 0 else b""

    theirs, ours = (circle(engine, turn, debug) for engine in (official(), NativeEngine()))
    assert vars(ours) == vars(theirs)
    assert ours.events == 500 * (1 + 2 * 3) + 2 + 500_001


# ---- Played again


def test_the_official_engine_plays_ours_again_and_tells_every_turn() -> None:
    player, reply = noisy(3, "mixed")
    asked: list[tuple[int, bytes]] = []

    def remember(dragon: int, block: bytes) -> bytes:
        asked.append((dragon, block))
        return b"PROTOCOL 3\n" + reply(dragon, block).replace(b"PROTOCOL", b"LOG")

    engine = NativeEngine()
    engine.run(random_map(random.Random(8)), remember, None, player.spawn, None, DEBUG_ALL, 3)
    told: list[tuple[int, bytes]] = []
    replay = fmt.read_replay(engine.replay("a", "b"))
    assert resimulate(replay, official(), on_turn=lambda dragon, block, _: told.append((dragon, block))) == len(asked)
    assert told == asked


def test_rays_from_a_head_that_is_also_the_tail() -> None:
    """A starting body may end where it starts: then the origin does not tell which ray goes against the facing."""
    map_bytes = simple_map(dragons=("0 5 3 3 4 3 4 4 3 4 3 3", "1 2 7 7 7 6"))
    for directions in ("N", "E", "S", "W", "NE", "ES", "SW", "NW", "NESW"):
        lines = "".join(f"SONAR {direction} {ord(direction)}\n" for direction in directions)
        engine = NativeEngine()
        engine.run(map_bytes, lambda dragon, _, lines=lines: f"{lines}SPLIT {3 - dragon}\n".encode(), seed=1)  # type: ignore[misc]
        resimulate(fmt.read_replay(engine.replay("a", "b")))


def changed(replay: fmt.Replay, kind: type, **values: Any) -> tuple[fmt.Replay, int]:
    """The replay with other values in its last event of a kind, and that event's number."""
    number = max(i for i, event in enumerate(replay.events) if isinstance(event, kind))
    event = dataclasses.replace(replay.events[number], **values)
    events = (*replay.events[:number], event, *replay.events[number + 1 :])
    return dataclasses.replace(replay, events=events), number


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (fmt.DragonUpdate, {"tail": fmt.Tile(0, 99)}),
        (fmt.TileChange, {"tile": fmt.Tile(0, 99)}),
        (fmt.PearlCountdown, {"rounds": 99}),
        (fmt.DragonDeath, {"dragon": 99}),
        (fmt.DragonSplit, {"child_body": ()}),
    ],
)
def test_the_first_difference_is_told(kind: type, values: dict[str, Any]) -> None:
    replay, number = changed(fmt.read_replay(small_replay()), kind, **values)
    with pytest.raises(SparringError, match=rf"^event {number} differs \(round \d+.*(99|\(\))") as caught:
        resimulate(replay)
    assert "\n" not in str(caught.value)


def test_another_result_is_told() -> None:
    replay = fmt.read_replay(small_replay())
    with pytest.raises(SparringError, match="the result differs"):
        resimulate(dataclasses.replace(replay, result=dataclasses.replace(replay.result, winner=None)))


def test_what_only_contest_servers_write_is_not_compared() -> None:
    replay = fmt.read_replay(small_replay())
    events = [
        dataclasses.replace(
            event,
            action=None if event.action == fmt.NoAction() else event.action,
            instructions=fmt.Instructions(2_700_000, False),
        )
        if isinstance(event, fmt.DragonAction)
        else event
        for event in replay.events
    ]
    replay = dataclasses.replace(replay, events=tuple(events))
    assert fmt.read_replay(fmt.write_replay(replay)) == replay
    resimulate(replay)


def test_replays_without_what_tells_the_pearls_are_refused() -> None:
    replay = fmt.read_replay(small_replay())
    without_draws = tuple(event for event in replay.events if not isinstance(event, fmt.PearlCountdown))
    lines = [line.split() for line in replay.map.split(b"\n")]
    flat = b"\n".join(b" ".join([*line[:3], b"0", b"0"] if line[:1] == [b"TILE"] else line) for line in lines)
    for stripped, reason in (
        ({"seed": None}, "it has no seed"),
        ({"events": without_draws}, "its pearl countdowns were removed"),
        ({"events": without_draws, "map": flat}, "the pearl gaps of its map were removed"),
        ({"result": dataclasses.replace(replay.result, terminated=False)}, "it ends before its match did"),
        ({"map": b"MAP 9 9\n" + replay.map}, "its map is refused: MAP appears twice"),
    ):
        with pytest.raises(SparringError, match=f"^this replay cannot be played again: {reason}"):
            resimulate(dataclasses.replace(replay, **stripped))


def test_rays_from_nowhere_are_refused() -> None:
    replay, _ = changed(fmt.read_replay(small_replay()), fmt.SonarPing, origin=fmt.Tile(0, 99))
    with pytest.raises(SparringError, match=r"no dragon can send SonarPing\("):
        replies(replay.events)


def test_an_engine_without_a_match_has_no_replay() -> None:
    with pytest.raises(RuntimeError, match="no match has been run"):
        NativeEngine().replay("a", "b")


# ---- Any replay, and any file

tiles = st.builds(fmt.Tile, st.integers(-(2**31), 2**31 - 1), st.integers(0, 300))
int32s = st.integers(-(2**31), 2**31 - 1)
texts = st.binary(max_size=20).map(lambda content: content.decode("utf-8", "surrogateescape"))
directions = st.sampled_from("NESW")
bytes_ = st.integers(0, 255)
events = st.one_of(
    st.builds(fmt.RoundStart, int32s),
    st.builds(fmt.TurnStart, int32s),
    st.builds(fmt.PearlCountdown, tiles, int32s),
    st.builds(fmt.TileChange, tiles, st.booleans()),
    st.builds(
        fmt.DragonAction,
        int32s,
        st.none() | st.builds(fmt.Move, st.text("NESW")) | st.builds(fmt.Split, int32s) | st.just(fmt.NoAction()),
        st.none() | st.builds(fmt.Instructions, st.integers(0, 2**64 - 1), st.booleans()),
        st.booleans(),
    ),
    st.builds(fmt.EngineLog, int32s, texts),
    st.builds(fmt.DragonLog, int32s, texts),
    st.builds(fmt.DragonIndicator, int32s, texts),
    st.builds(
        fmt.DebugDraw,
        int32s,
        st.builds(fmt.Drawing, st.sampled_from(fmt.SHAPES), tiles, tiles, bytes_, bytes_, bytes_),
    ),
    st.builds(fmt.DragonUpdate, int32s, directions, tiles, tiles),
    st.builds(
        fmt.DragonSplit,
        *(int32s, int32s, st.sampled_from("AB"), directions),
        *(st.lists(tiles, max_size=9).map(tuple), st.lists(tiles, max_size=9).map(tuple)),
    ),
    st.builds(fmt.DragonDeath, int32s, st.sampled_from(fmt.DEATHS)),
    st.builds(
        fmt.SonarPing,
        *(int32s, directions, tiles, tiles, st.none() | int32s, st.integers(0, 2**64 - 1), st.sampled_from(fmt.HITS)),
    ),
)
standings = st.builds(fmt.Standing, int32s, int32s, int32s, int32s)
results = st.builds(
    fmt.Result,
    *(st.booleans(), st.sampled_from(fmt.END_REASONS), st.none() | st.sampled_from("AB"), standings, standings),
)
replays = st.builds(
    fmt.Replay,
    *(st.binary(max_size=9000), texts, texts, st.lists(events, max_size=40).map(tuple), results),
    st.none() | st.integers(0, 2**64 - 1),
)


@given(replays)
def test_every_replay_is_read_as_it_was_written(replay: fmt.Replay) -> None:
    assert fmt.read_replay(fmt.write_replay(replay)) == replay


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (fmt.RoundStart(2**31), "event 1: "),
        (fmt.DragonUpdate(0, "X", fmt.Tile(0, 0), fmt.Tile(0, 0)), "event 1: "),
        (fmt.SonarPing(0, "N", fmt.Tile(0, 0), fmt.Tile(0, 0), None, 2**64, "empty"), "event 1: "),
    ],
)
def test_values_without_a_place_in_the_format(event: fmt.Event, problem: str) -> None:
    standing = fmt.Standing(0, 0, 0, 0)
    result = fmt.Result(True, "eliminated", None, standing, standing)
    with pytest.raises(SparringError, match=f"^this replay cannot be written: {problem}"):
        fmt.write_replay(fmt.Replay(b"", "a", "b", (fmt.TurnStart(0), event), result, 0))


def read_or_refuse(content: bytes) -> None:
    try:
        fmt.read_replay(content, most_bytes=1 << 20)
    except SparringError as error:
        assert str(error).startswith("the replay ") and "\n" not in str(error)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(content: bytes) -> None:
    read_or_refuse(content)


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 255), max_size=20), min_size=1, max_size=3))
def test_no_words_crash_the_reader(segments: list[list[int]]) -> None:
    read_or_refuse(message([ROOT, *segments[0]], *segments[1:]))


def test_no_change_of_a_replay_crashes_the_reader() -> None:
    """Words of a real replay changed one by one, and in pairs: sizes, tags, distances, far pointers."""
    pick = random.Random(0)
    words = unpack(small_replay(), 1 << 26)
    for _ in range(400):
        damaged = bytearray(words)
        for _ in range(pick.choice((1, 1, 2))):
            at = 8 * pick.randrange(len(words) // 8)
            if pick.random() < 0.5:
                damaged[at + pick.randrange(8)] ^= 1 << pick.randrange(8)
            else:
                damaged[at : at + 8] = struct.pack("<Q", pick.choice((0, 2**64 - 1, 2, 6, pick.getrandbits(64))))
        read_or_refuse(pack(damaged))


def test_every_cut_of_a_replay_is_refused() -> None:
    content = small_replay()
    for size in [*range(200), *range(200, len(content), 97)]:
        with pytest.raises(SparringError, match=r"^the replay is damaged, or no replay: it "):
            fmt.read_replay(content[:size])


def tile_list(count: int, words: int) -> bytes:
    """A replay with one split, whose child's body is announced as `count` tiles in `words` words."""
    split = 1 << 2 | 2 << 32 | 2 << 48
    event_list = [1 << 2 | 1 << 32 | 1 << 48, 10, split - 4, 1, 0, 0, words << 35 | 7 << 32 | 1]
    return message([ROOT, FORMAT_2, 0, 0, 0, 0, 1 << 2 | 7 << 32 | 2 << 35 | 1, 0, *event_list, count << 2 | 1 << 32])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (b"\x00" * 4, "it announces 8 bytes and has 16"),
        (b"PK\x03\x04 a zip", "it ends"),
        (b"\x00\xff" * 600, "it unpacks to more than 1048576 bytes"),
        (message([]), "the root"),
        (message([0]), "it has no content"),
        (message([2]), "there is no struct"),
        (message([1]), "there is no struct"),
        (message([ROOT]), "a struct of 7 words at segment 0, word 1 reaches past the end"),
        (message([ROOT | 0x3FFFFFFE << 2, *[0] * 9]), "a struct of 7 words at segment 0, word -1"),
        (message([ROOT, FORMAT_2, 0, 1, 0, 0, 0, 0]), "there is no list"),
        (tile_list(2**29, 2**28), "event 0: tile of the child 0: a list of 268435457 words"),
        (tile_list(2**29, 0), "event 0: tile of the child 0: the list"),
        (pack(struct.pack("<II", 2**32 - 1, 0)), "it announces 4294967296 segments"),
        (pack(struct.pack("<II", 0, 2**32 - 1)), "it announces 34359738368 bytes and has 8"),
    ],
)
def test_what_is_wrong_is_told(content: bytes, problem: str) -> None:
    with pytest.raises(SparringError, match=f"^the replay is damaged, or no replay: {problem}"):
        fmt.read_replay(content, most_bytes=1 << 20)


def test_shared_words_do_not_multiply() -> None:
    """A thousand events that point to one and the same body of a thousand tiles."""
    n = 1000
    events = [word for i in range(n) for word in (10, 2 << 32 | 2 << 48 | (2 * (n - 1 - i)) << 2)]
    split = [0, 0, 0, n << 35 | 7 << 32 | 1]
    body = [n << 2 | 1 << 32, *range(n)]
    words = [ROOT, FORMAT_2, 0, 0, 0, 0, 1 << 2 | 7 << 32 | 2 * n << 35 | 1, 0, n << 2 | 1 << 32 | 1 << 48, *events]
    with pytest.raises(SparringError, match="event 1: a struct shares its words with others"):
        fmt.read_replay(message([*words, *split, *body]))


def test_memory_for_the_worst_of_files_is_bounded() -> None:
    """Tiles with large numbers in one body, and empty events, 1000 of them for each packed byte."""
    n = 1 << 14
    event = [1 << 2 | 1 << 32 | 1 << 48, 10, 2 << 32 | 2 << 48, 0, 0, 0, n << 35 | 7 << 32 | 1, n << 2 | 1 << 32]
    start = [ROOT, FORMAT_2, 0, 0, 0, 0, 1 << 2 | 7 << 32 | 2 << 35 | 1, 0]
    many = [ROOT, FORMAT_2, 0, 0, 0, 0, 1 << 2 | 7 << 32 | 2 * n << 35 | 1, 0, n << 2 | 1 << 32 | 1 << 48]
    for words in ([*start, *event, *(2**62 + 2**30 + i for i in range(n))], [*many, *[0] * 2 * n]):
        content = message(words)
        tracemalloc.start()
        fmt.read_replay(content)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20 * 8 * len(words)


def test_newer_formats_are_refused() -> None:
    with pytest.raises(SparringError, match=r"^the replay has replay format 3, and only those up to 2 are known here$"):
        fmt.read_replay(message([ROOT, 3, 0, 0, 0, 0, 0, 0]))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "match.replay"
    with pytest.raises(SparringError, match=r"^cannot read .*match\.replay: No such file or directory$"):
        fmt.read_replay(path)
    path.write_bytes(small_replay())
    assert fmt.read_replay(path) == fmt.read_replay(small_replay())
    path.write_bytes(small_replay()[:-5])
    with pytest.raises(SparringError, match=r"match\.replay is damaged, or no replay: it "):
        fmt.read_replay(str(path))


# ---- The verb `sparring replay`.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.replay"
    path.write_bytes(small_replay())
    return path


def test_a_replay_in_short(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay = fmt.read_replay(file)
    report = report_replay(file)
    assert (report.bot_a, report.bot_b, report.seed, report.result) == ("alpha", "bêta", replay.seed, replay.result)
    assert report.sha256 == hashlib.sha256(small_replay()).hexdigest()
    assert report.events == len(replay.events)
    assert report.rounds == [event.round for event in replay.events if isinstance(event, fmt.RoundStart)][-1] + 1
    assert report.turns == sum(isinstance(event, fmt.TurnStart) for event in replay.events)
    living = replay.result.a.dragons + replay.result.b.dragons
    assert len(read_map(replay.map).dragons) + report.births - sum(report.deaths.values()) == living
    assert report.map_hash == map_hash(read_map(replay.map)) and report.map_error is None
    assert main(["replay", "show", str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{file}: alpha against bêta, seed {replay.seed}\n") and report.sha256 in shown
    assert main(["replay", "show", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [report.json()]


def test_what_a_replay_names_gives_no_orders_to_the_terminal(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay = dataclasses.replace(fmt.read_replay(file), bot_a="\x1b[2J\udcff", map=b"nothing", seed=None)
    file.write_bytes(fmt.write_replay(replay))
    assert main(["replay", "show", str(file)]) == 0
    shown = capsys.readouterr().out
    assert ": ?[2J? against bêta, seed unknown\n  map: refused: " in shown


def test_replays_are_checked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, bare = file.with_name("other.replay"), file.with_name("bare.replay")
    spoilt, number = changed(fmt.read_replay(file), fmt.TurnStart, dragon=77)
    other.write_bytes(fmt.write_replay(spoilt))
    bare.write_bytes(fmt.write_replay(dataclasses.replace(spoilt, seed=None)))
    turns = report_replay(file).turns
    assert check_replay(file) == ReplayCheck(file=str(file), status="equal", turns=turns)
    assert main(["replay", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: equal, {turns:,} turns\n"
    assert main(["replay", "check", str(file), str(other)]) == 1
    assert f"{other}: differs: event {number} differs" in capsys.readouterr().out
    damaged = file.with_name("damaged.replay")
    damaged.write_bytes(small_replay()[:-9])
    missing = file.with_name("missing.replay")
    assert main(["replay", "check", "--json", str(bare), str(other), str(damaged), str(missing)]) == 2
    checks = json.loads(capsys.readouterr().out)
    assert [check["status"] for check in checks] == ["unplayable", "differs", "unplayable", "unplayable"]
    assert checks[0]["detail"] == "it has no seed, so nobody knows where pearls will appear"
    assert "damaged.replay is damaged, or no replay" in checks[2]["detail"]
    assert "cannot read" in checks[3]["detail"] and checks[3]["core"] == _core.source_hash[:12]


def test_the_verb_refuses_in_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in [
        (["show", str(file.with_name("none"))], "cannot read"),
        (["show"], "no replay named"),
        (["check"], "no replay named"),
        (["chekc", str(file)], "did you mean check?"),
    ]:
        assert main(["replay", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_no_change_of_the_events_crashes_a_check(file: Path) -> None:
    """Events left out, doubled, moved, or given another's values: equal, or a reason."""
    replay, pick = fmt.read_replay(file), random.Random(5)
    met = set()
    for _ in range(30):
        events = list(replay.events)
        for _ in range(pick.randint(1, 3)):
            at, other = pick.randrange(len(events)), pick.choice(replay.events)
            kind = pick.randrange(4)
            if kind == 0:
                del events[at]
            elif kind == 1:
                events.insert(at, other)
            elif kind == 2:
                events[at] = other
            else:
                name = pick.choice(dataclasses.fields(events[at])).name
                twin = pick.choice([event for event in replay.events if type(event) is type(events[at])])
                events[at] = dataclasses.replace(events[at], **{name: getattr(twin, name)})
        file.write_bytes(fmt.write_replay(dataclasses.replace(replay, events=tuple(events))))
        met.add(check_replay(file).status)
    assert met >= {"differs", "unplayable"}


def test_a_recording_ends_with_a_whole_event_when_its_room_is_full() -> None:
    map_bytes = random_map(random.Random(33))
    whole = fmt.read_replay(play(NativeEngine(), map_bytes, 33, "reckless"))
    for room in (0, 1, 2, 7, 100, 1000, 10_000):
        engine = NativeEngine(room=room)
        kept = fmt.read_replay(play(engine, map_bytes, 33, "reckless"))
        assert kept.events == whole.events[: len(kept.events)] and kept.result == whole.result
        assert (len(kept.events) > 0) == (room > 0)
        words = [len(event.parent_body) for event in kept.events if isinstance(event, fmt.DragonSplit)]
        assert len(kept.events) <= room and sum(words) <= room + max(words, default=0)
    assert kept == whole


def test_of_a_large_match_no_more_is_kept_than_a_small_file_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pearls everywhere in every round, of which the file says nothing."""
    engine, dragons = NativeEngine(), ("0 3 2 2 2 1 3 1", "1 3 6 6 6 5 7 5")
    circle(engine, lambda _: b"", DEBUG_ALL)
    quiet = engine.recorded("a", "b")
    elsewhere = [f"TILE {x} {y} 1 1" for x in range(9, 40) for y in range(9, 40)]
    events = (fmt.PearlCountdown(fmt.Tile(9, 9), 1), *quiet.events)
    crafted = dataclasses.replace(quiet, map=simple_map("40 40", dragons, tuple(elsewhere)), events=events)
    kept = []

    def read(content: bytes) -> fmt.Replay:
        kept.append(fmt.read_replay(content))
        return kept[-1]

    monkeypatch.setattr("sparring.judge.replays.read_replay", read)
    with pytest.raises(SparringError, match=r"^event 1 differs"):
        resimulate(crafted)
    assert len(kept[0].events) < 5 * len(events)


def test_limits_told_too_often_take_no_memory() -> None:
    turn, limit = fmt.TurnStart(0), fmt.EngineLog(0, LIMIT_REACHED)
    assert len(replies([turn, limit, turn, limit])) == 2
    with pytest.raises(SparringError, match="it tells 3 times that the notes"):
        replies([turn, limit, turn, limit, turn, limit])
