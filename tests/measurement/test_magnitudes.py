"""Buckets of magnitudes: every value is in exactly one, the same on every engine, and ranges hold what they should."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines import DuckDB, Memory
from discreet.measurement.probes.magnitudes import POWERS, bucket_of, buckets, edge, range_of, supposing, widest
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type
from tests.open_groups import unsealed

KINDS = [Type.INT, Type.FLOAT]
ENDS = [1.0, -1.0, 2.0**-20, 2.0**-21, 5e-324, -5e-324, 2.0**40, 2.0**41, 1.7e308, -1.7e308, 0.0, -0.0, 3.14, 100.0]
WHOLE = [0, 1, -1, 2, 3, 4, 5, 127, 128, 129, -128, -129, 2**48, 2**48 + 1, 2**63 - 1, -(2**63)]


def expected(kind: Type, value: Any) -> int | None:
    """The definition: the smallest power of two that is at least as large, and the same for the opposite."""
    if value is None:
        return None
    first, last = POWERS[kind]
    size = abs(Fraction(value))
    if not size:
        return 0
    power = next((p for p in range(first, last + 1) if size <= Fraction(2) ** p), last)
    return (power - first + 1) * (1 if value > 0 else -1)


def check(kind: Type, value: Any) -> None:
    x = ColumnRef("x", kind)
    assert evaluate(bucket_of(x), {"x": value}) == expected(kind, value)


@given(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers(value: int | None) -> None:
    check(Type.INT, value)


@given(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)))
def test_real_numbers(value: float | None) -> None:
    check(Type.FLOAT, value)


@pytest.mark.parametrize(("kind", "values"), [(Type.INT, WHOLE), (Type.FLOAT, ENDS)], ids=str)
def test_ends_on_every_engine(kind: Type, values: list[Any]) -> None:
    given_values = [*values, None]
    for value in given_values:
        check(kind, value)
    reading = Reading(
        table="t",
        keys=(bucket_of(ColumnRef("x", kind)),),
        public_keys=tuple((b,) for b in buckets(kind)),
        statistics=(Statistic(kind="rows"),),
    )
    memory, duckdb = Memory(), DuckDB(threads=1)
    memory.register("t", [{"x": value} for value in given_values], {"x": kind})
    schema = {"x": pl.Int64 if kind is Type.INT else pl.Float64}
    duckdb.register("t", pl.DataFrame({"x": given_values}, schema=schema), {"x": kind})
    found = unsealed(memory.read(reading))
    assert found == unsealed(duckdb.read(reading))
    wanted = [expected(kind, value) for value in values]
    assert found == {(b,): (wanted.count(b),) for b in set(wanted)}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_range_holds_the_used_buckets_and_no_more(kind: Type, data: st.DataObject) -> None:
    used = data.draw(st.sets(st.sampled_from(list(buckets(kind))), min_size=1))
    found = range_of(kind, used.__contains__)
    assert found is not None
    for bucket in used:
        assert found.low <= edge(kind, bucket) <= found.high
    tight = [edge(kind, b) for b in (min(used), max(used))]
    if len(used) > 1:
        assert found.low in (tight[0], edge(kind, min(used) - 1) if min(used) > 0 else tight[0])
        assert found.high in (tight[1], edge(kind, max(used) + 1) if max(used) < 0 else tight[1])
    everything = widest(kind)
    assert everything.low <= found.low < found.high <= everything.high


def test_nothing_used_is_no_range_and_zeros_are_one() -> None:
    assert range_of(Type.INT, lambda _: False) is None
    zeros = range_of(Type.FLOAT, lambda bucket: bucket == 0)
    assert zeros == ColumnBounds(Fraction(0), Fraction(1, 2**20))


def test_ids_texts_and_declared_columns_are_left_alone() -> None:
    columns = {
        "id": ColumnSchema(name="id", type=Type.INT),
        "x": ColumnSchema(name="x", type=Type.FLOAT),
        "t": ColumnSchema(name="t", type=Type.TEXT),
    }
    schema = supposing(TableSchema(name="v", columns=columns, unit="id"))
    assert schema.columns["x"].bounds == widest(Type.FLOAT)
    assert schema.columns["id"].bounds is schema.columns["t"].bounds is None
    assert math.isfinite(float(widest(Type.FLOAT).high))
