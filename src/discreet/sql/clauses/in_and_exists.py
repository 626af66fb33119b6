"""IN and EXISTS inside an expression, such as CASE: each becomes a column of truth values beside the rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.sql.clauses.from_clause import From, Origin
from discreet.sql.clauses.select_parts import distinct
from discreet.sql.functions.operators import MARK

_CLAUSES = ("group", "having", "qualify", "order")


def marked(
    reader: From, tree: exp.Select, found: Origin, conditions: Sequence[exp.Expr]
) -> tuple[exp.Select, Origin, list[exp.Expr]]:
    """Takes questions out of the expressions of a SELECT, and gives the rows a column for each of them.

    Args:
        reader: reads what stands inside.
        tree: the SELECT, which is left as it is.
        found: the rows before its own filter.
        conditions: that filter.
    """
    parts = [*tree.expressions, *(tree.args.get(name) for name in _CLAUSES), *conditions]
    if not any(part.find(exp.In, exp.Exists) for part in parts if part is not None):
        return tree, found, list(conditions)
    marks = _Marks(reader, found)
    made = tree.copy()
    made.set("expressions", [marks.without(node) for node in tree.expressions])
    for name in _CLAUSES:
        if tree.args.get(name) is not None:
            made.set(name, marks.without(tree.args[name]))
    others = [marks.without(node) for node in conditions]
    return made, marks.found, others


class _Marks:
    """Rows to which columns are added as they are asked for; what is asked for twice is one column."""

    def __init__(self, reader: From, found: Origin) -> None:
        self.reader, self.found = reader, found
        self._known: dict[exp.Expr, str] = {}

    def without(self, node: exp.Expr) -> exp.Expr:
        """The node with columns in the place of IN and EXISTS; those of SELECTs inside it stay theirs."""
        found: exp.Expr = node.transform(lambda part: self._column(part) if _is_own(part) else part)
        return found

    def _column(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.In | exp.Exists):
            return node
        name = self._known.get(node)
        if name is None:
            compared = self.reader.compared(self.found, node)
            if compared is None:
                return node
            name = distinct("is in", self.found.schema.columns)
            self.found = self.reader.marked(self.found, *compared, node, name)
            self._known[node] = name
        column = exp.Column(this=exp.to_identifier(f"#{name}", quoted=True))
        column.meta.update({MARK: name, "start": self.reader.source.start(node)})
        return column if isinstance(node, exp.In) else exp.Coalesce(this=column, expressions=[exp.false()])


def _is_own(node: exp.Expr) -> bool:
    """Whether a node belongs to no SELECT inside."""
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        above = above.parent
    return above is None
