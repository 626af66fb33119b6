"""Limits that one private release finds, compared with the best ones that a steward could have declared.

Four tables of people with several rows each, 25 questions of COUNT, SUM and AVG at epsilon 1: of the whole table, by
groups, and filtered. Errors are those against plain SQL on all rows, so that rows beyond a limit count as well as
noise. The best declared limit is that with the least median error, tried out on the data, which no steward may do. The
price is a fiftieth of an account of epsilon 10. Three of the tables are in ../shared/data; without it the made-up one
is judged alone.

    python bench/limits.py [ROWS OF THE MADE-UP TABLE]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from _tables_of_people import Case, made_up, real

import discreet
from discreet.noise import SeededBits

TRIED = (1, 2, 5, 13, 34, 89, 233, 610, 1597)
TURNS = 3
PRICE = "0.2"


def median_error(case: Case, plain: Any, *, seed: int, **limits: Any) -> tuple[float, str]:
    """Returns the median error of all numbers of the questions, each relative to the true one, and what was counted."""
    curator = discreet.Curator.for_tests(bits=SeededBits(seed))
    budget = discreet.Budget(epsilon=10**6, delta="1e-3")
    curator.protect(str(case.source), name=case.name, unit=case.unit, budget=budget, **case.declared, **limits)
    found, counted = [], ""
    for sql, _ in case.questions:
        if "DISTINCT" in sql:
            continue
        answer = curator.ask(sql, epsilon=1)
        counted = counted or answer.counted
        truth = {tuple(row[:-1]): row[-1] for row in plain.execute(sql).fetchall()}
        for record in answer:
            exact = truth.get(tuple(value for name, value in record.items() if not name.startswith("x")))
            if exact is not None and record["x"] is not None:
                found.append(abs(float(record["x"]) - float(exact)) / max(abs(float(exact)), 1e-9))
    curator.close()
    return statistics.median(found), counted


def main() -> None:
    """Prints for each table the ratio of the median error to that of the best declared limit; at most 3 is wanted."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    print(f"{'table':12} {'best declared':>14} {'its error':>10} {'found':>8} {'error':>8} {'ratio':>6}")
    with TemporaryDirectory() as folder:
        for case in (*real(Path(folder)), made_up(Path(folder), rows)):
            if case.unit is None or case.facts:
                continue
            plain = duckdb.connect()
            plain.execute(f"CREATE VIEW {case.name} AS {case.rows}")
            declared = {n: median_error(case, plain, seed=1, limits=discreet.Limits(total=n))[0] for n in TRIED}
            best = min(declared, key=lambda limit: declared[limit])
            for turn in range(TURNS):
                error, counted = median_error(case, plain, seed=turn + 2, limits="private", limits_epsilon=PRICE)
                limit = counted.removeprefix("At most ").split()[0]
                ratio = error / declared[best]
                print(f"{case.name:12} {best:>14,} {declared[best]:>10.3%} {limit:>8} {error:>8.3%} {ratio:>5.2f}x")


if __name__ == "__main__":
    main()
