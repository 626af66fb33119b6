"""Pipelines as plain data: public steps as their class and parameters, learners as what they were fitted to.

A public step reads no data, so that nothing it was fitted to is kept: it is made again from its parameters, and fitted
to one placeholder row of the columns that the pipeline saw. So no attribute of scikit-learn's own is ever written or
set, and a file that one version wrote is read by others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline as PlainPipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from discreet.lazy import load
from discreet.learn.learner import Learner
from discreet.learn.persistence.plain_data import refuse
from discreet.learn.pipelines.pipeline import Pipeline
from discreet.learn.pipelines.public_encoders import PublicOneHotEncoder, PublicOrdinalEncoder, PublicScaler
from discreet.learn.privacy_warnings import in_an_account

_OURS: Sequence[type[Any]] = (PublicOneHotEncoder, PublicOrdinalEncoder, PublicScaler)
_THEIRS: Sequence[type[Any]] = (ColumnTransformer, OneHotEncoder, OrdinalEncoder, SimpleImputer, PlainPipeline)
STEPS: Mapping[str, type[Any]] = {
    **{kind.__name__: kind for kind in _OURS},
    **{f"sklearn.{kind.__name__}": kind for kind in _THEIRS},
}
"""Steps that a text may hold next to learners, by the names that they have there."""

MOST_COLUMNS = 1 << 14
_KINDS = ("text", "|b1", "<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "<f2")


def step_name(step: object) -> str | None:
    """Returns the name of a step's class; None if it is none of them."""
    return next((name for name, kind in STEPS.items() if type(step) is kind), None)


def changed_parameters(step: Any) -> dict[str, Any]:
    """Returns the parameters of a step that are not as they are by default: what versions add is not written."""
    known = type(step)._get_param_names()
    usual = _defaults(type(step))
    own = {name: getattr(step, name) for name in known}
    return {name: value for name, value in own.items() if name not in usual or not _same(value, usual[name])}


def _defaults(kind: type[Any]) -> dict[str, Any]:
    needed: dict[type[Any], dict[str, Any]] = {ColumnTransformer: {"transformers": []}, PlainPipeline: {"steps": []}}
    made = kind(**needed.get(kind, {}))
    return {name: getattr(made, name) for name in kind._get_param_names() if name not in needed.get(kind, {})}


def _same(value: Any, usual: Any) -> bool:
    if value is usual:
        return True
    plain = type(value) is type(usual) and isinstance(value, bool | int | float | str | tuple)
    return plain and (value == usual or (value != value and usual != usual))  # noqa: PLR0124  # NaN by default


def made_step(name: str, params: dict[str, Any]) -> Any:
    """Returns a new step of a class by name.

    Raises:
        InvalidParameter: if there is no such class, or it has no such parameters.
    """
    kind = STEPS.get(name)
    if kind is None or not set(params) <= set(kind._get_param_names()):
        refuse(str(name)[:40], f"to be one of {', '.join(STEPS)}, with parameters of its own")
    try:
        return kind(**params)
    except TypeError:
        refuse(name, "to have the parameters that it needs")


def fit_again(pipeline: Pipeline, columns: Any, learners: Sequence[Any]) -> None:
    """Makes a pipeline that was read a fitted one, from the columns it saw and its fitted learners.

    Raises:
        InvalidParameter: if they do not fit each other.
    """
    rows, left = _made_up(columns), iter(learners)
    names = [name for name, _ in columns]
    try:
        pipeline.plan_event(len(names), None if None in names else names)  # every step is one that reads no data
        with in_an_account():
            for place, (name, step) in enumerate(pipeline.steps):
                fitted, rows = _again(step, rows, left, last=place == len(pipeline.steps) - 1)
                pipeline.steps[place] = (name, fitted)
        if next(left, None) is not None:
            refuse("a pipeline", "to have as many models as private steps")
    except Exception:  # noqa: BLE001  # whatever a text made of a step, it is refused
        refuse("a pipeline", "to have steps that fit its columns")


def _again(step: Any, rows: Any, left: Iterator[Any], *, last: bool) -> tuple[Any, Any]:
    """Returns a step as it was fitted, and what it makes of the placeholder row."""
    if isinstance(step, Learner):
        model = _next_like(step, left)
        return model, rows if last else model.transform(rows)
    if isinstance(step, str | None):
        return step, rows
    made = step.fit_transform(rows)
    return _put(step, left), made


def _put(step: Any, left: Iterator[Any]) -> Any:
    """Returns a fitted public step, with fitted learners in the places of those that met the placeholder row."""
    if isinstance(step, Learner):
        return _next_like(step, left)
    if isinstance(step, PlainPipeline):
        step.steps = [(name, _put(each, left)) for name, each in step.steps]
    elif isinstance(step, ColumnTransformer):
        step.transformers_ = [(name, _put(each, left), columns) for name, each, columns in step.transformers_]
    return step


def _next_like(step: Any, left: Iterator[Any]) -> Any:
    model = next(left)
    if type(model) is not type(step):
        refuse(type(model).__name__, f"to be a {type(step).__name__}")
    return model


def _made_up(columns: Any) -> Any:
    """Returns one row of the columns: 0 for numbers, an empty text for texts."""
    pairs = columns if isinstance(columns, list) and 0 < len(columns) <= MOST_COLUMNS else refuse("columns", "a list")
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and pair[1] in _KINDS and isinstance(pair[0], str | None)):
            refuse("a column", "to have a name and a type")
    if any(name is None for name, _ in pairs):
        text = any(kind == "text" for _, kind in pairs)
        return np.array([[""] * len(pairs)], dtype=object) if text else np.zeros((1, len(pairs)), dtype=pairs[0][1])
    pandas = load("pandas", "A pipeline for tables with names")
    values = {name: [""] if kind == "text" else np.zeros(1, dtype=kind) for name, kind in pairs}
    if len(values) != len(pairs):
        refuse("columns", "to have names of their own")
    return pandas.DataFrame(values)


def is_step(value: Any) -> bool:
    """Returns whether a value is an estimator that is written as a step."""
    return isinstance(value, BaseEstimator) and step_name(value) is not None
