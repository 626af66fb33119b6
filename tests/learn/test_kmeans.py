"""Clusters: what one row moves in every stage, given what earlier stages released, and how good centres are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans as Exact

from discreet.errors import InvalidParameter
from discreet.learn import KMeans
from discreet.learn.clusters import coreset
from discreet.learn.clusters.coreset import point_sensitivities, rotate_rows, rotation
from discreet.learn.clusters.kmeans import nearest
from discreet.learn.noisy_moments import STEPS, release_columns
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import Neighbours, events
from discreet.statistics.inputs import RADIUS
from tests.learn.spying import replies, squared_distance, told

ADD, SWAP = "add_remove", "replace"
ODD = np.array([[0.9, 0.0], [0.0, -5.0], [np.nan, np.inf], [-0.6, -0.6], [0.01, 0.02], [1e300, -1e-300]])


def blobs(seed: int, n: int, d: int, k: int, spread: float = 0.1) -> Any:
    bits = SeededBits(seed)
    centres = 1.6 * uniforms((k, d), bits=bits) - 0.8
    return centres[np.arange(n) % k] + spread * normals((n, d), bits=bits)


def model(neighbours: str, **given: Any) -> KMeans:
    chosen = {"n_clusters": 2, "epsilon": 20, "norm_bound": 1, "levels": 4, "random_state": 3, **given}
    return KMeans(neighbours=neighbours, **chosen)


def paid(event: events.Event) -> Fraction:
    """The sum of 1 / multiplier^2: what the squared distance of neighbours may be."""
    assert isinstance(event, events.Composed)
    total = Fraction(0)
    for part in event.events:
        one, times = (part.event, part.count) if isinstance(part, events.Repeated) else (part, 1)
        assert isinstance(one, events.Gaussian)
        total += times / one.noise_multiplier**2
    return total


def worst(neighbours: str) -> Fraction:
    """The largest squared distance between neighbours over what was paid, all releases forced to be the same."""
    base = blobs(1, 300, 2, 3)
    forced = replies(lambda: model(neighbours).fit(np.vstack([base, ODD[:1]])))
    tables = [np.vstack([base, row]) for row in ODD]
    if neighbours == ADD:
        tables.insert(0, base)
    heard = [told(lambda table=table: model(neighbours).fit(table), forced) for table in tables]  # type: ignore[misc]
    assert len(heard[0]) == len(forced)
    pairs = [(0, other) for other in range(1, len(heard))]
    if neighbours == SWAP:
        pairs += [(1, 3), (3, 5), (2, 4)]
    distances = [squared_distance(heard[left], heard[right]) for left, right in pairs]
    return max(distances) / paid(model(neighbours).plan_event(2))


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_no_row_moves_more_than_was_paid_given_what_was_released(neighbours: str) -> None:
    assert Fraction(3, 5) < worst(neighbours) <= 1


def test_counts_that_forget_where_a_replaced_row_went_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coreset, "level_sensitivity", lambda _: Fraction(1))
    monkeypatch.setattr(coreset, "point_sensitivities", lambda width, _: point_sensitivities(width, Neighbours(ADD)))
    assert worst(ADD) <= 1
    assert worst(SWAP) > 1


def test_cells_cut_at_an_exact_mean_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(rows: Any, *others: Any, **given: Any) -> Any:
        found = release_columns(rows, *others, **given)
        return replace(found, mean=rows.mean(axis=0, keepdims=True) * 200 / RADIUS % 0.1)

    monkeypatch.setattr(coreset, "release_columns", mistaken)
    assert worst(ADD) > 1


def test_sensitivities_of_counts_and_sums_hold_together() -> None:
    u = np.linspace(0, RADIUS, 101)
    for width in (1, 2, 10, 100):
        count, total = (float(one) for one in point_sensitivities(width, Neighbours.ADD_REMOVE))
        assert 1 / count**2 + (u / total).max() ** 2 == pytest.approx(1)
    count, total = (float(one) for one in point_sensitivities(3, Neighbours.REPLACE))
    assert 2 / count**2 + 2 * (u.max() / total) ** 2 == 1
    assert (2 * u.max() / total) ** 2 == 1
    assert STEPS == RADIUS  # turned rows are steps of columns


def test_rows_are_turned_and_assigned_each_by_itself() -> None:
    bits = SeededBits(4)
    rows = np.round(normals((50, 20), bits=bits) * 900).astype(np.int64)
    turn = rotation(20, bits)
    together = rotate_rows(rows, turn)
    assert (np.sum(together * together, axis=1) <= RADIUS**2).all()
    centres = together[:5]
    places = nearest(together, centres)
    for place in range(50):
        one = rotate_rows(rows[place : place + 1], turn)
        assert (one[0] == together[place]).all()
        away = np.sum((one - centres) ** 2, axis=1)
        assert places[place] == np.argmin(away) == nearest(one, centres)[0]


def cost(X: Any, centres: Any) -> float:
    return float(np.mean(np.min(np.sum((X[:, None] - centres) ** 2, axis=2), axis=1)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("d", "k"), [(2, 5), (12, 6)])
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_centres_are_nearly_as_good_as_exact_ones(d: int, k: int, neighbours: str) -> None:
    X = blobs(7, 20_000, d, k)
    exact = cost(X, Exact(k, n_init=5, random_state=0).fit(X).cluster_centers_)
    found = [
        cost(X, KMeans(n_clusters=k, bounds=(-1, 1), neighbours=neighbours, random_state=seed).fit(X).cluster_centers_)
        for seed in range(3)
    ]
    assert np.median(found) < 1.2 * exact


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_the_event_is_the_plan_and_costs_no_more_than_asked(neighbours: str) -> None:
    made = KMeans(n_clusters=3, bounds=(-1, 1), neighbours=neighbours)
    fitted = made.fit(blobs(8, 200, 2, 3))
    assert fitted.event_ == made.plan_event(2)
    assert 0.999 < float(fitted.privacy_spent_.epsilon) <= 1  # type: ignore[attr-defined]
    assert fitted.private_


def test_nothing_unpaid_is_kept() -> None:
    X = blobs(9, 300, 2, 3)
    fitted = model(ADD).fit(X)
    assert not any(hasattr(fitted, name) for name in ("labels_", "inertia_", "n_iter_"))
    assert (model(ADD).fit_predict(X) == fitted.predict(X)).all()


def test_noise_alone_breaks_nothing() -> None:
    found = KMeans(n_clusters=4, epsilon=0.01, norm_bound=1, random_state=1).fit(np.zeros((2, 12)))
    assert found.cluster_centers_.shape == (4, 12)
    assert (np.linalg.norm(found.cluster_centers_, axis=1) <= 1.001).all()


def test_refusals() -> None:
    for wrong in (KMeans(), KMeans(norm_bound=1, n_clusters=0), KMeans(norm_bound=1, levels=0), KMeans(norm_bound=-1)):
        with pytest.raises(InvalidParameter):
            wrong.plan_event(3)
