"""Windows and aggregates over released groups: values as DuckDB has them, and intervals that hold every truth in them.

The referee is DuckDB on a table of the released groups: the same outer SELECT on their values must give the same
values, and on any other values within the intervals nothing but what the intervals of the answer hold.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from discreet.noise import SeededBits, uniform_below
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post import windows as windows_module
from discreet.plan.post.outputs import NoisyNumber, finish
from discreet.plan.post.step_evaluation import StepContext, apply_steps
from discreet.plan.post.steps import FilterGroups, find_measured_columns
from discreet.sql.select import parse

COLUMNS = {
    "g": ColumnSchema(name="g", type=Type.TEXT),
    "h": ColumnSchema(name="h", type=Type.INT),
    "x": ColumnSchema(name="x", type=Type.INT, bounds=ColumnBounds(Fraction(0), Fraction(9))),
}
SCHEMAS = {"t": TableSchema(name="t", columns=COLUMNS)}
PLAIN = duckdb.connect(config={"threads": 1})
INNER = "(SELECT g, h, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g, h)"

KNOWN = """
SELECT g, h, n, SUM(n) OVER () AS a, 100.0 * n / SUM(n) OVER (PARTITION BY g) AS b FROM {inner};
SELECT g, h, LAG(n) OVER (ORDER BY g, h) AS a, s - LEAD(s, 2) OVER (ORDER BY h, g) AS b FROM {inner};
SELECT g, h, SUM(s) OVER (ORDER BY g) AS a, SUM(n) OVER (PARTITION BY g ORDER BY h DESC) AS b FROM {inner};
SELECT g, h, AVG(n) OVER (ORDER BY g, h ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM {inner};
SELECT g, h, MAX(n) OVER (ORDER BY h, g ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a,
  MIN(s) OVER (PARTITION BY h ORDER BY g) AS b, COUNT(*) OVER (PARTITION BY h) AS c FROM {inner};
SELECT g, h, FIRST_VALUE(n) OVER (PARTITION BY h ORDER BY g DESC) AS a, ROW_NUMBER() OVER (ORDER BY h, g) AS b,
  LAST_VALUE(s) OVER (ORDER BY h) AS c, DENSE_RANK() OVER (ORDER BY g) AS d FROM {inner} WHERE h = 1 OR g = 'b';
SELECT g, h, SUM(n) OVER (ORDER BY h, g ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS a,
  AVG(s) OVER (ORDER BY h, g ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS b FROM {inner};
SELECT AVG(n) AS a, MAX(n) AS b, SUM(n) AS c, COUNT(*) AS d, MIN(s) AS e, SUM(n + s) AS f FROM {inner};
SELECT g, SUM(n) AS a, COUNT(*) AS b, AVG(s) AS c, SUM(n) FILTER (WHERE h = 1) AS d, AVG(h) AS e FROM
  {inner} GROUP BY g;
SELECT h + 1 AS k, MAX(n) - MIN(n) AS a, SUM(s) * 1.0 / SUM(SUM(s)) OVER () AS b FROM {inner} GROUP BY 1;
SELECT g, MAX(r) AS a FROM (SELECT g, h, SUM(n) OVER (PARTITION BY g ORDER BY h) AS r FROM {inner}) GROUP BY g
"""
UNKNOWN = """
SELECT g, h, RANK() OVER (ORDER BY n DESC) AS a FROM {inner};
SELECT g, h, RANK() OVER (PARTITION BY g ORDER BY s, h) AS a, DENSE_RANK() OVER (ORDER BY n) AS b FROM {inner};
SELECT g, h, SUM(n) OVER (ORDER BY n DESC, g, h) AS a, LAG(n) OVER (ORDER BY s, g, h) AS b FROM {inner};
SELECT g, h, AVG(n) OVER (ORDER BY s, g, h) AS a, MAX(n) OVER (ORDER BY s, g, h) AS b FROM {inner};
SELECT g, h, COUNT(*) OVER (ORDER BY s) AS a, SUM(s) OVER () AS b FROM {inner} WHERE n > 3 AND s < 30;
SELECT COUNT(*) AS a, SUM(n) AS b, MAX(s) AS c, MIN(n) AS d, AVG(n) AS e FROM {inner} WHERE n >= 4 OR h = 2;
SELECT g, COUNT(*) AS a, SUM(s) AS b FROM {inner} WHERE n > 3 GROUP BY g HAVING SUM(s) > 8;
SELECT g, COUNT(*) AS a FROM (SELECT g, h, RANK() OVER (PARTITION BY g ORDER BY n) AS r FROM {inner}) WHERE r <= 2
  GROUP BY g
"""


def _texts(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split(";")]


def released(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Groups with intervals, and truths within them."""
    bits = SeededBits(seed)

    def below(most: int) -> int:
        return int(uniform_below(most, bits=bits))

    groups = sorted({("abc"[below(3)], below(3)) for _ in range(1 + below(6))})
    rows, truths = [], []
    for g, h in groups:
        n, s = below(11) - 2, below(45) - 5
        low, high = n - below(3), n + below(3)
        least, most = s - below(9), s + below(9)
        rows.append({"g": g, "h": h, "n": NoisyNumber(n, low, high), "s": NoisyNumber(s, least, most)})
        truths.append({"g": g, "h": h, "n": low + below(high - low + 1), "s": least + below(most - least + 1)})
    return rows, truths


def ours(asked: Question, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {"count": "n", "sum": "s"}
    base = [
        {"g": r["g"], "h": r["h"]} | {a.name: r[names[a.kind]] for a in asked.aggregates if a.kind in names}
        for r in rows
    ]
    steps = asked.steps if asked.having is None else (FilterGroups(asked.having), *asked.steps)
    shown = apply_steps(steps, base, StepContext(), find_measured_columns(asked))
    return list(finish(replace(asked, having=None), shown))


def theirs(text: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    plain = [[p.value if isinstance(p, NoisyNumber) else p for p in row.values()] for row in rows]
    values = ", ".join(f"('{g}', {h}::BIGINT, {n}::BIGINT, {s}::BIGINT)" for g, h, n, s in plain)
    found = PLAIN.execute(text.format(inner=f"(SELECT * FROM (VALUES {values}) AS v(g, h, n, s)) AS released"))
    names = [column[0] for column in found.description or []]
    return [dict(zip(names, map(_finite, row), strict=True)) for row in found.fetchall()]


def _finite(value: Any) -> Any:
    """A quotient by zero has no value here."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


KEYS = ("g", "h", "k")


def keyed(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row.get(name) for name in KEYS): row for row in rows}


def _near(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(abs(Fraction(one) - Fraction(other)) <= Fraction(1, 10**9))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", _texts(KNOWN + ";" + UNKNOWN))
def test_values_are_those_of_plain_sql(text: str) -> None:
    asked = parse(text.format(inner=INNER), SCHEMAS)
    for seed in range(15):
        rows, _ = released(seed)
        mine, plain = keyed(ours(asked, rows)), keyed(theirs(text, rows))
        assert mine.keys() == plain.keys()
        for key, row in mine.items():
            for name in row.keys() - set(KEYS):
                part = row[name]
                assert _near(part.value if isinstance(part, NoisyNumber) else part, plain[key][name]), (seed, key, name)


def _held(part: Any, truth: Any) -> bool:
    if not isinstance(part, NoisyNumber) or truth is None:
        return truth is None or bool(part == truth)
    slack = Fraction(1, 10**9)
    return bool(part.low - slack <= Fraction(truth) <= part.high + slack)


def held(text: str, seeds: range) -> bool:
    asked = parse(text.format(inner=INNER), SCHEMAS)
    for seed in seeds:
        rows, truths = released(seed)
        mine, plain = keyed(ours(asked, rows)), keyed(theirs(text, truths))
        for key in mine.keys() & plain.keys():  # a filter may keep other groups; those of both are compared
            if not all(_held(mine[key][name], plain[key][name]) for name in mine[key].keys() - set(KEYS)):
                return False
    return True


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", _texts(KNOWN + ";" + UNKNOWN))
def test_intervals_hold_whatever_the_truth_is(text: str) -> None:
    assert held(text, range(30))


def _exact(part: Any) -> Any:
    return NoisyNumber(part.value, part.value or 0, part.value or 0) if isinstance(part, NoisyNumber) else part


@pytest.mark.parametrize("text", _texts(KNOWN))
def test_intervals_are_no_wider_than_the_noise(text: str) -> None:
    """Without noise, everything is known."""
    asked = parse(text.format(inner=INNER), SCHEMAS)
    rows, _ = released(3)
    exact: list[dict[str, Any]] = [{name: _exact(part) for name, part in row.items()} for row in rows]
    for row in ours(asked, exact):
        for part in row.values():
            if isinstance(part, NoisyNumber) and part.value is not None:
                assert part.high - part.low <= 1e-9


def test_an_order_by_noisy_numbers_taken_for_certain_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows_module._Partition, "is_known", True)
    assert not held(_texts(UNKNOWN)[0], range(60))


def test_a_filter_by_noisy_numbers_taken_for_certain_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "discreet.plan.post.step_evaluation.ReleasedGroup.certain",
        lambda self, condition: self.value(condition) is True,
    )
    assert not held(_texts(UNKNOWN)[5], range(60))
