"""Names that PostgreSQL gives to types, and to columns that a query gives none."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

_UNNAMED = "?column?"
_TYPES = {
    *(
        exp.DataType.Type[name]
        for name in ("INT", "BIGINT", "SMALLINT", "FLOAT", "DOUBLE", "DECIMAL", "TEXT", "VARCHAR")
    ),
    *(exp.DataType.Type[name] for name in ("BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "CHAR", "UINT", "ARRAY")),
}


def type_name(to: exp.Expr) -> str | None:
    """Returns the name of a type that the engine lacks; None for those that it has."""
    if isinstance(to, exp.ObjectIdentifier):
        return str(to.this.value).lower() if hasattr(to.this, "value") else str(to.this).lower()
    if isinstance(to, exp.DataType):
        if to.this is exp.DataType.Type.USERDEFINED:
            return str(to.args.get("kind") or "").lower().removeprefix("pg_catalog.").strip('"')
        if to.this is exp.DataType.Type.NAME:
            return "name"
        if to.this in _TYPES:
            return None
        return str(to.this.value).lower()
    return str(to).lower()


def alias_column(node: exp.Expr) -> exp.Expr:
    """Returns a column of a SELECT under the name that PostgreSQL gives it: that of a column or of a function."""
    if isinstance(node, exp.Alias | exp.Column | exp.Star):
        return node
    return exp.alias_(node, _output_name(node), quoted=True)


def _output_name(node: exp.Expr) -> str:
    """Returns the name of a column, by the rules of PostgreSQL's FigureColname."""
    if isinstance(node, exp.Dot | exp.Paren | exp.Bracket | exp.Window | exp.Collate):
        return _output_name(node.expression if isinstance(node, exp.Dot) else node.this)
    if isinstance(node, exp.Cast):
        return _cast_name(node)
    if isinstance(node, exp.Case):
        other = node.args.get("default")
        inner = _UNNAMED if other is None or isinstance(other, exp.Null) else _output_name(other)
        return "case" if inner == _UNNAMED else inner
    if isinstance(node, exp.Subquery) and len(node.this.expressions) == 1:
        first = node.this.expressions[0]
        return str(first.alias_or_name or _output_name(first))
    if isinstance(node, exp.Column | exp.Identifier | exp.Anonymous):
        return str(node.name).lower()
    return _OUTPUTS.get(type(node)) or (node.sql_name().lower() if isinstance(node, exp.Func) else _UNNAMED)


def _cast_name(node: exp.Cast) -> str:
    """Returns the name of what is cast if it has one, else of the last type."""
    core: exp.Expr = node
    while isinstance(core, exp.Cast | exp.Paren):
        core = core.this
    inner = _output_name(core)
    if inner != _UNNAMED:
        return inner
    return str(type_name(node.to) or node.to.sql(dialect=Postgres).lower())


_OUTPUTS: dict[type, str] = {
    exp.GroupConcat: "string_agg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Explode: "unnest",
    exp.CurrentVersion: "version",
    exp.Exists: "exists",
    exp.Array: "array",
    exp.Not: _UNNAMED,
    **dict.fromkeys((exp.And, exp.Or, exp.RegexpLike, exp.RegexpILike), _UNNAMED),
}
