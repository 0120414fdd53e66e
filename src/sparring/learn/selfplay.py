"""Self-play on Loong: the learner's dragons on one side of a match or on both, on levels worth replaying."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.loong import Loong, LoongDecisions
from sparring.games.loong_rows import PLAYERS
from sparring.learn.hardware import Hardware, keep_freed_memory
from sparring.learn.matches import ITSELF, EpisodeRow, LoongMatchRow
from sparring.learn.opponents import NOBODY, draw_opponents, start_matches
from sparring.learn.ppo import PPO, Estimates, PPOConfig
from sparring.learn.rollout import Collector, Rollout
from sparring.levels.prioritized import LevelReplayConfig, PrioritizedLevelReplay
from sparring.policies import critic as critics
from sparring.policies import loong as teachers
from sparring.settings import Range

# Streams of the counter-based generator, one for each thing that is sampled.
STREAM_ACTIONS, STREAM_LEVELS, STREAM_OPPONENTS = 11, 12, 13
MILESTONE = 100
"""The round at whose start standings are kept for what is told of a match."""
_STANDINGS = ("dragons", "total", "queen", "longest")
"""In the order of `Loong.standings`."""


@dataclass(frozen=True, kw_only=True)
class SelfPlayConfig:
    """Who learns, and whom it meets."""

    preset: Literal["tiny", "small", "full"] = "tiny"
    """Size of teacher and critic."""
    opponents: tuple[str, ...] = ("forager", "hunter", "splitter", "legal")
    """Scripted players, or the foil, that the learner meets, equally often."""
    scripted: Annotated[float, Range(low=0, high=1)] = 0.5
    """Share of matches against them; in the others the learner plays both teams."""
    levels: LevelReplayConfig = field(default_factory=LevelReplayConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)


class SelfPlay:
    """The learner of Loong. Call `step` again and again: each is an update, a rollout and what is learnt from it."""

    def __init__(self, game: Loong, config: SelfPlayConfig, *, seed: int, decisions: int, device: str = "cpu") -> None:
        """Start the first matches. From then on the process keeps the memory that it frees.

        decisions: length of the run, for all that changes over it
        device:    "cpu" or "cuda", where the networks run; the game must be there

        Raises SparringError for unknown opponents, and without the device.
        """
        keep_freed_memory()
        for name in config.opponents:
            if name not in PLAYERS:
                raise SparringError(f"opponents: no player {name}: there are {', '.join(PLAYERS)}")
        if config.scripted > 0 and not config.opponents:
            raise SparringError("opponents = []: name players, or set scripted = 0")
        self.game, self.config, self.seed = game, config, seed
        self.budget = decisions
        self.teacher = teachers.Teacher(teachers.preset(config.preset), seed=seed)
        self.critic = critics.Critic(critics.preset(config.preset), seed=seed)
        hardware = Hardware.of(device)
        if game.device.type != device:
            raise SparringError(f"the game is on {game.device}, its learner on {device}: make both on one device")
        self.ppo = PPO(self.teacher, self.critic, config.ppo, seed=seed, hardware=hardware)
        self.levels = PrioritizedLevelReplay(len(game.maps), config.levels, seed=seed, stream=STREAM_LEVELS)
        self.collector = Collector(game, self.teacher, seed=seed, stream=STREAM_ACTIONS, hardware=hardware)
        self.decisions = 0
        self.matches = 0
        self.episodes_ended: list[EpisodeRow] = []
        self._ended: list[LoongMatchRow] = []
        self._told: dict[str, float] = {}
        # Of the matches with itself that go on: sum and number of positive advantages, for the scores of their levels.
        self._surprise = torch.zeros(game.lanes, 2, dtype=torch.float64)
        self._level = torch.zeros(game.lanes, dtype=torch.int64)
        self._match = torch.zeros(game.lanes, dtype=torch.int64)  # as the game counts them: it has begun one of its own
        shape = (game.lanes, 2, len(_STANDINGS))
        self._milestone = torch.full(shape, -1, dtype=torch.int32, device=game.device)  # before: -1
        self._finished: list[tuple[int, int, int]] = []  # lane, match, level
        self._scripts = torch.full((game.lanes, 2), NOBODY, dtype=torch.uint8)
        self._start(torch.arange(game.lanes))

    @property
    def updates(self) -> int:
        return self.ppo.updates

    def step(self) -> list[LoongMatchRow]:
        """One update. Returns the matches that ended in its rollout."""
        self._ended, self._finished = [], []
        progress = self.decisions / self.budget
        rollout = self.collector.collect(self.config.ppo.steps, self)
        self.decisions += len(rollout)
        estimates = self.ppo.estimate(rollout, progress)
        self._score_levels(rollout, estimates)
        self._told = self.ppo.update(rollout, estimates, progress)
        return self._ended

    def round_began(self, rows: LoongDecisions, fresh: Tensor, standings: Tensor) -> None:
        """Rounds began: keep how matches stand at the milestone."""
        lanes = rows.lane[fresh]
        noted = self._milestone[lanes]
        now = (rows.round[fresh] == MILESTONE) & (noted[:, 0, 0] < 0)  # what starts within the round tells of it again
        self._milestone[lanes] = torch.where(now.view(-1, 1, 1), standings[lanes], noted)

    def ended(self, lanes: Tensor, results: NDArray[np.void]) -> None:
        """Matches ended: note them, and start the next ones."""
        milestones = self._milestone[lanes.to(self.game.device)].cpu()
        for lane, result, milestone in zip(lanes.tolist(), results, milestones, strict=True):
            scripts = self._scripts[lane].tolist()
            mine = 0 if scripts[0] == NOBODY else 1
            winner = int(result["winner"])
            opponent = ITSELF if scripts[1 - mine] == NOBODY else PLAYERS[scripts[1 - mine]]
            value = 0.0 if winner == 0 else 1.0 if winner == mine + 1 else -1.0
            ends = {name: [int(x) for x in result[name]] for name in _STANDINGS}
            own, other = milestone[mine].tolist(), milestone[1 - mine].tolist()
            then = dict(zip(_STANDINGS, zip(own, other, strict=True), strict=True)) if own[0] >= 0 else {}
            self._ended.append(
                LoongMatchRow(
                    match=self.matches,
                    lane=lane,
                    level=int(result["level"]),
                    opponent=opponent,
                    team=mine,
                    result=value,
                    rounds=int(result["round"]) + 1,
                    at=self.decisions,
                    updates=self.updates,
                    **{name: (both[mine], both[1 - mine]) for name, both in ends.items()},
                    deaths=tuple(result["deaths"][mine].tolist()),
                    **{f"{name}_{MILESTONE}": pair for name, pair in then.items()},
                )
            )
            self.matches += 1
            if opponent == ITSELF:
                self._finished.append((lane, int(self._match[lane]), int(self._level[lane])))
        self._start(lanes)

    def losses(self) -> dict[str, float]:
        """What the last update told, and on how many levels matches were started so far."""
        return {**self._told, "levels_seen": int((self.levels.started >= 0).sum())}

    def state(self) -> dict[str, Any]:
        return {
            "ppo": self.ppo.state(),
            "collector": self.collector.state(),
            "levels": self.levels.state(),
            "game": self.game.state(),
            "decisions": self.decisions,
            "updates": self.updates,
            "matches": self.matches,
            "surprise": self._surprise,
            "level": self._level,
            "match": self._match,
            "scripts": self._scripts,
            "milestone": self._milestone.cpu(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.ppo.load_state(state["ppo"])
        self.collector.load_state(state["collector"])
        self.levels.load_state(state["levels"])
        self.game.load_state(state["game"])
        self.decisions, self.matches = state["decisions"], state["matches"]
        self._surprise.copy_(state["surprise"])
        self._level.copy_(state["level"])
        self._match.copy_(state["match"])
        self._scripts.copy_(state["scripts"])
        self._milestone.copy_(state["milestone"])

    def _start(self, lanes: Tensor) -> None:
        def start(some: Tensor) -> Tensor:
            self._match[some] += 1
            self._milestone[some.to(self.game.device)] = -1
            self._level[some] = self.levels.draw(some, self._match[some])
            self._scripts[some] = draw_opponents(
                some,
                self._match[some],
                opponents=self.config.opponents,
                scripted=self.config.scripted,
                seed=self.seed,
                stream=STREAM_OPPONENTS,
            )
            self.game.restart(some, self._level[some], scripts=self._scripts[some])
            return self._level[some]

        start_matches(self.game, lanes, start)

    def _score_levels(self, rollout: Rollout, estimates: Estimates) -> None:
        """A level's score is the mean positive advantage of its last match between the learner and itself."""
        lane, matches = (rollout.block // 2).cpu(), rollout.match.cpu()
        surprise = estimates.advantage[: len(rollout)].cpu().clamp_min(0.0).double()
        level, score = [], []
        for over_lane, match, over_level in self._finished:
            rows = (lane == over_lane) & (matches == match)
            total, count = (
                self._surprise[over_lane] + torch.stack((surprise[rows].sum(), rows.sum().double()))
            ).tolist()
            self._surprise[over_lane] = 0.0
            level.append(over_level)
            score.append(total / max(count, 1.0))
        if level:
            self.levels.update(torch.tensor(level), torch.tensor(score, dtype=torch.float64))
        goes_on = (matches == self._match[lane]) & self.game.learners.all(dim=1).cpu()[lane]
        self._surprise[:, 0].index_add_(0, lane[goes_on], surprise[goes_on])
        self._surprise[:, 1].index_add_(0, lane[goes_on], torch.ones_like(surprise[goes_on]))
