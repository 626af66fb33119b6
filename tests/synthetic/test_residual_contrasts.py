"""Residuals in whole contrasts: against projections by hand, and one unit's move by brute force on all its rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit.queries.mechanism_recorder import MechanismRecorder, watch_mechanisms
from discreet.errors import InsufficientBudget, InternalError, InvalidParameter
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from discreet.synthetic import measurement_log
from discreet.synthetic.coded_rows import CodedRows
from discreet.synthetic.measurement_log import MeasurementLog
from discreet.synthetic.residual_contrasts import (
    LARGEST,
    contrast_factors,
    contrasts,
    residual_move,
    residual_of,
    scaled_contrasts,
)

SIZES = {"a": 2, "b": 3, "c": 4}
PAIRS = {("a", "b"): 2, ("a", "c"): 3, ("b", "c"): 5}
RELATIONS = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]


def projection(size: int) -> Any:
    return np.eye(size) - 1 / size


def coded(*lines: tuple[int, ...]) -> CodedRows:
    return CodedRows(SIZES, np.array(lines, dtype=np.int64).reshape(-1, 3))


def inputs_of(relation: Neighbours, rows: CodedRows, limit: int = 1) -> tuple[Any, Fraction]:
    """What is handed to the mechanism, and the sensitivity that it was told."""
    seen = MechanismRecorder(SeededBits(1))
    log = MeasurementLog(rho=1, neighbours=relation, rows_per_unit=limit, bits=SeededBits(1))
    with watch_mechanisms(seen):
        log.residuals(rows, PAIRS, rho=1)
    (made,) = seen.made
    return np.asarray(made.inputs[0]), made.mechanism.sensitivity


def largest_move(relation: Neighbours, limit: int) -> tuple[int, Fraction]:
    """The largest square of a move by one unit of up to `limit` rows, over all it can have, and the squared promise."""
    places = [(), *itertools.product(*(range(size) for size in SIZES.values()))]
    exact = {place: inputs_of(relation, coded(*([place] if place else [])), limit) for place in places}
    promised = exact[()][1] ** 2
    mine = [
        sum(exact[place][0] for place in chosen) for chosen in itertools.combinations_with_replacement(places, limit)
    ]
    none = [exact[()][0] * 0]
    others = mine if relation is Neighbours.REPLACE else none
    return max(int(((one - other) ** 2).sum()) for one in mine for other in others), promised


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (7, 2), (1, 4)])
def test_contrasts_are_whole_and_hold_the_residual(shape: tuple[int, int]) -> None:
    counts = np.arange(math.prod(shape)).reshape(shape) ** 3 % 17
    found = contrasts(counts)
    assert found.dtype == np.int64
    assert found.shape == (shape[0] - 1, shape[1] - 1)
    factors = contrast_factors(shape, Fraction(2**60))
    again = residual_of(scaled_contrasts(counts, factors).astype(float), factors)
    np.testing.assert_allclose(again, projection(shape[0]) @ counts @ projection(shape[1]), atol=1e-9)


def test_independent_noise_on_contrasts_is_that_of_a_projection() -> None:
    """Unit noise on each scaled contrast has the covariance P x P in cells, up to the rounding of factors."""
    shape = (3, 4)
    factors = contrast_factors(shape, Fraction(2**40))
    lines = []
    for place in range(factors.size):
        unit = np.zeros(factors.size)
        unit[place] = 2.0**20
        lines.append(residual_of(unit.reshape(factors.shape), factors).reshape(-1))
    made = np.array(lines)
    np.testing.assert_allclose(made.T @ made, np.kron(projection(3), projection(4)), atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("limit", [1, 2])
def test_one_unit_moves_all_residuals_together_by_no_more_than_promised(relation: Neighbours, limit: int) -> None:
    moved, promised = largest_move(relation, limit)
    assert moved <= promised
    wasted = 0.99 if relation is Neighbours.ADD_REMOVE else 0.7  # which row is furthest differs from pair to pair
    assert moved > wasted * promised


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_move_that_was_taken_too_small_is_noticed(relation: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {Neighbours.ADD_REMOVE: Fraction(9, 10), Neighbours.REPLACE: Fraction(7, 10)}[relation]
    monkeypatch.setattr(measurement_log, "residual_move", lambda *args: wrong * residual_move(*args))
    moved, promised = largest_move(relation, 1)
    assert moved > promised


def test_the_other_relation_needs_more_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement_log, "residual_move", lambda shape, _: residual_move(shape, Neighbours.ADD_REMOVE))
    moved, promised = largest_move(Neighbours.REPLACE, 1)
    assert moved > promised


def test_the_move_of_one_pair_by_brute_force() -> None:
    for shape in [(2, 2), (2, 3), (4, 3), (5, 5)]:
        both = np.kron(projection(shape[0]), projection(shape[1]))
        one = max(float(line @ line) for line in both)
        two = max(float((p - q) @ (p - q)) for p in both for q in both)
        assert one == pytest.approx(float(residual_move(shape, Neighbours.ADD_REMOVE)))
        assert two == pytest.approx(float(residual_move(shape, Neighbours.REPLACE)))


def test_noise_is_as_large_as_it_is_said_to_be() -> None:
    """Of 30 x 30 cells: the sum of squares over sigma^2 is chi-squared with 841 degrees, 841 +- 5 sqrt(2 841)."""
    sizes = {"a": 30, "b": 30, "c": 2}
    rows = CodedRows(sizes, np.zeros((1000, 3), dtype=np.int64))
    log = MeasurementLog(rho="0.1", bits=SeededBits(5))
    first, second = log.residuals(rows, {("a", "b"): 3, ("a", "c"): 1}, rho="0.1")
    exact = projection(30) @ rows.counts(("a", "b")) @ projection(30)
    found = float(((first.values - exact) ** 2).sum()) / first.sigma**2
    spread = 5 * math.sqrt(2 * 841)
    assert abs(found - 841) < spread
    assert abs(found / 1.3**2 - 841) > spread
    assert first.sigma**2 == pytest.approx((29 / 30) ** 2 / (0.75 * 0.2), rel=1e-6)  # p / (2 share rho)
    assert second.sigma**2 == pytest.approx((29 / 30) * 0.5 / (0.25 * 0.2), rel=1e-6)
    assert first.residual
    assert log.remaining == 0
    assert [charge.about for charge in log.charges] == [("pairs",)]


def test_huge_counts_are_clipped_and_nothing_wraps_around() -> None:
    counts = np.array([[1 << 50, 0], [0, 1 << 50]])
    factors = contrast_factors((2, 2), Fraction(2**60))
    assert scaled_contrasts(counts, factors)[0, 0] == LARGEST // int(factors[0, 0]) * int(factors[0, 0])


def test_refusals_are_about_public_facts_and_nothing_is_drawn() -> None:
    log = MeasurementLog(rho="0.1", bits=SeededBits(1))
    rows = CodedRows({"a": 2, "b": 1}, np.zeros((3, 2), dtype=np.int64))
    seen = MechanismRecorder()
    with watch_mechanisms(seen):
        with pytest.raises(InvalidParameter):
            log.residuals(rows, {("a", "b"): 1}, rho="0.1")
        with pytest.raises(InsufficientBudget):
            log.residuals(coded((0, 0, 0)), PAIRS, rho="0.2")
    assert not seen.made
    assert log.remaining == Fraction(1, 10)


def test_draws_for_another_price_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Gaussian.for_rho
    monkeypatch.setattr(Gaussian, "for_rho", lambda *, rho, **more: honest(rho=2 * rho, **more))
    with pytest.raises(InternalError):
        MeasurementLog(rho=1, bits=SeededBits(1)).residuals(coded((0, 0, 0)), PAIRS, rho=1)
