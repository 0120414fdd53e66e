"""Tunes the foil's wishes by SPSA (Spall 1992) against scripted players, in lanes, on generated maps of its own.

    .venv/bin/python bench/tune_foil.py --steps 50 [--matches 16] [--wish NAME ...]

Every step tries all named wishes at once, each up or down by a tenth at random, both signs in the same matches, and
moves them a little towards the better one. It prints the wishes as it goes; bench/foil.py tells what they are worth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tyro
from foil import generated, points_against, wishes

from sparring import _core

MAP_SEED = 40_000
"""Of the generator: neither training's maps nor those that bench/foil.py measures on."""
LARGEST = 1500
"""Tiles of the largest map: matches on larger ones take too long."""
OPPONENTS = ("hunter", "splitter", "forager")
PERTURBATION = 0.1
GAIN = 0.15
"""How far a wish moves, as a share of itself, where one sign won all matches and the other none."""


class Step(NamedTuple):
    up: float
    down: float
    values: dict[str, float]


def step(values: dict[str, float], levels: list[_core.LoongLevel], matches: int, random: np.random.Generator) -> Step:
    """Points of both signs, a share of 1, and the wishes after the step."""
    signs = dict(zip(values, random.choice((-1, 1), len(values)), strict=True))
    chosen = [levels[i] for i in random.permutation(len(levels))[: matches // 2]]
    points = []
    for sign in (1, -1):
        tried = {name: value * (1 + sign * signs[name] * PERTURBATION) for name, value in values.items()}
        row = wishes([f"{name}={round(value)}" for name, value in tried.items()])
        points.append(float(np.mean([points_against(chosen, row, each, matches) for each in OPPONENTS])))
    lead = points[0] - points[1]
    return Step(*points, {name: value * (1 + GAIN * lead * signs[name]) for name, value in values.items()})


def main(steps: int = 50, matches: int = 16, wish: tuple[str, ...] = (), seed: int = 0) -> None:
    """matches: against each opponent, sign and step, an even number; wish: those to tune, else all but those of 0."""
    usual = _core.LOONG_FOIL
    values = {name: float(usual[name]) for name in wish or usual if usual[name] != 0}
    levels = [level for level in generated(200, MAP_SEED) if level.width * level.height <= LARGEST]
    random = np.random.default_rng(seed)
    for number in range(1, steps + 1):
        up, down, values = step(values, levels, matches, random)
        moved = " ".join(f"{name}={round(value)}" for name, value in values.items() if round(value) != usual[name])
        print(f"step {number}: {up:.3f} and {down:.3f}; {moved}", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
