"""A run's learner in memory, for those that look and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from sparring.errors import SparringError
from sparring.games.registry import GAMES, make
from sparring.runs import checkpoint
from sparring.runs.folder import find_run
from sparring.runs.learners import Learner, game_options, make_learner, replay_of
from sparring.runs.recipe import Recipe
from sparring.runs.segments import ReplayStore
from sparring.settings import from_table


@contextmanager
def one_thread() -> Iterator[None]:
    """Networks of a few hundred units are faster on one thread, where anything else runs beside them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def read_learner(run: str | Path) -> tuple[Recipe, Learner]:
    """The run's recipe, and its learner as the last checkpoint has it, replay included, on the CPU. Changes nothing on
    the disk.

    Raises SparringError: unknown run, a game that does not come with Sparring, a checkpoint or replay that cannot be
    read.
    """
    folder = find_run(run)
    content = checkpoint.read(folder.checkpoint)
    recipe = replace(from_table(Recipe, content["recipe"], where=str(folder.checkpoint)), device="cpu")
    if recipe.game not in GAMES:
        raise SparringError(f"run {folder.name} plays {recipe.game}, which does not come with Sparring")
    options = game_options(recipe, lambda line: None)
    learner = make_learner(recipe, make(recipe.game, lanes=recipe.lanes, seed=recipe.seed, **options))
    try:
        learner.load_state(content["learner"])
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise SparringError(f"{folder.checkpoint} does not fit this version of Sparring ({reason})") from None
    replay = replay_of(learner)
    if replay is not None:
        ReplayStore(folder.replay, replay, folder.disk).load(content["replay"])
    return recipe, learner
