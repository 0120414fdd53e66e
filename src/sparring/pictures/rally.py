"""Records one rally of Tennis, every physics step of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.tennis import CAP_DECISIONS, Tennis
from sparring.pictures import check_range
from sparring.pictures.court import FLOOR_TOP, NET_HALF_WIDTH, NET_TOP, WALL_FACE, CourtFrame

STEPS_PER_SECOND = 50
"""Physics steps of game time."""
STEPS_PER_DECISION = 5

_RACKET_B, _RACKET_A = 0, 1
"""Agent ids."""
_TRAIL_STEPS = 24
_SERVE_JUMP = 2.0
"""No ball flies this far in one physics step, and no end of a rally lies this near to a serve."""
_CROSSING_REWARD = 0.1


class Policy(Protocol):
    """Anything that answers observations, deterministically and without noise."""

    def act(self, observations: Tensor) -> ArrayLike | Tensor:
        """observations: float32 [n, 24], each racket's own mirrored view; returns [n, 2] in [-1, 1]."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rally:
    """A recorded rally.

    bodies: float32 [steps + 1, 6], ball x, y, racket A x, y, racket B x, y at the start and after each physics step
            up to the one that ended the rally (the next serve, which follows within the same decision, is left out)
    scores: float64 [decisions + 1, 2], undiscounted rewards of A and B so far, before and after each decision
    ended:  why it ended, in a few words
    names:  who played racket A and racket B
    """

    bodies: NDArray[np.float32]
    scores: NDArray[np.float64]
    ended: str
    names: tuple[str, str]

    @property
    def decisions(self) -> int:
        """Decisions each racket made."""
        return len(self.scores) - 1

    @property
    def last_step(self) -> int:
        """The last physics step that can be shown; step 0 is the serve."""
        return len(self.bodies) - 1

    def crossings(self, step: int) -> int:
        """How often the ball has passed over the net by `step`."""
        sides = np.sign(self.bodies[: step + 1, 0])
        sides = sides[sides != 0]
        return int(np.count_nonzero(sides[1:] != sides[:-1]))

    def frame(self, step: int, *, caption: str = "") -> CourtFrame:
        """The court after `step` physics steps. The last one shows the final score and why the rally ended."""
        last = step >= self.last_step
        decision = self.decisions if last else min(step // STEPS_PER_DECISION, self.decisions)
        return CourtFrame(
            bodies=self.bodies[step],
            trail=self.bodies[max(0, step - _TRAIL_STEPS) : step, :2],
            score=(float(self.scores[decision, 0]), float(self.scores[decision, 1])),
            decision=decision,
            seconds=step / STEPS_PER_SECOND,
            crossings=self.crossings(step),
            names=self.names,
            caption=caption or (self.ended if last else ""),
        )


def record_rally(
    policy: Policy,
    *,
    opponent: Policy | None = None,
    seed: int = 0,
    velocity: str = "as-shipped",
    max_decisions: int = CAP_DECISIONS,
    names: tuple[str, str] | None = None,
) -> Rally:
    """Plays one rally without showing it; arguments and errors as in `sparring.pictures.play.play`."""
    check_range("max_decisions", max_decisions, 1, CAP_DECISIONS)
    game = Tennis(lanes=1, seed=seed, velocity=velocity)
    bodies = [np.array(game.courts.bodies, dtype=np.float32)]
    scores = [np.zeros(2)]
    ended = f"stopped after {max_decisions} decisions"
    for decision in range(1, max_decisions + 1):
        rows = game.decisions()
        outcome = game.act(_answers(rows.obs, rows.agent, policy, opponent))
        rewards = dict(zip(outcome.agent.tolist(), outcome.reward.tolist(), strict=True))
        paid = np.array([rewards[_RACKET_A], rewards[_RACKET_B]])
        scores.append(scores[-1] + paid)
        steps = np.array(game.courts.trace[0], dtype=np.float32)
        if len(outcome.ended) == 0:
            bodies.append(steps)
        elif bool(outcome.truncated[0]):
            bodies.append(steps)
            ended = f"cut at decision {decision}, as in the 2018 binary"
            break
        else:
            flight = np.concatenate([bodies[-1][-1:], steps])
            jumps = np.flatnonzero(np.hypot(*np.diff(flight[:, :2], axis=0).T) > _SERVE_JUMP)
            last = int(jumps[0]) if len(jumps) else STEPS_PER_DECISION
            bodies.append(flight[1 : last + 1])
            x, y = flight[last - 1, :2].tolist()
            ended = _why_ended(x, y, paid)
            break
    names = names or ("policy", "policy" if opponent is None else "opponent")
    return Rally(bodies=np.concatenate(bodies), scores=np.array(scores), ended=ended, names=names)


def _answers(observations: Tensor, agents: Tensor, policy: Policy, opponent: Policy | None) -> Tensor:
    """The actions of both rackets, float32 [2, 2] in the order of the rows."""
    if opponent is None:
        return _answer(policy, observations)
    actions = torch.empty(len(agents), 2)
    for agent, player in ((_RACKET_A, policy), (_RACKET_B, opponent)):
        mine = agents == agent
        actions[mine] = _answer(player, observations[mine])
    return actions


def _answer(player: Policy, observations: Tensor) -> Tensor:
    with torch.no_grad():
        actions = torch.as_tensor(player.act(observations), dtype=torch.float32).cpu()
    if actions.shape != (len(observations), 2):
        raise SparringError(
            f"{type(player).__name__}.act returned shape {tuple(actions.shape)} for {len(observations)} observations; "
            f"Tennis needs ({len(observations)}, 2)"
        )
    return actions


def _why_ended(x: float, y: float, paid: NDArray[np.float64]) -> str:
    """What a ball at (x, y) touches and whom it cost; the court finds contacts where the ball stands before a step."""
    gaps = {
        "on A's floor" if x < 0 else "on B's floor": y - FLOOR_TOP,
        "on A's wall" if x < 0 else "on B's wall": WALL_FACE - abs(x),
        "in the net": float(np.hypot(max(abs(x) - NET_HALF_WIDTH, 0.0), max(y - NET_TOP, 0.0))),
    }
    touched = min(gaps, key=lambda place: gaps[place])
    charged = np.abs(paid - _CROSSING_REWARD * np.round(paid / _CROSSING_REWARD)) > 0.005
    return f"ball {touched}, charged to {'A' if charged[0] else 'B'}"
