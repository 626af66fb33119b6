"""What is done to people and keys: one request and one handler for each action, which HTTP and the page share.

Whoever acts has the permission of the verb before its handler runs (see `Acts.perform`); on whom, and on whose keys,
`Identities` decide. A secret is in one result only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, ClassVar

from discreet.requests.argument_kinds import Arg, Kind
from discreet.requests.request import Request
from discreet.requests.verb_table import Permission, Queue, Verb
from discreet.service.caller import Caller, ServiceRole
from discreet.service.desk import Document
from discreet.service.identity import AccessKey, Identities, Person
from discreet.service.identity.access_keys import MOST_DAYS

_ROLES = tuple(role.value for role in ServiceRole)
Days = Arg(Kind.COUNT, "Days until the key ends.", example="90", most=MOST_DAYS)


@dataclass(frozen=True, kw_only=True)
class OfPerson(Request[Document]):
    """An action on a person."""

    name: Annotated[str, Arg(Kind.NAME, "Who.", example="ana")]


@dataclass(frozen=True, kw_only=True)
class OfKey(Request[Document]):
    """An action on a key."""

    key: Annotated[str, Arg(Kind.NAME, "The public id of a key.")]


@dataclass(frozen=True, kw_only=True)
class MakePerson(OfPerson):
    """Makes somebody known, who then may be given keys."""

    verb: ClassVar[str] = "make_person"
    role: Annotated[str, Arg(Kind.NAME, "What they are for the service.", choices=_ROLES, example="analyst")]


def _make_person(identities: Identities, request: MakePerson, caller: Caller) -> Document:
    return person_document(identities.make_person(caller, request.name, ServiceRole(request.role)))


class DisablePerson(OfPerson):
    """Ends all that somebody has: keys, sessions, links; their name and history stay."""

    verb: ClassVar[str] = "disable_person"


def _disable_person(identities: Identities, request: DisablePerson, caller: Caller) -> Document:
    identities.disable_person(caller, request.name)
    return next(person_document(each) for each in identities.people(caller) if each.name == request.name)


class EnablePerson(OfPerson):
    """Lets somebody in again, with keys and links to be made anew."""

    verb: ClassVar[str] = "enable_person"


def _enable_person(identities: Identities, request: EnablePerson, caller: Caller) -> Document:
    identities.enable_person(caller, request.name)
    return {}


class MakeLink(OfPerson):
    """Makes a sign-in link for somebody, which works once."""

    verb: ClassVar[str] = "make_link"


def _make_link(identities: Identities, request: MakeLink, caller: Caller) -> Document:
    return {"token": identities.make_link(caller, request.name)}


@dataclass(frozen=True, kw_only=True)
class MakeKey(OfPerson):
    """Makes a key for somebody who is known; it is shown this once."""

    verb: ClassVar[str] = "make_key"
    tables: Annotated[tuple[str, ...] | None, Arg(Kind.NAMES, "Which tables it is for; all unless given.")] = None
    project: Annotated[str, Arg(Kind.NAME, "Whose cap its questions count against; none unless given.")] = ""
    expires_days: Annotated[int, Days] = 90
    note: Annotated[str, Arg(Kind.NAME, "What it is for.")] = ""


def _make_key(identities: Identities, request: MakeKey, caller: Caller) -> Document:
    tables, project, days, note = request.tables, request.project, request.expires_days, request.note
    made = identities.make_key(caller, request.name, tables=tables, project=project, expires_days=days, note=note)
    return dict(zip(("id", "key"), made, strict=True))


class RevokeKey(OfKey):
    """Ends a key at once, for whoever uses it now as well."""

    verb: ClassVar[str] = "revoke_key"


def _revoke_key(identities: Identities, request: RevokeKey, caller: Caller) -> Document:
    identities.revoke_key(caller, request.key)
    return {"keys": [key_document(each) for each in identities.keys(caller) if each.id == request.key]}


@dataclass(frozen=True, kw_only=True)
class RotateKey(OfKey):
    """Replaces a key by a new one of the same person and scope, which is shown this once."""

    verb: ClassVar[str] = "rotate_key"
    expires_days: Annotated[int | None, Days] = None


def _rotate_key(identities: Identities, request: RotateKey, caller: Caller) -> Document:
    made = identities.rotate_key(caller, request.key, expires_days=request.expires_days)
    return dict(zip(("id", "key"), made, strict=True))


def _verb(request: type[Request[Document]], document: str, http: str, permission: Permission) -> Verb:
    faces = frozenset({"page", "http"} if http else {"page"})
    return Verb(request, f"{__name__}:_{request.verb}", document, permission, Queue.LEDGER, faces=faces, http=http)


PEOPLE_VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        verb.name: verb
        for verb in (
            _verb(MakePerson, "person", "POST /people", Permission.MANAGE_PEOPLE),
            _verb(DisablePerson, "person", "DELETE /people/{name}", Permission.MANAGE_PEOPLE),
            _verb(EnablePerson, "nothing", "", Permission.MANAGE_PEOPLE),
            _verb(MakeLink, "link", "", Permission.MANAGE_PEOPLE),
            _verb(MakeKey, "new key", "POST /keys", Permission.MANAGE_PEOPLE),
            _verb(RevokeKey, "keys", "DELETE /keys/{key}", Permission.MANAGE_PEOPLE),
            _verb(RotateKey, "new key", "POST /keys/{key}/rotate", Permission.SEE_OWN),  # of one's own
        )
    }
)
"""What a service does to people and keys, beside `VERBS`: no curator knows them."""


def person_document(person: Person) -> Document:
    """Returns what is told about a person."""
    created, disabled = _moment(person.created), _moment(person.disabled)
    return {"name": person.name, "role": person.role.value, "created": created, "disabled": disabled}


def key_document(key: AccessKey) -> Document:
    """Returns what may be told about a key; never what proves it."""
    plain = {"id": key.id, "person": key.person, "role": key.role.value, "project": key.project, "note": key.note}
    tables = None if key.tables is None else sorted(key.tables)
    moments = {name: _moment(getattr(key, name)) for name in ("created", "expires", "revoked")}
    return {**plain, "tables": tables, **moments}


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
