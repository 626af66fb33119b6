"""Spark elsewhere: a standalone cluster and a Spark Connect server on this machine, each asked by a process of its own.

A process has one driver, and starting one takes many seconds: these tests are slow.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import Memory
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.types import Type
from tests.open_groups import unsealed
from tests.postgres_server import absent
from tests.spark_session import check_spark

pytestmark = pytest.mark.slow

_WAIT = 900  # seconds
CANARY = "ZZ-CANARY-7"

_ASK = """
import json, sys
from discreet.engines.by_source import by_source
from discreet.engines.spark.engine import Spark
from discreet.errors import QueryFailed
from discreet.engines.spark import engine as module
from discreet.measurement.releases.open_exact import open_exact
from discreet.engines.sql.statement import Statement
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import ContributionBounding, Reading, Statistic
from discreet.plan.model.types import Type

columns = {"u": Type.TEXT, "k": Type.TEXT, "x": Type.FLOAT}
reading = Reading(
    table="t",
    keys=(ColumnRef("k", Type.TEXT),),
    bounding=ContributionBounding(unit="u", groups=1, rows=2, salt="salt"),
    statistics=(
        Statistic(kind="rows"),
        Statistic(kind="units"),
        Statistic(kind="sum", argument=ColumnRef("x", Type.FLOAT), exponent=-4, low=0, high=160),
    ),
)
answers = {}
with Spark(sys.argv[1], deadline=200) as engine:
    engine.register("t", sys.argv[2], columns)
    answers["path"] = sorted(map(list, open_exact(engine.read(reading)).groups.items()))
    frame = engine._open.read.parquet(sys.argv[2])
    engine.register("t", frame, columns)
    answers["frame"] = sorted(map(list, open_exact(engine.read(reading)).groups.items()))
    view = engine._tables["t"].view
    failing = Statement(sql=f"SELECT CAST(u AS INT) FROM {view}", parameters={}, keys=(), finish=({0: 1},))
    module.translate_reading, usual = lambda *_: failing, module.translate_reading
    try:
        engine.read(reading)
    except QueryFailed as failed:
        answers["failed"] = str(failed)
    endless = Statement(sql="SELECT SUM(id % 7) FROM range(1000000000000)", parameters={}, keys=(), finish=({0: 1},))
    module.translate_reading, engine._deadline = lambda *_: endless, 3
    try:
        engine.read(reading)
    except QueryFailed as failed:
        answers["stopped"] = str(failed)
    module.translate_reading, engine._deadline = usual, 200
    answers["again"] = sorted(map(list, open_exact(engine.read(reading)).groups.items()))
    engine._open.sql(f"CREATE SCHEMA clinic LOCATION '{sys.argv[2]}.clinic'")
    frame.write.saveAsTable("clinic.visits")
    is_local = sys.argv[1].startswith("local")  # whose tables have no address of their own
    with engine if is_local else by_source() as other:
        other.register("t", "clinic.visits" if is_local else f"{sys.argv[1]}/clinic.visits", columns)
        answers["catalog"] = sorted(map(list, open_exact(other.read(reading)).groups.items()))
print(json.dumps(answers))
"""


def rows() -> list[dict[str, Any]]:
    people = (CANARY, "Zoe\u0308", "Zo\u00eb ", "p1", None)
    return [{"u": people[i % 5], "k": "abc"[i * 7 % 3], "x": i % 10} for i in range(60)]


def ask(address: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Asks in a process of its own; what it prints holds no value of a row."""
    path = folder / "t.parquet"
    kinds = pa.schema([("u", pa.string()), ("k", pa.string()), ("x", pa.float64())])
    pq.write_table(pa.Table.from_pylist(rows(), kinds), path)
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYSPARK_PYTHON": sys.executable}
    run = subprocess.run(
        [sys.executable, "-c", _ASK, address, str(path)],
        capture_output=True,
        text=True,
        timeout=_WAIT,
        env={**known, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        check=False,
    )
    *printed, last = run.stdout.splitlines() or [""]
    assert run.returncode == 0, run.stderr[-3000:]
    told = "".join(printed) + run.stderr
    assert not [word for word in (CANARY, "SELECT", "discreet_", "CAST(") if word in told]
    found: dict[str, Any] = json.loads(last)
    return found


def check(found: dict[str, Any], expected: list[Any]) -> None:
    assert found["path"] == found["frame"] == found["again"] == found["catalog"] == expected
    assert found["failed"] == found["stopped"]
    assert CANARY not in found["failed"]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    """What the referee says."""
    total = Statistic(kind="sum", argument=ColumnRef("x", Type.FLOAT), exponent=-4, low=0, high=160)
    referee = Memory()
    referee.register("t", rows(), {"u": Type.TEXT, "k": Type.TEXT, "x": Type.FLOAT})
    reading = Reading(
        table="t",
        keys=(ColumnRef("k", Type.TEXT),),
        bounding=ContributionBounding(unit="u", groups=1, rows=2, salt="salt"),
        statistics=(Statistic(kind="rows"), Statistic(kind="units"), total),
    )
    found: list[Any] = json.loads(json.dumps(sorted(map(list, unsealed(referee.read(reading)).items()))))
    return found


def test_this_machine(tmp_path: Path, expected: list[Any]) -> None:
    check_spark()
    check(ask("local[2]", tmp_path), expected)


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(*arguments: str, folder: Path) -> Iterator[None]:
    """A class of Spark in a Java process of its own."""
    home = os.path.dirname(find_spec("pyspark").origin)  # type: ignore[union-attr,arg-type]
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            [f"{home}/bin/spark-class", *arguments], stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def wait_for(port: int) -> None:
    end = time.monotonic() + _WAIT
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    pytest.fail("the server did not start")


def test_a_standalone_cluster(tmp_path: Path, expected: list[Any]) -> None:
    check_spark()
    port, deploy = free_port(), "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]
    address = f"spark://127.0.0.1:{port}"
    worker = [f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", str(free_port()), "--cores", "1"]
    worker += ["--memory", "1g", "--work-dir", str(tmp_path / "work"), address]
    with running(*master, folder=tmp_path):
        wait_for(port)
        with running(*worker, folder=tmp_path):
            check(ask(address, tmp_path), expected)


def test_spark_connect(tmp_path: Path, expected: list[Any]) -> None:
    check_spark()
    if find_spec("grpc") is None or find_spec("grpc_status") is None:
        absent('Spark Connect needs pip install "pyspark[connect]"')
    port = free_port()
    server = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[1]"]
    server += ["--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"]
    server += ["--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", f"spark.local.dir={tmp_path}"]
    server += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with running(*server, folder=tmp_path):
        wait_for(port)
        check(ask(f"sc://127.0.0.1:{port}", tmp_path), expected)
