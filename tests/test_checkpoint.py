"""Checkpoints and replay segments: whole or refused with one line, and nothing executed or overwritten."""

from __future__ import annotations

import errno
import io
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import TINY, FullDisk, advance, training

import sparring
from sparring.errors import SparringError
from sparring.runs import checkpoint
from sparring.runs.folder import Disk, RunFolder
from sparring.runs.training import Training


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A run whose replay fills several segments."""
    run = training(tmp_path / "run")
    advance(run, 48)
    run.save()
    run.close()
    assert len(list(run.folder.replay.iterdir())) >= 3
    return run.folder.path


def refusal(path: Path) -> str:
    """The line with which a resume is refused; the folder's content is then as it was."""
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(SparringError) as caught:
        Training(TINY, RunFolder(path)).resume()
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    line = str(caught.value)
    assert "\n" not in line
    assert "nothing was changed" in line or "choose another --run" in line
    return line


def resave(path: Path, **changes: Any) -> None:
    content = checkpoint.read(path / "latest.pt")
    torch.save({**content, **changes}, path / "latest.pt")


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_checkpoint_is_named_so(path: Path, share: float) -> None:
    whole = (path / "latest.pt").read_bytes()
    (path / "latest.pt").write_bytes(whole[: int(len(whole) * share)])
    assert "latest.pt is truncated" in refusal(path)


def test_an_empty_checkpoint_is_named_so(path: Path) -> None:
    (path / "latest.pt").write_bytes(b"")
    assert "latest.pt is empty" in refusal(path)


def test_one_wrong_bit_in_a_tensor_is_found(path: Path) -> None:
    content = bytearray((path / "latest.pt").read_bytes())
    weights = checkpoint.read(path / "latest.pt")["learner"]["actor"]["head.weight"].numpy().tobytes()
    content[content.index(weights)] ^= 1
    (path / "latest.pt").write_bytes(content)
    assert re.search(r"latest.pt is damaged \(checksum of .* is wrong\)", refusal(path))


def other_formats() -> dict[str, bytes]:
    archive, tensors, named = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("photo.jpg", "x")
    torch.save({"state_dict": torch.zeros(3)}, tensors)
    torch.save(torch.zeros(3), named)
    return {"text": b"hello", "zip": archive.getvalue(), "torch": tensors.getvalue(), "tensor": named.getvalue()}


@pytest.mark.parametrize("kind", ["text", "zip", "torch", "tensor"])
def test_a_foreign_file_is_named_so(path: Path, kind: str) -> None:
    (path / "latest.pt").write_bytes(other_formats()[kind])
    assert "latest.pt is not a Sparring checkpoint" in refusal(path)


class Executed:
    def __reduce__(self) -> Any:
        return os.mkdir, ("executed",)


def test_nothing_in_a_checkpoint_is_executed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path)
    torch.save({"format": checkpoint.FORMAT, "version": checkpoint.VERSION, "x": Executed()}, path / "latest.pt")
    assert "latest.pt is not a Sparring checkpoint" in refusal(path)
    assert not (path / "executed").exists()


def test_a_checkpoint_of_a_newer_version_is_named_so(path: Path) -> None:
    resave(path, version=checkpoint.VERSION + 1)
    assert "has checkpoint version 2, this Sparring reads version 1: update with pip install" in refusal(path)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("game", "chess", 'run run was started with game = "chess", this command says "tennis"'),
        ("algorithm", "sarsa", 'algorithm = "sarsa": must be one of "ddpg", "dqn", "ippo", "maddpg", "ppo"'),
        ("lanse", 3, "lanse: no such setting; did you mean lanes?"),
    ],
)
def test_a_checkpoint_of_another_game_or_learner_is_refused(path: Path, key: str, value: Any, line: str) -> None:
    recipe = checkpoint.read(path / "latest.pt")["recipe"]
    resave(path, recipe={**recipe, key: value})
    with pytest.raises(SparringError, match=re.escape(line)):
        Training(TINY, RunFolder(path)).resume()


def test_a_checkpoint_of_a_game_with_other_lane_state_is_refused(path: Path) -> None:
    learner = checkpoint.read(path / "latest.pt")["learner"]
    courts = learner["game"]["courts"]
    resave(path, learner={**learner, "game": {**learner["game"], "courts": courts[:, :-1]}})
    assert "does not fit this version of Sparring" in refusal(path)


def test_a_missing_part_is_refused(path: Path) -> None:
    learner = checkpoint.read(path / "latest.pt")["learner"]
    del learner["noise"]
    resave(path, learner=learner)
    assert "does not fit this version of Sparring" in refusal(path)


def test_weights_that_are_no_numbers_are_not_played(path: Path) -> None:
    learner = checkpoint.read(path / "latest.pt")["learner"]
    learner["actor_target"]["head.bias"][0] = float("nan")
    resave(path, learner=learner)
    with pytest.raises(SparringError, match=r"latest\.pt: head\.bias holds NaN or infinity"):
        sparring.load(path)


def segments(path: Path) -> list[Path]:
    return sorted((path / "replay").iterdir())


def test_a_missing_segment_is_refused(path: Path) -> None:
    segments(path)[1].unlink()
    assert f"{segments(path)[0].parent}" in (line := refusal(path))
    assert "cannot be read (No such file or directory)" in line


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_short_segment_is_refused(path: Path, place: int) -> None:
    segment = segments(path)[place]
    os.truncate(segment, segment.stat().st_size - 1)
    assert f"{segment} is shorter than the checkpoint says" in refusal(path)


@pytest.mark.parametrize("place", [0, 1, -1])
def test_one_wrong_bit_in_a_row_is_found(path: Path, place: int) -> None:
    segment = segments(path)[place]
    content = bytearray(segment.read_bytes())
    content[-5] ^= 1
    segment.write_bytes(content)
    assert f"{segment} has another content than the checkpoint recorded" in refusal(path)


def test_a_file_that_is_no_segment_is_refused(path: Path) -> None:
    segment = segments(path)[1]
    segment.write_bytes(b"x" * segment.stat().st_size)
    assert f"{segment} is not a whole replay segment" in refusal(path)


def test_rows_of_other_columns_are_refused(path: Path) -> None:
    segment = segments(path)[1]
    segment.write_bytes(segment.read_bytes().replace(b"reward", b"rewart"))
    assert f"{segment} holds rows of other columns than this game and recipe write (obs <f4 [24]" in refusal(path)


def test_what_was_stored_after_the_checkpoint_is_cut_off(path: Path) -> None:
    last = segments(path)[-1]
    length = last.stat().st_size
    with last.open("ab") as file:
        file.write(b"rows of a lost save")
    (path / "replay" / "000000000999.rows").write_bytes(b"a segment of a lost save")
    run = training(path)
    assert last.stat().st_size == length
    assert last == segments(path)[-1]
    run.close()


def test_segments_outside_the_buffer_are_removed_and_no_others(path: Path) -> None:
    run = training(path)
    advance(run, 72)
    run.save()
    oldest = run.learner.replay.rows_written - TINY.ddpg.buffer
    records = checkpoint.read(path / "latest.pt")["replay"]
    assert [record["file"] for record in records] == [segment.name for segment in segments(path)]
    assert records[0]["start"] <= oldest < records[0]["start"] + records[0]["rows"]
    assert records[-1]["start"] + records[-1]["rows"] == run.learner.replay.rows_written
    run.close()


def test_after_a_long_time_without_a_save_only_what_the_buffer_holds_is_stored(tmp_path: Path) -> None:
    run = training(tmp_path / "run")
    advance(run, 8)
    run.save()
    advance(run, 72)
    run.save()
    stored = sum(record["rows"] for record in checkpoint.read(run.folder.checkpoint)["replay"])
    assert stored == TINY.ddpg.buffer
    before = run.learner.replay.columns()
    run.close()
    again = training(tmp_path / "run")
    assert all(torch.equal(column, before[name]) for name, column in again.learner.replay.columns().items())
    again.close()


def test_replacing_a_file_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    Disk().replace(path, b"old")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        FullDisk(2).replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    FullDisk(3).replace(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_run_is_held_by_one_process(path: Path) -> None:
    folder = RunFolder(path)
    assert not folder.training
    with folder.lock():
        assert folder.training
        line = f"^run run is being trained by process {os.getpid()}: wait for it, stop it, or choose another --run$"
        with pytest.raises(SparringError, match=line), RunFolder(path).lock():
            pass
    with RunFolder(path).lock():
        pass


def test_a_lock_left_by_a_dead_process_holds_nothing(path: Path) -> None:
    (path / "lock").write_text("1\n")
    with RunFolder(path).lock():
        assert (path / "lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("strange", ["holiday.jpg", "matches.jsonl", "replay/000000000000.rows"])
def test_a_folder_with_something_else_in_it_is_not_taken(tmp_path: Path, strange: str) -> None:
    path = tmp_path / "run"
    (path / strange).parent.mkdir(parents=True)
    (path / strange).write_text("x")
    with pytest.raises(SparringError, match=f"has no latest.pt but holds {strange.split('/')[0]}: nothing was touched"):
        RunFolder(path).create()
    assert [file for file in path.rglob("*") if file.is_file()] == [path / strange]


def test_a_file_in_the_place_of_a_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(SparringError, match="is a file, not a run folder"):
        RunFolder(tmp_path / "run").create()
    with pytest.raises(SparringError, match="cannot be created: Not a directory"):
        RunFolder(tmp_path / "run" / "inner").create()


@pytest.mark.parametrize("part", ["recipe", "learner", "measure", "replay", "seconds", "made_with", "logs", "game"])
def test_a_checkpoint_without_one_of_its_parts_is_named_so(path: Path, part: str) -> None:
    content = checkpoint.read(path / "latest.pt")
    del content[part]
    torch.save(content, path / "latest.pt")
    assert f"does not fit this version of Sparring (no {part})" in refusal(path)


def test_any_wrong_bytes_are_one_line(path: Path) -> None:
    """Also where they say that the archive is encrypted, or of several disks."""
    whole = (path / "latest.pt").read_bytes()
    directory = whole.index(b"PK\x01\x02")
    for place in range(directory, len(whole), 5):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        (path / "latest.pt").write_bytes(broken)
        try:
            checkpoint.read(path / "latest.pt")  # some bytes, such as times, mean nothing
        except SparringError as error:
            assert "\n" not in str(error)


def test_records_of_segments_that_make_no_sense_are_refused(path: Path) -> None:
    records = checkpoint.read(path / "latest.pt")["replay"]
    resave(path, replay=[{**records[0], "rows": "many"}])
    assert "does not fit this version of Sparring" in refusal(path)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"actor_hidden": (8, 8, 8)},
            "the networks of this recipe have actor.trunk.5.bias, those of the checkpoint do not",
        ),
        ({"actor_hidden": (8,)}, "the networks of the checkpoint have actor.trunk.3.bias, those of this recipe do not"),
    ],
)
def test_another_number_of_layers_is_named_so(path: Path, change: dict[str, Any], line: str) -> None:
    with pytest.raises(SparringError, match=re.escape(line)):
        Training(replace(TINY, ddpg=replace(TINY.ddpg, **change)), RunFolder(path)).resume()


def test_files_of_the_users_in_the_replay_folder_stay(path: Path) -> None:
    (path / "replay" / "notes").mkdir()
    (path / "replay" / "notes.txt").write_text("mine")
    run = Training(TINY, RunFolder(path))
    run.resume()
    run.close()
    assert (path / "replay" / "notes").is_dir()
    assert (path / "replay" / "notes.txt").read_text() == "mine"


def test_a_segment_by_another_name_is_refused(path: Path, tmp_path: Path) -> None:
    """A doctored checkpoint must not point the resume at files outside its replay."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"kept")
    records = checkpoint.read(path / "latest.pt")["replay"]
    records[-1]["file"] = f"../../{precious.name}"
    resave(path, replay=records)
    assert "names a segment '../../precious', which is none" in refusal(path)
    assert precious.read_bytes() == b"kept"


def test_guesses_that_only_one_side_has_are_told() -> None:
    saved: dict[str, Any] = {"guesses": {"0.1.head.bias": torch.zeros(2)}}
    told = checkpoint.misfit(saved, {"guesses": {}})
    assert told == "the networks of the checkpoint have guesses.0.1.head.bias, those of this recipe do not"
