"""Maps of Loong: read as the judge reads them, written so that they read the same, checked, shown."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from judge_maps import first_blocks, judge_says
from map_faults import FAULTS, changed
from PIL import Image
from rich.console import Console

from sparring.cli import main
from sparring.errors import SparringError
from sparring.levels.generator import generate_map
from sparring.levels.maps import (
    EAST,
    KELP,
    NORTH,
    OPEN,
    SOUTH,
    WEST,
    Dragon,
    Edge,
    LoongMap,
    MapError,
    distances,
    map_hash,
    pearls_in_match,
    read_map,
    write_map,
)
from sparring.levels.shipped import SHIPPED, shipped_folder, shipped_maps
from sparring.levels.survey import asymmetries, check_maps, map_facts, map_notes, statistics_table
from sparring.pictures.maps import print_map, show_map, show_sheet

SMALL = b"""MAP 8 7
SYMMETRY y
MAP_NAME Two bays
UNIT_LIMIT 9
TILE_COUNT 2
TILE 1 2 3 40
TILE 6 2 3 40
EDGE_COUNT 5
EDGE 0 1 0
EDGE 31 1 0
EDGE 38 2 7
EDGE 77 2 7
EDGE 110 1 0
DRAGON_COUNT 2
DRAGON 0 3 1 1 1 2 1 3
DRAGON 1 3 6 1 6 2 6 3
END
"""


def ours_says(file: bytes) -> str | None:
    try:
        read_map(file)
    except MapError as error:
        return error.official
    return None


@pytest.fixture(scope="module")
def shipped() -> dict[str, LoongMap]:
    return shipped_maps()


def with_beds(beds: dict[tuple[int, int], tuple[int, int]], **fields: object) -> LoongMap:
    """An open 9 x 8 map with gaps by column and row."""
    array = np.zeros((8, 9, 2), np.int32)
    for (x, y), gap in beds.items():
        array[y, x] = gap
    sides = [np.full((8, 9), OPEN, np.int32) for _ in range(2)]
    known = {"width": 9, "height": 8, "gaps": array, "horizontal": sides[0], "vertical": sides[1], "dragons": ()}
    return LoongMap(**{**known, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(("file", "text"), FAULTS.items(), ids=list(FAULTS.values()))
def test_every_fault_gets_the_judges_words(file: str, text: str) -> None:
    assert ours_says(file.encode()) == text
    assert judge_says(file.encode()) == text


def test_files_with_random_changes_get_the_judges_words() -> None:
    maps = [generate_map(3, index) for index in range(60)]
    files = [write_map(each) for each in maps if each.width * each.height <= 200 and each.portals][:10]
    said = set()
    for seed in range(500):
        file = changed(random.Random(seed).choice(files), seed)
        wanted = judge_says(file)
        assert ours_says(file) == wanted, (seed, file)
        said.add((wanted or "loads").split(":")[0][:16])
    assert len(said) > 35
    assert "loads" in said


@pytest.mark.parametrize("source", ["Colosseum", "portals", "thermopylae", "generated"])
def test_the_map_is_what_the_judge_shows_to_its_dragons(source: str) -> None:
    file = (
        write_map(generate_map(7, 11)) if source == "generated" else (shipped_folder() / f"{source}.map").read_bytes()
    )
    loong_map = read_map(file)
    width, height = loong_map.width, loong_map.height
    blocks = first_blocks(file)
    assert sorted(blocks) == list(range(len(loong_map.dragons)))
    sign = {OPEN: ".", KELP: "w"}
    for dragon, lines in blocks.items():
        head_x, head_y = loong_map.dragons[dragon].body[0].tolist()
        columns, rows = (
            [(head_x + step) % width for step in range(-3, 5)],
            [(head_y + step) % height for step in range(-3, 5)],
        )
        bodies = next(at for at, line in enumerate(lines) if line.startswith("DRAGON_BODIES"))
        for line in lines[bodies - 49 : bodies]:
            x, y, _, countdown = map(int, line.split())
            assert (countdown == -1) == (loong_map.gaps[y, x, 1] == 0)
            assert countdown <= loong_map.gaps[y, x, 1]
        shown = [line.split() for line in lines[-15:]]
        north = [[sign.get(value := int(loong_map.horizontal[y, x]), str(value)) for x in columns[:7]] for y in rows]
        west = [[sign.get(value := int(loong_map.vertical[y, x]), str(value)) for x in columns] for y in rows[:7]]
        assert shown == north + west


def test_shipped_maps_are_known_whole_and_mirror_images(shipped: dict[str, LoongMap]) -> None:
    assert sorted(SHIPPED.values()) == sorted(shipped)
    assert len(shipped) == 36
    for name, loong_map in shipped.items():
        assert SHIPPED[map_hash(loong_map)] == name
        assert not asymmetries(loong_map)
        written = write_map(loong_map)
        assert write_map(read_map(written)) == written
        assert map_hash(read_map(written)) == map_hash(loong_map)


def test_reading_and_writing_give_the_same_file_again() -> None:
    loong_map = read_map(SMALL)
    assert write_map(loong_map) == SMALL
    assert (loong_map.width, loong_map.height, loong_map.symmetry, loong_map.unit_limit) == (8, 7, "y", 9)
    assert loong_map.name == "Two bays"
    assert loong_map.gaps[2, 1].tolist() == loong_map.gaps[2, 6].tolist() == [3, 40]
    assert np.count_nonzero(loong_map.gaps) == 4
    assert loong_map.horizontal[0, 0] == loong_map.vertical[1, 4] == loong_map.horizontal[6, 2] == KELP
    assert loong_map.portals == {7: (Edge("horizontal", 2, 2), Edge("horizontal", 5, 4))}
    assert [dragon.team for dragon in loong_map.dragons] == [0, 1]
    assert loong_map.dragons[1].body.tolist() == [[6, 1], [6, 2], [6, 3]]
    with pytest.raises(ValueError, match="read-only"):
        loong_map.gaps[0, 0] = 1


def test_a_name_stays_on_its_line() -> None:
    assert b"\nMAP_NAME a b c\n" in write_map(with_beds({}, name=" a\nb \t c "))
    assert b"MAP_NAME" not in write_map(with_beds({}, name=" \n"))


def test_the_hash_sees_what_is_played_and_nothing_else() -> None:
    first = map_hash(read_map(SMALL))
    lines = SMALL.decode().splitlines()
    assert map_hash(read_map("\r\n".join([lines[0], *lines[:0:-1][1:]]).encode())) != first  # dragons in another order
    moved = [lines[0], lines[4], lines[6], lines[5], *lines[1:4], lines[7], *lines[12:7:-1], *lines[13:]]
    assert map_hash(read_map("\r\n".join(moved).encode())) == first
    for old, new, same in (
        ("Two bays", "x", True),
        (" 2 7", " 2 0", True),
        ("UNIT_LIMIT 9", "UNIT_LIMIT 8", False),
        ("3 40", "3 41", False),
        ("SYMMETRY y\n", "", False),
        ("EDGE 0 1 0", "EDGE 1 1 0", False),
        ("EDGE 0 1 0", "EDGE 0 0 0", False),
    ):
        assert (map_hash(read_map(SMALL.decode().replace(old, new).encode())) == first) == same, new
    two = "EDGE 1 2 {}\nEDGE 2 2 {}\nEDGE 3 2 {}\nEDGE 4 2 {}\n"
    crossed, nested = (
        read_map(f"MAP 9 9\nTILE_COUNT 0\nEDGE_COUNT 4\nDRAGON_COUNT 0\n{two.format(*ends)}".encode())
        for ends in ((1, 2, 1, 2), (1, 2, 2, 1))
    )
    assert map_hash(crossed) != map_hash(nested)


def test_neighbours_go_round_the_board_stop_at_kelp_and_pass_portals() -> None:
    horizontal, vertical = (np.full((8, 9), OPEN, np.int32) for _ in range(2))
    horizontal[3, 2], horizontal[6, 7] = 5, 5
    vertical[0, 0], vertical[4, 4] = 8, 8
    vertical[2, 6] = KELP
    loong_map = with_beds({}, horizontal=horizontal, vertical=vertical)

    def ahead(x: int, y: int, direction: int) -> tuple[int, int] | None:
        tile = int(loong_map.neighbours[direction, y * 9 + x])
        return None if tile < 0 else (tile % 9, tile // 9)

    assert ahead(4, 0, NORTH) == (4, 7)
    assert ahead(8, 5, EAST) == (0, 5)
    assert ahead(4, 7, SOUTH) == (4, 0)
    assert ahead(0, 5, WEST) == (8, 5)
    assert ahead(6, 2, WEST) is None
    assert ahead(5, 2, EAST) is None
    assert ahead(2, 3, NORTH) == (7, 5)
    assert ahead(2, 2, SOUTH) == (7, 6)
    assert ahead(7, 6, NORTH) == (2, 2)
    assert ahead(7, 5, SOUTH) == (2, 3)
    assert ahead(0, 0, WEST) == (3, 4)
    assert ahead(8, 0, EAST) == (4, 4)
    assert ahead(4, 4, WEST) == (8, 0)
    assert ahead(3, 4, EAST) == (0, 0)
    back = {NORTH: SOUTH, SOUTH: NORTH, EAST: WEST, WEST: EAST}
    for direction, row in enumerate(loong_map.neighbours.tolist()):
        assert all(loong_map.neighbours[back[direction], to] == tile for tile, to in enumerate(row) if to >= 0)


def test_distances_count_steps_round_what_is_blocked() -> None:
    neighbours = with_beds({}).neighbours
    assert distances(neighbours, 0).reshape(8, 9).max() == 4 + 4
    blocked = np.zeros(72, np.bool_)
    blocked[[1, 8, 9]] = True  # three of the four ways out of tile 0
    steps = distances(neighbours, 0, blocked)
    assert (steps[[0, 63, 1]].tolist(), int(steps[10])) == ([0, 1, -1], 6)


def test_expected_pearls_match_drawn_gaps() -> None:
    assert pearls_in_match(np.array([[1, 1], [500, 500], [501, 900], [0, 0]], np.int32)) == 501
    draws = np.random.default_rng(5)
    for least, most in ((1, 3), (8, 20), (1, 1000), (80, 500)):
        rounds = draws.integers(least, most + 1, size=(4000, 501)).cumsum(axis=1)
        mean, error = (rounds <= 500).sum(axis=1).mean(), (rounds <= 500).sum(axis=1).std() / 4000**0.5
        assert abs(pearls_in_match(np.array([[least, most]], np.int32)) - mean) < 4 * error + 1e-9


def test_what_is_no_mirror_image_is_named() -> None:
    kelp, portals = b"EDGE 7 1 0\nEDGE 113 1 0", b"EDGE 41 2 8\nEDGE 74 2 8"
    small = SMALL.replace(b"EDGE_COUNT 5", b"EDGE_COUNT 9").replace(b"EDGE 110", kelp + b"\n" + portals + b"\nEDGE 110")
    assert asymmetries(read_map(small)) == ()
    assert asymmetries(read_map(SMALL)) == ("kelp", "portals")
    assert asymmetries(read_map(small.replace(b"EDGE 113 1", b"EDGE 113 0"))) == ("kelp",)
    crossed = small.replace(b"EDGE 41 2 8", b"EDGE 41 2 7").replace(b"EDGE 38 2 7", b"EDGE 38 2 8")
    assert asymmetries(read_map(crossed)) == ()  # each then joins an edge and its own image
    crooked = small.replace(b"EDGE 74 2 8", b"EDGE 75 2 8")
    assert asymmetries(read_map(crooked)) == ("portals",)
    assert asymmetries(read_map(small.replace(b"6 2 6 3", b"6 2 5 2"))) == ("dragons",)
    alone = small.replace(b"DRAGON 1 3 6 1 6 2 6 3\n", b"").replace(b"DRAGON_COUNT 2", b"DRAGON_COUNT 1")
    assert asymmetries(read_map(alone)) == ("dragons",)


def test_arrays_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(SparringError, match=r"LoongMap.gaps is int32 \[8, 9\]: pass int32 \[8, 9, 2\]"):
        with_beds({}, gaps=np.zeros((8, 9), np.int32))
    with pytest.raises(SparringError, match=r"LoongMap.vertical is int64"):
        with_beds({}, vertical=np.zeros((8, 9), np.int64))


def test_errors_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.map"
    path.write_text("MAP 9 9\n\nTILE 1 1\n")
    with pytest.raises(MapError) as caught:
        read_map(path)
    assert str(caught.value) == f"{path}:3: TILE needs x y minGap maxGap: TILE 1 1"
    assert caught.value.official == "TILE needs x y minGap maxGap: TILE 1 1"
    path.write_text("MAP 9 9\n")
    with pytest.raises(MapError, match=rf"^{path}: TILE_COUNT is -1 but read 0$"):
        read_map(path)
    with pytest.raises(SparringError, match=f"^cannot read the map {tmp_path / 'no.map'}: No such file"):
        read_map(str(tmp_path / "no.map"))


def test_notes_tell_what_an_author_may_not_have_meant(shipped: dict[str, LoongMap]) -> None:
    def notes(loong_map: LoongMap) -> str:
        return "; ".join(map_notes(loong_map, map_facts(loong_map)))

    assert notes(generate_map(7, 0)) == ""
    assert notes(shipped["arena"]) == "it is arena, one of the maps shipped with the judge"
    crowd = tuple(
        Dragon(team, np.array([[x, y], [x, y + 1]], np.int32)) for x, team, y in ((0, 0, 0), (1, 1, 4), (4, 0, 0))
    )
    assert "a team starts with 2 dragons, more than UNIT_LIMIT 1" in notes(with_beds({}, dragons=crowd, unit_limit=1))
    assert "a team has no dragon" in notes(with_beds({}, dragons=crowd[:1]))
    knot = Dragon(0, np.array([[1, 1], [2, 1], [2, 2], [1, 2], [1, 1], [0, 1]], np.int32))
    assert "dragon 0 lies on a tile twice" in notes(with_beds({}, dragons=(knot,)))
    horizontal, vertical = (np.full((8, 9), OPEN, np.int32) for _ in range(2))
    horizontal[0, 0] = vertical[0, 0] = vertical[0, 1] = vertical[1, 0] = vertical[1, 1] = horizontal[2, 0] = KELP
    jail = with_beds({(0, 1): (1, 5)}, horizontal=horizontal, vertical=vertical, dragons=crowd[:2])
    told = notes(jail)
    assert "no way leads from one queen to the other" in told
    assert "dragon 0 is shut in" in told
    assert "kelp, dragons" not in told  # a map without a mirror has itself for an image
    assert "not mirror images of themselves: dragons" in told
    assert "out of both queens' reach" not in told
    assert "1 tiles with pearls are out" in notes(replace(jail, dragons=(crowd[1], crowd[2])))


def test_check_reads_folders_and_asks_the_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparring.levels.survey._LOADS_PER_PROCESS", 1)
    (tmp_path / "good.map").write_bytes(SMALL)
    (tmp_path / "bad.map").write_bytes(SMALL.replace(b"EDGE_COUNT 5", b"EDGE_COUNT 6"))
    (tmp_path / "other.txt").write_text("not a map")
    bad, good = check_maps([tmp_path], judge=True)
    assert (bad.path.name, bad.official, bad.hash) == ("bad.map", "EDGE_COUNT is 6 but read 5", None)
    assert bad.error == f"{tmp_path / 'bad.map'}: EDGE_COUNT is 6 but read 5"
    assert (good.path.name, good.error, good.hash) == ("good.map", None, map_hash(read_map(SMALL)))

    assert main(["maps", "check", str(tmp_path)]) == 2
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"refused: {bad.error}"
    assert out[1].startswith(f"{tmp_path / 'good.map'}: 8x7, mirror y, 1 against 1 dragons, map {good.hash:.12}")
    assert out[-1] == "2 maps, 1 refused"
    assert main(["maps", "check", "--json", str(tmp_path / "good.map")]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["hash"], report["facts"]["portals"], report["error"]) == (good.hash, 1, None)

    for arguments, told in (
        (["no.map"], "no map no.map: there is no such file or folder"),
        ([], "no map named: give a map file, or a folder with .map files"),
        ([str(Path(__file__).parent)], f"no .map files in {Path(__file__).parent}"),
    ):
        assert main(["maps", "check", *arguments]) == 2
        assert capsys.readouterr().err == f"sparring: {told}\n"


def test_a_judge_that_disagrees_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.map").write_bytes(SMALL)
    monkeypatch.setattr("sparring.levels.survey._judged", lambda files: ["portal 7 is haunted"])
    (report,) = check_maps([tmp_path], judge=True)
    assert report.error is not None
    assert report.error.startswith(f"{tmp_path / 'good.map'}: the judge says: portal 7 is haunted; Sparring's reader")


def test_show_draws_in_the_terminal_and_as_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "small.map", tmp_path / "new" / "small.png"
    path.write_bytes(SMALL)
    assert main(["maps", "show", str(path), "--out", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "Two bays  8x7, mirror y, 1 portal" in out
    assert out.splitlines()[-1] == f"picture: {picture}"
    with Image.open(picture) as image:
        assert image.format == "PNG"
        assert min(image.size) > 300
    assert main(["maps", "show", str(path), str(path), "--out", str(picture), "--columns", "1", "--quiet"]) == 0
    assert capsys.readouterr().out == f"picture: {picture}\n"
    with Image.open(picture) as image:
        assert image.height > image.width
    assert main(["maps", "show", str(path), "--out", "x.jpg", "--quiet"]) == 2
    assert capsys.readouterr().err == "sparring: cannot write x.jpg: the picture of a map is a .png\n"
    with pytest.raises(SparringError, match="101 maps for one sheet: it has room for 1 to 100"):
        show_sheet([path] * 101, out=picture)
    with pytest.raises(SparringError, match="columns = 0: a sheet has 1 or more"):
        show_sheet([path] * 2, out=picture, columns=0)
    assert show_map(path).name == "Two bays"


def test_consoles_without_colours_or_unicode_get_signs() -> None:
    class Latin(StringIO):
        encoding = "latin-1"

    plain, ascii_only = StringIO(), Latin()
    print_map(read_map(SMALL), Console(file=plain, width=80))
    print_map(read_map(SMALL), Console(file=ascii_only, width=80))
    assert plain.getvalue().count("\n") == ascii_only.getvalue().count("\n") == 16
    assert "─" in plain.getvalue()
    assert ascii_only.getvalue().isascii()
    assert "Q" in ascii_only.getvalue()


def test_the_table_counts_what_the_maps_are(shipped: dict[str, LoongMap]) -> None:
    facts = [map_facts(each) for each in shipped.values()]
    told = StringIO()
    Console(file=told, width=200).print(statistics_table({"shipped": facts, "small": [map_facts(read_map(SMALL))]}))
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:4]]
        for cells in (line.split("|") for line in told.getvalue().splitlines())
        if len(cells) > 3
    }
    assert rows["least, 10 %, median, 90 %, most"] == ["shipped (36)", "small (1)"]
    assert rows["longer side"] == ["11, 25, 48, 64, 64", "8, 8, 8, 8, 8"]
    assert rows["portal pairs"] == ["0, 0, 5, 16, 20", "1, 1, 1, 1, 1"]
    assert rows["longest dragon"] == ["2, 3, 4, 10, 25", "3, 3, 3, 3, 3"]
    assert rows["mirror xy"] == ["29", "0"]
    assert rows["queens sealed off"] == ["3", "0"]
