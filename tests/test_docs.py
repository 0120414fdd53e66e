"""The pages.

Every snippet of README.md and docs/*.md runs, unless `<!-- not run: reason -->` stands right before its fence. Every
link leads to a file and a heading that are there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
LINKING = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: .+ -->")


@dataclass(frozen=True)
class Snippet:
    language: str
    line: int  # of its first line in the page, counted from 1
    text: str


def snippets(page: str) -> Iterator[Snippet]:
    """The python, console and bash snippets of a page that are to run, in order."""
    lines = page.splitlines()
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r"```(\w*)\s*", lines[at])
        if fence is None:
            at += 1
            continue
        end = lines.index("```", at + 1)
        marked = at > 0 and NOT_RUN.fullmatch(lines[at - 1].strip())
        if fence[1] in ("python", "console", "bash") and not marked:
            yield Snippet(fence[1], at + 2, "\n".join(lines[at + 1 : end]))
        at = end + 1


def commands(snippet: Snippet) -> Iterator[str]:
    """The commands of a shell snippet: in a console those after `$ `, in bash all lines but comments."""
    for line in snippet.text.replace("\\\n", " ").splitlines():
        if snippet.language == "console" and line.startswith("$ "):
            yield line[2:]
        elif snippet.language == "bash" and line.strip() and not line.startswith("#"):
            yield line


def run(page: Path, folder: Path) -> None:
    """Run a page's snippets in `folder`; Python snippets share one namespace, as a reader's session would."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    namespace: dict[str, object] = {"__name__": "__main__"}
    for snippet in snippets(page.read_text()):
        if snippet.language == "python":
            shifted = "\n" * (snippet.line - 1) + snippet.text  # so that a traceback names the page's own line
            exec(compile(shifted, str(page), "exec"), namespace)
            continue
        for command in commands(snippet):
            result = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env={**os.environ, "PATH": path},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            assert result.returncode == 0, f"{page.name}:{snippet.line}: {command}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path)


def without_fences(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)


def anchors(page: str) -> list[str]:
    """What GitHub calls the headings of a page in links."""
    headings = re.findall(r"^#+ (.+)$", without_fences(page), flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def dead_links(page: Path) -> list[str]:
    """The links of a page, pictures included, whose file or heading is missing. Other sites are not asked."""
    dead = []
    for link in re.findall(r"\]\(([^)]+)\)", without_fences(page.read_text())):
        link = re.sub(r"\s", "", link)
        if re.match(r"https?:", link):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One, and `two`\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md#one-and-two) [b](#here) [c](https://example.org/x) [d](gone.md) ![e](gone.png)\n"
    )
    page.write_text(page.read_text() + "[f](other.md#no-heading) [g](other.md) [h](#there)\n```\n[i](gone.md)\n```\n")
    assert dead_links(page) == ["gone.md", "gone.png", "other.md#no-heading", "#there"]


PAGE = """
```python
x = 1
```
<!-- not run: it never ends -->
```python
while True: pass
```
```console
$ echo $SPARRING_RUNS \\
    > runs.txt
an output line
```
```toml
key = 1
```
```python
y = x + 1
{last}
```
"""


def test_a_page_shares_names_and_runs_shell_lines(tmp_path: Path, runs_folder: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(last="assert y == 2"))
    run(page, tmp_path)
    assert (tmp_path / "runs.txt").read_text() == f"{runs_folder}\n"


def test_a_failing_snippet_fails_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(last="assert y == 3"))
    with pytest.raises(AssertionError) as failure:
        run(page, tmp_path)
    assert failure.traceback[-1].lineno + 1 == page.read_text().splitlines().index("assert y == 3") + 1
    page.write_text("```bash\nsparring no-such-verb\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2: sparring no-such-verb"):
        run(page, tmp_path)
