"""Actions of a dragon: how they are packed into one integer, and the tree of choices they are drawn from.

A decision is a path through a tree of parts: a role where one is due, which conditions everything after it; then the
kind; then the direction of a move, the size of a split or the steps of a sprint; then a claim, given the kind. The
log-probability of a decision is the sum over the parts that were chosen, and entropy and Kullback-Leibler divergence
follow the same chain (Vinyals et al. 2019, "Grandmaster level in StarCraft II", use such a tree).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

ROLES, KINDS, DIRECTIONS, SIZES, CLAIMS, MAX_STEPS = 8, 3, 3, 32, 26, 8
MOVE, SPRINT, SPLIT = range(KINDS)
FORWARD, LEFT, RIGHT, STOP = range(DIRECTIONS + 1)
SMALLEST_SPLIT = 2
MIN_STEPS = 2
NO_CLAIM = CLAIMS - 1

PARTS = ("role", "kind", "direction", "size", "sprint", "claim")
"""What the columns of log-probabilities, entropies and divergences belong to."""
_ROLE, _KIND, _DIRECTION, _SIZE, _SPRINT, _CLAIM = range(len(PARTS))

UNIFORMS = 4 + MAX_STEPS
"""Uniform numbers that one decision takes: role, kind, direction or size, claim, then one a sprint step."""
_DRAW_ROLE, _DRAW_KIND, _DRAW_ARGUMENT, _DRAW_CLAIM, _DRAW_STEPS = range(5)

MASK_BYTES = 40
MASK_KINDS, MASK_SIZES, MASK_PAYABLE, MASK_ROLE_DUE, MASK_HELD = 0, 3, 35, 36, 37
"""Where in a row of the mask its fields begin."""

_FLOOR = -1e9
"""Logit of an illegal choice: its probability is exactly 0, and nothing becomes infinite or NaN."""


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What is legal, per row.

    kinds:    bool [n, 3], move, sprint, split
    sizes:    bool [n, 32], segments to split off, from 2
    payable:  int64 [n], the most sprint steps that can be paid, 0 to 8
    role_due: bool [n], a new role is chosen now
    held:     int64 [n], the role held before this decision
    """

    kinds: Tensor
    sizes: Tensor
    payable: Tensor
    role_due: Tensor
    held: Tensor

    @staticmethod
    def of(rows: Tensor) -> Mask:
        """rows: uint8 [n, 40] as the game writes them."""
        return Mask(
            kinds=rows[:, MASK_KINDS:MASK_SIZES].bool(),
            sizes=rows[:, MASK_SIZES:MASK_PAYABLE].bool(),
            payable=rows[:, MASK_PAYABLE].long(),
            role_due=rows[:, MASK_ROLE_DUE].bool(),
            held=rows[:, MASK_HELD].long(),
        )


@dataclass(frozen=True, kw_only=True)
class Actions:
    """Decisions part by part, int64. What a row's kind does not use is 0.

    role: [n], in force after the decision; kind: [n]; direction: [n] of a move; size: [n], segments split off, 2 to 33;
    steps: [n], number of sprint steps (2 to 8); sprint: [n, 8], their directions, each relative to the one before;
    claim: [n], cell of the 5x5 around the head row by row, forward up, or 25 for none
    """

    role: Tensor
    kind: Tensor
    direction: Tensor
    size: Tensor
    steps: Tensor
    sprint: Tensor
    claim: Tensor


def pack(actions: Actions) -> Tensor:
    """int64 [n]; `unpack` is its inverse."""
    packed = actions.role | actions.kind << 3 | actions.direction << 5
    packed = packed | (actions.size - SMALLEST_SPLIT).clamp_min(0) << 7 | actions.steps << 12 | actions.claim << 32
    shifts = torch.arange(16, 32, 2, device=packed.device)
    return packed | (actions.sprint << shifts).sum(dim=1)


def unpack(packed: Tensor) -> Actions:
    """The parts of int64 [n]."""
    kind = packed >> 3 & 3
    shifts = torch.arange(16, 32, 2, device=packed.device)
    return Actions(
        role=packed & 7,
        kind=kind,
        direction=packed >> 5 & 3,
        size=((packed >> 7 & 31) + SMALLEST_SPLIT) * (kind == SPLIT),
        steps=packed >> 12 & 15,
        sprint=packed.unsqueeze(1) >> shifts & 3,
        claim=packed >> 32 & 31,
    )


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Logits of everything but the role, for one role a row.

    kind: [n, 3]; direction: [n, 3]; size: [n, 32]; claim: [n, 3, 26], given each kind;
    sprint: [n, width], the state in which the sprint decoder starts
    """

    kind: Tensor
    direction: Tensor
    size: Tensor
    claim: Tensor
    sprint: Tensor


class Heads(Protocol):
    """What a network must offer to hang a tree on its features (float [n, width])."""

    def roles(self, features: Tensor) -> Tensor:
        """Logits [n, 8]."""
        ...

    def choices(self, features: Tensor, role: Tensor) -> Choices:
        """role: int64 [n]."""
        ...

    def step_logits(self, state: Tensor) -> Tensor:
        """Logits [n, 4] of forward, left, right and stop in a state of the sprint decoder."""
        ...

    def step_state(self, state: Tensor, step: Tensor) -> Tensor:
        """The decoder's state after `step` (int64 [n], a direction)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """log_prob, entropy: float [n, 6], a column for each of PARTS; 0 where a row has no such part."""

    log_prob: Tensor
    entropy: Tensor


class Tree:
    """The choices of n rows, hanging on `features` (float [n, width]) of a network with `heads`.

    Sprint paths are decoded only on the rows that need them.
    """

    def __init__(self, heads: Heads, features: Tensor, mask: Tensor) -> None:
        """mask: uint8 [n, 40]."""
        self.heads, self.features, self.mask = heads, features, Mask.of(mask)

    def sample(self, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Packed actions int64 [n] and their log-probabilities float [n, 6].

        uniforms: float32 [n, 12] in [0, 1), multiples of 2^-23. The caller keys them by what is sampled, so that a
        row's action depends on neither its place nor its company.
        """
        return self._decide(uniforms)

    def mode(self) -> Tensor:
        """Packed actions int64 [n]: in sampling order the most probable choice of each part, given those before."""
        return self._decide(None)[0]

    def evaluate(self, packed: Tensor) -> Evaluation:
        """Log-probabilities of actions (int64 [n]), and entropies.

        Entropies are expectations over the tree below the row's role: that of the direction counts with the
        probability of a move, and so on. A sprint's is exact only in the mean: a row that sprints counts the
        entropies along its path, the others count 0. The weights carry no gradient; it would push towards whatever
        kind has most choices below it.
        """
        actions = unpack(packed)
        branch = self._branch(actions.role)
        with torch.no_grad():
            weight = branch.kind.exp()
        claim_weight = weight.unsqueeze(2)
        role = self._roles()
        due = self.mask.role_due
        taken = {
            _ROLE: _at(role, actions.role) * due,
            _KIND: _at(branch.kind, actions.kind),
            _DIRECTION: _at(branch.direction, actions.direction) * (actions.kind == MOVE),
            _SIZE: _at(branch.size, (actions.size - SMALLEST_SPLIT).clamp_min(0)) * (actions.kind == SPLIT),
            _CLAIM: _at(_of_kind(branch.claim, actions.kind), actions.claim),
        }
        entropy = {
            _ROLE: _entropy(role) * due,
            _KIND: _entropy(branch.kind),
            _DIRECTION: _entropy(branch.direction) * weight[:, MOVE],
            _SIZE: _entropy(branch.size) * weight[:, SPLIT],
            _CLAIM: -(branch.claim.exp() * branch.claim * claim_weight).sum(dim=(1, 2)),
        }
        rows = (actions.kind == SPRINT).nonzero().squeeze(1)
        path = _Path(actions, self.mask, rows)
        path_log_prob, path_entropy = torch.zeros_like(taken[_KIND][rows]), torch.zeros_like(taken[_KIND][rows])
        for step, log_probs in zip(path.steps, self._along(branch.sprint, path), strict=True):
            path_log_prob = path_log_prob + _at(log_probs, step.choice) * step.open
            path_entropy = path_entropy + _entropy(log_probs) * step.open
        taken[_SPRINT] = _spread(taken[_KIND], rows, path_log_prob)
        entropy[_SPRINT] = _spread(taken[_KIND], rows, path_entropy)
        return Evaluation(log_prob=_columns(taken), entropy=_columns(entropy))

    def sprint_paths(self, packed: Tensor, uniforms: Tensor) -> Tensor:
        """Packed sprints int64 [n] with the roles of `packed`, one on every row on which a sprint is legal; elsewhere
        `packed` as it was. They are what `kl(..., taken=False)` asks for. uniforms: float32 [n, 12] as in `sample`."""
        actions = unpack(packed)
        rows = self.mask.kinds[:, SPRINT].nonzero().squeeze(1)
        branch = self._branch(actions.role)
        steps, sprint, _ = self._sprint(branch, rows, uniforms)
        zero = torch.zeros_like(steps)
        paths = Actions(
            role=actions.role[rows],
            kind=zero + SPRINT,
            direction=zero,
            size=zero,
            steps=steps,
            sprint=sprint,
            claim=zero,
        )
        return packed.index_copy(0, rows, pack(paths))

    def kl(self, other: Tree, packed: Tensor, *, taken: bool = True) -> Tensor:
        """KL(self || other) part by part, float [n, 6], given the roles of `packed` (int64 [n]).

        The sum of a row is KL(kind) + p(move) KL(direction) + p(split) KL(size) + p(sprint) KL(sprint)
        + sum over kinds of p(kind) KL(claim | kind), plus KL(role) where one is due; p is this tree's. A sprint's
        divergence is the sum of KL(step | steps before) along the path in `packed`, exact in the mean
        over paths drawn from this tree: with `taken` the actions of this tree, where only rows that sprint count, in
        full; without it the `sprint_paths` of this tree, where every row counts with p(sprint).
        """
        actions = unpack(packed)
        mine, theirs = self._branch(actions.role), other._branch(actions.role)
        weight = mine.kind.exp()
        claim = (mine.claim.exp() * (mine.claim - theirs.claim)).sum(dim=2)
        divergence = {
            _ROLE: _divergence(self._roles(), other._roles()) * self.mask.role_due,
            _KIND: _divergence(mine.kind, theirs.kind),
            _DIRECTION: _divergence(mine.direction, theirs.direction) * weight[:, MOVE],
            _SIZE: _divergence(mine.size, theirs.size) * weight[:, SPLIT],
            _CLAIM: (claim * weight).sum(dim=1),
        }
        rows = (actions.kind == SPRINT).nonzero().squeeze(1)
        path = _Path(actions, self.mask, rows)
        along = torch.zeros_like(divergence[_KIND][rows])
        both = zip(path.steps, self._along(mine.sprint, path), other._along(theirs.sprint, path), strict=True)
        for step, my_step, their_step in both:
            along = along + _divergence(my_step, their_step) * step.open
        divergence[_SPRINT] = _spread(divergence[_KIND], rows, along if taken else along * weight[rows, SPRINT])
        return _columns(divergence)

    def _roles(self) -> Tensor:
        return _log_probs(self.heads.roles(self.features))

    def _branch(self, role: Tensor) -> Choices:
        """Log-probabilities in place of the logits."""
        logits = self.heads.choices(self.features, role)
        return Choices(
            kind=_log_probs(logits.kind, ~self.mask.kinds),
            direction=_log_probs(logits.direction),
            size=_log_probs(logits.size, ~self.mask.sizes),
            claim=_log_probs(logits.claim),
            sprint=logits.sprint,
        )

    def _decide(self, uniforms: Tensor | None) -> tuple[Tensor, Tensor]:
        """Draws with these numbers, or takes the most probable choices: packed actions, log-probabilities."""
        roles = self._roles()
        due = self.mask.role_due
        role = torch.where(due, _pick(roles, uniforms, _DRAW_ROLE), self.mask.held)
        branch = self._branch(role)
        kind = _pick(branch.kind, uniforms, _DRAW_KIND)
        direction = _pick(branch.direction, uniforms, _DRAW_ARGUMENT) * (kind == MOVE)
        size_index = _pick(branch.size, uniforms, _DRAW_ARGUMENT) * (kind == SPLIT)
        claims = _of_kind(branch.claim, kind)
        claim = _pick(claims, uniforms, _DRAW_CLAIM)
        rows = (kind == SPRINT).nonzero().squeeze(1)
        some_steps, some_sprint, some_log_prob = self._sprint(branch, rows, uniforms)
        packed = pack(
            Actions(
                role=role,
                kind=kind,
                direction=direction,
                size=(size_index + SMALLEST_SPLIT) * (kind == SPLIT),
                steps=_spread(kind, rows, some_steps),
                sprint=kind.new_zeros(len(kind), MAX_STEPS).index_copy(0, rows, some_sprint),
                claim=claim,
            )
        )
        kind_log_prob = _at(branch.kind, kind)
        log_prob = {
            _ROLE: _at(roles, role) * due,
            _KIND: kind_log_prob,
            _DIRECTION: _at(branch.direction, direction) * (kind == MOVE),
            _SIZE: _at(branch.size, size_index) * (kind == SPLIT),
            _SPRINT: _spread(kind_log_prob, rows, some_log_prob),
            _CLAIM: _at(claims, claim),
        }
        return packed, _columns(log_prob)

    def _sprint(self, branch: Choices, rows: Tensor, uniforms: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Draws a path on each of `rows` (int64 [m]): steps int64 [m], directions int64 [m, 8], log-probability [m]."""
        state, payable = branch.sprint[rows], self.mask.payable[rows]
        numbers = None if uniforms is None else uniforms[rows]
        # Once all is spent the only choice is to stop, with probability 1: no position after `payable` steps is asked.
        positions = int(payable.amax()) if len(rows) else 0
        illegal = _illegal_steps(payable, positions)
        log_prob = torch.zeros_like(branch.kind[rows, 0])
        running = torch.ones_like(rows)
        steps = torch.zeros_like(rows)
        sprint = rows.new_zeros(len(rows), MAX_STEPS)
        for position in range(positions):
            log_probs = _log_probs(self.heads.step_logits(state), illegal[position])
            choice = _pick(log_probs, numbers, _DRAW_STEPS + position)
            log_prob = log_prob + _at(log_probs, choice) * running
            running = running * (choice != STOP)
            steps = steps + running
            sprint[:, position] = direction = choice * running
            if position + 1 < positions:
                state = self.heads.step_state(state, direction)
        return steps, sprint, log_prob

    def _along(self, first: Tensor, path: _Path) -> list[Tensor]:
        """Log-probabilities [m, 4] at each position of a path, given the steps before it."""
        out = []
        state = first[path.rows]
        illegal = _illegal_steps(path.payable, len(path.steps))
        for position, step in enumerate(path.steps):
            out.append(_log_probs(self.heads.step_logits(state), illegal[position]))
            if position + 1 < len(path.steps):
                state = self.heads.step_state(state, step.choice.clamp_max(RIGHT))
        return out


@dataclass(frozen=True)
class _Step:
    """One position of the sprints of m rows: what was chosen (int64 [m]), and whether they got there (bool [m])."""

    choice: Tensor
    open: Tensor


class _Path:
    """The sprints of `rows` (int64 [m]) position by position, the stop after the last step included."""

    def __init__(self, actions: Actions, mask: Mask, rows: Tensor) -> None:
        self.rows = rows
        self.payable = mask.payable[rows]
        count, sprint = actions.steps[rows], actions.sprint[rows]
        self.steps: list[_Step] = []
        positions = min(int(count.amax()) + 1, MAX_STEPS) if len(rows) else 0
        for position in range(positions):
            choice = torch.where(count > position, sprint[:, position], STOP)
            self.steps.append(_Step(choice, count >= position))


def _log_probs(logits: Tensor, illegal: Tensor | None = None) -> Tensor:
    """Log-softmax over the last axis in float32 or better; illegal choices (bool) have probability 0."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if illegal is not None:
        logits = logits.masked_fill(illegal, _FLOOR)
    return logits.log_softmax(dim=-1)


def _illegal_steps(payable: Tensor, positions: int) -> Tensor:
    """bool [positions, m, 4] after so many steps: a step that cannot be paid, and to stop before two steps."""
    position = torch.arange(positions, device=payable.device)
    unpaid = position.unsqueeze(1) >= payable
    too_early = (position < MIN_STEPS).unsqueeze(1).expand_as(unpaid)
    return torch.stack([unpaid] * DIRECTIONS + [too_early], dim=2)


def _pick(log_probs: Tensor, uniforms: Tensor | None, number: int) -> Tensor:
    """int64 [m]: the most probable of [m, k], or with column `number` of uniforms [m, 12] one drawn by inverting the
    cumulative distribution.

    A uniform is at most 1 - 2^-23, so that its product with the total stays below the total after rounding.
    """
    if uniforms is None:
        return log_probs.argmax(dim=1)
    cumulative = log_probs.exp().cumsum(dim=1)
    return (cumulative <= uniforms[:, number : number + 1] * cumulative[:, -1:]).sum(dim=1)


def _at(log_probs: Tensor, choice: Tensor) -> Tensor:
    return log_probs.gather(1, choice.unsqueeze(1)).squeeze(1)


def _of_kind(claim: Tensor, kind: Tensor) -> Tensor:
    """[n, 26] from [n, 3, 26]."""
    return claim[torch.arange(len(kind), device=kind.device), kind]


def _entropy(log_probs: Tensor) -> Tensor:
    return -(log_probs.exp() * log_probs).sum(dim=-1)


def _divergence(mine: Tensor, theirs: Tensor) -> Tensor:
    return (mine.exp() * (mine - theirs)).sum(dim=-1)


def _spread(like: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    """[n] with `values` at `rows` and 0 elsewhere."""
    return torch.zeros_like(like).index_copy(0, rows, values)


def _columns(parts: dict[int, Tensor]) -> Tensor:
    return torch.stack([parts[part] for part in range(len(PARTS))], dim=1)
