"""The syntax trees of the library, parsed once for all tests that look at its source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import discreet

SOURCE = Path(discreet.__file__).resolve().parent


@cache
def trees() -> dict[Path, ast.Module]:
    """The syntax tree of every file, by its path below the library."""
    files = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8")) for path in files}


@cache
def nodes() -> dict[Path, tuple[ast.AST, ...]]:
    """All nodes of every file."""
    return {path: tuple(ast.walk(tree)) for path, tree in trees().items()}
