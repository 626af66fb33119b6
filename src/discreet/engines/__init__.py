"""Where readings become exact integers: the referee in plain Python, SQL for databases, DuckDB embedded, PostgreSQL.

A server's engine, `discreet.engines.postgres.Postgres`, is loaded by the code that needs it.

Engines know plans and rows; they know nothing of noise, budgets or analysts. Each engine loads when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.engines.abstract_engine import BySource, Engine
from discreet.engines.by_source import by_source

if TYPE_CHECKING:
    from discreet.engines.duckdb.engine import DuckDB
    from discreet.engines.folders.folder import Folder
    from discreet.engines.memory.engine import Memory

_NAMES = {
    "DuckDB": "discreet.engines.duckdb.engine",
    "Folder": "discreet.engines.folders.folder",
    "Memory": "discreet.engines.memory.engine",
}

__all__ = ["BySource", "DuckDB", "Engine", "Folder", "Memory", "by_source"]


def __getattr__(name: str) -> object:
    """Loads a name from its module on first use."""
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'discreet.engines' has no attribute {name!r}")
