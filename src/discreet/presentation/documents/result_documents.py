"""The documents of results by their kind, each with the functions that write and read it; `VERBS` names the kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from discreet.ledger import Entry, Head
from discreet.presentation.documents.json_values import Document, Given
from discreet.presentation.documents.ledger_documents import read_entry

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


def _synthesis(writes: str, reads: str) -> Result:
    return Result(f"synthesis_documents:{writes}", f"synthesis_documents:{reads}")


RESULTS: Mapping[str, Result] = {
    "answer": Result("answer_documents:answer_document", "answer_documents:read_answer"),
    "answers": Result("answer_documents:answers_document", "answer_documents:read_answers"),
    "explanation": Result("plan_documents:explanation_document", "told_plans:read_explanation"),
    "choices": Result("plan_documents:choices_document", "plan_documents:read_choices"),
    "profile": Result("profile_documents:profile_document", "told_plans:read_profile"),
    "model": Result("model_documents:model_document", "model_documents:read_model"),
    "fit plan": Result("model_documents:fit_plan_document", "model_documents:read_fit_plan"),
    "synthetic table": Result(
        "synthesis_documents:synthetic_table_document", "synthesis_documents:read_synthetic_table"
    ),
    "synthetic tables": Result(
        "synthesis_documents:synthetic_tables_document", "synthesis_documents:read_synthetic_tables"
    ),
    "synthesis plan": Result("synthesis_documents:synthesis_plan_document", "synthesis_documents:read_synthesis_plan"),
    "balance": Result("ledger_documents:balance_document", "ledger_documents:read_balance"),
    "standing": Result("ledger_documents:standing_document", "ledger_documents:read_standing"),
    "entries": Result("ledger_documents:history_document", "result_documents:read_entries"),
    "head": Result("result_documents:head_document", "result_documents:read_head"),
    "nothing": Result("result_documents:nothing_document", "result_documents:read_nothing"),
}
"""All kinds of results that leave a process."""
