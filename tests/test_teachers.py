"""The teacher of a run in the judge: alone, served, as a player of verdicts and ladders."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from tiny_loong import UPDATE, tiny_recipe
from tiny_runs import TINY

import sparring
from sparring import _core
from sparring.cache import cache_folder
from sparring.cli import main
from sparring.errors import SparringError
from sparring.judge.entrants import Entrant, load_entrant
from sparring.judge.films import Filmed, moments, play_teacher
from sparring.judge.match import PlayedMatch, play_match
from sparring.judge.records import Records, load_records
from sparring.judge.replay_format import read_replay
from sparring.judge.schedule import Job, schedule
from sparring.judge.statistics import wilson
from sparring.judge.teachers import play_taught
from sparring.judge.versus import Versus, evaluate_teacher
from sparring.judge.work import entrant_here, play_missing
from sparring.levels.maps import read_map
from sparring.levels.pool import named_maps

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
    return list(schedule([one, other], named_maps(str(place / "maps")), seed=3, matches=matches))


def test_a_run_is_a_player_by_name_and_by_path(place: Path, one: Entrant) -> None:
    assert (one.name, one.kind) == ("one", "teacher")
    assert one.path == cache_folder() / "teachers" / f"{one.hash}.pt"
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
    for other, maps, matches, least in (
        (load_entrant("legal"), "generated:0:2", 2, 200),
        (load_entrant("two"), str(place / "maps"), 4, 10),
    ):
        played = list(play_taught(schedule([one, other], named_maps(maps), seed=3, matches=matches)))
        assert len(played) == matches
        assert sum(match.turns for _, match in played) > least
        for job, match in played:
            assert match == play_match(job.map_bytes, job.a, job.b, seed=job.seed, map_name=job.map_name)
            assert {match.a.kind, match.b.kind} == {one.kind, other.kind}


def test_it_plays_the_most_probable_choice_of_what_it_is_told(place: Path, one: Entrant) -> None:
    """Against a replay of its own turns, by the text path of the core and the network."""
    teacher = sparring.load_teacher("one").teacher
    threads = torch.get_num_threads()
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
    legal = load_entrant("legal")
    for job in jobs(one, legal, place):
        side = TeacherSide(one.path)
        other = ScriptedSide("legal", seed=job.seed)
        referee(job.map_bytes, (one, Side()), (legal, other), seed=job.seed)  # type: ignore[arg-type]
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
    assert here.path == tmp_path / "there" / "sparring" / "teachers" / one.path.name
    assert (here, here.path.read_bytes()) == (replace(one, path=here.path), content)


def test_old_copies_of_teachers_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one = load_entrant("one").path
    assert one is not None
    monkeypatch.setattr("sparring.cache.MOST_KEPT_BYTES", one.stat().st_size)
    os.utime(one, (0, 0))
    load_entrant("one")  # in use
    two = load_entrant("two").path
    assert two is not None and one.exists() and two.exists()
    os.utime(one, (0, 0))
    two.unlink()
    load_entrant("two")
    assert two.exists() and not one.exists()


def test_an_evaluation_counts_both_seats_and_goes_on_where_it_stopped(tmp_path: Path, place: Path) -> None:
    heard: list[tuple[int, int]] = []

    def stop(done: int, whole: int) -> None:
        heard.append((done, whole))
        if done == 2:
            raise KeyboardInterrupt

    maps = str(place / "maps")
    shutil.copytree(place / "one", tmp_path / "one")
    run = tmp_path / "one"
    some = evaluate_teacher(run, against="forager", maps=maps, matches=4, workers=1, on_match=stop)
    assert (some.matches, some.missing, heard) == (2, 2, [(0, 4), (1, 4), (2, 4)])
    whole = evaluate_teacher(run, against="forager", maps=maps, matches=4, workers=1)
    assert whole.records == run / "matches" / "matches.jsonl"
    played = [record for record in load_records(whole.records) if isinstance(record, PlayedMatch)]
    assert (whole.matches, whole.missing, len(played)) == (4, 0, 4)
    won = sum(record.winner == ("A" if record.a.name == "one" else "B") for record in played)
    drawn = sum(record.winner is None for record in played)
    assert (whole.wins, whole.draws, whole.losses) == (won, drawn, 4 - won - drawn)
    assert whole.score == (won + drawn / 2) / 4
    assert (whole.low, whole.high) == wilson(won + drawn / 2, 4)
    assert whole.seats[0] is not None and whole.seats[1] is not None
    assert sum(whole.seats) / 2 == whole.score  # type: ignore[arg-type]
    mine = [record.a if record.a.name == "one" else record.b for record in played]
    theirs = [record.b if record.a.name == "one" else record.a for record in played]
    assert whole.total == (sum(each.total for each in mine) / 4, sum(each.total for each in theirs) / 4)
    assert json.loads(json.dumps(whole.json()))["opponent"] == "forager"


def test_a_match_is_filmed_round_by_round(tmp_path: Path, place: Path) -> None:
    arena = place / "maps" / "wide.map"
    gif, replay = tmp_path / "a.gif", tmp_path / "a.replay"
    filmed = play_teacher("one", map=str(arena), against="forager", seed=4, out=gif)
    assert (filmed.picture, filmed.replay) == (gif, replay)
    shown = list(moments(read_replay(replay)))
    assert [at.round for at in shown] == [*range(filmed.played.rounds), filmed.played.rounds - 1]
    assert [at.over for at in shown] == [False] * filmed.played.rounds + [True]
    start = read_map(arena).dragons
    assert [dragon.body.tolist() for dragon in shown[0].dragons] == [dragon.body.tolist() for dragon in start]
    for team, result in ((0, filmed.played.a), (1, filmed.played.b)):
        left = [dragon for dragon in shown[-1].dragons if dragon.team == team]
        assert (len(left), sum(len(dragon.body) for dragon in left)) == (result.dragons, result.total)
    with Image.open(gif) as picture:
        assert picture.n_frames == len(shown)  # type: ignore[attr-defined]
    with pytest.raises(SparringError, match=r"written as \.gif or \.mp4, not as 'a.png'; try a.gif"):
        play_teacher("one", map=str(arena), out=tmp_path / "a.png")
    assert main(["replay", "film", str(replay), "--out", str(tmp_path / "again.gif")]) == 0
    with Image.open(tmp_path / "again.gif") as again:
        assert again.n_frames == len(shown)


def test_the_verbs_of_runs_play_loong_in_the_judge(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maps = str(place / "maps")
    command = ["evaluate", "one", "--against", "two", "--maps", maps, "--matches", "2", "--out", str(tmp_path)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"one against two: 2 matches on {maps} maps, score ")
    assert "(95% interval " in out and "at the end, own and opponent's: queen " in out
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["matches"], told["opponent_hash"]) == (2, load_entrant("two").hash)
    picture = tmp_path / "film.gif"
    assert main(["play", "one", "--map", f"{maps}/small.map", "--out", str(picture)]) == 0
    out = capsys.readouterr().out
    assert f"picture: {picture}\nreplay: {tmp_path / 'film.replay'}\n" in out
    assert picture.exists() and (tmp_path / "film.replay").exists()
    for verb, takes in (("evaluate", "against, maps, matches, "), ("play", "map, against, ")):
        assert main([verb, "one", "--opponent", "two"]) == 2
        assert f"run one plays loong, where {verb} takes no opponent: it takes {takes}" in capsys.readouterr().err


def test_the_verbs_are_functions_too(tmp_path: Path, place: Path) -> None:
    shutil.copytree(place / "one", tmp_path / "one")
    one, maps = tmp_path / "one", str(place / "maps")
    heard: list[tuple[int, int]] = []
    found = sparring.evaluate(
        one, against="legal", maps=maps, matches=2, on_match=lambda done, whole: heard.append((done, whole))
    )
    assert isinstance(found, Versus)
    assert (found.player, found.opponent, found.matches, heard) == ("one", "legal", 2, [(0, 2), (1, 2), (2, 2)])
    filmed = sparring.play(one, map=f"{maps}/small.map", against="legal", seed=3)
    assert isinstance(filmed, Filmed)
    assert filmed.played == play_match(
        (place / "maps" / "small.map").read_bytes(), load_entrant(one), load_entrant("legal"), seed=3, map_name="small"
    )
    assert (filmed.picture, filmed.replay) == (one / "match.gif", one / "match.replay")
    assert filmed.picture.exists() and filmed.replay.exists()
    for verb in (sparring.evaluate, sparring.play):
        with pytest.raises(SparringError, match="takes a run of Loong by its name, such as one, and not its teacher"):
            verb(sparring.load_teacher(one))  # type: ignore[operator]


def test_who_cannot_play_is_one_line(place: Path, tmp_path: Path) -> None:
    with pytest.raises(
        SparringError, match=r"no player onee: there is no such bot folder, \.zip, \.wasm or run; did you mean"
    ):
        load_entrant("onee")
    sparring.train(replace(TINY, decisions=2), run=tmp_path / "rally", console=SILENT)
    with pytest.raises(SparringError, match="run rally plays tennis: no player of loong"):
        load_entrant(tmp_path / "rally")
    with pytest.raises(SparringError, match="plays tennis, where evaluate takes no against and no maps: it takes oppo"):
        sparring.evaluate(tmp_path / "rally", against="legal", maps="shipped")
    with pytest.raises(SparringError, match="plays tennis, where play takes no map: it takes opponent, game, out"):
        sparring.play(tmp_path / "rally", map="arena")
    shutil.copytree(place / "one", tmp_path / "old")
    for part, said in (({}, "no ppo"), ({"ppo": {"teacher": {"a": torch.zeros(1)}}}, "Error.s. in loading state_dict")):
        content = torch.load(place / "one" / "latest.pt", weights_only=True)
        content["learner"] = {name: kept for name, kept in content["learner"].items() if name != "ppo"} | part
        torch.save(content, tmp_path / "old" / "latest.pt")
        with pytest.raises(SparringError, match=rf"^\S*latest.pt does not fit this version .*\({said}.*\): use"):
            load_entrant(tmp_path / "old")
    with pytest.raises(SparringError, match=r"run one plays loong: sparring.load_teacher loads it"):
        sparring.load("one")
