"""Bots in the toolkit's sandbox, as `unswbc run --sandbox` runs them: one instance and one thread for every dragon.

What differs from the toolkit's own host of them: a dragon starts when it is first asked and not ahead of that, its
thread has ended when it is stopped (the toolkit leaves a bot that loops to itself), and two races are guarded: a
newborn that still starts while it is fed is not taken for one that has nothing to say, and a turn does not end before
the sandbox knows that it did.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import wasmtime
from unswbc import sandbox as toolkit  # type: ignore[import-untyped, unused-ignore]

from sparring.cache import cache_folder
from sparring.judge.build import Program, program, sandbox_config
from sparring.judge.entrants import Entrant
from sparring.judge.host_errors import mend
from sparring.judge.sides import Answer

mend()
_making = threading.Lock()
_ENDING_SECONDS = 5.0
"""That a dragon's thread is given to end. One that waits for another thread, by an atomic instruction, never does."""


class SandboxSide:
    """One team's dragons, all of one bot. Not to be used by two threads at once."""

    def __init__(self, entrant: Entrant, *, seed: int, team: str) -> None:
        """`seed` is that of the match: the bots' random numbers come from it, the team and the dragon's id."""
        assert entrant.path is not None
        self.retries = 0
        self._program = program(entrant.path)
        self._key = f"{seed:016x}-{team.lower()}"
        self._dragons: dict[int, _Dragon] = {}

    def spawn(self, dragon: int, init: bytes) -> None:
        self._dragons[dragon] = _Dragon(self._program, self._key, init=init, name=str(dragon))

    def reply(self, dragon: int, block: bytes) -> Answer:
        asked = self._dragons[dragon]
        started = asked.starts
        reply = asked.ask(block)
        self.retries += max(0, asked.starts - max(started, 1))
        points, memory = asked.live
        return Answer(reply, points, memory, asked.error and _in_a_line(asked.error))

    def died(self, dragon: int) -> None:
        self._dragons.pop(dragon).stop()

    def close(self) -> None:
        while self._dragons:
            self._dragons.popitem()[1].stop()


class _Dragon(toolkit.SandboxBot):  # type: ignore[misc, unused-ignore]
    """A dragon whose instance starts when it is first asked, or when the one before it is gone."""

    def __init__(self, bot: Program, key: str, *, init: bytes, name: str) -> None:
        super().__init__(None, init, name)
        self.starts = 0
        self._program, self._key = bot, key
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self.stop()
        self.starts += 1
        turns = threading.Condition()
        stdin, stdout = toolkit._Pipe(turns), toolkit._Pipe(turns)
        box = _box(self._program, stdin, stdout)
        box.rng = toolkit.Rng(self._key, self._name)
        stdout.framer, stdout.box = self._framer, box
        self._box, self._stdin, self._stdout, self._activate = box, stdin, stdout, False
        self._thread = threading.Thread(
            target=_live, args=(box, stdout), daemon=True, name=f"dragon {self._key} {self._name}"
        )
        self._thread.start()

    def stop(self) -> None:
        box, thread = self._box, self._thread
        super().stop()
        if box is None or thread is None:
            return
        box.engine.increment_epoch()  # whatever it does, it goes no further
        thread.join(_ENDING_SECONDS)
        self._thread = None
        if not thread.is_alive():
            box._impl.clear()  # its functions know it: without them it is given back now

    _kill = stop

    def _write(self, data: bytes) -> bool:
        # Between the count of parks and the text that ends one, a newborn must not park.
        with self._stdin.cv:
            return bool(super()._write(data))

    def _poll(self, timeout: float) -> str:
        # The toolkit looks at the turn's end also after this has let go of the lock, so it is not left early.
        deadline = time.monotonic() + timeout
        with self._stdout.cv:
            while True:
                state = str(super()._poll(max(0.0, deadline - time.monotonic())))
                if state != "wait" or time.monotonic() >= deadline:
                    return state


def _in_a_line(error: str) -> str:
    """Without the backtrace of a trap."""
    first, *more = error.strip().splitlines()
    return f"{first.partition(':')[0]}: {more[-1].strip()}" if more else first


def _box(bot: Program, stdin: Any, stdout: Any) -> Any:
    """An `unswbc.sandbox.Sandbox` that stands before its first instruction.

    It has a wasmtime engine of its own, so that it alone can be stopped.
    """
    engine = wasmtime.Engine(sandbox_config())
    module = wasmtime.Module.deserialize_file(engine, str(bot.native))
    with _making:
        toolkit._COMPILED[bot.native] = (engine, module, bot.imports, bot.pages)  # where Sandbox looks
        box = toolkit.Sandbox(
            wasm_path=bot.native,
            root=_empty_root(),
            argv=["bot"],
            environ=["TERM=dumb"],
            stderr=bytearray(),
            stdin=stdin,
            stdout=stdout,
            needs_zygote=False,
        )
        del toolkit._COMPILED[bot.native]
    box.store.set_epoch_deadline(1)
    return box


def _live(box: Any, stdout: Any) -> None:
    """A dragon's life, from its first instruction to its last."""
    try:
        box.instantiate()
    except BaseException as error:
        box.failure = f"does not start: {str(error).splitlines()[0]}"
        box.store.close()
        stdout.close()
    else:
        toolkit._drive(box, stdout, None)


def _empty_root() -> Any:
    """All that a bot sees of a file system. It can write nothing."""
    root = cache_folder() / "empty"
    root.mkdir(parents=True, exist_ok=True)
    return root
