"""Advantages over lives that are born, split and die, against a recomputation by hand."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparring.learn.returns import advantages

GAMMA, LAMBDA = 0.9, 0.7


def test_one_life_by_hand() -> None:
    """Two decisions, then the match is won: worked out on paper."""
    value = torch.tensor([0.5, 0.2, 0.0], dtype=torch.float64)
    phi = torch.tensor([0.1, 0.3, 0.0], dtype=torch.float64)
    reward = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    got = advantages(value, phi, reward, torch.tensor([1, 2, -1]), torch.tensor([0, 1, 2]), gamma=GAMMA, lam=LAMBDA)
    second = 1.0 - 0.3 - 0.2
    first = 0.9 * 0.3 - 0.1 + 0.9 * 0.2 - 0.5 + 0.9 * 0.7 * second
    torch.testing.assert_close(got, torch.tensor([first, second, 0.0], dtype=torch.float64))


class Story:
    """A made-up match of one team: dragons are born, decide once a round and die; the match or the rollout ends."""

    def __init__(self, seed: int, rounds: int, over: bool) -> None:
        draw = random.Random(seed)
        self.rounds, self.over = rounds, over
        self.result = draw.choice([-1.0, 0.0, 1.0]) if over else 0.0
        born = {0: 0}
        self.died: dict[int, int] = {}  # in which round, after or before its decision there
        self.decided: dict[int, list[int]] = {}
        for now in range(rounds):
            for dragon in sorted(born):
                if dragon in self.died:
                    continue
                if now > born[dragon] and draw.random() < 0.1:
                    self.died[dragon] = now  # somebody rams it before its turn
                    continue
                self.decided.setdefault(dragon, []).append(now)
                if draw.random() < 0.3:
                    child = len(born)
                    born[child] = now
                    if draw.random() < 0.5:
                        self.decided.setdefault(child, []).append(now)  # newborns may act in their birth round
                if draw.random() < 0.15:
                    self.died[dragon] = now
        number = lambda: draw.uniform(-1, 1)  # noqa: E731
        self.value = {(dragon, now): number() for dragon, all_ in self.decided.items() for now in all_}
        self.phi = {key: number() for key in self.value}
        self.team = [number() for _ in range(rounds)]
        self.team_phi = [number() for _ in range(rounds)]
        # Where the rollout stops, what is bootstrapped from; where the match ends, nothing is worth anything.
        self.open = {dragon: (0.0, 0.0) if over else (number(), number()) for dragon in [*born, None]}

    def advantage(self, dragon: int | None, now: int) -> float:
        """By recursion over the story, None being the team."""
        if dragon is None:
            value, phi = self.team[now], self.team_phi[now]
            following: tuple[int | None, int] | None = (None, now + 1) if now + 1 < self.rounds else None
        else:
            value, phi = self.value[dragon, now], self.phi[dragon, now]
            later = [round_ for round_ in self.decided[dragon] if round_ > now]
            if later:
                following = (dragon, later[0])
            elif dragon in self.died:
                after = self.died[dragon] + 1
                following = (None, after) if after < self.rounds else None
                dragon = None if following is None else dragon
            else:
                following = None
        if following is None:
            next_value, next_phi = self.open[dragon]
            return self.result + GAMMA * (next_value + next_phi) - value - phi
        who, when = following
        next_value = self.team[when] if who is None else self.value[who, when]
        next_phi = self.team_phi[when] if who is None else self.phi[who, when]
        return GAMMA * (next_value + next_phi) - value - phi + GAMMA * LAMBDA * self.advantage(who, when)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), rounds=st.integers(1, 12), over=st.booleans())
def test_advantages_of_births_and_deaths_equal_a_recursion(seed: int, rounds: int, over: bool) -> None:
    story = Story(seed, rounds, over)
    keys: list[tuple[int | None, int]] = [(None, now) for now in range(rounds)] + list(story.value)
    random.Random(seed).shuffle(keys)  # places mean nothing
    ends = list(story.open)
    place = {key: i for i, key in enumerate(keys)}
    end_place = {who: len(keys) + i for i, who in enumerate(ends)}
    value, phi, reward, successor, tick = [], [], [], [], []
    for who, now in keys:
        value.append(story.team[now] if who is None else story.value[who, now])
        phi.append(story.team_phi[now] if who is None else story.phi[who, now])
        tick.append(2 * now + (who is not None))
        following: int | None = None
        if who is None:
            following = place.get((None, now + 1))
        else:
            later = [round_ for round_ in story.decided[who] if round_ > now]
            if later:
                following = place[who, later[0]]
            elif who in story.died:
                following = place.get((None, story.died[who] + 1))
                who = None
        reward.append(story.result if following is None else 0.0)
        successor.append(end_place[who] if following is None else following)
    for who in ends:
        value.append(story.open[who][0])
        phi.append(story.open[who][1])
        reward.append(0.0)
        successor.append(-1)
        tick.append(10**6)
    columns = [torch.tensor(column, dtype=torch.float64) for column in (value, phi, reward)]
    got = advantages(*columns, torch.tensor(successor), torch.tensor(tick), gamma=GAMMA, lam=LAMBDA)
    expected = [story.advantage(who, now) for who, now in keys]
    torch.testing.assert_close(got[: len(keys)], torch.tensor(expected, dtype=torch.float64))
    assert not got[len(keys) :].any()


@pytest.mark.parametrize("rounds", [1, 7])
def test_shaping_adds_up_to_the_potential_at_the_start(rounds: int) -> None:
    """The discounted sum of gamma Phi' - Phi over a match is -Phi_0 (closed at the end by Phi = 0)."""
    phi = torch.cat(
        (torch.rand(rounds, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), torch.zeros(1))
    )
    nothing = torch.zeros(rounds + 1, dtype=torch.float64)
    successor = torch.cat((torch.arange(1, rounds + 1), torch.tensor([-1])))
    got = advantages(nothing, phi, nothing, successor, torch.arange(rounds + 1), gamma=GAMMA, lam=1.0)
    torch.testing.assert_close(got[0], -phi[0])
