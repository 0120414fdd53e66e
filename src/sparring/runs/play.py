"""Shows a player's rally: `sparring.pictures.play` with runs for players."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from sparring.errors import SparringError
from sparring.pictures.play import PlayResult
from sparring.pictures.play import play as play_rally
from sparring.runs.evaluate import Player, player_name
from sparring.runs.folder import find_run
from sparring.runs.policy import TrainedPolicy, load


def play(
    player: Player,
    *,
    opponent: Player | None = None,
    out: Path | None = None,
    seed: int = 0,
    terminal: bool = False,
    console: Console | None = None,
    **options: Any,
) -> PlayResult:
    """Play one rally of Tennis and show it.

    player:   plays racket A (left), and B too unless there is an `opponent`
    out:      the picture, .gif or .mp4; default for a run: `rally.gif` in its folder, otherwise none is made
    seed:     of the scene
    terminal: draw the court live on `console`
    options:  further ones of `sparring.pictures.play.play`, such as `seconds` and `speed`

    Raises SparringError: unknown run, a player that does not fit Tennis, a picture that cannot be written.
    """
    left, right = _loaded(player), None if opponent is None else _loaded(opponent)
    for trained in (left, right):
        if isinstance(trained, TrainedPolicy) and trained.game != "tennis":
            raise SparringError(f"run {trained.name} plays {trained.game}: play draws Tennis only")
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


class _Function:
    """A function as a policy."""

    def __init__(self, function: Any) -> None:
        self.act = function
        self.name = player_name(function)


def _loaded(player: Player) -> Any:
    if isinstance(player, str | Path):
        return load(player)
    return player if hasattr(player, "act") else _Function(player)
