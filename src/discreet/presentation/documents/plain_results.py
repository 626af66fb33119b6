"""Results of plain parts as documents, derived from their types: a verb that returns one needs no functions of its own.

Plain are numbers, texts, truth values, days and moments, exact amounts, losses, lists of these, and dataclasses.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from discreet.errors import InternalError
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_float,
    read_some_loss,
    reader,
    write_amount,
    write_loss_text,
    write_value,
)
from discreet.privacy import Loss


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
    if isinstance(made, Loss):
        return write_loss_text(made)
    if is_dataclass(made):
        return {each.name: write_plain(getattr(made, each.name)) for each in fields(made)}
    if isinstance(made, Mapping):
        return {str(name): write_plain(part) for name, part in made.items()}
    if isinstance(made, tuple | list):
        return [write_plain(part) for part in made]
    return write_amount(made) if isinstance(made, Fraction) else write_value(made)


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
    if origin is dict:
        return {name: read_plain(parts[1], part) for name, part in written.items()}
    if is_dataclass(kind) and isinstance(kind, type) and not issubclass(kind, Loss):
        hints = get_type_hints(kind)
        return kind(**{each.name: read_plain(hints[each.name], written[each.name]) for each in fields(kind)})
    for known, read in _READ.items():
        if isinstance(kind, type) and issubclass(kind, known):
            return read(written)
    raise InternalError(f"{kind} is not plain: documents.RESULTS names functions for such results.")


def _same(kind: type) -> Any:
    def read(written: Any) -> Any:
        if type(written) is not kind:
            raise TypeError(kind.__name__)
        return written

    return read


_READ: Mapping[type, Any] = {
    Loss: read_some_loss,
    Fraction: Fraction,
    bool: _same(bool),
    int: _same(int),
    float: read_float,
    str: _same(str),
    dt.datetime: dt.datetime.fromisoformat,  # before date, of which it is one
    dt.date: dt.date.fromisoformat,
    type(None): _same(type(None)),
}
"""How each plain type is read, the narrower before the wider."""
