"""Pages of those who ask: tables, the editor, answers and what can be taken away of them."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from discreet.errors import (
    DiscreetError,
    InvalidParameter,
    QueryFailed,
    TooManyRequests,
    UnknownTable,
    UnsupportedQuery,
)
from discreet.noise.tokens import token
from discreet.service.caller import Permission
from discreet.service.desk import OPERATIONS, Document, Operation
from discreet.service.page.answer_view import answer_view, as_csv
from discreet.service.page.kept_answers import Kept
from discreet.service.page.visit import PageRoute, Visit, status_of, to

FIRST = "0.1"
"""The epsilon that the form begins with."""

MOST_DRAFT = 20_000  # characters of a question


async def start(visit: Visit) -> Response:
    """Sends everybody to the page that they need first."""
    if visit.caller.may(Permission.SEE_ALL):
        return to("/overview")
    return to("/ask")


async def tables(visit: Visit) -> Response:
    """Shows all tables with their declared facts."""
    return visit.page("tables.html", tables=visit.site.desk.tables(visit.caller))


async def table(visit: Visit) -> Response:
    """Shows one table."""
    name = visit.request.path_params["name"]
    known = visit.site.desk.tables(visit.caller)
    found = next((one for one in known if one["name"] == name), None)
    if found is None:
        raise UnknownTable(name, [one["name"] for one in known])
    return visit.page("table.html", table=found)


async def editor(visit: Visit) -> Response:
    """Shows the form in which questions are written."""
    tables = visit.site.desk.tables(visit.caller)
    return visit.page("ask.html", **_draft(visit, tables, visit.asked("question")), answer=None, outcome=None)


def _draft(visit: Visit, tables: list[Document], question: str) -> dict[str, Any]:
    schema = {one["name"]: [{"name": c["name"], "type": c["type"]} for c in one["columns"]] for one in tables}
    return {
        "tables": tables,
        "schema": schema,
        "question": question[:MOST_DRAFT],
        "epsilon": visit.text("epsilon", FIRST),
        "delta": visit.text("delta"),
        "project": visit.caller.project or visit.text("project"),
        "key": token(16),
    }


def _arguments(visit: Visit) -> Document:
    question = visit.text("question")
    if not question:
        raise InvalidParameter("question", "", "to be one SELECT", "Write a question first.")
    return {"sql": question, "epsilon": visit.text("epsilon", FIRST), "delta": visit.text("delta") or None}


async def explain(visit: Visit) -> Response:
    """Shows what a draft would cost and how wrong its answer would be; that is free, and a refusal is no failure."""
    found, error = None, None
    if visit.text("question"):
        try:
            found = await visit.perform(OPERATIONS["explain"], **_arguments(visit))
        except DiscreetError as refused:
            if status_of(refused) >= 500 or isinstance(refused, TooManyRequests):
                raise
            error = refused
    return visit.page("fragments/explanation.html", told=found, error=error, key=token(16))


async def ask(visit: Visit) -> Response:
    """Asks, and shows the answer."""
    key = visit.text("key") or token(16)
    return await _answered(visit, OPERATIONS["ask"], key)


async def rehearse(visit: Visit) -> Response:
    """Shows what an answer would look like, on rows that are made up."""
    return await _answered(visit, OPERATIONS["rehearse"], None)


async def _answered(visit: Visit, operation: Operation, key: str | None) -> Response:
    question = visit.text("question")
    try:
        document = await visit.perform(operation, key, **_arguments(visit))
    except (QueryFailed, UnsupportedQuery, DiscreetError) as error:
        if visit.partial:
            status = 429 if isinstance(error, TooManyRequests) else 200
            return visit.page("fragments/outcome.html", status, answer=None, error=error, key=token(16), number=0)
        raise
    rehearsed = operation is OPERATIONS["rehearse"]
    number = 0 if rehearsed else visit.site.answers.add(_whose(visit), Kept(question=question, document=document))
    outcome: dict[str, Any] = {
        "answer": answer_view(document),
        "error": None,
        "number": number,
        "receipt": document.get("receipt"),
        "rehearsed": rehearsed,
        "key": token(16),
    }
    if visit.partial:
        return visit.page("fragments/outcome.html", **outcome)
    tables = visit.site.desk.tables(visit.caller)
    return visit.page("ask.html", **{**_draft(visit, tables, question), "outcome": outcome}, answer=outcome["answer"])


def _whose(visit: Visit) -> str:
    """Under whom answers are kept: a session of a key for some tables sees those of its own only."""
    caller = visit.caller
    return caller.name if caller.tables is None else f"{caller.name}\n{caller.credential}"  # no name has a line break


def _kept(visit: Visit) -> Kept:
    number = visit.request.path_params["number"]
    found = visit.site.answers.find(_whose(visit), number)
    if found is None:
        hint = "Answers are kept for a while: ask the same question again, which is free."
        raise InvalidParameter("answer", number, "to be one that you have just got", hint)
    return found


async def kept_answer(visit: Visit) -> Response:
    """Shows an answer once more, by itself."""
    found = _kept(visit)
    outcome: dict[str, Any] = {
        "answer": answer_view(found.document),
        "error": None,
        "number": visit.request.path_params["number"],
        "receipt": found.document.get("receipt"),
        "rehearsed": False,
    }
    return visit.page("answer.html", question=found.question, **outcome)


async def export_csv(visit: Visit) -> Response:
    """Gives the rows of an answer as a file."""
    return attachment(as_csv(_kept(visit).document), "text/csv; charset=utf-8", "answer.csv")


async def export_json(visit: Visit) -> Response:
    """Gives the whole document of an answer as a file."""
    found = _kept(visit)
    text = json.dumps({"question": found.question, **found.document}, indent=1)
    return attachment(text, "application/json", "answer.json")


def attachment(text: str, kind: str, name: str) -> Response:
    """Returns a file that the browser saves, and never shows as a page of ours."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


ROUTES = (
    PageRoute(method="GET", path="/", permission=Permission.SEE_TABLES, handler=start),
    PageRoute(method="GET", path="/tables", permission=Permission.SEE_TABLES, handler=tables),
    PageRoute(method="GET", path="/tables/{name}", permission=Permission.SEE_TABLES, handler=table),
    PageRoute(method="GET", path="/ask", permission=Permission.ASK, handler=editor),
    PageRoute(method="POST", path="/explain", permission=Permission.PLAN, handler=explain),
    PageRoute(method="POST", path="/ask", permission=Permission.ASK, handler=ask),
    PageRoute(method="POST", path="/rehearse", permission=Permission.PLAN, handler=rehearse),
    PageRoute(method="GET", path="/answers/{number:int}", permission=Permission.ASK, handler=kept_answer),
    PageRoute(method="GET", path="/answers/{number:int}.csv", permission=Permission.ASK, handler=export_csv),
    PageRoute(method="GET", path="/answers/{number:int}.json", permission=Permission.ASK, handler=export_json),
)
