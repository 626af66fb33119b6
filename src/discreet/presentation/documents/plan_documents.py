"""What is told before anything is spent, as documents: explanations, and budgets side by side."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from discreet.accounting import Risk
from discreet.curator.asking.answer import columns
from discreet.curator.asking.choices import Choice, Choices
from discreet.curator.asking.explanation import Explanation
from discreet.presentation.documents.answer_documents import question_types
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_float,
    read_some_loss,
    reader,
    write_amount,
    write_event,
    write_loss_text,
    write_value,
)


def explanation_document(told: Explanation) -> Document:
    """Returns all that an explanation tells; its "columns" are those that the answer would have."""
    question = told.program.question
    names = columns(question)
    kinds = question_types(question, names)
    return {
        "kind": "explanation",
        "columns": [{"name": name, "type": kinds[name].value} for name in names],
        "account": told.account,
        "unit": told.unit,
        "cost": write_loss_text(told.cost),
        "remaining": write_loss_text(told.remaining),
        "errors": _errors(told.errors),
        "confidence": write_amount(told.confidence),
        "rows": told.rows,
        "event": write_event(told.event),
        "limits": {"groups": told.limits.groups, "rows": told.limits.rows},
        "notes": list(told.notes),
        "free": told.free,
        "pending": told.pending,
        "caps": {who: write_loss_text(left) for who, left in told.caps.items()},
        "refusal": told.refusal,
        "saved": told.saved,
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
    choices = tuple(_read_choice(each) for each in document["choices"])
    return Choices(choices=choices, confidence=Fraction(document["confidence"]), rows=int(document["rows"]))


def _choice(choice: Choice) -> Document:
    risk = choice.risk
    return {
        "budget": write_loss_text(choice.budget),
        "errors": _errors(choice.errors),
        "power": risk.power,
        "false_positives": write_amount(risk.false_positives),
        "posterior": risk.posterior,
        "prior": write_amount(risk.prior),
        "guess": risk.guess,
        "chance": write_amount(risk.chance),
        "words": choice.words,
    }


def _read_choice(written: Given) -> Choice:
    risk = Risk(
        power=read_float(written["power"]),
        false_positives=Fraction(written["false_positives"]),
        posterior=read_float(written["posterior"]),
        prior=Fraction(written["prior"]),
        guess=read_float(written["guess"]),
        chance=Fraction(written["chance"]),
    )
    errors = {name: read_float(error) for name, error in written["errors"].items()}
    return Choice(budget=read_some_loss(written["budget"]), errors=errors, risk=risk)


def _errors(found: Mapping[str, float]) -> Document:
    return {name: write_value(error) for name, error in found.items()}
