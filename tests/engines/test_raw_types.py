"""What cannot be read whatever is in it is refused by its type; beside it, other columns can be asked about."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB, Memory
from discreet.engines.duckdb import arrow as arrow_module
from discreet.engines.duckdb import engine as module
from discreet.engines.duckdb.copies import copy_of
from discreet.engines.duckdb.sources import FileTable
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines import parquet_bytes as p
from tests.engines import raw_parquet
from tests.engines.parquet_bytes import Stored, parquet
from tests.engines.raw import Specimen
from tests.engines.raw_arrow import text_array
from tests.engines.raw_objects import OBJECTS
from tests.engines.tables import B, D, F, N, S, T, col, witnesses
from tests.engines.test_raw import SPECIMENS, answers, chosen
from tests.engines.test_sources import same
from tests.open_groups import unsealed

ROWS = Reading(table="t", statistics=(Statistic(kind="rows"), Statistic(kind="sum", argument=col("n", N), high=9)))
GARBAGE = bytes(range(200, 256)) * 8


def _numbered(columns: Mapping[str, tuple[list[bytes], Mapping[str, Any]]], rows: int) -> bytes:
    """A file of columns, and of a number for each row."""
    stored = {"n": Stored(p.INT64, [struct.pack("<q", place) for place in range(rows)])}
    for name, (cells, kind) in columns.items():
        padded = [*cells[:rows], *[None] * (rows - len(cells))]
        stored[name] = Stored(cells=padded, statistics=False, **kind)
    return parquet(stored)


DECIMAL = {"converted": p.DECIMAL, "precision": 38, "scale": 2}
FILES: dict[str, tuple[list[bytes], Mapping[str, Any]]] = {
    "a decimal in bytes": ([b"\x01", b"\x7f" + b"\xff" * 19, b""], {"type": p.BYTES, **DECIMAL}),
    "a decimal in 20 bytes": (
        [b"\0" * 19 + b"\x01", b"\x7f" + b"\xff" * 19],
        {"type": p.FIXED, "length": 20, **DECIMAL},
    ),
    "a short decimal in 16 bytes": (
        [b"\0" * 16, b"\x7f" * 16],
        {"type": p.FIXED, "length": 16, "converted": p.DECIMAL, "precision": 4, "scale": 2},
    ),
    "JSON": ([b"{}", b"{", b"\xff"], {"type": p.BYTES, "converted": p.JSON}),
    "bytes": ([b"a", b"\xff"], {"type": p.BYTES}),
    "a time": ([struct.pack("<q", 5), struct.pack("<q", -(1 << 63))], {"type": p.INT64, "converted": 8}),
    "an interval": ([b"\0" * 12, b"\xff" * 12], {"type": p.FIXED, "length": 12, "converted": 21}),
}


@pytest.mark.parametrize("rows", [1, 3])
def test_columns_of_files_are_refused_by_their_type(tmp_path: Path, rows: int) -> None:
    """With ordinary cells, and with those on which a reader fails: the same."""
    path = tmp_path / "x.parquet"
    path.write_bytes(_numbered(FILES, rows))
    with DuckDB(threads=1) as engine:
        assert engine.schema_of(path) == {"n": N}
        with pytest.raises(InvalidParameter, match="readable column"):
            engine.register("t", path, {"n": N, "a decimal in bytes": F})
        engine.register("t", path, {"n": N})
        assert unsealed(engine.read(ROWS))[()][0] == rows


def test_moments_of_twelve_bytes_never_fail(tmp_path: Path) -> None:
    cells = [struct.pack("<qi", 0, 2440588), b"\0" * 12, b"\xff" * 12, b"\x7f" * 12, b"\x80" * 12]
    (tmp_path / "x.parquet").write_bytes(_numbered({"x": (cells, {"type": p.INT96})}, 6))
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path / "x.parquet", {"n": N, "x": S})
        found = unsealed(engine.read(Reading(table="t", keys=(col("x", S),), statistics=(Statistic(kind="rows"),))))
    assert sum(rows for (rows,) in found.values()) == 6


def _raw(kind: Any, size: int) -> pa.Array:
    return pa.Array.from_buffers(kind, 4, [None, pa.py_buffer(GARBAGE[: 4 * size])])


ARROW: list[Any] = [
    *(
        _raw(pa.duration("s"), 8),
        _raw(pa.time64("ns"), 8),
        _raw(pa.time32("s"), 4),
        _raw(pa.month_day_nano_interval(), 16),
    ),
    *(_raw(pa.decimal256(76, 0), 32), _raw(pa.binary(4), 4), _raw(pa.decimal128(38, -5), 16), pa.nulls(4)),
    *(pa.array([[1]] * 4), pa.array([{"a": 1}] * 4), pa.array([b"\xff"] * 4, pa.binary_view())),
]


def test_columns_of_arrow_are_refused_by_their_type() -> None:
    table = pa.table({"n": [1, 2, 3, 4], **{str(array.type): array for array in ARROW}})
    with DuckDB(threads=1) as engine:
        assert engine.schema_of(table) == {"n": N}
        engine.register("t", table, {"n": N})
        assert unsealed(engine.read(ROWS)) == {(): (4, 10)}


def test_columns_of_frames_are_refused_by_their_type() -> None:
    periods = pd.period_range("2024-01", periods=1, freq="M")
    lasting = np.array([1 << 62], dtype="timedelta64[s]")
    frames: list[Any] = [
        pd.DataFrame({"n": [1], "x": pd.Series([1j]), "y": periods, "z": lasting}),
        pl.DataFrame(
            {"n": [1], "x": pl.Series([object()], dtype=pl.Object), "y": pl.Series([1 << 62], dtype=pl.Duration("ms"))}
        ),
    ]
    for frame in frames:
        with DuckDB(threads=1) as engine:
            assert engine.schema_of(frame) == {"n": N}
            engine.register("t", frame, {"n": N})
            assert unsealed(engine.read(ROWS)) == {(): (1, 1)}
    with pytest.raises(InvalidParameter, match="128-bit"):
        DuckDB().schema_of(pl.DataFrame({"n": [1], "x": pl.Series([1 << 100], dtype=pl.Int128)}))
    with pytest.raises(InvalidParameter, match="table"):  # it would be empty when it is read again
        DuckDB().schema_of(pa.table({"n": [1]}).to_reader())


def test_a_frame_is_read_in_batches_whatever_its_chunks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_module, "_ROWS", 3)
    numbers = pd.arrays.ArrowExtensionArray(pa.chunked_array([[1, 2], [3, 4, 5]]))
    words = pd.concat([pd.Series(["a", "b"]), pd.Series(["c", "d", "e"])], ignore_index=True)
    frame = pd.DataFrame(
        {"n": numbers, "s": words, "c": pd.Categorical(["q", "r", "q", None, "r"]), "o": [1, "x", None, 2, 3]}
    )
    kinds = {"n": N, "s": T, "c": T, "o": T}
    cells = {name: [None if pd.isna(cell) else str(cell) for cell in frame[name]] for name in kinds}
    rows: list[dict[str, Any]] = [dict(zip(kinds, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    same(frame, rows, kinds)


def test_beside_milliseconds_only_what_both_readers_find_alike_is_read(tmp_path: Path) -> None:
    short = Stored(p.INT32, [struct.pack("<i", 70_000)], converted=p.DECIMAL, precision=4, scale=2)
    moment = Stored(p.INT64, [struct.pack("<q", 5)], converted=p.TIMESTAMP_MILLIS)
    old = Stored(p.INT96, [b"\x7f" * 12])
    tiny = Stored(p.INT32, [struct.pack("<i", 300)], logical=p.logical_integer(8, signed=True))
    path = tmp_path / "x.parquet"
    path.write_bytes(parquet({"a": moment, "b": short, "c": old, "d": tiny}))
    assert DuckDB().schema_of(path) == {"a": S}
    path.write_bytes(parquet({"b": short, "c": old, "d": tiny}))
    assert DuckDB().schema_of(path) == {"b": F, "c": S, "d": N}


BESIDE = [specimen for specimen in raw_parquet.specimens() if isinstance(specimen.build, raw_parquet.File)]


@pytest.mark.slow
@pytest.mark.parametrize("specimen", BESIDE, ids=lambda specimen: specimen.name)
def test_a_moment_that_needs_care_changes_no_other_cell(specimen: Specimen, tmp_path: Path) -> None:
    """Another reader reads the whole file then, and finds the same in it, also where values are too large."""
    assert isinstance(specimen.build, raw_parquet.File)
    keys, statistics = witnesses(col("x", specimen.type))
    asked = Reading(table="t", keys=keys, statistics=(*statistics, Statistic(kind="values", argument=col("at", S))))
    far = [5] * (len(specimen.cells) - 1) + [1 << 62]
    rows = [row | {"at": dt.datetime(1970, 1, 1)} for row in specimen.rows(specimen.cells)]
    for at in ([5] * len(far), far):
        path = specimen.build(specimen.cells, tmp_path, at)
        kinds = {"x": specimen.type, "at": S}
        with DuckDB(threads=1) as engine, Memory() as memory:
            if "x" not in engine.schema_of(path):
                assert specimen.name.startswith(("parquet enum", "parquet decimal 4"))
                continue
            engine.register("t", path, kinds)
            rows[-1]["at"] = None if at is far else rows[0]["at"]
            memory.register("t", rows, kinds)
            assert unsealed(engine.read(asked)) == unsealed(memory.read(asked))


def test_files_of_different_types_are_each_read_by_their_own(tmp_path: Path) -> None:
    """DuckDB would convert the second one's values to the first one's type, and fail at some."""
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "c.parquet"]
    for path, cell in zip(paths, (pa.array([1], pa.int32()), pa.array([1 << 40]), pa.array(["x"])), strict=True):
        pq.write_table(pa.table({"n": cell}), path)
    assert DuckDB().schema_of(paths[:2]) == {"n": N}
    assert DuckDB().schema_of(paths) == {}  # it must be declared
    with DuckDB(threads=1) as engine:
        engine.register("t", paths, {"n": N})
        asked = Reading(table="t", keys=(col("n", N),), statistics=ROWS.statistics)
        assert unsealed(engine.read(asked)).keys() == {(1,), (1 << 40,), (None,)}


def test_a_view_of_a_file_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS n, 'a' AS s")
        connection.execute("CREATE VIEW v AS SELECT n, CAST(s AS INTEGER) AS x FROM t")
    with pytest.raises(InvalidParameter, match="not a view"):
        DuckDB().schema_of(FileTable(path=tmp_path / "x.duckdb", table="v"))
    assert DuckDB().schema_of(FileTable(path=tmp_path / "x.duckdb", table="t")) == {"n": N, "s": T}


def test_lists_of_decimals_are_no_decimals(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t (n INTEGER, x DECIMAL(10,2)[], y ENUM('a', ')[]'))")
    assert DuckDB().schema_of(FileTable(path=tmp_path / "x.duckdb", table="t")) == {"n": N, "y": T}


@pytest.mark.parametrize("declared", [N, F, B, T, D, S])
def test_any_object_in_a_row_is_read_or_null(declared: Type) -> None:
    rows = [{"id": place, "n": 1, "x": cell} for place, cell in enumerate(OBJECTS)]
    kinds = {"id": N, "n": N, "x": declared}
    memory = Memory()
    memory.register("t", rows, kinds)
    asked = Reading(
        table="t", statistics=(Statistic(kind="rows"), Statistic(kind="values", argument=col("x", declared)))
    )
    found = unsealed(memory.read(asked))
    assert found[()][0] == len(OBJECTS)
    assert 0 < found[()][1] < len(OBJECTS)


def test_rows_that_are_no_mappings_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="sequence of dicts"):
        Memory().register("t", [{"n": 1}, [1]], {"n": N})


def test_a_database_that_gave_up_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with DuckDB(threads=1) as engine:
        engine.register("t", pa.table({"n": [1, 2]}), {"n": N})
        fails: Callable[..., Any] = lambda *_: (_ for _ in ()).throw(duckdb.FatalException("invalidated"))  # noqa: E731
        with monkeypatch.context() as patch:
            patch.setattr(module, "fetch_rows", fails)
            with pytest.raises(QueryFailed):
                unsealed(engine.read(ROWS))
        assert engine._open is None
        assert unsealed(engine.read(ROWS)) == {(): (2, 3)}


COPIED = ("parquet utf8 statistics=True", "parquet ms utc=True statistics=True")


@pytest.mark.parametrize("specimen", chosen(*COPIED), ids=lambda specimen: specimen.name)
def test_copies_for_audits_hold_what_engines_read(specimen: Specimen, tmp_path: Path) -> None:
    copy = copy_of(specimen.build(specimen.cells, tmp_path))
    assert copy.column(["id", "n", "x"]) == specimen.rows(specimen.cells)
    with DuckDB(threads=1) as engine:
        found = answers(engine, copy.with_changes(without=[0], more=copy.rows([0])), specimen.type)
    assert found == answers(Memory(), specimen.rows(specimen.cells), specimen.type)


def test_texts_beside_columns_that_are_called_like_our_own(tmp_path: Path) -> None:
    """In what reads broken texts, names of ours could meet those of the file."""
    names = ["a", "b", "b0", "#a", "t0", "t0_broken", 'q"', "file_name"]
    columns = {name: text_array([b"x", b"\xff", b"?"], pa.string()) for name in names}
    pq.write_table(pa.table({"n": [1, 2, 3], **columns}), tmp_path / "x.parquet")
    with DuckDB(threads=1) as engine:
        engine.register("t", tmp_path / "x.parquet", {"n": N, **dict.fromkeys(names, T)})
        for name in names:
            asked = Reading(table="t", keys=(col(name, T),), statistics=(Statistic(kind="rows"),))
            assert unsealed(engine.read(asked)) == {("x",): (1,), (None,): (1,), ("?",): (1,)}
    pq.write_table(pa.table({"file_row_number": [1], "s": ["a"]}), tmp_path / "y.parquet")
    assert DuckDB().schema_of(tmp_path / "y.parquet") == {"file_row_number": N}


def test_every_type_of_ours_has_specimens_of_every_source() -> None:
    sources = {"parquet", "arrow", "stream", "polars", "pandas", "duckdb", "csv"}
    assert {specimen.name.split()[0] for specimen in SPECIMENS} == sources
    assert {specimen.type for specimen in SPECIMENS} == {N, F, B, T, D, S}
