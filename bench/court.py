"""Decisions per second of one core: our tennis court against two well-known vectorised environments, in one run.

    .venv/bin/python bench/court.py

Every environment runs on one thread with the same number of rows and random actions made beforehand. The figure is
decisions of single agents per second: a court counts two per step. Each is measured `ROUNDS` times in turn, and ratios
are taken within a round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import envpool
import gymnasium
import numpy as np

from sparring._core import TennisCourts

ROWS = 1024
STEPS = 400
ROUNDS = 7


def court() -> tuple[Callable[[], object], int]:
    lanes = ROWS // 2
    courts = TennisCourts(lanes, threads=1)
    actions = np.random.default_rng(0).uniform(-1, 1, (lanes, 2, 2)).astype(np.float32)
    return lambda: courts.step(actions), ROWS


def envpool_pendulum() -> tuple[Callable[[], object], int]:
    env = envpool.make_gymnasium("Pendulum-v1", num_envs=ROWS, num_threads=1)
    env.reset()
    actions = np.random.default_rng(0).uniform(-2, 2, (ROWS, 1)).astype(np.float32)
    return lambda: env.step(actions), ROWS


def gymnasium_cartpole() -> tuple[Callable[[], object], int]:
    env = gymnasium.make_vec("CartPole-v1", ROWS, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 2, ROWS)
    return lambda: env.step(actions), ROWS


def speed(step: Callable[[], object], rows: int) -> float:
    for _ in range(20):
        step()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return STEPS * rows / (time.perf_counter() - start)


def main() -> None:
    contenders = {
        "sparring tennis": court(),
        "EnvPool Pendulum-v1": envpool_pendulum(),
        "Gymnasium CartPole-v1 (vectorised)": gymnasium_cartpole(),
    }
    rounds = [{name: speed(*contender) for name, contender in contenders.items()} for _ in range(ROUNDS)]
    ours = "sparring tennis"
    print(f"{ROWS} rows, one thread, median of {ROUNDS} rounds (range of the ratio)")
    for name in contenders:
        rate = statistics.median(r[name] for r in rounds)
        ratios = [r[ours] / r[name] for r in rounds]
        print(
            f"{name:36s} {rate / 1e6:7.2f} M decisions/s   tennis is "
            f"{statistics.median(ratios):5.1f} x ({min(ratios):.1f} to {max(ratios):.1f})"
        )
    print(f"memory per lane: {TennisCourts.lane_bytes} bytes of state, {report_bytes()} of outputs")


def report_bytes() -> int:
    """Bytes of the arrays that one lane reports into."""
    courts = TennisCourts(1)
    names = ("observations", "last_observations", "rewards", "scores", "lengths")
    flags = ("done", "max_reached", "global_done", "bodies", "trace")
    return int(sum(getattr(courts, name).nbytes for name in names + flags))


if __name__ == "__main__":
    main()
