"""Results as pages show them: answers with error bars and a chart, all else as tables and pairs, and files to save.

A caller's last answers are kept for a while, so that they can be saved: nothing is asked again for a download, and no
caller gets another's answer, which is found by its caller's name and number.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any

from discreet.curator.asking.answer import Answer
from discreet.dataclass import dataclass
from discreet.measurement.program.execution import TOTAL
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.presentation.documents.plan_documents import CHOICES
from discreet.report import answers
from discreet.report.charts import Spec
from discreet.report.csv_text import csv_text
from discreet.report.html import Html
from discreet.service.page.request_forms import label_of
from discreet.service.request_executor import Document

MOST_ROWS = 500
"""The most rows of a table on a page; the file has all."""
MOST_DRAWN = 60
"""The most numbers in a chart: more cannot be read."""
_OWN = ("kind", "text", "event", "notes", "released", "receipt", "domain")
"""Fields that are shown elsewhere, or only in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentTable:
    """A table of a document: rows under headings."""

    name: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    @property
    def shown_rows(self) -> Sequence[Sequence[str]]:
        """Returns the first rows as texts."""
        return [[_text(cell) for cell in row] for row in self.rows[:MOST_ROWS]]

    @property
    def hidden_count(self) -> int:
        """Returns how many rows are in the file only."""
        return max(0, len(self.rows) - MOST_ROWS)

    def as_csv(self) -> str:
        """Returns all rows as CSV that no spreadsheet computes.

        >>> DocumentTable(name="t", headings=("ward", "n"), rows=[["=1+1", 2], [None, 3]]).as_csv().splitlines()
        ['ward,n', "'=1+1,2", ',3']
        """
        return csv_text(list(self.headings), [dict(zip(self.headings, row, strict=True)) for row in self.rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentView:
    """The parts of a document that the page shows by common rules."""

    facts: Mapping[str, str]
    tables: tuple[DocumentTable, ...]
    notes: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """A result with its place on a page.

    Attributes:
        template: the template that shows it.
        view: what the template shows.
        number: the number under which it is kept; 0 if it is not.
        files: the names of its tables, each a file.
        receipt: the entry of its charge.
        rehearsed: whether it is about synthetic rows.
    """

    template: str
    view: Any
    number: int = 0
    files: tuple[str, ...] = ()
    receipt: Mapping[str, Any] | None = None
    rehearsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """What a template shows of an answer: cells are texts, those of numbers with their error bars."""

    answer: Answer
    headings: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[tuple[str, Html | None], ...], ...]
    hidden: int
    chart: Spec | None

    @property
    def facts(self) -> dict[str, str]:
        """Returns the cost, the remaining budget, and what the intervals are about."""
        cost = "nothing: this is a stored answer" if self.answer.replayed else str(self.answer.cost)
        return {"Cost": cost, "Remaining": str(self.answer.remaining), **self.answer.scope_facts}


def view_answer(document: Document) -> AnswerView:
    """Returns what is shown of an answer's document.

    Raises:
        InvalidParameter: if it is none.
    """
    answer = ANSWER.read(document)
    totals = answer.totals or (frozenset[str](),) * len(answer.records)
    records = [record | dict.fromkeys(left, TOTAL) for record, left in zip(answer.records, totals, strict=True)]
    shape, shown = answers.AnswerShape.of(answer.columns), records[:MOST_ROWS]
    drawn = len(records) * len(shape.numbers)
    columns = [_column(shown, name, name in shape.numbers) for name in shape.names]
    return AnswerView(
        answer=answer,
        headings=shape.names,
        numbers=shape.numbers,
        rows=tuple(zip(*columns, strict=True)),
        hidden=len(records) - len(shown),
        chart=answer.spec(records) if 0 < drawn <= MOST_DRAWN else None,
    )


def _column(records: Sequence[answers.Record], name: str, is_number: bool) -> list[tuple[str, Html | None]]:
    bars = answers.error_bars(records, name) if is_number else [None] * len(records)
    return [(answers.cell(record, name), bar) for record, bar in zip(records, bars, strict=True)]


_VIEWS: Mapping[str, tuple[str, Any]] = {
    "answer": ("fragments/answer.html", view_answer),
    "answers": ("fragments/answers.html", lambda document: [view_answer(each) for each in document["answers"]]),
    "choices": ("fragments/choices.html", CHOICES.read),
}
"""Kinds of documents that are shown better than all others."""


def outcome_of(document: Document, *, number: int = 0, rehearsed: bool = False) -> ResultView:
    """Returns how a document is shown.

    Raises:
        InvalidParameter: if it is not of its kind.
    """
    template, view = _VIEWS.get(str(document.get("kind")), ("fragments/document.html", view_document))
    files = tuple(table.name for table in tables_of(document)) if number else ()
    receipt = document.get("receipt")
    return ResultView(
        template=template, view=view(document), number=number, files=files, receipt=receipt, rehearsed=rehearsed
    )


def view_document(document: Document) -> DocumentView:
    """Returns what is shown of a document by the common rules; what is nested is shown by its text, if it has one."""
    tables, text = tables_of(document), str(document.get("text") or "")
    told = {name: value for name, value in document.items() if name not in _OWN}
    if tables or text:
        told = {name: value for name, value in told.items() if not _is_nested(value)}
    else:
        tables = tuple(_build_table(name, value) for name, value in told.items() if _is_listed(value))
        told = {name: value for name, value in told.items() if not _is_listed(value)}
    notes = tuple(map(str, document.get("notes") or ()))
    return DocumentView(facts={label_of(n): _text(v) for n, v in told.items()}, tables=tables, notes=notes, text=text)


def tables_of(document: Mapping[str, Any]) -> tuple[DocumentTable, ...]:
    """Returns the rows of a document: its own, those of its answers, or synthetic ones.

    >>> [table.rows for table in tables_of({"released": {"table": {"age": [40, 41], "ward": ["A", "B"]}}, "name": "t"})]
    [[(40, 'A'), (41, 'B')]]
    """
    if isinstance(document.get("rows"), list) and isinstance(document.get("columns"), list):
        headings = tuple(column["name"] for column in document["columns"])
        return (DocumentTable(name="Rows", headings=headings, rows=document["rows"]),)
    if "answers" in document:
        found = [tables_of(each)[0] for each in document["answers"]]
        return tuple(replace(table, name=f"Answer {place}") for place, table in enumerate(found, 1))
    made = [each for each in (document.get("released") or {}).values() if _is_columns(each)]
    names = document.get("names") or [document.get("name", "Rows")]
    return tuple(
        DocumentTable(name=str(name), headings=tuple(columns), rows=list(zip(*columns.values(), strict=True)))
        for name, columns in zip(names, made, strict=False)
    )


def _is_columns(part: Any) -> bool:
    return isinstance(part, dict) and bool(part) and all(isinstance(each, list) for each in part.values())


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and "text" not in value)


def _is_listed(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(items) and all(isinstance(each, dict) for each in items)


def _build_table(name: str, value: Any) -> DocumentTable:
    """Returns a list of objects, or objects by name, as a table."""
    rows = [{label_of(name): key, **each} for key, each in value.items()] if isinstance(value, dict) else value
    headings = tuple(dict.fromkeys(heading for row in rows for heading in row))
    return DocumentTable(
        name=label_of(name), headings=headings, rows=[[row.get(each) for each in headings] for row in rows]
    )


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return str(value.get("text") or ", ".join(f"{name}: {_text(part)}" for name, part in value.items()))
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


# ------------------------------------------------------------------------------------------------------------- kept

MOST = 512
"""The most answers of all callers; the oldest go first."""
MOST_OF_ONE = 16
MOST_CELLS = 200_000
MOST_LETTERS = 20 * MOST_CELLS
"""The most cells of one answer, and letters of its JSON; a larger one is exported through the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentResult:
    """A result and what was asked."""

    question: str
    document: Document

    @property
    def is_small(self) -> bool:
        """Returns whether it can be kept: neither its tables nor a model next to them are large."""
        if sum(len(table.rows) * len(table.headings) for table in tables_of(self.document)) > MOST_CELLS:
            return False
        return len(json.dumps(self.document)) <= MOST_LETTERS


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """The last answers of every caller.

    >>> kept = KeptAnswers()
    >>> number = kept.add("ana", RecentResult(question="SELECT 1", document={"rows": []}))
    >>> kept.find("ana", number).question, kept.find("ben", number)
    ('SELECT 1', None)
    """

    _kept: OrderedDict[tuple[str, int], RecentResult] = field(default_factory=OrderedDict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def add(self, who: str, answer: RecentResult) -> int:
        """Keeps an answer, and returns its number; 0 if it is too large to be kept."""
        if not answer.is_small:
            return 0
        number = next(self._numbers)
        self._kept[who, number] = answer
        own = [place for place in self._kept if place[0] == who]
        for place in own[:-MOST_OF_ONE]:
            del self._kept[place]
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return number

    def find(self, who: str, number: int) -> RecentResult | None:
        """Returns an answer that was kept for `who`; None for all others, and for those that have gone."""
        return self._kept.get((who, number))
