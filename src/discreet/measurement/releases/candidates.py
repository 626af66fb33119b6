"""Candidates: the public values among which a mode is drawn, and the exponential mechanism that draws one.

The candidates come from declarations and the question alone, as public group keys do; rows with another value, or with
NULL, are counted for none of them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import UnsupportedQuery
from discreet.exact import Enclosure, upper
from discreet.mechanisms.mechanism import CONFIDENCE, Law
from discreet.mechanisms.ranks import ContributionLimits, Pieces, pieces, price_ranks, total
from discreet.noise import Bits, choose_exponential
from discreet.plan.analysis.group_keys import values
from discreet.plan.analysis.value_bounds import bounds, is_whole
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions import LAST_DAY
from discreet.plan.model.nodes import Expression, Literal, Value, columns
from discreet.plan.model.readings import Groups, Split
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import events

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
    """Returns the candidates of an argument: declared keys, whole numbers or days within bounds, or what follows.

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


def checked_candidates(argument: Expression, schema: TableSchema) -> Candidates:
    """Returns the candidates of an argument.

    Raises:
        UnsupportedQuery: if it has none that are public.
    """
    found = candidates_of(argument, schema)
    if found is None:
        raise UnsupportedQuery(
            "MODE is drawn among public values, but its argument has none, or too many.",
            "Declare its keys, or ask for the groups: GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1.",
        )
    return found


class CountMoves:
    """The moves of the counts of candidates by one unit, as halves of ranges.

    A unit has k_v >= 0 kept rows of the value v in a group, R at most together. The *range* of its move in that group
    is the largest change of a count less the smallest. If the unit is added or removed, all counts change the same way,
    by 0 to R: the range is R at most. If R rows of one value become R rows of another, one count falls by R and another
    rises by R: the range is 2 R, and no more, since every change lies between -R and R.
    """

    @staticmethod
    def moves(contribution: ContributionLimits) -> Pieces:
        """Returns halves of the largest ranges: a group that a replaced unit stays in has that of two others."""
        return pieces(contribution, Fraction(contribution.rows, 2), contribution.rows)

    @classmethod
    def l1(cls, contribution: ContributionLimits) -> Fraction:
        """Returns half of the largest sum, over groups, of the ranges."""
        return total(cls.moves(contribution))

    @staticmethod
    def l2_squared(contribution: ContributionLimits) -> Fraction:
        """Returns a quarter of the largest sum, over groups, of the squares of these ranges.

        Under REPLACE, groups in which the unit stays have (2 R)^2 each; leaving one and entering another instead has
        R^2 + R^2, which is less.
        """
        square = contribution.rows**2
        return total(pieces(contribution, Fraction(square, 4), square))


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDraw:
    """One candidate in every group, of probability proportional to e^(rate count).

    Formal guarantee: whatever the data, releasing the candidates of all groups, or of those that were selected to be
    shown, is described by `event` under the relation and the limits of the contribution it was built for.

    Proof. Between two neighbours, let the count of candidate v in group g change by d_v. The privacy loss of v, the
    logarithm of the ratio of its two probabilities, is rate d_v plus the same constant for all v: it lies in an
    interval of length rate (max d - min d), rate times the *range* of the move in g (Durfee, Rogers 2019). Counts of
    one group all grow or all fall if a unit is added or removed, so that this range is that of one sign alone, half of
    what bounds on |d_v| would give (`CountMoves`). Groups are drawn independently, and ranges of independent draws add
    up. For `laplace` budgets they add up to 2 rate `CountMoves.l1` = epsilon at most, put together as G releases of
    range epsilon / G each: under ADD_REMOVE the G groups themselves; under REPLACE a group in which the unit stays, or
    a group left together with one entered, which have the range of one stay. For `gaussian` budgets, a range e is
    e^2 / 8-zCDP (Cesar, Rogers 2021), and these add up to at most rate^2 `CountMoves.l2_squared` / 2 = rho. Which of
    the candidates are looked at is no function of the data, and a selection of groups is made by other noise.

    Permute-and-flip would err less for the same pure epsilon, but its loss is not bounded in range: it costs up to four
    times the rho, and does not compose over groups as well.

    Utility: the candidates of a count of t or more below the largest have a probability of n e^(-rate t) at most, n
    being the number of all. See `reach`.

    Args:
        candidates: the candidates.
        rate: in units of rows.
        event: the price.
        place: of its column among the released ones.
    """

    candidates: Candidates
    rate: Fraction
    event: events.Event
    place: int = 0

    @classmethod
    def of(cls, law: Law, candidates: Candidates, contribution: ContributionLimits, share: Fraction) -> CandidateDraw:
        """Returns the mode for an epsilon, or for a rho where the law is Gaussian; at place 0."""
        rate, event = price_ranks(law, CountMoves(), contribution, share)
        return cls(candidates=candidates, rate=rate, event=event)

    @property
    def variance(self) -> Fraction:
        """Returns the square of the error's scale, in rows."""
        return 1 / self.rate**2

    def reach(self, risk: Fraction) -> int:
        """Returns how far the count is below the largest at most, but for this probability, whatever the data.

        Counts are whole: what is more than t below is floor(t) + 1 below at least.
        """
        return _reach(self.rate, len(self.candidates.values), risk)

    def __str__(self) -> str:
        far, sure = self.reach(1 - CONFIDENCE), f"{float(CONFIDENCE):.0%}"
        return f"exponential mechanism, within {far:,} rows of the most frequent value with {sure}"

    def release(self, groups: Groups, keys: Sequence[tuple[Value, ...]], bits: Bits) -> list[int]:
        """Returns the place of one candidate for each of these groups; their laws are exact.

        Args:
            groups: the places of candidates that have rows, then how many rows each has, as an engine counts them.
            keys: of the groups that are shown.
            bits: the source of randomness.
        """
        return [self._draw_candidate(groups.get(key, ()), bits) for key in keys]

    def _draw_candidate(self, numbers: Sequence[int], bits: Bits) -> int:
        counts = np.zeros(len(self.candidates.values), dtype=np.int64)
        half = len(numbers) // 2
        counts[list(numbers[:half])] = numbers[half:]
        return choose_exponential(counts.max() - counts, self.rate, bits)


@lru_cache(maxsize=4096)
def _reach(rate: Fraction, candidates: int, risk: Fraction) -> int:
    return math.floor(upper(lambda digits: Enclosure.of(candidates / risk, digits).log() / rate))


# ----------------------------------------------------------------------------------------------------------- candidates


def _within_bounds(argument: Expression, schema: TableSchema) -> tuple[Value, ...] | None:
    """Returns whole numbers or days within bounds, even more than groups may be; None for the widest bounds."""
    supposed = any(column.type.is_time and schema.columns[column.name].limited for column in columns(argument))
    limits = bounds(argument, schema, floored=False) if is_whole(argument) or argument.type is Type.DATE else None
    limits = None if supposed else limits
    if limits is None or limits.width > MOST_CANDIDATES:
        return None
    whole = range(math.ceil(limits.low), math.floor(limits.high) + 1)
    if argument.type is Type.DATE:
        return tuple(map(dt.date.fromordinal, range(max(whole.start, 1), min(whole.stop, LAST_DAY + 1))))
    return tuple(map(float, whole)) if argument.type is Type.FLOAT else tuple(whole)


@lru_cache(maxsize=64)
def _split(argument: Expression, candidates: tuple[Value, ...]) -> Split | None:
    """Counts rows by the place of their value: without gaps by its distance from the first, else by a search."""
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        return None
    numbers = [_number(value) for value in candidates]
    first = numbers[0]
    whole = argument.type is not Type.FLOAT or is_whole(argument)
    if first is not None and whole and all(a is not None and b == a + 1 for a, b in pairwise(numbers)):
        placed = call(
            "if", _among(argument, candidates), _number_candidates(argument, candidates[0]), Literal(None, Type.INT)
        )
        low = 0 if argument.type is Type.DATE else first
        return Split(argument=placed, exponent=0, low=low, high=low + len(candidates) - 1)
    if len(candidates) > MOST_LISTED:
        return None
    return Split(argument=_build_search(argument, candidates, 0), exponent=0, low=0, high=len(candidates) - 1)


def _number(value: Value) -> int | None:
    """Returns the number of a whole number, day or truth value in their order; None for all else."""
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


def _number_candidates(argument: Expression, first: Value) -> Expression:
    """Returns a number that is larger by one for each candidate."""
    if argument.type is Type.DATE:
        return call("days_between", Literal(first, Type.DATE), argument)
    return argument if argument.type is Type.INT else call("to_int", argument)


def _build_search(argument: Expression, candidates: Sequence[Value], before: int) -> Expression:
    """Returns the place of the argument among candidates, by halves; NULL if it is none of them."""
    if len(candidates) == 1:
        same = call("equal", argument, Literal(candidates[0], argument.type))
        return call("if", same, Literal(before, Type.INT), Literal(None, Type.INT))
    middle = len(candidates) // 2
    parts = (candidates[:middle], before), (candidates[middle:], before + middle)
    lower, upper = (_build_search(argument, part, start) for part, start in parts)
    return call("if", call("less", argument, Literal(candidates[middle], argument.type)), lower, upper)
