"""People and keys: made, rotated, revoked and disabled. A secret is in one response only, and no cache keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from discreet.errors import InvalidParameter
from discreet.service.caller import Permission, ServiceRole
from discreet.service.identity import Person
from discreet.service.page.request_forms import read_count
from discreet.service.page.visit import PageRoute, Visit, to

_MADE = {
    ServiceRole.OWNER: ("analyst", "auditor", "steward"),
    ServiceRole.STEWARD: ("analyst", "auditor"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Something that is shown once."""

    title: str
    text: str
    hint: str


def people(visit: Visit) -> Response:
    """Shows everybody and all keys."""
    return _shown(visit)


def _shown(visit: Visit, secret: Secret | None = None) -> Response:
    identities = visit.site.identities
    everybody, managed = identities.people(visit.caller), _MADE.get(visit.caller.role, ())
    return visit.page(
        "people.html",
        people=everybody,
        keys=identities.keys(visit.caller),
        names=[(each.name, each.name) for each in everybody if _managed(visit, each)],
        roles=[(role, role) for role in managed],
        managed=managed,
        now=identities.clock(),
        secret=secret,
    )


def _managed(visit: Visit, person: Person) -> bool:
    """Whether whoever looks can make keys for somebody; `identity` decides, this leaves out what it refuses."""
    own = person.name == visit.caller.name
    return person.disabled is None and (own or person.role.value in _MADE.get(visit.caller.role, ()))


def make_person(visit: Visit) -> Response:
    """Makes somebody known."""
    visit.site.identities.make_person(visit.caller, visit.text("name"), _role(visit))
    return to("/people")


def _role(visit: Visit) -> ServiceRole:
    try:
        return ServiceRole(visit.text("role"))
    except ValueError:
        raise InvalidParameter("role", visit.text("role"), "to be a role", "Choose one of the list.") from None


def make_link(visit: Visit) -> Response:
    """Makes a sign-in link, and shows it once."""
    name = visit.text("name")
    token = visit.site.identities.make_link(visit.caller, name)
    scheme = "https" if visit.site.settings.secure else "http"
    text = f"{scheme}://{visit.request.headers['host']}/sign-in?token={token}"
    return _shown(
        visit, Secret(title=f"A sign-in link for {name}.", text=text, hint="It works once, for some minutes.")
    )


def disable(visit: Visit) -> Response:
    """Ends all keys and sessions of somebody."""
    visit.site.identities.disable_person(visit.caller, visit.text("name"))
    return to("/people")


def enable(visit: Visit) -> Response:
    """Lets somebody in again."""
    visit.site.identities.enable_person(visit.caller, visit.text("name"))
    return to("/people")


def make_key(visit: Visit) -> Response:
    """Makes a key, and shows it once."""
    tables = [name.strip() for name in visit.text("tables").split(",") if name.strip()]
    key, text = visit.site.identities.make_key(
        visit.caller,
        visit.text("name"),
        tables=tables or None,
        project=visit.text("project"),
        expires_days=read_count(visit.form, "days", 90),
        note=visit.text("note"),
    )
    return _shown(visit, Secret(title=f"Key {key} of {visit.text('name')}.", text=text, hint="Only its hash is kept."))


def rotate_key(visit: Visit) -> Response:
    """Replaces a key, and shows the new one once."""
    key, text = visit.site.identities.rotate_key(visit.caller, visit.text("key"))
    return _shown(
        visit, Secret(title=f"Key {key}, in place of {visit.text('key')}.", text=text, hint="The old one ended.")
    )


def revoke_key(visit: Visit) -> Response:
    """Ends a key at once."""
    visit.site.identities.revoke_key(visit.caller, visit.text("key"))
    return to("/people")


_MANAGING = Permission.MANAGE_PEOPLE
ROUTES = (
    PageRoute(method="GET", path="/people", permission=_MANAGING, handler=people),
    PageRoute(method="POST", path="/people", permission=_MANAGING, handler=make_person),
    PageRoute(method="POST", path="/people/link", permission=_MANAGING, handler=make_link),
    PageRoute(method="POST", path="/people/disable", permission=_MANAGING, handler=disable),
    PageRoute(method="POST", path="/people/enable", permission=_MANAGING, handler=enable),
    PageRoute(method="POST", path="/keys", permission=_MANAGING, handler=make_key),
    PageRoute(method="POST", path="/keys/rotate", permission=_MANAGING, handler=rotate_key),
    PageRoute(method="POST", path="/keys/revoke", permission=_MANAGING, handler=revoke_key),
)
