"""MariaDB as an engine: what it can read, whatever is stored; who may read; and what it never tells anybody."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.engines.by_source import by_source, engine_at
from discreet.engines.mariadb import MariaDB, engine, snapshots
from discreet.engines.mariadb.address import MariaDBAddress, MariaDBTable
from discreet.engines.mariadb.pcre_patterns import SLOW
from discreet.engines.mariadb.reader_account import role_statements
from discreet.engines.sources.query_view import query_view
from discreet.errors import InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.plan.expressions.pattern_grammar import parse
from discreet.plan.expressions.patterns import write_pattern
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS
from tests.engines.mariadb_tables import READER, MariaDBTables, register
from tests.engines.tables import B, D, F, N, S, T, bounding, call, col, lit, value_of
from tests.mariadb_server import MariaDBServer, execute
from tests.open_groups import unsealed

ROWS = Reading(table="t", statistics=(Statistic(kind="rows"),))
CANARY = "ZZ-CANARY-7"


# ------------------------------------------------------------------------------------------------------- what is stored

_HIGH = (1 << 63) - 1
STORED: dict[str, tuple[Type, list[tuple[str, Any]]]] = {
    "TINYINT": (N, [("-128", -128), ("7", 7)]),
    "INT UNSIGNED ZEROFILL": (N, [("4294967295", 4294967295), ("7", 7)]),
    "BIGINT": (N, [("-9223372036854775808", -(1 << 63)), (str(_HIGH), _HIGH)]),
    "BIGINT UNSIGNED": (N, [(str(_HIGH), _HIGH), (str(_HIGH + 1), None), (str(2**64 - 1), None)]),
    "YEAR": (N, [("2024", 2024), ("0", 0)]),
    "FLOAT": (F, [("1.5", 1.5), ("1e-45", 1.401298464324817e-45), ("-0e0", 0.0), ("0.1", 0.10000000149011612)]),
    "DOUBLE": (F, [("5e-324", 5e-324), ("1.7976931348623157e308", 1.7976931348623157e308), ("-1e300", -1e300)]),
    "DOUBLE(30,2)": (F, [("123456789012345.67", 123456789012345.67), ("0.016", 0.02)]),
    "DECIMAL(65,0)": (F, [("9" * 65, 1e65), ("9007199254740993", 9007199254740992.0)]),
    "DECIMAL(20,4)": (F, [("1234567890123456.7891", 1234567890123456.7891), ("-0.0001", -0.0001)]),
    "BIT(1)": (B, [("b'1'", True), ("b'0'", False)]),
    "TEXT CHARACTER SET utf8mb4": (T, [("'naïve'", "naïve"), ("''", ""), ("'a '", "a "), ("X'00'", "\0")]),
    "VARCHAR(5) CHARACTER SET latin1": (T, [("'é€ '", "é€ "), ("X'81'", "\x81")]),
    "CHAR(5) CHARACTER SET utf8mb3": (T, [("'a  '", "a"), ("'ß'", "ß")]),
    "ENUM('sad','ok')": (T, [("'sad'", "sad")]),
    "UUID": (T, [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    "DATE": (
        D,
        [
            *(("'0000-00-00'", None), ("'2024-00-00'", None), ("'2024-01-00'", None), ("'2024-02-31'", None)),
            *(("'0000-01-01'", None), ("'2024-02-29'", dt.date(2024, 2, 29))),
            *(("'0001-01-01'", dt.date(1, 1, 1)), ("'9999-12-31'", dt.date(9999, 12, 31))),
        ],
    ),
    "DATETIME(6)": (
        S,
        [
            *(("'0000-00-00 00:00:00'", None), ("'2023-02-29 01:00:00'", None)),
            ("'9999-12-31 23:59:59.999999'", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ],
    ),
    "TIMESTAMP NULL": (S, [("'0000-00-00 00:00:00'", None), ("'2024-02-29 23:30:00'", dt.datetime(2024, 3, 1, 1, 30))]),
}
"""For each type values as SQL writes them, and what they are read as."""


@pytest.mark.ci
def test_whatever_is_stored_is_read(mariadb_tables: MariaDBTables) -> None:
    for native, (kind, cells) in STORED.items():
        source = mariadb_tables.table({"id": "INT", "x": native}, [])
        mariadb_tables.run("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '-02:00'")
        for place, (cell, _) in enumerate(cells):
            mariadb_tables.run(f"INSERT INTO {source} VALUES ({place}, {cell})")
        mariadb_tables.run(f"INSERT INTO {source} VALUES (-1, NULL)", "SET sql_mode = DEFAULT, time_zone = DEFAULT")
        with mariadb_tables.engine() as made:
            assert made.schema_of(source) == {"id": N, "x": kind}, native
            made.register("t", source, {"id": N, "x": kind})
            memory = Memory()
            rows = [{"id": -1}, *({"id": i, "x": v} for i, (_, v) in enumerate(cells))]
            memory.register("t", rows, {"id": N, "x": kind})
            asked = value_of(col("x", kind))
            assert unsealed(made.read(asked)) == unsealed(memory.read(asked)), native


def test_small_numbers_are_truth_values_where_they_are_declared_so(mariadb_tables: MariaDBTables) -> None:
    source = mariadb_tables.table({"id": "INT", "x": "TINYINT(1)"}, [{"id": i, "x": i} for i in (0, 1, 2)])
    with mariadb_tables.engine() as made:
        assert made.schema_of(source) == {"id": N, "x": N}
        for kind, values in ((N, (0, 1, 2)), (B, (False, True, True))):
            made.register("t", source, {"id": N, "x": kind})
            assert list(unsealed(made.read(value_of(col("x", kind))))) == list(enumerate(values))


@pytest.mark.ci
def test_columns_of_other_types_are_left_out(mariadb_tables: MariaDBTables) -> None:
    others = [
        "JSON",
        "LONGTEXT",
        "BLOB",
        "VARBINARY(9)",
        "TIME",
        "SET('a')",
        "POINT",
        "BIT(3)",
        "TEXT CHARACTER SET utf16",
    ]
    made_ones = {"made": "INT AS (id + 1) VIRTUAL", "kept": "INT AS (id + 1) STORED", "unseen": "INT INVISIBLE"}
    listed = {"id": "INT", **{f"x{i}": native for i, native in enumerate(others)}, **made_ones}
    source = mariadb_tables.table(listed, [])
    with mariadb_tables.engine() as made:
        assert made.schema_of(source) == {"id": N, "kept": N}
        for column in ("x0", "made", "unseen", "absent"):
            with pytest.raises(InvalidParameter):
                made.register("t", source, {column: T})


@pytest.mark.ci
def test_tables_of_every_form(mariadb_tables: MariaDBTables) -> None:
    """Partitions and kept versions are read as they are now; what computes, or has no snapshot, is refused."""
    who = f"{READER}@'127.0.0.1'"
    mariadb_tables.run(
        "CREATE TABLE parts (id INT) PARTITION BY HASH (id) PARTITIONS 3",
        "INSERT INTO parts VALUES (1), (2), (3), (4)",
        "CREATE TABLE history (id INT) WITH SYSTEM VERSIONING",
        "INSERT INTO history VALUES (1), (2), (3)",
        "DELETE FROM history WHERE id < 3",
        "CREATE VIEW computed AS SELECT id, 1 / id AS x FROM parts",
        "CREATE TABLE aria (id INT) ENGINE=Aria",
        "CREATE TABLE myisam (id INT) ENGINE=MyISAM",
        "CREATE TABLE memory (id INT) ENGINE=MEMORY",
        "CREATE TABLE parts_of_aria (id INT) ENGINE=Aria PARTITION BY HASH (id) PARTITIONS 2",
        "CREATE SEQUENCE numbers",
        'CREATE TABLE `Odd "``name` (`a "``b` INT)',
        *(
            f"GRANT SELECT ON {name} TO {who}"
            for name in ("parts", "history", "computed", "aria", "myisam", "memory", "parts_of_aria", "numbers")
        ),
        f'GRANT SELECT ON `Odd "``name` TO {who}',
        "CREATE TABLE closed (id INT)",
        "CREATE TABLE partly (id INT, secret TEXT)",
        f"GRANT SELECT (id) ON partly TO {who}",
    )
    for source, count in (("parts", 4), ("history", 1)):
        with register(mariadb_tables, source, {"id": N}) as made:
            assert unsealed(made.read(ROWS)) == {(): (count,)}
    with mariadb_tables.engine() as made:
        odd = MariaDBTable(server=MariaDBAddress.of(mariadb_tables.url), table='Odd "`name')
        assert made.schema_of(odd) == {'a "`b': N}
        made.register("t", odd, {'a "`b': N})
        assert unsealed(made.read(ROWS)) == {}
        assert made.schema_of("partly") == {"id": N}
        for source in ("aria", "myisam", "memory", "parts_of_aria", "numbers"):
            with pytest.raises(InvalidParameter, match="InnoDB"):
                made.schema_of(source)
        for source, condition in (("computed", "not a view"), ("closed", "can read"), ("absent", "can read")):
            with pytest.raises(InvalidParameter, match=condition):
                made.schema_of(source)


def test_a_table_is_read_after_the_remedy(mariadb_tables: MariaDBTables) -> None:
    source = mariadb_tables.table({"id": "INT"}, [{"id": 1}], "ENGINE=Aria")
    with mariadb_tables.engine() as made:
        with pytest.raises(InvalidParameter, match=r"ALTER TABLE \.\.\. ENGINE=InnoDB"):
            made.schema_of(source)
        mariadb_tables.run(f"ALTER TABLE {source} ENGINE=InnoDB")
        assert made.schema_of(source) == {"id": N}


# ------------------------------------------------------------------------------------------------------------- the user


def test_nobody_reads_who_can_do_more(mariadb_tables: MariaDBTables, mariadb_server: MariaDBServer) -> None:
    source = mariadb_tables.table({"id": "INT"}, [])
    place = f"{mariadb_tables.database}.{source}"
    more = ["INSERT (id) ON " + place, "UPDATE ON " + place, f"DROP ON {mariadb_tables.database}.*", "FILE ON *.*"]
    for number, (grant, rest) in enumerate([*((one, "") for one in more), ("SELECT ON " + place, "WITH GRANT OPTION")]):
        who = f"powerful{number}"
        mariadb_tables.run(
            f"CREATE USER {who}@'127.0.0.1'",
            f"GRANT SELECT ON {place} TO {who}@'127.0.0.1'",
            f"GRANT {grant} TO {who}@'127.0.0.1' {rest}",
        )
        powerful = MariaDB(mariadb_server.url(who, mariadb_tables.database))
        with powerful, pytest.raises(InvalidParameter, match="changes by this user"):
            powerful.schema_of(source)
        mariadb_tables.run(f"DROP USER {who}@'127.0.0.1'")


@pytest.mark.ci
def test_what_everybody_may_do_counts_and_a_role_does_not(
    mariadb_tables: MariaDBTables, mariadb_server: MariaDBServer
) -> None:
    source = mariadb_tables.table({"id": "INT"}, [])
    place = f"{mariadb_tables.database}.{source}"
    mariadb_tables.run(
        "CREATE ROLE writers",
        f"GRANT ALL ON {mariadb_tables.database}.* TO writers",
        "CREATE USER guest@'127.0.0.1'",
        f"GRANT SELECT ON {place} TO guest@'127.0.0.1'",
        "GRANT writers TO guest@'127.0.0.1'",
        "SET DEFAULT ROLE writers FOR guest@'127.0.0.1'",
    )
    url = mariadb_server.url("guest", mariadb_tables.database)
    with MariaDB(url) as made:
        made.register("t", source, {"id": N})
        with pytest.raises(snapshots.driver().Error), made._sessions.transaction() as session:
            snapshots.run(session, f"INSERT INTO {source} VALUES (2)")
    mariadb_tables.run(f"GRANT UPDATE ON {place} TO PUBLIC")
    with MariaDB(url) as made, pytest.raises(InvalidParameter, match="changes by this user"):
        made.schema_of(source)
    mariadb_tables.run(f"REVOKE UPDATE ON {place} FROM PUBLIC", "DROP USER guest@'127.0.0.1'", "DROP ROLE writers")


@pytest.mark.ci
def test_the_statements_make_a_user_who_reads_these_columns(
    mariadb_tables: MariaDBTables, mariadb_server: MariaDBServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mariadb_tables.table({"id": "INT", "ward": "VARCHAR(9)", "note": "TEXT"}, [{"id": 1, "ward": "A"}])
    named = MariaDBTable(server=MariaDBAddress.of(mariadb_tables.url), table=source)
    mariadb_tables.run(*role_statements(named, ["id", "ward"], role="asker", host="127.0.0.1"))
    url = mariadb_server.url("asker", mariadb_tables.database)
    with MariaDB(url) as made, pytest.raises(InvalidParameter, match="can be reached"):
        made.schema_of(source)  # without a password the account is locked
    mariadb_tables.run("ALTER USER asker@`127.0.0.1` IDENTIFIED BY 'open sesame' ACCOUNT UNLOCK")
    monkeypatch.setenv("MYSQL_PWD", "open sesame")
    with MariaDB(url) as made:
        assert made.schema_of(source) == {"id": N, "ward": T}
        made.register("t", source, {"id": N, "ward": T})
        assert unsealed(made.read(ROWS)) == {(): (1,)}
    mariadb_tables.run("DROP USER asker@`127.0.0.1`")
    for wrong in ({"role": ""}, {"seconds": 0}):
        with pytest.raises(InvalidParameter):
            role_statements(named, **wrong)  # type: ignore[arg-type]


def test_what_a_session_cannot_do(mariadb_tables: MariaDBTables) -> None:
    source = mariadb_tables.table({"id": "INT"}, [{"id": 1}])
    for hostile in (
        f"INSERT INTO {source} VALUES (2)",
        "CREATE TABLE mine (x INT)",
        "SELECT 1 INTO OUTFILE '/tmp/x'",
        "SET GLOBAL general_log = 1",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE mine",
        "SELECT * FROM mysql.global_priv",
    ):
        with register(mariadb_tables, source, {"id": N}) as made:
            with pytest.raises(snapshots.driver().Error), made._sessions.transaction() as session:
                snapshots.run(session, hostile)
            assert unsealed(made.read(ROWS)) == {(): (1,)}


HOSTILE = {
    "sql_mode": "''",
    "time_zone": "'+09:00'",
    "collation_connection": "utf8mb4_general_ci",
    "default_regex_flags": "'EXTENDED'",
    "max_sort_length": "64",
    "group_concat_max_len": "4",
    "sql_select_limit": "1",
    "div_precision_increment": "0",
    "system_versioning_asof": "'2001-01-01 00:00:00'",
    "sql_auto_is_null": "1",
    "tx_isolation": "'READ-UNCOMMITTED'",
    "sql_big_selects": "0, max_join_size = 1",
}
"""What a server may have for all sessions."""


@pytest.mark.ci
def test_no_variable_of_the_server_changes_a_result(mariadb_tables: MariaDBTables) -> None:
    rows = [{"id": i, "u": f"{'x' * 400}{i % 3}", "day": dt.datetime(2024, 1, 1, i)} for i in range(12)]
    columns = {"id": N, "u": T, "day": S}
    source = mariadb_tables.give(rows, columns)
    texts = ("a\\", "A", "a ")
    asked = [
        Reading(table="t", statistics=(Statistic(kind="rows"),), bounding=bounding(1, 2)),
        value_of(call("concat", T, col("u", T), lit(texts[0], T))),
        value_of(call("matches", B, col("u", T), lit(write_pattern(parse("x 1|x[0-1]")), T))),
        value_of(call("hour", N, col("day", S))),
        value_of(call("in", B, col("u", T), *(lit(text, T) for text in texts))),
        value_of(call("integer_divide", N, col("id", N), lit(5, N))),
    ]
    memory = Memory()
    memory.register("t", rows, columns)
    right = [unsealed(memory.read(one)) for one in asked]
    assert right[0] == {(): (6,)}
    for name, value in HOSTILE.items():
        if name != "tx_isolation":
            mariadb_tables.run(f"SET GLOBAL {name} = {value.replace('max_join', 'GLOBAL max_join')}")
        else:
            mariadb_tables.run("SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
    try:
        with register(mariadb_tables, source, columns) as made:
            assert [unsealed(made.read(one)) for one in asked] == right
    finally:
        for name in (*HOSTILE, "max_join_size"):
            mariadb_tables.run(f"SET GLOBAL {name} = DEFAULT")


# ------------------------------------------------------------------------------------------------------------ addresses


def test_no_password_is_taken_from_an_address_or_shown() -> None:
    for url in (
        f"mysql://ana:{CANARY}@db.example/clinic/visits",
        f"mariadb://ana:{CANARY}@db.example/clinic/visits",
        f"mysql://db.example/clinic/visits?password={CANARY}",
        f"mysql://db.example/clinic/visits?passwd={CANARY}",
        f"mysql://db.example/clinic/visits?key={CANARY}",
        f"mysql://ana:{CANARY}@@db.example/clinic/visits",
        f"mysql://ana:{CANARY}/1@db.example/clinic",
        f"mysql://db.example:{CANARY}/clinic/visits",
        f"mysql://[{CANARY}/clinic/visits",
    ):
        for take in (MariaDB, MariaDBAddress.of, MariaDBTable.of, by_source().schema_of):
            with pytest.raises(InvalidParameter) as refused:
                take(url)
            assert CANARY not in repr(refused.value) + str(vars(refused.value))
    address = MariaDBAddress.of("mysql://ana@db.example:3307/clinic%20a?ssl_ca=/etc/ca.pem")
    assert "ana" not in f"{address!r} {address}"


def test_a_server_that_is_not_there_is_named_without_its_user() -> None:
    with MariaDB("mysql://ana@127.0.0.1:1/clinic") as made, pytest.raises(InvalidParameter) as refused:
        made.schema_of("visits")
    assert "ana" not in str(refused.value)
    assert "127.0.0.1:1/clinic" in str(refused.value)


def test_addresses_of_tables() -> None:
    assert MariaDBTable.of("mysql://h/d/t") == MariaDBTable.of("mariadb://h:3306/d/t")
    assert MariaDBTable.of("mysql:///d/t?socket=/run/x").server.arguments()["unix_socket"] == "/run/x"
    for wrong in ("mysql://h", "mysql://h/d", "mysql://h/d/s/t", "postgresql://h/d/t", "mysql://h/d/t#x"):
        with pytest.raises(InvalidParameter):
            MariaDBTable.of(wrong)
    with pytest.raises(InvalidParameter):
        MariaDB("mysql://h/d/t")


def test_the_driver_is_told_what_the_address_and_the_environment_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MYSQL_PWD", "secret")
    (tmp_path / ".my.cnf").write_text("[client]\nuser = ana\n")
    told = MariaDBAddress.of("mysql://db.example/clinic?ssl_ca=/etc/ca.pem").arguments()
    assert told == {
        "host": "db.example",
        "port": 3306,
        "password": "secret",
        "ssl_ca": "/etc/ca.pem",
        "ssl_verify_cert": True,
        "ssl_verify_identity": True,
        "read_default_file": str(tmp_path / ".my.cnf"),
    }


@pytest.mark.ci
def test_a_source_brings_its_engine(mariadb_tables: MariaDBTables) -> None:
    source = mariadb_tables.table({"id": "INT"}, [{"id": 1}])
    with by_source() as chosen:
        assert chosen.schema_of(f"{mariadb_tables.url}/{source}") == {"id": N}
        chosen.register("t", f"{mariadb_tables.url}/{source}", {"id": N})
        assert unsealed(chosen.read(ROWS)) == {(): (1,)}
        ((place, identity),) = chosen.origins(f"{mariadb_tables.url}/{source}").items()
        assert READER not in place + identity
        assert identity.endswith(f":{mariadb_tables.database}.{source}")
    made = engine_at(mariadb_tables.url)
    assert isinstance(made, MariaDB)
    with made:
        with pytest.raises(InvalidParameter, match="to be at"):
            made.schema_of("mysql://db.example/clinic/visits")
        with pytest.raises(InvalidParameter, match="a table of MariaDB"):
            made.schema_of(7)


def test_patterns_that_may_be_slow_are_refused() -> None:
    with MariaDB("mysql://db.example/clinic") as made:
        made.check([], [call("matches", B, col("x", T), lit(r"\A[0-9]{1,9}x", T))])
        with pytest.raises(UnsupportedQuery) as refused:
            made.check([], [call("not", B, call("matches", B, col("x", T), lit("[0-9]+x", T)))])
    assert SLOW in str(refused.value)


# ---------------------------------------------------------------------------------------------------------- connections


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read takes a minute."""
    fetch = snapshots.fetch_rows
    monkeypatch.setattr(engine, "fetch_rows", lambda s, _, *rest: fetch(s, "SELECT SLEEP(60), SLEEP(60)", *rest))


@pytest.fixture
def made(mariadb_tables: MariaDBTables) -> Iterator[MariaDB]:
    with register(mariadb_tables, mariadb_tables.table({"id": "INT"}, [{"id": 1}]), {"id": N}) as one:
        yield one


@pytest.mark.ci
def test_a_deadline_stops_a_read(mariadb_tables: MariaDBTables, monkeypatch: pytest.MonkeyPatch) -> None:
    source = mariadb_tables.table({"id": "INT"}, [{"id": 1}])
    with register(mariadb_tables, source, {"id": N}, deadline=0.1) as made:
        with monkeypatch.context() as patch:
            slow(patch)
            with pytest.raises(QueryFailed) as failure:
                unsealed(made.read(ROWS))
            assert failure.value.__cause__ is None
            assert failure.value.__context__ is None
        assert unsealed(made.read(ROWS)) == {(): (1,)}


@pytest.mark.ci
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_stops_a_read(made: MariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        slow(patch)
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            unsealed(made.read(ROWS))
    assert unsealed(made.read(ROWS)) == {(): (1,)}


@pytest.mark.ci
def test_some_rows_are_not_taken_for_all(made: MariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(threading.Event):
        def is_set(self) -> bool:
            return True

    monkeypatch.setattr(engine, "stoppable", lambda work, *_, **__: work(Stopped()))
    with pytest.raises(QueryFailed):
        unsealed(made.read(ROWS))


@pytest.mark.ci
def test_a_lost_connection_is_replaced_before_a_read_and_fails_inside_one(
    made: MariaDB, mariadb_tables: MariaDBTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut() -> None:
        query = f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{READER}'"
        mariadb_tables.run(*(f"KILL {number}" for (number,) in mariadb_tables.rows(query)))

    assert unsealed(made.read(ROWS)) == {(): (1,)}
    cut()
    assert unsealed(made.read(ROWS)) == {(): (1,)}
    fetch = snapshots.fetch_rows

    def cut_first(*given: Any) -> Any:
        cut()
        return fetch(*given)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "fetch_rows", cut_first)
        with pytest.raises(QueryFailed):
            unsealed(made.read(ROWS))
    assert unsealed(made.read(ROWS)) == {(): (1,)}


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_reads_with_a_session_of_its_own(made: MariaDB) -> None:
    assert unsealed(made.read(ROWS)) == {(): (1,)}
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if unsealed(made.read(ROWS)) == {(): (1,)} else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert unsealed(made.read(ROWS)) == {(): (1,)}


@pytest.mark.ci
def test_threads_read_side_by_side(made: MariaDB) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(unsealed(made.read(ROWS)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{(): (1,)}] * 8


@pytest.mark.ci
def test_all_reads_of_a_query_see_one_state(
    mariadb_tables: MariaDBTables, mariadb_server: MariaDBServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come after the first read of a transaction are not there for the later ones, nor do others vanish."""
    rows = [{"u": "Zoe\u0308"}, {"u": "Zoë"}, {"u": "Ana"}]
    source = mariadb_tables.give(rows, {"u": T})
    asked = Reading(table="t", statistics=(Statistic(kind="units"), Statistic(kind="rows")), bounding=bounding(1, 9))
    fetch, statements = snapshots.fetch_rows, []

    def changed_meanwhile(session: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql)
        found = fetch(session, sql, *rest)
        if len(statements) == 1:
            with mariadb_server.superuser() as other:
                execute(other, f"INSERT INTO {mariadb_tables.database}.{source} VALUES ('Jose\u0301'), ('José')")
        return found

    with register(mariadb_tables, source, {"u": T}) as made:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "fetch_rows", changed_meanwhile)
            assert unsealed(made.read(asked)) == {(): (2, 3)}
        assert len(statements) == 2
        assert unsealed(made.read(asked)) == {(): (3, 5)}


def test_all_stages_of_a_query_see_one_state(mariadb_tables: MariaDBTables) -> None:
    source = mariadb_tables.table({"id": "INT"}, [{"id": 1}])
    with register(mariadb_tables, source, {"id": N}) as made:
        with query_view():
            assert unsealed(made.read(ROWS)) == {(): (1,)}
            mariadb_tables.run(f"INSERT INTO {source} VALUES (2), (3)")
            assert unsealed(made.read(ROWS)) == {(): (1,)}
        assert unsealed(made.read(ROWS)) == {(): (3,)}
        mariadb_tables.run(f"DROP TABLE {source}")
        with pytest.raises(QueryFailed), query_view():
            unsealed(made.read(ROWS))
        mariadb_tables.run(f"CREATE TABLE {source} (id INT)")
        assert unsealed(made.read(ROWS)) == {}
        mariadb_tables.run(f"ALTER TABLE {source} ENGINE=MyISAM")  # without a snapshot
        with pytest.raises(QueryFailed):
            unsealed(made.read(ROWS))


def test_the_page_shows_the_user() -> None:
    (written,) = (block for block in blocks(DOCS / "howto" / "where_data_lives.md") if block.language == "sql")
    table = MariaDBTable.of("mysql://discreet_reader@db.example/clinic/visits")
    made = role_statements(table, ["patient_id", "ward", "age", "charge", "day"])
    assert written.body == "".join(f"{line};\n" for line in made)
    written.ran()
