"""Exploration noise that depends on ids, never on the order of calls."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core
from sparring.games.api import Decisions
from sparring.policies.actions import UNIFORMS

_WORD = 2**32 - 1
_PHILOX_0, _PHILOX_1 = 0xD2511F53, 0xCD9E8D57
_WEYL_0, _WEYL_1 = 0x9E3779B9, 0xBB67AE85
_BLOCK = 4
"""Numbers that one block of the generator gives."""


def row_normals(rows: Decisions, size: int, *, seed: int, stream: int) -> Tensor:
    """Standard normals float32 [n, size], a pure function of seed, stream and each row's lane, match, agent, decision.

    stream: below 65536; more than four numbers take further streams from above.
    """
    return _blocks(_core.normals, _counters(rows), size, seed=seed, stream=stream)


def row_uniforms(rows: Decisions, size: int, *, seed: int, stream: int) -> Tensor:
    """The same uniform in [0, 1), float32 [n, size]."""
    return _blocks(_core.uniforms, _counters(rows), size, seed=seed, stream=stream)


def counted_normals(counter: int, n: int, size: int, *, seed: int, stream: int) -> Tensor:
    """Standard normals float32 [n, size], a pure function of seed, stream, counter and the place in the batch."""
    counters = torch.tensor([[counter, 0, 0, 0]]).repeat(n, 1)
    counters[:, 1] = torch.arange(n)
    return _blocks(_core.normals, counters, size, seed=seed, stream=stream)


def choice_uniforms(lane: Tensor, match: Tensor, dragon: Tensor, round_: Tensor, *, seed: int, stream: int) -> Tensor:
    """The uniforms float32 [n, 12] that `Tree.sample` takes, a pure function of seed, stream, and who decides when.

    lane, match, dragon (the id that is unique in its match), round_: int64 [n], each below 2^32; stream: below 65536
    """
    counters = torch.stack((lane, match, dragon, round_), dim=1)
    if lane.device.type == "cpu":
        return _blocks(_core.uniforms, counters, UNIFORMS, seed=seed, stream=stream)
    return uniforms_there(counters, UNIFORMS, seed=seed, stream=stream)


def uniforms_there(counters: Tensor, size: int, *, seed: int, stream: int) -> Tensor:
    """The numbers that the core draws for counters (int64 [n, 4]), float32 [n, size], made where these lie.

    Philox 4x32 with 10 rounds (Salmon et al. 2011), all blocks at once; products of 32 bits wrap within 64.
    """
    keys = _round_keys(seed, stream, -(-size // _BLOCK), counters.device)
    blocks = keys.shape[2]
    c0, c1, c2, c3 = (word.expand(blocks, -1) for word in (counters & _WORD).unbind(dim=1))
    for k0, k1 in keys.unbind(dim=0):
        p0, p1 = c0 * _PHILOX_0, c2 * _PHILOX_1
        c0, c1, c2, c3 = (p1 >> 32 & _WORD) ^ c1 ^ k0, p1 & _WORD, (p0 >> 32 & _WORD) ^ c3 ^ k1, p0 & _WORD
    words = torch.stack((c0, c1, c2, c3), dim=2)  # [blocks, n, 4]
    return ((words >> 9).float() * 2.0**-23).transpose(0, 1).flatten(1)[:, :size]


@functools.cache
def _round_keys(seed: int, stream: int, blocks: int, device: torch.device) -> Tensor:
    """int64 [10, 2, blocks, 1]: two words for each round and block."""
    keys = [_core.mix64((seed ^ _core.mix64(stream + 65536 * block)) & (2**64 - 1)) for block in range(blocks)]
    words = [
        [[(key >> shift) + turn * step & _WORD for key in keys] for shift, step in ((0, _WEYL_0), (32, _WEYL_1))]
        for turn in range(10)
    ]
    return torch.tensor(words, device=device).unsqueeze(3)


def _counters(rows: Decisions) -> Tensor:
    agents_lane = rows.lane * 65536 + rows.agent
    return torch.stack((agents_lane, rows.match, rows.match >> 32, rows.decision), dim=1)


def _blocks(
    draw: Callable[[int, int, NDArray[np.int64]], NDArray[np.float32]],
    counters: Tensor,
    size: int,
    *,
    seed: int,
    stream: int,
) -> Tensor:
    """float32 [n, size] of counters int64 [n, 4]: numbers beyond one block's come from streams 65536 apart."""
    rows = counters.cpu().numpy()
    blocks = [draw(seed, stream + 65536 * block, rows) for block in range(-(-size // _BLOCK))]
    return torch.from_numpy(np.concatenate(blocks, axis=1)[:, :size])


class OrnsteinUhlenbeck:
    """Noise that drifts: x <- x - theta x + sigma N(0, 1), one x per action (Lillicrap et al. 2016, section 3).

    Every agent of every lane has a process of its own; `shared` gives each lane one process that its agents
    advance in turn, as the published Tennis recipe does. The process is never reset between matches.
    sigma is float32 [lanes].
    """

    def __init__(
        self,
        lanes: int,
        agents: int,
        actions: int,
        *,
        theta: float,
        sigma: Tensor,
        shared: bool,
        seed: int,
        stream: int,
    ) -> None:
        self.theta, self.sigma, self.shared = theta, sigma, shared
        self.seed, self.stream = seed, stream
        self.agents = agents
        self.x = torch.zeros(lanes, 1 if shared else agents, actions)

    def sample(self, rows: Decisions) -> Tensor:
        """float32 [n, actions]: the next value of each row's process."""
        normal = row_normals(rows, self.x.shape[2], seed=self.seed, stream=self.stream)
        if not self.shared:
            x = self.x[rows.lane, rows.agent]
            x = x - self.theta * x + self.sigma[rows.lane].unsqueeze(1) * normal
            self.x[rows.lane, rows.agent] = x
            return x
        noise = torch.empty_like(normal)
        for agent in range(self.agents):
            turn = rows.agent == agent
            lane = rows.lane[turn]
            x = self.x[lane, 0]
            x = x - self.theta * x + self.sigma[lane].unsqueeze(1) * normal[turn]
            self.x[lane, 0] = x
            noise[turn] = x
        return noise
