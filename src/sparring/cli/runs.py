"""The verbs of runs: train, evaluate, play, runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from sparring.cli.words import STOPPED, Switch, flags_given, parsed, pick, print_json, progress_line
from sparring.errors import SparringError
from sparring.games.own import own_game
from sparring.judge.films import Filmed
from sparring.judge.match import verdict_of
from sparring.judge.runs import evaluate as evaluate_run
from sparring.judge.runs import play as play_run
from sparring.judge.versus import Versus
from sparring.runs import listing
from sparring.runs.evaluate import Evaluation
from sparring.runs.folder import runs_folder
from sparring.runs.progress import clock
from sparring.runs.recipe import Recipe, check_recipe, load_recipe, recipe_names
from sparring.runs.train import train as train_run

_ENDS = ("queen", "longest", "total", "dragons")

TRAIN_HELP = """Train a recipe, or continue its run from the last checkpoint.

  sparring train tennis                      # recipe `tennis`, run ./runs/tennis
  sparring train tennis --minutes 4          # at most 4 minutes now; give it again to go on
  sparring train tennis --seed 3             # run tennis-seed-3
  sparring train my.toml --run try-2 --ddpg.actor-lr 1e-3
  sparring train loong-tiny                  # Loong
  sparring train own-maddpg --own my_game.py:parallel_env

Recipes: {recipes}, or a .toml file. The settings below can be given in the file or as flags; flags win."""

EVALUATE_HELP = """How well a run plays: test matches without noise, the score and its 95% interval.

  sparring evaluate tennis
  sparring evaluate tennis --opponent tennis-seed-3 --matches 500 --json

A run of Loong plays in the organisers' engine, with all limits of the judge, from both seats:

  sparring evaluate loong-tiny --against starter --maps shipped --matches 72
  sparring evaluate loong-tiny --against hunter --maps generated:7:40 --matches 80 --json

Opponents are named as for sparring match. Interrupt it; the same command goes on with what is in
matches/matches.jsonl in the run's folder."""

PLAY_HELP = """Play one match without noise and write it as an animated picture.

  sparring play tennis                       # draws a rally live, writes rally.gif in the run's folder
  sparring play tennis --seed 7 --out rally.mp4 --quiet
  sparring play spread-maddpg                # any PettingZoo game that can be drawn: writes match.gif
  sparring play own-ppo --own my_game.py:parallel_env
  sparring play loong-tiny --map arena       # writes match.gif and match.replay, for the organisers' viewer
  sparring play loong-tiny --map my.map --against starter --seed 3 --out my.gif"""

RUNS_HELP = """All runs at a glance.

usage: sparring runs [list | compare | prune] ...

  sparring runs                              # list them
  sparring runs compare tennis tennis-seed-3 # one picture, and a table of when each was solved
  sparring runs prune --keep-gb 5            # what would go; --yes removes it

Runs live in $SPARRING_RUNS (here: {folder})."""

COMPARE_HELP = """Draw the curves of several runs in one picture; runs that differ only in their seed form a group."""

PRUNE_HELP = """Free disk space: remove the replay of the runs saved longest ago until all runs together fit.

A run without its replay can be evaluated and played, but not continued. Without --yes nothing is removed."""


@dataclass(frozen=True, kw_only=True)
class TrainFlags:
    """What `sparring train` takes."""

    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")]
    """A recipe's name or file."""
    run: str | None = None
    """Name of the run, below $SPARRING_RUNS (default ./runs), or a path. Default: the recipe's name."""
    minutes: float | None = None
    """Stop after this many minutes; the same command again goes on."""
    own: str | None = None
    """A game of your own, FILE.py:NAME; NAME makes a PettingZoo environment or a game of the decision stream."""
    json: Switch = False
    """Print the result as JSON; lines and progress go to stderr."""
    settings: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


def train(flags: TrainFlags) -> int:
    """Train a run. Returns 0, or 128 plus the number of the signal that stopped it."""
    recipe = check_recipe(flags.settings, where="flags")
    run = Path(flags.recipe).stem if flags.run is None else flags.run
    if flags.run is None and recipe.seed != load_recipe(flags.recipe).seed:
        run += f"-seed-{recipe.seed}"
    game = None if flags.own is None else own_game(flags.own)
    result = train_run(recipe, run=run, minutes=flags.minutes, game=game, console=Console(stderr=flags.json))
    if flags.json:
        print_json(result.json())
    return 128 + result.signal if result.signal else 0


def evaluate(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    *,
    opponent: str | None = None,
    own: str | None = None,
    against: str | None = None,
    maps: Annotated[str | None, tyro.conf.arg(metavar="shipped|DIR|generated:SEED:COUNT")] = None,
    matches: int | None = None,
    seed: int | None = None,
    episodes: int | None = None,
    workers: int | None = None,
    out: Path | None = None,
    json: Switch = False,
) -> int:
    """Evaluate a run. Returns 0, and 130 where matches of Loong were interrupted.

    Args:
        run: A run's name or path.
        opponent: Not Loong: another run to play against, sides alternating. Default: the run plays itself.
        own: The run's game, FILE.py:NAME, where it was trained on one of your own.
        against: Loong: the opponent, a scripted player, a bot or a run. Default: starter.
        maps: Loong: the judge's own maps, a folder of map files, or generated ones. Default: shipped.
        matches: How many matches to play. Default: 100, of Loong 72.
        seed: Of the serves, or of the schedule of matches. Default: 1,000,000, far from what runs train on; of Loong 0.
        episodes: Tennis: multi-rally episodes (more than 10 rallies or 2,500 decisions) to play besides, as the
            published curve counts. Default: 20.
        workers: Loong: processes. Default: 2.
        out: Loong: folder for the matches. Default: matches in the run's folder.
        json: Print JSON.
    """
    how = flags_given(
        opponent=opponent,
        game=None if own is None else own_game(own),
        against=against,
        maps=maps,
        matches=matches,
        seed=seed,
        episodes=episodes,
        workers=workers,
        out=out,
    )
    with progress_line() as line:
        found = evaluate_run(run, on_match=lambda done, whole: line(f"match {done:,} of {whole:,}"), **how)
    if json:
        print_json(found.json())
    elif isinstance(found, Versus):
        _tell_versus(found)
    else:
        _tell_evaluation(found)
    return STOPPED if isinstance(found, Versus) and found.missing else 0


def _tell_evaluation(found: Evaluation) -> None:
    print(f"{found.player}: {found.matches} matches, mean score of the better agent {found.score:.3f}", end=" ")
    print(f"(95% interval {found.low:.3f} to {found.high:.3f})")
    print(f"match length {found.length:.0f} decisions, {found.capped:.0%} up to the time limit")
    if found.episode_score is not None:
        print(f"another measure, {found.episodes} episodes of more than 10 rallies: {found.episode_score:.3f}")
    if found.opponent is not None:
        print(f"against {found.opponent}: {found.wins} won, {found.draws} drawn, {found.losses} lost", end="; ")
        print(f"mean scores {found.player_score:.3f} and {found.opponent_score:.3f}")


def _tell_versus(found: Versus) -> None:
    print(f"{found.player} against {found.opponent}: {found.matches} matches on {found.maps} maps, ", end="")
    if found.score is None:
        print("none has ended")
    else:
        print(f"score {found.score:.3f} (95% interval {found.low:.3f} to {found.high:.3f})")
        print(f"{found.wins} won, {found.draws} drawn, {found.losses} lost; rounds {found.rounds:.0f}", end="")
        print(
            "".join(f"; as {team} {made:.3f}" for team, made in zip("AB", found.seats, strict=True) if made is not None)
        )
        pairs = (f"{name} {getattr(found, name)[0]:.1f} and {getattr(found, name)[1]:.1f}" for name in _ENDS)
        print(f"at the end, own and opponent's: {', '.join(pairs)}")
    if found.missing:
        print(f"{found.missing} matches are still to play: the same command goes on")


def play(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    *,
    opponent: str | None = None,
    own: str | None = None,
    against: str | None = None,
    map: str | None = None,
    out: Path | None = None,
    seed: int = 0,
    seconds: float | None = None,
    speed: float | None = None,
    quiet: Switch = False,
    json: Switch = False,
) -> int:
    """Play a match.

    Args:
        run: A run's name or path; it plays racket A, on the left, or team A, or team 0.
        opponent: Not Loong: the run that plays racket B, or team 1. Default: the same.
        own: The run's game, FILE.py:NAME, where it was trained on one of your own.
        against: Loong: team B, starter, a scripted player, a bot or a run. Default: the same run.
        map: Loong: a map file, or the name of a map that ships with the judge. Default: arena.
        out: The picture, .gif or .mp4. Default: rally.gif or match.gif in the run's folder. A replay of Loong lies
            beside it.
        seed: Of the serve, or of the match.
        seconds: Not Loong: longest piece of the match the picture shows. Default: 20.
        speed: Tennis: of the court in the terminal; 1 is real time. Default: 1.
        quiet: Do not draw in the terminal.
        json: Print the result as JSON, and do not draw.
    """
    how = flags_given(
        opponent=opponent,
        game=None if own is None else own_game(own),
        against=against,
        map=map,
        out=out,
        seed=seed,
        seconds=seconds,
        speed=speed,
    )
    result = play_run(run, terminal=not (quiet or json), console=Console(), **how)
    if isinstance(result, Filmed):
        if json:
            print_json({**result.played.json(), "picture": result.picture, "replay": result.replay})
        else:
            print(verdict_of(result.played))
            print(f"picture: {result.picture}\nreplay: {result.replay}")
        return 0
    if json:
        fields = {name: getattr(result, name) for name in result.__dataclass_fields__}
        print_json({**fields, "path": str(result.path), "best": result.best})
    elif quiet:
        print(result)
    if result.path and not json:
        print(f"picture: {result.path}")
    return 0


def runs_list(*, json: Switch = False) -> int:
    """List all runs, the one saved last first.

    Args:
        json: Print JSON.
    """
    infos = listing.list_runs()
    if json:
        print_json([info.json() for info in infos])
    elif not infos:
        print(f"no runs in {runs_folder()}; start one: sparring train tennis")
    else:
        _print_table(infos)
    return 0


def runs_compare(
    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[RUN ...]")] = (),
    *,
    out: Path | None = None,
    json: Switch = False,
) -> int:
    """Compare runs.

    Args:
        runs: Names or paths. Default: all runs.
        out: The picture. Default: compare.png in the runs folder.
        json: Print JSON.
    """
    found = listing.compare(runs, out=out)
    if json:
        print_json(found.json())
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


def runs_prune(*, keep_gb: float, whole: Switch = False, yes: Switch = False, json: Switch = False) -> int:
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
        print_json([entry.json() for entry in pruned])
        return 0
    for entry in pruned:
        print(f"{'removed' if yes else 'would remove'} {entry.path} ({entry.size / 1e6:,.1f} MB)")
    if not pruned:
        print("nothing to remove")
    elif not yes:
        print("nothing was removed; add --yes to remove it")
    return 0


def train_verb(given: list[str]) -> int:
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


def runs_verb(given: list[str]) -> int:
    verbs = {
        "list": parsed("sparring runs list", runs_list, "List all runs, the one saved last first."),
        "compare": parsed("sparring runs compare", runs_compare, COMPARE_HELP),
        "prune": parsed("sparring runs prune", runs_prune, PRUNE_HELP),
    }
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given = ["list", *given]
    return pick("sparring runs", given, verbs, RUNS_HELP.format(folder=runs_folder()))


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


evaluate_verb = parsed("sparring evaluate", evaluate, EVALUATE_HELP)
play_verb = parsed("sparring play", play, PLAY_HELP)
