"""Noisy counts that tell which keys are shown: laws of neighbours, the whole privacy curve, mutants, the sampler."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import accounting, audit
from discreet.errors import InvalidParameter
from discreet.mechanisms import PartitionSelection
from discreet.mechanisms.tails import laplace_cut
from discreet.noise import SeededBits, truncated_laplace
from discreet.privacy import events
from tests.cases import every
from tests.noise.tape import Untouched
from tests.statistical.laws import FALSE_ALARM, WRONG, CategoricalLaw, p_value

Law = dict[Any, float]


def truncated(**options: Any) -> PartitionSelection:
    given: dict[str, Any] = {"epsilon": 1, "delta": 0.02, "method": "truncated"} | options
    return PartitionSelection(**given)


# ----------------------------------------------------------------------------------------------------------- exact laws
def law(count: int, scale: float, most: int, threshold: int) -> Law:
    """Of one key: its noisy count if it is shown, else None; a key that nobody has is not there to be shown."""
    if not count:
        return {None: 1.0}
    weights = {z: math.exp(-abs(z) / scale) for z in range(-most, most + 1)}
    whole = math.fsum(weights.values())
    shown: Law = {count + z: w / whole for z, w in weights.items() if count + z >= threshold}
    return shown | {None: 1 - math.fsum(shown.values())}


def joint(laws: tuple[Law, ...]) -> Law:
    return {keys: math.prod(one[k] for one, k in zip(laws, keys, strict=True)) for keys in product(*laws)}


def curve(p: Law, q: Law, epsilon: float) -> float:
    """sup over sets of P - e^epsilon Q."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(key, 0.0)) for key, mass in p.items())


EPSILONS = [-0.7, -0.2, 0.0, 0.2, 0.5, 0.8, 1.0, 1.3]


@cache
def claimed(event: events.Event, epsilon: float) -> float:
    """The curve of the event; of a negative epsilon, seen from the other side."""
    if epsilon >= 0:
        return float(accounting.delta([event], epsilon))
    return 1 - math.exp(epsilon) * (1 - claimed(event, -epsilon))


def judge(mechanism: PartitionSelection, most: int, threshold: int) -> None:
    """At every epsilon a unit is seen no better than the event says, over all that one unit can do to its keys."""
    rows, groups = mechanism.rows_per_group, mechanism.max_groups
    counts = range(2 * most + 3) if groups == 1 else (0, 1, most, 2 * most)
    for start in product(counts, repeat=groups):
        for more in product(range(rows + 1), repeat=groups):
            sides = start, tuple(n + m for n, m in zip(start, more, strict=True))
            p, q = (joint(tuple(law(n, float(mechanism.scale), most, threshold) for n in side)) for side in sides)
            for epsilon in EPSILONS:
                seen = max(curve(p, q, epsilon), curve(q, p, epsilon))
                assert seen <= claimed(mechanism.event, epsilon) + 1e-9, (start, more, epsilon)


SOME = [{}, {"epsilon": 0.5, "delta": 0.1}, {"rows_per_group": 2, "delta": 0.1}, {"max_groups": 2, "delta": 0.2}]


@every("options", SOME)
def test_the_whole_curve_is_that_of_the_event(options: dict[str, Any]) -> None:
    mechanism = truncated(**options)
    judge(mechanism, mechanism.threshold - 1, mechanism.threshold)


@every(("longer", "lower"), [(-1, -1), (0, -1), (1, 0), (0, -2)])
def test_mutants_of_the_threshold_and_of_the_longest_noise(longer: int, lower: int) -> None:
    """Shorter noise, a threshold that the noise of nothing reaches, or longer noise under the same threshold."""
    mechanism = truncated(epsilon=0.5, delta="0.037")  # P(Z = 4) = 0.03692
    cut = mechanism.threshold - 1
    assert cut == 4
    with pytest.raises(AssertionError):
        judge(mechanism, cut + longer, mechanism.threshold + lower)


def test_a_delta_that_is_not_shared_is_seen() -> None:
    mechanism = truncated(max_groups=2, delta=0.2)
    alone = laplace_cut(mechanism.scale, 1, mechanism.delta)
    assert alone < mechanism.threshold - 1
    with pytest.raises(AssertionError):
        judge(mechanism, alone, alone + 1)


@every(("epsilon", "delta"), [("0.1", "1e-6"), (1, "1e-5"), (3, "0.2"), ("0.01", "0.3")])
@every("rows", [1, 3])
def test_the_longest_noise_is_right_to_the_last_step(epsilon: str, delta: str, rows: int) -> None:
    mechanism = truncated(epsilon=epsilon, delta=delta, rows_per_group=rows)
    most, a = mechanism.threshold - 1, math.exp(-1 / mechanism.scale)

    def beyond(cut: int) -> float:
        masses = [a ** abs(z) for z in range(-cut, cut + 1)]
        return math.fsum(masses[-rows:]) / math.fsum(masses)

    assert beyond(most) <= float(delta) * (1 + 1e-12)
    assert most == rows or beyond(most - 1) > float(delta)
    whole = PartitionSelection(epsilon=epsilon, delta=delta, rows_per_group=rows, method="laplace")
    assert mechanism.threshold <= whole.threshold
    assert mechanism.event == whole.event


def test_keys_are_kept_as_often_as_the_optimal_rule_of_the_same_delta_keeps_them() -> None:
    """For the delta that the longest noise uses up: P(Z = k)."""
    mechanism = truncated(epsilon=0.4, delta=1e-4)
    most, a = mechanism.threshold - 1, math.exp(-0.4)
    masses = [a ** abs(z) for z in range(-most, most + 1)]
    best = PartitionSelection(epsilon=0.4, delta=masses[-1] / math.fsum(masses)).rule
    for count in range(2 * most + 3):
        kept = 1 - law(count, 2.5, most, most + 1)[None]
        assert kept == pytest.approx(float(best.probability(count).low), abs=1e-12)


def test_an_auditor_agrees() -> None:
    mechanism = truncated(epsilon=1, delta=1e-4)
    for pair in (([0], [1]), ([3], [4]), ([30], [31])):
        found = audit.exact(mechanism, *pair)
        assert found.passed
        assert found.delta is not None
        assert 1e-4 / 3 < float(max(found.delta)) <= 1e-4
    for pair in (([0], [2]), ([0, 0], [1, 1])):
        assert not audit.exact(mechanism, *pair).passed


# ------------------------------------------------------------------------------------------------------------ the noise
def masses(scale: float, most: int) -> CategoricalLaw:
    weights = [math.exp(-abs(z) / scale) for z in range(-most, most + 1)]
    return CategoricalLaw(tuple(w / math.fsum(weights) for w in weights))


@pytest.mark.parametrize(("scale", "most"), [(3, 4), (Fraction(7, 2), 12), (20, 14), (1000, 30)], ids=str)
def test_truncated_noise_follows_its_law(scale: Fraction, most: int, bits: SeededBits) -> None:
    draws = truncated_laplace(scale, most, 100_000, bits=bits) + most
    assert p_value(draws, masses(float(scale), most)) > FALSE_ALARM
    assert draws.min() == 0
    assert draws.max() == 2 * most
    if most > scale / 2:  # flatter laws hardly depend on the scale
        for wrong in WRONG:
            assert p_value(draws, masses(float(wrong * scale), most)) < FALSE_ALARM


def test_no_noise_and_large_noise(bits: SeededBits) -> None:
    assert truncated_laplace(5, 0, 4, bits=bits).tolist() == [0] * 4
    big = truncated_laplace(2**60, 2**61, (2, 3), bits=bits)
    assert big.shape == (2, 3)
    assert all(abs(z) <= 2**61 for z in big.ravel().tolist())
    assert truncated_laplace(2**70, 2**69, 3, bits=bits).dtype == object


@every(
    "draw",
    [
        lambda bits: truncated_laplace(0, 1, 2, bits=bits),
        lambda bits: truncated_laplace(math.nan, 1, 2, bits=bits),
        lambda bits: truncated_laplace(1, -1, 2, bits=bits),
        lambda bits: truncated_laplace(1, 1.5, 2, bits=bits),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters_draw_nothing(draw: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidParameter):
        draw(Untouched())


def test_shown_counts_have_truncated_noise(bits: SeededBits) -> None:
    mechanism = truncated(epsilon=0.5, delta=0.1)
    shown = mechanism.release(np.full(50_000, 1000), bits=bits)
    assert shown.counts is not None
    most = mechanism.threshold - 1
    assert p_value(shown.counts - 1000 + most, masses(2.0, most)) > FALSE_ALARM
    assert shown.counts.max() == 1000 + most
    assert mechanism.event == events.Composed([events.DiscreteLaplace(2, 1), events.Approx(0, "1/10")])
