"""Our engine beside the organisers': shipped maps, random maps, broken maps and odd replies, byte for byte."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loong_maps import random_map, simple_map
from map_faults import FAULTS, changed

from sparring import _core
from sparring.errors import SparringError
from sparring.judge import lockstep as room
from sparring.judge import official as judge
from sparring.judge.lockstep import Difference, Report, compare, lockstep, reproduce, run_lockstep
from sparring.judge.native import DEBUG_ALL, DEBUG_LIMITS, load_level
from sparring.judge.players import Player
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map

unswbc = pytest.importorskip("unswbc.engine")

SHIPPED = sorted(Path(unswbc.__file__).with_name("templates").glob("maps/*.map"))
TURNS = 1500
"""Turns of one match on a big map; then all fall silent. The long runs are made with `sparring lockstep`."""


@pytest.mark.parametrize("policy", ["careful", "mixed"])
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_map(path: Path, policy: str) -> None:
    seed = _core.mix64(SHIPPED.index(path))
    player = Player(seed, policy, turns=TURNS)
    compare(path.read_bytes(), seed, player.reply, spawn=player.spawn)


@pytest.mark.parametrize("index", range(60))
def test_generated_map(index: int) -> None:
    seed = _core.mix64(1000 + index)
    player = Player(seed, ("mixed", "reckless", "careful")[index % 3], turns=TURNS)
    debug = (DEBUG_ALL, DEBUG_ALL | DEBUG_LIMITS, 0, 9)[index % 4]
    map_bytes = write_map(generate_map(3, index))
    compare(map_bytes, seed, player.reply, spawn=player.spawn, debug=debug)


ENDS_OF_500_ROUNDS = {
    "queen": ("0 3 1 1 2 1 2 2", "1 2 5 5 6 5"),
    "longest": ("0 2 1 1 2 1", "1 2 5 5 6 5", "0 2 1 5 2 5", "1 3 5 1 6 1 6 2"),
    "total": ("1 2 1 1 2 1", "0 2 5 5 6 5", "1 2 1 5 2 5"),
    "draw": ("0 2 1 1 2 1", "1 2 5 5 6 5"),
}
"""What decides a match that nobody wins before its end, and dragons with which it does."""


def test_maps_of_odd_parts_meet_every_rule() -> None:
    """Maps no author would draw: portals everywhere, asymmetric kelp, low limits, bodies that cross themselves."""
    met: Counter[str] = Counter()
    for index in range(24):
        player = Player(index, "mixed", turns=TURNS)
        map_bytes = random_map(random.Random(index), repeats=index % 2 == 1)
        met.update(compare(map_bytes, _core.mix64(index), player.reply, spawn=player.spawn).coverage)
    elsewhere = {f"end: {decided}" for decided in ENDS_OF_500_ROUNDS}  # the next test
    assert {rule for rule in _core.LOONG_COVERAGE if not met[rule]} <= elsewhere


@pytest.mark.parametrize("decided", ENDS_OF_500_ROUNDS)
def test_what_decides_after_500_rounds(decided: str) -> None:
    turns: Counter[int] = Counter()

    def circle(dragon: int, _block: bytes) -> bytes:
        turns[dragon] += 1
        return b"MOVE %c\n" % b"WNES"[turns[dragon] % 4]

    compared = compare(simple_map(dragons=ENDS_OF_500_ROUNDS[decided]), 1, circle)
    assert compared.coverage[f"end: {decided}"] == 1


def test_map_texts() -> None:
    texts = set()
    accepted = 0
    good = [random_map(random.Random(seed)) for seed in range(20)]
    for seed in range(700):
        map_bytes = changed(good[seed % 20], seed) if seed < 600 else list(FAULTS)[seed % len(FAULTS)].encode()
        try:
            compare(map_bytes, seed, lambda _dragon, _block: b"")
            accepted += 1
        except RuntimeError as error:
            texts.add(" ".join(word for word in str(error).split() if word.isalpha())[:24])
    assert accepted > 50 and len(texts) > 40


WORDS = [b"MOVE", b"SPLIT", b"SONAR", b"PROTOCOL", b"INDICATOR", b"LOG", b"DOT", b"LINE", b"ENDTURN", b"MOVEN", b"move"]
ARGUMENTS = [
    b"N",
    b"NESW",
    b"E",
    b"NX",
    b"0",
    b"1",
    b"2",
    b"3",
    b"-1",
    b"+2",
    b"007",
    b"3x",
    b"1.5",
    b"0x2",
    b"-",
    b"1-2",
]
ARGUMENTS += [
    b"4294967296",
    b"4294967299",
    b"-4294967294",
    b"18446744073709551615",
    b"18446744073709551616",
    b"2147483648",
]
ARGUMENTS += [
    b"99999999999999999999999",
    b"-99999999999999999999999",
    b"000000000000000000003",
    b"N5",
    b"\xff",
    b"\0",
    b"ENDTURN",
]
GAPS = [b" ", b" ", b" ", b"  ", b"\t", b"", b"\v", b"\f", b"\r", b"\0"]


def random_reply(pick: random.Random) -> bytes:
    """Lines of every kind, right and wrong, and last a move that is mostly right."""
    text = b""
    for _ in range(pick.choice((0, 1, 2, 5))):
        line = pick.choice(GAPS[:6]) if pick.random() < 0.2 else b""
        line += pick.choice(WORDS)
        for _ in range(pick.choice((0, 1, 1, 2, 2, 5, 7))):
            line += pick.choice(GAPS) + pick.choice(ARGUMENTS)
        text += line + pick.choice((b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\0\n", b"\n\n", b"\r\r\n"))
    if pick.random() < 0.95:
        text += (
            b"MOVE " + bytes([pick.choice(b"NESW")]) + pick.choice((b"\n", b"\n", b"\n", b"\n", b"", b"\r\n", b"\0x\n"))
        )
    if pick.random() < 0.02:
        text += bytes(pick.choices(range(256), k=30))
    return text


def test_odd_replies() -> None:
    # Many dragons with free ways: replies matter more than where they lead.
    dragons = tuple(f"{i % 2} 5 " + " ".join(f"{x} {3 * i}" for x in range(5)) for i in range(16))
    map_bytes = simple_map("48 48", dragons, tuple(f"TILE {x} {y} 1 9" for x in range(48) for y in range(48)))
    turns = 0
    for seed in range(100):
        pick = random.Random(seed)
        turns += compare(map_bytes, seed, lambda _dragon, _block: random_reply(pick), debug=seed % 32).turns  # noqa: B023
    assert turns > 3000


# ---- The comparison itself.


class Another:
    """An official engine that plays, from some reply on, something else."""

    def __init__(self, change: Callable[[bytes], bytes]) -> None:
        self.engine = judge.official_engine()
        self.change = change

    def run(self, map_bytes: bytes, reply: Callable[[int, bytes], bytes], *rest: Any) -> Any:
        return self.engine.run(map_bytes, lambda dragon, block: self.change(reply(dragon, block)), *rest)

    _live = None


def test_a_difference_is_found_and_can_be_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "only.map"
    path.write_bytes(random_map(random.Random(3)))
    monkeypatch.setattr(room, "official_engine", lambda: Another(lambda reply: reply.replace(b"MOVE E", b"MOVE W")))
    with pytest.raises(Difference, match=r"only\.map, seed \d+: the engines differ after \d+ replies") as difference:
        lockstep([path], 3, folder=tmp_path)
    (file,) = tmp_path.glob("difference-*.json")
    assert file.name in str(difference.value)
    saved = json.loads(file.read_text())
    assert (saved["core"], saved["judge"]) == (_core.source_hash, judge.JUDGE_ENGINE_SHA256)
    assert saved["map"].encode("latin-1") == path.read_bytes() and saved["replies"][-1][1].startswith("MOVE E")
    with pytest.raises(Difference) as again:
        reproduce(file)
    assert (again.value.official, again.value.ours) == (difference.value.official, difference.value.ours)
    monkeypatch.undo()
    reproduce(file)


def test_another_result_is_a_difference() -> None:
    engine = judge.official_engine()

    class Lucky(Another):
        def run(self, *arguments: Any) -> Any:
            result = engine.run(*arguments)
            result.a_longest += 1
            return result

    with pytest.raises(Difference, match="'end'"):
        compare(simple_map(), 0, lambda _dragon, _block: b"", official=Lucky(bytes))


def test_another_text_about_a_map_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = simple_map(lines=("TILE 9 9 1 1",))
    with pytest.raises(RuntimeError, match=r"^TILE out of bounds"):
        compare(broken, 0, lambda _dragon, _block: b"")
    good = load_level(simple_map())
    monkeypatch.setattr(room, "load_level", lambda _bytes: good)
    with pytest.raises(Difference, match="refuses"):
        compare(broken, 0, lambda _dragon, _block: b"")


def test_a_run_that_was_stopped_goes_on_where_it_stood(tmp_path: Path) -> None:
    paths = [tmp_path / f"{seed}.map" for seed in range(2)]
    for seed, path in enumerate(paths):
        path.write_bytes(random_map(random.Random(seed)))
    played: list[int] = []
    first = lockstep(paths, 3, policy="reckless", folder=tmp_path, on_game=lambda report: played.append(report.games))
    (journal,) = tmp_path.glob("reckless-*.jsonl")
    with journal.open("a") as file:
        file.write('{"game": 3, "tur')  # killed as it wrote
    second = lockstep(paths, 5, policy="reckless", folder=tmp_path, on_game=lambda report: played.append(report.games))
    assert played == [1, 2, 3, 4, 5]
    assert second.turns > first.turns and second == lockstep(paths, 5, policy="reckless", folder=tmp_path)
    assert second == lockstep(paths, 5, policy="reckless", folder=tmp_path / "other", jobs=2)


def test_the_command_prints_what_was_compared_and_what_was_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "only.map").write_bytes(random_map(random.Random(3)))
    assert run_lockstep(tmp_path, games=2, policy="reckless", out=tmp_path) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 games alike") and "never met, so not compared: " in said
    assert run_lockstep(tmp_path, games=2, policy="reckless", out=tmp_path, json=True) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["core"], figures["judge"]) == (_core.source_hash, judge.JUDGE_ENGINE_SHA256)
    assert figures["games"] == 2 and figures["coverage"]["free step"] > 0 and "end: draw" in figures["never"]


def test_the_report_names_what_never_happened() -> None:
    report = Report()
    assert report.never == list(_core.LOONG_COVERAGE)
    report.add(compare(simple_map(), 0, lambda _dragon, _block: b""))
    assert (report.games, report.turns, report.rounds) == (1, 2, 1)
    assert "death A" not in report.never and "death W" in report.never


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"policy": "brave"}, "unknown policy 'brave': one of careful, reckless, mixed"),
        ({"maps": "nowhere"}, "no maps in nowhere: name a folder with .map files"),
        ({"games": 0}, "games = 0, jobs = 1, seed = 0: the first two are 1 or more, seeds below 2^64"),
        ({"jobs": 0}, "games = 1, jobs = 0, seed = 0: the first two are 1 or more, seeds below 2^64"),
        ({"seed": -1}, "games = 1, jobs = 1, seed = -1: the first two are 1 or more, seeds below 2^64"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(change: dict[str, Any], text: str) -> None:
    with pytest.raises(SparringError) as error:
        lockstep(**({"maps": SHIPPED[:1], "games": 1} | change))
    assert str(error.value) == text


def test_a_faulty_map_is_told_with_its_line_before_anything_is_played(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(simple_map(lines=("TILE 9 9 1 1",)))
    with pytest.raises(SparringError, match=rf"^{re.escape(str(path))}:\d+: TILE out of bounds"):
        lockstep([SHIPPED[0], path], 2, folder=tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_map_that_is_too_big_for_our_engine_is_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(simple_map("256 256", lines=("UNIT_LIMIT 40000",)))
    with pytest.raises(SparringError, match=r"a\.map: the map is too big for this engine"):
        lockstep([path], 1, folder=tmp_path)


def test_a_journal_that_cannot_be_written_and_one_of_other_bytes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(random_map(random.Random(3)))
    with pytest.raises(SparringError, match=r"^cannot write \S+a\.map/\S+: .*; make room or choose another --out"):
        lockstep([path], 1, policy="reckless", folder=path)
    first = lockstep([path], 1, policy="reckless", folder=tmp_path)
    (journal,) = tmp_path.glob("*.jsonl")
    with journal.open("ab") as file:
        file.write(b'{"game": 1, "tu')  # killed as it wrote
    assert lockstep([path], 1, policy="reckless", folder=tmp_path) == first
    with journal.open("ab") as file:
        file.write(b"\xff\xfe\n")
    with pytest.raises(SparringError, match=r":2: no game of a run"):
        lockstep([path], 1, policy="reckless", folder=tmp_path)


def test_a_spoilt_journal_and_a_spoilt_reproduction_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(random_map(random.Random(3)))
    first = lockstep([path], 1, policy="reckless", folder=tmp_path)
    (journal,) = tmp_path.glob("*.jsonl")
    (line,) = journal.read_text().splitlines()
    for spoilt in ("nonsense}", "{}", '{"game": "x"}', "[]}"):
        journal.write_text(f"{line}\n{spoilt}\n")
        with pytest.raises(SparringError, match=rf"{journal.name}:2: no game of a run: remove the line"):
            lockstep([path], 1, policy="reckless", folder=tmp_path)
        for content in (spoilt, '{"replies": [], "map": 3, "seed": 1, "debug": 0}'):
            (tmp_path / "difference.json").write_text(content)
            with pytest.raises(SparringError, match="is no reproduction of a difference"):
                reproduce(tmp_path / "difference.json")
    journal.write_text(f"{line}\n{line}\n")
    assert lockstep([path], 1, policy="reckless", folder=tmp_path) == first  # what stands twice counts once


def test_another_version_of_the_judge_proves_nothing_but_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "JUDGE_ENGINE_SHA256", "0" * 64)  # as if the rules here were another's
    with pytest.raises(
        SparringError, match=r"has engine 26e68680e45e, and the rules here are those of .* 000000000000"
    ):
        judge.official_engine()
    with pytest.raises(SparringError, match="has engine 26e68680e45e"):
        lockstep(SHIPPED[:1], 1)
    result = judge.official_engine(any_version=True).run(simple_map(), lambda _dragon, _block: b"")
    assert result.rounds == 0
    assert judge.installed_engine_hash().startswith("26e68680e45e")


def test_the_compiled_engine_is_kept_and_a_spoilt_copy_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for content in (None, b"spoilt"):
        judge._loaded.cache_clear()
        if content is not None:
            next(tmp_path.glob("sparring/*.bin")).write_bytes(content)
        judge.official_engine()
        (kept,) = tmp_path.glob("sparring/*")
        assert kept.stat().st_size > 1_000_000
