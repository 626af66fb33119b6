"""How much time lies between two moments: seconds, parts of a difference, boundaries passed, and ages.

Everything here is put together from functions of the plan: a duration is a whole number of microseconds or of months,
never a value of its own.
"""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.plan.expressions.calls import NULL, call, parse_date
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import names, read, reads
from discreet.sql.scope import Scope

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
"""In microseconds."""

_BEGIN = Literal(dt.datetime(1, 1, 1), Type.TIMESTAMP)
_EPOCH = Literal(dt.datetime(1970, 1, 1), Type.TIMESTAMP)


def written_time(value: Expression) -> Expression:
    """Reads a date that is written as a text."""
    if isinstance(value, Literal) and isinstance(value.value, str):
        return parse_date(Type.DATE if len(value.value) <= 10 else Type.TIMESTAMP, value.value)
    return Literal(None, Type.DATE) if value is NULL else value


def moment(value: Expression) -> Expression:
    """Returns a day as its midnight, and a moment as it is."""
    if value.type is not Type.DATE:
        return value
    if isinstance(value, Literal) and isinstance(value.value, dt.date):
        return Literal(dt.datetime.combine(value.value, dt.time()), Type.TIMESTAMP)
    return call("to_timestamp", value)


def _whole(number: int) -> Literal:
    return Literal(number, Type.INT)


# ----------------------------------------------------------------------------------------------------- between moments


def _between(one: Expression, other: Expression) -> Expression:
    return call("microseconds_between", moment(one), moment(other))


def boundaries(size: int, one: Expression, other: Expression) -> Expression:
    """Counts the boundaries between units of so many microseconds that lie between two moments."""

    def count_boundaries(value: Expression) -> Expression:
        return call("integer_divide", _between(_BEGIN, value), _whole(size))  # never negative: rounded down

    return _between(one, other) if size == 1 else call("subtract", count_boundaries(other), count_boundaries(one))


@dataclass(frozen=True, slots=True)
class ElapsedTime:
    """The difference of two moments; no value of the plan, but its parts are."""

    microseconds: Expression

    @classmethod
    def of(cls, later: Expression, earlier: Expression) -> ElapsedTime | None:
        """Returns the difference of two expressions; None if they are not times, or both days."""
        kinds = {later.type, earlier.type}
        if Type.TIMESTAMP not in kinds:
            return None
        later, earlier = written_time(later), written_time(earlier)
        return cls(_between(earlier, later)) if later.type.is_time and earlier.type.is_time else None

    @classmethod
    def since_1970(cls, value: Expression) -> ElapsedTime:
        """Returns what has passed since the beginning of 1970."""
        return cls(_between(_EPOCH, written_time(value)))

    def part(self, name: str) -> Expression | None:
        """Returns all of it in seconds, or a whole part, rounded towards zero, of what larger parts leave."""
        if name == "EPOCH":
            return call("divide", self.microseconds, Literal(float(SECOND), Type.FLOAT))
        if name not in _PARTS:
            return None
        larger, size = _PARTS[name]
        rest = self.microseconds if larger is None else call("modulo", self.microseconds, _whole(larger))
        return call("integer_divide", rest, _whole(size))


_PARTS = {"DAY": (None, DAY), "HOUR": (DAY, HOUR), "MINUTE": (HOUR, MINUTE)}

# ----------------------------------------------------------------------------------------------------------------- ages


@dataclass(frozen=True, slots=True)
class Age:
    """Full months from one time to another, negative if it is earlier; no value of the plan, but its parts are."""

    months: Expression

    @classmethod
    def of(cls, later: Expression, earlier: Expression) -> Age:
        """Returns the age at a time of what began at another."""
        if Type.TIMESTAMP in (later.type, earlier.type):
            later, earlier = moment(later), moment(earlier)
        years = call("multiply", call("subtract", call("year", later), call("year", earlier)), _whole(12))
        begun = call("add", years, call("subtract", call("month", later), call("month", earlier)))
        within = _within_month(later), _within_month(earlier)
        full = call("subtract", begun, call("to_int", call("less", *within)))
        missed = call("add", begun, call("to_int", call("greater", *within)))
        return cls(call("if", call("greater_equal", later, earlier), full, missed))

    def part(self, name: str) -> Expression | None:
        """Returns its full years, or its months after full years."""
        function = {"YEAR": "integer_divide", "MONTH": "modulo"}.get(name)
        return None if function is None else call(function, self.months, _whole(12))


def _within_month(value: Expression) -> Expression:
    """Returns what has passed of its month: days, or microseconds."""
    if value.type is Type.DATE:
        return call("day", value)
    return call("microseconds_between", call("to_timestamp", call("start_of_month", value)), value)


def age(node: exp.Expr, scope: Scope) -> Age | None:
    """Reads AGE(a, b), or AGE(b), which ends today at midnight; None for all else."""
    if not isinstance(node, exp.Anonymous) or node.name.upper() != "AGE" or len(node.expressions) not in (1, 2):
        return None
    times = [written_time(read(each, scope)) for each in node.expressions]
    return Age.of(times[0], times[1]) if len(times) > 1 else Age.of(today(scope, node), times[0])


@names("AGE", 1, 2)
def _age_alone(node: exp.Expr, scope: Scope) -> Expression:
    hint = "Take a part of it, such as EXTRACT(YEAR FROM AGE(a, b)), or compare dates: {since}."
    return scope.refuse("AGE is not a number.", hint, node)


# ---------------------------------------------------------------------------------------------------------------- today


@reads(exp.CurrentDate)
def _current_date(node: exp.Expr, scope: Scope) -> Expression:
    return today(scope, node)


def today(scope: Scope, node: exp.Expr) -> Literal:
    """Returns the day that is declared as today, which is in the plan as if it were written.

    Raises:
        UnsupportedQuery: if none is.
    """
    if scope.source.today is None:
        hint = "Ask the steward to declare a day as today, or write the date: {since}."
        scope.refuse("No day is declared as today.", hint, node)
    return Literal(scope.source.today, Type.DATE)


def now(node: exp.Expr) -> bool:
    """Returns whether a node is the present moment, whose day alone has a value."""
    named = isinstance(node, exp.Anonymous) and node.name.upper() == "NOW" and not node.expressions
    return named or isinstance(node, exp.CurrentTimestamp)


def _moment_of_now(node: exp.Expr, scope: Scope) -> Expression:
    hint = "Write CURRENT_DATE, a day that the curator declares as today, or the date itself: {since}."
    return scope.refuse("The time of day has a different value each time.", hint, node)


reads(exp.CurrentTimestamp, "this")(_moment_of_now)
names("NOW", 0)(_moment_of_now)
