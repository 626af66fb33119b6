"""Where readings become exact integers: the referee in plain Python, SQL for databases, DuckDB embedded, PostgreSQL.

A server's engine, `discreet.engines.postgres.Postgres`, is loaded by whoever needs it.

Engines know plans and rows; they know nothing of noise, budgets or analysts.
"""

from discreet.engines.base import BySource, Engine
from discreet.engines.by_source import by_source
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.folders.folder import Folder
from discreet.engines.memory.engine import Memory

__all__ = ["BySource", "DuckDB", "Engine", "Folder", "Memory", "by_source"]
