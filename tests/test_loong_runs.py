"""Runs of Loong: recipes, what they report, kills and resumes, what cannot be continued."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from loong_maps import simple_map
from rich.console import Console
from tiny_loong import LANES, UPDATE, tiny_recipe
from tiny_runs import TINY, Crash, CrashingDisk, advance, fingerprint, training

import sparring
from sparring.errors import SparringError
from sparring.learn.matches import ITSELF, LoongMatchRow
from sparring.levels.shipped import shipped_folder
from sparring.pictures import scores
from sparring.runs import listing
from sparring.runs.folder import RunFolder
from sparring.runs.learners import training_maps
from sparring.runs.metrics import LoongMeasure, read_json_lines, read_loong_matches
from sparring.runs.recipe import Recipe, load_recipe
from sparring.settings import to_toml

SILENT = Console(quiet=True)
END = 6 * UPDATE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the maps of this module's runs lie."""
    return tmp_path_factory.mktemp("loong")


@pytest.fixture(scope="module")
def recipe(place: Path) -> Recipe:
    return tiny_recipe(place)


@pytest.fixture(scope="module")
def uninterrupted(place: Path, recipe: Recipe) -> dict[str, str]:
    run = training(place / "uninterrupted", recipe=recipe)
    advance(run, END)
    run.close()
    assert run.learner.updates == 6
    assert {row.opponent for row in read_loong_matches(run.folder.matches)} >= {"legal", ITSELF}
    assert len(read_json_lines(run.folder.metrics)) == 0, "metrics_every is longer than this run"
    return fingerprint(run)


@pytest.fixture(scope="module")
def saved(place: Path, recipe: Recipe) -> Path:
    """A run that was saved after three updates and died after one more."""
    run = training(place / "saved", recipe=recipe)
    advance(run, 3 * UPDATE)
    run.save()
    advance(run, 4 * UPDATE)
    run.close()
    return run.folder.path


def test_what_a_kill_cost_is_trained_again_bit_for_bit(
    tmp_path: Path, recipe: Recipe, saved: Path, uninterrupted: dict[str, str]
) -> None:
    """Open lives, running lanes and the table of levels included."""
    shutil.copytree(saved, tmp_path / "run")
    run = training(tmp_path / "run", recipe=recipe)
    state = run.learner.state()
    assert run.decisions == 3 * UPDATE
    assert state["collector"]["memory"].abs().sum() > 0, "no life was open"
    assert (state["game"]["decision"] > 0).any()
    assert state["levels"]["starts"] > LANES
    advance(run, END)
    run.close()
    assert fingerprint(run) == uninterrupted


def test_standings_of_round_100_outlast_a_resume(tmp_path: Path, recipe: Recipe, saved: Path) -> None:
    """Matches of these tests are shorter."""
    shutil.copytree(saved, tmp_path / "run")
    run = training(tmp_path / "run", recipe=recipe)
    run.learner.state()["milestone"].copy_(torch.arange(LANES * 8).view(LANES, 2, 4))
    run.save()
    run.close()
    again = training(tmp_path / "run", recipe=recipe)
    assert torch.equal(again.learner.state()["milestone"].view(-1).long(), torch.arange(LANES * 8))
    again.close()


def test_a_crash_within_a_save_leaves_the_old_checkpoint_or_the_new_one(
    tmp_path: Path, recipe: Recipe, saved: Path, uninterrupted: dict[str, str]
) -> None:
    def session(path: Path, disk: CrashingDisk) -> None:
        shutil.copytree(saved, path)
        run = training(path, disk, recipe)
        advance(run, 4 * UPDATE)
        run.save()
        run.close()

    counted = CrashingDisk()
    session(tmp_path / "counted", counted)
    left = set()
    for at, call in enumerate(counted.calls):
        if call not in ("write matches.jsonl", "write latest.pt.new", "rename latest.pt"):
            continue
        with pytest.raises(Crash):
            session(tmp_path / str(at), CrashingDisk(at, "during" if call.startswith("write") else "after"))
        run = training(tmp_path / str(at), recipe=recipe)
        left.add(run.learner.updates)
        advance(run, END)
        run.close()
        assert fingerprint(run) == uninterrupted, f"crash in call {at}, {call}"
    assert left == {3, 4}


def test_a_killed_process_loses_only_time(tmp_path: Path, recipe: Recipe, uninterrupted: dict[str, str]) -> None:
    path = tmp_path / "run"
    (tmp_path / "tiny.toml").write_text(to_toml(replace(recipe, save_updates=1)))
    script = Path(__file__).with_name("killed_run.py")
    command = [sys.executable, str(script), str(path), "rename latest.pt", "4", str(tmp_path / "tiny.toml")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    run = training(path, recipe=recipe)
    assert run.learner.updates == 3
    advance(run, END)
    run.close()
    assert fingerprint(run) == uninterrupted


def test_it_saves_after_so_many_updates(tmp_path: Path, recipe: Recipe) -> None:
    class Counting(CrashingDisk):
        pass

    disk = Counting()
    often = replace(recipe, save_updates=2, decisions=5 * UPDATE)
    sparring.train(often, run=RunFolder(tmp_path / "run", disk=disk), console=SILENT)
    assert disk.calls.count("rename latest.pt") == 1 + 2 + 1  # at the start, after updates 2 and 4, at the end


def test_no_number_stops_the_run_and_the_last_checkpoint_is_whole(tmp_path: Path, recipe: Recipe, saved: Path) -> None:
    shutil.copytree(saved, tmp_path / "run")
    before = (tmp_path / "run" / "latest.pt").read_bytes()
    run = training(tmp_path / "run", recipe=recipe)
    run.learner.teacher.join.weight.register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(SparringError, match=r"^update 3: the gradient of teacher\.join\.weight is not finite: "):
        run.step()
    run.close()
    assert (tmp_path / "run" / "latest.pt").read_bytes() == before
    training(tmp_path / "run", recipe=recipe).close()


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"selfplay.preset": "small"}, 'was started with selfplay.preset = "tiny", this command says "small": '),
        ({"lanes": 5}, "was started with lanes = 4, this command says 5: "),
        ({"loong.maps": ["generated:0:2"]}, "was started with loong.maps = ["),
    ],
)
def test_what_makes_another_run_is_one_line(saved: Path, recipe: Recipe, changes: dict[str, Any], line: str) -> None:
    before = contents(saved)
    with pytest.raises(SparringError) as caught:
        sparring.train(recipe, run=saved, console=SILENT, **changes)
    assert line in str(caught.value) and "\n" not in str(caught.value)
    assert {name: content for name, content in contents(saved).items() if name not in ("log.txt", "lock")} == {
        name: content for name, content in before.items() if name not in ("log.txt", "lock")
    }


def test_matches_of_another_core_or_on_other_maps_cannot_go_on(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tiny_recipe(tmp_path)
    run = training(tmp_path / "run", recipe=own)
    run.close()
    with monkeypatch.context() as patch:
        patch.setattr("sparring._core.source_hash", "0123456789abcdef")
        with pytest.raises(SparringError, match=r"holds matches of another core .*, here 0123456789ab.: go on with"):
            training(tmp_path / "run", recipe=own)
    (tmp_path / "maps" / "wide.map").write_bytes(simple_map("9 10", ("0 3 1 1 2 1 2 2", "1 3 6 6 7 6 7 7")))
    with pytest.raises(SparringError, match=r"run run was started with other maps than are in .*/maps now: bring"):
        training(tmp_path / "run", recipe=own)


def test_the_maps_of_the_judge_never_train_and_a_broken_one_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.map").write_bytes(simple_map())
    (tmp_path / "again.map").write_bytes(simple_map())
    assert len(training_maps([str(tmp_path), str(tmp_path / "a.map"), "generated:3:2"])) == 3
    shutil.copy(shipped_folder() / "arena.map", tmp_path / "mine.map")
    for source in ([str(tmp_path)], ["shipped"]):
        with pytest.raises(
            SparringError, match=r"^loong\.maps: .* is \w+, which ships with the judge: no run trains on"
        ):
            training_maps(source)
    (tmp_path / "mine.map").write_bytes(simple_map()[:-20])
    with pytest.raises(SparringError, match=r"mine\.map") as caught:
        training_maps([str(tmp_path)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('game = "loong"', 'algorithm = "ddpg": loong needs "ppo"'),
        ('algorithm = "ppo"', 'algorithm = "ppo": tennis needs ddpg, dqn, ippo or maddpg'),
        ("[loong]\nmaps = []", 'loong.maps = []: must name maps, such as ["generated:0:4096"]'),
        ('[selfplay]\nopponents = ["bob"]', 'selfplay.opponents = ["bob"]: no player bob: there are '),
        ('[selfplay]\nopponents = ["legal", "legal"]', 'selfplay.opponents = ["legal", "legal"]: one is named twice'),
        ("[selfplay]\nopponents = []", "selfplay.opponents = []: must name players, as selfplay.scripted is 0.5"),
        ("[selfplay.ppo]\nentropy = [0.1]", "selfplay.ppo.entropy = [0.1]: must be two numbers, for the start and "),
        ("[selfplay.ppo]\nsteps = 0", "selfplay.ppo.steps = 0: must be at least 1"),
        ("[selfplay.levels]\ntemperature = 0", "selfplay.levels.temperature = 0.0: must be more than 0"),
        ("lanes = 64\ndecisions = 64", "decisions = 64: must be at least 8192: an update takes 128 of each of 64 "),
    ],
)  # fmt: skip
def test_each_fault_of_a_recipe_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "bad.toml"
    head = "" if "algorithm" in text or text.startswith("game") else 'game = "loong"\nalgorithm = "ppo"\n'
    path.write_text(head + text)
    with pytest.raises(SparringError) as caught:
        load_recipe(path)
    assert str(caught.value).startswith(f"{path}: {line}") and "\n" not in str(caught.value)


def test_a_game_of_ones_own_is_not_learnt_by_ppo(tmp_path: Path, recipe: Recipe) -> None:
    with pytest.raises(
        SparringError, match='algorithm = "ppo": it learns loong alone; tennis needs ddpg, dqn, ippo or maddpg'
    ):
        sparring.train(recipe, run=tmp_path / "run", console=SILENT, game=lambda lanes, seed: sparring.make("tennis"))


def test_a_session_says_what_it_trains_and_leaves_what_it_promises(tmp_path: Path, recipe: Recipe) -> None:
    said = io.StringIO()
    result = sparring.train(
        replace(recipe, metrics_every=1, save_updates=5, decisions=2 * UPDATE),
        run=tmp_path / "run",
        console=Console(file=said, width=300),
    )
    text = said.getvalue()
    assert "loong, ppo, seed 5: 4 lanes, 1 threads of" in text
    assert "teacher tiny of 0.36 M weights, critic of 0.0" in text
    assert "2 maps; 50% of the matches against foil, legal, the others against itself" in text
    assert "saved every 3600 s or 5 updates, and on Ctrl-C" in text
    assert "finished: saved at decision 96, 2 updates, " in text
    assert "replay" not in text
    assert (result.status, result.decisions, result.updates) == ("finished", 2 * UPDATE, 2)
    rows = read_json_lines(result.path / "metrics.jsonl")
    assert [row["decisions"] for row in rows] == [UPDATE, 2 * UPDATE]
    assert {
        "deaths_kelp", "deaths_no_action",
        "score", "length", "matches", "queen_end", "longest_end_theirs", "total_100", "explained_variance", "kl",
        "entropy_kind", "entropy_claim", "levels_seen", "seconds",
    } <= set(rows[-1])  # fmt: skip
    assert rows[-1]["levels_seen"] == 2
    assert {path.name for path in result.path.iterdir()} >= {"curve.png", "latest.pt", "matches.jsonl", "recipe.toml"}
    assert load_recipe(result.path / "recipe.toml").selfplay == recipe.selfplay


def test_runs_of_loong_are_listed_and_compared_among_themselves(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARRING_RUNS", str(tmp_path))
    short = replace(recipe, decisions=UPDATE)
    for seed in (1, 2):
        sparring.train(short, run=f"loong-{seed}", seed=seed, console=SILENT)
    infos = listing.list_runs()
    assert {(info.run, info.game, info.updates, info.fault) for info in infos} == {
        ("loong-1", "loong", 1, None),
        ("loong-2", "loong", 1, None),
    }
    compared = listing.compare()
    assert [group.runs for group in compared.groups] == [("loong-1", "loong-2")]
    assert compared.picture.read_bytes().startswith(b"\x89PNG")
    sparring.train(replace(TINY, decisions=2), run="tennis", console=SILENT)
    with pytest.raises(SparringError, match="loong-1 plays Loong, tennis plays Tennis: name runs of one game"):
        listing.compare()


def ended(number: int, opponent: str, result: float, **changes: Any) -> LoongMatchRow:
    row = LoongMatchRow(
        match=number, lane=0, level=0, opponent=opponent, team=0, result=result, rounds=20 + number, dragons=(2, 1),
        total=(9, 3), queen=(4, 0), longest=(5, 3), at=100 * number, updates=number,
    )  # fmt: skip
    return replace(row, **changes)


def test_scores_are_those_of_the_last_hundred_matches_with_each() -> None:
    measure = LoongMeasure(0.75)
    assert measure.parts() == ["matches 0"]
    assert measure.summary() == "no match against another player has ended"
    assert not measure.add(ended(0, ITSELF, 1), seconds=0.0)
    assert measure.score is None
    assert (measure.row()["queen_end"], measure.row()["queen_100"]) == (4.0, None)
    for number in range(60):
        measure.add(ended(number, "forager", -1, queen=(0, 7)), seconds=60.0)
    solving = [
        measure.add(ended(number, "legal", 1, queen_100=(3, 2) if number < 2 else None), seconds=60.0)
        for number in range(98)
    ]
    assert [number for number, solved in enumerate(solving) if solved] == [74]
    assert measure.scores == {"forager": 0.0, "legal": 1.0}
    assert measure.score == 0.98  # two of the last hundred were lost
    assert measure.solved is not None
    assert measure.solved.decisions == 7400  # when 75 of the last 100 were won
    measure.add(ended(98, "legal", 0), seconds=60.0)
    row = measure.row()
    assert row["score_legal"] == pytest.approx(98.5 / 99)
    assert row["queen_end"] == pytest.approx(99 * 4 / 159)
    assert row["queen_end_theirs"] == pytest.approx(60 * 7 / 159)
    assert (row["queen_100"], row["queen_100_theirs"], row["matches"]) == (3.0, 2.0, 160)
    assert (row["deaths_kelp"], row["deaths_another"]) == (None, None)
    measure.add(ended(99, "legal", 0, deaths=(1, 2, 6, 0, 0)), seconds=60.0)
    measure.add(ended(100, "legal", 0, deaths=(0, 0, 3, 0, 1)), seconds=60.0)
    assert (measure.row()["deaths_kelp"], measure.row()["deaths_another"]) == (0.5, 4.5)
    row = measure.row()
    assert measure.parts() == ["matches 162", "score against forager 0.00, legal 0.98"]
    copy = LoongMeasure(0.75)
    copy.load_state(measure.state())
    assert (copy.row(), copy.state()) == (row, measure.state())
    json.dumps(row)


def test_the_curve_of_a_run_has_a_line_for_each_opponent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, tuple[Any, Any]] = {}

    def keep(figure: Any, path: Path) -> None:
        drawn.clear()
        for line in figure.axes[0].lines:
            drawn[line.get_label()] = line.get_data()

    monkeypatch.setattr(scores, "save_chart", keep)
    rows = [ended(number, name, (-1) ** number) for number in range(150) for name in ("legal", "forager", ITSELF)]
    scores.draw_scores({"one": rows}, tmp_path / "a.png")
    lines = {label: data for label, data in drawn.items() if label.startswith("against")}
    assert set(lines) == {"against forager: now 0.50", "against legal: now 0.50"}
    x, y = lines["against legal: now 0.50"]
    assert x.tolist() == [100 * number for number in range(150)]
    assert y[:3].tolist() == [1.0, 0.5, 2 / 3]
    other = [ended(number, "legal", 1) for number in range(50)]
    scores.draw_scores({"one": rows, "two": other, "three": []}, tmp_path / "a.png", groups={"one": "g", "two": "g"})
    assert "g: 2 runs and their median, now 0.75" in drawn
    scores.draw_scores({"one": [ended(0, ITSELF, 1)]}, tmp_path / "a.png")
    assert not [label for label in drawn if "now" in label]


def test_matches_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [ended(0, "legal", 1, queen_100=(3, 2)), ended(1, ITSELF, 0)]
    (tmp_path / "matches.jsonl").write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    assert read_loong_matches(tmp_path / "matches.jsonl") == rows
