"""Learners as documents: what a fit would cost, and the fitted model; plain data, no pickle, no code."""

from __future__ import annotations

from typing import Any

from discreet.curator.training.trainer import FitPlan
from discreet.lazy import load
from discreet.ledger import RemainingBudget
from discreet.ledger.cost import Cost
from discreet.presentation.documents.result_documents import PLANNED, Document, DocumentForm, Given, write_plain

_TOLD = ("columns", "cost", "remaining", "replayed", "notes")
"""What a fit leaves in a learner beside its text, each with an underscore after its name."""


def _restore_learner(**told: Any) -> Any:
    """Returns the learner of a text, as a fit left it; nothing in the text is executed."""
    model = _store().from_json(told["model"])
    for name in _TOLD:
        setattr(model, f"{name}_", told[name])
    return model


MODEL: DocumentForm[Any] = DocumentForm(
    kind="model",
    about="A fitted learner: `model` is the text that `discreet.learn.load` reads.",
    make=_restore_learner,
    parts={
        "learner": str,
        "model": str,
        "columns": list[str],
        "cost": Cost,
        "remaining": RemainingBudget,
        "replayed": bool,
        "notes": tuple[str, ...],
        "private": bool,
    },
    writes=lambda model: {
        "learner": type(model).__name__,
        "model": _store().to_json(model),
        **{name: write_plain(getattr(model, f"{name}_")) for name in (*_TOLD, "private")},
    },
)


def _write_values(plan: FitPlan) -> Document:
    return {
        "params": {name: _store().write_value(value, name) for name, value in plan.params.items()},
        "classes": None if plan.classes is None else [_store().write_value(value, "classes") for value in plan.classes],
    }


def _read_values(document: Given) -> Document:
    classes, params = document["classes"], document["params"]
    return {
        "params": {name: _store().read_value(value) for name, value in params.items()},
        "classes": None if classes is None else tuple(_store().read_value(value) for value in classes),
    }


FIT_PLAN = DocumentForm(
    kind="fit plan",
    about="What a fit would release and cost.",
    make=FitPlan,
    parts={
        "learner": str,
        "features": tuple[str, ...],
        "limits": tuple[tuple[float, float], ...],
        **PLANNED,
        "params": dict[str, Any],
        "classes": list[Any] | None,
        "text": str,
    },
    writes=_write_values,
    reads=_read_values,
)


def _store() -> Any:
    return load("discreet.learn.persistence.store", "A learner")
