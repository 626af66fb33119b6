"""Contrasts of normals, rounded: floats never contradict enclosures, and the law is the normal one with their shape."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.lazy import stats
from discreet.noise import SeededBits
from discreet.noise import rounded_contrasts as module
from discreet.noise.rounded_contrasts import contrasts, rounded_contrasts
from discreet.noise.rounded_gaussian import Disc

FALSE_ALARM = 1e-9


def _shape_of_noise(sizes: tuple[int, ...]) -> Any:
    """D D^T on every axis, D = [1 | -I]."""
    result: Any = np.ones((1, 1))
    for size in sizes:
        differences = np.hstack([np.ones((size, 1)), -np.eye(size)])
        result = np.kron(result, differences @ differences.T)
    return result


def test_contrasts_are_differences_along_every_axis() -> None:
    table = np.arange(24).reshape(2, 3, 4) ** 2
    differences = [np.hstack([np.ones((n - 1, 1)), -np.eye(n - 1)]) for n in table.shape]
    expected = np.einsum("ai,bj,ck,ijk->abc", *differences, table)
    assert np.array_equal(contrasts(table), expected)
    assert contrasts(np.array(7)).tolist() == 7


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (1, 1, 1, 1)])
def test_floats_never_contradict_enclosures(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = np.linspace(-3.25, 5.5, max(1, int(np.prod(shape)))).reshape(shape)
    for seed, sigma in enumerate((Fraction(1, 3), Fraction(5), Fraction(1 << 18))):
        quick = rounded_contrasts(sigma, offsets, SeededBits(seed))
        with monkeypatch.context() as patched:
            patched.setattr(module, "_margin", lambda *_: 1.0)  # floats are sure of nothing
            assert np.array_equal(rounded_contrasts(sigma, offsets, SeededBits(seed)), quick)


def test_the_float_error_is_within_its_margin(bits: SeededBits) -> None:
    """The margin covers what long doubles see of the error of floats, for many axes."""
    disc = Disc.draw(2**8, bits)
    normals = module._certain_normals(disc, bits).reshape((2,) * 8)
    exact = contrasts(normals.astype(np.longdouble)) * np.longdouble(1000)
    assert abs(float(contrasts(normals)[(0,) * 8]) * 1000 - float(exact[(0,) * 8])) < module._margin(1000.0, normals)
    assert module._margin(1000.0, normals) < 1e-3


def test_points_that_floats_cannot_compute_come_from_enclosures(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rounded_contrasts(Fraction(100), np.zeros((3, 3)), SeededBits(3))
    with monkeypatch.context() as patched:
        patched.setattr(module, "float_normals", lambda words: np.full(words.shape[1], np.nan))
        assert np.array_equal(rounded_contrasts(Fraction(100), np.zeros((3, 3)), SeededBits(3)), plain)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(), (1,), (3,), (2, 2), (1, 1, 1)])
def test_the_law_has_the_shape_of_the_differences(sizes: tuple[int, ...], bits: SeededBits) -> None:
    """Whitened draws have squares that add up to a chi-squared number; 1,000 tables, and a power against 30 %."""
    sigma, runs = Fraction(2000), 1000
    draws = np.array([rounded_contrasts(sigma, np.zeros(sizes), bits).ravel() for _ in range(runs)])
    shape = _shape_of_noise(sizes) * float(sigma) ** 2
    whitened = np.linalg.solve(np.linalg.cholesky(shape), draws.T)
    total, count = float(np.sum(whitened**2)), whitened.size
    assert FALSE_ALARM < stats.chi2.cdf(total, count) < 1 - FALSE_ALARM
    assert stats.chi2.sf(total * 1.69, count) < FALSE_ALARM  # a sigma wrong by 30 % is seen
    assert stats.chi2.cdf(total / 1.69, count) < FALSE_ALARM
    if count > runs:  # and so is a missing correlation
        plain = np.sum(draws.astype(float) ** 2) / float(sigma) ** 2
        assert abs(plain - count) > 6 * np.sqrt(2 * count)
        products = (whitened @ whitened.T / runs)[np.triu_indices(len(whitened), 1)]
        assert np.max(np.abs(products)) < 6.5 / np.sqrt(runs)  # a mean of products of two normals; 6.5 sd
