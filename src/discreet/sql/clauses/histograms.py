"""HISTOGRAM(x), HISTOGRAM(x, 10) and HISTOGRAM(x, 0, 18, 65, 120): a row for each band between public edges.

It is a COUNT(*) grouped by the number of the band, written shorter. Edges are written in the question, or lie evenly
between bounds: declared ones, or, where none are declared, those that are chosen privately (`with_edges`). A band
holds its lower edge and not its upper one; the last holds both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from sqlglot import exp

from discreet.errors import UnsupportedQuery
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.calls import NULL, call
from discreet.plan.model.nodes import Bands, ColumnRef, Expression, Key, Literal, Output, Question, columns, fits
from discreet.plan.model.schema import ColumnBounds, TableSchema
from discreet.plan.model.types import Type
from discreet.sql.examples import different, quote_name
from discreet.sql.functions.grammar import only, read
from discreet.sql.scope import Scope, same

BANDS = 10
"""How many bands there are by default."""

MOST_BANDS = 500
"""How many bands there may be: as many as public groups without a declaration."""

_BAND = "band"
_ENDS = {"low": 0, "high": 1}


def replace_with_count(tree: exp.Select) -> exp.Select:
    """Returns the SELECT with COUNT(*) in the place of its HISTOGRAM."""
    name = tree.expressions[0].alias or "count"
    count = exp.Alias(this=exp.Count(this=exp.Star(), big_int=True), alias=exp.to_identifier(name, quoted=True))
    found = tree.copy()
    found.set("expressions", [count])
    return found


def split_into_bands(asking: Question, node: exp.Anonymous, scope: Scope) -> Question:
    """Turns a count of rows into one for each band.

    Args:
        asking: COUNT(*) of the rows.
        node: the HISTOGRAM.
        scope: of one row.

    Raises:
        UnsupportedQuery: if its argument is no number, or edges are neither written nor declared.
    """
    only(node, scope, "this", "expressions")
    if not node.expressions:
        scope.refuse("HISTOGRAM takes a number.", "For example {buckets}.", node)
    x = read(node.expressions[0], scope)
    if x is NULL or not x.type.is_number:
        scope.refuse("HISTOGRAM makes bands of numbers.", "Group by the values, months or years: {grouped}.", node)
    if any(same(output.name, end) for output in asking.outputs for end in _ENDS):
        scope.refuse("Bands have columns called low and high.", "Choose another name with AS: {count}.", node)
    written = [_number(part, scope, node) for part in node.expressions[1:]]
    edges = _check_edges(written, scope, node) if len(written) > 1 else _even(x, written, scope, node)
    kept = _between(x, edges) if len(written) > 1 else call("not", call("is_null", x))
    where = kept if asking.where is None else call("and", asking.where, kept)
    found = _with(replace(asking, where=where), x, edges)
    parts = [key.expression for key in found.keys] + [output.expression for output in found.outputs]
    if not all(map(fits, parts)):
        scope.refuse("The histogram is too large.", "Make fewer bands: {buckets}.", node)
    if len(written) > 1 or not any(scope.schema.columns[column.name].limited for column in columns(x)):
        return found
    return replace(found, bands=Bands(x, len(edges) - 1))


def with_edges(plan: Question, schema: TableSchema) -> Question:
    """Puts bands between the bounds that the argument has now; a question without bands to choose stays as it is.

    Raises:
        UnsupportedQuery: if there are no bounds, or they are too near to each other for so many bands.
    """
    if plan.bands is None:
        return plan
    limits = bounds(plan.bands.argument, schema)
    edges = [] if limits is None else _evenly(limits, plan.bands.count)
    if not edges or not _ascend(edges):
        raise UnsupportedQuery("These bounds cannot be cut into bands.", "Write the edges: HISTOGRAM(x, 0, 25, 50).")
    return replace(_with(plan, plan.bands.argument, edges), bands=None)


def _with(plan: Question, x: Expression, edges: Sequence[Fraction]) -> Question:
    """Returns a count, which is the last output, by bands."""
    column, count = ColumnRef(_BAND, Type.INT), plan.outputs[-1]
    ends = [Output(name, _edge_of(column, edges, upper)) for name, upper in _ENDS.items()]
    return replace(plan, keys=(Key(_BAND, _band(x, edges)),), outputs=(*ends, count))


# ---------------------------------------------------------------------------------------------------------------- edges


def _number(part: exp.Expr, scope: Scope, node: exp.Expr) -> Fraction:
    found = read(part, scope)
    if isinstance(found, Literal) and found.type.is_number and isinstance(found.value, int | float):
        return Fraction(found.value)
    return scope.refuse("HISTOGRAM takes numbers that are written out.", "For example {buckets}.", node)


def _check_edges(edges: Sequence[Fraction], scope: Scope, node: exp.Expr) -> Sequence[Fraction]:
    if len(edges) <= MOST_BANDS + 1 and _ascend(edges):
        return edges
    reason = f"The edges of a histogram must ascend, and make at most {MOST_BANDS} bands."
    return scope.refuse(reason, "For example {buckets}.", node)


def _even(x: Expression, written: Sequence[Fraction], scope: Scope, node: exp.Expr) -> Sequence[Fraction]:
    """Edges of so many bands of equal width; what lies beyond the bounds is in the first or the last of them."""
    count = written[0] if written else Fraction(BANDS)
    if count.denominator != 1 or not 1 <= count <= MOST_BANDS:
        reason = f"A histogram has 1 to {MOST_BANDS} bands, or at least two edges."
        scope.refuse(reason, "For example {buckets}.", node)
    limits = bounds(x, scope.schema)
    if limits is None:
        scope.refuse("The bands of this histogram need bounds, but none are declared.", _hint(scope, node), node)
    return _check_edges(_evenly(limits, int(count)), scope, node)


def _evenly(limits: ColumnBounds, count: int) -> list[Fraction]:
    edges = [limits.low + limits.width * place / count for place in range(count + 1)]
    return [edge if edge.denominator == 1 else Fraction(float(edge)) for edge in edges]


def _ascend(edges: Sequence[Fraction]) -> bool:
    return all(one < other for one, other in pairwise(edges))


def _hint(scope: Scope, node: exp.Expr) -> str:
    text = node.expressions[0].sql(dialect="duckdb")
    if "`" in text or len(text) > 200 or scope.alias != scope.schema.name:
        return "Write the edges out, or group by bands: {buckets}."
    asked = f"SELECT HISTOGRAM({text}, 0, 25, 50, 75, 100) AS answer FROM {quote_name(scope.schema.name)}"
    return f"Ask the steward to declare bounds, or write edges of your choice: {different(asked)}."


def _literal(edge: Fraction, kind: Type) -> Literal:
    return Literal(int(edge), Type.INT) if kind is Type.INT else Literal(float(edge), Type.FLOAT)


def _kind(edges: Sequence[Fraction]) -> Type:
    """Returns the type of edges: INT if all are whole numbers small enough to be the same as doubles."""
    return Type.INT if all(edge.denominator == 1 and abs(edge) < 1 << 53 for edge in edges) else Type.FLOAT


def _between(x: Expression, edges: Sequence[Fraction]) -> Expression:
    low, high = (_literal(edges[place], _kind(edges)) for place in (0, -1))
    return call("and", call("greater_equal", x, low), call("less_equal", x, high))


def _band(x: Expression, edges: Sequence[Fraction]) -> Expression:
    """Returns the number of the band, from 1 on, by halves: values beyond the edges are in the first or last band."""
    inner = [_literal(edge, _kind(edges)) for edge in edges[1:-1]]
    return _by_halves(x, inner, [Literal(place, Type.INT) for place in range(1, len(edges))])


def _edge_of(band: ColumnRef, edges: Sequence[Fraction], upper: int) -> Expression:
    """Returns an edge of a band by its number: the lower one, or the one after it."""
    results = [_literal(edge, _kind(edges)) for edge in edges]
    later = [Literal(place, Type.INT) for place in range(2, len(edges))]
    return _by_halves(band, later, results[1:] if upper else results[:-1])


def _by_halves(x: Expression, steps: Sequence[Literal], results: Sequence[Literal]) -> Expression:
    """Returns the first result below the first step, the second from there up to the second step, and so on."""
    if not steps:
        return results[0]
    middle = len(steps) // 2
    lower = _by_halves(x, steps[:middle], results[: middle + 1])
    upper = _by_halves(x, steps[middle + 1 :], results[middle + 1 :])
    return call("if", call("less", x, steps[middle]), lower, upper)
