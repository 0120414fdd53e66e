"""The organisers' `.replay` files: what is in them, as dataclasses, and how these are read and written.

A replay is a packed Cap'n Proto message. The tables at the end of this file are its schema; `docs/loong-replays.md`
describes it in words.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sparring.errors import SparringError
from sparring.judge.capnp import (
    U32,
    U64,
    Draft,
    Field,
    Message,
    Record,
    Union,
    blob,
    choice,
    flag,
    inline,
    int32,
    letters,
    optional,
    optional_part,
    part,
    parts,
    text,
    uint8,
    uint64,
)

FORMAT_VERSION = 2
"""What is written, and the newest that is read."""

MOST_BYTES = 128 << 20
"""Longer replays, unpacked, are refused. A full match of 120 dragons takes 13 MB, all notes that the judge allows 95 MB
more."""

DIRECTIONS = "NESW"
TEAMS = "AB"
DEATHS = "WSOHA"
"""Wall, self, other's body, heads, no valid action."""
SHAPES = ("line", "dot")
HITS = ("unknown", "empty", "kelp", "ally", "ally head", "enemy", "enemy head")
END_REASONS = ("eliminated", "round limit")


class Tile(NamedTuple):
    """x grows east, y south."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class RoundStart:
    """Rounds count from 0."""

    round: int


@dataclass(frozen=True, slots=True)
class TurnStart:
    """All up to the next one is of this dragon's turn."""

    dragon: int


@dataclass(frozen=True, slots=True)
class PearlCountdown:
    """A tile's countdown was drawn."""

    tile: Tile
    rounds: int


@dataclass(frozen=True, slots=True)
class TileChange:
    """A pearl appeared on a tile, or was eaten."""

    tile: Tile
    pearl: bool


@dataclass(frozen=True, slots=True)
class Move:
    """Steps as letters of N, E, S, W."""

    steps: str


@dataclass(frozen=True, slots=True)
class Split:
    """The number of segments that shall become a dragon of their own."""

    segments: int


@dataclass(frozen=True, slots=True)
class NoAction:
    """The reply had no valid action."""


Action: TypeAlias = Move | Split | NoAction


@dataclass(frozen=True, slots=True)
class Instructions:
    """What a turn cost the bot, in points."""

    count: int
    exceeded: bool


@dataclass(frozen=True, slots=True)
class DragonAction:
    """What a dragon wants to do, whether or not it can.

    Only replays of the contest's servers tell what the turn cost or that it took too long, and have no action at all.
    """

    dragon: int
    action: Action | None
    instructions: Instructions | None = None
    out_of_time: bool = False


@dataclass(frozen=True, slots=True)
class EngineLog:
    """A note of the judge on a dragon's reply or action."""

    dragon: int
    text: str


@dataclass(frozen=True, slots=True)
class DragonLog:
    """A LOG line of a dragon."""

    dragon: int
    text: str


@dataclass(frozen=True, slots=True)
class DragonIndicator:
    """The INDICATOR of a dragon's reply."""

    dragon: int
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A "line" or a "dot", which ends where it starts. Colours are 0 to 255; tiles may be off the map."""

    shape: str
    start: Tile
    end: Tile
    red: int
    green: int
    blue: int


@dataclass(frozen=True, slots=True)
class DebugDraw:
    """A DOT or LINE of a dragon."""

    dragon: int
    drawing: Drawing


@dataclass(frozen=True, slots=True)
class DragonUpdate:
    """Where a dragon is: at the start of the match, and after every step."""

    dragon: int
    facing: str
    head: Tile
    tail: Tile


@dataclass(frozen=True, slots=True)
class DragonSplit:
    """A dragon was born. Bodies start at the head."""

    parent: int
    child: int
    team: str
    facing: str
    parent_body: tuple[Tile, ...]
    child_body: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class DragonDeath:
    """`reason` is a letter of DEATHS."""

    dragon: int
    reason: str


@dataclass(frozen=True, slots=True)
class SonarPing:
    """A ray. Against the facing it starts at the tail, and `direction` is where the tail points.

    `hit` is the dragon that it met; `kind` is one of HITS, "empty" and "kelp" when there was none.
    """

    sender: int
    direction: str
    origin: Tile
    end: Tile
    hit: int | None
    value: int
    kind: str


Event: TypeAlias = (
    RoundStart
    | TurnStart
    | PearlCountdown
    | TileChange
    | DragonAction
    | EngineLog
    | DragonLog
    | DragonIndicator
    | DebugDraw
    | DragonUpdate
    | DragonSplit
    | DragonDeath
    | SonarPing
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a team has at the end: living dragons, the longest, the sum of lengths, the queen's length (0 if dead)."""

    dragons: int
    longest: int
    total: int
    queen: int


@dataclass(frozen=True, slots=True)
class Result:
    """How a match ended. `end_reason` is one of END_REASONS, `winner` "A", "B" or None."""

    terminated: bool
    end_reason: str
    winner: str | None
    a: Standing
    b: Standing


@dataclass(frozen=True, slots=True)
class Replay:
    """One match. `map` is the text of its map file; `seed` is None where the writer kept it to itself."""

    map: bytes
    bot_a: str
    bot_b: str
    events: tuple[Event, ...]
    result: Result
    seed: int | None


def read_replay(source: str | Path | bytes, *, most_bytes: int = MOST_BYTES) -> Replay:
    """Read a replay file, or the bytes of one.

    Raises SparringError with one line that says where it is damaged, or that it is newer than we know, or that it
    unpacks to more than `most_bytes`. Memory stays below 20 times that, whatever the file says.
    """
    name = "the replay" if isinstance(source, bytes) else str(source)
    if isinstance(source, bytes):
        packed = source
    else:
        try:
            with Path(source).open("rb") as file:
                packed = file.read(2 * most_bytes)  # no message that is small enough packs to more
        except OSError as error:
            raise SparringError(f"cannot read {source}: {error.strerror}") from error
    try:
        root = Message(packed, most_bytes).top().struct(0)
        if root is None:
            raise SparringError("it has no content")
        version = root.number(U32, 0)
        replay: Replay | None = _REPLAY.read(root) if version <= FORMAT_VERSION else None
    except SparringError as error:
        raise SparringError(f"{name} is damaged, or no replay: {error}") from None
    if replay is None:
        raise SparringError(f"{name} has replay format {version}, and only those up to {FORMAT_VERSION} are known here")
    return replay


def write_replay(replay: Replay) -> bytes:
    """The bytes of a replay file. Raises SparringError if a value has no place in one."""
    draft = Draft()
    root = draft.top().struct(0, _REPLAY)
    root.put(U32, 0, FORMAT_VERSION)
    try:
        _REPLAY.write(root, replay)
    except (struct.error, ValueError) as error:
        raise SparringError(f"this replay cannot be written: {error}") from error
    return draft.packed()


# The schema. Numbers are bytes of a struct's data (bits, for a flag), or pointers of it, as Cap'n Proto counts them.

_TILE = Record(Tile, 1, 0, int32(0), int32(4))

_ACTION = Union(
    "action",
    1,
    1,
    tag=0,
    options={
        Move: inline(Record(Move, 1, 1, letters(0, DIRECTIONS))),
        Split: inline(Record(Split, 1, 1, int32(4))),
        NoAction: inline(Record(NoAction, 1, 1)),
    },
)

_INSTRUCTIONS = Record(Instructions, 2, 0, uint64(0), flag(64))

_DRAWING = Record(Drawing, 1, 2, choice(0, SHAPES), part(0, _TILE), part(1, _TILE), uint8(2), uint8(3), uint8(4))

_SPLIT = Record(
    DragonSplit,
    2,
    2,
    int32(0),
    int32(4),
    choice(8, TEAMS),
    choice(10, DIRECTIONS),
    parts(0, _TILE, "tile of the parent"),
    parts(1, _TILE, "tile of the child"),
)

_PING = Record(
    SonarPing,
    4,
    2,
    int32(0),
    choice(4, DIRECTIONS),
    part(0, _TILE),
    part(1, _TILE),
    optional(6, int32(12)),
    Field(lambda source: source.number(U64, 16) or source.number(U32, 8), uint64(16).write),  # format 1 had 32 bits
    choice(24, HITS),
)

_EVENTS = (
    Record(RoundStart, 1, 0, int32(0)),
    Record(TurnStart, 1, 0, int32(0)),
    Record(PearlCountdown, 1, 1, part(0, _TILE), int32(0)),
    Record(TileChange, 1, 1, part(0, _TILE), flag(0)),
    Record(DragonAction, 1, 2, int32(0), optional_part(0, _ACTION), optional_part(1, _INSTRUCTIONS), flag(32)),
    Record(EngineLog, 1, 1, int32(0), text(0)),
    Record(DragonLog, 1, 1, int32(0), text(0)),
    Record(DragonIndicator, 1, 1, int32(0), text(0)),
    Record(DebugDraw, 1, 1, int32(0), part(0, _DRAWING)),
    Record(DragonUpdate, 1, 2, int32(0), choice(4, DIRECTIONS), part(0, _TILE), part(1, _TILE)),
    _SPLIT,
    Record(DragonDeath, 1, 0, int32(0), choice(4, DEATHS)),
    _PING,
)

_EVENT = Union("event", 1, 1, tag=0, options={record.make: part(0, record) for record in _EVENTS})

_STANDING = Record(Standing, 2, 0, int32(0), int32(4), int32(8), int32(12))

_RESULT = Record(
    Result,
    1,
    2,
    flag(0),
    choice(2, END_REASONS),
    optional(4, choice(6, TEAMS)),
    part(0, _STANDING),
    part(1, _STANDING),
)

_REPLAY = Record(
    Replay, 2, 5, blob(0), text(1), text(2), parts(3, _EVENT, "event"), part(4, _RESULT), optional(4, uint64(8))
)
