"""A kill at any moment loses only time: what is trained again is bit for bit what was lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sparring.errors import SparringError
from sparring.settings import to_toml
from tiny_runs import TINY, Crash, CrashingDisk, FullDisk, advance, fingerprint, training

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


def story(path: Path, disk: CrashingDisk) -> None:
    """A first session that ends without a save, then a second one: every kind of disk call happens, resume included."""
    first = training(path, disk)
    advance(first, FIRST_SAVE)
    first.save()
    advance(first, FIRST_SAVE + 10)
    first.close()
    second = training(path, disk)
    advance(second, SECOND_SAVE)
    second.save()
    advance(second, SECOND_SAVE + 10)
    second.save()
    second.close()


def test_two_saves_and_a_resume_change_nothing(tmp_path: Path, uninterrupted: dict[str, str]) -> None:
    disk = CrashingDisk()
    story(tmp_path / "run", disk)
    for call in ("write", "sync", "rename", "sync folder", "truncate", "remove"):
        assert any(name.startswith(call + " ") for name in disk.calls), f"the story has no {call}"
    assert finish(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
@pytest.mark.parametrize("when", ["during", "after"])
def test_a_crash_at_any_disk_call_loses_only_time(
    tmp_path: Path, uninterrupted: dict[str, str], when: str, power_loss: bool
) -> None:
    counted = CrashingDisk()
    story(tmp_path / "counted", counted)
    crashes = 0
    for at, call in enumerate(counted.calls):
        # Only a write can be done by half, and a sync matters only where the power may fail.
        if (when == "during" and not call.startswith("write")) or (call.startswith("sync") and not power_loss):
            continue
        path = tmp_path / f"crash-{at}"
        with pytest.raises(Crash):
            story(path, CrashingDisk(at, when, power_loss=power_loss))
        assert finish(path) == uninterrupted, f"crash {when} call {at}, {call}"
        crashes += 1
    assert crashes > 20
