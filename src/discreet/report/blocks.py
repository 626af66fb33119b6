"""The pieces a page is made of: paragraphs, questions, tables, figures, sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.report.charts import Spec
from discreet.report.html import Html, element
from discreet.report.render import svg
from discreet.report.theme import Scheme


def paragraph(*parts: str, kind: str = "") -> Html:
    """Running text."""
    return element("p", *parts, **_kind(kind))


def amount(text: str) -> Html:
    """An amount of privacy, which stays on one line."""
    return element("span", text, class_="amount")


def link(text: str, to: str) -> Html:
    """A link to another page."""
    return element("a", text, href=to)


def code(text: str) -> Html:
    """A question or a command, as it was written."""
    return element("pre", element("code", text))


def bullets(*items: str, kind: str = "") -> Html:
    """A list."""
    return element("ul", *(element("li", item) for item in items), **_kind(kind))


def facts(pairs: Mapping[str, str]) -> Html:
    """A few figures with their names, side by side."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in pairs.items()),
        class_="facts",
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str, numbers: Sequence[str] = ()) -> Html:
    """Rows of text under headings; `numbers` names the columns that are aligned on the right."""
    head = element("tr", *(element("th", name, scope="col", **_side(name in numbers)) for name in columns))
    body = [
        element("tr", *(element("td", cell, **_side(name in numbers)) for name, cell in zip(columns, row, strict=True)))
        for row in rows
    ]
    drawn = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return scrolling(drawn, label=caption)


def scrolling(drawn: Html, *, label: str) -> Html:
    """A table that keeps its width on a narrow page, in a box that scrolls and that a keyboard can reach."""
    return element("div", drawn, class_="scroll", role="region", tabindex="0", aria_label=label)


def figure(spec: Spec, *, caption: str, description: str) -> Html:
    """A chart in a light and a dark version, of which the page shows one.

    Args:
        spec: what is drawn.
        caption: stands below it.
        description: what it shows, for those who do not see it.

    Raises:
        MissingExtra: if pictures cannot be made.
    """
    versions = (element("div", svg(spec, scheme), class_=scheme.value, aria_hidden="true") for scheme in Scheme)
    picture = element("div", *versions, role="img", aria_label=description)
    return element("figure", picture, element("figcaption", caption))


def group(*parts: Html) -> Html:
    """Pieces that stay together."""
    return element("div", *parts)


def beside(*parts: Html) -> Html:
    """Pieces side by side where the page is wide enough."""
    return element("div", *parts, class_="beside")


def section(name: str, heading: str, *parts: Html, level: int = 2) -> Html:
    """A part of the page under a heading that links can point to."""
    return element("section", element(f"h{level}", heading, id=name), *parts, aria_labelledby=name)


def _kind(kind: str) -> dict[str, str]:
    return {"class_": kind} if kind else {}


def _side(right: bool) -> dict[str, str]:
    return {"class_": "number"} if right else {}
