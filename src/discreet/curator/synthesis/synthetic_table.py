"""A synthetic table as it is given and kept: its rows, the model that they were drawn from, and what it cost."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import load
from discreet.ledger import RemainingBudget
from discreet.ledger.cost import Cost
from discreet.privacy.events import Event
from discreet.report.display import Display, DisplayMixin

if TYPE_CHECKING:
    from discreet.noise import Bits
    from discreet.synthetic import Model

MOST_KEPT = 5 * 10**6
"""Values of a table that is kept in the ledger: rows times columns."""

FORMAT = "discreet synthetic table 1"
_SHOWN = 5  # rows of a table that prints itself


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SyntheticTable(DisplayMixin):
    """Synthetic rows like those of a protected table, to hand on.

    Attributes:
        table: the rows, as a pyarrow table.
        model: which they were drawn from; all of it was released.
        cost: what was charged; nothing if it was replayed.
        remaining: what the account can still spend.
        event: what was released.
        replayed: whether a stored table was given again, for free.
        notes: what limits and domains mean for the rows; functions of public facts only.
        private: False if the noise was seeded, for tests.
        name: the protected table.
    """

    table: Any = field(repr=False)
    model: Model = field(repr=False)
    cost: Cost
    remaining: RemainingBudget
    event: Event = field(repr=False)
    replayed: bool
    notes: tuple[str, ...]
    private: bool
    name: str = ""

    def sample(self, rows: int | None = None, *, random_state: int | None = None) -> Any:
        """Returns other rows of the same model, for nothing: any number of them, any number of times.

        Args:
            rows: how many; None is the private estimate of how many there were.
            random_state: a seed that repeats the sample; the model is released, and drawing from it needs no privacy.
        """
        return self.model.sample(rows, random_state=random_state)

    def to_html(self) -> str:
        """Returns a page on what the table is good for: columns, the worst pairs, and what was not measured.

        It follows from the released model: nothing looks at private rows again, and nothing is spent. The same for a
        table that was replayed.

        Raises:
            MissingExtra: if charts cannot be drawn here.
        """
        pages = load("discreet.synthetic.quality.quality_page", "A page")
        text: str = pages.quality_page(self.model, name=self.name, rows=len(self), notes=self.notes)
        return text

    def report(self, path: str | Path) -> None:
        """Writes the page of `to_html` to a file, over an older one.

        Raises:
            MissingExtra: if charts cannot be drawn here; nothing is written.
            InvalidParameter: if the file cannot be written.
        """
        write_text(self.to_html(), path)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self) -> Any:
        """Returns the rows as a pyarrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """Returns the rows as a pandas frame.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        return load("pandas", "A pandas frame").DataFrame(self.table.to_pydict())

    def to_polars(self) -> Any:
        """Returns the rows as a polars frame.

        Raises:
            MissingExtra: if polars is not installed.
        """
        return load("polars", "A polars frame").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def _display(self) -> Display:
        seeded = "" if self.private else " Not private: the noise was seeded, for tests."
        return Display(
            title=f"{len(self):,} synthetic rows. {self.model}.{seeded}",
            columns=self.table.column_names,
            rows=list(zip(*(column.to_pylist() for column in self.table.slice(0, _SHOWN).columns), strict=True)),
            facts={
                "cost": "nothing, it was stored" if self.replayed else str(self.cost),
                "remaining": str(self.remaining),
            },
            notes=self.notes,
        )


@dataclass(frozen=True, slots=True, eq=False)
class KeptTable:
    """A model and rows drawn from it, as the ledger keeps them: plain text."""

    model: Model
    columns: Mapping[str, list[Any]]

    def to_json(self) -> str:
        """Returns both as text."""
        model = json.loads(self.model.to_json())
        return json.dumps({"format": FORMAT, "model": model, "table": plain_values(self.columns)})

    @classmethod
    def from_json(cls, text: bytes | str) -> KeptTable:
        """Returns what a text holds.

        Raises:
            InvalidParameter: if the text is none that `to_json` wrote.
        """
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise KeyError("format")
            model = load("discreet.synthetic", "A synthetic table").Model.from_json(json.dumps(found["model"]))
            columns = read_values(model.domain.columns, found["table"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise InvalidParameter("text", "another text", "to be the text of a synthetic table") from None
        return cls(model, columns)

    @classmethod
    def sample_from(cls, model: Model, rows: int | None, bits: Bits) -> KeptTable:
        """Returns a model with so many rows, or as many as were estimated, but no more than a ledger keeps."""
        count = min(model.rows, most_rows(len(model.domain.columns))) if rows is None else rows
        columns = model.domain.decode(model.sample_codes(count, bits=bits), bits=bits)
        return cls(model, columns)

    @property
    def rows(self) -> int:
        """Returns the number of rows."""
        return len(next(iter(self.columns.values())))


def write_text(text: str, path: str | Path) -> None:
    """Writes a page to a file, over an older one.

    Raises:
        InvalidParameter: if the file cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter("path", str(path), "to be a file that can be written", "Name another file.") from None


def most_rows(columns: int) -> int:
    """Returns how many rows of so many columns are kept at most."""
    return MOST_KEPT // columns


def checked_rows(rows: int | None, most: int) -> int | None:
    """Returns a number of rows, or of people with their events, if no more than can be kept; or None.

    Raises:
        InvalidParameter: if it is none.
    """
    if rows is None:
        return None
    if check.integer(rows=rows, at_least=1) > most:
        hint = "Ask for fewer rows. Then draw any number of others with sample(rows), for nothing."
        raise InvalidParameter("rows", rows, f"to be at most {most:,}, the most that a ledger keeps", hint)
    return rows


def plain_values(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Returns columns as plain data for JSON."""
    return {name: [_write_value(value) for value in column] for name, column in columns.items()}


def read_values(domains: Mapping[str, Any], columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Returns the columns that `plain_values` wrote; days are known by their domains."""
    return {name: _read(columns[name], days=_are_days(domain)) for name, domain in domains.items()}


def _are_days(domain: Any) -> bool:
    return isinstance(domain.labels[0], dt.date)


def _write_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else value


def _read(values: Any, *, days: bool) -> list[Any]:
    if not days:
        return list(values)
    return [None if value is None else dt.date.fromisoformat(value) for value in values]
