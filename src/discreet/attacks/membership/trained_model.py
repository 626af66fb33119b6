"""Membership in the training data of a model: a model is surer of the rows it was trained on.

Shadow models, copies of an estimator trained on random halves, show how members look to a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, check
from discreet.attacks.attack import beside, compare_trials, posterior
from discreet.attacks.membership.score_threshold import threshold_of
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import load
from discreet.noise import Bits, source_of
from discreet.noise.experiment import shuffle_indices
from discreet.privacy.events import Event, Pure
from discreet.report.attack_finding import RAW, Comparison, Finding, Trial
from discreet.report.display import rate

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST = 1e-6  # confidences are held to [LEAST, 1 - LEAST] before the logarithm
LEAST_SPREAD = 1e-3  # of confidences about their mean


@dataclass(frozen=True, slots=True)
class Pool:
    """Holds rows and their labels."""

    features: NDArray[Any]
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, places: NDArray[Any]) -> Pool:
        """Returns some of the rows."""
        return Pool(self.features[places], self.labels[places])


@dataclass(frozen=True, slots=True)
class Shadows:
    """Holds how sure shadow models are of the right label: a row for each model, a column for each row of the pool.

    Attributes:
        sure: logits of confidences.
        inside: which rows each model was trained on; every row by half of the models.
    """

    sure: Floats
    inside: Mask


def clone(model: Any, bits: Bits) -> Any:
    """Returns an untrained copy, with a seed of its own if it takes one: experiments repeat, and protect no data.

    Raises:
        MissingExtra: without scikit-learn.
        InvalidParameter: if it is no estimator.
    """
    copy = load("sklearn.base", WHAT).clone
    if not (hasattr(model, "get_params") and hasattr(model, "fit") and hasattr(model, "predict")):
        hint = "Pass a classifier like those of scikit-learn."
        raise InvalidParameter("model", type(model).__name__, "to be a classifier", hint)
    fresh = copy(model)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=bits.integer(31))
    return fresh


def train_copy(model: Any, pool: Pool, bits: Bits) -> Any:
    """Returns a fresh copy, trained on these rows."""
    return clone(model, bits).fit(pool.features, pool.labels)


def shadow_models(model: Any, pool: Pool, count: int, bits: Bits) -> Shadows:
    """Trains models on random halves of a pool and on their complements, so that each row is in half of them."""
    inside = np.zeros((count, len(pool)), dtype=bool)
    for pair in range(0, count, 2):
        half = shuffle_indices(len(pool), bits=bits)[: len(pool) // 2]
        inside[pair, half] = True
        inside[pair + 1] = ~inside[pair]
    sure = [certainty(train_copy(model, pool.at(chosen), bits), pool) for chosen in inside]
    return Shadows(np.array(sure), inside)


def certainty(model: Any, pool: Pool) -> Floats:
    """Returns the logit of the probability that a model gives to the right label.

    Of a model without probabilities, +-logit.
    """
    if not hasattr(model, "predict_proba"):
        right = np.asarray(model.predict(pool.features)) == pool.labels
        shares = right.astype(np.float64)
    else:
        found, classes = np.asarray(model.predict_proba(pool.features), dtype=np.float64), np.asarray(model.classes_)
        shares = np.where(pool.labels[:, None] == classes, found, 0.0).sum(axis=1)
    held = np.clip(shares, LEAST, 1 - LEAST)
    return np.asarray(np.log(held / (1 - held)))


def accuracy(model: Any, pool: Pool) -> float:
    """Returns the share of rows that a model labels rightly."""
    return float(np.mean(np.asarray(model.predict(pool.features)) == pool.labels))


Score = Callable[[Floats, int | None], Floats]
"""Scores of the pool from how sure a model is of each row; the number of a shadow model leaves that one out."""


def by_loss(seen: Shadows) -> Score:  # noqa: ARG001 - shadows only set the threshold
    """Returns scores by the loss: the surer a model is of a row, the likelier the row was trained on."""
    return lambda sure, _: sure


def by_likelihood_ratio(seen: Shadows) -> Score:
    """Returns log N(sure; in) - log N(sure; out), a mean for each row, one variance each (Carlini et al. 2022).

    The paper takes common variances where there are few shadow models, as here.
    """
    sure, inside = seen.sure, seen.inside
    sums = [(sure * kind).sum(axis=0) for kind in (inside, ~inside)]
    counts = [kind.sum(axis=0) for kind in (inside, ~inside)]
    spreads = [
        max(LEAST_SPREAD, float(np.sqrt(np.mean((sure - total / count)[kind] ** 2))))
        for total, count, kind in zip(sums, counts, (inside, ~inside), strict=True)
    ]

    def score(observed: Floats, left_out: int | None) -> Floats:
        densities = []
        for total, count, kind, spread in zip(sums, counts, (inside, ~inside), spreads, strict=True):
            less = 0 if left_out is None else kind[left_out]
            own = 0.0 if left_out is None else sure[left_out] * kind[left_out]
            mean = (total - own) / (count - less)
            densities.append(-(((observed - mean) / spread) ** 2) / 2 - np.log(spread))
        return np.asarray(densities[0] - densities[1])

    return score


WHAT = "An attack on training data"  # needs scikit-learn
Method = Literal["likelihood_ratio", "loss"]
SCORES = {"likelihood_ratio": by_likelihood_ratio, "loss": by_loss}
NAMES = {"likelihood_ratio": "Membership by likelihood ratio", "loss": "Membership by loss"}
RATES = (0.05, 0.01)  # of false positives at which the power is reported


@dataclass(frozen=True, kw_only=True)
class Membership(Finding):
    """Reports who was taken for a member of the training data, among as many strangers.

    `recovered` holds the places of the accused, members first, then others. Success is the mean of two shares: members
    called members, and others called others.

    Attributes:
        gap: by how much the model is righter on members than on others.
        power: by the allowed rate of false positives, the share of members accused.
        false_positives: by the allowed rate, the share of others who were accused.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from discreet.noise import SeededBits
    >>> from discreet.noise.experiment import coins, normals
    >>> bits = SeededBits(1)
    >>> features, labels = normals((80, 3), bits=bits), coins(80, bits=bits)  # nothing to be learned
    >>> model = KNeighborsClassifier(weights="distance").fit(features[:40], labels[:40])
    >>> attack_model = membership(
    ...     model, (features[:40], labels[:40]), (features[40:], labels[40:]), shadows=8, bits=bits
    ... )
    >>> attack_model.success, attack_model.power, attack_model.false_positives
    (1.0, {0.05: 1.0, 0.01: 0.55}, {0.05: 0.0, 0.01: 0.0})
    """

    gap: float
    power: dict[float, float]
    false_positives: dict[float, float]

    def details(self) -> tuple[str, ...]:
        """Returns what the model gives away at few false positives, and how much it fits its data too well."""
        found = [
            f"{rate(power)} of members at {rate(allowed)} false positives" for allowed, power in self.power.items()
        ]
        return f"Found: {', '.join(found)}.", f"The model is more accurate on members by {100 * self.gap:.1f} points."


def compare(
    features: Any,
    labels: Any,
    *,
    bounds: tuple[float, float],
    model: Any = None,
    regularised: Any = None,
    epsilons: Iterable[float] = (0.1, 1, 10),
    bins: int = 8,
    depth: int = 4,
    method: Method = "likelihood_ratio",
    shadows: int = 16,
    repeats: int = 10,
    bits: Bits | None = None,
) -> Comparison:
    """Compares the attack on a model that learnt by heart, on a regularised one, and on private ones.

    Half of the rows, at random, are the training data. Formal guarantee of the private models, which are trees of
    `discreet.learn.DecisionTreeClassifier`: epsilon-DP for one row replaced by another. Training data with a member and
    with a stranger in the member's place are such neighbours, so that no attack separates members from strangers with
    more success than e^epsilon / (1 + e^epsilon).

    Args:
        features: one row for each person.
        labels: the class of each; which classes there are is public.
        bounds: of all features, public, for the private models.
        model: an untrained classifier; None is a decision tree without limits.
        regularised: an untrained classifier; None is a decision tree with at least a twentieth of the rows in a leaf.
        epsilons: each for a whole model.
        bins: of each feature in the private models; splits lie between them.
        depth: of the private models.
        method: "likelihood_ratio" or "loss".
        shadows: how many shadow models, an even number.
        repeats: private models at each epsilon, over which findings are averaged.
        bits: source of randomness.

    Raises:
        MissingExtra: if scikit-learn is not installed.
    """
    pool, source = _pool(features=(features, labels)), source_of(bits)
    order, half = shuffle_indices(len(pool), bits=source), len(pool) // 2
    inside, outside = pool.at(order[:half]), pool.at(order[half : 2 * half])
    classes = tuple(np.unique(pool.labels).tolist())
    chosen = sorted(float(check.positive(epsilons=epsilon)) for epsilon in epsilons)
    times = check.integer(repeats=repeats, at_least=1)

    def attack_model(estimator: Any, epsilon: float | None = None) -> Membership:
        return membership(
            train_copy(estimator, inside, source),
            (inside.features, inside.labels),
            (outside.features, outside.labels),
            method=method,
            shadows=shadows,
            event=None if epsilon is None else Pure(epsilon),
            bits=source,
        )

    def private(epsilon: float) -> Membership:
        estimator = private_tree(epsilon, bounds=bounds, cells=bins, max_depth=depth, classes=classes)
        return _average_findings([attack_model(estimator, epsilon) for _ in range(times)])

    ad_hoc = {
        RAW: attack_model(_tree(1) if model is None else model),
        "regularised": attack_model(_tree(max(1, half // 20)) if regularised is None else regularised),
    }
    trials = [Trial(defence=name, epsilon=None, finding=finding) for name, finding in ad_hoc.items()]
    trials += [Trial(defence=f"epsilon {e:g}", epsilon=e, finding=private(e)) for e in chosen]
    return compare_trials(trials, bound=lambda epsilon: posterior(epsilon, 0.5))


def _average_findings(findings: Sequence[Membership]) -> Membership:
    """Returns findings on several models of the same data as one; the accused are those of the last."""
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
    return load("sklearn.tree", WHAT).DecisionTreeClassifier(min_samples_leaf=leaf)


def private_tree(epsilon: float, **other: Any) -> Any:
    """Returns an untrained tree that is epsilon-DP for one row replaced by another."""
    return load("discreet.learn", WHAT).DecisionTreeClassifier(epsilon=epsilon, neighbours="replace", **other)


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
    """Separates members of a model's training data from strangers by how sure the model is of them.

    "loss" accuses those the model is sure enough of (Yeom, Giacomelli, Fredrikson, Jha 2018). Its predicted success is
    1/2 + gap/2: an attacker who accuses those that the model labels correctly reaches this exactly, gap being the
    model's accuracy on members less that on others (their Theorem 2). "likelihood_ratio" compares how sure the model is
    of a row with how sure shadow models are that were, and were not, trained on it (Carlini et al. 2022). Shadow models
    are untrained copies of the model fitted to random halves of members and others together, and set all thresholds:
    the attacker knows these rows and how the model is made, but not which rows it was trained on.

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

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from discreet.noise import SeededBits
    >>> from discreet.noise.experiment import coins, normals
    >>> bits = SeededBits(1)
    >>> features, labels = normals((80, 3), bits=bits), coins(80, bits=bits)
    >>> model = DecisionTreeClassifier(random_state=0).fit(features[:40], labels[:40])
    >>> rows = (features[:40], labels[:40]), (features[40:], labels[40:])
    >>> print(membership(model, *rows, method="loss", shadows=4, bits=bits))
    Membership by loss
    attack succeeds (95 % interval)  75 % (65 % to 83 %) of 80 members and strangers separated
    by guessing                      50 %
    as predicted                     75 %
    verdict                          better than a guess; no guarantee limits it
    - Found: 0 % of members at 5 % false positives, 0 % of members at 1 % false positives.
    - The model is more accurate on members by 50.0 points.
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
        goal="members and strangers separated",
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
    """Returns the score above which accusations separate shadow models' members from others best."""
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
        raise InvalidParameter("others", widths, "to have the features of members", "Pass the same columns for both.")
    features = np.concatenate([inside.features, outside.features])
    return Pool(features, np.concatenate([inside.labels, outside.labels]))
