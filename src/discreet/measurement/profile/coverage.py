"""What an answer leaves out: rows beyond its limits, rows without an id and values beyond bounds, by a profile.

A filter can leave of everybody what one likes, so that of a filtered answer only a number of rows is known that is
certainly not exceeded. Of rows that are joined or computed a profile tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.measurement.profile.profile import Profile
from discreet.measurement.profile.sizes import ZERO, Figure, share
from discreet.measurement.program.execution import Released
from discreet.measurement.program.program import Program
from discreet.plan.model.nodes import Aggregate, Column, Question, columns
from discreet.plan.post.outputs import Cell, Noisy
from discreet.report.display import amount, rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What limits and bounds leave out of one column of an answer.

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
    question = program.question
    plain = question.source is None and not (question.beside or question.sets or question.rest or question.bands)
    keys = tuple(key.expression.name for key in question.keys if isinstance(key.expression, Column))
    if not plain or len(keys) < len(question.keys) or question.table != profile.table:
        return None
    outside = (1 - confidence) / 2
    left, kept = _left(program, profile, keys, outside)
    if left is None or kept is None:
        return None
    if question.where is not None:
        unknown = Coverage(share=None, low=0.0, high=1.0, rows=Figure(left.value, 0.0, left.high))
        return dict.fromkeys(_numbers(question), unknown)
    return {
        name: _of_column(used, ZERO if _is_of_people(used, keys) else left, kept, profile, outside)
        for name, used in _numbers(question).items()
    }


def _numbers(question: Question) -> dict[str, list[Aggregate]]:
    """Returns the outputs that are made of aggregates, each with those."""
    named = {aggregate.name: aggregate for aggregate in question.aggregates}
    used = {o.name: [named[c.name] for c in columns(o.expression) if c.name in named] for o in question.outputs}
    return {name: aggregates for name, aggregates in used.items() if aggregates}


def _is_of_people(used: list[Aggregate], keys: tuple[str, ...]) -> bool:
    """Whether only people are counted, once each: no limit of rows leaves anybody out."""
    return not keys and all(aggregate.kind == "count_units" for aggregate in used)


def _left(
    program: Program, profile: Profile, keys: tuple[str, ...], outside: Fraction
) -> tuple[Figure | None, Figure | None]:
    """Returns how many rows are left out, and how many are counted."""
    if profile.by_row:
        return ZERO, profile.people(outside)
    limits, risk = program.contribution.limits, outside / 4
    nobodys = profile.nobodys(risk)
    if not keys:
        return profile.rows.beyond(limits.rows, risk) + nobodys, profile.rows.kept(limits.rows, risk)
    groups, beyond = profile.groups(keys), profile.beyond(keys)
    if groups is None or beyond is None or limits.rows != profile.plan.schema.limits.rows:
        return None, None
    within, dropped = beyond.beyond(0, risk), groups.beyond(limits.groups, risk)
    value = within.value + dropped.value * (1 + limits.rows) / 2
    high = within.high + dropped.high * limits.rows if dropped.high else within.high
    left = Figure(
        value, within.low + dropped.low, high
    )  # of a group that is dropped, one row is, and its limit at most
    most, every = profile.rows.kept(limits.rows * limits.groups, risk), profile.rows.beyond(0, risk)
    kept = Figure(max(every.value - value, 0.0), profile.people(risk).low, most.high)
    return left + nobodys, kept


def _of_column(used: list[Aggregate], left: Figure, kept: Figure, profile: Profile, outside: Fraction) -> Coverage:
    arguments = {aggregate.argument.name for aggregate in used if isinstance(aggregate.argument, Column)}
    counts = [profile.clipped(name, outside / max(len(arguments), 1)) for name in sorted(arguments)]
    clipped = [count for count in counts if count is not None]
    if not clipped:
        found = share(left, kept)
        return Coverage(share=found.value, low=found.low, high=found.high, rows=left)
    most = Figure(*(sum(getattr(one, part) for one in clipped) for part in ("value", "low", "high")))
    # Which of a person's rows are counted is not known: of those that are clipped, none may be, or all of them.
    moved = Figure(left.value + most.value, left.low, left.high + most.high)
    rest = Figure(*(max(0.0, a - b) for a, b in ((kept.value, most.value), (kept.low, most.high), (kept.high, 0.0))))
    found, own = share(moved, rest), share(most, rest)
    return Coverage(share=found.value, low=found.low, high=found.high, rows=left, clipped=own)


def completed(
    released: Released, profile: Profile, confidence: Fraction, rows: Sequence[dict[str, Cell]]
) -> tuple[list[dict[str, Cell]], frozenset[str]]:
    """Returns the rows of an answer with counts of all rows of a table in the place of counts within limits.

    What was counted and what limits and missing ids leave out add up to the whole; the risk of an interval is divided
    between the two. Without a declared `most_rows` nothing is completed: no finite end would be valid.

    Returns:
        The rows, and which of their columns were completed.
    """
    question = released.program.question
    plain = question.source is None and question.where is None and not (question.keys or question.steps)
    alone = not (question.beside or question.sets or question.having or profile.by_row)
    counts = {one.name for one in question.aggregates if one.kind == "count"}
    named = {o.name for o in question.outputs if isinstance(o.expression, Column) and o.expression.name in counts}
    if not (plain and alone and named) or question.table != profile.table or profile.most_rows is None:
        return list(rows), frozenset()
    risk = (1 - confidence) / 4
    left = profile.rows.beyond(released.program.contribution.limits.rows, risk) + profile.nobodys(risk)
    (narrow,), (row,) = released.rows(1 - 2 * risk), rows
    return [{**row, **{name: _plus(narrow[name], left) for name in named}}], frozenset(named)


def _plus(cell: Cell, left: Figure) -> Cell:
    if not isinstance(cell, Noisy) or cell.value is None:
        return cell
    low, high = math.floor(cell.low + left.low), math.ceil(cell.high + left.high)
    return Noisy(min(max(round(cell.value + left.value), low), high), low, high)
