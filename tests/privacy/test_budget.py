"""Budgets, units and neighbours: what the edge accepts and what it refuses."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InsufficientBudget, InvalidParameter
from discreet.privacy import ZCDP, ApproxDP, Budget, Loss, Neighbours, PureDP, Unit


@pytest.mark.parametrize(
    ("arguments", "loss"),
    [
        ({"epsilon": 1}, PureDP(1)),
        ({"epsilon": "0.01"}, PureDP(Fraction(1, 100))),
        ({"epsilon": Decimal("0.1")}, PureDP(Fraction(1, 10))),
        ({"epsilon": np.float64(0.1)}, PureDP(Fraction(1, 10))),
        ({"epsilon": 2, "delta": 1e-6}, ApproxDP(2, Fraction(1, 10**6))),
        ({"rho": 0.1}, ZCDP(Fraction(1, 10))),
        ({"rho": 0.1, "delta": 1e-9}, ZCDP(Fraction(1, 10), Fraction(1, 10**9))),
    ],
)
def test_a_budget_is_the_loss_its_amounts_name(arguments: dict[str, Any], loss: Loss) -> None:
    assert Budget(**arguments) == loss


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "epsilon"),
        ({"delta": 1e-6}, "delta"),
        ({"rho": 1, "epsilon": 1}, "rho"),
        ({"rho": 1, "epsilon": 1, "delta": 1e-6}, "rho"),
        ({"epsilon": 1, "delta": 1}, "delta"),
        ({"rho": 1, "delta": 2}, "delta"),
    ],
)
def test_wrong_mixtures_are_refused(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        Budget(**arguments)
    assert refusal.value.name == name
    assert refusal.value.hint


def test_a_refusal_reads_well() -> None:
    text = str(InsufficientBudget(requested=PureDP(0.5), remaining=PureDP(0.2)))
    assert text == "The charge needs epsilon=0.5. Remaining: epsilon=0.2."


def test_neighbours_accept_their_names_and_nothing_else() -> None:
    assert Neighbours("add_remove") is Neighbours.ADD_REMOVE
    assert Neighbours(Neighbours.REPLACE) is Neighbours.REPLACE
    strangers: list[object] = ["ADD_REMOVE", "swap", "", None, 1, [], {}]
    for wrong in strangers:
        with pytest.raises(InvalidParameter) as refusal:
            Neighbours(wrong)
        assert (refusal.value.name, refusal.value.value) == ("neighbours", wrong)


def test_units() -> None:
    assert Unit.row() == Unit("row")
    assert Unit.row().is_row
    assert Unit("patient", "id") == Unit("patient", ["id"])
    assert not Unit("patient", "id").is_row
    assert hash(Unit("day", ("id", "day"))) == hash(Unit("day", ["id", "day"]))
    assert str(Unit.row()) == "row"


@pytest.mark.parametrize(
    ("name", "columns", "parameter"),
    [
        ("", (), "name"),
        (" ", (), "name"),
        (1, (), "name"),
        ("a", [""], "columns"),
        ("a", ["b", "b"], "columns"),
        ("a", 3, "columns"),
        ("a", [3], "columns"),
    ],
)
def test_units_refuse_what_names_nothing(name: Any, columns: Any, parameter: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        Unit(name, columns)
    assert refusal.value.name == parameter
