"""Audits of fits: every learner passes on its neighbours; what is watched is this thread's fit and nobody else's."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import audit, learn
from discreet.audit.queries.fit_verdicts import CurrencyAmounts, moves, price_of
from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.errors import InvalidParameter, UnsupportedEvent, UnsupportedQuery
from discreet.mechanisms import (
    Exponential,
    Gaussian,
    KNorm,
    Laplace,
    Mechanism,
    PartitionSelection,
    PermuteAndFlip,
    Quantile,
)
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Neighbours, events
from tests.audit.held import clinic
from tests.audit.several import THE_HOSPITAL, THE_SHOP, of_family, shopping, wards
from tests.curator.clinic import visits

ROWS = visits(3, patients=40)
X, XY = "SELECT age, charge FROM visits", "SELECT age, charge, ward FROM visits"
AGE = "SELECT age, kind FROM visits"
BALL = "SELECT age / 60.0 - 1 AS a, charge / 500.0 - 1 AS c, ward FROM visits"
TWO = f"{XY} WHERE ward <> 'C'"
SOME: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
PURE: dict[str, Any] = {"epsilon": 1, "delta": 0}
TREE: dict[str, Any] = {"epsilon": 1, "max_depth": 2, "cells": 8}
DEPTHS = learn.DecisionTreeClassifier(cells=8), {"max_depth": [1, 2]}
STEPS = learn.LogisticRegression(steps=2), {"C": [1.0, 10.0]}

Fit = tuple[Any, str, str | None]
FITS: dict[str, Fit] = {
    "gradients": (learn.LogisticRegression(**SOME, steps=2, norm_bound=1), BALL, "ward"),
    "forest": (learn.RandomForestClassifier(**TREE, n_estimators=3), XY, "ward"),
    "random splits": (learn.ExtraTreesClassifier(**TREE, n_estimators=3), XY, "ward"),
    "one random tree": (learn.ExtraTreesClassifier(**TREE), XY, "ward"),
    "auto": (learn.AutoClassifier(**PURE), XY, "ward"),
    "auto with delta": (learn.AutoClassifier(epsilon=8, delta=1e-6), XY, "ward"),
    "scaler": (learn.StandardScaler(**SOME), X, None),
    "pure gradients": (learn.LogisticRegression(**PURE, method="gradient", classes=["A", "B"]), TWO, "ward"),
    "output": (learn.LogisticRegression(**PURE, method="output", classes=["A", "B"]), TWO, "ward"),
    "output with delta": (learn.LogisticRegression(**SOME, method="output"), XY, "ward"),
    "tree": (learn.DecisionTreeClassifier(**TREE), XY, "ward"),
    "tree without classes": (learn.DecisionTreeClassifier(epsilon=1, delta=1e-6, max_depth=1), AGE, "kind"),
    "bayes": (learn.GaussianNB(**SOME), XY, "ward"),
    "svc": (learn.LinearSVC(**SOME, steps=4), XY, "ward"),
    "additive": (learn.AdditiveClassifier(**SOME, rounds=3, cells=8), XY, "ward"),
    "means": (learn.KMeans(**SOME, n_clusters=2), X, None),
    "components": (learn.PCA(**SOME), X, None),
    "regression": (learn.LinearRegression(**SOME), X, "charge"),
    "ridge": (learn.Ridge(**SOME), X, "charge"),
    "search": (learn.GridSearchCV(*DEPTHS, **PURE), XY, "ward"),
    "search by lot": (learn.GridSearchCV(*DEPTHS, **PURE, tries=3), XY, "ward"),
    "search with delta": (learn.GridSearchCV(*STEPS, epsilon=4, delta=1e-4), XY, "ward"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_honest_learners_pass(name: str) -> None:
    """A few of them are the honest side of mutants, and tried with every run."""
    estimator, sql, target = FITS[name]
    found = audit.fit(clinic(), estimator, sql, ROWS, target=target, neighbours=16)
    assert found.passed, found.summary()
    assert Fraction(1, 25) < found.share <= 1
    assert "fit" in found.headline
    assert type(estimator).__name__ in found.questions[0].sql


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (_, sql, _) in FITS.items() if "WHERE" not in sql and sql != AGE])
def test_honest_learners_pass_where_rows_are_replaced(name: str) -> None:
    """The number of rows is public there, so that none may be left out, and so are classes."""
    estimator, sql, target = FITS[name]
    found = audit.fit(
        clinic(unit=None, neighbours=Neighbours.REPLACE), estimator, sql, ROWS, target=target, neighbours=12
    )
    assert found.passed, found.summary()


@pytest.mark.slow
def test_classes_that_are_found_privately() -> None:
    """Somebody who brings a label of their own changes one count of a selection, and nothing of what is shown."""
    tree = learn.DecisionTreeClassifier(epsilon=60, delta=1e-2, max_depth=1, cells=4)
    found = audit.fit(clinic(), tree, AGE, ROWS, target="kind", neighbours=12)
    assert found.passed, found.summary()
    assert found.questions[0].releases == 3


@pytest.mark.slow
def test_rows_of_several_tables_and_on_a_way() -> None:
    items = "SELECT price, kind FROM items"
    tree = learn.DecisionTreeClassifier(**TREE)
    found = audit.fit(of_family(THE_SHOP), tree, items, shopping(), target="kind", neighbours=12)
    assert found.passed, found.summary()
    joined = "SELECT v.age, l.result FROM visits AS v JOIN labs AS l ON v.patient = l.person"
    found = audit.fit(of_family(THE_HOSPITAL), learn.StandardScaler(**SOME), joined, wards(), neighbours=12)
    assert found.passed, found.summary()


# ------------------------------------------------------------------------------------------------ what it will not do


def test_noise_in_an_objective_cannot_be_seen() -> None:
    model = learn.LogisticRegression(**SOME, method="objective", classes=["A", "B"])
    with pytest.raises(InvalidParameter) as refused:
        audit.fit(clinic(), model, TWO, ROWS, target="ward", neighbours=1)
    assert refused.value.value == "objective perturbation"
    assert "audit.distinguish" in refused.value.hint


def test_bad_fits_are_refused_before_anything_is_fitted() -> None:
    tree = learn.DecisionTreeClassifier(**TREE)
    with pytest.raises(UnsupportedQuery):
        audit.fit(clinic(), tree, "SELECT COUNT(*) AS n FROM visits", ROWS, target="n")
    with pytest.raises(InvalidParameter):
        audit.fit(clinic(), tree, XY, ROWS, target="nothing")
    with pytest.raises(InvalidParameter) as refused:
        audit.fit(of_family(THE_SHOP), tree, "SELECT price, kind FROM items", {"items": []}, target="kind")
    assert "orders" in str(refused.value)


# --------------------------------------------------------------------------------------------------------- the recorder


def test_only_the_context_that_watches_is_watched() -> None:
    """Another thread releases with its own noise meanwhile, and nothing of it is kept."""
    noise, frozen = (
        Laplace(epsilon="1/100", sensitivity=1),
        [MechanismCall(Laplace(epsilon="1/100", sensitivity=1), (0,), 5)],
    )
    elsewhere: list[Any] = []
    recorder = MechanismRecorder(frozen=frozen)
    with watch_mechanisms(recorder):
        other = threading.Thread(target=lambda: elsewhere.append([noise.release(0) for _ in range(50)]))
        other.start()
        other.join()
        assert noise.release(7) == 5
        assert uniform_below(3, 10, bits=SeededBits(1)).max() < 3
    assert [each.inputs for each in recorder.made] == [(7,)]
    assert len(set(elsewhere[0])) > 5


def test_everything_is_put_back() -> None:
    kinds = (Laplace, Gaussian, PartitionSelection, Mechanism)
    before = [vars(kind).get(name) for kind in kinds for name in ("release", "select")]
    with pytest.raises(ZeroDivisionError), watch_mechanisms(MechanismRecorder()):
        raise ZeroDivisionError
    assert [vars(kind).get(name) for kind in kinds for name in ("release", "select")] == before


def test_coins_of_the_first_rows_do_not_depend_on_how_many_follow() -> None:
    def tossed(rows: int) -> tuple[list[int], list[int], int]:
        bits = SeededBits(3)
        with watch_mechanisms(MechanismRecorder(seed=5)):
            return uniform_below(3, rows, bits=bits).tolist(), uniform_below(5, 4, bits=bits).tolist(), bits.word()

    one, other = tossed(200), tossed(201)
    assert one[0] == other[0][:200]
    assert one[1:] == other[1:]
    assert set(one[0]) == {0, 1, 2}


def test_what_a_mechanism_does_inside_is_its_own() -> None:
    recorder = MechanismRecorder(SeededBits(1))
    with watch_mechanisms(recorder):
        PartitionSelection(epsilon=1, delta=1e-3, method="laplace").release([5, 90])
        PermuteAndFlip(epsilon=1, sensitivity=1).release([1, 2, 3])
    assert [type(each.mechanism) for each in recorder.made] == [PartitionSelection, PermuteAndFlip]


# ------------------------------------------------------------------------------------------------------------ distances


def moved(mechanism: Any, one: Any, other: Any, relation: Neighbours = Neighbours.ADD_REMOVE) -> list[Fraction]:
    found = moves(MechanismCall(mechanism, (one,), None), MechanismCall(mechanism, (other,), None), relation)
    return [move.found / move.allowed for move in found]


def test_distances_are_those_of_the_mechanisms() -> None:
    assert moved(Laplace(epsilon=2, sensitivity=4), [1, 2], [2, 3]) == [Fraction(1, 2)]
    assert moved(Gaussian(epsilon=1, delta=1e-5, sensitivity=5), [0.0, 0.0], [3.0, 4.0]) == [1]
    assert moved(Gaussian(epsilon=1, delta=1e-5, sensitivity=5), 0, 10) == [4]  # of a rho: the square
    assert moved(KNorm(epsilon=1, sensitivity=10, dimension=2), [0, 0], [3, 4]) == [Fraction(1, 2)]
    assert moved(KNorm(epsilon=1, sensitivity=4, dimension=2, norm="linf"), [0, 0], [3, 4]) == [1]
    both = PermuteAndFlip(epsilon=1, sensitivity=1), Exponential(epsilon=1, sensitivity=1)
    for choice in both:
        assert moved(choice, [5, 5], [6, 4]) == [1]
        assert moved(choice, [[5, 5], [1, 2]], [[6, 5], [1, 1]]) == [1]  # two choices, each in one direction
    assert moved(PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True), [5, 5], [6, 4]) == [2]
    assert moved(PartitionSelection(epsilon=1, delta=1e-5), [3, 0], [4, 0]) == [1, 1]
    assert moved(PartitionSelection(epsilon=1, delta=1e-5), [3, 0], [2, 1], Neighbours.REPLACE) == [1, 1]
    assert moved(PartitionSelection(epsilon=1, delta=1e-5), [3, 0], [2, 1]) == [2, 1]
    with pytest.raises(UnsupportedEvent):
        moved(Quantile(quantile="1/2", epsilon=1, bounds=(0, 9)), [1], [2])


def test_prices_are_compared_in_their_currencies() -> None:
    step, count = events.Gaussian(2), events.DiscreteLaplace(scale=4, sensitivity=1)
    charged = price_of([events.Composed([events.Repeated(step, 3), events.Repeated(events.Composed([count]), 2)])])
    assert (charged.rho, charged.epsilon) == (Fraction(3, 8), Fraction(1, 2))
    half, relation = Fraction(1, 2), Neighbours.ADD_REMOVE
    assert charged.share(CurrencyAmounts(half, Fraction(3, 8)), relation) == 1
    assert charged.share(CurrencyAmounts(half / 2, Fraction(3, 4)), relation) == 2
    assert charged.share(CurrencyAmounts(promises=[events.Approx(1, "1e-6")]), relation) is None
    promise = price_of([events.Approx(1, "1e-6")])
    assert promise.share(CurrencyAmounts(Fraction(9, 10)), relation) == pytest.approx(0.9, abs=1e-3)
    small, large = (promise.share(CurrencyAmounts(rho=rho), relation) for rho in (Fraction(1, 100), Fraction(1, 4)))
    assert small is not None
    assert large is not None
    assert 0 < small < 1 < large
    found = price_of([events.Approx(1, "1e-6"), events.Pure(2)])
    assert found.share(CurrencyAmounts(Fraction(3)), relation) == Fraction(
        3, 2
    )  # a promise about classes pays for nothing else
    with pytest.raises(UnsupportedEvent):
        price_of([events.PoissonSampled(0.5, step)])


def test_frozen_releases_come_out_again_or_have_strayed() -> None:
    noise, data = Laplace(epsilon=1, sensitivity=1), np.array([1, 2])
    first = MechanismRecorder(SeededBits(1))
    with watch_mechanisms(first):
        out = noise.release(data)
    for value, strayed in ((data + 1, False), (np.array([1, 2, 3]), True)):
        second = MechanismRecorder(SeededBits(2), frozen=first.made)
        with watch_mechanisms(second):
            assert np.array_equal(noise.release(value), out)
        assert second.strayed is strayed
    third = MechanismRecorder(SeededBits(2), frozen=first.made)
    with watch_mechanisms(third):
        Laplace(epsilon=2, sensitivity=1).release(data)
    assert third.strayed
