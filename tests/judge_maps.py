"""The installed judge as a reader of maps: what tests hold ours against."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _engine() -> Any:
    from unswbc.engine import EngineModule

    return EngineModule()


def judge_says(file: bytes) -> str | None:
    """Why the judge refuses a map, None where it loads."""
    try:
        first_blocks(file)
    except RuntimeError as refused:
        return str(refused)
    return None


def first_blocks(file: bytes) -> dict[int, list[str]]:
    """The lines each dragon reads in round 0; each then dies of an empty reply."""
    blocks: dict[int, list[str]] = {}

    def reply(dragon: int, block: bytes) -> bytes:
        blocks[dragon] = block.decode().splitlines()
        return b"\n"

    ignore: Callable[..., None] = lambda *_: None  # noqa: E731
    _engine().run(file, reply, ignore, ignore, ignore, 0, 1)
    return blocks
