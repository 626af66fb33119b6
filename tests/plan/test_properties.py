"""What holds for every expression: printing and reading are inverse, values exist, bounds hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter, UnknownTable, UnsupportedQuery
from discreet.plan.analysis import value_bounds as bounds_module
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.canonical import canonical, replay
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import NoisyNumber, cell
from discreet.sql.frame import TableFrame, count
from discreet.sql.select import parse
from tests.effort import tried
from tests.plan.expressions import ELEMENTARY, expressions, rows, sql
from tests.plan.tables import SCHEMAS, VISITS

BOUNDED = {"age": (0, 120), "charge": (0, 50_000), "index": (1, 5), "Heart rate": (20, 250), "debt": (-10, 10)}
conditions = expressions(Type.BOOL)


def conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, FunctionCall) and condition.function == "and":
        return [part for each in condition.arguments for part in conjuncts(each)]
    return [condition]


@given(conditions)
def test_printing_and_reading_are_inverse(condition: Expression) -> None:
    text = f"SELECT COUNT(*) AS n FROM visits WHERE {sql(condition)}"
    asked = parse(text, SCHEMAS)
    assert asked.where == reduce(partial(call, "and"), conjuncts(condition))  # ANDs are read from left to right
    built = TableFrame(schema=VISITS).where(sql(condition)).agg(n=count()).question
    assert (replace(built, where=asked.where), built.where) == (asked, condition)
    assert canonical(parse(text.lower() if text.isascii() and "'" not in text else text, SCHEMAS)) == canonical(asked)


@given(st.one_of(*(expressions(kind) for kind in Type)), rows({}))
def test_every_expression_has_a_value_of_its_type(expression: Expression, row: dict[str, Any]) -> None:
    value = evaluate(expression, row)
    if value is not None and expression.type is Type.FLOAT:
        assert math.isfinite(value)
    if value is not None and expression.type is Type.INT:
        assert -(2**63) <= value < 2**63


@given(st.one_of(expressions(Type.INT), expressions(Type.FLOAT)), rows(BOUNDED))
def test_bounds_hold_every_value(expression: Expression, row: dict[str, Any]) -> None:
    found, value = bounds(expression, VISITS, floored=False), evaluate(expression, row)
    if found is not None and value is not None:
        assert found.low <= Fraction(value) <= found.high


AGE, INDEX, DEBT = ColumnRef("age", Type.INT), ColumnRef("index", Type.INT), ColumnRef("debt", Type.FLOAT)
NEAR = st.integers(-12, 125).map(lambda n: Literal(n, Type.INT))


@st.composite
def compared(draw: st.DrawFn, depth: int = 2) -> Expression:
    """A condition on bounded columns, near their bounds."""
    if depth and draw(st.integers(0, 2)) == 0:
        name = draw(st.sampled_from(["and", "or", "not"]))
        parts = [draw(compared(depth - 1)) for _ in range(1 if name == "not" else 2)]
        return call(name, *parts)
    name = draw(st.sampled_from(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]))
    halves = st.integers(-25, 250).map(lambda n: Literal(n / 2, Type.FLOAT))
    sides = [draw(st.sampled_from([AGE, INDEX, DEBT])), draw(NEAR | halves)]
    return call(name, *(sides if draw(st.booleans()) else sides[::-1]))


@st.composite
def branching(draw: st.DrawFn, depth: int = 3) -> Expression:
    """CASE, products, quotients and remainders of bounded columns, the same ones again and again."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([AGE, INDEX, DEBT, AGE]) | NEAR)
    first, second = draw(branching(depth - 1)), draw(branching(depth - 1))
    name = draw(st.sampled_from(["if", "if", "if", "square", "multiply", "divide", "subtract", "coalesce", "modulo"]))
    if name == "if":
        return call("if", draw(compared()), first, second)
    if name == "modulo":
        return call("modulo", *(call("to_int", part) for part in (first, second)))
    return call("multiply", first, first) if name == "square" else call(name, first, second)


@pytest.mark.ci
@tried(400)
@given(branching(), rows(BOUNDED))
def test_bounds_hold_every_value_of_a_branch(expression: Expression, row: dict[str, Any]) -> None:
    found, value = bounds(expression, VISITS), evaluate(expression, row)
    if found is not None and value is not None:
        assert found.low <= Fraction(value) <= found.high


@pytest.mark.parametrize("slip", ["else as then", "a whole number too far"])
def test_mutants_in_the_branches(monkeypatch: pytest.MonkeyPatch, slip: str) -> None:
    """CASE WHEN age > 17 THEN 0 ELSE age END, or 200 in place of 0: at 17 it is 17, which the bounds then miss."""
    other = Literal(200 if slip == "else as then" else 0, Type.INT)
    case = call("if", call("greater", AGE, Literal(17, Type.INT)), other, AGE)
    if slip == "else as then":
        monkeypatch.setattr(bounds_module, "where_not_true", bounds_module.where_true)
    else:
        rule = bounds_module._COMPARISON_RULES["less_equal"]
        wrong = {**bounds_module._COMPARISON_RULES, "less_equal": lambda value, whole: rule(value - 1, whole)}
        monkeypatch.setattr(bounds_module, "_COMPARISON_RULES", wrong)
    found = bounds(case, VISITS)
    assert found is not None
    assert not found.low <= 17 <= found.high


LITERALS = st.one_of(
    st.integers(-1000, 1000).map(lambda n: Literal(n, Type.INT)), st.floats(-9, 9).map(lambda x: Literal(x, Type.FLOAT))
)


@st.composite
def arithmetic(draw: st.DrawFn, depth: int = 3) -> Expression:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.one_of(st.sampled_from([ColumnRef("#1", Type.FLOAT), ColumnRef("#2", Type.FLOAT)]), LITERALS))
    alone = ["absolute", "round", *sorted(ELEMENTARY - {"atan2"})]
    pairs = ["add", "subtract", "multiply", "divide", "greatest", "coalesce", "power", "log", "atan2"]
    name = draw(st.sampled_from(alone) | st.sampled_from(pairs))
    parts = tuple(draw(arithmetic(depth - 1)) for _ in range(1 if name in alone else 2))
    return FunctionCall(name, parts, Type.FLOAT)


@st.composite
def noisy(draw: st.DrawFn) -> tuple[NoisyNumber, float]:
    """A released number, and a true one from its interval."""
    low, value, true, high = sorted(draw(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4)))
    return NoisyNumber(value, low, high), true


@given(arithmetic(), noisy(), noisy())
def test_intervals_of_outputs_hold_the_truth(
    output: Expression, one: tuple[NoisyNumber, float], other: tuple[NoisyNumber, float]
) -> None:
    found = cell(output, {"#1": one[0], "#2": other[0]})
    truth = evaluate(output, {"#1": one[1], "#2": other[1]})
    if isinstance(found, NoisyNumber):
        assert found.value is None or found.low <= found.value <= found.high
        assert truth is None or found.low <= truth <= found.high


WORDS = tuple(
    word
    for line in (
        "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END",
        "visits ward age charge patient_id day COUNT SUM AVG ( ) , . * + - / // % = < >= <> 1 2.5 'a' CAST INT DATE ::",
        'DISTINCT TRUE EXTRACT YEAR UPPER JOIN ON WITH UNION OVER ALL FOR INTERVAL [ ] { } ? $ @ : -- /* */ || "age"',
        "TIMESTAMP SUBSTRING ROUND COALESCE EXISTS ANY TABLE VALUES UNNEST LATERAL IF DATE_TRUNC NULLS FIRST USING ' ;",
    )
    for word in line.split()
)
soup = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)


@pytest.mark.ci
@given(st.one_of(soup, soup.map("SELECT COUNT(*) FROM visits ".__add__), soup.map("SELECT ".__add__), st.text()))
def test_soup_is_refused_or_understood(text: str) -> None:
    try:
        asked = parse(text, SCHEMAS)
    except (UnsupportedQuery, UnknownTable, InvalidParameter):  # a ? has no value
        return
    assert asked.aggregates or asked.keys
    assert canonical(asked)


@pytest.mark.ci
@given(st.one_of(soup, st.text()))
def test_soup_in_the_fluent_front(text: str) -> None:
    frame = TableFrame(schema=VISITS)
    builds: list[Callable[[], TableFrame]] = [
        lambda: frame.where(text).agg(n=count()),
        lambda: frame.group_by(text).agg(n=text),
        lambda: frame.agg(n=count(text)).order_by(text).having(text),
    ]
    for build in builds:
        with suppress(UnsupportedQuery, InvalidParameter):
            assert replay(build().question)


@pytest.mark.parametrize("value", [None, 3, b"SELECT COUNT(*) FROM visits", ["SELECT"]])
def test_only_texts_are_read(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        parse(value, SCHEMAS)
