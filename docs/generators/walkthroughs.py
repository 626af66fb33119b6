"""Runs pages that are read with a shell beside them, and writes what was printed into them.

`python -m docs.generators.walkthroughs [NAME=VALUE ...] [PAGE ...]` does so for some pages or all; names are what a
page calls something, and values what it is called here, e.g. `db.example=127.0.0.1:5432`.
In a ```console block a line after `$ ` is a command; a ```python block is a program, a ```sh block is typed in a
terminal, and a ```text block after one of these is what it prints. All blocks of a page run in their order in one
empty folder; those for a terminal, which may need a server, only of pages that are named. Where a block has a line
`...`, only as many lines are kept as stand before and after it.
tests/test_walkthroughs.py compares pages with what is printed, but for numbers, which are noisy.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from docs.generators.terminal import Terminal, discreet
from docs.site.code_blocks import Block, blocks

DOCS = Path(__file__).parents[1]
_REST = "..."


def pages() -> list[Path]:
    """Returns the pages with something to run without a terminal."""
    found = [DOCS.parent / "README.md", *sorted(DOCS.glob("tutorials/*.md")), *sorted(DOCS.glob("howto/*.md"))]
    return [page for page in found if any(block.is_run and block.language != "sh" for block in blocks(page))]


def filled(page: Path, terminal: Terminal | None = None) -> str:
    """Returns a page with what its blocks print, run in an empty folder; without a terminal, nothing is typed there."""
    text = page.read_text("utf-8")
    parts, end, before = [], 0, ""
    with _folder():
        names: dict[str, object] = {"__name__": "page"}
        for block in blocks(page):
            if block.language == "text":
                shown, before = (_cut(before, block.body) if before else block.body), ""
            else:
                shown, before = _done(block, names, terminal)
            parts += [text[end : block.start], shown]
            end = block.start + len(block.body)
    return "".join([*parts, text[end:]])


def _done(block: Block, names: dict[str, object], terminal: Terminal | None) -> tuple[str, str]:
    """Runs a block; returns its text, and what the block after it shows."""
    shown, printed = block.body, ""
    if block.is_session or (terminal is None and block.language in ("sh", "toml")):
        return shown, printed
    if block.language == "console":
        shown = _console(block.body)
    elif block.language == "python":
        printed = _python(block.body, names)
    elif terminal is not None and block.language == "sh":
        printed = terminal.type(block.body)
    elif terminal is not None and block.language == "toml":
        terminal.declare(block.body)
    block.ran()
    return shown, printed


def _console(body: str) -> str:
    """The block with the output of each of its commands."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return "".join(f"$ {command}\n{_cut(_shell(command), shown)}" for command, shown in pairs)


def _shell(command: str) -> str:
    name, *words = shlex.split(command, comments=True)
    if name == "cat":
        return Path(words[0]).read_text("utf-8")
    if name != "discreet":
        raise ValueError(f"not run here: {command}")
    return discreet(words)


def _python(body: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "page", "exec", dont_inherit=True), names)  # noqa: S102 - the page's own program
    return printed.getvalue()


def _cut(printed: str, shown: str) -> str:
    """What is shown of an output: as many lines as the page has before its line `...`, and after it."""
    lines, kept = [line.rstrip() for line in printed.rstrip().splitlines()], shown.splitlines()
    if _REST in kept:
        place = kept.index(_REST)
        after = len(kept) - place - 1
        lines = [*lines[:place], _REST, *(lines[-after:] if after else [])]
    return "".join(f"{line}\n" for line in lines)


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state, contextlib.chdir(folder):
        before = os.environ.get("XDG_STATE_HOME")
        os.environ.setdefault("NO_COLOR", "1")
        os.environ["XDG_STATE_HOME"] = state  # anchors of pages are in no real state folder
        try:
            yield
        finally:
            os.environ.pop("XDG_STATE_HOME")
            os.environ.update({} if before is None else {"XDG_STATE_HOME": before})


if __name__ == "__main__":
    here = dict(given.split("=", 1) for given in sys.argv[1:] if "=" in given)
    named = [Path(name).absolute() for name in sys.argv[1:] if "=" not in name]
    for page in named or pages():
        with Terminal(here) as terminal:
            page.write_text(filled(page, terminal if named else None), "utf-8")
