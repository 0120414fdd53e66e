"""The study of staleness: what it reads, what it measures, and that it changes nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import TINY, advance, training

from sparring.cli import main
from sparring.errors import SparringError
from sparring.learn.against import Against, AgainstConfig
from sparring.runs import checkpoint
from sparring.runs.folder import Disk
from sparring.runs.reading import read_learner
from sparring.studies.staleness import _fit, _interval, _play, staleness

DECISIONS = 480
RECIPE = replace(
    TINY,
    lanes=4,
    ddpg=replace(TINY.ddpg, buffer=2000, n_step=2, warmup=0, actor_lr=0.05, critic_normalised=0),
    decisions=DECISIONS,
)


def run(path: Path, *, seed: int = 5, **against: object) -> Path:
    settings = AgainstConfig(keep_every=10, **against)  # type: ignore[arg-type]
    whole = training(path, recipe=replace(RECIPE, seed=seed, against=settings))
    advance(whole, DECISIONS)
    whole.save()
    whole.close()
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "frozen": run(folder / "frozen", opponent="frozen"),
        "fast": run(folder / "fast", opponent="following", follow=0.5),
        "fast-6": run(folder / "fast-6", seed=6, opponent="following", follow=0.5),
    }


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_frozen_opponent_of_any_age_is_the_same_and_a_moving_one_is_not(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {name: contents(path) for name, path in runs.items()}
    out = tmp_path / "figure" / "stale.png"
    assert main(["study", "staleness", *map(str, runs.values()), "--out", str(out), "--fresh", "1000", "--fit", "20",
                 "--width", "10"]) == 0  # fmt: skip
    printed = capsys.readouterr().out
    assert "frozen, 1 runs, TD error by age, stored: 5: " in printed
    assert "following, 0.5, 2 runs, TD error by age, opponent of then: " in printed
    assert {name: contents(path) for name, path in runs.items()} == before
    assert out.read_bytes().startswith(b"\x89PNG")
    data = json.loads(out.with_suffix(".json").read_text())
    assert [each["run"] for each in data["runs"]] == ["frozen", "fast", "fast-6"]
    frozen, fast = data["groups"]
    assert len(frozen["opponent_of"]) == len(frozen["change"]) >= 3
    assert all(point["ratio"] == 1.0 for point in frozen["opponent_of"])
    assert all(change == 0.0 for _, change in frozen["change"])
    assert [point["at"] for point in fast["opponent_of"]] == sorted(point["at"] for point in frozen["opponent_of"])
    assert any(point["ratio"] != 1.0 for point in fast["opponent_of"])
    amounts = [change for _, change in sorted(fast["change"])]
    assert amounts == sorted(amounts) and amounts[0] < amounts[1]
    assert [point["at"] for point in frozen["stored"]] == [5.0, 15.0]
    for group in data["groups"]:
        for point in (*group["stored"], *group["opponent_of"], *group["buffers"]):
            assert point["low"] <= point["ratio"] + 1e-5 and point["ratio"] <= point["high"] + 1e-5


def test_a_step_that_was_made_wrong_has_the_error_it_was_given(runs: dict[str, Path]) -> None:
    _, learner = read_learner(runs["fast"])
    assert isinstance(learner, Against)
    rows = _play(learner, 1000)
    assert len(rows["reward"]) == 1000
    judge = _fit(learner, rows, 10)
    wrong = {**rows, "reward": rows["reward"] + 5.0}
    difference = judge(wrong) - judge(rows)
    torch.testing.assert_close(difference.mean(), torch.tensor(5.0), rtol=0.1, atol=0)
    # The judge is fitted to what it is given.
    wrong["discount"] = torch.zeros_like(rows["discount"])
    assert _fit(learner, wrong, 100)(wrong).mean() < 0.95 * _fit(learner, wrong, 1)(wrong).mean()


def test_playing_leaves_the_learner_as_it_was(runs: dict[str, Path]) -> None:
    _, learner = read_learner(runs["frozen"])
    assert isinstance(learner, Against)
    weights = {name: tensor.clone() for name, tensor in learner.actor.state_dict().items()}
    # Neither a learner that had begun at random nor one with a small buffer plays or learns otherwise than it would.
    config = learner.config = replace(learner.config, warmup=10**6, buffer=50, learn_from=8)
    learner.noise.sigma.zero_()
    learner.noise.x.zero_()
    replay, updates = learner.replay, learner.updates
    rows = _play(learner, 200)
    with torch.no_grad():
        played = learner.actor.eval()(rows["obs"])
    torch.testing.assert_close(rows["action"][8:], played[8:])  # the first two steps of four lanes waited from before
    assert (learner.config, learner.updates) == (config, updates)
    assert learner.replay is replay
    assert all(torch.equal(weights[name], tensor) for name, tensor in learner.actor.state_dict().items())


def test_the_interval_of_a_ratio_covers_it_and_knows_that_neighbours_resemble_each_other() -> None:
    random = np.random.default_rng(1)
    blocks = random.normal(2.0, 1.0, 40).repeat(50).astype(np.float32)
    ones = np.ones(2000, np.float32)
    low, high = _interval(blocks, ones, 50, np.random.default_rng(0))
    # Forty independent draws of deviation 1: the mean's own is 0.158, and 3.92 of those make the interval.
    assert 0.4 < high - low < 0.85
    assert low < blocks.mean() < high
    narrow = _interval(blocks, ones, 1, np.random.default_rng(0))
    assert narrow[1] - narrow[0] < 0.2


def test_what_it_cannot_take_is_one_line(tmp_path: Path) -> None:
    plain = training(tmp_path / "plain", recipe=RECIPE)
    plain.save()
    plain.close()
    twin = replace(RECIPE, against=AgainstConfig(opponent="frozen"), ddpg=replace(RECIPE.ddpg, td3=True))
    double = training(tmp_path / "twin", recipe=twin)
    double.save()
    double.close()
    for paths, line in (
        ([tmp_path / "plain"], "run plain has no opponent of its own"),
        ([tmp_path / "twin"], r"run twin has two critics \(ddpg.td3\)"),
        ([], "name runs"),
    ):
        with pytest.raises(SparringError, match=line):
            staleness(paths)
    with pytest.raises(SparringError, match="fresh = 10: must be at least 1000"):
        staleness([tmp_path / "plain"], fresh=10)
    with pytest.raises(SparringError, match="cannot write /: it is a folder"):
        staleness([tmp_path / "plain"], out=Path("/"))
    with pytest.raises(SparringError, match=r"x.json: that is where the data will lie: give the picture another"):
        staleness([tmp_path / "plain"], out=tmp_path / "x.json")


def test_a_run_of_a_gpu_is_read_on_the_cpu(runs: dict[str, Path], tmp_path: Path) -> None:
    there = shutil.copytree(runs["frozen"], tmp_path / "there")
    content = checkpoint.read(there / "latest.pt")
    content["recipe"]["device"] = "cuda"
    checkpoint.write(there / "latest.pt", content, Disk())
    recipe, learner = read_learner(there)
    assert (recipe.device, learner.device) == ("cpu", "cpu")  # type: ignore[attr-defined]
