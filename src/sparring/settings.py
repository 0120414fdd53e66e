"""Typed settings: frozen dataclasses that are configuration, TOML file and help text at once.

A settings class is a frozen, keyword-only dataclass whose fields are `bool`, `int`, `float`, `str`, `Literal[...]`,
`tuple[T, ...]` of those, or another settings class (a TOML table). A number's allowed values travel with its type:

    actor_lr: Annotated[float, Range(low=0, high=1, low_open=True)] = 2e-4
    \"\"\"Adam's step size for the actor.\"\"\"

Every fault is one `SparringError` line: where, which key, what was given, what is allowed.
"""

from __future__ import annotations

import difflib
import json
import math
import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sparring.errors import SparringError

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Range:
    """The finite numbers a field may take: `low` to `high`, each end included unless it is open.

    On a `tuple` field it holds for every entry.
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def __contains__(self, number: float) -> bool:
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        return above and below and math.isfinite(number)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{'more than' if self.low_open else 'at least'} {self.low:g}"
        if self.low == -math.inf:
            return f"{'less than' if self.high_open else 'at most'} {self.high:g}"
        return f"in {'(' if self.low_open else '['}{self.low:g}, {self.high:g}{')' if self.high_open else ']'}"


def read_toml(path: Path) -> dict[str, Any]:
    """The file's table. Raises SparringError when it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SparringError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # beside what tomllib calls its own: letters, digits and depth
        raise SparringError(f"{path}: not valid TOML: {error}") from None


def from_table(kind: type[S], table: Mapping[str, Any], *, where: str) -> S:
    """Settings of class `kind` from a nested table; missing keys take their defaults. `where` opens each error line."""
    return _settings(kind, table, where, "")


def check(settings: S, *, where: str) -> S:
    """The same settings, every field checked against its type and range (and whole-number floats made float)."""
    return _settings(type(settings), _table(settings), where, "")


def override(settings: S, changes: Mapping[str, Any], *, where: str) -> S:
    """The settings with some values replaced. Keys are dotted (`ddpg.actor_lr`) or nested mappings."""
    table = _table(settings)
    for key, value in changes.items():
        *path, last = key.split(".")
        spot = table
        for step in path:
            inner = spot.get(step)
            if not isinstance(inner, dict):
                raise _unknown(where, key, type(settings))
            spot = inner
        if isinstance(value, Mapping) and isinstance(spot.get(last), dict):
            spot[last] = {**spot[last], **value}
        elif is_dataclass(value) and not isinstance(value, type):
            spot[last] = _table(value)
        else:
            spot[last] = list(value) if isinstance(value, tuple) else value
    return from_table(type(settings), table, where=where)


def differences(old: S, new: S) -> list[tuple[str, Any, Any]]:
    """(dotted key, old value, new value) of every field that differs, in field order."""
    before, after = dict(flat(old)), dict(flat(new))
    return [(key, before.get(key), value) for key, value in after.items() if before.get(key) != value]


def flat(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of every field, nested ones included."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from flat(value, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", value


def to_toml(settings: Any) -> str:
    """TOML text that `from_table` turns back into exactly these settings."""
    return "\n".join(_lines(settings, "")).strip() + "\n"


def _lines(settings: Any, table: str) -> Iterator[str]:
    tables = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            tables.append((f"{table}.{field.name}" if table else field.name, value))
        else:
            yield f"{field.name} = {show(value)}"
    for name, value in tables:
        yield ""
        yield f"[{name}]"
        yield from _lines(value, name)


def show(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(show, value))}]"
    return repr(value)  # no TOML value: only ever printed, in an error line


def _table(settings: Any) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            table[field.name] = _table(value)
        else:
            table[field.name] = list(value) if isinstance(value, tuple) else value
    return table


def _kinds(kind: type) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: (field, hints[field.name]) for field in fields(kind)}


def _settings(kind: type[S], table: Any, where: str, prefix: str) -> S:
    if not isinstance(table, Mapping):
        raise SparringError(f"{where}: {prefix[:-1]} = {show(table)}: must be a table of settings")
    known = _kinds(kind)
    for key in table:
        if key not in known:
            raise _unknown(where, f"{prefix}{key}", kind, prefix)
    values = {}
    for key, (field, hint) in known.items():
        if key in table:
            values[key] = _value(hint, table[key], where, f"{prefix}{key}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise SparringError(f"{where}: {prefix}{key} is missing: it has no default, so it must be given")
    return kind(**values)


def _value(hint: Any, given: Any, where: str, key: str) -> Any:
    allowed: list[Range] = []
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        allowed = [extra for extra in extras if isinstance(extra, Range)]
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _settings(hint, given, where, f"{key}.")
    if get_origin(hint) is tuple:
        entry, *_ = get_args(hint)
        if not isinstance(given, list | tuple):
            raise _refuse(where, key, given, f"must be a list, such as [{_example(entry)}, {_example(entry)}]")
        entry = Annotated[entry, *allowed] if allowed else entry
        return tuple(_value(entry, part, where, f"{key}[{place}]") for place, part in enumerate(given))
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        if given not in choices or isinstance(given, bool) != isinstance(choices[0], bool):
            raise _refuse(where, key, given, f"must be one of {', '.join(map(show, choices))}")
        return given
    if isinstance(given, int) and not -(2**63) <= given < 2**63:
        raise _refuse(where, key, given, "must fit 64 bits")
    if hint is float and isinstance(given, int) and not isinstance(given, bool):
        given = float(given)
    if not isinstance(given, hint) or (isinstance(given, bool) and hint is not bool):
        raise _refuse(where, key, given, _must_be(hint, given))
    if isinstance(given, float) and math.isnan(given):
        raise _refuse(where, key, given, "must be a number")
    for span in allowed:
        if given not in span:
            raise _refuse(where, key, given, f"must be {'finite and ' if math.isinf(given) else ''}{span}")
    return given


def _must_be(hint: Any, given: Any) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: 'a text in quotes, such as "tennis"'}
    hint_of_whole = f" (write {int(given)})" if hint is int and isinstance(given, float) and given.is_integer() else ""
    return f"must be {words.get(hint, getattr(hint, '__name__', hint))}{hint_of_whole}"


def _example(hint: Any) -> str:
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return {int: "256", float: "0.5", str: '"a"', bool: "true"}.get(hint, "...")


def _refuse(where: str, key: str, given: Any, must: str) -> SparringError:
    return SparringError(f"{where}: {key} = {show(given)}: {must}")


def _unknown(where: str, key: str, kind: type, prefix: str = "") -> SparringError:
    names = [f"{prefix}{name}" for name in _dotted(kind)]
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.4)
    known = f"did you mean {near[0]}?" if near else f"known keys are {', '.join(names)}"
    return SparringError(f"{where}: {key}: no such setting; {known}")


def _dotted(kind: type, prefix: str = "") -> Iterator[str]:
    for name, (_, hint) in _kinds(kind).items():
        bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if isinstance(bare, type) and not isinstance(bare, types.GenericAlias) and is_dataclass(bare):
            yield from _dotted(bare, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
