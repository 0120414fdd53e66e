"""The verbs of replays of Loong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from sparring.cli.words import Switch, parsed, pick, print_json, printable
from sparring.errors import SparringError
from sparring.judge.replay_format import Standing, read_replay
from sparring.judge.replay_report import check_replay, report_replay

REPLAY_HELP = """Replays of Loong, ours and the organisers': what is in one, and whether our engine plays the same.

usage: sparring replay [show | check | film] ...

  sparring replay show my.replay
  sparring replay check my.replay other.replay
  sparring replay film my.replay --out my.gif"""

SHOW_HELP = """Say what is in replay files: players, seed, map, result.

  sparring replay show my.replay
  sparring replay show my.replay --json"""

CHECK_HELP = """Play the matches of replay files again in our engine, and compare every event and the result.

  sparring replay check my.replay other.replay

A replay that a contest site stripped of its seed or of its pearl countdowns cannot be played again; it says so."""

FILM_HELP = """Draw the match of a replay as an animated picture, .gif or .mp4.

  sparring match arena hunter forager --replay my.replay
  sparring replay film my.replay --out my.gif"""

ReplayPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE ...")]


def replay_show(files: ReplayPaths, *, json: Switch = False) -> int:
    """Show replays.

    Args:
        files: Replay files.
        json: Print JSON.
    """
    reports = [report_replay(file) for file in _named(files)]
    if json:
        print_json([report.json() for report in reports])
        return 0
    for report in reports:
        result, names = report.result, {"A": report.bot_a, "B": report.bot_b}
        seed = "unknown" if report.seed is None else report.seed
        winner = "nobody" if result.winner is None else f"{result.winner}, {names[result.winner]}"
        end = f"winner {winner} ({result.end_reason})" if result.terminated else "not played to its end"
        deaths = ", ".join(f"{count:,} {reason}" for reason, count in report.deaths.items())
        size = f"{report.width}x{report.height}"
        lines = [
            f"{report.file}: {report.bot_a} against {report.bot_b}, seed {seed}",
            f"  map: {report.map_name or 'without a name'}, {size}, {report.map_hash or '':.12}",
            f"  {report.rounds:,} rounds, {report.turns:,} turns, {report.events:,} events: {end}",
            f"  {report.births:,} births, {sum(report.deaths.values()):,} deaths{deaths and f' ({deaths})'}",
            *(f"  {team}: {_standing(standing)}" for team, standing in (("A", result.a), ("B", result.b))),
            f"  SHA-256 {report.sha256}",
        ]
        if report.map_error:
            lines[1] = f"  map: refused: {report.map_error}"
        for line in lines:
            print(printable(line))
    return 0


def replay_check(files: ReplayPaths, *, json: Switch = False) -> int:
    """Check replays. Returns 0 where our engine plays all of them alike, 2 where one cannot be played, else 1.

    Args:
        files: Replay files.
        json: Print JSON.
    """
    checks = [check_replay(file) for file in _named(files)]
    if json:
        print_json([check.json() for check in checks])
    for check in () if json else checks:
        what = f"equal, {check.turns:,} turns" if check.status == "equal" else f"{check.status}: {check.detail}"
        print(printable(f"{check.file}: {what}"))
    return max({"equal": 0, "differs": 1, "unplayable": 2}[check.status] for check in checks)


def replay_film(file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")], *, out: Path) -> int:
    """Film a replay.

    Args:
        file: A replay file.
        out: The picture, .gif or .mp4.
    """
    from sparring.judge.films import film  # not for every verb of this file: it takes a second

    replay = read_replay(file)
    film(file, out, title=f"{replay.bot_a} (red) and {replay.bot_b} (blue)")
    print(f"picture: {out}")
    return 0


def _named(files: tuple[Path, ...]) -> tuple[Path, ...]:
    if not files:
        raise SparringError("no replay named: give a replay file")
    return files


def _standing(standing: Standing) -> str:
    dragons = f"{standing.dragons} dragon{'s' * (standing.dragons != 1)}"
    return f"{dragons}, longest {standing.longest}, total {standing.total}, queen {standing.queen}"


def replay_verb(given: list[str]) -> int:
    verbs = {
        "show": parsed("sparring replay show", replay_show, SHOW_HELP),
        "check": parsed("sparring replay check", replay_check, CHECK_HELP),
        "film": parsed("sparring replay film", replay_film, FILM_HELP),
    }
    return pick("sparring replay", given, verbs, REPLAY_HELP)
