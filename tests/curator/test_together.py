"""Windows over groups, aggregates of aggregates and several questions in one: intervals, one charge, nobody's rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.program import group_steps as laws
from discreet.noise import SeededBits
from discreet.privacy import Budget, events
from tests.cases import every

GROUPS, PARTS = 500, 4
COUNTS = (3, 9, 5, 6)  # rows of each part


def crowd(seed: int = 7) -> Curator:
    rows = [{"g": g, "h": h, "x": x % 4} for g in range(GROUPS) for h in range(PARTS) for x in range(COUNTS[h])]
    made = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(seed))
    made.protect(
        pl.DataFrame(rows, schema=dict.fromkeys("ghx", pl.Int64)),
        name="t",
        bounds={"x": (0, 4)},
        keys={"g": list(range(GROUPS)), "h": list(range(PARTS))},
        budget=Budget(epsilon=10**6, delta="1e-3"),
    )
    return made


INNER = "(SELECT g, h, COUNT(*) AS n FROM t GROUP BY g, h)"
TOTAL = sum(COUNTS)
LAWFUL = {
    f"SELECT g, SUM(n) AS v FROM {INNER} GROUP BY g": TOTAL,
    f"SELECT g, AVG(n) AS v FROM {INNER} GROUP BY g": Fraction(TOTAL, PARTS),
    f"SELECT g, v FROM (SELECT g, h, SUM(n) OVER (PARTITION BY g) AS v FROM {INNER}) WHERE h = 0": TOTAL,
    f"SELECT g, v FROM (SELECT g, h, SUM(n) OVER (PARTITION BY g ORDER BY h) AS v FROM {INNER}) WHERE h = 2": 17,
    f"SELECT g, v FROM (SELECT g, h, LAG(n) OVER (PARTITION BY g ORDER BY h) AS v FROM {INNER}) WHERE h = 2": 9,
    f"SELECT g, ANY_VALUE(n) FILTER (WHERE h = 2) AS v FROM {INNER} GROUP BY g": 5,
}
CAUTIOUS = {
    f"SELECT g, v FROM (SELECT g, h, n * 1.0 / SUM(n) OVER (PARTITION BY g) AS v FROM {INNER}) WHERE h = 1": Fraction(
        9, TOTAL
    ),
    f"SELECT g, MAX(n) AS v FROM {INNER} GROUP BY g": 9,
    f"SELECT g, v FROM (SELECT g, h, RANK() OVER (PARTITION BY g ORDER BY n DESC) AS v FROM {INNER}) WHERE h = 3": 2,
    f"SELECT g, COUNT(*) AS v FROM {INNER} WHERE n > 5 GROUP BY g": 2,
    f"SELECT g, SUM(n) AS v FROM {INNER} WHERE n > 5 GROUP BY g": 15,
    (
        "SELECT g, COUNT(*) AS v FROM t WHERE h = 1 GROUP BY g UNION ALL "
        "SELECT g, COUNT(*) + 0 * SUM(x) FROM t WHERE h = 1 AND x >= 0 GROUP BY g"
    ): 9,
}


def hits(answer: Any, truth: Any) -> float:
    return float(sum(row["v_low"] - 1e-9 <= truth <= row["v_high"] + 1e-9 for row in answer) / len(answer))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("text", LAWFUL)
@pytest.mark.parametrize(("confidence", "delta"), [("0.5", "0"), ("0.9", "1e-6")])
def test_sums_over_groups_cover_as_the_law_of_their_noise_says(text: str, confidence: str, delta: str) -> None:
    """Of N = 500 independent intervals, four standard errors are allowed, and what whole ends and bounds add."""
    answer = crowd().ask(text, epsilon="0.02", delta=delta, confidence=confidence)
    p = float(confidence)
    slack = 4 * math.sqrt(p * (1 - p) / GROUPS)
    assert p - slack <= hits(answer, LAWFUL[text]) <= p + slack + 0.06


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", CAUTIOUS)
def test_other_intervals_cover_at_least(text: str) -> None:
    answer = crowd().ask(text, epsilon=1, delta=0, confidence="0.8")
    assert hits(answer, CAUTIOUS[text]) >= 0.8 - 4 * math.sqrt(0.8 * 0.2 / GROUPS)


def test_noise_of_a_sum_taken_for_that_of_one_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    reach = laws.SummedGroupNoise.reach
    monkeypatch.setattr(laws.SummedGroupNoise, "reach", lambda self, _: reach(self, 1))
    text = next(iter(LAWFUL))
    answer = crowd().ask(text, epsilon="0.02", delta=0, confidence="0.9")
    assert hits(answer, TOTAL) < 0.9 - 4 * math.sqrt(0.9 * 0.1 / GROUPS)


@pytest.mark.ci
@pytest.mark.parametrize(("epsilon", "delta"), [("2", "0"), ("2", "1e-6")])
def test_the_sum_over_many_groups_is_told_by_the_root_of_their_number(epsilon: str, delta: str) -> None:
    """2000 draws of a variance below 2 / 2^2: four standard deviations are 126, the sum of intervals is over 2000."""
    answer = crowd().ask(f"SELECT SUM(n) AS v FROM {INNER}", epsilon=epsilon, delta=delta, confidence="0.95")
    assert answer[0]["v_low"] <= GROUPS * TOTAL <= answer[0]["v_high"]
    assert answer[0]["v_high"] - answer[0]["v_low"] <= 2 * 4 * math.sqrt(2000 * 0.5) * (1 if delta == "0" else 4)


# -------------------------------------------------------------------------------------------------- several questions

TYPES = {"id": "int", "ward": "text", "age": "int"}
ROWS = [{"id": i // 2, "ward": "ABC"[i % 3], "age": i % 50} for i in range(120)]
SEVERAL = {
    "share": "SELECT ward, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM visits) AS share FROM visits GROUP BY ward",
    "having": "SELECT ward, AVG(age) AS m FROM visits GROUP BY ward HAVING AVG(age) > (SELECT AVG(age) - 1 "
    "FROM visits)",
    "numbers": "SELECT (SELECT COUNT(*) FROM labs) * 1.0 / (SELECT COUNT(*) FROM visits) AS each",
    "join": "WITH a AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward), "
    "b AS (SELECT ward, COUNT(*) AS k FROM labs GROUP BY ward) SELECT ward, n, k, n + k AS both FROM a "
    "JOIN b USING (ward)",
    "outer": "SELECT ward, n - (SELECT COUNT(*) FROM labs) AS less FROM "
    "(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > (SELECT COUNT(*) FROM labs) / 100",
    "union": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT 'all', COUNT(*) FROM labs "
    "ORDER BY n",
    "union of three": "SELECT 'visits' AS what, AVG(age) AS m FROM visits UNION ALL SELECT 'labs', AVG(age) FROM labs "
    "UNION ALL SELECT 'twice', 2 * AVG(age) FROM visits",
}


def hospital(rows: list[dict[str, Any]] | None = None, *, other: str = "people") -> Curator:
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    for name, account in (("visits", "people"), ("labs", other)):
        made.protect(
            list(ROWS if rows is None else rows),  # one list has one budget
            name=name,
            types=TYPES,
            unit="id",
            bounds={"age": (0, 50)},
            keys={"ward": ["A", "B", "C"]},
            budget=Budget(epsilon=10**14, delta="1e-3"),
            account=account,
            max_groups=3,
            max_rows=4,
        )
    return made


def charges(curator: Curator) -> list[Any]:
    entries = [*curator.history("visits"), *curator.history("labs")]
    return list({entry.sequence: entry for entry in entries if entry.kind == "charge"}.values())


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_several_questions_are_one_charge_of_one_composed_event(text: str) -> None:
    with hospital() as curator:
        explained = curator.explain(text, epsilon=1, delta="1e-6")
        answer = curator.ask(text, epsilon=1, delta="1e-6")
        assert isinstance(answer.event, events.Composed)
        assert len(answer.event.events) == 2
        assert answer.event == explained.event
        assert len(charges(curator)) == 1
        again = curator.ask(text, epsilon=1, delta="1e-6")
        assert again.replayed
        assert again.records == answer.records


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_the_price_is_the_budget_that_was_named(text: str) -> None:
    with hospital() as curator:
        cost: Any = curator.ask(text, epsilon=1, delta=0).cost
        assert cost.epsilon <= 1


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_the_price_does_not_depend_on_people(text: str) -> None:
    found = []
    for rows in (ROWS, [row for row in ROWS if row["id"] != 7], []):
        with hospital(rows) as curator:
            answer = curator.ask(text, epsilon=1, delta="1e-6")
            found.append((answer.event, answer.cost, answer.columns, answer.notes))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL)
def test_no_answer_carries_the_secret_of_the_account(text: str) -> None:
    with hospital() as curator:
        released = curator.ask(text, epsilon=1, delta="1e-6").released
    assert released is not None
    readings = [reading for one in (released, *released.beside) for reading in one.program.readings]
    assert len(readings) >= 3  # those of all, and once more those beside
    assert all(reading.bounding is not None and not reading.bounding.salt for reading in readings)


def test_what_follows_from_earlier_answers_has_intervals_of_its_own() -> None:
    """The share among two of three groups is free, and its noise is that of the earlier answer."""
    with crowd() as curator:
        curator.ask("SELECT h, COUNT(*) AS n FROM t GROUP BY h", epsilon=1, delta=0)
        text = "SELECT h, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM t WHERE h > 0 GROUP BY h"
        answer = curator.ask(text, epsilon=1, delta=0)
        assert answer.replayed
        shown = [row for row in answer if row["h"] > 0]
        for row, count in zip(shown, COUNTS[1:], strict=True):
            assert row["share_low"] <= count / sum(COUNTS[1:]) <= row["share_high"]


def test_an_adjusted_answer_keeps_what_stands_beside() -> None:
    with hospital() as curator:
        answer = curator.ask(SEVERAL["share"], epsilon=1, delta=0)
        assert answer.adjusted(consistent=False).columns == answer.columns


def test_without_noise_it_is_what_plain_sql_says() -> None:
    with hospital() as curator:
        exact = {name: curator.ask(text, epsilon=10**12, delta=0).records for name, text in SEVERAL.items()}
    assert [row["share"] for row in exact["share"]] == [pytest.approx(100 / 3)] * 3
    assert exact["numbers"][0]["each"] == 1
    assert [(row["ward"], row["n"], row["k"], row["both"]) for row in exact["join"]] == [
        (ward, 40, 40, 80) for ward in "ABC"
    ]
    assert [row["less"] for row in exact["outer"]] == [-80] * 3


def test_people_of_two_accounts_are_not_asked_about_at_once() -> None:
    with hospital(other="others") as curator:
        with pytest.raises(UnsupportedQuery, match="different accounts"):
            curator.ask(SEVERAL["numbers"], epsilon=1)
        assert not charges(curator)


HOSTILE = (
    "SELECT ward, (SELECT age FROM visits) AS a, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT ward, (SELECT COUNT(*) FROM visits GROUP BY ward) AS a, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT (SELECT COUNT(*) FROM visits) AS n FROM visits",
    "SELECT COUNT(*) OVER () AS n, (SELECT COUNT(*) FROM visits) AS k FROM visits",
    "SELECT SUM(age) AS s FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
    "SELECT COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits)",
    "SELECT ward, COUNT(*) FROM visits AS v GROUP BY 1 HAVING COUNT(*) > (SELECT COUNT(*) FROM labs WHERE id = v.id)",
    "SELECT id, SUM(n) AS s FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) GROUP BY id",
    "SELECT a.n, v.age FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a JOIN visits AS v USING (ward)",
    "SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY age) AS r FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS n, LAG(id) OVER (ORDER BY ward) AS r FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY id) AS r FROM visits GROUP BY ward",
    SEVERAL["join"].replace("USING (ward)", "ON a.n = b.k"),
    SEVERAL["join"].replace("USING (ward)", "ON a.n = b.ward"),
)


@every("text", HOSTILE)
def test_nothing_reaches_rows(text: str) -> None:
    with hospital() as curator:
        with pytest.raises(UnsupportedQuery):
            curator.ask(text, epsilon=1)
        assert not charges(curator)
