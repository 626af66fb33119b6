"""Notebooks become pages: code, what it printed and showed, folded solutions; a cell that fails stops the build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docs.site.notebook_pages import Output, Session, cells, notebook_page, notebooks

CHART = """\
from discreet.report.charts import Point, dots
from discreet.report.render import chart
chart(dots([Point(label="a", value=1, low=0, high=2)], title="rows") | {"title": {"text": ["One", "finding"]}})"""


def notebook(folder: Path, *made: tuple[str, str, dict[str, Any]]) -> Path:
    """A file with cells of these kinds, sources and metadata."""
    written = [
        {"cell_type": kind, "id": f"cell-{place}", "source": source.splitlines(keepends=True), "metadata": metadata}
        for place, (kind, source, metadata) in enumerate(made)
    ]
    path = folder / "lesson.ipynb"
    path.write_text(json.dumps({"cells": written}), encoding="utf-8")
    return path


def test_all_notebooks_of_the_repository_have_pages() -> None:
    assert [path.name[:2] for path in notebooks()] == ["1_", "2_", "3_", "4_", "5_"]


def test_cells_share_names_and_show_their_last_line() -> None:
    session = Session("x")
    assert session.run("def f(a):\n    return a + 1") == Output("", None)
    assert session.run("print('told')\nf(1)") == Output("told\n", 2)
    assert session.run("g = f(2)") == Output("", None)
    assert session.space["g"] == 3


def test_a_page_has_code_and_what_it_left_behind(tmp_path: Path) -> None:
    path = notebook(
        tmp_path,
        ("markdown", "# 1. A title\n\nSome words.", {}),
        ("code", "print('said')\n{'b': 1, 'a': 2}", {}),
        ("markdown", "**Solution.** Thus.", {"tags": ["solution"]}),
        ("code", "1 + 1", {"tags": ["solution"], "jupyter": {"source_hidden": True}}),
        ("markdown", "The end.", {}),
    )
    page = notebook_page(path)
    assert page.startswith("# 1. A title\n\n*A lesson of [the course](../course.md).")
    assert "```python\nprint('said')\n{'b': 1, 'a': 2}\n```" in page
    assert "```{code-block} text\n:class: printed\nsaid\n```" in page
    assert "```{code-block} text\n:class: printed\n{'b': 1, 'a': 2}\n```" in page
    folded = page.partition("<details")[2].partition("</details>")[0]
    assert "**Solution.** Thus." in folded
    assert ":class: printed\n2\n" in folded
    assert "The end." not in folded


def test_a_chart_is_drawn_for_all_pages_and_described(tmp_path: Path) -> None:
    page = notebook_page(notebook(tmp_path, ("code", CHART, {})))
    assert page.count("<svg") == 4
    assert 'role="img" aria-label="Chart: One finding"' in page
    assert "<figcaption></figcaption>" not in page


def test_a_formula_needs_no_program_to_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("docutils", reason="the extra for the site is not installed")
    page = notebook_page(notebook(tmp_path, ("markdown", "# A\n\nSo\n\n$$a \\le e^{\\varepsilon}$$\n\nthen.", {})))
    assert "$$" not in page
    assert "<math" in page


def test_code_with_fences_stays_inside_of_its_own(tmp_path: Path) -> None:
    page = notebook_page(notebook(tmp_path, ("code", "a = '''\n```\n'''", {})))
    assert "````python\na = '''\n```\n'''\n````" in page


def test_a_cell_that_fails_stops_the_build(tmp_path: Path) -> None:
    path = notebook(tmp_path, ("markdown", "# A", {}), ("code", "1 / 0", {}))
    with pytest.raises(RuntimeError, match=r"lesson.ipynb: cell cell-1 fails: ZeroDivisionError"):
        notebook_page(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_lessons_become_pages_with_a_chart(path: Path) -> None:
    pytest.importorskip("docutils", reason="the extra for the site is not installed")
    page = notebook_page(path)
    assert page.count("```python\n") == sum(cell["cell_type"] == "code" for cell in cells(path))
    assert 'class="lesson-chart"' in page
    assert page.count("<details") == page.count("</details>") >= 2
