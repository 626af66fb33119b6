"""Parameters: the plan is that of the question with its values written out, and no value is ever read as SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokenizer_core import Token

from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.plan.canonical import canonical
from discreet.plan.model.nodes import FunctionCall, Literal
from discreet.plan.model.types import Type
from discreet.sql.examples import DIALECT
from discreet.sql.frame import TableFrame, count
from discreet.sql.select import parse
from tests.cases import try_all
from tests.plan.tables import SCHEMAS, VISITS

COUNT = "SELECT COUNT(*) AS n FROM visits"

# A question, its values, and the same question with the values written out.
SAME: list[tuple[str, Any, str]] = [
    (f"{COUNT} WHERE age > ?", [40], f"{COUNT} WHERE age > 40"),
    (f"{COUNT} WHERE age>?AND age<?", (40, 50), f"{COUNT} WHERE age > 40 AND age < 50"),
    (f"{COUNT} WHERE age BETWEEN $2 AND $1", [50, 40], f"{COUNT} WHERE age BETWEEN 40 AND 50"),
    (f"{COUNT} WHERE ward=:ward OR note=:ward", {"ward": "A"}, f"{COUNT} WHERE ward = 'A' OR note = 'A'"),
    (f"{COUNT} WHERE ward = $ward", {"ward": "A"}, f"{COUNT} WHERE ward = 'A'"),
    (f"{COUNT} WHERE ward = $select", {"select": "A"}, f"{COUNT} WHERE ward = 'A'"),
    (f"{COUNT} WHERE age = ?::int", [7], f"{COUNT} WHERE age = 7"),
    (f"{COUNT} WHERE day = ?::date", ["2026-01-31"], f"{COUNT} WHERE day = DATE '2026-01-31'"),
    (f"{COUNT} WHERE day = DATE ?", ["2026-01-31"], f"{COUNT} WHERE day = DATE '2026-01-31'"),
    (f"{COUNT} WHERE day = ?", [dt.date(1, 2, 3)], f"{COUNT} WHERE day = DATE '0001-02-03'"),
    (f"{COUNT} WHERE seen >= ?", [dt.date(2026, 1, 31)], f"{COUNT} WHERE seen >= DATE '2026-01-31'"),
    (
        f"{COUNT} WHERE seen < ?",
        [dt.datetime(2026, 1, 31, 1, 2, 3, 45)],
        f"{COUNT} WHERE seen < TIMESTAMP '2026-01-31 01:02:03.000045'",
    ),
    (f"{COUNT} WHERE seen < ?", [pd.Timestamp("2026-01-31")], f"{COUNT} WHERE seen < TIMESTAMP '2026-01-31 00:00'"),
    (
        f"{COUNT} WHERE seen < $1 + INTERVAL '1 month'",
        [dt.date(2026, 1, 31)],
        f"{COUNT} WHERE seen < DATE '2026-01-31' + INTERVAL '1 month'",
    ),
    (f"{COUNT} WHERE age - ? = 1", [-1], f"{COUNT} WHERE age - (-1) = 1"),
    (f"{COUNT} WHERE age > -?", [-1], f"{COUNT} WHERE age > -(-1)"),
    (f"{COUNT} WHERE age > ?", [-(2**63)], f"{COUNT} WHERE age > -9223372036854775808"),
    (f"{COUNT} WHERE charge > ?", [110.5], f"{COUNT} WHERE charge > 110.5"),
    (f"{COUNT} WHERE charge > ?", [-1e-7], f"{COUNT} WHERE charge > -1e-07"),
    (f"{COUNT} WHERE charge > ?", [Decimal("110.50")], f"{COUNT} WHERE charge > 110.5"),
    (f"{COUNT} WHERE age > ?", [Decimal(11)], f"{COUNT} WHERE age > 11"),
    (f"{COUNT} WHERE charge > ?", [Fraction(1, 2)], f"{COUNT} WHERE charge > 0.5"),
    (f"{COUNT} WHERE age > ?", [Fraction(4, 2)], f"{COUNT} WHERE age > 2"),
    (f"{COUNT} WHERE age > ?", [np.int64(7)], f"{COUNT} WHERE age > 7"),
    (f"{COUNT} WHERE charge > ?", [np.float32(0.5)], f"{COUNT} WHERE charge > 0.5"),
    (f"{COUNT} WHERE smoker = ?", [True], f"{COUNT} WHERE smoker = TRUE"),
    (f"{COUNT} WHERE smoker = ?", [np.False_], f"{COUNT} WHERE smoker = FALSE"),
    (f"{COUNT} WHERE ward IS NOT ?", [None], f"{COUNT} WHERE ward IS NOT NULL"),
    (f"{COUNT} WHERE smoker IS ?", [True], f"{COUNT} WHERE smoker IS TRUE"),
    (f"{COUNT} WHERE ward IN (?, ?)", ["A", "B"], f"{COUNT} WHERE ward IN ('A', 'B')"),
    (f"{COUNT} WHERE age IN ($1,$2,$1)", [1, 2], f"{COUNT} WHERE age IN (1, 2, 1)"),
    (f"{COUNT} WHERE ward LIKE ?", ["A%"], f"{COUNT} WHERE ward LIKE 'A%'"),
    (f"{COUNT} WHERE DATE_TRUNC(?, day) = day", ["month"], f"{COUNT} WHERE DATE_TRUNC('month', day) = day"),
    ("SELECT QUANTILE_CONT(age, ?) AS q FROM visits", [0.9], "SELECT QUANTILE_CONT(age, 0.9) AS q FROM visits"),
    ("SELECT HISTOGRAM(age, ?, ?) AS n FROM visits", [-5, 5], "SELECT HISTOGRAM(age, -5, 5) AS n FROM visits"),
    (
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > :least ORDER BY n LIMIT :most",
        {"least": 3, "most": 5},
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 3 ORDER BY n LIMIT 5",
    ),
    (COUNT, [], COUNT),
    (COUNT, {}, COUNT),
    (f"{COUNT} WHERE note = '? $1 :name'", None, f"{COUNT} WHERE note = '? $1 :name'"),
    (f"{COUNT} /* ? */ WHERE age > ?", [1], f"{COUNT} WHERE age > 1"),
]

# A question, its values, and parts of the message: every one names what is missing, superfluous or of no type.
WRONG: list[tuple[str, Any, tuple[str, ...]]] = [
    (f"{COUNT} WHERE age > ?", None, ("parameters=None", "a value for each ?")),
    (f"{COUNT} WHERE age > ?", [], ("0 values", "to be 1")),
    (f"{COUNT} WHERE age > ?", [1, 2], ("2 values", "to be 1")),
    (f"{COUNT} WHERE age > $1 AND age < $2", [1], ("1 values", "$1 to $2")),
    (f"{COUNT} WHERE age > $2", [1, 2], ("$2", "$1 is not in the question")),
    (f"{COUNT} WHERE age > $0", [1], ("$0", "begin with $1")),
    (f"{COUNT} WHERE age > ?", {"a": 1}, ("dict", "to be a list")),
    (f"{COUNT} WHERE ward = ?", "A", ("str", "to be a list")),
    (f"{COUNT} WHERE age > :low", None, ("to have a value for :low", "{'low': ...}")),
    (f"{COUNT} WHERE age > :low AND age < $high", {"low": 1}, ("for $high",)),
    (f"{COUNT} WHERE age > :low", {"low": 1, "hihg": 2}, ("without 'hihg'", ":low")),
    (f"{COUNT} WHERE age > :low", {"LOW": 1}, ("for :low",)),
    (f"{COUNT} WHERE age > :low", [1], ("list", "dictionary")),
    (COUNT, [1], ("list", "to be left out")),
    (COUNT, {"low": 1}, ("low", "to be left out")),
    (f"{COUNT} WHERE age > ? AND age < $1", [1], ("$1 and ?", "one way")),
    (f"{COUNT} WHERE age > ? AND age < :x", {"x": 1}, (":name and ?", "one way")),
    (f"{COUNT} WHERE age > ?", [2**63], ("parameters[?]", "64 bits")),
    (f"{COUNT} WHERE age > $1", [float("nan")], ("parameters[$1]", "finite")),
    (f"{COUNT} WHERE age > ?", [Decimal("sNaN")], ("finite",)),
    (f"{COUNT} WHERE age > ?", [Decimal("1e999")], ("finite",)),
    (f"{COUNT} WHERE age > ?", [Fraction(10**400)], ("fit into a double",)),
    (f"{COUNT} WHERE age > :x", {"x": [1, 2]}, ("parameters[:x]=", "list", "IN with a ? for each")),
    (f"{COUNT} WHERE age > ?", [b"1"], ("bytes",)),
    (f"{COUNT} WHERE age > ?", [1j], ("complex",)),
    (f"{COUNT} WHERE age > ?", [dt.timedelta(1)], ("timedelta",)),
    (f"{COUNT} WHERE seen > ?", [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], ("time zone",)),
    (f"{COUNT} WHERE seen > ?", [pd.NaT], ("moment",)),
    (f"{COUNT} WHERE ward = ?", ["a\x00"], ("invisible",)),
    (f"{COUNT} WHERE ward = ?", ["a\ud800"], ("invisible",)),
    (f"{COUNT} WHERE ward = ?", ["\u202ea"], ("invisible",)),
    (f"{COUNT} WHERE ward = ?", ["a" * 20_000], ("characters",)),
    (f"{COUNT} WHERE ward IN (" + "$1," * 1000 + "$1)", ["a" * 100], ("characters",)),
]


def test_a_question_with_values_is_the_question_with_them_written_out() -> None:
    def same(case: tuple[str, Any, str]) -> None:
        text, parameters, written = case
        found = parse(text, SCHEMAS, parameters)
        assert found == parse(written, SCHEMAS)
        assert canonical(found) == canonical(parse(written, SCHEMAS))

    try_all(SAME, same)


def test_wrong_values_are_named() -> None:
    def wrong(case: tuple[str, Any, tuple[str, ...]]) -> None:
        text, parameters, parts = case
        with pytest.raises(InvalidParameter) as refused:
            parse(text, SCHEMAS, parameters)
        assert not [part for part in parts if part not in str(refused.value)], refused.value
        assert refused.value.name.startswith("parameters")

    try_all(WRONG, wrong)


def test_a_value_stands_for_no_name() -> None:
    """A parameter is a literal, wherever it stands; where no literal may, it is refused at its place."""
    cases = [
        ("SELECT COUNT(*) AS n FROM ?", ["visits"]),
        ("SELECT COUNT(*) AS n FROM visits JOIN ? ON TRUE", ["rows_only"]),
        ("SELECT SUM(?) AS n FROM visits GROUP BY charge", ["age"]),
        ("SELECT ?(*) AS n FROM visits", ["COUNT"]),
        ("SELECT visits.? FROM visits", ["age"]),
        ("SELECT COUNT(*) AS n FROM visits WHERE ? > 3", ["age"]),
        ("SELECT COUNT(*) AS n FROM visits WHERE CAST(age AS ?) > 3", ["int"]),
        ("SELECT COUNT(*) AS n FROM visits WHERE age = ?1", [1]),
        ("SELECT COUNT(*) AS n FROM visits WHERE age = ? 1", [1]),
        ("SELECT COUNT(*) AS n FROM visits WHERE ward = ? 'x'", ["a"]),
        ("SELECT COUNT(*) AS n FROM visits LIMIT ?", [-1]),
        ("SELECT COUNT(*) AS n FROM visits LIMIT ?", ["1"]),
    ]

    def refused(case: tuple[str, Any]) -> None:
        with pytest.raises(UnsupportedQuery) as error:
            parse(*(case[0], SCHEMAS, case[1]))
        assert error.value.position is not None

    try_all(cases, refused)


def test_refusals_point_at_the_parameter() -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse("SELECT COUNT(*) AS n FROM visits\nWHERE day > ?", SCHEMAS, ["yesterday"])
    assert refused.value.position is not None
    assert refused.value.position[0] == 2


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co", "Cf")), max_size=30))
def test_a_text_is_a_value_whatever_it_says(text: str) -> None:
    found = parse(f"{COUNT} WHERE ward = ?", SCHEMAS, [text]).where
    assert isinstance(found, FunctionCall)
    assert found.arguments[1] == Literal(text, Type.TEXT)


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_that_number(number: float) -> None:
    found = parse(f"{COUNT} WHERE charge + ? > 0", SCHEMAS, [number])
    assert found.where is not None
    added = found.where.arguments[0].arguments[1]  # type: ignore[attr-defined]
    assert added == Literal(float(number) + 0.0, Type.FLOAT)


INJECTIONS = [
    "' OR 1=1 --",
    "'; DROP TABLE visits; --",
    'x" FROM bare --',
    "\\' OR TRUE",
    "$1",
    "?",
    "/* */",
    "''",
    "`",
]


def test_injections_are_texts() -> None:
    for text in INJECTIONS:
        found = parse(f"{COUNT} WHERE ward = :ward", SCHEMAS, {"ward": text}).where
        assert isinstance(found, FunctionCall)
        assert found.arguments[1] == Literal(text, Type.TEXT)


def test_mutant_values_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def pasted(found: list[Token], given: Any) -> list[Token]:
        (value,) = given.values()
        name = next(i for i, token in enumerate(found) if token.text == ":")
        return found[:name] + DIALECT.tokenize(f"'{value}'") + found[name + 2 :]

    monkeypatch.setattr("discreet.sql.sql_tokens.fill_parameters", pasted)
    with pytest.raises((AssertionError, UnsupportedQuery)):
        test_injections_are_texts()


def test_frames_take_them_too() -> None:
    frame = TableFrame(schema=VISITS)
    built = frame.where("age >= ?", [40]).where("ward = :w", {"w": "A"}).group_by("ward").agg(n=count())
    written = frame.where("age >= 40").where("ward = 'A'").group_by("ward").agg(n=count())
    assert built.having("n > $1", [3]).question == written.having("n > 3").question
    with pytest.raises(InvalidParameter, match="a value for each"):
        frame.where("age >= ?")
    with pytest.raises(InvalidParameter, match="to be left out"):
        frame.where("age >= 40", [40])
