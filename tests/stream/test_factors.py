"""Factors: their closed forms, their exactness, and how far one unit moves what they measure, by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.mechanisms.strategy import inverse_series
from discreet.noise import SeededBits, uniform_below
from discreet.stream.bounded_memory import BoundedMemoryFactorization, bounded_memory_factor
from discreet.stream.factor import Participation, SumFactorization, earliest_move
from discreet.stream.toeplitz import (
    LARGEST_VALUE,
    banded_factor,
    exact_product,
    square_root_factor,
    square_root_series,
    window_factor,
    window_series,
)
from discreet.stream.triangular import optimal_running_sum, optimal_window
from tests.cases import every

ONCE = Participation()
SHORT: list[tuple[str, SumFactorization]] = [
    ("square root", square_root_factor(6)),
    ("window", window_factor(3, 6)),
    ("bounded memory", bounded_memory_factor(6)),
    ("banded", banded_factor(3, 6)),
    ("optimal", optimal_running_sum(6)),
]


def variances(factor: SumFactorization, periods: int | None = None) -> list[float]:
    """The variance of each sum for noise of the sensitivity's size."""
    squared = float(factor.sensitivity(ONCE)) ** 2
    gains = itertools.islice(factor.gains(), periods)
    return [squared * gain.squared for gain in gains]


def columns(factor: SumFactorization) -> list[list[Fraction]]:
    """The columns of C, by impulses."""
    found = []
    for place in range(factor.horizon):
        encoder = factor.encoder()
        found.append([Fraction(encoder.step(int(t == place)), 1 << factor.bits) for t in range(factor.horizon)])
    return found


# n, largest and mean variance of the square root (Fichtenberger, Henzinger, Upadhyay 2023), least mean variance
TABLE = [(8, 2.952827, 2.5149, 2.233272), (64, 5.706595, 4.9715, 4.409397), (365, 8.667451, 7.7369, 6.939352)]


@every(("horizon", "largest", "mean", "least"), [*TABLE, (1024, 10.709611, 9.6708, None)])
def test_running_sums_have_the_variances_of_the_literature(
    horizon: int, largest: float, mean: float, least: float | None
) -> None:
    found = variances(square_root_factor(horizon))
    assert max(found) == pytest.approx(largest, abs=1e-6)
    assert np.mean(found) == pytest.approx(mean, abs=1e-4)
    if least is not None and horizon < 100:  # the larger ones take a second
        assert np.mean(variances(optimal_running_sum(horizon))) == pytest.approx(least, abs=2e-6 * least)


@pytest.mark.slow
def test_the_optimal_factor_of_a_year() -> None:
    assert np.mean(variances(optimal_running_sum(365))) == pytest.approx(6.939352, abs=1e-5)
    assert np.mean(variances(optimal_window(7, 365))) == pytest.approx(3.1414, abs=1e-4)


def test_windows_have_the_variances_of_the_literature() -> None:
    found = variances(window_factor(7, 365))
    assert max(found) == pytest.approx(3.1624, abs=5e-5)
    assert max(found) < 3.436
    assert max(variances(banded_factor(7, 365))) < 3.436


def test_series_are_square_roots() -> None:
    assert np.convolve(square_root_series(50), square_root_series(50))[:50] == pytest.approx(np.ones(50), abs=1e-12)
    root = window_series(7, 50)
    assert np.convolve(root, root)[:50] == pytest.approx([1.0] * 7 + [0.0] * 43, abs=1e-12)
    assert np.convolve(root, inverse_series(root))[:50] == pytest.approx([1.0] + [0.0] * 49, abs=1e-12)


@every("horizon", [1, 2, 8, 100, 1024, 5000])
def test_bounded_memory_is_a_thousandth_worse_than_the_square_root(horizon: int) -> None:
    assert max(variances(bounded_memory_factor(horizon))) < 1.0025 * max(variances(square_root_factor(horizon)))


def test_an_unknown_horizon_costs_at_most_half_the_error_more() -> None:
    found = variances(bounded_memory_factor(None), 3000)
    for t in (8, 64, 365, 1024, 3000):
        assert found[t - 1] < 1.5**2 * float(np.sum(square_root_series(t) ** 2)) ** 2


def test_gains_in_blocks_are_those_of_the_decoder() -> None:
    factor = bounded_memory_factor(150)
    blocks = list(itertools.islice(factor.gains(), 150))
    plain = list(SumFactorization.gains(factor))
    assert np.array(blocks) == pytest.approx(np.array(plain), rel=1e-10)


def test_a_million_periods_are_within_five_percent() -> None:
    factor = bounded_memory_factor(10**6)
    exact = np.cumsum(square_root_series(10**6) ** 2)
    assert float(factor.sensitivity(ONCE)) ** 2 == pytest.approx(exact[-1], rel=0.02)
    gain = next(itertools.islice(factor.gains(), 20_000 - 1, None)).squared
    assert gain == pytest.approx(exact[20_000 - 1], rel=0.02)


@every(("name", "factor"), SHORT)
def test_sums_come_back(name: str, factor: SumFactorization) -> None:
    """Without noise the decoder returns the sums."""
    values = [5, -3, 0, 1000, 7, -2]
    encoder, decoder = factor.encoder(), factor.decoder()
    window = 3 if name in ("window", "banded") else 6
    for t, value in enumerate(values):
        found = decoder.step(encoder.step(value) / (1 << factor.bits))
        assert found == pytest.approx(sum(values[max(0, t + 1 - window) : t + 1]), abs=1e-6)


@every("factor", [factor for _, factor in SHORT])
def test_measurements_are_exact(factor: SumFactorization) -> None:
    """C x equals what its columns give, in integers: only bounded memory rounds, by less than its proof says."""
    values = [LARGEST_VALUE, -LARGEST_VALUE, 1, -LARGEST_VALUE, 3, LARGEST_VALUE]
    encoder, parts = factor.encoder(), columns(factor)
    for t, value in enumerate(values):
        exact = sum(column[t] * x for column, x in zip(parts, values, strict=True))
        slack = Fraction(6, 1 << 96) * LARGEST_VALUE if isinstance(factor, BoundedMemoryFactorization) else 0
        assert abs(Fraction(encoder.step(value), 1 << factor.bits) - exact) <= slack


def test_products_wrap_and_are_exact(bits: SeededBits) -> None:
    for length in (1, 7, 300):
        weights = np.array([uniform_below(1 << 27, bits=bits) - (1 << 26) for _ in range(length)])
        values = np.array([uniform_below(1 << 53, bits=bits) - (1 << 52) for _ in range(length)])
        exact = sum(w * v for w, v in zip(weights.tolist(), values.tolist(), strict=True))
        assert exact_product(weights, values, weights.astype(float), values.astype(float)) == exact


def patterns(horizon: int, unit: Participation) -> Iterator[tuple[int, ...]]:
    """All sets of periods that a unit may be in."""
    for count in range(1, unit.times + 1):
        for periods in itertools.combinations(range(horizon), count):
            if all(b - a >= unit.apart for a, b in itertools.pairwise(periods)):
                yield periods


def worst_move(factor: SumFactorization, unit: Participation) -> float:
    """The farthest that C x moves, over all periods and directions of a unit: corners of a convex set."""
    parts = np.array(columns(factor), dtype=float)
    return max(
        float(np.linalg.norm(np.array(signs) @ parts[list(periods)]))
        for periods in patterns(factor.horizon, unit)
        for signs in itertools.product((-1, 1), repeat=len(periods))
    )


UNITS = [ONCE, Participation(2), Participation(2, 3), Participation(3, 2), Participation(6)]


@every(("case", "unit"), itertools.product(SHORT[:4], UNITS))
def test_no_unit_moves_measurements_farther_than_declared(
    case: tuple[str, SumFactorization], unit: Participation
) -> None:
    name, factor = case
    declared, found = float(factor.sensitivity(unit)), worst_move(factor, unit)
    assert found <= declared * (1 + 1e-12)
    if name != "window" or unit.times == 1:  # signed and increasing entries are bounded by their envelope
        assert found == pytest.approx(declared, rel=1e-9)
    assert declared <= found * 1.35


def test_periods_far_apart_take_no_memory() -> None:
    endless = banded_factor(7, 1 << 40)
    once = float(endless.sensitivity(ONCE))
    assert float(endless.sensitivity(Participation(9, 10**9))) == pytest.approx(3 * once)
    assert float(endless.sensitivity(Participation(9, 7))) == pytest.approx(3 * once)
    assert float(endless.sensitivity(Participation(9, 6))) > 3 * once
    with pytest.raises(InvalidParameter, match="shorter"):
        banded_factor(60_000, 1 << 40).sensitivity(Participation(10**6, 59_999))


def test_the_optimal_factor_is_for_one_period() -> None:
    factor = optimal_running_sum(6)
    assert worst_move(factor, ONCE) == pytest.approx(float(factor.sensitivity(ONCE)), rel=1e-12)
    with pytest.raises(InvalidParameter, match="square root"):
        factor.sensitivity(Participation(2))


def test_rounded_states_stay_within_the_declared_sensitivity(bits: SeededBits) -> None:
    """Neighbouring streams through the rounded recurrence itself, with values that leave no bit of the states alone."""
    factor = bounded_memory_factor(40)
    for unit in (ONCE, Participation(3, 5)):
        bound = factor.sensitivity(unit) ** 2
        for _ in range(20):
            values = [uniform_below(1 << 40, bits=bits) for _ in range(40)]
            moved = list(values)
            for period in unit.earliest(40):
                moved[period] += 1
            one, other = factor.encoder(), factor.encoder()
            squares = [(one.step(a) - other.step(b)) ** 2 for a, b in zip(values, moved, strict=True)]
            assert Fraction(sum(squares), 1 << (2 * factor.bits)) <= bound


def test_geometric_sums_equal_columns() -> None:
    """The closed form of the norm equals the norm of the columns, for several periods as well."""
    for horizon, unit in ((30, ONCE), (30, Participation(4, 3)), (200, Participation(3, 50))):
        factor = bounded_memory_factor(horizon)
        encoder = factor.encoder()
        column = [encoder.step(int(t == 0)) >> 130 for t in range(horizon)]
        exact = math.sqrt(earliest_move(column, unit, horizon)) / 2.0 ** (factor.bits - 130)
        assert float(factor.sensitivity(unit)) == pytest.approx(exact, rel=1e-8)
        assert float(factor.sensitivity(unit)) > exact


def test_no_lower_bound_is_beaten() -> None:
    """Running sums have no smaller largest variance than (ln n / pi)^2 and no smaller mean than the optimum."""
    for horizon in (8, 64):
        least = np.mean(variances(optimal_running_sum(horizon)))
        for factor in (square_root_factor(horizon), bounded_memory_factor(horizon)):
            found = variances(factor)
            assert np.mean(found) > least * (1 - 1e-6)
            assert max(found) > (math.log(horizon) / math.pi) ** 2
