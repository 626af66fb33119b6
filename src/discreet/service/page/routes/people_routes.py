"""People and keys: made, rotated, revoked and disabled. A secret is in one response only, and no cache keeps it."""

from __future__ import annotations

from starlette.responses import Response

from discreet.service.acts import PEOPLE_VERBS
from discreet.service.caller import Permission
from discreet.service.identity.people import MAKES, manages
from discreet.service.page.page_request import PageRequest, PageRoute, to
from discreet.service.page.request_forms import read_form


def people(visit: PageRequest, secret: dict[str, str] | None = None) -> Response:
    """Shows all people and keys, and a new secret, which is shown only once."""
    identities, by = visit.site.identities, visit.caller
    everybody, managed = identities.people(by), sorted(role.value for role in MAKES.get(by.role, ()))
    reachable = [each for each in everybody if each.disabled is None and manages(by, each.name, each.role)]
    return visit.page(
        "people.html",
        people=everybody,
        keys=identities.keys(by),
        names=[(each.name, each.name) for each in reachable],
        roles=[(role, role) for role in managed],
        managed=managed,
        now=identities.clock(),
        secret=secret,
    )


def _action(path: str, verb: str, title: str = "", hint: str = "") -> PageRoute:
    """Returns the route of an action; one with a title has a secret as its result, which is shown only once."""

    def perform_action(visit: PageRequest) -> Response:
        asked = read_form(PEOPLE_VERBS[verb].request, visit.form)
        found = visit.site.acts.perform(visit.caller, asked)
        if not title:
            return to("/people")
        link = f"{visit.site.origin(visit.request)}/sign-in?token={found.get('token')}"
        told = title.format(id=found.get("id"), **asked.document())
        return people(visit, {"title": told, "text": found.get("key", link), "hint": hint})

    return PageRoute(method="POST", path=path, permission=Permission.MANAGE_PEOPLE, handler=perform_action)


ROUTES = (
    PageRoute(method="GET", path="/people", permission=Permission.MANAGE_PEOPLE, handler=people),
    _action("/people", "make_person"),
    _action("/people/link", "make_link", "A sign-in link for {name}.", "It works once, for a few minutes."),
    _action("/people/disable", "disable_person"),
    _action("/people/enable", "enable_person"),
    _action("/keys", "make_key", "Key {id} of {name}.", "The service keeps only its hash."),
    _action("/keys/rotate", "rotate_key", "Key {id}, which replaces {key}.", "The old key no longer works."),
    _action("/keys/revoke", "revoke_key"),
)
