"""Routes for long work: a job at one moment, its changes as they come, and its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from discreet.errors import DiscreetError
from discreet.service.api.error_responses import json_response
from discreet.service.api.response_models import JobModel, events_result, job_document, result
from discreet.service.api.route_access import Call, Looking, SecuredRoute
from discreet.service.api.verb_routes import LOOK_AGAIN
from discreet.service.desk import JobStatus

_SILENCE = 30  # looks without news after which a comment keeps the connection open

router = APIRouter(prefix="/v1/jobs", route_class=SecuredRoute, tags=["jobs"])


@router.get("/{job}", responses=result(JobModel))
async def get_job(job: str, call: Looking) -> Response:
    """A job of one's own, with its outcome once it has one."""
    return json_response(job_document(call.offices.desk.job(call.caller, job)))


@router.get("/{job}/events", responses=events_result())
async def follow_job(job: str, call: Looking) -> Response:
    """A job now and after each change, as server-sent events, until it has ended."""
    call.offices.desk.job(call.caller, job)  # so that what is unknown is an error and no stream
    return StreamingResponse(_changes(job, call), media_type="text/event-stream")


@router.delete("/{job}", responses=result(JobModel))
async def cancel_job(job: str, call: Looking) -> Response:
    """Stops a job; what was charged stays charged."""
    return json_response(job_document(call.offices.desk.cancel(call.caller, job)))


async def _changes(job: str, call: Call) -> AsyncIterator[str]:
    """Events until the job has ended, or the key of its caller has."""
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
                    yield f"event: status\ndata: {json.dumps(job_document(status))}\n\n"
                    coming = asyncio.ensure_future(anext(changes))
                elif silent % _SILENCE == 0:
                    yield ": still there\n\n"
    finally:
        coming.cancel()
