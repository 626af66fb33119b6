"""The file of identities: old versions are brought up to date, newer and foreign ones are left as they are."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter, ServiceUnavailable
from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities, RateLimits, identity_database
from discreet.service.identity.identity_database import IdentityDatabase
from discreet.service.identity.scram import Verifier, salt_for

KEY = "dk_0123456789abcdef_" + "5e" * 20
HASH = sha256(b"discreet secret\n" + KEY.encode()).hexdigest()
SALTS = bytes(range(32))
PROOF = Verifier.of(KEY, salt_for("ana", SALTS), key_id="0123456789abcdef")

VERSION_1 = f"""
PRAGMA application_id=1145656137;
PRAGMA user_version=1;
CREATE TABLE people (
  name TEXT PRIMARY KEY, folded TEXT NOT NULL UNIQUE, role TEXT NOT NULL, created REAL NOT NULL, disabled REAL
) WITHOUT ROWID;
CREATE TABLE keys (
  id TEXT PRIMARY KEY, person TEXT NOT NULL REFERENCES people, hash BLOB NOT NULL,
  stored_key BLOB NOT NULL, server_key BLOB NOT NULL,
  tables TEXT, project TEXT NOT NULL, note TEXT NOT NULL,
  created REAL NOT NULL, expires REAL NOT NULL, revoked REAL
) WITHOUT ROWID;
CREATE INDEX keys_by_person ON keys (person);
CREATE TABLE sessions (
  hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL REFERENCES people,
  created REAL NOT NULL, used REAL NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_person ON sessions (person);
CREATE TABLE links (
  hash BLOB PRIMARY KEY, person TEXT NOT NULL REFERENCES people, created REAL NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO people VALUES ('owner', 'owner', 'owner', 1.0, NULL), ('ana', 'ana', 'analyst', 2.0, NULL);
INSERT INTO secrets VALUES ('salts', X'{SALTS.hex()}');
INSERT INTO keys VALUES ('0123456789abcdef', 'ana', X'{HASH}',
  X'{PROOF.stored_key.hex()}', X'{PROOF.server_key.hex()}', '["visits"]', 'flu', 'nightly', 3.0, 9e12, NULL);
"""
"""A file as the first version wrote it; it is never made again."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "identities"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
    return path


def test_a_file_of_version_1_goes_on(old: Path) -> None:
    identities = Identities(old)
    caller = identities.authenticate_key(KEY)
    assert (caller.name, caller.role, caller.tables) == ("ana", ServiceRole.ANALYST, frozenset({"visits"}))
    assert identities.scram_verifier("ana") == [PROOF]
    assert [person.name for person in identities.people(identities.local)] == ["ana", "owner"]
    limits = RateLimits(identities, questions_per_day=5)
    limits.admit(caller, True)
    assert limits.questions_left(caller) == 4
    identities.revoke_key(caller, caller.credential)
    identities.close()
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (identity_database.VERSION,)


def test_what_is_migrated_has_the_tables_of_a_new_file(old: Path, tmp_path: Path) -> None:
    def tables(path: Path) -> dict[str, str]:
        IdentityDatabase(path).close()
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
            return {name: " ".join(sql.split()) for name, sql in rows}

    assert tables(old) == tables(tmp_path / "new")


def test_a_step_that_fails_leaves_the_file_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (*identity_database.MIGRATIONS[:1], ("CREATE TABLE half (a)", "CREATE NONSENSE"))
    monkeypatch.setattr(identity_database, "MIGRATIONS", broken)
    with pytest.raises(ServiceUnavailable):
        IdentityDatabase(old)
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)


def test_a_file_of_the_future_is_refused_and_left(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute(f"PRAGMA user_version={identity_database.VERSION + 1}")
    before = old.read_bytes()
    with pytest.raises(ServiceUnavailable, match="newer version"):
        Identities(old)
    assert old.read_bytes() == before


def test_other_files_are_refused_and_left(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("no database, but long enough to look like one " * 100)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (a)")
    for path in (text, other, tmp_path, tmp_path / "no" / "where"):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(ServiceUnavailable):
            Identities(path)
        assert before is None or path.read_bytes() == before


def insert_and_fail(database: IdentityDatabase) -> None:
    with database.acting() as connection:
        connection.execute("INSERT INTO people VALUES ('a', 'a', 'analyst', 1, NULL)")
        raise KeyError


def test_an_error_undoes_an_act(tmp_path: Path) -> None:
    database = IdentityDatabase(tmp_path / "identities")
    with pytest.raises(KeyError):
        insert_and_fail(database)
    assert database.rows("SELECT * FROM people") == []
    with pytest.raises(ServiceUnavailable, match="SQLITE_CONSTRAINT") as error, database.acting() as connection:
        connection.execute("INSERT INTO links VALUES (X'00', 'a secret', 1, 1)")
    assert "secret" not in str(error.value)


def test_acts_are_synced_and_counts_need_not_be(tmp_path: Path) -> None:
    database = IdentityDatabase(tmp_path / "identities")
    with database.acting() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    with database.counting() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 1


def test_threads_and_two_owners_of_the_file_make_one_person(tmp_path: Path) -> None:
    here, there = (Identities(tmp_path / "identities") for _ in range(2))
    made: list[str] = []

    def make(identities: Identities) -> None:
        for number in range(5):
            try:
                identities.make_person(identities.local, f"person {number}", ServiceRole.ANALYST)
                made.append(f"person {number}")
            except InvalidParameter:
                continue

    threads = [threading.Thread(target=make, args=(each,)) for each in (here, there, here, there)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [f"person {number}" for number in range(5)]
