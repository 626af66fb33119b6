"""PIVOT over public values: plain SQL without noise, noise and price of GROUP BY, and no column that data decide."""

from __future__ import annotations

import math
import re
from typing import Any

import duckdb
import polars as pl
import pytest

from discreet import audit
from discreet.errors import UnsupportedQuery
from discreet.privacy import Budget, Neighbours
from discreet.sql.clauses import pivot_clause
from tests.audit.held import clinic
from tests.cases import try_all
from tests.curator.clinic import DECLARED, visits
from tests.curator.test_unions import rounded
from tests.effort import some

KINDS = ["check", "fever", "fracture"]
ROWS = [
    row | {"charge": 12.5 if row["charge"] == 12.5 else 7.5}
    for row in visits(5, patients=60)
    if row["ward"] in ("A", "B", "C") and row["age"] in (5, 44, 67) and row["kind"] in KINDS
]
ASKED = (
    "PIVOT visits ON ward IN ('A', 'B') USING COUNT(*) GROUP BY kind",
    "PIVOT visits ON ward USING AVG(age) AS mean, SUM(age) GROUP BY kind ORDER BY kind DESC LIMIT 2",
    "PIVOT visits ON ward GROUP BY kind",
    "PIVOT visits ON kind IN ('fever', 'check'), ward USING COUNT(*) GROUP BY ward",
    (
        "FROM visits PIVOT (COUNT(*) AS n, SUM(charge) AS s FOR kind IN ('check', 'fever' AS hot) GROUP BY ward) "
        "ORDER BY ward"
    ),
    (
        "SELECT ward, hot - cold AS more FROM visits PIVOT (COUNT(age) FOR kind IN ('check' AS cold, 'fever' AS hot) "
        "GROUP BY ward) AS p"
    ),
    (
        'SELECT ward, "true" AS young FROM (PIVOT (SELECT ward, age < 50 AS early FROM visits) ON early IN (TRUE) '
        "USING COUNT(*) GROUP BY ward) AS p WHERE ward <> 'B'"
    ),
    (
        "WITH few AS (SELECT * FROM visits WHERE age > 5), p AS (PIVOT few ON ward IN ('A', 'B') "
        "USING COUNT(*) GROUP BY kind) SELECT kind, A + B AS ab FROM p"
    ),
    "WITH few AS (SELECT * FROM visits WHERE age > 5) PIVOT few ON age IN (44, 67) USING COUNT(*) GROUP BY ward",
    "SELECT AVG(A) AS a, COUNT(*) AS n FROM (PIVOT visits ON ward USING COUNT(*) GROUP BY patient)",
    (
        "SELECT AVG(fever) AS f, COUNT(*) AS n FROM (PIVOT visits ON kind IN ('fever', 'fracture') "
        "USING COUNT(age) GROUP BY patient)"
    ),
)


def test_without_noise_cells_are_those_of_plain_sql() -> None:
    plain = duckdb.connect()
    plain.register("visits", pl.DataFrame(ROWS).to_arrow())

    def same(sql: str) -> None:
        answer = curator.ask(sql, epsilon=10**12, delta="1e-6")
        names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
        cursor = plain.execute(sql)
        assert names == [part[0] for part in cursor.description or ()]
        found = rounded([tuple(row[name] for name in names) for row in answer])
        expected = rounded(cursor.fetchall())
        assert found == expected if "ORDER BY" in sql else sorted(found, key=repr) == sorted(expected, key=repr)
        assert curator.rehearse(sql).columns == answer.columns

    wide = {"max_groups": 50, "max_rows": 50, "keys": DECLARED["keys"] | {"kind": KINDS}}
    with clinic(budget=Budget(epsilon=10**14, delta="0.1"), **wide)(ROWS) as curator:
        try_all(some(ASKED, 4), same)


def test_cells_have_the_noise_and_the_price_of_groups() -> None:
    """One row is in one cell: however many columns there are, nothing is shared among them."""
    listed = "CASE WHEN kind IN ('fever', 'check') THEN kind END"
    groups = f"SELECT ward, {listed} AS k, COUNT(*) AS n FROM visits WHERE kind IN ('fever', 'check') GROUP BY 1, 2"
    with clinic()(ROWS) as curator:
        cells = curator.explain("PIVOT visits ON kind IN ('fever', 'check') GROUP BY ward", epsilon=1, delta=0)
        asked = "SELECT ward, COUNT(*) FILTER (WHERE kind = 'fever') AS a, COUNT(*) FILTER (WHERE kind = 'check') AS b"
        filtered = curator.explain(f"{asked} FROM visits GROUP BY ward", epsilon=1, delta=0)
        grouped = curator.explain(groups, epsilon=1, delta=0)
        assert cells.event == grouped.event
        assert cells.errors["fever"] == cells.errors["check"] == grouped.errors["n"]
        assert cells.errors["fever"] < 0.6 * filtered.errors["a"]


def test_a_cell_that_nothing_tells_is_null_and_anywhere() -> None:
    """Groups that are not public are shown if they are large: a cell that is not shown is unknown, and not 0."""
    rows = [{**ROWS[0], "patient": i, "ward": "A", "kind": "check"} for i in range(300)]
    rows += [{**ROWS[0], "patient": 300, "ward": "B", "kind": "check"}]
    with clinic()(rows) as curator:
        (row,) = curator.ask("PIVOT visits ON ward IN ('A', 'B') USING COUNT(*) GROUP BY kind", epsilon=1, delta="1e-6")
    assert row["kind"] == "check"
    assert abs(row["A"] - 300) < 60
    assert (row["B"], row["B_low"], row["B_high"]) == (None, -math.inf, math.inf)


REFUSED = {
    "PIVOT visits ON ward USING COUNT(*)": "says what it groups by",
    "FROM visits PIVOT (COUNT(*) FOR ward IN ('A'))": "says what it groups by",
    "PIVOT visits ON kind USING COUNT(*) GROUP BY ward": "not public",
    "PIVOT visits ON ward || kind USING COUNT(*) GROUP BY age": "not public",
    "PIVOT visits ON kind IN (kind) USING COUNT(*) GROUP BY ward": "texts, numbers or days",
    "PIVOT visits ON kind IN (SELECT kind FROM visits) USING COUNT(*) GROUP BY ward": "A subquery is answered only",
    "PIVOT visits ON ward USING age GROUP BY kind": "USING takes aggregates",
    "PIVOT visits ON ward USING COUNT(*) GROUP BY age + 1": "grouped by columns",
    "PIVOT visits ON ward USING COUNT(*) GROUP BY patient": "publish rows",
    "PIVOT visits ON age USING COUNT(*), SUM(charge) GROUP BY ward": "at most 200 columns",
    "PIVOT visits ON ward IN ('x_low') USING COUNT(*) GROUP BY kind": "cannot be called",
    "PIVOT visits ON ward IN ('A', 'A') USING COUNT(*) GROUP BY kind": "Two columns",
    "UNPIVOT visits ON age, charge INTO NAME n VALUE v": "UNPIVOT",
    "FROM visits UNPIVOT (v FOR n IN (age, charge))": "UNPIVOT",
}


def test_what_data_would_decide_is_refused_with_what_to_ask() -> None:
    with clinic()(ROWS) as curator:

        def refused(case: tuple[str, str]) -> None:
            with pytest.raises(UnsupportedQuery, match=case[1]) as raised:
                curator.explain(case[0], epsilon=1)
            (proposed,) = re.findall(r"`([^`]+)`", raised.value.hint)
            curator.explain(proposed, epsilon=1)

        try_all(REFUSED.items(), refused)


PRIVATE = (
    "PIVOT visits ON kind IN ('check', 'fever') USING SUM(charge), COUNT(*) GROUP BY ward",
    "PIVOT visits ON ward USING AVG(age) GROUP BY kind",
    "SELECT SUM(A) AS a FROM (PIVOT visits ON ward USING SUM(age) GROUP BY patient)",
)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_one_person_moves_no_input_farther_than_charged(relation: Neighbours) -> None:
    found = audit.query(clinic(neighbours=relation), PRIVATE, visits(3, patients=40), neighbours=4)
    assert found.passed, found.summary()


def test_mutant_cells_of_other_columns_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pivot_clause._Pivot.columns

    def turned(*args: Any) -> list[Any]:
        *parts, names = zip(*right(*args), strict=True)
        return list(zip(*parts, (*names[1:], names[0]), strict=True))

    monkeypatch.setattr(pivot_clause._Pivot, "columns", turned)
    with pytest.raises(ExceptionGroup):
        test_without_noise_cells_are_those_of_plain_sql()
