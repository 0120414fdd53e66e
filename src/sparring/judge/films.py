"""A match as a film: every round of a replay as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparring import _core
from sparring.errors import SparringError
from sparring.games.loong_rows import LANE
from sparring.judge.entrants import load_entrant
from sparring.judge.match import PlayedMatch, load_map, play_match
from sparring.judge.native import load_level
from sparring.judge.replay_format import Replay, read_replay
from sparring.judge.replays import check_playable, replies
from sparring.judge.teachers import teacher_entrant
from sparring.levels.maps import read_map
from sparring.pictures.animation import check_suffix, write_frames
from sparring.pictures.board import BoardDragon, draw_board
from sparring.pictures.court import Image8
from sparring.runs.folder import find_run

SIDE, FRAMES_PER_SECOND, MOST_FRAMES = 480, 12, 240


@dataclass(frozen=True, eq=False)
class Moment:
    """The board at the start of a round, and `over` at the end of a match. pearls: bool [height, width]."""

    round: int
    dragons: tuple[BoardDragon, ...]
    pearls: NDArray[np.bool_]
    over: bool = False


@dataclass(frozen=True, kw_only=True)
class Filmed:
    """A match that was played, and where its replay and its picture are."""

    played: PlayedMatch
    replay: Path
    picture: Path


def moments(replay: Replay) -> Iterator[Moment]:
    """Each round of a match, by playing its replay again. Raises SparringError where our engine cannot, or where other
    dragons are then asked than in the replay."""
    check_playable(replay)
    assert replay.seed is not None
    matches = _core.LoongMatches([load_level(replay.map)], 1)
    matches.restart(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([replay.seed], np.uint64))
    standing = matches.rows.view(LANE)[0]

    def moment(over: bool = False) -> Moment:
        dragons = tuple(BoardDragon(id, team, body, facing) for id, _, team, facing, body in matches.dragons(0))
        return Moment(int(standing["round"][0]), dragons, matches.pearls(0).astype(bool), over)

    shown = -1
    for dragon, reply in replies(replay.events):
        if not standing["waiting"][0] or standing["dragon"][0] != dragon:
            raise SparringError(
                f"our engine leaves this match in round {standing['round'][0]}, turn of dragon {dragon}: "
                "sparring replay check tells more"
            )
        if standing["round"][0] != shown:
            shown = int(standing["round"][0])
            yield moment()
        matches.reply(0, reply)
    yield moment(over=True)


def film(replay: Path, picture: Path, *, title: str) -> None:
    """Write a replay as an animated picture, .gif or .mp4; long matches show every second round, or fewer.

    Raises SparringError for a damaged replay, another ending, and where the picture cannot be written.
    """
    check_suffix(picture)
    match = read_replay(replay)
    loong_map = read_map(match.map)
    rounds = list(moments(match))
    chosen = [*rounds[: -1 : -(-len(rounds) // MOST_FRAMES)], rounds[-1]]

    def frames() -> Iterator[Image8]:
        for at in chosen:
            caption = f"round {at.round}"
            if at.over:
                caption += f": {f'{match.result.winner} wins' if match.result.winner else 'nobody wins'}"
            yield draw_board(
                loong_map, dragons=at.dragons, pearls=at.pearls, title=title, caption=caption, side=SIDE, key=False
            )

    write_frames(frames(), len(chosen), picture, fps=FRAMES_PER_SECOND)


def play_teacher(
    run: str | Path,
    *,
    map: str = "arena",
    against: str | Path | None = None,
    seed: int = 0,
    out: Path | None = None,
) -> Filmed:
    """Play one match in the judge, the teacher of a run as team A, and film it.

    map:     a file, or the name of a map that ships with the judge
    against: team B, as `load_entrant` takes it; None: the teacher again
    out:     the picture, .gif or .mp4, by default `match.gif` in the run's folder; the replay lies beside it

    Raises SparringError, as `play_match` and `film` do.
    """
    picture = find_run(run).path / "match.gif" if out is None else out
    replay = picture.with_suffix(".replay")
    check_suffix(picture)
    name, map_bytes = load_map(map)
    player = teacher_entrant(run)
    opponent = player if against is None else load_entrant(against)
    played = play_match(map_bytes, player, opponent, seed=seed, replay=replay, map_name=name)
    film(replay, picture, title=f"{player.name} (red) and {opponent.name} (blue) on {name}")
    return Filmed(played=played, replay=replay, picture=picture)
