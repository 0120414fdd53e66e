"""A run in memory and its folder: its steps, its saves, its resumes."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Game
from sparring.games.loong import Loong
from sparring.games.registry import make
from sparring.learn.offpolicy import OffPolicy
from sparring.runs import checkpoint
from sparring.runs.folder import AppendOnly, RunFolder
from sparring.runs.learners import begin, described, game_options, make_learner, make_measure, replay_of
from sparring.runs.metrics import json_line
from sparring.runs.progress import clock
from sparring.runs.recipe import Recipe
from sparring.runs.resumable import Resumable, made_with, not_bitwise
from sparring.runs.segments import SEGMENT_BYTES, ReplayStore
from sparring.settings import differences, from_table, show, to_toml

_FIXED = (
    "game",
    "algorithm",
    "seed",
    "lanes",
    "tennis.",
    "mpe.",
    "loong.",
    "selfplay.preset",
    "against.",
    "dqn.levels",
)
"""Settings that make it another run."""


class Board(Protocol):
    """What is used of TensorBoard's SummaryWriter."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def close(self) -> None: ...


class Training(Resumable):
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
            self.game = make(recipe.game, lanes=recipe.lanes, seed=recipe.seed, **game_options(recipe, say))
        else:
            self.game = make(game, lanes=recipe.lanes, seed=recipe.seed)
            recipe = replace(recipe, game=self.game.name)
        super().__init__(folder.path)
        self.recipe = recipe
        self.folder = folder
        self.say = say
        try:
            self.learner = make_learner(recipe, self.game)
        except RuntimeError as error:
            if "memory" not in str(error):
                raise
            raise SparringError(
                f"the learner needs more memory than there is: lower lanes or the widths of layers ({error})"
            ) from None
        replay = replay_of(self.learner)
        self.store = (
            None if replay is None else ReplayStore(folder.replay, replay, folder.disk, segment_bytes=segment_bytes)
        )
        self.measure = make_measure(recipe)
        self.board: Board | None = None
        self._logs: dict[str, AppendOnly] = {}

    @property
    def decisions(self) -> int:
        return self.learner.decisions

    def start(self) -> None:
        """Begin a new run in a folder made by `RunFolder.create`."""
        begin(self.learner)
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
        self._check_lanes(content)
        networks = {name: part for name, part in content["learner"].items() if name != "game"}
        if unfit := checkpoint.misfit(networks, self.learner.state()):
            raise SparringError(
                f"{path}: {unfit}: a learner of another shape cannot be continued; "
                "give the settings the run was started with, or choose another --run"
            )
        try:
            self.learner.load_state(content["learner"])
            self.measure.load_state(content["measure"])
            if self.store:
                self.store.load(content["replay"])
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise SparringError(
                f"{path} does not fit this version of Sparring ({reason}): choose another --run"
            ) from None
        self.seconds = content["seconds"]
        for line in not_bitwise(content["made_with"], self._made_with()):
            self.say(line)
        with self._disk():
            self._open(content["logs"])
            self.folder.disk.replace(self.folder.recipe, to_toml(self.recipe).encode())

    def open_board(self) -> None:
        """Show metrics in TensorBoard too, where that is installed."""
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            with self._disk():
                self.board = SummaryWriter(str(self.folder.path / "tensorboard"), purge_step=self.decisions)

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
            if self.store:
                self.store.append()
            for log in self._logs.values():
                log.sync()
            content = {
                "game": self.game.name,
                "recipe": _plain(asdict(self.recipe)),
                "made_with": self._made_with(),
                "observation": self.game.observation.shape[0],
                "action": math.prod(getattr(self.game.action, "shape", ())),
                "learner": self.learner.state(),
                "measure": self.measure.state(),
                "seconds": self.seconds,
                "replay": self.store.record() if self.store else [],
                "logs": {name: log.length for name, log in self._logs.items()},
            }
            checkpoint.write(self.folder.checkpoint, content, self.folder.disk)
            if self.store:
                self.store.drop()

    def close(self) -> None:
        """Let go of the files. Saves nothing."""
        if self.store:
            self.store.close()
        for log in self._logs.values():
            log.close()
        if self.board:
            self.board.close()

    def described(self) -> Iterator[str]:
        """What is trained, in lines for the start of a session."""
        yield from described(self.learner)
        replay = replay_of(self.learner)
        if replay is not None:
            size = sum(column.numel() * column.element_size() for column in replay.columns().values()) / 1e6
            yield (
                f"replay of {replay.capacity:,} rows: up to {size:,.0f} MB of memory, "
                f"and as much on disk in {self.folder.replay}"
            )

    def finished(self) -> Literal["finished", "solved"] | None:
        """Why the run is over by its recipe, or None."""
        solved, wait = self.measure.solved, self.recipe.stop_after_solved
        if solved and wait and self.measure.matches >= solved.match + wait:
            return "solved"
        return "finished" if self.decisions >= self.recipe.decisions else None

    def _open(self, lengths: Mapping[str, int]) -> None:
        """Cut every file that grows back to what the checkpoint knows, and open it."""
        if self.store:
            self.store.cut()
        logs = [self.folder.metrics, self.folder.matches]
        if isinstance(self.learner, OffPolicy) and self.learner.config.episodes:
            logs.append(self.folder.episodes)
        for path in logs:
            name, length = path.name, lengths.get(path.name, 0)
            there = path.stat().st_size if path.exists() else 0
            if there < length:
                self.say(
                    f"{name} is shorter than the checkpoint says ({there} of {length} bytes): curves will have a gap"
                )
                if there:  # the next row begins a line of its own
                    self.folder.disk.truncate(path, path.read_bytes().rfind(b"\n") + 1)
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

    def _check_lanes(self, content: Mapping[str, Any]) -> None:
        """Raises SparringError where lanes of Loong were saved that this core cannot play on, or on other maps."""
        if not isinstance(self.game, Loong):
            return
        then, now = (str(core)[:12] for core in (content["made_with"].get("core"), _core.source_hash))
        if then != now:
            raise SparringError(
                f"{self.folder.checkpoint} holds matches of another core ({then}, here {now}): go on with the Sparring "
                "that saved it, or choose another --run; it can still be evaluated and played"
            )
        maps = content["learner"].get("game", {}).get("maps")
        if not isinstance(maps, Tensor) or bytes(maps.tolist()) != bytes.fromhex(self.game.maps.hash):
            raise SparringError(
                f"run {self.folder.name} was started with other maps than are in {', '.join(self.recipe.loong.maps)} "
                "now: bring those back, or choose another --run"
            )

    def _made_with(self) -> dict[str, Any]:
        return made_with(threads=self.recipe.threads, device=self.recipe.device)

    def _metrics_row(self) -> None:
        row: dict[str, Any] = {
            "decisions": self.decisions,
            "updates": self.learner.updates,
            **self.measure.row(),
            **self.learner.losses(),
        }
        self._logs["metrics.jsonl"].append(json_line({**row, "seconds": round(self.seconds, 3)}))
        if self.board:
            for name, value in row.items():
                if value is not None and name != "decisions":
                    self.board.add_scalar(name, value, self.decisions)


def _plain(value: Any) -> Any:
    """Tuples become lists, as in a TOML file."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
