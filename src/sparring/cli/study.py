"""The verb `study`: what runs show about learning itself, and figures that explain it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from sparring.cli.words import Switch, parsed, pick, print_json, progress_line
from sparring.studies.figures import figures
from sparring.studies.staleness import staleness

STUDY_HELP = """What runs show about learning itself, and figures that explain it.

usage: sparring study staleness | figures ...

  sparring study staleness stale-frozen-0 stale-slow-0 stale-fast-0
  sparring study figures tennis --out figures

Every study explains itself: sparring study staleness --help"""

STALENESS_HELP = """How wrong a stored rally becomes with its age, while the other side learns.

  sparring train tennis --run tennis-start --solved-score 0.2 --stop-after-solved 1
  sparring train tennis-frozen
  sparring train tennis-fast
  sparring study staleness tennis-frozen tennis-fast     # writes staleness.png and staleness.json

A critic is fitted to new rallies of the learner and its opponent as they are now. Its TD error on stored steps of some
age, against that on new ones, says how wrong these have become (docs/staleness.md). Takes runs whose recipe has an
opponent of its own (table against); those that differ in their seed alone form a group."""


def study_staleness(
    runs: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...")],
    *,
    out: Path = Path("staleness.png"),
    fresh: int = 40_000,
    fit: int = 3_000,
    width: int = 1_000,
    json: Switch = False,
) -> int:
    """Measure how stale rallies grow.

    Args:
        runs: Names or paths.
        out: The picture, PNG; the data lie beside it as JSON.
        fresh: Steps of new rallies: half to fit the critic to, half to compare with.
        fit: Updates of that critic.
        width: Updates that a slice of ages spans.
        json: Print JSON.
    """
    with progress_line() as line:
        study = staleness(runs, out=out, fresh=fresh, fit=fit, width=width, say=line)
    if json:
        print_json(study.json())
        return 0
    for group in study.groups:
        for what, points in (("stored", group.stored), ("opponent of then", group.opponent_of)):
            shown = ", ".join(
                f"{point.at:,.0f}: {point.ratio:.2f} ({point.low:.2f} to {point.high:.2f})" for point in points
            )
            print(f"{group.name}, {len(group.runs)} runs, TD error by age, {what}: {shown}")
        sizes = ", ".join(f"{p.at:,.0f}: {p.ratio:.2f} ({p.low:.2f} to {p.high:.2f})" for p in group.buffers)
        print(f"{group.name}, average step of a buffer by its size: {sizes}")
    print(f"picture: {out}\ndata: {out.with_suffix('.json')}")
    return 0


FIGURES_HELP = """The figures that a tutorial of Tennis needs, each drawn from code or from a run.

  sparring study figures tennis --out figures
  sparring study figures tennis --dqn tennis-dqn --out figures
  sparring study figures tennis --only frames ledger

timeline (acting and bursts), frames (what a racket sees), ledger (what rallies paid), target (one stored step),
slow-copy (one weight and its target), curve (raw and 100-average), clears (score by balls over the net), critic-inputs
(one racket's or both's), one-action (DQN, DDPG, self-play)."""


def study_figures(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    *,
    out: Path = Path("figures"),
    dqn: str | None = None,
    only: tuple[str, ...] = (),
    json: Switch = False,
) -> int:
    """Draw the figures of a run.

    Args:
        run: A run of recipe tennis, or another one of DDPG on Tennis.
        out: The folder for the pictures, PNG.
        dqn: A run of recipe tennis-dqn. Default: its network before training.
        only: Names of figures. Default: all.
        json: Print JSON.
    """
    paths = figures(run, out=out, dqn=dqn, only=only)
    if json:
        print_json(paths)
    else:
        print("\n".join(map(str, paths)))
    return 0


_STUDIES = {
    "figures": parsed("sparring study figures", study_figures, FIGURES_HELP),
    "staleness": parsed("sparring study staleness", study_staleness, STALENESS_HELP),
}


def study_verb(given: list[str]) -> int:
    return pick("sparring study", given, _STUDIES, STUDY_HELP)
