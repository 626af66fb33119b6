"""Where readings become exact integers: the referee in plain Python, SQL for databases, DuckDB embedded.

Engines know plans and rows; they know nothing of noise, budgets or analysts.
"""

from discreet.engines.base import Engine
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.memory.engine import Memory

__all__ = ["DuckDB", "Engine", "Memory"]
