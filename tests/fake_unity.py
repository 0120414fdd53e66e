"""A stand-in for the 2018 binary: the client side of its protocol, on top of the built-in court.

Runs as a program like the binary does (`fake_unity.py [-nographics -batchmode] --port N`), written to a file by
`install`. The scene answers on port N of localhost until it is told to quit.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from sparring import _core
from sparring.games import unity_messages as wire

LANE = np.zeros(1, dtype=np.int64)
IDLE_S = 60.0
"""How long a fake that does nothing lives if nobody ends it."""
FAULTS = ("none", "exit", "silent", "old-version", "camera", "die", "leave", "stall", "time-up")


def install(folder: Path, *, fault: str = "none", after: int = 0) -> Path:
    """An executable Tennis.x86_64 in `folder`. `fault` happens at once, or at the step number `after`."""
    assert fault in FAULTS
    program = folder / "Tennis.x86_64"
    program.write_text(
        f"#!{sys.executable}\n"
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import fake_unity\nfake_unity.main({fault!r}, {after})\n"
    )
    program.chmod(0o755)
    return program


def main(fault: str, after: int) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("-nographics", action="store_true")
    parser.add_argument("-batchmode", action="store_true")
    port = parser.parse_args().port
    if fault == "exit":
        print("Failed to load the data folder", file=sys.stderr)
        raise SystemExit(3)
    if fault == "silent":
        time.sleep(IDLE_S)
    connect(port, fault, after)


def connect(port: int, fault: str = "none", after: int = 0) -> None:
    """Play a scene with the Python that listens, or will listen, on this port."""
    channel = grpc.insecure_channel(f"localhost:{port}", options=[("grpc.enable_http_proxy", 0)])
    exchange = channel.unary_unary(
        f"/{wire.SERVICE}/{wire.METHOD}",
        request_serializer=wire.UnityMessage.SerializeToString,
        response_deserializer=wire.UnityMessage.FromString,
    )
    try:
        Scene(exchange, fault, after).play()
    except grpc.RpcError:
        raise SystemExit(1) from None  # Python went away


class Scene:
    """The academy: introduces itself, then answers RESET and STEP until it is told to quit."""

    def __init__(self, exchange: grpc.UnaryUnaryMultiCallable, fault: str, after: int) -> None:
        self.exchange = exchange
        self.fault = fault
        self.after = after
        self.steps = 0
        self.court = _core.TennisCourts(1)
        self.actions = np.zeros((2, 2), dtype=np.float32)
        self.texts = ["", ""]
        self.memories: list[list[float]] = [[], []]

    def play(self) -> None:
        answer = self.exchange(self.introduction(), wait_for_ready=True)
        seed = answer.unity_input.rl_initialization_input.seed
        self.court.seed(LANE, np.array([seed & 0xFFFFFFFF], dtype=np.uint32))
        order = self.exchange(message())
        fresh = True
        while order.header.status == wire.STATUS_RUN:
            rl_input = order.unity_input.rl_input
            if rl_input.command == wire.COMMAND_QUIT:
                return
            if rl_input.command == wire.COMMAND_RESET:
                if not fresh:
                    self.court.reset(LANE)
                fresh, self.steps = False, 0
                self.texts, self.memories = ["", ""], [[], []]
            else:
                self.steps += 1
                if self.fault in ("die", "leave", "stall") and self.steps == self.after:
                    self.fail()
                agents = rl_input.agent_actions["TennisBrain"].value
                self.actions = np.array([agent.vector_actions for agent in agents], dtype=np.float32)
                self.texts = [agent.text_actions for agent in agents]
                self.memories = [list(agent.memories) for agent in agents]
                self.court.step(self.actions[None])
            order = self.exchange(self.report())

    def fail(self) -> None:
        if self.fault == "die":
            print("Crash!!!", flush=True)
            os._exit(139)
        if self.fault == "leave":
            self.exchange(message(status=wire.STATUS_CLOSE))
        time.sleep(IDLE_S)

    def introduction(self) -> Any:
        hello = message()
        academy = hello.unity_output.rl_initialization_output
        academy.name = "Academy"
        academy.version = "API-3" if self.fault == "old-version" else wire.API_VERSION
        academy.log_path = "unity-environment.log"
        academy.environment_parameters.SetInParent()
        brain = academy.brain_parameters.add(
            brain_name="TennisBrain",
            brain_type=wire.BRAIN_EXTERNAL,
            vector_observation_size=8,
            num_stacked_vector_observations=3,
            vector_action_size=2,
            vector_action_descriptions=["", ""],
            vector_action_space_type=1,
            vector_observation_space_type=1,
        )
        if self.fault == "camera":
            brain.camera_resolutions.add(width=84, height=84)
        return hello

    def report(self) -> Any:
        reply = message()
        output = reply.unity_output.rl_output
        output.global_done = bool(self.court.global_done[0]) or (self.fault == "time-up" and self.steps == self.after)
        for agent in range(2):
            output.agentInfos["TennisBrain"].value.add(
                stacked_vector_observation=self.court.observations[0, agent].tolist(),
                stored_vector_actions=self.actions[agent].tolist(),
                stored_text_actions=self.texts[agent],
                memories=self.memories[agent],
                reward=float(self.court.rewards[0, agent]),
                done=bool(self.court.done[0]),
                max_step_reached=bool(self.court.max_reached[0]),
                id=agent,
            )
        return reply


def message(status: int = wire.STATUS_RUN) -> Any:
    new = wire.UnityMessage()
    new.header.status = status
    return new
