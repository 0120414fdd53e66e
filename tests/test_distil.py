"""Distillation: lanes, labels along lives, losses by part, rounds on disk, kills and resumes, what cannot be."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import tiny_runs
import torch
from rich.console import Console
from tiny_loong import tiny_recipe
from tiny_runs import TINY, Crash, CrashingDisk, training
from torch import Tensor

import sparring
from sparring import cli
from sparring.distil import run as distilling
from sparring.distil.distiller import Distiller, Told, agreements
from sparring.distil.play import BURN_IN, Played, Player, follow, spans
from sparring.distil.run import distil_student
from sparring.distil.settings import DistilConfig
from sparring.distil.students import load_student, newest_student, rounds_of
from sparring.errors import SparringError
from sparring.games.loong import Loong
from sparring.learn.lives import stretches
from sparring.policies.actions import PARTS, Mask, Tree, unpack
from sparring.policies.fixed_point import ARITHMETIC
from sparring.policies.loong import Teacher
from sparring.policies.loong import preset as teacher_preset
from sparring.policies.student import Student, preset
from sparring.runs import checkpoint
from sparring.runs.folder import RunFolder
from sparring.runs.metrics import read_json_lines
from sparring.runs.policy import load_teacher

SILENT = Console(quiet=True)
SMALL: dict[str, Any] = {
    "lanes": 3, "steps": 10, "updates": 3, "minibatch": 16, "stretch": 4, "threads": 1, "save_seconds": 0.0, "lr": 1e-2
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("distil")


@pytest.fixture(scope="module")
def taught(place: Path) -> Path:
    """A run with a teacher of two updates."""
    run = training(place / "run", recipe=tiny_recipe(place))
    run.step()
    run.step()
    run.save()
    run.close()
    return run.folder.path


@pytest.fixture
def run(taught: Path, tmp_path: Path) -> Path:
    """A copy to distil from."""
    return Path(shutil.copytree(taught, tmp_path / "run"))


def quick(run: Path) -> RunFolder:
    """The run on a disk that syncs nothing: no test here outlives the kernel."""
    return RunFolder(run, disk=CrashingDisk())


def sharp(network: Teacher | Student, seed: int) -> None:
    """Make it a policy that is far from uniform: no sprints, some splits, mostly straight on."""
    with torch.no_grad():
        network.heads.logits.weight.mul_(30.0)
        network.heads.logits.bias[:3] = torch.tensor([2.5, -1.0, 0.0])


def player(place: Path, *, lanes: int = 4, seed: int = 2) -> Player:
    game = Loong(lanes=lanes, seed=seed, maps=place / "maps", observe="inputs")
    return Player(game, opponents=("forager", "legal"), scripted=0.5, seed=seed)


def memory_of(network: Teacher | Student, game: Loong) -> Tensor:
    return torch.zeros(game.lanes * game.agents, network.config.memory)


def test_the_network_that_follows_remembers_each_life_as_if_it_had_lived_it(taught: Path) -> None:
    """Newborns, lives in the slots of the dead, and lives that go on over rollouts included."""
    lanes = player(taught.parent)
    student, teacher = Student(preset("student-tiny"), seed=1), Teacher(teacher_preset("tiny"), seed=3)
    sharp(student, 1)
    plays, follows = memory_of(student, lanes.game), memory_of(teacher, lanes.game)
    lived: dict[tuple[int, int, int], Tensor] = {}
    shared = born = carried = 0
    for _ in range(4):
        played = lanes.play(student, plays, 17, greedy=False)
        features, before = follow(teacher, played, follows, most=4)
        starts, lengths = stretches(played.first, 4)
        assert torch.equal(spans(starts, lengths), torch.arange(len(played)))
        place = {int(start): number for number, start in enumerate(starts)}
        for row in range(len(played)):
            key = int(played.block[row]), int(played.match[row]), int(played.dragon[row])
            assert (key not in lived) == (int(played.decision[row]) == 0)
            memory = lived.get(key, teacher.newborn(1))
            born += key not in lived and int(played.round[row]) > 0
            carried += key in lived and bool(played.first[row])
            if row in place:
                torch.testing.assert_close(before[place[row]], memory[0], rtol=1e-4, atol=1e-5)
            with torch.no_grad():
                tree, lived[key] = teacher.step(played.inputs[row : row + 1], played.mask[row : row + 1], memory)
            torch.testing.assert_close(features[row], tree.features[0], rtol=1e-4, atol=1e-4)
        heads = played.first.nonzero().view(-1)
        shared += len(heads) - len(played.slot[heads].unique())
    assert lanes.matches > 4 and shared > 4 and born > 4 and carried > 4


def test_what_was_played_is_what_the_game_told_and_the_student_chose(taught: Path) -> None:
    lanes = player(taught.parent)
    student = Student(preset("student-tiny"), seed=1)
    played = lanes.play(student, memory_of(student, lanes.game), 12, greedy=True)
    with torch.no_grad():
        tree, _ = student.step(played.inputs, played.mask, played.memory)
    assert torch.equal(tree.mode(), played.action)
    drawing = player(taught.parent)
    winners: dict[tuple[int, int], int] = {}
    results = drawing.game.results

    def listened(outcome: Any) -> Any:
        ended = results(outcome)
        for lane, winner in zip(outcome.ended.tolist(), ended["winner"].tolist(), strict=True):
            winners[lane, int(drawing.game._match[lane])] = winner
        return ended

    drawing.game.results = listened  # type: ignore[method-assign]
    drawn = drawing.play(student, memory_of(student, lanes.game), 30, greedy=False)
    assert not torch.equal(drawn.action[:40], played.action[:40]), "drawn, not the most probable"
    assert len(set(winners.values())) > 1
    for row in range(len(drawn)):
        assert int(drawn.winner[row]) == winners.get((int(drawn.block[row]) // 2, int(drawn.match[row])), -1)
    # Held roles are the student's own: the role of a decision is held at the next one of the same life.
    goes_on = ~played.first[1:]
    held, chosen = Mask.of(played.mask[1:]).held[goes_on], unpack(played.action[:-1]).role[goes_on]
    assert torch.equal(held, chosen)


def test_open_lives_carry_no_label_for_a_while_after_a_change_of_teacher(
    taught: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long enough for lives to end, to be born and to come through; lives of these tests are short."""
    assert BURN_IN == 32
    burn_in = 4
    monkeypatch.setattr("sparring.distil.distiller.BURN_IN", burn_in)
    lanes = player(taught.parent, lanes=6)
    student, teacher = Student(preset("student-tiny"), seed=1), Teacher(teacher_preset("tiny"), seed=3)
    sharp(student, 1)
    distiller = Distiller(lanes, DistilConfig(**{**SMALL, "lanes": 6}), teacher)
    memory = memory_of(student, lanes.game)
    first = lanes.play(student, memory, 9, greedy=False)
    assert first.labelled.all()
    distiller.begin(teacher, changed=False)
    assert not lanes.burn_in.any()
    distiller.begin(teacher, changed=True)
    begun = {key(first, row): int(first.decision[row]) for row in range(len(first))}
    seen = {True: 0, False: 0}
    made: dict[tuple[int, int, int], int] = {}
    for _ in range(4):
        played = lanes.play(student, memory, 12, greedy=False)
        for row in range(len(played)):
            life = key(played, row)
            made[life] = made.get(life, -1) + 1
            open_then = life in begun or int(played.decision[row]) > made[life]
            assert bool(played.labelled[row]) == (not open_then or made[life] >= burn_in), life
            seen[open_then and made[life] >= burn_in] += 1
    assert seen[True] > 5, "no open life came through"


def key(played: Played, row: int) -> tuple[int, int, int]:
    return int(played.block[row]), int(played.match[row]), int(played.dragon[row])


def distiller(taught: Path, **changes: Any) -> Distiller:
    config = DistilConfig(**{**SMALL, **changes})
    teacher = load_teacher(taught).teacher
    lanes = player(taught.parent, lanes=config.lanes)
    made = Distiller(lanes, config, teacher)
    made.begin(teacher, changed=False)
    return made


def test_the_loss_is_the_divergence_from_the_teacher_on_labelled_decisions(taught: Path) -> None:
    """In one batch of the whole rollout, against the formula on the trees of single decisions."""
    work = distiller(taught, minibatch=10**6, epochs=1, balance=0.0, lanes=5)
    sharp(work.teacher, 0)
    work.player.burn_in[::3] = 4
    work.player.game.decisions()
    student = Student(preset("student-tiny"), seed=work.config.seed)
    work.student.load_state_dict(student.state_dict())
    seen: dict[str, Played] = {}
    play = work.player.play

    def listened(*given: Any, **named: Any) -> Played:
        seen["played"] = play(*given, **named)
        # Newborns are labelled; take some labels away, as a change of teacher would.
        seen["played"].labelled[::4] = False
        return seen["played"]

    work.player.play = listened  # type: ignore[method-assign]
    follows = work.teacher_memory.clone()
    told = work.step()
    played = seen["played"]
    features, _ = follow(work.teacher, played, follows, most=4)
    teacher = Tree(work.teacher.heads, features, played.mask)
    with torch.no_grad():
        mine, _ = student.step(played.inputs, played.mask, played.memory)
        from sparring.learn.noise import choice_uniforms

        uniforms = choice_uniforms(*played.ids, seed=work.config.seed, stream=24)
        parts = teacher.kl(mine, teacher.sprint_paths(played.action, uniforms), taken=False)[played.labelled]
    assert told["loss"] == pytest.approx(float(parts.sum(dim=1).mean()), rel=1e-3)
    for part, column in zip(PARTS, parts.unbind(dim=1), strict=True):
        assert told[f"loss_{part}"] == pytest.approx(float(column.mean()), rel=1e-3, abs=1e-6)
    assert told["labelled"] == pytest.approx(float(played.labelled.float().mean()))
    assert {"agreement", "entropy", "teacher_entropy", "entropy_kind", "value_error"} <= set(told)


def test_diagnostics_move_no_choice(taught: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def after(wrong: bool) -> dict[str, Tensor]:
        work = distiller(taught)
        if wrong:
            monkeypatch.setattr(
                Distiller, "_results", lambda self, played: torch.full((len(played),), 1000.0, dtype=torch.float32)
            )
        work.step()
        monkeypatch.undo()
        return work.student.state_dict()

    one, other = after(False), after(True)
    moved = {name for name in one if not torch.equal(one[name], other[name])}
    assert moved == {"value.weight", "value.bias"}


def test_the_decay_of_weights_is_the_settings_and_not_the_checkpoints(taught: Path) -> None:
    learner = distiller(taught, weight_decay=0.25)
    learner.load_state(distiller(taught, weight_decay=0.5).state())
    assert [group["weight_decay"] for group in learner._optimiser.param_groups] == [0.25]


def test_agreement_by_part_by_hand() -> None:
    from sparring.policies.actions import MASK_BYTES, MASK_ROLE_DUE, Actions, pack

    def choice(role: int, kind: int, direction: int, size: int, steps: list[int], claim: int) -> Tensor:
        number = torch.tensor([0])
        sprint = torch.tensor([steps + [0] * (8 - len(steps))])
        return pack(
            Actions(
                role=number + role, kind=number + kind, direction=number + direction, size=number + size,
                steps=number + len(steps), sprint=sprint, claim=number + claim,
            )
        )  # fmt: skip

    pairs = [
        (choice(1, 0, 2, 0, [], 3), choice(1, 0, 2, 0, [], 3)),  # a move, all the same
        (choice(1, 0, 2, 0, [], 3), choice(1, 0, 1, 0, [], 3)),  # another direction
        (choice(1, 0, 2, 0, [], 3), choice(1, 2, 0, 4, [], 3)),  # another kind
        (choice(1, 0, 2, 0, [], 3), choice(5, 0, 2, 0, [], 3)),  # another role
        (choice(1, 1, 0, 0, [0, 1], 7), choice(1, 1, 0, 0, [0, 1, 2], 8)),  # another sprint, another claim
        (choice(1, 2, 0, 4, [], 3), choice(1, 2, 0, 5, [], 3)),  # another size
    ]
    mask = torch.zeros(len(pairs), MASK_BYTES, dtype=torch.uint8)
    mask[[0, 3], MASK_ROLE_DUE] = 1
    found = agreements(torch.cat([a for a, _ in pairs]), torch.cat([b for _, b in pairs]), Mask.of(mask))
    assert {name: equal.tolist() for name, equal in found.items()} == {
        "role": [True, False],
        "kind": [True, True, False, True, True],
        "direction": [True, False],
        "size": [False],
        "sprint": [False],
        "claim": [True, True, False, True],
    }
    told = Told()
    told.add("loss", torch.tensor([1.0, 2.0]))
    told.add("loss", torch.tensor([6.0]))
    told.add("nothing", torch.tensor([]))
    assert told.means() == {"loss": 3.0}


@pytest.mark.parametrize("off_policy", [False, True])
def test_a_student_learns_what_its_teacher_does(taught: Path, off_policy: bool) -> None:
    work = distiller(
        taught, lanes=6, steps=20, updates=6, minibatch=32, lr=3e-3, warmup=0, off_policy=off_policy, epochs=2
    )
    sharp(work.teacher, 0)
    told = []
    while not work.finished:
        quantised = work.quantised
        told.append(work.step())
        assert work.student.quantised == quantised
    assert [len(work.losses), work.rounds, work.updates] == [4, 1, 6]
    assert told[-1]["loss"] < 0.5 * told[0]["loss"]
    assert told[-1]["agreement_direction"] >= told[0]["agreement_direction"] > 0.5
    units = work.student_memory * 2**15
    assert off_policy or torch.equal(units, units.round()), "it plays with a bot's memory"


def test_the_teachers_memory_is_its_own_where_it_plays(taught: Path) -> None:
    work = distiller(taught, off_policy=True)
    twin = distiller(taught)
    work.step()
    twin.step()
    assert work.teacher_memory.abs().sum() > 0 and work.student_memory.abs().sum() > 0
    assert not torch.equal(work.teacher_memory, twin.teacher_memory)


def test_a_round_cut_short_still_ends_in_the_bots_arithmetic(taught: Path) -> None:
    work = distiller(taught, updates=12)
    for _ in range(3):
        work.step()
    work.end_early()
    assert (work.floats, work.whole, work.quantised, work.finished) == (3, 5, True, False)
    work.step()
    work.end_early()
    work.step()
    assert work.finished and work.student.quantised and work.rounds == 1


# Folders


def fingerprint(run: Path) -> dict[str, bytes]:
    """Everything that distillation decides; not times."""
    folder = run / "students"
    latest = checkpoint.read_file(folder / "latest.pt", format=distilling.FORMAT, version=1, other="")
    kept = {name: part for name, part in latest.items() if name not in ("seconds", "metrics")}
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in read_json_lines(folder / "metrics.jsonl")]
    rounds = {path.name: path.read_bytes() for path in rounds_of(folder).values()}
    return {"latest": tiny_runs._bytes(kept), "metrics": json.dumps(rows).encode(), **rounds}


@pytest.fixture(scope="module")
def uninterrupted(taught: Path, place: Path) -> dict[str, bytes]:
    path = Path(shutil.copytree(taught, place / "uninterrupted"))
    distil_student(quick(path), rounds=2, console=SILENT, **SMALL)
    return fingerprint(path)


def test_rounds_are_files_that_nothing_changes_any_more(run: Path, uninterrupted: dict[str, bytes]) -> None:
    said = io.StringIO()
    result = distil_student(quick(run), console=Console(file=said, width=300), **SMALL)
    assert (result.status, result.rounds, result.updates, result.decisions) == ("finished", 1, 3, 90)
    assert result.student == run / "students" / "round-0001.pt"
    first = result.student.read_bytes()
    text = said.getvalue()
    assert "the student of run run begins: student-tiny of 0." in text
    assert "teacher " in text and "trained on 96 decisions" in text
    assert "until 1 round; saved every 0 s, and on Ctrl-C" in text
    assert "agreement" in text and "teacher's" in text and "claim" in text
    assert f"student: {result.student}" in text
    again = distil_student(quick(run), console=SILENT, **SMALL)
    assert (again.rounds, again.decisions) == (2, 180)
    assert result.student.read_bytes() == first
    assert fingerprint(run) == uninterrupted, "two calls do what one does"
    assert newest_student(run) == again.student

    student, facts = load_student(result.student)
    trained = load_teacher(run)
    assert (facts.preset, facts.quantised, facts.round, facts.decisions) == ("student-tiny", True, 1, 90)
    assert facts.teacher == trained.weights_hash and facts.core == sparring._core.source_hash
    assert student.quantised and student.config == preset("student-tiny")
    assert set(facts.told) == {"loss", "agreement", "entropy", "teacher_entropy"}
    assert set(facts.told["loss"]) == {"all", *PARTS}
    assert facts.told["loss"] == result.told["loss"]
    rows = read_json_lines(run / "students" / "metrics.jsonl")
    assert [(row["round"], row["update"], row["quantised"]) for row in rows] == [
        (1, 1, False), (1, 2, False), (1, 3, True), (2, 4, False), (2, 5, False), (2, 6, True)
    ]  # fmt: skip
    assert rows[2]["loss"] == facts.told["loss"]["all"]
    json.dumps(result.json())


def test_a_crash_anywhere_costs_only_time(
    taught: Path, tmp_path: Path, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the calls: between the checkpoint of a round's end and the round's file."""
    calls = CrashingDisk()
    path = Path(shutil.copytree(taught, tmp_path / "counted"))
    distil_student(RunFolder(path, disk=calls), rounds=2, console=SILENT, **SMALL)
    wanted = [
        at
        for at, call in enumerate(calls.calls)
        if call in ("write latest.pt.new", "rename latest.pt", "write round-0001.pt.new", "rename round-0002.pt")
    ]
    for at in (wanted[3], wanted[-1]):
        path = Path(shutil.copytree(taught, tmp_path / str(at)))
        with pytest.raises(Crash):
            distil_student(RunFolder(path, disk=CrashingDisk(at, "during")), rounds=2, console=SILENT, **SMALL)
        made = max(rounds_of(path / "students"), default=0)
        left = checkpoint_rounds(path)
        distil_student(quick(path), rounds=2 - left, console=SILENT, **SMALL) if left < 2 else distil_again(path)
        assert fingerprint(path) == uninterrupted, f"crash in call {at}, {calls.calls[at]}, after round {made}"


def checkpoint_rounds(run: Path) -> int:
    path = run / "students" / "latest.pt"
    if not path.exists():
        return 0
    content = checkpoint.read_file(path, format=distilling.FORMAT, version=1, other="")
    return int(content["distiller"]["counters"]["rounds"])


def distil_again(run: Path) -> None:
    """What a resume does before its first round."""
    work = distilling.Distillation(RunFolder(run), DistilConfig(**SMALL), load_teacher(run), SILENT)
    work.close()


def test_a_killed_process_loses_only_time(run: Path, uninterrupted: dict[str, bytes]) -> None:
    script = (
        "import sys, os, signal; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from rich.console import Console; from killed_run import KillingDisk\n"
        "from sparring.distil.run import distil_student; from sparring.runs.folder import RunFolder\n"
        "from test_distil import SMALL\n"
        "folder = RunFolder(Path(sys.argv[2]), disk=KillingDisk('write latest.pt', 5))\n"
        "distil_student(folder, rounds=2, console=Console(quiet=True), **SMALL)\n"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(run)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert checkpoint_rounds(run) == 1
    distil_student(quick(run), console=SILENT, **SMALL)
    assert fingerprint(run) == uninterrupted


def test_a_signal_saves_and_the_same_command_goes_on(
    run: Path, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Distiller.step

    def interrupted(self: Distiller) -> dict[str, float]:
        told = step(self)
        if self.updates == 2:
            signal.raise_signal(signal.SIGINT)
        return told

    slow = {**SMALL, "save_seconds": 1000.0}
    monkeypatch.setattr(Distiller, "step", interrupted)
    said = io.StringIO()
    result = distil_student(quick(run), rounds=2, console=Console(file=said, width=300), **slow)
    assert (result.status, result.signal, result.updates, result.student) == ("stopped", signal.SIGINT, 2, None)
    assert "the round is not over: the same command goes on with it" in said.getvalue()
    monkeypatch.undo()
    distil_student(quick(run), rounds=2, console=SILENT, **SMALL)
    assert fingerprint(run) == uninterrupted


def test_the_teacher_of_a_round_is_the_newest_and_stays_for_the_round(run: Path) -> None:
    """A run that trains on in between: open lives burn in, and the round that was begun keeps its teacher."""
    distil_student(quick(run), console=SILENT, **SMALL)
    once = load_student(newest_student(run))[1]
    trainer = training(run, recipe=load_teacher(run).recipe)
    trainer.step()
    trainer.save()
    trainer.close()
    distil_student(quick(run), console=SILENT, **SMALL)
    twice = load_student(newest_student(run))[1]
    assert twice.teacher == load_teacher(run).weights_hash != once.teacher
    rows = read_json_lines(run / "students" / "metrics.jsonl")
    assert rows[2]["labelled"] == 1.0 > rows[3]["labelled"]


def test_time_ends_a_round_early_and_not_the_first_one_before_it_is_made(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock by which every update takes ten seconds, with the bot's arithmetic 16."""
    now = 0.0
    step = Distiller.step

    def timed(self: Distiller) -> dict[str, float]:
        nonlocal now
        told = step(self)
        now += 16.0 if self.student.quantised else 10.0
        return told

    monkeypatch.setattr(Distiller, "step", timed)
    monkeypatch.setattr(distilling.time, "monotonic", lambda: now)
    settings = {**SMALL, "updates": 30, "save_seconds": 1000.0}
    result = distil_student(quick(run), minutes=1.5, console=SILENT, **settings)
    assert (result.status, result.rounds) == ("out of time", 1)
    rows = [row["quantised"] for row in read_json_lines(run / "students" / "metrics.jsonl")]
    assert rows.count(True) * 2 in (rows.count(False), rows.count(False) + 1)
    assert 60 <= now <= 90
    result = distil_student(quick(run), minutes=0.01, console=SILENT, **settings)
    assert result.rounds == 2, "the least is one update and one with the bot's arithmetic"


def test_a_round_that_learns_nothing_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    losses = iter((0.5, 0.4, 0.25, 0.2, 0.25, 0.4, 0.5, 0.1))

    def told(self: Told) -> dict[str, float]:
        return {"loss": next(losses)}

    monkeypatch.setattr(Told, "means", told)
    distil_student(quick(run), rounds=2, console=Console(file=said, width=300), **{**SMALL, "updates": 4})
    assert "round 1 learnt nothing" not in said.getvalue()
    assert "round 2 learnt nothing: before its last third the loss went from" in said.getvalue()


def test_a_gradient_that_is_no_number_stops_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distil_student(quick(run), console=SILENT, **SMALL)
    before = (run / "students" / "latest.pt").read_bytes()
    begin = Distiller.begin

    def broken(self: Distiller, teacher: Teacher, *, changed: bool) -> None:
        begin(self, teacher, changed=changed)
        self.student.join.weight.register_hook(lambda gradient: gradient * torch.nan)

    monkeypatch.setattr(Distiller, "begin", broken)
    with pytest.raises(SparringError, match=r"^update 3: the gradient of student\.join\.weight is not finite: "):
        distil_student(quick(run), console=SILENT, **SMALL)
    assert (run / "students" / "latest.pt").read_bytes() == before


def changed_file(path: Path, format: str, **changes: Any) -> None:
    content = checkpoint.read_file(path, format=format, version=1, other="")
    for name in ("format", "version"):
        content.pop(name)
    checkpoint.write(path, {**content, **changes}, RunFolder(path.parent).disk, format=format, version=1)


def test_what_cannot_be_distilled_is_one_line_and_changes_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(what: str | Path, line: str, **settings: Any) -> None:
        with pytest.raises(SparringError, match=line) as caught:
            distil_student(what, console=SILENT, **{**SMALL, **settings})
        assert "\n" not in str(caught.value)

    monkeypatch.setenv("SPARRING_RUNS", str(tmp_path))
    refused("nobody", "^no run nobody in ")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "^no run .*empty")
    tennis = training(tmp_path / "tennis", recipe=TINY)
    tennis.close()
    refused(tmp_path / "tennis", "^run tennis plays tennis: no player of loong")
    untrained = training(tmp_path / "new", recipe=load_teacher(run).recipe)
    untrained.close()
    refused(tmp_path / "new", "^run new has no teacher yet: nothing was trained")
    refused(run, "^no preset 'huge' of a student: there are student, student-tiny", preset="huge")
    refused(run, "^distil: lr = 0.0: must be in ", lr=0.0)
    refused(run, r"^distil: sped: no such setting; ", sped=1)
    for limits in ({"minutes": 0.0}, {"rounds": 0}, {"minutes": float("nan")}):
        with pytest.raises(SparringError, match="must be"):
            distil_student(quick(run), console=SILENT, **limits, **SMALL)  # type: ignore[arg-type]
    assert not (run / "students").exists() and not (tmp_path / "tennis" / "students").exists()
    distil_student(quick(run), console=SILENT, **SMALL)
    before = {path.name: path.read_bytes() for path in (run / "students").iterdir()}
    refused(run, "was begun with lanes = 3, this command says 4: give 3, or remove .*latest.pt to begin", lanes=4)
    refused(run, 'was begun with preset = "student-tiny", this command says "student": give ', preset="student")
    with monkeypatch.context() as patch:
        patch.setattr("sparring._core.source_hash", "0123456789abcdef")
        refused(run, r"latest\.pt holds matches of another core \(.{12}, here 0123456789ab\): go on with the Sparring")
        with pytest.raises(SparringError, match=r"round-0001\.pt is a student of another core \(.*: distil again"):
            load_student(run / "students" / "round-0001.pt")
    with monkeypatch.context() as patch:
        patch.setattr("sparring.distil.students.ARITHMETIC", 2)
        with pytest.raises(SparringError, match=r"round-0001\.pt is a student of arithmetic 1, .* 2 .*: distil again"):
            load_student(run / "students" / "round-0001.pt")
    content = torch.load(run / "students" / "round-0001.pt", weights_only=True)
    assert content.pop("arithmetic") == ARITHMETIC == 1
    torch.save(content, tmp_path / "older.pt")
    assert load_student(tmp_path / "older.pt")[1].arithmetic == 1
    assert {path.name: path.read_bytes() for path in (run / "students").iterdir()} == before
    held = distilling.locked(run / "students" / "lock", "it is being held", "wait")
    with held:
        refused(run, "^the student of run run is being distilled by process [0-9]+: wait for it, stop it, or distil")


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda data: data[:200], "is truncated"),
        (lambda data: b"", "is empty"),
        (lambda data: data[: len(data) // 2] + b"x" + data[len(data) // 2 + 1 :], "is damaged"),
    ],
)  # fmt: skip
def test_damaged_files_are_one_line(
    taught: Path, place: Path, uninterrupted: dict[str, bytes], damage: Callable[[bytes], bytes], line: str, run: Path
) -> None:
    (run / "students").mkdir()
    for name in ("latest.pt", "round-0001.pt"):
        path = run / "students" / name
        path.write_bytes(damage((place / "uninterrupted" / "students" / name).read_bytes()))
        with pytest.raises(SparringError, match=rf"{name} {line}.*(begin a new student|distil another one)"):
            if name == "latest.pt":
                distil_student(quick(run), console=SILENT, **SMALL)
            else:
                load_student(path)


def test_a_student_that_does_not_fit_is_one_line(run: Path, uninterrupted: dict[str, bytes]) -> None:
    path = run / "round-0001.pt"
    for changes, line in (
        ({"told": 5}, r"does not fit this version of Sparring \(no told\)"),
        ({"config": asdict(preset("student"))}, "does not fit its own sizes: "),
        ({"config": {"channels": 7}}, "channels = 7"),
        ({"student": {}}, "does not fit"),
    ):
        path.write_bytes(uninterrupted["round-0001.pt"])
        changed_file(path, "sparring student", **changes)
        with pytest.raises(SparringError, match=line) as caught:
            load_student(path)
        assert "\n" not in str(caught.value)


def test_a_run_without_a_student_says_how_to_make_one(run: Path) -> None:
    with pytest.raises(SparringError, match=r"^run run has no student yet: make one with sparring distil "):
        newest_student(run)


def test_the_verb(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert cli.main(["distil", str(run), "--json", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["rounds"]) == ("finished", 1)
    assert found["student"] == str(run / "students" / "round-0001.pt")
    assert cli.main(["distil", str(run), "--preset", "huge"]) == 2
    assert "no preset 'huge' of a student" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        cli.main(["distil", "--help"])
    assert ended.value.code == 0
    assert "--off-policy" in capsys.readouterr().out
