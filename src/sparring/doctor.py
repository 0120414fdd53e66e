"""`sparring doctor`: is this machine ready, and if not, what mends it."""

from __future__ import annotations

import ctypes.util
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path
from typing import Literal

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparring.cache import cache_folder
from sparring.errors import SparringError
from sparring.judge.official import JUDGE_ENGINE_SHA256, JUDGE_VERSION

EXTRAS = {
    "zoo": "PettingZoo and Gymnasium games",
    "unity": "the 2018 Tennis binary",
    "cluster": "playing on many machines",
    "cuda": "games on a GPU",
    "dev": "working on Sparring itself",
    "bench": "the benchmarks",
}
"""What each extra is for; the judge toolkit (extra `loong`) has a check of its own."""

ENOUGH_DISK = 2 * 2**30
"""Bytes that a long run wants: a million Tennis transitions take about 0.25 GB, checkpoints and pictures little."""

SOURCES = Path(__file__).resolve().parents[2]
"""The repository in an editable install; elsewhere a folder without a `core` in it."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the report. `optional` means absent, but needed only for what `mend` names."""

    name: str
    status: Literal["ok", "missing", "optional"]
    found: str
    mend: str = ""


def checks() -> list[Check]:
    """Look at everything, in the order a person would mend it. Changes nothing and fetches nothing."""
    return [
        python(),
        compiler(),
        core(),
        torch_build(),
        threads(),
        gpu(),
        nvrtc(),
        judge(),
        *extras(),
        disk("disk of the runs folder", Path(os.environ.get("SPARRING_RUNS", "runs"))),
        disk("disk of temporary files", Path(tempfile.gettempdir())),
        cache("sparring"),
        cache("unswbc"),
    ]


def report(console: Console, found: list[Check]) -> None:
    """Print one line per check: status, what was found, and the mend where there is one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("check", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("found, and the mend")
    colours = {"ok": "green", "missing": "red", "optional": "yellow"}
    for check in found:
        lines = [check.found, *([f"-> {check.mend}"] if check.mend else [])]
        table.add_row(check.name, f"[{colours[check.status]}]{check.status}[/]", escape("\n".join(lines)))
    console.print(table)
    missing = [check.name for check in found if check.status == "missing"]
    console.print(f"Not ready: {', '.join(missing)}." if missing else "Ready.")


def doctor(json: bool = False) -> int:
    """Print the report, or the checks as a JSON list; return the exit code: 0 if nothing that is needed is missing."""
    found = checks()
    if json:
        print(dumps([asdict(check) for check in found], indent=2))
    else:
        report(Console(), found)
    return int(any(check.status == "missing" for check in found))


def python() -> Check:
    found = f"{platform.python_version()} at {sys.executable}"
    return Check(name="Python", status="ok", found=f"{found}, {platform.system()} {platform.machine()}")


def compiler() -> Check:
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        path = shutil.which(name) if name else None
        if path:
            return Check(name="C++ compiler", status="ok", found=path)
    mend = "nothing: only a rebuild of the core needs one, and it then fetches ziglang by itself"
    return Check(name="C++ compiler", status="optional", found="none", mend=mend)


def core() -> Check:
    mend = "build it again: pip install --editable . in the repository, or pip install --force-reinstall sparring"
    try:
        module = importlib.import_module("sparring._core")
    except ImportError as error:
        return Check(name="core", status="missing", found=str(error), mend=mend)
    found = f"{Path(module.__file__ or '').name}, source hash {module.source_hash[:12]}"
    if (SOURCES / "core").is_dir() and module.source_hash != source_hash(SOURCES):
        return Check(name="core", status="missing", found=f"{found}, built from other sources than core/", mend=mend)
    return Check(name="core", status="ok", found=found)


def source_hash(repository: Path) -> str:
    """The hash that CMakeLists.txt compiles into the core, from the sources in `repository`."""
    manifest = ""
    for path in sorted([*repository.glob("core/**/*.h"), *repository.glob("core/**/*.cpp")]):
        name = path.relative_to(repository).as_posix()
        if not name.startswith("core/tests/"):
            manifest += f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
    return hashlib.sha256(manifest.encode()).hexdigest()


def torch_build() -> Check:
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    found = f"{torch.__version__}, {built}, CPU kernels for {torch.backends.cpu.get_cpu_capability()}"
    return Check(name="torch", status="ok", found=found)


def threads() -> Check:
    usable = usable_cpus()
    found = f"{usable} of {os.cpu_count()} CPUs usable, torch takes {torch.get_num_threads()}"
    mend = f"slow with more threads than CPUs: set OMP_NUM_THREADS={usable}" if torch.get_num_threads() > usable else ""
    return Check(name="threads", status="ok", found=found, mend=mend)


def usable_cpus() -> int:
    """CPUs this process may use: its affinity, and the quota of its container where there is one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(usable, int(quota) // int(period)))
    except (OSError, ValueError):  # no container, no quota ("max"), or an older kernel
        return usable


def gpu() -> Check:
    try:
        driver = re.search(r"Module\s+([\d.]+)", Path("/proc/driver/nvidia/version").read_text())
        driver_version = driver.group(1) if driver else "of unknown version"
    except OSError:
        driver_version = ""
    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
        return Check(name="GPU", status="ok", found=f"{names}, driver {driver_version or 'of unknown version'}")
    if driver_version:
        found = f"driver {driver_version}, but torch cannot use it"
        mend = f"only for GPU training: a CUDA build of torch that this driver runs, in place of {torch.__version__}"
        return Check(name="GPU", status="optional", found=found, mend=mend)
    mend = "only for GPU training: an NVIDIA GPU and its driver"
    return Check(name="GPU", status="optional", found="none", mend=mend)


def nvrtc() -> Check:
    # NVIDIA's wheels are parts of one namespace package: nvidia/cu13/lib, nvidia/cuda_nvrtc/lib and so on.
    package = importlib.util.find_spec("nvidia")
    for folder in (package.submodule_search_locations or []) if package else []:
        for library in sorted(Path(folder).glob("*/lib/libnvrtc.so*")) + sorted(Path(folder).glob("*/bin/nvrtc*.dll")):
            return Check(name="NVRTC", status="ok", found=str(library))
    system = ctypes.util.find_library("nvrtc")
    if system:
        return Check(name="NVRTC", status="ok", found=system)
    return Check(
        name="NVRTC",
        status="optional",
        found="none",
        mend="only for games on a GPU: pip install 'sparring[cuda]'",
    )


def judge() -> Check:
    name, mend = "judge toolkit", "only for Loong: pip install 'sparring[loong]'"
    package = importlib.util.find_spec("unswbc")
    if package is None or package.origin is None:
        return Check(name=name, status="optional", found="none", mend=mend)
    version = importlib.metadata.version("unswbc")
    engine = Path(package.origin).with_name("unswbc_engine.wasm")
    if not engine.exists():
        return Check(name=name, status="missing", found=f"{version} without {engine.name}", mend=mend)
    digest = hashlib.sha256(engine.read_bytes()).hexdigest()
    found = f"unswbc {version}, engine {digest[:12]}"
    if digest != JUDGE_ENGINE_SHA256:
        found += (
            f"; matches are played by its rules, lockstep refuses it: the rules here are "
            f"those of {JUDGE_VERSION}, engine {JUDGE_ENGINE_SHA256[:12]}"
        )
        return Check(
            name=name, status="optional", found=found, mend=f"for proofs: pip install 'unswbc=={JUDGE_VERSION}'"
        )
    return Check(name=name, status="ok", found=found)


def extras() -> Iterator[Check]:
    try:
        requirements = importlib.metadata.requires("sparring") or []
    except importlib.metadata.PackageNotFoundError:
        yield Check(name="extras", status="missing", found="sparring is not installed", mend="pip install --editable .")
        return
    for extra, purpose in EXTRAS.items():
        mine = [line for line in requirements if re.search(rf"""extra\s*==\s*["']{extra}["']""", line)]
        names = [match[0] for line in mine if (match := re.match(r"[\w.-]+", line)) and match[0] != "sparring"]
        absent = [name for name in names if not _installed(name)]
        if absent:
            mend = f"only for {purpose}: pip install 'sparring[{extra}]'"
            yield Check(name=f"extra {extra}", status="optional", found=f"without {', '.join(absent)}", mend=mend)
        else:
            yield Check(name=f"extra {extra}", status="ok", found=", ".join(names))


def disk(name: str, folder: Path) -> Check:
    place = folder.absolute()
    while not place.exists():  # a runs folder is made by its first run
        place = place.parent
    free = shutil.disk_usage(place).free
    found = f"{_size(free)} free for {folder.absolute()}"
    if not os.access(place, os.W_OK):
        mend = "make it writable, or set SPARRING_RUNS (runs) or TMPDIR (temporary files) to another folder"
        return Check(name=name, status="missing", found=f"cannot write to {place}", mend=mend)
    if free < ENOUGH_DISK:
        mend = f"free {_size(ENOUGH_DISK)}, or set SPARRING_RUNS (runs) or TMPDIR (temporary files) to another disk"
        return Check(name=name, status="missing", found=found, mend=mend)
    return Check(name=name, status="ok", found=found)


def cache(name: str) -> Check:
    """The cache folder of compiled kernels (sparring) or of the judge's compiled programs (unswbc)."""
    try:
        folder = cache_folder().parent / name
    except SparringError as error:
        return Check(name=f"cache {name}", status="missing", found="nowhere", mend=str(error))
    used = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    place = folder
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        mend = "make it writable, or set XDG_CACHE_HOME to another folder"
        return Check(name=f"cache {name}", status="missing", found=f"cannot write to {place}", mend=mend)
    return Check(name=f"cache {name}", status="ok", found=f"{_size(used)} in {folder}")


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GB" if count >= 2**30 else f"{count / 2**20:.1f} MB"
