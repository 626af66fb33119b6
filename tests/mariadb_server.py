"""A private MariaDB server for tests: in a temporary folder, on a free port of the loopback, gone afterwards.

It is started once for each process of tests that asks for `mariadb_server`. A small shell process starts it and watches
over it with the read end of a pipe: when this process ends, in whatever way, the pipe closes, and the shell kills the
server and removes its folder.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import absent

SUPERUSER = "root"
_WAIT = 60  # seconds for a server to start or stop

_GUARD = """
"$2" --defaults-file="$1/my.cnf" < /dev/null > /dev/null 2>&1 &
pid=$!
cat > /dev/null
kill -KILL "$pid"
wait "$pid"
rm -rf "$1"
"""

_READY, _TAKEN = "ready for connections", "Do you already have another server running on port"
"""What the log says of a server that is up, and of one that found its port taken."""

_SMALL = {
    "innodb_buffer_pool_size": "32M",
    "innodb_data_file_path": "ibdata1:8M:autoextend",
    "innodb_log_file_size": "8M",
    "innodb_undo_tablespaces": "0",
}
_SETTINGS = {
    **_SMALL,
    "bind_address": "127.0.0.1",
    "character_set_server": "latin1",  # as servers are that have been there for long
    "innodb_flush_log_at_trx_commit": "0",
    "max_connections": "60",
    "skip_log_bin": "1",
    "skip_name_resolve": "1",
}


class MariaDBServer:
    """One server of our own, for whoever may run its programs; its files are of the user that runs the tests.

    Raises:
        FileNotFoundError: where no server programs are installed.
    """

    def __init__(self) -> None:
        program, install = server_programs()
        for attempt in range(5):
            self.folder = Path(tempfile.mkdtemp(prefix="discreet-mariadb-", dir=_memory()))
            self.port = _free_port()
            self._guard = self._make(program, install)
            said = self._listen()
            if _READY in said:
                return
            self.close()
            assert _TAKEN in said, said  # another program took the port
            assert attempt < 4

    def _make(self, program: str, install: str) -> subprocess.Popen[bytes]:
        """Makes the folder, and starts the server and its guard."""
        _install(install, self.folder / "data")
        places = {"datadir": "data", "socket": "socket", "pid_file": "pid", "log_error": "log.err", "tmpdir": "."}
        settings = {**_SETTINGS, **{name: self.folder / place for name, place in places.items()}}
        lines = [f"{name} = {value}" for name, value in {**settings, "port": self.port, "user": _user()}.items()]
        (self.folder / "my.cnf").write_text("\n".join(["[mariadbd]", *lines, ""]))
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self.folder), program],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is not meant for it
        )

    def _listen(self) -> str:
        """Returns the log once the server is ready, or has given up."""
        deadline, said = time.monotonic() + _WAIT, ""
        while time.monotonic() < deadline and not (_READY in said or _TAKEN in said):
            said = self.log()
            time.sleep(0.02)
        return said

    def log(self) -> str:
        """Everything the server wrote to its log."""
        with suppress(FileNotFoundError):
            return (self.folder / "log.err").read_text(errors="replace")
        return ""

    def url(self, user: str, database: str) -> str:
        """The address of a database over TCP, for a user that needs no password."""
        return f"mysql://{user}@127.0.0.1:{self.port}/{database}"

    def superuser(self) -> Any:
        """A connection that may do everything, each statement by itself; it closes at the end of `with`."""
        import pymysql  # noqa: PLC0415 - an extra

        socket_file = str(self.folder / "socket")
        return pymysql.connect(unix_socket=socket_file, user=SUPERUSER, charset="utf8mb4", autocommit=True)

    def close(self) -> None:
        """Kills the server and removes its folder."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(_WAIT)


def execute(connection: Any, *statements: str | tuple[str, Sequence[Any]]) -> None:
    """Runs statements, each alone or with the values of many rows."""
    with connection.cursor() as cursor:
        for statement in statements:
            if isinstance(statement, str):
                cursor.execute(statement)
            else:
                cursor.executemany(*statement)


def server_programs() -> tuple[str, str]:
    """The server, and the program that makes its folder.

    Raises:
        FileNotFoundError: if there is none.
    """
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    server, install = (shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db"))
    if server is None or install is None:
        raise FileNotFoundError("No MariaDB server programs were found; e.g. apt-get install mariadb-server")
    return server, install


def is_installed() -> bool:
    """Whether there are a server and a driver."""
    with suppress(FileNotFoundError):
        return bool(server_programs()) and find_spec("pymysql") is not None
    return False


def _install(program: str, folder: Path) -> None:
    settings = [f"--{name.replace('_', '-')}={value}" for name, value in _SMALL.items()]
    options = ["--no-defaults", f"--datadir={folder}", f"--user={_user()}", "--skip-test-db", "--skip-name-resolve"]
    subprocess.run(
        [program, *options, "--auth-root-authentication-method=normal", *settings],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_WAIT,
        check=True,
    )


def _user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _memory() -> str | None:
    """A file system in memory with room for a server; None for the usual temporary folder."""
    place = "/dev/shm"
    return place if os.path.isdir(place) and shutil.disk_usage(place).free > 2**30 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDBServer]:
    """The server of this process of tests."""
    if find_spec("pymysql") is None:
        absent("pymysql is not installed: pip install '.[mysql]'")
    try:
        server = MariaDBServer()
    except FileNotFoundError as error:
        absent(str(error))
        raise
    yield server
    server.close()
