"""Mistakes in noisy descent and in tests: a sign, factors of two, noiseless null distributions, shifting blocks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import statistics as st
from discreet.noise import SeededBits, discrete_laplace
from discreet.noise.experiment import normals
from discreet.statistics.noise_errors import number_noise
from discreet.statistics.robust import m_estimators
from discreet.statistics.robust.regression_plan import NumericResponse
from discreet.statistics.robust.scores import WholeScore
from discreet.statistics.tests import binomial, chi_squared, permutation
from discreet.statistics.tests.chi_squared import multinomials
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.statistics.recorded import overruns, watched


@catcher("simulation")
def descent_goes_toward_the_data() -> None:
    values = 30 + normals(2000, bits=SeededBits(71))
    found = st.huber_location(values, bounds=(0, 100), scale=1, epsilon=2, start=25, bits=SeededBits(72))
    assert abs(found.value - 30) < 1


@catcher("record and replay")
def the_noise_covers_replaced_scores() -> None:
    seen = []
    for last in (0.0, 10.0):
        with watched(lambda index: 5_000_000 + index) as kept:
            st.huber_location([1.0, 9.0, last], bounds=(0, 10), scale=0.1, epsilon=1, neighbours="replace", start=5)
        seen.append(kept)
    assert max(overruns(*seen)) <= 1


@catcher("record and replay")
def slopes_of_both_signs_are_counted_twice() -> None:
    seen = []
    for last in (0.0, 1.0):
        with watched(lambda index: (1 << 19) + index) as kept:
            st.m_regression(
                [[1.0]], [last], psi=st.Biweight(1.85), norm_bound=1, bounds=(-4, 4), scale=0.7, epsilon=1, delta=1e-6,
                neighbours="replace", steps=1,
            )  # fmt: skip
        seen.append(kept)
    assert max(overruns(*seen)) <= 1


@catcher("simulation")
def a_true_null_is_seldom_rejected() -> None:
    """40 tests at level 0.05: 9 rejections or more has a chance of 2e-4."""
    null, rejected = np.full(5, 0.2), 0
    for seed in range(40):
        bits = SeededBits(7300 + seed)
        table = multinomials(100, null, 1, bits)[0]
        rejected += st.chi_squared_test(table, null=null, epsilon=0.2, simulations=99, bits=bits).reject(0.05)
    assert rejected < 9


@catcher("exact distribution")
def the_noise_of_permutations_covers_two_moves() -> None:
    """Tails at two points 2 S apart: the observed statistic and the rest may move against each other."""
    scales: list[Any] = []

    def kept(scale: Any, *size: Any, **bits: Any) -> Any:
        scales.append(scale)
        return discrete_laplace(scale, *size, **bits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permutation, "discrete_laplace", kept)
        st.permutation_test([1.0], [2.0], bounds=(0, 1), level=0.5, epsilon=1, bits=SeededBits(74))
    width = 1 << 20
    assert np.exp(-2 * width / float(scales[0])) >= np.exp(-1) - 1e-9


@catcher("record and replay")
def one_unit_touches_one_block() -> None:
    seen = []
    for rows in (np.arange(32) % 2, np.append(np.arange(32) % 2, 1)):
        with watched(lambda index: index) as kept:
            st.test_of_tests(rows, lambda block: float(block[0]), blocks=16, epsilon=1, bits=SeededBits(75))
        seen.append(kept)
    assert max(overruns(*seen)) <= 1


def _minus(patch: pytest.MonkeyPatch) -> None:
    real = WholeScore.psi
    patch.setattr(WholeScore, "psi", lambda self, differences: -real(self, differences))


def _by_order(bound: int, size: int, *, bits: Any) -> Any:  # noqa: ARG001 - called with it
    return np.arange(size) * bound // size


def _half(values: list[int], move: int, xi: Fraction, level: Fraction, bits: Any) -> bool:
    return bool(_decide(values, move, 2 * xi, level, bits))


_decide = permutation._decide

MUTANTS = [
    Mutant(
        "descent uphill",
        "Theta moves away from the data: each step has the wrong sign.",
        _minus,
        descent_goes_toward_the_data,
    ),
    Mutant(
        "replaced scores with the noise of added ones",
        "The noise of a step covers a move of B, although a replaced value can move the sum by 2 B.",
        setting(m_estimators, "number_noise", lambda part, move: number_noise(part, max(1, move // 2))),
        the_noise_covers_replaced_scores,
    ),
    Mutant(
        "curvatures without a sign",
        "Slopes may be positive or negative, but their noise is for slopes that are never negative.",
        setting(NumericResponse, "signed", False),
        slopes_of_both_signs_are_counted_twice,
    ),
    Mutant(
        "a null distribution without noise",
        "Tables are simulated without the noise that the released table has.",
        setting(
            chi_squared._Test,
            "simulate_statistic",
            lambda self, released, count, bits: self.statistic(
                multinomials(max(1, round(float(released.sum()))), self.chances, count, bits).astype(float)
            ),
        ),
        a_true_null_is_seldom_rejected,
    ),
    Mutant(
        "half the noise of a permutation test",
        "The scale is S / xi, although the statistics of data and permutations can move in opposite directions.",
        setting(permutation, "_decide", _half),
        the_noise_of_permutations_covers_two_moves,
    ),
    Mutant(
        "blocks in the order of units",
        "Units are put into blocks in order, so that one more unit shifts all others.",
        setting(binomial, "uniform_below", _by_order),
        one_unit_touches_one_block,
    ),
]
