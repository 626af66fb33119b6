"""Amplification by shuffling: against the closed form, exact enumeration, other ways to compute it, and reason."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from discreet.accounting import shuffled_delta, shuffled_epsilon
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.local import HadamardResponse
from discreet.privacy import events
from tests.cases import every
from tests.effort import some
from tests.local.exact_laws import report_law


def closed_form(loss: float, n: int, delta: float) -> float:
    """Feldman, McMillan, Talwar 2021, Theorem 3.1, valid while loss <= ln(n / (16 ln(2 / delta)))."""
    e = math.exp(loss)
    return math.log1p((e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n))


@pytest.mark.ci
@every(("loss", "n", "delta"), some([(0.1, 10**4, 1e-6), (1, 10**4, 1e-6), (4, 10**6, 1e-6), (2, 10**9, 1e-10)], 3))
def test_never_above_the_closed_form(loss: float, n: int, delta: float) -> None:
    found = shuffled_epsilon(events.Pure(loss), n, delta)
    assert 0 <= found <= loss
    assert shuffled_epsilon(events.RandomizedResponse(loss, 2), n, delta) <= found
    if loss <= math.log(n / (16 * math.log(2 / delta))):
        assert found <= closed_form(loss, n, delta)


def counts_law(loss: float, ones: int, zeros: int) -> np.ndarray:
    """The law of how many of the reports are 1: Warner's randomized response of so many people with a 1 and a 0."""
    truth = math.exp(loss) / (1 + math.exp(loss))
    law = np.array([1.0])
    for p in [truth] * ones + [1 - truth] * zeros:
        law = np.convolve(law, [1 - p, p])
    return law


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@every(("loss", "n"), product((0.3, 1.0, 2.0), (1, 2, 3, 7, 20)))
def test_never_below_the_truth(loss: float, n: int) -> None:
    """All that shuffled reports of two kinds tell is how many are 1: enumerated, for every set of the other people."""
    worst = dict.fromkeys((0.0, 0.1 * loss, 0.4 * loss, 0.9 * loss, loss), 0.0)
    for others in range(n):
        p, q = counts_law(loss, others + 1, n - 1 - others), counts_law(loss, others, n - others)
        for epsilon in worst:
            worst[epsilon] = max(worst[epsilon], hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    for epsilon, truth in worst.items():
        general = shuffled_delta(events.Pure(loss), n, epsilon)
        special = shuffled_delta(events.RandomizedResponse(loss, 2), n, epsilon)
        assert truth <= special * (1 + 1e-6) + 1e-12  # at epsilon = loss both are 0, up to the rounding of `truth`
        assert special <= general * (1 + 1e-6)
        assert special <= 1.0
    if n == 1:
        assert shuffled_delta(events.Pure(loss), 1, 0) == pytest.approx(math.tanh(loss / 2))


def test_three_options_never_below_the_truth() -> None:
    """Counts of three values, enumerated; the one person changes from the first to the second."""
    loss, n = 1.0, 5
    p = math.exp(loss) / (math.exp(loss) + 2)
    rows = np.full((3, 3), (1 - p) / 2) + np.eye(3) * (p - (1 - p) / 2)
    for others in product(range(3), repeat=n - 1):
        if list(others) != sorted(others):
            continue
        laws = []
        for own in (0, 1):
            law: dict[tuple[int, ...], float] = {(0, 0, 0): 1.0}
            for value in (own, *others):
                grown: dict[tuple[int, ...], float] = {}
                for count, mass in law.items():
                    for sent in range(3):
                        key = tuple(c + (sent == place) for place, c in enumerate(count))
                        grown[key] = grown.get(key, 0.0) + mass * rows[value, sent]
                law = grown
            laws.append(np.array([law[key] for key in sorted(law)]))
        for epsilon in (0.0, 0.2, 0.6):
            assert hockey_stick(laws[0], laws[1], epsilon) <= shuffled_delta(
                events.RandomizedResponse(loss, 3), n, epsilon
            )


def test_sums_over_every_number_of_clones() -> None:
    """The pair of laws, written out as a table over both counts, for every number of clones."""
    loss, n = 0.8, 30
    r = math.exp(loss) / (1 + math.exp(loss))
    p, q = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    for clones in range(n):
        weight = math.comb(n - 1, clones) * math.exp(-loss) ** clones * (1 - math.exp(-loss)) ** (n - 1 - clones)
        for first in range(clones + 1):
            mass = weight * math.comb(clones, first) / 2**clones
            for side, truth in ((p, r), (q, 1 - r)):
                side[first + 1, clones - first] += mass * truth
                side[first, clones - first + 1] += mass * (1 - truth)
    for epsilon in (0.0, 0.05, 0.2, 0.5):
        assert shuffled_delta(events.Pure(loss), n, epsilon) == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-6)


def test_more_people_more_noise_and_more_delta_cost_less() -> None:
    def cost(loss: float = 1.0, n: int = 1000, delta: float = 1e-6) -> float:
        return shuffled_epsilon(events.Pure(loss), n, delta)

    assert cost(n=100) >= cost() >= cost(n=10**5) >= cost(n=10**8) > 0
    assert cost(loss=0.5) <= cost() <= cost(loss=2)
    assert cost(delta=1e-9) >= cost() >= cost(delta=1e-3)
    assert cost(n=1) == pytest.approx(1, abs=1e-5)  # delta buys a little
    deltas = [shuffled_delta(events.Pure(1), 1000, epsilon) for epsilon in np.linspace(0, 1, 9)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] == 0
    assert shuffled_delta(events.Pure(1), 1000, cost()) <= 1e-6
    many = shuffled_epsilon(events.RandomizedResponse(1, 10**6), 1000, 1e-6)
    assert many <= cost()


def test_bad_input_is_refused() -> None:
    for reports in (0, -1, 1.5, 10**13):
        with pytest.raises(InvalidParameter, match="reports"):
            shuffled_epsilon(events.Pure(1), reports, 1e-6)  # type: ignore[arg-type]
    for delta in (0, 1, -1):
        with pytest.raises(InvalidParameter, match="delta"):
            shuffled_epsilon(events.Pure(1), 10, delta)
    with pytest.raises(InvalidParameter, match="epsilon"):
        shuffled_delta(events.Pure(1), 10, -1)
    with pytest.raises(InvalidParameter, match="64"):
        shuffled_delta(events.Pure(65), 10, 1)
    with pytest.raises(UnsupportedEvent):
        shuffled_delta(events.Gaussian(1), 10, 1)


def test_two_hadamard_reports_never_below_the_truth() -> None:
    """Another randomizer, enumerated: all pairs of reports without their order."""
    oracle = HadamardResponse(epsilon=2, domain=2)
    laws = [report_law(oracle, value) for value in (0, 1)]
    pair = [np.zeros((4, 4)), np.zeros((4, 4))]
    for own in (0, 1):
        for (mine,), mass in laws[own].items():
            for (other,), weight in laws[0].items():
                pair[own][min(mine, other), max(mine, other)] += float(mass * weight)
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        truth = max(hockey_stick(p, q, epsilon) for p, q in (pair, pair[::-1]))
        assert truth <= shuffled_delta(oracle.event, 2, epsilon)
