"""How fast a student is distilled beside what its products alone would take; on-policy against off-policy.

    .venv/bin/python bench/distil.py RUN [--preset student-tiny] [--updates 6] [--threads 1]
    .venv/bin/python bench/distil.py RUN --compare [--seeds 3] [--updates 12]

Times are processor time of the whole process, so that other programs on the machine count less. The bound is the time
of the multiply-adds alone at the speed of one large product of matrices that is measured in the same run: one decision
of the student and one of the teacher, and for each pass three times the student's (forward, and backward twice).

--compare distils one student from its own positions and one from the teacher's, from the same teacher with the same
decisions, and asks both afterwards in positions that they come into themselves, playing as the bot will.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, replace
from typing import Annotated

import torch
import tyro
from scipy.stats import t

from sparring.distil.distiller import Distiller
from sparring.distil.play import Player
from sparring.distil.settings import DistilConfig
from sparring.games.loong import Loong
from sparring.learn.hardware import keep_freed_memory
from sparring.policies.sizes import student_sizes, teacher_sizes
from sparring.runs.learners import training_maps
from sparring.runs.policy import TrainedTeacher, load_teacher


@dataclass
class Options:
    run: Annotated[str, tyro.conf.Positional]
    """A run with a teacher."""
    preset: str = "student-tiny"
    """Of the student."""
    updates: int = 6
    """Of a round; the last third with the bot's arithmetic."""
    lanes: int = 64
    """Matches at the same time."""
    steps: int = 256
    """Decisions of each lane in a rollout."""
    minibatch: int = DistilConfig.minibatch
    """Decisions in a minibatch."""
    lr: float = DistilConfig.lr
    """Step size."""
    threads: int = 1
    """Of torch and of the game."""
    compare: bool = False
    """On-policy against off-policy, instead of speed."""
    seeds: int = 3
    """Students of each kind to compare."""


def distiller(options: Options, trained: TrainedTeacher, config: DistilConfig) -> Distiller:
    selfplay = trained.recipe.selfplay
    game = Loong(
        lanes=config.lanes,
        seed=config.seed,
        maps=training_maps(trained.recipe.loong.maps),
        observe="inputs",
        threads=config.threads,
    )
    player = Player(game, opponents=selfplay.opponents, scripted=selfplay.scripted, seed=config.seed)
    made = Distiller(player, config, trained.teacher)
    made.begin(trained.teacher, changed=False)
    return made


def product_speed() -> float:
    """Multiply-adds a processor second of 1024 x 1024 matrices in float32."""
    one, other = torch.randn(1024, 1024), torch.randn(1024, 1024)
    one @ other
    start = time.process_time()
    for _ in range(20):
        one @ other
    return float(20 * 1024**3 / (time.process_time() - start))


def speed(options: Options, trained: TrainedTeacher, config: DistilConfig) -> None:
    work = distiller(options, trained, config)
    work.step()  # warms up
    spent = {False: 0.0, True: 0.0}
    made = {False: 0, True: 0}
    while not work.finished:
        quantised, before, start = work.quantised, work.decisions, time.process_time()
        work.step()
        spent[quantised] += time.process_time() - start
        made[quantised] += work.decisions - before
    student = sum(each.multiply_adds for each in student_sizes(work.student.config))
    teacher = sum(each.multiply_adds for each in teacher_sizes(work.teacher.config))
    adds = teacher + student * (1 + 3 * config.epochs)
    products = product_speed()
    print(f"{config.preset}, {config.lanes} lanes x {config.steps} decisions, {config.threads} thread(s)\n")
    print("| what | decisions a processor second | times the bound's |")
    print("|---|---:|---:|")
    bound = products / adds
    print(f"| bound: {adds / 1e6:.1f} M multiply-adds at {products / 1e9:.1f} G/s | {bound:,.0f} | 1.00 |")
    for quantised, name in ((False, "first two thirds"), (True, "last third, in the bot's arithmetic")):
        rate = made[quantised] / spent[quantised]
        print(f"| {name} | {rate:,.0f} | {rate / bound:.2f} |")


def compare(options: Options, trained: TrainedTeacher, config: DistilConfig) -> None:
    decisions = config.updates * config.lanes * config.steps
    print(f"{options.seeds} students of each kind, {decisions:,} decisions\n")
    print("| seed | on-policy: loss | agreement | off-policy: loss | agreement |")
    print("|---|---:|---:|---:|---:|")
    gains = []
    for seed in range(options.seeds):
        found = []
        for off_policy in (False, True):
            work = distiller(options, trained, replace(config, seed=seed, off_policy=off_policy))
            while not work.finished:
                work.step()
            # Lanes that neither has seen, long enough for whole matches; told before anything is trained on them.
            test = distiller(options, trained, replace(config, seed=seed + 1000, lr=1e-12, epochs=1))
            test.student.load_state_dict(work.student.state_dict())
            test.floats = 0
            told = [test.step() for _ in range(4)]
            found += [statistics.fmean(each[name] for each in told) for name in ("loss", "agreement")]
        gains.append(found[1] - found[3])
        print(f"| {seed} | {found[0]:.4f} | {found[1]:.3f} | {found[2]:.4f} | {found[3]:.3f} |", flush=True)
    mean, half = statistics.fmean(gains), half_interval(gains)
    print(f"\nOn-policy agrees more by {mean:+.3f}, 95% interval over seeds {mean - half:+.3f} to {mean + half:+.3f}.")


def half_interval(values: list[float]) -> float:
    """Half of the 95% interval of a mean of a few values (Student's t)."""
    if len(values) < 2:
        return math.inf
    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))


def main(options: Options) -> None:
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    trained = load_teacher(options.run)
    config = DistilConfig(
        preset=options.preset,
        updates=options.updates,
        lanes=options.lanes,
        steps=options.steps,
        minibatch=options.minibatch,
        lr=options.lr,
        threads=options.threads,
    )
    (compare if options.compare else speed)(options, trained, config)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
