"""A run of Loong small enough for tests: two maps of 7x7 and 9x9, few lanes, short rollouts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from loong_maps import simple_map

from sparring.learn.ppo import PPOConfig
from sparring.learn.selfplay import SelfPlayConfig
from sparring.runs.recipe import LoongOptions, Recipe

STEPS, LANES = 12, 4
UPDATE = STEPS * LANES
"""Decisions that an update takes."""
PEARLS = tuple(f"TILE {x} {y} 1 9" for y in range(7) for x in range(7) if (x + y) % 3 == 0)


def tiny_recipe(folder: Path, **changes: Any) -> Recipe:
    """Maps are written into `folder`/maps."""
    maps = folder / "maps"
    if not maps.exists():
        maps.mkdir(parents=True)
        (maps / "small.map").write_bytes(simple_map("7 7", ("0 4 1 1 2 1 2 2 2 3", "1 4 4 4 5 4 5 5 5 6"), PEARLS))
        (maps / "wide.map").write_bytes(simple_map("9 9", ("0 3 1 1 2 1 2 2", "1 3 6 6 7 6 7 7"), PEARLS))
    recipe = Recipe(
        game="loong",
        algorithm="ppo",
        lanes=LANES,
        threads=1,
        seed=5,
        decisions=6 * UPDATE,
        save_seconds=3600,
        loong=LoongOptions(maps=(str(maps),)),
        selfplay=SelfPlayConfig(
            opponents=("foil", "legal"), ppo=PPOConfig(steps=STEPS, epochs=1, minibatch=20, stretch=8, lr=1e-2)
        ),
    )
    return replace(recipe, **changes)
