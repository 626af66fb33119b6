"""MODE: which of public values is the most frequent one in a group, and how far one unit can move how often each is.

The candidates come from declarations and the question alone, as public group keys do; rows with another value, or with
NULL, are counted for none of them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from discreet.errors import UnsupportedQuery
from discreet.plan.analysis.function_bounds import is_whole
from discreet.plan.analysis.group_keys import values
from discreet.plan.analysis.stability import Contribution
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import LAST_DAY
from discreet.plan.model.nodes import Aggregate, Expression, Literal, Value
from discreet.plan.model.readings import Split
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

MOST_CANDIDATES = 4096
"""Of one mode, if they are whole numbers or days without gaps; each of them is weighed in every group."""

MOST_LISTED = 1024
"""Of one mode, if they are looked up in a list: one comparison of the list is written out for each."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The values among which a mode is drawn, and how rows are counted by them.

    Args:
        values: the candidates, in ascending order.
        split: counts rows by candidate: its cells are the places of values in the list.
    """

    values: tuple[Value, ...]
    split: Split


def candidates_of(argument: Expression, schema: TableSchema) -> Candidates | None:
    """The candidates of an argument: declared keys, whole numbers or days within bounds, or what follows from them.

    Returns:
        None if they are not public, or too many.
    """
    found = values(argument, schema)
    if found is None:
        found = _within_bounds(argument, schema)
    if found is None:
        return None
    candidates = sorted({value for value in found if value is not None})
    return Candidates(tuple(candidates), split) if (split := _split(argument, tuple(candidates))) is not None else None


def checked_candidates(aggregate: Aggregate, schema: TableSchema) -> Candidates:
    """The candidates of a mode.

    Raises:
        UnsupportedQuery: if its argument has none that are public.
    """
    found = None if aggregate.argument is None else candidates_of(aggregate.argument, schema)
    if found is None:
        raise UnsupportedQuery(
            "MODE is drawn among public values, and its argument has none, or too many.",
            "Declare its keys with keys=..., or ask for the groups: GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1.",
        )
    return found


def range_l1(contribution: Contribution) -> int:
    """The largest sum, over groups, of the ranges of what one unit does to the counts of candidates.

    A unit has k_v >= 0 kept rows of the value v in a group, R at most together. The *range* of its move in that group
    is the largest change of a count less the smallest. If the unit is added or removed, all counts change the same way,
    by 0 to R: the range is R at most. If R rows of one value become R rows of another, one count falls by R and another
    rises by R: the range is 2 R, and no more, since every change lies between -R and R.

    Under ADD_REMOVE a unit is in at most G groups: G R. Under REPLACE it has rows in at most G groups before, and in at
    most G after: a group that it leaves or enters has range R, one that it stays in 2 R, which is R for each of the two
    times, so that the sum is 2 G R at most. Without keys there is one group, in which it stays: 2 R.
    """
    each = 1 if contribution.neighbours is Neighbours.ADD_REMOVE else 2
    return each * contribution.groups * contribution.limits.rows


def range_l2_squared(contribution: Contribution) -> int:
    """The largest sum, over groups, of the squares of these ranges.

    Under REPLACE, G groups in which the unit stays have (2 R)^2 each; leaving one and entering another instead has
    R^2 + R^2, which is less.
    """
    each = 1 if contribution.neighbours is Neighbours.ADD_REMOVE else 4
    return each * contribution.groups * contribution.limits.rows**2


# ----------------------------------------------------------------------------------------------------------- candidates


def _within_bounds(argument: Expression, schema: TableSchema) -> tuple[Value, ...] | None:
    """Whole numbers or days within bounds, more than would be shown as groups."""
    limits = bounds(argument, schema) if is_whole(argument) or argument.type is Type.DATE else None
    if limits is None or limits.width > MOST_CANDIDATES:
        return None
    whole = range(math.ceil(limits.low), math.floor(limits.high) + 1)
    if argument.type is Type.DATE:
        return tuple(map(dt.date.fromordinal, range(max(whole.start, 1), min(whole.stop, LAST_DAY + 1))))
    return tuple(map(float, whole)) if argument.type is Type.FLOAT else tuple(whole)


@lru_cache(maxsize=64)
def _split(argument: Expression, candidates: tuple[Value, ...]) -> Split | None:
    """Rows counted by the place of their value: without gaps by its distance from the first, else by a search."""
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        return None
    numbers = [_number(value) for value in candidates]
    first = numbers[0]
    whole = argument.type is not Type.FLOAT or is_whole(argument)
    if first is not None and whole and all(a is not None and b == a + 1 for a, b in pairwise(numbers)):
        placed = call("if", _among(argument, candidates), _counted(argument, candidates[0]), Literal(None, Type.INT))
        low = 0 if argument.type is Type.DATE else first
        return Split(argument=placed, exponent=0, low=low, high=low + len(candidates) - 1)
    if len(candidates) > MOST_LISTED:
        return None
    return Split(argument=_found(argument, candidates, 0), exponent=0, low=0, high=len(candidates) - 1)


def _number(value: Value) -> int | None:
    """Whole numbers, days and truth values in their order; None for all else."""
    if isinstance(value, dt.datetime) or not isinstance(value, bool | int | float | dt.date):
        return None
    if isinstance(value, dt.date):
        return value.toordinal()
    return int(value) if value == int(value) else None


def _among(argument: Expression, candidates: Sequence[Value]) -> Expression:
    if argument.type is Type.BOOL:
        return call("in", argument, *(Literal(value, Type.BOOL) for value in candidates))
    low, high = (Literal(candidates[place], argument.type) for place in (0, -1))
    return call("and", call("greater_equal", argument, low), call("less_equal", argument, high))


def _counted(argument: Expression, first: Value) -> Expression:
    """A number that is larger by one for each candidate."""
    if argument.type is Type.DATE:
        return call("days_between", Literal(first, Type.DATE), argument)
    return argument if argument.type is Type.INT else call("to_int", argument)


def _found(argument: Expression, candidates: Sequence[Value], before: int) -> Expression:
    """The place of the argument among candidates, by halves; NULL if it is none of them."""
    if len(candidates) == 1:
        same = call("equal", argument, Literal(candidates[0], argument.type))
        return call("if", same, Literal(before, Type.INT), Literal(None, Type.INT))
    middle = len(candidates) // 2
    parts = (candidates[:middle], before), (candidates[middle:], before + middle)
    lower, upper = (_found(argument, part, start) for part, start in parts)
    return call("if", call("less", argument, Literal(candidates[middle], argument.type)), lower, upper)
