"""Games by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from sparring.errors import SparringError
from sparring.games.api import Game
from sparring.games.tennis import Tennis


def _loong(**options: Any) -> Game:
    from sparring.games.loong import Loong  # imported here, so that other games do not wait for it

    return Loong(**options)


def _mpe(**options: Any) -> Game:
    try:
        from sparring.games.pettingzoo import mpe
    except ImportError as error:
        raise SparringError(f"mpe needs PettingZoo ({error}): pip install 'sparring[zoo]'") from None
    return mpe(**options)


GAMES: dict[str, Callable[..., Game]] = {Tennis.name: Tennis, "loong": _loong, "mpe": _mpe}
"""The games that come with Sparring."""


def make(game: str | Callable[..., Game], *, lanes: int = 1, seed: int = 0, **options: Any) -> Game:
    """A batch of `lanes` matches of a game, lane and seed deciding each.

    game: a name in `GAMES`, or your own factory, called as `game(lanes=lanes, seed=seed, **options)`
    options: the game's own, such as `velocity="true"` of tennis, `maps="shipped"` of loong or
             `scenario="simple_tag_v3"` of mpe

    Raises SparringError for an unknown game or an option the game refuses.
    """
    if callable(game):
        return game(lanes=lanes, seed=seed, **options)
    if game not in GAMES:
        near = difflib.get_close_matches(game, GAMES, n=1)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(GAMES)}"
        raise SparringError(f"no game {game}: {known}; your own is a factory, game=..., or --own FILE.py:NAME")
    return GAMES[game](lanes=lanes, seed=seed, **options)
