"""What a join compares beside the people of its sides.

Rows of two sides that both have people make a pair only if they are one unit's, and units are compared as they are
normalised (`ids`). A condition that compares the ids again would compare them as they are written, so that a person
whose id is written in two ways had no pairs; and a database joins by one value faster than by two.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.plan.model.nodes import UNIT, Column, Expression, Relation
from discreet.plan.model.relations import Join, Marked, Matched, Select, Table, Windowed, shape
from discreet.plan.model.types import Type

Pairs = tuple[tuple[Expression, Expression], ...]
Declared = Mapping[str, Mapping[str, Type]]

_WHOLE = -1


def besides_units(left: Relation, right: Relation, on: Pairs, declared: Declared) -> Pairs:
    """The pairs without those that compare whose rows they are, where both sides have people."""
    if not has_people(left, declared) or not has_people(right, declared):
        return on
    places = ((_place(left, a, declared), _place(right, b, declared)) for a, b in on)
    return tuple(pair for pair, (one, other) in zip(on, places, strict=True) if one is None or one != other)


def has_people(relation: Relation, declared: Declared) -> bool:
    """Whether the rows of a relation are somebody's."""
    return UNIT in shape(relation, declared)


def _place(relation: Relation, expression: Expression, declared: Declared) -> int | None:
    """Which part of the id of its row's unit an expression surely is; None if it may be something else."""
    if not isinstance(expression, Column):
        return None
    if expression.name == UNIT:
        return _WHOLE
    if isinstance(relation, Table):
        parts = relation.unit if isinstance(relation.unit, tuple) else ()
        return _WHOLE if relation.unit == expression.name else _index(parts, expression.name)
    if isinstance(relation, Select):
        known = {column.name: column.expression for column in relation.columns}
        return _place(relation.source, known[expression.name], declared)
    side = next((side for side in _sides(relation) if expression.name in shape(side, declared)), None)
    return None if side is None else _place(side, expression, declared)


def _sides(relation: Relation) -> tuple[Relation, ...]:
    """The relations whose columns a relation has as they are; an outer join has NULL for some of its right side's."""
    if isinstance(relation, Join):
        return (relation.left,) if relation.outer else (relation.left, relation.right)
    return (relation.source,) if isinstance(relation, Windowed | Matched | Marked) else ()


def _index(names: tuple[str, ...], name: str) -> int | None:
    return names.index(name) if name in names else None
