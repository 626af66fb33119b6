"""Profiles under the ledger: paid once, kept, found again, and what answers say because of them."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import InsufficientBudget, InvalidParameter, UnknownTable
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.curator.clinic import DECLARED, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"


def clinic(**declared: Any) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    given = {"unit": "patient", "budget": Budget(epsilon=100), "max_rows": 2, **DECLARED, **declared}
    curator.protect(visits(3, patients=60, most=9), name="visits", **given)
    return curator


def test_a_profile_is_paid_once_and_kept() -> None:
    curator = clinic()
    bought = curator.profile("visits", epsilon=5)
    assert str(curator.budget("visits").spent) == "epsilon=5"
    assert str(curator.profile("visits", epsilon=2)) == str(bought)
    assert str(curator.budget("visits").spent) == "epsilon=5"
    assert curator.profile("visits", epsilon=6).epsilon == 6
    assert str(curator.budget("visits").spent) == "epsilon=11"
    curator.verify()


def test_a_key_charges_once() -> None:
    curator = clinic()
    first, again = (curator.profile("visits", epsilon=1, key="mine") for _ in range(2))
    assert str(first) == str(again)
    assert str(curator.budget("visits").spent) == "epsilon=1"


def test_answers_say_what_they_leave_out_from_then_on() -> None:
    curator = clinic()
    before = curator.ask(COUNT, epsilon=1)
    assert before.coverage is None
    assert before.scope == "what was counted"
    curator.profile("visits", epsilon=20)
    after = curator.ask(COUNT, epsilon=1)
    assert after.replayed
    assert after.coverage is not None
    rows = visits(3, patients=60, most=9)
    people: dict[int, int] = {}
    for row in rows:
        people[row["patient"]] = people.get(row["patient"], 0) + 1
    truth = sum(max(0, n - 2) for n in people.values()) / len(rows)
    found = after.coverage["n"]
    assert found.low <= truth <= found.high
    assert found.share == pytest.approx(truth, abs=0.1)
    assert "Coverage of n" in str(after)
    assert "left out" in after._repr_html_()


def test_a_filter_leaves_a_number_and_no_share() -> None:
    curator = clinic(most_rows=9)
    curator.profile("visits", epsilon=20)
    found = curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 50", epsilon=1).coverage
    assert found is not None
    assert found["n"].share is None
    assert 0 < found["n"].rows.high < 400


def test_of_joined_rows_and_other_keys_nothing_is_known() -> None:
    curator = clinic(budget=Budget(epsilon=100, delta=1e-3))
    curator.profile("visits", epsilon=20)
    for sql in (
        "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
        "SELECT COUNT(*) AS n FROM (SELECT patient, SUM(charge) AS c FROM visits GROUP BY patient)",
    ):
        assert curator.ask(sql, epsilon=1).coverage is None


def test_groups_and_values_are_told() -> None:
    curator = clinic(max_groups=2, most_rows=9)
    curator.profile("visits", epsilon=50)
    answer = curator.ask("SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward", epsilon=1)
    assert answer.coverage is not None
    assert answer.coverage["age"].clipped is not None
    assert answer.coverage["n"].clipped is None
    assert 0 <= answer.coverage["n"].low <= answer.coverage["n"].high <= 1


def test_another_version_of_the_data_has_no_profile() -> None:
    curator = clinic()
    curator.profile("visits", epsilon=5)
    rows = visits(4)
    curator.protect(rows, name="visits", unit="patient", max_rows=2, version="next", **DECLARED)
    assert curator.ask(COUNT, epsilon=1).coverage is None


def test_a_question_buys_both_or_nothing() -> None:
    curator = clinic(budget=Budget(epsilon=1))
    with pytest.raises(InsufficientBudget):
        curator.ask(COUNT, epsilon=0.7, profile=0.5)
    assert str(curator.budget("visits").spent) == "epsilon=0"
    assert curator.ask(COUNT, epsilon=0.5, profile=0.5).coverage is not None
    assert str(curator.budget("visits").remaining) == "epsilon=0"


def test_bad_parameters_cost_nothing() -> None:
    curator = clinic()
    with pytest.raises(UnknownTable):
        curator.profile("nothing", epsilon=1)
    wrongs: list[dict[str, Any]] = [{"columns": ["no"]}, {"by": ["patient"]}, {"epsilon": 0}, {"by": [("ward", "no")]}]
    for wrong in wrongs:
        with pytest.raises(InvalidParameter):
            curator.profile("visits", **{"epsilon": 1, **wrong})
    assert str(curator.budget("visits").spent) == "epsilon=0"


def test_what_the_intervals_are_about() -> None:
    rows = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    domain = {"age": (0, 120)}
    rows.protect(visits(3), name="visits", budget=Budget(epsilon=100), domain=domain, **DECLARED)
    scopes = {
        "COUNT(*)": "whole table",
        "SUM(age)": "whole table",
        "AVG(age)": "whole table",
        "SUM(charge)": "what was counted",
        "MAX(age)": "what was counted",
        "COUNT(*) + SUM(age)": "whole table",
    }
    for sql, scope in scopes.items():
        assert rows.ask(f"SELECT {sql} AS x FROM visits WHERE kind = 'fever'", epsilon=1).scope == scope, sql
    people = clinic()
    assert people.ask("SELECT COUNT(DISTINCT patient) AS n FROM visits", epsilon=1).scope == "whole table"
    by_ward = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward"
    assert people.ask(by_ward, epsilon=1).scope == "what was counted"


def test_facts_change_no_declaration_and_no_number() -> None:
    plain, factual = clinic(), clinic(most_rows=9, domain={"age": (0, 120)})
    assert [entry.body for entry in plain.history("visits")][1] == [e.body for e in factual.history("visits")][1]
    assert plain.ask(COUNT, epsilon=1).records == factual.ask(COUNT, epsilon=1).records
    with pytest.raises(InvalidParameter, match="most_rows"):
        clinic(most_rows=0)
    with pytest.raises(InvalidParameter, match="domain"):
        clinic(domain={"ward": (0, 1)})


def test_with_a_fact_a_count_is_of_the_whole_table() -> None:
    """Of 20 curators at most 6 may miss: more has a chance below 1e-4 if each does with 1/20."""
    rows = visits(3, patients=60, most=9)
    misses = 0
    for seed in range(20):
        curator = Curator.for_tests(engine=Memory(), bits=SeededBits(seed))
        given = {"unit": "patient", "budget": Budget(epsilon=100), "max_rows": 2, "most_rows": 9, **DECLARED}
        curator.protect(rows, name="visits", **given)
        answer = curator.ask(COUNT, epsilon=1, profile=8)
        assert answer.scope == "whole table"
        (record,) = answer
        assert record["n_low"] <= record["n"] <= record["n_high"]
        misses += not record["n_low"] <= len(rows) <= record["n_high"]
    assert misses <= 6
    assert any("added to counts" in note for note in answer.notes)
    assert curator.ask(f"{COUNT} WHERE age > 3", epsilon=1).scope == "what was counted"
