"""Learners store parameters, plan their price before the data, and account for it after `fit`.

Classifiers besides have classes, which are public or found in the labels for a part of the budget, also if none are
found. Rows and labels are checked as scikit-learn hands them over, in ways that depend on their shape and type only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, column_or_1d

from discreet import accounting, check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, float_above, lower
from discreet.learn.privacy_warnings import check_labels, remember_fit
from discreet.learn.row_inputs import bounds_by_place, rows_to_fit, rows_to_predict
from discreet.mechanisms import PartitionSelection
from discreet.noise import Bits, SeededBits, source_of
from discreet.privacy import ApproxDP, Loss, Neighbours, PureDP, events
from discreet.privacy.events import Approx, Composed, Event
from discreet.statistics.budget_split import Spending

SHARE = Fraction(1, 20)  # of epsilon, for finding undeclared classes
_HINT = "Classes are public: pass classes=[0, 1]. Without them they are found privately, which needs a delta."


class Learner(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """A scikit-learn estimator whose fitted attributes are differentially private.

    Formal guarantee: all fitted attributes together, for all data, are described by `event_`, which equals
    `plan_event(...)` computed from public facts before any row is seen. Parameters are never changed by `fit`. A fit is
    private only if `random_state` is None; a seed makes it repeat, and `private_` says so.

    Parameters that all learners have:
        epsilon, delta: what one fit may cost; delta=0 (or None) where the learner has a pure method.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`:
        event_: what was released.
        privacy_spent_: what that costs, a `PureDP` or an `ApproxDP` at the learner's delta.
        private_: False if the noise was seeded.
    """

    epsilon: Any
    delta: Any
    neighbours: Any
    random_state: Any
    event_: Event
    privacy_spent_: Loss
    private_: bool

    @abstractmethod
    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features, from public facts alone: reads no data, costs nothing."""

    def __sklearn_tags__(self) -> Any:
        """Missing values have a public meaning (the middle of the bounds), so they are welcome; so is sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    @property
    def _relation(self) -> Neighbours:
        return Neighbours(self.neighbours)

    @property
    def _bounds(self) -> Any:
        """Returns the public limits of the features, in their order, where they were given by name too."""
        names = getattr(self, "feature_names_in_", None)
        return bounds_by_place(getattr(self, "bounds", None), names, known=hasattr(self, "n_features_in_"))

    def _spending(self) -> Spending:
        return Spending.of(self.epsilon, self.delta)

    def _bits(self) -> Bits:
        """Returns the source of randomness: secure, unless a seed was asked for."""
        return bits_of(self.random_state)

    def _account(self, event: Event, bits: Bits) -> None:
        """Keeps what was released and what it cost; the last step of every fit."""
        self.event_ = event
        self.privacy_spent_ = price_event(event, self.epsilon, self.delta, self._relation)
        self.private_ = bits.private
        if bits.private:
            remember_fit(self.privacy_spent_)


def bits_of(random_state: Any) -> Bits:
    """Returns the source of randomness for a `random_state`: secure for None, seeded for an int."""
    if random_state is None:
        return source_of(None)
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        hint = "Use None for private results. An int is a seed for tests, and its results are not private."
        raise InvalidParameter("random_state", random_state, "to be None or an int", hint)
    return SeededBits(int(random_state))


def price_event(event: Event, epsilon: Any, delta: Any, neighbours: Neighbours) -> Loss:
    """Returns the cost of an event in the terms of what was asked: never more, and often a little less.

    Raises:
        InvalidParameter: if the event costs more than was asked, which would be our mistake.
    """
    budget = check.positive(epsilon=epsilon)
    slack = Fraction(0) if delta is None else check.not_negative(delta=delta)
    found = _find_epsilon(event, slack, neighbours)
    most = Fraction(float_above(budget))  # what is found is a float, rounded up
    if found > most:
        found = _apart(event, slack, neighbours)
    if found > most:
        raise InvalidParameter("epsilon", epsilon, f">= {float(found)}, what the plan costs")
    return PureDP(found) if slack == 0 else ApproxDP(found, slack)


@lru_cache(maxsize=256)
def _find_epsilon(event: Event, delta: Fraction, neighbours: Neighbours) -> Fraction:
    """Returns the least epsilon of an event; a learner that is fitted again has the same one."""
    return Fraction(accounting.epsilon(event, delta, neighbours=neighbours))


def _apart(event: Event, delta: Fraction, neighbours: Neighbours) -> Fraction:
    """Returns the cost with promises of an epsilon and a delta added: basic composition, for huge epsilons."""
    parts = event.events if isinstance(event, Composed) else (event,)
    promises = [part for part in parts if isinstance(part, Approx)]
    rest = [part for part in parts if not isinstance(part, Approx)]
    left = delta - sum((part.delta for part in promises), Fraction(0))
    cost = accounting.epsilon(Composed(rest), left, neighbours=neighbours) if rest else 0.0
    return Fraction(cost) + sum((part.epsilon for part in promises), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPlan:
    """How a classifier comes to know its classes, and what that leaves of its budget.

    Formal guarantee: finding classes is (epsilon / 20, delta / 2)-DP. Each row has one label, so the optimal rule of
    key selection holds under ADD_REMOVE; a replaced row is one removed and one added, which doubles its epsilon and
    multiplies its delta by 1 + e^epsilon (group privacy). The remaining budget is `rest`, and basic composition adds up
    to the whole.

    Attributes:
        declared: the public classes, sorted; None if they are to be found.
        rest: the budget of everything else.
        selection: how they are found.
        event: what that costs; None if nothing.
    """

    declared: NDArray[Any] | None
    rest: Spending
    selection: PartitionSelection | None
    event: Event | None

    @classmethod
    def of(cls, classes: Any, *, epsilon: Any, delta: Any, neighbours: Neighbours) -> ClassPlan:
        """Returns the plan for declared classes, or for None."""
        if classes is not None:
            return cls(declared=_check_classes(classes), rest=Spending.of(epsilon, delta), selection=None, event=None)
        if delta is None or delta == 0:
            raise InvalidParameter("classes", None, "to be given if delta=0", _HINT)
        budget, slack = check.positive(epsilon=epsilon), check.probability(delta=delta)
        part, chance = budget * SHARE, slack / 2
        selection = _selection(part, chance, neighbours)
        rest = Spending.of(budget - part, slack - chance)
        return cls(declared=None, rest=rest, selection=selection, event=events.Approx(part, chance))

    def compose_event(self, event: Event) -> Event:
        """Returns all that is released: finding the classes, if they had to be found, and the rest."""
        return event if self.event is None else events.Composed([self.event, event])

    def read(self, y: NDArray[Any], bits: Bits) -> NDArray[Any]:
        """Returns the classes, sorted: declared, or found among the labels; if none is found, the zero of their type.

        What is found depends on the labels through the selection alone, the type of the array included.
        """
        if self.declared is not None:
            check_labels(y, codes(y, self.declared))
            return self.declared
        selection = check.instance(PartitionSelection, selection=self.selection)
        if y.dtype.kind == "O":
            y = y[[label is not None and label == label for label in y]]  # noqa: PLR0124  # NaN differs from itself
        labels, counts = np.unique(y, return_counts=True)
        return _of_their_own(labels[selection.select(counts.astype(np.int64), bits=bits)])


def _of_their_own(found: NDArray[Any]) -> NDArray[Any]:
    """Returns at least one class, in an array whose type depends on these alone: texts are as wide as the longest."""
    kind = found.dtype.kind
    if kind in "SU":
        found = np.array(found.tolist(), dtype=kind)
    return found if len(found) else np.zeros(1, dtype=np.str_ if kind == "O" else found.dtype)


def codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Returns the place of each label among sorted classes, -1 for labels that are none of them.

    Such rows count nowhere. Labels that are objects, as tables hold them, are looked up one by one: they need not be
    comparable, and one that is missing among texts is no error.
    """
    if y.dtype.kind == "O":
        known = {label: place for place, label in enumerate(classes.tolist())}
        found = (known.get(label, -1) if isinstance(label, Hashable) else -1 for label in y)
        return np.fromiter(found, dtype=np.int64, count=len(y))
    places = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    return np.where(classes[places] == y, places, -1).astype(np.int64)


def _selection(epsilon: Fraction, delta: Fraction, neighbours: Neighbours) -> PartitionSelection:
    if neighbours is Neighbours.ADD_REMOVE:
        return PartitionSelection(epsilon=epsilon, delta=delta)
    half = epsilon / 2
    shrink = lower(lambda digits: 1 / (Enclosure.of(half, digits).exp() + 1))
    share = Fraction(int(shrink * 2**80), 2**80)
    if share == 0:
        raise InvalidParameter("classes", None, "to be given at this epsilon", _HINT)
    return PartitionSelection(epsilon=half, delta=delta * share)


def _check_classes(classes: Any) -> NDArray[Any]:
    found = np.asarray(classes)
    if found.ndim != 1 or found.size < 2 or len(np.unique(found)) != found.size:
        raise InvalidParameter("classes", classes, "to be at least two different labels", _HINT)
    return np.sort(found)


def read_labelled(model: Any, X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Returns rows and labels as arrays.

    No value in them is a reason to refuse, because a refusal would reveal that it occurs.

    Raises:
        ValueError: if their shapes or types do not fit.
    """
    X = rows_to_fit(model, X)
    labels = labels_of(model, y)
    check_consistent_length(X, labels)
    return X, labels


def labels_of(model: Any, y: Any) -> NDArray[Any]:
    """Returns labels as an array.

    Raises:
        InvalidValue: if there are none.
    """
    if y is None:
        name = type(model).__name__
        raise InvalidValue(f"to be labels; {name} requires y to be passed, but the target y is None", "Pass y.")
    return np.asarray(column_or_1d(y, warn=True))


def read_rows(model: Any, X: Any) -> NDArray[np.float64]:
    """Reads rows to be predicted."""
    return rows_to_predict(model, X)


class ClassifierBase(ClassifierMixin, Learner):  # type: ignore[misc]  # scikit-learn has no annotations
    """A learner of classes.

    Where classes are not declared they are found privately, and what is found is a release: fewer than two classes are
    an answer like any other. The model is then constant. It predicts the one class that was found or, if there was
    none, the zero of the labels' type (0, False or an empty text), with probability 1; its margins are 0.

    Attributes after `fit`, in addition to those of `Learner`:
        classes_: the labels, sorted; a single one for a constant model.
        constant_: whether the model is constant.
    """

    classes: Any
    classes_: NDArray[Any]

    @property
    def constant_(self) -> bool:
        """Returns whether fewer than two classes were found, so that the same is predicted for every row."""
        return len(self.classes_) < 2

    def _class_plan(self) -> ClassPlan:
        return ClassPlan.of(self.classes, epsilon=self.epsilon, delta=self.delta, neighbours=self._relation)

    def _affordable(self, event: Event) -> Event:
        """Returns the event of a fit, which must not turn out to cost more than was asked when all is released.

        Raises:
            InvalidParameter: if it would.
        """
        price_event(event, self.epsilon, self.delta, self._relation)
        return event


class ProbabilityClassifier(ClassifierBase):
    """A classifier that predicts what it finds most probable."""

    @abstractmethod
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Returns the probability of each class."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])
