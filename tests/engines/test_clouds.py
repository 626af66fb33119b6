"""Buckets as servers of others offer them, and as ours does where none can be had: the rows of files in each."""

from __future__ import annotations

import base64
import datetime as dt
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from discreet.engines import DuckDB
from discreet.engines.objects import object_store
from discreet.engines.objects.object_store import Retries
from discreet.errors import InvalidParameter, QueryFailed
from tests.engines.lakes import partitioned
from tests.engines.tables import N, T
from tests.engines.test_objects import COLUMNS, PEOPLE, at, by, counts
from tests.object_server import AZURE_ACCOUNT, ObjectServer, put_folder, write_profile
from tests.open_groups import unsealed

Put = Callable[[Path, str], None]
"""Copies a folder into a bucket, below a path."""

_GOOGLE = """
import sys
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="lake")
server.start()
print(server._api._httpd.server_port, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets retries come at once."""
    monkeypatch.setattr(object_store, "RETRIES", Retries(sleep=lambda _: None))


def _copies(files: Any) -> Put:
    def put(folder: Path, below: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                name = f"{below}/{path.relative_to(folder).as_posix()}"
                with files.open_output_stream(name, compression=None) as out:
                    out.write(path.read_bytes())

    return put


@pytest.fixture(scope="session")
def amazon() -> Iterator[str]:
    """A server of S3."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def google() -> Iterator[str]:
    """A server of Google's storage, which needs a process of its own."""
    pytest.importorskip("gcp_storage_emulator")
    command = [sys.executable, "-c", _GOOGLE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        yield f"127.0.0.1:{int(server.stdout.readline())}"
        server.terminate()


@pytest.fixture
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Put]]:
    """The beginning of addresses in a bucket of a cloud, and what fills it."""
    if request.param == "s3":
        endpoint = request.getfixturevalue("amazon")
        known = {"access_key": "k", "secret_key": "s", "region": "us-east-1"}
        files: Any = fs.S3FileSystem(endpoint_override=endpoint, scheme="http", allow_bucket_creation=True, **known)
        files.create_dir("lake")
        settings = {"endpoint_override": endpoint, "scheme": "http", **known}
        yield _written(tmp_path, monkeypatch, "s3://lake", settings), _copies(files)
    elif request.param == "gs":
        endpoint = request.getfixturevalue("google")
        soon = dt.timedelta(seconds=5)
        files = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=endpoint, retry_time_limit=soon)
        settings = {"endpoint_override": endpoint, "scheme": "http"}
        yield _written(tmp_path, monkeypatch, "gs://lake", settings, "anonymous = true\n"), _copies(files)
    else:
        server: ObjectServer = request.getfixturevalue("bucket_server")
        key = base64.b64encode(b"a key of an account").decode()
        settings = {"account_key": key}
        for part in ("blob", "dfs"):
            settings |= {f"{part}_storage_authority": server.host, f"{part}_storage_scheme": "http"}
        root = f"abfs://lake@{AZURE_ACCOUNT}.dfs.core.windows.net"
        yield _written(tmp_path, monkeypatch, root, settings), lambda folder, below: put_folder(server, folder, below)
        server.forget()


def _written(folder: Path, monkeypatch: pytest.MonkeyPatch, root: str, settings: dict[str, str], more: str = "") -> str:
    write_profile(folder, monkeypatch, "".join(f'{key} = "{value}"\n' for key, value in settings.items()) + more)
    return root


CLOUDS = pytest.mark.parametrize("bucket", ["s3", "gs", "az"], indirect=True)


@pytest.mark.ci
@CLOUDS
def test_a_bucket_has_the_rows_of_a_folder(bucket: tuple[str, Put], tmp_path: Path) -> None:
    root, put = bucket
    for kind in ("parquet", "csv.gz"):
        folder = partitioned(PEOPLE, tmp_path / "lake" / kind, kind)
        put(folder, f"lake/{kind}")
        for name in ("ward", "kind"):
            assert counts(at(f"{root}/{kind}/"), by(name), COLUMNS) == counts(folder, by(name), COLUMNS)
    every = at(f"{root}/**/ward=A/*.parquet")
    assert sum(counts(every, by("kind"), COLUMNS).values()) == sum(row["ward"] == "A" for row in PEOPLE)
    one = at(f"{root}/parquet/ward=A/part.parquet")
    with DuckDB(threads=1) as engine:
        assert engine.schema_of(one)["age"] is N
    assert counts(at(f"{root}/none/"), by("kind"), COLUMNS) == {}
    for missing in (f"{root}/none.csv", f"{root.replace('lake', 'absent')}/v/"):
        with DuckDB(threads=1) as engine, pytest.raises(InvalidParameter, match="to be readable from here"):
            engine.register("t", at(missing), COLUMNS)


@pytest.mark.ci
@CLOUDS
def test_a_bucket_that_changes_fails_the_query(
    bucket: tuple[str, Put], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, put = bucket
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "a.csv").write_text("kind\nx\n")
    put(tmp_path / "v", "lake/v")
    find, found = object_store.Bucket.find, threading.Event()

    def changed_after(store: Any, name: str) -> Any:
        told = find(store, name)
        if not found.is_set():
            found.set()
            (tmp_path / "v" / "a.csv").write_text("kind\ny\n")  # as long as before, perhaps in the same second
            put(tmp_path / "v", "lake/v")
        return told

    with DuckDB(threads=1) as engine:
        engine.register("t", at(f"{root}/v/"), {"kind": T})
        with monkeypatch.context() as patched:
            patched.setattr(object_store.Bucket, "find", changed_after)
            with pytest.raises(QueryFailed):
                engine.read(by("kind"))
        assert unsealed(engine.read(by("kind"))) == {("y",): (1,)}
