"""Other texts for a SELECT over a SELECT whose groups are private: what a refusal proposes, as far as trees tell.

Nothing here knows whether a text is accepted: the caller that proposes one reads and plans it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.plan.model.schema import TableSchema
from discreet.sql.examples import DIALECT
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import lookup
from discreet.sql.select import parse_select


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Texts to try in the place of one that computes from private groups, the likeliest first.

    Args:
        distinct: those that count the different values of the inner key.
        by_person: those whose inner groups are each of one person.
        groups: the inner SELECTs, each alone.
    """

    distinct: tuple[str, ...] = ()
    by_person: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def rewrites(text: str, schemas: Mapping[str, TableSchema]) -> Rewrites:
    """Writes texts that may do in the place of one that was read already.

    Args:
        text: the question.
        schemas: the declared tables by name.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> from discreet.plan.model.types import Type
    >>> columns = {name: ColumnSchema(name=name, type=Type.INT) for name in ("person", "room")}
    >>> schemas = {"stays": TableSchema(name="stays", columns=columns, unit="person")}
    >>> found = rewrites("SELECT COUNT(*) AS n FROM (SELECT room FROM stays GROUP BY room)", schemas)
    >>> found.distinct
    ('SELECT COUNT(DISTINCT room) AS n FROM stays',)
    >>> found.by_person
    ('SELECT COUNT(*) AS n FROM (SELECT room FROM stays GROUP BY person, room)',)
    """
    tree = parse_select(SqlSource(text, schemas))
    inside = [node for node in tree.find_all(exp.Select) if node is not tree and node.args.get("group") is not None]
    inner = list(reversed(inside))  # the innermost first
    return Rewrites(
        distinct=tuple(_format_sql(made) for node in inner for made in _rewrite_as_distinct(tree, node)),
        by_person=tuple(dict.fromkeys(_format_sql(made) for node in inner for made in _by_person(tree, node, schemas))),
        groups=tuple(_format_sql(_alone(tree, node)) for node in inner),
    )


def _format_sql(tree: exp.Expr) -> str:
    return tree.sql(dialect=DIALECT)


def _rewrite_as_distinct(tree: exp.Expr, inner: exp.Select) -> Iterator[exp.Select]:
    """Writes COUNT(*) of groups by one key as a count of the key's different values."""
    keys = inner.args["group"].expressions
    outputs = tree.expressions if isinstance(tree, exp.Select) else []
    alone = len(outputs) == 1 and isinstance(outputs[0].unalias(), exp.Count) and len(keys) == 1
    more = any(tree.args.get(part) for part in ("where", "group", "having", "joins", "order", "limit", "qualify"))
    if not alone or more or inner.args.get("having") is not None:
        return
    (key,) = keys
    if key.is_int:
        key = inner.expressions[int(key.name) - 1].unalias()
    made = _alone(tree, inner)
    made.set("group", None)
    counted = exp.Count(this=exp.Distinct(expressions=[key.copy()]))
    made.set("expressions", [exp.alias_(counted, outputs[0].alias or "n")])
    yield made


def _by_person(tree: exp.Expr, inner: exp.Select, schemas: Mapping[str, TableSchema]) -> Iterator[exp.Expr]:
    """Yields the same question with the ids of people among the inner keys, under each name they may have."""
    for ids in _ids(tree, inner, schemas):
        made = tree.copy()
        for node in made.find_all(exp.Select):
            if node == inner and node.args.get("group") is not None:
                node.args["group"].set("expressions", [*(one.copy() for one in ids), *node.args["group"].expressions])
        yield made


def _ids(tree: exp.Expr, inner: exp.Select, schemas: Mapping[str, TableSchema]) -> Iterator[list[exp.Column]]:
    """Yields the columns of ids of the tables that the inner SELECT reads, then of those that others read for it."""
    for table in (*inner.find_all(exp.Table), *tree.find_all(exp.Table)):
        schema = lookup(table.name, schemas)
        if schema is None or schema.public or schema.unit is None:
            continue
        names = schema.parts or ((schema.unit,) if schema.unit in schema.stored_columns else ())
        prefix = table.alias_or_name if inner.args.get("joins") else None
        if names:
            yield [exp.column(name, table=prefix) for name in names]


def _alone(tree: exp.Expr, inner: exp.Select) -> exp.Select:
    """Returns the inner SELECT with the names of WITH that it reads, and those that these read."""
    made = inner.copy()
    clause = tree.args.get("with_")
    if clause is None or made.args.get("with_") is not None:
        return made
    kept: list[exp.Expr] = []
    read = {table.name.casefold() for table in made.find_all(exp.Table)}
    for cte in reversed(clause.expressions):
        if cte.alias.casefold() in read and cte.this != inner:
            kept.insert(0, cte.copy())
            read |= {table.name.casefold() for table in cte.find_all(exp.Table)}
    if kept:
        made.set("with_", exp.With(expressions=kept))
    return made
