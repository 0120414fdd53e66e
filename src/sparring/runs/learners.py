"""The learners that a recipe can name, and what a run needs of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sparring.games.api import Game
from sparring.learn.ddpg import DDPG
from sparring.learn.matches import EpisodeRow, MatchRow
from sparring.runs.metrics import Measure
from sparring.runs.recipe import Recipe
from sparring.runs.segments import Replay
from sparring.settings import flat


class Learner(Protocol):
    """What trains. `state` holds everything that `load_state` needs to go on, but the rows of a replay."""

    episodes_ended: list[EpisodeRow]
    """Episodes of several matches that the last `step` ended."""

    @property
    def decisions(self) -> int: ...
    @property
    def updates(self) -> int: ...

    def step(self) -> Sequence[MatchRow]:
        """Play on and learn. Returns the matches that ended."""

    def losses(self) -> dict[str, float]:
        """What the last update told."""

    def state(self) -> dict[str, Any]: ...
    def load_state(self, state: dict[str, Any]) -> None: ...


def game_options(recipe: Recipe) -> dict[str, Any]:
    """What the recipe's game is made with, besides lanes and seed."""
    return dict(flat(recipe.tennis)) | {"threads": recipe.threads} if recipe.game == "tennis" else {}


def make_learner(recipe: Recipe, game: Game) -> Learner:
    """The recipe's learner before its first step. Raises SparringError for a game that it cannot learn."""
    return DDPG(game, recipe.ddpg, seed=recipe.seed, device=recipe.device)


def replay_of(learner: Learner) -> Replay | None:
    """The learner's replay buffer, where it has one."""
    return learner.replay if isinstance(learner, DDPG) else None


def make_measure(recipe: Recipe) -> Measure:
    """What counts the recipe's matches."""
    words = ("racket", "rally", "rallies") if recipe.game == "tennis" else ("agent", "match", "matches")
    return Measure(recipe.solved_score, words=words)
