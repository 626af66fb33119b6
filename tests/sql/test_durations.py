"""Time between moments, and today: the same numbers as DuckDB's for the same words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from discreet.curator import Curator
from discreet.curator.config import toml_file
from discreet.engines import Memory
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.plan.canonical import canonical
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.model.nodes import ColumnRef, Expression, Literal
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.plan.validation import check_reading
from discreet.privacy import Budget
from discreet.sql.functions import dates, durations
from discreet.sql.functions.grammar import read
from discreet.sql.scope import Scope
from discreet.sql.select import parse
from tests.cases import try_all
from tests.plan.tables import SCHEMAS

DAYS = [
    dt.date(*day) for day in ((1, 1, 1), (1969, 12, 31), (2020, 2, 29), (2021, 2, 28), (2021, 3, 1), (9999, 12, 31))
]
MOMENTS = [
    *(dt.datetime(*moment) for moment in ((1, 1, 1), (1969, 12, 31, 23, 59, 59, 999_999), (1970, 1, 1))),
    *(dt.datetime(2020, 2, 29, 12, 30, 59, 1), dt.datetime(2021, 1, 29, 12, 30, 59), dt.datetime(2021, 2, 28, 12, 31)),
    *(dt.datetime(2024, 3, 31, 23), dt.datetime(2024, 4, 30, 22, 59, 0, 1), dt.datetime(9999, 12, 31, 23, 59, 59)),
]
OF_MOMENTS = (
    *(f"DATE_DIFF('{unit}', a, b)" for unit in ("hour", "minute", "second", "millisecond", "microsecond")),
    *("EPOCH(a - b)", "EXTRACT(EPOCH FROM (a - b))", "DATE_PART('epoch', a - b) / 3600", "EPOCH(a)"),
    *(f"EXTRACT({part} FROM a - b)" for part in ("DAY", "HOUR", "MINUTE")),
    *("EXTRACT(YEAR FROM AGE(a, b))", "DATE_PART('month', AGE(a, b))", "EXTRACT(YEAR FROM AGE(a, DATE '2020-02-29'))"),
    *(
        "MINUTE(a)",
        "SECOND(a)",
        "EXTRACT(MINUTE FROM a)",
        "DATE_PART('second', a)",
        "DATE_DIFF('day', DATE(b), DATE(a))",
    ),
    *("EPOCH(a - DATE '2020-02-29')", "DATE_DIFF('minute', DATE '2020-02-29', a)"),
)
OF_DAYS = (
    *("EXTRACT(YEAR FROM AGE(a, b))", "EXTRACT(MONTH FROM AGE(a, b))", "DATE_PART('year', AGE(b, DATE '2021-02-28'))"),
    *("DATE_DIFF('minute', a, b)", "DATE_DIFF('hour', a, b)", "EPOCH(a)", "EXTRACT(DAY FROM a - 0)"),
    "EPOCH(CAST(a AS TIMESTAMP) - b::timestamp)",
)


TODAY = dt.date(2025, 12, 31)


def table(kind: Type) -> dict[str, TableSchema]:
    low, high = (day_number(day) for day in (dt.date.min, dt.date.max))
    bounds = ColumnBounds(low, high + Fraction(1, 2))
    times = {name: ColumnSchema(name=name, type=kind, bounds=bounds) for name in ("a", "b")}
    return {
        "stays": TableSchema(name="stays", unit="id", columns={"id": ColumnSchema(name="id", type=Type.INT), **times})
    }


def meant(text: str, kind: Type) -> Expression:
    """What an expression of two times becomes."""
    found = parse(f"SELECT AVG({text}) AS m FROM stays", table(kind)).aggregates[0].argument
    assert found is not None
    return found


def as_in_duckdb(text: str, kind: Type, values: Sequence[Any]) -> None:
    """DuckDB reads the same words; its own doubles are compared with ours."""
    plain = duckdb.connect()
    name = kind.value.upper()
    plain.execute(f"CREATE TABLE stays (a {name}, b {name})")
    pairs = [*product(values, values), (None, values[0]), (values[0], None)]
    plain.executemany("INSERT INTO stays VALUES (?, ?)", pairs)
    theirs = [value for (value,) in plain.execute(f"SELECT {text} FROM stays ORDER BY rowid").fetchall()]
    expression = meant(text, kind)
    for (a, b), known in zip(pairs, theirs, strict=True):
        ours = evaluate(expression, {"a": a, "b": b})
        assert ours == (known if known is None else pytest.approx(float(known), rel=1e-15)), (a, b)


@pytest.mark.ci
def test_durations_of_moments_are_as_in_duckdb() -> None:
    try_all(OF_MOMENTS, lambda text: as_in_duckdb(text, Type.TIMESTAMP, MOMENTS))


@pytest.mark.ci
def test_durations_of_days_are_as_in_duckdb() -> None:
    try_all(OF_DAYS, lambda text: as_in_duckdb(text, Type.DATE, DAYS))


def test_days_that_no_number_has_are_no_days() -> None:
    """A number of days whose negative is no number of 64 bits leads to no day, and is no error."""
    for text in ("a - (-9223372036854775808)", "a - 9223372036854775807", "a + 9223372036854775807"):
        found = parse(f"SELECT COUNT({text}) AS n FROM stays", table(Type.DATE)).aggregates[0].argument
        assert found is not None
        counted = Reading(table="stays", statistics=(Statistic(kind="values", argument=found),))
        check_reading(counted, {"stays": {"a": Type.DATE}})
        assert evaluate(found, {"a": DAYS[2]}) is None, text


@pytest.mark.ci
def test_mutant_an_age_begins_with_the_month(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "_within_month", lambda value: call("month", value))
    with pytest.raises(BaseExceptionGroup):
        test_durations_of_days_are_as_in_duckdb()


@pytest.mark.ci
def test_mutant_units_begin_with_the_first_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    def elapsed(size: int, one: Expression, other: Expression) -> Expression:
        passed = call("microseconds_between", durations.moment(one), durations.moment(other))
        return call("integer_divide", passed, Literal(size, Type.INT))

    monkeypatch.setattr(dates, "boundaries", elapsed)
    with pytest.raises(BaseExceptionGroup):
        test_durations_of_moments_are_as_in_duckdb()


def test_nested_durations_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten parts inside each other, each read twice, would be a thousand."""
    text, seen = "a", list[exp.Expr]()
    for _ in range(10):
        text = f"(a + EXTRACT(DAY FROM ({text} - 0)))"

    def counted(node: exp.Expr, scope: Scope) -> Expression:
        seen.append(node)
        return read(node, scope)

    monkeypatch.setattr(dates, "read", counted)
    parse(f"SELECT COUNT(*) AS n FROM stays WHERE {text} > DATE '2020-01-01'", table(Type.DATE))
    assert len(seen) <= 50


# ---------------------------------------------------------------------------------------------------------------- today

WRITTEN = [
    ("day < CURRENT_DATE", "day < DATE '2025-12-31'"),
    ("day < today()", "day < DATE '2025-12-31'"),
    ("day < CURRENT_DATE()", "day < DATE '2025-12-31'"),
    ("seen >= CURRENT_DATE - INTERVAL '6 months'", "seen >= DATE '2025-12-31' - INTERVAL 6 MONTH"),
    ("day = now()::date", "day = DATE '2025-12-31'"),
    ("day = CAST(CURRENT_TIMESTAMP AS DATE)", "day = DATE '2025-12-31'"),
    ("seen > date_trunc('month', now())", "seen > DATE_TRUNC('month', DATE '2025-12-31')"),
    ("seen > date_trunc('day', current_timestamp)", "seen > DATE '2025-12-31'"),
    ("EXTRACT(YEAR FROM AGE(day)) > 3", "EXTRACT(YEAR FROM AGE(DATE '2025-12-31', day)) > 3"),
]


def test_today_stands_in_the_plan_as_if_it_were_written() -> None:
    def same(pair: tuple[str, str]) -> None:
        today, written = (f"SELECT COUNT(*) AS n FROM visits WHERE {text}" for text in pair)
        assert canonical(parse(today, SCHEMAS, today=TODAY)) == canonical(parse(written, SCHEMAS))

    try_all(WRITTEN, same)


def test_a_column_that_is_called_so_is_no_day() -> None:
    columns = {"id": Type.INT, "current_date": Type.DATE}
    made = {name: ColumnSchema(name=name, type=kind) for name, kind in columns.items()}
    schemas = {"t": TableSchema(name="t", unit="id", columns=made)}
    (column,) = parse("SELECT current_date, COUNT(*) AS n FROM t GROUP BY 1", schemas, today=TODAY).keys
    assert column.expression == ColumnRef("current_date", Type.DATE)


@pytest.mark.parametrize("word", ["now()", "current_timestamp", "CAST(now() AS TIMESTAMP)"])
def test_the_time_of_day_is_not_declared(word: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(f"SELECT COUNT(*) AS n FROM visits WHERE seen < {word}", SCHEMAS, today=TODAY)
    assert "CURRENT_DATE" in refused.value.hint


def test_a_question_of_another_day_is_another_question(tmp_path: Path) -> None:
    sql, spent = "SELECT COUNT(*) AS n FROM t WHERE d < CURRENT_DATE", []
    days = (TODAY, TODAY, TODAY + dt.timedelta(days=1))
    for day in days:
        with Curator(tmp_path / "book", engine=Memory(), today=day) as curator:
            rows = [{"d": TODAY}] * 3
            curator.protect(rows, name="t", types={"d": "date"}, budget=Budget(epsilon=10))
            answer = curator.ask(sql, epsilon=1)
            spent.append((answer.replayed, str(curator.budget("t").spent)))
    assert spent == [(False, "epsilon=1"), (True, "epsilon=1"), (False, "epsilon=2")]


@pytest.mark.parametrize("day", ["2025-12-31", dt.datetime(2025, 12, 31), 20251231])
def test_what_is_no_day_is_refused_before_there_is_a_ledger(tmp_path: Path, day: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Curator(tmp_path / "book", today=day)
    assert refused.value.name == "today"
    assert not (tmp_path / "book").exists()


def test_a_file_declares_it() -> None:
    assert toml_file.parse("today = 2025-12-31", Path("/data")).today == TODAY
    for wrong in ('"2025-12-31"', "2025-12-31T10:00:00", "5"):
        with pytest.raises(InvalidParameter) as refused:
            toml_file.parse(f"today = {wrong}", Path("/data"))
        assert refused.value.name == "today"
