"""A pair of ends: what an error bar is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Interval:
    """The closed interval from low to high; for arrays, one interval per entry.

    >>> low, high = Interval(97, 103)
    >>> Interval(97, 103).width
    6
    """

    low: Any
    high: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.low, self.high))

    @property
    def width(self) -> Any:
        """Returns the distance between the ends."""
        return self.high - self.low
