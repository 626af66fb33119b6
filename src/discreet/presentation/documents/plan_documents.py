"""What is told before anything is spent, as documents: explanations, and budgets side by side."""

from __future__ import annotations

from discreet.accounting import Risk
from discreet.curator.asking.answer import columns
from discreet.curator.asking.choices import Choice, Choices
from discreet.curator.asking.explanation import Explanation
from discreet.presentation.documents.answer_documents import question_types
from discreet.presentation.documents.json_values import Document, Given, reader, write_amount
from discreet.presentation.documents.plain_results import read_fields, write_fields


def explanation_document(told: Explanation) -> Document:
    """Returns all that an explanation tells; its "columns" are those that the answer would have."""
    question = told.program.question
    names = columns(question)
    kinds = question_types(question, names)
    return {
        "kind": "explanation",
        "columns": [{"name": name, "type": kinds[name].value} for name in names],
        **write_fields(told, without=("program", "remarks")),
        "limits": write_fields(told.limits),
        "notes": list(told.notes),
        "facts": dict(told.facts),
        "text": str(told),
    }


def choices_document(told: Choices) -> Document:
    """Returns budgets side by side: of each the errors, and what an attacker could learn."""
    return {
        "kind": "choices",
        "confidence": write_amount(told.confidence),
        "rows": told.rows,
        "choices": [_choice(choice) for choice in told.choices],
        "text": str(told),
    }


@reader("answer about budgets")
def read_choices(document: Given) -> Choices:
    """Returns the choices of a document.

    Raises:
        InvalidParameter: if it is the document of nothing of the kind.
    """
    return read_fields(Choices, document, choices=tuple(_read_choice(each) for each in document["choices"]))


def _choice(choice: Choice) -> Document:
    return {**write_fields(choice, without=("risk",)), **write_fields(choice.risk), "words": choice.words}


def _read_choice(written: Given) -> Choice:
    return read_fields(Choice, written, risk=read_fields(Risk, written))
