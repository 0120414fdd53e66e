"""Students on disk: one immutable file for each round."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparring import _core
from sparring.errors import SparringError
from sparring.policies.fixed_point import ARITHMETIC
from sparring.policies.student import Student, StudentConfig
from sparring.runs import checkpoint
from sparring.runs.folder import Disk, RunFolder, find_run
from sparring.settings import from_table

FORMAT, VERSION = "sparring student", 1
_ROUND = re.compile(r"round-(\d+)\.pt")


@dataclass(frozen=True, kw_only=True)
class StudentFacts:
    """What is known of a student.

    preset:     name of its sizes
    quantised:  it was trained with the bot's arithmetic to the end
    teacher:    SHA-256 of its last teacher's weights
    core:       hash of the core's source that told it what dragons know
    arithmetic: number of the arithmetic it was trained in, see `fixed_point.ARITHMETIC`
    round:      the round of distillation that made it
    decisions:  that it was trained on, all rounds together
    told:       loss, agreement, entropy and teacher_entropy in the round's last rollout, before it was trained on;
                each in all and by part
    hash:       SHA-256 of the file
    """

    preset: str
    quantised: bool
    teacher: str
    core: str
    arithmetic: int
    round: int
    decisions: int
    told: dict[str, dict[str, float]]
    hash: str


def students_folder(run: RunFolder) -> Path:
    """Where a run's students lie."""
    return run.path / "students"


def rounds_of(folder: Path) -> dict[int, Path]:
    """The files of rounds in a folder of students, by number."""
    found = ((_ROUND.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ()))
    return dict(sorted((int(match[1]), path) for match, path in found if match))


def newest_student(run: str | Path) -> Path:
    """The student of a run: the newest that is trained with the bot's arithmetic.

    Raises SparringError where the run or a student of it is missing, or a file of a student cannot be read.
    """
    folder = find_run(run)
    for path in reversed(rounds_of(students_folder(folder)).values()):
        if _read(path)["quantised"]:
            return path
    raise SparringError(f"run {folder.name} has no student yet: make one with sparring distil {folder.word}")


def save_student(path: Path, student: Student, facts: Mapping[str, Any], disk: Disk) -> None:
    """Write a student that nothing will change any more. facts: those of StudentFacts but core, arithmetic and hash."""
    content = {
        "student": student.state_dict(),
        "config": asdict(student.config),
        "core": _core.source_hash,
        "arithmetic": ARITHMETIC,
        **facts,
    }
    checkpoint.write(path, content, disk, format=FORMAT, version=VERSION)


def load_student(path: str | Path) -> tuple[Student, StudentFacts]:
    """The student in a file, and what is known of it; it plays with the bot's arithmetic if it was trained with it.

    Raises SparringError: a file that is missing, damaged or none of a student, another core or arithmetic, sizes that
    are none.
    """
    path = Path(path)
    content = _read(path)
    facts = {name: content[name] for name in _FACTS}
    if facts["core"] != _core.source_hash:
        raise SparringError(
            f"{path} is a student of another core ({facts['core'][:12]}, here {_core.source_hash[:12]}), which told it "
            "other things about the board: distil again, or use the Sparring that made it"
        )
    if facts["arithmetic"] != ARITHMETIC:
        raise SparringError(
            f"{path} is a student of arithmetic {facts['arithmetic']}, this Sparring computes {ARITHMETIC} and would "
            "make other choices of it: distil again, or use the Sparring that made it"
        )
    student = Student(from_table(StudentConfig, content["config"], where=str(path)))
    if unfit := checkpoint.misfit(content["student"], student.state_dict()):
        raise SparringError(f"{path} does not fit its own sizes: {unfit}")
    try:
        student.load_state_dict(content["student"])
    except RuntimeError as error:
        raise SparringError(f"{path} does not fit this version of Sparring ({str(error).splitlines()[0]})") from None
    student.quantised = facts["quantised"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return student.eval().requires_grad_(False), StudentFacts(**facts, hash=digest)


_FACTS = {
    "preset": str,
    "quantised": bool,
    "teacher": str,
    "core": str,
    "arithmetic": int,
    "round": int,
    "decisions": int,
    "told": dict,
}
_FIRST_ARITHMETIC = 1
"""Of students that do not say theirs."""


def _read(path: Path) -> dict[str, Any]:
    content = checkpoint.read_file(path, format=FORMAT, version=VERSION, other="distil another one")
    content.setdefault("arithmetic", _FIRST_ARITHMETIC)
    for name, kind in {**_FACTS, "student": dict, "config": dict}.items():
        if not isinstance(content.get(name), kind):
            raise SparringError(f"{path} does not fit this version of Sparring (no {name}): distil another one")
    return content
