"""One match in the organisers' engine and sandbox, with all limits of the judge, and what it came to."""

from __future__ import annotations

import dataclasses
import difflib
import time
from array import array
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparring.errors import SparringError
from sparring.files import refuse_place, written_beside
from sparring.judge.entrants import Entrant
from sparring.judge.native import DEBUG_ALL
from sparring.judge.official import installed_engine_hash, official_engine, release
from sparring.judge.sides import Answer, Side, open_side
from sparring.judge.tape import RecordingWriter, header_of, part_of
from sparring.levels.maps import map_hash, read_map
from sparring.levels.shipped import shipped_folder

Reason = Literal["elimination", "queen", "longest", "total", "both eliminated", "equal"]
TEAMS = ("A", "B")


@dataclass(frozen=True)
class TeamResult:
    """What a team did and had at the end.

    name, kind, hash: of the entrant
    dragons, total, queen, longest: at the end, living dragons, the sum of their lengths, the length of the queen (0 if
        dead) and of the longest
    born: dragons that it had at any time; deaths: by the judge's letter
    turns: asked of it; errors: those that failed, so that the dragon died of it (points, crash, time); first_error: the
        first of them; retries: crashes before the first output of a turn, which the judge forgives
    forfeit: every single turn failed
    points_p50, points_p99, points_max: CPU points of the turns that did not fail; None where nobody counts them
    memory_max: bytes; None where nobody counts them
    """

    name: str
    kind: str
    hash: str
    dragons: int
    total: int
    queen: int
    longest: int
    born: int
    deaths: dict[str, int]
    turns: int
    errors: int
    first_error: str | None
    retries: int
    forfeit: bool
    points_p50: int | None
    points_p99: int | None
    points_max: int | None
    memory_p50: int | None
    memory_p99: int | None
    memory_max: int | None


@dataclass(frozen=True)
class PlayedMatch:
    """A match. Two with the same map, seed and entrants are equal: what they took of the machine does not count.

    map_name, map_hash: the latter is `sparring.levels.maps.map_hash`; engine_hash: SHA-256 of the organisers' engine
    winner: "A", "B" or None; reason: what decided
    rounds: played, 500 for a full match; turns: of both teams
    notices: lines that the engine said about the map
    cpu_seconds: of this process while the match was played
    """

    map_name: str
    map_hash: str
    engine_hash: str
    seed: int
    winner: str | None
    reason: Reason
    rounds: int
    turns: int
    notices: int
    a: TeamResult
    b: TeamResult
    cpu_seconds: float = field(compare=False)

    def json(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlayedMatch:
        """What `json` gave."""
        return cls(**{**value, "a": TeamResult(**value["a"]), "b": TeamResult(**value["b"])})


def load_map(spec: str | Path) -> tuple[str, bytes]:
    """Name and bytes of a map: a file, or one of those that ship with the judge, by its name.

    Raises SparringError, in one line, for what is neither and for a map that the judge refuses.
    """
    path = Path(spec)
    try:
        named = not path.is_file() and len(path.parts) == 1
    except OSError as error:
        raise SparringError(f"cannot read the map {path}: {error.strerror or error}") from error
    if named:
        shipped = {each.stem: each for each in shipped_folder().glob("*.map")}
        if str(spec) not in shipped:
            near = difflib.get_close_matches(str(spec), shipped, n=1)
            hint = f"did you mean {near[0]}?" if near else f"those are {', '.join(sorted(shipped))}"
            raise SparringError(f"no map {spec}: neither a file nor one of the judge's own; {hint}")
        path = shipped[str(spec)]
    read_map(path)
    return path.stem, path.read_bytes()


def play_match(
    map_bytes: bytes,
    a: Entrant,
    b: Entrant,
    *,
    seed: int,
    record: Path | None = None,
    replay: Path | None = None,
    map_name: str = "",
) -> PlayedMatch:
    """Play one match, A against B, with the judge's limits; all that it started has ended when it returns.

    seed: of the match, below 2^64: it decides the pearls and the bots' random numbers
    record: file for every turn's text, reply, points and memory, for `inspect_recording`
    replay: file for the organisers' viewer
    Neither file is written unless the match ends. Raises SparringError for a map that the judge refuses.
    """
    with open_side(a, seed=seed, team="A") as side_a, open_side(b, seed=seed, team="B") as side_b:
        return referee(map_bytes, (a, side_a), (b, side_b), seed=seed, record=record, replay=replay, map_name=map_name)


def referee(
    map_bytes: bytes,
    a: tuple[Entrant, Side],
    b: tuple[Entrant, Side],
    *,
    seed: int,
    record: Path | None = None,
    replay: Path | None = None,
    map_name: str = "",
) -> PlayedMatch:
    """`play_match` between sides that are already there. The caller closes them."""
    if not 0 <= seed < 2**64:
        raise SparringError(f"the seed of a match is a number from 0 to 2^64 - 1, not {seed}")
    for file in (record, replay):
        if file is None:
            continue
        if not file.parent.is_dir():
            raise SparringError(f"cannot write {file}: there is no folder {file.parent}")
        refuse_place(file)
    if record is not None and replay is not None and record.absolute() == replay.absolute():
        raise SparringError(f"the recording and the replay cannot both be {record}: name two files")
    loong_map = read_map(map_bytes)
    map_name, hashed = map_name or loong_map.name, map_hash(loong_map)
    started = time.process_time()
    counts = {team: _Counts(entrant, side) for team, (entrant, side) in zip(TEAMS, (a, b), strict=True)}
    team_of: dict[int, str] = {}
    notices: list[str] = []
    failures: list[BaseException] = []
    engine = official_engine(any_version=True)
    with ExitStack() as stack:
        tape: RecordingWriter | None = None
        if record is not None:
            header = header_of(
                engine_hash=installed_engine_hash(),
                map_name=map_name,
                map_hash=hashed,
                map_bytes=map_bytes,
                seed=seed,
                a=a[0],
                b=b[0],
            )
            # First of all, as Ctrl-C may come between the making of the file and the care for it.
            stack.callback(part_of(record).unlink, missing_ok=True)
            tape = stack.enter_context(RecordingWriter(record, header))

        def spawn(dragon: int, init: bytes) -> None:
            team = "B" if b"TEAM B\n" in init else "A"
            team_of[dragon] = team
            counts[team].born += 1
            counts[team].side.spawn(dragon, init)
            if tape is not None:
                tape.spawn(dragon, init)

        def reply(dragon: int, block: bytes) -> bytes:
            team = counts[team_of[dragon]]
            answer = team.side.reply(dragon, block)
            team.add(dragon, block, answer)
            if tape is not None:
                tape.turn(dragon, block, answer)
            return answer.reply

        def death(dragon: int, round_number: int, why: str) -> None:
            team = counts[team_of[dragon]]
            team.deaths[why] = team.deaths.get(why, 0) + 1
            team.side.died(dragon)
            if tape is not None:
                tape.death(dragon, round_number, why)

        def guarded(call: Any) -> Any:
            # wasmtime hands an exception of a callback back through one variable of the process, from which a dragon
            # that ends at the same moment may take it.
            def run(*arguments: Any) -> Any:
                try:
                    return call(*arguments)
                except BaseException as failure:
                    failures.append(failure)
                    raise

            return run

        stack.callback(release, engine)
        try:
            result = engine.run(
                map_bytes, guarded(reply), guarded(death), guarded(spawn), notices.append, DEBUG_ALL, seed
            )
        except BaseException:
            if failures:
                raise failures[0] from None
            raise
        played = PlayedMatch(
            map_name=map_name,
            map_hash=hashed,
            engine_hash=installed_engine_hash(),
            seed=seed,
            winner=result.winner,
            reason=_reason(result),
            rounds=result.rounds + 1,
            turns=sum(team.turns for team in counts.values()),
            notices=len(notices),
            a=counts["A"].result(result, "a"),
            b=counts["B"].result(result, "b"),
            cpu_seconds=time.process_time() - started,
        )
        if replay is not None:
            with written_beside(replay) as beside:
                beside.write_bytes(engine.replay(a[0].name, b[0].name))
        if tape is not None:
            outcome = played.json()
            del outcome["cpu_seconds"]
            tape.finish(outcome)
    return played


def verdict_of(played: PlayedMatch) -> str:
    """Who won, when, why and where, in a line."""
    ends = {
        "elimination": "by elimination",
        "both eliminated": "as both were eliminated",
        "queen": "by the longer queen",
        "longest": "by the longest dragon",
        "total": "by total length",
        "equal": "with all equal",
    }
    winner = {"A": f"A, {played.a.name}, wins", "B": f"B, {played.b.name}, wins", None: "nobody wins"}[played.winner]
    where = f"map {played.map_name or played.map_hash[:12]}, seed {played.seed}"
    return f"{winner} after {played.rounds} rounds {ends[played.reason]} ({where})"


class _Counts:
    """What is counted of a team while it plays."""

    def __init__(self, entrant: Entrant, side: Side) -> None:
        self.entrant, self.side = entrant, side
        self.born = self.turns = self.errors = 0
        self.deaths: dict[str, int] = {}
        self.first_error: str | None = None
        self.points, self.memory = array("q"), array("q")

    def add(self, dragon: int, block: bytes, answer: Answer) -> None:
        self.turns += 1
        if answer.error is not None:
            self.errors += 1
            round_number = block.split(b"\n", 1)[0].removeprefix(b"ROUND ").decode()
            self.first_error = self.first_error or f"round {round_number}: dragon {dragon} {answer.error}"
        if answer.points:
            self.points.append(answer.points)
            self.memory.append(answer.memory)

    def result(self, result: Any, team: str) -> TeamResult:
        points, memory = sorted(self.points), sorted(self.memory)
        return TeamResult(
            name=self.entrant.name,
            kind=self.entrant.kind,
            hash=self.entrant.hash,
            dragons=getattr(result, f"{team}_dragons"),
            total=getattr(result, f"{team}_length"),
            queen=getattr(result, f"{team}_queen"),
            longest=getattr(result, f"{team}_longest"),
            born=self.born,
            deaths=dict(sorted(self.deaths.items())),
            turns=self.turns,
            errors=self.errors,
            first_error=self.first_error,
            retries=self.side.retries,
            forfeit=self.turns > 0 and self.errors == self.turns,
            points_p50=percentile(points, 50),
            points_p99=percentile(points, 99),
            points_max=percentile(points, 100),
            memory_p50=percentile(memory, 50),
            memory_p99=percentile(memory, 99),
            memory_max=percentile(memory, 100),
        )


def percentile(ordered: list[int], percent: int) -> int | None:
    """The least of the values that is not below `percent` of them, as the toolkit counts; None of none."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)] if ordered else None


def _reason(result: Any) -> Reason:
    if result.end_reason == 0:
        return "elimination" if result.winner else "both eliminated"
    for what, field_name in (("queen", "queen"), ("longest", "longest"), ("total", "length")):
        if getattr(result, f"a_{field_name}") != getattr(result, f"b_{field_name}"):
            return what  # type: ignore[return-value]
    return "equal"
