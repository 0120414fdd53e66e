"""Recipes: the packaged ones hold, files and flags are checked, and a resolved recipe is the same recipe."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from sparring.errors import SparringError
from sparring.learn.ddpg import DDPGConfig
from sparring.runs.recipe import RECIPES, Recipe, change_recipe, check_recipe, load_recipe, recipe_names
from sparring.settings import from_table, to_toml


def test_the_recipes_that_the_readme_quotes_are_there() -> None:
    assert {"tennis", "tennis-classic"} <= set(recipe_names())


def test_every_packaged_recipe_loads_and_survives_being_resolved() -> None:
    for name in recipe_names():
        recipe = load_recipe(name)
        assert recipe == load_recipe(RECIPES / f"{name}.toml")
        assert from_table(Recipe, tomllib.loads(to_toml(recipe)), where="resolved") == recipe


def test_tennis_classic_has_the_published_settings() -> None:
    """Networks, buffer, rates, bursts and noise of the published run (docs/tennis.md)."""
    recipe = load_recipe("tennis-classic")
    config = recipe.ddpg
    assert recipe.lanes == 1
    assert recipe.tennis.velocity == "as-shipped"
    assert (config.actor_hidden, config.critic_hidden) == ((256, 256, 128), (256, 256))
    assert (config.buffer, config.batch, config.gamma, config.tau) == (1_000_000, 128, 0.99, 1e-3)
    assert (config.actor_lr, config.critic_lr) == (2e-4, 8e-4)
    assert (config.critic_weight_decay, config.clip_norm) == (1e-5, 1.5)
    assert (config.update_every, config.burst) == (64, 128)
    assert config.noise_theta == 0.1
    assert config.noise_sigma == pytest.approx(0.3 / 5)
    assert config.noise_shared


def test_a_file_holds_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("seed = 7\n[ddpg]\nactor_lr = 1e-3\n")
    assert load_recipe(path) == load_recipe(str(path)) == Recipe(seed=7, ddpg=DDPGConfig(actor_lr=1e-3))


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(SparringError, match=r"^no recipe tenis: did you mean tennis\?$"):
        load_recipe("tenis")
    with pytest.raises(SparringError, match=r"^no recipe qqq: there are .*tennis.*, or give a .toml file$"):
        load_recipe("qqq")
    with pytest.raises(SparringError, match=r"^qqq.toml: cannot be read: No such file or directory$"):
        load_recipe("qqq.toml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed = -1", "seed = -1: must be in [0, 4.61169e+18]"),
        ('algorithm = "sarsa"', 'algorithm = "sarsa": must be one of "ddpg", "dqn", "ippo", "maddpg", "ppo"'),
        ('algorithm = "dqn"\n[dqn]\nhidden = []', "dqn.hidden = []: must have at least one layer"),
        (
            'algorithm = "dqn"\n[dqn]\nbuffer = 9\nlearn_from = 9',
            "dqn.batch = 128: must be at most dqn.buffer, which is 9",
        ),
        ("[ddpg]\nactr_lr = 1", "ddpg.actr_lr: no such setting; did you mean ddpg.actor_lr?"),
        ("[ddpg]\nactor_hidden = 64", "ddpg.actor_hidden = 64: must be a list, such as [256, 256]"),
        ("[ddpg]\nactor_hidden = [64, 0]", "ddpg.actor_hidden[1] = 0: must be at least 1"),
        ("[ddpg]\nactor_hidden = []", "ddpg.actor_hidden = []: must have at least one layer"),
        ("[ddpg]\ncritic_hidden = []", "ddpg.critic_hidden = []: must have at least one layer"),
        (
            "[ddpg]\nactor_hidden = [64]\nactor_normalised = 2",
            "ddpg.actor_normalised = 2: must be at most the 1 layers of ddpg.actor_hidden",
        ),
        (
            "[ddpg]\ncritic_hidden = [64]\ncritic_normalised = 2",
            "ddpg.critic_normalised = 2: must be at most the 1 layers of ddpg.critic_hidden",
        ),
        ("[ddpg]\nbuffer = 100\nlearn_from = 50", "ddpg.batch = 128: must be at most ddpg.buffer, which is 100"),
        (
            "[ddpg]\nbuffer = 500\nlearn_from = 501",
            "ddpg.learn_from = 501: must be at most ddpg.buffer, which is 500: learning would never begin",
        ),
        (
            "lanes = 100\n[ddpg]\nn_step = 3\nbuffer = 599",
            "ddpg.buffer = 599: must be at least 600: a step of 100 lanes can end that many transitions",
        ),
    ],
)
def test_each_fault_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SparringError) as caught:
        load_recipe(path)
    assert str(caught.value) == f"{path}: {line}"


def test_recipes_made_in_python_are_checked_alike() -> None:
    recipe = Recipe(ddpg=DDPGConfig(batch=1000, buffer=500))
    with pytest.raises(SparringError, match=r"^recipe: ddpg.batch = 1000: must be at most ddpg.buffer, which is 500$"):
        check_recipe(recipe, where="recipe")
    with pytest.raises(SparringError, match=r"^override: ddpg.batch = 1: must be in \[2, 1e\+06\]$"):
        change_recipe(Recipe(), {"ddpg.batch": 1}, where="override")
    assert change_recipe(Recipe(), {"ddpg": {"batch": 64}, "seed": 3}, where="override") == Recipe(
        seed=3, ddpg=replace(DDPGConfig(), batch=64)
    )
