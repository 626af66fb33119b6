"""Iceberg tables: which rows a snapshot has, and how its columns are found when the schema of the table has changed."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DoubleType, IntegerType, LongType, NestedField, StringType, UUIDType

from discreet.engines import DuckDB
from discreet.engines.duckdb.composed import lake_parts
from discreet.engines.duckdb.sources import files_of
from discreet.engines.lakes import iceberg_metadata
from discreet.engines.lakes.lake_table import LakeTable, _read_snapshot, newest_snapshot
from discreet.errors import InvalidParameter, MissingExtra, UnsupportedQuery
from tests.engines.lakehouses import address_of, catalog, iceberg
from tests.engines.tables import D, F, N, T
from tests.engines.test_delta import counts


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlCatalog]:
    with catalog(tmp_path, monkeypatch) as found:
        yield found


def metadata_of(table: Table) -> Path:
    return Path(table.metadata_location.removeprefix("file://"))


def evolved(local: SqlCatalog) -> Table:
    """A table whose column `n` was renamed to `m` and widened; another `n` is there now, and another `gone`."""
    rows = {"n": pa.array([1, 2], pa.int32()), "gone": ["x", "y"], "f": pa.array([0.5, 1.5], pa.float32())}
    table = iceberg(local, pa.table(rows))
    with table.update_schema() as update:
        update.rename_column("n", "m").delete_column("gone").update_column("f", DoubleType())
    with table.update_schema() as update:
        update.add_column("n", StringType()).add_column("gone", StringType()).update_column("m", LongType())
    table.append(pa.table({"m": [1 << 40], "f": [2.5], "n": ["new"], "gone": ["z"]}))
    return table


EVOLVED: dict[str, Any] = {"m": {1: 1, 2: 1, 1 << 40: 1}, "n": {None: 2, "new": 1}, "gone": {None: 2, "z": 1}}


def test_columns_are_found_by_the_ids_of_their_fields(local: SqlCatalog) -> None:
    table = evolved(local)
    kinds = {"m": N, "f": F, "n": T, "gone": T}
    assert DuckDB().schema_of(address_of()) == kinds
    for source in (address_of(), metadata_of(table)):
        assert {name: counts(source, name, kinds[name]) for name in EVOLVED} == EVOLVED


def test_columns_found_by_their_names_instead_are_caught(local: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    evolved(local)
    monkeypatch.setattr(
        lake_parts,
        "_names",
        lambda wanted, footer: {c.name: c.name for c in wanted if c.name in {r[0] for r in footer}},
    )
    assert counts(address_of(), "n", T) != EVOLVED["n"]
    assert counts(address_of(), "gone", T) != EVOLVED["gone"]


def test_a_snapshot_stays_as_it_is(local: SqlCatalog) -> None:
    table = iceberg(local, pa.table({"n": [1, 2], "s": ["a", "b"]}))
    before = newest_snapshot(address_of())
    table.delete("n = 1")
    with table.update_schema() as update:
        update.rename_column("s", "t")
    table.append(pa.table({"n": [3], "t": ["c"]}))
    _read_snapshot.cache_clear()
    assert counts(before, "n", N) == {1: 1, 2: 1}
    assert counts(before, "s", T) == {"a": 1, "b": 1}
    assert counts(address_of(), "t", T) == {"b": 1, "c": 1}
    with table.update_schema() as update:  # without a snapshot
        update.rename_column("t", "u")
    assert counts(newest_snapshot(before), "u", T) == {"b": 1, "c": 1}


def test_a_table_without_a_snapshot_is_empty(local: SqlCatalog) -> None:
    table = iceberg(local, pa.table({"n": pa.array([], pa.int64())}))
    before = newest_snapshot(address_of())
    assert counts(before, "n", N) == {}
    table.append(pa.table({"n": [1]}))
    _read_snapshot.cache_clear()
    assert counts(before, "n", N) == {}


def test_a_file_of_metadata_is_one_state_of_the_table(local: SqlCatalog) -> None:
    table = iceberg(local, pa.table({"n": [1]}))
    first = metadata_of(table)
    table.append(pa.table({"n": [2]}))
    assert counts(first, "n", N) == {1: 1}
    assert counts(metadata_of(table), "n", N) == counts(str(metadata_of(table)), "n", N) == {1: 1, 2: 1}


@pytest.mark.parametrize("how", ["expired", "dropped", "made anew", "no catalog", "no list"])
def test_what_is_gone_is_refused_by_the_check(
    tmp_path: Path, local: SqlCatalog, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    table = iceberg(local, pa.table({"n": [1]}))
    before = newest_snapshot(address_of())
    assert before is not None
    first = table.current_snapshot()
    assert first is not None
    if how == "expired":
        table.append(pa.table({"n": [2]}))
        table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    elif how == "no catalog":
        monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__URI", f"sqlite:///{tmp_path}/absent/catalog.db")
    elif how == "no list":
        Path(first.manifest_list.removeprefix("file://")).unlink()
    else:
        local.drop_table("care.visits")
        if how == "made anew":
            iceberg(local, pa.table({"n": [1]}))
    _read_snapshot.cache_clear()
    with DuckDB(threads=1) as engine:
        engine.register("t", before, {"n": N})
        with pytest.raises(UnsupportedQuery, match="no longer there"):
            engine.check(["t"], [])
    assert files_of(before) == {}


@pytest.mark.parametrize(
    "source", ["iceberg://absent/care.visits", "iceberg://local/care.none", "iceberg://", "iceberg://local"]
)
def test_what_is_no_table_is_refused(local: SqlCatalog, source: str) -> None:
    del local
    with pytest.raises(InvalidParameter, match="to be an Iceberg table that can be read"):
        DuckDB().schema_of(source)


def test_a_folder_is_refused_with_what_to_name_instead(local: SqlCatalog) -> None:
    table = iceberg(local, pa.table({"n": [1]}))
    with pytest.raises(InvalidParameter, match=r"iceberg://CATALOG/NAMESPACE.TABLE.*or a metadata file"):
        DuckDB().schema_of(metadata_of(table).parents[1])


def test_files_elsewhere_are_refused(tmp_path: Path, local: SqlCatalog) -> None:
    pq.write_table(pa.table({"n": [7]}), tmp_path / "other.parquet")
    table = iceberg(local, pa.table({"n": [1]}))
    table.add_files([f"file://{tmp_path}/other.parquet"])
    with pytest.raises(InvalidParameter, match="own folder"):
        DuckDB().schema_of(address_of())


def test_a_table_of_an_object_store_is_refused(local: SqlCatalog, tmp_path: Path) -> None:
    table = iceberg(local, pa.table({"n": [1]}))
    text = metadata_of(table).read_text().replace(f'"location":"file://{tmp_path}', '"location":"s3://bucket')
    (tmp_path / "v2.metadata.json").write_text(text)
    with pytest.raises(InvalidParameter, match="on this machine"):
        DuckDB().schema_of(tmp_path / "v2.metadata.json")


def test_files_that_were_added_have_columns_by_the_name_mapping(local: SqlCatalog) -> None:
    table = iceberg(local, pa.table({"n": [1], "s": ["a"]}))
    inside = f"{table.location()}/data/added.parquet"
    pq.write_table(pa.table({"s": ["b"], "n": [2]}), inside.removeprefix("file://"))
    table.add_files([inside])  # which gives the table a mapping
    with table.update_schema() as update:
        update.rename_column("s", "t")
    assert counts(address_of(), "t", T) == {"a": 1, "b": 1}
    assert counts(address_of(), "n", N) == {1: 1, 2: 1}


def test_files_without_ids_and_mapping_have_no_columns(local: SqlCatalog) -> None:
    table = iceberg(local, pa.table({"n": [1]}))
    (file,) = [Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files()]
    pq.write_table(pa.table({"n": [1]}), file)
    assert counts(address_of(), "n", N) == {None: 1}


# ----------------------------------------------------------------------------------------------------------- partitions


def test_partitions_are_columns_of_the_files(local: SqlCatalog) -> None:
    schema = Schema(
        NestedField(1, "ward", StringType()), NestedField(2, "day", DateType()), NestedField(3, "n", LongType())
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "ward"),
        PartitionField(2, 1001, IdentityTransform(), "day"),
    )
    table = local.create_table("care.visits", schema=schema, partition_spec=spec)
    days = [dt.date(2024, 1, 1), None, dt.date(1969, 12, 31)]
    table.append(pa.table({"ward": ["A/ü=%41", None, "B"], "day": days, "n": [1, 2, 3]}))
    assert counts(address_of(), "ward", T) == {"A/ü=%41": 1, None: 1, "B": 1}
    assert counts(address_of(), "day", D) == dict.fromkeys(days, 1)
    assert counts(address_of(), "n", N) == {1: 1, 2: 1, 3: 1}


def test_partitions_say_what_files_do_not_have(local: SqlCatalog) -> None:
    """Files of Hive that were added leave out the columns that their folders are named after."""
    schema = Schema(
        NestedField(1, "ward", StringType()), NestedField(2, "day", DateType()), NestedField(3, "n", LongType())
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, IdentityTransform(), "ward"), PartitionField(2, 1001, IdentityTransform(), "day")
    )
    table = local.create_table("care.visits", schema=schema, partition_spec=spec)
    table.append(pa.table({"ward": ["A", "B"], "day": [dt.date(2024, 1, 1), dt.date(1, 1, 1)], "n": [1, 2]}))
    for task in table.scan().plan_files():
        file = Path(task.file.file_path.removeprefix("file://"))
        pq.write_table(pq.ParquetFile(file).read().select(["n"]), file)
    assert counts(address_of(), "ward", T) == {"A": 1, "B": 1}
    assert counts(address_of(), "day", D) == {dt.date(2024, 1, 1): 1, dt.date(1, 1, 1): 1}
    assert counts(address_of(), "n", N) == {1: 1, 2: 1}


def test_other_types_are_read_or_left_out(local: SqlCatalog) -> None:
    schema = Schema(NestedField(1, "id", UUIDType()), NestedField(2, "n", IntegerType()))
    table = local.create_table("care.visits", schema=schema)
    one = UUID("12345678-1234-5678-1234-567812345678")
    table.append(pa.table({"id": pa.array([one.bytes], pa.uuid()), "n": pa.array([1], pa.int32())}))
    assert DuckDB().schema_of(address_of()) == {"id": T, "n": N}
    assert counts(address_of(), "id", T) == {str(one): 1}
    iceberg(local, pa.table({"n": [1], "l": [[1]], "b": [b"x"]}), name="other")
    assert DuckDB().schema_of(address_of("other")) == {"n": N}


# --------------------------------------------------------------------------------------------------------- deleted rows


@pytest.mark.parametrize("content", [DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])
def test_files_of_deleted_rows_are_refused(
    local: SqlCatalog, monkeypatch: pytest.MonkeyPatch, content: DataFileContent
) -> None:
    table = iceberg(local, pa.table({"n": [1, 2]}))
    place = f"{table.location()}/data/deletes.parquet"
    pq.write_table(pa.table({"file_path": ["x"], "pos": [0]}), place.removeprefix("file://"))
    deletes = DataFile.from_args(
        content=content,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=10,
        spec_id=0,
    )
    with monkeypatch.context() as patched, table.transaction() as transaction:
        patched.setattr(ManifestWriterV2, "content", lambda _: ManifestContent.DELETES)
        with transaction.update_snapshot().fast_append() as append:
            append.append_data_file(deletes)
    with pytest.raises(InvalidParameter, match="rewrite_data_files"):
        DuckDB().schema_of(address_of())


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    monkeypatch.delitem(sys.modules, iceberg_metadata.__name__)
    with pytest.raises(MissingExtra, match=r"An Iceberg table needs pyiceberg.*pip install '\.\[iceberg\]'"):
        DuckDB().schema_of("iceberg://local/care.visits")


def test_a_name_of_a_snapshot_is_not_shown(local: SqlCatalog) -> None:
    iceberg(local, pa.table({"n": [1]}))
    source = newest_snapshot(address_of())
    assert isinstance(source, LakeTable)
    with DuckDB(threads=1) as engine:
        engine.register("t", LakeTable(place=source.place, snapshot="iceberg:CANARY:1:0"), {"n": N})
        with pytest.raises(UnsupportedQuery) as caught:
            engine.check(["t"], [])
    assert "CANARY" not in str(caught.value)
