"""`sparring doctor` tells what is there, and for everything that is not, the mend."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

import sparring._core
from sparring import doctor

Usage = namedtuple("Usage", "total used free")


def by_name(found: list[doctor.Check]) -> dict[str, doctor.Check]:
    return {check.name: check for check in found}


def test_this_machine_is_ready_and_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.doctor(json=True) == 0
    lines = json.loads(capsys.readouterr().out)
    assert {line["status"] for line in lines} <= {"ok", "optional"}
    assert [line["name"] for line in lines] == [check.name for check in doctor.checks()]
    assert all(line["mend"] for line in lines if line["status"] != "ok")
    core = next(line for line in lines if line["name"] == "core")
    assert sparring._core.source_hash[:12] in core["found"]


def test_report_prints_every_mend_literally(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        doctor.Check(name="core", status="missing", found="gone", mend="build it"),
        doctor.Check(name="extra zoo", status="optional", found="none", mend="pip install 'sparring[zoo]'"),
    ]
    doctor.report(Console(width=100), found)
    out = capsys.readouterr().out
    assert "pip install 'sparring[zoo]'" in out
    assert "Not ready: core." in out


def test_the_core_was_built_from_these_sources() -> None:
    assert doctor.source_hash(doctor.SOURCES) == sparring._core.source_hash


def test_a_core_built_from_other_sources_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(doctor.SOURCES / "core", tmp_path / "core")
    monkeypatch.setattr(doctor, "SOURCES", tmp_path)
    (tmp_path / "core" / "tests" / "more.cpp").parent.mkdir(exist_ok=True)
    (tmp_path / "core" / "tests" / "more.cpp").write_text("// tests change no result\n")
    assert doctor.core().status == "ok"
    with (tmp_path / "core" / "module.cpp").open("a") as source:
        source.write("\n")
    assert doctor.core().status == "missing"
    assert "other sources" in doctor.core().found


def test_an_absent_core_fails_the_doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "sparring._core", None)
    assert doctor.doctor() == 1
    assert "Not ready: core." in capsys.readouterr().out


def test_a_full_disk_is_missing_and_a_folder_not_yet_made_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "not" / "yet"
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(1, 1, 2**30 if place == tmp_path else 2**50))
    check = doctor.disk("disk", folder)
    assert check.status == "missing"
    assert "1.0 GB free" in check.found
    assert "SPARRING_RUNS" in check.mend
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(1, 1, 2**40))
    assert doctor.disk("disk", folder).status == "ok"
    assert not folder.parent.exists()


def test_a_folder_that_cannot_be_written_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: False)
    assert doctor.disk("disk", tmp_path).status == "missing"
    assert doctor.cache("sparring").status == "missing"


def test_a_cache_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "unswbc" / "deep").mkdir(parents=True)
    (tmp_path / "unswbc" / "deep" / "kernel").write_bytes(bytes(3 * 2**20))
    assert doctor.cache("unswbc").found == f"3.0 MB in {tmp_path / 'unswbc'}"
    assert doctor.cache("sparring").found == f"0.0 MB in {tmp_path / 'sparring'}"


def test_the_judge_is_known_by_the_hash_of_its_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "unswbc_engine.wasm").write_bytes(b"other rules")
    package = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: package)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: doctor.JUDGE_VERSION)
    found = doctor.judge()
    assert found.status == "optional" and found.mend == f"for proofs: pip install 'unswbc=={doctor.JUDGE_VERSION}'"
    assert "matches are played by its rules, lockstep refuses it" in found.found
    monkeypatch.setattr(doctor, "JUDGE_ENGINE_SHA256", doctor.hashlib.sha256(b"other rules").hexdigest())
    assert doctor.judge().status == "ok"
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9.9")  # the engine alone makes the rules
    assert doctor.judge().status == "ok" and "9.9.9" in doctor.judge().found
    (tmp_path / "unswbc_engine.wasm").unlink()
    assert doctor.judge().status == "missing"
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert doctor.judge().status == "optional"


def test_extras_name_the_packages_that_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = importlib.metadata.requires("sparring") or []
    declared = {line.split("==")[-1].strip(" \"'") for line in requirements if "extra" in line}
    assert declared == {*doctor.EXTRAS, "loong"}
    monkeypatch.setattr(doctor, "_installed", lambda name: name != "pettingzoo")
    found = by_name(list(doctor.extras()))
    assert found["extra zoo"].status == "optional"
    assert found["extra zoo"].found == "without pettingzoo"
    assert "sparring[zoo]" in found["extra zoo"].mend
    assert found["extra unity"].found == "grpcio, protobuf"


def test_more_threads_than_cpus_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "usable_cpus", lambda: 3)
    monkeypatch.setattr(doctor.torch, "get_num_threads", lambda: 64)
    assert "OMP_NUM_THREADS=3" in doctor.threads().mend
    monkeypatch.setattr(doctor.torch, "get_num_threads", lambda: 3)
    assert doctor.threads().mend == ""


def test_a_missing_core_leaves_doctor_working_and_one_line_for_the_rest(tmp_path: Path) -> None:
    """The command itself, in a process that cannot import the core."""
    block = "import sys; sys.modules['sparring._core'] = None; sys.argv = ['sparring', *sys.argv[1:]]; "
    code = block + "from sparring.__main__ import main; sys.exit(main())"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path)

    examined = run("doctor", "--json")
    assert examined.returncode == 1
    core = next(check for check in json.loads(examined.stdout) if "core" in check["name"].lower())
    assert core["status"] == "missing"
    other = run("train", "tennis")
    assert (other.returncode, other.stderr.count("\n")) == (2, 1)
    assert "sparring doctor says how to mend it" in other.stderr
