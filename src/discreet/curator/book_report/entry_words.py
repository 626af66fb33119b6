"""Entries of the book in a few words, for pages."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Any

from discreet.ledger import Entry
from discreet.ledger.serialization import read_loss


def entry_details(entry: Entry) -> str:
    """Returns what an entry says, in a few words: of a charge, its question."""
    content = entry.content
    if entry.kind == "charge":
        return question_words(content)
    if entry.about:
        return f"of entry {entry.about}"
    told = {name: value for name, value in content.items() if value not in (None, "") and name not in _LONG}
    return "; ".join(f"{name}: {_short(value)}" for name, value in told.items())


_LONG = frozenset(("declaration", "before", "files"))  # what a line has no room for


def question_words(content: dict[str, Any]) -> str:
    """Returns what a charge was for: as it was asked if the book has that, else its plan in words."""
    asked = content.get("sql")
    return asked if isinstance(asked, str) and asked else question_text(content.get("question"))


def _short(value: Any) -> str:
    if isinstance(value, dict) and value.keys() & {"epsilon", "rho"} and value.keys() <= {"epsilon", "delta", "rho"}:
        return str(read_loss(value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items() if one not in (None, "", [], {}))
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def question_text(question: Any) -> str:
    """What was asked, in a few words, from its plan: for books and questions that do not have the text.

    >>> question_text('{"aggregates":[{"kind":"count"}],"keys":[["ward",["column","ward","text"]]],"table":"visits"}')
    'count of visits by ward'
    """
    if isinstance(question, str):
        return _text_of(question)
    try:
        return _words(question)
    except _STRANGE:
        return str(question)


_STRANGE = AttributeError, IndexError, KeyError, TypeError, ValueError  # of a plan that another version has written


@lru_cache(maxsize=4096)  # the same questions are asked again and again
def _text_of(question: str) -> str:
    try:
        return _words(json.loads(question))
    except _STRANGE:
        return question


def _words(told: dict[str, Any]) -> str:
    if "batch" in told:
        return f"{len(told['batch'])} questions: {'; '.join(_words(one) for one in told['batch'])}"
    about, keys = told.get("table"), [str(key[0]) for key in told.get("keys", ())]
    if "fit" in told:
        return f"{told['fit']['class']} fitted to {about}"
    kinds = [_aggregate(one) for one in told.get("aggregates", ())]
    if not kinds or not isinstance(about, str):
        return _short(told)
    numbers = ", ".join(kind if count == 1 else f"{kind} x {count}" for kind, count in Counter(kinds).items())
    some = " (filtered)" if told.get("where") is not None else ""
    return f"{numbers} of {about}{some}" + (f" by {', '.join(keys)}" if keys else "")


def _aggregate(told: dict[str, Any]) -> str:
    """The kind, and the column that it is about if it is one; a filter, which may be sensitive, is only mentioned."""
    kind, argument = str(told.get("kind", "")), told.get("argument")
    return f"{kind}({argument[1]})" if isinstance(argument, list) and argument[0] == "column" else kind
