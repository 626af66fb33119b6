"""Attackers hold tables as columns by name, whatever the format they came in; columns have coarser forms.

A postcode keeps its first characters, a date its month, year or decade, a number its decade. The forms follow from the
values of a column, so that a column of CSV text is taken for the dates or numbers it spells. Tables are made
k-anonymous by them.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.engines.duckdb.csv_header import read_header
from discreet.errors import InvalidParameter
from discreet.lazy import nw
from discreet.server_address import check_is_file

Column = NDArray[Any]
Columns = dict[str, Column]


def columns_of(table: Any) -> Columns:
    """Returns the columns of a table, all of one length.

    Raises:
        InvalidParameter: if it is no table, or its columns differ in length.

    >>> {name: list(column) for name, column in columns_of([{"zip": "02139", "sex": "F"}]).items()}
    {'zip': ['02139'], 'sex': ['F']}
    """
    if isinstance(table, str | Path):
        found = _file(Path(table))
    elif isinstance(table, Mapping):
        found = {str(name): _column(values) for name, values in table.items()}
    elif isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        found = _rows(table)
    else:
        found = _frame(table)
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) != 1:
        raise InvalidParameter("table", lengths, "to have columns of one length, at least one", "Repair the table.")
    return found


def select_columns(columns: Columns, names: Iterable[str], *, parameter: str) -> list[Column]:
    """Returns some columns, in order.

    Raises:
        InvalidParameter: if there is no such column, or none is named.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    missing = [name for name in wanted if name not in columns]
    if missing or not wanted:
        hint = f"The table has: {', '.join(columns)}."
        raise InvalidParameter(parameter, missing or wanted, "to name columns of the table", hint)
    return [columns[name] for name in wanted]


def codes(columns: Sequence[Column]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Returns for each row the number of its class (rows equal in all columns), and the size of each class.

    None equals None; NaN equals NaN. Classes are numbered in an order of their own.
    """
    number = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values: dict[Any, int] = {}
        part = np.fromiter((values.setdefault(_same(value), len(values)) for value in column), np.intp, len(column))
        _, number = np.unique(number * len(values) + part, return_inverse=True)
    return number, np.bincount(number)


def _same(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124 - NaN is not itself


def _column(values: Any) -> Column:
    if isinstance(values, np.ndarray):
        return values
    listed = list(values)
    column = np.empty(len(listed), dtype=object)
    column[:] = listed
    return column


def _rows(table: Sequence[Mapping[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in table for name in row)
    return {name: _column([row.get(name) for row in table]) for name in names}


def _file(path: Path) -> Columns:
    check_is_file(path, "table")
    if not path.is_file():
        raise InvalidParameter("table", str(path), "to be an existing file", "Name a CSV or a Parquet file.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(path)
    header = read_header(path)
    if header.troubles:
        raise InvalidParameter("table", path.name, "to begin with a header", f"{header.troubles[0]} Rename them.")
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=header.delimiter)
        names = next(reader, [])
        rows = [[cell or None for cell in row] for row in reader if len(row) == len(names)]
    return {name: _column([row[place] for row in rows]) for place, name in enumerate(names)}


def _parquet(path: Path) -> Columns:
    with duckdb.connect(config={"temp_directory": ""}) as connection:
        relation = connection.read_parquet(str(path))
        rows = relation.fetchall()
        return {name: _column([row[place] for row in rows]) for place, name in enumerate(relation.columns)}


def _frame(table: Any) -> Columns:
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise InvalidParameter(
            "table", type(table).__name__, "to be a path, a frame, a mapping of columns or a list of rows"
        ) from error
    return {name: _column(frame[name].to_list()) for name in frame.columns}


Codes = NDArray[np.intp]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_CODE_LENGTH = 4  # digits of one length from here on are a code, such as a postcode, and no amount
_WIDTHS = (10, 100, 1000, 10_000, 100_000)
_PREFIXES = (3, 2, 1)


@dataclass(frozen=True, slots=True)
class Coarsening:
    """A way to coarsen the values of a column.

    Attributes:
        name: as in "first 3 characters".
        of: the coarser value of a value.
    """

    name: str
    of: Callable[[Any], Any]

    def apply_to(self, column: Column) -> Column:
        """Returns the column in this form; a missing value stays missing."""
        known: dict[Any, Any] = {}
        coarse = np.empty(len(column), dtype=object)
        for place, value in enumerate(list_values(column)):
            if value not in known:
                known[value] = None if value is None else self.of(value)
            coarse[place] = known[value]
        return coarse


AS_IT_IS = Coarsening("as it is", lambda value: value)
DROPPED = Coarsening("dropped", lambda _: None)


def forms(column: Column) -> tuple[Coarsening, ...]:
    """Returns the coarser forms of a column, from the finest to its absence.

    >>> [form.name for form in forms(np.array(["1980-05-17", "1979-01-02"]))]
    ['month', 'year', 'decade', 'dropped']
    >>> [form.name for form in forms(np.array(["02139", "94103"]))]
    ['first 3 characters', 'first 2 characters', 'first 1 characters', 'dropped']
    >>> [form.name for form in forms(np.array([17, 90]))]
    ['steps of 10', 'dropped']
    """
    values = [value for value in dict.fromkeys(list_values(column)) if value is not None]
    return (*_between(values), DROPPED)


@dataclass(frozen=True, slots=True)
class AnonymisedTable:
    """A table whose classes have at least k people.

    Attributes:
        columns: all columns; quasi-identifiers are coarser, and only kept rows are there.
        kept: the rows of the original table that are kept, in order.
        form: by quasi-identifier, the form it has.
        suppressed: the share of rows left out.
    """

    columns: Columns
    kept: Codes
    form: dict[str, Coarsening]
    suppressed: float


def k_anonymised(
    table: Any, quasi: Sequence[str], *, k: int = 5, suppress: float = 0.05, keep: str | None = None
) -> AnonymisedTable:
    """Returns a table made k-anonymous.

    Columns are coarsened one step at a time, and small classes left out at the end.

    Every step takes the column whose next form leaves the fewest people in classes smaller than k, until at most a
    share `suppress` of the people is in such classes; they are left out. Steps that later ones made needless are taken
    back.

    Args:
        table: a path, a frame, a mapping of columns or a list of rows.
        quasi: the columns that others may know.
        k: the least size of a class, at least 2.
        suppress: the share of rows that may be left out.
        keep: a quasi-identifier that is coarsened only after all others are gone.

    >>> people = {"zip": ["02139", "02138", "02137", "94103"], "flu": [1, 0, 1, 0]}
    >>> list(k_anonymised(people, ["zip"], k=3, suppress=0.25).columns["zip"])
    ['021', '021', '021']
    """
    least = check.integer(k=k, at_least=2)
    allowed = float(check.share(suppress=suppress))
    columns = columns_of(table)
    names = [quasi] if isinstance(quasi, str) else list(quasi)
    ladders = [(AS_IT_IS, *forms(column)) for column in select_columns(columns, names, parameter="quasi")]
    coarse = [
        [number_values(form.apply_to(columns[name])) for form in ladder]
        for name, ladder in zip(names, ladders, strict=True)
    ]
    rungs = _climb_ladders(coarse, least, allowed, names.index(keep) if keep in names else None)
    place = combine_codes([ladder[rung] for ladder, rung in zip(coarse, rungs, strict=True)])
    kept = np.flatnonzero(np.bincount(place)[place] >= least)
    form = {name: ladder[rung] for name, ladder, rung in zip(names, ladders, rungs, strict=True)}
    made = {name: form.get(name, AS_IT_IS).apply_to(column)[kept] for name, column in columns.items()}
    return AnonymisedTable(made, kept, form, 1 - len(kept) / len(place))


def number_values(column: Column) -> Codes:
    """Returns the values of a column as numbers from 0, equal ones with equal numbers; missing values are one value."""
    known: dict[Any, int] = {}
    return np.fromiter((known.setdefault(value, len(known)) for value in list_values(column)), np.intp, len(column))


def list_values(column: Column) -> list[Any]:
    """Returns the values of a column as Python's own; NaN and NaT are None, so that missing values are equal."""
    if column.dtype.kind == "M":
        return list(column.astype("datetime64[us]").tolist())  # finer units would become bare numbers
    return [None if isinstance(value, float) and math.isnan(value) else value for value in column.tolist()]


def stack_columns(columns: Sequence[Column]) -> Column:
    """Returns columns one below the other; missing values are None."""
    values = [value for column in columns for value in list_values(column)]
    whole = np.empty(len(values), dtype=object)
    whole[:] = values
    return whole


def combine_codes(parts: Sequence[Codes]) -> Codes:
    """Returns one number for each row from the numbers in several columns, from 0 without gaps."""
    number = np.zeros(len(parts[0]), dtype=np.intp)
    for part in parts:
        _, number = np.unique(number * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    return number


def _climb_ladders(coarse: list[list[Codes]], k: int, allowed: float, keep: int | None) -> list[int]:
    """Returns the form of each column: greedy steps up the ladders until few enough people are in small classes."""
    rungs = [0] * len(coarse)

    def small_share(place: int = 0, step: int = 0) -> float:
        at = [rung + step * (other == place) for other, rung in enumerate(rungs)]
        return _small([ladder[rung] for ladder, rung in zip(coarse, at, strict=True)], k)

    while small_share() > allowed:
        free = [place for place, ladder in enumerate(coarse) if rungs[place] + 1 < len(ladder)]
        tried = {place: (small_share(place, 1), rungs[place]) for place in free if place != keep or free == [keep]}
        if not tried:
            break
        rungs[min(tried, key=lambda place: tried[place])] += 1
    for place in sorted(range(len(rungs)), key=lambda place: place != keep):
        while rungs[place] and small_share(place, -1) <= allowed:
            rungs[place] -= 1
    return rungs


def _small(parts: list[Codes], k: int) -> float:
    """Returns the share of people in classes smaller than k."""
    sizes = np.bincount(combine_codes(parts))
    return float(sizes[sizes < k].sum() / sizes.sum())


def _between(values: list[Any]) -> tuple[Coarsening, ...]:
    if values and all(_is_day(value) for value in values):
        return _DAYS
    if values and all(_is_amount(value) for value in values) and not _is_code(values):
        amounts = [float(value) for value in values]
        return tuple(_steps(width) for width in _WIDTHS if width < max(amounts) - min(amounts))
    if values and all(isinstance(value, str) for value in values):
        longest = max(map(len, values))
        return tuple(_prefix(length) for length in _PREFIXES if length < longest)
    return ()


def _is_day(value: Any) -> bool:
    spelled = isinstance(value, str) and _DAY.fullmatch(value) is not None
    return spelled or isinstance(value, dt.date | np.datetime64)


def _is_amount(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def _is_code(values: list[Any]) -> bool:
    texts = {len(value) for value in values if isinstance(value, str)}
    return len(texts) == 1 and max(texts) >= _CODE_LENGTH


def _steps(width: int) -> Coarsening:
    def of(value: Any) -> str:
        low = math.floor(float(value) / width) * width
        return f"from {low} below {low + width}"

    return Coarsening(f"steps of {width}", of)


def _prefix(length: int) -> Coarsening:
    return Coarsening(f"first {length} characters", lambda value: value[:length])


_DAYS = (
    Coarsening("month", lambda value: str(value)[:7]),
    Coarsening("year", lambda value: str(value)[:4]),
    Coarsening("decade", lambda value: f"{str(value)[:3]}0s"),
)
