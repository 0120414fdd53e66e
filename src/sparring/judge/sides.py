"""Who answers for a team in a match: a bot in the sandbox, a scripted player, or the teacher of a run."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sparring import _core

if TYPE_CHECKING:
    from sparring.judge.entrants import Entrant

SCRIPT_SEED = 0
"""The scripted players' own seed; their matches differ by the seed of the match."""


class Answer(NamedTuple):
    """What came of asking a dragon.

    reply:  what the engine reads; nothing, if the dragon failed
    points: CPU points of the turn, 0 where nobody counts them or the dragon failed
    memory: bytes
    error:  why the dragon failed, or None
    """

    reply: bytes
    points: int = 0
    memory: int = 0
    error: str | None = None


class Side(Protocol):
    """All dragons of a team in one match.

    retries: crashes that the judge forgave, because nothing had been said yet, so that the turn was asked again
    """

    retries: int

    def spawn(self, dragon: int, init: bytes) -> None:
        """A dragon appears, with what it is told of itself."""

    def reply(self, dragon: int, block: bytes) -> Answer:
        """A dragon must act."""

    def died(self, dragon: int) -> None:
        """A dragon is gone."""

    def close(self) -> None:
        """The match is over: nothing of it goes on."""


class ScriptedSide:
    """A scripted player (docs/loong-players.md), which reads the judge's text as a bot does."""

    def __init__(self, name: str, *, seed: int) -> None:
        """`seed` is that of the match."""
        self.retries = 0
        self._script, self._seed = _core.LOONG_SCRIPTS.index(name), seed
        self._inits: dict[int, bytes] = {}

    def spawn(self, dragon: int, init: bytes) -> None:
        self._inits[dragon] = init

    def reply(self, dragon: int, block: bytes) -> Answer:
        return Answer(_core.loong_decide(self._script, self._inits[dragon], block, SCRIPT_SEED, self._seed))

    def died(self, dragon: int) -> None:
        del self._inits[dragon]

    def close(self) -> None:
        self._inits.clear()


def open_side(entrant: Entrant, *, seed: int, team: str) -> closing[Side]:
    """Let an entrant answer for team "A" or "B" of the match with this seed. The context ends all that it started."""
    if entrant.kind == "scripted":
        return closing(ScriptedSide(entrant.name, seed=seed))
    if entrant.kind == "teacher":
        from sparring.judge.teachers import TeacherSide

        assert entrant.path is not None
        return closing(TeacherSide(entrant.path))
    from sparring.judge.sandbox import SandboxSide

    return closing(SandboxSide(entrant, seed=seed, team=team))
