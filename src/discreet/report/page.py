"""A page that stands alone: one file, opened from the disk, that asks nobody for anything.

Styles are inline and pictures are part of the text. The page's own policy forbids everything else: scripts, fonts,
frames, forms and every connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from discreet.report.html import Html, element, together

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(
    title: str, *parts: Html, lead: str = "", contents: Mapping[str, str] | None = None, language: str = "en"
) -> str:
    """A whole HTML document.

    Args:
        title: of the document, and its first heading.
        parts: in order, made by `discreet.report.blocks`.
        lead: a sentence below the title.
        contents: names of sections and what a link to each says.
        language: the code of the language it is written in.

    >>> page("Wards & <visits>").splitlines()[:2]
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
    """The style sheet."""
    return Html(files("discreet.report").joinpath("style.css").read_text(encoding="utf-8"))


def _contents(names: Mapping[str, str]) -> list[Html]:
    links = (element("li", element("a", text, href=f"#{name}")) for name, text in names.items())
    return [element("nav", element("ol", *links), aria_label="Contents")] if names else []
