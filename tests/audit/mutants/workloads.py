"""Mistakes in answers to many questions at once."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.mechanisms.strategy import IntegerStrategy
from discreet.noise import SeededBits
from discreet.noise.rounded_contrasts import rounded_contrasts
from discreet.privacy import Budget, Neighbours
from discreet.workload import Marginals, Prefixes, Workload, gaussian_residuals
from discreet.workload.gaussian_residuals import GaussianResiduals
from tests.audit.mutants.registry import Mutant, catcher
from tests.workload.dense import cell_moves, residual_matrix, residual_shape

SETS = [("a",), ("a", "b")]


def _worst(neighbours: Neighbours) -> tuple[float, float]:
    """mu^2 of the worst neighbours of a plan of tables, over the whole domain, and what was charged."""
    marginals = Marginals({"a": 2, "b": 3}, SETS)
    plan = marginals.plan(budget=Budget(rho=0.5), neighbours=neighbours)
    assert isinstance(plan.noise, GaussianResiduals)
    precision: Any = 0.0
    for part, sigma in plan.noise.sigmas.items():
        rows = residual_matrix(part, marginals.domain)
        precision = (
            precision + rows.T @ np.linalg.solve(residual_shape(part, marginals.domain), rows) / float(sigma) ** 2
        )
    moves = cell_moves(6, replaced=neighbours is Neighbours.REPLACE)
    return max(float(move @ precision @ move) for move in moves), accounting.epsilon(plan.event, 1e-5)


@catcher("brute force")
def tables_cost_what_their_event_says() -> None:
    for neighbours in Neighbours:
        worst, charged = _worst(neighbours)
        assert worst <= 1 + 1e-9
        assert charged <= accounting.epsilon(Marginals({"a": 2}, [()]).plan(budget=Budget(rho=0.5)).event, 1e-5) * 1.001


@catcher("brute force")
def residuals_have_noise_of_their_shape() -> None:
    """500 draws of a residual of three values: mean squares of whitened noise within 6 sd."""
    draws = [gaussian_residuals._release(np.zeros(2, dtype=np.int64), Fraction(5), SeededBits(s)) for s in range(500)]
    shape = 25 * np.array([[2.0, 1.0], [1.0, 2.0]])
    whitened = np.linalg.solve(np.linalg.cholesky(shape), np.array(draws).T)
    assert np.abs(whitened @ whitened.T / 500 - np.eye(2)).max() < 6 * (2 / 500) ** 0.5


@catcher("brute force")
def measurements_move_no_farther_than_charged() -> None:
    for budget, neighbours in (
        (Budget(rho=0.5), "add_remove"),
        (Budget(rho=0.5), "replace"),
        (Budget(epsilon=1), "replace"),
    ):
        plan = Workload(Prefixes(4)).plan(budget=budget, neighbours=neighbours)
        (mechanism, _), *_ = plan.measured
        rows = np.stack([mechanism.strategy.product(unit) for unit in np.eye(4, dtype=np.int64)], axis=1)
        moved = [rows @ move for move in cell_moves(4, replaced=neighbours == "replace")]
        if hasattr(mechanism.noise, "sigma"):
            assert max(float(move @ move) for move in moved) <= float(mechanism.noise.sigma) ** 2 * (1 + 1e-9)
        else:
            assert max(float(np.abs(move).sum()) for move in moved) <= float(mechanism.noise.scale) * (1 + 1e-9)


def _half_the_share(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gaussian_residuals, "share", lambda *_: 0.5)
    patch.setattr(gaussian_residuals, "_exact_share", lambda *_: Fraction(1, 4))


def _independent_noise(patch: pytest.MonkeyPatch) -> None:
    from_single = rounded_contrasts

    def independent(sigma: Fraction, offsets: Any, bits: Any) -> Any:
        single = [int(from_single(sigma, np.zeros(()), bits)) for _ in range(offsets.size)]
        return np.array(single).reshape(offsets.shape)

    patch.setattr(gaussian_residuals, "rounded_contrasts", independent)


def _swaps_are_additions(patch: pytest.MonkeyPatch) -> None:
    honest = gaussian_residuals._worst_swap
    patch.setattr(gaussian_residuals, "_worst_swap", lambda *given: honest(*given) * 3 / 4)


def _first_column(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IntegerStrategy, "l2_squared", lambda self, *_: int(np.sum(self.matrix[:, -1] ** 2)))


def _no_replacement(patch: pytest.MonkeyPatch) -> None:
    honest = IntegerStrategy.l1
    patch.setattr(IntegerStrategy, "l1", lambda self, *_: honest(self))


MUTANTS = [
    Mutant(
        "a residual's share of the cost forgotten",
        "Every residual is charged a quarter of 1 / sigma^2, whatever its attributes.",
        _half_the_share,
        tables_cost_what_their_event_says,
    ),
    Mutant(
        "a replaced unit counted as an added one",
        "A unit that moves from one cell of a table to another is charged little more than one that is removed.",
        _swaps_are_additions,
        tables_cost_what_their_event_says,
    ),
    Mutant(
        "independent noise on residuals",
        "The entries of a residual get independent noise, but are charged as if it were correlated.",
        _independent_noise,
        residuals_have_noise_of_their_shape,
    ),
    Mutant(
        "the sensitivity of one column",
        "The noise of a strategy is calibrated for its last column, which is not the longest.",
        _first_column,
        measurements_move_no_farther_than_charged,
    ),
    Mutant(
        "distances of columns forgotten",
        "Under replacement, sensitivity is the largest norm of a column, not the largest distance of two columns.",
        _no_replacement,
        measurements_move_no_farther_than_charged,
    ),
]
