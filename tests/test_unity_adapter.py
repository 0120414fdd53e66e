"""The adapter to the real binary, driven against a program that speaks the same protocol on top of our court."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("grpc")
pytest.importorskip("google.protobuf")

import fake_unity

from sparring import _core
from sparring.compat.unityagents import (
    UnityActionException,
    UnityEnvironment,
    UnityEnvironmentException,
    UnityTimeOutException,
)
from sparring.errors import SparringError
from sparring.games import unity, unity_messages
from sparring.games.tennis import Tennis
from sparring.games.unity import Orders, UnityBinary, UnityError, UnityTimeout, find_binary
from sparring.games.unity_tennis import UnityTennis

BRAIN = "TennisBrain"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a #! line")


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unity, "_QUIT_S", 0.5)


@pytest.fixture
def binary(tmp_path: Path, port: int) -> Iterator[UnityBinary]:
    opened = UnityBinary(fake_unity.install(tmp_path), seed=42, base_port=port, no_graphics=True)
    yield opened
    opened.close()


def actions(decision: int) -> np.ndarray:
    return np.random.default_rng(decision).uniform(-1.5, 1.5, (2, 2)).astype(np.float32)


def test_messages_have_the_field_numbers_of_2018() -> None:
    def field(number: int, payload: bytes) -> bytes:
        return bytes([number << 3 | 2, len(payload)]) + payload

    agent = field(1, np.float32([1.5, -2]).tobytes()) + field(4, np.float32([0.25]).tobytes()) + b"\x3d"
    agent += np.float32(0.1).tobytes() + b"\x40\x01" + b"\x48\x01" + b"\x50\x07"
    agents = field(2, field(1, b"TennisBrain") + field(2, field(1, agent)))
    wire = field(1, b"\x08\xc8\x01") + field(2, field(1, b"\x08\x01" + agents))
    message = unity_messages.UnityMessage.FromString(wire)
    assert message.header.status == 200
    output = message.unity_output.rl_output
    assert output.global_done
    info = output.agentInfos["TennisBrain"].value[0]
    assert list(info.stacked_vector_observation) == [1.5, -2]
    assert list(info.stored_vector_actions) == [0.25]
    assert (info.reward, info.done, info.max_step_reached, info.id) == (np.float32(0.1), True, True, 7)

    order = unity_messages.UnityMessage()
    order.unity_input.rl_input.agent_actions["B"].value.add(vector_actions=[1.0], text_actions="t", memories=[2.0])
    order.unity_input.rl_input.command = unity_messages.COMMAND_RESET
    order.unity_input.rl_input.is_training = True
    action = field(1, np.float32([1]).tobytes()) + field(2, b"t") + field(3, np.float32([2]).tobytes())
    rl_input = field(1, field(1, b"B") + field(2, field(1, action))) + b"\x18\x01" + b"\x20\x01"
    assert order.SerializeToString(deterministic=True) == field(3, field(1, rl_input))

    seed = unity_messages.UnityMessage()
    seed.unity_input.rl_initialization_input.seed = 42
    assert seed.SerializeToString() == field(3, field(2, b"\x08\x2a"))


def test_introduction_tells_what_the_scene_is(binary: UnityBinary) -> None:
    academy = binary.academy
    assert academy.name == "Academy"
    assert academy.log_path == "unity-environment.log"
    (brain,) = academy.brains
    assert (brain.name, brain.external, brain.observation_size, brain.stacked) == (BRAIN, True, 8, 3)
    assert (brain.action_size, brain.action_descriptions, brain.continuous_actions) == (2, ("", ""), True)


def test_same_bytes_through_the_binary_as_from_the_court(binary: UnityBinary) -> None:
    court = _core.TennisCourts(1)
    court.seed(fake_unity.LANE, np.array([42], dtype=np.uint32))
    report = binary.reset()[BRAIN]
    ended = 0
    for decision in range(120):
        assert report.observations.tobytes() == court.observations[0].tobytes()
        assert report.ids == [0, 1]
        assert report.done == [bool(court.done[0])] * 2
        assert np.float32(report.rewards).tobytes() == court.rewards[0].tobytes()
        if court.done[0]:
            ended += 1
            court.reset(fake_unity.LANE)
            report = binary.reset()[BRAIN]
            assert report.observations.tobytes() == court.observations[0].tobytes()
        chosen = actions(decision)
        report = binary.step({BRAIN: Orders(actions=chosen)})[BRAIN]
        court.step(chosen[None])
        assert report.actions.tobytes() == chosen.tobytes()
    assert ended >= 3


def test_2018_api_is_alike_on_binary_and_court(tmp_path: Path, port: int) -> None:
    real = UnityEnvironment(str(fake_unity.install(tmp_path)), base_port=port, seed=7, no_graphics=True)
    court = UnityEnvironment(seed=7)
    assert str(real) == str(court)
    assert real.brain_names == court.brain_names
    for decision in range(60):
        if decision % 20 == 0:
            infos = [env.reset(train_mode=True)[BRAIN] for env in (real, court)]
        else:
            infos = [env.step(actions(decision), memory=[1, 2, 3, 4], text_action="hi")[BRAIN] for env in (real, court)]
        one, other = (vars(info) for info in infos)
        for name in one:
            np.testing.assert_equal(one[name], other[name], err_msg=name)
            assert type(one[name]) is type(other[name])
    real.close()
    with pytest.raises(UnityEnvironmentException, match="closed"):
        real.step(actions(0))


def test_academy_time_up_needs_a_reset(tmp_path: Path, port: int) -> None:
    env = UnityEnvironment(str(fake_unity.install(tmp_path, fault="time-up", after=3)), base_port=port)
    env.reset()
    assert env.global_done is False
    for _ in range(3):
        assert env.global_done is False
        env.step(np.zeros((2, 2)))
    assert env.global_done is True
    with pytest.raises(UnityActionException, match="completed"):
        env.step(np.zeros((2, 2)))
    env.reset()
    assert env.global_done is False
    env.close()


def test_game_face_plays_like_the_built_in_tennis(tmp_path: Path, port: int) -> None:
    real = UnityTennis(fake_unity.install(tmp_path), seed=5, base_port=port)
    built_in = Tennis(seed=5)
    ends = 0
    try:
        for decision in range(100):
            one, other = real.decisions(), built_in.decisions()
            assert torch.equal(one.obs, other.obs)
            for name in ("lane", "match", "team", "agent", "decision"):
                assert torch.equal(getattr(one, name), getattr(other, name)), name
            chosen = torch.from_numpy(actions(decision))
            first, second = real.act(chosen), built_in.act(chosen)
            for name in ("lane", "agent", "reward", "ended", "truncated", "length"):
                assert torch.equal(getattr(first, name), getattr(second, name)), name
            torch.testing.assert_close(first.score, second.score)
            assert len(first.last) == len(second.last)
            if len(first.ended):
                ends += 1
                assert torch.equal(first.last.obs, one.obs)
                assert torch.equal(first.last.match, second.last.match)
                if ends % 2:
                    real.restart(first.ended)
                    built_in.restart(second.ended)
        assert ends >= 3
        with pytest.raises(SparringError, match="draws its own serves"):
            real.restart(torch.tensor([0]), torch.tensor([3]))
        with pytest.raises(SparringError, match="cannot be saved"):
            real.state()
    finally:
        real.close()


@pytest.mark.parametrize(
    ("fault", "error", "line"),
    [
        ("exit", UnityError, r"exited with code 3; its last line: Failed to load the data folder: run it by hand"),
        ("silent", UnityTimeout, r"did not connect within 1 s: check that"),
        ("old-version", UnityError, r"speaks API-3, this adapter API-4: take a build made with ML-Agents 0\.4"),
        ("camera", UnityError, r"TennisBrain observes through a camera"),
    ],
)
def test_binary_that_does_not_start_is_one_line(
    tmp_path: Path, port: int, fault: str, error: type[UnityError], line: str
) -> None:
    timeout_s = 1.0 if fault == "silent" else 30.0
    with pytest.raises(error, match=line) as caught:
        UnityBinary(fake_unity.install(tmp_path, fault=fault), base_port=port, timeout_s=timeout_s)
    assert "\n" not in str(caught.value)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("fault", "error", "line"),
    [
        ("die", UnityError, r"exited with code 139; its last line: Crash!!!"),
        ("leave", UnityError, r"closed the connection"),
        ("stall", UnityTimeout, r"did not answer within 1 s"),
    ],
)
def test_binary_lost_in_mid_game_is_one_line(
    tmp_path: Path, port: int, fault: str, error: type[UnityError], line: str
) -> None:
    binary = UnityBinary(fake_unity.install(tmp_path, fault=fault, after=3), base_port=port, timeout_s=30.0)
    binary.reset()
    idle = {BRAIN: Orders(actions=np.zeros((2, 2)))}
    binary.step(idle)
    binary.step(idle)
    if fault == "stall":
        binary._timeout_s = 1.0  # only now: on a busy machine the start alone takes longer
    with pytest.raises(error, match=line) as caught:
        binary.step(idle)
    assert "\n" not in str(caught.value)
    with pytest.raises(UnityError, match="was closed"):
        binary.step(idle)


def test_2018_names_of_the_errors(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnityEnvironmentException, match="exited with code 3"):
        UnityEnvironment(str(fake_unity.install(tmp_path, fault="exit")), base_port=port)
    program = fake_unity.install(tmp_path, fault="silent")
    monkeypatch.setattr(
        UnityBinary.__init__, "__kwdefaults__", UnityBinary.__init__.__kwdefaults__ | {"timeout_s": 0.5}
    )
    with pytest.raises(UnityTimeOutException, match="did not connect"):
        UnityEnvironment(str(program), base_port=port)


def test_port_in_use_is_one_line(tmp_path: Path, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(UnityError, match=rf"port {port} is in use.*another worker_id"):
            UnityBinary(fake_unity.install(tmp_path), base_port=port)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has every 127.x.x.x")
def test_only_loopback_is_bound(binary: UnityBinary) -> None:
    binary.reset()
    with socket.socket() as other:
        # Another local address is still free, so the server did not bind all of them.
        other.bind(("127.0.0.2", binary.port))


def test_missing_package_is_one_line(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(UnityError, match=r"package grpc is missing.*pip install 'sparring\[unity\]'"):
        UnityBinary(fake_unity.install(tmp_path), base_port=port)


def test_file_that_cannot_be_run_is_one_line(tmp_path: Path, port: int) -> None:
    with pytest.raises(UnityError, match=r"no binary at .*nowhere.*file_name=None"):
        UnityBinary(tmp_path / "nowhere", base_port=port)
    program = fake_unity.install(tmp_path)
    program.chmod(0o644)
    with pytest.raises(UnityError, match="chmod"):
        UnityBinary(program, base_port=port)
    program.chmod(0o755)
    program.write_bytes(b"\x7fNOT")
    with pytest.raises(UnityError, match=r"cannot be started .*take the build made for this machine"):
        UnityBinary(program, base_port=port)
    with pytest.raises(UnityError, match="32-bit"):
        UnityBinary(program, base_port=port, seed=2**31)


def test_binary_is_found_by_any_form_of_its_name(tmp_path: Path) -> None:
    program = fake_unity.install(tmp_path)
    for name in ("Tennis.x86_64", "Tennis", "Tennis.x86"):
        assert find_binary(tmp_path / name, platform="linux") == program
    windows = tmp_path / "Tennis.exe"
    windows.touch()
    assert find_binary(tmp_path / "Tennis", platform="win32") == windows
    inside = tmp_path / "Tennis.app" / "Contents" / "MacOS" / "Tennis"
    inside.parent.mkdir(parents=True)
    inside.touch()
    for name in ("Tennis.app", "Tennis"):
        assert find_binary(tmp_path / name, platform="darwin") == inside


def test_interrupted_call_does_not_shift_the_answers(binary: UnityBinary, monkeypatch: pytest.MonkeyPatch) -> None:
    court = _core.TennisCourts(1)
    court.seed(fake_unity.LANE, np.array([42], dtype=np.uint32))
    binary.reset()
    receive = binary._receive

    def interrupted(doing: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(binary, "_receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        binary.step({BRAIN: Orders(actions=actions(0))})
    monkeypatch.setattr(binary, "_receive", receive)
    report = binary.step({BRAIN: Orders(actions=actions(1))})[BRAIN]
    for decision in (0, 1):
        court.step(actions(decision)[None])
    assert report.observations.tobytes() == court.observations[0].tobytes()


def test_scene_in_the_editor_is_waited_for(port: int) -> None:
    scene = threading.Thread(target=fake_unity.connect, args=(port,))
    scene.start()
    binary = UnityBinary(None, base_port=port - 3, worker_id=3, seed=-1)
    assert binary.reset()[BRAIN].ids == [0, 1]
    binary.close()
    binary.close()
    scene.join(30)
    assert not scene.is_alive()
    with pytest.raises(UnityTimeout, match="press Play in the Unity editor"):
        UnityBinary(None, base_port=port, timeout_s=0.1)


def test_program_that_forgets_close_still_ends(tmp_path: Path, port: int) -> None:
    program = fake_unity.install(tmp_path)
    code = (
        "from sparring.games.unity import UnityBinary\n"
        f"binary = UnityBinary({str(program)!r}, base_port={port})\n"
        "binary.reset()\n"
        "print(binary._process.pid)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    alive = Path(f"/proc/{int(ran.stdout)}/stat")
    assert not alive.exists() or alive.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_discovers_a_scene_that_is_not_tennis(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def shake_hands(self: UnityBinary, seed: int) -> unity.Academy:
        self._receive("connect")
        brain = unity.Brain(name="Walk", external=True, observation_size=9, stacked=1, action_size=4)
        return unity.Academy(name="Walker", brains=(brain,), parameters={})

    monkeypatch.setattr(UnityBinary, "_shake_hands", shake_hands)
    with pytest.raises(SparringError, match="is not Tennis"):
        UnityTennis(fake_unity.install(tmp_path), base_port=port)
