"""The verb that makes a student from a teacher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import tyro
from rich.console import Console

from sparring.cli.words import Switch, print_json
from sparring.distil.run import distil_student
from sparring.distil.settings import DistilConfig
from sparring.settings import flat

DISTIL_HELP = """Distil a student, small enough for a bot, from the teacher of a run of Loong.

  sparring distil loong-tiny --minutes 2     # a student within 2 minutes, in runs/loong-tiny/students
  sparring distil loong-tiny                 # one round more
  sparring distil loong-night --preset student --rounds 20

The student plays its own matches, and learns in every position what the teacher would do. Each round takes the newest
teacher: the run may train meanwhile. Ctrl-C saves, and the same command goes on."""


@dataclass(frozen=True, kw_only=True)
class DistilFlags:
    """What `sparring distil` takes."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run's name or path."""
    minutes: float | None = None
    """Stop after this many minutes; the last round is cut so that it is over by then."""
    rounds: int | None = None
    """Rounds to make now. Default: 1, or as many as fit into --minutes."""
    json: Switch = False
    """Print the result as JSON; lines and progress go to stderr."""
    settings: Annotated[DistilConfig, tyro.conf.arg(name="")] = field(default_factory=DistilConfig)


def distil(flags: DistilFlags) -> int:
    """Distil a student. Returns 0, or 128 plus the number of the signal that stopped it."""
    result = distil_student(
        flags.run,
        minutes=flags.minutes,
        rounds=flags.rounds,
        console=Console(stderr=flags.json),
        **dict(flat(flags.settings)),
    )
    if flags.json:
        print_json(result.json())
    return 128 + result.signal if result.signal else 0


def distil_verb(given: list[str]) -> int:
    return distil(tyro.cli(DistilFlags, prog="sparring distil", args=given, description=DISTIL_HELP))
