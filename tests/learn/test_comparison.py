"""How naive Bayes chooses: what a row moves in the comparison, what it costs, and never worse than the prior."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.learn import GaussianNB, from_json, to_json
from discreet.learn.linear import naive_bayes
from discreet.learn.linear.naive_bayes import CANDIDATES
from discreet.learn.noisy_moments import column_steps
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import Neighbours, events
from tests.learn.replayed import recorded
from tests.learn.spying import told

ADD, SWAP = "add_remove", "replace"
BASE = [(0.3, 0.2, 1), (-0.5, np.inf, 0), (0.9, -0.1, 2)]
ROWS = [(*pair, label) for pair in product((-1.0, -0.2, 0.5, np.nan), repeat=2) for label in (0, 1, 2, 7)]


def compared(rows: list[Any], neighbours: str, size: float = 1e3) -> tuple[Gaussian, Any]:
    """The last release of a fit, when all earlier ones say the same whatever the data."""
    table = np.array(rows, dtype=float).reshape(-1, 3)
    model = GaussianNB(bounds=(-1, 1), classes=[0, 1, 2], neighbours=neighbours, random_state=1)
    return recorded(Gaussian, lambda: model.fit(table[:, :2], table[:, 2]), size=size, first=3000)[-1]


def worst(neighbours: str) -> Fraction:
    """The largest squared move of the comparison between neighbours, over the square of its sensitivity."""
    heard = [compared([*BASE, row], neighbours) for row in ROWS]
    pairs = list(permutations(heard, 2)) if neighbours == SWAP else [(compared(BASE, ADD), one) for one in heard]
    squares = [Fraction(int(np.sum((a[1] - b[1]) ** 2))) / b[0].sensitivity ** 2 for a, b in pairs]
    return max(squares)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_no_row_moves_the_comparison_by_more_than_its_sensitivity(neighbours: str) -> None:
    assert Fraction(99, 100) < worst(neighbours) <= 1


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_a_comparison_that_counts_rows_twice_is_noticed(monkeypatch: pytest.MonkeyPatch, neighbours: str) -> None:
    honest = naive_bayes._votes
    monkeypatch.setattr(naive_bayes, "_votes", lambda *given: 2 * honest(*given))
    assert worst(neighbours) > 3


def test_a_replaced_row_compared_as_an_added_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = naive_bayes._comparison
    monkeypatch.setattr(naive_bayes, "_comparison", lambda rest, _: honest(rest, Neighbours.ADD_REMOVE))
    assert worst(SWAP) > 3


@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("classes", [[0, 1], None])
def test_what_is_drawn_is_what_was_planned_and_paid(neighbours: str, classes: Any) -> None:
    X, y = normals((300, 3), bits=SeededBits(3)), np.arange(300) % 2
    model = GaussianNB(epsilon=2, bounds=(-3, 3), classes=classes, neighbours=neighbours, random_state=1)
    sigmas = [one.sigma for one in told(lambda: model.fit(X, y))]
    assert model.event_ == model.plan_event(3)
    parts = model.event_ if classes else model.event_.events[1]  # type: ignore[attr-defined]
    assert isinstance(parts, events.Composed)
    last = parts.events[-1]
    assert isinstance(last, events.Gaussian)
    turned = 1 if neighbours == ADD else 4
    assert (sigmas[-1] / last.noise_multiplier) ** 2 >= turned * len(CANDIDATES)
    assert len(sigmas) == 4
    cost = accounting.epsilon(model.event_, 1e-6, neighbours=Neighbours(neighbours))
    assert (1.99 if classes else 1.7) < cost <= 2


def test_scores_of_a_row_are_the_same_in_every_table_and_those_of_predict() -> None:
    X = uniforms((2000, 4), bits=SeededBits(4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int) + (X[:, 2] > 0.9)
    model = GaussianNB(epsilon=5, bounds=(0, 1), classes=[0, 1, 2], random_state=2).fit(X, y)
    low, high = np.zeros(4), np.ones(4)
    steps = column_steps(X, low, high)
    for rule, one in zip(model._rules(low, high), CANDIDATES, strict=True):
        said = rule.predict(steps, steps * steps)
        alone = [rule.predict(steps[[i]], steps[[i]] ** 2)[0] for i in range(50)]
        assert said[:50].tolist() == alone
        model.temperature_ = float(one.temperature)
        kept = model.var_
        model.var_ = model._shared_variances() if one.pooled else kept
        assert np.mean(said == model.predict(X)) > 0.995  # but for rows on an edge, as steps are 1/4096 of a half
        model.var_ = kept


@pytest.mark.parametrize("variance", [0.0, 1e-30, 1e-9, 1.0])
def test_scores_never_overflow(variance: float) -> None:
    mean = np.array([[1.0] * 8, [-1.0] * 8])
    rule = naive_bayes._rule(
        mean, np.array([[variance] * 8, [2 * variance + 1e-6] * 8]), np.log([0.5, 0.5]), Fraction(1)
    )
    assert rule.squares is not None
    reach = [
        sum(
            abs(int(a)) * 2**12 + abs(int(b)) * 2**24 for a, b in zip(rule.steps[:, k], rule.squares[:, k], strict=True)
        )
        + abs(int(rule.constant[k]))
        for k in range(2)
    ]
    assert max(reach) < 2**62


def test_probabilities_agree_with_predictions_and_are_stored() -> None:
    X = uniforms((500, 2), bits=SeededBits(6))
    y = (X[:, 0] > 0.3).astype(int)
    model = GaussianNB(epsilon=1, bounds=(0, 1), classes=[0, 1], random_state=2).fit(X, y)
    for temperature in (0.0, 0.125, 1.0):
        model.temperature_ = temperature
        joint = model.predict_joint_log_proba(X)
        assert (model.classes_[joint.argmax(axis=1)] == model.predict(X)).all()
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
        assert (from_json(to_json(model)).predict_proba(X) == model.predict_proba(X)).all()
    model.temperature_ = 0.0
    assert np.allclose(model.predict_proba([[1e200, -1e200]])[0], model.class_prior_)


@pytest.mark.parametrize("share", [0.75, 0.9])
@pytest.mark.parametrize("epsilon", [1, 10])
def test_labels_that_nothing_predicts_leave_the_majority(share: float, epsilon: int) -> None:
    """The chosen one beats the prior by noisy counts, so it falls short of it by at most the noise of two counts.

    A count of right rows has the deviation sigma / 2. The difference of two exceeds z sigma / sqrt 2 with a chance of
    at most 4 P(N > z) in one fit, over four candidates: z = 5.5 leaves 3e-6 for all forty fits.
    """
    rows, columns = 800, 6
    for seed in range(10):
        bits = SeededBits(seed)
        X = np.round(uniforms((rows, columns), bits=bits))
        y = (uniforms((rows,), bits=bits) > share).astype(int)
        model = GaussianNB(epsilon=epsilon, bounds=(0, 1), classes=[0, 1], random_state=seed)
        sigma = float(told(lambda model=model, X=X, y=y: model.fit(X, y))[-1].sigma)  # type: ignore[misc]
        right, prior = np.mean(model.predict(X) == y), np.mean(y == np.argmax(model.class_prior_))
        assert right >= prior - 5.5 * sigma / math.sqrt(2) / rows - 1e-9
        assert prior == max(np.mean(y == 0), np.mean(y == 1))


def test_correlated_features_no_longer_mislead() -> None:
    """One weak feature forty times: naive Bayes is sure, and wrong about the rarer class; without a choice it fails."""
    bits = SeededBits(7)
    y = (uniforms((20_000,), bits=bits) > 0.85).astype(int)
    weak = np.clip(normals((20_000, 1), bits=bits) + 0.5 * y[:, None], -3, 3)
    X = np.repeat(weak, 40, axis=1)
    model = GaussianNB(epsilon=1, bounds=(-3, 3), classes=[0, 1], random_state=1).fit(X, y)
    assert model.score(X, y) > 0.845
    model.temperature_ = 1.0
    assert model.score(X, y) < 0.75
