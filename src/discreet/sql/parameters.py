"""Parameters: the values of `?`, `$1`, `:name` and `$name`, which become literals before anything is parsed.

A value is put in its place as a token of its own kind, never as text: nothing in it is read as SQL. The plan is the one
of the same question with its values written out, so that both are charged once and replayed for each other.
"""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Any

import numpy as np
from sqlglot.tokenizer_core import Token
from sqlglot.tokenizer_core import TokenType as Kind

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

Parameters = Sequence[object] | Mapping[str, object] | None
"""What a question's parameters are given as: a list for `?` and `$1`, a dictionary for `:name` and `$name`."""

LONGEST = 20_000
"""Characters of a question, and of all its values."""

_INT_LOW, _INT_HIGH = -(2**63), 2**63 - 1
_KINDS = "None, a number, a text, True or False, a date or a datetime"
_WAYS = "Write ? for each, or $1, $2 and so on, or :name for each."

Parts = list[tuple[Kind, str]]
"""The tokens that a literal is written with."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a parameter, how many tokens it has, and what it is called: a number from 1 on, or a name."""

    index: int
    length: int
    name: int | str
    written: str


def as_asked(question: str, given: Parameters) -> str:
    """Returns the text of a question as it was asked; the values of its parameters follow as a comment, for people.

    >>> as_asked("SELECT COUNT(*) FROM visits WHERE ward = :ward", {"ward": "A"})
    "SELECT COUNT(*) FROM visits WHERE ward = :ward -- ward = 'A'"
    """
    named = (
        given.items()
        if isinstance(given, Mapping)
        else ((f"${place}", one) for place, one in enumerate(given or (), 1))
    )
    return f"{question} -- {', '.join(f'{name} = {value!r}' for name, value in named)}"


def fill_parameters(found: Sequence[Token], given: Parameters) -> list[Token]:
    """Returns the tokens of a question with values in the places of its parameters.

    Raises:
        InvalidParameter: if a value is missing, superfluous or of no type of ours.
    """
    found = [part for token in found for part in _apart(token)]
    places = list(_places(found))
    _check_style(places)
    values = _values(places, given)
    made: list[Token] = []
    edge = 0
    for place in places:
        parts = _literal_of(place, values[place.name])
        made += [*found[edge : place.index], *(_token(found[place.index], part) for part in parts)]
        edge = place.index + place.length
    made += found[edge:]
    total = sum(len(token.text) for token in made)
    if total > LONGEST:
        raise InvalidParameter("parameters", f"{total} characters in all", f"to have at most {LONGEST}")
    return made


def _apart(token: Token) -> list[Token]:
    """Splits `?::`, which is a parameter before a cast."""
    if token.token_type is not Kind.QDCOLON:
        return [token]
    mark, cast = token.start, token.start + 1
    return [
        Token(Kind.PLACEHOLDER, "?", token.line, token.col, mark, mark, []),
        Token(Kind.DCOLON, "::", token.line, token.col, cast, token.end, []),
    ]


def _places(found: Sequence[Token]) -> Iterator[_Place]:
    """Yields the parameters from left to right; a sign in another place is none, and refused by the gate."""
    marks = 0
    for index, token in enumerate(found):
        if token.token_type is Kind.PLACEHOLDER:
            marks += 1
            yield _Place(index, 1, marks, "?")
        elif token.text in ("$", ":") and token.token_type in (Kind.PARAMETER, Kind.COLON):
            name = _name(found, index)
            if name is not None:
                yield _Place(index, 2, name, f"{token.text}{name}")


def _name(found: Sequence[Token], index: int) -> int | str | None:
    """Returns what a sign makes a parameter of: the number or the word that follows at once; [1:n] and a:b are none."""
    sign, after = found[index], found[index + 1] if index + 1 < len(found) else None
    if after is None or after.start != sign.end + 1 or after.token_type in (Kind.STRING, Kind.IDENTIFIER):
        return None
    if sign.text == "$" and after.token_type is Kind.NUMBER and after.text.isdecimal() and len(after.text) < 6:
        return int(after.text)
    glued = index > 0 and found[index - 1].end + 1 == sign.start and found[index - 1].text[-1:].isalnum()
    return after.text if after.text.isidentifier() and not glued else None


def _check_style(places: Sequence[_Place]) -> None:
    styles = {"?" if place.written == "?" else "$1" if isinstance(place.name, int) else ":name" for place in places}
    if len(styles) > 1:
        raise InvalidParameter("parameters", " and ".join(sorted(styles)), "to be written in one way", _WAYS)


def _values(places: Sequence[_Place], given: Parameters) -> Mapping[int | str, object]:
    """Returns the value of each parameter."""
    if not places:
        _check_none(given)
        return {}
    return (
        _read_named_values(places, given) if isinstance(places[0].name, str) else _read_numbered_values(places, given)
    )


def _check_none(given: object) -> None:
    if given is not None and (not isinstance(given, Sequence | Mapping) or len(given)):
        shown = _names(given) if isinstance(given, Mapping) else type(given).__name__
        hint = "The question has none: write ?, $1, :name or $name where values belong."
        raise InvalidParameter("parameters", shown, "to be left out", hint)


def _read_named_values(places: Sequence[_Place], given: Parameters) -> Mapping[int | str, object]:
    """Returns the value of each name, from a dictionary."""
    wanted = dict.fromkeys(str(place.name) for place in places)
    example = "{" + ", ".join(f"{name!r}: ..." for name in wanted) + "}"
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidParameter("parameters", type(given).__name__, "to be a dictionary", f"Pass {example}.")
    missing = [place.written for place in places if place.name not in given]
    if missing:
        several = ", ".join(dict.fromkeys(missing))
        raise InvalidParameter("parameters", _names(given), f"to have a value for {several}", f"Pass {example}.")
    extra = [name for name in given if name not in wanted]
    if extra:
        hint = f"The question has {', '.join(dict.fromkeys(place.written for place in places))}."
        raise InvalidParameter("parameters", _names(given), f"without {', '.join(map(repr, extra))}", hint)
    return {name: given[name] for name in wanted}


def _read_numbered_values(places: Sequence[_Place], given: Parameters) -> Mapping[int | str, object]:
    """Returns the value of each number, from 1 on, from a list."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        shown = None if given is None else type(given).__name__
        raise InvalidParameter("parameters", shown, "to be a list", f"Pass {_count(places)}: [value, ...].")
    wanted = {int(place.name) for place in places}
    gaps = [f"${place}" for place in range(1, max(wanted)) if place not in wanted]
    if gaps or 0 in wanted:
        shown = ", ".join(dict.fromkeys(place.written for place in places))
        hint = f"{gaps[0]} is not in the question." if gaps else "They begin with $1."
        raise InvalidParameter("parameters", shown, "to be numbered $1, $2 and so on", hint)
    if len(given) != max(wanted):
        shown, hint = f"{len(given)} values", f"Pass {_count(places)}."
        raise InvalidParameter("parameters", shown, f"to be {max(wanted)}", hint)
    return dict(enumerate(given, start=1))


def _count(places: Sequence[_Place]) -> str:
    return "a value for each ?" if places[0].written == "?" else f"values for $1 to ${max(int(p.name) for p in places)}"


def _names(given: Mapping[Any, object]) -> str:
    return "{" + ", ".join(map(str, given)) + "}"


def _token(place: Token, part: tuple[Kind, str]) -> Token:
    """Returns a token in the place of the parameter."""
    kind, text = part
    return Token(kind, text, place.line, place.col, place.start, place.end, [])


# --------------------------------------------------------------------------------------------------------------- values


def _literal_of(place: _Place, value: object) -> Parts:
    try:
        return _literal(value)
    except _NoLiteral as error:
        raise InvalidParameter(f"parameters[{place.written}]", error.shown, error.condition, error.hint) from None


class _NoLiteral(Exception):
    """A value without a literal, and why."""

    def __init__(self, shown: object, condition: str, hint: str = "") -> None:
        self.shown, self.condition, self.hint = shown, condition, hint
        super().__init__(condition)


@singledispatch
def _literal(value: object) -> Parts:
    raise _NoLiteral(type(value).__name__, f"to be {_KINDS}", "For a list of values write IN with a ? for each.")


@_literal.register
def _(value: None) -> Parts:
    del value
    return [(Kind.NULL, "NULL")]


@_literal.register
def _(value: bool | np.bool_) -> Parts:
    return [(Kind.TRUE, "TRUE") if value else (Kind.FALSE, "FALSE")]


@_literal.register
def _(value: numbers.Integral) -> Parts:
    whole = int(value)
    if not _INT_LOW <= whole <= _INT_HIGH:
        raise _NoLiteral(value, "to fit into 64 bits", "Pass it as a float.")
    return _number_parts(whole < 0, str(abs(whole)))


@_literal.register
def _(value: numbers.Real) -> Parts:
    real = float(value)
    if not math.isfinite(real):
        raise _NoLiteral(value, "to be finite", "Pass None for a missing value.")
    return _number_parts(real < 0, repr(abs(real)))


@_literal.register
def _(value: numbers.Rational) -> Parts:
    if value.denominator == 1 and _INT_LOW <= int(value.numerator) <= _INT_HIGH:
        return _literal(int(value.numerator))
    try:
        return _literal(float(value))
    except OverflowError:
        raise _NoLiteral("a fraction", "to fit into a double") from None


@_literal.register
def _(value: Decimal) -> Parts:
    """A number with decimals is a double, as it is where it is written out."""
    if value.is_finite() and value.as_tuple().exponent == 0 and _INT_LOW <= value <= _INT_HIGH:
        return _literal(int(value))
    return _literal(float(value) if not value.is_snan() else math.nan)


def _number_parts(negative: bool, digits: str) -> Parts:
    """Returns a number; a negative one in brackets, so that an operator before it does not bind its digits first."""
    number = (Kind.NUMBER, digits)
    return [(Kind.L_PAREN, "("), (Kind.DASH, "-"), number, (Kind.R_PAREN, ")")] if negative else [number]


@_literal.register
def _(value: str) -> Parts:
    text = str(value)
    if any(map(check.is_hidden, text)):
        raise _NoLiteral(value, "to have no invisible characters", "Delete them.")
    return [(Kind.STRING, text)]


@_literal.register
def _(value: dt.date) -> Parts:
    return [(Kind.DATE, "DATE"), (Kind.STRING, f"{value.year:04}-{value.month:02}-{value.day:02}")]


@_literal.register
def _(value: dt.datetime) -> Parts:
    """A moment; finer parts of a second than six digits, which other libraries have, are cut."""
    if not isinstance(value.year, int):  # a missing moment of another library
        raise _NoLiteral(value, "to be a moment", "Pass None for a missing value.")
    if value.tzinfo is not None:
        raise _NoLiteral(value, "to have no time zone", "Pass value.replace(tzinfo=None) in the table's own time zone.")
    plain = dt.datetime(*value.timetuple()[:6], value.microsecond)
    return [(Kind.TIMESTAMP, "TIMESTAMP"), (Kind.STRING, plain.isoformat(" "))]
