"""A game of turns in which not every choice is legal: PettingZoo's tic-tac-toe, learnt by self-play DQN or PPO.

sparring train own-dqn --own examples/tictactoe.py:tictactoe
sparring play own-dqn --own examples/tictactoe.py:tictactoe

python examples/tictactoe.py [dqn|ppo] [DECISIONS]      # trains, then plays against random choices
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from pettingzoo.classic.tictactoe_v3 import raw_env
from torch import Tensor

import sparring
from sparring.games.pettingzoo import pettingzoo

MATCHES = 1_000
LUCK = torch.Generator().manual_seed(0)


def tictactoe(render_mode: str | None = None) -> Any:
    """Without the wrappers of env(), which check again what is checked anyway."""
    return raw_env(render_mode=render_mode, screen_height=300)


def any_free_square(obs: Tensor) -> Tensor:
    """A player that chooses at random; of each square it is seen whether it is one's own or the other's."""
    free = obs.view(-1, 9, 2).sum(dim=2) == 0
    return torch.multinomial(free.float(), 1, generator=LUCK).view(-1)


def main(method: str = "dqn", decisions: int = 120_000) -> None:
    game = pettingzoo(tictactoe)
    run = sparring.train(f"own-{method}", run=f"tictactoe-{method}", game=game, decisions=decisions).run
    found = sparring.evaluate(run, opponent=any_free_square, game=game, matches=MATCHES)
    print(f"{method} against random choices: {found.wins} won, {found.draws} drawn, {found.losses} lost")
    itself = sparring.evaluate(run, game=game, matches=1)
    print(f"{method} against itself: scores {itself.agents[0]:g} and {itself.agents[1]:g}")


if __name__ == "__main__":
    method, *rest = sys.argv[1:] or ["dqn"]
    main(method, *map(int, rest))
