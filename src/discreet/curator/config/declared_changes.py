"""Differences between a file's declarations and the ledger, for a steward to decide before anything is entered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from discreet.curator.catalog.catalog import Catalog
from discreet.curator.config.enrolment import enrol, naming
from discreet.curator.config.toml_file import Config
from discreet.dataclass import dataclass
from discreet.engines.by_source import by_source, engine_at
from discreet.engines.lakes.lake_table import is_pin
from discreet.errors import LedgerMissing
from discreet.ledger import Ledger, is_there
from discreet.ledger.redeclaration import check_same_people, differences
from discreet.ledger.stewardship import TableRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A table that is in the ledger, and is declared otherwise now, or has other data.

    Attributes:
        table: its name.
        before: its declaration in the ledger.
        declared: how the declaration differs, a line for each thing; a steward confirms it.
        data: another version, another file: what answers are about from now on.
    """

    table: str
    before: str
    declared: tuple[str, ...]
    data: tuple[str, ...]


def declared_changes(config: Config) -> tuple[TableChange, ...]:
    """Returns what a file says otherwise than the ledger about tables that are in it; writes nothing.

    The file is entered in a ledger that exists in memory only, so that both are compared as they would be written. No
    content of a protected table is read.

    Raises:
        InvalidParameter: if a declaration does not fit, or others than before would be protected.
    """
    if not is_there(config.ledger):
        return ()
    try:
        with Ledger(config.ledger, read_only=True) as ledger:
            present = ledger.origins()
    except LedgerMissing:  # a server reports it only when it is asked
        return ()
    wanted = _as_entered(config, present)
    found = [_change(name, present, wanted[name]) for name in wanted if name in present]
    return tuple(change for change in found if change.declared or change.data)


def _as_entered(config: Config, present: Mapping[str, TableRecord]) -> Mapping[str, TableRecord]:
    engine = engine_at(config.engine) or by_source()
    try:
        with Ledger() as scratch:
            enrol(config, Catalog(scratch, engine, config.today, present), scratch)
            return scratch.origins()
    finally:
        engine.close()


def _change(table: str, present: Mapping[str, TableRecord], wanted: TableRecord) -> TableChange:
    known = present[table]
    before, after = str(known["declaration"]), str(wanted["declaration"])
    others = {name: str(told["declaration"]) for name, told in present.items() if name != table}
    with naming(f"tables.{table}"):
        check_same_people(table, before, after, others)
    return TableChange(
        table=table, before=before, declared=differences(before, after), data=tuple(_data(known, wanted))
    )


def _data(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is new about the data; a file that is read for the first time needs a version of its own."""
    (version,) = wanted["versions"]
    new_version = version not in known["versions"]
    if new_version:
        yield f"version: {known['versions'][-1] or 'none'} -> {version or 'none'}"
    before, after = known.get("files", {}), wanted.get("files", {})
    if new_version and any(map(is_pin, after)):
        yield "source: its newest snapshot is read from now on"
    paths = [path for path in after if path not in before and not is_pin(path)]
    if before and paths:
        yield f"source: {', '.join(PurePath(path).name for path in paths)} is read from now on"
        if not new_version:
            yield "the version is the same: answers about the former file are repeated until you declare a new version"
