"""Who is known: people, their keys and sessions, and the proof of each.

Formal guarantee: `authenticate_key`, `authenticate_session` and `caller_of_key` return a caller only while the key or
session has neither expired nor been revoked and its person is not disabled, as the database says at that call; anything
else gets one error, which does not say why. Actions that give rights are in the ledger before they take effect; actions
that take rights away take effect first, so that a ledger that cannot be written keeps no one in.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from discreet.errors import InvalidParameter, NotAuthenticated, NotPermitted
from discreet.ledger import OWNER
from discreet.noise.tokens import random_bytes
from discreet.service.caller import Permission, ServiceCaller, ServiceRole
from discreet.service.identity import access_keys, browser_sessions, people, scram
from discreet.service.identity.access_keys import AccessKey, KeyScope
from discreet.service.identity.browser_sessions import SessionLimits
from discreet.service.identity.identity_database import IdentityDatabase
from discreet.service.identity.look_alikes import look_alike
from discreet.service.identity.people import ActionRecorder, Person

_SALTS = "salts"
_SALT_SECRET_BYTES = 32


class Identities:
    """People, keys, sessions and sign-in links, in a database of their own.

    Args:
        path: the file, made with mode 0600 if there is none; ":memory:" for play.
        record: writes actions on people and keys into the ledger.
        limits: how long sessions and links last.
        clock: seconds since 1970.

    Raises:
        ServiceUnavailable: if the file cannot be used.

    >>> identities = Identities(":memory:")
    >>> key_id, text = identities.make_key(identities.local, "ana", ServiceRole.ANALYST, tables=["visits"])
    >>> identities.authenticate_key(text).name
    'ana'
    >>> _ = identities.revoke_key(identities.local, key_id)
    >>> identities.authenticate_key(text)
    Traceback (most recent call last):
    discreet.errors.NotAuthenticated: A valid key or session is needed. Sign in again, or ask a steward for a key.
    """

    local = people.LOCAL
    """The owner, who starts the service on the machine that holds its files."""

    def __init__(
        self,
        path: str | Path,
        *,
        record: ActionRecorder = people.record_nothing,
        limits: SessionLimits = SessionLimits(),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.database = IdentityDatabase(path)
        self.clock = clock
        self._record, self._limits = record, limits
        with self.database.acting() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO people VALUES (?,?,?,?,NULL)",
                (OWNER, people.fold_name(OWNER), ServiceRole.OWNER.value, clock()),
            )
            connection.execute("INSERT OR IGNORE INTO secrets VALUES (?,?)", (_SALTS, random_bytes(_SALT_SECRET_BYTES)))
        self._salts: bytes = self.database.rows("SELECT value FROM secrets WHERE name = ?", _SALTS)[0]["value"]

    def close(self) -> None:
        """Closes the database file."""
        self.database.close()

    # ----------------------------------------------------------------------------------------------------- proving

    def authenticate_key(self, text: object) -> ServiceCaller:
        """Returns who shows a key.

        Raises:
            NotAuthenticated: if it is malformed, unknown, expired, revoked, or its person is disabled; all alike.
        """
        return _require_caller(access_keys.find(self.database, text, self.clock()))

    def caller_of_key(self, key_id: str) -> ServiceCaller:
        """Returns who has a key that was proven before, such as at the beginning of a connection.

        Raises:
            NotAuthenticated: if it has expired since, was revoked or replaced, or its person was disabled.
        """
        return _require_caller(access_keys.find_by_id(self.database, key_id, self.clock()))

    def is_valid(self, caller: ServiceCaller) -> bool:
        """Returns whether what a caller has shown is still valid: for requests that take long."""
        now = self.clock()
        if caller.credential.startswith(browser_sessions.SESSION):
            return browser_sessions.is_alive(self.database, caller.credential, self._limits, now)
        return access_keys.find_by_id(self.database, caller.credential, now) is not None

    def scram_verifier(self, user: str) -> list[scram.Verifier]:
        """Returns what proves the keys of a name, for `scram.Exchange`; at least one, for every name."""
        salt = scram.salt_for(user, self._salts)
        found = access_keys.verifiers(self.database, user, salt, scram.ITERATIONS, self.clock())
        return found or [scram.Verifier.of_unknown_person(salt)]

    def authenticate_session(self, token: object) -> tuple[ServiceCaller, str]:
        """Returns who has a session, and the token that its forms must show.

        Raises:
            NotAuthenticated: if there is no such session, it was idle or lasted too long, or its person is disabled.
        """
        caller = browser_sessions.find_session(self.database, token, self._limits, self.clock())
        if caller is None or not isinstance(token, str):
            raise NotAuthenticated
        return caller, browser_sessions.csrf_of(token)

    def require_csrf(self, token: str, shown: object) -> None:
        """Checks that a form shows its session's token.

        Raises:
            NotPermitted: if it does not.
        """
        if not browser_sessions.same_csrf(token, shown):
            hint = "Load the page again: its token belongs to another session."
            raise NotPermitted("this page", "send this form", hint)

    # ---------------------------------------------------------------------------------------------------- sessions

    def make_link(self, by: ServiceCaller, name: str) -> str:
        """Makes a sign-in link for a person, which works once.

        Returns:
            Its token, shown once.

        Raises:
            NotPermitted: if `by` may not manage them.
            InvalidParameter: if no person has that name.
        """
        person = self._person(by, name, "make a sign-in link")
        self._record("make sign-in link", by=by.name, about=person.name)
        with self.database.acting() as connection:
            return browser_sessions.insert_link(connection, person.name, self._limits, self.clock())

    def sign_in(self, link: object, *, replaces: object = None) -> str:
        """Begins a session with a link, which is used up; the session that a browser had before ends.

        Returns:
            The token of the new session, for a cookie.

        Raises:
            NotAuthenticated: if the link is unknown, used or late.
        """
        with self.database.acting() as connection:
            person = browser_sessions.take_link(connection, link, self.clock())
            browser_sessions.end_session(connection, replaces)
            return browser_sessions.insert_session(connection, person, self._limits, self.clock())

    def sign_in_with_key(self, text: object, *, replaces: object = None) -> str:
        """Begins a session with a key: for what the key is for, and until it ends.

        Raises:
            NotAuthenticated: if the key proves no person.
        """
        caller = self.authenticate_key(text)
        with self.database.acting() as connection:
            browser_sessions.end_session(connection, replaces)
            return browser_sessions.insert_session(
                connection, caller.name, self._limits, self.clock(), key=caller.credential
            )

    def sign_in_known(self, name: str, *, replaces: object = None) -> str:
        """Begins a session of a person whom a provider of identities has proven; signing in adds no one.

        Raises:
            NotAuthenticated: if no person has that name, or they are disabled.
        """
        with self.database.acting() as connection:
            row = connection.execute("SELECT 1 FROM people WHERE name = ? AND disabled IS NULL", (name,)).fetchone()
            if row is None:
                raise NotAuthenticated
            browser_sessions.end_session(connection, replaces)
            return browser_sessions.insert_session(connection, name, self._limits, self.clock())

    def sign_out(self, token: object) -> None:
        """Ends the session of a token, if there is one."""
        with self.database.acting() as connection:
            browser_sessions.end_session(connection, token)

    # ------------------------------------------------------------------------------------------------------ people

    def people(self, by: ServiceCaller) -> list[Person]:
        """Returns all people, in the order of their names.

        Raises:
            NotPermitted: if `by` may not manage people.
        """
        by.require(Permission.MANAGE_PEOPLE)
        return [Person.of(row) for row in self.database.rows("SELECT * FROM people ORDER BY name")]

    def role_of(self, name: str) -> ServiceRole | None:
        """Returns the role of a person; None if no one has that name."""
        row = self.database.row("SELECT role FROM people WHERE name = ?", name)
        return None if row is None else ServiceRole(row["role"])

    def make_person(self, by: ServiceCaller, name: str, role: ServiceRole | str) -> Person:
        """Adds a person, who can do nothing before they have a key or a link.

        Raises:
            NotPermitted: if `by` may not make that role.
            InvalidParameter: if the name is taken, reserved or not a name.
        """
        made = Person(
            name=people.check_person_name(name, ServiceRole(role)), role=ServiceRole(role), created=self.clock()
        )
        people.require_managing(by, "", made.role, "add a person")
        _require_new(made.name, self.database.rows("SELECT name FROM people"))
        self._record("make person", by=by.name, about=made.name, role=made.role)
        with self.database.acting() as connection:
            self._insert(connection, made)
        return made

    def _insert(self, connection: sqlite3.Connection, person: Person) -> None:
        # Checked again in the transaction: another process may have added a person since.
        _require_new(person.name, connection.execute("SELECT name FROM people").fetchall())
        values = (person.name, people.fold_name(person.name), person.role.value, person.created)
        try:
            connection.execute("INSERT INTO people VALUES (?,?,?,?,NULL)", values)
        except sqlite3.IntegrityError:  # another process was faster
            raise InvalidParameter("name", person.name, "not to be taken", "Choose another name.") from None

    def disable_person(self, by: ServiceCaller, name: str) -> Person:
        """Ends the keys, sessions and links of a person; their name and history stay.

        Returns:
            The person, who is disabled.

        Raises:
            NotPermitted: if `by` may not manage them, or it is the owner.
        """
        person = self._person(by, name, "disable a person", alive=False)
        if person.role is ServiceRole.OWNER:
            raise NotPermitted(by.name, "disable the owner", "Revoke the owner's keys instead.")
        now = self.clock()
        with self.database.acting() as connection:
            connection.execute("UPDATE people SET disabled = ? WHERE name = ? AND disabled IS NULL", (now, name))
            connection.execute("UPDATE keys SET revoked = ? WHERE person = ? AND revoked IS NULL", (now, name))
            connection.execute("DELETE FROM sessions WHERE person = ?", (name,))
            connection.execute("DELETE FROM links WHERE person = ?", (name,))
        self._record("disable person", by=by.name, about=name)
        return replace(person, disabled=person.disabled or now)

    def enable_person(self, by: ServiceCaller, name: str) -> None:
        """Enables a disabled person again; their keys and links must be made anew."""
        person = self._person(by, name, "enable a person", alive=False)
        self._record("enable person", by=by.name, about=person.name)
        with self.database.acting() as connection:
            connection.execute("UPDATE people SET disabled = NULL WHERE name = ?", (person.name,))

    def end_sessions(self, by: ServiceCaller, name: str) -> None:
        """Ends all sessions and links of a person, who may be `by`."""
        if by.name != name:
            self._person(by, name, "end sessions", alive=False)
        with self.database.acting() as connection:
            connection.execute("DELETE FROM sessions WHERE person = ?", (name,))
            connection.execute("DELETE FROM links WHERE person = ?", (name,))
        self._record("end sessions", by=by.name, about=name)

    def _person(self, by: ServiceCaller, name: str, act: str, *, alive: bool = True) -> Person:
        """Returns a person whom `by` manages."""
        by.require(Permission.MANAGE_PEOPLE)
        row = self.database.row("SELECT * FROM people WHERE name = ?", name)
        if row is None:
            raise InvalidParameter("name", name, "to be known", "Add the person first.")
        person = Person.of(row)
        people.require_managing(by, person.name, person.role, act)
        if alive and person.disabled is not None:
            raise InvalidParameter("name", name, "not to be disabled", "Enable them first.")
        return person

    # -------------------------------------------------------------------------------------------------------- keys

    def keys(self, by: ServiceCaller) -> list[AccessKey]:
        """Returns all keys, in use or not, oldest first; for callers who may not manage people, their own."""
        return access_keys.every(self.database, None if by.may(Permission.MANAGE_PEOPLE) else by.name)

    def make_key(
        self,
        by: ServiceCaller,
        name: str,
        role: ServiceRole | None = None,
        *,
        tables: Iterable[str] | None = None,
        project: str = "",
        expires_days: int = 90,
        note: str = "",
    ) -> tuple[str, str]:
        """Makes a key for a person, who is added if they are not known and a role is given.

        Args:
            by: the caller who makes it.
            name: whose key it will be.
            role: theirs; None if they are known.
            tables: which tables it is for; None for all.
            project: that its questions count against; "" for none.
            expires_days: until it ends.
            note: what it is for, on one line.

        Returns:
            Its public id, and the key as it is shown, once.

        Raises:
            NotPermitted: if `by` may not manage them.
            InvalidParameter: if the name, the role or something else does not fit.
        """
        now = self.clock()
        scope, expires = KeyScope.of(tables, project, note), access_keys.expiry(expires_days, now)
        by.require(Permission.MANAGE_PEOPLE)
        people.require_whole(by, "make keys")
        if role is not None and self.database.row("SELECT 1 FROM people WHERE name = ?", name) is None:
            self.make_person(by, name, role)
        person = self._person(by, name, "make keys")
        if role is not None and role is not person.role:
            raise InvalidParameter("role", role.value, f"to be {person.role.value!r}, their role", "Leave it out.")
        text = access_keys.new_text(access_keys.new_id())
        self._record("make key", by=by.name, about=name, key=access_keys.id_of(text))
        salt = scram.salt_for(name, self._salts)
        with self.database.acting() as connection:
            access_keys.insert(connection, text, salt, person=name, scope=scope, now=now, expires=expires)
        return access_keys.id_of(text), text

    def revoke_key(self, by: ServiceCaller, key: str) -> AccessKey:
        """Ends a key at once, also where it is in use now.

        Args:
            by: a caller who manages the person, or the person.
            key: its public id.

        Returns:
            The public facts about it.

        Raises:
            NotPermitted: if `by` may not, or there is no such key.
        """
        found, now = self._key(by, key, "revoke this key"), self.clock()
        with self.database.acting() as connection:
            access_keys.revoke(connection, found.id, now)
        self._record("revoke key", by=by.name, about=found.person, key=found.id)
        return replace(found, revoked=found.revoked or now)

    def rotate_key(self, by: ServiceCaller, key: str, *, expires_days: int | None = None) -> tuple[str, str]:
        """Replaces a key by one of the same person and scope, and ends it at once; caps and history are the person's.

        Args:
            by: a caller who manages the person, or the person.
            key: the public id of one in use.
            expires_days: until the new one ends, for those who manage keys; None for when the old one would have.

        Returns:
            The new public id, and the new key as it is shown, once.

        Raises:
            NotPermitted: if `by` may not, or there is no such key.
            InvalidParameter: if the key has ended.
        """
        found, now = self._key(by, key, "rotate this key"), self.clock()
        if access_keys.find_by_id(self.database, found.id, now) is None:
            raise InvalidParameter("key", found.id, "to be in use", "Make a new key.")
        if expires_days is not None:
            by.require(Permission.MANAGE_PEOPLE)
        expires = found.expires if expires_days is None else access_keys.expiry(expires_days, now)
        text = access_keys.new_text(access_keys.next_id(found.id))
        self._record("rotate key", by=by.name, about=found.person, key=found.id)
        scope = KeyScope(tables=found.tables, project=found.project, note=found.note)
        salt = scram.salt_for(found.person, self._salts)
        with self.database.acting() as connection:
            access_keys.revoke(connection, found.id, now)
            access_keys.insert(connection, text, salt, person=found.person, scope=scope, now=now, expires=expires)
        return access_keys.id_of(text), text

    def _key(self, by: ServiceCaller, key_id: str, act: str) -> AccessKey:
        """Returns a key that `by` may act on; the error for all others is the same, whether they exist or not."""
        key = access_keys.find_any_by_id(self.database, key_id)
        own = key is not None and by.name == key.person
        if key is None or not (own or (by.may(Permission.MANAGE_PEOPLE) and people.manages(by, key.person, key.role))):
            raise NotPermitted(by.name, act, "Look for its id among your keys.")
        if by.credential != key.id:
            people.require_whole(by, act)
        return key


def _require_new(name: str, known: Iterable[sqlite3.Row]) -> None:
    """Refuses a name that a reader could take for another person's."""
    if any(look_alike(name, row["name"]) for row in known):
        hint = "A person has that name, or one that looks like it. Choose another name."
        raise InvalidParameter("name", name, "not to be taken", hint)


def _require_caller(key: AccessKey | None) -> ServiceCaller:
    if key is None:
        raise NotAuthenticated
    return key.caller
