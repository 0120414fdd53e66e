"""The game checker: it passes sound games and names the fault of broken ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from walk_game import LIMIT, SelfRestarting, Walk

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Game, Outcome, RewardWrapper, Structured, Wrapper
from sparring.games.checker import check_game
from sparring.games.tennis import Tennis

ALL = ["shape", "ids", "spaces", "masks", "determinism", "lanes differ", "state", "ends", "limits", "scores"]
ALL += ["restart", "bad actions"]


def faults(factory: Callable[..., Game], **options: Any) -> list[str]:
    """The lines of the error."""
    with pytest.raises(SparringError) as caught:
        check_game(factory, **{"lanes": 4, "decisions": 30, "limit": LIMIT} | options)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("game", [Walk, SelfRestarting])
def test_sound_games_pass(game: Callable[..., Game]) -> None:
    assert check_game(game, lanes=4, decisions=30, limit=LIMIT) == ALL


@pytest.mark.parametrize("velocity", ["as-shipped", "true"])
def test_tennis_passes(velocity: str) -> None:
    def tennis(*, lanes: int, seed: int, threads: int = 1) -> Tennis:
        return Tennis(lanes=lanes, seed=seed, velocity=velocity, threads=threads)

    assert check_game(tennis, lanes=5, decisions=60) == [name for name in ALL if name != "limits"]


def test_wrapped_rewards_are_not_held_to_the_score() -> None:
    def halved(*, lanes: int, seed: int) -> Game:
        return Wrapper(RewardWrapper(Walk(lanes=lanes, seed=seed), lambda rows, actions, outcome: outcome.reward / 2))

    assert check_game(halved, lanes=3, decisions=60) == [name for name in ALL if name not in ("limits", "scores")]


# One way to break a game per class, and the line that must name it.


class OtherLanes(Walk):
    def __init__(self, *, lanes: int, seed: int) -> None:
        super().__init__(lanes=lanes + 1, seed=seed)


class Rows(Walk):
    """Walk whose decisions are spoiled by `spoil`."""

    def rows(self, chosen: Tensor) -> Decisions:
        return self.spoil(super().rows(chosen))

    def spoil(self, rows: Decisions) -> Decisions:
        raise NotImplementedError


class OneAgentTwice(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, agent=torch.zeros_like(rows.agent))


class AgentOutOfRange(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, agent=rows.agent + 1)


class IdsAsFloats(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, match=rows.match.float())


class IdsLeftBehind(Rows):
    """Rows are shuffled, but their decision numbers are not."""

    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, decision=rows.decision.roll(1))


class MatchNeverCounts(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, match=torch.zeros_like(rows.match))


class TeamsSwitch(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, team=(rows.agent + rows.decision) % 2)


class IdleLane(Walk):
    def rows(self, chosen: Tensor) -> Decisions:
        rows = super().rows(chosen)
        return rows[(rows.lane != 2) | (rows.decision != 3)]


class RestlessRows(Walk):
    calls = 0

    def decisions(self) -> Decisions:
        self.calls += 1
        rows = super().decisions()
        return replace(rows, obs=rows.obs + self.calls * 0.01)


class EndedLaneGoesOn(Walk):
    def decisions(self) -> Decisions:
        return self.rows(torch.ones(self.lanes, dtype=torch.bool))


class Outcomes(Walk):
    """Walk whose outcomes are spoiled by `spoil`."""

    def act(self, actions: Tensor) -> Outcome:
        return self.spoil(super().act(actions))

    def spoil(self, outcome: Outcome) -> Outcome:
        raise NotImplementedError


class ForgottenAgent(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        keep = (outcome.agent == 0) | (outcome.lane != 1)
        return replace(outcome, lane=outcome.lane[keep], agent=outcome.agent[keep], reward=outcome.reward[keep])


class PaidTwice(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        twice = {name: torch.cat([getattr(outcome, name)] * 2) for name in ("lane", "agent", "reward")}
        return replace(outcome, **twice)


class NotANumber(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, obs=torch.where(rows.decision[:, None] == 4, torch.nan, rows.obs))


class DoubleObservations(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, obs=rows.obs.double())


class LeavesItsBox(Walk):
    observation = Box(shape=(3,), low=-10.0, high=5.0)


class MaskOfOtherSize(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        assert rows.mask is not None
        return replace(rows, mask=rows.mask[:, :2])


class CriticComesAndGoes(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        return replace(rows, critic_obs=rows.obs if int(rows.decision.sum()) % 5 else None)


class RewardsAsDoubles(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, reward=outcome.reward.double())


class EmptyMask(Rows):
    def spoil(self, rows: Decisions) -> Decisions:
        assert rows.mask is not None
        return replace(rows, mask=rows.mask & (rows.decision[:, None] != 2))


class Clock(Walk):
    """Not the seed alone decides."""

    made = 0

    def __init__(self, **options: Any) -> None:
        Clock.made += 1
        super().__init__(**options)
        self.place += Clock.made * 0.001


class ThreadsMatter(Walk):
    def __init__(self, *, lanes: int, seed: int, threads: int = 1) -> None:
        super().__init__(lanes=lanes, seed=seed)
        self.place += threads * 0.001


class SeedUnused(Walk):
    def __init__(self, *, lanes: int, seed: int) -> None:
        super().__init__(lanes=lanes, seed=0)


class LanesAlike(Walk):
    def __init__(self, *, lanes: int, seed: int) -> None:
        super().__init__(lanes=lanes, seed=seed)
        self.seeds[:] = seed
        for lane in range(lanes):
            self.begin(lane, seed)


class StateForgets(Walk):
    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state | {"total": self.total})


class StateForgetsSeeds(Walk):
    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state | {"seeds": self.seeds})


class StateIsAView(Walk):
    def state(self) -> dict[str, Tensor]:
        return super().state() | {"place": self.place}


class StateHoldsNumbers(Walk):
    def state(self) -> dict[str, Tensor]:
        return super().state() | {"turn": 3}  # type: ignore[dict-item]


class TakesAnyState(Walk):
    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, value in state.items():
            setattr(self, name, value.clone())


class LastIsTheNextFirst(SelfRestarting):
    def act(self, actions: Tensor) -> Outcome:
        outcome = super().act(actions)
        ended = torch.zeros(self.lanes, dtype=torch.bool)
        ended[outcome.ended] = True
        return replace(outcome, last=replace(self.rows(ended), match=outcome.last.match))


class LastHasTheNextMatch(SelfRestarting):
    def act(self, actions: Tensor) -> Outcome:
        outcome = super().act(actions)
        return replace(outcome, last=replace(outcome.last, match=outcome.last.match + 1))


class LastOfEverybody(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, last=self.rows(torch.ones(self.lanes, dtype=torch.bool)))


class EndedTwice(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        twice = {name: torch.cat([getattr(outcome, name)] * 2) for name in ("ended", "truncated", "score", "length")}
        return replace(outcome, **twice)


class LengthOffByOne(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, length=outcome.length + 1)


class ScoreOfOneTeam(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, score=outcome.score[:, :1])


class NeverEnds(Walk):
    def act(self, actions: Tensor) -> Outcome:
        self.place.zero_()
        outcome = super().act(actions)
        self.running[:] = True
        nobody = torch.zeros(self.lanes, dtype=torch.bool)
        none = {name: getattr(outcome, name)[:0] for name in ("ended", "truncated", "score", "length")}
        return replace(outcome, **none, last=self.rows(nobody))


class LimitIsTerminal(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, truncated=torch.zeros_like(outcome.truncated))


class EveryEndIsTruncated(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, truncated=torch.ones_like(outcome.truncated))


class ScoreOfTheLastStep(Outcomes):
    def spoil(self, outcome: Outcome) -> Outcome:
        return replace(outcome, score=outcome.score * 0 + 0.1)


class RestartTouchesAll(Walk):
    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        super().restart(lanes, levels)
        self.place += 0.01


class RestartKeepsTheMatch(Walk):
    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        before, running = self.match.clone(), self.running.clone()
        super().restart(lanes, levels)
        self.match = torch.where(running, before, self.match)


class LevelUnused(Walk):
    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        super().restart(lanes)


class LevelsAlike(Walk):
    def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None:
        super().restart(lanes, None if levels is None else torch.zeros_like(levels))


class TakesAnyActions(Walk):
    def act(self, actions: Tensor) -> Outcome:
        wanted = len(self.decisions())
        whole = torch.zeros(wanted, dtype=torch.int64)
        given = actions.reshape(-1)[:wanted]
        whole[: len(given)] = given
        return super().act(whole)


class ActsBeforeItRefuses(Walk):
    def act(self, actions: Tensor) -> Outcome:
        self.place += 0.001
        return super().act(actions)


class ObscureRefusal(Walk):
    def act(self, actions: Tensor) -> Outcome:
        _ = actions + torch.zeros(len(self.decisions()))
        return super().act(actions)


class Crashes(Walk):
    def act(self, actions: Tensor) -> Outcome:
        if int(self.decision.max()) == 5:
            raise ZeroDivisionError("no wall")
        return super().act(actions)


BROKEN: list[tuple[type[Walk], str, str]] = [
    (OtherLanes, "shape", "asked for 4 lanes, the game says it has 5"),
    (OneAgentTwice, "ids", "lane 0, agent 0 is in one batch twice, at batch 0"),
    (AgentOutOfRange, "ids", "agent must be in [0, 2), it reaches from 1 to 2"),
    (IdsAsFloats, "ids", "match must be int64 [8], it is torch.float32 [8]"),
    (IdsLeftBehind, "ids", "lane "),
    (MatchNeverCounts, "ids", "match is 0, but 1 matches have ended in that lane"),
    (TeamsSwitch, "ids", "the agent changed its team within the match"),
    (IdleLane, "ids", "lane 2 puts up no decision at batch "),
    (RestlessRows, "ids", "decisions() called twice gives different rows"),
    (EndedLaneGoesOn, "ids", "an ended lane puts up decisions before it is restarted"),
    (ForgottenAgent, "ids", "lane 1, agent 1 acted but is not in the outcome"),
    (PaidTwice, "ids", "an outcome pays the same lane and agent twice"),
    (Crashes, "ids", "the game raised ZeroDivisionError: no wall"),
    (NotANumber, "spaces", "agent 0, decision 4 is not finite"),
    (DoubleObservations, "spaces", "obs must be float32 [8, 3], it is torch.float64 [8, 3]"),
    (LeavesItsBox, "spaces", "leaves [-10.0, 5.0]"),
    (MaskOfOtherSize, "spaces", "mask has 2 choices, the action space 3"),
    (CriticComesAndGoes, "spaces", "critic_obs is there in some batches and not in others"),
    (RewardsAsDoubles, "spaces", "reward must be float32 [8], it is torch.float64 [8]"),
    (EmptyMask, "masks", "agent 0, decision 2 has no legal choice"),
    (Clock, "determinism", "a second run with the same seed differs: obs of the decisions, at batch 0"),
    (ThreadsMatter, "determinism", "a run with threads=2 differs: obs of the decisions, at batch 0"),
    (SeedUnused, "determinism", "another seed gives the same bytes"),
    (LanesAlike, "lanes differ", "lanes 0 and 1 show the same observations throughout"),
    (StateForgets, "state", "after load_state the same object goes on differently: score of the outcome"),
    (StateForgetsSeeds, "state", "after load_state a new object with another seed goes on differently"),
    (StateIsAView, "state", "state()['place'] changed while the game went on"),
    (StateHoldsNumbers, "state", "state()['turn'] is int, it must be a tensor"),
    (TakesAnyState, "state", "load_state takes the state of 4 lanes into 5"),
    (LastIsTheNextFirst, "ends", "last equals the next match's first observations at every end"),
    (LastHasTheNextMatch, "ends", "last has another match's number than the match that ended"),
    (LastOfEverybody, "ends", "last holds the lanes [0, 1, 2, 3], ended are [], at batch 0"),
    (EndedTwice, "ends", "a lane is in `ended` twice"),
    (LengthOffByOne, "ends", "but the longest life had"),
    (ScoreOfOneTeam, "ends", "score must be torch.float32 [0, 2], it is torch.float32 [0, 1], at batch 0"),
    (NeverEnds, "ends", "no match ended within 30 batches"),
    (LimitIsTerminal, "limits", "no match that reached the limit of 8 is truncated"),
    (EveryEndIsTruncated, "limits", "decisions, the limit is 8"),
    (ScoreOfTheLastStep, "scores", "the rewards sum to"),
    (RestartTouchesAll, "restart", "restart([1]) changed the rows of other lanes"),
    (RestartKeepsTheMatch, "restart", "restart([1]) in a match kept the match number"),
    (LevelUnused, "restart", "lanes 0 and 1 were restarted from the same level, but differ 0 decisions later"),
    (LevelsAlike, "restart", "levels 5 and 6 start alike"),
    (TakesAnyActions, "bad actions", "act takes 7 actions for 8 rows"),
    (ActsBeforeItRefuses, "bad actions", "act was given 7 actions for 8 rows and changed the decisions"),
    (ObscureRefusal, "bad actions", "the game raised RuntimeError"),
]


@pytest.mark.parametrize(("game", "check", "line"), BROKEN, ids=[game.__name__ for game, _, _ in BROKEN])
def test_broken_game_is_named(game: type[Walk], check: str, line: str) -> None:
    found = faults(game)
    assert any(fault.startswith(f"{check}: ") and line in fault for fault in found), found


def test_every_check_is_tried_by_every_broken_game() -> None:
    assert {check for _, check, _ in BROKEN} == set(ALL)
    broken = {game for game, _, _ in BROKEN}
    written = {kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, Walk)}
    assert written - broken == {Walk, SelfRestarting, Rows, Outcomes}


def test_missing_members_are_listed() -> None:
    class Empty:
        name = "empty"
        lanes = 4

        def __init__(self, *, lanes: int, seed: int) -> None: ...

    (line,) = faults(Empty)  # type: ignore[arg-type]
    assert line.startswith("shape: Empty is no Game: it lacks agents, teams, observation, action, restarts_itself")
    assert line.endswith("decisions, act, restart, state, load_state")


def test_fixed_start_can_be_declared() -> None:
    class Fixed(Walk):
        def begin(self, lane: int, level: int) -> None:
            super().begin(lane, 0)

    assert {fault.split(":")[0] for fault in faults(Fixed)} == {"determinism", "lanes differ", "restart"}
    assert check_game(Fixed, lanes=3, decisions=30, random_start=False, limit=LIMIT) == ALL


def test_lives_that_take_the_place_of_others_are_to_be_declared() -> None:
    class Reborn(Rows):
        """Every third decision of an agent is the last of its life."""

        def spoil(self, rows: Decisions) -> Decisions:
            return replace(rows, decision=rows.decision % 3)

        def act(self, actions: Tensor) -> Outcome:
            outcome = super().act(actions)
            return replace(outcome, length=outcome.length.clamp(max=3))

    class LosesCount(Reborn):
        def spoil(self, rows: Decisions) -> Decisions:
            return replace(rows, decision=rows.decision % 3 * 2)

    sound = [name for name in ALL if name != "limits"]
    assert check_game(Reborn, lanes=4, decisions=30, rebirth=True) == sound
    assert faults(Reborn) == ["ids: lane 0, agent 0, batch 5: decision is 0, but the agent has made 3"]
    assert faults(LosesCount, rebirth=True) == [
        "ids: lane 0, agent 0, batch 1: decision is 2, but the agent has made 1"
    ]


def test_integer_observations_and_structured_actions() -> None:
    def steps(rows: Decisions, uniform: Tensor) -> Tensor:
        first = (~rows.mask[:, 0]).long()  # type: ignore[index]
        return first + (uniform[:, 0] * (3 - first)).long()

    class Bytes(Rows):
        observation = Box(shape=(3,), low=0, high=255, dtype=torch.uint8)
        action = Structured(shape=(), dtype=torch.int64, draws=1, sample=steps)  # type: ignore[assignment]

        def spoil(self, rows: Decisions) -> Decisions:
            return replace(rows, obs=(rows.obs * 20 + 50).to(torch.uint8))

    class NoBytes(Bytes):
        def spoil(self, rows: Decisions) -> Decisions:
            return rows

    assert check_game(Bytes, lanes=4, decisions=30, limit=LIMIT) == ALL
    assert "spaces: obs must be uint8 [8, 3], it is torch.float32 [8, 3], at batch 0" in faults(NoBytes)


def test_one_lane_cannot_be_compared() -> None:
    with pytest.raises(SparringError, match="lanes must be 2 or more"):
        check_game(Walk, lanes=1)
