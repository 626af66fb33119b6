"""Docstrings as Markdown: sections become lists, examples become blocks, everything else stays as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

_SECTION = re.compile(r"^((?:Args|Returns|Raises|Yields|Attributes)\b[^:]{0,60}):$")
_ITEM = re.compile(r"^(\*{0,2}[\w., *\[\]]+?)(?: \([^)]*\))?: +(.*)$")
_CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*{1,2})(?=[^\s*])([^*]*[^\s*])\1(?![\w*])")
Link = Callable[[str], str | None]


def markdown(docstring: str, link: Link = lambda _: None) -> str:
    r"""Returns a docstring as Markdown.

    Args:
        docstring: as `inspect.cleandoc` gives it.
        link: gives the full name of what stands between backticks, if the reference knows it.

    >>> print(markdown("Adds.\n\nArgs:\n    a: one < two.\n    b: a text\n        of two lines."))
    Adds.
    <BLANKLINE>
    **Args**
    <BLANKLINE>
    - `a`: one &lt; two.
    - `b`: a text
      of two lines.
    """
    return "\n\n".join(_block(block, link) for block in _blocks(docstring))


def _blocks(docstring: str) -> list[list[str]]:
    """Splits at empty lines; sections keep their indented paragraphs, and examples that follow each other are one."""
    blocks: list[list[str]] = []
    for part in re.split(r"\n[ \t]*\n", docstring.strip("\n")):
        lines = part.splitlines()
        before = blocks[-1] if blocks else [""]
        is_more = _SECTION.match(before[0]) is not None and lines[0].startswith("    ")
        if (before[0].startswith(">>>") and lines[0].startswith(">>>")) or is_more:
            before += ["", *lines]
        else:
            blocks += _split_at_example(lines)
    return blocks


def _split_at_example(lines: list[str]) -> list[list[str]]:
    start = next((i for i, line in enumerate(lines) if line.startswith(">>>")), 0)
    return [lines[:start], lines[start:]] if start else [lines]


def _block(lines: list[str], link: Link) -> str:
    if lines[0].startswith(">>>"):
        return "\n".join(["```pycon", *lines, "```"])
    if lines[0].startswith("    "):
        return "\n".join(["```text", textwrap.dedent("\n".join(lines)), "```"])
    section = _SECTION.match(lines[0])
    if section:
        return f"**{inline(section[1], link)}**\n\n" + _items(textwrap.dedent("\n".join(lines[1:])), link)
    return inline("\n".join(lines), link)


def _items(text: str, link: Link) -> str:
    """Writes `name: what it is` as a list; lines that are indented go on, and text without a name stays a text."""
    items: list[str] = []
    for line in text.splitlines():
        if items and (line.startswith("    ") or not line):
            items[-1] += "\n" + line.strip()
        else:
            items.append(line)
    found = [(_ITEM.match(item.partition("\n")[0]), item.partition("\n")[2]) for item in items]
    if not all(match for match, _ in found):
        return inline(text, link)
    written = [(match[1], inline(f"{match[2]}\n{rest}".strip(), link)) for match, rest in found if match]
    return "\n".join(f"- {_names(names)}: {textwrap.indent(what, '  ').strip()}" for names, what in written)


def _names(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def inline(text: str, link: Link = lambda _: None) -> str:
    r"""Escapes what Markdown would take for markup, except code and emphasis; links code that names something public.

    >>> print(inline("a_b < *c* and `d_e` or 2 * 3 * 4"))
    a\_b &lt; *c* and `d_e` or 2 \* 3 \* 4
    """
    parts = _CODE.split(text)
    return "".join(_code(part, link) if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _code(part: str, link: Link) -> str:
    text = " ".join(part.strip("`").split())
    target = link(text)
    return f"{{py:obj}}`{text} <{target}>`" if target else f"`` {text} ``" if "`" in text else f"`{text}`"


def _escaped(text: str) -> str:
    marks = _EMPHASIS.sub(lambda m: f"\0{len(m[1])}{m[2]}\1{len(m[1])}", text.replace("\\", "\\\\"))
    for mark in "_[]*{}":
        marks = marks.replace(mark, f"\\{mark}")
    marks = marks.replace("<", "&lt;")
    marks = re.sub(r"(?m)^(\s*)([#>+])", r"\1\\\2", marks)
    return re.sub(r"[\0\1](\d)", lambda m: "*" * int(m[1]), marks)
