"""The teacher of Loong: one network in three sizes, from input bytes and memory to a tree of choices.

Trunk: the crop around the head through a FiLM residual network, the overview through convolutions, sonar packets as a
set, scalars; joined, sent through two layers of experts and into a GRU (Cho et al. 2014). Whoever reads the memory
reads a layer-normalised copy of it (Ba et al. 2016); without it policies collapsed to their commonest action.
docs/loong-networks.md draws it and lists the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from sparring.errors import SparringError
from sparring.policies.actions import CLAIMS, DIRECTIONS, KINDS, ROLES, SIZES, Choices, Tree
from sparring.policies.layers import ByteLinear, CropEncoder, Experts, MapEncoder, SetEncoder, seeded, small_start
from sparring.settings import Range

CROP_SIDE, OVERVIEW_SIDE, PACKETS = 15, 16, 8

_Width = Annotated[int, Range(low=1, high=16384)]


@dataclass(frozen=True, kw_only=True)
class TeacherConfig:
    """Sizes of the teacher. `PRESETS` has three; a wider layer knows more and costs more time for each decision."""

    crop_planes: _Width = 32
    """Planes of the crop. More than the game writes only after `widen_inputs`."""
    overview_planes: _Width = 8
    """Planes of the overview."""
    scalars: _Width = 48
    """Numbers about the dragon and the match."""
    sonar_fields: _Width = 16
    """Bytes of a decoded packet."""

    stem_stride: Annotated[int, Range(low=1, high=3)] = 3
    """Tiles from one window of the first convolution to the next: 3 leaves 5x5 of the 15x15, 2 leaves 8x8, 1 all."""
    channels: _Width = 16
    """Channels of the residual trunk."""
    blocks: Annotated[int, Range(low=1, high=64)] = 1
    """Residual blocks."""
    groups: _Width = 4
    """Groups of channels that are normalised together; divides `channels`."""
    squeeze: Annotated[int, Range(low=0, high=16384)] = 0
    """Channels left before the dense layer, by a 1x1 convolution; 0: all of them."""
    crop_code: _Width = 128
    """Width of what is known about the crop."""
    overview_pool: Annotated[int, Range(low=1, high=16)] = 4
    """Side of the squares of the overview that are averaged first; 1: none."""
    overview_channels: tuple[_Width, ...] = ()
    """Convolutions over the overview, each halves its side."""
    overview_code: _Width = 32
    """Width of what is known about the map."""
    sonar_hidden: _Width = 32
    """Width of a packet's code."""
    sonar_code: _Width = 32
    """Width of what is known from all packets."""
    scalar_code: _Width = 32
    """Width of what is known from the scalars; FiLM reads it too."""
    joined: _Width = 128
    """Width of everything joined, and of the experts' layers."""
    experts: Annotated[int, Range(low=1, high=1024)] = 4
    """Experts in each of the two layers: more weights at the same cost for each decision."""
    expert_hidden: _Width = 64
    """Hidden width of an expert."""
    experts_chosen: Annotated[int, Range(low=1, high=8)] = 1
    """Experts that each row is sent to; at most `experts`."""
    memory: _Width = 128
    """Width of the recurrent memory."""
    head_hidden: _Width = 64
    """Width of the layer between memory and choices, which the role conditions."""
    sprint_state: _Width = 32
    """Width of the sprint decoder's state."""

    @property
    def input_bytes(self) -> int:
        return sum(self.input_split)

    @property
    def input_split(self) -> tuple[int, int, int, int]:
        """Bytes of crop, overview, scalars and sonar in one row of inputs."""
        return (
            CROP_SIDE**2 * self.crop_planes,
            OVERVIEW_SIDE**2 * self.overview_planes,
            self.scalars,
            PACKETS * self.sonar_fields,
        )


PRESETS = {
    "tiny": TeacherConfig(),
    "small": TeacherConfig(
        stem_stride=2,
        channels=64,
        blocks=3,
        groups=8,
        squeeze=16,
        crop_code=256,
        overview_pool=1,
        overview_channels=(16, 32),
        overview_code=128,
        sonar_hidden=64,
        sonar_code=64,
        scalar_code=64,
        joined=256,
        experts=8,
        expert_hidden=192,
        experts_chosen=2,
        memory=256,
        head_hidden=256,
        sprint_state=64,
    ),
    "full": TeacherConfig(
        stem_stride=1,
        channels=192,
        blocks=8,
        groups=8,
        squeeze=16,
        crop_code=512,
        overview_pool=1,
        overview_channels=(32, 64),
        overview_code=256,
        sonar_hidden=128,
        sonar_code=128,
        scalar_code=128,
        joined=512,
        experts=16,
        expert_hidden=1024,
        experts_chosen=2,
        memory=512,
        head_hidden=512,
        sprint_state=128,
    ),
}
"""`tiny` for two CPU cores, `small` for a night on them or for a GPU, `full` for GPUs."""


def preset(name: str) -> TeacherConfig:
    """The sizes called `name`."""
    if name not in PRESETS:
        raise SparringError(f"no preset {name!r}: there are {', '.join(PRESETS)}")
    return PRESETS[name]


class TreeHeads(nn.Module):
    """Logits of every choice from the layer-normalised memory (float [n, width]); `actions.Heads` says how."""

    def __init__(self, width: int, hidden: int, sprint_state: int) -> None:
        super().__init__()
        self.role = small_start(nn.Linear(width, ROLES))
        self.hidden = nn.Linear(width, hidden)
        self.role_code = nn.Parameter(torch.randn(ROLES, hidden) * hidden**-0.5)
        self.split = (KINDS, DIRECTIONS, SIZES, KINDS * CLAIMS)
        self.logits = small_start(nn.Linear(hidden, sum(self.split)))
        self.sprint_start = nn.Linear(hidden, sprint_state)
        # A GRU whose inputs are three directions: their share of the gates is a table.
        self.sprint_input = nn.Parameter(torch.randn(DIRECTIONS, 3 * sprint_state) * sprint_state**-0.5)
        self.sprint_gates = nn.Linear(sprint_state, 3 * sprint_state)
        self.step = small_start(nn.Linear(sprint_state, DIRECTIONS + 1))

    def roles(self, features: Tensor) -> Tensor:
        logits: Tensor = self.role(features)
        return logits

    def choices(self, features: Tensor, role: Tensor) -> Choices:
        hidden = (self.hidden(features) + functional.embedding(role, self.role_code)).relu_()
        kind, direction, size, claim = self.logits(hidden).split(self.split, dim=1)
        return Choices(
            kind=kind,
            direction=direction,
            size=size,
            claim=claim.unflatten(1, (KINDS, CLAIMS)),
            sprint=self.sprint_start(hidden).tanh(),
        )

    def step_logits(self, state: Tensor) -> Tensor:
        logits: Tensor = self.step(state)
        return logits

    def step_state(self, state: Tensor, step: Tensor) -> Tensor:
        reset, update, new = functional.embedding(step, self.sprint_input).chunk(3, dim=1)
        reset_h, update_h, new_h = self.sprint_gates(state).chunk(3, dim=1)
        candidate = (new + (reset + reset_h).sigmoid() * new_h).tanh()
        # Not lerp: under autocast the state is of another precision than the candidate.
        after: Tensor = candidate + (update + update_h).sigmoid() * (state - candidate)
        return after


class Teacher(nn.Module):
    """Inputs uint8 [n, 9424], mask uint8 [n, 40], memory float [n, config.memory] -> tree of choices, next memory.

    Its weights are the actor that is deployed, all of them and nothing else.
    """

    def __init__(self, config: TeacherConfig, *, seed: int = 0) -> None:
        super().__init__()
        _check(config)
        self.config = config
        with seeded(seed):
            self.scalars = ByteLinear(config.scalars, config.scalar_code)
            self.crop = CropEncoder(
                side=CROP_SIDE,
                planes=config.crop_planes,
                channels=config.channels,
                stride=config.stem_stride,
                blocks=config.blocks,
                groups=config.groups,
                squeeze=config.squeeze,
                film=config.scalar_code,
                width=config.crop_code,
            )
            self.overview = MapEncoder(
                side=OVERVIEW_SIDE,
                planes=config.overview_planes,
                pool=config.overview_pool,
                channels=config.overview_channels,
                width=config.overview_code,
            )
            self.sonar = SetEncoder(
                packets=PACKETS, fields=config.sonar_fields, hidden=config.sonar_hidden, width=config.sonar_code
            )
            codes = config.crop_code + config.overview_code + config.sonar_code + config.scalar_code
            self.join = nn.Linear(codes, config.joined)
            self.experts = nn.ModuleList(
                Experts(config.joined, config.expert_hidden, experts=config.experts, chosen=config.experts_chosen)
                for _ in range(2)
            )
            self.memory = nn.GRU(config.joined, config.memory)
            self.memory_norm = nn.LayerNorm(config.memory)
            self.heads = TreeHeads(config.memory, config.head_hidden, config.sprint_state)

    def newborn(self, n: int) -> Tensor:
        """The memory of n dragons before their first decision: zeros [n, config.memory]."""
        return self.join.weight.new_zeros(n, self.config.memory)

    def encode(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What the memory takes in: uint8 [n, bytes] -> float [n, joined], and the experts' balancing loss."""
        crop, overview, scalars, sonar = torch.split(inputs, list(self.config.input_split), dim=1)
        code = self.scalars(scalars).relu_()
        codes = (self.crop(crop, code), self.overview(overview), self.sonar(sonar), code)
        x = self.join(torch.cat(codes, dim=1)).relu_()
        balance = x.new_zeros(())
        for layer in self.experts:
            x, loss = layer(x)
            balance = balance + loss
        return x, balance / len(self.experts)

    def step(self, inputs: Tensor, mask: Tensor, memory: Tensor) -> tuple[Tree, Tensor]:
        """One decision of each of n dragons: the tree and the next memory [n, config.memory]."""
        x, _ = self.encode(inputs)
        after = self.memory(x.unsqueeze(0), memory.unsqueeze(0))[0].squeeze(0)
        return Tree(self.heads, self.memory_norm(after), mask), after.to(memory.dtype)

    def sequence(self, inputs: Tensor, mask: Tensor, lengths: Tensor, memory: Tensor) -> tuple[Tree, Tensor, Tensor]:
        """Decisions of s stretches of lives, one after the other: the first `lengths[0]` rows are the first stretch.

        Equals `step` row after row. All but the memory runs over all rows at once.

        inputs: uint8 [n, bytes]; mask: uint8 [n, 40]; lengths: int64 [s], at least 1, summing to n;
        memory: float [s, config.memory], as it was before the first decision of each stretch
        Returns the tree over the n rows, the memory after each stretch [s, config.memory], the balancing loss.
        """
        x, balance = self.encode(inputs)
        # The GRU wants all first decisions, then all second ones, ..., longest stretches first.
        order = lengths.argsort(descending=True, stable=True)
        starts = (lengths.cumsum(0) - lengths)[order]
        time = torch.arange(int(lengths.amax()), device=lengths.device).unsqueeze(1)
        running = time < lengths[order]
        rows = (starts + time)[running]
        packed, last = self.memory(
            PackedSequence(x[rows], running.sum(dim=1).cpu()), memory[order].unsqueeze(0).contiguous()
        )
        memories = torch.empty_like(packed.data).index_copy(0, rows, packed.data)
        after = torch.empty_like(last[0]).index_copy(0, order, last[0])
        return Tree(self.heads, self.memory_norm(memories), mask), after.to(memory.dtype), balance


def _check(config: TeacherConfig) -> None:
    if config.channels % config.groups:
        raise SparringError(f"groups = {config.groups}: must divide channels = {config.channels}")
    if config.experts_chosen > config.experts:
        raise SparringError(f"experts_chosen = {config.experts_chosen}: there are only {config.experts} experts")
    if OVERVIEW_SIDE % config.overview_pool:
        raise SparringError(f"overview_pool = {config.overview_pool}: must divide {OVERVIEW_SIDE}")


def widen_inputs(
    teacher: Teacher,
    *,
    crop_planes: int | None = None,
    overview_planes: int | None = None,
    scalars: int | None = None,
    sonar_fields: int | None = None,
) -> Teacher:
    """A copy that reads more inputs and plays alike: the weights of what is new start at zero (Berner et al. 2019,
    "Dota 2 with large scale deep reinforcement learning", surgery). New planes and fields come after the old ones."""
    old = teacher.config
    config = replace(
        old,
        crop_planes=crop_planes or old.crop_planes,
        overview_planes=overview_planes or old.overview_planes,
        scalars=scalars or old.scalars,
        sonar_fields=sonar_fields or old.sonar_fields,
    )
    for name in ("crop_planes", "overview_planes", "scalars", "sonar_fields"):
        if getattr(config, name) < getattr(old, name):
            raise SparringError(
                f"{name} = {getattr(config, name)}: the policy reads {getattr(old, name)}, and can only be widened"
            )
    wide = Teacher(config).to(teacher.join.weight)
    weights = dict(teacher.named_parameters())
    with torch.no_grad():
        for name, weight in wide.named_parameters():
            narrow = weights[name]
            if weight.shape == narrow.shape:
                weight.copy_(narrow)
            elif weight.dim() == 4:
                weight.zero_()
                weight[:, : narrow.shape[1]] = narrow
            else:
                # The dense layer of the overview reads the planes of one block after the other.
                blocks = (OVERVIEW_SIDE // config.overview_pool) ** 2 if name.startswith("overview") else 1
                fields = narrow.shape[1] // blocks
                weight.zero_()
                weight.view(len(weight), blocks, -1)[:, :, :fields] = narrow.view(len(narrow), blocks, -1)
    return wide
