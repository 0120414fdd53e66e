"""Pictures of runs, rallies and maps: the learning curve, a drawn court or board, an animation, a terminal."""

from __future__ import annotations

from sparring.errors import SparringError


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raises SparringError where `value` is not in [low, high]."""
    if not low <= value <= high:
        raise SparringError(f"{name} = {value:g} is out of range: allowed is {low:g} to {high:g}")
