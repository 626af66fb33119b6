"""What a worker does for a request: the curator's own methods, with arguments from JSON and documents in return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.curator.curator import Curator
from discreet.curator.served import source_of, table_facts
from discreet.errors import DeclarationChanged, InvalidParameter
from discreet.lazy import load
from discreet.ledger import Caller
from discreet.presentation.documents.result_documents import result_of
from discreet.presentation.inspection.file_check import WARNING, ColumnCheck, check_file
from discreet.presentation.inspection.proposed_config import table_name
from discreet.privacy import Budget
from discreet.requests.verb_table import VERBS, Verb
from discreet.service.request_executor import Document, Operation

MOST_COLUMNS = 700
"""The most columns of a file that is checked: the form that declares them has five fields for each."""

Arguments = Mapping[str, Any]
Who = Mapping[str, Any]
"""The analyst, the project and the key, as the owner fixed them; planning takes no key."""


def perform(curator: Curator, operation: Operation, arguments: Arguments, who: Who) -> Document:
    """Does what a request asks for.

    Raises:
        DiscreetError: as the curator does.
        InvalidParameter: if an argument is missing or not known.
    """
    if operation.value in _OWN:
        return _OWN[operation.value](curator, _Taken(operation, arguments), who)
    return _perform_verb(curator, VERBS[operation.value], arguments, who)


def _perform_verb(curator: Curator, verb: Verb, arguments: Arguments, who: Who) -> Document:
    caller = Caller(analyst=who["analyst"], project=who["project"], key=who["key"] if verb.charges else None)
    return result_of(verb).write(curator.perform(verb.read_request(arguments), caller))


class _Taken:
    """Arguments by name, some of them required."""

    def __init__(self, operation: Operation, arguments: Arguments) -> None:
        self._operation, self.given = operation, {n: v for n, v in arguments.items() if v is not None}

    def take_required(self, name: str, kind: type = str) -> Any:
        value = self.given.pop(name, None)
        if not isinstance(value, kind):
            told = None if value is None else type(value).__name__
            condition = f"to be given to {self._operation.value} as a {kind.__name__}"
            raise InvalidParameter(name, told, condition, "Pass it in the body of the request.")
        return value

    def none_but(self, *known: str) -> None:
        """Refuses arguments that were not taken and are not known."""
        for name in self.given:
            if name not in known:
                hint = f"Known: {', '.join(known)}."
                raise InvalidParameter(name, "an argument", f"to be an argument of {self._operation.value}", hint)


def _inspect(_: Curator, taken: _Taken, __: Who) -> Document:
    """Returns the report of `discreet check`, for the steward only; it proposes no bounds or keys from the data."""
    taken.none_but("path", "unit")
    found = check_file(taken.take_required("path"), unit=taken.given.get("unit"), most_columns=MOST_COLUMNS)
    return {
        "kind": "inspection",
        "warning": WARNING,
        "name": table_name(found.path),
        "rows": found.rows,
        "unit": found.unit,
        "remarks": list(found.remarks),
        "columns": [_describe_column(name, column) for name, column in found.columns.items()],
        "text": str(found),
    }


def _describe_column(name: str, column: ColumnCheck) -> Document:
    return {"name": name, "type": column.proposal.type.value}


def _attack(curator: Curator, taken: _Taken, _: Who) -> Document:
    """Returns how many people are unique on the columns that others may know, for the steward only."""
    taken.none_but("table", "columns")
    quasi = taken.take_required("columns", list)
    uniqueness = load("discreet.attacks.linkage.uniqueness", "An attack").uniqueness  # few workers need it
    found = uniqueness(source_of(curator, taken.take_required("table")), [str(column) for column in quasi])
    return {
        "kind": "finding",
        "warning": WARNING,
        "attack": found.attack,
        "goal": found.goal,
        "success": found.success,
        "baseline": found.baseline,
        "targets": found.targets,
        "summary": found.summary(),
        "text": str(found),
    }


def protect(curator: Curator, declared: Arguments, *, change: bool = False) -> None:
    """Protects a table as a steward declared it in JSON; with `change`, also otherwise than it is declared now.

    Raises:
        DeclarationChanged: without `change`, if it is declared otherwise in the ledger.
        InvalidParameter: if the declaration does not fit.
    """
    given = {name: value for name, value in declared.items() if value is not None}
    budget = given.pop("budget", None)
    bounds = {name: tuple(pair) for name, pair in given.pop("bounds", {}).items()}
    unit = given.pop("unit", None)
    source = given.pop("path")
    curator.protect(
        source,
        unit=tuple(unit) if isinstance(unit, list) else unit,
        budget=None if budget is None else Budget(**budget),
        bounds=bounds or None,
        change=change,
        **given,
    )


def _protect(curator: Curator, taken: _Taken, _: Who) -> Document:
    taken.none_but(*_DECLARED)
    path, name, seen = taken.take_required("path"), taken.take_required("name"), taken.given.pop("change", None)
    declared = {"path": path, "name": name, **taken.given}
    try:
        protect(curator, declared)
    except DeclarationChanged as changed:
        if seen != list(changed.differences):  # the steward has looked at this difference, or looks at it now
            raise
        protect(curator, declared, change=True)
    return {"kind": "protected", "table": name, "tables": table_facts(curator)}


_DECLARED: tuple[str, ...] = ("path", "name", "unit", "account", "budget", "types", "bounds", "keys", "max_groups")
_DECLARED += (
    "max_rows",
    "limits",
    "limits_epsilon",
    "neighbours",
    "version",
    "identity",
    "most_rows",
    "domain",
    "sample_of",
    "change",
)
_OWN: Mapping[str, Callable[[Curator, _Taken, Who], Document]] = {
    "inspect": _inspect,
    "protect": _protect,
    "attack": _attack,
}
"""What a service does in addition to the verbs of a curator."""
