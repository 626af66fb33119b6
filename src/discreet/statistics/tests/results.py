"""The result of a private test."""

from __future__ import annotations

from fractions import Fraction

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.privacy import Estimate
from discreet.privacy.events import Event


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestResult:
    """A decision, or a p-value with which to decide, and what was released for it.

    Attributes:
        p_value: under the null hypothesis at most u with probability at most u, noise included; None where only the
            decision at one level was paid for.
        statistic: the released number behind it; None where there is none.
        event: the description of the release, for accounting.
        rejected: the decision at a level that was fixed in advance; None where the p-value decides.
        level: that level.
        estimate: the quantity in question with its interval, where there is one; the event covers it.
        private: False if the noise came from a seeded source.
    """

    __test__ = False  # pytest: a result, no test

    event: Event
    private: bool
    p_value: float | None = None
    statistic: float | None = None
    rejected: bool | None = None
    level: Fraction | None = None
    estimate: Estimate | None = None

    def reject(self, level: Number | None = None) -> bool:
        """Returns whether the null hypothesis is rejected at a level; without a p-value only at the level of the test.

        >>> from discreet.privacy import events
        >>> TestResult(p_value=0.03, event=events.Pure(1), private=True).reject(0.05)
        True
        """
        asked = None if level is None else check.probability(level=level)
        if self.p_value is not None:
            if asked is None:
                raise InvalidParameter("level", level, "to be given", "Pass e.g. level=0.05.")
            return self.p_value <= float(asked)
        if asked is not None and asked != self.level:
            hint = "Only the decision at that level was released. Another level is another test, which costs again."
            raise InvalidParameter("level", level, f"to be {self.level}", hint)
        return bool(self.rejected)

    def __str__(self) -> str:
        mark = "" if self.private else " NOT PRIVATE (seeded randomness)"
        if self.p_value is not None:
            return f"p = {self.p_value:.4g}{mark}"
        said = "rejected" if self.rejected else "not rejected"
        return f"{said} at level {float(self.level or 0):g}{mark}"
