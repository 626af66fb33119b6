"""Texts in questions that have a grammar of their own: TRIM, ||, LPAD and LIKE, and how each is read."""

from __future__ import annotations

from sqlglot import exp

from discreet.plan.expressions.calls import call
from discreet.plan.expressions.letter_case import lower_case, upper_case
from discreet.plan.expressions.shorthands.text_shorthands import as_text, together
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import names, read, reads
from discreet.sql.scope import Scope

ONE = Literal(1, Type.INT)
LONGEST_PAD = 1000

# --------------------------------------------------------------------------------------------------------------- parts


SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What TRIM takes away: the space separators of Unicode. Tabs and line breaks are none."""

_SIDES = {"": "", "BOTH": "", "LEADING": "_left", "TRAILING": "_right"}


@reads(exp.Trim, "this", "position", "expression")
def _trim(node: exp.Expr, scope: Scope) -> Expression:
    side = _SIDES[str(node.args.get("position") or "").upper()]
    return _trim_text(read(node.this, scope), node.args.get("expression"), node, scope, side)


@names("BTRIM", 1, 2)
def _trim_both(node: exp.Expr, scope: Scope) -> Expression:
    text, *signs = node.expressions
    return _trim_text(read(text, scope), signs[0] if signs else None, node, scope)


def _trim_text(text: Expression, signs: exp.Expr | None, node: exp.Expr, scope: Scope, side: str = "") -> Expression:
    """Returns a text without spaces, or other signs that are written out, at one end or both."""
    if signs is None:
        return call(f"strip{side}", text, Literal(SPACES, Type.TEXT))
    if not isinstance(signs, exp.Literal) or not signs.is_string:
        scope.refuse("TRIM removes characters that are written out.", "For example TRIM(x, '-'); or {grouped}.", node)
    return call(f"trim{side}", text) if signs.name == " " else call(f"strip{side}", text, read(signs, scope))


# ------------------------------------------------------------------------------------------------------ put together


@reads(exp.DPipe, "this", "expression", "safe")
def _concatenate_texts(node: exp.Expr, scope: Scope) -> Expression:
    return together(as_text(read(node.this, scope)), as_text(read(node.expression, scope)))


@reads(exp.Pad, "this", "expression", "fill_pattern", "is_left")
def _pad(node: exp.Expr, scope: Scope) -> Expression:
    """A longer text is cut; a shorter one gets signs before or after it."""
    text, size, sign = as_text(read(node.this, scope)), read(node.expression, scope), node.args.get("fill_pattern")
    fill = " " if sign is None else sign.name if isinstance(sign, exp.Literal) and sign.is_string else ""
    length = size.value if isinstance(size, Literal) and size.type is Type.INT else None
    if not fill or not isinstance(length, int) or not 0 <= length <= LONGEST_PAD:
        reason = f"A text is padded to a length from 0 to {LONGEST_PAD} with characters, both written out."
        scope.refuse(reason, "For example LPAD(CAST(x AS TEXT), 2, '0'); or {grouped}.", node)
    missing = call("subtract", size, call("length", text))
    added = call("substring", Literal((fill * length)[:length], Type.TEXT), ONE, missing)
    both = together(added, text) if node.args.get("is_left") else together(text, added)
    return call("if", call("less", call("length", text), size), both, call("substring", text, ONE, size))


# ------------------------------------------------------------------------------------------------ patterns and searches


def literal_text(part: exp.Expr, scope: Scope, what: str, node: exp.Expr) -> str:
    """Returns a text that is written out, or refuses to read what is not."""
    found = read(part, scope)
    if not isinstance(found, Literal) or not isinstance(found.value, str):
        scope.refuse(f"{what} written out.", "Write it in quotes: {pattern}.", node)
    return found.value


def same_case(text: Expression) -> Expression:
    """Returns a text in which letters are the same that upper or lower case makes so."""
    return call("lower_case", call("upper_case", text))


def like(text: Expression, pattern: str, *, fold: bool) -> Expression:
    """Returns whether a text is like a pattern, with `fold` whatever the case of letters."""
    if fold:
        text, pattern = same_case(text), lower_case(upper_case(pattern))
    return call("like", text, Literal(pattern, Type.TEXT))


def _like(node: exp.Expr, scope: Scope) -> Expression:
    pattern = literal_text(node.expression, scope, "LIKE takes a pattern that is", node)
    found = like(read(node.this, scope), pattern, fold=isinstance(node, exp.ILike))
    return call("not", found) if node.args.get("negate") else found


reads(exp.Like, "this", "expression", "negate")(_like)
reads(exp.ILike, "this", "expression", "negate")(_like)
