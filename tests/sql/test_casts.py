"""CAST to whole numbers and decimals: what PostgreSQL says, on every row, within bounds that hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.canonical import replay
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from discreet.sql.select import parse

X = ColumnRef("x", Type.FLOAT)
HALVES = [n / 2 for n in range(-12, 13)]
NEAR = [math.nextafter(half, end) for half in HALVES for end in (-math.inf, math.inf)]
DOUBLES = [*HALVES, *NEAR, 0.1, 2.675, -1e-300, 4503599627370497.5, 9007199254740993.0, -(2.0**63)]
BEYOND = [2.0**63, -(2.0**63) - 2048, 1e30, -1.7976931348623157e308]


def declared(low: float = -6, high: float = 6) -> TableSchema:
    x = ColumnSchema(name="x", type=Type.FLOAT, bounds=ColumnBounds(Fraction(low), Fraction(high)))
    others = {"n": Type.INT, "s": Type.TEXT, "b": Type.BOOL}
    columns = {name: ColumnSchema(name=name, type=kind) for name, kind in others.items()}
    return TableSchema(name="t", columns={"x": x, **columns})


def read(text: str) -> Expression:
    question = parse(f"SELECT COUNT({text}) AS v FROM t", {"t": declared()})
    (aggregate,) = question.aggregates
    assert aggregate.argument is not None
    return aggregate.argument


@pytest.mark.parametrize("text", ["CAST(x AS INT)", "x::INT", "TRY_CAST(x AS INT)", "CAST(x AS BIGINT)", "x::INTEGER"])
def test_a_double_becomes_the_nearest_whole_number(text: str) -> None:
    """Halves become the even one, as PostgreSQL and DuckDB cast doubles; what INT has not is NULL."""
    expression = read(text)
    for value in DOUBLES:
        assert evaluate(expression, {"x": value}) == round(Fraction(value)), value
    assert [evaluate(expression, {"x": value}) for value in (2.5, 3.5, -2.5, 0.5, -0.5, 2.7)] == [2, 4, -2, 0, 0, 3]
    assert [evaluate(expression, {"x": value}) for value in [*BEYOND, None]] == [None] * 5


def test_other_types_are_read_as_they_are() -> None:
    texts = {"2.5": None, "25": 25, "-7": -7, "1e3": None, "": None, "abc": None, "9223372036854775808": None}
    expression = read("CAST(s AS INT)")
    assert {text: evaluate(expression, {"s": text}) for text in texts} == texts
    assert evaluate(read("CAST(b AS INT)"), {"b": True}) == 1
    assert read("CAST(n AS INT)") == ColumnRef("n", Type.INT)


@pytest.mark.parametrize(("written", "whole"), [("2.5", 3), ("-2.5", -3), ("3.5", 4), ("0.4", 0), ("2.5e0", 3)])
def test_a_written_number_is_exact_and_its_halves_go_away_from_zero(written: str, whole: int) -> None:
    assert evaluate(read(f"CAST({written} AS INT) + n"), {"n": 0}) == whole


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-2.5, 2.5), (0.5, 1.5), (-0.5, 0.5), (1.5, 2.5), (-6, 6), (2.5, 3.5), (0.2, 0.3)]
)
@pytest.mark.parametrize(
    "text", ["CAST(x AS INT)", "CAST(x AS INT) * 3", "-CAST(x AS INT)", "CAST(x AS DECIMAL(4, 1))"]
)
def test_bounds_of_a_cast_hold_all_its_values_and_are_met(low: float, high: float, text: str) -> None:
    """By brute force over doubles within the bounds, their ends and halves among them."""
    inside = [value for value in DOUBLES if low <= value <= high] + [low, high]
    values = [evaluate(read(text), {"x": value}) for value in inside]
    found = bounds(read(text), declared(low, high))
    assert found is not None
    assert found.low <= min(values)
    assert max(values) <= found.high
    if min(values) < max(values) and "DECIMAL" not in text:
        assert (found.low, found.high) == (min(values), max(values))


def test_the_rounding_is_what_the_bounds_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a cast were to cut off again, bounds would no longer be met."""
    monkeypatch.setitem(FUNCTIONS, "round_to_int", replace(FUNCTIONS["round_to_int"], compute=math.trunc))
    with pytest.raises(AssertionError):
        test_bounds_of_a_cast_hold_all_its_values_and_are_met(0.5, 1.5, "CAST(x AS INT)")
    with pytest.raises(AssertionError):
        test_a_double_becomes_the_nearest_whole_number("x::INT")


@pytest.mark.parametrize(("digits", "places"), [(5, 2), (4, 0), (3, 1), (18, 3), (38, 9), (2, 2)])
def test_decimals_are_rounded_to_their_places(digits: int, places: int) -> None:
    """Halves away from zero; what has too many digits before the point is NULL."""
    expression, step = read(f"CAST(x AS DECIMAL({digits}, {places}))"), Decimal(1).scaleb(-places)
    for value in (0.0, 1.25, -1.25, 12.5, 0.004, -0.96, 99.94, 1e4, 123456.75):
        exact = Decimal(value).quantize(step, ROUND_HALF_UP)
        wanted = float(exact) if abs(exact) < 10 ** (digits - places) else None
        assert evaluate(expression, {"x": value}) == wanted, value
    assert evaluate(read("CAST(x AS NUMERIC(4))"), {"x": 2.5}) == 3.0


@pytest.mark.parametrize("kind", ["DECIMAL(0, 0)", "DECIMAL(39, 2)", "DECIMAL(5, 6)", "DECIMAL(20, 12)", "SMALLINT"])
def test_other_types_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedQuery):
        read(f"CAST(x AS {kind})")


@pytest.fixture
def curator() -> Iterator[Curator]:
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    rows: list[dict[str, Any]] = [{"x": place % 10 + 0.5} for place in range(100)]
    made.protect(rows, name="t", types={"x": "float"}, bounds={"x": (0, 10)}, budget=Budget(epsilon=10**9))
    yield made
    made.close()


def test_answers_are_those_of_the_rounding(curator: Curator) -> None:
    """0.5, 1.5 ... 9.5 become 0, 2, 2, 4, 4 ... 10: the sum is that of the halves, and no more odd groups exist."""
    groups = {
        row["k"]: row["n"] for row in curator.ask("SELECT x::INT AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=10**6)
    }
    assert {key: count for key, count in groups.items() if count} == {0: 10, 2: 20, 4: 20, 6: 20, 8: 20, 10: 10}
    assert set(groups) - {None} == set(range(11))
    (total,) = curator.ask("SELECT SUM(CAST(x AS INT)) AS s FROM t", epsilon=10**6)
    assert total["s"] == 500


def test_an_answer_of_the_former_meaning_is_not_given_again(curator: Curator) -> None:
    """What was stored of a cast that cuts off stays under its own key, and means what it meant."""
    asked = curator._catalog.parse("SELECT SUM(CAST(x AS INT)) AS s FROM t")
    (aggregate,) = asked.aggregates
    assert isinstance(aggregate.argument, FunctionCall)
    assert aggregate.argument.function == "round_to_int"
    former = type(asked)(
        table=asked.table,
        source=asked.source,
        aggregates=(type(aggregate)(name="#1", kind="sum", argument=FunctionCall("to_int", (X,), Type.INT)),),
        outputs=asked.outputs,
    )
    assert replay(former) != replay(asked)
    (cut,) = curator.ask(former, epsilon=10**6)
    answer = curator.ask(asked, epsilon=10**6)
    assert not answer.replayed
    assert (cut["s"], answer[0]["s"]) == (450, 500)
    assert curator.ask(former, epsilon=10**6).replayed
