"""On-policy distillation (Czarnecki et al. 2019; Agarwal et al. 2024): a small network plays its own choices, and in
every position that it gets into it learns what the teacher would choose there.

An update is a rollout and some passes over it. `updates` of them make a round, within which the teacher stays the same;
in the last third the student computes with the bot's arithmetic, and plays as the bot will.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring import _core
from sparring.distil.play import BURN_IN, STREAM_PATHS, Played, Player, follow, spans
from sparring.distil.quantise import ExactStudent, integers
from sparring.distil.settings import DistilConfig
from sparring.errors import SparringError
from sparring.learn.descent import load_moments
from sparring.learn.lives import stretches
from sparring.learn.noise import choice_uniforms
from sparring.learn.ppo import between, not_finite
from sparring.policies.actions import MOVE, PARTS, SPLIT, SPRINT, Mask, Tree, unpack
from sparring.policies.fixed_point import UNIT
from sparring.policies.loong import Teacher
from sparring.policies.student import Student, preset

ASK_EVERY = 4
"""In one of so many rounds of a match the choices of student and teacher are compared."""
_DIAGNOSTIC = ("value.", "lengths.")
"""Outputs of the student on which nothing depends."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """What a rollout teaches: the stretches, s of them, that hold n decisions, and what the teacher says to each.

    starts, lengths: int64 [s]; memory: float32 [s, width], of the student before each stretch
    features: float32 [n, teacher's width], what the teacher's choices hang on
    paths:    int64 [n], sprints drawn from the teacher where one is legal
    result:   float32 [n], of the match, for the team
    """

    played: Played
    starts: Tensor
    lengths: Tensor
    memory: Tensor
    features: Tensor
    paths: Tensor
    result: Tensor


class Distiller:
    """A student, the optimiser of its own, and the lanes in which it plays. Call `begin` with a teacher, then `step`
    until `finished`; then the round is over.
    """

    def __init__(self, player: Player, config: DistilConfig, teacher: Teacher) -> None:
        """teacher: gives the sizes; `begin` its weights. Raises SparringError for an unknown preset."""
        self.player, self.config = player, config
        self.student = Student(preset(config.preset), seed=config.seed)
        self.teacher = copy.deepcopy(teacher).eval().requires_grad_(False)
        slots = player.game.lanes * player.game.agents
        self.student_memory = torch.zeros(slots, self.student.config.memory)
        self.teacher_memory = torch.zeros(slots, self.teacher.config.memory)
        named = list(self.student.named_parameters())
        self._choosing = [each for name, each in named if not name.startswith(_DIAGNOSTIC)]
        self._optimiser = torch.optim.AdamW(
            self.student.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True
        )
        self.rounds = 0
        """Rounds that are over."""
        self.updates = 0
        """Updates of all rounds."""
        self.decisions = 0
        self.update = 0
        """Updates of this round."""
        self.floats, self.whole = _plan(config.updates)
        """Updates of this round before the last third, and all of them."""
        self.losses: list[float] = []
        """Of the updates of this round, on positions that it had not been trained on."""

    @property
    def finished(self) -> bool:
        """The round is over."""
        return self.update >= self.whole

    @property
    def quantised(self) -> bool:
        """The next update is one of the last third."""
        return self.update >= self.floats

    def begin(self, teacher: Teacher, *, changed: bool) -> None:
        """Begin a round. changed: it is another teacher than before, so that open lives burn in."""
        self.teacher.load_state_dict(teacher.state_dict())
        if changed:
            self.player.burn_in.fill_(BURN_IN)
        self.update, self.losses = 0, []
        self.floats, self.whole = _plan(self.config.updates)

    def end_early(self) -> None:
        """Begin the last third of the round now."""
        if not self.quantised:
            self.floats = self.update
            self.whole = self.floats + -(-self.floats // 2)

    def step(self) -> dict[str, float]:
        """One update. Returns what there is to tell of it: `loss`, `agreement`, `entropy` and `entropy_teacher`, in all
        and by part, and errors of the diagnostics; what is not known is left out.

        Raises SparringError where a number is no number.
        """
        config = self.config
        self._arithmetic()
        if config.off_policy:
            played = self.player.play(self.teacher, self.teacher_memory.clone(), config.steps, greedy=False)
        else:
            played = self.player.play(self._plays(), self.student_memory, config.steps, greedy=self.quantised)
        lesson = self._label(played)
        self._set_lr()
        told = Told()
        for epoch in range(config.epochs):
            for some in self._minibatches(lesson, epoch):
                self._descend(lesson, some, told if epoch == 0 else None)
        self.decisions += len(played)
        self.update += 1
        self.updates += 1
        means = told.means()
        if "loss" in means and not self.student.quantised:
            self.losses.append(means["loss"])
        if self.finished:
            self.rounds += 1
        return {"labelled": float(played.labelled.float().mean()), **means}

    def state(self) -> dict[str, Any]:
        """Everything that `load_state` needs to go on bit for bit, on a CPU with the same threads."""
        return {
            "player": self.player.state(),
            "student": self.student.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "teacher": self.teacher.state_dict(),
            "student_memory": self.student_memory,
            "teacher_memory": self.teacher_memory,
            "counters": {name: getattr(self, name) for name in _COUNTERS},
            "losses": list(self.losses),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.player.load_state(state["player"])
        self.student.load_state_dict(state["student"])
        load_moments(self._optimiser, state["optimiser"])
        self.teacher.load_state_dict(state["teacher"])
        self.student_memory.copy_(state["student_memory"])
        self.teacher_memory.copy_(state["teacher_memory"])
        for name in _COUNTERS:
            setattr(self, name, state["counters"][name])
        self.losses = list(state["losses"])

    def _arithmetic(self) -> None:
        """The student computes as this update wants it; where it begins to compute as the bot, what it remembers is
        rounded to what a bot can remember."""
        if self.quantised and not self.student.quantised:
            units = (self.student_memory / UNIT.unit + 0.5).floor().clamp(UNIT.low, UNIT.high)
            self.student_memory.copy_(units * UNIT.unit)
        self.student.quantised = self.quantised

    def _plays(self) -> Student:
        """The student as it plays: once it computes as the bot, in precision that makes it exact."""
        return ExactStudent(integers(self.student)) if self.quantised else self.student

    def _label(self, played: Played) -> Labelled:
        """Ask the teacher, along the lives that were played."""
        most = self.config.stretch
        starts, lengths = stretches(played.first, most)
        features, _ = follow(self.teacher, played, self.teacher_memory, most=most)
        if self.config.off_policy:
            _, memory = follow(self.student, played, self.student_memory, most=most)
        else:
            memory = played.memory[starts]
        with torch.no_grad():
            uniforms = choice_uniforms(*played.ids, seed=self.config.seed, stream=STREAM_PATHS)
            paths = Tree(self.teacher.heads, features, played.mask).sprint_paths(played.action, uniforms)
        return Labelled(
            played=played,
            starts=starts,
            lengths=lengths,
            memory=memory,
            features=features,
            paths=paths,
            result=self._results(played),
        )

    def _results(self, played: Played) -> Tensor:
        """1, 0 or -1 for the team of each decision; where its match goes on, what the student itself expects in the
        team's last position, and NaN where the teacher plays. float32 [n]"""
        team = played.block % 2
        result = torch.where(played.winner == 0, 0.0, torch.where(played.winner == team + 1, 1.0, -1.0))
        result[played.winner < 0] = torch.nan
        if self.config.off_policy:
            return result
        goes_on = (played.winner < 0).nonzero().view(-1)
        block = played.block[goes_on]
        latest = torch.full((2 * self.player.game.lanes,), -1).scatter_reduce(0, block, played.time[goes_on], "amax")
        last = goes_on[played.time[goes_on] == latest[block]]
        with torch.no_grad():
            _, _, expects = self.student.sequence(
                played.inputs[last], played.mask[last], torch.ones_like(last), played.memory[last]
            )
        expected = torch.zeros(len(latest))
        expected[played.block[last]] = expects.value.clamp(-1.0, 1.0)
        result[goes_on] = expected[block]
        return result

    def _minibatches(self, lesson: Labelled, epoch: int) -> Iterator[Tensor]:
        """Places int64 [k] of all stretches that hold a label, each once; the order depends on seed, update and epoch
        alone."""
        before = functional.pad(lesson.played.labelled.long().cumsum(0), (1, 0))
        useful = (before[lesson.starts + lesson.lengths] > before[lesson.starts]).nonzero().view(-1)
        key = _core.mix64(_core.mix64(self.config.seed) ^ (self.updates * 64 + epoch)) >> 1
        shuffled = useful[torch.randperm(len(useful), generator=torch.Generator().manual_seed(key))]
        lengths = lesson.lengths[shuffled]
        batch = (lengths.cumsum(0) - lengths) // self.config.minibatch
        return iter(torch.split(shuffled, torch.bincount(batch).tolist()) if len(useful) else ())

    def _descend(self, lesson: Labelled, some: Tensor, told: Told | None) -> None:
        """One step of the optimiser on some stretches (int64 [k]). told: takes what there is to tell."""
        played, lengths = lesson.played, lesson.lengths[some]
        rows = spans(lesson.starts[some], lengths)
        mask, labelled = played.mask[rows], played.labelled[rows]
        tree, _, beside = self.student.sequence(played.inputs[rows], mask, lengths, lesson.memory[some])
        teacher = Tree(self.teacher.heads, lesson.features[rows], mask)
        divergence = teacher.kl(tree, lesson.paths[rows], taken=False)[labelled]
        value = _errors(beside.value, lesson.result[rows])
        length = _errors(beside.lengths, torch.log1p(played.lengths[rows]))
        loss = divergence.sum(dim=1).mean() + self.config.balance * beside.balance
        self._optimiser.zero_grad()
        (loss + _mean(value) + _mean(length)).backward()  # type: ignore[no-untyped-call]
        # What nothing depends on shall not shorten the steps of the rest.
        norm = nn.utils.get_total_norm([each.grad for each in self._choosing if each.grad is not None])
        if not norm.isfinite():  # before clipping, which spreads it to every layer
            fault = not_finite({"student": self.student}, "a gradient")
            raise SparringError(f"update {self.updates}: {fault}; continue from it with a smaller --lr")
        nn.utils.clip_grads_with_norm_(self._choosing, self.config.clip_norm, norm)
        if told is not None:
            told.by_part("loss", divergence.detach())
            told.add("value_error", value.detach())
            told.add("lengths_error", length.detach())
            asked = labelled & (played.round[rows] % ASK_EVERY == self.updates % ASK_EVERY)
            mine = Tree(self.student.heads, tree.features.detach()[asked], mask[asked])
            theirs = Tree(self.teacher.heads, lesson.features[rows[asked]], mask[asked])
            told.compare(mine, theirs, played.action[rows[asked]])
        self._optimiser.step()

    def _set_lr(self) -> None:
        config = self.config
        warm = min(1.0, (self.updates + 1) / (config.warmup + 1))
        share = 1.0
        if self.quantised:
            share = between((1.0, config.lr_end), (self.update - self.floats + 1) / (self.whole - self.floats))
        for group in self._optimiser.param_groups:
            group["lr"] = config.lr * warm * share


class Told:
    """Means over the decisions of an update, of numbers that come minibatch by minibatch."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, name: str, numbers: Tensor) -> None:
        """numbers: [k], any number of them."""
        total, count = self._sums.get(name, (0.0, 0))
        self._sums[name] = total + float(numbers.double().sum()), count + numbers.numel()

    def by_part(self, name: str, parts: Tensor) -> None:
        """parts: [k, 6], which sum to that of the decision."""
        self.add(name, parts.sum(dim=1))
        for part, numbers in zip(PARTS, parts.unbind(dim=1), strict=True):
            self.add(f"{name}_{part}", numbers)

    @torch.no_grad()
    def compare(self, student: Tree, teacher: Tree, action: Tensor) -> None:
        """The most probable choices of both, and entropies in the roles of `action` (int64 [k])."""
        self.by_part("entropy", student.evaluate(action).entropy)
        self.by_part("teacher_entropy", teacher.evaluate(action).entropy)
        choices = student.mode(), teacher.mode()
        self.add("agreement", choices[0] == choices[1])
        for part, equal in agreements(*choices, student.mask).items():
            self.add(f"agreement_{part}", equal)

    def means(self) -> dict[str, float]:
        """What was never added to is left out."""
        return {name: total / count for name, (total, count) in self._sums.items() if count}


def agreements(student: Tensor, teacher: Tensor, mask: Mask) -> dict[str, Tensor]:
    """By part, whether two choices (packed int64 [n] each) are the same, on the rows on which both have that part and
    agree on what it depends on: bool [rows]."""
    mine, theirs = unpack(student), unpack(teacher)
    role = mine.role == theirs.role
    kind = role & (mine.kind == theirs.kind)
    sprint = (mine.steps == theirs.steps) & (mine.sprint == theirs.sprint).all(dim=1)
    return {
        "role": role[mask.role_due],
        "kind": kind[role],
        "direction": (mine.direction == theirs.direction)[kind & (mine.kind == MOVE)],
        "size": (mine.size == theirs.size)[kind & (mine.kind == SPLIT)],
        "sprint": sprint[kind & (mine.kind == SPRINT)],
        "claim": (mine.claim == theirs.claim)[kind],
    }


def _errors(predicted: Tensor, truth: Tensor) -> Tensor:
    """Squared errors [k] where the truth is known."""
    known = ~truth.isnan()
    return (predicted[known] - truth[known]).square()


def _mean(numbers: Tensor) -> Tensor:
    """0 of none."""
    return numbers.sum() / max(len(numbers), 1)


_COUNTERS = ("rounds", "updates", "decisions", "update", "floats", "whole")


def _plan(updates: int) -> tuple[int, int]:
    """Of a round: updates before the last third, and all."""
    return updates - updates // 3, updates
