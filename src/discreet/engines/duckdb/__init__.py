"""The embedded engine: DuckDB, its sources and their types."""

from discreet.engines.duckdb.engine import DuckDB

__all__ = ["DuckDB"]
