"""Distils the student of a run, from nothing or from where the last call stopped: rounds, limits, saves, signals."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from sparring import _core
from sparring.distil.distiller import Distiller
from sparring.distil.play import Player
from sparring.distil.settings import DistilConfig
from sparring.distil.students import rounds_of, save_student, students_folder
from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.learn.hardware import keep_freed_memory
from sparring.policies.actions import PARTS
from sparring.policies.student import preset
from sparring.runs import checkpoint
from sparring.runs.folder import AppendOnly, RunFolder, find_run, locked
from sparring.runs.learners import training_maps
from sparring.runs.metrics import json_line
from sparring.runs.policy import TrainedTeacher, load_teacher
from sparring.runs.progress import Progress, Standing, clock
from sparring.runs.resumable import Resumable, made_with, not_bitwise
from sparring.runs.train import stop_signals
from sparring.settings import differences, from_table, override, show

FORMAT, VERSION = "sparring distillation", 1
_FIXED = ("preset", "seed", "lanes")
"""Settings that make it another student."""
_SLOWER = 1.7
"""How much longer an update takes with the bot's arithmetic, until it was measured."""

Status = Literal["finished", "out of time", "stopped"]


@dataclass(frozen=True, kw_only=True)
class DistilResult:
    """How a call of `distil_student` ended.

    status:    finished (the rounds are made), out of time, stopped (by a signal)
    rounds, updates, decisions, minutes: of the student so far, over all calls
    student:   file of its last round, None before the first
    told:      of that round, see `StudentFacts`
    signal:    the signal that stopped it, or None
    """

    run: str
    path: Path
    status: Status
    rounds: int
    updates: int
    decisions: int
    minutes: float
    student: Path | None
    told: dict[str, dict[str, float]]
    signal: int | None = None

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**asdict(self), "path": str(self.path), "student": self.student and str(self.student)}


def distil_student(
    run: str | Path | RunFolder,
    *,
    minutes: float | None = None,
    rounds: int | None = None,
    console: Console | None = None,
    **settings: Any,
) -> DistilResult:
    """Distil the student of a run of Loong, or go on with it. The run may train meanwhile.

    run:      a run's name or path
    minutes:  stop after this much time; the last round is cut so that it is over by then
    rounds:   how many rounds to make now; default 1, or with `minutes` as many as fit
    console:  where lines and progress go; `rich.console.Console(quiet=True)` is silent
    settings: of `DistilConfig`, such as `preset="student"` or `off_policy=True`

    Raises SparringError: no such run, one of another game or without a teacher, settings that cannot be, a student that
    another process distils or that cannot be continued, a full disk.
    """
    if minutes is not None and not 0 < minutes < float("inf"):
        raise SparringError(f"minutes = {minutes}: must be more than 0, and finite")
    if rounds is not None and rounds < 1:
        raise SparringError(f"rounds = {rounds}: must be at least 1")
    config = override(DistilConfig(), settings, where="distil")
    preset(config.preset)
    console = console or Console()
    folder = run if isinstance(run, RunFolder) else find_run(run)
    teacher = _teacher(folder)
    try:
        students_folder(folder).mkdir(exist_ok=True)
    except OSError as error:
        raise SparringError(
            f"{students_folder(folder)} cannot be made: {error.strerror or error}; make room there"
        ) from None
    threads = torch.get_num_threads()
    torch.set_num_threads(config.threads)
    keep_freed_memory()
    try:
        with locked(
            students_folder(folder) / "lock", f"the student of run {folder.name} is being distilled", "distil another"
        ):
            work = Distillation(folder, config, teacher, console)
            try:
                return work.go(minutes, 1 if rounds is None and minutes is None else rounds)
            finally:
                work.close()
    finally:
        torch.set_num_threads(threads)


def _teacher(folder: RunFolder) -> TrainedTeacher:
    trained = load_teacher(folder.path)
    if trained.decisions == 0:
        raise SparringError(f"run {folder.name} has no teacher yet: nothing was trained; train it first")
    return trained


class Distillation(Resumable):
    """A student, its rounds and their folder."""

    def __init__(self, folder: RunFolder, config: DistilConfig, teacher: TrainedTeacher, console: Console) -> None:
        """Start, or go on from the folder's checkpoint. Hold the lock meanwhile."""
        super().__init__(students_folder(folder))
        self.folder, self.config, self.console = folder, config, console
        self.checkpoint = self.path / "latest.pt"
        recipe = teacher.recipe
        game = Loong(
            lanes=config.lanes,
            seed=config.seed,
            maps=training_maps(recipe.loong.maps, self.say),
            observe="inputs",
            threads=config.threads,
        )
        selfplay = recipe.selfplay
        player = Player(game, opponents=selfplay.opponents, scripted=selfplay.scripted, seed=config.seed)
        self.distiller = Distiller(player, config, teacher.teacher)
        self.teacher_hash = ""
        """Of the weights of this round's teacher; empty before the first round."""
        self.told: dict[str, dict[str, float]] = {}
        """Of the last update."""
        length = self._resume() if self.checkpoint.exists() else self._start()
        self._metrics = self._open(length)

    @property
    def decisions(self) -> int:
        return self.distiller.decisions

    def say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        self.folder.note(line)

    def go(self, minutes: float | None, rounds: int | None) -> DistilResult:
        """Distil until the rounds or the minutes are over, or a signal comes."""
        distiller = self.distiller
        end = None if rounds is None else distiller.rounds + rounds
        for line in self._choices(minutes, rounds):
            self.say(line)
        timing = _Timing(minutes)
        saved = time.monotonic()
        progress = Progress(self.console, self.folder.note, decisions=self._last(end), seconds=timing.seconds)
        status: Status = "finished"
        with stop_signals(self.say) as caught, progress:
            progress.update(self._standing(0.0))
            while True:
                if distiller.finished or not self.teacher_hash:
                    if end is not None and distiller.rounds >= end:
                        break
                    if timing.too_short():
                        status = "out of time"
                        break
                    self._begin()
                with timing.update(quantised=distiller.quantised), self._timed():
                    told = distiller.step()
                self._note(told)
                progress.update(self._standing(timing.passed))
                if timing.must_end(distiller):
                    distiller.end_early()
                if distiller.finished:
                    self._finish_round()
                    timing.rounds += 1
                    saved = time.monotonic()
                elif time.monotonic() - saved >= self.config.save_seconds:
                    self.save()
                    saved = time.monotonic()
                if caught:
                    status = "stopped"
                    break
        if not distiller.finished:
            self.save()
        result = self._result(status, caught[0] if caught else None)
        self._say_end(result)
        return result

    def save(self) -> None:
        """Put a checkpoint in place; after a kill at any moment the old one or the new one is whole."""
        with self._timed(), self._disk():
            self._metrics.sync()
            content = {
                "config": asdict(self.config),
                "made_with": self._made_with(),
                "teacher": self.teacher_hash,
                "told": self.told,
                "seconds": self.seconds,
                "metrics": self._metrics.length,
                "distiller": self.distiller.state(),
            }
            checkpoint.write(self.checkpoint, content, self.folder.disk, format=FORMAT, version=VERSION)

    def close(self) -> None:
        """Let go of the files. Saves nothing."""
        self._metrics.close()

    def round_file(self, number: int) -> Path:
        return self.path / f"round-{number:04d}.pt"

    def _start(self) -> int:
        # Rounds of a student that somebody began anew count on: no file is ever written twice.
        self.distiller.rounds = max(rounds_of(self.path), default=0)
        return 0

    def _resume(self) -> int:
        """Raises SparringError when that cannot be done, and changes nothing. Returns the length of metrics.jsonl."""
        path = self.checkpoint
        anew = f"remove {path} to begin a new student"
        content = checkpoint.read_file(path, format=FORMAT, version=VERSION, other=anew)
        try:
            then = from_table(DistilConfig, content["config"], where=str(path))
            changed = differences(then, self.config)
            for key, old, new in changed:
                if key in _FIXED:
                    raise SparringError(
                        f"the student of run {self.folder.name} was begun with {key} = {show(old)}, this command says "
                        f"{show(new)}: give {show(old)}, or {anew}"
                    )
            made_then = dict(content["made_with"])
            core = str(made_then["core"])
            if core != _core.source_hash:
                raise SparringError(
                    f"{path} holds matches of another core ({core[:12]}, here {_core.source_hash[:12]}): "
                    f"go on with the Sparring that saved it, or {anew}"
                )
            self.distiller.load_state(content["distiller"])
            self.teacher_hash, self.told = content["teacher"], content["told"]
            self.seconds, length = content["seconds"], int(content["metrics"])
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise SparringError(f"{path} does not fit this version of Sparring ({reason}): {anew}") from None
        for key, old, new in changed:
            self.say(f"changed: {key} was {show(old)}, is now {show(new)} (this command's settings win)")
        for line in not_bitwise(made_then, self._made_with()):
            self.say(line)
        if self.distiller.finished and not self.round_file(self.distiller.rounds).exists():
            self._write_round()  # killed after the checkpoint of the round's end
        return length

    def _open(self, length: int) -> AppendOnly:
        """The growing metrics.jsonl, cut back to what the checkpoint knows."""
        path = self.path / "metrics.jsonl"
        with self._disk():
            if path.exists() and path.stat().st_size > length:
                self.folder.disk.truncate(path, length)
            return AppendOnly(path, self.folder.disk)

    def _begin(self) -> None:
        """Begin a round with the newest teacher."""
        trained = _teacher(self.folder)
        changed = trained.weights_hash != self.teacher_hash
        if changed:
            self.say(f"teacher {trained.weights_hash[:12]}, trained on {trained.decisions:,} decisions")
        self.distiller.begin(trained.teacher, changed=changed and bool(self.teacher_hash))
        self.teacher_hash = trained.weights_hash

    def _note(self, told: Mapping[str, float]) -> None:
        distiller = self.distiller
        self.told = {
            name: {part: told[key] for part in ("all", *PARTS) if (key := _key(name, part)) in told}
            for name in ("loss", "agreement", "entropy", "teacher_entropy")
        }
        row = {
            "round": distiller.rounds + (not distiller.finished),
            "update": distiller.updates,
            "decisions": distiller.decisions,
            "quantised": distiller.student.quantised,
            **told,
            "seconds": round(self.seconds, 3),
        }
        with self._disk():
            self._metrics.append(json_line(row))

    def _finish_round(self) -> None:
        self.save()
        self._write_round()
        number, distiller = self.distiller.rounds, self.distiller
        self.say(f"round {number}: {self.round_file(number)}, after {distiller.decisions:,} decisions")
        self.say(" ".join(["", *(f"{word:>10}" for word in ("", "all", *PARTS))]))
        for name, parts in self.told.items():
            cells = (f"{parts[part]:10.3f}" if part in parts else f"{'-':>10}" for part in ("all", *PARTS))
            self.say(" ".join(["", f"{_WORDS[name]:>10}", *cells]))
        losses = distiller.losses
        half = len(losses) // 2
        if half:
            began, ended = sum(losses[:half]) / half, sum(losses[-half:]) / half
            if not ended < began:
                self.say(
                    f"round {number} learnt nothing: before its last third the loss went from {began:.4f} in the first "
                    f"half to {ended:.4f} in the second"
                )

    def _write_round(self) -> None:
        distiller = self.distiller
        facts = {
            "preset": self.config.preset,
            "quantised": True,
            "teacher": self.teacher_hash,
            "round": distiller.rounds,
            "decisions": distiller.decisions,
            "told": self.told,
        }
        with self._disk():
            save_student(self.round_file(distiller.rounds), distiller.student, facts, self.folder.disk)

    def _last(self, end: int | None) -> int | None:
        """The decision at which the last round will be over."""
        if end is None:
            return None
        distiller = self.distiller
        here = distiller.whole - distiller.update if self.teacher_hash and not distiller.finished else 0
        updates = here + self.config.updates * (end - distiller.rounds - (here > 0))
        return distiller.decisions + updates * self.config.lanes * self.config.steps

    def _standing(self, seconds: float) -> Standing:
        distiller = self.distiller
        parts = [f"round {distiller.rounds + (not distiller.finished)}, {distiller.update} of {distiller.whole}"]
        parts += [f"{name} {self.told[name]['all']:.3f}" for name in ("loss", "agreement") if self.told.get(name)]
        if distiller.quantised:
            parts.append("in the bot's arithmetic")
        return Standing(decisions=distiller.decisions, updates=distiller.updates, parts=parts, seconds=seconds)

    def _choices(self, minutes: float | None, rounds: int | None) -> Iterator[str]:
        config, distiller = self.config, self.distiller
        weights = sum(each.numel() for each in distiller.student.parameters()) / 1e6
        where = "begins" if not distiller.updates else f"goes on in round {distiller.rounds + (not distiller.finished)}"
        plays = "the teacher" if config.off_policy else "the student"
        yield (
            f"the student of run {self.folder.name} {where}: {config.preset} of {weights:.2f} M weights; {plays} plays "
            f"in {config.lanes} lanes on {len(distiller.player.game.maps):,} maps; {config.threads} threads"
        )
        ends = [f"{rounds} round{'s' * (rounds > 1)}"] if rounds is not None else []
        ends += [f"{clock(minutes * 60)} from now"] if minutes is not None else []
        yield f"until {', or '.join(ends)}; saved every {config.save_seconds:g} s, and on Ctrl-C"

    def _say_end(self, result: DistilResult) -> None:
        left = "" if self.distiller.finished else "; the round is not over: the same command goes on with it"
        self.say(
            f"{result.status}: {result.rounds} round{'s' * (result.rounds != 1)}, {result.decisions:,} decisions, "
            f"{clock(self.seconds)} distilled{left}"
        )
        if result.student is not None:
            self.say(f"student: {result.student}")

    def _result(self, status: Status, stopped: int | None) -> DistilResult:
        distiller = self.distiller
        file = self.round_file(distiller.rounds)
        return DistilResult(
            run=self.folder.word,
            path=self.path,
            status=status,
            rounds=distiller.rounds,
            updates=distiller.updates,
            decisions=distiller.decisions,
            minutes=self.seconds / 60,
            student=file if file.exists() else None,
            told=self.told,
            signal=stopped,
        )

    def _made_with(self) -> dict[str, Any]:
        return made_with(threads=self.config.threads)


class _Timing:
    """How long updates take, and what still fits."""

    def __init__(self, minutes: float | None) -> None:
        self.seconds = None if minutes is None else minutes * 60
        self._began = time.monotonic()
        self._spent = {False: 0.0, True: 0.0}
        self._updates = {False: 0, True: 0}
        self.rounds = 0
        """That ended."""

    @property
    def passed(self) -> float:
        return time.monotonic() - self._began

    @contextmanager
    def update(self, *, quantised: bool) -> Iterator[None]:
        """Around an update."""
        began = time.monotonic()
        yield
        self._spent[quantised] += time.monotonic() - began
        self._updates[quantised] += 1

    def must_end(self, distiller: Distiller) -> bool:
        """The last third of the round would just be over in time if it began now."""
        if self.seconds is None or distiller.quantised or not self._updates[False]:
            return False
        one = self._spent[False] / self._updates[False]
        slow = self._spent[True] / self._updates[True] if self._updates[True] else one * _SLOWER
        # One more update would add its own time, and half an update to the last third.
        return self.passed + one + slow * (distiller.update / 2 + 1) > self.seconds

    def too_short(self) -> bool:
        """Less time is left than half of what a round took; never before the first."""
        if self.seconds is None or not self.rounds:
            return False
        return self.seconds - self.passed < sum(self._spent.values()) / self.rounds / 2


def _key(name: str, part: str) -> str:
    return name if part == "all" else f"{name}_{part}"


_WORDS = {"loss": "loss", "agreement": "agreement", "entropy": "entropy", "teacher_entropy": "teacher's"}
