"""Logistic regression and linear support vector classification with differential privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import special
from discreet.learn.linear.linear_classifier import LinearClassifier, Method
from discreet.learn.linear.loss_functions import MarginLoss, hinge, logistic

Floats = NDArray[np.float64]


class LinearSVC(LinearClassifier):
    """A linear classifier by the hinge loss with a round corner; more than two classes are each held against the rest.

    Formal guarantee: see `plan_event`. A row moves the gradients of all classes; they are clipped and released
    together, as one vector, so that nothing is divided between classes. Methods are those of `LogisticRegression` but
    "objective", whose theorem asks for a continuous second derivative.

    Args:
        epsilon: what a fit may cost.
        delta: 0 or None for a pure guarantee.
        norm_bound: the length that a row may have, public; or
        bounds: public limits (low, high) of the features, numbers or arrays, which are moved to [-1, 1].
        classes: the labels there are, public; None finds them for a twentieth of epsilon and half of delta.
        method: "auto", "gradient" or "output".
        fit_intercept: whether there is an intercept.
        C: the inverse strength of regularisation of the sum of losses, for rows of length 1; None chooses it.
        steps: of the descent, a public number; None is 100 to 300, or without a delta 4 to 100, by the released number
            of rows.
        class_weight: public weights of classes, e.g. {0: 1, 1: 3}, for the method "gradient"; they are divided by the
            largest, so that no row counts more than once.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        classes_, coef_, intercept_: as in scikit-learn.

    >>> X = [[-1.0], [1.0]] * 500
    >>> model = LinearSVC(epsilon=2, norm_bound=1, classes=[0, 1], random_state=1).fit(X, [0, 1] * 500)
    >>> model.predict([[-1.0], [1.0]])
    array([0, 1])
    """

    methods = frozenset(Method) - {Method.OBJECTIVE}

    def _loss(self, classes: int) -> MarginLoss:
        return hinge(classes)


class LogisticRegression(LinearClassifier):
    """Logistic regression of two classes, or softmax regression of more, with differential privacy.

    Formal guarantee: see `plan_event`, which prices a fit before any row is seen. Rows longer than the public norm are
    shrunk to it and every gradient is held to its limit with integer arithmetic, so the noise is right for any
    `norm_bound`. Methods:

    - "gradient": one noisy survey of the rows (number by class, middle, length), then full-batch descent with noise in
      every gradient, and back toward the shares of classes if it is no better (`SurveyedFit`). Gaussian DP, exactly
      composed; pure if delta is 0.
    - "output": noise added to the weights of a regularised fit (`OutputPerturbation`); pure if delta is 0.
    - "objective": noise inside the objective, two public classes only: of rows as declared (`ObjectivePerturbation`);
      if delta is 0, of rows around their middle, with the survey and the comparison of "gradient" (`TiltedMinimum`).
    - "auto": "objective" for two public classes if delta is 0, and steps, C and class_weight are left alone; else
      "gradient".

    Args:
        epsilon: what a fit may cost.
        delta: 0 or None for a pure guarantee.
        norm_bound: the length that a row may have, public; or
        bounds: public limits (low, high) of the features, numbers or arrays, which are moved to [-1, 1].
        classes: the labels there are, public; None finds them for a twentieth of epsilon and half of delta.
        method: see above.
        fit_intercept: whether there is an intercept.
        C: the inverse strength of regularisation of the sum of losses, for rows of length 1; None chooses it.
        steps: of the descent, a public number; None is 100 to 300, or without a delta 4 to 100, by the released number
            of rows.
        class_weight: public weights of classes, e.g. {0: 1, 1: 3}, for the method "gradient"; they are divided by the
            largest, so that no row counts more than once.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes after `fit`, in addition to those of `Learner`:
        classes_, coef_, intercept_: as in scikit-learn.

    >>> X = np.arange(4000).reshape(2000, 2) % 7 - 3.0
    >>> model = LogisticRegression(epsilon=2, norm_bound=4.5, classes=[False, True], random_state=1)
    >>> model.fit(X, X @ [2.0, -1.0] > 0).score(X, X @ [2.0, -1.0] > 0) > 0.9
    True
    """

    def predict_proba(self, X: Any) -> Floats:
        """Returns the probability of each class."""
        margins = self.decision_function(X)
        if self.constant_:
            return np.ones((len(margins), 1))
        if margins.ndim == 1:
            return np.stack([special.expit(-margins), special.expit(margins)], axis=1)
        return np.asarray(special.softmax(margins, axis=1))

    def predict_log_proba(self, X: Any) -> Floats:
        """Returns the logarithm of the probability of each class."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))

    def _loss(self, classes: int) -> MarginLoss:
        return logistic(classes)
