"""One Spark session for the tests of a process: on this machine, with what makes small tables quick."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import absent

QUICK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Compiling a plan takes longer than a few rows do, and so do several partitions."""

# A process has one Java machine: that of whoever starts it first, a test of the command line perhaps, and it stays. So
# it is told here what it is to be like. The plan of one question about several tables takes hundreds of megabytes: in
# the gigabyte that is usual, tests that come later only collect garbage, and then fail.
_JAVA = ["--driver-memory", "3g", "--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
_SETTINGS = [part for name, value in QUICK.items() for part in ("--conf", f"{name}={value}")]
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", shlex.join([*_JAVA, *_SETTINGS, "pyspark-shell"]))


def check_spark() -> None:
    """Skips a test where Spark cannot be started."""
    if find_spec("pyspark") is None:
        absent("pyspark is not installed: pip install '.[spark]'")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        absent("there is no Java, which Spark runs on; e.g. apt-get install openjdk-17-jre-headless")


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session as a user has it; engines make theirs of it."""
    check_spark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[1]").config("spark.sql.warehouse.dir", str(folder))
    for name, value in {**QUICK, "spark.local.dir": str(folder)}.items():
        builder = builder.config(name, value)
    session: Any = builder.getOrCreate()
    assert session.sparkContext._jvm.Runtime.getRuntime().maxMemory() > 2 << 30, "PYSPARK_SUBMIT_ARGS was not heard"
    yield session
    session.stop()
    shutil.rmtree(Path(folder), ignore_errors=True)
