"""Variances, covariances and what is made of them: how each is read."""

from __future__ import annotations

from sqlglot import exp

from discreet.plan.expressions.calls import NULL
from discreet.plan.model.nodes import Expression, PairKind, SpreadKind
from discreet.sql.functions.grammar import Read, read, reads
from discreet.sql.scope import Scope


def _spread(kind: SpreadKind) -> Read:
    def spread(node: exp.Expr, scope: Scope) -> Expression:
        return scope.aggregate(kind, _argument(node.this, node, scope), node)

    return spread


def _argument(part: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    """What an aggregate of numbers is about: an expression over one row."""
    if isinstance(part, exp.Distinct):
        scope.refuse("DISTINCT is accepted in COUNT only.", "Leave it out: {mean}.", node)
    found = read(part, scope.row)
    if found is NULL:
        scope.refuse("NULL is no number.", "Name a column: {mean}.", node)
    return found


reads(exp.Variance, "this")(_spread("var_samp"))
reads(exp.VariancePop, "this")(_spread("var_pop"))
reads(exp.Stddev, "this")(_spread("stddev_samp"))
reads(exp.StddevSamp, "this")(_spread("stddev_samp"))
reads(exp.StddevPop, "this")(_spread("stddev_pop"))


def _pair(kind: PairKind) -> Read:
    def pair(node: exp.Expr, scope: Scope) -> Expression:
        first, second = (_argument(part, node, scope) for part in (node.this, node.expression))
        return scope.aggregate(kind, first, node, second)

    return pair


reads(exp.CovarPop, "this", "expression")(_pair("covar_pop"))
reads(exp.CovarSamp, "this", "expression")(_pair("covar_samp"))
reads(exp.Corr, "this", "expression")(_pair("corr"))
reads(exp.RegrSlope, "this", "expression")(_pair("regr_slope"))
reads(exp.RegrIntercept, "this", "expression")(_pair("regr_intercept"))
