"""All runs at a glance: list them, compare their curves, free their disk space."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sparring.errors import SparringError
from sparring.runs import checkpoint
from sparring.runs.folder import RunFolder, all_runs, find_run, runs_folder
from sparring.runs.learners import make_measure, title_of, words_of
from sparring.runs.metrics import Solved, read_loong_matches, read_matches
from sparring.runs.recipe import Recipe
from sparring.settings import from_table, to_toml


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """A run as its last checkpoint has it.

    run:    what finds it: its name, or its path where it is not below `runs_folder()`
    budget: decisions at which the run ends
    score:  mean over the last 100 matches of the better agent's score, of Loong that against scripted players; None
            before the first match
    size:   bytes on disk
    saved:  when, in seconds since 1970
    fault:  why the checkpoint cannot be read; the other fields are then empty
    """

    run: str
    path: Path
    size: int
    saved: float
    training: bool
    game: str = ""
    seed: int = 0
    lanes: int = 0
    decisions: int = 0
    budget: int = 0
    updates: int = 0
    matches: int = 0
    minutes: float = 0.0
    score: float | None = None
    length: float | None = None
    solved: Solved | None = None
    recipe: Recipe | None = None
    fault: str | None = None

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "path": str(self.path)}


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs that differ in nothing but the seed (and in where they end).

    solved:    how many of them were solved
    matches, decisions, minutes: (lowest, median, highest) until solved, over those that were; None if none was
    """

    name: str
    runs: tuple[str, ...]
    solved: int
    matches: tuple[float, float, float] | None
    decisions: tuple[float, float, float] | None
    minutes: tuple[float, float, float] | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs side by side, their groups, and the picture of their curves."""

    runs: tuple[RunInfo, ...]
    groups: tuple[Group, ...]
    picture: Path

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "runs": [info.json() for info in self.runs],
            "groups": [asdict(group) for group in self.groups],
            "picture": str(self.picture),
        }


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What `prune` removed, or would remove.

    what: "replay" (the run can still be evaluated and played, but not continued) or "run"
    size: bytes
    """

    run: str
    path: Path
    what: Literal["replay", "run"]
    size: int

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "path": str(self.path)}


def run_info(run: str | Path | RunFolder) -> RunInfo:
    """What the run's last checkpoint says. Raises SparringError for an unknown run."""
    folder = run if isinstance(run, RunFolder) else find_run(run)
    info = RunInfo(
        run=folder.word,
        path=folder.path,
        size=_size(folder.path),
        saved=folder.checkpoint.stat().st_mtime,
        training=folder.training,
    )
    try:
        content = checkpoint.read(folder.checkpoint)
        recipe = from_table(Recipe, content["recipe"], where=str(folder.checkpoint))
        measure = make_measure(recipe)
        measure.load_state(content["measure"])
    except SparringError as error:
        return replace(info, fault=str(error))
    except (KeyError, TypeError) as error:
        return replace(info, fault=f"{folder.checkpoint} does not fit this version of Sparring ({error})")
    return replace(
        info,
        game=content["game"],
        seed=recipe.seed,
        lanes=recipe.lanes,
        decisions=content["learner"]["decisions"],
        budget=recipe.decisions,
        updates=content["learner"]["updates"],
        matches=measure.matches,
        minutes=content["seconds"] / 60,
        score=measure.score,
        length=measure.length,
        solved=measure.solved,
        recipe=recipe,
    )


def list_runs() -> list[RunInfo]:
    """Every run below `runs_folder()`, the one saved last first."""
    return sorted((run_info(folder) for folder in all_runs()), key=lambda info: -info.saved)


def compare(runs: Sequence[str | Path] = (), *, out: Path | None = None) -> Comparison:
    """Draw the curves of some runs (default: all) in one picture, and sum up those that differ only in their seed.

    out: the picture; default `compare.png` in `runs_folder()`. Raises SparringError: unknown run, or no run at all.
    """
    folders = [find_run(run) for run in runs] if runs else all_runs()
    folders = list({folder.path.resolve(): folder for folder in folders}.values())  # each once
    if not folders:
        raise SparringError(f"there are no runs in {runs_folder()} to compare; start one: sparring train tennis")
    infos = [run_info(folder) for folder in folders]
    faults = [info.fault for info in infos if info.fault]
    if faults:
        raise SparringError(faults[0])
    members: dict[str, list[RunInfo]] = {}
    for info in infos:
        assert info.recipe is not None
        alike = replace(
            info.recipe, seed=0, decisions=1, stop_after_solved=0, save_seconds=0.0, save_updates=0, metrics_every=1
        )
        members.setdefault(to_toml(alike), []).append(info)
    groups = [_group(alike) for alike in members.values()]
    out = out or runs_folder() / "compare.png"
    names = {run: group.name for group in groups for run in group.runs}
    first = infos[0].recipe
    assert first is not None
    for info in infos:
        assert info.recipe is not None
        if (one := title_of(first)) != (other := title_of(info.recipe)):
            raise SparringError(
                f"{infos[0].run} plays {one}, {info.run} plays {other}: name runs of one game to compare"
            )
    paths = {info.run: folder.matches for info, folder in zip(infos, folders, strict=True)}
    if first.game == "loong":
        from sparring.pictures.scores import draw_scores

        draw_scores({run: read_loong_matches(path) for run, path in paths.items()}, out, groups=names)
    else:
        from sparring.pictures.curve import draw_curve

        draw_curve(
            {run: read_matches(path) for run, path in paths.items()},
            out,
            groups=names,
            solved=first.solved_score,
            title=title_of(first),
            words=words_of(first.game),
        )
    return Comparison(runs=tuple(infos), groups=tuple(groups), picture=out)


def prune(*, keep_bytes: int, whole: bool = False, really: bool = False) -> list[Pruned]:
    """Free disk space until all runs together take at most `keep_bytes`, from the run saved longest ago on.

    whole:  remove whole runs; otherwise only their replay, after which a run can be evaluated and played, not continued
    really: otherwise nothing is removed, only told

    A run that is being trained is left alone.
    """
    folders = sorted(all_runs(), key=lambda folder: folder.checkpoint.stat().st_mtime)
    excess = sum(_size(folder.path) for folder in folders) - keep_bytes
    pruned = []
    for folder in folders:
        if excess <= 0:
            break
        target = folder.path if whole else folder.replay
        size = _size(target)
        if folder.training or folder.path.is_symlink() or not size:
            continue
        if really:
            with folder.lock():
                shutil.rmtree(target)
        pruned.append(Pruned(run=folder.name, path=target, what="run" if whole else "replay", size=size))
        excess -= size
    return pruned


def _group(infos: list[RunInfo]) -> Group:
    solved = [info.solved for info in infos if info.solved]

    def spread(values: list[float]) -> tuple[float, float, float] | None:
        return (min(values), statistics.median(values), max(values)) if values else None

    return Group(
        name=infos[0].run if len(infos) == 1 else f"{infos[0].run} and {len(infos) - 1} more",
        runs=tuple(info.run for info in infos),
        solved=len(solved),
        matches=spread([float(at.match) for at in solved]),
        decisions=spread([float(at.decisions) for at in solved]),
        minutes=spread([at.minutes for at in solved]),
    )


def _size(path: Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
