"""PEP 517 backend: scikit-build-core, and a C++ compiler from the `ziglang` wheel on a machine that has none.

On Windows the choice of compiler is left to CMake. Run as a program, it prints which compiler the build will use.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ != "__main__" or TYPE_CHECKING:  # the program below must also run where scikit-build-core is not installed
    from scikit_build_core import build as _build
    from scikit_build_core.build import (
        build_sdist,
        get_requires_for_build_sdist,
        prepare_metadata_for_build_editable,
        prepare_metadata_for_build_wheel,
    )

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, list[str] | str] | None

ZIG = "ziglang>=0.17,<0.18"
# The compiler drivers of Zig add two things that a plain compiler does not: code for this machine's processor only,
# and a sanitizer. Both would make the module differ from one built by GCC.
ZIG_FLAGS = ("-mcpu=baseline", "-fno-sanitize=undefined")
PROGRAM = """
#include <concepts>
#include <thread>
extern "C" int sparring_probe(int x) { std::thread([&x] { ++x; }).join(); return std::same_as<int, int> ? x : 0; }
"""


def compiles(command: list[str]) -> bool:
    """Whether `command` turns a small C++20 program into a shared library."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROGRAM)
        arguments = ["-std=c++20", "-shared", "-fPIC", "-o", str(source.with_suffix(".so")), str(source)]
        try:
            return subprocess.run([*command, *arguments], capture_output=True, timeout=120).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False


def find_compiler() -> str | None:
    """The C++ compiler of this machine, or None. `CXX` decides alone when it is set."""
    chosen = os.environ.get("CXX")
    if chosen:
        if not compiles(shlex.split(chosen)):
            raise SystemExit(f"CXX={chosen} does not compile C++20: name another compiler, or unset CXX")
        return chosen
    for name in ("c++", "g++", "clang++"):
        path = shutil.which(name)
        if path and compiles([path]):
            return path
    return None


def needs_zig() -> bool:
    return os.name != "nt" and find_compiler() is None


def say(line: str) -> None:
    """Print a line now. Installers hold a backend's output back, so it also goes to the terminal where there is one."""
    print(line, flush=True)
    if not sys.stdout.isatty():
        with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:
            print(f"\n{line}", file=terminal)


def zig_message() -> str:
    return (
        "no C++ compiler found: using the ziglang wheel; its first use takes minutes because it builds its own runtime"
    )


@contextlib.contextmanager
def compiler(config_settings: Settings) -> Iterator[Settings]:
    """Within it CMake finds a C++ compiler; yields the settings to build with."""
    if os.name == "nt":
        yield config_settings
        return
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        raise SystemExit(f"{header} is missing: on Debian and Ubuntu, apt-get install python3-dev")
    found = find_compiler()
    if found:
        # Set it even so: left alone, scikit-build-core takes the compiler that once built this Python.
        os.environ["CXX"] = found
        yield config_settings
        return
    package = importlib.util.find_spec("ziglang")
    if package is None or package.origin is None:
        raise SystemExit(f"no C++ compiler found, and ziglang is not installed: pip install '{ZIG}', or install g++")
    zig = Path(package.origin).with_name("zig")
    say(zig_message())
    with tempfile.TemporaryDirectory(prefix="sparring-zig-") as folder:

        def wrapper(*command: str) -> str:
            path = Path(folder, command[0])
            path.write_text(f'#!/bin/sh\nexec {shlex.join([str(zig), *command])} "$@"\n')
            path.chmod(0o755)
            return str(path)

        os.environ["CXX"] = wrapper("c++", *ZIG_FLAGS)
        os.environ["CC"] = wrapper("cc", *ZIG_FLAGS)
        yield {
            **(config_settings or {}),
            "cmake.define.CMAKE_AR": wrapper("ar"),
            "cmake.define.CMAKE_RANLIB": wrapper("ranlib"),
        }


def _required(ask: Callable[[Settings], list[str]], config_settings: Settings) -> list[str]:
    return [*ask(config_settings), *([ZIG] if needs_zig() else [])]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return _required(_build.get_requires_for_build_wheel, config_settings)


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return _required(_build.get_requires_for_build_editable, config_settings)


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    with compiler(config_settings) as settings:
        return _build.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    with compiler(config_settings) as settings:
        return _build.build_editable(wheel_directory, settings, metadata_directory)


if __name__ == "__main__":
    print(zig_message() if needs_zig() else f"C++ compiler: {find_compiler() or 'left to CMake'}")
