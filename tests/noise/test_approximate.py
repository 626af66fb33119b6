"""The float exponential keeps the error that its proof states, and every decision made from it is the exact one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.noise import Bits, SeededBits, gaussian
from discreet.noise.coin import LARGEST, RELATIVE_ERROR, exponential, exponentials
from discreet.noise.gaussian import _target_of
from tests.cases import every
from tests.exact.reference import exp_minus
from tests.noise.judges import coin_draws, judge_accept_near_threshold, judge_exponential_walk, relative_error
from tests.statistical.laws import Floats

# Steps of 1/64 are where the table entry changes, so both neighbours of each are tried too.
DENSE = [float(np.nextafter(i / 64, side)) for i in range(1, 64 * 64, 7) for side in (0.0, i / 64, 100.0)]
TIGHT = Fraction(1, 2**47)  # the proof: 2^-54 + 2^-48 for an exact argument


def judge_approximation(points: list[float]) -> None:
    many = exponentials(np.array(points))
    for x, entry in zip(points, many.tolist(), strict=True):
        ends = exp_minus(Fraction(x), 200)
        assert relative_error(exponential(x), ends) < TIGHT
        assert relative_error(entry, ends) < TIGHT


@pytest.mark.ci
def test_error_on_dense_points() -> None:
    assert Fraction(RELATIVE_ERROR) > TIGHT
    judge_approximation([0.0, 5e-324, 2.0**-1022, 2.0**-60, LARGEST, float(np.nextafter(LARGEST, 0)), *DENSE])


@given(st.lists(st.floats(min_value=0, max_value=LARGEST), min_size=1, max_size=20))
def test_error_on_random_points(points: list[float]) -> None:
    judge_approximation(points)


@every("x", [Fraction(n, 64) for n in range(1, 200, 3)] + [Fraction(1, 10**6), Fraction(40), Fraction(70)])
def test_words_at_the_threshold(x: Fraction) -> None:
    judge_accept_near_threshold(x)


@pytest.mark.parametrize(
    "x",
    [Fraction(1, 2**40), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(11), Fraction(65), Fraction(10**9)],
    ids=str,
)
def test_every_bit_string_of_a_coin(x: Fraction) -> None:
    for draw in coin_draws(x):
        judge_exponential_walk(x, draw)


@given(
    st.one_of(
        st.fractions(min_value=Fraction(1, 10**4), max_value=10**4),
        st.integers(-290, 290).map(lambda k: Fraction(10) ** k),
        st.floats(min_value=1e-150, max_value=1e12).map(Fraction),
    ),
    st.fractions(min_value=-12, max_value=12, max_denominator=1000),
)
def test_rejection_in_floats_is_off_by_less_than_promised(sigma: Fraction, deviations: Fraction) -> None:
    target = _target_of(sigma)
    proposal = int(deviations * sigma)
    exact, found = target.rejection(proposal), Fraction(target.approximate_rejection(proposal))
    assert found >= LARGEST if exact > LARGEST + 1 else abs(found - exact) < Fraction(1, 2**42)
    # and exactly: the Laplace proposal times the acceptance is the Gaussian, up to a factor free of z
    shift = target.variance / (2 * target.scale**2)
    assert abs(proposal) / Fraction(target.scale) + exact == proposal**2 / (2 * target.variance) + shift


@pytest.mark.parametrize(
    "sigma", [Fraction(1, 100), Fraction(1, 3), Fraction(10), Fraction(0.3), Fraction(2**44 + 1, 3)], ids=str
)
def test_rejection_in_arrays_is_off_by_less_than_promised(
    sigma: Fraction, bits: SeededBits, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Fraction] = []

    def record(x: Floats, exact: Callable[[int], Fraction], _bits: Bits) -> NDArray[np.bool_]:
        errors.extend(abs(Fraction(x[i]) - exact(i)) for i in range(x.size) if exact(i) <= LARGEST)
        return np.ones(x.size, dtype=bool)

    monkeypatch.setattr(gaussian, "accept_many", record)
    gaussian.discrete_gaussian(sigma, 500, bits=bits)
    assert errors
    assert max(errors) < Fraction(1, 2**42)
