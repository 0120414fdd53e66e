"""Dragon-turns per second of our Loong engine against the organisers', in one run.

    .venv/bin/python bench/engine.py [--rounds 7]

Both engines play the same recorded matches on the shipped 32x32 map `default`: random ones, and ones as long as strong
bots play. The organisers' engine asks a Python function that has all replies ready; ours is asked in the same way
through its drop-in, and plays the same actions as rows in a batch, one turn in every lane per call. Lanes start at
points spread over the matches, so that young and old matches are timed alike. Each contender is timed in turn in every
round; ratios are taken within a round. Both cores must be idle.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

from sparring import _core
from sparring.judge.native import NativeEngine, load_level
from sparring.judge.official import official_engine
from sparring.levels.shipped import shipped_folder

MAP = "default"
ACTION, LANE = np.dtype(_core.LOONG_ACTION), np.dtype(_core.LOONG_LANE)
KINDS = {"random": ("legal", "legal"), "strong length": ("forager", "splitter")}
LANES = (256, 2048)
MATCHES = 8
"""Recorded for each kind."""
POINTS = 48
"""Of a recorded match from which lanes start."""
STEPS = 200
"""Turns of a lane that are timed at a stretch."""


@dataclass
class Recording:
    """One match: its actions [turns, bytes], and the state of its lane before turns spread over it."""

    seed: int
    actions: NDArray[np.uint8]
    states: dict[int, NDArray[np.uint8]]

    @property
    def turns(self) -> int:
        return len(self.actions)


def script_rows(lanes: int, teams: tuple[str, str]) -> NDArray[np.uint8]:
    numbers = [_core.LOONG_SCRIPTS.index(name) for name in teams]
    return np.tile(np.array(numbers, np.uint8), (lanes, 1))


def record(level: _core.LoongLevel, seed: int, teams: tuple[str, str]) -> Recording:
    def play(keep: set[int]) -> Recording:
        batch = _core.LoongMatches([level], 1, lean=True)
        batch.restart(np.array([0]), np.array([0]), np.array([seed], np.uint64))
        row, scripts = batch.rows.view(LANE)[:, 0], script_rows(1, teams)
        actions, states = [], {}
        while row["waiting"][0]:
            if len(actions) in keep:
                states[len(actions)] = batch.state()[0]
            action = np.zeros((1, ACTION.itemsize), np.uint8)
            batch.decide(scripts, 0, action)
            actions.append(action[0])
            batch.act(action)
        return Recording(seed, np.stack(actions), states)

    turns = play(set()).turns
    if turns <= STEPS:
        raise SystemExit(f"the match of seed {seed} ends after {turns} turns: too short to time {STEPS}")
    return play({int(turn) for turn in np.linspace(0, turns - STEPS, POINTS)})


def by_callback(engine: Any, map_bytes: bytes, recording: Recording) -> float:
    """Turns per second of an engine that is asked as the judge asks."""
    replies = iter([_core.loong_reply(action.tobytes()) for action in recording.actions])
    start = time.perf_counter()
    engine.run(map_bytes, lambda _dragon, _block: next(replies), None, None, None, 0, recording.seed)
    seconds = time.perf_counter() - start
    assert next(replies, None) is None, "the engine asked less often than in the recorded match"
    return recording.turns / seconds


class Lanes:
    """A batch whose lanes start at points spread over recorded matches."""

    def __init__(self, level: _core.LoongLevel, lanes: int, recordings: list[Recording]) -> None:
        points = [(recording, turn) for recording in recordings for turn in recording.states]
        order = np.random.default_rng(0).permutation(lanes) % len(points)
        chosen = [points[i] for i in order]
        self.level = level
        self.states = np.stack([recording.states[turn] for recording, turn in chosen])
        self.actions = np.stack([recording.actions[turn : turn + STEPS] for recording, turn in chosen], axis=1)

    def speed(self, threads: int) -> float:
        steps, lanes = self.actions.shape[:2]
        batch = _core.LoongMatches([self.level], lanes, threads=threads, lean=True)
        batch.load_state(self.states)
        start = time.perf_counter()
        for actions in self.actions:
            batch.act(actions)
        seconds = time.perf_counter() - start
        assert not batch.rows.view(LANE)["fault"].any()
        return steps * lanes / seconds


def scripted_speed(level: _core.LoongLevel, lanes: int, threads: int) -> float:
    """Random players in the core, new matches for those that end, all counted."""
    batch = _core.LoongMatches([level], lanes, threads=threads, lean=True)
    rows, scripts = batch.rows.view(LANE)[:, 0], script_rows(lanes, ("legal", "legal"))
    actions = np.zeros((lanes, ACTION.itemsize), np.uint8)
    every = np.arange(lanes)

    def play(steps: int) -> int:
        turns = 0
        for step in range(steps):
            if step % 20 == 0:
                over = every[rows["over"] != 0]
                batch.restart(over, np.zeros_like(over), rows["seed"][over] + np.uint64(lanes))
            turns += np.count_nonzero(rows["waiting"])
            batch.decide(scripts, 0, actions)
            batch.act(actions)
        return turns

    play(1500)  # until the lanes' matches are of all ages
    start = time.perf_counter()
    turns = play(STEPS)
    return turns / (time.perf_counter() - start)


def restart_microseconds(level: _core.LoongLevel, lanes: int) -> float:
    batch = _core.LoongMatches([level], lanes, lean=True)
    every, seeds = np.arange(lanes), np.arange(lanes, dtype=np.uint64)
    start = time.perf_counter()
    for _ in range(5):
        batch.restart(every, np.zeros_like(every), seeds)
    return (time.perf_counter() - start) / (5 * lanes) * 1e6


def contenders(
    level: _core.LoongLevel, map_bytes: bytes, recordings: dict[str, list[Recording]]
) -> Iterator[tuple[str, Callable[[], float]]]:
    official, native = official_engine(), NativeEngine()
    for kind, recorded in recordings.items():
        shortest = min(recorded, key=lambda recording: recording.turns)
        yield f"{kind}: organisers' engine", lambda match=shortest: by_callback(official, map_bytes, match)
        yield f"{kind}: our drop-in", lambda match=shortest: by_callback(native, map_bytes, match)
        for lanes in LANES:
            batch = Lanes(level, lanes, recorded)
            for threads in (1, 2):
                name = f"{kind}: batch, {lanes} lanes, {threads} thread{'s' * (threads > 1)}"
                yield name, lambda batch=batch, threads=threads: batch.speed(threads)
    for lanes in LANES:
        for threads in (1, 2):
            name = f"random players in the core, {lanes} lanes, {threads} thread{'s' * (threads > 1)}"
            yield name, lambda lanes=lanes, threads=threads: scripted_speed(level, lanes, threads)


def spread(values: list[float], form: str) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def main(rounds: int = 7) -> None:
    """rounds: how often each contender is timed."""
    map_bytes = (shipped_folder() / f"{MAP}.map").read_bytes()
    level = load_level(map_bytes)
    recordings = {kind: [record(level, seed, teams) for seed in range(MATCHES)] for kind, teams in KINDS.items()}
    for kind, recorded in recordings.items():
        turns = [float(recording.turns) for recording in recorded]
        print(f"{kind}: {MATCHES} matches, {spread(turns, ',.0f')} turns")
    timed = dict(contenders(level, map_bytes, recordings))
    speeds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(rounds):
        for name, contender in timed.items():
            speeds[name].append(contender())
    print(f"\ndragon-turns per second, median of {rounds} rounds; ratio to the organisers' engine, with its range")
    for name, rates in speeds.items():
        base = speeds.get(f"{name.partition(':')[0]}: organisers' engine")
        ratio = spread([ours / theirs for ours, theirs in zip(rates, base, strict=True)], ".1f") if base else ""
        print(f"{name:48s} {statistics.median(rates):12,.0f}  {ratio}")
    print("\ntwo threads against one")
    for name, rates in speeds.items():
        if name.endswith("2 threads"):
            single = speeds[name.replace("2 threads", "1 thread")]
            print(f"{name:48s} {spread([two / one for two, one in zip(rates, single, strict=True)], '.2f')}")
    restarts = [restart_microseconds(level, LANES[-1]) for _ in range(rounds)]
    print(f"\nrestart of a lane: {spread(restarts, '.1f')} microseconds, one thread, {LANES[-1]} lanes")
    for lean in (True, False):
        print(f"bytes of a lane, {'lean' if lean else 'full room'}: {_core.loong_lane_bytes([level], lean):,}")


if __name__ == "__main__":
    tyro.cli(main)
