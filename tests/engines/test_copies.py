"""Copies with rows less and more: the same rows whatever the form, and readable as they are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb.copies import copy_of
from discreet.errors import InvalidParameter
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.tables import arrow
from tests.open_groups import unsealed

TYPES = {"who": Type.INT, "x": Type.FLOAT, "word": Type.TEXT}
ROWS: list[dict[str, Any]] = [
    {"who": place, "x": place / 2, "word": None if place % 3 == 0 else f"w{place}"} for place in range(8)
]
MORE: list[dict[str, Any]] = [{"who": 99, "x": 1e300, "word": ""}, {"who": 99, "x": math.inf, "word": "it's"}, {}]
ALL = Reading(table="t", statistics=(Statistic(kind="rows"),))


def forms(folder: Path) -> dict[str, Any]:
    csv, parquet = folder / "t.csv", folder / "t.parquet"
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in ROWS]
    csv.write_text("\n".join(["who,x,word", *lines]) + "\n")
    table = arrow(ROWS, TYPES)
    pytest.importorskip("pyarrow.parquet").write_table(table, parquet)
    return {"rows": ROWS, "frame": table, "csv": csv, "parquet": str(parquet), "pandas": table.to_pandas()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["rows", "frame", "csv", "parquet", "pandas"])
def test_rows_less_and_more(form: str, tmp_path: Path) -> None:
    copy = copy_of(forms(tmp_path)[form])
    assert [int(row["who"]) for row in copy.column(["who"])] == list(range(8))
    assert [float(row["x"]) for row in copy.rows([1, 3])] == [0.5, 1.5]
    engine = Memory() if form == "rows" else DuckDB(threads=1)
    for without, more in (((), []), ((0, 5), []), ((), MORE), ((7,), MORE)):
        source = copy.with_changes(without, more)
        for _ in range(2):  # as often as it is asked for
            engine.register("t", source, TYPES)
            assert unsealed(engine.read(ALL)) == {(): (8 - len(without) + len(more),)}


@pytest.mark.parametrize("form", ["rows", "csv"])
def test_some_rows_and_some_columns(form: str, tmp_path: Path) -> None:
    kept = copy_of(forms(tmp_path)[form], ["who", "x"]).keep([2, 4, 6])
    assert [int(row["who"]) for row in kept.column(["who"])] == [2, 4, 6]
    assert list(kept.rows([1])[0]) == ["who", "x"]
    engine = Memory() if form == "rows" else DuckDB(threads=1)
    engine.register("t", kept.with_changes([0]), {"who": Type.INT})
    assert unsealed(engine.read(ALL)) == {(): (2,)}


def test_what_does_not_fit_a_stored_type_is_null(tmp_path: Path) -> None:
    copy = copy_of(forms(tmp_path)["parquet"])
    engine = DuckDB(threads=1)
    engine.register("t", copy.with_changes(range(8), [{"who": 1 << 100, "x": "no number", "word": 7}]), TYPES)
    assert unsealed(engine.read(ALL)) == {(): (1,)}


def test_what_is_no_table() -> None:
    for wrong in (7, "nowhere.csv", object()):
        with pytest.raises(InvalidParameter):
            copy_of(wrong)
