"""What a question over a CSV file costs beside plain DuckDB, which reads the same file with types that it guesses.

COUNT and AVG by group, of a file with six columns: 20 wards (texts), or 1,000 numbers, and two means. Each row is a
person, or people own two rows on average, of whom at most 3 groups and 1 row of each count. DuckDB fails on a cell that
is not of the type it guessed; here such a cell is NULL, whatever is in it. Processor time, the least of several runs.

The target is for 5,000,000 rows.

    python bench/csv_files.py [rows, default 500000]
"""

from __future__ import annotations

import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb
from _timing import Row, cpu, show

from discreet import Budget, Curator

MOST = {None: Fraction(3, 2), "user_id": Fraction(5, 2)}  # by unit
REPEATS = 3
WARDS, NUMBERS = 20, 1000
TYPES = {"user_id": "int", "ward": "text", "g": "int", "x": "float", "age": "int", "day": "date"}
QUESTIONS = {
    f"{WARDS} wards": "SELECT ward, COUNT(*) AS n, AVG(x) AS x FROM t GROUP BY ward",
    f"{NUMBERS} numbers": "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM t GROUP BY g",
    f"{NUMBERS} numbers, two means": "SELECT g, COUNT(*) AS n, AVG(x) AS x, AVG(age) AS age FROM t GROUP BY g",
}


def write(path: Path, rows: int) -> None:
    """Writes the file; every number follows from the row's own."""
    drawn = {i: f"hash(i, {i})" for i in range(5)}
    duckdb.sql(
        f"COPY (SELECT {drawn[0]} % {max(rows // 2, 1)} AS user_id, 'ward ' || {drawn[1]} % {WARDS} AS ward, "
        f"{drawn[2]} % {NUMBERS} AS g, {drawn[3]} % 1000000 / 1000 - 200 AS x, 18 + {drawn[4]} % 70 AS age, "
        f"DATE '2020-01-01' + CAST({drawn[4]} % 1000 AS INT) AS day FROM range({rows}) AS r(i)) TO '{path}'"
    )


def asked(path: Path, sql: str, unit: str | None) -> float:
    """Seconds of a question to a curator who has never read the file."""

    def once() -> None:
        with Curator(":memory:") as curator:
            curator.protect(
                str(path),
                name="t",
                unit=unit,
                types=TYPES,
                bounds={"x": (0, 500), "age": (0, 120)},
                keys={"ward": [f"ward {i}" for i in range(WARDS)], "g": list(range(NUMBERS))},
                max_groups=3,
                budget=Budget(epsilon=100, delta="1e-3"),
            )
            curator.ask(sql, epsilon=1)

    return cpu(once, REPEATS)


def plain(path: Path, sql: str) -> float:
    """Seconds of plain DuckDB."""
    with duckdb.connect() as connection:
        text = sql.replace("FROM t", f"FROM read_csv('{path}')")
        return cpu(lambda: connection.execute(text).fetchall(), REPEATS)


def main() -> None:
    """Prints seconds and ratios."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        write(path, rows)
        found = []
        for what, sql in QUESTIONS.items():
            peer = plain(path, sql)
            for unit in (None, "user_id"):
                ours = asked(path, sql, unit)
                found.append(Row(f"{what}, {'people' if unit else 'rows'}", ours, peer, MOST[unit]))
    show(f"COUNT and AVG over a CSV file of {rows:,} rows", found, "s", 1.0)


if __name__ == "__main__":
    main()
