"""A ledger on PostgreSQL: what its roles may do, what is found out, and what a cut connection or a crash leaves."""

from __future__ import annotations

import gc
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.curator.curator import Curator
from discreet.engines import Memory
from discreet.errors import (
    AnchorMismatch,
    AnchorMissing,
    AnchorNotKept,
    InsufficientBudget,
    InvalidParameter,
    LedgerError,
    LedgerTampered,
    MissingExtra,
    StreamError,
)
from discreet.ledger import OWNER, AnchoredLedger, Head, Ledger
from discreet.ledger.entry import seal
from discreet.ledger.store import ledger_store, postgres, postgres_tables
from discreet.ledger.store.postgres import PostgresStore
from discreet.ledger.store.transaction import _seal
from discreet.postgres_url import without
from discreet.privacy import Budget, PureDP, events
from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS
from tests.cases import try_all
from tests.cli.clinic import TOML, write
from tests.cli.clinic import run as run_command
from tests.effort import SLOW
from tests.ledger.crowds import check, run
from tests.ledger.ledgers import PATIENTS, TENTH, busy_ledger, opened
from tests.ledger.proxy import Proxy
from tests.ledger.test_faults import check_whole, signalled_at_line
from tests.postgres_server import PostgresServer

CANARY = "Frau-Geheim-1961"


def run_sql(place: str, *statements: str, user: str = "postgres") -> list[Any]:
    """Runs statements in the schema of a place, each by itself; returns the rows of the last."""
    url, own = without(place.replace("postgres@", f"{user}@"), "schema")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {own.get('schema', 'discreet')}")
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


ABOUT = "SELECT obj_description(to_regnamespace(current_schema()), 'pg_namespace')"


def schema_of(place: str) -> str:
    return without(place, "schema")[1]["schema"]


# --------------------------------------------------------------------------------------------------------------- roles


@pytest.fixture(scope="module")
def roles(postgres_server: PostgresServer) -> None:
    with postgres_server.superuser() as connection:
        for role in ("owning", "keeping", "looking", "nobody_special"):
            connection.execute(f"CREATE ROLE {role} LOGIN")


@pytest.fixture
def granted(place: str, request: pytest.FixtureRequest) -> str:
    """A ledger that one role owns, another keeps and a third only reads."""
    request.getfixturevalue("roles")
    schema = schema_of(place)
    made = postgres_tables.tables_sql(schema) + postgres_tables.grants_sql("keeping", schema=schema)
    database = without(place, "schema")[0].rpartition("/")[2]
    run_sql(place, f"GRANT CREATE ON DATABASE {database} TO owning")
    run_sql(place, made + postgres_tables.grants_sql("looking", schema=schema, only_read=True), user="owning")
    return place


FORBIDDEN = (
    "UPDATE entries SET who = 'x'",
    "UPDATE entries SET body = body WHERE sequence = 1",
    "DELETE FROM entries",
    "DELETE FROM entries WHERE false",
    "TRUNCATE entries",
    "TRUNCATE entries, answers, states CASCADE",
    "UPDATE answers SET payload = ''",
    "DELETE FROM answers",
    "TRUNCATE answers",
    "DELETE FROM states",
    "TRUNCATE states",
    "UPDATE states SET name = 'x'",
    "UPDATE states SET scope = 'x'",
    "ALTER TABLE entries DISABLE TRIGGER ALL",
    "ALTER TABLE entries DROP COLUMN hash",
    "DROP TRIGGER entries_kept ON entries",
    "DROP TABLE states",
    "DROP FUNCTION kept() CASCADE",
    "CREATE OR REPLACE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TRIGGER more BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION kept()",
    "CREATE TABLE more (x int)",
    "SET session_replication_role = replica",
    "INSERT INTO entries SELECT * FROM entries ON CONFLICT (sequence) DO UPDATE SET who = 'x'",
    "INSERT INTO entries SELECT sequence + 100, time, kind, account, who, price, '', 0, body, hash FROM entries",
    "COPY entries TO PROGRAM 'cat'",
)


def test_the_role_that_keeps_the_ledger_can_do_that_and_nothing_else(granted: str) -> None:
    with opened(granted.replace("postgres@", "keeping@")) as ledger:
        receipt = ledger.charge("patients", TENTH, key="k")
        assert ledger.store_answer(receipt, "replay", b"\x00\xff")
        assert ledger.charge("patients", TENTH, key="k").repeated
        head = ledger.verify()
        assert [stored.payload for stored in ledger.read_answers("replay")] == [b"\x00\xff"]

    def refuse(statement: str) -> None:
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)):
            run_sql(granted, statement, user="keeping")

    try_all(FORBIDDEN, refuse)
    with Ledger(granted.replace("postgres@", "looking@"), read_only=True) as ledger:
        assert ledger.verify() == head
        with pytest.raises(LedgerError):
            ledger.charge("patients", TENTH)
    with Ledger(granted.replace("postgres@", "looking@")) as ledger, pytest.raises(LedgerError, match="lacks a right"):
        ledger.charge("patients", TENTH)
    for place in (granted, granted.replace(schema_of(granted), "of_their_own")):
        with pytest.raises(LedgerError, match="The role may not"):
            Ledger(place.replace("postgres@", "nobody_special@"))


def test_triggers_stop_the_owner_as_well(granted: str) -> None:
    busy_ledger(granted)  # type: ignore[arg-type]

    def refuse(statement: str) -> None:
        with pytest.raises(psycopg.errors.RaiseException):
            run_sql(granted, statement, user="owning")

    changes = ["UPDATE entries SET who = 'x'", "UPDATE answers SET charge = 1"]
    tables = "entries", "answers", "states"
    try_all([*changes, *(f"{verb} {table}" for table in tables for verb in ("DELETE FROM", "TRUNCATE"))], refuse)
    Ledger(granted).close()


def test_an_entry_is_taken_at_the_end_and_with_its_hash_only(granted: str) -> None:
    with opened(granted) as ledger:
        head = ledger.head()
    fields = "2026-01-01", "charge", "patients", "owner", "{}", "", 0, "{}"
    right = seal(head.hash, 2, fields)

    def refuse(entry: tuple[object, ...]) -> None:
        values = ", ".join(f"'{value}'" for value in entry)
        with pytest.raises(psycopg.errors.RaiseException):
            run_sql(granted, f"INSERT INTO entries VALUES ({values})", user="keeping")

    wrong = [right._replace(hash=right.hash[::-1]), right._replace(who="ana"), seal(head.hash, 3, fields)]
    try_all([*wrong, seal("0" * 64, 1, fields), seal("0" * 64, 2, fields)], refuse)
    with Ledger(granted) as ledger:
        assert ledger.verify() == head


def test_a_state_that_no_entry_made_is_found_and_one_without_its_seal_never_used(place: str) -> None:
    with opened(place) as ledger:
        ledger.charge("patients", TENTH)
        ((name, text),) = run_sql(place, "SELECT name, text FROM states WHERE scope = 'standing'")
        less = text.replace("1/10", "0/1")
        assert less != text
        run_sql(place, f"UPDATE states SET text = '{less}' WHERE scope = 'standing'")
        with pytest.raises(LedgerTampered, match="seal"):
            ledger.balance("patients")
        run_sql(place, f"UPDATE states SET seal = '{_seal('standing', name, less)}' WHERE scope = 'standing'")
        with pytest.raises(LedgerTampered, match="does not follow from the entries"):
            ledger.verify()
        with pytest.raises(LedgerTampered):
            ledger.charge("patients", TENTH)


ALTERED = (
    "ALTER TABLE entries DISABLE TRIGGER entries_kept",
    "DROP TRIGGER answers_not_emptied ON answers",
    "CREATE OR REPLACE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "DROP INDEX entries_by_key",
    "ALTER TABLE states SET UNLOGGED",
    "ALTER TABLE entries ADD COLUMN more text",
    "ALTER TABLE entries ALTER COLUMN who DROP NOT NULL",
    "CREATE RULE silent AS ON DELETE TO entries DO INSTEAD NOTHING",
    "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE states ENABLE REPLICA TRIGGER states_kept",
    "CREATE VIEW more AS SELECT 1",
    "CREATE TABLE public.below () INHERITS (entries)",
)


def test_altered_tables_and_triggers_are_noticed(new_place: Callable[[], str]) -> None:
    def notice(statement: str) -> None:
        place = new_place()
        with opened(place) as ledger:
            run_sql(place, statement)
            with pytest.raises(LedgerTampered, match="altered"):
                ledger.verify()
        with pytest.raises(LedgerTampered, match="altered"):
            Ledger(place)
        run_sql(place, "DROP TABLE IF EXISTS public.below")

    try_all(ALTERED, notice)


# ----------------------------------------------------------------------------------------------------------- addresses


def test_a_password_in_an_address_is_refused_and_never_shown() -> None:
    def refuse(rest: str) -> None:
        with pytest.raises(InvalidParameter) as caught:
            Ledger(f"postgresql://{rest}")
        assert CANARY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"

    secrets = [f"ana:{CANARY}@h/db", f"ana@h/db?password={CANARY}", f"h/db?sslpassword={CANARY}"]
    try_all([*secrets, f"ana:x#{CANARY}@h/db", f"ana:x/{CANARY}@h/db", f"ana:@{CANARY}@h/db"], refuse)


def test_what_cannot_be_used_is_told(ledgers: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LedgerError, match="no ledger in schema"):
        Ledger(place, read_only=True)
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger("postgresql://postgres@127.0.0.1:1/postgres")
    with pytest.raises(LedgerError, match="is not a ledger"):
        Ledger(f"{ledgers}?schema=public")
    with pytest.raises(InvalidParameter, match="plain name"):
        Ledger(f"{ledgers}?schema=a;b")
    opened(place).close()
    run_sql(place, postgres_tables.version_sql(schema_of(place), ledger_store.VERSION + 1))
    with pytest.raises(LedgerError, match="newer version"):
        Ledger(place)
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"\.\[postgres\]"):
        Ledger(place)


def test_nothing_that_was_asked_or_answered_reaches_the_log(postgres_server: PostgresServer, place: str) -> None:
    with opened(place) as ledger:
        receipt = ledger.charge("patients", TENTH, question=f'{{"where":"{CANARY}"}}', key=CANARY)
        ledger.store_answer(receipt, CANARY, CANARY)
        run_sql(place, "ALTER TABLE states ADD CHECK (scope = 'x') NOT VALID")
        with pytest.raises(LedgerError) as caught:
            ledger.charge("patients", TENTH, question=f'{{"where":"{CANARY}"}}', key=CANARY * 2)
        assert CANARY not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
    assert CANARY not in postgres_server.log()


def test_a_text_that_the_server_cannot_hold_is_refused_and_nobody_waits_for_it(place: str) -> None:
    with opened(place) as ledger, Ledger(place, timeout=5) as other:
        receipt = ledger.charge("patients", TENTH)
        for text in ("\ud800", "a\0b"):
            with pytest.raises(LedgerError, match="cannot"):
                ledger.store_answer(receipt, text, b"")
            assert not other.charge("patients", events.Pure("1/100")).repeated
        assert ledger.store_answer(receipt, "k", b"")
        other.verify()


# ------------------------------------------------------------------------------------------------- threads and others


@pytest.mark.ci
def test_a_crowd_spends_exactly_what_there_is(place: str) -> None:  # RT-059
    opened(place, Budget(epsilon=4)).close()
    lines = run("crowd", place, 3, 2)
    assert check(place, lines, 40) == 40  # type: ignore[arg-type]
    assert sum(line[0] == "answered" for line in lines) == 40


@pytest.mark.slow
def test_ten_clients_and_a_cap_of_500_answer_exactly_500(place: str) -> None:
    opened(place, Budget(epsilon=50)).close()
    lines = run("crowd", place, 10, 2)
    assert check(place, lines, 500) == 500  # type: ignore[arg-type]
    assert sum(line[0] == "answered" for line in lines) == 500


def test_one_key_many_threads_one_charge(place: str) -> None:  # RT-061
    with opened(place) as ledger, ThreadPoolExecutor(8) as crew:
        receipts = list(crew.map(lambda _: ledger.charge("patients", TENTH, key="k"), range(24)))
        assert len({receipt.hash for receipt in receipts}) == 1
        assert sum(not receipt.repeated for receipt in receipts) == 1
        assert ledger.balance("patients").spent == PureDP("0.1")


def test_without_the_lock_the_tables_still_take_one_of_two(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_LOCKED", postgres._LOCKED.replace("pg_advisory_xact_lock(%s)", "%s::text"))

    def both(one: Ledger, two: Ledger) -> None:
        with one._journal.acting() as rows:
            rows.add("unlock", {"note": ""}, who="owner", account="patients")
            two.charge("patients", TENTH)

    with opened(place) as one, Ledger(place) as two:
        with pytest.raises(LedgerError, match="PostgreSQL"):
            both(one, two)
        assert [entry.kind for entry in two.history()] == ["open", "charge"]
        two.verify()


def test_waiting_for_others_ends(place: str) -> None:
    with opened(place) as ledger, Ledger(place, timeout=0.1) as other:
        with ledger._journal.writing(), pytest.raises(LedgerError, match="Others are writing"):
            other.charge("patients", TENTH)
        assert other.charge("patients", TENTH).sequence == 2


def test_a_forked_process_opens_its_own_connections(place: str) -> None:
    with opened(place) as ledger:
        child = os.fork()
        if child == 0:
            try:
                ledger.charge("patients", TENTH)
                ledger.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        ledger.charge("patients", TENTH)
        assert ledger.verify().sequence == 3


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_is_heard_while_others_write(place: str) -> None:
    with opened(place) as ledger, psycopg.connect(without(place, "schema")[0]) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (ledger._journal.store._key,))  # type: ignore[attr-defined]
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            ledger.charge("patients", TENTH)
        other.rollback()
        assert ledger.charge("patients", TENTH).sequence == 2


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_inside_a_transaction_waits_for_its_end(place: str) -> None:
    done = []

    def act(ledger: Ledger) -> None:
        with ledger._journal.acting() as rows:
            os.kill(os.getpid(), signal.SIGINT)
            done.append(rows.tail())

    with opened(place) as ledger:
        with pytest.raises(KeyboardInterrupt):
            act(ledger)
        assert done == [ledger.head()]
        ledger.charge("patients", TENTH)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a connection that nobody has yet, or any more, is let go
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("by", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_at_each_line_leaves_the_ledger_whole(place: str, by: int) -> None:
    opened(place, Budget(epsilon=10)).close()
    assert check_whole(place, signalled_at_line, by, patience=20) > 100
    gc.collect()


def test_times_are_those_of_the_server(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as ledger:
        first = ledger.charge("patients", TENTH)
        monkeypatch.setattr(time, "time_ns", lambda: 10**18)
        second = ledger.charge("patients", TENTH)
        assert second.sequence == first.sequence + 1
        assert [entry.time[:4] for entry in ledger.history()][-1] != "2001"
        ledger.verify()


# --------------------------------------------------------------------------------------------------- lost connections


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres_server.port) as between:
        yield between


@pytest.mark.ci
def test_a_connection_cut_anywhere_costs_one_charge_at_most(
    proxy: Proxy, postgres_server: PostgresServer, place: str, caplog: pytest.LogCaptureFixture
) -> None:  # RT-063
    """And the driver's own words about it, in which values may be, reach nobody's screen."""
    opened(place, Budget(epsilon=100)).close()
    through = place.replace(f":{postgres_server.port}/", f":{proxy.port}/")
    with Ledger(place) as honest:
        known = Count(honest)
        for reply in (False, True):
            for piece in range(1, 12, 1 if SLOW else 3):
                key = f"{piece}-{reply}"
                with closing(PostgresStore(through, timeout=20)) as store:
                    ledger = Ledger(store)
                    proxy.arm(piece, reply=reply)
                    told = attempt(ledger, key)
                    if not proxy.cut:
                        break
                    proxy.arm(-1, reply=False)
                    assert known.more() <= 1
                    again = attempt(ledger, key)  # the same process goes on
                assert again is not None
                assert honest.history(after=again.sequence - 1, limit=1)[0].hash == again.hash
                assert told is None or told.hash == again.hash
                assert known.all() == 1
            assert piece > 3  # a charge takes so many trips, and each was cut
        honest.verify()
    assert caplog.records == []


class Count:
    """How many charges there are since the last look at all of them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._seen = ledger, 0

    def more(self) -> int:
        return sum(entry.kind == "charge" for entry in self._ledger.history()) - self._seen

    def all(self) -> int:
        new = self.more()
        self._seen += new
        return new


def attempt(ledger: Ledger, key: str) -> Any:
    try:
        return ledger.charge("patients", TENTH, key=key)
    except LedgerError:
        return None


def test_a_commit_of_which_nothing_is_known_is_told(proxy: Proxy, postgres_server: PostgresServer, place: str) -> None:
    opened(place).close()
    through = place.replace(f":{postgres_server.port}/", f":{proxy.port}/")
    ledger = Ledger(through, timeout=0.3)
    ledger.account("patients")
    honest = PostgresStore._commit

    def cut(store: PostgresStore, rows: Any) -> None:
        proxy.close()
        honest(store, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresStore, "_commit", cut)
        with pytest.raises(LedgerError, match="Whether entry 2 is in the ledger is not known"):
            ledger.charge("patients", TENTH, key="k")
    ledger.close()
    with Ledger(place) as later:
        assert not later.charge("patients", TENTH, key="k").repeated  # the server has undone it
        assert later.verify().sequence == 2


def test_a_ledger_that_grew_younger_is_noticed(place: str) -> None:
    schema = schema_of(place)
    with opened(place) as ledger:
        ledger.charge("patients", TENTH)
        copies = [f"CREATE TABLE old_{table} AS SELECT * FROM {table}" for table in ("entries", "states", "answers")]
        run_sql(place, *(copy.replace("TABLE ", "TABLE public.", 1) for copy in copies))
        ledger.charge("patients", TENTH)
        anchor = ledger.head()
        run_sql(
            place,
            "SET session_replication_role = replica",
            *(f"DELETE FROM {table}" for table in ("entries", "states", "answers")),
            *(f"INSERT INTO {schema}.{t} SELECT * FROM public.old_{t}" for t in ("entries", "states", "answers")),
            *(f"DROP TABLE public.old_{table}" for table in ("entries", "states", "answers")),
        )
        with pytest.raises(LedgerTampered, match="older than what this process has seen"):
            ledger.charge("patients", TENTH)
    with Ledger(place) as fresh:
        fresh.verify()  # a good ledger of yesterday
        with pytest.raises(LedgerTampered):
            fresh.check_anchor(anchor)
        assert fresh.is_frozen
    with Ledger(place) as fresh, pytest.raises(LedgerError, match="read-only"):
        fresh.charge("patients", TENTH)


def test_a_server_that_is_set_back_is_refused_with_its_anchor_and_without(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database of an old backup is an old copy as well; so is an empty one where a ledger was."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with AnchoredLedger(place) as ledger:
        ledger.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=1))
        ledger.backup(str(tmp_path / "monday"))
        ledger.store_answer(ledger.charge("patients", TENTH), "count", b"5")
        anchor = Path(ledger.anchor_file)
    run_sql(place, f"DROP SCHEMA {schema_of(place)} CASCADE")
    with pytest.raises(AnchorMismatch, match="is gone"):
        AnchoredLedger(place)
    run_sql(place, f"DROP SCHEMA IF EXISTS {schema_of(place)} CASCADE")
    with Ledger(str(tmp_path / "monday"), read_only=True) as copy:
        copy.backup(place)
    with pytest.raises(AnchorMismatch):
        AnchoredLedger(place)
    anchor.unlink()
    with pytest.raises(AnchorMissing):
        AnchoredLedger(place)


# ---------------------------------------------------------------------------------------------------- earlier versions


def test_an_old_ledger_says_that_it_has_an_anchor_once_its_owner_lets_it(
    granted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    schema, place = schema_of(granted), granted.replace("postgres@", "keeping@")
    opened(place).close()
    run_sql(granted, postgres_tables.version_sql(schema, 3), user="owning")
    with pytest.warns(AnchorNotKept, match=f"owner runs: COMMENT ON SCHEMA {schema} IS 'discreet ledger, version 4'"):
        AnchoredLedger(place).close()
    run_sql(granted, postgres_tables.version_sql(schema, 4), user="owning")
    with AnchoredLedger(place) as ledger:
        assert ledger.history()[-1].content["how"] == "marked"
        ledger.verify()


def test_an_old_ledger_becomes_a_new_one_with_its_first_act_of_a_service(place: str) -> None:
    schema = schema_of(place)
    opened(place).close()
    run_sql(place, postgres_tables.version_sql(schema, 1))
    with Ledger(place) as ledger:
        ledger.charge("patients", TENTH)
        assert run_sql(place, ABOUT)[0][0].endswith("version 1")
        ledger.stewardship.record("make key", about="ana")
        ledger.verify()
    assert run_sql(place, ABOUT)[0][0].endswith("version 2")


def test_a_role_that_may_not_raise_the_version_says_what_the_owner_runs(granted: str) -> None:
    schema = schema_of(granted)
    run_sql(granted, postgres_tables.version_sql(schema, 1), user="owning")
    with Ledger(granted.replace("postgres@", "keeping@")) as ledger:
        head = ledger.head()
        with pytest.raises(
            LedgerError, match=f"owner runs: COMMENT ON SCHEMA {schema} IS 'discreet ledger, version 2'"
        ):
            ledger.stewardship.record("make key", about="ana")
        assert ledger.head() == head
        run_sql(granted, postgres_tables.version_sql(schema, 2), user="owning")
        ledger.stewardship.record("make key", about="ana")
        ledger.verify()


# ------------------------------------------------------------------------------------------------ from place to place


def test_a_file_moves_to_the_server_with_its_chain_and_takes_no_more_charges(tmp_path: Path, place: str) -> None:
    path = tmp_path / "clinic.ledger"
    busy_ledger(path)
    with Ledger(str(path)) as ledger:
        told = ledger.history(), ledger.balance("patients", analyst="ana"), ledger.read_answers("visits@2026-11/count")
        head = ledger.move(place)
        with pytest.raises(LedgerError, match="read-only"):
            ledger.charge("patients", TENTH)
        with pytest.raises(LedgerError, match="already"):
            ledger.move(place)
    with Ledger(place, anchor=head) as there:
        assert there.verify() == head == Head.parse(str(head))
        assert (
            there.history(),
            there.balance("patients", analyst="ana"),
            there.read_answers("visits@2026-11/count"),
        ) == told
        there.charge("patients", TENTH)
        copied = there.backup(str(tmp_path / "copy"))
        assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
        for taken in (place, str(tmp_path / "copy")):
            with pytest.raises(LedgerError, match="already"):
                there.backup(taken)
    with Ledger(str(tmp_path / "copy"), anchor=head) as back:
        assert back.verify() == copied


def test_a_move_that_was_stopped_after_the_copy_is_finished_by_the_next(tmp_path: Path, place: str) -> None:
    path = tmp_path / "clinic.ledger"
    busy_ledger(path)
    with Ledger(str(path)) as ledger:
        ledger.backup(place)
        head = ledger.move(place)
        assert ledger.is_frozen
    with Ledger(place, read_only=True) as there:
        assert there.head() == head


# ------------------------------------------------------------------------------------------------------------- crashes


@pytest.fixture(scope="module")
def fragile() -> Iterator[PostgresServer]:
    """A server of our own, whose log is written by whoever waits for it and nobody else."""
    server = PostgresServer({"wal_writer_delay": "10s", "wal_writer_flush_after": "0", "checkpoint_timeout": "1h"})
    yield server
    server.close()


@pytest.mark.slow
def test_what_nobody_waited_for_is_lost_in_a_crash_and_what_was_told_is_not(
    fragile: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = fragile.url(database=fragile.make_database())
    with opened(place) as ledger:
        told = ledger.charge("patients", TENTH, key="told")
        with monkeypatch.context() as patch:
            patch.setattr(PostgresStore, "_make_durable", lambda *_: None)
            ledger.charge("patients", TENTH, key="untold")  # the mistake that this test must notice
        fragile.kill()
        fragile.restart()
    with Ledger(place) as ledger:
        assert ledger.verify() == Head(told.sequence, told.hash)
        assert ledger.charge("patients", TENTH, key="told").repeated
        assert not ledger.charge("patients", TENTH, key="untold").repeated


@pytest.mark.slow
def test_readers_show_nothing_that_a_crash_could_lose(fragile: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    place = fragile.url(database=fragile.make_database())
    with opened(place) as ledger, Ledger(place) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(PostgresStore, "_make_durable", lambda *_: None)
            receipt = ledger.charge("patients", TENTH)
            ledger.store_answer(receipt, "replay", b"shown")
        assert reader.read_answers("replay")[0].payload == b"shown"
        fragile.kill()
        fragile.restart()
        assert reader.read_answers("replay")[0].payload == b"shown"


@pytest.mark.slow
def test_a_server_that_loses_what_it_acknowledges_is_refused(fragile: PostgresServer) -> None:
    fragile.restart(fsync="off")
    with pytest.raises(LedgerError, match="fsync"):
        Ledger(fragile.url())
    fragile.restart(fsync="on")


@pytest.mark.slow
def test_kills_of_the_server_lose_and_double_nothing(fragile: PostgresServer) -> None:
    """Clients go on through 15 crashes; bench/shared_ledger.py does the same 200 times."""
    place = fragile.url(database=fragile.make_database())
    opened(place, Budget(epsilon=10**6)).close()
    stop, told, started = threading.Event(), [], threading.Barrier(4)

    def spend(who: str) -> None:
        with Ledger(place, timeout=60) as ledger:
            started.wait()  # whoever opens a ledger while its server dies is told so, and is no client yet
            number = 0
            while not stop.is_set():
                receipt = attempt_as(ledger, who, f"{who}-{number}")
                if receipt is not None:
                    told.append((receipt.sequence, receipt.hash))
                    number += 1

    with ThreadPoolExecutor(3) as crew:
        work = [crew.submit(spend, f"client-{number}") for number in range(3)]
        started.wait()
        for _ in range(15):
            before = len(told)
            while len(told) < before + 10 and not any(each.done() for each in work):
                stop.wait(0.01)
            fragile.kill()
            fragile.restart()
        stop.set()
        for each in work:
            each.result()
    with Ledger(place) as ledger:
        ledger.verify()
        charges = [entry for entry in ledger.history() if entry.kind == "charge"]
        assert set(told) <= {(entry.sequence, entry.hash) for entry in charges}
        keys = [entry.key for entry in charges]
        assert len(keys) == len(set(keys))
        assert len(charges) <= len(set(told)) + 3


def attempt_as(ledger: Ledger, who: str, key: str) -> Any:
    try:
        return ledger.charge("patients", TENTH, analyst=who, key=key)
    except LedgerError:
        return None


@pytest.mark.slow
def test_overspending_is_refused_every_time(place: str) -> None:
    with opened(place, Budget(epsilon=1)) as ledger:
        passed = refused = 0
        for _ in range(1000):
            try:
                ledger.charge("patients", TENTH)
                passed += 1
            except InsufficientBudget:
                refused += 1
        assert (passed, refused) == (10, 990)


# ---------------------------------------------------------------------------------------------------------- documents


def test_the_document_is_true_line_by_line(postgres_server: PostgresServer) -> None:
    """The SQL in docs/shared_ledger.md is what the commands print; tests/cli/test_how_to.py types these."""
    shown = [block for block in blocks(DOCS / "shared_ledger.md") if block.language == "sql"]
    make, rights, silence = (block.body for block in shown)
    whom = "--writer", "curators", "--reader", "auditors"
    printed = terminal("ledger", "roles", "ledger", *whom)
    assert printed == make + silence + silence.replace("curators", "auditors")
    assert rights in terminal("ledger", "sql", *whom)
    assert terminal("ledger", "sql", *whom, "--no-tables") == f"BEGIN;\n{rights}COMMIT;\n"
    with postgres_server.superuser() as connection:
        for statement in printed.split(";\n"):
            connection.execute(statement.strip())
    place = postgres_server.url("ledger_owner", "ledger")
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(terminal("ledger", "sql", *whom))
    with closing(Curator(postgres_server.url("curators", "ledger"), engine=Memory())) as curator:
        curator.protect([{"ward": "A"}], name="wards", types={"ward": "text"}, budget=Budget(epsilon=1))
        assert curator.ask("SELECT COUNT(*) FROM wards", epsilon=0.5).remaining.loss == PureDP("0.5")
    with Ledger(postgres_server.url("auditors", "ledger"), read_only=True) as ledger:
        ledger.verify()
    for block in shown:
        block.ran()


def terminal(*arguments: str) -> str:
    told = run_command(*arguments)
    assert told.code == 0, told
    return told.out


def test_a_file_of_declarations_names_a_server(place: str, tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("ward\nA\n")
    told = '[budgets.wards]\nepsilon = 1\n[tables.wards]\nsource = "wards.csv"\nunit = ""\ntypes = {ward = "text"}\n'
    config = tmp_path / "discreet.toml"
    config.write_text(f'ledger = "{place}"\n{told}')
    terminal("protect", "--config", str(config))
    terminal("ask", "SELECT COUNT(*) FROM wards", "--epsilon", "0.5", "--config", str(config))
    assert "epsilon=0.5" in terminal("budget", "--config", str(config))
    head = terminal("verify", "--config", str(config)).splitlines()[-1]
    terminal("verify", "--anchor", head, "--config", str(config))
    config.write_text(f'ledger = "postgresql://ana:{CANARY}@h/db"\n{told}')
    refused = run_command("budget", "--config", str(config))
    assert refused.code == 2
    assert CANARY not in f"{refused}"


def test_a_stream_needs_a_file_of_its_own(place: str, tmp_path: Path) -> None:
    rows = [{"day": 1, "n": 1}]
    how: dict[str, Any] = {"every": 1, "start": 1, "horizon": 4, "epsilon": 0.1}
    with closing(Curator(place, engine=Memory())) as curator:
        curator.protect(rows, name="days", types={"day": "int", "n": "int"}, budget=Budget(epsilon=1))
        question = "SELECT day, COUNT(*) AS n FROM days GROUP BY day"
        with pytest.raises(StreamError, match="on a server"):
            curator.stream(question, name="daily", **how)
        assert curator.budget("days").spent == PureDP(0)
        state = str(tmp_path / "state")
        curator.stream(question, name="daily", state=state, **how).release()
        curator.stream(name="daily", state=state).close()
        for name, analyst in (("weekly", OWNER), ("daily", "ana")):
            with pytest.raises(StreamError, match="not the state of"):
                curator.stream(name=name, analyst=analyst, state=state)
        with pytest.raises(StreamError):  # an empty state of a stream that has gone on
            curator.stream(question, name="daily", state=str(tmp_path / "other"), **how)
    assert stat.S_IMODE(os.stat(state).st_mode) == 0o600


def test_commands_of_streams_name_the_file(place: str, tmp_path: Path) -> None:
    config, state = str(tmp_path / "discreet.toml"), str(tmp_path / "daily.state")
    write(tmp_path, TOML.replace("clinic.ledger", place))
    terminal("protect", "--config", config)
    sql = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    start = ("stream", "start", "daily", sql, "--every", "10", "--start", "20", "--horizon", "4", "--epsilon", "0.5")
    refused = run_command(*start, "--config", config)
    assert refused.code == 5
    assert "--state" in refused.error["Hint"]
    terminal(*start, "--state", state, "--config", config)
    released = terminal("stream", "release", "daily", "--state", state, "--csv", "--config", config)
    assert terminal("stream", "show", "daily", "--state", state, "--csv", "--config", config) == released
