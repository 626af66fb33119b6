"""UNION ALL of answers: rows of several questions for one charge, and what is asked for alike is paid once."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from discreet import audit
from discreet.errors import UnsupportedQuery
from discreet.measurement.program import execution
from discreet.plan.canonical import canonical, replay
from discreet.privacy import Neighbours, events
from discreet.sql.select import parse
from tests.audit.held import clinic
from tests.cases import try_all
from tests.curator.clinic import visits
from tests.curator.test_together import ROWS, hospital
from tests.effort import some
from tests.plan.tables import SCHEMAS

TWICE = "SELECT 'once' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'twice', 2 * COUNT(*) FROM visits"
ASKED = (
    (
        "SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY ward "
        "UNION ALL SELECT 'all', COUNT(*), AVG(age) FROM visits"
    ),
    (
        "SELECT 'visits' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'labs', COUNT(*) FROM labs UNION ALL "
        "SELECT 'people', COUNT(DISTINCT id) FROM labs ORDER BY n DESC, what LIMIT 2 OFFSET 1"
    ),
    "(SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY 1) UNION ALL (SELECT 'old', 1.5 FROM labs GROUP BY ward)",
    (
        "SELECT * FROM (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY 1 HAVING n > 3 UNION ALL SELECT ward, "
        "RANK() OVER (ORDER BY ward) FROM labs GROUP BY ward) AS t WHERE w <> 'A' ORDER BY ALL"
    ),
    (
        "WITH old AS (SELECT id, age FROM visits WHERE age > 20), a AS (SELECT SUM(age) AS s FROM old) "
        "SELECT * FROM a UNION ALL SELECT COUNT(*) FROM old"
    ),
    "FROM visits SELECT DISTINCT ward UNION ALL FROM labs SELECT DISTINCT ward",
)


def rounded(rows: list[Any]) -> list[Any]:
    return [tuple(round(value, 3) if isinstance(value, float) else value for value in row) for row in rows]


def test_without_noise_rows_are_those_of_plain_sql() -> None:
    plain = duckdb.connect()
    for table in ("visits", "labs"):
        plain.register(table, pl.DataFrame(ROWS).to_arrow())
    with hospital() as curator:

        def same(sql: str) -> None:
            answer = curator.ask(sql, epsilon=10**12, delta="1e-6")
            names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
            found = rounded([tuple(row[name] for name in names) for row in answer])
            expected = rounded(plain.execute(sql).fetchall())
            in_order = "ORDER BY" in sql.rpartition(")")[2] or "LIMIT" in sql
            assert found == expected if in_order else sorted(found, key=repr) == sorted(expected, key=repr)
            assert len(curator.rehearse(sql).columns) == len(answer.columns)

        try_all(some(ASKED, 2), same)


def test_what_is_asked_for_alike_is_released_and_paid_once() -> None:
    with hospital() as curator:
        answer = curator.ask(TWICE, epsilon=1, delta=0)
        alone = curator.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1, delta=0)
        assert answer.event == events.Composed([alone.event])
        assert answer[1]["n"] == 2 * answer[0]["n"]
        assert answer[0]["n_high"] - answer[0]["n"] == alone.errors["n"]
        other = curator.explain(
            TWICE.replace("twice', 2 * COUNT(*) FROM visits", "twice', COUNT(age) FROM visits"), epsilon=1
        )
        assert len(other.event.events) == 2  # type: ignore[attr-defined]


def test_a_question_beside_others_is_not_mistaken_for_a_union() -> None:
    """Both have the same releases in the replay form; those of a scalar question are two, and stay two."""
    with hospital() as curator:
        both = curator.ask("SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM visits) AS m FROM visits", epsilon=1, delta=0)
        assert len(both.event.events) == 2  # type: ignore[attr-defined]
        union = curator.ask(TWICE, epsilon=1, delta=0)
        assert not union.replayed
        again = curator.ask("SELECT COUNT(*) AS n, (SELECT COUNT(*) FROM visits) AS m FROM visits", epsilon=1, delta=0)
        assert again.replayed
        assert again.records == both.records


def test_forms_tell_unions_apart() -> None:
    one, other = (parse(text, SCHEMAS) for text in (TWICE, TWICE.replace("once", "first")))
    assert canonical(one) != canonical(other)
    assert replay(one) == replay(other)


PRIVATE = (
    TWICE,
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind UNION ALL SELECT ward, SUM(charge) FROM visits GROUP BY ward",
    "SELECT kind, AVG(age) AS a FROM visits GROUP BY kind UNION ALL SELECT 'all', MEDIAN(age) FROM visits ORDER BY 2",
    "SELECT DISTINCT kind FROM visits UNION ALL SELECT ward FROM visits GROUP BY ward",
)
PATIENTS = visits(3, patients=40)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_one_person_moves_no_input_farther_than_charged(relation: Neighbours) -> None:
    found = audit.query(clinic(neighbours=relation), PRIVATE, PATIENTS, neighbours=4)
    assert found.passed, found.summary()


def test_mutant_alike_questions_are_released_apart_for_one_price(monkeypatch: pytest.MonkeyPatch) -> None:
    right = execution._beside

    def apart(program: Any, *more: Any) -> Any:
        object.__setattr__(program, "alike", ())
        return right(program, *more)

    monkeypatch.setattr(execution, "_beside", apart)
    found = audit.query(clinic(), TWICE, PATIENTS, neighbours=2)
    assert "uncharged" in {violation.kind for violation in found.violations}


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) AS n FROM visits UNION SELECT COUNT(*) FROM labs", "which rows are equal"),
        ("SELECT COUNT(*) AS n FROM visits UNION ALL SELECT 1, COUNT(*) FROM labs", "columns"),
        ("SELECT COUNT(*) AS n FROM visits UNION ALL SELECT ward FROM labs GROUP BY ward", "two types"),
        ("SELECT COUNT(*) AS n FROM visits UNION ALL SELECT age FROM labs", "neither a key"),
        ("SELECT COUNT(*) AS n FROM visits UNION ALL (SELECT COUNT(*) FROM labs LIMIT 1)", "belong at the end"),
        ("SELECT COUNT(*) AS n FROM visits EXCEPT SELECT COUNT(*) FROM labs", "several questions"),
        ("SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) FROM labs)", "combined"),
        ("SELECT COUNT(*) AS n FROM visits" + " UNION ALL SELECT COUNT(*) FROM labs" * 8, "More than 8"),
        ("SELECT 1 AS n FROM visits UNION ALL SELECT 2 FROM labs", "Nothing is counted"),
        (
            "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT (SELECT COUNT(*) FROM labs) + COUNT(*) FROM labs",
            "has no place there",
        ),
    ],
)
def test_what_is_refused(sql: str, reason: str) -> None:
    with hospital() as curator:
        with pytest.raises(UnsupportedQuery) as refused:
            curator.ask(sql, epsilon=1)
        assert reason in refused.value.reason
        assert refused.value.hint
        for proposed in refused.value.hint.split("`")[1::2]:
            curator.explain(proposed, epsilon=1, delta="1e-6")


def test_people_of_two_accounts_do_not_stand_together() -> None:
    with hospital(other="others") as curator, pytest.raises(UnsupportedQuery, match="different accounts"):
        curator.ask("SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) FROM labs", epsilon=1)
