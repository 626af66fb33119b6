"""Objects of buckets and web servers: the rows of files, no more bytes than are asked for, one version for a query."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB
from discreet.engines.objects import object_set, object_store
from discreet.engines.objects.object_set import ObjectSet
from discreet.engines.objects.object_store import Retries
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.engines.lakes import WRITERS, partitioned, scattered
from tests.engines.tables import B, N, T, call, col, lit
from tests.object_server import PROFILE, ObjectServer, put_folder, write_profile
from tests.open_groups import unsealed

ROWS = Reading(table="t", statistics=(Statistic(kind="rows"),))
COLUMNS = {"patient": N, "ward": T, "age": N, "kind": T}
PEOPLE = [
    {"patient": n, "ward": "ABC"[n % 3], "age": n % 50, "charge": n / 2, "kind": "fever" if n % 5 else None}
    for n in range(40)
]


def by(name: str, kind: Type = T) -> Reading:
    return Reading(table="t", keys=(col(name, kind),), statistics=ROWS.statistics)


def counts(source: Any, reading: Reading, columns: Mapping[str, Type]) -> dict[Any, int]:
    """How many rows each value has."""
    with DuckDB(threads=1) as engine:
        engine.register("t", source, columns)
        return {key[0] if key else None: rows for key, (rows,) in unsealed(engine.read(reading)).items()}


def at(address: str) -> str:
    return f"{address}#profile={PROFILE}"


def parquet(**columns: Any) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


# ----------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.ci
@pytest.mark.parametrize("kind", WRITERS)
def test_objects_have_the_rows_of_files(lake: ObjectServer, tmp_path: Path, kind: str) -> None:
    folder = scattered(PEOPLE, tmp_path / "lake", kind)
    put_folder(lake, folder, "lake/visits")
    assert counts(at("s3://lake/visits/"), by("age", N), COLUMNS) == counts(folder, by("age", N), COLUMNS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", WRITERS)
def test_partitions_are_those_of_folders(lake: ObjectServer, tmp_path: Path, kind: str) -> None:
    folder = partitioned(PEOPLE, tmp_path / "lake", kind)
    put_folder(lake, folder, "lake/visits")
    assert counts(at("s3://lake/visits/"), by("ward"), COLUMNS) == counts(folder, by("ward"), COLUMNS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "ndjson"])
def test_files_of_the_web_have_the_rows_of_files(web: ObjectServer, tmp_path: Path, kind: str) -> None:
    folder = scattered(PEOPLE, tmp_path / "lake", kind)
    put_folder(web, folder, "open/visits")
    paths = [at(f"https://{web.host}/open/visits/{path.name}") for path in folder.iterdir()]
    assert counts(paths, by("ward"), COLUMNS) == counts(folder, by("ward"), COLUMNS)
    one = next(iter(sorted(folder.iterdir())))
    address = at(f"https://{web.host}/open/visits/{one.name}")
    assert counts(address, by("kind"), COLUMNS) == counts([one], by("kind"), COLUMNS)
    assert {headers["authorization"] for headers in web.asked} == {"Bearer SECRET"}


@pytest.mark.ci
def test_the_rule_of_names_is_that_of_files(lake: ObjectServer) -> None:
    shown = ("a.parquet", "deep/er/b.parquet", "_p=1/c.parquet")
    hidden = ("_SUCCESS", ".a.parquet", "_delta/d.parquet", "e.xlsx", "f.parquet.gz")
    for place, name in enumerate((*shown, *hidden, "odd*?[{#%41 .parquet")):
        lake.objects[f"lake/v/{name}"] = parquet(n=[place])
    lake.objects["lake/vault/x.parquet"] = lake.objects["other/v/x.parquet"] = parquet(n=[99])
    all_of_them: dict[Any, int] = dict.fromkeys([0, 1, 2, 8], 1)
    assert counts(at("s3://lake/v/"), by("n", N), {"n": N}) == all_of_them
    assert counts(at("s3://lake/v"), by("n", N), {"n": N}) == all_of_them
    assert counts(at("s3://lake/v/**"), by("n", N), {"n": N}) == all_of_them
    assert counts(at("s3://lake/v/*.parquet"), by("n", N), {"n": N}) == {0: 1, 8: 1}
    assert counts(at("s3://lake/v/**/[bc].parquet"), by("n", N), {"n": N}) == {1: 1, 2: 1}
    assert counts(at("s3://lake/v/a.parquet"), by("n", N), {"n": N}) == {0: 1}
    named = [at("s3://lake/v/a.parquet"), at("s3://other/v/x.parquet")]
    assert counts(named, by("n", N), {"n": N}) == {0: 1, 99: 1}
    assert counts(at("s3://lake/empty/"), by("n", N), {"n": N}) == {}
    assert sum(counts(at("s3://lake"), by("n", N), {"n": N}).values()) == 5


def test_types_are_carried_as_files_carry_them(lake: ObjectServer) -> None:
    lake.objects["lake/v/a.parquet"] = parquet(n=[1], s=["x"])
    lake.objects["lake/v/b.csv"] = b"s,more\n1,2\n"
    with DuckDB(threads=1) as engine:
        assert engine.schema_of(at("s3://lake/v/a.parquet")) == {"n": N, "s": T}
        assert engine.schema_of(at("s3://lake/v/")) == {"n": N}


def test_bytes_that_are_no_texts_are_null(lake: ObjectServer) -> None:
    broken = parquet(s=["good", "bad!"], n=[1, 2]).replace(b"bad!", b"ba\xff!")
    lake.objects["lake/v/a.parquet"] = broken
    assert counts(at("s3://lake/v/"), by("s"), {"s": T, "n": N}) == {"good": 1, None: 1}


# ---------------------------------------------------------------------------------------------------------------- bytes


def wide(rows: int = 20_000) -> bytes:
    """Twenty columns of numbers that do not compress."""
    content = io.BytesIO()
    columns = {f"c{place}": pa.array([(n * 7919 + place) % 1_000_003 for n in range(rows)]) for place in range(20)}
    pq.write_table(pa.table(columns), content, row_group_size=rows // 4, compression="none", use_dictionary=False)
    return content.getvalue()


WIDE = wide()


def stored(content: bytes, *places: int) -> int:
    told = pq.ParquetFile(io.BytesIO(content)).metadata
    groups = (told.row_group(group) for group in range(told.num_row_groups))
    return sum(group.column(place).total_compressed_size for group in groups for place in places)


def _bytes_of_two_columns(server: ObjectServer, source: str) -> float:
    with DuckDB(threads=2) as engine:
        engine.register("t", source, {f"c{place}": N for place in range(20)})
        server.sent.clear()
        where = call("less", B, col("c3", N), lit(500_000, N))
        engine.read(Reading(table="t", where=where, keys=(col("c7", N),), statistics=ROWS.statistics))
    return server.read / stored(WIDE, 3, 7)


def test_credentials_of_the_environment_are_found(
    lake: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_profile(tmp_path, monkeypatch, f'endpoint_override = "{lake.host}"\nscheme = "http"\n')
    lake.objects["lake/v/a.csv"] = b"n\n1\n"
    for key in ("first", "second"):
        lake.asked.clear()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        assert counts(at("s3://lake/v/"), by("n", N), {"n": N}) == {1: 1}
        assert all(f"Credential={key}/" in headers["authorization"] for headers in lake.asked)


def test_one_container_has_one_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(tmp_path, monkeypatch, 'account_name = "account1"\n')
    given = ("abfs://lake@account1.dfs.core.windows.net/v/", "abfss://lake@account1/v", at("az://lake/v/"))
    found = [ObjectSet.of(one) for one in given]
    assert {tuple(one.origins) for one in found if one is not None} == {("abfs://lake@account1/v/",)}
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account1")
    named = ObjectSet.of("az://lake/v")
    assert named is not None
    assert [*named.origins] == ["abfs://lake@account1/v/"]
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with DuckDB(threads=1) as engine, pytest.raises(InvalidParameter, match="storage account"):
        engine.register("t", "az://lake/v", {"n": N})


def test_row_groups_that_a_query_leaves_out_are_not_read(lake: ObjectServer) -> None:
    content = io.BytesIO()
    numbers = {"n": range(80_000), "other": range(80_000)}
    pq.write_table(pa.table(numbers), content, row_group_size=10_000, compression="none", use_dictionary=False)
    lake.objects["lake/sorted.parquet"] = content.getvalue()
    with DuckDB(threads=1) as engine:
        engine.register("t", at("s3://lake/sorted.parquet"), {"n": N, "other": N})
        lake.sent.clear()
        where = call("less", B, col("n", N), lit(5_000, N))
        found = unsealed(engine.read(Reading(table="t", where=where, statistics=ROWS.statistics)))
    assert found == {(): (5_000,)}
    assert lake.read < 0.4 * stored(content.getvalue(), 0)


@pytest.mark.usefixtures("no_waits")
def test_a_server_that_sends_other_bytes_than_asked_fails_the_query(web: ObjectServer) -> None:
    web.objects["v.csv"] = b"n\n1\n"
    with DuckDB(threads=1) as engine:
        engine.register("t", at(f"https://{web.host}/v.csv"), {"n": N})
        web.ranges = False
        with pytest.raises(QueryFailed):
            engine.read(by("n", N))


def test_a_query_reads_its_columns_and_little_else(lake: ObjectServer) -> None:
    lake.objects["lake/wide.parquet"] = WIDE
    assert _bytes_of_two_columns(lake, at("s3://lake/wide.parquet")) < 1.3


# ------------------------------------------------------------------------------------------------------------- versions


def _changes_when_read(server: ObjectServer, name: str, content: bytes) -> None:
    """Replaces an object when its first bytes have been sent."""

    def hook(owner: ObjectServer, method: str, asked: str) -> int | None:
        if method == "GET" and asked == name:
            owner.hook = None
            owner.objects[name] = content
        return None

    server.hook = hook


def _a_change_fails(server: ObjectServer, source: str, name: str, other: bytes) -> None:
    before = server.objects[name]
    with DuckDB(threads=1) as engine:
        engine.register("t", source, {"n": N})
        _changes_when_read(server, name, other)
        with pytest.raises(QueryFailed):
            engine.read(by("n", N))
        server.objects[name] = before
        engine.read(by("n", N))


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Lets retries come at once; returns the seconds that they would have waited."""
    waited = list[float]()
    monkeypatch.setattr(object_store, "RETRIES", Retries(sleep=waited.append, clock=lambda: 0))
    return waited


def test_an_object_that_changes_while_it_is_read_fails_the_query(lake: ObjectServer, no_waits: list[float]) -> None:
    lake.objects["lake/v/a.csv"], other = b"n\n1\n", b"n\n2\n"
    _a_change_fails(lake, at("s3://lake/v/"), "lake/v/a.csv", other)
    assert no_waits == []


def test_a_file_of_the_web_that_changes_while_it_is_read_fails_the_query(
    web: ObjectServer, no_waits: list[float]
) -> None:
    web.objects["open/a.csv"], other = b"n\n1\n", b"n\n2\n"
    _a_change_fails(web, at(f"https://{web.host}/open/a.csv"), "open/a.csv", other)
    del no_waits


@pytest.mark.usefixtures("no_waits")
def test_an_engine_that_does_not_look_again_is_caught(lake: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_set.ObjectListing, "require_unchanged", lambda _: None)
    lake.objects["lake/v/a.csv"], other = b"n\n1\n", b"n\n2\n"
    with pytest.raises(pytest.fail.Exception):
        _a_change_fails(lake, at("s3://lake/v/"), "lake/v/a.csv", other)


# ------------------------------------------------------------------------------------------------------------- failures


def test_requests_are_made_again_a_few_times(lake: ObjectServer, no_waits: list[float]) -> None:
    lake.objects["lake/v/a.csv"] = b"n\n1\n"
    failures = iter([500, 503, None, 500, None, 503, 502, 500])

    def hook(_: ObjectServer, method: str, name: str) -> int | None:
        del method, name
        return next(failures, None)

    with DuckDB(threads=1) as engine:
        engine.register("t", at("s3://lake/v/"), {"n": N})
        lake.hook = hook
        assert unsealed(engine.read(by("n", N))) == {(1,): (1,)}
        assert no_waits == [0.05, 0.25, 0.05, 0.05, 0.25, 1.0]
        lake.hook = lambda *_: 500
        no_waits.clear()
        with pytest.raises(QueryFailed):
            engine.read(by("n", N))
        assert no_waits == [0.05, 0.25, 1.0]
