"""The lab: budgets side by side for one question, and an attack on one's own table, for the steward's eyes."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from discreet.errors import DiscreetError, InvalidParameter
from discreet.presentation.documents import read_choices
from discreet.report.charts import Spec
from discreet.report.finding import Finding
from discreet.service.caller import Permission
from discreet.service.desk import OPERATIONS, Document
from discreet.service.page.page_templates import first_question
from discreet.service.page.steward_forms import whole_number
from discreet.service.page.visit import PageRoute, Visit, status_of

CANDIDATES = "0.1, 0.5, 1, 2"


async def choose_epsilon(visit: Visit) -> Response:
    """Shows the form, and what budgets buy and give away once a question is sent."""
    found, error, status = None, None, 200
    if visit.text("question"):
        try:
            found = read_choices(await visit.perform(OPERATIONS["choose_epsilon"], **_candidates(visit)))
        except DiscreetError as refused:
            error, status = refused, status_of(refused)
    tables = visit.site.desk.tables(visit.caller)
    return visit.page(
        "choose_epsilon.html",
        status,
        question=visit.text("question") or _first(tables),
        candidates=visit.text("candidates", CANDIDATES),
        rows=visit.text("rows", "1000"),
        delta=visit.text("delta"),
        schema={one["name"]: [{"name": c["name"], "type": c["type"]} for c in one["columns"]] for one in tables},
        found=found,
        drawn=None if found is None else found.spec(),
        error=error,
    )


def _first(tables: list[Document]) -> str:
    return next((first_question(one["name"]) for one in tables if one["protected"]), "")


def _candidates(visit: Visit) -> Document:
    given = [text.strip() for text in visit.text("candidates", CANDIDATES).split(",") if text.strip()]
    rows = whole_number(visit, "rows", 1000)
    return {"sql": visit.text("question"), "candidates": given, "rows": rows, "delta": visit.text("delta") or None}


async def show_attack(visit: Visit) -> Response:
    """Shows the form of the attack lab."""
    return _attack_page(visit, visit.asked("table"))


async def attack(visit: Visit) -> Response:
    """Attacks a table in a worker, and shows what was found."""
    table, columns = visit.text("table"), visit.texts("columns")
    try:
        if not columns:
            raise InvalidParameter("columns", "none", "to be what others may know", "Choose one or more.")
        found = await visit.perform(OPERATIONS["attack"], table=table, columns=columns)
    except DiscreetError as error:
        return _attack_page(visit, table, columns, error=error)
    return _attack_page(visit, table, columns, found=found)


def _attack_page(
    visit: Visit, table: str, columns: list[str] | None = None, found: Document | None = None, error: Any = None
) -> Response:
    tables = [one for one in visit.site.desk.tables(visit.caller) if one["protected"]]
    chosen = next((one for one in tables if one["name"] == table), tables[0] if tables else None)
    return visit.page(
        "attack.html",
        200 if error is None else status_of(error),
        tables=tables,
        chosen=chosen,
        columns=columns or [],
        found=found,
        drawn=None if found is None else _drawn(found),
        error=error,
    )


def _drawn(found: Document) -> Spec:
    names = ("attack", "goal", "success", "baseline", "targets")
    return Finding(**{name: found[name] for name in names}).spec()


ROUTES = (
    PageRoute(method="GET", path="/choose-epsilon", permission=Permission.PLAN, handler=choose_epsilon),
    PageRoute(method="POST", path="/choose-epsilon", permission=Permission.PLAN, handler=choose_epsilon),
    PageRoute(method="GET", path="/attack", permission=Permission.ATTACK, handler=show_attack),
    PageRoute(method="POST", path="/attack", permission=Permission.ATTACK, handler=attack),
)
