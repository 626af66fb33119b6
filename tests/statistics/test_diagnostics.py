"""Diagnostics: influence by definition, gross errors, predicted sensitivity, and the noise that is not private."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.statistics import diagnostics
from discreet.statistics.robust.smooth_sensitivity import functional
from tests.cases import every

DATA = [0.1, 0.4, 0.5, 1.7, 2.9, 3.3, 9.0]
ESTIMATORS = ["mean", "median", "trimmed_mean", "huber"]


def test_smooth_sensitivities_by_name_and_rank() -> None:
    five = [1, 4, 5, 7, 9]
    ask = diagnostics.smooth_sensitivity
    assert ask("median", five, beta=0.1, bounds=(0, 10)) == pytest.approx(6.065307, rel=1e-6)
    assert ask(3, five, beta=0.1, bounds=(0, 10)) == pytest.approx(6.065307, rel=1e-6)
    assert ask("trimmed_mean", five, beta=0.1, bounds=(0, 10), trim=0.2) == pytest.approx(2.469394, rel=1e-6)
    assert ask("median", [1, 4, 5, 9], beta=0.3, bounds=(0, 10)) == pytest.approx(2.963273, rel=1e-6)
    assert ask("median", [5] * 20001, beta=0.1, bounds=(0, 10)) == 0.0
    for wrong in (0, 6, "mode"):
        with pytest.raises(InvalidParameter):
            ask(wrong, five, beta=0.1, bounds=(0, 10))
    with pytest.raises(InvalidValue):
        ask("median", [], beta=0.1, bounds=(0, 10))


@every("estimator", ["mean", "trimmed_mean", "huber"])
@every("at", [-50.0, 0.45, 2.0, 60.0])
def test_the_limit_is_what_small_shares_tend_to(estimator: str, at: float) -> None:
    limit = diagnostics.influence_function(estimator, DATA, at=at)
    near = diagnostics.influence_function(estimator, DATA, at=at, share=1e-6)
    assert near == pytest.approx(limit, rel=1e-4, abs=1e-4)


def test_influence_of_the_median_needs_a_share() -> None:
    with pytest.raises(InvalidParameter) as refused:
        diagnostics.influence_function("median", DATA, at=1.0)
    assert refused.value.name == "share"
    n = len(DATA)
    moved = diagnostics.influence_function("median", DATA, at=[-9.0, 90.0], share=Fraction(1, n + 1))
    assert moved / (n + 1) == pytest.approx([(0.5 + 1.7) / 2 - 1.7, (1.7 + 2.9) / 2 - 1.7])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_more_value_is_a_share_of_one_in_n_plus_one(estimator: str) -> None:
    for extra in (-3.0, 1.0, 1.7, 20.0):
        with_it = functional(estimator).of(np.sort([*DATA, extra]))
        share = Fraction(1, len(DATA) + 1)
        moved = diagnostics.influence_function(estimator, DATA, at=extra, share=share) * float(share)
        assert functional(estimator).of(np.array(DATA)) + moved == pytest.approx(with_it, abs=1e-9)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12), st.sampled_from(ESTIMATORS))
def test_no_place_has_more_influence_than_the_bounds(values: list[float], estimator: str) -> None:
    share = 0.1
    most = diagnostics.gross_error_sensitivity(estimator, values, bounds=(-10, 10), share=share)
    places = np.linspace(-10, 10, 21)
    moved = diagnostics.influence_function(estimator, values, at=places, share=share)
    assert np.abs(moved).max() <= most + 1e-6
    assert (np.diff(moved) >= -1e-6).all()


def test_influence_of_huber_on_normal_data() -> None:
    """k / P(|N| < k) = 1.345 / 0.8214 for normal data, at any place far out."""
    x = normals(20_000, bits=SeededBits(1))
    found = diagnostics.gross_error_sensitivity("huber", x, bounds=(-100, 100))
    assert found == pytest.approx(1.345 / 0.8214, rel=0.02)


@pytest.mark.parametrize("beyond", [1e9, 1e5])
def test_when_the_second_term_of_the_bound_is_gone(beyond: float) -> None:
    """With epsilon=1, delta=1e-6, beta = 1 / (2 ln 2e6): below R / n only from about 55 000 values on."""
    beta = 1 / (2 * math.log(2e6))

    def second(n: int) -> float:
        return diagnostics.chaudhuri_hsu_bound(1e-9, n=n, beta=beta, bounds=(0, beyond), failure=0.05) * n / beyond

    assert second(50_000) > 1 > second(60_000)


def test_the_bound_holds_for_samples() -> None:
    """Uniform values: within the ball the median lies in 1/2 +- r, so one in n moves it by at most 2 (r + 1 / n)."""
    n, beta = 2000, 0.2
    radius = math.sqrt(2 * math.log(2 / 0.05) / n)
    bound = diagnostics.chaudhuri_hsu_bound(n * 2 * (radius + 1 / n), n=n, beta=beta, bounds=(0, 1), failure=0.05)
    for seed in range(20):
        found = diagnostics.smooth_sensitivity("median", uniforms(n, bits=SeededBits(seed)), beta=beta, bounds=(0, 1))
        assert found <= bound


def two_points(inside: int, n: int) -> tuple[list[float], list[float]]:
    """So many points inside Huber's zone and the rest far out on both sides; the neighbour has one fewer inside."""
    side = (n - inside) // 2
    far = [-1e6] * (side + 1) + [1e6] * side
    return [*far, *[0.0] * inside], [*far, 1e6, *[0.0] * (inside - 1)]


@pytest.mark.parametrize(("inside", "n"), [(2, 1001), (2, 100_001), (5, 1001)])
def test_noise_from_the_gross_error_sensitivity_is_not_private(inside: int, n: int) -> None:
    """True delta 0.197 and 0.0123 at a claim of 1e-5, whatever n is."""
    x, y = two_points(inside, n)
    found = diagnostics.gross_error_delta(x, y, epsilon=1, delta=1e-5)
    assert found == pytest.approx({2: 0.197, 5: 0.0123}[inside], rel=0.02)


def test_on_calm_data_the_same_noise_would_do() -> None:
    """Which is why its failure is easily overlooked: half of the points inside, and the claim holds."""
    x = normals(2001, bits=SeededBits(2))
    y = np.append(x[:-1], 50.0)
    assert diagnostics.gross_error_delta(x, y, epsilon=1, delta=1e-5) <= 1e-5


@pytest.mark.parametrize("wrong", [{"estimator": "mode"}, {"trim": 0.5}, {"k": 0}, {"scale": -1}, {"share": 1}])
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        diagnostics.influence_function(**{"estimator": "mean", "x": DATA, "at": 1.0, **wrong})


def test_every_function_says_that_it_is_private_or_no_scale() -> None:
    for name in ("smooth_sensitivity", "influence_function", "gross_error_sensitivity", "chaudhuri_hsu_bound"):
        text = getattr(diagnostics, name).__doc__
        assert "private" in text
