"""What a service asks of questions: appointed analysts, no crumbs of a budget, exact amounts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import InvalidParameter, NotPermitted
from discreet.ledger import Ledger
from discreet.privacy import ZCDP, ApproxDP, Budget, PureDP, Unit
from discreet.requests.request import read_budget
from discreet.service.admission import check_least, require_listed

LEAST = Fraction(1, 1000)


def test_an_account_without_analysts_answers_the_owner_only() -> None:
    ledger = Ledger()
    ledger.stewardship.open_account("patients", unit=Unit("patient", "id"), budget=Budget(epsilon=1))
    ledger.stewardship.appoint("sam", "steward")
    ledger.admit("patients", "ana")  # as in a process of the owner's own
    for who in ("ana", "sam"):
        with pytest.raises(NotPermitted, match="No analysts are appointed"):
            require_listed(ledger, who, "patients")
    require_listed(ledger, "owner", "patients")
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    for who in ("ana", "sam", "owner"):
        assert require_listed(ledger, who, "patients").listed
    with pytest.raises(NotPermitted):
        require_listed(ledger, "ben", "patients")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": "0.001"}, None),
        ({"epsilon": 0.001}, None),
        ({"epsilon": "1/1000"}, None),
        ({"epsilon": "0.000999"}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "a"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": None, "within": 5, "max_epsilon": 1}, None),
        ({"within": 5, "max_epsilon": "1e-9"}, "max_epsilon"),
        ({"epsilon": 1, "profile": "1e-9"}, "profile"),
        ({"epsilon": "0.003", "questions": ["a", "b", "c"]}, None),
        ({"epsilon": "0.0029", "questions": ["a", "b", "c"]}, "epsilon"),
        ({"epsilon": "0.001", "questions": []}, None),
        ({"learner": "LinearRegression", "parameters": {"epsilon": 1e-6}}, "epsilon"),
        ({"learner": "LinearRegression", "parameters": {"epsilon": 1}}, None),
        ({"sql": "SELECT 1", "parameters": {"epsilon": 0}}, None),
        ({}, None),
    ],
)
def test_the_least_epsilon(arguments: dict[str, Any], name: str | None) -> None:
    if name is None:
        check_least(arguments, LEAST)
        return
    with pytest.raises(InvalidParameter) as error:
        check_least(arguments, LEAST)
    assert error.value.name == name


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        ({"epsilon": "2", "delta": "1e-6"}, ApproxDP(2, "1e-6")),
        ({"epsilon": "1/3"}, PureDP("1/3")),
        ({"epsilon": 0.1, "delta": None}, PureDP("0.1")),
        ({"rho": 1, "delta": "1e-9"}, ZCDP(1, "1e-9")),
    ],
)
def test_budgets_are_read_exactly(given: dict[str, Any], budget: Any) -> None:
    assert read_budget(given) == budget


@pytest.mark.parametrize(
    "given",
    [
        None,
        7,
        "epsilon=1",
        [],
        {},
        {"epsilon": "x"},
        {"epsilon": 0},
        {"epsilon": 1, "rho": 1},
        {"delta": "1e-6"},
        {"epsilon": 1, "detla": 0},
        {"epsilon": "1" * 101},
        {"epsilon": "1", "delta": "1"},
        {"epsilon": {"a": 1}},
        {"epsilon": [1]},
    ],
)
def test_what_is_no_budget(given: object) -> None:
    with pytest.raises(InvalidParameter):
        read_budget(given)
