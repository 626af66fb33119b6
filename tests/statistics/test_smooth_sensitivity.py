"""Smooth sensitivity: test vectors, all databases on small grids, smoothness on all neighbours, rounding upwards."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exact import Enclosure, lower
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.statistics.robust import smooth_sensitivity as smooth
from tests.statistics import smooth_referee as referee

TINY = Fraction(1, 10**9)
TENTH = Fraction(1, 10)


def of_rank(x: Any, width: int, rank: int, beta: Fraction, floor: Fraction = TINY) -> Fraction:
    return smooth.order_statistic(np.sort(np.array(x)), width, rank, beta, floor)


def of_trimmed(x: Any, width: int, m: int, beta: Fraction, floor: Fraction = TINY) -> Fraction:
    return smooth.trimmed_mean(np.sort(np.array(x)), width, m, beta, floor)


@pytest.mark.parametrize(
    ("x", "beta", "expected"),
    [
        ((1, 4, 5, 7, 9), TENTH, 6.065307),
        ((1, 4, 5, 7, 9), Fraction(1, 2), 2.426123),
        ((1, 4, 5, 7, 9), Fraction(1), 2.0),
        ((5, 5, 5, 5, 5), TENTH, 6.065307),
        ((5, 5, 5, 5, 5), Fraction(1), 0.676676),
        ((0, 1, 2, 9, 10), TENTH, 7.408182),
    ],
)
def test_test_vectors_of_the_median(x: tuple[int, ...], beta: Fraction, expected: float) -> None:
    assert float(of_rank(x, 10, 3, beta)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.ci
def test_test_vectors_of_the_envelope_by_its_definition() -> None:
    local = referee.local_sensitivities(referee.order(3), 10, 5)
    assert referee.envelope(local, (1, 4, 5, 7, 9)) == [2, 4, 6, 8, 9, 10]
    assert referee.envelope(local, (5, 5, 5, 5, 5)) == [0, 0, 5, 5, 5, 10]
    trimmed = referee.envelope(referee.local_sensitivities(referee.trimmed(1), 10, 5), (1, 4, 5, 7, 9))
    assert trimmed[:4] == [2, Fraction(8, 3), 3, Fraction(10, 3)]


def test_test_vectors_of_trimmed_means_and_ranks() -> None:
    assert float(of_trimmed((1, 4, 5, 7, 9), 10, 1, TENTH)) == pytest.approx(2.469394, rel=1e-6)
    slope = Fraction(3, 10)
    assert float(of_trimmed((1, 4, 5, 9), 10, 1, slope)) == pytest.approx(2.963273, rel=1e-6)
    for rank in (1, 2, 3, 4):
        assert float(of_rank((1, 4, 5, 9), 10, rank, slope)) == pytest.approx(4.390493, rel=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("width", "n"), [(4, 1), (4, 2), (4, 3), (3, 4), (2, 4), (1, 4)])
@pytest.mark.parametrize("beta", [Fraction(1, 20), Fraction(2, 5), Fraction(3, 2)])
def test_all_databases_agree_with_the_definition(width: int, n: int, beta: Fraction) -> None:
    cases: list[tuple[Any, Any, int]] = [(referee.order(rank), of_rank, rank) for rank in range(1, n + 1)]
    cases += [(referee.trimmed(m), of_trimmed, m) for m in range((n + 1) // 2)]
    for statistic, ours, which in cases:
        local = referee.local_sensitivities(statistic, width, n)
        for x in local:
            exact = referee.smooth(referee.envelope(local, x), float(beta))
            assert exact * (1 - 1e-12) <= ours(x, width, which, beta) <= exact * (1 + float(smooth.INFLATION))


@pytest.mark.parametrize("floor", [TINY, Fraction(3, 2)])
def test_neighbours_differ_by_the_factor_of_beta(floor: Fraction) -> None:
    """All neighbours on a grid: also with a floor that binds, and with the gap's own bound."""
    beta, width, n = Fraction(1, 4), 4, 4
    limit = math.exp(0.25) * (1 + float(smooth.INFLATION))
    for left, right, changes in ((2, 2, 1), (2, 3, 1), (1, 4, 1), (2, 3, 0), (1, 4, 0), (1, 3, 0)):
        found = {
            x: float(smooth.smooth_gap(np.array(x), width, (left, right), beta, floor, changes=changes))
            for x in referee.databases(width, n)
        }
        for x, value in found.items():
            assert value >= max(float(floor), 0 if changes else x[right - 1] - x[left - 1])
            assert max(found[y] / value for y in referee.neighbours(x, width)) <= limit


@given(
    x=st.lists(st.integers(0, 1000), min_size=1, max_size=40),
    place=st.fractions(0, 1, max_denominator=50),
    beta=st.fractions(Fraction(1, 500), 3, max_denominator=500),
    floor=st.sampled_from([TINY, Fraction(1), Fraction(70)]),
)
def test_halving_and_pruning_find_what_a_double_loop_finds(
    x: list[int], place: Fraction, beta: Fraction, floor: Fraction
) -> None:
    n, width = len(x), 1000
    left = 1 + int(place * (n - 1) / 2)
    right = max(left, n + 1 - left)
    padded = [0, *sorted(x), width]
    for changes in (0, 1):
        pairs = [
            (padded[j] - padded[i], left - i + j - right - changes)
            for i in range(left + 1)
            for j in range(right, n + 2)
            if left - i + j - right >= changes
        ]
        exact = max(float(floor), *(gap * math.exp(-float(beta) * k) for gap, k in pairs))
        found = smooth.smooth_gap(np.array(sorted(x)), width, (left, right), beta, floor, changes=changes)
        assert exact * (1 - 1e-12) <= found <= exact * (1 + float(smooth.INFLATION))


def test_the_result_is_rounded_up_and_hardly() -> None:
    """10 e^(-0.5) is irrational: what is returned lies above it, by less than INFLATION."""
    found = of_rank((1, 4, 5, 7, 9), 10, 3, TENTH)
    exact = lower(lambda digits: Enclosure.of(Fraction(-1, 2), digits).exp() * 10)
    assert exact < found < exact * (1 + smooth.INFLATION)


def test_equal_values_are_raised_to_the_floor() -> None:
    """20 001 equal values: the smooth sensitivity is 10 e^(-1000), which no float holds and no noise can use."""
    assert of_rank([5] * 20001, 10, 10001, TENTH, Fraction(1, 100)) == Fraction(1, 100)
    assert of_trimmed([5] * 20001, 10, 2000, TENTH, Fraction(1, 100)) == Fraction(1, 100)


def test_a_million_values_with_any_beta() -> None:
    values = np.sort((uniforms(10**6, bits=SeededBits(1)) * 2**20).astype(np.int64))
    for beta, expected in ((Fraction(1, 10), 8.78), (Fraction(1, 1000), 397.1)):
        found = float(smooth.order_statistic(values, 2**20, 500_000, beta, Fraction(1)))
        assert found == pytest.approx(expected, rel=1e-3)
        assert found >= np.e**-1 / float(beta) * 0.9  # a density of about one value for each step


# ------------------------------------------------------------------------------------------------------------ mutants
def disagreements() -> int:
    """How often a trimmed mean's sensitivity differs from the definition on a small grid."""
    local = referee.local_sensitivities(referee.trimmed(1), 3, 4)
    wrong = 0
    for x in local:
        exact = referee.smooth(referee.envelope(local, x), 0.4)
        wrong += not exact * (1 - 1e-12) <= of_trimmed(x, 3, 1, Fraction(2, 5)) <= exact * (1 + 1e-6)
    return wrong


def test_mutant_weights_by_the_distance_between_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """e^(-beta (j - i - 1)), right for one rank, is wrong for a trimmed mean, whose ranks are apart from the start."""
    assert disagreements() == 0
    honest = smooth.smooth_gap

    def far(steps: Any, width: int, ranks: tuple[int, int], beta: Fraction, *rest: Any, **changes: Any) -> Any:
        found = honest(steps, width, ranks, beta, *rest, **changes)
        return found * Fraction(math.exp(-float(beta) * (ranks[1] - ranks[0])))

    monkeypatch.setattr(smooth, "smooth_gap", far)
    assert disagreements() > 0


def test_mutant_not_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smooth, "upper", lower)
    monkeypatch.setattr(smooth, "INFLATION", Fraction(0))
    found = of_rank((1, 4, 5, 7, 9), 10, 3, TENTH)
    exact = lower(lambda digits: Enclosure.of(Fraction(-1, 2), digits).exp() * 10, 60)
    assert found < exact
