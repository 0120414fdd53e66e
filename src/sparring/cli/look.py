"""The verb that shows what a dragon of a recorded match knew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sparring.cli.words import Switch, parsed
from sparring.judge.looking import look
from sparring.pictures.look import chosen_planes, draw_look, print_look
from sparring.pictures.maps import write_picture

LOOK_HELP = """Draw what a dragon of Loong knew in one of its turns, beside the true board.

  sparring match arena starter hunter --record my.recording --replay my.replay
  sparring look my.recording --turn 40 --dragon 3
  sparring look my.replay --turn 40 --dragon 3 --plane reach     # an input plane as numbers
  sparring look my.replay --turn 40 --dragon 3 --plane all --out look.png --quiet

Left what it remembers, right what is there; then what it might choose, its scalars, and the packets it goes by. Planes
lie as the dragon sees: forward is up. What the bytes mean: docs/loong-knowledge.md. A match does not tell roles and
claims: the dragon holds role 0."""


def look_at(
    match: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MATCH")],
    *,
    turn: int,
    dragon: int,
    plane: Annotated[str | None, tyro.conf.arg(metavar="NAME|all")] = None,
    out: Path | None = None,
    build: int = 0,
    quiet: Switch = False,
) -> int:
    """Look through a dragon's eyes.

    Args:
        match: A replay, or what sparring match --record wrote.
        turn: The round of the turn, from 0 on.
        dragon: Its id.
        plane: An input plane to show, or all of them.
        out: The picture, a .png.
        build: Of the bot, whose packets alone its dragons understand.
        quiet: Do not draw in the terminal.
    """
    planes = chosen_planes(plane)
    seen = look(match, turn=turn, dragon=dragon, build=build)
    if not quiet:
        print_look(seen, Console(), planes)
    if out is not None:
        write_picture(draw_look(seen, planes), out)
        print(f"picture: {out}")
    return 0


def look_verb(given: list[str]) -> int:
    return parsed("sparring look", look_at, LOOK_HELP)(given)
