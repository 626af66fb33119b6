"""Protecting a table: a file is chosen, a worker looks into it, and a steward declares what is known about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.service.api.error_responses import status_of
from discreet.service.caller import Permission
from discreet.service.desk import OPERATIONS, Document
from discreet.service.page.file_sources import FileSource, from_path, listed, resolve, store_upload
from discreet.service.page.steward_forms import TYPES, Declaration, declaration, inspected
from discreet.service.page.uploaded_form import UploadedForm
from discreet.service.page.visit import PageRoute, Visit, is_refusal, require_token, to


async def choose_file(visit: Visit) -> Response:
    """Shows where a file can come from."""
    return visit.page("protect.html", files=listed(visit.site.settings))


async def upload(visit: Visit) -> Response:
    """Takes a file, piece by piece, after the form's token was seen."""
    form = UploadedForm(visit.request)
    await form.begin()
    require_token(visit, form.fields)
    stored = await store_upload(form.filename or "", form.content(), visit.site.settings)
    return _to_declare(stored)


async def choose_path(visit: Visit) -> Response:
    """Takes a path inside a root."""
    return _to_declare(from_path(visit.text("path"), visit.site.settings))


def _to_declare(source: FileSource) -> Response:
    return to(f"/protect/declare?{urlencode({'source': source.name})}")


async def show_declaration(visit: Visit) -> Response:
    """Shows the form for a file that a worker has looked into."""
    source = resolve(visit.asked("source"), visit.site.settings)
    found = await visit.perform(OPERATIONS["inspect"], {"path": str(source.path)})
    uploaded = source.name.startswith("upload/")
    told = inspected(found, source.name, "" if uploaded else str(found.get("name", "")))
    return _form(visit, source, told, found)


def _form(visit: Visit, source: FileSource, told: Declaration, found: Document, error: Any = None) -> Response:
    return visit.page(
        "declare.html",
        200 if error is None else status_of(error),
        told=told,
        label=source.label,
        columns=[(column.name, column.name) for column in told.columns],
        types=TYPES,
        remarks=found.get("remarks", ()),
        error=error,
    )


async def declare(visit: Visit) -> Response:
    """Protects the table, or shows the form again with all that is missing."""
    told = declaration(visit)
    source = resolve(told.source, visit.site.settings)
    if visit.text("act") != "protect":
        return _form(visit, source, told, {})
    try:
        await visit.perform(OPERATIONS["protect"], told.arguments(str(source.path)))
    except DiscreetError as error:
        if not is_refusal(error):
            raise
        return _form(visit, source, told, {}, error)
    return visit.page("protected.html", name=told.name, account=told.account or told.name)


ROUTES = (
    PageRoute(method="GET", path="/protect", permission=Permission.PROTECT, handler=choose_file),
    PageRoute(method="POST", path="/protect/upload", permission=Permission.PROTECT, handler=upload, streams=True),
    PageRoute(method="POST", path="/protect/path", permission=Permission.PROTECT, handler=choose_path),
    PageRoute(method="GET", path="/protect/declare", permission=Permission.PROTECT, handler=show_declaration),
    PageRoute(method="POST", path="/protect/declare", permission=Permission.PROTECT, handler=declare),
)
