"""A reward of your own on a game that exists: running costs energy.

    python examples/own_reward.py [DECISIONS]

A `RewardWrapper` changes what the learner is paid. The match score stays the game's own, so the run remains comparable
with every other one.
"""

from __future__ import annotations

import sys

from torch import Tensor

import sparring
from sparring.games.api import Decisions, Game, Outcome, RewardWrapper

ENERGY = 0.001
"""Price of a decision at full speed; a ball over the net pays 0.1."""


def saving_energy(rows: Decisions, actions: Tensor, outcome: Outcome) -> Tensor:
    """The game's reward less what running costs. rows and actions: what was answered; returns one reward per row."""
    return outcome.reward - ENERGY * actions[:, 0].abs()


def calm_tennis(*, lanes: int, seed: int) -> Game:
    return RewardWrapper(sparring.make("tennis", lanes=lanes, seed=seed), saving_energy)


def main(decisions: int = 200_000) -> None:
    result = sparring.train("tennis", run="calm-tennis", game=calm_tennis, decisions=decisions)
    print(f"{result.matches} rallies, official score {result.score:.3f}, {result.length:.0f} decisions long")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
