"""Hyper-parameters chosen at their full price: every candidate that was fitted is paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.accounting.random_repetitions import Tries
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.lazy import load
from discreet.learn.learner import Learner, bits_of, labels_of, price_event, read_labelled
from discreet.learn.pipelines.pipeline import Pipeline, columns_of, note_columns
from discreet.learn.pipelines.public_steps import check_steps
from discreet.learn.pipelines.row_selection import count_rows, take_rows
from discreet.learn.privacy_warnings import in_an_account, note_table, remember_fit
from discreet.learn.row_inputs import convert_table
from discreet.learn.selection.choice import FINE, distances, errors
from discreet.learn.selection.search_plan import SearchPlan, draw_tries, search_plan
from discreet.learn.weights import no_weights
from discreet.mechanisms import PermuteAndFlip
from discreet.noise import Bits, bernoulli, uniform_below
from discreet.noise.experiment import shuffle_indices
from discreet.privacy import Loss, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending

OWN = ("epsilon", "delta", "neighbours", "random_state", "label_bounds")  # parameters that are those of the search


def _has(name: str) -> Callable[[Any], bool]:
    return lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name)


class GridSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """The best of a grid of parameters of a learner, under one budget for all that was tried.

    A part of the rows is held out, at random; candidates are fitted on the others and compared on it: classifiers by
    the number of their errors, regressors by the sum of their distances from labels, both clipped to `label_bounds`.
    Only the winner is shown: not the scores, nor how many were tried, nor how long it took.

    Args:
        estimator: a private classifier or regressor (a `Learner`), or a pipeline that ends with one; its own epsilon
            and delta are replaced by what a fit may cost, divided among private steps in their own proportion.
        param_grid: lists of values by parameter, as in scikit-learn; public.
        epsilon, delta: what all of it may cost together.
        tries: how many candidates are drawn, in the mean, if they are drawn at random. None leaves the choice between
            the two ways open, with twice as many draws as there are candidates.
        holdout: the share of rows that is held out.
        neighbours: "add_remove" or "replace".
        random_state: None for secure randomness, an int for a seed, which gives no privacy.

    Attributes:
        best_estimator_: the winner, fitted on the rows that were not held out.
        best_params_: its parameters.
        constant_: whether it is constant, because fewer than two classes were found.
        event_, privacy_spent_, private_: as for every learner.

    Formal guarantee: (epsilon, delta)-DP, pure if delta = 0. Whether a row is held out is decided by a coin that reads
    no row, or by its place if their number is public; given that, neighbours differ in the fitted part or in the
    held-out part, never in both, so that the worse of the two prices counts. The fitted part pays for its fits; what
    follows from them by reading held-out rows is post-processing. The held-out part pays for comparing: models that
    were fitted on other rows are public to it. One of two ways is taken, by public facts, whichever leaves more for a
    fit:

    * every candidate is fitted, which composes, and one is chosen by permute-and-flip;
    * candidates are drawn with replacement, fitted and scored with noise, a random number of times, and the best is
      shown: about three times the price of one, however large the grid
      (`accounting.random_repetitions`, Papernot and Steinke 2022).

    >>> from discreet.learn import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(bounds=(0, 1), classes=[0, 1])
    >>> X = np.linspace(0, 1, 2000)[:, None]
    >>> search = GridSearchCV(tree, {"max_depth": [1, 2, 3]}, epsilon=6, delta=0, random_state=0)
    >>> print(search.fit(X, X[:, 0] > 0.5).privacy_spent_, search.score(X, X[:, 0] > 0.5) > 0.95)
    epsilon=6 True
    """

    best_estimator_: Any
    best_params_: dict[str, Any]
    classes_: NDArray[Any]
    event_: Event
    privacy_spent_: Loss
    private_: bool

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: Any = 1.0,
        delta: Any = 1e-6,
        tries: Any = None,
        holdout: Any = 0.2,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.tries = tries
        self.holdout = holdout
        self.neighbours = neighbours
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """The tags are those of the estimator."""
        return get_tags(self.estimator)

    @property
    def constant_(self) -> bool:
        """Returns whether the winner found fewer than two classes, so that it predicts the same for every row."""
        return bool(getattr(self.best_estimator_, "constant_", False))

    @property
    def _relation(self) -> Neighbours:
        return Neighbours(self.neighbours)

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a search on so many features; it fails if no candidate could be afforded."""
        self._plan(n_features)
        return self._event()

    def _event(self) -> Event:
        budget = Spending.of(self.epsilon, self.delta)
        if budget.is_pure:
            return events.Pure(budget.pure_epsilon)
        return events.Approx(check.positive(epsilon=self.epsilon), check.probability(delta=self.delta))

    def fit(self, X: Any, y: Any, **weights: Any) -> GridSearchCV:
        """Searches the grid.

        Args:
            X: rows of numbers; a table or an array of whatever its first step takes, for a pipeline.
            y: labels.
            **weights: none: the weight of a row is refused, with the reason.
        """
        no_weights(weights)
        share = check.probability(holdout=self.holdout)
        X, y, names = self._read(X, y)
        plan = self._plan(self.n_features_in_, names)
        bits = bits_of(self.random_state)
        held = self._choose_holdout(len(y), share, bits)
        fitted = self._name_columns(take_rows(X, ~held), names)
        data = _Parts(fitted, y[~held], take_rows(X, held), y[held], self._label_bounds(), names)
        with in_an_account():
            index, best = (
                self._choose_from_all(plan, data, bits)
                if plan.tries is None
                else self._choose_from_tries(plan, data, bits)
            )
        self.best_params_ = self._candidates()[index]
        self.best_estimator_ = best
        if is_classifier(best):
            self.classes_ = best.classes_
        self.event_ = self._event()
        self.privacy_spent_ = price_event(self.event_, self.epsilon, self.delta, self._relation)
        self.private_ = bits.private
        if self.private_:
            remember_fit(self.privacy_spent_)
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], Sequence[str] | None]:
        """Returns rows, labels and column names; for a pipeline rows stay as they are, since its steps read them."""
        if not isinstance(self._estimator, Pipeline):
            return *read_labelled(self, X, y), getattr(self, "feature_names_in_", None)
        check_steps(self._estimator)
        X = convert_table(X)
        note_columns(self, X)
        names = [name for name, _ in columns_of(X)]
        labels = labels_of(self, y)
        if count_rows(X) != len(labels):
            raise InvalidParameter("y", f"{len(labels)} labels", f"to be one for each of the {count_rows(X)} rows of X")
        note_table(X)
        return X, labels, None if None in names else names

    def _name_columns(self, X: Any, names: Sequence[str] | None) -> Any:
        """Returns rows to be fitted as a table, if they came as one: a learner may have bounds by name."""
        if names is None or isinstance(self._estimator, Pipeline):
            return X
        return load("pandas", "A table with names").DataFrame(X, columns=list(names))

    @property
    def _estimator(self) -> Any:
        """Returns the estimator; scikit-learn's pipeline as one of ours."""
        return Pipeline.of(self.estimator)

    def predict(self, X: Any) -> NDArray[Any]:
        """Returns the predictions of the winner."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Returns the probabilities of the winner."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict_proba(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Returns the margins of the winner."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.decision_function(X))

    def score(self, X: Any, y: Any) -> float:
        """Returns the winner's own score, such as its accuracy; it reads these rows and is not private."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    def _candidates(self) -> list[dict[str, Any]]:
        if isinstance(self._estimator, Pipeline):
            check_steps(self._estimator)
        known = is_classifier(self.estimator) or is_regressor(self.estimator)
        if not known or not isinstance(self._estimator, Learner | Pipeline):
            hint = "A pipeline ends with one of them, and its other steps are public or private."
            raise InvalidParameter(
                "estimator", self.estimator, "to be one of discreet's classifiers or regressors", hint
            )
        found = [dict(one) for one in ParameterGrid(self.param_grid)]
        for name in OWN:
            if any(name == key.split("__")[-1] for one in found for key in one):
                hint = f"It is the same for all: pass {name} to GridSearchCV, or label_bounds to the estimator."
                raise InvalidParameter("param_grid", name, "not to be among the parameters", hint)
        if not found:
            raise InvalidParameter("param_grid", self.param_grid, "to have at least one candidate")
        return found

    def _label_bounds(self) -> tuple[float, float] | None:
        """Returns the public limits of a regressor's labels; None for a classifier."""
        if is_classifier(self.estimator):
            return None
        low, high = check.limits(label_bounds=getattr(self._estimator, "label_bounds", None))
        return float(low), float(high)

    def _model(self, plan: SearchPlan, candidate: Mapping[str, Any], seed: int | None) -> Any:
        own = {"epsilon": plan.epsilon, "delta": plan.delta, "neighbours": self.neighbours, "random_state": seed}
        return clone(self._estimator).set_params(**candidate).set_params(**own)

    def _choose_holdout(self, rows: int, share: Fraction, bits: Bits) -> NDArray[np.bool_]:
        if self._relation is Neighbours.ADD_REMOVE:
            return np.asarray(bernoulli(share, rows, bits=bits))
        return shuffle_indices(rows, bits=bits) < int(share * rows)

    def _choose_from_all(self, plan: SearchPlan, data: _Parts, bits: Bits) -> tuple[int, Any]:
        models = [self._fit_candidate(plan, index, data, bits) for index in range(len(self._candidates()))]
        monotone = self._relation is Neighbours.ADD_REMOVE
        total = check.positive(epsilon=self.epsilon)
        chooser = PermuteAndFlip(epsilon=total, sensitivity=plan.most, monotone=monotone)
        index = int(chooser.choose([-data.loss(model) for model in models], bits=bits))
        return index, models[index]

    def _choose_from_tries(self, plan: SearchPlan, data: _Parts, bits: Bits) -> tuple[int, Any]:
        """Returns the best of a random number of tries.

        Among equal scores the first counts: tries are alike in law, so that this is a fair lot among equals.
        """
        best: tuple[int, int, Any] | None = None
        candidates = len(self._candidates())
        for _ in range(draw_tries(plan.tries or Tries.of_mean(1), bits)):
            index = uniform_below(candidates, bits=bits)
            model = self._fit_candidate(plan, index, data, bits)
            score = -int(plan.score_noise.release(data.loss(model), bits=bits))
            if best is None or score > best[0]:
                best = (score, index, model)
        if best is None:
            raise InternalError("A number of tries is at least one.")
        return best[1], best[2]

    def _fit_candidate(self, plan: SearchPlan, index: int, data: _Parts, bits: Bits) -> Any:
        model = self._model(plan, self._candidates()[index], None if bits.private else bits.integer(32))
        planned = _plan_candidate(model, self.n_features_in_, data.names)
        if model.fit(data.X, data.y).event_ != planned:
            raise InternalError("A learner released something else than it had planned.")
        return model

    def _plan(self, n_features: int, names: Sequence[str] | None = None) -> SearchPlan:
        """Returns what a fit may cost, by the way that leaves more for it."""
        candidates = self._candidates()

        def list_events(plan: SearchPlan) -> list[Event]:
            return [_plan_candidate(self._model(plan, one, None), n_features, names) for one in candidates]

        return search_plan(
            list_events,
            candidates=len(candidates),
            epsilon=check.positive(epsilon=self.epsilon),
            delta=check.not_negative(delta=self.delta or 0),
            tries=self.tries,
            most=1 if self._label_bounds() is None else FINE,
            neighbours=self._relation,
        )


@dataclass(frozen=True, slots=True)
class _Parts:
    """Rows to fit on, and rows held out."""

    X: Any
    y: NDArray[Any]
    held: Any
    held_y: NDArray[Any]
    label_bounds: tuple[float, float] | None
    names: Sequence[str] | None

    def loss(self, model: Any) -> int:
        """Returns how wrong a model is on held-out rows, a sum over them."""
        if self.label_bounds is None:
            return int(errors(model, self.held, self.held_y).sum())
        return int(distances(model, self.held, self.held_y, self.label_bounds).sum())


def _plan_candidate(model: Any, n_features: int, names: Sequence[str] | None) -> Event:
    """Returns what a candidate would release; names are what a pipeline asks for."""
    event: Event = model.plan_event(n_features, names) if isinstance(model, Pipeline) else model.plan_event(n_features)
    return event
