"""What a student knows, chooses and replies when the judge asks: by the reference, and as an inspection build says."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sparring import _core
from sparring.distil.quantise import ExactStudent, IntegerStudent
from sparring.games.loong_choices import INPUTS
from sparring.judge.sides import Answer, Side
from sparring.policies.fixed_point import UNIT

SECTIONS = (*INPUTS.names, "mask", "sights", "notes", "life", "memory")
"""Bytes that are compared: inputs and mask of a turn, the remembered map (two numbers a tile) and life, the network's
memory after the turn. As in core/bot/inspection.cpp."""
PARTS = ("read", "parse", "remember", "observe", "think", "choose")
"""Of a turn, as in core/bot/bot.h."""

_SONAR = re.compile(rb"^SONAR [NESW] (\d+)$", re.MULTILINE)
_SAID = re.compile(rb"^LOG((?: \d+){%d})\n" % (len(SECTIONS) + 2 + len(PARTS)), re.MULTILINE)
_TOLD_BYTES = 2048


class Asked(NamedTuple):
    """A turn of a life: the dragon's init block and its round block. slot: of the life."""

    slot: int
    init: bytes
    block: bytes


class Known(NamedTuple):
    """What the reference made of a turn.

    sections: see SECTIONS; packet: the message that it sends
    exact:    the choice of the quantised student in float64, and whether it remembers the same
    """

    sections: tuple[bytes, ...]
    choice: int
    packet: int
    reply: bytes
    exact: tuple[int, bool]

    def section(self, what: str) -> bytes | None:
        """The bytes of a section; None of what is none."""
        return self.sections[SECTIONS.index(what)] if what in SECTIONS else None


class Said(NamedTuple):
    """What an inspection build says of a turn. sums: CRC-32 of the sections; parts: points; reply: without all this."""

    sums: tuple[int, ...]
    choice: int
    packet: int
    parts: tuple[int, ...]
    reply: bytes


class Difference(NamedTuple):
    """What differs in a turn: a section, "choice", "packet", "reply", "inspected reply" or "quantised student"."""

    what: str
    expected: int | bytes
    found: int | bytes


class Reference:
    """The lives of dragons that a student plays, each in a slot of its own."""

    def __init__(self, student: IntegerStudent, build: int, slots: int = 1) -> None:
        """build: of the bot, see `packet_key` in the core."""
        self._student, self._exact = student, ExactStudent(student)
        self._dragons = _core.LoongDragons(slots, build=build)
        self._memory = np.zeros((slots, student.config.memory), np.int16)

    def ask(self, turns: Sequence[Asked]) -> list[Known]:
        """One turn of each of some lives."""
        slots = [turn.slot for turn in turns]
        rows = [self._dragons.observe(turn.init, turn.block, turn.slot) for turn in turns]
        inputs, masks = (np.stack(each) for each in zip(*rows, strict=True))
        before = self._memory[slots]
        choices, self._memory[slots] = self._student.step(inputs, masks, before)
        with torch.inference_mode():
            memory = torch.from_numpy(before).double() * UNIT.unit
            tree, after = self._exact.step(torch.from_numpy(inputs), torch.from_numpy(masks), memory)
            exact = tree.mode().tolist()
        alike = (after.numpy() == self._memory[slots] * UNIT.unit).all(axis=1).tolist()
        rows_out = zip(slots, inputs, masks, choices.tolist(), zip(exact, alike, strict=True), strict=True)
        return [self._known(*row) for row in rows_out]

    def _known(
        self, slot: int, inputs: NDArray[np.uint8], mask: NDArray[np.uint8], choice: int, exact: tuple[int, bool]
    ) -> Known:
        reply = self._dragons.act(choice, slot)
        row = inputs.view(INPUTS)[0]
        remembered = (part if isinstance(part, bytes) else part.tobytes() for part in self._dragons.remembered(slot))
        sections = (*(row[name].tobytes() for name in INPUTS.names), mask.tobytes(), *remembered)
        packet = _SONAR.search(reply)
        sent = int(packet[1]) if packet else 0
        return Known((*sections, self._memory[slot].tobytes()), choice, sent, reply, exact)


def said(reply: bytes) -> Said | None:
    """The reply of an inspection build, taken apart; None of another reply."""
    found = _SAID.search(reply)
    if found is None:
        return None
    numbers = iter(map(int, found[1].split()))
    sums = tuple(next(numbers) for _ in SECTIONS)
    return Said(sums, next(numbers), next(numbers), tuple(numbers), reply[: found.start()] + reply[found.end() :])


def differences(known: Known, inspected: Said | None, answer: Answer) -> Iterator[Difference]:
    """What somebody made of a turn otherwise than the reference. answer: of the bot as it is submitted."""
    if known.exact != (known.choice, True):
        yield Difference("quantised student", known.choice, known.exact[0])
    if inspected is not None:
        for what, expected, sum in zip(SECTIONS, map(zlib.crc32, known.sections), inspected.sums, strict=True):
            if expected != sum:
                yield Difference(what, expected, sum)
        if known.choice != inspected.choice:
            yield Difference("choice", known.choice, inspected.choice)
        if known.packet != inspected.packet:
            yield Difference("packet", known.packet, inspected.packet)
    found = (answer.error or "").encode() or answer.reply
    if known.reply != found:
        yield Difference("reply", known.reply, found)
    of_inspection = b"" if inspected is None else inspected.reply
    if known.reply != of_inspection:
        yield Difference("inspected reply", known.reply, of_inspection)


def section_bytes(side: Side, dragon: int, section: str, size: int) -> bytes:
    """Ask a dragon of an inspection build for the bytes of a section after its last turn."""
    content = b""
    for at in range(0, size, _TOLD_BYTES):
        reply = side.reply(dragon, b"INSPECT %d %d\n" % (SECTIONS.index(section), at)).reply
        letters = reply.removeprefix(b"LOG ").rstrip(b"\n")
        content += bytes(low - 97 | high - 97 << 4 for low, high in zip(letters[::2], letters[1::2], strict=True))
    return content
