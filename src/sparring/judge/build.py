"""Bots as the judge builds them: C and C++ to WebAssembly with the toolkit's clang, priced, compiled, and kept.

Everything is kept in the cache folder by its content, so that no change to a header or a data file is ever missed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.metadata
import io
import lzma
import os
import stat
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from sparring.cache import cache_folder, cannot_keep, keep, one_at_a_time, share, used
from sparring.errors import SparringError
from sparring.judge.official import native_path, toolkit

MOST_ZIP_BYTES = 4 << 20
"""What may be submitted."""
MOST_BYTES = 64 << 20
"""A folder, a .wasm, or what a zip unpacks to, that is larger is no bot."""
_KEPT = "built bots"


class Program(NamedTuple):
    """A built bot that is ready to start: what every dragon of it shares.

    native: file of machine code; imports, pages: as `unswbc.sandbox` wants them, functions and memory limits
    """

    native: Path
    imports: list[Any]
    pages: tuple[int, int]


def build_bot(source: Path) -> Path:
    """The WebAssembly of a bot folder or a zip of one, built if it must be. It lies in the cache folder.

    All files of the folder count, save those whose path has a part that begins with a dot. Raises SparringError, in
    one line, for what cannot be read or is no bot, and with the compiler's first error where it does not compile.
    """
    files = _zip_files(source) if source.is_file() else _folder_files(source)
    clang = toolkit("clangtool")
    version = importlib.metadata.version("unswbc")
    digest = hashlib.sha256(repr([version, clang.DRIVER_FLAGS, clang.LINK_FLAGS, clang.LINK_TAIL]).encode())
    for name in sorted(files):
        written = os.fsencode(name)
        digest.update(b"%d %s %d\n" % (len(written), written, len(files[name])) + files[name])
    built = _folder() / f"{digest.hexdigest()[:32]}.wasm"
    if built.is_file():
        used(built)
        return built
    _check_place(built.parent)  # else one would hear of it only when the compiler is ready, minutes later
    with one_at_a_time("build"):
        if not built.is_file():
            share(built, _built(source, files), _KEPT)
    return built


def keep_wasm(source: Path | bytes) -> Path:
    """A .wasm file as it is now, or the bytes of one, put into the cache folder. Raises SparringError if unreadable."""
    try:
        if isinstance(source, bytes):
            wasm = source
        else:
            with source.open("rb") as file:
                wasm = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SparringError(f"cannot read {source!s}: {error.strerror or error}") from error
    if len(wasm) > MOST_BYTES:
        raise SparringError(f"{source!s} has more than {MOST_BYTES >> 20} MiB: that is no bot")
    return share(_folder() / f"{hashlib.sha256(wasm).hexdigest()}.wasm", wasm, _KEPT)


@functools.cache
def program(wasm: Path) -> Program:
    """A kept bot, priced in points and compiled if it must be.

    Raises SparringError if it is no bot: no WebAssembly, or not one that the judge's clang links.
    """
    sandbox = toolkit("sandbox")
    content = wasm.read_bytes()
    shape: list[tuple[int, int]] = []
    native = native_path(f"bots/{hashlib.sha256(content).hexdigest()[:32]}")
    if not _loads(native):
        with one_at_a_time("build"):
            if not _loads(native):
                native.unlink(missing_ok=True)
                share(native, _compiled(content), _KEPT)
    used(native)
    return Program(native, sandbox.parse_imports(content, shape), shape[0])


def sandbox_config(*, stoppable: bool = True) -> Any:
    """wasmtime's settings, those of the toolkit's sandbox; `stoppable` bots can be ended from outside, too."""
    config = importlib.import_module("wasmtime").Config()
    for feature in (
        "wasm_threads",
        "wasm_bulk_memory",
        "wasm_simd",
        "wasm_exceptions",
        "wasm_wide_arithmetic",
        "wasm_multi_memory",
        "wasm_multi_value",
        "wasm_reference_types",
        "wasm_tail_call",
        "shared_memory",
    ):
        setattr(config, feature, True)
    config.epoch_interruption = stoppable
    return config


def _loads(native: Path) -> bool:
    """Whether there is machine code that this processor runs: the folder may come from another one, or be spoilt."""
    wasmtime = importlib.import_module("wasmtime")
    if not native.is_file():
        return False
    try:
        wasmtime.Module.deserialize_file(wasmtime.Engine(sandbox_config()), str(native))
    except wasmtime.WasmtimeError:
        return False
    return True


def _compiled(content: bytes) -> bytes:
    """Machine code of a bot that counts its points. Raises SparringError if the bytes are no bot."""
    wasmtime, metering = importlib.import_module("wasmtime"), toolkit("metering")
    engine = wasmtime.Engine(sandbox_config())
    if metering.REMAINING in content:
        raise SparringError("it brings a meter of its own: give the WebAssembly as the compiler made it")
    try:
        module = wasmtime.Module(engine, content)
    except wasmtime.WasmtimeError as error:
        raise SparringError(f"it is no WebAssembly: {str(error).splitlines()[0]}") from error
    memories = [each for each in module.imports if isinstance(each.type, wasmtime.MemoryType)]
    calls = [each.type for each in module.imports if isinstance(each.type, wasmtime.FuncType)]
    numbers = all(
        str(value) in toolkit("sandbox")._VALTYPE for call in calls for value in (*call.params, *call.results)
    )
    shared = [(each.module, each.name, each.type.is_shared) for each in memories] == [("env", "memory", True)]
    if not (shared and numbers and len(module.imports) == len(calls) + 1):
        raise SparringError(
            "it does not ask for one shared memory and for functions, as all that the judge's clang links does"
        )
    if not any(each.name == "_start" and isinstance(each.type, wasmtime.FuncType) for each in module.exports):
        raise SparringError("it exports no _start: it is a library, not a program")
    least = memories[0].type.limits.min
    if least > toolkit("sandbox").MAX_MEMORY_PAGES:
        raise SparringError(f"it starts with {least * 64 // 1024} MiB of memory, and the judge gives 48")
    return bytes(wasmtime.Module(engine, metering.instrument(content)).serialize())


def _built(source: Path, files: dict[str, bytes]) -> bytes:
    """Compile and link a copy of a bot's files."""
    clang = toolkit("clangtool")
    with tempfile.TemporaryDirectory(prefix="sparring-build-") as work:
        try:
            for name in ("src", "out", "tmp"):
                Path(work, name).mkdir()
            for name, content in files.items():
                path = Path(work, "src", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        except OSError as error:  # no room, a name that is too long, a file and a folder of one name
            raise SparringError(f"cannot unpack {source} to build it: {error.strerror}: {name:.80}") from error
        sources = clang.sources(Path(work, "src"))
        if not sources:
            python = any(name.endswith(".py") for name in files)
            what = "a Python bot, and only C and C++ ones are played here" if python else "no bot"
            raise SparringError(f"{source} is {what}: there is no .c, .cc, .cpp, .cxx or .c++ file in it")
        _compile(source, Path(work), sources)
        return Path(work, "out", "bot.wasm").read_bytes()


def _compile(source: Path, work: Path, sources: list[Path]) -> None:
    """Compile and link `work`/src to `work`/out/bot.wasm, as `unswbc.clangtool.build` does."""
    clang, wasmtime = toolkit("clangtool"), importlib.import_module("wasmtime")
    try:
        home = clang.toolchain()
        driver, linker = home / "clang.wasm", home / "root" / "bin" / "wasm-ld"
        mounts = {f"/{name}": work / name for name in ("src", "out", "tmp")}
        for tool in (driver, linker):
            _prepare(tool)
        objects = []
        for index, path in enumerate(sources):
            c = path.suffix == clang.C_SUFFIX
            language = ["-xc", "-std=c17"] if c else ["-xc++", "-std=c++20", "-stdlib=libc++"]
            objects.append(f"/tmp/{index}.o")
            command = ["/bin/clang-20", *clang.DRIVER_FLAGS, "-c", "-o", objects[-1], *language, path.as_posix()]
            clang._step(driver, home, command, mounts, f"compiling {path.as_posix()}")
        cxx = ["-lc++", "-lc++abi"] if any(path.suffix in clang.CXX_SUFFIXES for path in sources) else []
        command = ["/bin/wasm-ld", *clang.LINK_FLAGS, *cxx, *objects, *clang.LINK_TAIL]
        clang._step(linker, home, command, mounts, "linking")
    except clang.BuildError as error:
        what, *said = str(error).splitlines()
        first = next((line for line in said if "error:" in line), said[0] if said else what)
        raise SparringError(f"{source} does not compile: {first.strip()}") from error
    except (wasmtime.WasmtimeError, wasmtime.Trap, toolkit("sandbox").Unsupported) as error:
        raise SparringError(f"{source} does not compile: it crashed the judge's clang") from error


def _prepare(tool: Path) -> None:
    """Have a tool of the toolkit as machine code, and leave it where the toolkit looks for it.

    The toolkit's own copy, which it makes anew for every installation, will do; else ours is kept by its content.
    """
    sandbox, wasmtime = toolkit("sandbox"), importlib.import_module("wasmtime")
    if tool in sandbox._COMPILED:
        return
    content = tool.read_bytes()
    engine = wasmtime.Engine(sandbox_config(stoppable=False))
    native = native_path(f"tools/{tool.stem}-{hashlib.sha256(content).hexdigest()[:16]}")
    shape: list[tuple[int, int]] = []
    imports = sandbox.parse_imports(content, shape)
    for kept in (native, sandbox.compiled_path(tool)):
        with contextlib.suppress(wasmtime.WasmtimeError):  # not there, or of another version of wasmtime
            module = wasmtime.Module.deserialize_file(engine, str(kept))
            break
    else:
        print(f"preparing the judge's {tool.stem}, once on this machine: a minute or two", file=sys.stderr)
        module = wasmtime.Module(engine, content)
        keep(native, module.serialize())
    sandbox._COMPILED[tool] = (engine, module, imports, shape[0] if shape else (1, 65536))


def _folder() -> Path:
    return cache_folder() / "bots"


def _check_place(folder: Path) -> None:
    """Raise SparringError if nothing can be written to a folder of the cache."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise cannot_keep(_KEPT, folder) from error


def _folder_files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its name, the parts joined by slashes."""
    files: dict[str, bytes] = {}
    size = 0
    try:
        for place, folders, names in os.walk(folder, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(place, name) for name in names if not name.startswith(".")):
                if not path.is_file():
                    continue
                size += path.stat().st_size
                if size > MOST_BYTES:
                    raise SparringError(f"{folder} holds more than {MOST_BYTES >> 20} MiB: that is no bot folder")
                files[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError as error:
        raise SparringError(f"cannot read {error.filename}: {error.strerror}") from error
    return files


def _raise(error: OSError) -> None:
    raise error


def _zip_files(path: Path) -> dict[str, bytes]:
    """Every file of a zip by its name. Nothing is unpacked before all names and sizes are known to be harmless."""
    files: dict[str, bytes] = {}
    try:
        packed = path.read_bytes()
        if len(packed) > MOST_ZIP_BYTES:
            raise SparringError(f"{path} has {len(packed):,} bytes, and the judge takes at most {MOST_ZIP_BYTES:,}")
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > MOST_BYTES:
                raise SparringError(f"{path} unpacks to more than {MOST_BYTES >> 20} MiB: that is no bot")
            for entry in entries:
                name = PurePosixPath(entry.filename)
                if (
                    name.is_absolute()
                    or {"..", "."} & set(entry.filename.split("/"))
                    or set("\\:\0") & {*entry.filename}
                ):
                    raise SparringError(
                        f"{path} would write outside its folder: it has a file named {entry.filename!r}"
                    )
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise SparringError(f"{path} has a link, {entry.filename}: put the file itself into the zip")
                if name.as_posix() in files:
                    raise SparringError(f"{path} has two files named {entry.filename}")
                if not any(part.startswith(".") for part in name.parts):
                    files[name.as_posix()] = archive.read(entry)
    except OSError as error:
        raise SparringError(f"cannot read {path}: {error.strerror or error}") from error
    except (
        zipfile.BadZipFile,
        RuntimeError,
        NotImplementedError,
        EOFError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
    ) as error:
        raise SparringError(f"{path} is no zip, or is damaged: {error}") from error
    if "bot.toml" not in files:
        raise SparringError(
            f"{path} has no bot.toml at its top, where the judge looks: zip the files, not their folder"
        )
    return files
