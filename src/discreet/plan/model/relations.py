"""Rows that a question may count: those of a table, or rows made of tables, one person at a time.

Every relation is *local*: which rows a unit has in it, and what they hold, is a function of that unit's rows in
protected tables and of public tables. So contributions are bounded once, after the last step, and whatever a relation
does to the number of rows, one unit moves the statistics by no more than its limits allow.

Columns are called by names of our own choice; `UNIT` is the id of whose row it is, in every relation that has people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.plan.model.nodes import (
    UNIT,
    ColumnRef,
    Expression,
    ExtremeKind,
    FoldKind,
    Output,
    Relation,
    SortKey,
    WindowKind,
)
from discreet.plan.model.row_period import RowPeriod
from discreet.plan.model.types import Type


@dataclass(frozen=True, slots=True)
class BaseTable(Relation):
    """A declared table; `unit` is its column of ids, None if it is public or its rows are units of their own.

    Several columns make an id together: the texts of their values, each after its length and a colon, in a row; NULL if
    one of them is. Rows that are units of their own may be computed, filtered and joined with one public row each, not
    put together or folded: each stays one.

    With a `period` the id is of one column of ids and the first day of the row's period, put together in the same way:
    a unit is one person's rows of one period.
    """

    name: str
    unit: str | tuple[str, ...] | None
    period: RowPeriod | None = None


@dataclass(frozen=True, slots=True)
class LinkedTable(Relation):
    """The rows of a declared table, each once for every unit that has a row with the same key in another relation.

    Formal guarantee: local. Let neighbours differ in the rows that one unit has in `through`, and in rows of the table
    that in neither belong to another unit. Every other unit has the same keys in both, and so the same rows: what
    differs has none of its keys. This needs no key to be unique: one that two units have brings its rows to both, each
    within its own limits, and neither's coming or going moves the other's.
    """

    name: str
    column: str
    through: Relation
    key: str


@dataclass(frozen=True, slots=True)
class Select(Relation):
    """The rows for which a condition is TRUE, with computed columns, each in the place of one row."""

    source: Relation
    columns: tuple[Output, ...]
    where: Expression | None = None


FineGrid = tuple[int, int, int]
"""The exponent of a grid, and the smallest and the largest value in its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One value of several rows of one unit.

    *sum* is exact: each x becomes clip(floor(x * 2^-exponent + 1/2), low, high) steps; NULL if their sum leaves 64
    bits. Steps are those of the `fine` grid if there is one, by which a fold is not known: what was stored of a
    question is found by the other. *mean* is the sum over the number of values. *min* and *max* are the smallest and
    the largest value.
    *arg_min* and *arg_max* are the value where `by` is smallest or largest, and of several such values the smallest or
    largest; rows where one of the two is NULL do not count. *first* and *last* are the same, but for rows where only
    the value is NULL: these count, and the result is NULL if no other row has the same `by`. All but counts are NULL if
    there is no value.
    """

    name: str
    kind: FoldKind | ExtremeKind
    type: Type
    argument: Expression | None = None
    exponent: int = 0
    low: int = 0
    high: int = 0
    by: Expression | None = None
    fine: FineGrid | None = None

    @property
    def grid(self) -> FineGrid:
        """Returns the grid on which values are added up."""
        return self.fine or (self.exponent, self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One value for each row, of its place among the rows of the same unit with equal `partition`.

    The rows are in the order of `order`, NULL last in both directions; rows that are equal in it are in the order of
    all their columns, so that there is one order but for rows that are the same. *row_number* counts from 1; *rank* and
    *dense_rank* are equal for rows equal in `order`. *lag* and *lead* are the argument so many rows before or after,
    *first* and *last* that of the first and the last of all rows. The others are folds over all rows, or, where there
    is an order, over those up to the row and those equal to it in `order`.
    """

    name: str
    kind: WindowKind
    type: Type
    argument: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[SortKey, ...] = ()
    offset: int = 1
    exponent: int = 0
    low: int = 0
    high: int = 0
    fine: FineGrid | None = None

    @property
    def grid(self) -> FineGrid:
        """Returns the grid on which values are added up."""
        return self.fine or (self.exponent, self.low, self.high)


@dataclass(frozen=True, slots=True)
class WindowedRelation(Relation):
    """The rows of a relation with an id, each with values of its place among the same unit's rows."""

    source: Relation
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class UnitAggregation(Relation):
    """One row for each unit, and for each value of its keys."""

    source: Relation
    keys: tuple[Output, ...]
    folds: tuple[Fold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Relation):
    """Pairs of rows of two relations whose expressions are equal; NULL equals nothing.

    If both have people, `on_unit` holds: only rows of the same unit make a pair. Columns are called by the names of the
    sides, which differ.

    Args:
        left: one relation.
        right: the other; public, or of the same people.
        on: expressions of the left and of the right row that must be equal.
        outer: whether a left row without a pair stays, with NULL on the right.
        single: whether a left row has one pair at most, that of the smallest public row: so that rows which are units
            of their own stay one, whatever the public table holds. Nothing rests on what is declared of it.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[Expression, Expression], ...]
    outer: bool = False
    single: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Relation):
    """At most `rows` rows of each unit: those that come first in an order that depends on the unit's rows alone.

    A join multiplies the rows that a unit has on its sides, and so each side is cut before (`plan.analysis.join_rows`).
    Rows without an id are left out. The order is, with ranks of the salt as `row_choice` defines them:

    1. for each expression of `by` that is no FLOAT, the rank of the unit and its value;
    2. the values of the others, NULL last;
    3. the rank of the unit and of all columns that are no FLOATs;
    4. all columns, NULL first. Rows that are equal in all of them are interchangeable.

    Two sides that are cut by the expressions that a join compares put equal values in the same places, so that the rows
    that stay are rows that match.

    Formal guarantee: local. Which rows of a unit stay is a function of that unit's rows and of public constants; a unit
    that comes or goes moves no other unit's rows.

    Args:
        source: rows with an id.
        by: the expressions that the join compares, but for those that say whose rows they are.
        rows: a public constant.
        salt: of the reading; engines fill it in, and no plan has it.
    """

    source: Relation
    by: tuple[Expression, ...]
    rows: int
    salt: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class RelationUnion(Relation):
    """The rows of several relations with the same columns, one after the other."""

    sources: tuple[Relation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SemiJoin(Relation):
    """The rows of a relation that have, or have not, an equal row in another: IN and EXISTS.

    If both have people, only rows of the same unit count.
    """

    source: Relation
    other: Relation
    on: tuple[tuple[Expression, Expression], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkJoin(Relation):
    """The rows of a relation, each with a truth value: whether it has an equal row in another.

    It is NULL where what is compared is NULL. If both have people, only rows of the same unit count.
    """

    source: Relation
    other: Relation
    on: tuple[tuple[Expression, Expression], ...]
    name: str


Declared = Mapping[str, Mapping[str, Type]]
"""The declared columns of each table."""


def tables(relation: Relation) -> Iterator[str]:
    """Returns the names of all tables that a relation reads."""
    if isinstance(relation, BaseTable | LinkedTable):
        yield relation.name
    for child in children(relation):
        yield from tables(child)


def children(relation: Relation) -> tuple[Relation, ...]:
    """Returns the relations that a relation is made of."""
    if isinstance(relation, Select | UnitAggregation | WindowedRelation | Cut):
        return (relation.source,)
    if isinstance(relation, LinkedTable):
        return (relation.through,)
    if isinstance(relation, Join):
        return relation.left, relation.right
    if isinstance(relation, SemiJoin | MarkJoin):
        return relation.source, relation.other
    return relation.sources if isinstance(relation, RelationUnion) else ()


def with_children(relation: Relation, inner: Sequence[Relation]) -> Relation:
    """Returns a relation that is made of others, in the order of `children`."""
    if isinstance(relation, Select | UnitAggregation | WindowedRelation | Cut):
        return replace(relation, source=inner[0])
    if isinstance(relation, LinkedTable):
        return replace(relation, through=inner[0])
    if isinstance(relation, Join):
        return replace(relation, left=inner[0], right=inner[1])
    if isinstance(relation, SemiJoin | MarkJoin):
        return replace(relation, source=inner[0], other=inner[1])
    return replace(relation, sources=tuple(inner)) if isinstance(relation, RelationUnion) else relation


def cuts(relation: Relation) -> Iterator[Cut]:
    """Yields the cuts inside a relation."""
    if isinstance(relation, Cut):
        yield relation
    for child in children(relation):
        yield from cuts(child)


def salt_cuts(relation: Relation, salt: str) -> Relation:
    """Returns a relation whose cuts choose rows by a salt."""
    made = with_children(relation, [salt_cuts(child, salt) for child in children(relation)])
    return replace(made, salt=salt) if isinstance(made, Cut) else made


def shape(relation: Relation, declared: Declared) -> dict[str, Type]:
    """Returns the columns of a relation with their types, `UNIT` last where there are people."""
    if isinstance(relation, BaseTable):
        return _own(relation, declared)
    inner = [shape(child, declared) for child in children(relation)]
    if isinstance(relation, LinkedTable):
        return {**declared[relation.name], UNIT: inner[0][UNIT]}
    if isinstance(relation, RelationUnion | SemiJoin | Cut):
        return inner[0]
    if isinstance(relation, Join):
        return _join_columns(*inner)
    if not isinstance(relation, Select | UnitAggregation | WindowedRelation | MarkJoin):
        raise InternalError(f"A {type(relation).__name__} has no columns.")
    return _list_columns(relation, inner[0])


def _own(relation: BaseTable, declared: Declared) -> dict[str, Type]:
    own = dict(declared[relation.name])
    if relation.unit is None:
        return own
    together = isinstance(relation.unit, tuple) or relation.period is not None
    return {**own, UNIT: Type.TEXT if together else own[str(relation.unit)]}


def _join_columns(left: dict[str, Type], right: dict[str, Type]) -> dict[str, Type]:
    """Returns both sides' columns, and whose rows the left side has."""
    others = {name: kind for side in (left, right) for name, kind in side.items() if name != UNIT}
    return {**others, UNIT: left[UNIT]} if UNIT in left else others


def _list_columns(
    relation: Select | UnitAggregation | WindowedRelation | MarkJoin, inner: dict[str, Type]
) -> dict[str, Type]:
    columns: dict[str, Type] = {}
    if isinstance(relation, Select):
        columns = {column.name: column.expression.type for column in relation.columns}
    elif isinstance(relation, UnitAggregation):
        columns = {key.name: key.expression.type for key in relation.keys}
        columns |= {fold.name: fold.type for fold in relation.folds}
    else:
        columns = {name: kind for name, kind in inner.items() if name != UNIT}
        made = relation.windows if isinstance(relation, WindowedRelation) else ()
        columns |= {window.name: window.type for window in made}
        columns |= {relation.name: Type.BOOL} if isinstance(relation, MarkJoin) else {}
    return {**columns, UNIT: inner[UNIT]} if UNIT in inner else columns


Pairs = tuple[tuple[Expression, Expression], ...]
"""Expressions of two sides of a join that are compared."""

_WHOLE = -1


def besides_units(left: Relation, right: Relation, on: Pairs, declared: Declared) -> Pairs:
    """Returns the pairs without those that compare whose rows they are, where both sides have people.

    Rows of two sides that both have people make a pair only if they are one unit's, and units are compared as they are
    normalised. A condition that compares the ids again would compare them as they are written, so that a person whose
    id is written in two ways had no pairs; and a database joins by one value faster than by two.
    """
    if not has_people(left, declared) or not has_people(right, declared):
        return on
    places = ((_place(left, a, declared), _place(right, b, declared)) for a, b in on)
    return tuple(pair for pair, (one, other) in zip(on, places, strict=True) if one is None or one != other)


def has_people(relation: Relation, declared: Declared) -> bool:
    """Returns whether the rows of a relation belong to people."""
    return UNIT in shape(relation, declared)


def _place(relation: Relation, expression: Expression, declared: Declared) -> int | None:
    """Returns which part of the id of its row's unit an expression surely is; None if it may be something else."""
    if not isinstance(expression, ColumnRef):
        return None
    if expression.name == UNIT:
        return _WHOLE
    if isinstance(relation, BaseTable) and relation.period is not None:
        return None
    if isinstance(relation, BaseTable):
        parts = relation.unit if isinstance(relation.unit, tuple) else ()
        return _WHOLE if relation.unit == expression.name else _index(parts, expression.name)
    if isinstance(relation, Select):
        known = {column.name: column.expression for column in relation.columns}
        return _place(relation.source, known[expression.name], declared)
    side = next((side for side in _sides(relation) if expression.name in shape(side, declared)), None)
    return None if side is None else _place(side, expression, declared)


def _sides(relation: Relation) -> tuple[Relation, ...]:
    """Returns the relations whose columns a relation has unchanged; an outer join has NULL for some on its right."""
    if isinstance(relation, Join):
        return (relation.left,) if relation.outer else (relation.left, relation.right)
    return (relation.source,) if isinstance(relation, WindowedRelation | SemiJoin | MarkJoin | Cut) else ()


def _index(names: tuple[str, ...], name: str) -> int | None:
    return names.index(name) if name in names else None
