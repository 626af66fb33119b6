"""Private questions over two tables beside the same join on plain DuckDB, from the files to the answer, in this run.

Visits of a tenth as many people, and one row about each of them. Both tables are about the same people, so that the
rows of one in both go or come together.

- by region: visits with what is known of whose they are, counted and averaged by region
- by region and kind: the same by kind of visit as well
- a public table: visits with a list of prices
- per person: how many visits people have, by region

Limits *fit* where they hold for all but a few people (10 groups, 25 rows in each), and *bind* where nearly everybody
must leave out rows (3 groups, 2 rows). The claim is for joins of the two large tables, limits that fit and ids that are
numbers without large gaps; the plain join with a list of ten prices takes less time than counting anything by person.

    python bench/joins.py [visits, default 1000000]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
from _timing import Row, show

from discreet import Budget, Curator

REPEATS = 3
REGIONS, KINDS = 20, 10
LIMITS = {"fit": (10, 25), "bind": (3, 2)}
CLAIMED = {("fit", "by region"), ("fit", "by region and kind"), ("fit", "folded per person, then joined")}

QUESTIONS = {
    "by region": (
        "SELECT p.region, COUNT(*) AS n, AVG(v.charge) AS s FROM visits AS v JOIN people AS p "
        "ON v.person = p.person {where} GROUP BY p.region"
    ),
    "by region and kind": (
        "SELECT p.region, v.kind, COUNT(*) AS n, SUM(v.charge) AS s FROM visits AS v JOIN people AS p "
        "ON v.person = p.person {where} GROUP BY p.region, v.kind"
    ),
    "with a public table": (
        "SELECT v.kind, COUNT(*) AS n, SUM(v.charge) AS s FROM visits AS v JOIN prices AS l ON v.kind = l.kind "
        "{where} GROUP BY v.kind"
    ),
    "folded per person, then joined": (
        "SELECT p.region, AVG(t.visits) AS m FROM (SELECT person, COUNT(*) AS visits FROM visits AS v {where} "
        "GROUP BY person) AS t JOIN people AS p ON t.person = p.person GROUP BY p.region"
    ),
}


def generate(folder: Path, visits: int) -> None:
    people = visits // 10
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        for name, select in {
            "people": (
                f"SELECT i AS person, CAST(floor(random() * {REGIONS}) AS BIGINT) AS region FROM range({people}) t(i)"
            ),
            "visits": f"SELECT CAST(floor(random() * {people}) AS BIGINT) AS person, CAST(floor(random() * {KINDS}) AS "
            f"BIGINT) AS kind, random() * 1000 AS charge FROM range({visits})",
            "prices": f"SELECT i AS kind, 10.0 * i AS price FROM range({KINDS}) t(i)",
        }.items():
            connection.execute(f"COPY ({select}) TO '{folder / name}.parquet'")


def curator_of(folder: Path, which: str) -> Curator:
    curator = Curator(str(folder / f"ledger_{which}"), anchor=folder / f"anchor_{which}")
    groups, rows = LIMITS[which]
    limits = {"unit": "person", "max_groups": groups, "max_rows": rows}
    budget = Budget(epsilon=10**6, delta="1e-3")
    regions, kinds = list(range(REGIONS)), list(range(KINDS))
    curator.public(str(folder / "prices.parquet"), name="prices")
    curator.protect(
        str(folder / "people.parquet"), name="people", account="p", budget=budget, keys={"region": regions}, **limits
    )
    curator.protect(
        str(folder / "visits.parquet"),
        name="visits",
        account="p",
        keys={"kind": kinds},
        bounds={"charge": (0, 1000)},
        **limits,
    )
    return curator


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(sql: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> tuple[float, float]:
    """The least times of ours and of DuckDB, in turn; no repetition asks what was asked before."""
    ours, theirs = [], []
    for place in range(REPEATS):
        asked = sql.format(where=f"WHERE v.kind > {-1 - place}")
        ours.append(timed(lambda asked=asked: curator.ask(asked, epsilon=1, delta="1e-6")))  # type: ignore[misc]
        theirs.append(timed(lambda asked=asked: plain.execute(asked).fetchall()))  # type: ignore[misc]
    return min(ours), min(theirs)


def main() -> None:
    visits = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name, duckdb.connect() as plain:
        folder = Path(name)
        generate(folder, visits)
        for table in ("people", "visits", "prices"):
            plain.execute(f"CREATE VIEW {table} AS SELECT * FROM '{folder / table}.parquet'")
        for which in LIMITS:
            with curator_of(folder, which) as curator:
                rows = [
                    Row(what, *compare(sql, curator, plain), Fraction(4) if (which, what) in CLAIMED else None)
                    for what, sql in QUESTIONS.items()
                ]
            title = f"{visits // 10:,} people, {visits:,} visits, limits that {which}, beside the plain join"
            show(title, rows, unit="ms", per=1e-3)


if __name__ == "__main__":
    main()
