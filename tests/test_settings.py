"""Settings: TOML and back exactly, and one clear line for every fault."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from sparring.errors import SparringError
from sparring.settings import Range, check, differences, from_table, override, read_toml, to_toml


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-5
    layers: Annotated[tuple[int, ...], Range(low=1)] = (256, 128)
    order: Literal["clip-first", "noise-first"] = "noise-first"


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    batch: Annotated[int, Range(low=1)] = 128
    far: float = float("inf")
    on: bool = False
    inner: Inner = Inner()


def round_trip(settings: Outer) -> Outer:
    return from_table(Outer, tomllib.loads(to_toml(settings)), where="x.toml")


@pytest.mark.parametrize(
    "settings",
    [
        Outer(name="a"),
        Outer(name='quote " back \\ line \n tab \t bell \x07 del \x7f umlaut ä ☃'),
        Outer(
            name="", batch=2**40, far=-0.1, on=True, inner=Inner(rate=0.1 + 0.2 - 0.2, layers=(), order="clip-first")
        ),
        Outer(name="x", inner=Inner(rate=5e-324)),
    ],
)
def test_toml_and_back_gives_the_same_settings(settings: Outer) -> None:
    assert round_trip(settings) == settings


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({}, "x.toml: name is missing: it has no default, so it must be given"),
        ({"name": 3}, 'x.toml: name = 3: must be a text in quotes, such as "tennis"'),
        ({"name": "a", "batch": 0}, "x.toml: batch = 0: must be at least 1"),
        ({"name": "a", "batch": 1e6}, "x.toml: batch = 1000000.0: must be a whole number (write 1000000)"),
        ({"name": "a", "batch": True}, "x.toml: batch = true: must be a whole number"),
        ({"name": "a", "on": 1}, "x.toml: on = 1: must be true or false"),
        ({"name": "a", "far": "1"}, 'x.toml: far = "1": must be a number'),
        ({"name": "a", "far": float("nan")}, "x.toml: far = nan: must be a number"),
        ({"name": "a", "far": 10**400}, f"x.toml: far = {10**400}: must fit 64 bits"),
        ({"name": "a", "bach": 3}, "x.toml: bach: no such setting; did you mean batch?"),
        (
            {"name": "a", "zzz": 3},
            "x.toml: zzz: no such setting; known keys are name, batch, far, on, inner.rate, inner.layers, inner.order",
        ),
        ({"name": "a", "inner": 3}, "x.toml: inner = 3: must be a table of settings"),
        ({"name": "a", "inner": {"rat": 0.5}}, "x.toml: inner.rat: no such setting; did you mean inner.rate?"),
        ({"name": "a", "inner": {"rate": 0}}, "x.toml: inner.rate = 0.0: must be in (0, 1]"),
        ({"name": "a", "inner": {"rate": 1.5}}, "x.toml: inner.rate = 1.5: must be in (0, 1]"),
        ({"name": "a", "inner": {"layers": 5}}, "x.toml: inner.layers = 5: must be a list, such as [256, 256]"),
        ({"name": "a", "inner": {"layers": [5, 0]}}, "x.toml: inner.layers[1] = 0: must be at least 1"),
        (
            {"name": "a", "inner": {"order": "none"}},
            'x.toml: inner.order = "none": must be one of "clip-first", "noise-first"',
        ),
    ],
)
def test_each_fault_is_one_line_with_file_key_and_what_is_allowed(table: dict[str, Any], line: str) -> None:
    with pytest.raises(SparringError) as caught:
        from_table(Outer, table, where="x.toml")
    assert str(caught.value) == line


def test_a_whole_number_may_stand_for_a_float() -> None:
    outer = from_table(Outer, {"name": "a", "far": 3}, where="x")
    assert outer.far == 3.0 and isinstance(outer.far, float)


def test_settings_built_in_python_are_checked_too() -> None:
    with pytest.raises(SparringError, match=r"^recipe: inner.rate = 7.0: must be in \(0, 1\]$"):
        check(Outer(name="a", inner=Inner(rate=7)), where="recipe")
    assert check(Outer(name="a"), where="recipe") == Outer(name="a")


def test_override_takes_dotted_keys_nested_tables_and_settings() -> None:
    outer = Outer(name="a")
    assert override(outer, {"inner.rate": 0.5, "batch": 3}, where="flags") == Outer(
        name="a", batch=3, inner=Inner(rate=0.5)
    )
    assert override(outer, {"inner": {"layers": (1, 2)}}, where="flags").inner == Inner(layers=(1, 2))
    assert override(outer, {"inner": Inner(rate=0.25)}, where="flags").inner == Inner(rate=0.25)
    for key in ("inner.rte", "iner.rate", "batch.x"):
        with pytest.raises(SparringError, match=f"^flags: {key}: no such setting"):
            override(outer, {key: 1}, where="flags")


def test_differences_name_the_fields_that_changed() -> None:
    old, new = Outer(name="a"), Outer(name="a", on=True, inner=Inner(rate=0.5))
    assert differences(old, new) == [("on", False, True), ("inner.rate", 1e-5, 0.5)]
    assert differences(old, old) == []


def test_a_file_that_is_not_toml_or_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    with pytest.raises(SparringError, match=r"x.toml: cannot be read: No such file or directory$"):
        read_toml(path)
    path.write_text("a = = 3")
    with pytest.raises(SparringError, match=r"x.toml: not valid TOML: Invalid value \(at line 1, column 5\)$"):
        read_toml(path)
    for text in ("a = 1" + "0" * 5000, "a = " + "[" * 5000):
        path.write_text(text)
        with pytest.raises(SparringError, match=r"x.toml: not valid TOML: "):
            read_toml(path)
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(SparringError, match=r"x.toml: not valid TOML: "):
        read_toml(path)


def test_range_ends() -> None:
    assert 1 in Range(low=1, high=2) and 1 not in Range(low=1, high=2, low_open=True)
    assert 2 in Range(low=1, high=2) and 2 not in Range(low=1, high=2, high_open=True)
    assert str(Range(high=3, high_open=True)) == "less than 3" and str(Range(low=0, low_open=True)) == "more than 0"
