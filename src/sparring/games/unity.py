"""The real thing: the 2018 binaries of ML-Agents 0.4 (Udacity's Tennis and its sisters), driven from a current Python.

Python is the gRPC server and the binary the client. The binary introduces itself with its first call, gets its seed
as the answer, and keeps its next call open until it is told to reset or to step. Only loopback is bound: the protocol
has no authentication. `sparring.compat.unityagents` puts the 2018 Python API on top.

Needs the packages `grpcio` and `protobuf` (extra `unity`); a machine without them can still import this module.
"""

from __future__ import annotations

import atexit
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparring.errors import SparringError

T = TypeVar("T")

BASE_PORT = 5005
_EXIT_POLL_S = 0.2
"""How often a wait looks whether the binary has died meanwhile."""
_QUIT_S = 5.0
"""How long a binary may take to leave after it was told to."""


class UnityError(SparringError):
    """The binary cannot be started, spoken to, or has gone."""


class UnityTimeout(UnityError):
    """The binary did not connect or did not answer in time."""


@dataclass(frozen=True, kw_only=True)
class Brain:
    """What a binary says about one brain: the agents of a brain share observation and action spaces."""

    name: str
    external: bool
    """True where Python acts for the brain's agents."""
    observation_size: int
    """Floats in one frame."""
    stacked: int
    """Frames in one observation, oldest first."""
    action_size: int
    action_descriptions: tuple[str, ...] = ()
    continuous_actions: bool = True
    continuous_observations: bool = True
    cameras: tuple[dict[str, Any], ...] = ()
    """One dict per camera with the keys height, width (pixels) and blackAndWhite."""


@dataclass(frozen=True, kw_only=True)
class Academy:
    """What a binary says about itself when it connects."""

    name: str
    brains: tuple[Brain, ...]
    parameters: dict[str, float]
    """Reset parameters and their values."""
    log_path: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One brain's agents after a reset or a decision, in the binary's own order. Every number was float32 on the wire.

    observations: float32 [agents, stacked * observation_size]
    actions:      float32 [agents, action_size], as last sent (zeros before the first)
    rewards:      summed since the last report
    """

    ids: list[int]
    observations: NDArray[np.float32]
    rewards: list[float]
    done: list[bool]
    max_reached: list[bool]
    actions: NDArray[np.float32]
    memories: list[list[float]]
    text_observations: list[str]
    text_actions: list[str]


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What one brain's agents are to do for one decision.

    actions:  float [agents, action_size]
    memories: float [agents, any], stored by the binary and handed back with the next report
    texts:    one per agent
    """

    actions: NDArray[Any]
    memories: NDArray[Any] | None = None
    texts: Sequence[str] | None = None


class UnityBinary:
    """A running binary of ML-Agents 0.4, launched here or, with `file_name=None`, awaited from the Unity editor.

    file_name:   path of the binary, with or without its ending (.x86_64, .x86, .app, .exe)
    seed:        int32 that the scene's random numbers start from
    worker_id:   added to `base_port`: run several binaries side by side by giving each its own
    no_graphics: start with -nographics -batchmode
    launcher:    words put before the command, such as ("xvfb-run", "-a")
    timeout_s:   how long the binary may take to connect, and to answer, before `UnityTimeout` is raised

    Raises UnityError with one line and its mend: packages missing, port in use, no such binary, not executable,
    exited early, not connected in time, another API version.
    """

    def __init__(
        self,
        file_name: str | os.PathLike[str] | None,
        *,
        seed: int = 0,
        worker_id: int = 0,
        base_port: int = BASE_PORT,
        no_graphics: bool = False,
        launcher: Sequence[str] = (),
        timeout_s: float = 60.0,
    ) -> None:
        if not -(2**31) <= seed < 2**31:
            raise UnityError(
                f"seed {seed} does not fit the binary's 32-bit integer: give one from -2147483648 to 2147483647"
            )
        self.port = base_port + worker_id
        self._timeout_s = timeout_s
        self._global_done = False
        self._unread = False
        self._process: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        command: list[str] | None = None
        if file_name is not None:
            quiet = ["-nographics", "-batchmode"] if no_graphics else []
            command = [*launcher, str(find_binary(file_name)), *quiet, "--port", str(self.port)]
        self._line = _Line(self.port)
        self._open = True
        atexit.register(self.close)
        try:
            if command is not None:
                self._launch(command)
            self.academy = self._shake_hands(seed)
        except BaseException:
            self.close()
            raise

    def reset(self, *, training: bool = True, parameters: Mapping[str, float] | None = None) -> dict[str, Report]:
        """Start over as the scene understands it, at training speed or (`training=False`) at the speed of life.

        Returns the report of each brain. `global_done` turns False.
        """
        answer = self._line.message()
        order = answer.unity_input.rl_input
        order.command = self._line.messages.COMMAND_RESET
        order.is_training = training
        order.environment_parameters.SetInParent()
        for name, value in (parameters or {}).items():
            order.environment_parameters.float_parameters[name] = value
        return self._exchange(answer)

    def step(self, orders: Mapping[str, Orders]) -> dict[str, Report]:
        """Every agent acts for one decision. orders: by name of brain. Returns the report of each brain."""
        answer = self._line.message()
        answer.unity_input.rl_input.command = self._line.messages.COMMAND_STEP
        for name, given in orders.items():
            agents = answer.unity_input.rl_input.agent_actions[name].value
            for index, action in enumerate(given.actions):
                agents.add(
                    vector_actions=np.asarray(action, dtype=np.float32).tolist(),
                    memories=[] if given.memories is None else np.asarray(given.memories[index]).tolist(),
                    text_actions="" if given.texts is None else given.texts[index],
                )
        return self._exchange(answer)

    @property
    def global_done(self) -> bool:
        """True once the academy's own step limit is reached: the next call must be `reset`."""
        return self._global_done

    def close(self) -> None:
        """Tell the binary to quit, end it if it does not, and free the port. Safe to call twice."""
        if not self._open:
            return
        self._open = False
        atexit.unregister(self.close)
        self._line.close()
        if self._process is not None:
            try:
                self._process.wait(_QUIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._output.close()

    def _launch(self, command: list[str]) -> None:
        try:
            # In a process group of its own, so that Ctrl-C interrupts Python and does not end the game.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except PermissionError:
            raise UnityError(f"{command[0]} may not be executed: run `chmod +x` on it") from None
        except OSError as error:
            raise UnityError(
                f"{command[0]} cannot be started ({error.strerror or error}): take the build made for this machine"
            ) from None

    def _shake_hands(self, seed: int) -> Academy:
        waiting_for = "connect" if self._process is not None else "connect (press Play in the Unity editor)"
        hello = self._receive(waiting_for).unity_output.rl_initialization_output
        expected = self._line.messages.API_VERSION
        if hello.version != expected:
            raise UnityError(
                f"the binary on port {self.port} speaks {hello.version or 'no known version'}, "
                f"this adapter {expected}: take a build made with ML-Agents 0.4, such as Udacity's"
            )
        answer = self._line.message()
        answer.unity_input.rl_initialization_input.seed = seed
        self._line.answer(answer)
        # The binary's second call carries nothing; it is answered by the first reset.
        self._receive("ask for its first order")
        return _academy(hello, external=self._line.messages.BRAIN_EXTERNAL)

    def _exchange(self, answer: Any) -> dict[str, Report]:
        if not self._open:
            raise UnityError("the binary was closed: open a new one")
        if self._unread:
            self._receive("answer")  # to a call that Ctrl-C interrupted
        self._unread = True
        self._line.answer(answer)
        output = self._receive("answer").unity_output.rl_output
        self._unread = False
        self._global_done = bool(output.global_done)
        return {name: _report(infos.value) for name, infos in output.agentInfos.items()}

    def _receive(self, doing: str) -> Any:
        """The binary's next message. Raises UnityError, and closes, when it is gone or too slow."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                request = self._line.inbox.get(timeout=_EXIT_POLL_S)
            except queue.Empty:
                request = None
                code = None if self._process is None else self._process.poll()
                if code is not None:
                    raise self._gone(f"exited with code {code}") from None
                if time.monotonic() > deadline:
                    self.close()
                    raise UnityTimeout(
                        f"the binary on port {self.port} did not {doing} within {self._timeout_s:g} s: check that it "
                        "is a build of ML-Agents 0.4, needs no click to start, and try no_graphics=True on a machine "
                        "without a display"
                    ) from None
                continue
            if request is _LOST:
                code = None if self._process is None else self._exit_code()
                raise self._gone("broke the connection" if code is None else f"exited with code {code}")
            if request.header.status != self._line.messages.STATUS_RUN:
                raise self._gone("closed the connection")
            return request

    def _exit_code(self) -> int | None:
        """The code of a binary whose connection broke: usually it is dying, so give it a moment."""
        assert self._process is not None
        try:
            return self._process.wait(_QUIT_S)
        except subprocess.TimeoutExpired:
            return None

    def _gone(self, how: str) -> UnityError:
        """The error of a binary that left by itself, with the last line it printed."""
        self._output.seek(0)
        printed = self._output.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(printed) if line.strip()), "")
        self.close()
        said = f"; its last line: {last}" if last else ""
        return UnityError(
            f"the binary on port {self.port} {how}{said}: run it by hand to see why, then open a new UnityEnvironment"
        )


_LOST = object()
"""In the inbox: a call ended without our answer, so the other side is gone."""


class _Line:
    """The gRPC server: hands each call to `inbox` and blocks it until `answer` is called."""

    def __init__(self, port: int) -> None:
        try:
            import grpc

            from sparring.games import unity_messages
        except ImportError as error:
            raise UnityError(
                f"package {error.name} is missing, which the real binary needs: pip install 'sparring[unity]'"
            ) from None
        _require_free(port)
        self.messages = unity_messages
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        handlers = {
            unity_messages.METHOD: grpc.unary_unary_rpc_method_handler(
                self._call,
                request_deserializer=unity_messages.UnityMessage.FromString,
                response_serializer=unity_messages.UnityMessage.SerializeToString,
            )
        }
        # Without so_reuseport=0 a second server on the same port would silently share its calls.
        threads: Any = _DaemonThreads()  # gRPC's types ask for a pool, its code only for `submit`
        self._server = grpc.server(threads, options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(unity_messages.SERVICE, handlers),))
        try:
            self._server.add_insecure_port(f"127.0.0.1:{port}")
        except RuntimeError:
            self._server.stop(None)
            raise _port_in_use(port) from None
        self._server.start()

    def message(self) -> Any:
        """A new message with a good status."""
        message = self.messages.UnityMessage()
        message.header.status = self.messages.STATUS_RUN
        return message

    def answer(self, message: Any) -> None:
        """Let the call that waits return `message`."""
        self._outbox.put(message)

    def close(self) -> None:
        """Answer the call that waits, or the next one, with the order to quit; stop serving."""
        goodbye = self.messages.UnityMessage()
        goodbye.header.status = self.messages.STATUS_CLOSE
        self._outbox.put(goodbye)
        self._server.stop(1.0).wait()

    def _call(self, request: Any, context: Any) -> Any:
        answered = threading.Event()

        def over() -> None:
            if not answered.is_set():
                self.inbox.put(_LOST)
                self._outbox.put(_LOST)

        context.add_callback(over)
        self.inbox.put(request)
        answer = self._outbox.get()
        answered.set()
        return self.messages.UnityMessage() if answer is _LOST else answer


class _DaemonThreads(Executor):
    """One daemon thread per call: a pool's would be joined at exit before anything could free a waiting call."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future


def _require_free(port: int) -> None:
    """Raises UnityError where another program listens on `port`: gRPC would print its own lines before it failed."""
    with socket.socket() as probe:
        if sys.platform != "win32":  # there the option would let the probe share the port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            raise _port_in_use(port) from None


def _port_in_use(port: int) -> UnityError:
    return UnityError(
        f"port {port} is in use or not allowed: close the other environment (a dead one frees its port within a "
        "minute) or give another worker_id"
    )


def find_binary(file_name: str | os.PathLike[str], *, platform: str = sys.platform) -> Path:
    """The executable that `file_name`, its ending optional, means on this platform. Raises UnityError if none is."""
    given = Path(file_name)
    if platform == "darwin":
        app = given if given.suffix == ".app" else given.with_name(given.name + ".app")
        inside = sorted((app / "Contents" / "MacOS").glob("*"))
        named = [path for path in inside if path.stem == app.stem]
        candidates = [*named, *inside, given]
    elif platform == "win32":
        candidates = [given, given.with_name(given.name + ".exe")]
    else:
        bare = given.with_suffix("") if given.suffix in (".x86_64", ".x86") else given
        candidates = [given, bare.with_name(bare.name + ".x86_64"), bare.with_name(bare.name + ".x86")]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.absolute()
    raise UnityError(
        f"no binary at {given}: give the path of the Tennis build for {platform}, "
        "or file_name=None for the built-in court"
    )


def _academy(hello: Any, *, external: int) -> Academy:
    brains = tuple(
        Brain(
            name=brain.brain_name,
            external=brain.brain_type == external,
            observation_size=brain.vector_observation_size,
            stacked=brain.num_stacked_vector_observations,
            action_size=brain.vector_action_size,
            action_descriptions=tuple(brain.vector_action_descriptions),
            continuous_actions=brain.vector_action_space_type == 1,
            continuous_observations=brain.vector_observation_space_type == 1,
            cameras=tuple(
                {"height": camera.height, "width": camera.width, "blackAndWhite": camera.gray_scale}
                for camera in brain.camera_resolutions
            ),
        )
        for brain in hello.brain_parameters
    )
    watching = [brain.name for brain in brains if brain.cameras]
    if watching:
        raise UnityError(
            f"brain {watching[0]} observes through a camera: only scenes with vector observations can be driven"
        )
    return Academy(
        name=hello.name,
        brains=brains,
        parameters=dict(hello.environment_parameters.float_parameters),
        log_path=hello.log_path,
    )


def _report(infos: Any) -> Report:
    return Report(
        ids=[info.id for info in infos],
        observations=np.array([info.stacked_vector_observation for info in infos], dtype=np.float32),
        rewards=[info.reward for info in infos],
        done=[info.done for info in infos],
        max_reached=[info.max_step_reached for info in infos],
        actions=np.array([info.stored_vector_actions for info in infos], dtype=np.float32),
        memories=[list(info.memories) for info in infos],
        text_observations=[info.text_observation for info in infos],
        text_actions=[info.stored_text_actions for info in infos],
    )
