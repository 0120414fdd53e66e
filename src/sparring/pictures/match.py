"""One match of any game that can show itself, as an animated picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sparring.errors import SparringError
from sparring.games.api import Drawable, Game, Outcome
from sparring.pictures import check_range
from sparring.pictures.animation import check_suffix, write_frames

_FPS = 10.0
_LOOKED_AT = 8
"""Pictures that the colours of a GIF are chosen for, spread over the match."""


@dataclass(frozen=True, kw_only=True)
class MatchResult:
    """How a match went.

    score:     undiscounted sum of rewards of each agent, by agent id
    decisions: how often somebody acted
    ended:     why it ended, in a few words
    path:      the picture written, or None
    """

    score: tuple[float, ...]
    decisions: int
    ended: str
    path: Path | None

    @property
    def best(self) -> float:
        """The better agent's score."""
        return max(self.score)

    def __str__(self) -> str:
        scores = ", ".join(f"{score:.2f}" for score in self.score)
        return f"{self.decisions} decisions, scores of the agents {scores}; ended: {self.ended}"


def draw_match(
    game: Game, act: Callable[[Game], Outcome], *, out: Path | None, seconds: float = 20.0, fps: float | None = None
) -> MatchResult:
    """Plays the match that a game of one lane stands in, until it ends or the picture is full.

    act:     called with the game, answers its decisions
    out:     the picture, .gif or .mp4; None: none is made
    seconds: longest that the picture plays, with as many decisions a second as the game's `fps` says, unless `fps` is
             given

    Raises SparringError where the game cannot be drawn, or nothing written to `out`.
    """
    if out is not None:
        check_suffix(out)
        if not isinstance(game, Drawable):
            raise SparringError(
                f"{game.name} draws nothing: give the game a method picture(lane) that returns uint8 [height, width, 3]"
            )
    fps = fps or float(getattr(game, "fps", _FPS))
    check_range("fps", fps, 0.1, 50)
    check_range("seconds", seconds, 1 / fps, 3600)
    most = max(1, round(seconds * fps))
    frames = [] if out is None else [_drawn(game)]
    score, decisions, ended = np.zeros(game.agents), 0, f"stopped after {most} decisions"
    while decisions < most:
        decisions += 1
        outcome = act(game)
        np.add.at(score, outcome.agent.numpy(), outcome.reward.numpy())
        if out is not None:
            frames.append(_drawn(game))
        if len(outcome.ended):
            ended = "by a limit" if bool(outcome.truncated[0]) else "by the rules"
            break
    if out is not None:
        odd = next((each for each in frames if each.shape != frames[0].shape), None)
        if odd is not None:
            raise SparringError(f"{game.name}: pictures of {frames[0].shape[:2]} and {odd.shape[:2]} make no animation")
        shown = np.concatenate(frames[:: max(1, len(frames) // _LOOKED_AT)] + frames[-1:])
        palette = Image.fromarray(shown).quantize(colors=255)
        write_frames(iter(frames), len(frames), out, fps=Fraction(fps), palette=palette)
    return MatchResult(score=tuple(score.tolist()), decisions=decisions, ended=ended, path=out)


def _drawn(game: Game) -> NDArray[np.uint8]:
    assert isinstance(game, Drawable)
    return game.picture(0).copy()  # an environment may draw the next one into the same memory
