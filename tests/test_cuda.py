"""The CUDA side without a GPU: the kernels compile for three architectures, and the Python around them drives them
right, with the kernels compiled for the CPU in the place of the GPU's."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import random
import subprocess
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from loong_maps import random_map
from torch import Tensor
from watched_loong import NOBODY, pond

from sparring import _core, kernels
from sparring.errors import SparringError
from sparring.games import loong as loong_game
from sparring.games import loong_cuda
from sparring.games.loong import Loong
from sparring.games.loong_choices import CHOICE_DRAWS, GIVEN, random_choices
from sparring.games.loong_cuda import ACTION_BYTES, KERNELS, KNOWING_KERNELS, CudaMatches
from sparring.games.loong_rows import PLAYERS
from sparring.judge.native import load_level
from sparring.learn.noise import choice_uniforms, uniforms_there
from sparring.learn.ppo import PPOConfig
from sparring.learn.selfplay import SelfPlay, SelfPlayConfig

REPOSITORY = Path(__file__).resolve().parents[1]

needs_nvrtc = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None, reason="the extra cuda is not installed: pip install -e '.[cuda]'"
)


def pool(count: int) -> list[_core.LoongLevel]:
    return [load_level(random_map(random.Random(seed), repeats=seed % 3 == 0)) for seed in range(count)]


# ---- Compilation.


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_the_kernels_compile_and_take_little(arch: str) -> None:
    cubin, usage = kernels.compile_cubin("batch.cu", arch)
    assert cubin[:4] == b"\x7fELF"
    assert set(usage) == set(KERNELS)
    for name, taken in usage.items():
        assert taken.shared == 0
        if name != "decide_in_lanes":  # the scripted players hold a View in the stack, what plays must not
            assert taken.registers <= 96 and taken.stack <= 16


@needs_nvrtc
def test_the_kernels_of_knowledge_compile() -> None:
    cubin, usage = kernels.compile_cubin("knowing.cu", "sm_90")
    assert cubin[:4] == b"\x7fELF"
    assert set(usage) == set(KNOWING_KERNELS)
    holds = {"play_in_lanes": 2560, "know_at_end": 2048}  # a View and more in the stack
    for name, taken in usage.items():
        assert taken.shared == 0 and taken.registers <= 128
        assert taken.stack <= holds.get(name, 1024), name


@needs_nvrtc
def test_a_faulty_source_is_refused_in_the_compilers_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "bad.cu").write_text('extern "C" __global__ void f() { absent(); }')
    monkeypatch.setattr(kernels, "core_folder", lambda: tmp_path)
    with pytest.raises(SparringError, match=r"(?s)NVRTC cannot compile bad\.cu for sm_90.*absent"):
        kernels.compile_cubin("bad.cu", "sm_90")


@needs_nvrtc
def test_machine_code_is_kept_by_source_and_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    core = tmp_path / "core"
    (core / "cuda").mkdir(parents=True)
    (core / "cuda" / "one.cu").write_text('#include "one.h"\nextern "C" __global__ void f(int* x) { *x = kOne; }')
    (core / "one.h").write_text("constexpr int kOne = 1;")
    monkeypatch.setattr(kernels, "core_folder", lambda: core)
    compiled = []
    compile_cubin = kernels.compile_cubin

    def counted(source: str, arch: str) -> tuple[bytes, dict[str, kernels.Usage]]:
        compiled.append((source, arch))
        return compile_cubin(source, arch)

    monkeypatch.setattr(kernels, "compile_cubin", counted)
    first = kernels.compiled("one.cu", "sm_90")
    assert kernels.compiled("one.cu", "sm_90") == first and len(compiled) == 1
    kernels.compiled("one.cu", "sm_80")
    assert len(compiled) == 2
    (core / "one.h").write_text("constexpr int kOne = 2;")  # a header counts, too
    assert kernels.compiled("one.cu", "sm_90") != first and len(compiled) == 3
    assert len(list((tmp_path / "cache" / "sparring").iterdir())) == 3


def test_without_a_gpu_that_is_said() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(SparringError, match="need an NVIDIA GPU and a CUDA build of torch"):
        CudaMatches(pool(1), 4)


def test_the_words_of_ptxas_are_read() -> None:
    log = (
        "ptxas info    : Compiling entry function 'one' for 'sm_90'\nptxas info    : Function properties for one\n"
        "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 56 registers, used 1 barriers, 4096 bytes smem, 368 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'two' for 'sm_90'\nptxas info    : Used 9 registers\n"
    )
    assert kernels.usage(log) == {"one": kernels.Usage(56, 8, 4096), "two": kernels.Usage(9, 0, 0)}


# ---- The Python around the kernels.


class HostKernels:
    """`kernels.Kernels` with the CPU as the device."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.device = torch.device("cpu")
        self.library = library

    def launch(self, name: str, threads: int, *arguments: Tensor | int) -> None:
        kernel = getattr(self.library, name)
        passed = [ctypes.c_uint64(a.data_ptr() if isinstance(a, Tensor) else a & (2**64 - 1)) for a in arguments]
        per_block = kernels.THREADS_PER_BLOCK
        for block in range(-(-threads // per_block)):
            for thread in range(per_block):
                self.library.set_thread(block, thread, per_block)
                kernel(*passed)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    target = tmp_path_factory.mktemp("kernels") / "kernels.so"
    compiler = os.environ.get("CXX", "c++")
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-I{REPOSITORY / 'core'}"]
    subprocess.run([compiler, *flags, str(REPOSITORY / "tests" / "host_kernels.cpp"), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture
def on_the_host(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loong_cuda, "Kernels", lambda *_: HostKernels(library))


@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("lean", [False, True])
def test_a_batch_on_the_device_is_that_on_the_cpu_byte_for_byte(lean: bool) -> None:
    levels, lanes = pool(5), 37
    ours, theirs = _core.LoongMatches(levels, lanes, lean=lean), CudaMatches(levels, lanes, lean=lean)
    scripts = np.random.default_rng(0).integers(0, len(_core.LOONG_SCRIPTS), (lanes, 2), dtype=np.uint8)
    actions = np.zeros((lanes, ACTION_BYTES), np.uint8)
    sent = torch.zeros(lanes, ACTION_BYTES, dtype=torch.uint8)
    restarts = 0
    for turn in range(250):
        ours.look()
        theirs.look()
        assert (theirs.views.numpy() == ours.views).all()
        ours.decide(scripts, 2**63 + 5, actions)
        theirs.decide(torch.from_numpy(scripts), 2**63 + 5, sent)
        assert (sent.numpy() == actions).all()
        ours.act(actions)
        theirs.act(sent)
        assert (theirs.rows.numpy() == ours.rows).all()
        over = np.flatnonzero(ours.rows.view(_core.LOONG_LANE)["over"][:, 0])
        if len(over) > 3:
            seeds = over.astype(np.uint64) + np.uint64(2**64 - 1000 + turn)
            ours.restart(over, (over + 1) % 5, seeds)
            theirs.restart(
                torch.from_numpy(over), torch.from_numpy((over + 1) % 5), torch.from_numpy(seeds.view(np.int64))
            )
            restarts += len(over)
    assert restarts > 10
    assert (theirs.state().numpy() == ours.state()).all()


@pytest.mark.usefixtures("on_the_host")
def test_the_device_is_given_nothing_that_does_not_fit() -> None:
    batch = CudaMatches(pool(2), 4)
    before = batch.state()
    with pytest.raises(SparringError, match="there is no lane 4: there are 4"):
        batch.restart(torch.tensor([1, 4]), torch.tensor([0, 0]), torch.tensor([1, 2]))
    with pytest.raises(SparringError, match="there is no level -1: there are 2"):
        batch.restart(torch.tensor([1]), torch.tensor([-1]), torch.tensor([1]))
    with pytest.raises(SparringError, match=r"must be \[k\]"):
        batch.restart(torch.tensor([1]), torch.tensor([0]), torch.tensor([1, 2]))
    with pytest.raises(SparringError, match=r"actions must be uint8 \[4, 80\], got torch.uint8 \[3, 80\]"):
        batch.act(torch.zeros(3, ACTION_BYTES, dtype=torch.uint8))
    with pytest.raises(SparringError, match=r"scripts must be uint8 \[4, 2\]"):
        batch.decide(torch.zeros(4, 2), 1, torch.zeros(4, ACTION_BYTES, dtype=torch.uint8))
    batch.restart(
        torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64)
    )
    assert torch.equal(batch.state(), before)


@pytest.mark.usefixtures("on_the_host")
def test_a_row_that_is_no_action_ends_its_lane_with_a_fault() -> None:
    batch = CudaMatches(pool(2), 4)
    actions = torch.zeros(4, ACTION_BYTES, dtype=torch.uint8)
    actions.numpy().view(_core.LOONG_ACTION)["kind"] = 3
    batch.act(actions)
    rows = batch.rows.numpy().view(_core.LOONG_LANE)
    assert (rows["fault"] == 3).all() and not rows["waiting"].any() and not rows["over"].any()


# ---- Games on the device.


def on_both(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Loong, Loong]:
    """The same game on the CPU, and on the device."""
    ours = Loong(observe="inputs", **options)

    def there(*arguments: Any, threads: int, **others: Any) -> CudaMatches:
        return CudaMatches(*arguments, **others, device="cpu")

    with monkeypatch.context() as patch:
        patch.setattr(loong_game, "HostMatches", there)
        theirs = Loong(observe="inputs", **options)
    assert isinstance(theirs._matches, CudaMatches) and not isinstance(ours._matches, CudaMatches)
    return ours, theirs


def same(ours: Any, theirs: Any, where: str = "") -> int:
    """How many numbers two structures of tensors hold, which must be the same bytes."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, Tensor):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, where
        assert ours.contiguous().numpy().tobytes() == theirs.contiguous().numpy().tobytes(), where
        return ours.numel()
    if is_dataclass(ours):
        ours, theirs = ({each.name: getattr(x, each.name) for each in fields(x)} for x in (ours, theirs))
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        return sum(same(ours[name], theirs[name], f"{where} {name}") for name in ours)
    if isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), where
        return sum(same(*pair, f"{where} {i}") for i, pair in enumerate(zip(ours, theirs, strict=True)))
    assert ours == theirs or ours != ours, where
    return 1


def told(game: Loong) -> dict[str, Any]:
    """Whatever can be asked of a game between two decisions."""
    lanes = torch.arange(game.lanes).flip(0)
    return {
        "rows": game._matches.rows,
        "decisions": game.decisions(),
        "learners": game.learners,
        "critic": game.appraise(),
        "boards": game.boards(lanes),
        "standings": game.standings(),
        "roster": game.roster(lanes),
        "frames": game.frames(),
        "everyone": game.everyone(lanes),
    }


@pytest.mark.usefixtures("on_the_host")
def test_a_game_on_the_device_is_that_on_the_cpu_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loong_cuda, "_AT_ONCE", 3)  # lanes that a state is copied by
    games = on_both(monkeypatch, lanes=8, seed=3, maps=pond(tmp_path, crowded=True), build=7)
    draw, ended, alive = np.random.default_rng(1), 0, 0
    players = torch.from_numpy(draw.permutation([*range(len(PLAYERS)), *[NOBODY] * 16][:16]).astype(np.uint8))
    for game in games:
        game.restart(torch.arange(8), scripts=players.view(8, 2))
    for turn in range(150):
        same(*map(told, games) if turn % 3 == 0 else (game.decisions() for game in games), f"turn {turn}")
        rows = games[0].decisions()
        actions = random_choices(rows, torch.from_numpy(draw.random((len(rows), CHOICE_DRAWS))))
        scripted = torch.from_numpy(draw.random(len(rows)) < 0.5)
        given = [game.scripted(game.decisions(), "forager", seed=5) for game in games]
        same(*given)
        actions[scripted] = GIVEN
        outcomes = [game.act(actions.clone(), rows) for game, rows in zip(games, given, strict=True)]
        same(*outcomes, f"turn {turn}")
        ended += len(outcomes[0].ended)
        alive += len(outcomes[0].last)
        if len(outcomes[0].ended):
            seats = torch.from_numpy(draw.choice([NOBODY, NOBODY, 0, 3], (len(outcomes[0].ended), 2)).astype(np.uint8))
            for game, outcome in zip(games, outcomes, strict=True):
                game.restart(outcome.ended, scripts=seats)
        if turn in (70, 149):  # each goes on from what the other one saved
            saved = [game.state() for game in games]
            same(*saved)
            if turn == 70:
                for game, state in zip(games, reversed(saved), strict=True):
                    game.load_state(state)
    assert ended > 15 and alive > 10
    dragons = [[each for lane in range(8) for each in game.dragons(lane)] for game in games]
    assert [each[:4] for each in dragons[0]] == [each[:4] for each in dragons[1]]
    assert all((one.body == other.body).all() for one, other in zip(*dragons, strict=True))
    assert (games[0].pearls(3) == games[1].pearls(3)).all()


@pytest.mark.usefixtures("on_the_host")
def test_what_a_game_on_the_device_cannot_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = on_both(monkeypatch, lanes=2, seed=3, maps=pond(tmp_path))
    before, state = theirs.state(), ours.state()
    damaged = {**state, "lanes": state["lanes"].clone()}
    damaged["lanes"][1, :8] = 9
    with pytest.raises(SparringError, match="names a level that is not here"):
        theirs.load_state(damaged)
    same(theirs.state(), before)
    with pytest.raises(
        SparringError, match=r"loong: lane 1, .*: it was given a number that is no choice of its dragon"
    ):
        theirs.act(
            torch.stack((random_choices(theirs.decisions(), torch.zeros(2, CHOICE_DRAWS))[0], torch.tensor(3 << 3)))
        )
    with pytest.raises(SparringError, match='on a GPU dragons remember: give observe="inputs"'):
        Loong(maps=pond(tmp_path), device="cuda")
    with pytest.raises(SparringError, match='device must be "cpu" or "cuda", got "mps"'):
        Loong(maps=pond(tmp_path), device="mps")
    with pytest.raises(SparringError, match="needs knowledge=True"):
        CudaMatches(pool(1), 1).standings()
    with pytest.raises(SparringError, match=r"choices must be int64 \[2\]"):
        theirs._matches.act_packed(torch.zeros(3, dtype=torch.int64), None)


@pytest.mark.usefixtures("on_the_host")
def test_self_play_on_the_device_learns_what_it_learns_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = on_both(monkeypatch, lanes=6, seed=3, maps=pond(tmp_path, crowded=True))
    config = SelfPlayConfig(
        opponents=("forager", "foil"), scripted=0.6, ppo=PPOConfig(steps=40, minibatch=80, auxiliary=0.1)
    )
    learners = [SelfPlay(game, config, seed=3, decisions=10_000) for game in games]
    rollouts = [learner.collector.collect(40, learner) for learner in learners]
    assert same(*rollouts) > 10**6 and len(rollouts[0].nodes.opened) > 4
    matches = [learner.step() for learner in learners]
    same(*matches)
    assert len(matches[0]) > 3 and learners[0].losses()["steps"] > 1
    same(*(learner.losses() for learner in learners))
    same(*(learner.state() for learner in learners))


def test_counter_based_draws_are_the_same_numbers_made_by_tensors() -> None:
    draw = np.random.default_rng(0)
    counters = torch.from_numpy(draw.integers(0, 2**32, (200, 4)))
    counters[0], counters[1] = 0, 2**32 - 1
    for seed, stream in ((0, 0), (2**63 + 5, 11), (17, 65535)):
        expected = choice_uniforms(*counters.unbind(dim=1), seed=seed, stream=stream)
        assert torch.equal(uniforms_there(counters, expected.shape[1], seed=seed, stream=stream), expected)
