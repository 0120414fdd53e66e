"""The processes of served play as their parent has them: started, written to, heard, ended."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from sparring.errors import SparringError
from sparring.judge.serving import HEADER

_START = "import sys; from sparring.judge.serving import main; main(*sys.argv[1:])"


class Servers:
    """`count` processes in which matches run at `places`, place by place over the processes.

    `close` ends them. They also end by themselves when this process does, however it ends.
    """

    def __init__(self, count: int, places: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sparring-served-")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ours: list[int] = []
        self._answers = [0] * places
        self._selector = selectors.DefaultSelector()
        try:
            for worker in range(count):
                self._start(worker, range(worker, places, count))
        except BaseException:
            self.close()
            raise

    def _start(self, worker: int, places: range) -> None:
        folder = os.path.join(self._folder.name, str(worker))
        os.mkdir(folder)
        asked, theirs_asked = os.pipe()
        self._ours.append(asked)
        theirs, pipes = [theirs_asked], []
        for _ in range(1 + len(places)):
            read, write = os.pipe()
            theirs.append(read)
            pipes.append(write)
        self._ours += pipes
        command = [sys.executable, "-P", "-c", _START, folder, str(theirs[1]), str(theirs[0])]
        try:
            # A session of its own: Ctrl-C is for this process alone, and the workers end when it closes the pipes.
            process = subprocess.Popen(
                [*command, *map(str, theirs[2:])], stdin=subprocess.DEVNULL, pass_fds=theirs, start_new_session=True
            )
        finally:
            for pipe in theirs:
                os.close(pipe)
        self._processes.append(process)
        for place, pipe in zip(places, pipes[1:], strict=True):
            self._answers[place] = pipe
        self._selector.register(asked, selectors.EVENT_READ, _Inbox(worker, places))

    def send(self, place: int, message: bytes) -> None:
        """Write to the thread of a place. Raises SparringError if its process has died."""
        try:
            sent = os.write(self._answers[place], message)
            while sent < len(message):
                sent += os.write(self._answers[place], message[sent:])
        except BrokenPipeError:
            raise self._died(place % len(self._processes)) from None

    def hear(self, seconds: float | None) -> list[tuple[int, int, bytes]]:
        """What has come, at the latest after so many seconds: place, kind and body of each message.

        Raises SparringError if a process has died.
        """
        heard: list[tuple[int, int, bytes]] = []
        for key, _ in self._selector.select(seconds):
            inbox: _Inbox = key.data
            text = os.read(key.fd, 1 << 18)
            if not text and heard:
                continue  # what the others said first: it is heard again that this one is silent
            if not text:
                raise self._died(inbox.worker)
            heard += inbox.read(text)
        return heard

    def _died(self, worker: int) -> SparringError:
        process = self._processes[worker]
        try:
            code = process.wait(5)
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            how = "its pipes are closed"
        return SparringError(
            f"worker {worker} of the served matches died ({how}): the matches that ended count, play the others again"
        )

    def close(self) -> None:
        """End the processes."""
        self._selector.close()
        for pipe in self._ours:
            os.close(pipe)
        self._ours = []
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes = []
        self._folder.cleanup()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]


class _Inbox:
    """The messages of one process, put together from what the pipe gives."""

    def __init__(self, worker: int, places: range) -> None:
        self.worker, self.places, self.kept = worker, places, b""

    def read(self, text: bytes) -> Iterator[tuple[int, int, bytes]]:
        text, at = self.kept + text, 0
        while len(text) - at >= HEADER.size:
            place, kind, size = HEADER.unpack_from(text, at)
            end = at + HEADER.size + size
            if end > len(text):
                break
            yield self.places[place], kind, text[at + HEADER.size : end]
            at = end
        self.kept = text[at:]
