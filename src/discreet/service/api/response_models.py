"""The models of responses, for the description of the API; documents are made elsewhere, and sent as they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import Enum
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from discreet.ledger import RemainingBudget
from discreet.ledger.cost import Cost
from discreet.measurement.profile.sizes import Figure
from discreet.presentation.documents.ledger_documents import ENTRIES, HEAD
from discreet.presentation.documents.result_documents import DocumentForm, InlinePart, form_of, result_of
from discreet.privacy import Loss
from discreet.privacy.events import Event
from discreet.requests.verb_table import Queue, Verb
from discreet.service.acts.people_actions import PERSON
from discreet.service.api.http_responses import ARROW, CSV, REFUSALS, has_forms
from discreet.service.identity import AccessKey, Person
from discreet.service.request_executor import OPERATIONS, JobState, JobStatus

Responses = dict[int | str, dict[str, Any]]
Number = float | Literal["Infinity", "-Infinity", "NaN"]


class _Told(BaseModel):
    model_config = ConfigDict(extra="allow")  # documents may hold more in later versions


class ErrorModel(_Told):
    """An error: the name of its class, what to read, what to do, and the fields of its class."""

    error: str
    message: str
    hint: str


class LossModel(_Told):
    """An amount of privacy, printed and exact: ratios such as "1/10"."""

    text: str
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None


class RemainingModel(LossModel):
    """The remaining budget: its share of the whole, its amounts, and the largest query without delta."""

    share: str
    largest_epsilon: str


class CostModel(_Told):
    """What a query costs: the epsilon that was asked for, the share of the budget, and the amounts that are counted."""

    text: str
    epsilon: str | None
    share: str | None
    details: LossModel


class TableModel(_Told):
    """The public facts about a table."""

    name: str
    protected: bool
    columns: list[dict[str, Any]]


@cache
def _describe_form(form: DocumentForm[Any]) -> type[BaseModel]:
    """Returns the description of the documents of a form; inline parts become a base class."""
    kind = {"kind": Literal[form.kind]} if form.says_kind else {}
    beside = [_json_type(each.type) for each in form.parts.values() if isinstance(each, InlinePart)]
    inside = {name: each for name, each in form.parts.items() if not isinstance(each, InlinePart)}
    return _model(form.kind, form.about, {**kind, **inside}, *beside)


def _model(called: str, about: str, parts: Mapping[str, Any], base: type[BaseModel] = _Told) -> type[BaseModel]:
    """Returns the description of documents that have these parts, each with the type that JSON has for it."""
    name = "".join(word[0].upper() + word[1:] for word in called.replace("_", " ").split()).removesuffix("Model")
    fields: dict[str, Any] = {part: (_json_type(kind), ...) for part, kind in parts.items()}
    return create_model(f"{name}Model", __base__=base, __doc__=about, **fields)


@cache
def _json_type(kind: Any) -> Any:
    """Returns a type as JSON has it: amounts and days are texts, losses are objects."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(map(_json_type, parts))]  # noqa: UP007 - of parts that are known only here
    if origin in (tuple, list, frozenset):
        return list[_json_type(parts[0])]  # type: ignore[misc]  # likewise
    if origin in (dict, Mapping):
        return dict[str, _json_type(parts[1])]  # type: ignore[misc]  # likewise
    if not isinstance(kind, type):
        return kind
    if issubclass(kind, Enum):
        return Literal[tuple(each.value for each in kind)]
    found = next((told for known, told in _JSON.items() if issubclass(kind, known)), kind)
    form = form_of(kind) if found is kind else None
    return found if form is None else _describe_form(form)


_JSON: Mapping[type, Any] = {
    Loss: LossModel,
    Cost: CostModel,
    RemainingBudget: RemainingModel,
    Event: dict[str, Any],
    Figure: list[Number],
    Fraction: str,
    date: str,
    float: Number,
}
"""The JSON types of classes that are not described as dataclasses."""

JOB = DocumentForm(
    kind="job",
    says_kind=False,
    about="Work that runs in the background.",
    make=JobStatus,
    parts={
        "id": str,
        "operation": Literal[tuple(OPERATIONS)],
        "state": JobState,
        "stage": str,
        "document": dict[str, Any] | None,
        "error": ErrorModel | None,
    },
    writes=lambda job: {"operation": job.operation.value, "document": job.document, "error": job.error},
)
JobModel, HistoryModel, HeadModel = _describe_form(JOB), _describe_form(ENTRIES), _describe_form(HEAD)
TablesModel = _model("tables", "The tables that a key is for.", {"tables": list[TableModel]})
BudgetsModel = _model(
    "budgets", "The accounts that a caller sees, with the caller's part of each.", {"budgets": list[dict[str, Any]]}
)
CertificateModel = _model(
    "certificate",
    "The guarantee for one charged query.",
    {"kind": Literal["certificate"], "sequence": int, "hash": str, "guarantee": str},
)
PeopleModel = _model("people", "All people who are known to the service.", {"people": list[Person]})
KeysModel = _model("keys", "All keys, in use or not.", {"keys": list[AccessKey]})
_NEW_KEY = "A new key: its public id, and the key itself, which is shown only once."
MODELS: Mapping[str, type[BaseModel]] = {
    "person": _describe_form(PERSON),
    "keys": KeysModel,
    "new key": _model("new key", _NEW_KEY, {"id": str, "key": str}),
}
"""The models of documents about people and keys, by kind: no curator knows them."""


def result(model: type[BaseModel]) -> Responses:
    """Returns the description of a route that gives one kind of document, or an error."""
    return {200: {"model": model, "description": model.__doc__}, **_ERRORS}


def verb_model(verb: Verb) -> type[BaseModel]:
    """Returns the description of what a service returns for a verb."""
    return MODELS.get(verb.document) or _describe_form(result_of(verb))


def verb_result(verb: Verb) -> Responses:
    """Returns the description of a verb's route: a document, perhaps in several forms; of work, or a job."""
    described = result(verb_model(verb))
    if has_forms(verb):
        binary = {"schema": {"type": "string", "format": "binary"}}
        described[200]["content"] = {CSV: {"schema": {"type": "string"}}, ARROW: binary}
    begun: Responses = {202: {"model": JobModel, "description": "A job that has begun."}}
    return described if verb.queue is Queue.LEDGER else described | begun


def events_result() -> Responses:
    """Returns the description of a route that gives server-sent events."""
    stream = {"text/event-stream": {"schema": {"type": "string"}}}
    return {200: {"description": "Events named status, each with a job as its data.", "content": stream}, **_ERRORS}


_SAME = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorModel"}}}}
_ERRORS: Responses = {
    status: {"description": words, **({"model": ErrorModel} if status == 400 else _SAME)}
    for status, words in {
        **{status: f"{reason}." for status, (reason, _) in REFUSALS.items()},
        401: "The request has no valid key.",
        402: "The budget is too small; nothing was spent.",
        403: "The caller's role or appointment does not allow it.",
        404: "It does not exist, or the caller may not see it.",
        406: "The answer has none of the accepted types; nothing was spent.",
        409: "The idempotency key belongs to another request; nothing was spent.",
        422: "The request is refused; nothing was spent.",
        423: "The caller's failure credits are used up.",
        424: "The query could not be answered; its charge stays.",
        429: "Too many requests; see Retry-After.",
        500: "The service failed.",
        501: "An optional package is not installed on the server.",
        503: "The service is full or stopping, or its ledger does not answer.",
    }.items()
}
