"""A question as a frozen plan: what the analyst's text becomes, and the only thing that the floors above ever see.

An expression is a column, a literal, or the call of a function from the table in `functions`; operators, CASE, IN and
casts are calls like any other. There is nothing else, so there is nothing else to check, to print or to run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Literal as Choice

from discreet.dataclass import dataclass
from discreet.plan.model.types import Type

Value = int | float | str | bool | dt.date | dt.datetime | None
"""A value of a column or a literal; a datetime for TIMESTAMP, a date for DATE."""


UNIT = "#unit"
"""The column of ids in rows that are made of tables: whose row it is."""


_GROUPING = "#grouping"


def grouping(place: int) -> str:
    """Returns the name of the column that is 1 in groups without the key of this place, else 0."""
    return f"{_GROUPING}{place}"


def is_grouping(name: str) -> bool:
    """Returns whether a column of released groups says which keys a grouping leaves out."""
    return name.startswith(_GROUPING)


def is_aggregate(name: str) -> bool:
    """Returns whether a column of released groups is that of an aggregate."""
    return name.startswith("#") and not is_grouping(name)


class Expression:
    """A value computed from one row, total: it has a value, or NULL, for every row."""

    __slots__ = ()

    type: Type


@dataclass(frozen=True, slots=True)
class ColumnRef(Expression):
    """The value of a column of the source; in an output, of a key or an aggregate."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A value written in the question; NULL has the type that its place asks for."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """A function of the table, with arguments of the types it takes."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type


class Relation:
    """Rows, each of one unit or of none; `relations` has its forms."""

    __slots__ = ()


class PostProcessingStep:
    """Something done to released groups; `post.steps` has its forms."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Key:
    """An expression that rows are grouped by, and the name of its column in the answer."""

    name: str
    expression: Expression


FoldKind = Choice["count", "count_values", "count_distinct", "sum", "mean", "min", "max"]
"""What may be asked of one person's rows."""

ExtremeKind = Choice["arg_min", "arg_max", "first", "last"]
"""Where one value is smallest or largest, another; *first* and *last* also if that is NULL."""

WindowKind = Choice[
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "first",
    "last",
    "count",
    "count_values",
    "sum",
    "mean",
    "min",
    "max",
]
"""What may be asked of a row's place among rows of the same person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One aggregation: a count, a sum, a mean, a variance, one of pairs, such as CORR(x, y), a quantile or a mode.

    A quantile is QUANTILE(x, q), or MIN(x) or MAX(x), which are private quantiles near the extremes.

    Args:
        name: how outputs refer to it; not shown.
        kind: which of them, by its name in the registry of `measurement.aggregates`, which refuses all others.
        argument: x, None for COUNT(*) and COUNT(DISTINCT unit).
        other: y, for an aggregate of pairs.
        quantile: q, for QUANTILE only.
    """

    name: str
    kind: str
    argument: Expression | None = None
    other: Expression | None = None
    quantile: Fraction | None = None

    @property
    def is_measured(self) -> bool:
        """Returns whether it has an interval. A mode has none: it is a public value, and others may be far apart."""
        return self.kind != "mode"

    @property
    def time(self) -> Type | None:
        """Its type, if it is a day or a moment: a quantile of such."""
        if self.argument is None or not self.argument.type.is_time or self.kind.startswith("count"):
            return None
        return self.argument.type


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer, computed from keys and aggregates that are already released."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class SortKey:
    """An expression over outputs to sort the answer by."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Bands:
    """So many bands of equal width between the bounds of an expression, which are still to be chosen."""

    argument: Expression
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about one table.

    The rows are those of the table, unless `source` says otherwise: then they are made of several tables, and `table`
    is the first protected one. `where` and the keys and arguments are computed from private rows; `outputs`, `having`,
    `order`, `limit` and `offset` are post-processing: their columns are keys, aggregates and outputs by name. So are
    `steps`, which come after `having` and before the rest, and may make further columns. If there are `sets`, rows are
    grouped by each of them in turn, the keys given by their places; keys left out are NULL. Side questions are released
    together with it, and a step attaches their outputs to its groups. With a `rest`, the kept rows of all private
    groups that are not shown make one group more, whose keys all have that value. With `bands`, the key and the first
    two outputs have edges that were only supposed.
    """

    table: str
    source: Relation | None = None
    where: Expression | None = None
    keys: tuple[Key, ...] = ()
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    steps: tuple[PostProcessingStep, ...] = ()
    beside: tuple[Question, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()
    rest: Literal | None = None
    bands: Bands | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Returns the columns that distinguish released groups: keys, and whether each was left out of a grouping."""
        names = tuple(key.name for key in self.keys)
        return (*names, *(grouping(place) for place in range(len(names)))) if self.sets else names

    @property
    def groupings(self) -> tuple[Question, ...]:
        """Returns the same question with each grouping alone."""
        return tuple(replace(self, keys=tuple(self.keys[i] for i in one), sets=()) for one in self.sets)


LARGEST = 10_000  # parts of one expression, each counted as often as it occurs
DEEPEST = 100  # calls inside each other


def fits(expression: Expression) -> bool:
    """Returns whether an expression is small enough to be walked by simple recursion.

    >>> from discreet.plan.model.types import Type
    >>> x = ColumnRef("x", Type.INT)
    >>> for _ in range(200):
    ...     x = FunctionCall("add", (x, x), Type.INT)
    >>> fits(x)
    False
    """
    waiting, seen = [(expression, 1)], 0
    while waiting:
        part, depth = waiting.pop()
        seen += 1
        if seen > LARGEST or depth > DEEPEST:
            return False
        if isinstance(part, FunctionCall):
            waiting += [(argument, depth + 1) for argument in part.arguments]
    return True


def parts_of(expression: Expression) -> Iterator[Expression]:
    """Yields an expression and all parts of it."""
    yield expression
    if isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from parts_of(argument)


def expressions_in(node: object) -> Iterator[Expression]:
    """Yields the expressions that a part of a plan is made of, each whole."""
    if isinstance(node, Expression):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from expressions_in(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from expressions_in(getattr(node, field.name))


def columns(expression: Expression) -> Iterator[ColumnRef]:
    """Yields the columns that an expression reads, from left to right, each as often as it occurs."""
    if isinstance(expression, ColumnRef):
        yield expression
    elif isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from columns(argument)


def substitute(
    expression: Expression, known: Mapping[Expression, Expression], other: Callable[[ColumnRef], Expression]
) -> Expression:
    """Replaces the largest known parts of an expression, and every column outside of them by what `other` says."""
    if expression in known:
        return known[expression]
    if isinstance(expression, ColumnRef):
        return other(expression)
    if not isinstance(expression, FunctionCall):
        return expression
    parts = tuple(substitute(part, known, other) for part in expression.arguments)
    return FunctionCall(expression.function, parts, expression.type)
