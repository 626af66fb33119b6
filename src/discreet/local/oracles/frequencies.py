"""Estimated frequencies, one for each value of a domain, and their projection on the frequencies that can be."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.local.oracles.domain import Value, ValueDomain
from discreet.privacy import Estimate
from discreet.privacy.events import Event
from discreet.report.display import Display, DisplayMixin, percent

Floats = NDArray[np.float64]
SHOWN = 20  # values in print; the most frequent come first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frequencies(DisplayMixin):
    """One `Estimate` for each value of the domain, in its order: the share of people who hold the value.

    Attributes:
        domain: the values.
        value: the estimates as an array.
        low: the lower ends of their intervals.
        high: the upper ends.
        raw: the unbiased estimates; the same as `value` unless they were projected.
        event: what one report costs its sender.
        confidence: with which each interval covers its frequency, for any number of reports.
        reports: how many were counted.
        dropped: how many were not, because no client makes them.
        private: False if the reports came from seeded randomness.
    """

    domain: ValueDomain
    value: Floats
    low: Floats
    high: Floats
    raw: Floats
    event: Event
    confidence: Fraction
    reports: int
    dropped: int = 0
    private: bool = True

    def __len__(self) -> int:
        return self.domain.size

    def __getitem__(self, code: int) -> Estimate:
        """Returns the estimate of the value with this number, in the order of the domain."""
        value, low, high = (float(part[code]) for part in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.event, confidence=self.confidence, private=self.private)

    def __iter__(self) -> Iterator[Estimate]:
        return (self[code] for code in range(len(self)))

    def of(self, value: Value) -> Estimate:
        """Returns the estimate of a value.

        Raises:
            InvalidValue: if it is not in the domain.
        """
        (code,) = self.domain.codes([value])
        return self[int(code)]

    def _display(self) -> Display:
        order = np.argsort(-self.value, kind="stable")[:SHOWN].tolist()
        head = f"share [{percent(self.confidence)} interval]"
        notes = [f"{self.dropped:,} reports that no client makes were dropped."] if self.dropped else []
        if not self.private:
            notes.append("NOT PRIVATE (seeded randomness)")
        return Display(
            columns=("value", head),
            rows=[(self.domain.value(code), str(self[code]).removesuffix(_MARK)) for code in order],
            numbers=[head],
            facts={"Reports": f"{self.reports:,}", "Values": f"{len(self):,}"},
            notes=notes,
        )


_MARK = " NOT PRIVATE (seeded randomness)"  # said once below the table


def onto_simplex(raw: Floats) -> Floats:
    """Returns the frequencies nearest to the raw ones: none negative, and a sum of 1 (Duchi et al. 2008, Figure 1).

    >>> onto_simplex(np.array([0.7, 0.5, -0.3])).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    ordered = np.sort(raw)[::-1]
    surplus = (np.cumsum(ordered) - 1) / np.arange(1, raw.size + 1)
    kept = int(np.flatnonzero(ordered > surplus)[-1])
    return np.asarray(np.maximum(raw - surplus[kept], 0.0))
