"""The routes that are written by hand: what a caller may see of tables, people, keys and the ledger, and their jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from discreet.errors import DiscreetError
from discreet.ledger.serialization import LONGEST_NAME
from discreet.requests.ledger_requests import GetHistory
from discreet.service.acts.people_actions import KEY, PERSON
from discreet.service.api.http_responses import json_response
from discreet.service.api.request_bodies import PageModel, body_of
from discreet.service.api.response_models import (
    JOB,
    BudgetsModel,
    CertificateModel,
    HeadModel,
    HistoryModel,
    JobModel,
    KeysModel,
    PeopleModel,
    TableModel,
    TablesModel,
    events_result,
    result,
)
from discreet.service.api.route_access import Looking, RouteCall, SecuredRoute
from discreet.service.api.verb_routes import LOOK_AGAIN
from discreet.service.request_executor import JobStatus

_SILENCE = 30  # looks without news after which a comment keeps the connection open

Page: Any = Annotated[body_of(GetHistory, base=PageModel), Query()]

router = APIRouter(prefix="/v1", route_class=SecuredRoute)


@router.get("/tables", responses=result(TablesModel), tags=["questions"])
async def list_tables(call: Looking) -> Response:
    """Returns the public facts about all tables that the key is for."""
    return json_response({"tables": call.offices.desk.tables(call.caller)})


@router.get("/tables/{name}", responses=result(TableModel), tags=["questions"])
async def get_table(name: str, call: Looking) -> Response:
    """Returns the public facts about one table."""
    return json_response(call.offices.table(call.caller, name))


@router.get("/budget", responses=result(BudgetsModel), tags=["ledger"])
def list_budgets(
    call: Looking,
    name: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only of this table or account.")] = None,
) -> Response:
    """Returns your remaining budget on each account, and that of all people if you may see it."""
    return json_response({"budgets": call.offices.acts.budgets(call.caller, name)})


@router.get("/history", responses=result(HistoryModel), tags=["ledger"])
def get_history(asked: Page, call: Looking) -> Response:
    """Returns a page of the ledger: your own charges, or all entries if you may see them."""
    return json_response(call.offices.acts.history(call.caller, **asked.arguments))


@router.get("/certificates/{sequence}", responses=result(CertificateModel), tags=["ledger"])
def get_certificate(sequence: int, call: Looking) -> Response:
    """Returns what was promised about one charged query."""
    return json_response(call.offices.acts.certificate(call.caller, sequence))


@router.get("/anchor", responses=result(HeadModel), tags=["ledger"])
def get_anchor(call: Looking) -> Response:
    """Returns the head of the ledger, to be kept elsewhere."""
    return json_response({"head": call.offices.acts.anchor(call.caller)})


@router.get("/people", responses=result(PeopleModel), tags=["people"])
def list_people(call: Looking) -> Response:
    """Returns all people who are known to the service."""
    return json_response({"people": [PERSON.write(each) for each in call.offices.identities.people(call.caller)]})


@router.get("/keys", responses=result(KeysModel), tags=["people"])
def list_keys(call: Looking) -> Response:
    """Returns your own keys, or all keys if you manage people; never their secrets."""
    return json_response({"keys": [KEY.write(each) for each in call.offices.identities.keys(call.caller)]})


@router.get("/jobs/{job}", responses=result(JobModel), tags=["jobs"])
async def get_job(job: str, call: Looking) -> Response:
    """Returns a job of your own, with its outcome once it has one."""
    return json_response(JOB.write(call.offices.desk.job(call.caller, job)))


@router.get("/jobs/{job}/events", responses=events_result(), tags=["jobs"])
async def follow_job(job: str, call: Looking) -> Response:
    """Sends a job now and after each change, as server-sent events, until it has ended."""
    call.offices.desk.job(call.caller, job)  # so that what is unknown is an error and no stream
    return StreamingResponse(_changes(job, call), media_type="text/event-stream")


@router.delete("/jobs/{job}", responses=result(JobModel), tags=["jobs"])
async def cancel_job(job: str, call: Looking) -> Response:
    """Stops a job; what was charged stays charged."""
    return json_response(JOB.write(call.offices.desk.cancel(call.caller, job)))


async def _changes(job: str, call: RouteCall) -> AsyncIterator[str]:
    """Yields events until the job has ended, or the key of its caller has."""
    changes = call.offices.desk.follow(call.caller, job)
    coming: asyncio.Future[JobStatus] = asyncio.ensure_future(anext(changes))
    silent = 0
    try:
        with suppress(StopAsyncIteration, DiscreetError):
            while True:
                await asyncio.wait([coming], timeout=LOOK_AGAIN)
                call.offices.identities.caller_of_key(call.caller.credential)
                silent += 1
                if coming.done():
                    status, silent = coming.result(), 0
                    yield f"event: status\ndata: {json.dumps(JOB.write(status))}\n\n"
                    coming = asyncio.ensure_future(anext(changes))
                elif silent % _SILENCE == 0:
                    yield ": still there\n\n"
    finally:
        coming.cancel()
