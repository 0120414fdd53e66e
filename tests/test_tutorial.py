"""The tutorial runs from top to bottom, and its notebook and page are those of its script."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from PIL import Image

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"
sys.path.insert(0, str(TUTORIAL))
import pages  # noqa: E402

MOST_BYTES = 500_000
"""Of the folder: pictures stay small."""


def test_it_runs_on_a_short_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARRING_TUTORIAL", "short")
    runpy.run_path(str(pages.SCRIPT), run_name="__main__")
    drawn = {Path(name).name for name in pages.PICTURE.findall(capsys.readouterr().out)}
    assert drawn == {path.name for path in pages.IMAGES.iterdir()}
    for path in (tmp_path / "runs").rglob("*.png"):
        assert Image.open(path).width > 500


def test_notebook_and_page_are_the_scripts() -> None:
    cells = pages.read_cells(pages.SCRIPT.read_text())
    assert pages.NOTEBOOK.read_text() == pages.notebook(cells), "run docs/tutorial/pages.py"
    silent = pages.page(cells, ["" for cell in cells if cell.kind == "code"])
    assert pages.without_outputs(pages.PAGE.read_text()) == silent, "run docs/tutorial/pages.py"


def test_every_line_of_the_script_is_in_a_cell() -> None:
    script = pages.SCRIPT.read_text()
    kept = [line for cell in pages.read_cells(script) for line in cell.text.splitlines() if line]
    lines = [line for line in script.splitlines() if line and not line.startswith("# %%")]
    assert kept == [line if line in kept else line[2:] for line in lines if line != "#"]


def test_the_pages_links_and_pictures_are_there() -> None:
    text = pages.PAGE.read_text()
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (TUTORIAL / link).exists(), link
    shown = re.findall(r"\(images/([^)]+)\)", text)
    assert sorted(shown) == sorted(path.name for path in pages.IMAGES.iterdir())
    assert sum(path.stat().st_size for path in TUTORIAL.rglob("*") if path.is_file()) < MOST_BYTES


SCRIPT = """# %% [markdown]
# # Title
#
# - text

# %%
x = 1
print("one")
print("picture: runs/a-b.png")
print("two")

# %%
x += 1
"""


def test_cells_become_a_page_and_a_notebook() -> None:
    cells = pages.read_cells(SCRIPT)
    assert [cell.kind for cell in cells] == ["markdown", "code", "code"]
    assert cells[0].text == "# Title\n\n- text"
    outputs = pages.run(cells)
    assert outputs == ["one\npicture: runs/a-b.png\ntwo\n", ""]
    text = pages.page(cells, outputs)
    assert "```text\none\n```\n\n![a-b](images/a-b.png)\n\n```text\ntwo\n```\n\n```python\nx += 1\n```\n" in text
    assert pages.without_outputs(text) == pages.page(cells, ["", ""])
    written = json.loads(pages.notebook(cells))
    assert ["".join(cell["source"]) for cell in written["cells"]] == [cell.text for cell in cells]
    with pytest.raises(ValueError, match=r"# %% \[raw\]: a cell begins with"):
        pages.read_cells("# %% [raw]\ntext\n")
