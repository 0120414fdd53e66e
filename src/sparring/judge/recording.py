"""Replays of matches of our own engine, from the words in which its core records them (core/loong/recording.h)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from sparring.judge.replay_format import (
    DEATHS,
    DIRECTIONS,
    HITS,
    SHAPES,
    TEAMS,
    Action,
    DebugDraw,
    DragonAction,
    DragonDeath,
    DragonIndicator,
    DragonLog,
    DragonSplit,
    DragonUpdate,
    Drawing,
    EngineLog,
    Event,
    Move,
    NoAction,
    PearlCountdown,
    RoundStart,
    SonarPing,
    Split,
    Tile,
    TileChange,
    TurnStart,
)


def recorded_events(width: int, height: int, words: bytes, texts: bytes) -> tuple[Event, ...]:
    """The events of `LoongTextMatch.recording()`, whose parts these are."""
    numbers = iter(np.frombuffer(words, np.int32).tolist())
    take = numbers.__next__
    tiles = [Tile(x, y) for y, x in product(range(height), range(width))]
    read_texts = 0

    def tile() -> Tile:
        at: int = take()
        return tiles[at]

    def direction() -> str:
        return DIRECTIONS[take()]

    def body() -> tuple[Tile, ...]:
        return tuple([tile() for _ in range(take())])

    def text() -> str:
        nonlocal read_texts
        start, read_texts = read_texts, read_texts + take()
        return until_nul(texts[start:read_texts]).decode("utf-8", "surrogateescape")

    def action() -> Action:
        kind = take()
        if kind == 1:
            return Move("".join([direction() for _ in range(take())]))
        return Split(take()) if kind == 2 else NoAction()

    def ping() -> SonarPing:
        sender, towards, origin, end, hit = take(), direction(), tile(), tile(), take()
        value = take() & 0xFFFFFFFF | (take() & 0xFFFFFFFF) << 32
        return SonarPing(sender, towards, origin, end, None if hit < 0 else hit, value, HITS[1 + take()])

    # By kind, in the judge's order. Python reads arguments from left to right.
    readers: tuple[Callable[[], Event], ...] = (
        lambda: RoundStart(take()),
        lambda: TurnStart(take()),
        lambda: PearlCountdown(tile(), take()),
        lambda: TileChange(tile(), take() != 0),
        lambda: DragonAction(take(), action()),
        lambda: EngineLog(take(), text()),
        lambda: DragonLog(take(), text()),
        lambda: DragonIndicator(take(), text()),
        lambda: DebugDraw(
            take(),
            Drawing(
                *(SHAPES[take()], Tile(take(), take()), Tile(take(), take())),
                *(take() & 255, take() & 255, take() & 255),
            ),
        ),
        lambda: DragonUpdate(take(), direction(), tile(), tile()),
        lambda: DragonSplit(take(), take(), TEAMS[take()], direction(), body(), body()),
        lambda: DragonDeath(take(), DEATHS[take()]),
        ping,
    )
    return tuple([readers[kind]() for kind in numbers])


def until_nul(text: bytes) -> bytes:
    """Texts in the judge's replays end at their first NUL."""
    return text.partition(b"\0")[0]
