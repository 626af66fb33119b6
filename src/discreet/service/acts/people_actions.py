"""What is done to people and keys: one request for each action, which HTTP and the page share; `Identities` do them.

The permission of the verb is checked before it is done (see `StewardActions.perform`); on whom a caller may act, and
on whose keys, `Identities` decide. A secret is in one result only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from discreet.dataclass import dataclass
from discreet.presentation.documents.result_documents import DocumentForm, types_of
from discreet.requests.request import Arg, ArgumentKind, Request, arguments
from discreet.requests.verb_table import Permission, Queue, Verb
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import AccessKey, Identities, Person
from discreet.service.identity.access_keys import MOST_DAYS
from discreet.service.request_executor import Document

_ROLES = tuple(role.value for role in ServiceRole)
_DAYS = Arg(ArgumentKind.COUNT, "Days until the key expires.", example="90", most=MOST_DAYS)


@dataclass(frozen=True, kw_only=True)
class PersonAction(Request[Document]):
    """An action on a person."""

    name: Annotated[str, Arg(ArgumentKind.NAME, "The name of the person.", example="ana")]


@dataclass(frozen=True, kw_only=True)
class MakePerson(PersonAction):
    """Adds a person, who can then be given keys."""

    verb: ClassVar[str] = "make_person"
    role: Annotated[str, Arg(ArgumentKind.NAME, "Their role in the service.", choices=_ROLES, example="analyst")]


class DisablePerson(PersonAction):
    """Ends the keys, sessions and links of a person; their name and history stay."""

    verb: ClassVar[str] = "disable_person"


class EnablePerson(PersonAction):
    """Enables a disabled person again; their keys and links must be made anew."""

    verb: ClassVar[str] = "enable_person"


class MakeLink(PersonAction):
    """Makes a sign-in link for a person, which works once."""

    verb: ClassVar[str] = "make_link"


@dataclass(frozen=True, kw_only=True)
class MakeKey(PersonAction):
    """Makes a key for a person; it is shown only once."""

    verb: ClassVar[str] = "make_key"
    tables: Annotated[
        tuple[str, ...] | None, Arg(ArgumentKind.NAMES, "The tables that the key is for. Default: all tables.")
    ] = None
    project: Annotated[str, Arg(ArgumentKind.NAME, "The project whose cap its queries count against. Optional.")] = ""
    expires_days: Annotated[int, _DAYS] = 90
    note: Annotated[str, Arg(ArgumentKind.NAME, "What the key is for. Optional.")] = ""


@dataclass(frozen=True, kw_only=True)
class RevokeKey(Request[Document]):
    """Ends a key at once, also where it is in use now."""

    verb: ClassVar[str] = "revoke_key"
    key: Annotated[str, Arg(ArgumentKind.NAME, "The public id of a key.")]


@dataclass(frozen=True, kw_only=True)
class RotateKey(RevokeKey):
    """Replaces a key by a new one of the same person and scope, which is shown only once."""

    verb: ClassVar[str] = "rotate_key"
    expires_days: Annotated[int | None, _DAYS] = None


def perform(identities: Identities, request: Request[Document], caller: ServiceCaller) -> Document:
    """Calls the method of `Identities` that has the name and the arguments of the verb, and returns its document."""
    given = {each.name: getattr(request, each.name) for each in arguments(type(request))}
    done = getattr(identities, request.verb)(caller, **given)
    return _WRITTEN[PEOPLE_VERBS[request.verb].document](done)


def _verb(request: type[Request[Document]], document: str, http: str, permission: Permission) -> Verb:
    faces = frozenset({"page", "http"} if http else {"page"})
    place = f"{__name__}:{request.__name__}"
    return Verb(request.verb, place, document, permission, Queue.LEDGER, "perform", faces=faces, http=http)


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
"""What a service does to people and keys, in addition to `VERBS`: no curator knows them."""


def _moments(made: Person | AccessKey) -> Document:
    names = [name for name in ("created", "disabled", "expires", "revoked") if hasattr(made, name)]
    return {name: _moment(getattr(made, name)) for name in names}


PERSON = DocumentForm(
    kind="person",
    says_kind=False,
    about="A person who is known to the service.",
    make=Person,
    parts=types_of(Person) | {"created": datetime, "disabled": datetime | None},
    writes=_moments,
).declare()
KEY = DocumentForm(
    kind="key",
    says_kind=False,
    about="The public facts about a key; never its secret.",
    make=AccessKey,
    parts={  # spelled out: a field that is added to a key one day does not leave unless it is listed
        "id": str,
        "person": str,
        "role": ServiceRole,
        "tables": frozenset[str] | None,
        "project": str,
        "note": str,
        "created": datetime,
        "expires": datetime,
        "revoked": datetime | None,
    },
    writes=_moments,
).declare()
_WRITTEN: Mapping[str, Callable[[Any], Document]] = {
    "person": PERSON.write,
    "keys": lambda key: {"keys": [KEY.write(key)]},
    "new key": lambda made: {"id": made[0], "key": made[1]},
    "link": lambda token: {"token": token},
    "nothing": lambda _: {},
}
"""How a result is written, by the kind of its document."""


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
