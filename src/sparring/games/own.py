"""A game of the user's own, found by the file it is written in."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparring.errors import SparringError
from sparring.games.api import Game


def own_game(word: str) -> Callable[..., Game]:
    """The factory that `FILE.py:NAME` names, as `sparring.make` and `sparring.train(game=...)` take it.

    NAME is a class or function. One with an argument `lanes` is a game of the decision stream, called with `lanes` and
    `seed`; any other makes a PettingZoo environment when it is called without arguments.

    Runs the file. Raises SparringError where there is no such file or name, and what the file itself raises.
    """
    file, _, name = word.rpartition(":")
    path = Path(file)
    if path.suffix != ".py" or not name:
        raise SparringError(f"own = {word}: give a file and a name in it, such as my_game.py:parallel_env")
    if not path.is_file():
        raise SparringError(f"own = {word}: there is no file {path}")
    module_name = f"sparring_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses in it look themselves up
    spec.loader.exec_module(module)
    found: Any = getattr(module, name, None)
    if not callable(found):
        raise SparringError(f"own = {word}: {path} has no class or function {name}")
    signature = inspect.signature(found)
    stream = "lanes" in signature.parameters
    try:
        signature.bind(**({"lanes": 1, "seed": 0} if stream else {}))
    except TypeError as error:
        with_what = "with lanes and seed" if stream else "without arguments"
        raise SparringError(f"own = {word}: {name} is called {with_what} ({error}): give another function") from None
    if stream:
        return found  # type: ignore[no-any-return]
    try:
        from sparring.games.pettingzoo import pettingzoo
    except ImportError as error:
        raise SparringError(f"own = {word} needs PettingZoo ({error}): pip install 'sparring[zoo]'") from None
    return pettingzoo(found)
