"""A table of a lakehouse, Delta or Iceberg, at one snapshot: which Parquet files it has, and which columns they store.

Such a table is a log over files: what is read is what one entry of the log lists. The entry is chosen once, when a
steward protects the table, and the ledger keeps it for the version that the steward named (`pin_snapshot`). So a
commit, a compaction or the erasure of one person's rows changes no answer, and turns no replay into another question.
Which files a snapshot has is private, as are its number and theirs.

The libraries of the two formats are only asked for the list. The files are read as any other Parquet files are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from discreet.dataclass import dataclass
from discreet.engines.sources.file_set import Listing, check_plain, describe_file
from discreet.errors import InvalidParameter
from discreet.lazy import load
from discreet.plan.model.types import Type

ICEBERG = "iceberg://"
"""How the address of a table of an Iceberg catalog begins; the catalog has its name in pyiceberg's configuration."""

_METADATA = ".metadata.json"
_LOG = "_delta_log"
_MARK = "#snapshot "  # what stands between a place and a version, in the ledger
_FORMAT = ("parquet", "")


class SnapshotGone(LookupError):
    """A snapshot is not in the log of its table any longer, or the log is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeColumn:
    """A column of a table, and how files call it.

    Args:
        name: in the table.
        type: of ours, by which the values are read that no file stores; None if it has none.
        field_id: by which files that number their columns store it.
        names: by which other files do, the first that is there.
        default: its value in files that do not have it.
    """

    name: str
    type: Type | None
    field_id: int | None = None
    names: tuple[str, ...] = ()
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LakeFile:
    """A file of a snapshot.

    Args:
        path: where it is.
        values: those of its columns that its partition says, by name.
        deleted: the numbers of rows that were deleted, an array in their order; None if there are none.
    """

    path: Path
    values: Mapping[str, Any]
    deleted: Any = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LakeSnapshot:
    """What an entry of a table's log lists.

    Args:
        root: the folder that all files are in.
        columns: all of its schema.
        files: all that it has.
    """

    root: Path
    columns: tuple[LakeColumn, ...]
    files: tuple[LakeFile, ...]

    @property
    def types(self) -> dict[str, Type]:
        """Returns the columns that can be read."""
        return {column.name: column.type for column in self.columns if column.type is not None}


class LakeFormat(Protocol):
    """The protocol of a module that reads the logs of a format."""

    def newest(self, place: str) -> str:
        """Returns the name of the newest snapshot."""

    def read_snapshot(self, place: str, snapshot: str) -> LakeSnapshot:
        """Returns what a snapshot lists.

        Raises:
            SnapshotGone: if it cannot be found any longer.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeTable:
    """A table of a lakehouse at one snapshot.

    Args:
        place: the folder of a Delta table; the address in a catalog, or the file of metadata, of an Iceberg table.
        snapshot: its name in the log, with the id of the table, so that another table in the same place is not read.
    """

    place: str
    snapshot: str

    def read_snapshot(self) -> LakeSnapshot:
        """Returns what the snapshot lists; the log is read once in a process.

        Raises:
            SnapshotGone: if it cannot be found any longer.
        """
        return _read_snapshot(self.place, self.snapshot)

    def schema(self) -> dict[str, Type]:
        """Returns the columns that can be read.

        Raises:
            InvalidParameter: if the snapshot is gone.
        """
        try:
            return self.read_snapshot().types
        except SnapshotGone:
            hint = 'Protect the table with a new version, e.g. version="2", to read its newest snapshot.'
            raise InvalidParameter("source", self.place, "to have the snapshot that was protected", hint) from None

    def is_gone(self) -> bool:
        """Returns whether the snapshot cannot be read any longer: its log, or one of its files, was removed."""
        try:
            return not all(map(_is_file, (file.path for file in self.read_snapshot().files)))
        except SnapshotGone:
            return True

    def list_files(self) -> Listing:
        """Returns the files of the snapshot, in the order in which it lists them.

        Raises:
            OSError: if one of them is gone.
            SnapshotGone: if the snapshot is.
        """
        descriptors = list[int]()
        try:
            found = [describe_file(file.path, _FORMAT, {}, descriptors) for file in self.read_snapshot().files]
        except BaseException:
            Listing((), descriptors).close()
            raise
        return Listing(found, descriptors)

    @property
    def origins(self) -> dict[str, str]:
        """Returns where its files are, and what is there: the folder belongs to it; {} if the snapshot is gone."""
        try:
            root = self.read_snapshot().root
            state = root.stat()
        except (SnapshotGone, OSError):
            return {}
        return {f"{root}{os.sep}": f"{state.st_dev}:{state.st_ino}"}


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


# ------------------------------------------------------------------------------------------------------------- formats


def lake_place(given: object) -> str | None:
    """Returns where a table of a lakehouse is that a steward names; None if it is something else.

    >>> lake_place("iceberg://local/care.visits"), lake_place("visits.csv")
    ('iceberg://local/care.visits', None)
    """
    if isinstance(given, LakeTable):
        return given.place
    if not isinstance(given, str | Path) or "\0" in str(given):
        return None
    text = os.fspath(given)
    if text.startswith(ICEBERG):
        return text
    if (text.endswith(_METADATA) and os.path.isfile(text)) or os.path.isdir(os.path.join(text, _LOG)):
        return str(Path(text).resolve())
    return None


def newest_snapshot(source: object) -> LakeTable | None:
    """Returns a table of a lakehouse at its newest snapshot, whatever snapshot is given; None of any other source.

    Raises:
        InvalidParameter: if it cannot be read, or has files or rows that cannot.
        MissingExtra: if the library of its format is not installed.
    """
    place = lake_place(source)
    if place is None:
        return None
    found = LakeTable(place=place, snapshot=_format_of(place).newest(place))
    if found.is_gone():
        hint = "Open it with another program to see what is wrong."
        raise InvalidParameter("source", place, "to have all the files that it lists", hint)
    return found


def pin_snapshot(source: Any, version: str, recorded: Mapping[str, str]) -> Any:
    """Returns a table of a lakehouse at the snapshot that the ledger has for a version, or at the newest one.

    Args:
        source: what a steward gives; anything else stays as it is.
        version: the steward's own word for the state of the data.
        recorded: what the ledger says of where the data of the table are.
    """
    place = lake_place(source)
    if place is None:
        return source
    known = recorded.get(_pin_of(place, version))
    return newest_snapshot(source) if known is None else LakeTable(place=place, snapshot=known)


def pin(source: Any, version: str) -> dict[str, str]:
    """Returns what the ledger keeps so that `pin_snapshot` finds the same snapshot again; {} of any other source."""
    return {_pin_of(source.place, version): source.snapshot} if isinstance(source, LakeTable) else {}


def newest_pins(recorded: Mapping[str, str], version: str) -> dict[str, str]:
    """Returns what the ledger keeps of the newest snapshot when a table moves on to a version; {} of any other source.

    Args:
        recorded: what the ledger says of where the data of the table are, with snapshots of earlier versions.
        version: the new one.

    Raises:
        InvalidParameter: if no snapshot can be read where the table was, or is.
    """
    found, refused = dict[str, str](), list[InvalidParameter]()
    for place in {key.partition(_MARK)[0]: None for key in recorded if is_pin(key)}:
        try:
            found |= pin(newest_snapshot(place), version)
        except InvalidParameter as error:  # a table that was moved is no longer where it was
            refused.append(error)
    if refused and not found:
        raise refused[-1]
    return found


def is_pin(place: str) -> bool:
    """Returns whether a place in the ledger stands for a snapshot.

    >>> is_pin("/lake/visits#snapshot 2026-11"), is_pin("/lake/visits/")
    (True, False)
    """
    return _MARK in place


def _pin_of(place: str, version: str) -> str:
    return f"{place}{_MARK}{version}"


def _format_of(place: str) -> LakeFormat:
    if place.startswith(ICEBERG) or place.endswith(_METADATA):
        found: LakeFormat = load("discreet.engines.lakes.iceberg_metadata", "An Iceberg table")
        return found
    made: LakeFormat = load("discreet.engines.lakes.delta_log", "A Delta table")
    return made


@lru_cache(maxsize=64)
def _read_snapshot(place: str, snapshot: str) -> LakeSnapshot:
    found = _format_of(place).read_snapshot(place, snapshot)
    names = [column.name for column in found.columns]
    doubled = next((name for name in names if sum(name.lower() == other.lower() for other in names) > 1), None)
    if doubled is not None:
        raise InvalidParameter("column", doubled, "to differ from others in more than letter case", "Rename it.")
    return found


def checked_files(root: Path, files: Sequence[LakeFile]) -> tuple[LakeFile, ...]:
    """Returns files that lie in the folder of their table, wherever its log says that they are.

    Files elsewhere may be part of another table, which has a budget of its own.

    Raises:
        InvalidParameter: if one does not.
    """
    check_plain(root)
    inside = f"{root}{os.sep}"
    if any(not os.path.realpath(file.path).startswith(inside) for file in files):
        hint = "A clone, or a table that files were added to by their paths, refers to others. Write it as a new table."
        raise InvalidParameter("source", str(root), "to have all its files in its own folder", hint)
    return tuple(files)
