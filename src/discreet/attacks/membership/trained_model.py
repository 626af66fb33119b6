"""Membership in the training data of a model: whoever it has seen, it is surer of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from discreet import accounting, check
from discreet.attacks.attack import beside
from discreet.attacks.ceiling import compared, posterior
from discreet.attacks.membership.private_model import PrivateBayes
from discreet.attacks.membership.score_threshold import threshold_of
from discreet.attacks.membership.shadows import (
    Floats,
    Pool,
    accuracy,
    by_likelihood_ratio,
    by_loss,
    certainty,
    shadow_models,
    trained,
)
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.noise.experiment import shuffled
from discreet.privacy.events import Event, Pure
from discreet.report.display import rate
from discreet.report.finding import RAW, Comparison, Finding, Trial

Method = Literal["likelihood_ratio", "loss"]
SCORES = {"likelihood_ratio": by_likelihood_ratio, "loss": by_loss}
NAMES = {"likelihood_ratio": "Membership by likelihood ratio", "loss": "Membership by loss"}
RATES = (0.05, 0.01)  # of false positives at which the power is reported


@dataclass(frozen=True, kw_only=True)
class Membership(Finding):
    """Who was taken for a member of the training data, among as many strangers.

    `recovered` holds the places of the accused, members first, then others. Success is the mean of the shares of
    members and of others told rightly.

    Attributes:
        gap: by how much the model is righter on members than on others.
        power: by the allowed rate of false positives, the share of members accused.
        false_positives: by the allowed rate, the share of others who were accused.
    """

    gap: float
    power: dict[float, float]
    false_positives: dict[float, float]

    def details(self) -> tuple[str, ...]:
        """What the model gives away at a low rate of false positives, and how much it fits its data too well."""
        found = [
            f"{rate(power)} of members at {rate(allowed)} false positives" for allowed, power in self.power.items()
        ]
        return f"Found: {', '.join(found)}.", f"The model is righter on members by {100 * self.gap:.1f} points."


def compare(
    features: Any,
    labels: Any,
    *,
    bounds: tuple[float, float],
    model: Any = None,
    regularised: Any = None,
    epsilons: Iterable[float] = (0.1, 1, 10),
    bins: int = 8,
    method: Method = "likelihood_ratio",
    shadows: int = 16,
    repeats: int = 10,
    bits: Bits | None = None,
) -> Comparison:
    """The attack on a model that learnt by heart, on a regularised one, and on private ones.

    Half of the rows, at random, are the training data. Formal guarantee of the private models (`PrivateBayes`):
    epsilon-DP for one row replaced by another. Training data with a member and with a stranger in the member's place
    are such neighbours, so that nobody tells members from strangers with more than e^epsilon / (1 + e^epsilon).

    Args:
        features: one row for each person.
        labels: the class of each; which classes there are is public.
        bounds: of all features, public, for the private models.
        model: an untrained classifier; None is a decision tree without limits.
        regularised: an untrained classifier; None is a decision tree with at least a twentieth of the rows in a leaf.
        epsilons: each for a whole model.
        bins: of each feature in the private models.
        method: "likelihood_ratio" or "loss".
        shadows: how many shadow models, an even number.
        repeats: private models at each epsilon, over which findings are averaged.
        bits: source of randomness.
    """
    pool, source = _pool(features=(features, labels)), source_of(bits)
    order, half = shuffled(len(pool), bits=source), len(pool) // 2
    inside, outside = pool.at(order[:half]), pool.at(order[half : 2 * half])
    classes = tuple(np.unique(pool.labels).tolist())
    chosen = sorted(float(check.positive(epsilons=epsilon)) for epsilon in epsilons)
    times = check.integer(repeats=repeats, at_least=1)

    def found(estimator: Any, epsilon: float | None = None) -> Membership:
        return membership(
            trained(estimator, inside, source),
            (inside.features, inside.labels),
            (outside.features, outside.labels),
            method=method,
            shadows=shadows,
            event=None if epsilon is None else Pure(epsilon),
            bits=source,
        )

    def private(epsilon: float) -> Membership:
        estimator = PrivateBayes(epsilon=epsilon, bounds=bounds, bins=bins, classes=classes)
        return _averaged([found(estimator, epsilon) for _ in range(times)])

    ad_hoc = {
        RAW: found(_tree(1) if model is None else model),
        "regularised": found(_tree(max(1, half // 20)) if regularised is None else regularised),
    }
    trials = [Trial(defence=name, epsilon=None, finding=finding) for name, finding in ad_hoc.items()]
    trials += [Trial(defence=f"epsilon {e:g}", epsilon=e, finding=private(e)) for e in chosen]
    return compared(trials, bound=lambda epsilon: posterior(epsilon, 0.5))


def _averaged(findings: Sequence[Membership]) -> Membership:
    """Findings on several models of the same data as one; the accused are those of the last."""
    return replace(
        findings[-1],
        success=float(np.mean([found.success for found in findings])),
        targets=sum(found.targets for found in findings),
        gap=float(np.mean([found.gap for found in findings])),
        power={allowed: float(np.mean([found.power[allowed] for found in findings])) for allowed in RATES},
        false_positives={
            allowed: float(np.mean([found.false_positives[allowed] for found in findings])) for allowed in RATES
        },
    )


def _tree(leaf: int) -> Any:
    try:
        from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - an extra
    except ImportError:
        hint = "Install the extra: pip install 'discreet[learn]'."
        raise InvalidParameter("model", None, "to be a decision tree of scikit-learn", hint) from None
    return DecisionTreeClassifier(min_samples_leaf=leaf)


@beside(compare)
def membership(
    model: Any,
    members: tuple[Any, Any],
    others: tuple[Any, Any],
    *,
    method: Method = "likelihood_ratio",
    shadows: int = 16,
    event: Event | None = None,
    bits: Bits | None = None,
) -> Membership:
    """Tells members of a model's training data from strangers by how sure the model is of them.

    "loss" accuses whoever the model is sure enough of (Yeom, Giacomelli, Fredrikson, Jha 2018). Its predicted success
    is 1/2 + gap/2: whoever accuses those that are labelled rightly reaches this exactly, gap being the model's accuracy
    on members less that on others (their Theorem 2). "likelihood_ratio" compares how sure the model is of a row with
    how sure shadow models are that were, and were not, trained on it (Carlini et al. 2022). Shadow models are untrained
    copies of the model fitted to random halves of members and others together, and set all thresholds: the attacker
    knows these rows and how the model is made, but not which rows it was trained on.

    Args:
        model: a trained classifier of scikit-learn's kind.
        members: features and labels of rows it was trained on.
        others: features and labels of rows it has not seen.
        method: which score.
        shadows: how many shadow models, an even number.
        event: the guarantee of the model about a row, for the bound.
        bits: source of randomness, for the halves and the seeds of shadow models.

    Raises:
        InvalidParameter: if the model cannot be copied, or tables do not fit.
    """
    if method not in SCORES:
        raise InvalidParameter("method", method, f"to be one of {', '.join(SCORES)}", "See the documentation of each.")
    count, source = check.integer(shadows=shadows, at_least=4), source_of(bits)
    if count % 2:
        raise InvalidParameter("shadows", shadows, "to be even", "Each half of the rows is used with its complement.")
    inside, outside = _pool(members=members), _pool(others=others)
    pool = _together(inside, outside)
    seen = shadow_models(model, pool, count, source)
    score = SCORES[method](seen)
    among = np.array([score(sure, place) for place, sure in enumerate(seen.sure)])
    found = score(certainty(model, pool), None)
    ours, theirs = found[: len(inside)], found[len(inside) :]
    accused = found > _best_threshold(among[seen.inside], among[~seen.inside])
    limits = {allowed: threshold_of(among[~seen.inside], allowed) for allowed in RATES}
    gap = accuracy(model, inside) - accuracy(model, outside)
    return Membership(
        attack=NAMES[method],
        goal="members and strangers told apart",
        success=float(accused[: len(inside)].mean() + 1 - accused[len(inside) :].mean()) / 2,
        baseline=0.5,
        targets=len(pool),
        predicted=0.5 + gap / 2 if method == "loss" else None,
        bound=None if event is None else accounting.risk(event).guess,
        recovered=np.flatnonzero(accused),
        gap=gap,
        power={allowed: float(np.mean(ours > limit)) for allowed, limit in limits.items()},
        false_positives={allowed: float(np.mean(theirs > limit)) for allowed, limit in limits.items()},
    )


def _best_threshold(inside: Floats, outside: Floats) -> float:
    """The score above which accusations tell shadow models' members from others best."""
    places = np.unique(np.concatenate([inside, outside]))
    found = [1 - np.searchsorted(np.sort(part), places, side="right") / len(part) for part in (inside, outside)]
    return float(places[np.argmax(found[0] - found[1])])


def _pool(**parameter: Any) -> Pool:
    ((name, (features, labels)),) = parameter.items()
    table, given = np.asarray(features), np.asarray(labels)
    if table.ndim != 2 or given.shape != (len(table),) or len(table) < 2:
        shapes = (table.shape, given.shape)
        raise InvalidParameter(name, shapes, "to be a table and a label for each of its rows", "At least two rows.")
    return Pool(table, given)


def _together(inside: Pool, outside: Pool) -> Pool:
    if inside.features.shape[1] != outside.features.shape[1]:
        widths = (inside.features.shape[1], outside.features.shape[1])
        raise InvalidParameter("others", widths, "to have the features of members", "The same columns for everybody.")
    features = np.concatenate([inside.features, outside.features])
    return Pool(features, np.concatenate([inside.labels, outside.labels]))
