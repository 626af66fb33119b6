"""A released number with its error."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import Any, Self

import numpy as np

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Interval
from discreet.privacy.events import Event
from discreet.report.display import Display, DisplayMixin, percent

SHOWN = 6  # entries of an array that are shown
_SEEDED = "NOT PRIVATE (seeded randomness)"


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Estimate(DisplayMixin):
    """What was released, how wrong it may be, and what was released in the sense of privacy.

    Two estimates are equal only if they are the same object: arrays have no single answer to ``==``.

    Args:
        value: the released number or array.
        low: the lower end of the interval, of the same shape.
        high: the upper end.
        event: the description of the release, for accounting.
        confidence: the probability with which each interval covers what it estimates, over the noise.
        private: False if the noise came from a seeded source, so that anyone can repeat it and take it off.

    Raises:
        InvalidParameter: if the shapes differ, the event is none, or the confidence is not strictly between 0 and 1.

    >>> from discreet.privacy import events
    >>> print(Estimate(42, 39, 45, events.Pure(1)))
    42 [39, 45]
    >>> print(Estimate(42, 39, 45, events.Pure(1), private=False))
    42 [39, 45] NOT PRIVATE (seeded randomness)
    >>> print(Estimate([42, 7], [39, 4], [45, 10], events.Pure(1)))
    entry  value [95 % interval]
    -----  ---------------------
    0                42 [39, 45]
    1                  7 [4, 10]
    """

    value: Any
    low: Any
    high: Any
    event: Event
    confidence: Fraction
    private: bool

    def __init__(
        self,
        value: Any,
        low: Any,
        high: Any,
        event: Event,
        *,
        confidence: Number = Fraction(19, 20),
        private: bool = True,
    ) -> None:
        for name, end in (("low", low), ("high", high)):
            if np.shape(end) != np.shape(value):
                raise InvalidParameter(name, f"an array of shape {np.shape(end)}", f"of the shape {np.shape(value)}")
        assign(
            self,
            value=value,
            low=low,
            high=high,
            event=check.instance(Event, event=event),
            confidence=check.probability(confidence=confidence),
            private=check.instance(bool, private=private),
        )

    @classmethod
    def quick(cls, value: float, low: float, high: float, event: Event, confidence: Fraction, *, private: bool) -> Self:
        """Returns the estimate of one number whose parts are known to be in order: for many of them, one at a time."""
        estimate = object.__new__(cls)
        put = object.__setattr__
        put(estimate, "value", value)
        put(estimate, "low", low)
        put(estimate, "high", high)
        put(estimate, "event", event)
        put(estimate, "confidence", confidence)
        put(estimate, "private", private)
        return estimate

    @property
    def interval(self) -> Interval:
        """Returns both ends as one object.

        >>> from discreet.privacy import events
        >>> Estimate(42, 39, 45, events.Pure(1)).interval
        Interval(low=39, high=45)
        """
        return Interval(self.low, self.high)

    def __str__(self) -> str:
        if np.ndim(self.value):
            return self._display().text()
        ((shown,),) = self._display().rows
        return str(shown) if self.private else f"{shown} {_SEEDED}"

    def _display(self) -> Display:
        """Returns a table with a row for each number; of many, the first ones."""
        parts = (np.ravel(part)[:SHOWN].tolist() for part in (self.value, self.low, self.high))
        places = islice(np.ndindex(np.shape(self.value)), SHOWN)  # one empty place of a single number
        named = [[", ".join(map(str, place))] if place else [] for place in places]
        shown = [f"{_text(value)} [{_text(low)}, {_text(high)}]" for value, low, high in zip(*parts, strict=True)]
        head = f"value [{percent(self.confidence)} interval]"
        rest = [f"{np.size(self.value):,} in all"] if np.size(self.value) > SHOWN else []
        return Display(
            title="" if self.private else _SEEDED,
            columns=("entry", head) if np.ndim(self.value) else (head,),
            rows=[(*name, text) for name, text in zip(named, shown, strict=True)],
            numbers=[head],
            notes=rest,
        )


def _text(number: Any) -> str:
    return f"{float(number) + 0.0:.6g}" if isinstance(number, float | np.floating | Fraction) else str(number)
