"""What names mean at a place of the question: columns of a row, or keys and aggregates of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import reduce
from typing import NoReturn, TypeVar

from sqlglot import exp

from discreet.dataclass import dataclass
from discreet.measurement.aggregates import Aggregation, aggregation
from discreet.measurement.releases.candidates import MOST_CANDIDATES, MOST_LISTED, candidates_of
from discreet.measurement.releases.grids import multipliable
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import (
    UNIT,
    Aggregate,
    ColumnRef,
    Expression,
    ExtremeKind,
    FunctionCall,
    Literal,
    columns,
    grouping,
)
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.sql.examples import Examples, clip_expression, different, quote_name
from discreet.sql.refusals import SqlSource

T = TypeVar("T")

Names = Mapping[str, Mapping[str, str]]
"""For each table of a question, by its alias, what the name of a column means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The columns of one row: the scope of WHERE, of keys and of what is aggregated.

    Args:
        source: the text, for positions.
        schema: the table.
        alias: what the question calls it.
        names: what columns are called, by the aliases of their tables, where there are several.
    """

    source: SqlSource
    schema: TableSchema
    alias: str
    names: Names | None = None

    @property
    def row(self) -> Scope:
        """Returns the scope inside an aggregate."""
        return Scope(source=self.source, schema=self.schema, alias=self.alias, names=self.names)

    @property
    def visible(self) -> Names:
        """Returns for each alias what the names of its columns stand for."""
        own = {name: name for name in self.schema.columns if name != UNIT}
        return {self.alias: own} if self.names is None else self.names

    def knows(self, node: exp.Column) -> bool:
        """Returns whether a name is known here."""
        return len(self._meanings(node)) == 1

    def _meanings(self, node: exp.Column) -> list[str]:
        given = [names for alias, names in self.visible.items() if not node.table or same(alias, node.table)]
        return [found for names in given if (found := lookup(node.name, names)) is not None]

    def column(self, node: exp.Column) -> Expression:
        """Returns the expression that a name means."""
        self._prefix(node)
        name = self._find_column(node)
        if name.startswith("#"):
            self.refuse("Names that begin with # are reserved.", "Ask the steward to rename the column: {count}.", node)
        return ColumnRef(name, self.schema.columns[name].type)

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
        """Refuses an aggregate, which means nothing in a row.

        Args:
            kind: of the registered ones.
            argument: what it is about, None if about rows or units.
            node: where it is.
            other: its second argument.
            share: of a quantile.
            written: the argument as it was written, where that is not the first part of the node.
        """
        del argument, other, share, written
        self.refuse(*aggregation(kind).not_of_rows, node)

    def key(self, node: exp.Expr) -> Expression | None:
        """Returns the key that a name of an output means, where it is no column; in a row, none."""
        del node
        return None

    def grouping(self, keys: Sequence[Expression], node: exp.Expr) -> Expression:
        """Refuses GROUPING, which has a meaning only in an answer of several groupings."""
        del keys
        self.refuse(
            "GROUPING shows which keys a grouping leaves out, in SELECT, HAVING or ORDER BY of several groupings.",
            "Group by ROLLUP, CUBE or GROUPING SETS, or leave it out: {grouped}.",
            node,
        )

    def extreme(self, kind: ExtremeKind, value: Expression, by: Expression | None, node: exp.Expr) -> Expression:
        """Refuses a value where another is smallest or largest, which has a meaning only in one person's rows."""
        del kind, value, by
        self.refuse(
            f"{node.key.upper()} would publish people's values.",
            "You can use it on one person's rows, in a SELECT in FROM that is grouped by their id: {grouped}.",
            node,
        )

    def any_value(self, value: Expression, node: exp.Expr) -> Expression:
        """Refuses ANY_VALUE, which has a meaning only for what keys decide."""
        del value
        self.refuse(
            "ANY_VALUE would publish people's values, unless the group's keys decide it.",
            "Group by it as well, or count it: {grouped}.",
            node,
        )

    def scalar(self, node: exp.Expr) -> Expression:
        """Refuses a SELECT in brackets, which has a meaning only among released values."""
        self.refuse(
            "A subquery is answered only in FROM, with aggregates, or next to released numbers.",
            "Ask it separately: {filtered}.",
            node,
        )

    def window(self, node: exp.Window) -> Expression:
        """Refuses a window, which has a meaning only in a SELECT of one person's rows."""
        self.refuse(
            "OVER ranks or frames single rows.",
            "Rank each person's rows in a SELECT in FROM, PARTITION BY their id; or sort the released groups: {top}.",
            node.this if any("start" in part.meta for part in node.this.walk()) else node,
        )

    def refuse(self, reason: str, hint: str, at: exp.Expr) -> NoReturn:
        """Ends the reading at a node."""
        self.source.refuse(reason, hint, at)

    def _prefix(self, node: exp.Column) -> None:
        if node.args.get("db") or node.args.get("catalog"):
            self.refuse("A column is written as name or as table.name.", "Leave the rest out: {count}.", node)
        if node.table and not any(same(node.table, alias) for alias in self.visible):
            self.refuse(f"'{node.table[:60]}' is not a table of this question.", self._without_prefix(node), node)

    def _without_prefix(self, node: exp.Column) -> str:
        asked = self.source.rewrite_query(node, quote_name(node.name))
        return f"Leave the prefix out: `{asked}`." if asked else "Leave the prefix out: {count}."

    def _find_column(self, node: exp.Column) -> str:
        found = self._meanings(node)
        if len(found) > 1:
            tables = " or ".join(quote_name(alias) for alias in self.visible)
            self.refuse(
                f"Several tables have a column '{node.name[:60]}'.",
                f"Write one of {tables} before it; for example {{count}}.",
                node,
            )
        if not found:
            self.refuse(f"No column '{node.name[:60]}' is declared.", self._near(node), node)
        return found[0]

    def _near(self, node: exp.Column) -> str:
        hint = near(node, [known for names in self.visible.values() for known in names], self.source)
        return f"{hint} {_meant_as_text(node)}" if _is_compared(node) else hint


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScope(Scope):
    """Keys and aggregates: the scope of what is selected, of HAVING and ORDER BY.

    A name means a column of the answer first, where there are any yet, and a column of the row otherwise; columns of
    the row that are no keys are refused later, when the keys are known. An aggregate is given a number and means the
    column of that number; equal aggregates have one number.
    """

    aggregates: list[Aggregate] = field(default_factory=list)
    named: dict[str, Expression] = field(default_factory=dict)
    grouped: Sequence[Expression] = ()
    key_names: Mapping[str, Expression] = field(default_factory=dict)

    def key(self, node: exp.Expr) -> Expression | None:
        """Returns the key that a name of an output means, where it is no column."""
        alone = isinstance(node, exp.Column) and not node.table and not self.row.knows(node)
        return lookup(node.name, self.key_names) if alone else None

    def grouping(self, keys: Sequence[Expression], node: exp.Expr) -> Expression:
        """Returns 1 where a key is left out, else 0; of several keys, these digits as a number to the base 2."""
        if not keys or any(key not in self.grouped for key in keys):
            return Scope.grouping(self, keys, node)
        digits: list[Expression] = [ColumnRef(grouping(self.grouped.index(key)), Type.INT) for key in keys]
        return reduce(lambda one, other: call("add", call("multiply", one, Literal(2, Type.INT)), other), digits)

    def column(self, node: exp.Column) -> Expression:
        """Returns a column of the answer, or of the row."""
        if not node.table:
            found = lookup(node.name, self.named)
            if found is not None:
                return found
        return Scope.column(self, node)

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
        """Returns the column of the aggregate, made if it is new."""
        registered, text = aggregation(kind), node.this if written is None else written
        about = None if argument is None else self._about(registered, argument, node, text)
        second = None if other is None else self._about(registered, other, node, node.expression)
        name = f"#{len(self.aggregates) + 1}"
        wanted = Aggregate(name=name, kind=kind, argument=about, other=second, quantile=share)
        alike = (made for made in self.aggregates if made.argument == about)  # which costs less than to replace
        same = [made for made in alike if replace(made, name=name) == wanted]
        if not same:
            same = [wanted]
            self.aggregates.extend(same)
        return ColumnRef(same[0].name, registered.result_type(about))

    def _about(self, registered: Aggregation, value: Expression, node: exp.Expr, text: exp.Expr) -> Expression:
        """Returns what an aggregate is about, held to bounds where it adds, and to exact products if it multiplies."""
        registered.check(value, self.schema)
        if registered.listed:
            self._require_candidates(registered, value, node, text)
        if registered.bounded:
            self._require_bounds(registered, value, node, text)
        return self._multipliable(registered.power, value, node) if registered.power > 1 else value

    def _require_candidates(self, registered: Aggregation, value: Expression, node: exp.Expr, text: exp.Expr) -> None:
        if candidates_of(value, self.schema) is None:
            self.refuse(
                f"{registered.word} is drawn among public values: at most {MOST_LISTED:,} declared keys, "
                f"or {MOST_CANDIDATES:,} whole numbers or days between bounds.",
                self._suggest_groups(value, text),
                node,
            )

    def _suggest_groups(self, value: Expression, argument: exp.Expr) -> str:
        """Returns a hint for the most frequent of private values: their groups, the largest first."""
        text, read_columns = argument.sql(dialect="duckdb"), {column.name for column in columns(value)}
        if "`" in text or len(text) > 200 or self.alias != self.schema.name or value.type is Type.FLOAT:
            return "Ask the steward to declare its keys, or ask for the largest groups: {top}."
        if not read_columns or read_columns & set(self.schema.ids):
            return "Ask for the largest groups of another column: {top}."
        present = f"FROM {quote_name(self.schema.name)} WHERE {text} IS NOT NULL"
        counted = f"SELECT {text} AS answer, COUNT(*) AS n {present} GROUP BY 1 ORDER BY n DESC LIMIT 1"
        return f"Ask the steward to declare its keys, or ask for the largest group: {different(counted)}."

    def _in_order(self, registered: Aggregation, value: Expression, argument: exp.Expr) -> str:
        """Returns an example for the first or last of some texts: their groups, in that order."""
        simple = isinstance(value, ColumnRef) and value.name not in self.schema.ids and "`" not in argument.name
        simple = simple and self.alias == self.schema.name
        if not simple or not Examples(self.schema).shows(value):
            return "{grouped}"
        name, table = quote_name(argument.name), quote_name(self.schema.name)
        if registered.kind not in ("min", "max"):
            return different(Examples(self.schema).grouped_by(name))
        down = " DESC" if registered.kind == "max" else ""
        return different(f"SELECT {name} AS answer, COUNT(*) AS n FROM {table} GROUP BY 1 ORDER BY 1{down}")

    def _require_bounds(self, registered: Aggregation, value: Expression, node: exp.Expr, text: exp.Expr) -> None:
        if not (value.type.is_number or (registered.timed and value.type.is_time)):
            advice = "{conditional}" if value.type is Type.BOOL else self._in_order(registered, value, text)
            told = f"Count instead: {advice}."
            if value.type is Type.TEXT and registered.kind not in ("min", "max"):
                told += " If it holds numbers, the steward can declare them, or see with discreet check why not."
            self.refuse(f"{registered.word} does not take {value.type.value}.", told, node)
        if bounds(value, self.schema) is None:
            self.refuse(
                f"One person could move this {registered.word} by any amount: its values have no bounds.",
                self._clip(registered, value, text),
                node,
            )

    def _multipliable(self, power: int, value: Expression, node: exp.Expr) -> Expression:
        """Returns the argument, as doubles if whole numbers between its bounds are too large for exact products."""
        limits = bounds(value, self.schema)
        if limits is None or multipliable(limits, value.type, power):
            return value
        if value.type is Type.FLOAT:
            self.refuse("Numbers of this size have no squares in doubles.", "Clip them: {mean}.", node)
        return FunctionCall("to_float", (value,), Type.FLOAT)

    def _clip(self, registered: Aggregation, value: Expression, argument: exp.Expr) -> str:
        text, table = argument.sql(dialect="duckdb"), self.schema.name
        limits = ("0", "100") if value.type.is_number else ("DATE '2000-01-01'", "DATE '2030-12-31'")
        advice = "Ask the steward to declare bounds, or clip to public limits that you expect all values to lie within"
        part = next((one for one in _written_values(argument) if self.source.find_in_text(one) is not None), argument)
        if asked := self.source.rewrite_query(part, clip_expression(part.sql(dialect="duckdb"), *limits)):
            return f"{advice}: `{asked}`."
        if "`" in text or len(text) > 200 or self.alias != table or registered.arguments > 1:
            return f"{advice}, as in {clip_expression('x')}: {{mean}}."
        held = registered.write_call(clip_expression(text, *limits))
        return f"{advice}: {different(f'SELECT {held} AS answer FROM {quote_name(table)}')}."


def lookup(name: str, known: Mapping[str, T]) -> T | None:
    """Finds what a name means: the entry spelt the same, or the only one that differs in letter case alone.

    >>> lookup("WARD", {"ward": 1}), lookup("WARD", {"ward": 1, "Ward": 2})
    (1, None)
    """
    if name in known:
        return known[name]
    similar = [key for key in known if same(key, name)]
    return known[similar[0]] if len(similar) == 1 else None


def same(one: str, other: str) -> bool:
    """Returns whether two names differ in letter case at most."""
    return one.casefold() == other.casefold()


def _written_values(argument: exp.Expr) -> Iterator[exp.Expr]:
    """Yields what an aggregate is about, as it may have been written: a FILTER made a CASE of it."""
    yield argument
    if isinstance(argument, exp.Case) and len(argument.args["ifs"]) == 1:
        yield argument.args["ifs"][0].args["true"]


def _is_compared(node: exp.Column) -> bool:
    """Returns whether a name is where a value is compared with: x = name, x IN (name), x LIKE name."""
    plain = not node.table and not {"`", "{"} & set(node.name)
    return plain and isinstance(node.parent, exp.Predicate) and node.arg_key != "this"


def _meant_as_text(node: exp.Column) -> str:
    """Says how a text is written: with "", or without quotes, it is the name of a column."""
    written = node.name[:60].replace("'", "''")
    return f"A text is written in single quotes: '{written}'."


def near(node: exp.Expr, known: Iterable[str], source: SqlSource) -> str:
    """Proposes declared names that are near to one that is not declared, and the question with the nearest."""
    names = {entry.casefold(): entry for entry in known}
    close = get_close_matches(node.name.casefold()[:60], names, n=1)
    if not close:
        return f"Declared: {', '.join(quote_name(entry) for entry in names.values())}; for example {{count}}."
    meant = quote_name(names[close[0]])
    prefix = f"{quote_name(node.table)}." if isinstance(node, exp.Column) and node.table else ""
    asked = source.rewrite_query(node, prefix + meant)
    return f"Did you mean {meant}?" + (f" Then ask `{asked}`." if asked else " For example {count}.")
