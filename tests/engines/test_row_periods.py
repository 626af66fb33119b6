"""A unit that is one person's rows of one period: the same on all engines, and read in named periods alone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.plan.analysis.row_periods import name_row_periods
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Literal, Output, Relation
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.relations import BaseTable, Cut, Select
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import RenewalSchedule
from tests.engines.tables import Bench

TODAY = dt.date(2026, 11, 19)
ROWS_AND_UNITS = (Statistic(kind="rows"), Statistic(kind="units"))
DAYS: list[dt.date | None] = [dt.date(2026, month, day) for month in (1, 2, 3) for day in (1, 15, 28)]
DAYS += [dt.date(2025, 12, 31), dt.date(2026, 4, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]
PEOPLE = ["Zoë", " Zoë", "b", None, ""]


def rows(kind: Type) -> list[dict[str, Any]]:
    """Each person on each day, twice; at the last moment of the day, where there are moments."""
    days = [one for one in DAYS for _ in range(2)]
    moments = [None if one is None else dt.datetime.combine(one, dt.time(23, 59, 59, 999999)) for one in days]
    listed = days if kind is Type.DATE else moments
    return [{"u": who, "d": day} for who in PEOPLE for day in listed]


def read(per: str, kind: Type, where: Expression) -> tuple[Relation, tuple[str, ...]]:
    period = RowPeriod("d", kind, per)
    columns = {"u": ColumnSchema(name="u", type=Type.TEXT), "d": ColumnSchema(name="d", type=kind)}
    columns[UNIT] = ColumnSchema(name=UNIT, type=Type.TEXT)
    schema = TableSchema(name="t", columns=columns, unit=UNIT, person="u", period=period)
    return name_row_periods(BaseTable("t", "u", period), {"t": schema}, TODAY, (where,))


def day(date: dt.date, kind: Type) -> Literal:
    value = date if kind is Type.DATE else dt.datetime.combine(date, dt.time())
    return Literal(value, kind)


def since(kind: Type, first: dt.date, before: dt.date) -> Expression:
    column = ColumnRef("d", kind)
    return call("and", call("greater_equal", column, day(first, kind)), call("less", column, day(before, kind)))


def counted(source: Relation, most: int) -> Reading:
    bounding = ContributionBounding(unit=UNIT, groups=1, rows=most, salt="pepper")
    return Reading(table="t", source=source, bounding=bounding, statistics=ROWS_AND_UNITS)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", [Type.DATE, Type.TIMESTAMP], ids=str)
@pytest.mark.parametrize("per", ["day", "week", "month", "quarter", "year"])
def test_units_are_people_in_periods(bench: Bench, per: str, kind: Type) -> None:
    """Two people, one of them spelled in two ways; rows without an id or a date are nobody's."""
    bench.load(rows(kind), {"u": Type.TEXT, "d": kind})
    source, named = read(per, kind, since(kind, dt.date(2026, 1, 1), dt.date(2026, 4, 1)))
    periods = [RenewalSchedule(per).period_of(one) for one in DAYS if one is not None]
    inside = [one for one in periods if one.isoformat() in named]
    assert bench.agreed(counted(source, 1000)) == {(): (3 * 2 * len(inside), 2 * len({*inside}))}
    assert len(inside) == {"week": 11, "year": 10}.get(per, 9)  # weeks and years reach beyond the quarter


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [Type.DATE, Type.TIMESTAMP], ids=str)
def test_limits_hold_for_each_person_and_month(bench: Bench, kind: Type) -> None:
    bench.load(rows(kind), {"u": Type.TEXT, "d": kind})
    source, named = read("month", kind, since(kind, dt.date(2026, 1, 1), dt.date(2026, 4, 1)))
    assert named == ("2026-01-01", "2026-02-01", "2026-03-01")
    assert bench.agreed(counted(source, 4)) == {(): (2 * 3 * 4, 6)}  # of 12 and 6 rows in each of three months


def test_rows_without_named_periods_are_not_read() -> None:
    """Whoever plans it, and whatever stands around it."""
    period = RowPeriod("d", Type.DATE, "month")
    table, engine = BaseTable("t", "u", period), Memory()
    engine.register("t", rows(Type.DATE), {"u": Type.TEXT, "d": Type.DATE})
    kept = (Output("u", ColumnRef("u", Type.TEXT)), Output("d", ColumnRef("d", Type.DATE)))
    named = since(Type.DATE, dt.date(2026, 1, 1), dt.date(2026, 2, 1))
    one_end = call("greater_equal", ColumnRef("d", Type.DATE), day(dt.date(2026, 1, 1), Type.DATE))
    half = call("or", named, one_end)
    other = call("and", one_end, call("is_null", ColumnRef("u", Type.TEXT)))
    for source in (
        table,
        Select(table, kept),
        Select(table, kept, one_end),
        Select(table, kept, half),
        Select(table, kept, other),
        Select(Select(table, kept), kept, named),
        Cut(source=table, by=(), rows=5),
    ):
        with pytest.raises(InvalidParameter, match="named periods"):
            engine.read(counted(source, 1))
    engine.read(counted(Select(table, kept, named), 1))
