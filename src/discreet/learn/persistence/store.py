"""Fitted learners as text and back: JSON with parameters, fitted attributes and the event; no pickle, no code.

A text names one of this library's own learners and holds plain data (`plain`). What the text says of its privacy is
what its author says: keep a model where no one else can write.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from discreet import lazy
from discreet.errors import InvalidParameter
from discreet.learn.learner import Learner
from discreet.learn.persistence.plain_data import MARK, read, refuse, write
from discreet.learn.persistence.stored_pipelines import changed_parameters, fit_again, is_step, made_step, step_name
from discreet.learn.pipelines.pipeline import Pipeline
from discreet.learn.pipelines.public_steps import learners_in
from discreet.privacy import Loss
from discreet.privacy.events import Event

FORMAT = "discreet learner"
VERSION = 1
LONGEST = 1 << 28  # characters of a text
MOST_VALUES = 1 << 18  # single values of a text; long lists are arrays, and an array is one value
OF_THE_CALL = frozenset(("cost_", "remaining_", "replayed_", "notes_"))
"""Attributes about one call to a curator and its account; they are never saved."""

ADDED = frozenset(("class_weight", "weight_bound"))
"""Parameters that learners got after the first version; None by default, and not written then."""

_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")
_ROOM = "discreet.learn"
_LATE = {"deep.Classifier": "Classifier", "deep.Regressor": "Regressor"}
_LATE_ROOM = "discreet.deep"
"""Learners that need another extra, by the names under which they are kept; loaded when one of them is named."""


def kinds() -> dict[str, type[Any]]:
    """Returns the learners by name: those that `discreet.learn` exports. A name is never given to another meaning."""
    room = importlib.import_module(_ROOM)
    found = {name: getattr(room, name) for name in room.__all__}
    return {name: kind for name, kind in found.items() if _is_learner(kind)}


def known_names() -> tuple[str, ...]:
    """Returns the names under which learners are kept."""
    return (*kinds(), *_LATE)


def kind_named(name: object) -> type[Any] | None:
    """Returns the learner of a name; None if there is none.

    Raises:
        MissingExtra: if it needs what is not installed.
    """
    if isinstance(name, str) and name in _LATE:
        found: type[Any] = getattr(lazy.load(_LATE_ROOM, "A deep model"), _LATE[name])
        return found
    return kinds().get(name) if isinstance(name, str) else None


def _is_learner(kind: object) -> bool:
    """Returns whether a class is a learner, or chooses among some: whatever is planned before it is fitted."""
    return (
        isinstance(kind, type)
        and issubclass(kind, BaseEstimator)
        and hasattr(kind, "plan_event")
        and kind is not Learner
    )


def name_of(model: object) -> str:
    """Returns the name of a learner's class.

    Raises:
        InvalidParameter: if it is none of this library's own learners, or a subclass of one.
    """
    for name, kind in kinds().items():
        if type(model) is kind:
            return name
    for name in _LATE if type(model).__module__.startswith(f"{_LATE_ROOM}.") else ():
        if type(model) is kind_named(name):
            return name
    hint = f"Pass one of {', '.join(known_names())} itself: others' code is not accounted for."
    raise InvalidParameter("estimator", type(model).__name__, "to be a learner of discreet.learn", hint)


def parameters(model: Any) -> dict[str, Any]:
    """Returns the parameters of a learner as they are stored in it, whatever its methods say."""
    own = vars(model)
    names = type(model)._get_param_names()
    missing = [name for name in names if name not in own]
    if missing:
        raise InvalidParameter("estimator", ", ".join(missing), "to be parameters that are set")
    return {name: own[name] for name in names}


def write_parameters(model: Any, depth: int = 0) -> dict[str, Any]:
    """Returns a learner that is not fitted as plain data: its name and parameters.

    Args:
        model: the learner.
        depth: how many values it is nested in.

    Raises:
        InvalidParameter: if a parameter is no plain data.
    """
    if is_step(model):
        step = {p: write(v, p, depth, other=_write_estimator) for p, v in changed_parameters(model).items()}
        return {MARK: "step", "class": step_name(model), "params": step}
    name = name_of(model)
    known = parameters(model)
    kept = {p: v for p, v in known.items() if p not in ADDED or v is not None}
    return {MARK: "learner", "class": name, "params": {p: _parameter(model, p, v, depth) for p, v in kept.items()}}


def _parameter(model: Any, name: str, value: Any, depth: int) -> Any:
    """Returns a parameter as plain data; a learner may give a hint about one that is none (`hints_of_plain_data`)."""
    try:
        return write(value, name, depth, other=_write_estimator)
    except InvalidParameter as error:
        hint = getattr(type(model), "hints_of_plain_data", {}).get(name)
        if hint is None:
            raise
        raise InvalidParameter(name, error.value, error.condition, hint) from None


def _write_estimator(value: Any, depth: int) -> dict[str, Any] | None:
    return write_parameters(value, depth) if isinstance(value, BaseEstimator) else None


def read_parameters(content: dict[str, Any], depth: int = 0) -> Any:
    """Returns a new learner with parameters that were written.

    Args:
        content: what `write_parameters` wrote.
        depth: how many values it is nested in.

    Raises:
        InvalidParameter: if anything about it is not understood.
    """
    if content.keys() != {MARK, "class", "params"} or content[MARK] not in ("learner", "step"):
        refuse(", ".join(map(str, content)), "to be a learner and its parameters")
    if content[MARK] == "step":
        params = content["params"] if isinstance(content["params"], dict) else refuse("a step", "to have parameters")
        return made_step(content["class"], {p: read(value, _read_model, depth) for p, value in params.items()})
    return _make_model(content["class"], content["params"], depth)


def write_value(value: Any, name: str) -> Any:
    """Returns a parameter of a learner as plain data; learners and steps in it are written with their parameters.

    Raises:
        InvalidParameter: if it is no plain data.
    """
    return write(value, name, other=_write_estimator)


def read_value(content: Any) -> Any:
    """Returns the parameter that `write_value` wrote.

    Raises:
        InvalidParameter: if anything about it is not understood.
    """
    return read(content, read_parameters)


def fresh(model: Any) -> Any:
    """Returns a new learner with the same parameters and nothing else, made of copies."""
    return read_parameters(write_parameters(model))


def to_json(model: Any) -> str:
    """Returns a fitted learner as text.

    Raises:
        InvalidParameter: if it is not fitted, is none of this library's learners, or holds what is no plain data.
    """
    if not hasattr(model, "event_"):
        raise InvalidParameter("model", type(model).__name__, "to be fitted", "Call fit first.")
    name_of(model)
    text = json.dumps({"format": FORMAT, "version": VERSION, "model": _write_model(model)}, allow_nan=False)
    if len(text) > LONGEST:
        raise InvalidParameter("model", f"{len(text)} characters", f"<= {LONGEST} characters")
    if _values(text) > MOST_VALUES:
        raise InvalidParameter("model", f"{_values(text)} values", f"<= {MOST_VALUES} values", "Keep them in arrays.")
    return text


def from_json(text: str | bytes) -> Any:
    """Returns the fitted learner that a text describes.

    Raises:
        InvalidParameter: if anything about the text is not understood.
    """
    if len(text) > LONGEST:
        refuse(f"{len(text)} characters", f"to have at most {LONGEST}")
    if _values(text) > MOST_VALUES:
        refuse(f"{_values(text)} values", f"to have at most {MOST_VALUES}")
    try:
        content = json.loads(text, parse_constant=lambda literal: refuse(literal, "to hold finite numbers"))
    except InvalidParameter:
        raise
    except (ValueError, RecursionError):
        refuse("this text", "to be JSON")
    if not isinstance(content, dict) or content.keys() != {"format", "version", "model"}:
        refuse("this text", "to have format, version and model")
    if content["format"] != FORMAT or type(content["version"]) is not int or content["version"] != VERSION:
        refuse(str(content["version"])[:40], f"to be of version {VERSION} of this format")
    model = _read_model(content["model"], 0)
    known = vars(model)
    account = isinstance(known.get("event_"), Event) and isinstance(known.get("privacy_spent_"), Loss)
    if not account or type(known.get("private_")) is not bool:
        refuse(type(model).__name__, "to have an event, a cost and a mark")
    return model


def _values(text: str | bytes) -> int:
    """Returns how many values a text can hold, before any is made: each but the first follows one of these signs."""
    signs: tuple[Any, ...] = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    return sum(text.count(sign) for sign in signs)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Writes a fitted learner to a file.

    Raises:
        InvalidParameter: as `to_json`; nothing is written then.
    """
    Path(path).write_text(to_json(model), encoding="ascii")


def load(path: str | os.PathLike[str]) -> Any:
    """Reads a fitted learner from a file; nothing in the file is executed.

    Raises:
        InvalidParameter: as `from_json`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from discreet.learn import GaussianNB
    >>> model = GaussianNB(epsilon=1, bounds=(0, 10), classes=[0, 1], random_state=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model.fit([[1.0], [9.0]] * 100, [0, 1] * 100), Path(folder, "model.json"))
    ...     again = load(Path(folder, "model.json"))
    >>> again.predict([[2.0], [8.0]]).tolist(), str(again.privacy_spent_)
    ([0, 1], 'epsilon=1, delta=1e-06')
    """
    file = Path(path)
    if file.stat().st_size > LONGEST:
        refuse(f"{file.stat().st_size} bytes", f"to have at most {LONGEST}")
    try:
        return from_json(file.read_text(encoding="ascii"))
    except UnicodeDecodeError:
        refuse("this file", "to hold ASCII")


def _write_model(model: Any, depth: int = 0) -> dict[str, Any] | None:
    """Returns a learner within plain data: parameters, and attributes that `fit` made; None if it is no learner."""
    if not isinstance(model, BaseEstimator):
        return None
    if is_step(model):
        return write_parameters(model, depth)
    content = write_parameters(model, depth)
    names = [name for name in vars(model) if name not in parameters(model) and name not in OF_THE_CALL]
    odd = [name for name in names if not _FITTED.fullmatch(name)]
    if odd:
        raise InvalidParameter("model", ", ".join(odd), "to be fitted attributes, whose names end in _")
    fitted = {name: write(vars(model)[name], name, depth, other=_write_model) for name in sorted(names)}
    if isinstance(model, Pipeline) and fitted:
        fitted["learners_"] = write(list(learners_in(model, fitted=True)), "learners", depth, other=_write_model)
    return {**content, MARK: "model", "fitted": fitted}


def _read_model(content: Any, depth: int) -> Any:
    if not isinstance(content, dict) or content.get(MARK) not in ("model", "learner", "step"):
        refuse(type(content).__name__, "to be a learner")
    if content[MARK] != "model":
        return read_parameters(content, depth)
    if content.keys() != {MARK, "class", "params", "fitted"} or not isinstance(content["fitted"], dict):
        refuse(", ".join(map(str, content)), "to have class, params and fitted")
    model = _make_model(content["class"], content["params"], depth)
    for name, value in content["fitted"].items():
        if not _FITTED.fullmatch(name) or hasattr(type(model), name) or name in OF_THE_CALL:
            refuse(name[:40], "to be a fitted attribute")
        setattr(model, name, read(value, _read_model, depth))
    if isinstance(model, Pipeline):
        learners = model.__dict__.pop("learners_", ())
        fit_again(model, model.__dict__.get("columns_seen_"), learners)
    return model


def _make_model(name: Any, params: Any, depth: int) -> Any:
    kind = kind_named(name)
    if kind is None:
        refuse(str(name)[:40], f"to be one of {', '.join(known_names())}")
    names = kind._get_param_names()
    if not isinstance(params, dict) or set(params) | (ADDED & set(names)) != set(names):
        refuse(name, f"to have the parameters {', '.join(kind._get_param_names())}")
    return kind(**{param: read(value, _read_model, depth) for param, value in params.items()})
