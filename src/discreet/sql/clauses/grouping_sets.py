"""What GROUP BY lists: keys, ALL of them, or with ROLLUP, CUBE and GROUPING SETS several groupings of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product

from sqlglot import exp

from discreet.sql.text.source import Source

MOST_SETS = 32

Set = tuple[exp.Expr, ...]


def keys_of(tree: exp.Select) -> list[exp.Expr]:
    """What GROUP BY lists; ALL stands for every output that reads columns and holds no aggregate."""
    group = tree.args.get("group")
    if group is None or not group.args.get("all"):
        return [] if group is None else list(group.expressions)
    outputs = [output.unalias() for output in tree.expressions]
    return [node for node in outputs if node.find(exp.Column) is not None and node.find(exp.AggFunc) is None]


def groupings(nodes: Sequence[exp.Expr], source: Source) -> tuple[list[exp.Expr], list[tuple[int, ...]]]:
    """What rows are grouped by, and for each grouping the places of its keys; no groupings if there is but one.

    As in SQL, several parts of GROUP BY multiply: each grouping of one goes with each of the others.

    Raises:
        UnsupportedQuery: if there are more than `MOST_SETS`.
    """
    if not any(isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) for node in nodes):
        return list(nodes), []
    parts = [_sets(node, source) for node in nodes]
    count = 1
    for part, node in zip(parts, nodes, strict=True):
        count *= len(part)
        _check(count, node, source)
    sets = [tuple(chain.from_iterable(combination)) for combination in product(*parts)]
    keys: list[exp.Expr] = []
    for node in chain.from_iterable(sets):
        if node not in keys:
            keys.append(node)
    if not keys:
        source.refuse("There is nothing to group by.", "Name a key: {grouped}.", nodes[0])
    found = list(dict.fromkeys(tuple(sorted({keys.index(node) for node in one})) for one in sets))
    return keys, found if len(found) > 1 else []


def _check(count: int, node: exp.Expr, source: Source) -> None:
    if count > MOST_SETS:
        reason = f"The question has more than {MOST_SETS} groupings, and its budget would be shared among them."
        source.refuse(reason, "Ask for fewer: {grouped}.", node)


def _sets(node: exp.Expr, source: Source) -> list[Set]:
    if isinstance(node, exp.Rollup):
        parts = [_together(part) for part in node.expressions]
        _check(len(parts) + 1, node, source)
        return [tuple(chain.from_iterable(parts[:length])) for length in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        parts = [_together(part) for part in node.expressions]
        _check(2 ** min(len(parts), 64), node, source)
        chosen = (combinations(parts, length) for length in range(len(parts), -1, -1))
        return [tuple(chain.from_iterable(some)) for some in chain.from_iterable(chosen)]
    if isinstance(node, exp.GroupingSets):
        found = [one for part in node.expressions for one in _sets(part, source)]
        _check(len(found), node, source)
        return found
    return [_together(node)]


def _together(node: exp.Expr) -> Set:
    """The keys of a list in brackets, or the one."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)
