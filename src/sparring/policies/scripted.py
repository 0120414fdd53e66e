"""Scripted players as a policy over the decision stream of Loong."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from sparring.games.api import Decisions
from sparring.games.loong import script_number


class Stage(Protocol):
    """Where scripted players can play: `sparring.games.loong.Loong`, and served play in the judge."""

    def scripted(self, rows: Decisions, script: str | Tensor, *, seed: int = 0) -> Tensor:
        """What scripted players do in rows of the last `decisions()`: uint8 [n, 80]."""
        ...


class ScriptedPolicy:
    """One scripted player for each team (docs/loong-players.md).

        game = sparring.make("loong", lanes=4)
        policy = ScriptedPolicy(game, "forager", "hunter")
        outcome = game.act(policy.act(game.decisions()))

    It remembers nothing: what it does is a function of its seed, of what a dragon is told, and of who the dragon is.
    """

    def __init__(self, game: Stage, a: str, b: str | None = None, *, seed: int = 0) -> None:
        """a, b: players of teams A and B by their names in `sparring.games.loong_rows.SCRIPTS`; b as a if None.

        Raises SparringError for another name.
        """
        self._game, self._seed = game, seed
        self._scripts = torch.tensor([script_number(a), script_number(a if b is None else b)])

    def act(self, rows: Decisions) -> Tensor:
        """uint8 [n, 80], for rows of the game's last `decisions()`, all or some."""
        return self._game.scripted(rows, self._scripts[rows.team], seed=self._seed)
