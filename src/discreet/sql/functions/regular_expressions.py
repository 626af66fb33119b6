"""Patterns in questions: LIKE ... ESCAPE, SIMILAR TO, the operators ~, and functions such as regexp_matches.

Each is read by our own grammar and becomes `matches` or `extract` with a pattern in normal form. Where letters are the
same in both cases, they are so as for ILIKE: the text and the pattern are put into upper and then into lower case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.lazy import Module
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import only, read, reads, refuse_node
from discreet.sql.functions.texts import like, literal_text, same_case
from discreet.sql.scope import Scope

if TYPE_CHECKING:
    from discreet.plan.expressions import pattern_grammar, patterns
    from discreet.plan.expressions.patterns import PatternNode
else:  # most questions have no pattern
    pattern_grammar = Module("discreet.plan.expressions.pattern_grammar")
    patterns = Module("discreet.plan.expressions.patterns")


def _parse_pattern(node: exp.Expr, scope: Scope, read_pattern: Callable[[], PatternNode]) -> PatternNode:
    try:
        return read_pattern()
    except pattern_grammar.PatternError as error:
        reason = f"{error.reason.removesuffix('.')}, at character {error.place} of the pattern."
        scope.refuse(reason, f"{error.hint} For example {{pattern}}.", node)


def _matches(text: Expression, pattern: PatternNode, *, fold: bool = False) -> Expression:
    return call(
        "matches",
        same_case(text) if fold else text,
        Literal(patterns.write_pattern(patterns.remove_groups(pattern)), Type.TEXT),
    )


# ------------------------------------------------------------------------------------------------- regular expressions


def _search_pattern(node: exp.Expr, scope: Scope, *, fold: bool = False, whole: bool = False) -> Expression:
    """Returns whether a pattern is found in a text, or is the whole of it."""
    pattern, fold = _options(node, scope, fold)
    found = _parse_pattern(node, scope, lambda: pattern_grammar.parse(pattern, fold=fold))
    if whole:
        found = patterns.Concatenation((patterns.Anchor("start"), found, patterns.Anchor("end")))
    return _matches(read(node.this, scope), found, fold=fold)


def _options(node: exp.Expr, scope: Scope, fold: bool) -> tuple[str, bool]:
    """Returns the pattern without (?i), and whether case matters; 'c' and 'i' may also be an argument."""
    pattern = literal_text(node.expression, scope, "A regular expression is", node)
    written_options = node.args.get("flag") or node.args.get("options")
    options = "" if written_options is None else literal_text(written_options, scope, "Options are", node)
    if set(options) - set("ci") or set(options) == set("ci"):
        scope.refuse("The options of a pattern are 'i' or 'c'.", "Leave them out: {pattern}.", node)
    return pattern.removeprefix("(?i)"), fold or "i" in options or pattern.startswith("(?i)")


reads(exp.RegexpLike, "this", "expression", "flag")(_search_pattern)
reads(exp.RegexpILike, "this", "expression")(lambda node, scope: _search_pattern(node, scope, fold=True))
reads(exp.RegexpFullMatch, "this", "expression", "options")(
    lambda node, scope: _search_pattern(node, scope, whole=True)
)


@reads(exp.RegexpExtract, "this", "expression", "group", "null_if_pos_overflow")
def _extract(node: exp.Expr, scope: Scope) -> Expression:
    """Returns the text of a group in the first match, or of the whole match; empty if there is no match."""
    pattern, fold = _options(node, scope, fold=False)
    if fold:
        reason = "regexp_extract returns a part of the text unchanged, so case matters."
        scope.refuse(reason, "Leave (?i) out, and write [Aa] for a letter: {pattern}.", node)
    found = _parse_pattern(node, scope, lambda: pattern_grammar.parse(pattern))
    given = node.args.get("group")
    number = Literal(0, Type.INT) if given is None else read(given, scope)
    place = number.value if isinstance(number, Literal) and number.type is Type.INT else None
    if not isinstance(place, int) or not 0 <= place <= patterns.groups(found):
        reason = f"The groups of this pattern are numbered up to {patterns.groups(found)}, by their opening brackets."
        scope.refuse(reason, "Write one of these numbers out, or 0 for the whole match; or ask {pattern}.", node)
    return call(
        "extract",
        read(node.this, scope),
        Literal(patterns.write_pattern(patterns.keep_one_group(found, place)), Type.TEXT),
    )


# --------------------------------------------------------------------------------------------- LIKE ESCAPE, SIMILAR TO


@reads(exp.SimilarTo, "this", "expression")
def _similar(node: exp.Expr, scope: Scope) -> Expression:
    return _similar_to(node, scope, "\\")


def _similar_to(node: exp.Expr, scope: Scope, escape: str) -> Expression:
    pattern = literal_text(node.expression, scope, "SIMILAR TO takes a pattern that is", node)
    found = _parse_pattern(node, scope, lambda: pattern_grammar.from_similar(pattern, escape))
    return _matches(read(node.this, scope), found)


@reads(exp.Escape, "this", "expression")
def _escape(node: exp.Expr, scope: Scope) -> Expression:
    inner, escape = node.this, literal_text(node.expression, scope, "ESCAPE takes a character that is", node)
    if len(escape) > 1:
        scope.refuse("ESCAPE takes one character.", "For example LIKE '50!%' ESCAPE '!'; or {pattern}.", node)
    if isinstance(inner, exp.SimilarTo):
        only(inner, scope, "this", "expression")
        return _similar_to(inner, scope, escape)
    if not isinstance(inner, exp.Like | exp.ILike):
        refuse_node(node, scope)
    only(inner, scope, "this", "expression", "negate")
    found = _like(inner, scope, escape)
    return call("not", found) if inner.args.get("negate") else found


def _like(node: exp.Expr, scope: Scope, escape: str) -> Expression:
    """Reads LIKE as it is without an escape, unless a % or _ means itself."""
    fold, text = isinstance(node, exp.ILike), read(node.this, scope)
    pattern = literal_text(node.expression, scope, "LIKE takes a pattern that is", node)
    found = _parse_pattern(node, scope, lambda: pattern_grammar.from_like(pattern, escape, fold=fold))
    signs = pattern_grammar.unescape_pattern(pattern, escape)
    if not any(itself and sign in "%_" for sign, itself in signs):
        return like(text, "".join(sign for sign, _ in signs), fold=fold)
    return _matches(text, found, fold=fold)
