"""API keys: random, shown once, kept as a hash, scoped, expiring, revocable; each is its person's password as well.

A key is written ``dk_<id>_<secret>``. The id is public: logs and limits name it. After a rotation the id has a number
behind it (``3f9a2b1c``, ``3f9a2b1c-2``): limits count the first part, so that rotating a key gives no new day.
"""

from __future__ import annotations

import hmac
import json
import re
import sqlite3
from collections.abc import Iterable
from hashlib import sha256

from discreet import check
from discreet.dataclass import dataclass
from discreet.ledger.serialization import name as checked_name
from discreet.noise.tokens import token
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity.identity_database import IdentityDatabase
from discreet.service.identity.scram import Verifier

SECRET_BYTES = 20  # 160 bits
MOST_DAYS = 3660
DAY = 86400.0
_ID_DIGITS = 16
_KEY = re.compile(r"dk_([0-9a-f]{16}(?:-[1-9][0-9]{0,5})?)_([0-9a-f]{40})")
_NOTHING = bytes(32)  # the hash of no key
_FOUND = "SELECT k.*, p.role, p.disabled FROM keys k JOIN people p ON p.name = k.person"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """The public facts about a key; never its secret.

    Attributes:
        id: public.
        person: whose it is.
        tables: what it is for; None for all tables.
        project: that it is bound to, or "".
        created, expires, revoked: seconds since 1970; None if it is not revoked.
    """

    id: str
    person: str
    role: ServiceRole
    tables: frozenset[str] | None
    project: str
    note: str
    created: float
    expires: float
    revoked: float | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> AccessKey:
        """Returns the key that a row of the database holds."""
        tables = None if row["tables"] is None else frozenset(json.loads(row["tables"]))
        plain = {name: row[name] for name in ("id", "person", "project", "note", "created", "expires", "revoked")}
        return cls(**plain, role=ServiceRole(row["role"]), tables=tables)

    def live(self, now: float) -> bool:
        """Returns whether the key may be used."""
        return self.revoked is None and now < self.expires

    @property
    def caller(self) -> ServiceCaller:
        """Returns the caller who has this key."""
        return ServiceCaller(
            name=self.person, role=self.role, credential=self.id, tables=self.tables, project=self.project
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyScope:
    """What a key is for, checked."""

    tables: frozenset[str] | None
    project: str
    note: str

    @classmethod
    def of(cls, tables: Iterable[str] | None, project: str, note: str) -> KeyScope:
        """Returns a checked scope.

        Raises:
            InvalidParameter: if a table or a project has no possible name, or the note is long.
        """
        named = None if tables is None else frozenset(checked_name(table=table) for table in tables)
        return cls(
            tables=named,
            project=checked_name(project=project) if project else "",
            note=checked_name(note=note) if note else "",
        )


def expiry(days: int, now: float) -> float:
    """Returns when a key of so many days ends.

    Raises:
        InvalidParameter: if it would end at once, or hardly ever.
    """
    return now + check.integer(expires_days=days, at_least=1, at_most=MOST_DAYS) * DAY


def lineage(credential: str) -> str:
    """Returns what a key and those that replaced it share.

    >>> lineage("3f9a2b1c-2")
    '3f9a2b1c'
    """
    return credential.partition("-")[0]


def next_id(key_id: str) -> str:
    """Returns the id of the key that replaces another.

    >>> next_id("3f9a2b1c"), next_id("3f9a2b1c-2")
    ('3f9a2b1c-2', '3f9a2b1c-3')
    """
    first, _, number = key_id.partition("-")
    return f"{first}-{int(number or 1) + 1}"


def new_id() -> str:
    """Returns a new public id."""
    return token(16)[:_ID_DIGITS]


def new_text(key_id: str) -> str:
    """Returns a new key, with its secret."""
    return f"dk_{key_id}_{token(SECRET_BYTES)}"


def id_of(text: str) -> str:
    """Returns the public id of a key.

    >>> id_of("dk_3f9a2b1c_5ec7e7")
    '3f9a2b1c'
    """
    return text.split("_")[1]


def hash_secret(text: str) -> bytes:
    """Returns what is kept of a key, a token or a link."""
    return sha256(b"discreet secret\n" + text.encode("utf-8", "surrogatepass")).digest()


def find(database: IdentityDatabase, text: object, now: float) -> AccessKey | None:
    """Returns the key that a text is, if it may be used now; the same work is done for every text."""
    shown = text if isinstance(text, str) else ""
    match = _KEY.fullmatch(shown)
    row = database.row(f"{_FOUND} WHERE k.id = ?", match[1] if match else "")
    same = hmac.compare_digest(hash_secret(shown), row["hash"] if row is not None else _NOTHING)
    return _usable(row, now) if row is not None and same else None


def find_by_id(database: IdentityDatabase, key_id: str, now: float) -> AccessKey | None:
    """Returns a key that was proven before, if it may still be used."""
    return _usable(database.row(f"{_FOUND} WHERE k.id = ?", key_id), now)


def _usable(row: sqlite3.Row | None, now: float) -> AccessKey | None:
    if row is None or row["disabled"] is not None:
        return None
    found = AccessKey.of(row)
    return found if found.live(now) else None


def find_any_by_id(database: IdentityDatabase, key_id: str) -> AccessKey | None:
    """Returns a key, in use or not."""
    row = database.row(f"{_FOUND} WHERE k.id = ?", key_id)
    return None if row is None else AccessKey.of(row)


def every(database: IdentityDatabase, person: str | None = None) -> list[AccessKey]:
    """Returns all keys, or those of a person, oldest first."""
    chosen, values = ("", ()) if person is None else (" WHERE k.person = ?", (person,))
    return [AccessKey.of(row) for row in database.rows(f"{_FOUND}{chosen} ORDER BY k.created, k.id", *values)]


def verifiers(database: IdentityDatabase, person: str, salt: bytes, iterations: int, now: float) -> list[Verifier]:
    """Returns what proves each key of a person that may be used now."""
    rows = database.rows(f"{_FOUND} WHERE k.person = ? ORDER BY k.created, k.id", person)
    return [
        Verifier(
            salt=salt,
            iterations=iterations,
            stored_key=row["stored_key"],
            server_key=row["server_key"],
            key_id=row["id"],
        )
        for row in rows
        if _usable(row, now) is not None
    ]


def insert(
    connection: sqlite3.Connection, text: str, salt: bytes, *, person: str, scope: KeyScope, now: float, expires: float
) -> None:
    """Keeps a new key, without its secret."""
    key_id = id_of(text)
    proof = Verifier.of(text, salt, key_id=key_id)
    tables = None if scope.tables is None else json.dumps(sorted(scope.tables))
    connection.execute(
        "INSERT INTO keys (id, person, hash, stored_key, server_key, tables, project, note, created, expires) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        (
            key_id,
            person,
            hash_secret(text),
            proof.stored_key,
            proof.server_key,
            tables,
            scope.project,
            scope.note,
            now,
            expires,
        ),
    )


def revoke(connection: sqlite3.Connection, key_id: str, now: float) -> None:
    """Ends a key for good; one that has ended stays as it is."""
    connection.execute("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, key_id))
