"""Learners as arguments: the name of a class of `discreet.learn` and its parameters; plain data, no pickle, no code."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from discreet.errors import InvalidParameter
from discreet.lazy import load

PARTS = ("learner", "parameters")
"""The two fields that JSON has for a learner."""


def write_learner(estimator: Any) -> dict[str, Any]:
    """Returns a learner of `discreet.learn` that is not fitted: the name of its class, and its parameters.

    Raises:
        InvalidParameter: if it is none, or a parameter is no plain data.
    """
    written = _store().write_parameters(_pipelines().Pipeline.of(estimator))
    return {"learner": written["class"], "parameters": written["params"]}


def read_learner(given: Any) -> Any:
    """Returns a learner as it is, or a new one of what `write_learner` wrote.

    In JSON, `parameters` are those that differ from their defaults; numbers, texts and lists stand for themselves.

    Raises:
        InvalidParameter: if there is no such learner, or anything about a parameter is not understood.
    """
    if not isinstance(given, Mapping):
        return given
    learner, parameters = given.get("learner"), given.get("parameters") or {}
    kind = _store().kind_named(learner) if isinstance(learner, str) else None
    if kind is None:
        known = f"Known: {', '.join(_store().known_names())}."
        raise InvalidParameter("learner", learner, "to be a learner of discreet.learn", known)
    if not isinstance(parameters, Mapping):
        raise InvalidParameter("parameters", type(parameters).__name__, "to be an object", 'Pass {"epsilon": "1"}.')
    own, mark = signature(kind).parameters, _plain_data().MARK
    for name in parameters:
        if name not in own:
            hint = f"Known: {', '.join(own)}."
            raise InvalidParameter("parameters", name, f"to be a parameter of {learner}", hint)
    defaults = {n: _plain_data().write(each.default, n) for n, each in own.items() if each.default is not each.empty}
    return _store().read_parameters({mark: "learner", "class": learner, "params": {**defaults, **parameters}})


def _store() -> Any:
    return load("discreet.learn.persistence.store", "A learner")


def _pipelines() -> Any:
    return load("discreet.learn.pipelines.pipeline", "A learner")


def _plain_data() -> Any:
    return load("discreet.learn.persistence.plain_data", "A learner")
