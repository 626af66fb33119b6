"""A ledger on PostgreSQL after its server is gone: dumps that are restored, and standbys that take over."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.errors import LedgerError, LedgerTampered
from discreet.ledger import Ledger
from discreet.ledger.store import postgres_tables
from tests.ledger.ledgers import TENTH, opened
from tests.postgres_server import SUPERUSER, PostgresServer, absent

_WAIT = 60.0  # seconds, for what takes less than one


# --------------------------------------------------------------------------------------------------------------- dumps


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        absent(f"{name} is not installed, e.g. apt-get install postgresql-client")
    return str(found)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["custom", "plain"])
def test_a_dump_is_a_ledger_and_an_older_one_is_found_by_the_anchor(
    postgres_server: PostgresServer, tmp_path: Path, form: str
) -> None:
    """As docs/shared_ledger.md tells: pg_dump by the owner, pg_restore or psql into a new database of the owner's."""
    keeper = f"charging_{form}"
    names = owned_databases(postgres_server, f"dumping_{form}", keeper)
    places = [postgres_server.url(f"dumping_{form}", name) for name in names]
    with psycopg.connect(places[0], autocommit=True) as connection:
        connection.execute(postgres_tables.tables_sql() + postgres_tables.grants_sql(keeper))
    dumps = [str(tmp_path / name) for name in ("new", "old")]
    with opened(postgres_server.url(keeper, names[0])) as ledger:
        receipt = ledger.charge("patients", TENTH, key="first")
        ledger.store_answer(receipt, "replay", b"\x00\xff'\\")
        dump(places[0], dumps[1], form)
        ledger.charge("patients", TENTH, key="second")
        head = ledger.verify()
    dump(places[0], dumps[0], form)
    for place, kept in zip(places[1:], dumps, strict=True):
        restore(place, kept, form)
    new, old = (postgres_server.url(keeper, name) for name in names[1:])
    with Ledger(new, anchor=head) as ledger:
        assert ledger.verify() == head
        assert ledger.read_answers("replay")[0].payload == b"\x00\xff'\\"
        assert ledger.charge("patients", TENTH, key="second").repeated
        assert not ledger.charge("patients", TENTH, key="third").repeated
    with psycopg.connect(new, autocommit=True) as connection:
        for wrong in ("UPDATE discreet.entries SET who = ''", "DELETE FROM discreet.states"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(wrong)
    with Ledger(old) as ledger:
        assert ledger.verify().sequence < head.sequence  # a good ledger of an earlier day
        with pytest.raises(LedgerTampered):
            ledger.check_anchor(head)
        with pytest.raises(LedgerError, match="read-only"):
            ledger.charge("patients", TENTH)


def owned_databases(server: PostgresServer, owner: str, keeper: str) -> list[str]:
    """Three empty databases of one owner."""
    names = [server.make_database() for _ in range(3)]
    with server.superuser() as connection:
        for role in (owner, keeper):
            connection.execute(f"CREATE ROLE {role} LOGIN")
        for name in names:
            connection.execute(f"ALTER DATABASE {name} OWNER TO {owner}")
    return names


def dump(place: str, file: str, form: str) -> None:
    subprocess.run([program("pg_dump"), f"--format={form}", "--schema=discreet", f"--file={file}", place], check=True)


def restore(place: str, file: str, form: str) -> None:
    custom = [program("pg_restore"), "--exit-on-error", f"--dbname={place}", file]
    plain = [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", f"--file={file}", place]
    subprocess.run(custom if form == "custom" else plain, check=True, stdout=subprocess.DEVNULL)


# ------------------------------------------------------------------------------------------------------------ standbys


class Standby(PostgresServer):
    """A server that follows another, and may take its place."""

    def __init__(self, primary: PostgresServer) -> None:
        self._primary = primary
        told = f"host=127.0.0.1 port={primary.port} user={SUPERUSER} application_name=standby"
        super().__init__({"primary_conninfo": told, "wal_retrieve_retry_interval": "100ms"})

    def _make(self) -> None:
        self._own()
        access = self._primary.folder / "data/pg_hba.conf"
        access.write_text(f"host replication all 127.0.0.1/32 trust\n{access.read_text()}")
        with self._primary.superuser() as connection:
            connection.execute("SELECT pg_reload_conf()")
        where = ("-h", "127.0.0.1", "-p", str(self._primary.port), "-U", SUPERUSER)
        self._run("pg_basebackup", *where, "--checkpoint=fast", "--no-sync")
        (self.folder / "data/standby.signal").touch()
        self._start_somewhere()

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-w", "-s", "-t", str(int(_WAIT)))


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, Standby]]:
    try:
        primary = PostgresServer({"wal_keep_size": "64MB"})
    except FileNotFoundError as error:
        absent(str(error))
        raise
    standby = Standby(primary)
    yield primary, standby
    standby.close()
    primary.close()


def until(found: Callable[[], Any]) -> Any:
    """Waits for a server to do something."""
    end = time.monotonic() + _WAIT
    while not (there := found()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return there


def asked(server: PostgresServer, sql: str) -> Any:
    with server.superuser() as connection:
        return connection.execute(sql).fetchone()[0]


def either(primary: PostgresServer, standby: PostgresServer, database: str) -> str:
    """An address of both servers, of which libpq takes the one that can be written."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://{SUPERUSER}@{hosts}/{database}"


FOLLOWED = "SELECT coalesce(bool_and(replay_lsn >= pg_current_wal_lsn()), false) FROM pg_stat_replication"


@pytest.mark.slow
def test_an_asynchronous_standby_may_lose_charges_and_that_is_noticed(pair: tuple[PostgresServer, Standby]) -> None:
    primary, standby = pair
    place = either(primary, standby, primary.make_database())
    with opened(place) as ledger:
        first = ledger.charge("patients", TENTH, key="first")
        until(lambda: asked(primary, FOLLOWED))
        standby.stop()
        ledger.charge("patients", TENTH, key="second")
        anchor = ledger.head()
        primary.kill()
        standby.start()
        standby.promote()
        with pytest.raises(LedgerTampered, match="older than what this process has seen"):
            ledger.charge("patients", TENTH, key="third")
    with Ledger(place) as fresh:
        assert fresh.verify().sequence == first.sequence  # a good ledger, without the second charge
        with pytest.raises(LedgerTampered):
            fresh.check_anchor(anchor)
        with pytest.raises(LedgerError, match="read-only"):
            fresh.charge("patients", TENTH)


@pytest.mark.slow
def test_a_synchronous_standby_has_every_receipt(pair: tuple[PostgresServer, Standby]) -> None:
    """Also if an administrator cancels the wait for it, which PostgreSQL tells as a success with a warning."""
    primary, standby = pair
    primary.restart(synchronous_standby_names="standby", synchronous_commit="off")
    until(lambda: asked(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))
    place = either(primary, standby, primary.make_database())
    waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    with opened(place) as ledger, ThreadPoolExecutor(1) as elsewhere:
        standby.stop()
        told = elsewhere.submit(ledger.charge, "patients", TENTH, key="first")
        for _ in range(3):
            until(lambda: asked(primary, f"SELECT count(pg_cancel_backend(pid)) {waiting}"))
        until(lambda: asked(primary, f"SELECT count(*) {waiting}"))
        assert not told.done()
        standby.start()
        receipt = told.result(_WAIT)
        primary.kill()
        standby.promote()
        assert ledger.charge("patients", TENTH, key="first").hash == receipt.hash
        assert ledger.verify().sequence == receipt.sequence
