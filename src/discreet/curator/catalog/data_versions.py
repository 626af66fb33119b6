"""The versions of tables' data as a curator follows them, and what an answer says about its data.

All of it follows from declarations and from the ledger. Nothing is read: not even whether files have changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from discreet.curator.catalog.declared_limits import SUPPOSED
from discreet.engines.folders.folder import Folder
from discreet.engines.sources.file_set import FileSet
from discreet.ledger.acts.table_versions import TableVersion
from discreet.ledger.journal import DeclaredTable
from discreet.plan.model.schema import TableSchema


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
        is_told: whether answers may have something to say about their data.
    """

    def __init__(self) -> None:
        self.moves = 0
        self.is_told = False
        self._times: dict[tuple[str, str], str] = {}
        self._growing = set[str]()

    def note_source(self, table: str, source: Any) -> None:
        """Remembers whether a table is made of many files, which may change while nothing is declared anew."""
        (self._growing.add if may_grow(source) else self._growing.discard)(table)
        self.is_told = self.is_told or bool(self._growing)

    def follow(self, schema: TableSchema, present: DeclaredTable) -> TableSchema:
        """Returns a table at the version that the ledger has for this curator; the same one if it is at that."""
        version = present.current(schema.version)
        self._times[schema.name, version] = present.times.get(version, "")
        self.is_told = True
        if version == schema.version:
            return schema
        self.moves += 1
        return at_version(schema, version)

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
        f"steward can run: discreet advance {shlex.quote(table)} --version LABEL"
    )
