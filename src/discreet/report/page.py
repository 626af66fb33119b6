"""Pages and the pieces they are made of; a page is one file, opened from the disk, that asks nobody for anything.

Styles are inline and pictures are part of the text. The page's own policy forbids everything else: scripts, fonts,
frames, forms and every connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pkgutil import get_data

from discreet.report.charts import Spec
from discreet.report.html import Html, element, together
from discreet.report.render import Scheme, svg

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
    return Html((get_data("discreet.report", "style.css") or b"").decode())


def _contents(names: Mapping[str, str]) -> list[Html]:
    links = (element("li", element("a", text, href=f"#{name}")) for name, text in names.items())
    return [element("nav", element("ol", *links), aria_label="Contents")] if names else []


def paragraph(*parts: str, kind: str = "") -> Html:
    """Returns running text."""
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
    """Returns a list."""
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


def figure(spec: Spec, *, caption: str, description: str) -> Html:
    """Returns a chart in a light and a dark version, of which the page shows one.

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
    """Returns pieces that stay together."""
    return element("div", *parts)


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
