"""Entries of the book in a few words, for pages."""

from __future__ import annotations

import json
from typing import Any

from discreet.ledger import Entry
from discreet.ledger.serialization import read_loss
from discreet.presentation.documents.query_text import asked_text


def entry_details(entry: Entry) -> str:
    """Returns what an entry says, in a few words: of a charge, its question."""
    content = entry.content
    if entry.kind == "charge":
        return asked_text(content)
    if entry.kind == "anchor":
        return anchor_words(content)
    if entry.about:
        return f"of entry {entry.about}"
    told = {name: value for name, value in content.items() if value not in (None, "") and name not in _LONG}
    return "; ".join(f"{name}: {_short(value)}" for name, value in told.items())


def anchor_words(content: dict[str, Any]) -> str:
    """Returns what an entry about the ledger's anchor says."""
    words = {
        "begun": "begun with the ledger",
        "marked": "begun for a ledger of an earlier version",
        "joined": f"joined on another machine, by the head {content.get('head', '')[:16]}",
        "accepted": f"missing, and accepted: {content.get('reason', '')}",
    }
    return words.get(content["how"], str(content["how"]))


_LONG = frozenset(("declaration", "before", "files"))  # what a line has no room for


def _short(value: Any) -> str:
    if isinstance(value, dict) and value.keys() & {"epsilon", "rho"} and value.keys() <= {"epsilon", "delta", "rho"}:
        return str(read_loss(value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items() if one not in (None, "", [], {}))
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
