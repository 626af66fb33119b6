"""Routes for work: tables, questions before and after they are paid, learners."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from discreet.errors import UnknownTable
from discreet.service.api.answer_forms import answer_response, check_accepted
from discreet.service.api.error_responses import json_response
from discreet.service.api.request_models import (
    Asked,
    AskedTogether,
    Compared,
    Explained,
    Fitted,
    Profiled,
    Rehearsed,
    Request,
)
from discreet.service.api.response_models import (
    AnswerModel,
    AnswersModel,
    ChoicesModel,
    ExplanationModel,
    FitPlanModel,
    ProfileModel,
    TableModel,
    TablesModel,
    TrainedModel,
    job_document,
    result,
    work_result,
)
from discreet.service.api.route_access import Call, Looking, SecuredRoute, Working
from discreet.service.caller import Caller
from discreet.service.desk import Document, Operation, Work
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


@router.post("/explain", responses=work_result(ExplanationModel))
async def explain(body: Explained, call: Working) -> Response:
    """What a question would read and cost, and how wrong its answer would be; free."""
    return await _done(call, Operation.EXPLAIN, body)


@router.post("/rehearse", responses=work_result(AnswerModel, forms=True))
async def rehearse(body: Rehearsed, call: Working) -> Response:
    """The shape of an answer, on rows that are made up from declarations; free."""
    return await _done(call, Operation.REHEARSE, body)


@router.post("/choose-epsilon", responses=work_result(ChoicesModel))
async def choose_epsilon(body: Compared, call: Working) -> Response:
    """Budgets side by side for a question; free."""
    return await _done(call, Operation.CHOOSE_EPSILON, body)


@router.post("/ask", responses=work_result(AnswerModel, forms=True))
async def ask(body: Asked, call: Working) -> Response:
    """A private answer, charged before anything is read; a stored one that is as good is free."""
    return await _done(call, Operation.ASK, body)


@router.post("/ask-many", responses=work_result(AnswersModel))
async def ask_many(body: AskedTogether, call: Working) -> Response:
    """An answer to each question, for one charge."""
    return await _done(call, Operation.ASK_MANY, body)


@router.post("/profile", responses=work_result(ProfileModel))
async def profile(body: Profiled, call: Working) -> Response:
    """A paid portrait of a table; from then on answers about it say what they leave out."""
    return await _done(call, Operation.PROFILE, body)


@router.post("/fit", responses=work_result(TrainedModel))
async def fit(body: Fitted, call: Working) -> Response:
    """A private learner, trained on rows that one SELECT names."""
    return await _done(call, Operation.FIT, body)


@router.post("/plan-fit", responses=work_result(FitPlanModel))
async def plan_fit(body: Fitted, call: Working) -> Response:
    """What a fit would release and cost; free."""
    return await _done(call, Operation.PLAN_FIT, body)


async def _done(call: Call, operation: Operation, body: Request) -> Response:
    """The outcome of work, or the job that it has become."""
    work = Work(operation=operation, arguments=body.arguments, key=call.key, project=body.project)
    if operation in (Operation.ASK, Operation.REHEARSE) and body.wait:
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
