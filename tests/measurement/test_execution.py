"""Rows of an answer from released groups: what is shown does not depend on the risk of an interval."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from discreet.measurement.program.execution import finish_rows
from discreet.plan.expressions.calls import call
from discreet.plan.model.group_columns import ColumnarRows
from discreet.plan.model.nodes import Aggregate, ColumnRef, Literal, Output, Question, SortKey
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import Cell, NoisyNumber

MEAN, COUNT = ColumnRef("#1", Type.FLOAT), ColumnRef("#2", Type.INT)
ASKED = Question(
    table="visits",
    aggregates=(Aggregate(name="#1", kind="mean", argument=MEAN), Aggregate(name="#2", kind="count")),
    outputs=(Output("mean", MEAN), Output("both", call("add", MEAN, COUNT))),
    having=call("greater", MEAN, Literal(0.0, Type.FLOAT)),
    order=(SortKey(MEAN, False),),
)


def test_having_and_order_decide_alike_at_every_risk() -> None:
    """A mean near its bounds moves with the risk; an output of two aggregates is made at half of it."""

    def groups(outside: Fraction) -> ColumnarRows[Cell]:
        near = 1.0 if outside > Fraction(1, 30) else -1.0
        rows: list[dict[str, Cell]] = [
            {"#1": NoisyNumber(near, near - 1, near + 1), "#2": NoisyNumber(3, 2, 4)},
            {"#1": NoisyNumber(None if near < 0 else 0.5, 0.0, 1.0), "#2": NoisyNumber(5, 4, 6)},
        ]
        return ColumnarRows.of(rows)

    program: Any = SimpleNamespace(question=ASKED, estimators={"#1": None, "#2": None})
    rows = finish_rows(program, groups, Fraction(19, 20))
    assert [row["mean"] for row in rows] == [NoisyNumber(0.5, 0.0, 1.0), NoisyNumber(1.0, 0.0, 2.0)]
    assert [(both.value, both.low, both.high) for row in rows if isinstance(both := row["both"], NoisyNumber)] == [
        (5.5, 4, 7),
        (4.0, 0, 5),
    ]
