"""Coverage of an answer, by a profile: rows beyond its limits, rows without an id, and values beyond bounds.

A filter can keep any part of each person's rows. So for a filtered answer a profile gives only an upper limit of the
number of rows, and for rows that are joined or computed it gives nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.measurement.profile.profile import Profile
from discreet.measurement.profile.sizes import ZERO, Figure, less, share
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.program import Program
from discreet.plan.model.nodes import Aggregate, ColumnRef, Question, columns
from discreet.plan.post.outputs import Cell, NoisyNumber
from discreet.report.display import amount, rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The values that limits and bounds leave out of one column of an answer.

    Attributes:
        share: of all rows, those that are left out or whose value is clipped; None of a filtered answer.
        low: where the interval of that share begins.
        high: where it ends.
        rows: how many rows are left out.
        clipped: which share of the counted values is clipped to bounds; None where there are none.
    """

    share: float | None
    low: float
    high: float
    rows: Figure
    clipped: Figure | None = None

    def __str__(self) -> str:
        if self.share is None:
            end = "any number" if math.isinf(self.rows.high) else f"at most {amount(math.ceil(self.rows.high))}"
            return f"{end} of the filtered rows left out"
        more = "" if self.clipped is None else f"; {rate(self.clipped.value)} of the counted values clipped to bounds"
        return f"{rate(self.share)} of rows left out or clipped ({rate(self.low)} to {rate(self.high)}){more}"


def coverage(program: Program, profile: Profile, confidence: Fraction) -> dict[str, Coverage] | None:
    """Returns what an answer leaves out of each of its numbers; None if the profile does not describe its rows.

    Each interval misses with at most one minus the confidence, over the noise of the profile.
    """
    question, of_question = program.question, profile.plan.question is not None
    keys = profile.plan.keys if of_question else _profiled_keys(question, profile)
    if keys is None:
        return None
    outside = (1 - confidence) / 2
    left, kept = _count_row_coverage(program, profile, keys, outside)
    if left is None or kept is None:
        return None
    if question.where is not None and not of_question:
        unknown = Coverage(share=None, low=0.0, high=1.0, rows=Figure(left.value, 0.0, left.high))
        return dict.fromkeys(_numbers(question), unknown)
    return {
        name: _of_column(
            ZERO if _is_of_people(used, keys) else left, kept, _count_clipped_values(used, program, profile, outside)
        )
        for name, used in _numbers(question).items()
    }


def _profiled_keys(question: Question, profile: Profile) -> tuple[str, ...] | None:
    """Returns the keys of a question, if a profile of a table describes its rows but for a filter."""
    plain = question.source is None and not (question.beside or question.sets or question.rest or question.bands)
    keys = tuple(key.expression.name for key in question.keys if isinstance(key.expression, ColumnRef))
    return keys if plain and len(keys) == len(question.keys) and question.table == profile.table else None


def _numbers(question: Question) -> dict[str, list[Aggregate]]:
    """Returns the outputs that are made of aggregates, each with those."""
    named = {aggregate.name: aggregate for aggregate in question.aggregates}
    used = {o.name: [named[c.name] for c in columns(o.expression) if c.name in named] for o in question.outputs}
    return {name: aggregates for name, aggregates in used.items() if aggregates}


def _is_of_people(used: list[Aggregate], keys: tuple[str, ...]) -> bool:
    """Returns whether only people are counted, once each: no limit of rows leaves a person out."""
    return not keys and all(aggregate.kind == "count_units" for aggregate in used)


def _count_row_coverage(
    program: Program, profile: Profile, keys: tuple[str, ...], outside: Fraction
) -> tuple[Figure | None, Figure | None]:
    """Returns how many rows are left out, and how many are counted."""
    if profile.by_row:
        return ZERO, profile.people(outside)
    limits, risk = program.contribution.limits, outside / 4
    without_id = profile.rows_without_id(risk)
    if not keys or limits.total is not None:
        return profile.rows.beyond(limits.rows, risk) + without_id, profile.rows.sum_within_limit(limits.rows, risk)
    groups, beyond = profile.groups(keys), profile.beyond(keys)
    if groups is None or beyond is None or limits.rows != profile.plan.limits.rows:
        return None, None
    within, dropped = beyond.beyond(0, risk), groups.beyond(limits.groups, risk)
    value = within.value + dropped.value * (1 + limits.rows) / 2
    high = within.high + dropped.high * limits.rows if dropped.high else within.high
    left = Figure(
        value, within.low + dropped.low, high
    )  # of a group that is dropped, one row is, and its limit at most
    most, every = profile.rows.sum_within_limit(limits.rows * limits.groups, risk), profile.rows.beyond(0, risk)
    kept = Figure(max(every.value - value, 0.0), profile.people(risk).low, most.high)
    return left + without_id, kept


def _count_clipped_values(
    used: list[Aggregate], program: Program, profile: Profile, outside: Fraction
) -> Figure | None:
    """Returns how many values are clipped, of all columns that were profiled; None if there are none."""
    added = (one.argument for one in used if not one.kind.startswith("count"))  # a count takes any value for one
    arguments = {argument.name for argument in added if isinstance(argument, ColumnRef)}
    limits, risk = program.contribution.limits, outside / max(len(arguments), 1)
    most = limits.most_rows if program.question.keys else limits.rows
    counts = [profile.clipped_count(name, risk, most) for name in sorted(arguments)]
    found = [count for count in counts if count is not None]
    return sum(found, ZERO) if found else None


def _of_column(left: Figure, kept: Figure, clipped: Figure | None) -> Coverage:
    if clipped is None:
        found = share(left, kept)
        return Coverage(share=found.value, low=found.low, high=found.high, rows=left)
    # Which of a person's rows are counted is not known: of those that are clipped, none may be, or all of them.
    moved = Figure(left.value + clipped.value, left.low, left.high + clipped.high)
    rest = less(kept, clipped)
    found, own = share(moved, rest), share(clipped, rest)
    return Coverage(share=found.value, low=found.low, high=found.high, rows=left, clipped=own)


def complete_rows(
    released: ReleasedStatistics, profile: Profile, confidence: Fraction, rows: Sequence[dict[str, Cell]]
) -> tuple[Sequence[dict[str, Cell]], frozenset[str]]:
    """Returns the rows of an answer with numbers of all rows of a table in the place of numbers within limits.

    What was counted and what limits, bounds and missing ids leave out add up to the whole; the risk of an interval is
    divided between the two. Without a declared `most_rows` nothing is completed, and of values nothing without a
    declared domain: no finite end would be valid. Sums and means are completed only if their interval stays
    useful, no wider than the number itself: else the mean of what was counted says more.

    Returns:
        The rows, and which of their columns were completed.
    """
    question = released.program.question
    described = question.where is None or profile.plan.question is not None
    plain = described and question.source is None and not (question.keys or question.steps)
    alone = not (question.beside or question.sets or question.having or profile.by_row)
    if not (plain and alone) or question.table != profile.table or profile.most_rows is None:
        return rows, frozenset()
    named = {one.name: one for one in question.aggregates}
    asked = {o.name: named[o.expression.name] for o in question.outputs if isinstance(o.expression, ColumnRef)}
    missed = _Missed(profile, released.program.contribution.limits.rows, (1 - confidence) / (2 * _FIGURES))
    (narrow,), (row,) = released.rows((1 + confidence) / 2), rows
    found = {name: missed.estimate_table_value(narrow[name], aggregate) for name, aggregate in asked.items()}
    whole = {name: cell for name, cell in found.items() if cell is not None}
    return [{**row, **whole}], frozenset(whole)


_FIGURES = 5  # of a profile, that one number is completed with


@dataclass(frozen=True)
class _Missed:
    """The rows that an answer about a whole table leaves out, each figure within the same risk."""

    profile: Profile
    limit: int
    risk: Fraction

    def estimate_table_value(self, cell: Cell, aggregate: Aggregate) -> Cell | None:
        """Returns a number of the whole table; None if no declared fact limits how far it can be."""
        if not isinstance(cell, NoisyNumber) or cell.value is None:
            return None
        left = self.profile.rows.beyond(self.limit, self.risk) + self.profile.rows_without_id(self.risk)
        if aggregate.kind == "count":
            low, high = math.floor(cell.low + left.low), math.ceil(cell.high + left.high)
            return NoisyNumber(min(max(round(cell.value + left.value), low), high), low, high)
        values = self._values(aggregate)
        if values is None or aggregate.kind not in ("sum", "mean"):
            return None
        found = _sum(cell, left, values) if aggregate.kind == "sum" else _mean(cell, left, values)
        return found if float(found.high - found.low) <= abs(float(found.value or 0)) else None

    def _values(self, aggregate: Aggregate) -> _Values | None:
        """Returns what is known about the values of a column, if its domain is declared and it was profiled."""
        if not isinstance(aggregate.argument, ColumnRef):
            return None
        name = aggregate.argument.name
        column = self.profile.plan.schema.columns[name]
        ways = self.profile.clipped_count, self.profile.missing
        clipped, missing = (find(name, self.risk, self.limit) for find in ways)
        if column.domain is None or column.bounds is None or clipped is None or missing is None:
            return None
        kept = self.profile.rows.sum_within_limit(self.limit, self.risk)
        ends = [float(end) for end in (column.domain.low, column.domain.high, column.bounds.low, column.bounds.high)]
        return _Values(less(kept, missing), clipped, *ends)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of a column: how many are counted, how many are clipped, where they lie, and their bounds."""

    counted: Figure
    clipped: Figure
    first: float
    last: float
    low: float
    high: float

    @property
    def below(self) -> float:
        """Returns by how much a clipped value can be smaller than it is counted."""
        return max(self.low - self.first, 0.0)

    @property
    def above(self) -> float:
        """Returns by how much it can be larger."""
        return max(self.last - self.high, 0.0)


def _sum(cell: NoisyNumber, left: Figure, values: _Values) -> NoisyNumber:
    """Adds what every row left out, and every clipped value, can add at most."""
    low = cell.low + left.high * min(values.first, 0.0) - values.clipped.high * values.below
    high = cell.high + left.high * max(values.last, 0.0) + values.clipped.high * values.above
    usual = cell.value if cell.value is not None else 0
    value = float(usual) * (1 + left.value / max(values.counted.value, 1.0))
    return NoisyNumber(min(max(value, low), high), low, high)


def _mean(cell: NoisyNumber, left: Figure, values: _Values) -> NoisyNumber:
    """Mixes the mean of what was counted with values at an end of the domain, as many as were left out at most."""
    least = max(values.counted.low, 1.0)
    share = min(values.clipped.high / least, 1.0)
    low, high = max(cell.low - share * values.below, values.first), min(cell.high + share * values.above, values.last)
    weight = left.high / (least + left.high)
    low, high = min(low, low + weight * (values.first - low)), max(high, high + weight * (values.last - high))
    value = float(cell.value) if cell.value is not None else low
    return NoisyNumber(min(max(value, low), high), low, high)
