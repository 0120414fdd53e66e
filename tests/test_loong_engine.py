"""The rules of Loong, one by one, on small maps; the whole of them is compared with the judge in test_lockstep.py."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loong_maps import random_map, simple_map
from map_faults import FAULTS

from sparring import _core
from sparring.judge import MatchResult, NativeEngine
from sparring.judge.native import load_level
from sparring.judge.players import Player
from sparring.levels.generator import generate_map
from sparring.levels.maps import write_map

ACTION, LANE, VIEW = (np.dtype(fields) for fields in (_core.LOONG_ACTION, _core.LOONG_LANE, _core.LOONG_VIEW))
CIRCLE = ("MOVE N", "MOVE E", "MOVE S", "MOVE W")
"""Three segments and fewer can go round four tiles for ever."""


@dataclass
class Played:
    """What the host of a match heard: blocks by dragon and turn, deaths, births, the result."""

    blocks: dict[int, list[str]] = field(default_factory=dict)
    inits: dict[int, str] = field(default_factory=dict)
    deaths: list[tuple[int, int, str]] = field(default_factory=list)
    order: list[tuple[str, int]] = field(default_factory=list)
    result: MatchResult | None = None

    def line(self, dragon: int, turn: int, key: str) -> str:
        """The rest of the line that starts with `key`."""
        return next(line for line in self.blocks[dragon][turn].splitlines() if line.startswith(key + " ")).partition(
            " "
        )[2]

    def has(self, dragon: int, turn: int, key: str) -> bool:
        return any(line.startswith(key + " ") for line in self.blocks[dragon][turn].splitlines())

    def messages(self, dragon: int, turn: int) -> list[int]:
        lines = self.blocks[dragon][turn].splitlines()
        return [int(line) for line in lines[5 : 5 + int(lines[4].split()[1])]]

    def bodies(self, dragon: int, turn: int) -> list[str]:
        return [line for line in self.blocks[dragon][turn].splitlines() if line[:2] in ("A ", "B ")]

    def pearls(self, dragon: int, turn: int) -> set[tuple[int, int]]:
        words = [line.split() for line in self.blocks[dragon][turn].splitlines()]
        return {(int(w[0]), int(w[1])) for w in words if len(w) == 4 and w[0].isdigit() and w[2] == "1"}


def play(
    map_bytes: bytes, script: Mapping[int, Sequence[str]], *, seed: int = 0, rounds: int = 500, **options: Any
) -> Played:
    """Play a match by a script of replies for each dragon, `;` for the end of a line.

    A script that is CIRCLE goes on for ever. Else a dragon gives up at its end, as all do after `rounds` rounds.
    """
    played = Played()

    def reply(dragon: int, block: bytes) -> bytes:
        played.order.append(("ask", dragon))
        blocks = played.blocks.setdefault(dragon, [])
        blocks.append(block.decode())
        lines = script.get(dragon, ())
        turn = len(blocks) - 1
        if int(block.split()[1]) >= rounds:
            return b""
        text = lines[turn % 4] if lines is CIRCLE else lines[turn] if turn < len(lines) else ""
        return text.replace(";", "\n").encode() + b"\n"

    def spawn(dragon: int, init: bytes) -> None:
        played.order.append(("spawn", dragon))
        played.inits[dragon] = init.decode()

    def death(*event: Any) -> None:
        played.order.append(("death", event[0]))
        played.deaths.append(event)

    played.result = NativeEngine().run(map_bytes, reply, death, spawn, seed=seed, **options)
    return played


# ---- What a dragon reads.


def test_the_blocks_of_the_published_example() -> None:
    map_bytes = simple_map(
        dragons=("0 3 4 4 3 4 2 4", "1 2 5 2 6 2"),
        lines=("UNIT_LIMIT 8", "TILE 5 5 2 4", "TILE 3 3 1 1", "EDGE 64 2 12", "EDGE 121 2 12", "EDGE 96 1 0"),
    )
    played = play(
        map_bytes,
        {0: ["PROTOCOL 3;MOVE S;SONAR N 90210;SONAR E 7", "MOVE S"], 1: ["MOVE W", "MOVE W"]},
        seed=42,
        rounds=2,
    )
    assert played.inits == {0: "ID 0\nTEAM A\nMAP 9 9\nUNIT_LIMIT 8\n", 1: "ID 1\nTEAM B\nMAP 9 9\nUNIT_LIMIT 8\n"}
    lines = played.blocks[0][1].split("\n")
    assert lines[:9] == [
        *("ROUND 1", "DIR S", "LENGTH 3", "UNIT_COUNT 1", "NUM_MSGS 1", "7", "ECHOES 1 0 1 0 0", "1 2 0 -1", "2 2 0 -1")
    ]
    assert "3 3 1 1" in lines
    assert "5 5 0 2" in lines
    assert lines[7 + 48 : 7 + 49 + 6] == [
        *("7 8 0 -1", "DRAGON_BODIES 5", "A 0 4 5 S 1", "A 0 4 4 S 0", "A 0 3 4 E 0", "B 1 4 2 W 1", "B 1 5 2 W 0")
    ]
    assert lines[-16:] == [
        *(". . . . . . .", ". . . 12 . . .", ". . . . . . .", ". . . . . . .", "12 . . . . . .", ". . . . . . ."),
        *(". . . . . . .", ". . . . . . .", ". . . . . . . .", ". . . . . . . .", ". . . . . w . .", ". . . . . . . ."),
        *(". . . . . . . .", ". . . . . . . .", ". . . . . . . .", ""),
    ]


def test_echoes_and_long_messages_need_protocol_3() -> None:
    replies = [
        "MOVE N;SONAR S 4294967296;SONAR W 4294967295",
        "PROTOCOL 3;MOVE E;SONAR W 4294967296",
        "PROTOCOL 2;MOVE S",
    ]
    played = play(simple_map(dragons=("0 3 1 1 2 1 3 1",)), {0: replies})
    assert played.result is not None and played.result.rounds == 0  # one team alone has won after the first round
    played = play(
        simple_map(dragons=("0 3 1 1 2 1 2 2", "1 2 5 5 6 5")), {0: [*replies, "MOVE W", ""], 1: CIRCLE}, rounds=4
    )
    assert [played.has(0, turn, "ECHOES") for turn in range(4)] == [False, False, True, False]
    assert played.messages(0, 1) == [4294967295]
    assert played.line(0, 2, "NUM_MSGS") == "1" and played.messages(0, 2) == [4294967296]


# ---- Moves.


@pytest.mark.parametrize(
    ("length", "steps", "left"),
    [
        (2, 1, 2),
        (4, 1, 4),
        (4, 3, 2),
        (4, 4, None),
        (5, 2, 5),
        (5, 5, 2),
        (5, 6, None),
        (9, 3, 9),
        (9, 10, 2),
        (9, 11, None),
    ],
)
def test_free_steps_are_a_quarter_of_the_length_and_each_further_one_costs_a_segment(
    length: int, steps: int, left: int | None
) -> None:
    body = " ".join(f"{x} 3" for x in range(20, 20 + length))
    map_bytes = simple_map("40 9", (f"0 {length} {body}", "1 2 5 5 6 5"))
    played = play(map_bytes, {0: ["MOVE " + "W" * steps], 1: CIRCLE}, rounds=1)
    if left is None:
        assert played.deaths[0] == (0, 0, "A")
        assert played.pearls(1, 0) == set()
    else:
        assert played.line(0, 1, "LENGTH") == str(left)
        assert played.bodies(0, 1)[0] == f"A 0 {20 - steps} 3 W 1"


def test_steps_made_before_a_fatal_one_stand_and_decide_where_pearls_fall() -> None:
    map_bytes = simple_map(dragons=("0 4 3 3 4 3 5 3 6 3", "1 2 1 5 1 6"))
    played = play(map_bytes, {0: ["MOVE WWWW"], 1: CIRCLE}, rounds=1)
    assert played.deaths[0] == (0, 0, "A")  # three steps are paid for: two segments are left on (0, 3) and (1, 3)
    assert played.pearls(1, 0) == {(0, 3)}


def test_a_pearl_pays_for_a_step_and_lets_the_shortest_go_two() -> None:
    # Dragon 2 dies first and leaves a pearl in front of dragon 3 (moved one along by then).
    map_bytes = simple_map(dragons=("0 2 7 7 7 8", "1 2 1 7 1 8", "0 2 3 3 3 2", "1 2 5 3 6 3"))
    played = play(map_bytes, {0: CIRCLE, 1: CIRCLE, 2: [""], 3: ["MOVE W", "MOVE WW"]}, rounds=2)
    assert (3, 3) in played.pearls(3, 0)
    assert played.line(3, 2, "LENGTH") == "2" and played.bodies(3, 2)[0] == "B 3 2 3 W 1"
    assert (3, 3) not in played.pearls(3, 2)


def test_the_own_tail_blocks_the_step_that_would_free_it() -> None:
    square = "0 4 3 3 4 3 4 4 3 4"
    assert play(simple_map(dragons=(square, "1 2 7 7 7 8")), {0: ["MOVE S"], 1: CIRCLE}).deaths[0] == (0, 0, "S")
    short = "0 3 3 3 4 3 4 4"
    assert play(simple_map(dragons=(short, "1 2 7 7 7 8")), {0: ["MOVE S"], 1: CIRCLE}, rounds=1).deaths[0] != (
        0,
        0,
        "S",
    )
    assert play(simple_map(dragons=("0 2 3 3 4 3", "1 2 7 7 7 8")), {0: ["MOVE E"], 1: CIRCLE}).deaths[0] == (0, 0, "S")


def test_kelp_kills_and_every_second_segment_from_the_head_becomes_a_pearl() -> None:
    map_bytes = simple_map(dragons=("0 5 3 3 4 3 5 3 6 3 7 3", "1 2 5 5 5 6"), lines=("EDGE 73 1 0",))
    played = play(map_bytes, {0: ["MOVE W"], 1: CIRCLE}, rounds=1)
    assert played.deaths[0] == (0, 0, "W")
    assert played.pearls(1, 0) == {(3, 3), (5, 3), (7, 3)}


def test_running_into_a_body_kills_the_mover_and_into_a_head_kills_both_victim_first() -> None:
    map_bytes = simple_map(dragons=("0 2 1 3 0 3", "1 3 3 3 4 3 5 3", "0 2 4 5 4 6", "1 2 7 7 7 8"))
    played = play(map_bytes, {0: ["MOVE E"], 1: ["MOVE W", ""], 2: ["MOVE N", "MOVE N"], 3: CIRCLE}, rounds=2)
    assert played.deaths[:2] == [(0, 0, "H"), (1, 0, "H")]
    map_bytes = simple_map(dragons=("0 2 7 7 7 8", "1 3 3 3 4 3 5 3", "0 2 4 5 4 6", "1 2 1 7 1 8"))
    played = play(map_bytes, {0: CIRCLE, 1: ["MOVE W"], 2: ["MOVE NN"], 3: CIRCLE}, rounds=1)
    assert played.deaths[0] == (2, 0, "A")  # a second step of two segments is not paid for
    map_bytes = simple_map(dragons=("0 2 7 7 7 8", "1 3 3 3 4 3 5 3", "0 2 3 4 3 5", "1 2 1 7 1 8"))
    played = play(map_bytes, {0: CIRCLE, 1: ["MOVE W"], 2: ["MOVE N"], 3: CIRCLE}, rounds=1)
    assert played.deaths[0] == (2, 0, "O")


def test_a_portal_carries_a_body_and_a_ray_on_with_the_same_heading() -> None:
    # The north sides of (4, 3) and (1, 6): one leads to what lies north of the other.
    lines = ("EDGE 64 2 12", "EDGE 121 2 12")
    map_bytes = simple_map(dragons=("0 2 4 3 4 4", "1 2 7 7 7 8", "0 2 5 1 6 1"), lines=lines)
    played = play(map_bytes, {0: ["MOVE N", "MOVE N", ""], 1: CIRCLE, 2: ["MOVE W;SONAR S 5"]}, rounds=3)
    assert played.bodies(0, 1)[:2] == ["A 0 1 5 N 1", "A 0 4 3 N 0"]
    assert played.messages(0, 1) == [5]  # from (4, 2) to (1, 6), and south round the board
    assert played.bodies(0, 2)[:2] == ["A 0 1 4 N 1", "A 0 1 5 N 0"]


# ---- Splits.


def test_a_split_gives_the_rear_to_a_child_that_is_turned_round_and_acts_in_the_same_round() -> None:
    map_bytes = simple_map(dragons=("0 5 3 3 4 3 5 3 6 3 6 4", "1 2 1 7 1 8"))
    played = play(map_bytes, {0: ["PROTOCOL 3;SPLIT 3;SONAR 9"], 1: CIRCLE, 2: ["MOVE S"]}, rounds=1)
    assert played.order[:6] == [("spawn", 0), ("spawn", 1), ("ask", 0), ("spawn", 2), ("ask", 1), ("ask", 2)]
    assert played.inits[2] == "ID 2\nTEAM A\nMAP 9 9\nUNIT_LIMIT 64\n"
    assert played.has(2, 0, "ECHOES") and not played.has(0, 0, "ECHOES")
    assert played.line(2, 0, "UNIT_COUNT") == "2" and played.line(2, 0, "DIR") == "S"
    assert [line for line in played.bodies(2, 0) if line[0] == "A"] == [
        *("A 0 3 3 W 1", "A 0 4 3 W 0", "A 2 6 4 S 1", "A 2 6 3 S 0", "A 2 5 3 E 0")
    ]


@pytest.mark.parametrize("segments", [-3, 0, 1, 4, 5, 2147483647])
def test_a_split_that_leaves_either_side_too_short_kills(segments: int) -> None:
    map_bytes = simple_map(dragons=("0 5 3 3 4 3 5 3 6 3 6 4", "1 2 1 7 1 8"))
    assert play(map_bytes, {0: [f"SPLIT {segments}"], 1: CIRCLE}, rounds=1).deaths[0] == (0, 0, "A")


def test_a_split_over_the_unit_limit_kills() -> None:
    bodies = ("0 4 3 3 4 3 5 3 6 3", "1 2 1 7 1 8")
    limited = {
        limit: play(simple_map(dragons=bodies, lines=(f"UNIT_LIMIT {limit}",)), {0: ["SPLIT 2"], 1: CIRCLE}, rounds=1)
        for limit in (1, 2)
    }
    assert limited[1].deaths[0] == (0, 0, "A") and 2 not in limited[1].inits
    assert limited[2].inits[2].startswith("ID 2\nTEAM A")


# ---- Sonar.


def test_rays_go_in_the_order_of_directions_and_the_facing_yields_to_an_aimed_message() -> None:
    map_bytes = simple_map(dragons=("0 2 3 3 4 3", "1 2 7 7 7 8"))
    replies = ["PROTOCOL 3;MOVE W;SONAR 5;SONAR W 4;SONAR S 3;SONAR N 1", "MOVE N;SONAR 6;SONAR W 7;SONAR W 8"]
    played = play(map_bytes, {0: replies, 1: CIRCLE}, rounds=3)
    assert played.messages(0, 1) == [1, 3, 4]
    assert played.line(0, 1, "ECHOES") == "0 1 2 0 0"  # west, round the board, into the own tail
    assert played.messages(0, 2) == [6, 8]


def test_the_ray_against_the_facing_leaves_the_tail_the_way_it_points() -> None:
    map_bytes = simple_map(dragons=("0 3 3 3 4 3 4 4", "1 2 4 7 5 7"))
    played = play(map_bytes, {0: ["PROTOCOL 3;MOVE N;SONAR S 5", ""], 1: ["MOVE W", ""]}, rounds=1)
    # After the move the tail is on (4, 3) and points east: round the board to (3, 3), the middle of the body.
    assert played.messages(0, 1) == [5] and played.line(0, 1, "ECHOES") == "0 1 0 0 0"


def test_a_message_is_read_in_this_round_by_later_dragons_and_in_the_next_by_earlier_ones() -> None:
    map_bytes = simple_map(dragons=("0 2 3 3 3 4", "1 2 6 2 6 3"))
    played = play(map_bytes, {0: ["MOVE N;SONAR E 1"], 1: ["MOVE E;SONAR W 2"]}, rounds=1)
    assert played.messages(1, 0) == [1]
    assert played.messages(0, 1) == [2]


def test_a_dying_dragon_sends_nothing() -> None:
    map_bytes = simple_map(dragons=("0 2 3 3 4 3", "1 2 1 2 1 1"))
    played = play(map_bytes, {0: ["MOVE E;SONAR W 1;SONAR 2"], 1: CIRCLE}, rounds=1)
    assert played.messages(1, 0) == []


# ---- Pearls.


def test_countdowns_are_shared_with_the_mirror_and_drawn_again_where_a_dragon_stands() -> None:
    lines = ("SYMMETRY xy", "TILE 3 3 1 1", "TILE 5 5 1 1", "TILE 2 3 2 9", "TILE 6 5 2 9")
    map_bytes = simple_map(dragons=("0 2 3 3 3 2", "1 2 7 7 7 8"), lines=lines)
    played = play(map_bytes, {0: ["MOVE S", "MOVE S", ""], 1: CIRCLE}, seed=7, rounds=2)
    first = {
        tuple(line.split()[:2]): line.split()[2:] for line in played.blocks[0][0].splitlines() if len(line.split()) == 4
    }
    second = {
        tuple(line.split()[:2]): line.split()[2:] for line in played.blocks[0][1].splitlines() if len(line.split()) == 4
    }
    assert first["3", "3"] == ["0", "1"] and first["5", "5"] == ["1", "1"]
    assert first["2", "3"] == first["6", "5"] and first["4", "4"] == ["0", "-1"]
    assert second["3", "3"] == ["0", "1"]  # the tail stood there
    assert int(second["2", "3"][1]) == int(first["2", "3"][1]) - 1


# ---- The end.


def test_a_team_without_dragons_loses_at_the_end_of_the_round() -> None:
    played = play(simple_map(), {0: [""], 1: CIRCLE})
    assert played.result == MatchResult(0, "B", 0, 0, 1, 0, 2, played.result.events, 0, 2, 0, 2)  # type: ignore[union-attr]
    assert [event for event in played.order if event[0] == "ask"] == [("ask", 0), ("ask", 1)]
    both = play(simple_map(), {}).result
    assert both is not None and (both.winner, both.end_reason, both.rounds) == (None, 0, 0)


@pytest.mark.parametrize(
    ("dragons", "winner"),
    [
        (("0 3 1 1 2 1 2 2", "1 2 5 5 6 5"), "A"),  # the longer queen
        (("0 3 1 1 2 1 2 2", "1 2 5 5 6 5", "0 2 1 5 2 5", "1 3 5 1 6 1 6 2"), "A"),  # ... beats the longer total
        (("0 2 1 1 2 1", "1 2 5 5 6 5", "0 2 1 5 2 5", "1 3 5 1 6 1 6 2"), "B"),  # longest
        (("0 2 1 1 2 1", "1 2 5 5 6 5", "0 2 1 5 2 5"), "A"),  # total
        (("0 2 1 1 2 1", "1 2 5 5 6 5"), None),
        (("1 3 1 1 2 1 2 2", "0 2 5 5 6 5"), "B"),  # B first: its queen is dragon 0
    ],
)
def test_after_500_rounds_queen_longest_and_total_decide(dragons: tuple[str, ...], winner: str | None) -> None:
    result = play(simple_map(dragons=dragons), dict.fromkeys(range(4), CIRCLE)).result
    assert result is not None and (result.rounds, result.end_reason, result.winner) == (499, 1, winner)


def test_a_dead_queen_counts_nothing() -> None:
    dragons = ("0 2 1 1 2 1", "1 2 5 5 6 5", "0 3 1 5 2 5 2 6")
    result = play(simple_map(dragons=dragons), {0: ["MOVE E"], 1: CIRCLE, 2: CIRCLE}).result
    assert result is not None and (result.a_queen, result.a_longest, result.winner) == (0, 3, "B")


# ---- Replies.

STAYS = "nothing"


@pytest.mark.parametrize(
    ("reply", "effect"),
    [
        (b"MOVE N\n", "N"),
        (b"MOVE N", STAYS),
        (b"MOVE N\nMOVE E", "N"),
        (b"MOVE N\r\n", "N"),
        (b"  MOVE \t\v\f N \r \n", "N"),
        (b"MOVE N E\n", STAYS),
        (b"move N\n", STAYS),
        (b"MOVEN\n", STAYS),
        (b"MOVE\n", STAYS),
        (b"MOVE n\n", STAYS),
        (b"MOVE N\0 E\n", "N"),
        (b"MOVE\0 N\n", STAYS),
        (b"MOVE N\nMOVE S S\nMOVE x\nSPLIT x\n", "N"),
        (b"MOVE S\nMOVE N\n", "N"),
        (b"SPLIT 2\nMOVE N\n", "N"),
        (b"MOVE N\nENDTURN\nMOVE S\n", "N"),
        (b"MOVE S\nENDTURN now\nMOVE N\n", "N"),
        (b"SPLIT 2\n", "split"),
        (b"SPLIT +002 \n", "split"),
        (b"SPLIT 4294967298\n", "split"),
        (b"SPLIT -4294967294\n", "split"),
        (b"SPLIT 2.0\n", STAYS),
        (b"SPLIT 0x2\n", STAYS),
        (b"SPLIT 2 2\n", STAYS),
        (b"SPLIT 2\nSPLIT 9 x\n", "split"),
        (b"SPLIT - 2\n", STAYS),
        (b"", STAYS),
        (b"\n\n \n", STAYS),
    ],
)
def test_the_grammar_of_actions(reply: bytes, effect: str) -> None:
    map_bytes = simple_map(dragons=("0 4 3 3 4 3 5 3 6 3", "1 2 1 7 1 8"))
    seen: list[Any] = []

    def answer(dragon: int, block: bytes) -> bytes:
        turn = (dragon, block.split()[1])
        if turn == (0, b"1"):
            seen.append("split" if b"LENGTH 2" in block else block.split()[3].decode())
        return reply if turn == (0, b"0") else b"MOVE N\n" if turn == (1, b"0") else b""

    NativeEngine().run(map_bytes, answer)
    assert (seen or [STAYS]) == [effect]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("SONAR N 5", [5]),
        ("SONAR 5", [5]),
        ("SONAR N5", [5]),
        ("SONAR N 18446744073709551615", [2**64 - 1]),
        ("SONAR N 18446744073709551616", []),
        ("SONAR N 000000000000000000005", []),
        ("SONAR N -5", []),
        ("SONAR N +5", []),
        ("SONAR N 5 5", []),
        ("SONAR X 5", []),
        ("SONAR -1", [4294967295]),
        ("SONAR 4294967296", [0]),
        ("SONAR 4294967301", [5]),
        ("SONAR 99999999999999999999999", [4294967295]),
        ("SONAR -99999999999999999999999", [4294967295]),
        ("SONAR 5;SONAR 6;SONAR N 7;SONAR N 8;SONAR N", [8]),
        ("SONAR", []),
    ],
)
def test_the_grammar_of_sonar(line: str, told: list[int]) -> None:
    map_bytes = simple_map(dragons=("0 2 3 3 4 3", "1 2 7 7 7 8"))
    played = play(map_bytes, {0: [f"PROTOCOL 3;MOVE N;{line}"], 1: CIRCLE}, rounds=1)
    assert played.messages(0, 1) == told


@pytest.mark.parametrize(
    ("number", "wide"), [("3", True), ("4294967298", False), ("-1", False), ("99999999999", True), ("2", False)]
)
def test_the_protocol_is_cut_to_32_bits(number: str, wide: bool) -> None:
    played = play(simple_map(), {0: [f"MOVE N;PROTOCOL {number}"], 1: CIRCLE}, rounds=1)
    assert played.has(0, 1, "ECHOES") == wide


# ---- Maps.


@pytest.mark.parametrize(("file", "text"), FAULTS.items())
def test_a_faulty_map_is_refused_with_the_organisers_text(file: str, text: str) -> None:
    with pytest.raises(RuntimeError) as error:
        NativeEngine().run(file.encode(), lambda _dragon, _block: b"")
    assert str(error.value) == text


def test_a_text_that_quotes_a_nul_or_odd_bytes_is_cut_and_decoded_as_the_judge_does() -> None:
    with pytest.raises(RuntimeError, match=r"^unknown map line: a\ufffd$"):
        load_level(b"MAP 9 9\na\xff\0b\n")


@pytest.mark.parametrize("index", range(8))
def test_both_readers_find_the_same_map(index: int) -> None:
    made = generate_map(11, index)
    level = load_level(write_map(made))
    assert (level.gaps == made.gaps).all() and (level.edges == [made.horizontal, made.vertical]).all()
    assert level.symmetry == made.symmetry.replace("none", "") and level.unit_limit == made.unit_limit
    assert level.bodies == [("AB"[dragon.team], [tuple(tile) for tile in dragon.body]) for dragon in made.dragons]


def test_what_a_level_says_of_its_map() -> None:
    lines = ("SYMMETRY x", "UNIT_LIMIT 9", "TILE 3 2 4 7", "TILE 3 6 4 7", "EDGE 5 1 0", "EDGE 12 2 3", "EDGE 33 2 3")
    level = load_level(simple_map(lines=lines))
    assert (level.width, level.height, level.symmetry, level.unit_limit, level.groups) == (9, 9, "x", 9, 1)
    assert level.bodies == [("A", [(1, 1), (2, 1)]), ("B", [(4, 4), (5, 4)])]
    assert np.argwhere(level.gaps[..., 1]).tolist() == [[2, 3], [6, 3]] and level.gaps[2, 3].tolist() == [4, 7]
    assert np.argwhere(level.edges != -1).tolist() == [[0, 0, 5], [1, 0, 2], [1, 1, 3]]
    assert level.edges[0, 0, 5] == -2 and level.edges[1, 0, 2] == level.edges[1, 1, 3] == 3


# ---- The engine in the judge's place.


def test_an_exception_of_a_bot_ends_the_match() -> None:
    def answer(dragon: int, block: bytes) -> bytes:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        NativeEngine().run(simple_map(), answer)


def test_seeds_are_64_bits_signed_or_not() -> None:
    map_bytes = simple_map(lines=tuple(f"TILE {x} {y} 1 99" for x in range(9) for y in range(9)))

    def first_block(seed: int) -> bytes:
        blocks: list[bytes] = []
        NativeEngine().run(map_bytes, lambda _dragon, block: blocks.append(block) or b"", seed=seed)  # type: ignore[func-returns-value]
        return blocks[0]

    assert first_block(-1) == first_block(2**64 - 1) != first_block(1)


BOT = """
import sys
def lines():
    while True:
        block = []
        for line in iter(sys.stdin.readline, "\\n"):
            if not line:
                return
            block.append(line)
        yield block
for turn, block in enumerate(lines()):
    way = "NESW"[turn % 4]
    print("MOVE", way if turn < 9 else "W")
    print("ENDTURN", flush=True)
"""


def test_the_toolkits_own_run_command_plays_on_our_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = pytest.importorskip("unswbc.run")
    bot = tmp_path / "bot"
    bot.mkdir()
    (bot / "main.py").write_text(BOT)
    map_file = tmp_path / "small.map"
    lines = tuple(f"EDGE {(2 * y + 1) * 10 + 4} 1 0" for y in range(9))  # a wall of kelp
    map_file.write_bytes(
        simple_map(dragons=("0 3 1 1 2 1 2 2", "1 3 5 5 6 5 6 6", "0 2 1 5 2 5", "1 2 5 1 6 1"), lines=lines)
    )

    def output(engine: Callable[[], Any]) -> list[str]:
        monkeypatch.setattr(run, "EngineModule", engine)
        code = run.execute(str(map_file), [str(bot), str(bot)], False, None, True, seed=5)
        assert code == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("running")]
        return [line.rpartition(" (")[0] if line.endswith("s)") else line for line in lines]  # without the time it took

    official = output(run.EngineModule)
    assert any("hit a wall" in line for line in official) and "rounds" in official[-2]
    assert output(NativeEngine) == official


# ---- Batches.


def pool(count: int) -> list[_core.LoongLevel]:
    return [load_level(random_map(random.Random(seed), repeats=seed % 4 == 0)) for seed in range(count)]


def random_actions(pick: np.random.Generator, batch: _core.LoongMatches) -> np.ndarray[Any, Any]:
    """Anything, and mostly into a free tile."""
    lanes = batch.lanes
    batch.look()
    views = batch.views.view(VIEW)[:, 0]
    edges = [views["north"][:, 3, 3], views["west"][:, 3, 4], views["north"][:, 4, 3], views["west"][:, 3, 3]]
    bodies = [views["body"][:, y, x] for x, y in ((3, 2), (4, 3), (3, 4), (2, 3))]
    free = np.stack([(edge == -1) & (body == 0) for edge, body in zip(edges, bodies, strict=True)], axis=1)
    actions = np.zeros(lanes, ACTION)
    actions["kind"] = np.where((views["length"] > 4) & (pick.random(lanes) < 0.3), 2, 1)
    actions["step_count"] = pick.choice((1, 1, 1, 1, 1, 1, 2), lanes)
    actions["steps"] = pick.integers(0, 4, (lanes, 32))
    actions["steps"][:, 0] = (free + pick.random((lanes, 4))).argmax(axis=1)
    actions["split"] = pick.integers(2, 4, lanes)
    actions["aimed"] = pick.integers(0, 2**63, (lanes, 4))
    actions["ahead"] = pick.integers(0, 2**32, lanes)
    actions["aimed_directions"] = pick.integers(0, 16, lanes)
    actions["extras"] = pick.integers(0, 4, lanes)
    actions["protocol"] = pick.integers(1, 5, lanes)
    return actions


def as_text(action: Any) -> bytes:
    """The reply that says what a row of actions says."""
    steps = "".join("NESW"[step] for step in action["steps"][: action["step_count"]])
    lines = [("", f"MOVE {steps}", f"SPLIT {action['split']}")[action["kind"]]]
    lines += [f"SONAR {'NESW'[d]} {action['aimed'][d]}" for d in range(4) if action["aimed_directions"] >> d & 1]
    if action["extras"] & 1:
        lines.append(f"SONAR {action['ahead']}")
    if action["extras"] & 2:
        lines.append(f"PROTOCOL {action['protocol']}")
    return "\n".join([*lines, ""]).encode()


def as_rows(actions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return actions.view(np.uint8).reshape(len(actions), ACTION.itemsize)


def test_a_batch_plays_by_rows_what_a_match_plays_by_text() -> None:
    levels = pool(12)
    batch = _core.LoongMatches(levels, len(levels))
    lanes = np.arange(len(levels))
    seeds = np.arange(len(levels), dtype=np.uint64) * 77_777_777_777
    batch.restart(lanes, lanes, seeds)
    rows, views = batch.rows.view(LANE)[:, 0], batch.views.view(VIEW)[:, 0]
    matches = [_core.LoongTextMatch(level, int(seed)) for level, seed in zip(levels, seeds, strict=True)]
    pick = np.random.default_rng(3)
    turns = 0
    while not rows["over"].all():
        actions = random_actions(pick, batch)
        batch.look()
        for lane in np.flatnonzero(rows["waiting"]):
            event = next(event for event in iter(matches[lane].next, None) if event[0] == "ask")
            assert event[1] == rows["dragon"][lane] and event[2] == batch.block(lane)
            assert f"DIR {'NESW'[views['facing'][lane]]}\nLENGTH {views['length'][lane]}\n".encode() in event[2]
            assert _core.loong_view(batch.init(lane), event[2]) == batch.views[lane].tobytes()
            matches[lane].reply(as_text(actions[lane]))
            turns += 1
        batch.act(as_rows(actions))
    for row, match in zip(rows, matches, strict=True):
        end = next(event for event in iter(match.next, None) if event[0] == "end")[1]
        assert end[:3] == (row["round"], row["winner"], row["reason"])
        numbers = [*row["dragons"], *row["total"], *row["queen"], *row["longest"]]
        assert [*end[3:7], *end[8:]] == numbers and row["fault"] == 0
    assert turns > 1000


def test_what_is_no_block_of_the_judge_is_no_view() -> None:
    batch = _core.LoongMatches(pool(1), 1)
    init, block = batch.init(0), batch.block(0)
    with pytest.raises(ValueError, match="not an init block"):
        _core.loong_view(block, block)
    with pytest.raises(ValueError, match="not a round block"):
        _core.loong_view(init, block.replace(b"ROUND", b"RUOND"))


def test_lanes_do_not_depend_on_threads_neighbours_or_what_they_played_before() -> None:
    levels = pool(5)
    count = 1000  # so many that threads share them
    lanes = np.arange(count)
    seeds = np.arange(count, dtype=np.uint64) + 99

    def states(threads: int, order: np.ndarray[Any, Any], before: int) -> np.ndarray[Any, Any]:
        batch = _core.LoongMatches(levels, count, threads=threads)
        pick = np.random.default_rng(before)
        for _ in range(before):
            batch.act(as_rows(random_actions(pick, batch)))
        for some in np.array_split(order, 3):
            batch.restart(some, some % 5, seeds[some])
        pick = np.random.default_rng(1)
        for _ in range(40):
            batch.act(as_rows(random_actions(pick, batch)))
        return batch.state()

    first = states(1, lanes, 0)
    assert (first == states(3, lanes[::-1].copy(), 5)).all()
    assert len({lane.tobytes() for lane in first}) == count


def test_a_batch_goes_on_from_a_saved_state() -> None:
    levels = pool(4)
    batch, other = (_core.LoongMatches(levels, 16) for _ in range(2))
    pick = np.random.default_rng(2)
    for _ in range(20):
        batch.act(as_rows(random_actions(pick, batch)))
    other.load_state(batch.state())
    for _ in range(40):
        action = as_rows(random_actions(pick, batch))
        batch.act(action)
        other.act(action)
        assert (batch.rows == other.rows).all()
    assert (batch.state() == other.state()).all()


def test_a_batch_refuses_what_is_no_action_and_changes_nothing() -> None:
    batch = _core.LoongMatches(pool(2), 4)
    before = batch.state()
    for name, value in [("kind", 3), ("step_count", 0), ("step_count", 33), ("steps", 4), ("aimed_directions", 16)]:
        actions = np.zeros(4, ACTION)
        actions["kind"] = actions["step_count"] = 1
        actions[name][2] = value
        with pytest.raises(ValueError, match="lane 2: not an action"):
            batch.act(as_rows(actions))
    with pytest.raises(ValueError, match="one row of LOONG_ACTION"):
        batch.act(np.zeros((3, ACTION.itemsize), np.uint8))
    with pytest.raises(IndexError, match="lane out of range"):
        batch.restart(np.array([4]), np.array([0]), np.array([0], np.uint64))
    with pytest.raises(IndexError, match="level out of range"):
        batch.restart(np.array([0]), np.array([2]), np.array([0], np.uint64))
    assert (batch.state() == before).all()


def test_the_players_meet_every_rule() -> None:
    met: set[str] = set()
    for seed in range(12):
        match = _core.LoongTextMatch(load_level(random_map(random.Random(seed))), seed)
        player = Player(seed, ("careful", "reckless", "mixed")[seed % 3], turns=3000)
        while (event := match.next())[0] != "end":
            if event[0] == "spawn":
                player.spawn(event[1], event[2])
            elif event[0] == "ask":
                match.reply(player.reply(event[1], event[2]))
        met |= {name for name, count in match.coverage().items() if count}
    assert set(_core.LOONG_COVERAGE) - met <= {
        "end: draw",
        "end: total",
        "end: queen",
        "end: longest",
        "end: both teams out",
    }


def test_a_map_beyond_the_numbers_of_cells_or_dragons_is_refused() -> None:
    """256 x 256 tiles fill the 16 bits of a cell; a body that crosses itself needs more, and so do 32,767 dragons."""
    counts = "TILE_COUNT 0\nEDGE_COUNT 0\nDRAGON_COUNT 2\n"
    straight = f"MAP 256 256\n{counts}DRAGON 0 2 0 0 1 0\nDRAGON 1 2 0 9 1 9\n"
    assert not isinstance(_core.loong_level(straight.encode()), bytes)
    crossing = straight.replace("DRAGON 0 2 0 0 1 0", "DRAGON 0 3 0 0 1 0 0 0")
    with pytest.raises(RuntimeError, match="65536 tiles and 1 repeated segments"):
        _core.loong_level(crossing.encode())
    with pytest.raises(RuntimeError, match="room for 32768 living dragons"):
        _core.loong_level(straight.replace(counts, counts + "UNIT_LIMIT 40000\n").encode())
