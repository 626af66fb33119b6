"""What trees and boosting share: rows in public cells, classes that are public or found, and one order of a fit."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from discreet import check
from discreet.learn.features import FeatureCells, Integers
from discreet.learn.learner import ClassifierBase, ClassPlan, codes, read_labelled
from discreet.learn.weights import check_class_weight, no_weights
from discreet.noise import Bits
from discreet.privacy.events import Event


class CellClassifier(ClassifierBase):
    """A classifier that sees of a row its public cells alone.

    Formal guarantee: a fit releases the classes as `ClassPlan` does, then what `_releases` says for so many features;
    `event_` composes both, and is refused if it costs more than the budget, before any label is read.
    """

    most_cells: ClassVar[int] = 1 << 12

    bounds: Any
    cells: Any
    class_weight: Any = None

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features."""
        self._public(n_features)
        plan = self._checked_plan()
        return plan.compose_event(self._releases(plan, n_features).event)

    def fit(self, X: Any, y: Any, **weights: Any) -> Self:
        """Fits the model.

        Args:
            X: rows of numbers; missing ones count as the middle of the bounds.
            y: labels; rows whose label is none of the classes count nowhere.
            **weights: none: the weight of a row is refused, with the reason.
        """
        no_weights(weights)
        plan = self._checked_plan()
        X, y = read_labelled(self, X, y)
        releases, public = self._releases(plan, X.shape[1]), self._public(X.shape[1])
        event, bits = self._affordable(plan.compose_event(releases.event)), self._bits()
        self.classes_ = plan.read(y, bits)
        self._learn(releases, public.places(X), codes(y, self.classes_), bits)
        self._account(event, bits)
        return self

    @abstractmethod
    def _releases(self, plan: ClassPlan, n_features: int, /) -> Any:
        """Returns all that a fit releases besides the classes, with its `event`; refuses what is outside its domain."""

    @abstractmethod
    def _learn(self, releases: Any, places: Integers, labels: Integers, bits: Bits) -> None:
        """Sets what is fitted, of rows in cells; the label of a row of no class is negative."""

    def _checked_plan(self) -> ClassPlan:
        plan = self._class_plan()
        check_class_weight(self.class_weight, plan.declared)
        return plan

    def _cells(self) -> int:
        return check.integer(cells=self.cells, at_least=2, at_most=self.most_cells)

    def _public(self, n_features: int) -> FeatureCells:
        return FeatureCells.of(n_features, self._bounds, self._cells())
