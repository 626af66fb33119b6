"""Pages of analysts: tables, the editor, answers and their files."""

from __future__ import annotations

import json

from starlette.responses import Response

from discreet.errors import DiscreetError, InvalidParameter
from discreet.noise.tokens import token
from discreet.requests.verb_table import VERBS
from discreet.service.caller import Permission
from discreet.service.page.document_view import RecentResult, outcome_of, tables_of
from discreet.service.page.page_request import PageRequest, PageRoute, attachment, is_refusal, to
from discreet.service.page.routes.verb_pages import VerbPage, perform_form, whose

FIRST = {"epsilon": "0.1"}
"""The values that the form begins with."""
EDITOR = VerbPage(VERBS["ask"], template="ask.html", usual=FIRST)


async def start(visit: PageRequest) -> Response:
    """Sends a caller to the page that their role needs first."""
    if visit.caller.may(Permission.SEE_ALL):
        return to("/overview")
    return to("/ask")


async def tables(visit: PageRequest) -> Response:
    """Shows all tables with their declared facts."""
    return visit.page("tables.html", tables=visit.site.desk.tables(visit.caller))


async def table(visit: PageRequest) -> Response:
    """Shows the declared facts of one table."""
    return visit.page("table.html", table=visit.site.table(visit.caller, visit.request.path_params["name"]))


async def explain(visit: PageRequest) -> Response:
    """Shows what a draft would cost and how wrong its answer would be; that is free, and a refusal is no failure."""
    found, error = None, None
    if visit.text("sql"):
        try:
            _, found = await perform_form(visit, VERBS["explain"], FIRST)
        except DiscreetError as refused:
            if not is_refusal(refused):
                raise
            error = refused
    return visit.page("fragments/explanation.html", told=found, error=error, key=token(16))


def _find_answer(visit: PageRequest) -> RecentResult:
    number = visit.request.path_params["number"]
    found = visit.site.answers.find(whose(visit), number)
    if found is None:
        hint = "Ask the same query again, which is free. The page keeps answers only for a while."
        raise InvalidParameter("answer", number, "to be one of your latest answers", hint)
    return found


async def kept_answer(visit: PageRequest) -> Response:
    """Shows an answer once more, on a page of its own."""
    found = _find_answer(visit)
    outcome = outcome_of(found.document, number=visit.request.path_params["number"])
    return visit.page("answer.html", question=found.question, outcome=outcome)


async def export_csv(visit: PageRequest) -> Response:
    """Returns the rows of a table of an answer as a file."""
    tables, place = tables_of(_find_answer(visit).document), visit.request.path_params.get("place", 1)
    if not 0 < place <= len(tables):
        raise InvalidParameter("table", place, "to be a table of the answer", "Load the page of the answer again.")
    return attachment(tables[place - 1].as_csv(), "text/csv; charset=utf-8", "answer.csv")


async def export_json(visit: PageRequest) -> Response:
    """Returns the whole document of an answer as a file."""
    found = _find_answer(visit)
    text = json.dumps({"question": found.question, **found.document}, indent=1)
    return attachment(text, "application/json", "answer.json")


_ANSWER = "/answers/{number:int}"
ROUTES = (
    PageRoute(method="GET", path="/", permission=Permission.SEE_TABLES, handler=start),
    PageRoute(method="GET", path="/tables", permission=Permission.SEE_TABLES, handler=tables),
    PageRoute(method="GET", path="/tables/{name}", permission=Permission.SEE_TABLES, handler=table),
    *EDITOR.routes,
    EDITOR.route("/rehearse", VERBS["rehearse"]),
    PageRoute(method="POST", path="/explain", permission=Permission.PLAN, handler=explain, verbs=("explain",)),
    PageRoute(method="GET", path=_ANSWER, permission=Permission.ASK, handler=kept_answer),
    PageRoute(method="GET", path=f"{_ANSWER}.csv", permission=Permission.ASK, handler=export_csv),
    PageRoute(method="GET", path=f"{_ANSWER}/{{place:int}}.csv", permission=Permission.ASK, handler=export_csv),
    PageRoute(method="GET", path=f"{_ANSWER}.json", permission=Permission.ASK, handler=export_json),
)
