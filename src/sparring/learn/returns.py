"""Returns: n-step transitions for a replay, and generalised advantages over lives and teams."""

from __future__ import annotations

import torch
from torch import Tensor


class NStepReturns:
    """Turns single steps into n-step transitions (Sutton and Barto 2018, section 7.1).

    A transition from decision t is ready once n steps followed it or its match ended after k < n steps:
    reward = sum of gamma^i r_(t+i) for i < k, discount = gamma^k (0 after a terminal), next_obs = o_(t+k).
    Every slot (an agent of a lane) has a queue of its own, so agents may act at different times.
    """

    def __init__(self, slots: int, n: int, gamma: float, *, obs: int, actions: int, rewards: int = 0) -> None:
        """rewards: rewards of a slot that has more than one, of several agents side by side."""
        several = (rewards,) if rewards else ()
        self.n = n
        # Row k of a slot's queue is its decision k steps ago.
        self.obs = torch.zeros(n, slots, obs)
        self.action = torch.zeros(n, slots, actions)
        self.reward = torch.zeros(n, slots, *several)
        self.waiting = torch.zeros(slots, dtype=torch.int64)
        self._age = torch.arange(n).unsqueeze(1)
        self._gamma_power = (gamma ** torch.arange(n + 1, dtype=torch.float64)).view(-1, 1, *(1 for _ in several))

    def push(
        self,
        slot: Tensor,
        *,
        obs: Tensor,
        action: Tensor,
        reward: Tensor,
        next_obs: Tensor,
        last: Tensor,
        terminal: Tensor,
        **following: Tensor,
    ) -> dict[str, Tensor]:
        """Add one step of m different slots; return the r transitions that are ready.

        slot int64 [m], obs and next_obs float32 [m, obs], action [m, actions], reward float32 [m];
        last bool [m]: no further step of this match follows; terminal bool, like reward: and nothing is worth anything
        after it;
        following [m, ...]: what else belongs to next_obs.
        Returns obs, action, reward, discount float32 [r], next_obs, and what else follows.
        """
        for queue, newest in ((self.obs, obs), (self.action, action), (self.reward, torch.zeros_like(reward))):
            queue[1:, slot] = queue[:-1, slot]
            queue[0, slot] = newest
        waiting = (self.waiting[slot] + 1).clamp(max=self.n)
        self.reward[:, slot] += (self._gamma_power[:-1] * reward).float()
        ready = (self._age < waiting) & (last | (self._age == self.n - 1))
        self.waiting[slot] = torch.where(last, 0, waiting)
        discount = self._gamma_power[1:] * ~terminal
        return {
            "obs": self.obs[:, slot][ready],
            "action": self.action[:, slot][ready],
            "reward": self.reward[:, slot][ready],
            "discount": discount.float()[ready],
            **{
                name: column.expand(self.n, *column.shape)[ready]
                for name, column in {"next_obs": next_obs, **following}.items()
            },
        }

    def state(self) -> dict[str, Tensor]:
        return {"obs": self.obs, "action": self.action, "reward": self.reward, "waiting": self.waiting}

    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


def advantages(
    value: Tensor, potential: Tensor, reward: Tensor, successor: Tensor, tick: Tensor, *, gamma: float, lam: float
) -> Tensor:
    """Generalised advantages (Schulman et al. 2016, equation 16) over streams that may run into each other.

    Every node is a moment that has a value: a decision of a life, the start of a round for a team, or an end. Its
    stream goes on at its successor, so a life that ends in death can go on in its team's stream. With shaping by
    potentials (Ng et al. 1999)

        delta = reward + gamma potential' - potential + gamma value' - value,    A = delta + gamma lam A',

    where ' is the successor. A node without one (-1) is an end and has advantage 0: of a match, with value and
    potential 0, or of the rollout, with the value to bootstrap from.

    value, potential, reward: float32 or float64 [n]; reward: what is paid between a node and its successor
    successor: int64 [n]; tick: int64 [n], any numbers that are greater at every node's successor than at the node
    returns: [n], of the dtype of value
    """
    on = successor >= 0
    after = successor.clamp(min=0)
    delta = torch.where(on, reward + gamma * (potential + value)[after] - potential - value, 0.0)
    result = torch.zeros_like(value)
    ticks, order = tick[on].sort(descending=True, stable=True)
    nodes = on.nonzero().view(-1)[order]
    for group in nodes.tensor_split((ticks.diff() != 0).nonzero().view(-1).cpu() + 1):
        result[group] = delta[group] + gamma * lam * result[after[group]]
    return result
