"""Every message in the sources that names a command or an option of the command line, found by walking their syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import discreet

SOURCES = Path(discreet.__file__).parent
_NAMES_ONE = re.compile(r"\bdiscreet [a-z]+|(?<![\w-])--[a-z]")
_OF_OPTIONS = {"Option", "Argument", "command", "callback", "Typer"}
GAP = "\x01"


@dataclass(frozen=True, slots=True)
class Message:
    """A text that is shown, with gaps for what is known only then."""

    file: str
    line: int
    text: str

    def is_in(self, shown: str) -> bool:
        """Whether something that was printed contains it; how lines are broken does not matter."""
        parts = [re.escape(" ".join(part.split())) for part in self.text.split(GAP)]
        return re.search(".*".join(parts), " ".join(shown.split())) is not None


def messages() -> Iterator[Message]:
    """All texts but docstrings, help, and what is too short to be a sentence."""
    for path in sorted(SOURCES.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not _NAMES_ONE.search(source):
            continue
        tree = ast.parse(source)
        left_out = {id(part) for node in ast.walk(tree) for part in _left_out(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in left_out:
                text = _text(node)
                if " " in text.strip() and _NAMES_ONE.search(text):
                    yield Message(path.relative_to(SOURCES).as_posix(), node.lineno, text)


def _left_out(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value  # a docstring
    if isinstance(node, ast.JoinedStr):
        yield from node.values
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _OF_OPTIONS:
        yield from ast.walk(node)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else GAP for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
