"""Priors of pairs: likelihood, shrinkage by a fit, and gains, against what can be worked out by hand or by drawing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.synthetic.inference.estimation import fit
from discreet.synthetic.inference.factors import Table
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal, residual
from discreet.synthetic.pair_shrinkage import PairPrior, pair_prior

CHECKED = np.array([[1.0, -1.0], [-1.0, 1.0]])


def expected(shape: tuple[int, int], rows: float) -> np.ndarray:
    """What independent columns expect whose values are ever rarer."""
    shares = [0.6 ** np.arange(size) for size in shape]
    table = np.multiply.outer(*(share / share.sum() for share in shares))
    return np.asarray(rows * table)


def drawn(seed: int, shape: tuple[int, int], strength: float, sigma: float) -> tuple[NoisyMarginal, np.ndarray]:
    """A residual whose cells differ by a share of what they expect, with noise."""
    bits, rows = SeededBits(seed), expected(shape, 20_000.0)
    true = residual(strength * rows * normals(shape, bits=bits))
    noise = residual(sigma * normals(shape, bits=bits))
    return NoisyMarginal(("a", "b"), true + noise, sigma, residual=True), true


def test_noise_alone_is_no_evidence_and_signal_is() -> None:
    # Without signal the deviance of the best of a two-number family is about a chi-square of 2 degrees, cut at 0: a
    # mean above 10 of 50 draws would be 50 deviations off.
    none = [pair_prior(drawn(seed, (8, 6), 0.0, 20.0)[0], expected((8, 6), 20_000.0)).evidence for seed in range(50)]
    some = [pair_prior(drawn(seed, (8, 6), 0.5, 20.0)[0], expected((8, 6), 20_000.0)).evidence for seed in range(50)]
    assert np.mean(none) < 10
    assert min(some) > 100


def test_what_the_prior_believes_is_closer_to_the_truth_than_what_was_released() -> None:
    for seed in range(20):
        pair, true = drawn(seed, (20, 15), 0.3, 40.0)
        prior = pair_prior(pair, expected((20, 15), 20_000.0))
        believed = prior.variances / (prior.variances + prior.noise) * pair.values
        assert np.abs(believed - true).sum() < 0.85 * np.abs(pair.values - true).sum()


def test_the_gain_is_the_mean_of_what_following_saves() -> None:
    # By drawing from the law that the prior states: 400,000 draws of 4 cells have an error of about 0.1 %.
    prior = PairPrior(noise=9.0, variances=np.full((2, 2), 16.0), ridge=np.ones((2, 2)), evidence=1.0)
    released = 5.0 * CHECKED
    mean, variance = 16 / 25 * released, 16 * 9 / 25
    draws = mean + math.sqrt(variance) * normals((400_000, 2, 2), bits=SeededBits(1))
    saved = np.abs(draws).sum(axis=(1, 2)).mean() - np.abs(draws - mean).sum(axis=(1, 2)).mean()
    assert prior.gain(released) == pytest.approx(saved, rel=0.01)
    assert prior.gain(np.zeros((2, 2))) == 0
    assert prior.gain(0.5 * released) < prior.gain(released)


def test_a_fit_with_the_ridge_shrinks_as_much() -> None:
    # Near independence, R = 3 e gives 1 / (1 + 3) of the residual; the next order of the expansion is about 2 %.
    columns = [NoisyMarginal((name,), np.array([500.0, 500.0]), 0.01) for name in "ab"]
    pair = NoisyMarginal(("a", "b"), 40.0 * CHECKED, 1.0, residual=True)
    ridge = np.full((2, 2), 3 * 250.0)
    found = fit({"a": 2, "b": 2}, [*columns, pair], total=1000.0, ridges={("a", "b"): ridge}, tolerance=1e-8)
    assert residual(found.counts(("a", "b"))) == pytest.approx(10.0 * CHECKED, rel=0.02)
    turned = fit({"b": 2, "a": 2}, [*columns, pair], total=1000.0, ridges={("b", "a"): ridge.T}, tolerance=1e-8)
    assert turned.counts(("a", "b")) == pytest.approx(found.counts(("a", "b")), abs=1e-3)


def test_ridges_that_differ_by_cell_are_solved_to_the_gap_that_is_told() -> None:
    # The gap bounds the excess of a convex problem: a fit that stops early is no further above a precise one than it.
    rows = expected((6, 5), 5000.0)
    columns = [
        NoisyMarginal(("a",), rows.sum(axis=1), 5.0),
        NoisyMarginal(("b",), rows.sum(axis=0), 5.0),
    ]
    pair = NoisyMarginal(("a", "b"), residual(0.2 * rows * normals(rows.shape, bits=SeededBits(3))), 5.0, residual=True)
    ridges: dict[tuple[str, ...], Table] = {("a", "b"): rows * 25.0 / (0.04 * rows**2) + 5.0}
    sizes = {"a": 6, "b": 5}
    rough, fine = (
        fit(sizes, [*columns, pair], total=5000.0, ridges=ridges, tolerance=tolerance) for tolerance in (0.1, 1e-9)
    )
    assert fine.gap <= 1e-9 * 0.5 * 41
    assert rough.gap <= 0.1 * 0.5 * 41
    assert np.abs(fine.counts(("a", "b")) - rough.counts(("a", "b"))).max() < 50
