"""Mends how wasmtime's Python package hands on what is raised while a bot asks its host.

What a host function raises goes through one variable of all threads. Two bots that end at once then swap their ends:
one that ran out of points seems to have exited, and the judge decides otherwise. Here every thread has a variable of
its own. And Ctrl-C between the bot and the host function is lost, or kills the bot as if it had failed. Here it is kept
until somebody can raise it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from wasmtime import _func  # type: ignore[attr-defined, unused-ignore]

_raised = threading.local()


def mend() -> None:
    """Do it once for this process. Where wasmtime no longer has the variable there is nothing to mend."""
    functions: Any = _func.FUNCTIONS
    if not hasattr(_func, "LAST_EXCEPTION") or hasattr(functions, "mended"):
        return
    get = functions.get

    def noting(number: int) -> tuple[Any, ...]:
        function, *rest = get(number)
        return (_noted(function), *rest)

    usual = sys.unraisablehook

    def keeping(lost: sys.UnraisableHookArgs) -> None:
        if getattr(lost.object, "__module__", None) == _func.__name__:
            _raised.error = lost.exc_value
        else:
            usual(lost)

    functions.get, functions.mended = noting, True
    _func.maybe_raise_last_exn = _raise_own
    sys.unraisablehook = keeping


def _noted(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            if (kept := getattr(_raised, "error", None)) is not None:
                raise kept
            return function(*arguments)
        except BaseException as error:
            _raised.error = error
            raise

    return call


def _raise_own() -> None:
    error, _raised.error = getattr(_raised, "error", None), None
    last, _func.LAST_EXCEPTION = _func.LAST_EXCEPTION, None
    if error is None and isinstance(last, KeyboardInterrupt):  # Ctrl-C beside the host function
        error = last
    if error is not None:
        raise error
