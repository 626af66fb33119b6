"""Declarations about a table, which stewards write into a form, with a warning for all that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidParameter
from discreet.service.desk import Document
from discreet.service.page.request_forms import AMOUNTS, read_count
from discreet.service.page.visit import Visit

TYPES = ("int", "float", "text", "bool", "date", "timestamp")
BOUNDED = ("int", "float", "date", "timestamp")
_LARGEST_EPSILON = 10
_DELTA_HINT = "Groups whose keys are not declared need a delta."


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn:
    """What a form says about one column; bounds and keys as they were typed."""

    name: str
    type: str
    low: str = ""
    high: str = ""
    keys: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a form says about a table."""

    source: str
    name: str
    unit: str = ""
    each_row: bool = False
    account: str = ""
    amounts: Mapping[str, str]
    max_groups: int = 1
    max_rows: int = 1
    neighbours: str = ""
    version: str = ""
    columns: tuple[DeclaredColumn, ...] = ()
    change: tuple[str, ...] = ()
    """How it differs from the declaration in the book, as the steward was shown."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is missing, and what that means for questions."""
        return (*self._about_people(), *self._about_budget(), *self._about_columns())

    def _about_people(self) -> tuple[str, ...]:
        if not self.unit and not self.each_row:
            return ("No unit: say which column holds the ids of people, or that each row is one person.",)
        if self.each_row:
            return ("Each row is protected alone. If somebody can have two rows, choose the column of their ids.",)
        told = "At most 1 row of each person counts in a group, and in 1 group: raise the limits if people have more."
        return (told,) if self.max_groups == self.max_rows == 1 else ()

    def _about_budget(self) -> tuple[str, ...]:
        if not self.amounts:
            return ("No budget: a new account needs one. Leave it empty only to share an account that exists.",)
        told = [] if "delta" in self.amounts or "rho" in self.amounts else [f"No delta. {_DELTA_HINT}"]
        try:
            large = float(self.amounts.get("epsilon", 0)) > _LARGEST_EPSILON
        except ValueError:
            return (*told, "The epsilon is no number.")
        return (*told, *(["An epsilon above 10 promises very little."] if large else []))

    def _about_columns(self) -> tuple[str, ...]:
        others = [column for column in self.columns if column.name != self.unit]
        open_ended = [c.name for c in others if c.type in BOUNDED and not (c.low and c.high)]
        keyless = [c.name for c in others if c.type in ("text", "bool") and not c.keys]
        told = []
        if open_ended:
            told.append(f"No bounds for {', '.join(open_ended)}: sums and means of these pay to find some.")
        if keyless:
            told.append(f"No keys for {', '.join(keyless)}: grouping by these needs a delta, and hides small groups.")
        return tuple(told)

    def arguments(self, path: str) -> Document:
        """Returns the arguments of `Curator.protect`, as JSON.

        Raises:
            InvalidParameter: if something that is needed is missing.
        """
        if not self.unit and not self.each_row:
            hint = "Choose the column of their ids, or say that each row is one person."
            raise InvalidParameter("unit", None, "to say whose rows these are", hint)
        bounds = {c.name: [_end(c, c.low), _end(c, c.high)] for c in self.columns if c.low and c.high}
        keys = {c.name: _keys(c) for c in self.columns if c.keys}
        given: dict[str, Any] = {
            "path": path,
            "name": self.name,
            "unit": self.unit or None,
            "account": self.account or None,
            "budget": dict(self.amounts) or None,
            "types": {c.name: c.type for c in self.columns if c.type},
            "bounds": bounds or None,
            "keys": keys or None,
            "max_groups": self.max_groups,
            "max_rows": self.max_rows,
            "neighbours": self.neighbours or None,
            "version": self.version or None,
            "change": list(self.change) or None,
        }
        return {name: value for name, value in given.items() if value is not None}


def declaration(visit: Visit) -> Declaration:
    """Returns what a form says about a table.

    Raises:
        InvalidParameter: if a number is none, or a type is unknown.
    """
    names = visit.form.getlist("column")
    parts = {part: visit.form.getlist(f"column-{part}") for part in ("type", "low", "high", "keys")}
    if any(len(values) != len(names) for values in parts.values()):
        raise InvalidParameter("form", "this one", "to describe every column", "Load the page again.")
    described = zip(names, *(parts[part] for part in ("type", "low", "high", "keys")), strict=True)
    columns = tuple(
        DeclaredColumn(name=name, type=kind.strip(), low=low.strip(), high=high.strip(), keys=keys.strip())
        for name, kind, low, high, keys in described
    )
    for column in columns:
        if column.type not in TYPES:
            raise InvalidParameter(f"type of {column.name}", column.type, f"to be one of {', '.join(TYPES)}")
    unit = visit.form.get("unit", "")
    return Declaration(
        source=visit.text("source"),
        name=visit.text("name"),
        unit="" if visit.text("whose") == "row" else unit,
        each_row=visit.text("whose") == "row",
        account=visit.text("account"),
        amounts={name: visit.text(name) for name in AMOUNTS if visit.text(name)},
        max_groups=read_count(visit.form, "max_groups", 1),
        max_rows=read_count(visit.form, "max_rows", 1),
        neighbours=visit.text("neighbours"),
        version=visit.text("version"),
        columns=columns,
        change=tuple(visit.form.getlist("seen")) if visit.text("change") else (),
    )


def _end(column: DeclaredColumn, text: str) -> str | int | float:
    """An end of bounds: a number, or a day as it is written."""
    if column.type in ("date", "timestamp"):
        return text
    try:
        return int(text) if column.type == "int" or text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise InvalidParameter(f"bounds of {column.name}", text, "to be a number", "Write e.g. 0 and 120.") from None


def _keys(column: DeclaredColumn) -> list[Any]:
    """Keys, one a line or with commas between them."""
    lines = column.keys.splitlines() if "\n" in column.keys else column.keys.split(",")
    texts = [line.strip() for line in lines if line.strip()]
    return [_key(column, text) for text in texts]


def _key(column: DeclaredColumn, text: str) -> str | int | bool:
    if column.type == "int":
        try:
            return int(text)
        except ValueError:
            raise InvalidParameter(f"keys of {column.name}", text, "to be whole numbers") from None
    if column.type == "bool":
        return text.lower() in ("true", "yes", "1")
    return text


def inspected(found: Document, source: str, name: str) -> Declaration:
    """Returns the form that is proposed for a file which a worker has looked into: types, and bounds of kinds by name.

    Bounds and keys are never taken from the data.
    """
    columns = tuple(_proposed(column) for column in found.get("columns", ()))
    return Declaration(
        source=source, name=name, unit=str(found.get("unit") or ""), amounts={"epsilon": "1"}, columns=columns
    )


def _proposed(column: Mapping[str, Any]) -> DeclaredColumn:
    low, high = column.get("bounds") or ("", "")
    kind = str(column.get("type", "text"))
    remarks = tuple(map(str, column.get("remarks", ())))
    return DeclaredColumn(name=str(column["name"]), type=kind, low=str(low), high=str(high), remarks=remarks)
