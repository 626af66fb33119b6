"""From a learner and a text to a fit that can be paid: parameters completed by public declarations, or a refusal."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from discreet import check
from discreet.curator.training.column_features import (
    ClassLabels,
    Feature,
    FileNumbers,
    Target,
    amounts_of,
    feature_of,
    files_of,
    labels_of,
)
from discreet.curator.training.pipeline_columns import column_features, complete, pipeline_of, takes_columns
from discreet.curator.training.training_plan import TrainingPlan
from discreet.engines.folders.folder import Folder
from discreet.errors import InvalidParameter
from discreet.learn import GridSearchCV
from discreet.learn.persistence.store import fresh, name_of, parameters, write_parameters
from discreet.learn.pipelines.pipeline import Pipeline
from discreet.learn.pipelines.public_steps import check_steps
from discreet.plan.model.schema import ColumnBounds, TableSchema
from discreet.privacy import Neighbours
from discreet.privacy.events import Event
from discreet.sql.scope import lookup
from discreet.sql.training_rows import RowColumn, TrainingRows
from discreet.statistics.inputs import MOST_FEATURES

TARGET_BOUNDS = ("label_bounds", "target_bounds", "y_bounds")
"""What learners call the public limits of their target."""

LONGEST = 1 << 20  # characters of a learner's parameters


def training(
    estimator: object,
    rows: TrainingRows,
    target: str | None,
    *,
    epsilon: Fraction | None,
    rows_per_unit: int,
    account: str,
    schemas: Mapping[str, TableSchema],
    salt: str,
    private: bool,
    folders: Mapping[str, Folder],
) -> TrainingPlan:
    """Returns a fit that can be paid.

    Args:
        estimator: a learner of `discreet.learn`; it is not changed.
        rows: what is selected.
        target: which column is learned.
        epsilon: what the fit may cost; None for the learner's own.
        rows_per_unit: how many rows one unit may have.
        account: which pays.
        schemas: the declared tables by name.
        salt: of the rule by which rows are kept.
        private: whether the fit is private, so that no seed may be given.
        folders: the protected tables that are folders of files.

    Raises:
        InvalidParameter: if the learner or its parameters are refused.
        UnsupportedQuery: if a column has nothing public to bound it by.
    """
    learner = _copy_learner(estimator)
    if epsilon is not None:  # a pipeline divides it among its private steps
        learner.set_params(epsilon=epsilon)
    _check_seed(learner, private)
    _check_number_of_rows(learner, rows, rows_per_unit)
    columns, aim = _split(learner, rows, target)
    pipeline, raw = pipeline_of(learner), takes_columns(learner)
    if pipeline and raw:
        _refuse_files(columns, rows)
        features = tuple(column_features(pipeline, columns, rows))
    else:
        features = tuple(_features(learner, columns, rows, folders))
    goal = _target(learner, aim, rows)
    known = None if pipeline else features
    notes = [note for one in _all(learner) for note in _fill_parameters(one, known, goal, rows.schema.neighbours)]
    notes += complete(pipeline, features) if pipeline else []
    return TrainingPlan(
        rows=rows,
        features=features,
        target=goal,
        content=write_parameters(learner),
        filled=tuple(dict.fromkeys(notes)),
        event=_plan_event(learner, [name for feature in features for name in feature.names]),
        rows_per_unit=rows_per_unit,
        account=account,
        schemas=schemas,
        salt=salt,
        raw=raw,
    )


def _copy_learner(estimator: object) -> Any:
    """Returns a learner of our own with the same parameters, whatever else hangs on the given one."""
    given = Pipeline.of(estimator)
    inner = Pipeline.of(given.estimator) if isinstance(given, GridSearchCV) else given
    if isinstance(inner, Pipeline):
        check_steps(inner)
    name_of(given)
    size = len(str(write_parameters(given)))
    if size > LONGEST:
        raise InvalidParameter("estimator", f"parameters of {size} characters", f"to have at most {LONGEST}")
    made = fresh(given)
    if isinstance(made, GridSearchCV):
        made.set_params(estimator=Pipeline.of(made.estimator))
    return made


def _all(value: Any) -> Iterator[Any]:
    """Yields a learner and all those anywhere in its parameters."""
    if isinstance(value, BaseEstimator):
        yield value
        value = parameters(value)
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _all(each)


def _check_seed(value: Any, private: bool) -> None:
    """Refuses a seed, of the learner, of one inside it, or among the parameters that it tries."""
    if isinstance(value, BaseEstimator):
        value = parameters(value)
    if isinstance(value, dict):
        for name, each in value.items():
            if private and str(name).split("__")[-1] == "random_state" and each is not None:
                hint = "A seeded fit is not private: only Curator.for_tests with seeded noise takes a seed."
                raise InvalidParameter("random_state", each, "to be None", hint)
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            _check_seed(each, private)


def _check_number_of_rows(learner: Any, rows: TrainingRows, rows_per_unit: int) -> None:
    """Checks for one row per unit, unless the learner accounts for more; for all rows, where their number is public."""
    most = check.integer(rows_per_unit=rows_per_unit, at_least=1, at_most=10**6)
    accounts = getattr(type(learner), "accounts_rows_per_unit", False) and "rows_per_unit" in parameters(learner)
    if accounts:
        learner.set_params(rows_per_unit=most)
    if most > 1 and not accounts:
        hint = "Each person counts with one row here. Combine several into one: SELECT ... GROUP BY the id, in FROM."
        raise InvalidParameter("rows_per_unit", rows_per_unit, "to be 1 for this learner", hint)
    if rows.schema.neighbours is Neighbours.REPLACE and not (rows.whole and rows.schema.unit is None):
        rows.source.refuse(
            "Under neighbours='replace' a learner relies on a public number of rows, but this selection may have one "
            "more or less.",
            "Select from a table where each row is one unit, without WHERE and joins. Or fit under an account with "
            "neighbours='add_remove'.",
        )


def _split(learner: Any, rows: TrainingRows, target: str | None) -> tuple[list[RowColumn], RowColumn | None]:
    """Returns the columns of features, and that of the target."""
    wants = is_classifier(learner) or is_regressor(learner)
    if target is None:
        if wants:
            raise InvalidParameter("target", None, "to name a column of the SELECT", "It is the column to learn.")
        return list(rows.columns), None
    aim = lookup(check.instance(str, target=target), {column.name: column for column in rows.columns})
    if aim is None:
        names = ", ".join(column.name for column in rows.columns)
        raise InvalidParameter("target", target, "to be a column of the SELECT", f"The columns are {names}.")
    if not wants:
        raise InvalidParameter("target", target, "to be left out", f"{type(learner).__name__} learns without one.")
    columns = [column for column in rows.columns if column is not aim]
    if not columns:
        rows.source.refuse("There is nothing to learn from.", "Select features besides the target.", aim.at)
    return columns, aim


def _refuse_files(columns: Sequence[RowColumn], rows: TrainingRows) -> None:
    for column in columns:
        if column.schema.files is not None:
            rows.source.refuse("A pipeline takes values, not files.", "Fit a learner without a pipeline.", column.at)


def _features(
    learner: Any, columns: Sequence[RowColumn], rows: TrainingRows, folders: Mapping[str, Folder]
) -> Iterator[Feature]:
    norm = next((each for one in _all(learner) if (each := getattr(one, "norm_bound", None)) is not None), None)
    length = None if norm is None else check.positive(norm_bound=norm)
    place = 0
    for column in columns:
        files = files_of(column, rows.source, folders)
        own = _own_limits(learner, place, column.name) if files is None else None
        feature = files or feature_of(column, rows.source, own=own, norm=length)
        place += len(feature.names)
        if place > getattr(type(learner), "most_features", MOST_FEATURES):
            reason = (
                f"This learner takes at most {MOST_FEATURES} features, and each public key or number of a file is one."
            )
            rows.source.refuse(reason, "Select fewer columns.", column.at)
        yield feature


def _own_limits(learner: Any, place: int, name: str) -> ColumnBounds | None:
    """Returns the limits that a learner was given for the feature in this place, or for the column of this name."""
    given = next((each for one in _all(learner) if (each := getattr(one, "bounds", None)) is not None), None)
    if isinstance(given, dict):
        return None if name not in given else ColumnBounds(*check.limits(bounds=given[name]))
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidParameter("bounds", given, "to be a pair (low, high)")
    ends = [np.asarray(end) for end in given]
    if any(end.ndim > 1 or end.dtype.kind not in "iuf" or (end.ndim and place >= end.size) for end in ends):
        raise InvalidParameter("bounds", given, "to be two numbers, or two for each feature")
    low, high = (end.item() if not end.ndim else end[place].item() for end in ends)
    return ColumnBounds(*check.limits(bounds=(low, high)))


def _target(learner: Any, aim: RowColumn | None, rows: TrainingRows) -> Target | None:
    if aim is None:
        return None
    if is_classifier(learner):
        given = next((each for one in _all(learner) if (each := getattr(one, "classes", None)) is not None), None)
        labels = labels_of(aim, rows.source, None if given is None else np.asarray(given).tolist())
        if labels.classes is None and rows.schema.neighbours is Neighbours.REPLACE:
            reason = "The classes are not public. Under neighbours='replace', rows without a class would be one, too."
            rows.source.refuse(reason, "Give the learner classes=..., or ask the steward to declare keys.", aim.at)
        return labels
    given = next((each for one in _all(learner) for name in TARGET_BOUNDS if (each := getattr(one, name, None))), None)
    return amounts_of(aim, rows.source, None if given is None else ColumnBounds(*check.limits(label_bounds=given)))


def _fill_parameters(
    learner: Any, features: Sequence[Feature] | None, target: Target | None, neighbours: Neighbours
) -> Iterator[str]:
    """Completes parameters that are None by what is public; says which. Without features, bounds are left alone."""
    known = parameters(learner)
    if "neighbours" in known:
        yield from _set_neighbours(learner, neighbours)
    if features is not None and "bounds" in known:
        yield from _set_bounds(learner, features, known["bounds"], known.get("norm_bound"))
    if features is not None and "shape" in known and known["shape"] is None:
        yield from _fill_shape(learner, features)
    if isinstance(target, ClassLabels) and "classes" in known and target.classes is not None:
        if known["classes"] is None:
            yield "classes= are the public keys of the target."
        learner.set_params(classes=list(target.classes))
    name = next((name for name in TARGET_BOUNDS if name in known and known[name] is None), None)
    if name is not None and target is not None and not isinstance(target, ClassLabels):
        learner.set_params(**{name: target.number.limits[0]})
        yield f"{name}= are the declared bounds of the target."


def _fill_shape(learner: Any, features: Sequence[Feature]) -> Iterator[str]:
    """Gives a learner that takes examples of a shape that of its files, if it is given nothing else."""
    (only, *others) = features
    if isinstance(only, FileNumbers) and not others:
        learner.set_params(shape=only.files.shape)
        yield "shape= is the declared shape of the files."


def _set_bounds(learner: Any, features: Sequence[Feature], given: Any, norm: Any) -> Iterator[str]:
    """Gives a learner the limits of the features; those that it has by the names of columns count first."""
    if isinstance(given, dict):
        unknown = [name for name in given if all(name not in feature.names for feature in features)]
        if unknown:
            names = ", ".join(name for feature in features for name in feature.names)
            raise InvalidParameter("bounds", unknown, "to be columns that are numbers", f"Known: {names}.")
        own = {name: tuple(float(end) for end in check.limits(bounds=pair)) for name, pair in given.items()}
    elif given is None and norm is None:
        own = {}
        yield "bounds= are the declared bounds of the columns, 0 and 1 for keys."
    else:
        return
    if not own and any(isinstance(one, FileNumbers) for one in features):
        ends = {pair for one in features for pair in one.limits}
        if len(ends) == 1:  # one pair is for all, even thousands
            learner.set_params(bounds=ends.pop())
            return
    pairs = [own.get(name, pair) for one in features for name, pair in zip(one.names, one.limits, strict=True)]
    learner.set_params(bounds=([low for low, _ in pairs], [high for _, high in pairs]))


def _set_neighbours(learner: Any, neighbours: Neighbours) -> Iterator[str]:
    """Sets the relation of the account, if none was chosen; another choice is refused."""
    given = Neighbours(learner.neighbours)
    if given is neighbours:
        return
    if given is not Neighbours.ADD_REMOVE:  # what all learners have unless it is chosen
        hint = f"Leave it out, or pass neighbours={neighbours.value!r}."
        raise InvalidParameter("neighbours", given.value, "to be the relation of the account", hint)
    learner.set_params(neighbours=neighbours.value)
    yield f"neighbours= is the relation of the account, {neighbours.value}."


def _plan_event(learner: Any, names: Sequence[str]) -> Event:
    """Returns the event of a fit, from the number of features and the parameters, which classes are among.

    A learner whose plan needs the number of rows is refused: even where that is public, it is read after the charge.
    """
    more = list(inspect.signature(type(learner).plan_event).parameters.values())[2:]
    needed = [one.name for one in more if one.default is inspect.Parameter.empty]
    if needed:
        hint = "Fit it on an array. Before the charge, a curator knows only features and parameters."
        raise InvalidParameter("estimator", type(learner).__name__, f"to be planned without {needed[0]}", hint)
    planned = (len(names), names) if isinstance(learner, Pipeline) else (len(names),)
    return check.instance(Event, event=learner.plan_event(*planned))
