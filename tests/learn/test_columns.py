"""Means and variances of columns, and what is built on them: the scaler and naive Bayes."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from sklearn import datasets
from sklearn.naive_bayes import GaussianNB as Exact

from discreet.errors import InvalidParameter
from discreet.learn import GaussianNB, StandardScaler
from discreet.learn import noisy_moments as column_moments
from discreet.learn.linear import naive_bayes
from discreet.learn.noisy_moments import STEPS, Shares, shares
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours, events
from tests.learn.spying import Told, squared_distance, told

ADD, SWAP = "add_remove", "replace"
VALUES = (-1.0, -0.6, 0.0, 0.15, 1.0, np.nan)
ROWS = [(*pair, label) for pair in product(VALUES, repeat=2) for label in (0, 1, 7)]


def bayes(rows: list[Any], neighbours: str) -> list[Told]:
    table = np.array(rows)
    model = GaussianNB(bounds=(-1, 1), classes=[0, 1, 2], neighbours=neighbours, random_state=1)
    return told(lambda: model.fit(table[:, :2], table[:, 2]))[:-1]  # the comparison is test_comparison's


def scaler(rows: list[Any], neighbours: str) -> list[Told]:
    model = StandardScaler(bounds=(-1, 1), neighbours=neighbours, random_state=1)
    return told(lambda: model.fit(np.array(rows)[:, :2]))


MODELS: dict[Any, Any] = {
    bayes: lambda: GaussianNB(bounds=(-1, 1), classes=[0, 1, 2]),
    scaler: lambda: StandardScaler(bounds=(-1, 1)),
}


def worst(listen: Any, neighbours: str) -> Fraction:
    """The largest squared distance of neighbours, over what was paid."""
    base, rows = [(0.3, 2.0, 1), (-0.5, np.inf, 0)], [*ROWS[::5], (1.0, 1.0, 0), (-1.0, -1.0, 0), (1.0, 1.0, 1)]
    heard = [listen([*base, row], neighbours) for row in rows]
    pairs = list(combinations(heard, 2)) if neighbours == SWAP else [(listen(base, ADD), one) for one in heard]
    spent = MODELS[listen]().plan_event(2)
    first = spent.events[0] if isinstance(spent, events.Composed) else spent
    assert isinstance(first, events.Gaussian)
    return max(squared_distance(left, right) for left, right in pairs) * first.noise_multiplier**2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("listen", [bayes, scaler])
def test_no_row_moves_more_than_was_paid(listen: Any, neighbours: str) -> None:
    found = worst(listen, neighbours)
    assert found <= 1
    assert found > Fraction(99, 100)


@pytest.mark.parametrize("listen", [bayes, scaler])
def test_sensitivities_of_the_other_relation_are_seen(listen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = column_moments.shares

    def mistaken(features: int, groups: int, _relation: Neighbours) -> Shares:
        found = honest(features, groups, Neighbours.ADD_REMOVE)
        return found if groups > 1 else Shares(count=None, sums=found.sums, squares=found.squares)

    monkeypatch.setattr(column_moments, "shares", mistaken)
    assert worst(listen, SWAP) > 1


def test_squares_that_are_not_centred_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = column_moments._sums

    def mistaken(steps: Any, codes: Any, groups: int) -> Any:
        counts, sums, squares = honest(steps, codes, groups)
        return counts, sums, squares + counts[:, None] * STEPS**2

    monkeypatch.setattr(column_moments, "_sums", mistaken)
    assert worst(bayes, ADD) > 1


@pytest.mark.parametrize("features", [1, 2, 9, 64, 1000])
@pytest.mark.parametrize("groups", [1, 4])
def test_shares_hold_on_a_fine_grid(features: int, groups: int) -> None:
    """All pairs of values of one feature, the same in all features, which is the worst."""
    u = np.linspace(-1, 1, 401)
    adding, swapping = (shares(features, groups, Neighbours(name)) for name in (ADD, SWAP))
    moved = features * (u**2 / _squared(adding.sums, STEPS) + (2 * u**2 - 1) ** 2 / _squared(adding.squares, STEPS**2))
    assert moved.max() + 1 / float(adding.count or 1) ** 2 <= 1 + 1e-12
    v = u[:, None]
    sums, squares = _squared(swapping.sums, STEPS), _squared(swapping.squares, STEPS**2)
    same = features * ((u - v) ** 2 / sums + 4 * (u**2 - v**2) ** 2 / squares)
    assert same.max() <= 1 + 1e-12
    if groups > 1:
        each = features * (u**2 / sums + (2 * u**2 - 1) ** 2 / squares)
        assert (each + each[:, None]).max() + 2 / float(swapping.count or 1) ** 2 <= 1 + 1e-12


def _squared(sensitivity: Fraction, scale: int) -> float:
    return float(sensitivity / scale) ** 2


def numbers(seed: int, n: int) -> Any:
    return 3 + 2 * normals((n, 3), bits=SeededBits(seed))


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_the_scaler_finds_means_and_variances(neighbours: str) -> None:
    X = numbers(1, 20_000)
    model = StandardScaler(bounds=(-9, 15), neighbours=neighbours, random_state=3).fit(X)
    assert model.mean_ == pytest.approx(X.mean(axis=0), abs=0.1)
    assert model.var_ == pytest.approx(X.var(axis=0), rel=0.1)
    moved = model.transform(X)
    assert moved.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.05)
    assert model.inverse_transform(moved) == pytest.approx(X)
    assert not hasattr(model, "n_samples_seen_")


def test_noise_never_makes_a_scale_vanish() -> None:
    for seed in range(20):
        model = StandardScaler(epsilon=0.1, bounds=(0, 6), random_state=seed).fit(np.ones((5, 2)))
        assert (model.scale_ > 0.1).all()
        assert (np.abs(model.mean_ - 3) <= 3).all()


def test_events_are_the_plan() -> None:
    X, y = numbers(2, 60), np.arange(60) % 2
    for neighbours in (ADD, SWAP):
        scaled = StandardScaler(bounds=(0, 6), neighbours=neighbours)
        assert scaled.fit(X).event_ == scaled.plan_event(3)
        assert scaled.private_
        known = GaussianNB(bounds=(0, 6), classes=[0, 1], neighbours=neighbours)
        assert known.fit(X, y).event_ == known.plan_event(3)
        unknown = GaussianNB(epsilon=30, bounds=(0, 6), neighbours=neighbours, random_state=1)
        event = unknown.fit(X, y).event_
        assert event == unknown.plan_event(3)
        assert isinstance(event, events.Composed)
        assert isinstance(event.events[0], events.Approx)


def test_naive_bayes_with_little_noise_is_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = datasets.load_iris(return_X_y=True)
    monkeypatch.setattr(naive_bayes, "CANDIDATES", naive_bayes.CANDIDATES[:1])  # shared variances are better there
    model = GaussianNB(epsilon=1e4, bounds=(0, 8), classes=[0, 1, 2], random_state=1).fit(X, y)
    exact = Exact().fit(X, y)
    assert model.theta_ == pytest.approx(exact.theta_, abs=0.01)
    assert model.var_ == pytest.approx(exact.var_, abs=0.02)
    assert model.temperature_ == 1
    assert model.predict_proba(X) == pytest.approx(exact.predict_proba(X), abs=0.15)


def test_naive_bayes_tells_classes_apart() -> None:
    bits = SeededBits(5)
    y = np.arange(3000) % 3
    X = normals((3000, 4), bits=bits) + 2 * (np.arange(4) == y[:, None])
    model = GaussianNB(epsilon=1, bounds=(-4, 6), classes=[0, 1, 2], random_state=1).fit(X, y)
    assert model.score(X, y) > Exact().fit(X, y).score(X, y) - 0.05


def test_priors_and_missing_values() -> None:
    X, y = datasets.load_iris(return_X_y=True)
    priors = [0.2, 0.3, 0.5]
    model = GaussianNB(epsilon=100, bounds=(0, 8), classes=[0, 1, 2], priors=priors, random_state=1).fit(X, y)
    assert model.predict_proba(np.full((1, 4), np.nan))[0] == pytest.approx(priors)


def test_refusals() -> None:
    for model in (GaussianNB(classes=[0, 1]), StandardScaler(), StandardScaler(bounds=(0, 1), delta=None)):
        with pytest.raises(InvalidParameter):
            model.fit(np.ones((4, 2)), [0, 1, 0, 1])
    with pytest.raises(InvalidParameter, match="priors"):
        GaussianNB(bounds=(0, 1), classes=[0, 1], priors=[1.0]).fit(np.ones((4, 2)), [0, 1, 0, 1])
