"""One request of a browser: who makes it, what it may do, what it sends, and how it is answered.

Every route names the permission it needs, in a table that tests walk through. A session is looked up for every request,
so that one that has expired or was revoked ends with the next click.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from inspect import iscoroutinefunction
from typing import Any, cast
from urllib.parse import parse_qsl, quote

from jinja2 import Environment
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InternalError, InvalidParameter, NotAuthenticated, TooManyRequests
from discreet.requests.request import Request as Asked
from discreet.requests.verb_table import Queue, Verb
from discreet.service.api.http_responses import status_of
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import Permission, ServiceCaller
from discreet.service.connection_limits import recognise
from discreet.service.page.document_view import KeptAnswers
from discreet.service.page.request_forms import in_words
from discreet.service.request_executor import OPERATIONS, Document, JobRequest, Operation

MOST_FORM = 1 << 20  # bytes of a form; files come another way
MOST_FIELDS = 4000
OUR_FAULT = "The service failed because of an internal error. The ledger shows everything that was spent."
_LOG = logging.getLogger("discreet.service.page")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext(ServiceContext):
    """The services that pages use, their templates and the kept answers."""

    templates: Environment
    answers: KeptAnswers = field(default_factory=KeptAnswers)

    @property
    def cookie(self) -> str:
        """The name of the session's cookie; its prefix makes browsers refuse one that another host has set."""
        return "__Host-discreet" if self.settings.secure else "discreet-session"

    def origin(self, request: Request) -> str:
        """Returns the address of the service, as a browser calls it; its Host was checked before."""
        return f"{'https' if self.settings.secure else 'http'}://{request.headers['host']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request of a caller who may make it, with the fields of its form."""

    site: PageContext
    request: Request
    caller: ServiceCaller
    csrf: str
    form: ImmutableMultiDict[str, str]

    @property
    def partial(self) -> bool:
        """Returns whether htmx asks for a piece of a page."""
        return self.request.headers.get("hx-request") == "true"

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """Returns a page, or a piece of one."""
        return render_page(self.site, self.request, template, status, caller=self.caller, csrf=self.csrf, **context)

    def text(self, name: str) -> str:
        """Returns a field of the form without the spaces around it."""
        return self.form.get(name, "").strip()

    def query_parameter(self, name: str) -> str:
        """Returns a part of the address's query."""
        return self.request.query_params.get(name, "").strip()

    async def perform(self, operation: Operation, arguments: Mapping[str, Any], key: str | None = None) -> Document:
        """Has work done for the signed-in caller."""
        self.caller.require(operation.permission)
        if operation.charges:
            self.site.limits.admit(self.caller, charging=True)
        project = self.caller.project or self.text("project")
        work = JobRequest(operation=operation, arguments=arguments, key=key, project=project)
        try:
            return await self.site.desk.perform(self.caller, work)
        except DiscreetError as error:
            note_refusal(self.request, error)  # here, since some pages show it next to a form
            raise

    async def perform_verb(self, verb: Verb, asked: Asked[Any], key: str | None = None) -> Document:
        """Does what a request asks, in a worker or in the ledger."""
        if verb.queue is Queue.LEDGER:
            return await run_in_threadpool(self.site.acts.perform, self.caller, asked)
        return await self.perform(OPERATIONS[verb.name], asked.document(), key)


Handler = Callable[[PageRequest], Awaitable[Response] | Response]
"""A function that is no coroutine may wait for the ledger, and is called in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """A page: its address, its method, what it needs and who answers.

    Attributes:
        verbs: the names of the verbs that it offers; each other verb has a page that is made of its request.
        streams: whether it reads the body itself.
    """

    method: str
    path: str
    permission: Permission
    handler: Handler
    verbs: tuple[str, ...] = ()
    streams: bool = False

    async def answer(self, site: PageContext, request: Request) -> Response:
        """Answers a request of a signed-in caller who may make it; errors become pages."""
        request.scope["route"] = self  # its template, for the log
        try:
            caller, csrf = site.identities.authenticate_session(request.cookies.get(site.cookie, ""))
        except NotAuthenticated as error:
            note_refusal(request, error)
            return to_sign_in(request)
        visit = PageRequest(site=site, request=request, caller=caller, csrf=csrf, form=ImmutableMultiDict())
        try:
            recognise(request.state, caller)
            site.limits.admit(caller, charging=False)
            caller.require(self.permission)
            if self.method == "POST" and not self.streams:
                visit = replace(visit, form=await read_posted(request))
                require_token(visit, visit.form)
            if not iscoroutinefunction(self.handler):
                return cast("Response", await run_in_threadpool(self.handler, visit))
            return cast("Response", await self.handler(visit))
        except DiscreetError as error:
            return render_error(visit, error)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - what it says may hold a question or a key, so only its kind is kept
            return render_error(visit, InternalError(type(error).__name__))


def require_token(visit: PageRequest, form: Mapping[str, str]) -> None:
    """Checks that a form shows its session's token, in a field, or in a header as htmx does.

    Raises:
        NotPermitted: if it does not.
    """
    shown = visit.request.headers.get("x-csrf-token") or form.get("csrf", "")
    visit.site.identities.require_csrf(visit.request.cookies[visit.site.cookie], shown)


async def read_posted(request: Request, most: int = MOST_FORM) -> ImmutableMultiDict[str, str]:
    """Returns the fields that a form has sent.

    Raises:
        InvalidParameter: if they are not UTF-8 text, or as soon as they are too long.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise InvalidParameter("form", "this one", f"to have at most {most} bytes", "Send less in one form.")
        parts.append(part)
    try:
        text = b"".join(parts).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise InvalidParameter("form", "this one", "to be UTF-8 text", "Send it from the page.") from None
    return ImmutableMultiDict(pairs)


# ---------------------------------------------------------------------------------------------------- responses


def render_page(site: PageContext, request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Returns a rendered template; every page has the path, the caller and the settings."""
    known = {"path": request.url.path, "caller": None, "csrf": "", "settings": site.settings, "partial": False}
    return HTMLResponse(site.templates.get_template(template).render({**known, **context}), status)


def to(place: str) -> Response:
    """Sends the browser elsewhere after a form."""
    return RedirectResponse(place, 303)


def attachment(text: str, kind: str, name: str) -> Response:
    """Returns a file that the browser saves, and never shows as a page of ours."""
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def to_sign_in(request: Request) -> Response:
    """Sends a caller who is not signed in to the sign-in page; htmx follows its own header only."""
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"hx-redirect": "/sign-in"})
    aim = request.url.path if request.method == "GET" else "/"
    return RedirectResponse(f"/sign-in?next={quote(aim)}", 303)


def note_refusal(request: Request, error: DiscreetError) -> None:
    """Notes the class of a refusal for the log, and not its message, which may hold what was sent."""
    request.state.error = type(error).__name__


def is_refusal(error: DiscreetError) -> bool:
    """Returns whether a page shows an error next to its form; faults and limits have a page of their own."""
    return status_of(error) < 500 and not isinstance(error, TooManyRequests)


def render_error(visit: PageRequest, error: DiscreetError) -> Response:
    """Returns an error as a page, or as a piece of one; our faults are logged, and not described."""
    own = isinstance(error, InternalError)
    shown = OUR_FAULT if own else in_words(error)
    kind, status = type(error).__name__, status_of(error)
    note_refusal(visit.request, error)
    if own:
        line = {"method": visit.request.method, "fault": str(error), "by": visit.caller.credential}
        _LOG.error("%s", json.dumps(line))
    context: Mapping[str, Any] = {"error": shown, "kind": kind, "partial": visit.partial}
    response = visit.page("fragments/error.html" if visit.partial else "error.html", status, **context)
    wait = getattr(error, "retry_after", 0)
    if wait:
        response.headers["retry-after"] = str(wait)
    return response
