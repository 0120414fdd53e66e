"""N-step transitions against a recomputation from the whole history."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparring.learn.returns import NStepReturns


def brute_force(history: list[dict[str, float]], n: int, gamma: float) -> list[tuple[float, ...]]:
    """(obs, action, reward, discount, next_obs) of every transition that is ready, from one slot's list of steps."""
    ready = []
    for start in range(len(history)):
        total, discount = 0.0, 1.0
        for k in range(n):
            if start + k == len(history):
                break
            step = history[start + k]
            total += discount * step["reward"]
            discount *= gamma
            if step["last"] or k == n - 1:
                left = 0.0 if step["terminal"] else discount
                ready.append((history[start]["obs"], history[start]["action"], total, left, step["next_obs"]))
                break
    return ready


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 6),
    ends=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=25),
    seed=st.integers(0, 1000),
)
def test_n_step_transitions_equal_a_recomputation(n: int, ends: list[tuple[bool, ...]], seed: int) -> None:
    gamma, slots = 0.9, 3
    generator = torch.Generator().manual_seed(seed)
    queue = NStepReturns(slots, n, gamma, obs=1, actions=1)
    histories: list[list[dict[str, float]]] = [[] for _ in range(slots)]
    got: list[tuple[float, ...]] = []
    for last_0, last_1, terminal, all_act in ends:
        # Slot 2 sits out at times; the rows come in another order each time.
        slot = torch.randperm(slots if all_act else 2, generator=generator)
        m = len(slot)
        step = {
            name: torch.rand(m, generator=generator, dtype=torch.float32)
            for name in ("obs", "action", "reward", "next_obs")
        }
        last = torch.tensor([last_0, last_1, False])[slot]
        terminal_rows = last & terminal
        out = queue.push(
            slot,
            obs=step["obs"].unsqueeze(1),
            action=step["action"].unsqueeze(1),
            reward=step["reward"],
            next_obs=step["next_obs"].unsqueeze(1),
            last=last,
            terminal=terminal_rows,
        )
        for row in range(m):
            histories[slot[row]].append(
                {name: column[row].item() for name, column in step.items()}
                | {"last": bool(last[row]), "terminal": bool(terminal_rows[row])}
            )
        rows = zip(
            out["obs"][:, 0], out["action"][:, 0], out["reward"], out["discount"], out["next_obs"][:, 0], strict=True
        )
        got += [tuple(value.item() for value in row) for row in rows]
    expected = [row for history in histories for row in brute_force(history, n, gamma)]
    assert len(got) == len(expected)
    torch.testing.assert_close(torch.tensor(sorted(got)), torch.tensor(sorted(expected)), rtol=1e-5, atol=1e-6)
