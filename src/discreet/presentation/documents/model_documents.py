"""Learners as documents: what a fit would cost, and the fitted model; plain data, no pickle, no code."""

from __future__ import annotations

from typing import Any

from discreet.curator.training.trainer import FitPlan
from discreet.lazy import load
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_remaining,
    read_some_loss,
    reader,
    write_loss_text,
    write_remaining,
)
from discreet.presentation.documents.plain_results import read_fields, write_fields


def model_document(model: Any) -> Document:
    """Returns a learner that a curator has fitted: its text, as `discreet.learn.save` writes it, and what it cost."""
    return {
        "kind": "model",
        "learner": type(model).__name__,
        "model": _store().to_json(model),
        "columns": list(model.columns_),
        "cost": write_loss_text(model.cost_),
        "remaining": write_remaining(model.remaining_),
        "replayed": model.replayed_,
        "notes": list(model.notes_),
        "private": model.private_,
    }


@reader("model")
def read_model(document: Given) -> Any:
    """Returns the fitted learner of a document; nothing in it is executed.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    model = _store().from_json(document["model"])
    model.columns_ = list(map(str, document["columns"]))
    model.cost_ = read_some_loss(document["cost"])
    model.remaining_ = read_remaining(document["remaining"])
    model.replayed_ = bool(document["replayed"])
    model.notes_ = tuple(map(str, document["notes"]))
    return model


def fit_plan_document(plan: FitPlan) -> Document:
    """Returns what a fit would release and cost."""
    classes = None if plan.classes is None else [_plain().write(value, "classes") for value in plan.classes]
    return {
        "kind": "fit plan",
        **write_fields(plan, without=("params", "classes")),
        "params": {name: _store().write_value(value, name) for name, value in plan.params.items()},
        "classes": classes,
        "text": str(plan),
    }


@reader("account of a fit")
def read_fit_plan(document: Given) -> FitPlan:
    """Returns the plan of a fit of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    classes, params = document["classes"], document["params"]
    return read_fields(
        FitPlan,
        document,
        params={name: _store().read_value(value) for name, value in params.items()},
        classes=None if classes is None else tuple(_plain().read(value) for value in classes),
    )


def _store() -> Any:
    return load("discreet.learn.persistence.store", "A learner")


def _plain() -> Any:
    return load("discreet.learn.persistence.plain_data", "A learner")
