"""What is computed from private groups: refused before it is charged, or about the groups shown, and said to be."""

from __future__ import annotations

import re
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget

SESSIONS = 60
ROWS = [
    {
        "person": f"p{i % 40}",
        "session": i % SESSIONS,
        "ward": "AB"[i % 2],
        "x": i % 7,
        "day": f"d{i % 3}",
    }
    for i in range(300)
]
TYPES = {"person": "text", "session": "int", "ward": "text", "x": "int", "day": "text"}
INNER = "SELECT session, SUM(x) AS d, COUNT(*) AS n FROM log GROUP BY session"


def logs(*, unit: str | None = "person", delta: str | None = "1e-3", seed: int = 3) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(seed))
    budget = Budget(epsilon=10**7) if delta is None else Budget(epsilon=10**7, delta=delta)
    declared: dict[str, Any] = {"bounds": {"x": (0, 6)}, "keys": {"ward": ["A", "B"]}, "account": "people"}
    curator.protect(ROWS, name="log", unit=unit, types=TYPES, budget=budget, **{"max_rows": 1, **declared})
    if unit is not None:
        people = [{"person": f"p{i}", "sex": "mf"[i % 2], "club": f"c{i % 5}"} for i in range(40)]
        texts = {"person": "text", "sex": "text", "club": "text"}
        curator.protect(people, name="people", unit="person", max_rows=1, types=texts, account="people")
    return curator


ADDING = {
    "count and mean": f"SELECT COUNT(*) AS n, AVG(d) AS m FROM ({INNER})",
    "count": f"SELECT COUNT(*) AS n FROM ({INNER})",
    "count of keys": "SELECT COUNT(*) AS k FROM (SELECT session FROM log GROUP BY session)",
    "by place": "SELECT COUNT(*) FROM (SELECT session FROM log GROUP BY 1)",
    "sum": f"SELECT SUM(n) AS rows_of_all FROM ({INNER}) AS t",
    "extremes": f"SELECT MIN(d) AS low, MAX(n) AS high FROM ({INNER})",
    "with": f"WITH s AS ({INNER}) SELECT AVG(d) AS m FROM s WHERE n > 1",
    "with twice": (
        "WITH a AS (SELECT * FROM log WHERE x > 1), s AS (SELECT session, SUM(x) AS d FROM a GROUP BY session) "
        "SELECT AVG(d) AS m FROM s"
    ),
    "having": "SELECT COUNT(*) AS n FROM (SELECT session, COUNT(*) AS k FROM log GROUP BY session HAVING COUNT(*) > 2)",
    "having outside": f"SELECT AVG(d) AS m FROM ({INNER}) HAVING COUNT(*) > 2",
    "nested twice": (
        "SELECT AVG(c) AS m FROM (SELECT ward, COUNT(*) AS c FROM "
        "(SELECT ward, session FROM log GROUP BY ward, session) GROUP BY ward)"
    ),
    "by a public key": "SELECT ward, COUNT(*) AS n FROM (SELECT ward, session FROM log GROUP BY 1, 2) GROUP BY ward",
    "filtered": f"SELECT COUNT(*) FILTER (WHERE d > 10) AS n FROM ({INNER})",
    "of a join": (
        "SELECT COUNT(*) AS n FROM (SELECT p.club, COUNT(*) AS k FROM log AS l JOIN people AS p "
        "ON l.person = p.person GROUP BY p.club)"
    ),
    "totals": "SELECT COUNT(*) AS n FROM (SELECT session, COUNT(*) AS k FROM log GROUP BY ROLLUP (session))",
    "joined groups": (
        f"SELECT COUNT(*) AS n FROM ({INNER}) AS a JOIN (SELECT session, COUNT(*) AS e FROM log WHERE x > 2 "
        "GROUP BY session) AS b USING (session)"
    ),
    "one key is private": "SELECT SUM(n) AS n FROM (SELECT ward, day, COUNT(*) AS n FROM log GROUP BY ward, day)",
    "union": f"SELECT COUNT(*) AS n FROM log UNION ALL SELECT COUNT(*) AS n FROM ({INNER})",
}


NOT_REWRITTEN = ("joined groups",)


def proposals(refused: UnsupportedQuery) -> list[str]:
    return re.findall("`([^`]*)`", refused.hint)


def groups_first(refused: UnsupportedQuery) -> str | None:
    found = re.search("ask for the groups first, `([^`]*)`", refused.hint, re.IGNORECASE)
    return found and found[1]


def refusal(curator: Curator, sql: str, epsilon: float = 1) -> UnsupportedQuery:
    with pytest.raises(UnsupportedQuery, match="inner groups are private") as refused:
        curator.ask(sql, epsilon=epsilon)
    return refused.value


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ADDING)
def test_private_groups_are_not_added_up_as_if_they_were_all(name: str) -> None:
    """Refused by all verbs before anything is charged; each proposal is asked as it is written, and answered."""
    curator, sql = logs(), ADDING[name]
    found = proposals(refusal(curator, sql))
    with pytest.raises(UnsupportedQuery, match="inner groups are private"):
        curator.explain(sql, epsilon=1)
    with pytest.raises(UnsupportedQuery, match="inner groups are private"):
        curator.choose_epsilon(sql)
    with pytest.raises(UnsupportedQuery, match="inner groups are private"):
        curator.ask_many(["SELECT COUNT(*) AS n FROM log", sql], epsilon=1)
    assert str(curator.budget("people").spent) == "epsilon=0"
    assert bool(found) is (name not in NOT_REWRITTEN)
    for text in found:
        assert curator.ask(text, epsilon=1).columns


def test_a_proposal_counts_all_groups() -> None:
    """At a huge epsilon the distinct count is the number of sessions; what was shown before was a part of them."""
    curator = logs()
    (text, *_) = proposals(refusal(curator, ADDING["count"], 10**5))
    (counted,) = curator.ask(text, epsilon=10**5, limits=Limits(rows=SESSIONS))
    assert counted["n"] == SESSIONS
    assert counted["n_low"] <= SESSIONS <= counted["n_high"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ADDING)
def test_what_is_stored_is_computed_from_the_groups_shown_and_says_so(name: str) -> None:
    curator, sql = logs(), ADDING[name]
    first = groups_first(refusal(curator, sql, 2))
    assert (first is None) is (name in ("joined groups", "union"))
    if first is None:
        return
    assert curator.ask(first, epsilon=2).cost is not None
    spent = curator.budget("people").spent
    assert curator.explain(sql, epsilon=2).free
    answer = curator.ask(sql, epsilon=2)
    assert answer.replayed
    assert curator.budget("people").spent == spent
    names = [name for name in answer.columns if not name.endswith(("_low", "_high")) and name != "ward"]
    (note,) = [note for note in answer.notes if "computed from the groups shown" in note]
    assert all(name in note.partition(":")[0].split(", ") for name in names)
    refusal(curator, sql, 400)  # which would need a new charge


def test_a_count_is_that_of_the_groups_shown() -> None:
    curator = logs()
    shown = curator.ask(INNER, epsilon=200)
    (counted,) = curator.ask(ADDING["count"], epsilon=200)
    (kept,) = curator.ask(ADDING["filtered"], epsilon=200)
    assert 0 < len(shown) < SESSIONS  # at most one session of each person, of 40
    assert counted["n"] == len(shown)
    assert kept["n"] == sum(row["d"] > 10 for row in shown)


def test_groups_of_one_batch_are_stored() -> None:
    """In either order: the groups are paid for once, and what adds them up is told of."""
    adding = f"SELECT SUM(n) AS n, AVG(d) AS d FROM ({INNER})"
    for texts in ([INNER, adding], [adding, INNER]):
        curator = logs()
        answers = curator.ask_many(texts, epsilon=200)
        told = next(answer for answer in answers if len(answer) == 1)
        assert any("computed from the groups shown" in note for note in told.notes)
        assert str(curator.budget("people").spent) == "epsilon=200, delta=1e-05"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n, SUM(k) AS k FROM (SELECT ward, COUNT(*) AS k FROM log GROUP BY ward)",
        f"SELECT * FROM ({INNER}) ORDER BY n DESC LIMIT 5",
        "SELECT COUNT(*) AS n FROM (SELECT person, session, SUM(x) AS d FROM log GROUP BY person, session)",
        f"SELECT session, n, RANK() OVER (ORDER BY n DESC) AS place FROM ({INNER})",
    ],
)
def test_complete_groups_and_groups_by_themselves_are_answered(sql: str) -> None:
    answer = logs().ask(sql, epsilon=200)
    noted = any("computed from the groups shown" in note for note in answer.notes)
    assert noted is ("RANK" in sql)


def test_rows_that_are_people_and_plans_without_a_text() -> None:
    curator = logs(unit=None)
    assert proposals(refusal(curator, ADDING["count"]))
    plan = curator._catalog.parse(ADDING["count"])
    with pytest.raises(UnsupportedQuery, match="Declare the keys, or"):
        curator.ask(plan, epsilon=1)


def test_the_check_is_what_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.curator.asking.planner.is_of_shown_groups", lambda _: False)
    (counted,) = logs().ask(ADDING["count"], epsilon=200)
    assert counted["n"] < SESSIONS
    assert "n_low" not in counted
