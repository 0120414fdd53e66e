"""The organisers' engine, of the version whose rules we follow, compiled once per machine."""

from __future__ import annotations

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


def official_engine() -> Any:
    """An `unswbc.engine.EngineModule`. Raises SparringError if the toolkit is missing or of another version.

    Compiling the engine takes seconds in every process; the machine code is kept in the cache folder and loaded from
    there, under the hash of the engine and the version of the compiler.
    """
    try:
        judge, wasmtime = importlib.import_module("unswbc.engine"), importlib.import_module("wasmtime")
        versions = {name: importlib.metadata.version(name) for name in ("unswbc", "wasmtime")}
    except ImportError as error:
        raise SparringError(f"the judge toolkit is missing ({error}): pip install 'sparring[loong]'") from error
    found = engine_hash(judge.WASM_PATH)
    if found != JUDGE_ENGINE_SHA256:
        raise SparringError(
            f"unswbc {versions['unswbc']} has engine {found[:12]}, and the rules here are those of {JUDGE_VERSION}, "
            f"engine {JUDGE_ENGINE_SHA256[:12]}: pip install 'unswbc=={JUDGE_VERSION}'"
        )
    engine = judge.EngineModule.__new__(judge.EngineModule)
    engine._engine, engine._live = wasmtime.Engine(), None
    kept = cache_folder() / f"judge-{found[:16]}-wasmtime-{versions['wasmtime']}-{platform.machine()}.bin"
    try:
        engine._module = wasmtime.Module.deserialize(engine._engine, kept.read_bytes())
    except (OSError, wasmtime.WasmtimeError):  # not there, or written on another kind of processor
        engine._module = wasmtime.Module.from_file(engine._engine, str(judge.WASM_PATH))
        keep(kept, engine._module.serialize())
    return engine


@functools.cache
def engine_hash(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
