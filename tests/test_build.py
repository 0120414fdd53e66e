"""Bots built by their content, and what is no bot: one line each, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sparring import _core, doctor
from sparring.cache import cache_folder, prune, share, used
from sparring.errors import SparringError
from sparring.judge import build
from sparring.judge.entrants import load_entrant

BOT = Path(__file__).parent / "bots" / "moody"


def zipped(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_zip_a_folder_and_its_wasm_are_one_entrant_and_a_header_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = load_entrant(BOT)
    files = {path.name: path.read_bytes() for path in BOT.iterdir()}
    shutil.copytree(BOT, tmp_path / "copy")
    (tmp_path / "copy" / ".notes").write_text("no part of it")
    shutil.copy(str(bot.path), tmp_path / "bot.wasm")
    monkeypatch.setattr(build, "_built", lambda *_: pytest.fail("this is built already"))
    for each in (zipped(tmp_path / "bot.zip", **files), tmp_path / "copy", tmp_path / "bot.wasm"):
        again = load_entrant(each)
        assert (again.hash, again.name) == (bot.hash, each.stem)
    for name, content in (("moods.h", b" "), ("weights.bin", b"\0")):
        monkeypatch.setattr(build, "_built", lambda *_: b"built anew")
        changed = zipped(tmp_path / "changed.zip", **{**files, name: files.get(name, b"") + content})
        assert build.build_bot(changed).read_bytes() == b"built anew"
        build.build_bot(changed).unlink()


def test_a_wasm_that_is_overwritten_later_plays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "bot.wasm"
    shutil.copy(str(load_entrant(BOT).path), path)
    loaded = load_entrant(path)
    path.write_bytes(b"another")
    assert loaded.path is not None and loaded.path != path and loaded.path.read_bytes() != b"another"


def test_names_are_players_and_a_path_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [load_entrant(name) for name in _core.LOONG_SCRIPTS]
    assert [each.name for each in found] == list(_core.LOONG_SCRIPTS)
    assert len({each.hash for each in found}) == len(found) and {each.kind for each in found} == {"scripted"}
    monkeypatch.chdir(tmp_path)
    shutil.copytree(BOT, tmp_path / "hunter")
    assert load_entrant("hunter").hash == load_entrant(BOT).hash


def test_the_first_error_of_the_compiler_is_told_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(build.tempfile, "tempdir", str(tmp_path / "work"))
    (tmp_path / "bot" / "main.c").write_text("int main(void) {\n  int a = 1\n  return b;\n}\n")
    with pytest.raises(SparringError) as error:
        load_entrant(tmp_path / "bot")
    assert (
        str(error.value) == f"{tmp_path}/bot does not compile: main.c:2:12: error: expected ';' at end of declaration"
    )
    (tmp_path / "bot" / "main.c").write_text("int elsewhere(void);\nint main(void) { return elsewhere(); }\n")
    with pytest.raises(SparringError, match=r"^\S+ does not compile: wasm-ld: error: .*undefined symbol: elsewhere$"):
        load_entrant(tmp_path / "bot")
    assert not list((tmp_path / "work").iterdir())


def link(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("main.c")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")


def twice(path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "w") as archive:
        archive.writestr("main.c", "1")
        archive.writestr("main.c", "2")


def torn(path: Path) -> None:
    zipped(path, **{"main.c": bytes(range(256)) * 40})
    path.write_bytes(path.read_bytes()[:-30])


def spoilt(path: Path) -> None:
    zipped(path, **{"main.c": bytes(range(256)) * 40})
    content = bytearray(path.read_bytes())
    content[60] ^= 255
    path.write_bytes(content)


def spoilt_lzma(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("main.c", bytes(range(256)) * 40)
    content = bytearray(path.read_bytes())
    content[80:90] = bytes(10)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (spoilt_lzma, "is no zip, or is damaged: "),
        (torn, "is no zip, or is damaged: File is not a zip file"),
        (spoilt, "is no zip, or is damaged: "),
        (lambda path: path.write_bytes(b""), "is no zip, or is damaged: "),
        (lambda path: path.write_bytes(bytes(build.MOST_ZIP_BYTES + 1)), "has 4,194,305 bytes, and the judge takes at"),
        (lambda path: zipped(path, **{"main.c": bytes(build.MOST_BYTES + 1)}), "unpacks to more than 64 MiB"),
        (
            lambda path: zipped(path, **{"../main.c": b""}),
            r"would write outside its folder: it has a file named '\.\./",
        ),
        (lambda path: zipped(path, **{"/main.c": b""}), "would write outside its folder"),
        (lambda path: zipped(path, **{"a\\..\\main.c": b""}), "would write outside its folder"),
        (lambda path: zipped(path, **{"C:main.c": b""}), "would write outside its folder"),
        (link, "has a link, main.c: put the file itself into the zip"),
        (twice, "has two files named main.c"),
        (
            lambda path: zipped(path, **{"bot.toml": b"", "main.py": b""}),
            "is a Python bot, and only C and C\\+\\+ ones are played here",
        ),
        (lambda path: zipped(path, **{"bot/bot.toml": b"", "bot/main.c": b""}), "has no bot.toml at its top"),
        (lambda path: zipped(path, **{"bot.toml": b""}), "is no bot: there is no .c, .cc, .cpp, .cxx or .c"),
    ],
)
def test_a_zip_that_is_no_bot_is_refused(tmp_path: Path, make: Callable[[Path], object], text: str) -> None:
    path = tmp_path / "bot.zip"
    make(path)
    with pytest.raises(SparringError, match=text) as error:
        load_entrant(path)
    assert str(error.value).startswith(f"{path} ") and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == [path]


def wasm(text: str) -> bytes:
    import wasmtime

    return bytes(wasmtime.wat2wasm(text))


MEMORY = '(import "env" "memory" (memory 1 65536 shared))'


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "it is no WebAssembly: "),
        (b"\0asm\1\0\0\0torn", "it is no WebAssembly: "),
        (wasm("(module)"), "it does not ask for one shared memory and for functions"),
        (wasm('(module (import "env" "memory" (memory 1)))'), "it does not ask for one shared memory"),
        (wasm(f'(module {MEMORY} (import "env" "g" (global i32)))'), "it does not ask for one shared memory"),
        (wasm(f'(module {MEMORY} (import "a" "f" (func (param externref))))'), "it does not ask for one shared memory"),
        (wasm(f"(module {MEMORY})"), "it exports no _start: it is a library, not a program"),
        (
            wasm('(module (import "env" "memory" (memory 800 65536 shared)) (func (export "_start")))'),
            "it starts with 50 MiB of memory, and the judge gives 48",
        ),
        (
            wasm(f'(module {MEMORY} (func (export "_start")) (func (export "wasmer_metering_remaining_points")))'),
            "it brings a meter of its own",
        ),
    ],
)
def test_a_wasm_that_is_no_bot_is_refused(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "bot.wasm"
    path.write_bytes(content)
    with pytest.raises(SparringError, match=text) as error:
        load_entrant(path)
    assert str(error.value).startswith(f"{path} cannot play: ") and "\n" not in str(error.value)


def test_a_wasm_without_sense_loses_its_match(tmp_path: Path) -> None:
    from loong_maps import simple_map

    from sparring.judge.match import play_match

    (tmp_path / "strange.wasm").write_bytes(
        wasm(f'(module {MEMORY} (import "a" "f" (func $f)) (func (export "_start") (call $f)))')
    )
    (tmp_path / "unstartable.wasm").write_bytes(
        wasm(f'(module {MEMORY} (func $f (unreachable)) (start $f) (func (export "_start")))')
    )
    a, b = (load_entrant(tmp_path / f"{name}.wasm") for name in ("strange", "unstartable"))
    played = play_match(simple_map(), a, b, seed=0)
    assert (played.winner, played.reason, played.a.forfeit, played.b.forfeit) == (None, "both eliminated", True, True)
    assert played.a.first_error == "round 0: dragon 0 sandbox error: a.f"
    assert (played.b.first_error or "").startswith("round 0: dragon 1 does not start: ")


def test_what_is_no_player_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bot.txt").write_text("")
    for spec, text in (
        ("startr", "no player startr: there is no such bot folder, .zip, .wasm or run; did you mean starter?"),
        ("qqq", "the names are forager, hunter, splitter, legal, reckless, starter, foil"),
        (str(tmp_path / "bot.txt"), "is no player: give a bot's folder, a .zip of it, or a .wasm"),
        (str(tmp_path / "none.zip"), "there is no such bot folder, .zip, .wasm or run"),
        ("a" * 300, "File name too long"),
    ):
        with pytest.raises(SparringError) as error:
            load_entrant(spec)
        assert text in str(error.value)
    with pytest.raises(SparringError, match="holds more than 64 MiB: that is no bot folder"):
        big = tmp_path / "big"
        big.mkdir()
        with (big / "weights.bin").open("wb") as file:
            file.truncate(build.MOST_BYTES + 1)
        load_entrant(big)


@pytest.mark.parametrize("name", ["a/b", "c" * 300])
def test_a_zip_that_cannot_be_unpacked_is_one_line(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "bot.zip", **{"bot.toml": b"", "main.c": b"int main(void){}", "a": b"", name: b""})
    with pytest.raises(SparringError, match=r"^cannot unpack \S+/bot.zip to build it: "):
        load_entrant(path)


def test_names_of_any_bytes_are_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_built", lambda _, files: repr(sorted(files)).encode())
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "main.c").write_text("")
    (tmp_path / "bot" / "a\udcff.h").write_text("")
    assert build.build_bot(tmp_path / "bot").read_bytes() == b"['a\\udcff.h', 'main.c']"


def test_a_folder_in_it_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(BOT, tmp_path / "bot")
    (tmp_path / "bot" / "closed").mkdir()
    scan = os.scandir

    def closed(path: object) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)  # type: ignore[call-overload]

    monkeypatch.setattr(build.os, "scandir", closed)
    with pytest.raises(SparringError, match=r"^cannot read \S+/bot/closed: Permission denied$"):
        load_entrant(tmp_path / "bot")


def test_a_wasm_of_any_size_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "bot.wasm").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SparringError, match=r"bot\.wasm has more than 64 MiB: that is no bot"):
        load_entrant(tmp_path / "bot.wasm")


def test_another_version_of_the_toolkit_builds_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_built", lambda *_: b"built anew")
    version = build.importlib.metadata.version
    monkeypatch.setattr(
        build.importlib.metadata, "version", lambda name: "9.9.9" if name == "unswbc" else version(name)
    )
    built = build.build_bot(BOT)
    assert built.read_bytes() == b"built anew"
    built.unlink()


def test_machine_code_of_another_processor_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(str(load_entrant(BOT).path), tmp_path / "bot.wasm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for content in (b"", b"of another one", None):
        build.program.cache_clear()
        if content is not None:
            load_entrant(tmp_path / "bot.wasm")
            build.program.cache_clear()
            next(tmp_path.glob("sparring/bots/*.bin")).write_bytes(content)
        wasm = load_entrant(tmp_path / "bot.wasm").path
        assert wasm is not None and build.program(wasm).native.stat().st_size > 1000
    build.program.cache_clear()


def test_the_cache_keeps_what_was_used_last(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("new", 0.5), ("middle", 30), ("old", 40), ("oldest", 50)):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, (now - age * 86400,) * 2)
    used(tmp_path / "oldest")
    prune(tmp_path, 30)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "middle", "oldest"}
    prune(tmp_path, 5)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "oldest"}


def test_the_cache_is_pruned_when_something_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparring.cache.MOST_KEPT_BYTES", 25)
    for name in ("a", "b", "c"):
        share(tmp_path / name, bytes(10), "letters")
        os.utime(tmp_path / name, (ord(name), ord(name)))
    assert {path.name for path in tmp_path.iterdir()} == {"b", "c"}
    share(tmp_path / "b", lambda: pytest.fail("it is there"), "letters")
    share(tmp_path / "d", lambda: bytes(10), "letters")
    assert {path.name for path in tmp_path.iterdir()} == {"b", "d"}
    (tmp_path / "file").write_text("")
    with pytest.raises(SparringError, match=r"cannot keep letters in .*: free the disk, or name a place in XDG_CACHE"):
        share(tmp_path / "file" / "e", bytes(10), "letters")


def test_the_compiler_is_not_made_ready_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(build, "_built", lambda *_: pytest.fail("nobody could keep this"))
    with pytest.raises(SparringError, match="cannot keep built bots in"):
        load_entrant(BOT)


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(SparringError, match="no home folder to keep things in: name a place in XDG_CACHE_HOME"):
        cache_folder()
    assert doctor.cache("sparring").status == "missing"


def test_a_cache_that_cannot_be_written_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bot.wasm"
    shutil.copy(str(load_entrant(BOT).path), path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        SparringError, match=r"cannot keep built bots in .*: free the disk, or name a place in XDG_CACHE"
    ):
        load_entrant(path)
