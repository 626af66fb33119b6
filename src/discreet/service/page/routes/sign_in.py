"""Signing in and out: with a link that works once, with a key, or by a provider of identities; and the cookies for it.

Opening a link does not use it, so that a preview of it in a mail program does no harm: the page has a button. A browser
that signs in by a provider leaves with a ticket in a cookie, and comes back with a code of the provider's.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from discreet.errors import InvalidParameter, NotAuthenticated, ServiceUnavailable, TooManyRequests
from discreet.service.api.http_responses import status_of
from discreet.service.api.route_access import address_of
from discreet.service.identity.openid import OpenIdSignIn
from discreet.service.identity.rate_limits import network
from discreet.service.owner.job_queue import JobQueue
from discreet.service.page.page_request import PageContext, PageRequest, note_refusal, read_posted, render_page, to

MOST_BODY = 4096
AWAY, BACK = "/sign-in/provider", "/sign-in/provider/back"
_TICKET = "discreet-ticket"
_SESSION_SECONDS, _TICKET_SECONDS = 12 * 3600, 600
"""How long a browser keeps each cookie; the session on the server decides."""
_AT_ONCE, _WAITING = 4, 64
"""Requests to the provider, and browsers that wait for one; addresses take turns, and none is refused for failures."""

FAILED = "This link or key does not work: it was used, has expired or is wrong. Ask a steward for another."


async def show_sign_in(site: PageContext, request: Request) -> Response:
    """Shows the form; a link's token is put into it and not used."""
    token, aim = request.query_params.get("token", ""), request.query_params.get("next", "/")
    return render_page(site, request, "sign_in.html", token=token[:200], aim=local(aim), failed="")


async def sign_in(site: PageContext, request: Request) -> Response:
    """Begins a session; everything that proves no person gets the same answer."""
    aim, known, before = "/", site.identities, request.cookies.get(site.cookie)
    try:
        form = await read_posted(request, MOST_BODY)
        aim, token = local(form.get("next", "/")), form.get("token", "").strip()
        if token:
            session = known.sign_in(token, replaces=before)
        else:
            session = known.sign_in_with_key(form.get("key", "").strip(), replaces=before)
    except (NotAuthenticated, InvalidParameter):
        return _refuse_sign_in(site, request, aim)
    return _with_session(to(aim), site, session)


async def sign_out(visit: PageRequest) -> Response:
    """Ends the session, on the server and in the browser."""
    visit.site.identities.sign_out(visit.request.cookies.get(visit.site.cookie, ""))
    response = to("/sign-in")
    response.delete_cookie(visit.site.cookie, **_cookie(visit.site))
    return response


class ProviderSignIn:
    """The two pages of signing in by a provider.

    Args:
        provider: the provider that is asked, and which of its claims are believed.
    """

    def __init__(self, provider: OpenIdSignIn) -> None:
        self._provider = provider
        self._lane = JobQueue(slots=_AT_ONCE, waiting=_WAITING, per_caller=_WAITING // 4)

    async def leave(self, site: PageContext, request: Request) -> Response:
        """Sends a browser to the provider; its ticket goes along in a cookie that comes back from another site."""
        try:
            async with self._lane.slot(network(address_of(request))):
                departure = await asyncio.to_thread(self._provider.begin, f"{site.origin(request)}{BACK}")
        except (TooManyRequests, ServiceUnavailable) as error:
            return _render_failure(site, request, str(error), status_of(error))
        response = to(departure.url)
        response.set_cookie(_TICKET, departure.ticket, max_age=_TICKET_SECONDS, **_cookie(site, AWAY, "lax"))
        return response

    async def come_back(self, site: PageContext, request: Request) -> Response:
        """Begins a session after the provider; the page reloads itself, since another site has opened it."""
        told, cookies = request.query_params, request.cookies
        try:
            async with self._lane.slot(network(address_of(request))):
                session = await asyncio.to_thread(
                    self._provider.finish,
                    ticket=cookies.get(_TICKET),
                    state=told.get("state"),
                    code=told.get("code"),
                    replaces=cookies.get(site.cookie),
                )
        except NotAuthenticated:
            return _refuse_sign_in(site, request)
        except (TooManyRequests, ServiceUnavailable) as error:
            return _render_failure(site, request, str(error), status_of(error))
        response = _with_session(render_page(site, request, "signed_in.html"), site, session)
        response.delete_cookie(_TICKET, **_cookie(site, AWAY, "lax"))
        return response


def _with_session(response: Response, site: PageContext, session: str) -> Response:
    """Puts a session into a browser."""
    response.set_cookie(site.cookie, session, max_age=_SESSION_SECONDS, **_cookie(site))
    return response


def _cookie(site: PageContext, path: str = "/", samesite: str = "strict") -> dict[str, Any]:
    """Returns the options of a cookie for the server only, sent by our own pages, or ("lax") also from another site."""
    return {"path": path, "secure": site.settings.secure, "httponly": True, "samesite": samesite}


def _refuse_sign_in(site: PageContext, request: Request, aim: str = "/") -> Response:
    """Refuses a sign-in that proves no person, and counts it."""
    note_refusal(request, NotAuthenticated())
    try:
        site.limits.note_failure(address_of(request))
    except TooManyRequests as error:
        return _render_failure(site, request, str(error), 429, aim)
    return _render_failure(site, request, FAILED, 401, aim)


def _render_failure(site: PageContext, request: Request, why: str, status: int, aim: str = "/") -> Response:
    return render_page(site, request, "sign_in.html", status, token="", aim=aim, failed=why)


def local(aim: str) -> str:
    r"""Returns where to go after signing in: a page of ours, whatever a link says.

    >>> local("/ask"), local("//evil.example"), local("https://evil.example"), local("/\\evil.example")
    ('/ask', '/', '/', '/')
    """
    safe = aim.startswith("/") and aim[1:2] not in ("/", "\\") and aim.isprintable() and "\\" not in aim
    return aim if safe else "/"
