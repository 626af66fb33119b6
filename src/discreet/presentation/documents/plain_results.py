"""Results of plain parts as documents, derived from their types: a verb that returns one needs no functions of its own.

Plain are numbers, texts, truth values, days and moments, exact amounts, losses, lists of these, and dataclasses.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from discreet.errors import InternalError
from discreet.ledger import Remaining, Role
from discreet.measurement.profile.sizes import Figure
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    Made,
    read_event,
    read_figure,
    read_float,
    read_remaining,
    read_some_loss,
    reader,
    write_amount,
    write_event,
    write_figure,
    write_loss_text,
    write_remaining,
    write_value,
)
from discreet.privacy import Loss
from discreet.privacy.events import Event


@dataclass(frozen=True, slots=True)
class PlainResult:
    """How a plain result travels: a dataclass by its fields, all else as "value".

    Attributes:
        kind: of the document.
        type: of the result.
    """

    kind: str
    type: Any

    def write(self, made: Any) -> Document:
        """Returns a result as JSON."""
        told = write_plain(made)
        return {"kind": self.kind, **(told if is_dataclass(self.type) else {"value": told})}

    def read(self, document: Given) -> Any:
        """Returns the result of a document.

        Raises:
            InvalidParameter: if it is the document of another result.
        """
        return reader(self.kind)(lambda found: read_plain(self.type, self._part(found)))(document)

    def _part(self, found: Given) -> Any:
        if found["kind"] != self.kind:
            raise ValueError(found["kind"])
        return found if is_dataclass(self.type) else found["value"]


def write_plain(made: Any) -> Any:
    """Returns a plain result as JSON.

    >>> write_plain((Fraction(1, 3), dt.date(2026, 3, 1), {"A": 2}))
    ['1/3', '2026-03-01', {'A': 2}]
    """
    write = next((write for kind, write in _WRITE.items() if isinstance(made, kind)), None)
    if write is not None:
        return write(made)
    if is_dataclass(made):
        return write_fields(made)
    if isinstance(made, Mapping):
        return {str(name): write_plain(part) for name, part in made.items()}
    return [write_plain(part) for part in made] if isinstance(made, tuple | list) else write_value(made)


def write_fields(made: Any, *, of: Any = None, without: Collection[str] = ()) -> Document:
    """Returns the fields of a dataclass as JSON.

    Args:
        made: an object of it.
        of: the class whose fields are written; its own unless given.
        without: fields that are left out.
    """
    names = [each.name for each in fields(of or made) if each.name not in without]
    return {name: write_plain(getattr(made, name)) for name in names}


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
    if origin in (tuple, list):
        return origin(read_plain(parts[0], part) for part in written)
    if origin in (dict, Mapping):
        return {name: read_plain(parts[1], part) for name, part in written.items()}
    read = next((read for known, read in _READ.items() if isinstance(kind, type) and issubclass(kind, known)), None)
    if read is not None:
        return read(written)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise InternalError(f"{kind} is not plain: documents.RESULTS names functions for such results.")
    return read_fields(kind, written)


def read_fields(kind: type[Made], written: Given, **known: Any) -> Made:
    """Returns the object of a dataclass whose fields `write_fields` wrote, but for those that are known already."""
    hints = get_type_hints(kind)
    own: Any = kind
    names = [each.name for each in fields(own) if each.name not in known]
    return kind(**{name: read_plain(hints[name], written[name]) for name in names}, **known)


def read_parts(kinds: Mapping[str, Any], written: Given) -> dict[str, Any]:
    """Returns parts of a document by their names, each of its type."""
    return {name: read_plain(kind, written[name]) for name, kind in kinds.items()}


def _same(kind: type) -> Callable[[Any], Any]:
    def read(written: Any) -> Any:
        if type(written) is not kind:
            raise TypeError(kind.__name__)
        return written

    return read


_WRITE: Mapping[type, Callable[[Any], Any]] = {
    Loss: write_loss_text,
    Remaining: write_remaining,
    Event: write_event,
    Figure: write_figure,
    Fraction: write_amount,
    Role: lambda role: role.value,
}
_READ: Mapping[type, Callable[[Any], Any]] = {
    Loss: read_some_loss,
    Remaining: read_remaining,
    Event: read_event,
    Figure: read_figure,
    Fraction: Fraction,
    Role: Role,
    bool: _same(bool),
    int: _same(int),
    float: read_float,
    str: _same(str),
    dt.datetime: dt.datetime.fromisoformat,  # before date, of which it is one
    dt.date: dt.date.fromisoformat,
    type(None): _same(type(None)),
}
"""How the types of parts are written and read, the narrower before the wider."""
