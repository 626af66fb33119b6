"""Post-processing: total, on released values only, with intervals that hold."""

from __future__ import annotations

import math
from typing import Any

import pytest

from discreet.plan.post.outputs import NoisyNumber, finish
from discreet.sql.select import parse
from tests.cases import every
from tests.plan.tables import SCHEMAS

Rows = list[dict[str, Any]]


def answer(text: str, rows: Rows) -> Rows:
    return list(finish(parse(text, SCHEMAS), rows))


def test_no_groups_are_no_rows_whatever_is_asked_of_them() -> None:
    text = (
        "SELECT ward, COUNT(*) + 1 AS n FROM visits GROUP BY ward HAVING COUNT(*) > 1 ORDER BY COUNT(*), ward LIMIT 3"
    )
    assert answer(text, []) == []


GROUPS: Rows = [
    {"ward": "A", "#1": NoisyNumber(10, 8, 12), "#2": NoisyNumber(100.0, 90.0, 110.0)},
    {"ward": "B", "#1": NoisyNumber(-1, -3, 1), "#2": NoisyNumber(5.0, -5.0, 15.0)},
    {"ward": None, "#1": NoisyNumber(0, -2, 2), "#2": NoisyNumber(0.0, -10.0, 10.0)},
    {"ward": "C", "#1": NoisyNumber(4, 2, 6), "#2": NoisyNumber(50.0, 40.0, 60.0)},
]
BOTH = "SELECT ward, COUNT(*) AS n, SUM(charge) AS s FROM visits GROUP BY ward"


def test_values_pass_through() -> None:
    assert answer(BOTH, GROUPS)[0] == {"ward": "A", "n": NoisyNumber(10, 8, 12), "s": NoisyNumber(100.0, 90.0, 110.0)}


def test_ratios_are_total() -> None:
    found = answer("SELECT SUM(charge) / COUNT(*) AS m FROM visits GROUP BY ward", _swapped())
    first, second, third, _ = (row["m"] for row in found)
    assert first.value == 10.0
    assert (first.low, first.high) == (7.5, 13.75)
    assert (second.value, second.low, second.high) == (-5.0, -math.inf, math.inf)
    assert (third.value, third.low, third.high) == (None, -math.inf, math.inf)


def _swapped() -> Rows:
    """The rows for a question that asks for the sum first."""
    return [{"ward": row["ward"], "#1": row["#2"], "#2": row["#1"]} for row in GROUPS]


@every(
    ("clause", "wards"),
    [
        ("", ["A", "B", None, "C"]),
        ("HAVING n > 0", ["A", "C"]),
        ("HAVING ward <> 'A'", ["B", "C"]),  # NULL is not TRUE
        ("HAVING s / n > 11", ["C"]),
        ("ORDER BY n", ["B", None, "C", "A"]),
        ("ORDER BY n DESC", ["A", "C", None, "B"]),
        ("ORDER BY ward", ["A", "B", "C", None]),
        ("ORDER BY ward DESC", ["C", "B", "A", None]),
        ("ORDER BY s / n", ["B", "A", "C", None]),
        ("ORDER BY n > 0, n DESC", [None, "B", "A", "C"]),
        ("ORDER BY n LIMIT 2", ["B", None]),
        ("LIMIT 0", []),
        ("ORDER BY n OFFSET 3", ["A"]),
        ("ORDER BY n LIMIT 2 OFFSET 1", [None, "C"]),
        ("ORDER BY n LIMIT 2 OFFSET 4", []),
        ("HAVING n > 0 LIMIT 9 OFFSET 1", ["C"]),
        ("HAVING n > 1000", []),
    ],
)
def test_clauses_act_on_released_values(clause: str, wards: list[str | None]) -> None:
    assert [row["ward"] for row in answer(f"{BOTH} {clause}", GROUPS)] == wards


OUTPUTS: list[tuple[str, Any]] = [
    ("COUNT(*) * 2", NoisyNumber(20, 16, 24)),
    ("-COUNT(*)", NoisyNumber(-10, -12, -8)),
    ("100 - COUNT(*)", NoisyNumber(90, 88, 92)),
    ("GREATEST(COUNT(*), 9)", NoisyNumber(10, 9, 12)),
    ("CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END", "many"),
    ("COUNT(*) > 5", True),
    ("1 + 1", 2),
    ("COUNT(*) % 3", NoisyNumber(1, 0, 2)),
]


@pytest.mark.parametrize(("output", "expected"), OUTPUTS)
def test_outputs(output: str, expected: Any) -> None:
    found = answer(f"SELECT {output} AS x, COUNT(*) AS n FROM visits", [{"#1": NoisyNumber(10, 8, 12)}])
    assert found[0]["x"] == expected


def test_functions_of_keys_have_no_interval() -> None:
    found = answer("SELECT LOWER(ward) AS w, LENGTH(ward) AS l, COUNT(*) AS n FROM visits GROUP BY ward", GROUPS)
    assert [(row["w"], row["l"]) for row in found] == [("a", 1), ("b", 1), (None, None), ("c", 1)]


def test_overflow_is_no_error() -> None:
    found = answer("SELECT COUNT(*) * 9223372036854775807 AS x FROM visits", [{"#1": NoisyNumber(10, 8, 12)}])
    assert found[0]["x"].value is None
