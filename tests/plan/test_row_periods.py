"""Which periods a condition names: those of every row that it may keep, and few others."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import UnsupportedQuery
from discreet.plan.analysis import row_periods
from discreet.plan.analysis.row_periods import name_all_periods
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import UNIT, Aggregate, ColumnRef, Expression, Literal, Output, Question
from discreet.plan.model.relations import BaseTable, Join, Select
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import RenewalSchedule
from discreet.sql.select import parse
from tests.cases import every, try_all

TODAY = dt.date(2026, 11, 19)
KINDS = {"u": Type.INT, "d": Type.DATE, "t": Type.TIMESTAMP, "n": Type.INT}


def schemas(column: str = "d", per: str = "month") -> dict[str, TableSchema]:
    columns = {name: ColumnSchema(name=name, type=kind) for name, kind in KINDS.items()}
    columns[UNIT] = ColumnSchema(name=UNIT, type=Type.TEXT)
    period = RowPeriod(column, KINDS[column], per)
    own = TableSchema(name="v", columns=columns, unit=UNIT, person="u", period=period, account="a")
    wards = {name: ColumnSchema(name=name, type=kind) for name, kind in {"n": Type.INT, "d": Type.DATE}.items()}
    return {"v": own, "w": TableSchema(name="w", columns=wards, public=True, unique=(("n",),))}


def named(sql: str, column: str = "d", per: str = "month") -> list[str]:
    declared = schemas(column, per)
    _, found = name_all_periods(parse(sql, declared, None, TODAY), declared, TODAY)
    return [day[2:7] if per == "month" else day for day in found]


CASES = {
    "d >= '2026-01-01' AND d < '2026-02-01'": ["26-01"],
    "d BETWEEN '2026-01-31' AND '2026-03-01' AND n > 3": ["26-01", "26-02", "26-03"],
    "d = '2026-05-17'": ["26-05"],
    "d IN ('2026-05-17', '2025-12-31')": ["25-12", "26-05"],
    "DATE_TRUNC('month', d) = '2026-05-01'": ["26-05"],
    "EXTRACT(year FROM d) = 2026 AND EXTRACT(month FROM d) IN (1, 11)": ["26-01", "26-11"],
    "(d >= '2026-01-05' AND d < '2026-01-09') OR d = '2026-03-31'": ["26-01", "26-03"],
    "NOT (d < '2026-04-01' OR d >= '2026-05-01')": ["26-04"],
    "d >= '2026-01-01' AND d < '2026-01-01'": ["26-11"],  # no row can count, and something is charged all the same
    "CAST(d AS TIMESTAMP) >= '2026-02-03 10:00:00' AND d <= '2026-02-04'": ["26-02"],
    "d >= CURRENT_DATE - INTERVAL 1 DAY AND d <= CURRENT_DATE": ["26-11"],
}


@every("where", CASES)
def test_conditions_name_periods(where: str) -> None:
    check_named(where)


def check_named(where: str) -> None:
    assert named(f"SELECT COUNT(*) AS n FROM v WHERE {where}") == CASES[where]
    inner = f"SELECT COUNT(*) AS n FROM (SELECT n, d AS e FROM v WHERE {where}) AS x WHERE n > 5"
    assert named(inner) == CASES[where]


OTHERS = {
    "SELECT COUNT(*) AS n FROM (SELECT n, d AS e FROM v) AS x WHERE e = '2026-03-03'": ["26-03"],
    "SELECT COUNT(*) AS n FROM v JOIN w ON v.n = w.n WHERE v.d = '2026-03-03'": ["26-03"],
    "WITH x AS (SELECT * FROM v WHERE d >= '2026-03-03') SELECT COUNT(*) AS n FROM x WHERE d < '2026-05-01'": [
        "26-03",
        "26-04",
    ],
}


@pytest.mark.parametrize("sql", OTHERS)
def test_conditions_around_a_subquery_or_join_count(sql: str) -> None:
    assert named(sql) == OTHERS[sql]


def test_moments_and_other_lengths() -> None:
    last = "SELECT COUNT(*) AS n FROM v WHERE t >= '2026-02-28 23:59:59.999999' AND t < '2026-03-01'"
    assert named(last, "t") == ["26-02"]
    assert named(last.replace("< '2026-03-01'", "<= '2026-03-01'"), "t") == ["26-02", "26-03"]
    day = "SELECT COUNT(*) AS n FROM v WHERE d = '2026-05-17'"
    lengths = {"day": "2026-05-17", "week": "2026-05-11", "quarter": "2026-04-01", "year": "2026-01-01"}
    assert {per: named(day, per=per) for per in lengths} == {per: [first] for per, first in lengths.items()}


REFUSED = {
    "": "does not name any",
    "WHERE n > 3": "does not name any",
    "WHERE d >= '2026-01-01'": "more than 400 periods",
    "WHERE d IS NOT NULL": "more than 400 periods",
    "WHERE d >= '2026-01-01' OR n > 3": "more than 400 periods",
    "WHERE t >= '2026-01-01' AND t < '2026-02-01'": "does not name any",  # another column of dates
}


@pytest.mark.parametrize("where", REFUSED)
def test_the_periods_must_be_named(where: str) -> None:
    with pytest.raises(UnsupportedQuery, match=REFUSED[where]) as refused:
        named(f"SELECT COUNT(*) AS n FROM v {where}")
    proposed = str(refused.value.hint).partition("WHERE ")[2].rstrip(".")
    assert named(f"SELECT COUNT(*) AS n FROM v WHERE {proposed}") == ["26-10"]


def test_a_date_of_another_table_names_nothing() -> None:
    with pytest.raises(UnsupportedQuery, match="does not name any"):
        named("SELECT COUNT(*) AS n FROM v JOIN w ON v.n = w.n WHERE w.d = '2026-03-03'")


def question(source: BaseTable | Join | Select, where: Expression | None) -> Question:
    one = Aggregate(name="#1", kind="count")
    return Question(
        table="v", source=source, where=where, aggregates=(one,), outputs=(Output("n", ColumnRef("#1", Type.INT)),)
    )


TABLE = BaseTable("v", "u", RowPeriod("d", Type.DATE, "month"))


def test_what_an_outer_join_adds_on_its_right_is_not_narrowed() -> None:
    """A row that is not found there makes a row of NULLs, which may count."""
    where = call("equal", ColumnRef("d", Type.DATE), Literal(dt.date(2026, 3, 3), Type.DATE))
    left = Select(TABLE, (Output("k", ColumnRef("n", Type.INT)),), where)
    right = Select(TABLE, (Output("m", ColumnRef("n", Type.INT)), Output("d", ColumnRef("d", Type.DATE))))
    pairs = ((ColumnRef("k", Type.INT), ColumnRef("m", Type.INT)),)
    inner = Join(left=left, right=right, on=pairs)
    made, found = name_all_periods(question(inner, where), schemas(), TODAY)
    assert found == ("2026-03-01",)
    assert isinstance(made.source, Join)
    outer = Join(left=left, right=right, on=pairs, outer=True)
    with pytest.raises(UnsupportedQuery, match="does not name any"):
        name_all_periods(question(outer, where), schemas(), TODAY)


# ---------------------------------------------------------------------------------------- every row that may be counted

D = ColumnRef("d", Type.DATE)
FEW = [dt.date(2026, 1, 1) + dt.timedelta(days=9 * step) for step in range(50)]
LITERALS = st.sampled_from(FEW).map(lambda day: Literal(day, Type.DATE))
COMPARED = st.builds(
    call,
    st.sampled_from(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]),
    st.just(D),
    LITERALS,
)
BY_MONTH = st.integers(1, 12).map(
    lambda month: call("equal", call("month", D), Literal(month, Type.INT)),
)
CONDITIONS = st.recursive(
    COMPARED | BY_MONTH,
    lambda inner: (
        st.builds(call, st.sampled_from(["and", "or"]), inner, inner) | inner.map(lambda part: call("not", part))
    ),
    max_leaves=5,
)
INSIDE = call(
    "and",
    call("greater_equal", D, Literal(FEW[0], Type.DATE)),
    call("less_equal", D, Literal(FEW[-1], Type.DATE)),
)


def kept_months(condition: Expression) -> set[str]:
    days = [FEW[0] + dt.timedelta(days=step) for step in range((FEW[-1] - FEW[0]).days + 1)]
    schedule = RenewalSchedule("month")
    return {schedule.period_of(day).isoformat() for day in days if evaluate(condition, {"d": day}) is True}


@given(CONDITIONS)
def test_every_row_that_a_condition_keeps_is_in_a_named_period(condition: Expression) -> None:
    where = call("and", INSIDE, condition)
    made, found = name_all_periods(question(TABLE, where), schemas(), TODAY)
    assert kept_months(where) <= set(found)
    assert isinstance(made.source, Select)
    assert made.source.where is not None
    for day in FEW:  # the filter keeps all days of the named periods, and no others
        inside = RenewalSchedule("month").period_of(day).isoformat() in found
        assert evaluate(made.source.where, {"d": day}) is inside


def test_a_period_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that leaves out the last period."""
    honest = row_periods._possible
    monkeypatch.setattr(row_periods, "_possible", lambda *told: sorted(honest(*told))[:-1])
    with pytest.raises(BaseExceptionGroup):
        try_all(CASES, check_named)
