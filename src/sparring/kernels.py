"""CUDA kernels from `core/cuda`: compiled by NVRTC at first use, cached, launched on torch's current stream.

Neither a GPU nor a CUDA toolkit is needed to compile, only the extra `cuda`; a GPU and its driver are needed to launch.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparring.cache import cache_folder, keep
from sparring.errors import SparringError

THREADS_PER_BLOCK = 32
"""One warp: lanes share nothing, and small blocks spread a few thousand lanes over all multiprocessors."""

OPTIONS = {"std": "c++20", "ptxas_options": ["-v"]}


@dataclass(frozen=True)
class Usage:
    """What a kernel takes of a GPU, by `ptxas`: registers and bytes of stack of a thread, shared bytes of a block."""

    registers: int
    stack: int
    shared: int


class Kernels:
    """The kernels of one file for one GPU."""

    def __init__(self, source: str, kernels: Iterable[str], device: torch.device) -> None:
        """source: name of a file in `core/cuda`; kernels: names of those in it that will be launched.

        Raises SparringError without a GPU, without the extra `cuda`, or if the driver cannot load what NVRTC makes.
        """
        if device.type != "cuda" or not torch.cuda.is_available():
            raise SparringError(
                f"kernels need an NVIDIA GPU and a CUDA build of torch; torch {torch.__version__} sees none"
            )
        self.device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        major, minor = torch.cuda.get_device_capability(self.device)
        cubin = compiled(source, f"sm_{major}{minor}")
        self._cuda = _cuda_core()
        torch.zeros(1, device=self.device)  # torch makes the context that both use
        self._cuda.Device(self.device.index).set_current()
        try:
            self._code = self._cuda.ObjectCode.from_cubin(cubin, name=source)
            self._loaded = {name: self._code.get_kernel(name) for name in kernels}
        except Exception as error:
            raise SparringError(
                f"the driver cannot load what NVRTC {_nvrtc_version()} makes of {source}: update the NVIDIA driver, or "
                f"install an older nvidia-cuda-nvrtc ({error})"
            ) from error

    def launch(self, name: str, threads: int, *arguments: Tensor | int) -> None:
        """Run a kernel with at least so many threads after what torch's current stream holds; does not wait for it.

        A tensor is passed by its pointer, an integer as 64 bits. Tensors must be contiguous and on the kernels' device.
        """
        for argument in arguments:
            if isinstance(argument, Tensor) and (argument.device != self.device or not argument.is_contiguous()):
                raise SparringError(
                    f"{name}: tensors must be contiguous and on {self.device}, got one on {argument.device}"
                )
        blocks = (threads + THREADS_PER_BLOCK - 1) // THREADS_PER_BLOCK
        config = self._cuda.LaunchConfig(grid=max(blocks, 1), block=THREADS_PER_BLOCK)
        passed = [a.data_ptr() if isinstance(a, Tensor) else np.uint64(a & (2**64 - 1)) for a in arguments]
        with torch.cuda.device(self.device):
            pointer = torch.cuda.current_stream(self.device).cuda_stream
            stream = _Stream(pointer) if pointer else self._cuda.LEGACY_DEFAULT_STREAM
            self._cuda.launch(stream, config, self._loaded[name], *passed)


@dataclass(frozen=True)
class _Stream:
    """A stream of torch, as cuda.core wants it."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer


def compiled(source: str, arch: str) -> bytes:
    """The machine code of a file in `core/cuda` for an architecture such as `sm_90`, from the cache or from NVRTC."""
    kept = cache_folder() / f"{Path(source).stem}-{arch}-{sources_hash(source)[:16]}-nvrtc-{_nvrtc_version()}.cubin"
    try:
        return kept.read_bytes()
    except OSError:
        cubin, _ = compile_cubin(source, arch)
        keep(kept, cubin)
        return cubin


def compile_cubin(source: str, arch: str) -> tuple[bytes, dict[str, Usage]]:
    """Compile a file in `core/cuda`: the machine code, and what each kernel takes. Seconds, and no cache.

    Raises SparringError with the compiler's words if it does not compile.
    """
    cuda = _cuda_core()
    core = core_folder()
    log = io.StringIO()
    try:
        options = cuda.ProgramOptions(name=source, arch=arch, include_path=str(core), **OPTIONS)
        program = cuda.Program((core / "cuda" / source).read_text(), "c++", options)
        code = program.compile("cubin", logs=log)
    except Exception as error:
        words = str(error).rstrip("\0\n")
        raise SparringError(f"NVRTC cannot compile {source} for {arch}: {words}") from error
    return bytes(code.code), usage(log.getvalue())


def usage(log: str) -> dict[str, Usage]:
    """What `ptxas -v` says of each kernel."""
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        numbers = [
            re.search(pattern, part) for pattern in (r"Used (\d+) registers", r"(\d+) bytes stack", r"(\d+) bytes smem")
        ]
        registers, stack, shared = (int(match[1]) if match else 0 for match in numbers)
        found[part.partition("'")[0]] = Usage(registers, stack, shared)
    return found


def core_folder() -> Path:
    """The C++ sources: the repository's in an editable install, else those in the package."""
    package = Path(__file__).resolve().parent
    places = (package / "core", package.parents[1] / "core")
    for place in places:
        if (place / "cuda").is_dir():
            return place
    raise SparringError(f"the sources of the kernels are not in {places[0]}: install Sparring again")


def sources_hash(source: str) -> str:
    """SHA-256 over a file in `core/cuda`, every header it could include, and the compiler's options."""
    core = core_folder()
    hashed = hashlib.sha256(repr(OPTIONS).encode())
    for path in [core / "cuda" / source, *sorted(core.rglob("*.h"))]:
        hashed.update(f"{path.relative_to(core).as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return hashed.hexdigest()


@functools.cache
def _cuda_core() -> Any:
    try:
        return importlib.import_module("cuda.core")
    except ImportError as error:
        raise SparringError(f"kernels need the extra cuda ({error}): pip install 'sparring[cuda]'") from error


@functools.cache
def _nvrtc_version() -> str:
    _cuda_core()
    _status, major, minor = importlib.import_module("cuda.bindings.nvrtc").nvrtcVersion()
    return f"{major}.{minor}"
