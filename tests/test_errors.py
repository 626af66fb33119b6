"""Errors carry fields, and their sentences help without giving anything away."""

from __future__ import annotations

import traceback
from fractions import Fraction

import pytest

from discreet import check, errors
from discreet.sql.select import parse

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
    assert str(budget) == "The charge needs 1/2. Remaining: 1/5. Ask for less."


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


def test_ipython_shows_a_short_message_with_a_pointer() -> None:
    """IPython calls `_render_traceback_` where an exception has it; plain Python does not."""
    text = "SELECT ward,\n  STRING_AGG(ward) FROM visits"
    try:
        parse(text, {})
    except errors.UnsupportedQuery as error:
        shown, plain = error._render_traceback_(), traceback.format_exception(error)
    assert shown[0] == "UnsupportedQuery: STRING_AGG would publish people's values."
    assert shown[1:3] == ["    STRING_AGG(ward) FROM visits", "    ^"]
    assert shown[3].startswith("Hint: ")
    assert plain[0].startswith("Traceback")


def test_ipython_shows_the_line_that_led_to_an_error() -> None:
    try:
        check.positive(epsilon=-1)  # this line
    except errors.InvalidParameter as error:
        error.add_note("Nothing was charged.")
        shown = error._render_traceback_()
    assert shown[0] == "InvalidParameter: Expected epsilon=-1 > 0."
    assert shown[1].endswith(": check.positive(epsilon=-1)  # this line")
    assert shown[2:] == ["Hint: Pass a positive number, e.g. epsilon=0.1.", "Nothing was charged."]


def test_our_own_mistakes_are_shown_in_full() -> None:
    assert errors.InternalError("broken")._render_traceback_()[-1] == "discreet.errors.InternalError: broken\n"


def test_pointers_stay_within_a_line() -> None:
    long = "SELECT " + "x + " * 200 + "STRING_AGG(y) FROM t"
    told = errors.explain_error(errors.UnsupportedQuery("No.", "Ask.", (1, long.index("STRING") + 1), text=long))
    _, line, mark = told["Position"].splitlines()
    assert len(line) <= 102
    assert line[mark.index("^") :].startswith("STRING_AGG")
    seen = errors.explain_error(errors.UnsupportedQuery("No.", "Ask.", (1, 3), text="a\x1b\u202ex"))["Position"]
    assert seen.splitlines()[1:] == ["  a  x", "    ^"]
    for place in ((0, 1), (3, 1)):
        assert "\n" not in errors.explain_error(errors.UnsupportedQuery("No.", "Ask.", place, text="a\nb"))["Position"]
    assert errors.explain_error(errors.UnsupportedQuery("No.", "Ask.")) == {"UnsupportedQuery": "No.", "Hint": "Ask."}


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_every_error_can_be_shown(error: errors.DiscreetError) -> None:
    assert error._render_traceback_()[0 if not isinstance(error, errors.InternalError) else -1].strip()
