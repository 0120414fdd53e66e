"""What the verbs share: parsing, help, printing."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from typing import Annotated, Any

import tyro

from sparring.errors import SparringError

Verb = Callable[[list[str]], int]
"""Takes the arguments after its name, returns the exit code."""

Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""A flag without a negation."""


def parsed(prog: str, function: Callable[..., int], text: str) -> Verb:
    """The verb that reads the arguments of `function` by their types and docstring, with `text` as its help."""

    def run(given: list[str]) -> int:
        return tyro.cli(function, prog=prog, args=given, description=text)

    return run


def pick(prog: str, given: list[str], verbs: dict[str, Verb], text: str) -> int:
    """Run the verb that the first argument names; without one, or with --help, print `text`."""
    if not given or given[0] in ("-h", "--help"):
        print(text)
        return 0
    name, *rest = given
    if name not in verbs:
        near = difflib.get_close_matches(name, verbs, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(verbs)}; see {prog} --help"
        raise SparringError(f"no verb {name}: {hint}")
    return verbs[name](rest)


def printable(line: str) -> str:
    """What files say may be anything, orders to a terminal too."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))
