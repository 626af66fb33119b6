"""A private PostgreSQL server for tests: in a temporary folder, on a free port of the loopback, gone afterwards.

It is started once for each process of tests that asks for `postgres_server`. A small shell process watches over it
with the read end of a pipe: when this process ends, in whatever way, the pipe closes, and the shell stops the server
and removes its folder.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SUPERUSER = "postgres"
WITH_PASSWORD = "with_password"
_WAIT = 60  # seconds for a server to start or stop

_GUARD = """
cat > /dev/null
read pid < "$1/data/postmaster.pid"
if ps -o args= -p "$pid" | grep -q -F "$1"; then
  kill -QUIT "$pid"
  while kill -0 "$pid"; do sleep 0.1; done
fi
rm -rf "$1"
"""

_SETTINGS = {
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
    "log_line_prefix": "%q%u@%d ",
    "max_connections": "60",
    "max_wal_size": "128MB",
    "shared_buffers": "32MB",
    "timezone": "UTC",
}


class PostgresServer:
    """One server of our own.

    Args:
        settings: of the server, beside its defaults (`log_statement="all"`, say).
        place: where its folder is made; in memory where there is room, since a test run starts several servers.

    Raises:
        FileNotFoundError: where no server programs are installed.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, *, place: str | None = None) -> None:
        self._programs = server_programs()
        self._settings = {**_SETTINGS, **(settings or {})}
        self._names = 0
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-", dir=place or _memory()))
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is not meant for it
        )
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        self._own()
        self._run("initdb", "--no-sync", "--no-locale", "--encoding=UTF8", "--auth=trust", f"--username={SUPERUSER}")
        access = f"host all +{WITH_PASSWORD} all scram-sha-256\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n"
        (self.folder / "data/pg_hba.conf").write_text(access)
        self._start_somewhere()
        with self.superuser() as connection:
            connection.execute(f"CREATE ROLE {WITH_PASSWORD}")

    def _own(self) -> None:
        """Gives the folder to whom the server runs as."""
        if os.geteuid() == 0:
            user = pwd.getpwnam(_unprivileged())
            os.chown(self.folder, user.pw_uid, user.pw_gid)

    def _start_somewhere(self) -> None:
        """Starts the server on a free port."""
        for attempt in range(5):
            self.port = _free_port()
            try:
                self.start()
                break
            except subprocess.CalledProcessError:  # somebody else took the port
                if attempt == 4:
                    raise

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), "-D", str(self.folder / "data"), *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # inherited by the server, which would keep a pipe open
            stderr=subprocess.DEVNULL,
            timeout=_WAIT,
            check=True,
            **_as_unprivileged(),
        )

    # ---------------------------------------------------------------------------------------------------- access

    def url(self, user: str = SUPERUSER, database: str = "postgres") -> str:
        """The address of a database over TCP, for a user that needs no password."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def superuser(self, database: str = "postgres") -> Any:
        """A connection that may do everything, each statement by itself; it closes at the end of `with`."""
        import psycopg  # noqa: PLC0415 - an extra

        return psycopg.connect(self.url(database=database), autocommit=True)

    def make_database(self, name: str | None = None) -> str:
        """A new database, empty and of a new name if none is given."""
        self._names += 1
        made = name or f"database_{os.getpid()}_{self._names}"
        with self.superuser() as connection:
            connection.execute(f'CREATE DATABASE "{made}" STRATEGY file_copy')
        return made

    def log(self) -> str:
        """Everything the server wrote to its log."""
        with suppress(FileNotFoundError):
            return (self.folder / "log").read_text(errors="replace")
        return ""

    # ------------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        settings = {**self._settings, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        (self.folder / "data/postgresql.auto.conf").unlink(missing_ok=True)
        (self.folder / "data/postgresql.conf").write_text("\n".join(lines) + "\n")
        self._run("pg_ctl", "start", "-w", "-s", "-t", str(_WAIT), "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """Stops the server in good order, whoever is connected."""
        self._run("pg_ctl", "stop", "-w", "-s", "-m", "fast", "-t", str(_WAIT))

    def restart(self, **settings: str) -> None:
        """Starts the server again, stopped or killed before or not, perhaps with other settings from now on."""
        self._settings |= settings
        if self.pid is not None:
            self.stop()
        self.start()

    def kill(self) -> None:
        """Kills the server and all its children with SIGKILL, as a crash of the machine would."""
        pid = self.pid
        assert pid is not None, "the server runs"
        os.kill(pid, signal.SIGSTOP)  # it starts no more children meanwhile
        for process in (*_children(pid), pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + _WAIT
        while _exists(pid) and time.monotonic() < deadline:
            time.sleep(0.005)

    @property
    def pid(self) -> int | None:
        """The process of the server; None if it does not run."""
        try:
            pid = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return None
        return pid if _exists(pid) else None

    def close(self) -> None:
        """Stops the server at once and removes its folder."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(_WAIT)


def server_programs() -> Path:
    """The folder of PostgreSQL's server programs, the newest first.

    Raises:
        FileNotFoundError: if there is none.
    """
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda place: int(place.split("/")[4]), reverse=True)
    config = shutil.which("pg_config")
    if config is not None:
        places.append(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
    beside = shutil.which("postgres")
    for place in ([os.path.dirname(os.path.realpath(beside))] if beside else []) + places:  # links may be a few of them
        if all(os.access(os.path.join(place, name), os.X_OK) for name in ("initdb", "pg_ctl", "postgres")):
            return Path(place)
    raise FileNotFoundError("No PostgreSQL server programs were found; e.g. apt-get install postgresql")


def _unprivileged() -> str:
    """Whom the server runs as, since it refuses to run as root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody", "daemon") if name in known)


def _as_unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(_unprivileged())
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _memory() -> str | None:
    """A file system in memory with room for a server; None for the usual temporary folder."""
    place = "/dev/shm"
    return place if os.path.isdir(place) and shutil.disk_usage(place).free > 2**30 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [line.split() for line in found.splitlines()]
    return [int(child) for child, parent in pairs if parent == str(pid)]


def absent(reason: str) -> None:
    """Skips a test for want of an engine; where all engines must be there (DISCREET_ENGINES=all), fails it."""
    if os.environ.get("DISCREET_ENGINES") == "all":
        pytest.fail(f"DISCREET_ENGINES=all, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this process of tests; whoever restarts it or changes its settings starts one of their own."""
    if find_spec("psycopg") is None:
        absent("psycopg is not installed: pip install '.[postgres]'")
    try:
        server = PostgresServer()
    except FileNotFoundError as error:
        absent(str(error))
        raise
    yield server
    server.close()
