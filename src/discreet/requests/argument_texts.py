"""Arguments as one text, which a person typed into a form or a setting: how each kind is read from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.requests.request import Arg, ArgumentKind, check_kinds, read_argument

_LONGEST_COUNT = 30  # digits; longer ones are refused before they are read


def read_text(name: str, text: str, arg: Arg) -> Any:
    """Returns what a text says, as `Request.of` takes it.

    Lists have commas between their items; items that have commas themselves stand on lines of their own, and queries
    have empty lines between them.

    Raises:
        InvalidParameter: naming the argument, if the text has another form.
    """
    if not arg.many:
        return _TEXTS[arg.kind](name, text, arg)
    return [_TEXTS[arg.kind](name, item, arg) for item in split_items(text, arg.kind)]


def read_fitting(name: str, text: str, arg: Arg) -> Any:
    """Returns the same, of a text whose value is within the domain of the argument.

    Raises:
        InvalidParameter: naming the argument, if it is not, or the text has another form.
    """
    said = read_text(name, text, arg)
    read_argument(name, said, arg)
    return said


def split_items(text: str, kind: ArgumentKind) -> list[str]:
    r"""Returns the items of a list that are not empty.

    >>> split_items("0.1, 1,", ArgumentKind.AMOUNT), split_items("SELECT 1;\n\nSELECT\n2", ArgumentKind.SQL)
    (['0.1', '1'], ['SELECT 1', 'SELECT\n2'])
    """
    if kind is ArgumentKind.SQL:
        queries = "\n".join(line.strip() and line for line in text.splitlines()).split("\n\n")
        return [query.strip().removesuffix(";") for query in queries if query.strip()]
    parts = text.splitlines() if kind is ArgumentKind.NAMES else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def _plain(_: str, text: str, __: Arg) -> str:
    return text


def _count(name: str, text: str, arg: Arg) -> int:
    if not (text.isascii() and text.lstrip("-").isdigit() and len(text) <= _LONGEST_COUNT):
        raise InvalidParameter(name, text, "to be a whole number", Hint(f"Pass e.g. {{{name}:{arg.example or '10'}}}."))
    return int(text)


def _json(name: str, text: str, _: Arg) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter(name, text, "to be JSON", 'Write a list, or an object such as {"age": 40}.') from None


def _limits(name: str, text: str, arg: Arg) -> Any:
    return text if text == "choose" else _json(name, text, arg)


_TEXTS: Mapping[ArgumentKind, Callable[[str, str, Arg], Any]] = check_kinds(
    {
        ArgumentKind.SQL: _plain,
        ArgumentKind.NAME: _plain,
        ArgumentKind.NAMES: lambda _, text, __: split_items(text, ArgumentKind.NAME),
        ArgumentKind.TEXT: _plain,
        ArgumentKind.AMOUNT: _plain,
        ArgumentKind.SHARE: _plain,
        ArgumentKind.DELTA: _plain,
        ArgumentKind.PRICE: _plain,
        ArgumentKind.COUNT: _count,
        ArgumentKind.LIMITS: _limits,
        ArgumentKind.VALUE: _plain,
        ArgumentKind.VALUES: _json,
        ArgumentKind.LEARNER: _json,
        ArgumentKind.GENERATOR: _plain,
        ArgumentKind.DOMAIN: _json,
        ArgumentKind.DOMAINS: _json,
        ArgumentKind.RULES: _json,
        ArgumentKind.BUDGET: _json,
    },
    "text",
)
