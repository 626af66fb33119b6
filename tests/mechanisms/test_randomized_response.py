"""Randomized response: exact odds, published variances, the law of the code, estimates, refusals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.statistical.laws import FALSE_ALARM, CategoricalLaw, p_value

SAMPLES = 40_000
LN2 = "0.69314718055994530941723212145817656807550013436025525412068"


def judge_odds(mechanism: RandomizedResponse) -> None:
    """Truth against one lie: e^epsilon to 30 digits, and all the probabilities add up to 1."""
    truth, lie = mechanism.probability(60), mechanism.lie(60) / (mechanism.options - 1)
    odds, wanted = truth / lie, Enclosure.of(mechanism.epsilon, 60).exp()
    assert float(abs((odds - wanted).high) / wanted.low) < 1e-30
    total = truth + lie * (mechanism.options - 1)
    assert total.low <= 1 <= total.high


@every("options", [2, 3, 10, 10**18])
@every("epsilon", [0.01, 1, "7/3", 20])
def test_the_odds_are_exact(epsilon: float, options: int) -> None:
    judge_odds(RandomizedResponse(epsilon=epsilon, options=options))


@dataclass(frozen=True, slots=True, init=False)
class OddsOfTwo(RandomizedResponse):
    """Decides to lie as if there were two options, whatever their number."""

    def _odds(self, digits: int) -> Enclosure:
        return Enclosure.of(-self.epsilon, digits).exp()


def test_odds_for_another_number_of_options_are_killed() -> None:
    judge_odds(OddsOfTwo(epsilon=1, options=2))
    with pytest.raises(AssertionError):
        judge_odds(OddsOfTwo(epsilon=1, options=3))


def law(epsilon: float, options: int, truth: int) -> CategoricalLaw:
    return CategoricalLaw(tuple(math.exp(epsilon) if value == truth else 1.0 for value in range(options)))


@pytest.mark.parametrize("options", [2, 3, 7])
def test_the_code_draws_the_law(options: int, bits: SeededBits) -> None:
    mechanism = RandomizedResponse(epsilon=1.5, options=options)
    for truth in (0, options - 1):
        reports = mechanism.release(np.full(SAMPLES, truth), bits=bits)
        assert p_value(reports, law(1.5, options, truth)) > FALSE_ALARM
        for wrong in (1.5 * 1.3, 1.5 * 0.7):
            assert p_value(reports, law(wrong, options, truth)) < FALSE_ALARM
    wrong_odds = OddsOfTwo(epsilon=1.5, options=options).release(np.full(SAMPLES, 0), bits=bits)
    assert (p_value(wrong_odds, law(1.5, options, 0)) < FALSE_ALARM) == (options > 2)


@pytest.mark.ci
def test_scalars_bools_and_shapes(bits: SeededBits) -> None:
    sure = RandomizedResponse(epsilon=200)
    assert sure.release(True, bits=bits) is True
    assert sure.release(1, bits=bits) == 1
    assert sure.release(np.array([[True], [False]]), bits=bits).dtype == bool
    assert sure.release(np.array([[1], [0]], dtype=np.uint8), bits=bits).tolist() == [[1], [0]]
    assert sure.release([], bits=bits).shape == (0,)
    assert sure.event == events.RandomizedResponse(200, 2)
    draws = [RandomizedResponse(epsilon=1.5, options=3).release(2, bits=bits) for _ in range(5000)]
    assert p_value(draws, law(1.5, 3, 2)) > FALSE_ALARM


def test_published_numbers() -> None:
    """Truth with 2/3: epsilon = ln 2; a share of 0.2 among 1000 shows as 0.4, with a standard deviation of 0.04648."""
    fair = RandomizedResponse(epsilon=LN2)
    low, high = fair.probability().fractions()
    assert float(low) == pytest.approx(2 / 3, abs=1e-15)
    assert float(high) == pytest.approx(2 / 3, abs=1e-15)
    assert math.sqrt(fair.variance(0.2, reports=1000)) == pytest.approx(0.04648, abs=5e-6)
    reports = np.repeat([1, 0], [400, 600])
    assert fair.estimate_frequencies(reports).value[1] == pytest.approx(0.2, abs=1e-12)
    assert RandomizedResponse(epsilon=1, options=4).variance(0, reports=1) == pytest.approx(1.5981, abs=5e-5)
    assert RandomizedResponse(epsilon=1, options=100).variance(0, reports=1) == pytest.approx(34.113, abs=5e-4)


def test_estimates_are_unbiased_and_their_intervals_cover(bits: SeededBits) -> None:
    """1000 crowds of 200: the mean of the estimates is within 6 of its standard deviations of the truth."""
    crowds, people, confidence = 1000, 200, 0.9
    mechanism = RandomizedResponse(epsilon=1, options=3)
    truth = np.repeat([0, 1, 2], [120, 60, 20])
    reports = mechanism.release(np.tile(truth, (crowds, 1)), bits=bits)
    estimates = [mechanism.estimate_frequencies(row, confidence=confidence) for row in reports]
    exact = np.array([0.6, 0.3, 0.1])
    spread = math.sqrt(mechanism.variance(0.6, reports=people) / crowds)
    assert np.abs(np.mean([e.value for e in estimates], axis=0) - exact).max() < 6 * spread
    covered = np.mean([(e.low <= exact) & (exact <= e.high) for e in estimates], axis=0)
    assert covered.min() >= confidence - 0.01
    assert all(np.all(e.low <= e.value) and np.all(e.value <= e.high) for e in estimates[:200])


def test_where_the_truth_lies(bits: SeededBits) -> None:
    assert list(RandomizedResponse(epsilon=5, options=4).interval(2, confidence=0.9)) == [2, 2]
    assert list(RandomizedResponse(epsilon=1, options=4).interval(2, confidence=0.9)) == [0, 3]
    estimate = RandomizedResponse(epsilon=1, options=4).estimate([1, 2], bits=bits)
    assert estimate.low.tolist() == [0, 0]
    assert not estimate.private


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, None, "x", 1e301])
def test_bad_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(InvalidParameter) as caught:
        RandomizedResponse(epsilon=epsilon)
    assert caught.value.name == "epsilon"


@pytest.mark.parametrize("options", [1, 0, -2, True, 2.0, None, 10**18 + 1])
def test_bad_numbers_of_options_are_refused(options: int) -> None:
    with pytest.raises(InvalidParameter) as caught:
        RandomizedResponse(epsilon=1, options=options)
    assert caught.value.name == "options"


@pytest.mark.parametrize("value", [3, -1, 0.5, math.nan, True, None, "a", [0, 3], [True], [0.0], 2**70])
def test_values_that_are_no_option_are_refused_before_a_draw(value: object) -> None:
    with pytest.raises(InvalidValue) as caught:
        RandomizedResponse(epsilon=1, options=3).release(value, bits=NoBits())
    assert "2" in caught.value.hint


def test_empty_crowds_and_huge_tables_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        RandomizedResponse(epsilon=1).estimate_frequencies([])
    with pytest.raises(InvalidParameter):
        RandomizedResponse(epsilon=1, options=10**9).estimate_frequencies([1])


@pytest.mark.parametrize("options", [2, 10**18])
@pytest.mark.parametrize("epsilon", ["1e-300", "1e300"])
def test_absurd_but_legal_amounts_work(epsilon: str, options: int, bits: SeededBits) -> None:
    reports = RandomizedResponse(epsilon=epsilon, options=options).release([1] * 4, bits=bits)
    assert epsilon == "1e-300" or reports.tolist() == [1] * 4
