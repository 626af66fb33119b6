"""Grids: rounding is exact, moves no two values further apart than declared, and never repeats a private value."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid, exact_value
from tests.cases import every
from tests.effort import some

finite = st.floats(allow_nan=False, allow_infinity=False)
in_reach = st.floats(min_value=-(2.0**40), max_value=2.0**40)
exponents = st.integers(-20, 20)


def half_up(value: float | Fraction, exponent: int) -> int:
    """The definition, in fractions."""
    return math.floor(Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2))


def judge_rounding_pairs(grid: Grid, pairs: list[tuple[float, float]]) -> None:
    """No pair ends further apart than its distance in steps, rounded up."""
    for x, y in pairs:
        bound = math.ceil(abs(Fraction(x) - Fraction(y)) / grid.step)
        a, b = grid.steps([x, y]).tolist()
        assert abs(a - b) <= bound
        assert abs(grid.steps(x) - grid.steps(y)) <= bound


EDGES = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.0**-1022,
    -(2.0**-1022),
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    *(sign * math.nextafter(0.5, side) for sign in (1, -1) for side in (0, 1)),
    *(sign * (2.0**51 + 0.5 * i) for sign in (1, -1) for i in range(-3, 4)),
    *(sign * (2.0**52 + i) for sign in (1, -1) for i in (-1.5, -1.0, -0.5, 0.0, 1.0)),
    *(sign * (2.0**53 + i) for sign in (1, -1) for i in (-1.0, 0.0, 2.0)),
    2.0**61,
    -(2.0**61),
    math.nextafter(2.0**62, 0),
]


def test_edges_of_floats() -> None:
    expected = [half_up(x, 0) for x in EDGES]
    assert Grid(0).steps(np.array(EDGES)).tolist() == expected
    assert [Grid(0).steps(x) for x in EDGES] == expected
    small = np.array([x for x in EDGES if abs(x) < 2**50])
    for exponent in (-10, -1, 1, 10, 1000):
        assert Grid(exponent).steps(small).tolist() == [half_up(x, exponent) for x in small.tolist()]


@given(st.lists(in_reach, max_size=10), exponents)
def test_arrays_scalars_and_definition_agree(values: list[float], exponent: int) -> None:
    grid = Grid(exponent)
    expected = [half_up(x, exponent) for x in values]
    assert grid.steps(np.array(values, dtype=float)).tolist() == expected
    assert [grid.steps(x) for x in values] == expected
    assert grid.steps([Fraction(x) for x in values]).tolist() == expected


@given(st.lists(st.integers(-(2**40), 2**40), max_size=10), exponents)
def test_integers(values: list[int], exponent: int) -> None:
    grid = Grid(exponent)
    expected = [half_up(x, exponent) for x in values]
    assert grid.steps(np.array(values, dtype=np.int64)).tolist() == expected
    assert [grid.steps(x) for x in values] == expected
    assert [grid.steps(np.int64(x)) for x in values] == expected


@given(finite, exponents)
def test_scalars_have_no_limit(value: float, exponent: int) -> None:
    assert Grid(exponent).steps(value) == half_up(value, exponent)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.int8, np.uint8, np.uint64, np.int64, np.longdouble, object]
)
def test_types(dtype: Any) -> None:
    values = np.array([0, 1, 3, 100]).astype(dtype)
    assert Grid(1).steps(values).tolist() == [0, 1, 2, 50]
    assert Grid(-1).steps(values).tolist() == [0, 2, 6, 200]
    assert Grid(0).steps(values.reshape(2, 2)).shape == (2, 2)
    assert Grid(0).steps(values).dtype == np.int64


def test_long_doubles_are_not_rounded_twice() -> None:
    """2^53 + 1 and 2^53 + 3 are 2 apart; as float64 they would be 4 apart, twice the declared sensitivity."""
    values = np.array([2**53, 2**53], dtype=np.longdouble) + np.array([1, 3], dtype=np.longdouble)
    if np.finfo(np.longdouble).nmant == 52:
        pytest.skip("long doubles are doubles on this machine")
    assert Grid(0).steps(values).tolist() == [2**53 + 1, 2**53 + 3]
    assert Grid(0).steps(values[0]) == 2**53 + 1


@given(in_reach, in_reach, exponents)
def test_rounding_moves_no_pair_further_apart(x: float, y: float, exponent: int) -> None:
    judge_rounding_pairs(Grid(exponent), [(x, y), (x, x + 1.0), (x, x + 2.0**exponent)])


def test_rounding_of_halves() -> None:
    judge_rounding_pairs(Grid(0), [(i / 4, j / 4) for i in range(-12, 13) for j in range(-12, 13)])


BAD = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", [*BAD, *map(np.float32, BAD), np.longdouble("inf")])
def test_values_that_are_not_finite_are_refused(value: Any) -> None:
    for grid in (Grid(0), Grid(-5), Grid(5)):
        for shape in (value, [value, 1.0], np.array([1.0, value]), np.array([value], dtype=np.longdouble)):
            with pytest.raises(InvalidValue) as caught:
                grid.steps(shape)
            assert "Replace NaN" in caught.value.hint


@pytest.mark.parametrize("value", [True, np.bool_(False), "12345", None, 1j, Decimal(12345), object(), b"12345"])
def test_what_is_no_number_is_refused_without_being_repeated(value: Any) -> None:
    for grid in (Grid(0), Grid(-5)):
        for shape in (value, [value], np.array([value], dtype=object)):
            with pytest.raises(InvalidValue) as caught:
                grid.steps(shape)
            assert "12345" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        np.array([2.0**62]),
        np.array([-1e300]),
        np.array([2**62]),
        np.array([-(2**63)]),
        np.array([2**64 - 1], dtype=np.uint64),
        [Fraction(10**400)],
        [10**400],
        [2**62],
        np.array([123456789.0]) * 2.0**40,
    ],
    ids=range(9),
)
def test_arrays_out_of_reach_are_refused_and_never_wrap(values: Any) -> None:
    for grid in (Grid(0), Grid(-1), Grid(-1000)):
        with pytest.raises(InvalidValue) as caught:
            grid.steps(values)
        assert "123456789" not in str(caught.value)


def test_values_come_back() -> None:
    assert Grid(-3).value(5) == 0.625
    assert Grid(3).value(5) == 40
    assert Grid(0).value(5) == 5
    assert Grid(-3).value(np.array([1, -2])).tolist() == [0.125, -0.25]
    assert Grid(2).value(np.array([1, -2])).tolist() == [4.0, -8.0]
    assert Grid(0).value(np.array([1, -2])).dtype == np.int64
    assert Grid(0).value(np.array([10**30, 1], dtype=object)).tolist() == [10**30, 1]


@given(st.integers(-(2**53), 2**53), st.integers(-900, 900))
def test_steps_undo_value(steps: int, exponent: int) -> None:
    grid = Grid(exponent)
    assert grid.steps(grid.value(steps)) == steps
    assert grid.on_grid([grid.value(steps)])


def test_on_grid() -> None:
    assert Grid(-2).on_grid([0.25, 1, 1.75])
    assert not Grid(-2).on_grid([0.25, 0.3])
    assert Grid(0).on_grid(np.array([1, 2]))
    assert not Grid(1).on_grid(np.array([1, 2]))


def test_sums_on_the_grid_are_exact_where_float_sums_are_not() -> None:
    """Casacuberta et al. 2022: 2^53 + 1 + 1 + ... stays at 2^53 in floats."""
    values = np.array([2.0**53] + [1.0] * 100)
    assert sum(values.tolist()) == 2.0**53
    assert int(Grid(0).steps(values).sum()) == 2**53 + 100


@every("dimension", some([1, 2, 3, 7], 3))
@every("exponent", [-2, 0, 1])
def test_sensitivity_in_steps_by_brute_force(dimension: int, exponent: int) -> None:
    """Random pairs at an exact distance, many of them placed right at the boundaries between cells."""
    grid = Grid(exponent)
    generator = np.random.default_rng(dimension)  # noqa: TID251 - test data, no noise
    for _ in range(300):
        x = [Fraction(int(n), 64) for n in generator.integers(-300, 300, dimension)]
        move = [Fraction(int(n), 64) for n in generator.integers(-80, 81, dimension)]
        a = [grid.steps(v) for v in x]
        b = [grid.steps(v + m) for v, m in zip(x, move, strict=True)]
        moved = [abs(p - q) for p, q in zip(a, b, strict=True)]
        l1, l2_squared = sum(map(abs, move), Fraction(0)), sum(m * m for m in move)
        l2_above = Fraction(math.nextafter(math.sqrt(l2_squared), math.inf))
        assert sum(moved) <= grid.l1_steps(l1, dimension)
        assert sum(p * p for p in moved) <= grid.l2_steps(l2_above, dimension) ** 2


def test_sensitivity_in_steps_is_reached() -> None:
    """The L1 bound is tight: two coordinates that move by a hair across a boundary move one step each."""
    grid = Grid(0)
    hair = Fraction(1, 1000)
    moved = sum(grid.steps(Fraction(1, 2)) - grid.steps(Fraction(1, 2) - hair) for _ in range(2))
    assert moved == grid.l1_steps(2 * hair, 2) == 2
    assert grid.l1_steps(Fraction(3)) == 3
    assert grid.l1_steps(Fraction(5, 2)) == 3
    assert grid.l2_steps(Fraction(5, 2)) == 3


@pytest.mark.parametrize("exponent", [1001, -1001, 1.0, True, "3", None])
def test_bad_exponents(exponent: Any) -> None:
    with pytest.raises(InvalidParameter):
        Grid(exponent)


def test_grid_of_a_step() -> None:
    assert Grid.of(0.125) == Grid.of("1/8") == Grid.of(Fraction(1, 8)) == Grid(-3)
    assert Grid.of(Grid(4)) == Grid(4)
    assert Grid.of(8) == Grid(3)
    for step in (0.1, 3, 0, -1, math.nan, True, "abc"):
        with pytest.raises(InvalidParameter):
            Grid.of(step)


@given(st.fractions(min_value=Fraction(1, 10**50), max_value=10**50))
def test_finer_than(width: Fraction) -> None:
    step = Grid.finer_than(width).step
    assert step <= width < 2 * step


@given(finite)
def test_exact_value(value: float) -> None:
    assert exact_value(value) == Fraction(value)
    assert exact_value(np.float64(value)) == Fraction(value)


def test_exact_value_of_the_largest() -> None:
    assert exact_value(sys.float_info.max) == Fraction(sys.float_info.max)
    assert exact_value(10**400) == 10**400
