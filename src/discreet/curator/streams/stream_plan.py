"""A stream before its charge: what is read in each period, how far one unit moves it, and what the whole costs."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Literal as Choice

from discreet import check
from discreet.curator.catalog.catalog import BoundQuestion
from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.dataclass import dataclass
from discreet.engines.row_choice import normalize_id
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.exact import root_above
from discreet.hint_text import Hint
from discreet.measurement.intervals.estimators import TotalEstimator
from discreet.measurement.program.program import Program
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.open_exact import open_exact, opens
from discreet.mechanisms.mechanism import Law
from discreet.plan.analysis.relation_schema import follows_from_id
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import ColumnRef, Expression, Key, Literal, Question, Value
from discreet.plan.model.readings import Reading
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours
from discreet.sql.examples import different
from discreet.stream import Participation

Every = Choice["day", "week", "month", "quarter", "year"] | int
"""How long a period is; of a key of whole numbers, how many of them it has."""
Start = dt.date | int | str
"""The first value of the first period; a day may be written, as 2026-01-31."""

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_CHOICES = (*_DAYS, *_MONTHS)
_START = Hint("Pass e.g. {start:'2026-01-01'}.")


@dataclass(frozen=True, slots=True)
class PeriodCalendar:
    """Periods of equal length, one after the other.

    Args:
        every: how long each is.
        start: the first value of the first.
        type: of the key.

    Raises:
        InvalidParameter: if they do not go together.

    >>> PeriodCalendar("month", dt.date(2026, 1, 1), Type.DATE).first(2)
    datetime.date(2026, 3, 1)
    """

    every: Every
    start: dt.date | int
    type: Type

    def __post_init__(self) -> None:
        if self.type is Type.INT:
            check.integer(every=self.every, at_least=1)
            check.integer(start=self.start)
            return
        if self.every not in _CHOICES:
            known = ", ".join(_CHOICES)
            raise InvalidParameter("every", self.every, f"to be one of {known}", Hint("Pass {every:'day'}."))
        if isinstance(self.start, int) or not isinstance(self.start, dt.date):
            raise InvalidParameter("start", self.start, "to be a day", _START)
        if self.every in _MONTHS and self.start.day != 1:
            raise InvalidParameter("start", self.start, "to be the first day of a month", _START)

    @classmethod
    def of(cls, every: Every, start: Start, kind: Type) -> PeriodCalendar:
        """Returns the calendar of a key of some type."""
        if isinstance(start, dt.datetime):
            raise InvalidParameter("start", start, "to be a day, without a time", "Periods begin at midnight.")
        if isinstance(start, str) and kind is not Type.INT:
            with suppress(ValueError):
                return cls(every, dt.date.fromisoformat(start), kind)
        if isinstance(start, str):
            raise InvalidParameter("start", start, "to be the first value", _START)
        return cls(every, start, kind)

    def first(self, place: int) -> dt.date | int:
        """Returns the first value of the period at a place, counted from 0.

        Raises:
            InvalidParameter: if no calendar reaches so far.
        """
        if isinstance(self.start, int):
            return self.start + place * int(self.every)
        try:
            if self.every in _DAYS:
                return self.start + dt.timedelta(days=place * _DAYS[str(self.every)])
            months = self.start.year * 12 + self.start.month - 1 + place * _MONTHS[str(self.every)]
            return self.start.replace(year=months // 12, month=months % 12 + 1)
        except (ValueError, OverflowError):
            raise InvalidParameter("horizon", place, "to end by the year 9999", "Choose a shorter one.") from None

    def ends(self, place: int) -> tuple[dt.date | int, dt.date | int]:
        """Returns the first value of a period and of the next, as values of the key."""
        return self._value(self.first(place)), self._value(self.first(place + 1))

    def _value(self, first: dt.date | int) -> dt.date | int:
        if self.type is Type.TIMESTAMP and isinstance(first, dt.date):
            return dt.datetime.combine(first, dt.time())
        return first


_PERIODS = (Type.DATE, Type.TIMESTAMP)
_EXAMPLE = different("SELECT day, COUNT(*) AS n FROM visits GROUP BY day")
_ANY = QueryBudget(Fraction(1), Fraction(1, 10**9))  # decides neither what is read nor how far one unit moves it
LARGEST_LINES = 10_000  # groups that are released in every period


def period_key(plan: Question, every: object) -> Key:
    """Returns the key of a question that holds the period of a row.

    Raises:
        UnsupportedQuery: if there is not exactly one.
    """
    kinds = (Type.INT,) if isinstance(every, int) else _PERIODS
    found = [key for key in plan.keys if key.expression.type in kinds]
    if len(found) != 1:
        raise UnsupportedQuery(
            "A stream needs one key that holds the period of each row: a date or a time.",
            Hint(f"Group by it, as in {_EXAMPLE}. If periods are whole numbers, pass their length: {{every:7}}."),
        )
    return found[0]


def check_plain(plan: Question) -> None:
    """Refuses what is more than one number per period and group.

    Raises:
        UnsupportedQuery: naming what is too much.
    """
    more = {
        "HAVING": plan.having,
        "ORDER BY": plan.order,
        "LIMIT": plan.limit,
        "a window or a UNION": plan.steps,
        "another question": plan.beside,
        "GROUPING SETS": plan.sets,
        "a histogram": plan.bands,
    }
    for name, part in more.items():
        if part is not None and part != ():
            raise UnsupportedQuery(
                f"A stream cannot have {name}: its rows are released period by period.", f"Ask {_EXAMPLE}."
            )
    named = {key.name for key in plan.keys} | {aggregate.name for aggregate in plan.aggregates}
    if len(plan.aggregates) != 1 or any(
        not isinstance(output.expression, ColumnRef) or output.expression.name not in named for output in plan.outputs
    ):
        raise UnsupportedQuery(
            "A stream releases one plain COUNT or SUM for each period.", f"Start one stream for each: {_EXAMPLE}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """A stream of one aggregate, with everything that its charge and its periods follow from.

    Args:
        bound: the question, with what is declared about its tables.
        key: which holds the period.
        calendar: of the periods.
        program: of one period, whatever its noise would be.
        periods: in how many periods one unit may count, over the whole stream.
        horizon: how many periods there are; None if that is unknown.
        window: over how many periods sums go; None for all.
    """

    bound: BoundQuestion
    key: Key
    calendar: PeriodCalendar
    program: Program
    periods: int
    horizon: int | None
    window: int | None

    @property
    def lines(self) -> tuple[tuple[Value, ...], ...]:
        """Returns the keys of the groups that are released in every period."""
        return self.program.reading.public_keys or ((),)

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """Returns the columns of an answer, each with the key or aggregate that it shows."""
        shown = ((output.name, output.expression) for output in self.bound.plan.outputs)
        return [(name, column.name) for name, column in shown if isinstance(column, ColumnRef)]

    @property
    def scale(self) -> Fraction:
        """Returns the value of one unit of the statistic."""
        (total,) = self.program.estimators.values()
        if not isinstance(total, TotalEstimator):
            raise UnsupportedQuery("A stream releases counts and sums of whole numbers.", f"Ask {_EXAMPLE}.")
        ((_, weight),) = total.linear.weights
        return weight

    @property
    def participation(self) -> Participation:
        """Returns in how many periods one unit is counted."""
        return Participation(self.periods)

    @property
    def remembers(self) -> bool:
        """Returns whether it must be known who was counted in earlier periods, so that no unit is counted too often."""
        return self.program.reading.bounding is not None and not self._in_one_period and not self._in_all

    @property
    def _in_all(self) -> bool:
        return self.horizon is not None and self.periods >= self.horizon

    @property
    def _in_one_period(self) -> bool:
        """Returns whether the unit's own id determines the period: then each unit is in one by construction."""
        return tells_period(self.bound, self.key)

    def sensitivity(self, law: Law) -> Fraction:
        """Returns how far one unit moves the numbers of one period, in the norm of the law.

        Under REPLACE the periods that one person leaves and those that another enters are moved, each as if one
        person came or went: by the triangle inequality it is twice as far, in any norm and for any factor. If neither
        contributions nor the factor, that of running sums, have negative entries, both moves have an inner product of
        at least 0, and their difference is at most sqrt(2) times as long in the L2 norm.
        """
        (measure,) = self.program.measures
        form, moves = measure.form, replace(self.program.contribution, neighbours=Neighbours.ADD_REMOVE)
        if law == "laplace":
            alone = moves.l1(form.corners, [Fraction(1)], once=form.once)
        else:
            alone = root_above(moves.l2_squared(form.corners, [Fraction(1)], once=form.once))
        if self.program.contribution.neighbours is Neighbours.ADD_REMOVE:
            return alone
        positive = all(entry >= 0 for corner in form.corners for entry in corner)
        return alone * (root_above(Fraction(2)) if law == "gaussian" and positive and self.window is None else 2)

    def reading(self, place: int) -> Reading:
        """Returns what is read in a period: its statistic by group and, where units must be remembered, by unit."""
        low, high = self.calendar.ends(place)
        kind = self.key.expression.type
        inside = call(
            "and",
            call("greater_equal", self.key.expression, Literal(low, kind)),
            call("less", self.key.expression, Literal(high, kind)),
        )
        reading = self.program.reading
        where = inside if reading.where is None else call("and", reading.where, inside)
        if not self.remembers or reading.bounding is None:
            return replace(reading, where=where)
        known = _public_key_conditions(reading)
        unit = ColumnRef(reading.bounding.unit, self.bound.rows.columns[reading.bounding.unit].type)
        where = reduce(lambda one, other: call("and", one, other), (where, *known))
        return replace(reading, where=where, keys=(unit, *reading.keys), public_keys=None)

    @opens
    def count_period(self, sealed: ExactGroups, may_count: Callable[[Value], bool]) -> tuple[list[int], list[Value]]:
        """Returns the numbers of a period, one for each line, and the units that are in them.

        Rows were bounded for each unit, however its id is written, and are read by how it is written. Of several
        spellings of one id in a period the first one counts, so that what was bounded stays bounded.

        Args:
            sealed: what was read.
            may_count: returns whether a unit may be counted once more.
        """
        groups = open_exact(sealed).groups
        if not self.remembers:
            return [groups.get(line, (0,))[0] for line in self.lines], []
        totals = dict.fromkeys(self.lines, 0)
        shown = {
            (written, tuple(line)): value for (written, *line), (value,) in groups.items() if tuple(line) in totals
        }
        spelled: dict[Value, Value] = {}
        for written in sorted({written for written, _ in shown}, key=str):
            spelled.setdefault(normalize_id(written), written)
        units = {written: unit for unit, written in spelled.items() if may_count(unit)}
        for (written, line), value in shown.items():
            totals[line] += value if written in units else 0
        return [totals[line] for line in self.lines], list(units.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what limits mean for the numbers; functions of public facts."""
        people, limits = self.program.people, self.program.contribution.limits
        what = (
            "Numbers are totals of all periods so far"
            if self.window is None
            else (f"Numbers are totals of the last {self.window} periods")
        )
        said = [f"{what}; intervals cover the noise."]
        if self.program.reading.bounding is not None:
            said.append(f"At most {_times(limits.rows, 'row')} per {people}, period and group are counted.")
            if self._in_one_period:
                said.append(f"The unit of privacy is one {people} in one period: their id determines the period.")
            else:
                most = _times(self.periods, "period")
                said.append(f"Each {people} is counted in at most {most} of the whole stream.")
        else:
            said.append("The unit of privacy is one row, which is in one period.")
        return tuple(said)


def _times(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def tells_period(bound: BoundQuestion, key: Key) -> bool:
    """Returns whether the id of a unit determines the period of its rows."""
    return follows_from_id(key.expression, bound.rows)


def _public_key_conditions(reading: Reading) -> list[Expression]:
    """Returns conditions that keep the rows whose keys are public, so that rows with other keys use up no limits."""
    if reading.public_keys is None:
        return []
    conditions: list[Expression] = []
    for place, key in enumerate(reading.keys):
        values = dict.fromkeys(known[place] for known in reading.public_keys)
        present = [Literal(value, key.type) for value in values if value is not None]
        tests = [call("in", key, *present)] if present else []
        tests += [call("is_null", key)] if None in values else []
        conditions.append(reduce(lambda one, other: call("or", one, other), tests))
    return conditions


def without_period(plan: Question, key: Key) -> Question:
    """Returns the question about one period: the same without the key of periods."""
    outputs = tuple(
        output
        for output in plan.outputs
        if not (isinstance(output.expression, ColumnRef) and output.expression.name == key.name)
    )
    return replace(plan, keys=tuple(other for other in plan.keys if other != key), outputs=outputs)


def plain_program(measurement: MeasurementPlan, law: Law) -> Program:
    """Returns the program of one period, if a stream can release it.

    Raises:
        UnsupportedQuery: if it needs bounds or keys that are not declared, or several numbers.
    """
    if measurement.missing:
        raise UnsupportedQuery(
            f"A stream needs this to be declared: {measurement.missing[0].subject}.",
            "Ask the steward to declare its bounds. A stream cannot choose them privately.",
        )
    if measurement.plan.keys and not all(_has_keys(measurement, key) for key in measurement.plan.keys):
        raise UnsupportedQuery(
            "Groups of a stream are the same in every period, so their keys must be public.",
            f"Ask the steward to declare them, or leave them out: {_EXAMPLE}.",
        )
    program = measurement.program(_ANY, measurement.facts, law)
    single = len(program.measures) == 1 and len(program.measures[0].form.statistics) == 1 and not program.draws
    (estimator,) = program.estimators.values()
    if (
        not single
        or not isinstance(estimator, TotalEstimator)
        or estimator.rounding
        or any(program.measures[0].form.grains)
    ):
        raise UnsupportedQuery(
            "A stream releases counts and sums of whole numbers.",
            f"Ask {_EXAMPLE}; sum a column of another kind as whole numbers, such as cents.",
        )
    if len(program.reading.public_keys or ()) > LARGEST_LINES:
        raise InvalidParameter("question", "so many groups", f"to have at most {LARGEST_LINES} groups")
    return program


def _has_keys(measurement: MeasurementPlan, key: Key) -> bool:
    try:
        alone = replace(measurement.plan, keys=(key,), outputs=())
        return measurement.about(alone).program(_ANY, measurement.facts).selection is None
    except UnsupportedQuery:
        return False


def default_start(bound: BoundQuestion, key: Key, today: dt.date) -> dt.date | int:
    """Returns the default start of a stream: the least declared key, or the lower bound, else today.

    Raises:
        InvalidParameter: if periods are whole numbers, and no first one is known.
    """
    if isinstance(key.expression, ColumnRef):
        column = bound.rows.columns[key.expression.name]
        days = [value for value in column.keys or () if isinstance(value, dt.date)]
        wholes = [value for value in column.keys or () if isinstance(value, int)]
        if days or wholes:
            first = min(days) if days else min(wholes)
            return first.date() if isinstance(first, dt.datetime) else first
        if column.bounds is not None and not column.limited:
            least = math.ceil(column.bounds.low)
            return least if column.type is Type.INT else dt.date.fromordinal(least)
    if key.expression.type is Type.INT:
        raise InvalidParameter("start", None, "to be given", Hint("Pass the first number, e.g. {start:1}."))
    return today
