"""What responses hold, for the description of the API; documents are made elsewhere, and sent as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from fractions import Fraction
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from discreet.presentation.documents.json_values import Document
from discreet.privacy import Loss
from discreet.requests.verb_table import Queue, Verb
from discreet.service.api.answer_forms import ARROW, CSV
from discreet.service.desk import OPERATIONS, JobState, JobStatus

Responses = dict[int | str, dict[str, Any]]
Cell = bool | int | float | str | None
Figure = list[float | str]


class _Told(BaseModel):
    model_config = ConfigDict(extra="allow")  # documents may tell more in later versions


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
    """What is left, and the largest pure question that is still possible."""

    largest_epsilon: str


class ColumnModel(_Told):
    """A column of an answer."""

    name: str
    type: Literal["int", "float", "text", "bool", "date", "timestamp"]


class _Released(_Told):
    cost: LossModel
    remaining: RemainingModel
    replayed: bool
    notes: list[str]


class _Planned(_Told):
    cost: LossModel | None
    remaining: LossModel
    notes: list[str]
    refusal: str | None
    text: str


class AnswerModel(_Released):
    """An answer; days and moments are texts in ISO 8601, what is infinite is "Infinity" or "-Infinity"."""

    kind: Literal["answer"]
    columns: list[ColumnModel]
    rows: list[list[Cell]]
    event: dict[str, Any]
    confidence: str
    private: bool
    scope: str
    whole: list[str]
    coverage: dict[str, Any] | None
    totals: list[list[str]]
    receipt: dict[str, Any] | None


class AnswersModel(_Told):
    """Answers that were asked together."""

    kind: Literal["answers"]
    answers: list[AnswerModel]


class ExplanationModel(_Planned):
    """A question before it is asked."""

    kind: Literal["explanation"]
    columns: list[ColumnModel]
    account: str
    unit: str
    errors: dict[str, float | str]
    confidence: str
    rows: int
    limits: dict[str, int]
    free: str | None
    pending: bool
    caps: dict[str, LossModel]
    facts: dict[str, str]


class ChoicesModel(_Told):
    """Budgets side by side."""

    kind: Literal["choices"]
    confidence: str
    rows: int
    choices: list[dict[str, Any]]
    text: str


class ProfileModel(_Told):
    """A paid portrait of a table; figures are value, low, high."""

    kind: Literal["profile"]
    table: str
    epsilon: str
    people: Figure
    text: str


class TrainedModel(_Released):
    """A fitted learner: `model` is the text that `discreet.learn.load` reads."""

    kind: Literal["model"]
    learner: str
    model: str
    columns: list[str]


class FitPlanModel(_Planned):
    """What a fit would release and cost."""

    kind: Literal["fit plan"]
    learner: str
    features: list[str]
    free: bool


class SyntheticTableModel(_Released):
    """A synthetic table: `released` has its rows, and the model that they were drawn from."""

    kind: Literal["synthetic table"]
    name: str
    released: dict[str, Any]
    text: str


class SyntheticTablesModel(_Released):
    """Two linked synthetic tables: `released` has their rows, and the models that they were drawn from."""

    kind: Literal["synthetic tables"]
    names: list[str]
    released: dict[str, Any]
    text: str


class SynthesisPlanModel(_Planned):
    """What a synthetic table would release and cost."""

    kind: Literal["synthesis plan"]
    generator: str
    free: bool


class TableModel(_Told):
    """The public facts about a table."""

    name: str
    protected: bool
    columns: list[dict[str, Any]]


class TablesModel(_Told):
    """The tables that a key is for."""

    tables: list[TableModel]


class JobModel(_Told):
    """Work that is waited for elsewhere."""

    id: str
    operation: Literal[tuple(OPERATIONS)]  # type: ignore[valid-type]  # they would be spelled out
    state: Literal[tuple(each.value for each in JobState)]  # type: ignore[valid-type]  # they would be spelled out
    stage: str
    document: dict[str, Any] | None
    error: ErrorModel | None


class BudgetsModel(_Told):
    """The accounts that a caller sees, with their own part of each."""

    budgets: list[dict[str, Any]]


class HistoryModel(_Told):
    """A page of entries of the book, and where the next one begins."""

    entries: list[dict[str, Any]]
    next: int | None


class CertificateModel(_Told):
    """What was promised about one charged question."""

    kind: Literal["certificate"]
    sequence: int
    hash: str
    guarantee: str


class HeadModel(_Told):
    """The head of the book: kept elsewhere, it anchors all entries before it."""

    head: str


class BalanceModel(_Told):
    """The figures of an account."""

    total: LossModel
    remaining: RemainingModel


class PersonModel(_Told):
    """Somebody who is known."""

    name: str
    role: str


class PeopleModel(_Told):
    """Everybody who is known."""

    people: list[PersonModel]


class KeyModel(_Told):
    """What may be told about a key."""

    id: str
    person: str


class KeysModel(_Told):
    """Keys, in use or not."""

    keys: list[KeyModel]


class NewKeyModel(_Told):
    """A new key: its public id, and the key itself, which is shown this once."""

    id: str
    key: str


_KINDS: tuple[type[BaseModel], ...] = (AnswerModel, AnswersModel, ExplanationModel, ChoicesModel, ProfileModel)
_KINDS += (TrainedModel, FitPlanModel, SyntheticTableModel, SyntheticTablesModel, SynthesisPlanModel)
MODELS: Mapping[str, type[BaseModel]] = {
    **{get_args(model.model_fields["kind"].annotation)[0]: model for model in _KINDS},
    "balance": BalanceModel,
    "entries": HistoryModel,
    "head": HeadModel,
}
"""Documents of results by their kind, as far as they have a description."""

_AFTER: Mapping[str, type[BaseModel]] = {"unlock": BalanceModel, "allot": BalanceModel, "appoint": PersonModel}
"""What a service tells after an action whose result is nothing."""


def job_document(status: JobStatus) -> Document:
    """Returns a job as JSON."""
    return {
        "id": status.id,
        "operation": status.operation.value,
        "state": status.state.value,
        "stage": status.stage,
        "document": status.document,
        "error": status.error,
    }


def result(model: type[BaseModel], status: int = 200) -> Responses:
    """Returns the description of a route that gives one kind of document, or an error."""
    return {status: {"model": model, "description": _sentence(model)}, **_ERRORS}


def verb_result(verb: Verb) -> Responses:
    """Returns the description of a verb's route: a document, perhaps in several forms; of work, or a job."""
    described = result(_AFTER.get(verb.name) or _model(verb))
    if has_forms(verb):
        binary = {"schema": {"type": "string", "format": "binary"}}
        described[200]["content"] = {CSV: {"schema": {"type": "string"}}, ARROW: binary}
    begun: Responses = {202: {"model": JobModel, "description": "A job that has begun."}}
    return described if verb.queue is Queue.LEDGER else described | begun


def _model(verb: Verb) -> type[BaseModel]:
    """Returns the description of a verb's result: the one of its kind, or of a plain result what its type says."""
    if verb.document:
        return MODELS[verb.document]
    told = {"value": verb.result}
    if is_dataclass(verb.result):
        hints = get_type_hints(verb.result)
        told = {each.name: hints[each.name] for each in fields(verb.result)}
    parts: dict[str, Any] = {name: (_json_type(kind), ...) for name, kind in told.items()}
    kind: Any = (Literal[verb.name], ...)
    doc = f"What {verb.name} returns."
    return create_model(f"{verb.request.__name__}Model", __base__=_Told, __doc__=doc, kind=kind, **parts)


def _json_type(kind: Any) -> Any:
    """Returns a plain type as JSON has it: amounts and days are texts, losses are objects."""
    if isinstance(kind, type) and issubclass(kind, Loss):
        return LossModel
    if isinstance(kind, type) and issubclass(kind, Fraction | date):
        return str
    parts = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(map(_json_type, parts))]  # noqa: UP007 - of parts that are known only here
    if get_origin(kind) in (tuple, list):
        return list[_json_type(parts[0])]  # type: ignore[misc]  # likewise
    return dict[str, Any] if is_dataclass(kind) else kind


def has_forms(verb: Verb) -> bool:
    """Tells whether its result can leave as CSV and Arrow, too."""
    return verb.document == "answer"


def events_result() -> Responses:
    """Returns the description of a route that gives server-sent events."""
    stream = {"text/event-stream": {"schema": {"type": "string"}}}
    return {200: {"description": "Events named status, each with a job as its data.", "content": stream}, **_ERRORS}


def _sentence(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").partition("\n")[0]


_SAME = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorModel"}}}}
_ERRORS: Responses = {
    status: {"description": words, **({"model": ErrorModel} if status == 400 else _SAME)}
    for status, words in {
        400: "The request is not usable.",
        401: "No valid key was shown.",
        402: "The budget does not suffice; nothing was spent.",
        403: "The role or the appointment does not allow it.",
        404: "There is no such thing, or it is not the caller's.",
        406: "None of the accepted forms can be had; nothing was spent.",
        409: "The idempotency key belongs to another request; nothing was spent.",
        413: "The body is too large.",
        415: "The body is no JSON.",
        421: "This name is not one of the service's.",
        422: "The request is refused; nothing was spent.",
        423: "The caller's failure credits are used up.",
        424: "The question could not be answered; its charge stays.",
        429: "Too many requests; see Retry-After.",
        431: "The headers are too large, or one stands there twice.",
        500: "A fault of the service's.",
        501: "Something optional is not installed on the server.",
        503: "The service is full, stopping, or cannot rely on its book.",
    }.items()
}
