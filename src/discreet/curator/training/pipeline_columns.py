"""Pipelines under the ledger: columns as a table of numbers and texts, and steps completed by public declarations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline as PlainPipeline

from discreet.curator.training.column_features import LONGEST_LABEL, Feature, Floats, Number, OneHot, feature_of
from discreet.dataclass import dataclass
from discreet.lazy import load
from discreet.learn import GridSearchCV, Learner, Pipeline, PublicOneHotEncoder, PublicOrdinalEncoder, PublicScaler
from discreet.learn.pipelines.pipeline import reads_columns
from discreet.learn.pipelines.public_steps import Flow, PublicColumn, assign_columns, follow_step
from discreet.plan.model.nodes import Expression, Value
from discreet.plan.model.schema import ColumnBounds
from discreet.plan.model.types import Type
from discreet.sql.training_rows import RowColumn, TrainingRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text as it is, for a step that encodes it: public keys if there are some, anything else otherwise.

    A text is no number, and nothing of it reaches a learner but by the declared categories of a public encoder.
    """

    name: str
    value: Expression
    keys: tuple[Value, ...] | None

    @property
    def key(self) -> Expression:
        """Returns the text as it is."""
        return self.value

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the name of the column."""
        return (self.name,)

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Returns limits of NaN: a text is no number."""
        return ((math.nan, math.nan),)

    def decode(self, values: Sequence[Value]) -> Floats:
        """Decodes texts as themselves; one that is missing or far too long is none."""
        kept = [value if isinstance(value, str) and len(value) <= LONGEST_LABEL else None for value in values]
        return np.array(kept, dtype=object)[:, None]


def pipeline_of(learner: Any) -> Pipeline | None:
    """Returns the pipeline that a learner is, or searches; None if there is none."""
    inner = learner.estimator if isinstance(learner, GridSearchCV) else learner
    return inner if isinstance(inner, Pipeline) else None


def takes_columns(learner: Any) -> bool:
    """Returns whether a learner is given columns as they are, since its first step encodes them."""
    return reads_columns(pipeline_of(learner))


def column_features(pipeline: Pipeline, columns: Sequence[RowColumn], rows: TrainingRows) -> Iterator[Feature]:
    """Makes a feature of each column: numbers within their limits, texts as they are.

    Raises:
        UnsupportedQuery: if a number has nothing public to bound it by.
    """
    stated = dict(_find_scaler_limits(pipeline))
    for column in columns:
        if column.column.type is Type.TEXT:
            keys = column.schema.keys
            known = None if keys is None else tuple(key for key in keys if key is not None)
            yield Text(name=column.name, value=column.column, keys=known)
        else:
            found = feature_of(column, rows.source, own=stated.get(column.name), norm=None)
            yield _number_of(found, column)


def _number_of(found: Feature, column: RowColumn) -> Feature:
    """Returns a number as one column, though its keys are what is public about it."""
    if not isinstance(found, OneHot):
        return found
    numbers = [key for key in found.keys if isinstance(key, int)]
    low, high = (min(numbers, default=0), max(numbers, default=1))
    return Number(name=column.name, value=found.value, exponent=0, low=low, high=max(high, low + 1))


def _find_scaler_limits(step: Any) -> Iterator[tuple[str, ColumnBounds]]:
    """Yields the limits that scalers of a pipeline state by name."""
    if isinstance(step, PublicScaler) and isinstance(step.bounds, dict):
        for name, pair in step.bounds.items():
            if isinstance(pair, tuple | list) and len(pair) == 2:
                yield name, ColumnBounds(*pair)
    elif isinstance(step, PlainPipeline):
        for _, each in step.steps:
            yield from _find_scaler_limits(each)
    elif isinstance(step, ColumnTransformer):
        for _, each, _ in step.transformers:
            yield from _find_scaler_limits(each)


def complete(pipeline: Pipeline, features: Sequence[Feature]) -> Iterator[str]:
    """Completes steps without parameters by what is declared; says which.

    Scalers and the learners get the limits of the columns that they are given, where these are known; encoders get
    the public keys. A learner behind a private step needs explicit bounds: they are not known before the release.
    """
    flow = Flow(columns=tuple(_columns(features)))
    for name, step in pipeline.steps:
        yield from _fill(step, flow)
        flow = follow_step(name, step, flow)


def _columns(features: Sequence[Feature]) -> Iterator[PublicColumn]:
    for feature in features:
        keys = feature.keys if isinstance(feature, Text) else None
        for name, (low, high) in zip(feature.names, feature.limits, strict=True):
            known = not math.isnan(low)
            yield PublicColumn(name=name, low=low if known else None, high=high if known else None, categories=keys)


def _fill(step: Any, flow: Flow) -> Iterator[str]:
    limits = [column.limits for column in flow.columns]
    lists = [column.categories for column in flow.columns]
    if isinstance(step, PublicScaler | Learner):
        told = getattr(step, "bounds", None) is not None or getattr(step, "norm_bound", None) is not None
        if not told and "bounds" in step.get_params(deep=False) and None not in limits and limits:
            pairs = [pair for pair in limits if pair is not None]
            step.set_params(bounds=([low for low, _ in pairs], [high for _, high in pairs]))
            yield f"bounds= of {type(step).__name__} follow from the declared bounds of the columns."
    elif isinstance(step, PublicOneHotEncoder | PublicOrdinalEncoder):
        if step.categories is None and None not in lists and lists:
            step.set_params(categories=[list(known) for known in lists if known is not None])
            yield f"categories= of {type(step).__name__} are the public keys of the columns."
    elif isinstance(step, PlainPipeline):
        for name, each in step.steps:
            yield from _fill(each, flow)
            flow = follow_step(name, each, flow)
    elif isinstance(step, ColumnTransformer):
        for each, columns in assign_columns(step, flow):
            yield from _fill(each, Flow(columns=tuple(columns)))


def table(features: Sequence[Feature], columns: Sequence[Any]) -> Any:
    """Returns columns as a table with their names.

    Raises:
        MissingExtra: if pandas is not installed.
    """
    pandas = load("pandas", "A pipeline under a curator")
    parts = [feature.decode(values)[:, 0] for feature, values in zip(features, columns, strict=True)]
    names = [name for feature in features for name in feature.names]
    return pandas.DataFrame(dict(zip(names, parts, strict=True)), columns=names)


def order_codes(X: Any) -> list[NDArray[Any]]:
    """Returns each column of a table as numbers that sort as it does; what is missing comes first."""
    found = []
    for name in X.columns:
        values = X[name].to_numpy()
        texts = values.dtype.kind not in "biuf"
        plain = np.array([f"+{one}" if isinstance(one, str) else "" for one in values]) if texts else values
        found.append(np.unique(plain, return_inverse=True)[1])
    return found
