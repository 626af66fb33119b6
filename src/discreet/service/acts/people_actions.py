"""What is done to people and keys: one request for each action, which HTTP and the page share; `Identities` do them.

Whoever acts has the permission of the verb before it is done (see `Acts.perform`); on whom, and on whose keys,
`Identities` decide. A secret is in one result only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from discreet.dataclass import dataclass
from discreet.presentation.documents.result_documents import DocumentForm, types_of
from discreet.requests.argument_kinds import Arg, ArgumentKind
from discreet.requests.request import Request, arguments
from discreet.requests.verb_table import Permission, Queue, Verb
from discreet.service.caller import AuthenticatedCaller, ServiceRole
from discreet.service.identity import AccessKey, Identities, Person
from discreet.service.identity.access_keys import MOST_DAYS
from discreet.service.request_executor import Document

_ROLES = tuple(role.value for role in ServiceRole)
_DAYS = Arg(ArgumentKind.COUNT, "Days until the key ends.", example="90", most=MOST_DAYS)


@dataclass(frozen=True, kw_only=True)
class PersonAction(Request[Document]):
    """An action on a person."""

    name: Annotated[str, Arg(ArgumentKind.NAME, "Who.", example="ana")]


@dataclass(frozen=True, kw_only=True)
class MakePerson(PersonAction):
    """Makes somebody known, who then may be given keys."""

    verb: ClassVar[str] = "make_person"
    role: Annotated[str, Arg(ArgumentKind.NAME, "What they are for the service.", choices=_ROLES, example="analyst")]


class DisablePerson(PersonAction):
    """Ends all that somebody has: keys, sessions, links; their name and history stay."""

    verb: ClassVar[str] = "disable_person"


class EnablePerson(PersonAction):
    """Lets somebody in again, with keys and links to be made anew."""

    verb: ClassVar[str] = "enable_person"


class MakeLink(PersonAction):
    """Makes a sign-in link for somebody, which works once."""

    verb: ClassVar[str] = "make_link"


@dataclass(frozen=True, kw_only=True)
class MakeKey(PersonAction):
    """Makes a key for somebody who is known; it is shown this once."""

    verb: ClassVar[str] = "make_key"
    tables: Annotated[tuple[str, ...] | None, Arg(ArgumentKind.NAMES, "Which tables it is for; all unless given.")] = (
        None
    )
    project: Annotated[str, Arg(ArgumentKind.NAME, "Whose cap its questions count against; none unless given.")] = ""
    expires_days: Annotated[int, _DAYS] = 90
    note: Annotated[str, Arg(ArgumentKind.NAME, "What it is for.")] = ""


@dataclass(frozen=True, kw_only=True)
class RevokeKey(Request[Document]):
    """Ends a key at once, for whoever uses it now as well."""

    verb: ClassVar[str] = "revoke_key"
    key: Annotated[str, Arg(ArgumentKind.NAME, "The public id of a key.")]


@dataclass(frozen=True, kw_only=True)
class RotateKey(RevokeKey):
    """Replaces a key by a new one of the same person and scope, which is shown this once."""

    verb: ClassVar[str] = "rotate_key"
    expires_days: Annotated[int | None, _DAYS] = None


def perform(identities: Identities, request: Request[Document], caller: AuthenticatedCaller) -> Document:
    """Has `Identities` do what is asked: the method has the name of the verb, and its arguments."""
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
"""What a service does to people and keys, beside `VERBS`: no curator knows them."""


def _moments(made: Person | AccessKey) -> Document:
    names = [name for name in ("created", "disabled", "expires", "revoked") if hasattr(made, name)]
    return {name: _moment(getattr(made, name)) for name in names}


PERSON = DocumentForm(
    kind="person",
    says_kind=False,
    about="Somebody who is known.",
    make=Person,
    parts=types_of(Person) | {"created": datetime, "disabled": datetime | None},
    writes=_moments,
).declare()
KEY = DocumentForm(
    kind="key",
    says_kind=False,
    about="What may be told about a key; never what proves it.",
    make=AccessKey,
    parts={  # spelled out: what is added to a key one day does not leave by itself
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
"""What is told of a result, by the kind of its document."""


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
