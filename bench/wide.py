"""What a question with many numbers costs: 299 AVGs of a table of 300 columns, beside the same in plain DuckDB.

The table is a frame, then a Parquet file; each row is a person, or people have two rows each, of which two count, or
one, so that everybody is above the limit. The whole question is measured: reading the text, planning, the first opening
of the table, reading, noise and intervals. So is the explanation of 600 SUMs, which reads nothing.

The target is at most 5 seconds for a question over 200,000 rows. Seconds on the clock depend on what else the machine
does; processor time, which adds up over threads, and its ratio to plain DuckDB's are printed beside.

    python bench/wide.py [rows, default 200000]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from _timing import Row, cpu, show

from discreet import Budget, Curator

COLUMNS, EXPLAINED = 299, 600
MOST = Fraction(5)  # seconds
NAMES = [f"c{i}" for i in range(EXPLAINED)]


def made(rows: int, columns: int) -> pa.Table:
    """Returns a table of an id that two rows share, and columns of numbers below a hundred."""
    numbers = ", ".join(f"hash(i, {place}) % 100000 / 1000 AS {name}" for place, name in enumerate(NAMES[:columns]))
    return duckdb.sql(f"SELECT i // 2 AS id, {numbers} FROM range({rows}) AS r(i)").to_arrow_table()


def question(function: str, columns: int) -> str:
    """Returns a question for as many numbers as there are columns."""
    return f"SELECT {', '.join(f'{function}({name}) AS {name}' for name in NAMES[:columns])} FROM t"


def curator(source: Any, columns: int, unit: str | None, rows: int = 2) -> Curator:
    """Returns a curator of the table, who has not read it yet."""
    found = Curator(":memory:")
    limits: dict[str, Any] = {} if unit is None else {"max_rows": rows}
    bounds = dict.fromkeys(NAMES[:columns], (0, 100))
    found.protect(source, name="t", unit=unit, bounds=bounds, budget=Budget(epsilon=1000, delta="1e-3"), **limits)
    return found


def once(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of processor time of something that is not repeated."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def asked(source: Any, unit: str | None, rows: int) -> tuple[float, float]:
    """Seconds of the first question."""
    with curator(source, COLUMNS, unit, rows) as found:
        return once(lambda: found.ask(question("AVG", COLUMNS), epsilon=100))


def explained() -> tuple[float, float]:
    """Seconds until a question is explained."""
    with curator(made(2, EXPLAINED), EXPLAINED, "id") as found:
        return once(lambda: str(found.explain(question("SUM", EXPLAINED), epsilon=100)))


def plain(source: Any) -> float:
    """Seconds of plain DuckDB."""
    with duckdb.connect() as connection:
        if isinstance(source, Path):
            connection.execute(f"CREATE VIEW t AS FROM '{source}'")
        else:
            connection.register("t", source)
        return cpu(lambda: connection.execute(question("AVG", COLUMNS)).fetchall())


def main() -> None:
    """Prints seconds, and their ratios to a peer's and to the target."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    frame = made(rows, COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        duckdb.sql(f"COPY frame TO '{path}'")
        seconds, beside = [], []
        for kind, source in (("frame", frame), ("Parquet", path)):
            peer = plain(source)
            for who, unit, most in (("rows", None, 1), ("people", "id", 2), ("one row of each person", "id", 1)):
                what, (clock, processor) = f"{COLUMNS} AVGs, {kind}, {who}", asked(source, unit, most)
                seconds.append(Row(what, clock, 1.0, MOST))
                beside.append(Row(what, processor, peer, None))
    seconds.append(Row(f"explain {EXPLAINED} SUMs", explained()[0], 1.0, MOST))
    show(f"Wide questions, {rows:,} rows, on the clock, beside one second", seconds, "s", 1.0)
    show("The same, processor time beside plain DuckDB's", beside, "s", 1.0)


if __name__ == "__main__":
    main()
