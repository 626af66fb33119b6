"""Budgets solved from errors: the smallest epsilon at which every number is as near to the truth as was asked.

The price is a function of the question, the declarations and what was released before, never of data: sums and counts
have an error that the noise alone decides; the error of a mean also depends on how many values it has, and only
the lower end of a released count of them is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.hint_text import Hint
from discreet.measurement.aggregates import aggregation
from discreet.measurement.program.program import Program
from discreet.plan.model.nodes import ColumnRef, Question, columns
from discreet.plan.post.steps import noisy_columns

DIGITS = 3  # of a solved epsilon: steps of at most one in a hundred
_FIRST: int = 10 ** (DIGITS - 1)
_STEPS = 9 * _FIRST  # between two powers of ten
_LEAST, _MOST = -12, 9  # powers of ten between which budgets are looked for
COUNTED = Fraction(1, 10)
"""Of the risk of a mean: that a released count overstates the number of its values."""

Rebuild = Callable[[Fraction], Program]
Fewest = Mapping[str, int]
"""For each mean by name, a number of values that it has at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTarget:
    """A target for errors: how near each number must be to the truth, how surely, and at what cost at most."""

    within: Fraction
    confidence: Fraction
    max_epsilon: Fraction

    @classmethod
    def of(cls, within: check.Number, confidence: Fraction, max_epsilon: check.Number | None) -> ErrorTarget:
        """Returns a target, checked.

        Raises:
            InvalidParameter: if an amount is not positive, or there is no cap.
        """
        if max_epsilon is None:
            raise InvalidParameter(
                "max_epsilon", None, Hint("to be given with {within}"), Hint("Pass e.g. {max_epsilon:1}.")
            )
        return cls(
            within=check.positive(within=within),
            confidence=confidence,
            max_epsilon=check.positive(max_epsilon=max_epsilon),
        )


def check_plain(question: Question) -> None:
    """Checks that every number is one COUNT, SUM or AVG.

    Raises:
        UnsupportedQuery: if there is none, if one is a quantile, or naming the first that is computed from aggregates:
            its error depends on their values.
    """
    if not question.aggregates:
        raise UnsupportedQuery("This question has no numbers whose error could be limited.", "Ask with an epsilon.")
    for registered in (aggregation(aggregate.kind) for aggregate in question.aggregates):
        if registered.drawn:
            raise UnsupportedQuery(*registered.no_target)
    own = {aggregate.name for aggregate in question.aggregates}
    for output in question.outputs:
        named = {column.name for column in columns(output.expression)}
        plain = isinstance(output.expression, ColumnRef) and (not question.steps or named <= own)
        if named & noisy_columns(question) and not plain:
            raise UnsupportedQuery(
                f"The error of {output.name!r} is not known beforehand: it is computed from aggregates.",
                Hint("Ask for plain COUNT, SUM and AVG columns with {within}, or ask with an epsilon."),
            )


def means(program: Program) -> tuple[str, ...]:
    """Returns the aggregates whose error depends on how many values they have."""
    return tuple(name for name, estimator in program.estimators.items() if estimator.total is None)


def solve(rebuild: Rebuild, target: ErrorTarget, fewest: Fewest) -> Fraction:
    """Returns the smallest epsilon of three digits at which every number keeps the target, or the cap itself.

    Raises:
        InvalidParameter: if that is more than the cap; its hint names a cap that is enough.
    """

    def holds(epsilon: Fraction) -> bool:
        return farthest(rebuild(epsilon), 1 - target.confidence, fewest) <= target.within

    if not holds(target.max_epsilon):
        raise _too_little(target, _smallest(holds, _place(target.max_epsilon), _STEPS * _MOST))
    found = _smallest(holds, _STEPS * _LEAST, _place(target.max_epsilon))
    return target.max_epsilon if found is None else min(found, target.max_epsilon)


def farthest(program: Program, outside: Fraction, fewest: Fewest) -> Fraction | float:
    """Returns how far the worst of the numbers may be from the truth, each but for this probability."""
    risks = {name: outside if each.total else outside * (1 - COUNTED) for name, each in program.estimators.items()}
    found = [each.error(program.noise, risks[name], fewest.get(name)) for name, each in program.estimators.items()]
    return max(found)


def _smallest(holds: Callable[[Fraction], bool], low: int, high: int) -> Fraction | None:
    """Returns a place between two at which the condition holds and one below which it does not; None if it never holds.

    Noise falls as budgets grow, so the condition holds from some place on.
    """
    if not holds(_epsilon(high)):
        return None
    if holds(_epsilon(low)):
        return _epsilon(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(_epsilon(middle)) else (middle, high)
    return _epsilon(high)


def _epsilon(place: int) -> Fraction:
    """Returns the numbers of three digits, in order: place 0 is 1, place 1 is 1.01.

    >>> [float(_epsilon(place)) for place in (0, 1, 900, -1)]
    [1.0, 1.01, 10.0, 0.999]
    """
    power, digits = divmod(place, _STEPS)
    return (digits + _FIRST) * _ten_to(power - DIGITS + 1)


def _place(epsilon: Fraction) -> int:
    """Returns the last place up to an epsilon."""
    power = math.floor(math.log10(epsilon))
    place = _STEPS * power + math.floor(epsilon * _ten_to(DIGITS - 1 - power)) - _FIRST
    while _epsilon(place) > epsilon:
        place -= 1
    return place


def _ten_to(power: int) -> Fraction:
    return Fraction(f"1e{power}")


def _too_little(target: ErrorTarget, needed: Fraction | None) -> InvalidParameter:
    if needed is None:
        return InvalidParameter("within", str(target.within), "to be possible at some budget", "Pass a larger error.")
    hint = Hint(f"Pass {{max_epsilon:{float(needed):g}}}, or a larger {{within}}. Nothing was spent.")
    return InvalidParameter(
        "max_epsilon",
        float(target.max_epsilon),
        Hint(f"to be {float(needed):g}, which {{within:{float(target.within):g}}} needs"),
        hint,
    )
