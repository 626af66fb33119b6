"""OVER: places of a row among rows of the same person, read from the text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from discreet.measurement.aggregates.steps import Steps
from discreet.plan.analysis.relation_schema import is_part_of_id, is_whole_id
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.calls import NULL
from discreet.plan.model.nodes import Column, Expression, Literal, Order, WindowKind
from discreet.plan.model.relations import FineGrid, Window
from discreet.plan.model.types import Type
from discreet.sql.functions.reader import only, read
from discreet.sql.scope import Scope

FARTHEST = 1000
"""How many rows LAG and LEAD may look away."""

_ALL = {"kind": "ROWS", "start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}
PLACE_KINDS: dict[type[exp.Expr], WindowKind] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}
VALUE_KINDS: dict[type[exp.Expr], WindowKind] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first",
    exp.LastValue: "last",
    exp.Count: "count_values",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
}
_ORDERED = ("row_number", "rank", "dense_rank", "lag", "lead", "first", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowScope(Scope):
    """Columns of a row, and its places among the rows of the same person."""

    windows: list[Window] = field(default_factory=list)

    def window(self, node: exp.Window) -> Expression:
        """The column of a window, made if it is new."""
        if self.schema.unit is None:
            self.refuse("OVER ranks one person's rows, and here nobody has several.", "Leave it out: {count}.", node)
        ordered = self._order(node)
        whole = self._is_whole(node)
        made = replace(self._asked(node.this), partition=self._partition(node), order=ordered)
        if made.kind in _ORDERED and not ordered:
            self.refuse("What is first or next depends on an order.", "Add ORDER BY after PARTITION BY.", node)
        if made.kind == "last" and not whole:
            reason = "LAST_VALUE would be that of the row itself: so far, it is the last."
            self.refuse(reason, "Take FIRST_VALUE in descending order.", node)
        if whole and made.kind not in _ORDERED:
            made = replace(made, order=())
        same = [known for known in self.windows if replace(known, name=made.name) == made]
        if not same:
            self.windows.append(made)
        return Column((same or [made])[0].name, made.type)

    def _partition(self, node: exp.Window) -> tuple[Expression, ...]:
        """What rows are taken together by, beside whose they are, which must be told."""
        given = [read(part, self.row) for part in node.args.get("partition_by") or []]
        ids = [part for part in given if part in self._ids(given)]
        if not ids:
            self.refuse(
                "A window over several people's rows would tell one about another.",
                "Put the column of ids into PARTITION BY.",
                node,
            )
        return tuple(part for part in given if not is_whole_id([part], self.schema))

    def _ids(self, given: list[Expression]) -> list[Expression]:
        """Those of some expressions that say whose row it is."""
        single = [part for part in given if is_whole_id([part], self.schema)]
        parts = [part for part in given if is_part_of_id(part, self.schema)]
        return single or (parts if is_whole_id(parts, self.schema) else [])

    def _order(self, node: exp.Window) -> tuple[Order, ...]:
        order = node.args.get("order")
        if order is None:
            return ()
        only(order, self, "expressions")
        for term in order.expressions:
            only(term, self, "this", "desc", "nulls_first")
            if term.args.get("nulls_first"):
                self.refuse("NULL always sorts last.", "Leave NULLS FIRST out: {top}.", term)
        return tuple(Order(self._value(term.this), bool(term.args.get("desc"))) for term in order.expressions)

    def _is_whole(self, node: exp.Window) -> bool:
        """Whether a frame of all rows is written; without a frame it is as the module `relations` says."""
        spec = node.args.get("spec")
        if spec is None:
            return False
        if {name: part.upper() if isinstance(part, str) else part for name, part in spec.args.items() if part} != _ALL:
            hint = "Leave it out, or write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING."
            self.refuse("This frame is not in the list.", hint, node)
        return True

    def _asked(self, node: exp.Expr) -> Window:
        name = f"#w{len(self.windows)}"
        if type(node) in PLACE_KINDS:
            only(node, self)
            return Window(name=name, kind=PLACE_KINDS[type(node)], type=Type.INT)
        if type(node) not in VALUE_KINDS:
            reason = f"{node.key.upper()} is not answered beside a row."
            self.refuse(reason, "Use ROW_NUMBER, RANK, LAG, LEAD, FIRST_VALUE, COUNT, SUM, AVG, MIN or MAX.", node)
        only(node, self, "this", "offset", "big_int")
        if node.this is None or isinstance(node.this, exp.Star):
            return Window(name=name, kind="count", type=Type.INT)
        return self._of_value(name, VALUE_KINDS[type(node)], self._value(node.this), node)

    def _of_value(self, name: str, kind: WindowKind, value: Expression, node: exp.Expr) -> Window:
        made = Window(name=name, kind=kind, type=value.type, argument=value)
        if kind == "count_values":
            return replace(made, type=Type.INT)
        if kind in ("lag", "lead"):
            return replace(made, offset=self._offset(node))
        if kind not in ("sum", "mean"):
            return made
        steps, fine = steps_of(self, value, node)
        result = Type.FLOAT if kind == "mean" else value.type
        return replace(made, type=result, exponent=steps.exponent, low=steps.low, high=steps.high, fine=fine)

    def _offset(self, node: exp.Expr) -> int:
        given = node.args.get("offset")
        found = Literal(1, Type.INT) if given is None else read(given, self.row)
        count = found.value if isinstance(found, Literal) and found.type is Type.INT else None
        if isinstance(count, int) and 1 <= count <= FARTHEST:
            return count
        return self.refuse(f"LAG and LEAD look 1 to {FARTHEST} rows away.", "Write the number out.", node)

    def _value(self, node: exp.Expr) -> Expression:
        found = read(node, self.row)
        if found is NULL:
            self.refuse("NULL has no place among rows.", "Name a column: {count}.", node)
        return found


def steps_of(scope: Scope, argument: Expression, node: exp.Expr) -> tuple[Steps, FineGrid | None]:
    """What a sum of one person's values is known by, and the grid of real ones, which is finer.

    Raises:
        UnsupportedQuery: if what is added has no public bounds.
    """
    limits = bounds(argument, scope.schema) if argument.type.is_number else None
    if limits is None:
        scope.refuse(
            "A sum over one person's rows needs public bounds of what is added.",
            "Declare bounds, or clip with GREATEST and LEAST: {mean}.",
            node,
        )
    found = Steps.of(limits, argument.type)
    return found, None if argument.type is Type.INT else Steps.folded(limits).grid
