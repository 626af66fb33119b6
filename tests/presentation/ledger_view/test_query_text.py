"""What was asked, in words: the SQL as it was written, or the plan; whatever stands there, never an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Curator, count
from discreet.engines import Memory
from discreet.ledger import Entry
from discreet.presentation.ledger_view.query_text import asked_text, plan_text
from discreet.privacy import Budget

ROWS = [{"ward": "A", "age": 40}, {"ward": "B", "age": 60}]


@pytest.fixture
def curator() -> Curator:
    found = Curator(engine=Memory())
    types, bounds = {"ward": "text", "age": "int"}, {"age": (0, 99)}
    found.protect(ROWS, name="visits", types=types, budget=Budget(epsilon=9), bounds=bounds)
    return found


def charge(curator: Curator) -> Entry:
    return [entry for entry in curator.entries() if entry.kind == "charge"][-1]


def test_the_text_is_no_part_of_what_a_question_is(curator: Curator) -> None:
    """In other words it is the same question: charged once under a key, and replayed without one."""
    curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1, key="k")
    assert curator.ask("select count(*) as n  from visits", epsilon=1, key="k").replayed
    assert curator.ask("SELECT COUNT(*) n FROM visits -- again", epsilon=1).replayed
    assert asked_text(charge(curator).content) == "SELECT COUNT(*) AS n FROM visits"
    curator.verify()


def test_each_way_to_ask_is_told(curator: Curator) -> None:
    curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > ?", parameters=[30], epsilon=1)
    assert asked_text(charge(curator).content) == "SELECT COUNT(*) AS n FROM visits WHERE age > ? -- $1 = 30"
    curator.table("visits").where("age >= 40").agg(n=count()).ask(epsilon=1)
    assert "sql" not in charge(curator).content
    assert asked_text(charge(curator).content) == "n = COUNT() of visits where age >= 40"
    asked = ["SELECT COUNT(*) AS a FROM visits WHERE age > 7", "SELECT SUM(age) AS b FROM visits"]
    curator.ask_many(asked, epsilon=1)
    (batch,) = [entry for entry in curator.entries() if ";\n" in entry.content.get("sql", "")]
    assert asked_text(batch.content) == ";\n".join(asked)
    assert plan_text(batch.content["question"]) == "a = COUNT() of visits where age > 7; b = SUM(age) of visits"
    curator.profile("visits", epsilon=1)
    assert asked_text(charge(curator).content) == "profile of visits"


PARTS = st.sampled_from(["outputs", "keys", "where", "fit"])
Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PARTS, inner),
    max_leaves=9,
)


@given(found=Json)
def test_whatever_a_ledger_holds_is_told(found: object) -> None:
    assert isinstance(plan_text(json.dumps(found)), str)
    assert isinstance(plan_text(found), str)
