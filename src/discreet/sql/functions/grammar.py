"""The second gate: from the parser's tree to expressions of the plan, through a table of what is understood.

A kind of node that is not in the table is refused, and so is a node of a known kind with a part that its entry does not
name: what the parser understands beyond this table never reaches a plan. The entries are in the modules of this
package, and importing the package fills the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.plan.expressions.calls import Mismatch
from discreet.plan.model.nodes import Expression, fits
from discreet.sql.refusals import REFUSALS, UNKNOWN_WORD
from discreet.sql.scope import Scope

Read = Callable[[exp.Expr, Scope], Expression]


@dataclass(frozen=True, slots=True)
class GrammarRule:
    """How a kind of node is read, and which of its parts are understood."""

    parts: frozenset[str]
    read: Read


_TABLE: dict[type[exp.Expr], GrammarRule] = {}
_NAMED: dict[str, tuple[tuple[int, ...], Read]] = {}


def reads(kind: type[exp.Expr], *parts: str) -> Callable[[Read], Read]:
    """Enters a function into the table."""

    def enter(function: Read) -> Read:
        _TABLE[kind] = GrammarRule(frozenset(parts), function)
        return function

    return enter


def names(name: str, *counts: int) -> Callable[[Read], Read]:
    """Enters a function that the parser knows by no class of its own, with so many arguments."""

    def enter(function: Read) -> Read:
        _NAMED[name] = counts, function
        return function

    return enter


@reads(exp.Anonymous, "this", "expressions")
def _read_named_function(node: exp.Expr, scope: Scope) -> Expression:
    counts, function = _NAMED.get(node.name.upper(), ((), None))
    if function is None:
        refuse_node(node, scope)
    if len(node.expressions) not in counts:
        refuse_count(node.name.upper(), counts, node, scope)
    return function(node, scope)


def refuse_count(word: str, counts: Sequence[int], node: exp.Expr, scope: Scope) -> NoReturn:
    """Refuses a function with another number of arguments than it takes."""
    number = " or ".join(map(str, counts))
    scope.refuse(f"{word} takes {number} argument{'s' * (tuple(counts) != (1,))}.", "Or ask {count}.", node)


def read(node: exp.Expr, scope: Scope) -> Expression:
    """Reads a node of the tree as an expression of the plan.

    Raises:
        UnsupportedQuery: if it is not in the table, or its types do not fit.
    """
    entry = _TABLE.get(type(node))
    if entry is None:
        refuse_node(node, scope)
    only(node, scope, *entry.parts)
    try:
        found = entry.read(node, scope)
    except Mismatch as mismatch:
        scope.refuse(mismatch.reason, mismatch.hint, node)
    if not fits(found):
        scope.refuse("The expression is too large.", "Ask a simpler question: {count}.", node)
    return found


def only(node: exp.Expr, scope: Scope, *parts: str) -> None:
    """Refuses a node that has other parts than these."""
    for name, part in node.args.items():
        if name not in parts and (part or isinstance(part, int)) and part is not False:
            where = next((p for p in (part if isinstance(part, list) else [part]) if isinstance(p, exp.Expr)), node)
            if isinstance(where, exp.Query):
                refuse_node(where, scope)
            word = name.strip("_").upper().replace("_", " ")
            refusal = REFUSALS.get(word, UNKNOWN_WORD)
            scope.refuse(refusal.reason.replace("{word}", word), refusal.hint, where)


def refuse_node(node: exp.Expr, scope: Scope) -> NoReturn:
    """Refuses what has no entry."""
    if isinstance(node, exp.Query):
        scope.refuse(
            "A subquery is answered only in FROM, with aggregates.",
            "Ask it separately: {filtered}.",
            node,
        )
    if isinstance(node, exp.Star):
        scope.refuse("* would publish rows.", "Name keys and aggregates: {grouped}.", node)
    word = (node.name if isinstance(node, exp.Anonymous) else node.key).upper()
    refusal = REFUSALS.get(word, UNKNOWN_WORD)
    scope.refuse(refusal.reason.replace("{word}", word), refusal.hint, node)
