"""How many rows of one person a join may make: each side's rows of a unit are cut before they multiply.

The limits of a question bound what is counted after the last join, and alone set its sensitivity. They come too late
for the database: a person with two rows in each of 32 copies of a table has 2^32 joined rows, and a question that is
answered for one row and fails for two reveals which it is. So a chain of joins is given a public number of rows, before
anything is read, and each table in it whose rows multiply is cut to so many rows per unit (`Cut`).

*A chain* is a join, and the joins that its sides are, but for what SELECTs compute and filter of their rows. With n
tables that multiply, public tables in which up to m_1, m_2, ... rows agree in what is compared, and a cut to c rows, a
unit has at most m_1 m_2 ... c^n joined rows. The cut is the largest of `ROWS` for which that is at most `MOST_PAIRS`: a
function of the question and of public tables. If there is none, the question is refused.

*Branches of UNION ALL* add their rows up, and share `MOST_PAIRS` equally.

*What does not multiply* is not cut. Of a side that is folded person by person and compared by all of its keys, each row
of the other side meets one row; of the first k rows of each place (ORDER BY ... LIMIT k), it meets k. IN and EXISTS ask
whether there is a row, and repeat none. If one table is left, and no public row is repeated, there are no more joined
rows than it has, and nothing is cut.

*What a cut leaves.* Conditions of the question that read one table alone are true of the rows that are cut, so that no
row takes a place that is filtered out above; they stay where they are as well. Of an outer join's right side this would
be wrong: a row that has pairs, all of them filtered out, would come back with NULL. A row whose compared value is NULL
has no pair, and takes no place where it would stay for nothing. Rows stay by ranks of what the join compares (`Cut`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatchmethod

from discreet.dataclass import dataclass
from discreet.errors import InternalError, UnsupportedQuery
from discreet.plan.analysis.relation_schema import Schemas, name_units
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import (
    UNIT,
    ColumnRef,
    Expression,
    FunctionCall,
    Literal,
    Output,
    Question,
    Relation,
    columns,
    fits,
    substitute,
)
from discreet.plan.model.relations import (
    BaseTable,
    Cut,
    Declared,
    Join,
    MarkJoin,
    Pairs,
    RelationUnion,
    Select,
    SemiJoin,
    UnitAggregation,
    WindowedRelation,
    besides_units,
    children,
    has_people,
    shape,
    tables,
    with_children,
)

MOST_PAIRS = 1 << 20
"""Rows of one unit that a chain of joins makes at most."""

ROWS = (1000, 500, 200, 100, 50, 32, 20, 16, 10, 7, 5, 4, 3, 2)
"""Rows of one unit that a table is cut to: of two tables 1000, of three 100, of four 32, ..., of 13 to 20 two."""

Conditions = tuple[Expression, ...]


def with_cuts(question: Question, schemas: Schemas) -> Question:
    """Returns a question, and its side questions, whose joins make no more rows of one unit than `MOST_PAIRS`.

    Cuts that it has are replaced: nothing rests on how a plan was made.

    Raises:
        UnsupportedQuery: if a join makes more rows than that, however few rows are kept of each table.
    """
    beside = tuple(with_cuts(block, schemas) for block in question.beside)
    if question.source is None:
        return replace(question, beside=beside) if beside else question
    return replace(question, source=cut_rows(question.source, schemas, question.where), beside=beside)


def cut_rows(relation: Relation, schemas: Schemas, where: Expression | None = None) -> Relation:
    """Returns a relation whose joins make no more rows of one unit than `MOST_PAIRS`.

    Args:
        relation: what is read.
        schemas: the declared tables by name.
        where: a condition; only rows for which it is TRUE count.

    Raises:
        UnsupportedQuery: if a join makes more rows than that, however few rows are kept of each table.
    """
    return _Cutter(schemas).rows(relation, tuple(conjuncts(where)))


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """Yields the parts of a condition that must all be TRUE."""
    if isinstance(condition, FunctionCall) and condition.function == "and":
        for part in condition.arguments:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def moved_below(relation: Select, expressions: Iterable[Expression]) -> Iterator[Expression]:
    """Yields expressions of a relation's columns as those of its source's; what grows too large is left out."""
    known = {column.name: column.expression for column in relation.columns}
    for expression in expressions:
        moved = substitute(expression, {}, lambda column: known.get(column.name, column))
        if fits(moved):
            yield moved


def reads_only(expression: Expression, names: Collection[str]) -> bool:
    """Returns whether an expression reads columns of these names alone, and at least one."""
    read = {column.name for column in columns(expression)}
    return bool(read) and read <= set(names)


# ---------------------------------------------------------------------------------------------- what is known to be few


def rows_alike(relation: Relation, names: Collection[str]) -> int | None:
    """Returns how many rows of one unit agree in columns at most, if the plan decides it; without columns, all rows.

    >>> from discreet.plan.model.types import Type
    >>> day = Output("day", ColumnRef("day", Type.DATE))
    >>> folded = UnitAggregation(BaseTable("visits", "patient"), (day,), ())
    >>> (
    ...     rows_alike(folded, ["day", "ward"]),
    ...     rows_alike(folded, ["ward"]),
    ...     rows_alike(UnitAggregation(folded, (), ()), []),
    ... )
    (1, None, 1)
    """
    if isinstance(relation, UnitAggregation):
        return 1 if {key.name for key in relation.keys} <= set(names) else None
    if isinstance(relation, Select):
        return _alike_in_select(relation, names)
    if isinstance(relation, WindowedRelation):
        return 1 if _is_numbered(relation, names) else rows_alike(relation.source, names)
    if isinstance(relation, SemiJoin | MarkJoin | Cut):
        return rows_alike(relation.source, names)
    if isinstance(relation, RelationUnion):
        found = [rows_alike(source, names) for source in relation.sources]
        return None if None in found else sum(count for count in found if count is not None)
    return None


def _alike_in_select(relation: Select, names: Collection[str]) -> int | None:
    inner = {
        column.expression.name
        for column in relation.columns
        if column.name in names and isinstance(column.expression, ColumnRef)
    }
    places = [_first_places(part) for part in conjuncts(relation.where)]
    kept = [
        most
        for name, most in (place for place in places if place is not None)
        if isinstance(relation.source, WindowedRelation) and _is_numbered(relation.source, {*inner, name}, name)
    ]
    found = rows_alike(relation.source, inner)
    return min([*kept, *([] if found is None else [found])], default=None)


def _first_places(condition: Expression) -> tuple[str, int] | None:
    """Returns the column that a condition holds to its first values 1, 2, ..., and how many these are."""
    if not isinstance(condition, FunctionCall) or condition.function not in ("less_equal", "equal"):
        return None
    column, most = condition.arguments
    if not isinstance(column, ColumnRef) or not isinstance(most, Literal) or type(most.value) is not int:
        return None
    return column.name, max(1, 1 if condition.function == "equal" else most.value)


def _is_numbered(relation: WindowedRelation, names: Collection[str], place: str | None = None) -> bool:
    """Returns whether rows that agree in these columns are numbered one by one, under one of the names."""
    return any(
        window.kind == "row_number"
        and (window.name == place if place is not None else window.name in names)
        and all(isinstance(part, ColumnRef) and part.name in names for part in window.partition)
        for window in relation.windows
    )


# --------------------------------------------------------------------------------------------------------------- chains


@dataclass(frozen=True, slots=True)
class _Size:
    """A chain makes at most `factor` times c^tables rows of a unit, if so many tables are cut to c rows."""

    tables: int
    factor: int

    def times(self, other: _Size) -> _Size:
        return _Size(self.tables + other.tables, self.factor * other.factor)


_ONE = _Size(1, 1)


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Puts cuts into relations.

    Args:
        schemas: the declared tables by name.
        branches: how many relations add their rows up.
    """

    schemas: Schemas
    branches: int = 1

    @property
    def _declared_types(self) -> Declared:
        return {
            name: {column: found.type for column, found in schema.stored_columns.items()}
            for name, schema in self.schemas.items()
        }

    @singledispatchmethod
    def rows(self, relation: Relation, conditions: Conditions) -> Relation:
        """Returns the same rows, as far as all conditions are TRUE, with cuts where joins need them."""
        del conditions
        return with_children(relation, [self.rows(child, ()) for child in children(relation)])

    @rows.register
    def _(self, relation: Cut, conditions: Conditions) -> Relation:
        return self.rows(relation.source, conditions)

    @rows.register
    def _(self, relation: Select, conditions: Conditions) -> Relation:
        return replace(relation, source=self.rows(relation.source, _all_below(relation, conditions)))

    @rows.register
    def _(self, relation: RelationUnion, conditions: Conditions) -> Relation:
        inside = replace(self, branches=max(self.branches, _branches(relation)))
        return RelationUnion(tuple(inside.rows(source, conditions) for source in relation.sources))

    @rows.register
    def _(self, relation: SemiJoin | MarkJoin, conditions: Conditions) -> Relation:
        """Conditions on what is asked of other rows stay above; how many of these there are does not count."""
        own = self._of(relation.source, conditions)
        return replace(relation, source=self.rows(relation.source, own), other=self.rows(relation.other, ()))

    @rows.register
    def _(self, relation: Join, conditions: Conditions) -> Relation:
        if not has_people(relation, self._declared_types):
            return with_children(relation, [self.rows(child, ()) for child in children(relation)])
        return self._cut_join(relation, conditions, (), self._most(self._size(relation, top=True), relation), top=True)

    def _of(self, side: Relation, expressions: Iterable[Expression]) -> Conditions:
        """Returns the expressions that read columns of a side alone."""
        names = shape(side, self._declared_types).keys() - {UNIT}
        return tuple(dict.fromkeys(part for part in expressions if reads_only(part, names)))

    def _on(self, join: Join) -> Pairs:
        return besides_units(join.left, join.right, join.on, self._declared_types)

    def _most(self, size: _Size, join: Join) -> int | None:
        """Returns to how many rows tables are cut; None if nothing multiplies."""
        most = MOST_PAIRS // self.branches
        found = next((rows for rows in ROWS if size.factor * rows**size.tables <= most), None)
        if found is not None:
            return None if size in (_ONE, _Size(0, size.factor)) else found
        people = name_units(self.schemas[next(name for name in tables(join) if not self.schemas[name].public)])
        if size.factor > 1:
            reason = f"This join repeats rows: one {people} could have more than {MOST_PAIRS:,} joined rows."
            hint = "Compare more columns of the public table, or first make its rows unique in the compared columns."
        else:
            reason = f"This joins {size.tables} tables, and one {people} could have more than {MOST_PAIRS:,} rows."
            hint = f"Join fewer at once: first combine the rows of each {people}, in a SELECT with GROUP BY."
        raise UnsupportedQuery(reason, hint)

    # ------------------------------------------------------------------------------------------------------------ sizes

    def _size(self, join: Join, *, top: bool) -> _Size:
        met = self._most_matches(join)
        if met is not None:
            return self._side_size(join.left).times(_Size(0, met))
        if (met := self._met_by_right(join, top=top)) is not None:
            return self._side_size(join.right).times(_Size(0, met))
        return self._side_size(join.left).times(self._side_size(join.right))

    def _side_size(self, side: Relation) -> _Size:
        core = _core(side)
        few = _few(side, ())
        if few is not None:
            return _Size(0, few)
        return self._size(core, top=False) if isinstance(core, Join) else _ONE

    def _most_matches(self, join: Join) -> int | None:
        """Returns how many rows of the right a row of the left meets at most; None if only a cut says it."""
        names = {b.name for _, b in self._on(join) if isinstance(b, ColumnRef)}
        if has_people(join.right, self._declared_types):
            return _few(join.right, names)
        return 1 if join.single else max(1, self._most_repeats(join.right, names))

    def _met_by_right(self, join: Join, *, top: bool) -> int | None:
        """Returns how many rows of the left a row of the right meets at most.

        An outer join keeps all rows of the left in addition to the pairs: they are too many where more is joined to
        them.
        """
        if join.outer and not top:
            return None
        return _few(join.left, {a.name for a, _ in self._on(join) if isinstance(a, ColumnRef)})

    def _most_repeats(self, relation: Relation, names: Collection[str]) -> int:
        """Returns how many rows of a public relation agree in columns at most, as its tables were registered."""
        if isinstance(relation, BaseTable):
            known = self.schemas[relation.name].repeated
            return min((most for one, most in known.items() if {*one} <= {*names}), default=MOST_PAIRS + 1)
        if isinstance(relation, Select):
            inner = {
                c.expression.name for c in relation.columns if c.name in names and isinstance(c.expression, ColumnRef)
            }
            return self._most_repeats(relation.source, inner)
        if isinstance(relation, SemiJoin | MarkJoin):
            return self._most_repeats(relation.source, {*names} & shape(relation.source, self._declared_types).keys())
        if isinstance(relation, RelationUnion):
            return sum(self._most_repeats(source, names) for source in relation.sources)
        if not isinstance(relation, Join):
            raise InternalError(f"A {type(relation).__name__} has no unit.")
        left, right = ({*names} & shape(side, self._declared_types).keys() for side in children(relation))
        compared = {b.name for _, b in relation.on if isinstance(b, ColumnRef)}
        return self._most_repeats(relation.left, left) * max(1, self._most_repeats(relation.right, right | compared))

    # ------------------------------------------------------------------------------------------------------------- cuts

    def _cut_join(self, join: Join, conditions: Conditions, by: Conditions, rows: int | None, *, top: bool) -> Relation:
        """Returns the join with its sides cut to so many rows, where they multiply; None if they do not."""
        on = self._on(join)
        meets_few = self._most_matches(join) is not None
        met_by_few = not meets_few and self._met_by_right(join, top=top) is not None
        pairs = () if meets_few or met_by_few else on  # one side is whole: the other need not keep what matches
        left = (*self._of(join.left, conditions), *(() if join.outer else _present(a for a, _ in on)))
        right = () if join.outer else self._of(join.right, conditions)
        right = (*right, *_present(b for _, b in on))
        by_left = (*(a for a, _ in pairs), *self._of(join.left, by))
        by_right = (*(b for _, b in pairs), *self._of(join.right, by))
        return replace(
            join,
            left=self._side(join.left, left, by_left, None if met_by_few else rows),
            right=self._side(join.right, right, by_right, None if meets_few else rows),
        )

    def _side(self, side: Relation, conditions: Conditions, by: Conditions, rows: int | None) -> Relation:
        if rows is None or _few(side, ()) is not None:
            return self.rows(side, conditions)
        core = _core(side)
        if isinstance(core, Join):
            return self._cut_chain(side, conditions, by, rows)
        inner, own = self.rows(side, conditions), shape(side, self._declared_types)
        conditions = tuple(dict.fromkeys(part for part in conditions if part not in _list_conditions(side)))
        if conditions:
            kept = tuple(Output(name, ColumnRef(name, kind)) for name, kind in own.items() if name != UNIT)
            inner = Select(inner, kept, _all_of(conditions))
        return Cut(source=inner, by=tuple(dict.fromkeys(by)), rows=rows)

    def _cut_chain(self, side: Relation, conditions: Conditions, by: Conditions, rows: int) -> Relation:
        """Returns the joins below SELECTs and former cuts, which are part of the chain."""
        if isinstance(side, Cut):
            return self._cut_chain(side.source, conditions, by, rows)
        if isinstance(side, Select):
            below = _all_below(side, conditions)
            return replace(side, source=self._cut_chain(side.source, below, tuple(moved_below(side, by)), rows))
        if not isinstance(side, Join):
            raise InternalError("Only joins have sides.")
        return self._cut_join(side, conditions, by, rows, top=False)


def _few(relation: Relation, names: Collection[str]) -> int | None:
    """Returns how many rows of a unit agree in columns, if that is known to be no more than a cut leaves."""
    found = rows_alike(relation, names)
    return found if found is not None and found <= ROWS[0] else None


def _branches(relation: Relation) -> int:
    if isinstance(relation, Select | Cut):
        return _branches(relation.source)
    return sum(_branches(source) for source in relation.sources) if isinstance(relation, RelationUnion) else 1


def _core(relation: Relation) -> Relation:
    """Returns what SELECTs compute and filter."""
    while isinstance(relation, Select | Cut):
        relation = relation.source
    return relation


def _all_of(conditions: Conditions) -> Expression:
    """Returns one condition that is TRUE if all are; no deeper than it must be, for there may be many."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return call("and", _all_of(conditions[:middle]), _all_of(conditions[middle:]))


def _list_conditions(relation: Relation) -> Collection[Expression]:
    """Returns the conditions that a SELECT which computes nothing makes sure of: they need not be asked again."""
    while isinstance(relation, Cut):
        relation = relation.source
    if not isinstance(relation, Select) or any(
        not isinstance(column.expression, ColumnRef) or column.expression.name != column.name
        for column in relation.columns
    ):
        return ()
    return tuple(conjuncts(relation.where))


def _all_below(relation: Select, conditions: Conditions) -> Conditions:
    return (*moved_below(relation, conditions), *conjuncts(relation.where))


def _present(expressions: Iterable[Expression]) -> Sequence[Expression]:
    return [call("not", call("is_null", part)) for part in expressions if any(columns(part))]
