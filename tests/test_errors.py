"""Errors carry fields, and their sentences help without giving anything away."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet import errors

ALL = [
    errors.InvalidParameter("epsilon", -1, "> 0", "Pass more."),
    errors.InvalidValue("to be finite", "Clip it."),
    errors.UnsupportedEvent("event", "zCDP", "Use PLD."),
    errors.InsufficientBudget(Fraction(1, 2), Fraction(1, 5), "Ask for less."),
    errors.RandomnessUnavailable("none"),
    errors.InternalError("broken"),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_one_root(error: Exception) -> None:
    assert isinstance(error, errors.DiscreetError)
    assert str(error)


def test_fields_and_sentences() -> None:
    parameter, value, event, budget = ALL[:4]
    assert isinstance(parameter, errors.InvalidParameter)
    assert (parameter.name, parameter.value, parameter.condition, parameter.hint) == (
        "epsilon",
        -1,
        "> 0",
        "Pass more.",
    )
    assert str(parameter) == "Expected epsilon=-1 > 0. Pass more."
    assert isinstance(value, errors.InvalidValue)
    assert (value.condition, value.hint) == ("to be finite", "Clip it.")
    assert isinstance(event, errors.UnsupportedEvent)
    assert (event.event, event.method) == ("event", "zCDP")
    assert str(event) == "zCDP has no price for 'event'. Use PLD."
    assert isinstance(budget, errors.InsufficientBudget)
    assert (budget.requested, budget.remaining) == (Fraction(1, 2), Fraction(1, 5))
    assert str(budget) == "The charge needs 1/2; 1/5 remain. Ask for less."


def test_builtin_families() -> None:
    assert issubclass(errors.InvalidParameter, ValueError)
    assert issubclass(errors.InvalidValue, ValueError)
    assert issubclass(errors.UnsupportedEvent, TypeError)
    assert not issubclass(errors.RandomnessUnavailable, ValueError | TypeError)


@pytest.mark.parametrize(
    "value", ["x" * 10**6, 10**5000, list(range(10**5)), Fraction(10**5000, 7)], ids=["str", "int", "list", "fraction"]
)
def test_long_values_are_cut_short(value: object) -> None:
    assert len(str(errors.InvalidParameter("x", value, "to be short"))) < 200
    assert len(str(errors.UnsupportedEvent(value, "zCDP"))) < 200
