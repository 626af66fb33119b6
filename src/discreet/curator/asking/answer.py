"""An answer: rows of released values with their intervals, what they cost, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from discreet.curator.asking.adjustment import Adjusted
from discreet.errors import InvalidParameter
from discreet.exact import float_above, float_below
from discreet.lazy import load, pa
from discreet.ledger import Remaining
from discreet.measurement.program.execution import Released
from discreet.plan.model.nodes import Output, Question
from discreet.plan.model.nodes import columns as columns_of
from discreet.plan.post.outputs import Cell, Noisy
from discreet.plan.post.steps import noisy_columns
from discreet.privacy import Loss
from discreet.privacy.events import Event
from discreet.report import answers, page, render
from discreet.report.display import Display, percent
from discreet.report.html import element

_LARGEST = (1 << 63) - 1  # of the integers that every frame can hold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What an analyst gets.

    Every released number `x` comes with `x_low` and `x_high`, an interval of the stated confidence that includes the
    noise and what rounding to public grids can have moved.

    Attributes:
        columns: the names of all columns, intervals included.
        records: rows as dictionaries, intervals included.
        cost: what was charged; nothing if it was replayed.
        remaining: what the account can still spend.
        event: what was released.
        replayed: whether a stored answer was given again, for free.
        notes: what limits and bounds mean for these numbers; functions of public facts only.
        confidence: of each interval.
        private: False if the noise was seeded, for tests.
        released: the noisy statistics that the rows were computed from.
        raw: of an adjusted answer, the one before.
    """

    columns: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    cost: Loss
    remaining: Remaining
    event: Event
    replayed: bool
    notes: tuple[str, ...]
    confidence: Fraction
    private: bool
    released: Released | None = field(default=None, repr=False)
    raw: Answer | None = field(default=None, repr=False)

    def adjusted(self, *, consistent: bool = True, nonnegative: bool = True) -> Answer:
        """The same answer with numbers that fit each other; the answer as it was released stays in its `raw`.

        Args:
            consistent: makes totals of ROLLUP, CUBE and GROUPING SETS the sums of their parts.
            nonnegative: holds counts, and sums of what is not negative, to zero.

        Raises:
            InvalidParameter: if groups do not add up to totals: where people own rows, and where groups are private.
        """
        if self.released is None:
            raise InvalidParameter("answer", "this one", "to come from a curator", "Ask a question first.")
        fitting = Adjusted(self.released, consistent=consistent, nonnegative=nonnegative)
        return replace(
            self,
            records=records(fitting.rows(self.confidence)),
            notes=(*self.notes, "Numbers were adjusted to fit each other after they were released; see raw."),
            released=fitting,
            raw=self.raw or self,
        )

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.records[index]

    def to_arrow(self) -> Any:
        """Returns the rows as a pyarrow table."""
        return pa.table(self._by_column())

    def to_pandas(self) -> Any:
        """Returns the rows as a pandas frame.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        return load("pandas", "A pandas frame").DataFrame(self._by_column())

    def to_polars(self) -> Any:
        """Returns the rows as a polars frame.

        Raises:
            MissingExtra: if polars is not installed.
        """
        return load("polars", "A polars frame").DataFrame(self._by_column())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def chart(self) -> Any:
        """The released numbers with their intervals, by group.

        Returns:
            An Altair chart; without Altair, the same chart as a dictionary of Vega-Lite.
        """
        return render.chart(answers.spec(self.records))

    def __str__(self) -> str:
        return self._display().text()

    def _repr_html_(self) -> str:
        caption = f"Released numbers with {percent(self.confidence)} intervals"
        cost = "Free: a stored answer, replayed." if self.replayed else f"Cost: {self.cost}."
        warning = [] if self.private else [element("strong", "Not private: the noise was seeded, for tests.")]
        return element(
            "div",
            answers.table(self.records, caption=caption),
            *warning,
            page.paragraph(f"{cost} Remaining: {self.remaining}."),
            page.bullets(*self.notes),
        )

    def _display(self) -> Display:
        names, numbers = (shape := answers.Shape.of(self.columns)).names, shape.numbers
        heads = [f"{name} ({percent(self.confidence)} interval)" if name in numbers else name for name in names]
        seeded = "" if self.private else "NOT PRIVATE: the noise was seeded, for tests."
        return Display(
            title=" ".join(filter(None, [seeded, "" if self.records else "No group was large enough to be shown."])),
            columns=heads,
            rows=[[answers.cell(record, name) for name in names] for record in self.records],
            numbers=[head for head, name in zip(heads, names, strict=True) if name in numbers],
            facts={
                **({"Replayed": "a stored answer, free"} if self.replayed else {"Cost": str(self.cost)}),
                "Remaining": str(self.remaining),
            },
            notes=self.notes,
        )

    def _by_column(self) -> dict[str, list[Any]]:
        return {name: _alike([record[name] for record in self.records]) for name in self.columns}


def _alike(values: list[Any]) -> list[Any]:
    """Numbers of one kind: floats as soon as one is a float or does not fit into 64 bits."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if all(isinstance(value, int) and abs(value) <= _LARGEST for value in numbers):
        return values
    return [float(value) if isinstance(value, int) else value for value in values]


def columns(question: Question) -> tuple[str, ...]:
    """The names that the rows of an answer will have, whether or not there are any."""
    noisy = noisy_columns(question)
    return tuple(name for output in question.outputs for name in _names(output, noisy))


def _names(output: Output, depend: frozenset[str]) -> tuple[str, ...]:
    noisy = any(column.name in depend for column in columns_of(output.expression))
    name = output.name
    return (name, f"{name}_low", f"{name}_high") if noisy and output.expression.type.is_number else (name,)


def records(rows: Sequence[dict[str, Cell]]) -> tuple[dict[str, Any], ...]:
    """Rows with each noisy number spread over three columns, as plain Python values; ends are rounded outwards."""
    return tuple(_record(row) for row in rows)


def _record(row: dict[str, Cell]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, cell in row.items():
        if isinstance(cell, Noisy):
            made[name] = _plain(cell.value, float)
            made[f"{name}_low"], made[f"{name}_high"] = _plain(cell.low, float_below), _plain(cell.high, float_above)
        else:
            made[name] = cell
    return made


def _plain(part: float | Fraction | None, rounded: Callable[[Fraction], float]) -> int | float | None:
    return part if part is None or isinstance(part, int | float) else rounded(part)
