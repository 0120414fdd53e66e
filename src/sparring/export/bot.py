"""A student as a bot folder of C++, and the zip that is submitted."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from sparring import _core
from sparring.distil.quantise import integers
from sparring.distil.students import load_student, newest_student
from sparring.errors import SparringError
from sparring.files import written_beside
from sparring.judge.build import MOST_ZIP_BYTES
from sparring.judge.folder import bot_sources, refuse_folder, said_hash, settings, sources_hash, write_bot

Weights = Literal["text", "embed"]
"""How a bot carries its weights: as numbers in weights.h, which every compiler reads, or as weights.bin by `#embed`."""

_HEADER, _BINARY = "weights.h", "weights.bin"
_WORDS_A_LINE = 6
_UNIT_BYTES = 16
"""The weights are filled up with zeros to a multiple of so many bytes, and lie at one in memory."""
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a bot comes from: SHA-256 of the teacher's and the student's weights, and of the sources of the core."""

    teacher: str
    student: str
    core: str


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A bot that was written.

    folder, zip: where (zip: None if it was not asked for)
    zip_bytes:   what would be submitted
    sources:     the hash in main.cpp
    """

    folder: Path
    zip: Path | None
    zip_bytes: int
    weights_bytes: int
    sources: str
    origin: Origin

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


def export_bot(
    run: str | Path,
    *,
    out: str | Path,
    zip: bool = False,
    weights: Weights = "text",
    student: str | Path | None = None,
) -> Exported:
    """Write the student of a run as a bot folder that the judge's toolkit builds as it is.

    run:     name or path of a run of Loong that `sparring.distil` has taught a student
    out:     folder, new or empty
    zip:     write what is submitted, too, as `out`.zip
    weights: see Weights
    student: a file of a student; None: the run's newest that was trained with the bot's arithmetic

    Raises SparringError for a run without a student, a student that is damaged or of another core, a layer that could
    overflow, a zip that the judge would not take, and places that cannot be written. Then nothing is left.
    """
    network, facts = load_student(newest_student(run) if student is None else student)
    origin = Origin(teacher=facts.teacher, student=facts.hash, core=facts.core)
    return write_student(integers(network).blob(), origin, out=out, zip=zip, weights=weights)


def write_student(
    blob: bytes, origin: Origin, *, out: str | Path, zip: bool = False, weights: Weights = "text"
) -> Exported:
    """Write the folder of a bot with these weights, and with `zip` what is submitted of it, as `out`.zip beside it.

    blob: `IntegerStudent.blob()`

    Raises SparringError where something is at `out` already, where it cannot be written, and where the zip would be
    larger than the judge takes. Then nothing is left.
    """
    folder = Path(out)
    refuse_folder(folder)
    files = student_files(blob, origin, weights)
    packed = packed_bot(files)
    beside = folder.with_name(f"{folder.name}.zip") if zip else None
    if beside is not None and beside.exists():
        raise SparringError(f"{beside} is there already: give another --out")
    if beside is None:
        write_bot(folder, files, _about(origin))
    else:
        with written_beside(beside) as place:
            place.write_bytes(packed)
            write_bot(folder, files, _about(origin))  # last, so that a full disk leaves neither
    return Exported(
        folder=folder,
        zip=beside,
        zip_bytes=len(packed),
        weights_bytes=len(blob),
        sources=said_hash(files["main.cpp"])[0],
        origin=origin,
    )


def student_files(blob: bytes, origin: Origin, weights: Weights = "text", *, program: str = "main") -> dict[str, bytes]:
    """The sources of a bot with these weights, by their names; program: of core/bot. See `bot_sources`."""
    if weights not in get_args(Weights):
        raise SparringError(f"weights = {weights!r}: give {' or '.join(get_args(Weights))}")
    whole = blob + bytes(-len(blob) % _UNIT_BYTES)
    head = [f"// {name}: {value}" for name, value in asdict(origin).items()]
    body = [
        "// The weights of a student, as docs/loong-student.md of Sparring lays them out, and the SHA-256 of",
        *head,
        "#pragma once",
        "",
        '#include "common/target.h"',
        "",
        "namespace sparring::bot {",
        "",
        f"constexpr u64 kBuild = {build_of(blob):#018x};  // packets of other builds are not understood",
        f"constexpr u64 kWeightsBytes = {len(blob)};",
        "",
    ]
    if weights == "embed":
        body += [f"alignas({_UNIT_BYTES}) static const u8 kWeights[] = {{", f'#embed "{_BINARY}"', "};"]
    else:
        words = [f"{int.from_bytes(whole[at : at + 8], 'little'):#x}," for at in range(0, len(whole), 8)]
        lines = (" ".join(words[at : at + _WORDS_A_LINE]) for at in range(0, len(words), _WORDS_A_LINE))
        body += [f"alignas({_UNIT_BYTES}) static const u64 kWeights[] = {{", *lines, "};"]
    body += [
        "",
        "inline const u8* weights() { return reinterpret_cast<const u8*>(kWeights); }",
        "",
        "}  // namespace sparring::bot",
        "",
    ]
    made = {_HEADER: "\n".join(body).encode()}
    if weights == "embed":
        made[_BINARY] = whole
    return bot_sources(program, made)


def build_of(blob: bytes) -> int:
    """The number that tells a bot's packets from those of other builds."""
    return int.from_bytes(hashlib.sha256(blob).digest()[:8], "little")


def packed_bot(files: Mapping[str, bytes]) -> bytes:
    """The zip that `unswbc submit` would make of a bot's sources; the same sources give the same bytes.

    Raises SparringError where the judge would not take it.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in ({"bot.toml": settings()} | dict(sorted(files.items()))).items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content, compresslevel=9)
    packed = out.getvalue()
    if len(packed) > MOST_ZIP_BYTES:
        raise SparringError(
            f"the zip would have {len(packed):,} bytes, and the judge takes at most {MOST_ZIP_BYTES:,}: "
            "export with --weights embed, or distil a smaller student"
        )
    return packed


@dataclass(frozen=True, kw_only=True)
class StudentBot:
    """A bot folder as it was exported. sources: the hash in main.cpp; files: main.cpp and what it includes."""

    folder: Path
    sources: str
    origin: Origin
    blob: bytes
    files: dict[str, bytes]

    def inspection(self) -> dict[str, bytes]:
        """The sources of the same bot with a probe: all files but main.cpp are the same."""
        made = {name: content for name, content in self.files.items() if name in (_HEADER, _BINARY)}
        return bot_sources("inspection", made)


def read_bot(folder: str | Path) -> StudentBot:
    """Read the bot folder of a student, without running anything in it.

    Raises SparringError, in one line: no such folder, one that `sparring export` did not write or that was changed
    since then, or one of another core than the one installed here.
    """
    place = Path(folder)
    again = "export the student again"
    if not (place / "main.cpp").is_file() or not (place / _HEADER).is_file():
        raise SparringError(f"{place} is no exported student: there is no main.cpp with a {_HEADER} beside it")
    try:
        names = [path.relative_to(place) for path in place.rglob("*") if path.is_file()]
        files = {
            name.as_posix(): (place / name).read_bytes()
            for name in names
            if name.suffix in (".cpp", ".cc", ".cxx", ".c", ".c++", ".h", ".bin") and name.parts[0] != "build"
        }
    except OSError as error:
        raise SparringError(f"cannot read {error.filename}: {error.strerror}") from error
    sources, main = said_hash(files["main.cpp"])
    others = {name: content for name, content in files.items() if name != "main.cpp"}
    if sources_hash(main, others) != sources:
        raise SparringError(f"{place} was changed after its export, so that a stale build could pass for it: {again}")
    blob, origin = _weights_of(place, files)
    kind: Weights = "embed" if _BINARY in files else "text"
    now = student_files(blob, origin, kind)
    changed = sorted(name for name in now.keys() | files if now.get(name) != files.get(name) and name != "main.cpp")
    if changed or files["main.cpp"] != now["main.cpp"]:
        what = changed[0] if changed else "main.cpp"
        raise SparringError(
            f"{place} is of another core than this one ({_core.source_hash:.12}): {what} differs; {again}"
        )
    return StudentBot(folder=place, sources=sources, origin=origin, blob=blob, files=files)


def _weights_of(place: Path, files: Mapping[str, bytes]) -> tuple[bytes, Origin]:
    text = files[_HEADER].decode("latin-1")
    said = dict(re.findall(r"^// (teacher|student|core): (\w*)$", text, re.MULTILINE))
    size = re.search(r"^constexpr u64 kWeightsBytes = (\d{1,9});$", text, re.MULTILINE)
    listed = re.search(r"kWeights\[\] = \{\n((?:0x[0-9a-f]{1,16},\s)*)\};", text)
    if _BINARY in files:
        whole = files[_BINARY]
    else:
        words = re.findall(r"0x([0-9a-f]+),", listed[1]) if listed else []
        whole = b"".join(int(word, 16).to_bytes(8, "little") for word in words)
    if len(said) != 3 or size is None or not whole or len(whole) != -(-int(size[1]) // _UNIT_BYTES) * _UNIT_BYTES:
        raise SparringError(f"{place / _HEADER} holds no weights of a student: export the student again")
    return whole[: int(size[1])], Origin(**said)


def _about(origin: Origin) -> str:
    return f"""# A student as a bot

A neural network in whole numbers that plays UNSW Battlecode 2026, written by `sparring export`. The folder needs
nothing but the judge's toolkit, or any C++20 compiler:

    unswbc run MAP . . --sandbox
    g++ -std=c++20 -O2 -I. main.cpp -o play

`sparring gate .` proves that it plays as the student does. It comes from

- teacher {origin.teacher}
- student {origin.student}
- core {origin.core}"""
