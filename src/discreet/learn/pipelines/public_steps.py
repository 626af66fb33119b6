"""What each step of a pipeline makes of columns, known before any row is seen; a step that reads data is refused.

The table of kinds below is all that a pipeline may hold: learners of this library, which are paid for, and transformers
whose fit follows from their parameters. Anything else is refused with what to use instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any, NoReturn

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline as PlainPipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.learn.clusters.kmeans import KMeans
from discreet.learn.learner import Learner
from discreet.learn.linear.transformers import PCA, StandardScaler
from discreet.learn.pipelines.public_encoders import PublicOneHotEncoder, PublicOrdinalEncoder, PublicScaler
from discreet.privacy.events import Event

_INSTEAD = (
    "Use PublicOneHotEncoder or PublicOrdinalEncoder with declared categories, PublicScaler with declared bounds, or "
    "a private StandardScaler or PCA of discreet.learn, which costs budget."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicColumn:
    """What is public about one column.

    Attributes:
        name: None if it is not known yet.
        low, high: between which its numbers lie; None if nothing is known.
        categories: the values that were declared, where they were.
    """

    name: str | None = None
    low: float | None = None
    high: float | None = None
    categories: tuple[Any, ...] | None = None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Returns the limits, where both are known."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Columns on their way through a pipeline, and what was released on it.

    Attributes:
        columns: as they are now.
        events: what private steps release, in order.
    """

    columns: tuple[PublicColumn, ...]
    events: tuple[Event, ...] = ()

    @classmethod
    def of(cls, count: int, names: Sequence[str] | None) -> Flow:
        """Returns columns with known names, and nothing else known."""
        return cls(
            columns=tuple(PublicColumn(name=None if names is None else str(names[place])) for place in range(count))
        )

    @property
    def names(self) -> list[str] | None:
        """Returns the names, if all are known."""
        found = [column.name for column in self.columns if column.name is not None]
        return found if len(found) == len(self.columns) else None

    def to(self, columns: Sequence[PublicColumn], *events: Event) -> Flow:
        """Returns what follows: other columns, and more events."""
        return replace(self, columns=tuple(columns), events=(*self.events, *events))


@singledispatch
def follow(step: Any, flow: Flow) -> Flow:  # noqa: ARG001  # the signature of all of them
    """Returns what a step makes of columns, and what it releases, from public facts alone.

    Raises:
        InvalidParameter: if it reads data without privacy, or is not known.
    """
    _refuse(step, "to be a private step, or one that reads no data")


def _refuse(step: Any, condition: str, hint: str = _INSTEAD) -> NoReturn:
    name = step if isinstance(step, str) else f"{type(step).__module__.partition('.')[0]}.{type(step).__name__}"
    raise InvalidParameter("step", name, condition, hint)


@follow.register
def _(step: str, flow: Flow) -> Flow:
    if step not in ("passthrough", "drop"):
        _refuse(step, "to be 'passthrough' or 'drop'")
    return flow if step == "passthrough" else flow.to(())


@follow.register
def _(step: None, flow: Flow) -> Flow:
    del step
    return flow


@follow.register
def _(step: Learner, flow: Flow) -> Flow:
    count = len(flow.columns)
    event = step.plan_event(count)
    if isinstance(step, StandardScaler):
        return flow.to([PublicColumn(name=column.name) for column in flow.columns], event)
    width = step._component_count(count) if isinstance(step, PCA) else step._count() if isinstance(step, KMeans) else 0
    return flow.to([PublicColumn(name=f"{type(step).__name__.lower()}{place}") for place in range(width)], event)


@follow.register
def _(step: PublicScaler, flow: Flow) -> Flow:
    step._check(len(flow.columns), flow.names)
    low, high = step.reach
    return flow.to([PublicColumn(name=column.name, low=low, high=high) for column in flow.columns])


@follow.register
def _(step: PublicOneHotEncoder, flow: Flow) -> Flow:
    return flow.to(_indicators(step.lists(len(flow.columns), flow.names), flow, "="))


@follow.register
def _(step: PublicOrdinalEncoder, flow: Flow) -> Flow:
    return flow.to(_codes(step.lists(len(flow.columns), flow.names), flow))


@follow.register
def _(step: OneHotEncoder, flow: Flow) -> Flow:
    """Returns scikit-learn's encoder, where its categories are declared and no value is an error."""
    lists = _check_categories(step, flow)
    if step.handle_unknown != "ignore" or step.drop is not None:
        _refuse(step, "to have handle_unknown='ignore' and drop=None", "Unknown values must not raise an error.")
    if step.min_frequency is not None or step.max_categories is not None:
        _refuse(step, "to have min_frequency=None and max_categories=None", "Both options count rows.")
    return flow.to(_indicators(lists, flow, "_"))


@follow.register
def _(step: OrdinalEncoder, flow: Flow) -> Flow:
    lists = _check_categories(step, flow)
    if step.handle_unknown != "use_encoded_value" or step.unknown_value is None:
        hint = "Pass handle_unknown='use_encoded_value', unknown_value=-1: unknown values must not raise an error."
        _refuse(step, "to have a value for unknown categories", hint)
    if step.min_frequency is not None or step.max_categories is not None:
        _refuse(step, "to have min_frequency=None and max_categories=None", "Both options count rows.")
    return flow.to([_widen_limits(column, step.unknown_value) for column in _codes(lists, flow)])


@follow.register
def _(step: SimpleImputer, flow: Flow) -> Flow:
    constant = step.strategy == "constant" and step.fill_value is not None
    if not constant or step.add_indicator or not step.keep_empty_features:
        hint = "Pass strategy='constant', fill_value=..., keep_empty_features=True: all else is read from the rows."
        _refuse(step, "to fill in a constant and to keep all columns", hint)
    return flow.to([_widen_limits(column, step.fill_value) for column in flow.columns])


@follow.register
def _(step: PlainPipeline, flow: Flow) -> Flow:
    if step.memory is not None:
        _refuse(step, "to have memory=None", "A cache on disk would keep private rows.")
    for name, each in step.steps:
        flow = follow_step(name, each, flow)
    return flow


@follow.register
def _(step: ColumnTransformer, flow: Flow) -> Flow:
    if step.n_jobs is not None:
        _refuse(step, "to have n_jobs=None", "Other processes would hold private rows.")
    made: list[PublicColumn] = []
    names = [*(name for name, _, _ in step.transformers), "remainder"]
    for name, (each, columns) in zip(names, assign_columns(step, flow), strict=True):
        found = follow_step(name, each, Flow(columns=tuple(columns)))
        made += [_prefix_name(column, name, step) for column in found.columns]
        flow = flow.to(flow.columns, *found.events)
    return flow.to(made)


def assign_columns(step: ColumnTransformer, flow: Flow) -> list[tuple[Any, list[PublicColumn]]]:
    """Returns the parts of a ColumnTransformer with the columns that each is given, what remains at the end.

    Raises:
        InvalidParameter: if columns are chosen by code, or there is no such column.
    """
    found, left = [], list(flow.columns)
    for _, each, selector in step.transformers:
        chosen = _choose_columns(selector, flow)
        found.append((each, chosen))
        left = [column for column in left if all(column is not one for one in chosen)]
        if flow.names is None and any(column.name for column in chosen):
            left = left[: max(0, len(left) - len(chosen))]  # which columns bear these names will be seen
    return [*found, (step.remainder, left)]


def follow_step(name: str, step: Any, flow: Flow) -> Flow:
    """Returns what a step of this name makes of columns; see `follow`."""
    try:
        return follow(step, flow)
    except InvalidParameter as error:
        raise _at(name, error) from None


def check_steps(step: Any) -> None:
    """Refuses a step of a kind that is not known, wherever it is; parameters of known ones are not checked.

    Raises:
        InvalidParameter: naming the step.
    """
    parts: list[tuple[str, Any]] = []
    if isinstance(step, PlainPipeline):
        parts = list(step.steps)
    elif isinstance(step, ColumnTransformer):
        parts = [*((name, each) for name, each, _ in step.transformers), ("remainder", step.remainder)]
    elif isinstance(step, str):
        follow(step, Flow(columns=()))
    elif follow.dispatch(type(step)) is follow.dispatch(object):
        _refuse(step, "to be a private step, or one that reads no data")
    for name, each in parts:
        try:
            check_steps(each)
        except InvalidParameter as error:
            raise _at(name, error) from None


def _at(name: str, error: InvalidParameter) -> InvalidParameter:
    """Returns the error of a step, with its name where it has none yet."""
    named = f"step {name!r}" if error.name == "step" else error.name
    return InvalidParameter(named, error.value, error.condition, error.hint)


def _check_categories(step: Any, flow: Flow) -> list[list[Any]]:
    if isinstance(step.categories, str) or len(step.categories) != len(flow.columns):
        hint = "Pass categories=[['A', 'B'], ...], one for each column: with 'auto' it would read them from the rows."
        _refuse(step, f"to have declared categories of {len(flow.columns)} columns", hint)
    return [list(each) for each in step.categories]


def _indicators(lists: list[list[Any]], flow: Flow, sign: str) -> list[PublicColumn]:
    names = [
        None if column.name is None else f"{column.name}{sign}{each}"
        for column, known in zip(flow.columns, lists, strict=True)
        for each in known
    ]
    return [PublicColumn(name=name, low=0.0, high=1.0) for name in names]


def _codes(lists: list[list[Any]], flow: Flow) -> list[PublicColumn]:
    """Places of categories; a single one gets room, since limits must differ."""
    pairs = zip(flow.columns, lists, strict=True)
    return [PublicColumn(name=column.name, low=0.0, high=float(max(1, len(known) - 1))) for column, known in pairs]


def _widen_limits(column: PublicColumn, value: Any) -> PublicColumn:
    """Returns the column with one more value that it may have."""
    if column.limits is None or not isinstance(value, int | float) or math.isnan(value):
        return column
    low, high = column.limits
    return replace(column, low=min(low, float(value)), high=max(high, float(value)))


def _prefix_name(column: PublicColumn, name: str, step: ColumnTransformer) -> PublicColumn:
    if column.name is None or step.verbose_feature_names_out is not True:
        return column
    return replace(column, name=f"{name}__{column.name}")


def _choose_columns(selector: Any, flow: Flow) -> list[PublicColumn]:
    """Returns the columns that a ColumnTransformer gives to one of its parts.

    Raises:
        InvalidParameter: if it is code, or names no column that there is.
    """
    if isinstance(selector, slice) and all(isinstance(end, int | None) for end in (selector.start, selector.stop)):
        return list(flow.columns[selector])
    several = selector if isinstance(selector, list | tuple | np.ndarray) else [selector]
    if not all(isinstance(one, str | int | np.integer) and not isinstance(one, bool) for one in several):
        hint = "Pass names or numbers of columns: rules that look at types or rows are not public."
        raise InvalidParameter("columns", selector, "to be names or numbers", hint)
    return [_one(one, flow) for one in several]


def _one(selector: Any, flow: Flow) -> PublicColumn:
    if isinstance(selector, str):
        if flow.columns and all(column.name is None for column in flow.columns):
            return PublicColumn(name=selector)
        found = [column for column in flow.columns if column.name == selector]
        if not found:
            names = ", ".join(str(column.name) for column in flow.columns)
            raise InvalidParameter("columns", selector, "to be a column of the rows", f"They have {names}.")
        return found[0]
    if not -len(flow.columns) <= selector < len(flow.columns):
        raise InvalidParameter("columns", int(selector), f"< {len(flow.columns)}, the number of columns")
    return flow.columns[int(selector)]


def learners_in(step: Any, *, fitted: bool = False) -> Iterator[Learner]:
    """Returns the learners of a step and of what it is made of, in the order of their events.

    Args:
        step: of a pipeline.
        fitted: whether those that `fit` made are meant, which a ColumnTransformer keeps next to its parameters.
    """
    if isinstance(step, Learner):
        yield step
    elif isinstance(step, PlainPipeline):
        for _, each in step.steps:
            yield from learners_in(each, fitted=fitted)
    elif isinstance(step, ColumnTransformer):
        parts = step.transformers_ if fitted else [*step.transformers, ("remainder", step.remainder, ())]
        for _, each, _ in parts:
            yield from learners_in(each, fitted=fitted)
