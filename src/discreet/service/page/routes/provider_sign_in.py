"""Signing in with a provider of identities: away with a ticket in a cookie, and back with the provider's word."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from discreet.errors import NotAuthenticated, ServiceUnavailable, TooManyRequests
from discreet.service.identity.openid import Departure, OpenIdSignIn
from discreet.service.identity.rate_limits import network
from discreet.service.owner.lane import Lane
from discreet.service.page.routes.sign_in import FAILED, give_session
from discreet.service.page.visit import Site, note_refusal, rendered, to

AWAY, BACK = "/sign-in/provider", "/sign-in/provider/back"
_TICKET = "discreet-ticket"
_SECONDS = 600
_AT_ONCE, _WAITING = 4, 64
"""Requests to the provider, and browsers that wait for one; addresses take turns, and none is refused for failures."""


class ProviderSignIn:
    """The two pages of signing in with a provider.

    Args:
        provider: who is asked, and what is believed.
    """

    def __init__(self, provider: OpenIdSignIn) -> None:
        self._provider = provider
        self._lane = Lane(slots=_AT_ONCE, waiting=_WAITING, per_caller=_WAITING // 4)

    async def leave(self, site: Site, request: Request) -> Response:
        """Sends a browser to the provider; its ticket goes along in a cookie that comes back from another site."""
        try:
            async with self._lane.slot(network(_address(request))):
                departure = await asyncio.to_thread(self._provider.begin, _own(site, request))
        except (TooManyRequests, ServiceUnavailable) as error:
            return _failed(site, request, str(error), 429 if isinstance(error, TooManyRequests) else 503)
        return _with_ticket(to(departure.url), site, departure)

    async def come_back(self, site: Site, request: Request) -> Response:
        """Begins the session of who has come back; the page goes on by itself, since it was opened by another site."""
        told, cookies, address = request.query_params, request.cookies, _address(request)
        try:
            async with self._lane.slot(network(address)):
                session = await asyncio.to_thread(
                    self._provider.finish,
                    ticket=cookies.get(_TICKET),
                    state=told.get("state"),
                    code=told.get("code"),
                    replaces=cookies.get(site.cookie),
                )
        except NotAuthenticated:
            return self._refused(site, request, address)
        except (TooManyRequests, ServiceUnavailable) as error:
            return _failed(site, request, str(error), 429 if isinstance(error, TooManyRequests) else 503)
        response = give_session(rendered(site, request, "signed_in.html"), site, session)
        response.delete_cookie(_TICKET, path=AWAY, secure=site.settings.secure, httponly=True, samesite="lax")
        return response

    def _refused(self, site: Site, request: Request, address: str) -> Response:
        note_refusal(request, NotAuthenticated())
        try:
            site.limits.note_failure(address)
        except TooManyRequests as error:
            return _failed(site, request, str(error), 429)
        return _failed(site, request, FAILED, 401)


def _with_ticket(response: Response, site: Site, departure: Departure) -> Response:
    response.set_cookie(
        _TICKET,
        departure.ticket,
        max_age=_SECONDS,
        path=AWAY,
        secure=site.settings.secure,
        httponly=True,
        samesite="lax",
    )
    return response


def _own(site: Site, request: Request) -> str:
    """Where the provider sends the browser back to; the Host was checked before."""
    scheme = "https" if site.settings.secure else "http"
    return f"{scheme}://{request.headers['host']}{BACK}"


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _failed(site: Site, request: Request, why: str, status: int) -> Response:
    return rendered(site, request, "sign_in.html", status, token="", aim="/", failed=why)
