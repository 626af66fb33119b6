"""The private server of tests: what it offers, and that nothing of it stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.postgres_server import PostgresServer


@pytest.mark.ci
def test_it_gives_databases_and_a_log(postgres_server: PostgresServer) -> None:
    first, second = postgres_server.make_database(), postgres_server.make_database()
    assert first != second
    with postgres_server.superuser(first) as connection:
        assert connection.execute("SELECT current_database(), 6 * 7").fetchone() == (first, 42)
        connection.execute("DO $$ BEGIN RAISE WARNING 'heard by the log'; END $$")
    assert "heard by the log" in postgres_server.log()


ORPHAN = """
import os
from tests.postgres_server import PostgresServer
server = PostgresServer()
print(server.folder, server.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_nothing_stays_after_a_kill() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN], check=False, capture_output=True, text=True, cwd=Path(__file__).parents[1]
    )
    folder, pid = done.stdout.split()
    deadline = time.monotonic() + 60
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.slow
def test_it_survives_a_kill() -> None:
    server = PostgresServer({"log_statement": "all"})
    try:
        with server.superuser() as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS x")
        server.kill()
        assert server.pid is None
        server.restart(work_mem="5MB")
        with server.superuser() as connection:
            assert connection.execute("SELECT x, current_setting('work_mem') FROM kept").fetchone() == (1, "5MB")
        assert "CREATE TABLE kept" in server.log()
    finally:
        server.close()
