"""Where networks run, how precisely, and what becomes of memory that is no longer needed."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass

import torch

from sparring.errors import SparringError

_M_MMAP_MAX, _M_TRIM_THRESHOLD = -4, -1  # of glibc's mallopt


@dataclass(frozen=True)
class Hardware:
    """device: of networks and minibatches; mixed: multiply in bfloat16, with weights and losses in float32."""

    device: torch.device
    mixed: bool

    @staticmethod
    def of(name: str) -> Hardware:
        """ "cpu", all in float32, or "cuda", mixed. Raises SparringError for another name, or where there is no GPU."""
        if name not in ("cpu", "cuda"):
            raise SparringError(f'device = "{name}": must be "cpu" or "cuda"')
        if name == "cuda" and not torch.cuda.is_available():
            raise SparringError('device = "cuda": torch finds no CUDA GPU here; use "cpu", or see sparring doctor')
        return Hardware(torch.device(name), mixed=name == "cuda")

    def precision(self) -> torch.autocast:
        """The context in which networks run."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.mixed)


CPU = Hardware(torch.device("cpu"), mixed=False)


def keep_freed_memory() -> None:
    """From now on this process keeps what it frees, for its next use.

    Tensors above 32 MB are otherwise given back to the system by glibc each time, and their pages are cleared and
    mapped anew at the next allocation: a sixth of the time of an update of `loong-tiny`. Other C libraries are left as
    they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
