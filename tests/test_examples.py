"""Every program in examples/ runs and does what it says."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from scripted import example, keeper

import sparring
from sparring.cli import main
from sparring.errors import SparringError
from sparring.games.checker import check_game
from sparring.games.own import own_game

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_all_examples_are_tried_here() -> None:
    names = {"own_game", "own_pettingzoo", "own_reward", "scripted_player", "tictactoe", "tutorial_loop"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == names


def test_own_game_is_sound_and_trains(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("own_game")
    assert "ends" in check_game(module.Meet, lanes=3, decisions=25, limit=None)
    module.main(decisions=640)
    printed = capsys.readouterr().out
    assert "checks passed: shape, ids" in printed
    assert "mean score 0." in printed
    assert sparring.load("meet").game == "meet"


@pytest.mark.parametrize("method", ["ddpg", "maddpg", "ppo"])
def test_own_pettingzoo_trains_by_one_command(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--own", f"{EXAMPLES / 'own_pettingzoo.py'}:Plank"]
    less = ["ippo.steps", "2"] if method == "ppo" else [f"{method}.learn-from", "200"]
    short = ["--decisions", "400", f"--{less[0]}", less[1]]
    assert main(["train", f"own-{method}", *own, *short, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["updates"] > 10
    assert main(["evaluate", f"own-{method}", *own, "--matches", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["game"] == "plank"


@pytest.mark.parametrize("method", ["dqn", "ppo"])
def test_tictactoe_is_learnt_in_turns_and_with_masks(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = example("tictactoe")
    module.MATCHES = 200
    module.main(method, decisions=8_192)
    against_random, against_itself = capsys.readouterr().out.splitlines()[-2:]
    won, drawn, lost = map(int, re.findall(r"\d+", against_random))
    assert won + drawn + lost == 200
    assert won > 130, "random choices win 85 of 200 against random choices"
    assert re.fullmatch(rf"{method} against itself: scores (0 and 0|1 and -1|-1 and 1)", against_itself)


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("plank", r"own = plank: give a file and a name in it, such as my_game.py:parallel_env"),
        ("none.py:Plank", r"own = none.py:Plank: there is no file none.py"),
        (f"{EXAMPLES / 'own_game.py'}:LENGTH", r"own_game.py has no class or function LENGTH"),
    ],
)
def test_games_that_are_not_there_are_one_line(word: str, line: str) -> None:
    with pytest.raises(SparringError, match=line):
        own_game(word)


def test_a_game_that_cannot_be_called_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.py"
    path.write_text("def env(size): ...\ndef stream(lanes): ...\ndef fine(size=3, render_mode=None): ...\n")
    own_game(f"{path}:fine")
    with pytest.raises(SparringError, match=r"env is called without arguments \(missing a required argument: 'size'"):
        own_game(f"{path}:env")
    with pytest.raises(SparringError, match=r"stream is called with lanes and seed \(got an unexpected .* 'seed'\)"):
        own_game(f"{path}:stream")


def test_a_file_may_hold_a_game_of_the_decision_stream() -> None:
    assert own_game(f"{EXAMPLES / 'own_game.py'}:Meet")(lanes=2, seed=0).name == "meet"


def test_own_reward_reaches_the_learner_and_leaves_the_score() -> None:
    module = example("own_reward")
    game, plain = module.calm_tennis(lanes=2, seed=0), sparring.make("tennis", lanes=2, seed=0)
    actions = torch.tensor([[1.0, 0.0], [0.5, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    for _ in range(40):
        own, shipped = game.act(actions), plain.act(actions)
        torch.testing.assert_close(own.reward, shipped.reward - torch.tensor([0.001, 0.0005, 0.0, 0.001]))
        assert torch.equal(own.score, shipped.score)


def test_own_reward_trains(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_reward").main(decisions=6_400)
    assert "rallies, official score" in capsys.readouterr().out


def test_scripted_player_keeps_every_rally_to_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    example("scripted_player").main(rallies=20)
    assert capsys.readouterr().out == "mean score of 20 rallies: 2.70\n"


def test_scripted_player_answers_one_racket_as_in_a_batch() -> None:
    obs = sparring.make("tennis", lanes=5, seed=1).decisions().obs
    torch.testing.assert_close(torch.cat([keeper(row[None]) for row in obs]), keeper(obs))


def test_tutorial_loop_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tutorial_loop.py"])
    runpy.run_path(str(EXAMPLES / "tutorial_loop.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 agents, states of 24 numbers, actions of 2"
    assert len(lines) == 6
