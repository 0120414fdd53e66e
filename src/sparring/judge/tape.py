"""Recordings: what every dragon of a match was told and replied, turn by turn, and a bot asked the same again.

A recording is a gzip file of JSON lines: which match it is of, then every birth, turn and death in the judge's order,
then its result. Bytes stand in it as Latin-1 text. The same match gives the same file, byte for byte.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from sparring.errors import SparringError
from sparring.judge.entrants import Entrant
from sparring.judge.sides import Answer, open_side

VERSION = 1
LONGEST_LINE = 32 << 20
"""Characters of a line of a recording: more is damage."""


class Spawn(NamedTuple):
    """A dragon appeared."""

    dragon: int
    init: bytes


class Turn(NamedTuple):
    """A dragon was asked."""

    dragon: int
    block: bytes
    answer: Answer


class Death(NamedTuple):
    """A dragon died; `why` is the judge's letter."""

    dragon: int
    round: int
    why: str


Event: TypeAlias = Spawn | Turn | Death

LF = b"\n"
_COMPARED = ("reply", "points", "memory")  # of an Answer


@dataclass(frozen=True)
class Header:
    """Which match a recording is of. a, b: name, kind and hash of the entrants."""

    toolkit: str
    engine_hash: str
    map_name: str
    map_hash: str
    map: bytes
    seed: int
    a: dict[str, str]
    b: dict[str, str]


def part_of(path: Path) -> Path:
    """Where a recording lies while it is written."""
    return path.with_name(f"{path.name}.part")


class RecordingWriter:
    """Writes a recording beside its place, and puts it there when `finish` is called; otherwise nothing is left."""

    def __init__(self, path: Path, header: Header) -> None:
        """Raises SparringError where the file cannot be made."""
        self._path, self._part = path, part_of(path)
        try:
            self._raw = self._part.open("wb")
        except OSError as error:
            raise SparringError(f"cannot write {path}: {error.strerror or error}") from error
        self._file = gzip.GzipFile("", "wb", 6, self._raw, mtime=0)
        self._put({"recording": VERSION, **asdict(header), "map": header.map.decode("latin-1")})

    def spawn(self, dragon: int, init: bytes) -> None:
        self._put(["spawn", dragon, init.decode("latin-1")])

    def turn(self, dragon: int, block: bytes, answer: Answer) -> None:
        reply, *rest = answer
        self._put(["turn", dragon, block.decode("latin-1"), reply.decode("latin-1"), *rest])

    def death(self, dragon: int, round_number: int, why: str) -> None:
        self._put(["death", dragon, round_number, why])

    def finish(self, result: dict[str, Any]) -> None:
        """The match is over."""
        self._put({"result": result})
        try:
            self._file.close()
            self._raw.close()
            self._part.replace(self._path)
        except OSError as error:
            raise SparringError(f"cannot write {self._path}: {error.strerror or error}") from error

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for file in (self._file, self._raw):
            with contextlib.suppress(OSError, ValueError):  # a full disk is told by what was written first
                file.close()
        self._part.unlink(missing_ok=True)

    def _put(self, line: Any) -> None:
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise SparringError(f"cannot write {self._path}: {error.strerror or error}") from error


class Recording:
    """A recording that is read. `header` tells of which match, iterating gives its events in order."""

    def __init__(self, path: str | Path) -> None:
        """Raises SparringError, in one line, for a file that cannot be read or is no recording."""
        self.path = Path(path)
        with contextlib.closing(self._lines()) as lines:
            first = next(lines, None)
        if first is None:
            raise self.damaged("it is empty")
        version = self._checked(lambda line: _number(line["recording"]), first)
        if version != VERSION:
            raise SparringError(f"{path} is a recording of format {version}, and {VERSION} is the one known here")
        self.header: Header = self._checked(_header, first)

    def __iter__(self) -> Iterator[Event]:
        """Raises SparringError at the first damage, at the latest at the end of a file that stops too early."""
        lines = self._lines()
        next(lines)
        for line in lines:
            if isinstance(line, dict) and "result" in line:
                if next(lines, None) is not None:
                    raise self.damaged("something follows its end")
                return
            yield self._checked(_event, line)
        raise self.damaged("it ends before its match")

    def _lines(self) -> Generator[Any, None, None]:
        try:
            with gzip.open(self.path) as file:
                while line := file.readline(LONGEST_LINE):
                    if not line.endswith(b"\n"):
                        raise ValueError("a line has no end")
                    yield json.loads(line)
        except (EOFError, gzip.BadGzipFile, zlib.error, ValueError, RecursionError) as error:
            raise self.damaged(str(error)) from error
        except OSError as error:
            raise SparringError(f"cannot read {self.path}: {error.strerror or error}") from error

    def _checked(self, read: Any, line: Any) -> Any:
        try:
            return read(line)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise self.damaged(f"a line is not what it should be: {error}") from error

    def damaged(self, what: str) -> SparringError:
        """The error that says so."""
        return SparringError(f"{self.path} is damaged, or no recording: {what}")


@dataclass(frozen=True)
class Inspection:
    """How far a bot does again what was recorded.

    teams: those that it stood in for; dragons, turns: of these teams
    same_replies, same_points, same_memory: turns in which it did the same
    first_difference: where and what, or None
    """

    recording: str
    bot: str
    bot_hash: str
    teams: tuple[str, ...]
    dragons: int
    turns: int
    same_replies: int
    same_points: int
    same_memory: int
    first_difference: str | None


def inspect_recording(path: str | Path, bot: Entrant, *, team: str | None = None) -> Inspection:
    """Ask a bot, without an engine, all that was asked in a recorded match, and compare its answers turn by turn.

    team: whose dragons it stands in for, "A" or "B". By default every team that this very build played. Differences
    do not end the inspection: each dragon is asked what was recorded, whatever it answered before.

    Raises SparringError for a damaged recording, and if the bot played for neither team and `team` is not given.
    """
    recording = Recording(path)
    header = recording.header
    teams = (team,) if team else tuple(t for t, e in (("A", header.a), ("B", header.b)) if e["hash"] == bot.hash)
    if not teams:
        players = " and ".join(f"{e['name']} ({e['hash']:.12})" for e in (header.a, header.b))
        raise SparringError(
            f"{path} was played by {players}, not by {bot.name} ({bot.hash:.12}): say for whom it stands in, A or B"
        )
    dragons = turns = 0
    same = dict.fromkeys(_COMPARED, 0)
    first_difference: str | None = None
    asked: dict[int, str] = {}  # whose dragon each one is
    with ExitStack() as stack:
        sides = {each: stack.enter_context(open_side(bot, seed=header.seed, team=each)) for each in teams}
        for event in recording:
            if isinstance(event, Spawn):
                if event.dragon in asked:
                    raise recording.damaged(f"dragon {event.dragon} is born twice")
                whose = "B" if b"TEAM B\n" in event.init else "A"
                if whose in sides:
                    asked[event.dragon] = whose
                    sides[whose].spawn(event.dragon, event.init)
                    dragons += 1
            elif event.dragon not in asked:
                continue
            elif isinstance(event, Death):
                sides[asked.pop(event.dragon)].died(event.dragon)
            else:
                turns += 1
                try:
                    answer = sides[asked[event.dragon]].reply(event.dragon, event.block)
                except ValueError as error:  # a scripted player makes nothing of it
                    raise recording.damaged(f"what dragon {event.dragon} reads is {error}") from error
                for what in _COMPARED:
                    was, now = getattr(event.answer, what), getattr(answer, what)
                    same[what] += was == now
                    if was != now and first_difference is None:
                        place = f"{event.block.partition(LF)[0].decode('latin-1').lower()}, dragon {event.dragon}"
                        first_difference = f"{place}: {what} was {_shown(was)} and is {_shown(now)}"
    return Inspection(
        recording=str(path),
        bot=bot.name,
        bot_hash=bot.hash,
        teams=teams,
        dragons=dragons,
        turns=turns,
        same_replies=same["reply"],
        same_points=same["points"],
        same_memory=same["memory"],
        first_difference=first_difference,
    )


def _shown(value: bytes | int) -> str:
    shown = repr(value.decode("latin-1")) if isinstance(value, bytes) else f"{value:,}"
    return shown if len(shown) < 200 else f"{shown[:200]}... ({len(shown)} characters)"


def _header(line: Any) -> Header:
    a, b = ({key: _text(line[team][key]) for key in ("name", "kind", "hash")} for team in "ab")
    return Header(
        toolkit=_text(line["toolkit"]),
        engine_hash=_text(line["engine_hash"]),
        map_name=_text(line["map_name"]),
        map_hash=_text(line["map_hash"]),
        map=_bytes(line["map"]),
        seed=_number(line["seed"]),
        a=a,
        b=b,
    )


def _event(line: Any) -> Event:
    kind, dragon, *rest = line
    _number(dragon)
    if kind == "spawn":
        (init,) = rest
        return Spawn(dragon, _bytes(init))
    if kind == "death":
        round_number, why = rest
        return Death(dragon, _number(round_number), _text(why))
    if kind != "turn":
        raise ValueError(f"no event is a {kind!r}")
    block, reply, points, memory, error = rest
    error = None if error is None else _text(error)
    return Turn(dragon, _bytes(block), Answer(_bytes(reply), _number(points), _number(memory), error))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**64:
        raise ValueError(f"{value!r} is no number from 0 to 2^64 - 1")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _bytes(value: Any) -> bytes:
    return _text(value).encode("latin-1")


def header_of(
    *, engine_hash: str, map_name: str, map_hash: str, map_bytes: bytes, seed: int, a: Entrant, b: Entrant
) -> Header:
    """The header of a match that is about to be played with the installed toolkit."""
    called = [{"name": each.name, "kind": each.kind, "hash": each.hash} for each in (a, b)]
    return Header(version("unswbc"), engine_hash, map_name, map_hash, map_bytes, seed, *called)
