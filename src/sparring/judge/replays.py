"""Replays played again: from a replay's own map, seed, actions and rays to the same events, by an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from sparring.errors import SparringError
from sparring.judge.native import DEBUG_ALL, DEBUG_LIMITS, NativeEngine, load_level
from sparring.judge.replay_format import (
    DIRECTIONS,
    TEAMS,
    DebugDraw,
    DragonAction,
    DragonIndicator,
    DragonLog,
    DragonSplit,
    DragonUpdate,
    Drawing,
    EngineLog,
    Event,
    Move,
    NoAction,
    PearlCountdown,
    Replay,
    RoundStart,
    SonarPing,
    Split,
    Tile,
    TileChange,
    TurnStart,
    read_replay,
)

UNREADABLE = "can't read line: "
LIMIT_REACHED = "debug output limit reached (500000 lines or 16 MB per team), the rest of this team's is dropped"

_MOST_WORDS = 10  # of an event in `LoongTextMatch.recording()`, beside its bodies and steps

_MOST_TEXT = 16 << 20  # bytes of notes that the judge keeps of a team

_OPPOSITE = {"N": "S", "E": "W", "S": "N", "W": "E"}


class Unplayable(SparringError):
    """A replay that cannot be played again, and the `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"this replay cannot be played again: {reason}")
        self.reason = reason


def resimulate(
    replay: Replay, engine: Any = None, *, on_turn: Callable[[int, bytes, bytes], None] | None = None
) -> int:
    """Play a replay's actions, rays and notes in an engine, and compare every event and the result.

    engine: a NativeEngine (the default) or an `unswbc.engine.EngineModule`. `on_turn(dragon, block, reply)` hears of
    every turn, with the text that the dragon reads; from their second turn on, dragons read it as of protocol 3. What
    a replay does not tell is not replied: rays of dragons that died, lines that a later one overruled.

    Returns the number of turns. Raises Unplayable if the replay lacks what it takes, SparringError at the first
    difference.
    """
    check_playable(replay)
    turns = replies(replay.events)
    asked = 0

    def reply(dragon: int, block: bytes) -> bytes:
        nonlocal asked
        if asked >= len(turns) or turns[asked][0] != dragon:
            asked = len(turns)  # the engine has left the replay's path: end it, the events tell where that was
            return b""
        answer = turns[asked][1]
        asked += 1
        if on_turn is not None:
            on_turn(dragon, block, answer)
        return answer

    limited = any(isinstance(event, EngineLog) and event.text == LIMIT_REACHED for event in replay.events)
    engine = NativeEngine(room=_room(replay.events)) if engine is None else engine
    debug = DEBUG_ALL | (DEBUG_LIMITS if limited else 0)
    engine.run(replay.map, reply, None, None, lambda _: None, debug, replay.seed)
    played = read_replay(engine.replay("A", "B"))
    _compare(replay, played)
    return len(turns)


def _room(events: Sequence[Event]) -> int:
    """Words that these events and one more may say. An engine that says more has left their path by then: a small file
    can tell of a match whose events would fill the memory."""
    room = _MOST_WORDS * (len(events) + 1)
    for event in events:
        if isinstance(event, DragonSplit):
            room += len(event.parent_body) + len(event.child_body)
        elif isinstance(event, DragonAction) and isinstance(event.action, Move):
            room += len(event.action.steps)
    return room


def replies(events: Iterable[Event]) -> list[tuple[int, bytes]]:
    """What the dragons replied in a match with these events, turn by turn, as far as the events tell it.

    Raises Unplayable for events that no match has.
    """
    turns: list[tuple[int, bytes]] = []
    ends: dict[int, tuple[str, Tile, Tile]] = {}  # facing, head and tail of every dragon
    lines: list[str] = []
    rays: list[SonarPing] = []
    acts = False
    limits = 0

    def end_turn() -> None:
        if rays:
            facing, head, tail = ends.get(rays[0].sender, ("N", None, None))
            for direction, ray in zip(_asked_for(rays, facing, head, tail), rays, strict=True):
                lines.append(f"SONAR {direction} {ray.value}")
        if turns:
            # The judge drops one CR at the end of a line: this one, so that those of a note stay.
            text = "".join(f"{line}\r\n" for line in lines)
            turns[-1] = (turns[-1][0], text.encode("utf-8", "surrogateescape"))
        lines[:] = ["PROTOCOL 3"]
        rays.clear()

    for event in events:
        match event:
            case TurnStart(dragon):
                end_turn()
                turns.append((dragon, b""))
                acts = False
            case DragonAction():
                acts = True
                if isinstance(event.action, Move):
                    lines.append(f"MOVE {event.action.steps}")
                elif isinstance(event.action, Split):
                    lines.append(f"SPLIT {event.action.segments}")
            case DragonLog(_, text):
                lines.append(f"LOG {text}")
            case DragonIndicator(_, text):
                lines.append(f"INDICATOR {text}")
            case EngineLog(_, text) if text.startswith(UNREADABLE):
                lines.append(text.removeprefix(UNREADABLE))
            case EngineLog(_, text) if text == LIMIT_REACHED and not acts:
                limits += 1
                if limits > len(TEAMS):
                    raise Unplayable(f"it tells {limits} times that the notes of a team reached their limit")
                lines.append(f"LOG {'.' * (_MOST_TEXT + 1)}")  # what went beyond the limit is not told
            case DebugDraw(_, drawing):
                lines.append(_line_of(drawing))
            case DragonUpdate(dragon, facing, head, tail):
                ends[dragon] = (facing, head, tail)
            case DragonSplit(parent, child, _, facing, parent_body, child_body) if (
                parent in ends and parent_body and child_body
            ):
                ends[parent] = (*ends[parent][:2], parent_body[-1])
                ends[child] = (facing, child_body[0], child_body[-1])
            case SonarPing():
                rays.append(event)
    end_turn()
    return turns


def _line_of(drawing: Drawing) -> str:
    colour = f"{drawing.red} {drawing.green} {drawing.blue}"
    if drawing.shape == "dot":
        return f"DOT {drawing.start.x} {drawing.start.y} {colour}"
    return f"LINE {drawing.start.x} {drawing.start.y} {drawing.end.x} {drawing.end.y} {colour}"


def _asked_for(rays: Sequence[SonarPing], facing: str, head: Tile | None, tail: Tile | None) -> list[str]:
    """The directions that a dragon asked for: that of the ray, or, of the one that starts at the tail, its back."""
    back = _OPPOSITE[facing]
    for from_tail in (None, *range(len(rays))):
        asked = [back if i == from_tail else ray.direction for i, ray in enumerate(rays)]
        placed = [ray.origin == (tail if i == from_tail else head) for i, ray in enumerate(rays)]
        order = [DIRECTIONS.index(direction) for direction in asked]
        if all(placed) and (from_tail is not None or back not in asked) and order == sorted(set(order)):
            return asked
    raise Unplayable(f"no dragon can send {rays[0]} and the rays after it")


def check_playable(replay: Replay) -> None:
    """Raise Unplayable where a replay lacks what it takes to play it again, as far as that is seen without playing."""
    lacks = _lacks(replay)
    if lacks:
        raise Unplayable(lacks)


def _lacks(replay: Replay) -> str | None:
    """What a replay lacks to be played again; contest sites publish replays without all that tells future pearls."""
    if replay.seed is None:
        return "it has no seed, so nobody knows where pearls will appear"
    if not replay.result.terminated:
        return "it ends before its match did"
    try:
        spawns = load_level(replay.map).gaps.any()
    except RuntimeError as error:
        return f"its map is refused: {error}"
    drawn = any(isinstance(event, PearlCountdown) for event in replay.events)
    if spawns and not drawn:
        return "its pearl countdowns were removed"
    if not spawns and _pearls_appear(replay.events):
        return "the pearl gaps of its map were removed: pearls appear, and no tile has a gap"
    return None


def _pearls_appear(events: Iterable[Event]) -> bool:
    """Does a pearl appear at the start of a round, before any dragon could drop one?"""
    before_turns = False
    for event in events:
        if isinstance(event, RoundStart | TurnStart):
            before_turns = isinstance(event, RoundStart)
        elif before_turns and isinstance(event, TileChange) and event.pearl:
            return True
    return False


def _compare(replay: Replay, played: Replay) -> None:
    round_number, dragon = -1, None
    for number, (theirs, ours) in enumerate(zip_longest(replay.events, played.events)):
        if isinstance(theirs, DragonAction):  # without what only the contest's servers know
            theirs = DragonAction(theirs.dragon, theirs.action or NoAction())
        if theirs != ours:
            turn = "" if dragon is None else f", turn of dragon {dragon}"
            raise SparringError(
                f"event {number} differs (round {round_number}{turn}): the replay has {theirs}, the engine {ours}"
            )
        if isinstance(theirs, RoundStart):
            round_number, dragon = theirs.round, None
        elif isinstance(theirs, TurnStart):
            dragon = theirs.dragon
    if replay.result != played.result:
        raise SparringError(f"the result differs: the replay has {replay.result}, the engine {played.result}")
