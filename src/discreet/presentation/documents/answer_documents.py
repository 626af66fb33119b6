"""Answers as documents: rows in lists, columns with their types, and all that an answer says of itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.curator.asking.answer import Answer
from discreet.dataclass import dataclass
from discreet.ledger.acts.table_versions import TableVersion
from discreet.measurement.profile.coverage import Coverage
from discreet.plan.model.group_columns import ColumnarRows
from discreet.plan.model.nodes import Question, Value
from discreet.plan.model.sample import INTERVALS
from discreet.plan.model.types import Type
from discreet.presentation.documents.result_documents import (
    RELEASED,
    Document,
    DocumentForm,
    Given,
    read_plain,
    read_value,
    types_of,
    write_plain,
    write_value,
)

_TYPES: tuple[tuple[type, Type], ...] = (
    (bool, Type.BOOL),  # before int: a bool is an int in Python
    (int, Type.INT),
    (float, Type.FLOAT),
    (dt.datetime, Type.TIMESTAMP),  # before date: a datetime is a date in Python
    (dt.date, Type.DATE),
    (str, Type.TEXT),
)


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """A column of an answer."""

    name: str
    type: Type


COLUMNS = tuple[ColumnHead, ...]
COVERAGE = DocumentForm(
    kind="coverage",
    says_kind=False,
    about="What limits and bounds leave out of a column. Figures are value, low, high.",
    make=Coverage,
    parts={**types_of(Coverage), "text": str},
).declare()


def write_columns(kinds: Mapping[str, Type]) -> list[Document]:
    """Returns columns with their types."""
    return [write_plain(ColumnHead(name, kind)) for name, kind in kinds.items()]


def _written_rows(answer: Answer) -> Document:
    """Returns what is no attribute of an answer; who owns the ledger knows the receipt."""
    columns = [[write_value(value) for value in values] for values in _values(answer).values()]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return {"columns": write_columns(column_types(answer)), "rows": rows, "receipt": None}


def _values(answer: Answer) -> dict[str, Sequence[Any]]:
    """Returns the values of each column, in the order of the answer's."""
    held = ColumnarRows.of(answer.records).lists
    return {name: held.get(name, ()) for name in answer.columns}


def _read_rows(document: Given) -> Document:
    heads, totals = read_plain(COLUMNS, document["columns"]), ANSWER.read_part("totals", document)
    if len(totals) not in (0, len(document["rows"])) or document["interval"] not in INTERVALS:
        raise ValueError(len(totals))
    records = tuple(
        {head.name: read_value(head.type.value, cell) for head, cell in zip(heads, row, strict=True)}
        for row in document["rows"]
    )
    return {"columns": tuple(head.name for head in heads), "records": records, "totals": totals}


ANSWER = DocumentForm(
    kind="answer",
    about='An answer. Dates and timestamps are texts in ISO 8601; infinite numbers are "Infinity" or "-Infinity".',
    make=Answer,
    parts={
        "columns": COLUMNS,
        "rows": list[list[Value]],
        **RELEASED,
        "confidence": Fraction,
        "private": bool,
        "interval": str,
        "scope": str,
        "whole": frozenset[str],
        "coverage": Mapping[str, Coverage] | None,
        "counted": str,
        "totals": tuple[frozenset[str], ...],
        "versions": tuple[TableVersion, ...],
        "receipt": dict[str, Any] | None,
    },
    writes=_written_rows,
    reads=_read_rows,
).declare()
"""What the rows of an answer were computed from does not travel, so one that was read cannot be adjusted."""

ANSWERS: DocumentForm[list[Answer]] = DocumentForm(
    kind="answers",
    about="Answers to queries that were asked together.",
    make=lambda answers: answers,
    parts={"answers": list[Answer]},
    writes=lambda answers: {"answers": [ANSWER.write(each) for each in answers]},
)


def column_types(answer: Answer) -> dict[str, Type]:
    """Returns the type of every column of an answer, intervals included.

    It is what the question declares, where that is known; a column of numbers is of floats if one of them is.
    """
    known = {} if answer.released is None else question_types(answer.released.program.question, answer.columns)
    return {name: _type(values, known.get(name)) for name, values in _values(answer).items()}


def question_types(question: Question, columns: Sequence[str]) -> dict[str, Type]:
    """Returns the types that a question declares for the columns of its answer; an interval has that of its number."""
    declared = {output.name: output.expression.type for output in question.outputs}
    return {name: declared[number] for name in columns for number in [_number(name, declared)]}


def _number(name: str, declared: Mapping[str, Type]) -> str:
    return name if name in declared else name.removesuffix("_low").removesuffix("_high")


def _type(values: Sequence[Value], declared: Type | None) -> Type:
    if declared is None or declared is Type.INT:
        found = {kind for value in values if value is not None for kind in [_type_of(value)]}
        declared = Type.FLOAT if Type.FLOAT in found else next(iter(found), declared or Type.TEXT)
    return declared


def _type_of(value: Value) -> Type:
    return next(kind for python, kind in _TYPES if isinstance(value, python))
