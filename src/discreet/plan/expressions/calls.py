"""Typed calls: the only way an expression is made, so that every argument has exactly the type its function takes.

An INT serves where a FLOAT is asked for, a text literal next to a date is that date, one that is compared with a number
the number it spells, a DATE literal next to a TIMESTAMP is its midnight, NULL takes the type of its place. Each of
these is written into the plan as a literal or a `to_float`; nothing is converted later, and nothing else is converted
at all.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace

from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import Expression, FunctionCall, Literal, columns
from discreet.plan.model.types import Type

NULL = Literal(None, Type.BOOL)
"""NULL before its place gives it a type; compared by identity."""

_ORDERINGS = ("less", "less_equal", "greater", "greater_equal")
_COMPARISONS = ("equal", "not_equal", *_ORDERINGS)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?", re.ASCII)


class Mismatch(Exception):
    """The arguments do not fit, or one of them: a reason and a hint, which the reader completes with a position."""

    def __init__(self, reason: str, hint: str, argument: int | None = None) -> None:
        self.reason, self.hint, self.argument = reason, hint, argument
        super().__init__(reason)


def call(function: str, *arguments: Expression) -> Expression:
    """Returns the call of a function, its arguments converted to the types it takes.

    >>> call("add", Literal(1, Type.INT), Literal(2.5, Type.FLOAT)).arguments[0]
    Literal(value=1.0, type=<Type.FLOAT: 'float'>)

    Raises:
        Mismatch: if no signature takes them.
    """
    if function in _COMPARISONS and any(argument is NULL for argument in arguments):
        raise Mismatch("Nothing equals NULL, not even NULL.", "Write IS NULL or IS NOT NULL: {present}.")
    given = _convert_arguments(function, arguments)
    signature = FUNCTIONS[function].result([argument.type for argument in given])
    if signature is None:
        raise _misfit(function, given)
    wanted = [signature.arguments[min(i, len(signature.arguments) - 1)] for i in range(len(given))]
    converted = tuple(_as(kind, argument) for kind, argument in zip(wanted, given, strict=True))
    return FunctionCall(function, converted, signature.result)


def _convert_arguments(function: str, arguments: Sequence[Expression]) -> list[Expression]:
    """Arguments with literals in the types of their places."""
    if function == "if":
        return [*_first_kind(function, arguments[:1]), *alike(arguments[1:])]
    if function in _COMPARISONS or function == "in":
        arguments = _unquote_numbers(arguments)
    return alike(arguments) if FUNCTIONS[function].alike else _first_kind(function, arguments)


def _unquote_numbers(arguments: Sequence[Expression]) -> Sequence[Expression]:
    """Returns arguments in which texts that are written next to numbers are the numbers they spell."""
    numbers = {argument.type for argument in arguments if argument.type.is_number}
    others = [argument for argument in arguments if not argument.type.is_number]
    texts = all(isinstance(other, Literal) and isinstance(other.value, str) for other in others)
    if not numbers or not others or not texts:
        return arguments
    kind = Type.FLOAT if Type.FLOAT in numbers else Type.INT
    return [argument if argument.type.is_number else _parse_number(kind, argument) for argument in arguments]


def _parse_number(kind: Type, literal: Expression) -> Literal:
    """Returns the number that a text spells, exactly as if it stood there without quotes."""
    text = str(literal.value) if isinstance(literal, Literal) else ""
    value = evaluate(FunctionCall(f"to_{kind.value}", (Literal(text, Type.TEXT),), kind), {})
    if value is None or len(text) > _LONGEST_NUMBER:
        whole = "whole number" if kind is Type.INT else "number"
        raise Mismatch(f"'{text[:40]}' is not a {whole}.", "Write numbers without quotes: {filtered}.")
    return Literal(value + 0, kind)  # + 0: there is one zero


_LONGEST_NUMBER = 40


def _first_kind(function: str, arguments: Sequence[Expression]) -> list[Expression]:
    wanted = FUNCTIONS[function].signatures[0].arguments
    return [
        Literal(None, wanted[min(i, len(wanted) - 1)]) if argument is NULL else argument
        for i, argument in enumerate(arguments)
    ]


def alike(arguments: Sequence[Expression]) -> list[Expression]:
    """Returns arguments of one type, as far as literals can be read in it and INT can serve as FLOAT."""
    kinds = {argument.type for argument in arguments if argument is not NULL}
    if not kinds:
        raise Mismatch("NULL has no type here.", "Leave it out, or write CAST(NULL AS INT): {count}.")
    for kind in (Type.TIMESTAMP, Type.DATE):
        if kind in kinds:
            return [_convert_date(kind, argument) for argument in arguments]
    kind = Type.FLOAT if kinds == {Type.INT, Type.FLOAT} else min(kinds, key=list(Type).index)
    return [_as(kind, argument) for argument in arguments]


def _as(kind: Type, argument: Expression) -> Expression:
    if argument is NULL:
        return Literal(None, kind)
    if kind is not Type.FLOAT or argument.type is not Type.INT:
        return argument
    if isinstance(argument, Literal):
        return Literal(None if argument.value is None else float(argument.value), Type.FLOAT)  # type: ignore[arg-type]
    return FunctionCall("to_float", (argument,), Type.FLOAT)


def _convert_date(kind: Type, argument: Expression) -> Expression:
    if argument is NULL:
        return Literal(None, kind)
    if kind is Type.TIMESTAMP and argument.type is Type.DATE and not any(columns(argument)):
        argument = Literal(evaluate(argument, {}), Type.DATE)  # DATE '2026-01-31' + INTERVAL 1 MONTH is a day, too
    if not isinstance(argument, Literal) or argument.type is kind:
        return argument
    if isinstance(argument.value, str):
        return parse_date(kind, argument.value)
    if argument.type is Type.DATE and isinstance(argument.value, dt.date):
        return Literal(dt.datetime.combine(argument.value, dt.time()), Type.TIMESTAMP)
    return Literal(None, kind) if argument.value is None and argument.type is Type.DATE else replace(argument)


def parse_date(kind: Type, text: str) -> Literal:
    """Reads a text as a DATE or TIMESTAMP literal.

    >>> parse_date(Type.DATE, "2026-01-31").value
    datetime.date(2026, 1, 31)
    """
    if kind is Type.TIMESTAMP and _DATE.fullmatch(text):
        text += " 00:00"
    try:
        if kind is Type.DATE and _DATE.fullmatch(text):
            return Literal(dt.date.fromisoformat(text), kind)
        if kind is Type.TIMESTAMP and _TIMESTAMP.fullmatch(text):
            return Literal(dt.datetime.fromisoformat(_six_digits(text)), kind)
    except ValueError:
        pass
    form = "YYYY-MM-DD" if kind is Type.DATE else "YYYY-MM-DD HH:MM:SS"
    raise Mismatch(f"'{text[:40]}' is not a {kind.value} that exists.", f"Write it as {form}: {{since}}.")


def _six_digits(text: str) -> str:
    """Python 3.11 reads 3 or 6 digits of a second; SQL any number."""
    whole, point, fraction = text.partition(".")
    return whole + point + fraction.ljust(6, "0") if point else whole


def _misfit(function: str, given: Sequence[Expression]) -> Mismatch:
    kinds = " and ".join(dict.fromkeys(argument.type.value for argument in given))
    like = "{since}" if any(argument.type.is_time for argument in given) else "{filtered}"
    record = FUNCTIONS[function]
    advice = record.advice or f"Convert one side with CAST, or compare like with like: {like}."
    return Mismatch(f"{record.display_name} does not take {kinds}.", advice)
