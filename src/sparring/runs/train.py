"""Trains a run, from its first decision or from its last checkpoint: progress, limits, signals."""

from __future__ import annotations

import math
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from sparring.errors import SparringError
from sparring.games.api import Game
from sparring.runs.folder import RunFolder
from sparring.runs.learners import title_of, words_of
from sparring.runs.metrics import Solved, read_loong_matches, read_matches
from sparring.runs.progress import Progress, Standing, clock
from sparring.runs.recipe import Recipe, change_recipe, check_recipe, load_recipe
from sparring.runs.training import Training

Status = Literal["finished", "solved", "out of time", "stopped", "already finished"]


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a call of `train` ended.

    run:       what `load` and the commands find it by: its name, or its path where it is not below `$SPARRING_RUNS`
    status:    finished (all decisions made), solved (the recipe's `stop_after_solved` was reached), out of time
               (`minutes` were over), stopped (by a signal), already finished (nothing was left to do)
    decisions, updates, matches, minutes: of the run so far, over all sessions
    score:     mean over the last 100 matches of the better agent's score, of Loong that of the score (1 a win, 0.5 a
               draw) against scripted players; None before the first match
    length:    mean length of those matches, in decisions, of Loong in rounds
    solved:    when that mean first reached the recipe's `solved_score`, or None
    signal:    the signal that stopped it, or None
    """

    run: str
    path: Path
    status: Status
    decisions: int
    updates: int
    matches: int
    minutes: float
    score: float | None
    length: float | None
    solved: Solved | None
    signal: int | None = None

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "path": str(self.path)}


def train(
    recipe: str | Path | Recipe,
    *,
    run: str | Path | RunFolder | None = None,
    minutes: float | None = None,
    decisions: int | None = None,
    game: Callable[..., Game] | None = None,
    console: Console | None = None,
    **overrides: Any,
) -> RunResult:
    """Train a run, or continue it where its last checkpoint stands.

    recipe:    a recipe's name (`"tennis"`), file or object
    run:       the run's name below `$SPARRING_RUNS` (default ./runs), or a path; default: the recipe's name, and
               `-seed-N` where the seed is overridden
    minutes:   stop after this much time now; the run can be continued
    decisions: the run's whole length, instead of the recipe's
    game:      your own game: a factory called as `game(lanes=..., seed=...)`
    console:   where lines and progress go; `rich.console.Console(quiet=True)` is silent
    overrides: recipe settings, such as `seed=3, ddpg={"actor_lr": 1e-3}` or `**{"ddpg.actor_lr": 1e-3}`

    Raises SparringError: bad recipe, a run that another process trains or that cannot be continued, a full disk.
    """
    if minutes is not None and not 0 < minutes < math.inf:
        raise SparringError(f"minutes = {minutes}: must be more than 0{', and finite' if minutes > 0 else ''}")
    if decisions is not None:
        overrides["decisions"] = decisions
    name = default_run(recipe, overrides)
    chosen = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    chosen = change_recipe(check_recipe(chosen, where="recipe"), overrides, where="override")
    folder = run if isinstance(run, RunFolder) else RunFolder(name if run is None else run)
    console = console or Console()

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
        folder.note(line)

    threads = torch.get_num_threads()
    torch.set_num_threads(chosen.threads)
    try:
        training = Training(chosen, folder, game=game, say=say)  # a game that cannot be made leaves no folder behind
        if not folder.exists:
            folder.create()
        with folder.lock():
            return _train(training, minutes, console)
    finally:
        torch.set_num_threads(threads)


def default_run(recipe: str | Path | Recipe, overrides: Mapping[str, Any]) -> str:
    """The run's name when none is given."""
    name = f"{recipe.game}-{recipe.algorithm}" if isinstance(recipe, Recipe) else Path(recipe).stem
    return f"{name}-seed-{overrides['seed']}" if "seed" in overrides else name


def _train(training: Training, minutes: float | None, console: Console) -> RunResult:
    recipe, folder, say = training.recipe, training.folder, training.say
    try:
        if folder.exists:
            training.resume()
            say(
                f"run {folder.name} continues in {folder.path} at decision {training.decisions:,}, "
                f"match {training.measure.matches:,}, {clock(training.seconds)} trained"
            )
            if reason := training.finished():
                _say_finished(training, reason)
                return _result(training, "already finished")
        else:
            training.start()
            say(f"run {folder.name} starts in {folder.path}")
        for line in _choices(training, minutes):
            say(line)
        training.open_board()
        status, stopped = _loop(training, minutes, console)
        training.save()
        draw(folder, recipe)
        result = _result(training, status, stopped)
        _say_end(training, result)
        return result
    finally:
        training.close()


def _loop(training: Training, minutes: float | None, console: Console) -> tuple[Status, int | None]:
    recipe = training.recipe
    began = saved = time.monotonic()
    updates = training.learner.updates
    progress = Progress(
        console,
        training.folder.note,
        decisions=recipe.decisions,
        seconds=None if minutes is None else minutes * 60,
    )
    with stop_signals(training.say) as caught, progress:
        progress.update(_standing(training, 0.0))
        while True:
            training.step()
            now = time.monotonic()
            progress.update(_standing(training, now - began))
            if reason := training.finished():
                return reason, None
            if caught:
                return "stopped", caught[0]
            if minutes is not None and now - began >= minutes * 60:
                return "out of time", None
            due = recipe.save_updates and training.learner.updates - updates >= recipe.save_updates
            if due or now - saved >= recipe.save_seconds:
                training.save()
                saved, updates = now, training.learner.updates


def _standing(training: Training, seconds: float) -> Standing:
    return Standing(
        decisions=training.decisions,
        updates=training.learner.updates,
        parts=training.measure.parts(),
        seconds=seconds,
    )


@contextmanager
def stop_signals(say: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects the first SIGINT or SIGTERM; a second one acts at once, as it would have without this."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def catch(number: int, frame: object) -> None:
        caught.append(number)
        restore()

    for number in usual:
        signal.signal(number, catch)
    try:
        yield caught
        if caught:
            say(f"{signal.Signals(caught[0]).name}: saving (once more to quit at once)")
    finally:
        restore()


def _choices(training: Training, minutes: float | None) -> Iterator[str]:
    """What was chosen, and why."""
    recipe = training.recipe
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    advice = " (more threads than cores: expect it to be slow)" if recipe.threads > cores else ""
    small = recipe.device == "cpu" and recipe.algorithm != "ppo"
    why = "networks this small are faster there than on a GPU" if small else "as the recipe says"
    yield (
        f"{training.game.name}, {recipe.algorithm}, seed {recipe.seed}: {recipe.lanes} lanes, {recipe.threads} threads "
        f"of {cores} cores{advice}, device {recipe.device} ({why}), torch {torch.__version__}"
    )
    yield from training.described()
    ends = [f"decision {recipe.decisions:,}"]
    if recipe.stop_after_solved:
        ends.append(f"{recipe.stop_after_solved:,} matches after the mean of 100 reaches {recipe.solved_score:g}")
    if minutes is not None:
        ends.append(f"{clock(minutes * 60)} from now")
    often = f" or {recipe.save_updates} updates" if recipe.save_updates else ""
    yield f"until {', or '.join(ends)}; saved every {recipe.save_seconds:g} s{often}, and on Ctrl-C"


def _say_finished(training: Training, reason: str) -> None:
    name = shlex.quote(training.folder.word)
    go_on = "--stop-after-solved 0" if reason == "solved" else f"--decisions {training.decisions * 2}"
    training.say(f"it is finished; to train on, add {go_on}; else: sparring evaluate {name}, or sparring play {name}")


def _say_end(training: Training, result: RunResult) -> None:
    training.say(
        f"{result.status}: saved at decision {result.decisions:,}, {result.updates:,} updates, "
        f"{result.matches:,} matches, {clock(result.minutes * 60)} trained; {training.measure.summary()}"
    )
    word = shlex.quote(training.folder.word)
    training.say(f"curve: {training.folder.curve}; next: sparring evaluate {word}, or sparring play {word}")


def _result(training: Training, status: Status, stopped: int | None = None) -> RunResult:
    return RunResult(
        run=training.folder.word,
        path=training.folder.path,
        status=status,
        decisions=training.decisions,
        updates=training.learner.updates,
        matches=training.measure.matches,
        minutes=training.seconds / 60,
        score=training.measure.score,
        length=training.measure.length,
        solved=training.measure.solved,
        signal=stopped,
    )


def draw(folder: RunFolder, recipe: Recipe) -> None:
    """Draw the run's curve.png from its matches."""
    if recipe.game == "loong":
        from sparring.pictures.scores import draw_scores

        draw_scores({folder.name: read_loong_matches(folder.matches)}, folder.curve)
        return
    from sparring.pictures.curve import draw_curve

    rows = read_matches(folder.matches)
    if rows:
        draw_curve(
            {folder.name: rows},
            folder.curve,
            solved=recipe.solved_score,
            title=title_of(recipe),
            words=words_of(recipe.game),
        )
