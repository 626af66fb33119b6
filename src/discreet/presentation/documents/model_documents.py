"""Learners as documents: what a fit would cost, and the fitted model; plain data, no pickle, no code."""

from __future__ import annotations

from typing import Any

from discreet.curator.training.trainer import FitPlan
from discreet.lazy import load
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_any_loss,
    read_event,
    read_float,
    read_remaining,
    read_some_loss,
    reader,
    write_event,
    write_loss_text,
    write_remaining,
    write_value,
)


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
    return {
        "kind": "fit plan",
        "learner": plan.learner,
        "params": {name: _store().write_value(value, name) for name, value in plan.params.items()},
        "features": list(plan.features),
        "limits": [[write_value(low), write_value(high)] for low, high in plan.limits],
        "classes": None if plan.classes is None else [_plain().write(value, "classes") for value in plan.classes],
        "event": write_event(plan.event),
        "cost": write_loss_text(plan.cost),
        "remaining": write_loss_text(plan.remaining),
        "notes": list(plan.notes),
        "free": plan.free,
        "caps": {who: write_loss_text(left) for who, left in plan.caps.items()},
        "refusal": plan.refusal,
        "text": str(plan),
    }


@reader("account of a fit")
def read_fit_plan(document: Given) -> FitPlan:
    """Returns the plan of a fit of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    classes = document["classes"]
    return FitPlan(
        learner=str(document["learner"]),
        params={name: _store().read_value(value) for name, value in document["params"].items()},
        features=tuple(map(str, document["features"])),
        limits=tuple((read_float(low), read_float(high)) for low, high in document["limits"]),
        classes=None if classes is None else tuple(_plain().read(value) for value in classes),
        event=read_event(document["event"]),
        cost=read_any_loss(document["cost"]),
        remaining=read_some_loss(document["remaining"]),
        notes=tuple(map(str, document["notes"])),
        free=bool(document["free"]),
        caps={who: read_some_loss(left) for who, left in document["caps"].items()},
        refusal=document["refusal"],
    )


def _store() -> Any:
    return load("discreet.learn.persistence.store", "A learner")


def _plain() -> Any:
    return load("discreet.learn.persistence.plain_data", "A learner")
