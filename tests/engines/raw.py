"""Raw values for every type and source: what can be stored, built from bytes where no library would write it.

A specimen is a way to store a column. It makes a table of people, one row each, out of raw cells, and tells what each
cell means: a value of one of our types, or NULL where there is none.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import Any

from discreet.noise import SeededBits, uniform_below
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW
from discreet.plan.model.nodes import Value
from discreet.plan.model.types import Type

Build = Callable[[Sequence[Any], Path], Any]

EPOCH = dt.datetime(1970, 1, 1)
LOW, HIGH = -(1 << 63), (1 << 63) - 1
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT = Context(prec=80)


@dataclass(frozen=True)
class Specimen:
    """A way to store a column.

    Args:
        name: of the source and of the type that it stores.
        type: the type of ours.
        cells: raw cells, of which the first three are ordinary ones.
        meaning: of a raw cell.
        build: the table of raw cells, with the columns id, n and x.
        draw: another raw cell.
        left_out: whether the source has no row with such a cell.
    """

    name: str
    type: Type
    cells: Sequence[Any]
    meaning: Callable[[Any], Value]
    build: Build
    draw: Callable[[SeededBits], Any] | None = None
    left_out: Callable[[Any], bool] = lambda _: False

    def cell(self, place: int, bits: SeededBits) -> Any:
        """One of the cells that are listed, then others."""
        if place < len(self.cells) or self.draw is None:
            return self.cells[place % len(self.cells)]
        return self.draw(bits)

    def rows(self, cells: Sequence[Any]) -> list[dict[str, Value]]:
        """What the table of these cells means to a question that reads them."""
        return [row for row, cell in zip(self.everybody(cells), cells, strict=True) if not self.left_out(cell)]

    def everybody(self, cells: Sequence[Any]) -> list[dict[str, Value]]:
        """All rows, as a question finds them that does not read the cells."""
        return [{"id": place, "n": place % 5, "x": self.meaning(cell)} for place, cell in enumerate(cells)]


# ------------------------------------------------------------------------------------------------------------ meanings
def same(raw: Any) -> Any:
    return raw


def whole(raw: int | None) -> int | None:
    return None if raw is None or not INT_LOW <= raw <= INT_HIGH else raw


def wrapped(raw: int | None, *, size: int, signed: bool) -> int | None:
    """The lowest bits, where a format has room for more than the type that it names."""
    if raw is None:
        return None
    low = raw % (1 << size)
    return whole(low - (1 << size) if signed and low >= 1 << (size - 1) else low)


def moment(raw: int | None, *, unit: str) -> dt.datetime | None:
    """So many units since 1970; nanoseconds are rounded, halves away from it; two numbers mean no end."""
    if raw is None or abs(raw) == HIGH:
        return None
    micros = raw * 10**6 // PER_SECOND[unit] if unit != "ns" else (abs(raw) + 500) // 1000 * (1 if raw > 0 else -1)
    try:
        return EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None


def day(raw: int | None) -> dt.date | None:
    try:
        return None if raw is None else EPOCH.date() + dt.timedelta(days=raw)
    except OverflowError:
        return None


def decimal(raw: int | None, *, precision: int, scale: int) -> float | None:
    """So many units of the last digit, if they are no more digits than there are."""
    if raw is None or abs(raw) >= 10**precision:
        return None
    return float(Decimal(raw).scaleb(-scale, _EXACT))


def text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None


# --------------------------------------------------------------------------------------------------------------- cells
INTEGERS = [
    *(1, 2, 3, None, 0, -1, HIGH, HIGH - 1, LOW, LOW + 1, LOW + 2, 1 << 62, -(1 << 62), (1 << 53) + 1),
    *(HIGH // 1000, HIGH // 1000 + 1, -(HIGH // 1000) - 1, -(HIGH // 1000) - 2, HIGH // 10**6, HIGH // 10**6 + 1),
    *(-62135596800, -62135596801, 253402300799, 253402300800, -62135596800000, 253402300800000),
    *(-62135596800000000, -62135596800000001, 253402300799999999, 253402300800000000, 9467000000000, 2932896, -719162),
]
SHORT = [
    1,
    2,
    3,
    None,
    0,
    -1,
    *(1 << k for k in range(7, 31)),
    (1 << 31) - 1,
    -(1 << 31),
    -(1 << 31) + 1,
    2932896,
    -719163,
]
TEXTS = [
    *(
        b"a",
        b"b",
        b"c",
        None,
        b"",
        b"\xff",
        b"a\xffb",
        b"\xed\xa0\x80",
        b"\xed\xb0\x80x",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
    ),
    *(
        b"\xc3",
        b"\xc3\xa9",
        b"\xf0\x9f\xa4\xa6",
        b"\xf0\x9f",
        b"\x80",
        b"a\0b",
        b"?",
        b"??",
        b"\xef\xbb\xbf",
        b"\xe2\x82",
    ),
    *(b"x" * 4000, b"y" * 4000 + b"\xff", b" a ", b"12", b"2024-02-29", b"'; --", b'"'),
]
_BYTES = bytes(
    [0, 9, 32, 39, 63, 65, 0x7F, 0x80, 0x9F, 0xA0, 0xA9, 0xBF, 0xC0, 0xC3, 0xE2, 0x82, 0xED, 0xF0, 0xF4, 0xFF]
)


def draw_integer(bits: SeededBits) -> int:
    """Of any size and sign."""
    size = 1 + uniform_below(63, bits=bits)
    number = int(bits.words(1)[0]) >> (64 - size)
    return -number - 1 if uniform_below(2, bits=bits) else number


def draw_short(bits: SeededBits) -> int:
    return draw_integer(bits) % (1 << 32) - (1 << 31)


def draw_wide(bits: SeededBits) -> int:
    """A whole number of up to 128 bits."""
    size = 1 + uniform_below(127, bits=bits)
    number = bits.integer(128) >> (128 - size)
    return -number - 1 if uniform_below(2, bits=bits) else number


def draw_text(bits: SeededBits) -> bytes:
    return bytes(_BYTES[uniform_below(len(_BYTES), bits=bits)] for _ in range(uniform_below(6, bits=bits)))


def draw_float(bits: SeededBits) -> float:
    """Any bits."""
    return float(struct.unpack("<d", struct.pack("<Q", int(bits.words(1)[0])))[0])


def number_of(raw: float | None) -> float | None:
    return raw if raw is not None and math.isfinite(raw) else None


WIDE = [
    1,
    2,
    3,
    None,
    *(sign * (10**k - d) for k in (4, 9, 15, 18, 38) for d in (0, 1) for sign in (1, -1)),
    (1 << 127) - 1,
]
WIDE += [-(1 << 127), -(1 << 127) + 1, (1 << 63) - 1, -(1 << 63), 12345678901234567890123456789012345678, 0]
FLOATS = [
    0.5,
    1.5,
    2.5,
    None,
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e308,
    5e-324,
    -1.7976931348623157e308,
]

integers = partial(Specimen, cells=INTEGERS, draw=draw_integer)
texts = partial(Specimen, type=Type.TEXT, cells=TEXTS, meaning=text, draw=draw_text)
floats = partial(Specimen, type=Type.FLOAT, cells=FLOATS, meaning=number_of, draw=draw_float)


def moments(name: str, unit: str, build: Build, cells: Sequence[Any] = INTEGERS) -> Specimen:
    meaning = partial(moment, unit=unit)
    return integers(name=name, type=Type.TIMESTAMP, meaning=meaning, build=build, cells=cells)


def decimals(name: str, precision: int, scale: int, build: Build, *, size: int = 128) -> Specimen:
    """Of numbers that fit into so many bits, of which some have too many digits."""
    cells = [raw for raw in WIDE if raw is None or -(1 << (size - 1)) <= raw < 1 << (size - 1)]
    most = (1 << (size - 1)) - 1
    return Specimen(
        name=name,
        type=Type.FLOAT,
        cells=cells,
        meaning=partial(decimal, precision=precision, scale=scale),
        build=build,
        draw=lambda bits: max(-most, min(most, draw_wide(bits))),
    )
