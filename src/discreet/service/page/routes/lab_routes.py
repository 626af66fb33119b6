"""The lab: an attack on one's own table, whose result only the steward sees."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from discreet.errors import DiscreetError, InvalidParameter
from discreet.report.attack_finding import Finding
from discreet.service.api.http_responses import status_of
from discreet.service.caller import Permission
from discreet.service.page.page_request import PageRequest, PageRoute, is_refusal
from discreet.service.request_executor import OPERATIONS


async def show_attack(visit: PageRequest) -> Response:
    """Shows the form of the attack lab."""
    return _page(visit, visit.query_parameter("table"))


async def attack(visit: PageRequest) -> Response:
    """Attacks a table in a worker, and shows what was found."""
    table, columns = visit.text("table"), [name.strip() for name in visit.form.getlist("columns") if name.strip()]
    try:
        if not columns:
            raise InvalidParameter(
                "columns", "none", "to name at least one", "Choose the columns that others may know."
            )
        found = await visit.perform(OPERATIONS["attack"], {"table": table, "columns": columns})
    except DiscreetError as error:
        if not is_refusal(error):
            raise
        return _page(visit, table, status_of(error), columns=columns, error=error)
    drawn = Finding(**{name: found[name] for name in _DRAWN}).spec()
    return _page(visit, table, columns=columns, found=found, drawn=drawn)


_DRAWN = ("attack", "goal", "success", "baseline", "targets")


def _page(visit: PageRequest, table: str, status: int = 200, **shown: Any) -> Response:
    tables = [one for one in visit.site.desk.tables(visit.caller) if one["protected"]]
    chosen = next((one for one in tables if one["name"] == table), tables[0] if tables else None)
    context = {"columns": [], "found": None, "drawn": None, "error": None, **shown}
    return visit.page("attack.html", status, tables=tables, chosen=chosen, **context)


ROUTES = (
    PageRoute(method="GET", path="/attack", permission=Permission.ATTACK, handler=show_attack),
    PageRoute(method="POST", path="/attack", permission=Permission.ATTACK, handler=attack),
)
