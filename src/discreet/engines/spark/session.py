"""Sessions of Spark that are ours: settings on which the meaning of SQL depends, and silence while data is read.

A session of ours shares the cluster with the one that was given, and nothing else: settings, views and functions of one
are not seen in the other.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from discreet import quiet_loggers
from discreet.errors import InternalError, InvalidParameter
from discreet.lazy import load

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    # It spoils plans with an EXISTS over columns of the same origin (SPARK-39887, SPARK-46640 were others of its kind).
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # others fail on days of long ago
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # from names of folders, which are data
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.variable.substitute": "false",
}
"""What SQL means depends on these, but for the optimizer's; every setting of an older behaviour has its default."""

_LEGACY = "spark.sql.legacy."
_NANOSECONDS = f"{_LEGACY}parquet.nanosAsLong"
_OURS = {
    "spark.ui.enabled": "false",  # its pages show how many rows each step has read
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.eventLog.enabled": "false",
    "spark.sql.warehouse.dir": "file:/nonexistent",
}
"""Settings of a cluster's driver that is started here."""

_PLACES = count()
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PLAIN_LOGGERS = ("py4j", "py4j.clientserver", "py4j.java_gateway", "pyspark.sql.connect.logging")


def open_session(given: Any) -> tuple[Any, bool]:
    """Returns a session of ours, and whether a driver was started for it.

    Args:
        given: a session; the address of a Spark Connect server (sc://host), of a cluster (spark://host:7077) or
            local[2]; None for the session that is running, or a local one.

    Raises:
        InvalidParameter: if it is none of these.
    """
    sessions = load("pyspark.sql", "Spark").SparkSession
    with quiet():
        if isinstance(given, str) and given.startswith("sc://"):
            return _ready(sessions.builder.remote(given).create()), True
        if given is not None and not isinstance(given, str):
            return _ready(_new(given)), False
        context = load("pyspark", "Spark").SparkContext._active_spark_context  # whichever thread has started it
        if context is None:
            return _ready(_start_session(sessions.builder, given).newSession()), True
        if given is not None and context.master != given:
            hint = "Pass that session, or stop it first: a process has one driver."
            raise InvalidParameter("session", given, "to be the cluster of the session that is running", hint)
        return _ready(sessions.builder.getOrCreate().newSession()), False


def _start_session(builder: Any, master: str | None) -> Any:
    for name, value in _OURS.items():
        builder = builder.config(name, value)
    return (builder if master is None else builder.master(master)).getOrCreate()


def _new(given: Any) -> Any:
    if not callable(getattr(given, "newSession", None)) or not callable(getattr(given, "sql", None)):
        hint = "Pass a SparkSession, 'spark://host:7077', 'sc://host' or 'local[2]'."
        raise InvalidParameter("session", type(given).__name__, "to be a Spark session", hint)
    return given.newSession()


def _ready(session: Any) -> Any:
    """Returns the session with our settings, and its driver without a voice."""
    for name in session.conf.getAll:
        if name.startswith(_LEGACY):
            with suppress(Exception):  # one that cannot be changed is found by the check
                session.conf.unset(name)
    for name, value in _settings(session).items():
        session.conf.set(name, value)
    context = getattr(session, "_jsc", None)
    if context is not None:  # of a server elsewhere, its own steward decides
        context.sc().setLogLevel("OFF")
        bar = context.sc().progressBar()
        if bar.isDefined():
            bar.get().stop()
    check(session)
    return session


def check(session: Any) -> None:
    """Refuses to read while a setting is not ours.

    Raises:
        InternalError: if one has changed.
    """
    found, ours = session.conf.getAll, _settings(session)
    if any(found.get(name) != value for name, value in ours.items()):
        raise InternalError("The session's settings are not those that were made.")
    if any(name.startswith(_LEGACY) and name not in ours for name in found):
        raise InternalError("The session has a setting of an older behaviour.")


def _settings(session: Any) -> dict[str, str]:
    """Returns our settings, and nanoseconds as numbers where footers say which numbers are moments."""
    return {**SETTINGS, _NANOSECONDS: "true" if hasattr(session, "_jvm") else "false"}


def new_name() -> str:
    """Returns a name that no other session on a cluster gives to a view or a job; it is no secret, and not drawn."""
    host = "".join(filter(str.isalnum, socket.gethostname()))
    return f"discreet_{host}_{os.getpid()}_{time.time_ns()}_{next(_PLACES)}".lower()


def begin(session: Any, name: str) -> None:
    """Gives a name to all that this thread does in a session from now on."""
    if hasattr(session, "_sc"):
        session.sparkContext.setJobGroup(name, "discreet", interruptOnCancel=True)
    else:
        session.addTag(name)


def interrupt(session: Any, name: str) -> None:
    """Stops what was begun under a name."""
    with quiet():
        if hasattr(session, "_sc"):
            session.sparkContext.cancelJobGroup(name)
        else:
            session.interruptTag(name)


# ---------------------------------------------------------------------------------------------------------------- quiet


@contextmanager
def quiet() -> Iterator[None]:
    """Runs a block in which no logger of PySpark prints anything from this thread: they print SQL and values."""
    loggers = [load("pyspark.logger", "Spark").PySparkLogger.getLogger(name) for name in _LOGGERS]
    with quiet_loggers.quiet(*loggers, *map(logging.getLogger, _PLAIN_LOGGERS)):
        yield
