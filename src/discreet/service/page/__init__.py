"""The page: rendered on the server, small, and without network; every piece of it escapes what it shows.

`create_page` puts it together. `HttpGuard` of the API guards every request, `page_request` has one request of a caller
who may make it, `routes` has the pages, and templates and scripts are in folders next to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.requests.verb_table import VERBS
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import Permission
from discreet.service.identity.openid import OpenIdSignIn
from discreet.service.page.page_request import PageContext, PageRoute, render_page
from discreet.service.page.page_templates import ASSETS, asset, environment
from discreet.service.page.routes import (
    analyst_routes,
    lab_routes,
    ledger_routes,
    people_routes,
    protect_routes,
    sign_in,
    verb_pages,
)

NAVIGATION = (
    ("Ask", "/ask", Permission.ASK),
    ("Tables", "/tables", Permission.SEE_TABLES),
    ("Budget", "/budget", Permission.ASK),
    ("Accounts", "/overview", Permission.SEE_ALL),
    ("People", "/people", Permission.MANAGE_PEOPLE),
    ("Protect", "/protect", Permission.PROTECT),
    ("Attack lab", "/attack", Permission.ATTACK),
    ("History", "/history", Permission.SEE_OWN),
    ("Verify", "/verify", Permission.VERIFY),
)
"""The pages that are made by hand; those of verbs follow the first of them."""

OWN: tuple[PageRoute, ...] = (
    *analyst_routes.ROUTES,
    *ledger_routes.ROUTES,
    *people_routes.ROUTES,
    *protect_routes.ROUTES,
    *lab_routes.ROUTES,
    PageRoute(method="POST", path="/sign-out", permission=Permission.SEE_TABLES, handler=sign_in.sign_out),
)
"""All pages that are made by hand and need a signed-in caller, each with the permission it needs."""

VERB_PAGES = verb_pages.pages_of(VERBS.values(), {verb for route in OWN for verb in route.verbs})
ROUTES: tuple[PageRoute, ...] = (*OWN, *(route for page in VERB_PAGES for route in page.routes))

_KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
_KEPT = "public, max-age=31536000, immutable"
"""The cache header of assets, whose addresses change with their content."""


def create_page(offices: ServiceContext, *, pages: Sequence[verb_pages.VerbPage] = VERB_PAGES) -> Starlette:
    """Returns the page as an application to be mounted at the root of a server, behind `HttpGuard`.

    Args:
        offices: the services that pages use.
        pages: the pages of verbs.
    """
    templates = environment()
    of_verbs = ((page.title, page.path, page.verb.permission) for page in pages)
    navigation = (*NAVIGATION[:1], *of_verbs, *NAVIGATION[1:])
    templates.globals |= {"navigation": navigation, "provider": ""}
    site = PageContext(**{each.name: getattr(offices, each.name) for each in fields(offices)}, templates=templates)
    signed_in = (*OWN, *(route for page in pages for route in page.routes))
    routes = [Route(each.path, partial(each.answer, site), methods=[each.method]) for each in signed_in]
    for method, path, answer in (*_OPEN, *_provider_pages(site)):
        routes.append(Route(path, partial(answer, site), methods=[method]))
    routes.append(Route("/assets/{name}", _asset, methods=["GET"]))
    return Starlette(routes=routes, exception_handlers={HTTPException: partial(_missing, site)})


Open = Callable[[PageContext, Request], Awaitable[Response]]
_OPEN: tuple[tuple[str, str, Open], ...] = (
    ("GET", "/sign-in", sign_in.show_sign_in),
    ("POST", "/sign-in", sign_in.sign_in),
)
"""The pages that need no signed-in caller."""


def _provider_pages(site: PageContext) -> tuple[tuple[str, str, Open], ...]:
    """Returns the pages that lead to an identity provider and back, if the settings name one."""
    if not site.settings.oidc:
        return ()
    given, note_groups = site.settings.oidc, site.acts.note_groups
    provider = OpenIdSignIn.of_settings(site.identities, given, site.settings.folder, note_groups)
    pages = sign_in.ProviderSignIn(provider)
    site.templates.globals["provider"] = sign_in.AWAY
    return ("GET", sign_in.AWAY, pages.leave), ("GET", sign_in.BACK, pages.come_back)


async def _asset(request: Request) -> Response:
    """Serves one of a fixed list of files: a name is never a path."""
    name = request.path_params["name"]
    if name not in ASSETS:
        raise HTTPException(404)
    return Response(asset(name), media_type=_KINDS[name.rpartition(".")[2]], headers={"cache-control": _KEPT})


async def _missing(site: PageContext, request: Request, error: Exception) -> Response:
    return render_page(site, request, "missing.html", error.status_code if isinstance(error, HTTPException) else 500)
