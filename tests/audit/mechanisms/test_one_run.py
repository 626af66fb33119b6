"""The audit of one run: rates of error on mechanisms that keep their promise, power on those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import audit
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace, RandomizedResponse
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms

CANARIES = 200
SLOW = pytest.mark.slow


class Reports:
    """Each canary's membership by randomized response, and now and then told outright: (epsilon, delta)-DP."""

    def __init__(self, epsilon: float, delta: float, bits: SeededBits) -> None:
        self.response, self.delta, self.bits = RandomizedResponse(epsilon=epsilon), delta, bits

    def __call__(self, included: list[int]) -> NDArray[np.int64]:
        truth = np.zeros(CANARIES, dtype=np.int64)
        truth[included] = 1
        told = uniforms(CANARIES, bits=self.bits) < self.delta
        return np.where(told, truth, self.response.release(truth, bits=self.bits))


def report(output: NDArray[np.int64], canary: int) -> float:
    return float(output[canary])


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.5, 0.0), pytest.param(1.0, 0.01, marks=SLOW), pytest.param(2.0, 0.05, marks=SLOW)]
)
def test_on_a_true_claim_the_bound_exceeds_it_as_rarely_as_stated(
    epsilon: float, delta: float, bits: SeededBits
) -> None:
    """At 90 % confidence at most 10 % of 150 audits may exceed the claim, and 4 deviations more."""
    mechanism = Reports(epsilon, delta, bits)
    trials, wrong, lowers = 150, 0, []
    for _ in range(trials):
        found = audit.one_run(
            mechanism, range(CANARIES), report, epsilon=epsilon, delta=delta, confidence=0.9, bits=bits
        )
        wrong += not found.passed
        lowers.append(found.epsilon_lower)
    assert wrong / trials <= 0.1 + 4 * (0.1 * 0.9 / trials) ** 0.5
    if not delta:  # and it is not idle: without delta the bound is tight but for the sampling error of 200 guesses
        assert np.median(lowers) > 0.4 * epsilon


def test_half_the_noise_is_caught(bits: SeededBits) -> None:
    honest = audit.one_run(Reports(1.0, 0.0, bits), range(CANARIES), report, epsilon=1, bits=bits)
    broken = audit.one_run(Reports(2.0, 0.0, bits), range(CANARIES), report, epsilon=1, bits=bits)
    assert honest.passed
    assert not broken.passed
    assert "could have certified at most" in honest.summary()
    assert "false" in broken.summary()
    assert broken.spec()["layer"]


def test_fewer_guesses_can_be_surer(bits: SeededBits) -> None:
    """Counts with Laplace noise: the surest canaries are those whose noisy counts stand out."""

    def counts(included: list[int]) -> NDArray[np.int64]:
        truth = np.zeros(CANARIES, dtype=np.int64)
        truth[included] = 1
        return np.asarray(Laplace(epsilon=4, sensitivity=1).release(truth, bits=bits))

    found = audit.one_run(counts, range(CANARIES), report, epsilon=4, guesses=100, bits=bits)
    assert found.passed
    assert found.epsilon_lower > 2
    assert (found.canaries, found.guesses) == (CANARIES, 100)


@pytest.mark.parametrize("wrong", [{}, {"epsilon": -1}, {"epsilon": 1, "guesses": 0}, {"epsilon": 1, "guesses": 9999}])
def test_bad_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        audit.one_run(set, range(10), lambda output, canary: canary in output, **wrong)
