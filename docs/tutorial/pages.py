"""Writes the notebook and the page of tutorial.py, their only source.

    python docs/tutorial/pages.py    # runs the tutorial, minutes, then writes tutorial.ipynb, README.md and images/

The script is in percent format: `# %% [markdown]` begins a cell of text, `# %%` one of code. The notebook holds no
outputs; the page shows what the run printed and drew.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from PIL import Image

HERE = Path(__file__).parent
SCRIPT, NOTEBOOK, PAGE, IMAGES = (HERE / name for name in ("tutorial.py", "tutorial.ipynb", "README.md", "images"))
PICTURE = re.compile(r"picture: (.+\.png)")
"""The line that the tutorial prints for a picture, outside of notebooks."""
COLOURS = 64
"""Of the page's pictures: charts have few, and are a third as large that way."""


@dataclass(frozen=True)
class Cell:
    kind: Literal["markdown", "code"]
    text: str


def read_cells(script: str) -> list[Cell]:
    """The cells of a script in percent format, without markers and the comment signs of text."""
    cells = []
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        marker, _, body = part.partition("\n")
        text = body.strip("\n")
        if marker == " [markdown]":
            cells.append(Cell("markdown", re.sub(r"^# ?", "", text, flags=re.MULTILINE)))
        elif marker == "":
            cells.append(Cell("code", text))
        else:
            raise ValueError(f"# %%{marker}: a cell begins with # %% or # %% [markdown]")
    return cells


def notebook(cells: list[Cell]) -> str:
    """The text of an .ipynb file, nbformat 4.5, without outputs."""
    written = []
    for number, cell in enumerate(cells):
        entry: dict[str, Any] = {"cell_type": cell.kind, "id": f"cell-{number}", "metadata": {}}
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": []}
        written.append({**entry, "source": cell.text.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": written,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1) + "\n"


def page(cells: list[Cell], outputs: list[str]) -> str:
    """The page: text as it is, code in fences, and below each code cell what it printed; pictures from images/."""
    parts = ["<!-- Written by pages.py from tutorial.py: change that one. -->\n"]
    printed = iter(outputs)
    for cell in cells:
        if cell.kind == "markdown":
            parts.append(cell.text + "\n")
            continue
        parts.append(f"```python\n{cell.text}\n```\n")
        # Text and pictures in turn, in the order they were printed.
        for index, piece in enumerate(re.split(rf"^{PICTURE.pattern}\n", next(printed), flags=re.MULTILINE)):
            if index % 2:
                name = Path(piece).stem
                parts.append(f"![{name}](images/{name}.png)\n")
            elif piece:
                parts.append(f"```text\n{piece.rstrip()}\n```\n")
    return "\n".join(parts)


def without_outputs(text: str) -> str:
    """The page as it would be if its code had printed nothing."""
    return re.sub(r"\n```text\n.*?\n```\n|\n!\[[\w-]+\]\(images/[\w-]+\.png\)\n", "", text, flags=re.DOTALL)


def run(cells: list[Cell]) -> list[str]:
    """Runs the code cells in one namespace; what each printed."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for number, cell in enumerate(cells):
        if cell.kind == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.text, f"cell {number}", "exec"), namespace)
            outputs.append(printed.getvalue())
    return outputs


def main() -> None:
    cells = read_cells(SCRIPT.read_text())
    outputs = run(cells)
    IMAGES.mkdir(exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    for picture in PICTURE.findall("".join(outputs)):
        with Image.open(picture) as image:
            image.convert("RGB").quantize(COLOURS).save(IMAGES / Path(picture).name, optimize=True)
    NOTEBOOK.write_text(notebook(cells))
    PAGE.write_text(page(cells, outputs))


if __name__ == "__main__":
    main()
