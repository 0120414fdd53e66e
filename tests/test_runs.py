"""Runs from Python: training, its reports, loading, evaluating, playing, listing and pruning."""

from __future__ import annotations

import io
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny_runs import TINY, advance, training
from torch import Tensor

import sparring
from sparring.errors import SparringError
from sparring.games.api import Box, Decisions, Game, Outcome, RewardWrapper
from sparring.games.tennis import Tennis
from sparring.learn.matches import EpisodeRow, MatchRow
from sparring.runs import listing
from sparring.runs.folder import RunFolder, find_run
from sparring.runs.metrics import Measure, json_line, read_json_lines, read_matches
from sparring.runs.progress import Progress, Standing, clock
from sparring.runs.train import RunResult

SILENT = Console(quiet=True)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SPARRING_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    # TensorBoard's writer has a test of its own; its import takes seconds.
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    yield


@pytest.fixture
def run() -> RunResult:
    return sparring.train(TINY, run="one", console=SILENT)


def test_a_run_leaves_what_it_promises(run: RunResult) -> None:
    assert (run.status, run.decisions, run.path) == ("finished", 72, Path("runs/one"))
    assert {path.name for path in run.path.iterdir()} == {
        "curve.png", "episodes.jsonl", "latest.pt", "lock", "log.txt", "matches.jsonl", "metrics.jsonl",
        "recipe.toml", "replay",
    }  # fmt: skip
    matches = read_matches(run.path / "matches.jsonl")
    assert len(matches) == run.matches > 0
    assert [row.match for row in matches] == list(range(run.matches))
    assert run.score == pytest.approx(sum(row.best for row in matches) / len(matches))
    rows = read_json_lines(run.path / "metrics.jsonl")
    assert [row["decisions"] for row in rows] == [20, 40, 60]
    assert {"updates", "matches", "score", "length", "critic_loss", "actor_loss", "seconds"} <= set(rows[0])
    assert json.loads(json.dumps(run.json()))["path"] == "runs/one"
    assert sparring.load_recipe(run.path / "recipe.toml") == TINY


def test_a_finished_run_says_so_and_goes_on_when_asked(run: RunResult) -> None:
    before = (run.path / "latest.pt").read_bytes()
    said = io.StringIO()
    again = sparring.train(TINY, run="one", console=Console(file=said))
    assert again.status == "already finished"
    assert again.decisions == 72
    assert "it is finished; to train on, add --decisions 144; else: sparring evaluate one" in said.getvalue()
    assert (run.path / "latest.pt").read_bytes() == before
    longer = sparring.train(TINY, run="one", decisions=80, console=SILENT)
    assert (longer.status, longer.decisions) == ("finished", 80)


def test_start_up_says_what_was_chosen_and_the_log_has_it_too() -> None:
    said = io.StringIO()
    sparring.train(TINY, run="one", minutes=5, console=Console(file=said))
    text = said.getvalue()
    assert "run one starts in runs/one" in text
    assert "tennis, ddpg, seed 5: 2 lanes, 1 threads of" in text
    assert "replay of 32 rows" in text
    assert "until decision 72, or 5:00 from now; saved every 3600 s" in text
    assert "finished: saved at decision 72, " in text
    log = Path("runs/one/log.txt").read_text()
    assert all(line in log for line in text.splitlines())


def test_minutes_end_a_session_and_not_the_run() -> None:
    first = sparring.train(replace(TINY, decisions=10**9), run="one", minutes=1e-9, console=SILENT)
    assert (first.status, first.decisions) == ("out of time", TINY.lanes)
    second = sparring.train(replace(TINY, decisions=10**9), run="one", minutes=1e-9, console=SILENT)
    assert (second.status, second.decisions) == ("out of time", 2 * TINY.lanes)
    for minutes in (0, -1, math.nan):
        with pytest.raises(SparringError, match="must be more than 0"):
            sparring.train(TINY, run="two", minutes=minutes, console=SILENT)
    assert not Path("runs/two").exists()


def test_a_run_stops_so_many_matches_after_it_was_solved() -> None:
    recipe = replace(TINY, lanes=16, decisions=10**6, solved_score=-1.0, stop_after_solved=10)
    recipe = replace(recipe, ddpg=replace(TINY.ddpg, buffer=1000))
    result = sparring.train(recipe, run="one", console=SILENT)
    assert result.status == "solved"
    assert result.solved is not None
    assert result.solved.match == 100
    assert 110 <= result.matches < 110 + recipe.lanes
    solving = read_matches(result.path / "matches.jsonl")[99]
    assert (result.solved.decisions, result.solved.updates) == (solving.at, solving.updates)
    assert result.solved.score == pytest.approx(
        sum(row.best for row in read_matches(result.path / "matches.jsonl")[:100]) / 100
    )
    again = sparring.train(recipe, run="one", console=SILENT)
    assert (again.status, again.solved) == ("already finished", result.solved)


def test_default_names_of_runs(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text("seed = 1\n")
    from sparring.runs.train import default_run

    assert default_run("tiny.toml", {}) == "tiny"
    assert default_run(Path("folder/tiny.toml"), {"seed": 3}) == "tiny-seed-3"
    assert default_run(TINY, {}) == "tennis-ddpg"


def test_runs_live_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARRING_RUNS", str(tmp_path / "elsewhere"))
    result = sparring.train(TINY, run="one", decisions=2, console=SILENT)
    assert result.path == tmp_path / "elsewhere" / "one"
    assert find_run("one").path == result.path
    assert not Path("runs").exists()


def test_training_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    sparring.train(replace(TINY, threads=before + 1), run="one", decisions=2, console=SILENT)
    assert torch.get_num_threads() == before


def test_a_run_can_have_the_users_own_game() -> None:
    def factory(lanes: int, seed: int) -> Game:
        return RewardWrapper(Tennis(lanes=lanes, seed=seed), lambda rows, actions, outcome: torch.ones(len(rows)))

    recipe = replace(TINY, ddpg=replace(TINY.ddpg, n_step=1))
    result = sparring.train(recipe, run="one", game=factory, console=SILENT)
    run = training(result.path, recipe=recipe)
    assert run.learner.replay.columns()["reward"].eq(1).all()
    run.close()

    class Other(Tennis):
        name = "other"

    other = sparring.train(TINY, run="two", game=lambda lanes, seed: Other(lanes=lanes, seed=seed), console=SILENT)
    policy = sparring.load("two")
    assert policy.game == "other"
    with pytest.raises(SparringError, match="no game other: there are tennis, loong, mpe; your own is a factory"):
        sparring.evaluate(policy)
    assert sparring.evaluate(policy, game=Other, matches=2, lanes=2).game == "other"
    with pytest.raises(SparringError, match='run two was started with game = "other", this command says "tennis"'):
        sparring.train(TINY, run=other.path, console=SILENT)


def test_metrics_go_to_tensorboard_too(tmp_path: Path) -> None:
    run = training(tmp_path / "run")
    seen: list[tuple[str, int]] = []

    class Board:
        def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
            assert isinstance(scalar_value, int | float)
            seen.append((tag, global_step))

        def close(self) -> None:
            seen.append(("closed", 0))

    run.board = Board()
    advance(run, 72)
    run.close()
    assert {("score", 40), ("critic_loss", 40), ("updates", 60), ("closed", 0)} <= set(seen)


def test_a_real_tensorboard_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sparring.train(TINY, run=tmp_path / "one", console=SILENT)
    events = EventAccumulator(str(tmp_path / "one" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("critic_loss")] == [20, 40, 60]

    blocked = training(tmp_path / "three")
    (tmp_path / "three" / "tensorboard").write_text("not a folder")
    with pytest.raises(SparringError, match="File exists: stopped at decision 0; the last checkpoint is whole"):
        blocked.open_board()
    blocked.close()


def match(number: int, best: float, length: int = 20) -> MatchRow:
    return MatchRow(
        match=number, lane=0, length=length, score=(best, best - 1), truncated=False, at=number * 10, updates=number
    )


def test_solved_is_the_first_mean_of_a_hundred() -> None:
    measure = Measure(0.5, words=("racket", "rally", "rallies"))
    assert measure.score is None
    assert measure.parts() == ["rallies 0"]
    assert measure.summary() == "no match has ended"
    for number in range(99):
        assert not measure.add(match(number, 0.9), seconds=60.0)
    assert not measure.add(match(99, -41.0), seconds=60.0)  # mean 0.481
    assert not measure.add(match(100, 2.0), seconds=60.0)  # mean 0.492
    assert measure.add(match(101, 2.0), seconds=90.0)
    assert measure.solved == sparring.runs.metrics.Solved(
        match=102, decisions=1010, updates=101, minutes=1.5, score=pytest.approx(0.503)
    )
    assert not measure.add(match(102, 2.0), seconds=90.0)
    assert measure.parts() == ["rallies 103", "better racket 0.514 over the last 100", "rally 20 decisions"]
    assert measure.summary() == "mean 0.514 over the last 100 matches, length 20"
    copy = Measure(0.5)
    copy.load_state(json.loads(json.dumps(measure.state())))
    assert copy.state() == measure.state()
    assert (copy.score, copy.length, copy.solved, copy.matches) == (measure.score, 20.0, measure.solved, 103)


def test_episodes_are_another_measure() -> None:
    measure = Measure(0.5)
    assert measure.episode_score is None
    measure.add_episode(EpisodeRow(episode=0, lane=0, matches=11, length=200, score=(0.3, 1.5), at=200))
    measure.add_episode(EpisodeRow(episode=1, lane=0, matches=11, length=200, score=(0.5, 0.0), at=400))
    assert (measure.episode_score, measure.score, measure.matches) == (1.0, None, 0)


def test_episodes_of_several_matches_are_logged_apart(tmp_path: Path) -> None:
    run = training(tmp_path / "run")
    advance(run, 160)
    rows = read_json_lines(run.folder.episodes)
    assert len(rows) >= 2
    assert all(row["matches"] == 2 for row in rows)
    run.save()
    run.close()
    assert read_json_lines(run.folder.metrics)[-1]["episode_score"] == pytest.approx(
        sum(max(row["score"]) for row in rows) / len(rows)
    )
    again = training(tmp_path / "run")
    assert read_json_lines(run.folder.episodes) == rows
    again.close()


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "matches.jsonl"
    assert read_matches(path) == []
    path.write_bytes(json_line({"a": 1}) + b'{"a": ')
    assert read_json_lines(path) == [{"a": 1}]


def standing(**changes: Any) -> Standing:
    parts = ["rallies 42", "better racket 0.250 over the last 42", "rally 31 decisions"]
    return replace(Standing(decisions=1000, updates=300, parts=parts, seconds=60.0), **changes)


def test_progress_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("sparring.runs.progress.time.monotonic", lambda: now[0])
    noted: list[str] = []
    out = io.StringIO()
    progress = Progress(Console(file=out), noted.append, decisions=5000, seconds=600.0)
    with progress:
        progress.update(standing(decisions=0, updates=0))
        now[0] = 110.0
        progress.update(standing())
    assert noted == [
        "decision 1,000 of 5,000 | 100 decisions/s | 30 updates/s | rallies 42 | better racket 0.250 over the last 42 "
        "| rally 31 decisions | 0:40 left"
    ]
    assert out.getvalue() == noted[0] + "\n"
    assert "9:00 left" in progress.line(standing(decisions=1, updates=0, parts=[]))


def test_progress_on_a_terminal_draws_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=200)
    with Progress(console, lambda line: None, decisions=5000) as progress:
        progress.update(standing(decisions=2500))
    bar, line = out.getvalue().splitlines()[:2]
    assert "━" in bar
    assert "decision 2,500 of 5,000" in line


def test_clock() -> None:
    assert [clock(seconds) for seconds in (0, 42.4, 185, 7800)] == ["0:00", "0:42", "3:05", "2:10:00"]


def test_a_loaded_policy_answers_every_kind_of_observation(run: RunResult) -> None:
    policy = sparring.load("one")
    assert (policy.name, policy.game, policy.decisions, policy.inputs) == ("one", "tennis", 72, 24)
    game = sparring.make("tennis", lanes=3, seed=1)
    rows = game.decisions()
    actions = policy.act(rows)
    assert actions.shape == (6, 2)
    assert actions.dtype == torch.float32
    assert not actions.requires_grad
    assert torch.equal(policy.act(rows.obs), actions)
    arrays = policy.act(rows.obs.numpy())
    assert isinstance(arrays, np.ndarray)
    assert np.array_equal(arrays, actions.numpy())
    single = policy.act(rows.obs[4])
    assert single.shape == (2,)
    assert torch.allclose(single, actions[4], atol=1e-6)
    assert policy.act(rows.obs[4].numpy().astype(np.float64)).shape == (2,)
    for wrong in (torch.zeros(23), torch.zeros(2, 3, 24), torch.zeros(())):
        with pytest.raises(SparringError, match=r"takes observations \[24\] or \[n, 24\], got "):
            policy.act(wrong)


def test_a_loaded_policy_is_the_one_that_was_trained(run: RunResult) -> None:
    resumed = training(run.path)
    obs = torch.randn(5, 24, generator=torch.Generator().manual_seed(0))
    assert torch.equal(sparring.load("one").act(obs), resumed.learner.policy().act(obs))
    assert sparring.load("one").hash == sparring.load(run.path).hash
    before = sparring.load("one").hash
    advance(resumed, 100)
    resumed.save()
    resumed.close()
    assert sparring.load("one").hash != before


def test_an_unknown_run_names_the_nearest(run: RunResult) -> None:
    with pytest.raises(SparringError, match=r"^no run onee in runs: did you mean one\?$"):
        sparring.load("onee")
    Path("runs/one/latest.pt").unlink()
    with pytest.raises(SparringError, match=r"^no run one in runs: there are no runs yet; start one: sparring train"):
        sparring.load("one")
    for name in ("", "..", "-x"):
        with pytest.raises(SparringError, match="cannot be used"):
            RunFolder(name)
    with pytest.raises(SparringError, match='run name "" cannot be used'):
        sparring.train(TINY, run="", console=SILENT)
    with pytest.raises(SparringError, match=r"is no name in UTF-8, as the run's log is: choose another --run"):
        sparring.train(TINY, run="caf\udce9", console=SILENT)
    assert [path.name for path in Path("runs").iterdir()] == ["one"]


def test_a_learner_that_does_not_fit_the_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 36000000000000 bytes"

    def too_large(*_: Any) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr("sparring.runs.training.make_learner", too_large)
    with pytest.raises(SparringError, match=rf"needs more memory than there is: lower lanes or .*\({said}\)$"):
        sparring.train(TINY, run="large", console=SILENT)
    assert not Path("runs").exists()


def idle(obs: Tensor) -> Tensor:
    return torch.zeros(len(obs), 2)


def test_evaluation_is_the_same_each_time_and_says_the_official_score(run: RunResult) -> None:
    first = sparring.evaluate("one", matches=7, lanes=3, episodes=2)
    assert first == sparring.evaluate("one", matches=7, lanes=3, episodes=2)
    assert first != sparring.evaluate("one", matches=7, lanes=3, episodes=2, seed=5)
    assert (first.player, first.matches, first.episodes, first.hash) == ("one", 7, 2, sparring.load("one").hash)
    assert first.low <= first.score <= first.high
    assert first.score >= max(first.agents)
    assert json.loads(json.dumps(first.json()))["agents"] == list(first.agents)


def test_idle_rackets_play_the_known_length() -> None:
    """Rackets out of the way: a rally takes 14 or 15 decisions."""

    def away(obs: Tensor) -> Tensor:
        return torch.tensor([-1.0, 0.0]).repeat(len(obs), 1)

    found = sparring.evaluate(away, matches=100, lanes=20, episodes=0)
    assert 14.0 <= found.length <= 15.0
    assert found.capped == 0.0
    assert found.player == "away"
    assert found.hash is None
    assert found.episode_score is None


def test_sides_alternate_and_wins_go_to_the_winner() -> None:
    """In this game team 0 is paid what it plays: the player that plays 1 wins from either side."""

    def one(obs: Tensor) -> Tensor:
        return torch.ones(len(obs), 2)

    class Paid(Tennis):
        def act(self, actions: Tensor) -> Any:
            outcome = super().act(actions)
            played = actions[:, 0].view(-1, 2)[outcome.ended]
            return replace(outcome, score=played)

    found = sparring.evaluate(one, opponent=idle, game=Paid, matches=9, lanes=4, episodes=0)
    assert (found.wins, found.draws, found.losses) == (9, 0, 0)
    assert (found.player_score, found.opponent_score) == (1.0, 0.0)
    assert found.agents[0] == pytest.approx(5 / 9)  # lanes 0 and 2 play 3 + 2 of the matches from side 0
    lost = sparring.evaluate(idle, opponent=one, game=Paid, matches=9, lanes=4, episodes=0)
    assert (lost.wins, lost.draws, lost.losses) == (0, 0, 9)
    even = sparring.evaluate(idle, opponent=idle, game=Paid, matches=4, episodes=0)
    assert (even.wins, even.draws, even.losses) == (0, 4, 0)


def test_a_teams_score_is_its_own_agents_and_not_those_of_the_same_number() -> None:
    """Agents 0 and 1 make up team 0; everybody is paid what it plays, agent 1 ten more."""

    class Trio:
        name, lanes, agents, teams, restarts_itself = "trio", 2, 3, 2, True
        observation, action = Box(shape=(1,)), Box(shape=(1,), low=-1.0, high=1.0)

        def __init__(self, **options: Any) -> None:
            self.match = 0

        def decisions(self) -> Decisions:
            lane, agent = torch.arange(2).repeat_interleave(3), torch.arange(3).repeat(2)
            zero = torch.zeros_like(lane)
            return Decisions(lane=lane, match=zero + self.match, team=agent // 2, agent=agent, decision=zero,
                             obs=torch.zeros(6, 1))  # fmt: skip

        def act(self, actions: Tensor) -> Outcome:
            rows = self.decisions()
            paid = actions.view(2, 3) + torch.tensor([0.0, 10.0, 0.0])
            self.match += 1
            return Outcome(lane=rows.lane, agent=rows.agent, reward=paid.flatten(), ended=torch.arange(2),
                           truncated=torch.zeros(2, dtype=torch.bool), score=paid,
                           length=torch.ones(2, dtype=torch.int64), last=rows)  # fmt: skip

        def restart(self, lanes: Tensor, levels: Tensor | None = None) -> None: ...

    def one(obs: Tensor) -> Tensor:
        return torch.ones(len(obs), 1)

    def none(obs: Tensor) -> Tensor:
        return torch.zeros(len(obs), 1)

    found = sparring.evaluate(one, opponent=none, game=Trio, matches=2)  # team 0, then team 1
    assert (found.player_score, found.opponent_score) == ((6.0 + 1.0) / 2, (0.0 + 5.0) / 2)
    assert (found.wins, found.draws, found.losses) == (1, 0, 1)


def test_players_of_different_games_do_not_meet(run: RunResult) -> None:
    other = replace(sparring.load("one"), name="two", game="chess")
    with pytest.raises(SparringError, match="run one plays tennis, run two plays chess"):
        sparring.evaluate("one", opponent=other)

    def choices(obs: Tensor) -> Tensor:
        return torch.zeros(len(obs), dtype=torch.int64)

    with pytest.raises(SparringError, match=r"player one answers with actions of shape \[2\], choices with \[\]"):
        sparring.evaluate("one", opponent=choices, matches=1)


def test_evaluation_refuses_what_makes_no_sense() -> None:
    with pytest.raises(SparringError, match="matches = 0: must be at least 1"):
        sparring.evaluate(idle, matches=0)
    with pytest.raises(SparringError, match="player odd gave 1 actions for 2 observations"):

        def odd(obs: Tensor) -> Tensor:
            return torch.zeros(1, 2)

        sparring.evaluate(odd, matches=1)


def test_a_rally_of_a_run_is_drawn_into_its_folder(run: RunResult) -> None:
    result = sparring.play("one", seconds=0.5)
    assert result.path == run.path / "rally.gif"
    assert result.path.read_bytes().startswith(b"GIF8")
    assert sparring.play(idle, opponent="one").path is None


def test_list_compare_and_prune(run: RunResult) -> None:
    sparring.train(TINY, run="two", seed=6, console=SILENT)
    sparring.train(TINY, run="three", decisions=40, console=SILENT, ddpg={"actor_lr": 0.5})
    infos = {info.run: info for info in sparring.list_runs()}
    assert set(infos) == {"one", "two", "three"}
    assert (infos["two"].seed, infos["two"].decisions, infos["two"].budget, infos["two"].fault) == (6, 72, 72, None)
    assert infos["one"].score == run.score
    assert not infos["one"].training

    found = sparring.compare()
    assert found.picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(sorted(group.runs) for group in found.groups) == [["one", "two"], ["three"]]
    assert {group.solved for group in found.groups} == {0}
    with pytest.raises(SparringError, match="no run four in runs"):
        sparring.compare(["one", "four"])
    again = sparring.compare(["one", "runs/one", "three"])
    assert [info.run for info in again.runs] == ["one", "three"], "each once"
    shutil.copytree("runs/one", "elsewhere/one")
    both = sparring.compare(["one", "elsewhere/one"])
    assert [info.run for info in both.runs] == ["one", "elsewhere/one"], "runs of one name are told apart"
    shutil.rmtree("elsewhere")

    total = sum(info.size for info in listing.list_runs())
    everything = set(Path("runs").rglob("*"))
    told = sparring.prune(keep_bytes=total - 1)
    assert [entry.run for entry in told] == ["one"]
    assert everything == set(Path("runs").rglob("*"))
    assert sparring.prune(keep_bytes=total - 1, really=True) == told
    assert not Path("runs/one/replay").exists()
    assert sparring.evaluate("one", matches=2, episodes=0).matches == 2
    with pytest.raises(SparringError, match="replay"):
        sparring.train(TINY, run="one", decisions=100, console=SILENT)
    with find_run("two").lock():
        assert [entry.run for entry in sparring.prune(keep_bytes=0, whole=True, really=True)] == ["one", "three"]
    assert [path.name for path in Path("runs").iterdir() if path.is_dir()] == ["two"]


def test_an_unreadable_run_does_not_hide_the_others(run: RunResult) -> None:
    sparring.train(TINY, run="two", decisions=2, console=SILENT)
    Path("runs/two/latest.pt").write_bytes(b"PK\x03\x04")
    faults = {info.run: info.fault for info in sparring.list_runs()}
    assert faults["one"] is None
    assert "is truncated" in str(faults["two"])
    with pytest.raises(SparringError, match="is truncated"):
        sparring.compare()


def test_make_refuses_unknown_games() -> None:
    with pytest.raises(SparringError, match=r"^no game tenis: did you mean tennis\?"):
        sparring.make("tenis")
    with pytest.raises(SparringError, match=r"^no game plank: there are tennis, loong, mpe; your own is a factory"):
        sparring.make("plank")  # a game of somebody's own, with --own forgotten
    assert sparring.make(Tennis, lanes=2, velocity="true").lanes == 2


def test_the_public_names_are_all_there() -> None:
    for name in sparring.__all__:
        assert getattr(sparring, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = sparring.trian


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "matches.jsonl"
    for rows, line in ((b'{"a": 1}\n{"a": {"a\n', "line 2 is damaged"), (b'{"a": 1}\n', "does not hold matches")):
        path.write_bytes(rows)
        with pytest.raises(SparringError, match=line):
            read_matches(path)


def test_a_run_elsewhere_is_found_by_what_its_result_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for run in ("at-home", "sub/one", Path("two"), tmp_path / "three"):
        result = sparring.train(TINY, run=run, console=SILENT)
        assert sparring.load(result.run).name == Path(run).name
    assert sparring.train(TINY, run="at-home", console=SILENT).run == "at-home"


def test_a_policy_answers_no_observations_too(run: RunResult) -> None:
    assert sparring.load(run.run).act(np.zeros((0, 24))).shape == (0, 2)
