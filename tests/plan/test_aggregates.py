"""Finishing aggregates: total, inside the bounds, and covering whatever lies within the statistics' errors."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.plan.aggregates import Form, Noised, Steps, count_forms, mean_forms, sum_forms
from discreet.plan.nodes import Column
from discreet.plan.schema import Bounds
from discreet.plan.types import Type
from tests.plan.test_stability import added

whole = st.integers(-(10**9), 10**9)
X, Y = Column("x", Type.INT), Column("y", Type.FLOAT)
ints = st.integers(-50, 50)


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    low, high = sorted(draw(st.lists(ints, min_size=2, max_size=2, unique=True)))
    return Bounds(Fraction(low), Fraction(high))


@given(bounds(), whole, st.integers(0, 10**6), whole, st.integers(0, 10**6))
def test_means_are_total_and_inside_their_interval(limits: Bounds, a: int, ea: int, b: int, eb: int) -> None:
    for form in mean_forms(X, limits):
        found = form.finish((Noised(a, ea), Noised(b, eb)))
        assert limits.low <= found.low <= found.value <= found.high <= limits.high


@given(bounds(), st.lists(ints, min_size=1, max_size=6), st.data())
def test_the_interval_covers_if_the_statistics_are_within_their_errors(
    limits: Bounds, rows: list[int], data: st.DataObject
) -> None:
    clipped = [min(max(x, int(limits.low)), int(limits.high)) for x in rows]
    truths = {
        "count": (count_forms()[0], Fraction(len(rows))),
        "sum": (sum_forms(X, limits)[0], Fraction(sum(clipped))),
        "paired": (mean_forms(X, limits)[0], Fraction(sum(clipped), len(rows))),
        "centred": (mean_forms(X, limits)[1], Fraction(sum(clipped), len(rows))),
    }
    for form, truth in truths.values():
        noised = [disturbed(exact, data) for exact in added(form, tuple(rows))]
        found = form.finish(noised)
        assert found.low <= truth <= found.high


def disturbed(exact: int, data: st.DataObject) -> Noised:
    error = data.draw(st.integers(0, 100))
    return Noised(exact + data.draw(st.integers(-error, error)), error)


@given(bounds(), st.lists(ints, min_size=1, max_size=6))
def test_without_noise_the_answer_is_exact(limits: Bounds, rows: list[int]) -> None:
    clipped = [min(max(x, int(limits.low)), int(limits.high)) for x in rows]
    for form in mean_forms(X, limits):
        assert exactly(form, rows) == Fraction(sum(clipped), len(rows))
    assert exactly(sum_forms(X, limits)[0], rows) == sum(clipped)


def exactly(form: Form, rows: list[int]) -> Fraction:
    found = form.finish([Noised(value, 0) for value in added(form, tuple(rows))])
    assert found.low == found.value == found.high
    return found.value


def test_real_arguments_get_a_million_steps_inside_their_bounds() -> None:
    steps = Steps.of(Bounds(Fraction(0), Fraction(100)), Type.FLOAT)
    assert 1 << 20 <= steps.width < 1 << 21
    assert steps.high * Fraction(2) ** steps.exponent <= 100
    assert Steps.of(Bounds(Fraction(1, 2), Fraction(7, 2)), Type.INT) == Steps(0, 1, 3)


def test_bounds_without_two_whole_numbers_are_refused() -> None:
    with pytest.raises(InvalidParameter) as refused:
        Steps.of(Bounds(Fraction(1, 3), Fraction(2, 3)), Type.INT)
    assert refused.value.name == "bounds"


def test_the_paired_mean_moves_by_the_width_whatever_the_value() -> None:
    form = mean_forms(Y, Bounds(Fraction(0), Fraction(1)))[0]
    assert {sum(abs(entry) for entry in corner) for corner in form.corners} == {1 << 20}
