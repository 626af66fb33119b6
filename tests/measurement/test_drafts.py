"""Noise is chosen once for questions that differ in nothing it depends on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from discreet.measurement.program.program import Program, choose
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, FunctionCall, Literal, Output, Question
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type

X = ColumnRef("x", Type.FLOAT)
VISITS = TableSchema(
    name="visits",
    columns={"x": ColumnSchema(name="x", type=Type.FLOAT, bounds=ColumnBounds(Fraction(-1), Fraction(1)))},
)


def asked(where: Expression | None, *, argument: Expression = X) -> Question:
    total = Aggregate(name="#1", kind="sum", argument=argument)
    return Question(
        table="visits", aggregates=(total,), outputs=(Output("s", ColumnRef("#1", Type.FLOAT)),), where=where
    )


def chosen(question: Question, schema: TableSchema = VISITS, epsilon: str = "1/10") -> Program:
    return choose(question, schema, epsilon=Fraction(epsilon))


def above(value: float) -> Expression:
    return FunctionCall(function="greater", arguments=(X, Literal(value, Type.FLOAT)), type=Type.BOOL)


def test_questions_that_differ_in_their_conditions_share_noise_and_price() -> None:
    one, other = chosen(asked(above(0.25))), chosen(asked(above(0.5)))
    assert one.noise is other.noise
    assert one.event is other.event
    assert (one.reading.where, other.reading.where) == (above(0.25), above(0.5))


def test_everything_else_is_chosen_anew() -> None:
    wider = replace(VISITS, columns={"x": replace(VISITS.columns["x"], bounds=ColumnBounds(Fraction(-2), Fraction(2)))})
    programs = [chosen(asked(None)), chosen(asked(None), wider), chosen(asked(None), epsilon="1/5")]
    assert len({(program.noise, program.reading.statistics) for program in programs}) == len(programs)


def test_zeros_of_both_signs_are_told_apart() -> None:
    """They are equal, but not the same question."""
    read = []
    for zero in (0.0, -0.0):
        argument = FunctionCall(function="add", arguments=(X, Literal(zero, Type.FLOAT)), type=Type.FLOAT)
        read.append(repr(chosen(asked(None, argument=argument)).reading.statistics))
    assert [("-0.0" in one) for one in read] == [False, True]
