"""The type rules: which types each function takes, what it gives, and which conversions are made."""

from __future__ import annotations

import datetime as dt

import pytest

from discreet.plan.expressions.calls import NULL, Mismatch, alike, call, parse_date
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import ColumnRef, Expression, FunctionCall, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import read
from discreet.sql.refusals import SqlSource
from discreet.sql.scope import Scope
from discreet.sql.select import select
from tests.cases import every
from tests.plan.tables import SCHEMAS, VISITS

TYPES = {
    "age + 1": Type.INT,
    "age + 1.0": Type.FLOAT,
    "age + charge": Type.FLOAT,
    "age * age": Type.INT,
    "age / 2": Type.FLOAT,
    "age // 2": Type.INT,
    "age % 2": Type.INT,
    "-age": Type.INT,
    "-charge": Type.FLOAT,
    "ABS(age)": Type.INT,
    "ROUND(age)": Type.FLOAT,
    "ROUND(charge, 2)": Type.FLOAT,
    "FLOOR(charge)": Type.FLOAT,
    "CEILING(charge)": Type.FLOAT,
    "GREATEST(age, 1)": Type.INT,
    "GREATEST(age, 1.5)": Type.FLOAT,
    "LEAST(ward, 'a')": Type.TEXT,
    "LEAST(day, '2026-01-01')": Type.DATE,
    "GREATEST(seen, DATE '2026-01-01')": Type.TIMESTAMP,
    "age = 1": Type.BOOL,
    "smoker AND NOT smoker": Type.BOOL,
    "ward LIKE 'a'": Type.BOOL,
    "ward IS NULL": Type.BOOL,
    "age IN (1, 2)": Type.BOOL,
    "CASE WHEN smoker THEN 1 ELSE 2.5 END": Type.FLOAT,
    "CASE WHEN smoker THEN NULL ELSE 'a' END": Type.TEXT,
    "CASE WHEN smoker THEN day ELSE '2026-01-01' END": Type.DATE,
    "CASE WHEN NULL THEN 1 ELSE 2 END": Type.INT,
    "COALESCE(age, charge, 1)": Type.FLOAT,
    "COALESCE(NULL, ward)": Type.TEXT,
    "NULLIF(ward, 'a')": Type.TEXT,
    "NULLIF(age, 1.5)": Type.FLOAT,
    "CAST(ward AS INT)": Type.INT,
    "CAST(ward AS BIGINT)": Type.INT,
    "CAST(ward AS DECIMAL(10, 2))": Type.FLOAT,
    "ward::REAL": Type.FLOAT,
    "CAST(age AS VARCHAR(3))": Type.TEXT,
    "CAST(seen AS DATE)": Type.DATE,
    "CAST(NULL AS DATE)": Type.DATE,
    "TRY_CAST(ward AS DATE)": Type.DATE,
    "YEAR(seen)": Type.INT,
    "DATE_TRUNC('month', seen)": Type.DATE,
    "LENGTH(ward)": Type.INT,
    "UPPER(ward)": Type.TEXT,
    "SUBSTRING(ward, age)": Type.TEXT,
}


def meant(text: str) -> Expression:
    source = SqlSource(f"SELECT {text}", SCHEMAS, 7)
    return read(select(source).expressions[0], Scope(source=source, schema=VISITS, alias="visits"))


@every("text", TYPES)
def test_types(text: str) -> None:
    assert meant(text).type is TYPES[text]


def walk(expression: Expression) -> list[FunctionCall]:
    if not isinstance(expression, FunctionCall):
        return []
    return [expression, *(found for argument in expression.arguments for found in walk(argument))]


@every("text", TYPES)
def test_arguments_have_the_very_types_of_a_signature(text: str) -> None:
    for found in walk(meant(text)):
        kinds = tuple(argument.type for argument in found.arguments)
        fitting = [
            signature
            for signature in FUNCTIONS[found.function].signatures
            if signature.result is found.type
            and kinds[: len(signature.arguments)] == signature.arguments[: len(kinds)]
            and all(kind is signature.arguments[-1] for kind in kinds[len(signature.arguments) :])
        ]
        assert fitting


def test_dates_are_read_strictly() -> None:
    assert parse_date(Type.TIMESTAMP, "2026-01-31 10:20:30.5").value == dt.datetime(2026, 1, 31, 10, 20, 30, 500_000)
    assert parse_date(Type.TIMESTAMP, "2026-01-31T10:20").value == dt.datetime(2026, 1, 31, 10, 20)
    for text in ("2026-1-1", "20260101", "2026-W01-1", "0000-01-01", " 2026-01-01", "2026-01-01\n", "٢٠٢٦-01-01", ""):
        with pytest.raises(Mismatch):
            parse_date(Type.DATE, text)
    for text in ("2026-01-01 10", "2026-01-01 24:00", "2026-01-01 10:00Z", "2026-01-01 10:00:00.1234567"):
        with pytest.raises(Mismatch):
            parse_date(Type.TIMESTAMP, text)


def test_nothing_but_null_has_no_type() -> None:
    with pytest.raises(Mismatch):
        alike([NULL, NULL])
    with pytest.raises(Mismatch):
        call("add", ColumnRef("a", Type.TEXT), Literal(1, Type.INT))
