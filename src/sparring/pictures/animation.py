"""A rally, or any pictures, as a file that plays: GIF, or MP4 through ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
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
    MUTED_COLOUR,
    NET_COLOUR,
    TEXT_COLOUR,
    TRAIL_OPACITY,
    WALL_COLOUR,
    Image8,
    blend,
    draw_court,
    points,
)
from sparring.pictures.rally import STEPS_PER_SECOND, Rally

_LAST_PICTURE_SECONDS = 1.5
"""How long the last picture stays, so that its caption can be read."""
_COLOURS = 255


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
    count = len(shown_steps(rally, fps, seconds))
    write_frames(frames, count, path, fps=Fraction(STEPS_PER_SECOND, _stride(fps)), palette=_palette())


def write_frames(
    frames: Iterator[Image8], count: int, path: Path, *, fps: Fraction | int, palette: Image.Image | None = None
) -> None:
    """Writes `count` pictures, RGB uint8 [height, width, 3] each and of one size, as .gif or .mp4 by the suffix.

    palette: the colours of a GIF; None: those that suit the first picture. Raises SparringError where it cannot.
    """
    check_suffix(path)
    with written_beside(path) as beside:
        if path.suffix.lower() == ".gif":
            _write_gif(frames, count, beside, int(1000 / fps), palette)
        else:
            _write_mp4(frames, beside, Fraction(fps))


def check_suffix(path: Path) -> None:
    """Raises SparringError where nothing can be written under that name on this machine."""
    suffix = path.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise SparringError(f"an animation is written as .gif or .mp4, not as {path.name!r}; try {path.stem}.gif")
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


def _write_gif(
    frames: Iterator[Image8], count: int, path: Path, milliseconds: int, palette: Image.Image | None
) -> None:
    start = Image.fromarray(next(frames))
    colours = palette or start.quantize(colors=_COLOURS)
    pictures = (
        each.quantize(palette=colours, dither=Image.Dither.NONE)
        for each in chain([start], map(Image.fromarray, frames))
    )
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


def _write_mp4(frames: Iterator[Image8], path: Path, fps: Fraction) -> None:
    frame = next(frames)
    height, width, _ = frame.shape
    command = ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    command += ["-r", str(fps), "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"]  # this format has no odd sides
    command += ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
        assert ffmpeg.stdin is not None
        try:
            ffmpeg.stdin.write(frame.tobytes())
            for frame in frames:
                ffmpeg.stdin.write(frame.tobytes())
            for _ in range(round(_LAST_PICTURE_SECONDS * fps)):
                ffmpeg.stdin.write(frame.tobytes())
        except BrokenPipeError:
            pass  # ffmpeg gave up; its own words say why
        said = ffmpeg.communicate()[1].decode(errors="replace").strip()
    if ffmpeg.returncode:
        reason = said.splitlines()[-1] if said else f"exit code {ffmpeg.returncode}"
        raise SparringError(f"ffmpeg could not write it ({reason}); write a .gif instead")
