"""The encoding of a text file, from its bytes: UTF-8, which is what is read, or another one, and how to convert it."""

from __future__ import annotations

import codecs
from pathlib import Path

from discreet.dataclass import dataclass
from discreet.engines.duckdb.csv_header import open_unpacked

_AT_ONCE = 1 << 20
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NAMES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16, little-endian, without a byte order mark",
    "utf-16-be": "UTF-16, big-endian, without a byte order mark",
    "cp1252": "not UTF-8; probably Windows-1252",
    "latin-1": "not UTF-8; probably Latin-1 (ISO 8859-1)",
}
_WINDOWS_ONLY = frozenset(range(0x80, 0xA0))  # printable in Windows-1252, controls in Latin-1
_NOWHERE = frozenset((0x81, 0x8D, 0x8F, 0x90, 0x9D))  # nothing in Windows-1252


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEncoding:
    """The encoding of a text file, as its bytes show it.

    Attributes:
        codec: Python's name of the encoding.
        lines: how many line ends there are.
        undecodable: the first line with bytes that are not UTF-8; 0 if there is none.
        undecodable_lines: how many such lines there are.
    """

    codec: str
    lines: int
    undecodable: int = 0
    undecodable_lines: int = 0

    @property
    def is_readable(self) -> bool:
        """Returns whether tables are read from it as it is."""
        return self.codec in ("utf-8", "utf-8-sig")

    @property
    def name(self) -> str:
        """Returns what people call it."""
        return _NAMES[self.codec]


def encoding_of(path: Path) -> TextEncoding:
    """Reads all bytes of a file, unpacked, and returns their encoding."""
    with open_unpacked(path) as file:
        start = file.read(_AT_ONCE)
    marked = next((codec for mark, codec in _MARKS.items() if start.startswith(mark)), None)
    codec = marked or _without_mark(start)
    if codec.startswith("utf-16"):
        return TextEncoding(codec=codec, lines=0)
    return _lines_of(path, codec)


def _without_mark(start: bytes) -> str:
    """Finds UTF-16 without a mark: its Latin letters have a zero byte, always on the same side."""
    even, odd = start[0:2000:2].count(0), start[1:2000:2].count(0)
    most = max(len(start[:2000]) // 4, 1)
    return "utf-16-le" if odd >= most > even else "utf-16-be" if even >= most > odd else "utf-8"


def _lines_of(path: Path, codec: str) -> TextEncoding:
    lines, faulty, first = 0, 0, 0
    seen = set[int]()
    with open_unpacked(path) as file:
        for line in file:
            lines += 1
            if not line.isascii() and not _is_utf8(line):
                faulty, first = faulty + 1, first or lines
                seen.update(byte for byte in line if byte >= 0x80)
    if faulty:
        codec = "cp1252" if seen & _WINDOWS_ONLY and not seen & _NOWHERE else "latin-1"
    return TextEncoding(codec=codec, lines=lines, undecodable=first, undecodable_lines=faulty)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def transcode(path: Path, encoding: TextEncoding, target: Path) -> None:
    """Writes a file's text in UTF-8; what its encoding does not know is replaced by a question mark in a diamond."""
    decoder = codecs.getincrementaldecoder(encoding.codec)(errors="replace")
    with open_unpacked(path) as file, target.open("wb") as out:
        while block := file.read(_AT_ONCE):
            out.write(decoder.decode(block).encode("utf-8"))
        out.write(decoder.decode(b"", final=True).encode("utf-8"))
