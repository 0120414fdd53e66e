"""How fast the learner of Loong learns, what the time goes into, and how much memory it holds.

    .venv/bin/python bench/learner_loong.py [--lanes 64] [--steps 128] [--updates 12] [--preset tiny] [--threads 1]

Times are processor time of the whole process, so that other programs on the machine count less; on one thread that is
also what an idle machine needs. The bound is measured in the same run on the rows that were just played: what the actor
alone takes to choose once and to train `epochs` times, in batches as the learner has them, without engine,
observations, critic, auxiliary heads or optimiser.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
import tyro

from sparring.games.loong import Loong
from sparring.learn.noise import choice_uniforms
from sparring.learn.ppo import PPOConfig
from sparring.learn.rollout import Rollout
from sparring.learn.selfplay import SelfPlay, SelfPlayConfig

PARTS = {
    "engine": ("act", "restart"),
    "observation, actor": ("decisions",),
    "observation, critic": ("appraise", "boards", "roster", "standings", "frames", "everyone"),
}


@dataclass
class Options:
    lanes: int = 64
    """Matches at the same time."""
    steps: int = 128
    """Decisions of each lane in a rollout."""
    updates: int = 4
    """Measured updates, after one that warms up."""
    preset: Literal["tiny", "small", "full"] = "tiny"
    """Sizes of teacher and critic."""
    threads: int = 1
    """Of torch and of the game."""
    maps: str = "generated:0:256"
    """What is played on."""


class Clock:
    """Processor time by part. What runs within another part counts there no more."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._stack: list[str] = []
        self._since = time.process_time()

    def switch(self) -> None:
        now = time.process_time()
        self.spent[self._stack[-1] if self._stack else "the rest"] += now - self._since
        self._since = now

    def watch(self, owner: Any, name: str, part: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.switch()
            self._stack.append(part)
            try:
                return inner(*args, **kwargs)
            finally:
                self.switch()
                self._stack.pop()

        setattr(owner, name, timed)


def watched(options: Options) -> tuple[SelfPlay, Clock]:
    game = Loong(lanes=options.lanes, seed=1, maps=options.maps, observe="inputs", threads=options.threads)
    config = SelfPlayConfig(preset=options.preset, ppo=PPOConfig(steps=options.steps))
    learner, clock = SelfPlay(game, config, seed=1, decisions=4_000_000), Clock()
    for part, names in PARTS.items():
        for name in names:
            clock.watch(game, name, part)
    clock.watch(learner.collector, "collect", "choosing and keeping rows")
    clock.watch(learner.ppo, "estimate", "values and advantages")
    clock.watch(learner.ppo, "update", "training")
    return learner, clock


def actor_alone(learner: SelfPlay, rollout: Rollout) -> float:
    """Processor seconds for a decision."""
    teacher, lanes = learner.teacher, learner.game.lanes
    ids = (rollout.block // 2, rollout.match, rollout.dragon, rollout.round)
    batches = list(learner.ppo.batches(rollout, learner.ppo.estimate(rollout, 0.0)).shuffled(0, 0, 0))
    start = time.process_time()
    with torch.no_grad():
        for first in range(0, len(rollout), lanes):
            some = slice(first, first + lanes)
            tree, _ = teacher.step(rollout.inputs[some], rollout.mask[some], rollout.memory[some])
            tree.sample(choice_uniforms(*(column[some] for column in ids), seed=0, stream=0))
    chosen = time.process_time()
    for batch in batches:
        tree, _, _ = teacher.sequence(batch.inputs, batch.mask, batch.lengths, batch.memory)
        tree.evaluate(batch.action).log_prob.mean().backward()
    trained = time.process_time()
    return (chosen - start + learner.config.ppo.epochs * (trained - chosen)) / len(rollout)


def size(tensors: Any) -> int:
    """Bytes of a dataclass of tensors, those within included."""
    if isinstance(tensors, torch.Tensor):
        return tensors.nbytes
    return sum(size(getattr(tensors, each.name)) for each in fields(tensors))


def main(options: Options) -> None:
    torch.set_num_threads(options.threads)
    learner, clock = watched(options)
    learner.step()
    clock.switch()
    clock.spent.clear()
    made, wall = learner.decisions, time.perf_counter()
    for _ in range(options.updates):
        learner.step()
    clock.switch()
    wall, made = time.perf_counter() - wall, learner.decisions - made
    spent = dict(clock.spent)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # of what is measured, not of the bound
    rollout = learner.collector.collect(options.steps, learner)
    bound = actor_alone(learner, rollout)
    total = sum(spent.values())
    print(f"{options.preset}, {options.lanes} lanes x {options.steps} decisions, {options.threads} thread(s)\n")
    print("| what | decisions/s |")
    print("|---|---:|")
    print(f"| learning, a second of processor time | {made / total:,.0f} |")
    print(f"| learning, a second by the clock | {made / wall:,.0f} |")
    print(f"| the actor alone, a second of processor time | {1 / bound:,.0f} |")
    print(f"\nLearning takes {total / made / bound:.2f} times what the actor alone takes.\n")
    print("| part | microseconds a decision | share |")
    print("|---|---:|---:|")
    for part, seconds in sorted(spent.items(), key=lambda each: -each[1]):
        print(f"| {part} | {seconds / made * 1e6:.1f} | {seconds / total:.0%} |")
    n = options.lanes * options.steps
    room = sum(column.nbytes for column in learner.collector._columns.values())
    matches = learner.game._matches.core
    print("\n| memory | MiB | bytes a decision |")
    print("|---|---:|---:|")
    for what, count in (
        ("peak of the process", peak),
        ("rows as they are played", room),
        ("a rollout, in order of lives, with all that the critic sees", size(rollout)),
        ("recurrent memories of all slots", learner.collector.memory.nbytes),
        ("matches, and room for what dragons remember", options.lanes * (matches.lane_bytes + matches.knowledge_bytes)),
    ):
        print(f"| {what} | {count / 2**20:,.0f} | {count / n:,.0f} |")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
