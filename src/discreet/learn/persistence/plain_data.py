"""Plain data as JSON and back: what parameters and fitted attributes of learners are made of, and nothing else.

Numbers, texts, lists, tuples and dicts; arrays of numbers, truth values and texts as their bytes; amounts, events and
losses. No object is ever made by a name or by code in the text.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP, events
from discreet.privacy.events import Event

DEEPEST = 32
MOST_DIMENSIONS = 8
LONGEST_ITEM = 1 << 14  # bytes of one item of an array: a text of 4096 letters
LONGEST_ARRAY = 1 << 28  # items that its sides multiply to, were none of them empty
LONGEST_WHOLE = 1 << 12  # bits of a whole number
MOST_EVENTS = 1 << 14  # of one release with all its parts; a fit on 1,024 features has a few thousand
MARK = "$"

_HINT = "Numbers, texts, lists, dicts and NumPy arrays of numbers or texts are plain data."
_RATIO = re.compile(r"(-?[0-9]{1,2500})/([0-9]{1,2500})")  # 2^8192, the longest amount, has 2467 digits
_LOSSES: dict[str, type[Loss]] = {"pure": PureDP, "approx": ApproxDP, "zcdp": ZCDP}


Writer = Callable[[Any, int], Any]
"""Writes what is no plain data, given how many values it is nested in; None if it cannot either."""

Reader = Callable[[dict[str, Any], int], Any]
"""Reads what such a writer wrote, or raises."""


def write(value: Any, name: str = "value", depth: int = 0, other: Writer | None = None) -> Any:
    """Returns a value as what JSON can hold.

    Args:
        value: plain data.
        name: what it is called in errors.
        depth: how many values it is nested in.
        other: writes what is no plain data.

    Raises:
        InvalidParameter: if it is no plain data, or too deep.

    >>> write((1, Fraction(1, 3)))
    {'$': 'tuple', 'items': [1, {'$': 'fraction', 'value': '1/3'}]}
    """
    if depth > DEEPEST:
        raise InvalidParameter(name, "data", f"to be nested at most {DEEPEST} deep", _HINT)
    if value is None or type(value) in (bool, str):
        return value
    if type(value) in (list, tuple, dict):
        return _write_several(value, name, depth + 1, other)
    kind = np.generic if isinstance(value, np.generic) else Event if isinstance(value, Event) else type(value)
    writer = _WRITERS.get(kind)
    if writer is not None:
        return writer(value, name)
    found = None if other is None else other(value, depth + 1)
    if found is None:
        raise InvalidParameter(name, type(value).__name__, "to be plain data", _HINT)
    return found


def read(content: Any, other: Reader | None = None, depth: int = 0) -> Any:
    """Returns the value that `write` wrote.

    Args:
        content: what JSON held.
        other: reads objects of kinds that are none of plain data.
        depth: how many values it is nested in.

    Raises:
        InvalidParameter: if anything about it is not understood.
    """
    if depth > DEEPEST:
        refuse("data", f"to be nested at most {DEEPEST} deep")
    if isinstance(content, list):
        return [read(each, other, depth + 1) for each in content]
    if type(content) is int and abs(content) >= 1 << 53:
        refuse("a whole number", "to be written as a text if it is a long one")
    if not isinstance(content, dict):
        return content
    kind = content.get(MARK)
    if kind == "tuple":
        return tuple(read(_field(content, "items", list), other, depth + 1))
    if kind == "dict":
        pairs = read(_field(content, "items", list), other, depth + 1)
        if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int) for pair in pairs):
            refuse("a dict", "to be made of pairs")
        return dict(pairs)
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is not None:
        return reader(content)
    if other is None:
        refuse(str(kind), "to be a kind of plain data")
    return other(content, depth + 1)


def refuse(found: object, condition: str) -> NoReturn:
    """Ends the reading of a text that we did not write."""
    raise InvalidParameter("model", found, condition, "Pass what save or to_json wrote.")


def _write_several(value: Any, name: str, depth: int, other: Writer | None) -> Any:
    if isinstance(value, dict):
        if not all(type(key) in (str, int) for key in value):
            raise InvalidParameter(name, "a dict", "to have texts or whole numbers as keys", _HINT)
        return {MARK: "dict", "items": [[key, write(each, name, depth, other)] for key, each in value.items()]}
    items = [write(each, name, depth, other) for each in value]
    return items if isinstance(value, list) else {MARK: "tuple", "items": items}


def _write_whole(value: int, name: str) -> Any:
    if value.bit_length() > LONGEST_WHOLE:
        raise InvalidParameter(name, "a whole number", f"of at most {LONGEST_WHOLE} bits")
    return value if abs(value) < 1 << 53 else {MARK: "whole", "value": str(value)}


def _write_float(value: float, name: str) -> Any:
    del name
    return value if math.isfinite(value) else {MARK: "float", "value": str(value)}


def _check_amount(value: Fraction | Decimal, name: str) -> None:
    try:
        check.rational(amount=value)
    except InvalidParameter as error:
        raise InvalidParameter(name, error.value, error.condition, error.hint) from None


def _write_fraction(value: Fraction, name: str) -> Any:
    _check_amount(value, name)
    return {MARK: "fraction", "value": f"{value.numerator}/{value.denominator}"}


def _write_decimal(value: Decimal, name: str) -> Any:
    _check_amount(value, name)
    return {MARK: "decimal", "value": str(value)}


def _write_loss(value: Loss, name: str) -> Any:
    kind = next(kind for kind, one in _LOSSES.items() if one is type(value))
    amounts = [getattr(value, field.name) for field in dataclasses.fields(value)]  # type: ignore[arg-type]
    return {MARK: "loss", "loss": kind, "amounts": [_write_fraction(amount, name) for amount in amounts]}


def _write_array(value: NDArray[Any], name: str) -> dict[str, Any]:
    if value.dtype.kind == "O" and all(type(each) is str for each in value.ravel()):
        value = value.astype(np.str_)  # texts, as they come from a frame
    kind = value.dtype
    if kind.kind not in "biufU" or kind.itemsize > LONGEST_ITEM or value.ndim > MOST_DIMENSIONS:
        raise InvalidParameter(name, f"an array of {kind}", "to hold numbers or texts", _HINT)
    little = np.ascontiguousarray(value, dtype=kind.newbyteorder("<"))
    data = base64.b64encode(little.tobytes()).decode("ascii")
    return {MARK: "array", "dtype": little.dtype.str, "shape": list(value.shape), "data": data}


def _event_text(event: Event, name: str) -> str:
    text = events.to_json(event)
    if text.count('"kind":') > MOST_EVENTS:
        raise InvalidParameter(name, "an event", f"to have at most {MOST_EVENTS} parts", "Use Repeated for equal ones.")
    return text


_WRITERS: Mapping[type, Callable[[Any, str], Any]] = {
    int: _write_whole,
    float: _write_float,
    Fraction: _write_fraction,
    Decimal: _write_decimal,
    np.ndarray: _write_array,
    np.generic: lambda value, name: {**_write_array(np.asarray(value), name), MARK: "scalar"},
    Event: lambda value, name: {MARK: "event", "value": _event_text(value, name)},
    Neighbours: lambda value, _: {MARK: "neighbours", "value": value.value},
    **dict.fromkeys(_LOSSES.values(), _write_loss),
}


def _field(content: dict[str, Any], name: str, kind: type) -> Any:
    if content.keys() != {MARK, name} or type(content[name]) is not kind:
        refuse(", ".join(map(str, content)), f"to have the field {name} alone, a {kind.__name__}")
    return content[name]


def _read_whole(content: dict[str, Any]) -> int:
    text = _field(content, "value", str)
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > LONGEST_WHOLE // 3:
        refuse(text[:40], "to be a whole number")
    return int(text)


def _read_float(content: dict[str, Any]) -> float:
    text = _field(content, "value", str)
    if text not in ("nan", "inf", "-inf"):
        refuse(text[:40], "to be no finite number")
    return float(text)


def _read_fraction(content: dict[str, Any]) -> Fraction:
    text = _field(content, "value", str)
    match = _RATIO.fullmatch(text)
    if match is None or not int(match[2]):
        refuse(text[:40], "to be a fraction")
    return check.rational(model=Fraction(int(match[1]), int(match[2])))


def _read_decimal(content: dict[str, Any]) -> Decimal:
    text = _field(content, "value", str)
    if len(text) > check.LARGEST_BITS:
        refuse(text[:40], "to be an amount")
    check.rational(model=text)
    return Decimal(text)


def _read_loss(content: dict[str, Any]) -> Loss:
    kind = _LOSSES.get(str(content.get("loss")))
    amounts = content.get("amounts")
    if kind is None or content.keys() != {MARK, "loss", "amounts"} or not isinstance(amounts, list):
        refuse("a loss", "to be of a known kind")
    if len(amounts) != len(dataclasses.fields(kind)):  # type: ignore[arg-type]
        refuse("a loss", "to have its amounts")
    return kind(*(_read_fraction(amount) for amount in amounts if isinstance(amount, dict)))


def _read_array(content: dict[str, Any]) -> NDArray[Any]:
    """Returns an array of known bytes: type, shape and length must fit each other before anything is made."""
    kind, shape, data = (content.get(part) for part in ("dtype", "shape", "data"))
    if content.keys() != {MARK, "dtype", "shape", "data"} or not isinstance(kind, str) or not isinstance(data, str):
        refuse("an array", "to have dtype, shape and data")
    if len(kind) > 8 or kind[:1] not in "<|" or kind[1:2] not in "biufU" or not kind[2:].isdecimal():
        refuse(kind[:40], "to be a type of numbers or texts")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS or not all(_is_size(size) for size in shape):
        refuse("an array", "to have a shape")
    if math.prod(max(size, 1) for size in shape) > LONGEST_ARRAY:
        refuse("an array", f"to have sides that multiply to at most {LONGEST_ARRAY}, an empty one too")
    try:
        made, raw = np.dtype(kind), base64.b64decode(data, validate=True)
    except (TypeError, ValueError, binascii.Error):
        refuse(kind, "to be an array's type and bytes")
    if not 0 < made.itemsize <= LONGEST_ITEM or math.prod(shape) * made.itemsize != len(raw):
        refuse("an array", "to have as many bytes as its shape says")
    return _check_array(np.frombuffer(raw, dtype=made).reshape(shape))


def _is_size(size: object) -> bool:
    return type(size) is int and 0 <= size < 1 << 40


def _check_array(array: NDArray[Any]) -> NDArray[Any]:
    """Returns a copy of its own; texts hold code points, truth values 0 and 1."""
    if array.dtype.kind == "U" and array.size:
        codes = np.frombuffer(array.tobytes(), dtype="<u4")
        if (codes > 0x10FFFF).any() or ((codes >= 0xD800) & (codes <= 0xDFFF)).any():
            refuse("an array", "to hold texts")
    if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        refuse("an array", "to hold truth values")
    return array.astype(array.dtype.newbyteorder("="), copy=True)


_READERS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "whole": _read_whole,
    "float": _read_float,
    "fraction": _read_fraction,
    "decimal": _read_decimal,
    "loss": _read_loss,
    "array": _read_array,
    "scalar": lambda content: _read_array({**content, MARK: "array"})[()],
    "event": lambda content: events.from_json(_field(content, "value", str), most=MOST_EVENTS),
    "neighbours": lambda content: Neighbours(_field(content, "value", str)),
}
