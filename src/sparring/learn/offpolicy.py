"""What learners with a replay share: playing a game, keeping every agent's transitions, learning in bursts.

Acting and learning alternate: `burst` updates after every `update_every` decisions of each lane. What one agent saw,
did and earned becomes an n-step transition once it decides again, dies, or its match ends; so agents may act all at
once or in turns, be born and die.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import torch
from torch import Tensor, nn

from sparring.errors import SparringError
from sparring.games.api import Decisions, Game, Outcome
from sparring.learn.descent import descend
from sparring.learn.matches import EpisodeRow, MatchRow, match_rows
from sparring.learn.replay import Replay
from sparring.learn.returns import NStepReturns
from sparring.learn.transitions import Transitions, one_axis
from sparring.settings import Range


@dataclass(frozen=True, kw_only=True)
class OffPolicyConfig:
    """What every learner with a replay can be told."""

    buffer: Annotated[int, Range(low=1, high=100_000_000)] = 1_000_000
    """Transitions the replay holds; each agent's decision is one."""
    batch: Annotated[int, Range(low=2, high=1_000_000)] = 128
    """Transitions per update. Larger: steadier gradients, fewer updates a second."""
    gamma: Annotated[float, Range(low=0, high=1)] = 0.99
    """Discount per decision. Nearer 1: looks further ahead, learns slower."""
    n_step: Annotated[int, Range(low=1, high=1000)] = 1
    """Decisions whose rewards a transition adds up before it asks for a value. More: faster credit, more bias."""
    reward_scale: Annotated[float, Range(low=0, low_open=True)] = 1.0
    """What the learner multiplies rewards by. Scores stay unscaled."""
    tau: Annotated[float, Range(low=0, high=1, low_open=True)] = 1e-3
    """Share of the online networks that flows into the target networks at each update."""
    clip_norm: Annotated[float, Range(low=0, low_open=True)] = 1.5
    """Largest norm of a network's gradient."""
    update_every: Annotated[int, Range(low=1)] = 64
    """Decisions of each lane between bursts of updates."""
    burst: Annotated[int, Range(low=1)] = 128
    """Updates in a burst."""
    learn_from: Annotated[int, Range(low=1)] = 128
    """Transitions the replay must hold before the first burst."""
    episode_matches: Annotated[int, Range(low=1)] = 1
    """Matches after which a lane is reset; their rewards add up to one episode score."""
    episode_decisions: Annotated[int, Range(low=0)] = 0
    """Decisions after which a lane is reset even within a match; 0: never."""

    @property
    def episodes(self) -> bool:
        """Whether episodes are not simply matches."""
        return self.episode_matches > 1 or self.episode_decisions > 0


class OffPolicy(ABC):
    """A learner with a replay. Call `step` again and again; save `state()` and the replay's rows to continue later."""

    loss_names: tuple[str, ...] = ()
    """What the numbers are that the last update left in `_losses`."""

    def __init__(
        self,
        game: Game,
        config: OffPolicyConfig,
        *,
        actions: int,
        choices: int = 0,
        seed: int,
        device: str,
    ) -> None:
        """actions: numbers that a stored action has. choices: of a discrete game; the legal ones are then kept, too."""
        self.game, self.seed, self.device = game, seed, device
        self.config = config
        self.transitions: Transitions | None = None
        """None where a lane's agents make one transition together."""
        self._make_stores(actions, choices)
        self.decisions = 0
        self.updates = 0
        self.matches = 0
        self.episodes = 0
        self.episodes_ended: list[EpisodeRow] = []
        """Episodes that the last `step` ended; stays empty where every match is an episode of its own."""
        self._episode_matches = torch.zeros(game.lanes, dtype=torch.int64)
        self._episode_decisions = torch.zeros(game.lanes, dtype=torch.int64)
        self._episode_score = torch.zeros(game.lanes, game.agents)
        self._losses = torch.zeros(len(self.loss_names), device=device)
        self._rows = game.decisions()

    def _make_stores(self, actions: int, choices: int) -> None:
        """The replay, and what waits on its way there."""
        game, config = self.game, self.config
        obs, slots = one_axis(game, "observations"), game.lanes * game.agents
        masks = {"next_mask": ((choices,), torch.bool)} if choices else {}
        self.replay = Replay(config.buffer, obs, actions, device=self.device, extra=masks)
        self.returns = NStepReturns(slots, config.n_step, config.gamma, obs=obs, actions=actions)
        self.transitions = Transitions(
            game, {"action": ((actions,), torch.float32)}, choices=choices, reward_scale=config.reward_scale
        )

    @abstractmethod
    def explore(self, rows: Decisions) -> tuple[Tensor, Tensor]:
        """The actions to play, as the game takes them, and as the replay keeps them, float32 [n, actions]."""

    @abstractmethod
    def _update(self) -> None:
        """One update from one batch."""

    def step(self) -> list[MatchRow]:
        """Act once in every lane, then learn if a burst is due. Returns the matches that ended."""
        rows = self._rows
        played, stored = self.explore(rows)
        outcome = self.game.act(played)
        self.decisions += self.game.lanes
        ended = match_rows(outcome, first=self.matches, at=self.decisions, updates=self.updates)
        self.matches += len(ended)
        over = self._episodes_over(outcome)
        self._rows = self.game.decisions()
        self._remember(rows, stored, outcome, self._rows, over)
        waiting = over.clone()
        if not self.game.restarts_itself:
            waiting[outcome.ended] = True
        if waiting.any():
            self.game.restart(waiting.nonzero().view(-1))
            self._rows = self.game.decisions()
        config = self.config
        lane_decisions = self.decisions // self.game.lanes
        if lane_decisions % config.update_every == 0 and len(self.replay) >= config.learn_from:
            for _ in range(config.burst):
                self._update()
        return ended

    def stand(self, scene: dict[str, Tensor]) -> None:
        """Go on from lanes that `game.state()` gave; steps that still wait for what follows are dropped."""
        self.game.load_state(scene)
        self.returns.waiting.zero_()
        if self.transitions:
            self.transitions.clear()
        for counter in (self._episode_matches, self._episode_decisions, self._episode_score):
            counter.zero_()
        self._rows = self.game.decisions()

    def _remember(self, rows: Decisions, action: Tensor, outcome: Outcome, following: Decisions, over: Tensor) -> None:
        """Store what is ready."""
        assert self.transitions is not None
        ready = self.transitions.push(rows, outcome, following, over, action=action)
        self.replay.add(**self.returns.push(**ready))
        self.returns.waiting[over.repeat_interleave(self.game.agents)] = 0

    def _episodes_over(self, outcome: Outcome) -> Tensor:
        """bool [lanes]: lanes to reset now."""
        self._episode_decisions += 1
        self._episode_score.index_put_((outcome.lane, outcome.agent), outcome.reward, accumulate=True)
        self._episode_matches[outcome.ended] += 1
        over = self._episode_matches >= self.config.episode_matches
        if self.config.episode_decisions:
            over |= self._episode_decisions >= self.config.episode_decisions
        self.episodes_ended = []
        if self.config.episodes:
            for lane in over.nonzero().view(-1).tolist():
                row = EpisodeRow(
                    episode=self.episodes,
                    lane=lane,
                    matches=int(self._episode_matches[lane]),
                    length=int(self._episode_decisions[lane]),
                    score=tuple(self._episode_score[lane].tolist()),
                    at=self.decisions,
                )
                self.episodes_ended.append(row)
                self.episodes += 1
        self._episode_decisions[over] = 0
        self._episode_matches[over] = 0
        self._episode_score[over] = 0.0
        return over

    def _descend(self, loss: Tensor, parameters: list[nn.Parameter], optimiser: torch.optim.Optimizer) -> None:
        descend(loss, parameters, optimiser, clip_norm=self.config.clip_norm, refuse=self._refuse)

    def _refuse(self, what: str) -> NoReturn:
        raise SparringError(
            f"update {self.updates}: {what} is not finite: the last checkpoint is whole; continue from it with smaller "
            "step sizes, and see whether all rewards and observations are numbers"
        )

    def losses(self) -> dict[str, float]:
        """What the last update told."""
        return dict(zip(self.loss_names, self._losses.tolist(), strict=True))

    def state(self) -> dict[str, Any]:
        """Everything but the replay's rows."""
        return {
            "returns": self.returns.state(),
            "pending": self.transitions.state() if self.transitions else {},
            "game": self.game.state(),
            "decisions": self.decisions,
            "updates": self.updates,
            "matches": self.matches,
            "episodes": self.episodes,
            "episode_score": self._episode_score,
            "episode_matches": self._episode_matches,
            "episode_decisions": self._episode_decisions,
            "losses": self._losses,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from `state()`; the replay is restored apart, by `Replay.restore`."""
        self.returns.load_state(state["returns"])
        if self.transitions:
            self.transitions.load_state(state["pending"])
        self.game.load_state(state["game"])
        self.decisions = state["decisions"]
        self.updates = state["updates"]
        self.matches = state["matches"]
        self.episodes = state["episodes"]
        self._episode_score.copy_(state["episode_score"])
        self._episode_matches.copy_(state["episode_matches"])
        self._episode_decisions.copy_(state["episode_decisions"])
        self._losses = state["losses"].to(self.device)
        self._rows = self.game.decisions()


def averaged_tensors(network: nn.Module) -> list[Tensor]:
    """What flows into a target network: the weights and batch norm's running statistics."""
    return [tensor.detach() for tensor in network.state_dict(keep_vars=True).values() if tensor.is_floating_point()]
