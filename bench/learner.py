"""Updates per second of our DDPG against Stable-Baselines3's, with the same networks and batch, in one run.

    .venv/bin/python bench/learner.py [--threads 2]

Networks 24-256-256-128-2 and 26-256-256-1, batch 128. More than one thread asks for an idle machine: torch's threads
wait for each other by spinning, so anything else that runs slows all contenders at once. The bound is what the
machine's own matrix products take for the same arithmetic: nothing built on them can be faster.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import gymnasium
import numpy as np
import torch
import tyro
from stable_baselines3 import DDPG as SB3
from stable_baselines3.common.logger import Logger

from sparring.games.tennis import Tennis
from sparring.learn.ddpg import DDPG, DDPGConfig

BATCH = 128
UPDATES = 200
ROUNDS = 7
FILL = 20_000
CLASSIC = DDPGConfig(buffer=FILL, batch=BATCH, learn_from=FILL)


class Court(gymnasium.Env[np.ndarray, np.ndarray]):
    """Only the spaces: SB3's replay is filled by hand and its environment never steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (24,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)


def ours(config: DDPGConfig) -> Callable[[], None]:
    learner = DDPG(Tennis(lanes=64), config, seed=0)
    while len(learner.replay) < FILL:
        learner.step()

    def update() -> None:
        for _ in range(UPDATES):
            learner._update()

    return update


def sb3() -> Callable[[], None]:
    arch = {"pi": [256, 256, 128], "qf": [256, 256]}
    model = SB3(
        "MlpPolicy", Court(), batch_size=BATCH, buffer_size=FILL, policy_kwargs={"net_arch": arch}, device="cpu"
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    random = np.random.default_rng(0)
    for _ in range(FILL):
        obs, following = random.normal(size=(2, 1, 24)).astype(np.float32)
        action = random.uniform(-1, 1, (1, 2)).astype(np.float32)
        model.replay_buffer.add(obs, following, action, np.zeros(1), np.zeros(1), [{}])
    return lambda: model.train(gradient_steps=UPDATES, batch_size=BATCH)


def layers(sizes: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(sizes))


def matrix_products() -> Callable[[], None]:
    """The matrix products of one update and nothing else: forward x1, input gradient x1, weight gradient x1."""
    actor, critic = layers([24, 256, 256, 128, 2]), layers([26, 256, 256, 1])
    # Forward: both targets, critic on the batch, actor, critic on the actor's action.
    passes = [(s, "f") for s in actor + critic + critic + actor + critic]
    # Backward: critic to weights and inputs, then critic to inputs only and actor to weights and inputs.
    passes += [(s, "w") for s in critic + actor] + [(s, "f") for s in critic + critic + actor]
    left = {size: torch.randn(BATCH, size) for size in {a for a, _ in actor + critic}}
    right = {shape: torch.randn(shape) for shape in set(actor + critic)}
    back = {size: torch.randn(BATCH, size) for size in {b for _, b in actor + critic}}

    def run() -> None:
        for _ in range(UPDATES):
            for (a, b), kind in passes:
                if kind == "f":
                    torch.mm(left[a], right[(a, b)])
                else:
                    torch.mm(left[a].t(), back[b])

    return run


def main(threads: int = 1) -> None:
    """threads: of torch, for every contender."""
    torch.set_num_threads(threads)
    with_norm = "sparring (batch norm, as published)"
    without = "sparring (no batch norm, like SB3)"
    contenders = {
        with_norm: ours(CLASSIC),
        without: ours(replace(CLASSIC, actor_normalised=0, critic_normalised=0)),
        "Stable-Baselines3": sb3(),
        "bound: matrix products alone": matrix_products(),
    }
    rounds = []
    for _ in range(ROUNDS):
        rates = {}
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            rates[name] = UPDATES / (time.perf_counter() - start)
        rounds.append(rates)
    print(f"batch {BATCH}, {threads} thread(s), median of {ROUNDS} rounds of {UPDATES} updates (range of the ratio)")
    for name in contenders:
        ratios = [r[name] / r["Stable-Baselines3"] for r in rounds]
        print(
            f"{name:38s} {statistics.median(r[name] for r in rounds):7.0f} updates/s   "
            f"{statistics.median(ratios):5.2f} x SB3 ({min(ratios):.2f} to {max(ratios):.2f})"
        )


if __name__ == "__main__":
    tyro.cli(main)
