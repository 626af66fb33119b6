"""The embedded engine: DuckDB, its sources and their types. It loads when it is first used; sources need no engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.engines.duckdb.engine import DuckDB

__all__ = ["DuckDB"]


def __getattr__(name: str) -> object:
    """Loads the engine on first use."""
    if name in __all__:
        return getattr(import_module("discreet.engines.duckdb.engine"), name)
    raise AttributeError(f"module 'discreet.engines.duckdb' has no attribute {name!r}")
