"""Turns columns into a learner's numbers and labels, by public rules, value by value.

Numbers are clipped to public limits and rounded to a public grid inside the engine, where every value becomes a whole
number of steps; texts become one feature for each public key. What comes back is decoded without looking at other rows.
Of a column that names files, each is a number for each place of their public shape, read after the charge.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import count
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.engines.folders.folder import Folder
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.learn.persistence.plain_data import LONGEST_ITEM
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.functions.date_functions import day_number
from discreet.plan.model.nodes import Expression, Literal, Value
from discreet.plan.model.schema import ColumnBounds, FileSchema
from discreet.plan.model.types import Type
from discreet.sql.examples import clip_expression, quote_name
from discreet.sql.training_rows import RowColumn, RowSource

Floats = NDArray[np.float64]

FINE = 1 << 20
"""Steps between the limits of a real number, at least; and how many times a norm a number may be long."""

LONGEST_LABEL = LONGEST_ITEM // 4
"""Letters of a label that can be found: as many as a stored model holds. A longer one is none."""

_MOST_STEPS = 1 << 53  # a float holds every whole number up to here
_EPOCH = dt.date(1970, 1, 1)


class Feature(Protocol):
    """One column of the text as one or more features."""

    @property
    def key(self) -> Expression:
        """Returns the expression that is read of a row."""

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the features."""

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Returns the limits of each feature."""

    def decode(self, values: Sequence[Value]) -> Floats:
        """Decodes values into a row for each value and a column for each feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number, a truth value or a day, on a grid: 2^exponent times whole steps from `low` to `high`; NULL is NaN."""

    name: str
    value: Expression
    exponent: int
    low: int
    high: int
    stated: bool = True

    @property
    def key(self) -> Expression:
        """Returns the value clipped, then rounded: always a whole number between the ends, and NULL for NULL."""
        if self.value.type is Type.INT:
            return _clip_between(self.value, Literal(self.low, Type.INT), Literal(self.high, Type.INT))
        step = 2.0**self.exponent
        near = _clip_between(self.value, Literal(self.low * step, Type.FLOAT), Literal(self.high * step, Type.FLOAT))
        scaled = call("multiply", near, Literal(1 / step, Type.FLOAT))
        return call("to_int", call("floor", call("add", scaled, Literal(0.5, Type.FLOAT))))

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the name of the column."""
        return (self.name,)

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Returns the ends of the grid."""
        step = 2.0**self.exponent
        return ((self.low * step, self.high * step),)

    def decode(self, values: Sequence[Value]) -> Floats:
        """Decodes steps as numbers."""
        steps = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        return (steps * 2.0**self.exponent)[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHot:
    """A value with public keys as a feature for each key: 1 for its own, 0 elsewhere; 0 everywhere for any other."""

    name: str
    value: Expression
    keys: tuple[Value, ...]

    @property
    def key(self) -> Expression:
        """Returns the value if it is public, else NULL."""
        return call("if", membership_condition(self.value, self.keys), self.value, Literal(None, self.value.type))

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names: the column and the key."""
        return tuple(f"{self.name}={key}" for key in self.keys)

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Returns the limits 0 and 1 of each feature."""
        return ((0.0, 1.0),) * len(self.keys)

    def decode(self, values: Sequence[Value]) -> Floats:
        """Decodes values into a 1 in the column of their key."""
        places = {key: place for place, key in enumerate(self.keys)}
        made = np.zeros((len(values), len(self.keys)))
        for row, value in enumerate(values):
            if value is not None:
                made[row, places[value]] = 1.0
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLabels:
    """A target of classes: whole numbers or texts, public or still to be found."""

    value: Expression
    classes: tuple[Value, ...] | None

    @property
    def key(self) -> Expression:
        """Returns the expression of the label."""
        return self.value

    @property
    def known_condition(self) -> Expression:
        """Returns whether a row has a label that counts."""
        if self.classes is not None:
            return membership_condition(self.value, self.classes)
        return call("not", call("is_null", self.value))

    @property
    def none(self) -> Value:
        """Returns a label that is none of the public classes; a fixed one where they are not public."""
        taken = set(self.classes or ())
        if self.value.type is Type.INT:
            return next(n for n in count() if n not in taken)
        return next(text for n in count() if (text := "?" * n) not in taken)

    def decode(self, values: Sequence[Value]) -> NDArray[Any]:
        """Decodes labels; what is missing, no class or too long is none.

        Texts that are not public are objects: an array of texts has room for the longest in every place, and one
        person's text could make it larger than any memory.
        """
        none, classes = self.none, None if self.classes is None else frozenset(self.classes)
        labels = [value if _is_label(value, classes) else none for value in values]
        if self.value.type is Type.INT:
            return np.array(labels, dtype=np.int64)
        return np.array(labels, dtype=np.object_ if classes is None else np.str_)


def _is_label(value: Value, classes: frozenset[Value] | None) -> bool:
    """Returns whether a value is a class, or could be found to be one."""
    if classes is not None:
        return value in classes
    return len(value) <= LONGEST_LABEL if isinstance(value, str) else value is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A target of numbers; what is missing is the middle of the bounds."""

    number: Number

    @property
    def key(self) -> Expression:
        """Returns the number on its grid."""
        return self.number.key

    @property
    def known_condition(self) -> Expression:
        """Returns whether a row has a number."""
        return call("not", call("is_null", self.number.value))

    @property
    def none(self) -> Value:
        """Returns None: a missing number counts as the middle of the bounds."""
        return None

    def decode(self, values: Sequence[Value]) -> Floats:
        """Decodes steps as numbers."""
        ((low, high),) = self.number.limits
        return np.asarray(np.nan_to_num(self.number.decode(values)[:, 0], nan=(low + high) / 2))


Target = ClassLabels | Amounts


def membership_condition(value: Expression, keys: Sequence[Value]) -> Expression:
    """Returns an expression: whether a value is one of public ones; NULL is none."""
    return call("in", value, *(Literal(key, value.type) for key in keys))


def feature_of(column: RowColumn, source: RowSource, *, own: ColumnBounds | None, norm: Fraction | None) -> Feature:
    """Makes features of a column.

    Args:
        column: what is public about it.
        source: its text.
        own: limits that the learner itself has for numbers in this place.
        norm: how long a row of the learner may be, where it has no limits for numbers.

    Raises:
        UnsupportedQuery: if nothing public bounds it.
    """
    value, public = _numeric_value(column), column.schema
    if value is not None:
        declared = ColumnBounds(Fraction(0), Fraction(1)) if column.column.type is Type.BOOL else _in_days(column)
        if declared is not None or own is not None:
            return _number(column, source, value, declared or own)
        if norm is not None:
            return _wide(column, source, value, norm)
    if not public.keys:
        _refuse_unbounded(column, source)
    return OneHot(name=column.name, value=column.column, keys=_plain_keys(public.keys))


def amounts_of(column: RowColumn, source: RowSource, own: ColumnBounds | None) -> Amounts:
    """Makes a target of numbers; `own` are the learner's limits.

    Raises:
        UnsupportedQuery: if nothing public bounds it.
    """
    value = _numeric_value(column)
    declared = ColumnBounds(Fraction(0), Fraction(1)) if column.column.type is Type.BOOL else _in_days(column)
    if value is None or (declared is None and own is None):
        _refuse_unbounded(column, source)
    return Amounts(number=_number(column, source, value, declared or own))


def number_of(column: RowColumn, source: RowSource, limits: ColumnBounds) -> Number:
    """Makes a number of a column, clipped to limits that are given, whatever is declared.

    Raises:
        UnsupportedQuery: if it is of a type that has no numbers, or the limits leave no grid.
    """
    value = _numeric_value(column)
    if value is None:
        _refuse_unbounded(column, source)
    return _number(column, source, value, limits)


def labels_of(column: RowColumn, source: RowSource, classes: Sequence[Value] | None) -> ClassLabels:
    """Makes a target of classes; those that the learner was given count before those that are declared.

    Raises:
        UnsupportedQuery: if it is of a type that is no label.
        InvalidParameter: if the learner's classes are of another type.
    """
    value: Expression = column.column
    if value.type is Type.BOOL:
        value = call("to_int", value)
        return ClassLabels(value=value, classes=(0, 1) if classes is None else _of_type(classes, Type.INT))
    if value.type not in (Type.INT, Type.TEXT):
        reason = f"A class is a whole number, a text or a truth value, not {value.type.value}."
        name = quote_name(column.name)
        classes_of = f"CASE WHEN {name} > 0 THEN 1 WHEN {name} <= 0 THEN 0 END AS {name}"
        source.refuse(reason, f"Make classes of it, such as {classes_of}.", column.at)
    if classes is not None:
        return ClassLabels(value=value, classes=_of_type(classes, value.type))
    keys = None if column.schema.keys is None else _plain_keys(column.schema.keys)
    return ClassLabels(value=value, classes=keys if keys is not None and len(keys) > 1 else None)


def _plain_keys(keys: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(key for key in keys if key is not None)


def _of_type(classes: Sequence[Value], kind: Type) -> tuple[Value, ...]:
    wanted = int if kind is Type.INT else str
    made = tuple(int(each) if isinstance(each, bool) else each for each in classes)
    if not all(type(each) is wanted for each in made):
        hint = "Leave classes=None for the public keys of the target."
        raise InvalidParameter("classes", list(classes), f"to be values of the target, which is {kind.value}", hint)
    return made


def _numeric_value(column: RowColumn) -> Expression | None:
    """Returns a column as a number; None if it has none."""
    kind = column.column.type
    if kind is Type.BOOL:
        return call("to_int", column.column)
    if kind is Type.DATE:
        return call("days_between", Literal(_EPOCH, Type.DATE), column.column)
    return column.column if kind.is_number else None


def _in_days(column: RowColumn) -> ColumnBounds | None:
    """Returns declared bounds; those of days count from 1970, as the numbers do."""
    declared = column.schema.bounds
    if declared is None or column.column.type is not Type.DATE:
        return declared
    return ColumnBounds(declared.low - day_number(_EPOCH), declared.high - day_number(_EPOCH))


def _number(column: RowColumn, source: RowSource, value: Expression, limits: ColumnBounds | None) -> Number:
    if limits is None:
        _refuse_unbounded(column, source)
    exponent = 0 if value.type is Type.INT else Grid.finer_than(limits.width / FINE).exponent
    return _on_grid(column, source, value, limits, exponent)


def _wide(column: RowColumn, source: RowSource, value: Expression, norm: Fraction) -> Number:
    """Returns a number without bounds whose rows are shortened: far limits, and steps small compared to the norm."""
    limits = ColumnBounds(-norm * FINE, norm * FINE)
    exponent = 0 if value.type is Type.INT else Grid.finer_than(norm / FINE).exponent
    return _on_grid(column, source, value, limits, exponent, stated=False)


def _on_grid(
    column: RowColumn, source: RowSource, value: Expression, limits: ColumnBounds, exponent: int, *, stated: bool = True
) -> Number:
    step = Fraction(2) ** exponent
    low, high = math.ceil(limits.low / step), math.floor(limits.high / step)
    if low >= high or max(abs(low), abs(high)) > _MOST_STEPS or abs(exponent) > 300:
        reason = f"The bounds of {quote_name(column.name)} leave no grid of exact numbers between them."
        source.refuse(reason, "Scale it, or subtract what all values have in common.", column.at)
    return Number(name=column.name, value=value, exponent=exponent, low=low, high=high, stated=stated)


def _clip_between(value: Expression, low: Literal, high: Literal) -> Expression:
    """Clips between two numbers; LEAST and GREATEST would turn NULL into a bound."""
    below = call("if", call("greater_equal", value, high), high, value)
    return call("if", call("less_equal", value, low), low, below)


def _refuse_unbounded(column: RowColumn, source: RowSource) -> NoReturn:
    name, kind = quote_name(column.name), column.column.type
    if kind.is_number or kind is Type.DATE:
        reason = f"{name} has no public bounds, so one person could move the model by any amount."
        clip = "Ask the steward to declare bounds, give the learner bounds= or norm_bound=, or clip it in the query, "
        limits = ("DATE '2000-01-01'", "DATE '2030-12-31'") if kind is Type.DATE else ("0", "100")
        source.refuse(reason, f"{clip}such as {clip_expression(name, *limits)} AS {name}.", column.at)
    if kind is Type.TIMESTAMP:
        reason = f"{name} is a moment, but a learner takes numbers and days."
        source.refuse(reason, f"Take its hour, such as EXTRACT(HOUR FROM {name}) AS {name}.", column.at)
    reason = f"{name} is {kind.value} without public keys, but a learner takes numbers."
    hint = "Ask the steward to declare its keys, or compare it with values that you know, such as "
    source.refuse(reason, f"{hint}CASE WHEN {name} = 'A' THEN 1 WHEN {name} <> 'A' THEN 0 END AS is_a.", column.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNumbers:
    """The numbers of the files that a column names; all of a blank are missing."""

    name: str
    value: Expression
    files: FileSchema
    folder: Folder = field(repr=False)

    @property
    def key(self) -> Expression:
        """Returns the name of the file."""
        return self.value

    @property
    def names(self) -> tuple[str, ...]:
        """Returns a name for each number, in order."""
        return tuple(f"{self.name}[{place}]" for place in range(math.prod(self.files.shape)))

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """Returns the declared bounds, of each number."""
        return ((self.files.low, self.files.high),) * math.prod(self.files.shape)

    def decode(self, values: Sequence[Value]) -> Floats:
        """Reads the numbers of the files that are named."""
        return self.folder.numbers(values)


def files_of(column: RowColumn, source: RowSource, folders: Mapping[str, Folder]) -> FileNumbers | None:
    """Returns the features of a column that names files; None of any other.

    Raises:
        UnsupportedQuery: if the folder is not here.
    """
    files = column.schema.files
    if files is None:
        return None
    folder = folders.get(files.table)
    if folder is None:
        source.refuse(f"The files of {files.table!r} are not here.", "Protect the folder in this curator.", column.at)
    return FileNumbers(name=column.name, value=column.column, files=files, folder=folder)
