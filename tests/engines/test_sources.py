"""What can be registered: CSV with bad cells, Parquet of many types, frames, .duckdb files, hostile names."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb.source_tables import csv_scan, describe_source, open_database
from discreet.engines.duckdb.sources import Csv, FileTable, columns_of, source_of
from discreet.errors import InvalidParameter
from discreet.plan.model.readings import Groups, Reading, Statistic
from discreet.plan.model.types import Type
from tests.cases import every
from tests.effort import some
from tests.engines.tables import B, D, F, N, S, T, bounding, call, col, lit, witnesses
from tests.open_groups import unsealed

HOSTILE = [
    'a"b',
    "a'; DROP TABLE t0; --",
    "select",
    "ünïcode 🤦",
    "new\nline",
    "{0}",
    "$q0",
    "c0",
    "v0",
    "u",
    "a b",
    "%s",
]


def cells(engine: DuckDB | Memory, columns: dict[str, Type]) -> dict[str, Groups]:
    """Every column of the table t, as its values and how often they occur."""
    seen = {}
    for name, kind in columns.items():
        keys, statistics = witnesses(col(name, kind))
        seen[name] = unsealed(
            engine.read(Reading(table="t", keys=keys, statistics=(*statistics, Statistic(kind="rows"))))
        )
    return seen


def same(source: Any, rows: list[dict[str, Any]], columns: dict[str, Type]) -> None:
    memory = Memory()
    memory.register("t", rows, columns)
    with DuckDB(threads=1) as engine:
        engine.register("t", source, columns)
        assert cells(engine, columns) == cells(memory, columns)


CSV_COLUMNS = {"id": N, "age": N, "x": F, "ok": B, "name": T, "day": D, "at": S}
CSV_ROWS = [
    *(
        ["1", "30", "1.5", "true", "Ann", "2024-02-29", "2024-02-29 12:30:00"],
        ["2", " 31 ", "1e3", "F", "Bob, Jr.", "", ""],
    ),
    *(
        ["3", "3O", "nan", "maybe", "", "2024-02-30", "2024-01-01T00:00"],
        ["4", "", "inf", "1", "it's", "1-1-1", "2024-01-01 24:00"],
    ),
    *(
        ["5", "9223372036854775808", "1e999", "Yes", '"quoted"', "0000-01-01", "2024-01-01"],
        ["6", "-7", "-.5", "0", "two\nlines", " 9999-12-31 ", "2024-01-01 23:59:59.5"],
    ),
    *(["7", "1.0", "0x10", "NO", "ß", "today", "2024-01-01 12:00:00+02"],),
]


def test_csv_cells_are_text_until_their_declared_type_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    quoted = [[cell.replace('"', '""') for cell in row] for row in CSV_ROWS]
    lines = [",".join(f'"{cell}"' if set(cell) & set('",\n') else cell for cell in row) for row in quoted]
    path.write_text("\ufeff" + ",".join(CSV_COLUMNS) + "\r\n" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    rows = [{name: cell or None for name, cell in zip(CSV_COLUMNS, row, strict=True)} for row in CSV_ROWS]
    same(path, rows, CSV_COLUMNS)
    assert DuckDB().schema_of(path) == {}


def test_columns_of_csv_are_those_that_duckdb_finds(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    names = [name for name in HOSTILE if "\n" not in name]
    doubled = [name.replace('"', '""') for name in names]
    header = ";".join(f'"{name}"' for name in doubled)
    path.write_bytes(gzip.compress(f"{header}\n".encode()))
    source = source_of(path)
    assert isinstance(source, Csv)
    with open_database() as connection:
        found = columns_of(connection.sql(f"SELECT * FROM {csv_scan(source)}"))
    assert list(describe_source(source).items()) == list(found.items())
    assert list(found) == names


def test_csv_lines_that_are_too_short_or_too_long_do_not_fail(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_bytes(b"id\tage\n1\t2\n3\n4\t5\t6\t7\n\n8\t\xff\xfe\n9\t10\n")
    with DuckDB(threads=1) as engine:
        engine.register("t", path, {"id": N, "age": N})
        kept = unsealed(engine.read(Reading(table="t", keys=(col("id", N),), statistics=(Statistic(kind="rows"),))))
    assert {(1,), (3,), (9,)} <= kept.keys()


@pytest.mark.ci
def test_parquet_types_are_read_as_ours(tmp_path: Path) -> None:
    utc = dt.datetime(2024, 1, 1, 23, tzinfo=dt.UTC)
    arrays = {
        "i8": (pa.array([1, None], pa.int8()), N),
        "u64": (pa.array([1, 2**64 - 1], pa.uint64()), N),
        "f32": (pa.array([0.1, float("nan")], pa.float32()), F),
        "money": (pa.array([Decimal("12.30"), Decimal("-0.01")], pa.decimal128(12, 2)), F),
        "words": (pa.array(["a", "b"]).dictionary_encode(), T),
        "ns": (pa.array([dt.datetime(2024, 1, 1, 1), None], pa.timestamp("ns")), S),
        "zoned": (pa.array([utc, None], pa.timestamp("us", tz="Europe/Berlin")), S),
        "day": (pa.array([dt.date(2024, 1, 1), None], pa.date32()), D),
        "far": (pa.array([10**7, -(10**7)], pa.int32()).cast(pa.date32()), D),
    }
    table = pa.table({name: array for name, (array, _) in arrays.items()} | {"raw": pa.array([b"x", b"y"])})
    path = tmp_path / "table.parquet"
    pq.write_table(table, path)
    columns = {name: kind for name, (_, kind) in arrays.items()}
    assert DuckDB().schema_of(path) == columns
    rows = table.drop_columns(["far"]).to_pylist()
    rows[0]["ns"] = dt.datetime(2024, 1, 1, 1)  # pandas' own class, if it is installed
    same(path, [row | {"far": None} for row in rows], columns)
    same([path, path], [row | {"far": None} for row in rows] * 2, columns)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.table, lambda data: nw.from_native(pl.DataFrame(data)).to_native()]
)
def test_frames(frame: Any) -> None:
    data = {"n": [1, 2, 3], "x": [0.5, float("nan"), 1e300], "s": ["a", "", "🤦"], "b": [True, False, True]}
    rows = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    columns = {"n": N, "x": F, "s": T, "b": B}
    assert DuckDB().schema_of(frame(data)) == columns
    same(frame(data), rows, columns)


def test_object_columns_of_pandas_carry_no_type_and_are_read_as_text() -> None:
    objects = [1, "2", None, 3.5, float("nan"), dt.date(2024, 1, 1), "x"]
    frame = pd.DataFrame({"o": pd.Series(objects, dtype=object), "n": range(7)})
    assert DuckDB().schema_of(frame) == {"n": N}
    texts = [{"o": None if value in (None, objects[4]) else str(value), "n": i} for i, value in enumerate(objects)]
    same(frame, texts, {"o": N, "n": N})
    same(frame, texts, {"o": T, "n": N})


def test_a_frame_is_read_when_it_is_registered_and_not_watched() -> None:
    frame = pd.DataFrame({"n": [1, 2]})
    with DuckDB(threads=1) as engine:
        engine.register("t", frame, {"n": N})
        rows = Reading(table="t", statistics=(Statistic(kind="rows"),))
        assert unsealed(engine.read(rows)) == {(): (2,)}
        del frame
        engine.register("s", pa.table({"n": [1]}), {"n": N})
        assert unsealed(engine.read(rows)) == {(): (2,)}


def test_tables_of_a_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE "odd ""name" (n BIGINT, s VARCHAR)')
        connection.execute("""INSERT INTO "odd ""name" VALUES (1, 'a'), (NULL, 'b')""")
    source = FileTable(path=path, table='odd "name')
    assert DuckDB().schema_of(source) == {"n": N, "s": T}
    same(source, [{"n": 1, "s": "a"}, {"n": None, "s": "b"}], {"n": N, "s": T})


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_columns_tables_and_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name.replace('{', '(').replace('}', ')')}.parquet"
    pq.write_table(pa.table({name: [1, 1, 2], "x": [0.5, 1.5, 2.5]}), path)
    with DuckDB(threads=1) as engine:
        engine.register(name, path, {name: N, "x": F})
        total = Statistic(kind="sum", argument=col("x", F), exponent=-1, low=0, high=9)
        for limits in (None, bounding(1, 1, unit=name, salt=name)):
            answer = unsealed(
                engine.read(Reading(table=name, keys=(col(name, N),), bounding=limits, statistics=(total,)))
            )
            assert answer.keys() == {(1,), (2,)}


@every("text", some([*HOSTILE, "'", "''", "\\'", "\0", "a\0b", "\u2028", "';SELECT 1;--", "$q1", "?"], 4))
def test_hostile_literals(text: str) -> None:
    rows = [{"s": text}, {"s": "other"}]
    memory = Memory()
    memory.register("t", rows, {"s": T})
    with DuckDB(threads=1) as engine:
        engine.register("t", pa.table({"s": [text, "other"]}), {"s": T})
        for function in ("equal", "in", "like"):
            where = call(function, B, col("s", T), lit(text, T))
            asked = Reading(table="t", where=where, statistics=(Statistic(kind="rows"),))
            assert unsealed(engine.read(asked)) == unsealed(memory.read(asked)) == {(): (1,)}


@pytest.mark.parametrize(
    "source",
    ["absent.parquet", "/etc/passwd", "absent/*.parquet", "https://example.org/a.parquet", "/", 3, "a\0b", object()],
)
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(InvalidParameter):
        DuckDB().register("t", source, {"n": N})
    with pytest.raises(InvalidParameter):
        Memory().register("t", source, {"n": N})


def test_columns_that_are_not_there_or_of_another_type_are_refused(tmp_path: Path) -> None:
    table = pa.table({"n": [1], "raw": [b"x"], "day": [dt.date(2024, 1, 1)]})
    for columns in ({"m": N}, {"raw": T}, {"day": N}, {"n": D}, {}):
        with pytest.raises(InvalidParameter):
            DuckDB().register("t", table, columns)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 ZZ-CANARY-7")
    with pytest.raises(InvalidParameter) as caught:
        DuckDB().register("t", broken, {"n": N})
    assert "CANARY" not in str(caught.value)
    doubled = tmp_path / "doubled.csv"
    doubled.write_text("a,a\n1,2\n")
    with pytest.raises(InvalidParameter):
        DuckDB().register("t", doubled, {"a": N})
