"""The networks of Loong in numbers: weights and multiply-adds of each preset, part by part, and what `tiny` costs here.

python bench/networks.py            # sizes only
python bench/networks.py --time     # and processor time for each row of acting and training, one thread
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from sparring.policies import critic, loong, student
from sparring.policies.actions import MASK_BYTES, MASK_HELD, MASK_PAYABLE, MASK_ROLE_DUE, UNIFORMS
from sparring.policies.sizes import Size, critic_sizes, student_sizes, teacher_sizes


def table(title: str, columns: dict[str, list[Size]]) -> None:
    """One row for each part, for each preset its weights and multiply-adds."""
    print(f"\n| {title} |" + "".join(f" {name}: weights | multiply-adds |" for name in columns))
    print("|---|" + "---:|---:|" * len(columns))
    totals = [
        Size("all", sum(size.weights for size in sizes), sum(size.multiply_adds for size in sizes))
        for sizes in columns.values()
    ]
    for row in (*zip(*columns.values(), strict=True), totals):
        print(f"| {row[0].part} |" + "".join(f" {size.weights:,} | {size.multiply_adds:,} |" for size in row))


def seconds(function: Callable[[], object], repeats: int = 7) -> float:
    """Processor time of this thread, the best of several: other programs on the machine count less that way."""
    best = float("inf")
    for _ in range(repeats + 2):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


def times(rows: int) -> None:
    """Acting and training of `tiny` on random inputs; on a third of the rows a sprint is likely, as at the start."""
    generator = torch.Generator().manual_seed(0)
    teacher = loong.Teacher(loong.preset("tiny"))
    value = critic.Critic(critic.preset("tiny"))

    def random_bytes(n: int, width: int) -> torch.Tensor:
        return torch.randint(0, 128, (n, width), dtype=torch.uint8, generator=generator)

    inputs = random_bytes(rows, teacher.config.input_bytes)
    mask = torch.ones(rows, MASK_BYTES, dtype=torch.uint8)
    mask[:, MASK_PAYABLE] = torch.randint(2, 9, (rows,), generator=generator)
    mask[:, MASK_ROLE_DUE] = torch.rand(rows, generator=generator) < 1 / 16
    mask[:, MASK_HELD] = torch.randint(0, 8, (rows,), generator=generator)
    uniforms = torch.randint(0, 2**23, (rows, UNIFORMS), generator=generator) * 2.0**-23
    memory = torch.randn(rows, teacher.config.memory, generator=generator)
    lengths = torch.full((rows // 16,), 16)
    optimiser = torch.optim.AdamW(teacher.parameters(), lr=1e-6, fused=True)
    boards = rows // 8
    seen = [random_bytes(boards, 4096), random_bytes(boards, 32), torch.arange(rows) // 8]
    seen += [random_bytes(rows, 3600), random_bytes(rows, 32)]
    critic_optimiser = torch.optim.AdamW(value.parameters(), lr=1e-6, fused=True)

    @torch.no_grad()
    def act() -> torch.Tensor:
        tree, _ = teacher.step(inputs, mask, memory)
        return tree.sample(uniforms)[0]

    actions = act()

    def train() -> None:
        tree, _, balance = teacher.sequence(inputs, mask, lengths, memory[: len(lengths)])
        evaluation = tree.evaluate(actions)
        loss = balance - evaluation.log_prob.sum(dim=1).mean() - evaluation.entropy.sum(dim=1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def train_critic() -> None:
        values, team_values = value(*seen)
        critic_optimiser.zero_grad()
        (values.square().mean() + team_values.square().mean()).backward()
        critic_optimiser.step()

    for name, function in (("act", act), ("train", train), ("train critic", train_critic)):
        cost = seconds(function) / rows
        print(f"{name:>12} {rows:>5} rows: {cost * 1e6:6.1f} us a row, {1 / cost:8,.0f} rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", action="store_true", help="measure processor time as well")
    arguments = parser.parse_args()
    table("teacher", {name: teacher_sizes(config) for name, config in loong.PRESETS.items()})
    table("student", {name: student_sizes(config) for name, config in student.PRESETS.items()})
    table("critic", {name: critic_sizes(config) for name, config in critic.PRESETS.items()})
    if arguments.time:
        torch.set_num_threads(1)
        print(f"\nprocessor time of preset tiny, one thread, torch {torch.__version__}")
        for rows in (64, 256, 1024):
            times(rows)


if __name__ == "__main__":
    main()
