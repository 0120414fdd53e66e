"""A bot of what dragons know, built by the judge's clang, against the same knowledge here. As a program it prints the
points that the parts of a turn take: `python tests/knowledge_bot.py MAP...` with names of shipped maps."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparring import _core
from sparring.games.loong_choices import INPUTS, MASK
from sparring.judge.build import build_bot
from sparring.judge.entrants import load_entrant
from sparring.judge.native import NativeEngine
from sparring.judge.sandbox import SandboxSide

REPOSITORY = Path(__file__).resolve().parents[1]
REACH = _core.LOONG_PLANES["crop"].index("reach")


def bot_wasm() -> Path:
    """The WebAssembly of tests/knowledge_bot.cpp with the headers of the core."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("common", "loong"):
            shutil.copytree(REPOSITORY / "core" / name, Path(folder) / name)
        shutil.copy(REPOSITORY / "tests" / "knowledge_bot.cpp", folder)
        (Path(folder) / "bot.toml").write_text('[project]\nlanguage = "c++"\ninclude = ["*.cpp", "*.h"]\n')
        return build_bot(Path(folder))


def hashed(*rows: NDArray[np.uint8]) -> int:
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in b"".join(row.tobytes() for row in rows):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def first_free_way(inputs: NDArray[np.uint8], mask: NDArray[np.uint8], round: int) -> int:
    row, allowed = inputs.view(INPUTS)[0], mask.view(MASK)[0]
    held = int(allowed["held"])
    if allowed["kinds"][2] and round % 3 == 0:
        return _core.loong_pack(held, "split", 0, 2, [], 3)
    free = [way for way, (r, c) in enumerate(((6, 7), (7, 6), (7, 8))) if row["crop"][r, c, REACH]]
    return _core.loong_pack(held, "move", free[0] if free else 0, 0, [], 3)


def play_bot(map_bytes: bytes, seed: int, turns: int, *, compared: bool = True) -> NDArray[np.int64]:
    """The bot plays both teams. Returns by turn the points to parse, to remember, to observe, to choose, and all.

    Asserts that it knows and replies what `_core.LoongDragons` does.
    """
    side = SandboxSide(load_entrant(bot_wasm()), seed=seed, team="A")
    inits: dict[int, bytes] = {}
    dragons: dict[int, _core.LoongDragons] = {}
    taken: list[list[int]] = []

    def spawn(dragon: int, init: bytes) -> None:
        inits[dragon] = init
        side.spawn(dragon, init)

    def reply(dragon: int, block: bytes) -> bytes:
        if len(taken) == turns:
            return b""
        answer = side.reply(dragon, block)
        indicator, _, rest = answer.reply.partition(b"\n")
        words = indicator.split()
        assert words[:1] == [b"INDICATOR"], answer
        if compared:
            lone = dragons.setdefault(dragon, _core.LoongDragons())
            inputs, mask = lone.observe(inits[dragon], block)
            assert int(words[1]) == hashed(inputs, mask)
            assert rest == lone.act(first_free_way(inputs, mask, int(block.split()[1])))
        taken.append([*map(int, words[2:]), answer.points])
        return rest

    NativeEngine().run(map_bytes, reply, lambda dragon, *_: side.died(dragon), spawn, print, 0, seed)
    side.close()
    return np.array(taken)


if __name__ == "__main__":
    from sparring.levels.shipped import shipped_folder

    for each in sys.argv[1:]:
        points = play_bot((shipped_folder() / f"{each}.map").read_bytes(), 1, 1500, compared=False)
        means, most = points.mean(axis=0).round().astype(int), points.max(axis=0)
        print(f"{each}: {len(points)} turns, mean and most points")
        for name, mean, high in zip(("parse", "remember", "observe", "choose", "turn"), means, most, strict=True):
            print(f"  {name:9} {mean:9,} {high:9,}")
