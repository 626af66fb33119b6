"""Routes for work: tables, questions before and after they are paid, learners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from discreet.errors import UnknownTable
from discreet.requests.verb_table import VERBS, Verb
from discreet.service.api.answer_forms import answer_response, check_accepted
from discreet.service.api.error_responses import json_response
from discreet.service.api.request_models import Request, body_of
from discreet.service.api.response_models import MODELS, TableModel, TablesModel, job_document, result, work_result
from discreet.service.api.route_access import Call, Looking, SecuredRoute, Working
from discreet.service.caller import Caller
from discreet.service.desk import OPERATIONS, Document, Operation, Work
from discreet.service.identity import Identities

LOOK_AGAIN = 0.5  # seconds after which a key is looked at again, while its owner waits

router = APIRouter(prefix="/v1", route_class=SecuredRoute, tags=["questions"])


@router.get("/tables", responses=result(TablesModel))
async def list_tables(call: Looking) -> Response:
    """The public facts about all tables that the key is for."""
    return json_response({"tables": call.offices.desk.tables(call.caller)})


@router.get("/tables/{name}", responses=result(TableModel))
async def get_table(name: str, call: Looking) -> Response:
    """The public facts about one table."""
    known = {each["name"]: each for each in call.offices.desk.tables(call.caller)}
    if name not in known:
        raise UnknownTable(name, known)
    return json_response(known[name])


def _endpoint(verb: Verb) -> Callable[..., Any]:
    """Returns the function behind the route of a verb; its name is the id of the route."""

    async def endpoint(body: Any, call: Any) -> Response:
        return await _done(call, OPERATIONS[verb.name], body)

    endpoint.__name__, endpoint.__doc__ = verb.name, verb.request.__doc__
    endpoint.__annotations__ = {"body": body_of(verb.request), "call": Working, "return": Response}
    return endpoint


def add_routes(verbs: Iterable[Verb], routes: APIRouter) -> None:
    """Adds a route for each verb that workers do."""
    for verb in verbs:
        if "http" in verb.faces and verb.name in OPERATIONS:
            path, described = (
                f"/{verb.name.replace('_', '-')}",
                work_result(MODELS[verb.document], forms=_has_forms(verb)),
            )
            routes.add_api_route(path, _endpoint(verb), methods=["POST"], responses=described)


def _has_forms(verb: Verb) -> bool:
    """Tells whether its result can leave as CSV and Arrow, too."""
    return verb.document == "answer"


add_routes(VERBS.values(), router)


async def _done(call: Call, operation: Operation, body: Request) -> Response:
    """The outcome of work, or the job that it has become."""
    work = Work(operation=operation, arguments=body.arguments, key=call.key, project=body.project)
    if _has_forms(VERBS[operation.value]) and body.wait:
        check_accepted(call.accept)
    if not body.wait:
        status = call.offices.desk.begin(call.caller, work)
        return json_response(job_document(status), 202, {"Location": f"/v1/jobs/{status.id}"})
    document = await watched(call.offices.desk.perform(call.caller, work), call.offices.identities, call.caller)
    return answer_response(document, call.accept)


async def watched(
    outcome: Coroutine[Any, Any, Document], identities: Identities, caller: Caller, *, again: float = LOOK_AGAIN
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
