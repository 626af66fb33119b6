"""Text stays text, whatever it holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from discreet.report.html import Html, element, together
from tests.report.reader import Page

EVIL = "<script>alert(1)</script>"


@given(st.text(), st.text())
def test_whatever_is_written_is_read_again_as_text(inside: str, attribute: str) -> None:
    page = Page(element("p", inside, title=attribute))
    assert [tag for tag, _ in page.tags] == ["p"]
    assert "".join(page.texts.get("p", [])) == inside
    assert page.named("p")[0]["title"] == attribute


def test_markup_is_escaped_unless_it_was_made_here() -> None:
    assert element("b", EVIL) == "<b>&lt;script&gt;alert(1)&lt;/script&gt;</b>"
    assert element("b", Html("<i></i>")) == "<b><i></i></b>"
    assert together(EVIL) == "&lt;script&gt;alert(1)&lt;/script&gt;"


def test_markup_joined_with_text_is_text_again() -> None:
    joined = element("b", "x") + EVIL
    assert "<script>" not in element("p", joined)
    assert "<b>" not in element("p", joined)
