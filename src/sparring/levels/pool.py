"""The pool: every map that training matches may start from, each once."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sparring.cache import cache_folder
from sparring.errors import SparringError
from sparring.files import written_beside
from sparring.levels.generator import DEFAULT_COUNT, generate_map, map_file_name
from sparring.levels.maps import LoongMap, map_hash, read_map, write_map
from sparring.levels.shipped import SHIPPED, shipped_folder
from sparring.levels.survey import map_files


@dataclass(frozen=True, kw_only=True)
class PoolMap:
    """A map of the pool.

    hash:   see `map_hash`; it stays the same whatever else is in the pool
    source: where it comes from, for people
    file:   the map as `write_map` gives it
    """

    hash: str
    source: str
    file: bytes = field(repr=False)

    def read(self) -> LoongMap:
        return read_map(self.file)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A map that was left out, and why."""

    source: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class MapPool(Sequence[PoolMap]):
    """The maps: the generated ones in order, then each folder's in order of name; and those left out."""

    maps: tuple[PoolMap, ...]
    refused: tuple[Refused, ...] = ()

    def __len__(self) -> int:
        return len(self.maps)

    def __getitem__(self, index: int) -> PoolMap:  # type: ignore[override]  # a slice of it is self.maps[a:b]
        return self.maps[index]

    @property
    def hash(self) -> str:
        """64 hexadecimal digits that tell this pool from others, order included."""
        return hashlib.sha256("".join(each.hash for each in self.maps).encode()).hexdigest()


def build_pool(
    *,
    generated: int = DEFAULT_COUNT,
    seed: int = 0,
    folders: Sequence[Path] = (),
    exclude_shipped: bool = True,
    cache: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> MapPool:
    """Collects a pool.

    generated:       how many maps to generate (about 50 a second), 0 or more
    seed:            of the generator
    folders:         folders or files of a user's own maps
    exclude_shipped: leave out the maps that ship with the judge, so that they can tell how well training carries over
    cache:           a folder that keeps generated maps for the next time
    progress:        called with the number of maps generated so far

    A map that is there already is left out, too. Raises MapError for a map that the judge refuses, SparringError where
    a path is not there or nothing is left.
    """
    if generated < 0:
        raise SparringError(f"generated = {generated}: give 0 or more")
    kept: dict[str, PoolMap] = {}
    refused: list[Refused] = []
    for each in [*_generated(generated, seed, cache, progress), *_own(folders)]:
        if exclude_shipped and each.hash in SHIPPED:
            refused.append(
                Refused(source=each.source, reason=f"it is {SHIPPED[each.hash]}, which ships with the judge")
            )
        elif each.hash in kept:
            refused.append(Refused(source=each.source, reason=f"the same map as {kept[each.hash].source}"))
        else:
            kept[each.hash] = each
    if not kept:
        raise SparringError(
            "the pool is empty: generate maps, or name a folder with maps that do not ship with the judge"
        )
    return MapPool(maps=tuple(kept.values()), refused=tuple(refused))


def named_maps(
    maps: str | Path | Sequence[str | Path] | MapPool, *, progress: Callable[[int], None] | None = None
) -> MapPool:
    """The maps that `maps` names, each once, shipped ones included.

    maps:     "generated:SEED:COUNT" (made once, then kept in the cache folder), "shipped" (those of the installed
              judge), a folder, a map file, a list of these two, or a pool
    progress: is called with the number of maps generated so far, unless they are in the cache folder

    Raises SparringError where it names nothing, MapError for a map that the judge refuses.
    """
    if isinstance(maps, MapPool):
        return maps
    if isinstance(maps, str) and maps.startswith("generated"):
        _, *numbers = maps.split(":")
        if len(numbers) != 2 or not all(each.isdecimal() and each.isascii() for each in numbers) or int(numbers[1]) < 1:
            raise SparringError(f"maps {maps}: write generated:SEED:COUNT with numbers, such as generated:7:40")
        seed, count = (int(number) for number in numbers)
        cache = cache_folder() / "maps"
        return build_pool(seed=seed, generated=count, exclude_shipped=False, cache=cache, progress=progress)
    paths = [maps] if isinstance(maps, str | Path) else list(maps)
    folders = [shipped_folder() if path == "shipped" else Path(path) for path in paths]
    missing = [path for path in folders if not path.exists()]
    if missing or not folders:
        raise SparringError(
            f"no map {missing[0] if missing else 'in an empty list'}: "
            'give "generated:SEED:COUNT", "shipped", a folder, or a list of folders and map files'
        )
    return build_pool(generated=0, folders=folders, exclude_shipped=False)


def generator_hash() -> str:
    """12 hexadecimal digits of the generator's code: caches of another generator are not read."""
    code = b"".join(
        Path(__file__).with_name(f"{part}.py").read_bytes() for part in ("draws", "kelp", "generator", "maps")
    )
    return hashlib.sha256(code).hexdigest()[:12]


def _own(folders: Sequence[Path]) -> Iterator[PoolMap]:
    for path in map_files(folders) if folders else []:
        loong_map = read_map(path)
        yield PoolMap(hash=map_hash(loong_map), source=str(path), file=write_map(loong_map))


def _generated(
    count: int, seed: int, cache: Path | None, progress: Callable[[int], None] | None
) -> tuple[PoolMap, ...]:
    path = cache / f"maps-{seed}-{count}-{generator_hash()}.zip" if cache else None
    if path and path.exists():
        return _load(path)
    found = []
    for index in range(count):
        loong_map = generate_map(seed, index)
        source = f"generated {map_file_name(seed, index)}"
        found.append(PoolMap(hash=map_hash(loong_map), source=source, file=write_map(loong_map)))
        if progress:
            progress(index + 1)
    if path:
        with suppress(SparringError):  # where they cannot be kept, they are made every time
            _keep(found, path)
    return tuple(found)


def _keep(found: Sequence[PoolMap], path: Path) -> None:
    with written_beside(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in found:
            entry = zipfile.ZipInfo(each.source)
            entry.comment, entry.compress_type = each.hash.encode(), zipfile.ZIP_DEFLATED
            archive.writestr(entry, each.file)


def _load(path: Path) -> tuple[PoolMap, ...]:
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(
                PoolMap(hash=entry.comment.decode(), source=entry.filename, file=archive.read(entry))
                for entry in archive.infolist()
            )
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, zlib.error) as error:
        raise SparringError(f"cannot read the cached maps {path}: {error}; remove the file") from error
