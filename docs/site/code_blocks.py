"""Blocks of code on pages, and a list of those that ran while the site was built."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from docs.site.navigation import DOCS

LIST = "DISCREET_BLOCKS"
"""The environment's name of a file to which blocks are added that ran; without it nothing is written."""

RUN = ("console", "psql", "python", "sh", "sql")
"""Languages of blocks that tests of their pages run."""

_ROOT = DOCS.parent
_FENCE = re.compile(r"(?ms)^(?P<fence>`{3,}|~{3,})(?P<language>[^\s`]*)[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code on a page: where it stands, what it says it is, and its text."""

    page: str
    line: int
    language: str
    body: str
    start: int = 0

    @property
    def place(self) -> str:
        """The page and the line."""
        return f"{self.page}:{self.line}"

    @property
    def is_session(self) -> bool:
        """Tells whether pytest runs it, as a doctest."""
        return ">>>" in self.body

    @property
    def is_run(self) -> bool:
        """Tells whether a test of its page runs it."""
        return self.language in RUN and not self.is_session

    def ran(self) -> None:
        """Enters it in the list of blocks that ran. A short line is written at once, whoever else writes."""
        if LIST in os.environ:
            with Path(os.environ[LIST]).open("a", encoding="utf-8") as kept:
                kept.write(f"{self.place}\n")


def blocks(page: Path) -> list[Block]:
    """Returns all blocks of a page."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(_ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, found.start()) + 1, found["language"], found["body"], found.start("body"))
        for found in _FENCE.finditer(text)
    ]
