"""Protecting a table: a steward chooses a file, a worker scans it, and the steward declares what is known about it.

The form shows a warning for everything that is missing, and what that means for queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InvalidParameter
from discreet.privacy.budget import BUDGET_PARTS
from discreet.service.api.http_responses import status_of
from discreet.service.caller import Permission
from discreet.service.page.file_sources import FileSource, from_path, list_files, resolve, store_upload
from discreet.service.page.page_request import PageRequest, PageRoute, is_refusal, require_token, to
from discreet.service.page.request_forms import read_count
from discreet.service.page.uploaded_form import UploadedForm
from discreet.service.request_executor import OPERATIONS, Document

TYPES = ("int", "float", "text", "bool", "date", "timestamp")
BOUNDED = ("int", "float", "date", "timestamp")
_LARGEST_EPSILON = 10
_TEXTS = ("source", "name", "whose", "account", *BUDGET_PARTS, "neighbours", "version")
_LIMITS, _PRIVATE = ("max_groups", "max_rows"), {"limits": "private"}
_PARTS = ("column", "column-type", "column-low", "column-high", "column-keys")
"""The fields of each column in the form, in the order of `DeclaredColumn`."""


class DeclaredColumn(NamedTuple):
    """What a form says about one column; bounds and keys as they were typed."""

    name: str
    type: str
    low: str = ""
    high: str = ""
    keys: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def bounds(self) -> list[str | int | float]:
        """Returns both ends: numbers, or days as they are written."""
        return [self._end(self.low), self._end(self.high)]

    def _end(self, text: str) -> str | int | float:
        if self.type in ("date", "timestamp"):
            return text
        try:
            return int(text) if self.type == "int" or text.lstrip("+-").isdigit() else float(text)
        except ValueError:
            raise InvalidParameter(f"bounds of {self.name}", text, "to be a number", "Write e.g. 0 and 120.") from None

    @property
    def key_values(self) -> list[str | int | bool]:
        """Returns the keys, which are on lines or have commas between them."""
        texts = self.keys.splitlines() if "\n" in self.keys else self.keys.split(",")
        return [self._key(text.strip()) for text in texts if text.strip()]

    def _key(self, text: str) -> str | int | bool:
        if self.type == "bool":
            return text.lower() in ("true", "yes", "1")
        try:
            return int(text) if self.type == "int" else text
        except ValueError:
            raise InvalidParameter(f"keys of {self.name}", text, "to be whole numbers") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a form says about a table.

    Attributes:
        texts: its fields as they were typed.
        limits: how many groups, and rows in each, one person may have, or that they are found privately.
        columns: what it says about each.
        change: how it differs from the declaration in the ledger, as the steward was shown.
    """

    texts: Mapping[str, str]
    limits: Mapping[str, int | str]
    columns: tuple[DeclaredColumn, ...]
    change: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """Returns a field, empty if it is missing."""
        return self.texts.get(name, "")

    @property
    def each_row(self) -> bool:
        """Returns whether each row is protected alone."""
        return self.text("whose") == "row"

    @property
    def unit(self) -> str:
        """Returns the column of people's ids."""
        return "" if self.each_row else self.text("unit")

    @property
    def budget(self) -> dict[str, str]:
        """Returns the amounts that were given."""
        return {name: self.text(name) for name in BUDGET_PARTS if self.text(name)}

    @property
    def warnings(self) -> Iterator[str]:
        """Yields what is missing, and what that means for queries."""
        if self.each_row:
            yield "Each row is protected alone. If one person can have two rows, choose the column of their ids."
        elif not self.unit:
            yield "No unit: choose the column of people's ids, or choose that each row is one person."
        elif not self.limits:
            yield "No limits: write how many rows of one person count, or have the limits found privately."
        yield from self._about_budget()
        yield from self._about_columns()

    def _about_budget(self) -> Iterator[str]:
        if not self.budget:
            yield "No budget: a new account needs one. Leave it blank only to share an existing account."
        elif "delta" not in self.budget and "rho" not in self.budget:
            yield "No delta. Groups whose keys are not declared need a delta."
        try:
            if float(self.budget.get("epsilon", 0)) > _LARGEST_EPSILON:
                yield "An epsilon above 10 promises very little."
        except ValueError:
            yield "The epsilon is not a number."

    def _about_columns(self) -> Iterator[str]:
        others = [column for column in self.columns if column.name != self.unit]
        open_ended = [c.name for c in others if c.type in BOUNDED and not (c.low and c.high)]
        keyless = [c.name for c in others if c.type in ("text", "bool") and not c.keys]
        if open_ended:
            yield f"No bounds for {', '.join(open_ended)}: sums and means of these columns spend budget to find bounds."
        if keyless:
            yield f"No keys for {', '.join(keyless)}: grouping by these needs a delta, and hides small groups."

    def arguments(self, path: str) -> Document:
        """Returns the arguments of `Curator.protect`, as JSON.

        Raises:
            InvalidParameter: if something that is needed is missing.
        """
        if not self.unit and not self.each_row:
            hint = "Choose the column of people's ids, or choose that each row is one person."
            raise InvalidParameter("unit", None, "to say whose rows these are", hint)
        always = {"path": path, "name": self.text("name"), "types": {c.name: c.type for c in self.columns}}
        perhaps: dict[str, Any] = {
            "unit": self.unit,
            "budget": self.budget,
            "bounds": {c.name: c.bounds for c in self.columns if c.low and c.high},
            "keys": {c.name: c.key_values for c in self.columns if c.keys},
            "change": list(self.change),
            **{name: self.text(name) for name in ("account", "neighbours", "version")},
        }
        return {**always, **self.limits, **{name: value for name, value in perhaps.items() if value}}


def declaration(visit: PageRequest) -> Declaration:
    """Returns what a form says about a table.

    Raises:
        InvalidParameter: if a limit is not a number, or a type is unknown.
    """
    parts = [visit.form.getlist(part) for part in _PARTS]
    if len({len(values) for values in parts}) > 1:
        raise InvalidParameter("form", "this one", "to describe every column", "Load the page again.")
    columns = [
        DeclaredColumn(name, kind.strip(), low.strip(), high.strip(), keys.strip())
        for name, kind, low, high, keys in zip(*parts, strict=True)
    ]
    for column in columns:
        if column.type not in TYPES:
            raise InvalidParameter(f"type of {column.name}", column.type, f"to be one of {', '.join(TYPES)}")
    texts = {name: visit.text(name) for name in _TEXTS} | {"unit": visit.form.get("unit", "")}
    counts = {name: found for name in _LIMITS if (found := read_count(visit.form, name)) is not None}
    limits = _PRIVATE if visit.text("limits") == "private" else counts
    change = tuple(visit.form.getlist("seen")) if visit.text("change") else ()
    return Declaration(texts=texts, limits=limits, columns=tuple(columns), change=change)


def propose_declaration(found: Document, source: str, name: str) -> Declaration:
    """Returns the form that is proposed for a file that a worker has scanned: types, and bounds of kinds by name.

    Bounds and keys are never taken from the data.
    """
    texts = {"source": source, "name": name, "unit": str(found.get("unit") or ""), "epsilon": "1"}
    columns = tuple(map(_propose_column, found.get("columns", ())))
    return Declaration(texts=texts, limits=_PRIVATE, columns=columns)


def _propose_column(column: Mapping[str, Any]) -> DeclaredColumn:
    low, high = column.get("bounds") or ("", "")
    remarks = tuple(map(str, column.get("remarks", ())))
    kind = str(column.get("type", "text"))
    return DeclaredColumn(str(column["name"]), kind, str(low), str(high), remarks=remarks)


# ------------------------------------------------------------------------------------------------------ pages


async def choose_file(visit: PageRequest) -> Response:
    """Shows how to upload or name a file."""
    return visit.page("protect.html", files=list_files(visit.site.settings))


async def upload(visit: PageRequest) -> Response:
    """Takes a file, piece by piece, after the form's token was seen."""
    form = UploadedForm(visit.request)
    await form.begin()
    require_token(visit, form.fields)
    return _to_declare(await store_upload(form.filename or "", form.content(), visit.site.settings))


async def choose_path(visit: PageRequest) -> Response:
    """Takes a path inside a listed folder."""
    return _to_declare(from_path(visit.text("path"), visit.site.settings))


def _to_declare(source: FileSource) -> Response:
    return to(f"/protect/declare?{urlencode({'source': source.name})}")


async def show_declaration(visit: PageRequest) -> Response:
    """Shows the form for a file that a worker has scanned."""
    source = resolve(visit.query_parameter("source"), visit.site.settings)
    found = await visit.perform(OPERATIONS["inspect"], {"path": str(source.path)})
    name = "" if source.name.startswith("upload/") else str(found.get("name", ""))
    return _form(visit, source, propose_declaration(found, source.name, name), found)


def _form(visit: PageRequest, source: FileSource, told: Declaration, found: Document, error: Any = None) -> Response:
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


async def declare(visit: PageRequest) -> Response:
    """Protects the table, or shows the form again with all that is missing."""
    told = declaration(visit)
    source = resolve(told.text("source"), visit.site.settings)
    if visit.text("act") != "protect":
        return _form(visit, source, told, {})
    try:
        await visit.perform(OPERATIONS["protect"], told.arguments(str(source.path)))
    except DiscreetError as error:
        if not is_refusal(error):
            raise
        return _form(visit, source, told, {}, error)
    return visit.page("protected.html", name=told.text("name"), account=told.text("account") or told.text("name"))


ROUTES = (
    PageRoute(method="GET", path="/protect", permission=Permission.PROTECT, handler=choose_file),
    PageRoute(method="POST", path="/protect/upload", permission=Permission.PROTECT, handler=upload, streams=True),
    PageRoute(method="POST", path="/protect/path", permission=Permission.PROTECT, handler=choose_path),
    PageRoute(method="GET", path="/protect/declare", permission=Permission.PROTECT, handler=show_declaration),
    PageRoute(method="POST", path="/protect/declare", permission=Permission.PROTECT, handler=declare),
)
