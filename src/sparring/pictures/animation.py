"""A rally as a file that plays: GIF, or MP4 through ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from sparring.errors import SparringError
from sparring.files import written_beside
from sparring.pictures.court import (
    A_COLOUR,
    AIR_COLOUR,
    B_COLOUR,
    BALL_COLOUR,
    FLOOR_A_COLOUR,
    FLOOR_B_COLOUR,
    HEADER_COLOUR,
    HEIGHT,
    MUTED_COLOUR,
    NET_COLOUR,
    TEXT_COLOUR,
    TRAIL_OPACITY,
    WALL_COLOUR,
    WIDTH,
    Image8,
    blend,
    draw_court,
    points,
)
from sparring.pictures.rally import STEPS_PER_SECOND, Rally

_LAST_PICTURE_SECONDS = 1.5
"""How long the last picture stays, so that its caption can be read."""


def rally_frames(rally: Rally, *, fps: int = 25, seconds: float = 20.0) -> Iterator[Image8]:
    """The rally's pictures in real time, RGB uint8 [HEIGHT, WIDTH, 3] each, the last one last; see `play`."""
    *steps, last = shown_steps(rally, fps, seconds)
    for step in steps:
        yield draw_court(rally.frame(step))
    a, b = (points(score) for score in rally.scores[-1].tolist())
    shown, whole = last / STEPS_PER_SECOND, rally.last_step / STEPS_PER_SECOND
    cut = "" if last == rally.last_step else f"first {shown:g} s of {whole:.1f} s  ·  it ended {a} : {b}"
    yield draw_court(rally.frame(last, caption=cut))


def write_rally(rally: Rally, path: Path, *, fps: int = 25, seconds: float = 20.0) -> None:
    """Writes the rally as .gif or .mp4 by the suffix of `path`; see `play`. Raises SparringError where it cannot."""
    check_suffix(path)
    frames = rally_frames(rally, fps=fps, seconds=seconds)
    with written_beside(path) as beside:
        if path.suffix.lower() == ".gif":
            _write_gif(frames, len(shown_steps(rally, fps, seconds)), beside, _stride(fps) * 1000 // STEPS_PER_SECOND)
        else:
            _write_mp4(frames, beside, _stride(fps))


def check_suffix(path: Path) -> None:
    """Raises SparringError where no rally can be written under that name on this machine."""
    suffix = path.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise SparringError(f"a rally is written as .gif or .mp4, not as {path.name!r}; try {path.stem}.gif")
    if suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise SparringError(
            f"writing {path.name} needs ffmpeg, which is not on the PATH; install it or write {path.stem}.gif"
        )


def shown_steps(rally: Rally, fps: int, seconds: float) -> list[int]:
    """The physics steps a file shows, the last one included."""
    last = min(rally.last_step, round(seconds * STEPS_PER_SECOND))
    return [*range(0, last, _stride(fps)), last]


def _stride(fps: int) -> int:
    """Physics steps from one picture to the next."""
    return max(1, round(STEPS_PER_SECOND / fps))


def _write_gif(frames: Iterator[Image8], count: int, path: Path, milliseconds: int) -> None:
    palette = _palette()
    pictures = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    durations = [milliseconds] * (count - 1) + [round(1000 * _LAST_PICTURE_SECONDS)]
    first = next(pictures)
    first.save(path, format="GIF", save_all=True, append_images=pictures, duration=durations, loop=0, optimize=False)


def _palette() -> Image.Image:
    """The court's colours and their blends, one palette for all pictures of a file: that keeps the file small."""
    grounds = {
        AIR_COLOUR: (BALL_COLOUR, A_COLOUR, B_COLOUR, NET_COLOUR, FLOOR_A_COLOUR, FLOOR_B_COLOUR, WALL_COLOUR),
        HEADER_COLOUR: (TEXT_COLOUR, MUTED_COLOUR, A_COLOUR, B_COLOUR, BALL_COLOUR),
        BALL_COLOUR: (A_COLOUR, B_COLOUR, NET_COLOUR, FLOOR_A_COLOUR, FLOOR_B_COLOUR),
    }
    levels = np.linspace(0, 1, 13)
    colours = [blend(ground, colour, level) for ground, tops in grounds.items() for colour in tops for level in levels]
    colours += [blend(AIR_COLOUR, BALL_COLOUR, TRAIL_OPACITY * level) for level in np.linspace(0, 1, 25)]
    colours = list(dict.fromkeys(colours))
    palette = Image.new("P", (1, 1))
    palette.putpalette([channel for colour in colours for channel in colour])
    return palette


def _write_mp4(frames: Iterator[Image8], path: Path, stride: int) -> None:
    command = ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{WIDTH}x{HEIGHT}"]
    command += ["-r", f"{STEPS_PER_SECOND}/{stride}", "-i", "-", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    command += ["-f", "mp4", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
        assert ffmpeg.stdin is not None
        try:
            for frame in frames:
                ffmpeg.stdin.write(frame.tobytes())
            for _ in range(round(_LAST_PICTURE_SECONDS * STEPS_PER_SECOND / stride)):
                ffmpeg.stdin.write(frame.tobytes())
        except BrokenPipeError:
            pass  # ffmpeg gave up; its own words say why
        said = ffmpeg.communicate()[1].decode(errors="replace").strip()
    if ffmpeg.returncode:
        reason = said.splitlines()[-1] if said else f"exit code {ffmpeg.returncode}"
        raise SparringError(f"ffmpeg could not write the rally ({reason}); write a .gif instead")
