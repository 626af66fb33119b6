"""A standard set of questions about a table, made of what is declared about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from discreet.audit.queries.units import ids_of
from discreet.curator import Curator
from discreet.curator.replay.stored import Asked
from discreet.errors import DiscreetError
from discreet.plan.model.schema import ColumnSchema, TableSchema
from discreet.plan.model.types import Type

MOST = 2
"""Columns of a kind that are asked about, so that a wide table is not asked for ever."""


def standard(curator: Curator, schema: TableSchema, asked: Asked) -> list[str]:
    """Counts, sums, means, quantiles, groups by public and by private keys: those of them that are answered at all.

    Whether a question is answered is found out by `explain`, which reads nothing.
    """
    found = []
    for sql in dict.fromkeys(_questions(schema)):
        with suppress(DiscreetError):
            curator.explain(sql, epsilon=asked.epsilon, delta=asked.delta)
            found.append(sql)
    return found


def _questions(schema: TableSchema) -> Iterator[str]:
    """Every kind of question, whether it is answered or not."""
    table, others = quoted(schema.name), [c for name, c in schema.stored.items() if name not in ids_of(schema)]
    numbers = [column for column in others if column.type.is_number and column.bounds is not None][:MOST]
    keys = [column for column in others if column.keys is not None][:MOST]
    yield f"SELECT COUNT(*) AS n FROM {table}"
    if len(ids_of(schema)) == 1:
        yield f"SELECT COUNT(DISTINCT {quoted(ids_of(schema)[0])}) AS units FROM {table}"
    for column in numbers:
        yield from _about(quoted(column.name), table)
    for key in keys:
        yield from _grouped(quoted(key.name), numbers, table)
    if len(keys) > 1:
        both = ", ".join(quoted(key.name) for key in keys[:2])
        yield f"SELECT {both}, COUNT(*) AS n FROM {table} GROUP BY {both}"
    yield from _undeclared(others, table)


def _about(x: str, table: str) -> Iterator[str]:
    yield f"SELECT SUM({x}) AS total FROM {table}"
    yield f"SELECT AVG({x}) AS mean, COUNT({x}) AS n FROM {table}"
    yield f"SELECT VARIANCE({x}) AS v FROM {table}"
    yield f"SELECT MEDIAN({x}) AS middle FROM {table}"
    yield f"SELECT QUANTILE({x}, 0.25) AS low, MEDIAN({x}) AS middle, QUANTILE({x}, 0.75) AS high FROM {table}"
    yield f"SELECT MIN({x}) AS low, MAX({x}) AS high FROM {table} WHERE {x} IS NOT NULL"


def _grouped(key: str, numbers: Sequence[ColumnSchema], table: str) -> Iterator[str]:
    yield f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}"
    yield f"SELECT MODE({key}) AS most FROM {table}"
    for column in numbers[:1]:
        x = quoted(column.name)
        yield f"SELECT {key}, AVG({x}) AS mean, SUM({x}) AS total FROM {table} GROUP BY {key}"
        yield f"SELECT {key}, MEDIAN({x}) AS middle FROM {table} GROUP BY {key}"


def _undeclared(others: Sequence[ColumnSchema], table: str) -> Iterator[str]:
    """Private groups, which need a delta; and numbers whose bounds are chosen privately."""
    private = [c for c in others if c.keys is None and c.type in (Type.TEXT, Type.INT, Type.BOOL, Type.DATE)]
    for column in private[:MOST]:
        x = quoted(column.name)
        yield f"SELECT {x}, COUNT(*) AS n FROM {table} GROUP BY {x}"
        yield f"SELECT COUNT(DISTINCT {x}) AS different FROM {table}"
    for column in [c for c in others if c.type.is_number and c.bounds is None][:MOST]:
        yield f"SELECT AVG({quoted(column.name)}) AS mean FROM {table}"


def quoted(name: str) -> str:
    """A name as it is written in a question.

    >>> quoted("ward"), quoted("ward no")
    ('ward', '"ward no"')
    """
    return name if name.isidentifier() and name.islower() else '"' + name.replace('"', '""') + '"'
