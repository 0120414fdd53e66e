"""What each agent's decision led to, put together from the decision stream."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.api import Decisions, Game, Outcome


def one_axis(game: Game, what: str) -> int:
    """How many numbers the game's `observations` or `actions` have. Raises SparringError where they are no list."""
    shape = (game.observation if what == "observations" else game.action).shape  # type: ignore[union-attr]
    if len(shape) != 1:
        raise SparringError(f"{game.name} has {what} of shape {list(shape)}; this learner needs one axis: flatten them")
    return int(shape[0])


class Transitions:
    """Keeps every agent's last decision until it is known what follows.

    That is known once the agent decides again, a limit takes it out, or its match ends; so agents may act all at once
    or in turns, be born and die. Rows, rewards and what follows meet by lane and agent, not by place.
    """

    def __init__(
        self,
        game: Game,
        columns: Mapping[str, tuple[tuple[int, ...], torch.dtype]],
        *,
        choices: int = 0,
        reward_scale: float = 1.0,
    ) -> None:
        """columns: what is kept of a decision besides what was seen: shape and dtype of a row by name
        choices: of a discrete game, where the legal ones of the next decision are wanted, too
        """
        self.game, self.choices, self.reward_scale = game, choices, reward_scale
        slots = game.lanes * game.agents
        # By slot, an agent of a lane.
        self._kept = {
            "obs": torch.zeros(slots, one_axis(game, "observations")),
            **{name: torch.zeros(slots, *shape, dtype=dtype) for name, (shape, dtype) in columns.items()},
            "reward": torch.zeros(slots),
            "waits": torch.zeros(slots, dtype=torch.bool),
        }

    def push(
        self, rows: Decisions, outcome: Outcome, following: Decisions, over: Tensor, **columns: Tensor
    ) -> dict[str, Tensor]:
        """Take in what all lanes did and what came of it; return the m transitions that are ready, by slot.

        rows, outcome: one batch of decisions and what `act` returned; following: the game's decisions after it
        over:    bool [lanes], lanes that are reset now whatever still waits there
        columns: [n, ...], those that were named at the start, of the rows

        Returns slot int64 [m] (lane * agents + agent), obs and next_obs float32 [m, inputs], reward float32 [m], the
        columns, last bool [m]: no transition of this life follows; terminal bool [m]: and nothing is worth anything
        after it, else next_obs counts; with choices next_mask bool [m, choices].
        Raises SparringError for an agent that was shown NaN.
        """
        lanes, agents, kept = self.game.lanes, self.game.agents, self._kept
        slots = lanes * agents
        slot = rows.lane * agents + rows.agent
        kept["obs"][slot] = rows.obs.float()
        for name, column in columns.items():
            kept[name][slot] = column
        kept["reward"][slot] = 0.0
        kept["waits"][slot] = True
        paid = outcome.lane * agents + outcome.agent
        kept["reward"].index_add_(0, paid, outcome.reward * self.reward_scale)

        acts, born, stands, cut = (torch.zeros(slots, dtype=torch.bool) for _ in range(4))
        next_obs = torch.full_like(kept["obs"], torch.nan)
        mask = torch.ones(slots, self.choices, dtype=torch.bool)
        # What an agent saw at the end, not the first sight of its next match or of the next life in its place.
        for seen, flag in ((following, acts), (outcome.last, stands), (outcome.parted, cut)):
            if seen is None:
                continue
            where = seen.lane * agents + seen.agent
            next_obs[where] = seen.obs.float()
            flag[where] = True
            if self.choices and seen.mask is not None:
                mask[where] = seen.mask.bool()
        born[following.lane * agents + following.agent] = following.decision == 0
        ended, terminal = torch.zeros(lanes, dtype=torch.bool), torch.zeros(lanes, dtype=torch.bool)
        ended[outcome.ended] = True
        terminal[outcome.ended] = ~outcome.truncated
        ended, terminal, over = (each.repeat_interleave(agents) for each in (ended, terminal, over))

        done = (kept["waits"] & (ended | acts | cut)).nonzero().view(-1)
        # Who died before is told nothing at the end; whose place another life takes is dead, too.
        dead = torch.where(ended, ~stands, born) & ~cut
        next_obs = torch.where(dead[done].unsqueeze(1), 0.0, next_obs[done])
        if (blind := next_obs.isnan()).any():
            row = int(done[int(blind.any(dim=1).nonzero()[0])])
            raise SparringError(
                f"{self.game.name}: agent {row % agents} of lane {row // agents} was shown NaN after it acted"
            )
        ready = {
            "slot": done,
            **{name: column[done] for name, column in kept.items() if name != "waits"},
            "next_obs": next_obs,
            "last": (ended | dead | cut | over)[done],
            "terminal": (dead | terminal)[done],
        }
        if self.choices:
            ready["next_mask"] = mask[done]
        kept["waits"][done] = False
        # A lane that is reset within a match leaves nothing behind, not even of agents that did not see the end.
        kept["waits"][over] = False
        return ready

    def clear(self) -> None:
        """Drop what waits."""
        self._kept["waits"].zero_()

    def state(self) -> dict[str, Tensor]:
        return self._kept

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in self._kept.items():
            tensor.copy_(state[name])
