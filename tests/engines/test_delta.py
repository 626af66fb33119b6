"""Delta tables: which rows a version has, and how its columns are found, in logs of all kinds and hostile ones."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB
from discreet.engines.duckdb.composed import lake_parts
from discreet.engines.duckdb.sources import files_of, present_files
from discreet.engines.lakes import lake_table
from discreet.engines.lakes.lake_table import LakeTable, newest_snapshot
from discreet.engines.sources.query_view import query_view
from discreet.errors import InvalidParameter, MissingExtra, QueryFailed, UnsupportedQuery
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.lakehouses import LOG, Files, by_hand, delta, edit_log, features, field, vacuum, vector, version_of
from tests.engines.raw_arrow import text_array
from tests.engines.tables import B, D, F, N, S, T, col, witnesses
from tests.open_groups import unsealed

ROWS = Reading(table="t", statistics=(Statistic(kind="rows"),))


def by(name: str, kind: Type) -> Reading:
    return Reading(table="t", keys=(col(name, kind),), statistics=ROWS.statistics)


def counts(source: Any, name: str, kind: Type, columns: Mapping[str, Type] | None = None) -> dict[Any, int]:
    """How many rows each value of a column has."""
    with DuckDB(threads=1) as engine:
        engine.register("t", source, columns or engine.schema_of(source))
        return {key: rows for (key,), (rows,) in unsealed(engine.read(by(name, kind))).items()}


# ---------------------------------------------------------------------------------------------------------------- files


def test_a_version_is_read_as_the_log_lists_it(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", pa.table({"n": [1, 2]}), pa.table({"n": [3]}))
    deltalake.DeltaTable(lake).delete("n = 1")
    pq.write_table(pa.table({"n": [99]}), lake / "left behind.parquet")
    assert counts(lake, "n", N) == counts(f"{lake}/", "n", N) == {2: 1, 3: 1}
    assert DuckDB().schema_of(lake) == {"n": N}


def test_a_snapshot_stays_as_it_is(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", pa.table({"n": [1, 2]}))
    before = newest_snapshot(lake)
    delta(lake, pa.table({"n": [3], "more": ["x"]}), schema_mode="merge")
    deltalake.DeltaTable(lake).delete("n = 1")
    deltalake.DeltaTable(lake).optimize.compact()
    assert counts(before, "n", N) == {1: 1, 2: 1}
    assert counts(newest_snapshot(before), "n", N) == {2: 1, 3: 1}
    assert counts(lake, "more", T) == {None: 1, "x": 1}
    assert before is not None
    assert before.schema() == {"n": N}
    assert newest_snapshot(tmp_path / "visits.csv") is None


def test_what_was_vacuumed_is_gone(tmp_path: Path) -> None:
    lake = delta(tmp_path / "CANARY", pa.table({"n": [1, 2]}))
    before = newest_snapshot(lake)
    with DuckDB(threads=1) as engine:
        engine.register("t", before, {"n": N})
        engine.check(["t"], [])
        deltalake.DeltaTable(lake).delete("n = 1")
        engine.check(["t"], [])
        vacuum(lake)
        with pytest.raises(UnsupportedQuery, match="no longer there") as caught:
            engine.check(["t"], [])
        assert "CANARY" not in str(caught.value)
        with pytest.raises(QueryFailed) as failed:
            engine.read(ROWS)
        assert "CANARY" not in f"{failed.value} {failed.value.__cause__} {failed.value.__context__}"
    assert counts(lake, "n", N) == {2: 1}


def test_a_snapshot_that_is_gone_fails_no_query_of_other_tables(tmp_path: Path) -> None:
    lake, other = (delta(tmp_path / name, pa.table({"n": [1, 2]})) for name in ("lake", "other"))
    one = tmp_path / "one.parquet"
    pq.write_table(pa.table({"n": [3]}), one)
    with DuckDB(threads=1) as engine:
        for name, source in {"t": lake, "s": other, "u": one}.items():
            engine.register(name, source, {"n": N})
        deltalake.DeltaTable(lake).delete("n = 1")
        vacuum(lake)
        for name, rows in (("s", 2), ("u", 1)):
            assert unsealed(engine.read(Reading(table=name, statistics=ROWS.statistics))) == {(): (rows,)}
        with pytest.raises(QueryFailed):
            engine.read(ROWS)


def test_another_table_in_the_same_place_is_not_read(tmp_path: Path) -> None:
    rows = pa.table({"n": [1]})
    lake = by_hand(tmp_path / "lake", [field("n", "long")], {"a.parquet": (rows, {})})
    before = newest_snapshot(lake)
    shutil.rmtree(lake)
    lake_table._read_snapshot.cache_clear()  # as in another process
    by_hand(lake, [field("n", "long")], {"a.parquet": (rows, {})}, uuid="99999999-2222-3333-4444-555555555555")
    with DuckDB(threads=1) as engine:
        engine.register("t", before, {"n": N})  # the ledger has its columns
        with pytest.raises(UnsupportedQuery, match="no longer there"):
            engine.check(["t"], [])
    with pytest.raises(InvalidParameter, match="new version"):
        DuckDB().schema_of(before)


def test_names_in_the_log_are_those_of_an_address(tmp_path: Path) -> None:
    lake = by_hand(tmp_path / "lake ü#", [field("n", "long")], {"a b%41.parquet": (pa.table({"n": [1]}), {})})
    edit_log(lake, "a b%41.parquet", "a%20b%2541.parquet")
    assert counts(lake, "n", N) == {1: 1}


@pytest.mark.parametrize("place", ["../other.parquet", "%2E%2E/other.parquet", "{0}/other.parquet", "file://{0}/other"])
def test_files_elsewhere_are_refused(tmp_path: Path, place: str) -> None:
    pq.write_table(pa.table({"n": [7]}), tmp_path / "other.parquet")
    lake = by_hand(tmp_path / "lake", [field("n", "long")], {"a.parquet": (pa.table({"n": [1]}), {})})
    edit_log(lake, '"a.parquet"', f'"{place.format(tmp_path)}"')
    with pytest.raises(InvalidParameter, match="own folder"):
        DuckDB().schema_of(lake)


def test_links_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [7]}), tmp_path / "other.parquet")
    lake = by_hand(tmp_path / "lake", [field("n", "long")], {"a.parquet": (pa.table({"n": [1]}), {})})
    (lake / "a.parquet").unlink()
    (lake / "a.parquet").symlink_to(tmp_path / "other.parquet")
    with pytest.raises(InvalidParameter, match="own folder"):
        DuckDB().schema_of(lake)


def test_what_is_no_delta_table_that_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty" / LOG).mkdir(parents=True)
    with pytest.raises(InvalidParameter, match="to be a Delta table"):
        DuckDB().schema_of(tmp_path / "empty")
    lake = delta(tmp_path / "lake", pa.table({"n": [1]}))
    for file in lake.glob("*.parquet"):
        file.unlink()
    with pytest.raises(InvalidParameter, match="all the files"):
        DuckDB().schema_of(lake)
    with pytest.raises(InvalidParameter, match="without a pattern"):
        DuckDB().schema_of(f"{lake}/*.parquet")
    with pytest.raises(InvalidParameter, match="without the signs"):
        DuckDB().schema_of(lake.rename(tmp_path / "la[k]e"))


def test_a_table_without_files_is_empty(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", pa.table({"n": [1], "x": [1.5]}))
    deltalake.DeltaTable(lake).delete()
    assert counts(lake, "n", N) == {}
    assert DuckDB().schema_of(lake) == {"n": N, "x": F}


def test_where_it_is_and_what_files_it_has(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", pa.table({"n": [1]}), pa.table({"n": [2]}))
    state = lake.stat()
    assert files_of(lake) == files_of(newest_snapshot(lake)) == {f"{lake}/": f"{state.st_dev}:{state.st_ino}"}
    inodes = {f"{file.stat().st_dev}:{file.stat().st_ino}" for file in lake.glob("*.parquet")}
    assert {*present_files(lake).values()} == inodes
    assert files_of(LakeTable(place=str(lake), snapshot="delta:other:0")) == {}


def test_only_the_files_of_the_snapshot_are_within_reach(tmp_path: Path) -> None:
    lake = delta(tmp_path / "lake", pa.table({"n": [1]}))
    pq.write_table(pa.table({"n": [2]}), lake / "other.parquet")
    with DuckDB(threads=1) as engine, query_view() as view:
        engine.register("t", lake, {"n": N})
        database = engine._database(view, {"t0": engine._tables["t"]})
        for path in (lake / "other.parquet", lake / "*.parquet", lake / LOG / f"{0:020}.json"):
            with pytest.raises(Exception, match=r"[Pp]ermission"):
                database.connection.execute(f"SELECT * FROM '{path}'")


def test_without_the_library_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = delta(tmp_path / "lake", pa.table({"n": [1]}))
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    monkeypatch.delitem(__import__("sys").modules, "discreet.engines.lakes.delta_log", raising=False)
    with pytest.raises(MissingExtra, match=r"A Delta table needs deltalake.*pip install '\.\[delta\]'"):
        DuckDB().schema_of(lake)


# -------------------------------------------------------------------------------------------------------------- columns


def _mapped(folder: Path, mode: str) -> Path:
    """A table whose columns were renamed: `ward` was `sex` once, and the column that was called so was dropped."""
    ids = {"c-1": 1, "c-2": 2, "c-3": 3, "sex": 9}

    def stored(columns: Mapping[str, Any]) -> pa.Table:
        numbered = [pa.field(name, pa.array(cells).type, metadata={"PARQUET:field_id": str(ids[name])})
                    for name, cells in columns.items()]  # fmt: skip
        return pa.table({**columns}, schema=pa.schema(numbered))

    fields = [field("n", "long", 1, "c-1"), field("ward", "string", 2, "c-2"), field("sex", "string", 3, "c-3")]
    files: Files = {
        "a.parquet": (stored({"c-1": [1], "c-2": ["A"], "sex": ["old"]}), {}),
        "b.parquet": (stored({"c-3": ["f"], "c-2": ["B"], "c-1": [2]}), {}),
    }
    return by_hand(folder, fields, files, mode=mode)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_by_name_or_id(tmp_path: Path, mode: str) -> None:
    lake = _mapped(tmp_path / "lake", mode)
    assert counts(lake, "ward", T) == {"A": 1, "B": 1}
    assert counts(lake, "sex", T) == {None: 1, "f": 1}
    assert counts(lake, "n", N) == {1: 1, 2: 1}


def test_columns_found_by_their_names_instead_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        lake_parts,
        "_names",
        lambda wanted, footer: {c.name: c.name for c in wanted if c.name in {r[0] for r in footer}},
    )
    assert counts(_mapped(tmp_path / "lake", "name"), "sex", T) != {None: 1, "f": 1}


def test_files_without_ids_have_no_columns_in_a_table_of_ids(tmp_path: Path) -> None:
    lake = by_hand(
        tmp_path / "lake", [field("n", "long", 1, "n")], {"a.parquet": (pa.table({"n": [1]}), {})}, mode="id"
    )
    assert counts(lake, "n", N) == {None: 1}


WIDER = [
    ("long", pa.int32(), [7, None], N, {7, None}),
    ("double", pa.float32(), [0.5, None], F, None),
    ("double", pa.int32(), [7, None], F, None),
    ("decimal(12,2)", pa.decimal128(6, 2), [Decimal("1.25"), None], F, None),
    ("timestamp_ntz", pa.date32(), [dt.date(2024, 1, 1), None], S, {dt.datetime(2024, 1, 1), None}),
]


@pytest.mark.parametrize("widened", WIDER, ids=lambda one: f"{one[1]} to {one[0]}")
def test_a_type_that_was_widened_is_read_in_old_files(
    tmp_path: Path, widened: tuple[str, Any, list[Any], Type, set[Any] | None]
) -> None:
    kind, stored, cells, ours, expected = widened
    rows = pa.table({"x": pa.array(cells, stored)})
    protocol = features("typeWidening", "timestampNtz")
    lake = by_hand(tmp_path / "lake", [field("x", kind)], {"a.parquet": (rows, {})}, protocol=protocol)
    if expected is not None:
        assert {*counts(lake, "x", ours)} == expected
        return
    keys, statistics = witnesses(col("x", ours))
    pq.write_table(
        pa.table({"x": [float(cell) if cell is not None else None for cell in cells]}), tmp_path / "x.parquet"
    )
    seen = []
    for source in (lake, tmp_path / "x.parquet"):
        with DuckDB(threads=1) as engine:
            engine.register("t", source, {"x": ours})
            seen.append(unsealed(engine.read(Reading(table="t", keys=keys, statistics=statistics))))
    assert seen[0] == seen[1]


def test_columns_of_types_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    rows = pa.table({"n": [1], "b": [b"x"], "l": [[1]], "s": [{"n": 5}]})
    lake = delta(tmp_path / "lake", rows)
    assert DuckDB().schema_of(lake) == {"n": N}
    with pytest.raises(InvalidParameter, match="to be a readable column"):
        counts(lake, "l", N, {"l": N})
    assert counts(lake, "n", N) == {1: 1}  # not the one inside of s


def test_columns_that_differ_in_letter_case_alone_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"n": [1], "N": [2]})
    lake = by_hand(tmp_path / "lake", [field("n", "long"), field("N", "long")], {"a.parquet": (rows, {})})
    with pytest.raises(InvalidParameter):
        DuckDB().schema_of(lake)


@pytest.mark.parametrize("feature", ["catalogManaged", "variantType", "somethingNew"])
def test_an_unknown_feature_is_refused(tmp_path: Path, feature: str) -> None:
    files: Files = {"a.parquet": (pa.table({"n": [1]}), {})}
    lake = by_hand(tmp_path / "lake", [field("n", "long")], files, protocol=features(feature))
    with pytest.raises(InvalidParameter, match=r"Delta table that can be read|without the feature"):
        DuckDB().schema_of(lake)


# ----------------------------------------------------------------------------------------------------------- partitions

VALUES: dict[str, tuple[Any, list[Any], Type, set[Any]]] = {
    "text": (pa.string(), ["A", "a/b ü=%41", "'; --", "7", None], T, {"A", "a/b ü=%41", "'; --", "7", None}),
    "whole": (pa.int64(), [1, -(1 << 63), None], N, {1, -(1 << 63), None}),
    "small": (pa.int8(), [1, -128, None], N, {1, -128, None}),
    "truth": (pa.bool_(), [True, False, None], B, {True, False, None}),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None], D, {dt.date.min, dt.date.max, None}),
    "moment": (
        pa.timestamp("us", tz="UTC"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC), None],
        S,
        {dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None},
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_partitions_have_the_types_of_the_log(tmp_path: Path, name: str) -> None:
    kind, cells, ours, expected = VALUES[name]
    lake = delta(tmp_path / "lake", pa.table({"p": pa.array(cells, kind), "n": range(len(cells))}), partition_by=["p"])
    assert DuckDB().schema_of(lake) == {"p": ours, "n": N}
    assert counts(lake, "p", ours) == dict.fromkeys(expected, 1)
    assert counts(lake, "n", N, {"n": N}) == dict.fromkeys(range(len(cells)), 1)


def test_numbers_of_partitions_are_those_of_a_column(tmp_path: Path) -> None:
    cells = pa.table({"x": [0.1, 1e20, -2.5, None], "d": [Decimal("0.10"), Decimal("12.34"), Decimal(7), None]})
    cells = cells.set_column(1, "d", cells["d"].cast(pa.decimal128(10, 2))).append_column("n", pa.array([1, 2, 3, 4]))
    lake = delta(tmp_path / "lake", cells, partition_by=["x", "d"])
    pq.write_table(cells, tmp_path / "one.parquet")
    for name in ("x", "d"):
        keys, statistics = witnesses(col(name, F))
        seen = []
        for source in (lake, tmp_path / "one.parquet"):
            with DuckDB(threads=1) as engine:
                engine.register("t", source, {"x": F, "d": F})
                seen.append(unsealed(engine.read(Reading(table="t", keys=keys, statistics=statistics))))
        assert seen[0] == seen[1]


def test_a_partition_wins_over_the_folder_and_the_file(tmp_path: Path) -> None:
    fields, rows = [field("ward", "string"), field("n", "long")], pa.table({"ward": ["file"], "n": [1]})
    told = {"partitionValues": {"ward": "log"}}
    (tmp_path / "lake" / "ward=folder").mkdir(parents=True)
    lake = by_hand(tmp_path / "lake", fields, {"ward=folder/a.parquet": (rows, told)}, partition_by=["ward"])
    assert counts(lake, "ward", T) == {"log": 1}


# --------------------------------------------------------------------------------------------------------- deleted rows


def _with_vectors(folder: Path, rows: pa.Table, gone: list[int], kind: str = "string") -> Path:
    files: Files = {"a.parquet": (rows, vector(gone)), "b.parquet": (rows, {}), "c.parquet": (rows, vector(gone[:1]))}
    fields = [field("n", "long"), field("s", kind)]
    return by_hand(folder, fields, files, protocol=features("deletionVectors", "timestampNtz"))


def test_deleted_rows_are_left_out(tmp_path: Path) -> None:
    lake = _with_vectors(tmp_path / "lake", pa.table({"n": [1, 2, 3], "s": ["a", "b", "c"]}), [1, 2])
    assert counts(lake, "n", N) == {1: 3, 2: 1, 3: 2}
    assert counts(lake, "s", T) == {"a": 3, "b": 1, "c": 2}


def test_deleted_rows_that_are_overlooked_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_parts, "_without_deleted", lambda scan, _: scan)
    lake = _with_vectors(tmp_path / "lake", pa.table({"n": [1, 2, 3], "s": ["a", "b", "c"]}), [1, 2])
    assert counts(lake, "n", N) == {1: 3, 2: 3, 3: 3}


def test_deleted_rows_stay_out_where_texts_are_no_utf8(tmp_path: Path) -> None:
    bad = pa.table({"n": [1, 2, 3], "s": text_array([b"ok", b"\xff", b"fine"], pa.string())})
    lake = _with_vectors(tmp_path / "lake", bad, [0])
    assert counts(lake, "s", T) == {"ok": 1, None: 3, "fine": 3}
    gone = _with_vectors(tmp_path / "gone", bad, [1])
    assert counts(gone, "s", T) == {"ok": 3, None: 1, "fine": 3}


def test_deleted_rows_stay_out_where_milliseconds_are_too_many(tmp_path: Path) -> None:
    far = pa.table({"n": [1, 2, 3], "s": pa.array([0, (1 << 63) - 1, 1000], pa.timestamp("ms"))})
    lake = _with_vectors(tmp_path / "lake", far, [2], "timestamp_ntz")
    moments = {dt.datetime(1970, 1, 1): 3, None: 3, dt.datetime(1970, 1, 1, 0, 0, 1): 1}
    assert counts(lake, "s", S) == moments


def test_deleted_rows_stay_out_of_columns_called_as_duckdbs_own(tmp_path: Path) -> None:
    rows = pa.table({"file_row_number": [5, 5, 6]})
    files: Files = {"a.parquet": (rows, vector([0])), "b.parquet": (rows, {})}
    fields = [field("file_row_number", "long")]
    lake = by_hand(tmp_path / "lake", fields, files, protocol=features("deletionVectors"))
    assert counts(lake, "file_row_number", N) == {5: 3, 6: 2}


def test_many_deleted_rows(tmp_path: Path) -> None:
    rows = pa.table({"n": range(60_000), "s": ["a"] * 60_000})
    gone = [*range(0, 60_000, 20)]
    lake = by_hand(
        tmp_path / "lake",
        [field("n", "long"), field("s", "string")],
        {"a.parquet": (rows, vector(gone))},
        protocol=features("deletionVectors"),
    )
    assert counts(lake, "s", T) == {"a": 57_000}


def test_a_deletion_vector_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    lake = _with_vectors(tmp_path / "lake", pa.table({"n": [1, 2, 3], "s": ["a", "b", "c"]}), [1])
    edit_log(lake, '"storageType": "i"', '"storageType": "u"')
    with pytest.raises(InvalidParameter, match="deletion vectors"):
        DuckDB().schema_of(lake)


def test_no_text_makes_a_read_fail_in_any_file(tmp_path: Path) -> None:
    bad = text_array([b"ok", b"\xff\xfe"], pa.string())
    lake = tmp_path / "lake"
    (lake / "p=A").mkdir(parents=True)
    files: Files = {
        "p=A/a.parquet": (pa.table({"s": bad, "n": [1, 2]}), {"partitionValues": {"p": "A"}}),
        "b.parquet": (pa.table({"n": [3]}), {"partitionValues": {"p": "B"}}),
        "c.parquet": (pa.table({"s": ["x"], "file_index": [9]}), {"partitionValues": {"p": None}}),
    }
    by_hand(lake, [field("s", "string"), field("n", "long"), field("p", "string")], files, partition_by=["p"])
    assert counts(lake, "s", T) == {"ok": 1, None: 2, "x": 1}
    with DuckDB(threads=1) as engine:
        engine.register("t", lake, {"s": T, "n": N, "p": T})
        keys, statistics = (col("p", T),), witnesses(col("s", T))[1]
        found = unsealed(engine.read(Reading(table="t", keys=keys, statistics=(*statistics, *ROWS.statistics))))
        assert {key: numbers[-1] for (key,), numbers in found.items()} == {"A": 2, "B": 1, None: 1}


def test_stages_of_a_query_find_the_files_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, listed = delta(tmp_path / "lake", pa.table({"n": [1]})), list[int]()
    list_files = LakeTable.list_files

    def counted(table: LakeTable) -> Any:
        listed.append(1)
        return list_files(table)

    monkeypatch.setattr(LakeTable, "list_files", counted)
    with DuckDB(threads=1) as engine, query_view():
        engine.register("t", lake, {"n": N})
        assert listed == []
        for _ in range(2):
            assert unsealed(engine.read(ROWS)) == {(): (1,)}
    assert listed == [1]
    assert version_of(lake) == 0


def test_files_that_were_opened_for_their_names_are_closed(tmp_path: Path) -> None:
    lake = by_hand(tmp_path / "lake", [field("n", "long")], {"a[1].parquet": (pa.table({"n": [1]}), {})})
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        assert counts(lake, "n", N) == {1: 1}
    assert len(os.listdir("/dev/fd")) <= before
