"""The proof that our engine is the organisers': both play the same match, and every byte is compared.

The organisers' engine runs the match. Each time it announces a dragon, asks one or reports a death, ours must do the
same with the same bytes, and both get the same reply. The first difference ends the run and is written to a file.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import Any

from sparring import _core
from sparring.errors import SparringError
from sparring.judge.native import DEBUG_ALL, DEBUG_LIMITS, load_level
from sparring.judge.official import JUDGE_ENGINE_SHA256, official_engine, release
from sparring.judge.players import POLICIES, Player, Policy
from sparring.levels.maps import read_map

Event = tuple[Any, ...]
"""("spawn", id, init), ("ask", id, block), ("death", id, round, letter) or ("end", the judge's twelve numbers)."""

ENGINES = {"core": _core.source_hash, "judge": JUDGE_ENGINE_SHA256}
"""Hashes of the two engines: what a run says holds for these."""

DEBUGS = (DEBUG_ALL, DEBUG_ALL | DEBUG_LIMITS, 0, 5, 10)
"""Debug masks of the games in turn."""


class Difference(SparringError):
    """The engines differ. `official` and `ours` are what they said last; `replies` is all that both heard before."""

    def __init__(self, official: Event, ours: Event, replies: list[tuple[int, bytes]]) -> None:
        super().__init__(
            f"the engines differ after {len(replies)} replies: official {_brief(official)}, ours {_brief(ours)}"
        )
        self.official, self.ours, self.replies = official, ours, replies


@dataclass(frozen=True)
class Compared:
    """One match that both engines played alike."""

    turns: int
    rounds: int
    coverage: dict[str, int]


@dataclass
class Report:
    """What a run compared: matches, turns, rounds, and how often everything in `coverage` happened."""

    games: int = 0
    turns: int = 0
    rounds: int = 0
    full_games: int = 0
    coverage: Counter[str] = field(default_factory=Counter)

    def add(self, game: Compared) -> None:
        self.games += 1
        self.turns += game.turns
        self.rounds += game.rounds
        self.full_games += game.rounds == 500
        self.coverage.update(game.coverage)

    @property
    def never(self) -> list[str]:
        """What never happened, so that nothing is proved about it."""
        return [name for name in _core.LOONG_COVERAGE if not self.coverage[name]]


def compare(
    map_bytes: bytes,
    seed: int,
    reply: Callable[[int, bytes], bytes],
    *,
    spawn: Callable[[int, bytes], None] | None = None,
    debug: int = DEBUG_ALL,
    official: Any = None,
) -> Compared:
    """Play one match in both engines with the replies of `reply(id, block)`.

    `spawn(id, init)` hears of every dragon first. `official` is an EngineModule; by default this process's own.
    Raises Difference at the first byte that is not the same, RuntimeError if both refuse the map with one text.
    """
    replies: list[tuple[int, bytes]] = []
    official = official or official_engine()
    refusal = ""
    try:
        match = _core.LoongTextMatch(load_level(map_bytes), seed, debug)
    except RuntimeError as error:
        refusal = str(error)

    def expect(*event: Any) -> None:
        ours = ("refuses", refusal) if refusal else match.next()
        if ours != event:
            raise Difference(event, ours, replies)

    def on_spawn(dragon: int, init: bytes) -> None:
        expect("spawn", dragon, init)
        if spawn is not None:
            spawn(dragon, init)

    def on_ask(dragon: int, block: bytes) -> bytes:
        expect("ask", dragon, block)
        if not match.views_agree():
            raise Difference(("view", "from text"), ("view", "from state"), replies)
        answer = reply(dragon, block)
        replies.append((dragon, answer))
        match.reply(answer)
        return answer

    try:
        result = official.run(
            map_bytes, on_ask, lambda *death: expect("death", *death), on_spawn, lambda _: None, debug, seed
        )
    except RuntimeError as error:
        if replies or str(error) != refusal:
            raise Difference(("refuses", str(error)), ("refuses", refusal), replies) from error
        raise
    finally:
        release(official)
    winner = {None: 0, "A": 1, "B": 2}[result.winner]
    expect("end", (result.rounds, winner, *list(vars(result).values())[2:]))
    return Compared(turns=len(replies), rounds=result.rounds + 1, coverage=match.coverage())


@dataclass(frozen=True)
class Game:
    """One match of a run: everything that decides it."""

    index: int
    map_file: str
    seed: int
    policy: str
    debug: int

    def play(self) -> Compared:
        """Compare the engines on this match. Raises Difference."""
        player = Player(self.seed, self.policy)
        map_bytes = Path(self.map_file).read_bytes()
        return compare(map_bytes, self.seed, player.reply, spawn=player.spawn, debug=self.debug)


def lockstep(
    maps: Sequence[str | Path] | str | Path,
    games: int,
    *,
    seed: int = 0,
    policy: str = "mixed",
    jobs: int = 1,
    folder: str | Path = "lockstep",
    on_game: Callable[[Report], None] | None = None,
) -> Report:
    """Compare the engines on `games` matches, over the maps in turn.

    maps: map files, or a folder of them. policy: "careful", "reckless" or "mixed". jobs: processes. Finished games
    are noted in a file in `folder`: the same call again goes on where it stopped. `on_game` sees the report grow.
    Raises Difference after writing a reproduction to `folder`, for `reproduce`.
    """
    files = sorted(Path(maps).glob("*.map")) if isinstance(maps, str | Path) else [Path(file) for file in maps]
    if not files:
        raise SparringError(f"no maps in {maps}: name a folder with .map files")
    if policy not in POLICIES:
        raise SparringError(f"unknown policy {policy!r}: one of {', '.join(POLICIES)}")
    if games < 1 or jobs < 1 or not 0 <= seed < 2**64:
        raise SparringError(
            f"games = {games}, jobs = {jobs}, seed = {seed}: the first two are 1 or more, seeds below 2^64"
        )
    for file in files:
        read_map(file)  # with its name and line if it is faulty; what both engines say of such maps, `compare` compares
        try:
            load_level(file.read_bytes())
        except RuntimeError as error:  # more tiles or dragons than a lane can have
            raise SparringError(f"{file}: {error}") from None
    official_engine()  # before any process starts: it may be missing, or not yet compiled
    plan = [
        Game(i, str(files[i % len(files)]), _core.mix64(_core.mix64(seed) ^ i), policy, DEBUGS[i % len(DEBUGS)])
        for i in range(games)
    ]
    journal = _Journal(Path(folder), files, seed, policy)
    report = Report()
    finished = set()
    for index, done in journal.read():
        if index < games and index not in finished:
            report.add(done)
            finished.add(index)
    for game, compared in _play([game for game in plan if game.index not in finished], jobs, Path(folder)):
        report.add(compared)
        journal.add(game, compared)
        if on_game is not None:
            on_game(report)
    return report


def reproduce(file: str | Path) -> None:
    """Play the match of a reproduction again. Raises Difference if the engines still differ."""
    try:
        saved = loads(Path(file).read_text())
        texts = iter([text.encode("latin-1") for _dragon, text in saved["replies"]])
        map_bytes, seed, debug = saved["map"].encode("latin-1"), int(saved["seed"]), int(saved["debug"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SparringError(f"{file} is no reproduction of a difference: {error}") from error
    compare(map_bytes, seed, lambda _dragon, _block: next(texts, b""), debug=debug)


def run_lockstep(
    maps: Path,
    *,
    games: int = 72,
    seed: int = 0,
    policy: Policy = "mixed",
    jobs: int = 1,
    out: Path = Path("lockstep"),
    json: bool = False,
) -> int:
    """Compare our engine with the organisers' on many matches, and print how far they agree. Returns 0.

    Args:
        maps: A folder of .map files.
        games: Matches, over the maps in turn.
        seed: Of the run: every match has a seed of its own from it.
        policy: Who plays: careful players live long, reckless ones die of everything.
        jobs: Processes.
        out: Folder for the journal, from which the same command goes on, and for a reproduction if they differ.
        json: Print the figures as JSON.
    """
    started = said = time.monotonic()

    def say(report: Report) -> None:
        nonlocal said
        if time.monotonic() - said > 10:
            said = time.monotonic()
            rate = report.turns / (said - started)
            print(
                f"{report.games:,} of {games:,} games alike: {report.turns:,} turns", f"{rate:,.0f}/s", file=sys.stderr
            )

    report = lockstep(maps, games, seed=seed, policy=policy, jobs=jobs, folder=out, on_game=say)
    if json:
        print(dumps({**vars(report), "never": report.never, **ENGINES}, indent=2))
        return 0
    print(f"{report.games:,} games alike, {report.full_games:,} of them over all rounds: {report.turns:,} turns")
    print(f"core {ENGINES['core']:.12}, the organisers' engine {ENGINES['judge']:.12}")
    for name in _core.LOONG_COVERAGE:
        print(f"  {name:28}{report.coverage[name]:>14,}")
    if report.never:
        print(f"never met, so not compared: {', '.join(report.never)}")
    return 0


def _play(games: Iterable[Game], jobs: int, folder: Path) -> Iterator[tuple[Game, Compared]]:
    try:
        if jobs == 1:
            for game in games:
                yield game, game.play()
            return
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            try:
                running = [(game, pool.submit(_play_elsewhere, game)) for game in games]
                for game, future in running:
                    outcome = future.result()
                    if isinstance(outcome, Compared):
                        yield game, outcome
                    else:
                        raise Difference(*outcome)
            finally:
                pool.shutdown(cancel_futures=True)
    except BrokenProcessPool:
        raise SparringError("a process of the run was killed; with fewer --jobs the same call goes on") from None
    except Difference as difference:
        path = _write_reproduction(game, difference, folder)
        difference.args = (f"{Path(game.map_file).name}, seed {game.seed}: {difference}; replayed by {path}",)
        raise


def _play_elsewhere(game: Game) -> Compared | tuple[Event, Event, list[tuple[int, bytes]]]:
    try:
        return game.play()
    except Difference as difference:  # as plain data: exceptions with arguments do not survive the way back
        return difference.official, difference.ours, difference.replies


def _write_reproduction(game: Game, difference: Difference, folder: Path) -> Path:
    path = folder / f"difference-{Path(game.map_file).stem}-{game.seed:016x}.json"
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "map": Path(game.map_file).read_bytes().decode("latin-1"),
        "seed": game.seed,
        "debug": game.debug,
        "replies": [[dragon, reply.decode("latin-1")] for dragon, reply in difference.replies],
        "official": repr(difference.official),
        "ours": repr(difference.ours),
        **ENGINES,
    }
    path.write_text(dumps(content, indent=1))
    return path


class _Journal:
    """One line of JSON per finished game, under a name that stands for all that decides a run."""

    def __init__(self, folder: Path, files: list[Path], seed: int, policy: str) -> None:
        maps = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()
        self.path = folder / f"{policy}-seed-{seed}-maps-{maps[:12]}-core-{_core.source_hash[:12]}.jsonl"

    def read(self) -> list[tuple[int, Compared]]:
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):  # the run was killed as it wrote
            os.truncate(self.path, whole)
        games = []
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                game = loads(line)
                games.append((int(game["game"]), Compared(game["turns"], game["rounds"], dict(game["coverage"]))))
            except (ValueError, KeyError, TypeError) as error:
                raise SparringError(f"{self.path}:{number}: no game of a run: remove the line ({error!r})") from error
        return games

    def add(self, game: Game, compared: Compared) -> None:
        line = {"game": game.index, "map": Path(game.map_file).name, "seed": game.seed}
        line |= {"turns": compared.turns, "rounds": compared.rounds, "judge": JUDGE_ENGINE_SHA256[:12]}
        line |= {"coverage": {name: count for name, count in compared.coverage.items() if count}}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(dumps(line) + "\n")
        except OSError as error:
            raise SparringError(
                f"cannot write {self.path}: {error.strerror or error}; make room or choose another --out, then go on"
            ) from error


def _brief(event: Event) -> str:
    text = repr(event)
    return text if len(text) < 200 else f"{text[:200]}... ({len(text)} characters)"
