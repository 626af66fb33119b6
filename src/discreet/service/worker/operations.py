"""What a worker does for a request: the curator's own methods, with arguments from JSON and documents in return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.curator.curator import Curator
from discreet.curator.served import source_of, table_facts
from discreet.errors import DeclarationChanged, InvalidParameter
from discreet.lazy import load
from discreet.plan.model.schema import Limits
from discreet.presentation.documents import (
    answer_document,
    answers_document,
    choices_document,
    explanation_document,
    fit_plan_document,
    model_document,
    profile_document,
    read_learner,
)
from discreet.presentation.documents.json_values import read_parameters
from discreet.presentation.inspection.file_check import WARNING, ColumnCheck, check_file
from discreet.presentation.inspection.proposed_config import table_name
from discreet.privacy import Budget
from discreet.service.desk import Document, Operation

MOST_COLUMNS = 700
"""Columns of a file that is looked into: the form that declares them has five fields for each."""

Arguments = Mapping[str, Any]
Who = Mapping[str, Any]
"""The analyst, the project and the key, as the owner fixed them; planning takes no key."""


def perform(curator: Curator, operation: Operation, arguments: Arguments, who: Who) -> Document:
    """Does what a request asks for.

    Raises:
        DiscreetError: as the curator does.
        InvalidParameter: if an argument is missing or not known.
    """
    known, done = _OPERATIONS[operation]
    for name in arguments:
        if name not in known:
            hint = f"Known: {', '.join(known)}."
            raise InvalidParameter(name, "an argument", f"to be an argument of {operation.value}", hint)
    return done(curator, _Taken(operation, arguments), who)


class _Taken:
    """Arguments by name, of which some are needed."""

    def __init__(self, operation: Operation, arguments: Arguments) -> None:
        self._operation, self.given = operation, {n: v for n, v in arguments.items() if v is not None}

    def needed(self, name: str, kind: type = str) -> Any:
        value = self.given.pop(name, None)
        if not isinstance(value, kind):
            told = None if value is None else type(value).__name__
            condition = f"to be given to {self._operation.value} as a {kind.__name__}"
            raise InvalidParameter(name, told, condition, "Pass it in the body of the request.")
        return value

    @property
    def rest(self) -> dict[str, Any]:
        """What is left, with limits and parameters as the curator takes them."""
        left = dict(self.given)
        if "limits" in left:
            left["limits"] = _limits(left["limits"])
        if "parameters" in left:
            left["parameters"] = _parameters(left["parameters"])
        return left


def _parameters(given: Any) -> Any:
    if not isinstance(given, list | dict):
        hint = 'Pass e.g. [40, "A"] for ? and $1, or {"age": 40} for :age.'
        raise InvalidParameter("parameters", type(given).__name__, "to be a list or an object", hint)
    return read_parameters(given)


def _limits(given: Any) -> Any:
    if isinstance(given, dict) and given.keys() <= {"groups", "rows"}:
        return Limits(**given)
    if given == "choose":
        return given
    raise InvalidParameter("limits", given, "to be 'choose' or {groups, rows}", 'Pass e.g. {"groups": 2, "rows": 5}.')


def _ask(curator: Curator, taken: _Taken, who: Who) -> Document:
    return answer_document(curator.ask(taken.needed("sql"), **taken.rest, **who))


def _ask_many(curator: Curator, taken: _Taken, who: Who) -> Document:
    questions = taken.needed("questions", list)
    if not all(isinstance(question, str) for question in questions):
        raise InvalidParameter("questions", "a list", "to hold texts", "Pass a list of SELECTs.")
    return answers_document(curator.ask_many(questions, **taken.rest, **who))


def _profile(curator: Curator, taken: _Taken, who: Who) -> Document:
    return profile_document(curator.profile(taken.needed("table"), **taken.rest, **who))


def _fit(curator: Curator, taken: _Taken, who: Who) -> Document:
    estimator = read_learner(taken.needed("learner"), taken.given.pop("parameters", {}))
    return model_document(curator.fit(estimator, taken.needed("sql"), **taken.rest, **who))


def _plan_fit(curator: Curator, taken: _Taken, who: Who) -> Document:
    estimator = read_learner(taken.needed("learner"), taken.given.pop("parameters", {}))
    return fit_plan_document(curator.plan_fit(estimator, taken.needed("sql"), **taken.rest, **_without_key(who)))


def _explain(curator: Curator, taken: _Taken, who: Who) -> Document:
    return explanation_document(curator.explain(taken.needed("sql"), **taken.rest, **_without_key(who)))


def _rehearse(curator: Curator, taken: _Taken, who: Who) -> Document:
    return answer_document(curator.rehearse(taken.needed("sql"), **taken.rest, analyst=who["analyst"]))


def _choose_epsilon(curator: Curator, taken: _Taken, who: Who) -> Document:
    return choices_document(curator.choose_epsilon(taken.needed("sql"), **taken.rest, analyst=who["analyst"]))


def _without_key(who: Who) -> dict[str, Any]:
    return {name: value for name, value in who.items() if name != "key"}


def _inspect(_: Curator, taken: _Taken, __: Who) -> Document:
    """What `discreet check` tells, for the steward's eyes; bounds and keys are not proposed from the data."""
    found = check_file(taken.needed("path"), unit=taken.given.get("unit"), most_columns=MOST_COLUMNS)
    return {
        "kind": "inspection",
        "warning": WARNING,
        "name": table_name(found.path),
        "rows": found.rows,
        "unit": found.unit,
        "remarks": list(found.remarks),
        "columns": [_inspected(name, column) for name, column in found.columns.items()],
        "text": str(found),
    }


def _inspected(name: str, column: ColumnCheck) -> Document:
    return {"name": name, "type": column.proposal.type.value}


def _attack(curator: Curator, taken: _Taken, _: Who) -> Document:
    """How many people are alone with what others may know of them, in the table as it is; for the steward's eyes."""
    quasi = taken.needed("columns", list)
    uniqueness = load("discreet.attacks.linkage.uniqueness", "An attack").uniqueness  # few workers need it
    found = uniqueness(source_of(curator, taken.needed("table")), [str(column) for column in quasi])
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
        DeclarationChanged: without `change`, if it is declared otherwise in the book.
        InvalidParameter: if a declaration does not fit.
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
    path, name, seen = taken.needed("path"), taken.needed("name"), taken.given.pop("change", None)
    declared = {"path": path, "name": name, **taken.given}
    try:
        protect(curator, declared)
    except DeclarationChanged as changed:
        if seen != list(changed.differences):  # the steward has looked at this difference, or looks at it now
            raise
        protect(curator, declared, change=True)
    return {"kind": "protected", "table": name, "tables": table_facts(curator)}


_QUESTION = ("sql", "parameters", "epsilon", "delta", "limits", "other", "confidence", "within", "max_epsilon")
_DECLARED: tuple[str, ...] = ("path", "name", "unit", "account", "budget", "types", "bounds", "keys", "max_groups")
_DECLARED += ("max_rows", "neighbours", "version", "identity", "most_rows", "domain", "change")
_LEARNER = ("learner", "parameters", "sql", "target", "rows_per_unit")
_OPERATIONS: Mapping[Operation, tuple[tuple[str, ...], Callable[[Curator, _Taken, Who], Document]]] = {
    Operation.ASK: ((*_QUESTION, "profile", "coverage"), _ask),
    Operation.ASK_MANY: (("questions", "epsilon", "delta", "limits", "confidence"), _ask_many),
    Operation.PROFILE: (("table", "epsilon", "columns", "by"), _profile),
    Operation.FIT: (_LEARNER, _fit),
    Operation.PLAN_FIT: (_LEARNER, _plan_fit),
    Operation.EXPLAIN: ((*_QUESTION, "rows"), _explain),
    Operation.REHEARSE: (("sql", "parameters", "epsilon", "delta", "limits", "other", "confidence", "rows"), _rehearse),
    Operation.CHOOSE_EPSILON: (
        ("sql", "candidates", "parameters", "delta", "limits", "other", "confidence", "rows"),
        _choose_epsilon,
    ),
    Operation.INSPECT: (("path", "unit"), _inspect),
    Operation.PROTECT: (_DECLARED, _protect),
    Operation.ATTACK: (("table", "columns"), _attack),
}
