"""Routes for the book: budgets, history, certificates, proof, and the acts of stewards."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from discreet.requests.ledger_requests import Allot, Amend, Appoint, Renew, Unlock
from discreet.service.api.error_responses import json_response
from discreet.service.api.request_models import BudgetModel, Model, body_of
from discreet.service.api.response_models import (
    BalanceModel,
    BudgetsModel,
    CertificateModel,
    HeadModel,
    HistoryModel,
    PersonModel,
    result,
)
from discreet.service.api.route_access import Looking, SecuredRoute

_LARGEST = (1 << 62) - 1

_ACCOUNT = ("account",)  # it is part of the path
Amended: Any = body_of(Amend, base=Model, without=_ACCOUNT)
Renewed: Any = body_of(Renew, base=Model, without=_ACCOUNT)
Unlocked: Any = body_of(Unlock, base=Model, without=_ACCOUNT)
Allotted: Any = body_of(Allot, base=Model, without=_ACCOUNT)
Appointed: Any = body_of(Appoint, base=Model)

router = APIRouter(prefix="/v1", route_class=SecuredRoute, tags=["book"])


@router.get("/budget", responses=result(BudgetsModel))
def list_budgets(call: Looking) -> Response:
    """What is left: of one's own part of each account, and of everybody's for those who see all."""
    return json_response({"budgets": call.offices.acts.budgets(call.caller)})


@router.get("/history", responses=result(HistoryModel))
def get_history(
    call: Looking,
    after: Annotated[int, Query(ge=0, le=_LARGEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    account: Annotated[str | None, Query(max_length=200)] = None,
    analyst: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """A page of the book: one's own charges, or everything for those who see all."""
    found = call.offices.acts.history(call.caller, after=after, limit=limit, account=account, analyst=analyst)
    return json_response(found)


@router.get("/certificates/{sequence}", responses=result(CertificateModel))
def get_certificate(sequence: int, call: Looking) -> Response:
    """What was promised about one charged question."""
    return json_response(call.offices.acts.certificate(call.caller, sequence))


@router.post("/verify", responses=result(HeadModel))
def verify(call: Looking) -> Response:
    """Walks the whole book, and tells its head if nothing was changed."""
    head = call.offices.acts.verify(call.caller)
    return json_response({"head": str(head)})


@router.get("/anchor", responses=result(HeadModel))
def get_anchor(call: Looking) -> Response:
    """The head of the book, to be kept elsewhere."""
    return json_response({"head": call.offices.acts.anchor(call.caller)})


@router.post("/accounts/{account}/amend", responses=result(BalanceModel))
def amend(account: str, body: Amended, call: Looking) -> Response:
    """Gives an account another budget; what was spent stays spent."""
    return json_response(call.offices.acts.amend(call.caller, account, _amounts(body.budget), note=body.note or ""))


@router.post("/accounts/{account}/renew", responses=result(BalanceModel))
def renew(account: str, body: Renewed, call: Looking) -> Response:
    """Starts a new period of an account with nothing spent."""
    budget = None if body.budget is None else _amounts(body.budget)
    return json_response(call.offices.acts.renew(call.caller, account, budget, note=body.note or ""))


@router.post("/accounts/{account}/unlock", responses=result(BalanceModel))
def unlock(account: str, body: Unlocked, call: Looking) -> Response:
    """Gives everybody's failure credits on an account back."""
    return json_response(call.offices.acts.unlock(call.caller, account, note=body.note or ""))


@router.post("/appointments", responses=result(PersonModel))
def appoint(body: Appointed, call: Looking) -> Response:
    """Gives somebody a role on an account, or on all, and perhaps a cap of their own."""
    cap = None if body.cap is None else _amounts(body.cap)
    return json_response(
        call.offices.acts.appoint(call.caller, body.who, body.role, account=body.account or "", cap=cap)
    )


@router.post("/accounts/{account}/allotments", responses=result(BalanceModel))
def allot(account: str, body: Allotted, call: Looking) -> Response:
    """Gives a project a cap on an account."""
    made = call.offices.acts.allot(
        call.caller, body.project, account=account, cap=_amounts(body.cap), note=body.note or ""
    )
    return json_response(made)


def _amounts(budget: BudgetModel) -> dict[str, Any]:
    return budget.model_dump(exclude_none=True)
