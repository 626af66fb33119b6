"""Answers that go on working on released groups: at which risks intervals are taken, and the noise of sums over groups.

A column that rests on few intervals, such as a share of a total, gets those at an equal share of the risk. All others
hold if the intervals of all aggregates of all groups hold at once, each at an equal share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.dataclass import dataclass
from discreet.measurement.intervals.estimators import COUNTED, TotalEstimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.program.program import Program
from discreet.measurement.releases.additive import Integers, LinearCombination
from discreet.measurement.selection import Threshold
from discreet.mechanisms.sums import (
    Floats,
    gaussian_reaches,
    laplace_reaches,
    repeated_gaussian_reach,
    repeated_laplace_reach,
)
from discreet.plan.model.group_columns import ColumnarRows
from discreet.plan.model.nodes import PostProcessingStep, Question
from discreet.plan.post.outputs import Cell, NoisyColumn, NoisyNumber, NoisyTime, finish
from discreet.plan.post.step_evaluation import StepContext, apply_steps
from discreet.plan.post.steps import (
    AttachQuestion,
    FilterGroups,
    adds_up_groups,
    find_measured_columns,
    noisy_columns,
    of_several_groups,
    rests,
    single,
)

Finishing = Callable[[Fraction], ColumnarRows[Cell]]
"""Keys and aggregates of each group, with intervals that miss with at most a given probability each."""

_FEW, _JOINED = 3, 1024
"""Sums over few groups have reaches proven with directed rounding; sums over many are told by a bound alone."""

_LARGEST = Fraction(10**100)
"""Scales above are beyond doubles when they are squared."""

_COUNTED = 64
"""Sums over so many groups have a reach of their own; above, numbers of groups are rounded up to five binary digits."""


@dataclass(frozen=True)
class SummedGroupNoise:
    """The noise of sums of one aggregate over groups, at one risk.

    Groups meet independent noise of the same law. More terms reach further, since each is symmetric with one peak, so
    that a larger number may stand for a smaller one. Roundings add up in the worst way.
    """

    noise: Noise
    total: TotalEstimator
    noisy: Integers
    outside: Fraction

    def ends(self, place: int) -> tuple[Fraction, Fraction]:
        """Returns the noisy value of a group, less and more what the rounding of values may have moved it by."""
        (value, *more) = (Fraction(int(numerators[place]), bottom) for numerators, bottom in self._values)
        moved = self.total.rounding * more[0] if more else self.total.most_rounding
        return value - moved, value + moved

    def reach(self, count: int) -> Fraction:
        """Returns a distance that the noise of a sum over so many groups exceeds with at most the risk."""
        spare = max(count.bit_length() - 5, 0)
        rounded = count if count <= _COUNTED else -(-count >> spare) << spare
        if rounded not in self._reaches:
            self._reaches[rounded] = self._miss(rounded)
        return self._reaches[rounded]

    def _miss(self, count: int) -> Fraction:
        """Returns the same as `TotalEstimator.miss`; the largest rounding of values is in `ends`, for each group."""
        total = self.total
        if total.values is None or not total.rounding:
            return self._reach(total.linear, count, self.outside)
        share = self.outside * COUNTED
        counted = self._reach(total.values, count, share)
        return self._reach(total.linear, count, self.outside - share) + total.rounding * counted

    def _reach(self, linear: LinearCombination, count: int, outside: Fraction) -> Fraction:
        """Returns the smaller of two reaches: by the law of the sum, and by a bound that small terms do not spoil."""
        if count <= _FEW or max(self.noise.scales) > _LARGEST:
            width = len(self.noise.scales)
            places = [(place + width * i, weight) for place, weight in linear.weights for i in range(count)]
            return self.noise.repeat_for_groups(count).reach(LinearCombination(tuple(sorted(places))), outside)
        largest = max(abs(weight) for _, weight in linear.weights)
        weights = np.array([float(weight / largest) for _, weight in linear.weights])
        scales = np.array([float(self.noise.scales[place]) for place, _ in linear.weights])
        far = largest * Fraction(self._of_many(weights, scales, count, float(outside)))
        return far + count * self.noise.rounding(linear)

    def _of_many(self, weights: Floats, scales: Floats, count: int, risk: float) -> float:
        laplace = self.noise.law == "laplace"
        bound = (repeated_laplace_reach if laplace else repeated_gaussian_reach)(weights, scales, count, risk)
        if count > _JOINED:
            return bound
        steps, sizes = (np.tile(each, count)[:, None] for each in (weights, weights * scales))
        if laplace:
            return min(bound, float(laplace_reaches(sizes, steps, risk)[0]))
        return min(bound, float(gaussian_reaches(sizes, steps, np.tile(scales, count), risk)[0]))

    @cached_property
    def _values(self) -> list[tuple[Sequence[int], int]]:
        counted = [] if self.total.values is None or not self.total.rounding else [self.total.values]
        return [linear.values(self.noisy) for linear in (self.total.linear, *counted)]

    @cached_property
    def _reaches(self) -> dict[int, Fraction]:
        return {}


def compute_rows(
    program: Program,
    groups: Finishing,
    confidence: Fraction,
    noisy: Integers | None = None,
    blocks: Sequence[Finishing] = (),
) -> ColumnarRows[Cell]:
    """Returns the rows of an answer that works on released groups.

    Args:
        program: with the question and its steps.
        groups: the released groups.
        confidence: of each interval.
        noisy: the statistics of the groups, if sums over groups may be estimated with their noise.
        blocks: the released groups of the questions released with it.

    *Formal guarantee.* Intervals hold with at least this confidence what the same steps give on the true aggregates of
    the released groups. Where groups were shown for a noisy size, that is of groups whose true size is at least the
    threshold: noise can only have been too large where the size was seen, which at most doubles a risk.
    """
    question, risk = program.question, 1 - confidence
    drawn = any(isinstance(part.selection, Threshold) for part in (program, *program.beside))
    totals = {} if noisy is None or drawn else _totals(program)
    depend = noisy_columns(question)
    own = {aggregate.name: 1 for aggregate in question.aggregates}
    known = own if drawn else single(question, frozenset(totals))
    counts = {output.name: rests(output.expression, known, depend) for output in question.outputs}
    values, others = groups(risk), [block(risk) for block in blocks]
    all_cells = len(values) * len(program.estimators) + sum(
        len(rows) * len(part.estimators) for rows, part in zip(others, program.beside, strict=True)
    )
    answers: dict[int | None, ColumnarRows[Cell]] = {}
    for count in set(counts.values()):
        share = risk / max(1, count if count is not None else all_cells * (2 if drawn else 1))
        laws = {name: SummedGroupNoise(program.noise, total, noisy, share) for name, total in totals.items()}  # type: ignore[arg-type]
        rows = same_values(values, groups(share))
        finished = [
            _of_block(part.question, same_values(first, block(share)))
            for part, first, block in zip(program.beside, others, blocks, strict=True)
        ]
        answers[count] = _finish_groups(question, rows, StepContext({} if count is None else laws, finished))
    length = len(next(iter(answers.values())))
    return ColumnarRows({name: answers[count].columns[name] for name, count in counts.items()}, length)


def is_of_shown_groups(program: Program) -> bool:
    """Returns whether an answer adds up groups as if they were all, though only those large enough are shown.

    Groups are also lost where they are joined with such groups.
    """
    steps = program.question.steps
    joined = {step.place for step in steps if isinstance(step, AttachQuestion) and step.on}
    blocks = [part for place, part in enumerate(program.beside) if place in joined]
    if adds_up_groups(program.question) and any(map(_has_private_groups, (program, *blocks))):
        return True
    return any(adds_up_groups(part.question) and _has_private_groups(part) for part in program.beside)


def note_on_shown_groups(program: Program) -> list[str]:
    """Returns what is said of numbers that are computed from the groups shown alone."""
    private = any(map(_has_private_groups, (program, *program.beside)))
    names = of_several_groups(program.question) if private else ()
    blocks = [part for part in program.beside if _has_private_groups(part) and of_several_groups(part.question)]
    if not names and not blocks:
        return []
    about = ", ".join(names) or "Numbers from SELECTs in brackets"
    return [f"{about}: computed from the groups shown, not from all groups. Groups that are not shown are missing."]


def _has_private_groups(program: Program) -> bool:
    return any(one.selection is not None for one in (program, *program.groupings))


def _totals(program: Program) -> dict[str, TotalEstimator]:
    return {name: total for name, each in program.estimators.items() if (total := each.total) is not None}


def same_values(values: ColumnarRows[Cell], rows: ColumnarRows[Cell]) -> ColumnarRows[Cell]:
    """Returns rows with the values of others: a mean near its bounds may differ a little from one risk to another.

    So HAVING and ORDER BY decide alike, whatever the risk.
    """
    found = {name: _with_values(values.columns[name], column) for name, column in rows.columns.items()}
    return ColumnarRows(found, len(rows))


def _with_values(first: Sequence[Cell], parts: Sequence[Cell]) -> Sequence[Cell]:
    if isinstance(first, NoisyColumn) and isinstance(parts, NoisyColumn):
        return parts.at(first.value)
    return [_at(one, part) for one, part in zip(first, parts, strict=True)]


def _at(first: Cell, part: Cell) -> Cell:
    if isinstance(first, NoisyNumber) and isinstance(part, NoisyNumber):
        if first.value is None:
            return replace(part, value=None)
        return NoisyNumber(first.value, min(part.low, first.value), max(part.high, first.value))
    if isinstance(first, NoisyTime) and isinstance(part, NoisyTime) and first.value is not None:
        return NoisyTime(first.value, min(part.low, first.value), max(part.high, first.value))
    return part


def _of_block(question: Question, rows: ColumnarRows[Cell]) -> ColumnarRows[Cell]:
    """Returns the rows of a question that was released with the main one."""
    return _finish_groups(question, rows, StepContext()) if question.steps else finish(question, rows)


def _finish_groups(question: Question, rows: ColumnarRows[Cell], setting: StepContext) -> ColumnarRows[Cell]:
    before: tuple[PostProcessingStep, ...] = () if question.having is None else (FilterGroups(question.having),)
    shown = apply_steps((*before, *question.steps), rows, setting, find_measured_columns(question))
    return finish(replace(question, having=None), shown)
