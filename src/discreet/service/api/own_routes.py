"""Routes for what a caller may see: tables, people, keys, and of the ledger budgets, history, certificates, head."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from discreet.ledger.serialization import LONGEST_NAME
from discreet.requests.ledger_requests import GetHistory
from discreet.service.acts.people_acts import key_document, person_document
from discreet.service.api.error_responses import json_response
from discreet.service.api.request_models import PageModel, body_of
from discreet.service.api.response_models import (
    BudgetsModel,
    CertificateModel,
    HeadModel,
    HistoryModel,
    KeysModel,
    PeopleModel,
    TableModel,
    TablesModel,
    result,
)
from discreet.service.api.route_access import Looking, SecuredRoute

Page: Any = Annotated[body_of(GetHistory, base=PageModel), Query()]

router = APIRouter(prefix="/v1", route_class=SecuredRoute)


@router.get("/tables", responses=result(TablesModel), tags=["questions"])
async def list_tables(call: Looking) -> Response:
    """The public facts about all tables that the key is for."""
    return json_response({"tables": call.offices.desk.tables(call.caller)})


@router.get("/tables/{name}", responses=result(TableModel), tags=["questions"])
async def get_table(name: str, call: Looking) -> Response:
    """The public facts about one table."""
    return json_response(call.offices.table(call.caller, name))


@router.get("/budget", responses=result(BudgetsModel), tags=["ledger"])
def list_budgets(
    call: Looking,
    name: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only of this table or account.")] = None,
) -> Response:
    """What remains: of one's own part of each account, and of everybody's for those who see all."""
    return json_response({"budgets": call.offices.acts.budgets(call.caller, name)})


@router.get("/history", responses=result(HistoryModel), tags=["ledger"])
def get_history(asked: Page, call: Looking) -> Response:
    """A page of the ledger: one's own charges, or everything for those who see all."""
    return json_response(call.offices.acts.history(call.caller, **asked.arguments))


@router.get("/certificates/{sequence}", responses=result(CertificateModel), tags=["ledger"])
def get_certificate(sequence: int, call: Looking) -> Response:
    """What was promised about one charged question."""
    return json_response(call.offices.acts.certificate(call.caller, sequence))


@router.get("/anchor", responses=result(HeadModel), tags=["ledger"])
def get_anchor(call: Looking) -> Response:
    """The head of the ledger, to be kept elsewhere."""
    return json_response({"head": call.offices.acts.anchor(call.caller)})


@router.get("/people", responses=result(PeopleModel), tags=["people"])
def list_people(call: Looking) -> Response:
    """Everybody who is known."""
    return json_response({"people": [person_document(each) for each in call.offices.identities.people(call.caller)]})


@router.get("/keys", responses=result(KeysModel), tags=["people"])
def list_keys(call: Looking) -> Response:
    """All keys for those who manage people, for all others their own; never what proves them."""
    return json_response({"keys": [key_document(each) for each in call.offices.identities.keys(call.caller)]})
