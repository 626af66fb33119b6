"""Rows and Arrow tables become the same columns."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.sql import statement
from discreet.engines.sql.statement import FetchedRows, FetchedTable
from discreet.exact.integer_columns import objects
from discreet.plan.model.group_columns import GroupColumns, PublicKeys
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.tables import B, Bench, D, F, N, S, T, arrow, bounding, col
from tests.open_groups import unsealed

DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 23, 59, 59, 999999)
COLUMNS: dict[str, tuple[Any, Type, list[Any]]] = {
    "whole": (pa.int64(), Type.INT, [1, -(1 << 63), (1 << 63) - 1, 0]),
    "whole or nothing": (pa.int64(), Type.INT, [1, None, -5, (1 << 62) + 1]),
    "small": (pa.int32(), Type.INT, [1, 2, -3, 4]),
    "wide": (pa.decimal128(38, 0), Type.INT, [Decimal(1), Decimal(-2), None, Decimal(1 << 62)]),
    "text": (pa.string(), Type.TEXT, ["", "A", None, "é"]),
    "truth": (pa.bool_(), Type.BOOL, [True, False, None, True]),
    "truth that is known": (pa.bool_(), Type.BOOL, [True, False, False, True]),
    "day": (pa.date32(), Type.DATE, [DAY, None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "moment": (pa.timestamp("us"), Type.TIMESTAMP, [MOMENT, None, dt.datetime(1, 1, 1), MOMENT]),
    "double": (pa.float64(), Type.FLOAT, [0.1, -0.0, 1e300, 5e-324]),
    "double or nothing": (pa.float64(), Type.FLOAT, [0.1, None, 1e300, 2.0]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_keys_are_the_same_objects(name: str) -> None:
    kind, declared, values = COLUMNS[name]
    chunks = pa.chunked_array([pa.array(part, kind) for part in (values[:1], [], values[1:])])
    table = FetchedTable(pa.table({"k": chunks})).keys(0, declared)
    plain = [None if value is None else int(value) if declared is Type.INT else value for value in values]
    rows = FetchedRows([(value,) for value in plain]).keys(0, declared)
    assert table.tolist() == rows.tolist() == plain
    assert list(map(type, table.tolist())) == list(map(type, plain))
    assert table.dtype == rows.dtype


INTEGERS = {"int64": (pa.int64(), 18), "int32": (pa.int32(), 9), "uint8": (pa.uint8(), 2)}
DECIMALS = {"38 digits": (pa.decimal128(38, 0), 37), "20 digits": (pa.decimal128(20, 0), 18)}


@pytest.mark.parametrize("name", [*INTEGERS, *DECIMALS])
def test_integers_are_exact_and_nothing_is_zero(name: str) -> None:
    kind, most = {**INTEGERS, **DECIMALS}[name]
    values: list[int | None] = [0, None, 10**most, 1, None, 9 * 10 ** (most - 1)]
    values += [] if name == "uint8" else [-(10**most), -1]
    given = [None if value is None else Decimal(value) if name in DECIMALS else value for value in values]
    array = pa.array(given, kind)
    table = FetchedTable(pa.table({"n": pa.chunked_array([array[:3], array[3:]])}))
    wanted = [value or 0 for value in values]
    assert objects(table.integers(0)).tolist() == wanted
    assert objects(FetchedRows([(value,) for value in values]).integers(0)).tolist() == wanted


def test_no_row_is_a_column_of_nothing() -> None:
    empty = FetchedTable(pa.table({"k": pa.array([], pa.int64()), "n": pa.array([], pa.decimal128(38, 0))}))
    for fetched in (empty, FetchedRows([])):
        assert fetched.length == len(fetched.keys(0, Type.INT)) == len(objects(fetched.integers(1))) == 0
        assert fetched.lists(1) == []


@pytest.mark.parametrize("people", [False, True])
def test_long_results_are_those_of_short_ones(monkeypatch: pytest.MonkeyPatch, people: bool) -> None:
    """DuckDB hands over Arrow where there may be many groups; forced for all, and for none."""
    kinds = {"k": N, "t": T, "b": B, "d": D, "m": S, "x": F, "u": N}
    rows = [
        {"k": None if i % 7 == 0 else i % 5 - 2, "t": [None, "A", "é"][i % 3], "b": [True, None][i % 2], "u": i % 11}
        | {"d": DAY + dt.timedelta(days=i % 3), "m": MOMENT if i % 4 else None, "x": 1e15 * i}
        for i in range(200)
    ]
    total = Statistic(kind="sum", argument=col("x", F), exponent=-40, low=-(1 << 62), high=1 << 62, shift=3)
    count = Statistic(kind="nulls", argument=col("k", N), times=3)
    limits = bounding(2, 3, unit="u") if people else None
    keys = tuple(col(name, kinds[name]) for name in ("k", "t", "b", "d", "m"))
    reading = Reading(table="t", keys=keys, bounding=limits, statistics=(total, count, Statistic(kind="rows")))
    if people:
        reading = Reading(table="t", keys=keys, bounding=limits, statistics=(Statistic(kind="units"), count))
    referee = Memory()
    referee.register("t", rows, kinds)
    right = unsealed(referee.read(reading))
    with DuckDB(threads=1) as engine:
        engine.register("t", arrow(rows, kinds), kinds)
        fetched = []
        for most in (-1, 10**9):
            monkeypatch.setattr(statement, "_FEW_GROUPS", most)
            public = None if most < 0 else tuple(right)
            found = unsealed(engine.read(replace(reading, public_keys=public)))
            fetched.append(found)
            assert found == right
        assert [[type(value) for value in key] for key in sorted(fetched[0], key=str)] == [
            [type(value) for value in key] for key in sorted(fetched[1], key=str)
        ]


def test_whole_keys_without_null_stay_numbers() -> None:
    assert FetchedTable(pa.table({"k": pa.array([3, 4])})).keys(0, Type.INT).dtype == np.int64


KEYS: dict[str, list[tuple[Value, ...]]] = {
    "between two ends": [(i,) for i in range(-3, 1100)],
    "with a hole": [(i,) for i in range(-3, 1100) if i != 5],
    "with a hole and a repetition": [(4 if i == 5 else i,) for i in range(-3, 1100)],
    "in another order": [(i,) for i in reversed(range(-3, 1100))],
    "with NULL": [*((i,) for i in range(1100)), (None,)],
    "pairs": [(i, j) for i in range(-3, 400) for j in range(3)],
    "pairs without one": [(i, j) for i in range(-3, 400) for j in range(3) if (i, j) != (5, 1)],
}


@pytest.mark.parametrize("name", KEYS)
def test_many_public_keys_are_those_that_are_read(bench: Bench, name: str) -> None:
    public = KEYS[name]
    rows = [{"k": None if i == 7 else i % 1300 - 100, "j": i % 4 - 1} for i in range(3000)]
    bench.load(rows, {"k": N, "j": N})
    keys = (col("k", N), col("j", N))[: len(public[0])]
    found = bench.agreed(Reading(table="t", keys=keys, public_keys=tuple(public), statistics=(Statistic(kind="rows"),)))
    there = {(row["k"], row["j"])[: len(keys)] for row in rows}
    assert found.keys() == there & set(public)


def test_mutant_keys_with_a_hole_are_taken_for_all_between() -> None:
    public = PublicKeys(KEYS["with a hole"])
    vars(public)["_first"], vars(public)["_by_key"] = np.array([]), dict.fromkeys(range(1103))
    assert public.ends == [(-3, 1099)]
    assert PublicKeys(KEYS["with a hole"]).ends is PublicKeys(KEYS["with a hole and a repetition"]).ends is None


@pytest.mark.parametrize("numbers", [(3, 1 << 70), (-(1 << 63), 0), (0, 1 << 200), ()])
def test_without_keys_there_is_one_group_whether_something_was_read_or_not(numbers: tuple[int, ...]) -> None:
    whole = PublicKeys(((),))
    read, width = GroupColumns.of({(): numbers}, (), len(numbers)), len(numbers)
    nothing = GroupColumns.of({}, (), width)
    assert whole.align_groups(read).groups == {(): numbers}
    assert whole.align_groups(nothing).groups == {(): (0,) * width}
