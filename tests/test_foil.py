"""The foil: the same in lanes and in the judge, whatever the map; its folder; what it wishes for."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from loong_maps import random_map, simple_map
from numpy.typing import NDArray

from sparring import _core
from sparring.cli import main
from sparring.errors import SparringError
from sparring.judge import folder
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.foil import write_foil
from sparring.judge.folder import bot_sources
from sparring.judge.native import load_level
from sparring.judge.sides import open_side
from sparring.kernels import core_folder

ACTION, LANE = np.dtype(_core.LOONG_ACTION), np.dtype(_core.LOONG_LANE)
USUAL = np.array([list(_core.LOONG_FOIL.values())], np.int32)
SOMEBODY_ELSE = 255
MOST_POINTS = 40_000_000


def lanes_of(levels: list[_core.LoongLevel], lanes: int, threads: int = 1) -> _core.LoongMatches:
    return _core.LoongMatches(
        levels, lanes, threads=threads, knowledge=True, mirror="never", build=_core.LOONG_FOIL_BUILD
    )


def play_out(batch: _core.LoongMatches, foils: NDArray[np.uint8], others: str) -> NDArray[np.void]:
    """Play all lanes to their end, `others` where `foils` names nobody; the rows then."""
    rows, actions = batch.rows.view(LANE)[:, 0], np.zeros((batch.lanes, ACTION.itemsize), np.uint8)
    script = _core.LOONG_SCRIPTS.index(others)
    scripts = np.where(foils == SOMEBODY_ELSE, script, 255).astype(np.uint8)
    while rows["waiting"].any():
        batch.decide_foil(foils, USUAL, actions)
        batch.decide(scripts, 1, actions)
        batch.act(actions)
    assert not rows["fault"].any()
    return rows.copy()


@pytest.fixture(scope="module")
def foil(tmp_path_factory: pytest.TempPathFactory) -> Entrant:
    folder = tmp_path_factory.mktemp("bots") / "foil"
    assert main(["bot", "foil", "--out", str(folder)]) == 0
    return load_entrant(folder)


def corner(width: int, height: int) -> bytes:
    """Two teams around a corner of the board, pearls and walls there, portals that lead far away."""
    tiles = [f"TILE {x} {y} 1 {3 + (x * y) % 9}" for x in range(6) for y in range(6)]
    row = width + 1
    edges = [f"EDGE {2 * y * row + 2} 1 0" for y in range(2, 5)]
    edges += [f"EDGE {2 * 3 * row + 4} 2 7", f"EDGE {2 * (height - 1) * row + width - 1} 2 7"]
    far = f"{width - 1} {height - 1} {width - 2} {height - 1}"
    dragons = ("0 4 1 1 0 1 0 0 1 0", "1 3 5 5 4 5 4 4", f"0 2 {far}", "1 2 3 0 3 1")
    return simple_map(f"{width} {height}", dragons, (*tiles, *edges))


@pytest.mark.parametrize(
    ("map_bytes", "turns"),
    [
        (random_map(random.Random(11)), 150),
        (random_map(random.Random(4)), 150),
        (corner(7, 7), 100),
        (corner(256, 256), 80),
    ],
    ids=["random", "another", "smallest", "largest"],
)
def test_lanes_and_judge_play_the_same(foil: Entrant, map_bytes: bytes, turns: int) -> None:
    batch = lanes_of([load_level(map_bytes)], 1)
    batch.restart(np.array([0]), np.array([0]), np.array([5], np.uint64))
    rows, action = batch.rows.view(LANE)[:, 0], np.zeros((1, ACTION.itemsize), np.uint8)
    born: set[int] = set()
    with open_side(foil, seed=5, team="A") as side:
        for turn in range(turns):
            if not rows["waiting"][0]:
                assert turn > 20
                break
            dragon, block = int(rows["dragon"][0]), batch.block(0)
            if dragon not in born:
                born.add(dragon)
                side.spawn(dragon, batch.init(0))
            batch.decide_foil(np.zeros((1, 2), np.uint8), USUAL, action)
            answer = side.reply(dragon, block)
            assert answer.error is None
            assert answer.reply == _core.loong_reply(action.tobytes()), f"turn {turn}"
            assert answer.points < MOST_POINTS
            batch.act(action)
        assert side.retries == 0


def test_a_fresh_process_in_the_middle_of_a_match_plays_on(foil: Entrant) -> None:
    batch = lanes_of([load_level(random_map(random.Random(11)))], 1)
    rows, action = batch.rows.view(LANE)[:, 0], np.zeros((1, ACTION.itemsize), np.uint8)
    for _ in range(60):
        batch.decide_foil(np.zeros((1, 2), np.uint8), USUAL, action)
        batch.act(action)
    init, block = batch.init(0), batch.block(0)
    replies = []
    for _ in range(2):
        with open_side(foil, seed=5, team="A") as side:
            side.spawn(int(rows["dragon"][0]), init)
            replies.append(side.reply(int(rows["dragon"][0]), block).reply)
    assert replies[0] == replies[1]
    assert replies[0].startswith((b"MOVE", b"SPLIT", b"PROTOCOL"))


def test_lanes_do_not_depend_on_each_other() -> None:
    levels = [load_level(random_map(random.Random(seed))) for seed in range(4)]
    order = np.arange(6)

    def ends(threads: int, lane: NDArray[np.int64]) -> NDArray[np.void]:
        batch = lanes_of(levels, 6, threads)
        batch.restart(lane, order % 4, order.astype(np.uint64))
        return play_out(batch, np.tile(np.array([0, SOMEBODY_ELSE], np.uint8), (6, 1)), "reckless")[lane]

    assert (ends(1, order) == ends(3, order[::-1].copy())).all()


def test_the_foil_plays_well() -> None:
    """How well against better players is measured by bench/foil.py: that takes more matches."""
    levels, lanes = [load_level(random_map(random.Random(seed))) for seed in range(12)], np.arange(24)
    batch = lanes_of(levels, 24)
    batch.restart(lanes, lanes // 2, lanes.astype(np.uint64) // 2)  # two matches differ in seats only
    foils = np.full((24, 2), SOMEBODY_ELSE, np.uint8)
    foils[lanes, lanes % 2] = 0
    won = np.count_nonzero(play_out(batch, foils, "legal")["winner"] == 1 + lanes % 2)
    assert won >= 17, f"won {won} of 24"


def test_what_is_no_foil_is_refused() -> None:
    level = [load_level(random_map(random.Random(1)))]
    foils, action = np.zeros((1, 2), np.uint8), np.zeros((1, ACTION.itemsize), np.uint8)
    with pytest.raises(RuntimeError, match="without knowledge=True"):
        _core.LoongMatches(level, 1).decide_foil(foils, USUAL, action)
    batch = lanes_of(level, 1)
    with pytest.raises(ValueError, match="there are only 1 rows of wishes"):
        batch.decide_foil(foils + 1, USUAL, action)
    with pytest.raises(ValueError, match=f"1 to 255 rows of {len(_core.LOONG_FOIL)}"):
        batch.decide_foil(foils, USUAL[:, 1:].copy(), action)
    with pytest.raises(ValueError, match=r"wishes_of must be \[lanes, 2\]"):
        batch.decide_foil(foils[:, :1].copy(), USUAL, action)
    never = USUAL.copy()
    never[0, list(_core.LOONG_FOIL).index("tiles_per_unit")] = 0
    with pytest.raises(ValueError, match="out of range"):
        batch.decide_foil(foils, never, action)


def test_a_bot_folder_is_complete_and_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "made" / "foil"
    whole = write_foil(out)
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    sources = bot_sources("foil")
    assert {**sources, "bot.toml": files["bot.toml"], "README.md": files["README.md"]} == files
    listed = "".join(f"{hashlib.sha256(sources[name]).hexdigest()}  {name}\n" for name in sorted(sources))
    assert listed in files["README.md"].decode()
    assert hashlib.sha256(listed.encode()).hexdigest() == whole
    assert [path.name for path in out.parent.iterdir()] == ["foil"]
    with pytest.raises(SparringError, match="is there already: give a folder that is new or empty"):
        write_foil(out)
    (tmp_path / "file").write_text("")
    with pytest.raises(SparringError, match="cannot write"):
        write_foil(tmp_path / "file" / "foil")


def test_its_name_is_a_player(foil: Entrant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_entrant("foil") == foil
    with pytest.raises(SparringError, match="did you mean foil"):
        load_entrant("foill")
    (tmp_path / "foil").mkdir()
    with pytest.raises(SparringError):  # a path goes before a name
        load_entrant("foil")


def test_another_header_is_another_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(core_folder(), tmp_path / "core")
    monkeypatch.setattr(folder, "core_folder", lambda: tmp_path / "core")
    before = bot_sources("foil")
    with (tmp_path / "core" / "loong" / "memory.h").open("a") as header:
        header.write("// changed\n")
    after = bot_sources("foil")
    assert {name for name in before if before[name] != after[name]} == {"main.cpp", "loong/memory.h"}
    assert before["main.cpp"].splitlines()[1:] == after["main.cpp"].splitlines()[1:]
