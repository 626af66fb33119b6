"""A SELECT over released SELECTs: filters, windows, aggregates and joins of their columns, all post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.measurement.aggregates import aggregation
from discreet.plan.model.nodes import (
    ColumnRef,
    Expression,
    Output,
    PostProcessingStep,
    Question,
    SortKey,
    columns,
    substitute,
)
from discreet.plan.model.types import Type
from discreet.plan.post.steps import (
    AttachQuestion,
    FilterGroups,
    GatherKind,
    GroupAggregate,
    GroupWindow,
    GroupWindows,
    Regroup,
    columns_as_aggregates,
    made_columns,
    noisy_columns,
    with_parts,
)
from discreet.sql.clauses.assembly import name_outputs, number, tidy
from discreet.sql.clauses.select_parts import (
    QueryFragment,
    Subqueries,
    attach_groups,
    attach_number,
    columns_of,
    conjunction,
    puts_together,
    require_type,
    truth,
)
from discreet.sql.clauses.window_clause import beside, find_or_add_window
from discreet.sql.examples import quote_name
from discreet.sql.functions import only, read
from discreet.sql.scope import Scope, lookup, near, same

_KINDS: dict[str, GatherKind] = {
    "count": "count",
    "count_values": "count_values",
    "sum": "sum",
    "mean": "mean",
    "min": "min",
    "max": "max",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterScope(Scope):
    """The columns of an answer: the scope of a SELECT over another.

    Args:
        released: what its columns are, by name; those of joined SELECTs among them.
        tables: for each SELECT, by its alias, what its columns are.
        blocks: the side questions, where their numbers are allowed.
        named: the outputs by name, which come first where they may be named.
        noisy: the columns of the inner question that depend on noise.
        before: how many columns its steps have made.
        folds: aggregates of columns met so far; None where none may stand.
        windows: windows over groups met so far; None where none may stand.
    """

    released: Mapping[str, Expression] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Expression]] = field(default_factory=dict)
    blocks: Subqueries | None = None
    named: Mapping[str, Expression] = field(default_factory=dict)
    noisy: frozenset[str] = frozenset()
    before: int = 0
    folds: list[GroupAggregate] | None = None
    windows: list[GroupWindow] | None = None

    @property
    def row(self) -> Scope:
        """Returns the scope inside an aggregate of aggregates."""
        return replace(self, named={}, folds=None, windows=None)

    def column(self, node: exp.Column) -> Expression:
        """Returns the expression that a column of the inner SELECT means."""
        found = self._of_table(node) if node.table else lookup(node.name, self.named) or self._only(node)
        if found is None:
            reason = f"The inner SELECT has no column '{node.name[:60]}'."
            self.refuse(reason, near(node, self.released, self.source), node)
        return found

    def _of_table(self, node: exp.Column) -> Expression | None:
        given = lookup(node.table, self.tables)
        if given is None or node.args.get("db") or node.args.get("catalog"):
            hint = "Leave the prefix out: {count}."
            self.refuse(f"'{node.table[:60]}' is not a table of this question.", hint, node)
        return lookup(node.name, given)

    def _only(self, node: exp.Column) -> Expression | None:
        """Returns what a name means in the only SELECT that has it, or in those that are joined by it."""
        found = [part for names in self.tables.values() if (part := lookup(node.name, names)) is not None]
        if len(found) > 1 and lookup(node.name, self.released) is None:
            aliases = " or ".join(quote_name(alias) for alias in self.tables)
            self.refuse(
                f"Several SELECTs have a column '{node.name[:60]}'.",
                f"Write one of {aliases} before it; for example {{grouped}}.",
                node,
            )
        return lookup(node.name, self.released)

    def scalar(self, node: exp.Expr) -> Expression:
        """Returns the number of a side question."""
        return Scope.scalar(self, node) if self.blocks is None else self.blocks.scalar(node)

    def aggregate(
        self,
        kind: str,
        argument: Expression | None,
        node: exp.Expr,
        *,
        other: Expression | None = None,
        share: Fraction | None = None,
        written: exp.Expr | None = None,
    ) -> Expression:
        """Returns an aggregate of released values."""
        del share, written
        if self.folds is None:
            reason = "An aggregate is not allowed inside WHERE, GROUP BY or another aggregate."
            self.refuse(reason, "Filter groups with HAVING: {kept}.", node)
        if kind not in _KINDS and aggregation(kind).drawn:
            return Scope.aggregate(self, kind, argument, node)
        if kind not in _KINDS or other is not None:
            hint = "Use COUNT, SUM, AVG, MIN or MAX, or ask for the groups: {grouped}."
            self.refuse("This cannot be computed from released numbers.", hint, node)
        if kind in ("sum", "mean") and argument is not None and not argument.type.is_number:
            self.refuse(f"SUM and AVG do not take {argument.type.value}.", "Count instead: {grouped}.", node)
        result = Type.INT if argument is None or kind.startswith("count") else argument.type
        asked = GroupAggregate(
            name="", kind=_KINDS[kind], type=Type.FLOAT if kind == "mean" else result, argument=argument
        )
        return self._fold_column(asked, self.folds)

    def any_value(self, value: Expression, node: exp.Expr) -> Expression:
        """Returns the value of the first group that has one."""
        if self.folds is None:
            return Scope.any_value(self, value, node)
        return self._fold_column(GroupAggregate(name="", kind="any", type=value.type, argument=value), self.folds)

    def _fold_column(self, asked: GroupAggregate, folds: list[GroupAggregate]) -> ColumnRef:
        """Returns the column of an aggregate, made if it is new."""
        same = [known for known in folds if replace(known, name="") == asked]
        if not same:
            same = [replace(asked, name=f"#f{self.before + len(folds)}")]
            folds.extend(same)
        return ColumnRef(same[0].name, asked.type)

    def window(self, node: exp.Window) -> Expression:
        """Returns the column of a window over groups."""
        if self.windows is None:
            hint = "Rank in one SELECT, and filter in another around it: {grouped}."
            self.refuse("OVER is allowed in SELECT and ORDER BY, but not in another OVER.", hint, node)
        fresh = {fold.name for fold in self.folds or []}
        found = beside(node, replace(self, windows=None), lambda name: name in self.noisy or name in fresh)
        return find_or_add_window(found, self.windows, self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterSelectParts:
    """A SELECT over another, in trees: as `assembly.QuestionParts`, but about released columns."""

    outputs: Sequence[QueryFragment]
    where: Sequence[QueryFragment] = ()
    keys: Sequence[QueryFragment] | None = None
    having: Sequence[QueryFragment] = ()
    qualify: Sequence[QueryFragment] = ()
    order: Sequence[tuple[QueryFragment, bool]] = ()
    limit: int | None = None
    offset: int = 0


def over(
    asking: Question, parts: OuterSelectParts, scope: OuterScope, others: Sequence[AttachQuestion] = ()
) -> Question:
    """Puts a SELECT over a question, and others that are joined to its groups.

    Raises:
        UnsupportedQuery: if a part is not understood, or what is aggregated has columns that are no keys.
    """
    return _Outer(asking, parts, scope, others).question()


class _Outer:
    """Reads the parts of one SELECT over released columns."""

    def __init__(
        self, asking: Question, parts: OuterSelectParts, scope: OuterScope, others: Sequence[AttachQuestion]
    ) -> None:
        self.joined = others
        nodes = [*parts.outputs, *parts.having, *parts.qualify, *(piece for piece, _ in parts.order)]
        self.is_aggregated = parts.keys is not None or any(puts_together(piece.node) for piece in nodes)
        self.asking, self.parts, self.pieces = asking, parts, [_keep_name(piece, scope) for piece in parts.outputs]
        columns_made = len(list(made_columns(asking.steps)))
        blocks = () if scope.blocks is None else tuple(scope.blocks.found)
        wider = replace(asking, steps=(*asking.steps, *others), beside=(*asking.beside, *blocks))
        self.plain = replace(scope, noisy=noisy_columns(wider), before=columns_made)
        self.scope = replace(self.plain, folds=[] if self.is_aggregated else None, windows=[])
        self.known: dict[Expression, Expression] = {}

    def question(self) -> Question:
        """Returns the steps that the SELECT adds, and its outputs."""
        kept_ones = conjunction([truth(read(p.node, self.plain), "WHERE", p) for p in self.parts.where])
        keys = self._keys()
        raw = [require_type(read(piece.node, self.scope), piece) for piece in self.pieces]
        found = [self._of_groups(part, piece) for part, piece in zip(raw, self.pieces, strict=True)]
        shown = replace(self.scope, named=self._expressions_by_name(raw))
        having = [
            self._of_groups(truth(read(piece.node, replace(shown, windows=None)), "HAVING", piece), piece)
            for piece in self.parts.having
        ]
        order = [SortKey(self._resolve_order_key(piece, shown, found), down) for piece, down in self.parts.order]
        qualify = [
            self._of_groups(truth(read(piece.node, shown), "QUALIFY", piece), piece) for piece in self.parts.qualify
        ]
        asking, steps = self._apply_filter(kept_ones)
        if self.is_aggregated:
            steps += [Regroup(tuple(keys), tuple(self.scope.folds or ())), *self._numbers]
        if (condition := conjunction(having)) is not None:
            steps.append(FilterGroups(condition))
        if self.scope.windows:
            steps.append(GroupWindows(tuple(self._window(window) for window in self.scope.windows)))
        if (condition := conjunction(qualify)) is not None:
            steps.append(FilterGroups(condition))
        names = name_outputs(self.pieces, found, [*asking.aggregates, *columns_as_aggregates(steps)])
        made_of = replace(asking, outputs=tuple(map(Output, names, found)), order=tuple(order), steps=tuple(steps))
        return tidy(replace(made_of, limit=self.parts.limit, offset=self.parts.offset), self.pieces[0])

    @property
    def _numbers(self) -> list[AttachQuestion]:
        """Returns what attaches the numbers of side questions."""
        return [] if self.plain.blocks is None else self.plain.blocks.attachment_steps()

    def _apply_filter(self, condition: Expression | None) -> tuple[Question, list[PostProcessingStep]]:
        """Applies WHERE as a filter of groups, like HAVING, unless something was done to them already."""
        blocks = () if self.plain.blocks is None else tuple(self.plain.blocks.found)
        asking = replace(self.asking, beside=(*self.asking.beside, *blocks))
        steps: list[PostProcessingStep] = [*asking.steps, *self.joined, *self._numbers]
        if condition is None:
            return asking, steps
        if steps:
            return asking, [*steps, FilterGroups(condition)]
        having = [asking.having, condition] if asking.having is not None else [condition]
        return replace(asking, having=conjunction(having)), []

    def _keys(self) -> list[Output]:
        keys: list[Output] = []
        for piece in self.parts.keys or ():
            expression = require_type(read(self._resolve_piece(piece).node, self.plain), piece)
            if any(column.name in self.plain.noisy for column in columns(expression)):
                hint = "Group by keys, and filter numbers in WHERE: {grouped}."
                piece.source.refuse("Groups of noisy numbers would be made by the noise.", hint, piece.node)
            if expression not in self.known:
                name = f"#g{self.plain.before + len(keys)}"
                self.known[expression] = ColumnRef(name, expression.type)
                keys.append(Output(name, expression))
        return keys

    def _resolve_piece(self, piece: QueryFragment) -> QueryFragment:
        place = number(piece, len(self.pieces))
        if place is not None:
            return self.pieces[place]
        node = piece.node
        if isinstance(node, exp.Column) and not node.table and lookup(node.name, self.plain.released) is None:
            return lookup(node.name, {output.name: output for output in self.pieces if output.name}) or piece
        return piece

    def _of_groups(self, expression: Expression, piece: QueryFragment) -> Expression:
        """Returns the expression over what is there after grouping: keys, aggregates and windows."""
        if not self.is_aggregated:
            return expression
        fresh = {fold.name for fold in self.scope.folds or []} | {w.name for w in self.scope.windows or []}
        numbers = {part.name for step in self._numbers for part in step.columns}

        def other(column: ColumnRef) -> Expression:
            if column.name in fresh or column.name in numbers:
                return column
            reason = "A column is neither a key nor inside an aggregate."
            return piece.source.refuse(reason, "Group by it as well, or aggregate it: {grouped}.", piece.node)

        return substitute(expression, self.known, other)

    def _window(self, window: GroupWindow) -> GroupWindow:
        return with_parts(window, lambda part: self._of_groups(part, self.pieces[0]))

    def _expressions_by_name(self, raw: Sequence[Expression]) -> dict[str, Expression]:
        return {piece.name: found for piece, found in zip(self.pieces, raw, strict=True) if piece.name}

    def _resolve_order_key(self, piece: QueryFragment, shown: OuterScope, found: Sequence[Expression]) -> Expression:
        place = number(piece, len(found))
        if place is not None:
            return found[place]
        return self._of_groups(require_type(read(piece.node, shown), piece), piece)


def _keep_name(part: QueryFragment, scope: OuterScope) -> QueryFragment:
    """Keeps the name of a column of the inner SELECT."""
    if part.name or not isinstance(part.node, exp.Column):
        return part
    names = {name: name for known in (scope.released, *scope.tables.values()) for name in known}
    return replace(part, name=lookup(part.node.name, names))


def everything(nodes: Sequence[exp.Expr], scope: OuterScope) -> list[exp.Expr]:
    """Returns what is selected, with the columns of the only SELECT inside in the place of *."""
    listed = [exp.column(name, quoted=True) for name in scope.released] if len(scope.tables) == 1 else []
    found: list[exp.Expr] = []
    for node in nodes:
        star = isinstance(node, exp.Star) and not any(node.args.values())
        found += listed if star and listed else [node]
    return found


def of_numbers(blocks: Sequence[Question], pieces: Sequence[QueryFragment], found: Sequence[Expression]) -> Question:
    """Computes from the numbers of several questions: the first one, with the others as its side questions.

    Args:
        blocks: the questions, of one number each.
        pieces: the outputs.
        found: what they are, the numbers as columns #b0, #b1 and so on.
    """
    main, *others = blocks
    known: dict[Expression, Expression] = {}
    for place, block in enumerate(blocks):
        kind = block.outputs[0].expression.type
        known[ColumnRef(f"#b{place}", kind)] = (
            main.outputs[0].expression if place == 0 else ColumnRef(f"#b{place - 1}", kind)
        )
    outputs = [substitute(part, known, lambda column: column) for part in found]
    steps = tuple(attach_number(place, block) for place, block in enumerate(others))
    names = name_outputs(pieces, outputs, main.aggregates)
    asked = replace(main, outputs=tuple(map(Output, names, outputs)), steps=steps, beside=tuple(others))
    return tidy(asked, pieces[0])


def join_blocks(
    join: exp.Join, scope: OuterScope, blocks: Subqueries, alias: str, block: Question
) -> tuple[OuterScope, AttachQuestion]:
    """Joins a released SELECT to another on all its keys.

    Raises:
        UnsupportedQuery: if the join is of another kind, or could find several rows for one.
    """
    only(join, scope, "this", "kind", "side", "on", "using")
    if (join.kind or "INNER").upper() not in ("INNER", "OUTER") or (join.side or "LEFT").upper() != "LEFT":
        scope.refuse("Released groups are joined by JOIN or LEFT JOIN.", "Write one of them: {grouped}.", join)
    if lookup(alias, scope.tables) is not None:
        scope.refuse(f"Two SELECTs are called '{alias[:60]}'.", "Rename one with AS: {grouped}.", join)
    place = blocks.place(block, join)
    pairs = [_pair(part, scope, alias, block) for part in _equalities(join, scope)]
    _check_keys(pairs, block, scope, join)
    made = columns_of(place, block)
    using = {str(part.name).casefold() for part in join.args.get("using") or []}
    released = {name: part for name, part in scope.released.items() if name.casefold() in using or name not in made}
    released |= {name: part for name, part in made.items() if name not in scope.released}
    wider = replace(scope, released=released, tables={**scope.tables, alias: made})
    return wider, attach_groups(place, block, pairs, outer=(join.side or "").upper() == "LEFT")


def _check_keys(pairs: Sequence[tuple[Expression, str]], block: Question, scope: OuterScope, join: exp.Join) -> None:
    """Checks that a join names all keys, so that it finds one row at most, and nothing that depends on noise."""
    outputs = {output.name: output.expression for output in block.outputs}
    told, noisy = {outputs[name] for _, name in pairs}, noisy_columns(block)
    keys = {ColumnRef(key.name, key.expression.type) for key in block.keys}
    known = not any(c.name in noisy for part in told for c in columns(part))
    known &= not any(c.name in scope.noisy for part, _ in pairs for c in columns(part))
    alike = all(part.type is outputs[name].type for part, name in pairs)
    if not keys or not keys <= told or not known or not alike:
        hint = "Say in USING or ON that all its keys are equal: {grouped}."
        scope.refuse("A released SELECT is joined on all its keys, and on nothing else.", hint, join)


def _equalities(join: exp.Join, scope: OuterScope) -> list[exp.Expr]:
    """Returns what must be equal: names of USING, or the parts of ON."""
    if join.args.get("using"):
        return list(join.args["using"])
    waiting: list[exp.Expr | None] = [join.args.get("on")]
    found: list[exp.Expr] = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.And | exp.Paren):
            waiting += [part.this, *([part.expression] if isinstance(part, exp.And) else [])]
        elif isinstance(part, exp.EQ):
            found.append(part)
        else:
            scope.refuse("Released groups are joined on equal keys.", "Write USING (key): {grouped}.", join)
    return found


def _pair(part: exp.Expr, scope: OuterScope, alias: str, block: Question) -> tuple[Expression, str]:
    """Returns what equals an output of the joined SELECT among the columns at hand, and that output."""
    names = {output.name: output.name for output in block.outputs}
    if not isinstance(part, exp.EQ):
        found = lookup(str(part.name), names)
        if found is None:
            scope.refuse(f"The joined SELECT has no column '{part.name[:60]}'.", near(part, names, scope.source), part)
        return scope.column(exp.column(part.name)), found
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        if isinstance(one, exp.Column) and same(one.table, alias) and (found := lookup(one.name, names)) is not None:
            return read(other, replace(scope, blocks=None)), found
    return scope.refuse("Released groups are joined on equal keys.", "Write USING (key): {grouped}.", part)
