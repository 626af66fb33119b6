"""Days and moments in questions: parts, starts, differences, intervals and formats, and how each is read."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.expressions.interval_arithmetic import INT_HIGH
from discreet.plan.expressions.shorthands.date_shorthands import from_sunday
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.durations import (
    MINUTE,
    SECOND,
    Age,
    ElapsedTime,
    age,
    boundaries,
    moment,
    now,
    today,
    written_time,
)
from discreet.sql.functions.grammar import Read, names, only, read, reads, refuse_node
from discreet.sql.scope import Scope

_TIMES = (Type.DATE, Type.TIMESTAMP)

# ----------------------------------------------------------------------------------------------------- parts and starts

_PARTS = {part: function.name for function in FUNCTIONS.values() for part in function.calendar.parts}
_FROM_SUNDAY = ("DOW", "DAYOFWEEK", "WEEKDAY")
_STARTS = {unit: function.name for function in FUNCTIONS.values() if (unit := function.calendar.truncates)}


@reads(exp.Extract, "this", "expression")
def _extract(node: exp.Expr, scope: Scope) -> Expression:
    return _part(node.this, node.expression, node, scope)


@names("DATE_PART", 2)
@names("DATEPART", 2)
def _date_part(node: exp.Expr, scope: Scope) -> Expression:
    unit, value = node.expressions
    return _part(unit, value, node, scope)


def _part(unit: exp.Expr, value: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    name = unit.name.upper() if isinstance(unit, exp.Literal | exp.Var | exp.Column) else ""
    found = _operand(value, scope)
    if name == "EPOCH" and isinstance(found, Expression):
        found = ElapsedTime.since_1970(found)
    if not isinstance(found, Expression):
        hint = "Use EPOCH, DAY, HOUR or MINUTE of a - b, YEAR or MONTH of AGE(a, b), or DATE_DIFF: {since}."
        return found.part(name) or scope.refuse(f"{name[:40]} is not a supported part of a duration.", hint, node)
    if name in _FROM_SUNDAY:
        return from_sunday(found)
    if name not in _PARTS:
        names = ", ".join(function.calendar.parts[0] for function in FUNCTIONS.values() if function.calendar.parts)
        listed = f"Use {names} (Monday is 1 of ISODOW), DOW (Sunday is 0) or EPOCH: {{weekdays}}."
        scope.refuse(f"{name[:40] or 'This'} is not a supported part of a date.", listed, node)
    return call(_PARTS[name], found)


def _operand(node: exp.Expr, scope: Scope) -> Expression | ElapsedTime | Age:
    """Returns what a part is taken of: a day or moment, or a duration, which no other place takes."""
    node = node.unnest()
    if not isinstance(node, exp.Sub) or isinstance(node.expression, exp.Interval):
        return age(node, scope) or read(node, scope)
    one, other = read(node.this, scope), read(node.expression, scope)
    return ElapsedTime.of(one, other) or _less(one, other, node, scope)


@reads(exp.TimeToUnix, "this")
def _epoch(node: exp.Expr, scope: Scope) -> Expression:
    return _part(exp.var("EPOCH"), node.this, node, scope)


def _truncate(node: exp.Expr, scope: Scope) -> Expression:
    name = node.args["unit"].name.upper()
    if name not in _STARTS:
        names = "'year', 'quarter', 'month', 'week' or 'day'"
        scope.refuse(f"Dates cannot be cut to {name[:40]}.", f"Use {names}: {{months}}.", node)
    value = today(scope, node) if now(node.this) else read(node.this, scope)
    return value if name == "DAY" and value.type is Type.DATE else call(_STARTS[name], value)


reads(exp.TimestampTrunc, "this", "unit")(_truncate)
reads(exp.DateTrunc, "this", "unit", "unabbreviate")(_truncate)

# --------------------------------------------------------------------------------------------------------- differences


def _day(value: Expression) -> Expression:
    return value if value.type is Type.DATE else call("to_date", value)


def _apart(part: str, one: Expression, other: Expression) -> Expression:
    return call("subtract", call(part, other), call(part, one))


def _boundaries(part: str, count: int, one: Expression, other: Expression) -> Expression:
    """Returns how many parts of a year begin between two days."""
    years = call("multiply", _apart("year", one, other), Literal(count, Type.INT))
    return call("add", years, _apart(part, one, other))


def _days(one: Expression, other: Expression) -> Expression:
    return call("days_between", _day(one), _day(other))


def _hours(one: Expression, other: Expression) -> Expression:
    one, other = moment(one), moment(other)
    return call("add", call("multiply", _days(one, other), Literal(24, Type.INT)), _apart("hour", one, other))


_DIFFERENCES: dict[str, Callable[[Expression, Expression], Expression]] = {
    "DAY": _days,
    "WEEK": lambda one, other: call("integer_divide", _days(one, other), Literal(7, Type.INT)),
    "MONTH": lambda one, other: _boundaries("month", 12, one, other),
    "QUARTER": lambda one, other: _boundaries("quarter", 4, one, other),
    "YEAR": lambda one, other: _apart("year", one, other),
    "HOUR": _hours,
    "MINUTE": lambda one, other: boundaries(MINUTE, one, other),
    "SECOND": lambda one, other: boundaries(SECOND, one, other),
    "MILLISECOND": lambda one, other: boundaries(1000, one, other),
    "MICROSECOND": lambda one, other: boundaries(1, one, other),
}


@reads(exp.DateDiff, "this", "expression", "unit", "date_part_boundary")
def _difference(node: exp.Expr, scope: Scope) -> Expression:
    """Reads DATE_DIFF(unit, a, b): days from a to b, weeks of seven of them, or other units begun."""
    unit = node.args.get("unit")
    made = _DIFFERENCES.get("" if unit is None else unit.name.upper().removesuffix("S"))
    if made is None:
        names = "'day', 'week', 'month', 'quarter', 'year', 'hour', 'minute' or 'second'"
        scope.refuse("DATE_DIFF counts units from years to microseconds.", f"Use {names}: {{since}}.", node)
    one, other = (written_time(read(node.args[part], scope)) for part in ("expression", "this"))
    return made(one, other)


# ----------------------------------------------------------------------------------------------------------- intervals

_INTERVALS = {
    "DAY": ("add_days", 1),
    "WEEK": ("add_days", 7),
    "MONTH": ("add_months", 1),
    "QUARTER": ("add_months", 3),
    "YEAR": ("add_months", 12),
}


def _add_interval(value: Expression, interval: exp.Expr, scope: Scope, sign: int) -> Expression:
    """Returns a day or moment so much later, or earlier."""
    only(interval, scope, "this", "unit")
    unit = interval.args.get("unit")
    found = _INTERVALS.get("" if unit is None else unit.name.upper().removesuffix("S"))
    if found is None:
        reason = "An INTERVAL is a number of days, weeks, months, quarters or years."
        scope.refuse(reason, "Write it like INTERVAL 7 DAY: {since}.", interval)
    function, size = found
    return call(function, written_time(value), _times(_length(interval, scope), sign * size))


def _length(interval: exp.Expr, scope: Scope) -> Expression:
    written = interval.this
    if not isinstance(written, exp.Literal):
        return read(written, scope)
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", written.name):
        scope.refuse("An INTERVAL has a whole number of one unit.", "Write it like INTERVAL 7 DAY: {since}.", interval)
    return Literal(int(written.name), Type.INT)


def _times(length: Expression, factor: int) -> Expression:
    if isinstance(length, Literal) and isinstance(length.value, int) and abs(length.value * factor) <= INT_HIGH:
        return Literal(length.value * factor, Type.INT)
    if factor == 1:
        return length
    return call("negate", length) if factor == -1 else call("multiply", length, Literal(factor, Type.INT))


@reads(exp.DateAdd, "this", "expression")
def _date_add(node: exp.Expr, scope: Scope) -> Expression:
    if not isinstance(node.expression, exp.Interval):
        scope.refuse("DATE_ADD takes an INTERVAL.", "Write it like INTERVAL 7 DAY: {since}.", node)
    return _add_interval(read(node.this, scope), node.expression, scope, 1)


@names("DATE_SUB", 2)
def _date_sub(node: exp.Expr, scope: Scope) -> Expression:
    value, interval = node.expressions
    if not isinstance(interval, exp.Interval):
        refuse_node(node, scope)
    return _add_interval(read(value, scope), interval, scope, -1)


@reads(exp.Add, "this", "expression")
def _add(node: exp.Expr, scope: Scope) -> Expression:
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(other, exp.Interval):
            return _add_interval(read(one, scope), other, scope, 1)
    one, other = read(node.this, scope), read(node.expression, scope)
    if one.type is Type.INT and other.type is Type.DATE:
        one, other = other, one
    return call("add_days" if one.type is Type.DATE and other.type is Type.INT else "add", one, other)


@reads(exp.Sub, "this", "expression")
def _subtract(node: exp.Expr, scope: Scope) -> Expression:
    """A day less a day is a number of days; less a number, a day."""
    if isinstance(node.expression, exp.Interval):
        return _add_interval(read(node.this, scope), node.expression, scope, -1)
    return _less(read(node.this, scope), read(node.expression, scope), node, scope)


def _less(one: Expression, other: Expression, node: exp.Expr, scope: Scope) -> Expression:
    if one.type is Type.DATE and other.type is Type.INT:
        return call("add_days", one, _times(other, -1))
    if Type.DATE in (one.type, other.type):
        one, other = (written_time(part) for part in (one, other))
        if one.type is other.type is Type.DATE:
            return call("days_between", other, one)
    if one.type in _TIMES and other.type in _TIMES:
        reason = "The difference of timestamps is not a number."
        scope.refuse(reason, "Count seconds, EPOCH(a - b), or days, DATE_DIFF('day', b, a): {count}.", node)
    return call("subtract", one, other)


# ------------------------------------------------------------------------------------------------------------- formats

_STRFTIME = re.compile(r"%[A-Za-z]|[-/. ,]")
_TO_CHAR = re.compile(r"YYYY|MM|DD|[-/. ,]")
_SAME = {"YYYY": "%Y", "MM": "%m", "DD": "%d"}
_DIGITS = {"%Y": (1, 4), "%m": (6, 2), "%d": (9, 2), "%y": (3, 2)}
_NAMES = {"%A": "day_name", "%B": "month_name"}


def _build_format_reader(signs: re.Pattern[str]) -> Read:
    def read_format(node: exp.Expr, scope: Scope) -> Expression:
        written = node.args.get("format")
        text = written.name if isinstance(written, exp.Literal) and written.is_string else ""
        parts = [_SAME.get(part, part) for part in signs.findall(text)]
        known = all(part in _DIGITS or part in _NAMES or not part.startswith("%") for part in parts)
        if not text or signs.sub("", text) or not known:
            reason = "A format is made of %Y, %y, %m, %d, %A, %B and characters between them."
            scope.refuse(reason, "For example '%Y-%m'; or cut dates to months: {months}.", node)
        return _concatenate_parts(parts, read(node.this, scope))

    return read_format


def _concatenate_parts(parts: list[str], value: Expression) -> Expression:
    """Returns the parts of a format in a row; a year and month are those of the month's first day, which are fewer."""
    day = _day(value)
    if parts == ["%Y", "-", "%m", "-", "%d"]:
        return call("to_text", day)
    if parts == ["%Y", "-", "%m"]:
        return _cut(call("start_of_month", day), 1, 7)
    made = [_sign(part, day) for part in parts]
    result = made[0]
    for part in made[1:]:
        result = call("concat", result, part)
    return result


def _sign(part: str, day: Expression) -> Expression:
    if part in _NAMES:
        return call(_NAMES[part], day)
    return _cut(day, *_DIGITS[part]) if part in _DIGITS else Literal(part, Type.TEXT)


def _cut(day: Expression, begin: int, length: int) -> Expression:
    return call("substring", call("to_text", day), Literal(begin, Type.INT), Literal(length, Type.INT))


reads(exp.TimeToStr, "this", "format")(_build_format_reader(_STRFTIME))
reads(exp.ToChar, "this", "format")(_build_format_reader(_TO_CHAR))
