"""Trains a run, from its first decision or from its last checkpoint."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from rich.console import Console

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Game
from sparring.games.registry import make
from sparring.learn.ddpg import DDPG
from sparring.runs import checkpoint
from sparring.runs.folder import AppendOnly, RunFolder
from sparring.runs.metrics import Measure, Solved, json_line, read_matches
from sparring.runs.progress import Progress, Standing, clock
from sparring.runs.recipe import Recipe, change_recipe, check_recipe, load_recipe
from sparring.runs.segments import SEGMENT_BYTES, ReplayStore
from sparring.settings import differences, flat, from_table, show, to_toml

Status = Literal["finished", "solved", "out of time", "stopped", "already finished"]

_FIXED = ("game", "algorithm", "seed", "lanes", "tennis.")
"""Settings that make it another run."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a call of `train` ended.

    status:    finished (all decisions made), solved (the recipe's `stop_after_solved` was reached), out of time
               (`minutes` were over), stopped (by a signal), already finished (nothing was left to do)
    decisions, updates, matches, minutes: of the run so far, over all sessions
    score:     mean over the last 100 matches of the better agent's score; None before the first match
    length:    mean length of those matches, in decisions
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


class Board(Protocol):
    """What is used of TensorBoard's SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def close(self) -> None: ...


class Training:
    """A run in memory and its folder: `start` or `resume` it, `step` it, `save` it, `close` it.

    Use it for a loop of your own; `train` is this with progress, signals and limits. Hold `folder.lock()` meanwhile.
    """

    def __init__(
        self,
        recipe: Recipe,
        folder: RunFolder,
        *,
        game: Callable[..., Game] | None = None,
        say: Callable[[str], None] = lambda line: None,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """game: a factory called as `game(lanes=..., seed=...)` instead of the recipe's; say: takes lines to show."""
        if recipe.device == "cuda" and not torch.cuda.is_available():
            raise SparringError(
                'device = "cuda": torch finds no CUDA GPU here; use --device cpu, or see sparring doctor'
            )
        if game is None:
            options = dict(flat(recipe.tennis)) | {"threads": recipe.threads} if recipe.game == "tennis" else {}
            self.game = make(recipe.game, lanes=recipe.lanes, seed=recipe.seed, **options)
        else:
            self.game = make(game, lanes=recipe.lanes, seed=recipe.seed)
            recipe = replace(recipe, game=self.game.name)
        self.recipe = recipe
        self.folder = folder
        self.say = say
        self.learner = DDPG(self.game, recipe.ddpg, seed=recipe.seed, device=recipe.device)
        self.store = ReplayStore(folder.replay, self.learner.replay, folder.disk, segment_bytes=segment_bytes)
        self.measure = Measure(recipe.solved_score)
        self.board: Board | None = None
        self.seconds = 0.0
        """Training time over all sessions: steps and saves."""
        self._logs: dict[str, AppendOnly] = {}

    @property
    def decisions(self) -> int:
        return self.learner.decisions

    def start(self) -> None:
        """Begin a new run in a folder made by `RunFolder.create`."""
        with self._disk():
            self.folder.disk.replace(self.folder.recipe, to_toml(self.recipe).encode())
            self._open({})
        # From here on a folder without latest.pt holds no training, so that none is ever overwritten.
        self.save()

    def resume(self) -> None:
        """Continue from the folder's checkpoint. Raises SparringError when that cannot be done, and changes nothing."""
        path = self.folder.checkpoint
        content = checkpoint.read(path)
        self._compare(from_table(Recipe, content["recipe"], where=str(path)))
        networks = {name: part for name, part in content["learner"].items() if name != "game"}
        if unfit := checkpoint.misfit(networks, self.learner.state()):
            raise SparringError(
                f"{path}: {unfit}: a learner of another shape cannot be continued; "
                "give the settings the run was started with, or choose another --run"
            )
        try:
            self.learner.load_state(content["learner"])
            self.measure.load_state(content["measure"])
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise SparringError(
                f"{path} does not fit this version of Sparring ({reason}): choose another --run"
            ) from None
        self.store.load(content["replay"])
        self.seconds = content["seconds"]
        for line in self._not_bitwise(content["made_with"]):
            self.say(line)
        with self._disk():
            self._open(content["logs"])
            self.folder.disk.replace(self.folder.recipe, to_toml(self.recipe).encode())

    def step(self) -> None:
        """One decision in every lane, and what the learner learns from it."""
        every = self.recipe.metrics_every
        before = self.decisions // every
        with self._timed():
            ended = self.learner.step()
        episodes = self.learner.episodes_ended
        for episode in episodes:
            self.measure.add_episode(episode)
        for row in ended:
            if self.measure.add(row, seconds=self.seconds):
                solved = self.measure.solved
                assert solved is not None
                self.say(
                    f"solved: mean {solved.score:.3f} over 100 matches at match {solved.match:,}, "
                    f"decision {solved.decisions:,}, {clock(solved.minutes * 60)} trained"
                )
        with self._disk():
            if ended:
                self._logs["matches.jsonl"].append(b"".join(json_line(asdict(row)) for row in ended))
            if episodes:
                self._logs["episodes.jsonl"].append(b"".join(json_line(asdict(row)) for row in episodes))
            if self.decisions // every > before:
                self._metrics_row()

    def save(self) -> None:
        """Put a checkpoint in place. After a kill at any moment of it, the old one or the new one is whole."""
        with self._timed(), self._disk():
            self.store.append()
            for log in self._logs.values():
                log.sync()
            content = {
                "game": self.game.name,
                "recipe": _plain(asdict(self.recipe)),
                "made_with": made_with(self.recipe),
                "observation": self.game.observation.shape[0],
                "action": self.learner.action_size,
                "learner": self.learner.state(),
                "measure": self.measure.state(),
                "seconds": self.seconds,
                "replay": self.store.record(),
                "logs": {name: log.length for name, log in self._logs.items()},
            }
            checkpoint.write(self.folder.checkpoint, content, self.folder.disk)
            self.store.drop()

    def close(self) -> None:
        """Let go of the files. Saves nothing."""
        self.store.close()
        for log in self._logs.values():
            log.close()
        if self.board:
            self.board.close()

    def finished(self) -> Literal["finished", "solved"] | None:
        """Why the run is over by its recipe, or None."""
        solved, wait = self.measure.solved, self.recipe.stop_after_solved
        if solved and wait and self.measure.matches >= solved.match + wait:
            return "solved"
        return "finished" if self.decisions >= self.recipe.decisions else None

    def _open(self, lengths: Mapping[str, int]) -> None:
        """Cut every file that grows back to what the checkpoint knows, and open it."""
        self.store.cut()
        ddpg = self.recipe.ddpg
        logs = [self.folder.metrics, self.folder.matches]
        if ddpg.episode_matches > 1 or ddpg.episode_decisions:
            logs.append(self.folder.episodes)
        for path in logs:
            name, length = path.name, lengths.get(path.name, 0)
            there = path.stat().st_size if path.exists() else 0
            if there < length:
                self.say(
                    f"{name} is shorter than the checkpoint says ({there} of {length} bytes): curves will have a gap"
                )
            elif there > length:
                self.folder.disk.truncate(path, length)
            self._logs[name] = AppendOnly(path, self.folder.disk)

    def _compare(self, saved: Recipe) -> None:
        for key, old, new in differences(saved, self.recipe):
            if key.startswith(_FIXED):
                raise SparringError(
                    f"run {self.folder.name} was started with {key} = {show(old)}, this command says {show(new)}: "
                    f"give {show(old)}, or choose another --run"
                )
            self.say(f"changed: {key} was {show(old)}, is now {show(new)} (this command's settings win)")

    def _not_bitwise(self, then: Mapping[str, Any]) -> Iterator[str]:
        now = made_with(self.recipe)
        changed = [f"{key} was {then.get(key)}, is now {now[key]}" for key in now if then.get(key) != now[key]]
        if changed:
            yield f"not bitwise: {'; '.join(changed)}; the run goes on, but rounds differently than it would have"

    def _metrics_row(self) -> None:
        row: dict[str, Any] = {
            "decisions": self.decisions,
            "updates": self.learner.updates,
            "matches": self.measure.matches,
            "score": self.measure.score,
            "length": self.measure.length,
            **self.learner.losses(),
        }
        if self.measure.episode_score is not None:
            row["episode_score"] = self.measure.episode_score
        self._logs["metrics.jsonl"].append(json_line({**row, "seconds": round(self.seconds, 3)}))
        if self.board:
            for name, value in row.items():
                if value is not None and name != "decisions":
                    self.board.add_scalar(name, value, self.decisions)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds += time.monotonic() - began

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Turns a failing disk into a line for the person."""
        try:
            yield
        except OSError as error:
            kept = "the last checkpoint is whole" if self.folder.exists else "nothing is lost"
            raise SparringError(
                f"{self.folder.path}: {error.strerror or error}: stopped at decision {self.decisions:,}; {kept}: "
                "make room, then give the same command again"
            ) from error


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
    if minutes is not None and not minutes > 0:
        raise SparringError(f"minutes = {minutes}: must be more than 0")
    if decisions is not None:
        overrides["decisions"] = decisions
    name = default_run(recipe, overrides)
    chosen = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    chosen = change_recipe(check_recipe(chosen, where="recipe"), overrides, where="override")
    folder = run if isinstance(run, RunFolder) else RunFolder(run or name)
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


def made_with(recipe: Recipe) -> dict[str, Any]:
    """What decides the rounding of a run's numbers, and so whether a resume is bit for bit."""
    return {
        "torch": torch.__version__.split("+")[0],
        "threads": recipe.threads,
        "device": recipe.device,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "core": _core.source_hash,
    }


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
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            training.board = SummaryWriter(str(folder.path / "tensorboard"), purge_step=training.decisions)
        status, stopped = _loop(training, minutes, console)
        training.save()
        draw(folder, recipe.solved_score)
        result = _result(training, status, stopped)
        _say_end(training, result)
        return result
    finally:
        training.close()


def _loop(training: Training, minutes: float | None, console: Console) -> tuple[Status, int | None]:
    recipe = training.recipe
    began = saved = time.monotonic()
    words = ("racket", "rally", "rallies") if training.game.name == "tennis" else ("agent", "match", "matches")
    progress = Progress(
        console,
        training.folder.note,
        decisions=recipe.decisions,
        seconds=None if minutes is None else minutes * 60,
        words=words,
    )
    with _stop_signals(training.say) as caught, progress:
        while True:
            training.step()
            now = time.monotonic()
            measure = training.measure
            progress.update(
                Standing(
                    decisions=training.decisions,
                    updates=training.learner.updates,
                    matches=measure.matches,
                    score=measure.score,
                    length=measure.length,
                    seconds=now - began,
                )
            )
            if reason := training.finished():
                return reason, None
            if caught:
                return "stopped", caught[0]
            if minutes is not None and now - began >= minutes * 60:
                return "out of time", None
            if now - saved >= recipe.save_seconds:
                training.save()
                saved = now


@contextmanager
def _stop_signals(say: Callable[[str], None]) -> Iterator[list[int]]:
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
    recipe, replay = training.recipe, training.learner.replay
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    advice = " (more threads than cores: expect it to be slow)" if recipe.threads > cores else ""
    why = "networks this small are faster there than on a GPU" if recipe.device == "cpu" else "as the recipe says"
    yield (
        f"{training.game.name}, {recipe.algorithm}, seed {recipe.seed}: {recipe.lanes} lanes, {recipe.threads} threads "
        f"of {cores} cores{advice}, device {recipe.device} ({why}), torch {torch.__version__}"
    )
    size = sum(column.numel() * column.element_size() for column in replay.columns().values()) / 1e6
    yield (
        f"replay of {replay.capacity:,} rows: up to {size:,.0f} MB of memory, "
        f"and as much on disk in {training.folder.replay}"
    )
    ends = [f"decision {recipe.decisions:,}"]
    if recipe.stop_after_solved:
        ends.append(f"{recipe.stop_after_solved:,} matches after the mean of 100 reaches {recipe.solved_score:g}")
    if minutes is not None:
        ends.append(f"{clock(minutes * 60)} from now")
    yield f"until {', or '.join(ends)}; saved every {recipe.save_seconds:g} s, and on Ctrl-C"


def _say_finished(training: Training, reason: str) -> None:
    name = training.folder.name
    go_on = "--stop-after-solved 0" if reason == "solved" else f"--decisions {training.decisions * 2}"
    training.say(f"it is finished; to train on, add {go_on}; else: sparring evaluate {name}, or sparring play {name}")


def _say_end(training: Training, result: RunResult) -> None:
    score = (
        "no match has ended"
        if result.score is None
        else (f"mean {result.score:.3f} over the last {min(result.matches, 100)} matches, length {result.length:.0f}")
    )
    training.say(
        f"{result.status}: saved at decision {result.decisions:,}, {result.updates:,} updates, "
        f"{result.matches:,} matches, {clock(result.minutes * 60)} trained; {score}"
    )
    training.say(f"curve: {training.folder.curve}; next: sparring evaluate {result.run}, or sparring play {result.run}")


def _result(training: Training, status: Status, stopped: int | None = None) -> RunResult:
    return RunResult(
        run=training.folder.name,
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


def draw(folder: RunFolder, solved_score: float) -> None:
    """Draw the run's curve.png from its matches."""
    from sparring.pictures.curve import draw_curve

    rows = read_matches(folder.matches)
    if rows:
        draw_curve({folder.name: rows}, folder.curve, solved=solved_score)


def _plain(value: Any) -> Any:
    """Tuples become lists, as in a TOML file."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
