"""Many matches at once: whatever happens to a process, each is counted once and nothing stays behind."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import fake_matches
import pytest

from sparring.errors import SparringError
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import PlayedMatch
from sparring.judge.records import FailedMatch
from sparring.judge.schedule import Job, schedule
from sparring.judge.work import entrant_here, play_all, play_job
from sparring.levels.pool import named_maps

TWO = fake_matches.entrant("100"), fake_matches.entrant("0")


def job(number: int, name: str = "well") -> Job:
    return Job(a=TWO[0], b=TWO[1], map_name=name, map_hash="m", map_bytes=b"", seed=number)


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "waited a minute"
        time.sleep(0.02)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tries"
    folder.mkdir()
    monkeypatch.setenv("TRIES", str(folder))
    return folder


def test_every_match_is_counted_once_whatever_happens(tries: Path) -> None:
    names = ["well", "dies-once", "well", "dies", "raises", "well", "well"]
    jobs = [job(number, name) for number, name in enumerate(names)]
    found = list(play_all(jobs, workers=2, play=fake_matches.play_badly))
    assert sorted(each.seed for each, _ in found) == list(range(7))
    for each, record in found:
        if each.map_name in ("dies", "raises"):
            assert isinstance(record, FailedMatch)
            because = "its process died (signal SIGKILL)" if each.map_name == "dies" else "ZeroDivisionError: no dragon"
            assert (record.error, record.a.name) == (because, "100")
        else:
            assert record == fake_matches.play(each)
    tried = [path.name.rsplit("-", 2)[0] for path in tries.iterdir()]
    assert {name: tried.count(name) for name in set(tried)} == {"well": 4, "dies-once": 2, "dies": 2, "raises": 2}
    assert not multiprocessing.active_children()


def test_an_error_for_the_person_ends_it_all(tries: Path) -> None:
    with pytest.raises(SparringError, match="the map is refused"):
        list(play_all([job(1, "endless"), job(2, "refused")], play=fake_matches.play_badly))
    assert not multiprocessing.active_children()


def test_closed_early_it_leaves_no_process(tries: Path) -> None:
    going_on = play_all([job(1), job(2, "endless"), job(3)], play=fake_matches.play_badly)
    assert next(going_on)[0].seed == 1
    going_on.close()
    assert not multiprocessing.active_children()
    assert not any(alive(int(path.name.rsplit("-", 1)[1])) for path in tries.iterdir())


def test_processes_end_with_a_parent_that_was_killed(tries: Path) -> None:
    script = (
        "import fake_matches, test_work\n"
        "from sparring.judge.work import play_all\n"
        "if __name__ == '__main__':\n"
        "    list(play_all([test_work.job(n, 'endless') for n in (1, 2)], play=fake_matches.play_badly))\n"
    )
    path = tries.parent / "parent.py"
    path.write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, str(path)], env=environment)
    wait_until(lambda: len(list(tries.iterdir())) == 2)
    children = [int(each.name.rsplit("-", 1)[1]) for each in tries.iterdir()]
    assert all(alive(child) for child in children)
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(alive(child) for child in children))


def test_no_workers_are_refused() -> None:
    with pytest.raises(SparringError, match="workers = 0"):
        list(play_all([job(1)], workers=0))


def real_jobs(*names: str) -> list[Job]:
    one, other = (load_entrant(name) for name in names)
    return list(schedule([one, other], named_maps("generated:5:1"), seed=1, matches=2))


def test_real_matches_are_the_same_in_another_process() -> None:
    found = dict(play_all(real_jobs("legal", "reckless"), workers=2))
    assert len(found) == 2
    for each, record in found.items():
        assert record == play_job(each)


def play_either(each: Job) -> PlayedMatch:
    return play_job(each) if each.map_bytes else fake_matches.play_badly(each)


def test_on_a_cluster_it_is_the_same(tries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    real = real_jobs("legal", "reckless")
    jobs = [*real, job(1, "dies"), job(2, "dies-once"), job(3, "raises")]
    found = dict(play_all(jobs, workers=2, cluster="local", play=play_either))
    assert len(found) == len(jobs)
    assert [found[each] for each in real] == [play_job(each) for each in real]
    assert found[jobs[3]] == fake_matches.play(jobs[3])
    assert str(getattr(found[jobs[2]], "error", None)).startswith("WorkerCrashedError: ")
    assert getattr(found[jobs[4]], "error", None) == "ZeroDivisionError: no dragon"


def test_entrants_travel_as_what_they_are_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    far = Entrant("bot", "wasm", hashlib.sha256(b"its code").hexdigest(), Path("/nowhere/bot.wasm"))
    here = entrant_here(far, b"its code")
    assert here.path is not None and here.path.is_relative_to(tmp_path) and here.path.read_bytes() == b"its code"
    assert replace(here, path=far.path) == far
    legal = load_entrant("legal")
    assert entrant_here(legal, None) == legal
    with pytest.raises(SparringError, match="another legal: install the same Sparring"):
        entrant_here(replace(legal, hash="that of another core"), None)


def test_a_cluster_that_is_not_there_is_one_line() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for each in (address, f"ray://{address}", "127.0.0.1:99999"):
            with pytest.raises(SparringError, match=f"no Ray cluster at {each}: "):
                list(play_all([job(1)], cluster=each))
