"""A scikit-learn pipeline of public and private steps, with one price: all that its private steps release."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline as PlainPipeline
from sklearn.utils.validation import validate_data

from discreet import check
from discreet.errors import InternalError, InvalidParameter
from discreet.lazy import nw
from discreet.learn.learner import Learner, price_event
from discreet.learn.pipelines.public_steps import Flow, follow, learners_in
from discreet.learn.privacy_warnings import in_an_account, note_table, remember_fit
from discreet.learn.row_inputs import convert_table, dense, is_table
from discreet.privacy import Loss, Neighbours
from discreet.privacy.events import Composed, Event

SHARED = ("epsilon", "delta", "neighbours", "random_state")
"""What private steps have in common, and `set_params` of a pipeline sets for all of them."""


class Pipeline(PlainPipeline):  # type: ignore[misc]  # scikit-learn has no annotations
    """Steps that end with a private learner: scikit-learn's `Pipeline`, whose price is known before the rows.

    A step is public, if its fit reads nothing (`PublicOneHotEncoder`, `PublicOrdinalEncoder`, `PublicScaler`, and
    scikit-learn's OneHotEncoder, OrdinalEncoder, SimpleImputer, ColumnTransformer where everything is declared), or a
    learner of this library, which pays for itself. A step that reads rows without privacy is refused.

    `set_params(epsilon=..., delta=...)` divides a budget among the private steps in the proportion of their own;
    `neighbours` and `random_state` are set for all.

    Args:
        steps: pairs of a name and a step, as in scikit-learn.

    Attributes after `fit`:
        event_, privacy_spent_, private_: as for every learner, of all steps together.
        columns_seen_: the name, or None, and the type of each column of the rows; both are public.

    Formal guarantee: a public step makes of each row a function of that row, so that neighbours stay neighbours. A
    private step releases its event, and what it makes of a row is a function of that row and of the release. So all
    steps together are an adaptive composition of their events, `event_`, which equals `plan_event(...)`.

    >>> from discreet.learn import DecisionTreeClassifier, PublicOneHotEncoder
    >>> tree = DecisionTreeClassifier(epsilon=2, bounds=(0, 1), classes=[0, 1], random_state=1)
    >>> model = Pipeline([("codes", PublicOneHotEncoder(categories=[["A", "B"]])), ("tree", tree)])
    >>> rows = [["A"], ["B"]] * 500
    >>> print(model.fit(rows, [0, 1] * 500).predict([["B"]]), model.privacy_spent_)
    [1] epsilon=2
    """

    memory = None
    verbose = False
    transform_input = None
    event_: Event
    privacy_spent_: Loss
    private_: bool
    columns_seen_: list[list[Any]]

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    @classmethod
    def of(cls, estimator: Any) -> Any:
        """Returns scikit-learn's pipeline as one of ours, with the same steps; anything else as it is."""
        if type(estimator) is not PlainPipeline:
            return estimator
        if estimator.memory is not None:
            raise InvalidParameter("memory", estimator.memory, "to be None", "A cache on disk would keep private rows.")
        return cls([(name, step) for name, step in estimator.steps])

    def plan_event(self, n_features: int, feature_names: Sequence[str] | None = None) -> Event:
        """Returns the event of a fit on so many columns: what all private steps release, from public facts alone.

        Args:
            n_features: how many columns the rows have.
            feature_names: their names; without them they are taken to be what steps call them.

        Raises:
            InvalidParameter: if a step reads rows without privacy, or no step is private.
        """
        found = follow(self, Flow.of(n_features, feature_names))
        self._check_last()
        return found.events[0] if len(found.events) == 1 else Composed(found.events)

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fits all steps, one after the other.

        Raises:
            InvalidParameter: if a step reads rows without privacy, before anything is read.
        """
        if params:
            hint = "Each row may count at most once. Declare class_weight if a learner has it."
            raise InvalidParameter("fit", sorted(params), "to have no parameters but X and y", hint)
        X = convert_table(X)
        columns = columns_of(X)
        names = [name for name, _ in columns]
        event = self.plan_event(len(columns), None if None in names else names)
        note_table(X)
        with in_an_account():
            super().fit(X, y)
        self.columns_seen_ = columns
        self._account(event)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fits, and transforms the rows that were given: not a private release, unlike the model."""
        return self.fit(X, y, **params).transform(X)

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fits, and predicts the rows that were given: not a private release, unlike the model."""
        return self.fit(X, y, **params).predict(X)

    def _account(self, event: Event) -> None:
        """Keeps what was released: it must be what was planned."""
        learners = list(learners_in(self, fitted=True))
        events = [each.event_ for each in learners]
        if event != (events[0] if len(events) == 1 else Composed(events)):
            raise InternalError("A pipeline released something else than it planned.")
        self.event_ = event
        self.privacy_spent_ = price_event(event, self.epsilon, self.delta, Neighbours(self.neighbours))
        self.private_ = all(each.private_ for each in learners)
        if self.private_:
            remember_fit(self.privacy_spent_)

    # -------------------------------------------------------------------------------------------------------- budget

    @property
    def epsilon(self) -> Fraction:
        """Returns what all private steps may cost together."""
        return sum((check.positive(epsilon=each.epsilon) for each in self._learners()), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """Returns the deltas of all private steps together."""
        return sum((check.not_negative(delta=each.delta or 0) for each in self._learners()), Fraction(0))

    @property
    def neighbours(self) -> str:
        """Returns the relation that all private steps protect.

        Raises:
            InvalidParameter: if they differ, since there is no price for that.
        """
        found = {Neighbours(each.neighbours) for each in self._learners()}
        if len(found) > 1:
            raise InvalidParameter("neighbours", sorted(one.value for one in found), "to be the same in all steps")
        return str(found.pop().value)

    @property
    def random_state(self) -> Any:
        """Returns None, unless a private step has a seed."""
        return next((each.random_state for each in self._learners() if each.random_state is not None), None)

    @property
    def label_bounds(self) -> Any:
        """Returns the public limits of labels that the last step was given."""
        return getattr(self.steps[-1][1], "label_bounds", None)

    @property
    def constant_(self) -> bool:
        """Returns whether the last step found fewer than two classes, so that it predicts the same for every row."""
        return bool(getattr(self.steps[-1][1], "constant_", False))

    def set_params(self, **params: Any) -> Self:
        """Sets parameters of steps by their names; those that private steps have in common are divided or shared."""
        shared = {name: params.pop(name) for name in SHARED if name in params}
        super().set_params(**params)
        self._share(shared)
        return self

    def _share(self, shared: dict[str, Any]) -> None:
        learners = self._learners()
        for name in ("epsilon", "delta"):
            if name in shared:
                self._divide(name, shared[name], learners)
        for place, each in enumerate(learners):
            if "neighbours" in shared:
                each.set_params(neighbours=shared["neighbours"])
            if "random_state" in shared:
                seed = shared["random_state"]
                each.set_params(random_state=None if seed is None else seed + place)

    def _divide(self, name: str, total: Any, learners: Sequence[Learner]) -> None:
        """Divides an amount among learners, in the proportion of what they have; those that have none get none."""
        parts = [check.not_negative(amount=getattr(each, name) or 0) for each in learners]
        whole = sum(parts, Fraction(0))
        amount = check.not_negative(amount=total or 0)
        for each, part in zip(learners, parts, strict=True):
            share = amount * part / whole if whole else amount / len(learners)
            each.set_params(**{name: total if len(learners) == 1 else share})

    def _learners(self) -> list[Learner]:
        found = list(learners_in(self))
        if not found:
            raise InvalidParameter("steps", [name for name, _ in self.steps], "to have a private step", _LAST)
        return found

    def _check_last(self) -> None:
        if not isinstance(self.steps[-1][1], Learner):
            raise InvalidParameter("steps", self.steps[-1][0], "to end with a private learner", _LAST)

    # ---------------------------------------------------------------------------------------------------------- rows

    def apply_public_steps(self, X: Any) -> tuple[Any, Any]:
        """Returns rows after the public steps that come first, and the remaining steps.

        Public steps look values up or scale each one alone, so that no row's numbers depend on other rows.
        """
        place = next(i for i, (_, step) in enumerate(self.steps) if any(True for _ in learners_in(step)))
        for _, step in self.steps[:place]:
            X = X if step in (None, "passthrough") else step.transform(X)
        rest = self.steps[-1][1] if place == len(self.steps) - 1 else PlainPipeline(self.steps[place:])
        return (X if is_table(X) else dense(X)), rest


_LAST = "End with one of discreet's learners, such as LogisticRegression."


def columns_of(X: Any) -> list[list[Any]]:
    """Returns the name of each column, or None, and its type: "text", or that of its numbers."""
    if is_table(X):
        frame = nw.from_native(X, eager_only=True)
        return [[str(name), _kind(frame[name])] for name in frame.columns]
    rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    if len(rows.shape) != 2:
        raise InvalidParameter("X", f"{len(rows.shape)} dimensions", "to be a table", "Pass a row for each unit.")
    kind = rows.dtype.str if rows.dtype.kind in "biuf" else "text"
    return [[None, kind]] * rows.shape[1]


def _kind(column: Any) -> str:
    kind = column.dtype
    if kind.is_float():
        return "<f8"
    if kind.is_integer():
        return "<i8"
    return "|b1" if kind == nw.Boolean else "text"


def is_pipeline(estimator: Any) -> bool:
    """Returns whether an estimator is a pipeline, ours or scikit-learn's."""
    return isinstance(estimator, PlainPipeline)


def reads_columns(estimator: Any) -> bool:
    """Returns whether a pipeline takes columns as they are, because its first step is no learner but encodes them."""
    return is_pipeline(estimator) and not isinstance(estimator.steps[0][1], Learner | str | None)


def note_columns(model: Any, X: Any) -> None:
    """Stores in a model how many columns rows have, and their names; no value is looked at."""
    validate_data(model, X, skip_check_array=True)
