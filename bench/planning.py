"""What a plan costs before anything is read: the slowest of many, beside one plain GROUP BY of a million rows.

The GROUP BY is that of DuckDB, with one thread, fetched as Arrow.

Every plan is made with nothing kept from the plans before it. Kinds of queries, contribution limits and currencies are
crossed with epsilons from a thousandth to a million; what a budget or a limit refuses has no plan.

    python bench/planning.py
"""

from __future__ import annotations

import functools
import gc
import math
import time
from collections.abc import Iterator
from fractions import Fraction

import duckdb
from _timing import Row, cpu, show

from discreet import Budget, Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError
from discreet.noise import SeededBits

MOST = 0.1  # seconds of processor time
EPSILONS = ("0.001", "0.1", "1", "10", "1000", "1000000")
LIMITS = ((1, 1), (3, 5), (20, 20), (100, 1), (100, 100), (1000, 1000))
BUDGETS = {
    "pure": Budget(epsilon=10**8),
    "approximate": Budget(epsilon=10**8, delta="1e-6"),
    "concentrated": Budget(rho=10**14, delta="1e-6"),
}
QUERIES = {
    "a count": "SELECT COUNT(*) AS n FROM visits",
    "sums": "SELECT SUM(cost) AS s, COUNT(*) AS n, AVG(age) AS m FROM visits",
    "a deviation": "SELECT STDDEV(cost) AS d FROM visits",
    "quantiles": "SELECT MEDIAN(age) AS m, QUANTILE_CONT(cost, 0.9) AS q FROM visits",
    "a distinct count": "SELECT COUNT(DISTINCT ward) AS d FROM visits",
    "public groups": "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY sex",
    "private groups": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "private groups, sums": "SELECT ward, COUNT(*) AS n, AVG(age) AS m, SUM(cost) AS s FROM visits GROUP BY ward",
    "private groups, medians": "SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward",
    "a cube": "SELECT sex, ward, COUNT(*) AS n FROM visits GROUP BY CUBE (sex, ward)",
    "a histogram": "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY FLOOR(age / 10)",
}


def curator(budget: Budget, groups: int, rows: int) -> Curator:
    found = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    found.protect(
        [{"patient": 1, "ward": "A", "sex": "f", "age": 40, "cost": 10.0}],
        name="visits",
        unit="patient",
        max_groups=groups,
        max_rows=rows,
        types={"patient": "int", "ward": "text", "sex": "text", "age": "int", "cost": "float"},
        bounds={"age": (0, 120), "cost": (0, 1000)},
        keys={"sex": ["f", "m"]},
        budget=budget,
    )
    return found


def forget() -> None:
    """Empties every cache of ours."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and (thing.__module__ or "").startswith("discreet"):
            thing.cache_clear()


def plans(query: str) -> Iterator[tuple[float, str]]:
    """Seconds of every plan of one query, with its circumstances."""
    for currency, budget in BUDGETS.items():
        for groups, rows in LIMITS:
            asked = curator(budget, groups, rows)
            for epsilon in EPSILONS:
                forget()
                start = time.process_time()
                try:
                    asked.explain(query, epsilon=epsilon)
                except DiscreetError:
                    continue
                yield time.process_time() - start, f"{currency}, {groups} groups, {rows} rows, epsilon {epsilon}"


def plain() -> float:
    """One GROUP BY of a million rows, fetched as Arrow."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("CREATE TABLE visits AS SELECT i % 1000 AS ward, i % 97 AS age FROM range(1000000) t(i)")
    return cpu(lambda: connection.sql("SELECT ward, COUNT(*), AVG(age) FROM visits GROUP BY ward").to_arrow_table())


def main() -> None:
    curator(BUDGETS["approximate"], 3, 3).explain(
        QUERIES["private groups"], epsilon=1
    )  # imports are measured elsewhere
    group_by, rows = plain(), []
    for name, query in QUERIES.items():
        seconds, where = max(plans(query), default=(math.nan, "refused"))
        rows.append(Row(f"{name}: {where}", seconds, group_by, Fraction(MOST) / Fraction(group_by)))
    show("The slowest plan of each kind, beside a plain GROUP BY of a million rows (CPU)", rows, unit="ms", per=1e-3)


if __name__ == "__main__":
    main()
