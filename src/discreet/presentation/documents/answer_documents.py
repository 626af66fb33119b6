"""Answers as documents: rows in lists, columns with their types, and all that an answer says of itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.curator.asking.answer import Answer
from discreet.measurement.profile.coverage import Coverage
from discreet.measurement.profile.sizes import ZERO
from discreet.plan.model.nodes import Question, Value
from discreet.plan.model.types import Type
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_event,
    read_figure,
    read_float,
    read_remaining,
    read_some_loss,
    read_value,
    reader,
    write_amount,
    write_event,
    write_figure,
    write_loss_text,
    write_remaining,
    write_value,
)

_TYPES: tuple[tuple[type, Type], ...] = (
    (bool, Type.BOOL),  # before int, of which it is one
    (int, Type.INT),
    (float, Type.FLOAT),
    (dt.datetime, Type.TIMESTAMP),  # before date, of which it is one
    (dt.date, Type.DATE),
    (str, Type.TEXT),
)


def answer_document(answer: Answer, *, receipt: Mapping[str, Any] | None = None) -> Document:
    """Returns an answer as JSON.

    Args:
        answer: what was asked, rehearsed or read.
        receipt: where the ledger has it, as its ``sequence`` and ``hash``, if that is known.
    """
    kinds = column_types(answer)
    return {
        "kind": "answer",
        "columns": [{"name": name, "type": kinds[name].value} for name in answer.columns],
        "rows": [[write_value(record[name]) for name in answer.columns] for record in answer.records],
        "cost": write_loss_text(answer.cost),
        "remaining": write_remaining(answer.remaining),
        "event": write_event(answer.event),
        "replayed": answer.replayed,
        "notes": list(answer.notes),
        "confidence": write_amount(answer.confidence),
        "private": answer.private,
        "scope": answer.scope,
        "whole": sorted(answer.whole),
        "coverage": None if answer.coverage is None else coverage_document(answer.coverage),
        "totals": [sorted(left) for left in answer.totals],
        "receipt": None if receipt is None else dict(receipt),
    }


@reader("answer")
def read_answer(document: Given) -> Answer:
    """Returns the answer of a document; what its rows were computed from does not travel, so it cannot be adjusted.

    Raises:
        InvalidParameter: if it is the document of no answer.
    """
    columns = [(each["name"], Type(each["type"]).value) for each in document["columns"]]
    coverage, totals = document["coverage"], tuple(map(frozenset, document["totals"]))
    if len(totals) not in (0, len(document["rows"])):
        raise ValueError(len(totals))
    return Answer(
        columns=tuple(name for name, _ in columns),
        records=tuple(_record(columns, row) for row in document["rows"]),
        cost=read_some_loss(document["cost"]),
        remaining=read_remaining(document["remaining"]),
        event=read_event(document["event"]),
        replayed=bool(document["replayed"]),
        notes=tuple(map(str, document["notes"])),
        confidence=Fraction(document["confidence"]),
        private=bool(document["private"]),
        whole=frozenset(document["whole"]),
        coverage=None if coverage is None else {name: _covered(found) for name, found in coverage.items()},
        totals=totals,
    )


def answers_document(answers: Iterable[Answer], *, receipt: Mapping[str, Any] | None = None) -> Document:
    """Returns answers that were asked together as JSON."""
    return {"kind": "answers", "answers": [answer_document(each, receipt=receipt) for each in answers]}


@reader("answer")
def read_answers(document: Given) -> list[Answer]:
    """Returns the answers of a document.

    Raises:
        InvalidParameter: if it is the document of nothing of the kind.
    """
    return [read_answer(each) for each in document["answers"]]


def column_types(answer: Answer) -> dict[str, Type]:
    """Returns the type of every column of an answer, intervals included.

    It is what the question declares, where that is known; numbers of which one is a float are floats.
    """
    known = {} if answer.released is None else question_types(answer.released.program.question, answer.columns)
    return {name: _type([record[name] for record in answer.records], known.get(name)) for name in answer.columns}


def question_types(question: Question, columns: Sequence[str]) -> dict[str, Type]:
    """Returns the types that a question declares for the columns of its answer; an interval has that of its number."""
    declared = {output.name: output.expression.type for output in question.outputs}
    return {name: declared[number] for name in columns for number in [_number(name, declared)]}


def _number(name: str, declared: Mapping[str, Type]) -> str:
    return name if name in declared else name.removesuffix("_low").removesuffix("_high")


def _type(values: list[Value], declared: Type | None) -> Type:
    if declared is None or declared is Type.INT:
        found = {kind for value in values if value is not None for kind in [_type_of(value)]}
        declared = Type.FLOAT if Type.FLOAT in found else next(iter(found), declared or Type.TEXT)
    return declared


def _type_of(value: Value) -> Type:
    return next(kind for python, kind in _TYPES if isinstance(value, python))


def coverage_document(coverage: Mapping[str, Coverage]) -> Document:
    """Returns what limits and bounds leave out of each column; figures are value, low, high."""
    return {
        name: {
            "share": found.share,
            "low": found.low,
            "high": found.high,
            "rows": write_figure(found.rows),
            "clipped": write_figure(found.clipped),
            "text": str(found),
        }
        for name, found in coverage.items()
    }


def _covered(written: Given) -> Coverage:
    return Coverage(
        share=written["share"],
        low=read_float(written["low"]),
        high=read_float(written["high"]),
        rows=read_figure(written["rows"]) or ZERO,
        clipped=read_figure(written["clipped"]),
    )


def _record(columns: Sequence[tuple[str, str]], row: Sequence[Any]) -> dict[str, Any]:
    return {name: read_value(kind, cell) for (name, kind), cell in zip(columns, row, strict=True)}
