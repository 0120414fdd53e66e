"""Plays one rally of Tennis and shows it: as an animated picture, or live in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from sparring.games.tennis import CAP_DECISIONS
from sparring.pictures import check_range
from sparring.pictures.animation import check_suffix, write_rally
from sparring.pictures.rally import STEPS_PER_DECISION, STEPS_PER_SECOND, Policy, record_rally
from sparring.pictures.terminal import show_live


@dataclass(frozen=True, kw_only=True)
class PlayResult:
    """How a rally went.

    score_a, score_b: undiscounted reward of each racket
    decisions:        decisions each racket made
    crossings:        how often the ball passed over the net
    ended:            why it ended, in a few words
    path:             the picture written, or None
    """

    score_a: float
    score_b: float
    decisions: int
    crossings: int
    ended: str
    path: Path | None

    @property
    def best(self) -> float:
        """The better racket's score: the official measure of a rally."""
        return max(self.score_a, self.score_b)

    def __str__(self) -> str:
        seconds = self.decisions * STEPS_PER_DECISION / STEPS_PER_SECOND
        return (
            f"{self.decisions} decisions ({seconds:.1f} s), {self.crossings} times over the net, "
            f"A {self.score_a:.2f}, B {self.score_b:.2f}; ended: {self.ended}"
        )


def play(
    policy: Policy,
    *,
    opponent: Policy | None = None,
    out: Path | None = None,
    seed: int = 0,
    velocity: str = "as-shipped",
    terminal: bool = False,
    max_decisions: int = CAP_DECISIONS,
    fps: int = 25,
    seconds: float = 20.0,
    speed: float = 1.0,
    names: tuple[str, str] | None = None,
    console: Console | None = None,
) -> PlayResult:
    """Plays one rally and shows it.

    policy:    plays racket A (left), and B too unless there is an `opponent`
    opponent:  plays racket B (right)
    out:       where to write the rally: .gif, or .mp4 where ffmpeg is installed
    seed:      of the scene; 0 starts as the 2018 binary does with seed 0
    velocity:  "as-shipped" or "true", see `Tennis`
    terminal:  draw the court live on `console`; a console that is no terminal gets one line of text instead
    max_decisions: stop after this many, 1 to 1001 (where the game itself stops)
    fps:       pictures per second of the file, 1 to 50 (rounded to a whole number of physics steps)
    seconds:   longest piece of the rally the file shows; the file says so where it was cut
    speed:     of the terminal's court, 1 is real time (10 decisions per second)
    names:     who plays racket A and racket B, for the picture

    Raises SparringError where `out` cannot become a picture (told before playing) or a policy answers in a wrong shape.
    """
    if out is not None:
        out = Path(out)
        check_suffix(out)
    check_range("fps", fps, 1, STEPS_PER_SECOND)
    check_range("seconds", seconds, 1 / STEPS_PER_SECOND, CAP_DECISIONS)
    check_range("speed", speed, 0.01, 100)
    rally = record_rally(
        policy, opponent=opponent, seed=seed, velocity=velocity, max_decisions=max_decisions, names=names
    )
    if out is not None:
        write_rally(rally, out, fps=fps, seconds=seconds)
    result = PlayResult(
        score_a=float(rally.scores[-1, 0]),
        score_b=float(rally.scores[-1, 1]),
        decisions=rally.decisions,
        crossings=rally.crossings(rally.last_step),
        ended=rally.ended,
        path=out,
    )
    if terminal:
        console = console or Console()
        if not show_live(rally.frame, rally.last_step, console=console, steps_per_second=STEPS_PER_SECOND * speed):
            console.print(str(result), highlight=False, markup=False)
    return result
