"""What a dragon knew in a turn of a recorded match: the match is played again in our engine up to there."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from sparring import _core
from sparring.errors import SparringError
from sparring.judge.native import load_level
from sparring.judge.replay_format import Replay, read_replay
from sparring.judge.replays import check_playable, resimulate
from sparring.judge.tape import Recording, Turn
from sparring.levels.maps import read_map
from sparring.pictures.board import BoardDragon
from sparring.pictures.look import LIFE, Look

INPUTS, MASK, LANE = (np.dtype(each) for each in (_core.LOONG_INPUTS, _core.LOONG_MASK, _core.LOONG_LANE))
_GZIP = b"\x1f\x8b"


def look(match: str | Path, *, turn: int, dragon: int, build: int = 0) -> Look:
    """What a dragon knew when it was asked in a round, and how the board truly lay then.

    match:  a replay file, or a recording of `sparring match --record`
    turn:   the round, as the judge counts them, from 0 on
    dragon: its id
    build:  of the bot, whose packets alone its dragons understand

    Roles and claims are not told by a match: the dragon holds role 0. In a replay dragons read from their second turn
    on as of protocol 3.

    Raises SparringError, in one line, for a file that is neither or is damaged, for a match that our engine does not
    play alike, and for a turn that the dragon did not have.
    """
    if not 0 <= build < 2**64:
        raise SparringError(f"build = {build}: give a number from 0 to 2^64 - 1")
    path = Path(match)
    try:
        with path.open("rb") as file:
            recorded = file.read(len(_GZIP)) == _GZIP
    except OSError as error:
        raise SparringError(f"cannot read {path}: {error.strerror or error}") from error
    stage = (
        _recording_stage(Recording(path), turn, dragon, build) if recorded else _replay_stage(path, turn, dragon, build)
    )
    if stage.found is None:
        raise SparringError(f"{path}: {stage.why_not()}")
    return stage.found


class _Found(Exception):
    """The turn was reached."""


class _Stage:
    """A match that is played again, turn by turn, until the one that is wanted."""

    def __init__(self, title: str, map_bytes: bytes, seed: int, turn: int, dragon: int, build: int) -> None:
        self.title, self.turn, self.dragon = title, turn, dragon
        self.found: Look | None = None
        self._map = read_map(map_bytes)
        try:
            level = load_level(map_bytes)
        except RuntimeError as error:  # more tiles or dragons than a lane can have
            raise SparringError(f"{title}: {error}") from None
        self._matches = _core.LoongMatches([level], 1, knowledge=True, mirror="never", build=build)
        self._matches.restart(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([seed], np.uint64))
        self._row = self._matches.rows.view(LANE)[:, 0]
        self._turns: list[int] = []
        """Rounds in which the dragon acted."""
        self._last = self._most = 0

    def ask(self, dragon: int, block: bytes, reply: bytes) -> None:
        """The next turn of the match. Raises _Found where it is the one, SparringError where our engine asks else."""
        row = self._row[0]
        if not row["waiting"] or row["dragon"] != dragon or self._matches.block(0) != block:
            raise SparringError(
                f"{self.title}: our engine leaves this match in round {row['round']}, turn of dragon {dragon}: "
                "was it played by another version of the judge?"
            )
        self._last, self._most = int(row["round"]), max(self._most, dragon)
        if dragon == self.dragon:
            self._turns.append(self._last)
            inputs, mask = np.zeros((1, INPUTS.itemsize), np.uint8), np.zeros((1, MASK.itemsize), np.uint8)
            self._matches.observe(inputs, mask)
            if self._last == self.turn:
                self.found = self._look(inputs.view(INPUTS)[0, 0], mask.view(MASK)[0, 0])
                raise _Found
        self._matches.reply(0, reply)

    def why_not(self) -> str:
        """Why the turn was not found in a match that was played to its end."""
        if not self._turns:
            born = f"the match has dragons 0 to {self._most}" if self.dragon > self._most else "it never had a turn"
            return f"there is no turn of dragon {self.dragon}: {born}"
        first, last = self._turns[0], self._turns[-1]
        had = f"dragon {self.dragon} had its turns in rounds {first} to {last}, not in {self.turn}"
        return had if last == self._last else f"{had}: then it died"

    def _look(self, inputs: Any, mask: Any) -> Look:
        sights, notes, life = self._matches.remembered(0)
        alive = [BoardDragon(number, team, body, facing) for number, _, team, facing, body in self._matches.dragons(0)]
        return Look(
            title=self.title,
            loong_map=self._map,
            dragons=tuple(alive),
            pearls=self._matches.pearls(0).astype(bool),
            dragon=self.dragon,
            team=int(self._row["team"][0]),
            round=self._last,
            inputs=inputs,
            mask=mask,
            sights=sights,
            notes=notes,
            life=np.frombuffer(life, LIFE)[0],
        )


def _recording_stage(recording: Recording, turn: int, dragon: int, build: int) -> _Stage:
    header = recording.header
    title = f"{header.a['name']} against {header.b['name']} on {header.map_name}, seed {header.seed}"
    stage = _Stage(title, header.map, header.seed, turn, dragon, build)
    with contextlib.suppress(_Found):
        for event in recording:
            if isinstance(event, Turn):
                stage.ask(event.dragon, event.block, event.answer.reply)
    return stage


def _replay_stage(path: Path, turn: int, dragon: int, build: int) -> _Stage:
    replay: Replay = read_replay(path)
    check_playable(replay)
    assert replay.seed is not None
    title = f"{replay.bot_a} against {replay.bot_b}, seed {replay.seed}"
    stage = _Stage(title, replay.map, replay.seed, turn, dragon, build)
    with contextlib.suppress(_Found):
        resimulate(replay, on_turn=stage.ask)
    return stage
