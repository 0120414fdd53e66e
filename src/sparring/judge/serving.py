"""One process of served play: it owns engines and sandboxes, and asks its parent what a served dragon does.

`sparring.judge.served` starts it with `main(FOLDER, CONTROL, ASKED, ANSWERS...)`: a folder for temporary files, then
descriptors of pipes. There is one of `ANSWERS` for each match that runs at once, and a thread. The process ends with
its parent, whatever its threads are doing: the end of file on `CONTROL` says so.
"""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
import struct
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NoReturn

from sparring import _core
from sparring.judge.entrants import Entrant
from sparring.judge.match import TEAMS, PlayedMatch, referee
from sparring.judge.official import official_engine, toolkit
from sparring.judge.schedule import Job
from sparring.judge.sides import Answer, Side, open_side

HEADER = struct.Struct("<III")
"""What precedes each message to the parent: place of the match, kind, bytes that follow."""

TURN, ENDED, FAILED = 0, 1, 2
"""Kinds: a served dragon must act (IDS and a row of LOONG_VIEW), a match ended (a pickled Ended), a match cannot be
played (why, as text)."""

IDS = struct.Struct("<IIII")
"""Of a turn: team, slot, dragon, decision."""

SIZE = struct.Struct("<I")
"""What precedes a pickled Job. A reply comes as it is: it is short, so that one read takes it whole."""

LONGEST_REPLY = 512
"""Bytes that no reply of a row reaches (five messages of 20 digits, 32 steps and a protocol), and that no pipe cuts."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A match that ended.

    alive: team and slot of the served dragons that live; last: of the one that acted last, if it was a served one
    longest: decisions of the longest life of the served dragons
    """

    played: PlayedMatch
    alive: list[tuple[int, int]]
    last: tuple[int, int] | None
    longest: int


class _Parent:
    """The way to the parent, shared by all threads."""

    def __init__(self, folder: str, asked: int) -> None:
        self._folder, self._asked = folder, asked
        self._telling, self._leaving = threading.Lock(), threading.Lock()

    def tell(self, place: int, kind: int, *parts: bytes) -> None:
        message = b"".join((HEADER.pack(place, kind, sum(map(len, parts))), *parts))
        try:
            with self._telling:
                told = os.write(self._asked, message)
                while told < len(message):
                    told += os.write(self._asked, message[told:])
        except OSError:
            self.leave()

    def hear(self, answers: int, size: int) -> bytes:
        """What the parent wrote, at most `size` bytes."""
        return os.read(answers, size) or self.leave()

    def leave(self) -> NoReturn:
        """End this process at once: its threads may wait for a bot that never ends."""
        self._leaving.acquire()  # and never let go: one thread is enough
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)


class _Board:
    """What the two sides of a match share: who lives in which slot, and who acted last."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        self.last: tuple[int, int] | None = None
        self._free: list[int] = []
        self._fresh = itertools.count()

    def spawn(self, dragon: int) -> None:
        """As the core hands out its slots: the one that was freed last, else the next."""
        self.slots[dragon] = self._free.pop() if self._free else next(self._fresh)

    def died(self, dragon: int) -> None:
        self._free.append(self.slots.pop(dragon))


class _ServedSide:
    """A team that the parent answers for."""

    def __init__(self, team: int, board: _Board, place: int, answers: int, parent: _Parent) -> None:
        self.retries = self.longest = 0
        self._team, self._board, self._place, self._answers, self._parent = team, board, place, answers, parent
        self._inits: dict[int, bytes] = {}
        self._decisions: dict[int, int] = {}

    def spawn(self, dragon: int, init: bytes) -> None:
        self._board.spawn(dragon)
        self._inits[dragon], self._decisions[dragon] = init, 0

    def reply(self, dragon: int, block: bytes) -> Answer:
        slot, decision = self._board.slots[dragon], self._decisions[dragon]
        self._board.last = self._team, slot
        self._decisions[dragon] = decision + 1
        self.longest = max(self.longest, decision + 1)
        ids = IDS.pack(self._team, slot, dragon, decision)
        self._parent.tell(self._place, TURN, ids, _core.loong_view(self._inits[dragon], block))
        return Answer(self._parent.hear(self._answers, LONGEST_REPLY))

    def died(self, dragon: int) -> None:
        self._board.died(dragon)
        del self._inits[dragon], self._decisions[dragon]

    def close(self) -> None:
        pass

    def alive(self) -> list[tuple[int, int]]:
        return [(self._team, self._board.slots[dragon]) for dragon in self._inits]


class _Opponent:
    """A team that plays for itself."""

    def __init__(self, side: Side, board: _Board) -> None:
        self.retries = 0
        self._side, self._board = side, board

    def spawn(self, dragon: int, init: bytes) -> None:
        self._board.spawn(dragon)
        self._side.spawn(dragon, init)

    def reply(self, dragon: int, block: bytes) -> Answer:
        self._board.last = None
        answer = self._side.reply(dragon, block)
        self.retries = self._side.retries
        return answer

    def died(self, dragon: int) -> None:
        self._board.died(dragon)
        self._side.died(dragon)

    def close(self) -> None:
        self._side.close()


def _play(job: Job, place: int, answers: int, parent: _Parent) -> Ended:
    board = _Board()
    served: list[_ServedSide] = []
    with ExitStack() as stack:

        def side_of(team: int, entrant: Entrant) -> Side:
            if entrant.kind == "served":
                served.append(_ServedSide(team, board, place, answers, parent))
                return served[-1]
            return _Opponent(stack.enter_context(open_side(entrant, seed=job.seed, team=TEAMS[team])), board)

        a, b = (job.a, side_of(0, job.a)), (job.b, side_of(1, job.b))
        played = referee(job.map_bytes, a, b, seed=job.seed, map_name=job.map_name)
    alive = [each for side in served for each in side.alive()]
    return Ended(played=played, alive=alive, last=board.last, longest=max(side.longest for side in served))


def _play_all(place: int, answers: int, parent: _Parent) -> None:
    while True:
        (size,) = SIZE.unpack(parent.hear(answers, SIZE.size))
        text = b""
        while len(text) < size:
            text += parent.hear(answers, size - len(text))
        try:
            ended = _play(pickle.loads(text), place, answers, parent)  # from the process that started this one
        except Exception as error:
            parent.tell(place, FAILED, f"{type(error).__name__}: {error}".encode())
        else:
            parent.tell(place, ENDED, pickle.dumps(ended))


def main(folder: str, *pipes: str) -> None:
    """Play what comes through the pipes until the parent closes them."""
    control, asked, *answers = map(int, pipes)
    tempfile.tempdir = folder
    parent = _Parent(folder, asked)
    official_engine(any_version=True)
    toolkit("sandbox")._patch_wasmtime()  # makes its table of host functions safe for threads, before there are any
    for place, pipe in enumerate(answers):
        threading.Thread(target=_play_all, args=(place, pipe, parent), daemon=True).start()
    os.read(control, 1)
    parent.leave()
