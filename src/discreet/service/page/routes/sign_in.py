"""Signing in and out: with a link that works once, or with a key; and the cookie that a browser gets for it.

Opening a link uses nothing up, so that a preview of it in a mail program does no harm: the page has a button.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import Response

from discreet.errors import InvalidParameter, NotAuthenticated, TooManyRequests
from discreet.service.page.visit import Site, Visit, note_refusal, read_body, rendered, to

MOST_BODY = 4096
_SECONDS = 12 * 3600
"""How long a browser keeps the cookie; the session on the server decides."""

FAILED = "That link or key does not work: it was used, has expired, or never did. Ask for another."


async def show_sign_in(site: Site, request: Request) -> Response:
    """Shows the form; a link's token is put into it and not used."""
    token, aim = request.query_params.get("token", ""), request.query_params.get("next", "/")
    return rendered(site, request, "sign_in.html", token=token[:200], aim=local(aim), failed="")


async def sign_in(site: Site, request: Request) -> Response:
    """Begins a session; whatever does not prove anybody is answered alike."""
    address = request.client.host if request.client else ""
    aim = "/"
    try:
        form = ImmutableMultiDict(parse_qsl((await read_body(request, MOST_BODY)).decode("utf-8", "replace")))
        aim = local(form.get("next", "/"))
        session = _session(site, form, request.cookies.get(site.cookie))
    except (NotAuthenticated, InvalidParameter):
        note_refusal(request, NotAuthenticated())
        try:
            site.limits.note_failure(address)
        except TooManyRequests as error:
            return _failed(site, request, aim, str(error), 429)
        return _failed(site, request, aim, FAILED, 401)
    return give_session(to(aim), site, session)


def give_session(response: Response, site: Site, session: str) -> Response:
    """Puts a session into a browser: for the server only, and for requests of our own pages."""
    response.set_cookie(
        site.cookie,
        session,
        max_age=_SECONDS,
        path="/",
        secure=site.settings.secure,
        httponly=True,
        samesite="strict",
    )
    return response


def _session(site: Site, form: ImmutableMultiDict[str, str], before: str | None) -> str:
    token, key = form.get("token", "").strip(), form.get("key", "").strip()
    if token:
        return str(site.identities.sign_in(token, replaces=before))
    return str(site.identities.sign_in_with_key(key, replaces=before))


def _failed(site: Site, request: Request, aim: str, why: str, status: int) -> Response:
    return rendered(site, request, "sign_in.html", status, token="", aim=aim, failed=why)


async def sign_out(visit: Visit) -> Response:
    """Ends the session, on the server and in the browser."""
    visit.site.identities.sign_out(visit.request.cookies.get(visit.site.cookie, ""))
    response = to("/sign-in")
    response.delete_cookie(
        visit.site.cookie, path="/", secure=visit.site.settings.secure, httponly=True, samesite="strict"
    )
    return response


def local(aim: str) -> str:
    r"""Returns where to go after signing in: a page of ours, whatever a link says.

    >>> local("/ask"), local("//evil.example"), local("https://evil.example"), local("/\\evil.example")
    ('/ask', '/', '/', '/')
    """
    safe = aim.startswith("/") and aim[1:2] not in ("/", "\\") and aim.isprintable() and "\\" not in aim
    return aim if safe else "/"
