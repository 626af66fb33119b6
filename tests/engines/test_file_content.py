"""What a steward is told about a file: forms of cells, what types do not read, whose rows they are, mended copies."""

from __future__ import annotations

import csv
import datetime as dt
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.engines.abstract_engine import read_as, read_value
from discreet.engines.duckdb.cell_forms import CellFormat, Mend
from discreet.engines.duckdb.file_content import FileContent
from discreet.engines.duckdb.source_tables import open_database
from discreet.engines.row_choice import normalize_id
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import WHITE_SPACE
from tests.cases import try_all
from tests.effort import some
from tests.engines.test_ids import NOBODY, spellings

CELLS = {
    CellFormat.MISSING: ["", "   "],
    CellFormat.WHOLE: ["0", "-7", "+12", "9223372036854775807"],
    CellFormat.PADDED: ["007", "-01", "00"],
    CellFormat.NUMBER: ["1.5", "-.5", "1e3", "99999999999999999999", "007.5"],
    CellFormat.TRUTH: ["true", "F", "False"],
    CellFormat.MARK: ["?", "NA", "n/a", "NULL", "-", "."],
    CellFormat.DAY: ["2024-02-29", "0001-01-01"],
    CellFormat.MOMENT: ["2024-02-29 10:00", "2024-02-29T10:00:01.5"],
    CellFormat.COMMA: ["1,234", "-12,345"],
    CellFormat.COMMA_GROUPS: ["1,234.5", "1,234,567"],
    CellFormat.DECIMAL_COMMA: ["1,5", "1234,56", "12 345,6", "0,1234"],
    CellFormat.POINT_GROUPS: ["1.234,5", "1.234.567"],
    CellFormat.OTHER_GROUPS: ["1 234", "1'234'567.8", "1\u202f234"],
    CellFormat.DAY_FIRST: ["31/12/2024", "13.1.24", "31-12-2024 10:00"],
    CellFormat.MONTH_FIRST: ["12/31/2024", "1-13-24"],
    CellFormat.DAY_OR_MONTH_FIRST: ["1/2/2024"],
    CellFormat.YEAR_FIRST: ["2024/12/31", "2024.1.2"],
    CellFormat.NAMED_MONTH: ["3 Jan 2024", "03-MAR-24", "March 3, 2024"],
    CellFormat.ZONED: ["2024-01-01T10:00:00Z", "2024-01-01 10:00:00+02:00"],
    CellFormat.CURRENCY: ["$5", "1.234,50 \u20ac", "-\u00a3 3.20", "USD 7", "12 EUR"],
    CellFormat.PERCENT: ["12%", "3,5 %"],
    CellFormat.TEXT: ["abc", "V57", "[10-20)", "2024-13-01", "32/13/2024", "$", "1,2,3", "\u00e9t\u00e9"],
}
"""Cells of every form."""


def written(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.mark.ci
def test_every_form_is_recognised(tmp_path: Path) -> None:
    columns = [[form.name, *cells] for form, cells in CELLS.items()]
    path = written(tmp_path / "t.csv", [list(row) for row in zip_longest(*columns, fillvalue="")])
    with FileContent(path) as content:
        rows, found = content.forms()

    def check(form: CellFormat) -> None:
        cells = CELLS[form]
        assert found[form.name].forms == Counter({form: len(cells)}) + Counter({CellFormat.MISSING: rows - len(cells)})

    try_all(some(CellFormat, 2), check)


def test_a_cell_is_not_read_exactly_where_the_engine_makes_it_missing(tmp_path: Path) -> None:
    cells = [cell for form in (*CELLS,) for cell in CELLS[form] if cell.strip()]
    path = written(tmp_path / "t.csv", [["x"], *([cell] for cell in cells)])
    marks = CELLS[CellFormat.MARK]

    def check(kind: Type) -> None:
        reading = read_as("x", Type.TEXT, kind)
        unread = [cell for cell in cells if read_value(reading, cell) is None and cell not in marks]
        with FileContent(path) as content:
            found = content.values({"x": kind}, bounds={}, listed=["x"], most=1000)["x"]
        read = {read_value(reading, cell) for cell in cells} - {None}
        assert set(found.values or ()) == read
        assert bool(found.unread) == bool(unread)
        assert set(found.unread) <= set(unread)

    try_all((kind for kind in Type if kind is not Type.TEXT), check)


MENDED = {
    Mend.COMMA_GROUPS: {"1,234.5": "1234.5", "$1,234": "1234", "-1'234": "-1234", "n/a": "n/a", "12%": "12"},
    Mend.DECIMAL_COMMA: {"1,5": "1.5", "12 345,60 \u20ac": "12345.60", "7": "7", "-0,5": "-0.5"},
    Mend.POINT_GROUPS: {"1.234,5": "1234.5", "1.234.567": "1234567", "12": "12"},
    Mend.DAY_FIRST: {"31/12/2024": "2024-12-31", "1.2.99": "1999-02-01", "31-12-2024 10:05": "2024-12-31 10:05:00"},
    Mend.MONTH_FIRST: {
        "12/31/2024": "2024-12-31",
        "1/2/2024 1:05 PM": "2024-01-02 13:05:00",
        "31/12/2024": "31/12/2024",
    },
    Mend.YEAR_FIRST: {"2024/2/1": "2024-02-01", "soon": "soon"},
    Mend.NAMED_MONTH: {"3 Jan 2024": "2024-01-03", "03-Mar-24": "2024-03-03", "March 3, 2024": "2024-03-03"},
    Mend.ZONED: {"2024-01-01T10:00:00+02:00": "2024-01-01 08:00:00", "2024-01-01T10:00:00Z": "2024-01-01 10:00:00"},
}


def test_cells_are_mended(tmp_path: Path) -> None:
    def check(mend: Mend) -> None:
        path = written(tmp_path / f"{mend.name}.csv", [["x"], *([cell] for cell in MENDED[mend])])
        with FileContent(path) as content:
            content.write(tmp_path / "copy.csv", {"x": mend})
        with (tmp_path / "copy.csv").open(newline="") as file:
            assert [row["x"] for row in csv.DictReader(file)] == list(MENDED[mend].values())

    try_all(some(Mend, 2), check)


def test_people_and_their_rows_are_counted(tmp_path: Path) -> None:
    rows = [[f"p{i}"] for i in range(10) for _ in range(1 if i else 7)] + [[""], ["  "]]
    path = written(tmp_path / "t.csv", [["who", "x"], *([who, "1"] for (who,) in rows)])
    with FileContent(path) as content:
        people = content.rows_per_unit("who", Type.TEXT)
    assert (people.units, people.without) == (10, 2)
    assert people.quantiles == {0.5: 1, 0.9: 1, 0.95: 7, 0.99: 7, 1.0: 7}


def test_ids_of_a_file_count_in_their_normal_form(tmp_path: Path) -> None:
    """Every spelling of a person is one person, and every kind of white space is nobody, as engines count."""
    texts = [text for text in spellings() if text is not None and "\x00" not in text]
    nobody = [*(text for text in NOBODY if text is not None), *WHITE_SPACE]
    people = [text for text in texts if normalize_id(text) is not None]
    pa.parquet.write_table(pa.table({"who": [*people, *nobody, None]}), tmp_path / "t.parquet")
    with FileContent(tmp_path / "t.parquet") as content:
        found = content.rows_per_unit("who", Type.TEXT)
    assert (found.units, found.without) == (len({normalize_id(text) for text in people}), len(nobody) + 1)


def test_values_are_looked_at_under_their_types(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", [["n", "day"], ["3", "2024-01-05"], ["200", "2023-01-01"], ["x", "?"]])
    with FileContent(path) as content:
        kinds = {"n": Type.INT, "day": Type.DATE}
        found = content.values(kinds, bounds={"n": (0, 120)}, listed=["n"], most=1)
    assert (found["n"].low, found["n"].high, found["n"].outside, found["n"].unread) == (3, 200, 1, ("x",))
    assert found["n"].values is None  # more than one
    assert (found["day"].low, found["day"].unread) == (dt.date(2023, 1, 1), ())


def test_lines_that_a_strict_parser_refuses_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,2\n1\n1,2,3\n4,5\n"x"y,2\n')
    with FileContent(path) as content:
        found = content.faulty_lines()
    assert found == {"missing columns": (1, 3), "too many columns": (1, 4), "unquoted value": (1, 6)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ['a"b', "{0}", "c1", "select", "x'y"])
def test_names_of_columns_are_names(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "t.csv", [[name, "z"], ["1,5", "k"]])
    with FileContent(path) as content:
        assert content.forms()[1][name].forms == {CellFormat.DECIMAL_COMMA: 1}
        assert content.rows_per_unit(name, Type.TEXT).units == 1
        content.write(tmp_path / "copy.csv", {name: Mend.DECIMAL_COMMA})
    with (tmp_path / "copy.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [[name, "z"], ["1.5", "k"]]


def test_databases_show_no_progress() -> None:
    """DuckDB prints percentages in notebooks, and those would tell sizes."""
    with open_database() as connection:
        for one in (connection, connection.cursor()):
            assert one.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
