"""A file looked through for its steward: what is read from it, what is not, whose rows they are.

Everything in it depends on private data, and no budget has paid for it. It says so in its first line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from discreet.dataclass import dataclass
from discreet.engines.duckdb.cell_forms import CellFormat
from discreet.engines.duckdb.csv_header import read_header
from discreet.engines.duckdb.file_content import ColumnValues, FileContent, RowsPerUnit
from discreet.engines.duckdb.sources import existing, is_database
from discreet.engines.sources.file_set import FileSet, format_of
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type
from discreet.presentation.inspection.charset import TextEncoding, encoding_of, transcode
from discreet.presentation.inspection.column_kinds import likely_unit
from discreet.presentation.inspection.column_proposal import Proposal, proposal
from discreet.progress import stage
from discreet.report.display import Display, DisplayMixin

WARNING = (
    "FOR THE STEWARD'S EYES ONLY. This was read from the private data, and no budget has paid for it: "
    "do not publish it, and do not show it to analysts."
)
MOST_KEYS = 30
EACH_ROW = ""  # as a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCheck:
    """A column: what to declare about it, and what is in it."""

    proposal: Proposal
    values: ColumnValues


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck(DisplayMixin):
    """A report to a steward about a file; it prints as a table.

    Attributes:
        path: of the file.
        encoding: of a text file; None of Parquet.
        rows: how many there are.
        columns: by their names, in the order of the file; none if it cannot be read as it is.
        unit: the column of people's ids, EACH_ROW, or None if it was not given and no name suggests one.
        guessed: whether the unit was guessed from its name.
        people: whose rows they are, if the unit is a column.
        troubles: what is wrong with the file as a whole.
        new_names: what a mended copy calls its columns, if the header does not name them as tables do.
    """

    path: Path
    encoding: TextEncoding | None
    rows: int = 0
    columns: Mapping[str, ColumnCheck]
    unit: str | None = None
    guessed: bool = False
    people: RowsPerUnit | None = None
    troubles: tuple[str, ...] = ()
    new_names: tuple[str, ...] = ()
    table: str | None = None

    @property
    def named_after(self) -> Path:
        """Returns what the table may be called after: its name in a database, or its file."""
        return self.path if self.table is None else Path(self.table.rpartition(".")[2])

    @property
    def types(self) -> dict[str, str]:
        """Returns the types that read its columns, as `Curator.protect` takes them; chosen after a look at the data."""
        return {name: column.proposal.type.value for name, column in self.columns.items()}

    @property
    def mends(self) -> bool:
        """Returns whether something in it can be written so that it is read."""
        unreadable = self.encoding is not None and not self.encoding.is_readable
        return (
            unreadable
            or bool(self.new_names)
            or any(column.proposal.mend is not None for column in self.columns.values())
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns what a steward should know, the file as a whole first."""
        by_column = (f"{name}: {remark}" for name, column in self.columns.items() for remark in _remarks(column))
        return (*self.troubles, *self._about_people(), *by_column)

    def _about_people(self) -> tuple[str, ...]:
        if self.unit is None and self.columns:
            return ("It is not known whose rows these are: no column name looks like ids of people.",)
        if self.people is None:
            return ()
        shares = {share: n for share, n in self.people.quantiles.items() if share < 1}
        most = ", ".join(f"{share:.0%} have at most {n}" for share, n in shares.items())
        told = [f"Rows per {self.unit}: {most}; the maximum is {self.people.quantiles[1.0]}."]
        if self.people.without:
            told.append(f"{self.people.without} rows have no {self.unit}: answers leave them out.")
        return tuple(told)

    def _display(self) -> Display:
        whose = {None: "not known", EACH_ROW: "each row is one person"}.get(self.unit, "")
        people = (
            whose or f"{self.people.units if self.people else 0} by {self.unit}{' (a guess)' if self.guessed else ''}"
        )
        stored = {} if self.table is None else {"Table": self.table}
        coded = {} if self.encoding is None else {"Encoding": self.encoding.name}
        return Display(
            title=WARNING,
            columns=("column", "type", "missing", "not read", "bounds of its kind", "outside", "in the file"),
            rows=[_line(name, column) for name, column in self.columns.items()],
            numbers=("missing", "not read", "outside"),
            facts={"File": self.path.name, **stored, **coded, "Rows": str(self.rows), "People": people},
            notes=self.remarks,
        )


def _line(name: str, column: ColumnCheck) -> tuple[object, ...]:
    made, values = column.proposal, column.values
    kind = "" if made.kind is None else f"{made.kind.low} to {made.kind.high} ({made.kind.name})"
    outside = "" if made.kind is None else values.outside
    return name, made.type.value, made.missing, made.unread, kind, outside, _describe_values(values)


def _describe_values(values: ColumnValues) -> str:
    if values.low is not None:
        return f"{values.low} to {values.high}"
    if values.values is None:
        return "many values"
    few, count = ", ".join(map(str, values.values[:4])), len(values.values)
    return f"{count} value{'s'[: count != 1]}: {few[:50]}{'...' if count > 4 or len(few) > 50 else ''}"


def _remarks(column: ColumnCheck) -> tuple[str, ...]:
    unread = ", ".join(map(repr, column.values.unread))
    not_read = (f"{column.proposal.unread} values cannot be read as {column.proposal.type.value}, such as {unread}",)
    return (*(not_read if column.proposal.unread else ()), *column.proposal.remarks)


# ---------------------------------------------------------------------------------------------------------------- check


def check_file(
    path: str | os.PathLike[str], *, unit: str | None = None, most_columns: int | None = None, table: str | None = None
) -> FileCheck:
    r"""Looks through a file for what a steward has to declare, and for what would not be read.

    Args:
        path: a file, a folder of files that are one table, or a pattern of their names.
        unit: the column of people's ids; "" if each row is one person; None to guess it from the names.
        most_columns: how many columns it may have; None for any number.
        table: the table of a DuckDB database, perhaps after its schema and a point.

    Raises:
        InvalidParameter: if there is no such file, or column, or it cannot be read to its end.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "visits.csv")
    ...     _ = file.write_text("patient_id,age,charge\n1,34,12.5\n2,150,n/a\n2,150,n/a\n", encoding="utf-8")
    ...     found = check_file(file)
    >>> found.unit, {name: column.proposal.type.value for name, column in found.columns.items()}
    ('patient_id', {'patient_id': 'int', 'age': 'int', 'charge': 'float'})
    >>> [remark for remark in found.remarks if "charge" in remark]
    ['charge: 2 marks of missing values, read as missing']
    """
    many = FileSet.of_place(path)
    file = existing(os.fspath(path)) if many is None else Path(path).absolute()
    stage("Reading bytes")
    encoding = encoding_of(file) if many is None and not is_database(file) and _is_text(file) else None
    if encoding is not None:
        stopping, names = _unreadable(file, encoding)
        if stopping:
            return FileCheck(path=file, encoding=encoding, columns={}, troubles=stopping, new_names=names)
    with FileContent(file, most_columns=most_columns, table=table) as content:
        return replace(_check_content(file, encoding, content, unit), table=table)


def _unreadable(file: Path, encoding: TextEncoding) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns why a text file cannot be read as a table, or not as it is, and what its columns may be called then."""
    if not encoding.is_readable:
        lines = encoding.undecodable_lines
        where = f"; {lines} lines are not UTF-8, the first is line {encoding.undecodable}" if lines else ""
        return (f"The file is {encoding.name}{where}. Tables are read as UTF-8: other lines would be left out.",), ()
    header = read_header(file)
    if not header.troubles:
        return (), ()
    renaming = [f"{old!r} to {new}" for old, new in zip(header.names, header.mended_names, strict=True) if old != new]
    more = "" if len(renaming) <= MOST_KEYS else f" and {len(renaming) - MOST_KEYS} more"
    renamed = f"A mended copy would rename {', '.join(renaming[:MOST_KEYS])}{more}."
    told = renamed if renaming else "Write column names into the first line."
    return (*header.troubles, told), header.mended_names


def _check_content(file: Path, encoding: TextEncoding | None, content: FileContent, unit: str | None) -> FileCheck:
    names = tuple(content.stored_types)
    whose = likely_unit(names) if unit is None else unit
    if whose and whose not in names:
        raise InvalidParameter("--unit", whose, "to be a column of the file", f"Its columns are {', '.join(names)}.")
    rows, proposals = _proposals(content, whose)
    return FileCheck(
        path=file,
        encoding=encoding,
        rows=rows,
        columns=_columns(content, proposals),
        unit=whose,
        guessed=unit is None and whose is not None,
        people=content.rows_per_unit(whose, proposals[whose].type) if whose else None,
        troubles=_troubles(content, rows, encoding),
    )


def _proposals(content: FileContent, unit: str | None) -> tuple[int, dict[str, Proposal]]:
    stage("Looking at cells")
    rows, found = content.forms()
    signed = [name for name, column in found.items() if column.count(CellFormat.CURRENCY, CellFormat.PERCENT)]
    bare = content.forms(signs=False)[1] if signed else {}
    made = {name: proposal(name, column, bare.get(name)) for name, column in found.items()}
    if unit and made[unit].type is Type.FLOAT:  # ids are compared, and floats are not
        made[unit] = Proposal(type=Type.TEXT, missing=made[unit].missing)
    return rows, made


def _columns(content: FileContent, proposals: Mapping[str, Proposal]) -> dict[str, ColumnCheck]:
    listed = [name for name, made in proposals.items() if made.type in (Type.TEXT, Type.INT, Type.BOOL)]
    kinds = {name: made.type for name, made in proposals.items()}
    bounds = {name: _literals(made) for name, made in proposals.items() if made.kind is not None}
    stage("Looking at values")
    values = content.values(kinds, bounds=bounds, listed=listed, most=MOST_KEYS)
    return {name: ColumnCheck(proposal=made, values=values[name]) for name, made in proposals.items()}


def _literals(made: Proposal) -> tuple[str, str]:
    """Returns the bounds of a kind as SQL: numbers, or days between quotes, made by us."""
    if made.kind is None:
        return "NULL", "NULL"
    return (
        (f"'{made.kind.low}'", f"'{made.kind.high}'") if made.kind.is_day else (str(made.kind.low), str(made.kind.high))
    )


def _troubles(content: FileContent, rows: int, encoding: TextEncoding | None) -> tuple[str, ...]:
    told = [
        f"{count} lines have {fault}, the first is line {first}."
        for fault, (count, first) in content.faulty_lines().items()
    ]
    values = [name for name in content.stored_types if name.replace(".", "", 1).replace("-", "", 1).isdigit()]
    if values:
        told.append(f"The first line is read as column names, but {', '.join(values[:3])} looks like a value.")
    if encoding is not None and rows < (encoding.lines - 1) / 2:
        told.append(f"There are {encoding.lines} lines and {rows} rows: a quote may be opened and never closed.")
    return tuple(told)


# ----------------------------------------------------------------------------------------------------------------- mend


def mend_file(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> Path:
    """Writes a copy of a file that is read: in UTF-8, numbers with points, days as YYYY-MM-DD, each name once.

    Only its owner may read it.

    Returns:
        The copy.

    Raises:
        InvalidParameter: if there is nothing to mend, or the copy exists already.
    """
    found, copy = check_file(path), Path(target)
    if not found.mends:
        hint = "Leave out --mend: nothing in the file can be mended."
        raise InvalidParameter("--mend", str(target), "to have something to mend", hint)
    if FileSet.of_place(path) is not None or not _is_mended(found.path):
        raise InvalidParameter("--mend", str(target), "to be for one CSV or Parquet file", "Mend its files one by one.")
    if copy.suffix.lower() != ".csv":
        raise InvalidParameter("--mend", str(target), "to end in .csv", "Name another file.")
    with _private(copy):
        source = found.path
        if found.encoding is not None and found.encoding.codec != "utf-8":  # DuckDB sees no quote after a mark
            transcode(found.path, found.encoding, copy)
            source = copy
        _mend_cells(source, copy)
    return copy


def _is_mended(path: Path) -> bool:
    known = format_of(path.name)
    return known is not None and known[0] in ("csv", "parquet")


def _is_text(path: Path) -> bool:
    known = format_of(path.name)
    return known is None or known[0] == "csv"


def _new_names(path: Path) -> tuple[str, ...]:
    header = read_header(path) if _is_text(path) else None
    return header.mended_names if header is not None and header.troubles else ()


def _mend_cells(source: Path, target: Path) -> None:
    """Writes cells plainly; the target may be the source, which has just been transcoded."""
    with FileContent(source, names=_new_names(source)) as content:
        made = _proposals(content, None)[1]
        mends = {name: proposed.mend for name, proposed in made.items() if proposed.mend is not None}
        part = target.with_name(f"{target.name}.part")
        with _private(part):
            content.write(part, mends)
            part.replace(target)


@contextmanager
def _private(path: Path) -> Iterator[None]:
    """Makes a new file that only its owner may read, and removes it if what follows fails.

    Raises:
        InvalidParameter: if it exists already.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise InvalidParameter("--mend", str(path), "not to exist yet", "Name another file.") from None
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise
