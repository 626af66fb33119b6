"""An answer as a browser shows it: a table with error bars, a chart, and files to take away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.curator.asking.answer import Answer
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.report import answers
from discreet.report.charts import Spec
from discreet.report.display import measured, on_a_scale, percent, plain
from discreet.report.html import Html
from discreet.service.desk import Document

MOST_ROWS = 500
"""Of a table on a page; the export has all."""
MOST_DRAWN = 60
"""Rows of a chart: more are no picture."""

_TOTAL = "(all)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A key, or a number with its interval and a small picture of both."""

    text: str
    picture: Html | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """What a template shows of an answer."""

    headings: tuple[str, ...]
    numbers: frozenset[str]
    rows: tuple[tuple[Cell, ...], ...]
    hidden: int
    chart: Spec | None
    confidence: str
    facts: dict[str, str]
    notes: tuple[str, ...]
    private: bool
    replayed: bool


def answer_view(document: Document) -> AnswerView:
    """Returns what is shown of an answer's document.

    Raises:
        InvalidParameter: if it is none.
    """
    answer = ANSWER.read(document)
    records = printed(answer)
    shape = answers.Shape.of(answer.columns)
    shown = records[:MOST_ROWS]
    return AnswerView(
        headings=tuple(map(plain, shape.names)),
        numbers=frozenset(map(plain, shape.numbers)),
        rows=tuple(zip(*(_column(shown, name, shape) for name in shape.names), strict=True)) if shown else (),
        hidden=len(records) - len(shown),
        chart=_chart(answer, records, shape),
        confidence=percent(answer.confidence),
        facts=_facts(answer),
        notes=tuple(map(plain, answer.notes)),
        private=answer.private,
        replayed=answer.replayed,
    )


def printed(answer: Answer) -> list[dict[str, Any]]:
    """Returns the records, with keys that a total leaves out written as such."""
    left_out = answer.totals or (frozenset[str](),) * len(answer.records)
    return [
        {name: _TOTAL if name in left else value for name, value in record.items()}
        for record, left in zip(answer.records, left_out, strict=True)
    ]


def _column(records: Sequence[answers.Record], name: str, shape: answers.Shape) -> list[Cell]:
    if name not in shape.numbers:
        return [Cell(text=plain(record[name])) for record in records]
    parts = [(record[name], record[f"{name}_low"], record[f"{name}_high"]) for record in records]
    scaled = [tuple(None if part is None else on_a_scale(part) for part in each) for each in parts]
    finite = [float(part) for each in scaled for part in each if part is not None and math.isfinite(part)] or [0.0]
    span = min(finite), max(finite)
    return [
        Cell(text=measured(*each), picture=answers.error_bar(value, low or 0, high or 0, span=span))
        for each, (value, low, high) in zip(parts, scaled, strict=True)
    ]


def _chart(answer: Answer, records: list[dict[str, Any]], shape: answers.Shape) -> Spec | None:
    if not records or not shape.numbers or len(records) * len(shape.numbers) > MOST_DRAWN:
        return None
    return answers.spec(records, remarks={name: str(found) for name, found in (answer.coverage or {}).items()})


def _facts(answer: Answer) -> dict[str, str]:
    cost = "nothing: a stored answer, given again" if answer.replayed else str(answer.cost)
    return {"Cost": cost, "Remaining": str(answer.remaining), "Intervals are about": answer.scope}
