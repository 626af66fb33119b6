"""Texts of the sources that write an argument as Python does, found by walking their syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import discreet

SOURCES = Path(discreet.__file__).parent


def python_spellings(rooms: Iterable[str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the file and the text of each message with ``name=``; templates of hints have ``{name:value}`` instead."""
    spelled = re.compile(rf"(?<![\w.{{-])(?:{'|'.join(sorted(names))})=(?!=)")
    for room in rooms:
        for path in sorted((SOURCES / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
            for text in (node.value for node in texts if isinstance(node.value, str)):
                if spelled.search(text):
                    yield path.relative_to(SOURCES).as_posix(), text
