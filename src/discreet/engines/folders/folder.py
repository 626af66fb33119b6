"""A folder of files as a protected table: a row for each file, its label by the sub-folder, its person by its name."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.engines.folders.file_arrays import READERS, Shape, longest
from discreet.errors import InvalidParameter
from discreet.lazy import pa

MOST_NUMBERS = 1 << 16
"""Numbers that one file may have."""

_ROWS = 1 << 12  # of a batch
_SIDES = {".png": 3, ".pgm": 3, ".ppm": 3, ".txt": 1}
_CHANNELS = {".png": (1, 3), ".pgm": (1,), ".ppm": (3,)}
_SHAPE = "A picture has (channels, height, width), a text the number of its bytes, an array its own shape."


@dataclass(frozen=True, kw_only=True, eq=False)
class Folder:
    """Files of one kind in a folder, as a table for `Curator.protect`.

    A row has the name of a file in `column`, within the folder; in `label` the sub-folder that it lies in, NULL if it
    lies in none; and with a pattern for persons, in `person` what the pattern finds in the file's name. Links are
    passed over. A learner that selects `column` is given the file's numbers, of one public shape, clipped to public
    bounds. A file that cannot be read, or has another shape, is a blank, whose numbers are all missing; nothing shows
    which, or whether there are any.

    Nothing is listed or read before an engine or a learner asks for it.

    Args:
        path: of the folder.
        suffix: ".png", ".pgm", ".ppm", ".npy" or ".txt", in whichever letter case files have it.
        shape: of the numbers of every file; of a picture (channels, height, width), of a text its bytes.
        bounds: public limits of the numbers.
        person: a pattern; its first group, anywhere in a file's path within the folder, is whose file it is. Files in
            which it finds no person have no id. None if each file is one unit.
        column: what questions call the file; "text" for texts and "image" for all else unless it is given.

    Raises:
        InvalidParameter: if there is no such folder, or something does not fit.

    >>> Folder(path=".", suffix=".png", shape=(1, 28, 28)).columns
    ('image', 'label')
    """

    path: str | os.PathLike[str]
    suffix: str
    shape: Sequence[int]
    bounds: tuple[check.Number, check.Number] = (0, 255)
    person: str | None = None
    column: str | None = None
    root: Path = field(init=False, repr=False)
    limits: tuple[float, float] = field(init=False, repr=False)
    sides: Shape = field(init=False, repr=False)
    file_column: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        root = Path(self.path).resolve()
        if not root.is_dir():
            raise InvalidParameter("path", str(self.path), "to be an existing folder")
        if self.suffix not in READERS:
            hint = "Convert the files; JPEG is not read."
            raise InvalidParameter("suffix", self.suffix, f"to be one of {', '.join(READERS)}", hint)
        low, high = check.limits(bounds=self.bounds)
        name = self.column if self.column is not None else "text" if self.suffix == ".txt" else "image"
        if name in ("label", "person"):
            raise InvalidParameter("column", name, "to differ from the names of its other columns")
        sides = self._checked_shape()
        check.assign(
            self, root=root, limits=(float(low), float(high)), sides=sides, file_column=check.label(column=name)
        )
        self._pattern()

    def _checked_shape(self) -> Shape:
        given = self.shape if isinstance(self.shape, tuple | list) else (self.shape,)
        sides = tuple(check.integer(shape=side, at_least=1) for side in given)
        wrong = len(sides) != _SIDES.get(self.suffix, len(sides)) or not sides
        if wrong or sides[0] not in _CHANNELS.get(self.suffix, (sides[0],)) or math.prod(sides) > MOST_NUMBERS:
            raise InvalidParameter("shape", self.shape, f"to have at most {MOST_NUMBERS} numbers", _SHAPE)
        return sides

    def _pattern(self) -> re.Pattern[str] | None:
        if self.person is None:
            return None
        try:
            found = re.compile(self.person)
        except (re.error, TypeError):
            found = None
        if found is None or not found.groups:
            raise InvalidParameter("person", self.person, "to be a pattern with a group", "Pass e.g. r'([^_/]+)_'.")
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the names of the table's columns."""
        return (self.file_column, "label", *([] if self.person is None else ["person"]))

    @property
    def origins(self) -> dict[str, str]:
        """Returns where the folder is, links followed, and what is there now, as device and inode."""
        state = self.root.stat()
        return {str(self.root): f"{state.st_dev}:{state.st_ino}"}

    def holds(self, other: Folder) -> bool:
        """Returns whether another folder is this one, or lies in it."""
        return other.root.is_relative_to(self.root)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Gives the table, which is listed when it is read."""
        schema = pa.schema([(name, pa.string()) for name in self.columns])
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(schema))
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self, schema: Any) -> Iterator[Any]:
        rows = self._rows()
        while batch := list(islice(rows, _ROWS)):
            arrays = [pa.array(cells, pa.string()) for cells in zip(*batch, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _rows(self) -> Iterator[tuple[str | None, ...]]:
        """Yields the rows; a name that is no Unicode is NULL, and its file a blank."""
        pattern = self._pattern()
        for where, _, names in os.walk(self.root):
            for name in names:
                path = Path(where, name)
                if not name.lower().endswith(self.suffix) or path.is_symlink() or not path.is_file():
                    continue
                within = path.relative_to(self.root)
                label = within.parts[0] if len(within.parts) > 1 else None
                cells: list[str | None] = [within.as_posix(), label]
                if pattern is not None:
                    match = pattern.search(within.as_posix())
                    cells.append(None if match is None else match[1])
                yield tuple(map(_unicode, cells))

    def numbers(self, files: Sequence[object]) -> NDArray[np.float64]:
        """Returns a row of numbers for each name of a file, all of them missing for a blank."""
        size = math.prod(self.sides)
        made = np.full((len(files), size), np.nan)
        for place, file in enumerate(files):
            found = self._read(file) if isinstance(file, str) else None
            if found is not None:
                made[place] = np.clip(found, *self.limits)
        return made

    def _read(self, file: str) -> NDArray[np.float64] | None:
        """Returns the numbers of one file; None for a blank, whatever is wrong with it."""
        try:
            path = self.root / file
            if path.resolve() != path or not path.is_relative_to(self.root):
                return None
            with path.open("rb") as opened:
                most = longest(self.suffix, self.sides)
                data = opened.read(most + 1)
            if len(data) > most and self.suffix != ".txt":
                return None
            found = READERS[self.suffix](data, self.sides)
            return np.asarray(found, dtype=np.float64).reshape(-1)
        except Exception:  # noqa: BLE001 - a file may be anything, and no error may tell of it
            return None


def _unicode(text: str | None) -> str | None:
    try:
        return None if text is None else text.encode().decode()
    except UnicodeError:
        return None
