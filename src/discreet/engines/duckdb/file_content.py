"""What is in a file: how its cells are written, which of them a type does not read, whose rows they are.

Everything here is read from private data without a charge: it is for a steward's eyes, before a table is
protected, and nothing that answers questions calls it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import duckdb

from discreet.dataclass import dataclass
from discreet.engines.duckdb.cell_forms import IS_MARK, CellFormat, Mend, form_of, mend_cell, reads, strip_signs
from discreet.engines.duckdb.composed.declared_columns import declared_columns
from discreet.engines.duckdb.composed.file_parts import steward_table
from discreet.engines.duckdb.dialect import DIALECT, ID_FUNCTION
from discreet.engines.duckdb.source_tables import csv_scan, describe_source, fetch_rows, open_database, put
from discreet.engines.duckdb.sources import Csv, Source, named_table, rename_columns, source_of
from discreet.engines.sources.file_set import FileSet, Listing
from discreet.engines.sources.sqlite_table import SqliteTable
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import id_text
from discreet.progress import stoppable

Cell = str | int | float | bool | dt.date


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnForms:
    """How the cells of a column are written.

    Attributes:
        stored: the type that the format gives it; text in CSV.
        forms: how many cells have each form; of a column that is no text, all but the missing ones are `TEXT`.
        distinct: about how many different values there are.
    """

    stored: Type
    forms: Mapping[CellFormat, int]
    distinct: int

    def count(self, *forms: CellFormat) -> int:
        """Counts the cells of some forms."""
        return sum(self.forms.get(form, 0) for form in forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnValues:
    """What is in a column, read as a type.

    Attributes:
        low: the least value; None of a text or where there is none.
        high: the greatest.
        outside: how many lie outside the bounds that were asked about.
        unread: a few of the values that the type does not read, the most frequent first.
        values: all different values, in order; None if there are too many.
    """

    low: Cell | None
    high: Cell | None
    outside: int
    unread: tuple[str, ...]
    values: tuple[Cell, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPerUnit:
    """How many rows people have.

    Attributes:
        units: how many people there are.
        without: how many rows have no id.
        quantiles: the number of rows that each share of people does not exceed.
    """

    units: int
    without: int
    quantiles: Mapping[float, int]


SHARES = (0.5, 0.9, 0.95, 0.99, 1.0)
_FEW_UNREAD = 3
_PLACES = {form: place for place, form in enumerate(CellFormat)}


class FileContent:
    """A file that a steward looks into; to be closed after use.

    Args:
        path: of a file, a folder of files, or a pattern.
        most_columns: how many columns it may have; None for any number.
        names: of the columns of CSV, where they are called otherwise than in the header.
        table: of a DuckDB database.

    Raises:
        InvalidParameter: if it is neither, or has no header; from any method if it is damaged or too large.
    """

    def __init__(
        self, path: Path, *, most_columns: int | None = None, names: Sequence[str] = (), table: str | None = None
    ) -> None:
        self._listing = Listing(())
        self.source: Source = rename_columns(path, names) if names else source_of(named_table(path, table))
        if isinstance(self.source, SqliteTable):
            hint = "Declare the types of its columns in discreet.toml: any cell of SQLite may have any type."
            raise InvalidParameter("table", table, "to be of a DuckDB database", hint)
        if isinstance(self.source, Csv):
            _require_few(len(self.source.header), most_columns)
        if isinstance(self.source, FileSet):
            self._listing, self.source, columns = steward_table("given", self.source)
            self._columns = declared_columns(columns)
        else:
            self._columns = describe_source(self.source)
        _require_few(len(self._columns), most_columns)
        self._connection = open_database()
        self._connection.create_function(ID_FUNCTION, id_text, ["VARCHAR"], "VARCHAR")
        with _readable():
            put(self._connection, (self.source, self._columns), "given")

    @property
    def stored_types(self) -> dict[str, Type]:
        """Returns the columns and the types that the format gives them."""
        return {name: column.type for name, column in self._columns.items()}

    def forms(self, *, signs: bool = True) -> tuple[int, dict[str, ColumnForms]]:
        """Counts the rows, and the forms of cells in every column.

        Args:
            signs: False to overlook signs of currencies and percents.
        """
        terms = ["count(*)"]
        for cell, kind in self._cells.values():
            form = (
                form_of(cell)
                if kind is Type.TEXT
                else f"CAST({cell} IS NOT NULL AS INTEGER) * {_PLACES[CellFormat.TEXT]}"
            )
            terms += [f"histogram({form})", f"approx_count_distinct({cell})"]
        (rows, *found), listed = self._row(terms, signs=signs), [*CellFormat]
        return rows, {
            name: ColumnForms(
                stored=kind,
                forms={listed[place]: count for place, count in (found[2 * i] or {}).items()},
                distinct=found[2 * i + 1],
            )
            for i, (name, kind) in enumerate(self.stored_types.items())
        }

    def values(
        self, kinds: Mapping[str, Type], *, bounds: Mapping[str, tuple[Any, Any]], listed: Sequence[str], most: int
    ) -> dict[str, ColumnValues]:
        """Looks at columns under types.

        Args:
            kinds: the types.
            bounds: of some columns, to count what lies outside of them.
            listed: the columns whose different values are all wanted, unless there are more than `most`.
            most: see there.
        """
        terms = list[str]()
        for name, kind in kinds.items():
            (cell, stored), read = self._cells[name], self._read(name, kind)
            faulty = f"{read} IS NULL AND NOT {IS_MARK.format(cell)}"
            unread = f"CASE WHEN {faulty} THEN nullif({cell}, '') END" if stored is Type.TEXT else "NULL"
            ends = kind.is_number or kind in (Type.DATE, Type.TIMESTAMP)
            low, high = bounds.get(name, (None, None))
            terms += [f"min({read})", f"max({read})"] if ends else ["NULL", "NULL"]
            terms += [f"count_if({read} NOT BETWEEN {low} AND {high})" if name in bounds else "0"]
            terms += [f"approx_top_k({unread}, {_FEW_UNREAD})"]
            terms += [f"list_sort(list(DISTINCT {read}))" if name in listed else "NULL"]
        found = self._row(terms) if terms else ()
        return {name: _values(found[5 * i : 5 * i + 5], most) for i, name in enumerate(kinds)}

    def rows_per_unit(self, name: str, kind: Type) -> RowsPerUnit:
        """Counts people by their ids, and their rows, as questions will: an id counts in its normal form."""
        read = self._read(name, kind)
        unit = DIALECT.normalised_id.format(read) if kind is Type.TEXT else read
        counted = f"SELECT {unit} AS unit, count(*) AS n FROM ({self._rows()}) GROUP BY 1"
        quantiles = f"quantile_disc(n, {list(SHARES)}) FILTER (unit IS NOT NULL)"
        sql = f"SELECT count(unit), coalesce(sum(n) FILTER (unit IS NULL), 0), {quantiles} FROM ({counted})"
        ((units, without, found),) = self._fetch_rows(sql)
        most = dict(zip(SHARES, found or [0] * len(SHARES), strict=True))
        return RowsPerUnit(units=units, without=int(without), quantiles=most)

    def faulty_lines(self) -> dict[str, tuple[int, int]]:
        """Counts the lines of CSV that a strict parser would refuse, by what is wrong, with the first of each."""
        if not isinstance(self.source, Csv):
            return {}
        scan = csv_scan(self.source, "store_rejects = true, rejects_limit = 0, parallel = false")
        cells = ", ".join(f"count({DIALECT.quote_name(name)})" for name in self.source.header)
        self._fetch_rows(f"SELECT {cells} FROM {scan}")
        sql = "SELECT error_type, count(DISTINCT line), min(line) FROM reject_errors GROUP BY 1 ORDER BY 3"
        return {str(kind).lower(): (count, first) for kind, count, first in self._fetch_rows(sql)}

    def write(self, path: Path, mends: Mapping[str, Mend]) -> None:
        """Writes a copy as CSV with a header, in which some columns are written plainly.

        Raises:
            InvalidParameter: if it cannot be written.
        """
        columns = ", ".join(
            f"{mend_cell(cell, mends[name]) if name in mends else cell} AS {DIALECT.quote_name(name)}"
            for name, (cell, _) in self._cells.items()
        )
        self._connection.execute("SET preserve_insertion_order = true")
        target = DIALECT.text_literal(str(path))
        self._fetch_rows(
            f"COPY (SELECT {columns} FROM ({self._rows()})) TO {target} (FORMAT csv, HEADER true, USE_TMP_FILE false)"
        )

    def close(self) -> None:
        """Closes the database that reads the file."""
        self._connection.close()
        self._listing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _cells(self) -> dict[str, tuple[str, Type]]:
        """Returns how the cells of each column are called below, and how they are stored."""
        return {name: (f"c{place}", kind) for place, (name, kind) in enumerate(self.stored_types.items())}

    def _rows(self, *, signs: bool = True) -> str:
        """Returns all cells, texts without spaces around them, as types are read from them; perhaps without signs."""
        quoted = {name: DIALECT.quote_name(name) for name in self._cells}
        shown = (
            f"{_bare(quoted[name], signs=signs) if kind is Type.TEXT else quoted[name]} AS {cell}"
            for name, (cell, kind) in self._cells.items()
        )
        return f"SELECT {', '.join(shown)} FROM given"

    def _read(self, name: str, kind: Type) -> str:
        cell, stored = self._cells[name]
        return reads(kind, cell) if stored is Type.TEXT else cell

    def _row(self, terms: Sequence[str], *, signs: bool = True) -> tuple[Any, ...]:
        return self._fetch_rows(f"SELECT {', '.join(terms)} FROM ({self._rows(signs=signs)})")[0]

    def _fetch_rows(self, sql: str) -> list[tuple[Any, ...]]:
        readable = {"given": (self.source, self._columns)}
        with _readable():
            return stoppable(
                lambda stopped: fetch_rows(self._connection, readable, sql, {}, stopped), self._connection.interrupt
            )


def _require_few(columns: int, most: int | None) -> None:
    """Refuses a file with too many columns before it is read: each is looked at alone."""
    if most is not None and columns > most:
        hint = "Write a file with only the columns that you need, or declare it in discreet.toml."
        raise InvalidParameter("source", f"a file with {columns} columns", f"at most {most} columns", hint)


@contextmanager
def _readable() -> Iterator[None]:
    """Reports to the steward that a file is damaged or too large; a question never comes here, and learns neither."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        hint = "Split it, or use a machine with more memory."
        raise InvalidParameter("source", "the file", "to fit into memory", hint) from None
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        hint = "It may be damaged or incomplete. Write it again."
        raise InvalidParameter("source", "the file", "to be readable to its end", hint) from None


def _bare(sql: str, *, signs: bool) -> str:
    return f"trim({sql if signs else strip_signs(sql)}, ' ')"


def _values(found: Sequence[Any], most: int) -> ColumnValues:
    low, high, outside, unread, values = found
    few = values is not None and len(values) <= most
    return ColumnValues(
        low=low,
        high=high,
        outside=int(outside or 0),
        unread=tuple(value for value in unread or () if value is not None),
        values=tuple(value for value in values if value is not None) if few else None,
    )
