"""The parts of a SELECT: its columns with their names, quantiles by a list, what GROUP BY lists, questions inside it.

Columns keep the names that the author gave, or get readable ones. QUANTILE_CONT(x, [0.25, 0.5, 0.75]) is a column for
each share. GROUP BY lists keys, ALL of them, or with ROLLUP, CUBE and GROUPING SETS several groupings of the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import reduce, singledispatch
from itertools import chain, combinations, product

from sqlglot import exp

from discreet import check
from discreet.dataclass import dataclass
from discreet.measurement.aggregates import AGGREGATIONS
from discreet.plan.expressions.calls import NULL, call
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, FunctionCall, Output, Question, WindowKind
from discreet.plan.model.types import Type
from discreet.plan.post.steps import AttachQuestion
from discreet.sql.refusals import SqlSource

RESERVED_ENDS = ("_low", "_high")
"""Ends of the names of interval columns; no other column of an answer may have them."""

_SHORT = {
    "coalesce": "",
    "to_int": "",
    "round_to_int": "",
    "to_float": "",
    "to_text": "",
    "to_date": "date",
    "absolute": "abs",
    "day_of_week": "isodow",
    "upper_case": "upper",
    "lower_case": "lower",
    "strip": "trim",
    "strip_left": "trim_left",
    "strip_right": "trim_right",
}
_OPERATORS = {"add", "subtract", "multiply", "divide", "integer_divide", "modulo", "negate", "if"}


@dataclass(frozen=True, slots=True)
class QueryFragment:
    """A part of a question, the text it is in, and the name it is given."""

    node: exp.Expr
    source: SqlSource
    name: str | None = None


def require_type(expression: Expression, piece: QueryFragment) -> Expression:
    """Returns the expression, unless it is a NULL without a type."""
    if expression is NULL:
        piece.source.refuse("NULL has no type here.", "Leave it out, or write CAST(NULL AS INT): {count}.", piece.node)
    return expression


def truth(expression: Expression, clause: str, piece: QueryFragment) -> Expression:
    """Returns the expression, if it is a condition."""
    if expression.type is not Type.BOOL:
        reason = f"{clause} takes a condition, not {expression.type.value}."
        piece.source.refuse(reason, "Compare it with something: {filtered}.", piece.node)
    return expression


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """Returns one condition that holds if all do, as AND writes it; None for none."""
    return reduce(lambda one, other: call("and", one, other), conditions) if conditions else None


def may_be_shown(name: str) -> bool:
    """Returns whether a column of an answer may have this name; it is printed, so it must not steer a terminal."""
    own = name.startswith("#") or name.casefold().endswith(RESERVED_ENDS)
    return bool(name.strip()) and not own and not any(map(check.steers, name))


def readable(expression: Expression, aggregates: Mapping[str, Aggregate]) -> str:
    """Makes a name for a column of the answer that the author did not name.

    >>> from discreet.plan.model.types import Type
    >>> charge = ColumnRef("charge", Type.FLOAT)
    >>> made = {"#1": Aggregate(name="#1", kind="mean", argument=charge)}
    >>> readable(ColumnRef("#1", Type.FLOAT), made)
    'avg_charge'
    """
    return _name(expression, aggregates) or "value"


@singledispatch
def _name(expression: Expression, aggregates: Mapping[str, Aggregate]) -> str:
    del expression, aggregates
    return ""


@_name.register
def _(expression: ColumnRef, aggregates: Mapping[str, Aggregate]) -> str:
    if expression.name.startswith("#grouping"):
        return "grouping"
    made = aggregates.get(expression.name)
    if made is None:
        return "" if expression.name.startswith("#") else expression.name
    about = [part for part in (made.argument, made.other) if part is not None]
    return _join_names(_prefix(made), *(_name(part, aggregates) for part in about))


@_name.register
def _(expression: FunctionCall, aggregates: Mapping[str, Aggregate]) -> str:
    if expression.function in _OPERATORS:
        return ""
    own = _SHORT.get(expression.function, expression.function)
    return _join_names(own, _name(expression.arguments[0], aggregates))


def _prefix(made: Aggregate) -> str:
    if made.quantile is None:  # a place among groups is no aggregate
        return AGGREGATIONS[made.kind].word.lower() if made.kind in AGGREGATIONS else made.kind
    return "median" if made.quantile == Fraction(1, 2) else f"p{percent(made.quantile)}"


def percent(share: Fraction) -> str:
    """Writes a share in per cent, as a part of a name.

    >>> percent(Fraction(1, 4)), percent(Fraction("0.999"))
    ('25', '99_9')
    """
    return f"{float(100 * share):g}".replace(".", "_")


def _join_names(*parts: str) -> str:
    return "_".join(part for part in parts if part)


def distinct(name: str, taken: Iterable[str]) -> str:
    """Returns the name, with a number if another column has it.

    >>> distinct("count", ["count", "Count_2"])
    'count_3'
    """
    used = {other.casefold() for other in taken}
    candidates = [name, *(f"{name}_{i}" for i in range(2, len(used) + 3))]
    return next(candidate for candidate in candidates if candidate.casefold() not in used)


_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Quantile: ("quantile",),
    exp.ApproxQuantile: ("quantile",),
    exp.PercentileCont: ("expression", "this"),
    exp.PercentileDisc: ("expression", "this"),
}
"""Where the list is: PERCENTILE_CONT also takes it alone, before WITHIN GROUP."""


def each(node: exp.Expr, name: str | None) -> list[tuple[exp.Expr, str | None]]:
    """Returns an output with its name, or if it asks for several quantiles, an output for each of them.

    With a name, theirs are that name and the quantile in per cent.

    >>> import sqlglot
    >>> asked = sqlglot.parse_one("QUANTILE_CONT(x, [0.25, 0.999])", dialect="duckdb")
    >>> [(one.sql(), name) for one, name in each(asked, "q")]
    [('PERCENTILE_CONT(x, 0.25)', 'q_p25'), ('PERCENTILE_CONT(x, 0.999)', 'q_p99_9')]
    """
    shares = _shares(node)
    if shares is None:
        return [(node, name)]
    return [
        (_with(node, share), None if name is None else f"{name}_p{percent(Fraction(share.name))}") for share in shares
    ]


def _holder(node: exp.Expr) -> tuple[exp.Expr, str] | None:
    """Returns the quantile whose shares are a list, and the name of the part that they are."""
    inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    found = (part for part in _PARTS.get(type(inner), ()) if isinstance(inner.args.get(part), exp.Array))
    part = next(found, None)
    return None if part is None else (inner, part)


def _shares(node: exp.Expr) -> list[exp.Literal] | None:
    """Returns the numbers of the list; None if there is no list of numbers, which the reader refuses then."""
    held = _holder(node)
    listed = [] if held is None else held[0].args[held[1]].expressions
    numbers = [share for share in listed if isinstance(share, exp.Literal) and not share.is_string]
    return numbers if numbers and len(numbers) == len(listed) else None


def _with(node: exp.Expr, share: exp.Literal) -> exp.Expr:
    made = node.copy()
    held = _holder(made)
    if held is not None:
        held[0].set(held[1], share.copy())
    return made


PLACE_KINDS: dict[type[exp.Expr], WindowKind] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}
"""Windows that tell the place of a row; the parser takes them for aggregates."""

MOST_SETS = 32

Set = tuple[exp.Expr, ...]


def puts_together(node: exp.Expr) -> bool:
    """Returns whether a part of a SELECT puts rows together; a window for each row does not."""
    found = node.find_all(exp.AggFunc)
    own = (part for part in found if not isinstance(part, tuple(PLACE_KINDS)) and not _is_inside(part, node))
    return any(not isinstance(part.parent, exp.Window) for part in own)


def _is_inside(part: exp.Expr, node: exp.Expr) -> bool:
    """Returns whether a part belongs to a SELECT inside a node."""
    around = part.parent
    while around is not None and around is not node.parent:
        if isinstance(around, exp.Query):
            return True
        around = around.parent
    return False


def keys_of(tree: exp.Select) -> list[exp.Expr]:
    """Returns what GROUP BY lists; ALL means every output that reads columns and holds no aggregate."""
    group = tree.args.get("group")
    if group is None or not group.args.get("all"):
        return [] if group is None else list(group.expressions)
    outputs = [output.unalias() for output in tree.expressions]
    return [node for node in outputs if node.find(exp.Column) is not None and node.find(exp.AggFunc) is None]


def groupings(nodes: Sequence[exp.Expr], source: SqlSource) -> tuple[list[exp.Expr], list[tuple[int, ...]]]:
    """Returns what rows are grouped by, and for each of several groupings the places of its keys.

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


def _check(count: int, node: exp.Expr, source: SqlSource) -> None:
    if count > MOST_SETS:
        reason = f"The question has more than {MOST_SETS} groupings, and its budget would be shared among them."
        source.refuse(reason, "Ask for fewer: {grouped}.", node)


def _sets(node: exp.Expr, source: SqlSource) -> list[Set]:
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
    """Returns the keys of a list in brackets, or the one."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


_AFTER_ROWS = ("group", "having", "qualify", "order", "limit", "offset")


def histogram(tree: exp.Select) -> exp.Anonymous | None:
    """Returns the HISTOGRAM that a SELECT consists of; None if it is another SELECT."""
    shown = [node.unalias() for node in tree.expressions]
    clauses = [name for name in _AFTER_ROWS if tree.args.get(name) is not None]
    if len(shown) != 1 or clauses or not isinstance(shown[0], exp.Anonymous):
        return None
    return shown[0] if shown[0].name.upper() == "HISTOGRAM" else None


def kept_rows(tree: exp.Expr, source: SqlSource) -> tuple[int | None, int]:
    """Returns how many rows of the answer are kept, None for all, and how many are passed over before.

    Raises:
        UnsupportedQuery: if LIMIT, FETCH FIRST or OFFSET takes anything but a whole number.
    """
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    passed = 0 if offset is None else _whole(offset.args.get("expression"), "OFFSET", offset, source)
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            reason = "FETCH FIRST takes a number of rows, then ONLY: ties and shares of noisy rows depend on chance."
            source.refuse(reason, "For example {top}.", limit)
        count = limit.args.get("count")
        return 1 if count is None else _whole(count, "FETCH FIRST", limit, source), passed
    if limit is None:
        return None, passed
    if any(part for name, part in limit.args.items() if name != "expression"):
        source.refuse("LIMIT takes a whole number.", "For example {top}.", limit)
    return _whole(limit.args.get("expression"), "LIMIT", limit, source), passed


def _whole(node: exp.Expr | None, word: str, at: exp.Expr, source: SqlSource) -> int:
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdecimal() or len(node.name) > 9:
        source.refuse(f"{word} takes a whole number.", "For example {top}.", at)
    return int(node.name)


MOST_BLOCKS = 8
"""Questions that may share one budget."""


@dataclass(frozen=True, slots=True)
class Subqueries:
    """The side questions of one, as they are met.

    Args:
        source: the text, for positions.
        read: the plan of a SELECT.
        found: those met so far.
        before: how many there were already.
    """

    source: SqlSource
    read: Callable[[exp.Expr], Question]
    found: list[Question] = field(default_factory=list)
    before: int = 0

    def scalar(self, node: exp.Expr) -> ColumnRef:
        """Returns the column of a SELECT of one number, made if it is new."""
        block = self.read(node.this)
        if len(block.outputs) != 1 or block.keys:
            hint = "Leave GROUP BY out, or join it by its keys as a name of WITH: {count}."
            self.source.refuse("A SELECT inside an expression must return one number.", hint, node)
        place = self.place(block, node)
        return ColumnRef(f"#b{place}", block.outputs[0].expression.type)

    def place(self, block: Question, node: exp.Expr) -> int:
        """Returns the place of a question among the side questions."""
        if block != replace(block, steps=(), beside=(), having=None, order=(), limit=None, offset=0):
            reason = "A question inside another one counts and groups, and does nothing more."
            self.source.refuse(reason, "Filter, sort and rank in the outer SELECT: {grouped}.", node)
        if block not in self.found:
            self.found.append(block)
        if self.before + len(self.found) >= MOST_BLOCKS:
            hint = "Ask them one by one: {count}."
            self.source.refuse(f"More than {MOST_BLOCKS} questions would share one budget.", hint, node)
        return self.before + self.found.index(block)

    def attachment_steps(self) -> list[AttachQuestion]:
        """Returns the steps that attach the numbers of SELECTs in brackets."""
        return [attach_number(self.before + i, block) for i, block in enumerate(self.found) if not block.keys]


def attach_number(place: int, block: Question) -> AttachQuestion:
    """Returns the step that attaches the only number of a side question."""
    (output,) = block.outputs
    return AttachQuestion(place, (Output(f"#b{place}", ColumnRef(output.name, output.expression.type)),))


def columns_of(place: int, block: Question) -> dict[str, ColumnRef]:
    """Returns the columns that the outputs of a joined question become."""
    return {output.name: ColumnRef(f"#b{place}_{i}", output.expression.type) for i, output in enumerate(block.outputs)}


def attach_groups(place: int, block: Question, on: Sequence[tuple[object, str]], *, outer: bool) -> AttachQuestion:
    """Returns the step that attaches the outputs of a side question to groups of equal keys."""
    types = {output.name: output.expression.type for output in block.outputs}
    columns = tuple(
        Output(column.name, ColumnRef(name, types[name])) for name, column in columns_of(place, block).items()
    )
    return AttachQuestion(place, columns, tuple(on), outer)  # type: ignore[arg-type]


def with_repeats(tree: exp.Select) -> exp.Select:
    """Removes DISTINCT, which changes nothing inside IN and EXISTS."""
    distinct = tree.args.get("distinct")
    if not isinstance(distinct, exp.Distinct) or distinct.args.get("on") is not None:
        return tree
    found = tree.copy()
    found.set("distinct", None)
    return found
