"""Responses: answers as JSON, CSV or Arrow, as the Accept header says, and errors with their status.

A status of 422 means that nothing was spent. `QueryFailed` means that something was: it has 424, since proxies and
clients repeat on their own what failed with 502, 503 or 504, and a repetition without a key would be charged again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from discreet import errors
from discreet.curator.asking.answer import Answer
from discreet.errors import InternalError, InvalidParameter, ServiceError
from discreet.lazy import pa
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.presentation.documents.error_documents import error_document
from discreet.presentation.documents.result_documents import Document
from discreet.report.csv_text import csv_text
from discreet.requests.verb_table import Verb
from discreet.service.api.request_bodies import MalformedBody

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
_ANY = {"*/*": JSON, "application/*": JSON, "text/*": CSV}

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
"""The status of an error by its class, or by the nearest class above it that is listed."""

REFUSALS: Mapping[int, tuple[str, str]] = {
    400: ("The request cannot be read", "Compare it with /v1/openapi.json."),
    403: ("This request did not come from the service's own page", "Load the page again, and send it from there."),
    404: ("There is nothing at this address", "See /v1/openapi.json for all addresses."),
    405: ("This address does not take this method", "See /v1/openapi.json for its methods."),
    406: (
        "The answer has none of the accepted types",
        "Accept application/json, text/csv or application/vnd.apache.arrow.stream.",
    ),
    408: ("The body did not arrive in time", "Send it again over a faster connection."),
    413: ("The body is too large", "Send at most 1 MiB."),
    415: ("The body is not application/json", "Send Content-Type: application/json."),
    421: ("The service does not have this host name", "Ask the owner to add it to hosts in discreet.toml."),
    431: ("The headers are too large, or they contradict each other", "Send each header once."),
}
"""What HTTP itself refuses, by its status: the reason, and what to do."""


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns plain values as JSON in ASCII, which holds whatever text there is."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    return Response(body, status_code=status, headers=dict(headers or {}), media_type="application/json")


# -------------------------------------------------------------------------------------------------------------- answers


def has_forms(verb: Verb) -> bool:
    """Returns whether its result can leave as CSV and Arrow, too."""
    return verb.document == "answer"


def answer_response(document: Document, accept: str) -> Response:
    """Returns an answer in the form that is accepted; every other document is JSON.

    Raises:
        HTTPException: 406 if none of the forms is accepted.
    """
    form = choose_form(accept) if document.get("kind") == "answer" else JSON
    if form == JSON:
        return json_response(document)
    answer = ANSWER.read(document)
    headers = {"Discreet-Cost": str(answer.cost), "Discreet-Remaining": str(answer.remaining)}
    return Response(_FORMS[form](answer, document), headers=headers, media_type=form)


def choose_form(accept: str) -> str:
    """Returns the form that a header wants most; the first of those that it wants alike.

    It is called before anything is charged, so that no caller pays for an answer that cannot be sent.

    Raises:
        HTTPException: 406 if it wants none of them.

    >>> choose_form("text/csv;q=0.5, application/json;q=0.4"), choose_form("*/*")
    ('text/csv', 'application/json')
    """
    found: dict[str, float] = {}
    for part in accept.split(","):
        name, *options = (each.strip().lower() for each in part.split(";"))
        form = _ANY.get(name, name)
        if form in (JSON, CSV, ARROW) and (weight := _weight(options)) > 0:
            found[form] = max(weight, found.get(form, 0.0))
    if not found:
        raise HTTPException(406)
    return max(found, key=lambda form: found[form])


def _weight(options: list[str]) -> float:
    text = next((option[2:] for option in options if option.startswith("q=")), "1")
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _csv(answer: Answer, _: Document) -> bytes:
    return csv_text(answer.columns, answer.records).encode("utf-8", "backslashreplace")


def _arrow(answer: Answer, document: Document) -> bytes:
    """Returns a stream whose schema has all that the answer says in addition to its rows."""
    facts = {name: part for name, part in document.items() if name != "rows"}
    table = answer.to_arrow().replace_schema_metadata({"discreet": json.dumps(facts)})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


_FORMS: Mapping[str, Callable[[Answer, Document], Any]] = {CSV: _csv, ARROW: _arrow}


# --------------------------------------------------------------------------------------------------------------- errors


def status_of(error: BaseException) -> int:
    """Returns the status of an error.

    >>> status_of(errors.UnknownJob()), status_of(errors.NotPermitted("ana", "ask")), status_of(KeyError())
    (404, 403, 500)
    """
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def error_response(error: BaseException, *, request_id: str = "", status: int | None = None) -> Response:
    """Returns an error as its document; an error that is not ours says nothing but the id of the request."""
    found = status_of(error) if status is None else status
    wait = getattr(error, "retry_after", 0)
    headers = {"Retry-After": str(wait)} if wait else {}
    if found == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="discreet"'
    told = ServiceError(error.reason, error.hint) if isinstance(error, MalformedBody) else error  # public class
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
    """Answers with the first field that does not fit its model; what was sent is not repeated."""
    request.state.error = InvalidParameter.__name__
    if not isinstance(error, RequestValidationError):
        raise InternalError("Only errors of bodies and fields come here.")
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
