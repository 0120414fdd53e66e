"""Tennis on the real 2018 binary as a `Game`: what the built-in court taught can be played where it came from."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Outcome
from sparring.games.unity import BASE_PORT, Orders, Report, UnityBinary


class UnityTennis:
    """One lane of the real Tennis; ids, spaces and rewards as in `sparring.games.tennis.Tennis`.

    Three things a binary cannot do. It draws every serve itself, so `restart` takes no levels. It cannot be saved, so
    `state` and `load_state` raise SparringError. It never shows how a rally ended, so `Outcome.last` holds the
    observation of the rally's last decision.
    """

    name = "unity-tennis"
    agents = 2
    teams = 2
    action = Box(shape=(2,), low=-1.0, high=1.0)
    restarts_itself = True

    def __init__(
        self,
        file_name: str | os.PathLike[str] | None,
        *,
        lanes: int = 1,
        seed: int = 0,
        worker_id: int = 0,
        base_port: int = BASE_PORT,
        no_graphics: bool = True,
        training: bool = True,
        timeout_s: float = 60.0,
    ) -> None:
        """training=False plays at the speed of life. The other arguments and errors are those of `UnityBinary`."""
        if lanes != 1:
            raise SparringError(f"unity-tennis: a binary is one lane, got lanes={lanes}: open one game per worker_id")
        self.lanes = 1
        self._training = training
        self.binary = UnityBinary(
            file_name,
            seed=seed,
            worker_id=worker_id,
            base_port=base_port,
            no_graphics=no_graphics,
            timeout_s=timeout_s,
        )
        acting = [brain for brain in self.binary.academy.brains if brain.external]
        if len(acting) != 1 or acting[0].action_size != 2 or not acting[0].continuous_actions:
            self.close()
            raise SparringError(
                f"unity-tennis: {file_name} is not Tennis: it needs one external brain with 2 real actions"
            )
        self._brain = acting[0].name
        self.observation = Box(shape=(acting[0].stacked * acting[0].observation_size,))
        self._match = 0
        self._decision = 0
        self._score = torch.zeros(2)
        self._obs = self._observations(self.binary.reset(training=training)[self._brain])

    def decisions(self) -> Decisions:
        return self._rows(self._obs.clone())

    def act(self, actions: Tensor) -> Outcome:
        if actions.shape != (2, 2):
            raise SparringError(f"unity-tennis: actions must be [2, 2], got {list(actions.shape)}")
        before = self._obs
        report = self.binary.step({self._brain: Orders(actions=actions.detach().numpy())})[self._brain]
        reward = torch.tensor(report.rewards, dtype=torch.float32)
        self._decision += 1
        self._score += reward
        ended = torch.tensor([0] if report.done[0] else [], dtype=torch.int64)
        outcome = Outcome(
            lane=torch.zeros(2, dtype=torch.int64),
            agent=torch.arange(2),
            reward=reward,
            ended=ended,
            truncated=torch.tensor(report.max_reached[:1])[ended],
            score=self._score[None].clone()[ended],
            length=torch.tensor([self._decision])[ended],
            last=self._rows(before)[torch.tensor(report.done)],
        )
        self._obs = self._observations(report)
        if report.done[0]:
            self._next_match()
        if self.binary.global_done:
            self._obs = self._observations(self.binary.reset(training=self._training)[self._brain])
        return outcome

    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        """`env.reset()` of the 2018 API: rackets and observations start anew, the ball flies on."""
        if levels is not None:
            raise SparringError(
                "unity-tennis: a binary draws its own serves: restart without levels or open another seed"
            )
        if len(lanes):
            self._obs = self._observations(self.binary.reset(training=self._training)[self._brain])
            if self._decision:
                self._next_match()

    def state(self) -> dict[str, Tensor]:
        raise SparringError("unity-tennis: a binary cannot be saved: train on the built-in court, evaluate here")

    def load_state(self, state: dict[str, Tensor]) -> None:
        raise SparringError("unity-tennis: a binary cannot be restored: train on the built-in court, evaluate here")

    def close(self) -> None:
        """End the binary and free its port."""
        self.binary.close()

    def _next_match(self) -> None:
        self._match += 1
        self._decision = 0
        self._score = torch.zeros(2)

    def _observations(self, report: Report) -> Tensor:
        return torch.from_numpy(report.observations)

    def _rows(self, obs: Tensor) -> Decisions:
        agents = torch.arange(2)
        return Decisions(
            lane=torch.zeros(2, dtype=torch.int64),
            match=torch.full((2,), self._match),
            team=agents,
            agent=agents,
            decision=torch.full((2,), self._decision),
            obs=obs,
        )
