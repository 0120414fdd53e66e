"""The rooms of src/sparring import only in the direction that docs/architecture.md states."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "sparring"
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text()

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(file, room that it must not use): why it does nevertheless."""


SERVICES = {"errors", "files", "cache", "settings", "kernels", "_core"}
"""Of rank 0, and using one another."""


def paragraph() -> str:
    found = re.search(r"^Arrows point one way:.*?\n\n", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert found, "docs/architecture.md no longer says which way the arrows point"
    return found[0]


def ranks() -> dict[str, int]:
    """How high each room and module stands: one uses those below it and its own."""
    arrow, *modules = re.findall(r"`([^`]+)`", paragraph())
    stages = [re.findall(r"\w+", stage) for stage in arrow.split("->")][::-1]
    order = {room: rank for rank, stage in enumerate(stages) for room in stage}
    order["_core"] = order.pop("core")
    order |= {Path(module).stem: 0 for module in modules if Path(module).stem in SERVICES}
    return order | {"__init__": len(stages), "__main__": len(stages)}


def room_of(path: Path) -> str:
    first, *rest = path.relative_to(SOURCES).parts
    return first if rest else Path(first).stem


def imported(source: str) -> Iterator[tuple[int, str]]:
    """The line and the room of each import of a part of Sparring, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: name the module in full"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "sparring" else [module]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        for name in names:
            if name.startswith("sparring."):
                yield node.lineno, name.split(".")[1]


FILES = sorted(SOURCES.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_imports_point_down(path: Path) -> None:
    order, room = ranks(), room_of(path)
    assert room in order, f"{room} is a new room: give it a place in the arrows of docs/architecture.md"
    against = []
    for line, used in imported(path.read_text()):
        assert used in order, f"line {line}: {used} has no place in the arrows of docs/architecture.md"
        down = order[used] < order[room] or used == room or {used, room} <= SERVICES
        if not down and (str(path.relative_to(SOURCES)), used) not in EXCEPTIONS:
            against.append(f"line {line}: {room} uses {used}")
    assert not against, "; ".join(against)


def test_exceptions_are_needed() -> None:
    used = {(str(path.relative_to(SOURCES)), room) for path in FILES for _, room in imported(path.read_text())}
    assert set(EXCEPTIONS) <= used


def test_the_document_is_read_as_it_is_meant() -> None:
    order = ranks()
    assert (
        order["__main__"]
        > order["cli"]
        > order["doctor"]
        > order["judge"]
        == order["compat"]
        > order["runs"]
        > order["pictures"]
        > order["games"]
        > order["_core"]
        == 0
    )
    assert {name for name, rank in order.items() if rank == 0} == SERVICES


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
from sparring import _core, games
import sparring.runs.train as train
def late():
    from sparring.cli.words import pick
    importlib.import_module("sparring.doctor")
if TYPE_CHECKING:
    from sparring.levels import maps
import numpy
"""
    assert sorted(room for _, room in imported(source)) == ["_core", "cli", "doctor", "games", "levels", "runs"]
