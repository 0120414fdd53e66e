"""The student of Loong: the network that a bot carries, small and made of whole numbers.

It reads the inputs of the teacher and offers the same tree of choices. Every layer can be computed in integers, see
fixed_point; nothing is normalised, and every ReLU ends at 8. docs/loong-student.md draws it and counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.errors import SparringError
from sparring.policies.actions import CLAIMS, DIRECTIONS, KINDS, ROLES, SIZES, Choices, Tree
from sparring.policies.fixed_point import (
    BYTE,
    GATE,
    HIDDEN,
    LOGIT,
    SIGNED,
    UNIT,
    Convolution,
    Dense,
    Memory,
    Switched,
    Tables,
    straight_through,
)
from sparring.policies.layers import channels_first, channels_last, flattened, seeded
from sparring.policies.loong import CROP_SIDE, OVERVIEW_SIDE, PACKETS, TeacherConfig
from sparring.settings import Range, check

_INPUTS = TeacherConfig()
INPUT_SPLIT = _INPUTS.input_split
"""Bytes of crop, overview, scalars and sonar in one row of inputs, as the core writes them."""
CROP_PLANES, OVERVIEW_PLANES = _INPUTS.crop_planes, _INPUTS.overview_planes
SCALARS, SONAR_FIELDS = _INPUTS.scalars, _INPUTS.sonar_fields

TABLES, TABLE_ENTRIES, TABLE_WIDTH = 13, 1024, 8
WINDOW_SIDE = 7
"""Of what a dragon sees in its turn, the middle of the crop."""
HEAD_SPLIT = (KINDS, DIRECTIONS, SIZES, KINDS * CLAIMS)
"""Logits of the choices other than role and steps, in this order."""

# Planes of the crop that the tables ask (core/loong/observe.h).
_PEARL, _FRIENDS, _ENEMIES = 4, (20, 22, 23), (24, 25)
_PEARL_SEEN = 64

_Width = Annotated[int, Range(low=8, high=1024)]


@dataclass(frozen=True, kw_only=True)
class StudentConfig:
    """Sizes of the student. `PRESETS` has two. Widths are multiples of 8: the bot multiplies eight at a time."""

    channels: Annotated[int, Range(low=8, high=32)] = 32
    """Channels of the four convolutions over the crop: 8, 16 or 32."""
    first_stride: Annotated[int, Range(low=1, high=2)] = 1
    """Tiles from one window of the first convolution to the next: 1 leaves 15x15, 2 leaves 8x8."""
    crop_code: _Width = 128
    """Width of what is known about the crop."""
    overview_channels: Annotated[int, Range(low=8, high=32)] = 16
    """Channels of the convolution over the overview."""
    overview_code: _Width = 64
    """Width of what is known about the map."""
    sonar_hidden: _Width = 32
    """Width of a packet's code."""
    sonar_code: _Width = 32
    """Width of what is known from all packets."""
    scalar_code: _Width = 64
    """Width of what is known from the scalars."""
    joined: _Width = 256
    """Width of everything joined."""
    experts: Annotated[int, Range(low=1, high=16)] = 4
    """Pairs of layers of which one is picked: more weights at the same cost for each decision."""
    expert_hidden: _Width = 128
    """Width between the two layers of a pair."""
    memory: _Width = 256
    """Width of the recurrent memory."""
    head_hidden: _Width = 128
    """Width of the layer between memory and choices, which the role conditions."""
    sprint_state: _Width = 32
    """Width of the sprint decoder's state."""

    @property
    def input_bytes(self) -> int:
        return sum(INPUT_SPLIT)


PRESETS = {
    "student": StudentConfig(),
    "student-tiny": StudentConfig(
        channels=16,
        first_stride=2,
        overview_channels=8,
        scalar_code=32,
        joined=128,
        expert_hidden=64,
        memory=128,
    ),
}
"""`student` for the contest's budget, `student-tiny` for two CPU cores."""


def preset(name: str) -> StudentConfig:
    """The sizes called `name`."""
    if name not in PRESETS:
        raise SparringError(f"no preset {name!r} of a student: there are {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True)
class Diagnostics:
    """What training reads beside the choices.

    value: [n], of the position; lengths: [n, 2], the dragon's own in 16 and in 64 rounds. Both read the memory and move
    no weight but their own. balance: [], 1 where all experts are picked alike (Fedus et al. 2022, equation 4), more
    where the router has favourites; its gradient is the router's.
    """

    value: Tensor
    lengths: Tensor
    balance: Tensor


class CropCode(nn.Module):
    """Four 3x3 convolutions over the crop, the last with stride 2, then a dense layer."""

    def __init__(self, channels: int, first_stride: int, width: int) -> None:
        super().__init__()
        strides = (first_stride, 1, 1, 2)
        side = CROP_SIDE
        self.convolutions = nn.Sequential()
        for layer, stride in enumerate(strides):
            inputs, source = (channels, HIDDEN) if layer else (CROP_PLANES, BYTE)
            self.convolutions.append(Convolution(inputs, channels, stride=stride, source=source))
            side = (side - 1) // stride + 1
        self.dense = Dense(side**2 * channels, width, source=HIDDEN, target=HIDDEN)
        channels_last(self)

    def forward(self, crop: Tensor) -> Tensor:
        """uint8 [n, 7200] -> [n, width]."""
        x = self.convolutions(channels_first(crop, CROP_SIDE))
        out: Tensor = self.dense(flattened(x))
        return out


class OverviewCode(nn.Module):
    """A 3x3 convolution with stride 2 over the map as blocks, then a dense layer."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.convolution = Convolution(OVERVIEW_PLANES, channels, stride=2, source=BYTE)
        self.dense = Dense((OVERVIEW_SIDE // 2) ** 2 * channels, width, source=HIDDEN, target=HIDDEN)
        channels_last(self)

    def forward(self, overview: Tensor) -> Tensor:
        """uint8 [n, 2048] -> [n, width]."""
        out: Tensor = self.dense(flattened(self.convolution(channels_first(overview, OVERVIEW_SIDE))))
        return out


class SonarCode(Switched):
    """A set of packets (Zaheer et al. 2017): encoded alike, pooled by the maximum and by an eighth of the sum.

    A packet's first byte says whether there is one; what is not there counts as zeros.
    """

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.first = Dense(SONAR_FIELDS, hidden, source=BYTE, target=HIDDEN)
        self.second = Dense(hidden, hidden, source=HIDDEN, target=HIDDEN)
        self.dense = Dense(2 * hidden, width, source=HIDDEN, target=HIDDEN)

    def forward(self, sonar: Tensor) -> Tensor:
        """uint8 [n, 128] -> [n, width]."""
        packets = sonar.reshape(-1, PACKETS, SONAR_FIELDS)
        code = self.second(self.first(packets))
        code = code * packets[:, :, :1].ne(0)
        mean = self.settle(code.sum(dim=1) / PACKETS, HIDDEN)
        out: Tensor = self.dense(torch.cat((mean, code.amax(dim=1)), dim=1))
        return out


def table_entries(crop: Tensor) -> Tensor:
    """Which entry of each table the window around the head asks for: uint8 [n, 7200] -> int64 [n, 13].

    A tile is nothing (0), a pearl (1), a friend or the own body (2) or an enemy (3). A table reads a plus of five
    tiles: middle, forward, right, back, left, the first the lowest two bits. The middles are the tiles of one colour of
    the inner 5x5, as on a chessboard, row by row.
    """
    first = (CROP_SIDE - WINDOW_SIDE) // 2
    window = crop.view(-1, CROP_SIDE, CROP_SIDE, CROP_PLANES)[
        :, first : first + WINDOW_SIDE, first : first + WINDOW_SIDE
    ]
    friend = window[..., list(_FRIENDS)].amax(dim=3) > 0
    enemy = window[..., list(_ENEMIES)].amax(dim=3) > 0
    tile = (window[..., _PEARL] >= _PEARL_SEEN).long()
    tile = torch.where(friend, 2, tile)
    tile = torch.where(enemy, 3, tile)
    inner = slice(1, WINDOW_SIDE - 1)
    plus = tile[:, inner, inner] | tile[:, :-2, inner] << 2 | tile[:, inner, 2:] << 4
    plus = plus | tile[:, 2:, inner] << 6 | tile[:, inner, :-2] << 8
    return plus.flatten(1)[:, ::2]


class ExpertPairs(nn.Module):
    """A residual layer of pairs of dense layers, of which a router picks one for each row.

    The picked pair counts in full, so that the bot multiplies by no probability; the router learns as if its
    probability were a factor (Fedus et al. 2022, straight through).
    """

    def __init__(self, width: int, hidden: int, experts: int) -> None:
        super().__init__()
        self.router = Dense(width, experts, source=HIDDEN, target=LOGIT)
        self.up = nn.ModuleList(Dense(width, hidden, source=HIDDEN, target=HIDDEN) for _ in range(experts))
        self.down = nn.ModuleList(Dense(hidden, width, source=HIDDEN, target=SIGNED) for _ in range(experts))
        with torch.no_grad():  # else what all features have in common picks one expert for all rows
            self.router.weight.sub_(self.router.weight.mean(dim=1, keepdim=True))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[n, width] in HIDDEN -> the same, and the balancing loss."""
        logits = self.router(x)
        pick = logits.argmax(dim=1)
        probability = logits.softmax(dim=1)
        count = torch.bincount(pick, minlength=len(self.up))
        # Rows in the experts' order, so that each expert multiplies one matrix.
        order = pick.argsort(stable=True)
        parts = torch.split(x[order], count.tolist())
        sorted_ = torch.cat([down(up(part)) for up, down, part in zip(self.up, self.down, parts, strict=True)])
        delta = torch.empty_like(sorted_).index_copy(0, order, sorted_)
        gate = probability.gather(1, pick.unsqueeze(1))
        balance = (count / max(len(pick), 1) * probability.mean(dim=0)).sum() * len(self.up)
        out = x + straight_through(gate, torch.ones_like(gate)) * delta
        return out.clamp(0, HIDDEN.high * HIDDEN.unit), balance


class StudentHeads(Switched):
    """Logits of every choice from the memory (float [n, width]); `actions.Heads` says how."""

    def __init__(self, width: int, hidden: int, sprint_state: int) -> None:
        super().__init__()
        self.role = Dense(width, ROLES, source=UNIT, target=LOGIT)
        self.hidden = Dense(width, hidden, source=UNIT, target=HIDDEN, sets=ROLES)
        self.logits = Dense(hidden, sum(HEAD_SPLIT), source=HIDDEN, target=LOGIT)
        self.sprint_start = Dense(hidden, sprint_state, source=HIDDEN, target=GATE)
        # What a step tells the decoder's memory is a table of three rows.
        self.sprint_input = nn.Parameter(torch.randn(DIRECTIONS, 3 * sprint_state) * sprint_state**-0.5)
        self.sprint = Memory(sprint_state)
        self.step = Dense(sprint_state, DIRECTIONS + 1, source=UNIT, target=LOGIT)
        with torch.no_grad():
            nn.init.normal_(self.hidden.bias, std=hidden**-0.5)  # type: ignore[arg-type]
            for last in (self.role, self.logits, self.step):
                last.weight.mul_(_SMALL_START)

    def roles(self, features: Tensor) -> Tensor:
        logits: Tensor = self.role(features)
        return logits

    def choices(self, features: Tensor, role: Tensor) -> Choices:
        hidden = self.hidden(features, role)
        kind, direction, size, claim = self.logits(hidden).split(HEAD_SPLIT, dim=1)
        return Choices(
            kind=kind,
            direction=direction,
            size=size,
            claim=claim.unflatten(1, (KINDS, CLAIMS)),
            sprint=self.tanh(self.sprint_start(hidden)),
        )

    def step_logits(self, state: Tensor) -> Tensor:
        logits: Tensor = self.step(state)
        return logits

    def step_state(self, state: Tensor, step: Tensor) -> Tensor:
        told = self.settle(self.sprint_input, GATE)
        after: Tensor = self.sprint(functional.embedding(step, told), state)
        return after


_SMALL_START = 0.01
"""The first policy is near uniform (Andrychowicz et al. 2021)."""


class Student(nn.Module):
    """Inputs uint8 [n, 9424], mask uint8 [n, 40], memory float [n, config.memory] -> tree of choices, next memory.

    It is called as the teacher is. With `quantised` set it computes, as far as its floats can, what the bot computes;
    in float64 exactly that.
    """

    def __init__(self, config: StudentConfig, *, seed: int = 0) -> None:
        """seed: of the first weights. Raises SparringError where the bot has no such sizes."""
        super().__init__()
        _check(config)
        self.config = config
        with seeded(seed):
            self.crop = CropCode(config.channels, config.first_stride, config.crop_code)
            self.overview = OverviewCode(config.overview_channels, config.overview_code)
            self.sonar = SonarCode(config.sonar_hidden, config.sonar_code)
            self.scalars = Dense(SCALARS, config.scalar_code, source=BYTE, target=HIDDEN)
            self.tables = Tables(TABLES, TABLE_ENTRIES, TABLE_WIDTH)
            codes = config.crop_code + config.overview_code + config.sonar_code + config.scalar_code
            self.join = Dense(codes + TABLES * TABLE_WIDTH, config.joined, source=SIGNED, target=HIDDEN)
            self.experts = ExpertPairs(config.joined, config.expert_hidden, config.experts)
            self.gates = Dense(config.joined, 3 * config.memory, source=HIDDEN, target=GATE)
            self.memory = Memory(config.memory)
            self.heads = StudentHeads(config.memory, config.head_hidden, config.sprint_state)
            self.value = nn.Linear(config.memory, 1)
            self.lengths = nn.Linear(config.memory, 2)

    @property
    def quantised(self) -> bool:
        """Whether it computes with the numbers of the bot."""
        return self.memory.quantised

    @quantised.setter
    def quantised(self, on: bool) -> None:
        for part in self.modules():
            if isinstance(part, Switched):
                part.quantised = on

    def newborn(self, n: int) -> Tensor:
        """The memory of n dragons before their first decision: zeros [n, config.memory]."""
        return self.join.weight.new_zeros(n, self.config.memory)

    def encode(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What the memory takes in: uint8 [n, bytes] -> float [n, 3 * memory], and the experts' balancing loss."""
        crop, overview, scalars, sonar = torch.split(inputs, list(INPUT_SPLIT), dim=1)
        codes = (self.crop(crop), self.overview(overview), self.sonar(sonar), self.scalars(scalars))
        x = self.join(torch.cat((*codes, self.tables(table_entries(crop))), dim=1))
        x, balance = self.experts(x)
        return self.gates(x), balance

    def step(self, inputs: Tensor, mask: Tensor, memory: Tensor) -> tuple[Tree, Tensor]:
        """One decision of each of n dragons: the tree and the next memory [n, config.memory]."""
        told, _ = self.encode(inputs)
        after = self.memory(told, memory)
        return Tree(self.heads, after, mask), after

    def sequence(
        self, inputs: Tensor, mask: Tensor, lengths: Tensor, memory: Tensor
    ) -> tuple[Tree, Tensor, Diagnostics]:
        """Decisions of s stretches of lives, one after the other: the first `lengths[0]` rows are the first stretch.

        Equals `step` row after row. All but the memory runs over all rows at once.

        inputs: uint8 [n, bytes]; mask: uint8 [n, 40]; lengths: int64 [s], at least 1, summing to n;
        memory: float [s, config.memory], as it was before the first decision of each stretch
        Returns the tree over the n rows, the memory after each stretch [s, config.memory], the diagnostics.
        """
        told, balance = self.encode(inputs)
        # All first decisions, then all second ones, ..., longest stretches first.
        order = lengths.argsort(descending=True, stable=True)
        starts = (lengths.cumsum(0) - lengths)[order]
        state, states, rows = memory[order], [], []
        for time, running in enumerate(_running(lengths)):
            rows.append(starts[:running] + time)
            advanced = self.memory(told[rows[-1]], state[:running])
            states.append(advanced)
            state = torch.cat((advanced, state[running:]))
        after = torch.empty_like(state).index_copy(0, order, state)
        memories = torch.empty_like(told[:, : self.config.memory]).index_copy(0, torch.cat(rows), torch.cat(states))
        seen = memories.detach()
        diagnostics = Diagnostics(self.value(seen).squeeze(1), self.lengths(seen), balance)
        return Tree(self.heads, memories, mask), after, diagnostics


def _running(lengths: Tensor) -> list[int]:
    """How many stretches have a first decision, a second one, and so on."""
    time = torch.arange(int(lengths.amax()), device=lengths.device)
    running: list[int] = (lengths.unsqueeze(1) > time).sum(dim=0).tolist()
    return running


def _check(config: StudentConfig) -> None:
    check(config, where="student")
    for name in ("channels", "overview_channels"):
        if getattr(config, name) not in (8, 16, 32):
            raise SparringError(f"{name} = {getattr(config, name)}: a student has 8, 16 or 32")
    for name, width in vars(config).items():
        if name not in ("first_stride", "experts") and width % 8:
            raise SparringError(f"{name} = {width}: a student's widths are multiples of 8")
