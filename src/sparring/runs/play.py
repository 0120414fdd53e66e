"""Shows a player's match: of Tennis `sparring.pictures.play`, of other games `sparring.pictures.match`, for runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from sparring.errors import SparringError
from sparring.games.api import Game
from sparring.games.registry import make
from sparring.pictures.match import MatchResult, draw_match
from sparring.pictures.play import PlayResult
from sparring.pictures.play import play as play_rally
from sparring.runs.evaluate import (
    Player,
    answers,
    needs_two_teams,
    player_name,
    refuse_other_agents,
    refuse_other_game,
)
from sparring.runs.folder import find_run
from sparring.runs.learners import tennis_or_mpe_options
from sparring.runs.policy import TrainedPolicy, load


def play(
    player: Player,
    *,
    opponent: Player | None = None,
    game: Callable[..., Game] | None = None,
    out: Path | None = None,
    seed: int = 0,
    terminal: bool = False,
    console: Console | None = None,
    **options: Any,
) -> PlayResult | MatchResult:
    """Play one match and show it: a rally of Tennis, or a match of any game that can be drawn.

    player:   plays racket A (left), and B too unless there is an `opponent`; in other games team 0, or everybody
    opponent: plays the other racket, or team 1
    game:     your own game, which the player then plays; default: the game that the player was trained on, or Tennis
    out:      the picture, .gif or .mp4; default for a run: `rally.gif`, of other games `match.gif`, in its folder,
              otherwise none is made
    seed:     of the scene
    terminal: draw the court live on `console`; of other games a line tells how the match went
    options:  further ones of `sparring.pictures.play.play` (Tennis), such as `seconds` and `speed`, or of
              `sparring.pictures.match.draw_match`

    Raises SparringError: unknown run, a player that does not fit the game, a game that cannot be drawn, a picture that
    cannot be written.
    """
    left, right = _loaded(player), None if opponent is None else _loaded(opponent)
    refuse_other_game(left, right)
    if game is not None or (isinstance(left, TrainedPolicy) and left.game != "tennis"):
        if out is None and isinstance(player, str | Path):
            out = find_run(player).path / "match.gif"
        result = _play_match(left, right, game, out, seed, options)
        if terminal:
            (console or Console()).print(str(result), highlight=False, markup=False)
        return result
    if isinstance(right, TrainedPolicy) and right.game != "tennis":
        raise SparringError(f"run {right.name} plays {right.game}: it cannot play Tennis")
    if isinstance(left, TrainedPolicy):
        options.setdefault("velocity", left.recipe.tennis.velocity)
    names = (player_name(left), player_name(left if right is None else right))
    # Racket A, on the left, is agent 1.
    if isinstance(left, TrainedPolicy):
        left, right = left.of(1), left.of(0) if right is None else right
    if isinstance(right, TrainedPolicy):
        right = right.of(0)
    if out is None and isinstance(player, str | Path):
        out = find_run(player).path / "rally.gif"
    return play_rally(
        left,
        opponent=right,
        out=out,
        seed=seed,
        terminal=terminal,
        console=console,
        names=names,
        **options,
    )


def _play_match(
    player: Any,
    opponent: Any,
    game: Callable[..., Game] | None,
    out: Path | None,
    seed: int,
    options: dict[str, Any],
) -> MatchResult:
    how = tennis_or_mpe_options(player.recipe) if game is None else {}
    # A game of the decision stream can be drawn or not; one of PettingZoo has to know beforehand.
    if game is None or "pictures" in inspect.signature(game).parameters:
        how["pictures"] = out is not None
    table = make(game or player.game, lanes=1, seed=seed, **how)
    if opponent is not None:
        needs_two_teams(table)
    refuse_other_agents(table, player, opponent)
    if wrong := options.keys() - {"seconds", "fps"}:
        raise SparringError(f"{table.name}: play takes no {' and no '.join(sorted(wrong))}, which are of Tennis")
    return draw_match(table, lambda on: on.act(answers(on.decisions(), player, opponent)), out=out, **options)


class _Function:
    """A function as a policy."""

    def __init__(self, function: Any) -> None:
        self.act = function
        self.name = player_name(function)


def _loaded(player: Player) -> Any:
    if isinstance(player, str | Path):
        return load(player)
    return player if hasattr(player, "act") else _Function(player)
