"""Tests a game against the rules of the decision stream (`sparring.games.api`), for users' own games as for ours.

    from sparring.games.checker import check_game
    check_game(MyGame)

Every check plays the game with actions that depend only on who acts when, so two runs can be compared byte for byte.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Discrete, Game, RewardWrapper, Structured
from sparring.games.replaying import Step, choose, copied, difference, first_difference, id_rows, play, raw_bytes

_ID_COLUMNS = ("lane", "match", "team", "agent", "decision")
_MEMBERS = tuple(name for name in vars(Game) if not name.startswith("_"))
"""What a game must have, attributes first."""
_NOT_ASKED = "not asked"
"""What a check yields that does not apply: it neither passes nor fails."""
_SCORE_TOLERANCE = 1e-4
"""Relative and absolute: a match's score may be summed in another order than ours."""


def check_game(
    factory: Callable[..., Game],
    *,
    lanes: int = 8,
    decisions: int = 200,
    seed: int = 0,
    random_start: bool = True,
    limit: int | None = None,
    rebirth: bool = False,
) -> list[str]:
    """Play a game and hold it against the rules; returns the names of the checks it passed.

    factory:      called as `factory(lanes=..., seed=...)`, and with `threads=2` where it takes that argument
    lanes:        matches side by side, 2 or more
    decisions:    how many times the whole batch acts; at least one match must end within them
    random_start: False for a game that always starts alike, whatever lane, seed or level
    limit:        decisions after which the game cuts a match, where it has such a limit
    rebirth:      True for a game in which another life, with decisions from 0 on, may take the place of an agent that
                  died in the match

    Raises SparringError with one line per failed check: the check, the lane, agent and decision, and the rule.
    """
    if lanes < 2:
        raise SparringError(f"check_game: lanes must be 2 or more so that lanes can be compared, got {lanes}")
    subject = _Subject(factory, lanes, decisions, seed, random_start, limit, rebirth)
    faults: list[str] = []
    passed: list[str] = []
    for name, check in _CHECKS.items():
        try:
            fault = next(check(subject), None)
        except Exception as error:
            raised = str(error).split("\n", 1)[0]
            fault = f"the game raised {type(error).__name__}: {raised}"
        if fault is None:
            passed.append(name)
        elif fault != _NOT_ASKED:
            faults.append(f"{name}: {fault}")
            if name in ("shape", "ids"):
                break  # the other checks rely on these
    if faults:
        raise SparringError("\n".join(faults))
    return passed


class _Subject:
    """The game under test and one recording of it, which most checks read."""

    def __init__(
        self,
        factory: Callable[..., Game],
        lanes: int,
        decisions: int,
        seed: int,
        random_start: bool,
        limit: int | None,
        rebirth: bool,
    ) -> None:
        self._factory = factory
        self.lanes = lanes
        self.decisions = decisions
        self.seed = seed
        self.random_start = random_start
        self.limit = limit
        self.rebirth = rebirth
        self._recording: list[Step] | None = None
        self._game: Game | None = None

    def make(self, *, seed: int | None = None, lanes: int | None = None, **options: int) -> Game:
        return self._factory(
            lanes=self.lanes if lanes is None else lanes, seed=self.seed if seed is None else seed, **options
        )

    @property
    def takes_threads(self) -> bool:
        return "threads" in inspect.signature(self._factory).parameters

    @property
    def game(self) -> Game:
        """The recorded game, as it stands after the recording."""
        _ = self.recording
        assert self._game is not None
        return self._game

    @property
    def recording(self) -> list[Step]:
        if self._recording is None:
            self._game = self.make()
            self._recording = play(self._game, self.decisions)
        return self._recording


def _shape(subject: _Subject) -> Iterator[str]:
    """The attributes and methods are there."""
    game = subject.make()
    if not isinstance(game, Game):
        members = [name for name in _MEMBERS if not hasattr(game, name)]
        yield f"{type(game).__name__} is no Game: it lacks {', '.join(members)}"
        return
    if game.lanes != subject.lanes:
        yield f"asked for {subject.lanes} lanes, the game says it has {game.lanes}"
    for name in ("agents", "teams"):
        if getattr(game, name) < 1:
            yield f"{name} is {getattr(game, name)}, it must be 1 or more"
    if not isinstance(game.observation, Box):
        yield f"observation must be a Box, it is {type(game.observation).__name__}"
    if not isinstance(game.action, Box | Discrete | Structured):
        yield f"action must be a Box, Discrete or Structured, it is {type(game.action).__name__}"


def _ids(subject: _Subject) -> Iterator[str]:
    """Lane, match, team, agent and decision travel with the rows and name every life once."""
    game = subject.make()
    matches = torch.zeros(subject.lanes, dtype=torch.int64)
    lives: dict[tuple[int, int, int], int] = {}
    teams: dict[tuple[int, int], int] = {}
    for turn in range(subject.decisions):
        rows = game.decisions()
        yield from (f"{fault}, at batch {turn}" for fault in _row_faults(game, rows))
        if difference(rows, game.decisions()):
            yield f"decisions() called twice gives different rows, at batch {turn}: they must stay until act is called"
        waiting = torch.zeros(subject.lanes, dtype=torch.bool)
        waiting[rows.lane] = True
        if not waiting.all():
            idle = int((~waiting).nonzero()[0])
            yield f"lane {idle} puts up no decision at batch {turn}: every running lane must"
        for lane, match, team, agent, decision in id_rows(rows):
            at = f"lane {lane}, agent {agent}, batch {turn}"
            if subject.rebirth and decision == 0:
                lives.pop((lane, match, agent), None)
                teams.pop((lane * game.agents + agent, match), None)
            if match != matches[lane]:
                yield f"{at}: match is {match}, but {int(matches[lane])} matches have ended in that lane"
            if decision != lives.get((lane, match, agent), 0):
                yield f"{at}: decision is {decision}, but the agent has made {lives.get((lane, match, agent), 0)}"
            if teams.setdefault((lane * game.agents + agent, match), team) != team:
                yield f"{at}: the agent changed its team within the match"
            lives[lane, match, agent] = decision + 1
        acted = {(lane, agent) for lane, _, _, agent, _ in id_rows(rows)}
        outcome = copied(game.act(choose(game, rows)))
        paid = list(zip(outcome.lane.tolist(), outcome.agent.tolist(), strict=True))
        if len(set(paid)) != len(paid):
            yield f"an outcome pays the same lane and agent twice, at batch {turn}"
        if missing := sorted(acted - set(paid)):
            yield f"lane {missing[0][0]}, agent {missing[0][1]} acted but is not in the outcome, at batch {turn}"
        if any(not (0 <= lane < subject.lanes and 0 <= agent < game.agents) for lane, agent in paid):
            yield f"an outcome pays a lane or agent out of range, at batch {turn}"
        matches[outcome.ended] += 1
        if len(outcome.ended) and not game.restarts_itself:
            left = game.decisions().lane
            if torch.isin(left, outcome.ended).any():
                yield f"an ended lane puts up decisions before it is restarted, at batch {turn}"
            game.restart(outcome.ended)


def _row_faults(game: Game, rows: Decisions) -> Iterator[str]:
    for name in _ID_COLUMNS:
        column = getattr(rows, name)
        if column.dtype != torch.int64 or column.shape != (len(rows),):
            yield f"{name} must be int64 [{len(rows)}], it is {column.dtype} {list(column.shape)}"
            return
    for name, high in (("lane", game.lanes), ("agent", game.agents), ("team", game.teams)):
        column = getattr(rows, name)
        if len(column) and not (int(column.min()) >= 0 and int(column.max()) < high):
            yield f"{name} must be in [0, {high}), it reaches from {int(column.min())} to {int(column.max())}"
    keys = rows.lane * game.agents + rows.agent
    if len(set(keys.tolist())) != len(keys):
        twice = keys.mode().values
        yield f"lane {int(twice) // game.agents}, agent {int(twice) % game.agents} is in one batch twice"


def _spaces(subject: _Subject) -> Iterator[str]:
    """Observations, masks, rewards and critic inputs are what the game says they are."""
    game = subject.game
    shown = [(turn, step.rows) for turn, step in enumerate(subject.recording)]
    shown += [(turn, step.outcome.last) for turn, step in enumerate(subject.recording)]
    critic = None if shown[0][1].critic_obs is None else shown[0][1].critic_obs.shape[1:]
    for turn, rows in shown:
        obs = rows.obs
        if obs.dtype != game.observation.dtype or obs.shape != (len(rows), *game.observation.shape):
            declared = f"{game.observation.dtype} {[len(rows), *game.observation.shape]}".removeprefix("torch.")
            yield f"obs must be {declared}, it is {obs.dtype} {list(obs.shape)}, at batch {turn}"
            return
        for row in _bad_rows(~obs.isfinite()):
            yield f"obs of {_who(rows, row)} is not finite"
        for row in _bad_rows((obs < game.observation.low) | (obs > game.observation.high)):
            yield f"obs of {_who(rows, row)} leaves [{game.observation.low}, {game.observation.high}]"
        if rows.mask is not None:
            kinds = (torch.bool, torch.uint8) if isinstance(game.action, Structured) else (torch.bool,)
            if rows.mask.dtype not in kinds or rows.mask.ndim != 2 or len(rows.mask) != len(rows):
                yield f"mask must be bool [{len(rows)}, choices], it is {rows.mask.dtype} {list(rows.mask.shape)}"
                return
            if isinstance(game.action, Discrete) and rows.mask.shape[1] != game.action.n:
                yield f"mask has {rows.mask.shape[1]} choices, the action space {game.action.n}"
        if (rows.critic_obs is None) != (critic is None):
            yield f"critic_obs is there in some batches and not in others, at batch {turn}"
        elif rows.critic_obs is not None:
            if rows.critic_obs.shape != (len(rows), *(critic or ())):
                yield f"critic_obs changes its shape to {list(rows.critic_obs.shape)}, at batch {turn}"
                return
            if rows.critic_obs.is_floating_point() and not rows.critic_obs.isfinite().all():
                yield f"critic_obs is not finite, at batch {turn}"
    for turn, step in enumerate(subject.recording):
        reward = step.outcome.reward
        if reward.dtype != torch.float32 or reward.shape != step.outcome.lane.shape:
            wanted = list(step.outcome.lane.shape)
            yield f"reward must be float32 {wanted}, it is {reward.dtype} {list(reward.shape)}, at batch {turn}"
        elif not reward.isfinite().all():
            yield f"a reward is not finite, at batch {turn}"


def _masks(subject: _Subject) -> Iterator[str]:
    """Whoever must act has a legal choice."""
    for step in subject.recording:
        if step.rows.mask is not None:
            for row in _bad_rows(~step.rows.mask.bool().any(dim=1)):
                yield f"{_who(step.rows, row)} has no legal choice"


def _determinism(subject: _Subject) -> Iterator[str]:
    """The same seed gives the same bytes, for any number of threads; another seed gives others."""
    runs = [("a second run with the same seed", subject.make())]
    if subject.takes_threads:
        runs.append(("a run with threads=2", subject.make(threads=2)))
    for what, game in runs:
        if fault := first_difference(subject.recording, play(game, subject.decisions)):
            yield f"{what} differs: {fault}"
    if subject.random_start:
        other = play(subject.make(seed=subject.seed + 1), subject.decisions)
        if not first_difference(subject.recording, other):
            yield "another seed gives the same bytes: the seed is not used (or pass random_start=False)"


def _lanes_differ(subject: _Subject) -> Iterator[str]:
    """No two lanes play the same match although all do the same."""
    if not subject.random_start:
        return
    seen: dict[bytes, int] = {}
    for lane in range(subject.lanes):
        history = b"".join(raw_bytes(step.rows.obs[step.rows.lane == lane]) for step in subject.recording)
        if history in seen:
            yield f"lanes {seen[history]} and {lane} show the same observations throughout (or pass random_start=False)"
        seen[history] = lane


def _states(subject: _Subject) -> Iterator[str]:
    """A saved game goes on bit for bit, in the same object and in a new one."""
    half = max(subject.decisions // 2, 1)
    game = subject.make()
    play(game, half)
    saved = game.state()
    for name, value in saved.items():
        if not isinstance(value, Tensor):
            yield f"state()[{name!r}] is {type(value).__name__}, it must be a tensor"
            return
    kept = {name: value.clone() for name, value in saved.items()}
    expected = play(game, half)
    if changed := [name for name in kept if not torch.equal(kept[name], saved[name])]:
        yield f"state()[{changed[0]!r}] changed while the game went on: it must be a copy"
    other = subject.make(seed=subject.seed + 1)
    play(other, 3)
    for what, resumed in (("the same object", game), ("a new object with another seed", other)):
        resumed.load_state({name: value.clone() for name, value in kept.items()})
        if fault := first_difference(expected, play(resumed, half)):
            yield f"after load_state {what} goes on differently: {fault}"
    if not _refuses(lambda: subject.make(lanes=subject.lanes + 1).load_state(kept)):
        yield f"load_state takes the state of {subject.lanes} lanes into {subject.lanes + 1}: raise SparringError"


def _ends(subject: _Subject) -> Iterator[str]:
    """Ends are reported once, with what was seen then, not with the next match's first observations."""
    game = subject.game
    longest = torch.zeros(subject.lanes, dtype=torch.int64)
    ends = 0
    overwritten: list[bool] = []
    for turn, step in enumerate(subject.recording):
        outcome, rows = step.outcome, step.rows
        longest.scatter_reduce_(0, rows.lane, rows.decision + 1, "amax")
        shapes = {
            "truncated": (torch.bool, (len(outcome.ended),)),
            "score": (torch.float32, (len(outcome.ended), game.agents)),
            "length": (torch.int64, (len(outcome.ended),)),
            "ended": (torch.int64, (len(outcome.ended),)),
        }
        for name, (dtype, shape) in shapes.items():
            column = getattr(outcome, name)
            if column.dtype != dtype or tuple(column.shape) != shape:
                found = f"{column.dtype} {list(column.shape)}"
                yield f"{name} must be {dtype} {list(shape)}, it is {found}, at batch {turn}"
                return
        if len(set(outcome.ended.tolist())) != len(outcome.ended):
            yield f"a lane is in `ended` twice, at batch {turn}"
        last = outcome.last
        yield from (f"last: {fault}, at batch {turn}" for fault in _row_faults(game, last))
        if set(last.lane.tolist()) != set(outcome.ended.tolist()):
            held = sorted(set(last.lane.tolist()))
            yield f"last holds the lanes {held}, ended are {outcome.ended.tolist()}, at batch {turn}"
            return
        for lane, length in zip(outcome.ended.tolist(), outcome.length.tolist(), strict=True):
            at = f"lane {lane}, batch {turn}"
            if longest[lane] != length:
                yield f"{at}: length is {length}, but the longest life had {int(longest[lane])} decisions"
            match = int(rows.match[rows.lane == lane][0]) if (rows.lane == lane).any() else -1
            if (last.match[last.lane == lane] != match).any():
                yield f"{at}: last has another match's number than the match that ended"
            longest[lane] = 0
            ends += 1
            if turn + 1 < len(subject.recording):
                overwritten += _same_observations(last, subject.recording[turn + 1].rows, lane)
    if not ends:
        yield f"no match ended within {subject.decisions} batches, so ends are unchecked: pass a larger decisions="
    elif overwritten and all(overwritten) and _observations_move(subject.recording):
        yield "last equals the next match's first observations at every end: keep what was seen when the match ended"


def _limits(subject: _Subject) -> Iterator[str]:
    """A match cut by the time limit is told apart from one ended by the rules."""
    if subject.limit is None:
        yield _NOT_ASKED
        return
    at_limit = []
    for turn, step in enumerate(subject.recording):
        ended = zip(
            step.outcome.ended.tolist(), step.outcome.length.tolist(), step.outcome.truncated.tolist(), strict=True
        )
        for lane, length, truncated in ended:
            if length > subject.limit:
                yield f"lane {lane}, batch {turn}: a match had {length} decisions, the limit is {subject.limit}"
            if truncated and length < subject.limit:
                yield f"lane {lane}, batch {turn}: truncated after {length} decisions, the limit is {subject.limit}"
            if length == subject.limit:
                at_limit.append(truncated)
    if not at_limit:
        yield f"no match reached the limit of {subject.limit} in {subject.decisions} batches: pass a larger decisions="
    elif not any(at_limit):
        yield f"no match that reached the limit of {subject.limit} is truncated: learners would take it for terminal"


def _scores(subject: _Subject) -> Iterator[str]:
    """A match's score is the sum of its rewards. A RewardWrapper keeps the game's own score, so it is not asked."""
    game: object = subject.game
    while game is not None:
        if isinstance(game, RewardWrapper):
            yield _NOT_ASKED
            return
        game = getattr(game, "game", None)
    total = torch.zeros(subject.lanes, subject.game.agents, dtype=torch.float64)
    for turn, step in enumerate(subject.recording):
        outcome = step.outcome
        total.index_put_((outcome.lane, outcome.agent), outcome.reward.double(), accumulate=True)
        for lane, score in zip(outcome.ended.tolist(), outcome.score.double(), strict=True):
            if not torch.allclose(total[lane], score, rtol=_SCORE_TOLERANCE, atol=_SCORE_TOLERANCE):
                told, summed = score.tolist(), total[lane].tolist()
                yield f"lane {lane}, batch {turn}: score is {told}, the rewards sum to {summed}"
            total[lane] = 0


def _restarts(subject: _Subject) -> Iterator[str]:
    """A restarted lane starts a new match from its level; the others do not notice."""
    game, untouched = subject.make(), subject.make()
    acted, _ = play(game, 1)[0], play(untouched, 1)
    others = copied(untouched.decisions())
    game.restart(torch.tensor([1]))
    rows = copied(game.decisions())
    if difference(rows[rows.lane != 1], others[others.lane != 1]):
        yield "restart([1]) changed the rows of other lanes"
    fresh = rows[rows.lane == 1]
    if len(fresh) == 0 or (fresh.decision != 0).any():
        yield "restart([1]) left lane 1 without agents at decision 0"
    left = acted.rows.match[acted.rows.lane == 1]
    if 1 not in acted.outcome.ended and (fresh.match <= left.max()).any():
        yield "restart([1]) in a match kept the match number: two lives would share their ids"
    takes_seeds = "seeds" in inspect.signature(game.restart).parameters  # where a level leaves luck to the match
    seeds: dict[str, Tensor] = {"seeds": torch.tensor([7, 7])} if takes_seeds else {}
    game.restart(torch.tensor([0, 1]), torch.tensor([5, 5]), **seeds)
    for turn in range(10):
        rows = game.decisions()
        if raw_bytes(rows.obs[rows.lane == 0]) != raw_bytes(rows.obs[rows.lane == 1]):
            yield f"lanes 0 and 1 were restarted from the same level, but differ {turn} decisions later"
        ended = game.act(choose(game, replace(rows, match=torch.zeros_like(rows.match)))).ended
        if not game.restarts_itself:
            game.restart(ended)
        if torch.isin(torch.tensor([0, 1]), ended).any():
            break
    game.restart(torch.tensor([0, 1]), torch.tensor([5, 6]), **seeds)
    rows = game.decisions()
    if subject.random_start and raw_bytes(rows.obs[rows.lane == 0]) == raw_bytes(rows.obs[rows.lane == 1]):
        yield "levels 5 and 6 start alike (or pass random_start=False)"


def _bad_actions(subject: _Subject) -> Iterator[str]:
    """Actions of a wrong shape are refused, and refusing changes nothing."""
    game = subject.make()
    rows = copied(game.decisions())
    actions = choose(game, rows)
    wrong = {
        f"{len(actions) - 1} actions for {len(actions)} rows": actions[:-1],
        f"actions of shape {[*actions.shape, 1]}": actions[..., None].expand(*actions.shape, 2),
    }
    for what, given in wrong.items():
        if not _refuses(lambda given=given: game.act(given)):  # type: ignore[misc]
            yield f"act takes {what}: raise SparringError with the shape it wants"
        if difference(rows, game.decisions()):
            yield f"act was given {what} and changed the decisions before it refused"


_CHECKS: dict[str, Callable[[_Subject], Iterator[str]]] = {
    "shape": _shape,
    "ids": _ids,
    "spaces": _spaces,
    "masks": _masks,
    "determinism": _determinism,
    "lanes differ": _lanes_differ,
    "state": _states,
    "ends": _ends,
    "limits": _limits,
    "scores": _scores,
    "restart": _restarts,
    "bad actions": _bad_actions,
}


def _refuses(call: Callable[[], object]) -> bool:
    """Whether the call raises an error with a message: SparringError, or Python's own for a wrong value."""
    try:
        call()
    except (SparringError, ValueError) as error:
        return bool(str(error))
    return False


def _same_observations(last: Decisions, following: Decisions, lane: int) -> list[bool]:
    """For each agent of the lane that is in both, whether it sees the same."""
    here = following[following.lane == lane]
    now = {int(agent): obs for agent, obs in zip(here.agent, here.obs, strict=True)}
    ended = last[last.lane == lane]
    both = [(obs, now[int(agent)]) for agent, obs in zip(ended.agent, ended.obs, strict=True) if int(agent) in now]
    return [torch.equal(then, new) for then, new in both]


def _observations_move(recording: list[Step]) -> bool:
    """Whether any agent ever sees something else than at the start of its life."""
    start: dict[tuple[int, int], Tensor] = {}
    for step in recording:
        for (lane, _, _, agent, decision), obs in zip(id_rows(step.rows), step.rows.obs, strict=True):
            if decision == 0:
                start[lane, agent] = obs
            elif (lane, agent) in start and not torch.equal(obs, start[lane, agent]):
                return True
    return False


def _bad_rows(bad: Tensor) -> list[int]:
    """Rows with any True in bool [n, ...]."""
    return bad.reshape(len(bad), -1).any(dim=1).nonzero()[:, 0].tolist() if bad.numel() else []


def _who(rows: Decisions, row: int) -> str:
    return f"lane {int(rows.lane[row])}, agent {int(rows.agent[row])}, decision {int(rows.decision[row])}"
