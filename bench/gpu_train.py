"""Training Loong on a GPU: first whether the networks say there what they say on the CPU, then how fast and in how much
memory they learn.

    .venv/bin/python bench/gpu_train.py [--lanes 2048] [--steps 64] [--presets small full]

The networks of a learner run on the GPU in mixed precision; engine and observations stay on the CPU, so give the game
the machine's cores (--threads). The comparison plays a short rollout on the CPU and asks the GPU about the same rows:
in float32 log-probabilities and values must agree to 1e-3, or the run ends with exit code 1; what mixed precision
changes is printed. Without a GPU the run ends with exit code 2. --device cpu runs all of it on the CPU, to try it.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

import torch
import tyro

from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.learn.hardware import CPU, Hardware
from sparring.learn.ppo import PPO, PPOConfig
from sparring.learn.rollout import Rollout
from sparring.learn.selfplay import SelfPlay, SelfPlayConfig
from sparring.policies import critic, loong

MAPS = "generated:5:200"
AGREE = 1e-3


@dataclass
class Options:
    lanes: int = 2048
    """Lanes of the measured runs."""
    steps: int = 64
    """Decisions of each lane in a rollout."""
    updates: int = 3
    """Measured updates, after one that warms up."""
    presets: tuple[str, ...] = ("small", "full")
    """Sizes of teacher and critic."""
    minibatch: int = 8192
    """Decisions in a minibatch."""
    threads: int = os.cpu_count() or 1
    """Of the game."""
    device: str = "cuda"
    """Where the networks run."""


def game_of(lanes: int, threads: int) -> Loong:
    return Loong(lanes=lanes, seed=1, maps=MAPS, observe="inputs", threads=threads)


def short_rollout(preset: str, threads: int) -> tuple[SelfPlay, Rollout]:
    learner = SelfPlay(game_of(32, threads), SelfPlayConfig(preset=preset), seed=1, decisions=10_000)
    for _ in range(2):  # the second one starts within lives
        rollout = learner.collector.collect(24, learner)
    return learner, rollout


def asked(rollout: Rollout, preset: str, hardware: Hardware) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities [n] of the rollout's actions, and the values of all its nodes."""
    teacher = loong.Teacher(loong.preset(preset), seed=1)
    value = critic.Critic(critic.preset(preset), seed=1)
    ppo = PPO(teacher, value, PPOConfig(), seed=1, hardware=hardware)
    starts, lengths = rollout.stretches(16)
    device = hardware.device
    with torch.no_grad(), hardware.precision():
        columns = (rollout.inputs, rollout.mask, lengths, rollout.memory[starts])
        tree, _, _ = teacher.sequence(*(column.to(device) for column in columns))
        log_prob = tree.evaluate(rollout.action.to(device)).log_prob.sum(dim=1)
    return log_prob.cpu(), ppo.estimate(rollout, 0.0).value


def compare(options: Options) -> None:
    device = Hardware.of(options.device).device
    print("| preset | precision | log-probability differs by at most | value differs by at most |")
    print("|---|---|---:|---:|")
    for preset in options.presets:
        _, rollout = short_rollout(preset, options.threads)
        log_prob, value = asked(rollout, preset, CPU)
        for mixed in (False, True):
            other_log_prob, other_value = asked(rollout, preset, Hardware(device, mixed=mixed))
            apart = [
                float((one - other).abs().max()) for one, other in ((log_prob, other_log_prob), (value, other_value))
            ]
            print(f"| {preset} | {'mixed' if mixed else 'float32'} | {apart[0]:.1e} | {apart[1]:.1e} |", flush=True)
            if not mixed and max(apart) > AGREE:
                print(f"the device does not say what the CPU says: more than {AGREE} apart", file=sys.stderr)
                raise SystemExit(1)


def measure(preset: str, options: Options) -> None:
    on_gpu = options.device == "cuda"
    game = game_of(options.lanes, options.threads)
    config = SelfPlayConfig(preset=preset, ppo=PPOConfig(steps=options.steps, minibatch=options.minibatch))
    learner = SelfPlay(game, config, seed=1, decisions=10**9, device=options.device)
    collecting = learning = 0.0
    for update in range(options.updates + 1):
        start = time.perf_counter()
        rollout = learner.collector.collect(options.steps, learner)
        middle = time.perf_counter()
        told = learner.ppo.update(rollout, learner.ppo.estimate(rollout, 0.0), 0.0)
        end = time.perf_counter()
        if update == 0 and on_gpu:
            torch.cuda.reset_peak_memory_stats()
        if update > 0:
            collecting, learning = collecting + middle - start, learning + end - middle
    made = options.updates * options.lanes * options.steps
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if on_gpu else "-"
    print(
        f"| {preset} | {made / (collecting + learning):,.0f} | {made / collecting:,.0f} | {made / learning:,.0f} "
        f"| {memory} | {told['steps']:.0f} |",
        flush=True,
    )


def main(options: Options) -> None:
    try:
        Hardware.of(options.device)
    except SparringError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    name = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU"
    print(f"torch {torch.__version__} on {name}, {options.threads} threads for the game\n")
    compare(options)
    print(f"\n{options.lanes} lanes, {options.steps} decisions of each in a rollout:\n")
    print("| preset | decisions/s | collecting alone | learning alone | memory of the device | steps an update |")
    print("|---|---:|---:|---:|---:|---:|")
    for preset in options.presets:
        measure(preset, options)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
