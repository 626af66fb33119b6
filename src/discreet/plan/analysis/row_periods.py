"""Which periods of its rows a query is about, from what it says of their dates; no data is looked at.

Formal guarantee: a query with budgets by period counts rows of the named periods alone. That does not rest on how its
conditions are understood: rows of other periods are filtered out before anything else is done with them, and
`plan.validation` refuses a reading where they are not. Understanding the conditions decides only which periods are
named. A period is left out where some condition that every counted row meets is TRUE for none of its days, so that the
filter changes no answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace

from discreet.errors import UnsupportedQuery
from discreet.plan.analysis.join_rows import conjuncts, moved_below, reads_only
from discreet.plan.analysis.relation_schema import Schemas
from discreet.plan.analysis.value_sets import ValueSet, possible
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Literal, Output, Question, Relation
from discreet.plan.model.nodes import columns as columns_of
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Join,
    MarkJoin,
    RelationUnion,
    Select,
    SemiJoin,
    children,
    shape,
    with_children,
)
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.types import Type
from discreet.privacy import RenewalSchedule

Conditions = tuple[Expression, ...]
"""What is TRUE for every row of a relation that counts."""

MOST_PERIODS = 400
"""The most periods that one query may be about: all days of a year are."""

_FIRST, _LAST = dt.date(1, 1, 8), dt.date(9998, 12, 31)  # every period in between has a day before and after it
_MICROSECOND = dt.timedelta(microseconds=1)


def name_all_periods(question: Question, schemas: Schemas, today: dt.date) -> tuple[Question, tuple[str, ...]]:
    """Returns a question, with those beside it, that reads rows of the periods alone that they are about, and these.

    Raises:
        UnsupportedQuery: if the conditions of one name no periods, or too many.
    """
    made = [name_periods(one, schemas, today) for one in (question, *question.beside)]
    named = {day for _, days in made for day in days}
    return replace(made[0][0], beside=tuple(one for one, _ in made[1:])), tuple(sorted(named))


def name_periods(question: Question, schemas: Schemas, today: dt.date) -> tuple[Question, tuple[str, ...]]:
    """Returns a question that reads rows of the periods alone that it is about, and the first days of these.

    Args:
        question: the question, without questions beside it.
        schemas: the declared tables by name.
        today: for the periods that a refusal proposes.

    Raises:
        UnsupportedQuery: if its conditions name no periods, or too many.
    """
    if question.source is None:
        return question, ()
    source, named = name_row_periods(question.source, schemas, today, tuple(conjuncts(question.where)))
    return (replace(question, source=source), named) if named else (question, ())


def name_row_periods(
    relation: Relation, schemas: Schemas, today: dt.date, conditions: Conditions = ()
) -> tuple[Relation, tuple[str, ...]]:
    """Returns a relation that reads rows of the periods alone that it is about, and the first days of these."""
    naming = _Naming(schemas, today)
    made = naming.rows(relation, conditions)
    return made, tuple(sorted(day.isoformat() for day in naming.named))


class _Naming:
    """Names the periods of every table with budgets by period, from the top of a relation to its tables."""

    def __init__(self, schemas: Schemas, today: dt.date) -> None:
        self._schemas, self._today = schemas, today
        self._types = {
            name: {one: column.type for one, column in schema.stored_columns.items()}
            for name, schema in schemas.items()
        }
        self.named: set[dt.date] = set()

    def rows(self, relation: Relation, conditions: Conditions) -> Relation:
        """Returns a relation, given what is TRUE for each of its rows that counts."""
        if isinstance(relation, BaseTable):
            return relation if relation.period is None else self._of_periods(relation, relation.period, conditions)
        below = [self._below(relation, place, child, conditions) for place, child in enumerate(children(relation))]
        made = [self.rows(child, told) for child, told in zip(children(relation), below, strict=True)]
        return with_children(relation, made)

    def _below(self, relation: Relation, place: int, child: Relation, conditions: Conditions) -> Conditions:
        """Returns what is TRUE for every row of a part that some row which counts is made of.

        A row that an outer join leaves out on its right makes another row appear, and what folds or ranks rows looks at
        all of them. There the conditions above say nothing.
        """
        if isinstance(relation, Select):
            return (*moved_below(relation, conditions), *conjuncts(relation.where))
        if isinstance(relation, RelationUnion):
            return conditions
        kept = isinstance(relation, Cut | SemiJoin | MarkJoin) and place == 0
        joined = isinstance(relation, Join) and (place == 0 or not relation.outer)
        return self._of(child, conditions) if kept or joined else ()

    def _of(self, relation: Relation, conditions: Conditions) -> Conditions:
        own = shape(relation, self._types)
        return tuple(part for part in conditions if reads_only(part, own))

    def _of_periods(self, table: BaseTable, period: RowPeriod, conditions: Conditions) -> Relation:
        schedule = RenewalSchedule(period.per)
        dated = [part for part in conditions if any(column.name == period.column for column in columns_of(part))]
        days = list(_possible(schedule, period, dated, *map(schedule.period_of, (_FIRST, _LAST)))) if dated else []
        if not dated or len(days) > MOST_PERIODS:
            raise _unnamed(period, schedule, self._today, too_many=bool(dated))
        days = days or [schedule.period_of(self._today)]  # no row can count, which is a release like any other
        self.named.update(days)
        kept = tuple(
            Output(name, ColumnRef(name, kind)) for name, kind in self._types[table.name].items() if name != UNIT
        )
        return Select(table, kept, _in_periods(schedule, period, days))


def _possible(
    schedule: RenewalSchedule, period: RowPeriod, conditions: Sequence[Expression], first: dt.date, last: dt.date
) -> Iterator[dt.date]:
    """Yields the periods from one to another in which all conditions may be TRUE; one too many where they are many."""
    waiting, found = [(first, last)], 0
    while waiting and found <= MOST_PERIODS:
        low, high = waiting.pop()
        inside = ValueSet.between(_moment(period, low), _moment(period, schedule.after(high), before=True))
        if not all(possible(part, {period.column: inside}).holds(True) for part in conditions):
            continue
        if low == high:
            found += 1
            yield low
            continue
        middle = schedule.period_of(low + (high - low) // 2)
        waiting += [(schedule.after(middle), high), (low, middle)]


def _moment(period: RowPeriod, day: dt.date, *, before: bool = False) -> dt.date:
    """Returns a day as a value of the column, or the last value before it."""
    if period.kind is Type.DATE:
        return day - dt.timedelta(days=1) if before else day
    moment = dt.datetime.combine(day, dt.time())
    return moment - _MICROSECOND if before else moment


def _in_periods(schedule: RenewalSchedule, period: RowPeriod, days: Sequence[dt.date]) -> Expression:
    """Returns the condition that a row is in one of some periods, which follow on each other as far as they do."""
    spans: list[tuple[dt.date, dt.date]] = []
    for day in sorted(days):
        if spans and spans[-1][1] == day:
            spans[-1] = spans[-1][0], schedule.after(day)
        else:
            spans.append((day, schedule.after(day)))
    return _any_of([_between(period, *span) for span in spans])


def _between(period: RowPeriod, first: dt.date, after: dt.date) -> Expression:
    low, high = (Literal(_moment(period, day), period.kind) for day in (first, after))
    return call("and", call("greater_equal", period.date, low), call("less", period.date, high))


def _any_of(conditions: Sequence[Expression]) -> Expression:
    """Returns one condition that is TRUE if one of several is; no deeper than it must be."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return call("or", _any_of(conditions[:middle]), _any_of(conditions[middle:]))


def _unnamed(period: RowPeriod, schedule: RenewalSchedule, today: dt.date, *, too_many: bool) -> UnsupportedQuery:
    this = schedule.period_of(today)
    last = schedule.period_of(this - dt.timedelta(days=1))
    column = period.column if period.column.isidentifier() else f'"{period.column}"'
    told = f"{column} >= DATE '{last}' AND {column} < DATE '{this}'"
    if too_many:
        reason = f"This query may count rows of more than {MOST_PERIODS} periods, and each has a budget of its own."
    else:
        reason = f"The rows of each {period.per} have a budget of their own, and this query does not name any."
    return UnsupportedQuery(reason, f"Add a condition on their dates: WHERE {told}.")
