"""The header of a text file: the first record of CSV, its delimiter, and names of columns that can be declared.

A header is public, as a table's columns are: nothing after its first record is looked at here. It is read as Python's
`csv` and DuckDB read it: a name may stand in quotes, with delimiters, doubled quotes and line breaks in it.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO, cast

from discreet.check import steers
from discreet.dataclass import dataclass
from discreet.engines.sources.file_set import PACKINGS, ReadableFile
from discreet.engines.sources.open_object import OpenObject
from discreet.errors import InvalidParameter
from discreet.lazy import pa

LONGEST = 1 << 20
"""Bytes of a header: far more than any table in use has."""

_SHOWN = 12
_DELIMITERS = ",;\t|"
_QUOTED = re.compile(f'(?:^|(?<=[{_DELIMITERS}]))"(?:[^"]|"")*"')
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Header:
    """The names of columns as a file writes them, and the sign between them."""

    names: tuple[str, ...]
    delimiter: str

    @property
    def troubles(self) -> tuple[str, ...]:
        """Returns why these names cannot be declared as they are; nothing if they can."""
        told = []
        counts = Counter(map(_fold_name, self.names))
        twice = sorted({name for name in self.names if counts[_fold_name(name)] > 1 and name.strip()})
        if twice:
            told.append(f"Columns have the same name: {_some(map(repr, twice))}.")
        empty = [str(place) for place, name in enumerate(self.names, start=1) if not name.strip()]
        if empty or not self.names:
            told.append(f"Columns without a name: {_some(empty) or 'all'}.")
        steering = [name for name in self.names if any(map(steers, name))]
        if steering:
            told.append(f"Names have line breaks or control characters: {_some(map(repr, steering))}.")
        return tuple(told)

    @property
    def mended_names(self) -> tuple[str, ...]:
        r"""Makes names that can be declared, each once: a second `ward` is `ward_2`, a column without one `column_3`.

        >>> Header(("ward", "Ward", "", "heart\nrate"), ",").mended_names
        ('ward', 'Ward_2', 'column_3', 'heart rate')
        """
        made: list[str] = []
        taken, numbers = {_fold_name(name) for name in self.names}, dict[str, Iterator[int]]()
        for place, written in enumerate(self.names, start=1):
            name = _plain(written)
            if name and _fold_name(name) not in numbers:
                numbers[_fold_name(name)] = count(2)
                made.append(name)
                continue
            others = _others(name, numbers[_fold_name(name)]) if name else _others(f"column_{place}", count(1))
            made.append(next(one for one in others if _fold_name(one) not in taken))
            taken.add(_fold_name(made[-1]))
        return tuple(made)


def _others(name: str, numbers: Iterable[int]) -> Iterator[str]:
    """Returns a name with numbers; the first goes without."""
    return (name if number == 1 else f"{name}_{number}" for number in numbers)


def _some(names: Iterable[str]) -> str:
    """Returns a few of them, for a sentence."""
    first = list(islice(names, _SHOWN + 1))
    return ", ".join([*first[:_SHOWN], *(["..."] if len(first) > _SHOWN else [])])


def _plain(name: str) -> str:
    """Returns a name without signs that steer a terminal, with single spaces, in the usual form of its letters."""
    shown = "".join(" " if steers(sign) else sign for sign in name)
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", shown)).strip()


def _fold_name(name: str) -> str:
    """Returns what makes names different: not letter case, as in questions, nor how accents or blanks are written."""
    return unicodedata.normalize("NFC", _plain(name).casefold())


def read_header(path: Path) -> Header:
    """Reads the first record of a text file, which may be packed; bytes that are not UTF-8 are replaced.

    Raises:
        InvalidParameter: if it cannot be unpacked, or its first record is no header.
    """
    return split_header(first_record(path))


def split_header(record: str) -> Header:
    """Splits a header at its delimiter, the sign that occurs most outside of quotes.

    Raises:
        InvalidParameter: if it is no record of CSV.

    >>> split_header('ward;"age, in years"')
    Header(names=('ward', 'age, in years'), delimiter=';')
    """
    outside = _QUOTED.sub("", record)
    delimiter = max(_DELIMITERS, key=outside.count)
    try:
        names = next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter, strict=True), [])
    except csv.Error:  # a sign after a closing quote, a quote that is never closed, a name of over 131,072 characters
        raise _not_a_header("Close each quote before the next name, and double a quote inside of a name") from None
    return Header(tuple(names), delimiter)


def first_record(path: ReadableFile, packing: str | None = None) -> str:
    """Reads a text file up to the first line end outside of quotes.

    Args:
        path: of the file.
        packing: how it is packed; None if its name says it.

    Raises:
        InvalidParameter: if it cannot be unpacked, or there is none within a megabyte.
    """
    try:
        with open_unpacked(path, packing) as file:
            start = file.read(LONGEST)
    except (OSError, EOFError, zlib.error):  # pyarrow's errors are among them
        raise InvalidParameter("source", path.name, "to be a file that can be read", "Compress it again.") from None
    text = start.decode("utf-8-sig", errors="replace")
    end = _end(text)
    if end is None and len(start) == LONGEST:
        raise _not_a_header("Look for a quote that is never closed, or write shorter names")
    return text if end is None else text[:end]


def _end(text: str) -> int | None:
    """Returns the place of the first line end outside of quotes; a quote opens only where a name begins."""
    place, length = 0, len(text)
    while place < length:
        quoted = _QUOTED.match(text, place) if text[place] == '"' and _begins(text, place) else None
        if quoted is not None:
            place = quoted.end()
        elif text[place] == '"' and _begins(text, place):  # and is never closed
            return None
        elif text[place] in "\r\n":
            return place
        else:
            place += 1
    return None


def _begins(text: str, place: int) -> bool:
    return place == 0 or text[place - 1] in _DELIMITERS


def _not_a_header(hint: str) -> InvalidParameter:
    return InvalidParameter("source", "a first line", "to hold the names of columns", f"{hint}.")


def open_unpacked(path: ReadableFile, packing: str | None = None) -> BinaryIO:
    """Opens a file to read its bytes, unpacked."""
    packed = PACKINGS.get(path.suffix.lower(), "") if packing is None else packing
    if packed == "zstd":
        given = path.open() if isinstance(path, OpenObject) else str(path)
        return cast("BinaryIO", io.BufferedReader(pa.input_stream(given, compression="zstd")))
    if packed == "gzip":
        return cast("BinaryIO", gzip.open(path.open() if isinstance(path, OpenObject) else path))
    return path.open("rb")
