"""Which status an error has, and how it leaves: the one table, and the one form.

A status of 422 means that nothing was spent. `QueryFailed` means that something was: it has 424, since what is in
between, and clients by themselves, repeat what failed with 502, 503 or 504, and a repetition without a key would be
charged again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from discreet import errors
from discreet.errors import InternalError, InvalidParameter, ServiceError
from discreet.presentation.documents.error_documents import error_document
from discreet.service.api.exact_json import MalformedBody

STATUS: Mapping[type[BaseException], int] = {
    MalformedBody: 400,
    errors.NotAuthenticated: 401,
    errors.InsufficientBudget: 402,
    errors.NotPermitted: 403,
    errors.UnknownTable: 404,
    errors.UnknownJob: 404,
    errors.UnknownEntry: 404,
    errors.KeyConflict: 409,
    errors.RunsUsedUp: 409,
    errors.StreamError: 409,
    errors.InvalidParameter: 422,
    errors.InvalidValue: 422,
    errors.UnsupportedEvent: 422,
    errors.UnsupportedQuery: 422,
    errors.AccountLocked: 423,
    errors.QueryFailed: 424,
    errors.TooManyRequests: 429,
    errors.InternalError: 500,
    errors.MissingExtra: 501,
    errors.LedgerTampered: 503,
    errors.AnchorMismatch: 503,
    errors.AnchorMissing: 503,
    errors.DeclarationChanged: 409,
    errors.LedgerError: 503,
    errors.LedgerMissing: 503,
    errors.LedgerUnavailable: 503,
    errors.ServiceUnavailable: 503,
    errors.RandomnessUnavailable: 503,
    errors.ServiceError: 400,
    errors.DiscreetError: 500,
}
"""Of an error by its class, or by the nearest class above it that is listed."""

REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("The request is not usable", ""),
    403: ("This request did not come from the service's own page", "Send it from there."),
    404: ("There is nothing at this address", "See /v1/openapi.json for what there is."),
    405: ("This address does not take this method", "See /v1/openapi.json for what it takes."),
    406: (
        "None of the accepted forms can be had",
        "Accept application/json, text/csv or application/vnd.apache.arrow.stream.",
    ),
    408: ("The body did not arrive in time", "Send it again, faster."),
    413: ("The body is too large", ""),
    415: ("The body is of another type than application/json", "Send Content-Type: application/json."),
    421: ("This name is not one of the service's", "Ask the steward to list it in hosts of discreet.toml."),
    431: ("The headers are too large, or contradict one another", ""),
}
"""What HTTP itself refuses, by its status: the reason, and what to do."""


def status_of(error: BaseException) -> int:
    """Returns the status of an error.

    >>> status_of(errors.UnknownJob()), status_of(errors.NotPermitted("ana", "ask")), status_of(KeyError())
    (404, 403, 500)
    """
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns plain values as JSON in ASCII, which holds whatever text there is."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    return Response(body, status_code=status, headers=dict(headers or {}), media_type="application/json")


def error_response(error: BaseException, *, request_id: str = "", status: int | None = None) -> Response:
    """Returns an error as its document; what is none of ours tells nothing but the id of the request."""
    found = status_of(error) if status is None else status
    wait = getattr(error, "retry_after", 0)
    headers = {"Retry-After": str(wait)} if wait else {}
    if found == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="discreet"'
    told = ServiceError(error.reason, error.hint) if isinstance(error, MalformedBody) else error  # to those who read it
    document = error_document(told)
    return json_response({**document, **({"request_id": request_id} if found >= 500 else {})}, found, headers)


def refusal(status: int) -> ServiceError:
    """Returns the error for what HTTP itself refuses."""
    return ServiceError(*REFUSALS.get(status, ("The request is refused", "")))


def install(app: FastAPI) -> None:
    """Has an application answer every error in this form."""
    app.add_exception_handler(errors.DiscreetError, _ours)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _of_http)


async def _ours(request: Request, error: Exception) -> Response:
    request.state.error = type(error).__name__
    return error_response(error, request_id=getattr(request.state, "id", ""))


async def _unfit(request: Request, error: Exception) -> Response:
    """The first field that does not fit its model; what was sent is not repeated."""
    request.state.error = InvalidParameter.__name__
    if not isinstance(error, RequestValidationError):
        raise InternalError("Only bodies and fields are told here.")
    first: dict[str, Any] = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    condition = f"to fit: {first['msg']}"
    told = InvalidParameter(place[:120], f"a {type(first.get('input')).__name__}", condition, "See /v1/openapi.json.")
    return error_response(told)


async def _of_http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    request.state.error = ServiceError.__name__
    made = error_response(refusal(status), status=status)
    allowed = (error.headers or {}).get("Allow") if isinstance(error, HTTPException) else None
    if allowed:
        made.headers["Allow"] = allowed
    return made
