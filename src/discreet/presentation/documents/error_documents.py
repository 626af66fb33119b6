"""Errors as documents, and back: the same class, with the same message and the same fields.

Any other exception becomes an `InternalError` without its message, which could contain private values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from discreet import errors
from discreet.errors import DiscreetError, InternalError
from discreet.hint_text import Hint
from discreet.ledger import RemainingBudget
from discreet.ledger.serialization import NAMES, write_loss
from discreet.presentation.documents.result_documents import (
    Document,
    Given,
    read_event,
    read_float,
    read_remaining,
    read_some_loss,
    refusing,
    write_event,
    write_remaining,
    write_value,
)
from discreet.privacy import Loss
from discreet.privacy.events import Event

OUR_FAULT = "An internal error occurred. Its cause is not shown."
"""The message of every error that is none of this library's own."""

_CLASSES: Mapping[str, type[DiscreetError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, DiscreetError)
}
_FIELD = re.compile(r"[a-z][a-z_]*")
_LONGEST = 120  # characters of a value that is written as text
_LARGEST = 10**40  # from here on a whole number is written as text: printing larger ones can fail
_OWN = frozenset(("error", "message", "hint", "templates", "notes", "request_id"))


def error_document(error: BaseException) -> Document:
    """Returns an error: the name of its class as "error", "message", "hint", and the fields of its class.

    Fields that name arguments are spelled as Python does; "templates" has them for faces that spell in their own way.

    >>> error_document(errors.UnknownTable("vists", ["visits"]))["hint"]
    "Did you mean 'visits'?"
    >>> error_document(KeyError("a secret"))["error"]
    'InternalError'
    """
    if type(error).__name__ not in _CLASSES or type(error) is InternalError:
        error = InternalError(OUR_FAULT)
    fields = {name: _write(value) for name, value in vars(error).items() if not name.startswith("_")}
    templates = {name: value.template for name, value in vars(error).items() if isinstance(value, Hint)}
    notes = list(getattr(error, "__notes__", ()))
    more = {"templates": templates, "notes": notes}
    told = {"error": type(error).__name__, "message": str(error), "hint": "", **fields}
    return told | {name: value for name, value in more.items() if value}


@refusing("error")
def read_error(document: Given) -> DiscreetError:
    """Returns the error of a document, which may be raised; one of a class that is not known is a `ServiceError`.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    kind = _CLASSES.get(document["error"], errors.ServiceError)
    error = kind.__new__(kind)
    error.args = (str(document["message"]),)
    error.__dict__["hint"] = str(document["hint"])
    for name, value in document.items():
        if name not in _OWN and _FIELD.fullmatch(name):
            error.__dict__[name] = _read(value)
    for name, template in document.get("templates", {}).items():
        if _FIELD.fullmatch(name):
            error.__dict__[name] = Hint(str(template))
    if isinstance(error, errors.MissingExtra):
        error.name, error.msg = document["module"], str(document["message"])  # where the interpreter keeps them
    for note in document.get("notes", ()):
        error.add_note(str(note))
    return error


def _write(value: object) -> Any:
    """Returns a field as JSON; amounts, losses and events keep their types, and all else is written as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, tuple | list):
        return [_write(each) for each in value]
    if (isinstance(value, int) and abs(value) < _LARGEST) or (isinstance(value, float) and math.isfinite(value)):
        return value
    exact = next((write(value) for kind, write in _EXACT.items() if isinstance(value, kind)), {})
    return {"text": _short(value), **exact}


_EXACT: Mapping[type, Callable[[Any], Document]] = {
    float: lambda value: {"float": write_value(value)},
    Fraction: lambda value: {"ratio": str(value)},
    RemainingBudget: write_remaining,
    Loss: lambda value: write_loss(value) if type(value) in NAMES else {},
    Event: lambda value: {"event": write_event(value)},
}
"""What is told beside the text of a value, so that it can be read again."""


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return tuple(_read(each) for each in written)
    if not isinstance(written, Mapping):
        return written
    return next((read(written) for name, read in _READERS.items() if name in written), None)


_READERS: Mapping[str, Callable[[Given], Any]] = {
    "largest_epsilon": read_remaining,  # first: such a document has an epsilon or a rho as well
    "epsilon": read_some_loss,
    "rho": read_some_loss,
    "event": lambda written: read_event(written["event"]),
    "float": lambda written: read_float(written["float"]),
    "ratio": lambda written: Fraction(written["ratio"]),
    "text": lambda written: str(written["text"]),
}
"""How an object is read that has a field of that name."""


def _short(value: object) -> str:
    try:
        text = str(value)
    except ValueError:  # an integer beyond the interpreter's limit for printing
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
