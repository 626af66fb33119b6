"""Domains of columns as arguments: what `discreet.synthetic.Domain` takes, and the same as JSON or TOML."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidParameter
from discreet.lazy import load

EXAMPLES = (
    "Give each column a list of keys, or one of these: {bins = [0, 10, 20]}; "
    "{bins = [0, 10, 20], within = 'histogram'}; {calendar = 'year_month', years = [2020, 2024]}; "
    "{unknown_keys = 100}."
)
_CLASSES = {
    "keys": ("Keys", "keys", {"missing"}),
    "bins": ("Bins", "edges", {"missing", "whole", "within"}),
    "calendar": ("Calendar", "part", {"years", "missing"}),
    "unknown_keys": ("UnknownKeys", "most", {"other", "missing"}),
}
"""For each word of JSON the class it makes, the attribute that it sets, and the options of that class."""


def read_domain(name: str, given: Any) -> Any:
    """Returns domains by column, with objects in the place of their JSON.

    Raises:
        InvalidParameter: if a column is described by something else.
    """
    if not isinstance(given, Mapping):
        return given
    return {column: _read(name, column, one) for column, one in given.items()}


def read_domains(name: str, given: Any) -> Any:
    """Returns domains by table and column.

    Raises:
        InvalidParameter: if there is not a section for each table.
    """
    if not isinstance(given, Mapping):
        raise InvalidParameter(name, given, "to be domains by table", 'Pass e.g. {"visits": {"ward": ["A", "B"]}}.')
    if not all(isinstance(columns, Mapping) or hasattr(columns, "columns") for columns in given.values()):
        raise InvalidParameter(name, "columns", "to have a section for each of the two tables", "[visits]")
    return {table: read_domain(name, columns) for table, columns in given.items()}


def _read(name: str, column: str, given: Any) -> Any:
    if isinstance(given, str | int | float):
        raise InvalidParameter(name, column, "to have public values", EXAMPLES)
    if not isinstance(given, Mapping):
        return given
    words = [word for word in _CLASSES if word in given]
    if len(words) != 1 or set(given) - {words[0]} - _CLASSES[words[0]][2]:
        raise InvalidParameter(name, column, "to have public values", EXAMPLES)
    (word,) = words
    kind, attribute, _ = _CLASSES[word]
    made = getattr(load("discreet.synthetic", "A domain"), kind)
    try:
        return made(given[word], **{option: value for option, value in given.items() if option != word})
    except InvalidParameter as error:  # which calls it as Python does
        part = word if error.name == attribute else error.name
        raise InvalidParameter(f"{name}.{column}.{part}", error.value, error.condition, EXAMPLES) from None


def write_domain(name: str, given: Any) -> Any:
    """Returns domains as JSON that `read_domain` reads.

    Raises:
        InvalidParameter: if one cannot be written.
    """
    if not isinstance(given, Mapping):
        raise InvalidParameter(name, type(given).__name__, "to be public values by column", EXAMPLES)
    return {column: _write(name, column, one) for column, one in given.items()}


def write_domains(name: str, given: Any) -> Any:
    """Returns domains by table and column as JSON that `read_domains` reads."""
    return {table: write_domain(name, columns) for table, columns in given.items()}


def _write(name: str, column: str, given: Any) -> Any:
    if isinstance(given, range):
        return {"bins": [*given, given.stop]}
    if isinstance(given, list | tuple) and not any(isinstance(one, dt.date) for one in given):
        return list(given)
    for word, (kind, attribute, options) in _CLASSES.items():
        if type(given).__name__ == kind:
            found = getattr(given, attribute)
            told = {option: getattr(given, option) for option in options if getattr(given, option, None) is not None}
            return {word: list(found) if isinstance(found, tuple) else found, **told}
    raise InvalidParameter(name, column, "to have values that JSON can hold", EXAMPLES)
