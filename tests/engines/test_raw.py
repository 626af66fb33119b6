"""No value that a source can store makes a question fail, and it means the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from discreet.engines import DuckDB, Memory
from discreet.noise import SeededBits
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Groups, Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines import raw_arrow, raw_objects, raw_parquet
from tests.engines.raw import Specimen
from tests.engines.tables import B, D, F, N, S, T, bounding, call, col, lit, witnesses
from tests.open_groups import unsealed

ROWS = Statistic(kind="rows")
SUM = Statistic(kind="sum", argument=col("n", N), high=9)
COLUMNS = {"id": N, "n": N}


def _conditions(x: Expression) -> Expression:
    """A condition on a column of any type."""
    if x.type is B:
        return x
    if x.type is T:
        return call("greater", B, x, lit("a", T))
    if x.type.is_number:
        return call("less", B, x, lit(2, N) if x.type is N else lit(2.0, F))
    return call("greater", B, call("year", N, x), lit(1999, N))


FUNCTIONS: dict[Type, tuple[tuple[str, Type], ...]] = {
    T: (("length", N), ("upper", T), ("trim", T), ("to_int", N), ("to_date", D)),
    D: (("month", N), ("day_of_week", N), ("start_of_week", D), ("end_of_month", D), ("to_text", T)),
    S: (("month", N), ("hour", N), ("start_of_week", D), ("end_of_month", D), ("to_date", D)),
    N: (("to_text", T),),
    F: (("to_int", N),),
    B: (("to_int", N),),
}


@cache
def questions(kind: Type) -> tuple[Reading, ...]:
    """Counts, sums of another column, the column itself, groups, conditions and functions of it, limits."""
    x = col("x", kind)
    keys, statistics = witnesses(x)
    grouped = (*statistics, ROWS, SUM, Statistic(kind="nulls", argument=x))
    counted = () if kind is F else (Statistic(kind="distinct", argument=x),)
    calls = [call(function, result, x) for function, result in FUNCTIONS[kind]]
    computed = tuple(Statistic(kind="distinct", argument=each) for each in calls)
    return (
        Reading(table="t", statistics=(ROWS, SUM)),
        Reading(table="t", keys=keys, statistics=grouped),
        Reading(table="t", where=_conditions(x), statistics=(ROWS, *counted, *computed)),
        Reading(table="t", keys=keys, statistics=(ROWS, *statistics), bounding=bounding(1, 1, unit="id")),
    )


ALL = range(4)


def answers(engine: DuckDB | Memory, source: Any, kind: Type, asked: Sequence[int] = ALL) -> list[Groups]:
    """Of questions about a table of people."""
    engine.register("t", source, {**COLUMNS, "x": kind})
    return [unsealed(engine.read(questions(kind)[place])) for place in asked]


def judge(specimen: Specimen, cells: Sequence[Any], folder: Path, asked: Sequence[int] = ALL) -> None:
    """Asks of a table of these cells; what they mean is asked of the referee."""
    meant = answers(Memory(), specimen.rows(cells), specimen.type, asked)
    meant[0] = answers(Memory(), specimen.everybody(cells), specimen.type, [0])[0]
    with DuckDB(threads=1) as engine:
        found = answers(engine, specimen.build(cells, folder), specimen.type, asked)
    assert found == meant, (specimen.name, cells[-1])


SPECIMENS = [*raw_parquet.specimens(), *raw_arrow.specimens(), *raw_objects.specimens()]
FOREMOST = [
    *("parquet ms utc=False statistics=True", "parquet utf8 statistics=True", "parquet decimal 38 2", "arrow s UTC"),
    *("arrow string Stream", "arrow decimal128 18 0", "polars ms UTC", "pandas s None", "pandas objects", "csv text"),
    *("pandas python text", "duckdb TIMESTAMP_S"),
]
TABLES = 5_000


def chosen(*names: str) -> list[Specimen]:
    return [specimen for specimen in SPECIMENS if specimen.name in names]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("specimen", chosen(*FOREMOST), ids=lambda specimen: specimen.name)
def test_all_raw_values_at_once_mean_the_same(specimen: Specimen, tmp_path: Path) -> None:
    judge(specimen, specimen.cells, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_five_thousand_neighbours_with_one_raw_value(specimen: Specimen, tmp_path: Path) -> None:
    """Three ordinary people, and one more with any value: nothing fails, whatever is asked."""
    judge(specimen, specimen.cells, tmp_path)
    ordinary, bits = list(specimen.cells[:3]), SeededBits(1)
    for place in range(-(-TABLES // len(SPECIMENS))):
        judge(specimen, [*ordinary, specimen.cell(place + 3, bits)], tmp_path, [0, 1 + place % 3])
