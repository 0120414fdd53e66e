"""The Python API of unityagents 0.4.0 (2018), on the built-in Tennis court or on a real binary.

Old code needs one line changed:

    from sparring.compat.unityagents import UnityEnvironment

and `file_name=None` then plays the built-in court, a path the real binary (extra `unity`). Code whose paths should be
ignored altogether imports `CourtEnvironment as UnityEnvironment`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparring import _core
from sparring.errors import SparringError
from sparring.games.unity import BASE_PORT, Academy, Brain, Orders, Report, UnityBinary, UnityTimeout

__all__ = [
    "AllBrainInfo",
    "BrainInfo",
    "BrainParameters",
    "CourtEnvironment",
    "UnityActionException",
    "UnityEnvironment",
    "UnityEnvironmentException",
    "UnityException",
    "UnityTimeOutException",
]

logger = logging.getLogger("unityagents")


class UnityException(SparringError):
    """Any error of this API."""


class UnityEnvironmentException(UnityException):
    """The environment cannot be opened, reset or closed."""


class UnityActionException(UnityException):
    """The actions do not fit, or no action is possible now."""


class UnityTimeOutException(UnityException):
    """The binary did not connect or answer in time."""


class BrainParameters:
    """What is common to all agents of a brain, under the names of 2018."""

    def __init__(self, brain: Brain) -> None:
        self.brain_name = brain.name
        self.vector_observation_space_size = brain.observation_size
        self.num_stacked_vector_observations = brain.stacked
        self.number_visual_observations = len(brain.cameras)
        self.camera_resolutions = list(brain.cameras)
        self.vector_action_space_size = brain.action_size
        self.vector_action_descriptions = list(brain.action_descriptions)
        self.vector_action_space_type = "continuous" if brain.continuous_actions else "discrete"
        self.vector_observation_space_type = "continuous" if brain.continuous_observations else "discrete"

    def __str__(self) -> str:
        lines = (
            f"Unity brain name: {self.brain_name}",
            f"Number of Visual Observations (per agent): {self.number_visual_observations}",
            f"Vector Observation space type: {self.vector_observation_space_type}",
            f"Vector Observation space size (per agent): {self.vector_observation_space_size}",
            f"Number of stacked Vector Observation: {self.num_stacked_vector_observations}",
            f"Vector Action space type: {self.vector_action_space_type}",
            f"Vector Action space size (per agent): {self.vector_action_space_size}",
            f"Vector Action descriptions: {', '.join(self.vector_action_descriptions)}",
        )
        return "\n        ".join(lines)


class BrainInfo:
    """A brain's agents after a reset or a decision; entry i of everything belongs to `agents[i]`.

    vector_observations:     float64 [agents, stacked * size], float32 numbers widened as in 2018
    rewards:                 list of float, summed since the last call
    local_done, max_reached: lists of bool; observations of a done agent are already those of its next rally
    previous_vector_actions: float64 [agents, action size], as last sent, zeros at first
    memories:                float64 [agents, longest memory], or [0, 0] where there is none
    text_observations, previous_text_actions: lists of str
    visual_observations:     always empty
    """

    def __init__(self, report: Report) -> None:
        self.visual_observations: list[NDArray[np.float64]] = []
        self.vector_observations = report.observations.astype(np.float64)
        self.text_observations = report.text_observations
        self.memories = _padded(report.memories)
        self.rewards = report.rewards
        self.local_done = report.done
        self.max_reached = report.max_reached
        self.agents = report.ids
        self.previous_vector_actions = report.actions.astype(np.float64)
        self.previous_text_actions = report.text_actions


AllBrainInfo = dict[str, BrainInfo]


class UnityEnvironment:
    """The 2018 environment class.

    file_name:       None for the built-in court, else the path of a 2018 binary, its ending optional
    worker_id:       added to base_port; only a binary uses ports
    curriculum:      must be None: Tennis has no reset parameters to vary
    seed:            what the scene's random numbers start from; seed 0 serves where nearly every public notebook does
    docker_training: run the binary under xvfb-run
    no_graphics:     start the binary without a window
    velocity:        the court's observation entries 6 and 7, see `sparring.games.tennis.TennisOptions`

    Raises UnityEnvironmentException or UnityTimeOutException, both SparringError, with one line that says the mend.
    """

    def __init__(
        self,
        file_name: str | os.PathLike[str] | None = None,
        worker_id: int = 0,
        base_port: int = BASE_PORT,
        curriculum: str | None = None,
        seed: int = 0,
        docker_training: bool = False,
        no_graphics: bool = False,
        *,
        velocity: str = "as-shipped",
    ) -> None:
        if curriculum is not None:
            raise UnityEnvironmentException(
                f"curriculum {curriculum}: this environment has no lessons: pass curriculum=None"
            )
        self._academy: _Academy
        if file_name is None:
            self._academy = _Court(seed, velocity)
        else:
            with _translated():
                self._academy = UnityBinary(
                    file_name,
                    seed=seed,
                    worker_id=worker_id,
                    base_port=base_port,
                    no_graphics=no_graphics,
                    launcher=_XVFB if docker_training else (),
                )
        self._loaded = True
        self._global_done: bool | None = None
        self._counts: dict[str, int] = {}
        described = self._academy.academy
        self._parameters = dict(described.parameters)
        self.brains = {brain.name: BrainParameters(brain) for brain in described.brains}
        self.brain_names = list(self.brains)
        self.external_brain_names = [brain.name for brain in described.brains if brain.external]
        self.academy_name = described.name
        self.logfile_path = described.log_path
        logger.info("\n'%s' started successfully!\n%s", self.academy_name, self)

    @property
    def global_done(self) -> bool | None:
        """None before the first reset; True when the academy's own time is up and only `reset` is accepted."""
        return self._global_done

    @property
    def number_brains(self) -> int:
        return len(self.brain_names)

    @property
    def number_external_brains(self) -> int:
        return len(self.external_brain_names)

    def reset(
        self, train_mode: bool = True, config: Mapping[str, float] | None = None, lesson: int | None = None
    ) -> AllBrainInfo:
        """Reset rackets and observation stacks, not a ball in flight. config: reset parameters (Tennis has none).

        train_mode only matters to a binary (its speed), lesson to nothing.
        """
        self._require_loaded()
        for name, value in (config or {}).items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise UnityEnvironmentException(f"reset parameter {name} must be a number, got {value!r}")
            if name not in self._parameters:
                known = ", ".join(self._parameters) or "none"
                raise UnityEnvironmentException(f"there is no reset parameter {name}: known are {known}")
            self._parameters[name] = value
        with _translated():
            return self._received(self._academy.reset(training=train_mode, parameters=config))

    def step(self, vector_action: Any = None, memory: Any = None, text_action: Any = None) -> AllBrainInfo:
        """One decision of 0.1 s for every agent.

        vector_action: numbers for all agents of the one external brain in any nesting (array, list, list of arrays),
            or a dict from brain name to such; None is zeros
        memory: numbers that come back as `memories`; text_action: a string, or one per agent; both as dicts too
        Raises UnityActionException on a wrong count, an unknown brain, before `reset`, and after `global_done`.
        """
        self._require_loaded()
        if self._global_done is None:
            raise UnityActionException("step came before the first reset: call reset() first")
        if self._global_done:
            raise UnityActionException("the episode is completed, its time is up: call reset() first")
        actions = self._by_brain(vector_action, "vector_action")
        memories = self._by_brain(memory, "memory")
        texts = self._by_brain(text_action, "text_action")
        orders = {
            name: Orders(
                actions=self._actions(name, actions.get(name)),
                memories=self._memories(name, memories.get(name)),
                texts=self._texts(name, texts.get(name)),
            )
            for name in self.external_brain_names
        }
        with _translated():
            return self._received(self._academy.step(orders))

    def close(self) -> None:
        """Close the environment, and the binary if there is one. Nothing can be called afterwards."""
        self._require_loaded()
        self._loaded = False
        self._academy.close()

    def __str__(self) -> str:
        parameters = "\n\t\t".join(f"{name} -> {value}" for name, value in self._parameters.items())
        lines = (
            f"Unity Academy name: {self.academy_name}",
            f"Number of Brains: {self.number_brains}",
            f"Number of External Brains : {self.number_external_brains}",
            "Lesson number : 0",
            f"Reset Parameters :\n\t\t{parameters}",
        )
        return "\n".join(["\n        ".join(lines), *map(str, self.brains.values())])

    def _require_loaded(self) -> None:
        if not self._loaded:
            raise UnityEnvironmentException("no Unity environment is loaded, this one was closed: open a new one")

    def _received(self, reports: Mapping[str, Report]) -> AllBrainInfo:
        self._global_done = self._academy.global_done
        self._counts = {name: len(report.ids) for name, report in reports.items()}
        return {name: BrainInfo(report) for name, report in reports.items()}

    def _by_brain(self, given: Any, argument: str) -> Mapping[str, Any]:
        """The argument as a dict: what is not one belongs to the only external brain."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            if len(self.external_brain_names) != 1:
                raise UnityActionException(
                    f"{argument} must be a dict from brain name to values: "
                    f"the environment has {len(self.external_brain_names)} external brains"
                )
            return {self.external_brain_names[0]: given}
        for name in given:
            if name not in self.external_brain_names:
                known = ", ".join(self.external_brain_names)
                raise UnityActionException(f"{argument} names {name}, which is no external brain: there is {known}")
        return given

    def _actions(self, name: str, given: Any) -> NDArray[np.float32]:
        brain, agents = self.brains[name], self._counts[name]
        size = brain.vector_action_space_size if brain.vector_action_space_type == "continuous" else 1
        if given is None:
            return np.zeros((agents, size), dtype=np.float32)
        flat = _flat(given)
        if flat.size != agents * size:
            raise UnityActionException(
                f"brain {name} expects {agents * size} {brain.vector_action_space_type} action(s), "
                f"{size} for each of {agents} agents, but was given {flat.size}: {given}"
            )
        if not np.isfinite(flat).all():
            raise UnityActionException(f"brain {name} was given an action that is not a finite number: {given}")
        return flat.reshape(agents, size)

    def _memories(self, name: str, given: Any) -> NDArray[np.float32] | None:
        if given is None:
            return None
        flat, agents = _flat(given), self._counts[name]
        if agents == 0 or flat.size % agents != 0:
            raise UnityActionException(
                f"brain {name} has {agents} agents: {flat.size} memory values cannot be shared equally"
            )
        return flat.reshape(agents, -1)

    def _texts(self, name: str, given: Any) -> list[str] | None:
        agents = self._counts[name]
        if given is None:
            return None
        texts = [given] * agents if isinstance(given, str) else list(given)
        if len(texts) != agents:
            raise UnityActionException(f"brain {name} expects {agents} text actions, but was given {len(texts)}")
        return texts


class CourtEnvironment(UnityEnvironment):
    """`UnityEnvironment` that always plays the built-in court, whatever path `file_name` gives."""

    def __init__(self, file_name: str | os.PathLike[str] | None = None, *arguments: Any, **options: Any) -> None:
        super().__init__(None, *arguments, **options)


class _Academy(Protocol):
    """What `UnityEnvironment` needs of a court or a binary."""

    academy: Academy

    @property
    def global_done(self) -> bool: ...
    def reset(self, *, training: bool, parameters: Mapping[str, float] | None) -> dict[str, Report]: ...
    def step(self, orders: Mapping[str, Orders]) -> dict[str, Report]: ...
    def close(self) -> None: ...


_TENNIS_BRAIN = "TennisBrain"
_TENNIS = Academy(
    name="Academy",
    brains=(
        Brain(
            name=_TENNIS_BRAIN,
            external=True,
            observation_size=8,
            stacked=3,
            action_size=2,
            action_descriptions=("", ""),
        ),
    ),
    parameters={},
)
_XVFB = ("xvfb-run", "--auto-servernum", "--server-args=-screen 0 640x480x24")
_LANE = np.zeros(1, dtype=np.int64)


class _Court:
    """One built-in court, speaking like a binary."""

    academy = _TENNIS

    def __init__(self, seed: int, velocity: str) -> None:
        if velocity not in ("as-shipped", "true"):
            raise UnityEnvironmentException(f'velocity must be "as-shipped" or "true", got "{velocity}"')
        self._court = _core.TennisCourts(1, true_velocity=velocity == "true")
        self._court.seed(_LANE, np.array([seed & 0xFFFFFFFF], dtype=np.uint32))
        self._fresh = True
        self._actions = np.zeros((2, 2), dtype=np.float32)
        self._memories: list[list[float]] = [[], []]
        self._texts = ["", ""]

    @property
    def global_done(self) -> bool:
        return bool(self._court.global_done[0])

    def reset(self, *, training: bool, parameters: Mapping[str, float] | None) -> dict[str, Report]:
        # The first reset is what starts the scene; every later one costs a physics step, as in the binary.
        if not self._fresh:
            self._court.reset(_LANE)
        self._fresh = False
        self._memories, self._texts = [[], []], ["", ""]
        return self._report()

    def step(self, orders: Mapping[str, Orders]) -> dict[str, Report]:
        given = orders[_TENNIS_BRAIN]
        self._actions = np.array(given.actions, dtype=np.float32)
        self._court.step(self._actions[None])
        self._memories = [[], []] if given.memories is None else given.memories.tolist()
        self._texts = ["", ""] if given.texts is None else list(given.texts)
        return self._report()

    def close(self) -> None:
        pass

    def _report(self) -> dict[str, Report]:
        court = self._court
        report = Report(
            ids=[0, 1],
            observations=court.observations[0].copy(),
            rewards=court.rewards[0].tolist(),
            done=[bool(court.done[0])] * 2,
            max_reached=[bool(court.max_reached[0])] * 2,
            actions=self._actions,
            memories=self._memories,
            text_observations=["", ""],
            text_actions=self._texts,
        )
        return {_TENNIS_BRAIN: report}


class _translated:
    """Gives the adapter's errors the names that code of 2018 catches."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, UnityTimeout):
            raise UnityTimeOutException(str(error)) from None
        if isinstance(error, SparringError):
            raise UnityEnvironmentException(str(error)) from None


def _flat(given: Any) -> NDArray[np.float32]:
    """All numbers of a scalar, array, or nested lists of either, in order."""
    try:
        return np.asarray(given, dtype=np.float32).reshape(-1)
    except (TypeError, ValueError):
        raise UnityActionException(f"expected numbers in rows of equal length, but was given {given}") from None


def _padded(memories: list[list[float]]) -> NDArray[np.float64]:
    """Rows filled up with zeros to the longest, or [0, 0] where all are empty."""
    longest = max((len(row) for row in memories), default=0)
    if longest == 0:
        return np.zeros((0, 0))
    return np.array([row + [0.0] * (longest - len(row)) for row in memories])
