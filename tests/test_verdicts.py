"""Verdicts and ladders over matches that take no time, records, and the schedule."""

from __future__ import annotations

import functools
import importlib
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import fake_matches
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageColor
from test_work import wait_until

from sparring.cli import main
from sparring.errors import SparringError
from sparring.judge.ladder import run_ladder
from sparring.judge.match import PlayedMatch
from sparring.judge.records import RECORDS, FailedMatch, Records, load_records
from sparring.judge.schedule import Job, levels, schedule
from sparring.judge.statistics import Sprt, bradley_terry
from sparring.judge.verdicts import judge, run_verdict, score
from sparring.judge.work import Play, Task
from sparring.levels.pool import PoolMap, named_maps
from sparring.pictures.ladder import draw_ladder, draw_verdict

STRONG, WEAK, LIKE_WEAK, MIDDLE = (fake_matches.entrant(name) for name in ("400", "0", "0 again", "200"))
MAPS = [PoolMap(hash=f"{number:064x}", source=f"maps/map-{number}.map", file=b"") for number in range(5)]
GENERATED = "generated:5:3"


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Job]]:
    """Matches are played here, now the first of what waits and now the last. Yields what was played."""
    played: list[Job] = []

    class Crew:
        def __init__(self, play: Play) -> None:
            self.play = play
            self.tasks: list[Task] = []

        def give(self, task: Task) -> None:
            self.tasks.append(task)

        def take(self) -> list[tuple[Task, PlayedMatch | SparringError | str]]:
            task = self.tasks.pop(-(len(played) % 3 // 2))
            played.append(task.job)
            return [(task, self.play(task.job))]

        def end(self) -> None:
            self.tasks.clear()

    monkeypatch.setattr("sparring.judge.work.Processes", Crew)
    yield played


# Schedule


def test_every_pair_plays_each_level_from_both_seats() -> None:
    players = [STRONG, WEAK, MIDDLE]
    jobs = list(schedule(players, MAPS, seed=3, matches=12))
    assert len(jobs) == 3 * 12
    for first, second in zip(jobs[::2], jobs[1::2], strict=True):
        assert (first.a, first.b, first.seed, first.map_hash) == (second.b, second.a, second.seed, second.map_hash)
        assert (first.swapped, second.swapped) == (False, True)
    for start in range(0, len(jobs), 6):
        assert len({(job.map_hash, job.seed) for job in jobs[start : start + 6]}) == 1
    assert len({job.key for job in jobs}) == len(jobs)


def test_maps_are_interleaved() -> None:
    drawn = list(islice(levels(MAPS, 1), 20))
    rounds = [[each.hash for each, _ in drawn[start : start + 5]] for start in range(0, 20, 5)]
    assert all(sorted(each) == sorted(one.hash for one in MAPS) for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1
    assert len({seed for _, seed in drawn}) == 20


def test_levels_depend_on_the_seed_and_the_maps_alone() -> None:
    drawn = list(islice(levels(MAPS, 1), 20))
    assert drawn == list(islice(levels(MAPS[::-1], 1), 20))
    assert drawn != list(islice(levels(MAPS, 2), 20))
    assert [(each.source, seed) for each, seed in islice(levels(MAPS, 1), 2)] == [
        ("maps/map-0.map", 13836833510318461024),
        ("maps/map-4.map", 14113572682843798656),
    ]


def test_another_player_changes_no_other_match() -> None:
    before = {job.key for job in schedule([STRONG, WEAK], MAPS, seed=3, matches=12)}
    after = {job.key for job in schedule([MIDDLE, WEAK, STRONG], MAPS, seed=3, matches=12)}
    longer = {job.key for job in schedule([STRONG, WEAK], MAPS, seed=3, matches=24)}
    assert before < after
    assert before < longer


def test_words_that_name_no_maps_are_refused(tmp_path: Path) -> None:
    assert len(named_maps("shipped")) == 36
    assert len(named_maps(GENERATED)) == 3
    for words in ("generated:", "generated:1", "generated:a:1", "generated:1:0", "generated:1:2:3", "generated:-1:2"):
        with pytest.raises(SparringError, match="write generated:SEED:COUNT"):
            named_maps(words)
    with pytest.raises(SparringError, match="no map nowhere"):
        named_maps("nowhere")
    with pytest.raises(SparringError, match="no maps"):
        next(levels([], 1))
    with pytest.raises(SparringError, match="matches = 3"):
        next(schedule([STRONG, WEAK], MAPS, seed=1, matches=3))


# Records


def some_jobs(count: int = 4) -> list[Job]:
    return list(schedule([STRONG, WEAK], MAPS, seed=1, matches=count))


@settings(max_examples=20)
@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, failed: list[bool]) -> None:
    folder = tmp_path_factory.mktemp("records")
    jobs = some_jobs()
    made = [
        FailedMatch.of(job, "it died") if fails else fake_matches.play(job)
        for job, fails in zip(jobs, failed, strict=True)
    ]
    with Records(folder) as records:
        for record in made:
            records.append(record)
    assert load_records(folder / RECORDS) == made
    with Records(folder) as records:
        assert [records.get(job) for job in jobs] == made


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    jobs = some_jobs(2)
    with Records(tmp_path) as records:
        records.append(fake_matches.play(jobs[0]))
    path = tmp_path / RECORDS
    whole = path.read_bytes()
    for length in {0, 1, len(whole) - 1, *range(0, len(whole), 50)}:
        path.write_bytes(whole + whole[:length])
        assert len(load_records(path)) == 1
    with Records(tmp_path) as records:
        assert path.read_bytes() == whole
        records.append(fake_matches.play(jobs[1]))
    assert load_records(path) == [fake_matches.play(job) for job in jobs]


@pytest.mark.parametrize("line", ["", "7", "{}", '{"error": "x"}', "{not json", '"winner"', "[1]"])
def test_a_damaged_line_is_told(tmp_path: Path, line: str) -> None:
    with Records(tmp_path) as records:
        records.append(fake_matches.play(some_jobs()[0]))
    path = tmp_path / RECORDS
    text = path.read_text()
    path.write_text(text + line + "\n" + text)
    for read in (lambda: load_records(path), lambda: Records(tmp_path)):
        with pytest.raises(SparringError, match="line 2 is damaged, or of another Sparring: delete it"):
            read()
    assert path.read_text() == text + line + "\n" + text


def test_a_winner_that_is_none_is_damage(tmp_path: Path) -> None:
    value = fake_matches.play(some_jobs()[0]).json()
    (tmp_path / RECORDS).write_text(json.dumps({**value, "winner": "C"}) + "\n")
    with pytest.raises(SparringError, match="line 1 is damaged"):
        load_records(tmp_path / RECORDS)


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    with Records(tmp_path), pytest.raises(SparringError, match="another process plays"):
        Records(tmp_path)
    Records(tmp_path).close()
    (tmp_path / "file").touch()
    with pytest.raises(SparringError, match="cannot write"):
        Records(tmp_path / "file")


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = some_jobs(2)
    with Records(tmp_path) as records:
        records.append(fake_matches.play(jobs[0]))
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:9]))
        with pytest.raises(SparringError, match="no room"):
            records.append(fake_matches.play(jobs[1]))
        monkeypatch.undo()
        records.append(fake_matches.play(jobs[1]))
    assert load_records(tmp_path / RECORDS) == [fake_matches.play(job) for job in jobs]


def test_other_engines_and_builds_are_other_matches(tmp_path: Path) -> None:
    job = some_jobs()[0]
    value = fake_matches.play(job).json()
    rebuilt = {**value, "a": {**value["a"], "hash": "another build"}}
    lines = [{**value, "engine_hash": "another engine"}, rebuilt, {**value, "seed": 7}]
    (tmp_path / RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Records(tmp_path) as records:
        assert records.get(job) is None


def test_a_match_gives_way_to_none_and_an_error_to_a_match(tmp_path: Path) -> None:
    job = some_jobs()[0]
    first, second = fake_matches.played(job, "A"), fake_matches.played(job, "B")
    for record in (FailedMatch.of(job, "it died"), first, second, FailedMatch.of(job, "it died")):
        with Records(tmp_path) as records:
            records.append(record)
    with Records(tmp_path) as records:
        assert records.get(job) == first


# Verdicts


def test_points_go_to_the_right_side() -> None:
    straight, swapped = some_jobs(2)
    made = {
        (job.swapped, winner): score(job, fake_matches.played(job, winner))
        for job in (straight, swapped)
        for winner in ("A", "B", None)
    }
    assert made == {
        (False, "A"): 1,
        (False, "B"): 0,
        (True, "A"): 0,
        (True, "B"): 1,
        (False, None): 0.5,
        (True, None): 0.5,
    }


def test_the_longest_completed_part_is_judged(tmp_path: Path) -> None:
    jobs = some_jobs(40)
    with Records(tmp_path) as records:
        for number, job in enumerate(jobs):
            if number != 3:
                records.append(fake_matches.played(job, "B" if job.swapped else "A"))
        standing = judge(Sprt(), jobs, records)
        assert (standing.matches, standing.wins, standing.outcome) == (3, 3, None)
        records.append(FailedMatch.of(jobs[3], "it died"))
        standing = judge(Sprt(), jobs, records)
        assert (standing.matches, standing.wins, standing.errors, standing.outcome) == (17, 16, 1, "better")


@pytest.mark.parametrize(
    ("a", "b", "margin", "outcome", "line"),
    [
        (STRONG, WEAK, None, "better", "400 is better than 0: score "),
        (WEAK, STRONG, None, "not better", "0 is not better than 400: score "),
        (STRONG, WEAK, 0.1, "not inferior", "400 is not inferior to 0: score "),
        (WEAK, STRONG, 0.1, "not shown", "not shown that 0 is not inferior to 400: score "),
    ],
)
def test_verdicts_end_as_they_should(
    in_this_process: list[Job], tmp_path: Path, a: object, b: object, margin: float | None, outcome: str, line: str
) -> None:
    lengths: list[int] = []
    verdict = run_verdict(
        a,  # type: ignore[arg-type]
        b,  # type: ignore[arg-type]
        maps=GENERATED,
        out=tmp_path,
        non_inferior=margin,
        play=fake_matches.play,
        on_match=lambda test, standing: lengths.append(standing.matches),
    )
    assert verdict.standing.outcome == outcome
    assert verdict.line.startswith(line)
    assert lengths[0] == 0 and lengths == sorted(lengths) and len(lengths) == verdict.played + 1
    assert len(load_records(verdict.records)) == verdict.played == len(in_this_process)
    assert verdict.json()["llr"] == verdict.standing.llr
    again = run_verdict(a, b, maps=GENERATED, out=tmp_path, non_inferior=margin, play=fake_matches.play)  # type: ignore[arg-type]
    assert (again.standing, again.played) == (verdict.standing, 0)


def test_a_player_is_not_better_than_itself(in_this_process: list[Job], tmp_path: Path) -> None:
    """One match serves both seats: who wins it as A loses it as B."""
    verdict = run_verdict(WEAK, WEAK, maps=GENERATED, out=tmp_path, play=fake_matches.play)
    assert verdict.standing.outcome == "not better"
    assert verdict.standing.score == pytest.approx(0.5, abs=0.01)
    assert verdict.played <= verdict.standing.matches // 2 + 2


def test_a_verdict_does_not_depend_on_who_ends_first(in_this_process: list[Job], tmp_path: Path) -> None:
    standings = [
        run_verdict(
            LIKE_WEAK, WEAK, maps=GENERATED, out=tmp_path / str(workers), workers=workers, play=fake_matches.play
        ).standing
        for workers in (1, 2, 7)
    ]
    assert standings[0] == standings[1] == standings[2]


def test_what_was_played_is_not_played_again(in_this_process: list[Job], tmp_path: Path) -> None:
    whole = run_verdict(LIKE_WEAK, WEAK, maps=GENERATED, out=tmp_path / "whole", play=fake_matches.play)

    def interrupted(job: Job) -> PlayedMatch:
        if len(in_this_process) % 10 == 0:
            raise KeyboardInterrupt
        return fake_matches.play(job)

    in_this_process.clear()
    calls = 1
    while (
        part := run_verdict(LIKE_WEAK, WEAK, maps=GENERATED, out=tmp_path, play=interrupted)
    ).standing.outcome is None:
        assert part.line.startswith("no verdict yet on 0 again against 0")
        assert part.played == 9
        calls += 1
    assert calls > 3
    assert part.standing == whole.standing
    assert len(load_records(part.records)) <= whole.standing.matches + 2


def test_failed_matches_are_played_again_by_the_next_call(in_this_process: list[Job], tmp_path: Path) -> None:
    jobs = list(schedule([LIKE_WEAK, WEAK], named_maps(GENERATED), seed=0, matches=6))
    with Records(tmp_path / "failed") as records:
        for job in jobs:
            records.append(FailedMatch.of(job, "it died"))
    verdict = run_verdict(LIKE_WEAK, WEAK, maps=GENERATED, out=tmp_path / "failed", play=fake_matches.play)
    whole = run_verdict(LIKE_WEAK, WEAK, maps=GENERATED, out=tmp_path / "whole", play=fake_matches.play)
    assert verdict.standing == whole.standing


def test_failed_matches_of_this_call_are_counted_once(in_this_process: list[Job], tmp_path: Path) -> None:
    bad = {job.key for job in list(schedule([STRONG, WEAK], named_maps(GENERATED), seed=0, matches=6))[1:4]}

    def play(job: Job) -> PlayedMatch:
        return "it died" if job.key in bad else fake_matches.play(job)  # type: ignore[return-value]

    verdict = run_verdict(STRONG, WEAK, maps=GENERATED, out=tmp_path, play=play)
    assert (verdict.standing.errors, verdict.standing.outcome) == (3, "better")
    assert [job.key in bad for job in in_this_process].count(True) == 6
    assert sum(isinstance(record, FailedMatch) for record in load_records(verdict.records)) == 3
    assert "| 3 without a result |" in verdict.line
    again = run_verdict(STRONG, WEAK, maps=GENERATED, out=tmp_path, play=play)
    assert (again.standing, again.played) == (verdict.standing, 0)


def test_one_failure_after_the_other_ends_it(in_this_process: list[Job], tmp_path: Path) -> None:
    with pytest.raises(SparringError, match="4 matches in a row had no result, the last because it died"):
        run_verdict(STRONG, WEAK, maps=GENERATED, out=tmp_path, play=lambda job: "it died")  # type: ignore[arg-type, return-value]
    assert len(in_this_process) == 8 or len(in_this_process) == 9  # each was tried twice


# Ladder


def test_a_ladder_adds_only_what_is_new(in_this_process: list[Job], tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    first = run_ladder(
        [STRONG, WEAK],
        maps=GENERATED,
        matches=20,
        out=tmp_path,
        play=fake_matches.play,
        on_match=lambda done, whole: progress.append((done, whole)),
    )
    assert progress == [(done, 20) for done in range(21)]
    assert (first.played, first.missing, first.errors) == (20, 0, 0)
    second = run_ladder([MIDDLE, STRONG, WEAK], maps=GENERATED, matches=20, out=tmp_path, play=fake_matches.play)
    assert second.played == 40
    assert all(MIDDLE in (job.a, job.b) for job in in_this_process[20:])
    assert [second.entrants[index].name for index in second.order] == ["400", "200", "0"]
    assert second.points[1, 2] == first.points[0, 1]
    assert (second.points + second.points.T == second.matches).all()
    assert (second.matches + 20 * np.eye(3) == 20).all()
    assert second.ratings.elo == pytest.approx(bradley_terry(second.points).elo)
    third = run_ladder([WEAK, MIDDLE, STRONG], maps=GENERATED, matches=20, out=tmp_path, play=fake_matches.play)
    assert third.played == 0
    assert third.ratings.elo == pytest.approx(second.ratings.elo[[2, 0, 1]])
    table = third.json()
    assert [each["name"] for each in table["players"]] == ["400", "200", "0"]
    assert [each["points"] for each in table["pairs"]] == [third.points[0, 1], third.points[0, 2], third.points[1, 2]]


def test_an_interrupted_ladder_rates_what_was_played(in_this_process: list[Job], tmp_path: Path) -> None:
    def interrupted(job: Job) -> PlayedMatch:
        if len(in_this_process) == 3:
            raise KeyboardInterrupt
        return fake_matches.play(job)

    ladder = run_ladder([STRONG, WEAK, MIDDLE, LIKE_WEAK], maps=GENERATED, matches=4, out=tmp_path, play=interrupted)
    assert (ladder.played, ladder.missing) == (2, 22)
    assert ladder.matches.sum() == 4
    json.dumps(ladder.json(), allow_nan=False)


def test_players_that_make_no_ladder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SparringError, match="two players"):
        run_ladder([STRONG], out=tmp_path)
    with pytest.raises(SparringError, match="0 and 0 are the same player"):
        run_ladder([WEAK, STRONG, WEAK], out=tmp_path)


# Real processes

SCRIPT = """
import sys
from pathlib import Path
import fake_matches
from sparring.judge.verdicts import run_verdict

def play(job):
    import time
    time.sleep(0.02)
    return fake_matches.play(job)

if __name__ == "__main__":
    like, weak = fake_matches.entrant("0 again"), fake_matches.entrant("0")
    print(run_verdict(like, weak, maps="generated:5:3", out=Path(sys.argv[1]), play=play).line, flush=True)
"""


def test_a_verdict_survives_kill_9_and_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "verdict.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    out = tmp_path / "matches"
    for number, stop in ((2, signal.SIGKILL), (4, signal.SIGINT)):
        process = subprocess.Popen(
            [sys.executable, str(script), str(out)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        wait_until(lambda number=number: len(load_records(out / RECORDS)) >= number)  # type: ignore[misc]
        if stop == signal.SIGINT:
            os.killpg(process.pid, stop)  # as a terminal does: the matches' processes hear it, too
        else:
            process.kill()
        said, complained = process.communicate()
        if stop == signal.SIGINT:
            assert (process.returncode, complained) == (0, "")
            assert said.startswith("no verdict yet on 0 again against 0: ")
    ended = subprocess.run(
        [sys.executable, str(script), str(out)], env=environment, capture_output=True, text=True, check=True
    )
    with Records(out) as records:
        jobs = list(schedule([LIKE_WEAK, WEAK], named_maps("generated:5:3"), seed=0, matches=156))
        standing = judge(Sprt(), jobs, records)
    alone = Sprt().judge(score(job, fake_matches.play(job)) for job in jobs)
    assert standing == alone
    assert f"match {alone.matches} of at most 156" in ended.stdout
    seeds = [(record.seed, record.a.hash) for record in load_records(out / RECORDS)]
    assert len(set(seeds)) == len(seeds)
    assert not multiprocessing.active_children()


# The verbs


@pytest.fixture
def verbs(in_this_process: list[Job], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Job]:
    """Players are fake, and so are their matches, by their strengths in Elo."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sparring.cli.judge.load_entrant", fake_matches.entrant)
    for module in ("verdicts", "ladder"):
        function = getattr(importlib.import_module(f"sparring.judge.{module}"), f"run_{module.rstrip('s')}")
        monkeypatch.setattr(
            f"sparring.cli.judge.run_{module.rstrip('s')}", functools.partial(function, play=fake_matches.play)
        )
    return in_this_process


def test_the_verb_verdict(verbs: list[Job], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verdict", "400", "0 again", "--maps", GENERATED]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("400 is better than 0 again: score 0.")
    assert said[1] == "picture: matches/verdict-400-0-again.png"
    assert Path("matches/verdict-400-0-again.png").read_bytes().startswith(b"\x89PNG")
    played = len(verbs)
    assert main(["verdict", "400", "0 again", "--maps", GENERATED, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["played"], len(verbs)) == ("better", 0, played)
    assert main(["verdict", "0", "400", "--maps", GENERATED, "--non-inferior", "0.1", "--out", "other"]) == 0
    assert capsys.readouterr().out.startswith("not shown that 0 is not inferior to 400: score 0.")
    assert Path("other/non-inferior-0-400.png").is_file()


def test_the_verb_ladder(verbs: list[Job], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ladder", "0", "400", "200", "--maps", GENERATED, "--matches", "8"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows[3:6]] == ["400", "200", "0"]
    assert all(row[2][0] in "+-" and row[3] == "±" and row[-1] == "16" for row in rows[3:6])
    assert Path("matches/ladder.png").read_bytes().startswith(b"\x89PNG")
    assert main(["ladder", "0", "400", "200", "--maps", GENERATED, "--matches", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found["players"]] == ["400", "200", "0"]
    assert (found["played"], found["missing"]) == (0, 0)


def test_interrupted_verbs_say_where_they_stand(
    verbs: list[Job], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: Job) -> PlayedMatch:
        if len(verbs) % 4 == 0:
            raise KeyboardInterrupt
        return fake_matches.play(job)

    for name, function in (("run_verdict", run_verdict), ("run_ladder", run_ladder)):
        monkeypatch.setattr(f"sparring.cli.judge.{name}", functools.partial(function, play=interrupted))
    assert main(["verdict", "400", "0", "--maps", GENERATED]) == 130
    assert capsys.readouterr().out.startswith("no verdict yet on 400 against 0: ")
    assert main(["ladder", "0", "400", "200", "7", "--maps", GENERATED, "--matches", "2", "--out", "ladder"]) == 130
    said = capsys.readouterr().out
    assert "9 matches are still to play: the same command goes on" in said
    assert "groups without a match between them: no common scale" in said


def test_wrong_words_are_one_line(verbs: list[Job], capsys: pytest.CaptureFixture[str]) -> None:
    for words, complaint in (
        (["verdict", "1", "2", "--maps", "nowhere"], "no map nowhere"),
        (["verdict", "1", "2", "--non-inferior", "0.7"], "margin 0.7"),
        (
            ["verdict", "1", "2", "--non-inferior", "0.0001", "--maps", GENERATED],
            "500,000 are the most of one schedule",
        ),
        (["ladder", "1", "2", "--matches", "1000000", "--maps", GENERATED], "that would be 1,000,000 matches"),
        (["verdict", "1", "2", "--maps", GENERATED, "--workers", "0"], "workers = 0"),
        (["ladder", "1"], "two players or more"),
        (["ladder", "1", "1"], "the same player"),
        (["ladder", "1", "2", "--matches", "3", "--maps", GENERATED], "matches = 3"),
    ):
        assert main(words) == 2
        said = capsys.readouterr()
        assert complaint in said.err and said.err.count("\n") == 1 and said.out == ""
    assert not verbs


# Pictures


def pixels_like(path: Path, colour: str) -> int:
    wanted = np.array(ImageColor.getrgb(colour))
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    return int((np.abs(image - wanted).max(axis=2) < 12).sum())


@pytest.mark.parametrize(
    ("going_on", "ended", "colour"), [(2.76, 2.78, "#15803d"), (-1.55, -1.57, "#b91c1c"), (2.76, 2.76, None)]
)
def test_a_verdict_ends_in_the_colour_of_its_bound(
    tmp_path: Path, going_on: float, ended: float, colour: str | None
) -> None:
    for name, llr in (("one", [4, -3, going_on]), ("two", [4, -3, ended]), ("none", [])):
        draw_verdict(
            llr, tmp_path / f"{name}.png", bounds=(-1.56, 2.77), words=("better", "not better"), cap=156, title="$x_1$"
        )
    for each in ("#15803d", "#b91c1c"):
        more = pixels_like(tmp_path / "two.png", each) - pixels_like(tmp_path / "one.png", each)
        assert (more > 50) == (each == colour)


def test_a_ladder_of_any_size_is_drawn(tmp_path: Path) -> None:
    heights = []
    for count in (1, 2, 9):
        path = tmp_path / f"{count}.png"
        names = [f"a bot with quite a long name, number {number} $x_1$" for number in range(count)]
        draw_ladder(names, [-50.0 * n for n in range(count)], [math.inf, *[90.0] * 8][:count], [0] * count, path)
        heights.append(Image.open(path).height)
    assert heights == sorted(set(heights))
    draw_ladder(["one", "two"], [10, -10], [5, 5], [0, 1], tmp_path / "groups.png")
    assert pixels_like(tmp_path / "groups.png", "#ea580c") > 50
