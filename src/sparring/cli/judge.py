"""The verbs that play bots in the judge, and take apart what they did."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from sparring.cli.words import Switch, parsed, print_json
from sparring.judge.entrants import load_entrant
from sparring.judge.match import PlayedMatch, TeamResult, load_map, play_match
from sparring.judge.tape import inspect_recording

MATCH_HELP = """Play one match in the organisers' engine, bots in their sandbox, with all limits of the judge.

  sparring match arena starter hunter
  sparring match my.map my-bot my-bot.zip --seed 7 --replay my.replay --record my.recording

A map is a file, or the name of one that ships with the judge. A player is a bot's folder, a .zip of it, a .wasm,
`starter` (the toolkit's own bot), or one of the scripted players forager, hunter, splitter, legal and reckless. Bots
are C or C++; the first one that is built on a machine makes the judge's compiler ready, which takes a minute or two."""

INSPECT_HELP = """Ask a bot again, without an engine, all that was asked in a recorded match, and compare turn by turn.

  sparring match arena starter hunter --record my.recording
  sparring inspect my.recording starter
  sparring inspect my.recording my-next-bot --team A    # where another build answers"""


def match(
    map: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MAP")],
    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")],
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")],
    *,
    seed: int = 0,
    replay: Path | None = None,
    record: Path | None = None,
    json: Switch = False,
) -> int:
    """Play one match. Returns 0, whoever wins.

    Args:
        map: A map file, or the name of a map that ships with the judge.
        a: The player of team A.
        b: The player of team B.
        seed: Of the match, below 2^64: decides the pearls and the bots' random numbers.
        replay: File for the organisers' viewer.
        record: File for all that was told and replied, for sparring inspect.
        json: Print JSON.
    """
    name, map_bytes = load_map(map)
    played = play_match(
        map_bytes, load_entrant(a), load_entrant(b), seed=seed, record=record, replay=replay, map_name=name
    )
    if json:
        print_json(played.json())
        return 0
    print(verdict_of(played))
    Console().print(match_table(played))
    for team, result in (("A", played.a), ("B", played.b)):
        if result.first_error:
            print(f"team {team} failed in {result.errors:,} of {result.turns:,} turns, first in {result.first_error}")
        if result.retries:
            print(f"team {team} crashed {result.retries:,} times before it said anything, and was asked again")
    for what, file in (("replay", replay), ("recording", record)):
        if file is not None:
            print(f"{what}: {file}")
    return 0


def inspect(
    record: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RECORD")],
    bot: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="BOT")],
    *,
    team: Literal["A", "B"] | None = None,
    json: Switch = False,
) -> int:
    """Compare a bot with a recorded match. Returns 0 where it does the same again, 1 where it does not.

    Args:
        record: What sparring match --record wrote.
        bot: A player, as sparring match takes it.
        team: For whom it stands in; by default for every team that this very build played.
        json: Print JSON.
    """
    found = inspect_recording(record, load_entrant(bot), team=team)
    if json:
        print_json(asdict(found))
    else:
        print(f"{found.bot} for team {' and '.join(found.teams)}: {found.turns:,} turns of {found.dragons:,} dragons")
        same = (("replies", found.same_replies), ("points", found.same_points), ("memory", found.same_memory))
        print("the same: " + ", ".join(f"{what} {count:,}/{found.turns:,}" for what, count in same))
        print(f"first difference: {found.first_difference or 'none'}")
    return 0 if found.first_difference is None else 1


def verdict_of(played: PlayedMatch) -> str:
    """Who won, when, why and where, in a line."""
    ends = {
        "elimination": "by elimination",
        "both eliminated": "as both were eliminated",
        "queen": "by the longer queen",
        "longest": "by the longest dragon",
        "total": "by total length",
        "equal": "with all equal",
    }
    winner = {"A": f"A, {played.a.name}, wins", "B": f"B, {played.b.name}, wins", None: "nobody wins"}[played.winner]
    where = f"map {played.map_name or played.map_hash[:12]}, seed {played.seed}"
    return f"{winner} after {played.rounds} rounds {ends[played.reason]} ({where})"


def match_table(played: PlayedMatch) -> Table:
    """What both teams did and took."""
    table = Table(box=box.SIMPLE)
    table.add_column()
    for team, result in (("A", played.a), ("B", played.b)):
        table.add_column(f"{team}: {result.name} ({result.hash:.8})", justify="right")

    def row(name: str, cell: str, *fields: str) -> None:
        def shown(result: TeamResult) -> str:
            values = [getattr(result, each) for each in fields]
            return "-" if None in values else cell.format(*values)

        table.add_row(name, shown(played.a), shown(played.b))

    row("dragons at the end", "{:,}", "dragons")
    row("their total length", "{:,}", "total")
    row("queen, longest", "{:,}, {:,}", "queen", "longest")
    row("dragons born", "{:,}", "born")
    deaths = [", ".join(f"{why} {count:,}" for why, count in each.deaths.items()) for each in (played.a, played.b)]
    table.add_row("deaths", *(each or "-" for each in deaths))
    row("turns", "{:,}", "turns")
    row("failed turns", "{:,}", "errors")
    for what, unit, letter in (("points", 1e6, "M"), ("memory", 2**20, "MiB")):
        for statistic in ("p50", "p99", "max"):
            values = [getattr(each, f"{what}_{statistic}") for each in (played.a, played.b)]
            cells = ("-" if value is None else f"{value / unit:.2f} {letter}" for value in values)
            table.add_row(f"{what} a turn, {statistic}", *cells)
    return table


def match_verb(given: list[str]) -> int:
    return parsed("sparring match", match, MATCH_HELP)(given)


def inspect_verb(given: list[str]) -> int:
    return parsed("sparring inspect", inspect, INSPECT_HELP)(given)
