"""Answers beside plain SQL: the same text run on DuckDB, and what an answer without noise may differ by."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from discreet.curator import Answer
from tests.corpus.features import is_fold
from tests.corpus.world import World

FEW = 3
"""A private key of so few people may be hidden however large epsilon is: one person's is shown with at most delta."""

RELATIVE = 2e-3
"""Values are on a grid of about a millionth of their bounds, and bounds of products and sums per person are wide."""

DAY = 24 * 60 * 60
"""In seconds: a date that was a timestamp, or is read off a grid of days, may be the one beside."""

_RANKS: dict[type[exp.Expr], float | None] = {  # the quantile that an aggregate is; None: its argument says
    exp.Median: 0.5,
    exp.Min: 0.0,
    exp.Max: 1.0,
    exp.Quantile: None,
    exp.PercentileCont: None,
    exp.PercentileDisc: None,
    exp.ApproxQuantile: None,
}


@dataclass(frozen=True, slots=True)
class Truth:
    """Rows of plain SQL; a rank comes as the sorted list of its values, with the quantile that is asked for."""

    rows: Sequence[tuple[Any, ...]]
    ranks: dict[int, float]


def truth(sql: str, world: World, plain: duckdb.DuckDBPyConnection) -> Truth:
    """The rows of a question without its LIMIT and OFFSET, under which ties could be cut in another way."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(tree, exp.Select)
    tree.set("limit", None)
    tree.set("offset", None)
    tree.set("order", None)
    ranks: dict[int, float] = {}
    for place, output in enumerate(tree.expressions):
        found = output.unalias()
        inner = found.this if isinstance(found, exp.WithinGroup | exp.Filter) else found
        if type(inner) in _RANKS and not is_fold(tree, world):
            ranks[place] = _quantile(inner)
            _listed(found, inner)
    return Truth(plain.execute(tree.sql(dialect="duckdb")).fetchall(), ranks)


def _quantile(node: exp.Expr) -> float:
    fixed = _RANKS[type(node)]
    if fixed is not None:
        return fixed
    share = node.args.get("quantile") or node.args.get("expression") or node.this
    return float(share.name)


def _listed(found: exp.Expr, inner: exp.Expr) -> None:
    """Puts the list of all values in the place of a rank."""
    ordered = isinstance(found, exp.WithinGroup)
    value = found.expression.expressions[0].this if ordered else inner.this
    (found if ordered else inner).replace(exp.ArrayAgg(this=value.copy()))


def check(answer: Answer, known: Truth, limit: int | None) -> None:
    """Every shown group has the numbers of plain SQL, and every group of several people is shown."""
    names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
    keys = [place for place, name in enumerate(names) if f"{name}_low" not in answer.columns]
    theirs = {tuple(_key(row[place]) for place in keys): row for row in known.rows}
    assert len(theirs) == len(known.rows), "keys of a plain answer are different"
    shown = [[record[name] for name in names] for record in answer]
    for row in shown:
        key = tuple(_key(row[place]) for place in keys)
        if key in theirs:
            _same(row, theirs[key], set(keys), known.ranks)
        else:
            assert not any(_says(value) for place, value in enumerate(row) if place not in keys), key
    present = {tuple(_key(row[place]) for place in keys) for row in shown}
    absent = [key for key, row in theirs.items() if key not in present and not _lonely(row, keys)]
    assert limit is not None or not absent, f"{len(absent)} of {len(theirs)} groups are missing: {absent[:3]}"
    assert limit is None or len(shown) == min(limit, len(theirs))


def check_order(answer: Answer, rows: Sequence[tuple[Any, ...]]) -> None:
    """The shown groups stand in the order of plain SQL's rows, of which small groups may be missing."""
    names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
    keys = [place for place, name in enumerate(names) if f"{name}_low" not in answer.columns]
    shown = [tuple(_key(record[names[place]]) for place in keys) for record in answer]
    theirs = [tuple(_key(row[place]) for place in keys) for row in rows]
    assert [key for key in shown if key in theirs] == [key for key in theirs if key in shown]


def _says(value: Any) -> bool:
    """Whether a cell of a public key without people counts somebody; their mean is anywhere within its bounds."""
    return isinstance(value, int) and value != 0


def _lonely(row: Sequence[Any], keys: Sequence[int]) -> bool:
    """Whether a count in a row says that its group is of so few people that a private key may stay hidden."""
    counts = [value for place, value in enumerate(row) if place not in keys and isinstance(value, int)]
    return bool(counts) and min(counts) <= FEW


def _same(ours: Sequence[Any], theirs: Sequence[Any], keys: set[int], ranks: dict[int, float]) -> None:
    assert len(ours) == len(theirs)
    for place, (value, known) in enumerate(zip(ours, theirs, strict=True)):
        if place in keys:
            continue
        if place in ranks:
            low, high = _adjacent(known, ranks[place])
            slack = DAY if isinstance(value, dt.date) else RELATIVE * max(abs(low), abs(high), 1)
            assert low - slack <= _number(value) <= high + slack, (place, value, low, high)
        elif known is not None:
            near = pytest.approx(float(known), rel=RELATIVE, abs=RELATIVE)
            assert value == (known if isinstance(known, int) else near), place


def _adjacent(values: Sequence[Any] | None, quantile: float) -> tuple[float, float]:
    """The order statistics on both sides of a quantile, and one further."""
    found = sorted(_number(value) for value in values or () if value is not None)
    if not found:
        return -math.inf, math.inf
    place = quantile * (len(found) - 1)
    return found[max(0, math.floor(place) - 1)], found[min(len(found) - 1, math.ceil(place) + 1)]


def _number(value: Any) -> float:
    """A number as it is, a date or a timestamp as seconds."""
    if isinstance(value, dt.date):
        moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
        return (moment - dt.datetime(1970, 1, 1)).total_seconds()
    return float(value)


def _key(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    return value
