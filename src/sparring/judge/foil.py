"""The foil, the planner by hand, as a bot."""

from __future__ import annotations

from pathlib import Path

from sparring.judge.folder import bot_sources, write_bot

_ABOUT = """# The foil

A planning bot for UNSW Battlecode 2026, written by `sparring bot foil`. It needs nothing but the judge's toolkit:

    unswbc run MAP . . --sandbox"""


def write_foil(out: Path) -> str:
    """Write the foil's bot folder, and return its SHA-256. Raises SparringError; see `write_bot`."""
    return write_bot(out, bot_sources("foil"), _ABOUT)
