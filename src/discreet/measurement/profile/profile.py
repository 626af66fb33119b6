"""A profile: how many people a table has, how many rows and groups they have, and what limits and bounds leave out.

All of it is post-processing of what its parts released; figures come with intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.measurement.profile.parts import BUCKETS, EXCESS, IDS, PEOPLE, ROWS, ProfilePlan
from discreet.measurement.profile.sizes import ZERO, Figure, Sizes, share
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.plan.model.nodes import Value
from discreet.plan.model.schema import Limits
from discreet.report.display import Display, DisplayMixin, percent, rate

QUANTILES = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile(DisplayMixin):
    """A paid description of a table: released numbers, from which every answer about it says what it leaves out.

    Attributes:
        plan: what was counted.
        parts: what was released, by subject.
        epsilon: what was paid for it.
        most_rows: how many rows one person has at most, if that was declared as a fact.
        private: False if the noise was seeded, for tests.
    """

    plan: ProfilePlan = field(repr=False)
    parts: Mapping[tuple[str, ...], ReleasedStatistics] = field(repr=False)
    epsilon: Fraction
    most_rows: int | None = None
    private: bool = True

    @classmethod
    def of(cls, plan: ProfilePlan, released: ReleasedStatistics, *, epsilon: Fraction, private: bool) -> Profile:
        """Returns the profile that a release is."""
        whole = (released, *released.beside)
        parts = {part.subject: one for part, one in zip(plan.parts, whole, strict=True)}
        return cls(plan=plan, parts=parts, epsilon=epsilon, most_rows=plan.most_rows, private=private)

    @property
    def table(self) -> str:
        """Returns which table it is about."""
        return self.plan.table

    @property
    def by_row(self) -> bool:
        """Returns whether each row is one person."""
        return self.plan.schema.unit is None

    @property
    def rows(self) -> Sizes:
        """Returns how many rows people have."""
        return Sizes(self.parts[ROWS,], self.most_rows)

    def groups(self, keys: tuple[str, ...]) -> Sizes | None:
        """Returns how many groups people have, if the profile is about these keys."""
        found = self.parts.get(("groups", *keys))
        if found is None:
            return None
        listed = [None if column is None else column.keys for column in map(self.plan.key_column, keys)]
        public = math.prod(len(values) for values in listed if values is not None) if None not in listed else None
        caps = [cap for cap in (self.most_rows, public) if cap is not None]
        return Sizes(found, min(caps, default=None))

    def beyond(self, keys: tuple[str, ...]) -> Sizes | None:
        """Returns how many rows people's groups have beyond the table's limit of rows, if the profile is about keys."""
        found = self.parts.get(("beyond", *keys))
        return None if found is None else Sizes(found, self.most_rows)

    def rows_without_id(self, outside: Fraction) -> Figure:
        """Returns how many rows have no id; none where each row is a person."""
        return ZERO if (IDS,) not in self.parts else self._count((IDS,), outside)

    def people(self, outside: Fraction = 1 - CONFIDENCE) -> Figure:
        """Returns how many people there are."""
        return self._count((ROWS,), outside) if self.by_row else self.rows.people(outside)

    def clipped_count(self, column: str, outside: Fraction, limit: int | None = None) -> Figure | None:
        """Returns how many values lie outside the bounds of a column, at most as many of a person as a limit says."""
        return self._values(("outside", column), outside, limit)

    def missing(self, column: str, outside: Fraction, limit: int | None = None) -> Figure | None:
        """Returns how many values of a column are missing, at most as many of a person as a limit says."""
        return self._values(("missing", column), outside, limit)

    def share_of_values(self, subject: str, column: str, outside: Fraction = 1 - CONFIDENCE) -> Figure | None:
        """Returns which share of a column's values, under the limit of rows, is clipped ("outside") or "missing"."""
        found = self._values((subject, column), outside / 2)
        if found is None:
            return None
        every = self.counted_rows(outside / 2)
        rest = Figure(every.value - found.value, every.low - found.high, every.high - found.low)
        return share(found, Figure(*(max(part, 0.0) for part in (rest.value, rest.low, rest.high))))

    def counted_rows(self, outside: Fraction) -> Figure:
        """Returns how many rows count under the table's limit of rows."""
        return self.people(outside) if self.by_row else self.rows.sum_within_limit(self.plan.limits.rows, outside)

    def suggest_limits(self, epsilon: float = 1.0) -> Limits:
        """Returns limits for a COUNT of everything at this epsilon: those for which rows left out and noise are least.

        Noise with 95 % confidence is ln(20) limit / epsilon rows.
        """
        if self.by_row:
            return Limits()
        tried = [1 << power for power in range(len(BUCKETS))]

        def error(limit: int) -> float:
            return self.rows.beyond(limit, 1 - CONFIDENCE).value + limit * math.log(20) / epsilon

        groups = [sizes.quantile(Fraction(19, 20)) for keys in self.plan.by if (sizes := self.groups(keys)) is not None]
        return Limits(max([1, *groups]), min(tried, key=error))

    def _values(self, subject: tuple[str, ...], outside: Fraction, limit: int | None = None) -> Figure | None:
        if subject not in self.parts:
            return None
        if self.by_row:
            return self._count(subject, outside)
        usual = self.plan.most_counted
        found = self._count(subject, outside, EXCESS, usual)
        # Within a limit that is k times as large a person has at most k times as many, within a smaller one no more.
        times, low = max(1.0, (limit or usual) / usual), found.low if (limit or usual) >= usual else 0.0
        return Figure(found.value, low, found.high * times)

    def _count(self, subject: tuple[str, ...], outside: Fraction, name: str = PEOPLE, unit: int = 1) -> Figure:
        released = self.parts[subject]
        (group,) = released.groups(outside)
        cell = group[name]
        ends = (float(getattr(cell, end) or 0) * unit for end in ("value", "low", "high"))
        return Figure(*(max(part, 0.0) for part in ends))

    def _display(self) -> Display:
        limits, notes = self.suggest_limits(), []
        if not self.by_row:
            notes.append(f"For a COUNT at epsilon 1: max_rows={limits.rows}, max_groups={limits.groups}.")
        if not self.by_row and self.most_rows is None:
            notes.append(
                "The largest number of rows of one person is not declared (most_rows=). A few people may have any "
                "number of rows, and no private number shows that."
            )
        rows = [*self._of_people(), *self._of_groups(), *self._of_values()]
        heads = ("", "estimate (95 % interval)")
        return Display(title=f"Profile of {self.table}", columns=heads, rows=rows, notes=notes)

    def _of_people(self) -> list[tuple[str, Value]]:
        if self.by_row:
            return [("rows", str(self.people()))]
        outside, limit = 1 - CONFIDENCE, self.plan.limits.rows
        ends = ", ".join(f"{percent(q)} up to {self.rows.quantile(q):,}" for q in QUANTILES)
        left = share(self.rows.beyond(limit, outside / 2), self.counted_rows(outside / 2))
        return [
            ("people", str(self.people())),
            ("rows per person", ends),
            (f"rows beyond max_rows={limit}", _percents(left)),
            ("rows without an id", str(self.rows_without_id(outside))),
        ]

    def _of_groups(self) -> list[tuple[str, Value]]:
        limit = self.plan.limits.groups
        known = {keys: sizes for keys in self.plan.by if (sizes := self.groups(keys)) is not None}
        return [
            (f"people in more than {limit} group(s) of {', '.join(keys)}", _percents(sizes.share_above(limit)))
            for keys, sizes in known.items()
        ]

    def _of_values(self) -> list[tuple[str, Value]]:
        kinds = {"outside": "values outside bounds", "missing": "missing values"}
        figures = [
            (f"{words} of {column}", self.share_of_values(kind, column))
            for column in self.plan.columns
            for kind, words in kinds.items()
        ]
        return [(name, _percents(found)) for name, found in figures if found is not None]


def _percents(found: Figure) -> str:
    return f"{rate(found.value)} ({rate(found.low)} to {rate(found.high)})"
