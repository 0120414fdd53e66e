"""A small Cap'n Proto: packed messages of one or more segments, read and written by tables of fields.

A message is described once, by a `Record` of fields for each of its structs; the same table reads and writes it. What
is written equals, byte for byte, what Cap'n Proto's own C++ library writes if it sets the fields in the same order.

Source: https://capnproto.org/encoding.html, and for where new objects go, `MallocMessageBuilder` of the C++ library.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from sparring.errors import SparringError

WORD = 8
MOST_SEGMENTS = 512
"""A message of more segments is refused, as it is by the C++ library."""

_STRUCT, _LIST, _FAR = 0, 1, 2  # the lowest two bits of a pointer
_DOUBLE_FAR = 4
_BYTES, _PAIRS, _STRUCTS = 2, 3, 7  # element sizes of a list: 1 byte, 2 bytes, whole structs
_FIRST_ROOM = 1024  # words of the first segment

U8, U16, I32, U32, U64 = (struct.Struct(code) for code in ("<B", "<H", "<i", "<I", "<Q"))

# For each tag of a packed word, what spreads its non-zero bytes, followed by a zero, over eight places.
_SPREAD = [
    itemgetter(*(bin(tag & (1 << place) - 1).count("1") if tag >> place & 1 else tag.bit_count() for place in range(8)))
    for tag in range(256)
]


def pack(words: bytes | bytearray) -> bytes:
    """Words without most of their zero bytes: a tag of eight bits before each tells which bytes follow."""
    tags = np.packbits(np.frombuffer(words, np.uint8).reshape(-1, WORD) != 0, axis=1, bitorder="little").tobytes()
    packed = bytearray()
    at, end = 0, len(tags)
    while at < end:
        tag = tags[at]
        start = at * WORD
        at += 1
        last = min(at + 255, end)
        run = at
        packed.append(tag)
        if tag == 0:  # then the number of further zero words
            while run < last and tags[run] == 0:
                run += 1
            packed.append(run - at)
        elif tag == 255:  # then the number of further words that have at most one zero byte, then these unpacked
            while run < last and tags[run].bit_count() >= 7:
                run += 1
            packed += words[start : start + WORD]
            packed.append(run - at)
            packed += words[start + WORD : run * WORD]
        else:
            packed += words[start : start + WORD].replace(b"\0", b"")
        at = run
    return bytes(packed)


def unpack(packed: bytes, most_bytes: int) -> bytearray:
    """Undo `pack`. Raises SparringError if the bytes end within a word, or become more than `most_bytes`."""
    words = bytearray()
    at, end = 0, len(packed)
    try:
        while at < end:
            tag = packed[at]
            at += 1
            if tag == 0:
                words += bytes(WORD * (packed[at] + 1))
                at += 1
            elif tag == 255:
                literal = WORD * packed[at + WORD]
                words += packed[at : at + WORD]
                at += WORD + 1
                if at + literal > end:
                    raise IndexError
                words += packed[at : at + literal]
                at += literal
            else:
                count = tag.bit_count()
                words += bytes(_SPREAD[tag](packed[at : at + count] + b"\0"))
                at += count
            if len(words) > most_bytes:
                raise SparringError(f"it unpacks to more than {most_bytes} bytes")
    except IndexError:
        raise SparringError(f"it ends in the middle of a word, after {end} bytes") from None
    return words


class Message:
    """An unpacked message. Every pointer is checked as it is followed.

    No word is read twice, save where a caller asks twice: pointers that share what they point to are refused when more
    has been read than there is. So the work is bounded by the message's length; a table's nesting bounds the depth.
    """

    def __init__(self, packed: bytes, most_bytes: int) -> None:
        words = memoryview(unpack(packed, most_bytes))
        if not words:
            raise SparringError("it is empty")
        count = int.from_bytes(words[:4], "little") + 1
        header = (4 + 4 * count + WORD - 1) // WORD * WORD
        if count > MOST_SEGMENTS or header > len(words):
            raise SparringError(f"it announces {count} segments in {len(words)} bytes")
        sizes = struct.unpack_from(f"<{count}I", words, 4)
        if header + WORD * sum(sizes) != len(words):
            raise SparringError(f"it announces {header + WORD * sum(sizes)} bytes and has {len(words)}")
        self.segments: list[memoryview] = []
        for size in sizes:
            self.segments.append(words[header : header + WORD * size])
            header += WORD * size
        self.unread = sum(sizes)

    def top(self) -> Source:
        """A struct of one pointer: to the message's root."""
        self.take(0, 0, 1, "the root")
        return Source(self, 0, self.segments[0], 0, 0, 0, 1)

    def word(self, segment: int, at: int) -> int:
        """The word at `at` of a segment."""
        if segment >= len(self.segments) or not 0 <= WORD * at < len(self.segments[segment]):
            raise SparringError(f"segment {segment} has no word {at}")
        return int(U64.unpack_from(self.segments[segment], WORD * at)[0])

    def take(self, segment: int, at: int, words: int, what: str) -> None:
        """Check that words are there, and count them as read."""
        if segment >= len(self.segments) or at < 0 or WORD * (at + words) > len(self.segments[segment]):
            raise SparringError(f"{what} of {words} words at segment {segment}, word {at} reaches past the end")
        self.charge(words, what)

    def charge(self, words: int, what: str) -> None:
        """Count words as read."""
        self.unread -= words
        if self.unread < 0:
            raise SparringError(f"{what} shares its words with others, so that there is more to read than is there")

    def target(self, segment: int, at: int) -> tuple[int, int, int] | None:
        """What the pointer at a word points to: segment, word, and the pointer that tells its kind and size."""
        pointer = self.word(segment, at)
        if pointer == 0:
            return None
        if pointer & 3 == _FAR:
            segment, at = pointer >> 32, pointer >> 3 & 0x1FFFFFFF
            landing = self.word(segment, at)
            if pointer & _DOUBLE_FAR:
                if landing & 7 != _FAR:
                    raise SparringError(f"the pointer at segment {segment}, word {at} is not a far one")
                return landing >> 32, landing >> 3 & 0x1FFFFFFF, self.word(segment, at + 1)
            pointer = landing
        distance = pointer >> 2 & 0x3FFFFFFF
        return segment, at + 1 + distance - (distance >> 29 << 30), pointer


class Source(NamedTuple):
    """A struct that is read. What it is too short for is zero, as its writer may not have known it."""

    message: Message
    segment: int
    bytes: memoryview
    data: int  # bytes from the segment's start
    data_size: int
    pointers: int  # words from the segment's start
    pointer_count: int

    def number(self, codec: struct.Struct, at: int) -> int:
        """The number at byte `at` of the data."""
        if at + codec.size > self.data_size:
            return 0
        return int(codec.unpack_from(self.bytes, self.data + at)[0])

    def target(self, index: int) -> tuple[int, int, int] | None:
        """What a pointer points to, see Message.target; None if it is null."""
        return self.message.target(self.segment, self.pointers + index) if index < self.pointer_count else None

    def struct(self, index: int) -> Source | None:
        """The struct behind a pointer; None if the pointer is null or the struct empty, so that all in it is zero."""
        found = self.target(index)
        if found is None:
            return None
        number, start, pointer = found
        if pointer & 3 != _STRUCT:
            raise SparringError(f"there is no struct at segment {number}, word {start}")
        data, pointers = pointer >> 32 & 0xFFFF, pointer >> 48
        self.message.take(number, start, data + pointers, "a struct")
        if data + pointers == 0:
            return None
        segment = self.message.segments[number]
        return Source(self.message, number, segment, WORD * start, WORD * data, start + data, pointers)

    def plain_list(self, index: int, element: int) -> memoryview:
        """The bytes of the list behind a pointer; none if the pointer is null."""
        found = self.target(index)
        if found is None:
            return memoryview(b"")
        number, start, pointer = found
        if pointer & 3 != _LIST or pointer >> 32 & 7 != element:
            raise SparringError(f"there is no list of this kind at segment {number}, word {start}")
        size = (pointer >> 35) * {_BYTES: 1, _PAIRS: 2}[element]
        self.message.take(number, start, (size + WORD - 1) // WORD, "a list")
        return self.message.segments[number][WORD * start : WORD * start + size]

    def struct_list(self, index: int) -> Iterator[Source]:
        """The structs of the list behind a pointer; none if the pointer is null."""
        found = self.target(index)
        if found is None:
            return
        number, start, pointer = found
        if pointer & 3 != _LIST or pointer >> 32 & 7 != _STRUCTS:
            raise SparringError(f"there is no list of structs at segment {number}, word {start}")
        words = pointer >> 35
        self.message.take(number, start, words + 1, "a list")
        tag = self.message.word(number, start)
        count, data, pointers = tag >> 2 & 0x3FFFFFFF, tag >> 32 & 0xFFFF, tag >> 48
        size = data + pointers
        if tag & 3 != _STRUCT or count * size > words:
            raise SparringError(
                f"the list at segment {number}, word {start} does not hold the structs that it announces"
            )
        if size == 0:
            self.message.charge(count, "a list of nothing")
        segment = self.message.segments[number]
        for element in range(count):
            first = start + 1 + element * size
            yield Source(self.message, number, segment, WORD * first, WORD * data, first + data, pointers)


_BLANK = Source(Message(pack(struct.pack("<IIQ", 0, 1, 0)), 64), 0, memoryview(b""), 0, 0, 0, 0)


class Target(NamedTuple):
    """A struct that is written."""

    draft: Draft
    segment: int
    data: int  # words from the segment's start, as below
    pointers: int

    def put(self, codec: struct.Struct, at: int, value: int) -> None:
        """Write a number at byte `at` of the data. Raises struct.error if it is too large."""
        codec.pack_into(self.draft.segments[self.segment], WORD * self.data + at, value)

    def struct(self, index: int, layout: Layout) -> Target:
        """A new struct behind a pointer."""
        pointer = layout.words << 32 | layout.pointers << 48 | _STRUCT
        segment, start = self.draft.place(self.segment, self.pointers + index, layout.words + layout.pointers, pointer)
        return Target(self.draft, segment, start, start + layout.words)

    def plain_list(self, index: int, element: int, count: int, content: bytes) -> None:
        """A new list of `count` elements, which are `content`, behind a pointer."""
        pointer = count << 35 | element << 32 | _LIST
        segment, start = self.draft.place(self.segment, self.pointers + index, -(-len(content) // WORD), pointer)
        self.draft.segments[segment][WORD * start : WORD * start + len(content)] = content

    def struct_list(self, index: int, layout: Layout, count: int) -> Iterator[Target]:
        """A new list of structs behind a pointer."""
        size = layout.words + layout.pointers
        pointer = size * count << 35 | _STRUCTS << 32 | _LIST
        segment, start = self.draft.place(self.segment, self.pointers + index, size * count + 1, pointer)
        tag = count << 2 | layout.words << 32 | layout.pointers << 48
        U64.pack_into(self.draft.segments[segment], WORD * start, tag)
        for element in range(count):
            first = start + 1 + element * size
            yield Target(self.draft, segment, first, first + layout.words)


class Draft:
    """A message that is written. New objects go into the segment of their pointer, or else into the last one."""

    def __init__(self) -> None:
        self.segments: list[bytearray] = []
        self._rooms: list[int] = []  # words that a segment may have
        self._next_room = _FIRST_ROOM

    def _allocate(self, segment: int, words: int) -> int | None:
        content = self.segments[segment]
        start = len(content) // WORD
        if start + words > self._rooms[segment]:
            return None
        content += bytes(WORD * words)
        return start

    def allocate(self, words: int) -> tuple[int, int]:
        """Room in the last segment, or in a new one: its segment and first word."""
        last = len(self.segments) - 1
        start = self._allocate(last, words) if self.segments else None
        if start is None:
            room = max(words, self._next_room)
            self._next_room = room if not self.segments else self._next_room + room
            self.segments.append(bytearray())
            self._rooms.append(room)
            last += 1
            start = self._allocate(last, words)
            assert start is not None  # the segment was made for it
        return last, start

    def place(self, segment: int, at: int, words: int, pointer: int) -> tuple[int, int]:
        """Room behind the pointer at a word, which becomes `pointer` with the distance: its segment and first word."""
        start = self._allocate(segment, words)
        if start is None:
            number, pad = self.allocate(words + 1)  # the pointer itself stands before the room, and a far one here
            U64.pack_into(self.segments[segment], WORD * at, number << 32 | pad << 3 | _FAR)
            segment, at, start = number, pad, pad + 1
        U64.pack_into(self.segments[segment], WORD * at, pointer | (start - at - 1 & 0x3FFFFFFF) << 2)
        return segment, start

    def top(self) -> Target:
        """A struct of one pointer: to the message's root."""
        segment, at = self.allocate(1)
        return Target(self, segment, at, at)

    def packed(self) -> bytes:
        """The message."""
        sizes = [len(segment) // WORD for segment in self.segments]
        header = struct.pack(f"<{len(sizes) + 1}I", len(sizes) - 1, *sizes)
        header += bytes(-len(header) % WORD)
        return pack(header) + b"".join([pack(segment) for segment in self.segments])


class Layout(Protocol):
    """What a struct is made of: a Record, or a Union."""

    words: int
    pointers: int

    def read(self, source: Source) -> Any: ...

    def write(self, target: Target, value: Any) -> None: ...


class Field(NamedTuple):
    """How one value is read from a struct and written to one."""

    read: Callable[[Source], Any]
    write: Callable[[Target, Any], None]


class Record:
    """A struct whose fields are the fields of a dataclass or named tuple, in its order. Sizes in words."""

    def __init__(self, make: type, words: int, pointers: int, *fields: Field) -> None:
        self.make, self.words, self.pointers = make, words, pointers
        names = [f.name for f in dataclasses.fields(make)] if dataclasses.is_dataclass(make) else make._fields  # type: ignore[attr-defined]
        self._fields = list(zip(names, fields, strict=True))
        self._reads = [field.read for field in fields]

    def read(self, source: Source) -> Any:
        return self.make(*[read(source) for read in self._reads])

    def write(self, target: Target, value: Any) -> None:
        for name, field in self._fields:
            field.write(target, getattr(value, name))


class Union:
    """A struct that is one of several things: which one, its number at byte `tag` tells, and in Python the class."""

    def __init__(self, what: str, words: int, pointers: int, tag: int, options: Mapping[type, Field]) -> None:
        self.words, self.pointers = words, pointers
        self._what, self._tag = what, tag
        self._options = list(options.values())
        self._numbers = {make: number for number, make in enumerate(options)}

    def read(self, source: Source) -> Any:
        number = source.number(U16, self._tag)
        if number >= len(self._options):
            raise SparringError(f"there is no {self._what} of kind {number}")
        return self._options[number].read(source)

    def write(self, target: Target, value: Any) -> None:
        number = self._numbers[type(value)]
        target.put(U16, self._tag, number)
        self._options[number].write(target, value)


def _number(codec: struct.Struct, at: int) -> Field:
    return Field(lambda source: source.number(codec, at), lambda target, value: target.put(codec, at, value))


def uint8(at: int) -> Field:
    """An int at byte `at` of the data, as are the others."""
    return _number(U8, at)


def int32(at: int) -> Field:
    return _number(I32, at)


def uint32(at: int) -> Field:
    return _number(U32, at)


def uint64(at: int) -> Field:
    return _number(U64, at)


def flag(bit: int) -> Field:
    """A bool: one bit of the data."""
    at, mask = bit // 8, 1 << bit % 8

    def write(target: Target, value: bool) -> None:
        if value:
            target.draft.segments[target.segment][WORD * target.data + at] |= mask

    return Field(lambda source: source.number(U8, at) & mask != 0, write)


def choice(at: int, names: Sequence[str]) -> Field:
    """One of `names`, by its number."""

    def read(source: Source) -> str:
        number = source.number(U16, at)
        if number >= len(names):
            raise SparringError(f"there are {len(names)} of {', '.join(names)}, and no number {number}")
        return names[number]

    return Field(read, lambda target, name: target.put(U16, at, names.index(name)))


def optional(tag: int, field: Field) -> Field:
    """None or a value: the number at byte `tag` is 0 or 1."""

    def read(source: Source) -> Any:
        number = source.number(U16, tag)
        if number > 1:
            raise SparringError(f"a value is there or not, and {number} says neither")
        return field.read(source) if number else None

    def write(target: Target, value: Any) -> None:
        if value is not None:
            target.put(U16, tag, 1)
            field.write(target, value)

    return Field(read, write)


def inline(layout: Layout) -> Field:
    """A value whose fields lie among those of the struct around it."""
    return Field(layout.read, layout.write)


def part(pointer: int, layout: Layout) -> Field:
    """A struct behind a pointer."""
    blank = layout.read(_BLANK)  # shared, so that many null pointers take no memory

    def read(source: Source) -> Any:
        found = source.struct(pointer)
        return layout.read(found) if found else blank

    return Field(read, lambda target, value: layout.write(target.struct(pointer, layout), value))


def optional_part(pointer: int, layout: Layout) -> Field:
    """A struct behind a pointer, or None where that is null."""
    field = part(pointer, layout)

    def write(target: Target, value: Any) -> None:
        if value is not None:
            field.write(target, value)

    return Field(lambda source: field.read(source) if source.target(pointer) else None, write)


def parts(pointer: int, layout: Layout, what: str) -> Field:
    """A tuple: the list of structs behind a pointer. `what` names one of them in errors."""

    def read(source: Source) -> tuple[Any, ...]:
        values: list[Any] = []
        try:
            for element in source.struct_list(pointer):
                values.append(layout.read(element))
        except SparringError as error:
            raise SparringError(f"{what} {len(values)}: {error}") from None
        return tuple(values)

    def write(target: Target, values: Sequence[Any]) -> None:
        elements = target.struct_list(pointer, layout, len(values))
        for number, (element, value) in enumerate(zip(elements, values, strict=True)):
            try:
                layout.write(element, value)
            except (struct.error, ValueError) as error:
                raise ValueError(f"{what} {number}: {error}") from error

    return Field(read, write)


def blob(pointer: int) -> Field:
    """The bytes of the text behind a pointer."""

    def read(source: Source) -> bytes:
        content = bytes(source.plain_list(pointer, _BYTES)) or b"\0"
        if content[-1] != 0:
            raise SparringError("a text has no end")
        return content[:-1]

    def write(target: Target, value: bytes) -> None:
        target.plain_list(pointer, _BYTES, len(value) + 1, value + b"\0")

    return Field(read, write)


def text(pointer: int) -> Field:
    """The text behind a pointer. Bytes that are not UTF-8 are kept as lone surrogates."""
    field = blob(pointer)
    return Field(
        lambda source: field.read(source).decode("utf-8", "surrogateescape"),
        lambda target, value: field.write(target, value.encode("utf-8", "surrogateescape")),
    )


def letters(pointer: int, alphabet: str) -> Field:
    """The list of numbers behind a pointer, as a string: each number is a letter of the alphabet."""

    def read(source: Source) -> str:
        content = source.plain_list(pointer, _PAIRS)
        numbers = struct.unpack(f"<{len(content) // 2}H", content)
        if any(number >= len(alphabet) for number in numbers):
            raise SparringError(f"there are {len(alphabet)} of {', '.join(alphabet)}, and no number {max(numbers)}")
        return "".join([alphabet[number] for number in numbers])

    def write(target: Target, value: str) -> None:
        numbers = [alphabet.index(letter) for letter in value]
        target.plain_list(pointer, _PAIRS, len(numbers), struct.pack(f"<{len(numbers)}H", *numbers))

    return Field(read, write)
