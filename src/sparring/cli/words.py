"""What the verbs share: parsing, help, printing."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparring.errors import SparringError

Verb = Callable[[list[str]], int]
"""Takes the arguments after its name, returns the exit code."""

STOPPED = 130
"""Exit code after Ctrl-C."""
_LINE_SECONDS = 10.0

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


def flags_given(**flags: Any) -> dict[str, Any]:
    """The flags that have a value: the others take the default of the function that gets these."""
    return {name: value for name, value in flags.items() if value is not None}


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A line on stderr that is replaced by the next one; where it is no terminal, a line every 10 s."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield lambda line: live.update(Text(line), refresh=True)
        return
    following = time.monotonic() + _LINE_SECONDS

    def show(line: str) -> None:
        nonlocal following
        if time.monotonic() >= following:
            following = time.monotonic() + _LINE_SECONDS
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    yield show
