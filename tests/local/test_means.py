"""Means in the local model: exact laws, no bias, the variances of the papers, intervals that cover."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.local import DuchiMean, HybridMean, PiecewiseMean, means
from discreet.local.means import MeanOracle, WindowLaw
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.effort import some
from tests.local.exact_laws import CLOSE, DIGITS, Law, judge_privacy, report_law
from tests.statistical.laws import FALSE_ALARM, CategoricalLaw, p_value

KINDS: list[Callable[..., MeanOracle]] = [DuchiMean, PiecewiseMean, HybridMean]
EPSILON = Fraction(8, 5)
PLACES = 2  # bits: five places, which are the points of four steps, and between the two points of Duchi


def small_laws(oracle: MeanOracle) -> list[Law]:
    """The laws of all places of a coarse scale; a place between two points is a mixture of both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(means, "_PLACES", PLACES)
        patch.setattr(means, "_WEIGHTS", 2)
        patch.setattr(means, "STEPS", 4)
        return [report_law(oracle, place) for place in range(-2, 3)]


def judge_means(oracle: MeanOracle, laws: list[Law]) -> None:
    """The mean of what a report stands for is the number itself, to 60 digits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(means, "_WEIGHTS", 2)
        patch.setattr(means, "STEPS", 4)
        windows = [window for _, window in oracle.windows]
    values = [
        Fraction(2 * j - window.outputs + 1, 2) * Fraction(window.scale(DIGITS).low)
        for window in windows
        for j in range(window.outputs)
    ]
    for place, law in zip(range(-2, 3), laws, strict=True):
        mean = sum((mass * values[report[0]] for report, mass in law.items()), Fraction(0))
        assert abs(mean - Fraction(place, 2)) < CLOSE * 10**3


def small(kind: Callable[..., MeanOracle], epsilon: Fraction = EPSILON) -> MeanOracle:
    options: dict[str, Any] = {"steps": 4} if kind is PiecewiseMean else {}
    return kind(epsilon=epsilon, bounds=(-2, 2), **options)


@every("kind", some(KINDS, 3))
def test_reports_are_exactly_private_and_their_mean_is_the_number(kind: Callable[..., MeanOracle]) -> None:
    laws = small_laws(small(kind))
    judge_privacy(laws, EPSILON)
    judge_means(small(kind), laws)
    with pytest.raises(AssertionError):
        judge_privacy(laws, EPSILON * Fraction(999, 1000))
    with pytest.raises(AssertionError):
        judge_means(small(kind, EPSILON * Fraction(1001, 1000)), laws)


@every("kind", KINDS[:2])
def test_the_code_draws_its_law(kind: Callable[..., MeanOracle], bits: SeededBits) -> None:
    """30,000 reports at a point of the grid: the law of the paths, and not that of an epsilon wrong by 30 %."""
    rows = small(kind).privatize(np.full(30_000, -2.0), bits=bits).rows
    for epsilon, accepted in [(EPSILON, True), (EPSILON * Fraction(13, 10), False)]:
        with pytest.MonkeyPatch.context() as patch:
            if kind is PiecewiseMean:  # a window as wide as that of the reports
                width = small(kind).windows[0][1].width
                patch.setattr(means, "_piecewise", lambda level, steps, width=width: WindowLaw(level, steps, width))
            law = small_laws(small(kind, epsilon))[0]
        masses = [float(law[report]) for report in sorted(law)]
        assert (p_value(rows, CategoricalLaw(tuple(masses))) > FALSE_ALARM) is accepted


def test_variances_are_those_of_the_papers() -> None:
    """Duchi et al. 2018; Wang et al. 2019, Lemma 1 and equation 10. A grid of 4,096 steps changes the fourth digit."""
    for epsilon in (0.3, 1, 2.5, 5):
        e, root = math.exp(epsilon), math.exp(epsilon / 2)
        duchi, piecewise, hybrid = (kind(epsilon=epsilon) for kind in KINDS)
        for t in (-1, 0.25, 0.5):
            assert duchi.variance(1, t) == pytest.approx(((e + 1) / (e - 1)) ** 2 - t * t, rel=1e-9)
            wanted = t * t / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
            assert piecewise.variance(1, t) == pytest.approx(wanted, rel=2e-3)
        if epsilon > 0.61:
            worst = (root + 3) / (3 * root * (root - 1)) + (e + 1) ** 2 / (root * (e - 1) ** 2)
            assert hybrid.variance(1) == pytest.approx(worst, rel=2e-3)
        assert hybrid.variance(1) <= min(duchi.variance(1), piecewise.variance(1)) * 1.0001
        assert piecewise.variance(10) == pytest.approx(piecewise.variance(1) / 10)


@every("kind", KINDS)
def test_estimates_and_their_intervals(kind: Callable[..., MeanOracle], bits: SeededBits) -> None:
    """60 surveys of 500 people: the mean square error is the variance times 1 +- 6 sqrt(2 / 60), and all cover but few.

    At least 95 % cover; of 60 at least 49, but for a probability of 2e-4 with this seed, which is fixed.
    """
    oracle = kind(epsilon=2, bounds=(10, 20))
    values = np.full(500, 12.5)
    found = [oracle.estimate(oracle.privatize(values, bits=bits)) for _ in range(60)]
    errors = np.array([one.value - 12.5 for one in found])
    assert abs(np.mean(errors**2) / oracle.variance(500, 12.5) - 1) < 6 * math.sqrt(2 / 60)
    assert abs(errors.mean()) < 6 * math.sqrt(oracle.variance(500, 12.5) / 60)
    assert sum(one.low <= 12.5 <= one.high for one in found) >= 49
    assert not found[0].private
    assert found[0].event == oracle.event


def test_intervals_come_near_to_the_normal_ones(bits: SeededBits) -> None:
    """A million reports: at most 12 % longer than by the normal law with the true variance; ten: finite."""
    oracle = HybridMean(epsilon=1)
    found = oracle.estimate(oracle.privatize(np.zeros(10**6), bits=bits), confidence=0.95)
    ideal = 1.96 * math.sqrt(oracle.variance(10**6, 0))
    assert ideal < (found.high - found.low) / 2 < 1.12 * ideal
    few = oracle.estimate(oracle.privatize(np.zeros(10), bits=bits))
    assert math.isfinite(few.low)
    assert few.low < few.value < few.high


@every("kind", KINDS)
def test_one_report_moves_a_mean_by_its_influence_at_most(kind: Callable[..., MeanOracle], bits: SeededBits) -> None:
    oracle = kind(epsilon=1, bounds=(0, 5))
    stops = np.cumsum([window.outputs for _, window in oracle.windows])
    rows = oracle.privatize(np.zeros(9), bits=bits).rows
    sent = [0, *stops[:-1], *(stops - 1)]  # the ends of each law
    ends = [oracle.estimate(np.append(rows, end)).value for end in sent]
    assert max(ends) - min(ends) == pytest.approx(oracle.influence(10))


def test_a_mixture_of_one_law_is_that_law(bits: SeededBits) -> None:
    """Below an epsilon of 0.61 only Duchi's two reports exist: none of the other law is taken from anybody."""
    oracle = HybridMean(epsilon=0.5)
    assert [window for _, window in oracle.windows] == [window for _, window in DuchiMean(epsilon=0.5).windows]
    assert oracle.influence(1) == DuchiMean(epsilon=0.5).influence(1)
    assert set(oracle.privatize(np.zeros(50), bits=bits).rows.tolist()) == {0, 1}
    with pytest.raises(InvalidParameter, match="impossible"):
        oracle.estimate([0, 1, 2])
    assert len(HybridMean(epsilon=30).windows) == 1


def test_events() -> None:
    assert DuchiMean(epsilon=1).event == events.RandomizedResponse(1, 2)
    assert PiecewiseMean(epsilon=1).event == HybridMean(epsilon=1).event == events.Pure(1)


@every("kind", KINDS)
def test_bad_input_is_refused(kind: Callable[..., MeanOracle], bits: SeededBits) -> None:
    oracle = kind(epsilon=1, bounds=(0, 5))
    for value in (-0.1, 5.1, math.nan, math.inf, "a", None, [[1.0]], True, [1, None]):
        with pytest.raises(InvalidValue):
            oracle.privatize(value, bits=NoBits())
    reports = oracle.privatize([1, 2.5], bits=bits)
    for other in (kind(epsilon=1, bounds=(0, 6)), kind(epsilon=2, bounds=(0, 5))):
        with pytest.raises(InvalidParameter, match="for this oracle"):
            other.estimate(reports)
    with pytest.raises(InvalidParameter, match="impossible"):
        oracle.estimate([0, 10**6])
    assert oracle.estimate([0, 0, -1], drop=True).value == oracle.estimate([0, 0]).value
    for bounds in (None, (1, 0), (1, 1), (0, math.inf), (1, Fraction(10**30 + 1, 10**30))):
        with pytest.raises(InvalidParameter, match="bounds"):
            kind(epsilon=1, bounds=bounds)
    with pytest.raises(InvalidParameter, match="steps"):
        PiecewiseMean(epsilon=1, steps=3)
