"""What an engine is asked to compute: exact integers per group, from rows whose influence public constants bound.

A reading is made of plan nodes only. It says nothing of noise, budgets or analysts, and its result is private.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal as Choice

from discreet.dataclass import dataclass
from discreet.plan.model.nodes import Expression, Relation, Value

StatisticKind = Choice["rows", "values", "nulls", "units", "sum", "product", "distinct", "distinct_sum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One exact integer per group.

    *rows*: the number of kept rows. *values*: of those, how many have an argument that is not NULL; *nulls*: how many
    have one that is. *distinct*: how many different values the arguments have, NULL not being one. *units*: the number
    of distinct units among kept rows (of rows, if each row is a unit). *sum*: the sum over kept rows of
    clip(floor(x * 2^-exponent + 1/2), low, high), where a NULL x counts as 0: x on the grid 2^exponent, as whole steps.
    `shift` is subtracted from each term that is not NULL before it is added. *product*: the sum over kept rows of the
    product of two or three such terms, less a constant for each; a row where one of them is NULL adds nothing.
    *distinct_sum*: the same as a sum, but terms that are equal are one. The whole is multiplied by `times`.

    Args:
        kind: which of them.
        argument: x, for all but rows and units.
        exponent: the grid's.
        low: the smallest term, in steps, before the shift.
        high: the largest.
        shift: what each term is counted from, in steps.
        times: what one of them counts for.
        factor: what the term of a product is multiplied by: a statistic of the kind *sum*, or a product of two.
        less: what is subtracted from each product.
    """

    kind: StatisticKind
    argument: Expression | None = None
    exponent: int = 0
    low: int = 0
    high: int = 0
    shift: int = 0
    times: int = 1
    factor: Statistic | None = None
    less: int = 0

    @property
    def terms(self) -> tuple[Statistic, ...]:
        """Returns what is multiplied, each as a statistic of the kind *sum*; of a sum, itself."""
        own = replace(self, kind="sum", times=1, factor=None, less=0)
        return (own,) if self.factor is None else (own, *self.factor.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionBounding:
    """At most `groups` groups per unit and `rows` rows per unit and group, chosen by a keyed rule.

    With a `total`, at most so many rows per unit in all groups together, which is all that is bounded then; only a
    spread, which counts no rows, looks at groups.

    Rows whose unit is NULL, or a text of blanks, are dropped; a text id counts without spaces at its ends. Within one
    unit, groups are ranked by a keyed mix of unit and key, and rows of one unit and group are taken evenly spaced in
    the order of what they add to the statistics; rows in the same place are interchangeable. Both are defined to the
    bit in `engines.choosing`, so that every engine keeps the same rows.
    """

    unit: str
    groups: int
    rows: int
    salt: str = field(repr=False)
    total: int | None = None


@dataclass(frozen=True, slots=True)
class CellSelection:
    """Some cells of some groups: (key, first cell, last cell), where cells are 2^shift steps wide."""

    shift: int
    places: tuple[tuple[tuple[Value, ...], int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Kept rows counted by where their value lies.

    The step of a row is the term of a *sum*, clip(floor(x * 2^-exponent + 1/2), low, high), and its cell is (step -
    low) // 2^shift; a row whose x is NULL has none. Rows of one unit and group are chosen in the order of their steps,
    so that readings which differ in `shift` and `only` alone keep the same rows.

    Args:
        argument: x.
        exponent: the grid's.
        low: the smallest step.
        high: the largest.
        shift: how wide a cell is.
        only: where rows are counted; None counts all. It is looked at after contributions are bounded.
    """

    argument: Expression
    exponent: int
    low: int
    high: int
    shift: int = 0
    only: CellSelection | None = None

    @property
    def term(self) -> Statistic:
        """Returns the statistic whose term a row's step is."""
        return Statistic(kind="sum", argument=self.argument, exponent=self.exponent, low=self.low, high=self.high)


@dataclass(frozen=True, slots=True)
class Spread:
    """Kept units counted by how many groups each is kept in, for each group; rows do not count.

    Args:
        without: keys whose rows are dropped, before contributions are bounded.
    """

    without: tuple[tuple[Value, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One read of one table, or of rows made of several.

    Args:
        table: its name.
        source: the rows, if they are not simply the table's.
        where: keeps rows for which this is TRUE; None keeps all.
        keys: what rows are grouped by; none is one group of all rows.
        public_keys: if given, rows with other keys are dropped, before contributions are bounded.
        bounding: None if each row is one unit.
        statistics: what to compute for each group that has a kept row.
        split: if given, rows are counted by cells instead, and there are no statistics.
        spread: if given, units are counted by their numbers of groups instead, and there are no statistics.
    """

    table: str
    source: Relation | None = None
    where: Expression | None = None
    keys: tuple[Expression, ...] = ()
    public_keys: tuple[tuple[Value, ...], ...] | None = None
    bounding: ContributionBounding | None = None
    statistics: tuple[Statistic, ...] = ()
    split: Split | None = None
    spread: Spread | None = None

    @property
    def without_salt(self) -> Reading:
        """Returns the same without the secret by which rows are kept."""
        return self if self.bounding is None else replace(self, bounding=replace(self.bounding, salt=""))


Groups = dict[tuple[Value, ...], tuple[int, ...]]
"""The result of a reading: for each key with a kept row its statistics. Without keys, the key is ().

Of a split, for each key with a counted row: its cells in ascending order, then as many counts, none of them zero. Of a
spread, the same for each key with a kept unit: numbers of groups, then how many units have so many.
"""
