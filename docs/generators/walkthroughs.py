"""Runs pages that are read with a shell beside them, and writes what was printed into them.

`python -m docs.generators.walkthroughs [PAGE ...]` does so for some pages or all.
In a ```console block a line after `$ ` is a command; a ```python block is a program, and a ```text block after it is
what it prints. All blocks of a page run in their order in one empty folder. Where a block ends in a line `...`, only as
many lines are kept as stand before it. tests/test_walkthroughs.py compares pages with what is printed, but for numbers,
which are noisy. ```sh blocks need a server or a browser, and are not run.
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

from typer.testing import CliRunner

from discreet.cli import app

DOCS = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REST = "..."


def pages() -> list[Path]:
    """Returns the pages with something to run."""
    found = [DOCS.parent / "README.md", *sorted(DOCS.glob("tutorials/*.md")), *sorted(DOCS.glob("howto/*.md"))]
    return [
        page for page in found if re.search(r"^```(console|python)\n(?!>>>)", page.read_text("utf-8"), re.MULTILINE)
    ]


def filled(text: str) -> str:
    """Returns a page with what its blocks print, run in an empty folder."""
    outputs: dict[int, str] = {}
    with _folder():
        names: dict[str, object] = {"__name__": "page"}
        before = ""
        for match in _BLOCK.finditer(text):
            kind, body = match[1], match[2]
            if kind == "console":
                outputs[match.start(2)] = _console(body)
            elif kind == "python":
                before = _python(body, names) if not body.startswith(">>>") else ""
            elif before:
                outputs[match.start(2)], before = _cut(before, body), ""
    return _BLOCK.sub(lambda match: f"```{match[1]}\n{outputs.get(match.start(2), match[2])}```", text)


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
    result = CliRunner(env={"COLUMNS": "110", "NO_COLOR": "1"}).invoke(app, words)
    return result.output.replace(str(Path.cwd()), "/srv/clinic")


def _python(body: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(body, "page", "exec", dont_inherit=True), names)  # noqa: S102 - the page's own program
    return printed.getvalue()


def _cut(printed: str, shown: str) -> str:
    """What is shown of an output: as many lines as the page has before its line `...`, and after it."""
    lines, kept = [line.rstrip() for line in printed.splitlines()], shown.splitlines()
    if _REST in kept:
        place = kept.index(_REST)
        after = len(kept) - place - 1
        lines = [*lines[:place], _REST, *(lines[-after:] if after else [])]
    return "".join(f"{line}\n" for line in lines)


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.setdefault("NO_COLOR", "1")
        yield


if __name__ == "__main__":
    for page in [Path(name) for name in sys.argv[1:]] or pages():
        text = page.read_text("utf-8")
        page.write_text(filled(text), "utf-8")
