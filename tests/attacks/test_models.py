"""Membership in training data: models that learnt by heart tell, private ones do not."""

import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from discreet.attacks import PrivateBayes, membership, posterior
from discreet.attacks.membership.shadows import Pool, by_likelihood_ratio, certainty, shadow_models
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import events

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


@pytest.mark.parametrize("method", ["loss", "likelihood_ratio"])
def test_a_forest_gives_its_members_away_and_a_line_does_not(method: str, bits: SeededBits) -> None:
    forest = attacked(RandomForestClassifier(n_estimators=12, random_state=0), bits, method=method)
    line = attacked(LogisticRegression(), bits, method=method)
    # 400 rows: chance has a standard error of 0.025 in the mean of the two shares.
    assert forest.success > 0.5 + 4 * 0.025
    assert line.success == pytest.approx(0.5, abs=4 * 0.025)


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


def test_with_the_noise_off_counts_of_many_bins_break_the_bound(
    bits: SeededBits, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So many bins that each row is nearly alone in its own: without noise this is learning by heart.
    honest = compared(SeededBits(1), epsilons=(0.1,), bins=2000)["epsilon 0.1"]
    assert honest.success * 2 * HALF <= binom.ppf(1 - 1e-4, 2 * HALF, honest.bound)
    monkeypatch.setattr(Laplace, "release", lambda _self, value, **_: value)
    broken = compared(bits, epsilons=(0.1,), bins=2000)["epsilon 0.1"]
    assert broken.success * 2 * HALF > binom.ppf(1 - 1e-4, 2 * HALF, broken.bound)


def test_one_row_moves_the_counts_by_what_the_noise_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def watched(mechanism: Laplace, counts: Any, **_: Any) -> Any:
        seen.append((counts.copy(), mechanism.sensitivity))
        return counts

    monkeypatch.setattr(Laplace, "release", watched)
    values = (-5.0, 0.2, 0.8, float("nan"))
    rows = [((a, b), label) for a, b, label in product(values, values, (0, 1, "other"))]
    fixed = [((0.1, 0.9), 1), ((0.9, 0.9), 0)]

    def counted(table: list[Any]) -> Any:
        labels = np.array([label for _, label in table], dtype=object)
        PrivateBayes(bounds=(0, 1), bins=3).fit([features for features, _ in table], labels)
        return seen[-1]

    tables = [counted([*fixed, row])[0] for row in rows]
    without, sensitivity = counted(fixed)
    replaced = max(np.abs(a - b).sum() for a in tables for b in tables)
    added = max(np.abs(a - without).sum() for a in tables)
    assert (added, replaced, sensitivity) == (2, 4, 4)


def test_a_private_model_learns_when_there_are_many_rows(bits: SeededBits) -> None:
    features, labels = made(4000, bits)
    model = PrivateBayes(epsilon=1, bounds=(-3, 3), random_state=1).fit(features, labels)
    truth = (features[:, 0] > 0).astype(int)
    assert np.mean(model.predict(features) == truth) > 0.9
    assert model.predict_proba(features).sum(axis=1) == pytest.approx(1.0)
    again = PrivateBayes(epsilon=1, bounds=(-3, 3), random_state=2).fit(features, labels)
    assert (again.log_shares_ != model.log_shares_).any()


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
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    rows = ([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(InvalidParameter, match=r"discreet\[learn\]"):
        membership(PrivateBayes().fit(*rows), rows, rows)


def test_a_private_model_refuses_bad_bounds_and_unknown_arguments() -> None:
    with pytest.raises(InvalidParameter) as caught:
        PrivateBayes(bounds=(1, 0)).fit([[0.5]], [0])
    assert caught.value.name == "bounds"
    with pytest.raises(InvalidParameter) as caught:
        PrivateBayes().set_params(depth=3)
    assert caught.value.name == "parameters"
