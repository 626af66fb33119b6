"""Numbers as text never promise more than the interval does, and tables stay tables whatever their cells hold."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report.display import Display, format_measured, html_table, plain, text_table
from tests.report.reader import Page

FINITE = st.floats(-1e12, 1e12)
_PARTS = re.compile(r"(\S+) \((\S+) to (\S+)\)")


@given(FINITE, FINITE, FINITE)
def test_written_ends_hold_the_interval(a: float, b: float, c: float) -> None:
    low, value, high = sorted((a, b, c))
    match = _PARTS.fullmatch(format_measured(value, low, high))
    assert match is not None
    written = [float(part.replace(",", "")) for part in match.groups()]
    assert written[1] <= low
    assert written[2] >= high
    assert written[1] <= written[0] <= written[2]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((1466, 1346, 1586), "1,466 (1,346 to 1,586)"),
        ((2.6, 1.04, 4.26), "2.6 (1.0 to 4.3)"),
        ((0.0, -0.001, 0.001), "0.0000 (-0.0010 to 0.0010)"),
        ((5.0, 5.0, 5.0), "5.0 (5.0 to 5.0)"),
        ((7, -math.inf, math.inf), "7 (no bounds)"),
        ((7.5, 7.0, math.inf), "7.50 (7.00 to no bound)"),
        ((None, -math.inf, math.inf), "no value"),
        ((3 * 10**20, 10**20, 4 * 10**20), "3e+20 (1e+20 to 4e+20)"),
    ],
)
def test_measured(parts: tuple[float | None, float, float], text: str) -> None:
    assert format_measured(*parts) == text


def test_names_cannot_steer_what_shows_them() -> None:
    assert plain("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\\n"


@given(st.lists(st.tuples(st.text(), st.integers()), min_size=1))
def test_a_table_has_a_line_for_each_row(rows: list[tuple[str, int]]) -> None:
    lines = text_table(["name", "n"], rows, numbers=["n"]).split("\n")
    assert len(lines) == 2 + len(rows)
    assert all(line.isprintable() for line in lines)
    assert len({len(line) for line in lines}) == 1  # numbers end in one column


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_cells_are_no_markup(rows: list[tuple[str, str]]) -> None:
    page = Page(html_table(["<b>", "x"], rows, caption="<i>"))
    assert "".join(page.texts.get("td", [])) == "".join(plain(cell) for row in rows for cell in row)
    assert {tag for tag, _ in page.tags} == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert len(page.named("td")) == 2 * len(rows)


def test_a_display_has_the_same_parts_in_both_forms() -> None:
    shown = Display(title="<T>\x1b", columns=("k", "n"), rows=[("a", 1)], numbers=["n"], notes=["one & two"])
    assert shown.text() == "<T>\\x1b\nk  n\n-  -\na  1\n- one & two"
    assert "&lt;T&gt;" in shown.html()
    assert "one &amp; two" in shown.html()
    assert Display(title="nothing").text() == "nothing"
    assert Display(title="nothing").html() == "<div><p><strong>nothing</strong></p></div>"
