"""The verb that proves that a bot plays as its student does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from sparring.cli.words import Switch, parsed, print_json, progress_line
from sparring.export.gate import AGAINST, MAPS, MOST_POINTS, Gate, Spread, gate, gate_case

GATE_HELP = """Prove, turn by turn, that an exported bot plays as its student does, and say what its turns take.

  sparring gate my-bot
  sparring gate my-bot --maps generated:5:6 --most-turns 300       # a quick one
  sparring gate my-bot --again my-bot.case.json                    # the first difference, once more

The bot plays matches in the organisers' engine and sandbox. Then the reference, in whole numbers, and an inspection
build of the bot read every text that its dragons were told: inputs, mask, remembered map, memory, choice, packet and
reply must agree in every turn. Exits with 0 where all does, with 1 where anything speaks against the bot."""


def gate_bot(
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    *,
    maps: tuple[str, ...] = MAPS,
    matches: int | None = None,
    against: tuple[str, ...] = AGAINST,
    seed: int = 0,
    most_turns: int = 0,
    most_points: int = MOST_POINTS,
    workers: int = 2,
    case: Path | None = None,
    again: Path | None = None,
    json: Switch = False,
) -> int:
    """Gate a bot. Returns 0 where it passes, 1 where it does not.

    Args:
        folder: As sparring export wrote it.
        maps: One or more of shipped, generated:SEED:COUNT and folders of map files.
        matches: To play; by default one on each map.
        against: Opponents, in turn.
        seed: Of the order of maps, and of the matches' seeds.
        most_turns: To compare of each match, as whole lives that are drawn; 0 for all.
        most_points: A turn that takes more is refused.
        workers: Matches at once.
        case: File for the first difference; by default DIR.case.json.
        again: Ask only what this case tells, and say what differs.
        json: Print JSON.
    """
    if again is not None:
        found = gate_case(folder, again)
        if json:
            print_json({"differs": found is not None, "found": list(found.found) if found else []})
        else:
            print(f"{found.line}" if found else f"{again}: nothing differs")
            for more in found.found[1:] if found else ():
                print(f"  {more}")
        return 0 if found is None else 1
    with progress_line() as line:
        result = gate(
            folder,
            maps=maps,
            matches=matches,
            against=against,
            seed=seed,
            most_turns=most_turns,
            most_points=most_points,
            workers=workers,
            case=case,
            on_match=lambda done, whole, turns: line(f"match {done:,} of {whole:,}, {turns:,} turns compared"),
        )
    if json:
        print_json(result.json())
    else:
        _tell(result)
    return 0 if result.passed else 1


def _tell(result: Gate) -> None:
    print(
        f"{result.turns:,} turns of {result.matches:,} matches on {result.maps:,} maps compared, "
        f"{result.afresh:,} more of fresh processes: {result.disagreements:,} disagreements"
    )
    print("of them " + ", ".join(f"{count:,} {what}" for what, count in result.seen.items()))
    table = Table(box=box.SIMPLE)
    table.add_column("points a turn")
    for heading in ("p50", "p99", "max"):
        table.add_column(heading, justify="right")

    def row(name: str, spread: Spread) -> None:
        table.add_row(name, *(f"{value / 1e6:.2f} M" for value in (spread.p50, spread.p99, spread.max)))

    for name, spread in result.parts.items():
        row(f"  {name}", spread)
    row("all", result.points)
    Console().print(table)
    print(f"memory {result.memory / 2**20:.1f} MiB, zip {result.zip_bytes:,} bytes, built in {result.build_seconds} s")
    for what in ("sources", "wasm", "zip"):
        print(f"{what:8} {result.hashes[what]}")
    if result.first_difference:
        print(f"first difference: {result.first_difference}")
        print(f"case: {result.case}")
    for reason in result.refused:
        print(f"refused: {reason}")
    print("passed" if result.passed else "not passed")


def gate_verb(given: list[str]) -> int:
    return parsed("sparring gate", gate_bot, GATE_HELP)(given)
