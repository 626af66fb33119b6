"""The fluent front: the same questions in Python, the same gates, the same plan.

Texts are expressions of SQL and pass the gates that a whole question passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Self

from sqlglot import exp

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.measurement.aggregates import aggregation
from discreet.plan.model.nodes import Question
from discreet.plan.model.schema import TableSchema
from discreet.sql.clauses.assembly import QuestionParts, question
from discreet.sql.clauses.select_parts import QueryFragment
from discreet.sql.functions import only
from discreet.sql.functions.aggregates import FINEST
from discreet.sql.parameters import Parameters
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import Scope
from discreet.sql.select import ordering, select

_SELECT, _ORDER = "SELECT ", "SELECT 1 ORDER BY "


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate to be named: made by `count`, `sum`, `mean` and the functions next to them."""

    kind: str
    expression: str | None = None
    share: Fraction | None = None
    other: str | None = None


def count(expression: str | None = None) -> Measure:
    """Counts rows, or rows where an expression is not NULL."""
    return Measure("count", expression)


def count_units() -> Measure:
    """Counts units: people, where a unit is one.

    Each unit counts once, however many rows it has, so that limits on rows add nothing to the noise.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"patient": place % 200, "age": 20 + place % 60} for place in range(400)]
    >>> types = {"patient": "int", "age": "int"}
    >>> curator.protect(visits, name="visits", unit="patient", types=types, max_rows=2, budget=Budget(epsilon=2))
    >>> curator.table("visits").agg(rows=count(), people=count_units()).ask(epsilon=1)[0]
    {'rows': 397, 'rows_low': 385, 'rows_high': 409, 'people': 200, 'people_low': 194, 'people_high': 206}
    """
    return Measure("count_units")


def count_distinct(expression: str) -> Measure:
    """Counts the different values of an expression.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"city": place % 50} for place in range(400)]  # 50 different ones
    >>> curator.protect(visits, name="visits", types={"city": "int"}, budget=Budget(epsilon=1))
    >>> curator.table("visits").agg(cities=count_distinct("city")).ask(epsilon=1)[0]
    {'cities': 48, 'cities_low': 45, 'cities_high': 51}
    """
    return Measure("count_distinct", expression)


def sum(expression: str) -> Measure:  # noqa: A001 - the name SQL and every frame library give it
    """Asks for the sum of an expression."""
    return Measure("sum", expression)


def mean(expression: str) -> Measure:
    """Asks for the mean of an expression."""
    return Measure("mean", expression)


def median(expression: str) -> Measure:
    """Asks for the median of an expression."""
    return Measure("quantile", expression, Fraction(1, 2))


def quantile(expression: str, q: check.Number) -> Measure:
    """Asks for the value below which the share q of an expression's values lie, 0.9 for nine tenths.

    Raises:
        InvalidParameter: if q is not from 0 to 1 or has more than six digits.
    """
    share = check.share(q=q)
    if share.denominator > FINEST:
        raise InvalidParameter("q", q, "to have at most six digits", "Round it.")
    return Measure("quantile", expression, share)


def minimum(expression: str) -> Measure:
    """Asks for a private quantile near the smallest value of an expression.

    The smallest value itself is one person's: the interval says that it may lie anywhere above the lower bound.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"age": 20 + place % 60} for place in range(600)]  # from 20 to 79
    >>> curator.protect(visits, name="visits", types={"age": "int"}, bounds={"age": (0, 120)}, budget=Budget(epsilon=1))
    >>> curator.table("visits").agg(age=minimum("age")).ask(epsilon=1)[0]
    {'age': 21, 'age_low': 0, 'age_high': 21}
    """
    return Measure("min", expression)


def maximum(expression: str) -> Measure:
    """Asks for a private quantile near the largest value of an expression.

    The largest value itself is one person's: the interval says that it may lie anywhere below the upper bound.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"age": 20 + place % 60} for place in range(600)]  # from 20 to 79
    >>> curator.protect(visits, name="visits", types={"age": "int"}, bounds={"age": (0, 120)}, budget=Budget(epsilon=1))
    >>> curator.table("visits").agg(age=maximum("age")).ask(epsilon=1)[0]
    {'age': 77, 'age_low': 77, 'age_high': 120}
    """
    return Measure("max", expression)


def mode(expression: str) -> Measure:
    """Asks for the most frequent value of an expression, drawn among its public values.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"ward": "ABB"[place % 3]} for place in range(300)]
    >>> wards = {"ward": ["A", "B", "C"]}  # public
    >>> curator.protect(visits, name="visits", types={"ward": "text"}, keys=wards, budget=Budget(epsilon=1))
    >>> curator.table("visits").agg(ward=mode("ward")).ask(epsilon=1)[0]
    {'ward': 'B'}
    """
    return Measure("mode", expression)


def variance(expression: str) -> Measure:
    """Asks for the sample variance of an expression."""
    return Measure("var_samp", expression)


def stddev(expression: str) -> Measure:
    """Asks for the sample standard deviation of an expression.

    >>> from discreet import Budget, Curator
    >>> from discreet.engines import Memory
    >>> from discreet.noise import SeededBits
    >>> curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    >>> visits = [{"age": 40 + 20 * (place % 2)} for place in range(900)]  # a deviation of 10
    >>> curator.protect(visits, name="visits", types={"age": "int"}, bounds={"age": (0, 120)}, budget=Budget(epsilon=1))
    >>> answer = curator.table("visits").agg(spread=stddev("age")).ask(epsilon=1)
    >>> {name: round(value, 1) for name, value in answer[0].items()}
    {'spread': 11.4, 'spread_low': 9.5, 'spread_high': 12.9}
    """
    return Measure("stddev_samp", expression)


def covariance(one: str, other: str) -> Measure:
    """Asks for the sample covariance of two expressions, over rows where both have a value."""
    return Measure("covar_samp", one, other=other)


def correlation(one: str, other: str) -> Measure:
    """Asks for the correlation of two expressions, over rows where both have a value."""
    return Measure("corr", one, other=other)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFrame:
    """A question in the making; every method returns a new one.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> from discreet.plan.model.types import Type
    >>> from discreet.sql.select import parse
    >>> age, ward = ColumnSchema(name="age", type=Type.INT), ColumnSchema(name="ward", type=Type.TEXT)
    >>> visits = TableSchema(name="visits", columns={"age": age, "ward": ward})
    >>> frame = TableFrame(schema=visits).where("age >= 40").group_by("ward").agg(n=count())
    >>> frame.question == parse(
    ...     "SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 40 GROUP BY ward", {"visits": visits}
    ... )
    True
    """

    schema: TableSchema
    conditions: tuple[QueryFragment, ...] = ()
    keys: tuple[QueryFragment, ...] = ()
    measures: tuple[QueryFragment, ...] = ()
    groups_kept: tuple[QueryFragment, ...] = ()
    orders: tuple[tuple[QueryFragment, bool], ...] = ()
    rows_kept: int | None = None
    rows_passed: int = 0

    def where(self, condition: str, parameters: Parameters = None) -> Self:
        """Keeps rows for which the condition is true, and the earlier ones too.

        Args:
            condition: an expression of SQL.
            parameters: the values of `?` and `$1` in it as a list, those of `:name` and `$name` as a dictionary.
        """
        return replace(self, conditions=(*self.conditions, self._piece(condition, parameters=parameters)))

    def group_by(self, *expressions: str, **named: str) -> Self:
        """Returns groups by columns or expressions, named by keyword where the name should be another one."""
        pieces = [self._piece(expression) for expression in expressions]
        pieces += [self._piece(expression, name) for name, expression in named.items()]
        return replace(self, keys=(*self.keys, *pieces))

    def agg(self, **measures: Measure | str) -> Self:
        """Adds aggregates, or expressions of aggregates as text, by name."""
        return replace(self, measures=(*self.measures, *(self._measure(made, name) for name, made in measures.items())))

    def having(self, condition: str, parameters: Parameters = None) -> Self:
        """Keeps groups whose released values satisfy the condition, with values as `where` takes them."""
        return replace(self, groups_kept=(*self.groups_kept, self._piece(condition, parameters=parameters)))

    def order_by(self, *expressions: str) -> Self:
        """Sorts by released values; a text may end in DESC."""
        pieces = [piece for expression in expressions for piece in self._orders(expression)]
        return replace(self, orders=(*self.orders, *pieces))

    def limit(self, rows: int, *, offset: int = 0) -> Self:
        """Keeps the first rows of the answer, or so many after those that are passed over."""
        kept = check.integer(rows=rows, at_least=0, at_most=10**9 - 1)
        return replace(self, rows_kept=kept, rows_passed=check.integer(offset=offset, at_least=0, at_most=10**9 - 1))

    @property
    def question(self) -> Question:
        """Returns the plan.

        Raises:
            UnsupportedQuery: as `parse` does.
        """
        if not self.measures:
            raise InvalidParameter("agg", "nothing", "to name at least one aggregate", "Add e.g. .agg(n=count()).")
        return question(
            QuestionParts(
                schema=self.schema,
                alias=self.schema.name,
                outputs=[*self.keys, *self.measures],
                where=self.conditions,
                keys=[replace(key, name=None) for key in self.keys],
                having=self.groups_kept,
                order=self.orders,
                limit=self.rows_kept,
                offset=self.rows_passed,
            )
        )

    def _piece(self, text: str, name: str | None = None, parameters: Parameters = None) -> QueryFragment:
        source = self._source(_SELECT, text, parameters)
        tree = select(source)
        only(tree, self._scope(source), "expressions")
        if len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias):
            source.refuse(
                "One expression is expected here.", "Give names by keyword; for example {count}.", len(_SELECT)
            )
        return QueryFragment(tree.expressions[0], source, name)

    def _orders(self, text: str) -> list[tuple[QueryFragment, bool]]:
        source = self._source(_ORDER, text)
        tree, scope = select(source), self._scope(source)
        only(tree, scope, "expressions", "order")
        return ordering(tree, source, scope, len(tree.expressions))

    def _measure(self, made: Measure | str, name: str) -> QueryFragment:
        if isinstance(made, str):
            return self._piece(made, name)
        made = check.instance(Measure, **{name: made})
        inner = None if made.expression is None else self._piece(made.expression)
        other = None if made.other is None else self._piece(made.other)
        node = _node(made, inner, other, self.schema)
        return QueryFragment(node, inner.source if inner else SqlSource("", {self.schema.name: self.schema}), name)

    def _source(self, before: str, text: str, parameters: Parameters = None) -> SqlSource:
        whole = before + check.instance(str, expression=text)
        return SqlSource(whole, {self.schema.name: self.schema}, len(before), parameters)

    def _scope(self, source: SqlSource) -> Scope:
        return Scope(source=source, schema=self.schema, alias=self.schema.name)


def _units(node: exp.Expr | None, schema: TableSchema) -> exp.Expr:
    del node
    if schema.unit is None:
        SqlSource("", {schema.name: schema}).refuse("Here each row is a separate unit.", "Count rows: {count}.")
    names = schema.parts or (schema.unit,)
    columns = [exp.column(name, quoted=True) for name in names]
    return exp.Count(this=exp.Distinct(expressions=columns), big_int=True)


_SYNTAX: dict[str, Callable[[exp.Expr | None, TableSchema], exp.Expr]] = {
    "count": lambda node, _: exp.Count(this=node if node is not None else exp.Star(), big_int=True),
    "count_units": _units,
    "count_distinct": lambda node, _: exp.Count(this=exp.Distinct(expressions=[node]), big_int=True),
    "quantile": lambda node, _: exp.Quantile(this=node),
    "mode": lambda node, _: exp.Mode(this=node),
}
"""Aggregates with a syntax of their own; all others are the function that the registry names."""


def _node(made: Measure, inner: QueryFragment | None, other: QueryFragment | None, schema: TableSchema) -> exp.Expr:
    argument = None if inner is None else inner.node
    if made.kind in _SYNTAX:
        node = _SYNTAX[made.kind](argument, schema)
        if made.share is not None:
            node.set("quantile", made.share)
        return node
    (function, *_) = aggregation(made.kind).functions
    parts = {"this": argument} if other is None else {"this": argument, "expression": other.node}
    made_node: exp.Expr = exp.FUNCTION_BY_NAME[function](**parts)
    return made_node
