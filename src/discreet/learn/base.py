"""What every learner is: parameters that are only stored, a plan before the data, and an account after it."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator

from discreet import accounting, check
from discreet.errors import InvalidParameter
from discreet.exact import float_above
from discreet.noise import Bits, SeededBits, source_of
from discreet.privacy import ApproxDP, Loss, Neighbours, PureDP
from discreet.privacy.events import Approx, Composed, Event
from discreet.statistics.budget_split import Spending


class Learner(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """A scikit-learn estimator whose fitted attributes are differentially private.

    Formal guarantee: all fitted attributes together, for all data, are described by `event_`, which equals
    `plan_event(...)` computed from public facts before any row is seen. Parameters are never changed by `fit`. A fit is
    private only if `random_state` is None; a seed makes it repeat, and `private_` says so.

    Parameters that all learners have:
        epsilon, delta: what one fit may cost; delta=0 (or None) where the learner has a pure method.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

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
        """The event of a fit on so many features, from public facts alone: reads no data, costs nothing."""

    def __sklearn_tags__(self) -> Any:
        """Missing values have a public meaning (the middle of the bounds), so they are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _relation(self) -> Neighbours:
        return Neighbours(self.neighbours)

    def _spending(self) -> Spending:
        return Spending.of(self.epsilon, self.delta)

    def _bits(self) -> Bits:
        """The source of randomness: secure, unless a seed was asked for."""
        return bits_of(self.random_state)

    def _account(self, event: Event, bits: Bits) -> None:
        """Keeps what was released and what it cost; the last step of every fit."""
        self.event_ = event
        self.privacy_spent_ = spent(event, self.epsilon, self.delta, self._relation)
        self.private_ = bits.private


def bits_of(random_state: Any) -> Bits:
    """The source of randomness for a `random_state`: secure for None, seeded for an int."""
    if random_state is None:
        return source_of(None)
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        hint = "None is secure; an int is a seed, for tests, and its results protect nobody."
        raise InvalidParameter("random_state", random_state, "to be None or an int", hint)
    return SeededBits(int(random_state))


def spent(event: Event, epsilon: Any, delta: Any, neighbours: Neighbours) -> Loss:
    """The cost of an event in the terms of what was asked: never more, and often a little less.

    Raises:
        InvalidParameter: if the event costs more than was asked, which would be our mistake.
    """
    budget = check.positive(epsilon=epsilon)
    slack = Fraction(0) if delta is None else check.not_negative(delta=delta)
    found = _priced(event, slack, neighbours)
    most = Fraction(float_above(budget))  # what is found is a float, rounded up
    if found > most:
        found = _apart(event, slack, neighbours)
    if found > most:
        raise InvalidParameter("epsilon", epsilon, f">= {float(found)}, what the plan costs")
    return PureDP(found) if slack == 0 else ApproxDP(found, slack)


@lru_cache(maxsize=256)
def _priced(event: Event, delta: Fraction, neighbours: Neighbours) -> Fraction:
    """The least epsilon of an event; a learner that is fitted again has the same one."""
    return Fraction(accounting.epsilon(event, delta, neighbours=neighbours))


def _apart(event: Event, delta: Fraction, neighbours: Neighbours) -> Fraction:
    """The cost if promises of an epsilon and a delta are added to the rest: basic composition, for huge epsilons."""
    parts = event.events if isinstance(event, Composed) else (event,)
    promises = [part for part in parts if isinstance(part, Approx)]
    rest = [part for part in parts if not isinstance(part, Approx)]
    left = delta - sum((part.delta for part in promises), Fraction(0))
    cost = accounting.epsilon(Composed(rest), left, neighbours=neighbours) if rest else 0.0
    return Fraction(cost) + sum((part.epsilon for part in promises), Fraction(0))
