"""Training Loong on a GPU: first whether matches and networks are there what they are on the CPU, then how fast and in
how much memory they learn.

    .venv/bin/python bench/gpu_train.py [--lanes 2048] [--steps 64] [--presets small full]

Everything is on the GPU: matches, what dragons know and the critic is told, rollouts and networks, in mixed precision.
Matches: the same random choices are made on both, against scripted players and the foil, and whatever a learner reads
must be the same bytes after each. Networks: a short rollout is played on the CPU, and the GPU is asked about the same
rows: in float32 log-probabilities and values must agree to 1e-3; what mixed precision changes is printed. Else the run
ends with exit code 1, and without a GPU with exit code 2. --device cpu runs all of it on the CPU, to try it.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.games.loong_choices import CHOICE_DRAWS, random_choices
from sparring.games.loong_rows import PLAYERS
from sparring.learn.hardware import CPU, Hardware
from sparring.learn.opponents import NOBODY
from sparring.learn.ppo import PPO, PPOConfig
from sparring.learn.rollout import Rollout
from sparring.learn.selfplay import SelfPlay, SelfPlayConfig
from sparring.policies import critic, loong

MAPS = "generated:5:200"
AGREE = 1e-3
CHECKED = 256
"""Lanes in which matches are compared."""


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
    turns: int = 400
    """Decisions of each lane in the comparison of matches."""
    threads: int = os.cpu_count() or 1
    """Of games on the CPU."""
    device: str = "cuda"
    """Where everything is."""


def game_of(lanes: int, threads: int, device: str = "cpu") -> Loong:
    return Loong(lanes=lanes, seed=1, maps=MAPS, observe="inputs", threads=threads, device=device)


def read_by_learners(game: Loong) -> dict[str, Tensor]:
    rows = game.decisions()
    lanes = torch.arange(game.lanes, device=game.device)
    crop, scalars = game.appraise()
    board, team = game.boards(lanes)
    told = {each.name: getattr(rows, each.name) for each in fields(rows)}
    told |= {"crop": crop, "scalars": scalars, "board": board, "team's scalars": team, "roster": game.roster(lanes)}
    told |= {"standings": game.standings(), "frames": game.frames()}
    told |= {f"everyone's {name}": column for name, column in game.everyone(lanes)._asdict().items()}
    return {name: column for name, column in told.items() if column is not None}


def compare_matches(options: Options) -> None:
    games = [game_of(CHECKED, options.threads, device) for device in ("cpu", options.device)]
    draw = np.random.default_rng(1)
    start, played, ended = time.perf_counter(), 0, 0

    def seats(lanes: Tensor) -> Tensor:
        drawn = np.where(draw.random((len(lanes), 2)) < 0.3, draw.integers(0, len(PLAYERS), (len(lanes), 2)), NOBODY)
        return torch.from_numpy(drawn.astype(np.uint8))

    over = torch.arange(CHECKED)
    for turn in range(options.turns):
        scripts = seats(over)
        for game in games:
            game.restart(over, scripts=scripts)
        told = [read_by_learners(game) for game in games]
        for name, ours in told[0].items():
            theirs = told[1][name].cpu()
            if ours.shape != theirs.shape or not torch.equal(ours, theirs):
                print(f"turn {turn}: {name} is not the same on the device", file=sys.stderr)
                raise SystemExit(1)
        rows = games[0].decisions()
        choices = random_choices(rows, torch.from_numpy(draw.random((len(rows), CHOICE_DRAWS))))
        played += len(rows)
        outcomes = [game.act(choices.to(game.device)) for game in games]
        if not torch.equal(outcomes[0].results, outcomes[1].results):
            print(f"turn {turn}: results are not the same on the device", file=sys.stderr)
            raise SystemExit(1)
        over = outcomes[0].ended
        ended += len(over)
    states = [game.state()["lanes"] for game in games]
    if not torch.equal(*states):
        print("what matches hold is not the same on the device", file=sys.stderr)
        raise SystemExit(1)
    print(
        f"The same bytes on both: {played:,} decisions and {ended:,} ends of matches in {CHECKED} lanes, "
        f"{time.perf_counter() - start:.0f} s\n"
    )


def moved(what: Any, device: torch.device) -> Any:
    """A dataclass of tensors on the device."""
    if not is_dataclass(what):
        return what.to(device)
    return type(what)(**{each.name: moved(getattr(what, each.name), device) for each in fields(what)})


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
    rollout = moved(rollout, hardware.device)
    starts, lengths = rollout.stretches(16)
    with torch.no_grad(), hardware.precision():
        tree, _, _ = teacher.sequence(rollout.inputs, rollout.mask, lengths, rollout.memory[starts])
        log_prob = tree.evaluate(rollout.action).log_prob.sum(dim=1)
    return log_prob.cpu(), ppo.estimate(rollout, 0.0).value.cpu()


def compare_networks(options: Options) -> None:
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
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    game = game_of(options.lanes, options.threads, options.device)
    matches = torch.cuda.memory_allocated() / 2**30 if on_gpu else 0.0
    config = SelfPlayConfig(preset=preset, ppo=PPOConfig(steps=options.steps, minibatch=options.minibatch))
    learner = SelfPlay(game, config, seed=1, decisions=10**9, device=options.device)
    collecting = learning = 0.0

    def now() -> float:
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    for update in range(options.updates + 1):
        start = now()
        rollout = learner.collector.collect(options.steps, learner)
        middle = now()
        told = learner.ppo.update(rollout, learner.ppo.estimate(rollout, 0.0), 0.0)
        end = now()
        if update > 0:
            collecting, learning = collecting + middle - start, learning + end - middle
    made = options.updates * options.lanes * options.steps
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB, {matches:.1f} of it matches" if on_gpu else "-"
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
    print(f"torch {torch.__version__} on {name}\n")
    compare_matches(options)
    compare_networks(options)
    print(f"\n{options.lanes} lanes, {options.steps} decisions of each in a rollout:\n")
    print("| preset | decisions/s | collecting alone | learning alone | memory of the device | steps an update |")
    print("|---|---:|---:|---:|---:|---:|")
    for preset in options.presets:
        measure(preset, options)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
