"""What documents are made of: cells, amounts, losses and events as JSON and back.

Amounts are exact texts, days and moments are in ISO 8601, and what is not finite is "Infinity" or "-Infinity", since
JSON has no such number.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from discreet.errors import InvalidParameter
from discreet.ledger import Remaining
from discreet.ledger.serialization import read_loss, write_loss
from discreet.measurement.profile.sizes import Figure
from discreet.plan.model.nodes import Value
from discreet.privacy import Loss, events

Document = dict[str, Any]
"""Plain JSON: dictionaries with texts as keys, lists, texts, numbers, truth values and null."""

Given = Mapping[str, Any]

_ISO_DAY = len("2026-03-01")
_NOT_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # of a reader of what is no document


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Refuses whatever is no document of a kind with one error, wherever reading it fails."""
    try:
        yield
    except _MALFORMED:
        hint = "It was changed on its way, or written by another version of this library."
        raise InvalidParameter("document", "this one", f"to be a whole document of kind {kind!r}", hint) from None


def write_value(value: Value) -> Any:
    """Returns a cell, an end of an interval or another plain value as JSON.

    >>> write_value(dt.date(2026, 3, 1)), write_value(-math.inf), write_value(2**70), write_value("a")
    ('2026-03-01', '-Infinity', 1180591620717411303424, 'a')
    """
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE[str(value)]
    return value + 0.0 if isinstance(value, float) else value  # a zero has no sign


def read_value(kind: str, written: Any) -> Value:
    """Returns the cell that `write_value` wrote, in a column of a type.

    >>> read_value("timestamp", "2026-03-01T12:00:00"), read_value("float", "Infinity"), read_value("text", "Infinity")
    (datetime.datetime(2026, 3, 1, 12, 0), inf, 'Infinity')
    """
    found: Value = written
    if written is None or not isinstance(written, str) or kind == "text":
        return found
    if kind in ("date", "timestamp"):
        return dt.date.fromisoformat(written) if len(written) == _ISO_DAY else dt.datetime.fromisoformat(written)
    return read_float(written)


def read_float(written: Any) -> float:
    """Returns a number that `write_value` wrote; it may be infinite.

    Raises:
        ValueError: if it is a text of any other kind.
    """
    if isinstance(written, str) and written not in _NOT_FINITE.values():
        raise ValueError(written)
    return float(written)


def write_amount(amount: Fraction) -> str:
    """Returns an exact amount: in decimals where it has some, else as a ratio.

    >>> write_amount(Fraction(19, 20)), write_amount(Fraction(1, 3)), write_amount(Fraction(3))
    ('0.95', '1/3', '3')
    """
    for text in (str(amount), f"{float(amount)!r}"):
        if "/" not in text and "e" not in text and Fraction(text) == amount:
            return text
    return str(amount)


def write_loss_text(loss: Loss | None) -> Document | None:
    """Returns a loss as its exact amounts, and as it is printed; None for none.

    >>> from discreet.privacy import Budget
    >>> write_loss_text(Budget(epsilon="0.1"))
    {'text': 'epsilon=0.1', 'epsilon': '1/10'}
    """
    return None if loss is None else {"text": str(loss), **write_loss(loss)}


def read_some_loss(written: Given) -> Loss:
    """Returns the loss that `write_loss_text` wrote."""
    return read_loss({name: text for name, text in written.items() if name in ("epsilon", "rho", "delta")})


def write_remaining(left: Remaining) -> Document:
    """Returns what is left: a loss, and in "largest_epsilon" the largest pure question that is still possible."""
    return {"text": str(left.loss), **write_loss(left.loss), "largest_epsilon": write_amount(left.epsilon)}


def read_remaining(written: Given) -> Remaining:
    """Returns what `write_remaining` wrote."""
    return Remaining(read_some_loss(written), Fraction(written["largest_epsilon"]))


def write_event(event: events.Event) -> Document:
    """Returns an event as its own JSON has it, which never changes its meaning."""
    made: Document = json.loads(events.to_json(event))
    return made


def read_event(written: Given) -> events.Event:
    """Returns the event that `write_event` wrote."""
    return events.from_json(json.dumps(written))


def write_figure(found: Figure) -> list[Any]:
    """Returns an estimate with the ends of its interval: value, low, high."""
    return [write_value(part) for part in (found.value, found.low, found.high)]


def read_figure(written: list[Any]) -> Figure:
    """Returns what `write_figure` wrote."""
    return Figure(*map(read_float, written))


class PlainType(NamedTuple):
    """How values of one of the smallest types are written and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _same(kind: type) -> PlainType:
    def read(written: Any) -> Any:
        if type(written) is not kind:
            raise TypeError(kind.__name__)
        return written

    return PlainType(write_value, read)


_PLAIN: Mapping[type, PlainType] = {
    **{kind: _same(kind) for kind in (bool, int, str, type(None))},  # bool before int, of which it is one
    float: PlainType(write_value, read_float),
    dt.datetime: PlainType(write_value, dt.datetime.fromisoformat),  # before date, of which it is one
    dt.date: PlainType(write_value, dt.date.fromisoformat),
    Loss: PlainType(write_loss_text, read_some_loss),
    Remaining: PlainType(write_remaining, read_remaining),
    events.Event: PlainType(write_event, read_event),
    Figure: PlainType(write_figure, read_figure),
    Fraction: PlainType(write_amount, Fraction),
}


@cache
def plain_type(kind: Any) -> PlainType | None:
    """Returns how values of a type are written and read, if it is one of the smallest or narrower than one of them."""
    return next((both for known, both in _PLAIN.items() if issubclass(kind, known)), None)
