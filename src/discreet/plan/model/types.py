"""The types of columns and expressions: our own, with one meaning on every engine."""

from __future__ import annotations

from enum import Enum

from discreet.errors import InvalidParameter


class Type(Enum):
    """What a value is.

    INT is a whole number between -2^63 and 2^63 - 1, FLOAT a finite IEEE double, TEXT a string of Unicode code points,
    DATE a day of the proleptic Gregorian calendar, TIMESTAMP a day and a time of day in microseconds, without a zone.
    Every type has NULL. NaN and infinities do not exist: they are NULL as soon as they are read or computed.
    """

    is_number: bool
    """Whether arithmetic is defined."""

    is_time: bool
    """Whether it is a day or a moment, which have an order and distances."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"

    __hash__ = object.__hash__  # members are unique; that of enums is computed in Python, for every cell and node

    def __init__(self, name: str) -> None:
        self.is_number = name in ("int", "float")
        self.is_time = name in ("date", "timestamp")

    @classmethod
    def _missing_(cls, value: object) -> Type:
        names = ", ".join(kind.value for kind in cls)
        raise InvalidParameter("type", value, f"to be one of {names}")
