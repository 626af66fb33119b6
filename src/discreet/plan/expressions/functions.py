"""The functions a question may use: each with one defined, total meaning. What is not in this table does not exist.

Unless a meaning says otherwise a function is NULL as soon as one argument is NULL; an INT result outside -2^63 .. 2^63
- 1 is NULL; a FLOAT result that is NaN or infinite is NULL. An INT argument where a FLOAT is asked for is converted
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.plan.model.types import Type

LONGEST_TEXT = 10_000
"""A text that is made by putting texts together is NULL beyond it, so that no row can use up the memory."""

N, F, B, T, D, S = Type.INT, Type.FLOAT, Type.BOOL, Type.TEXT, Type.DATE, Type.TIMESTAMP


@dataclass(frozen=True, slots=True)
class Signature:
    """Argument types and result type; with `variadic` the last argument type may be repeated."""

    arguments: tuple[Type, ...]
    result: Type
    variadic: bool = False

    def accepts(self, given: Sequence[Type]) -> bool:
        """Tells whether the given types fit, an INT serving as FLOAT."""
        wanted = list(self.arguments)
        if self.variadic and len(given) > len(wanted):
            wanted += [wanted[-1]] * (len(given) - len(wanted))
        return len(given) == len(wanted) and all(
            g is w or (g is N and w is F) for g, w in zip(given, wanted, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Function:
    """A function's meaning and the types it works on; the first signature that accepts the arguments counts."""

    name: str
    meaning: str
    signatures: tuple[Signature, ...]

    def result(self, given: Sequence[Type]) -> Signature | None:
        """Returns the signature for these argument types, or None."""
        return next((signature for signature in self.signatures if signature.accepts(given)), None)


def _each(
    arguments: int, kinds: Sequence[Type], result: Type | None = None, *, variadic: bool = False
) -> tuple[Signature, ...]:
    """The same shape for several types: as many arguments of one type, and that type or a fixed one as the result."""
    return tuple(Signature((kind,) * arguments, result or kind, variadic) for kind in kinds)


ALL = (N, F, B, T, D, S)
ORDERED = (N, F, T, D, S)
NUMBERS = (N, F)


def _cases() -> tuple[Signature, ...]:
    """Conditions and values take turns, the default comes last; the parser always writes one."""
    return tuple(Signature((B, kind, kind), kind) for kind in ALL)


_TABLE = (
    Function("add", "a + b", _each(2, NUMBERS)),
    Function("subtract", "a - b", _each(2, NUMBERS)),
    Function("multiply", "a * b", _each(2, NUMBERS)),
    Function("divide", "a / b in FLOAT; NULL if b is 0", (Signature((F, F), F),)),
    Function("integer_divide", "a / b rounded towards zero; NULL if b is 0", (Signature((N, N), N),)),
    Function("modulo", "the remainder of integer_divide, with the sign of a; NULL if b is 0", (Signature((N, N), N),)),
    Function("negate", "-a", _each(1, NUMBERS)),
    Function("absolute", "|a|", _each(1, NUMBERS)),
    Function("round", "the nearest whole number, halves away from zero, in FLOAT", (Signature((F,), F),)),
    Function("floor", "the largest whole number up to a, in FLOAT", (Signature((F,), F),)),
    Function("ceil", "the smallest whole number from a, in FLOAT", (Signature((F,), F),)),
    Function("square_root", "the nearest double to the root of a; NULL if a < 0", (Signature((F,), F),)),
    Function("ln", "the natural logarithm, on the grid of `elementary`; NULL if a <= 0", _each(1, (F,))),
    Function("log2", "the logarithm to the base 2, on the grid; NULL if a <= 0", _each(1, (F,))),
    Function("log10", "the logarithm to the base 10, on the grid; NULL if a <= 0", _each(1, (F,))),
    Function("log", "ln(b) / ln(a), on the grid; NULL if a <= 0, a = 1 or b <= 0", _each(2, (F,))),
    Function("exp", "e to the power of a, on the grid", _each(1, (F,))),
    Function(
        "power",
        "a to the power of b, on the grid; NULL if a < 0 and b is not whole, or a = 0 and b < 0",
        _each(2, (F,)),
    ),
    Function("cube_root", "the cube root, on the grid", _each(1, (F,))),
    Function("sin", "the sine of an angle in radians, on the grid", _each(1, (F,))),
    Function("cos", "the cosine of an angle in radians, on the grid", _each(1, (F,))),
    Function("tan", "the tangent of an angle in radians, on the grid", _each(1, (F,))),
    Function("asin", "the angle of a sine, on the grid; NULL if |a| > 1", _each(1, (F,))),
    Function("acos", "the angle of a cosine, on the grid; NULL if |a| > 1", _each(1, (F,))),
    Function("atan", "the angle of a tangent, on the grid", _each(1, (F,))),
    Function("atan2", "the angle of the point (b, a), -pi to pi, on the grid; there is one zero", _each(2, (F,))),
    Function("sinh", "the hyperbolic sine, on the grid", _each(1, (F,))),
    Function("cosh", "the hyperbolic cosine, on the grid", _each(1, (F,))),
    Function("tanh", "the hyperbolic tangent, on the grid", _each(1, (F,))),
    Function("greatest", "the largest argument that is not NULL; NULL if all are", _each(1, ORDERED, variadic=True)),
    Function("least", "the smallest argument that is not NULL; NULL if all are", _each(1, ORDERED, variadic=True)),
    Function("equal", "a = b; TEXT by code points", _each(2, ALL, B)),
    Function("not_equal", "a <> b", _each(2, ALL, B)),
    Function("less", "a < b; TEXT by code points", _each(2, ORDERED, B)),
    Function("less_equal", "a <= b", _each(2, ORDERED, B)),
    Function("greater", "a > b", _each(2, ORDERED, B)),
    Function("greater_equal", "a >= b", _each(2, ORDERED, B)),
    Function("and", "Kleene's conjunction: FALSE if one is FALSE, else NULL if one is NULL", (Signature((B, B), B),)),
    Function("or", "Kleene's disjunction: TRUE if one is TRUE, else NULL if one is NULL", (Signature((B, B), B),)),
    Function("not", "negation; NULL of NULL", (Signature((B,), B),)),
    Function("is_null", "whether a is NULL; never NULL", _each(1, ALL, B)),
    Function(
        "in",
        "whether a equals one of the others, which are literals and not NULL",
        tuple(Signature((kind, kind), B, variadic=True) for kind in (N, T, D, S, B)),
    ),
    Function("like", "SQL's LIKE with % and _, the pattern a literal, no escape", (Signature((T, T), B),)),
    Function("matches", "whether the pattern b, a literal, is found in a; see `patterns`", (Signature((T, T), B),)),
    Function(
        "extract",
        "what the group of the pattern b, a literal, holds in the first match in a; empty if there is none",
        (Signature((T, T), T),),
    ),
    Function("if", "b if a is TRUE, else c; NULL branches allowed", _cases()),
    Function("coalesce", "the first argument that is not NULL; NULL if all are", _each(1, ALL, variadic=True)),
    Function("null_if", "NULL if a = b, else a; a if b is NULL", _each(2, ALL)),
    Function(
        "to_int",
        "FLOAT: rounded towards zero; TEXT: an optional sign and 1 to 19 digits, else NULL; BOOL: 0 or 1",
        tuple(Signature((kind,), N) for kind in (N, F, T, B)),
    ),
    Function(
        "round_to_int", "the nearest whole number, halves the even one; NULL outside of INT", (Signature((F,), N),)
    ),
    Function(
        "to_float",
        "INT: the nearest double; TEXT: digits with at most one point and an exponent, else NULL",
        tuple(Signature((kind,), F) for kind in (N, F, T)),
    ),
    Function(
        "to_text",
        "INT: its decimal digits; BOOL: true or false; DATE: YYYY-MM-DD",
        tuple(Signature((kind,), T) for kind in (T, N, B, D)),
    ),
    Function(
        "to_date",
        "TIMESTAMP: its day; TEXT: YYYY-MM-DD of an existing day from 0001 to 9999, else NULL",
        tuple(Signature((kind,), D) for kind in (D, S, T)),
    ),
    Function("to_timestamp", "DATE: its midnight", tuple(Signature((kind,), S) for kind in (D, S))),
    Function("year", "the year", _each(1, (D, S), N)),
    Function("quarter", "the quarter of the year, 1 to 4", _each(1, (D, S), N)),
    Function("month", "the month, 1 to 12", _each(1, (D, S), N)),
    Function("day", "the day of the month, 1 to 31", _each(1, (D, S), N)),
    Function("day_of_week", "the day of the week, Monday 1 to Sunday 7", _each(1, (D, S), N)),
    Function("hour", "the hour, 0 to 23", (Signature((S,), N),)),
    Function("week", "the week of ISO 8601, 1 to 53", _each(1, (D, S), N)),
    Function("day_of_year", "the day of the year, 1 to 366", _each(1, (D, S), N)),
    Function("day_name", "Monday to Sunday", _each(1, (D, S), T)),
    Function("month_name", "January to December", _each(1, (D, S), T)),
    Function("days_between", "b - a in days", (Signature((D, D), N),)),
    Function("microseconds_between", "b - a in microseconds", (Signature((S, S), N),)),
    Function(
        "add_days",
        "b days after a, at the same time of day; NULL outside the years 1 to 9999",
        tuple(Signature((kind, N), kind) for kind in (D, S)),
    ),
    Function(
        "add_months",
        "the same day and time b months after a, or the last day of a shorter month; NULL outside the years 1 to 9999",
        tuple(Signature((kind, N), kind) for kind in (D, S)),
    ),
    Function("start_of_year", "January the 1st of the year", _each(1, (D, S), D)),
    Function("start_of_quarter", "the first day of the quarter", _each(1, (D, S), D)),
    Function("start_of_month", "the first day of the month", _each(1, (D, S), D)),
    Function("start_of_week", "the Monday of the week", _each(1, (D, S), D)),
    Function("end_of_month", "the last day of the month", _each(1, (D, S), D)),
    Function("upper", "ASCII letters a-z in upper case, all else unchanged", (Signature((T,), T),)),
    Function("lower", "ASCII letters A-Z in lower case, all else unchanged", (Signature((T,), T),)),
    Function("upper_case", "every letter in upper case, by the table of `letter_case`", (Signature((T,), T),)),
    Function("lower_case", "every letter in lower case, by the table of `letter_case`", (Signature((T,), T),)),
    Function("strip", "without the code points of b, a literal, at both ends", (Signature((T, T), T),)),
    Function("strip_left", "without the code points of b, a literal, at the beginning", (Signature((T, T), T),)),
    Function("strip_right", "without the code points of b, a literal, at the end", (Signature((T, T), T),)),
    Function("trim", "without spaces (U+0020) at both ends", (Signature((T,), T),)),
    Function("trim_left", "without spaces (U+0020) at the beginning", (Signature((T,), T),)),
    Function("trim_right", "without spaces (U+0020) at the end", (Signature((T,), T),)),
    Function("length", "the number of code points", (Signature((T,), N),)),
    Function(
        "substring",
        "code points from position b (1 is the first), c of them; clipped to the text; c < 0 is 0",
        (Signature((T, N, N), T),),
    ),
    Function("concat", f"a and b in a row; NULL if longer than {LONGEST_TEXT} code points", (Signature((T, T), T),)),
    Function(
        "replace",
        "a with c in the place of every b, found from left to right; a if b is empty; "
        f"NULL if c is longer than b and length(a) * length(c) > {LONGEST_TEXT}",
        (Signature((T, T, T), T),),
    ),
    Function(
        "split_part",
        "of the parts of a between b's, found from left to right, the c-th, counted from the end if c < 0; empty if "
        "there is none; an empty b splits nothing",
        (Signature((T, T, N), T),),
    ),
    Function(
        "position", "where in a the first b begins, 1 is the first code point; 0 nowhere", (Signature((T, T), N),)
    ),
    Function("starts_with", "whether a begins with b", (Signature((T, T), B),)),
    Function("ends_with", "whether a ends with b", (Signature((T, T), B),)),
    Function("contains", "whether b stands somewhere in a", (Signature((T, T), B),)),
)

FUNCTIONS: dict[str, Function] = {function.name: function for function in _TABLE}
"""All functions by name."""
