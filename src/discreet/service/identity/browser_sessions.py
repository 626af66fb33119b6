"""Sessions of browsers, kept on the server, and sign-in links that work once.

A browser has a random token in a cookie; the database has its hash. The token of a session is made at sign-in and never
taken from the browser, so that nobody can be given one beforehand. The CSRF token of a session follows from its token:
whoever can send the cookie without reading it cannot compute it, and the database does not hold it. A session that was
begun with a key is for what the key is for, and ends with it: its public id names the key.
"""

from __future__ import annotations

import hmac
import sqlite3
from dataclasses import dataclass

from discreet.errors import NotAuthenticated
from discreet.noise.tokens import token
from discreet.service.caller import Caller, ServiceRole
from discreet.service.identity.access_keys import find_by_id, hashed
from discreet.service.identity.identity_database import IdentityDatabase

SESSION = "session:"
"""How the credential of a session begins; limits count the person then, who may sign in as often as they like."""

_KEY_MARK = "@"  # between a session's own id and that of its key
_STEP = 60.0  # seconds between two notes that a session is in use
_FOUND = "SELECT s.*, p.role, p.disabled FROM sessions s JOIN people p ON p.name = s.person WHERE s.hash = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How long sessions and links last, in seconds.

    Attributes:
        idle: a session that is not used.
        absolute: any session.
        link: a sign-in link.
        most: sessions of one person; the oldest ends.
    """

    idle: float = 2 * 3600.0
    absolute: float = 12 * 3600.0
    link: float = 15 * 60.0
    most: int = 20


def csrf_of(session: str) -> str:
    """Returns the token that a form of a session must show."""
    return hmac.digest(session.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()


def same_csrf(session: str, shown: object) -> bool:
    """Tells whether a form shows its session's token; takes the same time for every text of that length."""
    text = shown if isinstance(shown, str) else ""
    return hmac.compare_digest(csrf_of(session).encode(), text.encode("utf-8", "surrogatepass"))


def insert_link(connection: sqlite3.Connection, person: str, limits: SessionLimits, now: float) -> str:
    """Makes a sign-in link of a person.

    Returns:
        Its token, shown once.
    """
    text = token()
    connection.execute("DELETE FROM links WHERE expires <= ?", (now,))
    connection.execute("INSERT INTO links VALUES (?,?,?,?)", (hashed(text), person, now, now + limits.link))
    return text


def take_link(connection: sqlite3.Connection, text: object, now: float) -> str:
    """Uses a link up.

    Returns:
        Whose it was.

    Raises:
        NotAuthenticated: if there is none, it was used, or it is late; all alike.
    """
    mark = hashed(text if isinstance(text, str) else "")
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
    values = (hashed(text), public, person, now, now, now + limits.absolute)
    connection.execute("INSERT INTO sessions VALUES (?,?,?,?,?,?)", values)
    return text


def end_session(connection: sqlite3.Connection, text: object) -> None:
    """Ends a session, if there is one."""
    connection.execute("DELETE FROM sessions WHERE hash = ?", (hashed(text if isinstance(text, str) else ""),))


def find_session(database: IdentityDatabase, text: object, limits: SessionLimits, now: float) -> Caller | None:
    """Returns who a session's token stands for, if it may be used now, and notes the use."""
    mark = hashed(text if isinstance(text, str) else "")
    row = database.row(_FOUND, mark)
    if row is None or row["disabled"] is not None or now >= row["expires"] or now >= row["used"] + limits.idle:
        return None
    if now - row["used"] >= _STEP:
        with database.counting() as connection:
            connection.execute("UPDATE sessions SET used = ? WHERE hash = ?", (now, mark))
    return _caller(database, row, now)


def _caller(database: IdentityDatabase, row: sqlite3.Row, now: float) -> Caller | None:
    """Who has a session: within the scope of the key that began it, and no longer than that may be used."""
    _, began, key_id = row["id"].partition(_KEY_MARK)
    key = find_by_id(database, key_id, now) if began else None
    if began and (key is None or key.person != row["person"]):
        return None
    return Caller(
        name=row["person"],
        role=ServiceRole(row["role"]),
        credential=f"{SESSION}{row['id']}",
        tables=None if key is None else key.tables,
        project="" if key is None else key.project,
    )
