"""Many matches at once, in processes of this machine or on a Ray cluster."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing import connection, resource_tracker
from typing import Any, Protocol

from sparring.errors import SparringError
from sparring.judge.build import keep_wasm
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import PlayedMatch, play_match
from sparring.judge.records import FailedMatch, Record, Records
from sparring.judge.schedule import Job

_MOST_FAILURES = 4
_REACH_SECONDS = 10.0
Play = Callable[[Job], PlayedMatch]
"""Plays one match; found by its name in other processes, so a function of a module."""


def play_job(job: Job) -> PlayedMatch:
    return play_match(job.map_bytes, job.a, job.b, seed=job.seed, map_name=job.map_name)


def play_all(
    jobs: Iterable[Job], *, workers: int = 2, cluster: str | None = None, play: Play = play_job
) -> Generator[tuple[Job, Record]]:
    """Play matches, `workers` at a time, and yield each as it ends, in whatever order they do.

    cluster: None for processes of this machine, which stay for one match after the other and keep what they loaded.
             Else the address of a Ray cluster, as `ray.init` takes it, or "local" for one that lives as long as this
    play:    for tests

    A match whose process dies, or in which `play` raises what is no SparringError, is played once more; failing that
    too it is yielded as a FailedMatch. A SparringError is raised: what it says is true of every match. When the
    iterator ends, is closed, or is interrupted, no process is left.
    """
    if workers < 1:
        raise SparringError(f"workers = {workers}: give 1 or more")
    crew: _Crew = Processes(play) if cluster is None else _Cluster(play, cluster, workers)
    waiting, again = iter(jobs), deque[Task]()
    busy = 0
    try:
        while True:
            while busy < workers:
                task = again.popleft() if again else _next(waiting)
                if task is None:
                    break
                crew.give(task)
                busy += 1
            if not busy:
                return
            for task, answer in crew.take():
                busy -= 1
                if isinstance(answer, SparringError):
                    raise answer
                if isinstance(answer, PlayedMatch):
                    yield task.job, answer
                elif task.first:
                    again.append(Task(task.job, first=False))
                else:
                    yield task.job, FailedMatch.of(task.job, str(answer))
    finally:
        crew.end()


def play_missing(
    jobs: Iterable[Job],
    records: Records,
    *,
    workers: int = 2,
    cluster: str | None = None,
    play: Play = play_job,
) -> Generator[Record]:
    """Play the jobs that are not on record, or failed, as `play_all` does, and yield each once it is on record.

    Two jobs of the same match, as a player's against itself are, take one.
    Raises SparringError when four matches in a row fail, instead of trying on for hours.
    """
    records.forget_failures()
    missing = {job.key: job for job in jobs if records.get(job) is None}.values()
    taught, others = list[Job](), list[Job]()
    for job in missing:
        (taught if cluster is None and "teacher" in (job.a.kind, job.b.kind) else others).append(job)
    failures = 0
    with ExitStack() as stack:
        streams: list[Iterable[tuple[Job, Record]]] = [
            stack.enter_context(closing(play_all(others, workers=workers, cluster=cluster, play=play)))
        ]
        if taught:
            from sparring.judge.teachers import play_taught  # imported here, so that bots do not wait for torch

            streams.append(stack.enter_context(closing(play_taught(taught, workers=workers))))
        for _, record in chain.from_iterable(streams):
            records.append(record)
            failures = failures + 1 if isinstance(record, FailedMatch) else 0
            if isinstance(record, FailedMatch) and failures == _MOST_FAILURES:
                raise SparringError(
                    f"{failures} matches in a row had no result, the last because {record.error}; the others are kept"
                )
            yield record


@dataclass(frozen=True)
class Task:
    job: Job
    first: bool = True
    """It was not tried before."""


def _next(jobs: Iterator[Job]) -> Task | None:
    job = next(jobs, None)
    return None if job is None else Task(job)


class _Crew(Protocol):
    """Plays the tasks that it is given, all at once. An answer is a match, a SparringError, or what went wrong."""

    def give(self, task: Task) -> None: ...

    def take(self) -> Iterable[tuple[Task, PlayedMatch | SparringError | str]]:
        """Wait until a task has ended. Call it while there are some."""

    def end(self) -> None:
        """End everything, at once. May be called again."""


class Processes:
    """Processes of this machine, started when there is no idle one.

    They are spawned, not forked: a fork of a process with a wasmtime engine does not work.
    """

    def __init__(self, play: Play) -> None:
        self._play = play
        self._idle: list[_Process] = []
        self._busy: dict[connection.Connection, tuple[_Process, Task]] = {}

    def give(self, task: Task) -> None:
        while self._idle:
            process = self._idle.pop()
            if process.give(task.job):
                break
            process.end()
        else:
            process = _Process(self._play)
            process.give(task.job)  # one that died already is noticed when its answer is missing
        self._busy[process.pipe] = process, task

    def take(self) -> Iterable[tuple[Task, PlayedMatch | SparringError | str]]:
        ended = []
        for pipe in connection.wait(list(self._busy)):
            assert isinstance(pipe, connection.Connection)
            process, task = self._busy.pop(pipe)
            try:
                answer = pipe.recv()
            except (EOFError, OSError):
                ended.append((task, f"its process died ({process.end()})"))
            else:
                self._idle.append(process)
                ended.append((task, answer))
        return ended

    def end(self) -> None:
        for process in [*self._idle, *(process for process, _ in self._busy.values())]:
            process.end()
        self._idle.clear()
        self._busy.clear()


class _Process:
    """A process that plays what comes through a pipe."""

    def __init__(self, play: Play) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, play), name="sparring match", daemon=True)
        resource_tracker.ensure_running()  # its start would undo the next line
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the parent: it ends us
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def give(self, job: Job) -> bool:
        """False if the process is dead."""
        try:
            self.pipe.send(job)
        except OSError:
            return False
        return True

    def end(self) -> str:
        """Kill it, if it lives, and say how it ended."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        code = self._process.exitcode or 0
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _serve(pipe: connection.Connection, play: Play) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(_answer(play, job))


def _answer(play: Play, job: Job) -> PlayedMatch | SparringError | str:
    try:
        return play(job)
    except SparringError as error:
        return error
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _end_with_parent() -> None:
    """A parent that was killed cannot end us, so we watch it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Cluster:
    """Tasks of a Ray cluster. Bots travel as WebAssembly and are kept where they play."""

    def __init__(self, play: Play, address: str, workers: int) -> None:
        try:
            self._ray = importlib.import_module("ray")
        except ImportError as error:
            raise SparringError("Ray is not installed: pip install 'sparring[cluster]'") from error
        self._play = play
        self._ours = not self._ray.is_initialized()
        self._tasks: dict[Any, Task] = {}
        self._bots: dict[str, Any] = {}
        if self._ours:
            self._start(address, workers)
        self._remote = self._ray.remote(num_cpus=1, max_retries=0)(_play_there)

    def _start(self, address: str, workers: int) -> None:
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            settings |= {"num_cpus": workers, "include_dashboard": False}
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            if port.isdecimal():  # Ray itself tries for minutes, and then ends this process
                socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()
            self._ray.init(address=address, **settings)
        except (OSError, OverflowError, ValueError, RuntimeError) as error:
            said = str(error).splitlines() or [type(error).__name__]
            raise SparringError(f"no Ray cluster at {address}: {said[0]}") from error

    def give(self, task: Task) -> None:
        wasm = [self._bot(entrant) for entrant in (task.job.a, task.job.b)]
        self._tasks[self._remote.remote(self._play, task.job, *wasm)] = task

    def take(self) -> Iterable[tuple[Task, PlayedMatch | SparringError | str]]:
        ready, _ = self._ray.wait(list(self._tasks), num_returns=1)
        ended = []
        for each in ready:
            task = self._tasks.pop(each)
            try:
                ended.append((task, self._ray.get(each)))
            except self._ray.exceptions.RayError as error:
                ended.append((task, f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"))
        return ended

    def end(self) -> None:
        for each in self._tasks:
            self._ray.cancel(each, force=True)
        self._tasks.clear()
        self._bots.clear()
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()

    def _bot(self, entrant: Entrant) -> Any:
        if entrant.path is None:
            return None
        if entrant.hash not in self._bots:
            self._bots[entrant.hash] = self._ray.put(entrant.path.read_bytes())
        return self._bots[entrant.hash]


def _play_there(play: Play, job: Job, *wasm: bytes | None) -> PlayedMatch | SparringError | str:
    """Play a match on a machine that may never have seen its bots."""

    def at_home(there: Job) -> PlayedMatch:
        a, b = (entrant_here(entrant, content) for entrant, content in zip((there.a, there.b), wasm, strict=True))
        return play(replace(there, a=a, b=b))

    return _answer(at_home, job)


def entrant_here(entrant: Entrant, wasm: bytes | None) -> Entrant:
    """An entrant of another machine on this one, its WebAssembly or weights put into the cache folder.

    Raises SparringError where a scripted player of this name is another one here.
    """
    if wasm is not None and entrant.kind == "teacher":
        from sparring.judge.teachers import keep_weights

        return replace(entrant, path=keep_weights(entrant.hash, wasm))
    if wasm is not None:
        return replace(entrant, path=keep_wasm(wasm))
    if entrant.kind == "scripted" and load_entrant(entrant.name).hash != entrant.hash:
        raise SparringError(f"a machine of the cluster has another {entrant.name}: install the same Sparring on all")
    return entrant
