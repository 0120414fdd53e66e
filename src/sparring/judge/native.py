"""The exact engine behind the interface of `unswbc.engine.EngineModule`. The judge toolkit need not be installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparring import _core
from sparring.judge.recording import recorded_events, until_nul
from sparring.judge.replay_format import END_REASONS, Replay, Result, Standing, write_replay

DEBUG_LOGS = 1
DEBUG_INDICATOR = 2
DEBUG_DRAW = 4
DEBUG_PARSE = 8
DEBUG_ALL = DEBUG_LOGS | DEBUG_INDICATOR | DEBUG_DRAW | DEBUG_PARSE
DEBUG_LIMITS = 16
"""Bits of `debug`: which notes of the bots a replay keeps, and whether the judge's limits hold for them. The mask
decides `MatchResult.events` and nothing else."""


@dataclass
class MatchResult:
    """The result of a match, field for field that of `unswbc.engine.MatchResult`.

    rounds: index of the last round, 499 for a full match. winner: "A", "B" or None. end_reason: 0 a team was out, 1
    the round limit. By team at the end: dragons alive, their total length, the length of the queen (0 if dead), the
    longest. events: what a replay would hold.
    """

    rounds: int
    winner: str | None
    end_reason: int
    a_dragons: int
    b_dragons: int
    a_length: int
    b_length: int
    events: int
    a_queen: int
    b_queen: int
    a_longest: int
    b_longest: int


class NativeEngine:
    """Takes the place of `unswbc.engine.EngineModule`: same calls, same order, same result, same texts of errors."""

    def __init__(self, *, room: int = 2**40) -> None:
        """room: words of int32 that a replay's events may say; those after are left out"""
        self._room = room
        self._last: tuple[bytes, int, _core.LoongTextMatch, MatchResult] | None = None

    def run(
        self,
        map_bytes: bytes,
        bot_reply: Callable[[int, bytes], bytes],
        on_death: Callable[[int, int, str], None] | None = None,
        bot_spawn: Callable[[int, bytes], None] | None = None,
        on_notice: Callable[[str], None] | None = None,
        debug: int = DEBUG_ALL,
        seed: int = 0,
    ) -> MatchResult:
        """Play one match.

        `bot_reply(id, block)` answers a round block with lines that end in LF; `on_death(id, round, letter)` hears of
        every death, `bot_spawn(id, init)` of every dragon as it appears. `on_notice` is never called: this version of
        the judge corrects no maps. `seed` is a signed or unsigned 64-bit number. An exception of a callback ends the
        match.

        Raises RuntimeError with the organisers' text if the map is faulty.
        """
        seed &= 2**64 - 1
        match = _core.LoongTextMatch(load_level(map_bytes), seed, debug, room=self._room)
        while True:
            event = match.next()
            if event[0] == "ask":
                match.reply(bytes(bot_reply(event[1], event[2])))
            elif event[0] == "spawn":
                if bot_spawn is not None:
                    bot_spawn(event[1], event[2])
            elif event[0] == "death":
                if on_death is not None:
                    on_death(event[1], event[2], event[3])
            else:
                result = to_result(event[1])
                self._last = (map_bytes, seed, match, result)
                return result

    def replay(self, team_a: str, team_b: str) -> bytes:
        """The replay file of the last match that ended, byte for byte the organisers'. The names are those of the bots.

        Raises RuntimeError if there was none.
        """
        return write_replay(self.recorded(team_a, team_b))

    def recorded(self, team_a: str, team_b: str) -> Replay:
        """What `replay` writes."""
        if self._last is None:
            raise RuntimeError("no match has been run")
        map_bytes, seed, match, result = self._last
        bot_a, bot_b = (until_nul(name.encode()).decode() for name in (team_a, team_b))
        end = Result(
            terminated=True,
            end_reason=END_REASONS[result.end_reason],
            winner=result.winner,
            a=Standing(result.a_dragons, result.a_longest, result.a_length, result.a_queen),
            b=Standing(result.b_dragons, result.b_longest, result.b_length, result.b_queen),
        )
        return Replay(until_nul(map_bytes), bot_a, bot_b, recorded_events(*match.recording()), end, seed)


def load_level(map_bytes: bytes) -> _core.LoongLevel:
    """The level of a map file. Raises RuntimeError with the organisers' text if it is faulty."""
    level = _core.loong_level(bytes(map_bytes))
    if isinstance(level, bytes):
        raise RuntimeError(level.partition(b"\0")[0].decode(errors="replace"))  # the judge's text stops at a NUL, too
    return level


def to_result(numbers: tuple[int, ...]) -> MatchResult:
    """The judge's twelve numbers by name."""
    rounds, winner, *rest = numbers
    return MatchResult(rounds, (None, "A", "B")[winner], *rest)
