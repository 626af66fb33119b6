"""The record of a function: its types, its meaning, its bounds, when it is NULL, its words and its SQL, in one place.

The gate, the SQL reference, the referee, the analysis of plans and the dialects of databases are derived from records;
none of them names a function that could be described here. A new function is a new record in the file of its family.

Unless a record says otherwise a function is NULL as soon as one argument is NULL; an INT result outside -2^63 .. 2^63
- 1 is NULL; a FLOAT result that is NaN or infinite is NULL. An INT argument where a FLOAT is asked for is converted
first.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol

from discreet.dataclass import dataclass
from discreet.plan.expressions.interval_arithmetic import INT_HIGH, INT_LOW, Span
from discreet.plan.model.nodes import FunctionCall
from discreet.plan.model.types import Type

LONGEST_TEXT = 10_000
"""A text that is made by putting texts together is NULL beyond it, so that no row can use up the memory."""

LAST_DAY = dt.date.max.toordinal()
"""The number of the last day; the first has number 1."""

N, F, B, T, D, S = Type.INT, Type.FLOAT, Type.BOOL, Type.TEXT, Type.DATE, Type.TIMESTAMP
ALL = (N, F, B, T, D, S)
ORDERED = (N, F, T, D, S)
NUMBERS = (N, F)
TIMES = (D, S)

# ---------------------------------------------------------------------------------------------------------------- types


@dataclass(frozen=True, slots=True)
class Signature:
    """Argument types and result type; with `variadic` the last argument type may be repeated."""

    arguments: tuple[Type, ...]
    result: Type
    variadic: bool = False

    def accepts(self, given: Sequence[Type]) -> bool:
        """Returns whether the given types fit, an INT serving as FLOAT."""
        wanted = self.types_of(len(given)) if self.variadic else self.arguments
        return len(given) == len(wanted) and all(
            g is w or (g is N and w is F) for g, w in zip(given, wanted, strict=True)
        )

    def types_of(self, count: int) -> tuple[Type, ...]:
        """Returns the types of so many arguments, the last one repeated."""
        return self.arguments + self.arguments[-1:] * (count - len(self.arguments))


def takes(*arguments: Type, result: Type) -> tuple[Signature, ...]:
    """Returns the signatures of a function of exactly these types."""
    return (Signature(arguments, result),)


def each(
    arguments: int, kinds: Sequence[Type], result: Type | None = None, *, variadic: bool = False
) -> tuple[Signature, ...]:
    """Returns one signature per type: as many arguments of it, and that type or a fixed one as the result."""
    return tuple(Signature((kind,) * arguments, result or kind, variadic) for kind in kinds)


# -------------------------------------------------------------------------------------------------------- NULL, bounds


class Nulls(Enum):
    """When a function is NULL because of its arguments."""

    ANY = "one argument is NULL"
    ALL = "all arguments are NULL"
    OWN = "by a rule of its own"


class Rounding(Enum):
    """Which of the results that a FLOAT could have a function has."""

    NEAREST = "the nearest double"
    GRID = "the nearest number of the grid of `elementary`"
    WHOLE = "a whole number"
    KEPT = "the nearest double, which is whole if the arguments are: a rounded sum is beyond 2^53, and whole"


BoundsRule = Callable[[Sequence[Span]], Span]
"""An interval that holds every value of a function, given one for each argument; days are counted (`day_number`)."""

PresenceRule = Callable[[FunctionCall, Sequence[Span], Span], bool]
"""Whether a call surely has a value: given that its arguments have one, their intervals, and that of the result."""


def always_present(_call: FunctionCall, _arguments: Sequence[Span], _result: Span) -> bool:
    """Says that a function has a value whenever its arguments have one."""
    return True


def is_inside(call: FunctionCall, _arguments: Sequence[Span], result: Span) -> bool:
    """Returns whether every result fits its type: one that does not is cut off at the type's ends, and meets them."""
    if not result.is_bounded or any(part.type is T for part in call.arguments):
        return False
    low, high = _ENDS.get(call.type, (-math.inf, math.inf))
    return low < result.low <= result.high < high


_ENDS: Mapping[Type, tuple[Fraction, Fraction]] = {
    N: (INT_LOW, INT_HIGH),
    **dict.fromkeys((D, S), (Fraction(1), Fraction(LAST_DAY))),
}


def between(low: int, high: int) -> BoundsRule:
    """Returns the rule of a function whose values lie between two numbers, whatever its arguments are."""
    return lambda _: Span(Fraction(low), Fraction(high))


def map_monotone(monotone: Callable[[Fraction], int | Fraction]) -> BoundsRule:
    """Returns the rule of a function of one number that never decreases."""
    return lambda spans: spans[0].map(monotone)


# ------------------------------------------------------------------------------------------------------------------ SQL


@dataclass(frozen=True, slots=True)
class Template:
    """SQL with {0}, {1}, ... for arguments, {all} for all and {rest} for all but the first, separated by commas.

    Args:
        text: the template.
        repeats: the arguments that stand in it more than once.
        steps: values that are computed first and stand in it, and in later steps, as further arguments.
        infinite: whether the result may be NaN or infinite, and is NULL then.
        gridded: whether the result is rounded to the grid of elementary functions, NULL if it is not finite.
    """

    text: str
    repeats: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    infinite: bool = False
    gridded: bool = False


class SqlWriter(Protocol):
    """What a template may need to know of the database that it is written for."""

    narrow_repeats: ClassVar[bool]

    def cast(self, sql: str, kind: Type) -> str:
        """Writes a conversion that never fails."""

    def widen(self, sql: str) -> str:
        """Writes an INT as a number that can be added to others and multiplied by another exactly."""

    def narrow(self, sql: str) -> str:
        """Writes a wide number as an INT, NULL if 64 bits do not hold it."""


Form = str | Template | Callable[[SqlWriter], Template]
"""SQL that is the same everywhere, or that depends on what a database calls its types."""

Forms = Form | Mapping[Type | None, Form]
"""One form, or one for each type of the first argument, None standing for all others."""


def exact(text: str, condition: str = "") -> Form:
    """Returns arithmetic of INTs that is computed in wide numbers; where the condition does not hold, it is NULL."""

    def write_template(database: SqlWriter) -> Template:
        wide = text.replace("{0}", database.widen("{0}")).replace("{1}", database.widen("{1}"))
        repeats = (1,) if condition else ()
        if not database.narrow_repeats:
            narrow = database.narrow(wide)
            return Template(f"CASE WHEN {condition} THEN {narrow} END" if condition else narrow, repeats)
        made = f"CASE WHEN {condition} THEN {wide} END" if condition else wide
        return Template(database.narrow(f"{{{1 + ('{1}' in text)}}}"), repeats, (made,))

    return write_template


def cast(kind: Type) -> Form:
    """Returns the argument as another type."""
    return lambda database: Template(database.cast("{0}", kind))


# ----------------------------------------------------------------------------------------------------------- the record

Period = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarFacts:
    """What a function of a day or moment says of it.

    Args:
        within: the period during which it does not change.
        cycle: the period after which it starts again, if it is the same for all days of a month, or of a weekday.
        parts: what EXTRACT calls it.
        truncates: the unit that DATE_TRUNC calls it by.
    """

    within: Period | None = None
    cycle: Literal["year", "week"] | None = None
    parts: tuple[str, ...] = ()
    truncates: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """All that is known of a function; the first signature that accepts the arguments counts.

    Args:
        name: what plans call it; plans are stored, so that it never changes.
        meaning: what it means, in a phrase, its arguments being a, b and c.
        signatures: the types it works on.
        compute: its meaning in Python, to which every engine is held. It takes arguments that are not NULL, or a list
            of arguments that may be NULL if `nulls` is not ANY.
        sql: how databases write it.
        spelled: how a database writes it that has words of its own, by the name of the dialect.
        nulls: when it is NULL because of its arguments.
        present: whether it surely is not NULL where its arguments are not; without a rule it may be.
        bounds: where its values lie; without a rule they may lie anywhere.
        rounding: which double its result is.
        values: all values it has, if they are few texts.
        alike: whether its arguments are brought to one type.
        words: what SQL calls it; the gate accepts these words, and the first is named in errors.
        example: an accepted question with its first word: an AVG, a GROUP BY or a WHERE over the reference's `visits`.
        symbol: how errors name it that has no word, such as +.
        advice: what to do where its arguments have the wrong types.
        calendar: what it says of a day or a moment.
    """

    name: str
    meaning: str
    signatures: tuple[Signature, ...]
    compute: Callable[..., Any] = field(kw_only=True)
    sql: Forms = field(default_factory=dict, kw_only=True)
    spelled: Mapping[str, Forms] = field(default_factory=dict, kw_only=True)
    nulls: Nulls = field(default=Nulls.ANY, kw_only=True)
    present: PresenceRule | None = field(default=None, kw_only=True)
    bounds: BoundsRule | None = field(default=None, kw_only=True)
    rounding: Rounding = field(default=Rounding.NEAREST, kw_only=True)
    values: tuple[str, ...] = field(default=(), kw_only=True)
    alike: bool = field(default=False, kw_only=True)
    words: tuple[str, ...] = field(default=(), kw_only=True)
    example: str = field(default="", kw_only=True)
    symbol: str = field(default="", kw_only=True)
    advice: str = field(default="", kw_only=True)
    calendar: CalendarFacts = field(default=CalendarFacts(), kw_only=True)

    @property
    def display_name(self) -> str:
        """Returns what errors call it."""
        return self.symbol or next(iter(self.words), self.name.upper())

    def result(self, given: Sequence[Type]) -> Signature | None:
        """Returns the signature for these argument types, or None."""
        return next((signature for signature in self.signatures if signature.accepts(given)), None)

    def templates(self, dialect: str, database: SqlWriter) -> dict[Type | None, Template]:
        """Returns how a database writes it, by the type of the first argument, None standing for all others."""
        forms = {**_by_type(self.sql), **_by_type(self.spelled.get(dialect, {}))}
        return {kind: _template(form, database) for kind, form in forms.items()}


def _by_type(forms: Forms) -> Mapping[Type | None, Form]:
    return forms if isinstance(forms, Mapping) else {None: forms}


def _template(form: Form, database: SqlWriter) -> Template:
    if isinstance(form, str):
        return Template(form)
    return form if isinstance(form, Template) else form(database)
