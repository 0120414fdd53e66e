"""A student as a bot folder and a zip: complete, the same every time, readable again, and never half there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny_students import ORIGIN, SMALLEST, blob, open_map, opinionated
from unswbc.project import Project  # type: ignore[import-untyped, unused-ignore]

from sparring import _core
from sparring.cli import main
from sparring.distil import students as students_module
from sparring.distil.quantise import IntegerStudent, integers
from sparring.distil.students import save_student
from sparring.errors import SparringError
from sparring.export import bot as bot_module
from sparring.export.bot import read_bot, student_files, write_student
from sparring.export.reference import Asked, Reference
from sparring.judge import folder as folder_module
from sparring.judge.entrants import load_entrant
from sparring.judge.native import NativeEngine
from sparring.judge.sides import open_side
from sparring.kernels import core_folder
from sparring.policies.student import Student
from sparring.runs.folder import Disk

WEIGHTS = blob(SMALLEST)


def asked(turns: int) -> list[tuple[bytes, bytes]]:
    """Init and round blocks of the first turns of dragon 0 of a match, which goes on as long as it can."""
    found: list[tuple[bytes, bytes]] = []
    reference = Reference(IntegerStudent.from_blob(WEIGHTS), bot_module.build_of(WEIGHTS), 64)
    inits: dict[int, bytes] = {}

    def reply(dragon: int, block: bytes) -> bytes:
        (known,) = reference.ask([Asked(dragon % 64, inits[dragon], block)])
        if dragon == 0:
            found.append((inits[0], block))
        return known.reply if len(found) < turns else b""

    NativeEngine().run(open_map(), reply, lambda *_: None, inits.__setitem__, print, 0, 5)
    return found


def replies_of(blocks: list[tuple[bytes, bytes]]) -> list[bytes]:
    reference = Reference(IntegerStudent.from_blob(WEIGHTS), bot_module.build_of(WEIGHTS))
    return [reference.ask([Asked(0, *each)])[0].reply for each in blocks]


@pytest.mark.parametrize("weights", ["text", "embed"])
def test_a_folder_is_complete_and_is_read_again(tmp_path: Path, weights: bot_module.Weights) -> None:
    out = tmp_path / "made" / "bot"
    told = write_student(WEIGHTS, ORIGIN, out=out, zip=True, weights=weights)
    bot = read_bot(out)
    assert (bot.blob, bot.origin, bot.sources) == (WEIGHTS, ORIGIN, told.sources)
    assert told.sources in (out / "main.cpp").read_text().splitlines()[0]
    readme = (out / "README.md").read_text()
    assert all(hash in readme for hash in (ORIGIN.teacher, ORIGIN.student, ORIGIN.core))
    assert not any("inspection" in path.name for path in out.rglob("*"))
    assert "INSPECT" not in "".join(path.read_text("latin-1") for path in out.rglob("*") if path.is_file())
    # The zip is what the toolkit would submit, and the same every time.
    assert told.zip is not None
    project = Project.from_dir(out)
    project.collect_sources()
    with zipfile.ZipFile(told.zip) as archive:
        assert sorted(archive.namelist()) == sorted([*project.sources, "bot.toml"])
        assert all(archive.read(name) == (out / name).read_bytes() for name in archive.namelist())
    again = write_student(WEIGHTS, ORIGIN, out=tmp_path / "again", zip=True, weights=weights)
    assert again.zip is not None and again.zip.read_bytes() == told.zip.read_bytes()
    assert told.zip_bytes == len(told.zip.read_bytes())
    assert sorted(path.name for path in out.parent.iterdir()) == ["bot", "bot.zip"]


def test_both_ways_of_weights_and_a_native_build_reply_as_the_student_does(tmp_path: Path) -> None:
    blocks = asked(12)
    expected = replies_of(blocks)
    assert len(blocks) > 5
    for weights in ("text", "embed"):
        write_student(WEIGHTS, ORIGIN, out=tmp_path / weights, weights=weights)  # type: ignore[arg-type]
        with open_side(load_entrant(tmp_path / weights), seed=5, team="A") as side:
            side.spawn(0, blocks[0][0])
            assert [side.reply(0, block).reply for _, block in blocks] == expected
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return
    command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-I.", "main.cpp", "-o", "play"]
    subprocess.run(command, cwd=tmp_path / "text", check=True)
    told = blocks[0][0] + b"".join(block + b"\n" for _, block in blocks)
    said = subprocess.run([tmp_path / "text" / "play"], input=told, stdout=subprocess.PIPE, check=True).stdout
    assert said == b"".join(reply + b"ENDTURN\n" for reply in expected)


def test_no_stale_build_passes_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toolkit's cache looks at main.cpp alone: whatever else is another must be seen in it."""
    before = student_files(WEIGHTS, ORIGIN)
    bit = bytearray(WEIGHTS)
    bit[5000] ^= 1
    others = [student_files(bytes(bit), ORIGIN), student_files(bytes(bit), ORIGIN, "embed"), before]
    shutil.copytree(core_folder(), tmp_path / "core")
    with (tmp_path / "core" / "loong" / "memory.h").open("a") as header:
        header.write("// changed\n")
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "core_folder", lambda: tmp_path / "core")
        others.append(student_files(WEIGHTS, ORIGIN))
    assert len({files["main.cpp"] for files in others}) == 4
    assert len({files["main.cpp"].partition(b"\n")[2] for files in others}) == 1


def test_what_was_changed_or_is_of_another_core_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "bot"
    with pytest.raises(SparringError, match="is no exported student: there is no main"):
        read_bot(out)
    write_student(WEIGHTS, ORIGIN, out=out)
    (out / "build").mkdir()
    (out / "build" / "old.cpp").write_text("")  # what the toolkit's own builds leave is not the bot's
    read_bot(out)
    shutil.copytree(core_folder(), tmp_path / "core")
    with (tmp_path / "core" / "loong" / "packet.h").open("a") as header:
        header.write("// another\n")
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "core_folder", lambda: tmp_path / "core")
        with pytest.raises(SparringError, match=r"of another core .*: loong/packet.h differs; export"):
            read_bot(out)
    kept = (out / "weights.h").read_text()
    (out / "weights.h").write_text(kept.replace("0x", "0x1", 1))
    with pytest.raises(SparringError, match="was changed after its export"):
        read_bot(out)
    (out / "weights.h").write_text(kept)
    (out / "more.cpp").write_text("")  # the judge would compile it
    with pytest.raises(SparringError, match="was changed after its export"):
        read_bot(out)


def no_room_for_zips(path: Path, content: bytes) -> int:
    """`Path.write_bytes` on a disk that is full just then."""
    if path.suffix == ".zip":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with path.open("wb") as file:
        return file.write(content)


def test_nothing_is_written_over_and_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "bot"
    with monkeypatch.context() as patch:
        patch.setattr(bot_module, "MOST_ZIP_BYTES", 10_000)
        with pytest.raises(SparringError, match=r"the zip would have [\d,]+ bytes, and the judge takes at most 10,000"):
            write_student(WEIGHTS, ORIGIN, out=out, zip=True)
    with pytest.raises(SparringError, match="weights = 'hex': give text or embed"):
        write_student(WEIGHTS, ORIGIN, out=out, weights="hex")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "bot.zip").write_bytes(b"mine")
    with pytest.raises(SparringError, match=r"bot.zip is there already: give another --out"):
        write_student(WEIGHTS, ORIGIN, out=out, zip=True)
    assert [path.name for path in tmp_path.iterdir()] == ["bot.zip"]
    (tmp_path / "bot.zip").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", no_room_for_zips)
        with pytest.raises(SparringError, match=r"cannot write .*bot.zip: No space left on device"):
            write_student(WEIGHTS, ORIGIN, out=out, zip=True)
    assert list(tmp_path.iterdir()) == []
    write_student(WEIGHTS, ORIGIN, out=out)
    with pytest.raises(SparringError, match="is there already: give a folder that is new or empty"):
        write_student(WEIGHTS, ORIGIN, out=out)
    assert tempfile.gettempdir() not in (out / "main.cpp").read_text()
    assert _core.source_hash not in (out / "main.cpp").read_text()


def test_the_student_of_a_file_becomes_a_bot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    student, path, out = opinionated(SMALLEST), tmp_path / "round-0001.pt", tmp_path / "bot"
    saved(student, path)
    assert main(["export", "any-run", "--student", str(path), "--out", str(out), "--zip", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    bot = read_bot(out)
    assert bot.blob == integers(student).blob()
    assert bot.origin.teacher == "5" * 64 and bot.origin.core == _core.source_hash
    assert bot.origin.student == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (told["sources"], told["zip_bytes"]) == (bot.sources, (tmp_path / "bot.zip").stat().st_size)


def test_a_student_that_cannot_be_a_bot_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    large = opinionated(SMALLEST)
    with torch.no_grad():
        large.join.weight[3] = 1e6
    saved(large, tmp_path / "large.pt")
    with monkeypatch.context() as patch:
        patch.setattr(students_module, "_core", SimpleNamespace(source_hash="6" * 64))
        saved(opinionated(SMALLEST), tmp_path / "foreign.pt")
    before = sorted(tmp_path.iterdir())
    for words, text in (
        (["any", "--student", str(tmp_path / "large.pt")], "layer join, row 3: "),
        (["any", "--student", str(tmp_path / "foreign.pt")], "is a student of another core (666666666666, here "),
        (["any", "--student", str(tmp_path / "none.pt")], "none.pt"),
        (["no-run"], "no-run"),
    ):
        assert main(["export", *words, "--out", str(tmp_path / "bot"), "--zip"]) == 2
        said = capsys.readouterr()
        assert text in said.err and said.err.count("\n") == 1 and said.out == ""
    assert sorted(tmp_path.iterdir()) == before


def saved(student: Student, path: Path) -> None:
    """As a round of distillation writes it."""
    facts = {"preset": "student-tiny", "quantised": True, "teacher": "5" * 64, "round": 1, "decisions": 7, "told": {}}
    save_student(path, student, facts, Disk())
