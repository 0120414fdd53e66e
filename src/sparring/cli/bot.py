"""The verbs that write bots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from sparring.cli.words import Switch, parsed, pick, print_json

BOT_HELP = """Write bots for the judge of Loong: folders of C++ sources that the toolkit builds as they are.

usage: sparring bot foil ...

  sparring bot foil --out foil
  sparring match arena foil hunter
  unswbc run my.map foil foil --sandbox"""

FOIL_HELP = """Write the foil, a strong planner by hand (docs/loong-foil.md), as a bot folder.

  sparring bot foil --out foil
  sparring verdict foil hunter --maps generated:7:40"""


def bot_foil(*, out: Path) -> int:
    """Write the foil's folder.

    Args:
        out: The folder, new or empty.
    """
    from sparring.judge.foil import write_foil

    print(f"{out}: {write_foil(out):.12}")
    return 0


EXPORT_HELP = """Write the student of a run as a bot folder of C++ for the judge of Loong, and the zip to submit.

  sparring export my-run --out my-bot --zip
  sparring gate my-bot                             # the proof that it plays as the student does
  sparring match arena my-bot forager
  unswbc run my.map my-bot my-bot --sandbox

The student is the run's newest that sparring distil trained with the bot's arithmetic, or the one of --student."""


def export(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    *,
    out: Path,
    zip: Switch = False,
    weights: Literal["text", "embed"] = "text",
    student: Path | None = None,
    json: Switch = False,
) -> int:
    """Write a student as a bot.

    Args:
        run: A run's name or path.
        out: The folder, new or empty.
        zip: Write OUT.zip, too.
        weights: As numbers in a header, or as a binary file by #embed, which GCC reads from version 15 on only.
        student: A file of a student, such as RUN/students/round-0003.pt.
        json: Print JSON.
    """
    from sparring.export.bot import export_bot

    made = export_bot(run, out=out, zip=zip, weights=weights, student=student)
    if json:
        print_json(made.json())
        return 0
    print(f"{made.folder}: {made.weights_bytes:,} bytes of weights, sources {made.sources:.12}")
    if made.zip is not None:
        print(f"{made.zip}: {made.zip_bytes:,} bytes")
    print(f"teacher {made.origin.teacher:.12}, student {made.origin.student:.12}, core {made.origin.core:.12}")
    print(f"next: sparring gate {made.folder}")
    return 0


def export_verb(given: list[str]) -> int:
    return parsed("sparring export", export, EXPORT_HELP)(given)


def bot_verb(given: list[str]) -> int:
    return pick("sparring bot", given, {"foil": parsed("sparring bot foil", bot_foil, FOIL_HELP)}, BOT_HELP)
