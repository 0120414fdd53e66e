"""The player of examples/scripted_player.py, which keeps every rally up to the time limit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def example(name: str) -> Any:
    """The module examples/`name`.py."""
    path = Path(__file__).parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


keeper = example("scripted_player").keeper
