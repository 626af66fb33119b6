"""The Laplace mechanisms: exact loss, rounding inside the sensitivity, intervals, and no wrap-around."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Interval
from discreet.mechanisms import DiscreteLaplace, Laplace
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.mechanisms.judges import arrays_keep_their_promise, laplace_keeps_its_promise
from tests.statistical.laws import FALSE_ALARM, WRONG, p_value
from tests.statistical.laws import DiscreteLaplaceLaw as Law


@every("epsilon", [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(10)])
@every("sensitivity", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
@every("step", [Fraction(1, 4), Fraction(1), Fraction(4)])
def test_the_loss_of_all_neighbours_is_at_most_epsilon(
    epsilon: Fraction, sensitivity: Fraction, step: Fraction
) -> None:
    laplace_keeps_its_promise(Laplace, epsilon, sensitivity, step)


@every("dimension", [1, 2, 3, 10])
@every("sensitivity", [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(7, 2)])
def test_the_rounding_of_every_entry_is_inside_the_sensitivity(sensitivity: Fraction, dimension: int) -> None:
    arrays_keep_their_promise(Laplace, sensitivity, dimension)


@given(
    st.lists(st.fractions(-50, 50, max_denominator=97), min_size=1, max_size=6),
    st.lists(st.fractions(-2, 2, max_denominator=89), min_size=6, max_size=6),
    st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(2)]),
)
def test_rounded_arrays_are_never_further_apart_than_the_event_says(
    values: list[Fraction], moves: list[Fraction], step: Fraction
) -> None:
    grid = Grid.of(step)
    moved = [value + move for value, move in zip(values, moves, strict=False)]
    sensitivity = sum(abs(move) for move in moves[: len(values)]) or Fraction(1)
    event = Laplace(epsilon=1, sensitivity=sensitivity, grid=grid, dimension=len(values)).event
    apart = sum(abs(grid.steps(a) - grid.steps(b)) for a, b in zip(values, moved, strict=True))
    assert apart <= event.sensitivity


@every("epsilon", ["0.1", "1/3", "1e-6", 10])
@every("sensitivity", [1, "1/3", 10**15])
def test_rt_006_the_scale_is_the_exact_one(epsilon: Any, sensitivity: Any) -> None:
    event = Laplace(epsilon=epsilon, sensitivity=sensitivity).event
    steps = math.ceil(Fraction(sensitivity))
    assert event == events.DiscreteLaplace(scale=steps / Fraction(epsilon), sensitivity=steps)


def test_a_float_means_its_shortest_decimal() -> None:
    assert Laplace(epsilon=0.1, sensitivity=0.3, grid=0.125).epsilon == Fraction(1, 10)


def test_pmf_ratios_in_both_directions() -> None:
    """P(z) = (1 - a) / (1 + a) a^|z| in enclosures, from the event: within e^epsilon, and reached."""
    event = Laplace(epsilon=1, sensitivity=2).event
    digits = 60
    a = Enclosure.of(-1 / event.scale, digits).exp()
    powers = [Enclosure.of(1, digits)]
    for _ in range(30):
        powers.append(powers[-1] * a)
    most = Enclosure.of(1, digits).exp()
    ratios = [
        powers[abs(z)] / powers[abs(z - move)]
        for z in range(-20, 21)
        for move in range(-event.sensitivity, event.sensitivity + 1)
    ]
    assert all(ratio.low <= most.high for ratio in ratios)
    assert max(ratio.high for ratio in ratios) >= most.low


def test_test_vectors_of_the_law() -> None:
    law = Law(Laplace(epsilon=1, sensitivity=1).event.scale)
    assert float(law.pmf(np.array([0.0]))[0]) == pytest.approx(0.46211716, abs=5e-9)
    assert law.variance() == pytest.approx(1.841347, abs=5e-7)


@pytest.mark.parametrize(
    "mechanism", [Laplace(epsilon="1/17", sensitivity=1), DiscreteLaplace(scale=17, sensitivity=1)]
)
def test_the_noise_has_the_law_of_the_event(mechanism: Any, bits: SeededBits) -> None:
    draws = mechanism.release(np.full(100_000, 5), bits=bits) - 5
    assert p_value(draws, Law(mechanism.event.scale)) > FALSE_ALARM
    for factor in WRONG:
        assert p_value(draws, Law(mechanism.event.scale * factor)) < FALSE_ALARM


@pytest.mark.parametrize("value", [0, 1])
def test_rt_001_all_outputs_are_multiples_of_the_step(value: int, bits: SeededBits) -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1, grid=Fraction(1, 1024))
    outputs = [mechanism.release(value + 0.3, bits=bits) for _ in range(4000)]
    assert all((Fraction(output) * 1024).denominator == 1 for output in outputs)


# ------------------------------------------------------------------------------------------------------------ intervals
def test_the_interval_of_the_first_example() -> None:
    assert Laplace(epsilon=1, sensitivity=1).interval(100, confidence=0.95) == Interval(97, 103)
    assert Laplace(epsilon=1, sensitivity=1).interval(42.0) == Interval(39.0, 45.0)


@every("scale", [Fraction(1, 5), Fraction(1), Fraction(7, 2), Fraction(1000)])
@every("confidence", [Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), 1 - Fraction(1, 10**9)])
def test_the_interval_is_the_smallest_that_covers(scale: Fraction, confidence: Fraction) -> None:
    t = DiscreteLaplace(scale=scale, sensitivity=1).noise_steps(1 - confidence)

    def tail(k: int) -> float:
        return 2 * math.exp(-(k + 1) / scale) / (1 + math.exp(-1 / scale))

    assert tail(t) <= (1 - confidence) * (1 + 1e-12)
    assert t == 0 or tail(t - 1) > (1 - confidence) * (1 - 1e-12)


def test_intervals_cover_rounded_values_as_well() -> None:
    """A value just below a half is rounded down by half a step: without that half step 95 % would be missed."""
    mechanism = Laplace(epsilon=3, sensitivity=1)
    bits = SeededBits(3)
    value, runs = 0.4999, 2000
    covered = sum(
        estimate.low <= value <= estimate.high
        for estimate in (mechanism.estimate(value, bits=bits) for _ in range(runs))
    )
    plain = sum(-1 <= mechanism.release(value, bits=bits) - value <= 1 for _ in range(runs))
    assert mechanism.interval(0) == Interval(-1, 1)
    assert covered / runs >= 0.95
    assert plain / runs < covered / runs
    assert mechanism.estimate(3, bits=bits).interval.width == 2
    assert mechanism.estimate(3.0, bits=bits).interval.width == 3


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_coverage_is_at_least_nominal(confidence: float, bits: SeededBits) -> None:
    mechanism = Laplace(epsilon="1/3", sensitivity=2)
    value = np.arange(20_000)
    low, high = mechanism.interval(mechanism.release(value, bits=bits), confidence=confidence)
    covered = float(np.mean((low <= value) & (value <= high)))
    assert covered >= confidence - 6 * math.sqrt(confidence * (1 - confidence) / value.size)


# -------------------------------------------------------------------------------------------------- types, sizes, edges
def test_arrays_off_the_grid_need_their_dimension() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1)
    with pytest.raises(InvalidValue, match="dimension=3") as refused:
        mechanism.release([0.5, 1.0, 2.0], bits=NoBits())
    assert "dimension=1" in refused.value.condition
    assert Laplace(epsilon=1, sensitivity=1, dimension=3).release([0.5, 1.0, 2.0]).dtype.kind == "i"
    assert mechanism.release([1.0, 2.0, -3.0]).dtype.kind == "i"
    assert mechanism.release(np.array([Fraction(4), 7], dtype=object)).dtype.kind == "i"
    assert mechanism.release(np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(InvalidValue):
        Laplace(epsilon=1, sensitivity=1, grid=2).release([1, 2, 3], bits=NoBits())


def test_nothing_wraps_and_nothing_is_lost(bits: SeededBits) -> None:
    huge = Laplace(epsilon=1e-20, sensitivity=1).release(np.full(50, 2**61), bits=bits)
    assert huge.dtype == object
    assert max(abs(int(entry)) for entry in huge) > 2**63
    assert type(Laplace(epsilon=1e-20, sensitivity=1).release(2**200, bits=bits)) is int
    assert Laplace(epsilon=1000, sensitivity=1).release(10**400, bits=bits) == 10**400
    with pytest.raises(InvalidValue, match="2\\^62"):
        Laplace(epsilon=1, sensitivity=1).release(np.array([2**62]), bits=NoBits())


def test_intervals_stay_valid_where_floats_are_coarser_than_the_grid() -> None:
    """From 2^53 steps on the released float is itself rounded; the interval is wider by that."""
    mechanism = Laplace(epsilon=100, sensitivity=Fraction(1, 8), grid=Fraction(1, 8))
    value = Fraction(2**60 + 1, 8)
    for released in (mechanism.release(value), mechanism.release(np.array([value], dtype=object))[0]):
        low, high = mechanism.interval(released)
        assert Fraction(low) <= value <= Fraction(high)
    low, high = mechanism.interval(np.array([float(2**57)]))
    assert Fraction(low[0]) <= value <= Fraction(high[0])


def test_intervals_of_arrays_of_every_kind() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=1)
    for array in (np.array([[5, -7]], dtype=np.int16), np.array([[5, 2**60]]), np.zeros((0, 2), int)):
        low, high = mechanism.interval(array)
        assert low.shape == high.shape == array.shape
        assert ((array - low) == 3).all()
        assert ((high - array) == 3).all()
    huge = np.array([2**80, -(2**80)], dtype=object)
    assert mechanism.interval(huge).low.tolist() == [2**80 - 3, -(2**80) - 3]
    unsigned = mechanism.interval(np.array([1], dtype=np.uint64))
    assert (unsigned.low[0], unsigned.high[0]) == (-2, 4)
    rounded = mechanism.interval(np.array([5, -7]), rounded=True)
    assert rounded.low.tolist() == [1.5, -10.5]


def test_integers_only_for_the_mechanism_given_by_its_scale() -> None:
    mechanism = DiscreteLaplace(scale=2, sensitivity=1)
    assert mechanism.event == events.DiscreteLaplace(scale=2, sensitivity=1)
    for value in (1.0, Fraction(1), [1.0, 2.0], Fraction(1, 2)):
        with pytest.raises(InvalidValue, match="integer type"):
            mechanism.release(value, bits=NoBits())
    assert type(mechanism.release(np.int32(5))) is int


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 1e-200, "sensitivity": 1e200}, "sensitivity"),
        ({"epsilon": 1e200, "sensitivity": 1e-200, "grid": Grid(-900)}, "sensitivity"),
        ({"epsilon": 1, "sensitivity": 1, "grid": Grid(901)}, "grid"),
        ({"epsilon": 1, "sensitivity": 1, "dimension": 10**13}, "dimension"),
    ],
)
def test_absurd_combinations_are_refused(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Laplace(**parameters)
    assert refused.value.name == name


def test_rt_011_no_parameter_has_a_default_that_could_mean_no_noise() -> None:
    some: list[dict[str, Any]] = [{}, {"epsilon": 1}, {"sensitivity": 1}]
    for incomplete in some:
        with pytest.raises(TypeError):
            Laplace(**incomplete)
