"""Dialects: one that lacks a function is refused when it is made, and one that writes things in another way agrees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb import engine as module
from discreet.engines.duckdb.dialect import DuckDBDialect
from discreet.engines.sql import dialect as dialect_module
from discreet.engines.sql.dialect import Dialect, Templates
from discreet.engines.sql.statement import Statement, translate_reading
from discreet.errors import InternalError, InvalidParameter
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions import Template
from discreet.plan.model.nodes import Literal
from discreet.plan.model.readings import Reading, Split, Statistic
from discreet.plan.model.types import Type
from tests.engines.tables import N, T, arrow, bounding, col
from tests.open_groups import unsealed

WORDS = ("a", "it's", "'); DROP TABLE t0; --", '"', "\\", "", "$q0", "{0}")
COLUMNS: Mapping[str, Type] = {"u": N, "n": N, "t": T}
TABLE = [{"u": i % 7, "n": (1 << i) - 40, "t": None if i % 5 == 0 else WORDS[i % len(WORDS)]} for i in range(40)]
SUM = Statistic(kind="sum", argument=col("n", N), exponent=2, low=-9, high=900)
READINGS = {
    "texts": Reading(
        table="t",
        where=call("in", col("t", T), *(Literal(word, T) for word in WORDS)),
        keys=(col("t", T),),
        statistics=(Statistic(kind="rows"), SUM),
    ),
    "public keys": Reading(
        table="t",
        keys=(col("t", T),),
        public_keys=(*((word,) for word in WORDS), (None,)),
        bounding=bounding(2, 1),
        statistics=(Statistic(kind="units"), SUM),
    ),
    "cells": Reading(table="t", keys=(col("t", T),), split=Split(argument=col("n", N), exponent=0, low=0, high=500)),
}


class WithoutParameters(DuckDBDialect):
    """Another database in miniature: values stand in the text, subqueries have names, integers are of another type."""

    wide = "DECIMAL(38, 0)"
    quotient = "CAST(floor({0} / {1}) AS BIGINT)"

    def write_parameter(self, value: Any, kind: Type, parameters: dict[str, Any]) -> str:
        del parameters
        return self.text_literal(value) if kind is Type.TEXT else self.literal(value, kind)

    def public_table(self, lists: Sequence[list[Any]], kinds: Sequence[Type], parameters: dict[str, Any]) -> str:
        rows = (
            ", ".join(
                self.literal(None, kind) if value is None else self.write_parameter(value, kind, parameters)
                for value, kind in zip(row, kinds, strict=True)
            )
            for row in zip(*lists, strict=True)
        )
        names = ", ".join(f"p{i}" for i in range(len(kinds)))
        return f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS p({names})"

    def write_subquery(self, query: str, *, once: bool = True) -> str:
        del once
        return f"({query}) AS derived"


class OtherDuckDB(DuckDB):
    dialect = WithoutParameters()


def test_a_dialect_of_its_own_agrees_and_needs_no_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    passed: list[Mapping[str, Any]] = []
    memory.register("t", TABLE, COLUMNS)

    def noted(*given: Any) -> Statement:
        made = translate_reading(*given)
        passed.append(made.parameters)
        return made

    monkeypatch.setattr(module, "translate_reading", noted)
    with OtherDuckDB(threads=1) as engine:
        engine.register("t", arrow(TABLE, COLUMNS), COLUMNS)
        for name, reading in READINGS.items():
            assert unsealed(engine.read(reading)) == unsealed(memory.read(reading)), name
    assert len(passed) >= len(READINGS)
    assert not any(passed)


def test_a_dialect_without_a_function_is_refused() -> None:
    class Incomplete(DuckDBDialect):
        """A database for which no record spells a function that has no common form."""

        name = "another"

    with pytest.raises(InternalError, match="add_months"):
        Incomplete()


def test_a_dialect_overrides_what_a_record_spells() -> None:
    class Other(DuckDBDialect):
        functions: ClassVar[Templates] = {**DuckDBDialect.functions, "hour": Template("date_part('hour', {0})")}

    assert Other().template("hour", Type.TIMESTAMP).text == "date_part('hour', {0})"
    assert DuckDBDialect().template("hour", Type.TIMESTAMP).text == "hour({0})"


def test_unknown_functions_and_names_with_nul_are_refused() -> None:
    dialect: Dialect = DuckDBDialect()
    with pytest.raises(InvalidParameter):
        dialect.template("load_file", Type.TEXT)
    for write in (dialect.quote_name, dialect.text_literal):
        with pytest.raises(InvalidParameter):
            write("a\0b")


# --------------------------------------------------------------------------------------- spellings stay in the dialects

PRINTERS = (
    "printer",
    "statement",
    "relation_printer",
    "join_bounds",
    "contribution_bounds",
    "bounded_rows",
    "group_ranks",
)
SPELLINGS = re.compile(
    r"HUGEINT|BIGINT|NUMERIC|DECIMAL|DOUBLE|VARCHAR|\bTEXT\b|TRY_CAST|\bCAST\(|::|//|>>|<<|\bunnest\b|\blist\(|array|struct_"
    r"|bit_or|bit_count|regexp|isfinite|md5|epoch|interval|COLLATE|OFFSET|ESCAPE|MATERIALIZED|\$q|%\(|generate_series",
    re.IGNORECASE,
)
"""What databases write in different ways, or do not have."""


def literals_of(source: str) -> Iterator[str]:
    """The texts of a module, without those that say what it does."""
    tree = ast.parse(source)
    said = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_what_databases_spell_differently_stands_in_dialects_alone() -> None:
    folder = Path(dialect_module.__file__).parent
    found = {
        (name, text)
        for name in PRINTERS
        for text in literals_of((folder / f"{name}.py").read_text(encoding="utf-8"))
        if SPELLINGS.search(text)
    }
    assert found == set()
    assert SPELLINGS.search("SUM(CAST(x AS HUGEINT))")
