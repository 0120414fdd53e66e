"""Pictures: the court is drawn where the game says it is, rallies play in real time, curves average right."""

from __future__ import annotations

import errno
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageColor
from rich.console import Console
from torch import Tensor

from sparring.errors import SparringError
from sparring.files import written_beside
from sparring.learn.matches import MatchRow
from sparring.pictures import animation, court, rally
from sparring.pictures.animation import rally_frames, write_rally
from sparring.pictures.court import CourtFrame, draw_court, pixel, racket_corners
from sparring.pictures.curve import average_of_last, draw_curve, solved_at
from sparring.pictures.play import play
from sparring.pictures.rally import Rally, record_rally
from sparring.pictures.terminal import court_text, show_live

REST = -1.852
NO_TRAIL = np.zeros((0, 2), dtype=np.float32)
HEADER_ROWS = 70


def bodies(ball: tuple[float, float], a: tuple[float, float], b: tuple[float, float]) -> NDArray[np.float32]:
    return np.array([*ball, *a, *b], dtype=np.float32)


def frame(ball: tuple[float, float] = (3.0, 2.0), trail: NDArray[np.float32] = NO_TRAIL) -> CourtFrame:
    return CourtFrame(bodies=bodies(ball, (-6.0, REST), (8.0, 0.5)), trail=trail)


def colour_at(image: NDArray[np.uint8], x: float, y: float) -> tuple[int, ...]:
    column, row = pixel(x, y)
    return tuple(image[int(row), int(column)].tolist())


def mask(image: NDArray[np.uint8], colour: str | tuple[int, ...]) -> NDArray[np.bool_]:
    """Pixels near a colour."""
    wanted = ImageColor.getrgb(colour) if isinstance(colour, str) else colour
    return np.abs(image.astype(int) - np.array(wanted[:3])).max(axis=2) < 40


class Constant:
    """A player that always gives the same answer."""

    def __init__(self, run: float, jump: float = -1.0) -> None:
        self.answer = torch.tensor([run, jump])

    def act(self, observations: Tensor) -> Tensor:
        return self.answer.expand(len(observations), 2)


AWAY = Constant(-1.0)
"""Both rackets flee to their walls, so that every serve falls on the floor."""


def drawn_rally(decisions: int, ended: str = "done") -> Rally:
    """A rally of the given length that no game was asked for: the ball swings to and fro over the net."""
    time = np.arange(5 * decisions + 1) / 50
    ball = np.stack([8 * np.cos(1.6 * time), 3 + 2 * np.sin(5 * time)])
    rackets = [-6 + 3 * np.sin(7 * time), REST + 0 * time, 6 + 3 * np.sin(6 * time), REST + 0 * time]
    scores = np.stack([0.1 * (np.arange(decisions + 1) // 20), 0.1 * (np.arange(decisions + 1) // 30)], axis=1)
    return Rally(
        bodies=np.stack([*ball, *rackets], axis=1).astype(np.float32), scores=scores, ended=ended, names=("one", "two")
    )


# The court


def test_the_ball_is_drawn_where_it_is_and_nowhere_else() -> None:
    image = draw_court(frame(ball=(3.0, 2.0)))
    assert image.shape == (360, 640, 3)
    assert image.dtype == np.uint8
    ball, air = ImageColor.getrgb(court.BALL_COLOUR), ImageColor.getrgb(court.AIR_COLOUR)
    for dx, dy in ((0, 0), (0.42, 0), (-0.42, 0), (0, 0.42), (0, -0.42)):
        assert colour_at(image, 3.0 + dx, 2.0 + dy) == ball
    for dx, dy in ((0.56, 0), (-0.56, 0), (0, 0.56), (0, -0.56), (0.42, 0.42), (-0.42, -0.42)):
        assert colour_at(image, 3.0 + dx, 2.0 + dy) == air


def test_net_floors_and_walls_stand_where_the_game_has_them() -> None:
    image = draw_court(frame())
    air = ImageColor.getrgb(court.AIR_COLOUR)
    edges = (  # a point just inside each thing, one just outside, its colour
        ((0.0, -1.06), (0.0, -0.94), court.NET_COLOUR),
        ((-1.0, -3.31), (-1.0, -3.19), court.FLOOR_A_COLOUR),
        ((1.0, -3.31), (1.0, -3.19), court.FLOOR_B_COLOUR),
        ((-12.33, 3.0), (-12.20, 3.0), court.WALL_COLOUR),
        ((12.33, 3.0), (12.20, 3.0), court.WALL_COLOUR),
    )
    for inside, outside, colour in edges:
        assert colour_at(image, *inside) == ImageColor.getrgb(colour)
        assert colour_at(image, *outside) == air


@pytest.mark.parametrize("side", [1, -1])
def test_rackets_are_the_colliders_of_the_game(side: int) -> None:
    corners = racket_corners(side * -6.0, REST, side)
    centre, half = corners.mean(axis=0), np.ptp(corners, axis=0) / 2
    np.testing.assert_allclose(centre - [side * -6.0, REST], [side * -0.2868, -0.4096], atol=1e-4)
    np.testing.assert_allclose(half, [1.083, 0.988], atol=1e-3)
    assert corners[:, 1].min() == pytest.approx(-3.25, abs=1e-3), "a racket at rest stands on the floor"
    face = corners[:2].mean(axis=0) - centre
    np.testing.assert_allclose(face / np.linalg.norm(face), [side * 0.5736, 0.8192], atol=1e-4)


def test_mirrored_positions_give_mirrored_images() -> None:
    one = draw_court(CourtFrame(bodies=bodies((3.0, 2.0), (-6.0, REST), (8.0, 0.5)), trail=NO_TRAIL))
    other = draw_court(CourtFrame(bodies=bodies((-3.0, 2.0), (-8.0, 0.5), (6.0, REST)), trail=NO_TRAIL))
    one, other = one[HEADER_ROWS:], other[HEADER_ROWS:, ::-1]
    a, b = (court.blend(court.AIR_COLOUR, colour, 0.6) for colour in (court.A_COLOUR, court.B_COLOUR))
    for here, there in ((court.BALL_COLOUR, court.BALL_COLOUR), (a, b), (b, a)):
        first, second = mask(one, here), mask(other, there)
        assert first.sum() > 300
        assert (first != second).sum() < 0.06 * first.sum(), "only softened edges may differ"


def test_the_trail_fades_with_age() -> None:
    trail = np.array([[-4.0, 2.0], [-2.0, 2.0], [0.5, 2.0]], dtype=np.float32)
    image = draw_court(frame(trail=trail))
    air = ImageColor.getrgb(court.AIR_COLOUR)
    brightness = [sum(colour_at(image, x, y)) for x, y in trail.tolist()]
    assert sum(air) < brightness[0] < brightness[1] < brightness[2] < sum(ImageColor.getrgb(court.BALL_COLOUR))
    assert all(colour_at(draw_court(frame()), x, y) == air for x, y in trail.tolist())


def test_the_header_tells_the_score_and_long_names_stay_on_their_side() -> None:
    plain = draw_court(frame())
    scored = draw_court(replace(frame(), score=(0.3, -0.01)))
    assert (plain[HEADER_ROWS:] == scored[HEADER_ROWS:]).all()
    changed = np.flatnonzero((plain != scored).any(axis=(0, 2)))
    assert changed.min() < 100
    assert changed.max() > 540
    named = draw_court(replace(frame(), names=("a very long name " * 9, "another very long name " * 9)))
    assert (named != plain).any()
    assert (named[:, 230:410] == plain[:, 230:410]).all(), "the counters in the middle stay free"


def test_a_ball_above_the_picture_is_no_error() -> None:
    assert not mask(draw_court(frame(ball=(3.0, 20.0))), court.BALL_COLOUR).any()


# A rally


def test_a_serve_nobody_plays_falls_on_the_floor_of_the_side_it_was_served_to() -> None:
    untouched = record_rally(AWAY, seed=0)
    assert abs(untouched.bodies[0, 0]) == pytest.approx(6.83172, abs=1e-4)
    assert untouched.bodies[0, 1] == pytest.approx(6.0)
    assert untouched.decisions in (14, 15)
    assert untouched.last_step in (72, 73)
    steps = np.diff(untouched.bodies[:, :2], axis=0)
    assert np.hypot(*steps.T).max() < 0.2, "the next serve is not part of this rally"
    assert untouched.bodies[-1, 1] == pytest.approx(-2.75, abs=0.3)
    side = "A" if untouched.bodies[0, 0] < 0 else "B"
    assert untouched.ended == f"ball on {side}'s floor, charged to {side}"
    np.testing.assert_allclose(untouched.scores[-1], [-0.01, 0] if side == "A" else [0, -0.01], atol=1e-6)


def test_the_policy_plays_a_and_the_opponent_plays_b() -> None:
    alone = record_rally(Constant(0.9), seed=0, max_decisions=10)
    against = record_rally(Constant(0.9), opponent=AWAY, seed=0, max_decisions=10)
    assert alone.names == ("policy", "policy")
    assert against.names == ("policy", "opponent")
    assert alone.ended == against.ended == "stopped after 10 decisions"
    assert alone.bodies[-1, [2, 4]] == pytest.approx([-1, 1], abs=0.7)
    assert against.bodies[-1, [2, 4]] == pytest.approx([-1, 10.9], abs=0.7)


@pytest.mark.parametrize(
    ("ball", "paid", "ended"),
    [
        ((-3.0, -2.6), (-0.01, 0.0), "ball on A's floor, charged to A"),
        ((3.0, -2.6), (0.0, 0.09), "ball on B's floor, charged to B"),
        ((-11.68, 3.1), (0.09, 0.0), "ball on A's wall, charged to A"),
        ((11.68, 3.1), (-0.01, 0.0), "ball on B's wall, charged to A"),
        ((-0.65, -1.5), (0.0, -0.01), "ball in the net, charged to B"),
        ((0.05, -0.4), (-0.01, 0.0), "ball in the net, charged to A"),
    ],
)
def test_the_end_names_what_was_touched_and_whom_it_cost(
    ball: tuple[float, float], paid: tuple[float, float], ended: str
) -> None:
    assert rally._why_ended(*ball, np.array(paid)) == ended


def test_a_rally_is_recorded_to_its_end_in_whichever_step_that_falls() -> None:
    class Restless:
        def __init__(self, seed: int) -> None:
            self.generator = np.random.default_rng(seed)

        def act(self, observations: Tensor) -> NDArray[np.float64]:
            return self.generator.uniform(-1, 1, (len(observations), 2))

    last_steps, touched = set(), set()
    for seed in range(60):
        recorded = record_rally(Restless(seed), seed=seed)
        last_steps.add(recorded.last_step - 5 * (recorded.decisions - 1))
        touched.add(recorded.ended.split(",")[0])
        jumps = np.hypot(*np.diff(recorded.bodies[:, :2], axis=0).T)
        assert jumps.max() < 2
        x, y = (recorded.bodies[-2, :2]).tolist()
        at_floor, at_wall, at_net = y <= -2.73, abs(x) >= 11.75, abs(x) <= 0.57 and y <= -0.48
        assert at_floor + at_wall + at_net == 1
        place = "floor" if at_floor else "wall" if at_wall else "in the net"
        assert place in recorded.ended
        assert recorded.scores[-1, "AB".index(recorded.ended[-1])] % 0.1 == pytest.approx(0.09, abs=1e-5)
    assert last_steps == {1, 2, 3, 4, 5}
    assert len(touched) >= 4


def test_the_time_limit_is_told_from_a_lost_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(actions: Tensor) -> SimpleNamespace:
        played.append(actions)
        ended = [0] if len(played) == 3 else []
        return SimpleNamespace(
            agent=torch.tensor([0, 1]),
            reward=torch.tensor([0.1, 0.0]),
            ended=torch.tensor(ended),
            truncated=torch.tensor([True] * len(ended)),
        )

    played: list[Tensor] = []
    game = SimpleNamespace(
        courts=SimpleNamespace(bodies=np.zeros((1, 6)), trace=np.zeros((1, 5, 6))),
        decisions=lambda: SimpleNamespace(obs=torch.zeros(2, 24), agent=torch.tensor([0, 1])),
        act=act,
    )
    monkeypatch.setattr(rally, "Tennis", lambda **options: game)
    capped = record_rally(AWAY)
    assert capped.ended == "cut at decision 3, as in the 2018 binary"
    assert (capped.decisions, capped.last_step) == (3, 15)
    np.testing.assert_allclose(capped.scores[:, 1], [0, 0.1, 0.2, 0.3], atol=1e-6)


def test_scores_and_crossings_are_those_of_the_moment() -> None:
    shown = drawn_rally(40)
    assert shown.frame(0).score == (0.0, 0.0)
    assert shown.frame(99).score == (0.0, 0.0)
    assert shown.frame(100).score == (0.1, 0.0)
    assert shown.frame(200).score == (0.2, 0.1)
    assert shown.frame(200).caption == "done"
    assert shown.frame(199).caption == ""
    crossings = [step for step in range(1, 201) if shown.bodies[step, 0] * shown.bodies[step - 1, 0] < 0]
    assert [shown.crossings(step) for step in (crossings[0] - 1, crossings[0], 200)] == [0, 1, len(crossings)]


def test_a_wrong_answer_is_one_clear_line() -> None:
    class Wrong:
        def act(self, observations: Tensor) -> Tensor:
            return torch.zeros(len(observations), 3)

    with pytest.raises(SparringError, match=r"Wrong\.act returned shape \(2, 3\) for 2 observations.*\(2, 2\)"):
        record_rally(Wrong())


# Files


def durations(path: Path) -> list[int]:
    with Image.open(path) as picture:
        found = []
        for index in range(picture.n_frames):
            picture.seek(index)
            found.append(picture.info["duration"])
        return found


@pytest.mark.parametrize(("fps", "stride"), [(25, 2), (50, 1), (10, 5), (20, 2)])
def test_a_gif_plays_in_real_time_whatever_the_frame_rate(fps: int, stride: int, tmp_path: Path) -> None:
    shown = drawn_rally(6)
    write_rally(shown, tmp_path / "rally.gif", fps=fps)
    assert durations(tmp_path / "rally.gif") == [20 * stride] * -(-30 // stride) + [1500]
    with Image.open(tmp_path / "rally.gif") as picture:
        assert picture.size == (640, 360)
        assert picture.info["loop"] == 0
        for index, drawn in enumerate(rally_frames(shown, fps=fps)):
            picture.seek(index)
            assert np.abs(np.asarray(picture.convert("RGB")).astype(int) - drawn).max() < 40


def test_a_long_rally_is_cut_and_the_picture_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[CourtFrame] = []
    monkeypatch.setattr(animation, "draw_court", lambda frame: shown.append(frame) or draw_court(frame))
    write_rally(drawn_rally(1001), tmp_path / "rally.gif", fps=25, seconds=2)
    assert len(shown) == len(durations(tmp_path / "rally.gif")) == 51
    assert shown[-1].seconds == 2
    assert shown[-1].caption == "first 2 s of 100.1 s  ·  it ended 5.00 : 3.30"
    assert {frame.caption for frame in shown[:-1]} == {""}


def test_the_default_cut_of_a_capped_rally_is_a_small_file(tmp_path: Path) -> None:
    write_rally(drawn_rally(1001), tmp_path / "rally.gif")
    assert sum(durations(tmp_path / "rally.gif")[:-1]) == 20_000
    assert (tmp_path / "rally.gif").stat().st_size < 3_000_000


def test_play_writes_and_reports(tmp_path: Path) -> None:
    result = play(AWAY, out=tmp_path / "deep" / "rally.gif", seed=0)
    assert result.path == tmp_path / "deep" / "rally.gif"
    assert [entry.name for entry in result.path.parent.iterdir()] == ["rally.gif"]
    assert sorted([result.score_a, result.score_b]) == pytest.approx([-0.01, 0.0])
    assert (result.best, result.crossings) == (0.0, 0)
    assert str(result).endswith(f"ended: {result.ended}")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"out": Path("rally.png")}, r"\.gif or \.mp4, not as 'rally\.png'; try rally\.gif"),
        ({"fps": 0}, r"fps = 0 is out of range: allowed is 1 to 50"),
        ({"seconds": 0.0}, r"seconds = 0 is out of range"),
        ({"speed": 0.0}, r"speed = 0 is out of range"),
        ({"max_decisions": 1002}, r"max_decisions = 1002 is out of range: allowed is 1 to 1001"),
        ({"velocity": "fast"}, r"velocity"),
    ],
)
def test_wrong_options_are_one_clear_line(options: dict[str, object], line: str) -> None:
    with pytest.raises(SparringError, match=line):
        play(AWAY, **options)  # type: ignore[arg-type]


def fake_ffmpeg(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / "ffmpeg").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for ffmpeg is a shell script")
def test_mp4_goes_through_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ffmpeg(tmp_path / "bin", 'for last; do :; done; echo "$@" > "$0.said"; cat > "$last"', monkeypatch)
    write_rally(drawn_rally(4), tmp_path / "rally.mp4", fps=25)
    frames, pause = 11, round(1.5 * 25)
    assert (tmp_path / "rally.mp4").stat().st_size == (frames + pause) * 640 * 360 * 3
    assert "-s 640x360 -r 25 -i - " in (tmp_path / "bin" / "ffmpeg.said").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for ffmpeg is a shell script")
def test_a_failing_ffmpeg_is_one_clear_line_and_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ffmpeg(tmp_path / "bin", "echo 'Unknown encoder' >&2; exit 1", monkeypatch)
    (tmp_path / "rally.mp4").write_text("old")
    with pytest.raises(SparringError, match=r"ffmpeg could not write it \(Unknown encoder\); write a \.gif"):
        write_rally(drawn_rally(4), tmp_path / "rally.mp4")
    assert (tmp_path / "rally.mp4").read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.is_file()) == ["rally.mp4"]


def test_without_ffmpeg_the_error_suggests_a_gif(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparringError, match=r"rally\.mp4 needs ffmpeg.*install it or write rally\.gif"):
        play(AWAY, out=tmp_path / "rally.mp4")


def test_a_full_disk_is_one_clear_line_and_keeps_the_old_file(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        with written_beside(path) as beside:
            beside.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "curve.png"
    path.write_text("old")
    with pytest.raises(SparringError, match=r"cannot write .*curve\.png: No space left"):
        write(path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["curve.png"]


def test_a_folder_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SparringError, match=r"cannot write .*rally\.gif"):
        play(AWAY, out=tmp_path / "file" / "rally.gif")


# The terminal


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, slowness: float = 1.0) -> None:
        self.now, self.slowness = 0.0, slowness

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds * self.slowness


def terminal(width: int = 80, height: int = 24) -> Console:
    return Console(file=StringIO(), force_terminal=True, width=width, height=height, legacy_windows=False)


def shown_live(console: Console, clock: Clock, steps_per_second: float = 50) -> list[int]:
    """The steps that were drawn of a rally of 10 decisions."""
    recorded, steps = drawn_rally(10), []

    def drawn(step: int) -> CourtFrame:
        steps.append(step)
        return recorded.frame(step)

    assert show_live(drawn, 50, console=console, steps_per_second=steps_per_second, clock=clock, sleep=clock.sleep)
    return steps


def test_the_terminal_shows_the_rally_in_real_time() -> None:
    console = terminal()
    steps = shown_live(console, Clock())
    assert steps[0] == 0
    assert steps[-1] == 50
    assert 24 <= len(steps) <= 28
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "A  one" in written
    assert "done" in written


def test_a_slow_terminal_and_a_fast_forward_skip_pictures() -> None:
    assert len(shown_live(terminal(), Clock(slowness=5))) <= 7
    assert len(shown_live(terminal(), Clock(), steps_per_second=250)) <= 7


def test_ctrl_c_ends_the_showing() -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    recorded = drawn_rally(10)
    assert show_live(recorded.frame, 50, console=terminal(), steps_per_second=50, clock=Clock(), sleep=interrupted)


@pytest.mark.parametrize(
    "console",
    [
        Console(file=StringIO(), force_terminal=False, width=80, height=24),
        terminal(width=39),
        terminal(height=13),
    ],
)
def test_where_no_court_can_be_shown_one_line_of_text_tells_the_rally(console: Console) -> None:
    console.width = 200 if not console.is_terminal else console.width
    result = play(AWAY, terminal=True, console=console)
    assert " ".join(console.file.getvalue().split()) == str(result)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 14), (200, 60), (200, 16)])
def test_the_court_fits_the_terminal(width: int, height: int) -> None:
    lines = court_text(drawn_rally(4).frame(20), width, height).plain.split("\n")
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert {len(line) for line in lines} == {len(lines[0])}


def test_the_terminal_draws_the_ball_in_its_place() -> None:
    def balls(x: float) -> tuple[float, int]:
        text = court_text(frame(ball=(x, 3.0)), 80, 24)
        width = len(text.plain.split("\n")[0]) + 1
        spots = [span.start % width for span in text.spans if span.style == court.BALL_COLOUR]
        return sum(spots) / len(spots) / (width - 1) - 0.5, len(spots)

    left, right = balls(-6.0), balls(6.0)
    assert left[0] == pytest.approx(-6.0 / 25.14, abs=0.02)
    assert right[0] == pytest.approx(6.0 / 25.14, abs=0.02)
    assert 2 <= left[1] <= 12


# The curve


def rows(scores: NDArray[np.float64]) -> list[MatchRow]:
    return [
        MatchRow(
            match=index, lane=0, length=15, score=(score, score - 0.1), truncated=False, at=15 * index + 15, updates=0
        )
        for index, score in enumerate(scores.tolist())
    ]


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 357])
def test_averages_equal_a_slow_reference(count: int) -> None:
    scores = np.random.default_rng(count).normal(0.5, 1.0, count)
    slow = [sum(scores[max(0, end - 100) : end]) / min(end, 100) for end in range(1, count + 1)]
    np.testing.assert_allclose(average_of_last(scores), slow, atol=1e-12)


def test_solved_needs_a_hundred_rallies_and_exactly_the_average() -> None:
    assert solved_at(np.full(99, 2.0), 0.5) is None
    assert solved_at(np.full(100, 2.0), 0.5) == 99
    just = np.concatenate([np.full(1000, 0.1), np.tile([0.3, 0.7], 50), np.zeros(100)])
    assert solved_at(just, 0.5) == 1099, "rounding must not hide it"
    assert solved_at(np.full(300, 0.499), 0.5) is None
    late = np.concatenate([np.zeros(500), np.ones(200)])
    assert solved_at(late, 0.5) == 549
    assert solved_at([], 0.5) is None


def green(path: Path) -> int:
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert picture.size == (1080, 624)
        image = np.asarray(picture.convert("RGB"))
    return int(mask(image, "#15803d").sum())


@pytest.mark.parametrize(
    "scores",
    [
        np.zeros(0),
        np.zeros(1),
        np.full(40, 0.1),
        np.full(400, 0.5),
        np.full(400, -0.01),
        np.linspace(0, 2.6, 3000),
    ],
    ids=["none", "one", "sparse", "constant", "negative", "many"],
)
def test_any_run_gives_a_picture(scores: NDArray[np.float64], tmp_path: Path) -> None:
    draw_curve({"run": rows(scores)}, tmp_path / "curve.png")
    assert green(tmp_path / "curve.png") > 500, "the line to reach is always there"
    assert [entry.name for entry in tmp_path.iterdir()] == ["curve.png"]


def test_the_solved_mark_is_there_when_it_was_solved_and_only_then(tmp_path: Path) -> None:
    draw_curve({"run": rows(np.linspace(0.0, 0.9, 600))}, tmp_path / "solved.png")
    draw_curve({"run": rows(np.linspace(0.0, 0.9, 600))}, tmp_path / "not.png", solved=0.9)
    assert green(tmp_path / "solved.png") > green(tmp_path / "not.png") + 500


def test_runs_and_seeds_are_compared_in_one_picture(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    series = {
        f"fast-{seed}": rows(np.linspace(0, 1.5, 300 + 40 * seed) + generator.normal(0, 0.1)) for seed in range(4)
    }
    series |= {f"slow-{seed}": rows(np.linspace(0, 0.3, 500)) for seed in range(3)}
    series |= {"new": rows(np.zeros(20)), "empty": []}
    groups = {name: name.partition("-")[0] for name in series}
    draw_curve(series, tmp_path / "grouped.png", groups=groups, title="Two recipes")
    draw_curve(series, tmp_path / "alone.png")
    draw_curve({"a": [], "b": []}, tmp_path / "empty.png")
    assert green(tmp_path / "grouped.png") > 500
    assert (tmp_path / "grouped.png").read_bytes() != (tmp_path / "alone.png").read_bytes()


def test_the_curve_needs_no_display_and_touches_no_global_figures() -> None:
    code = "import sys, sparring.pictures.curve; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
