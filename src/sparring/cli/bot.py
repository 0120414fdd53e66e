"""The verbs that write bots."""

from __future__ import annotations

from pathlib import Path

from sparring.cli.words import parsed, pick

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


def bot_verb(given: list[str]) -> int:
    return pick("sparring bot", given, {"foil": parsed("sparring bot foil", bot_foil, FOIL_HELP)}, BOT_HELP)
