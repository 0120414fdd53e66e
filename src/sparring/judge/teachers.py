"""The teacher of a run as a player in the judge: it makes the most probable choice, given the choices before it.

It reads the judge's text as a bot does, and remembers as one. In one match it answers dragon by dragon; many matches
are served, so that one process answers all dragons that wait in a batch. A batch rounds otherwise than single rows do:
where two choices are as good as equally probable, it may take the other one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from sparring import _core
from sparring.cache import cache_folder, share
from sparring.errors import SparringError
from sparring.games.loong import LoongDecisions
from sparring.judge.entrants import Entrant
from sparring.judge.match import PlayedMatch, TeamResult
from sparring.judge.schedule import Job
from sparring.judge.served import ServedLoong, served_entrant
from sparring.judge.sides import Answer
from sparring.policies.loong import Teacher, preset
from sparring.runs.policy import TrainedTeacher, load_teacher

_MATCHES_A_PROCESS = 8


def teacher_entrant(run: str | Path) -> Entrant:
    """The teacher that a run has now. Its weights are kept in the cache folder, so that training may go on.

    Raises SparringError where there is no such run of Loong, and where the cache folder cannot be written.
    """
    trained = load_teacher(run)
    path = keep_weights(trained.hash, lambda: _content(trained))
    return Entrant(trained.name, "teacher", trained.hash, path)


def keep_weights(hash: str, content: bytes | Callable[[], bytes]) -> Path:
    """Where the weights of the teacher with this hash are kept, in the cache folder; `content` if they are not yet."""
    return share(cache_folder() / "teachers" / f"{hash}.pt", content, "copies of teachers")


def _content(trained: TrainedTeacher) -> bytes:
    data = io.BytesIO()
    torch.save({"preset": trained.recipe.selfplay.preset, "weights": trained.teacher.state_dict()}, data)
    return data.getvalue()


@lru_cache(maxsize=4)
def _teacher(path: Path) -> Teacher:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError) as error:
        raise SparringError(f"cannot read the weights {path}: {error}; remove that file") from None
    teacher = Teacher(preset(content["preset"]))
    teacher.load_state_dict(content["weights"])
    return teacher.eval().requires_grad_(False)


@contextmanager
def _inference() -> Iterator[None]:
    """No gradients, and one thread: for so few rows others only cost time, above all beside engines and sandboxes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)


class TeacherSide:
    """A team of dragons that a teacher plays, one decision after the other."""

    def __init__(self, path: Path) -> None:
        """path: of the weights that an entrant names."""
        self.retries = 0
        self._teacher = _teacher(path)
        self._lives: dict[int, tuple[bytes, _core.LoongDragons]] = {}
        self._memory: dict[int, Tensor] = {}

    def spawn(self, dragon: int, init: bytes) -> None:
        self._lives[dragon] = init, _core.LoongDragons()
        self._memory[dragon] = self._teacher.newborn(1)

    def reply(self, dragon: int, block: bytes) -> Answer:
        init, knowledge = self._lives[dragon]
        inputs, mask = knowledge.observe(init, block)
        with _inference():
            tree, self._memory[dragon] = self._teacher.step(
                torch.from_numpy(inputs)[None], torch.from_numpy(mask)[None], self._memory[dragon]
            )
            choice = int(tree.mode())
        return Answer(knowledge.act(choice))

    def died(self, dragon: int) -> None:
        del self._lives[dragon], self._memory[dragon]

    def close(self) -> None:
        self._lives.clear()
        self._memory.clear()


class TeacherPolicy:
    """Answers the dragons of served matches, each by the teacher that its job names for its team."""

    def __init__(self, game: ServedLoong, teachers: dict[str, Teacher]) -> None:
        """teachers: by the hash of the entrants that stand for them in the game's jobs."""
        self._game, self._teachers = game, teachers
        slots = game.lanes * game.agents
        self._knowledge = _core.LoongDragons(slots)
        self._memory = {hash: teacher.newborn(slots) for hash, teacher in teachers.items()}

    def act(self, rows: LoongDecisions) -> Tensor:
        """uint8 [n, 80]."""
        game = self._game
        slots = rows.lane * game.agents + rows.agent
        known, allowed = self._knowledge.observe_views(slots.numpy(), game.identities(rows), rows.obs.numpy())
        inputs, mask = torch.from_numpy(known), torch.from_numpy(allowed)
        who = [(job.a, job.b)[team].hash for job, team in zip(game.jobs_of(rows), rows.team.tolist(), strict=True)]
        choices = torch.zeros(len(rows), dtype=torch.int64)
        for hash, teacher in self._teachers.items():
            at = torch.tensor([each == hash for each in who]).nonzero().view(-1)
            if not len(at):
                continue
            memory = self._memory[hash][slots[at]]
            memory[rows.decision[at] == 0] = 0.0
            with _inference():
                tree, after = teacher.step(inputs[at], mask[at], memory)
                choices[at] = tree.mode()
            self._memory[hash][slots[at]] = after
        return torch.from_numpy(self._knowledge.act_rows(choices.numpy(), slots.numpy()))

    def ended(self, lane: int, match: int) -> None:
        """The dragons of this lane are gone."""
        for slot in range(lane * self._game.agents, (lane + 1) * self._game.agents):
            self._knowledge.forget(slot)


def play_taught(jobs: Iterable[Job], *, workers: int = 2) -> Generator[tuple[Job, PlayedMatch]]:
    """Play matches in which teachers play, and give each job as its match ends, in whatever order they do.

    workers: processes, each with several matches at once; the teachers answer in this one
    """
    taught = list(jobs)
    if not taught:
        return
    entrants = {each.hash: each for job in taught for each in (job.a, job.b) if each.kind == "teacher"}
    teachers = {hash: _teacher(each.path) for hash, each in entrants.items() if each.path is not None}
    asked = [replace(job, a=_stand_in(job.a), b=_stand_in(job.b)) for job in taught]
    places = {id(job): place for place, job in enumerate(asked)}
    with ServedLoong(asked, workers=workers, threads=_MATCHES_A_PROCESS) as game:
        for job, played in game.play(TeacherPolicy(game, teachers)):
            yield taught[places[id(job)]], replace(played, a=_taught(played.a), b=_taught(played.b))


def _stand_in(entrant: Entrant) -> Entrant:
    return served_entrant(entrant.name, entrant.hash) if entrant.kind == "teacher" else entrant


def _taught(team: TeamResult) -> TeamResult:
    return replace(team, kind="teacher") if team.kind == "served" else team
