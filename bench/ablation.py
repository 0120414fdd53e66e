"""What each choice of recipe `tennis` is worth: the recipe with one setting changed, several seeds each.

    .venv/bin/python bench/ablation.py [--seeds 3] [--only n_step=1]

Counts updates and rallies, not time, so other load on the machine does not matter. Every run is an ordinary run named
ablation-VARIANT-SEED on one thread: interrupt the script and the same command goes on.
"""

from __future__ import annotations

import statistics
from typing import Any

import tyro
from rich.console import Console

import sparring

DECISIONS = 240_000
"""Of lanes, for each run: about 15,000 updates with sixteen lanes."""

VARIANTS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "n_step=1": {"ddpg.n_step": 1},
    "n_step=10": {"ddpg.n_step": 10},
    "logit_penalty=0": {"ddpg.logit_penalty": 0.0},
    "reward_scale=1": {"ddpg.reward_scale": 1.0},
    "noise=0.05-0.3": {"ddpg.noise_sigma": 0.3, "ddpg.noise_sigma_low": 0.05},
    "noise=0.06": {"ddpg.noise_sigma": 0.06, "ddpg.noise_sigma_low": 0.06},
    "hidden=64": {"ddpg.actor_hidden": (64, 64), "ddpg.critic_hidden": (64, 64)},
    "hidden=256": {"ddpg.actor_hidden": (256, 256), "ddpg.critic_hidden": (256, 256)},
    "batch_norm": {"ddpg.actor_normalised": 2, "ddpg.critic_normalised": 1},
    "batch=128": {"ddpg.batch": 128},
    "tau=1e-3": {"ddpg.tau": 1e-3},
    "warmup=0": {"ddpg.warmup": 0},
    "lanes=32": {"lanes": 32},
}


def main(seeds: int = 3, only: str | None = None) -> None:
    """seeds: how many, from 0. only: one variant's name."""
    quiet = Console(quiet=True)
    print(f"Solved within {DECISIONS:,} decisions of lanes; medians of those that were.\n")
    print("| variant | solved | updates | rallies | last 100, by seed |")
    print("|---|---|---|---|---|")
    for name, changes in VARIANTS.items():
        if only not in (None, name):
            continue
        results = []
        for seed in range(seeds):
            run = f"ablation-{name}-{seed}"
            settings = {"threads": 1, "stop_after_solved": 1, **changes}
            result = sparring.train("tennis", run=run, seed=seed, decisions=DECISIONS, console=quiet, **settings)
            if result.signal:  # Ctrl-C or SIGTERM: this run is saved, and the script is meant, too
                raise SystemExit(128 + result.signal)
            results.append(result)
        solved = [result.solved for result in results if result.solved]
        updates = f"{statistics.median(s.updates for s in solved):,.0f}" if solved else ""
        rallies = f"{statistics.median(s.match for s in solved):,.0f}" if solved else ""
        scores = ", ".join(f"{result.score or 0:.2f}" for result in results)
        print(f"| {name} | {len(solved)} of {seeds} | {updates} | {rallies} | {scores} |", flush=True)


if __name__ == "__main__":
    tyro.cli(main)
