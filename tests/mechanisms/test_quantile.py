"""Quantiles: sensitivity and exact ratios by brute force under both relations, published numbers, ties, refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid
from discreet.mechanisms.quantile import Quantile
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.statistical.laws import FALSE_ALARM, CategoricalLaw, p_value

Data = tuple[int, ...]
SHARES = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(1)]
B = Fraction(3, 5)  # e^-rate
DATA = [1, 4, 5, 7, 9]


def build(quantile: Fraction, high: int, relation: Neighbours, kind: type[Quantile] = Quantile) -> Quantile:
    return kind(epsilon=1, quantile=quantile, bounds=(0, high), grid=Grid.integers(), neighbours=relation)


def losses(mechanism: Quantile, data: Data) -> list[int]:
    """The loss of every point, in units of 1 / denominator, from the runs that the mechanism draws from."""
    first, last = mechanism.ends
    found: list[int | None] = [None] * (last - first + 1)
    for start, size, loss in zip(*(column.tolist() for column in mechanism.cells(list(data))), strict=True):
        for point in range(start, start + size):
            assert found[point - first] is None, "a point in two runs"
            found[point - first] = loss
    assert None not in found
    return [loss for loss in found if loss is not None]


def neighbours(relation: Neighbours, high: int, most: int) -> Iterator[tuple[Data, Data]]:
    for size in range(most):
        for data in combinations_with_replacement(range(high + 1), size):
            for value in range(high + 1):
                if relation is Neighbours.ADD_REMOVE:
                    yield data, (*data, value)
                else:  # the smaller value first: the judge looks both ways
                    for old in range(value):
                        yield (*data, old), (*data, value)


def judge(mechanism: Quantile, high: int, most: int) -> None:
    """For every point and all neighbours: the loss moves by at most epsilon / (2 rate), and P by at most e^epsilon."""
    power = mechanism.epsilon / mechanism.rate
    assert power.denominator == 1
    known: dict[Data, tuple[list[int], list[Fraction]]] = {}

    def law(data: Data) -> tuple[list[int], list[Fraction]]:
        key = tuple(sorted(data))
        if key not in known:
            found = losses(mechanism, key)
            weights = [B**loss for loss in found]
            known[key] = found, [weight / sum(weights) for weight in weights]
        return known[key]

    limit = B ** -int(power)
    for data, other in neighbours(mechanism.neighbours, high, most):
        (first, p), (second, q) = law(data), law(other)
        assert max(abs(a - b) for a, b in zip(first, second, strict=True)) * 2 <= power, (data, other)
        ratios = [a / b for a, b in zip(p, q, strict=True)]
        assert max(ratios) <= limit, (data, other)
        assert min(ratios) * limit >= 1, (data, other)
        assert max(ratios) <= limit * min(ratios), (data, other)  # bounded range


@pytest.mark.sampled(4)
@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("quantile", SHARES)
def test_no_point_moves_by_more_than_it_may(quantile: Fraction, relation: Neighbours) -> None:
    judge(build(quantile, 4, relation), high=4, most=4)


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("quantile", SHARES)
def test_the_same_on_eleven_points(quantile: Fraction, relation: Neighbours) -> None:
    judge(build(quantile, 10, relation), high=10, most=5 if relation is Neighbours.ADD_REMOVE else 4)


@dataclass(frozen=True, slots=True, init=False)
class SmallerShare(Quantile):
    """Takes min(q, 1 - q) for the sensitivity."""

    @property
    def rate(self) -> Fraction:
        top, bottom = self.quantile.numerator, self.quantile.denominator
        return self.epsilon / (2 * min(top, bottom - top))


@dataclass(frozen=True, slots=True, init=False)
class AddRemoveAlways(Quantile):
    """Uses the smaller sensitivity of ADD_REMOVE under REPLACE too."""

    @property
    def rate(self) -> Fraction:
        top, bottom = self.quantile.numerator, self.quantile.denominator
        return self.epsilon / (2 * max(top, bottom - top))


@dataclass(frozen=True, slots=True, init=False)
class FactorTwoDropped(Quantile):
    @property
    def rate(self) -> Fraction:
        return 2 * Quantile.rate.__get__(self)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "relation"),
    [
        (SmallerShare, Neighbours.ADD_REMOVE),
        (AddRemoveAlways, Neighbours.REPLACE),
        (FactorTwoDropped, Neighbours.ADD_REMOVE),
        (FactorTwoDropped, Neighbours.REPLACE),
    ],
)
def test_mutants_are_killed(kind: type[Quantile], relation: Neighbours) -> None:
    with pytest.raises(AssertionError):
        judge(build(Fraction(1, 4), 4, relation, kind), high=4, most=4)


def test_losses_agree_with_their_definition() -> None:
    mechanism = build(Fraction(1, 3), 6, Neighbours.ADD_REMOVE)
    for data in combinations_with_replacement(range(7), 4):
        wanted = Fraction(4, 3)
        for point, loss in enumerate(losses(mechanism, data)):
            below, upto = sum(x < point for x in data), sum(x <= point for x in data)
            assert loss == 3 * max(Fraction(0), below - wanted, wanted - upto)
        assert min(losses(mechanism, data)) == 0


# ----------------------------------------------------------------------------------- published numbers
@pytest.mark.parametrize(
    ("relation", "published"),
    [
        (Neighbours.REPLACE, (0.054352, 0.268836, 0.147745, 0.295490, 0.179224, 0.054352)),
        (Neighbours.ADD_REMOVE, (0.026484, 0.215973, 0.195692, 0.391384, 0.143982, 0.026484)),
    ],
)
def test_published_interval_probabilities(relation: Neighbours, published: tuple[float, ...]) -> None:
    fine = Quantile(epsilon=1, quantile=0.5, bounds=(0, 10), grid=Grid(-24), neighbours=relation)
    starts, sizes, loss = fine.cells(DATA)
    weights = sizes * np.exp(-float(fine.rate) * loss)
    chances = weights / weights.sum()
    assert chances[:6] == pytest.approx(published, abs=1e-6)
    assert chances[6:].sum() < 1e-6  # the five values themselves: one point each
    assert starts[0] == 0
    assert sizes.sum() == 10 * 2**24 + 1


# --------------------------------------------------------------------------------- the law of the code
@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("data", [DATA, [3, 3, 3, 8], [], [0, 10, 10]])
def test_the_code_draws_the_law(data: list[int], bits: SeededBits) -> None:
    mechanism = Quantile(epsilon=2, quantile=0.4, bounds=(0, 10), grid=Grid.integers())
    draws = [mechanism.release(data, bits=bits) for _ in range(3000)]
    rate = float(mechanism.rate)

    def law(factor: float) -> CategoricalLaw:
        return CategoricalLaw(tuple(math.exp(-rate * factor * loss) for loss in losses(mechanism, tuple(data))))

    assert p_value(np.array(draws), law(1)) > FALSE_ALARM
    assert not data or p_value(np.array(draws), law(2.5)) < FALSE_ALARM


@pytest.mark.slow
def test_rates_30_percent_off_are_seen(bits: SeededBits) -> None:
    mechanism = Quantile(epsilon=1, quantile=0.5, bounds=(0, 1), grid=Grid.integers())
    draws = [mechanism.release([1, 1], bits=bits) for _ in range(6000)]  # weights e^-1 and 1
    true = losses(mechanism, (1, 1))

    def law(factor: float) -> CategoricalLaw:
        return CategoricalLaw(tuple(math.exp(-float(mechanism.rate) * factor * loss) for loss in true))

    assert p_value(np.array(draws), law(1)) > FALSE_ALARM
    for wrong in (1.3, 0.7):
        assert p_value(np.array(draws), law(wrong)) < FALSE_ALARM


def test_tied_values_are_found(bits: SeededBits) -> None:
    """A rank that only counts values below a point would draw uniformly here."""
    mechanism = Quantile(epsilon=1, quantile=0.5, bounds=(0, 120), grid=Grid.integers())
    assert all(mechanism.release([40] * 200, bits=bits) == 40 for _ in range(50))


def test_values_are_clamped_and_rounded(bits: SeededBits) -> None:
    mechanism = Quantile(epsilon=500, quantile=0.5, bounds=(0, 10), grid=Grid(-1))
    wild = [-math.inf, -1e300, 3.3, math.inf, 1e300]
    assert mechanism.release(wild, bits=bits) == 3.5
    assert mechanism.release([Fraction(10, 3)] * 2 + [10**40, -(10**40), math.inf], bits=bits) == 3.5
    assert mechanism.release(np.array([2, 2, 250], dtype=np.uint8), bits=bits) == 2.0
    assert mechanism.release(np.array([2**63, 2**64 - 1], dtype=np.uint64), bits=bits) == 10.0


def test_points_lie_on_the_grid_between_the_bounds(bits: SeededBits) -> None:
    mechanism = Quantile(epsilon=0.1, quantile=0.5, bounds=("0.3", "2.7"), grid=Grid(-2))
    points = {mechanism.release([], bits=bits) for _ in range(400)}
    assert points == {0.5 + k / 4 for k in range(9)}
    default = Quantile(epsilon=1, quantile=0.5, bounds=(0, 100))
    assert default.ends[1] - default.ends[0] >= 2**20
    assert default.event == events.BoundedRange(1)


# ------------------------------------------------------------------------------------------- intervals
@pytest.mark.parametrize("relation", list(Neighbours))
def test_the_rank_is_inside_the_interval_often_enough(relation: Neighbours) -> None:
    mechanism = Quantile(epsilon=1, quantile=0.25, bounds=(0, 100), grid=Grid.integers(), neighbours=relation)
    data = tuple(range(0, 100, 1)) + (50,) * 20
    found = losses(mechanism, data)
    weights = np.exp(-float(mechanism.rate) * np.array(found))
    for confidence in (0.5, 0.9, 0.99):
        most = mechanism.interval(0, confidence=confidence).high
        inside = weights[np.array(found) / 4 <= most].sum() / weights.sum()
        assert inside >= confidence


def test_an_estimate_has_the_bounds_for_ends(bits: SeededBits) -> None:
    estimate = Quantile(epsilon=1, quantile=0.5, bounds=(0, 8)).estimate(DATA, bits=bits)
    assert (estimate.low, estimate.high, estimate.private) == (0.0, 8.0, False)


# -------------------------------------------------------------------------------------------- refusals
@every(
    "bounds",
    [None, (0, 0), (1, 0), (0, math.inf), (-math.inf, 0), (0, math.nan), (0,), 5, "01", (0, True), (0, "x"), (0, 1, 2)],
)
def test_bad_bounds_are_refused(bounds: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Quantile(epsilon=1, quantile=0.5, bounds=bounds)  # type: ignore[arg-type]
    assert caught.value.name == "bounds"


def test_missing_bounds_are_refused() -> None:
    with pytest.raises(TypeError):
        Quantile(epsilon=1, quantile=0.5)  # type: ignore[call-arg]


@every(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", -1),
        ("epsilon", math.nan),
        ("epsilon", True),
        ("quantile", -0.1),
        ("quantile", 1.1),
        ("quantile", math.nan),
        ("quantile", True),
        ("quantile", "1/12345678901"),
        ("grid", 3),
        ("grid", 2),
        ("grid", Grid(-62)),
        ("neighbours", "swap"),
    ],
)
def test_bad_parameters_are_refused(name: str, value: object) -> None:
    good: dict[str, object] = {"epsilon": 1, "quantile": 0.5, "bounds": (0, 1)}
    with pytest.raises(InvalidParameter) as caught:
        Quantile(**(good | {name: value}))  # type: ignore[arg-type]
    assert caught.value.name == name


@pytest.mark.parametrize(
    "data", [[1, math.nan], 3, [[1, 2]], ["a"], [True], [None], [Fraction(1), math.nan], np.array(["x"])]
)
def test_bad_data_are_refused_before_a_draw(data: object) -> None:
    with pytest.raises(InvalidValue):
        Quantile(epsilon=1, quantile=0.5, bounds=(0, 1)).release(data, bits=NoBits())


def test_the_ends_of_an_estimate_are_the_bounds(bits: SeededBits) -> None:
    """They need not lie on the grid, and values may."""
    found = Quantile(epsilon=1, quantile=1, bounds=("0.1", "7.3")).estimate([99.0] * 50, bits=bits)
    assert Fraction(found.low) <= Fraction("0.1")
    assert Fraction("7.3") <= Fraction(found.high) < Fraction("7.3000001")
    assert list(Quantile(epsilon=1, quantile=1, bounds=(0, 7)).estimate([9], bits=bits).interval) == [0, 7]
