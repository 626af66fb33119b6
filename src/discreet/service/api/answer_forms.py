"""In which form an answer leaves: JSON, CSV or Arrow, as the Accept header says."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from discreet.curator.asking.answer import Answer
from discreet.lazy import pa
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.report.csv_text import csv_text
from discreet.requests.verb_table import Verb
from discreet.service.api.http_responses import json_response
from discreet.service.desk import Document

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
_ANY = {"*/*": JSON, "application/*": JSON, "text/*": CSV}


def has_forms(verb: Verb) -> bool:
    """Tells whether its result can leave as CSV and Arrow, too."""
    return verb.document == "answer"


def answer_response(document: Document, accept: str) -> Response:
    """Returns an answer in the form that is accepted; every other document is JSON.

    Raises:
        HTTPException: 406 if none of the forms is accepted.
    """
    form = choose_form(accept) if document.get("kind") == "answer" else JSON
    if form == JSON:
        return json_response(document)
    answer = ANSWER.read(document)
    headers = {"Discreet-Cost": str(answer.cost), "Discreet-Remaining": str(answer.remaining)}
    return Response(_FORMS[form](answer, document), headers=headers, media_type=form)


def choose_form(accept: str) -> str:
    """Returns the form that a header wants most; the first of those that it wants alike.

    It is called before anything is paid, so that nobody pays for an answer that cannot be sent.

    Raises:
        HTTPException: 406 if it wants none of them.

    >>> choose_form("text/csv;q=0.5, application/json;q=0.4"), choose_form("*/*")
    ('text/csv', 'application/json')
    """
    found: dict[str, float] = {}
    for part in accept.split(","):
        name, *options = (each.strip().lower() for each in part.split(";"))
        form = _ANY.get(name, name)
        if form in (JSON, CSV, ARROW) and (weight := _weight(options)) > 0:
            found[form] = max(weight, found.get(form, 0.0))
    if not found:
        raise HTTPException(406)
    return max(found, key=lambda form: found[form])


def _weight(options: list[str]) -> float:
    text = next((option[2:] for option in options if option.startswith("q=")), "1")
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _csv(answer: Answer, _: Document) -> bytes:
    return csv_text(answer.columns, answer.records).encode("utf-8", "backslashreplace")


def _arrow(answer: Answer, document: Document) -> bytes:
    """A stream whose schema says what the answer says beside its rows."""
    facts = {name: part for name, part in document.items() if name != "rows"}
    table = answer.to_arrow().replace_schema_metadata({"discreet": json.dumps(facts)})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


_FORMS: Mapping[str, Callable[[Answer, Document], Any]] = {CSV: _csv, ARROW: _arrow}
