"""Two grids of real values: terms that fit into 64 bits, errors that hold, and totals that no row moves too far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discreet.engines.abstract_engine import steps as on_grid
from discreet.measurement.releases import argument_moments as moments_module
from discreet.measurement.releases.additive import JointStatistics
from discreet.measurement.releases.argument_moments import centred_form, paired_form, sum_form
from discreet.measurement.releases.grids import Steps
from discreet.measurement.releases.products import ArgumentPair, ProductArgument
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Statistic
from discreet.plan.model.schema import ColumnBounds
from discreet.plan.model.types import Type
from tests.effort import tried

X, Y = ColumnRef("x", Type.FLOAT), ColumnRef("y", Type.FLOAT)
Rows = Sequence[tuple[float, float]]


@st.composite
def some_bounds(draw: st.DrawFn) -> ColumnBounds:
    """Of sizes from 10^-12 to 10^12, near zero or up to a million widths away from it."""
    width = Fraction(draw(st.integers(1, 10**6)), 10 ** draw(st.integers(0, 12)))
    low = width * Fraction(draw(st.integers(-(10**6), 10**6)), draw(st.sampled_from((1, 7, 10**6))))
    return ColumnBounds(low, low + width * 10 ** draw(st.integers(0, 6)))


def clip(x: float, bounds: ColumnBounds) -> Fraction:
    return min(max(Fraction(x), bounds.low), bounds.high)


@given(some_bounds(), st.booleans(), st.floats(0, 1), st.data())
def test_a_value_is_no_further_from_its_step_than_the_error(
    bounds: ColumnBounds, squared: bool, share: float, data: st.DataObject
) -> None:
    found = Steps.for_power_sums(bounds, power=1 + squared)
    exponent, low, high = found.grid
    small = Fraction(2) ** exponent
    near = st.sampled_from([bounds.low, bounds.high, bounds.low + bounds.width * Fraction(share)])
    x = math.nextafter(float(data.draw(near)), data.draw(st.sampled_from((-math.inf, math.inf, 0.0))))
    term = on_grid(x, exponent, low, high)
    assert term is not None
    assert abs(term * small - clip(x, bounds)) <= found.error
    assert found.error <= small + bounds.largest * Fraction(1, 1 << 52)


@given(some_bounds(), st.booleans())
def test_terms_and_products_are_integers_of_64_bits(bounds: ColumnBounds, squared: bool) -> None:
    found = Steps.for_power_sums(bounds, power=1 + squared)
    exponent, low, high = found.grid
    assume(found.finer)
    assert max(abs(low), abs(high)) <= 1 << 61
    assert found.low << found.finer <= low < high <= found.high << found.finer
    assert found.low * found.step <= bounds.low < bounds.high <= found.high * found.step
    assert bounds.width / found.step >= 1 << 20
    if squared:
        assert max(high - (found.middle << found.finer), (found.middle << found.finer) - low) ** 2 <= 1 << 61
    fine = Fraction(2) ** exponent
    assert bounds.largest / fine >= 1 << 59 or (squared and bounds.width / fine >= 1 << 30)  # as fine as it can be


@pytest.mark.parametrize(
    ("bounds", "squared"), [((0, 1), False), ((0, 2**24), False), ((-100, 100), True), (("0.1", "7.3"), False)]
)
def test_rounding_is_small_beside_noise(bounds: tuple[Any, Any], squared: bool) -> None:
    """Of 2^36 values, or of as many as make a variance certain to a millionth of a millionth."""
    limits = ColumnBounds(*map(Fraction, bounds))
    error = Steps.for_power_sums(limits, power=1 + squared).error
    assert error * (1 if squared else 1 << 36) <= limits.largest * Fraction(1, 10**5)


@given(some_bounds(), st.booleans())
def test_cubes_are_integers_of_64_bits_on_one_grid(bounds: ColumnBounds, whole: bool) -> None:
    found = Steps.for_power_sums(bounds, power=3, whole=whole)
    side = max(found.high - found.middle, found.middle - found.low)
    assert not found.finer
    assert side**3 <= 1 << 61
    assert bounds.width / found.step >= 1 << 20


def test_whole_numbers_are_exact() -> None:
    found = Steps.for_power_sums(ColumnBounds(Fraction(0), Fraction(2**24)), power=1, whole=True)
    assert not found.error
    assert (found.grid[0], found.whole) == (0, True)
    few = Steps.for_power_sums(ColumnBounds(Fraction(0), Fraction(100)), power=2, whole=True)
    assert not few.error
    assert not few.finer
    assert Steps.for_power_sums(ColumnBounds(Fraction(1, 2), Fraction(2**24)), power=1, whole=True).error > 0


# -------------------------------------------------------------------------------------------------- rows and the totals

ODD = Steps.for_power_sums(ColumnBounds(Fraction("0.1"), Fraction("7.3")), power=2)
EVEN = Steps.for_power_sums(ColumnBounds(Fraction(-1), Fraction(1)), power=2)


def forms() -> dict[str, JointStatistics]:
    """Everything that is added up of real values."""
    return {
        "sum": sum_form(X, ODD),
        "pair": paired_form(X, ODD, nulls=False),
        "centred": centred_form(X, ODD),
        "squares in a pair": paired_form(X, EVEN, 2, nulls=True),
        "squares": centred_form(X, EVEN, 2),
        "products": ArgumentPair(ProductArgument(X, ODD, squared=True), ProductArgument(Y, EVEN, squared=True)).form(),
    }


def term(statistic: Statistic, row: tuple[float, float]) -> int:
    if statistic.kind == "nulls":
        return 0
    if statistic.kind == "values":
        return 1
    x = row[0] if statistic.argument == X else row[1]
    own = on_grid(x, statistic.exponent, statistic.low, statistic.high)
    assert own is not None
    own -= statistic.shift
    return own if statistic.factor is None else own * term(statistic.factor, row) - statistic.less


def released(form: JointStatistics, rows: Rows) -> list[int]:
    totals = [s.times * sum(term(s, row) for row in rows) for s in form.statistics]
    return [(total + (1 << grain >> 1)) >> grain for total, grain in zip(totals, form.grains, strict=True)]


def stays_in(form: JointStatistics, crowd: Rows, own: Rows, direction: Sequence[int]) -> None:
    """Rows move what is released no further in a direction than as many corners, or nothing, reach."""
    move = [a - b for a, b in zip(released(form, [*crowd, *own]), released(form, crowd), strict=True)]
    reach = max(0, *(sum(c * d for c, d in zip(corner, direction, strict=False)) for corner in form.corners))
    assert sum(m * d for m, d in zip(move, direction, strict=False)) <= len(own) * reach


VALUES = st.one_of(st.floats(-2, 9), st.sampled_from((0.1, 7.3, 3.7, 1.0, -1.0, 0.0, 0.5, 1 - 2.0**-20)))
ROWS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=3)
DIRECTIONS = st.lists(
    st.sampled_from((-(1 << 22), -(1 << 20), -3, -1, 0, 1, 2, 1 << 20, 1 << 21)), min_size=6, max_size=6
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", forms())
@tried(100)
@given(crowd=ROWS, own=ROWS, direction=DIRECTIONS)
def test_rounded_totals_move_no_further_than_corners(
    name: str, crowd: Rows, own: Rows, direction: Sequence[int]
) -> None:
    stays_in(forms()[name], crowd, own, direction)


def test_mutant_squares_are_rounded_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value just inside the upper bound: the sum with it is rounded up, that of squares down."""
    crowd, own, direction = [(3.147682182823571, 0.0)], [(7.299999812856313, 0.0)], (4, -1, 0)
    stays_in(centred_form(X, ODD, 2), crowd, own, direction)
    honest, single = moments_module._corners, replace(ODD, finer=0)
    monkeypatch.setattr(moments_module, "_corners", lambda _, order: honest(single, order))
    with pytest.raises(AssertionError):
        stays_in(centred_form(X, ODD, 2), crowd, own, direction)
