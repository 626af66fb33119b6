"""Columns of rows inside a question: as they stand, computed from one row, or folded from one person's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.measurement.aggregates import aggregation
from discreet.plan.model.nodes import ColumnRef, Expression, ExtremeKind, FoldKind, Output
from discreet.plan.model.relations import Fold
from discreet.plan.model.types import Type
from discreet.sql.clauses.from_clause import FromClause, FromRows
from discreet.sql.clauses.select_parts import QueryFragment, distinct, readable, require_type
from discreet.sql.clauses.window_clause import steps_of
from discreet.sql.functions import only, read
from discreet.sql.scope import Names, Scope, same


def everything(node: exp.Expr, found: FromRows) -> list[Output]:
    """Returns the columns that * or alias.* means; none for other outputs."""
    star = isinstance(node, exp.Star) and not any(node.args.values())
    of_table = isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    if not star and not of_table:
        return []
    table = node.text("table") if of_table else ""
    return [
        Output(name, ColumnRef(inner, found.schema.columns[inner].type))
        for alias, names in found.names.items()
        if not table or same(alias, table)
        for name, inner in names.items()
    ]


def read_output(node: exp.Expr, scope: Scope, before: Sequence[Output], names: Names) -> Output:
    """Returns an output of a SELECT of rows, under the name that is given to it, or one of ours."""
    piece = QueryFragment(node, scope.source)
    if isinstance(node, exp.Alias):
        only(node, scope, "this", "alias")
        piece = QueryFragment(node.this, scope.source, node.alias)
    expression = require_type(read(piece.node, scope), piece)
    name = (
        piece.name or _visible_name(expression, names) or distinct(readable(expression, {}), [o.name for o in before])
    )
    return Output(name, expression)


def _visible_name(expression: Expression, names: Names) -> str | None:
    if not isinstance(expression, ColumnRef):
        return None
    return next((name for known in names.values() for name, inner in known.items() if inner == expression.name), None)


def name_columns(outputs: Sequence[Output], tree: exp.Expr, reader: FromClause) -> Names:
    """Returns what the columns of a SELECT are called.

    Raises:
        UnsupportedQuery: if two have one name.
    """
    names = [output.name for output in outputs]
    for i, name in enumerate(names):
        if any(same(name, other) for other in names[:i]) or name.startswith("#"):
            reader.source.refuse(f"Two columns are called '{name[:40]}'.", "Rename one with AS: {count}.", tree)
    return {"": {name: name for name in names}}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldScope(Scope):
    """Columns of a row, and aggregates over one person's rows."""

    folds: list[Fold] = field(default_factory=list)

    def aggregate(
        self,
        kind: str,
        argument: Expression | None,
        node: exp.Expr,
        *,
        other: Expression | None = None,
        share: Fraction | None = None,
        written: exp.Expr | None = None,
    ) -> Expression:
        """Returns the column of a fold, made if it is new."""
        del other, share, written
        if kind not in _FOLDS and aggregation(kind).drawn:
            return Scope.aggregate(self, kind, argument, node)
        if kind not in _FOLDS:
            self.refuse("This cannot be computed for one person.", "Use COUNT, SUM, AVG, MIN or MAX: {mean}.", node)
        return self._add_fold(self._fold(_FOLDS[kind], argument, node))

    def any_value(self, value: Expression, node: exp.Expr) -> Expression:
        """Returns the smallest of one person's values: one of them, the same every time."""
        return self._add_fold(self._fold("min", value, node))

    def extreme(self, kind: ExtremeKind, value: Expression, by: Expression | None, node: exp.Expr) -> Expression:
        """Returns the column of a fold that holds the value where another is smallest or largest."""
        if by is None:
            hint = f"Write {node.key.upper()}(x ORDER BY t) with columns of yours, or take MIN or MAX: {{count}}."
            self.refuse(f"Which value is {kind} depends on an order, by one expression.", hint, node)
        return self._add_fold(Fold(name=f"#f{len(self.folds)}", kind=kind, type=value.type, argument=value, by=by))

    def _add_fold(self, fold: Fold) -> ColumnRef:
        same_ones = [made for made in self.folds if replace(made, name=fold.name) == fold]
        if not same_ones:
            self.folds.append(fold)
        return ColumnRef((same_ones or [fold])[0].name, fold.type)

    def _fold(self, kind: FoldKind, argument: Expression | None, node: exp.Expr) -> Fold:
        name = f"#f{len(self.folds)}"
        if argument is None or kind.startswith("count"):
            return Fold(name=name, kind=kind, type=Type.INT, argument=argument)
        if kind in ("min", "max"):
            return Fold(name=name, kind=kind, type=argument.type, argument=argument)
        steps, fine = steps_of(self, argument, node)
        result = Type.FLOAT if kind == "mean" else argument.type
        return Fold(
            name=name,
            kind=kind,
            type=result,
            argument=argument,
            exponent=steps.exponent,
            low=steps.low,
            high=steps.high,
            fine=fine,
        )


_FOLDS: dict[str, FoldKind] = {
    "count": "count",
    "count_values": "count_values",
    "count_distinct": "count_distinct",
    "sum": "sum",
    "mean": "mean",
    "min": "min",
    "max": "max",
}
