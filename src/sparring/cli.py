"""The command `sparring`: one function for each verb; everything they do can be done from Python."""

from __future__ import annotations

import difflib
import json as json_format
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from sparring.errors import SparringError
from sparring.runs import evaluate as evaluation
from sparring.runs import listing
from sparring.runs.folder import runs_folder
from sparring.runs.play import play as play_run
from sparring.runs.progress import clock
from sparring.runs.recipe import Recipe, check_recipe, load_recipe, recipe_names
from sparring.runs.train import train as train_run

HELP = """Sparring trains game-playing agents by self-play.

usage: sparring VERB ...

  train      train a recipe, or continue its run where it stands
  evaluate   how well a run plays, without noise
  play       watch a rally of a run, and write it as a picture
  runs       list runs, compare their curves, free their disk space
  maps       check, show and generate maps of Loong
  lockstep   compare our Loong engine with the organisers', byte for byte
  doctor     check this machine

examples:
  sparring train tennis                        # makes ./runs/tennis; Ctrl-C saves, the same command goes on
  sparring train tennis --minutes 4 --seed 3
  sparring evaluate tennis
  sparring play tennis --out rally.gif
  sparring runs compare tennis tennis-seed-3

Every verb explains itself: sparring train --help
"""

TRAIN_HELP = """Train a recipe, or continue its run from the last checkpoint.

  sparring train tennis                      # recipe `tennis`, run ./runs/tennis
  sparring train tennis --minutes 4          # at most 4 minutes now; give it again to go on
  sparring train tennis --seed 3             # run tennis-seed-3
  sparring train my.toml --run try-2 --ddpg.actor-lr 1e-3

Recipes: {recipes}, or a .toml file. The settings below can be given in the file or as flags; flags win."""

EVALUATE_HELP = """How well a run plays: test matches without noise, the official score and its 95% interval.

  sparring evaluate tennis
  sparring evaluate tennis --opponent tennis-seed-3 --matches 500 --json"""

PLAY_HELP = """Play one rally, draw it live in the terminal, and write it as an animated picture.

  sparring play tennis                       # writes rally.gif in the run's folder
  sparring play tennis --seed 7 --out rally.mp4 --quiet"""

RUNS_HELP = """All runs at a glance.

usage: sparring runs [list | compare | prune] ...

  sparring runs                              # list them
  sparring runs compare tennis tennis-seed-3 # one picture, and a table of when each was solved
  sparring runs prune --keep-gb 5            # what would go; --yes removes it

Runs live in $SPARRING_RUNS (here: {folder})."""

COMPARE_HELP = """Draw the curves of several runs in one picture; runs that differ only in their seed form a group."""

PRUNE_HELP = """Free disk space: remove the replay of the runs saved longest ago until all runs together fit.

A run without its replay can be evaluated and played, but not continued. Without --yes nothing is removed."""

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

The first difference ends the run and leaves a file with the match. Needs pip install 'sparring[loong]'."""

Json = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclass(frozen=True, kw_only=True)
class TrainFlags:
    """What `sparring train` takes."""

    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")]
    """A recipe's name or file."""
    run: str | None = None
    """Name of the run, below $SPARRING_RUNS (default ./runs), or a path. Default: the recipe's name."""
    minutes: float | None = None
    """Stop after this many minutes; the same command again goes on."""
    json: Json = False
    """Print the result as JSON; lines and progress go to stderr."""
    settings: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


def train(flags: TrainFlags) -> int:
    """Train a run. Returns 0, or 128 plus the number of the signal that stopped it."""
    recipe = check_recipe(flags.settings, where="flags")
    run = Path(flags.recipe).stem if flags.run is None else flags.run
    if flags.run is None and recipe.seed != load_recipe(flags.recipe).seed:
        run += f"-seed-{recipe.seed}"
    result = train_run(recipe, run=run, minutes=flags.minutes, console=Console(stderr=flags.json))
    if flags.json:
        _print_json(result.json())
    return 128 + result.signal if result.signal else 0


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    *,
    opponent: str | None = None,
    matches: int = 100,
    seed: int = 1_000_000,
    episodes: int = 20,
    json: Json = False,
) -> int:
    """Evaluate a run.

    Args:
        run: A run's name or path.
        opponent: Another run to play against, sides alternating. Default: the run plays itself.
        matches: How many matches to play.
        seed: Of the serves. The default is far from the seeds that runs train on.
        episodes: Multi-rally episodes (more than 10 rallies or 2,500 decisions) to play besides, as the published curve
            counts.
        json: Print JSON.
    """
    found = evaluation.evaluate(run, opponent=opponent, matches=matches, seed=seed, episodes=episodes)
    if json:
        _print_json(found.json())
        return 0
    print(f"{found.player}: {found.matches} matches, mean score of the better agent {found.score:.3f}", end=" ")
    print(f"(95% interval {found.low:.3f} to {found.high:.3f})")
    print(f"match length {found.length:.0f} decisions, {found.capped:.0%} up to the time limit")
    if found.episode_score is not None:
        print(f"another measure, {found.episodes} episodes of more than 10 rallies: {found.episode_score:.3f}")
    if found.opponent is not None:
        print(f"against {found.opponent}: {found.wins} won, {found.draws} drawn, {found.losses} lost", end="; ")
        print(f"mean scores {found.player_score:.3f} and {found.opponent_score:.3f}")
    return 0


def play(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    *,
    opponent: str | None = None,
    out: Path | None = None,
    seed: int = 0,
    seconds: float = 20.0,
    speed: float = 1.0,
    quiet: Json = False,
    json: Json = False,
) -> int:
    """Play a rally.

    Args:
        run: A run's name or path; it plays racket A, on the left.
        opponent: The run that plays racket B. Default: the same.
        out: The picture, .gif or .mp4. Default: rally.gif in the run's folder.
        seed: Of the serve.
        seconds: Longest piece of the rally the picture shows.
        speed: Of the court in the terminal; 1 is real time.
        quiet: Do not draw in the terminal.
        json: Print the result as JSON, and do not draw.
    """
    terminal = not (quiet or json)
    console = Console()
    result = play_run(
        run, opponent=opponent, out=out, seed=seed, seconds=seconds, speed=speed, terminal=terminal, console=console
    )
    if json:
        fields = {name: getattr(result, name) for name in result.__dataclass_fields__}
        _print_json({**fields, "path": str(result.path), "best": result.best})
    elif quiet:
        print(result)
    if result.path and not json:
        print(f"picture: {result.path}")
    return 0


def runs_list(*, json: Json = False) -> int:
    """List all runs, the one saved last first.

    Args:
        json: Print JSON.
    """
    infos = listing.list_runs()
    if json:
        _print_json([info.json() for info in infos])
    elif not infos:
        print(f"no runs in {runs_folder()}; start one: sparring train tennis")
    else:
        _print_table(infos)
    return 0


def runs_compare(
    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[RUN ...]")] = (),
    *,
    out: Path | None = None,
    json: Json = False,
) -> int:
    """Compare runs.

    Args:
        runs: Names or paths. Default: all runs.
        out: The picture. Default: compare.png in the runs folder.
        json: Print JSON.
    """
    found = listing.compare(runs, out=out)
    if json:
        _print_json(found.json())
        return 0
    _print_table(found.runs)
    for group in found.groups:
        if len(group.runs) > 1:
            line = f"{group.name}: {group.solved} of {len(group.runs)} solved"
            if group.matches and group.decisions and group.minutes:
                line += (
                    f"; median {group.matches[1]:,.0f} matches ({group.matches[0]:,.0f} to {group.matches[2]:,.0f}), "
                    f"{group.decisions[1]:,.0f} decisions, {group.minutes[1]:.1f} minutes"
                )
            print(line)
    print(f"picture: {found.picture}")
    return 0


def runs_prune(*, keep_gb: float, whole: Json = False, yes: Json = False, json: Json = False) -> int:
    """Prune runs.

    Args:
        keep_gb: What all runs together may take, in gigabytes (1e9 bytes).
        whole: Remove whole runs, not only their replay.
        yes: Really remove; otherwise only tell what would be.
        json: Print JSON.
    """
    if not 0 <= keep_gb < float("inf"):
        raise SparringError(f"--keep-gb {keep_gb}: must be at least 0{', and finite' if keep_gb > 0 else ''}")
    pruned = listing.prune(keep_bytes=int(keep_gb * 1e9), whole=whole, really=yes)
    if json:
        _print_json([entry.json() for entry in pruned])
        return 0
    for entry in pruned:
        print(f"{'removed' if yes else 'would remove'} {entry.path} ({entry.size / 1e6:,.1f} MB)")
    if not pruned:
        print("nothing to remove")
    elif not yes:
        print("nothing was removed; add --yes to remove it")
    return 0


MapPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE ...")]


def maps_check(files: MapPaths, *, judge: Json = False, json: Json = False) -> int:
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
        _print_json([report.json() for report in reports])
        return 2 if refused else 0
    for report in reports:
        if report.facts is None or report.error:
            print(f"refused: {report.error}")
            continue
        facts = report.facts
        dragons = f"{facts.dragons[0]} against {facts.dragons[1]} dragons"
        print(f"{report.path}: {facts.width}x{facts.height}, mirror {facts.symmetry}, {dragons}, map {report.hash:.12}")
        for note in report.notes:
            print(f"  note: {note}")
    if len(reports) > 1:
        print(f"{len(reports)} maps, {len(refused)} refused")
    return 2 if refused else 0


def maps_show(files: MapPaths, *, out: Path | None = None, columns: int = 6, quiet: Json = False) -> int:
    """Show maps.

    Args:
        files: Map files, or folders with .map files.
        out: The picture, a .png.
        columns: Maps in a row of the sheet, where there are several.
        quiet: Do not draw in the terminal.
    """
    from sparring.levels.show import show_map, show_sheet
    from sparring.levels.survey import map_files

    paths = map_files(files)
    console = None if quiet else Console()
    for path in paths:
        show_map(path, out=out if len(paths) == 1 else None, console=console)
    if out and len(paths) > 1:
        show_sheet(paths, out=out, columns=columns)
    if out:
        print(f"picture: {out}")
    return 0


def maps_generate(*, out: Path, count: int = 4096, seed: int = 0, json: Json = False) -> int:
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
        _print_json({"folder": out, "count": count, "seed": seed})
        return 0
    print(f"{count:,} maps in {out}")
    pools = {"generated": facts}
    try:
        pools["shipped"] = [map_facts(each) for each in shipped_maps().values()]
    except SparringError as error:
        print(f"without a comparison: {error}")
    Console(width=200).print(statistics_table(pools))
    return 0


def doctor(*, json: Json = False) -> int:
    """Check this machine: each line says ok, or what is missing and how to mend it.

    Args:
        json: Print JSON.
    """
    from sparring.doctor import doctor as examine

    return examine(json=json)


Verb = Callable[[list[str]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns its exit code: 0, 2 for what the person can mend, 128 + n when stopped by signal n."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        print(f"sparring {version('sparring')}")
        return 0
    try:
        return _verb("sparring", given, _VERBS, HELP)
    except SparringError as error:
        print(f"sparring: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sparring: stopped at once; what the last checkpoint holds is safe", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again at exit
        return 141


def _verb(prog: str, given: list[str], verbs: dict[str, Verb], text: str) -> int:
    if not given or given[0] in ("-h", "--help"):
        print(text)
        return 0
    name, *rest = given
    if name not in verbs:
        near = difflib.get_close_matches(name, verbs, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(verbs)}; see {prog} --help"
        raise SparringError(f"no verb {name}: {hint}")
    return verbs[name](rest)


def _parse(prog: str, function: Callable[..., int], text: str) -> Verb:
    def run(given: list[str]) -> int:
        return tyro.cli(function, prog=prog, args=given, description=text)

    return run


def _train(given: list[str]) -> int:
    text = TRAIN_HELP.format(recipes=", ".join(recipe_names()))
    flags = _train_flags(given, text, _recipe_named_in(given))
    return train(flags)


def _recipe_named_in(given: list[str]) -> Recipe:
    """The recipe whose values are the defaults of all flags, found by parsing without complaint first."""
    try:
        named = _train_flags(
            [word for word in given if word not in ("-h", "--help")], "", Recipe(), console_outputs=False
        )
    except SystemExit:
        return Recipe()  # the second parse says what is wrong
    return load_recipe(named.recipe)


def _train_flags(given: list[str], text: str, recipe: Recipe, *, console_outputs: bool = True) -> TrainFlags:
    default = TrainFlags(recipe=tyro.MISSING, settings=recipe)
    return tyro.cli(
        TrainFlags,
        prog="sparring train",
        args=given,
        description=text,
        default=default,
        console_outputs=console_outputs,
    )


def _runs(given: list[str]) -> int:
    verbs = {
        "list": _parse("sparring runs list", runs_list, "List all runs, the one saved last first."),
        "compare": _parse("sparring runs compare", runs_compare, COMPARE_HELP),
        "prune": _parse("sparring runs prune", runs_prune, PRUNE_HELP),
    }
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given = ["list", *given]
    return _verb("sparring runs", given, verbs, RUNS_HELP.format(folder=runs_folder()))


def _maps(given: list[str]) -> int:
    verbs = {
        "check": _parse("sparring maps check", maps_check, CHECK_HELP),
        "show": _parse("sparring maps show", maps_show, SHOW_HELP),
        "generate": _parse("sparring maps generate", maps_generate, GENERATE_HELP),
    }
    return _verb("sparring maps", given, verbs, MAPS_HELP)


def _lockstep(given: list[str]) -> int:
    from sparring.judge.lockstep import run_lockstep

    return _parse("sparring lockstep", run_lockstep, LOCKSTEP_HELP)(given)


_VERBS: dict[str, Verb] = {
    "train": _train,
    "evaluate": _parse("sparring evaluate", evaluate, EVALUATE_HELP),
    "play": _parse("sparring play", play, PLAY_HELP),
    "runs": _runs,
    "maps": _maps,
    "lockstep": _lockstep,
    "doctor": _parse(
        "sparring doctor", doctor, "Check this machine: each line says ok, or what is missing and the mend."
    ),
}


def _print_json(value: Any) -> None:
    print(json_format.dumps(value, indent=2, default=str))


def _print_table(infos: Sequence[listing.RunInfo]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("run", "state", "seed", "decisions", "matches", "score", "solved at match", "trained", "disk"):
        table.add_column(heading, justify="left" if heading in ("run", "state") else "right", overflow="fold")
    for info in infos:
        if info.fault:
            table.add_row(info.run, "unreadable")
            continue
        done = "finished" if info.decisions >= info.budget else f"{info.decisions / info.budget:.0%}"
        table.add_row(
            info.run,
            "training" if info.training else done,
            str(info.seed),
            f"{info.decisions:,}",
            f"{info.matches:,}",
            "-" if info.score is None else f"{info.score:.3f}",
            f"{info.solved.match:,}" if info.solved else "-",
            clock(info.minutes * 60),
            f"{info.size / 1e6:,.1f} MB",
        )
    console = Console()
    console.print(table)
    for info in infos:
        if info.fault:
            console.print(info.fault, markup=False, highlight=False, soft_wrap=True)
