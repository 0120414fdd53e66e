"""The teacher of a run in the judge: alone, served, as a player of verdicts and ladders."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny_loong import UPDATE, tiny_recipe
from tiny_runs import TINY

import sparring
from sparring import _core
from sparring.errors import SparringError
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.match import play_match
from sparring.judge.records import Records
from sparring.judge.schedule import Job, read_maps, schedule
from sparring.judge.teachers import play_taught, weights_path
from sparring.judge.work import entrant_here, play_missing

SILENT = Console(quiet=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, `one` and `two`, and a folder of maps."""
    place = tmp_path_factory.mktemp("teachers")
    recipe = tiny_recipe(place, decisions=UPDATE)
    for name, seed in (("one", 1), ("two", 2)):
        sparring.train(recipe, run=place / name, seed=seed, console=SILENT)
    return place


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv("SPARRING_RUNS", str(place))


@pytest.fixture
def one(place: Path) -> Entrant:
    return load_entrant("one")


def jobs(one: Entrant, other: Entrant, place: Path, matches: int = 4) -> list[Job]:
    return list(schedule([one, other], read_maps(str(place / "maps")), seed=3, matches=matches))


def test_a_run_is_a_player_by_name_and_by_path(place: Path, one: Entrant) -> None:
    assert (one.name, one.kind, one.path) == ("one", "teacher", weights_path(one.hash))
    assert load_entrant(place / "one") == one == load_entrant(str(place / "one"))
    assert load_entrant("two").hash != one.hash
    trained = sparring.load_teacher("one")
    assert (trained.hash, trained.decisions) == (one.hash, UPDATE)


def test_its_weights_stay_when_training_goes_on(tmp_path: Path, place: Path, one: Entrant) -> None:
    shutil.copytree(place / "one", tmp_path / "one")
    before = load_entrant(tmp_path / "one")
    assert before.hash == one.hash
    recipe = tiny_recipe(place, decisions=2 * UPDATE, seed=1)
    sparring.train(recipe, run=tmp_path / "one", console=SILENT)
    assert load_entrant(tmp_path / "one").hash != before.hash
    assert before.path is not None and before.path.exists()


def test_served_and_alone_it_plays_the_same_matches(place: Path, one: Entrant) -> None:
    """Both seats, against a scripted player and against another teacher."""
    for other, maps, least in (
        (load_entrant("legal"), "generated:0:2", 200),
        (load_entrant("two"), str(place / "maps"), 10),
    ):
        played = list(play_taught(schedule([one, other], read_maps(maps), seed=3, matches=4)))
        assert len(played) == 4
        assert sum(match.turns for _, match in played) > least
        for job, match in played:
            assert match == play_match(job.map_bytes, job.a, job.b, seed=job.seed, map_name=job.map_name)
            assert {match.a.kind, match.b.kind} == {one.kind, other.kind}


def test_it_plays_the_most_probable_choice_of_what_it_is_told(place: Path, one: Entrant) -> None:
    """Against a replay of its own turns, by the text path of the core and the network."""
    teacher = sparring.load_teacher("one").teacher
    lives: dict[int, tuple[bytes, _core.LoongDragons, torch.Tensor]] = {}
    asked = 0

    class Side:
        retries = 0

        def spawn(self, dragon: int, init: bytes) -> None:
            lives[dragon] = init, _core.LoongDragons(), teacher.newborn(1)
            side.spawn(dragon, init)

        def reply(self, dragon: int, block: bytes) -> object:
            nonlocal asked
            asked += 1
            init, told, memory = lives[dragon]
            inputs, mask = (torch.from_numpy(row)[None] for row in told.observe(init, block))
            tree, after = teacher.step(inputs, mask, memory)
            lives[dragon] = init, told, after
            answer = side.reply(dragon, block)
            assert answer.reply == told.act(int(tree.mode()))
            return answer

        def died(self, dragon: int) -> None:
            side.died(dragon)

        def close(self) -> None:
            side.close()

    from sparring.judge.match import referee
    from sparring.judge.sides import ScriptedSide
    from sparring.judge.teachers import TeacherSide

    assert one.path is not None
    threads = torch.get_num_threads()
    side = TeacherSide(one.path)
    job = jobs(one, load_entrant("legal"), place)[0]
    other = ScriptedSide("legal", seed=job.seed)
    referee(job.map_bytes, (one, Side()), (load_entrant("legal"), other), seed=job.seed)  # type: ignore[arg-type]
    side.close()
    assert asked > 5
    assert torch.get_num_threads() == threads


def test_matches_of_teachers_are_kept_on_record_beside_others(tmp_path: Path, place: Path, one: Entrant) -> None:
    with Records(tmp_path) as records:
        todo = [
            *jobs(one, load_entrant("legal"), place, 2),
            *jobs(load_entrant("hunter"), load_entrant("legal"), place, 2),
        ]
        assert len(list(play_missing(todo, records, workers=1))) == 4
        assert len(list(play_missing(todo, records, workers=1))) == 0
        assert {records.get(job).a.kind for job in todo} == {"teacher", "scripted"}  # type: ignore[union-attr]


def test_rows_of_choices_are_the_replies_of_single_ones() -> None:
    game = sparring.make("loong", lanes=3, seed=1, maps="generated:0:2")
    rows = game.decisions()
    one, many = _core.LoongDragons(), _core.LoongDragons(8)
    slots = np.array([5, 0, 7])
    identities = np.array([[int(d), int(t), 64, 64, 30] for d, t in zip(rows.dragon, rows.team, strict=True)], np.int32)
    views = rows.obs.numpy().copy()
    many.observe_views(slots, identities, views)
    choices = np.array([_core.loong_pack(3, "move", turn, 0, [], 25) for turn in (0, 1, 2)])
    actions = many.act_rows(choices, slots)
    for at in range(3):
        one.forget()
        one.observe_views(np.zeros(1, np.int64), identities[at : at + 1], views[at : at + 1])
        assert _core.loong_reply(actions[at].tobytes()) == one.act(int(choices[at]))
    with pytest.raises(ValueError, match="there must be a choice for each slot"):
        many.act_rows(choices, slots[:2])


def test_a_teacher_of_another_machine_is_kept_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Entrant
) -> None:
    assert one.path is not None
    content = one.path.read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    here = entrant_here(replace(one, path=Path("/nowhere")), content)
    assert here == replace(one, path=weights_path(one.hash))
    assert here.path is not None and here.path.read_bytes() == content


def test_who_cannot_play_is_one_line(place: Path, tmp_path: Path) -> None:
    with pytest.raises(
        SparringError, match=r"no player onee: there is no such bot folder, \.zip, \.wasm or run; did you mean"
    ):
        load_entrant("onee")
    sparring.train(replace(TINY, decisions=2), run=tmp_path / "rally", console=SILENT)
    with pytest.raises(SparringError, match="run rally plays tennis: no player of loong"):
        load_entrant(tmp_path / "rally")
    with pytest.raises(SparringError, match=r"run one plays loong: sparring.load_teacher loads it"):
        sparring.load("one")
