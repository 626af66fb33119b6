"""Budgets side by side: errors as in an explanation, risks of the same event, and nothing read or spent."""

from __future__ import annotations

import math
from typing import Any

import pytest

import discreet
from discreet.accounting import risk
from discreet.curator.asking.choices import choose_epsilon
from discreet.errors import DiscreetError, InvalidParameter
from discreet.plan.model.schema import Limits
from discreet.privacy import ApproxDP, Budget, Neighbours, PureDP, events
from discreet.requests.request import CANDIDATES
from tests.curator.spies import BY_WARD, COUNT, Spy, clinic


def test_the_front_door_offers_it() -> None:
    assert discreet.choose_epsilon is choose_epsilon
    assert [choice.budget for choice in discreet.choose_epsilon().choices] == [PureDP(e) for e in CANDIDATES]


def test_a_count_needs_no_table() -> None:
    (choice,) = choose_epsilon([1]).choices
    assert choice.errors == {"count": 3.0}  # P(|Z| > 3) = 2 e^-4 / (1 + e^-1) = 0.027 <= 0.05 < P(|Z| > 2) = 0.073
    assert choice.risk == risk(events.Pure(1))
    assert "at most 13.6 %" in choice.words
    assert "73.2" in choice.words  # 73.11 in 100, rounded up


def test_printed_they_are_a_table() -> None:
    told = choose_epsilon([0.1, 1])
    lines = str(told).splitlines()
    assert lines[0].split() == [
        "budget",
        "error",
        "of",
        "count",
        "found",
        "of",
        "100",
        "people",
        "50",
        "%",
        "suspicion",
        "becomes",
    ]
    assert [line.split()[:3] for line in lines[2:4]] == [["epsilon=0.1", "±", "30"], ["epsilon=1", "±", "3"]]
    assert lines[-1] == "- Nothing was read and nothing was spent."
    assert told._repr_html_().count("<tr>") == 3


def test_a_mean_between_bounds() -> None:
    few, many = (choose_epsilon([1], bounds=(0, 100), rows=rows).choices[0].errors["mean"] for rows in (100, 10_000))
    assert math.isclose(few / many, 100, rel_tol=0.2)
    wide = choose_epsilon([1], bounds=(0, 1000), rows=100).choices[0].errors["mean"]
    assert math.isclose(wide / few, 10, rel_tol=0.01)


def test_a_relation_that_replaces_and_more_rows_of_one_person_need_more_noise() -> None:
    usual = choose_epsilon([1]).choices[0].errors["count"]
    assert choose_epsilon([1], limits=Limits(1, 5)).choices[0].errors["count"] > usual
    replaced = choose_epsilon([1], bounds=(0, 1), neighbours="replace", rows=100).choices[0].errors["mean"]
    assert replaced > choose_epsilon([1], bounds=(0, 1), rows=100).choices[0].errors["mean"]


def test_a_delta_makes_the_budget_approximate() -> None:
    (one,) = choose_epsilon([1], delta=1e-6).choices
    (same,) = choose_epsilon([Budget(epsilon=1, delta=1e-6)]).choices
    assert one == same
    assert one.budget == ApproxDP(1, "1e-6")
    assert "except with a probability of 1e-05" in one.words


def test_a_question_is_compared_as_it_would_be_explained() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=2, delta=1e-6), engine=spy)
    before = curator.verify()
    told = curator.choose_epsilon(BY_WARD, [0.1, 0.5], rows=500)
    for choice, epsilon in zip(told.choices, (0.1, 0.5), strict=True):
        explained = curator.explain(BY_WARD, epsilon=epsilon, rows=500)
        assert choice.errors == explained.errors
        assert choice.risk == risk(explained.event)
    assert told.columns == ("n", "cost")
    assert (spy.reads, curator.verify()) == (0, before)


def test_a_question_on_neighbours_that_replace() -> None:
    curator = clinic(Budget(epsilon=2), neighbours=Neighbours.REPLACE)
    (choice,) = curator.choose_epsilon(COUNT, [0.5]).choices
    assert choice.errors == curator.explain(COUNT, epsilon=0.5).errors


def test_records_and_charts_hold_every_budget() -> None:
    told = choose_epsilon([0.1, 1], bounds=(0, 10))
    assert [record["epsilon"] for record in told.records] == [0.1, 1.0]
    assert set(told.records[0]) == {
        "epsilon", "delta", "count_error", "mean_error", "power", "posterior", "guess", "words"
    }  # fmt: skip
    assert len(told.spec()["vconcat"]) == 4
    assert str(told).count("\n") == 7  # headings, a line, two budgets, four notes


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": []},
        {"candidates": "0.1"},
        {"candidates": [0]},
        {"candidates": [1], "delta": 1},
        {"candidates": [1], "bounds": (1, 1)},
        {"candidates": [1], "rows": 0},
        {"candidates": [1], "confidence": 1},
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        choose_epsilon(**wrong)


def test_a_question_that_is_refused_is_refused_here_too() -> None:
    curator = clinic(Budget(epsilon=2))
    for sql in ("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", "SELECT age FROM visits"):
        with pytest.raises(DiscreetError):
            curator.choose_epsilon(sql)
