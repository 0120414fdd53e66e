"""Generated maps: a function of seed and index, fair, playable, varied; and the pool made of them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from judge_maps import judge_says

from sparring.cli import main
from sparring.errors import SparringError
from sparring.levels import generator, pool
from sparring.levels.draws import Draws
from sparring.levels.generator import (
    BANDS,
    FLAGSHIP,
    LEAST_BEDS,
    LEAST_PEARLS,
    PALETTE_WEIGHTS,
    PEARL_DENSITY,
    SYMMETRIES,
    generate_map,
    generate_maps,
    map_file_name,
)
from sparring.levels.kelp import STYLES
from sparring.levels.maps import LoongMap, MapError, map_hash, pearls_in_match, read_map, write_map
from sparring.levels.pool import MapPool, Refused, build_pool
from sparring.levels.shipped import shipped_folder
from sparring.levels.survey import map_facts, map_notes

SAMPLE = 96


@pytest.fixture(scope="module")
def sample() -> list[LoongMap]:
    return [generate_map(11, index) for index in range(SAMPLE)]


def test_a_map_depends_on_its_seed_and_index_alone(sample: list[LoongMap]) -> None:
    for index in (95, 3, 40):
        assert write_map(generate_map(11, index)) == write_map(sample[index])
    assert write_map(generate_map(12, 3)) != write_map(sample[3])
    assert len({map_hash(each) for each in sample}) == SAMPLE
    generate_map(2**64 - 1, 2**32 - 1)
    for seed, index in ((-1, 0), (2**64, 0), (0, -1), (0, 2**32)):
        with pytest.raises(SparringError, match=f"no map {index} of seed {seed}"):
            generate_map(seed, index)


def test_pools_made_before_are_made_again() -> None:
    """These change only with a changed generator; runs that began with another pool then start a new one."""
    known = {(7, 0): "9cb50f8123cd7e99", (7, 4095): "027cf8c93a2190a1", (2**64 - 1, 5): "55f00ddc8e679cef"}
    assert {key: map_hash(generate_map(*key))[:16] for key in known} == known


def test_every_map_loads_in_the_judge_and_reads_the_same(sample: list[LoongMap]) -> None:
    for loong_map in sample:
        file = write_map(loong_map)
        assert judge_says(file) is None, loong_map.name
        assert write_map(read_map(file)) == file


def test_every_map_is_fair_and_playable(sample: list[LoongMap]) -> None:
    for loong_map in sample:
        facts = map_facts(loong_map)
        assert map_notes(loong_map, facts) == (), loong_map.name  # mirror images, queens that meet, nobody shut in
        assert 7 <= min(facts.width, facts.height) <= max(facts.width, facts.height) <= 64
        assert facts.dragons[0] == facts.dragons[1] <= min(9, facts.unit_limit)
        assert min(len(dragon.body) for dragon in loong_map.dragons) >= 2
        assert facts.longest <= FLAGSHIP[1]
        assert facts.queens_apart is not None
        assert facts.queens_apart >= generator.LEAST_APART
        assert facts.beds * facts.width * facts.height >= LEAST_BEDS
        assert pearls_in_match(loong_map.gaps) >= LEAST_PEARLS
        assert PEARL_DENSITY[0] <= facts.pearls_per_100_tiles <= PEARL_DENSITY[1]


def test_a_pool_has_everything_in_it(sample: list[LoongMap]) -> None:
    facts = [map_facts(each) for each in sample]
    assert {each.name.split()[0] for each in sample} == set(STYLES)
    for low, high in BANDS:
        assert sum(low <= max(each.width, each.height) <= high for each in facts) > SAMPLE // 8
    assert {each.symmetry for each in facts} == set(SYMMETRIES)
    assert {0, 1, 2} < {each.portals for each in facts}
    assert max(each.portals for each in facts) > 6
    assert {1, 2, 3, 4} < {each.dragons[0] for each in facts}
    assert sum(each.longest >= FLAGSHIP[0] for each in facts) > SAMPLE // 12
    assert min(each.shortest_gap for each in facts) == 1
    assert any(each.shortest_gap == each.longest_gap == 1 or each.gap_ranges > 2 for each in facts)
    assert any(each.reach < 0.97 for each in facts)


def test_plans_come_as_often_as_the_tables_say() -> None:
    plans = [generator._plan(Draws(5, index)) for index in range(3000)]

    def share(count: int) -> float:
        return count / len(plans)

    tables: list[tuple[dict[object, int], Iterator[object]]] = [
        (dict(generator.STYLE_WEIGHTS), (plan.style for plan in plans)),
        (dict(SYMMETRIES), (plan.symmetry for plan in plans)),
        (dict(PALETTE_WEIGHTS), (plan.palettes for plan in plans)),
        (dict(generator.UNIT_LIMITS), (plan.unit_limit for plan in plans)),
    ]
    for weights, drawn in tables:
        counts = Counter(drawn)
        for option, weight in weights.items():
            wanted = weight / sum(weights.values())
            assert abs(share(counts[option]) - wanted) < 4 * (wanted * (1 - wanted) / len(plans)) ** 0.5, option
    assert all(sum(plan.lengths) <= max(2, plan.width * plan.height // 8) for plan in plans)
    assert {max(plan.lengths) for plan in plans} >= set(range(2, 26)) - {7}
    assert max(plan.portal_pairs for plan in plans) == 20


@pytest.mark.parametrize("style", STYLES)
def test_styles_fill_boards_of_every_shape(style: str) -> None:
    shares = []
    for number, (width, height) in enumerate(itertools.product((7, 8, 31, 64), (7, 13, 64))):
        kelp = STYLES[style](Draws(1, number), width, height)
        assert kelp.shape == (2, height, width)
        assert kelp.dtype == np.bool_
        shares.append(kelp.mean())
    least, most = {"open": (0, 0.2), "maze": (0.04, 0.5), "segments": (0.03, 0.32)}.get(style, (0.01, 0.5))
    assert least <= min(shares) <= max(shares) <= most


def test_draws_are_uniform_and_streams_apart() -> None:
    draws = Draws(3, 4)
    counts = Counter(draws.between(-2, 2) for _ in range(2000))
    assert set(counts) == set(range(-2, 3))
    assert max(abs(count - 400) for count in counts.values()) < 90
    assert sorted(draws.order(9).tolist()) == list(range(9))
    assert Draws(3, 4).integers(5, 1000).tolist() == Draws(3, 4).integers(5, 1000).tolist()
    assert Draws(3, 4).integers(5, 1000).tolist() != Draws(3, 5).integers(5, 1000).tolist()
    assert not any(Draws(1, 1).chance(0) for _ in range(50))
    assert all(Draws(1, index).chance(100) for index in range(50))


def test_generate_writes_the_same_files_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = {path.name: path.read_bytes() for path, _ in generate_maps(3, seed=11, out=tmp_path / "a")}
    assert list(first) == ["map-11-00000.map", "map-11-00001.map", "map-11-00002.map"]
    assert main(["maps", "generate", "--count", "2", "--seed", "11", "--out", str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path / "b"), "count": 2, "seed": 11}
    second = {path.name: path.read_bytes() for path in sorted((tmp_path / "b").iterdir())}
    assert second == {name: first[name] for name in list(first)[:2]}

    assert main(["maps", "generate", "--count", "2", "--seed", "11", "--out", str(tmp_path / "b")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"2 maps in {tmp_path / 'b'}"
    assert any("generated (2)" in line and "shipped (36)" in line for line in out)
    for arguments, told in (
        (["--count", "0"], "count = 0: a pool has 1 to 2^32 maps"),
        (["--seed", "-1"], "no map 0 of seed -1: a seed is below 2^64, an index below 2^32, neither negative"),
    ):
        assert main(["maps", "generate", "--out", str(tmp_path), *arguments]) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"sparring: {told}"


def test_a_pool_holds_each_map_once_and_no_shipped_one(tmp_path: Path, sample: list[LoongMap]) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "a.map").write_bytes(write_map(sample[5]))
    (own / "b.map").write_bytes(write_map(sample[50]))
    (own / "c.map").write_bytes(write_map(sample[50]).replace(b"MAP_NAME ", b"MAP_NAME another "))
    (own / "d.map").write_bytes((shipped_folder() / "arena.map").read_bytes())
    found = build_pool(generated=6, seed=11, folders=[own])
    assert [each.hash for each in found] == [map_hash(each) for each in [*sample[:6], sample[50]]]
    assert found[0].source == f"generated {map_file_name(11, 0)}"
    assert found[6].source == str(own / "b.map")
    assert write_map(found[6].read()) == write_map(sample[50])
    assert found.refused == (
        Refused(source=str(own / "a.map"), reason="the same map as generated map-11-00005.map"),
        Refused(source=str(own / "c.map"), reason=f"the same map as {own / 'b.map'}"),
        Refused(source=str(own / "d.map"), reason="it is arena, which ships with the judge"),
    )
    everything = build_pool(generated=0, folders=[own / "d.map"], exclude_shipped=False)
    assert [each.source for each in everything] == [str(own / "d.map")]
    assert found.hash == MapPool(maps=found.maps).hash != MapPool(maps=found.maps[::-1]).hash
    with pytest.raises(SparringError, match=r"^the pool is empty"):
        build_pool(generated=0, folders=[own / "d.map"])
    (own / "e.map").write_text("MAP 9 9\nTILES\n")
    with pytest.raises(MapError, match=rf"^{own / 'e.map'}:2: unknown map line: TILES$"):
        build_pool(generated=0, folders=[own])


def test_a_pool_is_kept_for_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    first = build_pool(generated=3, seed=11, cache=tmp_path, progress=made.append)
    assert made == [1, 2, 3]
    made.clear()
    assert build_pool(generated=3, seed=11, cache=tmp_path, progress=made.append) == first
    assert made == []
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(pool, "generator_hash", lambda: "another")
    assert build_pool(generated=3, seed=11, cache=tmp_path, progress=made.append) == first
    assert made == [1, 2, 3]
    monkeypatch.undo()
    file.write_bytes(b"cut off")
    with pytest.raises(SparringError, match=rf"^cannot read the cached maps {file}: .*; remove the file$"):
        build_pool(generated=3, seed=11, cache=tmp_path)


def test_a_pool_that_cannot_be_kept_is_made_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert build_pool(generated=1, seed=11, cache=tmp_path / "file" / "maps") == build_pool(generated=1, seed=11)
