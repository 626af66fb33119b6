"""An answer: rows of released values with their intervals, what they cost, and what they mean."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

from discreet.plan.finish import Cell, Noisy
from discreet.privacy import Loss
from discreet.privacy.events import Event


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What an analyst gets.

    Every released number `x` comes with `x_low` and `x_high`, an interval of the stated confidence that includes the
    noise.

    Attributes:
        records: rows as dictionaries, intervals included.
        cost: what was charged; nothing if it was replayed.
        remaining: what the account can still spend.
        event: what was released.
        replayed: whether a stored answer was given again, for free.
        notes: what limits and bounds mean for these numbers; functions of public facts only.
        confidence: of each interval.
        private: False if the noise was seeded, for tests.
    """

    records: tuple[dict[str, Any], ...]
    cost: Loss
    remaining: Loss
    event: Event
    replayed: bool
    notes: tuple[str, ...]
    confidence: Fraction
    private: bool

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.records[index]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, intervals included."""
        return tuple(self.records[0]) if self.records else ()

    def to_arrow(self) -> Any:
        """A pyarrow table; needs pyarrow."""
        return import_module("pyarrow").Table.from_pylist(list(self.records))

    def to_pandas(self) -> Any:
        """A pandas frame; needs pandas."""
        return import_module("pandas").DataFrame.from_records(list(self.records))

    def to_polars(self) -> Any:
        """A polars frame; needs polars."""
        return import_module("polars").DataFrame(list(self.records))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(value))}</td>" for value in record.values()) + "</tr>"
            for record in self.records
        )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        cost = "free, replayed" if self.replayed else f"cost {self.cost}"
        return f"<table><tr>{head}</tr>{body}</table><p>{html.escape(cost)}</p><ul>{notes}</ul>"


def _shown(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def records(rows: Sequence[dict[str, Cell]]) -> tuple[dict[str, Any], ...]:
    """Rows with each noisy number spread over three columns, as plain Python values."""
    return tuple(
        {name: value for output, cell in row.items() for name, value in _columns(output, cell)} for row in rows
    )


def _columns(output: str, cell: Cell) -> Iterator[tuple[str, Any]]:
    if not isinstance(cell, Noisy):
        yield output, cell
        return
    for suffix, part in (("", cell.value), ("_low", cell.low), ("_high", cell.high)):
        yield output + suffix, float(part) if isinstance(part, Fraction) else part
