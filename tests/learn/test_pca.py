"""Principal components: what one row moves, what is paid, and that the noise is no larger than it must be."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn import decomposition

from discreet.errors import InvalidParameter
from discreet.learn import PCA, GaussianNB, KMeans, LinearRegression, Ridge, StandardScaler, noisy_moments
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.privacy.events import Gaussian
from discreet.statistics.row_sums import moment_sensitivity
from tests.learn.spying import squared_distance, told

WILD = [(3.0, 0.0), (0.0, 3.0), (-3.0, 0.0), (1e300, -np.inf), (np.nan, 2.9), (2.0, -2.0)]


def heard(rows: list[Any], neighbours: str) -> list[Any]:
    return told(lambda: PCA(norm_bound=3.0, neighbours=neighbours, random_state=1).fit(np.array(rows)))


def worst(neighbours: str) -> Fraction:
    base = [(1.0, 2.0), (-0.1, 0.4)]
    several = [heard([*base, row], neighbours) for row in WILD]
    pairs = combinations(several, 2) if neighbours == "replace" else ((heard(base, neighbours), one) for one in several)
    event = PCA(norm_bound=3.0, neighbours=neighbours).plan_event(2)
    assert isinstance(event, Gaussian)
    return max(squared_distance(left, right) for left, right in pairs) * event.noise_multiplier**2


@pytest.mark.parametrize(("neighbours", "least"), [("add_remove", 0.99), ("replace", 0.85)])
def test_no_row_moves_the_moments_further_than_was_paid(neighbours: str, least: float) -> None:
    assert least < worst(neighbours) <= 1


def test_a_forgotten_factor_under_replace_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        noisy_moments, "moment_sensitivity", lambda norm, _: moment_sensitivity(norm, Neighbours.ADD_REMOVE)
    )
    assert worst("replace") > 1


def rows(seed: int, n: int = 5000) -> Any:
    return normals((n, 4), bits=SeededBits(seed)) * [2.0, 1.0, 0.5, 0.2] @ MIX + [1, 0, -1, 0.5]


MIX = np.linalg.qr(normals((4, 4), bits=SeededBits(9)))[0]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_components_means_and_variances(neighbours: str) -> None:
    X = rows(1)
    model = PCA(n_components=2, norm_bound=8.0, epsilon=2, neighbours=neighbours, random_state=1).fit(X)
    exact = decomposition.PCA(2).fit(X)
    assert np.abs(np.sum(model.components_ * exact.components_, axis=1)) == pytest.approx([1, 1], abs=0.05)
    assert model.explained_variance_ == pytest.approx(exact.explained_variance_, rel=0.15)
    assert model.mean_ == pytest.approx(exact.mean_, abs=0.1)
    assert model.event_ == PCA(norm_bound=8.0, epsilon=2, neighbours=neighbours).plan_event(4)


def test_with_little_noise_it_is_the_exact_one_in_other_units_too() -> None:
    X = rows(2) * [1, 10, 1, 5]
    bounds = (np.array([-8.0, -80, -8, -40]), np.array([12.0, 80, 8, 40]))
    model = PCA(epsilon=1e5, bounds=bounds, random_state=1).fit(X)
    exact = decomposition.PCA().fit(X)
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(4), abs=1e-9)
    assert np.abs(np.sum(model.components_ * exact.components_, axis=1)) == pytest.approx(np.ones(4), abs=0.01)
    assert model.explained_variance_[:3] == pytest.approx(exact.explained_variance_[:3], rel=0.02)
    assert model.inverse_transform(model.transform(X)) == pytest.approx(X)
    white = PCA(n_components=2, epsilon=1e5, bounds=bounds, whiten=True, random_state=1).fit(X)
    assert white.transform(X).std(axis=0) == pytest.approx([1, 1], abs=0.02)
    assert white.get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_noise_alone_breaks_nothing() -> None:
    model = PCA(epsilon=0.01, norm_bound=1, whiten=True, random_state=1).fit(np.zeros((1, 3)))
    assert np.isfinite(model.transform(np.ones((2, 3)))).all()
    assert (model.explained_variance_ >= 0).all()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_no_rows_are_no_error(neighbours: str) -> None:
    """An error would tell that there are none; labels of numbers and of classes alike."""
    nothing = np.empty((0, 2))
    common: dict[str, Any] = {"neighbours": neighbours, "random_state": 1}
    assert PCA(norm_bound=1, **common).fit(nothing).components_.shape == (2, 2)
    assert KMeans(n_clusters=3, norm_bound=1, **common).fit(nothing).cluster_centers_.shape == (3, 2)
    assert StandardScaler(bounds=(0, 1), **common).fit(nothing).scale_.shape == (2,)
    assert GaussianNB(bounds=(0, 1), classes=[0, 1], **common).fit(nothing, []).theta_.shape == (2, 2)
    for kind in (LinearRegression, Ridge):
        assert kind(norm_bound=1, label_bounds=(0, 1), **common).fit(nothing, []).coef_.shape == (2,)


def test_refusals() -> None:
    for model in (
        PCA(),
        PCA(n_components=4, norm_bound=1),
        PCA(n_components=0, norm_bound=1),
        PCA(norm_bound=1, delta=0),
    ):
        with pytest.raises(InvalidParameter):
            model.fit(np.ones((4, 3)))
