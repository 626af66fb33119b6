"""Membership in training data: models that learnt by heart tell, private ones do not."""

import sys
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from discreet import accounting
from discreet.attacks import membership, posterior
from discreet.attacks.membership.trained_model import Pool, by_likelihood_ratio, certainty, private_tree, shadow_models
from discreet.errors import InvalidParameter, MissingExtra
from discreet.mechanisms import Laplace, PermuteAndFlip
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import Neighbours, events

pytest.importorskip("sklearn")

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

HALF = 200


def made(count: int, bits: SeededBits, width: int = 5) -> tuple[Any, Any]:
    """Labels that follow the first feature, with many exceptions: there is much to learn by heart."""
    features = normals((count, width), bits=bits)
    return features, (uniforms(count, bits=bits) < 1 / (1 + np.exp(-features[:, 0]))).astype(int)


def attacked(model: Any, bits: SeededBits, **other: Any) -> Any:
    members, others = made(HALF, bits), made(HALF, bits)
    return membership(model.fit(*members), members, others, bits=bits, **other)


def test_of_a_tree_that_learnt_by_heart_the_loss_tells_what_theory_says(bits: SeededBits) -> None:
    # Every member is labelled rightly and surely: the best threshold accuses whoever is, which is the predicted test.
    found = attacked(DecisionTreeClassifier(random_state=0), bits, method="loss")
    assert found.gap > 0.25
    assert found.success == pytest.approx(found.predicted, abs=1e-12)
    assert found.success == pytest.approx(0.5 + found.gap / 2, abs=1e-12)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["loss", "likelihood_ratio"])
def test_a_forest_gives_its_members_away_and_a_line_does_not(method: str, bits: SeededBits) -> None:
    forest = attacked(RandomForestClassifier(n_estimators=12, random_state=0), bits, method=method)
    line = attacked(LogisticRegression(), bits, method=method)
    # 400 rows: chance has a standard error of 0.025 in the mean of the two shares.
    assert forest.success > 0.5 + 4 * 0.025
    assert line.success == pytest.approx(0.5, abs=4 * 0.025)


@pytest.mark.ci
def test_the_likelihood_ratio_finds_members_at_few_false_positives(bits: SeededBits) -> None:
    found = attacked(RandomForestClassifier(n_estimators=12, random_state=0), bits)
    assert found.power[0.05] > 0.05 + 4 * (0.05 * 0.95 / HALF) ** 0.5
    # Strangers: 200 at 5 %, 4 standard errors are 0.062.
    assert found.false_positives[0.05] == pytest.approx(0.05, abs=0.062)
    assert found.power[0.01] <= found.power[0.05]
    assert "false positives" in found.summary()


def test_the_accused_are_named(bits: SeededBits) -> None:
    found = attacked(DecisionTreeClassifier(random_state=0), bits)
    accused = np.zeros(2 * HALF, dtype=bool)
    accused[found.recovered] = True
    assert found.success == pytest.approx((accused[:HALF].mean() + 1 - accused[HALF:].mean()) / 2)


def test_a_model_without_probabilities_is_judged_by_its_labels(bits: SeededBits) -> None:
    members = made(50, bits)
    sure = certainty(RidgeClassifier().fit(*members), Pool(*members))
    assert len(set(np.round(np.abs(sure), 9))) == 1


def test_every_row_is_in_half_of_the_shadow_models(bits: SeededBits) -> None:
    found = shadow_models(DecisionTreeClassifier(), Pool(*made(31, bits)), 6, bits)
    assert (found.inside.sum(axis=0) == 3).all()


def test_a_shadow_model_is_not_judged_by_itself(bits: SeededBits) -> None:
    seen = shadow_models(DecisionTreeClassifier(max_depth=3), Pool(*made(40, bits)), 8, bits)
    score = by_likelihood_ratio(seen)
    row, kind = 7, seen.inside[:, 7]
    expected = [
        seen.sure[[s for s in range(8) if kind[s] == wanted and s != 2], row].mean() for wanted in (True, False)
    ]
    spreads = [
        max(1e-3, np.sqrt(np.mean((seen.sure - (seen.sure * k).sum(0) / k.sum(0))[k] ** 2)))
        for k in (seen.inside, ~seen.inside)
    ]
    logs = [-(((seen.sure[2, row] - m) / s) ** 2) / 2 - np.log(s) for m, s in zip(expected, spreads, strict=True)]
    assert score(seen.sure[2], 2)[row] == pytest.approx(logs[0] - logs[1])


def compared(bits: SeededBits, **other: Any) -> Any:
    return membership.compare(*made(2 * HALF, bits), bounds=(-3, 3), repeats=2, bits=bits, **other)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["loss", "likelihood_ratio"])
def test_private_models_stay_below_the_bound_and_a_tree_does_not(method: str, bits: SeededBits) -> None:
    found = compared(bits, method=method)
    assert [trial.defence for trial in found] == ["no defence", "regularised", "epsilon 0.1", "epsilon 1", "epsilon 10"]
    for trial in found.private:
        assert trial.finding.bound == pytest.approx(posterior(trial.epsilon, 0.5), abs=1e-6)
        assert trial.finding.success * 2 * HALF <= binom.ppf(1 - 1e-4, 2 * HALF, trial.finding.bound)
    strong = found["epsilon 0.1"]
    assert found.raw.success * 2 * HALF > binom.ppf(1 - 1e-4, 2 * HALF, strong.bound)
    assert found["regularised"].gap < found.raw.gap


@pytest.mark.ci
def test_with_the_noise_off_a_deep_tree_breaks_the_bound(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    # So deep that each row is nearly alone in its leaf: without noise this is learning by heart.
    honest = compared(SeededBits(1), epsilons=(0.1,), bins=16, depth=10)["epsilon 0.1"]
    assert honest.success * 2 * HALF <= binom.ppf(1 - 1e-4, 2 * HALF, honest.bound)
    monkeypatch.setattr(Laplace, "release", lambda _self, value, **_: value)
    monkeypatch.setattr(PermuteAndFlip, "choose", lambda _self, scores, **_: scores.argmax(axis=1))
    broken = compared(bits, epsilons=(0.1,), bins=16, depth=10)["epsilon 0.1"]
    assert broken.success * 2 * HALF > binom.ppf(1 - 1e-4, 2 * HALF, broken.bound)


def test_private_models_are_charged_for_one_row_replaced_by_another() -> None:
    # Members and strangers change places: the bound of the comparison is about this relation, and about pure DP.
    for epsilon in (0.1, 1, 10):
        event = private_tree(epsilon, bounds=(-3, 3), classes=(0, 1), cells=8, max_depth=4).plan_event(5)
        assert accounting.epsilon(event, 0, neighbours=Neighbours.REPLACE) == pytest.approx(epsilon, rel=1e-9)


def test_a_private_model_learns_when_there_are_many_rows(bits: SeededBits) -> None:
    features, labels = made(4000, bits)
    seeded = [
        private_tree(1, bounds=(-3, 3), classes=(0, 1), cells=8, max_depth=4, random_state=seed).fit(features, labels)
        for seed in (1, 2)
    ]
    truth = (features[:, 0] > 0).astype(int)
    assert np.mean(seeded[0].predict(features) == truth) > 0.9
    assert seeded[0].predict_proba(features).sum(axis=1) == pytest.approx(1.0)
    assert (seeded[0].counts_ != seeded[1].counts_).any()


def test_a_seed_repeats_everything() -> None:
    one, two = (compared(SeededBits(4), shadows=4, epsilons=(1,)) for _ in range(2))
    assert [trial.finding.success for trial in one] == [trial.finding.success for trial in two]


def test_an_event_gives_the_bound(bits: SeededBits) -> None:
    found = attacked(DecisionTreeClassifier(), bits, shadows=4, event=events.Pure(1))
    assert found.bound == pytest.approx(0.7311, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("method", {"method": "guess"}),
        ("shadows", {"shadows": 5}),
        ("shadows", {"shadows": 2}),
        ("members", {"members": ([[1.0], [2.0]], [0])}),
        ("others", {"others": ([[1.0, 2.0], [1.0, 2.0]], [0, 1])}),
        ("model", {"model": object()}),
    ],
)
def test_what_does_not_fit_is_refused(name: str, change: dict[str, Any]) -> None:
    rows = ([[0.0], [1.0], [2.0]], [0, 1, 0])
    given: dict[str, Any] = {"model": DecisionTreeClassifier().fit(*rows), "members": rows, "others": rows} | change
    with pytest.raises(InvalidParameter) as caught:
        membership(given.pop("model"), given.pop("members"), given.pop("others"), **given)
    assert caught.value.name == name


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ([[0.0], [1.0], [2.0]], [0, 1, 0])
    model = DecisionTreeClassifier().fit(*rows)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingExtra, match=r"\.\[learn\]"):
        membership(model, rows, rows)
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    with pytest.raises(MissingExtra, match=r"\.\[learn\]"):
        membership.compare([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], bounds=(0, 3))


def test_bounds_of_private_models_are_checked(bits: SeededBits) -> None:
    with pytest.raises(InvalidParameter) as caught:
        membership.compare(*made(2 * HALF, bits), bounds=(1, 0), shadows=4, epsilons=(1,), bits=bits)
    assert caught.value.name == "bounds"
