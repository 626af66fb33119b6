"""Values in text and binary, held against psycopg's own reading and writing."""

import datetime as dt
import math
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from discreet.errors import InvalidParameter
from discreet.service.wire import value_formats as formats

_WHOLE = st.integers(-(2**63), 2**63 - 1)
_DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
_MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))


def _loaded(raw: bytes | None, oid: int, form: int) -> Any:
    return Transformer().get_loader(oid, Format(form)).load(raw) if raw is not None else None


def _both(value: Any, oid: int) -> list[Any]:
    return [_loaded(formats.encode_value(value, oid, form), oid, form) for form in (0, 1)]


@given(_WHOLE)
def test_whole_numbers(value: int) -> None:
    assert _both(value, formats.INT8) == [value, value]


@given(st.floats(allow_nan=False))
def test_real_numbers(value: float) -> None:
    told = value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
    assert _both(told, formats.FLOAT8) == [value, value]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_texts(value: str) -> None:
    assert _both(value, formats.TEXT) == [value, value]


@given(_DAYS)
def test_days(value: dt.date) -> None:
    assert _both(value.isoformat(), formats.DATE) == [value, value]


@given(_MOMENTS)
def test_moments(value: dt.datetime) -> None:
    assert _both(value.isoformat(), formats.TIMESTAMP) == [value, value]


@given(st.integers(-(10**40), 10**40), st.integers(-30, 30))
def test_decimals(digits: int, exponent: int) -> None:
    value = Decimal(f"{digits}e{exponent}")
    assert _both(str(value), formats.NUMERIC) == [value, value]


def test_truth_and_null() -> None:
    assert _both(True, formats.BOOL) == [True, True]
    assert _both(False, formats.BOOL) == [False, False]
    assert formats.encode_value(None, formats.INT8, 1) is None


@pytest.mark.parametrize(
    ("value", "column", "told"),
    [
        (2.5, "n_low", 2),
        (2.5, "n_high", 3),
        (-2.5, "n_low", -3),
        ("Infinity", "n_high", 2**63 - 1),
        ("-Infinity", "n_low", -(2**63)),
        (2**70, "n", 2**63 - 1),
    ],
)
def test_ends_of_intervals_are_rounded_outwards(value: Any, column: str, told: int) -> None:
    assert formats.encode_value(value, formats.INT8, 0, column=column) == str(told).encode()


@pytest.mark.parametrize("form", [0, 1])
@given(value=st.one_of(st.booleans(), _WHOLE, st.floats(allow_nan=False, allow_infinity=False), _DAYS, _MOMENTS))
def test_parameters_as_psycopg_writes_them(form: int, value: Any) -> None:
    dumper = Transformer().get_dumper(value, PyFormat.BINARY if form else PyFormat.TEXT)
    dumped = dumper.dump(value)
    read = formats.read_parameter(1, bytes(dumped) if dumped is not None else None, dumper.oid, form)
    if isinstance(value, dt.datetime):
        assert dt.datetime.fromisoformat(read) == value
    elif isinstance(value, dt.date):
        assert read == value.isoformat()
    else:
        assert read == value
        assert isinstance(read, bool) == isinstance(value, bool)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12))
def test_decimal_parameters(value: Decimal) -> None:
    for form, how in ((0, PyFormat.TEXT), (1, PyFormat.BINARY)):
        dumped = Transformer().get_dumper(value, how).dump(value)
        assert dumped is not None
        read = formats.read_parameter(1, bytes(dumped), formats.NUMERIC, form)
        assert read == (int(value) if value == int(value) else float(value))


@pytest.mark.parametrize(
    ("raw", "oid", "form"),
    [
        (b"x", formats.INT8, 0),
        (b"1" * 50, formats.INT8, 0),
        (b"nan", formats.FLOAT8, 0),
        (b"\0\0", formats.INT8, 1),
        (b"2024-13-01", formats.DATE, 0),
        (b"2024-01-01 00:00:00+02", formats.TIMESTAMP, 0),
        (b"\x7f\xff\xff\xff", formats.DATE, 1),
        (b"\xff", formats.TEXT, 0),
        (b"{1,2}", 1007, 0),
        (b"x", 0, 1),
        (b"\0\1\0\0\xc0\0\0\0\0\0", formats.NUMERIC, 1),
    ],
)
def test_what_is_no_value_is_refused_by_its_place(raw: bytes, oid: int, form: int) -> None:
    with pytest.raises(InvalidParameter) as caught:
        formats.read_parameter(3, raw, oid, form)
    assert caught.value.name == "$3"


@given(st.binary(max_size=40), st.sampled_from([*formats.SIZES, formats.NUMERIC, formats.TEXT, 0]), st.booleans())
def test_no_bytes_make_reading_fail_otherwise(raw: bytes, oid: int, binary: bool) -> None:
    with suppress(InvalidParameter):
        formats.read_parameter(1, raw, oid, int(binary))
