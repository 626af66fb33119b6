"""What a question about a Delta or Iceberg table costs, beside the same rows in one Parquet file.

People have ten rows each, of which three groups and two rows count. The rows come in commits of equal size, so that
everybody has rows in several files; one Delta table is partitioned besides. Whole questions are measured, from the text
to the interval, each with another condition, so that none is a replay. Sources take turns, and of each the least
processor time of several rounds counts.

The target is at most 1.3 times the cost of the one file.

    python bench/lakehouses.py [rows, default 10000000] [commits, default 16]
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from _timing import Row, show
from pyiceberg.catalog.sql import SqlCatalog

from discreet import Budget, Curator

ROUNDS = 5
PERSON_ROWS, GROUPS, WARDS = 10, 100, 8
TARGET = Fraction(13, 10)
QUESTIONS = {
    "COUNT": "SELECT COUNT(*) AS n FROM t WHERE x > {}",
    "COUNT and AVG by group": "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM t WHERE x > {} GROUP BY g",
    "COUNT by ward": "SELECT ward, COUNT(*) AS n FROM t WHERE x > {} GROUP BY ward",
}


def rows_of(count: int) -> pa.Table:
    """Returns rows in no order, of people who are known by numbers."""
    return duckdb.sql(
        f"SELECT CAST(hash(i) % {count // PERSON_ROWS} AS BIGINT) AS person, "
        f"CAST(hash(i, 1) % {GROUPS} AS BIGINT) AS g, "
        f"'ward ' || hash(i, 2) % {WARDS} AS ward, hash(i, 3) % 100000 / 100 AS x FROM range({count}) AS r(i)"
    ).to_arrow_table()


def sources(folder: Path, rows: pa.Table, commits: int) -> Mapping[str, Any]:
    """Returns the same rows as one file and as tables of a lakehouse."""
    pq.write_table(rows, folder / "one.parquet", compression="snappy")
    size = math.ceil(rows.num_rows / commits)
    parts = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("care")
    table = catalog.create_table("care.t", schema=rows.schema)
    for part in parts:
        deltalake.write_deltalake(folder / "delta", part, mode="append")
        deltalake.write_deltalake(folder / "wards", part, mode="append", partition_by=["ward"])
        table.append(part)
    catalog.engine.dispose()
    return {
        "one file": folder / "one.parquet",
        "Delta": folder / "delta",
        "Delta, by ward": folder / "wards",
        "Iceberg": table.metadata_location.removeprefix("file://"),
    }


def opened(source: Any) -> Curator:
    """Returns a curator of the rows that has answered nothing."""
    curator = Curator(":memory:")
    curator.protect(
        source,
        name="t",
        unit="person",
        max_groups=3,
        max_rows=2,
        bounds={"x": (0, 1000)},
        keys={"g": range(GROUPS), "ward": [f"ward {number}" for number in range(WARDS)]},
        budget=Budget(epsilon=10_000, delta="1e-3"),
    )
    return curator


def measure(curators: Mapping[str, Curator], question: str) -> dict[str, float]:
    """Seconds of processor time of a question to each of them, the least of all rounds but the first."""
    best = dict.fromkeys(curators, math.inf)
    for number in range(ROUNDS + 1):
        for name, curator in curators.items():
            start = time.process_time()
            curator.ask(question.format(number), epsilon=1)
            if number:
                best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    """Prints what the lakehouses cost beside one file."""
    given = [int(number) for number in sys.argv[1:]]
    rows, commits = [*given, *(10_000_000, 16)[len(given) :]]
    with tempfile.TemporaryDirectory() as folder:
        curators = {name: opened(source) for name, source in sources(Path(folder), rows_of(rows), commits).items()}
        found = []
        for what, question in QUESTIONS.items():
            one, *others = measure(curators, question).items()
            found += [Row(f"{what}: {name}", seconds, one[1], TARGET) for name, seconds in others]
        show(f"Lakehouses beside one file, {rows:,} rows, {commits} commits", found)
        for curator in curators.values():
            curator.close()


if __name__ == "__main__":
    main()
