"""A kill at any moment loses only time: what is trained again is bit for bit what was lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import TINY, Crash, CrashingDisk, FullDisk, advance, fingerprint, training

from sparring.errors import SparringError
from sparring.runs import checkpoint
from sparring.runs.folder import RunFolder
from sparring.runs.metrics import read_matches
from sparring.runs.training import Training
from sparring.settings import to_toml

FIRST_SAVE, SECOND_SAVE, END = 24, 48, 72


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    torch.set_num_threads(1)
    run = training(tmp_path_factory.mktemp("uninterrupted") / "run")
    advance(run, END)
    assert run.learner.replay.rows_written > 2 * TINY.ddpg.buffer, "the replay must overflow"
    assert run.learner.updates >= 6
    assert run.measure.matches >= 2
    assert len(run.folder.metrics.read_bytes().splitlines()) == END // TINY.metrics_every
    run.close()
    return fingerprint(run)


def finish(path: Path) -> dict[str, str]:
    """Resume and train to the end."""
    run = training(path)
    advance(run, END)
    run.close()
    return fingerprint(run)


@pytest.fixture(scope="module")
def half_way(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that died in its second save: rows, matches and metrics are there that its checkpoint does not know of."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("half way") / "run"
    run = training(path)
    advance(run, FIRST_SAVE)
    run.save()
    advance(run, FIRST_SAVE + 16)
    run.store.append()
    run.close()
    return path


def begin(path: Path, disk: CrashingDisk, half_way: Path) -> None:
    """The first session of a run."""
    run = training(path, disk)
    advance(run, 6)
    run.save()
    run.close()


def go_on(path: Path, disk: CrashingDisk, half_way: Path) -> None:
    """A later session: a resume, and two saves that begin and remove segments."""
    shutil.copytree(half_way, path)
    run = training(path, disk)
    advance(run, SECOND_SAVE)
    run.save()
    advance(run, SECOND_SAVE + 10)
    run.save()
    run.close()


Session = Callable[[Path, CrashingDisk, Path], None]


@pytest.mark.parametrize("session", [begin, go_on])
def test_sessions_without_a_crash_change_nothing(
    tmp_path: Path, uninterrupted: dict[str, str], half_way: Path, session: Session
) -> None:
    session(tmp_path / "run", CrashingDisk(), half_way)
    assert finish(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
@pytest.mark.parametrize("session", [begin, go_on])
def test_a_crash_at_any_disk_call_loses_only_time(
    tmp_path: Path, uninterrupted: dict[str, str], half_way: Path, session: Session, power_loss: bool
) -> None:
    counted = CrashingDisk()
    session(tmp_path / "counted", counted, half_way)
    kinds = {call.split()[0] for call in counted.calls}
    assert kinds == (
        {"write", "sync", "rename"} if session is begin else {"write", "sync", "rename", "truncate", "remove"}
    )
    for at, call in enumerate(counted.calls):
        if call.startswith("sync") and not power_loss:
            continue  # a sync matters only where the power may fail
        for when in ("during", "after") if call.startswith("write") else ("after",):
            path = tmp_path / f"crash-{at}-{when}"
            with pytest.raises(Crash):
                session(path, CrashingDisk(at, when, power_loss=power_loss), half_way)
            assert finish(path) == uninterrupted, f"crash {when} call {at}, {call}"


def test_three_kills_of_a_real_process_lose_only_time(tmp_path: Path, uninterrupted: dict[str, str]) -> None:
    path = tmp_path / "run"
    script = Path(__file__).with_name("killed_run.py")
    for call, count in (("write matches.jsonl", 1), ("write latest.pt", 7), ("rename latest.pt", 9)):
        ended = subprocess.run(
            [sys.executable, str(script), str(path), call, str(count)], capture_output=True, text=True
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    run = training(path)
    assert 0 < run.decisions < END
    run.close()
    assert finish(path) == uninterrupted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_says_so(tmp_path: Path, number: int) -> None:
    recipe = tmp_path / "endless.toml"
    recipe.write_text(to_toml(replace(TINY, decisions=10**9)))
    command = [sys.executable, "-m", "sparring", "train", str(recipe), "--run", str(tmp_path / "run"), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:  # the last line before training
        if line.startswith("until decision"):
            break
    while not (tmp_path / "run" / "matches.jsonl").stat().st_size:
        assert process.poll() is None
        os.sched_yield()
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 128 + number
    result = json.loads(out)
    assert (result["status"], result["signal"]) == ("stopped", number)
    assert f"{signal.Signals(number).name}: saving" in err
    assert f"stopped: saved at decision {result['decisions']:,}" in err
    run = training(tmp_path / "run", recipe=replace(TINY, decisions=10**9))
    assert run.decisions == result["decisions"] > 0
    again = training(tmp_path / "again", recipe=replace(TINY, decisions=10**9))
    advance(again, run.decisions)
    assert fingerprint(run) == fingerprint(again)
    run.close()
    again.close()


def test_a_full_disk_is_one_line_and_the_last_checkpoint_is_whole(
    tmp_path: Path, uninterrupted: dict[str, str]
) -> None:
    """Wherever in a save the room ends: in a segment, in a log, in the checkpoint."""
    path = tmp_path / "run"
    first = training(path)
    advance(first, FIRST_SAVE)
    first.save()
    first.close()
    saved = first.folder.checkpoint.read_bytes()
    for room in (0, 100, 3_000, 10_000, 20_000):
        second = training(path, FullDisk(10**9))
        advance(second, SECOND_SAVE)
        assert isinstance(second.folder.disk, FullDisk)
        second.folder.disk.room = room
        with pytest.raises(SparringError) as caught:
            second.save()
        second.close()
        assert str(caught.value) == (
            f"{path}: No space left on device: stopped at decision 48; the last checkpoint is whole: "
            "make room, then give the same command again"
        )
        assert first.folder.checkpoint.read_bytes() == saved
        assert not list(path.glob("*.new")), "a half-written file would take the room that is needed"
    assert finish(path) == uninterrupted


def test_a_disk_that_is_full_from_the_start_is_one_line(tmp_path: Path) -> None:
    for room in (0, 2_000):
        with pytest.raises(SparringError, match=r"No space left on device: stopped at decision 0; nothing is lost"):
            training(tmp_path / "run", FullDisk(room))
    run = training(tmp_path / "run")  # the remains do not stand in the way
    assert run.folder.exists
    run.close()


def saved_run(path: Path, **changes: Any) -> None:
    run = training(path, recipe=replace(TINY, **changes))
    advance(run, FIRST_SAVE)
    run.save()
    run.close()


def resumed(path: Path, recipe: Any) -> tuple[Any, list[str]]:
    lines: list[str] = []
    run = Training(recipe, RunFolder(path), say=lines.append)
    run.resume()
    run.close()
    return run, lines


def test_changed_settings_are_shown_and_win(tmp_path: Path) -> None:
    saved_run(tmp_path / "run")
    changed = replace(TINY, decisions=999, ddpg=replace(TINY.ddpg, actor_lr=0.5))
    run, lines = resumed(tmp_path / "run", changed)
    assert lines == [
        "changed: decisions was 72, is now 999 (this command's settings win)",
        "changed: ddpg.actor_lr was 0.01, is now 0.5 (this command's settings win)",
    ]
    assert run.learner.config.actor_lr == 0.5
    assert {group["lr"] for group in run.learner.actor_optimiser.param_groups} == {0.5}
    assert "actor_lr = 0.5" in run.folder.recipe.read_text()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"seed": 6}, "run run was started with seed = 5, this command says 6: give 5, or choose another --run"),
        ({"lanes": 3}, "run run was started with lanes = 2, this command says 3: give 2, or choose another --run"),
        (
            {"tennis": replace(TINY.tennis, velocity="true")},
            'run run was started with tennis.velocity = "as-shipped", this command says "true": '
            'give "as-shipped", or choose another --run',
        ),
        (
            {"dqn": replace(TINY.dqn, levels=(2, 5))},
            "run run was started with dqn.levels = [5, 2], this command says [2, 5]: "
            "give [5, 2], or choose another --run",
        ),
        (
            {"ddpg": replace(TINY.ddpg, actor_hidden=(9, 8))},
            "{checkpoint}: actor.trunk.0.weight is [8, 24] in the checkpoint and [9, 24] by this recipe: a learner of "
            "another shape cannot be continued; give the settings the run was started with, or choose another --run",
        ),
        (
            {"ddpg": replace(TINY.ddpg, buffer=64)},
            "{replay} holds only rows from {first} on: a replay that has been full cannot grow to 64 rows",
        ),
    ],
    ids=["seed", "lanes", "velocity", "levels", "network", "buffer"],
)
def test_what_makes_another_run_is_refused_and_nothing_is_changed(
    tmp_path: Path, changes: dict[str, Any], line: str
) -> None:
    path = tmp_path / "run"
    saved_run(path)
    before = contents(path)
    with pytest.raises(SparringError) as caught:
        resumed(path, replace(TINY, **changes))
    first = checkpoint.read(path / "latest.pt")["replay"][0]["start"]
    assert str(caught.value) == line.format(checkpoint=path / "latest.pt", replay=path / "replay", first=first)
    assert contents(path) == before


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_smaller_replay_keeps_the_newest_rows(tmp_path: Path) -> None:
    saving = Training(TINY, RunFolder(tmp_path / "run"))  # one large segment
    saving.folder.create()
    saving.start()
    advance(saving, FIRST_SAVE)
    saving.save()
    saving.close()
    run, _ = resumed(tmp_path / "run", replace(TINY, ddpg=replace(TINY.ddpg, buffer=20)))
    whole, _ = resumed(tmp_path / "run", TINY)
    stop = whole.learner.replay.rows_written
    assert run.learner.replay.rows_written == stop > 20
    kept, expected = run.learner.replay.rows(stop - 20, stop), whole.learner.replay.rows(stop - 20, stop)
    assert all(torch.equal(kept[name], expected[name]) for name in expected)


def test_what_changes_rounding_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_run(tmp_path / "run")
    _, lines = resumed(tmp_path / "run", TINY)
    assert lines == []
    monkeypatch.setattr(torch, "__version__", "9.9.9")
    monkeypatch.setattr("sparring._core.source_hash", "abc")
    _, lines = resumed(tmp_path / "run", replace(TINY, threads=2))
    assert lines[0] == "changed: threads was 1, is now 2 (this command's settings win)"
    assert lines[1].startswith("not bitwise: torch was 2.")
    for part in ("is now 9.9.9", "threads was 1, is now 2", "is now abc"):
        assert part in lines[1]


def test_a_log_that_lost_rows_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    saved_run(tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").write_bytes(b"")
    _, lines = resumed(tmp_path / "run", TINY)
    assert len(lines) == 1
    assert lines[0].startswith("metrics.jsonl is shorter than the checkpoint says (0 of ")


def test_a_log_that_was_cut_within_a_row_goes_on_with_whole_rows(tmp_path: Path) -> None:
    run = training(tmp_path / "run")
    advance(run, 60)
    run.save()
    run.close()
    matches = tmp_path / "run" / "matches.jsonl"
    before = read_matches(matches)
    matches.write_bytes(matches.read_bytes()[:-10])
    run = training(tmp_path / "run")
    advance(run, 150)
    run.close()
    after = read_matches(matches)
    assert after[: len(before) - 1] == before[:-1] != []
    assert len(after) > len(before)
