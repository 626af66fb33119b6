"""Parameters become exact numbers or typed refusals, whatever they are given as."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import check
from discreet.errors import InvalidParameter
from tests.cases import every

SPELLINGS: list[tuple[Any, Fraction]] = [
    (1, Fraction(1)),
    (0.1, Fraction(1, 10)),
    ("0.1", Fraction(1, 10)),
    ("1/3", Fraction(1, 3)),
    (" 2 / 6 ", Fraction(1, 3)),
    (Fraction(2, 7), Fraction(2, 7)),
    (Decimal("0.25"), Fraction(1, 4)),
    (np.int32(-4), Fraction(-4)),
    ("1e-3", Fraction(1, 1000)),
    (np.float64(0.1), Fraction(1, 10)),
    (1e22, Fraction(10**22)),
    ("-3", Fraction(-3)),
    (1e300, Fraction(10**300)),
    (0, Fraction(0)),
    (-0.0, Fraction(0)),
    (10**300, Fraction(10**300)),
]


@every(("given_as", "exact"), SPELLINGS)
def test_rational(given_as: Any, exact: Fraction) -> None:
    result = check.rational(x=given_as)
    assert type(result) is Fraction
    assert result == exact


@given(st.floats(min_value=1e-290, max_value=1e290))
def test_floats_mean_their_shortest_decimal_or_themselves(value: float) -> None:
    assert check.rational(x=value) == Fraction(repr(value))
    assert check.rational(x=value, floats="exact") == Fraction(value)
    assert float(check.rational(x=value)) == value


REFUSED: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    "nan",
    "-inf",
    Decimal("nan"),
    Decimal("sNaN"),
    True,
    np.bool_(True),
    1j,
    None,
    "",
    "one",
    "1/0",
    "1/2/3",
    [1],
    np.array(1.0),
    np.array([1, 2]),
    b"1",
    10**301,
    1e-301,
    1e301,
    "1e-400",
    "1e999999999",
    "1e99999999999999999999",
    Decimal("1e-999999"),
    10**5000,
    Fraction(1, 10**301),
    Fraction(2**9000 + 1, 2**9000),
    "0." + "1" * 10**6,
    "1" * 200 + "/3",
]


@pytest.mark.parametrize("value", REFUSED, ids=range(len(REFUSED)))
def test_refused(value: Any) -> None:
    for floats in ("decimal", "exact"):
        with pytest.raises(InvalidParameter) as caught:
            check.rational(epsilon=value, floats=floats)
        assert caught.value.name == "epsilon"
        assert str(caught.value).startswith("Expected epsilon=")
        assert len(str(caught.value)) < 400


DOMAINS: list[tuple[Callable[..., Fraction], list[Any], list[Any]]] = [
    (check.positive, [1, 1e-300, "1/3"], [0, -1, 0.0, -0.0, "-1/3"]),
    (check.not_negative, [0, 1, 0.0, "0"], [-1, -0.0, np.float64(-0.0), -1e-300]),
    (check.probability, [0.5, 1e-15, 1 - 1e-15, "1/3"], [0, 1, -0.1, 1.1, 2]),
    (check.share, [0, 1, 0.5], [-0.1, 1.0000001, 2]),
]


@pytest.mark.parametrize(("domain", "inside", "outside"), DOMAINS, ids=lambda d: getattr(d, "__name__", ""))
def test_domains(domain: Callable[..., Fraction], inside: list[Any], outside: list[Any]) -> None:
    for value in inside:
        assert domain(x=value) == check.rational(x=value)
    for value in [*outside, math.nan, math.inf, True, None]:
        with pytest.raises(InvalidParameter):
            domain(x=value)


def test_integer() -> None:
    assert check.integer(n=5) == check.integer(n=np.uint8(5)) == 5
    assert type(check.integer(n=np.int64(5))) is int
    assert check.integer(n=10**5000) == 10**5000
    for value in (True, np.bool_(True), 1.0, "1", Fraction(1), None, math.nan):
        with pytest.raises(InvalidParameter):
            check.integer(n=value)
    with pytest.raises(InvalidParameter, match=r"Expected n=0 >= 1\."):
        check.integer(n=0, at_least=1)
    with pytest.raises(InvalidParameter, match=r"Expected n=9 <= 8\."):
        check.integer(n=9, at_most=8)


def test_instance() -> None:
    assert check.instance(int, n=5) == 5
    with pytest.raises(InvalidParameter, match="to be a str"):
        check.instance(str, name=5)


def test_exactly_one_parameter_at_a_time() -> None:
    with pytest.raises(ValueError, match="unpack"):
        check.positive(a=1, b=2)
