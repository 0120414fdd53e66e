"""What a run reports: every match, a row of counters now and then, and the official measure."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sparring.errors import SparringError
from sparring.games.loong_rows import DEATHS
from sparring.learn.matches import ITSELF, EpisodeRow, LoongMatchRow, MatchRow

WINDOW = 100
"""Matches in the official mean (udacity/deep-reinforcement-learning, project 3)."""
_ROUNDING = 1e-9
"""Sums of the same scores in another order may differ by this much."""


@dataclass(frozen=True, kw_only=True)
class Solved:
    """When the mean over 100 consecutive matches of the better agent's score first reached `solved_score`."""

    match: int
    """Matches the run had played, the last one included."""
    decisions: int
    updates: int
    minutes: float
    """Training time, over all sessions of the run."""
    score: float
    """That mean."""


class EndedMatch(Protocol):
    """What a measure needs of a match that ended; see `MatchRow`."""

    @property
    def best(self) -> float: ...
    @property
    def length(self) -> int: ...
    @property
    def at(self) -> int: ...
    @property
    def updates(self) -> int: ...


class Measure:
    """The mean over the last 100 matches of the better agent's score, their lengths, and when the run was solved."""

    def __init__(self, solved_score: float, *, words: tuple[str, str, str] = ("agent", "match", "matches")) -> None:
        """words: what the game calls an agent, a match, and several."""
        self.solved_score = solved_score
        self._agent, self._match, self._several = words
        self.matches = 0
        self.solved: Solved | None = None
        self._best: deque[float] = deque(maxlen=WINDOW)
        self._lengths: deque[int] = deque(maxlen=WINDOW)
        self._episodes: deque[float] = deque(maxlen=WINDOW)

    def add(self, row: EndedMatch, *, seconds: float) -> bool:
        """Count an ended match; True if the run is solved by it. `seconds`: training time so far."""
        self.matches += 1
        self._best.append(row.best)
        self._lengths.append(row.length)
        score = self.score
        if self.solved or len(self._best) < WINDOW or score is None or score < self.solved_score - _ROUNDING:
            return False
        self.solved = Solved(
            match=self.matches, decisions=row.at, updates=row.updates, minutes=seconds / 60, score=score
        )
        return True

    def add_episode(self, row: EpisodeRow) -> None:
        """Count an ended episode of several matches."""
        self._episodes.append(max(row.score))

    @property
    def score(self) -> float | None:
        """Mean of the better agent's score over the last 100 matches (or fewer, early on); None before the first."""
        return sum(self._best) / len(self._best) if self._best else None

    @property
    def length(self) -> float | None:
        """Mean length of those matches, in decisions."""
        return sum(self._lengths) / len(self._lengths) if self._lengths else None

    @property
    def episode_score(self) -> float | None:
        """Mean of the better agent's sum over the last 100 episodes of several matches; None where there are none.

        This is what the published Tennis curve shows, another measure than `score`.
        """
        return sum(self._episodes) / len(self._episodes) if self._episodes else None

    def row(self) -> dict[str, Any]:
        """What metrics.jsonl says of the matches so far."""
        row = {"matches": self.matches, "score": self.score, "length": self.length}
        return row if self.episode_score is None else {**row, "episode_score": self.episode_score}

    def parts(self) -> list[str]:
        """What a line of progress says of the matches so far."""
        parts = [f"{self._several} {self.matches:,}"]
        if self.score is not None:
            parts.append(f"better {self._agent} {self.score:.3f} over the last {len(self._best)}")
            parts.append(f"{self._match} {self.length:.0f} decisions")
        return parts

    def summary(self) -> str:
        """The end of the line that ends a session."""
        if self.score is None:
            return "no match has ended"
        return f"mean {self.score:.3f} over the last {len(self._best)} matches, length {self.length:.0f}"

    def state(self) -> dict[str, Any]:
        return {
            "matches": self.matches,
            "solved": asdict(self.solved) if self.solved else None,
            "best": list(self._best),
            "lengths": list(self._lengths),
            "episodes": list(self._episodes),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.matches = state["matches"]
        self.solved = Solved(**state["solved"]) if state["solved"] else None
        self._best = deque(state["best"], maxlen=WINDOW)
        self._lengths = deque(state["lengths"], maxlen=WINDOW)
        self._episodes = deque(state["episodes"], maxlen=WINDOW)


class LoongMeasure(Measure):
    """The score against scripted players over the last 100 matches, and against each of them over its last 100.

    A win counts 1, a draw 0.5. Matches of the learner against itself are counted and not scored.
    """

    def __init__(self, solved_score: float) -> None:
        super().__init__(solved_score)
        self._against: dict[str, deque[LoongMatchRow]] = {}

    def add(self, row: EndedMatch, *, seconds: float) -> bool:
        assert isinstance(row, LoongMatchRow)
        self._against.setdefault(row.opponent, deque(maxlen=WINDOW)).append(row)
        if row.opponent == ITSELF:
            self.matches += 1
            return False
        return super().add(row, seconds=seconds)

    @property
    def scores(self) -> dict[str, float]:
        """Against each scripted player, by name."""
        return {
            name: _mean([row.best for row in self._against[name]]) for name in sorted(self._against.keys() - {ITSELF})
        }

    def row(self) -> dict[str, Any]:
        """Scores, and means of what the learner (`theirs`: its opponent) had in the same matches at the end and, where
        they lasted, at round 100, and of what the learner's dragons died of."""
        told = super().row() | {f"score_{name}": score for name, score in self.scores.items()}
        rows = [row for name, rows in self._against.items() if name != ITSELF for row in rows]
        rows = rows or list(self._against.get(ITSELF, ()))
        for when in ("", "_100"):
            for what in ("queen", "longest", "total", "dragons"):
                pairs = [pair for row in rows if (pair := getattr(row, f"{what}{when}")) is not None]
                for side, name in enumerate((f"{what}{when or '_end'}", f"{what}{when or '_end'}_theirs")):
                    told[name] = _mean([pair[side] for pair in pairs]) if pairs else None
        for cause, name in enumerate(DEATHS.values()):
            counts = [row.deaths[cause] for row in rows if row.deaths]
            told[f"deaths_{name.replace(' ', '_')}"] = _mean(counts) if counts else None
        return told

    def parts(self) -> list[str]:
        scores = [f"{name} {score:.2f}" for name, score in self.scores.items()]
        return [f"matches {self.matches:,}", *([f"score against {', '.join(scores)}"] if scores else [])]

    def summary(self) -> str:
        if self.score is None:
            return "no match against another player has ended"
        scores = ", ".join(f"{name} {score:.2f}" for name, score in self.scores.items())
        return f"score {self.score:.3f} over the last {len(self._best)} matches against other players ({scores})"

    def state(self) -> dict[str, Any]:
        against = {name: [asdict(row) for row in rows] for name, rows in self._against.items()}
        return super().state() | {"against": against}

    def load_state(self, state: Mapping[str, Any]) -> None:
        super().load_state(state)
        self._against = {
            name: deque((LoongMatchRow(**row) for row in rows), maxlen=WINDOW)
            for name, rows in state["against"].items()
        }


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def json_line(row: Mapping[str, Any]) -> bytes:
    """One row of a .jsonl file."""
    return json.dumps(row).encode() + b"\n"


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a .jsonl file; a last line that is still being written is left out.

    Raises SparringError for a line that is no row.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    rows = []
    for number, line in enumerate(text[: text.rfind(b"\n") + 1].split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise SparringError(f"{path}: line {number} is damaged: delete that line, only curves are drawn from it")
        rows.append(row)
    return rows


Row = TypeVar("Row", MatchRow, LoongMatchRow)


def read_matches(path: Path) -> list[MatchRow]:
    """The matches of a run's matches.jsonl, in the order they ended."""
    return _read(path, MatchRow)


def read_loong_matches(path: Path) -> list[LoongMatchRow]:
    """The same of a run of Loong."""
    return _read(path, LoongMatchRow)


def _read(path: Path, kind: type[Row]) -> list[Row]:
    def pairs(row: dict[str, Any]) -> Any:
        return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}

    try:
        return [kind(**pairs(row)) for row in read_json_lines(path)]
    except TypeError as error:
        raise SparringError(f"{path} does not hold matches as this Sparring writes them ({error})") from None
