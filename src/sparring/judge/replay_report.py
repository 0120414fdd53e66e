"""What a replay file says in short, and whether our engine plays the same match from it."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparring import _core
from sparring.errors import SparringError
from sparring.judge.replay_format import (
    DragonDeath,
    DragonSplit,
    Replay,
    Result,
    RoundStart,
    SonarPing,
    TurnStart,
    read_replay,
)
from sparring.judge.replays import Unplayable, resimulate
from sparring.levels.maps import MapError, map_hash, read_map


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """A replay in short.

    sha256:    of the file
    seed:      None where the writer kept it to itself
    map_name, width, height, map_hash: of the map, see `levels.maps.map_hash`; None where the judge would refuse it
    map_error: why it would
    rounds, turns, events, rays: how many there are
    births, deaths: how many by split, and by reason (a letter of `replay_format.DEATHS`)
    """

    file: str
    sha256: str
    bot_a: str
    bot_b: str
    seed: int | None
    map_name: str | None = None
    width: int | None = None
    height: int | None = None
    map_hash: str | None = None
    map_error: str | None = None
    rounds: int
    turns: int
    events: int
    births: int
    deaths: dict[str, int] = field(default_factory=dict)
    rays: int
    result: Result

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ReplayCheck:
    """Whether our engine plays a replay's match again.

    status: "equal"; "differs", first at the event in `detail`; "unplayable", for the reason in `detail`: it cannot be
            read, or lacks what it takes
    turns:  that were played again, where all are equal
    core:   hash of our engine
    """

    file: str
    status: Literal["equal", "differs", "unplayable"]
    detail: str = ""
    turns: int = 0
    core: str = _core.source_hash[:12]

    def json(self) -> dict[str, Any]:
        return asdict(self)


def report_replay(file: str | Path) -> ReplayReport:
    """Read a replay file and say what is in it. Raises SparringError where it cannot be read or is damaged."""
    replay = read_replay(file)
    kinds = Counter(type(event) for event in replay.events)
    deaths = Counter(event.reason for event in replay.events if isinstance(event, DragonDeath))
    return ReplayReport(
        file=str(file),
        sha256=hashlib.sha256(Path(file).read_bytes()).hexdigest(),
        bot_a=replay.bot_a,
        bot_b=replay.bot_b,
        seed=replay.seed,
        rounds=kinds[RoundStart],
        turns=kinds[TurnStart],
        events=len(replay.events),
        births=kinds[DragonSplit],
        deaths=dict(sorted(deaths.items())),
        rays=kinds[SonarPing],
        result=replay.result,
        **_map_facts(replay),
    )


def check_replay(file: str | Path) -> ReplayCheck:
    """Play a replay file's match again in our engine, and compare every event and the result. Never raises for what is
    in the file."""
    try:
        replay = read_replay(file)
    except SparringError as error:
        return ReplayCheck(file=str(file), status="unplayable", detail=str(error))
    try:
        return ReplayCheck(file=str(file), status="equal", turns=resimulate(replay))
    except Unplayable as error:
        return ReplayCheck(file=str(file), status="unplayable", detail=error.reason)
    except SparringError as error:
        return ReplayCheck(file=str(file), status="differs", detail=str(error))


def _map_facts(replay: Replay) -> dict[str, Any]:
    try:
        loong_map = read_map(replay.map)
    except MapError as error:
        return {"map_error": str(error)}
    return {
        "map_name": loong_map.name,
        "width": loong_map.width,
        "height": loong_map.height,
        "map_hash": map_hash(loong_map),
    }
