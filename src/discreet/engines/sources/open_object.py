"""An object of a bucket or of a web server, as one query found it, read by ranges of its bytes.

Its name, its size and the number of objects are private. DuckDB and Arrow are given a number in place of a name.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from itertools import count
from pathlib import PurePosixPath
from typing import BinaryIO, cast
from weakref import WeakValueDictionary

SCHEME = "objects"
"""With which addresses begin that only this process knows."""

TAIL = 1 << 15  # bytes of the end of a file, where DuckDB looks for the footer of Parquet, each time it opens one
_AT_ONCE = 1 << 22  # bytes of a request where a file is read from its beginning to its end

_NUMBERS = count()
_OPEN: WeakValueDictionary[str, OpenObject] = WeakValueDictionary()


class OpenObject:
    """An object that a query reads; it can be opened as often as a file.

    Args:
        name: its name, for a steward.
        size: its bytes.
        read: returns so many bytes from a place on.
        keeps_tail: whether the last bytes are kept when they have been read.
    """

    def __init__(self, name: str, size: int, read: Callable[[int, int], bytes], *, keeps_tail: bool = True) -> None:
        self._name, self.size, self._read = name, size, read
        self._keeps_tail, self._tail, self._lock = keeps_tail, b"", threading.Lock()
        self._place = f"{SCHEME}://{next(_NUMBERS)}"
        _OPEN[self._place] = self

    @property
    def name(self) -> str:
        """The last part of its name."""
        return PurePosixPath(self._name).name

    @property
    def suffix(self) -> str:
        """What its name ends in, from the last point on."""
        return PurePosixPath(self._name).suffix

    def read(self, start: int, length: int) -> bytes:
        """Returns the bytes from a place on; fewer at the end.

        Raises:
            OSError: if they cannot be read.
        """
        length = max(0, min(length, self.size - start))
        if not length:
            return b""
        first = max(0, self.size - TAIL)
        if start < first or not self._keeps_tail:
            return self._fetch(start, length)
        with self._lock:
            self._tail = self._tail or self._fetch(first, self.size - first)
        return self._tail[start - first :][:length]

    def _fetch(self, start: int, length: int) -> bytes:
        found = self._read(start, length)
        if len(found) != length:
            raise OSError
        return found

    def open(self, mode: str = "rb") -> BinaryIO:
        """Opens it to be read from its beginning to its end, as `Path.open` does."""
        del mode
        return cast("BinaryIO", io.BufferedReader(ObjectReader(self), _AT_ONCE))

    def reader(self) -> ObjectReader:
        """Opens it to be read here and there."""
        return ObjectReader(self)

    def __str__(self) -> str:
        """Returns what DuckDB opens it by."""
        return self._place

    def __repr__(self) -> str:
        return "<open object>"


class ObjectReader(io.RawIOBase):
    """An object as a file of Python that is read by ranges, nothing ahead of them."""

    def __init__(self, opened: OpenObject) -> None:
        self._opened, self._at = opened, 0

    def readable(self) -> bool:
        """Returns that it can be read."""
        return True

    def seekable(self) -> bool:
        """Returns that any place can be read."""
        return True

    def tell(self) -> int:
        """Returns the place that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to another place of the object."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._opened.size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Reads bytes from the present place on."""
        wanted = self._opened.size - self._at if size is None or size < 0 else size
        found = self._opened.read(self._at, wanted)
        self._at += len(found)
        return found

    def readinto(self, buffer: object) -> int:
        """Reads bytes into a buffer."""
        view = memoryview(cast("bytearray", buffer)).cast("B")
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)


def opened_at(place: str) -> OpenObject:
    """Returns the object that DuckDB names so.

    Raises:
        FileNotFoundError: if no query reads it.
    """
    found = _OPEN.get(place)
    if found is None:
        raise FileNotFoundError
    return found
