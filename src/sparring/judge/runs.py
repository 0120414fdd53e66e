"""`evaluate` and `play` for runs of every game: those of Loong play in the judge, all others in their own game."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard, overload

from rich.console import Console

from sparring.errors import SparringError
from sparring.judge.films import Filmed, play_teacher
from sparring.judge.versus import Versus, evaluate_teacher
from sparring.pictures.match import MatchResult
from sparring.pictures.play import PlayResult
from sparring.runs import evaluate as evaluation
from sparring.runs import play as playing
from sparring.runs.evaluate import Actor, Evaluation, Player
from sparring.runs.policy import TrainedTeacher, game_of

_OF_EVERY_GAME = ("on_match", "terminal", "console")


@overload
def evaluate(player: Actor | Callable[..., Any], **how: Any) -> Evaluation: ...
@overload
def evaluate(player: str | Path, *, on_match: Callable[[int, int], None] = ..., **how: Any) -> Evaluation | Versus: ...
def evaluate(
    player: Player, *, on_match: Callable[[int, int], None] = lambda done, whole: None, **how: Any
) -> Evaluation | Versus:
    """Play test matches without noise, and report.

    player:   a run's name or path, a policy, or a function from observations [n, inputs] to actions
    on_match: of a run of Loong alone: called with the number of matches done and to do
    how:      of a run of Loong `against`, `maps`, `matches`, `seed`, `workers` and `out`, as
              `sparring.judge.versus.evaluate_teacher` takes them; else `opponent`, `matches`, `lanes`, `seed`,
              `episodes`, `game` and options of the game, as `sparring.runs.evaluate.evaluate` takes them

    Returns a Versus of a run of Loong, an Evaluation of all else; of both, `score`, `low`, `high`, `wins`, `draws`,
    `losses` and `json()`. Raises SparringError as those functions do, and for a word of the other one.
    """
    if _of_loong(player, "evaluate", how, evaluate_teacher, evaluation.evaluate):
        return evaluate_teacher(player, on_match=on_match, **how)
    return evaluation.evaluate(player, **how)


@overload
def play(player: Actor | Callable[..., Any], **how: Any) -> PlayResult | MatchResult: ...
@overload
def play(
    player: str | Path, *, terminal: bool = ..., console: Console | None = ..., **how: Any
) -> PlayResult | MatchResult | Filmed: ...
def play(
    player: Player, *, terminal: bool = False, console: Console | None = None, **how: Any
) -> PlayResult | MatchResult | Filmed:
    """Play one match without noise, and write it as an animated picture.

    player:   a run's name or path, a policy, or a function from observations to actions
    terminal: draw Tennis live on `console`; of other games but Loong tell there how the match went
    how:      of a run of Loong `map`, `against`, `seed` and `out`, as `sparring.judge.films.play_teacher` takes them;
              else `opponent`, `game`, `out`, `seed` and more, as `sparring.runs.play.play` takes them

    Returns a Filmed of a run of Loong, a PlayResult of Tennis, a MatchResult of all else. Raises SparringError as those
    functions do, and for a word of the other one.
    """
    if _of_loong(player, "play", how, play_teacher, playing.play):
        return play_teacher(player, **how)
    return playing.play(player, terminal=terminal, console=console, **how)


def _of_loong(
    player: Player, verb: str, how: dict[str, Any], of_loong: Callable[..., Any], of_others: Callable[..., Any]
) -> TypeGuard[str | Path]:
    """Whether that is a run of Loong. Raises SparringError where `how` has a word that its function does not know."""
    if isinstance(player, TrainedTeacher):
        raise SparringError(f"{verb} takes a run of Loong by its name, such as {player.name}, and not its teacher")
    if not isinstance(player, str | Path):
        return False
    game, theirs, others = game_of(player), _words(of_loong), _words(of_others)
    loong = game == "loong"
    if wrong := [word for word in how if (word not in theirs if loong else word in theirs and word not in others)]:
        raise SparringError(
            f"run {Path(player).name} plays {game}, where {verb} takes no {' and no '.join(wrong)}: "
            f"it takes {', '.join(theirs if loong else others)}"
        )
    return loong


def _words(function: Callable[..., Any]) -> list[str]:
    """What it takes by name, besides what `evaluate` and `play` take of every game."""
    words = inspect.signature(function).parameters.items()
    return [name for name, each in words if each.kind is each.KEYWORD_ONLY and name not in _OF_EVERY_GAME]
