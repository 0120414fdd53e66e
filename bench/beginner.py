"""What a beginner at Loong learns from: the first decisions of a run, with one thing changed at a time.

    python bench/beginner.py                         # every variant, seed 1: two minutes each on one core
    python bench/beginner.py --only "as it is" --seed 2

Told of the last rollouts: how often a dragon steps into kelp beside its head although another way is open (a random
one: 0.36), and how often it takes a pearl beside its head.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import torch
import tyro
from torch import Tensor

import sparring
from sparring.games.loong import Loong
from sparring.games.loong_choices import PLANES
from sparring.learn.ppo import Estimates, PPOConfig
from sparring.learn.rollout import Rollout
from sparring.learn.selfplay import SelfPlay, SelfPlayConfig
from sparring.policies.actions import MOVE, unpack
from sparring.policies.loong import CROP_SIDE

VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "result and potentials alone": {"alive": (0.0, 0.0), "growth": (0.0, 0.0)},
    "potentials four times as large": {"shaping": (4.0, 0.8)},
    "no pay for growth": {"growth": (0.0, 0.0)},
    "no pay for survival": {"alive": (0.0, 0.0)},
    "lambda 0.8": {"lam": (0.8, 0.8)},
    "lambda 0.95": {"lam": (0.95, 0.95)},
    "gamma 0.997 from the start": {"gamma": (0.997, 0.997)},
    "entropy 0.01": {"entropy": (0.01, 0.001)},
    "step size 3e-4": {"lr": 3e-4},
    "large updates (384 a lane, minibatches of 1,536)": {"steps": 384, "minibatch": 1536},
    "no auxiliary questions": {"auxiliary": 0.0},
}
AHEAD = (("kelp forward", (6, 7)), ("kelp left", (7, 6)), ("kelp right", (7, 8)))  # in the order of directions
BODIES = ("own body", "ally head", "ally body", "enemy head", "enemy body")


def choices(rollout: Rollout) -> dict[str, tuple[int, int]]:
    """How often moves did, and how often they could."""
    plane = {name: place for place, name in enumerate(PLANES["crop"])}
    tiles = CROP_SIDE * CROP_SIDE * len(plane)
    crop = rollout.inputs[:, :tiles].view(-1, CROP_SIDE, CROP_SIDE, len(plane))
    head = CROP_SIDE // 2
    action = unpack(rollout.action)
    move = action.kind == MOVE
    kelp = torch.stack([crop[:, head, head, plane[name]] > 0 for name, _ in AHEAD], dim=1)
    bodies = [plane[name] for name in BODIES]
    beside = [crop[:, row, column] for _, (row, column) in AHEAD]
    shut = kelp | torch.stack([(tile[:, bodies] > 0).any(dim=1) for tile in beside], dim=1)
    pearl = torch.stack([tile[:, plane["pearl"]] > 0 for tile in beside], dim=1) & ~shut

    def told(what: Tensor, among: Tensor) -> tuple[int, int]:
        did = what.gather(1, action.direction.unsqueeze(1)).squeeze(1)
        return int((did & among).sum()), int(among.sum())

    return {
        "into kelp": told(kelp, move & kelp.any(dim=1) & ~shut.all(dim=1)),
        "takes pearl": told(pearl, move & pearl.any(dim=1)),
    }


class Watched(SelfPlay):
    """Counts the choices of the rollouts from decision `since` on: [did, could] by what."""

    since = 0
    counts: dict[str, list[int]]

    def _score_levels(self, rollout: Rollout, estimates: Estimates) -> None:
        super()._score_levels(rollout, estimates)
        if self.decisions > self.since:
            for name, pair in choices(rollout).items():
                self.counts[name] = [sum(both) for both in zip(self.counts.get(name, [0, 0]), pair, strict=True)]


@dataclass
class Args:
    """What to run."""

    only: str | None = None
    """One variant."""
    seed: int = 1
    """Of networks, matches and maps drawn."""
    decisions: Annotated[int, tyro.conf.arg(help="Length of each run.")] = 200_000


def main(args: Args) -> None:
    torch.set_num_threads(1)
    for name, changes in VARIANTS.items():
        if args.only not in (None, name):
            continue
        game = sparring.make("loong", lanes=64, seed=args.seed, maps="generated:5:200", observe="inputs")
        assert isinstance(game, Loong)
        config = SelfPlayConfig(ppo=PPOConfig(**changes))
        # As in a run of `loong-tiny`: what changes over a run has hardly begun to.
        learner = Watched(game, config, seed=args.seed, decisions=5_000_000)
        learner.since, learner.counts = args.decisions * 3 // 4, {}
        while learner.decisions < args.decisions:
            learner.step()
        shares = {what: round(did / max(could, 1), 3) for what, (did, could) in learner.counts.items()}
        print(json.dumps({"variant": name, "seed": args.seed, **shares}), flush=True)


if __name__ == "__main__":
    main(tyro.cli(Args, description=__doc__))
