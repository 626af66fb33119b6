"""OVER: places of a row among rows of the same person, and values for released groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.measurement.releases.grids import Steps
from discreet.plan.analysis.key_dependencies import Decide, express_by_keys
from discreet.plan.analysis.relation_schema import is_part_of_id, is_whole_id
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.calls import NULL
from discreet.plan.model.nodes import ColumnRef, Expression, Literal, SortKey, WindowKind, columns, is_aggregate
from discreet.plan.model.relations import FineGrid, Window
from discreet.plan.model.types import Type
from discreet.plan.post.steps import NEIGHBOURS, PLACES, GroupWindow
from discreet.sql.clauses.select_parts import PLACE_KINDS, Subqueries
from discreet.sql.examples import clip_expression
from discreet.sql.functions import only, read
from discreet.sql.functions.aggregates import as_number
from discreet.sql.scope import AnswerScope, Scope

FARTHEST = 1000
"""How many rows LAG and LEAD may look away."""

_ALL = {"kind": "ROWS", "start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}
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
_KNOWN = "ROW_NUMBER, RANK, LAG, LEAD, FIRST_VALUE, COUNT, SUM, AVG, MIN or MAX"
_ORDERED = ("row_number", "rank", "dense_rank", "lag", "lead", "first", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowScope(Scope):
    """Columns of a row, and its places among the rows of the same person."""

    windows: list[Window] = field(default_factory=list)

    def window(self, node: exp.Window) -> Expression:
        """Returns the column of a window, made if it is new."""
        if self.schema.unit is None:
            self.refuse("OVER ranks one person's rows, but here no person has several.", "Leave it out: {count}.", node)
        ordered = self.read_order(node)
        whole = self._is_whole(node)
        made = replace(self._read_window(node.this), partition=self._partition(node), order=ordered)
        if made.kind in _ORDERED and not ordered:
            self.refuse(
                "What is first or next depends on an order.", "Add ORDER BY after PARTITION BY: {ranked}.", node
            )
        if made.kind == "last" and not whole:
            reason = "LAST_VALUE would be the value of the row itself, which is the last one so far."
            frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            self.refuse(reason, f"For the last of all rows write {frame} after ORDER BY: {{ranked}}.", node)
        if whole and made.kind not in _ORDERED:
            made = replace(made, order=())
        same = [known for known in self.windows if replace(known, name=made.name) == made]
        if not same:
            self.windows.append(made)
        return ColumnRef((same or [made])[0].name, made.type)

    def _partition(self, node: exp.Window) -> tuple[Expression, ...]:
        """Returns what rows are taken together by besides their id, which must be named."""
        given = [read(part, self.row) for part in node.args.get("partition_by") or []]
        if not self.ids(given):
            self.refuse(
                "A window over several people's rows would show one person's values in another's row.",
                "Put the id column into PARTITION BY: {ranked}.",
                node,
            )
        return tuple(part for part in given if not is_whole_id([part], self.schema))

    def ids(self, given: list[Expression]) -> list[Expression]:
        """Returns those of some expressions that say whose row it is; none if they do not say it."""
        single = [part for part in given if is_whole_id([part], self.schema)]
        parts = [part for part in given if is_part_of_id(part, self.schema)]
        return single or (parts if is_whole_id(parts, self.schema) else [])

    def read_order(self, node: exp.Expr) -> tuple[SortKey, ...]:
        """Returns what ORDER BY of a window or of a SELECT says."""
        order = node.args.get("order")
        if order is None:
            return ()
        only(order, self, "expressions")
        for term in order.expressions:
            only(term, self, "this", "desc", "nulls_first")
            if term.args.get("nulls_first"):
                self.refuse("NULL always sorts last.", "Leave NULLS FIRST out: {top}.", term)
        return tuple(SortKey(self._value(term.this), bool(term.args.get("desc"))) for term in order.expressions)

    def _is_whole(self, node: exp.Window) -> bool:
        """Returns whether a frame of all rows is written; without a frame it is as the module `relations` says."""
        spec = node.args.get("spec")
        if spec is None:
            return False
        if {name: part.upper() if isinstance(part, str) else part for name, part in spec.args.items() if part} != _ALL:
            hint = (
                "Leave it out, or write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING; "
                "both change the question: {ranked}."
            )
            self.refuse("This frame is not in the list.", hint, node)
        return True

    def _read_window(self, node: exp.Expr) -> Window:
        name = f"#w{len(self.windows)}"
        if type(node) in PLACE_KINDS:
            only(node, self)
            return Window(name=name, kind=PLACE_KINDS[type(node)], type=Type.INT)
        if type(node) not in VALUE_KINDS:
            reason = f"{node.key.upper()} is not supported for each row."
            self.refuse(reason, f"Use {_KNOWN}: {{ranked}}.", node)
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
        value = as_number(value)
        made = replace(made, argument=value)
        steps, fine = steps_of(self, value, node)
        result = Type.FLOAT if kind == "mean" else value.type
        return replace(made, type=result, exponent=steps.exponent, low=steps.low, high=steps.high, fine=fine)

    def _offset(self, node: exp.Expr) -> int:
        given = node.args.get("offset")
        found = Literal(1, Type.INT) if given is None else read(given, self.row)
        count = found.value if isinstance(found, Literal) and found.type is Type.INT else None
        if isinstance(count, int) and 1 <= count <= FARTHEST:
            return count
        return self.refuse(f"LAG and LEAD look 1 to {FARTHEST} rows away.", "Write the number out: {place}.", node)

    def _value(self, node: exp.Expr) -> Expression:
        found = read(node, self.row)
        if found is NULL:
            self.refuse("NULL is not a column.", "Name a column: {count}.", node)
        return found


def steps_of(scope: Scope, argument: Expression, node: exp.Expr) -> tuple[Steps, FineGrid | None]:
    """Returns what a sum of one person's values is known by, and the grid of real ones, which is finer.

    Raises:
        UnsupportedQuery: if what is added has no public bounds.
    """
    limits = bounds(argument, scope.schema) if argument.type.is_number else None
    if limits is None:
        written = (
            clip_expression(node.this.sql(dialect="duckdb"))
            if isinstance(node.this, exp.Expr)
            else clip_expression("x")
        )
        asked = scope.source.rewrite_query(node.this, written) if isinstance(node.this, exp.Expr) else None
        proposed = f": `{asked}`" if asked else f", as in {clip_expression('x')}: {{mean}}"
        scope.refuse(
            "A sum over one person's rows needs public bounds for the values it adds.",
            "Ask the steward to declare bounds, or clip to public limits that you expect all values to lie within"
            f"{proposed}.",
            node,
        )
    found = Steps.of(limits, argument.type)
    return found, None if argument.type is Type.INT else Steps.for_person_sums(limits).grid


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScope(AnswerScope):
    """Keys and aggregates, and values for groups; without groups there are no such values.

    Args:
        windows: those met so far.
        over_groups: whether rows are put together at all.
        keys: of the groups, as they are computed.
        public: what public tables say of their columns.
        blocks: the side questions, where there may be some.
    """

    windows: list[GroupWindow] = field(default_factory=list)
    over_groups: bool = False
    keys: Sequence[Expression] = ()
    public: Decide = lambda *_: None
    blocks: Subqueries | None = None

    def any_value(self, value: Expression, node: exp.Expr) -> Expression:
        """Returns the value that all rows of a group have, as the keys tell it."""
        found = express_by_keys(value, self.keys, self.public)
        return AnswerScope.any_value(self, value, node) if found is None else found

    def scalar(self, node: exp.Expr) -> Expression:
        """Returns the number of a side question."""
        return AnswerScope.scalar(self, node) if self.blocks is None else self.blocks.scalar(node)

    def window(self, node: exp.Window) -> Expression:
        """Returns the column of a window over groups, made if it is new."""
        if not self.over_groups:
            return AnswerScope.window(self, node)
        made = beside(node, replace(self, over_groups=False), is_aggregate)
        return find_or_add_window(made, self.windows)


def find_or_add_window(made: GroupWindow, windows: list[GroupWindow], before: int = 0) -> ColumnRef:
    """Returns the column of a window: of an equal one, or of its own."""
    same = [known for known in windows if replace(known, name="") == made]
    if not same:
        same = [replace(made, name=f"#w{before + len(windows)}")]
        windows.extend(same)
    return ColumnRef(same[0].name, made.type)


def beside(node: exp.Window, scope: Scope, noisy: Callable[[str], bool]) -> GroupWindow:
    """Reads a window over released groups, without a name.

    Args:
        node: the tree.
        scope: in which its parts are read; it refuses windows.
        noisy: whether a column depends on noise.
    """
    made = replace(_read_window(node.this, scope), partition=_partition(node, scope, noisy), order=_order(node, scope))
    rows = _rows(node, scope)
    if made.kind in PLACES:
        rows = None
    if made.kind in (*PLACES, *NEIGHBOURS) and not made.order:
        scope.refuse("What is first or next depends on an order.", "Add ORDER BY inside OVER: {place}.", node)
    if rows is not None and rows != (None, None) and not made.order:
        scope.refuse("Rows before and after depend on an order.", "Add ORDER BY inside OVER: {place}.", node)
    return replace(made, rows=rows)


def _partition(node: exp.Window, scope: Scope, noisy: Callable[[str], bool]) -> tuple[Expression, ...]:
    found = tuple(_value(part, scope) for part in node.args.get("partition_by") or [])
    if any(noisy(column.name) for part in found for column in columns(part)):
        reason = "PARTITION BY takes keys; noisy numbers are hardly ever equal."
        scope.refuse(reason, "Leave it out, or partition by a key: {place}.", node)
    return found


def _order(node: exp.Window, scope: Scope) -> tuple[SortKey, ...]:
    order = node.args.get("order")
    if order is None:
        return ()
    only(order, scope, "expressions")
    for term in order.expressions:
        only(term, scope, "this", "desc", "nulls_first")
        if term.args.get("nulls_first"):
            scope.refuse("NULL always sorts last.", "Leave NULLS FIRST out: {top}.", term)
    return tuple(SortKey(_value(term.this, scope), bool(term.args.get("desc"))) for term in order.expressions)


def _rows(node: exp.Window, scope: Scope) -> tuple[int | None, int | None] | None:
    """Returns the frame: so many rows before and after, None for all of them."""
    spec = node.args.get("spec")
    if spec is None:
        return None
    ends = [_end(spec.args.get(name), spec.args.get(f"{name}_side"), scope, node) for name in ("start", "end")]
    known = {"kind", "start", "start_side", "end", "end_side"}
    more = [name for name, part in spec.args.items() if part and name not in known]
    if str(spec.args.get("kind")).upper() != "ROWS" or more or ends[0] == _NEVER or ends[1] == -_NEVER:
        hint = (
            "Leave it out, or write for example ROWS BETWEEN 2 PRECEDING AND CURRENT ROW; "
            "both change the question: {place}."
        )
        scope.refuse("This frame is not in the list.", hint, node)
    before, after = ends
    return None if before == -_NEVER else -before, None if after == _NEVER else after


_NEVER = FARTHEST + 1


def _end(given: object, side: object, scope: Scope, node: exp.Expr) -> int:
    """Returns an end of a frame, counted from the row itself."""
    sign = -1 if str(side).upper() == "PRECEDING" else 1
    if given is None or given == "CURRENT ROW":
        return 0
    if given == "UNBOUNDED":
        return sign * _NEVER
    found = read(given, scope) if isinstance(given, exp.Expr) else None
    count = found.value if isinstance(found, Literal) and found.type is Type.INT else None
    if not isinstance(count, int) or not 0 <= count <= FARTHEST:
        scope.refuse(f"A frame looks 0 to {FARTHEST} rows away.", "Write the number out: {place}.", node)
    return sign * count


def _read_window(node: exp.Expr, scope: Scope) -> GroupWindow:
    if type(node) in PLACE_KINDS:
        only(node, scope)
        return GroupWindow(name="", kind=PLACE_KINDS[type(node)], type=Type.INT)
    if type(node) not in VALUE_KINDS:
        reason = f"{node.key.upper()} is not supported for each group."
        scope.refuse(reason, f"Use {_KNOWN}: {{place}}.", node)
    only(node, scope, "this", "offset", "big_int")
    kind = VALUE_KINDS[type(node)]
    if node.this is None or isinstance(node.this, exp.Star):
        return GroupWindow(name="", kind="count", type=Type.INT)
    return _of_value(kind, _value(node.this, scope), node, scope)


def _of_value(kind: WindowKind, value: Expression, node: exp.Expr, scope: Scope) -> GroupWindow:
    value = as_number(value) if kind in ("sum", "mean") else value
    if kind in ("sum", "mean") and not value.type.is_number:
        scope.refuse(f"SUM and AVG do not take {value.type.value}.", "Count instead: {place}.", node)
    result = Type.INT if kind == "count_values" else Type.FLOAT if kind == "mean" else value.type
    made = GroupWindow(name="", kind=kind, type=result, argument=value)
    return replace(made, offset=_offset(node, scope)) if kind in ("lag", "lead") else made


def _offset(node: exp.Expr, scope: Scope) -> int:
    given = node.args.get("offset")
    found = Literal(1, Type.INT) if given is None else read(given, scope)
    count = found.value if isinstance(found, Literal) and found.type is Type.INT else None
    if isinstance(count, int) and 1 <= count <= FARTHEST:
        return count
    return scope.refuse(f"LAG and LEAD look 1 to {FARTHEST} rows away.", "Write the number out: {place}.", node)


def _value(node: exp.Expr, scope: Scope) -> Expression:
    found = read(node, scope)
    if found is NULL:
        scope.refuse("NULL is not a column.", "Name a column: {place}.", node)
    return found
