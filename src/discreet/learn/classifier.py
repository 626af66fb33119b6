"""What all classifiers have in common: classes that are public or found privately, also if none are found."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from discreet.learn.base import Learner, spent
from discreet.learn.labels import ClassPlan
from discreet.privacy.events import Event


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]  # scikit-learn has no annotations
    """A learner of classes.

    Where classes are not declared they are found privately, and what is found is a release: fewer than two classes are
    an answer like any other. The model is then constant. It predicts the one class that was found or, if there was
    none, the zero of the labels' type (0, False or an empty text), with probability 1; its margins are 0.

    Attributes after `fit`, beside those of `Learner`:
        classes_: the labels, sorted; a single one for a constant model.
        constant_: whether the model is constant.
    """

    classes: Any
    classes_: NDArray[Any]

    @property
    def constant_(self) -> bool:
        """Whether fewer than two classes were found, so that the same is predicted for every row."""
        return len(self.classes_) < 2

    def _class_plan(self) -> ClassPlan:
        return ClassPlan.of(self.classes, epsilon=self.epsilon, delta=self.delta, neighbours=self._relation)

    def _affordable(self, event: Event) -> Event:
        """The event of a fit, which must not turn out to cost more than was asked when all is released.

        Raises:
            InvalidParameter: if it would.
        """
        spent(event, self.epsilon, self.delta, self._relation)
        return event
