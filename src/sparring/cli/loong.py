"""The verbs of Loong's maps, and lockstep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sparring.cli.words import Switch, parsed, pick, print_json, printable
from sparring.errors import SparringError

MAPS_HELP = """Maps of Loong: check files, show them, generate a pool to train on.

usage: sparring maps [check | show | generate] ...

  sparring maps generate --count 4096 --seed 7 --out maps
  sparring maps check maps my.map            # the judge's own words where it would refuse one
  sparring maps show my.map --out my.png"""

CHECK_HELP = """Check map files: whether the judge would take them, and if not, why, in its own words; and what is odd.

  sparring maps check my.map
  sparring maps check my-folder --judge      # let the installed judge load each one too"""

SHOW_HELP = """Draw map files in the terminal, and with --out as a picture; several share one sheet.

  sparring maps show my.map --out my.png
  sparring maps show maps/map-7-000*.map --out sheet.png --quiet"""

GENERATE_HELP = """Generate maps, and compare their figures with those of the maps that ship with the judge.

  sparring maps generate --count 4096 --seed 7 --out maps

Map i of a seed is always the same map, however many are generated."""

LOCKSTEP_HELP = """Play matches in the organisers' engine and in ours at once, and compare every byte they say.

  sparring maps generate --count 150 --seed 7 --out maps
  sparring lockstep --maps maps --games 300 --policy mixed    # interrupt it; the same command goes on
  sparring lockstep --maps maps --games 300 --jobs 8          # the same games, eight at a time

Prints how many games and turns were alike, and how often each thing that the rules know happened; what never happened
was not compared. The first difference ends the run, with exit code 2, and leaves a file in --out with the match:
sparring.judge.lockstep.reproduce(FILE) plays it again. Finished games are noted in --out, under a name that stands for
maps, seed, policy and core; with any of these changed it begins anew. Needs pip install 'sparring[loong]', and the
version of the judge whose rules we follow."""

MapPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE ...")]


def maps_check(files: MapPaths, *, judge: Switch = False, json: Switch = False) -> int:
    """Check maps. Returns 0 where the judge takes all of them, else 2.

    Args:
        files: Map files, or folders with .map files.
        judge: Let the installed judge load each map, too (pip install 'sparring[loong]').
        json: Print JSON.
    """
    from sparring.levels.survey import check_maps

    reports = check_maps(files, judge=judge)
    refused = [report for report in reports if report.error]
    if json:
        print_json([report.json() for report in reports])
        return 2 if refused else 0
    for report in reports:
        if report.facts is None or report.error:
            print(printable(f"refused: {report.error}"))
            continue
        facts = report.facts
        dragons = f"{facts.dragons[0]} against {facts.dragons[1]} dragons"
        print(f"{report.path}: {facts.width}x{facts.height}, mirror {facts.symmetry}, {dragons}, map {report.hash:.12}")
        for note in report.notes:
            print(f"  note: {note}")
    if len(reports) > 1:
        print(f"{len(reports)} maps, {len(refused)} refused")
    return 2 if refused else 0


def maps_show(files: MapPaths, *, out: Path | None = None, columns: int = 6, quiet: Switch = False) -> int:
    """Show maps.

    Args:
        files: Map files, or folders with .map files.
        out: The picture, a .png.
        columns: Maps in a row of the sheet, where there are several.
        quiet: Do not draw in the terminal.
    """
    from sparring.levels.survey import map_files
    from sparring.pictures.maps import show_map, show_sheet

    paths = map_files(files)
    console = None if quiet else Console()
    for path in paths:
        show_map(path, out=out if len(paths) == 1 else None, console=console)
    if out and len(paths) > 1:
        show_sheet(paths, out=out, columns=columns)
    if out:
        print(f"picture: {out}")
    return 0


def maps_generate(*, out: Path, count: int = 4096, seed: int = 0, json: Switch = False) -> int:
    """Generate maps.

    Args:
        out: Folder for the files.
        count: How many maps.
        seed: Below 2^64. Another seed makes other maps.
        json: Print JSON, without the table.
    """
    from rich.progress import track

    from sparring.levels.generator import generate_maps
    from sparring.levels.shipped import shipped_maps
    from sparring.levels.survey import map_facts, statistics_table

    made = generate_maps(count, seed=seed, out=out)
    facts = [map_facts(each) for _, each in track(made, "generating", count, console=Console(stderr=True))]
    if json:
        print_json({"folder": out, "count": count, "seed": seed})
        return 0
    print(f"{count:,} maps in {out}")
    pools = {"generated": facts}
    try:
        pools["shipped"] = [map_facts(each) for each in shipped_maps().values()]
    except SparringError as error:
        print(f"without a comparison: {error}")
    Console(width=200).print(statistics_table(pools))
    return 0


def maps_verb(given: list[str]) -> int:
    verbs = {
        "check": parsed("sparring maps check", maps_check, CHECK_HELP),
        "show": parsed("sparring maps show", maps_show, SHOW_HELP),
        "generate": parsed("sparring maps generate", maps_generate, GENERATE_HELP),
    }
    return pick("sparring maps", given, verbs, MAPS_HELP)


def lockstep_verb(given: list[str]) -> int:
    from sparring.judge.lockstep import run_lockstep

    return parsed("sparring lockstep", run_lockstep, LOCKSTEP_HELP)(given)
