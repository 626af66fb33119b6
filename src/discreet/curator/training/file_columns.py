"""Columns of files as features: a number for each place of their public shape, read after the charge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discreet.curator.training.features import Floats
from discreet.engines.folders.folder import Folder
from discreet.plan.model.nodes import Expression, Value
from discreet.plan.model.schema import Files
from discreet.sql.training_rows import RowColumn, RowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNumbers:
    """The numbers of the files that a column names; all of a blank are missing."""

    name: str
    value: Expression
    files: Files
    folder: Folder = field(repr=False)

    @property
    def key(self) -> Expression:
        """The name of the file."""
        return self.value

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each number, in order."""
        return tuple(f"{self.name}[{place}]" for place in range(math.prod(self.files.shape)))

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """The declared bounds, of each number."""
        return ((self.files.low, self.files.high),) * math.prod(self.files.shape)

    def decode(self, values: Sequence[Value]) -> Floats:
        """Reads the files."""
        return self.folder.numbers(values)


def files_of(column: RowColumn, source: RowSource, folders: Mapping[str, Folder]) -> FileNumbers | None:
    """Returns the features of a column that names files; None of any other.

    Raises:
        UnsupportedQuery: if the folder is not here.
    """
    files = column.schema.files
    if files is None:
        return None
    folder = folders.get(files.table)
    if folder is None:
        source.refuse(f"The files of {files.table!r} are not here.", "Protect the folder in this curator.", column.at)
    return FileNumbers(name=column.name, value=column.column, files=files, folder=folder)
