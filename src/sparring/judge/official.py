"""The organisers' engine, of the version whose rules we follow, compiled once per machine."""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from sparring.cache import cache_folder, keep
from sparring.errors import SparringError

JUDGE_VERSION = "1.2.11"
JUDGE_ENGINE_SHA256 = "26e68680e45eb0f221db702aead9eefde776c2ad2ba066f4ddf8c12500c6a546"
"""The toolkit whose rules we follow, and the SHA-256 of the engine (`unswbc_engine.wasm`) inside it."""


def official_engine(*, any_version: bool = False) -> Any:
    """An `unswbc.engine.EngineModule` of one's own: for one match at a time.

    any_version: take whatever engine is installed. Enough to play matches, of which `installed_engine_hash` then tells
                 the rules; a proof that our engine is theirs needs the one whose rules we follow.

    Raises SparringError if the toolkit is missing, or of another version.

    Compiling the engine takes seconds in every process; the machine code is kept in the cache folder and loaded from
    there, once a process, under the hash of the engine and the version of the compiler.
    """
    found = installed_engine_hash()
    if found != JUDGE_ENGINE_SHA256 and not any_version:
        raise SparringError(
            f"unswbc {importlib.metadata.version('unswbc')} has engine {found[:12]}, and the rules here are those of "
            f"{JUDGE_VERSION}, engine {JUDGE_ENGINE_SHA256[:12]}: pip install 'unswbc=={JUDGE_VERSION}'"
        )
    engine = toolkit("engine").EngineModule.__new__(toolkit("engine").EngineModule)
    engine._engine, engine._module = _loaded()
    engine._live = None
    return engine


def installed_engine_hash() -> str:
    """SHA-256 of the engine in the installed toolkit. Raises SparringError if the toolkit is missing."""
    return engine_hash(toolkit("engine").WASM_PATH)


def release(engine: Any) -> None:
    """Give back what an engine keeps of its last match for `replay`: megabytes that nothing else gives back."""
    if engine._live is not None:
        engine._live[0].close()
        engine._live = None


def toolkit(part: str) -> Any:
    """A module of the toolkit, such as `engine`. Raises SparringError if the toolkit is missing."""
    try:
        return importlib.import_module(f"unswbc.{part}")
    except ImportError as error:
        raise SparringError(f"the judge toolkit is missing ({error}): pip install 'sparring[loong]'") from error


def native_path(name: str) -> Path:
    """Where wasmtime's machine code of something is kept: another version or another processor has another place."""
    return cache_folder() / f"{name}-wasmtime-{importlib.metadata.version('wasmtime')}-{platform.machine()}.bin"


@functools.cache
def _loaded() -> tuple[Any, Any]:
    """wasmtime's engine, and the organisers' engine as a module of it."""
    judge, wasmtime = toolkit("engine"), importlib.import_module("wasmtime")
    found = installed_engine_hash()
    toolkit("sandbox")._patch_wasmtime()  # or two matches in two threads mix up their callbacks
    engine = wasmtime.Engine()
    kept = native_path(f"judge-{found[:16]}")
    try:
        module = wasmtime.Module.deserialize(engine, kept.read_bytes())
    except (OSError, wasmtime.WasmtimeError):  # not there, or written on another kind of processor
        module = wasmtime.Module.from_file(engine, str(judge.WASM_PATH))
        keep(kept, module.serialize())
    atexit.register(_loaded.cache_clear)  # wasmtime complains of what it must free later than that
    return engine, module


@functools.cache
def engine_hash(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
