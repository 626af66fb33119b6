"""Parameters outside their domain are refused before a single bit is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import (
    SeededBits,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    uniform_below,
)
from tests.cases import every
from tests.noise.tape import Untouched

NO_NUMBER: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    np.float64("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    "nan",
    "inf",
    True,
    False,
    np.bool_(True),
    1j,
    np.complex128(1),
    "",
    "abc",
    "1/0",
    "1//2",
    "0x10",
    b"1",
    None,
    [1],
    (1,),
    {1},
    {},
    np.array([1.0]),
    object(),
    int,
    "1" * 10_000,
    "0." + "3" * 100_000,
]
ABSURD: list[Any] = [
    1e-320,
    5e-324,
    10**400,
    10**5000,
    -(10**400),
    "1e999999999",
    "1e-999999999",
    "1e99999999999999999999",
    Decimal("1e400"),
    Fraction(1, 10**400),
    Fraction(10**5000, 3),
    Fraction(2**9000 + 1, 2**9000),
]
NOT_POSITIVE: list[Any] = [
    0,
    0.0,
    -0.0,
    -1,
    -1e-9,
    "-1",
    Fraction(-1, 3),
    np.int64(-5),
    Decimal(-1),
    Decimal(0),
    "0",
    "0/5",
]


def ids(value: object) -> str:
    return f"{type(value).__name__}-{str(value)[:12] if not isinstance(value, int | Fraction) else 'n'}"


def refused(draw: Callable[..., Any], value: Any, name: str) -> None:
    for size in (None, 3):
        with pytest.raises(InvalidParameter) as caught:
            draw(value, size, bits=Untouched())
        assert caught.value.name == name
        assert len(str(caught.value)) < 400


@every("value", NO_NUMBER + ABSURD + NOT_POSITIVE)
def test_scales(value: Any) -> None:
    refused(geometric, value, "scale")
    refused(discrete_laplace, value, "scale")
    refused(discrete_gaussian, value, "sigma")


@every("value", [*NO_NUMBER, *ABSURD, -1, -0.0, "-1/3"])
def test_exponents(value: Any) -> None:
    refused(bernoulli_exp, value, "x")


@every("value", [*NO_NUMBER, *ABSURD, -0.1, 1.1, 2, "3/2", Fraction(-1, 2)])
def test_probabilities(value: Any) -> None:
    refused(bernoulli, value, "probability")


@every("value", [*NO_NUMBER, 0, -1, -(10**400), 1.0, 2.5, "3", Fraction(3), Decimal(3)])
def test_bounds(value: Any) -> None:
    refused(uniform_below, value, "bound")


def test_bounds_of_arrays_end_at_63_bits() -> None:
    with pytest.raises(InvalidParameter):
        uniform_below(2**63 + 1, 2, bits=Untouched())
    assert 0 <= uniform_below(10**400) < 10**400


def test_booleans_are_not_taken_for_numbers_that_were_used_before() -> None:
    """True == 1 and both have one hash: a cache that only looked at that would let it pass."""
    discrete_laplace(1)
    discrete_gaussian(1.0)
    with pytest.raises(InvalidParameter):
        discrete_laplace(True, bits=Untouched())
    with pytest.raises(InvalidParameter):
        discrete_gaussian(np.bool_(True), bits=Untouched())  # type: ignore[call-overload]


SIZED: list[Callable[..., Any]] = [
    lambda size, bits: geometric(3, size, bits=bits),
    lambda size, bits: discrete_laplace(3, size, bits=bits),
    lambda size, bits: discrete_laplace(10**18, size, bits=bits),
    lambda size, bits: discrete_gaussian(3, size, bits=bits),
    lambda size, bits: discrete_gaussian(10**18, size, bits=bits),
    lambda size, bits: bernoulli("1/3", size, bits=bits),
    lambda size, bits: bernoulli(Fraction(1, 10**30), size, bits=bits),
    lambda size, bits: bernoulli_exp(1, size, bits=bits),
    lambda size, bits: bernoulli_exp(0, size, bits=bits),
    lambda size, bits: uniform_below(7, size, bits=bits),
]


@every("draw", SIZED)
@every("size", [-1, (2, -1), True, (True,), 2.0, (2.0,), "3", [2], (2, None), np.float64(2)])
def test_bad_sizes(draw: Callable[..., Any], size: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        draw(size, Untouched())
    assert caught.value.name == "size"


@pytest.mark.parametrize("draw", SIZED, ids=range(len(SIZED)))
def test_good_sizes(draw: Callable[..., Any], bits: SeededBits) -> None:
    shapes: list[tuple[Any, tuple[int, ...]]] = [
        (0, (0,)),
        (1, (1,)),
        ((), ()),
        ((0, 3), (0, 3)),
        ((2, 3), (2, 3)),
        (np.int64(4), (4,)),
        ((2, 1, 2), (2, 1, 2)),
    ]
    for size, shape in shapes:
        drawn = draw(size, bits)
        assert isinstance(drawn, np.ndarray)
        assert drawn.shape == shape


def test_sizes_beyond_memory_raise_and_draw_nothing() -> None:
    for size in ((2**32, 2**32), 10**30):
        with pytest.raises((MemoryError, ValueError, OverflowError)):
            discrete_laplace(1, size, bits=Untouched())


@pytest.mark.parametrize("scale", [3, 3.0, "3", "6/2", Fraction(3), Decimal(3), np.int8(3), np.float32(3)], ids=ids)
def test_one_scale_has_many_spellings(scale: Any) -> None:
    assert (
        discrete_laplace(scale, 50, bits=SeededBits(1)).tolist() == discrete_laplace(3, 50, bits=SeededBits(1)).tolist()
    )
    assert discrete_gaussian(scale, bits=SeededBits(1)) == discrete_gaussian(3, bits=SeededBits(1))


def test_python_numbers_come_out_of_scalar_calls(bits: SeededBits) -> None:
    assert type(discrete_laplace(3, bits=bits)) is int
    assert type(geometric(3, bits=bits)) is int
    assert type(discrete_gaussian(3, bits=bits)) is int
    assert type(uniform_below(3, bits=bits)) is int
    assert type(bernoulli("1/3", bits=bits)) is bool
    assert type(bernoulli_exp(1, bits=bits)) is bool


@pytest.mark.parametrize("stranger", [np.float64(1), "bits", 7, object()])
@pytest.mark.parametrize("size", [None, 3])
def test_only_bits_are_drawn_from(stranger: Any, size: int | None) -> None:
    for sampler in (discrete_laplace, discrete_gaussian, bernoulli_exp):
        with pytest.raises(InvalidParameter) as caught:
            sampler(1, size, bits=stranger)
        assert caught.value.name == "bits"
