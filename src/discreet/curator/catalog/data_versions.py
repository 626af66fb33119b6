"""The versions of tables' data as a curator follows them, and what an answer says about its data.

All of it follows from declarations and from the ledger. Nothing is read: not even whether files have changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from discreet.curator.catalog.declared_limits import SUPPOSED
from discreet.engines.folders.folder import Folder
from discreet.engines.sources.file_set import FileSet
from discreet.ledger.acts.table_versions import DeclaredTable, TableVersion
from discreet.plan.model.schema import TableSchema

Found = TypeVar("Found")


class DataDescription(NamedTuple):
    """What an answer says about the data of its tables.

    Attributes:
        versions: those that a steward declared; a table without one is left out.
        notes: of an answer that is given again, which tables may have other files by now.
    """

    versions: tuple[TableVersion, ...] = ()
    notes: tuple[str, ...] = ()


UNDESCRIBED = DataDescription()


class FollowedVersions:
    """The versions at which the tables of a curator are, each as the ledger had it when a question last asked.

    Attributes:
        moves: how often a table moved on to another version.
        forgotten: how often it forgot limits by that, which a plan may hold.
    """

    def __init__(self) -> None:
        self.moves = self.forgotten = 0
        self._times: dict[tuple[str, str], str] = {}
        self._growing = set[str]()

    def note_source(self, table: str, source: Any) -> None:
        """Remembers whether a table is made of many files, which may change while nothing is declared anew."""
        (self._growing.add if may_grow(source) else self._growing.discard)(table)

    def follow(self, schema: TableSchema, present: DeclaredTable) -> TableSchema:
        """Returns a table at the version that the ledger has for this curator; the same one if it is at that."""
        version = present.current(schema.version)
        self._times[schema.name, version] = present.times.get(version, "")
        if version == schema.version:
            return schema
        self.moves += 1
        self.forgotten += schema.private_limits is not None
        return at_version(schema, version)

    def plan_once(self, read: Callable[[], Found]) -> Found:
        """Returns a question as it is read, once more if a table forgot its limits meanwhile."""
        before, found = self.forgotten, read()
        return found if before == self.forgotten else self.plan_once(read)

    def read_at_once(self, read: Callable[[], Found]) -> Found:
        """Returns what is read of several tables or questions, once more if one moved on: all are at one state."""
        before, found = self.moves, read()
        return found if before == self.moves else self.read_at_once(read)

    def describe(self, tables: Iterable[TableSchema], *, replayed: bool) -> DataDescription:
        """Returns what an answer says about the data of the tables that it read: their versions, and since when.

        One that is given again says if files may have changed since, whether they did or not.
        """
        own = [table for table in tables if not table.public]
        dated = [TableVersion(one.name, one.version, self._times.get((one.name, one.version), "")) for one in own]
        growing = [one.name for one in own if replayed and one.name in self._growing]
        return DataDescription(tuple(one for one in dated if one.version), tuple(map(describe_growing, growing)))


def at_version(schema: TableSchema, version: str) -> TableSchema:
    """Returns a table at another version of its data, whose private limits are still to be found."""
    if schema.private_limits is None:
        return replace(schema, version=version)
    searched = replace(schema.private_limits, found=False)
    return replace(schema, version=version, limits=SUPPOSED, private_limits=searched)


def may_grow(source: Any) -> bool:
    """Returns whether a source is a folder, a pattern or a list of files: which files it has can change.

    >>> may_grow(["a.parquet", "b.parquet"]), may_grow([{"age": 40}])
    (True, False)
    """
    if isinstance(source, str | Path):
        return "://" not in str(source) and FileSet.of_place(source) is not None
    listed = isinstance(source, Sequence) and len(source) > 1 and all(isinstance(one, str | Path) for one in source)
    return listed or isinstance(source, Folder | FileSet)


def describe_growing(table: str) -> str:
    """Returns the note of an answer that is given again, about a table of many files."""
    return (
        f"This answer is stored. The files of {table} may have changed since. To have queries about it asked anew, a "
        f"steward runs: discreet advance {shlex.quote(table)} --version LABEL"
    )
