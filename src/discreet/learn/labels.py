"""The classes of a classifier: public, or found in the labels for a part of the budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, lower
from discreet.mechanisms import PartitionSelection
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending

SHARE = Fraction(1, 20)  # of epsilon, for finding classes nobody declared
_HINT = "Classes are public: pass classes=[0, 1]. Without them they are found privately, which needs a delta."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPlan:
    """How a classifier comes to know its classes, and what that leaves of its budget.

    Formal guarantee: finding classes is (epsilon / 20, delta / 2)-DP. Each row has one label, so the optimal rule of
    key selection holds under ADD_REMOVE; a replaced row is one removed and one added, which doubles its epsilon and
    multiplies its delta by 1 + e^epsilon (group privacy). What is left is `rest`, and basic composition adds up to the
    whole.

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
        """The plan for declared classes, or for None."""
        if classes is not None:
            return cls(declared=_declared(classes), rest=Spending.of(epsilon, delta), selection=None, event=None)
        if delta is None or delta == 0:
            raise InvalidParameter("classes", None, "to be given if delta=0", _HINT)
        budget, slack = check.positive(epsilon=epsilon), check.probability(delta=delta)
        part, chance = budget * SHARE, slack / 2
        selection = _selection(part, chance, neighbours)
        rest = Spending.of(budget - part, slack - chance)
        return cls(declared=None, rest=rest, selection=selection, event=events.Approx(part, chance))

    def composed(self, event: Event) -> Event:
        """All that is released: finding the classes, if they had to be found, and the rest."""
        return event if self.event is None else events.Composed([self.event, event])

    def read(self, y: NDArray[Any], bits: Bits) -> NDArray[Any]:
        """The classes, sorted: declared, or found among the labels; if none is found, the zero of their type.

        What is found depends on the labels through the selection alone, the type of the array included.
        """
        if self.declared is not None:
            return self.declared
        selection = check.instance(PartitionSelection, selection=self.selection)
        labels, counts = np.unique(y, return_counts=True)
        return _of_their_own(labels[selection.select(counts.astype(np.int64), bits=bits)])


def _of_their_own(found: NDArray[Any]) -> NDArray[Any]:
    """At least one class, in an array whose type no other label decides: texts are as wide as the longest found."""
    kind = found.dtype.kind
    if kind in "SU":
        found = np.array(found.tolist(), dtype=kind)
    return found if len(found) else np.zeros(1, dtype=np.str_ if kind == "O" else found.dtype)


def codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label among sorted classes, -1 for labels that are none of them: such rows count nowhere."""
    places = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    return np.where(classes[places] == y, places, -1).astype(np.int64)


def _selection(epsilon: Fraction, delta: Fraction, neighbours: Neighbours) -> PartitionSelection:
    if neighbours is Neighbours.ADD_REMOVE:
        return PartitionSelection(epsilon=epsilon, delta=delta)
    half = epsilon / 2
    shrink = lower(lambda digits: 1 / (Enclosure.of(half, digits).exp() + 1))
    share = Fraction(int(shrink * 2**80), 2**80)
    if share == 0:
        raise InvalidParameter("classes", None, "to be given at such an epsilon", _HINT)
    return PartitionSelection(epsilon=half, delta=delta * share)


def _declared(classes: Any) -> NDArray[Any]:
    found = np.asarray(classes)
    if found.ndim != 1 or found.size < 2 or len(np.unique(found)) != found.size:
        raise InvalidParameter("classes", classes, "to be at least two different labels", _HINT)
    return np.sort(found)
