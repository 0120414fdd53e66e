"""A player written by hand: it runs to where the ball will come down and jumps when the ball is near.

    python examples/scripted_player.py

It needs no training and keeps the ball up until the time limit, which pays 2.7 (a mean of 0.5 is called solved): a
measure for what was learnt. Any function from observations to actions is a player; this one shows what the 24
numbers mean.
"""

from __future__ import annotations

import torch
from torch import Tensor

import sparring

GRAVITY = 9.81
DECISION_SECONDS = 0.1
HIT_HEIGHT = -1.5
"""Where the racket's face meets a falling ball."""
BEHIND = 0.3
"""The face looks up and towards the net, so the racket stands this far behind the ball."""
REACH, JUMP_BELOW = 2.75, 1.25
HOME = -7.0
"""Where to wait while the ball is the other racket's."""


def keeper(obs: Tensor) -> Tensor:
    """float32 [n, 24] -> float32 [n, 2].

    obs is three frames of 8, oldest first, in which the own side is negative: own x, y, vx, vy, ball x, y, and own
    vx, vy once more.
    """
    before, now = obs[:, 8:16], obs[:, 16:24]
    x, ball_x, ball_y = now[:, 0], now[:, 4], now[:, 5]
    # The ball's velocity is not in a frame, but two frames tell it. A frame of zeros is from before the rally.
    known = (before[:, 5] != 0).float()
    ball_vx = known * (ball_x - before[:, 4]) / DECISION_SECONDS
    ball_vy = known * (ball_y - before[:, 5]) / DECISION_SECONDS - GRAVITY * DECISION_SECONDS / 2
    fall = (ball_y - HIT_HEIGHT).clamp(min=0)
    seconds = (ball_vy + (ball_vy**2 + 2 * GRAVITY * fall).sqrt()) / GRAVITY
    lands = ball_x + ball_vx * seconds
    target = torch.where(lands < 0.5, (lands - BEHIND).clamp(-10.5, -1.2), HOME)
    run = (0.4 * (target - x)).clamp(-1, 1)  # full speed is 3 units in a decision
    jump = ((ball_x - x).abs() < REACH) & (ball_y < JUMP_BELOW)
    return torch.stack([run, jump.float()], dim=1)


def main(rallies: int = 100) -> None:
    game = sparring.make("tennis", lanes=rallies, seed=0)
    first: dict[int, float] = {}  # score of each lane's first rally: whichever rallies end first are the short ones
    while len(first) < rallies:
        outcome = game.act(keeper(game.decisions().obs))
        better = outcome.score.max(dim=1).values  # official: the better racket of the rally
        for lane, score in zip(outcome.ended.tolist(), better.tolist(), strict=True):
            first.setdefault(lane, score)
    print(f"mean score of {rallies} rallies: {sum(first.values()) / rallies:.2f}")


if __name__ == "__main__":
    main()
