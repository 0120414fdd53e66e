"""The verbs that play bots in the judge, take apart what they did, and say who is better."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from sparring.cli.words import STOPPED, Switch, parsed, print_json, progress_line
from sparring.judge.entrants import load_entrant
from sparring.judge.ladder import Ladder, run_ladder
from sparring.judge.match import PlayedMatch, TeamResult, load_map, play_match, verdict_of
from sparring.judge.statistics import Sprt, Standing
from sparring.judge.tape import inspect_recording
from sparring.judge.verdicts import MATCHES, run_verdict, standing_line

_PLAYER = """A player is a bot's folder, a .zip of its files, a .wasm, a run of Loong (its name or folder), `starter`
(the toolkit's own bot), `foil` (a planner by hand), or one of the scripted players forager, hunter, splitter, legal
and reckless. A path takes precedence over a name: ./hunter is a folder. Bots are C or C++; the first build on a machine
sets up the judge's compiler, which takes a minute or two."""

MATCH_HELP = f"""Play one match in the organisers' engine, bots in their sandbox, with all limits of the judge.

  sparring match arena starter hunter
  sparring match my.map my-bot my-bot.zip --seed 7 --replay my.replay --record my.recording

A map is a file, or the name of one that ships with the judge.

{_PLAYER}"""

INSPECT_HELP = f"""Ask a bot again, without an engine, all that was asked in a recorded match, and compare turn by turn.

  sparring match arena starter hunter --record my.recording
  sparring inspect my.recording starter
  sparring inspect my.recording my-next-bot --team A    # where another build answers

BOT is a player. {_PLAYER}"""

VERDICT_HELP = f"""Is player A better than player B? Matches are played until a sequential test can say, at most 156.

  sparring verdict my-next-bot my-bot
  sparring verdict my-next-bot my-bot --maps generated:7:40 --workers 8
  sparring verdict my-small-bot my-bot --non-inferior 0.05    # at most 5 points of 100 worse?

Says "better" of a player whose score is 0.6 with a chance of 0.65, and of an equal one with a chance of 0.04. Both play
the same maps and seeds from both seats. After an interruption the same command goes on: what was played is in
matches.jsonl.

{_PLAYER}"""

LADDER_HELP = f"""Rate players: every one against every other, from both seats of the same maps and seeds.

  sparring ladder my-bot starter forager hunter
  sparring ladder my-bot starter forager hunter my-next-bot    # plays only the matches of my-next-bot

Ratings are Elo with 95 % intervals. A player is known by the hash of its build: a bot that was changed is another one.

{_PLAYER}"""

Maps = Annotated[str, tyro.conf.arg(metavar="shipped|DIR|generated:SEED:COUNT")]


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
        dragons = "1 dragon" if found.dragons == 1 else f"{found.dragons:,} dragons"
        print(f"{found.bot} for team {' and '.join(found.teams)}: {found.turns:,} turns of {dragons}")
        same = (("replies", found.same_replies), ("points", found.same_points), ("memory", found.same_memory))
        print("the same: " + ", ".join(f"{what} {count:,}/{found.turns:,}" for what, count in same))
        print(f"first difference: {found.first_difference or 'none'}")
    return 0 if found.first_difference is None else 1


def verdict(
    a: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A")],
    b: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="B")],
    *,
    maps: Maps = "shipped",
    seed: int = 0,
    non_inferior: float | None = None,
    workers: int = 2,
    cluster: str | None = None,
    out: Path = MATCHES,
    json: Switch = False,
) -> int:
    """Test A against B. Returns 0, whatever the verdict, and 130 where it was interrupted.

    Args:
        a: The player that may be better.
        b: The player that it is compared with.
        maps: The judge's own maps, a folder of map files, or generated ones.
        seed: Of the order of maps, and of the matches' seeds.
        non_inferior: Ask instead whether A is at most this much worse, as a difference of scores such as 0.05.
        workers: Matches at once.
        cluster: Address of a Ray cluster that plays them, or "local" (pip install 'sparring[cluster]').
        out: Folder for the matches and the picture.
        json: Print JSON.
    """
    one, other = load_entrant(a), load_entrant(b)
    with progress_line() as line:

        def show(test: Sprt, standing: Standing) -> None:
            line(standing_line(test, standing))

        found = run_verdict(
            one,
            other,
            maps=maps,
            seed=seed,
            workers=workers,
            non_inferior=non_inferior,
            out=out,
            cluster=cluster,
            on_match=show,
        )
    from sparring.pictures.ladder import draw_verdict  # not for every verb of this file: it takes a second

    if not json:
        print(found.line)  # first: the picture may find no room
    picture = out / f"{'verdict' if non_inferior is None else 'non-inferior'}-{_slug(one.name)}-{_slug(other.name)}.png"
    draw_verdict(
        found.standing.path,
        picture,
        bounds=(found.test.lower, found.test.upper),
        words=found.test.words,
        cap=found.test.cap,
        title=f"{one.name} against {other.name}",
    )
    if json:
        print_json({**found.json(), "picture": picture})
    else:
        print(f"picture: {picture}")
    return 0 if found.standing.outcome else STOPPED


def ladder(
    players: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PLAYER ...")],
    *,
    maps: Maps = "shipped",
    seed: int = 0,
    matches: int = 24,
    workers: int = 2,
    cluster: str | None = None,
    out: Path = MATCHES,
    json: Switch = False,
) -> int:
    """Play a round robin and rate the players. Returns 0, and 130 where it was interrupted.

    Args:
        players: Two or more.
        maps: The judge's own maps, a folder of map files, or generated ones.
        seed: Of the order of maps, and of the matches' seeds.
        matches: Of each pair, an even number.
        workers: Matches at once.
        cluster: Address of a Ray cluster that plays them, or "local" (pip install 'sparring[cluster]').
        out: Folder for the matches and the picture.
        json: Print JSON.
    """
    entrants = [load_entrant(player) for player in players]
    with progress_line() as line:
        found = run_ladder(
            entrants,
            maps=maps,
            seed=seed,
            matches=matches,
            workers=workers,
            out=out,
            cluster=cluster,
            on_match=lambda done, whole: line(f"match {done:,} of {whole:,}"),
        )
    from sparring.pictures.ladder import draw_ladder

    if not json:
        _tell_ladder(found)
    order, names, picture = found.order, found.names(), out / "ladder.png"
    draw_ladder(
        [names[index] for index in order],
        found.ratings.elo[order].tolist(),
        found.ratings.error[order].tolist(),
        found.ratings.group[order].tolist(),
        picture,
    )
    if json:
        print_json({**found.json(), "picture": picture})
    else:
        print(f"picture: {picture}")
    return STOPPED if found.missing else 0


def _tell_ladder(found: Ladder) -> None:
    Console().print(ladder_table(found))
    if found.ratings.groups > 1:
        print(f"{found.ratings.groups} groups without a match between them: no common scale")
    if found.errors:
        print(f"{found.errors:,} matches had no result and count for nobody; the same command plays them again")
    if found.missing:
        print(f"{found.missing:,} matches are still to play: the same command goes on")


def ladder_table(found: Ladder) -> Table:
    """Players from the strongest, group by group."""
    names = found.names()
    table = Table(box=box.SIMPLE)
    table.add_column("player")
    for heading in ("build", "Elo", "95 %", "score", "matches"):
        table.add_column(heading, justify="right")
    for at, index in enumerate(found.order):
        matches, group = int(found.matches[index].sum()), found.ratings.group[index]
        if at and group != found.ratings.group[found.order[at - 1]]:
            table.add_section()
        table.add_row(
            names[index],
            found.entrants[index].hash[:8],
            f"{round(found.ratings.elo[index]):+d}",
            f"± {found.ratings.error[index]:.0f}" if matches else "-",
            f"{found.points[index].sum() / matches:.3f}" if matches else "-",
            f"{matches:,}",
        )
    return table


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


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


def verdict_verb(given: list[str]) -> int:
    return parsed("sparring verdict", verdict, VERDICT_HELP)(given)


def ladder_verb(given: list[str]) -> int:
    return parsed("sparring ladder", ladder, LADDER_HELP)(given)
