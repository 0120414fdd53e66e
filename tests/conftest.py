"""What every test shares: one torch thread, repeatable property tests, and a runs folder of its own."""

import signal
from pathlib import Path

import hypothesis
import pytest
import torch

# One thread: sums are then added in one order on every machine, and tests do not fight for cores.
torch.set_num_threads(1)

# A shell that starts its jobs in the background has them ignore Ctrl-C, and they would hand that on.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, and no deadline: a slow machine is not a fault.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def runs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs of this test live: an empty folder, not the developer's."""
    folder = tmp_path / "runs"
    monkeypatch.setenv("SPARRING_RUNS", str(folder))
    return folder
