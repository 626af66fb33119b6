"""What each route requires of its caller: the key is proven before the body is read.

`NEEDS` is the one table. A route that is not in it cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Header
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from discreet.dataclass import dataclass
from discreet.errors import InternalError, NotAuthenticated, UnknownTable
from discreet.ledger.serialization import LONGEST_NAME
from discreet.ledger.serialization import name as checked_name
from discreet.requests.verb_table import VERBS
from discreet.service.acts import PEOPLE_VERBS, StewardActions
from discreet.service.api.request_bodies import ExactRequest
from discreet.service.caller import Permission, ServiceCaller
from discreet.service.connection_limits import recognise
from discreet.service.identity import Identities, RateLimits
from discreet.service.request_executor import Document, RequestExecutor
from discreet.service.settings import Settings

LONGEST_KEY = 200  # characters of the longest key that is looked up


class RouteRequirement(NamedTuple):
    """What a route needs: a permission, and whether it may spend, so that it counts as one of the day's questions."""

    permission: Permission
    charges: bool = False


OWN_ROUTES: Mapping[str, str] = {"budget": "list_budgets", "history": "get_history"}
"""The verbs whose routes are not derived: what a caller may see of the ledger is theirs to decide."""

NEEDS: Mapping[str, RouteRequirement] = {
    **{
        OWN_ROUTES.get(verb.name, verb.name): RouteRequirement(verb.permission, verb.charges)
        for verb in (*VERBS.values(), *PEOPLE_VERBS.values())
        if "http" in verb.faces
    },
    **dict.fromkeys(("list_tables", "get_table"), RouteRequirement(Permission.SEE_TABLES)),
    **dict.fromkeys(("get_job", "follow_job", "cancel_job"), RouteRequirement(Permission.SEE_OWN)),
    **dict.fromkeys(("get_certificate", "list_keys"), RouteRequirement(Permission.SEE_OWN)),
    "get_anchor": RouteRequirement(Permission.VERIFY),
    "list_people": RouteRequirement(Permission.MANAGE_PEOPLE),
}
"""What every route needs, by the name of its function, which is its id in OpenAPI."""


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The services that routes and pages use.

    Attributes:
        desk: does work in workers.
        identities: prove who calls.
        acts: read and change the ledger for callers.
        limits: count requests.
        settings: of the service.
    """

    desk: RequestExecutor
    identities: Identities
    acts: StewardActions
    limits: RateLimits
    settings: Settings

    def table(self, caller: ServiceCaller, name: str) -> Document:
        """Returns the public facts about a table that a caller may see.

        Raises:
            UnknownTable: for all others, as if there were none.
        """
        known = {each["name"]: each for each in self.desk.tables(caller)}
        if name not in known:
            raise UnknownTable(name, known)
        return known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCall:
    """A request whose caller was admitted.

    Attributes:
        caller: the caller, proven by their key.
        offices: the services that do the request.
        accept: the Accept header.
        key: the idempotency key, if there is one.
    """

    caller: ServiceCaller
    offices: ServiceContext
    accept: str
    key: str | None = None


class SecuredRoute(APIRoute):
    """A route that admits only callers who have what `NEEDS` says."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **how: Any) -> None:
        if endpoint.__name__ not in NEEDS:
            raise InternalError(f"{endpoint.__name__} is missing from NEEDS.")
        self.need = NEEDS[endpoint.__name__]
        super().__init__(path, endpoint, **how)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the handler of a request, which checks the caller before it reads the body."""
        handle, need, takes_body = super().get_route_handler(), self.need, self.body_field is not None

        async def handle_guarded(request: Request) -> Response:
            request.state.caller = admit_caller(request, need)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if takes_body and kind != "application/json":
                raise HTTPException(415)
            exact = ExactRequest(request.scope, request.receive)
            await exact.body()  # here, where a body that is too large differs from a malformed one
            return await handle(exact)

        return handle_guarded


def admit_caller(request: Request, need: RouteRequirement) -> ServiceCaller:
    """Returns who calls, if they may, and counts the request.

    Raises:
        NotAuthenticated: if the key proves nothing.
        NotPermitted: if the role does not allow it.
        TooManyRequests: if it is one too many.
    """
    known: ServiceContext = request.app.state.offices
    try:
        caller = known.identities.authenticate_key(shown_key(request))
    except NotAuthenticated:
        known.limits.note_failure(address_of(request))
        raise
    recognise(request.state, caller)
    known.limits.admit(caller, need.charges and caller.may(need.permission))
    caller.require(need.permission)
    return caller


def address_of(request: Request) -> str:
    """Returns the address that a request comes from."""
    return request.client.host if request.client else ""


def shown_key(request: Request) -> str:
    """Returns the key of the one Authorization header; a key in the address is never looked at.

    Raises:
        NotAuthenticated: if there is none.
    """
    given = request.headers.getlist("authorization")
    scheme, _, key = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not 0 < len(key) <= LONGEST_KEY:
        raise NotAuthenticated
    return key


async def looking(request: Request) -> RouteCall:
    """Returns the call of a request without an idempotency key, since it only reads."""
    accept = request.headers.get("accept", "*/*")
    return RouteCall(caller=request.state.caller, offices=request.app.state.offices, accept=accept)


async def calling(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="A word of your choice. If you repeat the request with it, it is done and charged once.",
            max_length=LONGEST_NAME,
        ),
    ] = None,
) -> RouteCall:
    """Returns the call of a request, with its idempotency key.

    Raises:
        InvalidParameter: if the idempotency key is not a valid name.
    """
    key = None if idempotency_key is None else checked_name(**{"Idempotency-Key": idempotency_key})
    return replace(await looking(request), key=key)


Working = Annotated[RouteCall, Depends(calling)]
Looking = Annotated[RouteCall, Depends(looking)]
