"""Sessions of browsers, kept on the server, and sign-in links that work once.

A browser has a random token in a cookie; the database has its hash. The token of a session is made at sign-in and never
taken from the browser, so that an attacker cannot plant one beforehand. The CSRF token of a session follows from its
token: another site, which can send the cookie without reading it, cannot compute it, and the database does not hold it.
A session that was begun with a key is for what the key is for, and ends with it: its public id names the key.
"""

from __future__ import annotations

import hmac
import sqlite3
from dataclasses import replace

from discreet.dataclass import dataclass
from discreet.errors import NotAuthenticated
from discreet.noise.tokens import token
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity.access_keys import find_by_id, hash_secret
from discreet.service.identity.identity_database import IdentityDatabase

SESSION = "session:"
"""How the credential of a session begins; limits count the person then, who may sign in as often as they like."""

_KEY_MARK = "@"  # between a session's own id and that of its key
_STEP = 60.0  # seconds between two notes that a session is in use
_SESSIONS = "SELECT s.*, p.role, p.disabled FROM sessions s JOIN people p ON p.name = s.person"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How long sessions and links last, in seconds.

    Attributes:
        idle: how long a session lasts that is not used.
        absolute: how long any session lasts.
        link: how long a sign-in link works.
        most: how many sessions one person has; the oldest ends.
    """

    idle: float = 2 * 3600.0
    absolute: float = 12 * 3600.0
    link: float = 15 * 60.0
    most: int = 20


def key_of_session(credential: str) -> str:
    """Returns the public id of the key that a session was begun with; "" if there was none.

    >>> key_of_session("session:5e55@3f9a2b1c"), key_of_session("session:5e55")
    ('3f9a2b1c', '')
    """
    return credential.partition(_KEY_MARK)[2]


def csrf_of(session: str) -> str:
    """Returns the token that a form of a session must show."""
    return hmac.digest(session.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()


def same_csrf(session: str, shown: object) -> bool:
    """Returns whether a form shows its session's token; takes the same time for every text of that length."""
    text = shown if isinstance(shown, str) else ""
    return hmac.compare_digest(csrf_of(session).encode(), text.encode("utf-8", "surrogatepass"))


def insert_link(connection: sqlite3.Connection, person: str, limits: SessionLimits, now: float) -> str:
    """Makes a sign-in link of a person.

    Returns:
        Its token, shown once.
    """
    text = token()
    connection.execute("DELETE FROM links WHERE expires <= ?", (now,))
    connection.execute("INSERT INTO links VALUES (?,?,?,?)", (hash_secret(text), person, now, now + limits.link))
    return text


def take_link(connection: sqlite3.Connection, text: object, now: float) -> str:
    """Uses a link up.

    Returns:
        The name of the person it was for.

    Raises:
        NotAuthenticated: if there is none, it was used, or it is late; all alike.
    """
    mark = hash_secret(text if isinstance(text, str) else "")
    row = connection.execute(
        "SELECT l.person FROM links l JOIN people p ON p.name = l.person "
        "WHERE l.hash = ? AND l.expires > ? AND p.disabled IS NULL",
        (mark, now),
    ).fetchone()
    connection.execute("DELETE FROM links WHERE hash = ?", (mark,))
    if row is None:
        raise NotAuthenticated
    return str(row["person"])


def insert_session(
    connection: sqlite3.Connection, person: str, limits: SessionLimits, now: float, *, key: str = ""
) -> str:
    """Begins a session, perhaps one that a key has proven and that ends with it.

    Returns:
        Its token, for the cookie.
    """
    text, public = token(), token(16) + (f"{_KEY_MARK}{key}" if key else "")
    connection.execute("DELETE FROM sessions WHERE expires <= ? OR used <= ?", (now, now - limits.idle))
    connection.execute(
        "DELETE FROM sessions WHERE person = ? AND hash NOT IN "
        "(SELECT hash FROM sessions WHERE person = ? ORDER BY created DESC, id LIMIT ?)",
        (person, person, limits.most - 1),
    )
    values = (hash_secret(text), public, person, now, now, now + limits.absolute)
    connection.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?)", values)
    return text


def end_session(connection: sqlite3.Connection, text: object) -> None:
    """Ends a session, if there is one."""
    connection.execute("DELETE FROM sessions WHERE hash = ?", (hash_secret(text if isinstance(text, str) else ""),))


def find_session(database: IdentityDatabase, text: object, limits: SessionLimits, now: float) -> ServiceCaller | None:
    """Returns whose session a token is, if it may be used now, and notes the use."""
    mark = hash_secret(text if isinstance(text, str) else "")
    row = database.row(f"{_SESSIONS} WHERE s.hash = ?", mark)
    if row is None or not _lasts(row, limits, now):
        return None
    if now - row["used"] >= _STEP:
        with database.counting() as connection:
            connection.execute("UPDATE sessions SET used = ? WHERE hash = ?", (now, mark))
    return _caller(database, row, now)


def is_alive(database: IdentityDatabase, credential: str, limits: SessionLimits, now: float) -> bool:
    """Returns whether the session of a credential may still be used; that is no use of it."""
    row = database.row(f"{_SESSIONS} WHERE s.id = ?", credential.removeprefix(SESSION))
    return row is not None and _lasts(row, limits, now) and _caller(database, row, now) is not None


def _lasts(row: sqlite3.Row, limits: SessionLimits, now: float) -> bool:
    return bool(row["disabled"] is None and now < row["expires"] and now < row["used"] + limits.idle)


def _caller(database: IdentityDatabase, row: sqlite3.Row, now: float) -> ServiceCaller | None:
    """Returns whose session a row is: within the scope of the key that began it, and only while that may be used."""
    key_id = key_of_session(row["id"])
    key = find_by_id(database, key_id, now) if key_id else None
    if key_id and (key is None or key.person != row["person"]):
        return None
    caller = ServiceCaller(name=row["person"], role=ServiceRole(row["role"]), credential=f"{SESSION}{row['id']}")
    return caller if key is None else replace(caller, tables=key.tables, project=key.project)
