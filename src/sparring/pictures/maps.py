"""A map file as a picture and in the terminal; several on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

from sparring.errors import SparringError
from sparring.files import written_beside
from sparring.levels.maps import LoongMap, read_map
from sparring.pictures.board import board_text, describe, draw_board, draw_sheet
from sparring.pictures.court import Image8

MOST_ON_A_SHEET = 100
_ASCII = str.maketrans("─│┌┐└┘├┤┬┴┼╵╶╷╴·", "-|+++++++++|-|-.")
_PALETTE = 256
"""Colours that a picture is reduced to: hardly to be seen, and the file is less than half as large."""


def show_map(path: Path, *, out: Path | None = None, console: Console | None = None) -> LoongMap:
    """Shows a map file and returns the map.

    out:     where to write its picture, a .png
    console: where to draw it with characters; coloured where the console has colours

    Raises MapError for a map the judge refuses, SparringError where a file cannot be read or written.
    """
    loong_map = read_map(path)
    if console:
        print_map(loong_map, console)
    if out:
        write_picture(draw_board(loong_map), out)
    return loong_map


def show_sheet(paths: Sequence[Path], *, out: Path, columns: int = 6) -> None:
    """Draws several map files on one sheet, a .png. Raises as `show_map` does, and for more than MOST_ON_A_SHEET."""
    if not 1 <= len(paths) <= MOST_ON_A_SHEET:
        raise SparringError(f"{len(paths)} maps for one sheet: it has room for 1 to {MOST_ON_A_SHEET}")
    if columns < 1:
        raise SparringError(f"columns = {columns}: a sheet has 1 or more")
    write_picture(draw_sheet([read_map(path) for path in paths], columns=columns), out)


def print_map(loong_map: LoongMap, console: Console) -> None:
    """Draws a map, as it starts, on a console."""
    title = Text(loong_map.name or "a map without a name", style="bold")
    console.print(title.append(f"  {describe(loong_map)}", style="dim not bold"))
    board = board_text(loong_map, columns=console.width, colour=console.color_system is not None)
    if not console.encoding.startswith("utf"):
        board = Text(board.plain.translate(_ASCII), no_wrap=True, overflow="crop")
    console.print(board, crop=console.is_terminal, soft_wrap=not console.is_terminal)


def write_picture(picture: Image8, out: Path) -> None:
    """Writes RGB uint8 [height, width, 3] as a .png. Raises SparringError for another suffix, or where it cannot."""
    if out.suffix.lower() != ".png":
        raise SparringError(f"cannot write {out}: the picture of a map is a .png")
    image = Image.fromarray(picture).quantize(_PALETTE, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    with written_beside(out) as beside:
        image.save(beside, "PNG", optimize=True)
