"""Quantiles and modes: how MEDIAN, QUANTILE, APPROX_QUANTILE, PERCENTILE_CONT and MODE are read, in all their forms."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from discreet.plan.expressions.calls import NULL
from discreet.plan.model.nodes import Expression
from discreet.sql.functions.grammar import Read, only, read, reads, refuse_node
from discreet.sql.scope import Scope

FINEST = 10**6
"""The largest denominator of a quantile: losses of ranks are counted in units of it."""

_SHARE = re.compile(r"[0-9]*\.?[0-9]*")


@reads(exp.Median, "this")
def _median(node: exp.Expr, scope: Scope) -> Expression:
    return _quantile(node.this, Fraction(1, 2), node, scope)


def _of(part: str) -> Read:
    return lambda node, scope: _quantile(node.this, _share(node.args.get(part), node, scope), node, scope)


reads(exp.Quantile, "this", "quantile")(_of("quantile"))
reads(exp.ApproxQuantile, "this", "quantile")(_of("quantile"))
reads(exp.PercentileCont, "this", "expression")(_of("expression"))


@reads(exp.WithinGroup, "this", "expression")
def _within_group(node: exp.Expr, scope: Scope) -> Expression:
    """PERCENTILE_CONT(q) or MODE() WITHIN GROUP (ORDER BY x); downwards it is the quantile 1 - q."""
    inner, order = node.this, node.expression
    is_mode = isinstance(inner, exp.Mode) and not any(inner.args.values())
    if not is_mode and (not isinstance(inner, exp.PercentileCont) or inner.args.get("expression") is not None):
        refuse_node(inner, scope)
    only(order, scope, "expressions")
    if len(order.expressions) != 1:
        scope.refuse("WITHIN GROUP sorts by one expression.", "Name one: {median}.", order)
    (ordered,) = order.expressions
    only(ordered, scope, "this", "desc")
    if is_mode:
        return _mode(ordered.this, node, scope)
    share = _share(inner.this, node, scope)
    return _quantile(ordered.this, 1 - share if ordered.args.get("desc") else share, node, scope)


def _quantile(argument: exp.Expr, share: Fraction, node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(argument, exp.Distinct):
        scope.refuse("DISTINCT is accepted in COUNT only.", "Leave it out: {median}.", node)
    value = read(argument, scope.row)
    if value is NULL:
        scope.refuse("NULL has no quantile.", "Name a column: {median}.", node)
    return scope.quantile(value, share, node, argument)


@reads(exp.Mode, "this")
def _mode_of(node: exp.Expr, scope: Scope) -> Expression:
    if node.this is None:
        scope.refuse("MODE takes a column.", "Name one, or ask for the groups: {top}.", node)
    return _mode(node.this, node, scope)


def _mode(argument: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(argument, exp.Distinct):
        scope.refuse("Among different values none is more frequent.", "Leave DISTINCT out: {top}.", node)
    value = read(argument, scope.row)
    if value is NULL:
        scope.refuse("NULL has no mode.", "Name a column: {top}.", node)
    return scope.mode(value, node, argument)


def _share(node: exp.Expr | Fraction | None, of: exp.Expr, scope: Scope) -> Fraction:
    """The q of a quantile, which is written out, or given as it is by the fluent front."""
    if isinstance(node, Fraction):
        return node
    if isinstance(node, exp.Array):
        scope.refuse("Several quantiles are columns of their own.", "Ask for one here: {median}.", of)
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if _SHARE.fullmatch(text) and any(map(str.isdigit, text)) and len(text) <= 20:
        share = Fraction(text)
        if share <= 1 and share.denominator <= FINEST:
            return share
    return scope.refuse(
        "A quantile is a number from 0 to 1 with at most six digits, written out.",
        "For example 0.9 for the value below which nine tenths lie; 0.5 is {median}.",
        of,
    )
