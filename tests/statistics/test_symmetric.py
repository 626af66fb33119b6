"""Second moments are exact, move as far as stated, and meet noise whose size depends on the place in the matrix."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from discreet.statistics.row_sums import moment_sensitivity, positive_part, release_symmetric, second_moments

BOTH = [Neighbours.ADD_REMOVE, Neighbours.REPLACE]


def test_sums_are_exact_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[1 << 15, -(1 << 15)]] * 7, dtype=np.int64)
    whole = second_moments(rows)
    monkeypatch.setattr("discreet.statistics.row_sums._BLOCK", 2)
    assert (second_moments(rows) == whole).all()
    assert whole.tolist() == [[7 << 30, -(7 << 30)], [-(7 << 30), 7 << 30]]
    assert second_moments(np.zeros((0, 2), dtype=np.int64)).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_sensitivity_is_what_brute_force_finds(neighbours: Neighbours) -> None:
    rows = [np.array(row) for row in product(range(-4, 5), repeat=2) if sum(e * e for e in row) <= 16]
    alone = [second_moments(row[None, :]) for row in rows]
    others = [np.zeros((2, 2))] if neighbours is Neighbours.ADD_REMOVE else alone
    furthest = max(float(np.linalg.norm(one - other)) for one in alone for other in others)
    stated = float(moment_sensitivity(16, neighbours))
    assert furthest <= stated + 1e-12
    assert furthest == pytest.approx(stated, rel=1e-12)


def test_moves_cost_the_noise_multiplier_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """In units of the noise each entry gets, a rank-one move has a squared length of at most 1 / multiplier^2."""
    sigmas: list[Fraction] = []

    def recorded(self: Gaussian, value: np.ndarray, **_: object) -> np.ndarray:
        sigmas.append(self.sigma)
        return np.asarray(value, dtype=float)

    monkeypatch.setattr(Gaussian, "release", recorded)
    release_symmetric(np.eye(3), noise_multiplier=Fraction(3, 2), sensitivity=25)
    beside, straight = sigmas
    for row in product(range(-5, 6), repeat=3):
        if sum(entry * entry for entry in row) <= 25:
            diagonal = sum(Fraction(entry**4) for entry in row) / straight**2
            crossed = sum(Fraction((row[i] * row[j]) ** 2) for i in range(3) for j in range(i)) / beside**2
            assert diagonal + crossed <= Fraction(4, 9)
    # the longest row costs all of it, but for rounding: nothing is paid twice
    assert Fraction(25**2) / straight**2 == Fraction(4, 9)
    assert float(straight / beside) == pytest.approx(2**0.5, rel=1e-15)


def test_the_spectral_norm_of_the_noise_in_twenty_dimensions() -> None:
    """5.97 on average, against 8.25 for the same variance everywhere; 400 draws have a standard error near 0.015."""
    bits = SeededBits(5)
    zero = np.zeros((20, 20), dtype=np.int64)
    norms = []
    for _ in range(400):
        noise = release_symmetric(zero, noise_multiplier=1, sensitivity=1, bits=bits)
        assert (noise == noise.T).all()
        norms.append(float(np.linalg.norm(noise, 2)))
    assert np.mean(norms) == pytest.approx(5.97, abs=0.08)


def test_what_is_not_positive_is_cut_off() -> None:
    found = positive_part(np.array([[0.0, 2.0], [2.0, 0.0]]))
    assert found == pytest.approx(np.ones((2, 2)))
