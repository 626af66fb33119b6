"""Headers of text files are read as Python's csv and DuckDB read them; others are refused, and names are mended."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Curator
from discreet.curator.catalog.declarations import untyped_columns
from discreet.engines.duckdb.csv_header import LONGEST, Header, read_header, split_header
from discreet.engines.duckdb.sources import Csv, source_of
from discreet.errors import InvalidParameter
from discreet.presentation.inspection.file_check import check_file, mend_file
from discreet.privacy import Budget
from tests.cases import try_all

READ = {
    "plain": b"a,b,c\n1,2,3\n",
    "a line break in quotes": b'a,"b\nx",c\n1,2,3\n',
    "several of them": b'"a\n\nz","b\nx",c\n1,2,3\n',
    "a line break and carriage return": b'a,"b\r\nx",c\r\n1,2,3\r\n',
    "a record within a name": b'a,"b,\n1,2,3,x",c\n1,2,3\n',
    "doubled quotes": b'a,"b ""q"" z",c\n1,2,3\n',
    "doubled quotes and a line break": b'a,"b ""\n"" z",c\n1,2,3\n',
    "a mark": b"\xef\xbb\xbfa,b,c\n1,2,3\n",
    "a mark and quotes": b'\xef\xbb\xbf"a\n1",b,c\n1,2,3\n',
    "a quote inside of a name": b'a,b 6",c\n1,2,3\n',
    "carriage returns": b"a,b,c\r1,2,3\r",
    "a carriage return in quotes": b'a,"b\rx",c\r1,2,3\r',
    "semicolons": b'a;"b, c";d\n1;2;3\n',
    "tabs": b'a\t"b;\nx"\tc\n1\t2\t3\n',
    "bars": b"a|b|c\n1|2|3\n",
    "no rows": b'a,"b\nx",c',
    "no rows and a line end": b"a,b,c\r\n",
    "letters": 'a,"b\u2028x",\u00e9\n1,2,3\n'.encode(),
}
REFUSED = {
    "a quote that is never closed": b'a,"b,c\n1,2,3\n',
    "a sign after a quote": b'a,"b"x,c\n1,2,3\n',
    "too long": b"a," + b"b" * LONGEST + b"\n1,2\n",
    "too long in quotes": b'a,"' + b"b\n" * LONGEST + b'"\n1,2\n',
    "a long name": b"a," + b"b" * 200_000 + b"\n1,2\n",
}
MENDED = {
    "twice": ("ward,ward,x", ("ward", "ward_2", "x")),
    "three times": ("ward,ward,ward", ("ward", "ward_2", "ward_3")),
    "the next number is taken": ("ward,ward,ward_2", ("ward", "ward_3", "ward_2")),
    "letter case": ("ward,WARD,x", ("ward", "WARD_2", "x")),
    "accents": ("caf\u00e9,cafe\u0301,x", ("caf\u00e9", "caf\u00e9_2", "x")),
    "blanks": ("ward, ward,ward ", ("ward", "ward_2", "ward_3")),
    "sharp s": ("stra\u00dfe,STRASSE,x", ("stra\u00dfe", "STRASSE_2", "x")),
    "empty": ("a,,c", ("a", "column_2", "c")),
    "several empty": (",,column_1", ("column_1_2", "column_2", "column_1")),
    "a line break": ('a,"heart\nrate",c', ("a", "heart rate", "c")),
    "a bell": ("a,b\x07,c", ("a", "b", "c")),
}


def _plain(name: str) -> str:
    return name.replace("\r\n", "\n").replace("\r", "\n")


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(content)
    return path


def _in_turn(folder: Path, files: dict[str, bytes], check: Callable[[Path], None]) -> None:
    try_all(files, lambda name: check(_written(folder, files[name])))


def test_headers_are_as_in_python(tmp_path: Path) -> None:
    def check(path: Path) -> None:
        found = read_header(path)
        text = path.read_bytes().decode("utf-8-sig")
        assert list(found.names) == next(csv.reader(io.StringIO(text, newline=""), delimiter=found.delimiter))
        assert len(found.names) == 3

    _in_turn(tmp_path, READ, check)


@pytest.mark.ci
def test_headers_are_as_in_duckdb(tmp_path: Path) -> None:
    def check(path: Path) -> None:
        found = read_header(path)
        options = "header = true, all_varchar = true, strict_mode = false, quote = '\"', escape = '\"'"
        theirs = duckdb.connect().sql(f"FROM read_csv('{path}', delim = '{found.delimiter}', {options})")
        assert [_plain(name) for name in theirs.columns] == [_plain(name) for name in found.names]

    odd = ("a carriage return in quotes", "a mark and quotes")  # it sees other line ends, and no quote after a mark
    _in_turn(tmp_path, {name: content for name, content in READ.items() if name not in odd}, check)


@pytest.mark.slow
def test_rows_begin_after_the_header(tmp_path: Path) -> None:
    def check(path: Path) -> None:
        found = check_file(path)
        if found.new_names:
            found = check_file(mend_file(path, tmp_path / "copy.csv"))
            (tmp_path / "copy.csv").unlink()
        shown = [column.values.values for column in found.columns.values()]
        assert shown == ([(1,), (2,), (3,)] if path.read_bytes().strip().endswith(b"3") else [None, None, None])

    _in_turn(tmp_path, READ, check)


@pytest.mark.ci
def test_what_is_no_header_is_refused(tmp_path: Path) -> None:
    def check(path: Path) -> None:
        with pytest.raises(InvalidParameter, match="to hold the names of columns"):
            source_of(path)
        with pytest.raises(InvalidParameter, match="to hold the names of columns"):
            check_file(path)

    _in_turn(tmp_path, REFUSED, check)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MENDED)
def test_names_are_mended(tmp_path: Path, name: str) -> None:
    header, names = MENDED[name]
    path = _written(tmp_path, f"{header}\n1,2,3\n4,5,6\n".encode())
    with pytest.raises(InvalidParameter, match=r"to begin with a header.*--mend t-mended\.csv"):
        source_of(path)
    found = check_file(path)
    assert (found.new_names, found.mends) == (names, True)
    copy = mend_file(path, tmp_path / "t-mended.csv")
    with copy.open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [list(names), ["1", "2", "3"], ["4", "5", "6"]]
    assert tuple(check_file(copy).columns) == names
    with Curator() as curator:
        types = dict.fromkeys(names, "int")
        curator.protect(copy, name="t", types=types, bounds={names[0]: (0, 9)}, budget=Budget(epsilon=10**7))
        asked = '"' + names[0].replace('"', '""') + '"'
        assert curator.ask(f"SELECT SUM({asked}) AS s FROM t", epsilon=10**6)[0]["s"] == 5


@pytest.mark.ci
def test_a_wide_file_keeps_all_its_columns(tmp_path: Path) -> None:
    """Eighteen of thirty were shown, and written, where the nineteenth name had a line break in it."""
    names = [f"column {place}" for place in range(30)]
    names[18] = "eighteen\nand more"
    text = io.StringIO()
    csv.writer(text).writerows([names, [str(place) for place in range(30)]])
    path = _written(tmp_path, text.getvalue().encode())
    copy = mend_file(path, tmp_path / "t-mended.csv")
    found = check_file(copy)
    assert [column.values.values for column in found.columns.values()] == [(place,) for place in range(30)]
    assert list(found.columns) == [name.replace("\n", " ") for name in names]


def test_a_file_whose_cells_need_mending_keeps_its_names(tmp_path: Path) -> None:
    path = _written(tmp_path, b'a, b\n"1,5",2\n')
    assert list(check_file(mend_file(path, tmp_path / "t-mended.csv")).columns) == ["a", " b"]


def test_packed_files_have_the_same_headers(tmp_path: Path) -> None:
    content = READ["a record within a name"]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(content))
    assert read_header(path) == read_header(_written(tmp_path, content))


def test_headers_of_several_files_need_not_agree(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text('a,"b, c"\n1,2\n')
    other.write_text('"b,\nc";a\n3;4\n')
    assert source_of([one]) == Csv((one,), ("a", "b, c"), ",")
    assert untyped_columns([one, other]) == ("a", "b, c", "b,\nc")


def test_a_zero_byte_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="to be a text in UTF-8"):
        source_of(_written(tmp_path, b'a,"b\n\0",c\n1,2,3\n'))


@given(
    names=st.lists(st.text(st.sampled_from('ab,;|\t"\n\r \u00e9'), max_size=5), min_size=1, max_size=5),
    delimiter=st.sampled_from(",;\t|"),
)
def test_what_csv_writes_is_read(names: list[str], delimiter: str) -> None:
    """All names that a writer quotes; the delimiter is told by how often it occurs, and so it occurs most often."""
    wide = [*names, *("x" for _ in range(30))]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerow(wide)
    record = text.getvalue().removesuffix("\r\n")
    assert split_header(record) == Header(tuple(wide), delimiter)
    made = split_header(record).mended_names
    assert Header(made, delimiter).troubles == ()
    assert len(made) == len(wide)


@pytest.mark.parametrize("name", ["", "a"])
def test_many_names_are_mended_in_time(name: str) -> None:
    made = Header((name,) * 20_000, ",")
    assert len(set(made.mended_names)) == 20_000
    assert max(map(len, made.troubles)) < 300
