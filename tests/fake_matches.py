"""Matches that take no time: who wins is drawn from what makes the match, by strengths that stand in the names."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

from sparring.errors import SparringError
from sparring.judge.entrants import Entrant
from sparring.judge.match import PlayedMatch, TeamResult
from sparring.judge.official import JUDGE_ENGINE_SHA256
from sparring.judge.schedule import Job

DRAWS = 0.1
"""Share of matches that are drawn."""


def entrant(name: str) -> Entrant:
    """A player of the strength in its name: "100" is 100 Elo above "0", and "0 again" another one as strong as "0"."""
    return Entrant(name, "wasm", hashlib.sha256(name.encode()).hexdigest())


def team(of: Entrant) -> TeamResult:
    return TeamResult(
        name=of.name,
        kind=of.kind,
        hash=of.hash,
        dragons=3,
        total=20,
        queen=9,
        longest=9,
        born=5,
        deaths={"H": 2},
        turns=100,
        errors=0,
        first_error=None,
        retries=0,
        forfeit=False,
        points_p50=2_600_000,
        points_p99=3_000_000,
        points_max=3_100_000,
        memory_p50=1 << 20,
        memory_p99=1 << 20,
        memory_max=1 << 20,
    )


def played(job: Job, winner: str | None) -> PlayedMatch:
    return PlayedMatch(
        map_name=job.map_name,
        map_hash=job.map_hash,
        engine_hash=JUDGE_ENGINE_SHA256,
        seed=job.seed,
        winner=winner,
        reason="queen" if winner else "equal",
        rounds=500,
        turns=200,
        notices=0,
        a=team(job.a),
        b=team(job.b),
        cpu_seconds=0.25,
    )


def play(job: Job) -> PlayedMatch:
    """The same winner for the same match, in any process."""
    draw = int.from_bytes(hashlib.sha256(repr(job.key).encode()).digest()[:8], "little") / 2**64
    stronger = float(job.a.name.split()[0]) - float(job.b.name.split()[0])
    a_wins = (1 - DRAWS) / (1 + 10 ** (-stronger / 400))
    return played(job, "A" if draw < a_wins else None if draw < a_wins + DRAWS else "B")


def play_badly(job: Job) -> PlayedMatch:
    """As `play`, but the name of the map says what goes wrong. Each try leaves a file in $TRIES."""
    tries = Path(os.environ["TRIES"])
    before = len(list(tries.glob(f"{job.map_name}-*")))
    (tries / f"{job.map_name}-{before}-{os.getpid()}").touch()
    if job.map_name == "dies" or (job.map_name == "dies-once" and before == 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if job.map_name == "raises":
        raise ZeroDivisionError("no dragon")
    if job.map_name == "refused":
        raise SparringError("the map is refused")
    while job.map_name == "endless":
        time.sleep(0.01)
    return play(job)
