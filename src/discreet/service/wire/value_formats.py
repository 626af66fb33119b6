"""Values in PostgreSQL's text and binary formats.

A column of whole numbers is written as whole numbers: ends of intervals are rounded outwards, and what is not finite
is the smallest or largest number that fits into 64 bits.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from discreet.errors import InvalidParameter

BOOL, NAME, INT8, INT2, INT4, TEXT, OID = 16, 19, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, UNKNOWN, VARCHAR, BPCHAR, CHAR = 700, 701, 705, 1043, 1042, 18
DATE, TIMESTAMP, NUMERIC = 1082, 1114, 1700
_TEXT_TYPES = (TEXT, VARCHAR, BPCHAR, NAME, CHAR)
_PACKED = {BOOL: "!?", INT2: "!h", INT4: "!i", INT8: "!q", OID: "!I", FLOAT4: "!f", FLOAT8: "!d"}

SIZES = {oid: struct.calcsize(form) for oid, form in _PACKED.items()} | {CHAR: 1, DATE: 4, TIMESTAMP: 8}
"""The bytes of a value of each type; values of all other types differ in size."""

TYPES = {"int": INT8, "float": FLOAT8, "text": TEXT, "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP}
"""PostgreSQL's types of our columns."""

_DAY = dt.date(2000, 1, 1)
_MOMENT = dt.datetime(2000, 1, 1)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_MICROSECOND = dt.timedelta(microseconds=1)


# ------------------------------------------------------------------------------------------------------------- writing


def encode_value(value: Any, oid: int, form: int, *, column: str = "") -> bytes | None:
    """Returns a value of a document in a format; None for NULL.

    Args:
        value: as JSON has it: days and moments as texts, infinities, too.
        oid: the type of the column.
        form: 0 for text, 1 for binary.
        column: its name; `_low` and `_high` mark the ends of intervals.
    """
    if value is None:
        return None
    exact = _READ.get(oid, str)(value) if oid not in _WHOLE else _whole(value, column)
    return _BINARY[oid](exact) if form == 1 and oid in _BINARY else _TEXTS.get(oid, str)(exact).encode("utf-8")


def has_binary(oid: int) -> bool:
    """Returns whether values of a type are written in binary; texts are the same in both."""
    return oid in _BINARY or oid in (*_TEXT_TYPES, UNKNOWN)


def _whole(value: Any, column: str) -> int:
    number: Any = _INFINITIES.get(value, value) if isinstance(value, str) else value
    if isinstance(number, float) and not math.isfinite(number):
        return _LOWEST if number < 0 else _HIGHEST
    rounded = math.floor if column.endswith("_low") else math.ceil if column.endswith("_high") else round
    return max(_LOWEST, min(_HIGHEST, int(rounded(number))))


def _real(value: Any) -> float:
    return _INFINITIES[value] if isinstance(value, str) and value in _INFINITIES else float(value) + 0.0  # not -0.0


def _real_text(value: float) -> str:
    """Returns the shortest text that reads back as the same number, as PostgreSQL writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def _day(value: Any) -> dt.date | str:
    return value if value in _INFINITIES else dt.date.fromisoformat(str(value)[:10])


def _moment(value: Any) -> dt.datetime | str:
    return value if value in _INFINITIES else dt.datetime.fromisoformat(str(value))


def _time_text(value: dt.date | str) -> str:
    if isinstance(value, str):
        return value.lower()
    return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()


def _binary_day(value: dt.date | str) -> bytes:
    if isinstance(value, str):
        return struct.pack("!i", -(1 << 31) if value.startswith("-") else (1 << 31) - 1)
    return struct.pack("!i", (value - _DAY).days)


def _binary_moment(value: dt.datetime | str) -> bytes:
    if isinstance(value, str):
        return struct.pack("!q", _LOWEST if value.startswith("-") else _HIGHEST)
    return struct.pack("!q", (value - _MOMENT) // _MICROSECOND)


def _binary_numeric(value: Decimal) -> bytes:
    """Returns digits to the base 10000, as PostgreSQL sends them."""
    if not value.is_finite():
        sign = 0xC000 if value.is_nan() else 0xF000 if value < 0 else 0xD000
        return struct.pack("!hhHH", 0, 0, sign, 0)
    negative, digits, power = value.as_tuple()
    exponent = int(power)
    scale = max(0, -exponent)
    whole = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole = whole.rjust(scale + 1, "0")
    left, right = (whole[:-scale], whole[-scale:]) if scale else (whole, "")
    left = left.rjust(-(-len(left) // 4) * 4, "0")
    right = right.ljust(-(-len(right) // 4) * 4, "0")
    groups = [int((left + right)[i : i + 4]) for i in range(0, len(left + right), 4)]
    weight = len(left) // 4 - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups.pop()
    sign = 0x4000 if negative and groups else 0
    return struct.pack(f"!hhHH{len(groups)}h", len(groups), weight if groups else 0, sign, scale, *groups)


_WHOLE = {INT8, INT4, INT2, OID}
_READ: Mapping[int, Callable[[Any], Any]] = {
    BOOL: bool,
    FLOAT4: _real,
    FLOAT8: _real,
    NUMERIC: lambda value: Decimal(str(value)),
    DATE: _day,
    TIMESTAMP: _moment,
}
_TEXTS: Mapping[int, Callable[[Any], str]] = {
    BOOL: lambda value: "t" if value else "f",
    FLOAT4: _real_text,
    FLOAT8: _real_text,
    DATE: _time_text,
    TIMESTAMP: _time_text,
    NUMERIC: lambda value: format(value, "f") if value.is_finite() else str(value),
}
_BINARY: Mapping[int, Callable[[Any], bytes]] = {
    **{oid: partial(struct.pack, form) for oid, form in _PACKED.items()},
    DATE: _binary_day,
    TIMESTAMP: _binary_moment,
    NUMERIC: _binary_numeric,
}


# ------------------------------------------------------------------------------------------------------------- reading


def read_parameter(place: int, raw: bytes | None, oid: int, form: int) -> Any:
    """Returns the value of a parameter as JSON has it; days and moments as ISO texts.

    Raises:
        InvalidParameter: if it is not of its type, or the type is not supported.
    """
    if raw is None:
        return None
    readers = _FROM_BINARY if form == 1 else _FROM_TEXT
    kind = oid if oid in readers else TEXT if form == 0 and oid in (0, UNKNOWN) else None
    if kind is None:
        hint = "Pass a number, a text, a boolean, a date or a timestamp."
        raise InvalidParameter(f"${place}", f"a value of type {oid}", "to be of a supported type", hint)
    try:
        return readers[kind](raw)
    except (ValueError, struct.error, InvalidOperation, OverflowError):
        raise InvalidParameter(f"${place}", "its bytes", f"to be a value of type {oid}", "Check the driver.") from None


def _text_in(raw: bytes) -> str:
    text = raw.decode("utf-8")
    if "\0" in text:
        raise ValueError("zero")
    return text


def _bool_in(raw: bytes) -> bool:
    word = _text_in(raw).strip().lower()
    if word not in ("t", "true", "1", "yes", "on", "y", "f", "false", "0", "no", "off", "n"):
        raise ValueError(word)
    return word in ("t", "true", "1", "yes", "on", "y")


def _int_in(raw: bytes) -> int:
    return int(_text_in(raw)) if len(raw) < 40 else _fail()


def _float_in(raw: bytes) -> float:
    number = float(_text_in(raw))
    return number if math.isfinite(number) else _fail()


def _fail() -> Any:
    raise ValueError("out of range")


def _number(value: Decimal) -> Any:
    """Returns a whole number as an int, so that a plan sees the same query; others as doubles, as literals are."""
    if not value.is_finite() or abs(value) > Decimal(10) ** 300:
        raise ValueError("not finite")
    return int(value) if value == value.to_integral_value() and abs(value) <= _HIGHEST else float(value)


def _date_in(raw: bytes) -> str:
    return dt.date.fromisoformat(_text_in(raw).strip()).isoformat()


def _moment_in(raw: bytes) -> str:
    found = dt.datetime.fromisoformat(_text_in(raw).strip())
    if found.tzinfo is not None:
        raise ValueError("a time zone")
    return found.isoformat(" ")


def _build_unpacker(form: str) -> Callable[[bytes], Any]:
    def unpack(raw: bytes) -> Any:
        (value,) = struct.unpack(form, raw)
        return value if not isinstance(value, float) or math.isfinite(value) else _fail()

    return unpack


def _numeric_from_binary(raw: bytes) -> Any:
    count, weight, sign, _ = struct.unpack("!hhHH", raw[:8])
    if sign not in (0, 0x4000) or not 0 <= count <= 1000 or len(raw) != 8 + 2 * count:
        raise ValueError("numeric")
    digits = struct.unpack(f"!{count}h", raw[8:])
    value = sum((Decimal(digit).scaleb(4 * (weight - i)) for i, digit in enumerate(digits)), Decimal(0))
    return _number(-value if sign else value)


def _date_from_binary(raw: bytes) -> str:
    (days,) = struct.unpack("!i", raw)
    return (_DAY + dt.timedelta(days=days)).isoformat()


def _moment_from_binary(raw: bytes) -> str:
    (microseconds,) = struct.unpack("!q", raw)
    return (_MOMENT + dt.timedelta(microseconds=microseconds)).isoformat(" ")


_FROM_TEXT: Mapping[int, Callable[[bytes], Any]] = {
    **dict.fromkeys(_TEXT_TYPES, _text_in),
    **dict.fromkeys((INT2, INT4, INT8, OID), _int_in),
    **dict.fromkeys((FLOAT4, FLOAT8), _float_in),
    NUMERIC: lambda raw: _number(Decimal(_text_in(raw).strip())),
    BOOL: _bool_in,
    DATE: _date_in,
    TIMESTAMP: _moment_in,
}
_FROM_BINARY: Mapping[int, Callable[[bytes], Any]] = {
    **dict.fromkeys((*_TEXT_TYPES, UNKNOWN), _text_in),
    **{oid: _build_unpacker(form) for oid, form in _PACKED.items()},
    NUMERIC: _numeric_from_binary,
    DATE: _date_from_binary,
    TIMESTAMP: _moment_from_binary,
}
