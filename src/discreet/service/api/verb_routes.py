"""The routes of all verbs, derived from `VERBS` and `PEOPLE_VERBS`: work for the executor, and what needs no worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from enum import Enum
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response
from starlette.routing import compile_path

from discreet.requests.request import arguments
from discreet.requests.verb_table import VERBS, Queue, Verb
from discreet.service.acts import PEOPLE_VERBS
from discreet.service.api.http_responses import answer_response, choose_form, has_forms, json_response
from discreet.service.api.request_bodies import QueryModel, RequestModel, StrictModel, body_of
from discreet.service.api.response_models import JOB, verb_result
from discreet.service.api.route_access import OWN_ROUTES, Looking, RouteCall, SecuredRoute, Working
from discreet.service.caller import ServiceCaller
from discreet.service.identity import Identities
from discreet.service.request_executor import OPERATIONS, Document, JobRequest

LOOK_AGAIN = 0.5  # seconds after which a key is looked at again, while its caller waits

router = APIRouter(route_class=SecuredRoute)


def add_routes(verbs: Iterable[Verb], routes: APIRouter) -> None:
    """Adds the route of each verb that HTTP offers, except those with routes of their own."""
    for verb in verbs:
        if "http" in verb.faces and verb.name not in OWN_ROUTES:
            method, path = verb.route
            made, tag = (_ledger_endpoint, "ledger") if verb.queue is Queue.LEDGER else (_work_endpoint, "questions")
            tags: list[str | Enum] = ["people" if verb.name in PEOPLE_VERBS else tag]
            routes.add_api_route(path, made(verb), methods=[method], responses=verb_result(verb), tags=tags)


def _work_endpoint(verb: Verb) -> Callable[..., Any]:
    """Returns the function behind the route of a verb that workers do."""

    async def endpoint(body: RequestModel, call: RouteCall) -> Response:
        """Returns the outcome of work, or the job that it has become."""
        work = JobRequest(operation=OPERATIONS[verb.name], arguments=body.arguments, key=call.key, project=body.project)
        if not body.wait:
            status = call.offices.desk.begin(call.caller, work)
            return json_response(JOB.write(status), 202, {"Location": f"/v1/jobs/{status.id}"})
        if has_forms(verb):
            choose_form(call.accept)
        outcome = call.offices.desk.perform(call.caller, work)
        document = await watch_outcome(outcome, call.offices.identities, call.caller)
        return answer_response(document, call.accept)

    return _describe_endpoint(endpoint, verb, {"body": body_of(verb.request), "call": Working})


def _ledger_endpoint(verb: Verb) -> Callable[..., Any]:
    """Returns the function behind the route of a verb that needs no worker; FastAPI runs it in a thread."""

    def endpoint(call: RouteCall, body: StrictModel | None = None, **places: str) -> Response:
        given = {} if body is None else body.arguments
        return json_response(call.offices.acts.perform(call.caller, verb.read_request({**given, **places})))

    method, path = verb.route
    places = compile_path(path)[2]
    body: Any = body_of(verb.request, base=StrictModel if method == "POST" else QueryModel, without=places)
    if method != "POST":
        body = Annotated[body, Query()]
    asked = {"body": body} if any(each.name not in places for each in arguments(verb.request)) else {}
    return _describe_endpoint(endpoint, verb, {**dict.fromkeys(places, str), **asked, "call": Looking})


def _describe_endpoint(endpoint: Callable[..., Any], verb: Verb, taken: Mapping[str, Any]) -> Callable[..., Any]:
    """Has FastAPI see a function with these arguments; its name is the id of the route in OpenAPI."""
    made: Any = endpoint
    made.__name__, made.__doc__ = verb.name, verb.request.__doc__
    parameters = [Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in taken.items()]
    made.__signature__ = Signature(parameters, return_annotation=Response)
    return endpoint


add_routes((*VERBS.values(), *PEOPLE_VERBS.values()), router)


async def watch_outcome(
    outcome: Coroutine[Any, Any, Document], identities: Identities, caller: ServiceCaller, *, again: float = LOOK_AGAIN
) -> Document:
    """Waits for an outcome as long as the key of its caller may be used.

    Raises:
        NotAuthenticated: as soon as it has ended; what was charged stays charged.
    """
    task = asyncio.ensure_future(outcome)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=again)
            identities.caller_of_key(caller.credential)
        return task.result()
    finally:
        task.cancel()
