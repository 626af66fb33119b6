"""Pages of highlighted source, and a link to the line from every entry of the reference; all of it inside the site."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from docs.site.reference_pages import Reference, reference
from docs.site.source_names import SOURCE, module_definition

# The theme would take longer over two hundred of these than over all other pages: they have a frame of their own.
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name} - Discreet</title>
<link rel="stylesheet" href="../_static/pygments.css"><link rel="stylesheet" href="../_static/source.css"></head>
<body><header><a href="../index.html">Discreet</a> / <code>{name}</code></header><main>{code}</main></body></html>
"""


@cache
def _reference() -> Reference:
    return reference()


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Returns where the source of an entry stands, as `sphinx.ext.linkcode` asks for it."""
    place = _reference().places.get((info["module"], info["fullname"])) if domain == "py" else None
    return f"../source/{place[0]}.html#L-{place[1]}" if place else None


def write_source_pages(app: Any, exception: Exception | None) -> None:
    """Writes a page for each file that defines a public name, after Sphinx has written the others."""
    if exception is not None:
        return
    form = HtmlFormatter(lineanchors="L", anchorlinenos=True, linenos="inline", wrapcode=True)
    folder = Path(app.outdir) / "source"
    folder.mkdir(exist_ok=True)
    for module in {module for module, _ in _reference().places.values()}:
        file = module_definition(module).file
        name = escape(f"src/{file.relative_to(SOURCE).as_posix()}")
        code = highlight(file.read_text(encoding="utf-8"), PythonLexer(), form)
        (folder / f"{module}.html").write_text(_PAGE.format(name=name, code=code), encoding="utf-8")
