"""What was released can be read back from the ledger's text of a question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discreet.plan.canonical import canonical, recall, replay
from discreet.sql.select import parse
from tests.plan.tables import SCHEMAS

QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT ward, COUNT(*) AS n, SUM(charge) FROM visits WHERE age >= 40 AND ward <> 'C' GROUP BY ward HAVING n > 3",
    "SELECT CASE WHEN age < 18 THEN 'minor' END AS band, AVG(charge / 3.5) FROM visits GROUP BY 1 ORDER BY 2 LIMIT 4",
    "SELECT ward, age, COUNT(*) AS n FROM visits GROUP BY CUBE (ward, age)",
)


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_released_part_comes_back(text: str) -> None:
    asked = parse(text, SCHEMAS)
    found = recall(canonical(asked), asked)
    assert found is not None
    assert replay(found) == replay(asked)
    assert found == replace(asked, outputs=(), having=None, order=(), limit=None, aggregates=found.aggregates)


def test_questions_of_other_rows_and_versions_do_not() -> None:
    asked = parse(QUESTIONS[0], SCHEMAS)
    text = canonical(asked)
    assert recall(text, replace(asked, table="staff")) is None
    assert recall(text.replace('"version":1', '"beside":[[]],"version":1'), asked) is None
    assert recall(text.replace('"version":1', '"version":2'), asked) is None
    assert recall(text.replace('"kind":"count"', '"kind":"count","argument":["forgotten","int"]'), asked) is None
