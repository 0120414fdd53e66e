"""The gate: a bot plays as its student does, proved turn by turn on matches in the judge.

The bot that would be submitted plays whole matches in the organisers' engine and sandbox, which are recorded. Then
every text that its dragons were told is read again, life by life, by the reference (the knowledge of the core and the
network in whole numbers), by the quantised student in floating point, and by an inspection build of the bot, which
tells what it knows and thinks. Inputs, mask, remembered map, memory, choice, packet and reply must agree in every turn.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from sparring import _core
from sparring.distil.quantise import IntegerStudent
from sparring.errors import SparringError
from sparring.export.bot import StudentBot, build_of, packed_bot, read_bot
from sparring.export.cases import Case, read_case, try_case, write_case
from sparring.export.reference import PARTS, Asked, Reference, differences, said
from sparring.judge.entrants import FOIL, STARTER, Entrant, load_entrant
from sparring.judge.folder import settings
from sparring.judge.match import PlayedMatch, percentile, play_match
from sparring.judge.official import installed_engine_hash
from sparring.judge.schedule import Job, levels
from sparring.judge.sides import Answer, open_side
from sparring.judge.tape import Recording, Spawn, Turn
from sparring.judge.work import play_all
from sparring.levels.pool import PoolMap, named_maps

MAPS = ("shipped", "generated:5:28")
AGAINST = (STARTER, FOIL, *_core.LOONG_SCRIPTS)
MOST_POINTS = 60_000_000
"""A turn that takes more is refused; the judge gives 100 M."""
MOST_MEMORY = 48 << 20
AFRESH_EVERY = 97
"""Of so many turns one is asked of a fresh process, too, as the judge asks after a crash."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Of what turns took: the median, what 99 of 100 do not pass, and the most."""

    p50: int
    p99: int
    max: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        ordered = sorted(values) or [0]
        return cls(**{f"p{at}" if at < 100 else "max": percentile(ordered, at) or 0 for at in (50, 99, 100)})


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a gate found.

    passed:        nothing speaks against the bot; else `refused` says what does, in lines
    matches, maps: played; a `missing` match had no result
    turns:         compared, each with all that is known, chosen and replied; afresh: asked of fresh processes besides
    disagreements: turns that differed (the rest of such a life is not compared)
    seen:          how many of the turns were what: first turns, newborns' first turns, portals in sight, splits, ...
    points:        of a turn of the bot as it is submitted; parts: of the parts of a turn; "reply" is the rest
    memory:        bytes, the most of all turns, those that were not compared too
    build_seconds: of both builds; next to nothing where they were in the cache
    hashes:        SHA-256 of the bot's sources, zip and WebAssembly, of teacher, student, weights and core; the engine
    case:          file of the first difference
    """

    passed: bool
    refused: list[str]
    folder: str
    matches: int
    missing: int
    maps: int
    against: list[str]
    turns: int
    afresh: int
    disagreements: int
    first_difference: str | None
    case: str | None
    seen: dict[str, int]
    points: Spread
    parts: dict[str, Spread]
    memory: int
    weights_bytes: int
    zip_bytes: int
    build_seconds: float
    hashes: dict[str, str]
    toolkit: str

    def json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class _Compared:
    """What came of the turns of one match."""

    turns: int
    afresh: int
    seen: Counter[str]
    points: list[int]
    parts: list[tuple[int, ...]]
    disagreements: int
    first: Case | None


@dataclass(frozen=True)
class _GatedMatch(PlayedMatch):
    """A match, and how its turns compared."""

    compared: _Compared


@dataclass(frozen=True)
class _Builds:
    """What plays in a worker. most_turns: compared of a match, as whole lives; 0 for all."""

    blob: bytes
    sources: str
    submitted: Entrant
    inspection: Entrant
    most_turns: int


@lru_cache(maxsize=1)
def _student(blob: bytes) -> IntegerStudent:
    return IntegerStudent.from_blob(blob)


def gate(
    folder: str | Path,
    *,
    maps: str | Sequence[str] = MAPS,
    matches: int | None = None,
    against: Sequence[str] = AGAINST,
    seed: int = 0,
    most_turns: int = 0,
    most_points: int = MOST_POINTS,
    workers: int = 2,
    case: str | Path | None = None,
    on_match: Callable[[int, int, int], None] = lambda done, whole, turns: None,
) -> Gate:
    """Prove that an exported bot plays as its student does.

    folder:      as `sparring.export_bot` wrote it
    maps:        one or more of those that `named_maps` knows, taken together
    matches:     to play, one on each map and from the two seats in turn; None: as many as there are maps
    against:     opponents as `load_entrant` takes them, in turn
    seed:        of the order of maps, and of the matches' seeds
    most_turns:  to compare of a match, as whole lives that are drawn; 0 for all
    most_points: of a turn
    workers:     processes
    case:        file for the first difference; None: FOLDER.case.json
    on_match:    called with the matches done and to do, and the turns compared, before the first and after each

    Raises SparringError for what is no bot of this core, for one that the judge's clang or sandbox refuses, and for
    maps and opponents that are none.
    """
    bot = read_bot(folder)
    packed = packed_bot(bot.files)
    student = _student(bot.blob)
    pool = _pool([maps] if isinstance(maps, str) else maps)
    opponents = [load_entrant(name) for name in against]
    if not opponents or not pool or (matches is not None and matches < 1):
        raise SparringError("a gate needs a match: name maps and opponents")
    started = time.perf_counter()
    builds = _builds(bot, most_turns)
    build_seconds = time.perf_counter() - started
    jobs = list(_jobs(builds.submitted, opponents, pool, seed, len(pool) if matches is None else matches))
    played: list[_GatedMatch] = []
    missing = 0
    on_match(0, len(jobs), 0)
    for _, record in play_all(jobs, workers=workers, play=partial(_play, builds=builds)):
        if isinstance(record, _GatedMatch):
            played.append(record)
        else:
            missing += 1
        on_match(len(played) + missing, len(jobs), sum(each.compared.turns for each in played))
    compared = [each.compared for each in sorted(played, key=lambda each: (each.map_hash, each.seed, each.a.hash))]
    first = next((each.first for each in compared if each.first is not None), None)
    place = None
    if first is not None:
        place = Path(case) if case is not None else bot.folder.with_name(f"{bot.folder.name}.case.json")
        first = _smallest(first, student, builds)
        write_case(first, place)
    own = [each.a if each.a.hash == builds.submitted.hash else each.b for each in played]
    points = Spread.of([each for one in compared for each in one.points])
    memory = max((each.memory_max or 0 for each in own), default=0)
    disagreements = sum(each.disagreements for each in compared)
    refused = _refused(
        disagreements=disagreements,
        missing=missing,
        points=max((each.points_max or 0 for each in own), default=0),  # of turns that were not compared, too
        most_points=most_points,
        memory=memory,
        retries=sum(each.retries for each in own),
        turns=sum(each.turns for each in compared),
    )
    parts = [each for one in compared for each in one.parts]
    return Gate(
        passed=not refused,
        refused=refused,
        folder=str(folder),
        matches=len(played),
        missing=missing,
        maps=len({each.map_hash for each in played}),
        against=list(against),
        turns=sum(each.turns for each in compared),
        afresh=sum(each.afresh for each in compared),
        disagreements=disagreements,
        first_difference=None if first is None else first.line,
        case=None if place is None else str(place),
        seen=_total(each.seen for each in compared),
        points=points,
        parts={name: Spread.of([part[at] for part in parts]) for at, name in enumerate((*PARTS, "reply"))},
        memory=memory,
        weights_bytes=len(bot.blob),
        zip_bytes=len(packed),
        build_seconds=round(build_seconds, 2),
        hashes={
            "sources": bot.sources,
            "zip": hashlib.sha256(packed).hexdigest(),
            "wasm": builds.submitted.hash,
            "weights": hashlib.sha256(bot.blob).hexdigest(),
            **asdict(bot.origin),
            "engine": installed_engine_hash(),
        },
        toolkit=version("unswbc"),
    )


def gate_case(folder: str | Path, case: str | Path) -> Case | None:
    """Ask a bot again what a case tells: the case with what differs, None if nothing does.

    Raises SparringError, as `gate` and for a file that is no case.
    """
    bot, told = read_bot(folder), read_case(case)
    builds = _builds(bot, 0)
    reference = Reference(_student(bot.blob), build_of(bot.blob))
    return try_case(told, reference, builds.submitted, builds.inspection)


def _refused(
    *, disagreements: int, missing: int, points: int, most_points: int, memory: int, retries: int, turns: int
) -> list[str]:
    """What speaks against a bot."""
    lines = []
    if disagreements:
        lines.append(f"{disagreements:,} turns differ from the reference")
    if points > most_points:
        lines.append(f"a turn took {points:,} points, and {most_points:,} are the most that pass")
    if memory > MOST_MEMORY:
        lines.append(f"a turn took {memory:,} bytes of memory, and the judge gives {MOST_MEMORY:,}")
    if retries:
        lines.append(f"it crashed {retries:,} times before it said anything")
    if missing:
        lines.append(f"{missing:,} matches had no result: the same command plays them again")
    if not turns:
        lines.append("no turn was compared")
    return lines


def _total(counts: Iterable[Counter[str]]) -> dict[str, int]:
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return dict(total)


def _pool(maps: Sequence[str]) -> list[PoolMap]:
    return list({each.hash: each for name in maps for each in named_maps(name)}.values())


def _builds(bot: StudentBot, most_turns: int) -> _Builds:
    submitted = load_entrant(bot.folder)
    with tempfile.TemporaryDirectory() as place:
        files = bot.inspection() | {"bot.toml": settings()}
        for name, content in files.items():
            path = Path(place, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        inspection = load_entrant(place)
    return _Builds(
        blob=bot.blob, sources=bot.sources, submitted=submitted, inspection=inspection, most_turns=most_turns
    )


def _jobs(bot: Entrant, opponents: Sequence[Entrant], maps: Sequence[PoolMap], seed: int, count: int) -> Iterator[Job]:
    """Every map once, from the two seats in turn, against each opponent in turn; then all again with other seeds."""
    for index, (level, match_seed) in enumerate(islice(levels(maps, seed), count)):
        opponent, swapped = opponents[index % len(opponents)], index // len(opponents) % 2 == 1
        yield Job(
            a=opponent if swapped else bot,
            b=bot if swapped else opponent,
            map_name=Path(level.source.removeprefix("generated ")).stem,
            map_hash=level.hash,
            map_bytes=level.file,
            seed=match_seed,
            swapped=swapped,
        )


def _play(job: Job, *, builds: _Builds) -> PlayedMatch:
    """Play a match and compare its turns."""
    torch.set_num_threads(1)  # there are as many workers as cores
    with tempfile.TemporaryDirectory() as place:
        tape = Path(place, "match.recording")
        played = play_match(job.map_bytes, job.a, job.b, seed=job.seed, record=tape, map_name=job.map_name)
        compared = _compare(job, _lives(Recording(tape), "B" if job.swapped else "A"), builds)
    plain = {field.name: getattr(played, field.name) for field in dataclasses.fields(played)}
    return _GatedMatch(**plain, compared=compared)


@dataclass(eq=False)
class _Life:
    dragon: int
    init: bytes
    newborn: bool  # of a split
    blocks: list[bytes] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)


def _lives(recording: Recording, team: str) -> list[_Life]:
    """What the dragons of a team were told and replied."""
    lives: dict[int, _Life] = {}
    begun = False
    for event in recording:
        begun = begun or isinstance(event, Turn)
        if isinstance(event, Spawn) and f"TEAM {team}\n".encode() in event.init:
            lives[event.dragon] = _Life(event.dragon, event.init, begun)
        elif isinstance(event, Turn) and event.dragon in lives:
            lives[event.dragon].blocks.append(event.block)
            lives[event.dragon].answers.append(event.answer)
    return [life for life in lives.values() if life.blocks]


def _drawn(lives: list[_Life], most_turns: int, seed: int) -> list[_Life]:
    """Whole lives that have so many turns together, or a little more: the first one's, a newborn's, then drawn ones."""
    lives = sorted(lives, key=lambda life: hashlib.sha256(f"{seed} {life.dragon}".encode()).digest())
    first = [min(lives, key=lambda life: life.dragon), *(life for life in lives if life.newborn)][:2]
    drawn, turns = [], 0
    for life in (*first, *(life for life in lives if life not in first)):
        if most_turns and turns >= most_turns:
            break
        drawn.append(life)
        turns += len(life.blocks)
    return drawn


def _compare(job: Job, lives: list[_Life], builds: _Builds) -> _Compared:
    """All lives at once: the first turns of all, then the second ones, and so on."""
    team, build = "B" if job.swapped else "A", build_of(builds.blob)
    lives = _drawn(lives, builds.most_turns, job.seed) if lives else []
    inspected = [_inspect(life, builds.inspection, job.seed, team) for life in lives]
    reference = Reference(_student(builds.blob), build, max(1, len(lives)))
    seen: Counter[str] = Counter()
    points, parts, turns, afresh = list[int](), list[tuple[int, ...]](), 0, 0
    differing: list[Case] = []

    def differs(life: _Life, blocks: Sequence[bytes]) -> None:
        differing.append(
            Case(
                sources=builds.sources,
                map_name=job.map_name,
                map_hash=job.map_hash,
                seed=job.seed,
                team=team,
                dragon=life.dragon,
                init=life.init,
                blocks=tuple(blocks),
            )
        )

    alive = list(range(len(lives)))
    turn = 0
    while alive := [slot for slot in alive if turn < len(lives[slot].blocks)]:
        asked = [Asked(slot, lives[slot].init, lives[slot].blocks[turn]) for slot in alive]
        agreeing = []
        for (slot, _, block), known in zip(asked, reference.ask(asked), strict=True):
            life, answer, told = lives[slot], lives[slot].answers[turn], said(inspected[slot][turn].reply)
            turns += 1
            _note(seen, life, turn, known.reply)
            if told is not None and answer.points:
                points.append(answer.points)
                parts.append((*told.parts, max(0, answer.points - sum(told.parts))))
            if any(differences(known, told, answer)):
                differs(life, life.blocks[: turn + 1])
                continue
            agreeing.append(slot)
            if turn and turns % AFRESH_EVERY == 0:
                afresh += 1
                if not _same_afresh(life, block, builds, job.seed, team):
                    differs(life, [block])
        alive = agreeing
        turn += 1
    return _Compared(
        turns=turns,
        afresh=afresh,
        seen=seen,
        points=points,
        parts=parts,
        disagreements=len(differing),
        first=differing[0] if differing else None,
    )


def _note(seen: Counter[str], life: _Life, turn: int, reply: bytes) -> None:
    """Count what kind of turn it was."""
    block = life.blocks[turn]
    edges = block.split(b"DRAGON_BODIES ", 1)[-1].split(b"\n", 1)
    bodies, lines = int(edges[0]), edges[1].split(b"\n")
    seen["portals in sight"] += any(word.isdigit() for line in lines[bodies:] for word in line.split())
    seen["first turns"] += turn == 0
    seen["newborns"] += turn == 0 and life.newborn
    seen["round 400 and later"] += int(block.split(b"\n", 1)[0].split()[1]) >= 400
    seen["messages"] += b"\nNUM_MSGS 0\n" not in block
    seen["splits"] += b"SPLIT " in reply
    seen["sprints"] += len(reply.partition(b"MOVE ")[2].split(b"\n", 1)[0]) > 1


def _inspect(life: _Life, inspection: Entrant, seed: int, team: str) -> list[Answer]:
    with open_side(inspection, seed=seed, team=team) as side:
        side.spawn(life.dragon, life.init)
        return [side.reply(life.dragon, block) for block in life.blocks]


def _same_afresh(life: _Life, block: bytes, builds: _Builds, seed: int, team: str) -> bool:
    """Whether a fresh process and a reference that knows nothing agree on a turn in the middle of a life."""
    (known,) = Reference(_student(builds.blob), build_of(builds.blob)).ask([Asked(0, life.init, block)])
    with open_side(builds.submitted, seed=seed, team=team) as side:
        side.spawn(life.dragon, life.init)
        return side.reply(life.dragon, block).reply == known.reply


def _smallest(case: Case, student: IntegerStudent, builds: _Builds) -> Case:
    """The case with as few turns as a fresh process needs to differ, of 1, 2, 4 and so on."""
    count = 1
    while True:
        shorter = dataclasses.replace(case, blocks=case.blocks[-count:])
        reference = Reference(student, build_of(builds.blob))
        found = try_case(shorter, reference, builds.submitted, builds.inspection)
        if found is not None or count >= len(case.blocks):
            return found or case
        count *= 2
