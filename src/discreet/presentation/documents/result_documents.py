"""Results as documents: a form declares the parts of a document, and writing, reading and its description follow.

Parts are plain: numbers, texts, truth values, days and moments, exact amounts, losses, events, names of enumerations,
lists and dictionaries of these, and dataclasses. Amounts are exact texts, days and moments are in ISO 8601, and what is
not finite is "Infinity" or "-Infinity", since JSON has no such number. A verb whose result is plain needs no form.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property
from importlib import import_module
from inspect import Parameter, signature
from types import UnionType
from typing import Any, Generic, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter
from discreet.ledger import RemainingBudget
from discreet.ledger.cost import Cost
from discreet.ledger.serialization import read_loss, write_loss
from discreet.measurement.profile.sizes import Figure
from discreet.plan.model.nodes import Value
from discreet.privacy import Loss, events
from discreet.privacy.events import Event
from discreet.requests.verb_table import Verb

Document = dict[str, Any]
"""Plain JSON: dictionaries with texts as keys, lists, texts, numbers, truth values and null."""

Given = Mapping[str, Any]
Made = TypeVar("Made")

_ISO_DAY = len("2026-03-01")
_NOT_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # of a reader of what is no document


@contextmanager
def refusing(kind: str) -> Iterator[None]:
    """Refuses whatever is no document of a kind with one error, wherever reading it fails."""
    try:
        yield
    except _MALFORMED:
        hint = "The document was changed on its way, or another version of this library wrote it."
        raise InvalidParameter("document", "this one", f"to be a whole document of kind {kind!r}", hint) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentForm(Generic[Made]):
    """The form in which results of one kind travel.

    Attributes:
        kind: what such a document is called.
        about: what it is, in a sentence.
        make: makes a result of those parts that it takes by name.
        parts: the type of each part, in the order of the document. "text" is how the result prints itself.
        says_kind: whether the document has its kind as its first part.
        writes: returns the parts as JSON that are not attributes of the result.
        reads: returns what `make` takes and a type alone does not read.
    """

    kind: str
    about: str
    make: Callable[..., Made]
    parts: Mapping[str, Any]
    says_kind: bool = True
    writes: Callable[[Any], Mapping[str, Any]] = lambda _: {}
    reads: Callable[[Given], Mapping[str, Any]] = lambda _: {}

    def write(self, made: Any) -> Document:
        """Returns a result as JSON."""
        found: Document = {"kind": self.kind} if self.says_kind else {}
        known = {"text": str(made) if "text" in self.parts else "", **self.writes(made)}
        for name, kind in self.parts.items():
            written = known[name] if name in known else write_plain(getattr(made, name))
            found |= written if isinstance(kind, InlinePart) else {name: written}
        return found

    def read(self, document: Given) -> Made:
        """Returns the result of a document.

        Raises:
            InvalidParameter: if it is the document of another result, or not whole.
        """
        with refusing(self.kind):
            if self.says_kind and document["kind"] != self.kind:
                raise ValueError(document["kind"])
            known = self.reads(document)
            rest = {name: self.read_part(name, document) for name in self._accepted_parts if name not in known}
            return self.make(**known, **rest)

    def read_part(self, name: str, document: Given) -> Any:
        """Returns a part of a document by its type."""
        kind = self.parts[name]
        return read_plain(kind.type, document) if isinstance(kind, InlinePart) else read_plain(kind, document[name])

    def declare(self) -> Self:
        """Registers itself for objects of the class that it makes, wherever they are in a document; returns itself."""
        _FORMS[self.make] = self
        return self

    @cached_property
    def _accepted_parts(self) -> list[str]:
        """Returns the parts that `make` takes."""
        taken = signature(self.make).parameters
        every = any(each.kind is Parameter.VAR_KEYWORD for each in taken.values())
        return [name for name in self.parts if every or name in taken]


_FORMS: dict[Any, DocumentForm[Any]] = {}


@dataclass(frozen=True, slots=True)
class InlinePart:
    """The type of a part whose own parts are next to the others, and not inside it."""

    type: Any


RELEASED: Mapping[str, Any] = {
    "cost": Cost,
    "remaining": RemainingBudget,
    "event": Event,
    "replayed": bool,
    "notes": tuple[str, ...],
}
"""What every release tells."""

PLANNED: Mapping[str, Any] = {
    "event": Event,
    "cost": Cost,
    "remaining": RemainingBudget,
    "notes": tuple[str, ...],
    "free": bool,
    "caps": Mapping[str, RemainingBudget],
    "refusal": str | None,
}
"""What every price tells."""

_MODULES: Mapping[str, tuple[str, ...]] = {
    "answer_documents": ("answer", "answers"),
    "plan_documents": ("explanation", "choices", "profile"),
    "model_documents": ("model", "fit plan"),
    "synthesis_documents": ("synthetic table", "synthetic tables", "synthesis plan"),
    "ledger_documents": ("approval", "approvals", "balance", "share", "appointment", "standing", "entries", "head"),
}
RESULTS: Mapping[str, str] = {kind: module for module, kinds in _MODULES.items() for kind in kinds}
"""The modules that declare the forms of results, by the names that `VERBS` has for them; loaded when first needed."""


def form_named(kind: str) -> DocumentForm[Any]:
    """Returns the form of a kind of result.

    >>> list(form_named("head").parts)
    ['head']
    """
    module = import_module(f"discreet.presentation.documents.{RESULTS[kind]}")
    found: DocumentForm[Any] = getattr(module, kind.upper().replace(" ", "_"))
    return found


def result_of(verb: Verb) -> DocumentForm[Any]:
    """Returns the form of a verb's result: the one that is declared, or that of its plain type.

    >>> from discreet.requests.verb_table import VERBS
    >>> result_of(VERBS["explain"]).kind
    'explanation'
    """
    if verb.document:
        return form_named(verb.document)
    about, form = f"What {verb.name} returns.", form_of(verb.result)
    if form is not None:
        printed = {"text": str} if hasattr(verb.result, "_display") else {}
        return replace(form, kind=verb.name, about=about, says_kind=True, parts={**form.parts, **printed})
    return DocumentForm(
        kind=verb.name,
        about=about,
        make=lambda value: value,
        parts={"value": verb.result},
        writes=lambda made: {"value": write_plain(made)},
    )


# ---------------------------------------------------------------------------------------------------------------- types


def form_of(kind: Any) -> DocumentForm[Any] | None:
    """Returns the form of a class: the one that is declared, that of the fields of a dataclass, or None."""
    return _FORMS.get(kind) or (_plain_form(kind) if isinstance(kind, type) and is_dataclass(kind) else None)


@cache
def _plain_form(kind: Any) -> DocumentForm[Any]:
    about = (kind.__doc__ or "").partition("\n")[0]
    return DocumentForm(kind=kind.__name__, about=about, make=kind, parts=types_of(kind), says_kind=False)


def types_of(kind: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """Returns the types of the fields of a dataclass, or of a named tuple, but for some."""
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields
    return {name: hints[name] for name in names if name not in without}


def write_plain(made: Any) -> Any:
    """Returns a plain result as JSON.

    >>> write_plain((Fraction(1, 3), dt.date(2026, 3, 1), {"A": 2}, frozenset("ba")))
    ['1/3', '2026-03-01', {'A': 2}, ['a', 'b']]
    """
    kind: Any = type(made)  # mypy doubts that a class is hashable
    if (plain := _plain_type(kind)) is not None:
        return plain[0](made)
    if (form := form_of(kind)) is not None:
        return form.write(made)
    if isinstance(made, Enum):
        return made.value
    if isinstance(made, Mapping):
        return {str(name): write_plain(part) for name, part in made.items()}
    if isinstance(made, AbstractSet):
        return sorted(made)
    return [write_plain(part) for part in made] if isinstance(made, tuple | list) else write_value(made)


def read_plain(kind: Any, written: Any) -> Any:
    """Returns the result of a type that `write_plain` wrote.

    Raises:
        InternalError: if the type is not plain.

    >>> read_plain(tuple[Fraction, ...], ["1/3", "2"])
    (Fraction(1, 3), Fraction(2, 1))
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (kind,) = (part for part in parts if part is not type(None))
        return None if written is None else read_plain(kind, written)
    if origin in (tuple, list, frozenset):
        if not isinstance(written, list) or (len(parts) > 1 and ... not in parts and len(written) != len(parts)):
            raise TypeError(origin.__name__)
        return origin(read_plain(parts[0], part) for part in written)
    if origin in (dict, Mapping):
        return {name: read_plain(parts[1], part) for name, part in written.items()}
    if isinstance(kind, type):
        if (plain := _plain_type(kind)) is not None:
            return plain[1](written)
        if (form := form_of(kind)) is not None:
            return form.read(written)
        if issubclass(kind, Enum):
            return kind(written)
    raise InternalError(f"{kind} is not plain: its documents need a form of their own.")


# --------------------------------------------------------------------------------------------------------------- values


def write_value(value: Value) -> Any:
    """Returns a cell, an end of an interval or another plain value as JSON.

    >>> write_value(dt.date(2026, 3, 1)), write_value(-math.inf), write_value(2**70), write_value("a")
    ('2026-03-01', '-Infinity', 1180591620717411303424, 'a')
    """
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE[str(value)]
    return value + 0.0 if isinstance(value, float) else value  # a zero has no sign


def read_value(kind: str, written: Any) -> Value:
    """Returns the cell that `write_value` wrote, in a column of a type.

    >>> read_value("timestamp", "2026-03-01T12:00:00"), read_value("float", "Infinity"), read_value("text", "Infinity")
    (datetime.datetime(2026, 3, 1, 12, 0), inf, 'Infinity')
    """
    found: Value = written
    if written is None or not isinstance(written, str) or kind == "text":
        return found
    if kind in ("date", "timestamp"):
        return dt.date.fromisoformat(written) if len(written) == _ISO_DAY else dt.datetime.fromisoformat(written)
    return read_float(written)


def read_float(written: Any) -> float:
    """Returns a number that `write_value` wrote; it may be infinite.

    Raises:
        ValueError: if it is a text of any other kind.
    """
    if isinstance(written, str) and written not in _NOT_FINITE.values():
        raise ValueError(written)
    return float(written)


def write_amount(amount: Fraction) -> str:
    """Returns an exact amount: in decimals where it has some, else as a ratio.

    >>> write_amount(Fraction(19, 20)), write_amount(Fraction(1, 3)), write_amount(Fraction(3))
    ('0.95', '1/3', '3')
    """
    for text in (str(amount), f"{float(amount)!r}"):
        if "/" not in text and "e" not in text and Fraction(text) == amount:
            return text
    return str(amount)


def write_loss_text(loss: Loss) -> Document:
    """Returns a loss as its exact amounts, and as it is printed.

    >>> from discreet.privacy import Budget
    >>> write_loss_text(Budget(epsilon="0.1"))
    {'text': 'epsilon=0.1', 'epsilon': '1/10'}
    """
    return {"text": str(loss), **write_loss(loss)}


def read_some_loss(written: Given) -> Loss:
    """Returns the loss that `write_loss_text` wrote."""
    return read_loss({name: text for name, text in written.items() if name in ("epsilon", "rho", "delta")})


def write_cost(cost: Cost) -> Document:
    """Returns a cost: the epsilon that was asked for, the share of the budget, and the amounts of the details.

    >>> from discreet.privacy import Budget
    >>> write_cost(Cost(Fraction(1), Fraction(1, 20), Budget(rho="1/2")))["text"]
    'epsilon=1, 5 % of the budget'
    """
    told = {"epsilon": cost.epsilon, "share": cost.share}
    shown: Document = {name: None if amount is None else write_amount(amount) for name, amount in told.items()}
    return {"text": str(cost), **shown, "details": write_loss_text(cost.details)}


def read_cost(written: Given) -> Cost:
    """Returns the cost that `write_cost` wrote."""
    asked, share = (None if written[name] is None else Fraction(written[name]) for name in ("epsilon", "share"))
    return Cost(asked, share, read_some_loss(written["details"]))


def write_remaining(left: RemainingBudget) -> Document:
    """Returns the remaining budget: share, amounts, and as "largest_epsilon" the largest query without delta."""
    loss, epsilon, share = left.figures
    return {
        "text": str(left),
        **write_loss(loss),
        "share": write_amount(share),
        "largest_epsilon": write_amount(epsilon),
    }


def read_remaining(written: Given) -> RemainingBudget:
    """Returns what `write_remaining` wrote."""
    amounts = (Fraction(written[name]) for name in ("largest_epsilon", "share"))
    return RemainingBudget(read_some_loss(written), *amounts)


def write_event(event: Event) -> Document:
    """Returns an event as its own JSON has it, which never changes its meaning."""
    made: Document = json.loads(events.to_json(event))
    return made


def read_event(written: Given) -> Event:
    """Returns the event that `write_event` wrote."""
    return events.from_json(json.dumps(written))


def write_figure(found: Figure) -> list[Any]:
    """Returns an estimate with the ends of its interval: value, low, high."""
    return [write_value(part) for part in (found.value, found.low, found.high)]


def read_figure(written: list[Any]) -> Figure:
    """Returns what `write_figure` wrote."""
    return Figure(*map(read_float, written))


def _same(kind: type) -> Callable[[Any], Any]:
    def read(written: Any) -> Any:
        if type(written) is not kind:
            raise TypeError(kind.__name__)
        return written

    return read


_PLAIN: Mapping[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **{kind: (write_value, _same(kind)) for kind in (bool, int, str, type(None))},  # bool before int, as it is one
    float: (write_value, read_float),
    dt.datetime: (write_value, dt.datetime.fromisoformat),  # before date: a datetime is a date in Python
    dt.date: (write_value, dt.date.fromisoformat),
    Loss: (write_loss_text, read_some_loss),
    Cost: (write_cost, read_cost),
    RemainingBudget: (write_remaining, read_remaining),
    Event: (write_event, read_event),
    Figure: (write_figure, read_figure),
    Fraction: (write_amount, Fraction),
}
"""How values of the smallest types are written and read."""


@cache
def _plain_type(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    return next((both for known, both in _PLAIN.items() if issubclass(kind, known)), None)
