"""The command line: every verb, JSON, help that teaches, and one clear line with exit code 2 for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import TINY

from sparring import cli
from sparring.cli import main
from sparring.settings import to_toml


@pytest.fixture(autouse=True)
def in_a_folder_with_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARRING_RUNS", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    # TensorBoard's import takes seconds; tests/test_runs.py uses it.
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    Path("tiny.toml").write_text(to_toml(TINY))


class Told:
    """What a command printed and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *self.capsys.readouterr()

    def json(self, *arguments: str) -> Any:
        code, out, _ = self(*arguments, "--json")
        assert code == 0
        return json.loads(out)


@pytest.fixture
def sparring(capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(capsys)


def test_train_evaluate_play_list(sparring: Told) -> None:
    code, out, err = sparring("train", "tiny.toml")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "run tiny starts in runs/tiny"
    assert "next: sparring evaluate tiny, or sparring play tiny" in out

    code, out, err = sparring("evaluate", "tiny", "--matches", "4", "--episodes", "2")
    assert (code, err) == (0, "")
    assert out.startswith("tiny: 4 matches, mean score of the better agent ")
    assert "95% interval" in out
    assert "another measure, 2 episodes" in out

    code, out, err = sparring("play", "tiny", "--seconds", "0.5")
    assert (code, err) == (0, "")
    assert "over the net" in out
    assert out.endswith("picture: runs/tiny/rally.gif\n")

    for words in (("runs",), ("runs", "list")):
        code, out, err = sparring(*words)
        assert (code, err) == (0, "")
        assert out.splitlines()[1].split()[:4] == ["tiny", "finished", "5", "72"]


def test_every_report_comes_as_json_alone_on_stdout(sparring: Told) -> None:
    trained = sparring.json("train", "tiny.toml")
    assert (trained["run"], trained["status"], trained["decisions"]) == ("tiny", "finished", 72)
    evaluated = sparring.json("evaluate", "tiny", "--matches", "4", "--opponent", "tiny", "--episodes", "0")
    assert evaluated["wins"] + evaluated["draws"] + evaluated["losses"] == evaluated["matches"] == 4
    played = sparring.json("play", "tiny", "--seconds", "0.5", "--out", "x.gif")
    assert played["path"] == "x.gif"
    assert played["best"] == max(played["score_a"], played["score_b"])
    (listed,) = sparring.json("runs")
    assert (listed["run"], listed["matches"]) == ("tiny", trained["matches"])
    assert sparring.json("runs", "compare")["picture"] == "runs/compare.png"
    (pruned,) = sparring.json("runs", "prune", "--keep-gb", "0")
    assert (pruned["run"], pruned["what"]) == ("tiny", "replay")
    code, out, _ = sparring("doctor", "--json")
    assert code in (0, 1)  # 1: this machine lacks something
    assert {"name", "status", "found", "mend"} <= set(json.loads(out)[0])


def test_flags_win_over_the_recipe_and_seeds_name_runs(sparring: Told) -> None:
    command = "train --seed 9 tiny.toml --decisions 4 --ddpg.actor-lr 0.25 --ddpg.critic-hidden 5 4"
    found = sparring.json(*command.split())
    assert found["run"] == "tiny-seed-9"
    text = Path("runs/tiny-seed-9/recipe.toml").read_text()
    for line in ("seed = 9", "decisions = 4", "actor_lr = 0.25", "critic_hidden = [5, 4]", "batch = 4"):
        assert f"\n{line}\n" in f"\n{text}"
    assert sparring.json("train", "tiny.toml", "--seed", "5", "--run", "mine", "--decisions", "4")["run"] == "mine"


def test_the_same_command_again_continues(sparring: Told) -> None:
    Path("tiny.toml").write_text(to_toml(replace(TINY, decisions=10**9)))
    command = ("train", "tiny.toml", "--minutes", "1e-9")
    assert sparring.json(*command)["decisions"] == 2
    code, out, _ = sparring(*command)
    assert code == 0
    assert out.startswith("run tiny continues in runs/tiny at decision 2, match 0, ")


def test_two_seeds_are_compared_as_one_group(sparring: Told) -> None:
    for seed in ("5", "6"):
        sparring("train", "tiny.toml", "--seed", seed)
    code, out, err = sparring("runs", "compare", "tiny", "tiny-seed-6")
    assert (code, err) == (0, "")
    assert "tiny and 1 more: 0 of 2 solved" in out
    assert Path("runs/compare.png").exists()


def test_prune_removes_only_with_yes(sparring: Told) -> None:
    sparring("train", "tiny.toml")
    _, out, _ = sparring("runs", "prune", "--keep-gb", "0")
    assert "would remove runs/tiny/replay" in out
    assert "nothing was removed; add --yes" in out
    assert Path("runs/tiny/replay").exists()
    _, out, _ = sparring("runs", "prune", "--keep-gb", "0", "--yes")
    assert out.startswith("removed runs/tiny/replay")
    assert not Path("runs/tiny/replay").exists()
    assert sparring("runs", "prune", "--keep-gb", "1")[1] == "nothing to remove\n"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("trian x", "no verb trian: did you mean train?"),
        ("runs lst", "no verb lst: did you mean list?"),
        ("train tenis", "no recipe tenis: did you mean tennis?"),
        ("train nope.toml", "nope.toml: cannot be read: No such file or directory"),
        ("train bad.toml", "bad.toml: lanes = 0: must be in [1, 65536]"),
        ("train tiny.toml --ddpg.actor-lr 7", "flags: ddpg.actor_lr = 7.0: must be in (0, 1]"),
        ("train tiny.toml --ddpg.batch 33", "flags: ddpg.batch = 33: must be at most ddpg.buffer, which is 32"),
        ("train tiny.toml --minutes 0", "minutes = 0.0: must be more than 0"),
        (
            "train tiny.toml --game chess",
            "no game chess: there are tennis, loong, mpe; your own is a factory, game=..., or --own FILE.py:NAME",
        ),
        ("train tiny.toml --run ..", 'run name ".." cannot be used: give a name such as tennis-1, or a path'),
        ("evaluate tiyn", "no run tiyn in runs: there are no runs yet; start one: sparring train tennis"),
        ("play tiyn", "no run tiyn in runs: there are no runs yet; start one: sparring train tennis"),
        ("runs compare", "there are no runs in runs to compare; start one: sparring train tennis"),
        ("runs prune --keep-gb -1", "--keep-gb -1.0: must be at least 0"),
        ("runs prune --keep-gb inf", "--keep-gb inf: must be at least 0, and finite"),
        ("evaluate ./tiny", "no run ./tiny: there are no runs yet; start one: sparring train tennis"),
        ("train tiny.toml --minutes inf", "minutes = inf: must be more than 0, and finite"),
        ("train tiny.toml --solved-score inf", "flags: solved_score = inf: must be finite and in [-1e+09, 1e+09]"),
        (
            "train tiny.toml --metrics-every 9223372036854775808",
            "flags: metrics_every = 9223372036854775808: must fit 64 bits",
        ),
        (
            "train tiny.toml --ddpg.noise-sigma-low 0 --ddpg.noise-sigma 0.3",
            "flags: ddpg.noise_sigma_low = 0.0: must be 0 together with ddpg.noise_sigma, which is 0.3: "
            "lanes go up in equal ratios",
        ),
        (
            f"train tiny.toml --run {'a' * 300}",
            'run name "aaaaaaaaaaaaaaaaaaaa..." cannot be used: at most 200 letters',
        ),
    ],
)
def test_mistakes_are_one_line_on_stderr_with_code_2(sparring: Told, command: str, line: str) -> None:
    Path("bad.toml").write_text("lanes = 0")
    assert sparring(*command.split()) == (2, "", f"sparring: {line}\n")
    assert not Path("runs").exists(), "a mistake must leave nothing behind"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("train tiny.toml --sede 3", "--seed INT"),
        ("train tiny.toml --seed x", "invalid literal for int"),
        ("train", "RECIPE"),
        ("evaluate", "RUN"),
        ("runs prune", "--keep-gb FLOAT"),
        ("train tiny.toml --device tpu", "cpu"),
        ("doctor now", "now"),
    ],
)
def test_wrong_flags_are_a_short_box_on_stderr_with_code_2(sparring: Told, command: str, part: str) -> None:
    code, out, err = sparring(*command.split())
    assert (code, out) == (2, "")
    assert part in err
    assert len(err.splitlines()) <= 20
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("", ["usage: sparring VERB", "sparring train tennis"]),
        ("--help", ["usage: sparring VERB", "doctor"]),
        ("train --help", ["sparring train tennis --minutes 4", "Recipes: ", "--ddpg.actor-lr", "--minutes"]),
        ("evaluate --help", ["sparring evaluate tennis --opponent", "--matches"]),
        ("play -h", ["rally.gif", "--seconds"]),
        ("runs --help", ["sparring runs compare tennis", "$SPARRING_RUNS"]),
        ("runs prune --help", ["but not continued", "--yes"]),
        ("runs compare --help", ["one picture"]),
        ("doctor --help", ["how to mend it"]),
        *(
            (f"{verb} --help", ["a .zip of its files", "a run of Loong", "`starter`"])
            for verb in ("match", "verdict", "ladder")
        ),
        ("lockstep --help", ["--jobs 8", "reproduce(FILE)", "--policy"]),
    ],
)
def test_help_teaches(sparring: Told, command: str, parts: list[str]) -> None:
    code, out, err = sparring(*command.split())
    assert (code, err) == (0, "")
    for part in parts:
        assert part in out


def test_help_shows_the_values_of_the_recipe_at_hand(sparring: Told) -> None:
    _, out, _ = sparring("train", "tiny.toml", "--help")
    line = out[out.index("--ddpg.buffer") :]
    assert "(default: 32)" in line[: line.index("--ddpg.batch")]


def test_an_unknown_verb_like_no_other_names_them_all(sparring: Told) -> None:
    code, out, err = sparring("zzz")
    assert (code, out) == (2, "")
    assert err.startswith("sparring: no verb zzz: there are train, evaluate, play, ")
    assert err.endswith("doctor; see sparring --help\n")


def test_version(sparring: Told) -> None:
    code, out, _ = sparring("--version")
    assert code == 0
    assert out.startswith("sparring 0.")


def test_the_installed_command_and_the_module_are_the_same() -> None:
    for command in ([str(Path(sys.executable).with_name("sparring"))], [sys.executable, "-m", "sparring"]):
        ended = subprocess.run([*command, "evaluate", "nope"], capture_output=True, text=True)
        assert ended.returncode == 2
        assert ended.stdout == ""
        assert (
            ended.stderr == "sparring: no run nope in runs: there are no runs yet; start one: sparring train tennis\n"
        )


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = f"{sys.executable} -m sparring train --help | head -c 1"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr


def test_a_full_disk_behind_stdout_is_one_line() -> None:
    command = f"{sys.executable} -m sparring maps > /dev/full"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, "sparring: No space left on device\n")


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("train", "stopped at once; what the last checkpoint holds is safe"),
        ("ladder", "stopped at once; finished matches are on record, and the same command goes on"),
        ("match", "stopped at once"),
    ],
)
def test_an_interrupt_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str, line: str
) -> None:
    def interrupted(given: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli._VERBS, verb, interrupted)
    assert cli.main([verb]) == 130
    assert capsys.readouterr().err == f"sparring: {line}\n"


def test_what_files_say_gives_no_orders_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.map"
    path.write_bytes(b"\x1b[31mred\n")
    assert cli.main(["maps", "check", str(path)]) == 2
    assert cli.main(["match", str(path), "legal", "legal"]) == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err and said.out.count("?[31mred") == said.err.count("?[31mred") == 1


def test_an_interrupt_while_the_command_is_still_loading_is_one_line() -> None:
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'tyro':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from sparring.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "sparring: stopped before it began\n")
