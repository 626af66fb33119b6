"""Pages and the pieces they are made of; a page is one file, opened from the disk, that requests nothing.

Styles are inline and pictures are part of the text. The page's own policy forbids everything else: scripts, fonts,
frames, forms and every connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pkgutil import get_data

from discreet.report.charts import WIDTH, Spec, at_width, single
from discreet.report.html import NOTHING, Html, element, together
from discreet.report.render import FONT, NARROW, Scheme, svg

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def document(
    title: str, *parts: Html, lead: str = "", contents: Mapping[str, str] | None = None, language: str = "en"
) -> str:
    """Returns a whole HTML document.

    Args:
        title: of the document, and its first heading.
        parts: in order, made by `discreet.report.page`.
        lead: a sentence below the title.
        contents: names of sections and what a link to each says.
        language: the code of the language it is written in.

    >>> document("Wards & <visits>").splitlines()[:2]
    ['<!DOCTYPE html>', '<html lang="en">']
    """
    heading = element("header", element("h1", title), element("p", lead, class_="lead"))
    body = together(heading, *_contents(contents or {}), element("main", *parts))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="{together(language)}">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{together(POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            element("title", title),
            element("style", style()),
            "</head>",
            element("body", body),
            "</html>",
            "",
        ]
    )


def style() -> Html:
    """Returns the style sheet."""
    return Html(f":root {{ --font: {FONT}; }}\n" + (get_data("discreet.report", "style.css") or b"").decode())


def _contents(names: Mapping[str, str]) -> list[Html]:
    links = (element("li", element("a", text, href=f"#{name}")) for name, text in names.items())
    return [element("nav", element("ol", *links), aria_label="Contents")] if names else []


def paragraph(*parts: str, kind: str = "") -> Html:
    """Returns a paragraph of running text."""
    return element("p", *parts, **_kind(kind))


def amount(text: str) -> Html:
    """Returns an amount of privacy, which stays on one line."""
    return element("span", text, class_="amount")


def link(text: str, to: str) -> Html:
    """Returns a link to another page."""
    return element("a", text, href=to)


def code(text: str) -> Html:
    """Returns a question or a command, as it was written."""
    return element("pre", element("code", text))


def bullets(*items: str, kind: str = "") -> Html:
    """Returns a list, with a bullet for each item."""
    return element("ul", *(element("li", item) for item in items), **_kind(kind))


def facts(pairs: Mapping[str, str]) -> Html:
    """Returns a few figures with their names, side by side."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in pairs.items()),
        class_="facts",
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str, numbers: Sequence[str] = ()) -> Html:
    """Returns rows of text under headings; `numbers` names the columns that are aligned on the right."""
    head = element("tr", *(element("th", name, scope="col", **_side(name in numbers)) for name in columns))
    body = [
        element("tr", *(element("td", cell, **_side(name in numbers)) for name, cell in zip(columns, row, strict=True)))
        for row in rows
    ]
    drawn = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return scrolling(drawn, label=caption)


def scrolling(drawn: Html, *, label: str) -> Html:
    """Returns a table that keeps its width on a narrow page, in a box that scrolls and that a keyboard can reach."""
    return element("div", drawn, class_="scroll", role="region", tabindex="0", aria_label=label)


BROAD = 940
"""Pixels of a chart that has a wide page to itself."""


def figure(spec: Spec, *, caption: str, description: str, broad: bool = False) -> Html:
    """Returns a chart, drawn for a wide and a narrow page, light and dark; the page shows one of them.

    The title of the chart becomes text of the page, which breaks where the page ends. Charts that stand one below the
    other are put side by side where there is room.

    Args:
        spec: the chart, as Vega-Lite.
        caption: the text below it.
        description: what it shows, for those who do not see it.
        broad: whether it has the whole width of a wide page, or shares it.

    Raises:
        MissingExtra: if pictures cannot be made.
    """
    title = element("p", _title(spec), class_="headline") if "title" in spec else NOTHING
    untitled = {name: part for name, part in spec.items() if name != "title"}
    charts = [_render_chart(one, BROAD if broad else WIDTH) for one in single(untitled)]
    inside = beside(*charts) if len(charts) > 1 else charts[0]
    picture = element("div", inside, role="img", aria_label=description)
    return element("figure", title, picture, element("figcaption", caption), **_kind("broad" if broad else ""))


def _title(spec: Spec) -> str:
    text = spec["title"]["text"]
    return text if isinstance(text, str) else " ".join(text)


def _render_chart(chart: Spec, wide: int) -> Html:
    """Draws one chart in two widths and two schemes."""
    versions = []
    for size, width in (("wide", wide), ("narrow", NARROW)):
        fitting = at_width(chart, width)
        pictures = (
            element("div", svg(fitting, scheme, width=width), class_=scheme.value, aria_hidden="true")
            for scheme in Scheme
        )
        versions.append(element("div", *pictures, class_=size))
    return element("div", *versions)


def group(*parts: Html) -> Html:
    """Returns pieces that stay together."""
    return element("div", *parts)


def verdict(word: str, text: str, *, passed: bool) -> Html:
    """Returns what was found, as a sign that is green or red, and in words as well."""
    sign = element("strong", f"{'✓' if passed else '✗'} {word}")
    return element("p", sign, text, class_=f"verdict {'passed' if passed else 'failed'}")


def beside(*parts: Html) -> Html:
    """Returns pieces side by side where the page is wide enough."""
    return element("div", *parts, class_="beside")


def section(name: str, heading: str, *parts: Html, level: int = 2) -> Html:
    """Returns a part of the page under a heading that links can point to."""
    return element("section", element(f"h{level}", heading, id=name), *parts, aria_labelledby=name)


def _kind(kind: str) -> dict[str, str]:
    return {"class_": kind} if kind else {}


def _side(right: bool) -> dict[str, str]:
    return {"class_": "number"} if right else {}
