"""Entries of the book in a few words, for pages."""

from __future__ import annotations

import json
from collections import Counter
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
    """What was asked, in a few words: the book has a question as a plan, without the text it was written as."""
    try:
        told = json.loads(question) if isinstance(question, str) else question
        kinds = [str(one.get("kind", "")) for one in told.get("aggregates", ())]
        keys = [str(key[0]) for key in told.get("keys", ())]
        about = told.get("table")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return str(question)
    if not kinds or not isinstance(about, str):
        return _short(told)
    numbers = ", ".join(kind if count == 1 else f"{kind} x {count}" for kind, count in Counter(kinds).items())
    return f"{numbers} of {about}" + (f" by {', '.join(keys)}" if keys else "")
