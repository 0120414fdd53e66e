"""Prioritized Level Replay (Jiang et al. 2021): matches start on the levels from which there is most to learn.

The score of a level is what the learner could not foresee in its last match there; levels are drawn by the rank of
their scores, now and then by how long ago they were last played, and half of the time among those never seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.settings import Range

_FINE = 1 << 53
"""Uniform draws are multiples of 1 / this: exact as float64."""


@dataclass(frozen=True, kw_only=True)
class LevelReplayConfig:
    """How levels are chosen."""

    unseen: Annotated[float, Range(low=0, high=1)] = 0.5
    """Share of new matches on levels never played before, while there are any."""
    temperature: Annotated[float, Range(low=0, low_open=True)] = 0.3
    """A level's weight is 1 / rank ^ (1 / temperature). Lower: nearly always the best ranked; higher: more alike."""
    staleness: Annotated[float, Range(low=0, high=1)] = 0.1
    """Share of the replayed matches that is drawn by how long ago a level was last started instead."""


class PrioritizedLevelReplay:
    """The table of levels: a score and the time of the last start for each.

    Draws depend on the seed, the lane and the match alone, and updates on what ended, not on the order in which it is
    told: a resumed run draws as an uninterrupted one.
    """

    def __init__(self, levels: int, config: LevelReplayConfig, *, seed: int, stream: int) -> None:
        if levels < 1:
            raise SparringError("level replay needs a level to choose from")
        self.config, self.seed, self.stream = config, seed, stream
        self.score = torch.full((levels,), torch.nan, dtype=torch.float64)
        """float64 [levels], of the last match that was scored; NaN before the first."""
        self.started = torch.full((levels,), -1, dtype=torch.int64)
        """int64 [levels], the number of matches that had been started when the level last was; -1: never."""
        self.starts = 0

    def weights(self) -> Tensor:
        """float64 [levels]: with what probability each level is replayed; unseen ones not at all."""
        seen = self.started >= 0
        if not seen.any():
            raise SparringError("level replay: no level was played yet, so that none can be replayed")
        # A level whose first match goes on still counts as the best scored: little is known of it.
        score = self.score.nan_to_num(nan=torch.inf)[seen]
        # Equal scores share the better rank, so that no level gains by its place in the table.
        rank = 1.0 + len(score) - torch.searchsorted(score.sort().values, score, right=True)
        ranked = rank ** (-1 / self.config.temperature)
        age = (self.starts - self.started[seen]).double()
        stale = age / age.sum() if age.sum() > 0 else torch.full_like(age, 1 / len(age))
        weights = torch.zeros_like(self.score)
        share = self.config.staleness
        weights[seen] = (1 - share) * ranked / ranked.sum() + share * stale
        return weights

    def draw(self, lane: Tensor, match: Tensor) -> Tensor:
        """Levels int64 [k] for new matches: the `match`th (int64 [k]) of these lanes (int64 [k])."""
        unseen = (self.started < 0).nonzero().view(-1).numpy()
        cumulative: NDArray[np.float64] | None = None
        drawn = []
        for one, number in zip(lane.tolist(), match.tolist(), strict=True):
            first, second = _core.integers(self.seed, self.stream, number * 65536 + one, 2, _FINE) / _FINE
            if len(unseen) and (len(unseen) == len(self.score) or first < self.config.unseen):
                drawn.append(int(unseen[int(second * len(unseen))]))
                continue
            if cumulative is None:
                cumulative = self.weights().cumsum(0).numpy()
            drawn.append(int(np.searchsorted(cumulative, second * cumulative[-1], side="right")))
        levels = torch.tensor(drawn, dtype=torch.int64)
        self.started[levels] = self.starts
        self.starts += len(levels)
        return levels

    def update(self, level: Tensor, score: Tensor) -> None:
        """Matches ended: on which levels, int64 [k], and how much there was to learn, float [k].

        Where several ended on one level, their mean counts.
        """
        score, order = score.double().sort()  # sums round alike in whatever order the matches are told
        level = level[order]
        total = torch.zeros_like(self.score).index_add_(0, level, score)
        count = torch.zeros_like(self.score).index_add_(0, level, torch.ones_like(score))
        self.score = torch.where(count > 0, total / count.clamp(min=1), self.score)

    def state(self) -> dict[str, Tensor]:
        return {"score": self.score, "started": self.started, "starts": torch.tensor(self.starts)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Raises SparringError when the table is of another number of levels."""
        if state["score"].shape != self.score.shape:
            raise SparringError(
                f"level replay: the checkpoint knows {len(state['score'])} levels, this run has {len(self.score)}: "
                "give the maps the run was started with"
            )
        self.score, self.started = state["score"].clone(), state["started"].clone()
        self.starts = int(state["starts"])
