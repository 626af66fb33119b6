"""The documents of results by their kind, each with the functions that write and read it; `VERBS` names the kinds.

A verb whose result has plain parts alone needs no line here: see `plain_results`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from discreet.ledger import Entry, Head
from discreet.presentation.documents.json_values import Document, Given
from discreet.presentation.documents.ledger_documents import read_entry
from discreet.presentation.documents.plain_results import PlainResult
from discreet.requests.verb_table import Verb

_ROOM = "discreet.presentation.documents"


@dataclass(frozen=True, slots=True)
class Result:
    """How a kind of result travels.

    Attributes:
        writes: the function that writes it, as "module:name"; it is loaded when it is first called.
        reads: the function that reads it.
    """

    writes: str
    reads: str

    def write(self, made: Any) -> Document:
        """Returns a result as JSON."""
        found: Document = _function(self.writes)(made)
        return found

    def read(self, document: Given) -> Any:
        """Returns the result of a document."""
        return _function(self.reads)(document)


def _function(place: str) -> Callable[[Any], Any]:
    module, _, name = place.partition(":")
    found: Callable[[Any], Any] = getattr(import_module(f"{_ROOM}.{module}"), name)
    return found


def read_entries(document: Given) -> tuple[Entry, ...]:
    """Returns the entries of a document."""
    return tuple(read_entry(each) for each in document["entries"])


def head_document(head: Head) -> Document:
    """Returns the head of the ledger."""
    return {"head": str(head)}


def read_head(document: Given) -> Head:
    """Returns the head of a document."""
    return Head.parse(document["head"])


def nothing_document(_: None) -> Document:
    """Returns the document of an action that returns nothing."""
    return {}


def read_nothing(_: Given) -> None:
    """Returns nothing, whatever the document tells."""


def _in(module: str, *kinds: str) -> dict[str, Result]:
    """Returns results whose functions are named after their kinds."""
    return {kind: Result(f"{module}:{_word(kind)}_document", f"{module}:read_{_word(kind)}") for kind in kinds}


def _word(kind: str) -> str:
    return kind.replace(" ", "_")


RESULTS: Mapping[str, Result] = {
    **_in("answer_documents", "answer", "answers"),
    "explanation": Result("plan_documents:explanation_document", "told_plans:read_explanation"),
    "profile": Result("profile_documents:profile_document", "told_plans:read_profile"),
    **_in("plan_documents", "choices"),
    **_in("model_documents", "model", "fit plan"),
    **_in("synthesis_documents", "synthetic table", "synthetic tables", "synthesis plan"),
    **_in("ledger_documents", "balance", "standing"),
    "entries": Result("ledger_documents:history_document", "result_documents:read_entries"),
    **_in("result_documents", "head", "nothing"),
}
"""All kinds of results that leave a process, but for plain ones."""


def result_of(verb: Verb) -> Result | PlainResult:
    """Returns how the result of a verb travels.

    >>> from discreet.requests.verb_table import VERBS
    >>> result_of(VERBS["verify"]).writes
    'result_documents:head_document'
    """
    return RESULTS[verb.document] if verb.document else PlainResult(verb.name, verb.result)
