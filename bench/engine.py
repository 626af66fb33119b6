"""What exact, bounded reading costs beside plain DuckDB on the same Parquet file, CPU time, measured in this run.

Row level: COUNT and AVG by 1,000 groups, over clipped values. User level: the same with at most 3 groups and 1 row for
each user, beside DuckDB's COUNT(DISTINCT user) by group. Users own 1.2, 2 or 10 rows on average: almost nobody, one in
seven, and almost everybody is above the limit of groups.

    python bench/engine.py [rows, default 1000000]
"""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb
from _timing import Row, cpu, show

from discreet.engines import DuckDB
from discreet.plan.nodes import Column
from discreet.plan.reading import Bounding, Reading, Statistic
from discreet.plan.types import Type

REPEATS = 3
THREADS = 2
USERS = {"few": 1.2, "several": 2.0, "most": 10.0}  # rows per user
COLUMNS = {**dict.fromkeys(USERS, Type.INT), "g": Type.INT, "x": Type.FLOAT, "t": Type.TEXT}
STEPS = 20  # of the grid: 2^-20


def generate(path: Path, rows: int) -> None:
    users = ", ".join(f"CAST(random() * {rows / share} AS BIGINT) AS {name}" for name, share in USERS.items())
    with duckdb.connect(config={"threads": THREADS}) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT {users}, CAST(floor(random() * 1000) AS BIGINT) AS g, random() * 1000 - 200 AS x, "
            f"CAST(CAST(floor(random() * 20) AS INT) AS VARCHAR) AS t FROM range({rows})) TO '{path}'"
        )


def reading(bounding: Bounding | None) -> Reading:
    x = Column("x", Type.FLOAT)
    total = Statistic(kind="sum", argument=x, exponent=-STEPS, low=0, high=500 << STEPS, shift=250 << STEPS)
    return Reading(
        table="t",
        keys=(Column("g", Type.INT),),
        bounding=bounding,
        statistics=(Statistic(kind="rows"), Statistic(kind="values", argument=x), total),
    )


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        generate(path, rows)
        with DuckDB(threads=THREADS) as engine, duckdb.connect(config={"threads": THREADS}) as plain:
            engine.register("t", path, COLUMNS)

            def ask(sql: str) -> float:
                return cpu(lambda: plain.execute(sql.format(t=f"read_parquet('{path}')")).fetchall(), REPEATS)

            by_row = cpu(lambda: engine.read(reading(None)), REPEATS)
            clipped = ask("SELECT g, COUNT(*), AVG(LEAST(GREATEST(x, 0), 500)) FROM {t} GROUP BY g")
            results = [Row("row level, COUNT and AVG by group", by_row, clipped, Fraction(3, 2))]
            for name, share in USERS.items():
                limits = Bounding(unit=name, groups=3, rows=1, salt="salt")
                ours = cpu(lambda limits=limits: engine.read(reading(limits)), REPEATS)  # type: ignore[misc]
                distinct = ask(f"SELECT g, COUNT(DISTINCT {name}) FROM {{t}} GROUP BY g")
                results.append(Row(f"user level, {share} rows per user", ours, distinct, Fraction(7, 2)))
    show(f"engines/duckdb, {rows:,} rows", results, unit="ms", per=1e-3)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
