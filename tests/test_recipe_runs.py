"""Every recipe but Loong's, made small: it trains, resumes bit for bit after a kill, is evaluated, and plays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scripted import example
from tiny_runs import advance, fingerprint, training
from torch import Tensor
from toy_zoo import Relay
from walk_game import Walk

import sparring
from sparring.cli import main
from sparring.errors import SparringError
from sparring.games.api import Game, Wrapper
from sparring.games.pettingzoo import pettingzoo
from sparring.pictures.match import MatchResult
from sparring.runs.recipe import Recipe, load_recipe, recipe_names

NAMES = [name for name in recipe_names() if not name.startswith("loong")]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small(name: str) -> Recipe:
    """The recipe with two lanes, narrow networks, a replay that overflows, and updates from the start."""
    recipe = replace(load_recipe(name), lanes=2, metrics_every=20, save_seconds=3600.0, decisions=120)
    if recipe.algorithm == "ippo":
        return replace(recipe, ippo=replace(recipe.ippo, hidden=(8,), steps=5, epochs=2, minibatch=16))
    table = getattr(recipe, recipe.algorithm)
    less: dict[str, Any] = {"buffer": 48, "batch": 8, "learn_from": 16, "update_every": 4, "burst": 1}
    if recipe.algorithm == "ddpg":
        narrow = {"actor_hidden": (8, 8), "critic_hidden": (8,), "critic_normalised": min(1, table.critic_normalised)}
        less |= narrow | {"warmup": 8}
    else:
        less["hidden"] = (8,)
    return replace(recipe, **{recipe.algorithm: replace(table, **less)})


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_resumes_bit_for_bit_and_is_evaluated_and_played(name: str, tmp_path: Path) -> None:
    recipe = small(name)
    game = pettingzoo(example("own_pettingzoo").Plank) if recipe.game == "own" else None
    if recipe.against.run:
        start = training(tmp_path / "start", recipe=small("tennis"))
        start.save()
        start.close()
        recipe = replace(recipe, against=replace(recipe.against, run=str(tmp_path / "start")))
    whole = training(tmp_path / "whole", recipe=recipe, game=game)
    advance(whole, 120)
    whole.save()
    whole.close()
    assert whole.learner.updates > 5
    parts = training(tmp_path / "parts", recipe=recipe, game=game)
    advance(parts, 50)
    parts.save()
    advance(parts, 90)  # lost with the process
    parts.close()
    parts = training(tmp_path / "parts", recipe=recipe, game=game)
    advance(parts, 120)
    parts.close()
    assert fingerprint(parts) == fingerprint(whole)

    found = sparring.evaluate(tmp_path / "whole", matches=2, episodes=0, game=game)
    assert found.matches == 2 and found.hash == sparring.load(tmp_path / "whole").hash
    shown = sparring.play(tmp_path / "whole", seconds=0.4, game=game)
    assert shown.path == tmp_path / "whole" / ("rally.gif" if recipe.game == "tennis" else "match.gif")
    assert Image.open(shown.path).format == "GIF"


def test_a_match_is_drawn_from_start_to_end_as_the_environment_draws_it(tmp_path: Path) -> None:
    module = example("own_pettingzoo")
    game, out = pettingzoo(module.Plank), tmp_path / "plank.gif"

    def walker(obs: Tensor) -> Tensor:
        return (obs[:, 2:] - obs[:, :1]).clamp(-1.0, 1.0)

    result = sparring.play(walker, game=game, seed=4, out=out)
    alone = game(lanes=1, seed=4, pictures=True)
    expected, score = [alone.picture(0)], torch.zeros(2)
    for _ in range(module.LENGTH):
        score += alone.act(walker(alone.decisions().obs)).reward
        expected.append(alone.picture(0))
    assert isinstance(result, MatchResult)
    torch.testing.assert_close(torch.tensor(result.score), score)
    assert (result.decisions, result.ended, result.path) == (module.LENGTH, "by a limit", out)
    # A GIF holds pictures that equal the one before only once.
    distinct = [expected[0], *(each for before, each in pairwise(expected) if (each != before).any())]
    assert len(distinct) > 5
    with Image.open(out) as picture:
        assert picture.n_frames == len(distinct)
        for frame, drawn in enumerate(distinct):
            picture.seek(frame)
            np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), drawn)
    assert sparring.play(walker, game=game, seed=4, seconds=0.3).ended == "stopped after 3 decisions"

    def wrapped(*, lanes: int, seed: int, pictures: bool = False) -> Game:
        return Wrapper(game(lanes=lanes, seed=seed, pictures=pictures))

    sparring.play(walker, game=wrapped, seed=4, out=tmp_path / "wrapped.gif")
    assert (tmp_path / "wrapped.gif").read_bytes() == out.read_bytes()


def test_a_run_of_a_game_of_your_own_plays_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = example("own_pettingzoo")
    run = training(tmp_path / "plank", recipe=small("own-ddpg"), game=pettingzoo(module.Plank))
    run.save()
    run.close()
    assert main(["play", str(tmp_path / "plank"), "--own", f"{module.__file__}:Plank"]) == 0
    told, picture = capsys.readouterr().out.splitlines()
    assert told.startswith("15 decisions, scores of the agents -") and told.endswith("; ended: by a limit")
    assert picture == f"picture: {tmp_path / 'plank' / 'match.gif'}"


def test_what_cannot_be_drawn_is_one_line(tmp_path: Path) -> None:
    run = training(tmp_path / "walk", recipe=replace(small("tennis-dqn"), game="walk"), game=Walk)
    run.save()
    run.close()
    with pytest.raises(SparringError, match=r"^walk draws nothing: give the game a method picture\(lane\)"):
        sparring.play(tmp_path / "walk", game=Walk)
    assert not (tmp_path / "walk" / "match.gif").exists()
    run = training(tmp_path / "relay", recipe=replace(small("own-ppo"), game="relay"), game=pettingzoo(Relay))
    run.save()
    run.close()
    with pytest.raises(
        SparringError, match=r'^relay draws nothing: what makes the environment must take render_mode="'
    ):
        sparring.play(tmp_path / "relay", game=pettingzoo(Relay))
    assert not list(tmp_path.glob("*/*.gif"))
    with pytest.raises(SparringError, match=r"^relay has 3 teams: an opponent needs a game of 2$"):
        sparring.play(tmp_path / "relay", opponent=tmp_path / "relay", game=pettingzoo(Relay))
    with pytest.raises(SparringError, match=r"^run relay plays relay, run walk plays walk$"):
        sparring.play(tmp_path / "relay", opponent=tmp_path / "walk", game=pettingzoo(Relay))
