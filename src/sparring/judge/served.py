"""Served play: many matches at once in the organisers' engine, one team or both answered by one batched policy.

    from sparring.judge.served import serve, served_entrant

    jobs = schedule([served_entrant("mine", hash), load_entrant("starter")], named_maps("shipped"), seed=7, matches=72)
    for job, played in serve(policy, jobs):
        print(job.map_name, played.winner)

Worker processes own engines and sandboxes, with a thread for each match that runs (`judge/serving.py`). The process
of the caller owns the policy: it takes all turns that wait, in one batch, and sends the replies back. The batch is a
row of decisions of the game "loong", so that a policy need not know where it plays.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparring import _core
from sparring.errors import SparringError
from sparring.games.api import Decisions
from sparring.games.loong import Loong, LoongDecisions, LoongOutcome, script_number
from sparring.games.loong_rows import ACTION, DEATHS, LANE, VIEW, views
from sparring.judge.entrants import Entrant
from sparring.judge.match import PlayedMatch
from sparring.judge.native import load_level
from sparring.judge.official import official_engine
from sparring.judge.schedule import Job
from sparring.judge.servers import Servers
from sparring.judge.serving import ENDED, IDS, SIZE, TURN, Ended
from sparring.judge.sides import SCRIPT_SEED
from sparring.policies.scripted import ScriptedPolicy

__all__ = ["Job", "Policy", "ServedLoong", "ServedOutcome", "ServedRows", "serve", "served_entrant"]

_IDS = ("team", "agent", "dragon", "decision")
_TURN = np.dtype([*((name, "<u4") for name in _IDS), ("obs", "u1", VIEW.itemsize)])
assert _TURN.itemsize == IDS.size + VIEW.itemsize


def served_entrant(name: str, hash: str) -> Entrant:
    """Stands in a job for a policy. hash: of what decides its play, such as its weights: whose match it was."""
    return Entrant(name, "served", hash)


class Policy(Protocol):
    """What serves. It may also have `ended(lane, match)`, which is called when a match is over: what it remembers of
    the dragons of that lane is of no use any more.
    """

    def act(self, rows: LoongDecisions) -> Tensor | tuple[Tensor, Tensor]:
        """uint8 [n, ACTION_BYTES], actions; or these and float32 [n], their log-probabilities.

        What it does in a row must not depend on the other rows: which of them wait at the same time is luck. Random
        numbers are keyed by who decides: (lane, match, agent, decision), which do not depend on luck.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ServedOutcome(LoongOutcome):
    """What one `ServedLoong.act` brought; matches that ended include those that ended between the served turns.

    The rewards are those of `LoongOutcome`, for the served dragons. `last` is empty: the judge tells a dragon nothing
    when a match ends. In `results` the level is the match's place in the list of jobs.

    match:  int64 [e], the match that ended in each of `ended`, numbered as in its decisions
    played: [e], what it came to
    """

    match: Tensor
    played: list[PlayedMatch]


@dataclass(frozen=True, kw_only=True)
class ServedRows:
    """All served decisions of a match, in the order of the match: what a learner needs of it.

    index:    of the job
    rows:     LoongDecisions [n]
    actions:  uint8 [n, ACTION_BYTES]
    log_prob: float32 [n], what the policy said, or None if it said nothing
    final:    bool [n], the last decision of a life
    result:   float32 [n], of the row's team in the match: 1 won, 0 drawn, -1 lost
    """

    index: int
    rows: LoongDecisions
    actions: Tensor
    log_prob: Tensor | None
    final: Tensor
    result: Tensor


def serve(
    policy: Policy | str,
    jobs: Sequence[Job],
    *,
    workers: int = 2,
    threads: int = 4,
    on_rows: Callable[[ServedRows], None] | None = None,
) -> Iterator[tuple[Job, PlayedMatch]]:
    """Play all matches, and give each job as its match ends, in whatever order they do.

    policy:  answers for all teams whose entrant is of kind "served"; a name is that of a scripted player
    workers: processes; threads: matches at once in each
    on_rows: is given the rows of every match when it has ended

    When the iterator is closed, or Ctrl-C or an error ends it, no process is left. Raises SparringError, as
    `ServedLoong` does.
    """
    with ServedLoong(jobs, workers=workers, threads=threads) as game:
        yield from game.play(ScriptedPolicy(game, policy) if isinstance(policy, str) else policy, on_rows=on_rows)


class ServedLoong:
    """A list of matches as a decision stream: every lane plays one after another, beside the others.

    Lane i plays the matches i, i + lanes, i + 2 lanes and so on: the ids of a decision do not depend on what is ready
    first. A lane starts its next match by itself, and puts up no more decisions when its list is done. When none does,
    all matches have ended; an `act` of no rows then tells of those that no other has told of. It is no full `Game`:
    nobody can restart or save what the judge plays.

    Use it in a `with` block, or call `close`.
    """

    name = "loong"
    teams = 2
    observation = Loong.observation
    action = Loong.action
    restarts_itself = True

    def __init__(self, jobs: Sequence[Job], *, workers: int = 2, threads: int = 4, patience: float = 0.005) -> None:
        """Start the processes and the first matches.

        workers: processes; threads: matches at once in each of them
        patience: seconds that a turn waits for others, to be answered in one batch; it does not wait where a process
            would have nothing left to do

        Raises SparringError where the judge is missing, for a map that it refuses, and for a match that nobody serves.
        """
        if workers < 1 or threads < 1 or not jobs:
            raise SparringError(
                f"served play needs a match, a worker and a thread: got {len(jobs)}, {workers} and {threads}"
            )
        official_engine(any_version=True)  # before any process starts: it may be missing, or not yet compiled
        self.jobs = list(jobs)
        self._maps = [_identity(index, job) for index, job in enumerate(self.jobs)]
        self.lanes = min(workers * threads, len(self.jobs))
        self.agents = max(most for *_, most in self._maps)
        self._patience = patience
        self._matches = [-1] * self.lanes  # started in each lane, less one
        self._waiting: dict[int, bytes] = {}
        self._rows: LoongDecisions | None = None
        self._ended: list[tuple[int, int, Ended]] = []
        self._no_end: ServedOutcome | None = None
        workers = min(workers, self.lanes)
        self._worker = [lane % workers for lane in range(self.lanes)]
        self._busy = [0] * workers  # lanes of each process that play on
        self._servers = Servers(workers, self.lanes)
        try:
            for lane in range(self.lanes):
                self._next(lane)
            self._gather()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Of the processes."""
        return self._servers.pids

    def index(self, lane: int, match: int) -> int:
        """The place in `jobs` of what a lane plays as its match of this number."""
        return match * self.lanes + lane

    def decisions(self) -> LoongDecisions:
        """The served dragons that wait, at most one of a lane, by lane."""
        if self._rows is None:
            lanes = sorted(self._waiting)
            turns = np.frombuffer(b"".join(self._waiting[lane] for lane in lanes), _TURN)
            obs = torch.from_numpy(turns["obs"].copy())
            ids = {name: turns[name].astype(np.int64) for name in _IDS}
            ids["lane"] = np.array(lanes, np.int64)
            ids["match"] = np.array([self._matches[lane] for lane in lanes], np.int64)
            ids["round"] = views(obs)["round"].astype(np.int64)
            self._rows = LoongDecisions(obs=obs, **{name: torch.from_numpy(column) for name, column in ids.items()})
        return self._rows

    def act(self, actions: Tensor) -> ServedOutcome:
        """Answer the rows of the last `decisions()`, in their order, and wait for the next. actions: uint8 [n, 80].

        Raises SparringError for rows that are no actions, before any is sent; and where a process died.
        """
        rows = self.decisions()
        if actions.dtype != torch.uint8 or actions.shape != (len(rows), ACTION.itemsize):
            wanted = f"uint8 [{len(rows)}, {ACTION.itemsize}]"
            raise SparringError(f"served play: actions must be {wanted}, got {actions.dtype} {list(actions.shape)}")
        replies = []
        for at, action in enumerate(actions.numpy()):
            try:
                replies.append(_core.loong_reply(action.tobytes()))
            except ValueError:
                who = f"lane {int(rows.lane[at])}, dragon {int(rows.dragon[at])}"
                raise SparringError(f"served play: {who}: the row is no action") from None
        for lane, reply in zip(rows.lane.tolist(), replies, strict=True):
            self._busy[self._worker[lane]] += 1
            self._servers.send(lane, reply)
        self._waiting, self._rows = {}, None
        self._gather()
        ended, self._ended = self._ended, []
        return self._outcome(rows, ended)

    def results(self, outcome: ServedOutcome) -> NDArray[np.void]:
        """How the ended matches ended, [e] with the fields of `_core.LOONG_LANE`, as `Loong.results` tells it."""
        ended: NDArray[np.void] = outcome.results.numpy().view(LANE)[:, 0]
        return ended

    def jobs_of(self, rows: Decisions) -> list[Job]:
        """The jobs that rows are of."""
        pairs = zip(rows.lane.tolist(), rows.match.tolist(), strict=True)
        return [self.jobs[self.index(lane, match)] for lane, match in pairs]

    def identities(self, rows: LoongDecisions) -> NDArray[np.int32]:
        """int32 [n, 5], who the dragons are: id, team, width, height and unit limit of the map."""
        pairs = zip(rows.lane.tolist(), rows.match.tolist(), strict=True)
        identities = np.zeros((len(rows), 5), np.int32)
        identities[:, 0], identities[:, 1] = rows.dragon, rows.team
        maps = [self._maps[self.index(lane, match)][:3] for lane, match in pairs]
        identities[:, 2:] = np.array(maps, np.int32).reshape(-1, 3)
        return identities

    def scripted(self, rows: Decisions, script: str | Tensor, *, seed: int = SCRIPT_SEED) -> Tensor:
        """What scripted players do in rows of the last `decisions()`: uint8 [n, 80], as `Loong.scripted` tells it."""
        now = self.decisions()
        at = torch.searchsorted(now.lane, rows.lane)
        identities = self.identities(now[at])
        numbers = script if isinstance(script, Tensor) else torch.full((len(rows),), script_number(script))
        actions = np.zeros((len(rows), ACTION.itemsize), np.uint8)
        seeds = np.array([job.seed for job in self.jobs_of(rows)], np.uint64)
        _core.loong_decide_rows(
            numbers.numpy().astype(np.uint8)[:, None], identities, rows.obs.numpy(), seed, seeds, actions
        )
        return torch.from_numpy(actions)

    def play(
        self, policy: Policy, *, on_rows: Callable[[ServedRows], None] | None = None
    ) -> Iterator[tuple[Job, PlayedMatch]]:
        """Let a policy play all matches, and give each job as its match ends. See `serve`."""
        kept = _Kept()
        forget = getattr(policy, "ended", None)

        def told(ends: Iterable[tuple[int, int, PlayedMatch]]) -> Iterator[tuple[Job, PlayedMatch]]:
            for lane, match, played in ends:
                index = self.index(lane, match)
                if on_rows is not None:
                    on_rows(kept.take(index, lane, match, played))
                if forget is not None:
                    forget(lane, match)
                yield self.jobs[index], played

        while len(rows := self.decisions()) or self._ended:
            answer = policy.act(rows) if len(rows) else torch.zeros(0, ACTION.itemsize, dtype=torch.uint8)
            actions, log_prob = answer if isinstance(answer, tuple) else (answer, None)
            if on_rows is not None:
                kept.add(rows, actions, log_prob)
            try:
                outcome = self.act(actions)
            except (KeyboardInterrupt, SparringError):
                yield from told((lane, match, end.played) for lane, match, end in self._ended)
                raise
            yield from told(zip(outcome.ended.tolist(), outcome.match.tolist(), outcome.played, strict=True))

    def close(self) -> None:
        """End the processes."""
        self._servers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, lane: int) -> None:
        """Start the next match of a lane, if there is one."""
        self._matches[lane] += 1
        index = self.index(lane, self._matches[lane])
        if index < len(self.jobs):
            job = pickle.dumps(self.jobs[index])
            self._servers.send(lane, SIZE.pack(len(job)) + job)
            self._busy[self._worker[lane]] += 1

    def _gather(self) -> None:
        """Wait until a turn waits, and a little for more."""
        deadline = 0.0
        while any(self._busy):
            heard = self._servers.hear(max(0.0, deadline - time.monotonic()) if self._waiting else None)
            if self._waiting and not heard:
                return
            failed = None
            for lane, kind, body in heard:
                self._busy[self._worker[lane]] -= 1
                if kind == TURN:
                    if not self._waiting:
                        deadline = time.monotonic() + self._patience
                    self._waiting[lane] = body
                elif kind == ENDED:
                    self._ended.append((lane, self._matches[lane], pickle.loads(body)))
                    self._next(lane)
                else:
                    index = self.index(lane, self._matches[lane])
                    failed = SparringError(f"{_named(index, self.jobs[index])} cannot be played: {body.decode()}")
            if failed is not None:
                raise failed
            if self._waiting and not all(self._busy):
                return

    def _outcome(self, rows: LoongDecisions, ended: list[tuple[int, int, Ended]]) -> ServedOutcome:
        if not ended and self._no_end is not None:  # most are such, and tensors cost as much as the turn
            return replace(self._no_end, lane=rows.lane, agent=rows.agent, reward=torch.zeros(len(rows)))
        score = torch.zeros(len(ended), self.agents)
        results = np.zeros(len(ended), LANE)
        reward = dict.fromkeys(zip(rows.lane.tolist(), rows.agent.tolist(), strict=True), 0.0)
        for at, (lane, match, end) in enumerate(ended):
            value = _value(end.played)
            for team, agent in {*end.alive, *([end.last] if end.last else [])}:
                score[at, agent] = reward[lane, agent] = value[team]
            results[at] = _result(self.index(lane, match), end.played)
        outcome = ServedOutcome(
            lane=torch.tensor([lane for lane, _ in reward], dtype=torch.int64),
            agent=torch.tensor([agent for _, agent in reward], dtype=torch.int64),
            reward=torch.tensor(list(reward.values()), dtype=torch.float32),
            ended=torch.tensor([lane for lane, *_ in ended], dtype=torch.int64),
            truncated=torch.zeros(len(ended), dtype=torch.bool),
            score=score,
            length=torch.tensor([end.longest for *_, end in ended], dtype=torch.int64),
            last=rows[torch.zeros(0, dtype=torch.int64)],
            results=torch.from_numpy(results.view(np.uint8).reshape(len(ended), LANE.itemsize)),
            match=torch.tensor([match for _, match, _ in ended], dtype=torch.int64),
            played=[end.played for *_, end in ended],
        )
        if not ended:
            self._no_end = outcome
        return outcome


class _Kept:
    """The rows of the matches that run."""

    IDS = ("lane", "match", "team", "agent", "decision", "dragon", "round")

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], list[tuple[list[int], Tensor, Tensor, Tensor | None]]] = {}

    def add(self, rows: LoongDecisions, actions: Tensor, log_prob: Tensor | None) -> None:
        ids = torch.stack([getattr(rows, name) for name in self.IDS], dim=1).tolist()
        for at, (lane, match, *_) in enumerate(ids):
            said = None if log_prob is None else log_prob[at]
            self._kept.setdefault((lane, match), []).append((ids[at], rows.obs[at], actions[at], said))

    def take(self, index: int, lane: int, match: int, played: PlayedMatch) -> ServedRows:
        kept = self._kept.pop((lane, match), [])
        ids = torch.tensor([each for each, *_ in kept], dtype=torch.int64).reshape(-1, len(self.IDS))
        said = [each for *_, each in kept if each is not None]
        rows = LoongDecisions(
            obs=_stacked([each for _, each, *_ in kept], VIEW.itemsize),
            **{name: ids[:, column] for column, name in enumerate(self.IDS)},
        )
        final = torch.zeros(len(rows), dtype=torch.bool)
        final[list({dragon: at for at, dragon in enumerate(rows.dragon.tolist())}.values())] = True
        return ServedRows(
            index=index,
            rows=rows,
            actions=_stacked([each for _, _, each, _ in kept], ACTION.itemsize),
            log_prob=torch.stack(said) if said else None,
            final=final,
            result=torch.tensor(_value(played))[rows.team],
        )


def _stacked(rows: list[Tensor], width: int) -> Tensor:
    return torch.stack(rows) if rows else torch.zeros(0, width, dtype=torch.uint8)


def _value(played: PlayedMatch) -> tuple[float, float]:
    """What the match is worth to A and to B."""
    a = {"A": 1.0, "B": -1.0, None: 0.0}[played.winner]
    return a, -a


def _result(index: int, played: PlayedMatch) -> NDArray[np.void]:
    """A match that is over, as a row of LOONG_LANE."""
    row = np.zeros((), LANE)
    row["seed"], row["level"], row["round"], row["over"] = played.seed, index, played.rounds - 1, 1
    row["winner"] = {None: 0, "A": 1, "B": 2}[played.winner]
    row["reason"] = played.reason not in ("elimination", "both eliminated")
    for name in ("dragons", "total", "queen", "longest"):
        row[name] = getattr(played.a, name), getattr(played.b, name)
    row["deaths"] = [[team.deaths.get(letter, 0) for letter in DEATHS] for team in (played.a, played.b)]
    return row


def _named(index: int, job: Job) -> str:
    return f"match {index} (map {job.map_name}, seed {job.seed})"


def _identity(index: int, job: Job) -> tuple[int, int, int, int]:
    """Width, height and unit limit of a job's map, and the most dragons that can live on it at once."""
    where = _named(index, job)
    if "served" not in (job.a.kind, job.b.kind):
        raise SparringError(f"{where}: nobody serves it; one of its entrants must be of served_entrant")
    try:
        level = load_level(job.map_bytes)
    except RuntimeError as error:
        raise SparringError(f"{where}: {error}") from None
    teams = [team for team, _ in level.bodies]
    segments = [tile for _, body in level.bodies for tile in body]
    most = sum(max(level.unit_limit, teams.count(team)) for team in "AB")
    room = (level.width * level.height + len(segments) - len(set(segments))) // 2  # two segments each
    return level.width, level.height, level.unit_limit, min(most, room)
