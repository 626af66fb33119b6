"""What of SQL a question uses, found in its tree: which features a system needs to answer it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from tests.corpus.world import World

_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Median: "quantile",
    exp.Quantile: "quantile",
    exp.PercentileCont: "quantile",
    exp.PercentileDisc: "quantile",
    exp.ApproxQuantile: "quantile",
    exp.Variance: "variance",
    exp.VariancePop: "variance",
    exp.Stddev: "variance",
    exp.StddevSamp: "variance",
    exp.StddevPop: "variance",
    exp.Skewness: "skewness",
    exp.Corr: "covariance",
    exp.CovarSamp: "covariance",
    exp.CovarPop: "covariance",
    exp.RegrSlope: "covariance",
    exp.Mode: "mode",
    exp.CountIf: "count_if",
    exp.GroupConcat: "list of values",
    exp.ArrayAgg: "list of values",
}
_NODES: dict[type[exp.Expr], str] = {
    exp.Filter: "filter",
    exp.Having: "having",
    exp.Order: "order by",
    exp.Limit: "limit",
    exp.Where: "where",
    exp.Case: "case",
    exp.Coalesce: "coalesce",
    exp.CTE: "with",
    exp.Exists: "exists",
    exp.Intersect: "intersect",
    exp.Union: "union",
    exp.Qualify: "qualify",
    exp.TimestampTrunc: "date_trunc",
    exp.DateTrunc: "date_trunc",
    exp.DateDiff: "date difference",
    exp.Interval: "interval",
    exp.TimeToStr: "strftime",
    exp.Dayname: "weekday",
    exp.Lower: "text",
    exp.Upper: "text",
    exp.Trim: "text",
    exp.Substring: "text",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.Left: "left",
    exp.SplitPart: "split_part",
    exp.DPipe: "concatenation",
    exp.Pow: "power",
    exp.WidthBucket: "width_bucket",
    exp.Rollup: "grouping sets",
    exp.Cube: "grouping sets",
    exp.GroupingSets: "grouping sets",
}
_COMMENT = re.compile(r"--|/\*")


def features(sql: str, world: World) -> frozenset[str]:
    """The features of a question about a world."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    found = set(_tagged(tree, world))
    if _COMMENT.search(sql):
        found.add("comments")
    return frozenset(found)


def _tagged(tree: exp.Expr, world: World) -> Iterator[str]:
    for node in tree.walk():
        if type(node) in _AGGREGATES and not isinstance(node.parent, exp.Window):
            yield _AGGREGATES[type(node)]
        if type(node) in _NODES:
            yield _NODES[type(node)]
        for kind, tags in _SPECIAL.items():
            if isinstance(node, kind):
                yield from tags(node, world)


def _units(world: World) -> set[str]:
    return {table.unit for table in world.tables if table.unit is not None and "->" not in table.unit}


def _names_a_unit(nodes: list[exp.Expr], world: World) -> bool:
    return any(isinstance(node, exp.Column) and node.name in _units(world) for node in nodes)


def _count(node: exp.Expr, world: World) -> Iterator[str]:
    inner = node.this
    if not isinstance(inner, exp.Distinct):
        yield "count"
    elif _names_a_unit(inner.expressions, world):
        yield "count of people"
    else:
        yield "count distinct"


def _extreme(node: exp.Expr, world: World) -> Iterator[str]:
    select = node.find_ancestor(exp.Select)
    if isinstance(node.parent, exp.Window):
        return
    if select is None or not is_fold(select, world):
        yield "min, max"


def _keys(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    keys = list(group.expressions) if group is not None else []
    outputs = [output.unalias() for output in select.expressions]
    return [outputs[int(key.name) - 1] if isinstance(key, exp.Literal) and key.is_int else key for key in keys]


def is_fold(select: exp.Select, world: World) -> bool:
    """Whether a SELECT folds one person's rows."""
    return _names_a_unit(_keys(select), world)


def _select(node: exp.Expr, world: World) -> Iterator[str]:
    assert isinstance(node, exp.Select)
    yield from _grouped(node, world)
    if node.args.get("distinct") is not None:
        yield "distinct rows"
    if isinstance(node.parent, exp.Subquery) and isinstance(node.parent.parent, exp.From | exp.Join):
        yield "nested select"
    elif isinstance(node.parent, exp.Subquery):
        yield "scalar subquery"
    if not is_fold(node, world) and node.parent is None and not node.find(exp.AggFunc):
        yield "raw rows"


def _grouped(node: exp.Select, world: World) -> Iterator[str]:
    group = node.args.get("group")
    if group is None:
        return
    keys = _keys(node)
    inside = node.parent is not None
    if group.args.get("all"):
        yield "group by all"
    if is_fold(node, world):
        yield "fold per person" if inside else "raw rows"
    elif inside and _outer_aggregates(node):
        yield "aggregate of aggregates"
    if any(isinstance(key, exp.Literal) for key in group.expressions) and inside:
        yield "position in a nested group by"
    named = {output.alias: output.unalias() for output in node.expressions if isinstance(output, exp.Alias)}
    if any(_is_whole_double(named.get(key.name, key) if isinstance(key, exp.Column) else key) for key in keys):
        yield "key from floor"
    if any(isinstance(key, exp.Column) and _type(key, world) == "float" for key in keys):
        yield "float key of a public table"
    yield "group by"


def _outer_aggregates(node: exp.Select) -> bool:
    outer = node.parent.find_ancestor(exp.Select) if node.parent is not None else None
    return outer is not None and any(not isinstance(a.parent, exp.Window) for a in outer.find_all(exp.AggFunc))


def _is_whole_double(key: exp.Expr) -> bool:
    return not isinstance(key, exp.Case | exp.Cast) and key.find(exp.Floor, exp.Ceil, exp.Round) is not None


def _type(column: exp.Column, world: World) -> str | None:
    kinds = {table.types[column.name] for table in world.tables if table.unit is None and column.name in table.types}
    return kinds.pop() if len(kinds) == 1 else None


def _join(node: exp.Expr, world: World) -> Iterator[str]:
    if not node.args.get("on") and not node.args.get("using"):
        yield "comma join"
    yield "left join" if node.args.get("side") == "LEFT" else "join"
    public = {table.name for table in world.tables if table.unit is None}
    right = node.this
    if isinstance(right, exp.Table) and right.name in public:
        yield "join with a public table"
        return
    yield "join of protected tables"
    conditions = [column.name for on in [node.args.get("on")] if on is not None for column in on.find_all(exp.Column)]
    named = conditions + [identifier.name for identifier in node.args.get("using") or []]
    if named and not set(named) & _units(world):
        yield "join of protected tables on other columns"
    select = node.parent
    first = select.args["from_"].this if isinstance(select, exp.Select) else None
    if isinstance(right, exp.Table) and isinstance(first, exp.Table) and first.name == right.name:
        yield "self join"


def _in(node: exp.Expr, world: World) -> Iterator[str]:
    del world
    if node.args.get("query") is not None:
        inside = node.find_ancestor(exp.Case) is not None
        yield "in a subquery inside case" if inside else "in a subquery"


def _window(node: exp.Expr, world: World) -> Iterator[str]:
    parts = node.args.get("partition_by") or []
    select = node.find_ancestor(exp.Select)
    if _names_a_unit(parts, world):
        yield "window within a person"
    elif select is not None and (_keys(select) or _reads_released(select, world)):
        yield "window over released groups"
    else:
        yield "window over everybody"


def _reads_released(select: exp.Select, world: World) -> bool:
    source = select.args["from_"].this
    root = select.root()
    inner: exp.Expr | None = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(source, exp.Table):
        inner = next((cte.this for cte in root.find_all(exp.CTE) if cte.alias == source.name), None)
    return isinstance(inner, exp.Select) and bool(_keys(inner)) and not is_fold(inner, world)


def _extract(node: exp.Expr, world: World) -> Iterator[str]:
    del world
    yield "weekday" if node.this.name.upper() == "DOW" else "parts of dates"


def _subtract(node: exp.Expr, world: World) -> Iterator[str]:
    kinds = {kind for table in world.tables for name, kind in table.types.items() for c in _columns(node) if c == name}
    if kinds and kinds <= {"date", "timestamp"}:
        yield "date difference"


def _columns(node: exp.Expr) -> list[str]:
    return [side.name for side in (node.this, node.expression) if isinstance(side, exp.Column)]


def _anonymous(node: exp.Expr, world: World) -> Iterator[str]:
    del world
    yield node.name.lower()


def _bounded(node: exp.Expr, world: World) -> Iterator[str]:
    """Sums and means of columns without bounds: of a protected table, or of a public one whose content is known."""
    if isinstance(node.parent, exp.Window):
        return
    for column in node.find_all(exp.Column):
        for table in world.tables:
            is_open = table.types.get(column.name) in ("int", "float") and column.name not in table.bounds
            if is_open and not _tested(column, node):
                yield "bounds of a public column" if table.unit is None else "private bounds"


def _tested(column: exp.Column, within: exp.Expr) -> bool:
    """Whether a column only stands in a condition."""
    node: exp.Expr | None = column
    while node is not None and node is not within:
        filtering = isinstance(node.parent, exp.Filter) and node.arg_key != "this"
        if filtering or isinstance(node, exp.Predicate):
            return True
        node = node.parent
    return False


_SPECIAL = {
    exp.Count: _count,
    exp.Min: _extreme,
    exp.Max: _extreme,
    exp.Select: _select,
    exp.Join: _join,
    exp.In: _in,
    exp.Window: _window,
    exp.Extract: _extract,
    exp.Sub: _subtract,
    exp.Anonymous: _anonymous,
    exp.Sum: _bounded,
    exp.Avg: _bounded,
}
