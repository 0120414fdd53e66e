"""A bot that decides by core/net in the judge's sandbox, as a function."""

from __future__ import annotations

import shutil
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparring.judge.build import build_bot
from sparring.judge.entrants import load_entrant
from sparring.judge.sandbox import SandboxSide

REPOSITORY = Path(__file__).resolve().parents[1]


def bot_wasm() -> Path:
    """The WebAssembly of tests/net_bot.cpp with the headers of the core."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("common", "loong", "net"):
            shutil.copytree(REPOSITORY / "core" / name, Path(folder) / name)
        shutil.copy(REPOSITORY / "tests" / "net_bot.cpp", folder)
        (Path(folder) / "bot.toml").write_text('[project]\nlanguage = "c++"\ninclude = ["*.cpp", "*.h"]\n')
        return build_bot(Path(folder))


@dataclass(frozen=True)
class Decided:
    """packed, hashes of the memory: by the scalar and by the SIMD way; points of the latter, in all and by layer."""

    packed: tuple[int, int]
    memory: tuple[int, int]
    points: int
    layers: dict[str, int]


class NetBot:
    """One dragon's network in the sandbox."""

    def __init__(self, blob: bytes) -> None:
        self._side = SandboxSide(load_entrant(bot_wasm()), seed=1, team="A")
        self._side.spawn(0, b"")
        self.said = self._ask(blob)

    def decide(self, inputs: NDArray[np.uint8], mask: NDArray[np.uint8], *, newborn: bool) -> Decided:
        """inputs: uint8 [9424]; mask: uint8 [40]."""
        words = self._ask(inputs.tobytes() + mask.tobytes() + bytes([newborn]))
        numbers, layers = [*map(int, words[:5])], words[5:]
        taken = dict(zip(layers[::2], map(int, layers[1::2]), strict=True))
        return Decided((numbers[0], numbers[1]), (numbers[2], numbers[3]), numbers[4], taken)

    def close(self) -> None:
        self._side.close()

    def _ask(self, content: bytes) -> list[str]:
        answer = self._side.reply(0, struct.pack("<I", len(content) + 2) + content + b"\n\n")
        words = answer.reply.decode().split()
        assert words[:1] == ["INDICATOR"], answer
        return words[1:]
