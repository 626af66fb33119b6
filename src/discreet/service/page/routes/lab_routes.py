"""The lab: an attack on one's own table, for the steward's eyes."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from discreet.errors import DiscreetError, InvalidParameter
from discreet.report.charts import Spec
from discreet.report.finding import Finding
from discreet.service.api.error_responses import status_of
from discreet.service.caller import Permission
from discreet.service.desk import OPERATIONS, Document
from discreet.service.page.visit import PageRoute, Visit, is_refusal


async def show_attack(visit: Visit) -> Response:
    """Shows the form of the attack lab."""
    return _attack_page(visit, visit.asked("table"))


async def attack(visit: Visit) -> Response:
    """Attacks a table in a worker, and shows what was found."""
    table, columns = visit.text("table"), [name.strip() for name in visit.form.getlist("columns") if name.strip()]
    try:
        if not columns:
            raise InvalidParameter("columns", "none", "to be what others may know", "Choose one or more.")
        found = await visit.perform(OPERATIONS["attack"], {"table": table, "columns": columns})
    except DiscreetError as error:
        if not is_refusal(error):
            raise
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
    PageRoute(method="GET", path="/attack", permission=Permission.ATTACK, handler=show_attack),
    PageRoute(method="POST", path="/attack", permission=Permission.ATTACK, handler=attack),
)
