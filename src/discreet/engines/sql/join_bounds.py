"""Who may have too many rows or groups among joined rows, found from the sides of the joins without making the rows.

A unit that has n rows on one side and m on the other has at most n m joined rows, and at most as many groups as its
sides' keys can be combined. Most people are within their limits by this count alone, and their joined rows are added up
as they come, once; only the others' are kept and chosen from.
"""

from __future__ import annotations

from collections.abc import Iterable

from discreet.dataclass import dataclass
from discreet.engines.sql.bounded_rows import unit_of
from discreet.engines.sql.printer import print_subquery, select
from discreet.engines.sql.relation_printer import RelationPrinter
from discreet.errors import InternalError
from discreet.plan.analysis.join_rows import conjuncts
from discreet.plan.model.nodes import UNIT, ColumnRef, Expression, Relation, Value, columns, fits, substitute
from discreet.plan.model.readings import ContributionBounding, Reading
from discreet.plan.model.relations import Cut, Join, LinkedTable, Select, children

_MOST = (1 << 31) - 1  # numbers stop here, so that no product of two leaves 64 bits; limits must stay below
_UNKNOWN = "\0"  # no relation has a column of this name


def heavy(rows: RelationPrinter, reading: Reading) -> str | None:
    """Prints a query for the units u that may exceed the limits of a reading; None where looking would not help.

    Guarantee: a unit that it leaves out has at most `bounding.rows` rows among those of the reading's source for which
    its condition is TRUE, in at most `bounding.groups` of the groups that count.
    """
    limits, source = reading.bounding, reading.source
    if limits is None or source is None or reading.split is not None or reading.spread is not None:
        return None
    if max(limits.groups, limits.rows) >= _MOST:
        return None
    if any(statistic.kind in ("units", "distinct", "distinct_sum") for statistic in reading.statistics):
        return None  # their numbers are no sums over rows
    if limits.unit != UNIT or not _is_join(source):
        return None
    where = tuple(conjuncts(reading.where))
    return _JoinBounds(rows).beyond(limits, source, _Keys(reading.keys, reading.public_keys), where)


def _is_join(relation: Relation) -> bool:
    """Returns whether rows are made by a join of sides that can be counted separately."""
    if isinstance(relation, Select):
        return _is_join(relation.source)
    return isinstance(relation, Join) and all(_is_join(side) or not _has_join(side) for side in children(relation))


def _has_join(relation: Relation) -> bool:
    return isinstance(relation, Join | LinkedTable) or any(_has_join(child) for child in children(relation))


def _reads(expression: Expression, names: Iterable[str]) -> bool:
    """Returns whether an expression reads these columns alone."""
    return {column.name for column in columns(expression)} <= set(names)


@dataclass(frozen=True)
class _Keys:
    """What rows are grouped by, and the values that count, if they are public."""

    expressions: tuple[Expression, ...]
    public: tuple[tuple[Value, ...], ...] | None

    def of(self, names: Iterable[str]) -> _Keys:
        """Returns those that read these columns alone."""
        places = [i for i, key in enumerate(self.expressions) if _reads(key, names)]
        public = None if self.public is None else tuple({tuple(values[i] for i in places) for values in self.public})
        return _Keys(tuple(self.expressions[i] for i in places), public)

    def most(self, *bounds: str) -> str:
        """Returns the least of several bounds on the number of groups, and the public ones."""
        if not self.expressions:
            return "1"
        known = [] if self.public is None else [str(min(len(self.public), _MOST))]
        return f"LEAST({', '.join([*bounds, *known, str(_MOST)])})"


_Where = tuple[Expression, ...]
_Sides = tuple[str, str, bool]


def _below(relation: Select, keys: _Keys, where: _Where) -> tuple[Relation, _Keys, _Where]:
    """Returns the same question of the rows below, its columns replaced by what they are computed from.

    A condition that grows too large is left out; a key becomes one about which nothing is known.
    """
    known = {column.name: column.expression for column in relation.columns}

    def below(expression: Expression) -> Expression | None:
        moved = substitute(expression, {}, lambda column: known.get(column.name, column))
        return moved if fits(moved) else None

    own = tuple(conjuncts(relation.where))
    conditions = [moved for part in where if (moved := below(part)) is not None]
    moved_keys = tuple(below(key) or ColumnRef(_UNKNOWN, key.type) for key in keys.expressions)
    return relation.source, _Keys(moved_keys, keys.public), (*conditions, *own)


@dataclass(frozen=True)
class _JoinBounds:
    """Queries for the units u of a relation, at most how many rows n, and how many groups g, each has."""

    rows: RelationPrinter

    def beyond(self, limits: ContributionBounding, relation: Relation, keys: _Keys, where: _Where) -> str:
        """Returns the units u that may have more than that.

        A unit with one row on the right of an inner join has the rows and groups of the left. Only the others need to
        be counted on both sides; there are none where the right has one row for each person.
        """
        if isinstance(relation, Select):
            return self.beyond(limits, *_below(relation, keys, where))
        too_many = f"n > {limits.rows} OR g > {limits.groups}"
        if not (isinstance(relation, Join) and self._is_of_people(relation.right)) or relation.outer:
            return select("u", source=print_subquery(self.of(relation, keys, where)), where=too_many)
        left, right, together = self._sides(relation, keys, where)
        alone = select("u", "n", f"{keys.most('n', *('g',) * together)} AS g", source="one_side")
        several = select("*", source=print_subquery(right), where="n > 1")
        found = (alone, self._pairs(relation, keys, ("SELECT * FROM one_side", several, together)))
        listed = " UNION ALL ".join(select("u", source=print_subquery(text), where=too_many) for text in found)
        return f"WITH one_side {self.rows.dialect.once} ({left}) {listed}"

    def of(self, relation: Relation, keys: _Keys, where: _Where) -> str:
        """Returns the rows of a relation for which all of these conditions are TRUE."""
        if not _is_join(relation):
            return self._side(relation, keys, where)
        if isinstance(relation, Select):
            return self.of(*_below(relation, keys, where))
        if not isinstance(relation, Join):
            raise InternalError("Only joins have sides.")
        if not self._is_of_people(relation.right):
            return self._public(relation, keys, where)
        return self._pairs(relation, keys, self._sides(relation, keys, where))

    def _is_of_people(self, relation: Relation) -> bool:
        return UNIT in self.rows.shape(relation)

    def _side(self, relation: Relation, keys: _Keys, where: _Where) -> str:
        """Counts rows unit by unit; those that are cut were counted before, and no more than the cut leaves stay."""
        if isinstance(relation, Cut):
            counted = select("u", f"LEAST(n, {relation.rows}) AS n", source=self.rows.sizes(relation))
            return select("u", "n", f"{keys.most('n')} AS g", source=print_subquery(counted))
        printer = self.rows.printer(relation)
        unit = unit_of(printer, UNIT, printer.declared[UNIT])
        conditions = [f"{unit.sql} IS NOT NULL", *(printer.print(part).sql for part in where)]
        rows = printer.rows([unit.sql, *conditions])
        found = select(f"{unit.sql} AS u", source=rows, where=" AND ".join(conditions))
        counted = select("u", f"LEAST(COUNT(*), {_MOST}) AS n", source=print_subquery(found), group=["u"])
        return select("u", "n", f"{keys.most('n')} AS g", source=print_subquery(counted))

    def _sides(self, relation: Join, keys: _Keys, where: _Where) -> _Sides:
        """Returns both sides, and whether each key is of one of them."""
        found = []
        for place, side in enumerate((relation.left, relation.right)):
            names = self.rows.shape(side)
            own = [] if relation.outer and place else [part for part in where if _reads(part, names)]
            found.append((self.of(side, keys.of(names), tuple(own)), len(keys.of(names).expressions)))
        (left, of_left), (right, of_right) = found
        return left, right, of_left + of_right == len(keys.expressions)

    def _pairs(self, relation: Join, keys: _Keys, sides: _Sides) -> str:
        """Returns rows of two sides of the same people."""
        left, right, together = sides
        word, n, g = "JOIN", "b.n", "b.g"
        if relation.outer:  # without a pair, a row stays: one, in one group of its side's
            has_keys = bool(keys.of(self.rows.shape(relation.right)).expressions)
            word, n, g = "LEFT JOIN", "coalesce(b.n, 1)", "coalesce(b.g, 0) + 1" if has_keys else "1"
        pairs = select(
            "a.u",
            f"LEAST(a.n * {n}, {_MOST}) AS n",
            f"LEAST(a.g * ({g}), {_MOST}) AS p",
            source=f"{print_subquery(left, 'a')} {word} {print_subquery(right, 'b')} ON a.u = b.u",
        )
        return select("u", "n", f"{keys.most(*(['n', 'p'] if together else ['n']))} AS g", source=print_subquery(pairs))

    def _public(self, relation: Join, keys: _Keys, where: _Where) -> str:
        """Counts pairs with a public table: a row of the left has no more than the right has rows of equal keys."""
        names = self.rows.shape(relation.left)
        own = keys.of(names)
        left = self.of(relation.left, own, tuple(part for part in where if _reads(part, names)))
        side = self.rows.side(relation.right, [b for _, b in relation.on])
        group = [f"j{i}" for i in range(len(relation.on))]
        counted = select("COUNT(*) AS c", source=print_subquery(side.sql), group=group)
        most = select(f"LEAST(greatest(coalesce(MAX(c), 0), 1), {_MOST}) AS m", source=print_subquery(counted))
        pairs = select(
            "u",
            f"LEAST(n * m, {_MOST}) AS n",
            "g AS p",
            source=f"{print_subquery(left, 'a')} CROSS JOIN {print_subquery(most, 'b')}",
        )
        is_left = len(own.expressions) == len(keys.expressions)
        return select("u", "n", f"{keys.most(*(['n', 'p'] if is_left else ['n']))} AS g", source=print_subquery(pairs))
