"""Figures of a tutorial: all are drawn from a tiny run, and say what the code does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from tiny_runs import TINY, advance, training

from sparring.cli import main
from sparring.errors import SparringError
from sparring.learn.dqn import DQNConfig
from sparring.studies import figures as studies


def test_all_figures_are_drawn_from_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "_UPDATES", 5)
    run = training(tmp_path / "run")
    advance(run, 72)
    run.save()
    run.close()
    values = replace(TINY, algorithm="dqn", dqn=DQNConfig(hidden=(8,), buffer=200, learn_from=130))
    training(tmp_path / "values", recipe=values).save()
    out = tmp_path / "figures"
    assert main(["study", "figures", str(tmp_path / "run"), "--dqn", str(tmp_path / "values"), "--out", str(out)]) == 0
    names = capsys.readouterr().out.split()
    assert [Path(name).stem for name in names] == [
        "timeline", "frames", "ledger", "target", "curve", "clears", "critic-inputs", "one-action", "slow-copy",
    ]  # fmt: skip
    for name in names:
        assert len(Image.open(name).convert("RGB").getcolors(10**6) or ()) > 20
    few = tmp_path / "few"
    assert studies.figures(tmp_path / "run", out=few, only=("ledger",)) == [few / "ledger.png"]
    assert (few / "ledger.png").read_bytes() == (out / "ledger.png").read_bytes()
    with pytest.raises(SparringError, match="no figure legder: there are timeline, frames"):
        studies.figures(tmp_path / "run", out=few, only=("legder",))
    with pytest.raises(SparringError, match="run values is none of DDPG on Tennis"):
        studies.figures(tmp_path / "values", out=out)
    with pytest.raises(SparringError, match="run run is none of DQN on Tennis"):
        studies.figures(tmp_path / "run", out=out, dqn=tmp_path / "run")


def test_scores_of_rallies_are_what_balls_over_the_net_paid() -> None:
    """0.1 for each, and 0.01 less for the racket that dropped the ball."""
    scores = studies._rally_scores(lambda obs: torch.zeros(len(obs), 2), 20)
    assert len(scores) == 40
    assert all(min(abs(10 * score - round(10 * score)), abs(10 * score + 0.1 - round(10 * score + 0.1))) < 1e-4
               for score in scores)  # fmt: skip
